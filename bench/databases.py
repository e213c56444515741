#!/usr/bin/env python3
"""A database for each user: what many databases in one store cost.

    databases.py FROND [--count N] [--feeds N] [--replications N] [--couchdb URL] [--peer-count N]

FROND is the binary. Databases are created by 16 connections, each with one request under way. Then
come: what one takes on the disk and in memory at rest, the listings, a database that is opened for
the first time after a start, a continuous feed on each of many databases, and a replication
document for each of many databases into one. CouchDB is asked the same, with fewer databases, as
each of its own is files and a process. Prints one line a figure, and all of them as JSON at the end.
"""

import argparse
import base64
import json
import random
import resource
import selectors
import socket
import tempfile
import time

from sides import Couch, Frond

CLIENTS = 16
HEARTBEAT_MS = 600000  # longer than a run: a beat is not what is measured
DEADLINE_S = 600       # of any wait
OPENED = 1000          # databases that are opened cold, one after the other
SPARE = 200            # connections that are no feeds
NAME = "userdb-"


def name_of(number):
    """As couch_peruser names the database of the user "user00000001"."""
    return NAME + f"user{number:08}".encode().hex()


class Pipe:
    """Connections that are kept alive, each with one request under way, on one thread."""

    def __init__(self, server):
        self.address = (server.host, server.port)
        self.head = f"Host: {server.host}\r\n"
        if server.auth:
            self.head += f"Authorization: Basic {server.auth}\r\n"

    def request(self, method, path, body=None):
        text = json.dumps(body) if body is not None else ""
        kind = "Content-Type: application/json\r\n" if body is not None else ""
        return (f"{method} {path} HTTP/1.1\r\n{self.head}{kind}"
                f"Content-Length: {len(text)}\r\n\r\n{text}").encode()

    def run(self, requests, connections, status=b"201"):
        """All of them; their times in ms, and how long it took."""
        select = selectors.EpollSelector()
        waiting, begun, times = iter(requests), {}, []

        def send(s):
            one = next(waiting, None)
            if one is None:
                select.unregister(s)
                s.close()
                return
            begun[s] = time.monotonic()
            s.sendall(one)

        begin = time.monotonic()
        for _ in range(connections):
            s = socket.create_connection(self.address)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            select.register(s, selectors.EVENT_READ, bytearray())
            send(s)
        while select.get_map():
            for key, _ in select.select(DEADLINE_S):
                piece = key.fileobj.recv(65536)
                if not piece:
                    raise SystemExit("the server has closed a connection")
                key.data.extend(piece)
                end = length_of(key.data)
                if end is None or len(key.data) < end:
                    continue
                if key.data[9:12] != status:
                    raise SystemExit(f"not {status.decode()}: {bytes(key.data)}")
                times.append((time.monotonic() - begun[key.fileobj]) * 1000)
                key.data.clear()
                send(key.fileobj)
        return times, time.monotonic() - begin


def length_of(answer):
    """Of a whole answer; None while that is not known."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return None
    at = answer.lower().find(b"content-length:", 0, end)
    if at >= 0:
        return end + 4 + int(answer[at + 15:answer.find(b"\r\n", at)])
    last = answer.find(b"0\r\n\r\n", end)
    return last + 5 if last >= 0 else None


def share(times, part):
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


class Told:
    """The figures of one side."""

    def __init__(self, side):
        self.side = side
        self.figures = {}
        self.rows = {}  # those of the table that run.py makes, by workload

    def tell(self, what, value, unit):
        self.figures[what] = round(value, 3)
        print(f"{self.side}: {what}: {value:,.3g} {unit}" if value < 100 else
              f"{self.side}: {what}: {value:,.0f} {unit}", flush=True)


def create(server, told, count):
    server.restart()  # an empty store, as one that has been opened before
    disk, memory = disk_of(server), server.memory_mb("VmRSS")
    pipe = Pipe(server)
    ticks = server.cpu_ticks()
    times, took = pipe.run((pipe.request("PUT", f"/{name_of(i)}") for i in range(count)), CLIENTS)
    told.tell("created a second, 16 clients", count / took, "")
    told.tell("creation, 99th percentile", share(times, .99), "ms")
    cpu_us = (server.cpu_ticks() - ticks) * 1e4 / count
    told.tell("creation, processor time", cpu_us, "µs")
    told.rows["databases-created"] = {
        "rate": count / took, "p50_ms": share(times, .5), "p99_ms": share(times, .99),
        "cpu_us": cpu_us, "databases": count}
    if disk is not None:
        server.restart()  # what it has written of its own accord by now
        bytes_each = (disk_of(server) - disk) / count
        told.tell("disk a database", bytes_each, "bytes")
        told.rows["databases-disk"] = {"bytes": bytes_each, "databases": count}
        told.tell("memory with all at rest, above that of none",
                  server.memory_mb("VmRSS") - memory, "MB")


def disk_of(server):
    return server.disk_bytes(None) if isinstance(server, Frond) else None


def listings(server, told):
    for path in ("/_all_dbs", "/_dbs_info", "/_db_updates"):
        server.reset_peak()
        memory = server.memory_mb("VmRSS")
        begin = time.monotonic()
        status, answer = server.request("GET", path)
        took = time.monotonic() - begin
        if status != 200:
            print(f"{told.side}: {path}: {status}")
            continue
        answer = json.loads(answer)
        rows = len(answer["results"] if isinstance(answer, dict) else answer)
        told.tell(f"{path}, {rows} rows", took, "s")
        told.tell(f"{path}, memory at most above rest", server.memory_mb() - memory, "MB")


def open_cold(server, told, count):
    """The first request to each of some databases, one after the other."""
    some = random.Random(1).sample(range(count), min(OPENED, count))
    server.restart()
    pipe = Pipe(server)
    ticks = server.cpu_ticks()
    times, took = pipe.run((pipe.request("GET", f"/{name_of(i)}") for i in some), 1, b"200")
    told.rows["databases-cold"] = {
        "rate": len(some) / took, "p50_ms": share(times, .5), "p99_ms": share(times, .99),
        "cpu_us": (server.cpu_ticks() - ticks) * 1e4 / len(some), "databases": count}
    told.tell("opened cold, median", share(times, .5), "ms")
    told.tell("opened cold, 99th percentile", share(times, .99), "ms")
    times, _ = pipe.run((pipe.request("GET", f"/{name_of(some[0])}") for _ in some), 1, b"200")
    told.tell("opened again, median", share(times, .5), "ms")


class Feeds:
    """A continuous feed on each of some databases."""

    def __init__(self, server):
        self.pipe = Pipe(server)
        self.select = selectors.EpollSelector()
        self.sockets = []

    def open(self, count):
        for first in range(0, count, 200):
            some = [socket.create_connection(self.pipe.address)
                    for _ in range(min(200, count - first))]
            for i, s in enumerate(some):
                s.sendall(self.pipe.request("GET", f"/{name_of(first + i)}/_changes?since=now&"
                                            f"feed=continuous&heartbeat={HEARTBEAT_MS}"))
                s.settimeout(DEADLINE_S)
            for s in some:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = s.recv(4096)
                    if not piece:
                        raise SystemExit(f"a feed ended: {head}")
                    head += piece
                if not head.startswith(b"HTTP/1.1 200 "):
                    raise SystemExit(f"a feed was refused: {head}")
                s.setblocking(False)
                self.select.register(s, selectors.EVENT_READ)
            self.sockets += some

    def await_all(self, mark):
        missing, deadline = set(self.sockets), time.monotonic() + DEADLINE_S
        while missing and time.monotonic() < deadline:
            for key, _ in self.select.select(1):
                if mark in key.fileobj.recv(65536):
                    missing.discard(key.fileobj)
        return time.monotonic() if not missing else None

    def close(self):
        for s in self.sockets:
            s.close()


def feeds(server, told, count):
    pipe, memory = Pipe(server), server.memory_mb("VmRSS")
    open_feeds = Feeds(server)
    begin = time.monotonic()
    open_feeds.open(count)
    told.tell(f"{count} feeds on as many databases, opened", time.monotonic() - begin, "s")
    time.sleep(1)
    told.tell("memory a feed", (server.memory_mb("VmRSS") - memory) * 1024 / count, "KB")
    begin = time.monotonic()
    pipe.run((pipe.request("PUT", f"/{name_of(i)}/told", {}) for i in range(count)), CLIENTS)
    told.tell("a write to each of them", time.monotonic() - begin, "s")
    end = open_feeds.await_all(b'"id":"told"')
    if end is None:
        raise SystemExit("feeds were not told")
    told.tell("until every feed has told of its own", end - begin, "s")
    open_feeds.close()


def replications(server, told, count):
    """A document each, which copies one database with one document into one target."""
    pipe = Pipe(server)
    url = f"http://{server.host}:{server.port}"
    if server.auth:
        url = f"http://{base64.b64decode(server.auth).decode()}@{server.host}:{server.port}"
    server.must("PUT", "/all-users")
    if server.request("GET", "/_replicator")[0] != 200:
        server.must("PUT", "/_replicator")
    pipe.run((pipe.request("PUT", f"/{name_of(i)}/from-{i}", {"user": i}) for i in range(count)),
             CLIENTS)
    memory = server.memory_mb("VmRSS")
    begin = time.monotonic()
    docs = [{"_id": f"from-{i}", "source": f"{url}/{name_of(i)}", "target": f"{url}/all-users",
             "selector": {"user": {"$exists": True}}} for i in range(count)]
    server.must("POST", "/_replicator/_bulk_docs", {"docs": docs})
    server.reset_peak()
    while server.must("GET", "/all-users")["doc_count"] < count:
        if time.monotonic() > begin + DEADLINE_S:
            done = server.must("GET", "/all-users")["doc_count"]
            print(f"{told.side}: {done} of {count} replications have ended after {DEADLINE_S} s")
            return
        time.sleep(0.2)
    told.tell(f"{count} replication documents into one, until all is there",
              time.monotonic() - begin, "s")
    told.tell("memory at most above rest meanwhile", server.memory_mb() - memory, "MB")


def measure(server, told, a, count, feeds_count, replications_count):
    create(server, told, count)
    listings(server, told)
    open_cold(server, told, count)
    feeds(server, told, min(feeds_count, count))
    replications(server, told, min(replications_count, count))


def drop_all(server):
    """What the bench has made in a server that is not its own."""
    pipe = Pipe(server)
    names = [n for n in server.must("GET", "/_all_dbs") if n.startswith(NAME) or n == "all-users"]
    pipe.run((pipe.request("DELETE", f"/{n}") for n in names), CLIENTS, b"200")
    ids = [row for row in server.must("GET", "/_replicator/_all_docs")["rows"]
           if row["id"].startswith("from-")]
    server.must("POST", "/_replicator/_bulk_docs", {"docs": [
        {"_id": row["id"], "_rev": row["value"]["rev"], "_deleted": True} for row in ids]})


def table_rows(server, count):
    """What the table of run.py has of it: creating databases, and opening them cold."""
    told = Told(server.name)
    create(server, told, count)
    open_cold(server, told, count)
    return told.rows


def feeds_that_fit(wanted):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard // 8 * 5 - SPARE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("frond")
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--feeds", type=int, default=10000)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--couchdb")
    parser.add_argument("--peer-count", type=int, default=2000)
    a = parser.parse_args()
    found = {}
    wanted = feeds_that_fit(a.feeds)
    with tempfile.TemporaryDirectory(prefix="frond-databases-") as directory:
        server = Frond(a.frond, directory)
        server.start()
        try:
            told = Told("frond")
            found["frond"] = told.figures
            measure(server, told, a, a.count, wanted, a.replications)
        finally:
            server.stop()
    if a.couchdb:
        server = Couch(a.couchdb)
        server.start()
        told = Told(server.name)
        found[server.name] = told.figures
        try:
            measure(server, told, a, a.peer_count, a.peer_count, a.replications)
        finally:
            drop_all(server)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
