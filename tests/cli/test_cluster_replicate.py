"""Replications where three frond processes serve one FoundationDB cluster: each job runs in one of
them, all show it, any of them ends it, and another takes over from one that stops or is killed. Needs
a cluster; see FROND_TEST_FDB."""

import contextlib
import signal

from harness import cluster, equal, main, test, until
from processes import Processes, ask, database, status


@contextlib.contextmanager
def replicator(cwd):
    """Three servers, and two databases."""
    with Processes(cwd) as servers:
        status(servers[0], "DELETE", "/_replicator")
        equal(status(servers[0], "PUT", "/_replicator"), 201)
        with database(servers[0]) as source, database(servers[0]) as target:
            try:
                yield servers, source, target
            finally:
                for server in servers:
                    if server.process.poll() is None:
                        status(server, "DELETE", "/_replicator")


def has(server, db, id):
    return status(server, "GET", f"{db}/{id}") == 200


def started(server, source):
    """How often it has begun to run the job."""
    return sum("event=replication_started" in line and source[1:] in line
               for line in server.read_log().splitlines())


def runners(servers, source):
    return [server for server in servers if started(server, source)]


def jobs(server):
    return ask(server, "GET", "/_scheduler/jobs")[1]["jobs"]


def follow(servers, source, target, id):
    """A document whose job follows the source. The server that runs it."""
    equal(status(servers[0], "PUT", f"{source}/first-{id}", {}), 201)
    equal(status(servers[0], "PUT", f"/_replicator/{id}", {
        "source": source[1:], "target": target[1:], "continuous": True}), 201)
    until(lambda: has(servers[0], target, f"first-{id}"))
    running = runners(servers, source)
    equal(len(running), 1)
    return running[0]


@test
def a_job_runs_in_one_process_and_all_show_it(cwd):
    with replicator(cwd) as (servers, source, target):
        follow(servers, source, target, "shown")
        for server in servers:
            until(lambda: [job["doc_id"] for job in jobs(server)] == ["shown"])
            until(lambda: ask(server, "GET", "/_scheduler/docs/_replicator/shown")[1]["state"]
                  == "running")
        for n, server in enumerate(servers):
            equal(status(server, "PUT", f"{source}/by{n}", {}), 201)
        until(lambda: all(has(servers[0], target, f"by{n}") for n in range(3)))
        equal(sum(started(server, source) for server in servers), 1)


@test
def any_process_ends_a_job(cwd):
    with replicator(cwd) as (servers, _, target):
        for n, server in enumerate(servers):
            with database(servers[0]) as source:
                follow(servers, source, target, f"ended{n}")
                rev = ask(server, "GET", f"/_replicator/ended{n}")[1]["_rev"]
                equal(status(server, "DELETE", f"/_replicator/ended{n}?rev={rev}"), 200)
                until(lambda: not any(jobs(each) for each in servers))


@test
def another_process_takes_over_from_one_that_stops_and_one_that_is_killed(cwd):
    with replicator(cwd) as (servers, source, target):
        running, alive = follow(servers, source, target, "kept"), list(servers)
        for n, number in enumerate((signal.SIGTERM, signal.SIGKILL)):
            alive.remove(running)
            running.stop(number)
            equal(status(alive[0], "PUT", f"{source}/after{n}", {}), 201)
            until(lambda: has(alive[-1], target, f"after{n}"))
            running, = runners(alive, source)
        rows = [ask(alive[0], "GET", f"{db}/_changes")[1]["results"] for db in (source, target)]
        equal(*[sorted((row["id"], row["changes"][0]["rev"]) for row in each) for each in rows])


main(needs=None if cluster() else "FROND_TEST_FDB names no cluster file")
