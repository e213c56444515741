#!/usr/bin/env python3
"""What it costs to say how many rows are before or behind a place: `offset` and `pending`, at the
beginning, in the middle and at the end of a large database.

    bench/places.py STORE [--frond FILE] [--docs N] [--requests N] [--port N]
                          [--writing SECONDS] [--load FILE]

Loads N documents into STORE, a directory, unless there is one already, serves it, and asks for pages
of one row. Prints the median time of an answer and the server's processor time, both in
milliseconds, and what was answered. With --writing a new database then gets 200,000 documents by
_bulk_docs, and more by 64 connections for so many seconds, without a pause between; it prints the
median time of an answer meanwhile, and the longest.
"""

import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
START_S = 60


def load(options):
    process = subprocess.Popen([options.frond, "load", "db", "--quiet", "--store",
                                f"embedded:{options.store}"], stdin=subprocess.PIPE)
    for i in range(options.docs):
        process.stdin.write(b'{"_id":"doc-%09d","n":%d}\n' % (i, i))
    process.stdin.close()
    if process.wait() != 0:
        sys.exit("frond load has failed")


def cpu_ms(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


def connect(port):
    deadline = time.monotonic() + START_S
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        try:
            connection.request("GET", "/db")
            connection.getresponse().read()
            return connection
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def ask(connection, path):
    connection.request("GET", path)
    return json.loads(connection.getresponse().read())


def measure(connection, pid, path, requests):
    times = []
    before = cpu_ms(pid)
    for _ in range(requests):
        start = time.perf_counter()
        answer = ask(connection, path)
        times.append((time.perf_counter() - start) * 1000)
    cpu = (cpu_ms(pid) - before) / requests
    return statistics.median(times), cpu, answer


def places(connection):
    """A document's id, and a Sequence, near each place."""
    docs = ask(connection, "/db")["doc_count"]
    ids = [f"doc-{i:09}" for i in (1, docs // 2, docs - 1)]
    newest = ask(connection, "/db/_changes?limit=2&descending=true")["results"][1]["seq"]
    middle = f"{newest[:2]}{int(newest[2:], 16) // 2:024x}"
    return zip(("beginning", "middle", "end"), ids, ("0", middle, newest))


def put_documents(options):
    command = [options.load, "--host", "127.0.0.1", "--port", str(options.port), "--db", "busy"]
    bulk = json.loads(subprocess.run(command[:1] + ["bulk"] + command[1:] +
                                     ["--batch=256", "--count=200000"],
                                     stdout=subprocess.PIPE, check=True).stdout)
    return subprocess.Popen(command[:1] + ["put"] + command[1:] +
                            ["--connections=64", f"--seconds={options.writing}",
                             f"--first={bulk['next']}"], stdout=subprocess.DEVNULL)


def measure_while_written(connection, options):
    path = "/busy/_changes?limit=1"
    connection.request("PUT", "/busy")
    connection.getresponse().read()
    writer = put_documents(options)
    times = []
    while writer.poll() is None:
        start = time.perf_counter()
        ask(connection, path)
        times.append((time.perf_counter() - start) * 1000)
        time.sleep(0.05)
    print(f"beginning  pending  {statistics.median(times):>9.2f} ms while it is written to, at "
          f"most {max(times):.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description="What places in a large database cost.")
    parser.add_argument("store")
    parser.add_argument("--frond", default=str(TOP / "build/frond"))
    parser.add_argument("--docs", type=int, default=1000000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--port", type=int, default=5985)
    parser.add_argument("--writing", type=float, default=0)
    parser.add_argument("--load", default=str(TOP / "build/bench/load"))
    options = parser.parse_args()

    if not pathlib.Path(options.store).exists():
        load(options)
    server = subprocess.Popen([options.frond, "serve", "--store", f"embedded:{options.store}",
                               "--http", f"127.0.0.1:{options.port}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        connection = connect(options.port)
        for name, doc, seq in places(connection):
            for path, member in ((f'/db/_all_docs?limit=1&startkey="{doc}"', "offset"),
                                 (f"/db/_changes?limit=1&since={seq}", "pending")):
                time_ms, cpu, answer = measure(connection, server.pid, path, options.requests)
                print(f"{name:<10} {member:<8} {time_ms:>9.2f} ms, CPU {cpu:>9.2f} ms, "
                      f"{answer[member]}", flush=True)
        if options.writing:
            measure_while_written(connection, options)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
