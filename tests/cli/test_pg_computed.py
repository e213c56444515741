#!/usr/bin/env python3
"""PostgreSQL with its tables in frond: what indexes compute, ON CONFLICT with conditions, renamed indexes, beside heap tables."""

import random

from harness import contains, equal, main, test
from pg_server import Failure, end_shared, fresh, missing


def plan(s, query):
    return "\n".join(line[0] for line in s.do("EXPLAIN (COSTS OFF) " + query))


def answer(s, sql):
    """Rows, or the error with what it says of values."""
    try:
        return s.do(sql)
    except Failure as failure:
        return [failure.state] + [line for line in str(failure).splitlines() if line.startswith(("DETAIL", "CONSTRAINT"))]


def same(s, sql):
    """The statement with § for the table's name: in frond, then in a heap, whose constraints have its name, too."""
    frond, heap = answer(s, sql.replace("§", "t")), answer(s, sql.replace("§", "heap.t"))
    equal((sql, frond), (sql, heap))
    return frond


def both(s, columns, *statements):
    s.do("CREATE SCHEMA IF NOT EXISTS heap")
    s.do("SET frond.allow_mixed_writes = on")
    s.do(f"CREATE TABLE t ({columns})")
    s.do(f"CREATE TABLE heap.t ({columns}) USING heap")
    for statement in statements:
        same(s, statement)


def stored(s):
    """The columns that frond keeps for indexes, as another sees them who knows nothing of them."""
    s.do("CREATE SCHEMA IF NOT EXISTS seen")
    server = s.one("SELECT current_schema()")
    s.do(f"DROP FOREIGN TABLE IF EXISTS seen.t; IMPORT FOREIGN SCHEMA {server} LIMIT TO (t) FROM SERVER frond INTO seen")
    return s.do("SELECT attname FROM pg_attribute WHERE attrelid = 'seen.t'::regclass AND attnum > 0")


# ---- Expressions ----

@test
def an_index_of_an_expression_is_made_used_and_kept(cwd):
    with fresh()() as s:
        both(s, "id int PRIMARY KEY, x varchar(20), n int, j jsonb",
             "INSERT INTO § SELECT i, 'Name ' || i, i % 10, jsonb_build_object('k', i) FROM generate_series(1, 3000) i",
             "CREATE UNIQUE INDEX low ON § (lower(x))",
             "CREATE INDEX sums ON § ((n + 1), id DESC)",
             "CREATE INDEX keys ON § ((j->>'k'))")
        s.do("ANALYZE t")
        text = plan(s, "SELECT id FROM t WHERE lower(x) = 'name 77'")
        contains(text, "Frond Index: low\n")
        contains(text, "Frond Key: (lower((x)::text) = 'name 77'::text)")
        contains(plan(s, "SELECT id FROM t WHERE j->>'k' = '5'"), "Frond Index: keys")
        contains(plan(s, "SELECT id FROM t WHERE n + 1 = 4 AND id < 100 ORDER BY id DESC LIMIT 2"), "Frond Rows: 2")
        contains(plan(s, "SELECT t.id FROM (VALUES ('name 1'), ('name 2')) v (a) JOIN t ON lower(t.x) = a"), "Frond Index: low")
        for query in ("SELECT id FROM § WHERE lower(x) = 'name 77'", "SELECT id FROM § WHERE j->>'k' IN ('5', '6') ORDER BY 1",
                      "SELECT id FROM § WHERE n + 1 = 4 AND id < 100 ORDER BY id DESC LIMIT 2",
                      "SELECT count(*) FROM § WHERE n + 1 > 8", "SELECT count(*) FROM § WHERE lower(x) LIKE 'name 1%'",
                      "SELECT id FROM (VALUES ('name 1'), ('name 2')) v (a) JOIN § AS u ON lower(u.x) = a ORDER BY 1"):
            same(s, query)
        equal(same(s, "INSERT INTO § VALUES (4001, 'NAME 5')"),
              ["23505", "DETAIL:  Key (lower(x::text))=(name 5) already exists.", "CONSTRAINT NAME:  low"])
        same(s, "UPDATE § SET x = 'NAME 6' WHERE id = 5")
        same(s, "UPDATE § SET n = n + 1 WHERE id = 5")
        same(s, "UPDATE § SET x = 'Other', id = 5005 WHERE id = 5")
        same(s, "INSERT INTO § VALUES (4001, 'NAME 5'), (4002, NULL), (4003, NULL)")
        same(s, "SELECT id FROM § WHERE lower(x) IN ('other', 'name 5') ORDER BY 1")
        same(s, "DELETE FROM § WHERE lower(x) = 'other' RETURNING id")
        same(s, "SELECT id, lower(x) FROM § WHERE lower(x) IN ('other', 'name 5')")
        equal(s.do("SELECT pg_get_indexdef(indexrelid, 1, true) FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1"),
              [["(j ->> 'k'::text)"], ["(n + 1)"], ["id"], ["lower(x::text)"]])


@test
def what_cannot_be_computed_is_refused_as_by_heaps(cwd):
    with fresh()() as s:
        both(s, "id int PRIMARY KEY, x text, at timestamptz, j jsonb")
        for statement in ("CREATE INDEX ON § (lower(none))", "CREATE INDEX ON § ((random()))", "CREATE INDEX ON § ((at::date))",
                          "CREATE INDEX ON § (x) WHERE at < now()", "CREATE INDEX ON § ((sum(id)))"):
            equal(len(same(s, statement)), 1)
        contains(s.fails("0A000", "CREATE INDEX ON t ((j->'k'))"), "does not know the order of jsonb")
        contains(s.fails("0A000", "CREATE INDEX ON t ((t IS NULL))"), "whole rows")
        # A column in parentheses is one.
        s.do("CREATE INDEX ON t ((x))")
        contains(s.one("SELECT pg_get_indexdef('t_x_idx'::regclass)"), "btree (x)")
        equal(s.do("CREATE INDEX ON t (lower(x), (id + 1)); SELECT relname FROM pg_class WHERE relname ~ 'lower'"), [["t_lower_expr_idx"]])
        equal(stored(s), [["id"], ["x"], ["at"], ["j"]])


@test
def a_computed_index_belongs_to_its_transaction(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, x text)")
        s.do("INSERT INTO t VALUES (1, 'a'), (2, 'A'), (3, 'b')")
        contains(s.fails("23505", "CREATE UNIQUE INDEX low ON t (lower(x))"), '"low"')
        s.do("UPDATE t SET x = 'c' WHERE id = 2")
        for end in ("ROLLBACK", "COMMIT"):
            s.do("BEGIN")
            s.do("CREATE UNIQUE INDEX low ON t (lower(x))")
            s.fails("23505", "INSERT INTO t VALUES (9, 'B')")
            s.do("ROLLBACK")
            s.do("INSERT INTO t VALUES (4, 'B')")
            s.do("DELETE FROM t WHERE id = 4")
            # Behind rows that were written it is a part of frond's transaction.
            s.do("BEGIN")
            s.do("INSERT INTO t VALUES (5, 'A')")
            s.fails("23505", "CREATE UNIQUE INDEX low ON t (lower(x)) WHERE id > 0")
            s.do("ROLLBACK")
            s.again(lambda end=end: [s.do(sql) for sql in (
                "BEGIN", "INSERT INTO t VALUES (5, 'E')",
                "CREATE UNIQUE INDEX low ON t (lower(x)) WHERE x IS NOT NULL AND id <> 3", end)])
            equal(s.one("SELECT count(*) FROM t"), "3" if end == "ROLLBACK" else "4")
        s.fails("23505", "INSERT INTO t VALUES (6, 'e')")
        s.do("INSERT INTO t VALUES (6, 'B')")
        s.do("BEGIN; DROP INDEX low; INSERT INTO t VALUES (7, 'new'); COMMIT")
        s.do("INSERT INTO t VALUES (8, 'e')")
        s.do("CREATE INDEX low ON t (upper(x))")
        equal(s.do("SELECT id FROM t WHERE upper(x) = 'E' ORDER BY 1"), [["5"], ["8"]])
        contains(plan(s, "SELECT id FROM t WHERE upper(x) = 'E'"), "Frond Index: low")


@test
def a_table_is_altered_with_computed_indexes(cwd):
    with fresh()() as s:
        both(s, "id int, x varchar(10), y text, n int", "INSERT INTO § SELECT i, 'X' || i, 'Y' || i, i FROM generate_series(1, 50) i",
             "CREATE UNIQUE INDEX low ON § (lower(x), n)", "CREATE INDEX few ON § (n) WHERE y LIKE '%7'",
             "ALTER TABLE § ADD PRIMARY KEY (id)", "INSERT INTO § VALUES (60, 'x5', 'a', 5)", "SELECT id FROM § WHERE lower(x) = 'x5'",
             "ALTER TABLE § ALTER x TYPE text", "INSERT INTO § VALUES (60, 'x5', 'a', 5)", "SELECT id FROM § WHERE lower(x) = 'x6'",
             "ALTER TABLE § ALTER n TYPE bigint", "INSERT INTO § VALUES (60, 'x5', 'a', 5)", "INSERT INTO § VALUES (61, 'x5', 'a7', 6)",
             "SELECT id FROM § WHERE y LIKE '%7' AND n > 5 ORDER BY 1", "ALTER TABLE § RENAME x TO z", "UPDATE § SET z = 'X7', n = 7 WHERE id = 8",
             "ALTER TABLE § DROP COLUMN y", "INSERT INTO § VALUES (62, 'x5', 5)")
        contains(plan(s, "SELECT id FROM t WHERE lower(z) = 'x5'"), "Frond Index: low")
        equal(s.do("SELECT relname FROM pg_class WHERE relkind = 'I' ORDER BY 1"), [["low"], ["t_pkey"]])
        same(s, "ALTER TABLE § DROP COLUMN z")
        equal(s.do("SELECT relname FROM pg_class WHERE relkind = 'I' ORDER BY 1"), [["t_pkey"]])
        s.do("CREATE TABLE u (LIKE heap.t INCLUDING ALL)")
        s.do("CREATE TABLE v (a int, b text)")
        s.do("CREATE INDEX ON v ((a * 2)) WHERE b IS NULL")
        s.do("CREATE TABLE w (LIKE v INCLUDING ALL)")
        contains(s.one("SELECT pg_get_indexdef('w_expr_idx'::regclass)"), "btree (((a * 2))) WHERE (b IS NULL)")


@test
def another_postgresql_reads_what_this_one_computes(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, x text)")
        s.do("INSERT INTO t VALUES (1, 'A')")
        stored(s)
        s.do("INSERT INTO seen.t VALUES (2, 'B')")
        s.do("CREATE UNIQUE INDEX ON t (lower(x))")
        equal(stored(s), [["id"], ["x"]])
        equal(s.do("SELECT * FROM seen.t ORDER BY id"), [["1", "A"], ["2", "B"]])
        for statement in ("INSERT INTO seen.t VALUES (3, 'a')", "UPDATE seen.t SET x = 'b'", "DELETE FROM seen.t"):
            contains(s.fails("0A000", statement), "another PostgreSQL computes")
        s.do("DROP INDEX t_lower_idx")
        stored(s)
        s.do("INSERT INTO seen.t VALUES (3, 'a')")


@test
def random_changes_leave_the_same_rows_as_in_heaps(cwd):
    rng = random.Random(71)
    with fresh()() as s:
        both(s, "id int PRIMARY KEY, a text, b int, c float8, g int GENERATED ALWAYS AS (b % 5) STORED")
        for statement in ("CREATE UNIQUE INDEX low ON § (lower(a)) WHERE b IS NULL", "CREATE INDEX mod ON § ((b % 3), a)",
                          "CREATE UNIQUE INDEX near ON § ((round(c)::int), b)", "CREATE INDEX made ON § ((g + 1)) WHERE c > 2.5 OR a ~ '^x'"):
            same(s, statement)

        def value():
            return (f"{rng.choice([repr(c) for c in 'aAbBxXyY'] + ['NULL'])}, {rng.choice(['NULL', rng.randrange(9)])}, "
                    f"{rng.choice(['NULL', rng.randrange(9) / 2])}")

        for _ in range(300):
            a, b, c = value().split(", ")
            key, where = rng.randrange(30), rng.choice([f"id = {rng.randrange(30)}", f"lower(a) = {a} AND b IS NULL",
                                                        f"b % 3 = {rng.randrange(3)} AND a > 'b'", f"g + 1 = 2 AND (c > 2.5 OR a ~ '^x')",
                                                        f"round(c)::int = {rng.randrange(5)}"])
            same(s, rng.choice([
                f"INSERT INTO § VALUES ({key}, {a}, {b}, {c})",
                f"INSERT INTO § VALUES ({key}, {a}, {b}, {c}) ON CONFLICT DO NOTHING RETURNING id",
                f"INSERT INTO § AS o VALUES ({key}, {a}, {b}, {c}) ON CONFLICT (id) DO UPDATE SET a = excluded.a, b = o.b RETURNING *",
                f"INSERT INTO § AS o VALUES ({key}, {a}, {b}, {c}) ON CONFLICT (lower(a)) WHERE b IS NULL DO UPDATE SET c = o.c + 1 "
                f"WHERE o.c < 3 RETURNING *",
                f"INSERT INTO § VALUES ({key}, {a}, {b}, {c}) ON CONFLICT ((round(c)::int), b) DO NOTHING RETURNING id",
                f"UPDATE § SET a = {a} WHERE id = {key} RETURNING *", f"UPDATE § SET b = {b}, c = {c} WHERE id = {key}",
                f"UPDATE § SET id = id + 100, a = upper(a) WHERE id = {key}", f"DELETE FROM § WHERE id >= 100 OR id = {key}",
                f"SELECT count(*), sum(id) FROM § WHERE {where}"]))
            same(s, f"SELECT id, a, b, c, g FROM § WHERE {where} ORDER BY id")
        same(s, "SELECT * FROM § ORDER BY id")


# ---- Conditions ----

@test
def conditions_have_any_names_and_texts(cwd):
    with fresh()() as s:
        both(s, 'id int PRIMARY KEY, "Name" text, "isUnique" bool, "ä" text',
             'CREATE UNIQUE INDEX a ON § ("Name") WHERE "isUnique" = true', 'CREATE UNIQUE INDEX b ON § (id, "Name") WHERE "ä" = \'é"\'',
             'CREATE UNIQUE INDEX c ON § (lower("ä")) WHERE "Name" LIKE \'"é%\'',
             "INSERT INTO § VALUES (1, 'x', true, 'é\"'), (2, 'x', false, 'é'), (3, '\"éa', NULL, 'Q')",
             "INSERT INTO § VALUES (4, 'x', true, NULL)", "INSERT INTO § VALUES (4, '\"éb', false, 'q')",
             'SELECT id FROM § WHERE "Name" = \'x\' AND "isUnique" = true', 'SELECT id FROM § WHERE "ä" = \'é"\'')


@test
def any_immutable_condition_chooses_the_rows_of_an_index(cwd):
    with fresh()() as s:
        both(s, "id int PRIMARY KEY, a text, gone timestamp, n numeric",
             "INSERT INTO § SELECT i, 'a' || i % 10, CASE WHEN i > 10 THEN '2024-01-01'::timestamp END, i FROM generate_series(1, 30) i",
             "CREATE UNIQUE INDEX live ON § (a) WHERE gone IS NULL", "CREATE UNIQUE INDEX many ON § (n) WHERE a LIKE 'a%' OR n > 2.5",
             "INSERT INTO § VALUES (40, 'a1', NULL, 100)", "INSERT INTO § VALUES (40, 'a1', now(), 100)",
             "UPDATE § SET gone = NULL WHERE id = 40", "UPDATE § SET gone = now() WHERE id = 1", "UPDATE § SET gone = NULL WHERE id = 40",
             "INSERT INTO § VALUES (41, 'b', NULL, 2)", "INSERT INTO § VALUES (42, 'c', NULL, 2)", "UPDATE § SET a = 'az' WHERE id = 42",
             "SELECT id FROM § WHERE a = 'a1' AND gone IS NULL")
        s.do("ANALYZE t")
        contains(plan(s, "SELECT id FROM t WHERE a = 'a1' AND gone IS NULL"), "Frond Index: live")
        assert "live" not in plan(s, "SELECT id FROM t WHERE a = 'a1'")


# ---- ON CONFLICT ----

@test
def on_conflict_infers_as_heaps_do(cwd):
    with fresh()() as s:
        both(s, "id int PRIMARY KEY, a text, b int, c int, UNIQUE (c) DEFERRABLE",
             "CREATE UNIQUE INDEX part ON § (a) WHERE b > 5", "CREATE UNIQUE INDEX low ON § (lower(a)) WHERE b < 0",
             "INSERT INTO § VALUES (1, 'x', 6, 1), (2, 'X', -1, 2), (3, 'x', 0, 3)",
             "INSERT INTO § VALUES (4, 'x', 7, 4) ON CONFLICT (a) WHERE b > 5 DO NOTHING RETURNING id",
             "INSERT INTO § AS o VALUES (4, 'x', 7, 4) ON CONFLICT (a) WHERE b > 8 DO UPDATE SET b = o.b + excluded.b RETURNING *",
             "INSERT INTO § VALUES (4, 'x', 7, 4) ON CONFLICT (a) WHERE b > 3 DO NOTHING",
             "INSERT INTO § VALUES (4, 'x', 7, 4) ON CONFLICT (a) DO NOTHING",
             "INSERT INTO § AS o VALUES (5, 'x', -2, 5) ON CONFLICT (lower(a)) WHERE b < 0 DO UPDATE SET a = 'Y' WHERE o.b < -5 RETURNING *",
             "INSERT INTO § AS o VALUES (5, 'x', -2, 5) ON CONFLICT (lower(a)) WHERE b < 0 DO UPDATE SET a = 'Y' WHERE o.b > -5 RETURNING *",
             "INSERT INTO § VALUES (6, 'x', 2, 6) ON CONFLICT (a) WHERE b > 5 DO UPDATE SET b = 0 RETURNING *",
             "INSERT INTO § VALUES (7, 'q', 1, 7), (7, 'q', 1, 8) ON CONFLICT (id) WHERE b > 5 DO NOTHING RETURNING *",
             # A constraint that may be looked at later cannot tell in time.
             "INSERT INTO § VALUES (8, 'r', 1, 1) ON CONFLICT (c) DO NOTHING", "INSERT INTO § VALUES (8, 'r', 1, 9) ON CONFLICT DO NOTHING",
             "INSERT INTO § VALUES (8, 'r', 1, 1) ON CONFLICT ON CONSTRAINT t_c_key DO UPDATE SET b = 9",
             "INSERT INTO § SELECT 1, 'a', 1, 1 WHERE false ON CONFLICT (c) DO NOTHING", "SELECT * FROM § ORDER BY id")
        equal(s.fails("55000", "INSERT INTO t VALUES (1, 'r', 1, 1) ON CONFLICT (c) DO UPDATE SET b = 1").count("ERROR"), 1)


# ---- Names ----

@test
def an_index_is_renamed(cwd):
    with fresh()() as s:
        both(s, "id int PRIMARY KEY, a text UNIQUE, b int", "CREATE UNIQUE INDEX first ON § (b)", "INSERT INTO § VALUES (1, 'a', 1)")
        s.do("ALTER INDEX heap.first RENAME TO second; ALTER INDEX first RENAME TO second")
        same(s, "INSERT INTO § VALUES (2, 'b', 1)")
        same(s, "ALTER TABLE § RENAME CONSTRAINT t_a_key TO names")
        same(s, "INSERT INTO § VALUES (2, 'a', 2)")
        same(s, "ALTER TABLE § RENAME CONSTRAINT t_pkey TO k")
        equal(same(s, "INSERT INTO § VALUES (1, 'c', 3)")[-1], "CONSTRAINT NAME:  k")
        same(s, "INSERT INTO § VALUES (1, 'a', 3) ON CONFLICT ON CONSTRAINT names DO UPDATE SET b = 7 RETURNING *")
        contains(plan(s, "SELECT * FROM t WHERE b = 7"), "Frond Index: second")
        # The old name is free, also if frond has it still.
        same(s, "CREATE INDEX first ON § (a, b)")
        s.fails("42P07", "CREATE INDEX second ON t (a)")
        s.do("BEGIN; ALTER INDEX second RENAME TO third; ROLLBACK")
        same(s, "INSERT INTO § VALUES (3, 'd', 7)")
        s.do("ALTER TABLE t ALTER b TYPE bigint")
        s.do("ALTER TABLE heap.t ALTER b TYPE bigint")
        same(s, "INSERT INTO § VALUES (3, 'd', 7)")
        s.do("DROP INDEX second; DROP INDEX heap.second")
        s.do("ALTER TABLE t DROP CONSTRAINT names; ALTER TABLE heap.t DROP CONSTRAINT names")
        same(s, "INSERT INTO § VALUES (3, 'a', 7)")
        equal(s.do("SELECT relname FROM pg_class WHERE relkind = 'I' ORDER BY 1"), [["first"], ["k"]])
        contains(plan(s, "SELECT * FROM t WHERE a = 'a' AND b = 7"), "Frond Index: first")
        s.fails("42704", "DROP INDEX third")


try:
    main(missing())
finally:
    end_shared()
