"""Indexes of MongoDB's door whose strings another version of ICU has ordered."""

import os
import sys

from harness import contains, equal, main, run, test, until
from mongo import Client, Failure, sequence
from mongo_server import MongoServer

OTHER_ICU = os.path.abspath(sys.argv[2])
NOCASE = {"locale": "en", "strength": 2}


def icu(number):
    """The environment of a program with that version of ICU."""
    return {"LD_PRELOAD": OTHER_ICU, "FROND_TEST_ICU": str(number), "ASAN_OPTIONS": "verify_asan_link_order=0"}


class Mongo(MongoServer):
    def __init__(self, cwd, number):
        super().__init__(cwd, env=icu(number))

    def client(self):
        return Client(self.port)


def rows(client, **more):
    found = client({"find": "c", "filter": {"a": "B"}, "collation": NOCASE, **more}, db="d")
    return sorted(row["_id"] for row in found["cursor"]["firstBatch"])


def names(client):
    return sorted(one["name"] for one in client({"listIndexes": "c"}, db="d")["cursor"]["firstBatch"])


def wait_for_index(client):
    def found():
        try:
            return rows(client, hint="nocase")
        except Failure:
            return None

    return until(found)


@test
def an_index_of_another_icu_is_built_again(cwd):
    with Mongo(cwd, 50) as server, server.client() as client:
        client({"createIndexes": "c", "indexes": [
            {"key": {"a": 1}, "name": "nocase", "collation": NOCASE},
            {"key": {"n": 1}, "name": "plain"}]}, db="d")
        client({"insert": "c"}, db="d", sections=sequence("documents", *(
            {"_id": i, "a": "bB"[i % 2], "n": i} for i in range(20))))
        equal(rows(client), list(range(20)))
    contains(run("verify", cwd=cwd, env=icu(50)).stdout, "0 findings")
    result = run("verify", cwd=cwd, env=icu(51))
    contains(result.stdout + result.stderr, "another version of ICU orders the texts of the index")
    # A dump has the index all the same.
    contains(run("dump", "mongo:d.c", cwd=cwd, env=icu(51)).stdout, '"name":"nocase"')
    for number in (51, 52):
        with Mongo(cwd, number) as server, server.client() as client:
            equal(names(client), ["_id_", "nocase", "plain"])
            client({"update": "c", "updates": [{"q": {"_id": 3}, "u": {"$set": {"n": number}}}]}, db="d")
            client({"insert": "c"}, db="d", sections=sequence("documents", {"_id": number, "a": "x"}))
            equal(rows(client), list(range(20)))
            equal(rows(client, hint="plain"), list(range(20)))
            equal(names(client), ["_id_", "nocase", "plain"])
            equal(wait_for_index(client), list(range(20)))
            contains(server.read_log(), 'event=index_renewed db="d.c" index="nocase" made_with="%d.0/' % (number - 1))
        contains(run("verify", cwd=cwd, env=icu(number)).stdout, "0 findings")


if __name__ == "__main__":
    main()
