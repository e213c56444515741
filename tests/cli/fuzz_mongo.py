"""Calls of MongoDB's door for fuzz_doors.py: plausible ones of each command, and what makes them worse."""

import socket
import struct

import mongo
from fuzz_doors import Wrong, number_at_an_edge
from fuzz_mongo_calls import (
    CALLS, COLLECTIONS, COMMON, DB, EXPRESSION_SPECS, EXPRESSIONS, FILTERS, FIND_FILTERS, FIXED, MEMBERS, PATHS, PLANS,
    STAGE_SPECS, STAGES, SUMS, UPDATE_PARTS, UPDATES, WORDS, Cursor, binary, code, decimal, regex)
from mongo import Date, Int64, ObjectId, Raw, Timestamp
from mongo_server import MongoServer

INTERNAL = {1, 8}  # InternalError, UnknownError
ANSWER_S = 90
WAIT_S = 0.3       # for an answer of what may wait for something to happen
WAIT_NAMES = {"getMore", "hello", "isMaster", "ismaster"}
CALL_MS = 3000
MOST_BYTES = 4 << 20
DEPTHS = [5, 50, 99, 100, 101, 150, 180, 200, 250, 1000]


class Doc:
    """A document whose members may have the same name twice."""

    def __init__(self, pairs):
        self.pairs = pairs

    def __repr__(self):
        return "{" + ", ".join(f"{name!r}: {value!r}" for name, value in self.pairs) + "}"


class Deep:
    """A value inside so many documents or arrays."""

    def __init__(self, depth, name, value):
        self.depth, self.name, self.value = depth, name, value

    def __repr__(self):
        return f"<{self.depth} times {self.name!r}: {self.value!r}>"


class Repeated:
    """A long string."""

    def __init__(self, text, times):
        self.text, self.times = text, times

    def __repr__(self):
        return f"<{self.text!r} * {self.times}>"


def tree(value):
    """A copy that may be changed."""
    if isinstance(value, dict):
        return Doc([[name, tree(member)] for name, member in value.items()])
    if isinstance(value, list):
        return [tree(member) for member in value]
    return value


def whole(number):
    """The nearest one that an int64 has."""
    return max(-2**63, min(2**63 - 1, number))


def encode(value, cursor):
    """The type and the bytes of a tree."""
    if isinstance(value, Doc):
        return 3, encode_members(value.pairs, cursor)
    if isinstance(value, list):
        return 4, encode_members(((str(i), member) for i, member in enumerate(value)), cursor)
    if isinstance(value, Cursor):
        return 18, struct.pack("<q", cursor)
    if isinstance(value, Repeated):
        return mongo.encode_value(value.text * value.times)
    if isinstance(value, Deep):
        kind, data = encode(value.value, cursor)
        name = value.name.encode() + b"\0"
        for _ in range(value.depth):
            data = struct.pack("<i", len(data) + len(name) + 6) + bytes([kind]) + name + data + b"\0"
            kind = 4 if value.name == "0" else 3
        return kind, data
    return mongo.encode_value(value)


class TooLong(Exception):
    """The call is longer than what is sent."""


def encode_members(pairs, cursor):
    out = []
    length = 0
    for name, value in pairs:
        kind, data = encode(value, cursor)
        out += [bytes([kind]), name.encode("utf-8", "replace").replace(b"\0", b""), b"\0", data]
        # At once: a member that was put into itself again and again would take all memory.
        length += len(data)
        if length > MOST_BYTES:
            raise TooLong
    body = b"".join(out)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def make_server(cwd, env):
    return MongoServer(cwd, "--mongo-test-commands", env=env)


class Door:
    def __init__(self, server, chance):
        self.server, self.random = server, chance
        self.cursor = 1
        self.clients = [server.client(timeout=ANSWER_S) for _ in range(3)]
        commands = sorted(self.clients[0]({"listCommands": 1})["commands"])
        known = {next(iter(call)) for call in CALLS} | {"aggregate", "update", "findAndModify", "explain"}
        self.unknown = [name for name in commands if name not in known]

    # ---- Data ----

    def make_data(self):
        """What the calls are about, made anew, on a connection that nothing has changed."""
        with self.server.client(timeout=ANSWER_S) as c:
            c({"configureFailPoint": "failCommand", "mode": "off"})
            c({"killAllSessions": []})
            c({"setParameter": 1, "transactionLifetimeLimitSeconds": 60})
            c({"profile": 0, "slowms": 100}, DB)
            c({"dropDatabase": 1}, DB)
            c({"dropAllUsersFromDatabase": 1}, DB)
            docs = [{"_id": i, "a": i % 7, "b": ["x", "y", None][i % 3], "s": "abc" * (i % 3),
                "d": Date(i * 10**11), "n": Int64(3**i),
                     "l": [i, {"x": i % 4}, i % 5], "k": {"b": {"c": i}}} for i in range(24)]
            c({"insert": "c", "documents": docs + [{"_id": "x"}, {"_id": ObjectId(b"123456789012"),
                "a": float("nan"), "n": decimal("17e-1")}]}, DB)
            c({"createIndexes": "c", "indexes": [
                {"key": {"a": 1}, "name": "a_1"}, {"key": {"b": 1, "a": -1}, "name": "b_1"}, {"key": {"l": 1},
                "name": "l_1"}, {"key": {"d": 1}, "name": "ttl", "expireAfterSeconds": 2**31 - 1},
                {"key": {"s": 1}, "name": "s_1", "collation": {"locale": "en", "strength": 2}},
                {"key": {"n": 1}, "name": "n_1", "partialFilterExpression": {"a": {"$gt": 2}}}]}, DB)
            for name in ("empty", "coll"):
                c({"create": name}, DB)
            c({"create": "valid", "validator": {"a": {"$gt": 0}}}, DB)
            c({"create": "clus", "clusteredIndex": {"key": {"_id": 1}, "unique": True}}, DB)
            c({"create": "view", "viewOn": "c", "pipeline": [{"$match": {"a": {"$gt": 1}}}]}, DB)
            c({"createIndexes": "uniq", "indexes": [{"key": {"a": 1}, "name": "u", "unique": True}]}, DB)

    # ---- Values ----

    def leaf(self):
        r = self.random
        return r.choice([
            lambda: whole(number_at_an_edge(r)), lambda: Int64(whole(number_at_an_edge(r))),
            lambda: float(number_at_an_edge(r)),
            lambda: r.choice([float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1.7e308, 1e-9, 0.5]),
            lambda: r.choice([True, False]), lambda: None,
            lambda: decimal(r.choice(["15e-1", "NaN", "inf", "-inf", "0", "-0e-6176",
            "9999999999999999999999999999999999e6111", "1e-6176", "9223372036854775808",
            "-9223372036854775809"])),
            lambda: r.choice(["", "$", "$$", "$a", "$$ROOT", "$$NOW", "$a.b", "$none", "a", "a.", ".a", "a..b",
            "$.a", "x", "c", "fuzz.c", "1", "-1", "\0", "a\0b", "é", "%Y", "UTC", "day", "*", "__proto__"]),
            lambda: r.choice(WORDS), lambda: Repeated(r.choice(["a", "é", "$a.", "a.", "(", "[", "0", "{"]),
            r.choice([10, 127, 128, 255, 256, 1000, 10**4, 10**5])),
            lambda: Raw(r.choice([6, 127, 255])), lambda: Raw(14, struct.pack("<i", 2) + b"x\0"),
            lambda: Raw(12, struct.pack("<i", 2) + b"x\0" + b"1" * 12),
            lambda: code(r.choice([13, 15]), r.choice(["", "function () { return 1; }", "x",
            "return this.a == 1"])), lambda: ObjectId(bytes(r.randrange(256) for _ in range(12))),
            lambda: Date(whole(number_at_an_edge(r))), lambda: Date(r.choice([253402300799999, 253402300800000,
            -62135596800001, 10**15])), lambda: Timestamp(r.choice([0, 1, 2**32, 2**63, 2**64 - 1])),
                lambda: regex(r.choice(["", "a", "(", "a{1,99999}", "(a*)*b", "\\", "[", "^$", "(?i)x"]),
                r.choice(["", "i", "msix", "z"])),
            lambda: binary(r.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 128]),
            r.choice([b"", b"x", b"0123456789abcdef", b"\4\0\0\0abcd", b"\xff" * 100])), lambda: Doc([]),
                lambda: [], Cursor])()

    def value(self):
        r, roll = self.random, self.random.random()
        if roll < 0.7:
            return self.leaf()
        if roll < 0.8:
            return self.expression(3)
        if roll < 0.86:
            return [self.leaf() for _ in range(r.choice([1, 2, 3, 10, 1000]))]
        if roll < 0.92:
            return Doc([[r.choice(WORDS + PATHS), self.leaf()] for _ in range(r.choice([1, 2, 3, 50]))])
        if roll < 0.95:
            return tree(r.choice(FIND_FILTERS + STAGE_SPECS + CALLS))
        return Deep(r.choice(DEPTHS), r.choice(["0", "a", "$and", "$not", "$expr", "$cond", "$add",
            "$elemMatch", "pipeline", "$literal", "", "$facet", r.choice(WORDS)]), self.leaf())

    def expression(self, depth):
        r, roll = self.random, self.random.random()
        if depth == 0 or roll < 0.15:
            return r.choice(["$" + r.choice(PATHS), "$$ROOT", self.leaf(), r.randrange(-3, 12)])
        if roll < 0.5:
            return tree(r.choice(EXPRESSION_SPECS))
        name, inner = r.choice(EXPRESSIONS), lambda: self.expression(depth - 1)
        if roll < 0.75:
            return Doc([[name, [inner() for _ in range(r.randrange(0, 5))]]])
        if roll < 0.88:
            return Doc([[name, inner()]])
        return Doc([[name, Doc([[r.choice(MEMBERS), inner()] for _ in range(r.randrange(1, 4))])]])

    def filter(self):
        r, roll = self.random, self.random.random()
        if roll < 0.6:
            return tree(r.choice(FIND_FILTERS))
        if roll < 0.7:
            return Doc([["$expr", self.expression(3)]])
        if roll < 0.9:
            return Doc([[r.choice(PATHS), Doc([[r.choice(FILTERS), self.value()]])]])
        return Doc([[r.choice(FILTERS), self.value()]])

    def update(self):
        r, roll = self.random, self.random.random()
        if roll < 0.6:
            return tree(r.choice(UPDATE_PARTS))
        if roll < 0.8:
            return [Doc([["$set", Doc([[r.choice(PATHS), self.expression(3)]])]])]
        return Doc([[r.choice(UPDATES), Doc([[r.choice(PATHS), self.value()] for _ in range(r.randrange(1,
            3))])]])

    def stage(self):
        r, roll = self.random, self.random.random()
        if roll < 0.6:
            return tree(r.choice(STAGE_SPECS))
        if roll < 0.75:
            return Doc([[r.choice(["$project", "$set"]), Doc([[r.choice(["x", *PATHS]), self.expression(4)]])]])
        if roll < 0.85:
            return Doc([["$group", Doc([["_id", self.expression(1)], ["v",
                Doc([[r.choice(SUMS), self.expression(2)]])]])]])
        if roll < 0.93:
            output = Doc([["v", Doc([[r.choice(SUMS), self.expression(2)], ["window",
                Doc([[r.choice(["documents", "range"]), [self.leaf(), self.leaf()]]])]])]])
            return Doc([["$setWindowFields", Doc([["sortBy", Doc([["a", 1]])], ["output", output]])]])
        return Doc([[r.choice(STAGES), self.value()]])

    # ---- Calls ----

    def plausible(self):
        r, roll = self.random, self.random.random()
        name = r.choice(COLLECTIONS)
        if roll < 0.25:
            return Doc([["aggregate", name], ["pipeline",
                [self.stage() for _ in range(r.choice([1, 1, 1, 2, 3]))]], ["cursor",
                Doc([["batchSize", r.randrange(3)]])], *([["explain", True]] if r.random() < 0.1 else [])])
        if roll < 0.35:
            return Doc([["find", name], ["filter", self.filter()], ["projection",
                Doc([[r.choice(["x", *PATHS]), self.expression(2)]])]])
        if roll < 0.45:
            each = [Doc([["q", self.filter()], ["u", self.update()], ["upsert", r.random() < 0.2], ["multi",
                r.random() < 0.5], ["arrayFilters", [Doc([["e.x", 1]])]]][:r.choice([2, 4, 4,
                    5])]) for _ in range(r.randrange(1, 3))]
            return Doc([["update", name], ["updates", each], ["ordered", r.random() < 0.5]])
        if roll < 0.5:
            what = [["update", self.update()], ["new", True]] if r.random() < 0.7 else [["remove", True]]
            return Doc([["findAndModify", name], ["query", self.filter()], ["sort", Doc([["a", 1]])], ["fields",
                Doc([["a", 1]])], ["upsert", r.random() < 0.3 and len(what) == 2], *what])
        if roll < 0.55:
            return Doc([["explain", tree(r.choice(PLANS))], ["verbosity",
                r.choice(["queryPlanner", "executionStats", "allPlansExecution"])]])
        if roll < 0.62 and self.unknown:
            return Doc([[r.choice(self.unknown), r.choice([1, name, "", Doc([])])]])
        return tree(r.choice(CALLS))

    def spots(self, node, path=()):
        """Every place in a tree that a value may be replaced at: the container and the index."""
        out = []
        members = enumerate(node) if isinstance(node, list) else enumerate(value for _, value in node.pairs)
        for i, value in members:
            out.append((node, i, value))
            if isinstance(value, (Doc, list)):
                out += self.spots(value)
        return out

    def worsen(self, call):
        r = self.random
        node, i, value = r.choice(self.spots(call))
        members = node if isinstance(node, list) else node.pairs
        put = (lambda v: members.__setitem__(i, v)) if isinstance(node,
            list) else (lambda v: members[i].__setitem__(1, v))
        roll = r.random()
        if roll < 0.45:
            put(self.value())
        elif roll < 0.55:
            put(r.choice([lambda: [value], lambda: Doc([[r.choice(WORDS), value]]),
                lambda: Deep(r.choice(DEPTHS), r.choice(["0", "a", "$and", "$not"]), value)])())
        elif roll < 0.62:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                put(self.expression(2))
            else:
                put(r.choice([Int64(value), float(value), value + 1, -value,
                    decimal(str(int(value)))]) if abs(value) < 2**62 else 0)
        elif roll < 0.7 and node is not call:
            del members[i]
        elif roll < 0.78:
            members.insert(r.randrange(len(members) + 1) if node is not call else i + 1, r.choice(members))
        elif roll < 0.86:
            new = self.value()
            where = r.randrange(len(members) + 1) if node is not call else len(members)
            members.insert(where, new if isinstance(node,
                list) else [r.choice(WORDS + PATHS + UPDATES + FILTERS), new])
        elif roll < 0.94 and not isinstance(node, list) and not (node is call and i == 0):
            members[i] = [r.choice([r.choice(WORDS), r.choice(PATHS), "", "$", "a" * 2000,
                str(number_at_an_edge(r))]), value]
        elif isinstance(value, list) and value:
            put(value * r.choice([2, 10, 1000]))
        else:
            put(self.value())

    def next(self):
        r = self.random
        call = self.plausible()
        for name, value in r.sample(COMMON, r.choice([0, 0, 0, 1, 1, 2, 4])):
            call.pairs.append([name, tree(value)])
        for _ in range(r.choice([0, 1, 1, 1, 2, 3, 5])):
            self.worsen(call)
        if r.random() < 0.03:
            call.pairs[0][0] = r.choice(WORDS)
        if not any(name == "maxTimeMS" for name, _ in call.pairs) and call.pairs[0][0] != "getMore":
            call.pairs.append(["maxTimeMS", CALL_MS])
        if not any(name == "$db" for name, _ in call.pairs):
            call.pairs.append(["$db", r.choice([DB] * 30 + ["admin", "config", "local", "other", "$external"])])
        return r.randrange(len(self.clients)), r.random() < 0.1, call

    def fixed(self):
        return [(0, False, tree({**call, "$db": DB})) for call in FIXED]

    def text(self, call):
        return f"connection {call[0]}{', as a sequence' if call[1] else ''}: {call[2]!r}"

    def run(self, call):
        """Sends it; returns whether it was obeyed."""
        which, as_sequence, document = call
        pairs, sections = document.pairs, b""
        name = pairs[0][0]
        if name == "configureFailPoint" and not is_off(document):
            return False
        try:
            if as_sequence:
                pairs, sections = self.take_sequence(pairs)
            data = struct.pack("<I", 0) + b"\0" + encode_members(pairs, self.cursor) + sections
        except TooLong:
            return False
        if len(data) > MOST_BYTES:
            return False
        client = self.clients[which]
        client.socket.settimeout(WAIT_S if name in WAIT_NAMES else ANSWER_S)
        number = client.send_raw(mongo.OP_MSG, data)
        try:
            message = client.read_raw()
        except (TimeoutError, socket.timeout):
            if name not in WAIT_NAMES:
                raise Wrong("there was no answer")
            self.clients[which] = self.server.client(timeout=ANSWER_S)
            client.close()
            return True
        if message is None:
            raise Wrong("the connection was closed instead of an answer")
        return self.check(number, message)

    def take_sequence(self, pairs):
        """The first member that is an array of documents, beside the body."""
        for pair in pairs:
            name, value = pair
            if isinstance(value, list) and value and all(isinstance(one,
                Doc) for one in value) and "\0" not in name:
                body = name.encode() + b"\0" + b"".join(encode_members(one.pairs, self.cursor) for one in value)
                return [other for other in pairs if other is not pair], b"\1" + struct.pack("<i",
                    len(body) + 4) + body
        return pairs, b""

    def check(self, number, message):
        op, _, to, _, data = message
        if op != mongo.OP_MSG or to != number:
            raise Wrong(f"the answer is to {to}, of kind {op}")
        try:
            answer = mongo.decode(data, 5)
        except Exception as failure:
            raise Wrong(f"the answer cannot be read: {failure!r}: {data[:2000]!r}")
        ok = answer.get("ok")
        if ok not in (0, 1) or ok == 0 and not ({"code", "codeName", "errmsg"} <= answer.keys()):
            raise Wrong(f"the answer is none: {answer!r}")
        parts = [answer, answer.get("writeConcernError")]
        for member in ("writeErrors",):
            parts += answer.get(member) or []
        for part in parts:
            if isinstance(part, dict) and part.get("code") in INTERNAL:
                raise Wrong(f"an internal error: {answer!r}")
        cursor = answer.get("cursor")
        if ok and isinstance(cursor, dict) and cursor.get("id"):
            self.cursor = cursor["id"]
        return ok == 1


def is_off(document):
    """A fail point that is on could do anything; one that is described wrongly is refused."""
    return all(name != "mode" or value == "off" for name, value in document.pairs)
