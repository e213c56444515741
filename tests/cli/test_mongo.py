"""MongoDB's door, as clients see it: messages, who may do what, what the server says of itself."""

import base64
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import zlib

from harness import Server, contains, equal, main, run, test
from mongo import (CHECKSUM, EXHAUST_ALLOWED, MORE_TO_COME, OP_COMPRESSED, OP_MSG, Client, Failure,
                   Int64, ObjectId, Scram, decode, encode, sequence)

ADMIN = {"FROND_ADMIN": "root:secret"}
ROUNDS = "[chttpd_auth]\niterations = 10\n"  # few, so that the tests are quick
ALONE = "[mongo]\nstandalone = true\n"  # answers have no times


class Mongo(Server):
    """A frond with MongoDB's door on a free port, with TLS if there is a cert.pem."""

    def __init__(self, cwd, *options, tls=False, host="127.0.0.1", **kwargs):
        options += ("--mongos", "127.0.0.1:0") if tls else ()
        if not (cwd / "ini").exists():
            (cwd / "ini").write_text(ROUNDS + ALONE)
        options += ("--config", "ini")
        super().__init__(cwd, "--mongo", f"{host}:0", *options, **kwargs)
        self.port = self.find("mongo")
        self.tls_port = self.find("mongos") if tls else None

    def find(self, event):
        return int(re.search(rf"event={event} address=[\d.]+:(\d+)", self.read_log()).group(1))

    def client(self, **kwargs):
        return Client(self.port, **kwargs)

    def person(self, name, password, *roles):
        """Makes a person as CouchDB's users are made."""
        token = base64.b64encode(b"root:secret").decode()
        headers = {"Authorization": f"Basic {token}"}
        self.request("PUT", "/_users", headers=headers)
        status, answer = self.request(
            "PUT", f"/_users/org.couchdb.user:{name}",
            {"name": name, "password": password, "type": "user", "roles": roles}, headers)
        equal((status, answer.get("ok")), (201, True))


@test
def without_the_option_there_is_no_door(cwd):
    with Server(cwd) as server:
        assert "event=mongo" not in server.read_log()


@test
def others_than_this_machine_are_served_with_an_administrator_only(cwd):
    result = run("serve", "--http", "127.0.0.1:0", "--mongo", "0.0.0.0:0", cwd=cwd)
    equal(result.returncode, 2)
    contains(result.stderr, "refusing to listen on 0.0.0.0 without an administrator")


# ---- Messages ----

@test
def hello_is_that_of_the_only_member_of_a_replica_set(cwd):
    (cwd / "ini").write_text(ROUNDS)
    with Mongo(cwd) as server, server.client() as c:
        answer = c({"hello": 1, "helloOk": True})
        address = f"127.0.0.1:{server.port}"
        equal([answer[name] for name in ("setName", "hosts", "primary", "me", "isWritablePrimary",
                                         "secondary", "minWireVersion", "maxWireVersion",
                                         "maxBsonObjectSize", "maxMessageSizeBytes",
                                         "maxWriteBatchSize", "logicalSessionTimeoutMinutes",
                                         "helloOk", "readOnly", "ok")],
              ["frond", [address], address, address, True, False, 0, 25, 16777216, 48000000,
               100000, 30, True, False, 1.0])
        old = c({"isMaster": 1})
        equal(old["ismaster"], True)
        equal(old["connectionId"], answer["connectionId"])
        flags, _, old = c.hello_by_query({"ismaster": 1})
        equal((flags, old["ismaster"], old["maxWireVersion"]), (8, True, 25))
        _, _, answer = c.hello_by_query({"find": "c"})
        equal((answer["ok"], answer["code"], answer["codeName"]),
              (0.0, 352, "UnsupportedOpQueryCommand"))


@test
def settings_name_the_set_and_its_member(cwd):
    (cwd / "ini").write_text("[mongo]\nreplica_set = rs7\nhost = db.example:27018\n")
    with Mongo(cwd) as server, server.client() as c:
        answer = c({"hello": 1})
        equal((answer["setName"], answer["hosts"]), ("rs7", ["db.example:27018"]))
    (cwd / "ini").write_text("[mongo]\nhost = db.example:27018\nstandalone = true\n")
    with Mongo(cwd) as server, server.client() as c:
        assert "setName" not in c({"hello": 1})


@test
def a_set_is_not_told_at_a_unix_socket(cwd):
    with Server(cwd, "--mongo", cwd / "mongo.sock"), Client(cwd / "mongo.sock") as c:
        assert "setName" not in c({"hello": 1})
        c({"insert": "c", "$db": "d", "documents": [{"_id": 1}]})
        equal(c({"count": "c", "$db": "d"})["n"], 1)


@test
def a_set_is_not_told_where_its_member_has_no_address_that_is_known(cwd):
    for more, name in (("", None), ("[mongo]\nhost = db.example:27018\n", "frond")):
        (cwd / "ini").write_text(ROUNDS + more)
        with Mongo(cwd, host="0.0.0.0", env=ADMIN) as server, server.client() as c:
            equal(c({"hello": 1}).get("setName"), name)


@test
def a_request_with_a_checksum_is_answered_with_one(cwd):
    with Mongo(cwd) as server, server.client() as c:
        number = c.send({"ping": 1, "$db": "admin"}, flags=CHECKSUM)
        equal(c.read(), (CHECKSUM, number, {"ok": 1.0}))
        # One that is wrong ends the connection.
        data = struct.pack("<I", CHECKSUM) + b"\0" + encode({"ping": 1, "$db": "admin"}) + b"abcd"
        c.send_raw(OP_MSG, data)
        equal(c.read_raw(), None)


@test
def what_cannot_be_read_is_answered_or_ends_the_connection(cwd):
    body = b"\0" + encode({"ping": 1, "$db": "admin"})
    zero = struct.pack("<I", 0)
    with Mongo(cwd) as server:
        with server.client() as c:
            for data, code in ((zero, 40587), (zero + body + body, 40430), (zero + b"\7", 40432),
                               (zero + sequence("a") + sequence("a") + body, 40431),
                               (zero + b"\0" + encode({"ping": 1})[:-1] + b"\1", 22),
                               (zero + b"\0" + b"\x0c\0\0\0\x02a\0\xff\0\0\0\0", 22)):
                c.send_raw(OP_MSG, data)
                _, _, answer = c.read()
                equal((answer["ok"], answer["code"]), (0.0, code))
            equal(c({"ping": 1}), {"ok": 1.0})
        for op, data, length in ((OP_MSG, struct.pack("<I", 4) + body, None), (2001, zero, None),
                                 (OP_MSG, b"", 15), (OP_MSG, b"", 48000001), (OP_MSG, b"", -1),
                                 (OP_MSG, zero + sequence("a") + sequence("b") + sequence("c"), None),
                                 (OP_COMPRESSED, struct.pack("<iiB", OP_MSG, 100, 9), None),
                                 (OP_COMPRESSED, struct.pack("<iiB", OP_MSG, 2**31 - 1, 2), None),
                                 (OP_COMPRESSED, struct.pack("<iiB", OP_MSG, 100, 1) + b"x", None)):
            with server.client() as c:
                c.send_raw(op, data, length)
                equal(c.read_raw(), None)
        with server.client() as c:
            equal(c({"ping": 1}), {"ok": 1.0})


@test
def a_request_of_http_is_no_message(cwd):
    """Its first bytes are a length that no message has, so nothing behind them is looked at."""
    with Mongo(cwd) as server:
        message = b"\0\0\0\0\0" + encode({"insert": "c", "documents": [{"_id": 1}], "$db": "pwned"})
        message = struct.pack("<iiii", 16 + len(message), 1, 0, OP_MSG) + message
        for head in (b"POST / HTTP/1.1\r\n\r\n", b"PUT / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as http:
                http.sendall(head + message)
                equal(http.recv(4096), b"")
        with server.client() as c:
            equal(c({"count": "c", "$db": "pwned"})["n"], 0)


@test
def a_message_may_come_in_any_parts_and_with_the_next_one(cwd):
    with Mongo(cwd) as server, server.client() as c:
        data = struct.pack("<I", 0) + b"\0" + encode({"ping": 1, "$db": "admin", "comment": "x" * 200000})
        message = struct.pack("<iiii", 16 + len(data), 5, 0, OP_MSG) + data
        for at in range(0, len(message), 50000):
            c.socket.sendall(message[at:at + 50000])
        equal(c.read()[1:], (5, {"ok": 1.0}))
        c.socket.sendall(message[:3])
        c.socket.sendall(message[3:] + message)
        equal([c.read()[1], c.read()[1]], [5, 5])


@test
def a_request_that_wants_no_answer_gets_none(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c.send({"ping": 1, "$db": "admin"}, flags=MORE_TO_COME)
        c.send({"nosuch": 1, "$db": "admin"}, flags=MORE_TO_COME)
        equal(c({"ping": 1}), {"ok": 1.0})


@test
def answers_are_compressed_as_their_requests_are(cwd):
    with Mongo(cwd) as server, server.client() as c:
        equal(c({"hello": 1, "compression": ["zstd", "lzo", "zlib", "snappy", "zlib"]})["compression"],
              ["zstd", "zlib", "snappy"])
        plain = struct.pack("<I", 0) + b"\0" + encode({"listCommands": 1, "$db": "admin"})
        c.send_raw(OP_COMPRESSED, struct.pack("<iiB", OP_MSG, len(plain), 2) + zlib.compress(plain))
        op, _, _, _, data = c.read_raw()
        equal(op, OP_COMPRESSED)
        original, size, by = struct.unpack_from("<iiB", data)
        equal((original, by), (OP_MSG, 2))
        data = zlib.decompress(data[9:])
        equal(len(data), size)
        contains(" ".join(decode(data, 5)["commands"]), "ping")
    with Mongo(cwd) as server, server.client() as c:
        # One who has not asked for compression is not answered so.
        c.send_raw(OP_COMPRESSED, struct.pack("<iiB", OP_MSG, len(plain), 2) + zlib.compress(plain))
        equal(c.read_raw()[0], OP_MSG)


@test
def a_hello_that_waits_is_answered_again_and_again_until_its_client_has_enough(cwd):
    with Mongo(cwd) as server, server.client() as c:
        topology = c({"hello": 1})["topologyVersion"]
        wait = {"hello": 1, "topologyVersion": topology, "maxAwaitTimeMS": 50, "$db": "admin"}
        number = c.send(wait)
        flags, to, answer = c.read()
        equal((flags, to, answer["ok"]), (0, number, 1.0))
        number = c.send(wait, flags=EXHAUST_ALLOWED)
        for _ in range(3):
            flags, to, answer = c.read()
            equal((flags, to, answer["ok"]), (MORE_TO_COME, number, 1.0))
            number = c.last
        # Another topology is answered at once, however long the client would wait.
        other = {**topology, "processId": ObjectId(b"another one!")}
    with Mongo(cwd) as server, server.client() as c:
        equal(c({**wait, "topologyVersion": other, "maxAwaitTimeMS": 10**9})["ok"], 1.0)
        equal(c.fails({"hello": 1, "maxAwaitTimeMS": 5})["code"], 31368)


# ---- Commands ----

@test
def commands_that_are_wrong_have_the_codes_of_mongodb(cwd):
    with Mongo(cwd) as server, server.client() as c:
        def failure(document, **kwargs):
            answer = c.fails(document, **kwargs)
            return answer["code"], answer["codeName"], answer["errmsg"]

        equal(failure({"nosuch": 1}), (59, "CommandNotFound", "no such command: 'nosuch'"))
        equal(failure({}), (59, "CommandNotFound", "no such command: '$db'"))
        equal(failure({"killOp": 1}),
              (40414, "Location40414", "BSON field 'killOp.op' is missing but a required field"))
        equal(failure({"killOp": 1, "op": "x"}),
              (14, "TypeMismatch", "BSON field 'killOp.op' is the wrong type 'string', "
                                   "expected types '[long, int, decimal, double']"))
        equal(failure({"currentOp": 1}, db="other"),
              (13, "Unauthorized", "currentOp may only be run against the admin database."))
        equal(failure({"ping": 1}, db="a b")[:2], (73, "InvalidNamespace"))
        equal(failure({"getLog": "x"}), (96, "OperationFailed", "No log named 'x'"))
        equal(failure({"getParameter": 1, "x": 1}),
              (72, "InvalidOptions", "no option found to get"))
        number = c.send({"ping": 1})
        _, to, answer = c.read()
        equal((to, answer["code"], answer["errmsg"]),
              (number, 40571, "OP_MSG requests require a $db argument"))


@test
def documents_are_measured(cwd):
    with Mongo(cwd) as server, server.client() as c:
        documents = [{"_id": i, "n": i % 7, "text": "x" * i} for i in range(300)]
        c({"insert": "c", "documents": documents}, "d")
        c({"create": "v", "viewOn": "c", "pipeline": []}, "d")
        sizes = [len(encode(d)) for d in documents]

        def measured(**more):
            answer = c({"dataSize": "d.c", **more}, "d")
            assert answer["millis"] >= 0, answer
            return answer["numObjects"], answer["size"], answer["estimate"]
        equal(measured(), (300, sum(sizes), False))
        equal(measured(keyPattern={"n": 1}, min=None, max=None), (300, sum(sizes), False))
        equal(measured(keyPattern={"_id": 1}, min={"_id": 10}, max={"_id": 20}), (10, sum(sizes[10:20]), False))
        equal(measured(keyPattern={"_id": 1}, min={"_id": 20}, max={"_id": 10}), (0, 0, False))
        c({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]}, "d")
        some = [size for size, document in zip(sizes, documents) if 2 <= document["n"] < 4]
        equal(measured(keyPattern={"n": 1}, min={"n": 2}, max={"n": 4}), (len(some), sum(some), False))
        equal(measured(estimate=True), (300, c({"collStats": "c"}, "d")["size"], True))
        answer = c({"dataSize": "d.c", "maxObjects": 9}, "d")
        equal((answer["numObjects"], answer["maxReached"]), (10, True))
        answer = c({"dataSize": "d.c", "maxSize": 1000}, "d")
        assert answer["maxReached"] and 1000 < answer["size"] < 1000 + max(sizes), answer
        equal(c({"dataSize": "d.none"}, "d")["size"], 0)
        equal([c.fails({"dataSize": "d.c", **more}, "d")["code"] for more in (
            {"min": {"_id": 1}, "max": {"_id": 2}}, {"min": {"_id": 1}, "keyPattern": {"_id": 1}}, {"foo": 1},
            {"keyPattern": 1}, {"dataSize": "nodot"}, {"dataSize": ""}, {"dataSize": 1}, {"dataSize": "d.v"})],
              [96, 2, 40415, 14, 73, 73, 14, 166])


@test
def parameters_are_set_and_defaults_told(cwd):
    (cwd / "ini").write_text("[mongo]\nreplica_set = frond\n")
    with Mongo(cwd) as server, server.client() as c:
        def seconds():
            return c({"getParameter": 1, "transactionLifetimeLimitSeconds": 1})["transactionLifetimeLimitSeconds"]
        equal(c({"setParameter": 1, "transactionLifetimeLimitSeconds": 1, "comment": "x"})["was"], 60)
        equal((seconds(), c({"setParameter": 1, "transactionLifetimeLimitSeconds": Int64(30)})["was"]), (1, 1))
        equal([(f["code"], f["errmsg"]) for f in (c.fails({"setParameter": 1, **more}) for more in (
            {"enableTestCommands": True}, {"quiet": 1}, {}, {"logLevel": 1, "quiet": 1}))],
              [(20, "not allowed to change [enableTestCommands] at runtime"),
               (72, "attempted to set unrecognized parameter [quiet]"), (72, "no option found to set"),
               (72, "setParameter sets one parameter at a time")])
        equal([c.fails({"setParameter": 1, "transactionLifetimeLimitSeconds": v})["code"]
               for v in (0, 61, 1.5, "1", None)], [2, 2, 2, 14, 14])
        equal((seconds(), c.fails({"setParameter": 1, "quiet": 1}, "d")["code"]), (30, 13))
        concern = c({"getDefaultRWConcern": 1, "inMemory": True})
        equal((concern["defaultReadConcern"], concern["defaultWriteConcern"], concern["inMemory"]),
              ({"level": "local"}, {"w": "majority", "wtimeout": 0}, True))
        equal((concern["defaultReadConcernSource"], concern["defaultWriteConcernSource"]),
              ("implicit", "implicit"))
        pools = c({"connPoolStats": 1})
        equal((pools["totalCreated"], pools["hosts"], pools["pools"]), (0, {}, {}))
    (cwd / "ini").write_text(ALONE)
    with Mongo(cwd) as server, server.client() as c:
        equal(c.fails({"getDefaultRWConcern": 1})["code"], 51300)


@test
def the_server_says_what_it_is(cwd):
    with Mongo(cwd) as server, server.client() as c:
        equal(c({"ping": 1}), {"ok": 1.0})
        build = c({"buildInfo": 1})
        equal((build["version"], build["versionArray"], build["bits"]), ("8.0.0", [8, 0, 0, 0], 64))
        status = c({"serverStatus": 1})
        equal(status["connections"]["current"], 1)
        assert status["network"]["numRequests"] >= 3, status
        assert status["mem"]["resident"] > 0, status
        system = c({"hostInfo": 1})["system"]
        assert system["numCores"] > 0, system
        assert 0 < system["memLimitMB"] <= system["memSizeMB"], system
        equal(c({"getParameter": 1, "featureCompatibilityVersion": 1})["featureCompatibilityVersion"],
              {"version": "8.0"})
        equal(c({"getParameter": "*"})["authenticationMechanisms"], ["SCRAM-SHA-256", "PLAIN"])
        host, port = c.socket.getsockname()
        equal(c({"whatsmyuri": 1})["you"], f"{host}:{port}")
        equal(c({"getLog": "*"})["names"], ["global", "startupWarnings"])
        equal(c({"getLog": "startupWarnings"})["log"], [])
        equal(c({"getCmdLineOpts": 1})["argv"], ["frond", "serve"])
        names = set(c({"listCommands": 1})["commands"])
        assert {"hello", "ping", "saslStart", "serverStatus"} <= names, names
        session = c({"startSession": 1})
        equal((len(session["id"]["id"]), session["timeoutMinutes"]), (16, 30))
        equal(c({"ping": 1, "lsid": session["id"]})["ok"], 1.0)
        equal(c({"refreshSessions": [session["id"]]})["ok"], 1.0)
        equal(c({"endSessions": [session["id"]]})["ok"], 1.0)


@test
def an_operation_is_seen_and_ended_by_others(cwd):
    with Mongo(cwd) as server, server.client() as c, server.client() as other:
        topology = c({"hello": 1, "client": {"application": {"name": "the waiter"}}})["topologyVersion"]
        equal(c.fails({"hello": 1, "client": {}})["code"], 186)
        c.send({"hello": 1, "topologyVersion": topology, "maxAwaitTimeMS": 60000, "$db": "admin"})
        while True:
            ops = [op for op in other({"currentOp": 1})["inprog"] if op.get("appName") == "the waiter"]
            if ops:
                break
        del ops[0]["command"]["topologyVersion"]
        equal((ops[0]["command"], ops[0]["active"]),
              ({"hello": 1, "maxAwaitTimeMS": 60000, "$db": "admin"}, True))
        other({"killOp": 1, "op": ops[0]["opid"]})
        equal(c.read()[2]["ok"], 1.0)

        # Long commands are shown in part, and those with passwords not at all.
        def shown(comment):
            pipeline = [{"$currentOp": {"allUsers": True}}, {"$match": {"active": True}}]
            command = {"aggregate": 1, "pipeline": pipeline, "cursor": {}, "comment": comment}
            return c(command)["cursor"]["firstBatch"][0]["command"]
        equal((shown("short")["aggregate"], shown("short")["comment"]), (1, "short"))
        equal(sorted(shown("x" * 600)), ["$truncated", "aggregate"])


# ---- Data ----

def ids(cursor, batch="firstBatch"):
    return [document["_id"] for document in cursor["cursor"][batch]]


@test
def documents_are_inserted_found_replaced_and_deleted(cwd):
    with Mongo(cwd) as server, server.client() as c:
        def shop(document, **kwargs):
            return c(document, db="shop", **kwargs)

        equal(shop({"insert": "c", "documents": [{"_id": 2, "a": "x"}, {"b": 1, "_id": 1.5}]}),
              {"n": 2, "ok": 1.0})
        equal(shop({"insert": "c"}, sections=sequence("documents", {"_id": "s", "d": {"e": [1, None]}})),
              {"n": 1, "ok": 1.0})
        equal(shop({"find": "c"})["cursor"],
              {"firstBatch": [{"_id": 1.5, "b": 1}, {"_id": 2, "a": "x"},
                              {"_id": "s", "d": {"e": [1, None]}}], "id": 0, "ns": "shop.c"})
        equal(shop({"find": "c", "filter": {"_id": 2.0}})["cursor"]["firstBatch"], [{"_id": 2, "a": "x"}])
        equal(ids(shop({"find": "c", "sort": {"_id": -1}, "skip": 1, "limit": 1})), [2])
        answer = shop({"insert": "c", "documents": [{"_id": 3}, {"_id": 2}, {"_id": 4}]})
        equal((answer["n"], len(answer["writeErrors"])), (1, 1))
        error = answer["writeErrors"][0]
        equal((error["index"], error["code"], error["keyValue"]), (1, 11000, {"_id": 2}))
        answer = shop({"insert": "c", "ordered": False,
                       "documents": [{"_id": 3}, {"_id": 4}, {"_id": [1]}, {"_id": 5}]})
        equal((answer["n"], [(e["index"], e["code"]) for e in answer["writeErrors"]]),
              (2, [(0, 11000), (2, 53)]))
        # Which ones are new is found out before: also where they come in any order, or twice.
        answer = shop({"insert": "many", "ordered": False, "documents": [
            {"_id": 7}, {"a": 1, "_id": 3}, {"_id": 7.0}, {"_id": 9}, {"n": 1}, {"_id": 3}, {"_id": 5}]})
        equal((answer["n"], [(e["index"], e["code"]) for e in answer["writeErrors"]]),
              (5, [(2, 11000), (5, 11000)]))
        answer = shop({"insert": "many", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 9}, {"_id": 4}]})
        equal((answer["n"], answer["writeErrors"][0]["index"]), (2, 2))
        equal(shop({"count": "many", "query": {"_id": {"$type": "number"}}})["n"], 6)
        equal(shop({"update": "c", "updates": [{"q": {"_id": 2}, "u": {"a": "y"}},
                                               {"q": {"_id": 2}, "u": {"a": "y"}},
                                               {"q": {"_id": 99}, "u": {"a": 1}},
                                               {"q": {"_id": 6}, "u": {"a": 6}, "upsert": True}]}),
              {"n": 3, "upserted": [{"index": 3, "_id": 6}], "nModified": 1, "ok": 1.0})
        equal(shop({"find": "c", "filter": {"_id": 2}})["cursor"]["firstBatch"], [{"_id": 2, "a": "y"}])
        answer = shop({"update": "c", "updates": [{"q": {"_id": 2}, "u": {"_id": 3}}]})
        equal(answer["writeErrors"][0]["code"], 66)
        equal(shop({"count": "c"})["n"], 7)
        equal(shop({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}, {"q": {"_id": 77}, "limit": 0}]}),
              {"n": 1, "ok": 1.0})
        equal(shop({"delete": "c", "deletes": [{"q": {}, "limit": 0}]})["n"], 6)
        equal(shop({"count": "c"})["n"], 0)


@test
def what_was_acknowledged_is_there_after_a_kill(cwd):
    with Mongo(cwd) as server, server.client() as c:
        for i in range(20):
            c({"insert": "c", "documents": [{"_id": i}]}, db="d")
        server.stop(signal.SIGKILL)
    with Mongo(cwd) as server, server.client() as c:
        equal(c({"count": "c"}, db="d")["n"], 20)
    contains(run("verify", cwd=cwd).stdout, "0 findings")


@test
def a_cursor_whose_collection_has_gone_fails_instead_of_ending(cwd):
    def again(c):
        c({"drop": "c"}, db="d")
        c({"insert": "c", "documents": [{"_id": 299, "n": 299}]}, db="d")

    ways = [lambda c: c({"drop": "c"}, db="d"), again, lambda c: c({"dropDatabase": 1}, db="d"),
            lambda c: c({"renameCollection": "d.c", "to": "d.other", "dropTarget": True})]
    queries = [{"find": "c"}, {"find": "c", "hint": "n"}, {"find": "c", "filter": {"_id": {"$gt": 2}}},
               {"aggregate": "c", "pipeline": [{"$match": {"n": {"$gt": 2}}}]},
               {"aggregate": "c", "pipeline": [{"$set": {"a": 1}}]}]
    with Mongo(cwd) as server, server.client() as c:
        for way in ways:
            c({"insert": "c", "documents": [{"_id": n, "n": n} for n in range(300)]}, db="d")
            c({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]}, db="d")
            cursors = [c({**query, **({"cursor": {"batchSize": 10}} if "aggregate" in query else
                                      {"batchSize": 10})}, db="d")["cursor"]["id"]
                       for query in queries]
            sorted_before = c({"find": "c", "sort": {"a": 1, "n": 1}, "batchSize": 10}, db="d")["cursor"]
            way(c)
            for query, cursor in zip(queries, cursors):
                failure = c.fails({"getMore": Int64(cursor), "collection": "c"}, db="d")
                equal((query, failure["code"]), (query, 175))
                failure = c.fails({"getMore": Int64(cursor), "collection": "c"}, db="d")
                equal((query, failure["code"]), (query, 43))
            # Those that were read before are the cursor's.
            rest = c({"getMore": Int64(sorted_before["id"]), "collection": "c"}, db="d")
            equal(ids(rest, "nextBatch"), list(range(10, 300)))
            c({"dropDatabase": 1}, db="d")


@test
def a_cursor_goes_on_where_it_was(cwd):
    with Mongo(cwd) as server, server.client() as c, server.client() as other:
        for i in range(0, 250, 50):
            c({"insert": "c"}, db="d", sections=sequence("documents", *({"_id": n} for n in range(i, i + 50))))
        cursor = c({"find": "c"}, db="d")
        equal(ids(cursor), list(range(101)))
        number = Int64(cursor["cursor"]["id"])
        # What is written behind the place is seen, wherever the client asks from.
        c({"delete": "c", "deletes": [{"q": {"_id": 120}, "limit": 1}]}, db="d")
        more = other({"getMore": number, "collection": "c", "batchSize": 100}, db="d")
        equal(ids(more, "nextBatch"), [n for n in range(101, 202) if n != 120])
        more = c({"getMore": number, "collection": "c"}, db="d")
        equal((ids(more, "nextBatch"), more["cursor"]["id"]), (list(range(202, 250)), 0))
        equal(c.fails({"getMore": number, "collection": "c"}, db="d")["code"], 43)
        cursor = c({"find": "c", "batchSize": 0, "limit": 3, "sort": {"_id": -1}}, db="d")["cursor"]
        equal(cursor["firstBatch"], [])
        more = c({"getMore": Int64(cursor["id"]), "collection": "c"}, db="d")
        equal((ids(more, "nextBatch"), more["cursor"]["id"]), ([249, 248, 247], 0))
        cursor = c({"find": "c", "batchSize": 1}, db="d")["cursor"]
        equal(c({"killCursors": "c", "cursors": [Int64(cursor["id"]), Int64(5)]}, db="d"),
              {"cursorsKilled": [cursor["id"]], "cursorsNotFound": [5], "cursorsAlive": [],
               "cursorsUnknown": [], "ok": 1.0})
        # Batches that follow without being asked for.
        cursor = c({"find": "c", "batchSize": 100}, db="d")["cursor"]
        c.send({"getMore": Int64(cursor["id"]), "collection": "c", "batchSize": 100, "$db": "d"},
               flags=EXHAUST_ALLOWED)
        flags, _, answer = c.read()
        equal((flags, len(answer["cursor"]["nextBatch"])), (MORE_TO_COME, 100))
        flags, _, answer = c.read()
        equal((flags, len(answer["cursor"]["nextBatch"]), answer["cursor"]["id"]), (0, 49, 0))


@test
def collections_are_made_renamed_listed_measured_and_dropped(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"create": "a"}, db="x")
        c({"create": "a"}, db="x")
        equal(c.fails({"create": "a", "validator": {"n": 1}}, db="x")["code"], 48)
        equal(c.fails({"create": "b", "capped": True, "size": 1}, db="x")["code"], 238)
        c({"insert": "b.c", "documents": [{"_id": 1}]}, db="x")
        c({"insert": "z", "documents": [{"_id": 1}]}, db="y")
        batch = c({"listCollections": 1}, db="x")["cursor"]["firstBatch"]
        equal([(one["name"], one["type"]) for one in batch], [("a", "collection"), ("b.c", "collection")])
        equal(c({"listCollections": 1, "filter": {"name": "a"}, "nameOnly": True}, db="x")["cursor"]["firstBatch"],
              [{"name": "a", "type": "collection"}])
        equal([one["name"] for one in c({"listDatabases": 1})["databases"]], ["x", "y"])
        c({"renameCollection": "x.a", "to": "y.a"})
        equal(c.fails({"renameCollection": "x.a", "to": "y.a"})["code"], 26)
        equal(c.fails({"renameCollection": "x.b.c", "to": "y.a"})["code"], 48)
        equal(c({"collStats": "z"}, db="y")["count"], 1)
        stats = c({"dbStats": 1}, db="y")
        equal((stats["db"], stats["collections"], stats["objects"], stats["indexes"]), ("y", 2, 1, 2))
        equal(c({"dbStats": 1}, db="none")["collections"], 0)
        equal(c.fails({"dbStats": 1, "scale": 0}, db="y")["code"], 2)
        equal(c({"listIndexes": "z"}, db="y")["cursor"]["firstBatch"], [{"v": 2, "key": {"_id": 1}, "name": "_id_"}])
        equal(c.fails({"listIndexes": "none"}, db="y")["code"], 26)
        equal(c({"drop": "z"}, db="y")["ns"], "y.z")
        equal(c({"drop": "z"}, db="y"), {"ok": 1.0})
        equal(c({"dropDatabase": 1}, db="y"), {"dropped": "y", "ok": 1.0})
        equal([one["name"] for one in c({"listDatabases": 1, "nameOnly": True})["databases"]], ["x"])


@test
def lists_of_collections_and_databases_are_filtered(cwd):
    with Mongo(cwd) as server, server.client() as c:
        for name in ("a", "ab", "b"):
            c({"create": name, **({"validator": {"n": 1}} if name == "ab" else {})}, db="x")
        c({"create": "v", "viewOn": "a", "pipeline": []}, db="x")
        c({"create": "a"}, db="y")

        def names(filter, **more):
            answer = c({"listCollections": 1, "filter": filter, **more}, db="x")
            return [one["name"] for one in answer["cursor"]["firstBatch"]]
        equal(names({}), ["a", "ab", "b", "v"])
        equal(names({"name": "b"}), ["b"])
        equal(names({"name": "b", "type": "view"}), [])
        equal(names({"name": {"$in": ["v", "b", "none"]}}), ["b", "v"])
        equal(names({"$or": [{"name": "a"}, {"type": "view"}]}), ["a", "v"])
        equal(names({"type": "collection"}, nameOnly=True), ["a", "ab", "b"])
        equal(names({"name": {"$gte": "ab"}, "info.readOnly": False}), ["ab", "b"])
        equal(names({"options.validator": {"$exists": True}}), ["ab"])
        # Only what is listed is looked at.
        equal(names({"options.validator": {"$exists": True}}, nameOnly=True), [])
        equal(c.fails({"listCollections": 1, "filter": {"$nosuch": 1}}, db="x")["code"], 2)
        names = lambda filter, **more: [one["name"] for one in
                                        c({"listDatabases": 1, "filter": filter, **more})["databases"]]
        equal((names({"name": {"$gt": "x"}}), names({"empty": False}), names({"sizeOnDisk": {"$lt": 0}})),
              (["y"], ["x", "y"], []))
        equal(names({"name": {"$ne": "y"}}, nameOnly=True), ["x"])


@test
def large_documents_and_many_are_stored(cwd):
    with Mongo(cwd) as server, server.client() as c:
        large = "x" * 5000000
        equal(c({"insert": "c", "documents": [{"_id": 0}, {"_id": 1, "a": large}, {"_id": 2}]}, db="d")["n"], 3)
        equal(len(c({"find": "c", "filter": {"_id": 1}}, db="d")["cursor"]["firstBatch"][0]["a"]), 5000000)
        many = sequence("documents", *({"_id": n} for n in range(10, 5010)))
        equal(c({"insert": "c"}, db="d", sections=many)["n"], 5000)
        equal(c({"count": "c"}, db="d")["n"], 5003)
        equal(c({"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, db="d")["n"], 5003)
        answer = c({"insert": "c", "documents": [{"a": "x" * (16 * 1024 * 1024)}]}, db="d")
        equal((answer["n"], answer["writeErrors"][0]["code"]), (0, 10334))


@test
def an_unknown_stage_fails_an_update_before_anything_is_done(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 1}]}, db="d")
        good = {"$set": {"x": 1}}
        for stage, code in (({"$nosuch": 1}, 40324), ({}, 40323), ({"$set": {}, "$unset": "x"}, 40323), (1, 14),
                            ({"$search": {}}, 31082)):
            updates = [{"q": {}, "u": [good]}, {"q": {}, "u": [good, stage]}]
            equal(c.fails({"update": "c", "updates": updates}, db="d")["code"], code)
            ops = [{"update": 0, "filter": {}, "updateMods": u["u"]} for u in updates]
            equal(c.fails({"bulkWrite": 1, "ops": ops, "nsInfo": [{"ns": "d.c"}]}, db="admin")["code"], code)
        equal(c({"count": "c", "query": {"x": 1}}, db="d")["n"], 0)
        # A stage that updates cannot have fails its statement.
        answer = c({"update": "c", "updates": [{"q": {}, "u": [good]}, {"q": {}, "u": [{"$match": {}}]}]}, db="d")
        equal((answer["nModified"], answer["writeErrors"][0]["index"]), (1, 1))


@test
def what_is_not_there_yet_is_refused_by_name(cwd):
    with Mongo(cwd) as server, server.client() as c:
        for document, code in (({"find": "c", "nosuch": 1}, 40415),
                               ({"find": 1}, 73), ({"find": ""}, 73),
                               ({"insert": "c", "documents": []}, 16),
                               ({"insert": "c", "documents": [1]}, 14),
                                                              ({"aggregate": "c", "pipeline": []}, 9)):
            equal(c.fails(document, db="d")["code"], code)
        answer = c({"insert": "c", "documents": [{"_id": 1}], "writeConcern": {"w": 3}}, db="d")
        equal((answer["n"], answer["writeConcernError"]["code"]), (1, 100))
        # A command that has failed tells it, too, if it was about to write.
        far = {"writeConcern": {"w": 3}}
        c({"create": "x", "collation": {"locale": "en"}}, db="d")
        c({"create": "y"}, db="d")
        c({"create": "z"}, db="d")
        for document, code in (({"create": "x"}, 48), ({"drop": "none"}, None), ({"drop": "y"}, None), ({"insert": "x", "documents": []}, 16),
                               ({"renameCollection": "d.x", "to": "d.z"}, 48), ({"collMod": "none"}, 26),
                               ({"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"_id": 1}}}, 66),
                               ({"createIndexes": "c", "indexes": [{"key": {"_id": 1, "x": 0}, "name": "x"}]}, 67)):
            db = "admin" if "renameCollection" in document else "d"
            answer = c({**document, **far}, db=db) if code is None else c.fails({**document, **far}, db=db)
            equal((document, answer.get("code"), answer.get("writeConcernError", {}).get("code")),
                  (document, code, None if code in (16, 67) else 100))
        equal([c.fails({"drop": "none", "writeConcern": concern}, db="d")["code"]
               for concern in (1, "majority", [], {"j": "yes"}, {"w": 1, "j": {}})], [14] * 5)
        for concern in (None, {}, {"j": None}, {"j": 1.5}, {"j": True, "wtimeout": 1}):
            c({"insert": "c", "documents": [{}], "writeConcern": concern}, db="d")
        equal([c.fails({name: 1, **more}, db="d")["code"] for name, more in (
            ("find", {}), ("insert", {"documents": [{}]}), ("drop", {}), ("listIndexes", {}))], [73] * 4)


@test
def errors_are_not_cut_inside_a_character(cwd):
    with Mongo(cwd) as server, server.client() as c:
        for first in ("", "x"):
            name = first + "\u00e4" * 300
            for command in ({name: 1}, {"find": "c", name: 1}, {"create": "c", name: 1},
                            {"find": "c", "filter": {"a": {"$" + name: 1}}}):
                assert "\u00e4" * 40 in c.fails(command, db="d")["errmsg"]
            failed = c({"update": "c", "updates": [{"q": {}, "u": {"$" + name: {"a": 1}}}]}, db="d")["writeErrors"]
            assert "\u00e4" * 40 in failed[0]["errmsg"]


@test
def a_role_on_a_database_is_one_on_its_collections(cwd):
    with Mongo(cwd, env=ADMIN) as server:
        server.person("ann", "pass", "mongo:readWrite@shop")
        server.person("bob", "pass", "mongo:read@shop")
        with server.client() as c:
            c.login("ann", "pass")
            c({"insert": "c", "documents": [{"_id": 1}]}, db="shop")
            equal(c.fails({"insert": "c", "documents": [{"_id": 1}]}, db="other")["code"], 13)
            equal(c.fails({"dropDatabase": 1}, db="shop")["code"], 13)
        with server.client() as c:
            c.login("bob", "pass")
            equal(ids(c({"find": "c"}, db="shop")), [1])
            equal(c.fails({"insert": "c", "documents": [{"_id": 2}]}, db="shop")["code"], 13)
            equal(c.fails({"find": "c"}, db="other")["code"], 13)
            equal([one["name"] for one in c({"listDatabases": 1})["databases"]], ["shop"])


# ---- Who may do what ----

@test
def where_there_is_an_administrator_others_log_in_first(cwd):
    with Mongo(cwd, env=ADMIN) as server, server.client() as c:
        equal(c({"hello": 1})["ok"], 1.0)
        equal(c({"ping": 1})["ok"], 1.0)
        answer = c.fails({"startSession": 1})
        equal((answer["code"], answer["errmsg"]), (13, "Command startSession requires authentication"))
        equal(c({"connectionStatus": 1})["authInfo"],
              {"authenticatedUsers": [], "authenticatedUserRoles": []})
        c.login("root", "secret")
        equal(c({"connectionStatus": 1})["authInfo"],
              {"authenticatedUsers": [{"user": "root", "db": "admin"}],
               "authenticatedUserRoles": [{"role": "root", "db": "admin"}]})
        equal(c({"serverStatus": 1})["ok"], 1.0)
        c({"logout": 1})
        equal(c.fails({"serverStatus": 1})["code"], 13)
        # What strangers send is small.
        c.send_raw(OP_MSG, b"x" * 70000)
        contains(c.read()[2]["errmsg"], "NET_STRANGER_BYTES")


@test
def a_wrong_password_and_an_unknown_name_are_answered_alike(cwd):
    with Mongo(cwd, env=ADMIN) as server, server.client() as c:
        seen = []
        for name in ("root", "nobody", "nobody"):
            scram = Scram(name, "wrong")
            answer = c({"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": scram.first()})
            seen.append(dict(part.split("=", 1) for part in answer["payload"].decode().split(",")))
            answer = c.fails({"saslContinue": 1, "conversationId": answer["conversationId"],
                              "payload": scram.final(answer["payload"])})
            equal((answer["code"], answer["codeName"], answer["errmsg"]),
                  (18, "AuthenticationFailed", "Authentication failed."))
        equal(seen[0]["i"], seen[1]["i"])
        equal(seen[1]["s"], seen[2]["s"])
        equal(c.fails({"saslContinue": 1, "conversationId": 9, "payload": b""})["code"], 17)
        equal(c.fails({"saslStart": 1, "mechanism": "GSSAPI", "payload": b""})["code"], 334)
        equal(c.fails({"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,x"})["code"], 18)
        equal(c.fails({"saslStart": 1, "mechanism": "PLAIN", "payload": b"\0root\0secret"})["code"], 334)


@test
def a_name_that_fails_too_often_is_locked_out(cwd):
    with Mongo(cwd, env=ADMIN) as server, server.client() as c:
        for _ in range(5):
            try:
                c.login("root", "wrong")
            except Failure as failure:
                equal(failure.code, 18)
        try:
            c.login("root", "secret")
            raise AssertionError("it is not locked out")
        except Failure as failure:
            contains(str(failure), "Account is temporarily locked")


@test
def people_of_all_doors_have_the_rights_of_their_roles(cwd):
    with Mongo(cwd, env=ADMIN) as server:
        server.person("ann,=", "pa=ss", "mongo:read@shop", "mongo:clusterMonitor", "writer")
        server.person("bob", "pass")
        with server.client() as c:
            c.login("ann,=", "pa=ss", db="shop", skip_empty=False)
            status = c({"connectionStatus": 1, "showPrivileges": True})["authInfo"]
            equal(status["authenticatedUserRoles"], [{"role": "read", "db": "shop"},
                                                     {"role": "clusterMonitor", "db": "admin"}])
            figures, cluster, shop = status["authenticatedUserPrivileges"]
            equal((figures["resource"], figures["actions"]), ({"db": "", "collection": ""}, ["collStats", "dbStats"]))
            equal((cluster["resource"], shop["resource"]), ({"cluster": True}, {"db": "shop", "collection": ""}))
            contains(cluster["actions"], "serverStatus")
            contains(shop["actions"], "find")
            equal(c({"serverStatus": 1})["ok"], 1.0)
            equal(c.fails({"killAllSessions": []})["code"], 13)
        with server.client() as c:
            c.login("bob", "pass")
            answer = c.fails({"serverStatus": 1})
            equal((answer["code"], answer["errmsg"]),
                  (13, "not authorized on admin to execute command serverStatus"))


@test
def commands_about_the_server_need_their_rights(cwd):
    commands = [{"connPoolStats": 1}, {"getDefaultRWConcern": 1}, {"dataSize": "shop.c"}, {"dataSize": "other.c"},
                {"setParameter": 1, "transactionLifetimeLimitSeconds": 60}, {"whatsmyuri": 1}]
    may = {"nobody": ((), "_____w"), "reader": (("mongo:read@shop",), "__d__w"),
           "monitor": (("mongo:clusterMonitor",), "cs___w"), "host": (("mongo:hostManager",), "____pw"),
           "manager": (("mongo:clusterManager",), "_s___w"),
           "cluster": (("mongo:clusterAdmin", "mongo:readAnyDatabase"), "csddpw")}
    with Mongo(cwd, env=ADMIN) as server:
        for name, (roles, expected) in may.items():
            server.person(name, "pass", *roles)
            with server.client() as c:
                c.login(name, "pass")
                # A standalone server has no defaults to tell (51300).
                seen = [c.fails(command)["code"] if mark in "_s" else c(command)["ok"]
                        for command, mark in zip(commands, expected)]
                equal((name, seen), (name, [{"_": 13, "s": 51300}.get(mark, 1.0) for mark in expected]))


@test
def hello_may_begin_a_login(cwd):
    with Mongo(cwd, env=ADMIN) as server, server.client() as c:
        scram = Scram("root", "secret")
        answer = c({"hello": 1, "saslSupportedMechs": "admin.root", "speculativeAuthenticate":
                    {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": scram.first(),
                     "db": "admin", "options": {"skipEmptyExchange": True}}})
        equal(answer["saslSupportedMechs"], ["SCRAM-SHA-256"])
        step = answer["speculativeAuthenticate"]
        equal(step["done"], False)
        step = c({"saslContinue": 1, "conversationId": step["conversationId"],
                  "payload": scram.final(step["payload"])})
        equal((step["done"], step["payload"]), (True, scram.expected))
        equal(c({"serverStatus": 1})["ok"], 1.0)
        answer = c({"hello": 1, "speculativeAuthenticate":
                    {"saslStart": 1, "mechanism": "MONGODB-X509", "payload": b""}})
        assert "speculativeAuthenticate" not in answer


@test
def a_person_who_is_removed_is_nobody_a_second_later(cwd):
    with Mongo(cwd, env=ADMIN) as server:
        server.person("ann", "pass", "mongo:clusterMonitor")
        token = base64.b64encode(b"root:secret").decode()
        headers = {"Authorization": f"Basic {token}"}
        with server.client() as c:
            c.login("ann", "pass")
            equal(c({"serverStatus": 1})["ok"], 1.0)
            _, document = server.request("GET", "/_users/org.couchdb.user:ann", headers=headers)
            server.request("DELETE", f"/_users/org.couchdb.user:ann?rev={document['_rev']}",
                           headers=headers)
            while True:
                try:
                    c({"serverStatus": 1})
                except Failure as failure:
                    equal(failure.code, 13)
                    break


@test
def a_password_that_is_changed_ends_the_login_of_connections(cwd):
    with Mongo(cwd, env=ADMIN) as server, server.client() as root:
        root.login("root", "secret")
        for name in ("ann", "bob"):
            root({"createUser": name, "pwd": "pass", "roles": ["clusterMonitor"], "$db": "admin"})
        with server.client() as ann, server.client() as bob:
            ann.login("ann", "pass")
            bob.login("bob", "pass")
            equal(ann({"serverStatus": 1})["ok"], 1.0)
            root({"updateUser": "ann", "pwd": "another", "$db": "admin"})
            while True:
                try:
                    ann({"serverStatus": 1})
                except Failure as failure:
                    equal(failure.code, 13)
                    break
            # A change of somebody else is none of theirs.
            equal(bob({"serverStatus": 1})["ok"], 1.0)
            ann.login("ann", "another")
            equal(ann({"serverStatus": 1})["ok"], 1.0)


@test
def a_password_in_clear_is_taken_over_tls(cwd):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", cwd / "cert.key", "-out", cwd / "cert.pem"], check=True, capture_output=True)
    (cwd / "ini").write_text(f"{ROUNDS}[ssl]\ncert_file = {cwd}/cert.pem\nkey_file = {cwd}/cert.key\n")
    context = ssl.create_default_context(cafile=cwd / "cert.pem")
    with Mongo(cwd, tls=True, env=ADMIN) as server:
        with Client(server.tls_port, context=context) as c:
            # Who checks the certificate's name would not find it in an address that is told.
            assert "setName" not in c({"hello": 1})
            answer = c({"saslStart": 1, "mechanism": "PLAIN", "payload": b"\0root\0secret"},
                       db="$external")
            equal((answer["done"], answer["payload"]), (True, b""))
            equal(c({"serverStatus": 1})["ok"], 1.0)
        with Client(server.tls_port, context=context) as c:
            equal(c.fails({"saslStart": 1, "mechanism": "PLAIN", "payload": b"\0root\0wrong"})["code"], 18)
            c.login("root", "secret")


@test
def an_administrator_whose_hash_is_given_logs_in_after_one_login_with_the_password(cwd):
    with Mongo(cwd, env=ADMIN) as server:
        token = base64.b64encode(b"root:secret").decode()
        _, admins = server.request("GET", "/_node/_local/_config/admins",
                                   headers={"Authorization": f"Basic {token}"})
    (cwd / "ini").write_text(f"{ROUNDS}[admins]\nroot = {admins['root']}\n")
    with Mongo(cwd) as server, server.client() as c:
        try:
            c.login("root", "secret")
            raise AssertionError("it has no keys yet")
        except Failure as failure:
            equal(failure.code, 18)
        status, _ = server.request("GET", "/_all_dbs", headers={"Authorization": f"Basic {token}"})
        equal(status, 200)
        c.login("root", "secret")


@test
def many_connections_are_served_and_closed_when_it_stops(cwd):
    with Mongo(cwd) as server:
        clients = [server.client() for _ in range(50)]
        threads = [threading.Thread(target=lambda c=c: [c({"ping": 1}) for _ in range(20)])
                   for c in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(clients[0]({"serverStatus": 1})["connections"]["current"], 50)
        equal(server.stop(), 0)
        for c in clients:
            equal(c.read_raw(), None)
            c.close()


@test
def garbage_harms_nobody(cwd):
    with Mongo(cwd) as server:
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 100, b"\xff" * 100,
                     struct.pack("<iiii", 40, 1, 0, OP_MSG) + b"\xff" * 24):
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as s:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while s.recv(4096):
                    pass
        with server.client() as c:
            equal(c({"ping": 1}), {"ok": 1.0})


main()
