#!/usr/bin/env python3
"""PostgreSQL with its tables in frond: definitions in transactions, and what its tools tell of them."""

import os
import subprocess

from harness import contains, equal, main, test
from pg_server import end_shared, fresh, missing, shared


def tool(s, name, *args, text=None, database=None, settings=""):
    """A program of PostgreSQL's, at the database of the session or another one: what it prints."""
    postgres, _ = shared()
    done = subprocess.run([postgres.bin / name, "-h", postgres.home / "socket", "-U", "owner", *args,
                           database or s.one("SELECT current_database()")], input=text, capture_output=True, text=True,
                          timeout=120, env={**os.environ, "PGOPTIONS": f"-c client_min_messages=warning {settings}"})
    return done.returncode, done.stdout, done.stderr


# ---- Behind rows that were written ----

def plan(s, query):
    return "\n".join(line[0] for line in s.do(f"EXPLAIN (COSTS OFF) {query}"))


@test
def definitions_are_a_part_of_a_transaction_that_has_written(cwd):
    with fresh()() as s, fresh()() as other:
        schema = s.one("SELECT current_schema()")
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int, w int)")
        s.do("INSERT INTO t SELECT i, i % 7, i FROM generate_series(1, 50) i")
        s.do("CREATE INDEX gone ON t (w)")

        def define():
            s.do("BEGIN")
            s.do("INSERT INTO t VALUES (100, 100, 100)")
            s.do("CREATE TABLE u (k serial PRIMARY KEY, t int REFERENCES t)")
            s.do("INSERT INTO u (t) VALUES (100), (1)")
            s.do("CREATE INDEX ON u (t)")
            s.do("CREATE INDEX ON t (v)")
            s.do("ALTER TABLE t ADD COLUMN x int DEFAULT 7")
            s.do("CREATE UNIQUE INDEX once ON t (w)")
            s.do("DROP INDEX gone")
            s.do("INSERT INTO u (t) VALUES (2)")
            equal(s.do("SELECT count(*), sum(x) FROM t"), [["51", "357"]])
            equal(s.do("SELECT t.k, x FROM t JOIN u ON u.t = t.k ORDER BY 1"), [["1", "7"], ["2", "7"], ["100", "7"]])
            # Rows of a table whose unique index is not built yet stay.
            contains(s.fails("0A000", "INSERT INTO t VALUES (101, 1, 1)"), '"once"')

        define()
        s.do("ROLLBACK")
        s.fails("42P01", "SELECT * FROM u")
        equal(s.do("SELECT count(*), max(w) FROM t"), [["50", "50"]])
        contains(plan(s, "SELECT * FROM t WHERE w = 3"), "Frond Index: gone")
        # Nobody else has seen anything of it.
        other.do(f"IMPORT FOREIGN SCHEMA {schema} FROM SERVER frond INTO public")
        equal(other.do("SELECT relname FROM pg_class WHERE relkind = 'f' AND relnamespace = 'public'::regnamespace"), [["t"]])

        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (100, 100, 100)")
        s.do("CREATE INDEX ON t (v)")
        s.do("CREATE UNIQUE INDEX once ON t (w)")
        s.do("CREATE TABLE u (k serial PRIMARY KEY, t int REFERENCES t)")
        s.do("ALTER TABLE t ADD COLUMN x int")
        s.do("INSERT INTO u (t) VALUES (100)")
        s.do("COMMIT")
        contains(plan(s, "SELECT * FROM t WHERE v = 3"), "Frond Index: t_v_idx")
        equal(s.one("SELECT count(*) FROM t WHERE v = 3"), "7")
        contains(s.fails("23505", "INSERT INTO t VALUES (101, 1, 100)"), '"once"')
        s.fails("23503", "DELETE FROM t WHERE k = 100")
        s.do("BEGIN")
        s.do("UPDATE t SET x = 1")
        s.fails("23505", "CREATE UNIQUE INDEX ON t (v)")
        s.do("ROLLBACK")


@test
def definitions_in_a_savepoint_that_has_written_are_refused(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int)")
        for definition in ("CREATE TABLE x (k int)", "CREATE INDEX ON t (v)", "ALTER TABLE t ADD COLUMN x int"):
            s.do("BEGIN")
            s.do("SAVEPOINT p")
            s.do("INSERT INTO t VALUES (2, 2)")
            contains(s.fails("0A000", definition), "HINT:  Put definitions before")
            s.do("ROLLBACK TO p")
            s.do("RELEASE p")
            s.do("INSERT INTO t VALUES (3, 3)")
            s.do(definition)
            s.do("SAVEPOINT p")
            s.do("DELETE FROM t")
            s.do("ROLLBACK TO p")
            equal(s.do("SELECT k FROM t"), [["3"]])
            s.do("ROLLBACK")
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (2, 2)")
        for definition in ("ALTER TABLE t RENAME COLUMN v TO x", "ALTER TABLE t ALTER x SET DEFAULT 5", "ALTER TABLE t ADD CHECK (x > 0)",
                           "ALTER TABLE t DROP COLUMN x"):
            s.do(definition)
        s.do("COMMIT")
        equal(s.do("SELECT * FROM t"), [["2"]])


@test
def rows_are_committed_before_definitions_when_they_are_loaded(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int)")
        s.do("SET frond.bulk_load = on")
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (1, 1)")
        s.do("CREATE TABLE u (k int PRIMARY KEY, t int REFERENCES t)")
        s.do("INSERT INTO u VALUES (1, 1)")
        s.do("CREATE INDEX ON u (t)")
        s.do("INSERT INTO u VALUES (2, 1)")
        s.do("ROLLBACK")
        # What was made is gone; what was written into others has stayed.
        s.fails("42P01", "SELECT * FROM u")
        equal(s.do("SELECT * FROM t"), [["1", "1"]])
        s.do("BEGIN")
        s.do("SAVEPOINT p")
        s.do("INSERT INTO t VALUES (2, 1)")
        s.fails("0A000", "CREATE TABLE u (k int)")
        s.do("ROLLBACK")
        s.do("CREATE TABLE u (k int PRIMARY KEY, t int REFERENCES t DEFERRABLE INITIALLY DEFERRED)")
        s.do("BEGIN")
        s.do("INSERT INTO u VALUES (1, 99)")
        s.fails("23503", "CREATE INDEX ON u (t)")
        s.do("ROLLBACK")
        equal(s.do("SELECT * FROM u"), [])


@test
def a_script_with_rows_and_definitions_is_read_in_one_transaction(cwd):
    script = """
CREATE TABLE shops (id int PRIMARY KEY, name text);
COPY shops FROM STDIN;
1\tone
2\ttwo
\\.
CREATE TABLE sales (id bigint, shop int, at date);
COPY sales (id, shop, at) FROM STDIN;
1\t1\t2024-01-01
2\t2\t2024-01-02
3\t2\t2024-01-03
\\.
CREATE INDEX sales_at ON sales (at);
ALTER TABLE ONLY sales ADD CONSTRAINT sales_shop_fkey FOREIGN KEY (shop) REFERENCES shops (id);
ALTER TABLE sales ADD COLUMN cents int DEFAULT 5;
CREATE UNIQUE INDEX sales_id ON sales (id);
"""
    with fresh()() as s:
        code, _, error = tool(s, "psql", "-Xq1", "-v", "ON_ERROR_STOP=1", text=script + "SELECT 1 / 0;")
        equal(code, 3)
        contains(error, "division by zero")
        s.fails("42P01", "SELECT * FROM shops")
        code, _, error = tool(s, "psql", "-Xq1", "-v", "ON_ERROR_STOP=1", text=script)
        equal((code, error), (0, ""))
        equal(s.do("SELECT id, name, count(*), sum(cents) FROM shops JOIN sales s (i, id, at, cents) USING (id) GROUP BY 1, 2 ORDER BY 1"),
              [["1", "one", "1", "5"], ["2", "two", "2", "10"]])
        s.fails("23505", "INSERT INTO sales VALUES (3, 1)")
        s.fails("23503", "INSERT INTO sales VALUES (4, 9)")


# ---- Primary keys ----

@test
def a_table_with_rows_gets_and_loses_a_primary_key(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (a int, b text, c numeric, d jsonb)")
        s.do("""INSERT INTO t SELECT 3000 - i, 'b' || i % 1000, i + 0.50, '{"n": 1}' FROM generate_series(1, 3000) i""")
        rows = s.do("SELECT * FROM t ORDER BY a")
        contains(s.fails("23505", "ALTER TABLE t ADD PRIMARY KEY (b)"), "DETAIL:  Key (b)=(b")
        s.do("INSERT INTO t VALUES (NULL, 'null')")
        contains(s.fails("23502", "ALTER TABLE t ADD PRIMARY KEY (a)"), 'column "a" of relation "t" contains null values')
        s.do("DELETE FROM t WHERE a IS NULL")
        equal(s.do("SELECT * FROM t ORDER BY a"), rows)
        # A transaction that aborts leaves the table as it was.
        s.do("BEGIN")
        s.do("ALTER TABLE t ADD PRIMARY KEY (a)")
        contains(plan(s, "SELECT * FROM t WHERE a = 5"), "Frond Key")
        s.do("ROLLBACK")
        assert "Frond Key" not in plan(s, "SELECT * FROM t WHERE a = 5")
        equal(s.do("SELECT * FROM t ORDER BY a"), rows)
        s.do("ALTER TABLE t ADD CONSTRAINT named PRIMARY KEY (a)")
        equal(s.do("SELECT * FROM t ORDER BY a"), rows)
        contains(plan(s, "SELECT * FROM t WHERE a = 5"), "Frond Key")
        s.fails("23505", "INSERT INTO t VALUES (5)")
        s.fails("23502", "INSERT INTO t VALUES (NULL)")
        s.fails("42P16", "ALTER TABLE t ADD PRIMARY KEY (b)")
        s.do("CREATE TABLE child (k int PRIMARY KEY, t int REFERENCES t)")
        s.fails("2BP01", "ALTER TABLE t DROP CONSTRAINT t_pkey")
        s.do("DROP TABLE child")
        s.do("ALTER TABLE t DROP CONSTRAINT t_pkey")
        s.do("INSERT INTO t VALUES (5, 'again')")
        equal(s.do("SELECT * FROM t WHERE b <> 'again' ORDER BY a"), rows)
        s.fails("23505", "ALTER TABLE t ADD PRIMARY KEY (a)")
        s.do("DELETE FROM t WHERE b = 'again'")
        # Behind rows that the transaction has written, as a dump has it.
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (9999, 'last')")
        s.do("ALTER TABLE ONLY t ADD CONSTRAINT t_pkey PRIMARY KEY (b, a)")
        s.do("CREATE INDEX ON t (c)")
        s.do("COMMIT")
        contains(plan(s, "SELECT * FROM t WHERE b = 'b7'"), "Frond Key: (b = 'b7'::text)")
        equal(s.one("SELECT count(*) FROM t"), "3001")
        # Indexes are made again with the table.
        s.do("CREATE UNIQUE INDEX once ON t (c DESC) INCLUDE (d) WHERE a > 5")
        s.do("ALTER TABLE t DROP CONSTRAINT t_pkey")
        contains(plan(s, "SELECT a FROM t WHERE c = 7.50"), "Frond Index: t_c_idx")
        contains(s.fails("23505", "INSERT INTO t VALUES (7, 'x', 8.50)"), '"once"')
        s.do("ALTER TABLE t ADD PRIMARY KEY (a)")
        contains(s.fails("23505", "INSERT INTO t VALUES (-7, 'x', 8.50), (10000, 'x', 8.50)"), '"once"')
        equal(s.one("SELECT count(*) FROM t"), "3001")


@test
def rows_that_are_too_many_for_another_key_stay(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (a int, b text)")
        s.do("INSERT INTO t SELECT i, repeat('x', 20000) FROM generate_series(1, 300) i")
        s.do("INSERT INTO t SELECT i, repeat('x', 20000) FROM generate_series(301, 600) i")
        contains(s.fails("54000", "ALTER TABLE t ADD PRIMARY KEY (a)"), "frond.bulk_load")
        equal(s.one("SELECT count(*) FROM t"), "600")


# ---- Numbers of columns ----

@test
def rows_that_are_copied_have_numbers_of_the_store(cwd):
    postgres, door = shared()
    opener = fresh()
    other_opener = postgres.database("copies", door.port)
    with opener() as s, opener() as t, other_opener() as u:
        schema = s.one("SELECT current_schema()")
        s.do("SET frond.sequence_block = 10")
        s.do("CREATE TABLE t (id serial PRIMARY KEY, who text, n int GENERATED ALWAYS AS IDENTITY, twice int GENERATED ALWAYS AS"
             " (length(who) * 2) STORED, at text DEFAULT 'd')")
        u.do(f"CREATE FOREIGN TABLE t (id int NOT NULL, who text, n int, at text) SERVER frond OPTIONS (schema '{schema}', table 't')")
        u.do("CREATE SEQUENCE own CACHE 10 OWNED BY t.id")
        u.do("ALTER FOREIGN TABLE t ALTER id SET DEFAULT nextval('own') + 0")
        for i in range(3):
            s.do("COPY t (who) FROM STDIN", *["s"] * 12)
            t.do("COPY t (at, who) FROM STDIN WITH (FORMAT csv)", *["x,t"] * 12)
            u.do("COPY t (who) FROM STDIN WHERE who > 'a'", *["u", "U"] * 12)
        equal(s.do("SELECT who, count(*), count(DISTINCT id), count(DISTINCT n), max(twice), min(at) FROM t GROUP BY who ORDER BY who"),
              [["s", "36", "36", "36", "2", "d"], ["t", "36", "36", "36", "2", "x"], ["u", "36", "36", "0", "NULL", "NULL"]])
        equal(s.one("SELECT count(DISTINCT id) FROM t"), "108")
        equal(s.one("SELECT currval('t_id_seq') = max(id) FROM t WHERE who = 's'"), "t")
        # What a file has is taken as it is.
        s.do("COPY t (id, who) FROM STDIN", "5000\tv")
        contains(s.fails("22P02", "COPY t (who, n) FROM STDIN", "a\tb"), "COPY t, line 1, column n")
        s.do("CREATE USER copier")
        s.do(f"GRANT USAGE ON SCHEMA {schema} TO copier")
        s.do("GRANT USAGE ON FOREIGN SERVER frond TO copier")
        with opener("copier") as copier:
            copier.fails("42501", "COPY t (who) FROM STDIN", "c")
            s.do("GRANT INSERT (who) ON t TO copier")
            copier.fails("42501", "COPY t (who) FROM STDIN", "c")
            s.do("GRANT USAGE ON SEQUENCE t_id_seq TO copier")
            copier.do("COPY t (who) FROM STDIN", "c")
            copier.fails("42501", "COPY t (who) FROM '/etc/hostname'")
            copier.do("BEGIN READ ONLY")
            copier.fails("25006", "COPY t (who) FROM STDIN", "c")
            copier.do("ROLLBACK")


@test
def counters_go_with_what_they_count(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE first (k serial PRIMARY KEY)")
        s.do("INSERT INTO first DEFAULT VALUES")
        s.do("CREATE SCHEMA frond_pg")
        s.do("IMPORT FOREIGN SCHEMA frond_pg FROM SERVER frond INTO frond_pg")
        counters = lambda: int(s.one("SELECT count(*) FROM frond_pg.counters WHERE name LIKE 'sequence %'"))
        before = counters()
        many = ", ".join(f"c{i} int GENERATED ALWAYS AS IDENTITY" for i in range(70))
        s.do(f"CREATE TABLE t (k serial PRIMARY KEY, {many})")
        s.do("CREATE TABLE u (k serial PRIMARY KEY)")
        s.do("INSERT INTO t DEFAULT VALUES")
        s.do("INSERT INTO u DEFAULT VALUES")
        equal(counters(), before + 72)
        s.do("ALTER TABLE t DROP COLUMN c1")
        equal(counters(), before + 71)
        s.do("BEGIN")
        s.do("DROP TABLE t")
        s.do("ROLLBACK")
        equal(counters(), before + 71)
        s.do("DROP TABLE t")
        equal(counters(), before + 1)
        s.do("BEGIN")
        s.do("CREATE TABLE v (k serial PRIMARY KEY)")
        s.do("INSERT INTO v DEFAULT VALUES")
        equal(counters(), before + 2)
        s.do("ROLLBACK")
        equal(counters(), before + 1)
        s.do("INSERT INTO u DEFAULT VALUES")
        s.do("DROP TABLE u, first")
        equal(counters(), before - 1)


# ---- What tools tell ----

@test
def psql_and_pg_dump_know_foreign_keys(cwd):
    postgres, door = shared()
    opener = fresh()
    with opener() as s:
        schema = s.one("SELECT current_schema()")
        s.do("CREATE TABLE shops (id int PRIMARY KEY, code text UNIQUE)")
        s.do("CREATE TABLE sales (id int PRIMARY KEY, shop int REFERENCES shops ON DELETE CASCADE, code text,"
             " up int CONSTRAINT above REFERENCES sales DEFERRABLE INITIALLY DEFERRED)")
        s.do("ALTER TABLE sales ADD CONSTRAINT by_code FOREIGN KEY (code) REFERENCES shops (code) ON UPDATE SET NULL NOT VALID")
        s.do("INSERT INTO shops VALUES (1, 'a'), (2, 'b')")
        s.do("INSERT INTO sales VALUES (1, 1, 'a', 1), (2, 2, NULL, 1)")
        _, text, _ = tool(s, "psql", "-X", "-c", "\\d sales", "-c", "\\d shops")
        for line in ("Foreign-key constraints:", '"above" FOREIGN KEY (up) REFERENCES sales(id) DEFERRABLE INITIALLY DEFERRED',
                     '"by_code" FOREIGN KEY (code) REFERENCES shops(code) ON UPDATE SET NULL NOT VALID',
                     '"sales_shop_fkey" FOREIGN KEY (shop) REFERENCES shops(id) ON DELETE CASCADE', "Referenced by:",
                     'TABLE "sales" CONSTRAINT "sales_shop_fkey" FOREIGN KEY (shop) REFERENCES shops(id) ON DELETE CASCADE'):
            contains(text, line)
        assert "RI_ConstraintTrigger" not in text, text
        code, dump, error = tool(s, "pg_dump", "-n", schema)
        equal((code, error), (0, ""))
        for line in (f"CREATE FOREIGN TABLE {schema}.sales", f"ADD CONSTRAINT above FOREIGN KEY (up) REFERENCES {schema}.sales(id) DEFERRABLE",
                     f"ADD CONSTRAINT sales_shop_fkey FOREIGN KEY (shop) REFERENCES {schema}.shops(id) ON DELETE CASCADE;", "NOT VALID"):
            contains(dump, line)
        assert "TRIGGER" not in dump, dump
        # Another database, over the same tables.
        other_opener = postgres.database(f"{schema}_restored", door.port)
        with other_opener() as other:
            code, _, error = tool(s, "psql", "-Xq1", "-v", "ON_ERROR_STOP=1", text=dump, database=f"{schema}_restored")
            equal((code, error), (0, ""))
            other.do(f"SET search_path = {schema}")
            equal(other.do("SELECT id, shop FROM sales ORDER BY id"), [["1", "1"], ["2", "2"]])
            keys = "SELECT conname, convalidated, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' ORDER BY 1"
            equal(other.do(keys), s.do(keys))
            contains(other.fails("23503", "INSERT INTO sales VALUES (3, 7)"), '"sales_shop_fkey"')
            other.do("BEGIN")
            other.do("INSERT INTO sales VALUES (4, 1, NULL, 99)")
            contains(other.fails("23503", "COMMIT"), '"above"')
            other.do("DELETE FROM shops WHERE id = 2")
        equal(s.do("SELECT id FROM sales"), [["1"]])
        # Rows are in it where they are asked for.
        code, dump, error = tool(s, "pg_dump", "-n", schema, "--include-foreign-data=frond")
        equal((code, error), (0, ""))
        contains(dump, f"COPY {schema}.sales (id, shop, code, up) FROM stdin;")


# ---- PostgreSQL's catalog ----

INDEXES = """SELECT c.relname, i.indisunique, i.indisprimary, pg_get_indexdef(i.indexrelid)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = 't'::regclass ORDER BY 1"""
CONSTRAINTS = """SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = 't'::regclass AND contype IN ('p', 'u') ORDER BY 1"""


@test
def the_catalog_has_indexes_and_keys(cwd):
    with fresh()() as s:
        schema = s.one("SELECT current_schema()")
        s.do("CREATE TABLE t (id int PRIMARY KEY, a varchar(20), n int UNIQUE, CONSTRAINT pair UNIQUE (a, n))")
        s.do("CREATE INDEX t_like ON t (a varchar_pattern_ops)")
        s.do("CREATE INDEX part ON t (n DESC) INCLUDE (a) WHERE n > 3")
        equal(s.do(CONSTRAINTS), [["pair", "u", "UNIQUE (a, n)"], ["t_n_key", "u", "UNIQUE (n)"], ["t_pkey", "p", "PRIMARY KEY (id)"]])
        on = f"ON ONLY {schema}.t USING btree"
        equal(s.do(INDEXES), [
            ["pair", "t", "f", f"CREATE UNIQUE INDEX pair {on} (a, n)"],
            ["part", "f", "f", f"CREATE INDEX part {on} (n DESC) INCLUDE (a) WHERE (n > 3)"],
            ["t_like", "f", "f", f"CREATE INDEX t_like {on} (a varchar_pattern_ops)"],
            ["t_n_key", "t", "f", f"CREATE UNIQUE INDEX t_n_key {on} (n)"],
            ["t_pkey", "t", "t", f"CREATE UNIQUE INDEX t_pkey {on} (id)"]])
        contains("\n".join(row[0] for row in s.do("EXPLAIN SELECT * FROM t WHERE a LIKE 'a1%'")), "Frond Index")
        # PostgreSQL has nothing to do with them when rows are planned, written, read or counted.
        s.do("INSERT INTO t SELECT i, 'a' || i, i FROM generate_series(1, 20) i")
        s.do("COPY t FROM stdin", "21\ta21\t21")
        s.do("ANALYZE t")
        s.do("UPDATE t SET n = n + 100")
        equal(s.one("SELECT relhasindex FROM pg_class WHERE oid = 't'::regclass"), "f")
        # A failed definition leaves it so.
        s.do("BEGIN")
        s.do("CREATE INDEX gone ON t (n)")
        s.do("ROLLBACK")
        equal(s.one("SELECT relhasindex FROM pg_class WHERE oid = 't'::regclass"), "f")
        equal(len(s.do(INDEXES)), 5)
        s.fails("42P07", "CREATE TABLE part (a int)")


@test
def the_catalog_forgets_what_is_dropped(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a text, n int UNIQUE, CONSTRAINT pair UNIQUE (a, n))")
        s.do("CREATE INDEX plain ON t (n)")
        contains(s.fails("2BP01", "DROP INDEX t_n_key"), "constraint t_n_key on foreign table t requires it")
        s.fails("2BP01", "DROP INDEX t_pkey")
        s.do("DROP INDEX plain")
        s.do("ALTER TABLE t DROP CONSTRAINT t_n_key")
        equal([row[0] for row in s.do(INDEXES)], ["pair", "t_pkey"])
        s.do("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 1)")
        s.do("ALTER TABLE t RENAME CONSTRAINT t_pkey TO pk")
        s.do("ALTER TABLE t DROP COLUMN n")
        equal(s.do(CONSTRAINTS), [["pk", "p", "PRIMARY KEY (id)"]])
        s.do("DROP TABLE t")
        equal(s.do("SELECT relname FROM pg_class WHERE relkind = 'I'"), [])
        s.do("CREATE TABLE t (id int, n int UNIQUE)")
        s.do("ALTER TABLE t ADD PRIMARY KEY (id)")
        s.do("ALTER TABLE t DROP CONSTRAINT t_n_key, DROP CONSTRAINT t_pkey")
        s.do("ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (id)")
        equal(s.do(CONSTRAINTS), [["k", "p", "PRIMARY KEY (id)"]])


@test
def queries_rely_on_keys_in_the_catalog(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a text, n int UNIQUE)")
        s.do("CREATE TABLE u (id int PRIMARY KEY, t int REFERENCES t)")
        s.do("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")
        s.do("INSERT INTO u VALUES (1, 1), (2, 1)")
        equal(s.do("SELECT t.*, count(u.id) FROM t LEFT JOIN u ON u.t = t.id GROUP BY t.id ORDER BY 1"),
              [["1", "a", "1", "2"], ["2", "b", "2", "0"]])
        upsert = "INSERT INTO t VALUES ({}) ON CONFLICT ON CONSTRAINT {} DO UPDATE SET a = excluded.a || '!' RETURNING *"
        equal(s.do(upsert.format("1, 'x', 9", "t_pkey")), [["1", "x!", "1"]])
        equal(s.do(upsert.format("9, 'y', 2", "t_n_key")), [["2", "y!", "2"]])
        equal(s.do("INSERT INTO t VALUES (1, 'z', 5) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING RETURNING *"), [])
        s.fails("23505", "INSERT INTO t VALUES (1, 'z', 5) ON CONFLICT ON CONSTRAINT t_n_key DO NOTHING")


# ---- What PostgreSQL refuses of foreign tables ----

@test
def a_table_is_made_like_another(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (a int, b text NOT NULL DEFAULT 'x' || 'y', c int GENERATED ALWAYS AS (a * 2) STORED,"
             " i int GENERATED BY DEFAULT AS IDENTITY (START 5 INCREMENT 2), n int CONSTRAINT more CHECK (n > 1), PRIMARY KEY (b, a))"
             " WITH (hash = 'b', range = 'a DESC')")
        s.do("CREATE INDEX ON t (n DESC) INCLUDE (i) WHERE n > 3")
        s.do("ALTER TABLE t ADD UNIQUE (n, a)")
        s.do("COMMENT ON COLUMN t.b IS 'a text'")
        s.do("CREATE TABLE bare (LIKE t)")
        s.do("INSERT INTO bare (a, b, i) VALUES (1, 'a', 1), (1, 'a', 1)")
        s.fails("23502", "INSERT INTO bare (a, b) VALUES (1, NULL)")
        equal(s.do("SELECT * FROM bare LIMIT 1"), [["1", "a", "NULL", "1", "NULL"]])
        s.do("CREATE TABLE full_one (z int, LIKE t INCLUDING ALL, y text)")
        equal(s.do("INSERT INTO full_one (a, n) VALUES (1, 5), (2, 5), (10, 2) RETURNING b, c, i"), [["xy", "2", "5"], ["xy", "4", "7"], ["xy", "20", "9"]])
        contains(s.fails("23505", "INSERT INTO full_one (a, n) VALUES (1, 6)"), '"full_one_pkey"')
        contains(s.fails("23505", "INSERT INTO full_one (a, b, n) VALUES (1, 'other', 5)"), '"full_one_n_a_key"')
        contains(s.fails("23514", "INSERT INTO full_one (a, n) VALUES (3, 1)"), '"more"')
        contains(plan(s, "SELECT n FROM full_one WHERE n > 4 ORDER BY n DESC"), "Frond Index: full_one_n")
        equal(s.do("SELECT a FROM full_one WHERE b = 'xy'"), [["10"], ["2"], ["1"]])
        equal(s.one("SELECT col_description('full_one'::regclass, 3)"), "a text")
        # Of a heap; what frond has not is refused by its name.
        s.do("CREATE TABLE h (k serial PRIMARY KEY, e text UNIQUE, v int) USING heap")
        s.do("CREATE INDEX ON h (v DESC) INCLUDE (e)")
        s.do("CREATE TABLE kept (LIKE h INCLUDING ALL)")
        s.do("INSERT INTO kept (e, v) VALUES ('one', 1)")
        contains(s.fails("23505", "INSERT INTO kept (e) VALUES ('one')"), '"kept_e_key"')
        contains(s.one("SELECT pg_get_indexdef('kept_v_idx'::regclass)"), "(v DESC) INCLUDE (e)")
        s.do("CREATE VIEW w AS SELECT k, e FROM h")
        s.do("CREATE TABLE seen (LIKE w, PRIMARY KEY (k))")
        s.do("INSERT INTO seen VALUES (1, 'x')")
        s.fails("42809", "CREATE TABLE x (LIKE h_k_seq)")
        s.do("CREATE INDEX ON h USING hash (e)")
        contains(s.fails("0A000", "CREATE TABLE x (LIKE h INCLUDING INDEXES)"), "hash")
        s.do("CREATE ROLE nobody_reads")
        s.do(f"GRANT ALL ON SCHEMA {s.one('SELECT current_schema()')} TO nobody_reads")
        s.do("SET ROLE nobody_reads")
        s.fails("42501", "CREATE TABLE x (LIKE t)")


@test
def storage_parameters_mean_nothing(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int)")
        s.do("ALTER TABLE t SET (fillfactor = 70, autovacuum_enabled = off), ALTER v SET DEFAULT 3")
        s.do("ALTER TABLE t RESET (fillfactor)")
        equal(s.do("INSERT INTO t VALUES (1) RETURNING v"), [["3"]])
        contains(s.fails("0A000", "ALTER TABLE t SET (user_catalog_table = true)"), "user_catalog_table")


@test
def tables_are_locked_for_the_sessions_of_this_server(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int)")
        s.do("CREATE TABLE h (k int) USING heap")
        s.do("INSERT INTO t VALUES (1, 1)")
        s.fails("25P01", "LOCK TABLE t")
        s.do("BEGIN")
        s.do("LOCK TABLE h, ONLY t IN SHARE ROW EXCLUSIVE MODE")
        equal(other.one("SELECT v FROM t"), "1")
        other.do("BEGIN")
        other.fails("55P03", "LOCK TABLE t IN ROW EXCLUSIVE MODE NOWAIT")
        other.do("ROLLBACK")
        other.do("SET lock_timeout = '100ms'")
        other.fails("55P03", "UPDATE t SET v = 2")
        # Who has waited before it read sees what the other has committed.
        other.do("SET lock_timeout = 0")
        other.do("BEGIN")
        other.send("LOCK t")
        s.do("UPDATE t SET v = 7")
        s.do("COMMIT")
        other.read()
        other.do("UPDATE t SET v = v + 1")
        other.do("COMMIT")
        equal(s.one("SELECT v FROM t"), "8")
        s.do("CREATE ROLE reads_only")
        s.do(f"GRANT USAGE ON SCHEMA {s.one('SELECT current_schema()')} TO reads_only")
        s.do("GRANT SELECT ON t TO reads_only")
        s.do("SET ROLE reads_only")
        s.do("BEGIN")
        s.do("LOCK TABLE t IN ACCESS SHARE MODE")
        s.fails("42501", "LOCK TABLE t")


@test
def names_that_frond_would_refuse_are_changed_there(cwd):
    with fresh()() as s:
        long = "a" * 60
        for name in ("a b", "a c", "Ünder", long, long + "b", '"'):
            quoted = '"' + name.replace('"', '""') + '"'
            s.do(f'CREATE TABLE {quoted} ("the key" int PRIMARY KEY, "{long}" text UNIQUE)')
            s.do(f"INSERT INTO {quoted} VALUES (1, '{long}')")
            s.fails("23505", f"INSERT INTO {quoted} VALUES (2, '{long}')")
        s.do('CREATE SCHEMA "x-y"')
        s.do('CREATE TABLE "x-y"."a b" (k int PRIMARY KEY)')
        s.do('CREATE INDEX "an index" ON "x-y"."a b" (k)')
        equal(s.do('SELECT * FROM "x-y"."a b"'), [])
        equal(s.one("SELECT count(DISTINCT ftoptions::text) FROM pg_foreign_table"), "7")
        s.do('DROP SCHEMA "x-y" CASCADE')


@test
def the_name_of_an_index_that_was_dropped_is_free(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v int, w int)")
        s.do("INSERT INTO t VALUES (1, 1, 2), (2, 1, 3)")
        s.do("CREATE INDEX i ON t (v)")
        for end, column in (("ROLLBACK", "v"), ("COMMIT", "w")):
            s.do("BEGIN")
            s.do("DROP INDEX i")
            s.do("CREATE INDEX i ON t (w)")
            s.do("INSERT INTO t VALUES (3, 1, 4)")
            s.do(end)
            contains(s.one("SELECT pg_get_indexdef('i'::regclass)"), f"({column})")
            contains(plan(s, f"SELECT * FROM t WHERE {column} > 3"), "Frond Index: i")
        equal(s.do("SELECT k FROM t WHERE w > 2 ORDER BY k"), [["2"], ["3"]])


@test
def an_index_has_the_rows_of_its_condition(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, a text NOT NULL, n numeric, x int)")
        s.do("INSERT INTO t SELECT i, 'a' || i, i, nullif(i % 3, 0) FROM generate_series(1, 2000) i")
        s.do("CREATE INDEX nulls ON t (a) WHERE x IS NULL")
        s.do("CREATE INDEX likes ON t (x) WHERE a LIKE '%7%' AND n > 5")
        s.do("ANALYZE t")
        contains(plan(s, "SELECT * FROM t WHERE a = 'a9' AND x IS NULL"), "Frond Index: nulls")
        equal(s.do("SELECT k FROM t WHERE a = 'a9' AND x IS NULL"), [["9"]])
        equal(s.do("SELECT k FROM t WHERE a = 'a8'"), [["8"]])
        s.do("ALTER TABLE t ALTER k TYPE bigint")
        contains(s.one("SELECT pg_get_indexdef('nulls'::regclass)"), "WHERE (x IS NULL)")
        for condition in ("x IS NULL", "n > 5", "x = 1 OR x = 2"):
            s.do(f"CREATE UNIQUE INDEX ON t (a) WHERE {condition}")
            contains(s.fails("23505", f"CREATE UNIQUE INDEX ON t ((x % 2)) WHERE {condition} OR x > 0"), "could not create unique index")


@test
def the_primary_key_goes_with_its_column(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id serial PRIMARY KEY, slug text UNIQUE)")
        s.do("INSERT INTO t (slug) VALUES ('a'), ('b')")
        s.do("CREATE TABLE c (t int REFERENCES t)")
        s.fails("2BP01", "ALTER TABLE t DROP COLUMN id")
        s.do("DROP TABLE c")
        s.do("BEGIN")
        s.do("ALTER TABLE t DROP COLUMN id CASCADE")
        s.do("ALTER TABLE t ADD CONSTRAINT t_slug_pk PRIMARY KEY (slug)")
        s.do("COMMIT")
        s.fails("23505", "INSERT INTO t VALUES ('a')")
        contains(plan(s, "SELECT * FROM t WHERE slug = 'a'"), "Frond Key")
        equal(s.do("SELECT * FROM t ORDER BY slug"), [["a"], ["b"]])
        equal(s.one("SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass"), "2")


@test
def a_savepoint_that_is_too_large_says_why_it_is_not_brought_back(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v text)")
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (1, 'before')")
        s.do("SAVEPOINT p")
        s.fails("23505", "INSERT INTO t VALUES (2, 'x'), (1, 'again')")
        s.do("ROLLBACK TO p")
        equal(s.do("SELECT * FROM t"), [["1", "before"]])
        contains(s.fails("54000", "INSERT INTO t SELECT i, repeat('x', 10000) FROM generate_series(2, 2000) i"),
                 "only the whole transaction can be rolled back")
        s.do("ROLLBACK TO p")
        s.fails("25P02", "SELECT * FROM t")
        s.do("ROLLBACK")
        equal(s.do("SELECT * FROM t"), [])


@test
def a_transaction_that_has_begun_behind_a_savepoint_goes_with_it(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE t (k int PRIMARY KEY, v text)")
        s.do("BEGIN")
        for _ in range(2):
            s.do("SAVEPOINT p")
            s.do("INSERT INTO t VALUES (1, 'x')")
            s.do("SAVEPOINT q")
            s.do("INSERT INTO t VALUES (2, 'y')")
            s.do("RELEASE q")
            s.fails("54000", "INSERT INTO t SELECT i, repeat('x', 10000) FROM generate_series(3, 2000) i")
            s.do("ROLLBACK TO p")
        equal(s.do("SELECT * FROM t"), [])
        s.do("INSERT INTO t VALUES (4, 'z')")
        s.do("COMMIT")
        equal(s.do("SELECT * FROM t"), [["4", "z"]])
        # What has met another one has read what was not so.
        s.do("BEGIN; SET frond.row_locks = 0")
        s.do("SAVEPOINT p")
        equal(s.do("SELECT v FROM t WHERE k = 4"), [["z"]])
        other.do("UPDATE t SET v = 'other'")
        s.do("INSERT INTO t VALUES (5, 'z')")
        s.do("ROLLBACK TO p")
        s.do("INSERT INTO t VALUES (6, 'z')")
        s.fails("40001", "COMMIT")


@test
def applications_see_tables_where_they_look_for_them(cwd):
    with fresh()() as s:
        schema = s.one("SELECT current_schema()")
        s.do("CREATE TABLE made (id int PRIMARY KEY, a text)")
        s.do("CREATE TABLE local (id int PRIMARY KEY) USING heap")
        s.do(f"CREATE FOREIGN TABLE other (id int NOT NULL, a text) SERVER frond OPTIONS (schema '{schema}', \"table\" 'made')")
        s.do("CREATE VIEW v AS SELECT * FROM made")
        kinds = f"SELECT table_name, table_type FROM information_schema.tables t WHERE table_schema = '{schema}' ORDER BY 1"
        names = f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}' ORDER BY 1"
        is_there = "SELECT EXISTS (WITH w AS (SELECT * FROM pg_tables) SELECT FROM w WHERE tablename = 'made')"
        s.do(f"PREPARE kinds AS {kinds}")
        for query in (kinds, "EXECUTE kinds"):
            equal(s.do(query), [["local", "BASE TABLE"], ["made", "BASE TABLE"], ["other", "FOREIGN"], ["v", "VIEW"]])
        equal(s.do(names), [["local"], ["made"]])
        equal(s.one(is_there), "t")
        equal(s.do(f"SELECT is_insertable_into, pg_typeof(table_type)::text FROM information_schema.tables"
                   f" WHERE table_schema = '{schema}' AND table_name = 'made'"), [["YES", "information_schema.character_data"]])
        # Everybody may look, and sees what is his own.
        s.do("DROP ROLE IF EXISTS nobody; CREATE ROLE nobody; SET ROLE nobody")
        equal(s.do(kinds), [])
        s.do("RESET ROLE; DROP ROLE nobody")
        # A view that is made of one is PostgreSQL's.
        s.do("CREATE VIEW all_tables AS SELECT * FROM pg_tables")
        equal(s.one("SELECT count(*) FROM all_tables WHERE tablename = 'made'"), "0")
        s.do("SET frond.show_tables = off")
        equal(s.do(names), [["local"]])
        equal(s.one(is_there), "f")
        contains(str(s.do(kinds)), "['made', 'FOREIGN']")


@test
def applications_see_constraints_and_indexes_as_of_heaps(cwd):
    with fresh()() as s:
        for schema, method in (("ours", "frond"), ("heap", "heap")):
            s.do(f"CREATE SCHEMA {schema}; SET search_path = {schema}; SET default_table_access_method = {method}")
            s.do("CREATE TABLE p (id int PRIMARY KEY, a text UNIQUE DEFERRABLE CHECK (a <> ''), b int NOT NULL)")
            s.do("CREATE TABLE c (id int, p int REFERENCES p, q int, PRIMARY KEY (id, q))")
            s.do("CREATE INDEX i ON c (q) WHERE p IS NULL")
        for query in ("SELECT constraint_name, table_name, constraint_type, is_deferrable FROM information_schema.table_constraints"
                      " WHERE table_schema = '{}' AND constraint_name !~ '_not_null$'",
                      "SELECT constraint_name, column_name, ordinal_position FROM information_schema.key_column_usage WHERE table_schema = '{}'",
                      "SELECT constraint_name, column_name FROM information_schema.constraint_column_usage WHERE table_schema = '{}'",
                      "SELECT constraint_name FROM information_schema.constraint_table_usage WHERE table_schema = '{}'",
                      "SELECT constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = '{}'"
                      " AND constraint_name !~ '_not_null$'",
                      "SELECT tablename, indexname FROM pg_indexes WHERE schemaname = '{}'",
                      "SELECT count(*) FROM information_schema.table_constraints t JOIN information_schema.key_column_usage USING (constraint_name)"
                      " WHERE t.table_schema = '{}'", "SELECT relname FROM pg_statio_all_tables WHERE schemaname = '{}'"):
            ours, heap = (sorted(s.do(query.format(schema))) for schema in ("ours", "heap"))
            assert heap, query
            equal((query, ours), (query, heap))
        s.do("SET frond.show_tables = off")
        equal(s.do("SELECT indexname FROM pg_indexes WHERE schemaname = 'ours'"), [])
        s.do("DROP TABLE ours.c, ours.p")


@test
def tables_go_with_their_database_if_that_is_wanted(cwd):
    postgres, door = shared()

    def tables(schema):
        with postgres.session("postgres") as s:
            s.do("CREATE EXTENSION IF NOT EXISTS frond")
            s.do("DROP SERVER IF EXISTS looks CASCADE")
            s.do(f"CREATE SERVER looks FOREIGN DATA WRAPPER frond OPTIONS (host '127.0.0.1', port '{door.port}')")
            s.do("DROP SCHEMA IF EXISTS looks CASCADE")
            s.do("CREATE SCHEMA looks")
            s.do(f'IMPORT FOREIGN SCHEMA "{schema}" FROM SERVER looks INTO looks')
            return [row[0] for row in s.do("SELECT relname FROM pg_class WHERE relkind = 'f' ORDER BY 1")]

    opener = postgres.database("goes", door.port)
    with opener() as s:
        s.do("CREATE SCHEMA goes")
        s.do("CREATE TABLE goes.one (k serial PRIMARY KEY)")
        s.do('CREATE TABLE goes."a name" (k int)')
        s.do("INSERT INTO goes.one DEFAULT VALUES")
        s.do("ALTER TABLE goes.one RENAME TO renamed")
    with postgres.session("postgres") as s:
        s.do("CREATE DATABASE copied TEMPLATE goes")
        s.do("SET frond.drop_database = on")
        # A copy has made none of them, a failure drops nothing, nor does a session that did not say so.
        s.do("DROP DATABASE copied")
        equal(len(tables("goes")), 2)
        s.do("CREATE ROLE drops_none")
        s.do("SET ROLE drops_none")
        s.fails("42501", "DROP DATABASE goes")
        s.do("RESET ROLE")
        with opener() as held:
            held.one("SELECT 1")
            s.fails("55006", "DROP DATABASE goes")
        equal(len(tables("goes")), 2)
        s.do("DROP DATABASE goes")
        s.do("DROP DATABASE IF EXISTS goes")
        equal(tables("goes"), [])
        opener = postgres.database("stays", door.port)
        with opener() as other:
            other.do("CREATE SCHEMA stays")
            other.do("CREATE TABLE stays.t (k int)")
        s.do("RESET frond.drop_database")
        s.do("DROP DATABASE stays")
        equal(tables("stays"), ["t"])


# ---- Types of columns ----

@test
def a_column_gets_another_type_with_its_rows(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id serial PRIMARY KEY, a varchar(10) UNIQUE, m numeric(10, 2), n int DEFAULT 5 CHECK (n > 0), j json)")
        s.do("""INSERT INTO t (a, m, n, j) SELECT 'a' || i, i + 0.25, i, '{"a":  1}' FROM generate_series(1, 20) i""")
        s.do("CREATE INDEX tn ON t (n DESC) INCLUDE (m) WHERE n > 3")
        s.do("ALTER TABLE t ALTER n TYPE bigint")
        equal(s.do("SELECT count(*), sum(n) FROM t WHERE n > 10"), [["10", "155"]])
        contains(plan(s, "SELECT m FROM t WHERE n > 10"), "Frond Index: tn")
        s.do("INSERT INTO t (a, n) VALUES ('big', 10000000000)")
        # Several at once, between what comes before and behind types.
        s.do("DELETE FROM t WHERE a = 'big'")
        s.do("ALTER TABLE t ALTER a TYPE int USING substr(a, 2)::int + id, ALTER m TYPE int, ALTER j TYPE jsonb,"
             " ALTER id TYPE bigint, ADD COLUMN z int DEFAULT 3, ALTER n DROP DEFAULT")
        equal(s.do("SELECT * FROM t ORDER BY id LIMIT 2"), [["1", "2", "1", "1", '{"a": 1}', "3"], ["2", "4", "2", "2", '{"a": 1}', "3"]])
        contains(s.fails("23505", "INSERT INTO t (a) VALUES (4)"), '"t_a_key"')
        equal(s.one("INSERT INTO t (a) VALUES (1000) RETURNING id > 20 AND n IS NULL"), "t")
        s.fails("23505", "ALTER TABLE t ALTER a TYPE boolean USING a > 5")
        s.fails("42804", "ALTER TABLE t ALTER n TYPE date")
        s.fails("23514", "ALTER TABLE t ALTER n TYPE int USING -n")
        s.fails("22001", "ALTER TABLE t ALTER m TYPE varchar(1)")
        s.fails("23502", "ALTER TABLE t ALTER id TYPE int USING NULL::int")
        equal(s.do("SELECT count(*), sum(m) FROM t"), [["21", "210"]])
        s.do("ALTER TABLE t ALTER m TYPE varchar(1) USING m::varchar(1)")
        equal(s.one("SELECT count(*) FROM t WHERE m = '1'"), "11")
        # What the transaction has dropped before is not made again.
        s.do("BEGIN")
        s.do("DROP INDEX tn")
        s.do("ALTER TABLE t DROP COLUMN z")
        s.do("ALTER TABLE t ALTER m TYPE varchar(60) USING m || 'x'")
        s.do("CREATE INDEX tn ON t (m)")
        s.do("ALTER TABLE t ADD COLUMN z text DEFAULT 'z'")
        s.do("COMMIT")
        contains(plan(s, "SELECT * FROM t WHERE m = '1x'"), "Frond Index: tn")
        equal(s.one("SELECT count(*) FROM t WHERE m = '1x' AND z = 'z'"), "11")
        s.do("BEGIN")
        s.do("ALTER TABLE t ALTER m TYPE int USING length(m)")
        s.do("INSERT INTO t (a, m) VALUES (1001, 17)")
        s.do("ROLLBACK")
        equal(s.one("SELECT count(*) FROM t WHERE m = '1x' AND z = 'z'"), "11")


@test
def values_that_stay_the_same_are_not_written_again(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a varchar(10) UNIQUE, m numeric(10, 2))")
        s.do("INSERT INTO t VALUES (1, 'abcdef', 1.25)")
        # In a savepoint that would be refused.
        for change in ("a TYPE varchar(20) USING a::varchar(20)", "a TYPE text", "m TYPE numeric(8, 2)", "a TYPE varchar(6)"):
            s.do("BEGIN")
            s.do("SAVEPOINT p")
            s.do(f"ALTER TABLE t ALTER COLUMN {change}")
            s.do("COMMIT")
        s.do("BEGIN")
        s.do("SAVEPOINT p")
        s.fails("0A000", "ALTER TABLE t ALTER COLUMN m TYPE numeric(12, 3)")
        s.do("ROLLBACK")
        s.do("ALTER TABLE t ALTER COLUMN m TYPE numeric(12, 3)")
        s.fails("23505", "INSERT INTO t VALUES (2, 'abcdef')")
        equal(s.do("SELECT a, m FROM t WHERE id = 1"), [["abcdef", "1.250"]])
        s.fails("22001", "ALTER TABLE t ALTER a TYPE varchar(3)")
        s.do("ALTER TABLE t ALTER a TYPE varchar(3) USING a::varchar(3), ALTER m TYPE numeric(10, 1)")
        equal(s.do("SELECT a, m FROM t WHERE id = 1"), [["abc", "1.3"]])


@test
def columns_of_keys_get_other_types(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, v text)")
        s.do("CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE)")
        s.do("INSERT INTO t VALUES (1, 'one'), (20, 'two')")
        s.do("INSERT INTO c VALUES (1, 20)")
        s.do("ALTER TABLE t ALTER id TYPE bigint")
        s.do("ALTER TABLE c ALTER t TYPE bigint")
        s.fails("42804", "ALTER TABLE t ALTER id TYPE text")
        s.fails("23503", "INSERT INTO c VALUES (2, 2)")
        s.do("INSERT INTO t VALUES (30000000000)")
        s.do("INSERT INTO c VALUES (2, 30000000000)")
        s.do("DELETE FROM t WHERE id > 1")
        equal(s.do("SELECT * FROM c"), [])
        s.do("CREATE TABLE h (x numeric(10, 2), y text, PRIMARY KEY (y, x)) WITH (hash = 'y', range = 'x DESC')")
        s.do("INSERT INTO h VALUES (1, 'a'), (12, 'a'), (2, 'a'), (1, 'b')")
        s.do("ALTER TABLE h ALTER x TYPE int")
        equal(s.do("SELECT x FROM h WHERE y = 'a'"), [["12"], ["2"], ["1"]])
        assert "Sort" not in plan(s, "SELECT x FROM h WHERE y = 'a' ORDER BY x DESC")
        s.fails("23505", "ALTER TABLE h ALTER x TYPE bool USING x > 1")
        contains(s.fails("0A000", "ALTER TABLE h ALTER y TYPE json USING to_json(y)"), "does not know the order of json")
        equal(s.one("SELECT count(*) FROM h"), "4")


@test
def rows_that_are_too_many_for_another_type_stay(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (a int, b text)")
        for i in (1, 301):
            s.do(f"INSERT INTO t SELECT i, repeat('x', 20000) FROM generate_series({i}, {i + 299}) i")
        contains(s.fails("54000", "ALTER TABLE t ALTER a TYPE bigint"), "another type")
        s.do("ALTER TABLE t ALTER b TYPE varchar(20000)")
        equal(s.one("SELECT sum(a) FROM t"), "180300")


try:
    main(missing())
finally:
    end_shared()
