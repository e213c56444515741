#!/usr/bin/env python3
"""Prepared statements of Cassandra's door: what they see of a schema and of rights that change, wherever they do."""

import random
import struct
import threading

from cql_wire import (AUTH_SUCCESS, ERROR, PREPARE, RESULT, Connection, CqlError, Reader, error_of, rows_of, string,
                      together)
from cql_wire_server import Door
from harness import equal, main, run_threads, test

EXECUTE, BATCH = 0xa, 0xd
INVALID, UNAUTHORIZED, UNPREPARED = 0x2200, 0x2100, 0x2500
KEYSPACE = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


def number(n):
    return struct.pack(">i", n)


def text(value):
    return value.encode()


def values_of(values):
    return struct.pack(">H", len(values)) + b"".join(
        number(-1) if v is None else number(len(v)) + v for v in values)


def prepare(c, statement):
    """The id."""
    answer, body = c.ask(PREPARE, struct.pack(">I", len(statement)) + statement.encode())
    if answer[3] == ERROR:
        raise CqlError(*error_of(answer, body))
    r = Reader(body)
    equal(r.number(">i"), 4)
    return r.take(r.number(">H"))


def execute(c, statement, *values):
    """The rows; none where the answer has none."""
    answer, body = c.ask(EXECUTE, struct.pack(">H", len(statement)) + statement + b"\0\1\1" + values_of(values))
    if answer[3] == ERROR:
        code, message = error_of(answer, body)
        if code == UNPREPARED:
            # Drivers find the statement to prepare again by the id behind the message.
            assert body.endswith(struct.pack(">H", len(statement)) + statement), body
        raise CqlError(code, message)
    return rows_of(body) if struct.unpack(">i", body[:4])[0] == 2 else []


def batch(c, *items):
    """A logged batch of prepared statements, each with its values."""
    body = b"\0" + struct.pack(">H", len(items)) + b"".join(
        b"\1" + struct.pack(">H", len(i)) + i + values_of(v) for i, v in items) + b"\0\1\0"
    answer, got = c.ask(BATCH, body)
    if answer[3] == ERROR:
        raise CqlError(*error_of(answer, got))


def code_of(action, *args):
    """The code of its error, or 0."""
    try:
        action(*args)
    except CqlError as error:
        return error.code
    return 0


class Two:
    """Two connections: what one changes, the other sees."""

    def __init__(self, cwd, *tables):
        self.door = Door(cwd)
        self.tables = tables

    def __enter__(self):
        self.door.__enter__()
        self.a, self.b = Connection(self.door.port), Connection(self.door.port)
        for c in (self.a, self.b):
            c.start()
        self.a.query(KEYSPACE)
        for table in self.tables:
            self.a.query(f"CREATE TABLE ks.{table}")
        return self.a, self.b

    def __exit__(self, *how):
        self.a.socket.close()
        self.b.socket.close()
        return self.door.__exit__(*how)


@test
def another_table_of_the_name_is_seen_at_once_by_all(cwd):
    with Two(cwd, "t (k int PRIMARY KEY, v int)") as (a, b):
        insert = prepare(a, "INSERT INTO ks.t (k, v) VALUES (?, ?)")
        select = prepare(b, "SELECT * FROM ks.t WHERE k = ?")
        update = prepare(b, "UPDATE ks.t SET v = ? WHERE k = ? IF v = ?")
        for c in (a, b):
            execute(c, insert, number(1), number(10))
            equal(execute(c, select, number(1)), [{"k": number(1), "v": number(10)}])
        # The same columns: nobody has to prepare again, and nothing is there.
        a.query("DROP TABLE ks.t")
        for c in (a, b):
            equal([code_of(execute, c, select, number(1)), code_of(execute, c, insert, number(1), number(1))],
                  [INVALID, INVALID])
        a.query("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
        for c in (a, b):
            equal(execute(c, select, number(1)), [])
        execute(b, insert, number(1), number(11))
        for c in (a, b):
            equal(execute(c, select, number(1)), [{"k": number(1), "v": number(11)}])
        a.query("TRUNCATE ks.t")
        equal(execute(b, select, number(1)), [])
        # Other ones: each statement is to be prepared again, at any connection, and then runs.
        b.query("DROP TABLE ks.t")
        b.query("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")
        for c, statement, values in ((a, select, [number(1)]), (b, insert, [number(1), number(1)]),
                                     (a, update, [number(1), number(1), number(1)]), (b, select, [number(1)])):
            equal(code_of(execute, c, statement, *values), UNPREPARED)
        equal(prepare(b, "INSERT INTO ks.t (k, v) VALUES (?, ?)"), insert)
        equal(prepare(a, "SELECT * FROM ks.t WHERE k = ?"), select)
        execute(a, insert, number(1), text("one"))
        equal(execute(b, select, number(1)), [{"k": number(1), "v": text("one")}])


@test
def a_column_that_comes_or_goes_is_seen_at_once_by_all(cwd):
    with Two(cwd, "t (k int PRIMARY KEY, v int)", "o (k int PRIMARY KEY, v int)") as (a, b):
        select, insert = "SELECT * FROM ks.t WHERE k = ?", "INSERT INTO ks.t (k, v) VALUES (?, ?)"
        ids = prepare(a, select), prepare(a, insert)
        other = prepare(a, "INSERT INTO ks.o (k, v) VALUES (?, ?)")
        execute(b, ids[1], number(1), number(10))
        for change, names in (("ADD w int", "kvw"), ("DROP w", "kv"), ("RENAME k TO q", "qv"),
                              ("RENAME q TO k", "kv")):
            b.query(f"ALTER TABLE ks.t {change}")
            equal(code_of(execute, a, ids[0], number(1)), UNPREPARED)
            equal(code_of(batch, b, (other, [number(1), number(1)]), (ids[1], [number(2), number(2)])), UNPREPARED)
            equal(b.query("SELECT * FROM ks.o"), [])
            prepare(b, select.replace("k =", f"{names[0]} ="))
            if names[0] == "k":
                equal((prepare(b, select), prepare(a, insert)), ids)
                row, = execute(a, ids[0], number(1))
                equal((sorted(row), row["v"]), (sorted(names), number(10)))
        batch(b, (other, [number(1), number(1)]), (ids[1], [number(2), number(2)]))
        equal(len(execute(a, ids[0], number(2))), 1)


@test
def what_does_not_change_its_columns_is_followed_without_preparing_again(cwd):
    with Two(cwd, "t (k int PRIMARY KEY, a int, b int)") as (a, b):
        by_value = prepare(a, "SELECT k FROM ks.t WHERE a = ?")
        insert = prepare(a, "INSERT INTO ks.t (k, a) VALUES (?, ?)")
        ttl = prepare(a, "SELECT ttl(a) FROM ks.t WHERE k = ?")
        batch(b, (insert, [number(1), number(7)]), (insert, [number(2), number(8)]))
        for _ in range(2):
            for c in (a, b):
                equal(code_of(execute, c, by_value, number(7)), INVALID)
            b.query("CREATE INDEX ia ON ks.t (a)")
            for c in (a, b):
                equal(execute(c, by_value, number(7)), [{"k": number(1)}])
            a.query("DROP INDEX ks.ia")
        equal(execute(b, ttl, number(1)), [{"ttl(a)": None}])
        a.query("ALTER TABLE ks.t WITH default_time_to_live = 1000")
        execute(b, insert, number(3), number(9))
        row, = execute(b, ttl, number(3))
        assert row["ttl(a)"] is not None, row
        # So do changes of other tables, and statements that are many at a time.
        b.query("CREATE TABLE ks.other (k int PRIMARY KEY)")
        b.query("DROP TABLE ks.other")
        equal(execute(a, prepare(a, "SELECT a FROM ks.t WHERE k = ?"), number(3)), [{"a": number(9)}])
        batch(a, *((insert, [number(n), number(n)]) for n in range(100, 120)))
        equal(len(b.query("SELECT k FROM ks.t")), 23)


@test
def a_user_type_that_changes_is_seen_at_once_by_all(cwd):
    with Two(cwd) as (a, b):
        a.query("CREATE TYPE ks.y (a int)")
        a.query("CREATE TABLE ks.t (k int PRIMARY KEY, v frozen<y>)")
        a.query("INSERT INTO ks.t (k, v) VALUES (1, {a: 5})")
        select = prepare(a, "SELECT v FROM ks.t WHERE k = ?")
        insert = prepare(b, "INSERT INTO ks.t (k, v) VALUES (?, ?)")
        answer, body = b.ask(EXECUTE, struct.pack(">H", 16) + select + b"\0\1\1" + values_of([number(1)]))
        equal((answer[3], b"\0\1a\0\x09" in body, b"\0\1b\0\x09" in body), (8, True, False))
        b.query("ALTER TYPE ks.y ADD b int")
        for c in (a, b):
            answer, body = c.ask(EXECUTE, struct.pack(">H", 16) + select + b"\0\1\1" + values_of([number(1)]))
            equal((answer[3], b"\0\1b\0\x09" in body), (8, True))
        execute(a, insert, number(2), number(4) + number(1) + number(4) + number(2))


@test
def a_right_that_is_taken_away_is_gone_at_once_at_all_connections(cwd):
    with Door(cwd, env={"FROND_ADMIN": "root:secret"}) as door:
        root, *joes = connections = [Connection(door.port) for _ in range(3)]
        for c in connections:
            c.start()
        equal(root.login("root", "secret"), AUTH_SUCCESS)
        root.query(KEYSPACE)
        root.query("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
        root.query("CREATE ROLE joe WITH PASSWORD = 'joe' AND LOGIN = true")
        for c in joes:
            equal(c.login("joe", "joe"), AUTH_SUCCESS)
        statements = {"MODIFY": "INSERT INTO ks.t (k, v) VALUES (?, ?)", "SELECT": "SELECT * FROM ks.t WHERE k = ?"}
        ids = {right: prepare(root, statement) for right, statement in statements.items()}
        values = {"MODIFY": [number(1), number(1)], "SELECT": [number(1)]}
        for right, statement in statements.items():
            for _ in range(2):
                for c in joes:
                    equal(code_of(execute, c, ids[right], *values[right]), UNAUTHORIZED)
                    equal(code_of(prepare, c, statement), UNAUTHORIZED)
                root.query(f"GRANT {right} ON ks.t TO joe")
                for c in joes:
                    execute(c, ids[right], *values[right])
                    if right == "MODIFY":
                        batch(c, (ids[right], values[right]))
                root.query(f"REVOKE {right} ON ks.t FROM joe")
                for c in joes:
                    equal(code_of(execute, c, ids[right], *values[right]), UNAUTHORIZED)
                    if right == "MODIFY":
                        equal(code_of(batch, c, (ids[right], values[right])), UNAUTHORIZED)
        for c in connections:
            c.socket.close()


@test
def a_statement_is_of_the_keyspace_that_it_was_prepared_in(cwd):
    with Two(cwd, "t (k int PRIMARY KEY)") as (a, b):
        a.query(KEYSPACE.replace("ks", "other"))
        a.query("CREATE TABLE other.t (k int PRIMARY KEY, v int)")
        a.query("INSERT INTO other.t (k, v) VALUES (1, 2)")
        a.query("USE ks")
        b.query("USE other")
        ids = [prepare(c, "SELECT * FROM t WHERE k = ?") for c in (a, b)]
        assert ids[0] != ids[1]
        b.query("USE ks")
        for c in (b, a):
            equal([execute(c, i, number(1)) for i in ids], [[], [{"k": number(1), "v": number(2)}]])


@test
def values_of_one_run_leave_nothing_to_the_next(cwd):
    tables = ("t (k int, c int, v int, m map<text, int>, l list<int>, j jsonb, s int STATIC, PRIMARY KEY (k, c))",)
    with Two(cwd, *tables) as (a, b):
        as_json = prepare(a, "INSERT INTO ks.t JSON ?")
        execute(a, as_json, text('{"k": 1, "c": 1, "v": 1, "l": [1, 2]}'))
        execute(b, as_json, text('{"k": 1, "c": 2, "m": {"a": 1}, "j": {"a": {"x": 1}, "b": [5, 6]}}'))
        execute(a, as_json, text('{"k": 1, "c": 3, "s": 9}'))
        equal(code_of(execute, a, as_json, text('{"k": 1, "c": 4, "w": 9}')), INVALID)
        rows = prepare(a, "SELECT c, v, s FROM ks.t WHERE k = ? AND c IN ?")

        def some(c, *wanted):
            got = execute(c, rows, number(1), number(len(wanted)) + b"".join(number(4) + number(n) for n in wanted))
            return [(r["c"], r["v"], r["s"]) for r in got]

        for c in (a, b, a):
            equal(some(c, 3, 1, 1), [(number(1), number(1), number(9)), (number(3), None, number(9))])
            equal(some(c), [])
            equal(some(c, 2), [(number(2), None, number(9))])
        at = prepare(b, "UPDATE ks.t SET j->? = ? WHERE k = ? AND c = ? IF j->?->>? = ?")
        applied = [execute(c, at, text(key), text(value), number(1), number(2), text("a"), text("x"), text(want))
                   for c, key, value, want in ((a, "c", "7", "1"), (b, "d", "8", "2"), (b, "a", '{"x": 2}', "1"),
                                               (a, "d", "9", "1"), (a, "d", "9", "2"))]
        equal([r[0]["[applied]"] for r in applied], [b"\1", b"\0", b"\1", b"\0", b"\1"])
        row, = b.query("SELECT j FROM ks.t WHERE k = 1 AND c = 2")
        equal(row["j"], b'{"a":{"x":2},"b":[5,6],"c":7,"d":9}')
        element = prepare(a, "UPDATE ks.t SET m[?] = ?, l[?] = ? WHERE k = ? AND c = ?")
        execute(a, as_json, text('{"k": 1, "c": 5, "l": [1, 2], "m": {"a": 1}}'))
        for key, value, index in (("b", 2, 0), ("c", 3, 1)):
            execute(b, element, text(key), number(value), number(index), number(value), number(1), number(5))
        row, = b.query("SELECT m, l FROM ks.t WHERE k = 1 AND c = 5")
        equal(row["l"], number(2) + number(4) + number(2) + number(4) + number(3))
        equal(row["m"][:4], number(3))


@test
def conditional_statements_follow_the_schema_whether_prepared_or_not(cwd):
    with Two(cwd, "t (k int PRIMARY KEY, v int)") as (a, b):
        new = prepare(a, "INSERT INTO ks.t (k, v) VALUES (1, ?) IF NOT EXISTS")
        for turn, (c, d) in enumerate(((a, b), (b, a))):
            equal(execute(c, new, number(5))[0]["[applied]"], b"\1")
            refused, = execute(d, new, number(6))
            equal(refused, {"[applied]": b"\0", "k": number(1), "v": number(5)})
            row, = d.query("UPDATE ks.t SET v = 7 WHERE k = 1 IF v = 5")
            equal(row, {"[applied]": b"\1"})
            row, = c.query("UPDATE ks.t SET v = 7 WHERE k = 1 IF v = 5")
            equal(row, {"[applied]": b"\0", "v": number(7)})
            equal(c.code("UPDATE ks.t SET v = 7 WHERE k = 1 IF w = 5"), INVALID)
            d.query("DROP TABLE ks.t" if not turn else "ALTER TABLE ks.t ADD w int")
            if not turn:
                c.query("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
        equal(code_of(execute, a, new, number(5)), UNPREPARED)
        row, = b.query("UPDATE ks.t SET v = 8 WHERE k = 1 IF w = null")
        equal(row, {"[applied]": b"\1"})
        equal(prepare(b, "INSERT INTO ks.t (k, v) VALUES (1, ?) IF NOT EXISTS"), new)
        equal(execute(a, new, number(5)), [{"[applied]": b"\0", "k": number(1), "v": number(8), "w": None}])


@test
def many_run_one_statement_while_the_schema_changes(cwd):
    clients, turns, keys = 6, 150, 16
    with Two(cwd, "t (k int PRIMARY KEY, v int)") as (a, b):
        ids = [prepare(a, statement) for statement in (
            "INSERT INTO ks.t (k, v) VALUES (?, ?)", "SELECT v FROM ks.t WHERE k = ?",
            "UPDATE ks.t SET v = ? WHERE k = ? IF v = ?")]
        for key in range(keys):
            execute(a, ids[0], number(key), number(key))
        failures = []

        def work(seed):
            draw = random.Random(seed)
            try:
                with Connection(b.socket.getpeername()[1]) as c:
                    c.start()
                    for _ in range(turns):
                        key = draw.randrange(keys)
                        execute(c, ids[0], number(key), number(key))
                        equal(execute(c, ids[1], number(key)), [{"v": number(key)}])
                        row, = execute(c, ids[2], number(key), number(key), number(key))
                        equal(row, {"[applied]": b"\1"})
            except Exception as error:  # whatever it is, the test tells it
                failures.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(clients)]
        for thread in threads:
            thread.start()
        changes = 0
        while any(thread.is_alive() for thread in threads):
            b.query(f"ALTER TABLE ks.t WITH comment = '{changes}'")
            changes += 1
        for thread in threads:
            thread.join()
        equal(failures, [])
        assert changes > 10, changes


@test
def one_that_others_prepare_again_is_never_missing(cwd):
    turns, at_once = 30, 500
    with Two(cwd, "t (k int PRIMARY KEY, v int)") as (_, b):
        statement = "SELECT v FROM ks.t WHERE k = ?"
        one = prepare(b, statement)
        again = PREPARE, struct.pack(">I", len(statement)) + statement.encode()
        run = EXECUTE, struct.pack(">H", len(one)) + one + b"\0\1\1" + values_of([number(1)])

        def work(frame):
            with Connection(b.socket.getpeername()[1]) as c:
                c.start()
                for _ in range(turns):
                    equal({opcode for opcode, _ in together(c, *[frame] * at_once)}, {RESULT})

        run_threads(*(lambda frame=frame: work(frame) for frame in (again, run) * 2))


main()
