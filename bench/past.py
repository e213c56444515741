#!/usr/bin/env python3
"""What the past costs Redis's clients (FROND.HISTORY), with few keys and with many.

    bench/past.py [--frond FILE] [--keys N,N] [--writes N] [--rounds N] [--work DIR]

For each number of keys a server without a past, one that keeps it, one whose past is bounded by a tenth of the bytes
that are written and one that keeps ten versions of each key take turns within each round, each with a new store and
values of 100 bytes or a little less, of digits. Keys are drawn by chance; 50 connections have 16 commands under way
each, by redis-benchmark. Prints medians of the rounds: commands a second and the server's processor time of each, for
writes over keys that are there, for reads, and for reads of the time before the writes; how long after the writes the
background work rests, and the processor time of a write until then; the bytes that a write leaves on disk when all is
compacted; and how long it takes to count the keys as they were then.
"""

import argparse
import http.client
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
VALUE_BYTES = 100
VERSIONS = 10
KINDS = ("none", "kept", "bounded", "versions")
REST_S = 2.0       # without work: nothing is left to do in the background
REST_SHARE = 0.03  # of a processor, which a server takes that has nothing to do
REST_MOST_S = 600


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Server:
    def __init__(self, frond, work):
        self.work = work
        log = open(work / "log", "w")
        self.process = subprocess.Popen(
            [frond, "serve", "--http", "127.0.0.1:0", "--redis", "127.0.0.1:0", "--store", f"embedded:{work}/store"],
            stdout=subprocess.PIPE, stderr=log, text=True)
        self.http = int(self.process.stdout.readline().split(" at ")[1].strip().rstrip("/").rsplit(":", 1)[1])
        self.redis = int(re.search(r"event=redis address=\S+:(\d+)", (work / "log").read_text())[1])

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def command(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.redis), *words], check=True, capture_output=True,
                              text=True).stdout.strip()

    def fill(self, keys):
        load = subprocess.Popen(["redis-cli", "-p", str(self.redis), "--pipe"], stdin=subprocess.PIPE,
                                stdout=subprocess.DEVNULL)
        for at in range(0, keys, 10000):
            load.stdin.write(b"".join(
                b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n" % (i, VALUE_BYTES, b"x" * VALUE_BYTES)
                for i in range(at, min(at + 10000, keys))))
        load.stdin.close()
        assert load.wait() == 0

    def run(self, keys, count, *words):
        """Commands a second, and microseconds of the server's processor time for each."""
        before = cpu_s(self.process.pid)
        answer = subprocess.run(
            ["redis-benchmark", "-p", str(self.redis), "-n", str(count), "-r", str(keys), "-P", "16", "--csv",
             *(word.replace("KEY", "key:__rand_int__") for word in words)],
            check=True, capture_output=True, text=True).stdout
        rate = float(answer.strip().splitlines()[-1].rsplit('",', 1)[0].split('","')[1])
        return rate, (cpu_s(self.process.pid) - before) / count * 1e6

    def rest(self, count):
        """Seconds until the server has nothing left to do, and microseconds of its processor time for each write."""
        start, before = time.monotonic(), cpu_s(self.process.pid)
        while time.monotonic() - start < REST_MOST_S:
            at = cpu_s(self.process.pid)
            time.sleep(REST_S)
            if cpu_s(self.process.pid) - at <= REST_S * REST_SHARE:
                break
        return time.monotonic() - start - REST_S, (cpu_s(self.process.pid) - before) / count * 1e6

    def disk(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=3600)
        connection.request("POST", "/_frond/compact", b"{}", {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        return sum(f.stat().st_size for f in (self.work / "store").glob("*.sst"))


def measure(options, kind, keys, work):
    server = Server(options.frond, work)
    try:
        server.fill(keys)
        if kind == "kept":
            server.command("FROND.HISTORY", "86400")
        elif kind == "bounded":
            server.command("FROND.HISTORY", "86400", "BYTES", str(options.writes * VALUE_BYTES // 10))
        elif kind == "versions":
            server.command("FROND.HISTORY", "86400", "VERSIONS", str(VERSIONS))
        before = server.disk()
        time.sleep(0.1)
        then = str(int(time.time() * 1000))
        found = {"write": server.run(keys, options.writes, "SET", "KEY", "__rand_int__" * (VALUE_BYTES // 12)),
                 "rest": server.rest(options.writes),
                 "read": server.run(keys, options.writes, "GET", "KEY")}
        found["disk"] = (server.disk() - before) / options.writes, 0.0
        if kind == "kept":
            found["read then"] = server.run(keys, options.writes // 4, "FROND.AT", then, "GET", "KEY")
            start = time.perf_counter()
            assert server.command("FROND.AT", then, "DBSIZE") == str(keys)
            found["count then"] = (time.perf_counter() - start) * 1000, 0.0
        return found
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frond", default=str(TOP / "build" / "frond"))
    parser.add_argument("--keys", default="1000,1000000")
    parser.add_argument("--writes", type=int, default=400000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work")
    options = parser.parse_args()
    for keys in map(int, options.keys.split(",")):
        rounds = {kind: [] for kind in KINDS}
        for _ in range(options.rounds):
            for kind in KINDS:
                work = pathlib.Path(tempfile.mkdtemp(prefix="past-", dir=options.work))
                rounds[kind].append(measure(options, kind, keys, work))
                shutil.rmtree(work)
        print(f"{keys:,} keys, {options.writes:,} writes")
        for name, unit in (("write", "/s, us"), ("rest", "s, us a write"), ("read", "/s, us"), ("read then", "/s, us"), ("disk", "bytes a write"),
                           ("count then", "ms")):
            shown = []
            for kind in KINDS:
                values = [found[name] for found in rounds[kind] if name in found]
                if values:
                    shown.append(f"{kind} " + " ".join(f"{statistics.median(v):,.1f}" for v in zip(*values)))
            print(f"  {name:10} {' | '.join(shown)} ({unit})", flush=True)


if __name__ == "__main__":
    main()
