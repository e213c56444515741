"""Functions in JavaScript that clients of MongoDB's protocol send: $where, $function, $accumulator."""

import os
import pathlib
import signal
import struct
import threading

from harness import FROND, QUICK, Skip, computed, contains, equal, main, run_threads, test, until
from mongo import Client, Date, Int64, ObjectId, Raw, Timestamp
from mongo_server import MongoServer

HAS_WORKER = (pathlib.Path(FROND).parent / "frond-js").exists()
LOOP = "function () { for (;;) ; }"


class Mongo(MongoServer):
    def __init__(self, cwd, ini=QUICK, worker=True, **kwargs):
        if worker and not HAS_WORKER:
            raise Skip("there is no frond-js")
        super().__init__(cwd, ini=ini, **kwargs)


def insert(c, *documents):
    c({"insert": "c", "documents": list(documents)}, "d")


def find(c, where, **members):
    answer = c({"find": "c", "filter": {"$where": where}, "sort": {"_id": 1}, **members}, "d")
    return [one["_id"] for one in answer["cursor"]["firstBatch"]]


def aggregate(c, *stages):
    answer = c({"aggregate": "c", "pipeline": list(stages), "cursor": {}}, "d")
    return answer["cursor"]["firstBatch"]


def function(body, *args):
    return {"$function": {"body": body, "args": list(args), "lang": "js"}}


def call(c, body, *args):
    """What a function gives for one document."""
    return aggregate(c, {"$project": {"r": function(body, *args)}})[0].get("r")


def code(text):
    data = text.encode() + b"\0"
    return Raw(13, struct.pack("<i", len(data)) + data)


def fails(c, command, number, part=""):
    failure = c.fails(command, "d")
    equal(failure["code"], number)
    contains(failure["errmsg"], part)
    return failure


def workers(server):
    """The processes that run functions."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().rsplit(")", 1)
        except OSError:
            continue
        if name.endswith("(frond-js") and int(rest.split()[1]) == server.process.pid:
            found.append(int(path.parent.name))
    return found


class Calls:
    """How many calls of workers were made, a batch being one, and with how many documents."""

    def __init__(self, server):
        self.server = server
        self.seen = self.read()

    def read(self):
        # A call is counted before its answer is taken, and so before its client has one.
        found = self.server.metrics()
        return (int(found['frond_js_calls_total{op="script",outcome="answered"}']),
                int(found["frond_js_documents_total"]))

    def since(self):
        before, self.seen = self.seen, self.read()
        return tuple(now - then for now, then in zip(self.seen, before))


# ---- $where ----

@test
def where_takes_expressions_statements_functions_and_code(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, {"_id": 1, "a": 5, "b": 10}, {"_id": 2, "a": 15, "b": 10}, {"_id": 3, "a": 5, "b": 3})
        for where in ["this.b > this.a", "obj.b > obj.a", "return this.b > this.a",
                      "var x = this.a; return this.b > x;", "function () { return this.b > this.a }",
                      "function f() { return obj.b > obj.a; };", "() => obj.b > obj.a",
                      "// why\nthis.b > this.a // so", code("this.b > this.a"),
                      "this.b > this.a ? 'text' : 0"]:
            equal(find(c, where), [1])
        equal(find(c, "true"), [1, 2, 3])
        equal(find(c, "this.missing"), [])


@test
def where_is_one_condition_of_a_filter(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, *({"_id": n, "n": n, "list": [n]} for n in range(10)))

        def ids(query):
            answer = c({"find": "c", "filter": query, "sort": {"_id": 1}}, "d")
            return [one["_id"] for one in answer["cursor"]["firstBatch"]]

        equal(ids({"n": {"$gte": 5}, "$where": "this.n % 2 == 0"}), [6, 8])
        equal(ids({"$or": [{"n": 1}, {"$where": "this.n > 7"}]}), [1, 8, 9])
        equal(ids({"$nor": [{"$where": "this.n > 2"}]}), [0, 1, 2])
        equal(ids({"$and": [{"$where": "this.n > 2"}, {"$where": "this.n < 5"}]}), [3, 4])
        # What another condition has decided is not asked: this would throw for those.
        equal(ids({"$or": [{"n": {"$gt": 0}}, {"$where": "if (this.n) throw 1; return true"}]}),
              list(range(10)))
        equal(ids({"n": {"$lt": 2}, "$where": "if (this.n > 1) throw 1; return true"}), [0, 1])


@test
def all_commands_with_filters_take_where(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, *({"_id": n, "n": n} for n in range(6)))
        where = {"$where": "this.n > 3"}
        equal(c({"count": "c", "query": where}, "d")["n"], 2)
        equal(c({"distinct": "c", "key": "n", "query": where}, "d")["values"], [4, 5])
        answer = c({"update": "c", "updates": [{"q": where, "u": {"$set": {"x": 1}}, "multi": True}]}, "d")
        equal((answer["n"], answer["nModified"]), (2, 2))
        answer = c({"findAndModify": "c", "query": {"$where": "this.x && this.n == 5"},
                    "update": {"$set": {"x": 2}}, "new": True}, "d")
        equal(answer["value"], {"_id": 5, "n": 5, "x": 2})
        equal(c({"delete": "c", "deletes": [{"q": {"$where": "this.x"}, "limit": 0}]}, "d")["n"], 2)
        equal(find(c, "true"), [0, 1, 2, 3])


@test
def where_is_refused_where_mongodb_refuses_it(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, {"_id": 1, "list": [{"a": 1}]})
        where = {"$where": "true"}
        here = "$where is not allowed in this context"
        fails(c, {"aggregate": "c", "pipeline": [{"$match": where}], "cursor": {}}, 2, here)
        fails(c, {"create": "v", "validator": where}, 2, here)
        fails(c, {"create": "v", "viewOn": "c", "pipeline": [{"$match": where}]}, 2, here)
        fails(c, {"find": "c", "filter": {"list": {"$elemMatch": where}}}, 2,
              "$elemMatch cannot contain $where expression")
        fails(c, {"find": "c", "projection": {"list": {"$elemMatch": where}}}, 2)
        fails(c, {"find": "c", "filter": {"list": {"$not": where}}}, 2)
        fails(c, {"find": "c", "filter": {"$where": 5}}, 2, "$where got bad type")
        equal(c.fails({"listDatabases": 1, "filter": where})["code"], 2)
        fails(c, {"create": "v", "validator": {"$expr": function("true")}}, 4660800,
              "$function cannot be used inside a validator.")
        c({"create": "v", "viewOn": "c", "pipeline": []}, "d")
        fails(c, {"find": "v", "filter": where}, 2, here)


@test
def many_documents_come_in_order_and_once_each(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        for at in range(0, 3000, 1000):
            insert(c, *({"_id": n, "n": n} for n in range(at, at + 1000)))
        equal(c({"count": "c", "query": {"$where": "this.n % 3 == 1"}}, "d")["n"], 1000)
        answer = c({"find": "c", "filter": {"$where": "this.n % 3 == 1"}, "batchSize": 7}, "d")["cursor"]
        got = answer["firstBatch"]
        while answer["id"]:
            answer = c({"getMore": answer["id"], "collection": "c", "batchSize": 7}, "d")["cursor"]
            got += answer["nextBatch"]
        equal([one["_id"] for one in got], list(range(1, 3000, 3)))
        # Documents in front of one that fails are given.
        answer = c({"find": "c", "batchSize": 2, "filter": {"$where": "if (this.n == 40) throw 'no'; return 1"}},
                   "d")["cursor"]
        equal(len(answer["firstBatch"]), 2)
        got = c({"getMore": answer["id"], "collection": "c", "batchSize": 38}, "d")["cursor"]
        equal(got["nextBatch"][-1]["_id"], 39)
        fails(c, {"getMore": answer["id"], "collection": "c", "batchSize": 1}, 139, "no")


# ---- $function ----

VALUES = {
    "double": 1.5, "nan": float("inf"), "minus zero": -0.0, "text": "ä\n\"\\", "marked": "\x01l5",
    "object": {"b": 1, "a": 2.0}, "array": [1.5, "x", [True, None]], "bytes": b"\0\xff",
    "uuid": bytes(range(16)), "undefined": Raw(6), "id": ObjectId(bytes(range(12))), "true": True,
    "date": Date(-5), "null": None, "regex": Raw(11, b"^a(?<=b)\0imx\0"), "code": code("x = 1"),
    "int": 7, "time": Timestamp(5 << 32 | 6), "long": Int64(2**62 + 1),
    "decimal": Raw(19, struct.pack("<QQ", 12345, 0x3040 << 48)), "min": Raw(255), "max": Raw(127),
    "scope": Raw(15, struct.pack("<i", 4 + 4 + 2 + 5) + struct.pack("<i", 2) + b"x\0" + b"\5\0\0\0\0"),
}


@test
def values_of_all_types_come_back_as_they_were(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        for name, value in VALUES.items():
            c({"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, "d")
            insert(c, {"_id": 1, "o": {"v": value, "2": 1, "z": Int64(1), "1": 2}})
            got = call(c, "function (o) { return o; }", "$o")
            equal(repr(got) if not isinstance(value, ObjectId) else got["v"].data,
                  repr({"v": value, "2": 1, "z": Int64(1), "1": 2})
                  if not isinstance(value, ObjectId) else value.data)
            equal(list(got), ["v", "2", "z", "1"])


@test
def functions_see_and_make_mongodbs_types(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, {"_id": ObjectId(bytes.fromhex("5f0000000000000000000001")), "n": 7, "l": Int64(2**53 + 1),
                   "d": Date(1000), "t": Timestamp(5 << 32 | 6), "b": b"abc", "r": Raw(11, b"^a\0i\0"),
                   "min": Raw(255), "text": "Abc"})
        for body, args, result in [
                ("function (x) { return x * 2; }", ["$n"], 14.0),
                ("function (x) { return NumberInt(x * 2); }", ["$n"], 14),
                ("function (x) { return typeof x; }", ["$n"], "number"),
                ("function (x) { return NumberLong(x); }", ["$n"], Int64(7)),
                ("function (x) { return x; }", ["$l"], Int64(2**53 + 1)),
                ("function (x) { return x.toString(); }", ["$l"], f'NumberLong("{2**53 + 1}")'),
                ("function (x) { return x.toNumber() > 5; }", ["$l"], True),
                ("function (x) { return x.str; }", ["$_id"], "5f0000000000000000000001"),
                ("function (x) { return x.toString(); }", ["$_id"], 'ObjectId("5f0000000000000000000001")'),
                ("function (x) { return x.getTimestamp(); }", ["$_id"], 0x5f000000 * 1000),
                ("function (x) { return x instanceof Date && x.getTime(); }", ["$d"], 1000.0),
                ("function (x) { return new Date(x.getTime() + 1); }", ["$d"], 1001),
                ("function (x) { return [x.t, x.i]; }", ["$t"], [5.0, 6.0]),
                ("function (x) { return Timestamp(1, 2); }", [1], Timestamp(1 << 32 | 2)),
                ("function (x) { return [x.base64(), x.hex(), x.length(), x.subtype()]; }", ["$b"],
                 ["YWJj", "616263", 3.0, 0.0]),
                ("function (x) { return HexData(0, '616263'); }", [1], b"abc"),
                ("function (r, s) { return r.test(s); }", ["$r", "$text"], True),
                ("function () { return /a.b/si; }", [], Raw(11, b"a.b\0is\0")),
                ("function (x) { return x instanceof MinKey; }", ["$min"], True),
                ("function () { return MaxKey(); }", [], Raw(127)),
                ("function () { return NumberDecimal('1.5'); }", [],
                 Raw(19, struct.pack("<QQ", 15, 0x303e << 48))),
                ("function () { return ISODate('1970-01-01T00:00:01'); }", [], 1000),
                ("function () { return tojson({ a: [1, 'x'] }); }", [], '{ "a" : [ 1, "x" ] }'),
                ("function () { return 10n; }", [], Int64(10)),
                ("function () {}", [], None),
                ("function () { return undefined; }", [], None),
                ("function () { return { a: undefined, b: [1] }; }", [], {"a": Raw(6), "b": [1.0]}),
                ("function (a, b) { return [a === null, b === null]; }", ["$missing", None], [True, True]),
                ("function () { return arguments.length; }", ["$n", "$n", "$n"], 3.0),
                ("(a, b) => a + b", ["x", "y"], "xy"),
                ("function () { return Object.keys(this).length; }", [], 0.0),
                ("function () { return Array.sum([1, 2, 3]); }", [], 6.0)]:
            equal(call(c, body, *args), result)


@test
def functions_stand_wherever_expressions_do(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, *({"_id": n, "n": n, "list": [n, n + 1]} for n in range(400)))
        double = function("function (x) { return x * 2; }", "$n")
        got = aggregate(c, {"$set": {"d": double}}, {"$match": {"$expr": {"$gt": ["$d", 792]}}},
                        {"$project": {"d": 1, "s": function("(a, b) => a + b", "$d", double)}})
        equal(got, [{"_id": n, "d": 2.0 * n, "s": 4.0 * n} for n in range(397, 400)])
        got = aggregate(c, {"$match": {"n": 3}},
                        {"$project": {"l": {"$map": {"input": {"$range": [0, 20]}, "in":
                                                     function("(x, y) => x * y", "$$this", "$n")}}}})
        equal(got[0]["l"], [3.0 * i for i in range(20)])
        got = aggregate(c, {"$group": {"_id": function("(x) => x % 2", "$n"), "n": {"$sum": 1}}},
                        {"$sort": {"_id": 1}})
        equal(got, [{"_id": 0.0, "n": 200}, {"_id": 1.0, "n": 200}])
        answer = c({"find": "c", "filter": {"$expr": function("(x) => x == 7", "$n")},
                    "projection": {"d": double}}, "d")
        equal(answer["cursor"]["firstBatch"], [{"_id": 7, "d": 14.0}])
        c({"update": "c", "updates": [{"q": {"_id": 7}, "u": [{"$set": {"d": double}}]}]}, "d")
        equal(find(c, "this.d == 14"), [7])


# ---- Batches ----

# Of 600 documents: batches of 1, 4, 16, 64, 256 and 259, the rest in one or two more.
BATCHES_OF_600 = 7
# Those of changes are as large as they may be by the time that they take.
CHANGES_OF_600 = 30


def asked_together(calls, most, documents):
    """The documents were asked for by so few calls, each of them once. Where a worker gets so little of the
    processor that a slice of its time ends within a batch, what is left of that is asked for again."""
    made, asked = calls.since()
    assert asked >= documents and made <= (most if asked == documents else 2 * most + documents // 8), (made, asked)


def numbers(c, count):
    """Documents {_id: n, n: n}."""
    for at in range(0, count, 1000):
        insert(c, *({"_id": n, "n": n} for n in range(at, min(at + 1000, count))))


@test
def groups_call_functions_for_many_documents_at_once(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        numbers(c, 600)
        calls = Calls(server)
        odd, double = function("(x) => x % 2", "$n"), function("(x) => 2 * x", "$n")

        def groups(*stages, most=BATCHES_OF_600, documents=600):
            got = aggregate(c, *stages, {"$sort": {"_id": 1}})
            asked_together(calls, most, documents)
            return got

        equal(groups({"$group": {"_id": odd, "n": {"$sum": 1}, "first": {"$first": "$n"},
                                 "all": {"$push": "$n"}}}),
              [{"_id": float(k), "n": 300, "first": k, "all": list(range(k, 600, 2))} for k in (0, 1)])
        equal(groups({"$group": {"_id": {"odd": odd, "high": {"$gte": ["$n", 300]}}, "n": {"$sum": 1}}}),
              [{"_id": {"odd": float(k), "high": high}, "n": 150} for k in (0, 1) for high in (False, True)])
        # What accumulators are given is computed with the group, and a document may ask twice.
        equal(groups({"$group": {"_id": odd, "s": {"$sum": double},
                                 "top": {"$top": {"output": double, "sortBy": {"n": -1}}}}},
                     most=3 * BATCHES_OF_600, documents=1800),
              [{"_id": float(k), "s": float(sum(2 * n for n in range(k, 600, 2))), "top": 2.0 * (598 + k)}
               for k in (0, 1)])
        equal(groups({"$sortByCount": odd}), [{"_id": 0.0, "count": 300}, {"_id": 1.0, "count": 300}])
        # An expression of $bucket is called once, however many boundaries there are.
        equal(groups({"$bucket": {"groupBy": double, "boundaries": list(range(0, 1001, 100)),
                                  "default": "more"}}),
              [{"_id": 100 * k, "count": 50} for k in range(10)] + [{"_id": "more", "count": 100}])
        equal(groups({"$redact": {"$cond": [function("(x) => x < 7", "$n"), "$$KEEP", "$$PRUNE"]}}),
              [{"_id": n, "n": n} for n in range(7)])
        # $accumulator goes on by itself.
        got = aggregate(c, {"$group": {"_id": None, "s": {"$accumulator": SUM}}})
        equal((got, calls.since()[0]), ([{"_id": None, "s": 179700.0}], 1))
        throws = function("(x) => { if (x == 400) throw 'no'; return x }", "$n")
        for stage in ({"$group": {"_id": throws}}, {"$group": {"_id": None, "s": {"$sum": throws}}}):
            fails(c, {"aggregate": "c", "pipeline": [stage], "cursor": {}}, 139, "no")
        # The first failure is told, whichever expression it is of.
        broken = {"$group": {"_id": throws, "x": {"$sum": {"$divide": [1, {"$subtract": ["$n", 300]}]}}}}
        fails(c, {"aggregate": "c", "pipeline": [broken], "cursor": {}}, 2, "divide by zero")


@test
def groups_that_spill_call_functions_in_batches(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        numbers(c, 3000)
        calls = Calls(server)
        # Together more than a stage keeps in memory.
        text = function("(x) => 'k'.repeat(8000) + x", "$n")
        answer = c({"aggregate": "c", "cursor": {"batchSize": 5000}, "allowDiskUse": True,
                    "pipeline": [{"$group": {"_id": text, "n": {"$sum": "$n"}}},
                                 {"$project": {"_id": 0}}]}, "d")["cursor"]["firstBatch"]
        equal(sorted(one["n"] for one in answer), list(range(3000)))
        made, asked = calls.since()
        assert asked > 3000 and made < asked / 20, (made, asked)


def read_all(c, command):
    """All documents of a find, with those of its cursor, and how many each answer had."""
    cursor = c(command, "d")["cursor"]
    sizes, got = [len(cursor["firstBatch"])], cursor["firstBatch"]
    while cursor["id"]:
        cursor = c({"getMore": cursor["id"], "collection": "c",
                    "batchSize": command.get("batchSize", 0)}, "d")["cursor"]
        got += cursor["nextBatch"]
        sizes.append(len(cursor["nextBatch"]))
    return got, sizes


@test
def projections_of_find_call_functions_for_many_documents_at_once(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        numbers(c, 600)
        calls = Calls(server)
        projection = {"d": function("(x) => 2 * x", "$n")}

        def find(most, documents, **members):
            got, sizes = read_all(c, {"find": "c", "projection": projection, **members})
            asked_together(calls, most, documents)
            return got, sizes

        def doubled(*numbers):
            return [{"_id": n, "d": 2.0 * n} for n in numbers]

        equal(find(11, 600), (doubled(*range(600)), [101, 499]))
        # No document is asked for that is not given.
        equal(find(3, 10, limit=10), (doubled(*range(10)), [10]))
        equal(find(3, 10, limit=10, skip=500), (doubled(*range(500, 510)), [10]))
        equal(find(1, 1, limit=1, filter={"n": 5}), (doubled(5), [1]))
        equal(find(23, 50, filter={"n": {"$lt": 50}}, batchSize=7),
              (doubled(*range(50)), [7] * 7 + [1]))
        # What is sorted in memory, or by an index.
        sort = {"filter": {"n": {"$gte": 550}}, "sort": {"n": -1}, "batchSize": 7}
        equal(find(8, 50, **sort), (doubled(*range(599, 549, -1)), [7] * 7 + [1]))
        c({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]}, "d")
        equal(find(23, 50, **sort), (doubled(*range(599, 549, -1)), [7] * 7 + [1]))
        # Both the filter and the projection ask.
        answer = read_all(c, {"find": "c", "filter": {"$where": "this.n % 2"}, "projection": projection,
                              "batchSize": 50, "showRecordId": True})
        equal(answer, ([{**one, "$recordId": one["_id"]} for one in doubled(*range(1, 600, 2))],
                       [50] * 6 + [0]))
        assert calls.since()[0] < 60
        # Of a snapshot all documents are read at once.
        got = c({"find": "c", "projection": projection, "batchSize": 10,
                 "readConcern": {"level": "snapshot"}}, "d")["cursor"]
        equal(got["firstBatch"], doubled(*range(10)))
        asked_together(calls, 11, 600)
        equal(c({"getMore": got["id"], "collection": "c"}, "d")["cursor"]["nextBatch"],
              doubled(*range(10, 600)))


@test
def a_projection_that_fails_does_so_where_its_document_is_given(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        numbers(c, 100)
        throws = {"d": function("(x) => { if (x == 40) throw 'no'; return x }", "$n")}
        find = {"find": "c", "projection": throws}
        fails(c, find, 139, "no")
        equal(len(read_all(c, {**find, "limit": 40})[0]), 40)
        cursor = c({**find, "batchSize": 35}, "d")["cursor"]
        equal([one["d"] for one in cursor["firstBatch"]], [float(n) for n in range(35)])
        more = {"getMore": cursor["id"], "collection": "c"}
        equal([one["_id"] for one in c({**more, "batchSize": 5}, "d")["cursor"]["nextBatch"]],
              list(range(35, 40)))
        fails(c, more, 139, "no")

        # An answer ends at its length, in the middle of a batch; no document is lost or comes twice.
        large = {"d": function("(x) => 'x'.repeat(x < 90 ? 900000 : 5)", "$n")}
        got, sizes = read_all(c, {"find": "c", "projection": large})
        equal([one["_id"] for one in got], list(range(100)))
        equal(sizes[0], 19)
        # Results that are larger together than a batch's memory.
        huge = {"d": function("(x) => 'x'.repeat(9000000)", "$n")}
        got, sizes = read_all(c, {"find": "c", "projection": huge, "limit": 20})
        equal(([one["_id"] for one in got], sizes), (list(range(20)), [2] * 10))


SCHEMES = [{"storageEngine": {"frond": {"scheme": scheme}}} for scheme in ("packed", "exploded")]


def recreate(c, scheme):
    c({"drop": "c"}, "d")
    c({"create": "c", **scheme}, "d")


def update(c, query, change, **members):
    """`n` and `nModified`."""
    answer = c({"update": "c", "updates": [{"q": query, "u": change, "multi": True, **members}]}, "d")
    equal(answer.get("writeErrors"), None)
    return answer["n"], answer["nModified"]


def documents(c, **members):
    return c({"find": "c", "sort": {"_id": 1}, "batchSize": 100000, **members}, "d")["cursor"]["firstBatch"]


@test
def changes_of_many_documents_call_functions_in_batches(cwd):
    odd = {"$where": "this.n % 2"}
    double = [{"$set": {"d": function("(x) => 2 * x", "$n")}}]
    expr = {"$expr": function("(x) => x % 2 == 0", "$n")}
    with Mongo(cwd) as server, Client(server.port) as c:
        calls = Calls(server)
        for scheme in SCHEMES:
            recreate(c, scheme)
            numbers(c, 600)

            calls.since()
            equal(update(c, {}, double), (600, 600))
            asked_together(calls, CHANGES_OF_600, 600)
            equal(documents(c), [{"_id": n, "n": n, "d": 2.0 * n} for n in range(600)])
            calls.since()
            equal(update(c, odd, {"$set": {"d": 0}}), (300, 300))
            asked_together(calls, CHANGES_OF_600, 600)
            equal(update(c, expr, {"$unset": {"d": 1}}), (300, 300))
            asked_together(calls, CHANGES_OF_600, 600)
            equal(documents(c), [{"_id": n, "n": n, "d": 0} if n % 2 else {"_id": n, "n": n}
                                 for n in range(600)])
            # Filter and pipeline: two rounds. What a stage has made is the argument of the next one.
            twice = [*double, {"$set": {"d": function("(x) => x + 1", "$d")}}]
            equal(update(c, odd, twice), (300, 300))
            asked_together(calls, 3 * CHANGES_OF_600, 1200)
            equal(update(c, odd, twice), (300, 0))
            asked_together(calls, 3 * CHANGES_OF_600, 1200)
            equal(documents(c), [{"_id": n, "n": n, "d": 2.0 * n + 1} if n % 2 else {"_id": n, "n": n}
                                 for n in range(600)])
            # One document: it is looked for in batches, the first of one document. Where one that took
            # long was answered in parts, the next ones have other sizes.
            one = c({"update": "c", "updates": [{"q": {"$where": "this.n == 500"}, "u": double}]}, "d")
            equal((one["n"], one["nModified"]), (1, 1))
            asked_together(calls, CHANGES_OF_600 + 100, 502)
            c({"update": "c", "updates": [{"q": {"$where": "true"}, "u": double}]}, "d")
            asked_together(calls, 2, 2)
            one = c({"findAndModify": "c", "query": odd, "sort": {"n": -1}, "update": double}, "d")
            equal(one["value"], {"_id": 599, "n": 599, "d": 1199.0})
            asked_together(calls, CHANGES_OF_600 + 1, 601)
            # Others that are run as update and delete are.
            bulk = c({"bulkWrite": 1, "nsInfo": [{"ns": "d.c"}], "ops": [
                {"update": 0, "filter": odd, "updateMods": double, "multi": True},
                {"delete": 0, "filter": expr, "multi": True}]})
            equal((bulk["nMatched"], bulk["nDeleted"]), (300, 300))
            asked_together(calls, 3 * CHANGES_OF_600, 1500)
            lsid = {"lsid": {"id": Raw(5, struct.pack("<iB", 16, 4) + os.urandom(16))}, "txnNumber": Int64(1)}
            inside = {**lsid, "autocommit": False}
            c({"update": "c", "updates": [{"q": {}, "u": [{"$set": {"n": 1, "d": function("() => 1")}}],
                                           "multi": True}], **inside, "startTransaction": True}, "d")
            where = {"$where": "this.d == 1 && this._id > 300"}
            equal(c({"delete": "c", "deletes": [{"q": where, "limit": 0}], **inside}, "d")["n"], 150)
            c({"commitTransaction": 1, **inside}, "admin")
            equal(documents(c), [{"_id": n, "n": 1, "d": 1.0} for n in range(1, 300, 2)])
            calls.since()
            equal(c({"delete": "c", "deletes": [{"q": {"$where": "true"}, "limit": 0}]}, "d")["n"], 150)
            asked_together(calls, CHANGES_OF_600, 150)
            # An upsert asks for the document that it makes.
            answer = c({"update": "c", "updates": [{"q": {"_id": 5, "$where": "true"}, "u": double,
                                                    "upsert": True, "multi": True}]}, "d")
            equal(answer["upserted"], [{"index": 0, "_id": 5}])
            equal(documents(c), [{"_id": 5, "d": 0.0}])


@test
def documents_in_front_of_one_that_fails_are_changed(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        def failure(statement, number, part, many="u"):
            name = "update" if many == "u" else "delete"
            answer = c({name: "c", name + "s": [statement]}, "d")
            [error] = answer["writeErrors"]
            equal((answer["n"], error["code"]), (0, number))
            contains(error["errmsg"], part)

        def changed():
            return [one["_id"] for one in documents(c) if "d" in one]

        for scheme in SCHEMES:
            recreate(c, scheme)
            numbers(c, 100)
            throws = function("(x) => { if (x == 40) throw 'no'; return x }", "$n")
            failure({"q": {}, "u": [{"$set": {"d": throws}}], "multi": True}, 139, "no")
            equal(changed(), list(range(40)))
            where = {"$where": "if (this.n == 50) throw 'no'; return this.n % 2"}
            failure({"q": where, "u": {"$set": {"d": 1}}, "multi": True}, 139, "no")
            equal(changed(), sorted({*range(40), *range(1, 50, 2)}))
            # A failure of another kind comes first, though a function fails behind it.
            both = {"$set": {"d": throws, "x": {"$divide": [1, {"$subtract": ["$n", 30]}]}}}
            failure({"q": {}, "u": [both], "multi": True}, 2, "divide by zero")
            equal([one["_id"] for one in documents(c) if "x" in one], list(range(30)))
            # An index refuses what it refuses, in its place.
            c({"createIndexes": "c", "indexes": [{"key": {"u": 1}, "name": "u", "unique": True,
                                                  "sparse": True}]}, "d")
            same = [{"$set": {"u": function("(x) => x == 70 ? 20 : x", "$n")}}]
            failure({"q": {}, "u": same, "multi": True}, 11000, "E11000")
            equal([one["u"] for one in documents(c) if "u" in one], [float(n) for n in range(70)])
            moves = [{"$set": {"_id": function("(x) => x == 20 ? -1 : NumberInt(x)", "$n")}}]
            failure({"q": {}, "u": moves, "multi": True}, 66, "immutable")
            failure({"q": where, "limit": 0}, 139, "no", "d")
            equal([one["_id"] for one in documents(c, filter={"_id": {"$lt": 60}})],
                  [n for n in range(60) if n % 2 == 0 or n > 50])


@test
def many_documents_are_changed_once_each_in_several_transactions(cwd):
    with Mongo(cwd) as server, Client(server.port, timeout=400) as c:
        calls = Calls(server)
        for scheme in SCHEMES:
            recreate(c, scheme)
            c({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]}, "d")
            for at in range(0, 1400, 700):
                insert(c, *({"_id": n, "n": n % 7, "text": "x" * 5000} for n in range(at, at + 700)))
            calls.since()
            # They move in the index by which they are found.
            change = [{"$set": {"n": function("(x) => NumberInt(x + 5)", "$n")}}]
            equal(update(c, {"n": {"$gte": 3}, "$where": "this.n < 1000"}, change, hint="n"), (800, 800))
            made, asked = calls.since()
            assert 1600 <= asked < 2800 and made < 100, (made, asked)
            equal([one["n"] for one in documents(c, projection={"n": 1})],
                  [n % 7 + 5 * (n % 7 >= 3) for n in range(1400)])
            # Large documents, which have transactions of their own.
            large = [{"$set": {"text": function("(x) => 'y'.repeat(x % 10 ? 10 : 2100000)", "$_id"), "n": 1}}]
            equal(update(c, {"_id": {"$lt": 20}}, large), (20, 20))
            equal([len(one["text"]) for one in documents(c, filter={"_id": {"$lt": 21}}, projection={"text": 1})],
                  [10 if n % 10 else 2100000 for n in range(20)] + [5000])


@test
def changes_that_meet_lose_nothing(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        for scheme in SCHEMES:
            recreate(c, scheme)
            insert(c, *({"_id": n, "n": 0} for n in range(200)))
            change = [{"$set": {"n": function("(x) => NumberInt(x + 1)", "$n")}}]

            def work():
                with Client(server.port) as other:
                    for _ in range(4):
                        equal(update(other, {"$where": "this.n < 1000"}, change), (200, 200))

            run_threads(work, work, work)
            equal({one["n"] for one in documents(c)}, {12})


@test
def a_stage_in_front_that_fails_does_so_behind_its_documents(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        numbers(c, 100)
        pipeline = [{"$set": {"x": {"$divide": [1, {"$subtract": ["$n", 40]}]}}},
                    {"$project": {"d": function("(x) => x", "$n")}}]
        cursor = c({"aggregate": "c", "pipeline": pipeline, "cursor": {"batchSize": 2}}, "d")["cursor"]
        more = {"getMore": cursor["id"], "collection": "c"}
        equal([one["_id"] for one in c({**more, "batchSize": 38}, "d")["cursor"]["nextBatch"]],
              list(range(2, 40)))
        fails(c, more, 2, "divide by zero")


# ---- Failures ----

@test
def a_function_that_is_not_well_formed_is_refused_with_mongodbs_codes(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, {"_id": 1})
        for spec, number in [(5, 31260), ({"args": [], "lang": "js"}, 31261),
                             ({"body": "$x", "args": [], "lang": "js"}, 31432),
                             ({"body": 5, "args": [], "lang": "js"}, 31262),
                             ({"body": "x", "lang": "js"}, 31263), ({"body": "x", "args": []}, 31418),
                             ({"body": "x", "args": [], "lang": "c"}, 31419),
                             ({"body": "x", "args": 5, "lang": "js"}, 31266)]:
            fails(c, {"aggregate": "c", "pipeline": [{"$project": {"r": {"$function": spec}}}],
                      "cursor": {}}, number)


@test
def stages_behind_a_change_stream_call_functions(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        def watch(*stages, **options):
            answer = c({"aggregate": "c", "pipeline": [{"$changeStream": options}, *stages],
                        "cursor": {}}, "d")["cursor"]
            return answer["id"], answer["firstBatch"]

        def read(stream, count):
            id, seen = stream
            while len(seen) < count:
                seen += c({"getMore": Int64(id), "collection": "c", "maxTimeMS": 20000},
                          "d")["cursor"]["nextBatch"]
            equal(len(seen), count)
            return seen

        insert(c, {"_id": "before"})
        odd = {"$match": {"$expr": function("(x) => x % 2 == 1", "$fullDocument.n")}}
        double = {"$set": {"twice": function("(x) => x * 2", "$fullDocument.n")}}
        streams = [watch(odd), watch(double), watch(double, odd)]
        for at in range(0, 600, 300):
            insert(c, *({"_id": n, "n": n, "text": "x" * 5000} for n in range(at, at + 300)))
        seen = [read(stream, count) for stream, count in zip(streams, (300, 600, 300))]
        equal([e["documentKey"]["_id"] for e in seen[0]], list(range(1, 600, 2)))
        equal([e["twice"] for e in seen[1]], [2.0 * n for n in range(600)])
        equal([e["twice"] for e in seen[2]], [2.0 * n for n in range(1, 600, 2)])
        equal([e["twice"] for e in read(watch(double, resumeAfter=seen[1][597]["_id"]), 2)],
              [1196.0, 1198.0])

        # What a function throws for one event ends the stream when that event is told.
        throws = {"$set": {"x": function("(x) => { if (x == 601) throw 'no'; return x }",
                                         "$fullDocument.n")}}
        id, _ = watch(throws)
        insert(c, {"_id": 600, "n": 600})
        equal(read((id, []), 1)[0]["x"], 600.0)
        insert(c, {"_id": 601, "n": 601})
        failure = fails(c, {"getMore": Int64(id), "collection": "c", "maxTimeMS": 20000}, 139, "no")
        equal("errorLabels" in failure, False)
        fails(c, {"getMore": Int64(id), "collection": "c"}, 43)
        where = {"$match": {"$where": "true"}}
        fails(c, {"aggregate": "c", "pipeline": [{"$changeStream": {}}, where], "cursor": {}}, 2,
              "$where is not allowed in this context")


# ---- $accumulator ----

SUM = {"init": "function () { return 0; }", "accumulate": "function (s, x) { return s + x; }",
       "accumulateArgs": ["$n"], "merge": "function (a, b) { return a + b; }", "lang": "js"}


@test
def accumulators_see_all_documents_of_their_group(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        for at in range(0, 6000, 1000):
            insert(c, *({"_id": n, "k": n % 3, "n": n} for n in range(at, at + 1000)))
        got = aggregate(c, {"$group": {"_id": "$k", "s": {"$accumulator": SUM}, "t": {"$sum": "$n"}}},
                        {"$sort": {"_id": 1}})
        equal(got, [{"_id": k, "s": float(sum(range(k, 6000, 3))), "t": sum(range(k, 6000, 3))}
                    for k in range(3)])
        got = aggregate(c, {"$match": {"n": {"$lt": 6}}}, {"$sort": {"_id": 1}},
                        {"$group": {"_id": {"k": "$k"}, "r": {"$accumulator": {
                            **SUM, "init": "function (k, l) { return { k: k, l: l, all: [] }; }",
                            "initArgs": ["$k", 5],
                            "accumulate": "function (s, x, y) { s.all.push(x, y); return s; }",
                            "accumulateArgs": ["$n", "$missing"],
                            "finalize": "function (s) { s.ends = NumberInt(1); return s; }"}}}},
                        {"$sort": {"_id": 1}})
        equal(got, [{"_id": {"k": k}, "r": {"k": k, "l": 5, "all": [float(k), None, k + 3.0, None],
                                            "ends": 1}} for k in range(3)])
        got = aggregate(c, {"$bucket": {"groupBy": "$k", "boundaries": [0, 3],
                                        "output": {"s": {"$accumulator": SUM}}}})
        equal(got, [{"_id": 0, "s": float(sum(range(6000)))}])


@test
def an_accumulator_that_is_not_well_formed_is_refused_with_mongodbs_codes(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, {"_id": 1, "n": 1})
        without = lambda name: {key: value for key, value in SUM.items() if key != name}
        for spec, number in [(5, 4544703), ({**SUM, "init": "$x"}, 4544701), ({**SUM, "init": 5}, 4544702),
                             ({**SUM, "lang": 5}, 4544704), ({**SUM, "lang": "c"}, 4544705),
                             ({**SUM, "x": 1}, 4544706), (without("init"), 4544707),
                             (without("accumulate"), 4544708), (without("merge"), 4544709),
                             (without("accumulateArgs"), 4544710), ({**SUM, "initArgs": 5}, 4544711),
                             ({**SUM, "accumulateArgs": 5}, 4544712)]:
            fails(c, {"aggregate": "c", "cursor": {},
                      "pipeline": [{"$group": {"_id": 1, "r": {"$accumulator": spec}}}]}, number)


# ---- Failures and limits ----

@test
def what_functions_throw_is_told(cwd):
    with Mongo(cwd) as server, Client(server.port) as c:
        insert(c, {"_id": 1})
        for body, part in [("function () { return missing; }", "ReferenceError: "),
                           ("function () { throw new RangeError('far'); }", "RangeError: far"),
                           ("function () { throw 'text'; }", "uncaught exception: text"),
                           ("function () { throw { toString() { throw 1; } }; }", "uncaught exception: "),
                           ("function ( {", "SyntaxError: "),
                           ("function () { var x = []; x[0] = x; return x; }", "TypeError: "),
                           ("function () { return Symbol(); }", "TypeError: "),
                           ("function () { return '\\ud800'; }", "Invalid BSON"),
                           ("function () { return NumberDecimal('x'); }", "TypeError: "),
                           ("function () { return 'x'.repeat(17 << 20); }", "max_output"),
                           ("function f() { return f(); }", "RangeError: "),
                           ("function () { return eval('1'); }", "EvalError: "),
                           ("function () { return require('fs'); }", "ReferenceError: "),
                           ("function () { return emit(1, 1); }", "ReferenceError: ")]:
            failure = fails(c, {"aggregate": "c", "pipeline": [{"$project": {"r": function(body)}}],
                                "cursor": {}}, 139, part)
            equal(failure["codeName"], "JSInterpreterFailure")
            fails(c, {"find": "c", "filter": {"$expr": function(body)}}, 139, part)
        fails(c, {"find": "c", "filter": {"$where": "throw 'x'"}}, 139, "uncaught exception: x")
        fails(c, {"find": "c", "filter": {"$where": "this."}}, 139, "SyntaxError: ")
        equal(find(c, "typeof require == 'undefined' && typeof emit == 'undefined'"), [1])


@test
def a_function_that_loops_is_ended(cwd):
    with Mongo(cwd, "[couchdb]\nos_process_timeout = 3000\n") as server, Client(server.port) as c:
        insert(c, {"_id": 1}, {"_id": 2})
        fails(c, {"find": "c", "filter": {"$where": LOOP}}, 11601, "timed out")
        equal(find(c, "this._id == 2"), [2])
        # Of documents that are asked for together those in front of it have their answers.
        c({"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, "d")
        numbers(c, 100)
        loops = function("(x) => { if (x == 60) for (;;) ; return x }", "$n")
        answer = c({"update": "c", "updates": [{"q": {}, "u": [{"$set": {"d": loops}}], "multi": True}]}, "d")
        equal([error["code"] for error in answer["writeErrors"]], [11601])
        equal([one["_id"] for one in documents(c) if "d" in one], list(range(60)))
        for command in ({"aggregate": "c", "pipeline": [{"$project": {"d": loops}}],
                         "cursor": {"batchSize": 58}},
                        {"find": "c", "filter": {"$expr": {"$gte": [loops, 0]}}, "batchSize": 58}):
            cursor = c(command, "d")["cursor"]
            more = {"getMore": cursor["id"], "collection": "c"}
            equal([one["_id"] for one in c({**more, "batchSize": 2}, "d")["cursor"]["nextBatch"]], [58, 59])
            fails(c, {**more, "batchSize": 1}, 11601, "timed out")


@test
def a_function_that_takes_memory_is_ended(cwd):
    with Mongo(cwd, "[js]\nmax_memory = 134217728\n[couchdb]\nos_process_timeout = 120000\n") as server, Client(server.port) as c:
        insert(c, {"_id": 1})
        eat = "function () { var all = []; for (;;) all.push(new Array(100000).fill(1.5)); }"
        fails(c, {"find": "c", "filter": {"$where": eat}}, 139, "memory")
        equal(find(c, "true"), [1])


@test
def clients_end_what_they_have_begun(cwd):
    # Nothing but the client ends these: functions may run for an hour.
    with Mongo(cwd, "[couchdb]\nos_process_timeout = 3600000\n") as server, Client(server.port) as c:
        insert(c, {"_id": 1})
        busy = {"find": "c", "filter": {"$where": LOOP}}
        fails(c, {**busy, "maxTimeMS": 300}, 50)

        def operations():
            ops = c({"currentOp": 1, "$all": True})["inprog"]
            return [op["opid"] for op in ops if op.get("command", {}).get("find") == "c" or
                    op.get("ns") == "d.c"]

        with Client(server.port) as other:
            failed = []
            thread = threading.Thread(target=lambda: failed.append(other.fails(busy, "d")))
            thread.start()
            until(operations)
            until(lambda: workers(server))
            c({"killOp": 1, "op": operations()[0]})
            thread.join(60)
            equal(failed[0]["code"], 11601)
        other = Client(server.port)
        other.send({**busy, "$db": "d"})
        until(operations)
        other.close()
        until(lambda: not operations())
        # Workers whose call nobody waits for are ended, too.
        until(lambda: not workers(server) or find(c, "true") == [1])
        equal(find(c, "true"), [1])


@test
def a_worker_that_is_killed_fails_its_call_only(cwd):
    with Mongo(cwd, "[couchdb]\nos_process_timeout = 600000\n") as server, Client(server.port) as c:
        insert(c, {"_id": 1})
        failed = []
        with Client(server.port, timeout=600) as other:
            equal(find(c, "true"), [1])
            [pid] = workers(server)
            idle = computed(pid)
            thread = threading.Thread(target=lambda: failed.append(other.fails(
                {"find": "c", "filter": {"$where": LOOP}}, "d")))
            thread.start()
            # A worker that computes has a call.
            until(lambda: computed(pid) > idle + 0.05, 600)
            os.kill(pid, signal.SIGKILL)
            thread.join(600)
        equal(failed[0]["code"], 139)
        equal(find(c, "true"), [1])


@test
def a_server_that_runs_no_javascript_says_so(cwd):
    for ini, part in [("[mongo]\njavascript = false\n", "[mongo] javascript"),
                      ("[js]\nworker = /nowhere/frond-js\n", "/nowhere/frond-js")]:
        with Mongo(cwd, ini, worker=False) as server, Client(server.port) as c:
            # Also where there is no document.
            fails(c, {"find": "c", "filter": {"$where": "true"}}, 6108304,
                  "no globalScriptEngine in $where parsing")
            for pipeline in [[{"$project": {"r": function("1")}}],
                             [{"$group": {"_id": 1, "r": {"$accumulator": SUM}}}]]:
                fails(c, {"aggregate": "c", "pipeline": pipeline, "cursor": {}}, 31264, part)
            equal(c({"buildInfo": 1})["javascriptEngine"], "none")


@test
def map_reduce_is_refused_by_name(cwd):
    with Mongo(cwd, worker=False) as server, Client(server.port) as c:
        for name in ["mapReduce", "mapreduce"]:
            fails(c, {name: "c", "map": "x", "reduce": "x", "out": {"inline": 1}}, 59, name)


main()
