#!/usr/bin/env python3
"""Who has not logged in, and who has no right, at every door with connections: requests have to be short, and each
refusal is one line of the log."""

import base64
import re
import socket
import struct
import urllib.request
import zlib

from cql_wire import AUTH_RESPONSE, OPTIONS, QUERY, SUPPORTED, Connection, error_of
from harness import QUICK, Server, contains, equal, main, test
from mongo import OP_COMPRESSED, OP_MSG, Client as Mongo
from resp import Client as Redis, Error

STRANGER = 65536  # a quarter of NET_STRANGER_BYTES
LIMIT = "no more than 65536 bytes, a quarter of the limit NET_STRANGER_BYTES"
ROOT = {"Authorization": "Basic " + base64.b64encode(b"root:secret").decode()}
ANN = {"Authorization": "Basic " + base64.b64encode(b"ann:apple").decode()}


class Rows:
    """The protocol for rows, byte by byte."""
    HELLO, LOGIN, PING, SCHEMAS, SCHEMA_CREATE, DONE, ERROR = 1, 2, 3, 10, 11, 128, 129

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        equal(self.ask(self.HELLO, struct.pack(">IHH", 0x46524f57, 1, 1))[:2], self.ask(self.PING)[:2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, code, body=b"", length=None):
        self.socket.sendall(struct.pack(">IBBH", len(body) if length is None else length, code, 0, 7) + body)

    def read(self):
        """The code and what follows."""
        head = self.socket.recv(8, socket.MSG_WAITALL)
        length, code, _, number = struct.unpack(">IBBH", head)
        return number, code, self.socket.recv(length, socket.MSG_WAITALL) if length else b""

    def ask(self, code, body=b""):
        self.send(code, body)
        return self.read()

    def fails(self, code, body=b""):
        """The SQLSTATE and the text."""
        body = self.ask(code, body)[2]
        return body[:5].decode(), body[11:].decode(errors="replace")

    def login(self, name, password):
        self.ask(self.LOGIN, b"".join(struct.pack(">H", len(text)) + text.encode() for text in (name, password)))
        return self


class Doors(Server):
    def __init__(self, cwd):
        (cwd / "ini").write_text(QUICK)
        doors = ("redis", "mongo", "cql", "rows")
        super().__init__(cwd, *(word for door in doors for word in (f"--{door}", "127.0.0.1:0")), "--config", "ini",
                         env={"FROND_ADMIN": "root:secret"})
        log = self.read_log()
        self.ports = {door: int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", log)[1]) for door in doors}
        self.request("PUT", "/_users", headers=ROOT)
        person = {"name": "ann", "type": "user", "password": "apple", "roles": ["redis:~mine +@all"]}
        equal(self.request("PUT", "/_users/org.couchdb.user:ann", person, ROOT)[0], 201)

    def refused(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.request.Request(self.url + "/_node/_local/_prometheus", headers=ROOT)) as answer:
            found = re.search(r'frond_refusals_total\{limit="NET_STRANGER_BYTES"\} (\d+)', answer.read().decode())
        return int(found[1]) if found else 0

    def lines(self):
        """The refusals in the log: the door, the command, what it was on, how the door calls it, and who it was."""
        return [found.groups() for found in re.finditer(
            r'event=refused method=(\S+) path="(\S*)" status=(\S+) left_out=\d+ user="(\S*)" .*door=(\w+)',
            self.read_log())]


# ---- What is too long ----

@test
def a_long_request_of_mongodbs_protocol_is_refused_and_the_connection_goes_on(cwd):
    with Doors(cwd) as server, Mongo(server.ports["mongo"]) as c:
        for length in (STRANGER + 1, 1 << 20):
            c.send_raw(OP_MSG, bytes(length - 16))
            answer = c.read()[2]
            equal((answer["ok"], answer["code"]), (0.0, 146))
            contains(answer["errmsg"], LIMIT)
            equal(c({"ping": 1})["ok"], 1.0)
        c.fails({"hello": 1, "x": "x" * (STRANGER - 200), "y": 1}, "no such.db")  # it is read
        c.login("root", "secret")
        c({"insert": "c", "documents": [{"x": "x" * (1 << 20)}]}, "shop")
        c({"logout": 1})
        contains(c.fails({"ping": 1, "x": "x" * STRANGER})["errmsg"], LIMIT)
        equal(c({"ping": 1})["ok"], 1.0)


@test
def what_a_stranger_has_compressed_is_not_unpacked(cwd):
    with Doors(cwd) as server, Mongo(server.ports["mongo"]) as c:
        packed = struct.pack("<iiB", OP_MSG, 1 << 20, 2) + zlib.compress(bytes(1 << 20))
        assert len(packed) < STRANGER / 8
        c.send_raw(OP_COMPRESSED, packed)
        contains(c.read()[2]["errmsg"], LIMIT)


@test
def a_long_request_of_cassandras_protocol_is_refused_and_the_connection_goes_on(cwd):
    with Doors(cwd) as server, Connection(server.ports["cql"]) as c:
        c.start()
        for length in (STRANGER + 1, 1 << 20):
            code, text = c.error(AUTH_RESPONSE, bytes(length))
            equal(code, 0x1001)
            contains(text, LIMIT)
            equal(c.ask(OPTIONS)[0][3], SUPPORTED)
        equal(c.error(AUTH_RESPONSE, bytes(STRANGER))[0], 0x100)  # it is read
        c.login("root", "secret")
        equal(c.code("CREATE KEYSPACE " + "k" * (1 << 20)), 0x2000)


@test
def a_segment_of_cassandras_protocol_that_is_too_long_is_refused(cwd):
    with Doors(cwd) as server, Connection(server.ports["cql"], 5) as c:
        c.start()
        code, text = c.error(AUTH_RESPONSE, bytes(100000))
        equal(code, 0x1001)
        contains(text, LIMIT)
        assert c.ends()


@test
def a_long_request_for_rows_is_refused_and_the_connection_goes_on(cwd):
    with Doors(cwd) as server, Rows(server.ports["rows"]) as c:
        for length in (STRANGER + 1, 1 << 20):
            state, text = c.fails(c.LOGIN, bytes(length))
            equal(state, "53200")
            contains(text, LIMIT)
        equal(c.fails(c.PING, bytes(STRANGER))[0], "08P01")  # it is read
        c.login("root", "secret")
        equal(c.fails(c.PING, bytes(1 << 20))[0], "08P01")


@test
def a_long_request_of_rediss_protocol_ends_the_connection(cwd):
    with Doors(cwd) as server:
        for args, text in ((["x"] * 11, "ERR Protocol error: unauthenticated multibulk length"),
                           (["x" * 16385], "ERR Protocol error: unauthenticated bulk length"),
                           (["x" * 16384] * 10, "ERR Protocol error: nobody has logged in")):
            with Redis(server.ports["redis"]) as c:
                c.send(*args)
                contains(str(c.read()), text)
                equal(c.file.read(1), b"")
        with Redis(server.ports["redis"]) as c:
            equal(c.error("AUTH", "a" * 16384, "b" * 16384).split()[0], "WRONGPASS")
            c("AUTH", "root", "secret")
            equal(c("ECHO", "x" * (1 << 20)), b"x" * (1 << 20))


@test
def what_strangers_were_refused_is_counted_by_the_limit(cwd):
    with Doors(cwd) as server, Rows(server.ports["rows"]) as c:
        before = server.refused()
        c.fails(c.LOGIN, bytes(STRANGER + 1))
        equal(server.refused(), before + 1)


# ---- What there is no right to ----

@test
def a_command_of_one_who_has_not_logged_in_is_one_line(cwd):
    with Doors(cwd) as server:
        with Redis(server.ports["redis"]) as c:
            equal(c.pipeline(("GET", "k"), ("NOSUCH",)), [Error("NOAUTH Authentication required.")] * 2)
        with Mongo(server.ports["mongo"]) as c:
            equal(c.fails({"find": "c"}, "shop")["code"], 13)
        with Connection(server.ports["cql"]) as c:
            c.start()
            contains(c.error(QUERY, c.query_body("SELECT * FROM a.b"))[1], "expecting AUTH_RESPONSE")
        with Rows(server.ports["rows"]) as c:
            equal(c.fails(c.SCHEMAS), ("28000", "nobody has logged in"))
        equal(server.request("GET", "/_all_dbs")[0], 401)
        equal(server.lines(), [("GET", "", "NOAUTH", "", "redis"), ("NOSUCH", "", "NOAUTH", "", "redis"),
                               ("find", "", "Unauthorized", "", "mongo"), ("QUERY", "", "Unauthorized", "", "cql"),
                               ("SCHEMAS", "", "Unauthorized", "", "rows"), ("GET", "/_all_dbs", "401", "", "couch")])


@test
def a_command_without_the_right_is_one_line(cwd):
    with Doors(cwd) as server:
        with Redis(server.ports["redis"]) as c:
            c("AUTH", "ann", "apple")
            equal([str(one).split()[0] for one in c.pipeline(("GET", "mine"), ("GET", "theirs"), ("SET", "theirs", "v"))],
                  ["None", "NOPERM", "NOPERM"])
        with Mongo(server.ports["mongo"]).login("ann", "apple") as c:
            equal(c.fails({"insert": "c", "documents": [{"x": 1}]}, "shop")["code"], 13)
        with Connection(server.ports["cql"]) as c:
            c.start()
            c.login("ann", "apple")
            equal(c.code("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"),
                  0x2100)
        with Rows(server.ports["rows"]).login("ann", "apple") as c:
            equal(c.fails(c.SCHEMA_CREATE, struct.pack(">H", 4) + b"shop")[0], "42501")
        equal(server.request("PUT", "/shop", headers=ANN)[0], 401)
        equal(server.lines(), [("get", "theirs", "NOPERM", "ann", "redis"), ("set", "theirs", "NOPERM", "ann", "redis"),
                               ("insert", "shop.c", "Unauthorized", "ann", "mongo"),
                               ("QUERY", "shop", "Unauthorized", "ann", "cql"),
                               ("SCHEMA_CREATE", "shop", "Unauthorized", "ann", "rows"),
                               ("PUT", "/shop", "401", "ann", "couch")])


@test
def a_login_that_fails_has_a_line_of_its_own_and_no_other(cwd):
    with Doors(cwd) as server:
        with Redis(server.ports["redis"]) as c:
            c.error("AUTH", "ann", "pear")
        with Connection(server.ports["cql"]) as c:
            c.start()
            c.login("ann", "pear")
        with Rows(server.ports["rows"]) as c:
            c.login("ann", "pear")
        server.request("GET", "/_all_dbs", headers={"Authorization": "Basic " + base64.b64encode(b"ann:pear").decode()})
        equal(len(re.findall('event=login_refused name="ann"', server.read_log())), 4)
        equal(server.lines(), [])


@test
def a_person_who_is_changed_is_one_line_by_whichever_door(cwd):
    with Doors(cwd) as server:
        with Redis(server.ports["redis"]) as c:
            c("AUTH", "root", "secret")
            c("ACL", "SETUSER", "eve", "on", "+get")
            c("ACL", "DELUSER", "eve", "nobody")
        with Mongo(server.ports["mongo"]).login("root", "secret") as c:
            c({"createUser": "joe", "pwd": "x", "roles": []}, "shop")
            c({"dropUser": "joe"}, "shop")
        with Connection(server.ports["cql"]) as c:
            c.start()
            c.login("root", "secret")
            c.query("CREATE ROLE sam WITH LOGIN = true AND PASSWORD = 'x'")
            c.query("DROP ROLE sam")
        lines = re.findall(r'event=person_changed person="(\w+)" user="root" .*door=(\w+)', server.read_log())
        equal(lines, [("ann", "couch"), ("eve", "redis"), ("eve", "redis"), ("joe", "mongo"), ("joe", "mongo"),
                      ("sam", "cql"), ("sam", "cql")])


main()
