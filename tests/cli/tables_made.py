"""Tables with everything that one may have, for the tests of commands that copy them: a server with Cassandra's door,
a table with a column of each type, counters, keys of frozen collections and user types."""

import os
import re
import sys

try:
    from cassandra.cluster import Cluster
except ImportError:
    # Debian's package is for Debian's interpreter.
    if sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", "-B", *sys.argv])
    Cluster = None

from harness import Server, contains, ok


class Door(Server):
    """`with Door(dir, store) as door`: door(text) gives rows as tuples."""

    def __init__(self, cwd, store="data"):
        super().__init__(cwd, "--cql", "127.0.0.1:0", "--store", f"embedded:{store}")
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
    contains(ok("verify", "--quiet", "--store", f"embedded:{store}", cwd=cwd).stdout, " 0 findings")


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
