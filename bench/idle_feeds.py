#!/usr/bin/env python3
"""Many quiet continuous feeds: the memory they take, the processor time, and how long one write needs
to reach all that wait for it.

    idle_feeds.py FROND [FEEDS [WRITES]] [--databases N] [--processes N]

FROND is the binary. The feeds are divided among the databases, and those of a database among the
processes; more than one of these serve a FoundationDB cluster that is started for them. The server gives
five eighths of its file descriptors to connections, so 10,000 feeds of one process want `ulimit -n 16384`;
with fewer descriptors the run is as large as they allow, and says so.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import resource
import selectors
import socket
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests"))
import foundationdb  # noqa: E402  the tests' clusters
import sides  # noqa: E402

FEEDS = 10000
WRITES = 5
SPARE = 100  # connections that are no feeds: the writer's, and those of a server that checks itself
HEARTBEAT_MS = 60000  # longer than a run: a beat is not what is measured
OPENING = 200  # feeds whose headers are awaited together
DEADLINE_S = 60  # of any wait
IDLE_S = 10  # of quiet, in which processor time is measured
TARGET_MB = 400
TARGET_S = 1.0


class Frond(sides.Frond):
    """A process, and a connection to it."""

    def start(self):
        super().start()
        self.client = http.client.HTTPConnection("127.0.0.1", self.port)


def rss_mb(fronds):
    return sum(frond.memory_mb("VmRSS") for frond in fronds)


def cpu_s(fronds):
    return sum(frond.cpu_ticks() for frond in fronds) / os.sysconf("SC_CLK_TCK")


def put(client, path):
    client.request("PUT", path, body="{}" if path.count("/") > 1 else None,
                   headers={"Content-Type": "application/json"})
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 201:
        sys.exit(f"PUT {path}: {answer.status} {text}")
    return json.loads(text)


class Feeds:
    """Sockets that wait for rows, by database."""

    def __init__(self):
        self.sockets = {}

    def open(self, places):
        """One for each (database, port), a few at a time; each has had its headers, and so waits or is about to."""
        for first in range(0, len(places), OPENING):
            some = [(db, socket.create_connection(("127.0.0.1", port)))
                    for db, port in places[first:first + OPENING]]
            for db, s in some:
                s.sendall(f"GET /{db}/_changes?feed=continuous&since=now&heartbeat={HEARTBEAT_MS} "
                          "HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                s.settimeout(DEADLINE_S)
            for db, s in some:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = s.recv(4096)
                    if not piece:
                        sys.exit(f"a feed ended: {head}")
                    head += piece
                if not head.startswith(b"HTTP/1.1 200 "):
                    sys.exit(f"a feed was refused: {head}")
                s.setblocking(False)
                self.sockets.setdefault(db, []).append(s)

    def await_row(self, db, mark):
        """Until every feed of the database has told of the document. Returns when each of them did."""
        told = []
        text = dict.fromkeys(self.sockets[db], b"")
        deadline = time.monotonic() + DEADLINE_S
        with selectors.EpollSelector() as select:
            for s in text:
                select.register(s, selectors.EVENT_READ)
            while len(told) < len(text):
                for key, _ in select.select(1):
                    s = key.fileobj
                    piece = s.recv(4096)
                    if not piece:
                        sys.exit("a feed ended")
                    had = mark in text[s]
                    text[s] += piece
                    if not had and mark in text[s]:
                        told.append(time.monotonic())
                if time.monotonic() > deadline:
                    sys.exit(f"{len(text) - len(told)} feeds were not told of {mark.decode()}")
        return told


def feeds_that_fit(wanted, processes):
    """A process gives them five eighths of its descriptors; here each takes one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, processes * (hard // 8 * 5 - SPARE), hard - SPARE)


def measure(fronds, count, databases, writes):
    names = [f"idle{i}" for i in range(databases)]
    for i, name in enumerate(names):
        put(fronds[i % len(fronds)].client, f"/{name}")
    before = rss_mb(fronds)
    feeds = Feeds()
    begin = time.monotonic()
    feeds.open([(names[i % databases], fronds[i // databases % len(fronds)].port) for i in range(count)])
    took = time.monotonic() - begin
    time.sleep(1)  # what opening them took is given back
    idle = rss_mb(fronds)
    print(f"{count} feeds of {databases} databases at {len(fronds)} processes opened in {took:.1f} s")
    print(f"RSS {before:.0f} MB before, {idle:.0f} MB with all feeds idle, "
          f"{(idle - before) * 1024 / count:.1f} KB each")
    busy = cpu_s(fronds)
    time.sleep(IDLE_S)
    busy = (cpu_s(fronds) - busy) / IDLE_S
    print(f"{busy * 100:.2f} % of a processor with all feeds idle, {busy * 1e6 / count:.2f} µs "
          "of it a second for each")
    reached = []
    for i in range(writes):
        name = names[i * 7919 % databases]
        begin = time.monotonic()
        put(fronds[i % len(fronds)].client, f"/{name}/doc-{i}")
        written = time.monotonic()
        told = sorted(feeds.await_row(name, f'"id":"doc-{i}"'.encode()))
        reached.append(told[-1] - begin)
        print(f"write {i + 1}: acknowledged after {(written - begin) * 1000:.1f} ms; of {len(told)} feeds half "
              f"{(told[len(told) // 2] - written) * 1000:.1f} ms and all {(told[-1] - written) * 1000:.1f} ms later")
    after = rss_mb(fronds)
    print(f"RSS {after:.0f} MB after the writes")
    ok = max(idle, after) < TARGET_MB * len(fronds) and max(reached) < TARGET_S
    print(f"targets ({TARGET_MB} MB a process, {TARGET_S:.0f} s): {'met' if ok else 'missed'}")
    return ok


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("frond")
    parser.add_argument("feeds", nargs="?", type=int, default=FEEDS)
    parser.add_argument("writes", nargs="?", type=int, default=WRITES)
    parser.add_argument("--databases", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    return parser.parse_args()


@contextlib.contextmanager
def started(options, directory):
    """The processes, and the cluster that they share."""
    with contextlib.ExitStack() as stack:
        store = f"embedded:{directory}/store"
        if options.processes > 1:
            programs = foundationdb.installed()
            if programs.missing:
                sys.exit(f"FoundationDB's programs are not installed: {', '.join(programs.missing)}")
            os.environ.setdefault("FROND_LIBFDB_C", str(programs.library))
            store = stack.enter_context(foundationdb.Cluster(programs, directory / "cluster")).url
        fronds = []
        for n in range(options.processes):
            fronds.append(Frond(options.frond, directory / f"frond-{n}", store))
            stack.callback(fronds[-1].stop)
            fronds[-1].start()
        yield fronds


def main():
    options = arguments()
    count = feeds_that_fit(options.feeds, options.processes)
    if count < options.feeds:
        print(f"ulimit -n allows {count} feeds, not {options.feeds}")
    with tempfile.TemporaryDirectory(prefix="frond-idle-") as directory, \
            started(options, pathlib.Path(directory)) as fronds:
        ok = measure(fronds, count, options.databases, options.writes)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
