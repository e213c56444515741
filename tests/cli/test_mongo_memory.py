"""What clients of MongoDB's protocol hold that do not read, or do not end what they begin to send."""

import socket
import struct

from harness import contains, equal, main, test, until
from mongo import MORE_TO_COME, OP_MSG, Failure, Int64, encode
from mongo_server import MongoServer

MB = 1024 * 1024
DEADLINE_S = 120
EXCEEDED = 146
ATTEMPTS = 50  # for memory that others do not give back at once


class Small(MongoServer):
    """A server with little memory, whose store does not wait for the disk."""

    def __init__(self, cwd, memory):
        self.memory = memory
        super().__init__(cwd, "--no-sync", ini=f"[frond]\nmemory_bytes = {memory}\nmemory_timeout_ms = 10000\nrate_window_ms = 86400000\nbody_timeout_ms = 86400000\n")

    def held(self):
        return self.metrics()["frond_memory_requests_bytes"]

    def fill(self, documents, length, name="c"):
        with self.client() as c:
            for i in range(documents):
                c({"insert": name, "documents": [{"_id": i, "text": "x" * length}]}, "db")


def raw(server):
    """A connection with little room for what it does not read."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(DEADLINE_S)
    s.connect(("127.0.0.1", server.port))
    return s


def message(document, number=1, length=None):
    data = struct.pack("<I", 0) + b"\0" + encode({**document, "$db": "db"})
    return struct.pack("<iiii", 16 + len(data) if length is None else length, number, 0, OP_MSG) + data


def read_on(c, number):
    """What is left of a cursor of db.c. Batches are shorter while memory is short."""
    documents = []
    while number:
        answer = c({"getMore": Int64(number), "collection": "c"}, "db")["cursor"]
        documents += answer["nextBatch"]
        number = answer["id"]
    return documents


def ids_of_all(c):
    """
    The _ids of db.c, or None where the client's turn for memory has not come in memory_timeout_ms,
    as on a busy machine: then it may ask again.
    """
    try:
        answer = c({"find": "c", "batchSize": 1000}, "db")["cursor"]
        documents = answer["firstBatch"] + read_on(c, answer["id"])
    except Failure as e:
        equal(e.code, EXCEEDED)
        return None
    return [d["_id"] for d in documents]


def names_the_limit(server, failure):
    equal(failure["code"], EXCEEDED)
    equal(failure["codeName"], "ExceededMemoryLimit")
    contains(failure["errmsg"], f"memory_bytes, is {server.memory} bytes")


@test
def message_for_which_there_is_no_memory_is_refused_and_the_connection_goes_on(cwd):
    with Small(cwd, 16 * MB) as server, server.client() as c:
        for _ in range(2):
            failure = c.fails({"insert": "c", "documents": [{"text": "x" * (12 * MB)}]}, "db")
            names_the_limit(server, failure)
            equal(c({"insert": "c", "documents": [{"text": "short"}]}, "db")["n"], 1)
        equal(c({"count": "c"}, "db")["n"], 2)
        until(lambda: server.held() < MB)
        equal(server.stop(), 0)


@test
def halves_of_messages_keep_nobody_out(cwd):
    with Small(cwd, 32 * MB) as server:
        server.fill(1, 1000)
        halves = []
        for i in range(60):
            s = raw(server)
            s.setblocking(False)
            try:
                s.send(message({"insert": "c", "documents": [{"text": "x" * MB}]}, length=4 * MB))
            except OSError:
                pass
            halves.append(s)
        with server.client(timeout=DEADLINE_S) as c:
            for _ in range(3):
                answer = c({"find": "c", "filter": {"_id": 0}}, "db")["cursor"]["firstBatch"]
                equal(answer, [{"_id": 0, "text": "x" * 1000}])
                inserted = False
                while not inserted:
                    try:
                        equal(c({"insert": "c", "documents": [{"text": "y" * (2 * MB)}]}, "db")["n"], 1)
                        inserted = True
                    except Failure as failure:
                        # All who stand in front of it have waited for as long.
                        names_the_limit(server, failure.answer)
                assert server.held() <= server.memory * 5 // 4, server.held()
        for s in halves:
            s.close()
        until(lambda: server.held() < MB)
        equal(server.stop(), 0)


@test
def answers_that_nobody_reads_keep_nobody_out(cwd):
    with Small(cwd, 32 * MB) as server:
        server.fill(40, MB)
        unread = [raw(server) for _ in range(40)]
        for s in unread:
            s.sendall(message({"find": "c", "batchSize": 1000}))
        with server.client(timeout=DEADLINE_S) as c:
            for _ in range(3):
                ids = next(filter(None, (ids_of_all(c) for _ in range(ATTEMPTS))), None)
                equal(ids, list(range(40)))
                assert server.held() <= server.memory * 5 // 4, server.held()
        for s in unread:
            s.close()
        until(lambda: server.held() < MB)
        equal(server.stop(), 0)


@test
def cursors_that_nobody_asks_for_make_room_for_others(cwd):
    with Small(cwd, 16 * MB) as server:
        server.fill(10, 200 * 1000)
        with server.client(timeout=DEADLINE_S) as c:
            sort = {"find": "c", "sort": {"text": 1}, "batchSize": 0}
            ids = [c(sort, "db")["cursor"]["id"] for _ in range(30)]
            assert all(ids)
            assert server.held() <= server.memory, server.held()
            # The latest one is there; the first ones have made room.
            equal([d["_id"] for d in read_on(c, ids[-1])], list(range(10)))
            equal(c.fails({"getMore": Int64(ids[0]), "collection": "c"}, "db")["code"], 43)
        equal(server.stop(), 0)


@test
def what_transactions_stage_is_of_the_memory_and_ends_when_others_need_it(cwd):
    with Small(cwd, 16 * MB) as server:
        server.fill(1, 10)
        with server.client(timeout=DEADLINE_S) as c:
            before = server.held()
            failure = None
            for i in range(20):
                session = {"lsid": {"id": bytes([i]) * 16}, "txnNumber": Int64(1), "autocommit": False}
                one = {"insert": "c", "documents": [{"text": "x" * MB}], **session,
                       "startTransaction": True}
                try:
                    c(one, "db")
                except Failure as e:
                    failure = e.answer
                    break
                assert server.held() >= before + (i + 1) * MB, (i, server.held())
            assert failure, "nothing was refused"
            names_the_limit(server, failure)
            c({"insert": "c", "documents": [{"text": "x"}]}, "db")
            for i in range(20):
                try:
                    c({"abortTransaction": 1, "lsid": {"id": bytes([i]) * 16}, "txnNumber": Int64(1),
                       "autocommit": False})
                except Failure as e:
                    equal(e.code, 251)
            until(lambda: server.held() < before + MB)
        equal(server.stop(), 0)


@test
def cursor_whose_number_nobody_has_been_told_ends(cwd):
    with Small(cwd, 64 * MB) as server, server.client() as c:
        server.fill(10, 500 * 1000)
        keeps = {"find": "c", "sort": {"text": 1}, "batchSize": 1, "$db": "db"}
        known = c(keeps, "db")["cursor"]["id"]
        before = server.held()
        assert before > 4 * MB, before
        # The client wants no answer, and so gets no number.
        for _ in range(3):
            c.send(keeps, flags=MORE_TO_COME)
        equal(c({"find": "c", "filter": {"_id": 1}}, "db")["cursor"]["id"], 0)
        until(lambda: server.held() < before + MB)
        equal(len(read_on(c, known)), 9)
        equal(server.stop(), 0)


main()
