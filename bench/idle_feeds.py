#!/usr/bin/env python3
"""Many quiet continuous feeds on one server: the memory they take, the processor time, and how long
one write needs to reach all of them.

    idle_feeds.py FROND [FEEDS [WRITES]]

FROND is the binary. The server gives five eighths of its file descriptors to connections, so 10,000
feeds want `ulimit -n 16384`; with fewer descriptors the run is as large as they allow, and says so.
"""

import http.client
import json
import os
import pathlib
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import time

FEEDS = 10000
WRITES = 5
SPARE = 100  # connections that are no feeds: the writer's, and those of a server that checks itself
HEARTBEAT_MS = 60000  # longer than a run: a beat is not what is measured
OPENING = 200  # feeds whose headers are awaited together
DEADLINE_S = 60  # of any wait
DB = "idle"
IDLE_S = 10  # of quiet, in which processor time is measured
TARGET_MB = 400
TARGET_S = 1.0


def start(frond, directory):
    process = subprocess.Popen(
        [frond, "serve", "--store", f"embedded:{directory}/store", "--http", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=open(f"{directory}/log", "w"), text=True)
    line = process.stdout.readline()
    if " at http://" not in line:
        sys.exit(f"no server: {line}{pathlib.Path(directory, 'log').read_text()}")
    return process, int(line.split(" at http://127.0.0.1:")[1].split("/")[0].split()[0])


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    sys.exit("no VmRSS")


def cpu_s(pid):
    """Of all threads since the process began."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def put(client, path):
    client.request("PUT", path, body="{}" if path.count("/") > 1 else None,
                   headers={"Content-Type": "application/json"})
    answer = client.getresponse()
    text = answer.read()
    if answer.status != 201:
        sys.exit(f"PUT {path}: {answer.status} {text}")
    return json.loads(text)


class Feeds:
    """Sockets that wait for rows."""

    def __init__(self, port):
        self.address = ("127.0.0.1", port)
        self.sockets = []
        self.select = selectors.EpollSelector()

    def open(self, count):
        """All of them, a few at a time; each has had its headers, and so waits or is about to."""
        request = (f"GET /{DB}/_changes?feed=continuous&since=now&heartbeat={HEARTBEAT_MS} "
                   "HTTP/1.1\r\nHost: localhost\r\n\r\n").encode()
        for first in range(0, count, OPENING):
            some = [socket.create_connection(self.address)
                    for _ in range(min(OPENING, count - first))]
            for s in some:
                s.sendall(request)
                s.settimeout(DEADLINE_S)
            for s in some:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = s.recv(4096)
                    if not piece:
                        sys.exit(f"a feed ended: {head}")
                    head += piece
                if not head.startswith(b"HTTP/1.1 200 "):
                    sys.exit(f"a feed was refused: {head}")
                s.setblocking(False)
                self.select.register(s, selectors.EVENT_READ)
            self.sockets += some

    def await_row(self, mark):
        """Until every feed has told of the document. Returns when the last one did."""
        missing = len(self.sockets)
        text = dict.fromkeys(self.sockets, b"")
        deadline = time.monotonic() + DEADLINE_S
        while missing:
            for key, _ in self.select.select(1):
                s = key.fileobj
                piece = s.recv(4096)
                if not piece:
                    sys.exit("a feed ended")
                had = mark in text[s]
                text[s] += piece
                missing -= not had and mark in text[s]
            if time.monotonic() > deadline:
                sys.exit(f"{missing} feeds were not told of {mark.decode()}")
        return time.monotonic()


def feeds_that_fit(wanted):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, hard // 8 * 5 - SPARE)


def measure(process, port, count, writes):
    writer = http.client.HTTPConnection("127.0.0.1", port)
    put(writer, f"/{DB}")
    before = rss_mb(process.pid)
    feeds = Feeds(port)
    begin = time.monotonic()
    feeds.open(count)
    took = time.monotonic() - begin
    time.sleep(1)  # what opening them took is given back
    idle = rss_mb(process.pid)
    print(f"{count} feeds opened in {took:.1f} s")
    print(f"RSS {before:.0f} MB before, {idle:.0f} MB with all feeds idle, "
          f"{(idle - before) * 1024 / count:.1f} KB each")
    busy = cpu_s(process.pid)
    time.sleep(IDLE_S)
    busy = (cpu_s(process.pid) - busy) / IDLE_S
    print(f"{busy * 100:.2f} % of a processor with all feeds idle, {busy * 1e6 / count:.2f} µs "
          "of it a second for each")
    reached = []
    for i in range(writes):
        begin = time.monotonic()
        put(writer, f"/{DB}/doc-{i}")
        written = time.monotonic()
        reached.append(feeds.await_row(f'"id":"doc-{i}"'.encode()) - begin)
        print(f"write {i + 1}: acknowledged after {(written - begin) * 1000:.0f} ms, "
              f"with every feed after {reached[-1] * 1000:.0f} ms")
    after = rss_mb(process.pid)
    print(f"RSS {after:.0f} MB after the writes")
    ok = max(idle, after) < TARGET_MB and max(reached) < TARGET_S
    print(f"targets ({TARGET_MB} MB, {TARGET_S:.0f} s): {'met' if ok else 'missed'}")
    return ok


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else FEEDS
    count = feeds_that_fit(wanted)
    if count < wanted:
        print(f"ulimit -n allows {count} feeds, not {wanted}")
    with tempfile.TemporaryDirectory(prefix="frond-idle-") as directory:
        process, port = start(sys.argv[1], directory)
        try:
            ok = measure(process, port, count, int(sys.argv[3]) if len(sys.argv) > 3 else WRITES)
        finally:
            process.kill()
            process.wait()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
