#!/usr/bin/env python3
"""Cassandra's protocol on a socket: versions, frames, segments, what begins a connection."""

import socket
import struct

from cql_wire import (READY, AUTHENTICATE, SUPPORTED, AUTH_SUCCESS, STARTUP, OPTIONS, QUERY, REGISTER,
                      AUTH_RESPONSE, Connection, Door, error_of, segment, string, string_map)
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
