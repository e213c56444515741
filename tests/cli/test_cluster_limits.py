"""Limits, tried at their edge in a directory and at a cluster: what one takes the other takes, and what one
refuses the other refuses with the same words."""

import contextlib
import json
import re
import urllib.error
import urllib.request
import uuid

from cql_wire import Connection as Cql
from harness import Server, cluster, contains, equal, foundationdb, main, test, until
from mongo import Client as Mongo
from mongo import Failure, Int64, encode
from resp import Client as Redis
from resp import Error

DOORS = ("redis", "mongo", "cql")
SETTINGS = "[couchdb]\nmax_attachment_size = 1000000\n"
SHARE = 900_000  # of a transaction that is filled, its last write aside
URL = cluster()


class Place:
    """A server at one of the two stores, with a client of each door."""

    def __init__(self, cwd, name, *options):
        folder = cwd / name
        folder.mkdir()
        (folder / "ini").write_text(SETTINGS)
        ports = [word for door in DOORS for word in ("--" + door, "127.0.0.1:0")]
        self.server = Server(folder, *options, "--config", str(folder / "ini"), *ports)
        self.redis = Redis(self.port("redis"), timeout=300)
        self.mongo = Mongo(self.port("mongo"), timeout=300)
        self.cql = Cql(self.port("cql"))
        self.cql.socket.settimeout(300)
        self.cql.start()
        equal(self.couch("PUT", "/db"), None)
        self.cql.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        self.cql.query("CREATE TABLE k.t (id text PRIMARY KEY, v text)")
        self.mongo({"create": "c"}, "d")

    def port(self, door):
        return int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", self.server.read_log()).group(1))

    def couch(self, method, path, body=None, kind="application/json"):
        """None, or why the request was refused."""
        request = urllib.request.Request(self.server.url + path, data=body, method=method,
                                         headers={"Content-Type": kind})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=300) as answer:
                answer.read()
                return None
        except urllib.error.HTTPError as error:
            told = json.load(error)
            return f"{error.code} {told['error']}: {told['reason']}"

    def close(self):
        self.redis.close()
        self.mongo.close()
        self.cql.__exit__()
        self.server.__exit__()


def told_by(call, *args):
    """None, or the error that the call has raised or answered, as a text."""
    try:
        got = call(*args)
    except Exception as error:
        return str(error)
    return str(got) if isinstance(got, Error) else None


# ---- What has a size: each writes so many bytes of it, and tells why that was refused ----

def couch_id(place, n):
    return place.couch("PUT", "/db/" + "i" * n, b"{}")


def couch_document(place, n):
    return place.couch("PUT", f"/db/{uuid.uuid4().hex}", b'{"v":"%s"}' % (b"x" * (n - 8)))


def couch_attachment(place, n):
    return place.couch("PUT", f"/db/{uuid.uuid4().hex}/a", b"x" * n, "application/octet-stream")


def couch_atomic(place, n):
    docs = [{"_id": uuid.uuid4().hex, "v": "x" * size} for size in [SHARE] * 10 + [n]]
    return place.couch("POST", "/db/_bulk_docs", json.dumps({"docs": docs, "atomic": True}).encode())


def redis_key(place, n):
    return told_by(place.redis, "SET", "k" * n, "v")


def redis_element(place, n):
    place.redis("DEL", "list")
    return told_by(place.redis, "RPUSH", "list", "x" * n)


def redis_exec(place, n):
    place.redis("DEL", "hash")
    place.redis("MULTI")
    for field, size in enumerate([SHARE] * 10 + [n]):
        place.redis("HSET", "hash", f"f{field:02}", "x" * size)
    return told_by(place.redis, "EXEC")


def mongo_id(place, n):
    answer = place.mongo({"insert": "c", "documents": [{"_id": "i" * n}]}, "d")
    return str(answer["writeErrors"][0]["errmsg"]) if "writeErrors" in answer else None


def mongo_document(place, n):
    doc = {"_id": uuid.uuid4().hex, "v": ""}
    doc["v"] = "x" * (n - len(encode(doc)))
    answer = place.mongo({"insert": "c", "documents": [doc]}, "d")
    return str(answer["writeErrors"][0]["errmsg"]) if "writeErrors" in answer else None


def mongo_transaction(place, n):
    with contextlib.closing(Mongo(place.port("mongo"), timeout=300)) as c:
        more = {"lsid": {"id": uuid.uuid4().bytes}, "txnNumber": Int64(1), "autocommit": False}
        docs = [{"_id": uuid.uuid4().hex, "v": "x" * size} for size in [SHARE] * 10 + [n]]
        try:
            c({"insert": "c", "documents": docs, "startTransaction": True, **more}, "d")
            c({"commitTransaction": 1, **more}, "admin")
        except Failure as failure:
            return str(failure)
    return None


def cql_key(place, n):
    return told_by(place.cql.query, f"INSERT INTO k.t (id, v) VALUES ('{'i' * n}', 'v')")


def cql_value(place, n):
    return told_by(place.cql.query, f"INSERT INTO k.t (id, v) VALUES ('i', '{'x' * n}')")


# The most bytes that each takes, and what the refusal of one more names.
EDGES = {
    couch_id: (7000, "7000"),
    couch_document: (8_000_000, "8000000"),
    couch_attachment: (1_000_000, "1000000"),
    redis_key: (60_000, "TIMED_ITEM_KEY_BYTES"),
    redis_element: (8_000_000, "TIMED_ELEMENT_BYTES"),
    mongo_id: (9_995, "PLAIN_ID_VALUE_BYTES"),
    mongo_document: (16_777_216, "16777216"),
    cql_key: (9_782, "TIMED_KEY_BYTES"),
    cql_value: (4_000_000, "TABLE_VALUE_BYTES"),
}

# What fills a transaction of 10,000,000 bytes, the keys and marks of the model among them. Some of these differ
# with each attempt (zeros in a revision's hash; of Redis's by 80 bytes in 200 attempts), and at a cluster Redis's
# door reads whether a client tracks.
# There a store's prefix counts with each key, too.
TRANSACTIONS = (couch_atomic, redis_exec, mongo_transaction)
LEAST, MOST = 900_000, 1_000_000  # of the last write
ROOM = "10000000 bytes"
NEARLY = 20_000 if URL and "?prefix=" in URL else 512


def told_of_room(write, place, n):
    """None, or the refusal that names the limit. Others pass: a transaction at a cluster lasts five seconds, which
    a busy machine may need for less, and memory that an earlier one has had is free soon."""
    def told():
        answer = write(place, n)
        return (answer,) if answer is None or ROOM in answer else None

    return until(told)[0]


@contextlib.contextmanager
def both(cwd):
    with contextlib.ExitStack() as stack:
        found = []
        foundationdb.empty(URL.removeprefix("fdb:").partition("?")[0])
        for name, options in ("directory", ()), ("cluster", ("--store", URL)):
            found.append(Place(cwd, name, *options))
            stack.callback(found[-1].close)
        yield found


@test
def what_a_directory_takes_and_refuses_a_cluster_does_to_the_byte(cwd):
    with both(cwd) as places:
        for write, (most, name) in EDGES.items():
            for place in places:
                equal((write.__name__, write(place, most)), (write.__name__, None))
            refusals = [write(place, most + 1) for place in places]
            equal(refusals[0], refusals[1])
            contains(str(refusals[0]), name)


@test
def a_transaction_has_as_much_room_in_a_directory_and_at_a_cluster(cwd):
    with both(cwd) as (directory, at_cluster):
        for write in TRANSACTIONS:
            taken, refused = LEAST, MOST
            while refused - taken > NEARLY:
                middle = (taken + refused) // 2
                if told_of_room(write, directory, middle):
                    refused = middle
                else:
                    taken = middle
            for place in directory, at_cluster:
                equal((write.__name__, told_of_room(write, place, taken - NEARLY)), (write.__name__, None))
            refusals = [told_of_room(write, place, refused + NEARLY) for place in (directory, at_cluster)]
            assert refusals[0], write.__name__
            equal(refusals[0], refusals[1])


main(needs=None if URL else "FROND_TEST_FDB names no cluster")
