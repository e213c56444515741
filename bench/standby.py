#!/usr/bin/env python3
"""What a standby costs the writes of its first: the same documents, put one by one over several
connections, to a server without a log for standbys, to one that keeps it, and to one that is followed.

    bench/standby.py [--frond FILE] [--docs N] [--connections N] [--rounds N] [--work DIR]

The three take turns within each round, each with a new store. Prints medians of the rounds: writes a
second, the server's processor time of a write, and that beside the first row's; for the one that is
followed also how long the standby took to have everything after the last write was answered.
"""

import argparse
import http.client
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
KINDS = ("no log kept", "log kept", "followed")


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def put(port, number, count):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    body = b'{"text":"' + b"x" * 980 + b'"}'
    for i in range(count):
        connection.request("PUT", f"/db/{number:02}-{i:07}", body)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 201, answer.status
    connection.close()


def measure(options, kind, work):
    settings = work / "frond.ini"
    settings.write_text("" if kind == KINDS[0] else "[frond]\nkeep_log_bytes = 4000000000\n")
    server = subprocess.Popen([options.frond, "serve", "--http", "127.0.0.1:0", "--config", settings,
                               "--store", f"embedded:{work}/first"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    url = server.stdout.readline().split(" at ")[1].strip().rstrip("/")
    port = int(url.rsplit(":", 1)[1])
    follow = [options.frond, "follow", url, "--store", f"embedded:{work}/second"]
    follower = None
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("PUT", "/db")
    connection.getresponse().read()
    put(port, 99, options.docs // options.connections // 10)
    if kind == KINDS[2]:
        subprocess.run([*follow, "--once"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        follower = subprocess.Popen(follow, stderr=subprocess.DEVNULL)
    each = options.docs // options.connections
    threads = [threading.Thread(target=put, args=(port, i, each)) for i in range(options.connections)]
    before, start = cpu_s(server.pid), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, cpu = time.perf_counter() - start, cpu_s(server.pid) - before
    rest = 0.0
    if follower:
        start = time.perf_counter()
        follower.terminate()
        follower.wait()
        subprocess.run([*follow, "--once"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rest = time.perf_counter() - start
    server.terminate()
    server.wait()
    return each * options.connections / took, cpu / (each * options.connections) * 1e6, rest


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--frond", default=str(TOP / "build" / "frond"))
    parser.add_argument("--docs", type=int, default=20000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", default=None)
    options = parser.parse_args()
    found = {kind: [] for kind in KINDS}
    for _ in range(options.rounds):
        for kind in KINDS:
            work = pathlib.Path(tempfile.mkdtemp(dir=options.work))
            found[kind].append(measure(options, kind, work))
            shutil.rmtree(work)
    base = statistics.median(row[1] for row in found[KINDS[0]])
    for kind in KINDS:
        rate, cpu, rest = (statistics.median(row[i] for row in found[kind]) for i in range(3))
        print(f"{kind:12} {rate:9,.0f} writes/s {cpu:7.1f} µs of processor each ({cpu / base:5.3f})"
              + (f", {rest:.2f} s behind at the end" if rest else ""))


main()
