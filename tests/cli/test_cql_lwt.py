#!/usr/bin/env python3
"""Conditional statements that meet at one partition: transactions that they share, and what neighbours do not feel."""

import random
import signal
import socket
import struct

from cql_wire import (AUTH_SUCCESS, ERROR, PREPARE, QUERY, RESULT, Connection, CqlError, error_of, rows_of,
                      together)
from cql_wire_server import Door
from harness import contains, equal, main, ok, run_threads, test, until

EXECUTE = 0xa
INVALID, UNAUTHORIZED, UNPREPARED = 0x2200, 0x2100, 0x2500
REPLICATION = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
APPLIED, REFUSED = b"\1", b"\0"
CLIENTS = 12
LINGER = socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)  # closing is a reset


def begin(door, *tables):
    c = Connection(door.port)
    c.start()
    c.query(f"CREATE KEYSPACE IF NOT EXISTS ks {REPLICATION}")
    for table in tables or ["ks.t (k int PRIMARY KEY, n int, v text)"]:
        c.query(f"CREATE TABLE IF NOT EXISTS {table}")
    return c


def another(door):
    c = Connection(door.port)
    c.start()
    return c


def number(value):
    return struct.unpack(">i", value)[0]


class Prepared:
    def __init__(self, c, text):
        _, body = c.ask(PREPARE, struct.pack(">I", len(text)) + text.encode())
        self.c, self.id = c, body[4:6 + struct.unpack(">H", body[4:6])[0]]

    def body(self, *values):
        encoded = b"".join(struct.pack(">ii", 4, v) if isinstance(v, int) else struct.pack(">i", len(v)) + v.encode()
                           for v in values)
        return self.id + struct.pack(">HBH", 1, 1, len(values)) + encoded

    def __call__(self, *values):
        answer, body = self.c.ask(EXECUTE, self.body(*values))
        if answer[3] == ERROR:
            raise CqlError(*error_of(answer, body))
        return rows_of(body)[0]


def ask_all(c, texts):
    return together(c, *((QUERY, c.query_body(text)) for text in texts))


def rows_told(answers):
    for opcode, body in answers:
        assert opcode == RESULT, body
    return [rows_of(body)[0] for _, body in answers]


def shared(door):
    counted = door.metrics()
    return counted["frond_cql_shared_statements_total"], counted["frond_cql_shared_transactions_total"]


def count_up(c, times, key=1):
    """Adds 1 by conditions until that has been applied so often; how often it was."""
    update = Prepared(c, "UPDATE ks.t SET n = ? WHERE k = ? IF n = ?")
    n = number(c.query(f"SELECT n FROM ks.t WHERE k = {key}")[0]["n"])
    done = 0
    while done < times:
        row = update(n + 1, key, n)
        if row["[applied]"] == APPLIED:
            done += 1
            n += 1
        else:
            n = number(row["n"])
    return done


@test
def a_condition_sees_that_its_row_is_there_whatever_column_makes_it(cwd):
    """A condition reads the columns that it names; the row may be there by others, before or behind them."""
    with Door(cwd) as door, begin(door, "ks.r (k int PRIMARY KEY, a int, b int, c int, l list<int>)",
                                  "ks.s (k int, i int, a int, b int, s int STATIC, PRIMARY KEY (k, i))") as c:
        for k, column in ((1, "a"), (2, "b"), (3, "c")):
            c.query(f"UPDATE ks.r SET {column} = 5 WHERE k = {k}")
        c.query("INSERT INTO ks.r (k) VALUES (4)")
        c.query("UPDATE ks.r SET l = [7, 8] WHERE k = 5")
        five, none = struct.pack(">i", 5), None
        for k in range(1, 6):
            # Of a row that is there a refusal tells the columns; all of them where it was not to be there.
            have = {1: "a", 2: "b", 3: "c"}.get(k)
            equal(c.query(f"UPDATE ks.r SET a = 1 WHERE k = {k} IF b = 6"),
                  [{"[applied]": REFUSED, "b": five if have == "b" else none}])
            equal(c.query(f"DELETE FROM ks.r WHERE k = {k} IF c = 6 AND a = 6 AND c = 7"),
                  [{"[applied]": REFUSED, "a": five if have == "a" else none, "c": five if have == "c" else none}])
            told, = c.query(f"INSERT INTO ks.r (k, a) VALUES ({k}, 1) IF NOT EXISTS")
            equal((told["[applied]"], told["k"], told["a"], told["b"], told["c"], told["l"] is not None),
                  (REFUSED, struct.pack(">i", k), *(five if have == x else none for x in "abc"), k == 5))
            equal(c.query(f"UPDATE ks.r SET b = 9 WHERE k = {k} IF EXISTS"), [{"[applied]": APPLIED}])
            equal(c.query(f"DELETE FROM ks.r WHERE k = {k} IF b = 9 AND a = {5 if have == 'a' else 'null'}"),
                  [{"[applied]": APPLIED}])
            for condition in ("EXISTS", "b = 9"):
                equal(c.query(f"UPDATE ks.r SET b = 9 WHERE k = {k} IF {condition}"), [{"[applied]": REFUSED}])
            equal(c.query(f"UPDATE ks.r SET c = 1 WHERE k = {k} IF b = null AND l = null"), [{"[applied]": APPLIED}])
        c.query("UPDATE ks.s SET s = 5 WHERE k = 1")
        c.query("UPDATE ks.s SET b = 5 WHERE k = 2 AND i = 1")
        equal(c.query("UPDATE ks.s SET a = 1 WHERE k = 1 AND i = 1 IF EXISTS"), [{"[applied]": REFUSED}])
        equal(c.query("UPDATE ks.s SET a = 1 WHERE k = 1 AND i = 1 IF a = 2"), [{"[applied]": REFUSED, "a": none}])
        equal(c.query("UPDATE ks.s SET a = 1 WHERE k = 2 AND i = 1 IF a = null AND s = null"), [{"[applied]": APPLIED}])
        equal(c.query("UPDATE ks.s SET s = 6 WHERE k = 1 IF s = 5"), [{"[applied]": APPLIED}])


@test
def whether_a_long_row_is_there_is_told_beside_what_it_has(cwd):
    """IF EXISTS reads the beginning of a packed row, others read all of it; in tables with leaves and without."""
    with Door(cwd) as door, begin(door, "ks.whole (k int PRIMARY KEY, a text, b text)",
                                  "ks.t (k int PRIMARY KEY, a text, b text)") as c:
        for table in ("ks.whole", "ks.t"):
            def touch(k, table=table):
                return c.query(f"DELETE FROM {table} WHERE k = {k + 100} IF EXISTS")[0]["[applied]"], \
                    c.query(f"UPDATE {table} SET b = 'x' WHERE k = {k} IF EXISTS")[0]["[applied]"]

            def row(k, table=table):
                return [(one["a"], one["b"]) for one in c.query(f"SELECT a, b FROM {table} WHERE k = {k}")]

            for k in range(4):
                for n in (k, k + 100):
                    c.query(f"INSERT INTO {table} (k, a, b) VALUES ({n}, '{str(k) * 900}', 'b')")
            if table == "ks.whole":
                equal(c.query(f"DELETE FROM {table} WHERE k = 103 IF EXISTS")[0]["[applied]"], APPLIED)
                equal(c.query(f"DELETE FROM {table} WHERE k = 103 IF EXISTS")[0]["[applied]"], REFUSED)
                equal(row(102), [(b"2" * 900, b"b")])
                continue
            for k in range(3):
                equal(touch(k), (APPLIED, APPLIED))
                equal(row(k), [(str(k).encode() * 900, b"x")])
                equal(touch(k), (REFUSED, APPLIED))
            c.query(f"INSERT INTO {table} (k, a, b) VALUES (0, '{'n' * 2000}', 'new')")
            equal(touch(0), (REFUSED, APPLIED))
            equal(row(0), [(b"n" * 2000, b"x")])
            c.query(f"INSERT INTO {table} (k, a, b) VALUES (0, 's', 'short')")
            equal(touch(0), (REFUSED, APPLIED))
            equal(row(0), [(b"s", b"x")])
            c.query(f"DELETE FROM {table} WHERE k = 1")
            equal(touch(1), (REFUSED, REFUSED))
            c.query(f"INSERT INTO {table} (k, a, b) VALUES (1, '{'t' * 900}', 'life') USING TTL 1")
            until(lambda: c.query("DELETE b FROM ks.t WHERE k = 1 IF EXISTS")[0]["[applied]"] == REFUSED)


@test
def counters_under_conditions_lose_nothing(cwd):
    with Door(cwd) as door, begin(door) as c:
        for k in (1, 2):
            c.query(f"INSERT INTO ks.t (k, n) VALUES ({k}, 0)")
        clients = [another(door) for _ in range(CLIENTS)]
        run_threads(*(lambda one=one, i=i: count_up(one, 20, 1 + i % 2) for i, one in enumerate(clients)))
        equal([number(row["n"]) for row in c.query("SELECT n FROM ks.t")], [10 * CLIENTS, 10 * CLIENTS])
        statements, transactions = shared(door)
        assert statements >= 2 * transactions > 0, (statements, transactions)
        for one in clients:
            one.socket.close()
        equal(door.stop(), 0)


@test
def each_sees_what_those_before_it_have_written(cwd):
    """Of one connection, prepared and as texts, which take the same lanes."""
    with Door(cwd) as door, begin(door) as c:
        c.query("INSERT INTO ks.t (k, n) VALUES (1, 0)")
        exists = Prepared(c, "UPDATE ks.t SET v = ? WHERE k = ? IF EXISTS")
        insert = Prepared(c, "INSERT INTO ks.t (k, v) VALUES (?, ?) IF NOT EXISTS")
        frames = [(EXECUTE, exists.body(f"v{i}", 1)) for i in range(30)]
        frames += [(EXECUTE, insert.body(1, f"w{i}")) for i in range(30)]
        frames += [(QUERY, c.query_body(f"DELETE FROM ks.t WHERE k = 2 IF v = 'x{i}'")) for i in range(30)]
        told = rows_told(together(c, *frames))
        equal({row["[applied]"] for row in told[:30]}, {APPLIED})
        equal({row["[applied]"] for row in told[30:]}, {REFUSED})
        assert {row["v"] for row in told[30:60]} <= {None, *(f"v{i}".encode() for i in range(30))}
        # Of many that want a row that is not there, one gets it, and all others are told of that one.
        told = rows_told(together(c, *((EXECUTE, insert.body(7, f"w{i}")) for i in range(100))))
        applied = [i for i, row in enumerate(told) if row["[applied]"] == APPLIED]
        equal(len(applied), 1)
        equal({row["v"] for row in told if row["[applied]"] == REFUSED}, {f"w{applied[0]}".encode()})
        assert shared(door)[0] > 0


@test
def conditions_on_a_row_that_others_write_without_any_lose_nothing(cwd):
    """A write without a condition conflicts with a group that has read the row, which is run again."""
    with Door(cwd) as door, begin(door) as c:
        for k in range(CLIENTS):
            c.query(f"INSERT INTO ks.t (k, n) VALUES ({k}, 0)")
        clients, ended = [another(door) for _ in range(CLIENTS + 1)], []

        def write():
            update = Prepared(clients[CLIENTS], "UPDATE ks.t SET v = ? WHERE k = 0")
            while len(ended) < CLIENTS - 1:
                answers = together(clients[CLIENTS], *((EXECUTE, update.body("x")) for _ in range(30)))
                for opcode, body in answers:
                    equal((opcode, body if opcode != RESULT else b""), (RESULT, b""))

        def count(one, k):
            try:
                count_up(one, 10, k)
            finally:
                ended.append(k)
        run_threads(write, *(lambda one=one, k=k: count(one, k) for k, one in enumerate(clients[1:CLIENTS], 1)),
                    lambda: count_up(clients[0], 5, 0))
        equal(sorted((number(row["k"]), number(row["n"])) for row in c.query("SELECT k, n FROM ks.t")),
              [(0, 5), *((k, 10) for k in range(1, CLIENTS))])
        equal(door.stop(), 0)


@test
def one_that_fails_leaves_its_neighbours_alone(cwd):
    with Door(cwd) as door, begin(
            door, "ks.t (k int, c int, s int static, u text, n int, PRIMARY KEY (k, c))") as c:
        c.query("CREATE UNIQUE INDEX ON ks.t (u)")
        c.query("INSERT INTO ks.t (k, c, u, n) VALUES (0, 0, 'taken', 0)")
        c.query("INSERT INTO ks.t (k, c, u, n) VALUES (1, 1, 'free', 0)")
        wrong = {
            # Found when it is compiled; when it is computed; when it has written a static column already.
            "UPDATE ks.t SET n = 'x' WHERE k = 1 AND c = 1 IF EXISTS": INVALID,
            "UPDATE ks.t SET n = 1 WHERE k = 1 AND c = 1 IF nope = 1": INVALID,
            "UPDATE ks.t SET n = 1 WHERE k = 1 AND c = 1 IF n < null": INVALID,
            "UPDATE ks.t SET s = 1000, u = 'taken' WHERE k = 1 AND c = 1 IF EXISTS": INVALID,
        }
        texts, expected = [], []
        for i in range(25):
            for text, code in wrong.items():
                texts += [f"UPDATE ks.t SET s = {i} WHERE k = 1 AND c = 1 IF EXISTS", text]
                expected += [0, code]
        for (opcode, body), code, text in zip(ask_all(c, texts), expected, texts):
            if code:
                equal(error_of((0, 0, 0, opcode), body)[0], code)
            else:
                assert opcode == RESULT, (text, body)
                equal(rows_of(body)[0]["[applied]"], APPLIED)
        row = c.query("SELECT s, u, n FROM ks.t WHERE k = 1")[0]
        assert number(row["s"]) < 25, row
        equal((row["u"], number(row["n"])), (b"free", 0))
        # A table that has changed is one statement's matter, too.
        stale = Prepared(c, "UPDATE ks.t SET n = ? WHERE k = ? AND c = ? IF EXISTS")
        c.query("ALTER TABLE ks.t ADD more int")
        frames = [(EXECUTE, stale.body(5, 1, 1)),
                  (QUERY, c.query_body("UPDATE ks.t SET s = 26 WHERE k = 1 AND c = 1 IF EXISTS"))] * 10
        answers = together(c, *frames)
        equal({error_of((0, 0, 0, opcode), body)[0] for opcode, body in answers[::2]}, {UNPREPARED})
        equal({row["[applied]"] for row in rows_told(answers[1::2])}, {APPLIED})
        equal(number(c.query("SELECT n FROM ks.t WHERE k = 1")[0]["n"]), 0)


@test
def what_is_special_in_a_table_is_so_in_a_group(cwd):
    tables = ("ks.t (k int PRIMARY KEY, l list<int>, m map<int, int>, v text)",
              "ks.p (k int, c int, s int static, v text, PRIMARY KEY (k, c)) WITH history_seconds = 3600")
    with Door(cwd) as door, begin(door, *tables) as c:
        c.query("CREATE INDEX ON ks.p (v)")
        c.query("INSERT INTO ks.t (k, l) VALUES (1, [])")
        c.query("INSERT INTO ks.t (k, v) VALUES (1, 'x')")
        # Each element of a list has a place of its own.
        ask = [f"UPDATE ks.t SET l = l + [{i}], m[{i}] = {i} WHERE k = 1 IF EXISTS" for i in range(60)]
        equal({row["[applied]"] for row in rows_told(ask_all(c, ask))}, {APPLIED})
        row = c.query("SELECT l, m FROM ks.t WHERE k = 1")[0]
        equal([number(row[name][:4]) for name in ("l", "m")], [60, 60])
        equal(sorted(struct.unpack(">" + "ii" * 60, row["l"][4:])[1::2]), list(range(60)))
        # Rows, static columns, entries of an index, lives, in one partition.
        told = rows_told(ask_all(c, [
            f"INSERT INTO ks.p (k, c, s, v) VALUES (1, {i % 40}, {i}, 'v{i % 40}') IF NOT EXISTS USING TTL {1000 + i}"
            for i in range(80)]))
        equal([row["[applied]"] for row in told].count(APPLIED), 40)
        told = rows_told(ask_all(c, [f"UPDATE ks.p SET v = 'w{i}' WHERE k = 1 AND c = {i} IF v = 'v{i}'"
                                     for i in range(40)]))
        equal({row["[applied]"] for row in told}, {APPLIED})
        for i in (0, 17, 39):
            equal([number(row["c"]) for row in c.query(f"SELECT c FROM ks.p WHERE v = 'w{i}'")], [i])
            equal(c.query(f"SELECT c FROM ks.p WHERE v = 'v{i}'"), [])
            left = number(c.query(f"SELECT TTL(s) AS left FROM ks.p WHERE k = 1 AND c = {i}")[0]["left"])
            assert 500 < left <= 1080, left
        told = rows_told(ask_all(c, [f"DELETE FROM ks.p WHERE k = 1 AND c = {i} IF EXISTS" for i in range(40)] * 2))
        equal([row["[applied]"] for row in told].count(APPLIED), 40)
        # A statement that tells failures as rows.
        told = rows_told(ask_all(c, [f"UPDATE ks.t SET v = 'y' WHERE k = {i % 2} IF EXISTS RETURNS STATUS AS ROW"
                                     for i in range(40)]))
        equal([row["[applied]"] for row in told], [REFUSED, APPLIED] * 20)
        assert shared(door)[0] > 0
        equal(door.stop(), 0)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_long_answer_and_long_values_find_their_room(cwd):
    """The answers have no room in a group's, and 200 values none in one transaction."""
    long = "y" * 80000
    with Door(cwd) as door, begin(door) as c:
        c.query(f"INSERT INTO ks.t (k, n, v) VALUES (1, 0, '{long}')")
        told = rows_told(ask_all(c, ["INSERT INTO ks.t (k, n) VALUES (1, 1) IF NOT EXISTS"] * 40))
        equal({(row["[applied]"], row["v"]) for row in told}, {(REFUSED, long.encode())})
        clients = [another(door) for _ in range(CLIENTS)]

        def write(one, i):
            for j in range(8):
                text = f"UPDATE ks.t SET v = '{long}{i}-{j}' WHERE k = 1 IF n = 0"
                equal(one.query(text)[0]["[applied]"], APPLIED)
        run_threads(*(lambda one=one, i=i: write(one, i) for i, one in enumerate(clients)))
        assert c.query("SELECT v FROM ks.t WHERE k = 1")[0]["v"].endswith(b"-7")


@test
def clients_that_leave_in_the_middle_keep_nobody_waiting(cwd):
    with Door(cwd) as door, begin(door) as c:
        c.query("INSERT INTO ks.t (k, n) VALUES (1, 0)")
        done = []

        def leave():
            for _ in range(20):
                with another(door) as one:
                    count = random.randrange(1, 20)
                    frames = [(QUERY, one.query_body("UPDATE ks.t SET v = 'left' WHERE k = 1 IF EXISTS"))] * count
                    one.socket.sendall(b"".join(struct.pack(">BBhBI", 4, 0, n, opcode, len(body)) + body
                                                for n, (opcode, body) in enumerate(frames)))
                    if random.random() < 0.5:
                        one.socket.setsockopt(*LINGER)

        clients = [another(door) for _ in range(4)]
        run_threads(leave, leave, leave, *(lambda one=one: done.append(count_up(one, 30)) for one in clients))
        equal(number(c.query("SELECT n FROM ks.t WHERE k = 1")[0]["n"]), sum(done))
        equal(sum(done), 120)
        until(lambda: door.metrics()["frond_fibers"] < 12)
        equal(door.stop(), 0)


def race_until(door, end):
    """Clients that add to one row until `end()` has ended the server: how many were told so, and how many not."""
    acknowledged, unknown = [0] * CLIENTS, [0] * CLIENTS

    def race(i, one):
        n = 0
        try:
            update = Prepared(one, "UPDATE ks.t SET n = ? WHERE k = ? IF n = ?")
            while True:
                unknown[i] = 1
                row = update(n + 1, 1, n)
                unknown[i] = 0
                acknowledged[i] += row["[applied]"] == APPLIED
                n = n + 1 if row["[applied]"] == APPLIED else number(row["n"])
        except (OSError, EOFError, CqlError):
            pass

    clients = [another(door) for _ in range(CLIENTS)]

    def stop():
        until(lambda: sum(acknowledged) > 50)
        end()
    run_threads(stop, *(lambda i=i, one=one: race(i, one) for i, one in enumerate(clients)))
    return sum(acknowledged), sum(unknown)


@test
def what_was_told_is_there_after_a_kill_and_after_a_stop(cwd):
    with Door(cwd) as door, begin(door) as c:
        c.query("INSERT INTO ks.t (k, n) VALUES (1, 0)")
    total = [0, 0]
    for number_ in (signal.SIGKILL, signal.SIGTERM):
        with Door(cwd) as door:
            told, unknown = race_until(door, lambda: door.stop(number_))
            equal(door.stop_code, 0 if number_ == signal.SIGTERM else -signal.SIGKILL)
        total = [total[0] + told, total[1] + unknown]
    with Door(cwd) as door, another(door) as c:
        n = number(c.query("SELECT n FROM ks.t WHERE k = 1")[0]["n"])
        assert total[0] <= n <= sum(total), (n, total)


@test
def each_has_the_rights_of_its_own_person(cwd):
    with Door(cwd, env={"FROND_ADMIN": "root:secret"}) as door:
        root, guest = another(door), another(door)
        equal(root.login("root", "secret"), AUTH_SUCCESS)
        root.query(f"CREATE KEYSPACE ks {REPLICATION}")
        root.query("CREATE TABLE ks.t (k int PRIMARY KEY, n int, v text)")
        root.query("INSERT INTO ks.t (k, n) VALUES (1, 0)")
        root.query("CREATE ROLE guest WITH PASSWORD = 'guest' AND LOGIN = true")
        root.query("GRANT SELECT ON ks.t TO guest")
        equal(guest.login("guest", "guest"), AUTH_SUCCESS)

        def may(n):
            told = rows_told(ask_all(root, [f"UPDATE ks.t SET v = 'root{i}' WHERE k = 1 IF EXISTS" for i in range(n)]))
            equal({row["[applied]"] for row in told}, {APPLIED})

        def may_not(n):
            for opcode, body in ask_all(guest, [f"UPDATE ks.t SET v = 'guest{i}' WHERE k = 1 IF EXISTS"
                                                for i in range(n)]):
                equal(error_of((0, 0, 0, opcode), body)[0], UNAUTHORIZED)
        run_threads(lambda: may(100), lambda: may_not(100))
        assert root.query("SELECT v FROM ks.t WHERE k = 1")[0]["v"].startswith(b"root")
        for one in (root, guest):
            one.socket.close()


main()
