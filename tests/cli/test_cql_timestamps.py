#!/usr/bin/env python3
"""Timestamps of Cassandra's clients: what USING TIMESTAMP orders, what drivers send beside statements, what
is refused, and that dumps, checks and drawings know them."""

import json
import time

from cql_server import KEYSPACE, BatchStatement, Cluster, Door, InvalidRequest, Session, SimpleStatement
from harness import contains, equal, main, ok, test, until

TABLE = "CREATE TABLE ks.t (k int, c int, s int static, v int, w int, m map<int, int>, l list<int>, PRIMARY KEY (k, c))"


def begin(s, more=""):
    s(KEYSPACE)
    s(TABLE + more)


@test
def the_later_timestamp_wins_cell_by_cell(cwd):
    with Door(cwd) as door, Session(door) as s:
        begin(s)
        s("INSERT INTO ks.t (k, c, v, w) VALUES (1, 1, 10, 10) USING TIMESTAMP 1000")
        s("UPDATE ks.t USING TIMESTAMP 999 SET v = 9 WHERE k = 1 AND c = 1")
        s("UPDATE ks.t USING TIMESTAMP 1001 SET w = 11 WHERE k = 1 AND c = 1")
        read = "SELECT v, writetime(v), w, writetime(w) FROM ks.t WHERE k = 1 AND c = 1"
        equal(s(read), [(10, 1000, 11, 1001)])
        # Of equal ones the greater value, and a deletion before each.
        s("UPDATE ks.t USING TIMESTAMP 1000 SET v = 9, w = 12 WHERE k = 1 AND c = 1")
        equal(s(read), [(10, 1000, 11, 1001)])
        s("UPDATE ks.t USING TIMESTAMP 1001 SET v = 9, w = 12 WHERE k = 1 AND c = 1")
        equal(s(read), [(9, 1001, 12, 1001)])
        s("DELETE v FROM ks.t USING TIMESTAMP 1001 WHERE k = 1 AND c = 1")
        s("UPDATE ks.t USING TIMESTAMP 1001 SET v = 99 WHERE k = 1 AND c = 1")
        equal(s(read), [(None, None, 12, 1001)])
        # What was written without one has the moment of its commit, and wins against what has passed.
        s("UPDATE ks.t SET w = 13 WHERE k = 1 AND c = 1")
        s("UPDATE ks.t USING TIMESTAMP 2000 SET w = 14 WHERE k = 1 AND c = 1")
        equal(s("SELECT w FROM ks.t"), [(13,)])
        s("INSERT INTO ks.t (k, c, v) VALUES (2, 2, 1) USING TIMESTAMP -42")
        equal(s("SELECT writetime(v) FROM ks.t WHERE k = 2"), [(-42,)])
        s("INSERT INTO ks.t (k, c, v) VALUES (2, 3, 1) USING TIMESTAMP 0")
        equal(s("SELECT writetime(v) FROM ks.t WHERE k = 2 AND c = 3"), [(0,)])
        prepared = s.session.prepare("UPDATE ks.t USING TIMESTAMP ? AND TTL ? SET v = ? WHERE k = 2 AND c = 2")
        s.session.execute(prepared, (-41, 600, 5))
        s.session.execute(prepared, (-43, 600, 6))
        value, left = s("SELECT v, ttl(v) FROM ks.t WHERE k = 2 AND c = 2")[0]
        equal((value, 500 < left <= 600), (5, True))


@test
def what_was_deleted_stays_deleted_for_earlier_ones(cwd):
    with Door(cwd) as door, Session(door) as s:
        begin(s)
        write = "INSERT INTO ks.t (k, c, v, m) VALUES (1, %d, 1, {1: 1, 2: 2}) USING TIMESTAMP %d"
        for c in range(1, 6):
            s(write % (c, 100))
        s("DELETE FROM ks.t USING TIMESTAMP 200 WHERE k = 1 AND c = 1")
        s("DELETE FROM ks.t USING TIMESTAMP 200 WHERE k = 1 AND c >= 4 AND c < 9")
        s("DELETE m[1] FROM ks.t USING TIMESTAMP 200 WHERE k = 1 AND c = 2")
        s("DELETE m FROM ks.t USING TIMESTAMP 50 WHERE k = 1 AND c = 3")
        for c in range(1, 8):
            s(write % (c, 199))
        equal(s("SELECT c, v, m FROM ks.t WHERE k = 1"), [(2, 1, {2: 2}), (3, 1, {1: 1, 2: 2})])
        # A map that is assigned replaces what is earlier; what is later stays.
        s("UPDATE ks.t USING TIMESTAMP 300 SET m = m + {7: 7} WHERE k = 1 AND c = 3")
        s("UPDATE ks.t USING TIMESTAMP 250 SET m = {8: 8} WHERE k = 1 AND c = 3")
        equal(s("SELECT m FROM ks.t WHERE k = 1 AND c = 3"), [({7: 7, 8: 8},)])
        s("UPDATE ks.t USING TIMESTAMP 400 SET s = 5 WHERE k = 1")
        s("DELETE FROM ks.t USING TIMESTAMP 350 WHERE k = 1")
        equal(s("SELECT k, c, s FROM ks.t WHERE k = 1"), [(1, None, 5)])
        s("DELETE FROM ks.t USING TIMESTAMP 400 WHERE k = 1")
        s(write % (9, 400))
        equal(s("SELECT * FROM ks.t"), [])
        s(write % (9, 401))
        equal(s("SELECT c, v FROM ks.t"), [(9, 1)])
        # A deletion without one is of now.
        s("DELETE FROM ks.t WHERE k = 1 AND c = 9")
        s(write % (9, 100000))
        equal(s("SELECT * FROM ks.t"), [])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_batch_has_one_timestamp_or_each_statement_its_own(cwd):
    with Door(cwd) as door, Session(door) as s:
        begin(s)
        s("CREATE TABLE ks.n (k int PRIMARY KEY, n counter)")
        s("BEGIN BATCH USING TIMESTAMP 100 "
          "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 1); UPDATE ks.t SET w = 2 WHERE k = 1 AND c = 1; APPLY BATCH")
        equal(s("SELECT writetime(v), writetime(w) FROM ks.t"), [(100, 100)])
        # In their order, each by what is there then.
        s("BEGIN BATCH UPDATE ks.t USING TIMESTAMP 300 SET v = 3 WHERE k = 1 AND c = 1; "
          "UPDATE ks.t USING TIMESTAMP 200 SET v = 2 WHERE k = 1 AND c = 1; "
          "DELETE w FROM ks.t WHERE k = 1 AND c = 1; UPDATE ks.t SET w = 5 WHERE k = 1 AND c = 1; APPLY BATCH")
        equal(s("SELECT v, w FROM ks.t"), [(3, 5)])
        batch = s.session.prepare("BEGIN BATCH USING TIMESTAMP ? UPDATE ks.t SET v = ? WHERE k = 1 AND c = 1; APPLY BATCH")
        s.session.execute(batch, (299, 9))
        equal(s("SELECT v FROM ks.t"), [(3,)])
        s.session.execute(batch, (301, 9))
        equal(s("SELECT v FROM ks.t"), [(9,)])
        for text, error in (
            ("BEGIN BATCH USING TIMESTAMP 1 INSERT INTO ks.t (k, c) VALUES (1, 1) USING TIMESTAMP 2; APPLY BATCH",
             "Timestamp must be set either on BATCH or individual statements"),
            ("BEGIN BATCH USING TIMESTAMP 1 INSERT INTO ks.t (k, c) VALUES (1, 1) IF NOT EXISTS; APPLY BATCH",
             "Cannot provide custom timestamp for conditional BATCH"),
            ("BEGIN COUNTER BATCH USING TIMESTAMP 1 UPDATE ks.n SET n = n + 1 WHERE k = 1; APPLY BATCH",
             "Cannot provide custom timestamp for counter BATCH"),
            ("BEGIN BATCH USING TTL 1 INSERT INTO ks.t (k, c) VALUES (1, 1); APPLY BATCH",
             "Global TTL on the BATCH statement is not supported."),
            ("INSERT INTO ks.t (k, c) VALUES (1, 1) IF NOT EXISTS USING TIMESTAMP 1",
             "Cannot provide custom timestamp for conditional updates"),
            ("UPDATE ks.n USING TIMESTAMP 1 SET n = n + 1 WHERE k = 1",
             "Cannot provide custom timestamp for counter updates"),
            ("INSERT INTO ks.t (k, c) VALUES (1, 1) USING TIMESTAMP -9223372036854775808", "Out of bound timestamp"),
        ):
            contains(s.error(text, InvalidRequest), error)


@test
def timestamps_of_drivers_count_where_a_table_says_so(cwd):
    stamps = iter(range(1000, 0, -1))
    with Door(cwd) as door, Session(door, timestamp_generator=lambda: next(stamps)) as s:
        begin(s)
        s("CREATE TABLE ks.u (k int PRIMARY KEY, v int) WITH client_timestamps = true")
        contains(s("DESCRIBE TABLE ks.u")[0][3], "client_timestamps = true")
        equal("client_timestamps" in s("DESCRIBE TABLE ks.t")[0][3], False)
        for v in 1, 2:
            s(f"INSERT INTO ks.t (k, c, v) VALUES (1, 1, {v})")
            s(f"INSERT INTO ks.u (k, v) VALUES (1, {v})")
        # Each of them is earlier than the one before it.
        equal((s("SELECT v FROM ks.t"), s("SELECT v FROM ks.u")), ([(2,)], [(1,)]))
        equal(s("SELECT writetime(v) FROM ks.u")[0][0] < 1000, True)
        batch = BatchStatement()
        batch.add(SimpleStatement("UPDATE ks.u SET v = 3 WHERE k = 1"))
        batch.add(SimpleStatement("UPDATE ks.u SET v = 3 WHERE k = 2"))
        s.session.execute(batch)
        equal(sorted(s("SELECT k, v FROM ks.u")), [(1, 1), (2, 3)])
        s("UPDATE ks.u USING TIMESTAMP 5000 SET v = 4 WHERE k = 1")
        equal(s("SELECT v, writetime(v) FROM ks.u WHERE k = 1"), [(4, 5000)])
        # A condition is about what has committed, and so is its write.
        equal(s("UPDATE ks.u SET v = 5 WHERE k = 1 IF v = 4"), [(True,)])
        equal(s("SELECT v FROM ks.u WHERE k = 1"), [(5,)])
        s("ALTER TABLE ks.u WITH client_timestamps = false")
        s("UPDATE ks.u SET v = 6 WHERE k = 1")
        equal(s("SELECT v FROM ks.u WHERE k = 1"), [(6,)])


@test
def a_timestamp_ahead_of_the_clock_wins_until_then(cwd):
    with Door(cwd) as door, Session(door) as s:
        begin(s)
        s(f"INSERT INTO ks.t (k, c, v) VALUES (1, 1, 1) USING TIMESTAMP {int((time.time() + 5) * 1000000)}")
        s("UPDATE ks.t SET v = 2, w = 2 WHERE k = 1 AND c = 1")
        s("DELETE v FROM ks.t WHERE k = 1 AND c = 1")
        s("DELETE FROM ks.t WHERE k = 1")
        equal(s("SELECT v, w FROM ks.t"), [(1, None)])

        def overwritten():
            s("UPDATE ks.t SET v = 2 WHERE k = 1 AND c = 1")
            return s("SELECT v FROM ks.t") == [(2,)]

        until(overwritten)


@test
def dumps_checks_and_drawings_know_timestamps(cwd):
    with Door(cwd) as door, Session(door) as s:
        begin(s, " WITH history_seconds = 3600")
        s("CREATE INDEX ON ks.t (v)")
        s("INSERT INTO ks.t (k, c, v, m) VALUES (1, 1, 1, {1: 1}) USING TIMESTAMP 100 AND TTL 1000")
        s("UPDATE ks.t USING TIMESTAMP 90 SET v = 7, w = 7, s = 7, l = [1, 2] WHERE k = 1 AND c = 1")
        s("DELETE FROM ks.t USING TIMESTAMP 150 WHERE k = 2 AND c > 1")
        s("DELETE m[2] FROM ks.t USING TIMESTAMP 150 WHERE k = 1 AND c = 1")
        equal((s("SELECT c FROM ks.t WHERE v = 1"), s("SELECT c FROM ks.t WHERE v = 7")), ([(1,)], []))
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")
    drawn = ok("inspect", "table:ks.t", cwd=cwd).stdout
    contains(drawn, "(TIMESTAMP = 100)")
    contains(drawn, "clients' timestamps count")
    contains(drawn, "m_column_id, 2, ")
    contains(drawn, "(TIMESTAMP = 150) -> deleted")
    dumped = ok("dump", "table:ks.t", cwd=cwd).stdout
    equal(json.loads(dumped.splitlines()[0])["format"], 2)
    row = json.loads(dumped.splitlines()[2])
    equal((row["timestamp"], {cell["column"]: cell["timestamp"] for cell in row["cells"]}),
          (100, {"v": 100, "w": 90, "m": 100, "l": 90}))
    ok("load", "--store", "embedded:other", "table:ks.t", cwd=cwd, stdin=dumped)
    equal(ok("dump", "--store", "embedded:other", "table:ks.t", cwd=cwd).stdout, dumped)
    contains(ok("verify", "--store", "embedded:other", cwd=cwd).stdout, " 0 findings")
    # What was deleted is so in the copy.
    with Door(cwd, "--store", "embedded:other") as door, Session(door) as s:
        s("INSERT INTO ks.t (k, c, v, m) VALUES (1, 1, 2, {2: 2, 3: 3}) USING TIMESTAMP 120")
        s("INSERT INTO ks.t (k, c, v) VALUES (2, 7, 2) USING TIMESTAMP 150")
        equal(s("SELECT k, v, m FROM ks.t"), [(1, 2, {3: 3})])
    # Where it was, too: rows under marks come back, with their timestamps.
    with Door(cwd) as door, Session(door) as s:
        s("DELETE FROM ks.t USING TIMESTAMP 500 WHERE k = 1")
        equal(s("SELECT * FROM ks.t"), [])
    ok("load", "table:ks.t", cwd=cwd, stdin=dumped)
    equal(ok("dump", "table:ks.t", cwd=cwd).stdout, dumped)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


main("needs python3-cassandra" if Cluster is None else None)
