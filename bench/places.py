#!/usr/bin/env python3
"""What it costs to say how many rows are before or behind a place: `offset` and `pending`, at the
beginning, in the middle and at the end of a large database.

    bench/places.py STORE [--frond FILE] [--docs N] [--requests N] [--port N]

Loads N documents into STORE, a directory, unless there is one already, serves it, and asks for pages
of one row. Prints the median time of an answer and the server's processor time, both in
milliseconds, and what was answered.
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


def main():
    parser = argparse.ArgumentParser(description="What places in a large database cost.")
    parser.add_argument("store")
    parser.add_argument("--frond", default=str(TOP / "build/frond"))
    parser.add_argument("--docs", type=int, default=1000000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--port", type=int, default=5985)
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
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
