"""Stores that earlier commits have written (see README.md): the present binary reads them as those
did, finds nothing wrong in them, and goes on writing."""

import base64
import json
import pathlib
import re
import sys
import tarfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from cql_wire import Connection, CqlError  # noqa: E402
from harness import Server, contains, equal, main, ok, run, test  # noqa: E402
from mongo import Client  # noqa: E402
from resp import Client as Redis  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STORE = "embedded:store"


def stores():
    """The name of every store that is kept."""
    names = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))
    assert names, "no store is kept"
    return names


def unpack(cwd, name):
    target = cwd / name
    target.mkdir()
    with tarfile.open(HERE / f"{name}.tar.xz") as tar:
        tar.extractall(target)
    return target


def databases(cwd):
    return json.loads((cwd / "expected" / "databases.json").read_text())


def dump(cwd, db):
    revs = [] if ":" in db else ["--revs"]
    return ok("dump", db, *revs, "--quiet", "--store", STORE, cwd=cwd).stdout


def whole(cwd):
    contains(ok("verify", "--quiet", "--store", STORE, cwd=cwd).stdout, " 0 findings")


@test
def every_store_is_dumped_as_its_own_binary_dumped_it(cwd):
    for name in stores():
        store = unpack(cwd, name)
        for db in databases(store):
            equal(dump(store, db), (store / "expected" / f"{db}.jsonl").read_text())


def without_columns_of_entries(drawn):
    """
    Older binaries drew the columns in an entry's key as bytes, not as what they stand for. The index,
    the document and the value remain; `verify` compares the bytes with those of the documents.
    """
    document = r'"(?:[^"\\]|\\.)*"(?:\.\.\.\(\d+ bytes\))?'
    return re.sub(rf'^(  \("entries", \d+), .*(, {document}\) = )', r"\1\2", drawn, flags=re.M)


def without_terms_of_indexes(drawn):
    """Older binaries drew the definition of a collection's index as the tuple that it is."""
    return re.sub(r'^(  \("indexes", \d+\) = \(2, ).*$', r"\1", drawn, flags=re.M)


def without_doors_of_databases(drawn):
    """Older binaries drew the name of a database without what tells whose it is."""
    return re.sub(r'^database "(?:mongo|redis|rows):', 'database "', drawn, flags=re.M)


def comparable(drawn):
    return without_doors_of_databases(without_terms_of_indexes(without_columns_of_entries(drawn)))


@test
def every_pair_of_it_is_drawn_as_its_own_binary_drew_it(cwd):
    for name in stores():
        store = unpack(cwd, name)
        equal(comparable(ok("inspect", "--store", STORE, cwd=store).stdout),
              comparable((store / "expected" / "inspect.txt").read_text()))


@test
def nothing_is_found_wrong_in_it(cwd):
    for name in stores():
        whole(unpack(cwd, name))


@test
def a_server_goes_on_with_it(cwd):
    for name in stores():
        store = unpack(cwd, name)
        with Server(store, "--store", STORE, "--admin", "root:secret") as server:
            def ask(method, path, body=None):
                return server.request(method, path, body,
                                      {"Authorization": "Basic cm9vdDpzZWNyZXQ="})
            equal(ask("GET", "/dropped")[0], 404)
            for db in ("packed", "exploded", "tallies", "arrived"):
                before = ask("GET", f"/{db}")[1]
                equal(ask("PUT", f"/{db}/written-since", {"n": 1})[0], 201)
                after = ask("GET", f"/{db}")[1]
                equal(after["doc_count"], before["doc_count"] + 1)
                assert after["update_seq"] > before["update_seq"], (before, after)
                equal(ask("GET", f"/{db}/_changes?since={before['update_seq']}")[1]
                      ["results"][0]["id"], "written-since")
            equal(ask("PUT", "/moved/d", {"n": 1})[0], 403)
            equal(ask("PUT", "/moving/d", {"n": 1})[0], 503)
            for db in ("packed", "exploded"):
                doc = ask("GET", f"/{db}/conflicts?conflicts=true")[1]
                equal(len(doc["_conflicts"]), 2)
                equal(ask("DELETE", f"/{db}/conflicts?rev={doc['_rev']}")[0], 200)
                equal(ask("GET", f"/{db}/_revs_limit")[1], 20)
                equal(ask("GET", f"/{db}/_security")[1]["admins"]["names"], ["anna"])
                equal(ask("GET", f"/{db}/_local/checkpoint")[1]["session"], "s")
                equal(ask("GET", f"/{db}/purged")[0], 404)
                # The purge of the first store is of before there were records of them.
                purges = ask("GET", f"/{db}/_purged_infos")[1]["purged_infos"]
                equal([purge["id"] for purge in purges], [] if name == "format-1" else ["purged"])
                rev = ask("PUT", f"/{db}/purged", {"n": 2})[1]["rev"]
                equal(ask("POST", f"/{db}/_purge", {"purged": [rev]})[0], 201)
                equal(ask("GET", f"/{db}/_purged_infos")[1]["purged_infos"],
                      purges + [{"id": "purged", "revs": [rev]}])
            designs = len(ask("GET", "/tallies/_design_docs")[1]["rows"])
            equal(ask("GET", "/tallies/_all_docs?limit=1&startkey=\"t00700\"")[1]["offset"],
                  700 + designs)
            equal(ask("GET", "/_node/_local/_config/cors/origins")[1], "https://example.org")
            equal(ask("PUT", "/created-since")[0], 201)
            equal(ask("DELETE", "/tallies")[0], 200)
        whole(store)


def found(ask, path, selector):
    """The ids that a query finds, which an index has to serve."""
    status, answer = ask("POST", path, {"selector": selector, "fields": ["_id"], "limit": 2000})
    equal(status, 200)
    assert "warning" not in answer, answer
    return [doc["_id"] for doc in answer["docs"]]


@test
def indexes_of_it_are_read_kept_and_built_to_their_end(cwd):
    for name in stores():
        if name == "format-1":
            continue
        store = unpack(cwd, name)
        with Server(store, "--store", STORE, "--admin", "root:secret") as server:
            def ask(method, path, body=None):
                return server.request(method, path, body,
                                      {"Authorization": "Basic cm9vdDpzZWNyZXQ="})
            equal(found(ask, "/indexes/_find", {"value": {"$gte": 0, "$lt": 2}}), ["v03", "v05"])
            equal(found(ask, "/indexes/_find", {"value": "y" * 5000}), ["v13"])
            equal(found(ask, "/indexes/_find", {"value": "of a long id"}), ["i" * 6900])
            equal(ask("PUT", "/indexes/since", {"value": 1})[0], 201)
            equal(found(ask, "/indexes/_find", {"value": {"$gte": 0, "$lt": 2}}),
                  ["v03", "since", "v05"])
            equal(found(ask, "/partitions/_partition/a/_find", {"n": {"$gt": 24}}),
                  ["a:26", "a:28"])
            equal(found(ask, "/partitions/_find", {"n": {"$gt": 26}}), ["b:27", "a:28", "b:29"])
            info = ask("GET", "/partitions/_partition/a")[1]
            equal((info["doc_count"], info["doc_del_count"]), (16, 1))
            equal(ask("PUT", "/partitions/a:since", {"n": 27})[0], 201)
            equal(found(ask, "/partitions/_partition/a/_find", {"n": {"$gt": 24}}),
                  ["a:26", "a:since", "a:28"])
            # What was being built is built, and what was dropped is cleared.
            for _ in range(300):
                rows = ask("GET", "/tallies/_index?sizes=true")[1]["indexes"][1:]
                count = ask("GET", "/tallies")[1]["indexes"]
                states = {row["state"] for row in rows}
                if states == {"ready"} and count["entries"] == sum(row["entries"] for row in rows):
                    break
                time.sleep(0.1)
            assert rows and all(row["entries"] == 1401 for row in rows), rows
            equal(count, {"count": len(rows), "entries": 1401 * len(rows)})
        whole(store)


# Passwords of the people that `make.py` writes, and their roles.
PEOPLE = {
    "anna": ("apple", ["boss", "staff"]), "Jürgen Ü": ("pärchen", []), "oldest": ("pear", []),
    "older": ("plum", []), "changed": ("before", []), "twice": ("yes", ["won"])}
STRANGERS = (("anna", "pear"), ("unhashed", ""), ("changed", "at first"), ("gone", "quince"),
             ("twice", "no"))


def log_in(server, name, password):
    return server.request("POST", "/_session", {"name": name, "password": password})


@test
def people_of_it_log_in_and_their_databases_are_theirs(cwd):
    for name in stores():
        if name in ("format-1", "format-2"):
            continue
        store = unpack(cwd, name)
        listed = [json.loads(line) for line in ok("user", "list", "--store", STORE,
                                                  cwd=store).stdout.splitlines()]
        equal({person["name"]: person["roles"] for person in listed},
              {**{name: roles for name, (_, roles) in PEOPLE.items()}, "unhashed": []})
        with Server(store, "--store", STORE, "--admin", "root:secret") as server:
            def ask(method, path, body=None, basic="root:secret"):
                return server.request(method, path, body, {
                    "Authorization": "Basic " + base64.b64encode(basic.encode()).decode()})
            for person, password in STRANGERS:
                equal(log_in(server, person, password)[0], 401)
            for person, (password, roles) in PEOPLE.items():
                for _ in range(2):  # an older hash is replaced at the first login
                    status, answer = log_in(server, person, password)
                    equal((status, answer.get("roles")), (200, roles))
                own = f"/userdb-{person.encode().hex()}"
                basic = f"{person}:{password}"
                equal(ask("GET", f"{own}/mine", basic=basic)[1]["of"], person)
                equal(ask("PUT", f"{own}/since", {"n": 1}, basic=basic)[0], 201)
                equal(ask("GET", f"/userdb-{b'unhashed'.hex()}", basic=basic)[0], 403)
            # The chore goes on where it was.
            equal(ask("PUT", "/_users/org.couchdb.user:new", {
                "type": "user", "name": "new", "roles": [], "password": "fig"})[0], 201)
            for _ in range(300):
                if ask("GET", f"/userdb-{b'new'.hex()}", basic="new:fig")[0] == 200:
                    break
                time.sleep(0.1)
            else:
                raise AssertionError("there is no database for a new user")
        whole(store)


@test
def views_of_it_are_read_and_built(cwd):
    for name in stores():
        if name in ("format-1", "format-2"):
            continue
        store = unpack(cwd, name)
        with Server(store, "--store", STORE, "--admin", "root:secret") as server:
            def ask(path, method="GET", body=None):
                return server.request(method, f"/indexes{path}", body,
                                      {"Authorization": "Basic cm9vdDpzZWNyZXQ="})[1]
            designs = len(ask("/_design_docs")["rows"])
            equal(len(ask("/_design/unasked/_view/n")["rows"]), ask("")["doc_count"] - designs)
            kinds = ask("/_design/built/_view/kinds?group=true")["rows"]
            equal([row["key"] for row in kinds], [0, 1, 2])
            ask("/since", "PUT", {"n": 4})
            after = ask("/_design/built/_view/kinds?group=true")["rows"]
            equal([row["value"] for row in after],
                  [kinds[0]["value"], kinds[1]["value"] + 4, kinds[2]["value"]])
        whole(store)


def refusal(answer):
    """The code of the only document's failure."""
    equal((answer["n"], len(answer["writeErrors"])), (0, 1))
    return answer["writeErrors"][0]["code"]


@test
def collections_of_it_are_found_by_their_indexes_and_written(cwd):
    for name in stores():
        store = unpack(cwd, name)
        if "mongo:shop.packed" not in databases(store):
            continue
        with Server(store, "--store", STORE, "--mongo", "127.0.0.1:0") as server:
            port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)",
                                 server.read_log()).group(1))
            for collection in ("packed", "exploded"):
                with Client(port) as c:
                    def numbers(filter, **more):
                        answer = c({"find": collection, "filter": filter,
                                    "projection": {"_id": 0, "n": 1}, **more}, "shop")
                        return [doc["n"] for doc in answer["cursor"]["firstBatch"]]

                    def insert(**document):
                        return c({"insert": collection, "documents": [document]}, "shop")
                    equal(numbers({"n": {"$gt": 2, "$lt": 7}}, sort={"n": -1}, hint="n_tags"),
                          [6, 4, 3])  # 5 has been replaced
                    equal(numbers({"own": "o9"}, hint="own"), [9])
                    equal(numbers({"n": 7}, hint="hashed"), [7])
                    for id, size in (("chunks", 200000), ("ahead", 2500000)):
                        found = c({"find": collection, "filter": {"_id": id}}, "shop")
                        equal(len(found["cursor"]["firstBatch"][0]["text"]), size)
                    equal(refusal(insert(_id="again", n=1, own="another")), 11000)
                    equal(refusal(insert(_id="invalid", own="no n")), 121)
                    equal(insert(_id="since", n=5, own="since", tags=["a", "b"])["n"], 1)
                    equal(numbers({"n": 5}, hint="hashed"), [5])
                    equal(numbers({"n": {"$gt": 2, "$lt": 7}}, sort={"n": 1}, hint="n_tags"),
                          [3, 4, 5, 6])
                    equal(c({"delete": collection, "deletes": [{"q": {"n": {"$lt": 3}},
                                                                "limit": 0}]}, "shop")["n"], 3)
        whole(store)


@test
def keys_of_it_are_read_and_written(cwd):
    for name in stores():
        store = unpack(cwd, name)
        if "redis:0" not in databases(store):
            continue
        with Server(store, "--store", STORE, "--redis", "127.0.0.1:0") as server:
            port = int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
            with Redis(port) as c:
                keys = c("KEYS", "*")
                kinds = {c("TYPE", key) for key in keys}
                equal(kinds, {"string", "hash", "set", "zset", "list", "stream"})
                equal(c("DBSIZE"), len(keys))
                for key in keys:
                    if c("TYPE", key) == "string":
                        length = c("STRLEN", key)
                        equal(c("APPEND", key, "x"), length + 1)
                    if c("TYPE", key) == "list":
                        equal(c("RPUSH", key, "x"), c("LLEN", key))
                        equal(c("LINDEX", key, -1), b"x")
                    if c("TYPE", key) == "hash":
                        equal(c("HSET", key, "since", "x"), 1)
                equal(c("SET", "since", "v"), "OK")
                equal(c("DBSIZE"), len(keys) + 1)
        whole(store)


@test
def rows_of_it_are_written(cwd):
    for name in stores():
        store = unpack(cwd, name)
        if "rows:msgs" not in databases(store):
            continue
        described, *rows = dump(store, "rows:msgs").splitlines()
        row = json.loads(rows[0])
        row["key"]["at"] = 1000
        ok("load", "rows:msgs", "-", "--quiet", "--store", STORE, cwd=store,
           stdin=f"{described}\n{json.dumps(row)}\n")
        after = [json.loads(line)["key"] for line in dump(store, "rows:msgs").splitlines()[1:]]
        equal(len(after), len(rows) + 1)
        assert row["key"] in after, after
        whole(store)


def numbers(rows):
    return sorted(int.from_bytes(row["c"], "big") for row in rows)


@test
def tables_of_it_are_found_by_their_indexes_and_written(cwd):
    for name in stores():
        store = unpack(cwd, name)
        if "table:shop.indexed" not in databases(store):
            continue
        with Server(store, "--store", STORE, "--cql", "127.0.0.1:0") as server:
            port = int(re.search(r"event=cql address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
            with Connection(port) as cql:
                cql.start()
                equal(numbers(cql.query("SELECT c FROM shop.indexed WHERE t = 'text 1'")), [1, 5, 9])
                equal(numbers(cql.query("SELECT c FROM shop.indexed WHERE n = 7")), [7])
                equal(cql.query("SELECT long FROM shop.indexed WHERE k = 1 AND c = 1")[0]["long"], b"\xab" * 200000)
                try:
                    cql.query("INSERT INTO shop.indexed (k, c, t, n) VALUES (9, 9, 'text 1', 5)")
                    raise AssertionError("a second row has the same values of a unique index")
                except CqlError:
                    pass
                cql.query("INSERT INTO shop.indexed (k, c, t, n) VALUES (9, 90, 'text 1', 6)")
                cql.query("DELETE FROM shop.indexed WHERE k = 1 AND c = 1")
                equal(numbers(cql.query("SELECT c FROM shop.indexed WHERE t = 'text 1'")), [5, 9, 90])
                cql.query("UPDATE shop.counts SET a = a + 1 WHERE k = 1 AND c = 'x'")
                counts = cql.query("SELECT a, b FROM shop.counts WHERE k = 1 AND c = 'x'")[0]
                equal([int.from_bytes(counts[c], "big", signed=True) for c in "ab"], [6, -7])
                cql.query("INSERT INTO shop.past (k, v) VALUES (0, 'since')")
                cql.query("ALTER TABLE shop.everything ADD since text")
                cql.query("UPDATE shop.everything SET since = 'x' WHERE k = 1 AND c = 50554d6e-29bb-11e5-b345-feff819cdc9f")
        whole(store)


@test
def a_move_that_its_binary_began_is_undone(cwd):
    for name in stores():
        store = unpack(cwd, name)
        ok("move", "--quiet", "--rollback", "--from", STORE, "--to", "embedded:other", "moving",
           cwd=store)
        equal(run("move", "--quiet", "--from", STORE, "--to", "embedded:other", "moved",
                  cwd=store).returncode, 1)
        ok("move", "--quiet", "--from", STORE, "--to", "embedded:other", "moving", cwd=store)
        equal(ok("dump", "moving", "--revs", "--quiet", "--store", "embedded:other",
                 cwd=store).stdout, (store / "expected" / "moving.jsonl").read_text())
        whole(store)


main()
