"""Indexes, views and functions of design documents where three frond processes serve one
FoundationDB cluster: whichever is asked, an answer has what any of them has acknowledged before, also
while an index or a view is built, and while a process that builds is killed. Needs a cluster; see
FROND_TEST_FDB."""

import http.client
import json
import pathlib
import random
import signal
import threading
import time
import urllib.parse

from harness import FROND, PATIENCE_SECONDS, Skip, cluster, equal, main, ok, test, until
from processes import Processes, ask, database, status, turns

HAS_WORKER = (pathlib.Path(FROND).parent / "frond-js").exists()
DOCUMENTS = 6000  # so many that a build of them is seen to go on


def fill(server, db, count=DOCUMENTS):
    for first in range(0, count, 2000):
        docs = [{"_id": f"d{n:06}", "n": n, "group": n % 10, "text": "x" * 100}
                for n in range(first, min(count, first + 2000))]
        code, rows = ask(server, "POST", f"{db}/_bulk_docs", {"docs": docs})
        equal(code, 201)
        assert all(row.get("ok") for row in rows)


def found(server, db, selector, **more):
    code, answer = ask(server, "POST", f"{db}/_find",
                       {"selector": selector, "limit": 100000, "fields": ["_id"], **more})
    assert code == 200, answer
    return answer


def ids(server, db, selector, **more):
    return sorted(doc["_id"] for doc in found(server, db, selector, **more)["docs"])


def plan(server, db, selector):
    """The name of the index that a query would take."""
    return ask(server, "POST", f"{db}/_explain", {"selector": selector})[1]["index"]["name"]


def index_states(server, db):
    rows = ask(server, "GET", f"{db}/_index?sizes=true")[1]["indexes"]
    return {row["name"]: row for row in rows if row["type"] == "json"}


def whole(cwd):
    out = ok("verify", "--still", "--quiet", "--store", cluster(), cwd=cwd, timeout=300).stdout
    assert " 0 findings" in out, out


class Writers:
    """`with Writers(servers, db) as writers`: one thread for each server creates, changes and deletes
    documents, all of its own; what is there in the end is in `there`."""

    def __init__(self, servers, db):
        self.servers, self.db = servers, db
        self.stop = threading.Event()
        self.there, self.wrong = {}, []

    def __enter__(self):
        self.threads = [threading.Thread(target=self.write, args=pair)
                        for pair in enumerate(self.servers)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
        equal(self.wrong, [])

    def write(self, k, server):
        rnd, n, mine = random.Random(k), 0, {}
        try:
            while not self.stop.is_set():
                n += 1
                id = f"w{k}-{rnd.randrange(60):02}"
                rev, doc = mine.get(id, (None, None))
                if rev and rnd.random() < 0.3:
                    equal(status(server, "DELETE", f"{self.db}/{id}?rev={rev}"), 200)
                    mine[id] = (None, None)
                    continue
                doc = {"n": -1 - n % 40, "group": n % 10}
                code, answer = ask(server, "PUT",
                                   f"{self.db}/{id}" + (f"?rev={rev}" if rev else ""), doc)
                equal(code, 201)
                mine[id] = (answer["rev"], doc)
        except Exception as error:
            self.wrong.append(repr(error))
        self.there.update({id: doc for id, (_, doc) in mine.items() if doc})


# ---- Indexes ----

@test
def an_index_of_one_is_kept_and_used_by_all_at_once(cwd):
    with Processes(cwd) as servers, database(servers[-1]) as db:
        for n, one, others in turns(servers):
            field = f"f{n}"
            equal(status(others[0], "PUT", f"{db}/before{n}", {field: 1}), 201)
            code, answer = ask(one, "POST", f"{db}/_index", {
                "index": {"fields": [field]}, "ddoc": field, "name": field})
            equal((code, answer["result"]), (200, "created"))
            for k, other in enumerate(others):
                equal(status(other, "PUT", f"{db}/after{n}-{k}", {field: 2 + k}), 201)
            until(lambda: index_states(one, db)[field].get("state") == "ready")
            for server in servers:
                equal(plan(server, db, {field: {"$gt": 0}}), field)
                equal(ids(server, db, {field: {"$gt": 0}}),
                      [f"after{n}-0", f"after{n}-1", f"before{n}"])
            equal(status(others[1], "DELETE", f"{db}/_index/_design/{field}/json/{field}"), 200)
            for server in servers:
                equal(plan(server, db, {field: {"$gt": 0}}), "_all_docs")


@test
def an_index_is_whole_though_all_write_while_it_is_built(cwd):
    with Processes(cwd) as servers, database(servers[-1]) as db:
        fill(servers[0], db)
        with Writers(servers, db) as writers:
            for n, server in enumerate(servers):
                fields = [["n"], ["group", "n"], ["text", "group"]][n]
                equal(status(server, "PUT", f"{db}/_design/i{n}", {
                    "language": "query", "views": {f"i{n}": {
                        "map": {"fields": {field: "asc" for field in fields}}}}}), 201)
            until(lambda: all(row.get("state") == "ready"
                              for row in index_states(servers[1], db).values()))
        negative = sorted(writers.there)
        for server in servers:
            rows = index_states(server, db)
            equal(sorted(rows), ["i0", "i1", "i2"])
            equal(rows["i0"]["entries"], DOCUMENTS + len(negative))
            equal(plan(server, db, {"n": {"$lt": 0}}), "i0")
            equal(ids(server, db, {"n": {"$lt": 0}}), negative)
            equal(len(ids(server, db, {"group": 3, "n": {"$gte": 0}})), DOCUMENTS // 10)
        whole(cwd)


@test
def an_index_that_is_built_by_a_process_that_is_killed_is_built_by_another(cwd):
    with Processes(cwd) as servers, database(servers[-1]) as db:
        fill(servers[0], db)
        views = {name: {"map": {"fields": {name: "asc"}}} for name in ("n", "group", "text")}
        equal(status(servers[0], "PUT", f"{db}/_design/x", {"language": "query", "views": views}),
              201)
        # Whichever it is: two of three are killed, so that the builder has probably been one.
        alive = list(servers)
        for _ in range(2):
            time.sleep(0.2)
            alive.pop(0).stop(signal.SIGKILL)
            equal(status(alive[0], "PUT", f"{db}/left{len(alive)}", {"n": -len(alive)}), 201)
        last = alive[0]
        until(lambda: all(row.get("state") == "ready" for row in index_states(last, db).values()))
        rows = index_states(last, db)
        equal(rows["n"]["entries"], DOCUMENTS + 2)
        equal(rows["group"]["entries"], DOCUMENTS)
        equal(ids(last, db, {"n": {"$lt": 0}}), ["left1", "left2"])
        whole(cwd)


@test
def an_answer_by_an_index_has_what_any_process_acknowledged_before(cwd):
    with Processes(cwd) as servers, database(servers[-1]) as db:
        ask(servers[0], "POST", f"{db}/_index", {"index": {"fields": ["n"]}, "name": "n"})
        until(lambda: index_states(servers[0], db)["n"].get("state") == "ready")
        revs = {}
        for n, one, others in turns(servers):
            code, answer = ask(one, "PUT", f"{db}/d{n}", {"n": n})
            equal(code, 201)
            revs[n] = answer["rev"]
            for other in others:
                equal(ids(other, db, {"n": n}), [f"d{n}"])
            equal(status(others[0], "PUT", f"{db}/d{n}?rev={revs[n]}", {"n": 1000 + n}), 201)
            equal(ids(one, db, {"n": n}), [])
            equal(ids(others[1], db, {"n": 1000 + n}), [f"d{n}"])


# ---- Views ----

BY_N = {"views": {"n": {"map": "function (doc) { emit(doc.n, null); }", "reduce": "_count"},
                  "group": {"map": "function (doc) { emit([doc.group, doc.n], 1); }",
                            "reduce": "_sum"}}}


def need_worker():
    if not HAS_WORKER:
        raise Skip("there is no frond-js")


def rows(server, db, view="n", **asked):
    query = urllib.parse.urlencode({name: json.dumps(value) for name, value in asked.items()})
    code, answer = ask(server, "GET", f"{db}/_design/v/_view/{view}?{query}")
    assert code == 200, answer
    return answer["rows"]


def count(server, db, **asked):
    answer = rows(server, db, **asked)
    return answer[0]["value"] if answer else 0


@test
def an_answer_of_a_view_has_what_any_process_acknowledged_before(cwd):
    need_worker()
    with Processes(cwd) as servers, database(servers[-1]) as db:
        equal(status(servers[0], "PUT", f"{db}/_design/v", BY_N), 201)
        for n, one, others in turns(servers):
            code, answer = ask(one, "PUT", f"{db}/d{n}", {"n": n, "group": 1})
            equal(code, 201)
            for other in others:
                equal([row["id"] for row in rows(other, db, reduce=False, key=n)], [f"d{n}"])
                equal(count(other, db), n + 1)
            code, answer = ask(others[0], "PUT", f"{db}/d{n}?rev={answer['rev']}", {"n": -1})
            equal(code, 201)
            equal(rows(one, db, reduce=False, key=n), [])
            equal(count(others[1], db, key=-1), n + 1)


@test
def a_view_is_built_once_for_all_who_ask_while_all_write(cwd):
    need_worker()
    with Processes(cwd) as servers, database(servers[-1]) as db:
        fill(servers[0], db)
        equal(status(servers[1], "PUT", f"{db}/_design/v", BY_N), 201)
        with Writers(servers, db) as writers:
            counts = {}
            threads = [threading.Thread(
                target=lambda k=k, server=server: counts.update(
                    {k: count(server, db, startkey=0)})) for k, server in enumerate(servers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE_SECONDS)
            equal(counts, {0: DOCUMENTS, 1: DOCUMENTS, 2: DOCUMENTS})
            time.sleep(2)  # goes on while they write
        for server in servers:
            expected = sorted((doc["n"], id) for id, doc in writers.there.items())
            equal([(row["key"], row["id"]) for row in rows(server, db, reduce=False, endkey=-1)],
                  expected)
            sums = {row["key"][0]: row["value"] for row in rows(server, db, "group", group_level=1)}
            equal(sums, {g: DOCUMENTS // 10 + sum(doc["group"] == g
                                                  for doc in writers.there.values())
                         for g in range(10)})
        whole(cwd)


@test
def a_view_that_a_killed_process_was_building_is_built_by_the_next(cwd):
    need_worker()
    with Processes(cwd) as servers, database(servers[-1]) as db:
        fill(servers[0], db)
        equal(status(servers[0], "PUT", f"{db}/_design/v", BY_N), 201)

        def ask_and_forget(server):
            try:
                rows(server, db)
            except (OSError, http.client.HTTPException):
                pass

        for server in servers[:2]:
            thread = threading.Thread(target=ask_and_forget, args=(server,))
            thread.start()
            time.sleep(0.3)
            server.stop(signal.SIGKILL)
            thread.join(60)
        equal(count(servers[2], db), DOCUMENTS)
        equal([row["key"] for row in rows(servers[2], db, reduce=False, startkey=DOCUMENTS - 5)],
              list(range(DOCUMENTS - 5, DOCUMENTS)))
        whole(cwd)


@test
def a_changed_view_is_the_changed_one_for_all_at_once(cwd):
    need_worker()
    with Processes(cwd) as servers, database(servers[-1]) as db:
        fill(servers[0], db, 100)
        rev = ""
        for n, one, others in turns(servers):
            source = f"function (doc) {{ if (doc.n % {n + 2} === 0) emit(doc.n, null); }}"
            code, answer = ask(one, "PUT", f"{db}/_design/v{rev}",
                               {"views": {"n": {"map": source, "reduce": "_count"}}})
            equal(code, 201)
            rev = f"?rev={answer['rev']}"
            for other in others:
                equal(count(other, db), sum(i % (n + 2) == 0 for i in range(100)))


@test
def what_one_purges_is_in_no_view_and_no_index_of_the_others(cwd):
    need_worker()
    with Processes(cwd) as servers, database(servers[-1]) as db:
        equal(status(servers[0], "PUT", f"{db}/_design/v", BY_N), 201)
        ask(servers[0], "POST", f"{db}/_index", {"index": {"fields": ["n"]}, "name": "n"})
        for n, one, others in turns(servers):
            code, answer = ask(one, "PUT", f"{db}/d{n}", {"n": n})
            equal(code, 201)
            for other in others:
                equal(count(other, db, key=n), 1)
            equal(status(others[0], "POST", f"{db}/_purge", {f"d{n}": [answer["rev"]]}), 201)
            for server in (one, others[1]):
                equal(count(server, db, key=n), 0)
                equal(ids(server, db, {"n": n}), [])
        whole(cwd)


@test
def a_validator_of_one_holds_for_the_writes_of_all(cwd):
    need_worker()
    source = "function (doc) { if (doc.wrong === %d) throw {forbidden: 'wrong'}; }"
    with Processes(cwd) as servers, database(servers[-1]) as db:
        for n, one, others in turns(servers):
            code, answer = ask(one, "PUT", f"{db}/_design/check",
                               {"validate_doc_update": source % n})
            equal(code, 201)
            for other in others:
                equal(status(other, "POST", db, {"wrong": n}), 403)
                equal(status(other, "POST", db, {"wrong": n + 1}), 201)
            equal(status(others[0], "DELETE", f"{db}/_design/check?rev={answer['rev']}"), 200)
            equal(status(others[1], "POST", db, {"wrong": n}), 201)


main(needs=None if cluster() else "FROND_TEST_FDB names no cluster file")
