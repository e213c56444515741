"""What runs, whatever the door: seen, ended, timed, and logged where it is slow."""

import base64
import http.client
import json
import re
import socket
import threading

from harness import QUICK, contains, equal, main, test, until
from mongo_server import MongoServer
from resp import Client as RedisClient

ADMIN = {"FROND_ADMIN": "root:secret"}
HEADERS = {"Authorization": "Basic " + base64.b64encode(b"root:secret").decode()}
WIDE = [0] * 20000


class Server(MongoServer):
    """A server with all doors and an administrator."""

    def __init__(self, cwd, ini="", **kwargs):
        super().__init__(cwd, "--redis", "127.0.0.1:0", ini=QUICK + ini, env=ADMIN, **kwargs)
        self.address = ("127.0.0.1", int(self.url.rsplit(":", 1)[1]))
        self.redis_port = int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)", self.read_log())[1])

    def login(self, name="root", password="secret"):
        return self.client(timeout=60).login(name, password)

    def redis(self):
        c = RedisClient(self.redis_port)
        c("AUTH", "root", "secret")
        return c

    def ask(self, method, path, body=None):
        return self.request(method, path, body, HEADERS)

    def begin(self, method, path, body=b""):
        """A request whose answer is read later."""
        connection = http.client.HTTPConnection(*self.address, timeout=120)
        connection.request(method, path, body, {"Content-Type": "application/json", **HEADERS})
        return connection


def running(c, door, path=""):
    return [op for op in c({"currentOp": 1, "$all": True})["inprog"]
            if op.get("door") == door and op["ns"].startswith(path)]


def seen(c, door, path=""):
    """The one operation of a door, as soon as it runs."""
    ops = until(lambda: running(c, door, path))
    equal(len(ops), 1)
    return ops[0]


def end(c, door, path=""):
    c({"killOp": 1, "op": seen(c, door, path)["opid"]})


def is_cut(read):
    """Nothing comes any more, and no end that could be taken for one."""
    try:
        raise AssertionError(read())
    except ConnectionResetError:
        pass


@test
def a_feed_of_http_is_seen_and_ended(cwd):
    with Server(cwd) as server, server.login() as c:
        server.ask("PUT", "/db")
        feed = server.begin("GET", "/db/_changes?feed=continuous&secret=1")
        answer = feed.getresponse()
        op = seen(c, "http", "/db/_changes")
        equal((op["type"], op["desc"], op["active"], op["op"], op["ns"], op["command"], op["effectiveUsers"]),
              ("op", "http", True, "command", "/db/_changes", {"GET": "/db/_changes"},
               [{"user": "root", "db": "admin"}]))
        equal(op["client"], "%s:%d" % feed.sock.getsockname())
        assert op["opid"] > 0 and op["microsecs_running"] >= 0 and op["secs_running"] < 60
        # Only who asks for all sees what other doors do.
        for ops in (c({"currentOp": 1})["inprog"], c({"currentOp": 1, "$all": True, "$ownOps": True})["inprog"]):
            assert not [other for other in ops if "door" in other], ops
        stage = {"$currentOp": {"allUsers": True, "idleConnections": True}}
        told = c({"aggregate": 1, "pipeline": [stage, {"$match": {"door": "http"}}], "cursor": {}})
        equal([other["opid"] for other in told["cursor"]["firstBatch"]], [op["opid"]])
        c({"killOp": 1, "op": op["opid"]})
        is_cut(answer.read)
        feed.close()
        until(lambda: not running(c, "http"))
        equal(server.ask("GET", "/db")[0], 200)
        # That the operation has ended does not matter to whoever ends it.
        c({"killOp": 1, "op": op["opid"]})


@test
def a_request_that_was_not_answered_yet_is_a_503(cwd):
    ini = "[couchdb]\nos_process_timeout = 3600000\n"
    with Server(cwd, ini) as server, server.login() as c:
        server.ask("PUT", "/db")
        server.ask("PUT", "/db/a", {})
        server.ask("PUT", "/db/_design/d", {"views": {"v": {"map": "function (doc) { while (true) {} }"}}})
        view = server.begin("GET", "/db/_design/d/_view/v")
        end(c, "http", "/db/_design/d/_view/v")
        answer = view.getresponse()
        equal((answer.status, json.loads(answer.read())["reason"]), (503, "An administrator has ended the request."))
        # The connection goes on.
        view.request("GET", "/db", headers=HEADERS)
        equal(view.getresponse().status, 200)
        view.close()


@test
def a_query_that_computes_is_ended(cwd):
    with Server(cwd, "[frond]\nrequest_steps = 4000000000\n") as server, server.login() as c:
        server.ask("PUT", "/db")
        for n in range(0, 100, 20):
            docs = [{"_id": str(i), "a": WIDE} for i in range(n, n + 20)]
            equal(server.ask("POST", "/db/_bulk_docs", {"docs": docs})[0], 201)
        query = {"selector": {"a": {"$elemMatch": {"$or": [{"$eq": n} for n in range(1, 60)]}}}}
        find = server.begin("POST", "/db/_find", json.dumps(query).encode())
        end(c, "http", "/db/_find")
        until(lambda: not running(c, "http"))
        try:
            answer = find.getresponse()
            equal(answer.status, 503)
        except ConnectionResetError:
            pass  # it had begun to answer
        find.close()
        values = dict(scraped(server))
        assert 'frond_http_responses_total{endpoint="find",class="2xx"}' not in values


def scraped(server):
    _, text = fetch_text(server, "/_node/_local/_prometheus")
    for line in text.splitlines():
        if line and line[0] != "#":
            name, value = line.rsplit(" ", 1)
            if float(value):
                yield name, float(value)


def fetch_text(server, path):
    connection = server.begin("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@test
def a_request_that_waits_for_its_client_is_ended(cwd):
    with Server(cwd) as server, server.login() as c:
        server.ask("PUT", "/db")
        # One whose body does not come,
        with socket.create_connection(server.address, timeout=120) as s:
            head = f"PUT /db/x HTTP/1.1\r\nHost: x\r\nAuthorization: {HEADERS['Authorization']}\r\n"
            s.sendall(head.encode() + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
            end(c, "http", "/db/x")
            is_cut(lambda: s.recv(100))
        # and one that does not read.
        for n in range(0, 200, 100):
            docs = [{"_id": f"{i:03}", "a": "x" * 50000} for i in range(n, n + 100)]
            equal(server.ask("POST", "/db/_bulk_docs", {"docs": docs})[0], 201)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(server.address)
            s.sendall(f"GET /db/_all_docs?include_docs=true HTTP/1.1\r\nHost: x\r\n"
                      f"Authorization: {HEADERS['Authorization']}\r\n\r\n".encode())
            assert s.recv(1)
            end(c, "http", "/db/_all_docs")
            until(lambda: not running(c, "http"))
        equal(server.ask("GET", "/db/000")[0], 200)


@test
def only_administrators_see_and_end_what_other_doors_do(cwd):
    with Server(cwd) as server, server.login() as c:
        server.ask("PUT", "/db")
        c({"createUser": "watcher", "pwd": "apple", "roles": [{"role": "clusterAdmin", "db": "admin"}]})
        feed = server.begin("GET", "/db/_changes?feed=continuous")
        op = seen(c, "http")
        with server.login("watcher", "apple") as watcher:
            equal(running(watcher, "http"), [])
            equal(len([one for one in watcher({"currentOp": 1, "$all": True})["inprog"] if one["type"] == "op"]), 2)
            watcher({"killOp": 1, "op": op["opid"]})
            equal(seen(c, "http")["opid"], op["opid"])
        c({"killOp": 1, "op": op["opid"]})
        until(lambda: not running(c, "http"))
        feed.close()


@test
def a_command_of_redis_is_seen_and_its_client_ended(cwd):
    with Server(cwd) as server, server.login() as c, server.redis() as waiter, server.redis() as other:
        waiter.send("BLPOP", "list", "0")
        op = seen(c, "redis")
        equal((op["command"], op["effectiveUsers"]), ({"blpop": ""}, [{"user": "root", "db": "admin"}]))
        contains(other("CLIENT", "LIST").decode(), f"addr={op['client']} ")
        c({"killOp": 1, "op": op["opid"]})
        try:
            raise AssertionError(waiter.read())
        except EOFError:
            pass
        until(lambda: op["client"] not in other("CLIENT", "LIST").decode())
        until(lambda: not running(c, "redis"))


@test
def a_command_of_redis_that_computes_is_ended_and_no_other(cwd):
    with Server(cwd) as server, server.login() as c, server.redis() as busy, server.redis() as other:
        busy.send("EVAL", "while true do end", "0")
        end(c, "redis")
        answers = []
        try:
            while True:
                answers.append(busy.read())
        except EOFError:
            pass
        assert len(answers) < 2, answers
        equal(other("SET", "k", "v"), "OK")
        until(lambda: not running(c, "redis"))


def slow_lines(server):
    return [line for line in server.read_log().splitlines() if "event=slow_operation" in line]


@test
def what_is_slow_is_one_line_whatever_the_door(cwd):
    ini = "[frond]\nslow_request_ms = 1\n[mongo]\nslow_ms = 60000\n"
    with Server(cwd, ini) as server, server.login() as c, server.redis() as r:
        server.ask("PUT", "/db")
        docs = {"docs": [{"_id": f"{i:05}", "secret": i} for i in range(3000)]}
        equal(server.ask("POST", "/db/_bulk_docs", docs)[0], 201)
        c({"profile": 0, "slowms": 0})
        c({"insert": "c", "documents": [{"_id": i, "secret": "x" * 1000} for i in range(3000)]}, "db")
        c({"profile": 0, "slowms": 60000})
        r("CLIENT", "SETNAME", "worker")
        r("CONFIG", "SET", "slowlog-log-slower-than", "0")
        r("SLOWLOG", "RESET")
        r("SET", "key", "secret")
        r("CONFIG", "SET", "slowlog-log-slower-than", "-1")
        lines = slow_lines(server)

        def one(*parts):
            found = [line for line in lines if all(part in line for part in parts)]
            equal(len(found), 1)
            assert re.search(r" took_ms=\d+ .* client=127\.0\.0\.1:\d+ left_out=\d+$", found[0]), found
            contains(found[0], ' user="root" ')
            return found[0]
        found = [one("level=warn", " door=http name=POST ", ' on="/db/_bulk_docs" ', " status=201 "),
                 one("level=warn", " door=mongo name=insert ", ' on="db.c" ', " code=0 "),
                 one("level=info", " door=redis name=set ", " db=0 args=3 ")]
        assert "secret" not in "\n".join(lines), lines

        # The same, as the doors tell it.
        equal(r("SLOWLOG", "GET")[0][3:6:2], [[b"SET", b"key", b"secret"], b"worker"])
        log = c({"getLog": "global"})["log"]
        for line in found:
            text = line[line.index("event="):line.index(" left_out=")]
            equal(len([told for told in log if told.endswith(text)]), 1)
        equal(c({"getLog": "startupWarnings"})["log"], [])
        c({"createUser": "watcher", "pwd": "apple", "roles": [{"role": "clusterMonitor", "db": "admin"}]})
        with server.login("watcher", "apple") as watcher:
            doors = {re.search(r" door=(\w+) ", line)[1] for line in watcher({"getLog": "global"})["log"]}
        equal(doors, {"mongo"})
        values = dict(scraped(server))
    slow = {door: values[f'frond_slow_operations_total{{door="{door}"}}'] for door in ("http", "mongo", "redis")}
    assert slow["http"] >= 1 and slow["mongo"] >= 1 and slow["redis"] >= 1, slow
    name = "frond_operation_duration_seconds_count"
    equal((values[f'{name}{{door="http",class="bulk_docs"}}'], values[f'{name}{{door="mongo",class="insert"}}'],
           values[f'{name}{{door="redis",class="string"}}']), (1, 1, 1))


@test
def many_requests_come_and_go_while_others_look(cwd):
    with Server(cwd) as server, server.login() as c:
        server.ask("PUT", "/db")

        def work():
            for n in range(100):
                server.ask("GET", f"/db/{n}")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for op in running(c, "http"):
                equal(op["desc"], "http")
        until(lambda: not running(c, "http"))


main()
