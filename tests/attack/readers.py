#!/usr/bin/env python3
"""Many clients that ask for long answers, and the memory that the server takes for them.

    readers.py FROND [--ask NAME] [--how none|slow|fast] [--connections N] [--seconds S]
               [--memory-bytes N] [--docs N] [--bound-mb N] [--then-reading N]

FROND is the binary. The program starts it on a store of its own, fills a database, opens N
connections that each send one request, and reads their answers not at all (`none`), a few kilobytes
a second (`slow`) or as fast as it can (`fast`). It prints the server's resident memory while that
goes on, and beside it what a well-behaved client waits for a document. It fails if more than
OTHERS_REFUSED_SHARE of that client's requests were refused, and with --bound-mb if the resident
memory was ever higher. With --then-reading N it then opens N connections more, which ask for all
documents and read the answers at once, and fails unless each of them gets all of it.
"""

import argparse
import http.client
import json
import os
import pathlib
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from server import CACHES

DB = "attacked"
ATT = "photo"
ATT_BYTES = 8 * 1024 * 1024
BODY_BYTES = 1000
OTHERS_REFUSED_SHARE = 0.02
BULK = 1000       # documents in one _bulk_docs
GET_IDS = 2000    # documents that a _bulk_get asks for
SLOW_BYTES = 4096 # a connection and second
OPENING = 500     # connections whose requests are sent before the next ones are made
ASKS = {
    "changes": f"GET /{DB}/_changes",
    "changes-docs": f"GET /{DB}/_changes?include_docs=true",
    "changes-atts": f"GET /{DB}/_changes?include_docs=true&attachments=true",
    "continuous": f"GET /{DB}/_changes?feed=continuous&include_docs=true",
    "longpoll": f"GET /{DB}/_changes?feed=longpoll&since=now&timeout=600000",
    "all-docs": f"GET /{DB}/_all_docs",
    "all-docs-docs": f"GET /{DB}/_all_docs?include_docs=true",
    "all-docs-keys": f"POST /{DB}/_all_docs?include_docs=true",
    "bulk-get": f"POST /{DB}/_bulk_get",
    "attachment": f"GET /{DB}/pictured/{ATT}",
    "db-updates": "GET /_db_updates?feed=continuous&since=0&timeout=600000",
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("frond")
    parser.add_argument("--ask", default="changes", choices=[*ASKS, "mixed"])
    parser.add_argument("--how", default="none", choices=["none", "slow", "fast"])
    parser.add_argument("--gzip", action="store_true", help="accept compressed answers")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--memory-bytes", type=int)
    parser.add_argument("--docs", type=int, default=20000)
    parser.add_argument("--bound-mb", type=float)
    parser.add_argument("--then-reading", type=int, default=0, metavar="N",
                        help="clients that come then, and read")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="a setting of the section [frond]")
    return parser.parse_args()


class Server:
    """The process under attack."""

    def __init__(self, options, directory):
        config = pathlib.Path(directory, "frond.ini")
        lines = ["[frond]", CACHES] + options.set
        if options.memory_bytes:
            lines.append(f"memory_bytes = {options.memory_bytes}")
        config.write_text("\n".join(lines) + "\n")
        self.process = subprocess.Popen(
            [options.frond, "serve", "--store", f"embedded:{directory}/store", "--http",
             "127.0.0.1:0", "--no-sync", "--config", str(config)],
            stdout=subprocess.PIPE, stderr=open(f"{directory}/log", "w"), text=True)
        self.log = pathlib.Path(directory, "log")
        line = self.process.stdout.readline()
        if " at http://" not in line:
            sys.exit(f"no server: {line}{self.log.read_text()}")
        self.port = int(line.split(" at http://127.0.0.1:")[1].split("/")[0].split()[0])

    def rss_mb(self):
        try:
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        except FileNotFoundError:
            status = ""
        for line in status.splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        sys.exit(f"the server has ended:\n{self.log.read_text()[-2000:]}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return -1


def call(client, method, path, body=None):
    client.request(method, path, body=body, headers={"Content-Type": "application/json"})
    answer = client.getresponse()
    text = answer.read()
    if answer.status not in (200, 201):
        sys.exit(f"{method} {path}: {answer.status} {text[:200]}")
    return text


def fill(server, docs):
    client = http.client.HTTPConnection("127.0.0.1", server.port)
    call(client, "PUT", f"/{DB}")
    for first in range(0, docs, BULK):
        rows = [{"_id": f"doc-{i:08}", "n": i, "text": f"{i:08} " * (BODY_BYTES // 9)}
                for i in range(first, min(first + BULK, docs))]
        call(client, "POST", f"/{DB}/_bulk_docs", json.dumps({"docs": rows}))
    call(client, "PUT", f"/{DB}/pictured/{ATT}", os.urandom(ATT_BYTES))
    client.close()


def request(ask, docs, gzip):
    method = ASKS[ask].split()[0]
    ids = [f"doc-{i:08}" for i in range(min(GET_IDS, docs))]
    body = b""
    if ask == "bulk-get":
        body = json.dumps({"docs": [{"id": name} for name in ids]}).encode()
    elif ask == "all-docs-keys":
        body = json.dumps({"keys": ids}).encode()
    head = f"{ASKS[ask]} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if gzip:
        head += "Accept-Encoding: gzip\r\n"
    if method == "POST":
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Readers:
    """The attacker's connections."""

    def __init__(self, server, options):
        self.server = server
        self.how = options.how
        self.select = selectors.EpollSelector()
        self.sockets = []
        self.bytes = 0
        self.ended = 0
        self.first = {}   # by status: connections
        names = list(ASKS) if options.ask == "mixed" else [options.ask]
        self.requests = [request(name, options.docs, options.gzip) for name in names]

    def open(self, count):
        for i in range(count):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096 if self.how != "fast" else 65536)
            s.bind((f"127.0.{1 + i // 250 % 250}.{1 + i % 250}", 0))
            s.settimeout(60)
            s.connect(("127.0.0.1", self.server.port))
            try:
                s.sendall(self.requests[i % len(self.requests)])
            except OSError:
                self.ended += 1
                s.close()
                continue
            s.setblocking(False)
            self.sockets.append(s)
            if self.how == "fast":
                self.select.register(s, selectors.EVENT_READ)

    def take(self, s, most):
        try:
            piece = s.recv(most)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if s not in self.first:
            self.first[s] = piece[9:12].decode("ascii", "replace") if piece else "reset"
        self.bytes += len(piece)
        if piece:
            return
        self.ended += 1
        if self.how == "fast":
            self.select.unregister(s)
        self.sockets.remove(s) if self.how != "fast" else None
        s.close()

    def go_on(self, seconds):
        """Reads for that time, in the way that was chosen."""
        end = time.monotonic() + seconds
        if self.how == "slow":
            for s in list(self.sockets):
                self.take(s, int(SLOW_BYTES * seconds))
        while (left := end - time.monotonic()) > 0:
            if self.how != "fast":
                time.sleep(left)
                continue
            for key, _ in self.select.select(left):
                self.take(key.fileobj, 65536)
                if time.monotonic() > end:
                    break

    def statuses(self):
        found = {}
        for status in self.first.values():
            found[status] = found.get(status, 0) + 1
        return found

    def close(self):
        for s in self.sockets:
            s.close()


class Whole(threading.Thread):
    """A client that reads a listing to its end."""

    def __init__(self, server, docs):
        super().__init__(daemon=True)
        self.server = server
        self.docs = docs
        self.wrong = "no answer"

    def run(self):
        client = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        try:
            client.request("GET", f"/{DB}/_all_docs")
            answer = client.getresponse()
            text = answer.read()
            if answer.status != 200:
                self.wrong = f"{answer.status} {text[:200]}"
            elif len(json.loads(text)["rows"]) != self.docs + 1:
                self.wrong = f"{len(text)} bytes"
            else:
                self.wrong = None
        except (OSError, ValueError, http.client.HTTPException) as e:
            self.wrong = repr(e)
        client.close()


def read_whole(server, options):
    """Clients that read get all of their answers: returns what went wrong, and the peak of memory."""
    begin = time.monotonic()
    clients = [Whole(server, options.docs) for _ in range(options.then_reading)]
    for client in clients:
        client.start()
    peak = 0
    while any(client.is_alive() for client in clients):
        peak = max(peak, server.rss_mb())
        time.sleep(0.05)
    wrong = [client.wrong for client in clients if client.wrong]
    if clients:
        print(f"then {len(clients)} read all documents in {time.monotonic() - begin:.1f} s; "
              f"{len(wrong)} did not get them {wrong[:1]}")
    return wrong, peak


class Other(threading.Thread):
    """A well-behaved client, and what it waited for each document."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.waits = []
        self.refused = 0
        self.over = False

    def run(self):
        client = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        while not self.over:
            begin = time.monotonic()
            try:
                client.request("GET", f"/{DB}/doc-{len(self.waits) % 1000:08}")
                answer = client.getresponse()
                answer.read()
                self.refused += answer.status != 200
            except (OSError, http.client.HTTPException):
                self.refused += 1
                client.close()
            self.waits.append(time.monotonic() - begin)
            time.sleep(0.02)

    def p99_ms(self):
        waits = sorted(self.waits)
        return waits[len(waits) * 99 // 100] * 1000 if waits else 0


def main():
    options = arguments()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="frond-readers-") as directory:
        server = Server(options, directory)
        fill(server, options.docs)
        time.sleep(1)  # what filling took is given back
        before = peak = server.rss_mb()
        other = Other(server)
        other.start()
        readers = Readers(server, options)
        begin = time.monotonic()
        for first in range(0, options.connections, OPENING):
            readers.open(min(OPENING, options.connections - first))
            readers.go_on(0.05)
            peak = max(peak, server.rss_mb())
        series = []
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            readers.go_on(0.5)
            series.append(server.rss_mb())
            peak = max(peak, series[-1])
        wrong, later = read_whole(server, options)
        peak = max(peak, later)
        other.over = True
        took = time.monotonic() - begin
        print(f"asked {options.ask}, {options.connections} connections, read {options.how}: "
              f"{took:.1f} s, {readers.bytes / 1e6:.0f} MB read, {readers.ended} ended, "
              f"first {readers.statuses()}")
        print(f"RSS {before:.0f} MB before, {peak:.0f} MB at most, {series[-1]:.0f} MB at the end: "
              f"{(peak - before) * 1024 / options.connections:.1f} KB a connection")
        print("RSS over time, MB: " + " ".join(f"{mb:.0f}" for mb in series[::2]))
        print(f"others: {len(other.waits)} documents, p99 {other.p99_ms():.0f} ms, "
              f"{other.refused} refused")
        readers.close()
        code = server.stop()
        refused = [line for line in server.log.read_text().splitlines() if "level=error" in line]
        print(f"stopped with {code}; {len(refused)} errors in the log {refused[:1]}")
    if other.refused > len(other.waits) * OTHERS_REFUSED_SHARE:
        sys.exit(f"not ok: {other.refused} of {len(other.waits)} short requests of a well-behaved "
                 "client were refused")
    if options.bound_mb and peak > options.bound_mb:
        sys.exit(f"not ok: more than {options.bound_mb:.0f} MB")
    if wrong:
        sys.exit(f"not ok: {len(wrong)} of those who read did not get their answers: {wrong[0]}")
    if code != 0:
        sys.exit("not ok: the server did not stop well")


if __name__ == "__main__":
    main()
