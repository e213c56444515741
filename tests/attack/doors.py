"""Attacks by the protocols of the other doors, for attack.py: what they cost those who read documents meanwhile."""

import pathlib
import socket
import struct
import sys
import time

from attacks import MIB, Attack

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import unread_cql  # noqa: E402  attacks by Cassandra's protocol
import unread_rows  # noqa: E402  attacks by the protocol for rows
import mongo  # noqa: E402  a client of MongoDB's protocol
from resp import Client as RedisClient  # noqa: E402  a client of Redis's protocol
from resp import encode as encode_redis  # noqa: E402

GARBAGE = bytes((n * 167 + 13) & 255 for n in range(5000))


class Flood(Attack):
    """Requests over and over on one connection, whose answers are read as they come."""

    greeting = b""
    processes = 2

    def prepare(self, frond, size):
        pass

    def data(self, size):
        raise NotImplementedError

    def work(self, target, size):
        data = self.data(size)
        with target.connect() as s:
            s.sendall(self.greeting)
            s.setblocking(False)
            unsent = 0
            while True:
                try:
                    unsent += s.send(data[unsent:])
                    if unsent == len(data):
                        unsent = 0
                        target.count()
                except BlockingIOError:
                    pass
                try:
                    if not s.recv(MIB):
                        return
                except BlockingIOError:
                    time.sleep(0.0005)


class Held(Attack):
    """Very many connections that each send the same, read nothing and stay."""

    greeting = b""
    processes = 1

    def prepare(self, frond, size):
        pass

    def data(self, size):
        raise NotImplementedError

    def work(self, target, size):
        data, held = self.greeting + self.data(size), []
        while True:
            if len(held) == size:
                time.sleep(1)
                continue
            s = target.connect()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.setblocking(False)
            try:
                s.send(data)
            except BlockingIOError:
                pass
            held.append(s)
            target.count()


class Trickle(Attack):
    """A request that comes a byte at a time, on very many connections."""

    greeting = b""
    processes = 1
    full, bounded = 2000, 200

    def prepare(self, frond, size):
        pass

    def data(self, size):
        raise NotImplementedError

    def work(self, target, size):
        data, held = self.data(size), [None] * size
        for at in range(len(data)):
            for i in range(size):
                try:
                    if not held[i]:
                        held[i] = target.connect()
                        held[i].sendall(self.greeting)
                        target.count()
                    held[i].sendall(data[at:at + 1])
                except OSError:
                    held[i] = None
            time.sleep(0.5)


# ---- Redis's door ----


class RedisKeys(Flood):
    name = "redis_keys_of_everything"
    title = "KEYS of a pattern that is slow to match, over many keys"
    door = "redis"
    full, bounded = 20000, 2000

    def prepare(self, frond, size):
        with RedisClient(frond.redis_port, timeout=120) as c:
            for first in range(0, size, 1000):
                c.pipeline(*(("SET", f"{'a' * 40}{n}", "v") for n in range(first, first + 1000)))

    def data(self, size):
        return encode_redis(("KEYS", "*a" * 12 + "*b")) * 10


class RedisTrickle(Trickle):
    name = "redis_commands_that_trickle"
    title = "commands of Redis that come a byte at a time"
    door = "redis"

    def data(self, size):
        return b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16777216\r\n" + b"v" * 100


class RedisGarbage(Flood):
    name = "redis_garbage"
    title = "bytes that are no commands of Redis, on connections that come and go"
    door = "redis"

    def data(self, size):
        return GARBAGE


# ---- MongoDB's door ----


def message(command, announced=0):
    data = struct.pack("<I", 0) + b"\0" + mongo.encode({**command, "$db": "db"})
    return struct.pack("<iiii", announced or 16 + len(data), 1, 0, mongo.OP_MSG) + data


class MongoScans(Flood):
    name = "mongo_scans_that_sort"
    title = "finds without an index that sort many documents"
    door = "mongo"
    full, bounded = 20000, 2000

    def prepare(self, frond, size):
        with mongo.Client(frond.mongo_port) as c:
            for first in range(0, size, 1000):
                c({"insert": "c", "documents": [{"_id": n, "v": n * 7919 % size, "text": "x" * 200}
                                                for n in range(first, first + 1000)]}, "db")

    def data(self, size):
        return message({"find": "c", "filter": {"text": {"$regex": "^(x+)+y"}}, "sort": {"v": 1}, "limit": 1}) + \
            message({"find": "c", "sort": {"v": 1}, "batchSize": 100, "singleBatch": True}) * 3


class MongoTrickle(Trickle):
    name = "mongo_messages_that_trickle"
    title = "messages of MongoDB's protocol that come a byte at a time"
    door = "mongo"

    def data(self, size):
        return message({"insert": "c", "documents": [{"text": "x" * 100}]}, 4 * MIB)


class MongoGarbage(Flood):
    name = "mongo_garbage"
    title = "bytes that are no messages of MongoDB's protocol"
    door = "mongo"

    def data(self, size):
        return struct.pack("<iiii", 16 + len(GARBAGE), 1, 0, mongo.OP_MSG) + GARBAGE


# ---- Cassandra's door ----


def prepare_cql(frond, rows, size):
    with unread_cql.Client(frond.cql_port) as c:
        c(f"CREATE KEYSPACE ks {unread_cql.REPLICATION}")
        c("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")
        for k in range(rows):
            c(f"INSERT INTO ks.t (k, v) VALUES ({k}, '{'x' * size}')")


class CqlFiltering(Flood):
    name = "cql_filtering_over_everything"
    title = "ALLOW FILTERING over a table, of which nothing passes"
    door = "cql"
    greeting = unread_cql.STARTED
    full, bounded = 5000, 500

    def prepare(self, frond, size):
        prepare_cql(frond, size, 200)

    def data(self, size):
        return unread_cql.query("SELECT * FROM ks.t WHERE v > 'y' ALLOW FILTERING") * 10


class CqlIn(CqlFiltering):
    name = "cql_in_of_10000"
    title = "IN of 10,000 partitions"

    def data(self, size):
        return unread_cql.query(f"SELECT * FROM ks.t WHERE k IN ({', '.join(map(str, range(10_000)))})") * 3


class CqlBatches(Flood):
    name = "cql_batches_of_10_mb"
    title = "batches of 9 MB, one after the other"
    door = "cql"
    greeting = unread_cql.STARTED
    full, bounded = 112, 30

    def prepare(self, frond, size):
        prepare_cql(frond, 0, 0)

    def data(self, size):
        return unread_cql.batch([f"INSERT INTO ks.t (k, v) VALUES ({k}, '{'x' * 80_000}')" for k in range(size)])


class CqlConnections(Held):
    name = "cql_connections"
    title = "connections that ask for everything and read nothing"
    door = "cql"
    greeting = unread_cql.STARTED
    full, bounded = 5000, 300

    def prepare(self, frond, size):
        prepare_cql(frond, 500, 1000)

    def data(self, size):
        return unread_cql.query("SELECT * FROM ks.t")


class CqlTrickle(Trickle):
    name = "cql_frames_that_trickle"
    title = "frames that come a byte at a time"
    door = "cql"
    greeting = unread_cql.STARTED

    def data(self, size):
        return unread_cql.frame(unread_cql.QUERY, b"x" * 100, 16 * MIB)


class CqlGarbage(Flood):
    name = "cql_garbage"
    title = "frames whose bodies are no messages"
    door = "cql"
    greeting = unread_cql.STARTED

    def data(self, size):
        return b"".join(unread_cql.frame(code, GARBAGE) for code in range(0x11))


# ---- The door for rows ----


class RowsAttack:
    door = "rows"
    greeting = unread_rows.GREETING
    rows = 0

    def prepare(self, frond, size):
        with unread_rows.Client(frond.rows_port) as c:
            # The attackers are processes of their own, which begin behind this.
            self.column = c.make("s")
            for first in range(0, self.rows, 1000):
                c.ask(unread_rows.write("s", self.column, [(k, b"x" * 200) for k in range(first, first + 1000)]))


class RowsScans(RowsAttack, Flood):
    name = "rows_scans_of_everything"
    title = "scans of a table in the largest pages"
    rows = 20000

    def data(self, size):
        return unread_rows.scan("s", self.column, 8 * MIB) * 10


class RowsUnread(RowsAttack, Held):
    name = "rows_scans_that_are_not_read"
    title = "connections that scan a table and read nothing"
    rows = 20000
    full, bounded = 3000, 300

    def data(self, size):
        return unread_rows.scan("s", self.column)


class RowsBatches(RowsAttack, Flood):
    name = "rows_batches_of_9_mb"
    title = "writes of 9 MB, one after the other"
    full, bounded = 110, 30

    def data(self, size):
        return unread_rows.write("s", self.column, [(k, b"x" * 80_000) for k in range(size)])


class RowsTransactions(RowsAttack, Held):
    name = "rows_transactions_that_stay_open"
    title = "transactions that have read and written, and stay open"
    rows = 1000
    full, bounded = 5000, 300

    def data(self, size):
        return unread_rows.frame(unread_rows.BEGIN, b"\0") + unread_rows.scan("s", self.column, 1000) + \
            unread_rows.write("s", self.column, [(1, b"y" * 1000)])


class RowsSavepoints(RowsAttack, Flood):
    name = "rows_savepoints_without_end"
    title = "savepoints, each with a row that it would bring back"
    rows = 1000

    def data(self, size):
        one = unread_rows.frame(unread_rows.SAVEPOINT) + unread_rows.write("s", self.column, [(1, b"z" * 1000)])
        return unread_rows.frame(unread_rows.BEGIN, b"\0") + one * 1100 + unread_rows.frame(unread_rows.ROLLBACK)


class RowsTrickle(RowsAttack, Trickle):
    name = "rows_requests_that_trickle"
    title = "requests in open transactions that come a byte at a time"

    def data(self, size):
        return unread_rows.frame(unread_rows.BEGIN, b"\0") + \
            unread_rows.frame(unread_rows.WRITE, b"x" * 100, 16 * MIB)


class RowsGarbage(RowsAttack, Flood):
    name = "rows_garbage"
    title = "requests whose bodies are malformed"

    def data(self, size):
        return b"".join(unread_rows.frame(code, GARBAGE) for code in range(1, 30))


ALL = [
    RedisKeys(), RedisTrickle(), RedisGarbage(), MongoScans(), MongoTrickle(), MongoGarbage(),
    CqlFiltering(), CqlIn(), CqlBatches(), CqlConnections(), CqlTrickle(), CqlGarbage(),
    RowsScans(), RowsUnread(), RowsBatches(), RowsTransactions(), RowsSavepoints(), RowsTrickle(), RowsGarbage(),
]
# What a bounded run has of them: one that computes and one that holds memory.
BOUNDED = [MongoScans(), CqlFiltering(), CqlConnections(), RowsScans(), RowsTransactions()]
