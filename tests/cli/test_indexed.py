"""Databases with indexes, and partitioned ones, by the commands: what inspect draws, that verify,
backup, move, dump and load keep everything of them, and that queries go on afterwards."""

import signal
import time

from harness import Server, contains, equal, main, ok, run, test

STORE, OTHER = "embedded:data", "embedded:other"
FILMS = [{"_id": f"{part}:{n:03}", "year": 1950 + n, "title": f"{part} {n}", "text": "x" * 100}
         for part in ("ealing", "shaw") for n in range(40)]


def index(server, db, fields, ddoc, **more):
    body = {"index": {"fields": fields}, "ddoc": ddoc, "name": ddoc, **more}
    equal(server.request("POST", f"/{db}/_index", body)[0], 200)


def fill(cwd, db="films", store=STORE):
    """A partitioned database with a partitioned index, a global one, and a design document."""
    with Server(cwd, "--store", store) as server:
        equal(server.request("PUT", f"/{db}?partitioned=true")[0], 201)
        equal(server.request("POST", f"/{db}/_bulk_docs", {"docs": FILMS})[0], 201)
        index(server, db, ["year", "title"], "by-year")
        index(server, db, ["title"], "by-title", partitioned=False)
        equal(server.request("PUT", f"/{db}/shaw:new", {"year": 1900, "title": "Old"})[0], 201)


def found(server, path, selector, sort=None):
    body = {"selector": selector, "fields": ["_id"], "limit": 1000, "execution_stats": True}
    status, answer = server.request("POST", path, dict(body, **({"sort": sort} if sort else {})))
    equal(status, 200)
    assert "warning" not in answer, answer
    return [doc["_id"] for doc in answer["docs"]]


def first_films(year):
    """A selector; it demands all fields of the index."""
    return {"year": {"$lt": year}, "title": {"$exists": True}}


def answers(cwd, db="films", store=STORE):
    """What queries that need the indexes answer, and what is counted of a partition."""
    with Server(cwd, "--store", store) as server:
        info = server.request("GET", f"/{db}/_partition/shaw")[1]
        return [found(server, f"/{db}/_partition/shaw/_find", first_films(1960), ["year"]),
                found(server, f"/{db}/_find", {"title": {"$gt": "shaw 3"}}, ["title"]),
                info["doc_count"], info["doc_del_count"], info["sizes"]]


def whole(cwd, store=STORE):
    contains(ok("verify", "--quiet", "--store", store, cwd=cwd).stdout, " 0 findings")


@test
def inspect_draws_definitions_and_entries(cwd):
    fill(cwd)
    drawn = ok("inspect", "films", cwd=cwd).stdout
    contains(drawn, '("indexes", 1) = (1, ready, "by-year" of "_design/by-year", on ["year", "title"]'
             ', sparse, covering, partitioned, ordered by "')
    contains(drawn, '("indexes", 2) = (1, ready, "by-title" of "_design/by-title", on ["title"], '
             'sparse, covering, ordered by "')
    contains(drawn, ', "shaw:new") = (1, 1900, "Old")')
    contains(drawn, ', "ealing:007") = (1, "ealing 7")')
    # Keys are drawn with the values, of which they have something else, too.
    contains(drawn, '("entries", 1, "shaw", 1900, "Old", "shaw:new") = ')
    contains(drawn, '("entries", 2, "ealing 7", "ealing:007") = ')


@test
def an_entry_that_is_cut_is_drawn_so(cwd):
    with Server(cwd) as server:
        equal(server.request("PUT", "/db")[0], 201)
        index(server, "db", ["a"], "a")
        equal(server.request("PUT", "/db/long", {"a": "y" * 1900})[0], 201)
        equal(server.request("PUT", "/db/cut", {"a": "y" * 5000})[0], 201)
    drawn = ok("inspect", "db", cwd=cwd).stdout
    contains(drawn, ', "long") = (1, "' + "y" * 1900 + '")')
    contains(drawn, ', "cut") = (1, cut)')


@test
def backup_and_restore_keep_indexes_and_partitions(cwd):
    fill(cwd)
    before, drawn = answers(cwd), ok("inspect", "films", cwd=cwd).stdout
    equal(before[0], ["shaw:new"] + [f"shaw:{n:03}" for n in range(10)])
    equal(before[2], 41)
    ok("backup", "backups", cwd=cwd)
    ok("restore", "backups", "--store", OTHER, cwd=cwd)
    whole(cwd, OTHER)
    equal(ok("inspect", "films", "--store", OTHER, cwd=cwd).stdout, drawn)
    equal(answers(cwd, store=OTHER), before)


@test
def a_server_that_is_killed_goes_on_with_its_builds(cwd):
    docs = [{"_id": f"d{n:05}", "n": n % 97, "s": f"text {n}"} for n in range(20000)]
    with Server(cwd) as server:
        equal(server.request("PUT", "/db")[0], 201)
        for first in range(0, len(docs), 5000):
            equal(server.request("POST", "/db/_bulk_docs",
                                 {"docs": docs[first:first + 5000]})[0], 201)
        # Written as documents, the requests do not wait for a part of the build.
        views = {name: {"map": {"fields": {name: "asc"}}} for name in ("n", "s")}
        equal(server.request("PUT", "/db/_design/x", {"language": "query", "views": views})[0], 201)
        equal(server.request("PUT", "/db/_design/y", {"language": "query", "views": {
            "z": {"map": {"fields": {"s": "asc", "n": "asc"}}}}})[0], 201)
        server.stop(signal.SIGKILL)
    kills, ready = 1, []
    while len(ready) < 3:
        with Server(cwd) as server:
            equal(server.request("PUT", f"/db/new-{kills}", {"n": -1, "s": "new"})[0], 201)
            deadline = time.monotonic() + (0.1 * kills if kills < 8 else 60)
            while len(ready) < 3 and time.monotonic() < deadline:
                time.sleep(0.02)
                ready = [row for row in server.request("GET", "/db/_index?sizes=true")[1]["indexes"]
                         if row.get("state") == "ready"]
            server.stop(signal.SIGKILL)
        kills += 1
        assert kills < 20, ready
    equal({row["entries"] for row in ready}, {len(docs) + kills - 1})
    contains(ok("verify", "--quiet", cwd=cwd).stdout, " 0 findings")
    with Server(cwd) as server:
        equal(found(server, "/db/_find", {"n": {"$lt": 0}}), [f"new-{n}" for n in range(1, kills)])


@test
def move_takes_indexes_and_partitions_along(cwd):
    fill(cwd)
    before = answers(cwd)
    with Server(cwd, "--store", OTHER) as server:
        equal(server.request("PUT", "/first")[0], 201)  # so that the number is another one
    ok("move", "--quiet", "--from", STORE, "--to", OTHER, "films", cwd=cwd)
    whole(cwd, OTHER)
    equal(answers(cwd, store=OTHER), before)
    with Server(cwd, "--store", OTHER) as server:
        equal(server.request("GET", "/films")[1]["props"]["partitioned"], True)
        equal(server.request("PUT", "/films/nowhere", {})[0], 400)
        equal(server.request("PUT", "/films/shaw:later", {"year": 1899, "title": "A"})[0], 201)
        equal(found(server, "/films/_partition/shaw/_find", first_films(1901)),
              ["shaw:later", "shaw:new"])
    whole(cwd, OTHER)


@test
def a_dump_is_loaded_into_a_partitioned_database(cwd):
    fill(cwd)
    before = answers(cwd)
    text = ok("dump", "films", "--revs", "--quiet", cwd=cwd).stdout
    ok("load", "--quiet", "--new-edits=false", "--partitioned", "copy", cwd=cwd, stdin=text)
    equal(ok("dump", "copy", "--revs", "--quiet", cwd=cwd).stdout, text)
    whole(cwd)
    # The indexes came as design documents, and were made as each document was written.
    equal(answers(cwd, "copy"), before)
    with Server(cwd) as server:
        equal(server.request("GET", "/copy")[1]["props"]["partitioned"], True)
    # An id of no partition is refused, as clients are.
    bad = run("load", "--quiet", "--partitioned", "bad", cwd=cwd, stdin='{"_id":"none"}\n')
    assert bad.returncode != 0, bad
    contains(bad.stderr, "Doc id must be of form partition:id")


@test
def a_dump_is_loaded_through_a_server(cwd):
    fill(cwd)
    before = answers(cwd)
    text = ok("dump", "films", "--revs", "--quiet", cwd=cwd).stdout
    with Server(cwd) as server:
        ok("load", "--quiet", "--new-edits=false", "--partitioned", "--to", server.url, "copy",
           cwd=cwd, stdin=text)
        equal(ok("dump", "copy", "--revs", "--quiet", "--from", server.url, cwd=cwd).stdout, text)
    equal(answers(cwd, "copy"), before)
    whole(cwd)


main()
