"""MongoDB's door: the fail point by which tests of drivers have commands fail, and the stable API."""

import time

from harness import equal, main, test
from mongo import Client, Int64, sequence
from mongo_server import MongoServer as Mongo


def fail(c, mode="alwaysOn", **data):
    return c({"configureFailPoint": "failCommand", "mode": mode, "data": data})


@test
def commands_fail_with_a_code_and_labels_as_often_as_is_wanted(cwd):
    with Mongo(cwd, "--mongo-test-commands") as server, Client(server.port) as c:
        equal(c({"getParameter": 1, "enableTestCommands": 1})["enableTestCommands"], True)
        fail(c, {"times": 2}, failCommands=["ping", "insert"], errorCode=91)
        answer = c.fails({"ping": 1})
        equal((answer["code"], answer["codeName"], "errorLabels" in answer),
              (91, "ShutdownInProgress", False))
        equal(c.fails({"insert": "c", "documents": [{}]}, "db")["code"], 91)
        equal(c({"ping": 1})["ok"], 1.0)
        fail(c, {"skip": 1}, failCommands=["ping"], errorCode=12345, errorLabels=["A", "B"])
        c({"ping": 1})
        for _ in range(3):
            equal(c.fails({"ping": 1})["errorLabels"], ["A", "B"])
        equal(c({"configureFailPoint": "failCommand", "mode": "off"})["count"], 5)
        equal(c({"ping": 1})["ok"], 1.0)


@test
def the_first_hello_is_hit_by_the_name_that_it_tells(cwd):
    with Mongo(cwd, "--mongo-test-commands") as server, Client(server.port) as c:
        def hello(name):
            return {"hello": 1, "client": {"application": {"name": name}}}
        fail(c, failCommands=["hello"], errorCode=91, appName="these")
        with Client(server.port) as other:
            equal(other.fails(hello("these"))["code"], 91)
        with Client(server.port) as other:
            equal(other(hello("those"))["ok"], 1.0)
            equal(other({"hello": 1})["ok"], 1.0)


@test
def a_write_that_may_be_sent_again_has_the_label(cwd):
    (cwd / "ini").write_text("[mongo]\nreplica_set = frond\n")
    with Mongo(cwd, "--mongo-test-commands", "--config", "ini") as server, Client(server.port) as c:
        fail(c, failCommands=["insert"], errorCode=10107)
        write = {"insert": "c", "documents": [{"_id": 1}]}
        again = {**write, "lsid": {"id": b"0123456789abcdef"}, "txnNumber": 1}
        equal("errorLabels" in c.fails(write, "db"), False)
        equal(c.fails(again, "db")["errorLabels"], ["RetryableWriteError"])
        fail(c, failCommands=["insert"], errorCode=10107, errorLabels=[])
        equal("errorLabels" in c.fails(again, "db"), False)


@test
def a_connection_is_closed_a_command_waits_and_a_write_concern_fails(cwd):
    with Mongo(cwd, "--mongo-test-commands") as server, Client(server.port) as c:
        fail(c, {"times": 1}, failCommands=["find"], closeConnection=True)
        with Client(server.port) as other:
            other.send({"find": "c", "$db": "db"})
            equal(other.read_raw(), None)
        began = time.monotonic()
        fail(c, {"times": 1}, failCommands=["ping"], blockConnection=True, blockTimeMS=200)
        c({"ping": 1})
        assert time.monotonic() - began >= 0.2
        fail(c, {"times": 1}, failCommands=["insert"],
             writeConcernError={"code": 64, "errmsg": "waited"})
        answer = c({"insert": "c", "documents": [{"_id": 1}]}, "db")
        equal((answer["n"], answer["writeConcernError"]["code"]), (1, 64))


@test
def a_write_is_lost_before_or_behind_its_commit(cwd):
    (cwd / "ini").write_text("[mongo]\nreplica_set = frond\n")
    with Mongo(cwd, "--mongo-test-commands", "--config", "ini") as server, Client(server.port) as c:
        def point(mode, **data):
            c({"configureFailPoint": "onPrimaryTransactionalWrite", "mode": mode, "data": data})

        def write(number, command):
            with Client(server.port) as other:
                other.send({**command, "lsid": {"id": b"0123456789abcdef"}, "txnNumber": number,
                            "$db": "db"})
                return other.read_raw() and "answered"

        def first():
            return c({"find": "c", "filter": {"_id": 1}}, "db")["cursor"]["firstBatch"]

        insert = {"insert": "c", "documents": [{"_id": 1, "a": 0}]}
        add = {"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}
        point({"times": 1}, failBeforeCommitExceptionCode=1)
        equal((write(1, insert), first()), (None, []))
        equal((write(1, insert), first()), ("answered", [{"_id": 1, "a": 0}]))
        # The connection is closed behind the commit, and what is sent again is known.
        point({"skip": 1})
        equal((write(2, {"update": "c", "updates": [add, add]}), first()[0]["a"]), (None, 2))
        point("alwaysOn")
        equal((write(2, {"update": "c", "updates": [add, add]}), first()[0]["a"]), ("answered", 2))
        change = {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"a": 1}}}
        point({"times": 1}, closeConnection=False, failBeforeCommitExceptionCode=6)
        again = {**change, "lsid": {"id": b"0123456789abcdef"}, "txnNumber": 3}
        failed = c.fails(again, "db")
        equal((failed["code"], failed["errorLabels"], first()[0]["a"]),
              (6, ["RetryableWriteError"], 2))
        equal((c(again, "db")["value"]["a"], first()[0]["a"]), (2, 3))
        # Writes that are not sent again are not hit.
        point("alwaysOn", failBeforeCommitExceptionCode=1)
        equal(c({"update": "c", "updates": [add]}, "db")["nModified"], 1)


@test
def commands_with_a_time_limit_are_over_at_once(cwd):
    with Mongo(cwd, "--mongo-test-commands") as server, Client(server.port) as c:
        c({"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "alwaysOn"})
        expired(c, {"find": "c", "maxTimeMS": 60000})
        c({"find": "c"}, "db")
        c({"configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "off"})
        c({"find": "c", "maxTimeMS": 60000}, "db")
        # The time in which it is kept waiting counts, unless there is no limit.
        wait = {"configureFailPoint": "failCommand", "mode": {"times": 1},
                "data": {"failCommands": ["find"], "blockConnection": True, "blockTimeMS": 20}}
        c(wait)
        expired(c, {"find": "c", "maxTimeMS": 10})
        c({"configureFailPoint": "maxTimeNeverTimeOut", "mode": "alwaysOn"})
        c(wait)
        c({"find": "c", "maxTimeMS": 10}, "db")


@test
def a_cursor_fails_and_a_change_stream_may_be_resumed(cwd):
    (cwd / "ini").write_text("[mongo]\nreplica_set = frond\n")
    with Mongo(cwd, "--mongo-test-commands", "--config", "ini") as server, Client(server.port) as c:
        c({"insert": "c", "documents": [{}, {}]}, "db")
        for stream in False, True:
            stages = [{"$changeStream": {}}] if stream else []
            for code, labels in ((280, ["NonResumableChangeStreamError"]), (43, None), (91, ["ResumableChangeStreamError"]),
                                 (234, ["ResumableChangeStreamError"])):
                cursor = c({"aggregate": "c", "pipeline": stages, "cursor": {"batchSize": 1}},
                           "db")["cursor"]["id"]
                c({"configureFailPoint": "failGetMoreAfterCursorCheckout", "mode": {"times": 1},
                   "data": {"errorCode": code}})
                answer = c.fails({"getMore": Int64(cursor), "collection": "c"}, "db")
                equal((answer["code"], answer.get("errorLabels")),
                      (code, labels if stream else None))


@test
def a_commit_that_fails_for_a_moment_has_the_label_of_its_code(cwd):
    (cwd / "ini").write_text("[mongo]\nreplica_set = frond\n")
    with Mongo(cwd, "--mongo-test-commands", "--config", "ini") as server, Client(server.port) as c:
        for number, (code, label) in enumerate(((24, "TransientTransactionError"),
                                                (246, "TransientTransactionError"),
                                                (251, "TransientTransactionError"),
                                                (91, "RetryableWriteError"), (8, None)), 1):
            members = {"lsid": {"id": b"0123456789abcdef"}, "txnNumber": Int64(number),
                       "autocommit": False}
            c({"insert": "c", "documents": [{}], "startTransaction": True, **members}, "db")
            fail(c, {"times": 1}, failCommands=["commitTransaction"], errorCode=code)
            answer = c.fails({"commitTransaction": 1, **members})
            equal((code, answer["code"], answer.get("errorLabels")),
                  (code, code, [label] if label else None))


@test
def it_hits_the_application_and_the_collection_that_are_named(cwd):
    with Mongo(cwd, "--mongo-test-commands") as server, Client(server.port) as c:
        with Client(server.port) as app:
            app({"hello": 1, "client": {"application": {"name": "app"}, "driver": {"name": "d", "version": "1"},
                                        "os": {"type": "x"}}})
            fail(c, failCommands=["ping"], errorCode=2, appName="app")
            c({"ping": 1})
            equal(app.fails({"ping": 1})["code"], 2)
        fail(c, failCommands=["find"], errorCode=2, namespace="db.c")
        c({"find": "d"}, "db")
        equal(c.fails({"find": "c"}, "db")["code"], 2)


@test
def without_the_option_nothing_fails(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        equal(c.fails({"configureFailPoint": "failCommand", "mode": "alwaysOn"})["code"], 59)
        equal(c({"getParameter": 1, "enableTestCommands": 1})["enableTestCommands"], False)
    with Mongo(cwd, "--mongo-test-commands") as server, Client(server.port) as c:
        equal(c.fails({"configureFailPoint": "other", "mode": "off"})["code"], 82)
        for mode in ("on", {"times": -1}, {"activationProbability": 0.5}, 1):
            equal(c.fails({"configureFailPoint": "failCommand", "mode": mode})["code"], 2)
        equal(c.fails({"configureFailPoint": "failCommand", "mode": "off"}, "db")["code"], 13)


@test
def the_stable_api_keeps_a_client_to_its_commands(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        equal(c({"ping": 1, "apiVersion": "1", "apiStrict": True,
                 "apiDeprecationErrors": True})["ok"], 1.0)
        c({"serverStatus": 1, "apiVersion": "1"})
        for command, code in (({"serverStatus": 1, "apiVersion": "1", "apiStrict": True}, 323),
                              ({"ping": 1, "apiVersion": "2"}, 322),
                              ({"ping": 1, "apiVersion": 1}, 14),
                              ({"ping": 1, "apiVersion": "1", "apiStrict": 1}, 14),
                              ({"ping": 1, "apiStrict": True}, 72)):
            equal((command, c.fails(command)["code"]), (command, code))
        c({"insert": "c", "documents": [{"_id": 1}]}, "d")

        def aggregate(first, stage, **more):
            return {"aggregate": first, "pipeline": [stage], "cursor": {}, "apiVersion": "1", **more}
        for first, stage in ((1, {"$listLocalSessions": {}}), ("c", {"$indexStats": {}}),
                             ("c", {"$collStats": {"storageStats": {}}})):
            c(aggregate(first, stage), "d")
            equal(c.fails(aggregate(first, stage, apiStrict=True), "d")["code"], 323)
        c(aggregate("c", {"$collStats": {"count": {}}}, apiStrict=True), "d")


def expired(c, command):
    answer = c.fails(command, "db")
    equal((answer["code"], answer["codeName"], answer["errmsg"]),
          (50, "MaxTimeMSExpired", "operation exceeded time limit"))


@test
def a_command_has_the_time_that_it_says(cwd):
    with Mongo(cwd, "--mongo-test-commands") as server, Client(server.port) as c:
        for good in 0, -0.0, 60000.0, Int64(60000), None:
            equal(c({"ping": 1, "maxTimeMS": good})["ok"], 1.0)
        for bad, code in (("1", 14), (True, 14), ([1], 14), (1.5, 9), (float("nan"), 9),
                          (float("inf"), 9), (-1, 2), (Int64(1 << 31), 2)):
            equal(c.fails({"ping": 1, "maxTimeMS": bad})["code"], code)
        fail(c, failCommands=["ping", "insert"], blockConnection=True, blockTimeMS=60)
        expired(c, {"ping": 1, "maxTimeMS": 50})
        expired(c, {"insert": "c", "documents": [{}], "maxTimeMS": 50})
        equal(c({"count": "c"}, "db")["n"], 0)
        # A cursor's queries have together what the first command has said.
        c({"insert": "c", "documents": [{}, {}, {}]}, "db")
        fail(c, failCommands=["getMore"], blockConnection=True, blockTimeMS=2100)
        for command in {"find": "c", "batchSize": 1}, {"aggregate": "c", "pipeline": [],
                                                       "cursor": {"batchSize": 1}}:
            cursor = c({**command, "maxTimeMS": 2000}, "db")["cursor"]["id"]
            expired(c, {"getMore": Int64(cursor), "collection": "c"})
        c({"configureFailPoint": "failCommand", "mode": "off"})
        cursor = c({"find": "c", "batchSize": 1}, "db")["cursor"]["id"]
        equal(c.fails({"getMore": Int64(cursor), "collection": "c", "maxTimeMS": 1000},
                      "db")["code"], 2)


@test
def a_command_that_computes_for_longer_ends(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        for at in range(0, 20000, 2000):
            c({"insert": "c"}, "db", sequence("documents", *(
                {"_id": i, "a": "x" * 100} for i in range(at, at + 2000))))
        slow = {"a": {"$regex": "^(x|y)*z"}}
        updates = [{"q": slow, "u": {"$set": {"a": 1}}, "multi": True}]
        for command in (
                {"find": "c", "filter": slow}, {"find": "c", "sort": {"a": 1}},
                {"count": "c", "query": slow}, {"distinct": "c", "key": "a", "query": slow},
                {"aggregate": "c", "pipeline": [{"$match": slow}], "cursor": {}},
                {"aggregate": "c", "pipeline": [{"$group": {"_id": "$_id"}}], "cursor": {}},
                {"aggregate": "c", "pipeline": [{"$out": "o"}], "cursor": {}},
                {"update": "c", "updates": updates}, {"update": "c", "updates": updates * 2,
                                                      "ordered": False},
                {"delete": "c", "deletes": [{"q": slow, "limit": 0}]},
                {"findAndModify": "c", "query": slow, "remove": True},
                {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}):
            expired(c, {**command, "maxTimeMS": 1})
        names = [one["name"] for one in c({"listCollections": 1}, "db")["cursor"]["firstBatch"]]
        equal(names, ["c"])
        equal(c({"count": "c"}, "db")["n"], 20000)
        equal(c({"find": "c", "filter": slow, "maxTimeMS": 600000}, "db")["cursor"]["firstBatch"], [])
        docs = [{"_id": i} for i in range(20000, 60000)]
        answer = c.fails({"insert": "c", "maxTimeMS": 1}, "db", sequence("documents", *docs))
        equal(answer["code"], 50)
        equal(c.fails({"insert": "c", "documents": [{}], "let": {}}, "db")["code"], 40415)


main()
