"""bulkWrite of MongoDB's door: statements of all kinds, on several collections."""

import random

from harness import contains, equal, main, ok, run, test
from mongo import Int64, sequence
from mongo_server import MongoServer

ID = bytes(range(16))


class Mongo(MongoServer):
    def __init__(self, cwd, *options, **kwargs):
        super().__init__(cwd, *options, ini="[chttpd_auth]\niterations = 10\n[mongo]\nreplica_set = frond\n", **kwargs)


def bulk(*ops, names=("d.c", "e.c"), **more):
    return {"bulkWrite": 1, "ops": list(ops), "nsInfo": [{"ns": n} for n in names], **more}


def insert(at, **document):
    return {"insert": at, "document": document}


def update(at, filter, mods, **more):
    return {"update": at, "filter": filter, "updateMods": mods, **more}


def delete(at, filter, **more):
    return {"delete": at, "filter": filter, **more}


def counts(answer):
    """Errors, and documents that were inserted, matched, modified, upserted, deleted."""
    return tuple(answer["n" + n] for n in ("Errors", "Inserted", "Matched", "Modified", "Upserted",
                                           "Deleted"))


def items(answer):
    return answer["cursor"]["firstBatch"]


def documents(c, db="d", collection="c"):
    return c({"find": collection}, db)["cursor"]["firstBatch"]


@test
def statements_of_all_kinds_are_done_on_several_collections(cwd):
    with Mongo(cwd) as server, server.client() as c:
        answer = c(bulk(insert(0, _id=1, n=1), insert(1, _id=1), insert(0, _id=2, n=2),
                        update(0, {"n": {"$gt": 0}}, {"$inc": {"n": 1}}, multi=True),
                        update(0, {"_id": 1}, {"$set": {"n": 2}}),
                        update(1, {"_id": 9}, {"x": 1}, upsert=True),
                        update(0, {"_id": 2}, [{"$set": {"m": "$$v", "k": "$$w"}}],
                               constants={"w": "w"}),
                        update(0, {"_id": 2}, {"$set": {"a.$[e]": 0}}, arrayFilters=[{"e": 1}]),
                        delete(1, {"_id": 1}), delete(1, {"nobody": 1}, multi=True),
                        let={"v": "V"}, comment="x", ordered=False))
        equal(answer["cursor"]["id"], 0)
        equal(answer["cursor"]["ns"], "admin.$cmd.bulkWrite")
        equal([i["idx"] for i in items(answer)], list(range(10)))
        equal(items(answer)[:7],
              [{"ok": 1.0, "idx": 0, "n": 1}, {"ok": 1.0, "idx": 1, "n": 1},
               {"ok": 1.0, "idx": 2, "n": 1}, {"ok": 1.0, "idx": 3, "n": 2, "nModified": 2},
               {"ok": 1.0, "idx": 4, "n": 1, "nModified": 0},
               {"ok": 1.0, "idx": 5, "n": 1, "nModified": 0, "upserted": {"_id": 9}},
               {"ok": 1.0, "idx": 6, "n": 1, "nModified": 1}])
        failed = items(answer)[7]
        equal((failed["ok"], failed["code"], failed["n"], failed["nModified"]), (0.0, 2, 0, 0))
        equal(items(answer)[8:], [{"ok": 1.0, "idx": 8, "n": 1}, {"ok": 1.0, "idx": 9, "n": 0}])
        equal(counts(answer), (1, 3, 4, 3, 1, 1))
        equal(documents(c), [{"_id": 1, "n": 2}, {"_id": 2, "n": 3, "m": "V", "k": "w"}])
        equal(documents(c, "e"), [{"_id": 9, "x": 1}])
        # Drivers send statements and names as sequences.
        answer = c({"bulkWrite": 1}, "admin",
                   sequence("ops", insert(0, _id=5)) + sequence("nsInfo", {"ns": "d.f"}))
        equal((counts(answer), documents(c, "d", "f")), ((0, 1, 0, 0, 0, 0), [{"_id": 5}]))
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def the_first_failure_ends_what_is_ordered(cwd):
    with Mongo(cwd) as server, server.client() as c:
        ops = [insert(0, _id=1), insert(0, _id=1, x=1), insert(1, _id=2)]
        answer = c(bulk(*ops))
        first, second = items(answer)
        equal((first, second["ok"], second["idx"], second["code"], second["n"], second["keyValue"]),
              ({"ok": 1.0, "idx": 0, "n": 1}, 0.0, 1, 11000, 0, {"_id": 1}))
        equal((counts(answer), documents(c, "e")), ((1, 1, 0, 0, 0, 0), []))
        answer = c(bulk(*ops, ordered=False, errorsOnly=True))
        equal([(i["idx"], i["code"]) for i in items(answer)], [(0, 11000), (1, 11000)])
        equal((counts(answer), documents(c, "e")), ((2, 1, 0, 0, 0, 0), [{"_id": 2}]))
        c({"create": "strict", "validator": {"n": {"$type": "int"}}}, "d")
        answer = c(bulk(insert(0, _id=1), names=["d.strict"]))
        equal((items(answer)[0]["code"], items(answer)[0]["errInfo"]["failingDocumentId"]), (121, 1))
        answer = c(bulk(insert(0, _id=1), names=["d.strict"], bypassDocumentValidation=True))
        equal(counts(answer)[:2], (0, 1))


@test
def what_makes_no_sense_fails_the_command(cwd):
    with Mongo(cwd) as server, server.client() as c:
        good = insert(0, _id=1)
        for code, command, db in [
                (13, bulk(good), "d"), (16, bulk(), "admin"), (16, bulk(good, names=()), "admin"),
                (40414, {"bulkWrite": 1, "ops": [good]}, "admin"),
                (2, bulk(good, insert(2, _id=1)), "admin"), (2, bulk(good, insert(-1, _id=1)), "admin"),
                (14, bulk(good, {"insert": "0", "document": {}}), "admin"),
                (40414, bulk(good, {"insert": 0}), "admin"),
                (40414, bulk(good, {"update": 0, "filter": {}}), "admin"),
                (40414, bulk(good, {"delete": 0}), "admin"),
                (40415, bulk(good, delete(0, {}, sort={})), "admin"),
                (40415, bulk(good, {**insert(0, _id=2), "filter": {}}), "admin"),
                (40415, bulk(good, what=1), "admin"),
                (9, bulk(good, {"what": 0}), "admin"), (9, bulk(good, update(0, {}, 1)), "admin"),
                (14, bulk(good, update(0, 1, {})), "admin"),
                # Null is as if it were not there, but of hints and updates.
                (40414, bulk(good, {"insert": None, "document": {}}), "admin"),
                (40414, bulk(good, {"insert": 0, "document": None}), "admin"),
                (40414, bulk(good, update(0, None, {})), "admin"),
                (9, bulk(good, update(0, {}, None)), "admin"),
                (9, bulk(good, update(0, {}, {}, hint=None)), "admin"),
                (9, bulk(good, delete(0, {}, hint=5)), "admin"),
                (40415, bulk(good, delete(0, {}, upsert=None)), "admin"),
                (40414, {**bulk(good), "nsInfo": [{"ns": None}]}, "admin"),
                (40415, {**bulk(good), "nsInfo": [{"ns": "d.c", "x": 1}]}, "admin"),
                (73, bulk(good, names=["d.c", "none"]), "admin"), (73, bulk(good, names=["d.$x"]), "admin"),
                (73, bulk(good, names=["d." + "x" * 300]), "admin"),
                (2, bulk(good, cursor={"batchSize": -1}), "admin")]:
            equal((c.fails(command, db)["code"], command), (code, command))
        equal(documents(c), [])
        c({**bulk(update(0, {"_id": 1}, {"$set": {"a": 1}}, multi=None, upsert=None, collation=None,
                         arrayFilters=None, constants=None), delete(0, {}, multi=None, collation=None)),
           "nsInfo": [{"ns": "d.c", "collectionUUID": None, "encryptionInformation": None}],
           "let": None, "ordered": None, "cursor": None})
        c({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}, "multi": None, "upsert": None,
                                       "collation": None, "arrayFilters": None, "c": None}]}, "d")


@test
def members_of_all_statements_are_looked_at_before_anything_is_done(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 1, "n": 0}]}, "d")
        update = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}
        delete = {"q": {"_id": 1}, "limit": 1}
        for code, statement in ((40414, {"q": {}}), (40414, {"u": {}}), (40414, {}), (40414, {"q": None, "u": {}}),
                                (40415, {**update, "what": 1}), (14, {"q": 1, "u": {}}), (9, {"q": {}, "u": 1}),
                                (9, {"q": {}, "u": None}), (14, {**update, "multi": "x"}), (9, {**update, "hint": 1}),
                                (14, {**update, "arrayFilters": {}})):
            for ordered in (True, False):
                command = {"update": "c", "updates": [update, statement, update], "ordered": ordered}
                equal((c.fails(command, "d")["code"], statement), (code, statement))
        for code, statement in ((40414, {"q": {}}), (40414, {"limit": 1}), (40414, {}), (40414, {"q": None, "limit": 1}),
                                (40415, {**delete, "what": 1}), (14, {"q": 1, "limit": 1}), (9, {"q": {}, "limit": 2}),
                                (9, {**delete, "hint": 1}), (14, {**delete, "collation": 1})):
            for ordered in (True, False):
                command = {"delete": "c", "deletes": [delete, statement], "ordered": ordered}
                equal((c.fails(command, "d")["code"], statement), (code, statement))
        equal(documents(c), [{"_id": 1, "n": 0}])
        # A collection that would have been made is not, either.
        equal(c.fails({"update": "new", "updates": [{**update, "upsert": True}, {"q": {}}]}, "d")["errmsg"],
              "BSON field 'update.updates.u' is missing but a required field")
        equal([i["name"] for i in c({"listCollections": 1}, "d")["cursor"]["firstBatch"]], ["c"])


@test
def answers_of_many_statements_are_read_by_a_cursor(cwd):
    with Mongo(cwd) as server, server.client() as c:
        answer = c(bulk(*(insert(0, _id=i) for i in range(250)), cursor={"batchSize": 100}))
        cursor, seen = answer["cursor"], items(answer)
        equal((len(seen), counts(answer)[1]), (100, 250))
        while cursor["id"]:
            cursor = c({"getMore": Int64(cursor["id"]), "collection": "$cmd.bulkWrite",
                        "batchSize": 100})["cursor"]
            seen += cursor["nextBatch"]
        equal([i["idx"] for i in seen], list(range(250)))
        answer = c(bulk(insert(1, _id=1), cursor={"batchSize": 0}))
        equal(items(answer), [])
        killed = c({"killCursors": "$cmd.bulkWrite", "cursors": [Int64(answer["cursor"]["id"])]})
        equal(len(killed["cursorsKilled"]), 1)


@test
def a_transaction_of_many_collections_and_large_documents(cwd):
    with Mongo(cwd) as server, server.client() as c:
        names = [f"d.c{i}" for i in range(40)]
        large = "x" * 3000000
        ops = [insert(i % 40, _id=i, n=i) for i in range(400)]
        ops[200:200] = [insert(7, _id="large", text=large), insert(41, _id="large", text=large),
                        update(7, {"_id": "large"}, {"$set": {"n": 1}}),
                        insert(41, _id="large", text=large), delete(7, {"_id": "large"})]
        answer = c(bulk(*ops, names=[*names, "e.x", "e.new"], ordered=False))
        equal(counts(answer), (1, 402, 1, 1, 0, 1))
        equal([i["idx"] for i in items(answer)], list(range(405)))
        equal([c({"count": n.split(".")[1]}, "d")["n"] for n in names], [10] * 40)
        equal(len(documents(c, "e", "new")[0]["text"]), 3000000)
        # One that does not fit a transaction is done in several, each document once.
        answer = c(bulk(update(0, {}, {"$set": {"n": 0}}, multi=True), names=["d.c0"]))
        equal(counts(answer), (0, 0, 10, 9, 0, 0))
        c(bulk(*(insert(0, _id=i, n=0) for i in range(25000)), names=["d.many"], errorsOnly=True))
        answer = c(bulk(update(0, {}, {"$inc": {"n": 1}}, multi=True), delete(0, {"n": 1}, multi=True),
                        insert(0, _id=-1), names=["d.many"]))
        equal((counts(answer), [i["n"] for i in items(answer)]),
              ((0, 1, 25000, 25000, 0, 25000), [25000, 25000, 1]))
    contains(run("verify", cwd=cwd).stdout, " 0 findings")


@test
def inserts_among_other_statements_know_which_ids_are_there(cwd):
    with Mongo(cwd) as server, server.client() as c:
        rand = random.Random(5)
        there = {"d.c": {}, "e.c": {}}
        for _ in range(40):
            ops, wanted = [], []
            for i in range(rand.randrange(1, 60)):
                at, id = int(rand.random() < 0.1), rand.randrange(150)
                name = ("d.c", "e.c")[at]
                kind = rand.choice(["insert"] * 8 + ["upsert", "delete"])
                if kind == "insert":
                    more = {"_id": id} if rand.random() < 0.9 else {}
                    ops.append(insert(at, **more, n=i))
                    good = not more or id not in there[name]
                    wanted.append((i, 1 if good else 0))
                    if good and more:
                        there[name][id] = i
                elif kind == "upsert":
                    ops.append(update(at, {"_id": id}, {"$set": {"n": -i}}, upsert=True))
                    wanted.append((i, 1))
                    there[name][id] = -i
                else:
                    ops.append(delete(at, {"_id": id}))
                    wanted.append((i, int(there[name].pop(id, None) is not None)))
            answer = c(bulk(*ops, ordered=False))
            equal([(item["idx"], item["n"]) for item in items(answer)], wanted)
        for name, ids in there.items():
            db, collection = name.split(".")
            found = c({"find": collection, "filter": {"_id": {"$type": "int"}}, "batchSize": 1000}, db)
            found = {d["_id"]: d["n"] for d in found["cursor"]["firstBatch"]}
            equal(found, ids)


@test
def a_bulk_write_that_is_sent_again_is_done_once(cwd):
    with Mongo(cwd) as server, server.client() as c:
        command = bulk(insert(0, _id=1), update(1, {"_id": 2}, {"$inc": {"n": 1}}, upsert=True),
                       delete(1, {"_id": 2}), insert(0, _id=1), update(0, {"_id": 1}, {"$inc": {"n": 1}}),
                       ordered=False, lsid={"id": ID}, txnNumber=Int64(1))
        first = c(command)
        equal((counts(first), "retriedStmtIds" in first), ((1, 1, 1, 1, 1, 1), False))
        again = c(command)
        equal((counts(again), again["retriedStmtIds"]), ((1, 1, 1, 1, 1, 1), [0, 1, 2, 4]))
        equal(items(again)[1], {"ok": 1.0, "idx": 1, "n": 1, "nModified": 0, "upserted": {"_id": 2}})
        equal(documents(c), [{"_id": 1, "n": 1}])
        command = bulk(insert(0, _id=7), insert(0, _id=8), lsid={"id": ID}, txnNumber=Int64(2))
        c({**command, "stmtIds": [5, 6]})
        equal(c({**command, "stmtIds": [6, 7], "ordered": False})["retriedStmtIds"], [6])
        # Statements are found also where they were not done in the order of their numbers.
        insert_some = [insert(0, _id=f"s{i}") for i in range(3)]
        c({**bulk(*insert_some), "lsid": {"id": ID}, "txnNumber": Int64(2), "stmtIds": [4, 9, 2]})
        answer = c({**bulk(*(insert(0, _id=f"s{i}") for i in (1, 2, 0, 3))), "lsid": {"id": ID},
                    "txnNumber": Int64(2), "stmtIds": [9, 2, 4, 3]})
        equal((answer["retriedStmtIds"], counts(answer)), ([9, 2, 4], (0, 4, 0, 0, 0, 0)))
        c({"delete": "c", "deletes": [{"q": {"_id": {"$gte": "s"}}, "limit": 0}]}, "d")
        many = bulk(insert(0, _id=5), delete(0, {}, multi=True), lsid={"id": ID}, txnNumber=Int64(3))
        equal(c.fails(many)["code"], 72)
        equal(len(documents(c)), 3)


@test
def a_command_has_as_many_statements_as_hello_says_and_may_be_sent_again(cwd):
    with Mongo(cwd) as server, server.client(timeout=180) as c:
        n = c({"hello": 1})["maxWriteBatchSize"]
        ops = sequence("ops", *({"insert": 0, "document": {"_id": i}} for i in range(n)))
        names = sequence("nsInfo", {"ns": "d.c"})
        command = {"bulkWrite": 1, "errorsOnly": True, "lsid": {"id": ID}, "txnNumber": Int64(1)}
        answer = c(command, "admin", sections=ops + names)
        equal(counts(answer), (0, n, 0, 0, 0, 0))
        again = c(command, "admin", sections=ops + names)
        equal((counts(again), len(again["retriedStmtIds"])), ((0, n, 0, 0, 0, 0), n))
        equal(c({"count": "c"}, "d")["n"], n)


@test
def a_transaction_of_several_commands_has_bulk_writes(cwd):
    with Mongo(cwd) as server, server.client() as c:
        def within(**more):
            return {"lsid": {"id": ID}, "txnNumber": Int64(1), "autocommit": False, **more}
        c(bulk(insert(0, _id=1), insert(1, _id=1), insert(0, _id=2), **within(startTransaction=True)))
        answer = c(bulk(*(update(i % 2, {"_id": 1}, {"$inc": {"n": 1}}) for i in range(10)),
                        cursor={"batchSize": 1}, **within()))
        equal((counts(answer), documents(c)), ((0, 0, 10, 10, 0, 0), []))
        more = c({"getMore": Int64(answer["cursor"]["id"]), "collection": "$cmd.bulkWrite", **within()})
        equal(len(more["cursor"]["nextBatch"]), 9)
        c({"commitTransaction": 1, **within()})
        equal((documents(c), documents(c, "e")), ([{"_id": 1, "n": 5}, {"_id": 2}], [{"_id": 1, "n": 5}]))
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def the_first_document_of_an_order_is_updated(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": i, "n": i * 7 % 5} for i in range(5)]}, "d")
        answer = c(bulk(update(0, {"n": {"$gt": 0}}, {"$set": {"x": 1}}, sort={"n": 1}),
                        update(0, {}, {"y": 1}, sort={"n": -1}), update(0, {"n": 99}, {"y": 2}, sort={"n": 1}),
                        update(0, {"n": 99}, {"z": 1}, sort={"n": 1}, upsert=True)))
        equal(counts(answer), (0, 0, 2, 2, 1, 0))
        answer = c({"update": "c", "updates": [{"q": {"n": 3}, "u": {"$set": {"x": 2}}, "sort": {"_id": -1}}]},
                   "d")
        equal((answer["n"], answer["nModified"]), (1, 1))
        equal(documents(c)[:5], [{"_id": 0, "n": 0}, {"_id": 1, "n": 2}, {"_id": 2, "y": 1},
                                 {"_id": 3, "n": 1, "x": 1}, {"_id": 4, "n": 3, "x": 2}])
        answer = c({"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 2}}, "sort": {"n": 1},
                                                "multi": True}]}, "d")
        equal(answer["writeErrors"][0]["code"], 9)


@test
def rights_on_every_database_are_asked_for(cwd):
    with Mongo(cwd, env={"FROND_ADMIN": "root:secret"}) as server:
        with server.client().login("root", "secret") as root:
            root({"createUser": "ann", "pwd": "apple", "roles": [{"role": "readWrite", "db": "d"}]})
        with server.client().login("ann", "apple") as c:
            answer = c(bulk(insert(0, _id=1), insert(0, _id=2), names=["d.c"], cursor={"batchSize": 1}))
            cursor = c({"getMore": Int64(answer["cursor"]["id"]), "collection": "$cmd.bulkWrite"})["cursor"]
            equal(len(cursor["nextBatch"]), 1)
            equal(c.fails(bulk(insert(0, _id=3)))["code"], 13)
            equal(c.fails(bulk(insert(0, _id=3), names=["d.c"], bypassDocumentValidation=True))["code"], 13)
            equal(c.fails({"getMore": Int64(1), "collection": "c"}, "e")["code"], 13)
            equal(len(documents(c)), 2)


main()
