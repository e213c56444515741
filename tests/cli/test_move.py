"""frond move between two embedded stores: the command itself, ended by kill -9 and signals, what a
server says meanwhile, and clients that go on."""

import json
import random
import signal
import subprocess

from harness import ENV, FROND, Server, contains, equal, main, ok, run, test

A, B = "embedded:a", "embedded:b"
MOVE = ("move", "--from", A, "--to", B, "db")
MOST_KILLS = 100


def load(cwd, store, docs, db="db"):
    text = "\n".join(json.dumps({"_id": f"d{n:05}", "n": n, "text": "x" * 300}) for n in range(docs))
    ok("load", db, "--store", store, "--quiet", cwd=cwd, stdin=text)


def dump(cwd, store):
    return ok("dump", "db", "--revs", "--quiet", "--store", store, cwd=cwd).stdout


def exists(cwd, store):
    result = run("dump", "db", "--quiet", "--store", store, cwd=cwd)
    return result.returncode == 0


def moves(cwd):
    """The source's own keys, among them what it knows of a move."""
    return ok("inspect", "--limit", "10", "--store", A, cwd=cwd).stdout


def whole(cwd, store):
    contains(ok("verify", "--quiet", "--store", store, cwd=cwd).stdout, " 0 findings")


@test
def wrong_usage_is_exit_code_2(cwd):
    for args in ([], ["db"], ["--from", A, "db"], ["--to", B, "db"], [*MOVE, "db2"],
                 [*MOVE[1:], "--rollback", "--keep-source"], [*MOVE[1:], "--nonsense"],
                 ["--from", "x", "--to", B, "db"], ["--from", A, "--to", "other:x", "db"]):
        equal(run("move", *args[1:] if args[:1] == ["move"] else args, cwd=cwd).returncode, 2)


@test
def people_stay_with_their_store(cwd):
    result = run("move", "--from", A, "--to", B, "_users", cwd=cwd)
    equal(result.returncode, 2)
    contains(result.stderr, "people belong to their store")


@test
def what_cannot_be_moved_is_told(cwd):
    result = run(*MOVE, cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "embedded:a")
    load(cwd, A, 3)
    load(cwd, B, 3)
    result = run(*MOVE, cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, 'there is a database "db" already')
    result = run("move", "--from", A, "--to", B, "none", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, 'there is no database "none"')
    result = run("move", "--from", A, "--to", "embedded:./a", "db", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "is where the database is already")
    with Server(cwd, "--store", A):
        result = run("move", "--from", A, "--to", "embedded:c", "db", cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, "in use by another frond")


@test
def moved_database_is_what_it_was_and_the_source_has_none(cwd):
    load(cwd, A, 2000)
    with Server(cwd, "--store", A) as server:
        equal(server.request("PUT", "/db/_security", {"admins": {"names": ["anna"], "roles": []},
                                                      "members": {"names": [], "roles": []}})[0], 200)
        equal(server.request("PUT", "/db/_revs_limit", 7)[0], 200)
        equal(server.request("PUT", "/db/_local/point", {"seq": 1})[0], 201)
        rev = server.request("GET", "/db/d00000")[1]["_rev"]
        equal(server.request("DELETE", f"/db/d00000?rev={rev}")[0], 200)
        since = server.request("GET", "/db")[1]["update_seq"]
    before = dump(cwd, A)
    result = ok(*MOVE, cwd=cwd)
    contains(result.stdout, '"db" moved from embedded:a to embedded:b: 2000 documents, ')
    assert dump(cwd, B) == before
    assert not exists(cwd, A)
    whole(cwd, A)
    whole(cwd, B)
    with Server(cwd, "--store", B) as server:
        info = server.request("GET", "/db")[1]
        equal((info["update_seq"], info["doc_count"], info["doc_del_count"]), (since, 1999, 1))
        equal(server.request("GET", f"/db/_changes?since={since}")[1]["results"], [])
        equal(server.request("PUT", "/db/new", {})[0], 201)
        rows = server.request("GET", f"/db/_changes?since={since}")[1]["results"]
        equal([row["id"] for row in rows], ["new"])
        equal(server.request("GET", "/db/_revs_limit")[1], 7)
        equal(server.request("GET", "/db/_security")[1]["admins"]["names"], ["anna"])
        equal(server.request("GET", "/db/_local/point")[1]["seq"], 1)


@test
def kept_source_is_read_only(cwd):
    load(cwd, A, 10)
    ok(*MOVE, "--keep-source", cwd=cwd)
    assert dump(cwd, A) == dump(cwd, B)
    with Server(cwd, "--store", A) as server:
        equal(server.request("GET", "/db/d00001")[0], 200)
        status, body = server.request("PUT", "/db/new", {})
        equal((status, body["error"]), (403, "forbidden"))
        contains(body["reason"], "has been moved")
        equal(server.request("DELETE", "/db")[0], 200)
        equal(server.request("PUT", "/db")[0], 201)


def killed_after(cwd, seconds, *extra):
    """Kills a move that long after it has begun; False if it was done before."""
    process = subprocess.Popen([FROND, *MOVE, "--quiet", *extra], cwd=cwd, env=ENV,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


def kill_while_it_moves(cwd):
    """Kills a move before the database is handed over. One that had come further is ended, and moved back."""
    seconds = 0.05
    for _ in range(MOST_KILLS):
        killed = killed_after(cwd, seconds)
        state = moves(cwd)
        if '"moves", "db") = (1, "moving", uuid:' in state:
            return
        if killed and "moves" not in state:
            seconds += 0.01
            continue
        if killed:
            ok(*MOVE, cwd=cwd)
        ok("move", "--from", B, "--to", A, "db", cwd=cwd)
        seconds *= 0.8
    raise AssertionError("no move was killed while it copied")


@test
def killed_at_random_it_goes_on(cwd):
    seed = random.randrange(1 << 30)
    print(f"# seed {seed}")
    rng = random.Random(seed)
    load(cwd, A, 2000)
    before = dump(cwd, A)
    kills, longest = 0, 0.02
    while killed_after(cwd, rng.uniform(0, longest)):
        kills += 1
        longest *= 1.7
        there = [store for store in (A, B) if exists(cwd, store)]
        assert there, "no copy"
        for store in there:
            assert dump(cwd, store) == before, store
        whole(cwd, A)
    assert kills > 0
    print(f"# killed {kills} times")
    assert dump(cwd, B) == before
    assert not exists(cwd, A)
    whole(cwd, A)
    whole(cwd, B)


@test
def server_of_an_unfinished_move_reads_and_says_why_it_does_not_write(cwd):
    load(cwd, A, 2000)
    before = dump(cwd, A)
    kill_while_it_moves(cwd)
    with Server(cwd, "--store", A) as server:
        equal(server.request("GET", "/db/d00001")[0], 200)
        for method, path, body in (("PUT", "/db/new", {}), ("DELETE", "/db", None),
                                   ("POST", "/db/_bulk_docs", {"docs": [{}]}),
                                   ("PUT", "/db/_security", {}), ("PUT", "/db/_revs_limit", 9),
                                   ("PUT", "/db/_local/x", {}), ("POST", "/db", {})):
            status, answer = server.request(method, path, body)
            equal((status, answer["error"]), (503, "service unavailable"))
            contains(answer["reason"], "is being moved to another store")
        contains(server.read_log(), 'event=move_unfinished db="db" state=moving to="embedded:')
    with Server(cwd, "--store", B) as server:
        equal(server.request("GET", "/db")[0], 404)
        status, answer = server.request("PUT", "/db")
        equal(status, 503)
        contains(answer["reason"], "is being moved here")
        contains(server.read_log(), 'event=move_unfinished db="db" state=')
    ok(*MOVE, "--rollback", cwd=cwd)
    assert dump(cwd, A) == before
    assert not exists(cwd, B)
    whole(cwd, A)
    whole(cwd, B)
    with Server(cwd, "--store", A) as server:
        equal(server.request("PUT", "/db/new", {})[0], 201)
    result = run(*MOVE, "--rollback", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "no move of")


@test
def signal_stops_it_in_good_order(cwd):
    load(cwd, A, 2000)
    before = dump(cwd, A)
    process = subprocess.Popen([FROND, *MOVE], cwd=cwd, env=ENV, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    contains(process.stderr.readline(), "copying")
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[1]
    if process.returncode:
        contains(rest, "stopped by a signal")
        contains(rest, "the same command goes on")
        ok(*MOVE, cwd=cwd)
    assert dump(cwd, B) == before


main()
