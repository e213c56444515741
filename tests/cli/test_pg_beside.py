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


try:
    main(missing())
finally:
    end_shared()
