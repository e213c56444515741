"""A client of the protocol for rows (docs/ROWS.md), as far as the guard needs one."""

import socket
import struct

HELLO, BEGIN, COMMIT = 1, 4, 5
SCHEMA_CREATE, TABLE, TABLE_CREATE = 11, 14, 15
SCAN, GET, WRITE = 19, 20, 21
INDEX_CREATE, INDEX_BUILD = 23, 24
DONE = 128
HEADER = 8
MAGIC, VERSION = 0x46524f57, 4
READY = 2

INSERT, UPDATE = 1, 3
INT8, TEXT = 4, 8  # kinds
RANGE, REGULAR = 2, 4  # roles
SUMS, GROUPS, BY_INDEX = 2, 4, 8  # flags of a scan


def text(word):
    encoded = word.encode()
    return struct.pack(">H", len(encoded)) + encoded


def value(v):
    encoded = struct.pack(">q", v) if isinstance(v, int) else v.encode()
    return struct.pack(">i", len(encoded)) + encoded


class Rows:
    """A connection, and a table whose key is one number, with columns of texts."""

    def __init__(self, port, schema, table, columns):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.schema, self.name, self.number = schema, table, 0
        self.run((HELLO, struct.pack(">IHH", MAGIC, VERSION, VERSION)))
        self.table = text(schema) + text(table) + bytes(16)
        self.columns = columns
        self.ids = {}

    def create(self):
        roles = [("k", INT8, RANGE), *((c, TEXT, REGULAR) for c in self.columns)]
        self.run((TABLE_CREATE, text(self.schema) + text(self.name) + struct.pack(">H", len(roles)) +
                  b"".join(text(name) + bytes((kind, role, 0)) for name, kind, role in roles)))
        self.open()

    def open(self):
        """Learns the table's id and those of its columns."""
        answer = self.run((TABLE, text(self.schema) + text(self.name)))[0]
        self.table = text(self.schema) + text(self.name) + answer[:16]
        at = 18
        for _ in range(struct.unpack(">H", answer[16:18])[0]):
            number, length = struct.unpack(">IH", answer[at:at + 6])
            self.ids[answer[at + 6:at + 6 + length].decode()] = number
            at += 6 + length + 3
            at += 2 + struct.unpack(">H", answer[at:at + 2])[0]

    def run(self, *requests):
        """Sends them together. The bodies of their answers."""
        frames = b""
        for code, body in requests:
            self.number += 1
            frames += struct.pack(">IBBH", len(body), code, 0, self.number % 65536) + body
        self.socket.sendall(frames)
        return [self.answer() for _ in requests]

    def answer(self):
        length, code, _, _ = struct.unpack(">IBBH", self.receive(HEADER))
        body = self.receive(length)
        if code != DONE:
            raise RuntimeError(f"{self.name}: {body[:200]}")
        return body

    def receive(self, count):
        got = b""
        while len(got) < count:
            more = self.socket.recv(count - len(got))
            if not more:
                raise RuntimeError("the connection has ended")
            got += more
        return got

    def ids_of(self, columns):
        return struct.pack(">H", len(columns)) + b"".join(struct.pack(">I", self.ids[c]) for c in columns)

    def write(self, operation, columns, rows):
        """`rows`: a key and values, of each. A request, as are all below."""
        return (WRITE, self.table + b"\0" + self.ids_of(columns) + struct.pack(">I", len(rows)) +
                b"".join(bytes((operation, 1)) + b"".join(map(value, row)) for row in rows))

    def get(self, columns, *keys):
        return (GET, self.table + b"\0" + self.ids_of(columns) + struct.pack(">I", len(keys)) +
                b"".join(b"\1" + value(key) for key in keys))

    def scan(self, columns, rows=0, flags=0, more=b""):
        """Of all rows; `more` is what the flags ask for."""
        bounds = bytes(5)  # nothing is equal, and there are no ends
        return (SCAN, self.table + bytes((flags,)) + more + self.ids_of(columns) + bounds +
                struct.pack(">HIIII", 0, rows, 0, 0, 0))

    def index(self, name, column):
        """Makes an index, and waits until it is there: its number."""
        columns = struct.pack(">BIBBB", 1, self.ids[column], 0, 0, 0)
        number = self.run((INDEX_CREATE, self.table + text(name) + b"\0" + columns + text("")))[0]
        while self.run((INDEX_BUILD, self.table + number))[0][0] != READY:
            pass
        return number
