#!/usr/bin/env python3
"""Cassandra's protocol on a socket: versions, frames, segments, what begins a connection."""

import binascii
import socket
import struct

from cql_wire import (AUTH_RESPONSE, AUTH_SUCCESS, AUTHENTICATE, OPTIONS, QUERY, READY, REGISTER, RESULT, STARTUP,
                      SUPPORTED, Connection, crc24, error_of, segment, string, string_map)
from cql_wire_server import Door
from harness import contains, equal, main, test


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
            contains(c.error(AUTH_RESPONSE, bytes(64 * 1024 + 1))[1], "NET_STRANGER_BYTES")


def varint(n):
    """As snappy writes lengths."""
    return bytes([n & 0x7f | 0x80 * (n > 0x7f)]) + (varint(n >> 7) if n > 0x7f else b"")


def copied(out, offset, length):
    for _ in range(length):
        out.append(out[-offset])


def lz4_pack(data):
    """A block of one sequence: nothing but literals."""
    n = len(data) - 15
    more = b"" if n < 0 else b"\xff" * (n // 255) + bytes([n % 255])
    return bytes([min(len(data), 15) << 4]) + more + data


def lz4_unpack(block):
    out, at = bytearray(), 0

    def extended(n):
        nonlocal at
        while n >= 15 and block[at] == 255:
            n, at = n + 255, at + 1
        if n >= 15:
            n, at = n + block[at], at + 1
        return n

    while at < len(block):
        token, at = block[at], at + 1
        n = extended(token >> 4)
        out += block[at:at + n]
        at += n
        if at < len(block):
            offset, at = block[at] | block[at + 1] << 8, at + 2
            copied(out, offset, extended(token & 15) + 4)
    return bytes(out)


def snappy_pack(data):
    """Literals of at most 60 bytes."""
    parts = [data[at:at + 60] for at in range(0, len(data), 60)]
    return varint(len(data)) + b"".join(bytes([len(part) - 1 << 2]) + part for part in parts)


def snappy_unpack(block):
    out, at = bytearray(), 0
    while block[at] & 0x80:
        at += 1
    at += 1
    while at < len(block):
        tag, at = block[at], at + 1
        n, kind = tag >> 2, tag & 3
        if kind == 0:
            if n >= 60:
                width = n - 59
                n, at = int.from_bytes(block[at:at + width], "little"), at + width
            out += block[at:at + n + 1]
            at += n + 1
        elif kind == 1:
            copied(out, (tag >> 5) << 8 | block[at], (n & 7) + 4)
            at += 1
        else:
            width = 2 if kind == 2 else 4
            copied(out, int.from_bytes(block[at:at + width], "little"), n + 1)
            at += width
    return bytes(out)


PACKERS = {
    "lz4": (lambda data: struct.pack(">I", len(data)) + lz4_pack(data), lambda data: lz4_unpack(data[4:])),
    "snappy": (snappy_pack, snappy_unpack),
}
LONG = "x" * 5000


@test
def bodies_are_compressed_in_versions_3_and_4(cwd):
    with Door(cwd) as server:
        for name, (pack, unpack) in PACKERS.items():
            for version in (3, 4):
                with Connection(server.port, version) as c:
                    equal(c.start(COMPRESSION=name)[0], READY)
                    # What comes compressed, and what comes as it is; answers that are long are compressed.
                    for flags, body in ((1, pack(c.query_body(f"SELECT k FROM {LONG}.t"))),
                                        (0, c.query_body(f"SELECT k FROM {LONG}.t"))):
                        answer, got = c.ask(QUERY, body, flags=flags)
                        contains(error_of(answer, unpack(got) if answer[1] & 1 else got)[1], "48")
                    answer, got = c.ask(QUERY, pack(c.query_body("SELECT * FROM system_schema.columns")), flags=1)
                    equal(answer[1] & 1, 1)
                    contains(unpack(got).decode("latin-1"), "keyspace_name")
                    huge = struct.pack(">I", 1 << 27) if name == "lz4" else varint(1 << 27)
                    contains(c.error(QUERY, huge + b"\0", flags=1)[1], "Request is too big")
                    contains(c.error(QUERY, b"", flags=1)[1], "no frame that can be read")
                    assert c.ends()
        with Connection(server.port, 4) as c:
            contains(c.error(STARTUP, string_map(CQL_VERSION="3.0.0", COMPRESSION="zip"))[1], "Unknown compression")


def lz4_segment(payload, packed):
    data = lz4_pack(payload) if packed else payload
    header = (len(data) | (len(payload) if packed else 0) << 17 | 1 << 34).to_bytes(5, "little")
    crc = binascii.crc32(data, binascii.crc32(b"\xfa\x2d\x55\xca"))
    return header + crc24(header).to_bytes(3, "little") + data + crc.to_bytes(4, "little")


def read_lz4_segment(c):
    header = c.read_bytes(8)
    equal(int.from_bytes(header[5:], "little"), crc24(header[:5]))
    number = int.from_bytes(header[:5], "little")
    data, plain = c.read_bytes(number & 0x1ffff), number >> 17 & 0x1ffff
    c.read_bytes(4)
    return (lz4_unpack(data) if plain else data), plain


@test
def segments_are_compressed_in_version_5(cwd):
    with Door(cwd) as server, Connection(server.port, 5) as c:
        equal(c.start(COMPRESSION="lz4")[0], READY)
        for packed in (False, True):
            body = c.query_body("SELECT * FROM system.local")
            frame = struct.pack(">BBhBI", 5, 0, 9, QUERY, len(body)) + body
            c.socket.sendall(lz4_segment(frame, packed))
            payload, plain = read_lz4_segment(c)
            equal(struct.unpack(">BBhB", payload[:5]), (0x85, 0, 9, RESULT))
            equal(len(payload), 9 + struct.unpack(">I", payload[5:9])[0])
            assert plain, "a long answer is not compressed"
        # Two frames in one segment; and a segment whose bytes were changed ends the connection.
        body = c.query_body("SELECT key FROM system.local")
        frame = struct.pack(">BBhBI", 5, 0, 1, QUERY, len(body)) + body
        c.socket.sendall(lz4_segment(frame * 2, True))
        got = read_lz4_segment(c)[0]
        if len(got) == 9 + struct.unpack(">I", got[5:9])[0]:
            got += read_lz4_segment(c)[0]
        equal(got[:len(got) // 2], got[len(got) // 2:])
        spoiled = bytearray(lz4_segment(frame, True))
        spoiled[-6] ^= 1
        c.socket.sendall(spoiled)
        read_lz4_segment(c)
        assert c.ends()
    with Door(cwd) as server, Connection(server.port, 5) as c:
        contains(c.error(STARTUP, string_map(CQL_VERSION="3.0.0", COMPRESSION="snappy"))[1], "not supported in version 5")


@test
def a_stop_ends_connections_that_rest(cwd):
    with Door(cwd) as server, Connection(server.port) as c:
        c.start()
        equal(server.stop(), 0)
        assert c.ends()


main()
