"""Cassandra's protocol on a socket, for tests: frames, segments, what begins a connection, rows."""

import binascii
import socket
import struct

ERROR, READY, AUTHENTICATE, SUPPORTED, RESULT, AUTH_SUCCESS = 0, 2, 3, 6, 8, 0x10
STARTUP, OPTIONS, QUERY, PREPARE, REGISTER, AUTH_RESPONSE = 1, 5, 7, 9, 0xb, 0xf


def string(text):
    return struct.pack(">H", len(text)) + text.encode()


def string_map(**pairs):
    return struct.pack(">H", len(pairs)) + b"".join(string(k) + string(v) for k, v in pairs.items())


def crc24(data):
    crc = 0x875060
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974f0b
    return crc


def segment(payload):
    header = (len(payload) | 1 << 17).to_bytes(3, "little")
    crc = binascii.crc32(payload, binascii.crc32(b"\xfa\x2d\x55\xca"))
    return header + crc24(header).to_bytes(3, "little") + payload + crc.to_bytes(4, "little")


class Connection:
    def __init__(self, port, version=4):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.version, self.segmented = version, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, opcode, body=b"", stream=1, flags=0):
        frame = struct.pack(">BBhBI", self.version, flags, stream, opcode, len(body)) + body
        self.socket.sendall(segment(frame) if self.segmented else frame)

    def read_bytes(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise EOFError(data)
            data += more
        return data

    def read_segment(self):
        """What it carries, and whether that is whole frames."""
        header = self.read_bytes(6)
        assert int.from_bytes(header[3:], "little") == crc24(header[:3]), header
        payload = self.read_bytes(int.from_bytes(header[:3], "little") & 0x1ffff)
        crc = binascii.crc32(payload, binascii.crc32(b"\xfa\x2d\x55\xca"))
        assert int.from_bytes(self.read_bytes(4), "little") == crc, crc
        return payload, bool(header[2] >> 1 & 1)

    def read(self):
        """(version, flags, stream, opcode), body"""
        if self.segmented:
            payload, whole = self.read_segment()
            while not whole and len(payload) < 9 + struct.unpack(">I", payload[5:9])[0]:
                payload += self.read_segment()[0]
            return struct.unpack(">BBhB", payload[:5]), payload[9:]
        head = self.read_bytes(9)
        return struct.unpack(">BBhB", head[:5]), self.read_bytes(struct.unpack(">I", head[5:])[0])

    def ask(self, opcode, body=b"", **how):
        self.send(opcode, body, **how)
        return self.read()

    def start(self, **more):
        answer, body = self.ask(STARTUP, string_map(CQL_VERSION="3.0.0", **more))
        self.segmented = self.version >= 5 and answer[3] in (READY, AUTHENTICATE)
        return answer[3], body

    def login(self, name, password):
        """What answers it: AUTH_SUCCESS or ERROR."""
        token = b"\0" + name.encode() + b"\0" + password.encode()
        return self.ask(AUTH_RESPONSE, struct.pack(">i", len(token)) + token)[0][3]

    def query_body(self, text):
        flags = b"\0" if self.version < 5 else b"\0\0\0\0"
        return struct.pack(">I", len(text.encode())) + text.encode() + b"\0\1" + flags

    def query(self, text):
        """The rows, as dicts of bytes; none where the answer has none. An error raises CqlError."""
        answer, body = self.ask(QUERY, self.query_body(text))
        if answer[3] == ERROR:
            raise CqlError(*error_of(answer, body))
        return rows_of(body) if struct.unpack(">i", body[:4])[0] == 2 else []

    def code(self, text):
        """The code of its error, or 0."""
        try:
            self.query(text)
        except CqlError as error:
            return error.code
        return 0

    def error(self, opcode, body=b"", **how):
        """The code and the text."""
        answer, got = self.ask(opcode, body, **how)
        return error_of(answer, got)

    def ends(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def together(c, *frames):
    """Sends all at once; the answers (opcode, body) in their order."""
    c.socket.sendall(b"".join(struct.pack(">BBhBI", 4, 0, n, opcode, len(body)) + body
                              for n, (opcode, body) in enumerate(frames)))
    answers = {}
    for _ in frames:
        (_, _, stream, opcode), body = c.read()
        answers[stream] = opcode, body
    return [answers[n] for n in range(len(frames))]


class CqlError(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code:#x} {text}")
        self.code, self.text = code, text


class Reader:
    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, n):
        self.at += n
        return self.body[self.at - n:self.at]

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def string(self):
        return self.take(self.number(">H")).decode()

    def value(self):
        n = self.number(">i")
        return None if n < 0 else self.take(n)

    def skip_type(self):
        kind = self.number(">H")
        for _ in range({0x20: 1, 0x21: 2, 0x22: 1}.get(kind, 0)):
            self.skip_type()


def rows_of(body):
    """The rows of a RESULT of one table without another page."""
    r = Reader(body)
    assert r.number(">i") == 2, body
    assert r.number(">i") == 1, body
    count = r.number(">i")
    r.string(), r.string()
    names = []
    for _ in range(count):
        names.append(r.string())
        r.skip_type()
    return [{name: r.value() for name in names} for _ in range(r.number(">i"))]


def error_of(answer, body):
    assert answer[3] == ERROR, answer
    length = struct.unpack(">H", body[4:6])[0]
    return struct.unpack(">I", body[:4])[0], body[6:6 + length].decode()
