#!/usr/bin/env python3
"""Transaction ids, (0, 255, id), in a store whose commits can end without a known outcome: the
process that left them clears them, while it serves and when it stops. As a black box, over a frond
that has the faulty engine with all faults switched off."""

import time

from harness import Server, contains, equal, main, ok, test

STORE = "faulty:seed=1,rate=0,delay=0,watch=0:embedded:data"
DOCUMENTS = 3000
SECONDS = 20  # far more than it takes, for machines that are busy


def count_ids(cwd):
    """Read beside the server, from the directory itself."""
    drawn = ok("inspect", "--store", "embedded:data", "--limit", "1000000", cwd=cwd).stdout
    contains(drawn, '"databases"')
    return sum(1 for line in drawn.splitlines() if '"txids"' in line)


def put_many(server, first):
    for n in range(first, first + DOCUMENTS // 10):
        docs = [{"_id": f"{n}-{i}"} for i in range(10)]
        status, _ = server.request("POST", "/db/_bulk_docs", {"docs": docs})
        equal(status, 201)


@test
def ids_are_cleared_seconds_after_they_were_left(cwd):
    with Server(cwd, "--store", STORE) as server:
        equal(server.request("PUT", "/db")[0], 201)
        for n in range(300):
            equal(server.request("PUT", f"/db/{n}", {"n": n})[0], 201)
        deadline = time.monotonic() + SECONDS
        while count_ids(cwd) and time.monotonic() < deadline:
            time.sleep(0.5)
        equal(count_ids(cwd), 0)


@test
def server_that_stops_leaves_no_ids(cwd):
    with Server(cwd, "--store", STORE) as server:
        equal(server.request("PUT", "/db")[0], 201)
        put_many(server, 0)
        equal(server.stop(), 0)
    equal(count_ids(cwd), 0)


@test
def command_that_writes_leaves_no_ids(cwd):
    lines = "".join(f'{{"_id":"{n}"}}\n' for n in range(DOCUMENTS))
    ok("load", "db", "--store", STORE, "--batch", "10", cwd=cwd, stdin=lines)
    equal(count_ids(cwd), 0)


main()
