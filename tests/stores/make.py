"""Writes a store that has some of everything, by the binary of one commit, to be kept as test data:

    python3 tests/stores/make.py /path/to/frond tests/stores/NAME.tar.xz

The archive holds the store, closed and compacted, and what that binary itself says of it: the list
of its databases, the dump of each with all revisions, and every pair as `frond inspect` draws it.
Run it with the binary that is about to be replaced, never with the one that is to read the store.
"""

import base64
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse

FROND = os.path.abspath(sys.argv[1])
TARGET = os.path.abspath(sys.argv[2])
TALLY_DOCS = 1400  # more than two ranges have, so that they are split
BUILD_ATTEMPTS = 40  # to end a server in the middle of a build
UPLOAD_BYTES = 3 * 1024 * 1024
FAR_MS = 40_000_000_000_000  # since 1970: what expires is there as long as the archive is kept
ENV = dict(os.environ, LC_ALL="C", no_proxy="*", NO_PROXY="*")


def run(*args, cwd, check=True, stdin=None):
    result = subprocess.run([FROND, *args], cwd=cwd, env=ENV, capture_output=True, text=True,
                            input=stdin)
    if check and result.returncode != 0:
        raise SystemExit(f"{args}: {result.returncode}\n{result.stderr}")
    return result


class Server:
    def __init__(self, cwd, store, *options):
        self.log = open(cwd / "server.log", "a")
        self.process = subprocess.Popen(
            [FROND, "serve", "--http", "127.0.0.1:0", "--store", store, "--admin", "root:secret",
             *options],
            cwd=cwd, env=ENV, stdout=subprocess.PIPE, stderr=self.log, text=True)
        address = self.process.stdout.readline().split(" at ")[1].strip()
        self.host = urllib.parse.urlparse(address).netloc

    def connection(self):
        return http.client.HTTPConnection(self.host, timeout=60)

    def ask(self, method, path, body=None, kind="application/json", expect=(200, 201, 202)):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        c = self.connection()
        c.request(method, path, data, {
            "Content-Type": kind,
            "Authorization": "Basic " + base64.b64encode(b"root:secret").decode()})
        answer = c.getresponse()
        text = answer.read()
        c.close()
        assert answer.status in expect, f"{method} {path}: {answer.status} {text[:200]}"
        return json.loads(text) if text.strip() else None

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


def documents(server, db):
    """Documents of every shape, their revisions, conflicts, tombstones, attachments."""
    shapes = {
        "empty": {},
        "values": {"t": True, "f": False, "n": None, "i": -17, "big": 12345678901234567890,
                   "d": 0.1, "exp": 1e300, "text": "Grüße, 世界 \U0001f600", "nul": "a\u0000b"},
        "nested": {"a": {"b": {"c": [1, [2, [3, {"d": []}]], {}]}}, "": {"": ""}},
        "large": {"rows": [{"n": n, "text": "row %d" % n} for n in range(600)]},
        "ünï/cödé +": {"id": "with all sorts of characters"},
    }
    for name, body in shapes.items():
        server.ask("PUT", f"/{db}/{urllib.parse.quote(name, safe='')}", body)
    # Revised many times, then with conflicts from elsewhere, one of them deleted.
    rev = None
    for n in range(5):
        rev = server.ask("PUT", f"/{db}/revised" + (f"?rev={rev}" if rev else ""), {"n": n})["rev"]
    conflicts = [{"_id": "conflicts", "_rev": f"2-{'abcd'[n] * 32}", "from": n,
                  "_revisions": {"start": 2, "ids": ["abcd"[n] * 32, "e" * 32]},
                  **({"_deleted": True} if n == 3 else {})} for n in range(4)]
    conflicts.append({"_id": "opaque", "_rev": "3-made-by-a-client", "n": 1,
                      "_revisions": {"start": 3, "ids": ["made-by-a-client", "x", "y"]}})
    server.ask("POST", f"/{db}/_bulk_docs", {"new_edits": False, "docs": conflicts})
    # A tombstone that has members, one that has none, and a document that came back.
    for name, more in (("tombstone", {"_deleted": True, "why": "left", "by": {"name": "anna"}}),
                       ("gone", {"_deleted": True})):
        rev = server.ask("PUT", f"/{db}/{name}", {"here": True})["rev"]
        server.ask("PUT", f"/{db}/{name}?rev={rev}", more)
    rev = server.ask("PUT", f"/{db}/back", {"n": 1})["rev"]
    server.ask("DELETE", f"/{db}/back?rev={rev}")
    server.ask("PUT", f"/{db}/back", {"n": 2})
    # Attachments: small and large, compressed and not, kept over an edit, of a conflict.
    rev = server.ask("PUT", f"/{db}/pictures", {"_attachments": {
        "note.txt": {"content_type": "text/plain",
                     "data": base64.b64encode(b"a note " * 200).decode()},
        "dot.bin": {"content_type": "application/octet-stream",
                    "data": base64.b64encode(bytes(range(256))).decode()}}})["rev"]
    rev = server.ask("PUT", f"/{db}/pictures/large.bin?rev={rev}", b"0123456789" * 10000,
                     "application/octet-stream")["rev"]
    doc = server.ask("GET", f"/{db}/pictures")
    doc["caption"] = "kept"
    server.ask("PUT", f"/{db}/pictures", doc)
    # Local documents, what was purged, and the settings of the database.
    server.ask("PUT", f"/{db}/_local/checkpoint", {"session": "s", "history": [{"seq": 1}]})
    server.ask("PUT", f"/{db}/_local/large", {"rows": [{"n": n} for n in range(700)]})
    rev = server.ask("PUT", f"/{db}/purged", {"n": 1})["rev"]
    server.ask("POST", f"/{db}/_purge", {"purged": [rev]})
    server.ask("PUT", f"/{db}/_security", {"admins": {"names": ["anna"], "roles": ["boss"]},
                                           "members": {"names": [], "roles": ["staff"]}})
    server.ask("PUT", f"/{db}/_revs_limit", 20)
    server.ask("PUT", f"/{db}/_design/views", {"views": {"v": {"map": "function (doc) {}"}}})


def tallies(server, db):
    """So many documents that the counters by range are split, as the server does it by itself."""
    server.ask("PUT", f"/{db}")
    for first in range(0, TALLY_DOCS, 200):
        server.ask("POST", f"/{db}/_bulk_docs", {"docs": [
            {"_id": f"t{n:05}", "n": n} for n in range(first, first + 200)]})
    time.sleep(3)  # longer than few changes may wait
    server.ask("POST", f"/{db}/_bulk_docs", {"docs": [{"_id": "zz", "n": 0}]})
    time.sleep(3)


def index(server, db, name, definition, **more):
    server.ask("POST", f"/{db}/_index",
               dict({"index": definition, "ddoc": name, "name": name}, **more))


def indexes(server, db):
    """Entries of every shape: of all types, cut, of long ids, of a filter, of several columns."""
    server.ask("PUT", f"/{db}")
    index(server, db, "value", {"fields": ["value"]})
    index(server, db, "two", {"fields": [{"deep.value": "desc"}, {"_id": "desc"}]})
    index(server, db, "some", {"fields": ["n"],
                               "partial_filter_selector": {"kind": {"$eq": "some"}}})
    values = [None, False, True, 0, -1, 1.5, 1e300, 10 ** 40, -10 ** 400, "", "a", "Ä", "ä" * 900,
              "y" * 5000, [], [1, [2]], {}, {"a": {"b": None}}]
    server.ask("POST", f"/{db}/_bulk_docs", {"docs": [
        {"_id": f"v{n:02}", "value": value, "deep": {"value": n % 4}, "n": n,
         "kind": "some" if n % 2 else "other"} for n, value in enumerate(values)]})
    server.ask("POST", f"/{db}", {"_id": "i" * 6900, "value": "of a long id"})
    rev = server.ask("PUT", f"/{db}/edited", {"value": 1})["rev"]
    rev = server.ask("PUT", f"/{db}/edited?rev={rev}", {"value": 2})["rev"]
    rev = server.ask("PUT", f"/{db}/deleted", {"value": 1})["rev"]
    server.ask("DELETE", f"/{db}/deleted?rev={rev}")


def partitions(server, db):
    """Sizes in branches and counters, indexes of partitions and of all, a purge of a conflict."""
    server.ask("PUT", f"/{db}?partitioned=true")
    for n in range(30):
        server.ask("PUT", f"/{db}/{'ab'[n % 2]}:{n:02}", {"n": n, "text": "t" * n})
    rev = server.ask("PUT", f"/{db}/a:att", {"_attachments": {
        "note.txt": {"content_type": "text/plain",
                     "data": base64.b64encode(b"a note " * 200).decode()}}})["rev"]
    rev = server.ask("PUT", f"/{db}/a:gone", {"n": 1})["rev"]
    server.ask("DELETE", f"/{db}/a:gone?rev={rev}")
    server.ask("POST", f"/{db}/_bulk_docs", {"new_edits": False, "docs": [
        {"_id": "b:conflict", "_rev": f"1-{c * 32}", "from": c} for c in "abc"]})
    server.ask("POST", f"/{db}/_purge", {"b:conflict": [f"1-{'c' * 32}"]})
    index(server, db, "inside", {"fields": ["n"]})
    index(server, db, "across", {"fields": ["n"]}, partitioned=False)


def unfinished(cwd, attempt):
    """
    Right behind the deletion of a database and of an index, in the middle of an upload and of the
    build of another index: whether it was met in its middle.
    """
    server = Server(cwd, "embedded:store", "--config", "slow.ini")
    server.ask("PUT", "/dropped", expect=(201, 412))
    server.ask("POST", "/dropped/_bulk_docs", {"docs": [
        {"_id": f"d{n}", "n": n, "text": "some text"} for n in range(20)]})
    index(server, "tallies", "dropped", {"fields": ["n"]})
    upload = unfinished_upload(server, "packed")
    server.ask("DELETE", "/dropped")
    server.ask("DELETE", "/tallies/_index/dropped/json/dropped")
    c = server.connection()
    c.request("POST", "/tallies/_index", json.dumps({
        "index": {"fields": ["_id", "n"]}, "ddoc": f"begun{attempt}", "name": "begun"}).encode(), {
            "Content-Type": "application/json",
            "Authorization": "Basic " + base64.b64encode(b"root:secret").decode()})
    time.sleep(0.0005 * 1.15 ** attempt)  # up to a tenth of a second
    server.end(signal.SIGKILL)
    upload.close()
    c.close()
    drawn = run("inspect", "tallies", "--store", "embedded:store", cwd=cwd).stdout
    return "(1, building, " in drawn and '("indexes", "build", ' in drawn


def unfinished_upload(server, db):
    """The beginning of an attachment that never ends: the server is ended first."""
    c = server.connection()
    c.putrequest("PUT", f"/{db}/unfinished/large.bin")
    c.putheader("Content-Type", "application/octet-stream")
    c.putheader("Content-Length", str(2 * UPLOAD_BYTES))
    c.putheader("Authorization", "Basic " + base64.b64encode(b"root:secret").decode())
    c.endheaders()
    c.send(b"\0" * UPLOAD_BYTES)
    time.sleep(1)
    return c


def user(server, name, **more):
    return server.ask("PUT", f"/_users/org.couchdb.user:{urllib.parse.quote(name)}", {
        "type": "user", "name": name, "roles": [], **more})["rev"]


def people(server):
    """
    Users of every kind: by a password, by hashes of older CouchDBs, with roles, with a conflict,
    deleted, without a password; and a database for each, with the place of the chore behind it.
    """
    for setting, text in (("chttpd_auth/iterations", "1000"), ("couch_peruser/enable", "true")):
        server.ask("PUT", f"/_node/_local/_config/{setting}", text)
    user(server, "anna", password="apple", roles=["boss", "staff"])
    user(server, "Jürgen Ü", password="pärchen")
    user(server, "unhashed")
    salt = "00112233445566778899aabbccddeeff"
    user(server, "oldest", password_scheme="simple", salt=salt,
         password_sha=hashlib.sha1(b"pear" + salt.encode()).hexdigest())
    user(server, "older", password_scheme="pbkdf2", salt=salt, iterations=10,
         derived_key=hashlib.pbkdf2_hmac("sha1", b"plum", salt.encode(), 10).hex())
    user(server, "changed", password="before",
         _rev=user(server, "changed", password="at first", roles=["staff"]))
    rev = user(server, "gone", password="quince")
    server.ask("DELETE", f"/_users/org.couchdb.user:gone?rev={rev}")
    server.ask("POST", "/_users/_bulk_docs", {"new_edits": False, "docs": [
        {"_id": "org.couchdb.user:twice", "_rev": f"1-{c * 32}", "type": "user", "name": "twice",
         "roles": [role], "password_scheme": "pbkdf2", "salt": salt, "iterations": 10,
         "derived_key": hashlib.pbkdf2_hmac("sha1", password, salt.encode(), 10).hex()}
        for c, role, password in (("a", "lost", b"no"), ("b", "won", b"yes"))]})
    names = ("anna", "Jürgen Ü", "unhashed", "oldest", "older", "changed", "twice")
    for name in names:
        path = f"/userdb-{name.encode().hex()}"
        for _ in range(300):
            answer = server.ask("GET", path + "/_security", expect=(200, 404))
            if answer.get("members", {}).get("names") == [name]:
                break
            time.sleep(0.1)
        else:
            raise SystemExit(f"no database for {name}")
        server.ask("PUT", f"{path}/mine", {"of": name})


def views(server, db):
    """Two views, one of them with sums, that are built; another that nobody has asked."""
    server.ask("PUT", f"/{db}/_design/built", {"views": {
        "kinds": {"map": "function (doc) { if (doc.n) emit(doc.n % 3, doc.n); }",
                  "reduce": "_sum"},
        "ids": {"map": "function (doc) { emit([doc._id.length, doc._id], null); }"}}})
    server.ask("GET", f"/{db}/_design/built/_view/kinds")
    server.ask("PUT", f"/{db}/_design/unasked", {"views": {
        "n": {"map": "function (doc) { emit(doc.n); }"}}, "autoupdate": False})


def items(cwd):
    """Keys of Redis's clients of every type, and what they were before: a database with history."""
    server = Server(cwd, "embedded:store", "--redis", "127.0.0.1:0")
    log = (cwd / "server.log").read_text()
    port = int(log.split("event=redis address=127.0.0.1:")[-1].split()[0])
    long = "n" * 1500
    commands = [
        ["SET", "value", "before"], ["SET", "chunks", "c" * 200000], ["SET", "k" * 2000, "v"],
        ["HSET", "hash", "f", "1", "g", "2", long, "3"],
        ["HPEXPIREAT", "hash", FAR_MS, "FIELDS", "1", "g"],
        ["SADD", "set", "a", "b", long], ["ZADD", "zset", "1", "a", "2.5", "b", "-inf", long],
        ["ZADD", "ranks", *[x for n in range(200) for x in (n, f"m{n}")]],
        ["RPUSH", "list", *[f"e{n}" for n in range(100)]], ["LINSERT", "list", "BEFORE", "e50", "i"],
        ["XADD", "stream", "1-1", "f", "v"], ["XADD", "stream", "2-1", "f", "w"],
        ["SET", "expires", "v", "PXAT", FAR_MS]]
    changes = [["SET", "value", "after"], ["DEL", "chunks"], ["HDEL", "hash", "f"],
               ["SREM", "set", "a"], ["ZINCRBY", "zset", "5", "a"], ["LPOP", "list", "10"],
               ["XDEL", "stream", "1-1"]]
    with socket.create_connection(("127.0.0.1", port)) as c:
        answers = c.makefile("rb")
        for db, words in [(0, commands + changes),
                          (1, [["FROND.HISTORY", "1000000"]] + commands + changes)]:
            for args in [["AUTH", "root", "secret"], ["SELECT", db], *words]:
                parts = [str(arg).encode() for arg in args]
                c.sendall(b"*%d\r\n" % len(parts) +
                          b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
                line = answers.readline()
                assert not line.startswith(b"-"), line
                for _ in range(int(line[1:]) if line[:1] == b"*" else line[:1] == b"$"):
                    if line[:1] != b"*" or answers.readline()[:1] == b"$":
                        answers.readline()
    server.end()


def load(cwd, name, *lines):
    run("load", name, "-", "--quiet", "--store", "embedded:store", cwd=cwd,
        stdin="".join(json.dumps(line) + "\n" for line in lines))


def collections(cwd):
    """Documents of MongoDB's clients in both schemes, of all types, with indexes and a validator."""
    indexes = [{"v": 2, "key": {"n": 1, "tags": -1}, "name": "n_tags"},
               {"v": 2, "key": {"own": 1}, "name": "own", "unique": True, "sparse": True},
               {"v": 2, "key": {"n": "hashed"}, "name": "hashed",
                "partialFilterExpression": {"n": {"$gte": 5}}}]
    ids = [{"$minKey": 1}, None, -7, {"$numberDouble": "0.5"}, {"$numberDecimal": "1.50"}, "text",
           {"a": 1}, {"$binary": {"base64": "AAEC", "subType": "80"}},
           {"$oid": "5f0000000000000000000001"}, False, {"$date": {"$numberLong": "1600000000000"}},
           {"$timestamp": {"t": 1, "i": 2}}, "i" * 2000]
    for scheme in ("packed", "exploded"):
        load(cwd, f"mongo:shop.{scheme}",
             {"frond": "collection", "format": 2, "scheme": scheme,
              "options": {"validator": {"n": {"$exists": True}}, "validationLevel": "strict",
                          "validationAction": "error"}, "indexes": indexes},
             *({"_id": id, "n": n, "tags": ["a", f"t{n % 3}"], "own": f"o{n}",
                "in": {"b": {"1": "a name of digits"}, "a": [[], {}, [{"x": None}]]},
                "nan": {"$numberDouble": "NaN"}, "long": {"$numberLong": str(2 ** 53 + 1)},
                "code": {"$code": "f()", "$scope": {"x": 1}},
                "pattern": {"$regularExpression": {"pattern": "^a", "options": "i"}}}
               for n, id in enumerate(ids)),
             {"_id": "chunks", "n": 100, "text": "c" * 200000},
             {"_id": "ahead", "n": 101, "text": "a" * 2500000})
        load(cwd, f"mongo:shop.{scheme}", {"_id": "text", "n": 1000, "own": "another"})


def rows(cwd):
    """Rows of every shape, one of which expires in the far future, in a database with history."""
    described = {"frond": "rows", "format": 1, "hash": [{"name": "user"}],
                 "range": [{"name": "at"}], "columns": ["text"], "ttl_ms": 0,
                 "history_seconds": 1000000}
    for text in ("before", "after"):
        load(cwd, "rows:msgs", described,
             *({"key": {"user": f"u{n % 5}", "at": n}, "type": "inserted",
                "written_us": 1795276357782000 + (text == "after"),
                "leaves": [{"path": ["text"], "value": f"{text} {n}",
                            "written_us": 1795276357782000 + (text == "after")}]}
               for n in range(50)))


class Cql:
    """Cassandra's protocol, as much as statements need: version 4, one request at a time."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.answers = self.socket.makefile("rb")
        version = b"CQL_VERSION", b"3.0.0"
        self.ask(1, struct.pack(">H", 1) + b"".join(struct.pack(">H", len(s)) + s for s in version))
        token = b"\0root\0secret"
        self.ask(15, struct.pack(">i", len(token)) + token)

    def ask(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBI", 4, 0, 0, opcode, len(body)) + body)
        _, _, _, code, length = struct.unpack(">BBhBI", self.answers.read(9))
        answer = self.answers.read(length)
        assert code != 0, answer

    def __call__(self, text):
        text = text.encode()
        self.ask(7, struct.pack(">I", len(text)) + text + struct.pack(">HB", 1, 0))


def tables(cwd):
    """Tables of Cassandra's clients: keys, columns and values of every kind, dropped columns, counters, lives."""
    server = Server(cwd, "embedded:store", "--cql", "127.0.0.1:0")
    log = (cwd / "server.log").read_text()
    cql = Cql(int(log.split("event=cql address=127.0.0.1:")[1].split()[0]))
    cql("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    cql("CREATE TYPE shop.address (street text, no int)")
    cql("CREATE TYPE shop.person (name text, home frozen<address>)")
    cql("CREATE TABLE shop.everything (k int, c timeuuid, a ascii, b bigint, bl blob, bo boolean, da date, de decimal, "
        "d double, du duration, f float, i inet, s smallint, t text, ti time, ts timestamp, y tinyint, u uuid, v varint, "
        "l list<int>, m map<text, frozen<list<double>>>, n set<inet>, fl frozen<list<text>>, tu tuple<int, text>, "
        "p person, fp frozen<person>, st text static, sm map<int, text> static, gone text, PRIMARY KEY (k, c)) "
        "WITH CLUSTERING ORDER BY (c DESC) AND comment = 'everything'")
    c = "50554d6e-29bb-11e5-b345-feff819cdc9f"
    values = {
        "a": "'plain'", "b": "-9223372036854775808", "bl": "0x00ff", "bo": "true", "da": "'1583-01-01'", "de": "-1.50",
        "d": "NaN", "du": "-1mo2d3ns", "f": "0.1", "i": "'10.0.0.1'", "s": "-32768", "t": "'Gr\u00fc\u00dfe'",
        "ti": "'23:59:59.999999999'", "ts": "1600000000000", "y": "-128", "u": "00000000-0000-0000-0000-000000000000",
        "v": "-" + "9" * 900, "l": "[3, 1, 3]", "m": "{'x': [1.5, 2], '': []}", "n": "{'::1', '127.0.0.1'}",
        "fl": "['b', 'a']", "tu": "(1, null)", "p": "{name: 'ann'}", "fp": "{name: null, home: {street: 'x', no: 3}}",
        "gone": "'dropped'"}
    cql(f"INSERT INTO shop.everything (k, c, {', '.join(values)}) VALUES (1, {c}, {', '.join(values.values())})")
    for column, value in values.items():
        cql(f"INSERT INTO shop.everything (k, c, {column}) VALUES ({hash_of(column)}, {c}, {value})")
    cql(f"UPDATE shop.everything SET l = l + [9], m['y'] = [] WHERE k = 1 AND c = {c}")
    cql(f"UPDATE shop.everything SET l = [0] + l WHERE k = 1 AND c = {c}")
    cql("UPDATE shop.everything SET st = 'of all', sm = {1: 'one', 2: 'two'} WHERE k = 1")
    cql("UPDATE shop.everything SET st = 'alone' WHERE k = 2")
    cql(f"INSERT INTO shop.everything (k, c, t) VALUES (3, {c}, 'for years') USING TTL 630000000")
    cql("ALTER TABLE shop.everything DROP gone")
    cql("ALTER TABLE shop.everything ADD later int")
    cql("CREATE TABLE shop.\"Keys\" (a frozen<set<int>>, \"B b\" decimal, c frozen<person>, d tuple<text, bigint>, "
        "v boolean, PRIMARY KEY ((a, \"B b\"), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)")
    cql("INSERT INTO shop.\"Keys\" (a, \"B b\", c, d) VALUES ({2, 1}, 1.50, {name: 'x'}, ('y', null))")
    cql("CREATE TABLE shop.counts (k int, c text, a counter, b counter, PRIMARY KEY (k, c))")
    cql("UPDATE shop.counts SET a = a + 5, b = b - 7 WHERE k = 1 AND c = 'x'")
    cql("CREATE TABLE shop.indexed (k int, c int, t text, n int, long blob, PRIMARY KEY (k, c)) "
        "WITH transactions = {'enabled': true}")
    cql("CREATE INDEX indexed_by_text ON shop.indexed (t)")
    cql("CREATE UNIQUE INDEX indexed_by_both ON shop.indexed (t, n) WITH CLUSTERING ORDER BY (n DESC)")
    cql("CREATE INDEX indexed_in_part ON shop.indexed (n) WHERE n > 5")
    for n in range(10):
        cql(f"INSERT INTO shop.indexed (k, c, t, n) VALUES ({n % 3}, {n}, 'text {n % 4}', {n})")
    cql(f"UPDATE shop.indexed SET long = 0x{'ab' * 200000} WHERE k = 1 AND c = 1")
    cql("CREATE TABLE shop.past (k int PRIMARY KEY, v text) WITH history_seconds = 1000000000")
    for n in range(5):
        cql(f"INSERT INTO shop.past (k, v) VALUES ({n % 2}, 'version {n}')")
    cql("DELETE FROM shop.past WHERE k = 0")
    packed = "CREATE TABLE shop.{} (k int PRIMARY KEY, a int, b text, c text) WITH packed = true"
    for name in ("packed", "inserted"):
        cql(packed.format(name))
        for n in range(6):
            cql(f"INSERT INTO shop.{name} (k, a, b, c) VALUES ({n}, {n}, 'text {n}', '{'c' * n}')")
    cql("INSERT INTO shop.packed (k, a, b) VALUES (6, 6, 'for years') USING TTL 630000000")
    cql("UPDATE shop.packed SET b = 'over it' WHERE k = 1")
    cql("DELETE a FROM shop.packed WHERE k = 2")
    cql("CREATE TABLE shop.stamped (k int PRIMARY KEY, a int, b text)")
    for n in range(6):
        cql(f"INSERT INTO shop.stamped (k, a, b) VALUES ({n % 4}, {n}, 'b') USING TIMESTAMP {1000 - n}")
    cql("DELETE FROM shop.stamped USING TIMESTAMP 2000 WHERE k = 3")
    cql("CREATE TABLE shop.emptied (k int PRIMARY KEY)")
    cql("INSERT INTO shop.emptied (k) VALUES (1)")
    cql("TRUNCATE shop.emptied")
    server.end()


def more_items(cwd):
    """What no dump had when items() was written: documents, groups of streams, a past by versions."""
    server = Server(cwd, "embedded:store", "--redis", "127.0.0.1:0")
    log = (cwd / "server.log").read_text()
    lines = ["AUTH root secret", "SELECT 3", "FROND.HISTORY 1000000000 VERSIONS 3"]
    lines += [f"HSET versions f{n % 3} {n}" for n in range(8)] + ["SET versioned a", "RENAME versioned renamed"]
    lines += ["SET renamed b", "SELECT 4", """JSON.SET doc $ '{"a":{"b":[1,2.5,"x",null]},"long":"%s"}'""" % ("y" * 3000),
              "JSON.SET doc $.a.c true", "XADD s 1-1 f v", "XADD s 1-2 f v", "XGROUP CREATE s g 0",
              "XREADGROUP GROUP g one COUNT 1 STREAMS s >", "PFADD hll a b c", "GEOADD geo 13.361389 38.115556 Palermo"]
    with socket.create_connection(("127.0.0.1", int(log.split("event=redis address=127.0.0.1:")[-1].split()[0]))) as s:
        s.sendall("".join(f"{line}\r\n" for line in [*lines, "QUIT"]).encode())
        answers = b"".join(iter(lambda: s.recv(65536), b""))
    assert b"\r\n-" not in answers, answers
    server.end()


def hash_of(name):
    return int.from_bytes(hashlib.sha1(name.encode()).digest()[:4], "big", signed=True)


def fill(cwd):
    tables(cwd)
    collections(cwd)
    rows(cwd)
    items(cwd)
    more_items(cwd)
    server = Server(cwd, "embedded:store")
    for db, scheme in (("packed", "packed"), ("exploded", "exploded")):
        server.ask("PUT", f"/{db}?scheme={scheme}")
        documents(server, db)
    tallies(server, "tallies")
    indexes(server, "indexes")
    partitions(server, "partitions")
    server.ask("PUT", "/_users")
    people(server)
    views(server, "indexes")
    server.ask("PUT", "/_node/_local/_config/cors/origins", "https://example.org")
    server.ask("PUT", "/_node/_local/_config/couchdb/max_document_size", "4000000")
    for db in ("moved", "moving"):
        server.ask("PUT", f"/{db}")
        server.ask("POST", f"/{db}/_bulk_docs", {"docs": [
            {"_id": f"d{n}", "n": n, "text": "some text"} for n in range(20)]})
    server.end()
    # What is left of a moved database, one that came from elsewhere, and a move that was ended.
    run("move", "--quiet", "--keep-source", "--from", "embedded:store", "--to", "embedded:other",
        "moved", cwd=cwd)
    server = Server(cwd, "embedded:other")
    server.ask("PUT", "/arrived")
    server.ask("PUT", "/arrived/d", {"n": 1})
    server.end()
    run("move", "--quiet", "--from", "embedded:other", "--to", "embedded:store", "arrived", cwd=cwd)
    move = subprocess.Popen([FROND, "move", "--from", "embedded:store", "--to", "embedded:other",
                             "moving"], cwd=cwd, env=ENV, stderr=subprocess.PIPE)
    move.stderr.readline()  # "copying": it can be ended now, and stops before the next step
    move.send_signal(signal.SIGINT)
    move.wait()
    (cwd / "slow.ini").write_text("[indexes]\nbuild_percent = 1\nbuild_threads = 1\n")
    for attempt in range(BUILD_ATTEMPTS):
        if unfinished(cwd, attempt):
            return
    raise SystemExit("no build was met in its middle")


def keep(cwd):
    run("compact", "--store", "embedded:store", cwd=cwd)
    names = []
    drawn = run("inspect", "--store", "embedded:store", cwd=cwd).stdout
    for line in drawn.splitlines():
        if line.startswith('database "'):
            kind = line.rsplit(", ", 1)[-1]
            kind = "mongo" if kind.endswith("collection") else kind.split()[0]
            name = line.split('"')[1]
            # Older binaries do not tell whose it is.
            named = ":" in name or kind not in ("redis", "rows", "mongo")
            names.append(name if named else f"{kind}:{name}")
    expected = cwd / "expected"
    expected.mkdir()
    (expected / "databases.json").write_text(json.dumps(sorted(names)))
    (expected / "inspect.txt").write_text(drawn)
    for name in names:
        revs = [] if ":" in name else ["--revs"]
        dump = run("dump", name, *revs, "--quiet", "--store", "embedded:store", cwd=cwd).stdout
        (expected / f"{name}.jsonl").write_text(dump)
    with tarfile.open(TARGET, "w:xz") as tar:
        tar.add(cwd / "store", "store", filter=lambda entry: None if "/LOG" in entry.name else entry)
        tar.add(expected, "expected")
    print(f"{TARGET}: {os.path.getsize(TARGET)} bytes, databases {', '.join(sorted(names))}")


def main():
    cwd = pathlib.Path(tempfile.mkdtemp(prefix="frond-make-"))
    try:
        fill(cwd)
        keep(cwd)
    finally:
        shutil.rmtree(cwd, ignore_errors=True)


main()
