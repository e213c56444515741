"""Views over HTTP, with the real worker: random questions against a naive sort and reduce that share
no code with the server, and what happens around a build."""

import http.client
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import ENV, FROND, Server, contains, equal, main, ok, run, test, until
from order import rank

SEED = 11
HAS_WORKER = (pathlib.Path(FROND).parent / "frond-js").exists()
LOWEST, HIGHEST = (-1,), (99,)


# ---- Views, as the server and as Python knows them ----

def rows_of_value(doc):
    return [(doc.get("a"), doc.get("b"))]


def rows_of_items(doc):
    return [([doc.get("g"), item], 1) for item in doc.get("items", [])]


def rows_of_group(doc):
    return [([doc["g"], doc["h"], doc["n"]], doc["n"])] if "n" in doc else []


def rows_of_link(doc):
    return [(doc["n"], {"_id": doc["link"]})] if "link" in doc else []


def naive_sum(values):
    return sum(values)


def naive_stats(values):
    return {"sum": sum(values), "count": len(values), "min": min(values), "max": max(values),
            "sumsqr": sum(v * v for v in values)}


GROUPS = "function (doc) { if ('n' in doc) emit([doc.g, doc.h, doc.n], doc.n); }"
VIEWS = {
    "value": ("function (doc) { emit(doc.a, doc.b); }", None, rows_of_value, None),
    "items": ("function (doc) { (doc.items || []).forEach(function (i) { emit([doc.g, i], 1); }); }",
              "_count", rows_of_items, len),
    "link": ("(doc) => { if (doc.link) emit(doc.n, {_id: doc.link}); }", None, rows_of_link, None),
    "sum": (GROUPS, "_sum", rows_of_group, naive_sum),
    "stats": (GROUPS, "_stats", rows_of_group, naive_stats),
    "own": (GROUPS, "function (keys, values, rereduce) { return sum(values); }", rows_of_group,
            naive_sum),
}
DESIGN = {"views": {name: {"map": map, **({"reduce": reduce} if reduce else {})}
                    for name, (map, reduce, _, _) in VIEWS.items()}}


# ---- What the answer has to be ----

def in_range(row, asked, down):
    """If a row lies between the bounds, which the caller has put in ascending order."""
    key, id = rank(row["key"]), row["id"]
    low = (asked.get("startkey"), asked.get("startkey_docid"), True)
    high = (asked.get("endkey"), asked.get("endkey_docid"), asked.get("inclusive_end", True))
    if down:
        low, high = high, low
    if low[0] is not None:
        place = (rank(low[0][0]), low[1] if low[1] is not None else "" if low[2] else "\xff")
        if (key, id) < place or (not low[2] and (key, id) == place):
            return False
    if high[0] is not None:
        place = (rank(high[0][0]), high[1] if high[1] is not None else "\xff" if high[2] else "")
        if (key, id) > place or (not high[2] and (key, id) == place):
            return False
    return True


def reversed_range(asked, down):
    """If CouchDB refuses the range, because its end lies before its beginning."""
    if "startkey" not in asked or "endkey" not in asked or asked["startkey"] == asked["endkey"]:
        return False
    first = asked.get("startkey_docid", "\xff" if down else "")
    last = asked.get("endkey_docid", "" if down else "\xff")
    begin, end = (rank(asked["startkey"][0]), first), (rank(asked["endkey"][0]), last)
    return begin < end if down else begin >= end


def group_of(key, level):
    return key[:level] if level and isinstance(key, list) else key


def selected(rows, asked, down):
    if "keys" in asked:
        keys = asked["keys"][::-1] if down else asked["keys"]
        return [row for key in keys for row in rows if rank(row["key"]) == rank(key)]
    return [row for row in rows if in_range(row, asked, down)]


def naive_reduce(rows, asked, reducer):
    level = asked.get("group_level", "all" if asked.get("group") else 0)
    if not rows:
        return []
    if level == 0:
        return [{"key": None, "value": reducer([row["value"] for row in rows])}]
    groups = []
    for key, group in itertools.groupby(
            rows, lambda row: rank(group_of(row["key"], 0 if level == "all" else level))):
        group = list(group)
        shown = group_of(group[0]["key"], 0 if level == "all" else level)
        groups.append({"key": shown, "value": reducer([row["value"] for row in group])})
    return groups


class Model:
    """The documents, here and on the server."""

    def __init__(self, server, rnd, db="/db"):
        self.server, self.rnd, self.db, self.docs, self.revs = server, rnd, db, {}, {}
        self.put_all([self.a_document(f"d{n:03}") for n in range(150)])

    def a_value(self, depth=0):
        rnd = self.rnd
        kinds = [None, True, False, rnd.randint(-3, 3), rnd.choice([0.5, -1.5]),
                 rnd.choice(["", "a", "ab", "b"])]
        if depth < 2:
            kinds += [[self.a_value(depth + 1) for _ in range(rnd.randint(0, 3))],
                      {name: self.a_value(depth + 1) for name in "abc" if rnd.random() < 0.5}]
        return rnd.choice(kinds)

    def a_document(self, id):
        rnd = self.rnd
        doc = {"_id": id, "a": self.a_value(), "b": self.a_value(), "g": rnd.randint(0, 3)}
        if rnd.random() < 0.8:
            doc |= {"h": rnd.choice("abc"), "n": rnd.randint(-5, 20)}
            if rnd.random() < 0.4:
                doc["link"] = f"d{rnd.randint(0, 160):03}"
        if rnd.random() < 0.5:
            doc["items"] = [rnd.randint(0, 4) for _ in range(rnd.randint(0, 5))]
        return doc

    def put_all(self, docs):
        status, answers = self.server.request("POST", f"{self.db}/_bulk_docs", {"docs": [
            {**doc, **({"_rev": self.revs[doc["_id"]]} if doc["_id"] in self.revs else {})}
            for doc in docs]})
        equal(status, 201)
        for doc, answer in zip(docs, answers):
            assert "rev" in answer, answer
            self.docs[doc["_id"]], self.revs[doc["_id"]] = doc, answer["rev"]
            if doc.get("_deleted"):
                del self.docs[doc["_id"]], self.revs[doc["_id"]]

    def change(self):
        ids = [f"d{self.rnd.randint(0, 170):03}" for _ in range(self.rnd.randint(0, 4))]
        self.put_all([{"_id": id, "_deleted": True} if id in self.docs and self.rnd.random() < 0.3
                      else self.a_document(id) for id in sorted(set(ids))])

    def rows(self, view):
        rows = [{"id": id, "key": key, "value": value} for id, doc in self.docs.items()
                for key, value in VIEWS[view][2](doc)]
        # Only "items" has rows of one document with equal keys, and their values are all 1.
        return sorted(rows, key=lambda row: (rank(row["key"]), row["id"]))

    def doc_of(self, row):
        id = row["value"]["_id"] if isinstance(row["value"], dict) and "_id" in row["value"] \
            else row["id"]
        return {**self.docs[id], "_rev": self.revs[id]} if id in self.docs else None

    def expected(self, view, asked):
        """The status and, of an answer, its members."""
        down = asked.get("descending", False)
        reduces = VIEWS[view][1] and asked.get("reduce", True)
        if "keys" not in asked and reversed_range(asked, down):
            return 400, None
        every = self.rows(view)[::-1] if down else self.rows(view)
        rows = selected(every, asked, down)
        begin, end = asked.get("skip", 0), asked.get("skip", 0) + asked.get("limit", 10**9)
        if reduces:
            # Each of several keys is a question of its own; the order of these is the asker's.
            parts = [selected(every, {"keys": [key]}, down) for key in asked["keys"]] \
                if "keys" in asked else [rows]
            results = [result for part in parts
                       for result in naive_reduce(part, asked, VIEWS[view][3])]
            return 200, {"rows": results[begin:end]}
        shown = [dict(row) for row in rows[begin:end]]
        if asked.get("include_docs"):
            for row in shown:
                row["doc"] = self.doc_of(row)
        answer = {"total_rows": len(every), "rows": shown}
        if rows:
            answer["offset"] = min(every.index(rows[0]) + begin, len(every))
        return 200, answer

    # ---- Questions ----

    def a_key(self, view):
        rows = self.rows(view)
        if rows and self.rnd.random() < 0.8:
            key = self.rnd.choice(rows)["key"]
            return key[:self.rnd.randint(0, 3)] if isinstance(key, list) and \
                self.rnd.random() < 0.3 else key
        return self.a_value()

    def a_question(self, view):
        rnd, asked = self.rnd, {}
        reduces = VIEWS[view][1] is not None and rnd.random() < 0.7
        if VIEWS[view][1] and not reduces:
            asked["reduce"] = False
        bounds = rnd.random()
        if bounds < 0.2:
            asked["keys"] = [self.a_key(view) for _ in range(rnd.choice([0, 2, 3, 8]))]
        elif bounds < 0.3:
            asked["startkey"] = asked["endkey"] = (self.a_key(view),)
        elif bounds < 0.9:
            for name in ("startkey", "endkey"):
                if rnd.random() < 0.6:
                    asked[name] = (self.a_key(view),)
        for name in ("startkey_docid", "endkey_docid"):
            if "keys" not in asked and rnd.random() < 0.3:
                asked[name] = f"d{rnd.randint(0, 160):03}"
        if rnd.random() < 0.3:
            asked["descending"] = True
        if "keys" not in asked and rnd.random() < 0.3:
            asked["inclusive_end"] = False
        if rnd.random() < 0.4:
            asked["limit"] = rnd.choice([0, 1, 3, 20])
        if rnd.random() < 0.3:
            asked["skip"] = rnd.choice([0, 1, 5, 200])
        if reduces and ("keys" in asked or rnd.random() < 0.4):
            asked["group"] = True
        elif reduces and rnd.random() < 0.6:
            asked["group_level"] = rnd.randint(0, 4)
        elif not reduces and rnd.random() < 0.3:
            asked["include_docs"] = True
        return asked


def as_members(asked):
    """The question as the members of a body."""
    members = dict(asked)
    for name in ("startkey", "endkey"):
        if name in members:
            members[name] = members[name][0]
    return members


def as_query(asked):
    return urllib.parse.urlencode({
        name: value if name.endswith("_docid") else json.dumps(value)
        for name, value in as_members(asked).items()})


def ask(server, rnd, path, asked):
    """Asks in one of the three ways."""
    way = rnd.random()
    if way < 0.5:
        return server.request("GET", f"{path}?{as_query(asked)}")
    if way < 0.75:
        return server.request("POST", path, as_members(asked))
    status, answer = server.request("POST", f"{path}/queries", {"queries": [as_members(asked)]})
    return status, answer["results"][0] if status == 200 else answer


def compare(got, expected, asked):
    equal(got["rows"], expected["rows"])
    for name in ("total_rows", "offset"):
        if name in expected:
            equal((name, got[name]), (name, expected[name]))
    if "total_rows" not in expected:
        assert "total_rows" not in got and "offset" not in got, got


def prepare(server, db="/db", design=None):
    server.request("PUT", db)
    equal(server.request("PUT", f"{db}/_design/v", design or DESIGN)[0], 201)


@test
def random_questions_get_what_a_naive_sort_and_reduce_give(cwd):
    rnd = random.Random(SEED)
    with Server(cwd, "--no-sync") as server:
        prepare(server)
        model = Model(server, rnd)
        for _ in range(600):
            view = rnd.choice(list(VIEWS))
            asked = model.a_question(view)
            status, got = ask(server, rnd, f"/db/_design/v/_view/{view}", asked)
            expected = model.expected(view, asked)
            try:
                equal(status, expected[0])
                if status == 200:
                    compare(got, expected[1], asked)
            except AssertionError as error:
                raise AssertionError(f"{view} {json.dumps(asked)}\n{error}") from error
            if rnd.random() < 0.5:
                model.change()


# ---- Around a build ----

def fill(server, count, db="/db"):
    for begin in range(0, count, 1000):
        status, _ = server.request("POST", f"{db}/_bulk_docs", {"docs": [
            {"_id": f"d{n:06}", "n": n, "s": "x" * 100}
            for n in range(begin, min(count, begin + 1000))]})
        equal(status, 201)


BY_N = {"views": {"n": {"map": "function (doc) { emit(doc.n, null); }", "reduce": "_count"}}}


def count_of(server, db="/db", more=""):
    status, answer = server.request("GET", f"{db}/_design/v/_view/n{more}")
    equal(status, 200)
    return answer["rows"][0]["value"] if answer["rows"] else 0


@test
def an_answer_covers_what_was_written_before_it(cwd):
    with Server(cwd, "--no-sync") as server:
        prepare(server, design=BY_N)
        stop, errors = threading.Event(), []

        def write_others():
            n = 0
            while not stop.is_set():
                n += 1
                server.request("PUT", f"/db/other{n:06}", {"x": n})

        thread = threading.Thread(target=write_others)
        thread.start()
        try:
            for n in range(100):
                equal(server.request("PUT", f"/db/mine{n:03}", {"n": n})[0], 201)
                equal(server.request("GET", f"/db/_design/v/_view/n?key={n}")[1]["rows"],
                      [{"key": None, "value": 1}])
        finally:
            stop.set()
            thread.join()
        assert not errors


@test
def what_is_asked_to_be_stale_builds_nothing(cwd):
    (cwd / "ini").write_text("[ken]\nlimit = 0\n")
    with Server(cwd, "--no-sync", "--config", "ini") as server:
        prepare(server, design=BY_N)
        fill(server, 10)
        equal(count_of(server, more="?update=false"), 0)
        equal(count_of(server, more="?stale=ok"), 0)
        equal(count_of(server, more="?update=lazy"), 0)
        until(lambda: count_of(server, more="?update=false") == 10)


@test
def views_are_built_before_they_are_asked(cwd):
    # One function never ends, and computes for as long as it may.
    (cwd / "ini").write_text("[couchdb]\nos_process_timeout = 10000\n")
    with Server(cwd, "--no-sync", "--config", "ini") as server:
        server.request("PUT", "/db")
        fill(server, 10)
        equal(server.request("PUT", "/db/_design/v", BY_N)[0], 201)
        until(lambda: count_of(server, more="?update=false") == 10)
        # One that wants to be asked, one whose function fails, and one that is gone by now.
        for name, design in (("asked", {**BY_N, "autoupdate": False}),
                             ("loops", {"views": {"v": {"map": "function () { for (;;) ; }"}}}),
                             ("gone", BY_N), ("last", {"views": {"v": {
                                 "map": "function (doc) { emit(doc.n, 'last'); }"}}})):
            equal(server.request("PUT", f"/db/_design/{name}", design)[0], 201)
        _, gone = server.request("GET", "/db/_design/gone")
        server.request("DELETE", f"/db/_design/gone?rev={gone['_rev']}")
        until(lambda: server.request("GET", "/db/_design/last/_view/v?update=false")[1]
              ["total_rows"] == 10)
        until(lambda: "view_build_failed" in server.read_log())
        failed = server.read_log().count("js_worker_ended")
        time.sleep(2)
        equal(server.read_log().count("js_worker_ended"), failed)  # it is not tried for ever
        equal(server.stop(), 0)
    equal(run("verify", "--store", "embedded:data", cwd=cwd).returncode, 0)


@test
def views_that_are_loaded_are_built_by_the_next_server(cwd):
    lines = [{"_id": "_design/v", **BY_N},
             {"_id": "_design/bad", "views": {"v": {"map": "function (doc) { no function"}}},
             *({"_id": f"d{n}", "n": n} for n in range(100))]
    (cwd / "lines").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ok("load", "db", "lines", "--store", "embedded:data", cwd=cwd)
    with Server(cwd, "--no-sync", "--store", "embedded:data") as server:
        until(lambda: count_of(server, more="?update=false") == 100)
        # A server would not have taken it; nobody else waits for it.
        equal(server.request("GET", "/db/_design/bad/_view/v")[1]["error"], "compilation_error")
        equal(server.stop(), 0)


@test
def a_build_that_was_killed_goes_on(cwd):
    store = "embedded:" + str(cwd / "data")
    with Server(cwd, "--store", store) as server:
        server.request("PUT", "/db")
        fill(server, 5000)
        equal(server.request("PUT", "/db/_design/v", BY_N)[0], 201)
    for wait in (0.05, 0.2, 0.4):
        with Server(cwd, "--store", store) as server:
            thread = threading.Thread(target=lambda url=server.url: ask_and_forget(
                url + "/db/_design/v/_view/n"))
            thread.start()
            time.sleep(wait)
            server.process.send_signal(signal.SIGKILL)
            server.process.wait(timeout=30)
            thread.join()
    with Server(cwd, "--store", store) as server:
        equal(count_of(server), 5000)
        status, answer = server.request("GET", "/db/_design/v/_view/n?reduce=false&skip=4990")
        equal([row["key"] for row in answer["rows"]], list(range(4990, 5000)))


def ask_and_forget(url):
    """If it was answered."""
    try:
        urllib.request.urlopen(url, timeout=60).read()
        return True
    except (OSError, http.client.HTTPException):
        return False


@test
def a_changed_design_document_answers_as_it_was_changed(cwd):
    with Server(cwd, "--no-sync") as server:
        prepare(server, design=BY_N)
        fill(server, 100)
        equal(count_of(server), 100)
        first = server.request("GET", "/db/_design/v/_info")[1]["view_index"]["signature"]
        rev = server.request("GET", "/db/_design/v")[1]["_rev"]
        other = {"views": {"n": {"map": "function (doc) { if (doc.n % 2) emit(doc.n, null); }",
                                 "reduce": "_count"}}}
        equal(server.request("PUT", "/db/_design/v", {**other, "_rev": rev})[0], 201)
        equal(count_of(server), 50)
        assert server.request("GET", "/db/_design/v/_info")[1]["view_index"]["signature"] != first
        # The same views under another name are there already.
        equal(server.request("PUT", "/db/_design/w", other)[0], 201)
        status, answer = server.request("GET", "/db/_design/w/_view/n?update=false")
        equal(answer["rows"], [{"key": None, "value": 50}])
        equal(server.request("POST", "/db/_view_cleanup", {})[0], 202)
        equal(count_of(server), 50)


@test
def verify_calls_the_reduces_of_design_documents(cwd):
    with Server(cwd, "--no-sync") as server:
        prepare(server)
        fill(server, 2000)
        equal(server.request("GET", "/db/_design/v/_view/own?limit=1")[0], 200)
        equal(server.stop(), 0)
    checked = ok("verify", cwd=cwd).stdout
    contains(checked, " 0 findings")
    assert "could not be called" not in checked, checked
    # A copy of the program has no worker beside it.
    shutil.copy(FROND, cwd / "frond")
    checked = subprocess.run([cwd / "frond", "verify"], cwd=cwd, env=ENV, capture_output=True,
                             text=True, timeout=60)
    equal(checked.returncode, 0)
    contains(checked.stdout, "1 reduces of views are functions that could not be called")


# ---- Functions that misbehave ----

LOOP = {"views": {"v": {"map": "function (doc) { while (true) {} }"}}}
FLOOD = {"views": {"v": {"map": "function (doc) { while (true) emit(1, 'xxxxxxxxxxxxxxxx'); }"}}}
THROWS = {"views": {"v": {
    "map": "function (doc) { if (doc.n == 3) throw 'no'; emit(doc.n, null); }"}}}


@test
def a_function_that_fails_is_its_documents_and_delays_nobody(cwd):
    with Server(cwd, "--no-sync") as server:
        for name, design in (("loop", LOOP), ("flood", FLOOD), ("throws", THROWS), ("good", BY_N)):
            equal(server.request("PUT", f"/{name}")[0], 201)
            fill(server, 5, f"/{name}")
            equal(server.request("PUT", f"/{name}/_design/v", design)[0], 201)
        threads = [threading.Thread(target=ask_and_forget,
                                    args=(f"{server.url}/{name}/_design/v/_view/v",))
                   for name in ("loop", "flood")]
        for thread in threads:
            thread.start()
        equal(count_of(server, "/good"), 5)
        status, answer = server.request("GET", "/throws/_design/v/_view/v")
        equal([row["key"] for row in answer["rows"]], [0, 1, 2, 4])
        assert threads[0].is_alive()  # the loop has had no answer yet
        server.process.kill()  # which would wait for the loop
        for thread in threads:
            thread.join()


@test
def sources_that_cannot_be_compiled_are_an_error_of_theirs(cwd):
    (cwd / "ini").write_text("[js]\nworker = /nowhere/frond-js\n")
    with Server(cwd, "--no-sync", "--config", "ini") as server:  # where nothing can be compiled
        prepare(server, design={"views": {"v": {"map": "function (doc) {"}}})
        fill(server, 1)
    with Server(cwd, "--no-sync") as server:
        status, answer = server.request("GET", "/db/_design/v/_view/v")
        equal((status, answer["error"]), (500, "compilation_error"))


@test
def a_reduce_that_does_not_shrink_is_refused(cwd):
    with Server(cwd, "--no-sync") as server:
        prepare(server, design={"views": {"v": {
            "map": "function (doc) { emit(doc.n, doc.s); }",
            "reduce": "function (keys, values) { return values; }"}}})
        fill(server, 100)
        status, answer = server.request("GET", "/db/_design/v/_view/v")
        assert "reduce_overflow_error" in json.dumps(answer), answer


# ---- Documents of many rows, and what does not fit ----

MANY_ROWS = {"views": {"rows": {
    "map": "function (doc) { for (let i = 0; i < doc.rows; i++) emit(i + (doc.plus || 0), 1); }",
    "reduce": "_sum"}}}


def rows_of(server, design="v", **asked):
    query = urllib.parse.urlencode({name: json.dumps(value) for name, value in asked.items()})
    with urllib.request.urlopen(f"{server.url}/db/_design/{design}/_view/rows?{query}",
                                timeout=240) as answer:
        return json.load(answer)


def check_rows(server, expected, keys):
    equal(rows_of(server, reduce=False, limit=0)["total_rows"], expected)
    summed = rows_of(server)["rows"]
    equal(summed[0]["value"] if summed else 0, expected)
    for key in keys:
        equal([row["id"] for row in rows_of(server, reduce=False, key=key)["rows"]], ["large"])
    assert "errors" not in rows_of(server, reduce=False, limit=0)


def verified(cwd):
    contains(ok("verify", "--quiet", cwd=cwd).stdout, " 0 findings")


def write_patience(cwd):
    """What lets a function emit 200,000 rows beside a busy machine's other programs."""
    (cwd / "ini").write_text("[couchdb]\nos_process_timeout = 60000\n")
    return "--config", "ini"


@test
def all_rows_of_a_document_are_there_however_many(cwd):
    patiently = write_patience(cwd)
    with Server(cwd, "--no-sync", *patiently) as server:
        prepare(server, design=MANY_ROWS)
        server.request("PUT", "/db/small", {"rows": 1, "plus": -1})
        server.request("PUT", "/db/large", {"rows": 200000})
        check_rows(server, 200001, [0, 100000, 199999])
        equal(rows_of(server, startkey=50000, endkey=149999)["rows"][0]["value"], 100000)
    verified(cwd)
    with Server(cwd, "--no-sync", *patiently) as server:
        def edit(**members):
            doc = server.request("GET", "/db/large")[1]
            equal(server.request("PUT", "/db/large", {**doc, **members})[0], 201)

        edit(rows=199990)  # most of the rows stay
        check_rows(server, 199991, [0, 199989])
        edit(rows=80000)
        check_rows(server, 80001, [79999])
        edit(plus=100000)  # none does
        check_rows(server, 80001, [100000, 179999])
        edit(rows=10)
        check_rows(server, 11, [100009])
        edit(rows=60000)
        rev = server.request("GET", "/db/large")[1]["_rev"]
        server.request("DELETE", f"/db/large?rev={rev}")
        check_rows(server, 1, [])
    verified(cwd)


@test
def many_documents_of_many_rows_are_built(cwd):
    with Server(cwd, "--no-sync") as server:
        prepare(server, design=MANY_ROWS)
        docs = [{"_id": f"d{i:03}", "rows": 1500, "plus": 1500 * i} for i in range(150)]
        equal(server.request("POST", "/db/_bulk_docs", {"docs": docs})[0], 201)
        equal(rows_of(server)["rows"][0]["value"], 225000)
    verified(cwd)


# Of the document that is amid an update at a kill: the rows take eight transactions. How many more there
# may be is another test's.
LARGE_ROWS = 60000
LARGE_STEP = LARGE_ROWS // 3  # by how much keys of rows move, so that a third of them is new


def change_large_and_others(server, rnd, turn):
    """Every third of the others, some of which go; most rows of the large document, or some."""
    docs = server.request("GET", "/db/_all_docs?include_docs=true&startkey=%22d%22&endkey=%22e%22")[1]["rows"]
    changed = []
    for row in docs:
        if rnd.random() < 0.33:
            gone = {"_deleted": True} if rnd.random() < 0.1 else {}
            changed.append({**row["doc"], "rows": rnd.randint(0, 6),
                            "plus": rnd.randint(0, LARGE_ROWS + LARGE_STEP), **gone})
    changed.append({**server.request("GET", "/db/large")[1], "rows": LARGE_ROWS - 10 * turn,
                    "plus": turn % 2 * LARGE_STEP})
    equal(server.request("POST", "/db/_bulk_docs", {"docs": changed})[0], 201)


@test
def a_view_that_was_killed_amid_updates_is_as_one_built_from_nothing(cwd):
    rnd = random.Random(SEED)
    patiently = write_patience(cwd)
    with Server(cwd, *patiently) as server:
        prepare(server, design=MANY_ROWS)
        for first in range(0, 3000, 1000):
            equal(server.request("POST", "/db/_bulk_docs", {"docs": [
                {"_id": f"d{n:04}", "rows": n % 5, "plus": n} for n in range(first, first + 1000)]})[0], 201)
        server.request("PUT", "/db/large", {"rows": LARGE_ROWS})
        began = time.monotonic()
        rows_of(server)
        took = time.monotonic() - began
    answered = []
    for turn, moment in enumerate((0.05, 0.3, 0.5, 0.8)):
        with Server(cwd, *patiently) as server:
            change_large_and_others(server, rnd, turn)
            thread = threading.Thread(target=lambda url=server.url: answered.append(
                ask_and_forget(url + "/db/_design/v/_view/rows")))
            thread.start()
            time.sleep(took * moment)
            server.stop(signal.SIGKILL)
            thread.join()
        verified(cwd)
    assert False in answered, "each kill came after its update"
    afresh = {"views": {"rows": {**MANY_ROWS["views"]["rows"],
                                 "map": MANY_ROWS["views"]["rows"]["map"] + " // the same again"}}}
    with Server(cwd, *patiently) as server:
        equal(server.request("PUT", "/db/_design/w", afresh)[0], 201)
        signatures = {server.request("GET", f"/db/_design/{name}/_info")[1]["view_index"]["signature"]
                      for name in "vw"}
        equal(len(signatures), 2)
        first = rnd.randint(LARGE_STEP, LARGE_ROWS)
        for asked in ({"reduce": False}, {}, {"startkey": first, "endkey": first + LARGE_STEP},
                      {"startkey": first, "endkey": first + 999, "group": True}):
            killed, built = (rows_of(server, design=name, **asked) for name in "vw")
            equal(killed == built, True)
        assert len(killed["rows"]) == 1000, killed
    verified(cwd)


LACKING = {"views": {
    "keys": {"map": "function (doc) { emit('k'.repeat(doc.key || 1), null); emit(1, 1); }"},
    "values": {"map": "function (doc) { emit(doc.value || 0, 'v'.repeat(doc.value || 1)); }",
               "reduce": "_count"},
    "good": {"map": "function (doc) { emit(1, null); }"}}}


@test
def an_answer_names_the_documents_whose_rows_do_not_fit(cwd):
    long_id = "i" * 6900
    with Server(cwd, "--no-sync") as server:
        prepare(server, design=LACKING)

        def view(name, **asked):
            query = urllib.parse.urlencode({key: json.dumps(v) for key, v in asked.items()})
            status, answer = server.request("GET", f"/db/_design/v/_view/{name}?{query}")
            equal(status, 200)
            return answer

        def errors(name, **asked):
            return {e["id"]: (e["error"], e["limit"], e["rows"])
                    for e in view(name, **asked).get("errors", [])}

        server.request("PUT", "/db/a", {})
        equal(errors("keys"), {})
        for id, doc in (("key", {"key": 7000}), ("value", {"value": 8600000}),
                        (long_id, {"key": 5000}), ("stored", {"value": 8100000})):
            equal(server.request("PUT", f"/db/{id}", doc)[0], 201)
        lacks_key = ("not_in_view", "view_key_bytes", 1)
        equal(errors("keys"), {"key": lacks_key, long_id: lacks_key})
        equal(view("keys")["total_rows"], 8)
        contains(view("keys", limit=0)["errors"][1]["reason"], "6000 bytes")
        equal(errors("keys", keys=["k", 1]), errors("keys"))
        equal(errors("values", reduce=False), {"value": ("not_in_view", "view_row_bytes", 1)})
        equal(errors("values"), errors("values", reduce=False))
        equal(view("values")["rows"][0]["value"], 4)
        equal(len(view("values", reduce=False, key=8100000)["rows"][0]["value"]), 8100000)
        assert "errors" not in view("good")
        queries = {"queries": [{}, {"limit": 1}]}
        results = server.request("POST", "/db/_design/v/_view/keys/queries", queries)[1]["results"]
        equal([len(result["errors"]) for result in results], [2, 2])
        info = server.request("GET", "/db/_design/v/_info")[1]["view_index"]
        equal(info["lacking"], {"keys": 2, "values": 1})
        equal(info["refused"]["total"], 3)
        scraped = urllib.request.urlopen(server.url + "/_node/_local/_prometheus").read().decode()
        contains(scraped, 'frond_view_rows_left_out_total{limit="view_key_bytes"} 2')

        for id in ("key", "value"):  # one that is mended is not named any more
            rev = server.request("GET", f"/db/{id}")[1]["_rev"]
            equal(server.request("PUT", f"/db/{id}", {"_rev": rev})[0], 201)
        equal(errors("keys"), {long_id: lacks_key})
        equal(errors("values"), {})
        rev = server.request("GET", f"/db/{long_id}")[1]["_rev"]
        equal(server.request("DELETE", f"/db/{long_id}?rev={rev}")[0], 200)
        assert "errors" not in view("keys")

        docs = [{"_id": f"many{i:02}", "key": 7000} for i in range(21)]
        server.request("POST", "/db/_bulk_docs", {"docs": docs})
        equal((len(view("keys")["errors"]), view("keys")["errors_more"]), (20, True))
        contains(server.read_log(), "event=view_row_refused")
    verified(cwd)


main(None if HAS_WORKER else "a build with JavaScript")
