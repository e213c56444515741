"""Sessions of MongoDB's door: writes that are sent again are done once."""

import random
import signal
import struct
import threading

from harness import contains, equal, main, ok, test
from mongo import Int64, Raw
from mongo_server import MongoServer

ID = bytes(range(16))
OTHER = bytes(range(16, 32))


class Mongo(MongoServer):
    def __init__(self, cwd, *options, replica_set=True, **kwargs):
        super().__init__(cwd, *options, ini="" if replica_set else "[mongo]\nstandalone = true\n", **kwargs)


def numbered(document, number, session=ID, **more):
    return {**document, "lsid": {"id": session}, "txnNumber": Int64(number), **more}


def documents(client, collection, db="d"):
    return client({"find": collection}, db)["cursor"]["firstBatch"]


@test
def a_write_that_is_sent_again_is_done_once(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert = numbered({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]}, 1)
        first = c(insert, "d")
        equal((first["n"], first.get("retriedStmtIds")), (2, None))
        again = c(insert, "d")
        equal((again["n"], again["retriedStmtIds"], again.get("writeErrors")), (2, [0, 1], None))

        update = numbered({"update": "c", "updates": [
            {"q": {"_id": 1}, "u": {"a": 1}}, {"q": {"_id": 3}, "u": {"b": 1}, "upsert": True},
            {"q": {"_id": 9}, "u": {"b": 1}}]}, 2)
        first = c(update, "d")
        equal((first["n"], first["nModified"], first["upserted"]), (2, 1, [{"index": 1, "_id": 3}]))
        # Somebody else changes it meanwhile; the repeat changes nothing.
        c({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"a": 2}}]}, "d")
        again = c(update, "d")
        equal((again["n"], again["nModified"], again["upserted"], again["retriedStmtIds"]),
              (2, 1, [{"index": 1, "_id": 3}], [0, 1]))
        equal(documents(c, "c"), [{"_id": 1, "a": 2}, {"_id": 2}, {"_id": 3, "b": 1}])

        delete = numbered({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}, 3)
        equal(c(delete, "d")["n"], 1)
        c({"insert": "c", "documents": [{"_id": 2}]}, "d")
        again = c(delete, "d")
        equal((again["n"], again["retriedStmtIds"]), (1, [0]))
        equal([d["_id"] for d in documents(c, "c")], [1, 2, 3])


@test
def a_statement_has_the_number_that_the_client_gives_it(cwd):
    with Mongo(cwd) as server, server.client() as c:
        def insert(*ids, **more):
            return c(numbered({"insert": "c", "documents": [{"_id": i} for i in ids]}, 1, **more), "d")
        equal(insert(1, 2, stmtId=5)["n"], 2)
        # A driver sends what is left of a large write with the numbers of the statements that are left.
        equal(insert(2, 3, stmtIds=[6, 7])["retriedStmtIds"], [6])
        equal(insert(3, stmtId=7)["retriedStmtIds"], [7])
        equal(len(documents(c, "c")), 3)


@test
def statements_that_failed_are_done_again(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 2}]}, "d")
        insert = numbered({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}]}, 1)
        answer = c(insert, "d")
        equal((answer["n"], [e["index"] for e in answer["writeErrors"]]), (1, [1]))
        c({"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}]}, "d")
        answer = c(insert, "d")
        equal((answer["n"], answer["retriedStmtIds"], answer.get("writeErrors")), (3, [0], None))


@test
def numbers_only_grow_and_belong_to_a_session(cwd):
    with Mongo(cwd) as server, server.client() as c:
        def insert(number, n, session=ID):
            return numbered({"insert": "c", "documents": [{"_id": n}]}, number, session)
        c(insert(5, 1), "d")
        failure = c.fails(insert(4, 2), "d")
        equal((failure["code"], failure["codeName"]), (225, "TransactionTooOld"))
        c(insert(4, 2, OTHER), "d")
        c(insert(6, 3), "d")
        equal(c.fails(insert(5, 1), "d")["code"], 225)
        equal(len(documents(c, "c")), 3)


@test
def numbers_are_for_writes_of_a_session(cwd):
    with Mongo(cwd) as server, server.client() as c:
        equal(c.fails({"insert": "c", "documents": [{}], "txnNumber": Int64(1)}, "d")["code"], 72)
        equal(c.fails(numbered({"find": "c"}, 1), "d")["code"], 50768)
        equal(c.fails(numbered({"insert": "c", "documents": [{}]}, -1), "d")["code"], 2)
        answer = c(numbered({"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, 1), "d")
        equal(answer["writeErrors"][0]["code"], 72)


@test
def many_statements_are_remembered(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert = numbered({"insert": "c", "documents": [{"_id": i} for i in range(5000)]}, 1)
        equal(c(insert, "d")["n"], 5000)
        answer = c(insert, "d")
        equal((answer["n"], answer["retriedStmtIds"]), (5000, list(range(5000))))
        equal(c({"count": "c"}, "d")["n"], 5000)
        # A newer number takes the place of all that.
        equal(c(numbered({"insert": "c", "documents": [{"_id": -1}]}, 2), "d")["n"], 1)
    with Mongo(cwd) as server, server.client() as c:
        equal(c(numbered({"insert": "c", "documents": [{"_id": -1}]}, 2), "d")["retriedStmtIds"], [0])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def the_same_write_through_two_connections_is_done_once(cwd):
    with Mongo(cwd) as server:
        answers = []

        def send():
            with server.client(timeout=60) as c:
                answers.append(c(numbered({"insert": "c", "documents": [{"_id": i} for i in range(3000)]},
                                          1), "d"))
        threads = [threading.Thread(target=send) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        equal([(a["n"], a.get("writeErrors")) for a in answers], [(3000, None)] * 4)
        with server.client() as c:
            equal(c({"count": "c"}, "d")["n"], 3000)


@test
def the_time_of_an_answer_grows_with_what_is_written(cwd):
    with Mongo(cwd) as server, server.client() as c:
        times = []
        for i in range(5):
            times.append(c({"insert": "c", "documents": [{"_id": i}]}, "d")["operationTime"])
        equal(times, sorted(set(times)))
        answer = c({"find": "c"}, "d")
        assert answer["operationTime"] >= times[-1]
        assert answer["$clusterTime"]["clusterTime"] >= answer["operationTime"]
        assert c({"ping": 1})["operationTime"] >= times[-1]
        failure = c.fails({"insert": "c", "documents": 1}, "d")
        assert failure["operationTime"] >= times[-1]
        assert c({"hello": 1})["lastWrite"]["opTime"]["ts"] >= times[-1]
    with Mongo(cwd, replica_set=False) as server, server.client() as c:
        answer = c({"find": "c"}, "d")
        assert "operationTime" not in answer and "$clusterTime" not in answer


@test
def read_concerns_are_checked(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 1}]}, "d")
        for level in ("local", "majority", "linearizable", "available"):
            equal(len(c({"find": "c", "readConcern": {"level": level}}, "d")["cursor"]["firstBatch"]), 1)
        equal(c.fails({"find": "c", "readConcern": {"level": "other"}}, "d")["code"], 2)
        equal(c.fails({"find": "c", "readConcern": {"level": 1}}, "d")["code"], 14)
        equal(c.fails({"find": "c", "readConcern": 1}, "d")["code"], 14)
        # One version for all is for commands that read documents.
        snapshot = {"readConcern": {"level": "snapshot"}}
        c({"distinct": "c", "key": "_id", **snapshot}, "d")
        for command in ({"insert": "c", "documents": [{}]}, {"count": "c"}, {"listCollections": 1},
                        {"findAndModify": "c", "query": {}, "remove": True}):
            failed = c.fails({**command, **snapshot}, "d")
            equal((command, failed["code"]), (command, 72))
        out = {"aggregate": "c", "pipeline": [{"$out": "o"}], "cursor": {}}
        equal(c.fails({**out, "readConcern": {"level": "linearizable"}}, "d")["code"], 72)
        c({**out, "readConcern": {"level": "majority"}}, "d")


@test
def a_cluster_time_is_a_timestamp(cwd):
    with Mongo(cwd) as server, server.client() as c:
        for time, code in ((1, 14), ({}, 40414), ({"clusterTime": {}}, 14)):
            equal(c.fails({"find": "c", "$clusterTime": time}, "d")["code"], code)


@test
def a_find_with_a_snapshot_is_one_version(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": n, "n": 0} for n in range(300)]}, "d")
        ask = {"find": "c", "batchSize": 10, "readConcern": {"level": "snapshot"}}
        cursor = c(ask, "d")["cursor"]
        c({"update": "c", "updates": [{"q": {}, "u": {"$set": {"n": 1}}, "multi": True}]}, "d")
        c({"delete": "c", "deletes": [{"q": {"_id": {"$gt": 250}}, "limit": 0}]}, "d")
        found = cursor["firstBatch"]
        while cursor["id"]:
            cursor = c({"getMore": cursor["id"], "collection": "c"}, "d")["cursor"]
            found += cursor["nextBatch"]
        equal([(doc["_id"], doc["n"]) for doc in found], [(n, 0) for n in range(300)])
        # Its limit is that of all batches together.
        for more, ids in (({}, range(25)), ({"skip": 5}, range(5, 30)),
                          ({"sort": {"n": -1, "_id": 1}}, range(25))):
            cursor = c({**ask, "limit": 25, **more}, "d")["cursor"]
            equal(len(cursor["firstBatch"]), 10)
            last = c({"getMore": cursor["id"], "collection": "c"}, "d")["cursor"]
            equal([doc["_id"] for doc in cursor["firstBatch"] + last["nextBatch"]], list(ids))
            equal(last["id"], 0)


@test
def a_version_that_was_read_is_read_again(cwd):
    with Mongo(cwd) as server, server.client() as c:
        def read(time, command, members, **more):
            concern = {"level": "snapshot", **({"atClusterTime": time} if time else {})}
            answer = c({**command, "readConcern": concern, **more}, "d")
            holder = answer["cursor"] if "cursor" in answer else answer
            found = holder[members]
            cursor = holder.get("id")
            while cursor:
                batch = c({"getMore": cursor, "collection": "c"}, "d")["cursor"]
                found, cursor = found + batch["nextBatch"], batch["id"]
            return holder["atClusterTime"], found

        find = {"find": "c"}, "firstBatch"
        pipe = {"aggregate": "c", "pipeline": [{"$sort": {"n": 1}}], "cursor": {"batchSize": 1}}, "firstBatch"
        values = {"distinct": "c", "key": "n"}, "values"
        count = {"aggregate": "c", "pipeline": [{"$count": "n"}], "cursor": {}}, "firstBatch"
        times = []
        for n in range(4):
            c({"insert": "c", "documents": [{"_id": n, "n": n}]}, "d")
            for ask in find, pipe, values:
                times.append((n, read(None, *ask)[0]))
        c({"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, "d")
        for n, time in times + times[::-1]:
            docs = [{"_id": i, "n": i} for i in range(n + 1)]
            equal(read(time, *find), (time, docs))
            equal(read(time, *pipe), (time, docs))
            equal(read(time, *values), (time, list(range(n + 1))))
            equal(read(time, *count), (time, [{"n": n + 1}]))
        equal(read(None, *values)[1], [])
        # Only what was read so is kept, and the latest of it.
        at = {"level": "snapshot", "atClusterTime": Int64(1)}
        equal(c.fails({"find": "c", "readConcern": at}, "d")["code"], 14)
        for _ in range(64):
            read(None, *find)
        equal(c.fails({"find": "c", "readConcern": {"level": "snapshot", "atClusterTime": times[0][1]}},
                      "d")["code"], 239)
        out = {"aggregate": "c", "pipeline": [{"$out": "o"}], "cursor": {}}
        watch = {"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}
        for command in out, watch:
            equal(c.fails({**command, "readConcern": {"level": "snapshot"}}, "d")["code"], 72)


@test
def lists_of_sessions_are_checked_before_any_is_ended(cwd):
    uuid = lambda n, subtype=4: Raw(5, struct.pack("<iB", n, subtype) + bytes(n))
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": n} for n in range(9)]}, "d")

        def cursor(session=ID):
            found = c({"find": "c", "batchSize": 2, "lsid": {"id": Raw(5, b"\x10\0\0\0\4" + session)}}, "d")
            return {"getMore": Int64(found["cursor"]["id"]), "collection": "c", "batchSize": 2,
                    "lsid": {"id": Raw(5, b"\x10\0\0\0\4" + session)}}
        more = cursor()
        mine = {"id": Raw(5, b"\x10\0\0\0\4" + ID)}
        for name in ("endSessions", "killSessions", "refreshSessions"):
            for wrong, number in ((1, 14), ("x", 14), ([], 14), ({}, 40414), ({"id": None}, 40414),
                                  ({"id": "x"}, 14), ({"id": uuid(16, 3)}, 14), ({"id": uuid(8)}, 207),
                                  ({"id": uuid(16), "more": 1}, 40415)):
                equal(c.fails({name: [mine, wrong]})["code"], number)
        c(more, "d")
        c({"refreshSessions": [mine, None]})
        c(more, "d")
        c({"endSessions": [None, {**mine, "uid": uuid(32, 0)}]})
        equal(c.fails(more, "d")["code"], 43)
        for wrong, number in ((1, 14), ({}, 40414), ({"user": "a"}, 40414), ({"user": "a", "db": None}, 40414),
                              ({"user": 1, "db": "b"}, 14), ({"user": "a", "db": "b", "c": 1}, 40415)):
            equal(c.fails({"killAllSessions": [wrong]})["code"], number)
        equal(c.fails({"killAllSessionsByPattern": [{"lsid": {"id": 1}}]})["code"], 14)
        more = cursor()
        c({"killAllSessions": [None, {"user": "nobody", "db": "d"}]})
        c(more, "d")
        c({"killAllSessionsByPattern": [{"lsid": mine}]})
        equal(c.fails(more, "d")["code"], 43)


@test
def a_cursor_is_read_in_its_session(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": n} for n in range(9)]}, "d")
        for made, read, number in ((ID, None, 50737), (None, ID, 50736), (ID, OTHER, 50738),
                                   (ID, ID, 0), (None, None, 0)):
            lsid = lambda id: {"lsid": {"id": id}} if id else {}
            id = c({"find": "c", "batchSize": 1, **lsid(made)}, "d")["cursor"]["id"]
            more = {"getMore": Int64(id), "collection": "c", **lsid(read)}
            if number:
                equal(c.fails(more, "d")["code"], number)
                more = {"getMore": Int64(id), "collection": "c", **lsid(made)}
            equal(len(c(more, "d")["cursor"]["nextBatch"]), 8)
        # Whether there is such a cursor does not matter where the command itself is wrong.
        equal(c.fails({"getMore": Int64(1), "collection": "c", "batchSize": -1}, "d")["code"], 2)
        for wrong in (1, 1.0, True):
            equal(c.fails({"getMore": wrong, "collection": "c"}, "d")["code"], 14)
            equal(c.fails({"killCursors": "c", "cursors": [Int64(1), wrong]}, "d")["code"], 14)
        equal(c.fails({"killCursors": 1, "cursors": []}, "d")["code"], 73)
        equal(c({"killCursors": "c", "cursors": [None, Int64(1), None]}, "d")["cursorsNotFound"], [1])


@test
def members_of_any_command_that_are_null_are_not_there(cwd):
    with Mongo(cwd) as server, server.client() as c:
        nothing = {name: None for name in ("lsid", "txnNumber", "autocommit", "startTransaction",
                                           "readConcern", "writeConcern", "maxTimeMS", "$clusterTime")}
        c({"insert": "c", "documents": [{"_id": 1}], **nothing}, "d")
        equal(len(c({"find": "c", **nothing, "readConcern": {"level": None}}, "d")["cursor"]["firstBatch"]), 1)
        equal(c.fails({"find": "c", "other": None}, "d")["code"], 40415)
        for name in ("commitTransaction", "abortTransaction"):
            equal(c.fails({name: 1, "other": 1})["code"], 40415)
            equal(c.fails({name: 1, "writeConcern": {"w": -1}})["code"], 9)
            equal(c.fails({name: 1, "recoveryToken": {}})["code"], 125)


@test
def a_killed_server_has_done_a_write_once_or_not_at_all(cwd):
    """Replacements by what was counted, in the place of $inc: each is sent again until it is answered,
    while the server is killed in the middle."""
    dice = random.Random(7)
    written = 0
    server = Mongo(cwd)
    c = server.client(timeout=10)
    try:
        for number in range(1, 60):
            ids = [written + i for i in range(dice.randrange(1, 4))]
            command = numbered({"insert": "c", "documents": [{"_id": i} for i in ids]}, number)
            if number % 10 == 0:
                # The answer is never read: nobody knows whether it was done.
                c.send({**command, "$db": "d"})
                server.process.send_signal(signal.SIGKILL)
                server.process.wait()
                c.close()
                server = Mongo(cwd)
                c = server.client(timeout=10)
            answer = c(command, "d")
            equal((answer["n"], answer.get("writeErrors")), (len(ids), None))
            written += len(ids)
        equal(c({"count": "c"}, "d")["n"], written)
    finally:
        c.close()
        server.process.kill()
        server.process.wait()


@test
def numbers_of_statements_at_the_edge_of_their_type_are_kept_apart(cwd):
    with Mongo(cwd) as server, server.client() as c:
        write = {"insert": "c", "documents": [{"_id": i} for i in range(4)], "stmtId": 2**31 - 2,
                 "lsid": {"id": b"0123456789abcdef"}, "txnNumber": Int64(1)}
        for _ in range(2):
            equal(c(write, "d")["n"], 4)
        equal(c({"count": "c"}, "d")["n"], 4)
        for member, value, code in [("stmtId", Int64(2**31), 2), ("stmtIds", [Int64(-2**31 - 1)], 2), ("stmtId", 0.5, 2),
                                    ("stmtId", "0", 14), ("stmtIds", [None], 14), ("stmtIds", 5, 14)]:
            equal(c.fails({**write, "txnNumber": Int64(2), member: value}, "d")["code"], code)


main()
