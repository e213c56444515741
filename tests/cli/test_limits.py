"""[limits] by person and address: one count for all doors, and each refuses in its own protocol."""

import base64
import re
import socket
import struct
import urllib.request

from harness import QUICK, Server, contains, equal, main, test, until
from mongo import Client as Mongo, Failure
from resp import Client as Redis, Error

RATE_CODE = 462


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


ROOT = basic("root", "secret")
ANN = basic("ann", "pass")
BOB = basic("bob", "pass")


class Doors(Server):
    """A frond with all doors, an administrator, and people who may use Redis's and MongoDB's."""

    def __init__(self, cwd):
        (cwd / "ini").write_text(QUICK)
        super().__init__(cwd, "--redis", "127.0.0.1:0", "--mongo", "127.0.0.1:0", "--config", "ini",
                         env={"FROND_ADMIN": "root:secret"})
        log = self.read_log()
        self.redis_port, self.mongo_port = (
            int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", log).group(1))
            for door in ("redis", "mongo"))
        self.request("PUT", "/_users", headers=ROOT)
        for name in ("ann", "bob"):
            status, answer = self.request("PUT", f"/_users/org.couchdb.user:{name}", {
                "name": name, "type": "user", "password": "pass",
                "roles": ["redis:~* &* +@all", "mongo:readWrite@d"]}, ROOT)
            assert status == 201, answer
        self.limits = []

    def limit(self, name, value):
        """An administrator's requests count by address only."""
        path = f"/_node/_local/_config/limits/{name}"
        until(lambda: self.request("PUT" if value else "DELETE", path, value and str(value),
                                   ROOT)[0] in (200, 404))

    def redis(self, name="ann"):
        c = Redis(self.redis_port)
        c("AUTH", name, "pass")
        return c

    def mongo(self, name="ann"):
        return Mongo(self.mongo_port).login(name, "pass")

    def refused(self, limit):
        return self.metrics().get(f'frond_refusals_total{{limit="{limit}"}}', 0)

    def metrics(self):
        """An administrator's, since there is one."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(self.url + "/_node/_local/_prometheus", headers=ROOT)
        with opener.open(request, timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def redis_refusal(c):
    """The text of the error, or None."""
    try:
        c("GET", "k")
        return None
    except Error as error:
        return str(error)


def mongo_refusal(c):
    try:
        c({"find": "c"}, "d")
        return None
    except Failure as failure:
        return failure.answer


def is_refused_by_mongo(answer, limit):
    equal((answer["code"], answer["codeName"]), (RATE_CODE, "IngressRequestRateLimitExceeded"))
    equal(answer["errorLabels"], ["SystemOverloadedError", "RetryableError"])
    contains(answer["errmsg"], f"[limits] {limit}, is ")


@test
def each_door_refuses_in_its_protocol_and_keeps_the_connection(cwd):
    with Doors(cwd) as server, server.redis() as r, server.mongo() as m:
        server.limit("person_requests", 5)
        text = until(lambda: redis_refusal(r))
        contains(text, "ERR max requests: too many requests a second of one person: the limit, "
                       "[limits] person_requests, is 5. Try again in 1 s.")
        until(lambda: redis_refusal(r) is None)
        is_refused_by_mongo(until(lambda: mongo_refusal(m)), "person_requests")
        until(lambda: mongo_refusal(m) is None)
        answer = until(lambda: (a := server.request("GET", "/", headers=ANN))[0] == 429 and a[1])
        contains(answer["reason"], "[limits] person_requests, is 5")
        until(lambda: server.request("GET", "/", headers=ANN)[0] == 200)


@test
def what_is_asked_of_one_door_is_missing_at_the_others(cwd):
    with Doors(cwd) as server, server.redis() as r, server.mongo() as m, server.redis("bob") as other:
        before = server.refused("person_bytes")
        server.limit("person_bytes", 1)
        equal(r("SET", "k", "x" * 1000), "OK")  # some 17 minutes' share
        for _ in range(3):
            contains(redis_refusal(r), "[limits] person_bytes, is 1.")
            is_refused_by_mongo(mongo_refusal(m), "person_bytes")
            equal(server.request("GET", "/", headers=ANN)[0], 429)
        equal(server.refused("person_bytes") - before, 9)  # each once
        equal(other("GET", "k"), b"x" * 1000)
        equal(server.request("GET", "/", headers=BOB)[0], 429)
        server.limit("person_bytes", None)
        equal((redis_refusal(r), mongo_refusal(m)), (None, None))
        equal(server.request("GET", "/", headers=ANN)[0], 200)


@test
def bytes_of_mongodbs_door_and_of_couchdbs_are_paid_for_everywhere(cwd):
    with Doors(cwd) as server, server.redis() as r, server.redis("bob") as other, server.mongo() as m:
        server.limit("person_bytes", 1)
        m({"insert": "c", "documents": [{"x": "x" * 1000}]}, "d")
        contains(redis_refusal(r), "person_bytes")
        server.request("GET", "/_session", headers=BOB)
        contains(redis_refusal(other), "person_bytes")


def sends_a_long_request(door, port):
    """One that is longer than a stranger's may be, and is answered so when it has come."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        if door == "cql":  # OPTIONS
            sock.sendall(struct.pack(">BBhBI", 4, 0, 1, 5, 1000000) + bytes(1000000))
        else:              # HELLO, and PING
            sock.sendall(struct.pack(">IBBHIHH", 8, 1, 0, 1, 0x46524f57, 1, 2))
            assert sock.recv(1000)
            sock.sendall(struct.pack(">IBBH", 1000000, 3, 0, 2) + bytes(1000000))
        assert sock.recv(1000)
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(1000):
            pass


@test
def what_is_too_long_to_be_read_is_paid_for_too(cwd):
    for door in ("cql", "rows"):
        (cwd / "ini").write_text("[limits]\naddress_bytes = 100000\n")
        with Server(cwd, f"--{door}", "127.0.0.1:0", "--config", "ini", "--store", f"embedded:{door}",
                    env={"FROND_ADMIN": "root:secret"}) as server:
            port = int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", server.read_log())[1])
            equal(server.request("GET", "/")[0], 200)
            sends_a_long_request(door, port)
            status, answer = server.request("GET", "/")
            equal((door, status), (door, 429))
            contains(answer["reason"], "[limits] address_bytes, is 100000")


@test
def a_command_that_waits_is_one_at_a_time_for_all_doors(cwd):
    with Doors(cwd) as server, server.redis() as r, server.redis() as waits, server.mongo() as m:
        server.limit("person_open", 1)
        waits.send("BLPOP", "queue", 0)
        contains(until(lambda: redis_refusal(r)), "[limits] person_open, is 1.")
        is_refused_by_mongo(mongo_refusal(m), "person_open")
        equal(server.request("GET", "/", headers=ANN)[0], 429)
        with server.redis("bob") as other:
            other("RPUSH", "queue", "v")
        equal(waits.read(), [b"queue", b"v"])
        until(lambda: redis_refusal(r) is None)
        equal(mongo_refusal(m), None)


@test
def a_pipeline_is_served_as_far_as_the_limit_goes(cwd):
    with Doors(cwd) as server, server.redis() as r:
        server.limit("person_requests", 10)
        until(lambda: server.request("GET", "/", headers=ANN)[0] == 200)
        answers = r.pipeline(*[("INCR", "n")] * 200)
        served = [a for a in answers if not isinstance(a, Error)]
        equal(served, list(range(1, len(served) + 1)))
        assert 1 <= len(served) < 200, len(served)
        answers = r.pipeline(("MULTI",), *[("INCR", "n")] * 200)
        assert any("ERR max requests" in str(a) for a in answers), answers
        server.limit("person_requests", None)
        text = r.error("EXEC")
        assert text.startswith("EXECABORT") or text == "ERR EXEC without MULTI", text
        equal(r("GET", "n"), str(len(served)).encode())


def mongo_failure(c, command):
    """Of the command, or of its only write."""
    try:
        return c(command, "d")["writeErrors"][0]
    except Failure as failure:
        return failure.answer


DATABASES = "too many databases created by one person: the limit, [limits] person_databases, is "


@test
def databases_of_all_doors_are_one_count(cwd):
    with Doors(cwd) as server, server.redis() as r, server.mongo() as m, server.redis("bob") as other:
        server.limit("person_databases", 3)
        equal(r("SET", "k", "v"), "OK")
        for _ in range(3):  # what is there already counts for nobody
            equal(r("SET", "k", "v"), "OK")
            equal(r("FLUSHDB"), "OK")
        m({"insert": "c", "documents": [{"x": 1}, {"x": 2}]}, "d")
        m({"create": "e"}, "d")
        equal(m.fails({"create": "e", "capped": False, "validator": {"x": 1}}, "d")["code"], 48)
        before = server.refused("person_databases")
        for command in ({"create": "f"}, {"insert": "f", "documents": [{"x": 1}]},
                        {"createIndexes": "f", "indexes": [{"key": {"x": 1}, "name": "x"}]},
                        {"update": "f", "updates": [{"q": {}, "u": {"x": 1}, "upsert": True}]},
                        {"aggregate": "c", "pipeline": [{"$out": "f"}], "cursor": {}}):
            told = mongo_failure(m, command)
            contains(told["errmsg"], DATABASES + "3. Try again in ")
            equal(told["code"], 365)
        equal([c["name"] for c in m({"listCollections": 1}, "d")["cursor"]["firstBatch"]], ["c", "e"])
        r("SELECT", 1)
        contains(r.error("SET", "k", "v"), "ERR " + DATABASES + "3. Try again in ")
        contains(r.error("EVAL", "redis.call('SET', KEYS[1], 'v')", 1, "k"), DATABASES)
        r("MULTI")
        r("SET", "k", "v")
        contains(r.error("EXEC"), DATABASES)
        contains(r.error("SWAPDB", 0, 1), DATABASES)
        equal(r("EXISTS", "k"), 0)
        equal(server.refused("person_databases") - before, 9)
        equal(r("SELECT", 0), "OK")
        equal(r("SET", "k", "v"), "OK")
        # Another one's command that runs in the same group of commands counts for who has sent it.
        other("SELECT", 1)
        equal(other("SET", "k", "v"), "OK")
        r("SELECT", 1)
        equal(r("GET", "k"), b"v")
        server.limit("person_databases", None)
        m({"create": "f"}, "d")


@test
def commands_that_run_together_count_for_who_has_sent_each(cwd):
    """One transaction has commands of several clients, and is run by the fiber of one of them."""
    with Doors(cwd) as server:
        server.limit("person_databases", 1)
        clients = [server.redis(name) for name in ("ann", "bob") * 6]
        for db, c in enumerate(clients):
            equal(c("SELECT", db), "OK")
        for c in clients:
            c.send("SET", "k", "v")
        answers = [c.read() for c in clients]
        for one in (answers[::2], answers[1::2]):
            equal(one.count("OK"), 1)
            equal(sum(DATABASES in str(a) for a in one), 5)
        for c in clients:
            c.close()


@test
def strangers_count_by_their_address_and_hello_is_never_refused(cwd):
    with Doors(cwd) as server, Redis(server.redis_port) as r, Mongo(server.mongo_port) as m:
        server.limit("address_requests", 3)

        def guess():
            text = r.error("AUTH", "ann", "wrong")
            return "max requests" in text and text
        contains(until(guess), "[limits] address_requests, is 3.")

        def ask():
            answer = m.fails({"nonsense": 1})
            return answer["code"] == RATE_CODE and answer
        is_refused_by_mongo(until(ask), "address_requests")
        for _ in range(100):
            equal(m({"hello": 1})["ok"], 1.0)


main()
