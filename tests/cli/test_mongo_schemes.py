"""Schemes of collections at MongoDB's door: chosen, told, and the same to clients but for the cost."""

import random
import re

from harness import contains, equal, main, ok, run, test
from mongo import Client, Raw
from mongo_server import MongoServer

EXPLODED = {"storageEngine": {"frond": {"scheme": "exploded"}}}
PACKED = {"storageEngine": {"frond": {"scheme": "packed"}}}
UPDATES = 400
# As long as "exploded", were it a text.
DECIMAL = Raw(19, (15).to_bytes(8, "little") + (8).to_bytes(8, "little"))


class Mongo(MongoServer):
    def __init__(self, cwd, *settings, **kwargs):
        # Answers of a set's member have their times, in which the schemes differ.
        super().__init__(cwd, ini="\n".join(["[mongo]", "standalone = true", *settings, ""]), **kwargs)


def options(c):
    found = c({"listCollections": 1}, "shop")["cursor"]["firstBatch"]
    return {one["name"]: one["options"] for one in found}


def only(c, collection, filter, **members):
    found = c({"find": collection, "filter": filter, **members}, "shop")["cursor"]["firstBatch"]
    equal(len(found), 1)
    return found[0]


@test
def a_collection_has_the_scheme_that_it_was_created_with(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        c({"create": "e", **EXPLODED, "validator": {"n": 1}}, "shop")
        c({"create": "p", **PACKED}, "shop")
        c({"create": "d"}, "shop")
        equal(options(c), {"e": {**EXPLODED, "validator": {"n": 1}, "validationLevel": "strict",
                                 "validationAction": "error"}, "p": {}, "d": {}})
        c({"insert": "e", "documents": [{"_id": 1, "n": 1}]}, "shop")
        # What takes the place of a collection keeps its scheme.
        c({"aggregate": "e", "pipeline": [{"$out": "e"}], "cursor": {}}, "shop")
        equal(options(c)["e"]["storageEngine"], EXPLODED["storageEngine"])
        for wrong in ({"wiredTiger": {}}, {"frond": 1}, {"frond": {"scheme": "other"}},
                      {"frond": {"scheme": 1}}, {"frond": {"scheme": DECIMAL}},
                      {"frond": {"other": 1}}):
            equal(c.fails({"create": "x", "storageEngine": wrong}, "shop")["code"], 72)
        equal(c.fails({"create": "x", "storageEngine": 1}, "shop")["code"], 14)
    drawn = ok("inspect", "mongo:shop.e", cwd=cwd).stdout
    contains(drawn, ":1:n -> 1")
    contains(ok("inspect", "mongo:shop.e", "1", cwd=cwd).stdout, ":1:n -> 1")
    contains(run("inspect", "mongo:shop.e", '"1"', cwd=cwd).stderr, "there is no document")


@test
def the_default_scheme_is_a_setting(cwd):
    with Mongo(cwd, "scheme = exploded") as server, Client(server.port) as c:
        c({"create": "p", **PACKED}, "shop")
        c({"create": "d"}, "shop")
        c({"insert": "i", "documents": [{"_id": 1}]}, "shop")
        c({"createIndexes": "k", "indexes": [{"key": {"a": 1}, "name": "a"}]}, "shop")
        equal(options(c), {"p": PACKED, "d": EXPLODED, "i": EXPLODED, "k": EXPLODED})
    with Mongo(cwd) as server, Client(server.port) as c:
        equal(options(c), {"p": {}, "d": EXPLODED, "i": EXPLODED, "k": EXPLODED})


def random_value(r, depth=0):
    kind = r.randrange(8 if depth < 3 else 5)
    if kind < 3:
        return r.randrange(10)
    if kind < 5:
        return r.choice(["", "text", None, True, 1.5])
    if kind < 7:
        return {name: random_value(r, depth + 1) for name in r.sample("abc01", r.randrange(4))}
    return [random_value(r, depth + 1) for _ in range(r.randrange(4))]


def random_path(r):
    return ".".join(r.choice("abc01") for _ in range(r.choice((1, 1, 2, 2, 3))))


def random_update(r):
    update = {}
    for _ in range(r.choice((1, 1, 2))):
        op = r.choice(("$set", "$set", "$inc", "$mul", "$min", "$max", "$unset", "$push",
                       "$addToSet", "$pop", "$pull", "$rename", "$setOnInsert", "$bit"))
        value = {"$inc": r.randrange(5), "$mul": 2, "$unset": 1, "$pop": r.choice((1, -1)),
                 "$rename": random_path(r), "$bit": {"or": 4}}.get(op)
        update.setdefault(op, {})[random_path(r)] = random_value(r) if value is None else value
    return update


@test
def updates_of_both_schemes_leave_the_same(cwd):
    r = random.Random(7)
    with Mongo(cwd) as server, Client(server.port) as c:
        for name, more in (("e", EXPLODED), ("p", PACKED)):
            c({"create": name, **more}, "shop")
            c({"createIndexes": name, "indexes": [{"key": {"a": 1, "b": -1}, "name": "ab"},
                                                  {"key": {"c.0": 1}, "name": "c"}]}, "shop")
        changed = failed = 0
        for n in range(UPDATES):
            id = r.randrange(6)
            filter = {"_id": id, **({random_path(r): {"$ne": r.randrange(4)}} if n % 3 == 0 else {})}
            update = random_update(r) if n % 9 else {name: random_value(r) for name in "abc"}
            statement = {"q": filter, "u": update, "upsert": n % 5 == 0}
            answers = [c({"update": name, "updates": [statement]}, "shop") for name in ("e", "p")]
            for answer in answers:
                for error in answer.get("writeErrors", ()):
                    error["errmsg"] = re.sub(r"shop\.[ep]", "shop", error["errmsg"])
            equal(answers[0], answers[1])
            changed += answers[0].get("nModified", 0)
            failed += "writeErrors" in answers[0]
            for projection in ({}, {random_path(r): 1}, {random_path(r): 1, "_id": 0}, {"_id": 1}):
                found = [c({"find": name, "filter": {"_id": id}, "projection": projection},
                           "shop")["cursor"]["firstBatch"] for name in ("e", "p")]
                equal([list(doc.items()) for doc in found[0]], [list(doc.items()) for doc in found[1]])
            if n % 40 == 39:
                answers = [c({"delete": name, "deletes": [{"q": {"_id": id}, "limit": 1}]}, "shop")
                           for name in ("e", "p")]
                equal(answers[0], answers[1])
        assert changed > UPDATES / 8 and failed > 5, (changed, failed)
        for filter in ({"a": 1}, {"a": {"$gte": 2}}, {"c.0": {"$gt": 0}}):
            found = [c({"find": name, "filter": filter, "sort": {"_id": 1}},
                       "shop")["cursor"]["firstBatch"] for name in ("e", "p")]
            equal(found[0], found[1])
    ok("verify", cwd=cwd)


@test
def a_large_document_that_leaves_are_too_much_for_is_updated_as_well(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        c({"create": "e", **EXPLODED}, "shop")
        members = {f"m{n}": "x" * 20000 for n in range(90)}
        c({"insert": "e", "documents": [{"_id": 1, "n": 1, **members}, {"_id": 2, "n": 1}]}, "shop")
        # Each of these makes the document longer, until it no longer fits one transaction.
        for n in range(60):
            update = {"$set": {f"more{n}": "y" * 20000}, "$inc": {"n": 1}}
            equal(c({"update": "e", "updates": [{"q": {"_id": 1}, "u": update}]}, "shop")["nModified"], 1)
        found = only(c, "e", {"_id": 1}, projection={"n": 1, "more59": 1})
        equal((found["n"], len(found["more59"])), (61, 20000))
        equal(len(only(c, "e", {"_id": 1})), 2 + 90 + 60)
        # A leaf cannot have this, so the document becomes one text.
        update = {"$set": {"large": "z" * 200000}, "$inc": {"n": 1}}
        equal(c({"update": "e", "updates": [{"q": {"_id": 1}, "u": update}]}, "shop")["nModified"], 1)
        found = only(c, "e", {"_id": 1}, projection={"n": 1, "large": 1})
        equal((found["n"], len(found["large"])), (62, 200000))
        update = {"$unset": {"large": 1}, "$inc": {"n": 1}}
        equal(c({"update": "e", "updates": [{"q": {"_id": 1, "n": 62}, "u": update}]}, "shop")["nModified"], 1)
        equal(only(c, "e", {"_id": 1}, projection={"n": 1})["n"], 63)
    ok("verify", cwd=cwd)


main()
