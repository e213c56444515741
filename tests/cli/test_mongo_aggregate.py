"""Pipelines of MongoDB's door: documents through stages, other collections, cursors, and writing."""

import os
import random

from harness import equal, main, test
from mongo import Failure, Int64, sequence
from mongo_server import MongoServer as Mongo


class Collection:
    def __init__(self, client, name="c", db="d"):
        self.client, self.name, self.db = client, name, db

    def insert(self, *documents):
        for i in range(0, len(documents), 1000):
            self.client({"insert": self.name}, db=self.db,
                        sections=sequence("documents", *documents[i:i + 1000]))

    def command(self, *stages, batch=1000000, **members):
        return {"aggregate": self.name, "pipeline": list(stages), "cursor": {"batchSize": batch}, **members}

    def cursor(self, *stages, **members):
        return self.client(self.command(*stages, **members), db=self.db)["cursor"]

    def __call__(self, *stages, **members):
        cursor = self.cursor(*stages, **members)
        equal(cursor["id"], 0)
        return cursor["firstBatch"]

    def fails(self, *stages, **members):
        return self.client.fails(self.command(*stages, **members), db=self.db)["code"]

    def find(self):
        return self.client({"find": self.name, "batchSize": 1000000}, db=self.db)["cursor"]["firstBatch"]


@test
def documents_go_through_stages(cwd):
    with Mongo(cwd) as server:
        c = Collection(server.client())
        equal(c({"$match": {}}), [])
        c.insert(*({"_id": i, "a": i % 3, "b": [i, i + 1]} for i in range(10)))
        equal(c({"$match": {"a": 1}}, {"$project": {"b": 0}}), [{"_id": i, "a": 1} for i in (1, 4, 7)])
        equal(c({"$match": {"_id": {"$gte": 8}}}, {"$sort": {"_id": -1}}, {"$unset": "b"}),
              [{"_id": 9, "a": 0}, {"_id": 8, "a": 2}])
        equal(c({"$group": {"_id": "$a", "n": {"$sum": 1}, "m": {"$max": "$_id"}}}, {"$sort": {"_id": 1}}),
              [{"_id": 0, "n": 4, "m": 9}, {"_id": 1, "n": 3, "m": 7}, {"_id": 2, "n": 3, "m": 8}])
        equal(c({"$unwind": "$b"}, {"$match": {"b": 4}}, {"$project": {"b": 1}}),
              [{"_id": 3, "b": 4}, {"_id": 4, "b": 4}])
        equal(c({"$count": "n"}), [{"n": 10}])
        equal(len(c({"$sample": {"size": 3}})), 3)
        equal(c({"$match": {"$expr": {"$eq": ["$_id", "$$x"]}}}, {"$unset": "b"}, let={"x": 5}), [{"_id": 5, "a": 2}])
        equal(c({"$collStats": {"count": {}}}, {"$project": {"count": 1, "ns": 1}}), [{"ns": "d.c", "count": 10}])
        equal(Collection(c.client, 1)({"$documents": [{"x": 1}, {"x": 2}]}, {"$match": {"x": 2}}), [{"x": 2}])


@test
def a_pipeline_lives_in_its_cursor(cwd):
    with Mongo(cwd) as server:
        client = server.client()
        c = Collection(client)
        c.insert(*({"_id": i, "pad": "x" * 100} for i in range(1000)))
        for stages in ([], [{"$sort": {"pad": 1, "_id": 1}}], [{"$set": {"x": 1}}, {"$unset": "x"}],
                       [{"$match": {"_id": {"$lt": 400}}}, {"$unionWith": {"coll": "c", "pipeline": [
                           {"$match": {"_id": {"$gte": 400}}}]}}]):
            cursor = c.cursor(*stages, {"$project": {"_id": 1}}, batch=10)
            ids = [document["_id"] for document in cursor["firstBatch"]]
            equal(len(ids), 10)
            while cursor["id"]:
                cursor = client({"getMore": cursor["id"], "collection": "c", "batchSize": 333}, db="d")["cursor"]
                ids += [document["_id"] for document in cursor["nextBatch"]]
            equal(ids, list(range(1000)))
        cursor = c.cursor({"$project": {"_id": 1}}, batch=0)
        equal(cursor["firstBatch"], [])
        equal(client({"killCursors": "c", "cursors": [cursor["id"]]}, db="d")["cursorsKilled"], [cursor["id"]])
        # One that is left open ends with the server.
        c.cursor({"$sort": {"pad": 1}}, batch=1)


@test
def other_collections_are_joined(cwd):
    with Mongo(cwd) as server:
        client = server.client()
        c, o = Collection(client), Collection(client, "o")
        c.insert({"_id": 1, "k": 1}, {"_id": 2, "k": [2, 3]}, {"_id": 3})
        o.insert({"_id": 1, "k": 1}, {"_id": 2, "k": 2}, {"_id": 3, "k": 3, "to": 1})
        equal(c({"$lookup": {"from": "o", "localField": "k", "foreignField": "_id", "as": "r"}},
                {"$project": {"r._id": 1}}),
              [{"_id": 1, "r": [{"_id": 1}]}, {"_id": 2, "r": [{"_id": 2}, {"_id": 3}]}, {"_id": 3, "r": []}])
        equal(c({"$match": {"_id": 1}},
                {"$lookup": {"from": "o", "let": {"x": "$k"}, "as": "r",
                             "pipeline": [{"$match": {"$expr": {"$gt": ["$k", "$$x"]}}}, {"$count": "n"}]}}),
              [{"_id": 1, "k": 1, "r": [{"n": 2}]}])
        equal(o({"$match": {"_id": 3}},
                {"$graphLookup": {"from": "o", "startWith": "$to", "connectFromField": "to",
                                  "connectToField": "_id", "as": "r"}}),
              [{"_id": 3, "k": 3, "to": 1, "r": [{"_id": 1, "k": 1}]}])
        equal(c({"$unionWith": "o"}, {"$count": "n"}), [{"n": 6}])
        equal(c({"$facet": {"a": [{"$count": "n"}], "b": [{"$match": {"_id": 1}}]}}),
              [{"a": [{"n": 3}], "b": [{"_id": 1, "k": 1}]}])


@test
def out_takes_the_place_of_a_collection(cwd):
    with Mongo(cwd) as server:
        client = server.client()
        c, out = Collection(client), Collection(client, "out")
        c.insert(*({"_id": i, "a": i % 3} for i in range(3000)))
        out.insert({"_id": "old"})
        equal(c({"$match": {"a": 1}}, {"$out": "out"}), [])
        equal([d["_id"] for d in out.find()], list(range(1, 3000, 3)))
        # A pipeline that fails on its way leaves everything as it was.
        equal(c.fails({"$project": {"x": {"$divide": [1, {"$subtract": ["$_id", 2500]}]}}}, {"$out": "out"}) != 0, True)
        equal(len(out.find()), 1000)
        names = [x["name"] for x in client({"listCollections": 1}, db="d")["cursor"]["firstBatch"]]
        equal(sorted(names), ["c", "out"])
        equal(c.fails({"$group": {"_id": None}}, {"$set": {"_id": 1}}, {"$unionWith": {"coll": "c", "pipeline": [
            {"$limit": 1}, {"$set": {"_id": 1}}]}}, {"$out": "out"}), 11000)
        c({"$match": {"_id": -1}}, {"$out": {"db": "d", "coll": "out"}})
        equal(out.find(), [])
        # It is written, and the only member says that there are no others; a pipeline that reads does not.
        concern = {"writeConcern": {"w": 3}}
        answer = client(c.command({"$limit": 1}, {"$out": "out"}, **concern), db="d")
        equal((answer["writeConcernError"]["code"], len(out.find())), (100, 1))
        equal("writeConcernError" in client(c.command({"$limit": 1}, **concern), db="d"), False)
        equal(c.fails({"$out": "out"}, writeConcern={"w": -1}), 9)


@test
def merge_writes_into_a_collection(cwd):
    with Mongo(cwd) as server:
        client = server.client()
        c, into = Collection(client), Collection(client, "into")
        c.insert({"_id": 1, "a": 1}, {"_id": 2, "a": 2})

        def merge(**members):
            into.client({"delete": "into", "deletes": [{"q": {}, "limit": 0}]}, db="d")
            into.insert({"_id": 1, "b": 1})
            c({"$merge": {"into": "into", **members}})
            return into.find()

        equal(merge(), [{"_id": 1, "b": 1, "a": 1}, {"_id": 2, "a": 2}])
        equal(merge(whenMatched="replace"), [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
        equal(merge(whenMatched="keepExisting"), [{"_id": 1, "b": 1}, {"_id": 2, "a": 2}])
        equal(merge(whenMatched="replace", whenNotMatched="discard"), [{"_id": 1, "a": 1}])
        # Null is as if it were not there.
        equal(merge(whenMatched="replace", whenNotMatched=None, let=None), [{"_id": 1, "a": 1}, {"_id": 2, "a": 2}])
        c({"$merge": {"into": {"db": None, "coll": "into"}}})
        # What a pipeline takes the `_id` of keeps it.
        equal(merge(whenMatched=[{"$replaceWith": {"x": "$$new.a"}}]), [{"_id": 1, "x": 1}, {"_id": 2, "a": 2}])
        for matched, other in (("keepExisting", "discard"), ("keepExisting", "fail"), ("fail", "discard"),
                               ("fail", "fail")):
            equal(c.fails({"$merge": {"into": "into", "whenMatched": matched, "whenNotMatched": other}}), 51181)
        equal(merge(whenMatched=[{"$set": {"s": {"$add": ["$b", "$$new.a"]}}}]),
              [{"_id": 1, "b": 1, "s": 2}, {"_id": 2, "a": 2}])
        equal(c.fails({"$merge": {"into": "into", "whenMatched": "fail"}}), 11000)
        failed = client.fails(c.command({"$merge": {"into": "into", "whenMatched": "fail"}}), db="d")
        equal((failed["keyPattern"], failed["keyValue"]), ({"_id": 1}, {"_id": 1}))
        client({"createIndexes": "unique", "indexes": [{"key": {"c": 1}, "name": "c", "unique": True}]},
               db="d")
        failed = client.fails(c.command({"$set": {"c": 1}}, {"$merge": {"into": "unique"}}), db="d")
        equal((failed["code"], failed["keyPattern"], failed["keyValue"]), (11000, {"c": 1}, {"c": 1}))
        client({"insert": "unique", "documents": [{"_id": 8}]}, db="d")
        failed = client.fails({"findAndModify": "unique", "query": {"_id": 9}, "upsert": True,
                               "update": {"$set": {"a": 1}}}, db="d")
        equal((failed["code"], failed["keyPattern"], failed["keyValue"]), (11000, {"c": 1}, {"c": None}))
        equal(c.fails({"$merge": {"into": "other", "whenNotMatched": "fail"}}), 13113)
        equal(c.fails({"$merge": {"into": "into", "on": "a"}}), 51183)


@test
def merge_matches_by_other_fields_that_a_unique_index_has(cwd):
    with Mongo(cwd) as server:
        client = server.client()
        c, into = Collection(client), Collection(client, "into")

        def index(key, name, **members):
            client({"createIndexes": "into", "indexes": [{"key": key, "name": name, **members}]}, db="d")

        def reset(*documents):
            client({"delete": "into", "deletes": [{"q": {}, "limit": 0}]}, db="d")
            into.insert(*documents)

        def merge(*stages, **members):
            c(*stages, {"$merge": {"into": "into", **members}})
            return into.find()

        def fails(*stages, **members):
            stages = [*stages, {"$merge": {"into": "into", **members}}]
            if members.get("explained"):
                stages[-1]["$merge"].pop("explained")
                return client.fails({"explain": c.command(*stages)}, db="d")["code"]
            return c.fails(*stages)

        c.insert({"_id": 1, "k": "x", "v": 1}, {"_id": 2, "k": "y", "v": 2})
        into.insert({"_id": 0})
        no_id = {"$unset": "_id"}
        # The index has to have these fields, no others, and all documents; it is looked for in advance.
        for on in ("k", ["k", "v"], ["_id", "k"]):
            equal((on, fails(on=on)), (on, 51183))
            equal((on, fails({"$match": {"_id": 9}}, on=on)), (on, 51183))
            equal((on, fails(on=on, explained=True)), (on, 51183))
        index({"k": 1}, "plain")
        index({"q": 1}, "partial", unique=True, partialFilterExpression={"q": {"$gt": 1}})
        equal(fails(on="k"), 51183)
        equal(fails(on="q"), 51183)
        client({"dropIndexes": "into", "index": "*"}, db="d")
        index({"k": 1}, "k", unique=True)
        equal(c.fails({"$merge": {"into": "into", "on": "k"}}, collation={"locale": "en"}), 51183)

        reset({"_id": 7, "k": "x", "w": 1})
        equal(merge(no_id, on="k")[0], {"_id": 7, "k": "x", "w": 1, "v": 1})
        # The same again finds what it has added.
        _, added = merge(no_id, {"$set": {"more": 1}}, on=["k"])
        equal((added.pop("_id").__class__.__name__, added), ("ObjectId", {"k": "y", "v": 2, "more": 1}))
        reset({"_id": 7, "k": "x", "w": 1})
        equal(merge({"$match": {"k": "x"}}, no_id, on="k", whenMatched="replace"), [{"_id": 7, "k": "x", "v": 1}])
        reset({"_id": 7, "k": "x", "w": 1})
        equal(merge(on="k", whenMatched="keepExisting"),
              [{"_id": 2, "k": "y", "v": 2}, {"_id": 7, "k": "x", "w": 1}])
        reset({"_id": 7, "k": "x", "w": 1})
        equal(merge(on="k", whenMatched=[{"$set": {"w": {"$add": ["$w", "$$new.v"]}}}], whenNotMatched="discard"),
              [{"_id": 7, "k": "x", "w": 2}])
        equal(merge(no_id, on="k", whenMatched="replace", whenNotMatched="discard"), [{"_id": 7, "k": "x", "v": 1}])
        # An `_id` of the source that is another one than the target's cannot be.
        for matched in ("merge", "replace", [{"$set": {"_id": 8}}]):
            equal((matched, fails(on="k", whenMatched=matched)), (matched, 66))
        equal(fails(no_id, on="k", whenNotMatched="fail"), 13113)
        failed = client.fails(c.command({"$merge": {"into": "into", "on": "k", "whenMatched": "fail"}}), db="d")
        equal((failed["code"], failed["keyPattern"], failed["keyValue"]), (11000, {"k": 1}, {"k": "x"}))
        equal(into.find(), [{"_id": 7, "k": "x", "v": 1}])

        # Several documents of one page with the same values; null, and what lacks; numbers of other types.
        reset()
        pages = [{"$documents": [{"k": n % 3 if n % 2 else float(n % 3), "n": n} for n in range(9)]}]
        client({"aggregate": 1, "pipeline": [*pages, {"$merge": {"into": "into", "on": "k"}}], "cursor": {}}, db="d")
        equal(sorted((d["k"], d["n"]) for d in into.find()), [(0, 6), (1, 7), (2, 8)])
        reset()
        equal(merge({"$unset": "k"}, {"$limit": 1}, on="k"), [{"_id": 1, "v": 1, "k": None}])
        equal(fails({"$unset": "k"}, on="k"), 66)
        reset()
        equal(merge({"$unset": "k"}, {"$limit": 1}, on="k", whenMatched="replace"), [{"_id": 1, "v": 1}])
        equal(merge({"$unset": ["k", "_id"]}, on="k", whenMatched="replace"), [{"_id": 1, "v": 2}])
        for value in ([1, 2], []):
            equal(fails({"$set": {"k": {"$literal": value}}}, on="k"), 51185)
        # Long values, whose keys are cut, and another unique index that refuses what is merged.
        reset({"_id": 1, "k": "x" * 3000}, {"_id": 2, "k": "z"})
        equal([len(d.get("w", "")) for d in merge({"$limit": 1}, {"$project": {
            "_id": 0, "k": "x" * 3000, "w": "more"}}, on="k")], [4, 0])
        index({"u": 1}, "u", unique=True, sparse=True)
        equal(fails({"$project": {"_id": 0, "k": {"$literal": "z"}, "u": "$missing"}}, on="u"), 51132)
        client({"update": "into", "updates": [{"q": {"_id": 1}, "u": {"$set": {"u": 5}}}]}, db="d")
        one = [{"$limit": 1}, {"$project": {"_id": 0, "k": {"$literal": "z"}, "u": {"$literal": 5}}}]
        for matched in ("merge", "replace"):
            failed = client.fails(c.command(*one, {"$merge": {"into": "into", "on": "k", "whenMatched": matched}}), db="d")
            equal((failed["code"], failed["keyPattern"], failed["keyValue"]), (11000, {"u": 1}, {"u": 5}))
        # Several fields, in any order, and inside of documents.
        reset()
        index({"a.b": -1, "c": 1}, "two", unique=True)
        reset({"_id": 1, "k": 1, "a": {"b": 1}, "c": 1}, {"_id": 2, "k": 2, "a": {"b": 1}, "c": 2})
        source = {"$project": {"_id": 0, "k": "$_id", "a": {"b": {"$literal": 1}}, "c": "$_id", "v": 1}}
        equal(merge(source, on=["c", "a.b"]), [{"_id": 1, "k": 1, "a": {"b": 1}, "c": 1, "v": 1},
                                               {"_id": 2, "k": 2, "a": {"b": 1}, "c": 2, "v": 2}])
        equal(fails(source, {"$set": {"a": [{"b": 1}]}}, on=["c", "a.b"]), 51185)


@test
def large_documents_are_written(cwd):
    with Mongo(cwd) as server:
        client = server.client()
        c, out = Collection(client), Collection(client, "out")
        for i in range(3):
            c.insert({"_id": i, "pad": "x" * 3000000})
        c({"$out": "out"})
        equal([len(d["pad"]) for d in out.find()], [3000000] * 3)
        c({"$set": {"more": 1}}, {"$merge": "out"})
        equal([d["more"] for d in out.find()], [1] * 3)


@test
def the_server_tells_what_is_done_and_which_sessions_there_are(cwd):
    with Mongo(cwd) as server, server.client() as client:
        def run(stage, *stages, db="admin", **members):
            return client({"aggregate": 1, "pipeline": [stage, *stages], "cursor": {}, **members},
                          db=db)["cursor"]["firstBatch"]

        one = run({"$currentOp": {"allUsers": True}}, {"$match": {"active": True}})
        equal([(op["ns"], op["command"]["aggregate"], op["command"]["pipeline"][0]) for op in one],
              [("admin", 1, {"$currentOp": {"allUsers": True}})])
        with server.client() as other:
            other({"ping": 1})
            equal(len(run({"$currentOp": {"allUsers": True, "idleConnections": True}})), 2)
        equal(len(run({"$currentOp": {}})), 1)
        equal(run({"$listLocalSessions": {}}, db="d"), [])
        for _ in range(2):
            ids = [s["_id"]["id"] for s in run({"$listLocalSessions": {"allUsers": True}}, db="d",
                                               lsid={"id": b"0123456789abcdef"})]
            equal(ids, [b"0123456789abcdef"])
        admin = Collection(client, 1, "admin")
        for stage, code in (({"$currentOp": {"all": True}}, 9), ({"$currentOp": {"allUsers": 1}}, 14),
                            ({"$listLocalSessions": 1}, 9), ({"$listLocalSessions": {"users": []}}, 238)):
            equal((stage, admin.fails(stage)), (stage, code))
        for where in Collection(client, 1, "d"), Collection(client, "c", "admin"):
            equal(where.fails({"$currentOp": {}}), 73)
        equal(Collection(client, "c", "d").fails({"$listLocalSessions": {}}), 73)


@test
def a_long_array_is_unwound_by_what_comes_of_it(cwd):
    with Mongo(cwd) as server, server.client() as client:
        stages = [{"$documents": [{"b": 1}]}, {"$set": {"a": {"$range": [0, 50000]}}}, {"$unwind": {"path": "$a", "includeArrayIndex": "i"}},
                  {"$group": {"_id": "$b", "n": {"$sum": {"$subtract": ["$a", "$i"]}}, "count": {"$sum": 1}}}]
        answer = client({"aggregate": 1, "pipeline": stages, "cursor": {}}, db="d")["cursor"]["firstBatch"]
        equal(answer, [{"_id": 1, "n": 0, "count": 50000}])


@test
def transactions_and_cursors_that_wait_are_told(cwd):
    with Mongo(cwd) as server, server.client() as client:
        def run(stage, *stages):
            return client({"aggregate": 1, "pipeline": [stage, *stages], "cursor": {}}, db="admin")["cursor"]["firstBatch"]

        id = b"a transaction's "
        within = {"lsid": {"id": id}, "txnNumber": Int64(7), "autocommit": False}
        client({"insert": "c", "documents": [{"_id": i} for i in range(3)], "startTransaction": True, **within}, db="d")
        idle = run({"$currentOp": {}}, {"$match": {"active": False}})
        equal([(op["type"], op["lsid"]["id"], op["transaction"]["parameters"]) for op in idle],
              [("idleSession", id, {"txnNumber": 7, "autocommit": False})])
        assert idle[0]["transaction"]["timeOpenMicros"] > 0
        equal(len([op for op in client({"currentOp": 1})["inprog"] if op["type"] == "idleSession"]), 1)
        equal(len(run({"$currentOp": {"idleSessions": False}})), 1)
        client({"commitTransaction": 1, **within})
        equal(len(run({"$currentOp": {}})), 1)
        cursor = client({"find": "c", "batchSize": 1, "lsid": {"id": id}}, db="d")["cursor"]["id"]
        equal(len(run({"$currentOp": {}})), 1)
        cursors = run({"$currentOp": {"idleCursors": True}}, {"$match": {"type": "idleCursor"}})
        equal([(op["ns"], op["lsid"]["id"], op["cursor"]["cursorId"], op["cursor"]["tailable"]) for op in cursors],
              [("d.c", id, cursor, False)])
        client({"killCursors": "c", "cursors": [Int64(cursor)]}, db="d")
        equal(len(run({"$currentOp": {"idleCursors": True}})), 1)


@test
def mistakes_are_told(cwd):
    with Mongo(cwd) as server:
        c = Collection(server.client())
        c.insert({"_id": 1, "a": 1})
        equal(c.fails({"$bogus": 1}), 40324)
        equal(c.fails({"$listSearchIndexes": {}}), 31082)
        equal(c.client.fails({"updateSearchIndex": "c", "name": "n", "definition": {}}, db="d")["code"], 31082)
        equal(c.fails({"$out": "x"}, {"$limit": 1}), 40601)
        equal(c.fails({"$project": {"a": {"$bogus": 1}}}), 31325)
        equal(c.fails({"$match": {"a": {"$bogus": 1}}}), 2)
        equal(c.fails({"$replaceWith": "$a"}), 40228)
        equal(c.fails({"$sort": {"a": 1}}, batch=-1), 2)
        equal(c.client.fails({"aggregate": "c", "pipeline": []}, db="d")["code"], 9)
        equal(c.client.fails({"aggregate": "c", "pipeline": [1], "cursor": {}}, db="d")["code"], 14)
        equal(Collection(c.client, 1).fails({"$match": {}}), 73)
        equal(Collection(c.client, "none").fails({"$collStats": {"count": {}}}), 26)


@test
def updates_may_be_pipelines(cwd):
    with Mongo(cwd) as server:
        client = server.client()
        c = Collection(client)
        c.insert({"_id": 1, "a": 1}, {"_id": 2, "a": 2})

        def update(where, *stages, **members):
            answer = client({"update": "c", "updates": [{"q": where, "u": list(stages), **members}]}, db="d")
            return answer["writeErrors"][0]["code"] if "writeErrors" in answer else (answer["n"], answer["nModified"])

        equal(update({}, {"$set": {"b": {"$add": ["$a", 1]}}}, {"$unset": "a"}, multi=True), (2, 2))
        equal(c.find(), [{"_id": 1, "b": 2}, {"_id": 2, "b": 3}])
        equal(update({"_id": 1}, {"$set": {"b": 2}}), (1, 0))
        equal(update({"_id": 1}, {"$replaceWith": {"x": "$b"}}), (1, 1))
        equal(update({"_id": 3}, {"$set": {"y": 1}}, upsert=True), (1, 0))
        equal(c.find(), [{"_id": 1, "x": 2}, {"_id": 2, "b": 3}, {"_id": 3, "y": 1}])
        equal(update({"_id": 1}, {"$set": {"_id": 9}}), 66)
        equal(update({"_id": 1}, {"$match": {}}), 2)


# ---- A naive interpreter, and random pipelines ----

def order(value):
    return (0, 0) if value is None else (1, value)


def naive_group(documents, _):
    groups = {}
    for document in documents:
        groups.setdefault(order(document.get("a")), []).append(document)
    return [{"_id": key[1] if key[0] else None,
             "n": len(group),
             "s": sum(d["b"] for d in group if "b" in d),
             "f": group[0]["_id"],
             "p": [d["_id"] for d in group]} for key, group in sorted(groups.items())]


def naive_unwind(documents, _):
    result = []
    for document in documents:
        value = document.get("l")
        if isinstance(value, list):
            result += [{**document, "l": element} for element in value]
        elif value is not None:
            result.append(document)
    return result


STAGES = {
    "match": (lambda n: [{"$match": {"a": {"$gte": n}}}],
              lambda docs, n: [d for d in docs if d.get("a") is not None and d["a"] >= n]),
    "sort": (lambda n: [{"$sort": {"b": -1 if n % 2 else 1, "_id": 1}}],
             lambda docs, n: sorted(sorted(docs, key=lambda d: order(d.get("_id"))),
                                    key=lambda d: order(d.get("b")), reverse=n % 2 == 1)),
    "limit": (lambda n: [{"$limit": n + 5}], lambda docs, n: docs[:n + 5]),
    "skip": (lambda n: [{"$skip": n}], lambda docs, n: docs[n:]),
    "set": (lambda n: [{"$set": {"b": {"$add": ["$_id", n]}}}],
            lambda docs, n: [{**d, "b": d["_id"] + n} for d in docs]),
    "unset": (lambda n: [{"$unset": "b"}], lambda docs, n: [{k: v for k, v in d.items() if k != "b"} for d in docs]),
    "project": (lambda n: [{"$project": {"a": 1, "l": 1}}],
                lambda docs, n: [{k: v for k, v in d.items() if k in ("_id", "a", "l")} for d in docs]),
    "unwind": (lambda n: [{"$unwind": "$l"}], naive_unwind),
}
def naive_buckets(documents, _):
    """Three buckets by `a`, where equal values stay together."""
    rest, result = sorted(documents, key=lambda d: order(d.get("a"))), []
    size = max(1, (2 * len(documents) + 3) // 6)
    while rest:
        take = len(rest) if len(result) == 2 else min(size, len(rest))
        while take < len(rest) and rest[take].get("a") == rest[take - 1].get("a"):
            take += 1
        bucket, rest = rest[:take], rest[take:]
        result.append({"_id": {"min": bucket[0].get("a"), "max": (rest or bucket[-1:])[0].get("a")},
                       "p": [d["_id"] for d in bucket]})
    return result


def naive_windows(documents, _):
    """By `a`, in the order of `_id`, with those whose `_id` is at most 10 less."""
    result = []
    for key in sorted({order(d.get("a")) for d in documents}):
        part = sorted((d for d in documents if order(d.get("a")) == key), key=lambda d: d["_id"])
        for i, document in enumerate(part):
            near = [d["_id"] for d in part if document["_id"] - 10 <= d["_id"] <= document["_id"]]
            result.append({**document, "n": i + 1, "r": 1 + sum(d["_id"] < document["_id"] for d in part),
                           "w": near, "s": sum(d.get("b", 0) for d in part[max(i - 1, 0):i + 3])})
    return result


def naive_densify(documents, _):
    """Every number between the least `b` and the greatest one, of those that have one."""
    result, numbers = [], [d["b"] for d in documents if "b" in d]
    for n in range(min(numbers, default=0), max(numbers, default=-1) + 1):
        result += sorted((d for d in documents if d.get("b") == n), key=lambda d: d["_id"]) or [{"b": n}]
    return result


LAST = {
    "densify": (lambda n: [{"$match": {"b": {"$exists": True}}}, {"$sort": {"_id": 1}},
                           {"$densify": {"field": "b", "range": {"step": 1, "bounds": "full"}}}], naive_densify),
    "windows": (lambda n: [{"$setWindowFields": {"partitionBy": "$a", "sortBy": {"_id": 1}, "output": {
                    "n": {"$documentNumber": {}}, "r": {"$rank": {}},
                    "w": {"$push": "$_id", "window": {"range": [-10, "current"]}},
                    "s": {"$sum": "$b", "window": {"documents": [-1, 2]}}}}}], naive_windows),
    "bucketAuto": (lambda n: [{"$bucketAuto": {"groupBy": "$a", "buckets": 3, "output": {"p": {"$push": "$_id"}}}}],
                   naive_buckets),
    "group": (lambda n: [{"$group": {"_id": "$a", "n": {"$sum": 1}, "s": {"$sum": "$b"}, "f": {"$first": "$_id"},
                                     "p": {"$push": "$_id"}}}, {"$sort": {"_id": 1}}], naive_group),
    "count": (lambda n: [{"$count": "n"}], lambda docs, n: [{"n": len(docs)}] if docs else []),
    "none": (lambda n: [], lambda docs, n: docs),
}


@test
def random_pipelines_give_what_a_naive_interpreter_gives(cwd):
    seed = int(os.environ.get("TEST_SEED", "7"))
    rand = random.Random(seed)
    documents = []
    for i in range(60):
        document = {"_id": i}
        if rand.random() < 0.8:
            document["a"] = rand.randrange(8)
        if rand.random() < 0.8:
            document["b"] = rand.randrange(100)
        if rand.random() < 0.5:
            document["l"] = [rand.randrange(5) for _ in range(rand.randrange(4))]
        documents.append(document)
    with Mongo(cwd) as server:
        c = Collection(server.client())
        c.insert(*documents)
        for _ in range(150):
            stages, expected = [], documents
            for name in [rand.choice(list(STAGES)) for _ in range(rand.randrange(5))]:
                n = rand.randrange(6)
                stages += STAGES[name][0](n)
                expected = STAGES[name][1](expected, n)
            name = rand.choice(list(LAST))
            stages += LAST[name][0](0)
            expected = LAST[name][1](expected, 0)
            got = c(*stages)
            if got != expected:
                raise AssertionError(f"seed {seed}: {stages}: {got}, not {expected}")


@test
def pipelines_that_are_too_deep_are_refused(cwd):
    """Each stage calls the one before it: a fiber's stack has to be enough for a pipeline of any stages."""
    lookup = {"$lookup": {"from": "c", "localField": "_id", "foreignField": "_id", "as": "j"}}
    graph = {"$graphLookup": {"from": "c", "startWith": 1, "connectFromField": "a", "connectToField": "b", "as": "g"}}
    stages = [{"$facet": {"x": [{"$limit": 1}]}}, {"$redact": "$$KEEP"}, lookup, graph, {"$group": {"_id": "$_id"}},
              {"$set": {"a": {"$add": [1, 2]}}}, {"$unwind": "$l"}, {"$sort": {"x": 1}}, {"$limit": 5}, {"$sample": {"size": 1}},
              {"$unionWith": "none"}, {"$bucketAuto": {"groupBy": "$_id", "buckets": 1}}, {"$match": {"l": 1}},
              {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {"r": {"$rank": {}}}}},
              {"$densify": {"field": "n", "range": {"step": 1, "bounds": "full"}}}]
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert({"_id": 1, "l": 1})
        for stage in stages:
            equal(len(c(*[stage] * 15)), 1)
            deep = [stage] * 1000
            for _ in range(3):
                try:
                    c(*deep[:999], {"$count": "n"})
                except Failure as failure:
                    equal(failure.code, 146)
                deep = [{"$limit": 1}] * 900 + [{"$unionWith": {"coll": "c", "pipeline": deep}}]
        equal(client({"ping": 1})["ok"], 1)


@test
def a_server_stops_while_pipelines_have_cursors(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert(*({"_id": i} for i in range(100)))
        for stages in [[{"$group": {"_id": "$_id"}}], [{"$sort": {"x": 1}}], [{"$changeStream": {}}, {"$set": {"x": 1}}]]:
            assert c.cursor(*stages, batch=1)["id"]
        equal(server.stop(), 0)


@test
def counting_all_documents_reads_none_of_them(cwd):
    counting = [[{"$match": {}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}], [{"$count": "n"}],
                [{"$group": {"n": {"$count": {}}, "_id": None, "m": {"$sum": 1}}}]]
    reading = [[{"$match": {"_id": {"$gte": 0}}}, {"$count": "n"}], [{"$group": {"_id": "$x", "n": {"$sum": 1}}}],
               [{"$group": {"_id": 1, "n": {"$sum": "$x"}}}], [{"$limit": 100}, {"$count": "n"}],
               [{"$group": {"_id": 1, "n": {"$sum": 2}}}]]
    lsid = {"lsid": {"id": b"0123456789abcdef"}}
    of = {**lsid, "txnNumber": Int64(1), "autocommit": False}

    def examined(stages):
        found = client({"explain": c.command(*stages), "verbosity": "executionStats"}, "d")
        found = found["stages"][0]["$cursor"] if "stages" in found else found
        return found["executionStats"]["totalDocsExamined"]

    with Mongo(cwd, ini="[mongo]\nreplica_set = frond\n") as server, server.client() as client:
        c = Collection(client)
        for stages in counting:
            equal(c(*stages), [])
        c.insert(*({"_id": i, "x": i % 2} for i in range(10)))
        client({"create": "v", "viewOn": "c", "pipeline": []}, "d")
        equal(c(*counting[0]), [{"_id": 1, "n": 10}])
        equal(c(*counting[1], {"$set": {"m": {"$add": ["$n", 1]}}}), [{"n": 10, "m": 11}])
        equal(list(c(*counting[2])[0].items()), [("_id", None), ("n", 10), ("m", 10)])
        equal(Collection(client, "v")(*counting[1]), [{"n": 10}])
        equal([examined(stages) for stages in counting], [0] * 3)
        equal([examined(stages) for stages in reading], [10] * 5)
        equal(sorted(d["n"] for d in c(*reading[1])), [5, 5])
        # The first batch, which is empty, reads nothing; the counter is that of the next one.
        cursor = c.cursor(*counting[1], batch=0)
        c.insert({"_id": 10})
        equal(client({"getMore": Int64(cursor["id"]), "collection": "c"}, "d")["cursor"]["nextBatch"], [{"n": 11}])
        # A transaction sees what it has begun with and its own writes, a snapshot what it had.
        snapshot = client({"find": "c", "readConcern": {"level": "snapshot"}, **lsid}, "d")["cursor"]["atClusterTime"]
        count = {**c.command(*counting[1]), **of}
        equal(client({**count, "startTransaction": True}, "d")["cursor"]["firstBatch"], [{"n": 11}])
        c.insert({"_id": 11}, {"_id": 12}, {"_id": 13})
        client({"delete": "c", "deletes": [{"q": {"_id": {"$lt": 2}}, "limit": 0}], **of}, "d")
        client({"insert": "c", "documents": [{"_id": 20}], **of}, "d")
        equal(client(count, "d")["cursor"]["firstBatch"], [{"n": 10}])
        equal(c(*counting[1]), [{"n": 14}])
        client({"commitTransaction": 1, **of})
        equal(c(*counting[1]), [{"n": 13}])
        past = {"readConcern": {"level": "snapshot", "atClusterTime": snapshot}}
        equal(c(*counting[1], **past), [{"n": 11}])


main()
