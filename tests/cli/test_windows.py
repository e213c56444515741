"""Windows of queries: pages by skip, limit and bookmark while documents change, against a filter
and a sort that share no code with the server."""

import json
import os
import random

from harness import Server, equal, main, test
from naive import matches
from order import rank

SEED = int(os.environ.get("FROND_TEST_SEED", "11"))
COLUMNS = ["a", "b", "c"]
# Two values have more entries than are read as a whole, and far fewer than there are documents.
DOCS = 7200
VALUES = 12
LETTERS = "klmnopqrstuv"
MORE_WALKS = 5000  # queries at most, until each way of reading has been taken
MANGO = "/_node/_local/_config/mango"


# ---- Random documents and selectors ----

def a_value(rnd, name):
    """Few values of `a` and `c`, some more of `b`; sometimes one of another type."""
    if rnd.random() < 0.03:
        return rnd.choice([None, True, [0], {"x": 1}])
    return {"a": lambda: rnd.randrange(VALUES), "b": lambda: rnd.randint(0, 40),
            "c": lambda: rnd.choice(LETTERS)}[name]()


def a_body(rnd):
    return {name: a_value(rnd, name) for name in COLUMNS if rnd.random() < 0.97}


def a_condition(rnd, name):
    op = rnd.choice(["$eq", "$eq", "$eq", "$in", "$gte", "$lt", "$ne", "$exists"])
    if op == "$exists":
        return {op: True}
    if op == "$in":
        return {op: [a_value(rnd, name) for _ in range(rnd.randint(1, 3))]}
    return {op: a_value(rnd, name)}


def a_conjunction(rnd):
    return {name: a_condition(rnd, name)
            for name in rnd.sample(COLUMNS, rnd.choice([1, 1, 2, 3]))}


def an_equality(rnd, name):
    return {name: rnd.randrange(VALUES) if name == "a" else rnd.choice(LETTERS)}


def a_selector(rnd):
    """Conjunctions, disjunctions of them, and both together."""
    kind = rnd.choice(["and", "or", "both", "intersection", "union", "union"])
    if kind == "and":
        return a_conjunction(rnd)
    if kind == "intersection":
        return {**an_equality(rnd, "a"), **an_equality(rnd, "c")}
    if kind == "union":
        return {"$or": [an_equality(rnd, "a"), an_equality(rnd, rnd.choice("ac"))],
                **({"b": a_condition(rnd, "b")} if rnd.random() < 0.3 else {})}
    either = {"$or": [a_conjunction(rnd) for _ in range(rnd.randint(1, 3))]}
    return either if kind == "or" else {**either, **a_conjunction(rnd)}


# ---- Documents, here and on the server ----

class World:
    def __init__(self, server, rnd, partitions=None):
        self.server, self.rnd, self.partitions = server, rnd, partitions
        self.docs, self.revs = {}, {}
        self.ranks = {}  # by ids, of each column
        self.selector, self.matching = None, set()
        server.request("DELETE", "/db")
        equal(server.request("PUT", "/db?partitioned=true" if partitions else "/db")[0], 201)
        names = self.names(DOCS)
        for at in range(0, len(names), 1000):
            self.write([{"_id": id, **a_body(rnd)} for id in names[at:at + 1000]])

    def names(self, count):
        names = [f"d{n:05}" for n in self.rnd.sample(range(2 * DOCS), count)]
        if self.partitions:
            names = [f"{self.rnd.choice(self.partitions)}:{name}" for name in names]
        return sorted(names)

    def write(self, docs):
        status, rows = self.server.request("POST", "/db/_bulk_docs", {"docs": [
            {**doc, **({"_rev": self.revs[doc["_id"]]} if doc["_id"] in self.revs else {})}
            for doc in docs]})
        equal(status, 201)
        for doc, row in zip(docs, rows):
            id = doc["_id"]
            self.revs[id] = row["rev"]
            self.matching.discard(id)
            if doc.get("_deleted"):
                del self.docs[id], self.revs[id], self.ranks[id]
                continue
            self.docs[id] = doc
            self.ranks[id] = {name: rank(doc[name]) for name in COLUMNS if name in doc}
            if self.selector is not None and matches(self.selector, doc):
                self.matching.add(id)

    def change(self):
        """Documents that come, change and go, near the place that was reached or anywhere."""
        rnd = self.rnd
        ids = self.names(rnd.randint(1, 12)) + rnd.sample(sorted(self.docs), 4)
        if self.matching:
            ids += rnd.sample(sorted(self.matching), min(4, len(self.matching)))
        docs = []
        for id in sorted(set(ids)):
            gone = id in self.docs and rnd.random() < 0.3
            docs.append({"_id": id, "_deleted": True} if gone else {"_id": id, **a_body(rnd)})
        self.write(docs)

    def choose(self, selector):
        self.selector = selector
        self.matching = {id for id, doc in self.docs.items() if matches(selector, doc)}


def values_of(world, id, columns):
    """The ranks of these columns' values; None if the document lacks one."""
    ranks = world.ranks[id]
    return [ranks[name] for name in columns] if all(name in ranks for name in columns) else None


def in_order(world, columns, partition):
    """Each matching document's place in the order of these columns, and then of ids."""
    found = []
    for id in world.matching:
        values = values_of(world, id, columns)
        if values is not None and (partition is None or id.startswith(f"{partition}:")):
            found.append((values, id.encode()))
    return sorted(found)


# ---- Windows ----

def explain(server, path, query):
    status, plan = server.request("POST", f"{path}/_explain", query)
    equal(status, 200)
    if plan["index"] is None:
        return None  # no index has this order for all documents that are asked for
    columns = [[*field][0] for field in plan["index"]["def"]["fields"]]
    if plan["index"]["type"] == "special":
        columns = []
    plan = plan["plan"]
    way = plan["way"] + (" sorted" if plan["sorts"] else "")
    many = way.split()[0] in ("union", "intersection", "sets") and plan["estimated_rows"] > 1000
    return columns, way + (" by windows" if many else "")


def a_window(rnd):
    window = {"limit": rnd.choice([1, 3, 10, 25, 120, 700])}
    if rnd.random() < 0.4:
        window["skip"] = rnd.choice([1, 5, 40, 300])
    return window


def walk(world, query, partition, wanted=("",)):
    """Goes from window to window, while documents change. Returns how they were found; None if there was
    no way, or none that ends so."""
    server, rnd = world.server, world.rnd
    path = f"/db/_partition/{partition}" if partition else "/db"
    down = bool(query.get("sort")) and "desc" in json.dumps(query["sort"])
    window = a_window(rnd)
    plan = explain(server, path, {**query, **window})
    if plan is None or not plan[1].endswith(wanted):
        return None
    columns, way = plan
    world.choose(query["selector"])
    place, mark = None, None
    for _ in range(6):
        order = in_order(world, columns, partition)
        if down:
            order.reverse()
        left = [at for at in order if place is None or (at < place if down else at > place)]
        skip = window.get("skip", 0)
        expected = left[skip:skip + window["limit"]]
        asked = {**query, **window, **({"bookmark": mark} if mark else {})}
        status, answer = server.request("POST", f"{path}/_find", asked)
        if status == 400 and "sorted" in way and "sort_bytes" in answer["reason"]:
            return way + " refused"
        equal((status, answer.get("reason")), (200, None))
        if mark is None and explain(server, path, {**query, **window}) != plan:
            return None  # another way may have been taken: the counts that decide have just changed
        got = [doc["_id"].encode() for doc in answer["docs"]]
        assert got == [id for _, id in expected], (json.dumps(asked), way, columns, got, expected)
        passed = left[:skip + window["limit"]]
        if passed:
            place = passed[-1]
        mark = answer["bookmark"]
        if len(got) < window["limit"] and rnd.random() < 0.5:
            break
        world.change()
        window = a_window(rnd)
    return way


def a_query(rnd, sorts):
    query = {"selector": a_selector(rnd), "fields": ["_id"]}
    if rnd.random() < 0.5:
        direction = rnd.choice(["asc", "desc"])
        query["sort"] = [{field: direction} for field in rnd.choice([["_id"], *sorts])]
    return query


def make_index(server, number, fields, **more):
    equal(server.request("POST", "/db/_index", {
        "index": {"fields": fields}, "ddoc": f"i{number}", "name": "it", **more})[0], 200)


def walk_often(world, count, sorts, partition=lambda: None, wanted=("",)):
    ways = {}
    for _ in range(count):
        way = walk(world, a_query(world.rnd, sorts), partition(), wanted)
        ways[way] = ways.get(way, 0) + 1
    if set(ways) != {None}:
        print(f"# seed {SEED}: {ways}", flush=True)
    return ways


def not_taken(ends, ways):
    """Those of the ends that no way has."""
    return tuple(end for end in ends if not any(way and way.endswith(end) for way in ways))


@test
def windows_between_writes_hold_what_a_naive_sort_puts_there(cwd):
    rnd = random.Random(SEED)
    indexes = [["a"], ["b"], ["c"], ["a", "b"], ["c", "b", "a"]]
    with Server(cwd, "--no-sync") as server:
        # The second time there is little room for sorts and for sets of ids.
        for room, wanted in ((None, ["ids", "index"]),
                             ("65536", ["union by windows", "intersection by windows",
                                        "sorted by windows"])):
            if room:
                equal(server.request("PUT", f"{MANGO}/sort_bytes", room)[0], 200)
            world = World(server, rnd)
            for number, fields in enumerate(indexes):
                make_index(server, number, fields)
            ways = walk_often(world, 28, indexes)
            # Which way a query takes depends on counts, which the server keeps in its own time.
            for _ in range(MORE_WALKS):
                missing = not_taken(wanted, ways)
                if not missing:
                    break
                ways.update(walk_often(world, 1, indexes, wanted=missing))
            assert not not_taken(wanted, ways), ways


@test
def windows_of_partitions_hold_what_a_naive_sort_puts_there(cwd):
    rnd = random.Random(SEED + 1)
    # The first is the beginning of the second, and their ids are not in the order of their names.
    partitions = ["p", "p0", "q"]
    with Server(cwd, "--no-sync") as server:
        world = World(server, rnd, partitions)
        for number, fields in enumerate([["a"], ["b"], ["c", "b"]]):
            make_index(server, number, fields)
            make_index(server, f"{number}g", fields, partitioned=False)
        ways = walk_often(world, 28, [["a"], ["b"], ["c", "b"]],
                          lambda: rnd.choice([None, *partitions]))
        assert "index" in ways and "ids" in ways, ways


# ---- Groups ----

def naive_groups(world, by):
    """[count, sum of b, least and greatest a] of each group, in the order of their values."""
    groups = {}
    for id in world.matching:
        doc = world.docs[id]
        values = values_of(world, id, by)
        if values is not None:
            groups.setdefault(json.dumps(values), (values, []))[1].append(doc)
    found = []
    for _, (values, docs) in sorted(groups.items(), key=lambda item: item[1][0]):
        numbers = [doc["b"] for doc in docs if type(doc.get("b")) is int]
        ends = sorted((rank(doc["a"]), json.dumps(doc["a"])) for doc in docs if "a" in doc)
        found.append({"group": values, "count": len(docs), "sum": sum(numbers),
                      "min": json.loads(ends[0][1]) if ends else None,
                      "max": json.loads(ends[-1][1]) if ends else None})
    return found


@test
def windows_of_groups_hold_what_a_naive_loop_computes(cwd):
    rnd = random.Random(SEED + 2)
    ways = {}
    with Server(cwd, "--no-sync") as server:
        world = World(server, rnd)
        indexes = [["a"], ["b"], ["c"], ["c", "a", "b"]]
        for number, fields in enumerate(indexes):
            make_index(server, number, fields)
        for _ in range(20):
            by = rnd.sample(COLUMNS, rnd.randint(1, 3))
            world.choose(a_selector(rnd))
            query = {"selector": world.selector, "aggregate": {
                "group_by": by, "count": True, "sum": ["b"], "min": ["a"], "max": ["a"]}}
            way = server.request("POST", "/db/_explain", query)[1]["aggregate"]["groups"]
            ways[way] = ways.get(way, 0) + 1
            for window in ({}, a_window(rnd), {"skip": rnd.randint(0, 60), "limit": 5}):
                status, answer = server.request("POST", "/db/_find", {**query, **window})
                equal(status, 200)
                got = [{"group": [rank(g["group"][name]) for name in by], "count": g["count"],
                        "sum": g["sum"]["b"], "min": g["min"]["a"], "max": g["max"]["a"]}
                       for g in answer["groups"]]
                skip = window.get("skip", 0)
                expected = naive_groups(world, by)[skip:]
                assert got == expected[:window.get("limit")], (json.dumps(query), window, got,
                                                               expected)
                world.change()
    assert {"streamed", "gathered"} <= set(ways), ways


main()
