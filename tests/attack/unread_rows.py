"""Attacks by the protocol for rows, for unread.py: scans that nobody reads, writes, transactions that stay open."""

import socket
import struct

from sending import send_now

MB = 1024 * 1024
HELLO, PING, BEGIN, ROLLBACK, SAVEPOINT, SCHEMA_CREATE, TABLE_CREATE, SCAN, WRITE = 1, 3, 4, 6, 7, 11, 15, 19, 21
DONE = 128
MAGIC = 0x46524f57
INT4, TEXT = 3, 8
RANGE, REGULAR = 2, 4
PUT = 4
V = 2  # the id of the column v


def text(value):
    return struct.pack(">H", len(value)) + value.encode()


def value(data):
    return struct.pack(">i", len(data)) + data


def frame(code, body=b"", announced=0):
    """A request; if `announced` is not 0, the beginning of one of that length."""
    return struct.pack(">IBBH", announced or len(body), code, 0, 1) + body


GREETING = frame(HELLO, struct.pack(">IHH", MAGIC, 1, 2))


def table(schema):
    return text(schema) + text("t") + bytes(16)


def write(schema, column, rows):
    """A request WRITE of rows: numbers, each with the bytes of v."""
    body = table(schema) + b"\0" + struct.pack(">HII", 1, column, len(rows))
    for key, data in rows:
        body += struct.pack(">BB", PUT, 1) + value(struct.pack(">i", key)) + value(data)
    return frame(WRITE, body)


def scan(schema, column, page_bytes=MB, conditions=b"\0\0"):
    """A request SCAN of all rows, from the beginning."""
    return frame(SCAN, table(schema) + b"\0" + struct.pack(">HI", 1, column) + bytes(5) + conditions +
                 struct.pack(">III", 0, page_bytes, 0) + bytes(4))


class Refused(OSError):
    """An answer that is an error: its SQLSTATE and text."""


class Client:
    """One that reads its answers."""

    def __init__(self, port, timeout=120):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.ask(GREETING)

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

    def answer(self):
        """The body of an answer that is no error."""
        length, code, _, _ = struct.unpack(">IBBH", self.read(8))
        body = self.read(length)
        if code != DONE:
            raise Refused(body[:5] + b" " + body[11:])
        return body

    def ask(self, data):
        self.socket.sendall(data)
        return self.answer()

    def make(self, schema):
        """A table t with an int4 as its key and a text v, in a schema of its own. Returns the id of v."""
        self.ask(frame(SCHEMA_CREATE, text(schema)))
        columns = text("k") + bytes([INT4, RANGE, 0]) + text("v") + bytes([TEXT, REGULAR, 0])
        self.ask(frame(TABLE_CREATE, text(schema) + text("t") + struct.pack(">H", 2) + columns))
        told = self.ask(frame(14, text(schema) + text("t")))[18:]
        for _ in range(2):
            number, length = struct.unpack(">IH", told[:6])
            name, told = told[6:6 + length], told[6 + length + 3:]
            told = told[2 + struct.unpack(">H", told[:2])[0]:]
            if name == b"v":
                return number
        raise AssertionError(told)


class Attack:
    """Connections whose answers nobody reads."""

    def prepare(self, server, size):
        with Client(server.rows_port) as c:
            self.column = c.make("s")
            step = max(1, MB // max(size["bytes"], 1))
            for first in range(0, size["rows"], step):
                c.ask(write("s", self.column, [(k, b"x" * size["bytes"])
                                               for k in range(first, min(size["rows"], first + step))]))

    def connect(self, server):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(60)
        s.connect(("127.0.0.1", server.rows_port))
        s.sendall(GREETING)
        return s

    def send(self, s, data):
        """What the server does not take in time stays with the client."""
        s.settimeout(0.2)
        try:
            s.sendall(data)
        except OSError:
            pass  # it waits for its turn, or was ended

    def attack(self, server, size):
        clients = [self.connect(server) for _ in range(size["clients"])]
        for s in clients:
            self.send(s, self.data(size))
        return clients


class Scans(Attack):
    """Scans of everything in the largest pages."""

    name = "scans_of_rows_that_nobody_reads"
    full = {"clients": 400, "rows": 4000, "bytes": 10_000}
    bounded = {"clients": 60, "rows": 1000, "bytes": 10_000}

    def data(self, size):
        return scan("s", self.column, 8 * MB) * 20


class ScansInTransactions(Scans):
    """The same, each client in a transaction of its own."""

    name = "scans_of_rows_in_transactions"

    def data(self, size):
        return frame(BEGIN, b"\1") + super().data(size)


class Batches(Attack):
    """Writes of 10 MB, most of which never come to their end."""

    name = "batches_of_rows_of_10_mb"
    full = {"clients": 200, "rows": 0, "bytes": 80_000}
    bounded = {"clients": 30, "rows": 0, "bytes": 80_000}

    def attack(self, server, size):
        whole = write("s", self.column, [(k, b"x" * size["bytes"]) for k in range(10 * MB // size["bytes"] - 8)])
        clients = [self.connect(server) for _ in range(size["clients"])]
        for n, s in enumerate(clients):
            self.send(s, whole if n % 10 == 0 else whole[:len(whole) // 2])
        return clients


class Transactions(Attack):
    """Transactions that have read and written a little, and stay open."""

    name = "transactions_that_stay_open"
    full = {"clients": 5000, "rows": 100, "bytes": 1000}
    bounded = {"clients": 800, "rows": 100, "bytes": 1000}

    def data(self, size):
        return frame(BEGIN, b"\0") + scan("s", self.column, 1000) + write("s", self.column, [(1, b"y" * 1000)])


class Staged(Attack):
    """Transactions that have written much, and stay open."""

    name = "transactions_with_much_staged"
    full = {"clients": 300, "rows": 0, "bytes": 80_000}
    bounded = {"clients": 60, "rows": 0, "bytes": 80_000}

    def data(self, size):
        return frame(BEGIN, b"\0") + b"".join(
            write("s", self.column, [(k, b"y" * size["bytes"])]) for k in range(100))


class Savepoints(Attack):
    """Savepoints without end, each with a row that it would bring back."""

    name = "savepoints_without_end"
    full = {"clients": 1000, "rows": 50, "bytes": 80_000}
    bounded = {"clients": 150, "rows": 50, "bytes": 80_000}

    def data(self, size):
        return frame(BEGIN, b"\0") + b"".join(
            frame(SAVEPOINT) * 40 + write("s", self.column, [(k % size["rows"], b"z")]) for k in range(60))


class Halves(Attack):
    """Requests whose ends do not come."""

    name = "halves_of_requests_for_rows"
    full = {"clients": 4000, "rows": 0, "bytes": 200_000}
    bounded = {"clients": 500, "rows": 0, "bytes": 200_000}

    def data(self, size):
        return frame(WRITE, table("s") + bytes(size["bytes"]), 2 * size["bytes"])

    def send(self, s, data):
        send_now(s, data)


class Garbage(Attack):
    """Bytes that are no requests, behind a greeting that is one."""

    name = "garbage_for_rows"
    full = {"clients": 2000, "rows": 0, "bytes": 60_000}
    bounded = {"clients": 300, "rows": 0, "bytes": 60_000}

    def data(self, size):
        some = bytes((n * 167 + 13) & 255 for n in range(60))
        return b"".join(frame(code, some * (size["bytes"] // 60 // 30)) for code in range(30))


ATTACKS = [Scans(), ScansInTransactions(), Batches(), Transactions(), Staged(), Savepoints(), Halves(), Garbage()]
