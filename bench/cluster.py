#!/usr/bin/env python3
"""frond in front of a FoundationDB cluster, beside the client library doing the same key-value work.

    bench/cluster.py [--build DIR] [--only WORD]... [--in-flight N,N] [--processes N]

Starts a cluster of one server of its own, and frond in front of it: CouchDB's PUT, update and GET by
load, Redis's SET, INCR and GET by redis-benchmark, MongoDB's insert, find and update by mongo_load, _bulk_docs
and a listing with documents by load. In each round each is measured once, and right before it cluster_raw:
the reads and writes that the operation cannot do without, by the functions that the engine calls. Views and
an index are built beside another frond on the embedded engine, and beside cluster_raw. With --processes 3 the clients are divided
among three fronds, each of which has one at least; cluster_raw has as many under way. What is shown are the
medians of the rounds' ratios, of the rates and of the processor time (of all fronds, or of cluster_raw). The
results go to bench/results/cluster.json below the build. It needs FoundationDB's programs.
"""

import argparse
import concurrent.futures
import csv
import datetime
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import sides
import workloads

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests"))
import foundationdb  # noqa: E402  the tests' clusters

DOCS = 20000
KEYS = 100000
WRITE_DB = "written"
GOAL_RATE, GOAL_CPU = 0.8, 2.0  # of raw's
TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")

# What is measured: its title, what cluster_raw calls it, the door, what the door's client calls it.
OPERATIONS = {
    "put": ("`PUT` of a new document", "put", "couch", "put"),
    "update": ("update of a document", "update", "couch", "update"),
    "get": ("`GET` of a document", "get", "couch", "get"),
    "redis-set": ("Redis's `SET`", "redis-set", "redis", "set"),
    "redis-incr": ("Redis's `INCR`", "redis-incr", "redis", "incr"),
    "redis-get": ("Redis's `GET`", "redis-get", "redis", "get"),
    "insert": ("MongoDB's insert", "insert", "mongo", "insert"),
    "find": ("MongoDB's find by `_id`", "find", "mongo", "find"),
    "mongo-update": ("MongoDB's update by `_id`", "mongo-update", "mongo", "update"),
    "bulk": ("`_bulk_docs` of 100, documents", "bulk", "couch", "bulk"),
    "list": ("`_all_docs` with documents", "list", "couch", "_all_docs"),
}
# What is of many documents: how many cluster_raw counts as one, the numbers in flight, the goal of the rate.
LONG = {"bulk": (100, (1, 4), 1.0), "list": (DOCS, (1,), 0.7)}
# What is built of all documents, beside a frond on the embedded engine. BUILDS_RAW has the names of cluster_raw's
# operations for it, BUILD_DOCS and BUILD_THREADS what one of its transactions reads and how many are under way.
GOAL_BUILT = 0.5
BUILDS_RAW = {"view-map": "view", "view-count": "view", "index": "index"}
BUILD_DOCS, BUILD_THREADS = 1000, 2
BUILDS = {
    "view-map": workloads.ViewBuild("view-map", "a view of a map built, documents"),
    "view-count": workloads.ViewBuild("view-count", "a view with `_count` built, documents", "_count"),
    "index": workloads.IndexBuild("index", "an index built, documents", workloads.NUMBER),
}


def say(text):
    print(text, file=sys.stderr, flush=True)


class Frond(sides.Frond):
    """With three doors, in front of a cluster."""

    doors = ("redis", "mongo")


class Bench:
    def __init__(self, options):
        self.o = options
        self.build = pathlib.Path(options.build)
        self.load = sides.Loader(str(self.build / "bench" / "load"))
        self.found = {}
        self.next = {}  # the first new document of each door

    # -- one operation at one server: operations a second, and the server's processor time for each in µs --

    def couch(self, frond, operation, connections, part):
        options = {"db": WRITE_DB, "connections": connections, "seconds": self.o.seconds}
        if operation == "put":
            options["first"] = self.take(part)
        elif operation == "bulk":
            options |= {"first": self.take(part), "batch": LONG["bulk"][0]}
        elif operation == "_all_docs":
            options |= {"docs": DOCS, "rows": DOCS, "db": workloads.READ_DB, "query": "include_docs=true"}
        elif operation == "update":
            # Each client knows the revisions of documents that no other one changes.
            options["docs"] = DOCS // self.o.processes
            options["first"] = part * options["docs"]
        else:
            options["docs"] = DOCS
        done = self.load.run(frond, operation, **options)
        return done["units"] / done["seconds"], done["server_cpu_us"] / max(1, done["units"])

    def redis(self, frond, operation, connections, part):
        count = self.counts.get((operation, connections), 200 * connections)
        words = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(frond.redis_port), "-c", str(connections),
                 "-n", str(count), "-r", str(KEYS), "-t", operation, "--csv"]
        before = frond.cpu_ticks()
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        ticks = frond.cpu_ticks() - before
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        if done.returncode or not rows:
            sides.fail(f"redis-benchmark -t {operation}: {done.stderr or done.stdout}")
        rate = float(rows[-1]["rps"])
        self.counts[operation, connections] = max(100, int(rate * self.o.seconds))
        return rate, ticks * TICK_US / count

    def mongo(self, frond, operation, connections, part):
        first = self.take(part) if operation == "insert" else 0
        before = frond.cpu_ticks()
        done = subprocess.run([str(self.build / "bench" / "mongo_load"), operation, str(frond.mongo_port),
                               str(connections), str(self.o.seconds), str(first), str(DOCS)],
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sides.fail(f"mongo_load {operation} failed")
        ticks = frond.cpu_ticks() - before
        found = json.loads(done.stdout)
        return found["units"] / found["seconds"], ticks * TICK_US / max(1, found["units"])

    def take(self, part):
        """The number of the first new document, far from all others."""
        self.next[part] = self.next.get(part, part * 100_000_000 + DOCS) + 1_000_000
        return self.next[part]

    # -- both sides --

    def raw(self, cluster, operation, in_flight, docs=1):
        """Documents a second, and the processor time of one; a transaction is of so many documents."""
        done = subprocess.run([str(self.build / "bench" / "cluster_raw"), str(cluster.file), operation,
                               str(in_flight), str(self.o.seconds)], stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode:
            sides.fail(f"cluster_raw {operation} failed")
        found = json.loads(done.stdout)
        return found["rate"] * docs, found["cpu_us"] / docs

    def fronds(self, fronds, name, share):
        """Their rates together, each with its share of the clients, and the processor time of an operation."""
        _, _, door, operation = OPERATIONS[name]
        run = getattr(self, door)
        with concurrent.futures.ThreadPoolExecutor(len(fronds)) as pool:
            found = list(pool.map(lambda at: run(at[1], operation, share, at[0]), enumerate(fronds)))
        rate = sum(one for one, _ in found)
        return rate, sum(one * cpu for one, cpu in found) / max(1, rate)

    def round(self, cluster, fronds):
        for name, (title, raw, _, _) in OPERATIONS.items():
            if not self.wanted(name):
                continue
            for in_flight in LONG[name][1] if name in LONG else self.o.in_flight:
                sides_of = self.found.setdefault(name, {}).setdefault(str(in_flight), [])
                share = max(1, in_flight // len(fronds))
                raw_rate, raw_cpu = self.raw(cluster, raw, share * len(fronds),
                                             LONG[name][0] if name in LONG else 1)
                rate, cpu = self.fronds(fronds, name, share)
                sides_of.append({"rate": rate, "cpu_us": cpu, "raw_rate": raw_rate, "raw_cpu_us": raw_cpu})
                say(f"{title}, {in_flight}: {rate:,.0f} a second, raw {raw_rate:,.0f}, "
                    f"{rate / raw_rate:.2f} of it; {cpu:.0f} µs, raw {raw_cpu:.0f}")

    def round_of_builds(self, cluster, embedded, frond):
        for name, build in BUILDS.items():
            if not self.wanted(name):
                continue
            raw_rate, raw_cpu = self.raw(cluster, BUILDS_RAW[name], BUILD_THREADS, BUILD_DOCS)
            theirs, ours = build.run(self, embedded), build.run(self, frond)
            # Its design document would be a row of the next round's listing.
            frond.drop_index(workloads.READ_DB, workloads.NUMBER)
            for beside, rate, cpu in (("embedded", theirs["rate"], theirs["cpu_us"]), ("raw", raw_rate, raw_cpu)):
                self.found.setdefault(name, {}).setdefault(beside, []).append(
                    {"rate": ours["rate"], "cpu_us": ours["cpu_us"], "raw_rate": rate, "raw_cpu_us": cpu})
            say(f"{build.title}: {ours['rate']:,.0f} a second, embedded {theirs['rate']:,.0f}, "
                f"{ours['rate'] / theirs['rate']:.2f} of it; {ours['cpu_us']:.1f} µs, embedded {theirs['cpu_us']:.1f}; "
                f"raw {raw_rate:,.0f}, {ours['rate'] / raw_rate:.2f} of it; {raw_cpu:.1f} µs")

    def rows(self, server):
        return DOCS

    def wanted(self, name):
        return not self.o.only or any(word in name for word in self.o.only)

    def run(self):
        programs = foundationdb.installed()
        if programs.missing:
            sides.fail(f"FoundationDB's programs are not installed: {', '.join(programs.missing)}")
        os.environ.setdefault("FROND_LIBFDB_C", str(programs.library))
        self.counts = {}
        with tempfile.TemporaryDirectory(dir=self.o.work) as work, \
                foundationdb.Cluster(programs, pathlib.Path(work) / "cluster") as cluster:
            fronds = [Frond(str(self.build / "frond"), pathlib.Path(work) / f"frond-{n}", cluster.url)
                      for n in range(self.o.processes)]
            embedded = sides.Frond(str(self.build / "frond"), pathlib.Path(work) / "embedded")
            try:
                for frond in fronds:
                    frond.start()
                self.fill(fronds[0])
                if any(self.wanted(name) for name in BUILDS):
                    embedded.start()
                    self.fill_one(embedded, workloads.READ_DB)
                for _ in range(self.o.rounds):
                    self.round(cluster, fronds)
                    self.round_of_builds(cluster, embedded, fronds[0])
            finally:
                for frond in [embedded, *fronds]:
                    frond.stop()

    def fill(self, frond):
        if any(self.wanted(name) for name in ("put", "update", "get", "bulk")):
            self.fill_one(frond, WRITE_DB)
        if any(self.wanted(name) for name in ("list", *BUILDS)):
            self.fill_one(frond, workloads.READ_DB)
        if any(self.wanted(name) for name in ("find", "mongo-update")):
            done = subprocess.run([str(self.build / "bench" / "mongo_load"), "insert-many", str(frond.mongo_port), "1",
                                   "0", "0", str(DOCS)], stdout=subprocess.DEVNULL, check=False)
            if done.returncode:
                sides.fail("mongo_load insert-many failed")
        if self.wanted("redis-get"):
            subprocess.run(["redis-benchmark", "-p", str(frond.redis_port), "-c", "50", "-P", "16", "-n",
                            str(KEYS), "-r", str(KEYS), "-t", "set", "-q"], stdout=subprocess.DEVNULL, check=True)

    def fill_one(self, frond, db):
        frond.make(db)
        self.load.run(frond, "bulk", db=db, connections=4, count=DOCS)


# ---- The table ----

def median(rounds, ours, theirs):
    return statistics.median(one[ours] / one[theirs] if one[theirs] else 0 for one in rounds)


def cell(rounds):
    rate, cpu = median(rounds, "rate", "raw_rate"), median(rounds, "cpu_us", "raw_cpu_us")
    return f"{rate:.2f}; {cpu:.1f}×"


def table_of(found, names, first, title):
    rows = {name: row for name, row in found["rows"].items() if name in names}
    counts = list(dict.fromkeys(n for row in rows.values() for n in row))
    out = [f"| {first} | {' | '.join(counts)} |", "|---|" + "---:|" * len(counts)] if rows else []
    for name, row in rows.items():
        cells = [cell(row[n]) if n in row else "" for n in counts]
        out.append(f"| {title(name)} | {' | '.join(cells)} |")
    return out + [""] if rows else []


def table(found):
    out = table_of(found, set(OPERATIONS) - set(LONG), "of raw's rate; of its processor time",
                   lambda name: OPERATIONS[name][0])
    out += table_of(found, LONG, "of raw's rate; of its processor time",
                    lambda name: f"{OPERATIONS[name][0]} (goal {LONG[name][2]:g})")
    out += table_of(found, BUILDS, "of the rate of the embedded engine, and of raw; of its processor time",
                    lambda name: f"{BUILDS[name].title} (goal {GOAL_BUILT:g})")
    a = found["about"]
    out.append(f"Made by `bench/cluster.py` on {a['date']} at {a['commit']}, {a['processes']} frond in front of "
               f"one FoundationDB server on the same {a['processors']} processors as the clients; medians of "
               f"{a['rounds']} rounds; load average {a['load_average']:.0f} at the end. The numbers above are "
               f"operations under way; the goal is {GOAL_RATE} and {GOAL_CPU:g}×.")
    return "\n".join(out)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(TOP / "build"))
    parser.add_argument("--only", action="append", metavar="WORD", help="operations whose names have the word")
    parser.add_argument("--in-flight", default="1,16,64,256", type=lambda s: [int(n) for n in s.split(",")])
    parser.add_argument("--processes", default=1, type=int)
    parser.add_argument("--rounds", default=int(os.environ.get("BENCH_ROUNDS", "3")), type=int)
    parser.add_argument("--seconds", default=float(os.environ.get("BENCH_SECONDS", "2")), type=float)
    parser.add_argument("--work", help="where the cluster's data lie; /tmp without it")
    return parser.parse_args()


def main():
    options = arguments()
    bench = Bench(options)
    bench.run()
    found = {"about": {"date": datetime.date.today().isoformat(), "commit": sides.commit(TOP),
                       "processors": os.cpu_count(), "processes": options.processes, "rounds": options.rounds,
                       "load_average": os.getloadavg()[0]},
             "rows": bench.found}
    out = pathlib.Path(options.build) / "bench" / "results"
    out.mkdir(parents=True, exist_ok=True)
    (out / "cluster.json").write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
