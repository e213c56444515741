"""Views of MongoDB's door: pipelines that are read like collections."""


from harness import contains, equal, main, ok, run, test
from mongo import Int64
from mongo_server import MongoServer


class Mongo(MongoServer):
    def __init__(self, cwd, *options, **kwargs):
        super().__init__(cwd, *options, ini="[chttpd_auth]\niterations = 10\n[mongo]\nreplica_set = frond\n", **kwargs)


def shop(c):
    return lambda command, of, **members: c({command: of, **members}, "shop")


def fails(c):
    return lambda command, of, **members: c.fails({command: of, **members}, "shop")["code"]


def fill(do):
    """Books, those that are cheap, and names of these."""
    do("insert", "books", documents=[{"_id": i, "price": i % 10, "title": f"t{i:03}", "tags": [i % 3, "x"]}
                                     for i in range(300)])
    do("create", "cheap", viewOn="books", pipeline=[{"$match": {"price": {"$lt": 3}}}])
    do("create", "titles", viewOn="cheap", pipeline=[{"$project": {"title": 1, "tags": 1}}])


def batch(answer):
    return answer["cursor"]["firstBatch"]


@test
def a_view_is_read_like_a_collection(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        fill(do)
        cheap = [i for i in range(300) if i % 10 < 3]
        answer = do("find", "titles", sort={"_id": -1}, skip=1, limit=2, filter={"_id": {"$lt": 100}})
        equal(answer["cursor"]["ns"], "shop.titles")
        equal(batch(answer), [{"_id": 91, "title": "t091", "tags": [1, "x"]},
                              {"_id": 90, "title": "t090", "tags": [0, "x"]}])
        equal(batch(do("find", "titles", filter={"_id": 1}, projection={"_id": 0, "title": 1})),
              [{"title": "t001"}])
        equal(batch(do("find", "cheap", filter={"$expr": {"$eq": ["$_id", "$$n"]}}, let={"n": 2}))[0]["_id"], 2)
        answer = do("find", "cheap", batchSize=50)
        seen, cursor = [d["_id"] for d in batch(answer)], answer["cursor"]
        equal(len(seen), 50)
        while cursor["id"]:
            cursor = do("getMore", Int64(cursor["id"]), collection="cheap", batchSize=20)["cursor"]
            equal(cursor["ns"], "shop.cheap")
            seen += [d["_id"] for d in cursor["nextBatch"]]
        equal(seen, cheap)
        equal(do("find", "cheap", batchSize=1, singleBatch=True)["cursor"]["id"], 0)
        equal(do("count", "cheap")["n"], 90)
        equal(do("count", "cheap", query={"price": 1}, skip=10, limit=15)["n"], 15)
        equal(do("count", "titles", query={"price": 1})["n"], 0)
        equal(do("distinct", "cheap", key="price")["values"], [0, 1, 2])
        equal(do("distinct", "titles", key="tags", query={"_id": {"$lt": 12}})["values"], [0, "x", 1, 2])
        answer = do("aggregate", "cheap", cursor={}, pipeline=[{"$group": {"_id": "$price", "n": {"$sum": 1}}},
                                                               {"$sort": {"_id": 1}}])
        equal((answer["cursor"]["ns"], batch(answer)), ("shop.cheap", [{"_id": i, "n": 30} for i in range(3)]))
        # What is written to the collection is seen.
        do("update", "books", updates=[{"q": {"_id": 0}, "u": {"$set": {"price": 99}}}])
        equal(do("count", "cheap")["n"], 89)
        equal(batch(do("find", "none")), [])
        do("create", "of_nothing", viewOn="none", pipeline=[])
        equal((batch(do("find", "of_nothing")), do("count", "of_nothing")["n"]), ([], 0))
        for option in {"min": {"_id": 1}}, {"max": {"_id": 1}}, {"returnKey": True}, \
                {"showRecordId": True}, {"sort": {"$natural": 1}}:
            equal(fails(c)("find", "cheap", **option), 168)


@test
def views_are_joined(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        fill(do)
        do("insert", "orders", documents=[{"_id": i, "book": i * 5} for i in range(20)])
        joined = [{"$lookup": {"from": "titles", "localField": "book", "foreignField": "_id", "as": "b"}},
                  {"$match": {"b": {"$ne": []}}}, {"$set": {"b": {"$first": "$b.title"}}}]
        expected = [{"_id": i, "book": i * 5, "b": f"t{i * 5:03}"} for i in range(0, 20, 2)]
        equal(batch(do("aggregate", "orders", pipeline=joined, cursor={})), expected)
        # A view may have such a join, and may be joined itself.
        do("create", "sold", viewOn="orders", pipeline=joined)
        equal(batch(do("find", "sold")), expected)
        stages = [{"$limit": 1}, {"$lookup": {"from": "sold", "pipeline": [{"$match": {"_id": {"$gt": 15}}}], "as": "s"}}]
        equal([d["_id"] for d in batch(do("aggregate", "cheap", pipeline=stages, cursor={}))[0]["s"]], [16, 18])
        stages = [{"$match": {"_id": 1}}, {"$unionWith": {"coll": "titles", "pipeline": [{"$match": {"_id": 2}}]}}]
        equal([d["_id"] for d in batch(do("aggregate", "cheap", pipeline=stages, cursor={}))], [1, 2])
        do("insert", "tree", documents=[{"_id": i, "up": i - 1, "on": i != 3} for i in range(6)])
        do("create", "living", viewOn="tree", pipeline=[{"$match": {"on": True}}])
        stages = [{"$match": {"_id": 5}}, {"$graphLookup": {"from": "living", "startWith": "$up", "as": "all",
                                                           "connectFromField": "up", "connectToField": "_id"}}]
        equal([d["_id"] for d in batch(do("aggregate", "tree", pipeline=stages, cursor={}))[0]["all"]], [4])
        # An answer of many batches, with joins in it.
        answer = do("aggregate", "books", cursor={"batchSize": 10}, pipeline=[
            {"$lookup": {"from": "cheap", "localField": "_id", "foreignField": "_id", "as": "b"}}])
        seen, cursor = batch(answer), answer["cursor"]
        while cursor["id"]:
            cursor = do("getMore", Int64(cursor["id"]), collection="books", batchSize=100)["cursor"]
            seen += cursor["nextBatch"]
        equal([len(d["b"]) for d in seen], [int(i % 10 < 3) for i in range(300)])


@test
def what_writes_is_refused(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do, refused = shop(c), fails(c)
        fill(do)
        failure = c.fails({"insert": "cheap", "documents": [{"_id": 1}]}, "shop")
        equal((failure["code"], failure["codeName"], failure["errmsg"]),
              (166, "CommandNotSupportedOnView", "Namespace shop.cheap is a view, not a collection"))
        equal([refused("update", "cheap", updates=[{"q": {}, "u": {"x": 1}, "upsert": True}]),
               refused("delete", "cheap", deletes=[{"q": {}, "limit": 0}]),
               refused("findAndModify", "cheap", remove=True),
               refused("createIndexes", "cheap", indexes=[{"key": {"a": 1}, "name": "a"}]),
               refused("dropIndexes", "cheap", index="*"), refused("listIndexes", "cheap"),
               refused("collStats", "cheap"),
               refused("aggregate", "books", pipeline=[{"$out": "cheap"}], cursor={}),
               refused("aggregate", "books", pipeline=[{"$merge": "cheap"}], cursor={}),
               c.fails({"renameCollection": "shop.cheap", "to": "shop.x"})["code"],
               c.fails({"renameCollection": "shop.books", "to": "shop.cheap", "dropTarget": True})["code"]],
              [166] * 11)
        within = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        equal(batch(do("find", "titles", limit=1, **within, startTransaction=True))[0]["_id"], 0)
        do("update", "books", updates=[{"q": {"_id": 0}, "u": {"$set": {"price": 9}}}], **within)
        equal(batch(do("find", "titles", limit=1, **within))[0]["_id"], 1)
        equal(batch(do("find", "titles", limit=1))[0]["_id"], 0)
        c({"commitTransaction": 1, **within})
        equal(do("count", "books")["n"], 300)


@test
def views_are_made_changed_listed_and_dropped(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do, refused = shop(c), fails(c)
        fill(do)
        entry = {d["name"]: d for d in batch(do("listCollections", 1))}
        equal(entry["titles"], {"name": "titles", "type": "view", "info": {"readOnly": True},
                                "options": {"viewOn": "cheap",
                                            "pipeline": [{"$project": {"title": 1, "tags": 1}}]}})
        equal([(d["name"], d["type"]) for d in batch(do("listCollections", 1, nameOnly=True))],
              [("books", "collection"), ("cheap", "view"), ("titles", "view")])
        stats = do("dbStats", 1)
        equal((stats["collections"], stats["views"], stats["objects"]), (1, 2, 300))
        for code, name, more in [
                (48, "cheap", {"viewOn": "books"}), (48, "books", {"viewOn": "x"}), (2, "v", {"viewOn": ""}),
                (14, "v", {"viewOn": 1}), (14, "v", {"viewOn": "books", "pipeline": {}}),
                (73, "v", {"viewOn": "a$b"}), (72, "v", {"pipeline": []}),
                (40324, "v", {"viewOn": "books", "pipeline": [{"$what": 1}]}),
                (167, "v", {"viewOn": "books", "pipeline": [{"$out": "x"}]}),
                (72, "v", {"viewOn": "books", "validator": {"a": 1}})]:
            equal((refused("create", name, **more), more), (code, more))
        do("collMod", "cheap", viewOn="books", pipeline=[{"$match": {"price": 7}}])
        equal(do("count", "titles")["n"], 30)
        equal([refused("collMod", "cheap", viewOn="books"), refused("collMod", "cheap", validator={}),
               refused("collMod", "books", viewOn="x", pipeline=[]), refused("collMod", "none", viewOn="x", pipeline=[])],
              [72, 72, 72, 26])
        # A view that reads itself is refused, however far the way is.
        join = [{"$lookup": {"from": "titles", "as": "x", "pipeline": []}}]
        equal([refused("collMod", "cheap", viewOn="titles", pipeline=[]),
               refused("collMod", "cheap", viewOn="cheap", pipeline=[]),
               refused("collMod", "cheap", viewOn="books", pipeline=join),
               refused("create", "self", viewOn="self", pipeline=[])], [5, 5, 5, 5])
        for i in range(20):
            do("create", f"v{i}", viewOn=f"v{i - 1}" if i else "books", pipeline=[{"$match": {"_id": {"$ne": i}}}])
        equal(do("count", "v19")["n"], 280)
        equal(refused("create", "v20", viewOn="v19", pipeline=[]), 165)
        answer = do("drop", "titles")
        equal((answer["ns"], "nIndexesWas" in answer), ("shop.titles", False))
        equal(do("count", "titles")["n"], 0)
        # A collation is the view's, for good.
        do("create", "loud", viewOn="books", pipeline=[], collation={"locale": "en", "strength": 2})
        equal(do("count", "loud", query={"title": "T001"})["n"], 1)
        equal(do("distinct", "loud", key="title", query={"title": "T001"})["values"], ["t001"])
        do("collMod", "loud", viewOn="books", pipeline=[{"$match": {"title": "T002"}}])
        equal(do("count", "loud")["n"], 1)
        equal(refused("find", "loud", collation={"locale": "en"}), 167)
        equal(refused("find", "v0", collation={"locale": "en"}), 167)
    contains(run("verify", cwd=cwd).stdout, " 0 findings")


@test
def statements_of_a_bulk_write_on_a_view_fail_and_the_others_are_done(cwd):
    with Mongo(cwd) as server, server.client() as c:
        fill(shop(c))
        large = "x" * 3000000

        def bulk(ordered, *ops, **more):
            answer = c({"bulkWrite": 1, "ops": list(ops), "ordered": ordered, **more,
                        "nsInfo": [{"ns": "shop.cheap"}, {"ns": "shop.books"}]}, "admin")
            return ([(i["idx"], i["ok"], i.get("code")) for i in batch(answer)],
                    [answer["n" + n] for n in ("Errors", "Inserted", "Modified", "Upserted", "Deleted")], answer)
        ops = [{"insert": 1, "document": {"_id": "a"}}, {"insert": 0, "document": {"_id": "b"}},
               {"update": 0, "filter": {}, "updateMods": {"$set": {"x": 1}}, "multi": True, "upsert": True},
               {"delete": 0, "filter": {}, "multi": True}, {"insert": 0, "document": {"_id": "l", "t": large}},
               {"update": 1, "filter": {"_id": "a"}, "updateMods": {"$set": {"x": 1}}},
               {"insert": 1, "document": {"_id": "m", "t": large}}, {"delete": 1, "filter": {"_id": 0}}]
        seen, counts, answer = bulk(False, *ops)
        equal(seen, [(0, 1.0, None), (1, 0.0, 166), (2, 0.0, 166), (3, 0.0, 166), (4, 0.0, 166), (5, 1.0, None),
                     (6, 1.0, None), (7, 1.0, None)])
        equal(counts, [4, 2, 1, 0, 1])
        equal(batch(answer)[1]["errmsg"], "Namespace shop.cheap is a view, not a collection")
        seen, counts, _ = bulk(True, *ops[1:])
        equal((seen, counts), ([(0, 0.0, 166)], [1, 0, 0, 0, 0]))
        seen, counts, _ = bulk(True, {"insert": 1, "document": {"_id": "c"}}, *ops[1:])
        equal((seen, counts), ([(0, 1.0, None), (1, 0.0, 166)], [1, 1, 0, 0, 0]))
        # A failure in a transaction ends it.
        within = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        equal(bulk(False, *ops[1:2], **within, startTransaction=True)[1], [1, 0, 0, 0, 0])
        equal(c.fails({"commitTransaction": 1, **within})["code"], 251)
        equal(shop(c)("count", "books")["n"], 302)
    contains(run("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_view_is_dumped_and_loaded(cwd):
    with Mongo(cwd) as server, server.client() as c:
        do = shop(c)
        fill(do)
    dump = ok("dump", "mongo:shop.titles", "--quiet", cwd=cwd).stdout
    contains(dump, "viewOn")
    ok("load", "mongo:shop.again", "-", cwd=cwd, stdin=dump)
    refused = run("load", "mongo:shop.titles", "-", cwd=cwd, stdin='{"_id":1}')
    equal(refused.returncode, 1)
    contains(refused.stderr, "mongo:shop.titles is a view, which has no documents of its own")
    with Mongo(cwd) as server, server.client() as c:
        equal(shop(c)("count", "again")["n"], 90)


@test
def rights_are_those_on_the_view(cwd):
    with Mongo(cwd, env={"FROND_ADMIN": "root:secret"}) as server:
        with server.client().login("root", "secret") as root:
            fill(shop(root))
            root({"insert": "c", "documents": [{"_id": 1}]}, "other")
            root({"createUser": "ann", "pwd": "apple", "roles": [{"role": "read", "db": "shop"}]})
        with server.client().login("ann", "apple") as c:
            equal(shop(c)("count", "titles")["n"], 90)
            equal(fails(c)("create", "v", viewOn="books", pipeline=[]), 13)


main()
