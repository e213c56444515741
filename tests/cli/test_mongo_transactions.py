"""Transactions of several commands through MongoDB's door."""

import random
import signal
import threading
import time

from harness import contains, equal, main, ok, test
from mongo import Failure, Int64
from mongo_server import MongoServer


class Mongo(MongoServer):
    def __init__(self, cwd, *options, **kwargs):
        # Few iterations, so that people log in quickly.
        super().__init__(cwd, *options, ini="[mongo]\nreplica_set = frond\n\n[chttpd_auth]\niterations = 10\n", **kwargs)


class Session:
    """A session and its transactions, each numbered anew."""

    next = 0

    def __init__(self, client, id=None):
        Session.next += 1
        self.client = client
        self.id = id or Session.next.to_bytes(16, "big")
        self.number = 0
        self.begins = False

    def start(self):
        self.number += 1
        self.begins = True
        return self

    def members(self):
        more = {"lsid": {"id": self.id}, "txnNumber": Int64(self.number), "autocommit": False}
        if self.begins:
            more["startTransaction"] = True
            self.begins = False
        return more

    def __call__(self, document, db="d"):
        return self.client({**document, **self.members()}, db)

    def fails(self, document, db="d"):
        return self.client.fails({**document, **self.members()}, db)

    def commit(self):
        return self({"commitTransaction": 1}, "admin")

    def abort(self):
        return self({"abortTransaction": 1}, "admin")

    # What transactions are made of.
    def insert(self, *documents, collection="c"):
        return self({"insert": collection, "documents": list(documents)})

    def replace(self, id, document, collection="c"):
        return self({"update": collection, "updates": [{"q": {"_id": id}, "u": document}]})

    def find(self, id=None, collection="c"):
        return self({"find": collection, "filter": {} if id is None else {"_id": id}})["cursor"]["firstBatch"]


def documents(client, collection="c", db="d"):
    return client({"find": collection}, db)["cursor"]["firstBatch"]


@test
def a_transaction_is_seen_when_it_is_committed(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 1, "a": 1}, {"_id": 2}]}, "d")
        s = Session(c).start()
        equal(s.insert({"_id": 3})["n"], 1)
        equal(s.replace(1, {"a": 2})["nModified"], 1)
        equal(s({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]})["n"], 1)
        s.insert({"_id": 1}, collection="other")
        # It sees what it has done, and nobody else does.
        equal(s.find(), [{"_id": 1, "a": 2}, {"_id": 3}])
        equal(documents(c), [{"_id": 1, "a": 1}, {"_id": 2}])
        equal(documents(c, "other"), [])
        answer = s.commit()
        assert answer["operationTime"]
        equal(documents(c), [{"_id": 1, "a": 2}, {"_id": 3}])
        equal(documents(c, "other"), [{"_id": 1}])
        # Again is fine, and changes nothing.
        s.commit()
        equal(s.fails({"find": "c"})["code"], 256)
        equal(s.fails({"abortTransaction": 1}, "admin")["code"], 256)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_transaction_that_is_aborted_leaves_nothing(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 1}]}, "d")
        s = Session(c).start()
        s.insert({"_id": 2})
        s({"create": "made"})
        s.insert({"_id": 1}, collection="also")
        s.abort()
        equal(documents(c), [{"_id": 1}])
        names = c({"listCollections": 1}, "d")["cursor"]["firstBatch"]
        equal([n["name"] for n in names], ["c"])
        failure = s.fails({"find": "c"})
        equal((failure["code"], failure["codeName"], failure["errorLabels"]),
              (251, "NoSuchTransaction", ["TransientTransactionError"]))
        equal(s.fails({"commitTransaction": 1}, "admin")["code"], 251)
        # The same session goes on with the next number.
        s.start().insert({"_id": 3})
        s.commit()
        equal(len(documents(c)), 2)


@test
def indexes_are_made_in_a_transaction_where_nothing_has_to_be_built(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "full", "documents": [{"_id": 1, "n": 1}]}, "d")
        c({"create": "empty"}, "d")

        def indexes(collection):
            return [i["name"] for i in c({"listIndexes": collection}, "d")["cursor"]["firstBatch"]]
        command = {"indexes": [{"key": {"n": 1}, "name": "n", "unique": True}]}
        s = Session(c).start()
        equal(s({"createIndexes": "new", **command})["createdCollectionAutomatically"], True)
        equal(s({"createIndexes": "new", **command})["note"], "all indexes already exist")
        equal(s({"createIndexes": "empty", **command})["numIndexesAfter"], 2)
        s({"create": "made"})
        s({"createIndexes": "made", **command})
        s.insert({"_id": 1, "n": 1}, {"_id": 2, "n": [2, 3]}, collection="new")
        s({"update": "new", "updates": [{"q": {"n": 1}, "u": {"$set": {"n": 5}}}]})
        for n, found in (1, []), (3, [2]), (5, [1]):
            answer = s({"find": "new", "filter": {"n": n}, "hint": "n"})
            equal([d["_id"] for d in answer["cursor"]["firstBatch"]], found)
        equal(c.fails({"listIndexes": "new"}, "d")["code"], 26)
        s.commit()
        equal([indexes(name) for name in ("new", "empty", "made")], [["_id_", "n"]] * 3)
        equal(c({"insert": "new", "documents": [{"n": 2}]}, "d")["writeErrors"][0]["code"], 11000)
        answer = c({"find": "new", "filter": {"n": 5}, "hint": "n"}, "d")
        equal(answer["cursor"]["firstBatch"], [{"_id": 1, "n": 5}])

        # A unique index is that also for what its own transaction writes.
        s.start()({"createIndexes": "twice", **command})
        s.insert({"_id": 1, "n": 1}, collection="twice")
        equal(s({"insert": "twice", "documents": [{"_id": 2, "n": 1}]})["writeErrors"][0]["code"], 11000)
        equal(s.fails({"find": "twice"})["code"], 251)
        # What is aborted leaves none.
        s.start()({"createIndexes": "made", "indexes": [{"key": {"m": 1}, "name": "m"}]})
        s.abort()
        equal(indexes("made"), ["_id_", "n"])
        # Documents would have to be put into it; the transaction ends.
        s.start()
        equal(s.fails({"createIndexes": "full", **command})["code"], 263)
        equal(s.fails({"find": "full"})["code"], 251)
        s.start().insert({"_id": 1}, collection="other")
        equal(s.fails({"createIndexes": "other", **command})["code"], 263)
        equal((indexes("full"), documents(c, "other")), (["_id_"], []))
        # A document that somebody has written meanwhile would have no entry, so the commit fails.
        s.start()({"createIndexes": "empty", "indexes": [{"key": {"m": 1}, "name": "m"}]})
        c({"insert": "empty", "documents": [{"_id": 1, "m": 1}]}, "d")
        equal(s.fails({"commitTransaction": 1}, "admin")["code"], 112)
        equal(indexes("empty"), ["_id_", "n"])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_snapshot_does_not_move(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": i} for i in range(300)]}, "d")
        s = Session(c).start()
        cursor = s({"find": "c", "batchSize": 100, "readConcern": {"level": "snapshot"}})["cursor"]
        c({"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, "d")
        seen = cursor["firstBatch"]
        while cursor["id"]:
            # Outside of the transaction its cursor is nobody's.
            equal(c.fails({"getMore": Int64(cursor["id"]), "collection": "c", "lsid": {"id": s.id}},
                          "d")["code"], 50740)
            cursor = s({"getMore": Int64(cursor["id"]), "collection": "c", "batchSize": 100})["cursor"]
            seen += cursor["nextBatch"]
        equal(len(seen), 300)
        s.commit()
        equal(documents(c), [])


@test
def pipelines_and_modifications_see_their_transaction(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": i, "n": i % 3, "text": "x" * 100} for i in range(300)]}, "d")
        c({"insert": "other", "documents": [{"_id": i} for i in range(3)]}, "d")
        s = Session(c).start()
        s.insert({"_id": 300, "n": 2})
        answer = s({"findAndModify": "c", "query": {"_id": 300}, "update": {"$inc": {"n": 5}}, "new": True})
        equal(answer["value"], {"_id": 300, "n": 7})
        c({"delete": "c", "deletes": [{"q": {"_id": {"$lt": 10}}, "limit": 0}]}, "d")
        equal(s({"distinct": "c", "key": "n"})["values"], [0, 1, 2, 7])
        equal(c({"distinct": "c", "key": "n"}, "d")["values"], [1, 2, 0])
        lookup = {"$lookup": {"from": "other", "let": {"n": "$n"}, "as": "found",
                              "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$n"]}}}]}}
        cursor = s({"aggregate": "c", "pipeline": [lookup, {"$unionWith": "other"}],
                    "cursor": {"batchSize": 7}})["cursor"]
        found = cursor["firstBatch"]
        while cursor["id"]:
            more = {"getMore": Int64(cursor["id"]), "collection": "c", "batchSize": 50}
            equal(c.fails({**more, "lsid": {"id": s.id}}, "d")["code"], 50740)
            cursor = s(more)["cursor"]
            found += cursor["nextBatch"]
        equal([doc["_id"] for doc in found], list(range(301)) + list(range(3)))
        equal([len(doc["found"]) for doc in found[:301]], [1] * 300 + [0])
        s.commit()
        equal(c({"distinct": "c", "key": "n"}, "d")["values"], [1, 2, 0, 7])


@test
def a_pipeline_that_fails_in_a_join_ends_its_transaction(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": i} for i in range(50)]}, "d")
        s = Session(c).start()
        s.insert({"_id": 100})
        fails = [{"$set": {"a": {"$divide": [1, {"$subtract": ["$_id", 30]}]}}}]
        join = {"$lookup": {"from": "c", "as": "found", "pipeline": fails}}
        equal(s.fails({"aggregate": "c", "pipeline": [join], "cursor": {}})["code"], 2)
        equal(s.fails({"find": "c"})["code"], 251)
        for stage in ({"$out": "o"}, {"$changeStream": {}}):
            s.start().insert({"_id": 100})
            equal(s.fails({"aggregate": "c", "pipeline": [stage], "cursor": {}})["code"], 263)
        equal(len(documents(c)), 50)


@test
def large_documents_are_refused_by_the_name_of_the_limit(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 1}]}, "d")
        large = "x" * 3000000
        for name in ("c", "made"):
            s = Session(c).start()
            equal(s.fails({"insert": name, "documents": [{"_id": 2, "text": large}]})["code"], 257)
        s = Session(c).start()
        update = {"q": {"_id": 1}, "u": {"$set": {"text": large}}}
        equal(s({"update": "c", "updates": [update]})["writeErrors"][0]["code"], 257)
        equal(s.fails({"commitTransaction": 1}, "admin")["code"], 251)
        equal(documents(c), [{"_id": 1}])


@test
def of_two_that_write_the_same_the_first_wins(cwd):
    with Mongo(cwd) as server, server.client() as c, server.client() as d:
        c({"insert": "c", "documents": [{"_id": 1, "n": 0}, {"_id": 2, "n": 0}]}, "d")
        one, two = Session(c).start(), Session(d).start()
        def conflicts(command):
            failure = two.fails(command)
            equal((failure["code"], failure["codeName"], failure["errorLabels"]),
                  (112, "WriteConflict", ["TransientTransactionError"]))
            equal(two.fails({"commitTransaction": 1}, "admin")["code"], 251)
        commands = [{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}]},
                    {"delete": "c", "deletes": [{"q": {"n": {"$gte": 0}}, "limit": 0}]},
                    {"findAndModify": "c", "query": {"_id": 1}, "update": {"n": 7}},
                    {"insert": "c", "documents": [{"_id": 7}, {"_id": 8}]}]
        one.replace(1, {"n": 1})
        one.insert({"_id": 8})
        # The other one is open, and later has been committed.
        for command in commands:
            two.start().find(2)
            conflicts(command)
        opened = [Session(d).start() for _ in commands]
        for s in opened:
            s.find(2)
        one.replace(1, {"n": 2})
        one.commit()
        for two, command in zip(opened, commands):
            conflicts(command)
        equal(documents(c)[0], {"_id": 1, "n": 2})
        two = Session(d)
        # What an aborted one had is free.
        one.start().replace(1, {"n": 5})
        one({"abortTransaction": 1}, "admin")
        two.start().replace(1, {"n": 1})
        two.commit()
        c({"delete": "c", "deletes": [{"q": {"_id": 8}, "limit": 1}]}, "d")
        # Different documents are no conflict, nor is a document that was only read.
        one.start().replace(1, {"n": 3})
        two.start().find(1)
        two.replace(2, {"n": 4})
        one.commit()
        two.commit()
        equal(documents(c), [{"_id": 1, "n": 3}, {"_id": 2, "n": 4}])
        # Both add the same document, or make the same collection.
        one.start().insert({"_id": 9}, collection="new")
        two.start().insert({"_id": 9}, collection="new")
        two.commit()
        equal(one.fails({"commitTransaction": 1}, "admin")["code"], 112)


@test
def a_write_outside_waits_for_the_transaction_that_has_its_document(cwd):
    with Mongo(cwd) as server, server.client() as c, server.client(timeout=100) as waiting:
        c({"insert": "c", "documents": [{"_id": i, "n": 0} for i in range(3)]}, "d")
        commands = [{"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 10}}}]},
                    {"update": "c", "updates": [{"q": {}, "u": {"$inc": {"n": 100}}, "multi": True}]},
                    {"findAndModify": "c", "query": {"_id": 1}, "update": {"$inc": {"n": 1000}}},
                    {"insert": "c", "documents": [{"_id": 5}]},
                    {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}]
        s = Session(c)

        def is_waiting(command):
            return any(next(iter(command)) in op.get("command", {}) and op["microsecs_running"] > 100000
                       for op in c({"currentOp": 1})["inprog"])
        for command in commands:
            s.start()
            s({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]})
            s.insert({"_id": 5})
            answers = []
            thread = threading.Thread(target=lambda: answers.append(waiting(command, "d")))
            thread.start()
            while not is_waiting(command):
                pass
            equal(answers, [])
            # Others are not in the way, and the time of one that waits is limited.
            c({"update": "c", "updates": [{"q": {"_id": 2}, "u": {"$inc": {"n": 1}}}]}, "d")
            equal(c.fails({**command, "maxTimeMS": 20}, "d")["code"], 50)
            if command is commands[0]:
                s({"abortTransaction": 1}, "admin")
            else:
                s.commit()
            thread.join()
            if "documents" in command:
                equal(answers[0]["writeErrors"][0]["code"], 11000)
            c({"delete": "c", "deletes": [{"q": {"_id": 5}, "limit": 1}]}, "d")
        equal(documents(c), [{"_id": 0, "n": 100}, {"_id": 2, "n": 105}])
        # A transaction that somebody else ends is no longer waited for.
        s.start().replace(2, {"n": 0})
        delete = {"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}
        thread = threading.Thread(target=lambda: waiting(delete, "d"))
        thread.start()
        while not is_waiting(delete):
            pass
        c({"killSessions": [{"id": s.id}]}, "admin")
        thread.join()
        equal(documents(c), [{"_id": 0, "n": 100}])


@test
def a_statement_that_fails_ends_the_transaction(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 1}]}, "d")
        s = Session(c).start()
        s.insert({"_id": 2})
        equal(s.insert({"_id": 1})["writeErrors"][0]["code"], 11000)
        equal(s.fails({"commitTransaction": 1}, "admin")["code"], 251)
        equal(documents(c), [{"_id": 1}])
        s.start().insert({"_id": 2})
        equal(s.fails({"find": "c", "skip": -1})["code"], 2)
        equal(s.fails({"find": "c"})["code"], 251)


@test
def what_a_request_says_of_its_transaction_has_to_fit(cwd):
    with Mongo(cwd) as server, server.client() as c:
        lsid = {"lsid": {"id": bytes(16)}}
        number = {"txnNumber": Int64(5)}
        for more, code in (({"autocommit": False}, 72), ({**lsid, "autocommit": False}, 72),
                           ({**lsid, **number, "startTransaction": True}, 72),
                           ({**lsid, **number, "autocommit": True}, 72),
                           ({**lsid, **number, "autocommit": False, "startTransaction": False}, 72),
                           ({**lsid, **number, "autocommit": False}, 251),
                           ({**lsid, **number, "autocommit": 1}, 14)):
            equal(c.fails({"find": "c", **more}, "d")["code"], code)
        s = Session(c)
        s.number = 4
        s.start().insert({"_id": 1})
        equal(s.fails({"count": "c"})["code"], 263)
        equal(s.fails({"drop": "c"})["code"], 263)
        equal(s.fails({"find": "c", "readConcern": {"level": "local"}})["code"], 72)
        # It goes on all the same: these were not commands of it.
        s.begins = True
        equal(s.fails({"find": "c"})["code"], 50911)
        equal(c.fails({"commitTransaction": 1})["code"], 125)
        s.commit()
        old = Session(c, s.id)
        equal(old.start().fails({"find": "c"})["code"], 225)
        # Its number cannot be used for a write that may be sent again either.
        write = {"insert": "c", "documents": [{"_id": 2}], "lsid": {"id": s.id}}
        equal(c.fails({**write, "txnNumber": Int64(4)}, "d")["code"], 225)
        equal(c.fails({**write, "txnNumber": Int64(5)}, "d")["code"], 217)
        equal(c({**write, "txnNumber": Int64(6)}, "d")["n"], 1)
        s.number = 5
        equal(s.start().fails({"find": "c"})["code"], 225)


@test
def a_session_that_ends_takes_its_transaction_along(cwd):
    with Mongo(cwd) as server, server.client() as c:
        for end in ({"endSessions": [{"id": b"0123456789abcdef"}]}, {"killSessions": [{"id": b"0123456789abcdef"}]},
                    {"killAllSessions": []}):
            s = Session(c, b"0123456789abcdef")
            s.number = Session.next * 10
            s.start().insert({"_id": 1})
            c(end)
            equal(s.fails({"commitTransaction": 1}, "admin")["code"], 251)
        # A newer number does so, too.
        s.start().insert({"_id": 1})
        s.start().insert({"_id": 2})
        s.commit()
        equal(documents(c), [{"_id": 2}])


@test
def sessions_of_one_person_are_killed(cwd):
    env = {"FROND_ADMIN": "root:secret"}
    with Mongo(cwd, env=env) as server, server.client() as root, server.client() as ann, server.client() as bob:
        root.login("root", "secret")
        for name in ("ann", "bob"):
            root({"createUser": name, "pwd": "pass", "roles": [{"role": "readWrite", "db": "d"}]})
        ann.login("ann", "pass")
        bob.login("bob", "pass")
        ann({"create": "c"}, "d")
        everybody = [Session(ann, b"0123456789abcdef"), Session(bob, b"0123456789abcdef"),
                     Session(bob, b"fedcba9876543210")]

        def open_after(command, client=root):
            """Which of them can go on after the command."""
            for s in everybody:
                s.start()
                s({"find": "c"})
            client(command)
            left = []
            for i, s in enumerate(everybody):
                try:
                    s.abort()
                    left.append(i)
                except Failure as failure:
                    equal(failure.code, 251)
            return left

        equal(open_after({"killAllSessions": [{"user": "ann", "db": "admin"}]}), [1, 2])
        equal(open_after({"killAllSessions": [{"user": "bob", "db": "admin"}]}), [0])
        equal(open_after({"killAllSessions": []}), [])
        equal(open_after({"killAllSessionsByPattern": [{"lsid": {"id": everybody[0].id}}]}), [2])
        equal(open_after({"killAllSessionsByPattern": [{}]}), [])
        # One's own only.
        equal(open_after({"killSessions": [{"id": everybody[0].id}]}, bob), [0, 2])
        equal(open_after({"endSessions": [{"id": everybody[0].id}]}, ann), [1, 2])
        equal(root.fails({"killAllSessions": [{"user": "ann", "db": "admin"}, {"user": "bob"}]})["code"], 40414)
        equal(root.fails({"killAllSessionsByPattern": [{"uid": b"x"}]})["code"], 238)
        equal(bob.fails({"killAllSessionsByPattern": []})["code"], 13)


@test
def a_large_transaction_is_refused(cwd):
    with Mongo(cwd) as server, server.client(timeout=120) as c:
        c({"create": "c"}, "d")
        s = Session(c).start()
        code = None
        for i in range(20):
            try:
                s.insert({"_id": i, "text": "x" * 900000})
            except Failure as failure:
                code = failure.code
                break
        else:
            code = s.fails({"commitTransaction": 1}, "admin")["code"]
        equal(code, 257)
        equal(documents(c), [])


@test
def a_commit_answers_for_its_write_concern(cwd):
    with Mongo(cwd) as server, server.client() as c:
        s = Session(c).start()
        s.insert({"_id": 1})
        answer = s({"commitTransaction": 1, "writeConcern": {"w": 10}}, "admin")
        equal(answer["writeConcernError"]["code"], 100)
        # It has taken place nevertheless, and says so again.
        answer = s({"commitTransaction": 1, "writeConcern": {"w": 10}}, "admin")
        equal(answer["writeConcernError"]["code"], 100)
        equal(c({"count": "c"}, "d")["n"], 1)


@test
def a_collection_of_a_transaction_is_no_conflict_with_others(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "first", "documents": [{"_id": 1}]}, "d")
        s = Session(c).start()
        s.insert({"_id": 1}, collection="made")
        c({"insert": "other", "documents": [{"_id": 1}]}, "d")
        c({"create": "made"}, "e")
        s.insert({"_id": 2}, collection="made")
        c({"drop": "other"}, "d")
        s.insert({"_id": 3}, collection="made")
        s.commit()
        equal(len(documents(c, "made")), 3)
        s.start().insert({"_id": 1}, collection="same")
        c({"create": "same"}, "d")
        equal(s.fails({"commitTransaction": 1}, "admin")["code"], 112)


@test
def a_transaction_lasts_as_long_as_the_setting_says(cwd):
    with Mongo(cwd) as server, server.client() as c:
        asked = {"getParameter": 1, "transactionLifetimeLimitSeconds": 1}
        equal(c(asked)["transactionLifetimeLimitSeconds"], 60)
    (cwd / "more").write_text("[mongo]\nreplica_set = frond\ntransaction_seconds = 1\n")
    with Mongo(cwd, "--config", "more") as server, server.client() as c:
        equal(c(asked)["transactionLifetimeLimitSeconds"], 1)
        c({"create": "c"}, "d")
        s = Session(c).start()
        s.insert({"_id": 1})
        # Whoever asks before the time is over finds the transaction.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                s.find(1)
            except Failure as failure:
                answer = failure.answer
                break
            time.sleep(0.05)
        contains((251, 290), answer["code"])
        equal(answer["errorLabels"], ["TransientTransactionError"])
        equal(documents(c), [])


@test
def a_commit_is_told_after_a_crash(cwd):
    """The server is killed behind the commit, whose answer is not read: the repeat tells what became of it,
    and the documents agree."""
    dice = random.Random(11)
    server = Mongo(cwd)
    c = server.client()
    committed, first = 0, True
    try:
        for round in range(8):
            s = Session(c, bytes([round] * 16)).start()
            for i in range(3):
                s.insert({"_id": round * 10 + i})
            told = {"commitTransaction": 1, "$db": "admin", **s.members()}
            c.send(told)
            if dice.random() < 0.5:
                c.read()
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            c.close()
            server = Mongo(cwd)
            c = server.client()
            s.client = c
            try:
                s.commit()
                committed += 1
                expected = 3
            except Failure as failure:
                equal((failure.code, failure.answer["errorLabels"]), (251, ["TransientTransactionError"]))
                expected = 0
            found = [d for d in documents(c) if d["_id"] // 10 == round]
            equal(len(found), expected)
        assert committed >= 1
    finally:
        c.close()
        server.process.kill()
        server.process.wait()


@test
def an_abort_is_told_what_another_process_has_committed(cwd):
    """The process that had the transactions is gone: the store knows which one was committed."""
    with Mongo(cwd) as server, server.client() as c:
        done, open_ = Session(c, b"done" * 4).start(), Session(c, b"open" * 4).start()
        done.insert({"_id": 1})
        done.commit()
        open_.insert({"_id": 2})
    with Mongo(cwd) as server, server.client() as c:
        done.client = open_.client = c
        for _ in range(2):
            failure = done.fails({"abortTransaction": 1}, "admin")
            equal((failure["code"], failure.get("errorLabels")), (256, None))
            failure = open_.fails({"abortTransaction": 1}, "admin")
            equal((failure["code"], failure["errorLabels"]), (251, ["TransientTransactionError"]))
        # It was told as one that never commits.
        equal(open_.fails({"commitTransaction": 1}, "admin")["code"], 251)
        equal(done.commit()["ok"], 1)
        equal(documents(c), [{"_id": 1}])
        done.number -= 1
        equal(done.fails({"abortTransaction": 1}, "admin")["code"], 225)


@test
def sums_stay_where_many_transfer(cwd):
    """Accounts, and threads that move money between two of them, each try in a transaction."""
    accounts, threads, transfers = 6, 4, 25
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": i, "n": 100} for i in range(accounts)]}, "d")
        conflicts, broken = [], []

        def move(seed):
            dice = random.Random(seed)
            with server.client(timeout=60) as own:
                s = Session(own, bytes([seed + 100] * 16))
                for _ in range(transfers):
                    while True:
                        a, b = dice.sample(range(accounts), 2)
                        try:
                            s.start()
                            all_of_them = s.find()
                            if sum(d["n"] for d in all_of_them) != accounts * 100:
                                broken.append(all_of_them)
                            s.replace(a, {"n": all_of_them[a]["n"] - 1})
                            s.replace(b, {"n": all_of_them[b]["n"] + 1})
                            s.commit()
                            break
                        except Failure as failure:
                            equal((failure.code, failure.answer["errorLabels"]),
                                  (112, ["TransientTransactionError"]))
                            conflicts.append(a)
        running = [threading.Thread(target=move, args=(i,)) for i in range(threads)]
        for t in running:
            t.start()
        for t in running:
            t.join()
        equal(broken, [])
        equal(sum(d["n"] for d in documents(c)), accounts * 100)


@test
def what_may_be_in_a_transaction_is_what_mongodb_lets_in(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 1, "a": 2}]}, "d")
        s = Session(c).start()
        equal(s.fails({"killCursors": "c", "cursors": [Int64(1)]})["code"], 263)
        s.begins = True
        s({"find": "c"})
        equal(s({"distinct": "c", "key": "a"})["values"], [2])
        contains(s.fails({"count": "c"})["errmsg"], "$count")
        refused = [({command: "c"}, "d") for command in ("count", "collStats", "drop", "listIndexes", "collMod", "validate")]
        refused += [({"listCollections": 1}, "d"), ({"explain": {"find": "c"}}, "d"), ({"ping": 1}, "d")]
        refused += [({"find": "c"}, db) for db in ("admin", "config", "local")]
        refused += [({"aggregate": "c", "pipeline": [stage], "cursor": {}}, "d") for stage in (
            {"$out": "x"}, {"$merge": "x"}, {"$changeStream": {}}, {"$collStats": {}}, {"$indexStats": {}})]
        refused += [({"aggregate": 1, "pipeline": [{"$listLocalSessions": {}}], "cursor": {}}, "d"),
                    ({"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": "config.c"}]}, "admin")]
        for command, db in refused:
            # What fails inside of the transaction ends it.
            t = Session(c).start()
            t({"find": "c"})
            equal((command, t.fails(command, db)["code"]), (command, 263))
        equal(s.fails({"insert": "c", "documents": [{}], "writeConcern": {"w": 1}})["code"], 72)
        s.insert({"_id": 2})
        s({"commitTransaction": 1, "writeConcern": {"w": "majority"}}, "admin")
        equal(c({"count": "c"}, "d")["n"], 2)


main()
