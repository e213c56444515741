"""frond salvage: what comes back out of stores with damage of every kind at many places, and what is
told of the rest."""

import base64
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import urllib.error
import urllib.request

from damaged import files, flip, noise
from harness import Server, contains, equal, main, ok, run, seed, test
from mongo import Client
from redis_server import Redis

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "TROUBLE.md"
DOCS = 300
PLACES = 3  # of each kind, drawn anew in each turn
SMALL_BYTES = 3000


def digest(directory):
    """Every file with what is in it."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(pathlib.Path(directory).rglob("*")) if path.is_file()}


def salvage(cwd, source="data", target="new"):
    """The result; the source is as it was, and the target opens, is well and takes writes."""
    before = digest(cwd / source)
    shutil.rmtree(cwd / target, ignore_errors=True)
    result = run("salvage", "--quiet", f"embedded:{source}", f"embedded:{target}", cwd=cwd)
    assert result.returncode in (0, 1) and not result.stderr, result.stdout + result.stderr
    equal(digest(cwd / source), before)
    contains(result.stdout.splitlines()[-1], "salvaged to embedded:")
    verified = run("verify", "--quiet", "--store", f"embedded:{target}", cwd=cwd)
    equal((verified.returncode, verified.stderr), (0, ""))
    equal(result.returncode, int(any(line.startswith("lost: ")
                                     for line in result.stdout.splitlines())))
    return result


def dumped(cwd, store, db, *options):
    """The lines of a database by what names their entries; empty if there is none."""
    result = run("dump", "--quiet", "--store", f"embedded:{store}", db, *options, cwd=cwd)
    if result.returncode:
        contains(result.stderr, "there is no database")
        return {}
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return {json.dumps(line.get("_id", line.get("key")), sort_keys=True): line
            for line in lines if "frond" not in line}


def put(server, db, count=DOCS, first=0):
    docs = [{"_id": f"d{i:04}", "text": noise(i + 1, 40), "n": {"a": i, "b": [i, i]}}
            for i in range(first, first + count)]
    equal(server.request("POST", f"/{db}/_bulk_docs", {"docs": docs})[0], 201)


def make(cwd, kill=False):
    """A store with databases of every kind; what it has is in tables, or, after a kill, in a log."""
    lines = [json.dumps({"insert": {"id": i, "text": noise(i + 5, 30)}}) for i in range(DOCS)]
    ok("rows", "t", "--hash", "id", "--columns", "text", "-", cwd=cwd, stdin="\n".join(lines))
    with Redis(cwd, "--mongo", "127.0.0.1:0", "--no-sync") as server:
        port = re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", server.read_log()).group(1)
        equal(server.request("PUT", "/db")[0], 201)
        put(server, "db")
        equal(server.request("PUT", "/db/_security", {"members": {"names": ["ann"]}})[0], 200)
        equal(server.request("PUT", "/db/_local/mark", {"at": 7})[0], 201)
        equal(server.request("POST", "/db/_index", {"index": {"fields": ["n.a"]}})[0], 200)
        with server.client() as c:
            for i in range(DOCS):
                c("SET", f"k{i:04}", noise(i + 1, 20))
            c("RPUSH", "list", *range(50))
            c("HSET", "hash", *[x for i in range(50) for x in (f"f{i}", i)])
        with Client(int(port)) as c:
            c({"insert": "orders", "documents": [{"_id": i, "text": noise(i + 9, 30)}
                                                 for i in range(DOCS)]}, "shop")
            c({"createIndexes": "orders", "indexes": [{"key": {"text": 1}, "name": "t"}]}, "shop")
        if kill:
            server.process.kill()
            server.process.wait()
    if not kill:
        ok("compact", cwd=cwd)


DATABASES = ("db", "redis:0", "mongo:shop.orders", "rows:t")


def same_entry(db, name, whole, line):
    """As it was. A row's cells, and that it was inserted, have keys of their own, so it may come back with
    less of that: returns whether it did."""
    less = db == "rows:t" and line != whole.get(name)
    if less:
        equal([leaf for leaf in line["leaves"] if leaf not in whole[name]["leaves"]], [])
        assert line["key"] == whole[name]["key"] and line["type"] in ("inserted", "updated"), line
    else:
        equal((db, name, whole.get(name)), (db, name, line))
    return less


def compare(cwd, result, whole, most):
    """What is there is as it was; what is not there has been told of. At most so much is missing."""
    missing = 0
    for db in DATABASES:
        after = dumped(cwd, "new", db)
        for name, line in after.items():
            missing += same_entry(db, name, whole[db], line)
        missing += len(whole[db]) - len(after)
    if missing:
        contains(result.stdout, "lost: ")
    assert missing <= most, f"{missing} of {sum(map(len, whole.values()))}\n{result.stdout}"
    return missing


@test
def store_without_damage_comes_back_as_it_was(cwd):
    make(cwd)
    whole = {db: dumped(cwd, "data", db) for db in DATABASES}
    revs = dumped(cwd, "data", "db", "--revs")
    result = salvage(cwd)
    equal(result.returncode, 0)
    contains(result.stdout, "0 of them built anew; 0 losses")
    equal(compare(cwd, result, whole, 0), 0)
    equal(dumped(cwd, "new", "db", "--revs"), revs)


@test
def store_that_was_killed_comes_back_out_of_its_log(cwd):
    make(cwd, kill=True)
    shutil.copytree(cwd / "data", cwd / "copy")
    result = salvage(cwd)
    equal(result.returncode, 0)
    whole = {db: dumped(cwd, "copy", db) for db in DATABASES}
    equal(compare(cwd, result, whole, 0), 0)


@test
def files_beside_the_tables_are_not_needed(cwd):
    make(cwd)
    whole = {db: dumped(cwd, "data", db) for db in DATABASES}
    names = ["CURRENT", "IDENTITY", "LOCK"] + [
        path.name for pattern in ("MANIFEST-*", "OPTIONS-*") for path in (cwd / "data").glob(pattern)]
    for name in names:
        for spoil in (os.remove, lambda path: flip(path, path.stat().st_size // 2),
                      lambda path: path.write_bytes(b"")):
            shutil.rmtree(cwd / "bad", ignore_errors=True)
            shutil.copytree(cwd / "data", cwd / "bad")
            if (cwd / "bad" / name).stat().st_size == 0 and spoil is not os.remove:
                continue
            spoil(cwd / "bad" / name)
            result = salvage(cwd, "bad")
            equal((name, compare(cwd, result, whole, 0)), (name, 0))


def regions(path):
    """Bytes of a table to spoil: in its blocks with data, and in what comes behind them."""
    size = path.stat().st_size
    return {"data": range(0, size * 3 // 4), "index": range(size * 9 // 10, size - 60),
            "footer": range(size - 53, size)}


@test
def damage_to_a_table_costs_what_lies_in_the_block(cwd):
    make(cwd)
    whole = {db: dumped(cwd, "data", db) for db in DATABASES}
    total = sum(map(len, whole.values()))
    table = files(cwd / "data", ".sst")[-1].name
    draw = random.Random(seed(1))
    for region, places in regions(cwd / "data" / table).items():
        for _ in range(PLACES):
            shutil.rmtree(cwd / "bad", ignore_errors=True)
            shutil.copytree(cwd / "data", cwd / "bad")
            at = draw.choice(places)
            flip(cwd / "bad" / table, at)
            result = salvage(cwd, "bad")
            names = whole_names(cwd, whole)
            compare_named(cwd, result, names, 0 if region != "data" else total // 4)


def whole_names(cwd, whole):
    """Databases may have lost their names: those that there are now, by the kind they are of."""
    inspected = ok("inspect", "--store", "embedded:new", cwd=cwd).stdout
    return whole, inspected


def compare_named(cwd, result, names, most):
    whole, inspected = names
    if "the description of a database is lost" in result.stdout:
        renamed = re.findall(r'it is called "([^"]+)" now, a database of the kind "([^"]+)"',
                             result.stdout)
        prefixes = {"revisioned": ("db", ""), "redis": ("redis:0", "redis:"),
                    "collection": ("mongo:shop.orders", "mongo:"), "rows": ("rows:t", "rows:")}
        for name, kind in renamed:
            db, prefix = prefixes[kind]
            after = dumped(cwd, "new", prefix + name)
            for entry, line in after.items():
                same_entry(db, entry, whole[db], line)
        return
    compare(cwd, result, whole, most)


@test
def damage_to_a_log_costs_the_transactions_there(cwd):
    make(cwd, kill=True)
    shutil.copytree(cwd / "data", cwd / "copy")
    whole = {db: dumped(cwd, "copy", db) for db in DATABASES}
    log = files(cwd / "data", ".log")[-1]
    draw = random.Random(seed(2))
    for _ in range(PLACES):
        shutil.rmtree(cwd / "bad", ignore_errors=True)
        shutil.copytree(cwd / "data", cwd / "bad")
        flip(cwd / "bad" / log.name, draw.randrange(log.stat().st_size // 10,
                                                    log.stat().st_size // 2))
        result = salvage(cwd, "bad")
        contains(result.stdout, f"lost: the log {log.name} is damaged from byte ")
        compare_named(cwd, result, (whole, ""), sum(map(len, whole.values())))


def attachments(store, cwd, names):
    """What a server has of these: bytes, or None for one that is not there."""
    found = {}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with Server(cwd, "--no-sync", "--store", f"embedded:{store}") as server:
        for name in names:
            try:
                with opener.open(f"{server.url}/db/{name}/file", timeout=60) as answer:
                    found[name] = answer.read()
            except urllib.error.HTTPError as error:
                equal((name, error.code), (name, 404))
                found[name] = None
    return found


@test
def attachments_come_back_whole_or_are_told_of(cwd):
    """Never with other bytes, and none is lost beyond those that lie where the damage is."""
    draw = random.Random(seed(3))
    written = {f"a{i:02}": draw.randbytes(draw.choice((10, SMALL_BYTES, 70000, 400000))) for i in range(30)}
    with Server(cwd, "--no-sync") as server:
        equal(server.request("PUT", "/db")[0], 201)
        for name, data in written.items():
            doc = {"_attachments": {"file": {"content_type": "text/x", "data": base64.b64encode(data).decode()}}}
            equal(server.request("PUT", f"/db/{name}", doc)[0], 201)
    ok("compact", cwd=cwd)
    salvage(cwd)
    equal(attachments("new", cwd, written), written)
    table = max(files(cwd / "data", ".sst"), key=lambda path: path.stat().st_size)
    for _ in range(PLACES):
        shutil.rmtree(cwd / "bad", ignore_errors=True)
        shutil.copytree(cwd / "data", cwd / "bad")
        flip(cwd / "bad" / table.name, draw.randrange(table.stat().st_size * 9 // 10))
        result = salvage(cwd, "bad")
        if "the description of a database is lost" in result.stdout:
            continue
        found = attachments("new", cwd, written)
        missing = [name for name in written if found[name] is None]
        equal({name: found[name] for name in written if name not in missing},
              {name: written[name] for name in written if name not in missing})
        # Small ones that follow each other by their random ids share a block, however many they are.
        assert sum(len(written[name]) > SMALL_BYTES for name in missing) <= 4, missing
        for name in missing:
            contains(result.stdout, f'"{name}"')


@test
def tables_that_are_gone_are_told_of(cwd):
    make(cwd)
    table = files(cwd / "data", ".sst")[-1]
    table.rename(cwd / "kept.sst")
    result = run("salvage", "embedded:data", "embedded:new", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stdout + result.stderr, table.name if result.stdout else "cannot salvage")


@test
def salvaged_store_is_served_and_takes_writes(cwd):
    make(cwd)
    table = files(cwd / "data", ".sst")[-1]
    flip(table, table.stat().st_size // 3)
    salvage(cwd)
    with Server(cwd, "--no-sync", "--store", "embedded:new") as server:
        for db in server.request("GET", "/_all_dbs")[1]:
            if not db.startswith("_"):
                equal(server.request("PUT", f"/{db}/another", {"a": 1})[0], 201)
                equal(server.request("GET", f"/{db}/_all_docs?limit=1")[0], 200)
                equal(server.request("POST", f"/{db}/_find",
                                     {"selector": {"n.a": 5}})[0], 200)
    ok("verify", "--quiet", "--store", "embedded:new", cwd=cwd)


@test
def commands_of_the_page_lead_to_a_store_that_is_served(cwd):
    """Each command of docs/TROUBLE.md, in their order, after damage to a table."""
    make(cwd)
    table = files(cwd / "data", ".sst")[-1]
    flip(table, table.stat().st_size // 3)
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    commands = [line.split()[1:] for block in blocks for line in block.splitlines()]
    equal([words[0] for words in commands], ["verify", "salvage", "verify", "serve"])
    equal([run(*words, cwd=cwd).returncode for words in commands[:-1]], [1, 1, 0])
    with Server(cwd, *commands[-1][1:]) as server:
        equal(server.request("GET", "/_up")[0], 200)


@test
def target_in_the_source_or_with_something_in_it_is_refused(cwd):
    make(cwd)
    before = digest(cwd / "data")
    for target, why in (("data/new", "lies in"), ("data", "is not empty")):
        result = run("salvage", "embedded:data", f"embedded:{target}", cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, why)
    equal(digest(cwd / "data"), before)
    with Server(cwd, "--no-sync"):
        result = run("salvage", "embedded:data", "embedded:new", cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, "in use by another process")
    equal(run("salvage", "embedded:none", "embedded:new", cwd=cwd).returncode, 1)
    assert not (cwd / "new").exists() and not (cwd / "new.salvaging").exists()


main()
