"""Validators of MongoDB's door: documents that a collection does not take."""


from harness import contains, equal, main, run, test
from mongo import Client
from mongo_server import MongoServer

SCHEMA = {"$jsonSchema": {"required": ["n"], "properties": {"n": {"bsonType": "int", "minimum": 0}}}}


class Mongo(MongoServer):
    def __init__(self, cwd, **kwargs):
        super().__init__(cwd, ini="[chttpd_auth]\niterations = 10\n", **kwargs)


def shop(c):
    return lambda command, **members: c({command: "c", **members}, "shop")


def refused(answer, *at):
    """The statements at these positions have failed for the validator, with the `_id`s given."""
    errors = answer.get("writeErrors", [])
    equal([(e["index"], e["code"], e["errmsg"], e["errInfo"]["failingDocumentId"]) for e in errors],
          [(index, 121, "Document failed validation", id) for index, id in at])
    assert all("operatorName" in e["errInfo"]["details"] for e in errors)


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
            equal(failed["errInfo"]["failingDocumentId"], 9 if "query" in change else 4)
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
        equal(code("collMod", index={"name": "a_1", "hidden": True}), 27)


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


def details(c, validator, document):
    """Why a document is refused."""
    c({"collMod": "c", "validator": validator}, "shop")
    failed = c({"insert": "c", "documents": [{"_id": 1, **document}]}, "shop")["writeErrors"][0]
    equal(failed["errInfo"]["failingDocumentId"], 1)
    return failed["errInfo"]["details"]


def rules(c, schema, document):
    told = details(c, {"$jsonSchema": schema}, document)
    equal(told["operatorName"], "$jsonSchema")
    return told["schemaRulesNotSatisfied"]


def of_n(c, schema, value):
    """What is wrong with the property n."""
    told, = rules(c, {"properties": {"n": schema}}, {"n": value})
    equal((told["operatorName"], told["propertiesNotSatisfied"][0]["propertyName"]), ("properties", "n"))
    return told["propertiesNotSatisfied"][0]["details"]


@test
def the_rules_that_a_document_breaks_are_told(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        shop(c)("create")
        equal(details(c, {"$jsonSchema": {"title": "T", "required": ["a", "b"]}}, {"b": 1}),
              {"operatorName": "$jsonSchema", "title": "T", "schemaRulesNotSatisfied": [
                  {"operatorName": "required", "specifiedAs": {"required": ["a", "b"]},
                   "missingProperties": ["a"]}]})
        for schema, value, told in [
                ({"bsonType": "int"}, "x", {"reason": "type did not match", "consideredValue": "x",
                                            "consideredType": "string"}),
                ({"minimum": 5}, 1, {"reason": "comparison failed", "consideredValue": 1}),
                ({"enum": [1, 2]}, 3, {"reason": "value was not found in enum", "consideredValue": 3}),
                ({"maxLength": 1}, "xy", {"reason": "specified string length was not satisfied",
                                          "consideredValue": "xy"}),
                ({"pattern": "^a"}, "b", {"reason": "regular expression did not match",
                                          "consideredValue": "b"}),
                ({"minItems": 1}, [], {"reason": "array did not match specified length", "consideredValue": []}),
                ({"uniqueItems": True}, [1, 2, 1], {"reason": "found a duplicate item",
                                                    "consideredValue": [1, 2, 1], "duplicatedValue": 1}),
                ({"minProperties": 1}, {}, {"reason": "specified number of properties was not satisfied",
                                            "numberOfProperties": 0})]:
            equal(of_n(c, schema, value), [{"operatorName": list(schema)[0], "specifiedAs": schema, **told}])
        equal(of_n(c, {"maximum": 5, "exclusiveMaximum": True}, 5)[0]["specifiedAs"],
              {"maximum": 5, "exclusiveMaximum": True})
        text = {"operatorName": "bsonType", "specifiedAs": {"bsonType": "string"},
                "reason": "type did not match", "consideredValue": 2, "consideredType": "int"}
        string = {"bsonType": "string"}
        equal(of_n(c, {"items": string}, ["a", 2]),
              [{"operatorName": "items", "reason": "At least one item did not match the sub-schema",
                "itemIndex": 1, "details": [text]}])
        equal(of_n(c, {"items": [string], "additionalItems": False}, ["a", 2]),
              [{"operatorName": "additionalItems", "specifiedAs": {"additionalItems": False},
                "reason": "found additional items", "additionalItems": [2]}])
        equal(rules(c, {"properties": {"_id": {}}, "patternProperties": {"^n": string},
                        "additionalProperties": False}, {"n": 2, "m": 1}),
              [{"operatorName": "patternProperties",
                "details": [{"propertyName": "n", "regexMatched": "^n", "details": [text]}]},
               {"operatorName": "additionalProperties", "specifiedAs": {"additionalProperties": False},
                "additionalProperties": ["m"]}])
        equal(rules(c, {"properties": {"_id": {}}, "additionalProperties": string}, {"m": 2}),
              [{"operatorName": "additionalProperties", "failingProperty": "m", "details": [text],
                "reason": "at least one additional property did not match the subschema"}])
        equal(rules(c, {"dependencies": {"n": ["m"], "x": ["y"]}}, {"n": 2}),
              [{"operatorName": "dependencies",
                "failingDependencies": [{"conditionalProperty": "n", "missingProperties": ["m"]}]}])
        equal(of_n(c, {"anyOf": [string, string]}, 2),
              [{"operatorName": "anyOf", "schemasNotSatisfied": [{"index": i, "details": [text]} for i in (0, 1)]}])
        equal(of_n(c, {"oneOf": [{}, string, {}]}, 2),
              [{"operatorName": "oneOf", "reason": "more than one subschema matched",
                "matchingSchemaIndexes": [0, 2]}])
        equal(of_n(c, {"not": {}}, 2), [{"operatorName": "not", "reason": "child expression matched"}])


@test
def the_conditions_that_a_document_fails_are_told(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        shop(c)("create")

        def leaf(name, filter, **more):
            return {"operatorName": name, "specifiedAs": filter, **more}
        for name, value, document, told in [
                ("$gt", {"$gt": 5}, {"n": 1}, {"reason": "comparison failed", "consideredValue": 1}),
                ("$eq", 5, {"n": 1}, {"reason": "comparison failed", "consideredValue": 1}),
                ("$gt", {"$gt": 5}, {}, {"reason": "field was missing"}),
                ("$in", {"$in": [1]}, {"n": [2, 3]}, {"reason": "no matching value found in array",
                                                      "consideredValues": [2, 3, [2, 3]]}),
                ("$type", {"$type": "int"}, {"n": "x"}, {"reason": "type did not match", "consideredValue": "x",
                                                         "consideredType": "string"}),
                ("$exists", {"$exists": True}, {}, {"reason": "path does not exist"}),
                ("$exists", {"$exists": False}, {"n": 1}, {"reason": "path does exist"}),
                ("$regex", {"$regex": "^A", "$options": "i"}, {"n": "b"},
                 {"reason": "regular expression did not match", "consideredValue": "b"})]:
            equal(details(c, {"n": value}, document), leaf(name, {"n": value}, **told))
        failed = leaf("$eq", {"n": 1}, reason="comparison failed", consideredValue=2)
        good = leaf("$eq", {"n": 2}, reason="comparison succeeded", consideredValue=2)
        equal(details(c, {"m": 1, "n": 1}, {"m": 1, "n": 2}),
              {"operatorName": "$and", "clausesNotSatisfied": [{"index": 1, "details": failed}]})
        equal(details(c, {"$or": [{"n": 1}, {"n": 1}]}, {"n": 2}),
              {"operatorName": "$or", "clausesNotSatisfied": [{"index": i, "details": failed} for i in (0, 1)]})
        equal(details(c, {"$nor": [{"n": 1}, {"n": 2}]}, {"n": 2}),
              {"operatorName": "$nor", "clausesSatisfied": [{"index": 1, "details": good}]})
        equal(details(c, {"n": {"$not": {"$eq": 2}}}, {"n": 2}),
              {"operatorName": "$not", "details": {**good, "specifiedAs": {"n": {"$eq": 2}}}})
        equal(details(c, {"$expr": {"$gt": ["$n", 3]}}, {"n": 2}),
              leaf("$expr", {"$expr": {"$gt": ["$n", 3]}}, reason="expression did not match",
                   expressionResult=False))
        # Long ones are left out.
        c({"collMod": "c", "validator": {"n": 1}}, "shop")
        failed = c({"insert": "c", "documents": [{"_id": 1, "n": "x" * 100000}]}, "shop")["writeErrors"][0]
        equal(failed["errInfo"], {"failingDocumentId": 1})
        answer = c({"insert": "c", "documents": [{"_id": i, "n": "x" * 50000} for i in range(100)], "ordered": False},
                   "shop")
        equal((len(answer["writeErrors"]), "errInfo" in answer["writeErrors"][0],
               "errInfo" in answer["writeErrors"][99]), (100, True, False))


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


@test
def a_name_forges_no_part_of_the_line_about_a_document(cwd):
    with Mongo(cwd) as server, server.client() as c:
        name = 'c" user="root" x="'
        c({"create": name, "validator": SCHEMA, "validationAction": "warn"}, "shop")
        c({"insert": name, "documents": [{"_id": 1}]}, "shop")
        log = server.read_log()
        contains(log, 'event=mongo_validation collection="shop.c')
        assert ' user="root"' not in log, log


main()
