"""Validators of MongoDB's door: documents that a collection does not take."""

import re

from harness import Server, contains, equal, main, run, test
from mongo import Client

SCHEMA = {"$jsonSchema": {"required": ["n"], "properties": {"n": {"bsonType": "int", "minimum": 0}}}}


class Mongo(Server):
    def __init__(self, cwd, **kwargs):
        (cwd / "ini").write_text("[chttpd_auth]\niterations = 10\n")
        super().__init__(cwd, "--mongo", "127.0.0.1:0", "--config", "ini", **kwargs)
        self.port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)",
                                  self.read_log()).group(1))


def shop(c):
    return lambda command, **members: c({command: "c", **members}, "shop")


def refused(answer, *at):
    """The statements at these positions have failed for the validator, with the `_id`s given."""
    equal([(e["index"], e["code"], e["errmsg"], e["errInfo"]) for e in answer.get("writeErrors", [])],
          [(index, 121, "Document failed validation", {"failingDocumentId": id}) for index, id in at])


def options(c):
    return c({"listCollections": 1}, "shop")["cursor"]["firstBatch"][0]["options"]


@test
def documents_that_do_not_match_are_refused(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        do = shop(c)
        do("create", validator=SCHEMA)
        equal(options(c), {"validator": SCHEMA, "validationLevel": "strict",
                           "validationAction": "error"})
        docs = [{"_id": 1, "n": 1}, {"_id": 2}, {"_id": 3, "n": -1}, {"_id": 4, "n": 4}]
        refused(do("insert", documents=docs), (1, 2))
        refused(do("insert", documents=docs[1:], ordered=False), (0, 2), (1, 3))
        answer = do("update", ordered=False, updates=[
            {"q": {"_id": 1}, "u": {"$set": {"n": 5}}},
            {"q": {"_id": 1}, "u": {"$inc": {"n": -9}}},
            {"q": {"_id": 1}, "u": {"x": 1}},
            {"q": {"_id": 1}, "u": [{"$unset": "n"}]},
            {"q": {"_id": 7}, "u": {"$set": {"x": 1}}, "upsert": True},
            {"q": {"_id": 8}, "u": {"$set": {"n": 1}}, "upsert": True}])
        refused(answer, (1, 1), (2, 1), (3, 1), (4, 7))
        equal((answer["n"], answer["nModified"]), (2, 1))
        for change in {"update": {"$set": {"n": "x"}}}, {"update": {"y": 1}}, \
                {"query": {"_id": 9}, "update": {"$set": {"y": 1}}, "upsert": True}:
            failed = c.fails({"findAndModify": "c", "query": {"_id": 4}, **change}, "shop")
            equal((failed["code"], failed["codeName"]), (121, "DocumentValidationFailure"))
            equal(failed["errInfo"], {"failingDocumentId": 9 if "query" in change else 4})
        for stage in {"$merge": {"into": "c"}}, {"$out": "c"}:
            pipeline = [{"$documents": [{"_id": 5}]}, stage]
            equal(c.fails({"aggregate": 1, "pipeline": pipeline, "cursor": {}}, "shop")["code"], 121)
        equal(do("find")["cursor"]["firstBatch"],
              [{"_id": 1, "n": 5}, {"_id": 4, "n": 4}, {"_id": 8, "n": 1}])
        large = "x" * 3000000
        refused(do("insert", documents=[{"_id": 10, "x": large}]), (0, 10))
        do("insert", documents=[{"_id": 10, "n": 1, "x": large}])
        refused(do("update", updates=[{"q": {"_id": 10}, "u": {"$unset": {"n": 1}}}]), (0, 10))
        do("insert", documents=[{"_id": 11}], bypassDocumentValidation=True)
        do("update", updates=[{"q": {"_id": 1}, "u": {"x": 1}}], bypassDocumentValidation=True)
        do("findAndModify", query={"_id": 4}, update={"x": 1}, bypassDocumentValidation=True)
        equal(do("count", query={"n": {"$exists": False}})["n"], 3)
    contains(run("verify", cwd=cwd).stdout, "0 findings")


@test
def a_validator_is_changed(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        do = shop(c)
        do("insert", documents=[{"_id": 1, "n": "old", "m": {}}])
        do("collMod", validator={"$expr": {"$gt": ["$n", "$m"]}}, validationLevel="moderate")
        refused(do("update", updates=[{"q": {}, "u": {"$set": {"m": []}}}]))
        refused(do("insert", documents=[{"_id": 2, "n": 1, "m": 2}]), (0, 2))
        refused(do("insert", documents=[{"_id": 2, "n": 3, "m": 2}]))
        refused(do("update", updates=[{"q": {"_id": 2}, "u": {"$set": {"m": 9}}}]), (0, 2))
        do("collMod", validationLevel="strict")
        refused(do("update", updates=[{"q": {"_id": 1}, "u": {"$set": {"m": [1]}}}]), (0, 1))
        do("collMod", validationAction="warn")
        refused(do("insert", documents=[{"_id": 3}]))
        contains(server.read_log(), "event=mongo_validation")
        do("collMod", validationAction="error", validationLevel="off")
        refused(do("insert", documents=[{"_id": 4}]))
        equal(options(c), {"validator": {"$expr": {"$gt": ["$n", "$m"]}}, "validationLevel": "off",
                           "validationAction": "error"})
        do("collMod", validationLevel="strict", validator={})
        refused(do("insert", documents=[{"_id": 5}]))
        equal("validator" in options(c), False)


@test
def what_makes_no_sense_is_refused(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        def code(command, **members):
            return c.fails({command: "c", **members}, "shop")["code"]

        equal(code("collMod", validator={}), 26)
        equal(code("create", validator=1), 14)
        equal(code("create", validator={"a": {"$what": 1}}), 2)
        equal(code("create", validationLevel="some"), 2)
        equal(code("create", validationAction=1), 14)
        equal(code("create", capped=True, size=1), 238)
        equal(code("create", timeseries={"timeField": "t"}), 238)
        equal(c.fails({"create": "c", "validator": {"a": 1}})["code"], 72)
        equal(c({"listCollections": 1}, "shop")["cursor"]["firstBatch"], [])
        c({"create": "c", "validator": {"a": 1}}, "shop")
        equal(code("collMod", index={"name": "a_1", "hidden": True}), 238)


@test
def only_those_with_the_right_go_around_a_validator(cwd):
    with Mongo(cwd, env={"FROND_ADMIN": "root:secret"}) as server:
        with Client(server.port).login("root", "secret") as c:
            c({"createUser": "ann", "pwd": "apple", "roles": ["readWrite"]}, "shop")
            c({"create": "c", "validator": {"a": 1}}, "shop")
        with Client(server.port).login("ann", "apple") as c:
            for command in ({"insert": "c", "documents": [{}]},
                            {"update": "c", "updates": [{"q": {}, "u": {"a": 2}, "upsert": True}]},
                            {"findAndModify": "c", "update": {"a": 2}, "upsert": True},
                            {"aggregate": 1, "cursor": {},
                             "pipeline": [{"$documents": [{}]}, {"$out": "c"}]}):
                equal(c.fails({**command, "bypassDocumentValidation": True}, "shop")["code"], 13)
            equal(c({"count": "c"}, "shop")["n"], 0)


@test
def a_collection_is_checked(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        do = shop(c)
        equal(c.fails({"validate": "c"}, "shop")["code"], 26)
        do("create", validator=SCHEMA, validationLevel="off")
        do("createIndexes", indexes=[{"key": {"n": 1}, "name": "n"}, {"key": {"t": 1}, "name": "t"}])
        do("insert", documents=[{"_id": i, "n": i, "t": [i, i + 1], "x": "x" * (i * 1000)}
                                for i in range(300)])
        answer = do("validate", full=True)
        equal([answer[n] for n in ("ns", "nrecords", "nIndexes", "keysPerIndex", "valid", "warnings", "errors",
                                   "nInvalidDocuments", "nNonCompliantDocuments")],
              ["shop.c", 300, 3, {"_id_": 300, "n": 300, "t": 600}, True, [], [], 0, 0])
        equal(answer["indexDetails"], {n: {"valid": True} for n in ("_id_", "n", "t")})
        do("insert", documents=[{"_id": "a"}, {"_id": "b", "n": -1}])
        do("collMod", validationLevel="strict")
        answer = do("validate")
        equal((answer["valid"], answer["nNonCompliantDocuments"], len(answer["warnings"])), (True, 2, 1))
        equal(c.fails({"validate": "c", "repair": True}, "shop")["code"], 238)
        equal(c.fails({"validate": "c", "what": True}, "shop")["code"], 40415)
        c({"create": "v", "viewOn": "c", "pipeline": []}, "shop")
        equal(c.fails({"validate": "v"}, "shop")["code"], 166)


main()
