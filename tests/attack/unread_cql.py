"""Attacks on Cassandra's door, for unread.py: clients that ask for much by its protocol and read nothing."""

import socket
import struct

from sending import send_now

STARTUP, QUERY, REGISTER, BATCH = 1, 7, 0xb, 0xd
ERROR = 0
MB = 1024 * 1024
REPLICATION = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


def frame(opcode, body, announced=0):
    """A frame; if `announced` is not 0, the beginning of one of that length."""
    return struct.pack(">BBhBI", 4, 0, 1, opcode, announced or len(body)) + body


def string(text):
    return struct.pack(">H", len(text)) + text.encode()


STARTED = frame(STARTUP, struct.pack(">H", 1) + string("CQL_VERSION") + string("3.0.0"))


def query(text):
    return frame(QUERY, struct.pack(">I", len(text.encode())) + text.encode() + b"\0\1\0")


def batch(texts):
    """A message BATCH of statements as texts."""
    body = b"\1" + struct.pack(">H", len(texts))
    for text in texts:
        body += b"\0" + struct.pack(">I", len(text)) + text.encode() + b"\0\0"
    return frame(BATCH, body + b"\0\1\0")


class Refused(OSError):
    """An answer that is an error, with its text."""


class Client:
    """One that reads its answers."""

    def __init__(self, port, timeout=120):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.ask(STARTED)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def read(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise EOFError(data)
            data += more
        return data

    def ask(self, data):
        """The body of an answer that is no error."""
        self.socket.sendall(data)
        head = self.read(9)
        body = self.read(struct.unpack(">I", head[5:])[0])
        if head[4] == ERROR:
            raise Refused(body[6:].decode("utf-8", "replace"))
        return body

    def __call__(self, text):
        return self.ask(query(text))


class Attack:
    """Connections whose answers nobody reads."""

    times = 1  # that a client asks

    def prepare(self, server, size):
        with Client(server.cql_port) as c:
            c(f"CREATE KEYSPACE ks {REPLICATION}")
            c("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")
            for k in range(size["rows"]):
                c(f"INSERT INTO ks.t (k, v) VALUES ({k}, '{'x' * size['bytes']}')")

    def connect(self, server):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(60)
        s.connect(("127.0.0.1", server.cql_port))
        s.sendall(STARTED)
        return s

    def attack(self, server, size):
        clients = [self.connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(query(self.text) * self.times)
        return clients


class Many(Attack):
    """IN of 10,000 partitions."""

    name = "in_of_10000"
    full = {"clients": 300, "rows": 1000, "bytes": 5_000}
    bounded = {"clients": 40, "rows": 200, "bytes": 5_000}
    text = f"SELECT * FROM ks.t WHERE k IN ({', '.join(map(str, range(10_000)))})"
    times = 2


class Batches(Attack):
    """Batches of 10 MB, most of which never come to their end."""

    name = "batches_of_10_mb"
    full = {"clients": 200, "rows": 0, "bytes": 10 * MB}
    bounded = {"clients": 30, "rows": 0, "bytes": 10 * MB}

    def attack(self, server, size):
        value = "x" * 80_000
        count = size["bytes"] // len(value)
        whole = batch([f"INSERT INTO ks.t (k, v) VALUES ({k}, '{value}')" for k in range(count)])
        clients = [self.connect(server) for _ in range(size["clients"])]
        for n, s in enumerate(clients):
            s.settimeout(0.2)
            try:
                s.sendall(whole if n % 10 == 0 else whole[:len(whole) // 2])
            except OSError:
                pass  # it waits for its turn, or was ended
        return clients


class Writes(Attack):
    """Writes that are sent together, and whose answers are not read."""

    name = "writes_in_flight"
    full = {"clients": 300, "rows": 0, "bytes": 8_000}
    bounded = {"clients": 60, "rows": 0, "bytes": 8_000}

    def attack(self, server, size):
        data = query(f"INSERT INTO ks.t (k, v) VALUES (1, '{'x' * size['bytes']}')") * 100
        clients = [self.connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.settimeout(0.2)
            try:
                s.sendall(data)
            except OSError:
                pass
        return clients


class Listeners(Attack):
    """Clients that have registered for changes of the schema, and read none of them."""

    name = "events_that_nobody_reads"
    full = {"clients": 5000, "rows": 0, "changes": 2000}
    bounded = {"clients": 500, "rows": 0, "changes": 300}

    def attack(self, server, size):
        registered = frame(REGISTER, struct.pack(">H", 1) + string("SCHEMA_CHANGE"))
        clients = [self.connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.sendall(registered)
        with Client(server.cql_port) as c:
            for n in range(size["changes"]):
                c(f"ALTER TABLE ks.t WITH comment = '{n}'")
        return clients


class Filtering(Attack):
    """ALLOW FILTERING over everything, in one answer."""

    name = "filtering_over_everything"
    full = {"clients": 300, "rows": 3000, "bytes": 5_000}
    bounded = {"clients": 40, "rows": 500, "bytes": 5_000}
    text = "SELECT * FROM ks.t WHERE v > 'a' ALLOW FILTERING"
    times = 5


class Halves(Attack):
    """Frames whose ends do not come."""

    name = "halves_of_frames"
    full = {"clients": 4000, "rows": 0, "bytes": 200_000}
    bounded = {"clients": 500, "rows": 0, "bytes": 200_000}

    def attack(self, server, size):
        half = frame(QUERY, b"\0" * size["bytes"], 2 * size["bytes"])
        clients = [self.connect(server) for _ in range(size["clients"])]
        for s in clients:
            send_now(s, half)
        return clients


class Garbage(Attack):
    """Bytes that are no messages, in frames that are whole."""

    name = "garbage_in_frames"
    full = {"clients": 2000, "rows": 0, "bytes": 2_000}
    bounded = {"clients": 300, "rows": 0, "bytes": 2_000}

    def attack(self, server, size):
        some = bytes((n * 167 + 13) & 255 for n in range(size["bytes"]))
        data = b"".join(frame(code, some) for code in range(0x11)) * 4
        clients = [self.connect(server) for _ in range(size["clients"])]
        for s in clients:
            s.settimeout(0.2)
            try:
                s.sendall(data)
            except OSError:
                pass
        return clients


ATTACKS = [Many(), Batches(), Writes(), Listeners(), Filtering(), Halves(), Garbage()]
