"""frond's door for MongoDB's clients: raw connections, pymongo, and a server of constants beside it.

    bench/mongo.py [--build DIR] [--seconds S] [--rounds N] [--only WORD] [--publish]

Each operation is measured with 1, 16 and 64 raw connections (mongo_load), and by one pymongo client
where Debian's python3-pymongo is installed. Beside it stands a server that answers constants, after
one fsync of a log that grows where the operation writes (mongo_constant): what a client reaches
there it can pass only where fewer syncs are of a file that has grown.
The same insert, find and update by CouchDB's door (load) show what the processor time of an operation
is there. What the store does with writes in the background afterwards counts, too, and each side's
single inserts go into an empty store. 22,000 small documents are asked by an index, and grouped by
a field that an index has, or by one that none has; what DocumentDB 0.108 did with that many stands
beside. Writes by 16 connections are measured while a client reads them by a change stream, and
while none does. The sides take turns in each round; medians are shown. The results go to
bench/results/mongo.json with --publish, which puts the tables into
docs/PERFORMANCE.md, else below the build.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import sides

TOP = pathlib.Path(__file__).resolve().parent.parent
RESULTS = TOP / "bench" / "results"
PAGE = TOP / "docs" / "PERFORMANCE.md"
BEGIN = "<!-- mongo: made by `bench/mongo.py --publish` -->"
END = "<!-- /mongo -->"

DOCS = 20000        # of 1,000 bytes
ASKED = 22000       # of some 90 bytes
CONNECTIONS = (1, 16, 64)
OPERATIONS = ("insert", "insert-many", "find", "update")
READS = ("find", "find-group", "group-covered", "group")
SMALL = ("insert-small", "find-group", "group-covered", "group")
STREAMED = ("insert", "update")
STREAM_CONNECTIONS = 16
COUCH = {"insert": "put", "find": "get", "update": "update"}
NAMES = {"insert-small": "insert-many of small documents",
         "find-group": "find 244 documents by an index",
         "group-covered": "`$group` of 22,000, an index has the fields",
         "group": "`$group` of 22,000, no index"}

# One pymongo client at DocumentDB 0.108 on PostgreSQL 15, on two idle processors.
DOCUMENTDB = {"insert": 398, "insert-small": 48136, "find": 5787, "update": 345,
              "find-group": 219, "group-covered": 21, "group": 21}

OF_CONSTANT = 0.8   # what pymongo reaches, of what it reaches against constants
OF_COUCH = 1.3      # processor time with 64 connections, of CouchDB's door
OF_DOCUMENTDB = {"insert-small": 2, "find-group": 5, "group-covered": 5, "group": 1.5}
OF_UNWATCHED = 1.15 # processor time of a write while a change stream is read

PYMONGO = """
import sys, time
import pymongo
port, seconds, docs, what = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
client = pymongo.MongoClient("127.0.0.1", port, directConnection=True, retryWrites=False)
db = client.bench
doc = {"name": "name-000042", "number": 42, "price": 10.5, "paid": True, "type": "order",
       "created": "2024-01-15T00:00:00Z", "tags": ["one", "two", "three"],
       "address": {"street": "42 some street", "city": "somewhere", "code": "00042"},
       "note": ("a few words to fill it up " * 30)[:650], "email": "someone-42@somewhere.example"}
small = [{"group": n % 90, "kind": n % 90, "number": n, "name": "name-%08d" % n, "price": n / 4}
         for n in range(1000)]
def insert(n):
    db.p.insert_one(dict(doc))
def insert_many(n):
    db.p.insert_many([dict(doc) for _ in range(1000)])
def insert_small(n):
    db.p.insert_many([dict(one) for one in small])
def find(n):
    assert db.c.find_one({"_id": n * 7919 % docs})
def update(n):
    db.c.update_one({"_id": n * 7919 % docs}, {"$set": {"number": new + n}})
def find_group(n):
    assert len(list(db.asked.find({"group": n % 90}).batch_size(1000))) in (244, 245)
def group(key, value):
    pipeline = [{"$group": {"_id": "$" + key, "sum": {"$sum": "$" + value}}}]
    assert len(list(db.asked.aggregate(pipeline))) == 90
run = {"insert": insert, "insert-many": insert_many, "find": find, "update": update,
       "insert-small": insert_small, "find-group": find_group,
       "group-covered": lambda n: group("group", "number"),
       "group": lambda n: group("kind", "price")}[what]
new = time.time_ns()  # a number that no earlier run has set: an update that changes nothing is none
run(1)
n, begin = 0, time.perf_counter()
while time.perf_counter() - begin < seconds:
    run(n)
    n += 1
print(n * (1000 if what in ("insert-many", "insert-small") else 1) / (time.perf_counter() - begin))
if what.startswith("insert"):
    db.p.drop()
"""

# Reads a change stream until it is told to stop, and tells how many events have come.
READER = """
import select, sys
import pymongo
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
client = pymongo.MongoClient("127.0.0.1", int(sys.argv[1]), directConnection=True)
c = client.get_database("bench", codec_options=CodecOptions(RawBSONDocument)).c
count = 0
with c.watch(max_await_time_ms=200) as stream:
    print("reads", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(1000):
            if stream.try_next() is None:
                break
            count += 1
print(count)
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


class Frond(sides.Frond):
    """frond with MongoDB's door."""

    doors = ("mongo",)
    settles = True


class Constant(sides.Server):
    """MongoDB's protocol, and nothing behind it."""

    name = "constants"
    settles = False

    def __init__(self, binary, directory):
        super().__init__()
        self.binary, self.directory = binary, pathlib.Path(directory)
        self.mongo_port = 0

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.mongo_port = sides.free_port()
        self.process = subprocess.Popen(
            [self.binary, str(self.mongo_port), str(self.directory / "file")],
            stdout=subprocess.PIPE)
        if not self.process.stdout.readline():
            sides.fail("mongo_constant did not start")


class Bench:
    def __init__(self, options, work):
        self.o = options
        self.work = work
        self.load = sides.Loader(f"{options.build}/bench/load")
        self.first = DOCS
        self.rows = {}

    def raw(self, server, operation, connections, seconds, first=0, docs=DOCS):
        done = subprocess.run(
            [f"{self.o.build}/bench/mongo_load", operation, str(server.mongo_port), str(connections),
             str(seconds), str(first), str(docs), *map(str, server.pids())],
            stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sides.fail(f"{server.name}: {operation} with {connections} connections failed")
        return json.loads(done.stdout)

    def note(self, operation, clients, side, rate, cpu_us=None):
        found = self.rows.setdefault(f"{operation}, {clients}", {}).setdefault(
            side, {"rate": [], "cpu_us": []})
        found["rate"].append(rate)
        if cpu_us is not None:
            found["cpu_us"].append(cpu_us)

    def prepare(self, frond):
        self.raw(frond, "insert-many", 1, 0, 0, DOCS)
        self.raw(frond, "fill", 1, 0, 0, ASKED)
        self.raw(frond, "index", 1, 0, 0, 1)

    def writes(self, server, operation, connections):
        """Raw connections; the documents that they insert are new each time."""
        def run():
            done = self.raw(server, operation, connections, self.o.seconds, self.first)
            if operation.startswith("insert"):
                self.first = done["next"]
            return done
        return self.measured(server, run, operation not in READS)

    def measured(self, server, run, settles):
        """Units a second, and processor time of one; of writes until the server rests again."""
        if not settles or not server.settles:
            done = run()
            return done["units"] / done["seconds"], done["server_cpu_us"] / max(1, done["units"])
        server.settle()
        before = server.cpu_ticks()
        done = run()
        server.settle()
        ticks = server.cpu_ticks() - before
        return (done["units"] / done["seconds"],
                ticks * 1e6 / os.sysconf("SC_CLK_TCK") / max(1, done["units"]))

    def on_empty(self, run):
        """What `run` makes of a frond without any documents."""
        directory = tempfile.mkdtemp(prefix="empty-", dir=self.work)
        frond = Frond(f"{self.o.build}/frond", directory)
        try:
            frond.start()
            return run(frond)
        finally:
            frond.stop()
            shutil.rmtree(directory, ignore_errors=True)

    def round(self, frond, constant):
        for operation in filter(self.wanted, OPERATIONS):
            for connections in CONNECTIONS:
                for server in (frond, constant):
                    self.note(operation, connections, server.name,
                              *self.raw_side(server, operation, connections))
                if operation in COUCH:
                    self.note(operation, connections, "CouchDB's door",
                              *self.couch_side(frond, operation, connections))
            self.pymongo((frond, constant), operation)
        for operation in filter(self.wanted, SMALL):
            servers = (frond, constant) if operation in READS else (frond,)
            for server in servers:
                self.note(operation, 1, server.name, *self.writes(server, operation, 1))
            self.pymongo(servers, operation)
        if self.o.python and self.wanted("stream"):
            for operation in STREAMED:
                self.streamed(frond, operation)

    def wanted(self, operation):
        return self.o.only in operation

    def raw_side(self, server, operation, connections):
        if operation != "insert" or not server.settles:
            return self.writes(server, operation, connections)
        return self.on_empty(lambda empty: self.writes(empty, operation, connections))

    def couch_side(self, frond, operation, connections):
        options = {"db": "bench", "connections": connections, "seconds": self.o.seconds}

        def run(server, **more):
            return self.measured(
                server, lambda: self.load.run(server, COUCH[operation], **options, **more),
                operation not in READS)
        if operation == "insert":
            def insert(empty):
                empty.make("bench")
                return run(empty)
            return self.on_empty(insert)
        if frond.request("GET", "/bench")[0] != 200:
            frond.make("bench")
            self.load.run(frond, "bulk", db="bench", connections=1, count=DOCS)
        return run(frond, docs=DOCS)

    def pymongo(self, servers, operation):
        if not self.o.python:
            return
        for server in servers:
            done = subprocess.run(
                [self.o.python, "-c", PYMONGO, str(server.mongo_port), str(self.o.seconds),
                 str(DOCS), operation], stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                sides.fail(f"{server.name}: pymongo's {operation} failed")
            self.note(operation, "pymongo", server.name, float(done.stdout))

    def streamed(self, frond, operation):
        """Writes without a stream and with one that a client reads."""
        self.note(operation, "change streams", "unwatched",
                  *self.writes(frond, operation, STREAM_CONNECTIONS))
        reader = subprocess.Popen([self.o.python, "-c", READER, str(frond.mongo_port)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not reader.stdout.readline():
            sides.fail("the reader of a change stream did not start")
        self.note(operation, "change streams", frond.name,
                  *self.writes(frond, operation, STREAM_CONNECTIONS))
        reader.communicate("\n")
        if reader.returncode:
            sides.fail("the reader of a change stream failed")


# ---- Tables ----


def median(found, what):
    return statistics.median(found[what]) if found and found[what] else None


def number(x):
    return "" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:.1f}"


def times(x, y, digits=2):
    return f"{x / y:.{digits}f}×" if x is not None and y else ""


def split(name):
    operation, clients = name.rsplit(", ", 1)
    return operation, clients


def goal(operation, clients):
    if clients == "pymongo" and operation in COUCH:
        return f"{OF_CONSTANT}× constants"
    if clients == "pymongo" and operation in OF_DOCUMENTDB:
        return f"{OF_DOCUMENTDB[operation]}× DocumentDB"
    if clients == "64" and operation in COUCH:
        return f"CPU {OF_COUCH}× CouchDB's door"
    return ""


def table(rows):
    out = ["| operation, connections | frond | CPU µs | constants | frond/it | CouchDB's door | "
           "its CPU µs | frond's CPU/it | DocumentDB | frond/it | goal |",
           "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"]
    for name, row in rows.items():
        operation, clients = split(name)
        if "frond" not in row or "unwatched" in row:
            continue
        rate, cpu = median(row["frond"], "rate"), median(row["frond"], "cpu_us")
        constant = median(row.get("constants"), "rate")
        couch = row.get("CouchDB's door")
        documentdb = DOCUMENTDB.get(operation) if clients == "pymongo" else None
        out.append(
            f"| {NAMES.get(operation, operation)}, {clients} | {number(rate)} | {number(cpu)} | "
            f"{number(constant)} | {times(rate, constant)} | {number(median(couch, 'rate'))} | "
            f"{number(median(couch, 'cpu_us'))} | {times(cpu, median(couch, 'cpu_us'))} | "
            f"{number(documentdb)} | {times(rate, documentdb, 1)} | {goal(operation, clients)} |")
    return "\n".join(out)


def streams_table(rows):
    out = [f"| {STREAM_CONNECTIONS} connections | no change stream | CPU µs | one is read | "
           "CPU µs | of it | goal |", "|---|---:|---:|---:|---:|---:|---:|"]
    for name, row in rows.items():
        if "unwatched" not in row:
            continue
        without, cpu = (median(row["unwatched"], what) for what in ("rate", "cpu_us"))
        rate, cpu_watched = (median(row["frond"], what) for what in ("rate", "cpu_us"))
        out.append(f"| {split(name)[0]} | {number(without)} | {number(cpu)} | {number(rate)} | "
                   f"{number(cpu_watched)} | {times(cpu_watched, cpu)} | {OF_UNWATCHED}× |")
    return "\n".join(out) if len(out) > 2 else ""


def about_text(about):
    return (f"Made by `bench/mongo.py` on {about['date'].split()[0]} at {about['commit']}, on "
            f"{about['processors']} processors, the clients on the same"
            f"{', ' + about['pymongo'] if about['pymongo'] else ''}; medians of "
            f"{about['rounds']} rounds; load average {about['load_average']:.0f} at the end. "
            "DocumentDB's figures are of one pymongo client on two idle processors.")


def publish(rows, about):
    old = PAGE.read_text()
    if BEGIN not in old or END not in old:
        sys.exit(f"{PAGE} has no place for the table")
    text = "\n\n".join(filter(None, [table(rows), streams_table(rows), about_text(about)]))
    PAGE.write_text(old[:old.index(BEGIN)] + f"{BEGIN}\n\n{text}\n\n" + old[old.index(END):])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    env = os.environ
    parser.add_argument("--build", default=str(TOP / "build"))
    parser.add_argument("--rounds", type=int, default=int(env.get("BENCH_ROUNDS", "3")))
    parser.add_argument("--seconds", type=float, default=float(env.get("BENCH_SECONDS", "2")))
    parser.add_argument("--python", default="/usr/bin/python3", help="an interpreter with pymongo")
    parser.add_argument("--work", help="directory for the data")
    parser.add_argument("--only", default="", help="operations whose names have this word")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    options.build = str(pathlib.Path(options.build).resolve())
    options.pymongo = pymongo_of(options.python)
    if not options.pymongo:
        say("bench/mongo.py: no pymongo (python3-pymongo); raw connections only")
        options.python = None
    return options


def pymongo_of(python):
    """The version, and whether it has its functions in C (python3-pymongo-ext)."""
    if not shutil.which(python):
        return None
    code = ("import pymongo; print('pymongo', pymongo.version, "
            "'with' if pymongo.has_c() else 'without', 'its C extension')")
    done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    return None if done.returncode else done.stdout.strip()


def main():
    options = arguments()
    work = pathlib.Path(tempfile.mkdtemp(prefix="frond-mongo-", dir=options.work))
    bench = Bench(options, work)
    frond = Frond(f"{options.build}/frond", work / "frond")
    constant = Constant(f"{options.build}/bench/mongo_constant", work / "constant")
    try:
        frond.start()
        constant.start()
        bench.prepare(frond)
        for n in range(options.rounds):
            say(f"round {n + 1} of {options.rounds}")
            bench.round(frond, constant)
    finally:
        frond.stop()
        constant.stop()
        shutil.rmtree(work, ignore_errors=True)
    about = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
             "commit": sides.commit(TOP), "processors": os.cpu_count(), "rounds": options.rounds,
             "seconds": options.seconds, "load_average": os.getloadavg()[0],
             "pymongo": options.pymongo}
    print("\n\n".join(filter(None, (table(bench.rows), streams_table(bench.rows),
                                    about_text(about)))))
    out = RESULTS if options.publish else pathlib.Path(options.build) / "bench" / "results"
    out.mkdir(parents=True, exist_ok=True)
    (out / "mongo.json").write_text(json.dumps({"about": about, "rows": bench.rows}, indent=1) + "\n")
    if options.publish:
        publish(bench.rows, about)


if __name__ == "__main__":
    main()
