#!/usr/bin/env python3
"""Statements of one connection that are under way together: answers by streams, commits in groups."""

import contextlib
import re
import socket
import struct
import threading
import time
import uuid

from cql_wire import (AUTH_SUCCESS, ERROR, OPTIONS, PREPARE, QUERY, RESULT, Connection, error_of, rows_of,
                      segment)
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


def put_rows(c, begin, end):
    for first in range(begin, end, 500):
        items = "; ".join(f"INSERT INTO ks.many (k, v) VALUES ({k}, 'v{k}')" for k in range(first, first + 500))
        c.query(f"BEGIN UNLOGGED BATCH {items}; APPLY BATCH")


def fill(c, rows):
    """A table that takes a while to be read."""
    c.query("CREATE TABLE ks.many (k int PRIMARY KEY, v text)")
    put_rows(c, 0, rows)


def fill_for(c, seconds, rows):
    """The same, with twice as many rows until they take so long to be read, also by a fast machine."""
    fill(c, rows)
    while min(time_of(lambda: c.query(SLOW)) for _ in range(3)) < seconds:
        put_rows(c, rows, 2 * rows)
        rows *= 2


def time_of(call):
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


ATTEMPTS = 20
SLOW_SECONDS = 0.06  # longer than a slice of a loop's work, and than a sync
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
        fill_for(c, SLOW_SECONDS, 30000)
        c.query(insert(1))
        slow, quick = (QUERY, c.query_body(SLOW)), (QUERY, c.query_body("SELECT v FROM ks.t WHERE k = 1"))
        write, prepare = (QUERY, c.query_body(insert(2))), (PREPARE, struct.pack(">I", 6) + b"USE ks")
        # Now and then a sync takes longer than that on a busy machine.
        for _ in range(ATTEMPTS):
            order = order_of(c, slow, (OPTIONS, b""), quick, write, prepare)
            if order[-1] == 0:
                break
        equal(order[-1], 0)
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
    (cwd / "ini").write_text("[frond]\nmemory_bytes = 16777216\nrate_window_ms = 86400000\nbody_timeout_ms = 86400000\n")
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
    (cwd / "ini").write_text("[frond]\nmemory_bytes = 16777216\nrate_window_ms = 86400000\nbody_timeout_ms = 86400000\n")
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
        fill_for(c, SLOW_SECONDS / 10, 1000)
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


JOINT = "frond_cql_joint_reads_total", "frond_cql_joint_transactions_total"


def prepare(c, text):
    _, body = c.ask(PREPARE, struct.pack(">I", len(text)) + text.encode() + (b"" if c.version < 5 else b"\0\0\0\0"))
    return body[4:6 + struct.unpack(">H", body[4:6])[0]]


def execute(c, prepared, key):
    """The body of an EXECUTE with a value of four bytes, or with these bytes."""
    value = struct.pack(">i", key) if isinstance(key, int) else key
    metadata, flags = (b"", b"\1") if c.version < 5 else (b"\0\0", struct.pack(">I", 1))
    return prepared + metadata + b"\0\1" + flags + struct.pack(">Hi", 1, len(value)) + value


def ask_prepared(c, *each, flags=0):
    """Sends all at once, of version 5 in one segment; the answers (flags, opcode, body) in that order."""
    sent = b"".join(struct.pack(">BBhBI", c.version, flags, n, EXECUTE, len(body)) + body for n, body in enumerate(each))
    c.socket.sendall(segment(sent) if c.segmented else sent)
    answers = {}
    for _ in each:
        (_, got, stream, opcode), body = c.read()
        assert stream not in answers, stream
        answers[stream] = got, opcode, body
    return [answers[n] for n in range(len(each))]


@test
def reads_of_rows_that_come_together_share_transactions(cwd):
    with Door(cwd) as door:
        for version in (3, 4, 5):
            with begin(door, version) as c:
                for k in range(0, 40, 2):
                    c.query(insert(k))
                one, two, both, count = (prepare(c, text) for text in (
                    "SELECT v FROM ks.t WHERE k = ?", "SELECT k FROM ks.t WHERE k = ?",
                    "SELECT k FROM ks.t WHERE k IN (?, 2)", "SELECT count(*) FROM ks.t WHERE k = ?"))
                before = door.metrics()
                # Of each kind whole groups and parts of one, with others and what fails in between.
                asked = [(one, 4)] * 20 + [(one, b"xy")] + [(two, 6), (one, 6)] * 3 + [(one, 7), (both, 8), (count, 8)] + \
                    [(one, 8)] * 5
                answers = ask_prepared(c, *(execute(c, *ask) for ask in asked))
                for (what, key), (_, opcode, body) in zip(asked, answers):
                    if key == b"xy":
                        equal(opcode, ERROR)
                        equal(error_of((0, 0, 0, opcode), body)[0], 0x2200)
                        continue
                    equal(opcode, RESULT)
                    packed = struct.pack(">i", key)
                    expected = {one: [{"v": f"v{key}".encode()}] if key % 2 == 0 else [], two: [{"k": packed}],
                                both: [{"k": struct.pack(">i", 2)}, {"k": packed}], count: [{"count": struct.pack(">q", 1)}]}
                    equal(rows_of(body), expected[what])
                after = door.metrics()
                reads, transactions = (after[name] - before.get(name, 0) for name in JOINT)
                # How many are there as a whole when the first is looked at is the network's to say.
                assert 2 <= transactions and 2 * transactions <= reads <= len(asked), (reads, transactions)
        # What was answered before they were sent is what all of them see.
        with begin(door) as c:
            one = prepare(c, "SELECT v FROM ks.t WHERE k = ?")
            for n in range(30):
                c.query(f"INSERT INTO ks.t (k, v) VALUES (1, '{n}')")
                for _, _, body in ask_prepared(c, *[execute(c, one, 1)] * 12):
                    equal(rows_of(body), [{"v": str(n).encode()}])


ALONE = "frond_cql_alone_reads_total"
LATELY = 64  # BESIDE_LATELY


@test
def who_waits_for_each_answer_needs_no_second_fiber(cwd):
    with Door(cwd) as door, begin(door) as c:
        c.query("CREATE TABLE ks.long (k int PRIMARY KEY, a text, b text, c text)")
        for k, text in ((1, "x"), (2, "x" * 3900000)):
            c.query(f"INSERT INTO ks.long (k, a) VALUES ({k}, '{text}')")
            for column in "bc":
                c.query(f"UPDATE ks.long SET {column} = '{text}' WHERE k = {k}")
        one = prepare(c, "SELECT * FROM ks.long WHERE k = ?")

        def alone(*keys, count=1):
            """How many of so many sets of reads, each sent behind the answers before, had no fiber of their own."""
            before = door.metrics().get(ALONE, 0)
            for _ in range(count):
                equal({opcode for _, opcode, _ in ask_prepared(c, *(execute(c, one, k) for k in keys))}, {RESULT})
            return door.metrics()[ALONE] - before

        # On a busy machine an answer may take long, and then the next ones have fibers.
        for _ in range(ATTEMPTS):
            if alone(1, count=5) == 5:
                break
            alone(1, count=LATELY)
        else:
            raise AssertionError("a read that is alone has a fiber of its own")
        # Who sends statements together is expected to do so again.
        alone(*[1] * 8)
        equal(alone(1, count=LATELY - 8), 0)
        for _ in range(ATTEMPTS):
            if alone(1, count=LATELY):
                break
        else:
            raise AssertionError("who sent statements together once has fibers for ever")
        # So is who reads for long: what such a client sends meanwhile is not held up again.
        for _ in range(ATTEMPTS):
            alone(1, count=LATELY)
            if alone(2):
                break
        else:
            raise AssertionError("a read that is alone has a fiber of its own")
        equal(alone(1, count=LATELY - 8), 0)


@test
def what_is_kept_for_further_statements_goes_when_a_connection_rests(cwd):
    def held(door):
        return door.metrics()["frond_memory_requests_bytes"]

    with Door(cwd) as door, contextlib.ExitStack() as clients:
        several = [clients.enter_context(begin(door)) for _ in range(10)]
        several[0].query(f"INSERT INTO ks.t (k, v) VALUES (1, '{'x' * 10000}')")
        at_rest = held(door)
        for c in several:
            one = prepare(c, "SELECT v FROM ks.t WHERE k = ?")
            for _ in range(3):
                equal({opcode for _, opcode, _ in ask_prepared(c, *[execute(c, one, 1)] * 32)}, {RESULT})
        # 32 of 16 KiB each would be 5 MB; four on each connection stay.
        until(lambda: held(door) <= at_rest + 2000000, 30, lambda: (at_rest, held(door)))


@test
def a_read_that_takes_long_holds_up_no_group(cwd):
    with Door(cwd) as door, begin(door) as c:
        for k, length in ((1, 10), (2, 3000000)):
            c.query(f"INSERT INTO ks.t (k, v) VALUES ({k}, '{'x' * length}')")
        one = prepare(c, "SELECT v FROM ks.t WHERE k = ?")
        keys = [1, 1, 2, 1, 1, 2, 1, 1, 1, 3, 2, 1]
        for key, (_, opcode, body) in zip(keys, ask_prepared(c, *(execute(c, one, k) for k in keys))):
            equal(opcode, RESULT)
            equal([len(row["v"]) for row in rows_of(body)], {1: [10], 2: [3000000], 3: []}[key])


@test
def each_of_a_group_has_a_trace_of_its_own(cwd):
    with Door(cwd) as door, begin(door) as c:
        c.query(insert(1))
        one = prepare(c, "SELECT v FROM ks.t WHERE k = ?")
        for got, opcode, body in ask_prepared(c, *[execute(c, one, 1)] * 6, flags=2):
            equal((got, opcode, rows_of(body[16:])), (2, RESULT, [{"v": b"v1"}]))
            session = uuid.UUID(bytes=body[:16])
            told = [row["activity"].decode() for row in c.query(
                f"SELECT activity FROM system_traces.events WHERE session_id = {session}")]
            assert any(re.match(r"Transaction: [1-4] reads of [1-4] pairs", text) for text in told), told


@test
def each_of_a_group_has_rights_of_its_own(cwd):
    with Door(cwd, env={"FROND_ADMIN": "root:secret"}) as door:
        root, ann = (Connection(door.port) for _ in range(2))
        root.start()
        equal(root.login("root", "secret"), AUTH_SUCCESS)
        root.query(f"CREATE KEYSPACE ks {REPLICATION}")
        for table in ("mine", "yours"):
            root.query(f"CREATE TABLE ks.{table} (k int PRIMARY KEY, v text)")
            root.query(f"INSERT INTO ks.{table} (k, v) VALUES (1, '{table}')")
        root.query("CREATE ROLE ann WITH PASSWORD = 'ann' AND LOGIN = true")
        root.query("GRANT SELECT ON ks.mine TO ann")
        mine, yours = (prepare(root, f"SELECT v FROM ks.{table} WHERE k = ?") for table in ("mine", "yours"))
        ann.start()
        equal(ann.login("ann", "ann"), AUTH_SUCCESS)
        asked = [mine, yours, mine, mine, yours, yours, mine]
        for what, (_, opcode, body) in zip(asked, ask_prepared(ann, *(execute(ann, which, 1) for which in asked))):
            if what == mine:
                equal((opcode, rows_of(body)), (RESULT, [{"v": b"mine"}]))
            else:
                equal(error_of((0, 0, 0, opcode), body)[0], 0x2100)
        for c in (root, ann):
            c.socket.close()


@test
def a_table_that_changes_is_told_to_each_of_a_group(cwd):
    with Door(cwd) as door, begin(door) as c, begin(door) as other:
        c.query(insert(1))
        one = prepare(c, "SELECT * FROM ks.t WHERE k = ?")
        other.query("ALTER TABLE ks.t ADD w int")
        answers = ask_prepared(c, *[execute(c, one, 1)] * 10)
        equal([(opcode, error_of((0, 0, 0, opcode), body)[0]) for _, opcode, body in answers], [(ERROR, 0x2500)] * 10)
        one = prepare(c, "SELECT * FROM ks.t WHERE k = ?")
        equal([rows_of(body) for _, _, body in ask_prepared(c, *[execute(c, one, 1)] * 10)],
              [[{"k": struct.pack(">i", 1), "v": b"v1", "w": None}]] * 10)
        other.query("DROP TABLE ks.t")
        equal({opcode for _, opcode, _ in ask_prepared(c, *[execute(c, one, 1)] * 10)}, {ERROR})


@test
def long_rows_of_a_group_wait_for_memory_one_by_one(cwd):
    """24 answers of 2 MB, of which eight have room in the memory of all connections."""
    (cwd / "ini").write_text("[frond]\nmemory_bytes = 16777216\nrate_window_ms = 86400000\nbody_timeout_ms = 86400000\n")
    with Door(cwd, "--config", cwd / "ini") as door, begin(door) as c:
        for k in range(3):
            c.query(f"INSERT INTO ks.t (k, v) VALUES ({k}, '{'x' * 2000000}')")
        one = prepare(c, "SELECT v FROM ks.t WHERE k = ?")
        for _, opcode, body in ask_prepared(c, *[execute(c, one, n % 3) for n in range(24)]):
            assert opcode == RESULT, body
            equal([len(row["v"]) for row in rows_of(body)], [2000000])
        equal(c.query("SELECT count(*) FROM ks.t"), [{"count": struct.pack(">q", 3)}])


@test
def a_group_that_has_no_memory_for_all_rows_is_read_again(cwd):
    """Rows that are read quickly, each a little, and together more than the memory of all connections."""
    (cwd / "ini").write_text("[frond]\nmemory_bytes = 16777216\nrate_window_ms = 86400000\nbody_timeout_ms = 86400000\n")
    with Door(cwd, "--config", cwd / "ini") as door, begin(door) as c:
        c.query(f"INSERT INTO ks.t (k, v) VALUES (1, '{'x' * 300000}')")
        one = prepare(c, "SELECT v FROM ks.t WHERE k = ?")
        for _, opcode, body in ask_prepared(c, *[execute(c, one, 1)] * 120):
            assert opcode == RESULT, body
            equal([len(row["v"]) for row in rows_of(body)], [300000])
        equal(c.query("SELECT count(*) FROM ks.t"), [{"count": struct.pack(">q", 1)}])


@test
def a_client_that_leaves_is_told_what_its_group_has_read(cwd):
    with Door(cwd) as door:
        with begin(door) as c:
            c.query(insert(1))
            one = prepare(c, "SELECT v FROM ks.t WHERE k = ?")
            c.socket.sendall(b"".join(frame(c, EXECUTE, execute(c, one, 1), n) for n in range(30)))
            c.socket.shutdown(socket.SHUT_WR)
            equal({c.read()[0][3] for _ in range(30)}, {RESULT})
            assert c.ends()
        equal(door.stop(), 0)


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
