#!/usr/bin/env python3
"""FOREIGN KEY between tables in frond: the extension of PostgreSQL, by psql."""

import random

from harness import contains, equal, main, seed, test
from pg_server import Failure, end_shared, fresh, missing


@test
def a_row_refers_to_one_that_is_there(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE p (id int PRIMARY KEY, name text UNIQUE)")
        s.do("CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p, name text REFERENCES p (name), n int)")
        s.do("INSERT INTO p VALUES (1, 'one'), (2, 'two')")
        s.do("INSERT INTO c VALUES (1, 1, 'one'), (2, 2, NULL), (3, NULL, 'two')")
        text = s.fails("23503", "INSERT INTO c VALUES (4, 1), (5, 3)")
        contains(text, 'insert or update on table "c" violates foreign key constraint "c_p_fkey"')
        contains(text, 'Key (p)=(3) is not present in table "p".')
        contains(s.fails("23503", "INSERT INTO c VALUES (4, 1, 'three')"), "Key (name)=(three)")
        contains(s.fails("23503", "UPDATE c SET p = 9 WHERE id = 1"), "Key (p)=(9)")
        s.fails("23503", "UPDATE c SET id = 10, p = 9 WHERE id = 1")
        s.fails("23503", "COPY c FROM STDIN", "7\t1\tone\t0", "8\t5\t\\N\t0")
        s.do("UPDATE c SET n = 7")
        text = s.fails("23503", "DELETE FROM p WHERE id = 1")
        contains(text, 'update or delete on table "p" violates foreign key constraint "c_p_fkey" on table "c"')
        contains(text, 'Key (id)=(1) is still referenced from table "c".')
        s.fails("23503", "UPDATE p SET id = 3 WHERE id = 1")
        s.fails("23503", "UPDATE p SET name = 'uno' WHERE id = 1")
        s.do("UPDATE p SET id = 1, name = 'one' WHERE id = 1")
        equal(s.do("SELECT id, p, name, n FROM c"), [["1", "1", "one", "7"], ["2", "2", "NULL", "7"], ["3", "NULL", "two", "7"]])
        # A statement's own rows, of this transaction, and of what it undoes.
        s.do("BEGIN")
        s.do("INSERT INTO p VALUES (5, 'five')")
        s.do("SAVEPOINT a")
        s.do("INSERT INTO p VALUES (6, 'six')")
        s.do("INSERT INTO c VALUES (50, 5), (60, 6)")
        s.do("ROLLBACK TO a")
        s.fails("23503", "INSERT INTO c VALUES (60, 6)")
        s.do("ROLLBACK TO a")
        s.do("INSERT INTO c VALUES (50, 5)")
        s.do("COMMIT")
        # ON CONFLICT looks at what is written.
        equal(s.do("INSERT INTO c VALUES (50, 99), (51, 2) ON CONFLICT DO NOTHING RETURNING id"), [["51"]])
        s.fails("23503", "INSERT INTO c VALUES (52, 99) ON CONFLICT DO NOTHING")
        s.fails("23503", "INSERT INTO c VALUES (50, 1) ON CONFLICT (id) DO UPDATE SET p = 98")
        s.do("INSERT INTO c VALUES (50, 99) ON CONFLICT (id) DO UPDATE SET p = 2")
        contains(s.fails("0A000", "INSERT INTO p VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'y'"),
                 "a foreign key refers")
        # TRUNCATE and DROP know it.
        s.fails("0A000", "TRUNCATE p")
        s.fails("2BP01", "DROP TABLE p")
        s.fails("2BP01", "DROP INDEX p_name_key")
        s.do("ALTER TABLE c DROP CONSTRAINT c_name_fkey")
        s.do("ALTER TABLE p DROP CONSTRAINT p_name_key")
        s.do("TRUNCATE p CASCADE")
        equal(s.one("SELECT count(*) FROM c"), "0")
        s.do("DROP TABLE p CASCADE")
        s.do("INSERT INTO c VALUES (1, 77)")


@test
def keys_of_several_columns_and_of_other_types_are_found(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE p (a int, b varchar(9), c bigint, d date, PRIMARY KEY (a, b)) WITH (hash = 'b')")
        s.do("CREATE UNIQUE INDEX ON p (c, d DESC)")
        s.do("CREATE TABLE c (id serial PRIMARY KEY, x text, y bigint, c smallint, d date,"
             " CONSTRAINT both_ways FOREIGN KEY (y, x) REFERENCES p (a, b),"
             " FOREIGN KEY (d, c) REFERENCES p (d, c) MATCH FULL)")
        s.do("INSERT INTO p VALUES (1, 'x', 10, '2024-01-01'), (2, 'y', 20, '2024-01-02')")
        s.do("INSERT INTO c (x, y) VALUES ('x', 1), ('y', 2), (NULL, 5)")
        contains(s.fails("23503", "INSERT INTO c (x, y) VALUES ('x', 2)"), "Key (y, x)=(2, x) is not present")
        s.fails("23503", "INSERT INTO c (x, y) VALUES ('x', 1099511627777)")
        s.do("INSERT INTO c (c, d) VALUES (10, '2024-01-01')")
        contains(s.fails("23503", "INSERT INTO c (c) VALUES (10)"), "MATCH FULL")
        contains(s.fails("23503", "INSERT INTO c (c, d) VALUES (10, '2024-01-02')"), "Key (d, c)=(2024-01-02, 10)")
        s.fails("23503", "DELETE FROM p WHERE a = 1")
        s.fails("23503", "UPDATE c SET c = 20 WHERE d IS NOT NULL")
        s.do("UPDATE c SET c = 20, d = '2024-01-02' WHERE d IS NOT NULL")
        equal(s.one("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'both_ways'"),
              "FOREIGN KEY (y, x) REFERENCES p(a, b)")
        for column, other, state in [("text", "a", "42830"), ("int", "c", "42830"), ("int", "z", "42703")]:
            s.fails(state, f"CREATE TABLE x (k {column} REFERENCES p ({other}))")
        s.do("CREATE TABLE q (id int PRIMARY KEY)")
        contains(s.fails("42804", "CREATE TABLE x (k text REFERENCES q)"), "incompatible types: text and integer")
        s.fails("42830", "CREATE TABLE x (k int, l int, FOREIGN KEY (k, l) REFERENCES q)")


@test
def a_key_is_added_to_tables_that_have_rows(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE p (id int PRIMARY KEY)")
        s.do("CREATE TABLE c (id int PRIMARY KEY, p int)")
        s.do("INSERT INTO p SELECT generate_series(1, 50)")
        s.do("INSERT INTO c SELECT i, i % 51 FROM generate_series(1, 200) i")
        contains(s.fails("23503", "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p"), "Key (p)=(0) is not present")
        s.do("ALTER TABLE c ADD CONSTRAINT later FOREIGN KEY (p) REFERENCES p NOT VALID")
        s.fails("23503", "INSERT INTO c VALUES (1000, 0)")
        s.fails("23503", "ALTER TABLE c VALIDATE CONSTRAINT later")
        s.do("DELETE FROM c WHERE p = 0")
        s.do("ALTER TABLE c VALIDATE CONSTRAINT later")
        s.do("BEGIN")
        s.do("INSERT INTO p VALUES (1000)")
        s.do("INSERT INTO c VALUES (1000, 1000)")
        s.do("ALTER TABLE c ADD CONSTRAINT brief FOREIGN KEY (p) REFERENCES p")
        s.fails("23503", "INSERT INTO c VALUES (1001, 1001)")
        s.do("ROLLBACK")
        equal(s.one("SELECT count(*) FROM pg_constraint WHERE conname = 'brief'"), "0")
        s.fails("42710", "ALTER TABLE c ADD CONSTRAINT later FOREIGN KEY (p) REFERENCES p")
        s.do("ALTER TABLE c ADD COLUMN q int DEFAULT 7 REFERENCES p, ADD COLUMN u int UNIQUE")
        s.fails("23503", "INSERT INTO c (id, q) VALUES (1000, 70)")
        s.do("INSERT INTO c (id, u) VALUES (1001, 70)")
        s.fails("23505", "INSERT INTO c (id, u) VALUES (1002, 70)")
        s.fails("23505", "ALTER TABLE c ADD COLUMN same int DEFAULT 1 UNIQUE")
        s.fails("23503", "DELETE FROM p WHERE id = 7")
        s.do("ALTER TABLE p RENAME TO parents")
        s.do("ALTER TABLE c RENAME COLUMN p TO parent")
        contains(s.fails("23503", "INSERT INTO c (id, parent) VALUES (1003, 99)"), 'Key (parent)=(99) is not present in table "parents"')
        s.do("ALTER TABLE c DROP COLUMN parent")
        s.do("ALTER TABLE c DROP COLUMN q")
        s.do("DELETE FROM parents")
        for statement in ["CREATE TABLE x (a int REFERENCES parents) USING heap",
                          "ALTER TABLE local ADD FOREIGN KEY (a) REFERENCES parents",
                          "CREATE TABLE x (a int REFERENCES local)"]:
            s.do("CREATE TABLE IF NOT EXISTS local (a int PRIMARY KEY) USING heap")
            contains(s.fails("0A000", statement), "Their transactions commit one after the other")


@test
def a_key_is_deferred(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE p (id int PRIMARY KEY)")
        s.do("CREATE TABLE c (id int PRIMARY KEY, p int CONSTRAINT late REFERENCES p DEFERRABLE INITIALLY DEFERRED,"
             " q int CONSTRAINT early REFERENCES p DEFERRABLE)")
        s.do("INSERT INTO p VALUES (1)")
        s.do("BEGIN")
        s.do("INSERT INTO c VALUES (1, 2)")
        s.do("INSERT INTO p VALUES (2)")
        s.do("COMMIT")
        s.do("BEGIN")
        s.do("INSERT INTO c VALUES (2, 3)")
        contains(s.fails("23503", "COMMIT"), '"late"')
        s.fails("23503", "INSERT INTO c VALUES (2, 3)")
        s.do("BEGIN")
        s.fails("23503", "INSERT INTO c VALUES (2, 1, 3)")
        s.do("ROLLBACK")
        s.do("BEGIN")
        s.do("SET CONSTRAINTS ALL DEFERRED")
        s.do("INSERT INTO c VALUES (2, 1, 3)")
        contains(s.fails("23503", "SET CONSTRAINTS early IMMEDIATE"), '"early"')
        s.do("ROLLBACK")
        s.do("BEGIN")
        s.do("SET CONSTRAINTS late IMMEDIATE")
        s.fails("23503", "INSERT INTO c VALUES (2, 3)")
        s.do("ROLLBACK")
        # A row that others refer to goes, and comes back.
        s.do("BEGIN")
        s.do("DELETE FROM p WHERE id = 2")
        s.do("INSERT INTO p VALUES (2)")
        s.do("COMMIT")
        s.do("BEGIN")
        s.do("DELETE FROM p WHERE id = 2")
        s.do("SAVEPOINT a")
        s.do("INSERT INTO c VALUES (7, 77)")
        s.do("ROLLBACK TO a")
        contains(s.fails("23503", "COMMIT"), "is still referenced")
        s.do("BEGIN")
        s.do("DELETE FROM p WHERE id = 2")
        s.do("UPDATE c SET p = 1")
        s.do("COMMIT")
        equal(s.do("SELECT * FROM c"), [["1", "1", "NULL"]])


@test
def rows_that_refer_to_their_own_table_go_with_it(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree ON DELETE CASCADE ON UPDATE CASCADE)")
        s.do("CREATE INDEX ON tree (up)")
        s.do("CREATE TABLE leaf (id int PRIMARY KEY, tree int REFERENCES tree ON DELETE CASCADE ON UPDATE CASCADE)")
        s.do("INSERT INTO tree SELECT i, nullif(i / 2, 0) FROM generate_series(1, 63) i")
        s.do("INSERT INTO leaf SELECT i, i FROM generate_series(1, 63) i")
        s.fails("23503", "INSERT INTO tree VALUES (70, 71)")
        s.do("INSERT INTO tree VALUES (70, 71), (71, 70)")
        s.do("DELETE FROM tree WHERE id = 2")
        equal(s.one("SELECT count(*) FROM tree"), "34")
        equal(s.one("SELECT count(*) FROM leaf"), "32")
        s.do("UPDATE tree SET id = 1003 WHERE id = 6")
        equal(s.do("SELECT id FROM tree WHERE up = 1003"), [["12"], ["13"]])
        equal(s.do("SELECT tree FROM leaf WHERE id = 6"), [["1003"]])
        s.do("DELETE FROM tree")
        equal(s.one("SELECT count(*) FROM leaf"), "0")


@test
def random_writes_end_as_those_of_heaps(cwd):
    draw = random.Random(seed(4))
    actions = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"]
    with fresh()() as s:
        for _ in range(4):
            on = [f"ON DELETE {draw.choice(actions)} ON UPDATE {draw.choice(actions)}" for _ in range(3)]
            match = draw.choice(["", "MATCH FULL"])
            late = draw.choice(["", "DEFERRABLE INITIALLY DEFERRED"])
            for schema, method in (("ours", "frond"), ("theirs", "heap")):
                s.do(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
                s.do(f"CREATE SCHEMA {schema}")
                s.do(f"SET search_path = {schema}")
                s.do(f"SET default_table_access_method = {method}")
                s.do("CREATE TABLE p (a int, b int, u int UNIQUE, PRIMARY KEY (a, b))")
                s.do(f"CREATE TABLE c (id int PRIMARY KEY, a int DEFAULT 1, b int DEFAULT 1,"
                     f" u int REFERENCES p (u) {on[0]},"
                     f" FOREIGN KEY (a, b) REFERENCES p {match} {on[1]} {late})")
                s.do(f"CREATE TABLE g (id int PRIMARY KEY, c int DEFAULT 3 REFERENCES c {on[2]})")
                s.do("INSERT INTO p SELECT i, j, i * 10 + j FROM generate_series(1, 3) i, generate_series(1, 3) j")
                s.do("INSERT INTO c SELECT i, i % 3 + 1, i % 2 + 1, i + 10 FROM generate_series(1, 3) i")
                s.do("INSERT INTO g SELECT i, i FROM generate_series(1, 3) i")
            for _ in range(60):
                n = [draw.choice(["1", "2", "3", "4", "NULL"]) for _ in range(4)]
                u = draw.choice(["11", "12", "22", "31", "44", "NULL"])
                statement = draw.choice([
                    f"INSERT INTO p VALUES ({n[0]}, {n[1]}, {u})",
                    f"INSERT INTO c VALUES ({draw.randrange(9)}, {n[0]}, {n[1]}, {u})",
                    f"INSERT INTO g VALUES ({draw.randrange(9)}, {n[0]})",
                    f"UPDATE p SET a = {n[0]} WHERE a = {n[1]} AND b = {n[2]}",
                    f"UPDATE p SET u = {u} WHERE a = {n[0]} AND b = {n[1]}",
                    f"UPDATE c SET a = {n[0]}, b = {n[1]} WHERE id = {n[2]}",
                    f"UPDATE c SET id = {draw.randrange(9)} WHERE id = {n[2]}",
                    f"DELETE FROM p WHERE a = {n[0]} AND b = {n[1]}",
                    f"DELETE FROM p WHERE b = {n[0]}",
                    f"DELETE FROM c WHERE id = {n[0]}",
                    f"BEGIN; DELETE FROM p WHERE a = {n[0]}; INSERT INTO p VALUES ({n[0]}, {n[1]}, NULL); COMMIT"])
                ends = []
                for schema in ("ours", "theirs"):
                    s.do(f"SET search_path = {schema}")
                    try:
                        s.do(statement)
                        state = None
                    except Failure as failure:
                        state = failure.state
                    s.do("ROLLBACK")
                    ends.append((state, [s.do(f"SELECT * FROM {table} ORDER BY 1, 2") for table in "pcg"]))
                assert ends[0] == ends[1], (f"{on} {match} {late}: {statement}\nours {ends[0]}\ntheirs {ends[1]}")
        s.do("DROP SCHEMA ours CASCADE")


@test
def two_transactions_do_not_part_what_refers(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE p (id int PRIMARY KEY, n int)")
        s.do("CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p)")
        s.do("INSERT INTO p VALUES (1, 0), (2, 0)")
        for first, second in [("INSERT INTO c VALUES (1, 1)", "DELETE FROM p WHERE id = 1"),
                              ("DELETE FROM p WHERE id = 2", "INSERT INTO c VALUES (2, 2)")]:
            s.do("BEGIN")
            other.do("BEGIN")
            s.do(first)
            other.do(second)
            s.do("COMMIT")
            other.fails("40001", "COMMIT")
        equal(s.do("SELECT p.id, c.id FROM p FULL JOIN c ON c.p = p.id"), [["1", "1"]])


@test
def whoever_writes_needs_no_right_on_the_other_table(cwd):
    opener = fresh()
    with opener() as s:
        schema = s.one("SELECT current_schema")
        s.do("CREATE TABLE p (id int PRIMARY KEY)")
        s.do("CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE)")
        s.do(f"CREATE ROLE writer_{schema} LOGIN")
        s.do(f"GRANT USAGE ON SCHEMA {schema} TO writer_{schema}")
        s.do(f"GRANT INSERT ON c TO writer_{schema}")
        s.do(f"GRANT SELECT, INSERT, DELETE ON p TO writer_{schema}")
        with opener(f"writer_{schema}") as writer:
            writer.do("BEGIN")
            writer.do("INSERT INTO p VALUES (1), (2)")
            writer.do("INSERT INTO c VALUES (1, 1), (2, 2)")
            writer.do("COMMIT")
            writer.fails("42501", "SELECT * FROM c")
            writer.do("DELETE FROM p WHERE id = 1")
            writer.fails("42501", "CREATE TABLE x (a int REFERENCES p)")
        equal(s.do("SELECT * FROM c"), [["2", "2"]])


@test
def much_is_loaded_with_a_key(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE p (id int PRIMARY KEY)")
        s.do("CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p, t text)")
        s.do("INSERT INTO p SELECT generate_series(1, 3000)")
        s.do("SET frond.bulk_load = on")
        s.do("INSERT INTO c SELECT i, i % 3000 + 1, repeat('x', 500) FROM generate_series(1, 20000) i")
        equal(s.one("SELECT count(*) FROM c"), "20000")
        s.fails("23503", "INSERT INTO c SELECT i, CASE WHEN i < 50000 THEN 1 ELSE 3001 END, repeat('x', 500)"
                         " FROM generate_series(30001, 60000) i")
        equal(s.one("SELECT count(*) FROM c WHERE p > 3000"), "0")
        s.fails("23503", "DELETE FROM p")
        equal(s.one("SELECT count(*) FROM p"), "3000")


@test
def a_deferred_row_that_is_gone_needs_no_other(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE p (id int PRIMARY KEY)")
        s.do("CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
        for undo in ("DELETE FROM c WHERE id = 1", "UPDATE c SET p = NULL WHERE id = 1", "UPDATE c SET p = 2 WHERE id = 1"):
            for end in ("SET CONSTRAINTS ALL IMMEDIATE", "COMMIT"):
                s.do("BEGIN")
                s.do("INSERT INTO p VALUES (2) ON CONFLICT DO NOTHING")
                s.do("INSERT INTO c VALUES (1, 1), (5, 2)")
                s.do(undo)
                s.do(end)
                if end != "COMMIT":
                    s.do("COMMIT")
                s.do("DELETE FROM c")
        # One of several that refer is left.
        s.do("BEGIN")
        s.do("INSERT INTO c VALUES (1, 1), (2, 1), (3, 3)")
        s.do("DELETE FROM c WHERE id IN (1, 3)")
        contains(s.fails("23503", "COMMIT"), "(p)=(1)")


# ---- Deferrable UNIQUE, which is kept in the same way ----

@test
def a_deferrable_unique_is_looked_at_when_the_statement_or_the_transaction_ends(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, a int UNIQUE DEFERRABLE, b text,"
             " CONSTRAINT late UNIQUE (b, a) DEFERRABLE INITIALLY DEFERRED)")
        s.do("INSERT INTO t SELECT i, i, 'b' FROM generate_series(1, 5) i")
        s.do("UPDATE t SET a = a + 1")
        text = s.fails("23505", "INSERT INTO t VALUES (10, 30, 'x'), (11, 3, 'x')")
        contains(text, 'duplicate key value violates unique constraint "t_a_key"')
        contains(text, "Key (a)=(3) already exists.")
        s.fails("23505", "UPDATE t SET a = 2 WHERE k = 5")
        s.do("INSERT INTO t VALUES (6, NULL, 'b'), (7, NULL, 'b')")
        # Two rows change their values with each other.
        s.do("BEGIN")
        s.do("SET CONSTRAINTS ALL DEFERRED")
        s.do("UPDATE t SET a = 3 WHERE k = 1")
        s.do("UPDATE t SET a = 2 WHERE k = 2")
        s.do("COMMIT")
        s.do("BEGIN")
        s.do("SET CONSTRAINTS t_a_key DEFERRED")
        s.do("INSERT INTO t VALUES (20, 3, 'z')")
        s.fails("23505", "SET CONSTRAINTS t_a_key IMMEDIATE")
        s.do("ROLLBACK")
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (21, 99, 'q')")
        s.do("SAVEPOINT p")
        s.do("SET CONSTRAINTS ALL DEFERRED")
        s.do("INSERT INTO t VALUES (22, 99, 'q')")
        s.do("ROLLBACK TO p")
        s.do("COMMIT")
        s.do("ALTER TABLE t DROP CONSTRAINT t_a_key")
        s.do("BEGIN")
        s.do("INSERT INTO t VALUES (23, 99, 'q')")
        contains(s.fails("23505", "COMMIT"), '"late"')
        s.do("INSERT INTO t VALUES (23, 99, 'other')")
        contains(s.fails("23505", "ALTER TABLE t ADD CONSTRAINT again UNIQUE (a) DEFERRABLE"), '"again"')
        s.do("DELETE FROM t WHERE k = 23")
        s.do("ALTER TABLE t ADD CONSTRAINT again UNIQUE (a) DEFERRABLE")
        # It stays one where the table is made anew, and in a table that is made like it.
        s.do("ALTER TABLE t ALTER a TYPE bigint")
        contains(s.fails("23505", "INSERT INTO t VALUES (23, 99, 'other')"), '"again"')
        s.do("UPDATE t SET a = a + 1")
        s.do("CREATE TABLE u (LIKE t INCLUDING INDEXES)")
        s.fails("23505", "INSERT INTO u VALUES (1, 1), (2, 1)")
        equal(s.do("SELECT conname, condeferrable, condeferred FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'u' ORDER BY 1"),
              [["again", "t", "f"], ["late", "t", "t"]])
        s.fails("42830", "CREATE TABLE c (a bigint REFERENCES t (a))")


@test
def one_of_two_transactions_that_write_a_deferrable_unique_value_fails(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE t (k int PRIMARY KEY, a int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        for first, second in ((s, other), (other, s)):
            for one in (s, other):
                one.do("BEGIN")
                one.do(f"INSERT INTO t VALUES ({1 if one is s else 2}, 5)")
            first.do("COMMIT")
            try:
                second.do("COMMIT")
            except Failure as failure:
                assert failure.state in ("23505", "40001"), failure
            equal(s.do("SELECT a FROM t"), [["5"]])
            s.do("DELETE FROM t")


try:
    main(missing())
finally:
    end_shared()
