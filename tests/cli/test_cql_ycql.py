#!/usr/bin/env python3
"""What Cassandra's door has of YCQL's language and of its own: transactions of several statements, reads of
the past, OFFSET, long values; and that YCQL's statements of the text on rows leave what it shows."""

import re
import time

from cql_server import (KEYSPACE, BatchStatement, Cluster, ConfigurationException, Door, InvalidRequest, Session,
                        SimpleStatement, SyntaxException)
from harness import contains, equal, main, ok, test, until


def accounts(s):
    s(KEYSPACE)
    s("CREATE TABLE ks.accounts (name text PRIMARY KEY, amount int) WITH transactions = {'enabled': true}")
    s("CREATE TABLE ks.log (name text, at int, what text, PRIMARY KEY (name, at))")
    s("INSERT INTO ks.accounts (name, amount) VALUES ('ann', 10)")
    s("INSERT INTO ks.accounts (name, amount) VALUES ('bob', 0)")


def amounts(s):
    return dict(s("SELECT name, amount FROM ks.accounts"))


@test
def a_transaction_writes_several_tables_or_none(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        equal(s("BEGIN TRANSACTION UPDATE ks.accounts SET amount = 7 WHERE name = 'ann'; "
                "UPDATE ks.accounts SET amount = 3 WHERE name = 'bob'; "
                "INSERT INTO ks.log (name, at, what) VALUES ('ann', 1, 'gave 3'); END TRANSACTION;"), [])
        equal(amounts(s), {"ann": 7, "bob": 3})
        s("START TRANSACTION; DELETE FROM ks.accounts WHERE name = 'bob'; DELETE FROM ks.log WHERE name = 'ann'; COMMIT;")
        equal((amounts(s), s("SELECT * FROM ks.log")), ({"ann": 7}, []))
        # The second statement is about no table: the first one writes nothing either.
        s.error("BEGIN TRANSACTION INSERT INTO ks.log (name, at) VALUES ('ann', 2); "
                "INSERT INTO ks.none (a) VALUES (1); END TRANSACTION")
        equal(s("SELECT * FROM ks.log"), [])
        s("BEGIN TRANSACTION END TRANSACTION")


@test
def conditions_of_a_transaction_are_about_any_rows(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        move = ("BEGIN TRANSACTION UPDATE ks.accounts SET amount = %s WHERE name = 'ann' IF amount = %s; "
                "UPDATE ks.accounts SET amount = %s WHERE name = 'bob' IF amount = %s; "
                "INSERT INTO ks.log (name, at, what) VALUES ('ann', 1, 'gave') IF NOT EXISTS; END TRANSACTION")
        equal(s(move, (6, 10, 4, 1)), [(False,)])
        equal((amounts(s), s("SELECT * FROM ks.log")), ({"ann": 10, "bob": 0}, []))
        equal(s(move, (6, 10, 4, 0)), [(True,)])
        equal((amounts(s), len(s("SELECT * FROM ks.log"))), ({"ann": 6, "bob": 4}, 1))
        equal(s(move, (2, 6, 8, 4)), [(False,)])  # the row of the log is there now
        equal(amounts(s), {"ann": 6, "bob": 4})


@test
def a_transaction_comes_prepared_and_as_a_batch(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        both = s.session.prepare("BEGIN TRANSACTION UPDATE ks.accounts SET amount = ? WHERE name = ?; "
                                 "UPDATE ks.accounts SET amount = ? WHERE name = ?; END TRANSACTION")
        s.session.execute(both, (1, "ann", 9, "bob"))
        equal(amounts(s), {"ann": 1, "bob": 9})
        start, commit = s.session.prepare("START TRANSACTION;"), s.session.prepare("COMMIT;")
        one = s.session.prepare("UPDATE ks.accounts SET amount = ? WHERE name = ? IF EXISTS")
        for begins, ends in ((start, commit), ("BEGIN TRANSACTION", "END TRANSACTION")):
            batch = BatchStatement()
            batch.add(begins)
            batch.add(one, (2, "ann"))
            batch.add(one, (8, "bob"))
            batch.add("INSERT INTO ks.log (name, at) VALUES ('ann', 1)")
            batch.add(ends)
            equal([tuple(row) for row in s.session.execute(batch)], [(True,)])
        equal((amounts(s), s("SELECT name FROM ks.log")), ({"ann": 2, "bob": 8}, [("ann",)]))
        batch = BatchStatement()
        batch.add(start)
        batch.add("DELETE FROM ks.accounts WHERE name = 'ann'")
        try:
            s.session.execute(batch)
            raise AssertionError("a batch that does not end its transaction was run")
        except InvalidRequest as error:
            contains(str(error), "has to end it")
        equal(amounts(s), {"ann": 2, "bob": 8})


@test
def a_transaction_is_refused_what_it_is_in_ycql(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        s("CREATE TABLE ks.plain (k int PRIMARY KEY) WITH transactions = {'enabled': false}")
        insert = "BEGIN TRANSACTION INSERT INTO ks.plain (k) VALUES (1); END TRANSACTION"
        contains(s.error(insert), "Transactions are not enabled in the table ks.plain")
        contains(s("DESCRIBE TABLE ks.plain")[0][3], "AND transactions = {'enabled': 'false'}")
        equal("transactions" in s("DESCRIBE TABLE ks.log")[0][3], False)
        s("ALTER TABLE ks.plain WITH transactions = {'enabled': true}")
        s(insert)
        equal(s("SELECT transactions FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 'plain'"),
              [({"enabled": "true"},)])
        contains(s.error("BEGIN TRANSACTION SELECT * FROM ks.plain; END TRANSACTION"), "only INSERT, UPDATE and DELETE")
        for text in ("START TRANSACTION", "BEGIN TRANSACTION", "COMMIT", "END TRANSACTION"):
            contains(s.error(text), "a transaction is one request")
        for text in ("BEGIN TRANSACTION INSERT INTO ks.plain (k) VALUES (1); COMMIT",
                     "START TRANSACTION; INSERT INTO ks.plain (k) VALUES (1); END TRANSACTION",
                     "BEGIN TRANSACTION INSERT INTO ks.plain (k) VALUES (1)"):
            s.error(text, SyntaxException)


@test
def a_statement_tells_its_outcome_as_a_row(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (h int, r int, l list<int>, u int, PRIMARY KEY (h, r))")
        s("CREATE UNIQUE INDEX ON ks.t (u)")
        row = " RETURNS STATUS AS ROW"
        done = (True, None, None, None, None, None)
        rows = s.session.execute("INSERT INTO ks.t (h, r, l, u) VALUES (1, 1, [1, 2], 7)" + row)
        equal(rows.column_names, ["[applied]", "[message]", "h", "r", "l", "u"])
        equal([tuple(one) for one in rows], [done])
        equal(s("UPDATE ks.t SET u = 8 WHERE h = 1 AND r = 1 IF l[0] = 1" + row), [done])
        equal(s("UPDATE ks.t SET u = 9 WHERE h = 1 AND r = 1 IF l[0] = 5" + row), [(False, None, 1, 1, [1, 2], 8)])
        equal(s("UPDATE ks.t SET u = 9 WHERE h = 1 AND r = 5 IF l[0] = 5" + row), [(False, None, None, None, None, None)])
        # A failure is a row: nothing of the statement is written.
        [failed] = s("UPDATE ks.t SET u = 1, l[1] = 5 WHERE h = 1 AND r IN (2, 1)" + row)
        equal((failed[0], failed[2:]), (False, (None, None, None, None)))
        contains(failed[1], "a list which is null")
        [failed] = s("UPDATE ks.t SET l[20] = 5 WHERE h = 1 AND r = 1" + row)
        contains(failed[1], "List index 20 out of bound, list has size 2")
        [failed] = s("INSERT INTO ks.t (h, r, u) VALUES (2, 2, 8)" + row)
        contains(failed[1], "unique")
        equal(s("SELECT h, r, l, u FROM ks.t"), [(1, 1, [1, 2], 8)])
        equal(s("DELETE FROM ks.t WHERE h = 1" + row), [done])
        equal(s("SELECT h FROM ks.t"), [])
        # What is wrong before it runs is an error as ever.
        contains(s.error("INSERT INTO ks.t (h, r, nope) VALUES (2, 2, 8)" + row), "nope")
        one = s.session.prepare("INSERT INTO ks.t (h, r, u) VALUES (?, ?, ?)" + row)
        equal([tuple(r) for r in s.session.execute(one, (3, 3, 3))], [done])
        contains([tuple(r) for r in s.session.execute(one, (3, 4, 3))][0][1], "unique")


@test
def a_batch_tells_a_row_for_each_statement(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        row, done = " RETURNS STATUS AS ROW; ", (True, None, None, None)
        both = ("UPDATE ks.accounts SET amount = 6 WHERE name = 'ann' IF amount = {}" + row +
                "INSERT INTO ks.accounts (name, amount) VALUES ('bob', 4)" + row)
        for begin, end in (("BEGIN TRANSACTION ", "END TRANSACTION"), ("BEGIN BATCH ", "APPLY BATCH")):
            if "BATCH" in begin:  # whose conditions are about one partition
                both = both.replace("'bob'", "'ann'")
            [first, second] = s(begin + both.format(11) + end)
            equal((first, second[0], second[2:]), ((False, None, "ann", 10), False, (None, None)))
            contains(second[1], "a condition of the batch does not hold")
            equal(amounts(s), {"ann": 10, "bob": 0})
        equal(s("BEGIN TRANSACTION " + both.format(10) + "END TRANSACTION"), [done, done])
        equal(amounts(s), {"ann": 4, "bob": 0})
        s("ALTER TABLE ks.accounts ADD l list<int>")
        batch = BatchStatement()
        batch.add("UPDATE ks.accounts SET amount = 1 WHERE name = 'ann' RETURNS STATUS AS ROW")
        batch.add("UPDATE ks.accounts SET l[3] = 1 WHERE name = 'bob' RETURNS STATUS AS ROW")
        [first, second] = [tuple(one) for one in s.session.execute(batch)]
        contains(first[1], "a statement of the batch has failed")
        contains(second[1], "a list which is null")
        equal(amounts(s), {"ann": 4, "bob": 0})
        batch.add("UPDATE ks.accounts SET amount = 1 WHERE name = 'ann'")
        try:
            s.session.execute(batch)
            raise AssertionError("a batch of both kinds was run")
        except InvalidRequest as error:
            contains(str(error), "of all statements of a batch, or of none")
        contains(s.error("BEGIN BATCH INSERT INTO ks.accounts (name) VALUES ('x')" + row +
                         "INSERT INTO ks.log (name, at) VALUES ('x', 1)" + row + "APPLY BATCH"), "about one table")


@test
def documents_of_json_are_asked_and_changed_at_paths(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, j jsonb, s jsonb static, n int, PRIMARY KEY (k, c))")
        for k, text in enumerate(('{"a": {"b": "x", "n": 5}, "l": [1, {"z": true}]}', '{"a": {"b": "y"}}', '{"a": null}', '7')):
            s("INSERT INTO ks.t (k, c, j) VALUES (%s, 1, %s)", (k, text))
        s("INSERT INTO ks.t (k, c) VALUES (9, 1)")

        def found(where, values=None):
            return sorted(row[0] for row in s(f"SELECT k FROM ks.t WHERE {where} ALLOW FILTERING", values))

        equal(found("j->'a'->>'b' = 'x'"), [0])
        equal(found("j->'a'->>'b' > 'x'"), [1])
        equal(found("j->'a'->'b' = '\"y\"'"), [1])
        equal(found("j->'l'->1 = '{\"z\":  true}'"), [0])
        equal(found("j->'a'->>'b' >= 'x' AND j->'a'->>'b' < 'z' AND j->'a'->>'n' = '5'"), [0])
        equal(found("j->>'a' = 'null'"), [])
        equal(found("j->'a'->>'b' = %s AND k = 1", ("y",)), [1])
        contains(s.error("SELECT k FROM ks.t WHERE j->>'a' = 'x'"), "use ALLOW FILTERING")
        equal(s("SELECT j->'a'->>'b' FROM ks.t WHERE k = 0 AND c = 1"), [("x",)])
        one = s.session.prepare("SELECT k FROM ks.t WHERE j->?->>? = ? ALLOW FILTERING")
        equal([row.k for row in s.session.execute(one, ("a", "b", "x"))], [0])
        contains(s.error("SELECT k FROM ks.t WHERE n->>'a' = 'x' ALLOW FILTERING"), "need a jsonb column")
        contains(s.error("SELECT k FROM ks.t WHERE j->'a' = '{' ALLOW FILTERING"), "JSON")

        def document(k):
            return s(f"SELECT j FROM ks.t WHERE k = {k} AND c = 1")[0][0]

        s("UPDATE ks.t SET j->'a'->'b' = '\"w\"', j->'l'->0 = '[]', j->'m' = '1' WHERE k = 0 AND c = 1")
        equal(document(0), '{"a":{"b":"w","n":5},"l":[[],{"z":true}],"m":1}')
        s("UPDATE ks.t SET j = '{}', j->'q' = '2' WHERE k = 1 AND c = 1")
        equal(document(1), '{"q":2}')
        s("UPDATE ks.t SET j->'new' = 'null' WHERE k = 9 AND c = 1")
        equal(document(9), '{"new":null}')
        s("UPDATE ks.t SET s->'shared' = '1' WHERE k = 9")
        equal(s("SELECT s FROM ks.t WHERE k = 9"), [('{"shared":1}',)])
        contains(s.error("UPDATE ks.t SET j->'x'->'y' = '1' WHERE k = 1 AND c = 1"), "JSON")
        contains(s.error("UPDATE ks.t SET j->'l'->7 = '1' WHERE k = 0 AND c = 1"), "JSON")
        contains(s.error("UPDATE ks.t SET j->'x' = null WHERE k = 1 AND c = 1"), "null of its own")
        contains(s.error("UPDATE ks.t SET n->'x' = '1' WHERE k = 1 AND c = 1"), "need a jsonb column")
        equal(document(1), '{"q":2}')
        change = "UPDATE ks.t SET j->'q' = '3' WHERE k = 1 AND c = 1 IF j->>'q' = '{}'"
        equal(s(change.format(7)), [(False, '{"q":2}')])
        equal(s(change.format(2)), [(True,)])
        equal(s("UPDATE ks.t SET j->'r' = '4' WHERE k = 1 AND c = 1 IF j->'q' > '2' AND j->'none' = null"), [(True,)])
        equal(document(1), '{"q":3,"r":4}')


def moment(s):
    """The millisecond of now, in microseconds by the server's clock, which what is written later is behind."""
    us = s("SELECT toUnixTimestamp(now()) FROM system.local")[0][0] * 1000
    while s("SELECT toUnixTimestamp(now()) FROM system.local")[0][0] * 1000 <= us + 2000:
        time.sleep(0.001)
    return us // 1000


@test
def a_table_with_a_history_is_read_as_of_a_moment(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, v text, s text static, PRIMARY KEY (k, c)) WITH history_seconds = 3600")
        contains(s("DESCRIBE TABLE ks.t")[0][3], "AND history_seconds = 3600")
        equal(s("SELECT history_seconds FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 't'"),
              [(3600,)])
        moment(s)
        for c in range(10):
            s("INSERT INTO ks.t (k, c, v, s) VALUES (1, %s, 'old', 'one')", (c,))
        before = moment(s)
        s("UPDATE ks.t SET v = 'new' WHERE k = 1 AND c = 3")
        s("DELETE FROM ks.t WHERE k = 1 AND c = 4")
        s("UPDATE ks.t SET s = 'two' WHERE k = 1")
        s("INSERT INTO ks.t (k, c, v) VALUES (2, 1, 'new')")
        then = f"ks.t AS OF {before}"
        equal(s(f"SELECT v, s FROM {then} WHERE k = 1 AND c = 3"), [("old", "one")])
        equal(s("SELECT v, s FROM ks.t WHERE k = 1 AND c = 3"), [("new", "two")])
        equal(s(f"SELECT c FROM {then} WHERE k = 1 AND c > 2 AND c < 6"), [(3,), (4,), (5,)])
        equal(s(f"SELECT count(*) FROM {then}"), [(10,)])
        equal(s(f"SELECT c FROM {then} WHERE k = 1 ORDER BY c DESC LIMIT 2 OFFSET 1"), [(8,), (7,)])
        date = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(before // 1000)) + f".{before % 1000:03}+0000"
        equal(s(f"SELECT v FROM ks.t AS OF '{date}' WHERE k = 1 AND c = 3"), [("old",)])
        query = s.session.prepare("SELECT c, v FROM ks.t AS OF ? WHERE k = ?")
        equal([row.v for row in s.session.execute(query, (before, 1))], ["old"] * 10)
        # All pages are of one moment, though the statement computes another one for each.
        now = SimpleStatement("SELECT c FROM ks.t AS OF toTimestamp(now())", fetch_size=4)
        page = s.session.execute(now)
        first = [row.c for row in page.current_rows]
        s("DELETE FROM ks.t WHERE k = 1")
        equal(first + [row.c for row in s.session.execute(now, paging_state=page.paging_state)],
              [c for c in range(10) if c != 4] + [1])
        equal(s("SELECT k FROM ks.t"), [(2,)])


@test
def a_moment_that_is_not_kept_is_refused(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
        s("INSERT INTO ks.t (k, v) VALUES (1, 1)")
        equal("history" in s("DESCRIBE TABLE ks.t")[0][3], False)
        contains(s.error("SELECT * FROM ks.t AS OF toTimestamp(now())"), "keeps no history")
        before = moment(s)
        s("ALTER TABLE ks.t WITH history_seconds = 100 AND comment = 'x'")
        contains(s.error(f"SELECT * FROM ks.t AS OF {before}"), "begins at")
        contains(s.error("SELECT * FROM ks.t AS OF '1969-01-01'"), "begins at")
        contains(s.error("SELECT * FROM ks.t AS OF '2200-01-01'"), "still to come")
        contains(s.error("SELECT * FROM ks.t AS OF null"), "Invalid null value of AS OF")
        contains(s.error("SELECT * FROM system.local AS OF toTimestamp(now())"), "has no past")
        equal(s("SELECT v FROM ks.t AS OF toTimestamp(now())"), [(1,)])
        s("TRUNCATE ks.t")
        contains(s("DESCRIBE TABLE ks.t")[0][3], "history_seconds = 100")
        equal(s("SELECT v FROM ks.t AS OF toTimestamp(now())"), [])
        contains(s.error(f"SELECT * FROM ks.t AS OF {before}"), "begins at")
        s("ALTER TABLE ks.t WITH history_seconds = 0")
        contains(s.error("SELECT * FROM ks.t AS OF toTimestamp(now())"), "keeps no history")
        for seconds in ("1000000001", "-1"):
            s.error(f"ALTER TABLE ks.t WITH history_seconds = {seconds}", ConfigurationException)


@test
def offset_leaves_out_the_first_rows(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))")
        for k in (1, 2):
            for c in range(6):
                s("INSERT INTO ks.t (k, c, v) VALUES (%s, %s, %s)", (k, c, c % 2))
        equal(s("SELECT c FROM ks.t WHERE k = 1 OFFSET 4"), [(4,), (5,)])
        equal(s("SELECT c FROM ks.t WHERE k = 1 LIMIT 2 OFFSET 3"), [(3,), (4,)])
        equal(s("SELECT c FROM ks.t WHERE k = 1 ORDER BY c DESC LIMIT 2 OFFSET 3"), [(2,), (1,)])
        equal(s("SELECT c FROM ks.t WHERE k = 1 AND c IN (1, 3, 5) OFFSET 1"), [(3,), (5,)])
        equal(s("SELECT c FROM ks.t WHERE k = 1 AND v = 1 OFFSET 1 ALLOW FILTERING"), [(3,), (5,)])
        equal(s("SELECT k, c FROM ks.t PER PARTITION LIMIT 2 LIMIT 2 OFFSET 1"), [(1, 1), (2, 0)])
        equal(s("SELECT k, count(*) FROM ks.t GROUP BY k OFFSET 1"), [(2, 6)])
        equal(s("SELECT k, count(*) FROM ks.t GROUP BY k LIMIT 1"), [(1, 6)])
        equal(s("SELECT count(*) FROM ks.t OFFSET 1"), [])
        unpaged = SimpleStatement("SELECT k, c FROM ks.t WHERE k IN (1, 2) ORDER BY c LIMIT 3 OFFSET 2", fetch_size=None)
        equal(sorted(tuple(row)[1] for row in s.session.execute(unpaged)), [1, 1, 2])
        paged = SimpleStatement("SELECT k, c FROM ks.t LIMIT 7 OFFSET 3", fetch_size=2)
        rows = [tuple(row) for row in s.session.execute(paged)]
        equal(rows, [(1, 3), (1, 4), (1, 5), (2, 0), (2, 1), (2, 2), (2, 3)])
        query = s.session.prepare("SELECT c FROM ks.t WHERE k = ? LIMIT ? OFFSET ?")
        equal([row.c for row in s.session.execute(query, (1, 1, 5))], [5])
        equal(s("SELECT c FROM ks.t WHERE k = 1 OFFSET 100"), [])
        contains(s.error("SELECT c FROM ks.t OFFSET -1"), "OFFSET must not be negative")
        equal(len(s("SELECT key FROM system.local OFFSET 1")), 0)


@test
def values_of_megabytes_lie_in_pieces(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, v text, b blob, f frozen<list<text>>, m map<text, text>, l list<text>, "
          "s text static, PRIMARY KEY (k, c)) WITH history_seconds = 3600")
        insert = s.session.prepare("INSERT INTO ks.t (k, c, v, b, f, m, l, s) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
        rows = [(1, c, f"{c}" * (50000 * c + 1), bytes([0, c]) * 100000, [f"{c}" * 300000, "x"],
                 {"short": "y", "long": "z" * (c * 100000)}, ["a" * 120000, "b", "c" * 90000], "s" * 200000)
                for c in range(1, 5)]
        for row in rows:
            s.session.execute(insert, row)
        read = s.session.prepare("SELECT * FROM ks.t WHERE k = 1 AND c = ?")

        def plain(row):
            return (row.k, row.c, row.v, row.b, list(row.f), dict(row.m), list(row.l), row.s)

        def all_rows(order=""):
            return [plain(row) for row in s.session.execute(f"SELECT * FROM ks.t WHERE k = 1 {order}")]

        for row in rows:
            equal(plain(s.session.execute(read, (row[1],)).one()) == row, True)
        equal(all_rows() == rows, True)
        equal(all_rows("ORDER BY c DESC") == rows[::-1], True)
        before = moment(s)
        # A shorter value leaves nothing of a longer one, and a longer one goes where there was a short one.
        s("UPDATE ks.t SET v = 'short', m['short'] = %s, m['long'] = 'now short' WHERE k = 1 AND c = 2", ("q" * 150000,))
        s("DELETE b, l[0] FROM ks.t WHERE k = 1 AND c = 3")
        s("DELETE FROM ks.t WHERE k = 1 AND c = 4")
        equal(s("SELECT v, m FROM ks.t WHERE k = 1 AND c = 2") ==
              [("short", {"short": "q" * 150000, "long": "now short"})], True)
        equal(s("SELECT b, l FROM ks.t WHERE k = 1 AND c = 3") == [(None, ["b", "c" * 90000])], True)
        drawn = ok("inspect", "table:ks.t", cwd=cwd).stdout
        contains(drawn, "[200000 bytes in pieces]")
        contains(drawn, "piece 1 -> [")
        equal([plain(row) for row in s.session.execute(f"SELECT * FROM ks.t AS OF {before} WHERE k = 1")] == rows, True)
        ok("inspect", "table:ks.t", "--at", "now", cwd=cwd)
        contains(s.error("UPDATE ks.t SET v = '" + "v" * 4000001 + "' WHERE k = 1 AND c = 1"), "TABLE_VALUE_BYTES")
        s("UPDATE ks.t SET v = '" + "v" * 4000000 + "' WHERE k = 1 AND c = 1")
        s("UPDATE ks.t SET v = '" + "w" * 4000000 + "' WHERE k = 1 AND c = 1")
        equal(s("SELECT v FROM ks.t WHERE k = 1 AND c = 1") == [("w" * 4000000,)], True)
        # What expires takes its pieces with it, and so does a column that is dropped.
        s("UPDATE ks.t USING TTL 1 SET v = %s WHERE k = 1 AND c = 3", ("e" * 200000,))
        s("ALTER TABLE ks.t DROP f")
        until(lambda: not s("SELECT c FROM ks.t WHERE k = 1 AND c = 3 AND v > '' ALLOW FILTERING"))
        place = re.compile(r", 3\), v_column_id|f_column_id")
        until(lambda: not [line for line in ok("inspect", "table:ks.t", cwd=cwd).stdout.splitlines()
                           if place.search(line) and " -> [" in line])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


def is_built(query):
    """False while the index that it needs is still being built."""
    try:
        query()
    except InvalidRequest as error:
        contains(str(error), "still being built")
        return False
    return True


@test
def long_values_are_in_indexes_and_come_back_from_a_dump(cwd):
    def text(letter, size=200000):
        return letter * size

    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int PRIMARY KEY, v text, n int)")
        put = s.session.prepare("INSERT INTO ks.t (k, v, n) VALUES (?, ?, ?)")
        find = s.session.prepare("SELECT k FROM ks.t WHERE v = ?")

        def found(value):
            return sorted(row.k for row in s.session.execute(find, (value,)))

        # One before the index is built, with others that begin alike; and what is written behind that.
        for k, value in ((1, text("a")), (2, text("a") + "b"), (3, "short")):
            s.session.execute(put, (k, value, k))
        s("CREATE INDEX by_v ON ks.t (v)")
        until(lambda: is_built(lambda: found("short")) and found("short") == [3])
        for k, value in ((4, text("c")), (5, text("a"))):
            s.session.execute(put, (k, value, k))
        equal((found(text("a")), found(text("a") + "b"), found(text("c"))), ([1, 5], [2], [4]))
        s.session.execute(put, (1, "short", 1))
        s.session.execute(put, (3, text("c"), 3))
        s("DELETE v FROM ks.t WHERE k = 5")
        s("DELETE FROM ks.t WHERE k = 4")
        equal((found(text("a")), found(text("c")), found("short")), ([], [3], [1]))
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")
    dumped = ok("dump", "table:ks.t", cwd=cwd).stdout
    (cwd / "other").mkdir()
    (cwd / "dumped").write_text(dumped)
    ok("load", "--store", "embedded:other/store", "table:ks.t", "dumped", cwd=cwd)
    equal(ok("dump", "--store", "embedded:other/store", "table:ks.t", cwd=cwd).stdout == dumped, True)
    contains(ok("verify", "--store", "embedded:other/store", cwd=cwd).stdout, " 0 findings")


def traced(s, statement, values=None):
    """What a statement did, by its trace."""
    trace = s.session.execute(statement, values, trace=True).get_query_trace()
    assert trace.duration.total_seconds() > 0 and trace.client == trace.coordinator == "127.0.0.1"
    equal([event.source_elapsed for event in trace.events], sorted(event.source_elapsed for event in trace.events))
    return trace.request_type, trace.parameters["query"], [event.description for event in trace.events]


@test
def a_trace_tells_what_a_statement_did(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")
        kind, text, events = traced(s, "INSERT INTO ks.t (k, v) VALUES (1, 'x')")
        equal((kind, text), ("QUERY", "INSERT INTO ks.t (k, v) VALUES (1, 'x')"))
        equal(events[0], "Parsed")
        assert re.match(r"Transaction: \d+ reads of \d+ pairs \(\d+ bytes\); [1-9]\d* pairs set, 0 clears", events[1]), events
        contains(events[2], "Answered with ")
        prepared = s.session.prepare("SELECT v FROM ks.t WHERE k = ?")
        kind, text, events = traced(s, prepared, (1,))
        equal((kind, text), ("EXECUTE", "SELECT v FROM ks.t WHERE k = ?"))
        contains(events[0], "; 0 pairs set, 0 clears (0 bytes)")
        batch = BatchStatement()
        for k in range(3):
            batch.add(SimpleStatement("UPDATE ks.t SET v = %s WHERE k = %s"), ("y", k))
        kind, _, events = traced(s, batch)
        equal((kind, events[0]), ("BATCH", "A batch of 3 statements"))
        # A failure has one, too. What is longer than the text of a trace is cut between characters.
        text = "SELECT v FROM ks.t WHERE k = 1 AND v = '" + "\u00e4" * 1000 + "'"
        try:
            s.session.execute(text, trace=True)
            raise AssertionError("a filter was taken")
        except InvalidRequest:
            pass
        told = [row for row in s("SELECT session_id, parameters FROM system_traces.sessions")
                if row[1]["query"].startswith("SELECT v FROM ks.t WHERE k = 1")]
        equal([text.encode()[:1000].decode(errors="ignore")], [row[1]["query"] for row in told])
        events = [row[0] for row in s("SELECT activity FROM system_traces.events WHERE session_id = %s", (told[0][0],))]
        contains(events[-1], "Failed: ")
        for n in range(120):
            s.session.execute("SELECT v FROM ks.t WHERE k = 1", trace=True)
        equal(len(s("SELECT session_id FROM system_traces.sessions")), 100)
        equal(len(s("SELECT session_id FROM system_traces.sessions WHERE session_id = %s", (told[0][0],))), 0)


main("needs python3-cassandra" if Cluster is None else None)
