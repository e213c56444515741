#!/usr/bin/env python3
"""Statements of one connection that are under way together: answers by streams, commits in groups."""

import socket
import struct
import threading

from cql_wire import ERROR, OPTIONS, PREPARE, QUERY, RESULT, Connection, error_of, rows_of
from cql_wire_server import Door
from harness import equal, main, test, until

EXECUTE = 0xa
REPLICATION = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
COUNT = 200


def begin(door, version=4, **more):
    c = Connection(door.port, version)
    c.start(**more)
    c.query(f"CREATE KEYSPACE IF NOT EXISTS ks {REPLICATION}")
    c.query("CREATE TABLE IF NOT EXISTS ks.t (k int PRIMARY KEY, v text)")
    return c


def frame(c, opcode, body, stream):
    return struct.pack(">BBhBI", c.version, 0, stream, opcode, len(body)) + body


def ask_all(c, statements):
    """Sends all at once; the answers (opcode, body) in the order of the statements."""
    if c.segmented:
        for stream, text in enumerate(statements):
            c.send(QUERY, c.query_body(text), stream=stream)
    else:
        c.socket.sendall(b"".join(frame(c, QUERY, c.query_body(text), n) for n, text in enumerate(statements)))
    answers = {}
    for _ in statements:
        (_, _, stream, opcode), body = c.read()
        assert stream not in answers, stream
        answers[stream] = opcode, body
    return [answers[n] for n in range(len(statements))]


def insert(k):
    return f"INSERT INTO ks.t (k, v) VALUES ({k}, 'v{k}')"


@test
def each_is_answered_on_its_stream(cwd):
    with Door(cwd) as door:
        for version in (3, 4, 5):
            with begin(door, version) as c:
                answers = ask_all(c, [insert(k) if k % 10 else f"SELECT nope{k} FROM ks.t" for k in range(COUNT)])
                for k, (opcode, body) in enumerate(answers):
                    equal(opcode, RESULT if k % 10 else ERROR)
                    if not k % 10:
                        equal(error_of((0, 0, 0, opcode), body)[1], f"Undefined column name nope{k} in table t")
                equal(len(c.query("SELECT k FROM ks.t")), COUNT - COUNT // 10)
                c.query("TRUNCATE ks.t")


@test
def what_is_sent_together_commits_in_groups(cwd):
    with Door(cwd) as door, begin(door) as c:
        text = "INSERT INTO ks.t (k, v) VALUES (?, 'x')"
        _, body = c.ask(PREPARE, struct.pack(">I", len(text)) + text.encode())
        prepared = body[4:6 + struct.unpack(">H", body[4:6])[0]]
        def execute(k):
            return prepared + struct.pack(">HBH", 1, 1, 1) + struct.pack(">ii", 4, k)
        before = door.metrics()["frond_store_batch_transactions_count"]
        c.socket.sendall(b"".join(frame(c, EXECUTE, execute(k), k) for k in range(COUNT)))
        equal(sorted(c.read()[0][2] for _ in range(COUNT)), list(range(COUNT)))
        groups = door.metrics()["frond_store_batch_transactions_count"] - before
        assert groups <= COUNT / 3, groups
        equal(len(c.query("SELECT k FROM ks.t")), COUNT)


@test
def writes_of_one_row_are_one_after_the_other(cwd):
    with Door(cwd) as door, begin(door) as c:
        answers = ask_all(c, [f"INSERT INTO ks.t (k, v) VALUES (1, '{n}') IF NOT EXISTS" for n in range(20)])
        applied = [n for n, (_, body) in enumerate(answers) if rows_of(body)[0]["[applied]"] == b"\1"]
        equal(len(applied), 1)
        equal(c.query("SELECT v FROM ks.t WHERE k = 1"), [{"v": str(applied[0]).encode()}])
        c.query("CREATE TABLE ks.counts (k int PRIMARY KEY, n counter)")
        equal({opcode for opcode, _ in ask_all(c, ["UPDATE ks.counts SET n = n + 1 WHERE k = 1"] * COUNT)}, {RESULT})
        equal(c.query("SELECT n FROM ks.counts"), [{"n": struct.pack(">q", COUNT)}])
        batch = "BEGIN BATCH INSERT INTO ks.t (k, v) VALUES (7, '{0}'); INSERT INTO ks.t (k, v) VALUES (8, '{0}'); APPLY BATCH"
        ask_all(c, [batch.format(n) for n in range(COUNT)])
        one, two = (c.query(f"SELECT v FROM ks.t WHERE k = {k}") for k in (7, 8))
        equal(one, two)


@test
def a_keyspace_holds_for_what_comes_behind_use(cwd):
    with Door(cwd) as door, begin(door) as c:
        c.query(f"CREATE KEYSPACE other {REPLICATION}")
        c.query("CREATE TABLE other.t (k int PRIMARY KEY, v text)")
        c.query("USE ks")
        many = [f"INSERT INTO t (k, v) VALUES ({k}, 'x')" for k in range(10)]
        answers = ask_all(c, many + ["USE other"] + many[:5])
        equal({opcode for opcode, _ in answers}, {RESULT})
        equal([len(c.query(f"SELECT k FROM {table}")) for table in ("ks.t", "other.t")], [10, 5])


def fill(c, rows):
    """A table that takes a while to be read."""
    c.query("CREATE TABLE ks.many (k int PRIMARY KEY, v text)")
    for first in range(0, rows, 500):
        items = "; ".join(f"INSERT INTO ks.many (k, v) VALUES ({k}, 'v{k}')" for k in range(first, first + 500))
        c.query(f"BEGIN UNLOGGED BATCH {items}; APPLY BATCH")


ATTEMPTS = 20
SLOW = "SELECT count(*) FROM ks.many WHERE v = 'none' ALLOW FILTERING"


def order_of(c, *frames):
    """The streams of the answers, in the order in which they come."""
    c.socket.sendall(b"".join(frame(c, *f, stream=n) for n, f in enumerate(frames)))
    answers = [c.read() for _ in frames]
    for (_, _, stream, opcode), body in answers:
        assert opcode != ERROR, (stream, body)
    return [head[2] for head, _ in answers]


@test
def what_reads_for_long_holds_up_nothing_behind_it(cwd):
    with Door(cwd) as door, begin(door) as c:
        fill(c, 30000)  # so that what gcc has optimised takes longer than a sync, too
        c.query(insert(1))
        slow, quick = (QUERY, c.query_body(SLOW)), (QUERY, c.query_body("SELECT v FROM ks.t WHERE k = 1"))
        write, prepare = (QUERY, c.query_body(insert(2))), (PREPARE, struct.pack(">I", 6) + b"USE ks")
        equal(order_of(c, slow, (OPTIONS, b""), quick, write, prepare)[-1], 0)
        # So it is for one that is alone when it begins. On a busy machine it may be over before the other is sent.
        for _ in range(ATTEMPTS):
            c.send(QUERY, c.query_body(SLOW), stream=7)
            c.send(OPTIONS, stream=8)
            order = [c.read()[0][2] for _ in range(2)]
            if order == [8, 7]:
                break
        equal(order, [8, 7])
        # What changes the connection waits for what came before it.
        equal(order_of(c, slow, (QUERY, c.query_body("USE ks")), quick), [0, 1, 2])


@test
def a_statement_behind_an_answer_sees_its_effects(cwd):
    with Door(cwd) as door, begin(door) as c:
        fill(c, 5000)
        c.send(QUERY, c.query_body(SLOW), stream=900)
        for n in range(30):
            c.send(QUERY, c.query_body(f"INSERT INTO ks.t (k, v) VALUES (1, 'v{n}')"), stream=1)
            while c.read()[0][2] != 1:
                pass
            c.send(QUERY, c.query_body("SELECT v FROM ks.t WHERE k = 1"), stream=2)
            answer = c.read()
            while answer[0][2] != 2:
                answer = c.read()
            equal(rows_of(answer[1]), [{"v": f"v{n}".encode()}])


@test
def answers_for_which_there_is_no_memory_together_are_made_one_by_one(cwd):
    """24 answers of 2 MB, of which eight have room in the memory of all connections."""
    (cwd / "ini").write_text("[frond]\nmemory_bytes = 16777216\n")
    with Door(cwd, "--config", cwd / "ini") as door, begin(door) as c:
        for k in range(20):
            c.query(f"INSERT INTO ks.t (k, v) VALUES ({k}, '{'x' * 100000}')")
        # Each waits for the others' turns of the processor, and holds what it has read.
        answers = ask_all(c, ["SELECT * FROM ks.t"] * 24)
        for opcode, body in answers:
            assert opcode == RESULT, body
            equal(len(rows_of(body)), 20)
        equal(c.query("SELECT count(*) FROM ks.t"), [{"count": struct.pack(">q", 20)}])


@test
def answers_of_many_connections_wait_for_memory(cwd):
    """24 answers of 3 MB, of which two have room together in the memory of all connections."""
    (cwd / "ini").write_text("[frond]\nmemory_bytes = 16777216\n")
    with Door(cwd, "--config", cwd / "ini") as door, begin(door) as c:
        for k in range(30):
            c.query(f"INSERT INTO ks.t (k, v) VALUES ({k}, '{'x' * 100000}')")
        refused = 'frond_refusals_total{limit="memory_bytes"}'
        before = door.metrics().get(refused, 0)
        together, got = threading.Barrier(12), []
        def ask(version):
            with begin(door, version) as client:
                together.wait()
                got.extend((opcode, len(rows_of(body)) if opcode == RESULT else body)
                           for opcode, body in ask_all(client, ["SELECT * FROM ks.t"] * 2))
        threads = [threading.Thread(target=ask, args=(4 + n % 2,)) for n in range(12)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        equal(got, [(RESULT, 30)] * 24)
        equal(door.metrics().get(refused, 0), before)


@test
def a_loop_has_so_many_fibers_for_all_connections(cwd):
    (cwd / "ini").write_text("[frond]\nloops = 1\n")
    with Door(cwd, "--config", cwd / "ini") as door, begin(door) as c:
        fill(c, 1000)
        at_rest = door.metrics()["frond_fibers"]
        clients = [begin(door) for _ in range(10)]
        for client in clients:
            client.socket.sendall(b"".join(frame(client, QUERY, client.query_body(SLOW), n) for n in range(32)))
        # 128 (NET_BESIDE_FIBERS) and one of each connection's own; all 320 would be more.
        most = max(door.metrics()["frond_fibers"] for _ in range(10)) - at_rest
        assert 20 < most <= 128 + len(clients) + 10, most
        for client in clients:
            equal(sorted(client.read()[0][2:] for _ in range(32)), [(n, RESULT) for n in range(32)])
            client.socket.close()


@test
def a_client_that_leaves_has_written_what_it_sent(cwd):
    with Door(cwd) as door:
        with begin(door) as c:
            c.socket.sendall(b"".join(frame(c, QUERY, c.query_body(insert(k)), k) for k in range(30)))
            c.socket.shutdown(socket.SHUT_WR)
            equal({c.read()[0][3] for _ in range(30)}, {RESULT})
            assert c.ends()
        with begin(door) as c:
            equal(len(c.query("SELECT k FROM ks.t")), 30)
        equal(door.stop(), 0)


@test
def a_client_that_leaves_ends_what_reads_for_it(cwd):
    with Door(cwd) as door:
        with begin(door) as c:
            fill(c, 20000)
            c.socket.sendall(b"".join(frame(c, QUERY, c.query_body(SLOW), n) for n in range(32)))
            until(lambda: door.metrics()["frond_fibers"] > 10)
        # All of it would take 32 times as long as one.
        until(lambda: door.metrics()["frond_fibers"] < 10)
        counted = door.metrics()
        assert 2 <= counted["frond_cql_failures_total"] <= 32, counted["frond_cql_failures_total"]
        equal(door.stop(), 0)


main()
