"""A client of MongoDB's protocol for tests: what the server says, and nothing more. BSON is read and
written here for the few types that tests need, so that they need no driver."""

import base64
import hashlib
import hmac
import os
import socket
import struct

OP_REPLY, OP_QUERY, OP_COMPRESSED, OP_MSG = 1, 2004, 2012, 2013
CHECKSUM, MORE_TO_COME, EXHAUST_ALLOWED = 1, 2, 1 << 16


class Int64(int):
    pass


class Timestamp(int):
    """MongoDB's own: seconds in the upper half."""


class Date(int):
    """Milliseconds since 1970."""


class Raw:
    """A value of any type, by its bytes."""

    def __init__(self, kind, data=b""):
        self.kind, self.data = kind, data

    def __eq__(self, other):
        return isinstance(other, Raw) and (self.kind, self.data) == (other.kind, other.data)

    def __repr__(self):
        return f"Raw({self.kind}, {self.data!r})"


def raw_length(kind, data, at):
    """Of a value of a type that has no class here."""
    if kind == 11:
        return data.index(b"\0", data.index(b"\0", at) + 1) + 1 - at
    if kind == 15:
        return struct.unpack_from("<i", data, at)[0]
    if kind in (12, 13, 14):
        return 4 + struct.unpack_from("<i", data, at)[0] + (12 if kind == 12 else 0)
    return {6: 0, 19: 16, 127: 0, 255: 0}[kind]


def encode_value(value):
    """The type and the bytes of a value."""
    if isinstance(value, Raw):
        return value.kind, value.data
    if isinstance(value, bool):
        return 8, b"\1" if value else b"\0"
    if value is None:
        return 10, b""
    if isinstance(value, Date):
        return 9, struct.pack("<q", value)
    if isinstance(value, Timestamp):
        return 17, struct.pack("<Q", value)
    if isinstance(value, Int64):
        return 18, struct.pack("<q", value)
    if isinstance(value, int):
        return (16, struct.pack("<i", value)) if -2**31 <= value < 2**31 else (18, struct.pack("<q", value))
    if isinstance(value, float):
        return 1, struct.pack("<d", value)
    if isinstance(value, str):
        data = value.encode() + b"\0"
        return 2, struct.pack("<i", len(data)) + data
    if isinstance(value, bytes):
        return 5, struct.pack("<iB", len(value), 4 if len(value) == 16 else 0) + value
    if isinstance(value, dict):
        return 3, encode(value)
    if isinstance(value, (list, tuple)):
        return 4, encode({str(i): v for i, v in enumerate(value)})
    if isinstance(value, ObjectId):
        return 7, value.data
    raise TypeError(value)


class ObjectId:
    def __init__(self, data):
        self.data = data


def encode(document):
    parts = []
    for name, value in document.items():
        kind, data = encode_value(value)
        parts += bytes([kind]), name.encode(), b"\0", data
    out = b"".join(parts)
    return struct.pack("<i", len(out) + 5) + out + b"\0"


def decode(data, at=0, array=False):
    end = at + struct.unpack_from("<i", data, at)[0] - 1
    at += 4
    out = {}
    while at < end:
        kind = data[at]
        stop = data.index(b"\0", at + 1)
        name, at = data[at + 1:stop].decode(), stop + 1
        if kind in (3, 4):
            size = struct.unpack_from("<i", data, at)[0]
            value, n = decode(data, at, kind == 4), size
        elif kind == 2:
            n = 4 + struct.unpack_from("<i", data, at)[0]
            value = data[at + 4:at + n - 1].decode()
        elif kind == 5:
            n = 5 + struct.unpack_from("<i", data, at)[0]
            value = data[at + 5:at + n]
        elif kind == 7:
            n = 12
            value = ObjectId(data[at:at + n])
        elif kind in (6, 11, 12, 13, 14, 15, 19, 127, 255):
            n = raw_length(kind, data, at)
            value = Raw(kind, data[at:at + n])
        else:
            form, n = {1: ("<d", 8), 8: ("<?", 1), 9: ("<q", 8), 10: (None, 0), 16: ("<i", 4),
                       17: ("<Q", 8), 18: ("<q", 8)}[kind]
            value = struct.unpack_from(form, data, at)[0] if form else None
            if kind in (17, 18):
                value = (Timestamp if kind == 17 else Int64)(value)
        out[name] = value
        at += n
    return list(out.values()) if array else out


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def sequence(name, *documents):
    data = name.encode() + b"\0" + b"".join(encode(d) for d in documents)
    return b"\1" + struct.pack("<i", len(data) + 4) + data


class Failure(Exception):
    """A command was answered with an error."""

    def __init__(self, answer):
        super().__init__(f"{answer.get('codeName')} ({answer.get('code')}): {answer.get('errmsg')}")
        self.answer = answer
        self.code = answer.get("code")


class Client:
    """At a port of the loopback address, or, where `port` is a path, at a Unix socket."""

    def __init__(self, port, timeout=120, context=None):
        if isinstance(port, int):
            self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(str(port))
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")
        self.next = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    # ---- Messages ----

    def send_raw(self, op, data, length=None):
        self.next += 1
        self.socket.sendall(struct.pack("<iiii", 16 + len(data) if length is None else length,
                                        self.next, 0, op) + data)
        return self.next

    def send(self, document, flags=0, sections=b""):
        data = struct.pack("<I", flags) + b"\0" + encode(document) + sections
        if flags & CHECKSUM:
            self.next += 1
            head = struct.pack("<iiii", 20 + len(data), self.next, 0, OP_MSG)
            self.socket.sendall(head + data + struct.pack("<I", crc32c(head + data)))
            return self.next
        return self.send_raw(OP_MSG, data)

    def read_raw(self):
        """The header and what follows; None at the end."""
        head = self.file.read(16)
        if len(head) < 16:
            return None
        length, number, to, op = struct.unpack("<iiii", head)
        return op, number, to, head, self.file.read(length - 16)

    def read(self):
        """The flags, the number of the request, and the document."""
        message = self.read_raw()
        if message is None:
            raise EOFError
        op, number, to, head, data = message
        self.last = number
        if op == OP_REPLY:
            return struct.unpack_from("<I", data)[0], to, decode(data, 20)
        assert op == OP_MSG, op
        flags = struct.unpack_from("<I", data)[0]
        if flags & CHECKSUM:
            assert struct.unpack("<I", data[-4:])[0] == crc32c(head + data[:-4])
        return flags, to, decode(data, 5)

    # ---- Commands ----

    def __call__(self, document, db="admin", sections=b""):
        number = self.send({**document, "$db": db}, sections=sections)
        _, to, answer = self.read()
        assert to == number, (to, number)
        if not answer.get("ok"):
            raise Failure(answer)
        return answer

    def fails(self, document, db="admin", sections=b""):
        try:
            raise AssertionError(self(document, db, sections))
        except Failure as failure:
            return failure.answer

    def hello_by_query(self, document):
        data = struct.pack("<i", 4) + b"admin.$cmd\0" + struct.pack("<ii", 0, -1) + encode(document)
        self.send_raw(OP_QUERY, data)
        return self.read()

    def login(self, name, password, db="admin", skip_empty=True):
        """SCRAM-SHA-256, and whether the server has shown that it knows the password, too."""
        scram = Scram(name, password)
        options = {"options": {"skipEmptyExchange": True}} if skip_empty else {}
        answer = self({"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": scram.first(),
                       **options}, db)
        number = answer["conversationId"]
        answer = self({"saslContinue": 1, "conversationId": number,
                       "payload": scram.final(answer["payload"])}, db)
        assert answer["payload"] == scram.expected, answer
        assert answer["done"] == skip_empty, answer
        if not skip_empty:
            answer = self({"saslContinue": 1, "conversationId": number, "payload": b""}, db)
            assert answer["done"], answer
        return self


class Scram:
    def __init__(self, name, password):
        name = name.replace("=", "=3D").replace(",", "=2C")
        self.password = password.encode()
        self.nonce = base64.b64encode(os.urandom(18)).decode()
        self.bare = f"n={name},r={self.nonce}"

    def first(self):
        return b"n,," + self.bare.encode()

    def final(self, first):
        first = first.decode()
        parts = dict(part.split("=", 1) for part in first.split(","))
        assert parts["r"].startswith(self.nonce)
        salted = hashlib.pbkdf2_hmac("sha256", self.password, base64.b64decode(parts["s"]),
                                     int(parts["i"]))
        sign = lambda key, text: hmac.new(key, text, hashlib.sha256).digest()
        key = sign(salted, b"Client Key")
        final = f"c=biws,r={parts['r']}"
        text = f"{self.bare},{first},{final}".encode()
        signature = sign(hashlib.sha256(key).digest(), text)
        proof = bytes(a ^ b for a, b in zip(key, signature))
        self.expected = b"v=" + base64.b64encode(sign(sign(salted, b"Server Key"), text))
        return f"{final},p={base64.b64encode(proof).decode()}".encode()
