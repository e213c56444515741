"""MongoDB's door: the fail point by which tests of drivers have commands fail, and the stable API."""

import re
import time

from harness import Server, equal, main, test
from mongo import Client


class Mongo(Server):
    def __init__(self, cwd, *options, **kwargs):
        super().__init__(cwd, "--mongo", "127.0.0.1:0", *options, **kwargs)
        self.port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)",
                                  self.read_log()).group(1))


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
        equal(c({"ping": 1}), {"ok": 1.0})
        fail(c, {"skip": 1}, failCommands=["ping"], errorCode=12345, errorLabels=["A", "B"])
        c({"ping": 1})
        for _ in range(3):
            equal(c.fails({"ping": 1})["errorLabels"], ["A", "B"])
        equal(c({"configureFailPoint": "failCommand", "mode": "off"})["count"], 5)
        equal(c({"ping": 1}), {"ok": 1.0})


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
        equal(c({"ping": 1, "apiVersion": "1", "apiStrict": True, "apiDeprecationErrors": True}),
              {"ok": 1.0})
        c({"serverStatus": 1, "apiVersion": "1"})
        for command, code in (({"serverStatus": 1, "apiVersion": "1", "apiStrict": True}, 323),
                              ({"ping": 1, "apiVersion": "2"}, 322),
                              ({"ping": 1, "apiVersion": 1}, 14),
                              ({"ping": 1, "apiVersion": "1", "apiStrict": 1}, 14),
                              ({"ping": 1, "apiStrict": True}, 72)):
            equal((command, c.fails(command)["code"]), (command, code))


main()
