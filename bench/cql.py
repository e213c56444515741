#!/usr/bin/env python3
"""
What the door for Cassandra's clients costs: rows of 1,000 bytes in six columns, written and read by raw connections
with prepared statements, 1 and 32 under way on each, beside hashes with the same six fields through the door for
Redis's clients of the same process; and by the drivers for Python and for node.js, beside the same drivers at a server
that answers constants. Both sides of each ratio are of the same round. Prints medians of the rounds, and a table of
what is asked of them.

    bench/cql.py --frond build/frond --programs build/bench
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import uuid

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests" / "cli"))

import cql_wire  # noqa: E402  a client of Cassandra's protocol

PAIRS = (("insert", "hset"), ("select", "hgetall"), ("update", "hset-one"), ("counter", "hincrby"))
WIDTHS = ((1, 1), (1, 32), (16, 1), (16, 32), (64, 1), (64, 32))
COLUMNS = "(k bigint PRIMARY KEY, a text, b text, c text, d text, e text, f text)"
WIDE = [f"c{i}" for i in range(500)]
CREATE = (
    "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    *(f"CREATE TABLE bench.{name} {COLUMNS}" for name in "tuid"),
    "CREATE INDEX ON bench.i (a)",
    "CREATE TABLE bench.counts (k bigint PRIMARY KEY, n counter)",
    "CREATE TABLE bench.p (k bigint, c bigint, v text, PRIMARY KEY (k, c))",
    "CREATE TABLE bench.s (k bigint PRIMARY KEY, a int, b bigint, c text)",
    f"CREATE TABLE bench.w (k int PRIMARY KEY, {', '.join(f'{name} int' for name in WIDE)})",
    f"INSERT INTO bench.w (k, {', '.join(WIDE)}) VALUES (1{', 2' * len(WIDE)})",
    # The first of a table whose rows were whole says in the table's description that they are not any more.
    "UPDATE bench.w SET c8 = 3 WHERE k = 1",
)
AGAIN = ("insert", "insert-indexed", "insert-updated", "select", "select-updated", "update", "lwt")
OPERATIONS = ("insert", "insert-32", "select", "select-32")  # of the drivers
TRACING = 2  # a frame's flag
SETTLE_S = 10
BUSY = 4  # connections that scan, so that the server never waits for one


class Frond:
    def __init__(self, program, directory):
        self.log = open(pathlib.Path(directory) / "log", "w")
        self.process = subprocess.Popen(
            [program, "serve", "--http", "127.0.0.1:0", "--cql", "127.0.0.1:0", "--redis", "127.0.0.1:0"],
            cwd=directory, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.process.stdout.readline()
        # Opened anew: the server has the place in the open file in common with this program.
        log = pathlib.Path(self.log.name).read_text()
        self.ports = dict(re.findall(r"event=(cql|redis) address=127\.0\.0\.1:(\d+)", log))

    def settle(self):
        """Waits until nothing of the last operation is left, such as a compaction, which the next would be charged."""
        until, before = time.monotonic() + SETTLE_S, -1
        while time.monotonic() < until:
            fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks = int(fields[11]) + int(fields[12])
            if before >= 0 and ticks - before <= 1:
                break
            before = ticks
            time.sleep(0.1)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def create(port):
    with cql_wire.Connection(port) as client:
        client.start()
        for text in CREATE:
            client.query(text)


def pairs_of_update(port):
    """The pairs that an UPDATE of one column of a row of 500 writes, by its trace."""
    with cql_wire.Connection(port) as client:
        client.start()
        _, body = client.ask(cql_wire.QUERY, client.query_body("UPDATE bench.w SET c7 = 3 WHERE k = 1"), flags=TRACING)
        session = uuid.UUID(bytes=body[:16])
        told = client.query(f"SELECT activity FROM system_traces.events WHERE session_id = {session}")
    found = re.search(r"(\d+) pairs set", " ".join(row["activity"].decode() for row in told))
    return int(found.group(1))


class Bench:
    def __init__(self, args, frond, constant):
        self.args, self.frond, self.constant = args, frond, constant
        self.next, self.figures = {"insert": 0, "hset": 0, "insert-indexed": 0, "insert-updated": 0}, {}

    def run(self, op, connections, in_flight, rows, seconds=None, first=None):
        port = self.frond.ports["redis" if op.startswith("h") and not op.startswith("hot") else "cql"]
        seconds = self.args.seconds if seconds is None else seconds
        first = self.next.get(op, 0) if first is None else first
        self.frond.settle()
        line = subprocess.run([self.args.programs / "cql_load", op, port, str(connections), str(in_flight),
                               str(seconds), str(first), str(rows), str(self.frond.process.pid)],
                              check=True, capture_output=True, text=True).stdout
        told = json.loads(line)
        if op in self.next:
            self.next[op] = told["next"]
        return told["units"] / told["seconds"], told["server_cpu_us"] / max(told["units"], 1), told["p99_us"]

    def take(self, name, *run):
        """Not counted at first: the operations before have pushed out what this one has in memory otherwise."""
        if self.args.warm:
            self.run(*run, seconds=self.args.warm)
        self.figures.setdefault(name, []).append(self.run(*run))

    def fill(self):
        rows = self.args.rows
        for op in ("insert", "insert-updated", "hset"):
            self.run(op, 16, 32, rows, seconds=0)
        for op in ("fill-partitions", "fill-small"):
            self.run(op, 16, 32, rows, seconds=0, first=0)

    def round(self):
        rows = self.args.rows
        for connections, in_flight in WIDTHS:
            for pair in PAIRS:
                for op in pair:
                    self.take(f"{op} {connections} x {in_flight}", op, connections, in_flight, rows)
        # What is compared goes one after the other.
        for op in AGAIN:
            self.take(f"{op} 64 x 1, again", op, 64, 1, rows)
        for op in ("hot-lwt", "hot-update", "hot-counter"):
            self.take(f"{op} 64 x 1", op, 64, 1, rows)
        self.take("select 1 x 1, of one row", "select", 1, 1, rows)
        self.take("partition 1 x 1, rows of 100", "partition", 1, 1, rows // 100)
        for op in ("scan", "scan-small"):
            self.take(f"{op} {BUSY} x 1, rows", op, BUSY, 1, 1)
        for driver, command in self.args.drivers.items():
            for op in OPERATIONS:
                self.drive(driver, command, op)

    def drive(self, driver, command, op):
        """A driver at frond, and at the server of constants: what it reaches at one by what at the other."""
        rates = []
        for port in (self.frond.ports["cql"], self.constant):
            done = subprocess.run([*command, str(port), op, str(self.args.seconds), str(self.args.rows)], check=True,
                                  capture_output=True, text=True,
                                  env=dict(os.environ, BENCH_CLIENTS=str(self.args.clients)))
            rates.append(float(done.stdout))
        self.figures.setdefault((driver, op), []).append(rates)

    def show(self):
        print(f"{'operation':34} {'a second':>12} {'CPU, us':>9} {'p99, us':>10}")
        for name, took in self.figures.items():
            if isinstance(name, str):
                rate, cpu, p99 = (statistics.median(one[i] for one in took) for i in range(3))
                print(f"{name:34} {rate:12,.0f} {cpu:9.2f} {p99:10,.0f}")
        print()
        for name, other in PAIRS:
            for c, f in WIDTHS:
                ratio = self.cpu(f"{name} {c} x {f}", f"{other} {c} x {f}")
                print(f"CPU of {name} by {other}'s, {c} x {f}: {ratio:.2f}")
        print()
        for driver in self.args.drivers:
            for op in OPERATIONS:
                took = self.figures[driver, op]
                mine, theirs = (statistics.median(one[i] for one in took) for i in range(2))
                print(f"{driver}, {op}: {mine:,.0f} a second, {theirs:,.0f} at constants, "
                      f"{statistics.median(a / b for a, b in took):.2f}")

    def ratio(self, at, name, other):
        return statistics.median(a[at] / b[at] for a, b in zip(self.figures[name], self.figures[other]) if b[at])

    def cpu(self, name, other):
        return self.ratio(1, name, other)

    def rate(self, name, other):
        return self.ratio(0, name, other)

    def goals(self, pairs):
        """Rows of a table: what, measured, the goal; whether it is met, None where there is none."""
        rows = []

        def most(what, found, limit):
            rows.append((what, f"{found:.2f}", f"≤ {limit}", found <= limit))

        def least(what, found, limit):
            rows.append((what, f"{found:,.2f}" if limit < 100 else f"{found:,.0f}", f"≥ {limit:,}", found >= limit))

        most("CPU of an INSERT by HSET's, 64 connections", self.cpu("insert 64 x 1", "hset 64 x 1"), 1.2)
        most("CPU of a SELECT by key by HGETALL's, 64 connections", self.cpu("select 64 x 1", "hgetall 64 x 1"), 1.2)
        for op in ("insert", "select"):
            least(f"{op.upper()}s a second on one connection, 32 under way by one",
                  self.rate(f"{op} 1 x 32", f"{op} 1 x 1"), 3)
        # Of a row's time: a partition's has 100.
        most("time of 100 rows of a partition by that of one row",
             100 * self.rate("select 1 x 1, of one row", "partition 1 x 1, rows of 100"), 4)
        # Two are what every transaction writes.
        rows.append(("pairs that an UPDATE of one column of a row of 500 writes", str(pairs), "3", pairs == 3))
        for op, what in (("scan", "a key of two columns and a text of 166 bytes"),
                         ("scan-small", "a key, an int, a bigint and a text of 10 bytes")):
            name = f"{op} {BUSY} x 1, rows"
            rate, cpu = (statistics.median(one[i] for one in self.figures[name]) for i in range(2))
            least(f"rows of a scan in a second of processor time: {what}", 1e6 / cpu, 400000)
            least("the same, in a second of this machine", rate, 400000)
        most("CPU of an INSERT with an index by one without",
             self.cpu("insert-indexed 64 x 1, again", "insert 64 x 1, again"), 1.6)
        for op in ("insert", "select"):
            rows.append((f"CPU of {op.upper()} where UPDATEs have written columns by that where none has",
                         f"{self.cpu(f'{op}-updated 64 x 1, again', f'{op} 64 x 1, again'):.2f}", "", None))
        most("CPU of an UPDATE with IF EXISTS by a plain one's, 64 connections",
             self.cpu("lwt 64 x 1, again", "update 64 x 1, again"), 1.3)
        least("conditional UPDATEs of one row a second, 64 clients",
              statistics.median(one[0] for one in self.figures["hot-lwt 64 x 1"]), 5000)
        least("counters of one row by plain UPDATEs of one, a second, 64 clients",
              self.rate("hot-counter 64 x 1", "hot-update 64 x 1"), 0.8)
        return rows


def drivers_of(args):
    """What there is to run: Debian's driver for Python, node's where it is installed."""
    here = pathlib.Path(__file__).resolve().parent
    found = {}
    if subprocess.run([args.python, "-c", "import cassandra"], capture_output=True, check=False).returncode == 0:
        found["python3-cassandra"] = [args.python, here / "cql_driver.py"]
    if (args.clients / "node_modules" / "cassandra-driver").exists():
        found["node's cassandra-driver"] = ["node", here / "cql_driver.mjs"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frond", default=str(TOP / "build" / "frond"))
    parser.add_argument("--programs", default=str(TOP / "build" / "bench"), help="where cql_load and cql_constant are")
    parser.add_argument("--python", default="/usr/bin/python3", help="a Python that has the driver")
    parser.add_argument("--clients", default=str(TOP / "tests" / "clients"), help="the directory with node_modules")
    parser.add_argument("--rows", type=int, default=20000, help="of each table")
    parser.add_argument("--seconds", type=float, default=2, help="of each operation in each round")
    parser.add_argument("--warm", type=float, default=1, help="seconds of each before those that are counted")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", default="/tmp", help="the directory in which the store lies")
    args = parser.parse_args()
    args.frond, args.programs = os.path.abspath(args.frond), pathlib.Path(args.programs).resolve()
    args.clients = pathlib.Path(args.clients).resolve()
    args.drivers = drivers_of(args)
    with tempfile.TemporaryDirectory(prefix="frond-bench-", dir=args.work) as directory:
        frond = Frond(args.frond, directory)
        constant = subprocess.Popen([args.programs / "cql_constant", frond.ports["cql"]], stdout=subprocess.PIPE,
                                    text=True)
        try:
            create(int(frond.ports["cql"]))
            bench = Bench(args, frond, int(constant.stdout.readline()))
            bench.fill()
            for _ in range(args.rounds):
                bench.round()
            print(f"{args.rounds} rounds of {args.seconds} s, load of the machine {os.getloadavg()[1]:.1f} "
                  f"on {os.cpu_count()} processors")
            bench.show()
            print("\n| | measured | goal | |\n|---|---:|---:|---|")
            for what, found, goal, met in bench.goals(pairs_of_update(int(frond.ports["cql"]))):
                print(f"| {what} | {found} | {goal} | {'' if met is None else 'met' if met else 'missed'} |")
        finally:
            constant.terminate()
            constant.wait()
            frond.end()


main()
