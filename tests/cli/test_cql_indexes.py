#!/usr/bin/env python3
"""Indexes of tables as the Python driver sees them: what they answer, pages, expiry, builds, checks."""

import re
import signal
import threading
import time

from cql_server import KEYSPACE, Cluster, Door, Session
from harness import contains, equal, main, run, test

FILTERING = "use ALLOW FILTERING"


def check(cwd):
    """What `frond verify` says of the store, which nobody serves."""
    done = run("verify", cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    contains(done.stdout, "0 findings")


@test
def an_index_answers_without_filtering(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, v text, w int, PRIMARY KEY (k, c))")
        s("INSERT INTO ks.t (k, c, v, w) VALUES (1, 1, 'a', 1)")
        s("CREATE INDEX ON ks.t (v)")
        s("INSERT INTO ks.t (k, c, v, w) VALUES (1, 2, 'b', 2)")
        s("INSERT INTO ks.t (k, c, v, w) VALUES (2, 1, 'a', 3)")
        equal(sorted(s("SELECT k, c FROM ks.t WHERE v = 'a'")), [(1, 1), (2, 1)])
        equal(s("SELECT k, c FROM ks.t WHERE v = 'x'"), [])
        equal(s("SELECT c FROM ks.t WHERE k = 1 AND v = 'b'"), [(2,)])
        contains(s.error("SELECT * FROM ks.t WHERE v = 'a' AND w = 1"), FILTERING)
        equal(s("SELECT k FROM ks.t WHERE v = 'a' AND w = 3 ALLOW FILTERING"), [(2,)])
        contains(s.error("SELECT * FROM ks.t WHERE v > 'a'"), FILTERING)
        equal(s("SELECT k, c FROM ks.t WHERE v > 'a' ALLOW FILTERING"), [(1, 2)])
        contains(s.error("SELECT * FROM ks.t WHERE k IN (1, 2) AND v = 'a'"), "IN clause for the PRIMARY KEY")
        contains(s.error("SELECT * FROM ks.t WHERE k = 1 AND v = 'a' ORDER BY c"), "ORDER BY with 2ndary indexes")
        s("UPDATE ks.t SET v = 'b' WHERE k = 1 AND c = 1")
        s("DELETE FROM ks.t WHERE k = 2 AND c = 1")
        equal(s("SELECT k, c FROM ks.t WHERE v = 'a'"), [])
        equal(s("SELECT k, c FROM ks.t WHERE v = 'b'"), [(1, 1), (1, 2)])
        s("DELETE FROM ks.t WHERE k = 1")
        equal(s("SELECT k, c FROM ks.t WHERE v = 'b'"), [])
        s("INSERT INTO ks.t (k, c, v) VALUES (1, 2, 'b')")
        s("TRUNCATE ks.t")
        equal(s("SELECT k, c FROM ks.t WHERE v = 'b'"), [])
        s("INSERT INTO ks.t (k, c, v) VALUES (3, 3, 'b')")
        equal(s("SELECT k, c FROM ks.t WHERE v = 'b'"), [(3, 3)])
        s("DROP INDEX ks.t_v_idx")
        contains(s.error("SELECT * FROM ks.t WHERE v = 'b'"), FILTERING)
        contains(s.error("DROP INDEX ks.t_v_idx"), "doesn't exist")
        s("DROP INDEX IF EXISTS ks.t_v_idx")
    check(cwd)


@test
def several_columns_are_asked_from_the_first_on(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int PRIMARY KEY, a int, b int, x text)")
        s("CREATE INDEX ab ON ks.t (a, b) WITH CLUSTERING ORDER BY (b DESC)")
        for k in range(12):
            s("INSERT INTO ks.t (k, a, b) VALUES (%s, %s, %s)", (k, k % 2, k))
        s("INSERT INTO ks.t (k, a) VALUES (100, 1)")
        equal(s("SELECT b FROM ks.t WHERE a = 1 AND b > 3 AND b <= 9"), [(9,), (7,), (5,)])
        equal(s("SELECT k FROM ks.t WHERE a = 0 AND b = 4"), [(4,)])
        equal([b for b, in s("SELECT b FROM ks.t WHERE a = 1")], [11, 9, 7, 5, 3, 1, None])
        equal(s("SELECT count(*) FROM ks.t WHERE a = 1"), [(7,)])
        equal(len(s("SELECT b FROM ks.t WHERE a = 1 LIMIT 3")), 3)
        contains(s.error("SELECT * FROM ks.t WHERE b = 3"), FILTERING)
        contains(s.error("CREATE INDEX ON ks.t (a, b) WITH CLUSTERING ORDER BY (b DESC)"), "duplicate of existing index")
        s("CREATE INDEX IF NOT EXISTS ab ON ks.t (a)")


@test
def parts_of_collections_and_keys_and_statics_are_indexed(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (p int, q int, c int, d int, s text static, l list<int>, n set<text>, m map<text, int>, "
          "f frozen<list<int>>, PRIMARY KEY ((p, q), c, d))")
        for target in ("l", "n", "keys(m)", "m", "entries(m)", "full(f)", "s", "q", "d"):
            s(f"CREATE INDEX ON ks.t ({target})")
        s("INSERT INTO ks.t (p, q, c, d, s, l, n, m, f) VALUES (1, 2, 3, 4, 'one', [7, 8, 7], {'x'}, {'a': 1, 'b': 2}, [1, 2])")
        s("INSERT INTO ks.t (p, q, c, d, m) VALUES (1, 2, 5, 6, {'a': 2})")
        s("INSERT INTO ks.t (p, q, s) VALUES (9, 9, 'two')")
        one, two = (3,), (5,)
        equal(s("SELECT c FROM ks.t WHERE l CONTAINS 7"), [one])
        equal(s("SELECT c FROM ks.t WHERE n CONTAINS 'x'"), [one])
        equal(s("SELECT c FROM ks.t WHERE m CONTAINS KEY 'a'"), [one, two])
        equal(s("SELECT c FROM ks.t WHERE m CONTAINS 2"), [one, two])
        equal(s("SELECT c FROM ks.t WHERE m['a'] = 2"), [two])
        equal(s("SELECT c FROM ks.t WHERE f = [1, 2]"), [one])
        equal(s("SELECT c FROM ks.t WHERE s = 'one'"), [one, two])
        equal(s("SELECT p, c FROM ks.t WHERE s = 'two'"), [(9, None)])
        equal(s("SELECT c FROM ks.t WHERE q = 2"), [one, two])
        equal(s("SELECT c FROM ks.t WHERE d = 6"), [two])
        s("UPDATE ks.t SET m['a'] = 3, l = l - [8], n = n + {'y'} WHERE p = 1 AND q = 2 AND c = 3 AND d = 4")
        equal(s("SELECT c FROM ks.t WHERE m['a'] = 3"), [one])
        equal(s("SELECT c FROM ks.t WHERE l CONTAINS 8"), [])
        equal(s("SELECT c FROM ks.t WHERE n CONTAINS 'y'"), [one])
        pages = s.session.prepare("SELECT c FROM ks.t WHERE s = 'one'")
        pages.fetch_size = 1
        equal([r.c for r in s.session.execute(pages)], [3, 5])
        contains(s.error("CREATE INDEX ON ks.t (f)"), "full(f)")
        contains(s.error("CREATE INDEX ON ks.t (keys(l))"), "non-map type")
        contains(s.error("ALTER TABLE ks.t DROP m"), "dependent secondary indexes")
    check(cwd)


@test
def paths_into_documents_are_indexed(cwd):
    documents = ('{"a": {"b": "x", "n": 5}, "l": [1, {"z": true}]}', '{"a": {"b": "y", "n": "5"}}', '{"a": {"b": null}}', '7',
                 '{"a": {"b": ""}, "it\'s": 1}', '{"a": {"b": {"c": [1]}}}')
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, j jsonb, s jsonb static, n int, PRIMARY KEY (k, c))")
        insert = s.session.prepare("INSERT INTO ks.t (k, c, j, n) VALUES (?, 1, ?, ?)")
        for k, text in enumerate(documents):
            s.session.execute(insert, (k, text, k % 2))
        # Some rows are there before the indexes are.
        for target in ("j->'a'->>'b'", "j->'a'->'b'", "j->'l'->1->'z'", "s->>'x'"):
            s(f"CREATE INDEX ON ks.t ({target})")
        s("CREATE INDEX two ON ks.t (n, j->'a'->>'n')")
        # Without ALLOW FILTERING it is an index that answers.
        equal(s("SELECT k FROM ks.t WHERE j->'a'->>'b' = 'x'"), [(0,)])
        equal(s("SELECT k FROM ks.t WHERE j->'a'->>'b' = ''"), [(4,)])
        equal(s("SELECT k FROM ks.t WHERE j->'a'->>'b' = 'null'"), [])
        equal(s("SELECT k FROM ks.t WHERE j->'a'->>'b' = %s", ('{"c":[1]}',)), [(5,)])
        equal(s("SELECT k FROM ks.t WHERE j->'a'->'b' = 'null'"), [(2,)])
        equal(s("SELECT k FROM ks.t WHERE j->'a'->'b' = '{\"c\": [ 1]}'"), [(5,)])
        equal(s("SELECT k FROM ks.t WHERE j->'l'->1->'z' = 'true'"), [(0,)])
        equal(s("SELECT k FROM ks.t WHERE n = 1 AND j->'a'->>'n' = '5'"), [(1,)])
        contains(s.error("SELECT k FROM ks.t WHERE j->'a'->>'n' = '5'"), FILTERING)
        contains(s.error("SELECT k FROM ks.t WHERE j->'l'->1->>'z' = 'true'"), FILTERING)
        contains(s.error("SELECT k FROM ks.t WHERE j->'a'->>'b' > 'x'"), FILTERING)
        # The order of the values, which is not that of the tokens, is an index's.
        equal(s("SELECT k FROM ks.t WHERE j->'a'->>'b' >= '' AND j->'a'->>'b' <= 'y' ALLOW FILTERING"), [(4,), (0,), (1,)])
        one = s.session.prepare("SELECT k FROM ks.t WHERE j->?->>? = ?")
        equal([row.k for row in s.session.execute(one, ("a", "b", "y"))], [1])
        # Each way to write keeps the entries.
        s("UPDATE ks.t SET j->'a'->'b' = '\"q\"' WHERE k = 0 AND c = 1 IF j->'l'->0 = '1'")
        s.session.execute(insert, (1, '{"a": {"b": "q"}}', 1))
        s("INSERT INTO ks.t (k, c, j) VALUES (9, 1, '{\"a\": {\"b\": \"q\"}}') USING TTL 1")
        s("DELETE j FROM ks.t WHERE k = 5 AND c = 1")
        equal(sorted(s("SELECT k FROM ks.t WHERE j->'a'->>'b' = 'q'")), [(0,), (1,), (9,)])
        for gone in ("x", "y", '{"c":[1]}'):
            equal(s("SELECT k FROM ks.t WHERE j->'a'->>'b' = %s", (gone,)), [])
        time.sleep(1.1)
        equal(sorted(s("SELECT k FROM ks.t WHERE j->'a'->>'b' = 'q'")), [(0,), (1,)])
        s("UPDATE ks.t SET s = '{\"x\": 1}' WHERE k = 4")
        equal(s("SELECT k FROM ks.t WHERE s->>'x' = '1'"), [(4,)])
        # What is longer than an entry's share of a key is compared with the document.
        for n in range(2):
            s.session.execute(insert, (20 + n, '{"a": {"b": "%s%d"}}' % ("m" * 5000, n), 0))
        equal(s("SELECT k FROM ks.t WHERE j->'a'->>'b' = %s", ("m" * 5000 + "1",)), [(21,)])
        s("CREATE UNIQUE INDEX one ON ks.t (j->>'id')")
        s.session.execute(insert, (30, '{"id": 7}', 0))
        try:
            s.session.execute(insert, (31, '{"id": "7"}', 0))
            raise AssertionError("a unique index let another document have the same value")
        except Exception as error:
            contains(str(error), "unique index one")
        s("CREATE INDEX odd ON ks.t (j->'it''s'->'007'->'7')")
        equal({n: o["target"] for n, o in s("SELECT index_name, options FROM system_schema.indexes")},
              {"t_j_idx": "j->'a'->>'b'", "t_j_idx_1": "j->'a'->'b'", "t_j_idx_2": "j->'l'->1->'z'", "t_s_idx": "s->>'x'",
               "two": "n, j->'a'->>'n'", "one": "j->>'id'", "odd": "j->'it''s'->'007'->7"})
        text = s.session.execute("DESCRIBE INDEX ks.odd").one().create_statement
        equal(text, "CREATE INDEX odd ON ks.t (j->'it''s'->'007'->7);")
        contains(s.error("CREATE INDEX ON ks.t (j->'it''s'->'007'->7)"), "duplicate of existing index odd")
        s("DROP INDEX ks.odd")
        s(text.rstrip(";"))
        contains(s.error("CREATE INDEX ON ks.t (n->>'a')"), "need a jsonb column")
        contains(s.error("CREATE INDEX ON ks.t (nope->>'a')"), "doesn't exist")
        contains(s.error("CREATE INDEX ON ks.t (j->null)"), "null value in a path into jsonb")
        contains(s.error("CREATE INDEX ON ks.t (j->>'a', s->>'b')"), "in an index of several columns")
        contains(s.error("ALTER TABLE ks.t DROP j"), "dependent secondary indexes")
    check(cwd)


@test
def a_unique_index_refuses_what_another_row_has(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.users (id int PRIMARY KEY, mail text, n int)")
        s("CREATE UNIQUE INDEX mails ON ks.users (mail)")
        s("INSERT INTO ks.users (id, mail) VALUES (1, 'a@b')")
        told = "Duplicate value disallowed by unique index mails"
        contains(s.error("INSERT INTO ks.users (id, mail) VALUES (2, 'a@b')"), told)
        contains(s.error("INSERT INTO ks.users (id, mail) VALUES (2, 'a@b') IF NOT EXISTS"), told)
        contains(s.error("BEGIN BATCH INSERT INTO ks.users (id, mail) VALUES (3, 'c@d'); "
                         "UPDATE ks.users SET mail = 'c@d' WHERE id = 4; APPLY BATCH"), told)
        equal(s("SELECT id FROM ks.users"), [(1,)])
        equal(s("UPDATE ks.users SET mail = 'x@y' WHERE id = 1 IF mail = 'a@b'"), [(True,)])
        s("INSERT INTO ks.users (id, mail) VALUES (2, 'a@b')")
        s("INSERT INTO ks.users (id, mail) VALUES (5, 'e@f') USING TTL 1")
        contains(s.error("INSERT INTO ks.users (id, mail) VALUES (6, 'e@f')"), told)
        time.sleep(1.1)
        s("INSERT INTO ks.users (id, mail) VALUES (6, 'e@f')")
        equal(s("SELECT id FROM ks.users WHERE mail = 'e@f'"), [(6,)])
        s("INSERT INTO ks.users (id, n) VALUES (7, 1)")
        s("INSERT INTO ks.users (id, n) VALUES (8, 1)")
        s("CREATE UNIQUE INDEX ns ON ks.users (n)")
        contains(s.error("SELECT * FROM ks.users WHERE n = 1"), "could not be built")
        equal(s.session.execute("DESCRIBE INDEX ks.ns").one().create_statement, "CREATE UNIQUE INDEX ns ON ks.users (n);")
        # Of many who want one name at once, one gets it.
        insert = s.session.prepare("INSERT INTO ks.users (id, mail) VALUES (?, 'one@only')")
        won = 0
        for f in [s.session.execute_async(insert, (100 + k,)) for k in range(40)]:
            try:
                f.result()
                won += 1
            except Exception as error:
                contains(str(error), told)
        equal(won, 1)
    check(cwd)


@test
def an_index_of_some_rows_answers_what_implies_its_conditions(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int PRIMARY KEY, v int, w int, x text)")
        for k in range(10):
            s("INSERT INTO ks.t (k, v, w, x) VALUES (%s, 1, %s, 'x')", (k, k))
        s("CREATE INDEX big ON ks.t (v) WHERE w > 5 AND x IS NOT NULL")
        equal(sorted(s("SELECT k FROM ks.t WHERE v = 1 AND w > 5 AND x = 'x' ALLOW FILTERING")), [(6,), (7,), (8,), (9,)])
        equal(s("SELECT k FROM ks.t WHERE v = 1 AND w = 7 AND x = 'x' ALLOW FILTERING"), [(7,)])
        contains(s.error("SELECT k FROM ks.t WHERE v = 1 AND w > 4"), FILTERING)
        contains(s.error("SELECT k FROM ks.t WHERE v = 1"), FILTERING)
        s("CREATE UNIQUE INDEX one ON ks.t (v) WHERE w = 3")
        equal(s("SELECT k FROM ks.t WHERE v = 1 AND w = 3"), [(3,)])
        contains(s.error("INSERT INTO ks.t (k, v, w) VALUES (20, 1, 3)"), "unique index one")
        s("UPDATE ks.t SET w = 4 WHERE k = 3")
        s("INSERT INTO ks.t (k, v, w) VALUES (20, 1, 3)")
        equal(s("SELECT k FROM ks.t WHERE v = 1 AND w = 3"), [(20,)])
        equal(s.session.execute("DESCRIBE INDEX ks.big").one().create_statement,
              "CREATE INDEX big ON ks.t (v) WHERE w > 5 AND x IS NOT NULL;")
        contains(s.error("ALTER TABLE ks.t DROP w"), "dependent secondary indexes")
        contains(s.error("CREATE INDEX ON ks.t (v) WHERE w = null"), "null value")
    check(cwd)


@test
def what_has_expired_is_not_found(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int PRIMARY KEY, v int, w int)")
        s("CREATE INDEX ON ks.t (v)")
        s("INSERT INTO ks.t (k, v, w) VALUES (1, 5, 5) USING TTL 1")
        s("INSERT INTO ks.t (k, w) VALUES (2, 5)")
        s("UPDATE ks.t USING TTL 1 SET v = 5 WHERE k = 2")
        s("INSERT INTO ks.t (k, v) VALUES (3, 5)")
        equal(sorted(s("SELECT k FROM ks.t WHERE v = 5")), [(1,), (2,), (3,)])
        time.sleep(1.1)
        equal(s("SELECT k FROM ks.t WHERE v = 5"), [(3,)])
        s("INSERT INTO ks.t (k, v) VALUES (1, 5)")
        time.sleep(1.5)
        equal(sorted(s("SELECT k FROM ks.t WHERE v = 5")), [(1,), (3,)])
    check(cwd)


@test
def pages_of_an_index_go_on_after_a_restart(cwd):
    with Door(cwd) as door:
        with Session(door) as s:
            s(KEYSPACE)
            s("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
            s("CREATE INDEX ON ks.t (v)")
            insert = s.session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
            for k in range(100):
                s.session.execute(insert, (k, k % 2))
            query = s.session.prepare("SELECT k FROM ks.t WHERE v = ?")
            query.fetch_size = 30
            first = s.session.execute(query, (1,))
            state, got = first.paging_state, [r.k for r in first.current_rows]
    with Door(cwd) as door, Session(door) as s:
        query = s.session.prepare("SELECT k FROM ks.t WHERE v = ?")
        query.fetch_size = 30
        rest = s.session.execute(query, (1,), paging_state=state)
        equal(sorted(got + [r.k for r in rest]), list(range(1, 100, 2)))
        s("DROP INDEX ks.t_v_idx")
        try:
            s.session.execute(query, (1,), paging_state=state)
        except Exception as error:
            contains(str(error), "begin anew")
        else:
            raise AssertionError("a page of an index that is gone was read")


@test
def clients_are_told_of_indexes(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s('CREATE TABLE ks.t (k int PRIMARY KEY, "V" int, m map<text, int>)')
        s('CREATE INDEX byv ON ks.t ("V")')
        s("CREATE INDEX ON ks.t (keys(m))")
        equal([(t, n, dict(o)) for t, n, o in s("SELECT table_name, index_name, options FROM system_schema.indexes")],
              [("t", "byv", {"target": '"V"'}), ("t", "t_m_idx", {"target": "keys(m)"})])
        equal(s('SELECT index_name FROM system."IndexInfo" WHERE table_name = \'ks\''), [("byv",), ("t_m_idx",)])
        s.cluster.refresh_schema_metadata()
        equal(sorted(s.cluster.metadata.keyspaces["ks"].tables["t"].indexes), ["byv", "t_m_idx"])
        text = s.session.execute("DESCRIBE INDEX ks.byv").one().create_statement
        equal(text, 'CREATE INDEX byv ON ks.t ("V");')
        equal([r.name for r in s.session.execute("DESCRIBE TABLE ks.t")], ["t", "byv", "t_m_idx"])
        s("DROP INDEX ks.byv")
        s(text.rstrip(";"))


@test
def an_index_is_built_beside_writers_and_after_a_kill(cwd):
    rows = 6000
    with Door(cwd) as door:
        with Session(door) as s:
            s(KEYSPACE)
            s("CREATE TABLE ks.t (k int PRIMARY KEY, v int)")
            insert = s.session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
            for start in range(0, rows, 500):
                for f in [s.session.execute_async(insert, (k, k % 3)) for k in range(start, start + 500)]:
                    f.result()
            stop = threading.Event()

            def write():
                k = 0
                while not stop.is_set():
                    s.session.execute(insert, (k % rows, 7))
                    k += 11

            writer = threading.Thread(target=write)
            writer.start()
            s("CREATE INDEX ON ks.t (v)")
            stop.set()
            writer.join()
        door.stop(signal.SIGKILL)
    with Door(cwd) as door, Session(door) as s:
        end = time.time() + 60
        while not s("SELECT * FROM system.\"IndexInfo\" WHERE table_name = 'ks'"):
            assert time.time() < end, "the index is not built"
            time.sleep(0.1)
        for v in (0, 1, 2, 7):
            found = sorted(k for k, in s(f"SELECT k FROM ks.t WHERE v = {v}"))
            equal(found, sorted(k for k, other in s("SELECT k, v FROM ks.t") if other == v))
    check(cwd)


@test
def an_index_serves_what_the_key_does_not(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (a int, b int, c int, d frozen<set<int>>, v int, PRIMARY KEY ((a, b), c, d))")
        for column in ("a", "c", "v"):
            s(f"CREATE INDEX ON ks.t ({column})")
        for n in range(4):
            s("INSERT INTO ks.t (a, b, c, d, v) VALUES (0, 0, %s, {1}, %s)", (n, n % 2))
        # The partition is known, so the index of `a` or `c` would leave `v` to filtering.
        equal(s("SELECT c FROM ks.t WHERE a = 0 AND b = 0 AND c >= 1 AND v = 1"), [(1,), (3,)])
        equal(s("SELECT c FROM ks.t WHERE a = 0 AND b = 0 AND c = 1 AND v = 1"), [(1,)])
        equal(s("SELECT v FROM ks.t WHERE (c) = (2)"), [(0,)])
        contains(s.error("SELECT * FROM ks.t WHERE (c, d) = (2, {1})"), FILTERING)
        contains(s.error("SELECT * FROM ks.t WHERE d CONTAINS 1"), "CONTAINS with a secondary index or filtering")
        equal(len(s("SELECT * FROM ks.t WHERE d CONTAINS 1 ALLOW FILTERING")), 4)
    check(cwd)


def pairs_read(s, statement):
    """How many pairs a SELECT has read, by its trace."""
    events = s.session.execute(statement, trace=True).get_query_trace().events
    return next(int(m.group(1)) for m in (re.match(r"Transaction: \d+ reads of (\d+) pairs", e.description) for e in events) if m)


@test
def an_index_that_includes_columns_answers_without_rows(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, v text, a int, b text, w int, j jsonb, l list<int>, s int static, PRIMARY KEY (k, c))")
        insert = s.session.prepare("INSERT INTO ks.t (k, c, v, a, b, w, j) VALUES (?, ?, ?, ?, ?, ?, ?)")
        for n in range(40):
            s.session.execute(insert, (n, n % 2, "few" if n < 10 else "many", n, f"b{n}", n, '{"x": "%d"}' % (n % 4)))
        s("CREATE INDEX cov ON ks.t (v) INCLUDE (a, b)")
        s("CREATE INDEX ON ks.t (j->>'x') INCLUDE (a)")
        s("CREATE UNIQUE INDEX one ON ks.t (w) INCLUDE (b) WHERE w > 30")
        s("CREATE INDEX of_c ON ks.t (c) INCLUDE (a)")

        def for_each(columns, where="v = '{}'"):
            """The pairs that are read of a row more: of 30 rows, 20 more than of 10."""
            s("SELECT k FROM ks.t LIMIT 1")  # whoever comes first reads what the table is
            counts = [pairs_read(s, f"SELECT {columns} FROM ks.t WHERE {where.format(which)}") for which in ("few", "many")]
            return (counts[1] - counts[0]) / 20

        # An entry, and nothing of the row.
        for columns in ("k, c", "k, c, v, a, b", "count(*)", "token(k), max(a)", "CAST(a AS text)"):
            equal((columns, for_each(columns)), (columns, 1))
        for columns in ("w", "*", "a, s", "writetime(a)", "a, ttl(b)"):
            assert for_each(columns) >= 2, columns
        rows = sorted(s("SELECT k, c, v, a, b FROM ks.t WHERE v = 'few'"))
        equal(rows, [(n, n % 2, "few", n, f"b{n}") for n in range(10)])
        # What is asked besides is looked at in the entry, too.
        equal(s("SELECT k FROM ks.t WHERE v = 'few' AND a = 7 ALLOW FILTERING"), [(7,)])
        equal(for_each("k", "v = '{}' AND a > 3 ALLOW FILTERING"), 1)
        # The document is not there, and need not be.
        equal(sorted(s("SELECT k, a FROM ks.t WHERE j->>'x' = '3'")), [(n, n) for n in range(3, 40, 4)])
        covered, read = (pairs_read(s, f"SELECT {c} FROM ks.t WHERE j->>'x' = '3'") for c in ("k, a", "k, a, j"))
        assert read - covered >= 10, (read, covered)
        equal(s("SELECT b FROM ks.t WHERE w = 33"), [("b33",)])
        contains(s.error("INSERT INTO ks.t (k, c, w) VALUES (90, 1, 33)"), "unique index one")
        pages = s.session.prepare("SELECT k, a FROM ks.t WHERE v = 'many'")
        pages.fetch_size = 7
        equal(sorted(r.a for r in s.session.execute(pages)), list(range(10, 40)))

        def found(where="v = 'few'", columns="k, a, b"):
            """The same from entries and from rows, which have more columns."""
            more = sorted(row[:-1] for row in s(f"SELECT {columns}, w FROM ks.t WHERE {where}"))
            equal(sorted(s(f"SELECT {columns} FROM ks.t WHERE {where}")), more)
            return {row[0]: row[1:] for row in more}

        # A change of what is included changes the entry alone.
        s("UPDATE ks.t SET a = 70 WHERE k = 7 AND c = 1")
        s("DELETE b FROM ks.t WHERE k = 7 AND c = 1")
        equal(found()[7], (70, None))
        s("UPDATE ks.t SET b = 'if' WHERE k = 7 AND c = 1 IF a = 70")
        s("BEGIN BATCH UPDATE ks.t SET a = 1 WHERE k = 6 AND c = 0; UPDATE ks.t SET a = 2 WHERE k = 6 AND c = 0; APPLY BATCH")
        s("DELETE FROM ks.t WHERE k = 5")
        equal((found()[7], found()[6][0], 5 in found()), ((70, "if"), 2, False))
        # What is too long is read of the row, and so is what has a life of its own.
        s("UPDATE ks.t SET b = %s WHERE k = 1 AND c = 1", ("x" * 3000,))
        s("UPDATE ks.t USING TTL 1 SET a = 99 WHERE k = 2 AND c = 0")
        s("UPDATE ks.t USING TTL 1 SET v = 'few' WHERE k = 3 AND c = 1")
        s("INSERT INTO ks.t (k, c, v, a) VALUES (4, 0, 'few', 44) USING TTL 1")
        equal(found()[2], (99, "b2"))
        time.sleep(1.1)
        after = found()
        equal((after[1], after[2], 3 in after, 4 in after), ((1, "x" * 3000), (None, "b2"), False, False))
        # Entries by a column of the key: the row is there by what else it has.
        s("INSERT INTO ks.t (k, c) VALUES (200, 9)")
        s("UPDATE ks.t SET a = 5 WHERE k = 201 AND c = 9")
        equal(found("c = 9", "k, a"), {200: (None,), 201: (5,)})
        s("DELETE a FROM ks.t WHERE k = 201 AND c = 9")
        equal(found("c = 9", "k, a"), {200: (None,)})
        # With a default TTL rows that were there before may have expired, so they are read.
        s("ALTER TABLE ks.t WITH default_time_to_live = 1000")
        assert for_each("a") > 1
        found()
        s("ALTER TABLE ks.t WITH default_time_to_live = 0")
        equal({n: (o["target"], o.get("include")) for n, o in s("SELECT index_name, options FROM system_schema.indexes")},
              {"cov": ("v", "a, b"), "t_j_idx": ("j->>'x'", "a"), "one": ("w", "b"), "of_c": ("c", "a")})
        texts = {r.name: r.create_statement for r in s.session.execute("DESCRIBE TABLE ks.t")}
        equal(texts["one"], "CREATE UNIQUE INDEX one ON ks.t (w) INCLUDE (b) WHERE w > 30;")
        contains(s.error("ALTER TABLE ks.t DROP b"), "dependent secondary indexes")
        contains(s.error("CREATE INDEX ON ks.t (v) INCLUDE (a, b)"), "duplicate of existing index cov")
        s("CREATE INDEX other ON ks.t (v) INCLUDE (b)")
        for wrong, told in (("(v) INCLUDE (k)", "behind its key"), ("(v) INCLUDE (l)", "single values"), ("(v) INCLUDE (s)", "single values"),
                            ("(v) INCLUDE (v)", "twice"), ("(v) INCLUDE (a, a)", "twice"), ("(v) INCLUDE (nope)", "doesn't exist"),
                            ("(l) INCLUDE (a)", "includes no columns"), ("(s) INCLUDE (a)", "includes no columns")):
            contains(s.error(f"CREATE INDEX ON ks.t {wrong}"), told)
        s("DROP INDEX ks.cov")
        s(texts["cov"].rstrip(";"))
        s("TRUNCATE ks.t")
        s.session.execute(insert, (1, 1, "few", 1, "b", 40, "{}"))
        equal(s("SELECT a, b FROM ks.t WHERE v = 'few'"), [(1, "b")])
    check(cwd)


main("needs python3-cassandra" if Cluster is None else None)
