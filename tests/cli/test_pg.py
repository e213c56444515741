#!/usr/bin/env python3
"""PostgreSQL with its tables in frond: the extension, by psql."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import pathlib

from harness import FROND, Server, contains, equal, main, seed, test, until
from pg_server import EXTENSION, OWNER, TOP, Failure, end_shared, fresh, missing, shared
from rows_server import Door

# ---- Tables ----

@test
def the_five_minutes_of_the_page_run_as_printed(cwd):
    page = (TOP / "docs/SQL.md").read_text()
    block = re.search(r"```psql\n(.*?)```", page, re.S).group(1)
    statements, printed = [], []
    for line in block.splitlines():
        if found := re.match(r"postgres=\*?# (.*)", line):
            statements.append(found[1])
            printed.append([])
        elif line.startswith("postgres-# "):
            statements[-1] += "\n" + line[len("postgres-# "):]
        else:
            printed[-1].append(line)
    assert len(statements) > 10
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = pathlib.Path(tempfile.mkdtemp(prefix="frond-pgrun-"))
    home.chmod(0o755)
    shared()
    try:
        text = "".join(f"{statement}\n\\echo --next--\n" for statement in statements)
        got = subprocess.run([TOP / "pg/run", FROND, EXTENSION, home / "dir", "-X"], input=text,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                             env={**os.environ, "ROWS": f"127.0.0.1:{port}", "HTTP": "127.0.0.1:0"})
        parts = got.stdout.split("--next--\n")
        equal(len(parts) - 1, len(statements))
        for statement, part, expected in zip(statements, parts, printed):
            lines = [line.rstrip() for line in part.splitlines()]
            assert [line for line in lines if line] == [line.rstrip() for line in expected if line.strip()], (
                f"{statement}\nprinted\n{part}")
        assert not (home / "dir/postgres/postmaster.pid").exists()
    finally:
        shutil.rmtree(home, ignore_errors=True)


@test
def a_table_is_made_written_read_and_dropped(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE books (id int PRIMARY KEY, title text NOT NULL, price numeric(8,2) CHECK (price >= 0))")
        equal(s.one("SELECT relkind FROM pg_class WHERE relname = 'books'"), "f")
        equal(s.do("INSERT INTO books VALUES (2, 'b', 1.50), (1, 'a', NULL) RETURNING id, price"),
              [["2", "1.50"], ["1", "NULL"]])
        equal(s.do("SELECT * FROM books"), [["1", "a", "NULL"], ["2", "b", "1.50"]])
        contains(s.fails("23505", "INSERT INTO books VALUES (3, 'c'), (1, 'x')"), "Key (id)=(1) already exists.")
        s.fails("23505", "INSERT INTO books VALUES (4, 'c'), (4, 'x')")
        s.fails("23514", "INSERT INTO books VALUES (3, 'c', -1)")
        s.fails("23502", "INSERT INTO books VALUES (3, NULL)")
        s.fails("23502", "INSERT INTO books VALUES (NULL, 'a')")
        s.fails("23514", "UPDATE books SET price = -1 WHERE id = 2")
        s.fails("23502", "COPY books FROM STDIN", "9\t\\N\t1")
        equal(s.do("UPDATE books SET price = 3 WHERE id = 1 RETURNING *"), [["1", "a", "3.00"]])
        s.do("UPDATE books SET id = id + 10")
        equal(s.do("SELECT id FROM books"), [["11"], ["12"]])
        s.fails("23505", "UPDATE books SET id = 12 WHERE id = 11")
        equal(s.do("DELETE FROM books WHERE id = 12 RETURNING *"), [["12", "b", "1.50"]])
        equal(s.do("INSERT INTO books VALUES (11, 'x'), (5, 'e') ON CONFLICT DO NOTHING RETURNING id"), [["5"]])
        s.do("INSERT INTO books SELECT i, 't' FROM generate_series(1, 6) i ON CONFLICT DO NOTHING")
        equal(s.one("SELECT string_agg(id || title, ',' ORDER BY id) FROM books"), "1t,2t,3t,4t,5e,6t,11a")
        s.do("DROP TABLE books")
        s.do("CREATE TABLE books (id int PRIMARY KEY)")
        equal(s.do("SELECT * FROM books"), [])


@test
def a_table_without_a_key_has_rows_that_can_be_changed(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE log (n serial, msg text)")
        s.do("INSERT INTO log (msg) SELECT 'same' FROM generate_series(1, 4)")
        s.do("UPDATE log SET msg = 'other' WHERE n = 2")
        s.do("DELETE FROM log WHERE n = 3")
        s.do("INSERT INTO log SELECT * FROM log")
        equal(s.do("SELECT n, msg FROM log ORDER BY n"), [[n, m] for n, m in [
            ("1", "same"), ("1", "same"), ("2", "other"), ("2", "other"), ("4", "same"), ("4", "same")]])
        equal(s.one("SELECT count(DISTINCT ctid) FROM log"), "6")
        s.fails("23505", "ALTER TABLE log ADD PRIMARY KEY (n)")
        s.do("TRUNCATE log")
        s.do("ALTER TABLE log ADD PRIMARY KEY (n)")
        s.do("INSERT INTO log VALUES (1, 'a')")
        s.fails("23505", "INSERT INTO log VALUES (1, 'b')")


@test
def definitions_follow_their_transaction(cwd):
    opener = fresh()
    with opener() as s:
        s.do("CREATE TABLE kept (a int PRIMARY KEY, b text)")
        s.do("INSERT INTO kept VALUES (1, 'x')")
        s.do("BEGIN")
        s.do("CREATE TABLE made (a int PRIMARY KEY)")
        s.do("INSERT INTO made VALUES (1)")
        s.do("DROP TABLE kept")
        s.do("ROLLBACK")
        equal(s.do("SELECT * FROM kept"), [["1", "x"]])
        s.do("CREATE TABLE made (a int PRIMARY KEY)")
        equal(s.do("SELECT * FROM made"), [])
        s.do("BEGIN")
        s.do("ALTER TABLE kept ADD COLUMN c int")
        s.do("ROLLBACK")
        s.do("ALTER TABLE kept ADD COLUMN c int NOT NULL DEFAULT 7")
        s.do("ALTER TABLE kept RENAME COLUMN b TO title")
        s.do("ALTER TABLE kept RENAME TO renamed")
        equal(s.do("SELECT title, c FROM renamed"), [["x", "7"]])
        s.do("BEGIN")
        s.do("ALTER TABLE renamed DROP COLUMN title")
        s.do("ROLLBACK")
        equal(s.do("SELECT title FROM renamed"), [["x"]])
        s.do("ALTER TABLE renamed DROP COLUMN title")
        s.do("ALTER TABLE renamed ADD COLUMN b text")
        equal(s.do("SELECT * FROM renamed"), [["1", "7", "NULL"]])
        s.do("BEGIN")
        s.do("TRUNCATE renamed")
        equal(s.one("SELECT count(*) FROM renamed"), "0")
        s.do("ROLLBACK")
        equal(s.one("SELECT count(*) FROM renamed"), "1")
        s.do("CREATE TABLE nokey (a int)")
        s.do("BEGIN")
        s.do("ALTER TABLE nokey ADD PRIMARY KEY (a)")
        s.do("ROLLBACK")
        s.do("INSERT INTO nokey VALUES (1), (1), (NULL)")
        with opener() as other:
            equal(other.one("SELECT count(*) FROM nokey"), "3")


@test
def a_conflict_with_the_key_updates_the_row(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (a int, b text, n int CHECK (n < 100), s text DEFAULT 'd', PRIMARY KEY (a, b))")
        add = "ON CONFLICT (b, a) DO UPDATE SET n = t.n + excluded.n"
        equal(s.do(f"INSERT INTO t VALUES (1, 'x', 1) {add} RETURNING n, s"), [["1", "d"]])
        equal(s.do(f"INSERT INTO t VALUES (1, 'x', 5, 'e'), (2, 'y', 7, 'f') {add} RETURNING n, s"), [["6", "d"], ["7", "f"]])
        s.do(f"INSERT INTO t (a, b, n) SELECT a, b, 1 FROM t {add}")
        equal(s.do("INSERT INTO t VALUES (1, 'x', 5) ON CONFLICT (a, b) DO UPDATE SET n = 9 WHERE t.n > 100 RETURNING n"), [])
        equal(s.do("INSERT INTO t VALUES (1, 'x', 5), (4, 'x', 5) ON CONFLICT (a, b) DO NOTHING RETURNING a"), [["4"]])
        s.fails("21000", f"INSERT INTO t VALUES (3, 'x', 5), (3, 'x', 6) {add}")
        s.fails("23514", f"INSERT INTO t VALUES (1, 'x', 99) {add}")
        s.fails("42P10", "INSERT INTO t VALUES (1, 'x', 5) ON CONFLICT (a) DO NOTHING")
        s.do("WITH x AS (INSERT INTO t VALUES (4, 'x', 1) ON CONFLICT (a, b) DO UPDATE SET b = 'moved' RETURNING b)"
             " SELECT * FROM x")
        s.do(f"PREPARE p AS INSERT INTO t VALUES ($1, 'p', 5) {add}")
        for _ in range(3):
            s.do("EXECUTE p(5)")
        equal(s.do("SELECT a, b, n FROM t"), [["1", "x", "7"], ["2", "y", "8"], ["4", "moved", "5"], ["5", "p", "15"]])


@test
def a_table_is_made_of_a_query(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t AS SELECT i, 'x' || i AS name FROM generate_series(1, 10) i")
        equal(s.one("SELECT relkind FROM pg_class WHERE oid = 't'::regclass"), "f")
        s.do("CREATE TABLE u (n, m) AS SELECT i, name FROM t WHERE i > $$8$$")
        equal(s.do("SELECT * FROM u"), [["9", "x9"], ["10", "x10"]])
        s.do("CREATE TABLE v AS TABLE t WITH NO DATA")
        s.do("CREATE TABLE IF NOT EXISTS v AS TABLE t")
        s.do("SELECT 1 AS one INTO w")
        equal(s.do("SELECT (SELECT count(*) FROM v), one FROM w"), [["0", "1"]])
        s.fails("42P07", "CREATE TABLE w AS SELECT 1")
        s.fails("22012", "CREATE TABLE z AS SELECT 1 / (i - 3) AS a FROM t")
        s.do("CREATE TABLE z AS SELECT 1 AS a")


@test
def what_frond_has_not_is_refused_by_name(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (a int PRIMARY KEY, b text)")
        for statement, part in [
                ("CREATE TABLE x (a jsonb UNIQUE)", "jsonb"),
                ("CREATE INDEX ON t ((t IS NULL))", "whole rows"),
                ("CREATE INDEX ON t USING gin (b)", "gin"),
                ("CREATE UNIQUE INDEX ON t (b) NULLS NOT DISTINCT", "NULLS NOT DISTINCT"),
                ("CREATE TABLE x (a jsonb PRIMARY KEY)", "jsonb"),
                ("CREATE TABLE x (a int PRIMARY KEY) WITH (user_catalog_table = true)", "user_catalog_table"),
                ("CREATE TEMP TABLE x (a int) USING frond", "temporary"),
                ("CREATE UNLOGGED TABLE x (a int) USING frond", "unlogged"),
                ("CREATE MATERIALIZED VIEW x USING frond AS SELECT 1 AS a", "cannot make a table")]:
            contains(s.fails("0A000", statement), part)
        s.do("ALTER TABLE t ALTER COLUMN b TYPE varchar(20)")
        s.fails("0A000", "CREATE TABLE x (a int PRIMARY KEY DEFERRABLE)")
        s.do("CREATE TABLE x (a int PRIMARY KEY NOT DEFERRABLE INITIALLY IMMEDIATE)")
        s.do("DROP TABLE x")
        s.do("CREATE FUNCTION again() RETURNS void LANGUAGE plpgsql AS $$ BEGIN"
             " CREATE TEMP TABLE brief (a int); DROP TABLE brief; CREATE TABLE ours (a int); DROP TABLE ours; END $$")
        for _ in range(3):
            s.do("SELECT again()")
        s.do("CREATE TEMP TABLE x (a int UNIQUE)")
        s.do("CREATE TABLE y (a int UNIQUE) USING heap")
        s.do("INSERT INTO t VALUES (1, NULL)")
        s.fails("23502", "ALTER TABLE t ADD COLUMN c int NOT NULL")
        s.fails("23514", "ALTER TABLE t ADD CHECK (a > 1)")
        s.fails("23514", "ALTER TABLE t ALTER COLUMN b SET NOT NULL")


# ---- Indexes ----

def plan(s, query):
    return "\n".join(line[0] for line in s.do("EXPLAIN (COSTS OFF) " + query))


@test
def an_index_is_made_used_and_dropped(cwd):
    opener = fresh()
    with opener() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b varchar(20), at timestamptz, n jsonb)")
        s.do("INSERT INTO t SELECT i, i % 100, 'b' || i % 7, '1999-12-31'::timestamptz + i * interval '1 hour', i::text::jsonb"
             " FROM generate_series(1, 2000) i")
        s.do("ANALYZE t")
        s.do("CREATE INDEX ON t (a, at DESC)")
        s.do("CREATE INDEX by_time ON t (at)")
        s.do("CREATE INDEX IF NOT EXISTS by_time ON t (at)")
        s.fails("42P07", "CREATE INDEX by_time ON t (a)")
        contains(s.fails("0A000", "CREATE INDEX ON t (n)"), "jsonb")
        text = plan(s, "SELECT id FROM t WHERE a = 17 AND at < '2000-02-01' ORDER BY at DESC LIMIT 3")
        contains(text, "Frond Index: t_a_at_idx")
        contains(text, "Frond Rows: 3")
        assert "Sort" not in text, text
        equal(s.do("SELECT id FROM t WHERE a = 17 AND at < '2000-02-01' ORDER BY at DESC LIMIT 3"), [["717"], ["617"], ["517"]])
        contains(plan(s, "SELECT * FROM t WHERE at BETWEEN '2000-01-01' AND '2000-01-02'"), "Frond Index: by_time")
        equal(s.one("SELECT count(*) FROM t WHERE at BETWEEN '2000-01-01' AND '2000-01-02'"), "25")
        contains(plan(s, "SELECT count(*) FROM t WHERE a = 3"), "Frond Index: t_a_at_idx")
        equal(s.one("SELECT count(*) FROM t WHERE a = 3"), "20")
        equal(s.one("SELECT count(*) FROM t WHERE a IN (3, 4, 3)"), "40")
        contains(plan(s, "SELECT * FROM generate_series(1, 3) g JOIN t ON t.a = g"), "Frond Index: t_a_at_idx")
        equal(s.one("SELECT count(*) FROM generate_series(1, 3) g JOIN t ON t.a = g"), "60")
        text = plan(s, "SELECT id FROM t ORDER BY a DESC, at NULLS FIRST LIMIT 2")
        contains(text, "Frond Order: backward")
        s.do("PREPARE p AS SELECT count(*) FROM t WHERE a = 5")
        equal(s.one("EXECUTE p"), "20")
        with opener() as other:
            other.do("BEGIN")
            other.do("CREATE INDEX gone ON t (b)")
            contains(plan(other, "SELECT * FROM t WHERE b = 'b1' AND a = 1000"), "Frond")
            other.do("ROLLBACK")
            other.do("CREATE INDEX gone ON t (b)")
            other.do("DROP INDEX t_a_at_idx, gone")
        equal(s.one("EXECUTE p"), "20")
        assert "Frond Index" not in plan(s, "SELECT * FROM t WHERE a = 3")
        s.fails("42704", "DROP INDEX gone")
        s.do("DROP INDEX IF EXISTS gone")
        s.do("CREATE INDEX goes ON t (a) WHERE b > 'b3'")
        s.do("ALTER TABLE t DROP COLUMN b")
        s.fails("42704", "DROP INDEX goes")
        s.do("CREATE TABLE h (a int) USING heap")
        s.do("CREATE INDEX local ON h (a)")
        s.do("DROP INDEX local, by_time")


@test
def a_unique_constraint_is_kept(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, mail text UNIQUE, a int, b int, CONSTRAINT pair UNIQUE (a, b))")
        s.do("INSERT INTO t VALUES (1, 'x@y', 1, 1), (2, NULL, 1, 2), (3, NULL, NULL, 2), (4, 'z', NULL, 2)")
        text = s.fails("23505", "INSERT INTO t VALUES (5, 'x@y', 7, 7)")
        contains(text, 'duplicate key value violates unique constraint "t_mail_key"')
        contains(text, "Key (mail)=(x@y) already exists.")
        contains(s.fails("23505", "UPDATE t SET b = 1 WHERE id = 2"), "Key (a, b)=(1, 1) already exists.")
        s.fails("23505", "INSERT INTO t VALUES (8, 'twice', 8, 8), (9, 'twice', 9, 9)")

        def in_place_of_the_first():
            s.do("BEGIN")
            s.do("SAVEPOINT p")
            s.fails("23505", "INSERT INTO t VALUES (5, 'x@y', 7, 7)")
            s.do("ROLLBACK TO p")
            s.do("DELETE FROM t WHERE id = 1")
            s.do("INSERT INTO t VALUES (5, 'x@y', 1, 1)")
            s.do("COMMIT")

        s.again(in_place_of_the_first)
        equal(s.do("SELECT id FROM t ORDER BY id"), [["2"], ["3"], ["4"], ["5"]])
        # What is there already.
        s.do("CREATE TABLE u (id int PRIMARY KEY, v int)")
        s.do("INSERT INTO u SELECT i, i / 2 FROM generate_series(1, 300) i")
        contains(s.fails("23505", "CREATE UNIQUE INDEX v ON u (v)"), 'could not create unique index "v"')
        s.do("INSERT INTO u VALUES (1000, 1)")
        s.do("DELETE FROM u WHERE id % 2 = 1 OR id = 1000")
        s.do("ALTER TABLE u ADD CONSTRAINT v UNIQUE (v)")
        s.fails("23505", "INSERT INTO u VALUES (1000, 1)")
        s.do("ALTER TABLE u DROP CONSTRAINT v")
        s.do("INSERT INTO u VALUES (1000, 1)")
        # A table without a key.
        s.do("CREATE TABLE w (v int UNIQUE, n int)")
        s.do("INSERT INTO w VALUES (1, 1)")
        contains(s.fails("23505", "INSERT INTO w VALUES (1, 2)"), "Key (v)=(1) already exists.")


@test
def a_conflict_with_a_unique_index_updates_the_row(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, mail text UNIQUE, n int DEFAULT 0)")
        add = "ON CONFLICT (mail) DO UPDATE SET n = t.n + 1"
        s.do(f"INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL) {add}")
        equal(s.do(f"INSERT INTO t VALUES (7, 'a'), (8, 'c'), (9, NULL), (10, NULL) {add} RETURNING id, n"),
              [["1", "1"], ["8", "0"], ["9", "0"], ["10", "0"]])
        s.fails("21000", f"INSERT INTO t VALUES (20, 'q'), (21, 'q') {add}")
        s.fails("23505", f"INSERT INTO t VALUES (1, 'q') {add}")
        equal(s.do("INSERT INTO t VALUES (30, 'a'), (31, 'e') ON CONFLICT (mail) DO NOTHING RETURNING id"), [["31"]])
        s.fails("23505", "INSERT INTO t VALUES (31, 'f') ON CONFLICT (mail) DO NOTHING")
        s.fails("23505", "INSERT INTO t VALUES (40, 'a') ON CONFLICT (id) DO NOTHING")
        equal(s.do("INSERT INTO t VALUES (1, 'x'), (41, 'a'), (42, 'g'), (43, 'g') ON CONFLICT DO NOTHING RETURNING id"),
              [["42"]])
        s.fails("42P10", "INSERT INTO t VALUES (1, 'x') ON CONFLICT (n) DO NOTHING")
        s.do("CREATE TABLE w (v int UNIQUE, n int)")
        for _ in range(3):
            s.do("INSERT INTO w VALUES (1, 1), (2, 1) ON CONFLICT (v) DO UPDATE SET n = w.n + 1")
        equal(s.do("SELECT * FROM w ORDER BY v"), [["1", "3"], ["2", "3"]])


@test
def an_index_of_some_rows_is_used_where_they_are_asked_for(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, state text, active bool, n int, v text)")
        s.do("INSERT INTO t SELECT i, 's' || i % 5, i % 3 = 0, i % 50, 'v' || i FROM generate_series(1, 1000) i")
        s.do("ANALYZE t")
        s.do("CREATE INDEX part ON t (state) INCLUDE (v, n) WHERE n > 40 AND active")
        query = "SELECT state, v FROM t WHERE state = 's1' AND active AND n > {}"
        contains(plan(s, query.format(45)), "Frond Index: part")
        assert "Frond Index" not in plan(s, query.format(30))
        for n in (30, 40, 45):
            got = s.do(query.format(n))
            equal(sorted(got), sorted([f"s{i % 5}", f"v{i}"] for i in range(1, 1001)
                                      if i % 5 == 1 and i % 3 == 0 and i % 50 > n))
        s.do("CREATE UNIQUE INDEX one ON t (v) WHERE n = 7")
        s.do("INSERT INTO t VALUES (2000, 's', true, 8, 'v7')")
        s.fails("23505", "INSERT INTO t VALUES (2001, 's', true, 7, 'v7')")
        equal(s.do("INSERT INTO t VALUES (2001, 's', true, 7, 'v7'), (2002, 's', true, 9, 'v7') ON CONFLICT DO NOTHING"
                   " RETURNING id"), [["2002"]])


@test
def random_queries_by_indexes_answer_as_on_heap_tables(cwd):
    draw = random.Random(seed(3))
    with fresh()() as s:
        columns = "id int PRIMARY KEY, a int, b varchar(30), c timestamp, d date NOT NULL, e bool, f bigint"
        s.do(f"CREATE TABLE ours ({columns})")
        s.do(f"CREATE TABLE heap ({columns}) USING heap")
        s.do("SET frond.allow_mixed_writes = on")
        for statement in ("CREATE INDEX ON ours (a, c DESC)", "CREATE INDEX ON ours (b, a)", "CREATE INDEX ON ours (c)",
                          "CREATE INDEX ON ours (d DESC, f) INCLUDE (a)", "CREATE INDEX ON ours (f) WHERE a >= 5",
                          "CREATE UNIQUE INDEX ON ours (f, id)"):
            s.do(statement)
        values = {
            "a": lambda: draw.choice(["NULL", *map(str, range(12))]),
            "b": lambda: draw.choice(["NULL", "''", "'x'", "'xy'", "'y'", "'é'"]),
            "c": lambda: draw.choice(["NULL", *(f"'{1998 + n}-03-01 12:00'" for n in range(5)), "'infinity'"]),
            "d": lambda: f"'{draw.randrange(1995, 2006)}-01-01'",
            "e": lambda: draw.choice(["NULL", "true", "false"]),
            "f": lambda: draw.choice(["NULL", "-5000000000", "-1", "0", "7", "5000000000"]),
        }
        write = lambda sql: [s.do(sql.format(table)) for table in ("ours", "heap")]
        write("INSERT INTO {} VALUES " + ", ".join(
            f"({i}, " + ", ".join(make() for make in values.values()) + ")" for i in range(300)))
        s.do("ANALYZE ours")
        used = 0
        for turn in range(150):
            if turn % 5 == 0:
                name = draw.choice(list(values))
                write(draw.choice([
                    f"UPDATE {{}} SET {name} = {values[name]()} WHERE id % 17 = {draw.randrange(17)}",
                    f"DELETE FROM {{}} WHERE id % 61 = {draw.randrange(61)}",
                    f"INSERT INTO {{}} SELECT {1000 + turn}, " + ", ".join(make() for make in values.values())]))
            tests = []
            for name in draw.sample(list(values), draw.randrange(1, 4)):
                op = draw.choice(["=", "=", "=", "<", "<=", ">", ">=", "IS NULL", "IS NOT NULL", "IN"])
                tests.append(f"{name} {op}" if op.startswith("IS") else
                             f"{name} IN ({values[name]()}, {values[name]()})" if op == "IN" else
                             f"{name} {op} {values[name]()}")
            order = draw.choice([["id"], ["a", "c DESC", "id"], ["b", "a", "id"], ["c", "id"], ["d DESC", "f", "id"],
                                 ["d", "f DESC NULLS LAST", "id DESC"], ["f", "id"], ["c DESC", "id DESC"]])
            query = f"SELECT * FROM {{}} WHERE {' AND '.join(tests)} ORDER BY {', '.join(order)}"
            if draw.random() < 0.5:
                query += f" LIMIT {draw.randrange(1, 20)}"
            ours, heap = (s.do(query.format(table)) for table in ("ours", "heap"))
            used += "Frond Index" in plan(s, query.format("ours"))
            assert ours == heap, f"{query}\n{plan(s, query.format('ours'))}\n{ours}\n{heap}"
            count = f"SELECT count(*), min(a), max(c), sum(f) FROM {{}} WHERE {' AND '.join(tests)}"
            equal(*(s.do(count.format(table)) for table in ("ours", "heap")))
        assert used > 40, used


# ---- Values ----

# Of each type: values in PostgreSQL's order, each of which may be a key.
KEYS = {
    "bool": ["false", "true"],
    "int2": ["-32768", "-1", "0", "32767"],
    "int4": ["-2147483648", "-1", "0", "2147483647"],
    "int8": ["-9223372036854775808", "0", "9223372036854775807"],
    "oid": ["0", "42", "4294967295"],
    "money": ["-$5.00", "$0.00", "$12.34"],
    "float4": ["-Infinity", "-1.5", "0", "1e-30", "Infinity", "NaN"],
    "float8": ["-Infinity", "-2.25e+300", "0", "5e-324", "Infinity", "NaN"],
    "numeric": ["-Infinity", "-12.5", "-0.001", "0", "0.1", "99999999999999999999.5", "Infinity", "NaN"],
    "numeric(8,2)": ["-1.50", "0.00", "1.00", "10.00"],
    "text": ["", "a", "a b", "b", "z̈", "ä", "😀"],
    "varchar(9)": ["a", "ab", "b"],
    "char(4)": ["a   ", "ab  ", "b   "],
    "bytea": ["\\x", "\\x00", "\\x00ff", "\\xff"],
    "date": ["-infinity", "0044-03-15 BC", "1999-12-31", "2024-02-29", "infinity"],
    "time": ["00:00:00", "12:34:56.789012", "24:00:00"],
    "timetz": ["12:00:00+02", "12:00:00+01", "12:00:00-05"],
    "timestamp": ["-infinity", "2024-01-01 01:02:03.456789", "infinity"],
    "timestamptz": ["-infinity", "1970-01-01 00:00:00.000001+00", "infinity"],
    "interval": ["-00:00:01", "00:00:00", "29 days", "31 days"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "inet": ["10.0.0.0/8", "10.0.0.5", "192.168.0.1", "::1", "fe80::1/64"],
    "cidr": ["10.0.0.0/8", "10.0.0.0/16", "192.168.0.0/24"],
    "macaddr": ["08:00:2b:01:02:03", "08:00:2b:01:02:04"],
    "macaddr8": ["08:00:2b:01:02:03:04:05", "08:00:2b:01:02:03:04:06"],
    "bit(3)": ["000", "101", "111"],
    "varbit": ["", "0", "00", "01", "1", "11111111", "111111111"],
}
OTHERS = {
    "jsonb": ['{"a": [1, null]}', "3"],
    "json": ['{"z" : 1}'],
    "int[]": ["{1,2,NULL}"],
    "text[]": ['{"a,b",c}'],
    "point": ["(1,2)"],
    "int4range": ["[1,5)"],
    "name": ["some name"],
    "tsvector": ["'a' 'b'"],
    "xid": ["7"],
}


@test
def every_type_comes_back_as_a_value(cwd):
    with fresh()() as s:
        types = {**KEYS, **OTHERS}
        columns = {f"c{i}": (name, values) for i, (name, values) in enumerate(types.items())}
        s.do("CREATE TABLE t (k int PRIMARY KEY, " + ", ".join(f"{c} {name}" for c, (name, _) in columns.items()) + ")")
        s.do("CREATE TABLE h (k int PRIMARY KEY, " + ", ".join(f"{c} {name}" for c, (name, _) in columns.items())
             + ") USING heap")
        for table in ("t", "h"):
            for k in range(max(len(values) for _, values in columns.values())):
                cells = ", ".join(f"'{values[k % len(values)].replace(chr(39), 2 * chr(39))}'" for _, values in columns.values())
                s.do(f"INSERT INTO {table} VALUES ({k}, {cells})")
            s.do(f"INSERT INTO {table} (k) VALUES (99)")
        equal(s.do("SELECT * FROM t"), s.do("SELECT * FROM h ORDER BY k"))


@test
def every_type_is_a_key_in_postgresqls_order(cwd):
    with fresh()() as s:
        draw = random.Random(1)
        for name, values in KEYS.items():
            s.do(f"CREATE TABLE t (k {name} PRIMARY KEY, v int)")
            shuffled = draw.sample(range(len(values)), len(values))
            s.do("INSERT INTO t VALUES " + ", ".join(f"('{values[i]}', {i})" for i in shuffled))
            for order in ("", "DESC"):
                plan = "\n".join(line[0] for line in s.do(f"EXPLAIN SELECT v FROM t ORDER BY k {order}"))
                assert "Sort" not in plan, f"{name}: {plan}"
                got = [int(row[0]) for row in s.do(f"SELECT v FROM t ORDER BY k {order}")]
                want = list(range(len(values)))
                equal((name, got), (name, want[::-1] if order else want))
            for i, value in enumerate(values):
                equal((name, value, s.do(f"SELECT v FROM t WHERE k = '{value}'")), (name, value, [[str(i)]]))
                equal((name, value, s.one(f"SELECT count(*) FROM t WHERE k < '{value}'")), (name, value, str(i)))
                equal((name, value, s.one(f"SELECT count(*) FROM t WHERE k >= '{value}'")),
                      (name, value, str(len(values) - i)))
            equal((name, [r[0] for r in s.do("SELECT k FROM t")]),
                  (name, [r[0] for r in s.do(f"SELECT x::{name} FROM unnest(ARRAY["
                                             + ", ".join(f"'{v}'" for v in values) + "]) x")]))
            s.fails("23505", f"INSERT INTO t VALUES ('{values[-1]}')")
            s.do("DROP TABLE t")


# ---- What is pushed down ----

def plan_of(s, query):
    return "\n".join(line[0] for line in s.do(f"EXPLAIN (COSTS OFF) {query}"))


@test
def plans_tell_what_is_pushed_down(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (a int, b text, c int, v int, PRIMARY KEY (a, b, c)) WITH (hash = 'a', range = 'b desc, c')")
        s.do("INSERT INTO t SELECT i % 3, 'b' || i % 5, i, i FROM generate_series(1, 60) i")
        s.do("CREATE TABLE h (LIKE t) USING heap")
        s.do("INSERT INTO h SELECT * FROM t")
        for where, wanted in [
                ("a = 1 AND b = 'b2' AND c = 22", ["Frond Key: ((a = 1) AND (b = 'b2'::text) AND (c = 22))"]),
                ("a = 1 AND b = 'b2' AND c > 20", ["Frond Key: ((a = 1) AND (b = 'b2'::text) AND (c > 20))"]),
                ("a = 1 AND b > 'b2'", ["Frond Key: ((a = 1) AND (b > 'b2'::text))"]),
                ("a = 1 AND b > 'b1' AND b <= 'b3'", ["Frond Key", "b <= 'b3'"]),
                ("b = 'b2'", ["Frond Filter: (b = 'b2'::text)"]),
                ("a IN (2, 1, 1) AND b = 'b1'", ["Frond Key: ((a = ANY"]),
                ("a = 2 AND b IN ('b1', 'b3', 'nothing') AND c = 11", ["Frond Key"]),
                ("a = 1 AND v BETWEEN 10 AND 30", ["Frond Key: (a = 1)", "Frond Filter: ((v >= 10) AND (v <= 30))"]),
                ("a = 1 AND v IS NULL", ["Frond Filter: (v IS NULL)"]),
                ("a = 1 AND v IS NOT NULL AND v % 2 = 0", ["Frond Filter: (v IS NOT NULL)"]),
                ("a = 30000000000", ["Frond Key"]),
                ("a = 1 AND b = 'b2' AND c < 30000000000", ["Frond Key"]),
                ("a = 1 AND b = NULL", []),
                ("a = 1 AND (c = 4 OR c = 7)", ["Frond Key: (a = 1)"])]:
            plan = plan_of(s, f"SELECT * FROM t WHERE {where}")
            for part in wanted:
                contains(plan, part)
            equal((where, s.do(f"SELECT * FROM t WHERE {where} ORDER BY a, b, c")),
                  (where, s.do(f"SELECT * FROM h WHERE {where} ORDER BY a, b, c")))
        for order, is_pushed in [("b DESC, c", True), ("b, c DESC", True), ("b", True), ("b, c", False), ("c", False)]:
            query = f"WHERE a = 1 ORDER BY {order}, v LIMIT 7" if order == "c" else f"WHERE a = 1 ORDER BY {order} LIMIT 7"
            plan = plan_of(s, f"SELECT b, c FROM t {query}")
            equal((order, "Sort" not in plan), (order, is_pushed))
            if order != "b":
                equal((order, s.do(f"SELECT b, c FROM t {query}")), (order, s.do(f"SELECT b, c FROM h {query}")))
        contains(plan_of(s, "SELECT * FROM t WHERE a = 1 ORDER BY b DESC LIMIT 7"), "Frond Rows: 7")
        s.do("CREATE TABLE small (x int PRIMARY KEY)")
        s.do("INSERT INTO small VALUES (1), (2)")
        s.do("ANALYZE t, small")
        equal(s.one("SELECT reltuples FROM pg_class WHERE oid = 't'::regclass"), "60")
        s.do("CREATE TABLE wide (k int PRIMARY KEY, v int)")
        s.do("INSERT INTO wide SELECT i, -i FROM generate_series(1, 3000) i")
        s.do("ANALYZE wide")
        join = "SELECT x, v FROM small JOIN wide ON k = x"
        contains(plan_of(s, join), "Frond Key: ($0 = wide.k)")
        equal(s.do(join + " ORDER BY x"), [["1", "-1"], ["2", "-2"]])


@test
def plans_know_what_is_unique(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE p (id int PRIMARY KEY, code int UNIQUE, n int)")
        s.do("CREATE TABLE c (a int, b int, p int, PRIMARY KEY (a, b))")
        s.do("CREATE TABLE bare (id int)")
        s.do("INSERT INTO p SELECT i, i, i FROM generate_series(1, 500) i")
        s.do("INSERT INTO c SELECT i, i, i FROM generate_series(1, 500) i")

        def is_left_out(join):
            return " p" not in plan_of(s, f"SELECT c.a FROM c {join}")

        # What adds no row and no column to a query is not read.
        assert is_left_out("LEFT JOIN p ON p.id = c.p")
        assert not is_left_out("LEFT JOIN p ON p.n = c.p")
        assert not is_left_out("JOIN p ON p.id = c.p")
        # Others can drop an index, and a plan that is kept would not hear of it.
        assert not is_left_out("LEFT JOIN p ON p.code = c.p")
        equal("c1" in plan_of(s, "SELECT p.n FROM p LEFT JOIN c c1 ON c1.a = p.n AND c1.b = 1"), False)
        assert "c1" in plan_of(s, "SELECT p.n FROM p LEFT JOIN c c1 ON c1.a = p.n")
        assert "bare" in plan_of(s, "SELECT p.n FROM p LEFT JOIN bare ON bare.id = p.n")
        # A join finds one row at most for each, by a key as by an index.
        rows = "SELECT {0} FROM c JOIN p ON p.{0} = c.p"
        for column, most in (("id", 500), ("code", 500), ("n", 1250)):
            plan = s.do(f"EXPLAIN {rows.format(column)}")[0][0]
            equal((column, re.search(r"rows=(\d+)", plan)[1]), (column, str(most)))
        # A key that is gone tells nothing any more, also to a plan that was kept.
        s.do("PREPARE joined AS SELECT c.a FROM c LEFT JOIN p ON p.id = c.p WHERE c.a = 7 AND c.b = 7")
        equal(s.do("EXECUTE joined"), [["7"]])
        s.do("ALTER TABLE p DROP CONSTRAINT p_pkey")
        s.do("INSERT INTO p VALUES (7, 501, 7)")
        equal(s.do("EXECUTE joined"), [["7"], ["7"]])


@test
def random_queries_answer_as_those_of_heaps(cwd):
    draw = random.Random(seed(0))
    with fresh()() as s:
        key = draw.choice(["PRIMARY KEY (a, b)", "PRIMARY KEY (b, a)", "PRIMARY KEY (a, b, c)"])
        # A numeric without a scale loses zeros in a key.
        columns = f"a int, b text, c numeric(8,2), d timestamptz, {key}"
        how = draw.choice(["", "WITH (hash = 'a')"])
        s.do(f"CREATE TABLE t ({columns}) {how}")
        s.do(f"CREATE TABLE h ({columns}) USING heap")

        def value(column):
            return {"a": lambda: str(draw.randint(-3, 12)), "b": lambda: f"'{draw.choice('abcde')}'",
                    "c": lambda: draw.choice(["1", "1.50", "-2", "'NaN'", "10"]),
                    "d": lambda: f"'2024-01-0{draw.randint(1, 9)}Z'"}[column]()

        def condition():
            column = draw.choice("abcd")
            return draw.choice([
                lambda: f"{column} {draw.choice(['=', '<', '<=', '>', '>=', '<>'])} {value(column)}",
                lambda: f"{value(column)} {draw.choice(['=', '<', '>='])} {column}",
                lambda: f"{column} IN ({', '.join(value(column) for _ in range(3))})",
                lambda: f"{column} IS {draw.choice(['', 'NOT '])}NULL",
                lambda: f"{column} BETWEEN {value(column)} AND {value(column)}",
                lambda: f"({column} = {value(column)} OR a = {value('a')})"])()

        for step in range(150):
            where = " AND ".join(condition() for _ in range(draw.randint(1, 3)))
            action = draw.random()
            if action < 0.25:
                d = draw.choice([value("d"), "NULL"])
                statement = f"INSERT INTO % VALUES ({value('a')}, {value('b')}, {value('c')}, {d}) RETURNING *"
            elif action < 0.35:
                statement = f"UPDATE % SET d = {value('d')} WHERE {where}"
            elif action < 0.4:
                statement = f"DELETE FROM % WHERE {where}"
            elif action < 0.7:
                statement = f"SELECT * FROM % WHERE {where} ORDER BY a, b, c, d"
            elif action < 0.85:
                order = draw.choice(["a, b", "a DESC, b DESC", "b, a", "b DESC, a DESC", "a DESC, b"])
                statement = f"SELECT a, b FROM % WHERE {where} ORDER BY {order} LIMIT {draw.randint(1, 5)}"
            elif action < 0.93:
                by = draw.choice(["a", "b", "a, b", "b, a", "a, b, c", "c"])
                having = draw.choice(["", " HAVING count(*) > 1", " HAVING min(d) IS NOT NULL AND sum(a) > 2"])
                order = draw.choice([by, by.replace(",", " DESC,") + " DESC"])
                statement = f"SELECT {by}, count(*), sum(a), max(d) FROM % WHERE {where} GROUP BY {by}{having} ORDER BY {order}"
            else:
                statement = f"SELECT count(*), min(c), max(d) FROM % x JOIN % y USING (a, b) WHERE x.{where.split(' AND ')[0].lstrip('(')}" \
                    if where[0] in "abcd" and " AND " not in where else f"SELECT count(*), count(c), sum(a), avg(a), min(b), max(c), min(d) FROM % WHERE {where}"
                statement = statement.replace("min(c), max(d) FROM % x", "min(x.c), max(y.d) FROM % x")
            answers = []
            for table in "th":
                try:
                    answers.append(s.do(statement.replace("%", table)))
                except Failure as failure:
                    answers.append(failure.state)
            assert answers[0] == answers[1], f"step {step}: {statement}\n{answers[0]}\nof a heap\n{answers[1]}"
        equal(s.do("SELECT * FROM t ORDER BY a, b, c"), s.do("SELECT * FROM h ORDER BY a, b, c"))


def same_answers(s, *queries):
    """The queries have % for a table, of which there is one in frond, t, and a heap, h."""
    for query in queries:
        answers = []
        for table in "th":
            try:
                answers.append(s.do(query.replace("%", table)))
            except Failure as failure:
                answers.append(failure.state)
        equal((query, answers[0]), (query, answers[1]))


@test
def aggregates_are_computed_in_frond(cwd):
    with fresh()() as s:
        columns = {"a": "int", "b": "text", "i2": "int2", "i8": "int8", "n": "numeric", "f": "float8", "d": "date", "c": 'text COLLATE "en-x-icu"',
                   "v": "varchar(9)", "p": "char(4)", "ok": "bool", "z": "interval", "j": "jsonb", "m": "money", "u": "timestamptz"}
        declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        s.do(f"CREATE TABLE t ({declared}, PRIMARY KEY (a, b))")
        s.do(f"CREATE TABLE h ({declared}, PRIMARY KEY (a, b)) USING heap")
        every = [f"count({c})" for c in columns] + ["count(*)", "count(1)", "count(NULL)", "bool_and(ok)", "every(ok)", "bool_or(ok)"]
        every += [f"{f}({c})" for f in ("sum", "avg") for c in ("a", "i2", "i8")]
        every += [f"{f}({c})" for f in ("min", "max") for c in columns if c not in ("ok", "j")]
        # The first or last row by the key is one row.
        pushed = [e for e in every if e not in ("min(a)", "max(a)", "min(c)", "max(c)", "count(NULL)")]
        left = ["min(c)", "sum(n)", "sum(f)", "avg(f)", "sum(m)", "count(DISTINCT a)", "sum(a) FILTER (WHERE a > 1)", "string_agg(b, ',')",
                "sum(a + 1)", "count(t)", "min(a::text)", "min(a::oid)", "sum(i2::int)", "count(*) + max(j::text)::int"]
        for e in pushed:
            contains(plan_of(s, f"SELECT {e} FROM t WHERE i8 > 0"), "Frond Sums: " + re.sub(r"(m..)\(v\)", r"\1((v)::text)", e))
        for e in left:
            assert "Frond Sums" not in plan_of(s, f"SELECT {e} FROM t"), e
        for where in ("a % 2 = 0", "a = 1 OR a = 2", "a IN (1, 2) AND b IN ('a', 'b')", "b LIKE 'b%1'"):
            assert "Frond Sums" not in plan_of(s, f"SELECT count(*) FROM t WHERE {where}"), where
        plan = plan_of(s, "SELECT count(*), sum(a) + 1 FROM t WHERE a = 3 AND b > 'x' AND ok IS NULL")
        equal(plan, "Foreign Scan\n  Frond Table: t\n  Frond Sums: count(*), sum(a)\n  Frond Key: ((a = 3) AND (b > 'x'::text))\n"
                    "  Frond Filter: (ok IS NULL)")
        queries = [f"SELECT {', '.join(every)} FROM %",
                   *(f"SELECT {', '.join(every)} FROM % WHERE {where}" for where in [
                       "a = 2", "a = 2 AND b < 'b3'", "a IN (1, 3, 1, 9)", "i8 IS NULL", "n >= 1.5 AND ok", "a = 77", "a = NULL",
                       "i8 < -5 AND d IS NOT NULL", "a > 30000000000", "a < 30000000000"]),
                   "SELECT sum(a) * 2 + count(*), max(b) || 'x' FROM %", "SELECT count(*) FROM % HAVING count(*) > 3",
                   "SELECT (SELECT count(*) FROM % x WHERE x.a = y.a AND x.b > y.b), a, b FROM % y ORDER BY a, b",
                   "SELECT x, (SELECT max(i8) FROM % WHERE a = x) FROM generate_series(-1, 5) x",
                   "SELECT * FROM (SELECT count(*) AS c, avg(i8) FROM % WHERE a > 1) s JOIN (SELECT min(a) AS m FROM %) r ON m < c",
                   "SELECT count(*), generate_series(1, 2) FROM %", "SELECT 1 FROM % WHERE a = 1 HAVING true",
                   "SELECT count(*) OVER (), sum(count(*)) OVER () FROM %", "SELECT count(*) FROM % LIMIT 0"]
        same_answers(s, *queries)
        s.do("INSERT INTO h SELECT i % 4, 'b' || i, CASE WHEN i % 5 > 0 THEN i END, CASE WHEN i % 7 > 0 THEN 9000000000000000000 - i END,"
             " CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' ELSE i / 10.0 END, CASE WHEN i = 3 THEN 'NaN' ELSE i / 3.0 END,"
             " '2024-01-01'::date + i, chr(64 + i % 26), 'v' || i, 'p' || i % 7, i % 2 = 0 AND i % 3 > 0, i * interval '1 hour',"
             " '{}', i::money, '2024-01-01Z'::timestamptz - i * interval '1 day' FROM generate_series(1, 300) i")
        s.do("INSERT INTO t SELECT * FROM h")
        same_answers(s, *queries)
        # A sum of bigints is a numeric, which has no end.
        assert int(s.one("SELECT sum(i8) FROM t")) > 2 ** 63
        same_answers(s, "SELECT sum(i8), avg(i8), sum(i8)::bigint FROM %")
        s.do("PREPARE p (int) AS SELECT count(*), min(b) FROM t WHERE a = $1")
        for _ in range(7):
            equal(s.do("EXECUTE p (1)"), s.do("SELECT count(*), min(b) FROM h WHERE a = 1"))
        # What the transaction has written is counted, and not what its statement writes.
        s.do("BEGIN")
        s.do("INSERT INTO t (a, b) VALUES (100, 'x')")
        s.do("INSERT INTO t (a, b) SELECT 100 + count(*), 'y' FROM t")
        equal(s.do("SELECT count(*), max(a) FROM t"), [["302", "401"]])
        s.do("ROLLBACK")
        # More rows than frond reads for one answer.
        s.do("CREATE TABLE nokey (a int)")
        s.do("SET frond.bulk_load = on")
        s.do("INSERT INTO nokey SELECT i FROM generate_series(1, 60000) i")
        equal(s.do("SELECT count(*), sum(a), min(a), max(a), avg(a) FROM nokey"),
              [["60000", "1800030000", "1", "60000", "30000.500000000000"]])
        def pages(what):
            plan = "\n".join(line[0] for line in s.do(f"EXPLAIN (ANALYZE, COSTS OFF) SELECT {what} FROM nokey"))
            contains(plan, f"Frond Sums: {what}")
            return int(re.search(r"Frond Pages: (\d+)", plan)[1])

        assert pages("sum(a)") > 1
        # How many rows there are the table knows.
        equal(s.one("SELECT count(*) FROM nokey"), "60000")
        equal(pages("count(*)"), 1)


@test
def groups_by_an_index_are_computed_in_frond(cwd):
    with fresh()() as s:
        columns = "id int PRIMARY KEY, a int NOT NULL, b varchar(5), c text NOT NULL, d numeric(5, 2) NOT NULL, n int"
        s.do(f"CREATE TABLE t ({columns})")
        s.do(f"CREATE TABLE h ({columns}) USING heap")
        s.do("INSERT INTO h SELECT i, i % 5, CASE WHEN i % 3 > 0 THEN 'b' || i % 4 END, 'c' || i % 6, i % 2, i FROM generate_series(1, 2000) i")
        s.do("INSERT INTO t SELECT * FROM h")
        s.do("CREATE INDEX by_ab ON t (a, b)")
        s.do("CREATE INDEX by_c ON t (c)")
        s.do("CREATE INDEX by_d ON t (d)")
        s.do("CREATE INDEX by_some ON t (n) WHERE n > 1900")
        s.do("ANALYZE t")
        pushed = ["SELECT a, count(*) FROM % GROUP BY a", "SELECT a, b, count(*) FROM % GROUP BY b, a", "SELECT a FROM % GROUP BY a",
                  "SELECT b, count(*) FROM % WHERE a = 3 GROUP BY b", "SELECT a, count(*) FROM % WHERE a > 2 GROUP BY a",
                  "SELECT a, count(*) FROM % WHERE a IN (1, 3, 9) GROUP BY a", "SELECT a, count(*) FROM % GROUP BY a HAVING count(*) > 400",
                  "SELECT a, b, count(*) FROM % WHERE a = 2 AND b IS NULL GROUP BY a, b", "SELECT a, count(*) FROM % GROUP BY a ORDER BY a DESC"]
        # Values that may be too long for an entry, or are kept in several forms; sums of rows, for which each would be looked up.
        left = ["SELECT c, count(*) FROM % GROUP BY c", "SELECT d, count(*) FROM % GROUP BY d", "SELECT b, count(*) FROM % GROUP BY b",
                "SELECT a, sum(n) FROM % GROUP BY a", "SELECT n, count(*) FROM % GROUP BY n"]
        for query in pushed:
            plan = plan_of(s, query.replace("%", "t"))
            contains(plan, "Frond Groups: ")
            contains(plan, "Frond Index: by_ab")
        for query in left:
            assert "Frond Groups" not in plan_of(s, query.replace("%", "t")), query
        equal(plan_of(s, "SELECT a, count(*) FROM t GROUP BY a ORDER BY a"),
              "Foreign Scan\n  Frond Table: t\n  Frond Groups: a\n  Frond Sums: count(*)\n  Frond Index: by_ab")

        def compare():
            same_answers(s, *(query if "ORDER BY" in query else f"SELECT * FROM ({query}) q ORDER BY 1, 2" if ", " in query.split(" FROM ")[0]
                              else f"SELECT * FROM ({query}) q ORDER BY 1" for query in pushed + left))
        compare()
        # What the transaction has written, and what it takes back.
        s.do("BEGIN")
        s.do("DELETE FROM t WHERE a = 4 AND id % 2 = 0")
        equal(s.do("SELECT a, count(*) FROM t GROUP BY a ORDER BY a"), [[str(a), "200" if a == 4 else "400"] for a in range(5)])
        s.do("ROLLBACK")
        compare()


@test
def groups_by_the_key_are_computed_in_frond(cwd):
    with fresh()() as s:
        columns = "a int, b text, c numeric(6, 1), d varchar(5), n int, m float8"
        s.do(f"CREATE TABLE t ({columns}, PRIMARY KEY (a, b, c, d))")
        s.do(f"CREATE TABLE h ({columns}, PRIMARY KEY (a, b, c, d)) USING heap")
        s.do("INSERT INTO h SELECT i % 4, 'b' || i % 3, i % 5 / 2.0, 'd' || i, CASE WHEN i % 7 > 0 THEN i END, i FROM generate_series(1, 400) i")
        s.do("INSERT INTO t SELECT * FROM h")
        s.do("ANALYZE t")
        pushed = ["SELECT a, count(*) FROM % GROUP BY a", "SELECT a FROM % GROUP BY a", "SELECT sum(n), min(d) FROM % GROUP BY a, b",
                  "SELECT b, a, avg(n), max(c) FROM % GROUP BY b, a", "SELECT b, count(n) FROM % WHERE a = 2 GROUP BY b",
                  "SELECT b, count(n) FROM % WHERE a = 2 GROUP BY a, b", "SELECT c, count(*) FROM % WHERE a = 2 AND b = 'b1' GROUP BY c",
                  "SELECT a, count(*) FROM % WHERE a IN (1, 3, 9) AND n > 5 GROUP BY a", "SELECT a, count(*) FROM % WHERE a > 1 GROUP BY a",
                  "SELECT a + 1, count(*) * 2 FROM % GROUP BY a", "SELECT b FROM % WHERE a = 1 AND c = 1.0 GROUP BY b",
                  "SELECT DISTINCT count(*) FROM % GROUP BY a, b",
                  "SELECT a, count(*) FROM % GROUP BY a HAVING count(*) > (SELECT 3)", "SELECT count(*) FROM % WHERE a = 1 GROUP BY a"]
        # Few rows, or as many groups as rows: it hardly matters who computes it.
        either = ["SELECT a, b, c, d, sum(n) FROM % WHERE n < 9 GROUP BY d, c, b, a", "SELECT a, count(*) FROM % WHERE a = 77 GROUP BY a"]
        left = ["SELECT b, count(*) FROM % GROUP BY b", "SELECT a, c, count(*) FROM % GROUP BY a, c", "SELECT n, count(*) FROM % GROUP BY n",
                "SELECT a % 2, count(*) FROM % GROUP BY a % 2", "SELECT a, sum(m) FROM % GROUP BY a",
                "SELECT b, count(*) FROM % WHERE a IN (1, 2) GROUP BY b", "SELECT a, b, count(*) FROM % GROUP BY ROLLUP (a, b)",
                "SELECT a, count(*) FROM % GROUP BY a HAVING count(*) > (SELECT x FROM generate_series(3, 3) x WHERE x > a)",
                "SELECT a, count(*) FROM % WHERE m = 1 OR a = 1 GROUP BY a",
                "SELECT x.a, count(*) FROM % x JOIN % y USING (a) GROUP BY x.a"]
        for query in pushed:
            contains(plan_of(s, query.replace("%", "t", 1)), "Frond Groups: ")
        for query in left[:-1]:
            assert "Frond Groups" not in plan_of(s, query.replace("%", "t") if "a % 2" not in query else query.replace("FROM %", "FROM t")), query
        # (a % 2 has the sign that names a table.)
        same_answers(s, *(f"SELECT * FROM ({query}) q ORDER BY 1, 2" if "," in query.split(" FROM ")[0] else f"SELECT * FROM ({query}) q ORDER BY 1"
                          for query in pushed + either + left if "a % 2" not in query))
        equal(plan_of(s, "SELECT a, b, count(*), sum(n) FROM t WHERE n > 1 GROUP BY a, b HAVING max(n) > 390 ORDER BY a DESC, b DESC"),
              "Foreign Scan\n  Filter: ((max(n)) > 390)\n  Frond Table: t\n  Frond Groups: a, b\n  Frond Sums: count(*), sum(n), max(n)\n"
              "  Frond Filter: (n > 1)\n  Frond Order: backward")
        ordered = ["SELECT a, b, count(*), sum(n) FROM % WHERE n > 1 GROUP BY a, b HAVING max(n) > 390 ORDER BY a DESC, b DESC",
                   "SELECT a, count(*) FROM % GROUP BY a ORDER BY a LIMIT 2", "SELECT a, b, max(d) FROM % GROUP BY a, b ORDER BY a, b"]
        for query in ordered:
            assert "Sort" not in plan_of(s, query.replace("%", "t")), query
        same_answers(s, *ordered, "SELECT a, b, count(*) FROM % GROUP BY a, b ORDER BY b, a", "SELECT a, sum(n) FROM % GROUP BY a ORDER BY sum(n), a",
                     "SELECT x, (SELECT string_agg(b || k, ' ' ORDER BY b) FROM (SELECT b, count(*) AS k FROM % WHERE a = x GROUP BY b) q)"
                     " FROM generate_series(-1, 5) x")
        # By hash columns, which lie together in another order.
        s.do("CREATE TABLE hashed (a int, b int, n int, PRIMARY KEY (a, b)) WITH (hash = 'a')")
        s.do("INSERT INTO hashed SELECT i % 10, i, i FROM generate_series(1, 300) i")
        contains(plan_of(s, "SELECT a, count(*) FROM hashed GROUP BY a"), "Frond Groups: a")
        contains(plan_of(s, "SELECT a, count(*) FROM hashed GROUP BY a ORDER BY a"), "Sort")
        equal(s.do("SELECT a, count(*), sum(n) FROM hashed GROUP BY a ORDER BY a"),
              s.do("SELECT i % 10, count(*), sum(i) FROM generate_series(1, 300) i GROUP BY 1 ORDER BY 1"))
        # Texts that a collation takes for equal are one group for PostgreSQL alone.
        s.do("CREATE COLLATION mild (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        s.do("CREATE TABLE strictly (k text, i int, PRIMARY KEY (k, i))")
        s.do("INSERT INTO strictly VALUES ('a', 1), ('A', 2), ('b', 3)")
        s.do("CREATE FOREIGN TABLE mildly (k text COLLATE mild, i int) SERVER frond"
             f" OPTIONS (schema '{s.one('SELECT current_schema()')}', table 'strictly')")
        equal(s.do("SELECT lower(k), count(*) FROM mildly GROUP BY k ORDER BY 1"), [["a", "2"], ["b", "1"]])
        # Groups that are longer than a page, or go on in the next one; written to while they are read.
        s.do("CREATE TABLE long (g int, i int, PRIMARY KEY (g, i))")
        s.do("SET frond.bulk_load = on")
        s.do("INSERT INTO long SELECT CASE WHEN i <= 60000 THEN 1 ELSE i END, i FROM generate_series(1, 65000) i")
        s.do("RESET frond.bulk_load")
        plan = "\n".join(line[0] for line in s.do("EXPLAIN (ANALYZE, COSTS OFF) SELECT g, count(*) FROM long GROUP BY g"))
        assert int(re.search(r"Frond Pages: (\d+)", plan)[1]) > 1, plan
        equal(s.do("SELECT g, count(*), sum(i), max(i) FROM long GROUP BY g ORDER BY g LIMIT 2"),
              [["1", "60000", "1800030000", "60000"], ["60001", "1", "60001", "60001"]])
        equal(s.do("SELECT count(*), sum(k) FROM (SELECT count(*) AS k FROM long GROUP BY g) q"), [["5001", "65000"]])
        s.do("BEGIN")
        s.do("DECLARE c CURSOR FOR SELECT g, count(*) FROM long GROUP BY g")
        equal(s.do("FETCH 1 FROM c"), [["1", "60000"]])
        s.do("DELETE FROM long WHERE g > 60500")
        equal(len(s.do("FETCH ALL FROM c")), 5000)
        s.do("ROLLBACK")


# ---- Transactions ----

@test
def transactions_and_savepoints_are_frond_s(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int)")
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (1, 1)")
        equal(other.do("SELECT * FROM t"), [])
        s.do("SAVEPOINT a")
        s.do("INSERT INTO t VALUES (2, 2)")
        s.do("SAVEPOINT b")
        s.fails("23505", "INSERT INTO t VALUES (2, 3)")
        s.do("ROLLBACK TO b")
        s.do("UPDATE t SET v = 9 WHERE k = 1")
        s.do("ROLLBACK TO a")
        s.do("INSERT INTO t VALUES (3, 3)")
        s.do("COMMIT")
        equal(other.do("SELECT * FROM t"), [["1", "1"], ["3", "3"]])
        s.do("DO $$ BEGIN INSERT INTO t VALUES (4, 4); BEGIN INSERT INTO t VALUES (5, 5); INSERT INTO t VALUES (1, 1);"
             " EXCEPTION WHEN unique_violation THEN NULL; END; INSERT INTO t VALUES (6, 6); END $$")
        equal(s.one("SELECT string_agg(k::text, ',') FROM t"), "1,3,4,6")
        s.do("BEGIN")
        s.do("DELETE FROM t")
        s.do("ROLLBACK")
        equal(s.one("SELECT count(*) FROM t"), "4")
        s.do("BEGIN READ ONLY")
        s.fails("25006", "DELETE FROM t")
        s.do("ROLLBACK")
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (7, 7)")
        s.fails("0A000", "PREPARE TRANSACTION 'p'")
        equal(s.one("SELECT count(*) FROM t"), "4")


@test
def a_statement_does_not_see_its_own_rows(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int)")
        s.do("INSERT INTO t SELECT i, 0 FROM generate_series(1, 3000) i")
        s.do("INSERT INTO t SELECT k + 3000, 1 FROM t")
        equal(s.one("SELECT count(*) FROM t"), "6000")
        s.do("UPDATE t SET k = k + 10000 WHERE v = 0")
        equal(s.do("SELECT min(k), max(k), count(*) FROM t WHERE v = 0"), [["10001", "13000", "3000"]])
        s.do("UPDATE t SET v = (SELECT count(*) FROM t x WHERE x.v = 0)  WHERE v = 0 AND k < 10010")
        equal(s.do("SELECT DISTINCT v FROM t WHERE k BETWEEN 10001 AND 10009"), [["3000"]])
        s.do("CREATE TABLE r (k int PRIMARY KEY, v text)")
        s.do("INSERT INTO r SELECT i, repeat('x', 100) FROM generate_series(1, 2000) i")
        s.do("DO $$ DECLARE x record; BEGIN FOR x IN SELECT k FROM r LOOP"
             " INSERT INTO r VALUES (x.k + 10000, 'y'); END LOOP; END $$")
        equal(s.one("SELECT count(*) FROM r"), "4000")
        s.do("BEGIN")
        s.do("DECLARE c CURSOR FOR SELECT k FROM r WHERE v <> 'y'")
        s.do("FETCH 1 FROM c")
        s.do("DELETE FROM r")
        equal(len(s.do("FETCH ALL FROM c")), 1999)
        s.do("ROLLBACK")
        s.do("CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS"
             " $$ BEGIN IF (SELECT v FROM t WHERE k = NEW.k) <> NEW.v THEN RAISE 'not seen'; END IF; RETURN NULL; END $$")
        s.do("CREATE TRIGGER seen AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION seen()")
        s.do("UPDATE t SET v = 5 WHERE k < 3010")
        s.do("INSERT INTO t VALUES (1, 2), (2, 3)")


@test
def what_a_savepoint_has_undone_is_not_written_later(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int)")
        # A function of SQL keeps its statement for as long as the block that calls it.
        s.do("CREATE FUNCTION add() RETURNS int LANGUAGE sql AS"
             " $$ INSERT INTO t SELECT i, 1 / (3 - i) FROM generate_series(1, 5) i; SELECT 1 $$")
        s.do("DO $$ DECLARE x int; n int; BEGIN BEGIN x := add(); EXCEPTION WHEN division_by_zero THEN NULL; END;"
             " SELECT count(*) INTO n FROM t; IF n > 0 THEN RAISE 'there are %', n; END IF; INSERT INTO t VALUES (9, n); END $$")
        equal(s.do("SELECT * FROM t"), [["9", "0"]])


@test
def conflicts_are_40001_and_no_write_is_lost(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE doctors (name text PRIMARY KEY, on_call bool)")
        s.do("INSERT INTO doctors VALUES ('a', true), ('b', true)")
        for session, name in ((s, "a"), (other, "b")):
            session.do("BEGIN")
            equal(session.one("SELECT count(*) FROM doctors WHERE on_call"), "2")
            session.do(f"UPDATE doctors SET on_call = false WHERE name = '{name}'")
        s.do("COMMIT")
        other.fails("40001", "COMMIT")
        equal(s.one("SELECT count(*) FROM doctors WHERE on_call"), "1")


def meets(s, other, statement):
    """Sends the statement, which waits, and changes its row meanwhile."""
    s.send(statement)
    until(lambda: other.one("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1")
    other.do("UPDATE sums SET n = n + 100 WHERE k = 1")


@test
def a_statement_that_is_a_transaction_is_tried_again(cwd):
    opener = fresh()
    slowly = "UPDATE sums SET n = n + 1 WHERE k = 1 AND pg_sleep(1) IS NOT NULL"
    with opener() as s, opener() as other:
        s.do("CREATE TABLE sums (k int PRIMARY KEY, n int)")
        s.do("INSERT INTO sums VALUES (1, 0)")
        # Otherwise it would wait for the row.
        other.do("SET frond.row_locks = 0")
        meets(s, other, slowly)
        s.read()
        meets(s, other, slowly + " RETURNING n")
        equal(s.read(), [["202"]])
        meets(s, other, f"BEGIN; {slowly}; COMMIT")
        failure = read_failure(s)
        equal(failure.state, "40001")
        s.do("SET frond.retries = 0")
        meets(s, other, slowly)
        equal(read_failure(s).state, "40001")
        s.do("RESET frond.retries")
        # What a trigger has changed here commits with the statement.
        s.do("CREATE TEMP TABLE brief (a int)")
        s.do("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " IF to_regclass('pg_temp.brief') IS NOT NULL THEN INSERT INTO brief VALUES (1); END IF; RETURN NEW; END $$")
        s.do("CREATE TRIGGER note BEFORE UPDATE ON sums FOR EACH ROW EXECUTE FUNCTION note()")
        meets(s, other, slowly)
        equal(read_failure(s).state, "40001")
        s.do("UPDATE sums SET n = 5 WHERE k = 1")
        equal(s.one("SELECT count(*) FROM brief"), "1")
        # A failure that is none of others' is told at once.
        s.fails("22012", "UPDATE sums SET n = 1 / (n - 5)")
        s.fails("23505", "INSERT INTO sums VALUES (1, 1) RETURNING n")
        equal(s.one("SELECT n FROM sums"), "5")


def read_failure(session):
    try:
        got = session.read()
    except Failure as failure:
        return failure
    raise AssertionError(f"it gave {got}")


@test
def a_statement_that_frond_has_committed_says_so_if_it_fails_behind_that(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE t (k int PRIMARY KEY)")
        s.do("CREATE TABLE mine (a int) USING heap")
        s.do("INSERT INTO mine VALUES (7)")
        s.do("CREATE TEMP TABLE brief (a int) ON COMMIT DELETE ROWS")
        # PostgreSQL's commit empties the temporary table that was read, which waits for the one who has locked
        # it; that one waits for the other table that was read: the commit finds it, and fails.
        s.do("SET deadlock_timeout = '10ms'")
        other.do("SET deadlock_timeout = '1000s'")
        other.do("BEGIN")
        other.do(f"LOCK TABLE {s.one('SELECT pg_my_temp_schema()::regnamespace')}.brief IN ACCESS SHARE MODE")
        s.send("INSERT INTO t SELECT a + (SELECT count(*) FROM brief) FROM mine WHERE pg_sleep(2) IS NOT NULL")
        until(lambda: other.one("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1")
        other.send("LOCK TABLE mine IN ACCESS EXCLUSIVE MODE")
        failure = read_failure(s)
        equal(failure.state, "40P01")
        contains(str(failure), "WARNING:  01000: what this statement has changed in frond is committed")
        other.read()
        other.do("ROLLBACK")
        equal(s.do("SELECT * FROM t"), [["7"]])
        # The transaction is over, and the next one is as any.
        s.do("INSERT INTO t VALUES (8)")
        equal(s.one("SELECT count(*) FROM t"), "2")


@test
def a_storm_of_conflicts_ends(cwd):
    postgres, _ = shared()
    opener = fresh()
    clients, times = 6, 20
    with opener() as s:
        s.do("CREATE TABLE sums (k int PRIMARY KEY, n int)")
        s.do("INSERT INTO sums VALUES (1, 0)")
        database = s.one("SELECT current_database()")
        s.do(f"ALTER DATABASE {database} SET frond.row_locks = 0")
        command = [postgres.bin / "pgbench", "-n", "-h", postgres.home / "socket", "-U", "owner", "-c", str(clients),
                   "-t", str(times), "-f", cwd / "script"]
        for count, (protocol, returning) in enumerate(
                [("simple", ""), ("extended", ""), ("prepared", " RETURNING n")], 1):
            (cwd / "script").write_text(f"UPDATE sums SET n = n + 1 WHERE k = 1{returning};\n")
            done = subprocess.run([*command, "-M", protocol, database], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0 and "failed transactions: 0 " in done.stdout, done.stdout + done.stderr
            equal(s.one("SELECT n FROM sums"), str(count * clients * times))


@test
def what_follows_a_statement_belongs_to_its_transaction(cwd):
    postgres, _ = shared()
    opener = fresh()
    with opener() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY)")
        database = s.one("SELECT current_database()")
        at = ["-h", postgres.home / "socket", "-U", "owner"]
        (cwd / "pipeline").write_text("\\startpipeline\nINSERT INTO t VALUES (1);\nSELECT 1 / 0;\n\\endpipeline\n")
        (cwd / "alone").write_text("INSERT INTO t VALUES (2);\nSELECT 1 / 0;\n")
        for script in ("pipeline", "alone"):
            failed = subprocess.run([postgres.bin / "pgbench", "-n", *at, "-t", "1", "-M", "extended", "-f", cwd / script,
                                     database], capture_output=True, text=True, timeout=60)
            contains(failed.stderr, "division by zero")
        subprocess.run([postgres.bin / "psql", "-Xq", *at, "-d", database, "-c", "INSERT INTO t VALUES (3); SELECT 1 / 0"],
                       capture_output=True, timeout=60)
        s.do("PREPARE p AS INSERT INTO t VALUES ($1)")
        s.do("EXECUTE p(4)")
        equal(s.do("SELECT k FROM t"), [["2"], ["4"]])


@test
def local_and_frond_s_tables_are_not_written_together(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE ours (a int)")
        s.do("CREATE TABLE heap (a int) USING heap")
        s.do("CREATE TEMP TABLE brief (a int)")
        for first, second in (("ours", "heap"), ("heap", "ours")):
            s.do("BEGIN")
            s.do("INSERT INTO brief VALUES (1)")
            s.do(f"INSERT INTO {first} VALUES (1)")
            s.fails("0A000", f"INSERT INTO {second} VALUES (1)")
            s.do("ROLLBACK")
        s.do("BEGIN")
        s.do("COPY heap FROM STDIN", "1")
        s.fails("0A000", "COPY ours FROM STDIN", "1")
        s.do("ROLLBACK")
        s.do("SET frond.allow_mixed_writes = on")
        s.do("WITH x AS (INSERT INTO ours VALUES (1)) INSERT INTO heap VALUES (1)")
        equal(s.one("SELECT count(*) FROM ours JOIN heap USING (a)"), "1")


@test
def much_is_copied(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v text)")
        s.do("COPY t FROM STDIN WITH (FREEZE)", *(f"{i}\tvalue {i}" for i in range(5000)))
        equal(s.do("SELECT count(*), max(v) FROM t"), [["5000", "value 999"]])
        s.fails("23505", "COPY t FROM STDIN", *(f"{i}\tx" for i in (7000, 7001, 17)))
        equal(s.one("SELECT count(*) FROM t"), "5000")
        equal(s.do("COPY t (v, k) TO STDOUT")[17], ["value 17", "17"])
        s.fails("54000", "INSERT INTO t SELECT i, repeat('x', 4000) FROM generate_series(10000, 13000) i")
        s.do("SET frond.bulk_load = on")
        s.do("INSERT INTO t SELECT i, repeat('x', 4000) FROM generate_series(10000, 13000) i")
        equal(s.one("SELECT count(*) FROM t"), "8001")
        # The row at fault is named, however many were sent behind it, and nothing of them is there.
        s.do("SET frond.bulk_load = off")
        s.do("INSERT INTO t VALUES (20100, 'x')")
        failure = s.fails("23505", "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(20000, 23000) i")
        contains(failure, "Key (k)=(20100) already exists.")
        equal(s.one("SELECT count(*) FROM t"), "8002")


@test
def a_statement_that_waits_for_frond_is_cancelled(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY)")
        s.do("INSERT INTO t VALUES (1)")
        door = shared()[1]
        door.process.send_signal(signal.SIGSTOP)
        # On a busy machine its threads go on for a while.
        threads = pathlib.Path(f"/proc/{door.process.pid}/task")
        until(lambda: all(") T" in stat.read_text() for stat in threads.glob("*/stat")))
        try:
            s.do("SET statement_timeout = '300ms'")
            s.fails("57014", "SELECT * FROM t")
        finally:
            door.process.send_signal(signal.SIGCONT)
        s.do("SET statement_timeout = 0")
        equal(s.do("SELECT * FROM t"), [["1"]])


@test
def frond_ends_and_comes_back(cwd):
    postgres, _ = shared()
    with Door(cwd, "--store", f"embedded:{cwd}/store") as door:
        opener = postgres.database("ends", door.port)
        with opener() as s:
            s.do("CREATE TABLE t (k int PRIMARY KEY, v text)")
            s.do("INSERT INTO t VALUES (1, 'a')")
            s.do("BEGIN")
            s.do("INSERT INTO t VALUES (2, 'b')")
            door.process.kill()
            door.process.wait()
            s.fails("08007", "COMMIT")
            s.fails("08001", "SELECT * FROM t")
            with Door(cwd, "--store", f"embedded:{cwd}/store", port=door.port) as again:
                equal(s.do("SELECT * FROM t"), [["1", "a"]])
                equal(s.do("SELECT v FROM t WHERE k = 1"), [["a"]])
                s.do("BEGIN")
                s.do("SELECT * FROM t")
                again.process.kill()
                again.process.wait()
                s.fails("08006", "SELECT * FROM t")
                s.do("ROLLBACK")
            with Door(cwd, "--store", f"embedded:{cwd}/store", port=door.port):
                s.do("INSERT INTO t VALUES (3, 'c')")
                equal(s.do("SELECT k FROM t"), [["1"], ["3"]])
                # A row by its key is asked for without a look at the connection, and once more if that was closed.
                equal(s.do("SELECT v FROM t WHERE k = 3"), [["c"]])
            s.fails("08001", "SELECT v FROM t WHERE k = 3")
            with Door(cwd, "--store", f"embedded:{cwd}/store", port=door.port):
                equal(s.do("SELECT v FROM t WHERE k = 3"), [["c"]])
                equal(s.do("SELECT k FROM t WHERE k IN (1, 2, 3)"), [["1"], ["3"]])
            with Door(cwd, "--store", f"embedded:{cwd}/store", port=door.port):
                equal(s.do("SELECT k FROM t WHERE k IN (3, 2, 1)"), [["1"], ["3"]])


@test
def balances_hold_when_frond_is_killed_under_pgbench(cwd):
    postgres, _ = shared()
    with Door(cwd, "--store", f"embedded:{cwd}/store") as door:
        opener = postgres.database("bench", door.port)
        with opener() as s:
            s.do("CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88)) WITH (fillfactor = 10)")
            s.do("CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84))")
            s.do("CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))")
            s.do("CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))")
            s.do("INSERT INTO pgbench_branches VALUES (1, 0)")
            s.do("INSERT INTO pgbench_tellers SELECT i, 1, 0 FROM generate_series(1, 10) i")
            s.do("INSERT INTO pgbench_accounts SELECT i, 1, 0 FROM generate_series(1, 1000) i")
        # The built-in script takes 100,000 accounts for one branch: most of its UPDATEs find none.
        (cwd / "script").write_text(
            "\\set aid random(1, 1000)\n\\set tid random(1, 10)\n\\set delta random(-5000, 5000)\nBEGIN;\n"
            "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n"
            "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
            "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n"
            "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;\n"
            "INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (:tid, 1, :aid, :delta);\nEND;\n")
        command = [postgres.bin / "pgbench", "-n", "-h", postgres.home / "socket", "-U", "owner", "-c", "4",
                   "--max-tries", "1000", "-f", cwd / "script"]
        done = subprocess.run([*command, "-t", "10", "bench"], capture_output=True, text=True, timeout=120)
        equal((done.returncode, "failed transactions: 0 " in done.stdout), (0, True))
        with subprocess.Popen([*command, "-T", "60", "bench"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as bench, opener() as s:
            until(lambda: int(s.one("SELECT count(*) FROM pgbench_history")) > 50)
            door.process.kill()
            door.process.wait()
            bench.wait(60)
        with Door(cwd, "--store", f"embedded:{cwd}/store", port=door.port), opener() as s:
            sums = s.do("SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),"
                        " (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history)")[0]
            equal(len(set(sums)), 1)
            assert int(s.one("SELECT count(*) FROM pgbench_history")) > 50


# ---- Others ----

@test
def tables_of_others_are_imported(cwd):
    opener = fresh()
    with opener() as s:
        s.do("CREATE SCHEMA made")
        s.do("CREATE TABLE made.t (k uuid PRIMARY KEY, j jsonb, n numeric)")
        s.do("CREATE TABLE made.nokey (a int)")
        s.do("INSERT INTO made.t VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": 1}', 2.50)")
        s.do("INSERT INTO made.nokey VALUES (7)")
        s.do("CREATE SCHEMA seen")
        s.do("IMPORT FOREIGN SCHEMA made FROM SERVER frond INTO seen")
        equal(s.do("SELECT * FROM seen.t"), [["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", '{"a": 1}', "2.50"]])
        s.do("UPDATE seen.nokey SET a = 8")
        equal(s.do("SELECT * FROM made.nokey"), [["8"]])
        # What was imported is not dropped with its foreign table.
        s.do("DROP SCHEMA seen CASCADE")
        equal(s.do("SELECT * FROM made.nokey"), [["8"]])
        s.do("DROP SCHEMA made CASCADE")
        s.do("IMPORT FOREIGN SCHEMA made FROM SERVER frond INTO public")
        equal(s.do("SELECT count(*) FROM pg_foreign_table"), [["0"]])


@test
def numbers_of_columns_come_by_blocks_from_the_store(cwd):
    postgres, door = shared()
    opener = fresh()
    other_opener = postgres.database("others", door.port)
    with opener() as s, opener() as t, other_opener() as u:
        schema = s.one("SELECT current_schema()")
        s.do("SET frond.sequence_block = 10")
        s.do("CREATE TABLE t (id serial PRIMARY KEY, who text)")
        s.do("CREATE TABLE i (id smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, who text)")
        equal(s.do("SELECT seqcache FROM pg_sequence"), [["10"], ["10"]])
        equal(s.do("INSERT INTO t (who) VALUES ('a'), ('b') RETURNING id"), [["1"], ["2"]])
        equal(s.do("SELECT currval('t_id_seq'), lastval(), pg_get_serial_sequence('t', 'id')"), [["2", "2", f"{schema}.t_id_seq"]])
        equal(s.do("INSERT INTO i (who) VALUES ('a'), ('b') RETURNING id"), [["1"], ["2"]])
        # Another session has a block of its own, also when what was cached of the first one is used up.
        equal(t.do("INSERT INTO t (who) VALUES ('c') RETURNING id"), [["11"]])
        equal(s.do("INSERT INTO t (who) SELECT 'd' FROM generate_series(1, 10) RETURNING id"), [[str(n)] for n in (*range(3, 11), 21, 22)])
        equal(t.one("SELECT nextval('t_id_seq')"), "12")
        equal(t.do("INSERT INTO i (who) VALUES ('c') RETURNING id"), [["11"]])
        # Another PostgreSQL, whose own sequence knows nothing of this one.
        u.do(f"CREATE FOREIGN TABLE t (id int NOT NULL, who text) SERVER frond OPTIONS (schema '{schema}', table 't')")
        u.do("CREATE SEQUENCE own CACHE 7")
        u.do("ALTER SEQUENCE own OWNED BY t.id")
        u.do("ALTER FOREIGN TABLE t ALTER id SET DEFAULT nextval('own')")
        equal(u.do("INSERT INTO t (who) VALUES ('e') RETURNING id"), [["31"]])
        for _ in range(4):
            for session in (s, t, u):
                session.do("INSERT INTO t (who) SELECT 'f' FROM generate_series(1, 9)")
        equal(s.do("SELECT count(*), count(DISTINCT id) FROM t"), [["122", "122"]])
        # One that was restored: its sequence is where it was long ago.
        s.do("SELECT setval('t_id_seq', 1)")
        with opener() as late:
            late.do("INSERT INTO t (who) SELECT 'g' FROM generate_series(1, 30)")
        equal(s.one("SELECT count(*) FROM t"), "152")
        # What raises the sequence here raises it everywhere.
        s.do("SELECT setval('t_id_seq', 5000)")
        raised = int(s.one("INSERT INTO t (who) VALUES ('h') RETURNING id"))
        assert 5000 < raised <= 5020, raised
        with other_opener() as late:
            assert int(late.one("INSERT INTO t (who) VALUES ('h') RETURNING id")) > raised
        # So do rows of COPY, which draws blocks as any statement does.
        s.do("SELECT setval('t_id_seq', 9000)")
        s.do("COPY t (who) FROM STDIN", *["x"] * 25)
        with opener() as late:
            assert int(late.one("INSERT INTO t (who) VALUES ('i') RETURNING id")) > 9025
        with other_opener() as late:
            assert int(late.one("INSERT INTO t (who) VALUES ('i') RETURNING id")) > 9025
        # A number is gone if its transaction is.
        s.do("BEGIN")
        before = int(s.one("INSERT INTO t (who) VALUES ('j') RETURNING id"))
        s.do("ROLLBACK")
        assert int(s.one("INSERT INTO t (who) VALUES ('j') RETURNING id")) > before
        s.do("TRUNCATE t RESTART IDENTITY")
        equal(s.do("INSERT INTO t (who) VALUES ('k') RETURNING id"), [["1"]])
        # A table that is made anew begins anew.
        s.do("DROP TABLE i")
        s.do("CREATE TABLE i (id smallint GENERATED BY DEFAULT AS IDENTITY (MAXVALUE 4) PRIMARY KEY, who text)")
        equal(s.do("INSERT INTO i (who) SELECT 'a' FROM generate_series(1, 4) RETURNING id"), [["1"], ["2"], ["3"], ["4"]])
        contains(s.fails("2200H", "INSERT INTO i (who) VALUES ('b')"), 'reached maximum value of sequence "i_id_seq" (4)')
        # Sequences of others are PostgreSQL's.
        s.do("CREATE TABLE h (id serial, back int) USING heap")
        equal(s.do("INSERT INTO h VALUES (DEFAULT) RETURNING id"), [["1"]])
        equal(t.do("INSERT INTO h VALUES (DEFAULT) RETURNING id"), [["2"]])
        s.fails("42809", "SELECT public.frond_nextval('h_id_seq')")
        s.do("CREATE USER typist")
        s.do(f"GRANT USAGE ON SCHEMA {schema} TO typist")
        s.do("GRANT USAGE ON FOREIGN SERVER frond TO typist")
        s.do("GRANT INSERT ON t, i TO typist")
        s.do("ALTER TABLE i ALTER id SET MAXVALUE 1000")
        with opener("typist") as typist:
            typist.fails("42501", "INSERT INTO t (who) VALUES ('l')")
            typist.do("INSERT INTO i (who) VALUES ('l')")
            typist.fails("42501", "SELECT public.frond_nextval('t_id_seq')")
            s.do("GRANT USAGE ON SEQUENCE t_id_seq TO typist")
            typist.do("INSERT INTO t (who) VALUES ('l')")


@test
def people_of_frond_have_their_rights(cwd):
    postgres, _ = shared()
    with Door(cwd, env={"FROND_ADMIN": "root:secret"}) as door:
        opener = postgres.database("people", door.port)
        with opener() as s:
            contains(s.fails("28000", "CREATE TABLE t (k int PRIMARY KEY)"), "frond")
            s.do("CREATE USER MAPPING FOR owner SERVER frond OPTIONS (user 'root', password 'wrong')")
            s.fails("28P01", "CREATE TABLE t (k int PRIMARY KEY)")
            s.do("ALTER USER MAPPING FOR owner SERVER frond OPTIONS (SET password 'secret')")
            s.do("CREATE TABLE t (k int PRIMARY KEY)")
            s.do("INSERT INTO t VALUES (1)")
            s.do("CREATE USER reader")
            s.do("GRANT ALL ON t TO reader")
            with opener("reader") as reader:
                reader.fails("28000", "SELECT * FROM t")
                reader.fails("42501", "CREATE TABLE x (k int) USING frond")


@test
def a_unix_socket_leads_to_frond(cwd):
    postgres, _ = shared()
    # A directory whose group is PostgreSQL's: the file is of that group, too.
    home = pathlib.Path(tempfile.mkdtemp(prefix="frond-pg-socket-"))
    if OWNER:
        shutil.chown(home, group=OWNER)
    home.chmod(0o2750)
    try:
        with Server(cwd, "--rows", home / "rows.sock", env={"FROND_ADMIN": "root:secret"}):
            with postgres.session() as s:
                s.do("CREATE DATABASE socketed")
            with postgres.session("socketed") as s:
                s.do("CREATE EXTENSION frond")
                s.do(f"CREATE SERVER frond FOREIGN DATA WRAPPER frond OPTIONS (host '{home}/rows.sock')")
                s.do("CREATE USER MAPPING FOR owner SERVER frond OPTIONS (user 'root', password 'secret')")
                s.do("CREATE TABLE t (k int PRIMARY KEY, v text) USING frond")
                s.do("INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 1000) i")
                equal(s.do("SELECT count(*), sum(k), sum(length(v)) FROM t"), [["1000", "500500", "1000000"]])
                s.do("ALTER SERVER frond OPTIONS (ADD tls 'on')")
                contains(s.fails("08001", "SELECT * FROM t"), "there is no TLS at a Unix socket")
    finally:
        shutil.rmtree(home)


try:
    main(missing())
finally:
    end_shared()
