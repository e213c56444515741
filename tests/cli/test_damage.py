"""Bytes on the disk that are not as they were written: what the server and the commands tell of
them, and what goes on working."""

import re
import urllib.request

from damaged import files, flip, noise
from harness import Server, contains, equal, main, ok, run, test, until
from mongo import Client
from redis_server import Redis

DOCS = 400


def fill(server, db, count=DOCS):
    equal(server.request("PUT", f"/{db}")[0], 201)
    docs = [{"_id": f"d{i:04}", "text": noise(i + 1, 100)} for i in range(count)]
    equal(server.request("POST", f"/{db}/_bulk_docs", {"docs": docs})[0], 201)


def stored_in_tables(cwd, *dbs):
    """A store that has all in tables, and nothing in its log."""
    with Server(cwd, "--no-sync") as server:
        for db in dbs:
            fill(server, db)
    ok("compact", cwd=cwd)
    return files(cwd / "data", ".sst")


@test
def damaged_log_is_named_with_the_place_and_what_to_do(cwd):
    with Server(cwd, "--no-sync") as server:
        fill(server, "db")
        server.process.kill()  # so that the log stays
        server.process.wait()
    log = files(cwd / "data", ".log")[-1]
    flip(log, log.stat().st_size // 3)
    for command in (["verify", "--quiet"], ["serve", "--http", "127.0.0.1:0"]):
        result = run(*command, cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, f"the log {log.name} is damaged at byte ")
        contains(result.stderr, "restore a backup")


@test
def damaged_table_is_named_and_the_rest_is_served(cwd):
    tables = stored_in_tables(cwd, "a", "b", "c")
    flip(tables[-1], tables[-1].stat().st_size // 2)
    with Server(cwd, "--no-sync") as server:
        equal("damaged_files" in server.request("GET", "/_up")[1], False)
        answers = {db: [server.request("GET", f"/{db}/d{i:04}")[0] for i in range(DOCS)]
                   for db in "abc"}
        flat = [status for statuses in answers.values() for status in statuses]
        equal(set(flat), {200, 500})
        assert flat.count(500) < len(flat) / 4, flat.count(500)
        equal(server.request("PUT", "/a/new", {})[0], 201)
        status, up = server.request("GET", "/_up")
        equal((status, up["status"], up["damaged_files"]), (200, "ok", [tables[-1].name]))
        until(lambda: "event=store_damaged" in server.read_log())
        url = server.url + "/_node/_local/_prometheus"
        contains(urllib.request.urlopen(url).read().decode(), "frond_store_damaged_files 1")
        log = server.read_log()
        equal(log.count("event=store_damaged"), 1)
        contains(log, f"file={tables[-1].name}")


@test
def verify_goes_on_past_damage_and_lists_it(cwd):
    tables = stored_in_tables(cwd, "a", "b", "c")
    flip(tables[-1], tables[-1].stat().st_size // 2)
    result = run("verify", "--quiet", cwd=cwd)
    equal(result.returncode, 1)
    lines = result.stdout.splitlines()
    named = [line for line in lines if line.startswith(f"damage: file {tables[-1].name}, ")]
    equal(len(named), 1)
    for db in "abc":
        contains(named[0], f'"{db}"')
    damaged = [line for line in lines if line.startswith('damage: database "')]
    assert damaged and all(tables[-1].name in line for line in damaged), result.stdout
    contains(lines[-1], "3 databases, ")
    equal(run("verify", "--quiet", "a", cwd=cwd).returncode,
          int(any('"a"' in line for line in damaged)))


@test
def verify_goes_on_in_other_files_and_names_databases_of_all_doors(cwd):
    """Two tables with keys of the same databases, one damaged in Redis's, one in MongoDB's."""
    for part in range(2):
        with Redis(cwd, "--mongo", "127.0.0.1:0", "--no-sync") as server:
            mongo = re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", server.read_log()).group(1)
            with server.client() as c:
                c("SELECT", 3)
                for i in range(part, DOCS, 2):
                    c("SET", f"k{i:04}", noise(i + 1, 100))
            with Client(int(mongo)) as c:
                c({"insert": "orders", "documents": [{"_id": i, "text": noise(i + 1000, 100)}
                                                     for i in range(part, DOCS, 2)]}, "shop")
    with Server(cwd, "--no-sync"):
        pass  # each start makes a table of the log
    first, second = sorted(files(cwd / "data", ".sst")[-2:])
    flip(first, first.stat().st_size // 3)
    flip(second, second.stat().st_size * 3 // 4)
    result = run("verify", "--quiet", cwd=cwd)
    equal(result.returncode, 1)
    lines = result.stdout.splitlines()
    for table in (first, second):
        named = [line for line in lines if line.startswith(f"damage: file {table.name}, ")]
        equal(len(named), 1)
        contains(named[0], 'databases "redis:3", "mongo:shop.orders", ')
    for db in ("redis:3", "mongo:shop.orders"):
        equal(len([line for line in lines if line.startswith(f'damage: database "{db}": ')]), 1)
        equal(run("verify", "--quiet", db, cwd=cwd).returncode, 1)


@test
def damaged_file_of_a_backup_is_named_by_its_restoring(cwd):
    stored_in_tables(cwd, "db")
    ok("backup", "kept", cwd=cwd)
    table = files(cwd / "kept", ".sst")[-1]
    flip(table, table.stat().st_size // 2)
    result = run("restore", "kept", "--store", "embedded:new", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, table.name.split("_")[0])


main()
