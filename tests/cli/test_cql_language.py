#!/usr/bin/env python3
"""Cassandra's door: JSON, GROUP BY, ALTER, user types and lifetimes, as a client of the protocol sees them."""

import json
import struct

from cql_wire import Connection, CqlError
from cql_wire_server import Door
from harness import contains, equal, main, test, until

REPLICATION = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


def session(door):
    c = Connection(door.port)
    c.start()
    c.query(f"CREATE KEYSPACE ks {REPLICATION}")
    c.query("USE ks")
    return c


def texts(rows):
    """The rows of a SELECT JSON."""
    return [json.loads(row["[json]"]) for row in rows]


def numbers(rows):
    """Rows of ints and bigints."""
    return [tuple(None if v is None else int.from_bytes(v, "big", signed=True) for v in row.values()) for row in rows]


def failure(c, text):
    try:
        c.query(text)
    except CqlError as error:
        return error.text
    raise AssertionError(f"{text} has not failed")


@test
def rows_are_written_and_read_as_json(cwd):
    with Door(cwd) as door, session(door) as c:
        c.query("CREATE TABLE t (k int PRIMARY KEY, \"Name\" text, l list<int>, m map<text, int>, s set<text>, d decimal)")
        c.query("""INSERT INTO t JSON '{"k": 1, "\\"Name\\"": "a''b", "l": [3, 1], "m": {"x": 1}, "s": ["b", "a"], "d": 1.50}'""")
        equal(texts(c.query("SELECT JSON * FROM t")),
              [{"k": 1, '"Name"': "a'b", "l": [3, 1], "m": {"x": 1}, "s": ["a", "b"], "d": 1.5}])
        equal(texts(c.query("SELECT JSON k, l FROM t WHERE k = 1")), [{"k": 1, "l": [3, 1]}])
        # What JSON does not name becomes null, unless DEFAULT UNSET is said.
        c.query("""INSERT INTO t JSON '{"k": 1, "d": 2}' DEFAULT UNSET""")
        equal(texts(c.query("SELECT JSON d, l FROM t")), [{"d": 2, "l": [3, 1]}])
        c.query("""INSERT INTO t JSON '{"k": 1}'""")
        equal(texts(c.query("SELECT JSON * FROM t")), [{"k": 1, '"Name"': None, "l": None, "m": None, "s": None, "d": None}])
        c.query("""UPDATE t SET l = fromJson('[7]') WHERE k = 1""")
        equal(c.query("SELECT toJson(l) AS j FROM t"), [{"j": b"[7]"}])
        failure(c, """INSERT INTO t JSON '{"k": 1, "nope": 1}'""")
        failure(c, """INSERT INTO t JSON '{"k": "x"}'""")
        failure(c, "INSERT INTO t JSON '[1]'")
        equal(len(c.query("SELECT k FROM t")), 1)


@test
def groups_are_of_the_beginning_of_the_key(cwd):
    with Door(cwd) as door, session(door) as c:
        c.query("CREATE TABLE t (k int, a int, b int, v int, PRIMARY KEY (k, a, b))")
        for a in range(3):
            for b in range(4):
                c.query(f"INSERT INTO t (k, a, b, v) VALUES (1, {a}, {b}, {10 * a + b})")
        equal(numbers(c.query("SELECT a, count(*), max(v), sum(v) FROM t WHERE k = 1 GROUP BY a")),
              [(0, 4, 3, 6), (1, 4, 13, 46), (2, 4, 23, 86)])
        equal(numbers(c.query("SELECT k, count(*) FROM t GROUP BY k")), [(1, 12)])
        equal(numbers(c.query("SELECT a, b, v FROM t WHERE k = 1 GROUP BY k, a LIMIT 2")), [(0, 0, 0), (1, 0, 10)])
        equal(numbers(c.query("SELECT a, min(v) FROM t WHERE k = 1 AND a > 0 GROUP BY a ORDER BY a DESC")), [(2, 20), (1, 10)])
        for text in ("SELECT b, count(*) FROM t WHERE k = 1 GROUP BY b", "SELECT v, count(*) FROM t WHERE k = 1 GROUP BY v"):
            failure(c, text)


@test
def columns_are_added_dropped_and_renamed(cwd):
    with Door(cwd) as door, session(door) as c:
        c.query("CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
        c.query("INSERT INTO t (k, c, v) VALUES (1, 1, 5)")
        c.query("ALTER TABLE t ADD w int")
        c.query("ALTER TABLE t ADD s int static")
        equal(numbers(c.query("SELECT k, c, s, v, w FROM t")), [(1, 1, None, 5, None)])
        c.query("UPDATE t SET w = 6 WHERE k = 1 AND c = 1")
        c.query("ALTER TABLE t DROP v")
        equal(numbers(c.query("SELECT w FROM t")), [(6,)])
        contains(failure(c, "SELECT v FROM t"), "Undefined column name v")
        # Nothing of the dropped column comes back with another one of its name.
        c.query("ALTER TABLE t ADD v int")
        equal(numbers(c.query("SELECT v, w FROM t")), [(None, 6)])
        c.query("ALTER TABLE t RENAME c TO d")
        equal(numbers(c.query("SELECT d FROM t WHERE k = 1 AND d = 1")), [(1,)])
        for text in ("ALTER TABLE t DROP k", "ALTER TABLE t RENAME w TO x", "ALTER TABLE t ADD w text",
                     "ALTER TABLE nothing ADD w text"):
            failure(c, text)


@test
def user_types_have_fields_that_are_added(cwd):
    with Door(cwd) as door, session(door) as c:
        c.query("CREATE TYPE place (street text, number int)")
        c.query("CREATE TABLE t (k int PRIMARY KEY, home place, work frozen<place>, others list<frozen<place>>)")
        c.query("INSERT INTO t (k, home, work, others) VALUES (1, {street: 'a', number: 1}, {street: 'b'}, [{number: 3}])")
        equal(texts(c.query("SELECT JSON home, work, others FROM t")),
              [{"home": {"street": "a", "number": 1}, "work": {"street": "b", "number": None},
                "others": [{"street": None, "number": 3}]}])
        c.query("UPDATE t SET home.number = 2 WHERE k = 1")
        equal(numbers(c.query("SELECT home.number FROM t")), [(2,)])
        c.query("ALTER TYPE place ADD town text")
        c.query("UPDATE t SET home.town = 'x' WHERE k = 1")
        equal(texts(c.query("SELECT JSON home FROM t")), [{"home": {"street": "a", "number": 2, "town": "x"}}])
        c.query("ALTER TYPE place RENAME street TO road")
        equal(c.query("SELECT home.road FROM t"), [{"home.road": b"a"}])
        failure(c, "DROP TYPE place")
        failure(c, "UPDATE t SET work.number = 2 WHERE k = 1")
        failure(c, "INSERT INTO t (k, home) VALUES (2, {nope: 1})")
        c.query("DROP TABLE t")
        c.query("DROP TYPE place")


@test
def what_has_a_lifetime_ends(cwd):
    with Door(cwd) as door, session(door) as c:
        c.query("CREATE TABLE t (k int PRIMARY KEY, v int, w int)")
        c.query("INSERT INTO t (k, v, w) VALUES (1, 1, 1) USING TTL 1")
        c.query("INSERT INTO t (k, v) VALUES (2, 1) USING TTL 10000")
        c.query("INSERT INTO t (k, v) VALUES (3, 1)")
        c.query("UPDATE t USING TTL 1 SET w = 5 WHERE k = 3")
        (left,), = numbers(c.query("SELECT ttl(v) FROM t WHERE k = 2"))
        assert 9000 < left <= 10000, left
        equal(numbers(c.query("SELECT ttl(v) FROM t WHERE k = 3")), [(None,)])
        until(lambda: numbers(c.query("SELECT k, v, w FROM t")) == [(2, 1, None), (3, 1, None)])
        # A table's own counts for what says nothing else; 0 takes a lifetime away.
        c.query("CREATE TABLE u (k int PRIMARY KEY, v int) WITH default_time_to_live = 1")
        c.query("INSERT INTO u (k, v) VALUES (1, 1)")
        c.query("INSERT INTO u (k, v) VALUES (2, 1) USING TTL 10000")
        until(lambda: numbers(c.query("SELECT k FROM u")) == [(2,)])
        for text in ("INSERT INTO t (k, v) VALUES (1, 1) USING TTL -1", "INSERT INTO t (k, v) VALUES (1, 1) USING TTL 630720001"):
            failure(c, text)
        equal(struct.pack(">i", 2), c.query("SELECT k FROM u")[0]["k"])


@test
def a_deep_type_is_read_again_or_refused(cwd):
    def nested(name, depth):
        return f"CREATE TABLE {name} (k int PRIMARY KEY, v {'tuple<' * depth}int{'>' * depth})"

    with Door(cwd) as door, session(door) as c:
        # Its own text has `frozen` in front of each tuple.
        c.query(nested("deep", 63))
        equal(len(c.query("SELECT type FROM system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 'deep'")), 2)
        contains(failure(c, nested("deeper", 64)), "CQL_DEPTH (64)")
        c.query("CREATE TYPE t0 (a int)")
        for i in range(1, 40):
            c.query(f"CREATE TYPE t{i} (a frozen<t{i - 1}>)")
        c.query("CREATE TYPE chain (a frozen<t39>)")
        # 39 more below t0 would be below all of them.
        c.query("CREATE TYPE s0 (a int)")
        for i in range(1, 39):
            c.query(f"CREATE TYPE s{i} (a frozen<s{i - 1}>)")
        contains(failure(c, "ALTER TYPE t0 ADD b frozen<s38>"), "CQL_DEPTH (64) inside each other")
        c.query("ALTER TYPE t0 ADD b frozen<s10>")
        contains(failure(c, "CREATE TABLE u (k int PRIMARY KEY, v " + "tuple<" * 30 + "chain" + ">" * 30 + ")"), "CQL_DEPTH (64)")


@test
def a_type_whose_parts_multiply_is_refused(cwd):
    with Door(cwd) as door, session(door) as c:
        c.query("CREATE TYPE plain (l list<int>, m map<text, int>)")
        c.query("ALTER TYPE plain ADD s set<int>")
        c.query("CREATE TYPE t0 (a int)")
        for i in range(1, 5):
            c.query(f"CREATE TYPE t{i} ({', '.join(f'f{n} frozen<t{i - 1}>' for n in range(8))})")
        contains(failure(c, f"CREATE TYPE t5 ({', '.join(f'f{n} frozen<t4>' for n in range(8))})"), "CQL_TYPE_PARTS (10000)")
        c.query("CREATE TABLE t (k int PRIMARY KEY, v frozen<t4>)")
        contains(failure(c, f"ALTER TYPE t0 ADD b frozen<tuple<{', '.join(['int'] * 8)}>>"), "CQL_TYPE_PARTS (10000)")
        equal(len(c.query("SELECT type FROM system_schema.columns WHERE keyspace_name = 'ks' AND table_name = 't'")), 2)


@test
def groups_of_several_partitions_are_ordered(cwd):
    with Door(cwd) as door, session(door) as c:
        c.query("CREATE TABLE t (k int, a int, b int, v int, PRIMARY KEY (k, a, b))")
        for k, a, b in ((1, 2, 1), (1, 2, 2), (1, 4, 1), (2, 3, 1), (2, 1, 1), (2, 1, 2)):
            c.query(f"INSERT INTO t (k, a, b, v) VALUES ({k}, {a}, {b}, {10 * k + b})")
        ask = "SELECT k, a, count(*), max(v) FROM t WHERE k IN (1, 2) GROUP BY k, a ORDER BY a DESC"
        equal(numbers(c.query(ask)), [(1, 4, 1, 11), (2, 3, 1, 21), (1, 2, 2, 12), (2, 1, 2, 22)])
        equal(numbers(c.query(ask + ", b DESC LIMIT 2 OFFSET 1")), [(2, 3, 1, 21), (1, 2, 2, 12)])
        equal(numbers(c.query("SELECT max(v) FROM t WHERE k IN (1, 2) ORDER BY a DESC")), [(22,)])
        equal(numbers(c.query("SELECT max(v) FROM t WHERE k IN (8, 9) ORDER BY a DESC")), [(None,)])
        # The last order that is said of a column counts.
        equal(numbers(c.query("SELECT a FROM t WHERE k = 2 GROUP BY k, a ORDER BY a ASC, a DESC")), [(3,), (1,)])
        c.query("CREATE TABLE u (j int, k int, a int, PRIMARY KEY ((j, k), a))")
        contains(failure(c, "SELECT j, max(a) FROM u GROUP BY j"), "only a part of the partition key")
        c.query("SELECT j, max(a) FROM u GROUP BY j, k")
        for where in ("v = 1 ALLOW FILTERING", "k = 1 AND a = 1", "a > 1 ALLOW FILTERING"):
            contains(failure(c, f"SELECT DISTINCT k FROM t WHERE {where}"), "restriction by partition key and/or static columns")


main()
