#!/usr/bin/env python3
"""A guard against slow growth of what an operation costs, as TAP; no clock is looked at.

    guard.py SERVER            compares with figures.json
    guard.py SERVER --record   writes figures.json
    guard.py SERVER --profile  tells the functions that took the most instructions
    guard.py SERVER --only DB  the operations of one database: mongo, cql, rows

SERVER is tests/guard/server.c's program, of an optimised build. For each of a handful of operations
it counts the key-value pairs read and written, the allocations, the bytes copied and, under
callgrind, the instructions, all of frond's own code. Fewer than recorded is fine, and worth a new
record; more, beyond the tolerance, fails. Instructions are compared only where the compiler is the
one that they were recorded with, and where valgrind runs. What a compiler decides may be absent from
the record of an operation that was recorded with another one; all else must be there.
"""

import functools
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
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import cql_wire  # noqa: E402  a client of Cassandra's protocol
import mongo  # noqa: E402  a client of MongoDB's protocol
import rows_wire  # noqa: E402  a client of the protocol for rows

FIGURES = HERE / "figures.json"
EXACT = ("reads", "keys_read", "sets", "clears")  # no tolerance: a pair more is a decision
COMPILED = ("bytes_copied", "instructions")  # by compilers, which copy small and known lengths without a call
TOLERANCE = {"bytes_written": 0.02, "allocations": 0.05, "bytes_copied": 0.10,
             "instructions": 0.10}
# Of an operation that has next to none, or whose next stretch another thread may have come to read.
SPARE = {"allocations": 6, "bytes_copied": 256}
# Of a command of Redis's door: on the way from a frame to the commit nothing allocates outside of
# arenas. What is left are blocks of an arena that has outgrown its first one, buffers of a connection
# that had to wait for 100 ms, and what the sweep allocates when it comes in between. RocksDB's own
# are not counted: a write has its log's record, nodes of the write buffer and a writer's state; a
# read the slice of its value; a range its iterator.
SPARE_OF_COMMAND = 2
ADDED_TO = ("allocations", "bytes_copied", "instructions")  # by a busy machine
ATTEMPTS = 4    # to find as little as is recorded
REPEATS = 8     # of an operation that is measured, so that a stray wake-up weighs little
DOCS = 200      # in the database before
BULK = 100
PAGE = 100
PIPELINE = 16   # commands of Redis's that come together
# Where blocks of a list begin is drawn by an id that is another one in each run.
DRAWING = tuple(f"{name}, {PIPELINE} in a pipeline" for name in ("LPUSH", "RPUSH", "HSET"))
DRAWN = ("reads", "keys_read", "sets", "bytes_written", "bytes_copied", "instructions")
WIDE = 4        # groups of a view that are not read row by row
PROFILED = 25   # functions of an operation that a profile tells
START_S = 60


def document(i):
    """1,000 bytes in ten members or so."""
    return {"name": f"name-{i:06}", "number": i, "price": i * 0.25, "paid": i % 2 == 0,
            "created": f"2024-01-{i % 28 + 1:02}T00:00:00Z", "tags": ["one", "two", "three"],
            "address": {"street": f"{i} some street", "city": "somewhere", "code": f"{i:05}"},
            "note": ("a few words to fill it up " * 30)[:650], "type": "order",
            "email": f"someone-{i}@somewhere.example"}


def nested():
    """About 500 KB: what one path of it costs must not depend on that."""
    return {f"section-{s:03}": {f"entry-{e:02}": {"support": {m: {"version_added": str(e), "partial":
            False} for m in ("alpha", "beta", "gamma")}, "status": {"deprecated": False,
            "score": s}} for e in range(20)} for s in range(120)}


def worker_of(program):
    """The worker for functions of design documents, of the same build."""
    named = os.environ.get("FROND_JS_WORKER")
    return named or str(pathlib.Path(program).resolve().parents[2] / "frond-js")


class WholeRequests(http.client.HTTPConnection):
    """
    Sends each request in one piece. In two, the head and the body, the server reads once or twice,
    as the client's thread is scheduled, and the second time costs 2 % of a small write.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.pieces = b""

    def send(self, data):
        self.pieces += data

    def getresponse(self):
        pieces, self.pieces = self.pieces, b""
        super().send(pieces)
        return super().getresponse()


class Guarded:
    """The server under valgrind, or without."""

    def __init__(self, program, directory, valgrind):
        self.directory = pathlib.Path(directory)
        self.object = pathlib.Path(program).resolve().name  # as callgrind names it, behind its folder
        command = [program, str(self.directory / "store")]
        if valgrind:
            command = ["valgrind", "--tool=callgrind", "--collect-systime=no", "-q",
                       f"--callgrind-out-file={self.directory}/calls", *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | {"FROND_JS_WORKER": worker_of(program)})
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the server did not start")
        port, redis_port, mongo_port, cql_port, rows_port, self.compiler = line.strip().split(" ", 5)
        self.client = WholeRequests("127.0.0.1", int(port), timeout=120)
        self.redis_address = ("127.0.0.1", int(redis_port))
        self.redis = self.redis_client()
        self.command(("PING",))  # who says nothing is sent away while others are counted
        self.mongo_port = int(mongo_port)
        self.cql_port = int(cql_port)
        self.rows_port = int(rows_port)
        self.valgrind = valgrind
        self.dumps = 0
        self.names = {}  # of objects and functions, by their numbers
        self.costs = {}  # by object and function, of the last mark

    def ask(self, method, path, body=None, status=200):
        self.client.request(method, path, body=None if body is None else json.dumps(body),
                            headers={"Content-Type": "application/json"})
        answer = self.client.getresponse()
        text = answer.read()
        if answer.status != status:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]}")
        return json.loads(text)

    @functools.cached_property
    def mongo(self):
        """Connected when it is first used: a busy machine needs minutes for what is measured before."""
        return mongo.Client(self.mongo_port, timeout=120)

    def redis_client(self):
        return socket.create_connection(self.redis_address, timeout=120)

    def command(self, *commands, client=None, lines=None):
        """
        Commands of Redis's, one after the other in one pipeline, each answered by a line unless `lines`
        says how many there are.
        """
        client = client or self.redis
        client.sendall(b"".join(
            b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                               for word in (str(w).encode() for w in words))
            for words in commands))
        answer = self.lines(client, len(commands) if lines is None else lines)
        if b"-ERR" in answer:
            raise RuntimeError(f"{commands[0]}: {answer[:200]}")

    def lines(self, client, count):
        """So many lines of what a client of Redis's door is sent, and no more."""
        answer = b""
        while answer.count(b"\r\n") < count:
            more = client.recv(65536)
            if not more:
                raise RuntimeError(f"the connection has ended: {answer[:200]}")
            answer += more
        if answer.count(b"\r\n") > count:
            raise RuntimeError(f"more than {count} lines: {answer[:200]}")
        return answer

    def mark(self, name):
        counts = self.ask("GET", f"/_mark/{name}")
        self.dumps += 1
        if self.valgrind:
            dump = self.directory / f"calls.{self.dumps}"
            self.costs = costs_in(dump, self.names)
            counts["instructions"] = sum(cost for (name, function), cost in self.costs.items()
                                         if name.endswith("/" + self.object) and not is_asked_beside(function))
            if not counts["instructions"]:
                raise RuntimeError(f"callgrind has counted no instructions of {self.object}")
        return counts

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=START_S)


def is_asked_beside(function):
    """RocksDB calls it for each key when it writes files, whenever that is: while a busy machine keeps an
    operation waiting that may be for tens of thousands."""
    return function.startswith(("emb_entity_len", "extractor_"))


def costs_in(path, names):
    """
    Instructions by object and function. `names` are those that earlier dumps of the process have
    given numbers: a dump gives them once. The line behind "calls=" is a callee's sum.
    """
    costs = {}
    current = {"ob": "", "fn": ""}
    skip = False
    for line in path.read_text().splitlines():
        key, equals, rest = line.partition("=")
        if equals and key in ("ob", "cob", "fn", "cfn"):
            number, _, name = rest.partition(" ")
            if name:
                names[key[-2:], number] = name
            current[key] = names.get((key[-2:], number), "")
        elif key == "calls":
            skip = True
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if not skip:
                where = (current["ob"], current["fn"])
                costs[where] = costs.get(where, 0) + sum(int(c) for c in line.split()[1:2])
            skip = False
    return costs


def print_profile(name, costs):
    print(f"\n{name}: instructions of each time")
    objects = {}
    for (where, _), cost in costs.items():
        short = where.rsplit("/", 1)[-1]
        objects[short] = objects.get(short, 0) + cost
    for title, found in (("object", objects), ("function", costs)):
        for key, cost in sorted(found.items(), key=lambda item: -item[1])[:PROFILED]:
            label = key if isinstance(key, str) else f"{key[0].rsplit('/', 1)[-1]}: {key[1]}"
            print(f"  {cost // REPEATS:>10,} {title} {label}")


def operations(guarded, db):
    """Name, and what does it once; in this order, over one database."""
    revs = {}
    used = [DOCS]

    def put():
        used[0] += 1
        guarded.ask("PUT", f"/{db}/doc-{used[0]:06}", document(used[0]), 201)

    def update():
        doc = document(used[0] + 7)
        if "last" not in revs:
            revs["last"] = guarded.ask("GET", f"/{db}/doc-000001")["_rev"]
        doc["_rev"] = revs["last"]
        revs["last"] = guarded.ask("PUT", f"/{db}/doc-000001", doc, 201)["rev"]

    def bulk():
        first = used[0] + 1
        used[0] += BULK
        docs = [dict(document(i), _id=f"doc-{i:06}") for i in range(first, first + BULK)]
        guarded.ask("POST", f"/{db}/_bulk_docs", {"docs": docs}, 201)

    def get(path):
        return lambda: guarded.ask("GET", f"/{db}/{path}")

    def listing(path, rows):
        found = guarded.ask("GET", f"/{db}/{path}limit={PAGE}")
        if len(found[rows]) != PAGE:
            raise RuntimeError(f"{path}: {len(found[rows])} rows")

    return [
        ("PUT a new document", put),
        ("update a document", update),
        ("GET a document", get("doc-000042")),
        (f"_bulk_docs of {BULK}", bulk),
        (f"_all_docs, {PAGE} rows", lambda: listing("_all_docs?", "rows")),
        (f"_all_docs with documents, {PAGE} rows",
         lambda: listing("_all_docs?include_docs=true&", "rows")),
        (f"_changes, {PAGE} rows", lambda: listing("_changes?", "results")),
        (f"_changes with documents, {PAGE} rows",
         lambda: listing("_changes?include_docs=true&", "results")),
        ("a path of 500 KB", get("zz-big?path=/section-060/entry-10/status")),
        ("a path of 1 KB", get("doc-000042?path=/address")),
    ]


def queries(guarded, db):
    """The same for queries by an index, which comes last: writes would have to keep it."""
    guarded.ask("POST", f"/{db}/_index", {"index": {"fields": ["number"]}})
    guarded.ask("POST", f"/{db}/_index", {"index": {"fields": ["created"]}})
    wait_until_built(guarded, db)

    def find(rows, selector, **more):
        found = guarded.ask("POST", f"/{db}/_find", {"selector": selector, "limit": PAGE, **more})
        if len(found["docs"]) != rows:
            raise RuntimeError(f"{selector}: {len(found['docs'])} documents")

    return [
        ("_find of a document", lambda: find(1, {"number": 42})),
        (f"_find of {PAGE} documents", lambda: find(PAGE, {"number": {"$gt": 20}})),
        (f"_find of {PAGE} documents from the index alone",
         lambda: find(PAGE, {"number": {"$gt": 20}}, fields=["number"])),
        ("_find of 10 documents listed", lambda: find(10, {"number": {"$in": [*range(20, 30)]}})),
    ]


def indexed(guarded, db):
    """Over a database with three indexes: what reads much, a write, the build of one more."""
    used = [DOCS]

    def scan():
        found = guarded.ask("POST", f"/{db}/_find", {"selector": {"paid": 7}, "limit": PAGE})
        if found["docs"]:
            raise RuntimeError(f"a scan has found {len(found['docs'])} documents")

    def put():
        used[0] += 1
        guarded.ask("PUT", f"/{db}/doc-{used[0]:06}", document(used[0]), 201)

    def aggregate(selector, spec):
        guarded.ask("POST", f"/{db}/_find", {"selector": selector, "aggregate": spec})

    def build():
        guarded.ask("POST", f"/{db}/_index", index("created"))
        guarded.ask("DELETE", f"/{db}/_index/created/json/created")

    return [
        (f"_find without an index, {DOCS} documents", scan),
        ("a count of a range of an index",
         lambda: aggregate({"number": {"$gt": 20}}, {"count": True})),
        (f"sums of groups, {DOCS} entries of an index",
         lambda: aggregate({"price": {"$gte": 0}}, {"group_by": ["price"], "sum": ["price"]})),
        ("PUT a document with three indexes", put),
        ("an index built and dropped", build),
    ]


def viewed(guarded, db):
    """Views that are up to date; and what a validator adds to writes."""
    used = [DOCS]
    revs = {}
    views = f"/{db}/_design/v/_view"

    def rows(path, count):
        found = guarded.ask("GET", f"{views}/{path}")["rows"]
        if len(found) != count:
            raise RuntimeError(f"{path}: {len(found)} rows")

    def put():
        used[0] += 1
        guarded.ask("PUT", f"/{db}-checked/doc-{used[0]:06}", document(used[0]), 201)

    def update():
        doc = document(used[0] + 7)
        if "last" not in revs:
            revs["last"] = guarded.ask("GET", f"/{db}-checked/doc-000001")["_rev"]
        doc["_rev"] = revs["last"]
        revs["last"] = guarded.ask("PUT", f"/{db}-checked/doc-000001", doc, 201)["rev"]

    def bulk():
        first = used[0] + 1
        used[0] += BULK
        docs = [dict(document(i), _id=f"doc-{i:06}") for i in range(first, first + BULK)]
        guarded.ask("POST", f"/{db}-checked/_bulk_docs", {"docs": docs}, 201)

    return [
        ("the first row of a view", lambda: rows("one?limit=1", 1)),
        (f"{PAGE} rows of a view", lambda: rows(f"one?limit={PAGE}", PAGE)),
        ("a view reduced as a whole", lambda: rows("ten", 1)),
        (f"{WIDE} groups of {DOCS * 10 // WIDE} rows",
         lambda: rows("ten?group_level=1", WIDE)),
        (f"{PAGE} groups of a row", lambda: rows(f"one_by_one?group=true&limit={PAGE}", PAGE)),
        ("PUT a new document under a validator", put),
        ("update a document under a validator", update),
        (f"_bulk_docs of {BULK} under a validator", bulk),
    ]


def fill_viewed(guarded, db):
    for name in (db, f"{db}-checked"):
        guarded.ask("PUT", f"/{name}", status=201)
        docs = [dict(document(i), _id=f"doc-{i:06}") for i in range(1, DOCS + 1)]
        guarded.ask("POST", f"/{name}/_bulk_docs", {"docs": docs}, 201)
    guarded.ask("PUT", f"/{db}/_design/v", {"views": {
        "one": {"map": "(doc) => emit(doc.number, null)"},
        "one_by_one": {"map": "(doc) => emit(doc.number, null)", "reduce": "_count"},
        "ten": {"map": f"(doc) => {{ for (let i = 0; i < 10; i++) emit([doc.number % {WIDE}, i], "
                       "doc.number); }", "reduce": "_sum"}}}, 201)
    guarded.ask("PUT", f"/{db}-checked/_design/v", {
        "validate_doc_update": "(doc) => { if (!doc.type) throw {forbidden: 'no type'}; }"}, 201)
    wait_until_updated(guarded, f"/{db}/_design/v/_view/one?limit=1", f"/{db}/_design/v/_info")


def commands(guarded, db):
    """
    Of Redis's door. Bodies of collections have other ids in each run, which are not of one length in
    keys, and by which blocks of lists and sorted sets are drawn. So of pushes the allocations are
    counted alone, and members are put that are there: nothing is written then.
    """
    used = [0]
    documents = []
    lists = []
    fields = []

    def once(*words, count=1):
        def run():
            made = []
            for _ in range(count):
                used[0] += 1
                made.append([str(w).replace("#", f"{used[0]:06}") for w in words])
            guarded.command(*made)
        return run

    def of_document(name, *words):
        """Of one that is made when it is first needed: its leaves would be in the way of the others."""
        def run():
            if not documents:
                documents.append(True)
                half = {section: part for section, part in nested().items() if section < "section-060"}
                guarded.command(("JSON.SET", "document", "$", json.dumps(half)))
            guarded.command((name, "document", *words), lines=2 if name == "JSON.GET" else 1)
        return run

    def elements():
        """Of a list whose elements were pushed one by one, so that each has a pair of its own."""
        if not lists:
            lists.append(True)
            for _ in range(PAGE):
                guarded.command(("RPUSH", f"{db}-e", "element"))
        guarded.command(("LRANGE", f"{db}-e", 0, PAGE - 1), lines=1 + 2 * PAGE)

    def field_of_five():
        """Of a hash that lies in one pair."""
        if not fields:
            fields.append(True)
            guarded.command(("HSET", f"{db}-five", *five))
        used[0] += 1
        guarded.command(*[("HSET", f"{db}-five", "field3", f"{used[0]:06}-{n:02}") for n in range(PIPELINE)])

    def two_members():
        used[0] += 1
        keys = [f"{db}-pair{used[0]:06}-{n:02}" for n in range(PIPELINE)]
        guarded.command(*[("SADD", key, "first") for key in keys])
        guarded.command(*[("SADD", key, "second") for key in keys])

    five = [word for n in range(5) for word in (f"field{n}", "value #")]
    value = "v" * 100
    return [
        ("SET of one key", once("SET", f"{db}-s", value)),
        ("SET of a new key", once("SET", f"{db}-#", value)),
        (f"SET of {PIPELINE} keys in a pipeline", once("SET", f"{db}-p#", value, count=PIPELINE)),
        ("STRLEN", once("STRLEN", f"{db}-s")),
        ("INCR", once("INCR", f"{db}-n")),
        (f"SADD of a member, {PIPELINE} in a pipeline",
         once("SADD", f"{db}-m", "member", count=PIPELINE)),
        (f"ZADD of a member, {PIPELINE} in a pipeline",
         once("ZADD", f"{db}-z", "1", "member", count=PIPELINE)),
        (f"LPUSH, {PIPELINE} in a pipeline", once("LPUSH", f"{db}-l", value, count=PIPELINE)),
        (f"RPUSH, {PIPELINE} in a pipeline", once("RPUSH", f"{db}-r", value, count=PIPELINE)),
        (f"LRANGE of {PAGE} elements", elements),
        (f"HSET, {PIPELINE} in a pipeline", once("HSET", f"{db}-h", "#", value, count=PIPELINE)),
        (f"HSET of 5 fields, {PIPELINE} new keys in a pipeline",
         once("HSET", f"{db}-hash#", *five, count=PIPELINE)),
        (f"HSET of a field of 5, {PIPELINE} in a pipeline", field_of_five),
        (f"SADD, {PIPELINE} new keys in a pipeline", once("SADD", f"{db}-set#", "member", count=PIPELINE)),
        (f"SADD of a first and then a second member, {PIPELINE} keys in a pipeline", two_members),
        (f"ZADD, {PIPELINE} new keys in a pipeline",
         once("ZADD", f"{db}-zset#", "#", "member", count=PIPELINE)),
        (f"ZADD of another score, {PIPELINE} in a pipeline",
         once("ZADD", f"{db}-score", "#", "member", count=PIPELINE)),
        ("JSON.GET of a member", of_document("JSON.GET", "$.section-007.entry-03.support")),
        ("JSON.SET of a member", of_document("JSON.SET", "$.section-007.entry-03.status.score", "7")),
    ]


def tracked(guarded, db):
    """Clients that are told of changes (CLIENT TRACKING): what they read, and what tells them."""
    push_lines = 6  # its length; "invalidate" with a line in front; one key, likewise
    get_lines = 2
    value = "v" * 100
    default, broadcast = (guarded.redis_client() for _ in range(2))
    key = f"{db}-tracked"
    guarded.command(("SET", key, value))
    for client, options in ((default, ()), (broadcast, ("BCAST", "PREFIX", f"{db}-b-"))):
        client.sendall(b"HELLO 3\r\n")
        hello = b""
        while not hello.endswith(b"modules\r\n*0\r\n"):
            hello += client.recv(65536)
        guarded.command(("CLIENT", "TRACKING", "ON", *options), client=client)

    def get(client, name):
        guarded.command(("GET", name), client=client, lines=get_lines)

    def told(client, name):
        answer = guarded.lines(client, push_lines)
        if b"invalidate" not in answer or name.encode() not in answer:
            raise RuntimeError(f"not told of {name}: {answer[:200]}")

    def set_read():
        get(default, key)
        guarded.command(("SET", key, value))
        told(default, key)

    def set_prefixed():
        guarded.command(("SET", f"{db}-b-1", value))
        told(broadcast, f"{db}-b-1")

    return [
        ("GET of a client that tracks what it reads", lambda: get(default, key)),
        ("GET of a client that tracks a prefix", lambda: get(broadcast, key)),
        ("GET of a key that is tracked, a SET of it, and what tells of that", set_read),
        ("SET of a key of a prefix that is tracked, and what tells of that", set_prefixed),
    ]


def fill_commands(guarded, _):
    """Under valgrind every command is slow, which must not be logged. A SET makes the database."""
    guarded.command(("CONFIG", "SET", "slowlog-log-slower-than", "-1"))
    guarded.command(("SET", "first", "value"))


def collections(guarded, db):
    """Of MongoDB's door."""
    used = [DOCS]

    def ask(what, document, **sections):
        answer = guarded.mongo(document, db=db, **sections)
        if not answer["ok"] or "writeErrors" in answer:
            raise RuntimeError(f"{what}: {answer}")
        return answer

    def new():
        used[0] += 1
        return {"_id": used[0], **document(used[0])}

    def insert(count):
        docs = [new() for _ in range(count)]
        ask("insert", {"insert": "c"}, sections=mongo.sequence("documents", *docs))

    def find(filter_, count):
        answer = ask("find", {"find": "c", "filter": filter_, "batchSize": PAGE})
        if len(answer["cursor"]["firstBatch"]) != count:
            raise RuntimeError(f"{filter_}: {len(answer['cursor']['firstBatch'])} documents")

    def update(change):
        answer = ask("update", {"update": "c", "updates": [{"q": {"_id": 42}, "u": change}]})
        if answer["nModified"] != 1:
            raise RuntimeError(f"{change}: {answer}")

    def set_next():
        used[0] += 1
        update({"$set": {"number": used[0]}})

    def group():
        ask("aggregate", {"aggregate": "g", "cursor": {}, "pipeline": [
            {"$group": {"_id": "$group", "sum": {"$sum": "$number"}}}]})

    def find_group():
        answer = ask("find", {"find": "g", "filter": {"group": 1}, "batchSize": PAGE + 1})
        if len(answer["cursor"]["firstBatch"]) != PAGE:
            raise RuntimeError(f"a group has {len(answer['cursor']['firstBatch'])} documents")

    return [
        ("insert of a document", lambda: insert(1)),
        (f"insert of {BULK} documents", lambda: insert(BULK)),
        ("find of a document by _id", lambda: find({"_id": 42}, 1)),
        (f"find of {PAGE} documents", lambda: find({}, PAGE)),
        (f"find of {PAGE} documents by an index", find_group),
        ("update of a member", set_next),
        (f"$group of {PAGE * 2} documents", group),
    ]


def fill_collections(guarded, db):
    docs = [{"_id": i, **document(i)} for i in range(1, DOCS + 1)]
    guarded.mongo({"insert": "c"}, db=db, sections=mongo.sequence("documents", *docs))
    docs = [{"_id": i, "group": i % 2, "number": i, "name": f"name-{i:06}"} for i in range(PAGE * 2)]
    guarded.mongo({"insert": "g"}, db=db, sections=mongo.sequence("documents", *docs))
    guarded.mongo({"createIndexes": "g", "indexes": [{"key": {"group": 1}, "name": "group_1"}]}, db=db)


CQL_EXECUTE, CQL_VALUES = 0xa, 1
CQL_COLUMNS = ("a", "b", "c", "d", "e", "f")
CQL_VALUE = "v" * 166  # 1,000 bytes in all
CQL_TABLES = (
    "CREATE KEYSPACE {0} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
    "CREATE TABLE {0}.t (k bigint PRIMARY KEY, a text, b text, c text, d text, e text, f text)",
    "CREATE TABLE {0}.i (k bigint PRIMARY KEY, a text, b text, c text, d text, e text, f text)",
    "CREATE TABLE {0}.u (k bigint PRIMARY KEY, a text, b text, c text, d text, e text, f text) WITH packed = false",
    "CREATE TABLE {0}.p (k bigint, c bigint, v text, PRIMARY KEY (k, c))",
    "CREATE TABLE {0}.n (k bigint PRIMARY KEY, n counter)",
)


class Prepared:
    """A prepared statement on a connection of Cassandra's door: its frames, and what answers them."""

    def __init__(self, client, text):
        (_, _, _, opcode), body = client.ask(cql_wire.PREPARE, struct.pack(">I", len(text)) + text.encode())
        if opcode != cql_wire.RESULT:
            raise RuntimeError(f"{text}: {body[:200]}")
        self.client, self.text = client, text
        self.id = body[4:6 + struct.unpack(">H", body[4:6])[0]]

    def frame(self, *values, stream=1):
        body = self.id + struct.pack(">HBH", 1, CQL_VALUES, len(values))
        for value in values:
            encoded = struct.pack(">q", value) if isinstance(value, int) else value.encode()
            body += struct.pack(">i", len(encoded)) + encoded
        return struct.pack(">BBhBI", 4, 0, stream, CQL_EXECUTE, len(body)) + body

    def __call__(self, *each, rows=None):
        """Executes it with each of these tuples of values, all of them sent together."""
        self.client.socket.sendall(b"".join(self.frame(*values, stream=i) for i, values in enumerate(each)))
        for _ in each:
            (_, _, _, opcode), body = self.client.read()
            if opcode != cql_wire.RESULT:
                raise RuntimeError(f"{self.text}: {body[:200]}")
            if rows is not None and len(cql_wire.rows_of(body)) != rows:
                raise RuntimeError(f"{self.text}: {len(cql_wire.rows_of(body))} rows")


def cql_client(guarded):
    client = cql_wire.Connection(guarded.cql_port)
    client.socket.settimeout(120)
    client.start()
    return client


def table_rows(guarded, db):
    """Of Cassandra's door: rows of six columns, as hashes of Redis's door may have."""
    client = cql_client(guarded)
    used = [DOCS]
    columns = ", ".join(CQL_COLUMNS)
    inserts = {table: Prepared(client, f"INSERT INTO {db}.{table} (k, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?)")
               for table in "tiu"}
    select = Prepared(client, f"SELECT * FROM {db}.t WHERE k = ?")
    select_unpacked = Prepared(client, f"SELECT * FROM {db}.u WHERE k = ?")
    one_column = Prepared(client, f"SELECT a FROM {db}.t WHERE k = ?")
    update = Prepared(client, f"UPDATE {db}.t SET a = ? WHERE k = ?")
    update_other = Prepared(client, f"UPDATE {db}.i SET b = ? WHERE k = ?")
    update_indexed = Prepared(client, f"UPDATE {db}.i SET a = ? WHERE k = ?")
    conditional = Prepared(client, f"UPDATE {db}.t SET a = ? WHERE k = ? IF b = ?")
    if_exists = Prepared(client, f"UPDATE {db}.t SET a = ? WHERE k = ? IF EXISTS")
    count = Prepared(client, f"UPDATE {db}.n SET n = n + 1 WHERE k = ?")
    remove = Prepared(client, f"DELETE FROM {db}.t WHERE k = ?")
    partition = Prepared(client, f"SELECT * FROM {db}.p WHERE k = ?")
    found = Prepared(client, f"SELECT k FROM {db}.i WHERE a = ?")
    listing = Prepared(client, f"SELECT * FROM {db}.t LIMIT {PAGE}")

    def row(n=None):
        used[0] += 1
        return (used[0] if n is None else n, *[CQL_VALUE] * len(CQL_COLUMNS))

    def fresh():
        used[0] += 1
        return f"{used[0]:<166}"

    return [
        ("INSERT of a row", lambda: inserts["t"](row())),
        (f"INSERT of {PIPELINE} rows together", lambda: inserts["t"](*[row() for _ in range(PIPELINE)])),
        ("SELECT of a row", lambda: select((42,), rows=1)),
        (f"SELECT of {PIPELINE} rows together", lambda: select(*[(n,) for n in range(PIPELINE)], rows=1)),
        ("SELECT of a column", lambda: one_column((42,), rows=1)),
        ("SELECT of no row", lambda: select((-1,), rows=0)),
        ("INSERT of a row with an index", lambda: inserts["i"](row())),
        # From here on rows have leaves.
        ("UPDATE of a column", lambda: update((CQL_VALUE, 42))),
        ("UPDATE that no index looks at", lambda: update_other((fresh(), 42))),
        ("UPDATE of a column of an index", lambda: update_indexed((fresh(), 42))),
        ("INSERT of a row beside leaves", lambda: inserts["t"](row())),
        ("INSERT of a row with an index beside leaves", lambda: inserts["i"](row())),
        ("SELECT of a row beside leaves", lambda: select((42,), rows=1)),
        ("INSERT of a row that is not packed", lambda: inserts["u"](row())),
        ("SELECT of a row that is not packed", lambda: select_unpacked((42,), rows=1)),
        ("UPDATE with a condition", lambda: conditional((CQL_VALUE, 42, CQL_VALUE))),
        ("UPDATE with IF EXISTS", lambda: if_exists((CQL_VALUE, 42))),
        ("UPDATE of a counter", lambda: count((42,))),
        ("DELETE of a row", lambda: remove((used[0],))),
        (f"SELECT of {PAGE} rows of a partition", lambda: partition((1,), rows=PAGE)),
        (f"SELECT of {PAGE} rows of a table", lambda: listing((), rows=PAGE)),
        ("SELECT by an index", lambda: found((CQL_VALUE + "7",), rows=1)),
    ]


def fill_tables(guarded, db):
    client = cql_client(guarded)
    for text in CQL_TABLES:
        client.query(text.format(db))
    client.query(f"CREATE INDEX ON {db}.i (a)")
    columns = ", ".join(CQL_COLUMNS)
    for table in "tiu":
        insert = Prepared(client, f"INSERT INTO {db}.{table} (k, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?)")
        for n in range(DOCS):
            insert((n, f"{CQL_VALUE}{n}", *[CQL_VALUE] * 5))
    insert = Prepared(client, f"INSERT INTO {db}.p (k, c, v) VALUES (?, ?, ?)")
    for n in range(PAGE):
        insert((1, n, CQL_VALUE))
    client.socket.close()


ROWS_COLUMNS = CQL_COLUMNS
ROWS_GROUPS = 10  # values of the column that has an index


def rows_of(numbers):
    return [(n, f"{n % ROWS_GROUPS}", *[CQL_VALUE] * (len(ROWS_COLUMNS) - 1)) for n in numbers]


def row_requests(guarded, db):
    """Of the door for rows: packed rows of six columns, as PostgreSQL's extension has them."""
    table = rows_wire.Rows(guarded.rows_port, db, "t", ROWS_COLUMNS)
    table.open()
    used = [DOCS]
    begin, commit = (rows_wire.BEGIN, b"\0"), (rows_wire.COMMIT, b"")
    by_index = struct.pack(">BI", 1, 1)  # by one column of the index 1

    def fresh(count):
        used[0] += count
        return rows_of(range(used[0] - count, used[0]))

    def found(count, request):
        """Runs a request whose answer begins with how many rows or groups there are."""
        answer = table.run(request)[0]
        if struct.unpack(">I", answer[:4])[0] != count:
            raise RuntimeError(f"{db}: {answer[:200]}")

    def update(n):
        return table.write(rows_wire.UPDATE, ["b"], [(n, CQL_VALUE)])

    return [
        ("GET of a column", lambda: found(1, table.get(["b"], 42))),
        ("GET of a row", lambda: found(1, table.get(ROWS_COLUMNS, 42))),
        ("GET of no row", lambda: found(1, table.get(ROWS_COLUMNS, -1))),
        ("WRITE that updates a column", lambda: table.run(update(42))),
        ("a transaction that gets a row and updates it",
         lambda: table.run(begin, table.get(ROWS_COLUMNS, 43), update(43), commit)),
        ("WRITE of a row", lambda: table.run(table.write(rows_wire.INSERT, ROWS_COLUMNS, fresh(1)))),
        (f"WRITE of {BULK} rows in order", lambda: table.run(table.write(rows_wire.INSERT, ROWS_COLUMNS, fresh(BULK)))),
        (f"SCAN of {PAGE} rows", lambda: found(PAGE, table.scan(ROWS_COLUMNS, PAGE))),
        (f"SCAN of {ROWS_GROUPS} groups by an index", lambda: found(ROWS_GROUPS, table.scan(
            [], flags=rows_wire.SUMS | rows_wire.GROUPS | rows_wire.BY_INDEX, more=by_index))),
    ]


def fill_rows(guarded, db):
    table = rows_wire.Rows(guarded.rows_port, db, "t", ROWS_COLUMNS)
    table.run((rows_wire.SCHEMA_CREATE, rows_wire.text(db)))
    table.create()
    table.run(table.write(rows_wire.INSERT, ROWS_COLUMNS, rows_of(range(DOCS))))
    if table.index("t_a", "a") != struct.pack(">I", 1):
        raise RuntimeError("the index has another number")
    table.socket.close()


def wait_until_built(guarded, db):
    """A build's end would make what is measured read the definitions again."""
    end = time.monotonic() + START_S
    while True:
        found = guarded.ask("GET", f"/{db}/_index?sizes=true")["indexes"]
        if all(index.get("state", "ready") == "ready" for index in found):
            return
        if time.monotonic() > end:
            raise RuntimeError(f"indexes are not built: {found}")
        time.sleep(0.01)


def wait_until_updated(guarded, view, info):
    """An update reads on for a moment when it has let those go who waited for it."""
    end = time.monotonic() + START_S
    guarded.ask("GET", view)
    while guarded.ask("GET", info)["view_index"]["updater_running"]:
        if time.monotonic() > end:
            raise RuntimeError(f"{view} is not up to date")
        time.sleep(0.01)


def index(field):
    return {"index": {"fields": [field]}, "ddoc": field, "name": field}


def fill_indexed(guarded, db):
    guarded.ask("PUT", f"/{db}", status=201)
    docs = [dict(document(i), _id=f"doc-{i:06}") for i in range(1, DOCS + 1)]
    guarded.ask("POST", f"/{db}/_bulk_docs", {"docs": docs}, 201)
    for field in ("number", "price", "email"):
        guarded.ask("POST", f"/{db}/_index", index(field))
    wait_until_built(guarded, db)


def fill(guarded, db):
    guarded.ask("PUT", f"/{db}?scheme={db}", status=201)
    docs = [dict(document(i), _id=f"doc-{i:06}") for i in range(1, DOCS + 1)]
    guarded.ask("POST", f"/{db}/_bulk_docs", {"docs": docs}, 201)
    guarded.ask("PUT", f"/{db}/zz-big", nested(), 201)


def counted(guarded, name, once):
    guarded.mark("before")
    for _ in range(REPEATS):
        once()
    counts = guarded.mark("after")
    return {k: round(v / REPEATS) for k, v in counts.items() if not (name in DRAWING and k in DRAWN)}


def least(guarded, name, once, seems):
    """Counts again where there is too much of what a busy machine adds to: a loop that wakes more often for the
    same, another worker that is begun since one has kept a request waiting."""
    counts = counted(guarded, name, once)
    for _ in range(ATTEMPTS - 1):
        if not seems(name, counts):
            break
        again = counted(guarded, name, once)
        counts |= {what: min(counts[what], again[what]) for what in ADDED_TO if what in counts}
    return counts


def measure(program, valgrind, profile=False, only=None, seems=lambda name, counts: False):
    """`seems`: whether an operation has too much of what a busy machine adds to, and of nothing else."""
    with tempfile.TemporaryDirectory(prefix="frond-guard-") as directory:
        guarded = Guarded(program, directory, valgrind)
        found = {}
        try:
            for db, fill_it, parts in (("packed", fill, (operations, queries)),
                                       ("exploded", fill, (operations, queries)),
                                       ("indexed", fill_indexed, (indexed,)),
                                       ("redis", fill_commands, (commands, tracked)),
                                       ("mongo", fill_collections, (collections,)),
                                       ("cql", fill_tables, (table_rows,)),
                                       ("rows", fill_rows, (row_requests,)),
                                       ("viewed", fill_viewed, (viewed,))):
                if only and db != only:
                    continue
                if db == "viewed" and not os.access(worker_of(program), os.X_OK):
                    continue
                fill_it(guarded, db)
                for name, once in (pair for part in parts for pair in part(guarded, db)):
                    # Whatever is made once is not counted, nor what is made anew as that has changed a table.
                    for _ in range(1 + (db == "cql")):
                        once()
                    found[f"{db}: {name}"] = least(guarded, name, once,
                                                   lambda name, counts: seems(f"{db}: {name}", counts))
                    if profile:
                        print_profile(f"{db}: {name}", guarded.costs)
            return found, guarded.compiler
        finally:
            guarded.stop()


def judge(name, recorded, found, compiler_is_same):
    """What is more than it was, in words."""
    more = []
    for what, now in found.items():
        before = recorded.get(name, {}).get(what)
        if before is None:
            if what not in COMPILED:
                more.append(f"{what}: nothing is recorded")
            continue
        if what == "instructions" and not compiler_is_same:
            continue
        most = before
        if what not in EXACT:
            most = before * (1 + TOLERANCE[what]) + SPARE.get(what, 0)
        if what == "allocations" and name.startswith("redis: "):
            most = before + SPARE_OF_COMMAND
        if now > most:
            more.append(f"{what}: {now}, {before} recorded")
    return more


def valgrind_works():
    """It may be absent, or be of no use where it is (a kernel or processor that it cannot do)."""
    if not shutil.which("valgrind"):
        return False
    with tempfile.TemporaryDirectory(prefix="frond-guard-") as directory:
        return subprocess.run(["valgrind", "--tool=callgrind", "-q",
                               f"--callgrind-out-file={directory}/calls", "true"],
                              stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    program = sys.argv[1]
    valgrind = valgrind_works()
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else None
    recorded = json.loads(FIGURES.read_text())

    def seems(name, counts):
        more = judge(name, recorded["operations"], counts, True)
        return more and all(line.split(":")[0] in ADDED_TO for line in more)

    judged = valgrind and not {"--profile", "--record"} & set(sys.argv)
    found, compiler = measure(program, valgrind, "--profile" in sys.argv, only, *([seems] if judged else []))
    if "--profile" in sys.argv:
        return 0
    if "--record" in sys.argv:
        if not valgrind:
            sys.exit("a record needs valgrind")
        if only:
            if recorded["compiler"] != compiler:
                found = {name: {k: v for k, v in counts.items() if k not in COMPILED}
                         for name, counts in found.items()}
                compiler = recorded["compiler"]
            found = recorded["operations"] | found
        FIGURES.write_text(json.dumps({"compiler": compiler, "operations": found}, indent=1) + "\n")
        return 0
    same = recorded["compiler"] == compiler
    failed = False
    print(f"1..{len(found) + 1}")
    for number, name in enumerate(found, 1):
        more = judge(name, recorded["operations"], found[name], same)
        failed |= bool(more)
        print(f"{'not ok' if more else 'ok'} {number} - {name} costs no more than recorded")
        for line in more:
            print(f"# {line}")
    why = "" if valgrind and same else " # SKIP " + (
        "valgrind does not run here" if not valgrind else
        f"recorded with {recorded['compiler']}, this is {compiler}")
    print(f"ok {len(found) + 1} - instructions were counted{why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
