"""frond import: what another server has, and what is changed there meanwhile, from CouchDB's, MongoDB's
and Redis's protocols; ended and begun again; what does not fit is told.

The sources are a frond for CouchDB's and MongoDB's, and Debian's redis-server where there is one, else a
frond, too. FROND_IMPORT_COUCH=URL is a CouchDB to import from besides, with NAME:PASSWORD@ of an
administrator, to which the test adds a database of its own.
"""

import base64
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.request

from harness import ENV, FROND, QUICK, Server, Skip, contains, equal, main, ok, run, test, until
from mongo_server import MongoServer
from redis_random import PROGRAM, Peer
from resp import Client

ADMIN = {"Authorization": "Basic " + base64.b64encode(b"root:pw").decode()}
HELPER = pathlib.Path(FROND).parent / "frond-import"


def needs_helper():
    if not HELPER.exists():
        raise Skip("frond-import, which needs libmongoc and hiredis")


@contextlib.contextmanager
def two(cwd, kind, *options):
    """Two servers with stores of their own."""
    for name in ("from", "to"):
        (cwd / name).mkdir()
    with kind(cwd / "from", *options) as source, kind(cwd / "to", *options) as target:
        yield source, target


def imported(cwd, source, target, *options):
    return run("import", source, "--to", target, "--quiet", *options, cwd=cwd)


def fits(answer):
    """All has been imported, and nothing was said of what does not fit."""
    assert (answer.returncode, answer.stderr) == (0, ""), f"{answer.returncode}\n{answer.stdout}{answer.stderr}"
    return answer


def stopped(process, number=signal.SIGTERM):
    """Ends an import that follows."""
    process.send_signal(number)
    out, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (0, ""), f"{process.returncode}\n{out}{complaint}"
    contains(out, "ended; imported")


def begin(cwd, source, target, *options):
    return subprocess.Popen([FROND, "import", source, "--to", target, "--quiet", *options], cwd=cwd, env=ENV,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# ---- CouchDB's ----

def as_admin(url):
    return url.replace("http://", "http://root:pw@")


def fill_couch(server, headers):
    """Databases, revisions that conflict, deletions, an attachment, a design document, people."""
    def put(path, doc):
        server.request("PUT", path, doc, headers)

    put("/notes", None)
    for i in range(50):
        put(f"/notes/n{i:03}", {"n": i})
    _, doc = server.request("GET", "/notes/n001", None, headers)
    server.request("DELETE", f"/notes/n001?rev={doc['_rev']}", None, headers)
    server.request("POST", "/notes/_bulk_docs", {"new_edits": False, "docs": [
        {"_id": "n002", "_rev": "1-" + "a" * 32, "other": True}]}, headers)
    put("/notes/with", {"_attachments": {"a.txt": {"content_type": "text/plain", "data": "aGVsbG8="}}})
    put("/notes/_design/d", {"views": {"v": {"map": "function (doc) { emit(doc.n); }"}}})
    put("/notes/_security", {"admins": {"names": ["anna"], "roles": []},
                             "members": {"names": [], "roles": ["staff"]}})
    put("/notes/_revs_limit", 77)
    put("/parts?partitioned=true", None)
    put("/parts/a:1", {})
    put("/_users", None)
    put("/_users/org.couchdb.user:anna",
        {"name": "anna", "password": "secret", "type": "user", "roles": ["staff"]})


def check_couch(target):
    def get(path):
        return target.request("GET", path, None, {**ADMIN, "Accept": "application/json"})[1]

    equal(get("/notes")["doc_count"], 51)
    equal(sorted(get("/notes/n002?conflicts=true")["_conflicts"] + [get("/notes/n002")["_rev"]])[1],
          "1-" + "a" * 32)
    equal(get("/notes/n001")["reason"], "deleted")
    equal(get("/notes/with?attachments=true")["_attachments"]["a.txt"]["data"], "aGVsbG8=")
    contains(get("/notes/_design/d")["views"]["v"]["map"], "emit")
    equal(get("/notes/_security")["members"]["roles"], ["staff"])
    equal(get("/notes/_revs_limit"), 77)
    equal(get("/parts")["props"]["partitioned"], True)
    headers = {"Authorization": "Basic " + base64.b64encode(b"anna:secret").decode()}
    equal(target.request("GET", "/notes/n003", None, headers)[0], 200)


@test
def a_couchdb_comes_with_its_people_and_what_is_beside_documents(cwd):
    with two(cwd, Server, "--admin", "root:pw") as (source, target):
        fill_couch(source, ADMIN)
        answer = imported(cwd, as_admin(source.url), as_admin(target.url))
        fits(answer)
        contains(answer.stdout, "notes: ")
        contains(answer.stdout, "; 0 did not fit")
        check_couch(target)
        # Again: only what is new.
        source.request("PUT", "/notes/new", {}, ADMIN)
        answer = imported(cwd, as_admin(source.url) + "/notes", as_admin(target.url))
        contains(answer.stdout, "imported 1 documents")
        equal(target.request("GET", "/notes/new", None, ADMIN)[0], 200)


@test
def a_couchdb_s_import_tells_what_does_not_fit(cwd):
    with two(cwd, Server, "--admin", "root:pw") as (source, target):
        source.request("PUT", "/a", None, ADMIN)
        source.request("PUT", "/a/x", {"n": 1}, ADMIN)
        source.request("PUT", "/b", None, ADMIN)
        source.request("PUT", "/b/x", {}, ADMIN)
        target.request("PUT", "/a", None, ADMIN)
        target.request("PUT", "/a/_design/no", {
            "validate_doc_update": "function (doc) { throw({forbidden: 'never'}); }"}, ADMIN)
        answer = imported(cwd, as_admin(source.url), as_admin(target.url))
        equal(answer.returncode, 1)
        contains(answer.stdout, "did not fit: a: documents: 1")
        equal(target.request("GET", "/b/x", None, ADMIN)[0], 200)
        answer = imported(cwd, source.url, as_admin(target.url))
        equal(answer.returncode, 1)
        contains(answer.stderr, "401")
        answer = imported(cwd, as_admin(source.url), "redis://127.0.0.1:1")
        equal(answer.returncode, 2)
        answer = imported(cwd, as_admin(source.url), as_admin(target.url), "--state", "x")
        equal(answer.returncode, 2)


@test
def a_couchdb_s_import_follows_until_it_is_stopped(cwd):
    with two(cwd, Server, "--admin", "root:pw") as (source, target):
        source.request("PUT", "/a", None, ADMIN)
        process = begin(cwd, as_admin(source.url), as_admin(target.url), "--follow")
        until(lambda: target.request("GET", "/a", None, ADMIN)[0] == 200)
        source.request("PUT", "/a/x", {}, ADMIN)
        until(lambda: target.request("GET", "/a/x", None, ADMIN)[0] == 200)
        stopped(process)


@test
def a_couchdb_that_is_named_is_imported(cwd):
    url = os.environ.get("FROND_IMPORT_COUCH")
    if not url:
        raise Skip("FROND_IMPORT_COUCH names no CouchDB")
    raise_for = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    name = f"import-{random.randrange(1 << 40)}"
    split = re.fullmatch(r"(https?://)([^@]+)@(.*?)/?", url)
    headers = {"Authorization": "Basic " + base64.b64encode(split[2].encode()).decode(),
               "Content-Type": "application/json"}

    def ask(method, path, body=None):
        raise_for.open(urllib.request.Request(f"{split[1]}{split[3]}/{name}{path}", method=method, data=body,
                                              headers=headers), timeout=60).close()

    ask("PUT", "")
    try:
        ask("PUT", "/a", b'{"n":1}')
        with Server(cwd, "--admin", "root:pw") as target:
            answer = imported(cwd, f"{url.rstrip('/')}/{name}", as_admin(target.url))
            equal(answer.returncode, 0)
            equal(target.request("GET", f"/{name}/a", None, ADMIN)[1]["n"], 1)
    finally:
        ask("DELETE", "")


# ---- MongoDB's ----

def mongo_url(server):
    return f"mongodb://127.0.0.1:{server.port}/?directConnection=true"


def fill_mongo(mongo):
    mongo({"create": "orders", "validator": {"n": {"$gte": 0}}}, db="shop")
    for part in range(5):
        mongo({"insert": "orders", "documents": [{"_id": part * 1000 + i, "n": i % 7, "text": "x" * 50}
                                                 for i in range(1000)]}, db="shop")
    mongo({"insert": "mixed", "documents": [{"_id": "a"}, {"_id": 1.5}, {"_id": {"b": 1}}, {"_id": True}]},
          db="shop")
    mongo({"createIndexes": "orders", "indexes": [{"key": {"n": 1}, "name": "n_1"},
                                                  {"key": {"text": 1, "n": -1}, "name": "tn", "unique": False}]},
          db="shop")
    mongo({"create": "sevens", "viewOn": "orders", "pipeline": [{"$match": {"n": 6}}]}, db="shop")
    mongo({"insert": "log", "documents": [{"_id": 1}]}, db="other")


def docs_of(mongo, collection, db="shop"):
    answer = mongo({"find": collection, "sort": {"_id": 1}, "batchSize": 100000}, db=db)
    return answer["cursor"]["firstBatch"]


def same_collections(source, target, names):
    for db, name in names:
        equal(docs_of(target, name, db), docs_of(source, name, db))


ALL = (("shop", "orders"), ("shop", "mixed"), ("other", "log"))


@test
def a_mongodb_comes_with_options_indexes_and_views(cwd):
    needs_helper()
    with two(cwd, MongoServer) as (source, target), source.client() as a, target.client() as b:
        fill_mongo(a)
        answer = imported(cwd, mongo_url(source), mongo_url(target))
        fits(answer)
        contains(answer.stdout, "shop.orders: 5000 documents")
        same_collections(a, b, ALL)
        names = [index["name"] for index in b({"listIndexes": "orders"}, db="shop")["cursor"]["firstBatch"]]
        equal(sorted(names), ["_id_", "n_1", "tn"])
        equal(len(docs_of(b, "sevens")), len(docs_of(a, "sevens")))
        info = b({"listCollections": 1, "filter": {"name": "orders"}}, db="shop")["cursor"]["firstBatch"][0]
        equal(info["options"]["validator"], {"n": {"$gte": 0}})
        # One database, over what is there.
        a({"insert": "log", "documents": [{"_id": 2}]}, db="other")
        a({"update": "orders", "updates": [{"q": {"_id": 5}, "u": {"$set": {"n": 100}}}]}, db="shop")
        answer = imported(cwd, mongo_url(source).replace("/?", "/other?"), mongo_url(target))
        equal(answer.returncode, 0)
        same_collections(a, b, (("other", "log"),))
        equal(docs_of(b, "orders")[5]["n"], 5)


@test
def a_mongodb_s_changes_come_behind_the_copy(cwd):
    needs_helper()
    with two(cwd, MongoServer) as (source, target), source.client() as a, target.client() as b:
        fill_mongo(a)
        process = begin(cwd, mongo_url(source), mongo_url(target), "--follow")
        until(lambda: len(docs_of(b, "log", "other")) == 1)
        a({"insert": "orders", "documents": [{"_id": "late", "n": 1}]}, db="shop")
        a({"update": "orders", "updates": [{"q": {"_id": 7}, "u": {"$set": {"n": 700}}}]}, db="shop")
        a({"delete": "orders", "deletes": [{"q": {"_id": 8}, "limit": 1}]}, db="shop")
        a({"renameCollection": "shop.mixed", "to": "shop.renamed"}, db="admin")
        a({"drop": "log"}, db="other")
        until(lambda: docs_of(a, "orders") == docs_of(b, "orders"))
        until(lambda: docs_of(b, "renamed") == docs_of(a, "renamed") and not docs_of(b, "log", "other"))
        stopped(process)


@test
def a_mongodb_s_collections_are_renamed_while_they_are_copied(cwd):
    needs_helper()
    with two(cwd, MongoServer) as (source, target), source.client() as a, target.client() as b:
        fill_mongo(a)
        a({"insert": "last", "documents": [{"_id": i} for i in range(100)]}, db="shop")
        a({"createIndexes": "last", "indexes": [{"key": {"n": 1}, "name": "n_1"}]}, db="shop")
        process = begin(cwd, mongo_url(source), mongo_url(target), "--follow")
        # The names of the collections are read by now, and hardly one is copied.
        until(lambda: len(docs_of(b, "log", "other")) == 1)
        process.send_signal(signal.SIGSTOP)
        a({"update": "last", "updates": [{"q": {"_id": 7}, "u": {"$set": {"n": 700}}}]}, db="shop")
        for name in ("orders", "mixed", "last"):
            a({"renameCollection": f"shop.{name}", "to": f"shop.renamed_{name}"}, db="admin")
        a({"renameCollection": "shop.renamed_last", "to": "shop.thrice"}, db="admin")
        a({"update": "thrice", "updates": [{"q": {"_id": 8}, "u": {"$set": {"n": 800}}}]}, db="shop")
        process.send_signal(signal.SIGCONT)
        for name in ("renamed_orders", "renamed_mixed", "thrice"):
            until(lambda name=name: docs_of(b, name) == docs_of(a, name))
        until(lambda: len(b({"listIndexes": "thrice"}, db="shop")["cursor"]["firstBatch"]) == 2)
        for name in ("orders", "mixed", "last", "renamed_last"):
            until(lambda name=name: not docs_of(b, name))
        stopped(process)


@test
def a_mongodb_s_import_goes_on_where_it_was_killed(cwd):
    needs_helper()
    chance = random.Random(5)
    with two(cwd, MongoServer) as (source, target), source.client() as a, target.client() as b:
        fill_mongo(a)
        turn = 0
        while True:
            process = begin(cwd, mongo_url(source), mongo_url(target), "--state", "state")
            for _ in range(10):
                a({"update": "orders", "updates": [
                    {"q": {"_id": chance.randrange(5000)}, "u": {"$inc": {"n": 1}}}]}, db="shop")
            a({"delete": "orders", "deletes": [{"q": {"_id": chance.randrange(5000)}, "limit": 1}]}, db="shop")
            if turn < 6:
                time.sleep(chance.random() / 5)
                process.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))
                process.communicate(timeout=60)
                turn += 1
            else:
                break
        out, complaint = process.communicate(timeout=120)
        equal((process.returncode, complaint), (0, ""))
        same_collections(a, b, ALL)
        assert not (cwd / "state").exists()


# ---- Redis's ----

TYPES = (("SET", "s", "x" * 1000), ("SET", "binary", b"\x00\xff\r\n"), ("APPEND", "s", "y"),
         ("RPUSH", "l", *range(600)), ("SADD", "set", *range(1200)), ("SADD", "words", *"abc"),
         ("HSET", "h", *(word for i in range(700) for word in (f"f{i}", i))),
         ("ZADD", "z", *(word for i in range(700) for word in (i / 3, f"m{i}"))),
         ("SETBIT", "bits", 1000, 1), ("PFADD", "hll", *range(100)), ("GEOADD", "g", 13.4, 52.5, "berlin"),
         *(("XADD", "stream", f"{i}-1", "f", i) for i in range(1, 700)),
         ("XGROUP", "CREATE", "stream", "group", "5-1"), ("XREADGROUP", "GROUP", "group", "me", "COUNT", 3,
                                                          "STREAMS", "stream", ">"),
         ("SET", "later", "v", "PX", 10_000_000))


def value(client, key):
    kind = client("TYPE", key)
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    read = {"string": ("GET", key), "list": ("LRANGE", key, 0, -1), "set": ("SMEMBERS", key),
            "hash": ("HGETALL", key), "zset": ("ZRANGE", key, 0, -1, "WITHSCORES"),
            "stream": ("XRANGE", key, "-", "+"), "none": None}[kind]
    found = client(*read) if read else None
    if kind == "set":
        found = sorted(found)
    if kind == "hash":
        found = sorted(zip(found[::2], found[1::2]))
    return kind, found, client("PTTL", key) > 0


def same_keys(a, b, databases=(0, 3)):
    for database in databases:
        a("SELECT", database), b("SELECT", database)
        keys = sorted(a("KEYS", "*"))
        equal(sorted(b("KEYS", "*")), keys)
        for key in keys:
            equal((key, value(b, key)), (key, value(a, key)))


@contextlib.contextmanager
def redis_pair(cwd):
    """The ports of a source, redis-server if that is here, and of a frond."""
    needs_helper()
    (cwd / "to").mkdir()
    with contextlib.ExitStack() as stack:
        if PROGRAM:
            source = stack.enter_context(Peer()).port
        else:
            (cwd / "from").mkdir()
            source = redis_port(stack.enter_context(Server(cwd / "from", "--redis", "127.0.0.1:0")))
        yield source, redis_port(stack.enter_context(Server(cwd / "to", "--redis", "127.0.0.1:0")))


def redis_port(server):
    return int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))


def redis_url(port):
    return f"redis://127.0.0.1:{port}"


def fill_redis(client):
    for database in (0, 3):
        client("SELECT", database)
        for command in TYPES:
            client(*command)
    for i in range(2000):
        client("SET", f"many{i}", i)


@test
def a_redis_comes_with_every_type_and_what_expires(cwd):
    with redis_pair(cwd) as (source, target), Client(source) as a, Client(target) as b:
        fill_redis(a)
        a("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 7 end)")
        answer = imported(cwd, redis_url(source), redis_url(target))
        fits(answer)
        same_keys(a, b)
        equal(b("FCALL", "f", 0), 7)
        equal(b("XINFO", "GROUPS", "stream")[0][1], b"group")
        # A setting that was changed for the import is as before.
        equal(a("CONFIG", "GET", "notify-keyspace-events")[1], b"")


@test
def a_redis_that_refuses_to_dump_is_read_by_types(cwd):
    if not PROGRAM:
        raise Skip("there is no redis-server here: apt-get install redis-tools")
    with redis_pair(cwd) as (source, target), Client(source) as a, Client(target) as b:
        fill_redis(a)
        a("ACL", "SETUSER", "reader", "on", ">pw", "~*", "&*", "+@all", "-dump")
        answer = imported(cwd, f"redis://reader:pw@127.0.0.1:{source}", redis_url(target))
        equal(answer.returncode, 1)
        contains(answer.stdout, 'the key "stream": groups of consumers')
        contains(answer.stdout, "a person, who needs a password there: user reader on")
        same_keys(a, b)


@test
def a_redis_s_changes_come_behind_the_copy(cwd):
    with redis_pair(cwd) as (source, target), Client(source) as a, Client(target) as b:
        fill_redis(a)
        process = begin(cwd, redis_url(source), redis_url(target), "--follow")
        until(lambda: b("DBSIZE") > 10)
        a("SELECT", 0)
        for i in range(300):
            a("SET", f"late{i}", i)
            a("DEL", f"late{i - 100}")
        a("RPUSH", "l", "end")
        until(lambda: b("EXISTS", "late299") and b("LINDEX", "l", -1) == b"end" and not b("EXISTS", "late199"))
        stopped(process)
        same_keys(a, b)


@test
def a_redis_s_import_goes_on_where_it_was_killed(cwd):
    chance = random.Random(3)
    with redis_pair(cwd) as (source, target), Client(source) as a, Client(target) as b:
        fill_redis(a)
        for turn in range(6):
            process = begin(cwd, redis_url(source), redis_url(target), "--state", "state")
            time.sleep(chance.random() / 10)
            process.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))
            process.communicate(timeout=60)
            # What nobody tells of, since nobody listens.
            a("SELECT", 3)
            a("DEL", f"many{chance.randrange(2000)}")
            a("SET", f"many{chance.randrange(2000)}", turn)
        answer = imported(cwd, redis_url(source), redis_url(target), "--state", "state")
        fits(answer)
        same_keys(a, b)
        assert not (cwd / "state").exists()


@test
def a_redis_s_changes_that_were_told_before_a_kill_come_after_it(cwd):
    with redis_pair(cwd) as (source, target), Client(source) as a, Client(target) as b:
        a("SELECT", 2)
        for part in range(200):
            a("MSET", *(word for i in range(100) for word in (f"k{part * 100 + i}", i)))
        a("SELECT", 1)
        a("SET", "gone", 1)
        b("SELECT", 2)
        a("SELECT", 2)
        process = begin(cwd, redis_url(source), redis_url(target), "--state", "state")
        until(lambda: b("DBSIZE") > 100)
        process.send_signal(signal.SIGSTOP)
        copied = b("KEYS", "k*")[0]
        a("SET", copied, "changed")
        a("SELECT", 5)
        a("SET", "new", 1)
        a("SELECT", 1)
        a("DEL", "gone")
        # Longer than the seconds by which an import that goes on looks behind its state.
        time.sleep(8)
        written = (cwd / "state").stat().st_mtime_ns
        process.send_signal(signal.SIGCONT)
        until(lambda: (cwd / "state").stat().st_mtime_ns != written)
        process.kill()
        process.communicate(timeout=60)
        b("SELECT", 2)
        assert b("DBSIZE") < 20001, "the import came to its end before it was killed"
        fits(imported(cwd, redis_url(source), redis_url(target), "--state", "state"))
        same_keys(a, b, (1, 2, 5))


@test
def nothing_is_copied_before_the_state_is_written(cwd):
    with two(cwd, MongoServer, "--redis", "127.0.0.1:0") as (source, target), \
            source.client() as a, target.client() as b, \
            Client(redis_port(source)) as c, Client(redis_port(target)) as d:
        needs_helper()
        fill_mongo(a)
        fill_redis(c)
        for name in ("redis", "mongo"):
            urls = [redis_url(redis_port(server)) if name == "redis" else mongo_url(server)
                    for server in (source, target)]
            answer = imported(cwd, *urls, "--state", "no/directory")
            equal(answer.returncode, 1)
            contains(answer.stderr, "no/directory")
        equal(d("INFO", "keyspace"), b"# Keyspace\r\n")
        equal(docs_of(b, "log", "other"), [])


@test
def a_redis_s_import_that_is_ended_amid_its_copy_keeps_its_state(cwd):
    with redis_pair(cwd) as (source, target), Client(source) as a, Client(target) as b:
        for part in range(200):
            a("MSET", *(word for i in range(100) for word in (f"k{part * 100 + i}", i)))
        process = begin(cwd, redis_url(source), redis_url(target), "--follow", "--state", "state")
        until(lambda: b("DBSIZE") > 100)
        stopped(process)
        assert (cwd / "state").exists()
        a("DEL", *b("KEYS", "k*")[:10])
        fits(imported(cwd, redis_url(source), redis_url(target), "--state", "state"))
        same_keys(a, b, (0,))


@test
def what_is_no_server_is_told(cwd):
    needs_helper()
    for source, target in (("redis://127.0.0.1:1", "redis://127.0.0.1:1"),
                           ("mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300", "mongodb://127.0.0.1:1"),
                           ("http://127.0.0.1:1", "http://127.0.0.1:1")):
        answer = imported(cwd, source, target)
        equal(answer.returncode, 1)
        assert answer.stderr.startswith("frond"), answer.stderr
    (cwd / "state").write_text("rubbish")
    with Server(cwd, "--redis", "127.0.0.1:0") as server:
        url = redis_url(redis_port(server))
        contains(imported(cwd, url, url, "--state", "state").stderr, "is no state of an import")


@test
def the_page_does_what_it_says(cwd):
    needs_helper()
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "IMPORT.md").read_text()
    lines = [line.strip() for line in page.splitlines() if line.startswith("    frond ")]
    equal(len(lines), 3)
    # MongoDB's C library refuses fewer rounds.
    (cwd / "frond.ini").write_text(QUICK.replace("10", "4096"))
    options = ("--config", str(cwd / "frond.ini"), "--admin", "admin:password", "--redis", "127.0.0.1:0")
    with two(cwd, MongoServer, *options) as (source, target):
        for server in (source, target):
            server.redis = redis_port(server)
        source.request("PUT", "/notes", None, {
            "Authorization": "Basic " + base64.b64encode(b"admin:password").decode()})
        for line in lines:
            for there, here in (("5986", source.url.rsplit(":", 1)[1]), ("5984", target.url.rsplit(":", 1)[1]),
                                ("127.0.0.1:27018", f"admin:password@127.0.0.1:{source.port}"),
                                ("127.0.0.1:27017", f"admin:password@127.0.0.1:{target.port}"),
                                ("127.0.0.1:6380", f"admin:password@127.0.0.1:{source.redis}"),
                                ("127.0.0.1:6379", f"admin:password@127.0.0.1:{target.redis}")):
                line = line.replace(there, here)
            answer = run(*line.split()[1:], "--quiet", cwd=cwd)
            # The administrator of the settings is a person of Redis's, too.
            assert answer.returncode == 0 or "a person, who needs" in answer.stdout, answer.stdout + answer.stderr
            equal(answer.stderr, "")


main()
