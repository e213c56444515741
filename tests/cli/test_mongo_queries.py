"""What MongoDB's door finds and changes by filters and operators, beside a naive interpreter."""

import os
import random
import select
import signal
import threading

from harness import contains, equal, main, run, test
from mongo import Failure, Int64, sequence
from mongo_server import MongoServer as Mongo


class Collection:
    """A collection of one client, with the shortest way to each command."""

    def __init__(self, client, name="c", db="d"):
        self.client, self.name, self.db = client, name, db

    def run(self, command, **members):
        return self.client({command: self.name, **members}, db=self.db)

    def fails(self, command, **members):
        answer = self.client.fails({command: self.name, **members}, db=self.db)
        return answer["code"]

    def insert(self, *documents):
        for i in range(0, len(documents), 1000):
            self.client({"insert": self.name}, db=self.db,
                        sections=sequence("documents", *documents[i:i + 1000]))

    def find(self, where=None, **members):
        answer = self.run("find", filter=where or {}, **{"batchSize": 1000000, **members})
        equal(answer["cursor"]["id"], 0)
        return answer["cursor"]["firstBatch"]

    def ids(self, where=None, **members):
        return [document["_id"] for document in self.find(where, **members)]

    def update(self, where, change, **members):
        answer = self.run("update", updates=[{"q": where, "u": change, **members}])
        if "writeErrors" in answer:
            return answer["writeErrors"][0]["code"]
        return answer["n"], answer["nModified"]

    def delete(self, where, limit=0):
        return self.run("delete", deletes=[{"q": where, "limit": limit}])["n"]

    def count(self, where=None, **members):
        return self.run("count", query=where or {}, **members)["n"]


# ---- The naive interpreter: integers, strings, arrays of integers, one level of documents ----

def values(document, path):
    name, _, rest = path.partition(".")
    value = document.get(name) if isinstance(document, dict) else None
    if rest:
        return values(value, rest)
    if isinstance(value, list):
        return [*value, value]
    return [value]


def kind(value):
    return ("number" if isinstance(value, (int, float)) else
            "null" if value is None else type(value).__name__)


def holds(op, arg, value):
    if op == "$eq":
        return kind(value) == kind(arg) and value == arg
    if kind(value) != kind(arg) or kind(value) in ("null", "list"):
        return False
    return {"$gt": value > arg, "$gte": value >= arg, "$lt": value < arg, "$lte": value <= arg}[op]


def matches(where, document):
    for name, condition in where.items():
        if name in ("$and", "$or", "$nor"):
            each = [matches(one, document) for one in condition]
            if not {"$and": all(each), "$or": any(each), "$nor": not any(each)}[name]:
                return False
            continue
        if not isinstance(condition, dict):
            condition = {"$eq": condition}
        for op, arg in condition.items():
            found = values(document, name)
            if op == "$in":
                good = any(holds("$eq", one, value) for one in arg for value in found)
            elif op == "$ne":
                good = not any(holds("$eq", arg, value) for value in found)
            else:
                good = any(holds(op, arg, value) for value in found)
            if not good:
                return False
    return True


def change(document, update):
    """False if it fails; the document is as it was then."""
    for op, members in update.items():
        for name, arg in members.items():
            old = document.get(name)
            if op == "$set":
                document[name] = arg
            elif op == "$unset":
                document.pop(name, None)
            elif op == "$inc":
                document[name] = (old or 0) + arg
            elif op == "$max":
                document[name] = arg if old is None else max(old, arg)
            elif op == "$push":
                document[name] = [*(old or []), arg]
            elif op == "$addToSet":
                document[name] = old if old and arg in old else [*(old or []), arg]
            elif op == "$pull" and old:
                document[name] = [one for one in old if one != arg]


def random_document(rng, number):
    document = {"_id": number, "n": rng.randrange(20), "l": [rng.randrange(5) for _ in range(rng.randrange(4))]}
    if rng.random() < 0.7:
        document["s"] = rng.choice("abcd")
    if rng.random() < 0.7:
        document["d"] = {"x": rng.randrange(10)}
    return document


def random_condition(rng):
    name = rng.choice(["_id", "_id", "n", "l", "s", "d.x"])
    arg = (lambda: rng.choice("abcd")) if name == "s" else (lambda: rng.randrange(20))
    op = rng.choice(["$eq", "$gt", "$gte", "$lt", "$lte", "$ne", "$in", None])
    if op is None:
        return {name: arg()}
    if op == "$in":
        return {name: {op: [arg() for _ in range(rng.randrange(4))]}}
    return {name: {op: arg(), **({"$lt": arg()} if op == "$gte" else {})}}


def random_filter(rng, depth=2):
    if depth and rng.random() < 0.3:
        return {rng.choice(["$and", "$or", "$nor"]): [random_filter(rng, depth - 1)
                                                      for _ in range(rng.randrange(1, 3))]}
    return random_condition(rng)


def random_update(rng):
    return rng.choice([{"$set": {"n": rng.randrange(20)}}, {"$inc": {"n": rng.randrange(3)}},
                       {"$max": {"n": rng.randrange(20)}}, {"$unset": {"s": ""}},
                       {"$push": {"l": rng.randrange(5)}}, {"$addToSet": {"l": rng.randrange(5)}},
                       {"$pull": {"l": rng.randrange(5)}},
                       {"$set": {"s": rng.choice("abcd")}, "$inc": {"n": 1}}])


@test
def random_filters_and_updates_do_what_a_naive_interpreter_does(cwd):
    rng = random.Random(int(os.environ.get("SEED", 1)))
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        model = {number: random_document(rng, number) for number in range(60)}
        c.insert(*model.values())
        for step in range(400):
            where = random_filter(rng)
            found = [number for number in sorted(model) if matches(where, model[number])]
            what = rng.randrange(8)
            if what < 3:
                equal((where, c.ids(where)), (where, found))
                equal(c.ids(where, sort={"_id": -1}, skip=2, limit=3), found[::-1][2:5])
                equal(c.count(where), len(found))
            elif what == 3 and len(model) > 30:
                one = rng.random() < 0.5
                found = found[:1] if one else found[:5]
                where = where if one else {"_id": {"$in": found}}
                equal((where, c.delete(where, 1 if one else 0)), (where, len(found)))
                for number in found:
                    del model[number]
            elif what == 4:
                number = 100 + step
                model[number] = random_document(rng, number)
                c.insert(model[number])
            else:
                many = rng.random() < 0.5
                update = random_update(rng)
                found = found if many else found[:1]
                before = {number: repr(sorted(model[number].items())) for number in found}
                for number in found:
                    change(model[number], update)
                changed = sum(before[n] != repr(sorted(model[n].items())) for n in found)
                equal((where, update, c.update(where, update, multi=many)),
                      (where, update, (len(found), changed)))
        equal({document["_id"]: document for document in c.find()}, model)


# ---- Filters ----

@test
def identifiers_are_found_by_points_and_ranges(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        ids = [None, -5, 0, 1.5, 3, Int64(2**40), "", "a", "b" * 1500, {"a": 1}, b"x", True, False]
        c.insert(*({"_id": one} for one in ids))
        equal(c.ids({"_id": {"$gt": 0}}), [1.5, 3, 2**40])
        equal(c.ids({"_id": {"$lte": 1.5}}), [-5, 0, 1.5])
        equal(c.ids({"_id": {"$gte": "", "$lt": "b"}}), ["", "a"])
        equal(c.ids({"_id": {"$gte": "a"}}), ["a", "b" * 1500])
        equal(c.ids({"_id": {"$gt": "b" * 1400}}), ["b" * 1500])
        equal(c.ids({"_id": {"$gt": 5, "$lt": "a"}}), [])
        equal(c.ids({"_id": {"$in": ["a", 3.0, 3, 77, None, "z" * 20000]}}), [None, 3, "a"])
        equal(c.ids({"_id": {"$in": ["a", 3, None]}}, sort={"_id": -1}), ["a", 3, None])
        equal(c.ids({"_id": {"$in": []}}), [])
        equal(c.ids({"_id": "z" * 20000}), [])
        equal(c.ids({"_id": {"$type": "bool"}}), [False, True])
        equal(c.ids({"_id": {"$exists": False}}), [])
        equal(c.ids({"_id": {"a": 1}}), [{"a": 1}])
        equal(c.ids({"_id": {"$gt": 0}}, hint="_id_"), [1.5, 3, 2**40])
        equal(c.ids({"_id": {"$gt": 0}}, hint={"$natural": -1}), [2**40, 3, 1.5])
        equal(c.fails("find", filter={}, hint="nosuch"), 2)
        equal(c.fails("find", filter={"$nosuch": 1}), 2)
        equal(c.fails("find", filter={"a": {"$nosuch": 1}}), 2)
        equal(c.fails("find", filter={}, tailable=True), 2)


@test
def a_cursor_goes_on_with_its_filter(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert(*({"_id": n, "a": n % 3} for n in range(300)))
        wanted = [n for n in range(300) if n % 3 == 1]
        for where, given in (({"a": 1}, wanted),
                             ({"a": 1, "_id": {"$in": list(range(250))}}, [n for n in wanted if n < 250])):
            for reverse in (1, -1):
                cursor = c.run("find", filter=where, batchSize=7, skip=3, limit=60, sort={"_id": reverse})["cursor"]
                found = [one["_id"] for one in cursor["firstBatch"]]
                equal(len(found), 7)
                while cursor["id"]:
                    cursor = client({"getMore": Int64(cursor["id"]), "collection": "c", "batchSize": 20},
                                    db="d")["cursor"]
                    found += [one["_id"] for one in cursor["nextBatch"]]
                equal(found, given[::reverse][3:63])
        equal(c.count({"a": 1}, skip=90), 10)
        equal(c.count({"a": 1}, limit=-5), 5)
        equal(c.count({"a": 1}, skip=98, limit=5), 2)


@test
def documents_are_sorted_and_projected(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        rng = random.Random(3)
        model = [{"_id": n, "a": rng.randrange(20), "b": {"c": rng.randrange(5)}, "l": [n, n + 1]} for n in range(300)]
        c.insert(*model)
        by = {"b.c": -1, "a": 1}
        ordered = sorted(model, key=lambda one: (-one["b"]["c"], one["a"]))
        equal(c.find(sort=by), ordered)
        equal(c.find({"a": {"$lt": 10}}, sort=by, skip=5, limit=7), [one for one in ordered if one["a"] < 10][5:12])
        equal(c.find({"a": 77}, sort=by), [])
        # A cursor keeps the rest of what was sorted.
        cursor = c.run("find", filter={}, sort=by, limit=250, batchSize=3, projection={"a": 1})["cursor"]
        found = cursor["firstBatch"]
        while cursor["id"]:
            cursor = client({"getMore": Int64(cursor["id"]), "collection": "c", "batchSize": 80}, db="d")["cursor"]
            found += cursor["nextBatch"]
        equal(found, [{"_id": one["_id"], "a": one["a"]} for one in ordered[:250]])
        equal(c.find({"_id": 7}, projection={"b.c": 0, "l": {"$slice": 1}}),
              [{"_id": 7, "a": model[7]["a"], "b": {}, "l": [7]}])
        equal(c.find({"_id": 7, "l": 8}, projection={"_id": 0, "l.$": 1}), [{"l": [8]}])
        equal(c.find({"_id": 7}, projection={"x": {"$add": ["$_id", "$$more"]}}, let={"more": {"$add": [1, 2]}}),
              [{"_id": 7, "x": 10}])
        equal(c.find({"_id": 7}, showRecordId=True, projection={"_id": 1}), [{"_id": 7, "$recordId": 7}])
        equal(c.find({"_id": 7}, returnKey=True), [{"_id": 7}])
        equal(c.find({"_id": 7}, returnKey=True, showRecordId=True), [{"_id": 7}])
        equal(c.find({"a": model[7]["a"]}, returnKey=True, limit=1), [{}])
        equal(c.ids(min={"_id": 5}, max={"_id": 8}, hint={"_id": 1}), [5, 6, 7])
        equal(c.fails("find", min={"_id": 5}), 51173)
        equal(c.fails("find", projection={"a": 1, "b": 0}), 31254)
        equal(c.fails("find", sort={"a": "x"}), 15974)
        c.insert({"_id": "b"}, {"_id": "A"}, {"_id": "B"}, {"_id": "a"})
        plain, strength = {"locale": "simple"}, {"locale": "en", "strength": 2}
        texts = {"_id": {"$type": "string"}}
        equal(c.ids(texts, sort={"_id": 1}, collation=plain), ["A", "B", "a", "b"])
        equal(c.ids(texts, sort={"_id": 1}, collation=strength), ["A", "a", "B", "b"])
        equal(c.ids({"_id": "a"}, collation=strength), ["A", "a"])
        equal(c.count({"_id": "a"}, collation=strength), 2)
        equal(c.update({"_id": "a"}, {"$set": {"x": 1}}, multi=True, collation=strength), (2, 2))


@test
def a_limit_is_met_behind_documents_that_do_not_match(cwd):
    """Few documents are read at first, and more and more where the filter leaves most of them out."""
    with Mongo(cwd) as server, server.client() as client:
        for scheme in ("packed", "exploded"):
            c = Collection(client, scheme)
            c.run("create", storageEngine={"frond": {"scheme": scheme}})
            c.insert(*({"_id": i, "b": -i, "rare": i % 151 == 150, "e": i % 2} for i in range(3000)))
            c.run("createIndexes", indexes=[{"key": {"b": 1}, "name": "b"}])
            for where, wanted in (({}, range(3000)),
                                  ({"rare": True}, range(150, 3000, 151)),
                                  ({"e": 1}, range(1, 3000, 2))):
                up, down = list(wanted), list(reversed(wanted))
                for limit in (1, 10, 130):
                    equal(c.ids(where, limit=limit), up[:limit])
                    equal(c.ids(where, limit=limit, skip=5), up[5:limit + 5])
                    equal(c.ids(where, limit=limit, sort={"_id": -1}), down[:limit])
                    equal(c.ids(where, limit=limit, sort={"b": 1}), down[:limit])
                    equal(c.ids(where, limit=limit, sort={"b": -1}), up[:limit])
                    equal(c.ids(where, limit=limit, sort={"e": 1, "b": -1}),
                          sorted(up, key=lambda i: i % 2)[:limit])


@test
def a_sort_has_a_limit_of_memory(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        for n in range(80):
            c.insert({"_id": n, "a": -n, "b": "x" * 1000000})
        equal(c.fails("find", filter={}, sort={"a": 1}), 292)
        equal(c.ids(sort={"a": 1}, limit=3), [79, 78, 77])


# ---- Updates ----

@test
def updates_have_operators_positions_and_filters_of_arrays(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert({"_id": 1, "l": [{"k": 1, "v": 1}, {"k": 2, "v": 2}, {"k": 2, "v": 3}], "n": 1})
        equal(c.update({"l.k": 2}, {"$inc": {"l.$.v": 10}}), (1, 1))
        equal(c.update({}, {"$set": {"l.$[x].v": 0}}, arrayFilters=[{"x.k": 1}]), (1, 1))
        equal(c.update({"_id": 1}, {"$inc": {"l.$[].k": 1}}), (1, 1))
        equal(c.find(), [{"_id": 1, "l": [{"k": 2, "v": 0}, {"k": 3, "v": 12}, {"k": 3, "v": 3}], "n": 1}])
        equal(c.update({"_id": 1}, {"$set": {"n": 1}}), (1, 0))
        equal(c.update({"_id": 1}, {"$set": {"_id": 2}}), 66)
        equal(c.update({"_id": 1}, {"$inc": {"l": 1}}), 14)
        equal(c.update({"_id": 1}, {"$nosuch": {"l": 1}}), 9)
        equal(c.update({}, {"a": 1}, multi=True), 9)
        equal(c.fails("update", updates=[{"q": {"_id": 1}, "u": {"$set": {"a": 1}}, "nosuch": 1}]), 40415)
        equal(c.update({"n": 1}, {"x": 5}), (1, 1))
        equal(c.find(), [{"_id": 1, "x": 5}])


@test
def an_upsert_adds_what_its_filter_says(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        answer = c.run("update", updates=[
            {"q": {"a": 1, "b": {"$gt": 5}}, "u": {"$set": {"c": 2}, "$setOnInsert": {"d": 3}}, "upsert": True},
            {"q": {"a": 1}, "u": {"$inc": {"c": 1}, "$setOnInsert": {"d": 4}}, "upsert": True},
            {"q": {"_id": 5}, "u": {"$inc": {"n": 1}}, "upsert": True, "multi": True},
            {"q": {"_id": 5, "n": 7}, "u": {"$inc": {"n": 1}}, "upsert": True}])
        equal((answer["n"], answer["nModified"], [one["index"] for one in answer["upserted"]]), (3, 1, [0, 2]))
        equal([(e["index"], e["code"], e["keyValue"]) for e in answer["writeErrors"]], [(3, 11000, {"_id": 5})])
        made = c.find({"a": 1})[0]
        equal({name: made[name] for name in "acd"}, {"a": 1, "c": 3, "d": 3})
        equal(list(made), ["_id", "a", "c", "d"])
        equal(c.find({"_id": 5}), [{"_id": 5, "n": 1}])
        equal(c.update({"_id": 8}, {"$set": {"_id": 9}}, upsert=True), 66)


@test
def updates_may_be_pipelines_with_variables(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert({"_id": 1, "a": 2}, {"_id": 2, "a": 5})
        equal(c.update({}, [{"$set": {"b": {"$add": ["$a", "$$more"]}}}, {"$unset": "a"}], multi=True, c={"more": 3}),
              (2, 2))
        equal(c.find(), [{"_id": 1, "b": 5}, {"_id": 2, "b": 8}])
        answer = c.run("update", let={"least": 6},
                       updates=[{"q": {"$expr": {"$gt": ["$b", "$$least"]}}, "u": {"$inc": {"b": 1}}, "multi": True}])
        equal((answer["n"], answer["nModified"]), (1, 1))
        equal(c.ids({"$expr": {"$eq": ["$b", "$$nine"]}}, let={"nine": 9}), [2])
        equal(c.update({"_id": 1}, [{"$set": {"_id": 9}}]), 66)
        equal(c.update({"_id": 7}, [{"$set": {"x": 1}}], upsert=True), (1, 0))
        equal(c.find({"_id": 7}), [{"_id": 7, "x": 1}])
        equal(c.update({"_id": 1}, {"$set": {"a": 1}}, c={"x": 1}), 9)


@test
def one_document_is_changed_and_answered(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert(*({"_id": n, "a": n % 3, "b": 10 - n} for n in range(6)))

        def modify(**members):
            answer = c.run("findAndModify", **members)
            return answer["lastErrorObject"], answer["value"]

        equal(modify(query={"a": 1}, sort={"b": 1}, update={"$inc": {"b": 5}}, new=True, fields={"b": 1}),
              ({"n": 1, "updatedExisting": True}, {"_id": 4, "b": 11}))
        equal(modify(query={"a": 1}, sort={"_id": -1}, update={"$set": {"c": 1}}),
              ({"n": 1, "updatedExisting": True}, {"_id": 4, "a": 1, "b": 11}))
        equal(modify(query={"a": 2}, sort={"b": 1}, remove=True), ({"n": 1}, {"_id": 5, "a": 2, "b": 5}))
        equal(modify(query={"a": 9}, remove=True), ({"n": 0}, None))
        equal(modify(query={"a": 9}, update={"$set": {"c": 1}}), ({"n": 0, "updatedExisting": False}, None))
        equal(modify(query={"_id": 9}, update={"$set": {"c": 1}}, upsert=True, new=True),
              ({"n": 1, "updatedExisting": False, "upserted": 9}, {"_id": 9, "c": 1}))
        equal(modify(query={"_id": 10}, update={"c": 1}, upsert=True),
              ({"n": 1, "updatedExisting": False, "upserted": 10}, None))
        equal(modify(query={"_id": 10}, update=[{"$set": {"d": {"$add": ["$c", 1]}}}], new=True)[1],
              {"_id": 10, "c": 1, "d": 2})
        equal(c.ids(), [0, 1, 2, 3, 4, 9, 10])
        for members in ({}, {"remove": True, "update": {}}, {"remove": True, "new": True},
                        {"remove": True, "upsert": True}):
            equal(c.fails("findAndModify", query={}, **members), 9)
        # Sent again with its number, it is answered as before.
        session = {"id": b"0123456789abcdef"}
        again = [c.run("findAndModify", query={"_id": 1}, update={"$inc": {"b": 1}}, new=True, lsid=session,
                       txnNumber=Int64(1))["value"] for _ in range(2)]
        equal(again, [{"_id": 1, "a": 1, "b": 10}] * 2)


@test
def values_are_told_once_each(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert({"_id": 1, "a": 1, "l": [{"x": 1}, {"x": [2, 3]}]}, {"_id": 2, "a": 1.0, "l": [{"x": 3}, 5]},
                 {"_id": 3, "a": "s", "l": {"x": None}}, {"_id": 4, "a": [1, [7]]}, {"_id": 5})
        equal(c.run("distinct", key="a")["values"], [1, "s", [7]])
        equal(c.run("distinct", key="l.x")["values"], [1, 2, 3, None])
        equal(c.run("distinct", key="l.0.x")["values"], [1, 3])
        equal(c.run("distinct", key="_id", query={"a": 1})["values"], [1, 2, 4])
        equal(c.run("distinct", key="a", query={"a": 9})["values"], [])
        equal(client({"distinct": "nosuch", "key": "a"}, db="d")["values"], [])
        equal(c.fails("distinct", key=1), 14)


@test
def many_documents_are_changed_once_each(cwd):
    with Mongo(cwd) as server, server.client() as client, server.client() as other:
        c = Collection(client)
        pad = "x" * 8000
        c.insert(*({"_id": n, "n": 0, "pad": pad} for n in range(1200)))  # more than one transaction holds

        def disturb():  # a transaction may be tried more often than that
            for _ in range(50):
                Collection(other).update({"_id": 600}, {"$inc": {"m": 1}})

        thread = threading.Thread(target=disturb)
        thread.start()
        equal(c.update({}, {"$inc": {"n": 1}}, multi=True), (1200, 1200))
        equal(c.update({"_id": {"$gte": 200}}, {"$inc": {"n": 1}}, multi=True), (1000, 1000))
        thread.join()
        equal(c.count({"m": 50}), 1)
        equal(c.count({"n": 1, "_id": {"$lt": 200}}), 200)
        equal(c.count({"n": 2}), 1000)
        equal(c.delete({"n": 2}), 1000)
        equal(c.count(), 200)


@test
def many_values_are_asked_for_in_any_order_and_with_any_of_the_ways(cwd):
    """A list of `_id`s, of values that an index has, and of values that none has; some twice, too long for
    an `_id`, or of another type."""
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert(*({"_id": n, "a": n, "b": n} for n in range(0, 3000, 3)))
        c.run("createIndexes", indexes=[{"key": {"a": 1}, "name": "a"}])
        rnd = random.Random(7)
        some = [rnd.randrange(3000) for _ in range(2500)]
        listed = some + some[:100] + [float(n) for n in some[:50]] + [None, "x" * 3000, {"n": 1}]
        rnd.shuffle(listed)
        wanted = sorted({n for n in some if n % 3 == 0})
        for name in ("_id", "a", "b"):
            equal(sorted(c.ids({name: {"$in": listed}})), wanted)
            equal(sorted(c.ids({name: {"$in": listed[:30]}})),
                  sorted({n for n in listed[:30] if isinstance(n, (int, float)) and n % 3 == 0}))
            equal(c.count({name: {"$nin": listed}}), 1000 - len(wanted))
            equal(c.ids({name: {"$in": []}}), [])
        equal(c.ids({"_id": {"$in": listed}}, sort={"_id": -1}), wanted[::-1])
        equal(c.ids({"$or": [{"_id": {"$in": listed}}, {"a": {"$in": [3, 6]}}]}), sorted({3, 6, *wanted}))
        # Batches go on behind the values that were asked for already.
        answer = c.run("find", filter={"_id": {"$in": listed}}, batchSize=7)
        found = []
        while True:
            found += answer["cursor"].get("firstBatch", answer["cursor"].get("nextBatch"))
            if not answer["cursor"]["id"]:
                break
            answer = client({"getMore": Int64(answer["cursor"]["id"]), "collection": "c", "batchSize": 100}, db="d")
        equal([document["_id"] for document in found], wanted)


@test
def a_list_of_very_many_values_ends_with_its_time(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert({"_id": 1, "a": 1})
        values = list(range(200000))
        random.Random(3).shuffle(values)
        equal(c.fails("find", filter={"_id": {"$in": values}}, maxTimeMS=1), 50)
        equal(c.ids({"_id": {"$in": values}}), [1])


@test
def a_list_of_very_many_values_ends_when_its_operation_is_killed(cwd):
    with Mongo(cwd) as server, server.client() as client, server.client() as other:
        c = Collection(client)
        c.insert({"_id": 1, "a": 1})
        values = list(range(400000))
        random.Random(3).shuffle(values)
        codes = []
        # One that has come to its end before it is killed is tried again.
        while 11601 not in codes:
            assert len(codes) < 10, codes
            client.send({"find": "c", "filter": {"_id": {"$in": values}}, "$db": "d"})
            ops = []
            while not ops and not select.select([client.socket], [], [], 0)[0]:
                ops = [op["opid"] for op in other({"currentOp": 1, "$all": True})["inprog"]
                       if op.get("ns") == "d.c" or "find" in op.get("command", {})]
            if ops:
                other({"killOp": 1, "op": ops[0]})
            answer = client.read()[2]
            codes.append(answer.get("code", 0))
            contains([0, 11601], codes[-1])
        equal(c.ids({"_id": {"$in": values[:1000] + [1]}}), [1])


@test
def what_cursors_keep_is_drawn_from_the_memory_of_all(cwd):
    memory, kept = 16777216, 500000
    ini = f"[frond]\nmemory_bytes = {memory}\n"
    with Mongo(cwd, "--no-sync", ini=ini) as server, server.client() as client:
        def held():
            return server.metrics()["frond_memory_requests_bytes"]

        def open_one():
            return client({"find": "c", "filter": {"x": {"$ne": "y" * kept}}, "batchSize": 1}, db="d")["cursor"]["id"]

        def kill(ids):
            return client({"killCursors": "c", "cursors": [Int64(id) for id in ids]}, db="d")["cursorsKilled"]

        c = Collection(client)
        c.insert(*({"_id": n} for n in range(3)))
        # Those for which nobody has asked for longest make room for new ones, which wait for that.
        before, ids = held(), []
        while len(ids) <= memory // kept:
            ids.append(open_one())
            assert held() <= memory + memory // 4, (before, held(), len(ids))
        assert before + 5 * kept <= held(), (before, held())
        equal(client.fails({"getMore": Int64(ids[0]), "collection": "c"}, db="d")["code"], 43)
        # What short requests need is left, and the cursors go on.
        equal(server.request("PUT", "/couch")[0], 201)
        for n in range(100):
            equal(server.request("PUT", f"/couch/short{n}", {"text": "x" * 1000})[0], 201)
            c.insert({"_id": f"short{n}", "text": "x" * 1000})
        answer = client({"getMore": Int64(ids[-1]), "collection": "c", "batchSize": 1}, db="d")
        equal([document["_id"] for document in answer["cursor"]["nextBatch"]], [1])
        alive = kill(ids)
        assert 5 <= len(alive) <= memory // kept, len(alive)
        assert held() < before + 3 * kept, (before, held())
        # Documents that were sorted are kept, too.
        c.insert(*({"_id": f"long{n}", "n": n, "text": "z" * kept} for n in range(8)))
        ids = []
        while len(ids) <= 4:
            ids.append(c.run("find", filter={"n": {"$gte": 0}}, sort={"text": 1}, batchSize=1)["cursor"]["id"])
            assert held() <= memory + memory // 4, (held(), len(ids))
        assert 1 <= len(kill(ids)) <= 4
        equal(server.stop(), 0)


@test
def a_kill_amid_an_update_of_many_changes_none_twice(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert(*({"_id": n, "n": 0, "pad": "x" * 8000} for n in range(2000)))
        client.send({"update": "c", "updates": [{"q": {}, "u": {"$inc": {"n": 1}}, "multi": True}], "$db": "d"})
        with server.client() as other:
            while not Collection(other).count({"_id": 0, "n": 1}):
                pass
        server.stop(signal.SIGKILL)
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        done = c.count({"n": 1})
        equal(done + c.count({"n": 0}), 2000)
        equal(c.ids({"n": 1}), list(range(done)))
    contains(run("verify", cwd=cwd).stdout, "0 findings")


@test
def very_many_elements_are_added_to_an_array_at_once(cwd):
    """What change streams are told of each element that is new takes a look at the next one, no walk to
    it. The client waits for an answer for as long as any client of these tests."""
    most = 200000
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        for operator in ("$push", "$addToSet"):
            c.insert({"_id": operator, "a": [-1]})
            equal(c.update({"_id": operator}, {operator: {"a": {"$each": list(range(most))}}}), (1, 1))
            equal(c.count({"_id": operator, "a": {"$size": most + 1}, f"a.{most}": most - 1}), 1)


@test
def very_many_fields_are_removed_at_once(cwd):
    """What is too long for an event is not looked for field by field."""
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert({"_id": 1, **{f"f{i}": 1 for i in range(200000)}})
        equal(c.update({"_id": 1}, {"$unset": {f"f{i}": "" for i in range(0, 200000, 4)}}), (1, 1))
        equal(len(c.find({"_id": 1})[0]), 150001)


@test
def large_documents_are_updated(cwd):
    with Mongo(cwd) as server, server.client() as client:
        c = Collection(client)
        c.insert({"_id": 1, "a": "x"}, {"_id": 2, "a": "y"}, {"_id": 3})
        equal(c.update({"_id": {"$lt": 3}}, {"$set": {"b": "z" * 5000000}}, multi=True), (2, 2))
        equal(c.update({"_id": 1}, {"$set": {"a": "w"}}), (1, 1))
        equal([len(one.get("b", "")) for one in c.find()], [5000000, 5000000, 0])
        equal(c.update({"_id": 1}, {"$set": {"c": "z" * 12000000}}), 10334)
        equal(c.update({"_id": 1}, {"$unset": {"b": ""}}), (1, 1))
        equal(c.find({"_id": 1}), [{"_id": 1, "a": "w"}])
        equal(c.delete({"_id": 2}), 1)
    contains(run("verify", cwd=cwd).stdout, "0 findings")


@test
def many_fields_take_steps_of_the_fields_and_of_the_document(cwd):
    """One times the other would be more than a request may take, by ten times."""
    (cwd / "frond.ini").write_text("[frond]\nrequest_steps = 5000000\n")
    with Mongo(cwd, "--config", "frond.ini") as server, server.client() as client:
        c = Collection(client)
        c.insert({"_id": 1, "o": {f"f{i}": i for i in range(50000)}})
        equal(c.ids({f"o.f{i}": i for i in range(5000)}), [1])
        equal(c.ids({f"o.f{i}": i + (i == 4999) for i in range(5000)}), [])
        for change in ({f"o.f{i}": -i for i in range(0, 50000, 50)}, {f"o.g{i}": i for i in range(1000)},
                       {f"o.{i}": i for i in range(1000)}):
            equal(c.update({"_id": 1}, {"$set": change}), (1, 1))
        added = {"$mergeObjects": ["$o", {f"h{i}": i for i in range(900)}]}
        equal(c.update({"_id": 1}, [{"$set": {"o": added}}]), (1, 1))
        found = c.find()[0]["o"]
        equal((len(found), found["f50"], found["f51"], found["g999"], found["999"], found["h899"]),
              (52900, -50, 51, 999, 999, 899))


main()
