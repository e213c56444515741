#!/usr/bin/env python3
"""
What the door for Cassandra's clients costs: rows of 1,000 bytes in six columns, written and read by raw connections
with prepared statements, 1 and 32 under way on each, beside hashes with the same six fields through the door for
Redis's clients of the same process; both sides of each figure in the same round. Prints medians of the rounds.

    bench/cql.py --frond build/frond --load build/bench/cql_load
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
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
PAIRS = (("insert", "hset"), ("select", "hgetall"), ("update", "hset-one"), ("counter", "hincrby"))
WIDTHS = ((1, 1), (1, 32), (16, 1), (16, 32), (64, 1), (64, 32))
CREATE = (
    "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE bench.t (k bigint PRIMARY KEY, a text, b text, c text, d text, e text, f text)",
    "CREATE TABLE bench.counts (k bigint PRIMARY KEY, n counter)",
    "CREATE TABLE bench.p (k bigint, c bigint, v text, PRIMARY KEY (k, c))",
)


class Frond:
    def __init__(self, program, directory):
        self.log = open(pathlib.Path(directory) / "log", "w+")
        self.process = subprocess.Popen(
            [program, "serve", "--http", "127.0.0.1:0", "--cql", "127.0.0.1:0", "--redis", "127.0.0.1:0"],
            cwd=directory, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.process.stdout.readline()
        self.log.seek(0)
        self.ports = dict(re.findall(r"event=(cql|redis) address=127\.0\.0\.1:(\d+)", self.log.read()))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def create(port):
    """The tables, by version 4 of the protocol."""
    with socket.create_connection(("127.0.0.1", port)) as s, s.makefile("rb") as answers:
        def ask(opcode, body):
            s.sendall(struct.pack(">BBhBI", 4, 0, 0, opcode, len(body)) + body)
            _, _, _, code, length = struct.unpack(">BBhBI", answers.read(9))
            answer = answers.read(length)
            if code == 0:
                raise SystemExit(answer)
        ask(1, struct.pack(">HH11sH5s", 1, 11, b"CQL_VERSION", 5, b"3.0.0"))
        for text in CREATE:
            ask(7, struct.pack(">I", len(text)) + text.encode() + struct.pack(">HB", 1, 0))


class Bench:
    def __init__(self, args, frond):
        self.args, self.frond, self.next, self.figures = args, frond, {"insert": 0, "hset": 0}, {}

    def run(self, op, connections, in_flight, rows, seconds=None, first=None):
        port = self.frond.ports["redis" if op.startswith("h") and not op.startswith("hot") else "cql"]
        seconds = self.args.seconds if seconds is None else seconds
        first = self.next.get(op, 0) if first is None else first
        line = subprocess.run([self.args.load, op, port, str(connections), str(in_flight), str(seconds), str(first),
                               str(rows), str(self.frond.process.pid)], check=True, capture_output=True, text=True).stdout
        told = json.loads(line)
        if op in self.next:
            self.next[op] = told["next"]
        return told["units"] / told["seconds"], told["server_cpu_us"] / max(told["units"], 1), told["p99_us"]

    def take(self, name, *run, **how):
        self.figures.setdefault(name, []).append(self.run(*run, **how))

    def fill(self):
        rows = self.args.rows
        for op in ("insert", "hset"):
            self.run(op, 16, 32, rows, seconds=0)
        self.run("fill-partitions", 16, 32, rows, seconds=0, first=0)

    def round(self):
        rows = self.args.rows
        for connections, in_flight in WIDTHS:
            for pair in PAIRS:
                for op in pair:
                    self.take(f"{op} {connections} x {in_flight}", op, connections, in_flight, rows)
        for op in ("lwt", "hot-lwt", "hot-update", "hot-counter"):
            self.take(f"{op} 64 x 1", op, 64, 1, rows)
        self.take("select 1 x 1, of one row", "select", 1, 1, rows)
        self.take("partition 1 x 1, rows of 100", "partition", 1, 1, rows // 100)
        self.take("scan 1 x 1, rows", "scan", 1, 1, 1)

    def show(self):
        print(f"{'operation':34} {'a second':>12} {'CPU, us':>9} {'p99, us':>10}")
        for name, took in self.figures.items():
            rate, cpu, p99 = (statistics.median(one[i] for one in took) for i in range(3))
            print(f"{name:34} {rate:12,.0f} {cpu:9.2f} {p99:10,.0f}")
        print()
        for name, other in PAIRS:
            for c, f in WIDTHS:
                mine, theirs = (self.figures[f"{op} {c} x {f}"] for op in (name, other))
                ratio = statistics.median(a[1] / b[1] for a, b in zip(mine, theirs) if b[1])
                print(f"CPU of {name} by {other}'s, {c} x {f}: {ratio:.2f}")
        self.ratio("lwt 64 x 1", "update 64 x 1")
        self.ratio("hot-counter 64 x 1", "hot-update 64 x 1")

    def ratio(self, name, other):
        pairs = list(zip(self.figures[name], self.figures[other]))
        print(f"{name} by {other}: CPU {statistics.median(a[1] / b[1] for a, b in pairs):.2f}, "
              f"rate {statistics.median(a[0] / b[0] for a, b in pairs):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frond", default=str(TOP / "build" / "frond"))
    parser.add_argument("--load", default=str(TOP / "build" / "bench" / "cql_load"))
    parser.add_argument("--rows", type=int, default=20000, help="of each table")
    parser.add_argument("--seconds", type=float, default=2, help="of each operation in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", default="/tmp", help="the directory in which the store lies")
    args = parser.parse_args()
    args.frond, args.load = os.path.abspath(args.frond), os.path.abspath(args.load)
    with tempfile.TemporaryDirectory(prefix="frond-bench-", dir=args.work) as directory:
        frond = Frond(args.frond, directory)
        try:
            create(int(frond.ports["cql"]))
            bench = Bench(args, frond)
            bench.fill()
            for _ in range(args.rounds):
                bench.round()
            print(f"{args.rounds} rounds of {args.seconds} s, load of the machine {os.getloadavg()[1]:.1f} "
                  f"on {os.cpu_count()} processors")
            bench.show()
        finally:
            frond.end()


main()
