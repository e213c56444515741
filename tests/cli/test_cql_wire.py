#!/usr/bin/env python3
"""Cassandra's protocol on a socket: versions, frames, segments, what begins a connection."""

import binascii
import re
import socket
import struct

from harness import Server, contains, equal, main, test

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

    def read(self):
        """(version, flags, stream, opcode), body"""
        if self.segmented:
            header = self.read_bytes(6)
            equal(int.from_bytes(header[3:], "little"), crc24(header[:3]))
            payload = self.read_bytes(int.from_bytes(header[:3], "little") & 0x1ffff)
            crc = binascii.crc32(payload, binascii.crc32(b"\xfa\x2d\x55\xca"))
            equal(int.from_bytes(self.read_bytes(4), "little"), crc)
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

    def error(self, opcode, body=b"", **how):
        """The code and the text."""
        answer, got = self.ask(opcode, body, **how)
        return error_of(answer, got)

    def ends(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def error_of(answer, body):
    equal(answer[3], ERROR)
    length = struct.unpack(">H", body[4:6])[0]
    return struct.unpack(">I", body[:4])[0], body[6:6 + length].decode()


class Door(Server):
    def __init__(self, cwd, *options, **how):
        super().__init__(cwd, "--cql", "127.0.0.1:0", *options, **how)
        log = self.read_log()
        self.port = int(re.search(r"event=cql address=127\.0\.0\.1:(\d+)", log).group(1))


@test
def options_are_told_before_anything_else(cwd):
    with Door(cwd) as server, Connection(server.port) as c:
        answer, body = c.ask(OPTIONS, stream=300)
        equal(answer, (0x84, 0, 300, SUPPORTED))
        for text in (b"CQL_VERSION", b"3.4.5", b"lz4", b"snappy", b"3/v3", b"4/v4", b"5/v5"):
            assert text in body, text


@test
def a_version_that_is_not_served_is_answered_in_the_highest_one(cwd):
    with Door(cwd) as server:
        for version in (1, 2, 6, 65, 66, 0x50):
            with Connection(server.port, version) as c:
                answer, body = c.ask(STARTUP, string_map(CQL_VERSION="3.0.0"))
                equal(answer[0], 0x85)
                code, text = error_of(answer, body)
                equal(code, 0xa)
                contains(text, f"Invalid or unsupported protocol version ({version})")
                assert c.ends()


@test
def another_version_than_before_ends_the_connection(cwd):
    with Door(cwd) as server, Connection(server.port) as c:
        c.ask(OPTIONS)
        c.version = 3
        code, text = c.error(OPTIONS)
        equal(code, 0xa)
        contains(text, "previous messages on this connection had version 4/v4")
        assert c.ends()


@test
def a_connection_begins_with_startup(cwd):
    with Door(cwd) as server, Connection(server.port) as c:
        contains(c.error(QUERY, b"")[1], "Unexpected message QUERY, expecting STARTUP or OPTIONS")
        contains(c.error(STARTUP, string_map())[1], "Missing value CQL_VERSION in STARTUP message")
        contains(c.error(STARTUP, string_map(CQL_VERSION="3.0.0", COMPRESSION="zip"))[1],
                 "Unknown compression algorithm: zip")
        equal(c.start()[0], READY)
        contains(c.error(STARTUP, string_map(CQL_VERSION="3.0.0"))[1], "has begun already")
        contains(c.error(0x55)[1], "Unknown opcode 85")
        contains(c.error(REGISTER, b"\0\1" + string("WEATHER"))[1], "Invalid value 'WEATHER' for Type")
        equal(c.ask(REGISTER, b"\0\1" + string("SCHEMA_CHANGE"))[0][3], READY)


@test
def version_5_goes_on_in_segments(cwd):
    with Door(cwd) as server, Connection(server.port, 5) as c:
        equal(c.ask(OPTIONS)[0][3], SUPPORTED)
        equal(c.start()[0], READY)
        equal(c.ask(OPTIONS)[0][3], SUPPORTED)
        # Two frames in one segment, and one in two.
        frame = struct.pack(">BBhBI", 5, 0, 7, OPTIONS, 0)
        c.socket.sendall(segment(frame + frame))
        equal([c.read()[0][2] for _ in range(2)], [7, 7])
        c.socket.sendall(segment(frame[:4]) + segment(frame[4:]))
        equal(c.read()[0][2], 7)
        # A byte that is another one ends it.
        spoiled = bytearray(segment(frame))
        spoiled[7] ^= 1
        c.socket.sendall(spoiled)
        equal(error_of(*c.read())[0], 0xa)
        assert c.ends()


@test
def a_frame_that_is_too_long_is_skipped(cwd):
    with Door(cwd) as server, Connection(server.port) as c:
        c.start()
        length = 16 * 1024 * 1024 + 1
        c.socket.sendall(struct.pack(">BBhBI", 4, 0, 5, QUERY, length))
        answer, body = c.read()
        equal((answer[2], error_of(answer, body)[0]), (5, 0x2200))
        contains(error_of(answer, body)[1], f"length {length} exceeds maximum allowed length 16777216 (FRAME_BYTES)")
        c.socket.sendall(b"x" * length)
        equal(c.ask(OPTIONS)[0][3], SUPPORTED)


@test
def people_log_in_by_name_and_password(cwd):
    with Door(cwd, "--admin", "root:secret") as server:
        with Connection(server.port) as c:
            code, body = c.start()
            equal(code, AUTHENTICATE)
            contains(body.decode(), "org.apache.cassandra.auth.PasswordAuthenticator")
            contains(c.error(QUERY, b"")[1], "Unexpected message QUERY, expecting AUTH_RESPONSE")
            token = b"\0root\0wrong"
            code, text = c.error(AUTH_RESPONSE, struct.pack(">i", len(token)) + token)
            equal(code, 0x100)
            contains(text, "Provided username root and/or password are incorrect")
            token = b"\0root\0secret"
            equal(c.ask(AUTH_RESPONSE, struct.pack(">i", len(token)) + token)[0][3], AUTH_SUCCESS)
            equal(c.ask(REGISTER, b"\0\1" + string("SCHEMA_CHANGE"))[0][3], READY)
        with Connection(server.port) as c:
            c.start()
            length = 64 * 1024 + 1
            c.socket.sendall(struct.pack(">BBhBI", 4, 0, 5, AUTH_RESPONSE, length))
            contains(error_of(*c.read())[1], "CQL_STRANGER_BYTES")


@test
def a_stop_ends_connections_that_rest(cwd):
    with Door(cwd) as server, Connection(server.port) as c:
        c.start()
        equal(server.stop(), 0)
        assert c.ends()


main()
