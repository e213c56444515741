"""Indexes of MongoDB's door: making, listing and dropping them, and what unique ones refuse."""

import re
import threading
import time

from harness import Server, contains, equal, main, run, test
from mongo import Client, Date, sequence


class Mongo(Server):
    def __init__(self, cwd, *options, **kwargs):
        super().__init__(cwd, "--mongo", "127.0.0.1:0", *options, **kwargs)
        self.port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", self.read_log()).group(1))

    def client(self, **kwargs):
        return Client(self.port, **kwargs)


def insert(client, *documents, name="c", ordered=True):
    return client({"insert": name, "ordered": ordered}, db="d", sections=sequence("documents", *documents))


def create(client, *indexes, name="c"):
    return client({"createIndexes": name, "indexes": list(indexes)}, db="d")


def refuses(client, *indexes):
    return client.fails({"createIndexes": "c", "indexes": list(indexes)}, db="d")


def listed(client, name="c"):
    return client({"listIndexes": name}, db="d")["cursor"]["firstBatch"]


@test
def indexes_are_made_listed_and_dropped(cwd):
    with Mongo(cwd) as server, server.client() as client:
        answer = create(client, {"key": {"a": 1}, "name": "a_1"})
        equal((answer["numIndexesBefore"], answer["numIndexesAfter"],
               answer["createdCollectionAutomatically"]), (1, 2, True))
        insert(client, *({"_id": i, "a": i, "b": [{"c": i}]} for i in range(50)))
        answer = create(client, {"key": {"b": 1, "a": -1}, "name": "ba", "sparse": True},
                        {"key": {"a": "hashed"}, "name": "h", "hidden": True},
                        {"key": {"b.c": 1}, "name": "p", "unique": True,
                         "partialFilterExpression": {"a": {"$gt": 3}}})
        equal((answer["numIndexesBefore"], answer["numIndexesAfter"]), (2, 5))
        equal(create(client, {"key": {"a": 1}, "name": "a_1"})["note"], "all indexes already exist")
        equal(listed(client), [
            {"v": 2, "key": {"_id": 1}, "name": "_id_"},
            {"v": 2, "key": {"a": 1}, "name": "a_1"},
            {"v": 2, "key": {"b": 1, "a": -1}, "name": "ba", "sparse": True},
            {"v": 2, "key": {"a": "hashed"}, "name": "h", "hidden": True},
            {"v": 2, "key": {"b.c": 1}, "name": "p", "unique": True,
             "partialFilterExpression": {"a": {"$gt": 3}}}])
        stats = client({"collStats": "c"}, db="d")
        equal((stats["nindexes"], set(stats["indexSizes"])), (5, {"_id_", "a_1", "ba", "h", "p"}))
        equal(client({"dropIndexes": "c", "index": "ba"}, db="d")["nIndexesWas"], 5)
        equal(client({"dropIndexes": "c", "index": {"a": "hashed"}}, db="d")["nIndexesWas"], 4)
        equal(client.fails({"dropIndexes": "c", "index": "ba"}, db="d")["code"], 27)
        equal(client.fails({"dropIndexes": "c", "index": "_id_"}, db="d")["code"], 72)
        equal(client({"dropIndexes": "c", "index": "*"}, db="d")["nIndexesWas"], 3)
        equal(len(listed(client)), 1)


@test
def indexes_go_with_their_collection(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1}, "name": "a", "unique": True})
        client({"renameCollection": "d.c", "to": "d.e"}, db="admin")
        equal([one["name"] for one in listed(client, "e")], ["_id_", "a"])
        insert(client, {"_id": 1, "a": 1}, name="e")
        equal(insert(client, {"_id": 2, "a": 1}, name="e")["writeErrors"][0]["code"], 11000)
        equal(client({"drop": "e"}, db="d")["nIndexesWas"], 2)
        equal(insert(client, {"_id": 1, "a": 1}, {"_id": 2, "a": 1}, name="e")["n"], 2)


@test
def values_that_others_have_are_refused(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "b": -1}, "name": "ab", "unique": True})
        insert(client, {"_id": 1, "a": 1, "b": "x"}, {"_id": 2, "a": [2, 3]})
        answer = insert(client, {"_id": 3, "a": 1.0, "b": "x"}, {"_id": 4, "a": 3}, {"_id": 5, "a": 4},
                        ordered=False)
        equal(answer["n"], 1)
        first, second = answer["writeErrors"]
        equal((first["index"], first["code"], first["keyPattern"], first["keyValue"]),
              (0, 11000, {"a": 1, "b": -1}, {"a": 1.0, "b": "x"}))
        equal(first["errmsg"],
              'E11000 duplicate key error collection: d.c index: ab dup key: { a: 1.0, b: "x" }')
        equal((second["index"], second["keyValue"]), (1, {"a": 3, "b": None}))
        for change in ({"$set": {"a": 1, "b": "x"}}, {"a": 1, "b": "x"}):
            answer = client({"update": "c", "updates": [{"q": {"_id": 5}, "u": change}]}, db="d")
            equal((answer["n"], answer["writeErrors"][0]["code"]), (0, 11000))
        answer = client({"update": "c", "updates": [{"q": {"_id": 5}, "u": {"$set": {"a": 9}}}]}, db="d")
        equal(answer["nModified"], 1)
        answer = insert(client, {"_id": 6, "a": [1], "b": [2]})
        equal((answer["writeErrors"][0]["code"], answer["writeErrors"][0]["errmsg"]),
              (171, "cannot index parallel arrays [b] [a]"))


@test
def a_build_over_duplicates_fails_and_leaves_nothing(cwd):
    with Mongo(cwd) as server, server.client() as client:
        insert(client, {"_id": 1, "a": 7}, {"_id": 2, "a": 7})
        answer = refuses(client, {"key": {"a": 1}, "name": "u", "unique": True})
        equal((answer["code"], answer["errmsg"]),
              (11000, "E11000 duplicate key error collection: d.c index: u dup key: { a: 7 }"))
        equal(len(listed(client)), 1)
        client({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}, db="d")
        create(client, {"key": {"a": 1}, "name": "u", "unique": True})
        equal(insert(client, {"_id": 2, "a": 7})["writeErrors"][0]["code"], 11000)


@test
def documents_go_when_their_time_is_over(cwd):
    """Those beyond a page and a turn too, and nothing else."""
    (cwd / "ini").write_text("[mongo]\nexpire_seconds = 1\n")
    old, new = Date((time.time() - 1000) * 1000), Date((time.time() + 1000) * 1000)
    with Mongo(cwd, "--config", "ini") as server, server.client() as client:
        kept = [{"_id": "new", "at": new}, {"_id": "none"}, {"_id": "text", "at": "2001-01-01"},
                {"_id": "number", "at": 5}, {"_id": "news", "at": [new, new]},
                {"_id": "younger", "at": Date((time.time() - 300) * 1000)}]
        insert(client, *kept, *({"_id": i, "at": old} for i in range(4500)), {"_id": "some", "at": [new, old]})
        insert(client, *({"_id": i, "at": old} for i in range(10)), name="other")
        create(client, {"key": {"at": 1}, "name": "at", "expireAfterSeconds": 600})
        equal(listed(client)[1], {"v": 2, "key": {"at": 1}, "name": "at", "expireAfterSeconds": 600})
        until = time.monotonic() + 60
        while client({"count": "c"}, db="d")["n"] != len(kept):
            assert time.monotonic() < until, client({"count": "c"}, db="d")["n"]
            time.sleep(0.05)
        found = client({"find": "c"}, db="d")["cursor"]["firstBatch"]
        equal({doc["_id"] for doc in found}, {doc["_id"] for doc in kept})
        equal(client({"count": "other"}, db="d")["n"], 10)
    equal(run("verify", cwd=cwd).returncode, 0)


@test
def what_is_no_index_is_refused_by_its_name(cwd):
    with Mongo(cwd) as server, server.client() as client:
        for code, spec in ((67, {"key": {}, "name": "x"}), (67, {"key": {"a": 0}, "name": "x"}),
                           (67, {"key": {"a": True}, "name": "x"}), (67, {"key": {"": 1}, "name": "x"}),
                           (238, {"key": {"a": "text"}, "name": "x"}),
                           (238, {"key": {"a": "2dsphere"}, "name": "x"}),
                           (238, {"key": {"a.$**": 1}, "name": "x"}),
                           (67, {"key": {"a": 1, "b": 1}, "name": "x", "expireAfterSeconds": 5}),
                           (67, {"key": {"a": 1}, "name": "x", "expireAfterSeconds": -1}),
                           (14, {"key": {"a": 1}, "name": "x", "expireAfterSeconds": "5"}),
                           (197, {"key": {"a": 1}, "name": "x", "colour": "red"}),
                           (67, {"key": {"a": 1}, "name": "x",
                                 "partialFilterExpression": {"$or": [{"a": 1}]}}),
                           (9, {"key": {"a": 1}}), (9, {"name": "x"})):
            equal((spec, refuses(client, spec)["code"]), (spec, code))
        create(client, {"key": {"a": 1}, "name": "x"})
        equal(refuses(client, {"key": {"b": 1}, "name": "x"})["code"], 86)
        equal(refuses(client, {"key": {"a": 1}, "name": "y"})["code"], 85)
        equal(refuses(client, {"key": {"a": 1}, "name": "y", "unique": True})["code"], 85)


@test
def a_collection_is_indexed_while_it_is_written(cwd):
    with Mongo(cwd) as server, server.client() as client:
        insert(client, *({"_id": i, "a": i} for i in range(1000)))

        def write():
            with server.client() as other:
                for i in range(150):
                    other({"update": "c", "updates": [{"q": {"_id": i * 5}, "u": {"$set": {"a": -i}}}]}, db="d")
                    insert(other, {"_id": 1000 + i, "a": [i, -i]})

        thread = threading.Thread(target=write)
        thread.start()
        for i in range(5):
            create(client, {"key": {"a": 1}, "name": f"i{i}"})
            client({"dropIndexes": "c", "index": f"i{i}"}, db="d")
        create(client, {"key": {"a": 1}, "name": "last"})
        thread.join()
    contains(run("verify", cwd=cwd).stdout, "0 findings")


if __name__ == "__main__":
    main()
