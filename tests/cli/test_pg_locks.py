#!/usr/bin/env python3
"""PostgreSQL with its tables in frond: rows that are locked, by several sessions of psql."""

import re
import subprocess

from harness import contains, equal, main, test, until
from pg_server import Failure, end_shared, fresh, missing, shared

ROWS = "INSERT INTO t SELECT i, 0, 'new' FROM generate_series(1, 5) i"


def made(s):
    s.do("CREATE TABLE t (k int PRIMARY KEY, n int, state text)")
    s.do(ROWS)


def read_failure(session):
    try:
        got = session.read()
    except Failure as failure:
        return failure
    raise AssertionError(f"it gave {got}")


def waiting(s, count=1):
    """Until so many sessions wait for a row."""
    until(lambda: s.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 3 AND NOT granted")
          == str(count))


# ---- Waiting ----

@test
def for_update_waits_and_reads_what_the_other_has_committed(cwd):
    opener = fresh()
    with opener() as s, opener() as other, opener() as watch:
        made(s)
        for query in ("SELECT n FROM t WHERE k = 1 FOR UPDATE", "SELECT n FROM t WHERE k IN (1, 3) FOR NO KEY UPDATE",
                      "SELECT n FROM t WHERE state = 'new' AND k < 3 ORDER BY n FOR UPDATE",
                      "SELECT n FROM t WHERE k = 1 FOR SHARE", "UPDATE t SET n = n WHERE k = 1 RETURNING n",
                      "UPDATE t SET n = n WHERE k + 0 = 1 RETURNING n",
                      "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET n = t.n RETURNING n"):
            s.do("BEGIN")
            s.do("SELECT * FROM t WHERE k = 1 FOR UPDATE")
            s.do("UPDATE t SET n = n + 1 WHERE k = 1")
            other.do("BEGIN")
            other.send(query)
            waiting(watch)
            s.do("COMMIT")
            new = s.one("SELECT n FROM t WHERE k = 1")
            got = other.read()
            assert [new] in got, (query, new, got)
            # The transaction began behind that, and meets nobody.
            other.do("UPDATE t SET n = n + 10 WHERE k = 1")
            other.do("COMMIT")
            equal((query, int(s.one("SELECT n FROM t WHERE k = 1"))), (query, int(new) + 10))


@test
def rows_of_a_table_without_a_key_are_waited_for(cwd):
    opener = fresh()
    with opener() as s, opener() as other, opener() as watch:
        s.do("CREATE TABLE log (n int, msg text)")
        s.do("INSERT INTO log VALUES (1, 'a'), (2, 'b')")
        s.do("BEGIN")
        equal(s.do("SELECT msg FROM log WHERE n = 2 FOR UPDATE"), [["b"]])
        equal(other.do("SELECT msg FROM log FOR UPDATE SKIP LOCKED"), [["a"]])
        other.send("UPDATE log SET msg = msg || '!' RETURNING msg")
        waiting(watch)
        s.do("UPDATE log SET msg = 'c' WHERE n = 2")
        s.do("COMMIT")
        equal(sorted(other.read()), [["a!"], ["c!"]])


@test
def modes_exclude_each_other_as_postgresql_s_do(cwd):
    opener = fresh()
    modes = ["KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"]
    shared_by = {("KEY SHARE", "KEY SHARE"), ("KEY SHARE", "SHARE"), ("SHARE", "KEY SHARE"), ("SHARE", "SHARE"),
                 ("KEY SHARE", "NO KEY UPDATE"), ("NO KEY UPDATE", "KEY SHARE")}
    with opener() as s, opener() as other:
        made(s)
        s.do("CREATE TABLE h (k int PRIMARY KEY) USING heap")
        s.do("INSERT INTO h VALUES (1)")
        for table in "th":
            for mine in modes:
                s.do("BEGIN")
                s.do(f"SELECT * FROM {table} WHERE k = 1 FOR {mine}")
                for theirs in modes:
                    query = f"SELECT k FROM {table} WHERE k = 1 FOR {theirs} "
                    if (mine, theirs) in shared_by:
                        equal(other.do(query + "NOWAIT"), [["1"]])
                    else:
                        other.fails("55P03", query + "NOWAIT")
                        equal(other.do(query + "SKIP LOCKED"), [])
                s.do("ROLLBACK")
                equal(other.do(f"SELECT k FROM {table} WHERE k = 1 FOR UPDATE NOWAIT"), [["1"]])


@test
def whoever_has_read_before_fails_if_the_row_has_changed(cwd):
    opener = fresh()
    with opener() as s, opener() as other, opener() as watch:
        made(s)
        for waits in ("SELECT * FROM t WHERE k = 1 FOR UPDATE", "SELECT * FROM t WHERE k + 0 = 1 FOR UPDATE",
                      "UPDATE t SET n = 7 WHERE k = 1", "DELETE FROM t WHERE k + 0 = 1"):
            for changes in (True, False):
                s.do("BEGIN")
                s.do("SELECT * FROM t WHERE k = 1 FOR UPDATE")
                other.do("BEGIN")
                other.do("SELECT * FROM t WHERE k = 1")
                other.send(waits)
                waiting(watch)
                if changes:
                    s.do("UPDATE t SET n = n + 1 WHERE k = 1")
                s.do("COMMIT")
                if changes:
                    failure = read_failure(other)
                    equal((waits, failure.state), (waits, "40001"))
                    contains(str(failure), "could not serialize access due to concurrent update")
                else:
                    other.read()
                other.do("ROLLBACK")


@test
def whoever_has_read_what_is_still_so_goes_on(cwd):
    opener = fresh()
    with opener() as s, opener() as other, opener() as watch:
        made(s)
        for n, waits in enumerate(("SELECT n FROM t WHERE k = 1 FOR UPDATE", "UPDATE t SET n = n WHERE k = 1 RETURNING n"), 1):
            for waited in (True, False):
                s.do("BEGIN")
                s.do("UPDATE t SET n = n + 1 WHERE k = 1")
                other.do("BEGIN")
                equal(other.one("SELECT state FROM t WHERE k = 5"), "new")
                other.do("UPDATE t SET n = n + 1 WHERE k = 2")
                if waited:
                    other.send(waits)
                    waiting(watch)
                    s.do("COMMIT")
                else:
                    s.do("COMMIT")
                    other.send(waits)
                new = s.one("SELECT n FROM t WHERE k = 1")
                assert [new] in other.read(), (waits, waited)
                other.do("UPDATE t SET n = n + 10 WHERE k = 1")
                other.do("COMMIT")
                equal((waits, int(s.one("SELECT n FROM t WHERE k = 1"))), (waits, int(new) + 10))
            equal(int(s.one("SELECT n FROM t WHERE k = 2")), 2 * n)
        # Its own read is not so any more.
        s.do("BEGIN")
        s.do("UPDATE t SET n = n + 1, state = 'old' WHERE k IN (1, 5)")
        other.do("BEGIN")
        equal(other.one("SELECT state FROM t WHERE k = 5"), "new")
        other.send("UPDATE t SET n = n + 1 WHERE k = 1")
        waiting(watch)
        s.do("COMMIT")
        equal(read_failure(other).state, "40001")
        other.do("ROLLBACK")


@test
def many_change_few_rows_and_none_is_tried_again(cwd):
    opener = fresh()
    with opener() as s, opener() as a, opener() as b, opener() as c:
        made(s)
        s.do("CREATE TABLE own (k int PRIMARY KEY, n int)")
        s.do("INSERT INTO own VALUES (1, 0), (2, 0), (3, 0)")
        s.do("CREATE TABLE log (k int, n int)")
        for _ in range(20):
            for k, session in enumerate((a, b, c), 1):
                session.send(f"BEGIN; UPDATE own SET n = n + 1 WHERE k = {k}; SELECT n FROM own WHERE k = {k};"
                             f" UPDATE t SET n = n + 1 WHERE k = 1; INSERT INTO log VALUES ({k}, 1); COMMIT")
            for session in (a, b, c):
                session.read()
        equal(s.one("SELECT n FROM t WHERE k = 1"), "60")
        equal(s.do("SELECT sum(n) FROM own"), [["60"]])
        equal(s.do("SELECT count(*) FROM log"), [["60"]])


@test
def a_row_that_others_have_deleted_or_changed_is_not_given(cwd):
    opener = fresh()
    with opener() as s, opener() as other, opener() as watch:
        made(s)
        for change in ("DELETE FROM t WHERE k = 2", "UPDATE t SET state = 'old' WHERE k = 2", "UPDATE t SET k = 20 WHERE k = 2"):
            s.do("BEGIN")
            s.do(change)
            other.send("SELECT k FROM t WHERE state = 'new' AND k < 4 ORDER BY n, k FOR UPDATE")
            waiting(watch)
            s.do("COMMIT")
            equal((change, other.read()), (change, [["1"], ["3"]]))
            s.do("DELETE FROM t")
            s.do(ROWS)


@test
def a_cycle_is_40001_and_the_other_goes_on(cwd):
    opener = fresh()
    with opener() as s, opener() as other, opener() as watch:
        made(s)
        for session in (s, other):
            session.do("SET deadlock_timeout = '100ms'")
        s.do("BEGIN")
        s.do("SELECT * FROM t WHERE k = 1 FOR UPDATE")
        other.do("BEGIN")
        other.do("SELECT * FROM t WHERE k = 2 FOR UPDATE")
        s.do("SET deadlock_timeout = '100s'")
        s.send("SELECT * FROM t WHERE k = 2 FOR UPDATE")
        waiting(watch)
        failure = other.fails("40001", "SELECT * FROM t WHERE k = 1 FOR UPDATE")
        contains(failure, "deadlock detected")
        equal(s.read(), [["2", "0", "new"]])
        s.do("COMMIT")
        other.do("ROLLBACK")
        # Statements that are transactions by themselves are tried again until both are done.
        s.do("SET deadlock_timeout = '100ms'")
        s.do("CREATE FUNCTION slow(int) RETURNS bool LANGUAGE sql VOLATILE AS 'SELECT pg_sleep(0.3) IS NOT NULL'")
        s.send("UPDATE t SET n = n + 1 WHERE k % 2 = 1 AND slow(k)")
        other.send("UPDATE t SET n = n + 1 FROM (SELECT k AS a FROM t ORDER BY k DESC) x WHERE k = a AND k % 2 = 1 AND slow(k)")
        for session in (s, other):
            session.read()
        equal(s.do("SELECT n FROM t ORDER BY k"), [["2"], ["0"], ["2"], ["0"], ["2"]])


@test
def a_wait_ends_after_its_time(cwd):
    opener = fresh()
    with opener() as s, opener() as other, opener() as watch:
        made(s)
        s.do("BEGIN")
        s.do("UPDATE t SET n = 1 WHERE k = 1")
        for setting in ("frond.lock_timeout", "lock_timeout"):
            other.do(f"SET {setting} = '200ms'")
            for query in ("SELECT * FROM t WHERE k = 1 FOR UPDATE", "SELECT * FROM t FOR SHARE",
                          "UPDATE t SET n = 2 WHERE k = 1", "DELETE FROM t"):
                contains(other.fails("55P03", query), "lock timeout")
            other.do(f"RESET {setting}")
            equal(other.one("SHOW lock_timeout"), "0")
        other.do("SET statement_timeout = '200ms'")
        other.fails("57014", "SELECT * FROM t WHERE k = 1 FOR UPDATE")
        other.do("RESET statement_timeout")
        # Whoever ends lets go of what it has locked, whatever way it ends.
        other.send("SELECT n FROM t WHERE k = 1 FOR UPDATE")
        waiting(watch)
        watch.do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'")
        equal(other.read(), [["0"]])


@test
def a_savepoint_lets_go_of_what_it_has_locked(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        made(s)
        s.do("BEGIN")
        s.do("SELECT * FROM t WHERE k = 1 FOR UPDATE")
        s.do("SAVEPOINT p")
        s.do("SELECT * FROM t WHERE k = 2 FOR UPDATE")
        equal(other.do("SELECT k FROM t FOR UPDATE SKIP LOCKED"), [["3"], ["4"], ["5"]])
        s.do("ROLLBACK TO p")
        equal(other.do("SELECT k FROM t FOR UPDATE SKIP LOCKED"), [["2"], ["3"], ["4"], ["5"]])
        s.do("SAVEPOINT q")
        s.do("SELECT * FROM t WHERE k = 3 FOR UPDATE")
        s.do("RELEASE q")
        equal(other.do("SELECT k FROM t FOR UPDATE SKIP LOCKED"), [["2"], ["4"], ["5"]])
        s.do("COMMIT")


@test
def rows_beyond_the_limit_are_not_locked(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        made(s)
        s.do("SET frond.row_locks = 2")
        s.do("BEGIN")
        equal(len(s.do("SELECT * FROM t ORDER BY k FOR UPDATE")), 5)
        equal(other.do("SELECT k FROM t FOR UPDATE SKIP LOCKED"), [["3"], ["4"], ["5"]])
        # What two have changed all the same is refused to one of them.
        other.do("UPDATE t SET n = 9 WHERE k = 3")
        s.do("UPDATE t SET n = n + 1 WHERE k = 3")
        s.fails("40001", "COMMIT")
        s.do("SET frond.row_locks = 0")
        s.do("BEGIN")
        s.do("SELECT * FROM t WHERE k = 1 FOR UPDATE")
        equal(other.do("SELECT k FROM t WHERE k = 1 FOR UPDATE NOWAIT"), [["1"]])
        s.do("COMMIT")


# ---- Queues ----

@test
def what_skips_locked_rows_does_not_meet_those_who_have_them(cwd):
    opener = fresh()
    take = "SELECT k FROM t WHERE state = 'new' ORDER BY k LIMIT 1 FOR UPDATE SKIP LOCKED"
    with opener() as s, opener() as other:
        made(s)
        s.do("CREATE INDEX ON t (state)")
        s.do("BEGIN")
        equal(s.do(take), [["1"]])
        other.do("BEGIN")
        equal(other.do(take), [["2"]])
        s.do("UPDATE t SET state = 'done' WHERE k = 1")
        s.do("COMMIT")
        other.do("UPDATE t SET state = 'done' WHERE k = 2")
        other.do("COMMIT")
        # A transaction that takes several sees what it has done itself.
        s.do("BEGIN")
        equal(s.do(take), [["3"]])
        s.do("UPDATE t SET state = 'done' WHERE k = 3")
        equal(s.do(take), [["4"]])
        s.do("ROLLBACK")
        equal(s.do(take.replace("LIMIT 1", "LIMIT 2")), [["3"], ["4"]])
        s.do("DELETE FROM t WHERE k = (" + take + ")")
        equal(s.do("SELECT k, state FROM t ORDER BY k"),
              [["1", "done"], ["2", "done"], ["4", "new"], ["5", "new"]])


@test
def workers_take_each_job_once(cwd):
    postgres, _ = shared()
    with fresh()() as s:
        s.do("CREATE TABLE jobs (id int PRIMARY KEY, state text NOT NULL)")
        s.do("CREATE TABLE done (id int, worker int)")
        s.do("INSERT INTO jobs SELECT i, 'new' FROM generate_series(1, 96) i")
        s.do("CREATE INDEX ON jobs (state)")
        (cwd / "script").write_text(
            "BEGIN;\nSELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED \\gset\n"
            "UPDATE jobs SET state = 'done' WHERE id = :id;\nINSERT INTO done VALUES (:id, :client_id);\nCOMMIT;\n")
        done = bench(postgres, s, cwd / "script", 8, 12, "--max-tries", "100")
        equal(failed(done), 0)
        equal(s.do("SELECT count(*), count(DISTINCT id) FROM done"), [["96", "96"]])
        equal(s.one("SELECT count(*) FROM jobs WHERE state = 'new'"), "0")


# ---- With others ----

@test
def rows_of_both_kinds_of_tables_are_locked_together(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        made(s)
        s.do("CREATE TABLE h (k int PRIMARY KEY, v int) USING heap")
        s.do("INSERT INTO h SELECT i, i FROM generate_series(1, 5) i")
        query = "SELECT t.k, n, v FROM t JOIN h USING (k) WHERE v > 2 ORDER BY k FOR UPDATE"
        s.do("BEGIN")
        s.do("UPDATE h SET v = v + 1 WHERE k IN (2, 3)")
        s.do("UPDATE h SET v = 0 WHERE k = 4")
        other.send(query)
        until(lambda: s.one("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1")
        s.do("COMMIT")
        # PostgreSQL looks again at rows of its own that have changed, with those of frond beside them.
        equal(other.read(), [["3", "0", "4"], ["5", "0", "5"]])
        s.do("BEGIN")
        s.do("SELECT * FROM t WHERE k = 5 FOR UPDATE")
        equal(other.do(query + " SKIP LOCKED"), [["2", "0", "3"], ["3", "0", "4"]])
        equal(other.do(query + " OF h SKIP LOCKED"), [["2", "0", "3"], ["3", "0", "4"], ["5", "0", "5"]])
        s.do("COMMIT")


@test
def functions_lock_rows_too(cwd):
    opener = fresh()
    with opener() as s, opener() as other, opener() as watch:
        made(s)
        s.do("CREATE FUNCTION add(key int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE was int; BEGIN"
             " SELECT n INTO was FROM t WHERE k = key FOR UPDATE; UPDATE t SET n = was + 1 WHERE k = key; RETURN was; END $$")
        s.do("BEGIN")
        equal(s.one("SELECT add(1)"), "0")
        other.send("SELECT add(1)")
        waiting(watch)
        s.do("COMMIT")
        equal(other.read(), [["1"]])
        s.do("BEGIN")
        s.do("DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k FOR UPDATE")
        equal(s.do("FETCH 2 FROM c"), [["1"], ["2"]])
        equal(other.do("SELECT k FROM t FOR UPDATE SKIP LOCKED"), [["3"], ["4"], ["5"]])
        s.do("COMMIT")
        # One that only reads may not lock.
        s.do("BEGIN READ ONLY")
        s.fails("25006", "SELECT k FROM t FOR UPDATE")
        s.do("ROLLBACK")


# ---- One row that all change ----

def bench(postgres, s, script, clients, times, *options):
    done = subprocess.run([postgres.bin / "pgbench", "-n", "-h", postgres.home / "socket", "-U", "owner", "-c", str(clients),
                           "-t", str(times), "-f", script, *options, s.one("SELECT current_database()")],
                          capture_output=True, text=True, timeout=180)
    equal((done.returncode, done.stderr if done.returncode else ""), (0, ""))
    return done.stdout


def failed(text):
    return int(re.search(r"number of failed transactions: (\d+)", text)[1])


@test
def sixteen_clients_change_one_row_without_a_failure(cwd):
    postgres, _ = shared()
    clients, times = 16, 10
    with fresh()() as s:
        made(s)
        scripts = ["BEGIN;\nSELECT n FROM t WHERE k = 1 FOR UPDATE;\nUPDATE t SET n = n + 1 WHERE k = 1;\nCOMMIT;\n",
                   "BEGIN;\nUPDATE t SET n = n + 1 WHERE k = 1;\nSELECT n FROM t WHERE k = 2;\nCOMMIT;\n",
                   "UPDATE t SET n = n + 1 WHERE k = 1;\n",
                   "BEGIN;\nINSERT INTO t VALUES (1, 0, '') ON CONFLICT (k) DO UPDATE SET n = t.n + 1;\nCOMMIT;\n"]
        for count, (script, protocol) in enumerate(zip(scripts, ["prepared", "extended", "simple", "simple"]), 1):
            (cwd / "script").write_text(script)
            done = bench(postgres, s, cwd / "script", clients, times, "-M", protocol)
            equal((script, failed(done)), (script, 0))
            equal(s.one("SELECT n FROM t WHERE k = 1"), str(count * clients * times))
        # Without locks they meet.
        (cwd / "script").write_text(scripts[0])
        s.do(f"ALTER DATABASE {s.one('SELECT current_database()')} SET frond.row_locks = 0")
        assert failed(bench(postgres, s, cwd / "script", clients, times)) > 0


try:
    main(missing())
finally:
    end_shared()
