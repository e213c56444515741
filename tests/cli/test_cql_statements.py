#!/usr/bin/env python3
"""Cassandra's language as the suites of its clients ask for it: compact tables, conditions, what is refused and how."""

from cql_server import KEYSPACE, Cluster, ConfigurationException, Door, InvalidRequest, Session, SyntaxException
from harness import contains, equal, main, test


class Table:
    """`with Table(cwd, "(k int PRIMARY KEY)") as (s, refused)`: %s is the table's name."""

    def __init__(self, cwd, columns):
        self.cwd, self.columns = cwd, columns

    def __enter__(self):
        self.door = Door(self.cwd)
        self.session = Session(self.door)
        self.session(KEYSPACE)
        self.session("CREATE TABLE ks.t " + self.columns)
        return self.run, self.refused

    def __exit__(self, *_):
        self.session.__exit__()
        self.door.stop()

    def run(self, text, values=None):
        text = text.replace("%s", "ks.t")
        if values is None:
            return self.session(text)
        return [tuple(row) for row in self.session.session.execute(self.session.session.prepare(text), values)]

    def refused(self, text, error, values=None, kind=InvalidRequest):
        try:
            self.run(text, values)
        except kind as failure:
            contains(str(failure), error)
        else:
            raise AssertionError(f"{text} has not failed")


@test
def keys_have_any_length(cwd):
    """Short ones are put together on the stack, by how long they may become with their zeros told apart."""
    with Table(cwd, "(k blob, t text, n decimal, v int, PRIMARY KEY ((k, t), n))") as (s, refused):
        lengths = (0, 1, 30, 50, *range(70, 90), 100, 128, 200, 260, 1000, 2000)
        for n in lengths:
            s(f"INSERT INTO %s (k, t, n, v) VALUES (0x{'00' * n}, '{'t' * (n // 4)}', {'7' * (n // 20)}1, {n})")
        for n in lengths:
            where = f"k = 0x{'00' * n} AND t = '{'t' * (n // 4)}'"
            equal(s(f"SELECT v FROM %s WHERE {where}"), [(n,)])
            equal(s(f"SELECT v FROM %s WHERE {where} AND n = {'7' * (n // 20)}1"), [(n,)])
        equal(sorted(s("SELECT v FROM %s")), [(n,) for n in lengths])
        refused(f"INSERT INTO %s (k, t, n, v) VALUES (0x{'00' * 6000}, '', 1, 1)", "TIMED_KEY_BYTES")


@test
def rows_of_compact_tables_are_their_columns(cwd):
    with Table(cwd, "(k int, a int, b int, v int, PRIMARY KEY (k, a, b)) WITH COMPACT STORAGE") as (s, refused):
        s("INSERT INTO %s (k, a, b, v) VALUES (1, 1, 1, 1)")
        s("INSERT INTO %s (k, a, b, v) VALUES (1, 1, 2, null)")
        equal(s("SELECT * FROM %s"), [(1, 1, 1, 1)])
        s("UPDATE %s SET v = null WHERE k = 1 AND a = 1 AND b = 1")
        equal(s("SELECT * FROM %s"), [])
        # The last clustering columns may be missing.
        s("INSERT INTO %s (k, a, v) VALUES (2, 1, 5)")
        s("INSERT INTO %s (k, a, b, v) VALUES (2, 1, 0, 6)")
        s("UPDATE %s SET v = 7 WHERE k = 2 AND a = 2")
        equal(s("SELECT * FROM %s"), [(2, 1, None, 5), (2, 1, 0, 6), (2, 2, None, 7)])
        refused("INSERT INTO %s (k, b, v) VALUES (1, 1, 1)", 'PRIMARY KEY column "b" cannot be restricted')
        refused("INSERT INTO %s (k, a, b) VALUES (1, 1, 1)", "Column v is mandatory for this COMPACT STORAGE table")
        refused("ALTER TABLE %s ADD w int", "Cannot add new column to a COMPACT STORAGE table")
        refused("ALTER TABLE %s DROP v", "Cannot drop columns from a COMPACT STORAGE table")
        contains(s("DESCRIBE TABLE %s")[0][3], "WITH COMPACT STORAGE\n    AND CLUSTERING ORDER BY (a ASC, b ASC)")
        for columns, error in (
            ("(k int PRIMARY KEY)", "No definition found that is not part of the PRIMARY KEY"),
            ("(k int PRIMARY KEY, v list<int>)", "Non-frozen collections and UDTs are not supported"),
            ("(k int, c int, v int static, PRIMARY KEY (k, c))", "Static columns are not supported"),
            ("(k int, c int, v int, w int, PRIMARY KEY (k, c))", "no more than one column not part"),
        ):
            refused(f"CREATE TABLE ks.u {columns} WITH COMPACT STORAGE", error)


@test
def conditions_name_one_row(cwd):
    with Table(cwd, "(k int, c int, s int static, v int, m map<text, int>, PRIMARY KEY (k, c))") as (s, refused):
        # None of these may end the server, whatever IN says.
        for c in ("c IN ()", "c IN (1)", "c IN (1, 2)"):
            refused(f"UPDATE %s SET v = 1 WHERE k = 1 AND {c} IF v = 1",
                    "IN on the clustering key columns is not supported with conditional updates")
            refused(f"BEGIN BATCH UPDATE %s SET v = 1 WHERE k = 1 AND {c} IF v = 1 APPLY BATCH",
                    "IN on the clustering key columns is not supported with conditional updates")
        refused("DELETE FROM %s WHERE k IN () AND c = 1 IF v = 1", "IN on the partition key is not supported")
        equal(s("BEGIN BATCH INSERT INTO %s (k, c, v) VALUES (1, 1, 1) IF NOT EXISTS "
                "UPDATE %s SET v = 2 WHERE k = 1 AND c IN () APPLY BATCH"), [(True,)])
        equal(s("SELECT v FROM %s"), [(1,)])
        # Columns of a row want that row.
        refused("UPDATE %s SET s = 1 WHERE k = 1 IF v = 1", "Some clustering keys are missing: c")
        refused("UPDATE %s SET s = 1 WHERE k = 1 AND c = 1 IF s = 1", "modifies only static columns")
        refused("DELETE s, v FROM %s WHERE k = 1 IF s = 1", "must restrict all PRIMARY KEY columns")
        # A refused one tells static columns of a row that is not there.
        s("INSERT INTO %s (k, s) VALUES (2, 7)")
        equal(s("UPDATE %s SET v = 1 WHERE k = 2 AND c = 1 IF s = 1"), [(False, 7)])


@test
def conditions_look_into_collections(cwd):
    with Table(cwd, "(k int PRIMARY KEY, l list<text>, m map<text, int>, f frozen<set<int>>)") as (s, refused):
        s("INSERT INTO %s (k, l, m, f) VALUES (1, ['a'], {'x': 1}, {5})")
        for condition, applied in (("l CONTAINS 'a'", True), ("l CONTAINS 'b'", False), ("m CONTAINS 1", True),
                                   ("m CONTAINS 2", False), ("m CONTAINS KEY 'x'", True),
                                   ("m CONTAINS KEY 'y'", False), ("f CONTAINS 5", True)):
            equal((condition, s(f"UPDATE %s SET l = ['a'] WHERE k = 1 IF {condition}")[0][0]), (condition, applied))
        refused("UPDATE %s SET l = ['a'] WHERE k = 1 IF l CONTAINS KEY 1", "CONTAINS KEY on non-map column l")
        refused("UPDATE %s SET l = ['a'] WHERE k = 1 IF l CONTAINS null", 'with null for operator "CONTAINS"')
        refused("UPDATE %s SET l = ['a'] WHERE k = 1 IF l[0] CONTAINS 'a'", "", kind=SyntaxException)
        # A list without elements is not there, and less than another.
        equal(s("UPDATE %s SET l = null WHERE k = 2 IF l < ['a']")[0][0], True)
        equal(s("UPDATE %s SET l = null WHERE k = 2 IF l > ['a']")[0][0], False)


@test
def groups_and_partitions_are_limited(cwd):
    with Table(cwd, "(k int, a int, b int, s int static, PRIMARY KEY (k, a, b))") as (s, refused):
        for k in (1, 2):
            for a in (1, 2, 3):
                for b in (1, 2):
                    s(f"INSERT INTO %s (k, a, b, s) VALUES ({k}, {a}, {b}, {k * 10})")
        equal(s("SELECT k, a, count(b) FROM %s GROUP BY k, a PER PARTITION LIMIT 2"),
              [(1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 2, 2)])
        equal(s("SELECT k, a, count(b) FROM %s GROUP BY k, a PER PARTITION LIMIT 2 LIMIT 3"),
              [(1, 1, 2), (1, 2, 2), (2, 1, 2)])
        refused("SELECT count(b) FROM %s PER PARTITION LIMIT 1", "PER PARTITION LIMIT is not allowed with aggregate")
        equal(s("SELECT DISTINCT k, count(a) FROM %s GROUP BY k"), [(1, 1), (2, 1)])
        refused("SELECT DISTINCT k, count(a) FROM %s GROUP BY k, a", "Grouping on clustering columns is not allowed")
        equal(s("SELECT DISTINCT s FROM %s WHERE k = 2"), [(20,)])
        refused("SELECT DISTINCT s FROM %s", "must request all the partition key columns (missing k)")
        refused("SELECT DISTINCT k FROM %s PER PARTITION LIMIT 1", "not allowed with SELECT DISTINCT")
        equal(s("SELECT b FROM %s WHERE k = 1 AND (a) IN ((3)) ORDER BY b DESC"), [(2,), (1,)])


@test
def each_value_of_a_list_finds_its_rows(cwd):
    with Table(cwd, "(k int, a int, b int, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)") as (s, _):
        rows = [(k, a, b) for k in (1, 2) for a in range(20) for b in range(3)]
        for k, a, b in rows:
            s(f"INSERT INTO %s (k, a, b) VALUES ({k}, {a}, {b})")

        def found(where, fits):
            equal(sorted(s(f"SELECT k, a, b FROM %s WHERE {where} ALLOW FILTERING")),
                  [row for row in rows if fits(*row)])

        # Neither in order nor once, and also what no row has; through all rows, and in a partition.
        listed = [17, 3, 99, 0, 3, -5, 19, 8]
        text = ", ".join(map(str, listed))
        found(f"a IN ({text})", lambda k, a, b: a in listed)
        found(f"k = 2 AND a IN ({text})", lambda k, a, b: k == 2 and a in listed)
        found(f"a IN ({text}) AND b IN (2, 0)", lambda k, a, b: a in listed and b in (0, 2))
        found("a IN ()", lambda k, a, b: False)
        pairs = [(4, 2), (11, 0), (4, 0), (11, 7), (11, 2), (19, 1)]
        text = ", ".join(map(str, pairs))
        found(f"(a, b) IN ({text})", lambda k, a, b: (a, b) in pairs)
        found(f"k IN (2, 1) AND (a, b) IN ({text})", lambda k, a, b: (a, b) in pairs)


@test
def no_partition_is_lost_between_pages(cwd):
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        s("CREATE TABLE ks.t (k int, c int, s int static, PRIMARY KEY (k, c))")
        for k in range(20):
            s(f"INSERT INTO ks.t (k, s) VALUES ({k}, {k})")
            for c in range(k % 3):
                s(f"INSERT INTO ks.t (k, c) VALUES ({k}, {c})")
        keys = ", ".join(str(k) for k in range(20))
        for text in (f"SELECT DISTINCT k, s FROM ks.t WHERE k IN ({keys})",
                     f"SELECT k, s FROM ks.t WHERE k IN ({keys}) PER PARTITION LIMIT 1"):
            for size in range(1, 22):
                query = s.session.prepare(text)
                query.fetch_size = size
                equal((size, [tuple(row) for row in s.session.execute(query)]), (size, [(k, k) for k in range(20)]))


@test
def an_operation_meets_an_earlier_one_of_its_statement(cwd):
    with Table(cwd, "(k int PRIMARY KEY, m map<int, int>, s set<int>, l list<int>)") as (s, refused):
        s("UPDATE %s SET m[1] = 9, m[1] = 6, m[2] = 1, m[2] = 2 WHERE k = 1")
        equal(dict(s("SELECT m FROM %s")[0][0]), {1: 9, 2: 2})
        s("UPDATE %s SET m = m - {1}, m[1] = 7, m[3] = 5, m = m - {3} WHERE k = 1")
        equal(dict(s("SELECT m FROM %s")[0][0]), {2: 2})
        s("UPDATE %s SET s = s - {3}, s = s + {3, 4} WHERE k = 1")
        equal(set(s("SELECT s FROM %s")[0][0]), {4})


@test
def filtering_is_asked_for_before_values_are_looked_at(cwd):
    with Table(cwd, "(k int, a int, b frozen<list<int>>, v int, m map<int, int>, PRIMARY KEY (k, a, b))") as (s, refused):
        for relation, error in (
            ("v = null", "use ALLOW FILTERING"),
            ("v IN (1)", "IN predicates on non-primary-key columns (v) is not yet supported"),
            ("k = 1 AND b = [1]", 'PRIMARY KEY column "b" cannot be restricted as preceding column "a" is not'),
            ("a > 1 AND b = [1]", 'Clustering column "b" cannot be restricted (preceding column "a"'),
            ("k = 1 AND a = 1 AND b CONTAINS 1", "Clustering columns can only be restricted with CONTAINS"),
            ("v != 1", 'Unsupported "!=" relation: v != 1'),
        ):
            refused(f"SELECT * FROM %s WHERE {relation}", error)
        refused("SELECT * FROM %s WHERE m[null] = 1 ALLOW FILTERING", "Unsupported null map key for column m")
        refused("DELETE FROM %s WHERE k = 1 AND a = 1 AND b CONTAINS 1", "Cannot use DELETE with CONTAINS")


@test
def operations_tell_what_they_were(cwd):
    with Table(cwd, "(k int PRIMARY KEY, v int, t tuple<int, int>, f frozen<list<int>>, c list<int>, d text)") as (s, refused):
        for assignment, error in (
            ("v = v + 1", "Invalid operation (v = v + 1) for non counter column v"),
            ("t = t + (1, 1)", "Invalid operation (t = t + (1, 1)) for tuple column t"),
            ("f = f + [1]", "Invalid operation (f = f + [1]) for frozen collection column f"),
            ("f[0] = 1", "Invalid operation (f[0] = 1) for frozen collection column f"),
            ("v.x = 1", "Invalid operation (v.x = 1) for non-UDT column v"),
            ("d = toJson(1)", "toJson() may only be used within the selection clause"),
            ("v = CAST(? AS int)", "Ambiguous call to function system.castAsInt"),
        ):
            refused(f"UPDATE %s SET {assignment} WHERE k = 1", error, [1] if "?" in assignment else None)
        refused("SELECT CAST(d AS int), c[1..2] FROM %s", "cannot be cast")
        refused("SELECT c[1..2] FROM %s", "Slice selection is only allowed on sets and maps, but c is a list")
        refused("INSERT INTO %s JSON 'null'", "Got null for INSERT JSON values")
        refused("USE ?", "Bind variables cannot be used for keyspace names", kind=SyntaxException)
        s("INSERT INTO %s (k, d) VALUES (1, 'a')")
        equal(s("SELECT d + 'b' FROM %s"), [("ab",)])
        # A counter has no place beside other columns.
        s("CREATE TABLE ks.n (k int PRIMARY KEY, n counter)")
        refused("BEGIN UNLOGGED BATCH UPDATE ks.n SET n = n + 1 WHERE k = 1 UPDATE %s SET v = 1 WHERE k = 1 "
                "APPLY BATCH", "Counter and non-counter mutations cannot exist in the same batch")


@test
def schemas_are_checked(cwd):
    with Table(cwd, "(k int, , a int, b int, PRIMARY KEY (k, a, b),) WITH CLUSTERING ORDER BY (a DESC)") as (s, refused):
        equal(s("SELECT column_name, clustering_order FROM system_schema.columns WHERE keyspace_name = 'ks' "
                "AND table_name = 't'"), [("k", "none"), ("a", "desc"), ("b", "asc")])
        for statement, error, kind in (
            ("ALTER KEYSPACE ks WITH replication = {'class': 'NetworkTopologyStrategy'}", "at least one datacenter",
             ConfigurationException),
            ("ALTER KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'class': 'SimpleStrategy'}",
             "Multiple definition", SyntaxException),
            ("ALTER TABLE ks.t WITH caching = {'keys': ALL}", "", SyntaxException),
            ("ALTER TABLE ks.t WITH WITH comment = 'x'", "at input 'WITH'", SyntaxException),
            ("ALTER TABLE ks.t WITH compaction = {'min_threshold': 4}", "Missing sub-option 'class'",
             ConfigurationException),
            ("ALTER TABLE ks.t WITH compression = {'chunk_length_in_kb': 32}", "Missing sub-option 'class'",
             ConfigurationException),
            ("ALTER TABLE ks.t WITH compression = {'class': ''}", "must not be empty", ConfigurationException),
            ("ALTER TABLE ks.t WITH compression = {'enabled': false, 'class': 'X'}", "no other options",
             ConfigurationException),
            ("ALTER TABLE ks.t WITH compression = {'class': 'X', 'min_compress_ratio': -1}", "negative",
             ConfigurationException),
            ("ALTER TABLE ks.t WITH compression = {'class': 'X', 'chunk_length_in_kb': -1}", "Invalid negative or null chunk",
             ConfigurationException),
            ("ALTER TABLE ks.t WITH compression = {'class': 'X', 'size': 3}", "Unknown compression options size",
             ConfigurationException),
        ):
            refused(statement, error, kind=kind)
        s("ALTER TABLE ks.t WITH compression = {'sstable_compression': 'X', 'min_compress_ratio': 2} "
          "AND compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 7}")
        equal([[dict(column) for column in row] for row in
               s("SELECT compression, compaction FROM system_schema.tables WHERE keyspace_name = 'ks'")],
              [[{"class": "org.apache.cassandra.io.compress.X", "min_compress_ratio": "2.0", "chunk_length_in_kb": "16"},
                {"class": "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy", "min_threshold": "7",
                 "max_threshold": "32"}]])
        s("CREATE KEYSPACE other WITH replication = {'class': 'SimpleStrategy'}")
        s("DROP TYPE IF EXISTS nowhere.p")
        s("CREATE TYPE ks.p (x int,)")
        s("CREATE TABLE ks.u (k frozen<list<frozen<p>>> PRIMARY KEY)".replace("<p>", "<ks.p>"))
        refused("ALTER TYPE ks.p ADD y int", "used in the partition key column k of the table 'ks.u'")


main("needs python3-cassandra" if Cluster is None else None)
