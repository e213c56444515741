#!/usr/bin/env python3
"""The ten figures that README shows, taken from what the benches have written.

    bench/figures.py             prints them
    bench/figures.py --publish   puts them into README.md
    bench/figures.py --check     fails if README.md has others, as TAP
"""

import json
import pathlib
import statistics
import sys

from mongo import DOCUMENTDB

TOP = pathlib.Path(__file__).resolve().parent.parent
RESULTS = TOP / "bench" / "results"
PAGE = TOP / "README.md"
BEGIN = "<!-- figures: made by `bench/figures.py --publish` -->"
END = "<!-- /figures -->"

COUCHDB = "CouchDB 3.5.0"
REDIS = "redis, always"
PEERS = {REDIS: "redis-server, fsync always", "DocumentDB": "DocumentDB 0.108 on PostgreSQL"}

# Workloads of bench.json, rows of redis.json, and of mongo.json; what they are called, and the peer.
COUCH = [
    ("put-16", "`PUT` of a new document, 16 connections", COUCHDB),
    ("get-16", "`GET` of one, 16 connections", COUCHDB),
    ("bulk-1", "`_bulk_docs` by 1,000, documents", COUCHDB),
    ("find-16", "`_find` of one by an index, 16 connections", COUCHDB),
    ("view-map", "view of a map built, documents", COUCHDB),
    ("pull", "PouchDB pulling, documents", COUCHDB),
]
OF_REDIS = [
    ("SET, 100,000 keys, 16 in a pipeline", "Redis's `SET`, 50 connections, 16 in a pipeline"),
    ("GET, one key", "Redis's `GET`, 50 connections"),
]
OF_MONGO = [
    ("insert, pymongo", "MongoDB's insert by one pymongo client"),
    ("find, pymongo", "MongoDB's find by `_id`, one pymongo client"),
]


def read(name):
    return json.loads((RESULTS / name).read_text())


def number(x):
    return f"{x:,.0f}"


def times(ours, theirs):
    ratio = ours / theirs
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×" if ratio >= 1 else f"{ratio:.2f}×"


def line(title, ours, peer, theirs):
    return f"| {title} | {number(ours)} | {times(ours, theirs)} | {PEERS.get(peer, peer)} |"


def table():
    couch, redis, mongo = read("bench.json"), read("redis.json"), read("mongo.json")
    out = ["| operations a second | frond | of its peer's | the peer |", "|---|---:|---:|---|"]
    for workload, title, peer in COUCH:
        sides = couch["results"][workload]
        out.append(line(title, sides["frond"]["rate"], peer, sides[peer]["rate"]))
    for row, title in OF_REDIS:
        sides = redis["rows"][row]["sides"]
        out.append(line(title, sides["frond"]["rate"], REDIS, sides[REDIS]["rate"]))
    for row, title in OF_MONGO:
        ours = statistics.median(mongo["rows"][row]["frond"]["rate"])
        out.append(line(title, ours, "DocumentDB", DOCUMENTDB[row.split(",")[0]]))
    days = sorted(found["about"]["date"].split()[0] for found in (couch, redis, mongo))
    out.append("")
    out.append(f"Measured from {days[0]} to {days[-1]} on {couch['about']['processors']} × "
               f"{couch['about']['processor']}, the clients on the same processors.")
    return "\n".join(out)


def publish(text):
    old = PAGE.read_text()
    if BEGIN not in old or END not in old:
        sys.exit(f"{PAGE} has no place for the figures")
    PAGE.write_text(old[:old.index(BEGIN)] + f"{BEGIN}\n\n{text}\n\n" + old[old.index(END):])


def check(text):
    holds = f"{BEGIN}\n\n{text}\n\n{END}" in PAGE.read_text()
    print(f"1..1\n{'ok' if holds else 'not ok'} 1 - README has the figures that the benches have written")
    return 0 if holds else 1


def main():
    text = table()
    if "--check" in sys.argv:
        return check(text)
    print(text)
    if "--publish" in sys.argv:
        publish(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
