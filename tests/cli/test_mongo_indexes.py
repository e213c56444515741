"""Indexes of MongoDB's door: making, listing and dropping them, and what unique ones refuse."""

import random
import re
import threading
import time

from harness import contains, equal, main, run, test, until
from mongo import Date, Failure, Int64, Raw, sequence
from mongo_server import MongoServer as Mongo

# 1.5, whose bytes are no address and no length.
DECIMAL = Raw(19, (15).to_bytes(8, "little") + bytes.fromhex("0000000000003e30"))


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
def a_target_of_out_keeps_its_indexes(cwd):
    with Mongo(cwd) as server, server.client() as client:
        insert(client, *({"_id": i, "a": i % 40, "b": [i]} for i in range(80)))
        create(client, {"key": {"a": 1}, "name": "a", "unique": True}, {"key": {"b": -1}, "name": "b"}, name="t")
        insert(client, {"_id": "old", "a": 1}, name="t")
        before = listed(client, "t")
        out = {"aggregate": "c", "pipeline": [{"$out": "t"}], "cursor": {}}
        equal(client.fails(out, db="d")["code"], 11000)
        equal(ids(find(client, {}, name="t")), ["old"])
        out["pipeline"].insert(0, {"$match": {"_id": {"$lt": 40}}})
        for _ in range(2):
            client(out, db="d")
            equal(listed(client, "t"), before)
        equal(ids(find(client, {"b": {"$gte": 38}}, name="t")), [39, 38])
        equal(insert(client, {"_id": 90, "a": 3}, name="t")["writeErrors"][0]["code"], 11000)
        equal(sorted(row["name"] for row in client({"listCollections": 1}, db="d")["cursor"]["firstBatch"]),
              ["c", "t"])
    contains(run("verify", cwd=cwd).stdout, "0 findings")


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
        until(lambda: client({"count": "c"}, db="d")["n"] == len(kept))
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
                           (67, {"key": {"a": 1}, "name": "x", "expireAfterSeconds": "5"}),
                           (197, {"key": {"_id": 1}, "name": "x", "expireAfterSeconds": 5}),
                           (197, {"key": {"_id": 1}, "name": "x", "sparse": True}),
                           (2, {"key": {"_id": -1}, "name": "x"}),
                           (14, {"key": {"a": 1}, "name": "x", "hidden": 1}), (14, {"key": {"a": 1}, "name": 5}),
                           (67, {"key": {"a": 1}, "name": "x", "sparse": True,
                                 "partialFilterExpression": {"a": 1}}),
                           (2, {"key": {"a": 1}, "name": "x", "partialFilterExpression": {"$or": []}}),
                           (67, {"key": {"a": 1}, "name": "x",
                                 "partialFilterExpression": {"$or": [{"a": 1}, {"a": {"$ne": 2}}]}}),
                           *((2, {"key": {"a": 1}, "name": "x", "partialFilterExpression": {name: value}})
                             for name in ("$and", "$or")
                             for value in (DECIMAL, 1.5, None, "text", True, {"a": 1})),
                           (197, {"key": {"a": 1}, "name": "x", "colour": "red"}),
                           (67, {"key": {"a": 1}, "name": "x",
                                 "partialFilterExpression": {"$nor": [{"a": 1}]}}),
                           (9, {"key": {"a": 1}}), (9, {"name": "x"})):
            equal((spec, refuses(client, spec)["code"]), (spec, code))
        create(client, {"key": {"a": 1}, "name": "x"})
        equal(refuses(client, {"key": {"b": 1}, "name": "x"})["code"], 86)
        equal(refuses(client, {"key": {"a": 1}, "name": "y"})["code"], 85)
        equal(refuses(client, {"key": {"a": 1}, "name": "x", "unique": True})["code"], 86)
        equal(refuses(client, {"key": {"a": 1}, "name": "x", "hidden": True})["code"], 85)
        equal(refuses(client, {"key": {"a": 1}, "name": "y", "expireAfterSeconds": 5})["code"], 85)
        # Nothing is made of a command that has one of them.
        for specs in ([{"key": {"n": 1}, "name": "n"}, {"key": {"n": 1}, "name": "m"}],
                      [{"key": {"n": 1}, "name": "n"}, {"key": {"a": 1}, "name": "y"}]):
            equal(refuses(client, *specs)["code"], 85)
        equal(refuses(client, {"key": {"n": 1}, "name": "n"}, {"key": {"m": 1}, "name": "n"})["code"], 86)
        equal(refuses(client, *({"key": {"n": 1}, "name": "n"} for _ in range(65)))["code"], 67)
        equal([spec["name"] for spec in listed(client)], ["_id_", "x"])


@test
def several_indexes_have_one_key(cwd):
    with Mongo(cwd) as server, server.client() as client:
        insert(client, *({"_id": i, "a": i} for i in range(50)))
        key, some = {"a": 1}, {"a": {"$gt": 40}}
        answer = create(client, {"key": key, "name": "all"}, {"key": key, "name": "sparse", "sparse": True},
                        {"key": key, "name": "unique", "unique": True},
                        {"key": key, "name": "both", "unique": True, "sparse": True},
                        {"key": key, "name": "some", "partialFilterExpression": some})
        equal(answer["numIndexesAfter"], 6)
        equal(create(client, {"key": key, "name": "some", "partialFilterExpression": some})["numIndexesAfter"], 6)
        equal(refuses(client, {"key": key, "name": "more", "partialFilterExpression": some})["code"], 85)
        equal([e["code"] for e in insert(client, {"_id": 99, "a": 7})["writeErrors"]], [11000])

        def find(**members):
            return client({"find": "c", "filter": {"a": {"$gt": 45}}, **members}, db="d")["cursor"]["firstBatch"]
        for hint in ({}, {"hint": "all"}, {"hint": "sparse"}, {"hint": "some"}):
            equal([d["_id"] for d in find(**hint)], [46, 47, 48, 49])
        equal(client.fails({"find": "c", "filter": {"a": 1}, "hint": key}, db="d")["code"], 27)
        failure = client.fails({"dropIndexes": "c", "index": key}, db="d")
        equal((failure["code"], failure["codeName"]), (181, "AmbiguousIndexKeyPattern"))
        for name in ("both", "unique", "sparse", "some"):
            client({"dropIndexes": "c", "index": name}, db="d")
        equal([d["_id"] for d in find(hint=key)], [46, 47, 48, 49])
        client({"dropIndexes": "c", "index": key}, db="d")
        equal(len(listed(client)), 1)


@test
def lists_come_in_batches(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, *({"key": {f"f{i}": 1}, "name": f"f{i}"} for i in range(9)))
        for i in range(5):
            client({"create": f"more{i}"}, db="d")

        def pages(command, of, size):
            cursor = client({command: of, "cursor": {"batchSize": size}}, db="d")["cursor"]
            batches = [cursor["firstBatch"]]
            while cursor["id"]:
                cursor = client({"getMore": Int64(cursor["id"]), "collection": cursor["ns"].split(".", 1)[1],
                                 **({"batchSize": size} if size > 0 else {})}, db="d")["cursor"]
                batches.append(cursor["nextBatch"])
            return [[d["name"] for d in batch] for batch in batches]
        names = ["_id_", *(f"f{i}" for i in range(9))]
        equal(pages("listIndexes", "c", 4), [names[:4], names[4:8], names[8:]])
        equal(pages("listIndexes", "c", 10), [names])
        equal(pages("listIndexes", "c", 2.9)[0], names[:2])
        equal(pages("listIndexes", "c", float("inf")), [names])
        equal(pages("listIndexes", "c", 0), [[], names])
        names = ["c", *(f"more{i}" for i in range(5))]
        equal(pages("listCollections", 1, 4), [names[:4], names[4:]])
        equal(pages("listCollections", 1, 0), [[], names])
        equal(listed(client), client({"listIndexes": "c", "cursor": None}, db="d")["cursor"]["firstBatch"])

        def fails(**members):
            return client.fails({"listIndexes": "c", **members}, db="d")["code"]
        equal([fails(cursor={"batchSize": -1}), fails(cursor={"batchSize": "1"}), fails(cursor={"x": 1}),
               fails(cursor=1), fails(colour=1), fails(includeIndexBuildInfo={}),
               fails(includeIndexBuildInfo=True, includeBuildUUIDs=True)], [2, 14, 40415, 14, 40415, 14, 72])
        equal(client({"listIndexes": "c", "includeIndexBuildInfo": True}, db="d")["cursor"]["firstBatch"][:2],
              [{"spec": spec} for spec in listed(client)[:2]])
        equal(client({"listIndexes": "c", "includeBuildUUIDs": True}, db="d")["cursor"]["firstBatch"], listed(client))
        # It is its maker's, and can be closed.
        cursor = client({"listIndexes": "c", "cursor": {"batchSize": 1}}, db="d")["cursor"]["id"]
        equal(client({"killCursors": "c", "cursors": [Int64(cursor)]}, db="d")["cursorsKilled"], [cursor])


def whole(locale="en", **more):
    """A collation as it is kept and listed."""
    return {"locale": locale, "caseLevel": False, "caseFirst": "off", "strength": 3, "numericOrdering": False,
            "alternate": "non-ignorable", "maxVariable": "punct", "normalization": False, "backwards": False,
            "version": "57.1", **more}


NOCASE = {"locale": "en", "strength": 2}


@test
def an_index_has_a_collation(cwd):
    with Mongo(cwd) as server, server.client() as client:
        insert(client, {"_id": 1, "a": "b", "n": 1}, {"_id": 2, "a": "B", "n": 2}, {"_id": 3, "a": ["c", "D"], "n": "x"},
               {"_id": 4, "a": 5, "n": "X"}, {"_id": 5, "a": {"t": "E"}}, {"_id": 6})
        for code, spec in ((2, {"key": {"_id": 1}, "name": "_id_", "collation": NOCASE}),
                           (2, {"key": {"a": 1}, "name": "x", "collation": {"locale": "nowhere"}}),
                           (40414, {"key": {"a": 1}, "name": "x", "collation": {"strength": 1}}),
                           (14, {"key": {"a": 1}, "name": "x", "collation": "en"})):
            equal((spec, refuses(client, spec)["code"]), (spec, code))
        create(client, {"key": {"a": 1}, "name": "plain", "collation": {"locale": "simple"}})
        create(client, {"key": {"a": 1}, "name": "nocase", "collation": NOCASE},
               {"key": {"a": 1}, "name": "upper", "collation": {"locale": "de", "caseFirst": "upper"}, "sparse": True})
        equal(create(client, {"key": {"a": 1}, "name": "nocase", "collation": whole(strength=2)})["note"],
              "all indexes already exist")
        equal(refuses(client, {"key": {"a": 1}, "name": "other", "collation": NOCASE})["code"], 85)
        equal(refuses(client, {"key": {"a": 1}, "name": "nocase", "collation": {"locale": "fr"}})["code"], 86)
        listing = [{"v": 2, "key": {"_id": 1}, "name": "_id_"}, {"v": 2, "key": {"a": 1}, "name": "plain"},
                   {"v": 2, "key": {"a": 1}, "name": "nocase", "collation": whole(strength=2)},
                   {"v": 2, "key": {"a": 1}, "name": "upper", "collation": whole("de", caseFirst="upper"), "sparse": True}]
        equal(listed(client), listing)
        # The collation of the query chooses the index, and values without texts are in all of them.
        for filter, collation, index, expected in (
                ({"a": "b"}, None, "plain", [1]), ({"a": "b"}, NOCASE, "nocase", [1, 2]),
                ({"a": {"$in": ["d", "C", 5]}}, NOCASE, "nocase", [4, 3]), ({"a": {"t": "e"}}, NOCASE, "nocase", [5]),
                ({"a": {"$gt": "B"}}, NOCASE, "nocase", [3]), ({"a": {"$gte": "b"}}, NOCASE, "nocase", [1, 2, 3]),
                ({"a": "d"}, {"locale": "de", "caseFirst": "upper"}, "upper", []), ({"a": "b"}, {"locale": "fr"}, None, [1]),
                ({"a": {"$lt": 9}}, {"locale": "fr"}, "plain", [4]), ({"a": {"$in": [5, 7]}}, {"locale": "fr"}, "plain", [4]),
                ({"a": {"$in": [5, "b"]}}, {"locale": "fr"}, None, [1, 4]), ({"a": {"t": "E"}}, {"locale": "fr"}, None, [5]),
                ({"a": {"$gt": 1, "$lt": "z"}}, {"locale": "fr"}, "plain", []),
                ({"$or": [{"a": "b"}, {"a": "D"}]}, NOCASE, "nocase", [1, 2, 3])):
            more = {"collation": collation} if collation else {}
            equal((filter, ids(find(client, filter, **more))), (filter, expected))
            plan = explain(client, {"find": "c", "filter": filter, **more})["queryPlanner"]["winningPlan"]
            while "inputStage" in plan:
                plan = plan["inputStage"]
            plan = plan.get("inputStages", [plan])[-1]
            equal((filter, plan.get("indexName"), plan.get("collation")), (filter, index, next(
                (one.get("collation") for one in listing if one["name"] == index), None)))
        contains(str(explain(client, {"find": "c", "filter": {"a": "b"}, "collation": NOCASE})), "CollationKey(0x")
        # An order by it; by another one the documents are sorted.
        for collation, index in ((NOCASE, "nocase"), ({"locale": "fr"}, None), (None, "plain")):
            more = {"collation": collation} if collation else {}
            plan = explain(client, {"find": "c", "filter": {"n": {"$exists": True}}, "sort": {"a": -1}, **more})
            stage = plan["queryPlanner"]["winningPlan"]
            equal((collation, stage["stage"]), (collation, "FETCH" if index else "SORT"))
        equal(ids(find(client, {"a": {"$type": "string"}}, sort={"a": 1}, collation=NOCASE)), [1, 2, 3])
        # A hint of an index with another collation: all of it is read.
        equal(ids(find(client, {"a": "b"}, hint="nocase")), [1])
        equal(sorted(ids(find(client, {"a": "B"}, hint="plain", collation=NOCASE))), [1, 2])
        equal(ids(find(client, {}, hint="nocase", min={"a": "B"}, max={"a": "c"}, collation=NOCASE)), [1, 2])
        equal(find_fails(client, hint="nocase", min={"a": "B"}), 51174)
        equal(find(client, {"a": "B"}, hint="nocase", collation=NOCASE, returnKey=True), [{"a": "b"}, {"a": "B"}])
        values = client({"distinct": "c", "key": "a", "query": {"a": {"$lt": "c"}}, "collation": NOCASE}, db="d")
        equal(values["values"], ["b"])
        equal(client({"count": "c", "query": {"a": "B"}, "collation": NOCASE}, db="d")["n"], 2)
        pipeline = [{"$match": {"a": "D"}}, {"$lookup": {"from": "c", "localField": "n", "foreignField": "n", "as": "l"}},
                    {"$project": {"l._id": 1}}]
        create(client, {"key": {"n": 1}, "name": "n", "collation": NOCASE})
        rows = client({"aggregate": "c", "pipeline": pipeline, "collation": NOCASE, "cursor": {}}, db="d")
        equal(rows["cursor"]["firstBatch"], [{"_id": 3, "l": [{"_id": 3}, {"_id": 4}]}])
        for op in ({"update": "c", "updates": [{"q": {"a": "D"}, "u": {"$set": {"a": "bB"}}, "collation": NOCASE}]},
                   {"delete": "c", "deletes": [{"q": {"a": "BB"}, "limit": 1, "collation": NOCASE}]}):
            equal(client(op, db="d")["n"], 1)
        # A text that is the same in the collation has the same place, and another value.
        client({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"a": "B"}}}]}, db="d")
        equal(find(client, {"a": "b"}, hint="nocase", collation=NOCASE, projection={"_id": 0, "a": 1}), [{"a": "B"}] * 2)
    contains(run("verify", cwd=cwd).stdout, "0 findings")
    contains(run("inspect", cwd=cwd).stdout, "collation {\"locale\":\"en\"")
    dump = run("dump", "mongo:d.c", "--quiet", cwd=cwd).stdout
    contains(dump, '"format":3')
    equal(run("load", "mongo:d.again", "-", cwd=cwd, stdin=dump).returncode, 0)
    with Mongo(cwd) as server, server.client() as client:
        equal(listed(client, "again"), listed(client))
        equal(ids(find(client, {"a": "b"}, name="again", collation=NOCASE, hint="nocase")), [1, 2])


@test
def unique_values_are_those_of_the_collation(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "b": 1}, "name": "ab", "unique": True, "collation": NOCASE},
               {"key": {"p": 1}, "name": "p", "unique": True, "collation": {"locale": "en", "strength": 1},
                "partialFilterExpression": {"q": "yes"}})
        answer = insert(client, {"_id": 1, "a": "x", "b": 1}, {"_id": 2, "a": "X", "b": 2}, {"_id": 3, "a": "X", "b": 1})
        failure = answer["writeErrors"][0]
        key = re.search(r"dup key: \{ a: \"(0x[0-9a-f]+)\", b: 1 \}$", failure["errmsg"])
        contains(failure["errmsg"], 'index: ab collation: { locale: "en", caseLevel: false, caseFirst: "off", strength: 2')
        equal((failure["code"], failure["keyValue"], failure["collation"]),
              (11000, {"a": key.group(1), "b": 1}, whole(strength=2)))
        # The filter of a partial index is one of its collation, too.
        equal(insert(client, {"_id": 4, "a": 4, "p": "e", "q": "YES"}, {"_id": 5, "a": 5, "p": "e", "q": "no"})["n"], 2)
        equal(insert(client, {"_id": 6, "a": 6, "p": "\u00c9", "q": "Yes"})["writeErrors"][0]["code"], 11000)
        equal(ids(find(client, {"p": "e", "q": "yeS"}, collation={"locale": "en", "strength": 1})), [4])
        equal(ids(find(client, {"p": "e"}, collation={"locale": "en", "strength": 1})), [4, 5])
        # A build over duplicates.
        insert(client, {"_id": "k"}, {"_id": "l", "d": "Straße"}, {"_id": "m", "d": "STRASSE"}, name="e")
        failure = client.fails({"createIndexes": "e", "indexes": [
            {"key": {"d": 1}, "name": "d", "unique": True, "collation": {"locale": "de", "strength": 1}}]}, db="d")
        equal(failure["code"], 11000)
        contains(failure["errmsg"], "collation: {")
        equal(create(client, {"key": {"d": "hashed"}, "name": "h", "collation": {"locale": "de", "strength": 1}},
                     name="e")["numIndexesAfter"], 2)
        equal(ids(find(client, {"d": "strasse"}, name="e", collation={"locale": "de", "strength": 1}, hint="h")), ["l", "m"])
        client({"aggregate": "e", "pipeline": [{"$out": "out"}], "cursor": {}}, db="d")
    contains(run("verify", cwd=cwd).stdout, "0 findings")


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


# ---- Queries by indexes ----

def find(client, filter, name="c", size=1000, **more):
    """All documents, in batches of that size."""
    cursor = client({"find": name, "filter": filter, "batchSize": size, **more}, db="d")["cursor"]
    rows = cursor["firstBatch"]
    while cursor["id"]:
        cursor = client({"getMore": Int64(cursor["id"]), "collection": name, "batchSize": size}, db="d")["cursor"]
        rows += cursor["nextBatch"]
    return rows


def ids(rows):
    return [row["_id"] for row in rows]


@test
def documents_are_found_by_an_index_in_its_order(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1}, "name": "a"}, {"key": {"b": -1, "c": 1}, "name": "bc"})
        insert(client, *({"_id": i, "a": (i * 7) % 50, "b": i % 5, "c": -i} for i in range(50)))
        by_a = sorted(range(50), key=lambda i: i * 7 % 50)
        for size in (3, 1000):
            equal(ids(find(client, {"a": {"$gte": 10, "$lt": 30}}, size=size)), by_a[10:30])
            equal(ids(find(client, {"a": {"$in": [40, 3, 3.0, "x"]}}, size=size)), [by_a[3], by_a[40]])
            equal(ids(find(client, {"b": 3, "c": {"$lte": -20}}, size=size)), [48, 43, 38, 33, 28, 23])
            equal(ids(find(client, {"b": {"$gt": 2}}, size=size)),
                  [i for b in (4, 3) for i in range(49, -1, -1) if i % 5 == b])
        equal(ids(find(client, {}, hint="a")), by_a)
        equal(ids(find(client, {"a": {"$lt": 5}}, hint={"b": -1, "c": 1}, sort={"_id": -1})),
              sorted(by_a[:5], reverse=True))
        equal(ids(find(client, {"a": {"$lt": 30}}, hint={"$natural": 1})), sorted(by_a[:30]))
        equal(ids(find(client, {"a": {"$lt": 30}}, hint="_id_")), sorted(by_a[:30]))
        equal(client.fails({"find": "c", "hint": "x"}, db="d")["code"], 2)
        equal(client({"count": "c", "query": {"a": {"$gt": 44}}}, db="d")["n"], 5)
        equal(client({"distinct": "c", "key": "b", "query": {"a": {"$lt": 3}}}, db="d")["values"],
              [by_a[0] % 5] + [b for b in (by_a[1] % 5, by_a[2] % 5) if b != by_a[0] % 5])


@test
def a_cursor_stays_with_its_index(cwd):
    with Mongo(cwd) as server, server.client() as client:
        insert(client, *({"_id": i, "a": -i, "b": i} for i in range(20)))
        walk = {"find": "c", "filter": {"a": {"$lte": 0}}, "batchSize": 5}
        by_id = client(walk, db="d")["cursor"]
        equal(ids(by_id["firstBatch"]), list(range(5)))
        create(client, {"key": {"a": 1}, "name": "a"})
        by_a = client(walk, db="d")["cursor"]
        equal(ids(by_a["firstBatch"]), [19, 18, 17, 16, 15])
        insert(client, {"_id": "x", "a": [-14, 5, -3]})
        more = {"collection": "c", "batchSize": 5}
        equal(ids(client({"getMore": Int64(by_id["id"]), **more}, db="d")["cursor"]["nextBatch"]),
              [5, 6, 7, 8, 9])
        by_a = client({"getMore": Int64(by_a["id"]), **more}, db="d")["cursor"]
        equal(ids(by_a["nextBatch"]), [14, "x", 13, 12, 11])
        client({"dropIndexes": "c", "index": "a"}, db="d")
        equal(ids(client({"getMore": Int64(by_id["id"]), **more}, db="d")["cursor"]["nextBatch"]),
              [10, 11, 12, 13, 14])
        equal(client.fails({"getMore": Int64(by_a["id"]), **more}, db="d")["code"], 175)


@test
def changes_by_an_index_meet_each_document_once(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1}, "name": "a"})
        insert(client, *({"_id": i, "a": i if i % 3 else [i, -i, i + 500], "n": 0} for i in range(300)))
        for hint in (None, "a"):
            one = {"q": {"a": {"$gt": 100}}, "u": {"$inc": {"n": 1}, "$set": {"a": 900}}, "multi": True}
            answer = client({"update": "c", "updates": [{**one, **({"hint": hint} if hint else {})}]}, db="d")
            met = sum(1 for i in range(300) if i > 100 or i % 3 == 0)
            equal((answer["n"], answer["nModified"]), (met, met))
        equal({row["n"] for row in find(client, {"a": 900})}, {2})
        equal(client({"delete": "c", "deletes": [{"q": {"a": {"$in": [900, 7]}}, "limit": 0}]}, db="d")["n"],
              met + 1)
        # One statement sees what the one before it has made of a field: an array, from here on.
        answer = client({"update": "c", "updates": [
            {"q": {"_id": 8}, "u": {"$set": {"a": [0, 5000]}}},
            {"q": {"a": {"$gt": 1000, "$lt": 1}}, "u": {"$set": {"n": 7}}, "multi": True}]}, db="d")
        equal(answer["n"], 2)
        answer = client({"findAndModify": "c", "query": {"a": 5000}, "update": {"$set": {"a": 3}}}, db="d")
        equal((answer["value"]["_id"], answer["value"]["n"]), (8, 7))
        for _ in range(2):
            client({"update": "c", "updates": [{"q": {"a": 7777}, "u": {"$inc": {"n": 1}}, "upsert": True}]},
                   db="d")
        equal([row["n"] for row in find(client, {"a": 7777})], [2])
    contains(run("verify", cwd=cwd).stdout, "0 findings")


@test
def indexes_without_all_documents_are_used_where_they_suffice(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1}, "name": "a", "sparse": True},
               {"key": {"b": -1}, "name": "b", "partialFilterExpression": {"c": {"$gte": 5}}},
               {"key": {"d": -1}, "name": "d", "hidden": True})
        insert(client, *({"_id": i, "b": i, "c": i, "d": i, **({"a": -i} if i % 2 else {})} for i in range(10)))
        equal(ids(find(client, {"a": {"$lt": 0}})), [9, 7, 5, 3, 1])
        equal(ids(find(client, {"a": None})), [0, 2, 4, 6, 8])
        equal(ids(find(client, {"a": {"$in": [None, -3]}})), [0, 2, 3, 4, 6, 8])
        equal(ids(find(client, {}, hint="a")), [9, 7, 5, 3, 1])
        equal(ids(find(client, {"b": {"$gte": 3}, "c": {"$gt": 6}})), [9, 8, 7])
        equal(ids(find(client, {"b": {"$gte": 3}, "c": {"$gte": 4}})), [4, 5, 6, 7, 8, 9])
        equal(ids(find(client, {"b": {"$gte": 3}, "c": 8})), [8])
        # Who names an index is given what it has, as by MongoDB.
        equal(ids(find(client, {"c": {"$gt": 3}}, hint="b")), [9, 8, 7, 6, 5])
        equal(ids(find(client, {"d": {"$gte": 7}})), [7, 8, 9])
        equal(client.fails({"find": "c", "hint": "d"}, db="d")["code"], 2)


@test
def partial_indexes_of_several_values_are_used_where_they_suffice(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1}, "name": "in", "partialFilterExpression": {"s": {"$in": ["new", "late", 5]}}},
               {"key": {"b": 1}, "name": "or",
                "partialFilterExpression": {"$or": [{"b": {"$lt": 3}}, {"b": {"$gt": 6}, "s": "late"}]}})
        insert(client, *({"_id": i, "a": i, "b": i, "s": ["new", "late", "done", 5][i % 4]} for i in range(12)))

        def index_of(filter):
            plan = client({"explain": {"find": "c", "filter": filter}}, db="d")["queryPlanner"]["winningPlan"]
            while "inputStage" in plan:
                plan = plan["inputStage"]
            return plan.get("indexName")
        for index, filter, expected in (
                ("in", {"a": {"$gt": 4}, "s": "new"}, [8]), ("in", {"a": {"$gt": 4}, "s": 5}, [7, 11]),
                ("in", {"a": {"$gt": 4}, "s": {"$in": ["late", "new"]}}, [5, 8, 9]),
                (None, {"a": {"$gt": 4}, "s": {"$in": ["late", "done"]}}, [5, 6, 9, 10]),
                (None, {"a": {"$gt": 4}, "s": {"$gte": "new"}}, [8]), (None, {"a": {"$gt": 9}}, [10, 11]),
                ("or", {"b": {"$lte": 2}}, [0, 1, 2]), ("or", {"b": {"$in": [1, 2]}}, [1, 2]),
                ("or", {"b": {"$gt": 8}, "s": "late"}, [9]), (None, {"b": {"$gt": 8}}, [9, 10, 11]),
                (None, {"b": {"$in": [2, 3]}}, [2, 3])):
            equal((filter, index_of(filter)), (filter, index))
            equal((filter, sorted(ids(find(client, filter)))), (filter, expected))


def random_value(rand, depth=0):
    kind = rand.randrange(10 if depth < 2 else 7)
    if kind < 4:
        return rand.randrange(6)
    if kind < 7:
        long = "y" * (3000 if depth < 2 else 30)
        return rand.choice([None, "", "x", long, long + "z", True, 2.5, float(rand.randrange(4))])
    if kind < 9:
        return [random_value(rand, depth + 1) for _ in range(rand.randrange(4))]
    return {name: random_value(rand, depth + 1) for name in "bc" if rand.random() < 0.7}


def random_condition(rand):
    kind = rand.randrange(9)
    if kind < 3:
        return random_value(rand)
    if kind == 3:
        return {"$in": [random_value(rand) for _ in range(rand.randrange(4))]}
    if kind == 4:
        return {"$elemMatch": rand.choice([{"$gt": 1, "$lt": 4}, {"b": rand.randrange(5)}, {"c": None},
                                           {"b": {"$gt": 0, "$lt": 3}, "c": {"$gte": 1}},
                                           {"$elemMatch": {"$gte": 2}}])}
    if kind == 5:
        return {"$exists": rand.random() < 0.7}
    if kind == 6:
        return {"$ne": random_value(rand)}
    low, high = sorted(rand.randrange(6) for _ in range(2))
    return {rand.choice(["$gt", "$gte"]): low, rand.choice(["$lt", "$lte"]): high + rand.randrange(2)}


def random_sort(rand):
    names = rand.sample(("a", "b", "a.b", "a.c", "c", "_id"), rand.choice((1, 1, 2, 3)))
    return {name: rand.choice((1, -1)) for name in names}


def sorted_alone(client, rows, sort):
    """The rows once more, in memory: a stable sort leaves those that are in order as they are."""
    # Values that begin with a dollar would be expressions; there are none.
    return client({"aggregate": 1, "pipeline": [{"$documents": rows}, {"$sort": sort}],
                   "cursor": {"batchSize": 1000}}, db="d")["cursor"]["firstBatch"]


def check_sort(client, rand, filter, expected):
    """In whatever way documents are sorted, they are all there, and in order."""
    sort = random_sort(rand)
    try:
        client({"find": "c", "filter": filter, "sort": sort}, db="d")
    except Failure as failure:
        equal("parallel arrays" in str(failure), True)
        return
    rows = find(client, filter, name="i", sort=sort, size=rand.choice((2, 1000)))
    equal((filter, sort, sorted(ids(rows))), (filter, sort, ids(expected)))
    equal((filter, sort, ids(rows)), (filter, sort, ids(sorted_alone(client, rows, sort))))
    skip, limit = rand.randrange(5), rand.randrange(1, 9)
    equal(ids(find(client, filter, name="i", sort={**sort, "_id": 1}, skip=skip, limit=limit)),
          ids(find(client, filter, sort={**sort, "_id": 1}, skip=skip, limit=limit)))
    pipeline = [{"$match": filter}, {"$sort": {**sort, "_id": -1}}, {"$limit": limit}]
    equal(*(client({"aggregate": name, "pipeline": pipeline, "cursor": {"batchSize": 1000}},
                   db="d")["cursor"]["firstBatch"] for name in "ic"))


@test
def an_index_gives_its_order_without_a_sort_in_memory(cwd):
    """A cursor without memory sees what is written behind its place."""
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "b": -1}, "name": "ab"}, {"key": {"c": 1}, "name": "c"},
               {"key": {"t": 1}, "name": "t"})
        insert(client, *({"_id": i, "a": i % 3, "b": i, "c": [i, -i], "t": "y" * 2000} for i in range(30)))
        for at, (filter, sort, first, before, behind) in enumerate((
                ({}, {"a": 1, "b": -1}, [27, 24], {"a": -1}, {"a": 9}),
                ({}, {"a": -1, "b": 1}, [2, 5], {"a": 9}, {"a": -1}),
                ({"a": 1}, {"b": -1}, [28, 25], {"a": 1, "b": 50}, {"a": 1, "b": -1}),
                ({"a": 1}, {"a": -1, "b": 1}, [1, 4], {"a": 1, "b": -1}, {"a": 1, "b": 50}),
                ({"a": {"$gte": 1}}, {"a": -1}, [2, 5], {"a": 10}, {"a": 2, "b": 60}),
                ({"a": 2}, {"b": 1, "a": 1}, [2, 5], {"a": 2, "b": -1}, {"a": 2, "b": 61}),
                ({"a": 2, "b": {"$lt": 20}}, {"b": 1, "_id": -1}, [2, 5], {"a": 2, "b": -1}, {"a": 2, "b": 19.5}),
                ({}, {"c": 1}, [29, 28], {"c": -100}, {"c": 100}),
                ({}, {"c": -1, "_id": -1}, [29, 28], {"c": 100}, {"c": -100}),
                ({"b": 5}, {"_id": 1, "b": 1}, [5], {"b": 6}, {}))):
            def batch(command):
                return client(command, db="d")["cursor"]

            cursor = batch({"find": "c", "filter": filter, "sort": sort, "batchSize": 2})
            pipeline = batch({"aggregate": "c", "pipeline": [{"$match": filter}, {"$sort": sort}],
                              "cursor": {"batchSize": 2}})
            equal((at, ids(cursor["firstBatch"])), (at, first))
            equal((at, ids(pipeline["firstBatch"])), (at, first))
            if not cursor["id"]:
                continue
            insert(client, {"_id": "before", **before}, {"_id": "behind", **behind})
            rows = []
            for one in (cursor, pipeline):
                rows = batch({"getMore": Int64(one["id"]), "collection": "c", "batchSize": 1000})["nextBatch"]
                equal((at, "before" in ids(rows), "behind" in ids(rows)), (at, False, True))
            client({"delete": "c", "deletes": [{"q": {"_id": {"$type": "string"}}, "limit": 0}]}, db="d")
        # Values that are longer than their part of a key are in no order there.
        equal(ids(find(client, {"t": {"$gt": "x"}}, sort={"t": 1, "_id": -1}, limit=3)), [29, 28, 27])
        insert(client, *({"_id": i, "t": "z" * 3000 + str(i)} for i in range(100, 110)))
        equal(ids(find(client, {"t": {"$gt": "z"}}, sort={"t": -1})), list(range(109, 99, -1)))
        answer = client({"findAndModify": "c", "query": {"a": {"$lt": 2}}, "sort": {"a": -1, "b": 1},
                         "remove": True}, db="d")
        equal(answer["value"]["_id"], 1)
        # A cursor that has given nothing yet begins in its order, too; and fails without the index.
        for drop in (False, True):
            cursor = client({"find": "c", "sort": {"a": -1, "b": 1}, "batchSize": 0}, db="d")["cursor"]
            if drop:
                client({"dropIndexes": "c", "index": "ab"}, db="d")
            more = {"getMore": Int64(cursor["id"]), "collection": "c", "batchSize": 1}
            if drop:
                equal(client.fails(more, db="d")["code"], 175)
            else:
                equal(ids(client(more, db="d")["cursor"]["nextBatch"]), [2])
    contains(run("verify", cwd=cwd).stdout, "0 findings")


def find_between(client, index, low=None, high=None, **more):
    bounds = {**({"min": low} if low else {}), **({"max": high} if high else {})}
    return find(client, more.pop("filter", {}), hint=index, **bounds, **more)


def find_fails(client, **members):
    return client.fails({"find": "c", **members}, db="d")["code"]


@test
def a_find_reads_between_two_keys_of_an_index(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "b": -1}, "name": "ab"}, {"key": {"m": 1}, "name": "m"},
               {"key": {"h": "hashed"}, "name": "h"}, {"key": {"s.t": -1}, "name": "st"})
        rows = [{"_id": i, "a": i % 4, "b": i % 5, "m": [i, -i], "s": {"t": f"{i:02}"}} for i in range(40)]
        insert(client, *rows)
        order = sorted(rows, key=lambda row: (row["a"], -row["b"]))

        def between(low, high):
            return [row["_id"] for row in order
                    if (not low or (row["a"], -row["b"]) >= (low["a"], -low["b"]))
                    and (not high or (row["a"], -row["b"]) < (high["a"], -high["b"]))]

        rand = random.Random(5)
        for _ in range(40):
            low, high = ({"a": rand.randrange(-1, 5), "b": rand.randrange(-1, 6)} if rand.random() < 0.8 else None
                         for _ in "lh")
            if not low and not high:
                continue
            expected = between(low, high)
            if low and high and (low["a"], -low["b"]) >= (high["a"], -high["b"]):
                equal(find_fails(client, hint="ab", min=low, max=high), 51175)
                continue
            for size in (3, 1000):
                equal((low, high, ids(find_between(client, "ab", low, high, size=size))), (low, high, expected))
            equal(ids(find_between(client, {"a": 1, "b": -1}, low, high, filter={"b": 2})),
                  [i for i in expected if i % 5 == 2])
            equal(ids(find_between(client, "ab", low, high, sort={"a": -1, "b": 1})), expected[::-1])
            equal(sorted(ids(find_between(client, "ab", low, high, sort={"s.t": -1}))), sorted(expected))
        # A document with an array comes once, at the first of its entries.
        equal(ids(find_between(client, "m", {"m": -3}, {"m": 3})), [3, 2, 1, 0])
        equal(ids(find_between(client, "m", {"m": -3}, {"m": 3}, sort={"m": 1}, size=2)), [3, 2, 1, 0])
        equal(ids(find_between(client, "st", {"s.t": "05"}, {"s.t": "02"})), [5, 4, 3])
        equal(ids(find_between(client, "_id_", {"_id": 5}, {"_id": 7})), [5, 6])
        equal(ids(find_between(client, {"_id": 1}, None, {"_id": 2}, sort={"_id": -1})), [1, 0])

        for code, members in ((51173, {"min": {"a": 1, "b": 1}}), (51174, {"hint": "ab", "min": {"a": 1}}),
                              (51174, {"hint": "ab", "max": {"b": 1, "a": 1}}), (51174, {"hint": "h", "min": {"h": 1}}),
                              (51174, {"hint": "_id_", "min": {"a": 1}}), (291, {"hint": {"$natural": 1}, "min": {"_id": 1}}),
                              (51175, {"hint": "_id_", "min": {"_id": 2}, "max": {"_id": 2}}),
                              (51176, {"hint": "ab", "min": {"a": 1, "b": 1}, "max": {"a": 1}}),
                              (51174, {"hint": "st", "min": {"s.t": "x"}, "collation": {"locale": "en"}}),
                              (2, {"hint": "st", "min": {"s.t": "x" * 5000}})):
            equal((members, find_fails(client, **members)), (members, code))

        # The key that a document was found by: of an array, one element.
        def keys(filter, **more):
            return find(client, filter, returnKey=True, **more)

        equal(keys({"a": 1, "b": 2}), [{"a": 1, "b": 2}] * 2)
        equal(keys({"a": 1, "b": 2}, showRecordId=True), [{"a": 1, "b": 2}] * 2)
        equal(keys({"m": {"$gt": 37}}), [{"m": 38}, {"m": 39}])
        equal(keys({"m": {"$lt": -37}}, size=1), [{"m": -39}, {"m": -38}])
        equal(keys({}, hint="st", max={"s.t": "37"}), [{"s.t": "39"}, {"s.t": "38"}])
        equal(keys({"a": 1}, sort={"s.t": 1}, limit=1), [{"s.t": "01"}])
        equal(keys({"_id": 3}), [{"_id": 3}])
        equal(keys({"b": 3}), [{}] * 8)
        insert(client, {"_id": 100, "a": 9}, {"_id": 101, "a": "x" * 3000, "b": 1})
        equal(keys({"a": 9}), [{"a": 9, "b": None}])
        equal(keys({"a": {"$type": "string"}}, hint="ab"), [{"a": "x" * 3000, "b": 1}])
        low, high = {"a": 0, "b": 3}, {"a": 1, "b": 2}
        scan = explain(client, {"find": "c", "hint": "ab", "min": low, "max": high})["executionStats"]
        equal((scan["totalKeysExamined"], stages(scan["executionStages"])), (len(between(low, high)), ["FETCH", "IXSCAN"]))
        equal(scan["executionStages"]["inputStage"]["indexBounds"],
              {"startKey": low, "startKeyInclusive": True, "endKey": high, "endKeyInclusive": False})


# ---- explain ----

def explain(client, command, verbosity="executionStats"):
    return client({"explain": command, "verbosity": verbosity}, db="d")


def stages(plan):
    """The names of the stages, the outermost one first."""
    return [plan["stage"]] + (stages(plan["inputStage"]) if "inputStage" in plan else [])


def figures(answer):
    stats = answer["executionStats"]
    return stages(answer["queryPlanner"]["winningPlan"]), tuple(
        stats[name] for name in ("nReturned", "totalKeysExamined", "totalDocsExamined"))


@test
def plans_are_explained_with_what_they_read(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "b": -1}, "name": "ab"}, {"key": {"m": 1}, "name": "m", "sparse": True})
        insert(client, *({"_id": i, "a": i % 10, "b": i, "c": i, "m": [i, -i]} for i in range(100)))
        for command, names, read in (
                ({"find": "c"}, ["COLLSCAN"], (100, 0, 100)),
                ({"find": "c", "filter": {"c": {"$lt": 30}}, "skip": 2, "limit": 5},
                 ["LIMIT", "SKIP", "COLLSCAN"], (5, 0, 7)),
                ({"find": "c", "filter": {"_id": 7}}, ["EXPRESS_IXSCAN"], (1, 1, 1)),
                ({"find": "c", "filter": {"_id": 7, "c": 8}}, ["IDHACK"], (0, 1, 1)),
                ({"find": "c", "filter": {"_id": {"$in": list(range(90, 140))}}}, ["FETCH", "IXSCAN"], (10, 50, 10)),
                ({"find": "c", "filter": {"_id": {"$in": list(range(-3, 60))}}, "limit": 6},
                 ["LIMIT", "FETCH", "IXSCAN"], (6, 9, 6)),
                ({"find": "c", "filter": {"_id": {"$gte": 7, "$lt": 10}}}, ["FETCH", "IXSCAN"], (3, 3, 3)),
                ({"find": "c", "sort": {"_id": -1}, "limit": 4}, ["LIMIT", "FETCH", "IXSCAN"], (4, 4, 4)),
                ({"find": "c", "filter": {"a": 3, "c": {"$gte": 50}}}, ["FETCH", "IXSCAN"], (5, 10, 10)),
                ({"find": "c", "filter": {"a": 3}, "sort": {"b": 1}, "limit": 2},
                 ["LIMIT", "FETCH", "IXSCAN"], (2, 2, 2)),
                ({"find": "c", "filter": {"a": {"$in": [3, 4]}}, "sort": {"c": 1}, "skip": 1, "limit": 2,
                  "projection": {"c": 1}}, ["PROJECTION_SIMPLE", "SKIP", "SORT", "FETCH", "IXSCAN"], (2, 20, 20)),
                ({"find": "c", "filter": {"m": {"$gt": 95}}}, ["FETCH", "IXSCAN"], (4, 4, 4)),
                ({"find": "nothing"}, ["EOF"], (0, 0, 0)),
                ({"count": "c", "query": {"a": 3}, "skip": 2}, ["COUNT", "PROJECTION_COVERED", "IXSCAN"], (0, 10, 0)),
                ({"count": "c"}, ["RECORD_STORE_FAST_COUNT"], (0, 0, 0)),
                ({"distinct": "c", "key": "b", "query": {"a": 3}}, ["PROJECTION_COVERED", "DISTINCT_SCAN"], (10, 10, 0)),
                ({"delete": "c", "deletes": [{"q": {"a": 3}, "limit": 0}]},
                 ["DELETE", "FETCH", "IXSCAN"], (0, 10, 10)),
                ({"update": "c", "updates": [{"q": {"a": 3}, "u": {"$set": {"b": 1}}}]},
                 ["UPDATE", "FETCH", "IXSCAN"], (0, 1, 1)),
                ({"findAndModify": "c", "query": {"a": 3}, "sort": {"b": -1}, "remove": True},
                 ["DELETE", "FETCH", "IXSCAN"], (0, 1, 1)),
                ({"aggregate": "c", "pipeline": [{"$match": {"a": 3}}, {"$sort": {"b": -1}}], "cursor": {}},
                 ["FETCH", "IXSCAN"], (10, 10, 10))):
            answer = explain(client, command)
            equal((command, *figures(answer)), (command, names, read))
            equal(stages(answer["executionStats"]["executionStages"]), names)
            equal((answer["queryPlanner"]["namespace"].split(".")[0], answer["command"]["$db"],
                   answer["serverInfo"]["port"]), ("d", "d", server.port))
        equal(client({"count": "c"}, db="d")["n"], 100)
        scan = explain(client, {"find": "c", "filter": {"a": {"$in": [1, 2]}, "b": {"$gt": 5}},
                                "sort": {"a": -1, "b": 1}}, "queryPlanner")
        equal("executionStats" in scan, False)
        scan = scan["queryPlanner"]["winningPlan"]["inputStage"]
        equal((scan["keyPattern"], scan["indexName"], scan["direction"], scan["isMultiKey"],
               scan["indexBounds"]),
              ({"a": 1, "b": -1}, "ab", "backward", False, {"a": ["[2, 2]", "[1, 1]"], "b": ["(5, inf.0]"]}))
        scan = explain(client, {"find": "c", "filter": {"m": {"$lt": "x"}}})
        scan = scan["executionStats"]["executionStages"]["inputStage"]
        equal((scan["isMultiKey"], scan["isSparse"], scan["multiKeyPaths"], scan["indexBounds"], scan["keysExamined"]),
              (True, True, {"m": ["m"]}, {"m": ['["", "x")']}, 0))
        equal(explain(client, {"count": "c", "query": {"a": 3}, "limit": 4})
              ["executionStats"]["executionStages"]["nCounted"], 4)


@test
def ranges_of_several_values_are_merged_for_a_sort(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "b": -1}, "name": "ab"}, {"key": {"x": 1, "a": -1, "c": 1, "b": 1}, "name": "xacb"},
               {"key": {"m": 1, "b": 1}, "name": "mb"})
        rand = random.Random(7)
        rows = [{"_id": i, "a": rand.choice([None, 0, 1, 2.0, 3, "s", "t"]), "c": rand.randrange(3),
                 "b": rand.choice([None, rand.randrange(20), str(rand.randrange(9))]), "x": i % 2, "m": [i % 3, 5]}
                for i in range(400)]
        for row in rows:
            if row["b"] is None:
                del row["b"]
        insert(client, *rows)

        def read(filter, sort, **more):
            answer = explain(client, {"find": "c", "filter": filter, "sort": sort, **more})
            stage = answer["executionStats"]["executionStages"]
            names = stages(stage)
            while "inputStage" in stage:
                stage = stage["inputStage"]
            return names, stage, figures(answer)[1]

        names, stage, counts = read({"a": {"$in": [1, 3]}}, {"b": -1}, limit=5)
        equal((names, counts, stage["sortPattern"]), (["LIMIT", "FETCH", "SORT_MERGE"], (5, 5, 5), {"b": -1}))
        equal([(one["stage"], one["indexName"], one["direction"], one["indexBounds"]) for one in stage["inputStages"]],
              [("IXSCAN", "ab", "forward", {"a": [f"[{n}, {n}]"], "b": ["[MaxKey, MinKey]"]}) for n in (1, 3)])
        merged = 0
        for _ in range(250):
            values = rand.sample([None, 0, 1, 2, 3, "s", "t", 7], rand.randrange(1, 6))
            filter = {"a": {"$in": values + rand.choice([[], [], [], ["u" * 100], [{"n": 1}]])}}
            if rand.random() < 0.6:
                filter["x"] = rand.choice([0, {"$in": [0, 1]}])
            if rand.random() < 0.3:
                filter["b"] = rand.choice([{"$gte": 5}, {"$lt": "5"}, 3])
            if rand.random() < 0.3:
                filter["c"] = rand.choice([1, {"$in": [0, 2]}])
            turn = rand.choice([1, -1])
            # Ties come in the order of `_id`, which each of these sorts ends with.
            sort = rand.choice([{"b": -turn}, {"b": -turn}, {"c": turn, "b": turn}, {"b": turn}, {"a": turn, "b": -turn},
                                {"c": turn}, {}, {"b": -turn, "c": turn}])
            sort = {**sort, "_id": turn if rand.random() < 0.8 else -turn}
            more = {"skip": rand.choice([0, 3]), "limit": rand.choice([0, 10])}
            wanted = find(client, filter, sort=sort, hint={"$natural": 1}, **more)
            more["hint"] = rand.choice(["ab", "xacb", {}])
            equal((filter, sort, more, find(client, filter, sort=sort, size=rand.choice([1, 7, 1000]), **more)),
                  (filter, sort, more, wanted))
            merged += "SORT_MERGE" in read(filter, sort, **more)[0]
        equal(merged >= 20, True)
        # No ranges are merged of arrays, whose documents have several entries, of too many values, nor for changes.
        equal(read({"m": {"$in": [0, 1]}}, {"b": 1})[0], ["SORT", "FETCH", "IXSCAN"])
        equal(read({"a": {"$in": list(range(65))}}, {"b": 1})[0], ["SORT", "FETCH", "IXSCAN"])
        equal(read({"a": {"$in": list(range(64))}}, {"b": 1})[0], ["FETCH", "SORT_MERGE"])
        equal(read({"a": {"$in": [1, 3]}}, {"a": 1, "b": -1})[0], ["FETCH", "IXSCAN"])
        best = find(client, {"a": {"$in": [1, 3]}}, sort={"b": -1}, limit=1)[0]
        found = client({"findAndModify": "c", "query": {"a": {"$in": [1, 3]}}, "sort": {"b": -1}, "remove": True}, db="d")
        equal(found["value"]["b"], best["b"])


@test
def branches_of_or_are_merged_for_a_sort(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "s": 1}, "name": "as"}, {"key": {"b": 1, "s": 1}, "name": "bs"},
               {"key": {"c": 1, "b": 1, "s": 1}, "name": "cbs"}, {"key": {"a": 1, "s": -1, "t": 1}, "name": "ast"},
               {"key": {"c": 1, "s": -1, "t": 1}, "name": "cst"}, {"key": {"m": 1, "s": 1}, "name": "ms"},
               {"key": {"d": 1, "s": 1}, "name": "ds", "sparse": True})
        rand = random.Random(11)
        insert(client, *({"_id": i, "a": i % 7, "b": rand.choice([None, 0, 1, 2.0, "x"]), "c": rand.randrange(4), "d": i % 5,
                          "s": rand.choice([None, "q", rand.randrange(30)]), "t": rand.randrange(5), "m": [i % 3, 5]}
                         for i in range(500)))

        def read(filter, sort, **more):
            answer = explain(client, {"find": "c", "filter": filter, "sort": sort, **more})
            stage = answer["executionStats"]["executionStages"]
            names = stages(stage)
            while "inputStage" in stage:
                stage = stage["inputStage"]
            return names, stage, figures(answer)[1]

        either = {"$or": [{"a": 3}, {"b": 1}]}
        names, stage, counts = read(either, {"s": 1}, limit=5)
        equal((names, stage["sortPattern"]), (["LIMIT", "FETCH", "SORT_MERGE"], {"s": 1}))
        equal(counts[0], 5)
        assert counts[1] <= 12 and counts[2] <= 8, counts
        equal([(one["stage"], one["indexName"], one["direction"], one["indexBounds"]) for one in stage["inputStages"]],
              [("IXSCAN", "as", "forward", {"a": ["[3, 3]"], "s": ["[MinKey, MaxKey]"]}),
               ("IXSCAN", "bs", "forward", {"b": ["[1, 1]"], "s": ["[MinKey, MaxKey]"]})])
        equal(read(either, {"s": -1})[1]["inputStages"][1]["direction"], "backward")
        merged = 0

        def branch():
            return rand.choice([{"a": rand.randrange(8)}, {"b": rand.choice([None, 1, "x"])}, {"c": 1, "b": 1}, {"d": 2},
                                {"a": {"$in": [1, 2, 5]}}, {"a": 2, "s": {"$gt": 9}}, {"c": {"$in": [0, 3]}, "b": 2},
                                {"a": 1, "s": "q"}, {"c": 2}])
        for _ in range(250):
            filter = {"$or": [branch() for _ in range(rand.randrange(2, 5))]}
            if rand.random() < 0.3:
                filter["t"] = {"$lt": 4}
            if rand.random() < 0.2:
                filter["s"] = {"$gte": 4}
            turn = rand.choice([1, -1])
            sort = rand.choice([{"s": turn, "_id": turn}, {"s": turn, "_id": turn}, {"s": -turn, "t": turn, "_id": turn},
                                {"s": turn, "_id": -turn}, {"s": turn, "t": turn, "_id": 1}])
            more = {"skip": rand.choice([0, 3]), "limit": rand.choice([0, 10])}
            wanted = find(client, filter, sort=sort, hint={"$natural": 1}, **more)
            equal((filter, sort, more, find(client, filter, sort=sort, size=rand.choice([1, 7, 1000]), **more)),
                  (filter, sort, more, wanted))
            merged += "SORT_MERGE" in read(filter, sort, **more)[0]
        equal(merged >= 60, True)
        # Not of arrays, of a branch without such an index, where one index has it, nor for changes.
        for filter in {"$or": [{"m": 1}, {"a": 2}]}, {"$or": [{"t": 1}, {"a": 2}]}, {"$or": [{"_id": 1}, {"a": 2}]}:
            equal((filter, "SORT_MERGE" in read(filter, {"s": 1})[0]), (filter, False))
        best = find(client, either, sort={"s": -1, "_id": -1}, limit=1)[0]
        found = client({"findAndModify": "c", "query": either, "sort": {"s": -1, "_id": -1}, "remove": True}, db="d")
        equal(found["value"], best)
        piped = client({"aggregate": "c", "pipeline": [{"$match": either}, {"$sort": {"s": 1, "_id": 1}}, {"$limit": 30}],
                        "cursor": {"batchSize": 100}}, db="d")["cursor"]["firstBatch"]
        equal(piped, find(client, either, sort={"s": 1, "_id": 1}, limit=30))
        # A cursor ends with one of its indexes.
        cursor = client({"find": "c", "filter": either, "sort": {"s": 1}, "batchSize": 2}, db="d")["cursor"]
        client({"dropIndexes": "c", "index": "bs"}, db="d")
        equal(client.fails({"getMore": Int64(cursor["id"]), "collection": "c"}, db="d")["code"], 175)


@test
def each_branch_of_or_is_read_by_its_own_index(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1}, "name": "a"}, {"key": {"b": -1}, "name": "b"}, {"key": {"m": 1}, "name": "m"},
               {"key": {"s": 1}, "name": "s"})
        insert(client, *({"_id": i, "a": i % 50, "b": i, "c": i % 7, "m": [i % 90, i % 90 + 1], "s": -i}
                         for i in range(1000)))

        def read(filter, **more):
            answer = explain(client, {"find": "c", "filter": filter, **more})
            stage = answer["executionStats"]["executionStages"]
            names = stages(stage)
            while "inputStage" in stage:
                stage = stage["inputStage"]
            return names, [(one["stage"], one["indexName"]) for one in stage.get("inputStages", [])], figures(answer)[1]

        either = {"$or": [{"a": 3}, {"b": {"$gt": 990}}, {"_id": {"$in": [5, 53, 5000]}}]}
        names, branches, counts = read(either)
        equal((names, branches), (["FETCH", "OR"], [("IXSCAN", "a"), ("IXSCAN", "b"), ("IXSCAN", "_id_")]))
        # A document of several branches comes once, and all come in the order of `_id`.
        expected = sorted({*range(3, 1000, 50), *range(991, 1000), 5, 53})
        equal(counts, (len(expected), 20 + 9 + 3, len(expected)))
        for size in (1, 7, 1000):
            equal(ids(find(client, either, size=size)), expected)
        equal(ids(find(client, either, sort={"_id": 1}, size=2)), expected)
        equal(ids(find(client, either, sort={"_id": -1}, size=2)), expected[::-1])
        equal(ids(find(client, either, sort={"s": 1}, size=2)), expected[::-1])
        equal(read(either, sort={"s": 1})[0], ["SORT", "FETCH", "OR"])
        equal(ids(find(client, either, skip=2, limit=4)), expected[2:6])
        equal(client({"count": "c", "query": either}, db="d")["n"], len(expected))
        # What the filter demands beside it narrows each branch; a document with arrays comes once.
        equal(read({"c": 1, "$or": [{"a": 3}, {"a": 4}]})[2], (6, 40, 40))
        equal(ids(find(client, {"$or": [{"m": 10}, {"m": 11}]})),
              [i for i in range(1000) if {10, 11} & {i % 90, i % 90 + 1}])
        # An order that an index gives reads less here; and without an index for each branch all is read.
        equal(read({"$or": [{"a": {"$gte": 1}}, {"b": 3}]}, sort={"s": 1}, limit=2)[0], ["LIMIT", "FETCH", "IXSCAN"])
        equal(read({"$or": [{"a": 3}, {"c": 3}]})[0], ["COLLSCAN"])
        equal(read({"$or": [{"a": 3}, {"_id": {"$gt": 3}}]})[0], ["COLLSCAN"])
        equal(read({"$or": [{"a": 3}, {"b": 3}]}, hint={"$natural": 1})[0], ["COLLSCAN"])
        # A change meets each document once, also one that its change moves into another branch.
        change = {"q": {"$or": [{"a": 7}, {"a": 8}]}, "u": {"$inc": {"a": 1, "n": 1}}, "multi": True}
        equal(client({"update": "c", "updates": [change]}, db="d")["nModified"], 40)
        equal({row["n"] for row in find(client, {"n": {"$exists": True}})}, {1})
        equal(client({"delete": "c", "deletes": [{"q": {"$or": [{"a": 9}, {"b": 0}]}, "limit": 0}]}, db="d")["n"], 41)


@test
def pipelines_are_explained_by_their_stages(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1}, "name": "a"})
        insert(client, *({"_id": i, "a": i % 10} for i in range(100)))
        group = {"_id": "$_id", "n": {"$sum": 1}}
        covered = {**group, "_id": "$a"}
        for pipeline, read in (([{"$group": covered}], 100), ([{"$match": {"a": 3}}, {"$group": covered}], 10)):
            (cursor, _), = [explain(client, {"aggregate": "c", "pipeline": pipeline, "cursor": {}})["stages"]]
            equal(figures(cursor["$cursor"]), (["PROJECTION_COVERED", "IXSCAN"], (read, read, 0)))
        whole = explain(client, {"aggregate": "c", "cursor": {}, "pipeline": [
            {"$group": {"_id": "$a", "x": {"$first": "$$ROOT"}}}]})["stages"][0]["$cursor"]
        equal(figures(whole), (["COLLSCAN"], (100, 0, 100)))
        command = {"aggregate": "c", "pipeline": [{"$match": {"a": {"$gte": 8}}}, {"$group": group}, {"$limit": 3}],
                   "cursor": {}}
        cursor, second, third = explain(client, command)["stages"]
        equal((*figures(cursor["$cursor"]), cursor["nReturned"]), (["FETCH", "IXSCAN"], (20, 20, 20), 20))
        equal((second, third), ({"$group": group}, {"$limit": 3, "nReturned": 3}))
        answer = client({**command, "explain": True}, db="d")
        equal([next(iter(stage)) for stage in answer["stages"]], ["$cursor", "$group", "$limit"])
        equal("executionStats" in answer["stages"][0]["$cursor"], False)
        client({"create": "v", "viewOn": "c", "pipeline": [{"$match": {"a": 3}}]}, db="d")
        equal(figures(explain(client, {"find": "v", "filter": {"_id": {"$gt": 50}}})),
              (["FETCH", "IXSCAN"], (5, 10, 10)))
        writes = {"aggregate": "c", "pipeline": [{"$out": "e"}], "cursor": {}}
        equal(explain(client, writes, "queryPlanner")["stages"][1]["$out"], "e")
        equal(client.fails({"explain": writes}, db="d")["code"], 72)
        for command, code in (({"ping": 1}, 20), ({"nothing": 1}, 59), ({"find": "c", "x": 1}, 40415), ({}, 59),
                              ({"find": "c", "hint": "x"}, 2), (7, 14),
                              ({"delete": "c", "deletes": []}, 16), ({"delete": "c", "deletes": [{"q": {}}]}, 40414),
                              ({"delete": "c", "deletes": [{"limit": 1}]}, 40414),
                              ({"update": "c", "updates": [{"q": {}}]}, 40414),
                              ({"update": "c", "updates": [{"u": {}}]}, 40414), ({"find": "c", "$db": "other"}, 73)):
            equal((command, client.fails({"explain": command}, db="d")["code"]), (command, code))
        equal(client.fails({"explain": {"find": "c"}, "verbosity": "x"}, db="d")["code"], 2)


@test
def the_order_of_an_index_is_weighed_against_fewer_documents(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1}, "name": "a"}, {"key": {"b": 1}, "name": "b"})
        insert(client, *({"_id": i, "a": i % 500, "b": -i} for i in range(4000)))
        insert(client, *({"_id": i, "a": -1, "b": -i} for i in range(4000, 6000)))
        equal(ids(find(client, {"a": 7}, sort={"b": 1}, limit=3)), [3507, 3007, 2507])
        equal(ids(find(client, {"a": -1}, sort={"b": 1}, limit=3)), [5999, 5998, 5997])
        equal(ids(find(client, {"a": {"$gte": 0}}, sort={"b": 1}))[:3], [3999, 3998, 3997])


@test
def groups_and_counts_are_the_same_from_an_index_alone(cwd):
    seed = random.randrange(1 << 30)
    print(f"# seed {seed}")
    rand = random.Random(seed)

    def value():
        return rand.choice([None, 1, 1.0, 2, "x", "", True, {"b": 1}, {"b": {"c": 2}}, "y" * rand.randrange(4000)])

    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "b": -1}, "name": "ab"}, {"key": {"c": -1}, "name": "c", "sparse": True},
               name="i")
        for at in range(3):
            rows = [{"_id": i + 100 * at, **{n: value() for n in "abc" if rand.random() < 0.7}} for i in range(100)]
            if at == 2:
                rows[50]["b"] = [1, 2]  # from here on no index stands for documents
            for name in "ic":
                insert(client, *rows, name=name)
            for _ in range(60):
                filter = {rand.choice("abc"): rand.choice([{"$exists": rand.random() < 0.5}, value(), {"$gte": 1},
                                                           {"$ne": value()}, {"$type": "object"}])
                          for _ in range(rand.randrange(3))}
                of = rand.choice(("$a", "$b", "$c", "$a.b", {"x": "$a", "y": "$b.b.c"}, None))
                pipeline = [{"$match": filter},
                            {"$group": {"_id": of, "n": {"$sum": 1}, "m": {"$max": rand.choice(("$b", "$a.b"))},
                                        "l": {"$min": {"$type": "$b"}}}},
                            {"$sort": {"n": 1, "_id": 1, "l": 1}}]  # [1, 2] and 1 are equal to a sort
                equal(*([filter, pipeline, client({"aggregate": name, "pipeline": pipeline,
                                                   "cursor": {"batchSize": 1000}}, db="d")["cursor"]["firstBatch"],
                         client({"count": name, "query": filter}, db="d")["n"]] for name in "ic"))
                fields = {n: rand.choice((1, True, 2.5)) for n in rand.sample("abc", rand.choice((1, 1, 2)))}
                sort = {"sort": {rand.choice("abc"): rand.choice((1, -1))}} if rand.random() < 0.4 else {}
                hint = {"hint": rand.choice(("ab", "c"))} if rand.random() < 0.3 else {}
                if hint.get("hint") == "c":
                    filter["c"] = {"$exists": True}
                found = [find(client, filter, name=name, size=rand.choice((2, 1000)), **sort,
                              **(hint if name == "i" else {}), projection={**fields, "_id": 0}) for name in "ic"]
                equal(*([filter, fields, sort, hint, sorted(repr(sorted(row.items())) for row in rows)]
                        for rows in found))
                key = rand.choice(("a", "b", "c", "a.b"))
                told = [client({"distinct": name, "key": key, "query": filter}, db="d")["values"] for name in "ic"]
                # Of equal numbers of different types one is told.
                equal(*([filter, key, sorted(repr(int(v) if isinstance(v, float) else v) for v in values)]
                        for values in told))


@test
def finds_and_distinct_values_come_from_an_index_alone(cwd):
    with Mongo(cwd) as server, server.client() as client:
        create(client, {"key": {"a": 1, "b": -1}, "name": "ab"}, {"key": {"c": 1, "_id": 1}, "name": "cid"},
               {"key": {"d.e": 1}, "name": "de"})
        insert(client, *({"_id": i, "a": i % 5, "b": i % 3, "c": i // 100, "d": {"e": i}} for i in range(1000)))

        def plan(command, read_docs=0, **more):
            answer = explain(client, {"find": "c", "filter": {"a": 2}, **command, **more})
            stats = answer["executionStats"]
            names = stages(stats["executionStages"])
            equal((command, stats["totalDocsExamined"] == read_docs), (command, True))
            return names, stats["totalKeysExamined"], stats["nReturned"]

        covered = ["PROJECTION_COVERED", "IXSCAN"]
        equal(plan({"projection": {"a": 1, "b": True, "_id": 0}}), (covered, 200, 200))
        equal(plan({"projection": {"b": 1, "_id": False}, "sort": {"b": 1}}), (covered, 200, 200))
        equal(plan({"filter": {"a": 2, "b": 1}, "projection": {"b": 1, "_id": 0}})[0], covered)
        equal(plan({"filter": {"c": 2}, "projection": {"c": 1}}), (covered, 100, 100))
        equal(plan({"filter": {"c": 2}, "projection": {"_id": 1}}), (covered, 100, 100))
        equal(plan({"filter": {"c": 2}, "projection": {"_id": 1}, "sort": {"c": 1, "_id": -1}, "limit": 3})[1], 3)
        # What the index does not have, or clients would see the order of.
        for command, docs in (({"projection": {"a": 1}}, 200), ({"projection": {"b": 0, "_id": 0}}, 200),
                              ({"projection": {"c": 1, "_id": 0}}, 200), ({}, 200), ({"projection": {"_id": 0}}, 200),
                              ({"projection": {"b": "$a", "_id": 0}}, 200),
                              ({"projection": {"a": 1, "_id": 0}, "sort": {"c": 1}}, 200),
                              ({"projection": {"a": 1, "_id": 0}, "showRecordId": True}, 200),
                              ({"filter": {}, "projection": {"a": 1, "_id": 0}}, 1000),
                              ({"filter": {"b": 1}, "projection": {"b": 1, "_id": 0}}, 333),
                              ({"filter": {"d.e": 7}, "projection": {"d.e": 1, "_id": 0}}, 1),
                              ({"filter": {"a": 2, "c": {"$gte": 0}}, "projection": {"a": 1, "_id": 0}}, 200)):
            got = plan(command, docs if docs != 333 else 1000)[0]
            equal((command, "PROJECTION_COVERED" in got), (command, False))
        equal(find(client, {"a": 2, "b": 1}, projection={"b": 1, "a": 1, "_id": 0}, size=7), [{"a": 2, "b": 1}] * 67)
        # The type of a value is the document's, also of one that is changed to an equal one.
        client({"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$set": {"a": 2.0}}}]}, db="d")
        rows = find(client, {"a": 2}, projection={"a": 1, "_id": 0})
        equal(sorted({type(row["a"]).__name__ for row in rows}), ["float", "int"])

        def distinct(key, query, most):
            command = {"distinct": "c", "key": key, "query": query}
            stats = explain(client, command)["executionStats"]
            equal((command, stats["totalDocsExamined"]), (command, 0))
            equal((command, stages(stats["executionStages"])), (command, ["PROJECTION_COVERED", "DISTINCT_SCAN"]))
            equal((command, stats["totalKeysExamined"] <= most), (command, True))
            return client(command, db="d")["values"]

        # From one value to the next, after a few entries.
        equal(distinct("a", {}, 100), [0, 1, 2, 3, 4])
        equal(distinct("a", {"a": {"$gt": 1}}, 60), [2, 3, 4])
        equal(distinct("a", {"a": {"$in": [4, 2, 9]}}, 40), [2, 4])
        equal(distinct("b", {"a": 3}, 60), [2, 1, 0])
        equal(distinct("c", {}, 200), list(range(10)))
        equal(client({"distinct": "c", "key": "a", "query": {"b": 1}}, db="d")["values"], [0, 1, 2, 3, 4])
        equal(client({"distinct": "c", "key": "b", "query": {"c": 1}}, db="d")["values"], [1, 2, 0])
        # Null and what is missing are not told apart by keys.
        insert(client, *({"_id": 2000 + i, **({"a": None} if i == 70 else {})} for i in range(100)))
        equal(distinct("a", {}, 220), [None, 0, 1, 2, 3, 4])
        # An array ends all that.
        insert(client, {"_id": -1, "a": [2, 8], "b": 5})
        equal(client({"distinct": "c", "key": "a", "query": {"b": 5}}, db="d")["values"], [2, 8])
        equal("PROJECTION_COVERED" in plan({"projection": {"b": 1, "_id": 0}}, 201)[0], False)


def accesses(client, name="c"):
    return {row["name"]: row["accesses"]["ops"]
            for row in client({"aggregate": name, "pipeline": [{"$indexStats": {}}], "cursor": {}},
                              db="d")["cursor"]["firstBatch"]}


@test
def uses_of_indexes_are_told(cwd):
    with Mongo(cwd) as server, server.client() as client:
        equal(accesses(client), {})
        insert(client, *({"_id": i, "a": i % 10, "b": i} for i in range(100)))
        create(client, {"key": {"a": 1}, "name": "a"}, {"key": {"b": -1}, "name": "b", "unique": True})
        id_row, a_row, _ = client({"aggregate": "c", "pipeline": [{"$indexStats": {}}], "cursor": {}},
                                  db="d")["cursor"]["firstBatch"]
        since = a_row["accesses"].pop("since")
        assert abs(time.time() * 1000 - since) < 3600 * 1000, since
        equal(a_row, {"name": "a", "key": {"a": 1}, "host": f"127.0.0.1:{server.port}", "accesses": {"ops": 0},
                      "spec": {"v": 2, "key": {"a": 1}, "name": "a"}})
        equal((id_row["name"], id_row["key"], id_row["spec"]["name"]), ("_id_", {"_id": 1}, "_id_"))

        def uses(command, **by):
            before = accesses(client)
            answer = client(command, db="d")
            after = accesses(client)
            equal((command, {n: after[n] - before[n] for n in after if after[n] != before[n]}), (command, by))
            return answer

        uses({"find": "c", "filter": {"x": 1}})
        uses({"find": "c", "filter": {"_id": 3}}, _id_=1)
        uses({"count": "c", "query": {"a": 3}}, a=1)
        uses({"aggregate": "c", "pipeline": [{"$match": {"b": {"$gt": 50}}}], "cursor": {}}, b=1)
        uses({"update": "c", "updates": [{"q": {"a": 3}, "u": {"$set": {"x": 1}}, "multi": True},
                                         {"q": {"b": 4}, "u": {"$set": {"x": 1}}},
                                         {"q": {"_id": 4}, "u": {"$set": {"x": 1}}}]}, a=1, b=1, _id_=1)
        uses({"findAndModify": "c", "query": {"a": 99}, "remove": True}, a=1)
        uses({"explain": {"find": "c", "filter": {"a": 3}}})
        cursor = uses({"find": "c", "filter": {"a": 3}, "batchSize": 2}, a=1)["cursor"]["id"]
        uses({"getMore": cursor, "collection": "c"})
        uses({"aggregate": "c", "pipeline": [{"$match": {"a": {"$gte": 0}}}, {"$lookup": {
            "from": "c", "localField": "a", "foreignField": "b", "as": "x"}}, {"$limit": 1}], "cursor": {}}, a=1, b=1)
        failed = {"aggregate": "c", "pipeline": [{"$indexStats": {"x": 1}}], "cursor": {}}
        equal(client.fails(failed, db="d")["code"], 28803)
        client({"dropIndexes": "c", "index": "a"}, db="d")
        create(client, {"key": {"a": 1}, "name": "a"})
        equal(accesses(client)["a"], 0)


@test
def random_queries_find_the_same_with_indexes_and_without(cwd):
    seed = random.randrange(1 << 30)
    print(f"# seed {seed}")
    rand = random.Random(seed)
    paths = ("a", "b", "a.b", "a.c", "c", "a.0", "_id")
    with Mongo(cwd) as server, server.client() as client:
        create(client, *({"key": key, "name": f"i{i}", **more} for i, (key, more) in enumerate((
            ({"a": 1}, {}), ({"a.b": 1, "a.c": -1}, {}), ({"b": -1, "a": 1}, {}), ({"c": "hashed"}, {}),
            ({"c": 1, "a.b": 1, "b": 1}, {"sparse": True}), ({"a.0": 1}, {}), ({"a.c": -1, "_id": 1}, {}),
            ({"b": 1}, {"partialFilterExpression": {"c": {"$gte": 2}}}),
            ({"a": -1, "c": 1}, {"partialFilterExpression": {"b": {"$exists": True}}}),
            ({"b": 1, "c": 1}, {"partialFilterExpression": {"a": {"$in": [0, 1, 2, None, "x"]}}}),
            ({"c": -1, "b": 1}, {"partialFilterExpression": {"$or": [{"c": {"$gte": 3}}, {"b": 2, "c": 1}]}})))),
               name="i")
        for i in range(150):
            document = {"_id": i, **{n: random_value(rand) for n in "abc" if rand.random() < 0.8}}
            if "errmsg" not in (insert(client, document, name="i").get("writeErrors") or [{}])[0]:
                insert(client, document)
        found = 0
        for _ in range(300):
            filter = {rand.choice(paths): random_condition(rand) for _ in range(rand.choice((1, 2, 2, 3)))}
            if rand.random() < 0.3:
                filter = {"$or": [{rand.choice(paths): random_condition(rand) for _ in range(rand.choice((1, 1, 2)))}
                                  for _ in range(rand.choice((1, 2, 3)))],
                          **(filter if rand.random() < 0.3 else {})}
            expected = find(client, filter)
            rows = find(client, filter, name="i", size=rand.choice((2, 1000)))
            equal((filter, sorted(rows, key=lambda row: row["_id"])), (filter, expected))
            equal(client({"count": "i", "query": filter}, db="d")["n"], len(expected))
            hint = f"i{rand.randrange(9)}"
            if hint not in ("i4", "i7", "i8"):
                rows = find(client, filter, name="i", size=7, hint=hint)
                equal((filter, hint, sorted(ids(rows))), (filter, hint, ids(expected)))
            check_sort(client, rand, filter, expected)
            found += len(expected)
            if rand.random() < 0.3:
                change = {"q": filter, "u": {"$inc": {"n": 1}, "$set": {"c": rand.randrange(5)}}, "multi": True}
                answers = [client({"update": name, "updates": [change]}, db="d")["nModified"] for name in "ic"]
                equal((filter, answers), (filter, [len(expected)] * 2))
        equal(found > 500, True)
        equal(find(client, {}, name="i"), find(client, {}))
    contains(run("verify", cwd=cwd).stdout, "0 findings")


@test
def indexes_have_the_collation_of_their_collection(cwd):
    with Mongo(cwd) as server, server.client() as client:
        client({"create": "c", "collation": NOCASE}, db="d")
        insert(client, {"_id": 1, "a": "b"}, {"_id": 2, "a": "B"}, {"_id": 3, "a": "c"})
        for code, more in ((2, {"collation": {"locale": "simple"}}), (2, {"collation": {"locale": "fr"}})):
            equal(refuses(client, {"key": {"_id": 1}, "name": "_id_", **more})["code"], code)
        create(client, {"key": {"_id": 1}, "name": "_id_"}, {"key": {"_id": 1}, "name": "_id_", "collation": NOCASE},
               {"key": {"a": 1}, "name": "own"}, {"key": {"a": 1}, "name": "fr", "collation": {"locale": "fr"}},
               {"key": {"a": 1}, "name": "simple", "collation": {"locale": "simple"}})
        equal([one.get("collation") for one in listed(client)[1:]], [whole(strength=2), whole("fr"), None])
        equal(create(client, {"key": {"a": 1}, "name": "own", "collation": NOCASE})["note"], "all indexes already exist")
        equal(refuses(client, {"key": {"a": 1}, "name": "again"})["code"], 85)
        for more, index in (({}, "own"), ({"collation": NOCASE}, "own"), ({"collation": {"locale": "fr"}}, "fr"),
                            ({"collation": {"locale": "simple"}}, "simple")):
            command = {"find": "c", "filter": {"a": "B"}, **more}
            plan = explain(client, command)["queryPlanner"]["winningPlan"]
            equal((more, plan["inputStage"]["indexName"]), (more, index))
            equal(ids(find(client, {"a": "B"}, **more)), [1, 2] if index == "own" else [2])
        change = {"q": {"a": "B"}, "u": {"$set": {"n": 1}}, "multi": True}
        equal(client({"update": "c", "updates": [change]}, db="d")["n"], 2)
        failure = client.fails({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "u", "unique": True}]}, db="d")
        equal(failure["code"], 11000)
        client({"aggregate": "c", "pipeline": [{"$match": {"_id": 3}}, {"$out": "c"}], "cursor": {}}, db="d")
        equal([one.get("collation") for one in listed(client)[1:]], [whole(strength=2), whole("fr"), None])
        equal(ids(find(client, {"a": "C"})), [3])
    contains(run("verify", cwd=cwd).stdout, "0 findings")


def modify(client, **index):
    answer = client({"collMod": "c", "index": index}, db="d")
    return {name: answer[name] for name in answer if name.endswith(("_old", "_new"))}


@test
def an_index_is_hidden_and_gets_a_time_to_live(cwd):
    (cwd / "ini").write_text("[mongo]\nexpire_seconds = 1\n")
    with Mongo(cwd, "--config", "ini") as server, server.client() as client, server.client() as other:
        create(client, {"key": {"a": 1}, "name": "a", "unique": True}, {"key": {"t": 1}, "name": "t"},
               {"key": {"t": 1}, "name": "u", "collation": NOCASE}, {"key": {"h": "hashed"}, "name": "h"},
               {"key": {"a": 1, "t": 1}, "name": "at", "hidden": True})
        insert(client, {"_id": 1, "a": 1, "t": Date(0)}, {"_id": 2, "a": 2, "t": Date(32503680000000)})

        def stage():
            plan = explain(other, {"find": "c", "filter": {"a": 1}})["queryPlanner"]["winningPlan"]
            return plan.get("inputStage", plan).get("indexName")

        equal(stage(), "a")
        equal(modify(client, name="a", hidden=True), {"hidden_old": False, "hidden_new": True})
        equal(modify(client, name="a", hidden=True), {})
        equal((stage(), find_fails(other, hint="a")), (None, 2))
        # It is kept all the same.
        equal(insert(other, {"_id": 3, "a": 1})["writeErrors"][0]["code"], 11000)
        equal([one.get("hidden") for one in listed(other)], [None, True, None, None, None, True])
        equal(modify(client, keyPattern={"a": 1}, hidden=False), {"hidden_old": True, "hidden_new": False})
        equal(stage(), "a")
        for code, index in ((27, {"name": "none", "hidden": True}), (27, {"keyPattern": {"x": 1}, "hidden": True}),
                            (2, {"name": "_id_", "hidden": True}), (72, {"keyPattern": {"_id": 1}, "expireAfterSeconds": 1}),
                            (181, {"keyPattern": {"t": 1}, "hidden": True}), (72, {"name": "a"}), (72, {"hidden": True}),
                            (72, {"name": "a", "keyPattern": {"a": 1}, "hidden": True}), (14, {"name": 1, "hidden": True}),
                            (14, {"name": "a", "hidden": "yes"}), (14, {"name": "a", "expireAfterSeconds": "1"}),
                            (72, {"name": "a", "expireAfterSeconds": -1}), (72, {"name": "at", "expireAfterSeconds": 1}),
                            (72, {"name": "h", "expireAfterSeconds": 1}), (238, {"name": "t", "unique": True}),
                            (238, {"name": "t", "prepareUnique": True}), (40415, {"name": "t", "colour": 1})):
            equal((index, client.fails({"collMod": "c", "index": index}, db="d")["code"]), (index, code))
        equal(client.fails({"collMod": "c", "index": {"name": "t", "hidden": True}, "dryRun": True}, db="d")["code"], 238)
        equal(client.fails({"collMod": "none", "index": {"name": "t", "hidden": True}}, db="d")["code"], 26)
        equal(client({"count": "c"}, db="d")["n"], 2)
        equal(modify(client, name="t", expireAfterSeconds=3600, hidden=True),
              {"expireAfterSeconds_new": 3600, "hidden_old": False, "hidden_new": True})
        equal(modify(client, name="t", expireAfterSeconds=60),
              {"expireAfterSeconds_old": 3600, "expireAfterSeconds_new": 60})
        equal(listed(other)[2], {"v": 2, "key": {"t": 1}, "name": "t", "hidden": True, "expireAfterSeconds": 60})
        deadline = time.monotonic() + 90
        while client({"count": "c"}, db="d")["n"] == 2 and time.monotonic() < deadline:
            time.sleep(0.2)
        equal(ids(find(client, {})), [2])
    contains(run("verify", cwd=cwd).stdout, "0 findings")


def with_words(rand, value):
    """The value with words in the place of some of its numbers."""
    if isinstance(value, list):
        return [with_words(rand, one) for one in value]
    if isinstance(value, dict):
        return {name: value[name] if name[0] == "$" and isinstance(value[name], bool) else with_words(rand, value[name])
                for name in value}
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rand.random() < 0.7:
        return rand.choice(("a", "A", "\u00e1", "b", "B", "ab", "a b", "a-b", "z2", "z10", "Z2", "", "\u0000", "ss", "\u00df"))
    return value


@test
def random_queries_in_collations_find_the_same_with_indexes_and_without(cwd):
    seed = random.randrange(1 << 30)
    print(f"# seed {seed}")
    rand = random.Random(seed)
    collations = ({"locale": "en", "strength": 1}, {"locale": "en", "strength": 2}, {"locale": "de", "numericOrdering": True},
                  {"locale": "fr", "alternate": "shifted"}, {"locale": "sv", "strength": 3}, {"locale": "simple"})
    paths = ("a", "b", "a.b", "a.c", "c", "_id")
    with Mongo(cwd) as server, server.client() as client:
        create(client, *({"key": key, "name": f"i{i}", "collation": collations[collation], **more}
                         for i, (key, collation, more) in enumerate((
                             ({"a": 1}, 0, {}), ({"a": 1}, 1, {}), ({"a": -1}, 2, {}), ({"a.b": 1, "a.c": -1}, 1, {}),
                             ({"b": -1, "a": 1}, 1, {}), ({"c": "hashed"}, 2, {}), ({"c": 1, "b": 1}, 3, {"sparse": True}),
                             ({"b": 1}, 1, {"partialFilterExpression": {"c": {"$gte": "a"}}}),
                             ({"b": 1, "c": -1, "_id": 1}, 2, {}), ({"c": 1}, 5, {}), ({"b": 1, "a": 1}, 5, {})))), name="i")
        for i in range(150):
            key = i if rand.random() < 0.7 else f"{rand.choice('aAbB')}{i}"
            document = {"_id": key, **{n: with_words(rand, random_value(rand)) for n in "abc" if rand.random() < 0.8}}
            if "errmsg" not in (insert(client, document, name="i").get("writeErrors") or [{}])[0]:
                insert(client, document)
        found = 0
        for _ in range(250):
            filter = {rand.choice(paths): with_words(rand, random_condition(rand)) for _ in range(rand.choice((1, 1, 2, 3)))}
            if rand.random() < 0.3:
                filter = {"$or": [{rand.choice(paths): with_words(rand, random_condition(rand))} for _ in "ab"]}
            more = {"collation": rand.choice(collations)} if rand.random() < 0.9 else {}
            expected = sorted(find(client, filter, **more), key=str)
            rows = find(client, filter, name="i", size=rand.choice((2, 1000)), **more)
            equal((filter, more, sorted(rows, key=str)), (filter, more, expected))
            equal(client({"count": "i", "query": filter, **more}, db="d")["n"], len(expected))
            names = [client({"distinct": name, "key": "b", "query": filter, **more}, db="d")["values"] for name in "ic"]
            equal((filter, more, len(names[0])), (filter, more, len(names[1])))
            hint = f"i{rand.choice((0, 1, 2, 3, 4, 5, 8, 9, 10))}"
            rows = find(client, filter, name="i", size=7, hint=hint, **more)
            equal((filter, more, hint, sorted(rows, key=str)), (filter, more, hint, expected))
            sort = {**random_sort(rand), "_id": 1}
            try:
                rows = find(client, filter, sort=sort, **more)
            except Failure as failure:
                contains(str(failure), "parallel arrays")
                continue
            # What is the same in the collation may come in any order.
            again = client({"aggregate": 1, "pipeline": [{"$documents": find(client, filter, name="i", sort=sort, **more)},
                                                         {"$sort": sort}], "cursor": {"batchSize": 1000}, **more}, db="d")
            equal((filter, sort, more, ids(again["cursor"]["firstBatch"])),
                  (filter, sort, more, ids(find(client, filter, name="i", sort=sort, **more))))
            equal(sorted(ids(rows), key=str), sorted(ids(again["cursor"]["firstBatch"]), key=str))
            found += len(expected)
            if rand.random() < 0.2:
                change = {"q": filter, "u": {"$set": {"c": with_words(rand, rand.randrange(5))}}, "multi": True, **more}
                answers = [client({"update": name, "updates": [change]}, db="d")["n"] for name in "ic"]
                equal((filter, more, answers), (filter, more, [len(expected)] * 2))
        equal(found > 300, True)
        equal(sorted(find(client, {}, name="i"), key=str), sorted(find(client, {}), key=str))
    contains(run("verify", cwd=cwd).stdout, "0 findings")


if __name__ == "__main__":
    main()
