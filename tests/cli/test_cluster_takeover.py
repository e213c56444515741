#!/usr/bin/env python3
"""Two fronds at one FoundationDB cluster, of which one is ended by kill -9 while clients of MongoDB's, of
Redis's and of rows' door write through both: nothing that was acknowledged is missing, and everything that the
killed one did in the background (expiry, sweeps, builds of indexes, replications) goes on in the other one once
its lease is over. How soon after that is told by test_cluster_killed.py, where nobody else is at work."""

import re
import signal
import sys
import threading
import time

from harness import Server, cluster, equal, main, ok, test, until
from mongo import Client as Mongo, Date
from resp import Client as Redis
from rows_server import Session

LEASE_S = 12  # the default, which a busy machine keeps no process silent for
BEAT_S = LEASE_S / 6  # a process may have given its last sign of life so long before its end
DOCS, BATCH = 6000, 2000
FIELDS = [f"n{i}" for i in range(4)]
# A build that takes far longer than its process lives.
STANDING = "[indexes]\nbuild_threads = 1\nbuild_percent = 1\n"
LIVES_MS = 300  # what is written to expire
WRITES_S = 2  # of both processes before the kill
CHORES = {"sweep_expired", "expire_mongo_documents", "build_indexes"}  # some of those that one process has for all
LEASE = re.compile(r"^  \\x14\\x15\\x08\\x15\\x03\\x01(\w+)\\x00 = (.*)$", re.MULTILINE)  # as inspect --raw draws it
INDEX = {"key": {"at": 1}, "name": "at", "expireAfterSeconds": 0}


class Process(Server):
    def __init__(self, cwd, settings):
        cwd.mkdir()
        (cwd / "ini").write_text(settings + "[mongo]\nexpire_seconds = 1\n")
        doors = [word for door in ("redis", "mongo", "rows") for word in ("--" + door, "127.0.0.1:0")]
        super().__init__(cwd, "--store", cluster(), *doors, "--config", "ini")

    def door(self, name):
        return int(re.search(rf"event={name} address=127\.0\.0\.1:(\d+)", self.read_log()).group(1))


class Place:
    """Where a session of the rows' library goes."""

    def __init__(self, process):
        self.port = process.door("rows")


class MongoWriter:
    def __init__(self, process):
        self.client = Mongo(process.door("mongo"), timeout=300)

    def write(self, key, expires):
        at = {"at": Date(int(time.time() * 1000) + LIVES_MS)} if expires else {}
        answer = self.client({"insert": "takeover", "documents": [{"_id": key, **at}]}, "takeover")
        equal(answer.get("writeErrors"), None)

    def close(self):
        self.client.close()


class RedisWriter:
    def __init__(self, process):
        self.client = Redis(process.door("redis"), timeout=300)

    def write(self, key, expires):
        self.client("SET", key, "x", *(("PX", LIVES_MS) if expires else ()))

    def close(self):
        self.client.close()


class RowsWriter:
    def __init__(self, process):
        self.session = Session(Place(process))
        self.session.do("use", "takeover", "t")

    def write(self, key, expires):
        self.session.do("write", 4, "v", "|", key, "|", int(expires))

    def close(self):
        self.session.__exit__()


class Writer(threading.Thread):
    """Writes until it is told to stop, or its process is gone. Every second thing expires soon."""

    def __init__(self, kind, process, name):
        super().__init__(name=name)
        self.kind, self.process, self.stop, self.there, self.ended = kind, process, threading.Event(), [], None

    def run(self):
        client, n = self.kind(self.process), 0
        while not self.stop.is_set():
            key, expires = f"{self.name}-{n:06}", bool(n % 2)
            try:
                client.write(key, expires)
            except Exception as error:  # whatever its protocol makes of an end that comes amid an answer
                self.ended = error
                return
            if not expires:
                self.there.append(key)
            n += 1
        client.close()


def leases(cwd):
    """The process that has each chore, by what is stored of the leases."""
    told = ok("inspect", "--raw", "--limit", "400", "--store", cluster(), cwd=cwd).stdout
    return dict(LEASE.findall(told))


def make(a):
    """What both write into, and what a does in the background: it is the only process yet."""
    with Session(Place(a)) as session:
        session.do("schema_create", "takeover")
        session.do("create", "takeover", "t", "id", "text", "range", "v", "int4", "regular")
    mongo = Mongo(a.door("mongo"), timeout=300)
    mongo({"createIndexes": "takeover", "indexes": [INDEX]}, "takeover")
    mongo.close()
    for db in "/takeover", "/takeover-copy", "/_replicator":
        equal(a.request("PUT", db)[0], 201)
    equal(a.request("PUT", "/takeover/before", {})[0], 201)
    equal(a.request("PUT", "/_replicator/takeover", {
        "source": "takeover", "target": "takeover-copy", "continuous": True})[0], 201)
    until(lambda: a.request("GET", "/takeover-copy/before")[0] == 200)


def build(a):
    """Leaves builds standing that have begun."""
    equal(a.request("PUT", "/takeover-built")[0], 201)
    for start in range(0, DOCS, BATCH):
        docs = [{"_id": f"{n:05}", "n": n} for n in range(start, start + BATCH)]
        equal(a.request("POST", "/takeover-built/_bulk_docs", {"docs": docs})[0], 201)
    equal(a.request("PUT", "/takeover-built/last", {field: 7 for field in FIELDS})[0], 201)
    for field in FIELDS:
        equal(a.request("POST", "/takeover-built/_index", {"index": {"fields": [field]}, "name": field})[0], 200)
    until(lambda: builds(a))


def builds(server):
    return [task for task in server.request("GET", "/_active_tasks")[1] if task["type"] == "indexer"]


def check_writes(b, writers):
    """All that was acknowledged is there, and of what has expired nothing is left in the store."""
    there = {kind: sorted(key for writer in writers if writer.kind is kind for key in writer.there)
             for kind in (MongoWriter, RedisWriter, RowsWriter)}
    for kind, keys in there.items():
        assert keys, f"nothing was written by {kind.__name__}"
    mongo, redis = Mongo(b.door("mongo"), timeout=300), Redis(b.door("redis"), timeout=300)
    until(lambda: mongo({"count": "takeover", "query": {"at": {"$exists": True}}}, "takeover")["n"] == 0)
    until(lambda: redis("DBSIZE") == len(redis("KEYS", "*")))
    found = mongo({"distinct": "takeover", "key": "_id"}, "takeover")["values"]
    equal(sorted(set(there[MongoWriter]) - set(found)), [])
    equal(sorted(set(there[RedisWriter]) - {key.decode() for key in redis("KEYS", "*")}), [])
    mongo.close()
    redis.close()
    with Session(Place(b)) as session:
        session.do("use", "takeover", "t")
        equal([key for key in there[RowsWriter] if session.do("get", "v", "|", key) != ["0"]], [])


@test
def what_a_killed_process_did_goes_on_in_the_one_that_lives(cwd):
    with Process(cwd / "a", STANDING) as a:
        make(a)
        until(lambda: CHORES <= leases(cwd).keys())
        first = leases(cwd)
        with Process(cwd / "b", "") as b:
            build(a)
            writers = [Writer(kind, process, f"{name}-{kind.__name__}")
                       for name, process in (("a", a), ("b", b)) for kind in (MongoWriter, RedisWriter, RowsWriter)]
            for writer in writers:
                writer.start()
            time.sleep(WRITES_S)
            equal({name: leases(cwd)[name] for name in first}, first)
            assert builds(a), "all builds were done before the kill"
            equal(a.stop(signal.SIGKILL), -signal.SIGKILL)
            killed = time.monotonic()
            equal(b.request("PUT", "/takeover/after", {})[0], 201)
            until(lambda: all(leases(cwd).get(name) not in (None, holder) for name, holder in first.items()))
            took = time.monotonic() - killed
            assert took > LEASE_S - BEAT_S, f"leases were taken from a process that may have been alive: {took:.1f} s"
            print(f"# the other process has all {len(first)} leases {took:.1f} s after the kill")
            for writer in writers[3:]:
                writer.stop.set()
            for writer in writers:
                writer.join()
                equal((writer.ended is not None, writer.name), (writer.process is a, writer.name))
            check_writes(b, writers)
            until(lambda: not builds(b))
            for field in FIELDS:
                found = b.request("POST", "/takeover-built/_find", {"selector": {field: 7}})[1]["docs"]
                equal([doc["_id"] for doc in found], ["last"])
            until(lambda: b.request("GET", "/takeover-copy/after")[0] == 200)
            # What both were asked to do for good is nobody else's.
            equal(b.request("DELETE", "/_replicator")[0], 200)
    said = ok("verify", "--ranges", "--store", cluster(), cwd=cwd).stdout
    assert " 0 findings" in said, said


Session.client = sys.argv[2]
main(needs=None if cluster() else "FROND_TEST_FDB names no cluster file")
