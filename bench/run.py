#!/usr/bin/env python3
"""Measures frond beside its peers and its limits, and prints one table.

    bench/run.py [--build DIR] [--only WORD]... [--full] [--publish]

The sides take turns in each of several rounds, so that what else the machine does meets all of
them; medians of the rounds are shown. The environment may name more sides:

    BENCH_COUCHDB=http://NAME:PASSWORD@HOST:PORT   a CouchDB
    BENCH_FDB=CLUSTER_FILE                         frond on a FoundationDB cluster
    BENCH_ONLY=WORD,WORD                           as --only: workloads with one of the words
    BENCH_FULL=1                                   as --full: more and longer rounds
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys

import databases
import sides
import table
import workloads

PEER_DATABASES = 1000  # at most: each of CouchDB's is files and a process

TOP = pathlib.Path(__file__).resolve().parent.parent
RESULTS = TOP / "bench" / "results"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    env = os.environ
    parser.add_argument("--build", default=str(TOP / "build"), help="where frond was built")
    parser.add_argument("--only", action="append", metavar="WORD",
                        help="workloads whose names have the word")
    parser.add_argument("--full", action="store_true", default=bool(env.get("BENCH_FULL")))
    parser.add_argument("--rounds", type=int, default=int(env.get("BENCH_ROUNDS", "0")))
    parser.add_argument("--seconds", type=float, default=float(env.get("BENCH_SECONDS", "0")))
    parser.add_argument("--docs", type=int, default=int(env.get("BENCH_DOCS", "100000")))
    parser.add_argument("--databases", type=int, metavar="N",
                        default=int(env.get("BENCH_DATABASES", "100000")),
                        help="how many databases are created; 0: none")
    parser.add_argument("--work", default=env.get("BENCH_DIR"), help="directory for the data")
    parser.add_argument("--out", help="where the results go (default bench/results, or, of some "
                        "workloads only, bench/results below the build)")
    parser.add_argument("--publish", action="store_true",
                        help="put the table into docs/PERFORMANCE.md, too")
    parser.add_argument("--no-peers", action="store_true", help="frond and the limits only")
    options = parser.parse_args()
    options.build = str(pathlib.Path(options.build).resolve())
    options.rounds = options.rounds or (5 if options.full else 3)
    options.seconds = options.seconds or (5 if options.full else 2)
    if env.get("BENCH_ONLY"):
        options.only = (options.only or []) + env["BENCH_ONLY"].split(",")
    options.out = options.out or (f"{options.build}/bench/results" if options.only else RESULTS)
    options.work = pathlib.Path(options.work or f"{options.build}/bench/data").resolve()
    return options


def say(text):
    print(text, file=sys.stderr, flush=True)


def install_peers(build):
    """pouchdb-server and PouchDB, of the versions that the lock file names."""
    peers = pathlib.Path(build) / "bench" / "peers"
    lock = TOP / "bench" / "package-lock.json"
    mark = peers / "installed.json"
    if mark.exists() and mark.read_bytes() == lock.read_bytes():
        return peers
    peers.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(TOP / "bench" / name, peers / name)
    say("installing pouchdb-server")
    done = subprocess.run(["npm", "ci", "--prefix", str(peers), "--no-audit", "--no-fund",
                           "--ignore-scripts", "--loglevel=error"], stdin=subprocess.DEVNULL,
                          stdout=sys.stderr, check=False)
    if done.returncode:
        sides.fail("npm ci failed")
    shutil.copy(lock, mark)
    return peers


def make_lines(peers, work):
    """MDN's browser compatibility data, a document a feature, as the tests cut it."""
    lines = work / "bcd.jsonl"
    env = dict(os.environ, NODE_PATH=str(peers / "node_modules"))
    script = TOP / "tests" / "clients" / "demo" / "data.mjs"
    done = subprocess.run(["node", str(script), str(lines)], env=env, stderr=subprocess.DEVNULL,
                          check=False)
    if done.returncode:
        sides.fail("the large set of documents could not be made")
    return lines


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def about(options):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": sides.commit(TOP),
        "processors": os.cpu_count(),
        "processor": processor(),
        "kernel": platform.release(),
        "load_average": os.getloadavg()[0],
        "rounds": options.rounds,
        "seconds": options.seconds,
        "documents": options.docs,
    }


def median_of(rounds):
    """Each figure's median; the peak of memory is the largest."""
    merged = {}
    for name in rounds[0]:
        values = [r[name] for r in rounds if r.get(name) is not None]
        if values:
            merged[name] = max(values) if name == "peak_mb" else statistics.median(values)
    return merged


class Run:
    def __init__(self, options):
        self.options = options
        self.bench = workloads.Bench(
            sides.Loader(f"{options.build}/bench/load"), options.docs, options.seconds,
            options.docs if options.full else min(options.docs, 20000))
        self.servers = []
        self.limits = {}
        self.results = {}
        self.peers = None
        self.lines = None
        self.scheme = None

    def wants(self, name):
        return not self.options.only or any(word in name for word in self.options.only)

    def note(self, workload, side, figures):
        self.results.setdefault(workload, {})[side] = figures

    def open_sides(self):
        o = self.options
        frond = f"{o.build}/frond"
        shutil.rmtree(o.work, ignore_errors=True)
        o.work.mkdir(parents=True)
        self.servers = [sides.Frond(frond, o.work / "frond")]
        if not o.no_peers:
            self.peers = install_peers(o.build)
            self.servers.append(sides.Pouch(self.peers, o.work / "pouch"))
            if os.environ.get("BENCH_COUCHDB"):
                self.servers.append(sides.Couch(os.environ["BENCH_COUCHDB"]))
            self.lines = make_lines(self.peers, o.work)
        if os.environ.get("BENCH_FDB"):
            self.servers.append(sides.Frond(frond, o.work / "frond-fdb",
                                            store=f"fdb:{os.environ['BENCH_FDB']}",
                                            name="frond on FoundationDB"))
        self.limits["constant"] = sides.Constant(f"{o.build}/bench/constant", o.work / "constant")
        for server in self.servers + [self.limits["constant"]]:
            server.start()
        self.scheme = self.servers[0].scheme()
        other = "exploded" if self.scheme == "packed" else "packed"
        self.servers.insert(1, sides.Frond(frond, o.work / "frond-other", name=f"frond, {other}",
                                           options={"scheme": other}))
        self.servers[1].is_other = True
        self.servers[1].start()
        self.make_source(frond)

    def make_source(self, frond):
        """A store for the raw side to take its pairs from, closed and opened once: all in tables."""
        o = self.options
        source = sides.Frond(frond, o.work / "source", name="source")
        source.start()
        source.make(workloads.READ_DB)
        self.bench.load.run(source, "bulk", db=workloads.READ_DB, count=o.docs)
        source.settle()
        source.restart()
        source.settle()
        source.stop()
        self.limits["raw"] = sides.Raw(f"{o.build}/bench/raw", o.work / "source" / "store",
                                       o.work / "raw")

    def close_sides(self):
        for server in self.servers + [self.limits.get("constant")]:
            if server:
                server.stop()
        shutil.rmtree(self.options.work, ignore_errors=True)

    def load_all(self):
        for server in self.servers:
            say(f"loading {self.bench.rows(server)} documents: {server.name}")
            found = workloads.bulk_loaded(self.bench, server)
            self.note("memory-rest", server.name, found["rest"])
            self.note("disk-bulk", server.name, found["disk"])
            self.note("load", server.name, found["load"])
            if self.wants("memory"):
                self.note("memory-loaded", server.name, workloads.connected(self.bench, server))

    def servers_of(self, workload):
        return [s for s in self.servers if (workload.by_scheme or not s.is_other)
                and (s.finds or not workload.queries)]

    def run_timed(self):
        wanted = [w for w in workloads.TIMED if self.wants(w.name)]
        rounds = {}
        for workload in wanted:
            for server in self.servers_of(workload):
                workload.prepare(self.bench, server)
        for number in range(self.options.rounds):
            for workload in wanted:
                say(f"round {number + 1}: {workload.name}")
                for server in self.servers_of(workload):
                    server.settle()
                    server.reset_peak()
                    figures = workload.run(self.bench, server)
                    rounds.setdefault((workload.name, server.name), []).append(figures)
                limit = workload.run_limit(self.bench, self.limits)
                if limit:
                    rounds.setdefault((workload.name, "limit"), []).append(limit)
        for (workload, side), figures in rounds.items():
            self.note(workload, side, median_of(figures))

    def run_once(self):
        for server in self.servers:
            if self.wants("disk-single"):
                say(f"single writes: {server.name}")
                writes = (workloads.DISK_SINGLE_WRITES if self.options.full or server.paths
                          else workloads.DISK_SINGLE_WRITES_SHORT)
                self.note("disk-single", server.name,
                          workloads.one_by_one(self.bench, server, writes))
            if self.lines and self.wants("nested"):
                say(f"nested documents: {server.name}")
                written, read = workloads.nested(self.bench, server, self.lines)
                self.note("nested-bulk", server.name, written)
                self.note("nested-get", server.name, read)
            if self.wants("pull") and not self.options.no_peers:
                say(f"pulling: {server.name}")
                os.environ["BENCH_PEERS"] = str(self.peers)
                figures = workloads.pull(server, TOP / "bench" / "pull.mjs", workloads.READ_DB)
                if figures:
                    self.note("pull", server.name, figures)

    def run_databases(self):
        """On a store of its own, which has nothing else; a CouchDB keeps none of them."""
        if not (self.options.databases and self.wants("databases")):
            return
        own = sides.Frond(f"{self.options.build}/frond", self.options.work / "frond-databases")
        own.start()
        self.servers.append(own)  # so that it is stopped, whatever happens
        for server in [own] + [s for s in self.servers if isinstance(s, sides.Couch)]:
            count = self.options.databases
            if server is not own:
                count = min(count, PEER_DATABASES)
            say(f"{count} databases: {server.name}")
            try:
                for workload, figures in databases.table_rows(server, count).items():
                    self.note(workload, server.name, figures)
            finally:
                if server is not own:
                    databases.drop_all(server)
        self.servers.remove(own)
        own.stop()

    def run(self):
        try:
            self.open_sides()
            self.load_all()
            self.run_timed()
            self.run_once()
            self.run_databases()
        finally:
            self.close_sides()
        return {"about": about(self.options),
                "scheme": self.scheme,
                "sides": [s.name for s in self.servers],
                "results": self.results}


def publish(options, found):
    """Of some workloads only, the last whole run's results with these in their place."""
    if options.only:
        whole = RESULTS / "bench.json"
        found["results"] = {name: by_side for name, by_side in found["results"].items()
                            if any(word in name for word in options.only)}
        found = table.merge(json.loads(whole.read_text()), found)
        whole.write_text(json.dumps(found, indent=1) + "\n")
        table.write_picture(found, RESULTS / "bench.svg")
    table.publish(found, TOP / "docs" / "PERFORMANCE.md")


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: stopped"))  # and the servers with it
    found = Run(options).run()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(json.dumps(found, indent=1) + "\n")
    print(table.as_text(found))
    table.write_picture(found, out / "bench.svg")
    if options.publish:
        publish(options, found)


if __name__ == "__main__":
    main()
