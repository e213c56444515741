"""Commands that read a store for longer than it keeps one moment to read, as clusters keep each for
seconds only. As a black box, over a frond that has the faulty engine, whose reads end so by chance."""

import json
import re

from harness import Server, contains, equal, main, ok, run, test
from mongo import Client

SEEDS = 12


def store(seed):
    return f"faulty:seed={seed},rate=0.2,delay=0,watch=0,shared=1:embedded:data"


def load(cwd):
    docs = "\n".join(json.dumps({"_id": f"d{n}", "n": n, "text": "x" * 300}) for n in range(400))
    ok("load", "db", "--store", "embedded:data", "--quiet", cwd=cwd, stdin=docs)


@test
def a_dump_that_takes_too_long_says_what_to_do(cwd):
    load(cwd)
    whole = ok("dump", "db", "--quiet", "--store", "embedded:data", cwd=cwd).stdout
    refused = 0
    for seed in range(SEEDS):
        result = run("dump", "db", "--quiet", "--store", store(seed), cwd=cwd)
        if result.returncode:
            refused += 1
            equal(result.returncode, 1)
            contains(result.stderr, "dump the database through a server, with --from")
        else:
            equal(result.stdout, whole)
    assert 0 < refused < SEEDS, refused


@test
def verify_reads_at_several_moments_where_it_may(cwd):
    load(cwd)
    refused = 0
    for seed in range(SEEDS):
        args = ("verify", "--quiet", "--store", store(seed))
        contains(ok(*args, "--still", cwd=cwd).stdout, " 400 documents, ")
        contains(ok(*args, "--still", "db", cwd=cwd).stdout, " 0 findings")
        result = run(*args, cwd=cwd)
        if result.returncode:
            refused += 1
            equal(result.returncode, 1)
            contains(result.stderr, "it reads at several with --ranges, and with --still, while nobody writes")
        else:
            contains(result.stdout, " 0 findings")
    assert 0 < refused < SEEDS, refused


@test
def validate_checks_in_slices_what_no_version_is_kept_for(cwd):
    def serve(store):
        return Server(cwd, "--store", store, "--mongo", "127.0.0.1:0")

    def client(server):
        return Client(int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", server.read_log()).group(1)))
    with serve("embedded:data") as server, client(server) as c:
        c({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]}, "d")
        for first in range(0, 400, 100):
            c({"insert": "c", "documents": [{"_id": i, "n": i} for i in range(first, first + 100)]}, "d")
    for seed in range(SEEDS):
        with serve(store(seed)) as server, client(server) as c:
            answer = c({"validate": "c"}, "d")
            equal((answer["valid"], answer["warnings"], answer["nrecords"], answer["keysPerIndex"]),
                  (True, [], 400, {"_id_": 400, "n": 400}))


main()
