"""Builds of indexes that a kill ends: the next start finishes them, or takes them back."""

import select

from harness import contains, equal, main, ok, test
from mongo import Client, Failure
from mongo_server import MongoServer as Mongo

DOCS = 20000
TRIES = 20  # of meeting a build while it is under way


def fill(cwd, twin=None):
    """Documents whose `email` is their own; that of `twin` is another one's, too."""
    lines = "".join('{"_id":%d,"n":%d,"tags":["a%d","b%d"],"email":"e%d","text":"%s"}\n'
                    % (i, i % 100, i % 7, i % 11, 3 if i == twin else i, "x" * 100)
                    for i in range(DOCS))
    ok("load", "mongo:d.c", "-", cwd=cwd, stdin=lines, timeout=300)


def names(c):
    return [index["name"] for index in c({"listIndexes": "c"}, "d")["cursor"]["firstBatch"]]


def create(c, index):
    return c({"createIndexes": "c", "indexes": [index]}, "d")


def has_answer(client):
    return bool(select.select([client.socket], [], [], 0)[0])


def kill_while_building(cwd, index):
    """Kills the server when the index is there, and its maker still waits for it."""
    for _ in range(TRIES):
        with Mongo(cwd) as server, Client(server.port) as c, Client(server.port) as maker:
            maker.send({"createIndexes": "c", "indexes": [index], "$db": "d"})
            while index["name"] not in names(c) and not has_answer(maker):
                pass
            server.process.kill()
            server.process.wait()
            try:
                if maker.read_raw() is None:
                    return
            except OSError:
                return
        # It was built, or had failed, before the kill.
        with Mongo(cwd) as server, Client(server.port) as c:
            try:
                c({"dropIndexes": "c", "index": index["name"]}, "d")
            except Failure as failure:
                equal(failure.code, 27)
    raise AssertionError(f"{TRIES} builds were quicker than a kill")


def found(c, filter, hint):
    """How many documents an index finds."""
    return c({"count": "c", "query": filter, "hint": hint}, "d")["n"]


@test
def a_build_that_was_killed_is_finished_by_the_next_start(cwd):
    fill(cwd)
    kill_while_building(cwd, {"key": {"n": 1, "tags": 1}, "name": "multikey"})
    kill_while_building(cwd, {"key": {"email": 1}, "name": "unique", "unique": True})
    ok("verify", cwd=cwd, timeout=300)
    with Mongo(cwd) as server, Client(server.port) as c:
        equal(names(c), ["_id_", "multikey", "unique"])
        # Documents are written meanwhile.
        equal(c({"insert": "c", "documents": [
            {"_id": DOCS, "n": 5, "tags": ["new"], "email": f"e{DOCS}"}]}, "d")["n"], 1)
        # Who asks for an index that is being built waits for it.
        create(c, {"key": {"n": 1, "tags": 1}, "name": "multikey"})
        create(c, {"key": {"email": 1}, "name": "unique", "unique": True})
        answer = c({"insert": "c", "documents": [{"_id": "x", "email": "e77"}]}, "d")
        equal((answer["n"], answer["writeErrors"][0]["code"]), (0, 11000))
        equal(found(c, {"n": 5}, "multikey"), DOCS // 100 + 1)
        equal(found(c, {"email": f"e{DOCS - 1}"}, "unique"), 1)
        equal(found(c, {"email": {"$gte": ""}}, "unique"), DOCS + 1)
    contains(ok("verify", cwd=cwd, timeout=300).stdout, " 0 findings")


@test
def a_unique_build_that_cannot_be_is_taken_back_after_a_kill(cwd):
    fill(cwd, twin=DOCS - 1)
    index = {"key": {"email": 1}, "name": "unique", "unique": True}
    kill_while_building(cwd, index)
    with Mongo(cwd) as server, Client(server.port) as c:
        # The build that goes on finds the two, with somebody who waits for it or without.
        answer = c.fails({"createIndexes": "c", "indexes": [index]}, "d")
        equal(answer["code"], 11000)
        contains(answer["errmsg"], 'index: unique dup key: { email: "e3" }')
        equal(names(c), ["_id_"])
        # Nothing of it is in the way of writers, nor of an index of that name.
        equal(c({"insert": "c", "documents": [{"_id": "x", "email": "e4"}]}, "d")["n"], 1)
        create(c, {"key": {"email": 1}, "name": "unique"})
        equal(found(c, {"email": "e4"}, "unique"), 2)
    contains(ok("verify", cwd=cwd, timeout=300).stdout, " 0 findings")


main()
