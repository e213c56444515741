#!/usr/bin/env python3
"""A process in front of a cluster that is ended by kill -9 in the middle of background work: another one
goes on with its builds and replications once its `lease_ms` is over, and not before. Over the
library that stands in for FoundationDB's, whose store is one process's at a time: so the other one begins
when the first has gone. Processes side by side, at a cluster, are in test_cluster_replicate.py."""

import pathlib
import signal
import sys
import time

from harness import ENV, Server, equal, main, test, until

ENV["FROND_LIBFDB_C"] = str(pathlib.Path(sys.argv[2]).resolve())
LEASE_S = 4  # of the process that is killed
BUSY_S = 6  # that a busy machine may take; with the lease it is less than LEASE_MS, the default
DOCS, BATCH = 20000, 2000
FIELDS = [f"n{i}" for i in range(8)]
STANDING = "[indexes]\nbuild_threads = 1\nbuild_percent = 1\n"  # a build that takes for ever


class Process(Server):
    """A process at the one store, with a folder and a log of its own."""

    def __init__(self, cwd, name, ini):
        self.began = time.monotonic()
        folder = cwd / name
        folder.mkdir()
        (folder / "ini").write_text(ini)
        super().__init__(folder, "--store", f"fdb:{cwd}/c.cluster", "--config", "ini")

    def kill(self):
        equal(self.stop(signal.SIGKILL), -signal.SIGKILL)

    def went_on(self, condition):
        """Waits until work that another process has left is done here: when its lease is over, and soon then."""
        until(condition)
        took = time.monotonic() - self.began
        assert took > LEASE_S, f"the lease of a process that may have been alive was taken after {took:.1f} s"
        assert took < LEASE_S + BUSY_S, f"{took:.1f} s"
        return took

    def builds(self):
        """How far each has come."""
        return [task["progress"] for task in self.request("GET", "/_active_tasks")[1] if task["type"] == "indexer"]


def store_of_two(cwd):
    (cwd / "c.cluster").write_text("a stand-in\n")
    (cwd / "c.cluster.keep").touch()


def first(cwd, more=""):
    return Process(cwd, "first", f"[frond]\nlease_ms = {LEASE_S * 1000}\n{more}")


@test
def replications_go_on(cwd):
    store_of_two(cwd)
    (cwd / "far").mkdir()
    with Server(cwd / "far") as far:
        for db in "/source", "/target":
            equal(far.request("PUT", db)[0], 201)
        equal(far.request("PUT", "/source/before", {})[0], 201)
        with first(cwd) as server:
            server.request("PUT", "/_replicator")
            equal(server.request("PUT", "/_replicator/r", {
                "source": far.url + "/source", "target": far.url + "/target", "continuous": True})[0], 201)
            until(lambda: far.request("GET", "/target/before")[0] == 200)
            server.kill()
        equal(far.request("PUT", "/source/after", {})[0], 201)
        with Process(cwd, "second", "") as server:
            took = server.went_on(lambda: far.request("GET", "/target/after")[0] == 200)
            print(f"# a replication went on {took:.1f} s after another process had begun")


@test
def builds_go_on(cwd):
    store_of_two(cwd)
    with first(cwd, STANDING) as server:
        equal(server.request("PUT", "/db")[0], 201)
        for start in range(0, DOCS, BATCH):
            docs = [{"_id": f"{n:05}", "n": n} for n in range(start, start + BATCH)]
            equal(server.request("POST", "/db/_bulk_docs", {"docs": docs})[0], 201)
        equal(server.request("PUT", "/db/last", {field: 7 for field in FIELDS})[0], 201)
        for field in FIELDS:
            equal(server.request("POST", "/db/_index", {"index": {"fields": [field]}, "name": field})[0], 200)
        server.kill()
    with Process(cwd, "second", "") as server:
        left = server.builds()
        assert left, "all builds were done before the kill"
        took = server.went_on(lambda: server.builds() != left)
        print(f"# builds went on {took:.1f} s after another process had begun")
        until(lambda: not server.builds())
        for field in FIELDS:
            found = server.request("POST", "/db/_find", {"selector": {field: 7}})[1]["docs"]
            equal([doc["_id"] for doc in found], ["last"])


main()
