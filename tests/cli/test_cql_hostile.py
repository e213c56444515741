#!/usr/bin/env python3
"""Cassandra's door under clients that ask for as much as they can, and do not read what they get."""

import socket
import time

from cql_wire import QUERY, RESULT, Connection
from cql_wire_server import Door
from harness import contains, equal, main, test

MB = 1024 * 1024
ROWS = 2000
INVALID = 0x2200
PATIENCE_S = 240  # on a machine that runs many tests at once


def begin(door):
    c = Connection(door.port)
    c.start()
    return c


def fill(c, bytes_each=100):
    c.query("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    c.query("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")
    for first in range(0, ROWS, 500):
        rows = (f"INSERT INTO ks.t (k, v) VALUES ({k}, '{'x' * bytes_each}')" for k in range(first, first + 500))
        c.query(f"BEGIN UNLOGGED BATCH {' '.join(rows)} APPLY BATCH")


def is_served(c):
    """Small statements of others are answered."""
    began = time.monotonic()
    for k in range(10):
        equal(len(c.query(f"SELECT v FROM ks.t WHERE k = {k}")), 1)
    assert time.monotonic() - began < PATIENCE_S, time.monotonic() - began


@test
def answers_that_nobody_reads_stay_within_the_memory(cwd):
    memory = 32 * MB
    (cwd / "ini").write_text(f"[frond]\nmemory_bytes = {memory}\nrate_window_ms = 86400000\nbody_timeout_ms = 86400000\nmemory_timeout_ms = 10000\n")
    with Door(cwd, "--config", cwd / "ini") as door, begin(door) as c:
        fill(c, 1000)
        clients = []
        for _ in range(60):
            client = begin(door)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for stream in range(20):
                client.send(QUERY, client.query_body("SELECT * FROM ks.t"), stream=stream)
            clients.append(client)
        for _ in range(3):
            is_served(c)
            held = door.metrics()["frond_memory_requests_bytes"]
            assert held <= memory + memory // 4, held
        for client in clients:
            client.socket.close()
        is_served(c)
        equal(door.stop(), 0)


@test
def filtering_all_rows_leaves_others_their_turn(cwd):
    with Door(cwd) as door, begin(door) as c:
        fill(c)
        clients = [begin(door) for _ in range(16)]
        for client in clients:
            for stream in range(16):
                client.send(QUERY, client.query_body("SELECT k FROM ks.t WHERE v = 'no' ALLOW FILTERING"), stream=stream)
        is_served(c)
        for client in clients:
            equal([client.read()[0][3] for _ in range(16)], [RESULT] * 16)
            client.socket.close()


@test
def what_one_statement_asks_for_is_limited(cwd):
    with Door(cwd) as door, begin(door) as c:
        fill(c)

        def partitions(count):
            return f"SELECT k FROM ks.t WHERE k IN ({', '.join(map(str, range(count)))})"

        equal(len(c.query(partitions(10000))), ROWS)
        code, text = c.error(QUERY, c.query_body(partitions(10001)))
        equal(code, INVALID)
        contains(text, "CQL_PARTITIONS")
        # A transaction has 10,000,000 bytes: all of a batch is written, or nothing of it.
        for count, is_there in ((90, True), (120, False)):
            rows = (f"INSERT INTO ks.t (k, v) VALUES ({count * 1000 + k}, '{'x' * 100000}')" for k in range(count))
            equal(c.code(f"BEGIN UNLOGGED BATCH {' '.join(rows)} APPLY BATCH"), 0 if is_there else INVALID)
            for k in (0, count - 1):
                equal(len(c.query(f"SELECT k FROM ks.t WHERE k = {count * 1000 + k}")), int(is_there))


@test
def hundreds_of_connections_rest_beside_one_that_works(cwd):
    with Door(cwd) as door, begin(door) as c:
        fill(c)
        clients = [begin(door) for _ in range(500)]
        is_served(c)
        for client in clients:
            equal(len(client.query("SELECT v FROM ks.t WHERE k = 7")), 1)
            client.socket.close()


main()
