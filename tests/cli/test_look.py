"""What the page at /_frond/ asks: every database as `frond inspect` prints it, page by page, and what was slow."""

import base64
import itertools
import re
import urllib.parse

from cql_wire import AUTH_SUCCESS, Connection
from harness import Server, contains, equal, main, ok, run, test, until
from mongo_server import MongoServer
from resp import Client as RedisClient

ADMIN = {"Authorization": "Basic " + base64.b64encode(b"root:secret").decode()}


def pages(server, name, member, **values):
    """All that is listed, by pages, each of which leads to the next."""
    found = []
    while True:
        code, answer = server.request("GET", f"/_frond/{name}?{urllib.parse.urlencode(values)}", headers=ADMIN)
        equal(code, 200)
        found.append(answer[member])
        if "next" not in answer:
            return found
        assert answer[member], answer
        values["after"] = answer["next"]


def shown(server, db, **values):
    """Subspaces and pairs, as inspect has them on its lines."""
    lines, space = [], None
    for pair in sum(pages(server, "leaves", "pairs", db=db, **values), []):
        if pair["space"] != space:
            space = pair["space"]
            lines.append(space)
        lines.append("  " + pair["text"])
    return lines


def inspected(cwd, *what):
    return [line for line in ok("inspect", *what, cwd=cwd).stdout.splitlines()
            if line and not re.match(r'database "|\d+ keys, ', line)]


def fill(server, redis, mongo, cql):
    for name, scheme in (("packed", "packed"), ("exploded", "exploded")):
        equal(server.request("PUT", f"/{name}?scheme={scheme}", headers=ADMIN)[0], 201)
        for i in range(20):
            doc = {"n": i, "a": {"b": ["x", "ünï", i]}}
            equal(server.request("PUT", f"/{name}/doc-{i}", doc, headers=ADMIN)[0], 201)
        equal(server.request("PUT", f"/{name}/_local/l", {"n": 1}, headers=ADMIN)[0], 201)
    redis("HSET", b"bytes \x00\xff", b"field \xfe", b"\x80value")
    redis("SET", "large", "x" * 300000)
    redis("ZADD", "z", *sum(([n, f"m{n}"] for n in range(50)), []))
    mongo({"insert": "c", "documents": [{"_id": n, "a": [1, {"b": n}]} for n in range(10)] + [{"_id": "7", "x": 1}]},
          "shop")
    cql("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    cql("CREATE TABLE ks.t (shelf text, year int, tags set<text>, place text STATIC, PRIMARY KEY (shelf, year))")
    cql("CREATE INDEX ON ks.t (year)")
    for year in range(5):
        cql(f"INSERT INTO ks.t (shelf, year, tags, place) VALUES ('a', {year}, {{'x', 'y'}}, 'left')")


def row_keys(lines):
    """One row, and its partition, as they are drawn."""
    row = next(found for found in (re.match(r"  ((\(0x[0-9a-f]{4}, 'a'), 3\)),", line) for line in lines) if found)
    return row.groups()


@test
def leaves_are_those_that_inspect_prints(cwd):
    with MongoServer(cwd, "--admin", "root:secret", "--redis", "127.0.0.1:0", "--cql", "127.0.0.1:0") as server:
        ports = [int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
                 for door in ("redis", "cql")]
        with RedisClient(ports[0]) as redis, server.client() as mongo, Connection(ports[1]) as cql:
            redis("AUTH", "root", "secret")
            mongo.login("root", "secret")
            cql.start()
            equal(cql.login("root", "secret"), AUTH_SUCCESS)
            fill(server, redis, mongo, cql.query)
        names = [db["name"] for page in pages(server, "databases", "databases") for db in page]
        equal(sorted(names), sorted(["packed", "exploded", "redis:0", "mongo:shop.c", "table:ks.t"]))
        whole = {name: shown(server, name, limit=7) for name in names}
        equal(whole, {name: shown(server, name, limit=1000) for name in names})
        parts = {(db, key): shown(server, db, id=key, limit=2) for db, key in (
            ("packed", "doc-3"), ("exploded", "doc-3"), ("exploded", "_local/l"), ("redis:0", "z"),
            ("redis:0", "large"), ("mongo:shop.c", "7"), ("mongo:shop.c", '"7"'),
            ("mongo:shop.c", '{"$numberInt":"3"}'), *(("table:ks.t", key) for key in row_keys(whole["table:ks.t"])))}
        equal(server.stop(), 0)
    for name in names:
        equal(whole[name], inspected(cwd, name))
    for (db, key), lines in parts.items():
        equal(lines, inspected(cwd, db, key))
    assert parts[("mongo:shop.c", "7")] != parts[("mongo:shop.c", '"7"')], parts
    contains(" ".join(parts[("redis:0", "z")]), "m49")
    row, partition = (parts[("table:ks.t", key)] for key in row_keys(whole["table:ks.t"]))
    equal(row, ["rows", *(line for line in whole["table:ks.t"] if re.match(r"  \(0x\w+, 'a', 3\), .* -> ", line))])
    equal(partition, ["rows", *(line for line in whole["table:ks.t"] if re.match(r"  \(0x\w+, 'a'.* -> ", line))])


KEYS = {"text": ["'a'", "'it''s, (1)'", "'é'", "''"], "int": [1, 10, -7], "bigint": [2 ** 62, -2 ** 62], "smallint": [3],
        "boolean": ["true", "false"], "double": [0.5, -1e300, 7], "float": [0.25], "blob": ["0x", "0x00ff"],
        "uuid": ["00000000-0000-4000-8000-0000000000ff"], "timeuuid": ["50554d6e-29bb-11e5-b345-feff819cdc9f"],
        "inet": ["'127.0.0.1'", "'::1'"], "date": ["'2026-11-21'"], "timestamp": ["'2026-11-21 10:00:00+0000'", 0],
        "time": ["'08:12:54.123456789'"], "tinyint": [-128]}


@test
def one_row_is_found_by_what_is_drawn_of_its_key(cwd):
    rows = []
    with Server(cwd, "--cql", "127.0.0.1:0") as server:
        port = int(re.search(r"event=cql address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
        with Connection(port) as cql:
            cql.start()
            cql.query("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            for name, values in KEYS.items():
                cql.query(f"CREATE TABLE ks.{name}_t (p int, s int STATIC, a {name}, b {name}, v int, PRIMARY KEY (p, a, b))"
                          " WITH CLUSTERING ORDER BY (a ASC, b DESC)")
                for a, b in itertools.product(values, values):
                    cql.query(f"INSERT INTO ks.{name}_t (p, a, b, s, v) VALUES (1, {a}, {b}, 1, 2)")
    for name, values in KEYS.items():
        db = f"table:ks.{name}_t"
        lines = [line for line in inspected(cwd, db) if re.match(r"  \(0x.* -> ", line)]
        drawn = sorted({re.match(r"  (\(0x\w+, 1, .*\)), \w+_column_id", line).group(1)
                        for line in lines if ", s_column_id" not in line})
        equal(len(drawn), len(values) ** 2)
        for key in drawn:
            equal(inspected(cwd, db, key), ["rows", *(line for line in lines if line.startswith(f"  {key}, "))])
        first = drawn[0][:-1].rsplit(", ", 1)[0] if name != "text" else None
        if first:
            equal(inspected(cwd, db, first), ["rows", *(line for line in lines if line.startswith(f"  {first}, "))])
        rows += drawn
    for key in ("", "(", "(0x", "(0x12", "(0x1g34, 1", "x", rows[0][:-1] + ", 1)", rows[0] + ")", rows[0][:-2],
                rows[0].replace(" 1,", " 2,"), rows[0].replace("(0x", "(0X")):
        result = run("inspect", "table:ks.int_t", key, cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, "no document")


@test
def what_is_asked_wrongly_is_refused(cwd):
    with Server(cwd, "--admin", "root:secret") as server:
        equal(server.request("PUT", "/db", headers=ADMIN)[0], 201)
        for path, code in (("leaves", 400), ("leaves?db=none", 404), ("leaves?db=redis:0", 404),
                           ("leaves?db=db&id=x", 404), ("leaves?db=db&limit=0", 400),
                           ("leaves?db=db&limit=1001", 400), ("leaves?db=db&limit=x", 400),
                           ("leaves?db=db&after=0", 400), ("leaves?db=db&after=x!", 400),
                           ("databases?after=q", 400),
                           ("databases?after=AA", 400), ("databases?after=__8", 400),
                           ("leaves?db=db&after=AA", 200)):
            equal(server.request("GET", f"/_frond/{path}", headers=ADMIN)[0], code)
        for body in ({}, {"end": "7"}, {"end": -1}, {"end": 1.5}):
            equal(server.request("POST", "/_frond/operations", body, headers=ADMIN)[0], 400)
        equal(server.request("POST", "/_frond/slow", {}, headers=ADMIN)[0], 405)
        equal(server.request("GET", "/_frond/page.html", headers=ADMIN)[0], 404)


@test
def databases_are_listed_page_by_page(cwd):
    with Server(cwd, "--admin", "root:secret") as server:
        for n in range(150):
            equal(server.request("PUT", f"/db{n:03}", headers=ADMIN)[0], 201)
        listed = pages(server, "databases", "databases")
        equal([len(page) for page in listed], [100, 50])
        equal([db["name"] for page in listed for db in page], [f"db{n:03}" for n in range(150)])
        equal({db["kind"] for page in listed for db in page}, {"revisioned"})


@test
def slow_operations_are_listed_without_what_was_sent(cwd):
    (cwd / "ini").write_text("[frond]\nslow_request_ms = 1\n")
    with Server(cwd, "--admin", "root:secret", "--config", "ini") as server:
        equal(server.request("PUT", "/db", headers=ADMIN)[0], 201)
        docs = {"docs": [{"secret": "s3cret" * 200}] * 500}
        equal(server.request("POST", "/db/_bulk_docs", docs, headers=ADMIN)[0], 201)

        def bulks():
            code, answer = server.request("GET", "/_frond/slow", headers=ADMIN)
            equal(code, 200)
            assert "s3cret" not in str(answer)
            return [line for line in answer["slow"] if "/db/_bulk_docs" in line["line"]]
        # It is noted when its handler has returned, which is behind the answer.
        until(bulks)
        assert all(line["ms"] >= 1 and line["door"] == "http" for line in bulks())


main()
