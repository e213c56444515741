#!/usr/bin/env python3
"""Clients of all doors with connections of their own that ask for much and read nothing, and the memory they take.

    unread.py FROND [--only NAME] [--bounded] [--memory-bytes N]

FROND is the binary. For each attack the program starts it on a store of its own, attacks it, and
prints the resident memory before and at most, and what well-behaved clients of the HTTP API, of
Redis's, of MongoDB's, of Cassandra's protocol and of the one for rows met meanwhile, and before at rest. An attack fails if the resident
memory grew by more than `memory_bytes` and a quarter of it, if a well-behaved client was refused, if the server still
works for clients that have left, or if it did not end with code 0 in `drain_timeout_ms` and two seconds at a SIGTERM
in the middle of the attack. Waiting times are printed, and decide nothing: machines differ.
"""

import argparse
import os
import pathlib
import re
import resource
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import ending

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import mongo  # noqa: E402  a client of MongoDB's protocol
import unread_cql  # noqa: E402  attacks by Cassandra's protocol
import unread_rows  # noqa: E402  attacks by the protocol for rows
from sending import send_now  # noqa: E402
from server import CACHES  # noqa: E402
from resp import Client, Error, encode  # noqa: E402  a client of Redis's protocol

MB = 1024 * 1024
SMALL_BYTES = 1000
DRAIN_SECONDS = 3
END_SECONDS = 2    # beyond those, for the process to have ended
SAMPLE_SECONDS = 0.05
IDLE_SECONDS = 20  # of processors, after which nothing is done any more for clients that have left
HANG_SECONDS = 600  # only ends what hangs
# More than a quarter of little memory: what malloc keeps free goes back by the clock, which a busy machine has late.
BOUNDED_BYTES = 16 * MB


class Server:
    """The process under attack, with all doors."""

    def __init__(self, binary, directory, memory_bytes):
        config = pathlib.Path(directory, "frond.ini")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=localhost", "-keyout", f"{directory}/key", "-out", f"{directory}/cert"],
                       check=True, capture_output=True)
        config.write_text(f"[frond]\nmemory_bytes = {memory_bytes}\n{CACHES}"
                          f"drain_timeout_ms = {DRAIN_SECONDS * 1000}\n"
                          f"[ssl]\ncert_file = {directory}/cert\nkey_file = {directory}/key\n")
        self.memory_bytes = memory_bytes
        self.log = pathlib.Path(directory, "log")
        self.process = subprocess.Popen(
            [binary, "serve", "--store", f"embedded:{directory}/store", "--http", "127.0.0.1:0",
             "--https", "127.0.0.1:0", "--redis", "127.0.0.1:0", "--mongo", "127.0.0.1:0", "--cql", "127.0.0.1:0", "--rows", "127.0.0.1:0",
             "--no-sync", "--config", str(config)],
            stdout=subprocess.PIPE, stderr=open(self.log, "w"), text=True)
        line = self.process.stdout.readline()
        if " at http://" not in line:
            sys.exit(f"no server: {line}{self.log.read_text()}")
        self.http = re.search(r"http://127\.0\.0\.1:(\d+)", line).group(1)
        self.https = int(re.search(r"https://127\.0\.0\.1:(\d+)", self.process.stdout.readline()).group(1))
        ports = dict(re.findall(r"event=(\w+) address=127\.0\.0\.1:(\d+)", self.log.read_text()))
        self.port, self.mongo_port = int(ports["redis"]), int(ports["mongo"])
        self.cql_port, self.rows_port = int(ports["cql"]), int(ports["rows"])

    def resident(self):
        """0 once it has ended."""
        try:
            fields = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()
        except OSError:
            return 0
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def is_up(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/_up", timeout=60) as answer:
            return answer.status == 200

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def becomes_idle(self):
        """True once it has nothing to do for anybody."""
        begun, deadline = self.cpu_seconds(), time.monotonic() + HANG_SECONDS
        before = begun
        while before - begun < IDLE_SECONDS and time.monotonic() < deadline:
            time.sleep(1)
            now = self.cpu_seconds()
            if now - before <= 0.1:
                return True
            before = now
        return False


class Peak(threading.Thread):
    """The most resident memory from its start on: also while clients leave, and while the server ends."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.bytes = server.resident()
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(SAMPLE_SECONDS):
            self.bytes = max(self.bytes, self.server.resident())

    def end(self):
        self.over.set()
        self.join()
        return self.bytes


class Others(threading.Thread):
    """Well-behaved clients: one of each protocol, one request after the other."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.waits = {"GET /_up": [], "GET": [], "find": [], "SELECT": [], "SCAN": []}
        self.refused = []
        self.over = False

    def count(self, name, ask):
        begin = time.monotonic()
        try:
            if not ask():
                self.refused.append(f"{name}: a wrong answer")
        except urllib.error.HTTPError as e:
            self.refused.append(f"{name}: {e.code} {e.read()[:200]}")
        except (OSError, EOFError, Error, mongo.Failure) as e:
            self.refused.append(f"{name}: {e!r}")
        self.waits[name].append(time.monotonic() - begin)

    def p99(self):
        """By kind of request, in seconds; 0 where there was none."""
        return {name: sorted(waits)[len(waits) * 99 // 100] if waits else 0.0 for name, waits in self.waits.items()}

    def end(self):
        self.over = True
        self.join(120)

    def get(self):
        with Client(self.server.port, timeout=60) as c:
            return c("GET", "small") == b"s" * SMALL_BYTES

    def find(self):
        with mongo.Client(self.server.mongo_port, timeout=60) as c:
            answer = c({"find": "small", "filter": {"_id": 1}}, "db")["cursor"]
            return answer["firstBatch"] == [{"_id": 1, "text": "s" * SMALL_BYTES}]

    def select(self):
        with unread_cql.Client(self.server.cql_port, timeout=60) as c:
            return b"s" * SMALL_BYTES in c("SELECT v FROM small.t WHERE k = 1")

    def scan(self):
        with unread_rows.Client(self.server.rows_port, timeout=60) as c:
            return b"s" * SMALL_BYTES in c.ask(unread_rows.scan("small_rows", self.server.rows_column))

    def run(self):
        while not self.over:
            self.count("GET /_up", self.server.is_up)
            self.count("GET", self.get)
            self.count("find", self.find)
            self.count("SELECT", self.select)
            self.count("SCAN", self.scan)
            time.sleep(0.02)


def connect(server, receive_bytes=4096, port=None):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    s.settimeout(60)
    s.connect(("127.0.0.1", port or server.port))
    return s


def encode_mongo(command, announced=0):
    """A message; if `announced` is not 0, the beginning of one of that length."""
    data = struct.pack("<I", 0) + b"\0" + mongo.encode({**command, "$db": "db"})
    return struct.pack("<iiii", announced or 16 + len(data), 1, 0, mongo.OP_MSG) + data


class Pipelines:
    """Pipelines of long answers, of which nothing is read."""

    name = "pipelines"
    full = {"clients": 200, "commands": 20, "bytes": MB}
    bounded = {"clients": 60, "commands": 20, "bytes": MB}

    def prepare(self, server, size):
        with Client(server.port) as c:
            c("SET", "long", b"x" * size["bytes"])

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(encode(("GET", "long")) * size["commands"])
        return clients


class Mixed(Pipelines):
    """The same behind a write, so that they are run in groups with those of others."""

    name = "pipelines_that_write"

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        for i, s in enumerate(clients):
            s.sendall(encode(("SET", f"key{i}", "1")) + encode(("GET", "long")) * size["commands"])
        return clients


class Alone(Pipelines):
    """Commands that need no transaction, with long answers."""

    name = "commands_without_transactions"
    full = {"clients": 100, "commands": 400}
    bounded = {"clients": 30, "commands": 400}

    def prepare(self, server, size):
        pass

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(encode(("COMMAND",)) * size["commands"])
        return clients


class Subscribers:
    """Many subscribers that read none of a few long messages."""

    name = "subscribers"
    full = {"clients": 5000, "messages": 4, "bytes": 100 * 1024}
    bounded = {"clients": 800, "messages": 4, "bytes": 100 * 1024}

    def prepare(self, server, size):
        pass

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(encode(("SUBSCRIBE", "news")))
        for s in clients:
            s.recv(100)
        with Client(server.port, timeout=120) as c:
            for _ in range(size["messages"]):
                try:
                    c("PUBLISH", "news", b"m" * size["bytes"])
                except Error as refusal:  # the subscribers have all the memory that there is for them
                    assert "memory_bytes" in str(refusal), refusal
                    break
        return clients


class References(Subscribers):
    """Very many messages that are held once: it is the lists of them that take memory."""

    name = "subscribers_of_short_messages"
    full = {"clients": 2000, "messages": 20000, "bytes": 1}
    bounded = {"clients": 500, "messages": 10000, "bytes": 1}

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(encode(("SUBSCRIBE", "news")))
        for s in clients:
            s.recv(100)
        with Client(server.port, timeout=120) as c:
            for _ in range(size["messages"] // 1000):
                c.pipeline(*[("PUBLISH", "news", b"m")] * 1000)
        return clients


class Channels(Subscribers):
    """Each subscriber with a channel and messages of its own: nothing is held in common."""

    name = "subscribers_of_different_channels"
    full = {"clients": 1000, "messages": 8, "bytes": 256 * 1024}
    bounded = {"clients": 200, "messages": 8, "bytes": 256 * 1024}

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        for i, s in enumerate(clients):
            s.sendall(encode(("SUBSCRIBE", f"news{i}")))
        for s in clients:
            s.recv(100)
        with Client(server.port, timeout=120) as c:
            for _ in range(size["messages"]):
                for i in range(len(clients)):
                    c("PUBLISH", f"news{i}", b"m" * size["bytes"])
        return clients


class Members:
    """Answers that are one long list; the clients leave at once."""

    name = "members_of_clients_that_leave"
    full = {"clients": 300, "members": 300000}
    bounded = {"clients": 60, "members": 50000}
    leaves = True

    def prepare(self, server, size):
        with Client(server.port, timeout=120) as c:
            for first in range(0, size["members"], 10000):
                c("SADD", "set", *(f"member{i:010}" for i in range(first, first + 10000)))

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(encode(("SMEMBERS", "set")))
        if not self.leaves:
            return clients
        for s in clients:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        return []


class UnreadMembers(Members):
    """The same lists of clients that stay, and read nothing."""

    name = "members_that_nobody_reads"
    leaves = False


class Halves:
    """Requests whose ends do not come."""

    name = "halves_of_requests"
    full = {"clients": 4000, "bytes": 200 * 1024}
    bounded = {"clients": 500, "bytes": 200 * 1024}

    def prepare(self, server, size):
        pass

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        text = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n" + b"v" * size["bytes"]
        for s in clients:
            send_now(s, text)
        return clients


class Bodies(Halves):
    """Requests of the HTTP API whose bodies stop half-way: half of them where nobody may read the body."""

    name = "halves_of_bodies"

    def attack(self, server, size):
        clients = [connect(server, port=int(server.http)) for _ in range(size["clients"])]
        for i, s in enumerate(clients):
            head = (f"PUT /small/doc{i} HTTP/1.1\r\nHost: {'127.0.0.1' if i % 2 else 'elsewhere'}\r\n"
                    "Content-Type: application/json\r\nContent-Length: 300000\r\n\r\n")
            send_now(s, head.encode() + b'{"a": "' + b"v" * size["bytes"])
        return clients


class Heads(Halves):
    """The same of heads."""

    name = "halves_of_heads"
    full = {"clients": 4000, "bytes": 60 * 1024}
    bounded = {"clients": 500, "bytes": 60 * 1024}

    def attack(self, server, size):
        clients = [connect(server, port=int(server.http)) for _ in range(size["clients"])]
        for s in clients:
            send_now(s, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"v" * size["bytes"])
        return clients


class Handshakes(Halves):
    """Clients that have asked for TLS, and say nothing to the answer; others stop before they have asked."""

    name = "halves_of_handshakes"
    full = {"clients": 4000}
    bounded = {"clients": 500}

    def attack(self, server, size):
        out = ssl.MemoryBIO()
        try:
            ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = out.read()
        clients = [connect(server, port=server.https) for _ in range(size["clients"])]
        for i, s in enumerate(clients):
            send_now(s, hello if i % 2 else hello[:-1])
        return clients


class Records(Halves):
    """Clients whose handshake is complete, and who send half of a record."""

    name = "halves_of_records"
    full = {"clients": 3000}
    bounded = {"clients": 400}

    def attack(self, server, size):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        clients = []
        for _ in range(size["clients"]):
            s = connect(server, port=server.https)
            try:
                clients.append(context.wrap_socket(s))
            except OSError:
                clients.append(s)
        for s in clients:
            # Written below TLS. It could not be decrypted, but as its end does not come, nobody tries.
            s.setblocking(False)
            try:
                os.write(s.fileno(), b"\x17\x03\x03\x40\x11" + b"v" * 16000)
            except OSError:
                pass
        return clients


class Queued:
    """Commands that wait for an EXEC that does not come."""

    name = "commands_of_multi"
    full = {"clients": 300, "commands": 60, "bytes": 100 * 1024}
    bounded = {"clients": 50, "commands": 60, "bytes": 100 * 1024}

    def prepare(self, server, size):
        pass

    def attack(self, server, size):
        clients = [connect(server) for _ in range(size["clients"])]
        one = encode(("SET", "k", b"v" * size["bytes"]))
        for s in clients:
            try:
                s.sendall(encode(("MULTI",)))
                for _ in range(size["commands"]):
                    s.sendall(one)
            except OSError:
                pass
        return clients


class MongoHalves:
    """Messages of MongoDB's protocol whose ends do not come."""

    name = "halves_of_messages"
    full = {"clients": 1000, "bytes": 2 * MB}
    bounded = {"clients": 200, "bytes": 2 * MB}

    def prepare(self, server, size):
        pass

    def attack(self, server, size):
        clients = [connect(server, port=server.mongo_port) for _ in range(size["clients"])]
        half = encode_mongo({"insert": "c", "documents": [{"text": "x" * (size["bytes"] // 2)}]}, size["bytes"])
        for s in clients:
            send_now(s, half)
        return clients


class MongoAnswers:
    """Long answers of finds, of which nothing is read."""

    name = "answers_of_finds"
    full = {"clients": 1000, "documents": 64, "bytes": MB}
    bounded = {"clients": 150, "documents": 32, "bytes": MB}
    command = {"find": "c", "batchSize": 1000}

    def prepare(self, server, size):
        with mongo.Client(server.mongo_port) as c:
            for i in range(size["documents"]):
                c({"insert": "c", "documents": [{"_id": i, "text": "x" * size["bytes"]}]}, "db")
            for i in range(size["documents"]):
                c({"find": "c", "filter": {"_id": i}, "singleBatch": True}, "db")

    def attack(self, server, size):
        clients = [connect(server, port=server.mongo_port) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(encode_mongo(self.command))
        return clients


class MongoMore(MongoAnswers):
    """The same of getMore, each client with a cursor of its own."""

    name = "answers_of_getmore"

    def attack(self, server, size):
        clients = []
        for _ in range(size["clients"]):
            c = mongo.Client(server.mongo_port)
            try:
                number = c({"find": "c", "batchSize": 0}, "db")["cursor"]["id"]
                c.socket.sendall(encode_mongo({"getMore": mongo.Int64(number), "collection": "c"}))
            except (OSError, EOFError, mongo.Failure):
                pass
            clients.append(c)
        return clients


class MongoCursors(MongoAnswers):
    """Cursors with documents that all of them sort at once, and for which nobody asks."""

    name = "cursors_that_are_idle"
    full = {"clients": 300, "documents": 40, "bytes": 100 * 1000}
    bounded = {"clients": 60, "documents": 20, "bytes": 100 * 1000}

    def attack(self, server, size):
        clients = [connect(server, port=server.mongo_port) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(encode_mongo({"find": "c", "sort": {"text": 1}, "batchSize": 0}))
        return clients


ATTACKS = [Pipelines(), Mixed(), Alone(), Subscribers(), References(), Channels(), Members(), UnreadMembers(),
           Halves(), Bodies(), Heads(), Handshakes(), Records(), Queued(), MongoHalves(), MongoAnswers(), MongoMore(),
           MongoCursors(), *unread_cql.ATTACKS, *unread_rows.ATTACKS]


def close_all(sockets):
    for s in sockets:
        s.close()


def run(attack, options):
    size = attack.bounded if options.bounded else attack.full
    with tempfile.TemporaryDirectory(prefix="frond-unread-") as directory:
        server = Server(options.frond, directory, options.memory_bytes)
        with Client(server.port) as c:
            c("SET", "small", b"s" * SMALL_BYTES)
        with mongo.Client(server.mongo_port) as c:
            c({"insert": "small", "documents": [{"_id": 1, "text": "s" * SMALL_BYTES}]}, "db")
        with unread_cql.Client(server.cql_port) as c:
            c(f"CREATE KEYSPACE small {unread_cql.REPLICATION}")
            c("CREATE TABLE small.t (k int PRIMARY KEY, v text)")
            c(f"INSERT INTO small.t (k, v) VALUES (1, '{'s' * SMALL_BYTES}')")
        with unread_rows.Client(server.rows_port) as c:
            server.rows_column = c.make("small_rows")
            c.ask(unread_rows.write("small_rows", server.rows_column, [(1, b"s" * SMALL_BYTES)]))
        attack.prepare(server, size)
        time.sleep(1)  # what that took is given back
        rest = Others(server)
        if not options.bounded:
            rest.start()
            time.sleep(options.seconds)
            rest.end()
        before = server.resident()
        peak = Peak(server)
        others = Others(server)
        peak.start()
        others.start()
        sockets = attack.attack(server, size)
        time.sleep(options.seconds)
        close_all(sockets)
        others.end()
        idle = server.becomes_idle()
        sockets = attack.attack(server, size)
        end = ending.end(server.process, 60)
        close_all(sockets)
        grown = peak.end() - before
        log = server.log.read_text().splitlines()
        # Also where the machine is to blame for the time: who was left tells what did not see the end.
        told = [one for one in log if re.search(r" event=(server_gave_up|stop_\w+) ", one)] * (end.code != 0)
    bound = options.memory_bytes + options.memory_bytes // 4 + BOUNDED_BYTES * options.bounded
    slowest = ", ".join(f"{name} {max(waits, default=0):.2f} s"
                        for name, waits in others.waits.items())
    quiet = rest.p99()
    ratios = ", ".join(f"{name} {wait * 1000:.0f} of {quiet[name] * 1000:.0f} ms"
                       for name, wait in others.p99().items() if quiet[name])
    failures = [f"{grown // MB} MiB more than at rest"] * (grown > bound)
    failures += [f"{len(others.refused)} of others were refused: {others.refused[:1]}"] \
        * bool(others.refused)
    failures += ["it still works for clients that have left"] * (not idle)
    failures += end.faults(DRAIN_SECONDS + END_SECONDS)
    print(f"{'not ok' if failures else 'ok'} - {attack.name}: {before // MB} MiB at rest, "
          f"{grown // MB} MiB more at most of {bound // MB}; {end}; the slowest of others: {slowest}"
          + f"; their 99th percentile, of that at rest: {ratios}" * bool(ratios)
          + "".join(f"\n# {one}" for one in failures + told), flush=True)
    return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("frond")
    parser.add_argument("--only", choices=[one.name for one in ATTACKS])
    parser.add_argument("--bounded", action="store_true", help="smaller attacks")
    parser.add_argument("--memory-bytes", type=int, default=128 * MB)
    parser.add_argument("--seconds", type=float, default=5, help="how long nothing is read")
    options = parser.parse_args()
    if options.bounded:
        options.memory_bytes = 32 * MB
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("TAP version 13")
    attacks = [one for one in ATTACKS if options.only in (None, one.name)]
    fine = [run(one, options) for one in attacks]
    print(f"1..{len(attacks)}")
    sys.exit(not all(fine))


if __name__ == "__main__":
    main()
