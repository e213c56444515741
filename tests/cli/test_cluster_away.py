#!/usr/bin/env python3
"""A cluster that does not answer: what clients of each door are told, and when; that commits without an
answer are neither lost nor made twice, and that all doors answer again by themselves. Over the library
that stands in for FoundationDB's, which is silent as long as a file beside the cluster file says so."""

import pathlib
import re
import sys
import time

from cql_wire import Connection as Cql
from harness import ENV, Server, contains, equal, main, run_threads, test, until
from mongo import Client as Mongo, Int64
from resp import Client as Redis
from rows_server import Session

ENV["FROND_LIBFDB_C"] = str(pathlib.Path(sys.argv[2]).resolve())
Session.client = str(pathlib.Path(sys.argv[3]).resolve())
COMMIT_WAIT_MS = 500
IN_TIME = 8  # seconds, for COMMIT_WAIT_MS on a busy machine
ASKED = 35  # seconds, for FDB_READ_TIMEOUT_MS twice


class Doors(Server):
    def __init__(self, cwd):
        self.cwd = cwd
        (cwd / "ini").write_text(f"[frond]\ncommit_wait_ms = {COMMIT_WAIT_MS}\n")
        (cwd / "c.cluster").write_text("a stand-in\n")
        ports = [word for door in ("redis", "mongo", "cql", "rows") for word in ("--" + door, "127.0.0.1:0")]
        super().__init__(cwd, "--store", "fdb:c.cluster", "--config", "ini", *ports)
        log = self.read_log()
        self.ports = {door: int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", log).group(1))
                      for door in ("redis", "mongo", "cql", "rows")}
        self.port = self.ports["rows"]
        self.redis, self.mongo = Redis(self.ports["redis"], timeout=120), Mongo(self.ports["mongo"])
        self.cql, self.rows = Cql(self.ports["cql"]), Session(self)
        self.fill()

    def __exit__(self, *how):
        self.hold(None)
        self.redis.close()
        self.mongo.close()
        self.cql.__exit__()
        self.rows.__exit__()
        super().__exit__(*how)

    def fill(self):
        equal(self.request("PUT", "/db")[0], 201)
        equal(self.request("PUT", "/db/before", {})[0], 201)
        self.redis("SET", "before", "1")
        self.mongo({"insert": "c", "documents": [{"_id": "before"}]}, "d")
        self.cql.start()
        self.cql.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        self.cql.query("CREATE TABLE k.t (id text PRIMARY KEY, v int)")
        self.cql.query("INSERT INTO k.t (id, v) VALUES ('before', 1)")
        self.rows.do("schema_create", "s")
        self.rows.do("create", "s", "t", "id", "text", "range", "v", "int4", "regular")
        self.rows.do("use", "s", "t")
        self.rows.do("write", 4, "v", "|", "before", "|", "1")

    def hold(self, what):
        """What the cluster does not answer; None: it answers all."""
        path = self.cwd / "c.cluster.hold"
        if what:
            path.write_text(what)
        else:
            path.unlink(missing_ok=True)
        time.sleep(0.2)

    # One write of each door: what its client gets, as text.

    def couch_write(self):
        return self.request("PUT", "/db/meanwhile", {})

    def redis_write(self):
        return self.redis.error("INCR", "meanwhile")

    def mongo_write(self):
        return self.mongo.fails({"insert": "c", "documents": [{"_id": "meanwhile"}]}, "d")

    def cql_write(self):
        return self.cql.code("INSERT INTO k.t (id, v) VALUES ('meanwhile', 1)")

    def rows_write(self, state):
        return self.rows.fails(state, "write", 4, "v", "|", "meanwhile", "|", "1")

    def check_all(self, key):
        """Every door has it."""
        equal(self.request("GET", f"/db/{key}")[0], 200)
        equal(self.redis("GET", key), b"1")
        equal(len(self.mongo({"find": "c", "filter": {"_id": key}}, "d")["cursor"]["firstBatch"]), 1)
        equal(len(self.cql.query(f"SELECT v FROM k.t WHERE id = '{key}'")), 1)
        equal(self.rows.do("get", "v", "|", key), ["1"])


def timed(job, seconds):
    def run():
        begun = time.monotonic()
        job()
        took = time.monotonic() - begun
        assert took < seconds, f"{job.__name__} took {took:.1f} s"
    return run


@test
def commits_that_are_not_answered_are_told_as_unknown_and_take_place_once(cwd):
    with Doors(cwd) as server:
        def couch():
            status, body = server.couch_write()
            equal((status, body["error"]), (500, "timeout"))
            contains(body["reason"], "has not answered in time")

        def redis():
            contains(server.redis_write(), "ERR the cluster has not answered in time")

        def mongo():
            equal(server.mongo_write()["code"], 6)

        def cql():
            equal(server.cql_write(), 0x1100)

        def rows():
            server.rows_write("08007")

        server.hold("commits")
        run_threads(*(timed(job, IN_TIME) for job in (couch, redis, mongo, cql, rows)))
        server.check_all("before")
        numbers = server.metrics()
        assert numbers["frond_kv_commits_awaited"] >= 5, numbers
        assert numbers["frond_kv_commits_left_total"] >= 5, numbers
        server.hold(None)
        until(lambda: server.metrics()["frond_kv_commits_awaited"] == 0)
        server.check_all("meanwhile")


@test
def no_write_passes_one_to_the_same_key_whose_outcome_is_not_known(cwd):
    with Doors(cwd) as server, Cql(server.ports["cql"]) as cql:
        other = Redis(server.ports["redis"], timeout=120)
        server.cql.query("INSERT INTO k.t (id, v) VALUES ('delayed', 1)")
        # The first column of a table that is written by itself changes what all transactions have read.
        server.cql.query("UPDATE k.t SET v = 1 WHERE id = 'delayed'")
        server.hold("key delayed")
        contains(server.redis.error("SET", "delayed", "first"), "ERR the cluster has not answered in time")
        # Of another client, too: what waits is told so after its own time, and nothing of it was done.
        begun = time.monotonic()
        contains(other.error("SET", "delayed", "second"), "LOADING nothing was done")
        assert COMMIT_WAIT_MS / 1000 <= time.monotonic() - begun < IN_TIME
        equal(other("GET", "delayed"), None)
        other("SET", "elsewhere", "1")
        # A pipeline ends there, each of its commands with an answer.
        for answer in other.pipeline(("SET", "delayed", "third"), ("APPEND", "delayed", "x")):
            contains(str(answer), "LOADING")
        equal(server.cql.code("UPDATE k.t SET v = 2 WHERE id = 'delayed' IF v = 1"), 0x1100)
        cql.start()
        equal(cql.code("UPDATE k.t SET v = 3 WHERE id = 'delayed' IF v = 1"), 0x1000)
        server.hold(None)
        until(lambda: server.metrics()["frond_kv_commits_awaited"] == 0)
        equal(other("GET", "delayed"), b"first")
        equal(other("APPEND", "delayed", "-last"), 10)
        equal(len(server.cql.query("SELECT v FROM k.t WHERE id = 'delayed'")), 1)
        other.close()


@test
def commits_that_were_lost_are_not_made_again(cwd):
    with Doors(cwd) as server:
        server.hold("lost")
        contains(server.redis_write(), "ERR the cluster has not answered in time")
        equal(server.couch_write()[0], 500)
        server.hold(None)
        until(lambda: server.metrics()["frond_kv_commits_awaited"] == 0)
        equal(server.redis("GET", "meanwhile"), None)
        equal(server.request("GET", "/db/meanwhile")[0], 404)
        # Who asks again has it done.
        equal(server.redis("INCR", "meanwhile"), 1)
        equal(server.couch_write()[0], 201)


@test
def transactions_of_several_commands_are_left_too(cwd):
    with Doors(cwd) as server:
        server.rows.do("begin")
        server.rows.do("write", 4, "v", "|", "meanwhile", "|", "1")
        session = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        server.mongo({"insert": "c", "documents": [{"_id": "meanwhile"}], "startTransaction": True, **session}, "d")
        server.hold("commits")
        timed(lambda: server.rows.fails("08007", "commit"), IN_TIME)()
        failure = {}
        timed(lambda: failure.update(server.mongo.fails({"commitTransaction": 1, **session})), IN_TIME)()
        equal(failure["code"], 6)
        contains(failure["errorLabels"], "UnknownTransactionCommitResult")
        server.hold(None)
        # Drivers then ask again.
        server.mongo({"commitTransaction": 1, **session})
        until(lambda: server.metrics()["frond_kv_commits_awaited"] == 0)
        equal(server.rows.do("get", "v", "|", "meanwhile"), ["1"])
        equal(len(server.mongo({"find": "c", "filter": {"_id": "meanwhile"}}, "d")["cursor"]["firstBatch"]), 1)


@test
def a_cluster_that_is_away_is_told_by_every_door_in_time(cwd):
    with Doors(cwd) as server:
        def couch():
            for method, path in ("GET", "/db/before"), ("PUT", "/db/meanwhile"), ("GET", "/_up"):
                status, body = server.request(method, path, {} if method == "PUT" else None)
                equal(status, 503)
                if path != "/_up":
                    equal(body["error"], "service unavailable")

        def redis():
            contains(server.redis.error("GET", "before"), "LOADING")

        def mongo():
            equal(server.mongo.fails({"find": "c"}, "d")["code"], 6)

        def cql():
            equal(server.cql.code("SELECT v FROM k.t WHERE id = 'before'"), 0x1000)

        def rows():
            server.rows.fails("57P03", "get", "v", "|", "before")

        def writes():
            contains(Redis(server.ports["redis"], timeout=120).error("SET", "meanwhile", "2"), "LOADING")

        server.hold("all")
        run_threads(timed(couch, 3 * ASKED), *(timed(job, ASKED) for job in (redis, mongo, cql, rows, writes)))
        server.hold(None)
        server.check_all("before")
        equal(server.redis("GET", "meanwhile"), None)


main()
