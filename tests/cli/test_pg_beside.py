#!/usr/bin/env python3
"""PostgreSQL with its tables in frond: what PostgreSQL's own regression suite has found, beside heap tables."""

import subprocess

from harness import contains, equal, main, test
from pg_server import end_shared, fresh, missing, shared


def printed(s, sql):
    """What psql prints of statements, warnings and errors among it."""
    postgres, _ = shared()
    return subprocess.run([postgres.bin / "psql", "-XqAt", "-h", postgres.home / "socket", "-U", "owner",
                           "-d", s.one("SELECT current_database()")], input=sql, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120).stdout


# ---- Tables that PostgreSQL keeps ----

@test
def a_foreign_key_of_a_local_table_is_altered(cwd):
    with fresh()() as s:
        s.do("CREATE TEMP TABLE parent (id int PRIMARY KEY)")
        s.do("CREATE TEMP TABLE child (id int PRIMARY KEY, up int REFERENCES parent)")
        s.do("ALTER TABLE child ALTER CONSTRAINT child_up_fkey DEFERRABLE INITIALLY DEFERRED")
        s.do("BEGIN")
        s.do("INSERT INTO child VALUES (1, 1)")
        contains(s.fails("23503", "COMMIT"), "child_up_fkey")


@test
def mixed_writes_say_nothing(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE ours (a int)")
        s.do("CREATE TABLE heap (a int) USING heap")
        equal(printed(s, """SET frond.allow_mixed_writes = on;
            INSERT INTO ours VALUES (1); INSERT INTO heap VALUES (1);
            BEGIN; INSERT INTO heap VALUES (2); INSERT INTO ours VALUES (2); INSERT INTO heap VALUES (3); COMMIT;
            SELECT sum(a) FROM ours; SELECT sum(a) FROM heap"""), "3\n6\n")


@test
def a_query_makes_the_tables_that_postgresql_keeps(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a text)")
        s.do("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        s.do("CREATE TEMP TABLE brief AS SELECT * FROM t")
        s.do("SELECT a INTO TEMP letters FROM t WHERE id = 2")
        s.do("CREATE UNLOGGED TABLE fast AS TABLE t")
        s.do("PREPARE one AS SELECT * FROM t WHERE id = $1")
        s.do("CREATE TEMP TABLE prepared AS EXECUTE one(1)")
        s.do("CREATE MATERIALIZED VIEW view AS SELECT count(*) FROM t")
        equal(s.do("SELECT relname, relkind FROM pg_class WHERE relname IN ('brief', 'letters', 'fast', 'view', 't')"
                   " ORDER BY 1"), [["brief", "r"], ["fast", "r"], ["letters", "r"], ["t", "f"], ["view", "m"]])
        equal(s.do("SELECT a FROM letters UNION ALL SELECT a FROM prepared"), [["two"], ["one"]])
        s.do("INSERT INTO t VALUES (3, 'three')")
        equal(s.one("SELECT * FROM view"), "2")
        s.do("REFRESH MATERIALIZED VIEW view")
        equal(s.one("SELECT * FROM view"), "3")
        # What it keeps is a local table's, whose commit is another one.
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (4, 'four')")
        contains(s.fails("0A000", "REFRESH MATERIALIZED VIEW view"), "cannot change local tables")
        s.do("ROLLBACK")


@test
def merge_takes_from_tables_in_frond_alone(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE ours (k int PRIMARY KEY, v text)")
        s.do("CREATE TEMP TABLE kept (k int PRIMARY KEY, v text)")
        s.do("INSERT INTO ours VALUES (1, 'one'), (2, 'two')")
        s.do("INSERT INTO kept VALUES (2, 'old'), (3, 'three')")
        merge = ("MERGE INTO {0} USING {1} ON {0}.k = {1}.k WHEN MATCHED THEN UPDATE SET v = {1}.v"
                 " WHEN NOT MATCHED THEN INSERT VALUES ({1}.k, {1}.v)")
        contains(s.fails("0A000", merge.format("ours", "kept")), "cannot execute MERGE")
        s.do(merge.format("kept", "ours"))
        equal(s.do("SELECT * FROM kept ORDER BY k"), [["1", "one"], ["2", "two"], ["3", "three"]])


@test
def a_table_in_frond_is_no_partition(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE all_of_it (a int, b int) PARTITION BY LIST (a)")
        s.do("CREATE TABLE kept PARTITION OF all_of_it FOR VALUES IN (1)")
        s.do("CREATE TABLE ours (a int, b int)")
        contains(s.fails("0A000", "ALTER TABLE all_of_it ATTACH PARTITION ours FOR VALUES IN (2)"), "be a partition")
        s.do("CREATE TABLE local (a int, b int) USING heap")
        s.do("ALTER TABLE all_of_it ATTACH PARTITION local FOR VALUES IN (2)")
        s.do("INSERT INTO all_of_it VALUES (1, 1), (2, 2)")
        equal(s.do("UPDATE local SET a = 2 RETURNING *"), [["2", "2"]])
        s.fails("23514", "UPDATE local SET a = 1")


# ---- Indexes ----

@test
def an_index_may_name_the_order_that_it_has_anyway(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (a char(10), b text, c varchar(5), d int, e bigint)")
        s.do("CREATE UNIQUE INDEX named ON t (a bpchar_ops, b text_ops, c varchar_ops, d int4_ops)")
        s.do("INSERT INTO t VALUES ('a', 'b', 'c', 1)")
        s.fails("23505", "INSERT INTO t VALUES ('a', 'b', 'c', 1)")
        s.do("CREATE INDEX ON t (b text_pattern_ops, c varchar_pattern_ops)")  # that of bytes, as frond's
        for column in ("e int4_ops", "a text_ops"):
            contains(s.fails("42804", f"CREATE INDEX ON t ({column})"), "does not accept")
        s.fails("42704", "CREATE INDEX ON t (b no_ops)")


# ---- Children ----

@test
def a_parent_has_the_rows_of_its_children(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE parent (id int PRIMARY KEY, a int)")
        s.do("CREATE TABLE child () INHERITS (parent)")
        s.do("INSERT INTO parent VALUES (1, 1)")
        s.do("INSERT INTO child VALUES (1, 10), (2, 20)")
        equal(s.do("SELECT sum(a), count(*), max(a) FROM parent"), [["31", "3", "20"]])
        equal(s.do("SELECT id, count(*) FROM parent GROUP BY id ORDER BY id"), [["1", "2"], ["2", "1"]])
        equal(s.do("SELECT sum(a), count(*) FROM ONLY parent"), [["1", "1"]])
        # A key is the table's own, so a join by it is not left out.
        s.do("CREATE TABLE other (id int)")
        s.do("INSERT INTO other VALUES (1)")
        equal(s.do("SELECT o.id FROM other o LEFT JOIN parent p ON p.id = o.id"), [["1"], ["1"]])
        equal(s.do("SELECT o.id FROM other o LEFT JOIN ONLY parent p ON p.id = o.id"), [["1"]])


@test
def a_column_that_is_added_is_filled(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY)")
        s.do("INSERT INTO t VALUES (1), (2)")
        s.do("ALTER TABLE t ADD COLUMN a serial")
        s.do("ALTER TABLE t ADD COLUMN b bigint GENERATED ALWAYS AS IDENTITY (START 7)")
        equal(s.do("SELECT id, a, b FROM t"), [["1", "1", "7"], ["2", "2", "8"]])
        s.do("INSERT INTO t (id) VALUES (3)")
        equal(s.one("SELECT count(DISTINCT a) + count(DISTINCT b) FROM t"), "6")
        contains(s.fails("0A000", "ALTER TABLE t ADD COLUMN c int GENERATED ALWAYS AS (id) STORED"), "computed")
        # PostgreSQL fills those of children.
        s.do("CREATE TABLE child () INHERITS (t)")
        s.do("INSERT INTO child (id, b) VALUES (9, 9)")
        s.do("ALTER TABLE t ADD COLUMN d int DEFAULT 4")
        equal(s.do("SELECT id, d FROM t ORDER BY id"), [["1", "4"], ["2", "4"], ["3", "4"], ["9", "4"]])


@test
def a_name_that_was_left_is_free(cwd):
    opener = fresh()
    with opener() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a int)")
        s.do("INSERT INTO t VALUES (1, 1)")
        s.do("ALTER TABLE t RENAME COLUMN a TO was")
        s.do("ALTER TABLE t ADD COLUMN a text DEFAULT 'new'")
        equal(s.do("SELECT * FROM t"), [["1", "1", "new"]])
        s.do("BEGIN")
        s.do("ALTER TABLE t DROP COLUMN a")
        s.do("ALTER TABLE t ADD COLUMN a int")
        s.do("COMMIT")
        s.do("UPDATE t SET a = 7")
        s.do("BEGIN")
        s.do("ALTER TABLE t RENAME TO old")
        s.do("CREATE TABLE t (id int PRIMARY KEY, n int)")
        s.do("INSERT INTO t SELECT id, a FROM old")
        s.do("COMMIT")
        s.do("ALTER TABLE t RENAME TO older")
        s.do("CREATE TABLE t (id int)")
        with opener() as other:
            equal(other.do("SELECT * FROM old, older"), [["1", "1", "7", "1", "7"]])
            equal(other.do("SELECT * FROM t"), [])
        s.do("DROP TABLE old, older, t")
        s.do("CREATE TABLE t (id int)")
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (1)")
        s.do("COMMIT")
        s.do("BEGIN")
        s.do("DROP TABLE t")
        s.do("CREATE TABLE t (id int, b int)")
        s.do("ROLLBACK")
        equal(s.do("SELECT * FROM t"), [["1"]])


# ---- What a statement sees ----

@test
def a_stable_function_sees_what_was_there_when_its_statement_began(cwd):
    opener = fresh()
    with opener() as s:
        for access in ("frond", "heap"):
            s.do(f"CREATE TABLE {access} (id int, n int) USING {access}")
            s.do(f"INSERT INTO {access} VALUES (1, 1), (2, 2), (3, 3)")
            for kind in ("stable", "volatile"):
                most = f"SELECT max(n) FROM {access}"
                s.do(f"CREATE FUNCTION {access}_{kind}() RETURNS int LANGUAGE sql {kind} AS '{most}'")
                s.do(f"CREATE FUNCTION {access}_pl_{kind}() RETURNS int LANGUAGE plpgsql {kind} AS"
                     f" 'BEGIN RETURN ({most}); END'")
        for name, expected in [("stable", ["13", "13", "13"]), ("pl_stable", ["13", "13", "13"]),
                               ("volatile", ["13", "23", "33"]), ("pl_volatile", ["13", "23", "33"])]:
            for access in ("frond", "heap"):
                s.do("BEGIN")
                s.do(f"UPDATE {access} SET n = {access}_{name}() + 10")
                equal(s.do(f"SELECT n FROM {access} ORDER BY id"), [[n] for n in expected])
                s.do(f"INSERT INTO {access} SELECT 4, {access}_{name}() FROM generate_series(1, 2)")
                equal(s.one(f"SELECT max(n) FROM {access} WHERE id = 4"), expected[2])
                s.do("ROLLBACK")


# ---- Constraints ----

@test
def a_domain_refuses_what_columns_in_frond_have(cwd):
    with fresh()() as s:
        s.do("CREATE DOMAIN small AS int")
        s.do("CREATE DOMAIN smaller AS small")
        s.do("CREATE TABLE t (id int PRIMARY KEY, a small, b smaller)")
        s.do("INSERT INTO t VALUES (1, 1, NULL), (2, 5, 7)")
        contains(s.fails("23514", "ALTER DOMAIN small ADD CONSTRAINT most CHECK (VALUE < 6)"), 'column "b" of table "t"')
        s.do("INSERT INTO t VALUES (3, 6, 6)")
        s.do("ALTER DOMAIN small ADD CONSTRAINT most CHECK (VALUE < 6) NOT VALID")
        contains(s.fails("23514", "ALTER DOMAIN small VALIDATE CONSTRAINT most"), 'column "a" of table "t"')
        s.do("ALTER DOMAIN small DROP CONSTRAINT most")
        s.do("ALTER DOMAIN small ADD CONSTRAINT most CHECK (VALUE < 8)")
        contains(s.fails("23502", "ALTER DOMAIN small SET NOT NULL"), 'column "b" of table "t" contains null values')
        s.do("DELETE FROM t WHERE b IS NULL")
        s.do("ALTER DOMAIN small SET NOT NULL")
        s.fails("23502", "INSERT INTO t VALUES (4, 4, NULL)")
        # A column that is added has null in the rows that are there, or what the domain says.
        s.fails("23502", "ALTER TABLE t ADD COLUMN c small")
        s.do("CREATE DOMAIN five AS int DEFAULT 5 CHECK (VALUE IS NOT NULL)")
        s.do("ALTER TABLE t ADD COLUMN c five")
        equal(s.do("SELECT id, c FROM t"), [["2", "5"], ["3", "5"]])
        s.do("CREATE DOMAIN never AS int CHECK (VALUE IS NOT NULL)")
        s.fails("23514", "ALTER TABLE t ADD COLUMN d never")
        s.do("DELETE FROM t")
        s.do("ALTER TABLE t ADD COLUMN d never")


@test
def a_check_is_validated_and_a_key_stays_not_null(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a int)")
        s.do("INSERT INTO t VALUES (1, 5)")
        s.do("ALTER TABLE t ADD CONSTRAINT most CHECK (a < 5) NOT VALID")
        contains(s.fails("23514", "ALTER TABLE t VALIDATE CONSTRAINT most"), "is violated by some row")
        equal(s.one("SELECT convalidated FROM pg_constraint WHERE conname = 'most'"), "f")
        s.do("UPDATE t SET a = 4")
        s.do("ALTER TABLE t VALIDATE CONSTRAINT most")
        equal(s.one("SELECT convalidated FROM pg_constraint WHERE conname = 'most'"), "t")
        contains(s.fails("42P16", "ALTER TABLE t ALTER COLUMN id DROP NOT NULL"), "in a primary key")
        # Rows of a child are its own constraint's.
        s.do("CREATE TABLE child () INHERITS (t)")
        s.do("INSERT INTO child VALUES (2, 4)")
        s.do("ALTER TABLE t ADD CONSTRAINT own CHECK (a = 4) NO INHERIT")
        s.do("INSERT INTO child VALUES (3, 3)")
        s.do("ALTER TABLE t ADD CONSTRAINT again CHECK (a = 4) NO INHERIT")
        s.fails("42P16", "CREATE TABLE x ON COMMIT DROP AS SELECT 1")
        s.do("CREATE TABLE sums (a int, b int GENERATED ALWAYS AS (a * 2) STORED)")
        s.fails("42P10", "COPY sums (a, b) TO STDOUT")


# ---- ON CONFLICT ----

@test
def a_view_takes_on_conflict(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a int, b text UNIQUE)")
        s.do("CREATE VIEW v AS SELECT b AS name, a AS n, id AS number FROM t WHERE a < 100 WITH CHECK OPTION")
        s.do("INSERT INTO v VALUES ('one', 1, 1)")
        equal(s.do("INSERT INTO v VALUES ('x', 5, 1) ON CONFLICT (number) DO UPDATE SET n = v.n + excluded.n"
                   " RETURNING *"), [["one", "6", "1"]])
        equal(s.do("WITH w AS (INSERT INTO v VALUES ('one', 7, 2) ON CONFLICT (name) DO UPDATE SET n = excluded.n"
                   " RETURNING n) SELECT * FROM w"), [["7"]])
        s.do("INSERT INTO v VALUES ('one', 9, 3) ON CONFLICT (name) DO NOTHING")
        s.fails("44000", "INSERT INTO v VALUES ('y', 100, 1) ON CONFLICT (number) DO UPDATE SET n = excluded.n")
        s.fails("42P10", "INSERT INTO v VALUES ('y', 1, 1) ON CONFLICT (n) DO NOTHING")
        equal(s.do("SELECT * FROM t"), [["1", "7", "one"]])


@test
def an_extension_that_looks_at_plans_finds_them(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a text)")
        s.do("INSERT INTO t VALUES (1, 'one')")
        for before in ("", "BEGIN;"):
            told = printed(s, f"""LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;
                SET auto_explain.log_level = warning; SET auto_explain.log_triggers = on; {before}
                UPDATE t SET a = a || '.' WHERE id = 1; SELECT a FROM t WHERE id = 1; COMMIT""")
            contains(told, "Update on t")
            contains(told, "Foreign Scan on t")
        equal(s.one("SELECT a FROM t"), "one..")
        # Loaded in the middle of a session, in which a statement has run without its plan.
        contains(printed(s, """INSERT INTO t VALUES (2, 'two'); LOAD 'auto_explain'; SET auto_explain.log_level = warning;
            SET auto_explain.log_min_duration = 0; DELETE FROM t WHERE id = 2"""), "Delete on t")
        equal(s.do("SELECT a FROM t"), [["one.."]])


try:
    main(missing())
finally:
    end_shared()
