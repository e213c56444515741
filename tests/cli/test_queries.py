"""Queries: every command of docs/QUERIES.md, and random ones against a filter that shares no code."""

import json
import pathlib
import random
import re
import subprocess
import time

from harness import ENV, Server, equal, main, test
from naive import BAD_PATH, NO_MEMBER, look_up, matches
from order import rank

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SEED = 7
FIELDS = ["a", "b", "c", "a.b", "c.0", "a.b.c"]


# ---- The page ----

def without_space(text):
    """Without white space outside of strings, and with bookmarks that are alike."""
    text = re.sub(r'("bookmark": *)"[^"]*"', r'\1"…"', text)
    return re.sub(r'("(?:\\.|[^"\\])*")|\s+', lambda m: m.group(1) or "", text)


@test
def each_command_of_the_page_gives_the_answer_beside_it(cwd):
    page = (TOP / "docs" / "QUERIES.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```\n(?:```json\n(.*?)```)?", page, flags=re.S)
    assert len(blocks) > 10
    with Server(cwd, "--no-sync") as server:
        for command, answer in blocks:
            got = subprocess.run(["bash", "-c", command.replace("http://127.0.0.1:5984", server.url)],
                                 cwd=cwd, env=ENV, capture_output=True, text=True, timeout=60)
            equal(without_space(got.stdout), without_space(answer))


# ---- Random documents and selectors ----

def a_value(rnd, depth=0):
    kinds = [None, True, False, rnd.randint(-3, 3), rnd.choice([0.5, -1.5, 2.0]),
             rnd.choice(["", "a", "ab", "b"])]
    if depth < 3:
        kinds += [[a_value(rnd, depth + 1) for _ in range(rnd.randint(0, 3))],
                  {name: a_value(rnd, depth + 1) for name in "abc" if rnd.random() < 0.5}]
    return rnd.choice(kinds)


def a_document(rnd, number):
    return {"_id": f"d{number:03}", **{name: a_value(rnd) for name in "abc" if rnd.random() < 0.7}}


def a_condition(rnd):
    op = rnd.choice(["$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$in", "$nin", "$exists", "$type",
                     "$size", "$beginsWith", "$elemMatch"])
    if op in ("$in", "$nin"):
        return {op: [a_value(rnd, 2) for _ in range(rnd.randint(1, 3))]}
    if op == "$exists":
        return {op: rnd.random() < 0.5}
    if op == "$type":
        return {op: rnd.choice(["null", "boolean", "number", "string", "array", "object"])}
    if op == "$size":
        return {op: rnd.randint(0, 3)}
    if op == "$beginsWith":
        return {op: rnd.choice(["", "a", "b"])}
    if op == "$elemMatch":
        return {op: {rnd.choice(["$eq", "$gt", "$lte"]): a_value(rnd, 3)}}
    return {op: a_value(rnd, 1)}


def a_selector(rnd, depth=0):
    if depth < 2 and rnd.random() < 0.4:
        name = rnd.choice(["$and", "$or", "$nor", "$not"])
        inner = [a_selector(rnd, depth + 1) for _ in range(rnd.randint(1, 3))]
        return {name: inner[0] if name == "$not" else inner}
    return {field: a_condition(rnd)
            for field in rnd.sample(FIELDS, rnd.randint(1, 2))}


def find_all(server, query, between, limit):
    """All pages of a query; `between` is called before each but the first."""
    found, mark = [], None
    while True:
        status, answer = server.request("POST", "/db/_find", {
            **query, "limit": limit, **({"bookmark": mark} if mark else {})})
        equal(status, 200)
        found += [doc["_id"] for doc in answer["docs"]]
        if len(answer["docs"]) < limit:
            return found
        mark = answer["bookmark"]
        between()


class Model:
    """The documents, here and on the server."""

    def __init__(self, server, rnd, docs):
        self.server, self.rnd = server, rnd
        self.docs = {doc["_id"]: doc for doc in docs}
        status, answer = server.request("POST", "/db/_bulk_docs", {"docs": docs})
        equal(status, 201)
        self.revs = {row["id"]: row["rev"] for row in answer}

    def write(self, doc):
        id = doc["_id"]
        rev = {"_rev": self.revs[id]} if id in self.revs else {}
        status, answer = self.server.request("PUT", f"/db/{id}", {**doc, **rev})
        assert status in (200, 201), answer
        self.revs[id] = answer["rev"]
        if doc.get("_deleted"):
            del self.docs[id], self.revs[id]
        else:
            self.docs[id] = doc

    def disturb(self):
        """Writes what no page has to show: documents whose ids lie before all others."""
        id = f"a{self.rnd.randint(0, 9)}"
        if id in self.docs and self.rnd.random() < 0.5:
            self.write({"_id": id, "_deleted": True})
        else:
            self.write({"_id": id, "z": 1})

    def change(self):
        number = self.rnd.randint(0, 119)
        if f"d{number:03}" in self.docs and self.rnd.random() < 0.3:
            self.write({"_id": f"d{number:03}", "_deleted": True})
        else:
            self.write(a_document(self.rnd, number))

    def expected(self, selector, order=None):
        found = [doc for doc in self.docs.values()
                 if doc["_id"] >= "d" and matches(selector, doc)]
        if not order:
            return sorted(doc["_id"] for doc in found)
        found = [(rank(look_up(doc, order.split("."))), doc["_id"]) for doc in found
                 if look_up(doc, order.split(".")) not in (NO_MEMBER, BAD_PATH)]
        return [id for _, id in sorted(found)]


@test
def random_selectors_find_what_a_naive_filter_finds(cwd):
    rnd = random.Random(SEED)
    with Server(cwd, "--no-sync") as server:
        server.request("PUT", "/db")
        model = Model(server, rnd, [a_document(rnd, number) for number in range(120)])
        for _ in range(250):
            selector = a_selector(rnd)
            got = find_all(server, {"selector": {"$and": [selector, {"_id": {"$gte": "d"}}]},
                                    "fields": ["_id"]}, model.disturb, rnd.choice([7, 50, 200]))
            assert got == model.expected(selector), json.dumps(selector)
            model.change()


def read_documents(server, selector, **more):
    """How many documents a query has read, and the ids that it has found."""
    status, answer = server.request("POST", "/db/_find", {
        "selector": selector, "execution_stats": True, "limit": 1000, **more})
    equal(status, 200)
    return (answer["execution_stats"]["total_docs_examined"],
            [doc.get("_id") for doc in answer["docs"]])


@test
def an_index_reads_what_it_finds_and_is_never_behind(cwd):
    with Server(cwd, "--no-sync") as server:
        server.request("PUT", "/db")
        server.request("POST", "/db/_bulk_docs", {"docs": [
            {"_id": f"d{n:03}", "n": n % 10, "s": f"x{n}"} for n in range(200)]})
        equal(server.request("POST", "/db/_index", {"index": {"fields": ["n", "s"]}})[0], 200)
        end = time.monotonic() + 30
        selector = {"n": 3, "s": {"$gt": "x1", "$lt": "x2"}}
        while read_documents(server, selector)[0] == 200 and time.monotonic() < end:
            time.sleep(0.05)
        found = [f"d{n:03}" for n in (103, 113, 123, 13, 133, 143, 153, 163, 173, 183, 193)]
        equal(read_documents(server, selector), (11, found))
        # Nothing has to be read where the index has all that is asked for.
        equal(read_documents(server, selector, fields=["_id", "s"]), (0, found))
        # The next query finds what was written before it, and not what was there before that.
        rev = server.request("GET", "/db/d103")[1]["_rev"]
        equal(server.request("PUT", "/db/d103", {"_rev": rev, "n": 4, "s": "x103"})[0], 201)
        equal(server.request("PUT", "/db/new", {"n": 3, "s": "x10"})[0], 201)
        equal(read_documents(server, selector), (11, ["new", *found[1:]]))
        equal(read_documents(server, selector, sort=[{"n": "desc"}])[1], [*found[:0:-1], "new"])
        equal(read_documents(server, {"n": {"$gt": 5, "$lt": 5}, "s": "x"}), (0, []))
        # Design documents that arrive with data make their indexes, too; whoever drops one, drops it.
        design = {"_id": "_design/q", "language": "query", "views": {
            "odd": {"map": {"fields": 1}},
            "s": {"map": {"fields": {"s": "asc"}}, "reduce": "_count",
                  "options": {"def": {"fields": ["s"]}}}}}
        status, answer = server.request("POST", "/db/_bulk_docs", {"docs": [design]})
        while read_documents(server, {"s": "x7"})[0] > 1 and time.monotonic() < end:
            time.sleep(0.05)
        equal(read_documents(server, {"s": "x7"}), (1, ["d007"]))
        server.request("DELETE", f"/db/_design/q?rev={answer[0]['rev']}")
        assert read_documents(server, {"s": "x7"})[0] > 200


@test
def random_sorts_follow_the_order_of_views(cwd):
    rnd = random.Random(SEED + 1)
    with Server(cwd, "--no-sync") as server:
        server.request("PUT", "/db")
        for field in FIELDS:
            equal(server.request("POST", "/db/_index", {"index": {"fields": [field]}})[0], 200)
        model = Model(server, rnd, [a_document(rnd, number) for number in range(120)])
        for _ in range(120):
            field, selector = rnd.choice(FIELDS), a_selector(rnd)
            down = rnd.random() < 0.5
            got = find_all(server, {
                "selector": {"$and": [selector, {field: {"$exists": True}}, {"_id": {"$gte": "d"}}]},
                "sort": [{field: "desc" if down else "asc"}], "fields": ["_id"]},
                model.disturb, rnd.choice([7, 50, 200]))
            wanted = model.expected(selector, field)
            assert got == (wanted[::-1] if down else wanted), json.dumps([field, selector])
            model.change()


# ---- Random indexes ----

COLUMNS = ["a", "b", "c"]


def a_simple_value(rnd):
    return rnd.choice([rnd.randint(0, 9), rnd.randint(0, 9), rnd.randint(0, 9), 2.0, None, True,
                       rnd.choice(["", "a", "ab", "b"]), [rnd.randint(0, 9)], {"x": 1}])


def a_simple_document(rnd, number):
    return {"_id": f"d{number:03}",
            **{name: a_simple_value(rnd) for name in COLUMNS if rnd.random() < 0.9}}


def a_simple_condition(rnd):
    op = rnd.choice(["$eq", "$eq", "$in", "$gt", "$gte", "$lt", "$lte", "$ne", "$type", "$exists",
                     "$beginsWith", "both"])
    if op == "$in":
        return {op: [a_simple_value(rnd) for _ in range(rnd.randint(0, 4))]}
    if op == "$type":
        return {op: rnd.choice(["null", "boolean", "number", "string", "array", "object"])}
    if op == "$exists":
        return {op: True}
    if op == "$beginsWith":
        return {op: rnd.choice(["a", "b"])}
    if op == "both":
        low = rnd.randint(0, 9)
        return {"$gte": low, "$lt": low + rnd.randint(0, 3)}
    return {op: a_simple_value(rnd)}


def a_planned_selector(rnd, depth=0):
    """Conjunctions, and disjunctions in them, as planners like them; ids now and then."""
    if depth == 0 and rnd.random() < 0.1:
        return {"_id": {"$in": [f"d{rnd.randint(0, 320):03}" for _ in range(rnd.randint(0, 9))]},
                **({"a": a_simple_condition(rnd)} if rnd.random() < 0.5 else {})}
    if depth < 2 and rnd.random() < 0.4:
        inner = [a_planned_selector(rnd, depth + 1) for _ in range(rnd.randint(1, 3))]
        if rnd.random() < 0.1:
            inner.append({"_id": f"d{rnd.randint(0, 299):03}"})
        return {rnd.choice(["$or", "$or", "$and"]): inner}
    return {name: a_simple_condition(rnd) for name in rnd.sample(COLUMNS, rnd.choice([1, 1, 2, 3]))}


def make_indexes(server, rnd):
    """A few random ones. Returns the names of those that have all documents with their columns."""
    names = []
    for number in range(8):
        fields = rnd.sample(COLUMNS, rnd.choice([1, 1, 2, 3]))
        if rnd.random() < 0.3:
            fields = [{field: "desc"} for field in fields]
        index = {"fields": fields}
        if rnd.random() < 0.3:
            index["partial_filter_selector"] = {rnd.choice(COLUMNS): a_simple_condition(rnd)}
        else:
            names.append((f"i{number}", [f if isinstance(f, str) else [*f][0] for f in fields]))
        equal(server.request("POST", "/db/_index", {"index": index, "ddoc": f"i{number}",
                                                    "name": "it"})[0], 200)
    return names


def check_order(model, found, order, down):
    ranks = [rank(look_up(model.docs[id], [order])) for id in found]
    assert ranks == sorted(ranks, reverse=down), (order, ranks)


def check_cost(server, query):
    """What is read is what was estimated. Returns how documents were found."""
    status, plan = server.request("POST", "/db/_explain", {**query, "limit": 1000})
    equal(status, 200)
    status, answer = server.request("POST", "/db/_find", {**query, "limit": 1000,
                                                          "execution_stats": True})
    equal(status, 200)
    plan, stats = plan["plan"], answer["execution_stats"]
    read = max(stats["total_keys_examined"], stats["total_docs_examined"])
    assert read <= plan["estimated_rows"] * 1.5 + 8, (plan, stats)
    return plan["way"] + (" sorted" if plan["sorts"] else "")


def one_planned_query(server, rnd, model, names):
    selector = a_planned_selector(rnd)
    query, order, down = {"selector": selector, "fields": ["_id"]}, None, rnd.random() < 0.5
    if rnd.random() < 0.4:
        order = rnd.choice([columns[0] for _, columns in names])
        query["sort"] = [{order: "desc" if down else "asc"}]
    if rnd.random() < 0.2:
        query["use_index"] = rnd.choice(names)[0]

    def touch():
        model.write(model.docs[rnd.choice(sorted(model.docs))])

    status, answer = server.request("POST", "/db/_find", query)
    if status == 400 and order:
        assert answer["error"] == "no_usable_index", answer
        return None
    found = find_all(server, query, touch, rnd.choice([7, 50, 400]))
    assert sorted(found) == sorted(model.expected(selector, order)), json.dumps(query)
    if order:
        check_order(model, found, order, down)
    return check_cost(server, query)


@test
def random_queries_find_the_same_with_any_indexes(cwd):
    rnd = random.Random(SEED + 2)
    ways = {}
    with Server(cwd, "--no-sync") as server:
        for _ in range(3):
            server.request("DELETE", "/db")
            server.request("PUT", "/db")
            model = Model(server, rnd, [a_simple_document(rnd, number) for number in range(300)])
            names = make_indexes(server, rnd)
            for _ in range(70):
                way = one_planned_query(server, rnd, model, names)
                ways[way] = ways.get(way, 0) + 1
                model.write(a_simple_document(rnd, rnd.randint(0, 299)))
    for way in ("ids", "index", "sets", "union", "union sorted"):
        assert way in ways, ways
    assert any(way and way.startswith("intersection") for way in ways), ways


main()
