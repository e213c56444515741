"""Tables with everything that one may have, for the tests of commands that copy them: a server with Cassandra's door,
a table with a column of each type, counters, keys of frozen collections and user types."""

import datetime
import re
import time

try:
    from cassandra import InvalidRequest
    from cassandra.cluster import Cluster
except ImportError:
    Cluster = InvalidRequest = None

from harness import Server, contains, equal, ok


def url(store):
    return store if ":" in store else f"embedded:{store}"


class Door(Server):
    """`with Door(dir, store) as door`: door(text) gives rows as tuples."""

    def __init__(self, cwd, store="data"):
        super().__init__(cwd, "--cql", "127.0.0.1:0", "--store", url(store))
        port = int(re.search(r"event=cql address=127\.0\.0\.1:(\d+)", self.read_log()).group(1))
        self.cluster = Cluster(["127.0.0.1"], port=port)
        self.session = self.cluster.connect()
        self.session.default_timeout = 120

    def __exit__(self, *args):
        self.cluster.shutdown()
        super().__exit__(*args)

    def __call__(self, text, values=None):
        return [tuple(row) for row in self.session.execute(text, values)]


def whole(cwd, store):
    contains(ok("verify", "--quiet", "--store", url(store), cwd=cwd).stdout, " 0 findings")


KEYSPACE = "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 3}}"
ALL = ("CREATE TABLE ks.everything (k int, c timeuuid, a ascii, b bigint, bl blob, bo boolean, da date, de decimal, "
       "d double, du duration, f float, i inet, s smallint, t text, ti time, ts timestamp, y tinyint, u uuid, v varint, "
       "l list<int>, m map<text, frozen<list<double>>>, n set<inet>, fl frozen<list<text>>, tu tuple<int, text>, "
       "p person, fp frozen<person>, st text static, sm map<int, text> static, PRIMARY KEY (k, c)) "
       "WITH CLUSTERING ORDER BY (c DESC) AND comment = 'all of \"it\"'")
TIME_ID = "50554d6e-29bb-11e5-b345-feff819cdc9f"
VALUES = [
    ("a", "'plain'"), ("b", "-9223372036854775808"), ("bl", "0x00ff"), ("bo", "true"), ("da", "'-5877641-06-23'"),
    ("de", "-1.50"), ("de", "1E+400"), ("d", "1.5"), ("d", "-0.0"), ("d", "NaN"), ("d", "-Infinity"), ("d", "3"),
    ("du", "-1mo2d3ns"), ("du", "12mo3d4h"), ("f", "0.1"), ("f", "Infinity"), ("i", "'::ffff:1.2.3.4'"),
    ("i", "'10.0.0.1'"), ("s", "-32768"), ("t", "''"), ("t", "'a \"quoted\" \\ text, ünïcode \U0001f33f\n'"),
    ("ti", "'23:59:59.999999999'"), ("ts", "-62135596800000"), ("ts", "'2026-11-26T12:00:00.123Z'"), ("y", "-128"),
    ("u", "00000000-0000-0000-0000-000000000000"), ("v", "-" + "9" * 900), ("v", "0"), ("l", "[3, 1, 3]"),
    ("m", "{'x': [1.5, 2], '': []}"), ("n", "{'::1', '127.0.0.1'}"), ("fl", "['b', 'a', 'b']"), ("tu", "(1, null)"),
    ("p", "{name: 'ann', nick: 'a'}"), ("fp", "{name: null, home: {street: 'x', no: 3}}"),
]


def make_everything(door):
    door(KEYSPACE.format("ks"))
    door("CREATE TYPE ks.address (street text, no int)")
    door("CREATE TYPE ks.person (name text, nick text, home frozen<address>)")
    door("CREATE TYPE ks.unused (x int)")
    door(ALL)
    for k, (column, value) in enumerate(VALUES):
        door(f"INSERT INTO ks.everything (k, c, {column}) VALUES ({k}, {TIME_ID}, {value})")
    columns = {column: value for column, value in VALUES}
    door(f"INSERT INTO ks.everything (k, c, {', '.join(columns)}) VALUES (1000, {TIME_ID}, {', '.join(columns.values())})")
    for n in range(3):
        door(f"UPDATE ks.everything SET l = l + [{n}], m['y'] = [] WHERE k = 1000 AND c = {TIME_ID}")
        door(f"UPDATE ks.everything SET l = [{n}] + l WHERE k = 1000 AND c = {TIME_ID}")
    door("UPDATE ks.everything SET st = 'of all', sm = {1: 'one', 2: 'two'} WHERE k = 1000")
    door("UPDATE ks.everything SET st = 'alone' WHERE k = 1001")
    door(f"UPDATE ks.everything SET t = 'never inserted' WHERE k = 1002 AND c = {TIME_ID}")
    door(f"INSERT INTO ks.everything (k, c, t) VALUES (1003, {TIME_ID}, 'for a time') USING TTL 100000")
    door(f"UPDATE ks.everything USING TTL 200000 SET b = 5, m = m + {{'z': [1]}} WHERE k = 1003 AND c = {TIME_ID}")
    door("CREATE TABLE ks.living (k text PRIMARY KEY, v int) WITH default_time_to_live = 864000")
    door("INSERT INTO ks.living (k, v) VALUES ('default', 1)")
    door("INSERT INTO ks.living (k, v) VALUES ('never', 1) USING TTL 0")
    door("CREATE TABLE ks.counts (k int, c text, a counter, b counter, PRIMARY KEY (k, c))")
    for n in range(5):
        door(f"UPDATE ks.counts SET a = a + {n}, b = b - 7 WHERE k = {n % 2} AND c = 'x'")
    door("CREATE TABLE ks.\"Keys\" (a frozen<set<int>>, \"B b\" decimal, c frozen<person>, d tuple<text, bigint>, v boolean, "
         "PRIMARY KEY ((a, \"B b\"), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)")
    door("INSERT INTO ks.\"Keys\" (a, \"B b\", c, d) VALUES ({2, 1}, 1.50, {name: 'x'}, ('y', null))")
    door("INSERT INTO ks.\"Keys\" (a, \"B b\", c, d, v) VALUES ({}, -0.001, {name: null}, (null, 5), false)")


EVERYTHING = ("ks.everything", "ks.living", "ks.counts", "ks.Keys")
QUERIES = ("SELECT * FROM ks.everything", "SELECT k, WRITETIME(t), WRITETIME(de), WRITETIME(st) FROM ks.everything",
           "SELECT k, v, WRITETIME(v) FROM ks.living", "SELECT * FROM ks.counts", "SELECT * FROM ks.\"Keys\"")


PAST_TABLES = ("old.past", "old.counted", "old.stamped")
PAST = ("CREATE TABLE old.past (k int, c int, v text, n int, st text STATIC, PRIMARY KEY (k, c)) "
        "WITH history_seconds = 86400 AND packed = true",
        "CREATE INDEX by_v ON old.past (v) INCLUDE (n)",
        "CREATE UNIQUE INDEX one ON old.past (n)",
        "CREATE TABLE old.counted (k int PRIMARY KEY, n counter) WITH history_seconds = 86400",
        "CREATE TABLE old.stamped (k int PRIMARY KEY, v text) WITH client_timestamps = true")


def make_past(door):
    """Tables with a past, indexes and timestamps of clients; returns what asks them, also as of before they changed."""
    door(KEYSPACE.format("old"))
    for text in PAST:
        door(text)
    for n in range(60):
        door(f"INSERT INTO old.past (k, c, v, n) VALUES ({n % 5}, {n}, 'v{n % 3}', {n})")
        door(f"UPDATE old.counted SET n = n + {n} WHERE k = {n % 4}")
        door(f"INSERT INTO old.stamped (k, v) VALUES ({n}, 'first') USING TIMESTAMP 1000")
    door("UPDATE old.past SET st = 'before' WHERE k = 1")
    time.sleep(0.05)
    moment = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "+0000"
    time.sleep(0.05)
    door("DELETE FROM old.past WHERE k = 2")
    door("UPDATE old.past SET v = 'changed', n = 1000 WHERE k = 1 AND c = 1")
    door("UPDATE old.past USING TTL 100000 SET v = 'living' WHERE k = 1 AND c = 6")
    door("UPDATE old.past SET st = 'after' WHERE k = 1")
    door("UPDATE old.counted SET n = n - 7 WHERE k = 1")
    door("DELETE FROM old.stamped USING TIMESTAMP 3000 WHERE k = 7")
    door("UPDATE old.stamped USING TIMESTAMP 2000 SET v = 'second' WHERE k = 8")
    return ("SELECT * FROM old.past", f"SELECT * FROM old.past AS OF '{moment}'",
            f"SELECT n FROM old.counted AS OF '{moment}' WHERE k = 1", "SELECT * FROM old.counted",
            "SELECT k, c, n FROM old.past WHERE v = 'changed'", "SELECT k, c, n FROM old.past WHERE v = 'v1'",
            "SELECT k, c FROM old.past WHERE n = 1000", "SELECT k, v, WRITETIME(v) FROM old.stamped",
            "SELECT index_name, options FROM system_schema.indexes")


def look_at_past(cwd, store, questions, expected):
    """The tables are what they were, and go on from there."""
    whole(cwd, store)
    with Door(cwd, store) as door:
        equal([[repr(row) for row in door(text)] for text in questions], expected)
        # Deletions that are remembered, and values, win against what clients say is older.
        door("UPDATE old.stamped USING TIMESTAMP 2500 SET v = 'late' WHERE k = 7")
        door("UPDATE old.stamped USING TIMESTAMP 1500 SET v = 'late' WHERE k = 8")
        equal(door("SELECT k, v FROM old.stamped WHERE k IN (7, 8)"), [(8, "second")])
        try:
            door("INSERT INTO old.past (k, c, n) VALUES (9, 9, 1000)")
            raise AssertionError("a unique index let another row have the same value")
        except InvalidRequest as error:
            contains(str(error), "unique index one")
        door("DELETE FROM old.past WHERE k = 1 AND c = 1")
        door("INSERT INTO old.past (k, c, v, n) VALUES (9, 9, 'changed', 1000)")
        equal(door("SELECT k, n FROM old.past WHERE v = 'changed'"), [(9, 1000)])
        equal([repr(row) for row in door(questions[1])], expected[1])
        door("UPDATE old.counted SET n = n + 7 WHERE k = 1")
        equal(door("SELECT n FROM old.counted WHERE k = 1"), door(questions[2]))
    whole(cwd, store)
