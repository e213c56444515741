#!/usr/bin/env python3
"""Queues in databases and collections: whether the last one is taken as fast as the first.

    bench/queues.py [--frond FILE] [--messages N] [--take N]

Fills a collection and a database with N messages each, and takes the first one again and again: by
findOneAndDelete in the order of `_id` and of an index, by _find in the order of an index and by
_all_docs, each followed by a DELETE. Prints the server's processor time in milliseconds for one
message, for each eighth of those that are taken. Needs pymongo.
"""

import argparse
import http.client
import json
import os
import pathlib
import sys
import tempfile

import pymongo

TOP = pathlib.Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
PARTS = 8
BATCH = 1000
TEXT = "x" * 50

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "bench"))
import sides  # noqa: E402


def cpu_ms(pids):
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks * 1000 / TICKS


class Frond(sides.Frond):
    doors = ("mongo",)


class Couch:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {text}")
        return json.loads(text)

    def fill(self, db, messages):
        self.ask("PUT", f"/{db}")
        self.ask("POST", f"/{db}/_index", {"index": {"fields": ["n"]}})
        for first in range(0, messages, BATCH):
            self.ask("POST", f"/{db}/_bulk_docs", {"docs": [
                {"_id": f"m{n:09}", "n": n, "text": TEXT} for n in range(first, first + BATCH)]})

    def delete(self, db, doc):
        self.ask("DELETE", f"/{db}/{doc['_id']}?rev={doc['_rev']}")

    def take_found(self, db):
        found = self.ask("POST", f"/{db}/_find", {"selector": {"n": {"$gte": 0}}, "sort": ["n"],
                                                  "limit": 1})
        self.delete(db, found["docs"][0])

    def take_listed(self, db):
        rows = self.ask("GET", f"/{db}/_all_docs?limit=1&include_docs=true")["rows"]
        self.delete(db, rows[0]["doc"])


def take_all(name, server, take, options):
    each = options.take // PARTS
    parts = []
    for _ in range(PARTS):
        before = cpu_ms(server.pids())
        for _ in range(each):
            take()
        parts.append((cpu_ms(server.pids()) - before) / each)
    print(f"{name:<28}", " ".join(f"{part:6.2f}" for part in parts), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Queues that are emptied.")
    parser.add_argument("--frond", default=str(TOP / "build/frond"))
    parser.add_argument("--messages", type=int, default=20000)
    parser.add_argument("--take", type=int, default=10000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frond-bench-") as directory:
        server = Frond(options.frond, directory)
        server.start()
        try:
            db = pymongo.MongoClient("127.0.0.1", server.mongo_port).queues
            messages = [{"_id": n, "n": n, "text": TEXT} for n in range(options.messages)]
            db.indexed.create_index("n")
            db.plain.insert_many(messages)
            db.indexed.insert_many(messages)
            take_all("findOneAndDelete by _id", server,
                     lambda: db.plain.find_one_and_delete({}, sort=[("_id", 1)]), options)
            take_all("findOneAndDelete by an index", server,
                     lambda: db.indexed.find_one_and_delete({}, sort=[("n", 1)]), options)
            couch = Couch(server.port)
            couch.fill("found", options.messages)
            couch.fill("listed", options.messages)
            take_all("_find by an index", server, lambda: couch.take_found("found"), options)
            take_all("_all_docs", server, lambda: couch.take_listed("listed"), options)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
