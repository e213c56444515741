"""What collections of MongoDB's door are created with: a collation, a clustered index."""

import json
import re
import time

from harness import Server, contains, equal, main, ok, run, test, until
from mongo import Client, Date, Int64
from mongo_server import MongoServer

NO_CASE = {"locale": "en", "strength": 2}
WHOLE = {"locale": "en", "caseLevel": False, "caseFirst": "off", "strength": 2, "numericOrdering": False,
         "alternate": "non-ignorable", "maxVariable": "punct", "normalization": False, "backwards": False,
         "version": "57.1"}
SIMPLE = {"locale": "simple"}


class Mongo(MongoServer):
    def __init__(self, cwd, *options, **kwargs):
        super().__init__(cwd, *options, ini="[chttpd_auth]\niterations = 10\n[mongo]\nreplica_set = frond\n", **kwargs)


def shop(c):
    return lambda command, of, **members: c({command: of, **members}, "shop")


def fails(c):
    return lambda command, of, **members: c.fails({command: of, **members}, "shop")["code"]


def batch(answer):
    return answer["cursor"]["firstBatch"]


def ids(answer):
    return [d["_id"] for d in batch(answer)]


def options(do, name):
    return batch(do("listCollections", 1, filter={"name": name}))[0]["options"]


def fill(do, **members):
    do("create", "c", collation=NO_CASE, **members)
    do("insert", "c", documents=[{"_id": i, "s": s, "a": [s, "z"]}
                                 for i, s in enumerate(["a", "B", "A", "b", "C"])])


@test
def a_collation_is_kept_and_listed(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do, refused = shop(c), fails(c)
        do("create", "c", collation=NO_CASE)
        equal(options(do, "c"), {"collation": WHOLE})
        # As it is, it may be created again.
        do("create", "c", collation=NO_CASE)
        do("create", "c", collation=WHOLE)
        equal([refused("create", "c"), refused("create", "c", collation=SIMPLE),
               refused("create", "c", collation={"locale": "en", "strength": 1}),
               refused("create", "c", collation=NO_CASE, validator={"x": 1}),
               refused("create", "c", viewOn="d", pipeline=[], collation=NO_CASE)], [48] * 5)
        failure = c.fails({"create": "c"}, "shop")
        contains(failure["errmsg"], 'namespace shop.c already exists, but with different options: {"collation":')
        do("create", "plain", collation=SIMPLE)
        do("create", "plain")
        do("create", "plain", collation=None, changeStreamPreAndPostImages={"enabled": False})
        equal(options(do, "plain"), {})
        do("create", "v", viewOn="c", pipeline=[], collation=NO_CASE)
        do("create", "v", viewOn="c", pipeline=[], collation=NO_CASE)
        equal([refused("create", "v"), refused("create", "v", viewOn="c", pipeline=[])], [48, 48])
        equal([refused("create", "x", collation=wrong) for wrong in
               ("en", {}, {"locale": "none"}, {"locale": 1}, {"locale": "en", "strength": 6},
                {"locale": "en", "x": 1}, {"locale": "en", "version": "1"})],
              [14, 40414, 2, 14, 2, 40415, 161])
        id_index = {"v": 2, "key": {"_id": 1}, "name": "_id_"}
        do("create", "d", collation=NO_CASE, idIndex={**id_index, "collation": WHOLE})
        do("create", "e", collation=SIMPLE, idIndex={**id_index, "collation": SIMPLE})
        do("create", "f", collation=NO_CASE, idIndex=id_index)
        # What mongorestore sends of a collection with a collation, whose idIndex is told without one.
        do("create", "h", collation=NO_CASE, idIndex={**id_index, "collation": SIMPLE})
        equal([refused("create", "g", idIndex={**id_index, "collation": NO_CASE}),
               refused("create", "g", collation=NO_CASE, idIndex={**id_index, "collation": {"locale": "de"}}),
               refused("create", "g", viewOn="c", pipeline=[], idIndex=id_index)], [2, 2, 72])
        do("drop", "d")
        # It stays with what becomes of the collection.
        do("collMod", "c", validator={"s": {"$ne": "X"}})
        equal(options(do, "c")["collation"], WHOLE)
        c({"renameCollection": "shop.c", "to": "shop.d"})
        equal(options(do, "d")["collation"], WHOLE)
        do("insert", "plain", documents=[{"_id": 1, "s": "q"}])
        do("aggregate", "plain", pipeline=[{"$out": "d"}], cursor={})
        equal(options(do, "d")["collation"], WHOLE)
        equal(do("count", "d", query={"s": "Q"})["n"], 1)
        do("aggregate", "d", pipeline=[{"$out": "fresh"}], cursor={})
        equal(options(do, "fresh"), {})
        # In a transaction, what is there is refused.
        within = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        equal(refused("create", "plain", **within, startTransaction=True), 48)


@test
def queries_compare_by_it(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        fill(do)
        equal(ids(do("find", "c", filter={"s": "A"})), [0, 2])
        equal(ids(do("find", "c", filter={"s": "A"}, collation=SIMPLE)), [2])
        equal(ids(do("find", "c", filter={"s": "A"}, collation={})), [0, 2])
        equal(ids(do("find", "c", filter={"s": {"$gte": "b"}})), [1, 3, 4])
        equal(ids(do("find", "c", filter={"$expr": {"$eq": ["$s", "$$s"]}}, let={"s": "B"})), [1, 3])
        equal(ids(do("find", "c", sort={"s": -1, "_id": 1})), [4, 1, 3, 0, 2])
        equal(ids(do("find", "c", sort={"s": 1}, collation=SIMPLE)), [2, 1, 4, 0, 3])
        equal(batch(do("find", "c", filter={"_id": 0}, projection={"a": {"$elemMatch": {"$eq": "A"}}})),
              [{"_id": 0, "a": ["a"]}])
        # A cursor goes on by it, whatever becomes of its batches.
        for more in {}, {"sort": {"s": 1}}, {"readConcern": {"level": "snapshot"}}:
            answer = do("find", "c", filter={"s": {"$in": ["A", "B"]}}, batchSize=1, **more)
            seen, cursor = ids(answer), answer["cursor"]
            while cursor["id"]:
                cursor = do("getMore", Int64(cursor["id"]), collection="c", batchSize=1)["cursor"]
                seen += [d["_id"] for d in cursor["nextBatch"]]
            equal(sorted(seen), [0, 1, 2, 3])
        equal([do("count", "c", query={"s": "a"})["n"], do("count", "c", query={"s": "a"}, collation=SIMPLE)["n"],
               do("count", "c")["n"]], [2, 1, 5])
        equal(do("distinct", "c", key="s")["values"], ["a", "B", "C"])
        equal(do("distinct", "c", key="s", collation=SIMPLE)["values"], ["a", "B", "A", "b", "C"])
        for command, figure in ({"find": "c", "filter": {"s": "A"}}, "nReturned"), \
                ({"aggregate": "c", "pipeline": [{"$match": {"s": "A"}}], "cursor": {}}, "nReturned"), \
                ({"count": "c", "query": {"s": "A"}}, "nCounted"), \
                ({"update": "c", "updates": [{"q": {"s": "A"}, "u": {"$set": {"x": 1}}, "multi": True}]}, "nMatched"):
            stats = do("explain", command, verbosity="executionStats")["executionStats"]
            equal((figure, stats["executionStages"][figure]), (figure, 2))
        # Of an index that compares bytes, what it cannot find is not lost.
        do("createIndexes", "c", indexes=[{"key": {"s": 1}, "name": "s", "collation": SIMPLE}])
        equal(ids(do("find", "c", filter={"s": "A"})), [0, 2])
        equal(sorted(ids(do("find", "c", filter={"s": "A"}, hint="s"))), [0, 2])
        equal(ids(do("find", "c", sort={"s": 1, "_id": 1})), [0, 2, 1, 3, 4])
        # In a transaction, and where another collection has taken its place.
        within = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        equal(ids(do("find", "c", filter={"s": "A"}, **within, startTransaction=True)), [0, 2])
        equal(do("update", "c", updates=[{"q": {"s": "c"}, "u": {"$set": {"s": "D"}}}], **within)["nModified"], 1)
        equal(ids(do("find", "c", filter={"s": "d"}, **within)), [4])
        c({"commitTransaction": 1, **within})
        do("drop", "c")
        do("insert", "c", documents=[{"_id": 0, "s": "a"}, {"_id": 1, "s": "A"}])
        equal(ids(do("find", "c", filter={"s": "A"})), [1])


@test
def indexes_inherit_it(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do, refused = shop(c), fails(c)
        fill(do)
        key = {"s": 1}

        def used(**members):
            plan = do("explain", {"find": "c", **members})["queryPlanner"]["winningPlan"]
            while "inputStage" in plan:
                plan = plan["inputStage"]
            return plan.get("indexName")
        answer = do("createIndexes", "c", indexes=[{"key": key, "name": "own"},
                                                   {"key": key, "name": "bytes", "collation": SIMPLE}])
        equal((answer["numIndexesBefore"], answer["numIndexesAfter"]), (1, 3))
        listed = batch(do("listIndexes", "c"))
        equal([index.get("collation") for index in listed], [WHOLE, WHOLE, None])
        # What there is by inheritance is there also by name, and the other way round.
        equal(do("createIndexes", "c", indexes=[{"key": key, "name": "own", "collation": NO_CASE}])["note"],
              "all indexes already exist")
        equal(do("createIndexes", "c", indexes=[{"key": key, "name": "own"}])["numIndexesAfter"], 3)
        equal([refused("createIndexes", "c", indexes=[{"key": key, "name": "x"}]),
               refused("createIndexes", "c", indexes=[{"key": key, "name": "own", "collation": SIMPLE}]),
               refused("createIndexes", "c", indexes=[{"key": {"a": 1}, "name": "a"},
                                                      {"key": {"a": 1}, "name": "b", "collation": NO_CASE}])],
              [85, 86, 85])
        equal(len(batch(do("listIndexes", "c"))), 3)
        for members in {"filter": {"s": "A"}}, {"filter": {"s": {"$in": ["a", "c"]}}}, {"filter": {"s": {"$gt": "a"}}}, \
                {"sort": {"s": 1}}:
            by_index = ids(do("find", "c", **members))
            equal((members, used(**members)), (members, "own"))
            equal(sorted(by_index), sorted(ids(do("find", "c", **members, hint={"$natural": 1}))))
            equal(used(**members, collation=SIMPLE), "bytes")
        equal(ids(do("find", "c", sort={"s": 1, "_id": 1})), [0, 2, 1, 3, 4])
        equal(do("count", "c", query={"s": "A"})["n"], 2)
        equal(batch(do("aggregate", "c", pipeline=[{"$match": {"s": "B"}}, {"$sort": {"s": 1, "_id": 1}}],
                       cursor={}))[0]["_id"], 1)
        do("update", "c", updates=[{"q": {"s": "c"}, "u": {"$set": {"s": "b"}}}])
        equal(sorted(ids(do("find", "c", filter={"s": "B"}))), [1, 3, 4])
        # A unique one refuses what the collation holds equal.
        do("createIndexes", "c", indexes=[{"key": {"u": 1}, "name": "u", "unique": True, "sparse": True}])
        equal([e["code"] for e in do("insert", "c", ordered=False, documents=[
            {"_id": 10, "u": "x"}, {"_id": 11, "u": "X"}, {"_id": 12, "u": "y"}])["writeErrors"]], [11000])
        equal(do("validate", "c")["valid"], True)
        # Of a collection without one, nothing is inherited.
        do("createIndexes", "plain", indexes=[{"key": key, "name": "s"}])
        equal(["collation" in index for index in batch(do("listIndexes", "plain"))], [False, False])
        do("create", "out", collation=NO_CASE)
        do("createIndexes", "out", indexes=[{"key": key, "name": "s"}])
        do("aggregate", "c", pipeline=[{"$out": "out"}], cursor={})
        equal([index.get("collation") for index in batch(do("listIndexes", "out"))], [WHOLE, WHOLE])


@test
def ids_are_unique_by_it(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do, refused = shop(c), fails(c)
        do("create", "c", collation=NO_CASE)
        answer = do("insert", "c", ordered=False, documents=[
            {"_id": "a", "n": 1}, {"_id": "A", "n": 2}, {"_id": 1}, {"_id": {"x": "y"}}, {"_id": {"x": "Y"}}, {"_id": "b"}])
        equal([(e["index"], e["code"], e["keyPattern"]) for e in answer["writeErrors"]],
              [(1, 11000, {"_id": 1}), (4, 11000, {"_id": 1})])
        contains(answer["writeErrors"][0]["errmsg"], "index: _id_ collation: { locale: ")
        id_index = {"v": 2, "key": {"_id": 1}, "name": "_id_", "collation": WHOLE}
        equal(batch(do("listIndexes", "c")), [id_index])

        def plan(**members):
            stages, plan = [], do("explain", {"find": "c", **members})["queryPlanner"]["winningPlan"]
            while plan:
                stages.append((plan["stage"], plan.get("indexName")))
                plan = plan.get("inputStage")
            return stages
        by_index = [("FETCH", None), ("IXSCAN", "_id_")]
        for hint in {}, {"hint": "_id_"}, {"hint": {"_id": 1}}:
            equal(plan(filter={"_id": "A"}, **hint), by_index)
            equal(ids(do("find", "c", filter={"_id": "A"}, **hint)), ["a"])
            equal(ids(do("find", "c", filter={"_id": {"$in": ["A", "B", 1]}}, sort={"_id": 1}, **hint)), [1, "a", "b"])
        equal(ids(do("find", "c", filter={"_id": {"x": "Y"}})), [{"x": "y"}])
        equal(plan(sort={"_id": -1}), by_index)
        equal(ids(do("find", "c", sort={"_id": -1})), [{"x": "y"}, "b", "a", 1])
        equal(ids(do("find", "c", filter={"_id": "A"}, collation=SIMPLE)), [])
        equal(ids(do("find", "c", filter={"_id": "A"}, hint="_id_", collation=SIMPLE)), [])
        equal(do("update", "c", updates=[{"q": {"_id": "A"}, "u": {"$set": {"n": 5}}, "upsert": True}])["nModified"], 1)
        equal(do("count", "c")["n"], 4)
        # It is the one index that there is.
        equal(do("createIndexes", "c", indexes=[{"key": {"_id": 1}, "name": "_id_"}])["note"], "all indexes already exist")
        equal([refused("dropIndexes", "c", index="_id_"), refused("dropIndexes", "c", index={"_id": 1})], [72, 72])
        equal(do("dropIndexes", "c", index="*")["nIndexesWas"], 1)
        equal(do("collStats", "c")["nindexes"], 1)
        uses = batch(do("aggregate", "c", pipeline=[{"$indexStats": {}}], cursor={}))
        equal([(u["name"], u["spec"], u["accesses"]["ops"] > 0) for u in uses], [("_id_", id_index, True)])
        equal(do("delete", "c", deletes=[{"q": {"_id": "B"}, "limit": 1}])["n"], 1)
        do("insert", "c", documents=[{"_id": "B"}])
        equal((do("validate", "c")["valid"], do("validate", "c")["nIndexes"]), (True, 1))
        # By whatever a collection is made.
        do("create", "clustered", collation=NO_CASE, clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "ids"})
        within = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        do("create", "within", collation=NO_CASE, **within, startTransaction=True)
        do("insert", "within", documents=[{"_id": "a"}], **within)
        equal(ids(do("find", "within", filter={"_id": "A"}, **within)), ["a"])
        c({"commitTransaction": 1, **within})
        for name in "clustered", "within":
            do("update", name, updates=[{"q": {"_id": "a"}, "u": {"$set": {"n": 1}}, "upsert": True}])
            equal(do("insert", name, documents=[{"_id": "A"}])["writeErrors"][0]["code"], 11000)
        do("insert", "source", documents=[{"_id": "a"}, {"_id": "A"}])
        equal(refused("aggregate", "source", pipeline=[{"$out": "c"}], cursor={}), 11000)
        do("delete", "source", deletes=[{"q": {"_id": "a"}, "limit": 1}])
        do("aggregate", "source", pipeline=[{"$out": "c"}], cursor={})
        equal((plan(filter={"_id": "a"}), ids(do("find", "c", filter={"_id": "a"}))), (by_index, ["A"]))


@test
def merges_go_to_the_ids_that_it_holds_equal(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do, refused = shop(c), fails(c)
        do("create", "c", collation=NO_CASE)
        do("insert", "c", documents=[{"_id": "a", "n": 1}, {"_id": {"x": "y"}, "n": 2}])
        do("insert", "plain", documents=[{"_id": "A", "m": 5}, {"_id": {"x": "Y"}, "m": 6}])

        def merge(match={}, **members):
            return {"pipeline": [{"$match": match}, {"$merge": {"into": "c", **members}}], "cursor": {}}

        def whole():
            return batch(do("find", "c", sort={"n": 1}))
        before = whole()
        # As for an update, an `_id` stays as it is, and another text is another one.
        equal([refused("aggregate", "plain", **merge()), refused("aggregate", "plain", **merge(whenMatched="replace")),
               refused("aggregate", "plain", **merge(whenMatched="fail")),
               refused("aggregate", "plain", **merge(on="_id")),
               refused("aggregate", "plain", **merge(), collation=NO_CASE)], [66, 66, 11000, 66, 66])
        equal(whole(), before)
        do("aggregate", "plain", **merge(whenMatched="keepExisting"))
        equal(whole(), before)
        do("aggregate", "plain", **merge(whenMatched=[{"$set": {"m": "$$new.m"}}], whenNotMatched="fail"))
        equal(whole(), [{"_id": "a", "n": 1, "m": 5}, {"_id": {"x": "y"}, "n": 2, "m": 6}])
        do("insert", "plain", documents=[{"_id": "B", "n": 3}])
        do("aggregate", "plain", **merge(match={"_id": "B"}))
        do("aggregate", "plain", **merge(match={"_id": "B"}))
        equal(whole()[2:], [{"_id": "B", "n": 3}])
        # A replacement, too, goes to what its filter finds, and adds nothing that is there.
        equal(do("update", "c", updates=[{"q": {"_id": "A"}, "u": {"n": 1}, "upsert": True}])["nModified"], 1)
        equal(do("update", "c", updates=[{"q": {"_id": "A"}, "u": {"_id": "A", "n": 1}, "upsert": True}])
              ["writeErrors"][0]["code"], 66)
        equal(do("update", "c", updates=[{"q": {"_id": "A"}, "u": {"n": 1}, "upsert": True, "collation": SIMPLE}])
              ["writeErrors"][0]["code"], 11000)
        equal(whole(), [{"_id": "a", "n": 1}, {"_id": {"x": "y"}, "n": 2, "m": 6}, {"_id": "B", "n": 3}])


@test
def the_index_of_ids_has_a_size_of_its_own(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        do("create", "c", collation=NO_CASE)
        do("create", "plain")
        do("create", "clustered", collation=NO_CASE, clusteredIndex={"key": {"_id": 1}, "unique": True})
        of = {}
        for name in "c", "plain", "clustered":
            do("insert", name, documents=[{"_id": f"{i:050}"} for i in range(1000)])
            of[name] = do("collStats", name)
            stage, = batch(do("aggregate", name, pipeline=[{"$collStats": {"storageStats": {}}}], cursor={}))
            told = {m: v for m, v in of[name].items() if m not in ("ns", "ok", "$clusterTime", "operationTime")}
            equal(told, stage["storageStats"])
            equal((told["totalSize"], told["count"]), (told["storageSize"], 1000))
            assert 0 < told["avgObjSize"] <= told["size"] // 1000
        sizes = of["c"]["indexSizes"]
        assert list(sizes) == ["_id_"] and 50000 < sizes["_id_"] < of["c"]["totalSize"], sizes
        equal(of["c"]["totalIndexSize"], sizes["_id_"])
        # The documents themselves are that index elsewhere.
        equal((of["plain"]["indexSizes"], of["plain"]["nindexes"]), ({"_id_": 0}, 1))
        equal((of["clustered"]["indexSizes"], of["clustered"]["nindexes"], of["clustered"]["clustered"]), ({}, 0, True))
        assert do("dbStats", 1)["indexSize"] > sizes["_id_"]
        equal([(m, v) for m, v in do("collStats", "none").items() if m in ("nindexes", "indexSizes", "avgObjSize", "count")],
              [("count", 0), ("nindexes", 0), ("indexSizes", {})])


@test
def ids_are_found_by_it(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        do("create", "c", collation=NO_CASE)
        do("insert", "c", documents=[{"_id": "b", "n": 1}, {"_id": "A", "n": 2}, {"_id": 7, "n": 3}])
        equal(ids(do("find", "c", filter={"_id": "B"})), ["b"])
        equal(ids(do("find", "c", filter={"_id": {"$in": ["a", 7]}}, sort={"_id": -1})), ["A", 7])
        equal(ids(do("find", "c", sort={"_id": 1})), [7, "A", "b"])
        equal(do("update", "c", updates=[{"q": {"_id": "a"}, "u": {"$inc": {"n": 1}}}])["nModified"], 1)
        equal(do("delete", "c", deletes=[{"q": {"_id": "B"}, "limit": 1}])["n"], 1)
        do("insert", "c", documents=[{"_id": "B"}])
        equal([do("findAndModify", "c", query={}, sort={"_id": order}, update={"$set": {"m": 1}})["value"]["_id"]
               for order in (1, -1)], [7, "B"])


@test
def changes_compare_by_it(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        fill(do)
        equal(do("update", "c", updates=[{"q": {"s": "A"}, "u": {"$set": {"x": 1}}, "multi": True},
                                         {"q": {"s": "A"}, "u": {"$set": {"y": 1}}, "multi": True,
                                          "collation": SIMPLE},
                                         {"q": {"s": "B"}, "u": {"$set": {"a.$[e]": "q"}}, "multi": True,
                                          "arrayFilters": [{"e": "Z"}], "collation": {}}])["nModified"], 5)
        equal([(d["_id"], d.get("x"), d.get("y"), d["a"][1]) for d in batch(do("find", "c"))],
              [(0, 1, None, "z"), (1, None, None, "q"), (2, 1, 1, "z"), (3, None, None, "q"), (4, None, None, "z")])
        do("update", "c", updates=[{"q": {"_id": 0}, "u": {"$pull": {"a": "Z"}}}])
        equal(batch(do("find", "c", filter={"_id": 0}))[0]["a"], ["a"])
        answer = do("update", "c", updates=[{"q": {"s": "c"}, "u": {"$set": {"x": 2}}, "upsert": True},
                                            {"q": {"_id": 9, "s": "Q"}, "u": {"$set": {"x": 2}}, "upsert": True}])
        equal((answer["nModified"], [u["_id"] for u in answer["upserted"]]), (1, [9]))
        equal(do("findAndModify", "c", query={"s": "q"}, remove=True)["value"]["_id"], 9)
        equal(do("findAndModify", "c", query={"s": "a"}, sort={"s": 1, "_id": -1}, update={"$set": {"z": 1}},
                 new=True)["value"]["_id"], 2)
        answer = c({"bulkWrite": 1, "nsInfo": [{"ns": "shop.c"}, {"ns": "shop.other"}], "ops": [
            {"insert": 1, "document": {"_id": 1, "s": "a"}},
            {"update": 0, "filter": {"s": "b"}, "updateMods": {"$set": {"w": 1}}, "multi": True},
            {"update": 1, "filter": {"s": "A"}, "updateMods": {"$set": {"w": 1}}, "multi": True},
            {"update": 0, "filter": {"s": "b"}, "updateMods": {"$set": {"w": 2}}, "multi": True, "collation": SIMPLE},
            {"delete": 0, "filter": {"s": "c"}}]})
        equal([item["n"] for item in batch(answer)], [1, 2, 0, 1, 1])
        equal(do("delete", "c", deletes=[{"q": {"s": "A"}, "limit": 0}])["n"], 2)


@test
def validators_compare_by_it(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        do("create", "c", collation=NO_CASE, validator={"s": {"$in": ["a", "b"]}})
        answer = do("insert", "c", documents=[{"_id": 1, "s": "A"}, {"_id": 2, "s": "c"}])
        equal((answer["n"], [e["code"] for e in answer["writeErrors"]]), (1, [121]))
        answer = do("update", "c", updates=[{"q": {"_id": 1}, "u": {"$set": {"s": "B"}}},
                                            {"q": {"_id": 1}, "u": {"$set": {"s": "D"}}}])
        equal((answer["nModified"], [e["code"] for e in answer["writeErrors"]]), (1, [121]))
        equal((do("validate", "c")["valid"], do("count", "c")["n"]), (True, 1))


@test
def pipelines_compare_by_it(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do, refused = shop(c), fails(c)
        fill(do)
        do("insert", "simple", documents=[{"_id": 1, "s": "a"}, {"_id": 2, "s": "A"}])
        do("create", "by_view", viewOn="c", pipeline=[{"$match": {"s": "A"}}])
        do("create", "like_it", viewOn="c", pipeline=[{"$match": {"s": "A"}}], collation=NO_CASE)

        def run(of, *pipeline, **members):
            return batch(do("aggregate", of, pipeline=[*pipeline], cursor={}, **members))
        equal([d["_id"] for d in run("c", {"$match": {"s": "A"}})], [0, 2])
        equal([d["_id"] for d in run("c", {"$match": {"s": "A"}}, collation=SIMPLE)], [2])
        equal(run("c", {"$group": {"_id": "$s", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}),
              [{"_id": "a", "n": 2}, {"_id": "B", "n": 2}, {"_id": "C", "n": 1}])
        equal([d["_id"] for d in run("c", {"$project": {"s": 1}}, {"$sort": {"s": -1, "_id": 1}})], [4, 1, 3, 0, 2])
        answer = do("aggregate", "c", pipeline=[{"$match": {"s": "A"}}], cursor={"batchSize": 1})
        equal([d["_id"] for d in do("getMore", Int64(answer["cursor"]["id"]), collection="c")["cursor"]["nextBatch"]],
              [2])
        # The collection that the command names says how all of it is compared.
        join = {"$lookup": {"from": "simple", "localField": "s", "foreignField": "s", "as": "of"}}
        equal([len(d["of"]) for d in run("c", join)], [2, 0, 2, 0, 0])
        join["$lookup"]["from"] = "c"
        equal([len(d["of"]) for d in run("simple", join)], [1, 1])
        union = {"$unionWith": {"coll": "c", "pipeline": [{"$match": {"s": "A"}}]}}
        equal([len(run(of, {"$match": {"s": "a"}}, union)) for of in ("simple", "c")], [1 + 1, 2 + 2])
        # A view has its own collation, or none.
        equal([[d["_id"] for d in batch(do("find", view))] for view in ("by_view", "like_it")], [[2], [0, 2]])
        equal([do("count", view)["n"] for view in ("by_view", "like_it")], [1, 2])
        equal(refused("aggregate", "by_view", pipeline=[], cursor={}, collation=NO_CASE), 167)
        equal(refused("aggregate", "c", pipeline=[{"$unionWith": "by_view"}], cursor={}), 167)
        equal(len(run("c", {"$unionWith": "like_it"})), 5 + 2)
        answer = do("explain", {"aggregate": "c", "pipeline": [{"$match": {"s": "A"}}, {"$group": {"_id": "$s"}}],
                                "cursor": {}}, verbosity="executionStats")
        equal(answer["stages"][-1]["nReturned"], 1)


@test
def definitions_go_with_dumps_moves_and_backups(cwd):
    with Mongo(cwd) as server, server.client() as c:
        fill(shop(c))
    dumped = ok("dump", "mongo:shop.c", "--quiet", cwd=cwd).stdout
    ok("load", "mongo:shop.loaded", "-", cwd=cwd, stdin=dumped)
    ok("backup", "backups", cwd=cwd)
    ok("restore", "backups", "--store", "embedded:restored", cwd=cwd)
    ok("move", "--quiet", "--from", "embedded:data", "--to", "embedded:moved", "mongo:shop.c", cwd=cwd)
    for store, names in ("data", ["loaded"]), ("restored", ["c", "loaded"]), ("moved", ["c"]):
        with Mongo(cwd, "--store", f"embedded:{store}") as server, server.client() as c:
            do = shop(c)
            for name in names:
                equal(options(do, name), {"collation": WHOLE})
                equal(ids(do("find", name, filter={"s": "A"})), [0, 2])


def has_id_index(do, name):
    plan = do("explain", {"find": name, "filter": {"_id": "A"}})["queryPlanner"]["winningPlan"]
    return plan.get("inputStage", {}).get("stage") == "IXSCAN"


@test
def a_missing_index_of_ids_is_made(cwd):
    """Collections of frond's first versions have a collation and no index of their _ids by it."""
    with Mongo(cwd) as server, server.client() as c:
        shop(c)("create", "c", collation=NO_CASE)
        shop(c)("insert", "c", documents=[{"_id": "a"}, {"_id": "b"}])
    header, *rows = ok("dump", "mongo:shop.c", "--quiet", cwd=cwd).stdout.splitlines()
    equal([one["name"] for one in json.loads(header)["indexes"]], ["_id_"])
    header = json.dumps({**json.loads(header), "indexes": []})
    ok("load", "mongo:shop.old", "-", cwd=cwd, stdin="\n".join([header, *rows, ""]))
    ok("load", "mongo:shop.both", "-", cwd=cwd, stdin="\n".join([header, *rows, '{"_id":"A"}', ""]))
    told = run("verify", cwd=cwd)
    equal((told.stdout + told.stderr).count("there is no index of the _ids by the collation of the collection"), 2)
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        until(lambda: has_id_index(do, "old"))
        equal(ids(do("find", "old", filter={"_id": "A"})), ["a"])
        equal(do("insert", "old", documents=[{"_id": "A"}])["writeErrors"][0]["code"], 11000)
        until(lambda: 'event=index_made db="shop.both" index="_id_"' in server.read_log())
        equal(sorted(ids(do("find", "both", filter={"_id": "A"}))), ["A", "a"])
    contains(run("verify", cwd=cwd).stdout, "1 finding")
    # What stands in its way is told, and it is tried again by the next server.
    with Mongo(cwd) as server, server.client() as c:
        until(lambda: 'event=index_failed db="shop.both" index="_id_"' in server.read_log())
        shop(c)("delete", "both", deletes=[{"q": {"_id": "A"}, "collation": SIMPLE, "limit": 1}])
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        until(lambda: has_id_index(do, "both"))
        equal(do("insert", "both", documents=[{"_id": "A"}])["writeErrors"][0]["code"], 11000)
    contains(run("verify", cwd=cwd).stdout, "0 findings")


BY_ID = {"key": {"_id": 1}, "unique": True}


@test
def a_clustered_index_is_kept_and_listed(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do, refused = shop(c), fails(c)
        kept = {"v": 2, "key": {"_id": 1}, "name": "_id_", "unique": True}
        told = {**kept, "clustered": True}
        do("create", "c", clusteredIndex=BY_ID)
        listed, = batch(do("listCollections", 1))
        equal((listed["options"], "idIndex" in listed), ({"clusteredIndex": kept}, False))
        equal(batch(do("listIndexes", "c")), [told])
        do("create", "c", clusteredIndex={**BY_ID, "v": 2.5, "name": "_id_"})
        equal([refused("create", "c"), refused("create", "c", clusteredIndex={**BY_ID, "name": "x"})], [48, 48])
        do("create", "plain", clusteredIndex=False)
        do("create", "plain", clusteredIndex=0)
        equal(options(do, "plain"), {})
        # It is the index by `_id`, which stays. Counts of indexes do not have it.
        do("insert", "c", documents=[{"_id": i, "a": i} for i in range(9)])
        equal(refused("dropIndexes", "c", index="_id_"), 5979800)
        equal(refused("dropIndexes", "c", index={"_id": 1}), 5979800)
        answer = do("createIndexes", "c", indexes=[{"key": {"_id": 1}, "name": "x"}])
        equal((answer["numIndexesBefore"], answer["numIndexesAfter"]), (0, 0))
        answer = do("createIndexes", "c", indexes=[{"key": {"a": 1}, "name": "a"}])
        equal((answer["numIndexesBefore"], answer["numIndexesAfter"]), (0, 1))
        equal(do("dropIndexes", "c", index="*")["nIndexesWas"], 1)
        do("createIndexes", "c", indexes=[{"key": {"_id": 1}, "name": "y", "clustered": True, "unique": True}])
        equal(batch(do("listIndexes", "c")), [told])
        for code, name, spec in ((6100900, "none", {"key": {"_id": 1}}), (6243700, "plain", {"key": {"_id": 1}}),
                                 (6243700, "c", {"key": {"a": 1}})):
            equal(refused("createIndexes", name, indexes=[{**spec, "name": "n", "clustered": True, "unique": True}]),
                  code)
        equal(refused("createIndexes", "c", indexes=[{"key": {"a": 1}, "name": "n", "clustered": False}]), 6492800)
        equal(refused("listIndexes", "none"), 26)
        for code, index in ((6011800, {"name": "_id_", "hidden": True}), (6011800, {"name": "_id_", "hidden": False}),
                            (27, {"keyPattern": {"_id": 1}, "hidden": True}),
                            (72, {"name": "_id_", "expireAfterSeconds": 9})):
            equal(refused("collMod", "c", index=index), code)
        # Hints know its name.
        do("create", "named", clusteredIndex={**BY_ID, "name": "own"})
        do("insert", "named", documents=[{"_id": 1}, {"_id": 2}])
        equal(batch(do("listIndexes", "named")), [{**told, "name": "own"}])
        equal(ids(do("find", "named", filter={"_id": {"$gt": 1}}, hint="own")), [2])
        equal(ids(do("find", "named", filter={"_id": {"$gt": 1}}, hint={"_id": 1})), [2])
        equal(refused("find", "named", hint="other"), 2)
        equal([d["spec"] for d in batch(do("aggregate", "named", pipeline=[{"$indexStats": {}}], cursor={}))],
              [{**told, "name": "own"}])
        equal([refused("dropIndexes", "named", index=name) for name in ("own", "_id_")], [5979800, 27])
        stats = do("collStats", "named")
        equal((stats["clustered"], stats["nindexes"], stats["indexSizes"]), (True, 0, {}))
        equal((do("dbStats", 1)["indexes"], do("validate", "named")["valid"]), (1, True))
        c({"renameCollection": "shop.named", "to": "shop.other"})
        do("aggregate", "c", pipeline=[{"$out": "other"}], cursor={})
        equal(options(do, "other"), {"clusteredIndex": {**kept, "name": "own"}})
        equal((do("count", "other")["n"], do("drop", "other")["nIndexesWas"]), (9, 0))


@test
def wrong_clustered_indexes_are_refused(cwd):
    with Mongo(cwd) as server, server.client() as c:
        refused = fails(c)
        for code, index in ((5979703, True), (5979703, 1.0), (14, None), (14, "x"), (14, [BY_ID]),
                            (40414, {"unique": True}), (40414, {"key": {"_id": 1}}), (14, {"key": 1, "unique": True}),
                            (40414, {**BY_ID, "key": None}), (197, {"key": {"x": 1}, "unique": True}),
                            (197, {"key": {"_id": -1}, "unique": True}),
                            (197, {"key": {"_id": 1, "x": 1}, "unique": True}), (5979700, {**BY_ID, "unique": False}),
                            (14, {**BY_ID, "unique": "x"}), (5979704, {**BY_ID, "v": 1}), (14, {**BY_ID, "v": "2"}),
                            (14, {**BY_ID, "name": 1}), (40415, {**BY_ID, "x": 1})):
            equal((index, refused("create", "c", clusteredIndex=index)), (index, code))
        for code, members in ((6049200, {"capped": True, "size": 9}), (72, {"timeseries": {"timeField": "t"}}),
                              (6026500, {"viewOn": "d", "pipeline": []}), (6049204, {"max": 9}),
                              (72, {"idIndex": {"key": {"_id": 1}, "name": "_id_"}}),
                              (72, {"expireAfterSeconds": -1}), (72, {"expireAfterSeconds": 9_999_999_999}),
                              (14, {"expireAfterSeconds": "off"})):
            equal((members, refused("create", "c", clusteredIndex=BY_ID, **members)), (members, code))
        equal(refused("create", "c", capped=True, size=9, clusteredIndex=False), 6049200)
        equal(refused("create", "c", expireAfterSeconds=9), 72)


@test
def documents_expire_by_their_ids(cwd):
    (cwd / "ini").write_text("[mongo]\nexpire_seconds = 1\n")
    with Server(cwd, "--mongo", "127.0.0.1:0", "--config", "ini") as server:
        port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
        with Client(port) as c:
            do, refused = shop(c), fails(c)
            do("create", "c", clusteredIndex=BY_ID, expireAfterSeconds=600)
            equal(options(do, "c")["expireAfterSeconds"], 600)
            equal(batch(do("listIndexes", "c"))[0]["expireAfterSeconds"], 600)
            now = int(time.time() * 1000)
            old = [Date(-5), Date(0), *(Date(now - 700_000 - i) for i in range(500))]
            fresh = [Date(now - 300_000), Date(now + 9_000_000)]
            others = [1, "x", {"d": Date(0)}, True]
            do("insert", "c", documents=[{"_id": id} for id in [*old, *fresh, *others]])

            until(lambda: do("count", "c")["n"] == 6)
            do("collMod", "c", expireAfterSeconds="off")
            equal([options(do, "c").get("expireAfterSeconds"), batch(do("listIndexes", "c"))[0].get("expireAfterSeconds")],
                  [None, None])
            do("collMod", "c", expireAfterSeconds=100)
            until(lambda: do("count", "c")["n"] == 5)
            do("create", "plain")
            equal([refused("collMod", "plain", expireAfterSeconds=9), refused("collMod", "c", expireAfterSeconds="x"),
                   refused("collMod", "c", expireAfterSeconds=[]), refused("collMod", "c", expireAfterSeconds=-1)],
                  [72, 72, 14, 72])


main()
