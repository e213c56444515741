#!/usr/bin/env python3
"""frond's door for MongoDB's clients: raw connections, pymongo, and a server of constants beside it.

    bench/mongo.py [--build DIR] [--seconds S] [--rounds N] [--publish]

Each operation is measured with 1, 16 and 64 raw connections (mongo_load), and by one pymongo client
where Debian's python3-pymongo is installed. Beside it stands a server that answers constants, after
one fsync where the operation writes (mongo_constant): what a client reaches there it cannot pass.
The same insert, find and update by CouchDB's door of the same process (load) show what the
processor time an operation is there. The sides take turns in each round; medians are shown. The
results go to bench/results/mongo.json with --publish, which puts the table into
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
BEGIN = "<!-- mongo: made by `bench/mongo.py --publish` -->"
END = "<!-- /mongo -->"

DOCS = 20000
CONNECTIONS = (1, 16, 64)
OPERATIONS = ("insert", "insert-many", "find", "update")
COUCH = {"insert": "put", "find": "get", "update": "update"}
OF_CONSTANT = 0.8   # what pymongo reaches, of what it reaches against constants
OF_COUCH = 1.3      # processor time with 64 connections, of CouchDB's door

PYMONGO = """
import sys, time
import pymongo
port, seconds, docs, what = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
client = pymongo.MongoClient("127.0.0.1", port, directConnection=True, retryWrites=False)
c = client.bench.p
doc = {"number": 1, "text": "x" * 400, "list": list(range(20)), "more": {str(n): "value" for n in range(20)}}
if what in ("find", "update"):
    c.insert_many([{"_id": n, **doc} for n in range(docs)])
def insert(n):
    c.insert_one(dict(doc))
def insert_many(n):
    c.insert_many([dict(doc) for _ in range(1000)])
def find(n):
    assert c.find_one({"_id": n * 7919 % docs})
def update(n):
    c.update_one({"_id": n * 7919 % docs}, {"$set": {"number": n}})
run = {"insert": insert, "insert-many": insert_many, "find": find, "update": update}[what]
run(1)
n, begin = 0, time.perf_counter()
while time.perf_counter() - begin < seconds:
    run(n)
    n += 1
print(n * (1000 if what == "insert-many" else 1) / (time.perf_counter() - begin))
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


class Frond(sides.Frond):
    """frond with MongoDB's door."""

    mongo_port = 0

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port, self.mongo_port = sides.free_port(), sides.free_port()
        self.spawn([self.binary, "serve", "--store", self.store, "--http",
                    f"127.0.0.1:{self.port}", "--mongo", f"127.0.0.1:{self.mongo_port}"],
                   self.directory / "log")


class Constant(sides.Server):
    """MongoDB's protocol, and nothing behind it."""

    name = "constants"

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
    def __init__(self, options):
        self.o = options
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

    def note(self, row, side, rate, cpu_us=None):
        found = self.rows.setdefault(row, {}).setdefault(side, {"rate": [], "cpu_us": []})
        found["rate"].append(rate)
        if cpu_us is not None:
            found["cpu_us"].append(cpu_us)

    def round(self, frond, constant):
        for operation in OPERATIONS:
            for connections in CONNECTIONS:
                for server in (frond, constant):
                    done = self.raw(server, operation, connections, self.o.seconds, self.first)
                    if operation.startswith("insert") and server is frond:
                        self.first = done["next"]
                    self.note(f"{operation}, {connections}", server.name,
                              done["units"] / done["seconds"],
                              done["server_cpu_us"] / max(1, done["units"]))
                if operation in COUCH:
                    self.couch(frond, operation, connections)
            self.pymongo(frond, constant, operation)

    def couch(self, frond, operation, connections):
        options = {"db": "bench", "connections": connections, "seconds": self.o.seconds}
        if operation == "insert":
            frond.make("bench")
        else:
            options["docs"] = DOCS
        done = self.load.run(frond, COUCH[operation], **options)
        self.note(f"{operation}, {connections}", "CouchDB's door",
                  done["units"] / done["seconds"], done["server_cpu_us"] / max(1, done["units"]))
        if operation == "insert":
            frond.make("bench")
            self.load.run(frond, "bulk", db="bench", connections=1, count=DOCS)

    def pymongo(self, frond, constant, operation):
        if not self.o.python:
            return
        for server in (frond, constant):
            done = subprocess.run(
                [self.o.python, "-c", PYMONGO, str(server.mongo_port), str(self.o.seconds),
                 str(DOCS), operation], stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                sides.fail(f"{server.name}: pymongo's {operation} failed")
            if server is frond:
                with_drop = subprocess.run(
                    [self.o.python, "-c", "import sys, pymongo; pymongo.MongoClient('127.0.0.1', "
                     "int(sys.argv[1]), directConnection=True).bench.p.drop()",
                     str(server.mongo_port)], check=False)
                if with_drop.returncode:
                    sides.fail("the collection cannot be dropped")
            self.note(f"{operation}, pymongo", server.name, float(done.stdout))


def median(found, what):
    return statistics.median(found[what]) if found and found[what] else None


def number(x):
    return "" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:.1f}"


def table(rows):
    out = ["| operation, connections | frond | CPU µs | constants | frond/it | goal | CouchDB's door | "
           "its CPU µs | CPU of it | goal |", "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for name, row in rows.items():
        ours, them, couch = (row.get(side) for side in ("frond", "constants", "CouchDB's door"))
        rate, cpu = median(ours, "rate"), median(ours, "cpu_us")
        constant = median(them, "rate")
        couch_cpu = median(couch, "cpu_us")
        out.append(
            f"| {name} | {number(rate)} | {number(cpu)} | {number(constant)} | {rate / constant:.2f} | "
            f"{OF_CONSTANT if 'pymongo' in name else ''} | {number(median(couch, 'rate'))} | "
            f"{number(couch_cpu)} | {f'{cpu / couch_cpu:.2f}×' if couch_cpu else ''} | "
            f"{f'{OF_COUCH}×' if couch_cpu and name.endswith(', 64') else ''} |")
    return "\n".join(out)


def about_text(about):
    return (f"Made by `bench/mongo.py` on {about['date'].split()[0]} at {about['commit']}, on "
            f"{about['processors']} processors, the clients on the same; medians of "
            f"{about['rounds']} rounds; load average {about['load_average']:.0f} at the end.")


def publish(text):
    path = TOP / "docs/PERFORMANCE.md"
    old = path.read_text()
    if BEGIN not in old or END not in old:
        sys.exit(f"{path} has no place for the table")
    path.write_text(old[:old.index(BEGIN)] + f"{BEGIN}\n\n{text}\n\n" + old[old.index(END):])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    env = os.environ
    parser.add_argument("--build", default=str(TOP / "build"))
    parser.add_argument("--rounds", type=int, default=int(env.get("BENCH_ROUNDS", "3")))
    parser.add_argument("--seconds", type=float, default=float(env.get("BENCH_SECONDS", "2")))
    parser.add_argument("--python", default="/usr/bin/python3", help="an interpreter with pymongo")
    parser.add_argument("--work", help="directory for the data")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    options.build = str(pathlib.Path(options.build).resolve())
    probe = subprocess.run([options.python, "-c", "import pymongo"], stderr=subprocess.DEVNULL,
                           check=False) if shutil.which(options.python) else None
    if not probe or probe.returncode:
        say("bench/mongo.py: no pymongo (python3-pymongo); raw connections only")
        options.python = None
    return options


def main():
    options = arguments()
    bench = Bench(options)
    work = pathlib.Path(tempfile.mkdtemp(prefix="frond-mongo-", dir=options.work))
    frond = Frond(f"{options.build}/frond", work / "frond")
    constant = Constant(f"{options.build}/bench/mongo_constant", work / "constant")
    try:
        frond.start()
        constant.start()
        bench.raw(frond, "insert-many", 1, 0, 0, DOCS)
        for n in range(options.rounds):
            say(f"round {n + 1} of {options.rounds}")
            bench.round(frond, constant)
    finally:
        frond.stop()
        constant.stop()
        shutil.rmtree(work, ignore_errors=True)
    about = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
             "commit": sides.commit(TOP), "processors": os.cpu_count(), "rounds": options.rounds,
             "seconds": options.seconds, "load_average": os.getloadavg()[0]}
    text = f"{table(bench.rows)}\n\n{about_text(about)}"
    print(text)
    out = RESULTS if options.publish else pathlib.Path(options.build) / "bench" / "results"
    out.mkdir(parents=True, exist_ok=True)
    (out / "mongo.json").write_text(json.dumps({"about": about, "rows": bench.rows}, indent=1) + "\n")
    if options.publish:
        publish(text)


if __name__ == "__main__":
    main()
