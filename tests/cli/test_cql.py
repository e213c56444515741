#!/usr/bin/env python3
"""Cassandra's door as the Python driver sees it: the schema, statements, pages, conditions, batches."""

from cql_server import KEYSPACE, AlreadyExists, Cluster, Door, Session, SyntaxException
from harness import contains, equal, main, test


@test
def a_driver_of_each_version_sees_the_schema(cwd):
    with Door(cwd) as door:
        for version in (3, 4, 5):
            with Session(door, protocol_version=version) as s:
                equal(s.cluster.metadata.cluster_name, "frond")
                equal(s("SELECT key, release_version FROM system.local WHERE key = 'local'"), [("local", "4.0.0")])
                s("DROP KEYSPACE IF EXISTS ks")
                s(KEYSPACE)
                s("CREATE TABLE ks.t (a int, b text, c int static, d list<int>, PRIMARY KEY (a, b)) "
                  "WITH CLUSTERING ORDER BY (b DESC) AND comment = 'it''s'")
                table = s.cluster.metadata.keyspaces["ks"].tables["t"]
                equal([c.name for c in table.primary_key], ["a", "b"])
                equal(table.columns["c"].is_static, True)
                equal(table.columns["d"].cql_type, "list<int>")
                equal(table.options["comment"], "it's")
                equal(s("SELECT column_name, kind FROM system_schema.columns WHERE keyspace_name = 'ks'"),
                      [("a", "partition_key"), ("b", "clustering"), ("c", "static"), ("d", "regular")])


@test
def rows_are_read_by_keys_and_ranges(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))")
        for c in range(1, 7):
            s("INSERT INTO ks.t (k, c, v) VALUES (1, %s, %s)", (c, f"v{c}"))
        equal(s("SELECT * FROM ks.t WHERE k = 1 AND c = 3"), [(1, 3, "v3")])
        equal(s("SELECT c FROM ks.t WHERE k = 1 AND c > 2 AND c <= 4"), [(3,), (4,)])
        equal(s("SELECT c FROM ks.t WHERE k = 1 ORDER BY c DESC LIMIT 2"), [(6,), (5,)])
        equal(s("SELECT c FROM ks.t WHERE k = 1 AND c IN (5, 1)"), [(1,), (5,)])
        s("DELETE FROM ks.t WHERE k = 1 AND c >= 5")
        equal(s("SELECT count(*) FROM ks.t"), [(4,)])
        contains(s.error("SELECT * FROM ks.t WHERE v = 'v1'"), "use ALLOW FILTERING")
        equal(s("SELECT c FROM ks.t WHERE v = 'v2' ALLOW FILTERING"), [(2,)])
        s("TRUNCATE ks.t")
        equal(s("SELECT * FROM ks.t"), [])


@test
def collections_statics_and_counters_change_in_parts(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, s text static, l list<int>, m map<text, int>, n set<int>, PRIMARY KEY (k, c))")
        s("INSERT INTO ks.t (k, c, s, l, m, n) VALUES (1, 1, 'one', [3, 1], {'x': 1}, {3, 2})")
        s("UPDATE ks.t SET l = l + [9], m['y'] = 2, n = n - {2} WHERE k = 1 AND c = 1")
        s("UPDATE ks.t SET l = [0] + l WHERE k = 1 AND c = 1")
        l, m, n = s("SELECT l, m, n FROM ks.t WHERE k = 1 AND c = 1")[0]
        equal((l, dict(m), set(n)), ([0, 3, 1, 9], {"x": 1, "y": 2}, {3}))
        s("INSERT INTO ks.t (k, c) VALUES (1, 2)")
        equal(s("SELECT c, s FROM ks.t WHERE k = 1"), [(1, "one"), (2, "one")])
        equal(s("SELECT DISTINCT k, s FROM ks.t"), [(1, "one")])
        s("CREATE TABLE ks.counts (k int PRIMARY KEY, n counter)")
        s("UPDATE ks.counts SET n = n + 5 WHERE k = 1")
        s("UPDATE ks.counts SET n = n - 2 WHERE k = 1")
        equal(s("SELECT * FROM ks.counts"), [(1, 3)])


@test
def pages_go_on_after_a_restart(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, PRIMARY KEY (k, c))")
        insert = s.session.prepare("INSERT INTO ks.t (k, c) VALUES (?, ?)")
        for c in range(20):
            s.session.execute(insert, (1, c))
        query = s.session.prepare("SELECT c FROM ks.t WHERE k = ?")
        query.fetch_size = 7
        page = s.session.execute(query, (1,))
        equal([row.c for row in page.current_rows], list(range(7)))
        state = page.paging_state
    with Door(cwd) as door, Session(door) as s:
        query = s.session.prepare("SELECT c FROM ks.t WHERE k = ?")
        query.fetch_size = 7
        equal([row.c for row in s.session.execute(query, (1,), paging_state=state)], list(range(7, 20)))


@test
def conditions_and_batches_are_one_transaction(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))")
        equal(s("INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'a') IF NOT EXISTS"), [(True,)])
        equal(s("INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'b') IF NOT EXISTS"), [(False, 1, 1, "a")])
        equal(s("UPDATE ks.t SET v = 'z' WHERE k = 1 AND c = 1 IF v = 'b'"), [(False, "a")])
        equal(s("UPDATE ks.t SET v = 'z' WHERE k = 1 AND c = 1 IF v = 'a'"), [(True,)])
        s("BEGIN BATCH INSERT INTO ks.t (k, c) VALUES (2, 1); INSERT INTO ks.t (k, c) VALUES (3, 1); APPLY BATCH")
        equal(sorted(s("SELECT k FROM ks.t")), [(1,), (2,), (3,)])


@test
def errors_have_the_codes_of_cassandra(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s.error(KEYSPACE, AlreadyExists)
        s.error("SELEC", SyntaxException)
        contains(s.error("SELECT * FROM ks.nothing"), "table nothing does not exist")
        contains(s.error("SELECT * FROM nowhere.t"), "keyspace nowhere does not exist")
        s("CREATE TABLE ks.t (k int PRIMARY KEY)")
        contains(s.error("SELECT nope FROM ks.t"), "Undefined column name nope")


@test
def a_prepared_statement_learns_of_new_columns(cwd):
    with Door(cwd) as door, Session(door, protocol_version=4) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int PRIMARY KEY, a int)")
        s("INSERT INTO ks.t (k, a) VALUES (1, 2)")
        query = s.session.prepare("SELECT * FROM ks.t")
        equal([tuple(row) for row in s.session.execute(query)], [(1, 2)])
        s("ALTER TABLE ks.t ADD b int")
        equal([tuple(row) for row in s.session.execute(query)], [(1, 2, None)])


main("needs python3-cassandra" if Cluster is None else None)
