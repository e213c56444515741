"""Databases of rows, by the commands: the sequences of the text on rows, drawn by inspect as
that text draws them (src/model/timed/rows/README.md names where not); statements; what verify, inspect
and backup do with them."""

import json
import re
import time

from harness import Server, contains, equal, main, ok, run, test, until

# The text has 15 seconds. That is less than a sequence of commands takes on a busy machine.
LONG_S = 1500000
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def rows(cwd, db, *statements, create=(), code=0):
    lines = "\n".join(json.dumps(one) for one in statements)
    result = run("rows", db, *create, "-", cwd=cwd, stdin=lines)
    assert result.returncode == code, result.stdout + result.stderr
    if code:
        return result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


class Listing:
    """What inspect draws of a database's rows, its times as T1, T2, …, which each run() names."""

    def __init__(self, cwd, db, *create, at=()):
        self.cwd, self.db, self.times, self.at = cwd, db, {}, at
        rows(cwd, db, create=create)

    def cells(self):
        drawn = ok("inspect", f"rows:{self.db}", *self.at, cwd=self.cwd).stdout
        return [line.strip() for line in drawn.splitlines() if " -> " in line]

    def run(self, name, statement):
        known = {stamp for cell in self.cells() for stamp in STAMP.findall(cell)}
        rows(self.cwd, self.db, statement)
        new = {stamp for cell in self.cells() for stamp in STAMP.findall(cell)} - known
        assert len(new) <= 1, new
        for stamp in new:
            self.times[stamp] = name

    def named(self):
        """The cells; a hash and a time are written by the name that the text has for it."""
        names = {}
        got = []
        for cell in self.cells():
            cell = STAMP.sub(lambda found: self.times[found.group()], cell)
            for digits in re.findall(r"^(?:<s>)?\(0x([0-9a-f]{4})", cell):
                cell = cell.replace(f"(0x{digits}", "(" + names.setdefault(digits, "hash"))
            got.append(cell)
        return got

    def is_as(self, text, in_order=False):
        got = self.named()
        expected = [line.strip() for line in text.strip().splitlines()]
        if in_order:
            equal(got, expected)
        else:
            equal(sorted(got), sorted(expected))
        return got


@test
def rows_and_maps_are_drawn_as_the_text_draws_them(cwd):
    listing = Listing(cwd, "msgs", "--hash", "user_id", "--range", "msg_id", "--columns",
                      "msg,msg_props")
    listing.run("T1", {"insert": {"user_id": "user1", "msg_id": 10, "msg": "msg1",
                                  "msg_props": {"from": "a@b.com", "subject": "hello"}}})
    equal(listing.is_as("""
        (hash, 'user1', 10), liveness_column_id, T1 -> [NULL]
        (hash, 'user1', 10), msg_column_id, T1 -> 'msg1'
        (hash, 'user1', 10), msg_props_column_id, 'from', T1 -> 'a@b.com'
        (hash, 'user1', 10), msg_props_column_id, 'subject', T1 -> 'hello'
        """)[0], "(hash, 'user1', 10), liveness_column_id, T1 -> [NULL]")
    listing.run("T2", {"add": {"user_id": "user1", "msg_id": 10,
                               "msg_props": {"read_status": "true"}}})
    listing.run("T3", {"insert": {"user_id": "user1", "msg_id": 20, "msg": "msg2",
                                  "msg_props": {"from": "c@d.com", "subject": "bar"}}})
    equal(listing.is_as("""
        (hash, 'user1', 10), liveness_column_id, T1 -> [NULL]
        (hash, 'user1', 10), msg_column_id, T1 -> 'msg1'
        (hash, 'user1', 10), msg_props_column_id, 'from', T1 -> 'a@b.com'
        (hash, 'user1', 10), msg_props_column_id, 'read_status', T2 -> 'true'
        (hash, 'user1', 10), msg_props_column_id, 'subject', T1 -> 'hello'
        (hash, 'user1', 20), liveness_column_id, T3 -> [NULL]
        (hash, 'user1', 20), msg_column_id, T3 -> 'msg2'
        (hash, 'user1', 20), msg_props_column_id, 'from', T3 -> 'c@d.com'
        (hash, 'user1', 20), msg_props_column_id, 'subject', T3 -> 'bar'
        """), [STAMP.sub(lambda found: listing.times[found.group()],
                         re.sub(r"0x[0-9a-f]{4}", "hash", cell)) for cell in listing.cells()])
    # Deleted cells go at once, as in the text after a compaction.
    listing.run("T4", {"delete": {"user_id": "user1", "msg_id": 10}, "path": ["msg_props"]})
    second = """
        (hash, 'user1', 20), liveness_column_id, T3 -> [NULL]
        (hash, 'user1', 20), msg_column_id, T3 -> 'msg2'
        (hash, 'user1', 20), msg_props_column_id, 'from', T3 -> 'c@d.com'
        (hash, 'user1', 20), msg_props_column_id, 'subject', T3 -> 'bar'
        """
    listing.is_as("""
        (hash, 'user1', 10), liveness_column_id, T1 -> [NULL]
        (hash, 'user1', 10), msg_column_id, T1 -> 'msg1'
        """ + second.lstrip("\n"))
    listing.run("T5", {"delete": {"user_id": "user1", "msg_id": 10}})
    listing.is_as(second)


@test
def what_was_deleted_is_struck_out_as_in_the_text(cwd):
    listing = Listing(cwd, "msgs", "--hash", "user_id", "--range", "msg_id", "--columns",
                      "msg,msg_props", at=("--at", "now"))
    rows(cwd, "msgs", {"history": 3600})
    listing.run("T1", {"insert": {"user_id": "user1", "msg_id": 10, "msg": "msg1",
                                  "msg_props": {"from": "a@b.com", "subject": "hello"}}})
    listing.run("T2", {"add": {"user_id": "user1", "msg_id": 10,
                               "msg_props": {"read_status": "true"}}})
    listing.run("T3", {"insert": {"user_id": "user1", "msg_id": 20, "msg": "msg2",
                                  "msg_props": {"from": "c@d.com", "subject": "bar"}}})
    listing.run("T4", {"delete": {"user_id": "user1", "msg_id": 10}, "path": ["msg_props"]})
    second = """
        (hash, 'user1', 20), liveness_column_id, T3 -> [NULL]
        (hash, 'user1', 20), msg_column_id, T3 -> 'msg2'
        (hash, 'user1', 20), msg_props_column_id, 'from', T3 -> 'c@d.com'
        (hash, 'user1', 20), msg_props_column_id, 'subject', T3 -> 'bar'
        """.lstrip("\n")
    props = """
        (hash, 'user1', 10), msg_props_column_id, T4 -> [DELETE]
        <s>(hash, 'user1', 10), msg_props_column_id, 'from', T1 -> 'a@b.com'</s>
        <s>(hash, 'user1', 10), msg_props_column_id, 'read_status', T2 -> 'true'</s>
        <s>(hash, 'user1', 10), msg_props_column_id, 'subject', T1 -> 'hello'</s>
        """.lstrip("\n").rstrip(" ")
    fourth = """
        (hash, 'user1', 10), liveness_column_id, T1 -> [NULL]
        (hash, 'user1', 10), msg_column_id, T1 -> 'msg1'
        """.rstrip(" ") + props + second
    listing.is_as(fourth, in_order=True)
    after_four = time.time()
    listing.run("T5", {"delete": {"user_id": "user1", "msg_id": 10}})
    listing.is_as("""
        (hash, 'user1', 10), T5 -> [DELETE]
        <s>(hash, 'user1', 10), liveness_column_id, T1 -> [NULL]</s>
        <s>(hash, 'user1', 10), msg_column_id, T1 -> 'msg1'</s>
        """.rstrip(" ") + props + second, in_order=True)
    # And as it was before.
    listing.at = ("--at", f"{after_four:.6f}")
    listing.is_as(fourth, in_order=True)
    # What was overwritten is struck out, and what replaces a map needs no marker.
    listing.at = ("--at", "now")
    listing.run("T6", {"update": {"user_id": "user1", "msg_id": 20, "msg": "msg3",
                                  "msg_props": "none"}})
    assert [line.strip() for line in """
        (hash, 'user1', 20), msg_column_id, T6 -> 'msg3'
        <s>(hash, 'user1', 20), msg_column_id, T3 -> 'msg2'</s>
        (hash, 'user1', 20), msg_props_column_id, T6 -> 'none'
        <s>(hash, 'user1', 20), msg_props_column_id, 'from', T3 -> 'c@d.com'</s>
        <s>(hash, 'user1', 20), msg_props_column_id, 'subject', T3 -> 'bar'</s>
        """.strip().splitlines()] == listing.named()[-5:], listing.named()


@test
def what_was_deleted_of_collections_is_listed_as_in_the_text(cwd):
    listing = Listing(cwd, "redis", "--hash", "key", at=("--at", "now"))
    rows(cwd, "redis", {"history": 3600})
    listing.run("T1", {"set": {"key": "key1"}, "value": "value1", "ttl": LONG_S})
    listing.run("T2", {"hset": {"key": "key2"}, "members": {"subkey1": "value1"}})
    listing.run("T3", {"hset": {"key": "key2"}, "members": {"subkey2": "value2"}})
    listing.run("T4", {"delete": {"key": "key2"}})
    listing.run("T5", {"hset": {"key": "key2"}, "members": {"subkey1": "new_val1",
                                                            "subkey3": "value3"}})
    listing.run("T6", {"sadd": {"key": "key3"}, "members": ["value4", "value5"]})
    listing.run("T7", {"sadd": {"key": "key3"}, "members": ["value6"]})
    listing.is_as("""
        (hash, 'key1'), T1 -> (TTL = 1500000) 'value1'
        (hash, 'key2'), T5 -> [Redis-Hash-Type]
        (hash, 'key2'), T4 -> [DELETE]
        <s>(hash, 'key2'), T2 -> [Redis-Hash-Type]</s>
        (hash, 'key2'), 'subkey1', T5 -> 'new_val1'
        <s>(hash, 'key2'), 'subkey1', T2 -> 'value1'</s>
        <s>(hash, 'key2'), 'subkey2', T3 -> 'value2'</s>
        (hash, 'key2'), 'subkey3', T5 -> 'value3'
        (hash, 'key3'), T6 -> [Redis-Set-Type]
        (hash, 'key3'), 'value4', T6 -> [NULL]
        (hash, 'key3'), 'value5', T6 -> [NULL]
        (hash, 'key3'), 'value6', T7 -> [NULL]
        """)


@test
def moments_are_written_in_many_ways(cwd):
    rows(cwd, "t", {"history": 3600}, {"insert": {"id": 1, "c": "before"}},
         create=("--hash", "id", "--columns", "c"))
    us = rows(cwd, "t", {"get": {"id": 1}})[0]["written_us"]
    while time.time() * 1e6 < us + 20000:
        pass
    rows(cwd, "t", {"update": {"id": 1, "c": "after"}})
    ms = us // 1000 + 1
    clock = time.gmtime(ms // 1000)
    here = time.strftime("%H:%M:%S", clock) + f".{ms % 1000:03}"
    for at in (ms * 1000, f"{ms * 1000}us", f"{ms}ms", f"{ms // 1000}.{ms % 1000:03}",
               f"{ms // 1000}.{ms % 1000:03}s", time.strftime("%Y-%m-%dT", clock) + here,
               time.strftime("%Y-%m-%dT", clock) + here + "Z", here, here + "Z"):
        row, = rows(cwd, "t", {"get": {"id": 1}, "at": at})
        equal((at, row["leaves"][0]["value"]), (at, "before"))
        contains(ok("dump", "rows:t", "--at", str(at), cwd=cwd).stdout, '"before"')
    for at in ("now", "-0", "-0s", f"{int(time.time()) + 1}s"):
        row, = rows(cwd, "t", {"get": {"id": 1}, "at": at})
        equal((at, row["leaves"][0]["value"]), (at, "after"))
    contains(rows(cwd, "t", {"get": {"id": 1}, "at": "-3000"}, code=1), "begins at")
    contains(rows(cwd, "t", {"get": {"id": 1}, "at": time.strftime("%Y-%m-%d", clock)}, code=1),
             "begins at")
    for at in ("", "5x", "5.5ms", "-", "-now", "25:00", "12:00x", "2026-13-01", "1e9", "s"):
        contains(rows(cwd, "t", {"get": {"id": 1}, "at": at}, code=1), "at is no moment")
        equal(run("inspect", "rows:t", f"--at={at}", cwd=cwd).returncode, 2)


@test
def times_to_live_are_drawn_as_the_text_draws_them(cwd):
    listing = Listing(cwd, "page_views", "--hash", "page_id", "--columns", "views,category")
    listing.run("T1", {"insert": {"page_id": "abc.com", "views": 10}, "ttl": 86400})
    listing.run("T2", {"update": {"page_id": "abc.com", "category": "news"}, "ttl": 3600})
    got = listing.is_as("""
        (hash, 'abc.com'), liveness_column_id, T1 -> (TTL = 86400) [NULL]
        (hash, 'abc.com'), views_column_id, T1 -> (TTL = 86400) 10
        (hash, 'abc.com'), category_column_id, T2 -> (TTL = 3600) 'news'
        """)
    equal([cell.split(", ")[2] for cell in got],
          ["liveness_column_id", "views_column_id", "category_column_id"])


@test
def values_and_collections_are_drawn_as_the_text_draws_them(cwd):
    listing = Listing(cwd, "redis", "--hash", "key")
    listing.run("T1", {"set": {"key": "key1"}, "value": "value1", "ttl": LONG_S})
    listing.run("T2", {"hset": {"key": "key2"}, "members": {"subkey1": "value1"}})
    listing.run("T3", {"hset": {"key": "key2"}, "members": {"subkey2": "value2"}})
    listing.is_as("""
        (hash, 'key1'), T1 -> (TTL = 1500000) 'value1'
        (hash, 'key2'), T2 -> [Redis-Hash-Type]
        (hash, 'key2'), 'subkey1', T2 -> 'value1'
        (hash, 'key2'), 'subkey2', T3 -> 'value2'
        """)
    listing.run("T4", {"delete": {"key": "key2"}})
    listing.run("T5", {"hset": {"key": "key2"}, "members": {"subkey1": "new_val1",
                                                            "subkey3": "value3"}})
    listing.run("T6", {"sadd": {"key": "key3"}, "members": ["value4", "value5"]})
    listing.run("T7", {"sadd": {"key": "key3"}, "members": ["value6"]})
    listing.is_as("""
        (hash, 'key1'), T1 -> (TTL = 1500000) 'value1'
        (hash, 'key2'), T5 -> [Redis-Hash-Type]
        (hash, 'key2'), 'subkey1', T5 -> 'new_val1'
        (hash, 'key2'), 'subkey3', T5 -> 'value3'
        (hash, 'key3'), T6 -> [Redis-Set-Type]
        (hash, 'key3'), 'value4', T6 -> [NULL]
        (hash, 'key3'), 'value5', T6 -> [NULL]
        (hash, 'key3'), 'value6', T7 -> [NULL]
        """)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


VALUES = [None, True, False, 0, -5, 2 ** 63 - 1, 1.5, "", "it's", {"$int8": -128}, {"$int16": 300},
          {"$int32": -70000}, {"$varint": str(2 ** 200)}, {"$varint": "-7"}, {"$decimal": "15E-1"},
          {"$decimal": "-1E1000"}, {"$float": 0.5}, {"$double": "NaN"}, {"$float": "-Infinity"},
          {"$blob": "0x00ff"}, {"$uuid": "123e4567-e89b-42d3-a456-426614174000"},
          {"$timeuuid": "123e4567-e89b-12d3-a456-426614174000"}, {"$timestamp": 1700000000123},
          {"$date": -1}, {"$time": 86399999999999}, {"$inet": "10.0.0.1"}, {"$inet": "2001:db8::1"}]


@test
def every_type_is_a_value_and_a_part_of_a_key(cwd):
    rows(cwd, "types", create=("--hash", "h", "--range", "up, down desc", "--columns", "v, m"))
    keys = [value for value in VALUES if value is not None]
    rows(cwd, "types", *[{"update": {"h": 1, "up": value, "down": value, "v": value,
                                     "m": {"$map": [[value, {"x": value}]]}}} for value in keys])
    # A number of a key is read back by its value alone.
    plain = {json.dumps({"$int8": -128}): -128, json.dumps({"$int16": 300}): 300,
             json.dumps({"$int32": -70000}): -70000, json.dumps({"$varint": "-7"}): -7}
    for value in keys:
        known = plain.get(json.dumps(value), value)
        row, = rows(cwd, "types", {"get": {"h": 1, "up": value, "down": value}})
        equal(row["key"], {"h": 1, "up": known, "down": known})
        equal([(leaf["path"], leaf["value"]) for leaf in row["leaves"]],
              [(["v"], value), (["m", known, "x"], value)])
    equal(len(rows(cwd, "types", {"scan": {"h": 1}})), len(keys))
    numbers = [row["key"]["up"] for row in rows(cwd, "types", {"scan": {"h": 1}})
               if isinstance(row["key"]["up"], int) and not isinstance(row["key"]["up"], bool)]
    equal(numbers, sorted(numbers))
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def rows_that_expire_are_hidden_and_a_server_removes_them(cwd):
    rows(cwd, "t", {"insert": {"id": 1, "c": "x"}, "ttl": 1}, {"insert": {"id": 2, "c": "y"}},
         create=("--hash", "id", "--columns", "c"))
    until(lambda: rows(cwd, "t", {"get": {"id": 1}}) == [None])
    equal(len(rows(cwd, "t", {"scan": None})), 1)
    contains(ok("inspect", "rows:t", cwd=cwd).stdout, "'x'")
    with Server(cwd):
        until(lambda: "'x'" not in ok("inspect", "rows:t", cwd=cwd).stdout)
    contains(ok("inspect", "rows:t", cwd=cwd).stdout, "'y'")
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def the_past_is_read_in_five_commands(cwd):
    rows(cwd, "t", {"history": 3600}, {"insert": {"id": 1, "c": "before"}},
         create=("--hash", "id", "--columns", "c"))
    row, = rows(cwd, "t", {"get": {"id": 1}})
    before = row["written_us"]
    rows(cwd, "t", {"update": {"id": 1, "c": "after"}}, {"insert": {"id": 2, "c": "new"}})
    rows(cwd, "t", {"delete": {"id": 1}})
    equal(rows(cwd, "t", {"get": {"id": 1}}), [None])
    row, = rows(cwd, "t", {"get": {"id": 1}, "at": before})
    equal(row["leaves"][0]["value"], "before")
    equal(len(rows(cwd, "t", {"scan": None, "at": before})), 1)
    drawn = ok("inspect", "rows:t", "--at", str(before), cwd=cwd).stdout
    contains(drawn, "c_column_id")
    contains(drawn, "'before'")
    assert "'new'" not in drawn, drawn
    contains(rows(cwd, "t", {"get": {"id": 1}, "at": "2001-01-01T00:00:00Z"}, code=1),
             'the history of the database "t" begins at')
    contains(rows(cwd, "t", {"get": {"id": 1}, "at": "noon"}, code=1), "at is no moment")
    contains(rows(cwd, "t", {"delete": {"id": 1}, "at": before}, code=1), "cannot be changed")
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def ranges_of_rows_are_read_and_deleted(cwd):
    rows(cwd, "t", *[{"insert": {"h": h, "day": day, "n": n}} for h in "ab" for day in range(3)
                     for n in range(3)],
         create=("--hash", "h", "--range", "day desc, n", "--columns", "c"))

    def scan(**edges):
        return [(row["key"]["day"], row["key"]["n"])
                for row in rows(cwd, "t", {"scan": {"h": "a"}, **edges})]

    every = [(day, n) for day in (2, 1, 0) for n in range(3)]
    equal(scan(), every)
    equal(scan(**{"from": [1]}), every[3:])
    equal(scan(after=[1]), every[6:])
    equal(scan(**{"from": [2, 1], "to": [1, 1]}), every[1:5])
    equal(scan(after=[2, 1], before=[1, 1]), every[2:4])
    equal(scan(before=[1]), every[:3])
    equal(scan(**{"from": [0], "to": [2]}), [])
    rows(cwd, "t", {"delete_rows": {"h": "a"}, "after": [2, 1], "to": [1]})
    equal(scan(), every[:2] + every[6:])
    rows(cwd, "t", {"history": 3600}, {"update": {"h": "a", "day": 2, "n": 0, "c": 1}})
    before = rows(cwd, "t", {"get": {"h": "a", "day": 2, "n": 0}})[0]["leaves"][0]["written_us"]
    rows(cwd, "t", {"delete_rows": {"h": "a"}})
    equal(scan(), [])
    equal(scan(at=before), every[:2] + every[6:])
    equal(len(rows(cwd, "t", {"scan": None})), 9)
    for statement, reason in (
            ({"scan": None, "from": [1]}, '"from" goes with hash components'),
            ({"scan": {"h": "a"}, "from": [1], "after": [1]}, "exclude each other"),
            ({"scan": {"h": "a"}, "from": [1, 2, 3]}, "has 2 range components"),
            ({"delete_rows": None}, "delete_rows needs the hash components")):
        contains(rows(cwd, "t", statement, code=1), reason)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_default_is_changed_and_columns_are_added_later(cwd):
    rows(cwd, "t", {"insert": {"id": 1, "c": "x"}}, {"insert": {"id": 2, "c": "y"}, "ttl": 0},
         create=("--hash", "id", "--columns", "c"))
    rows(cwd, "t", {"default_ttl": 86400})
    written = rows(cwd, "t", {"get": {"id": 1}})[0]["written_us"]
    equal(rows(cwd, "t", {"get": {"id": 1}})[0]["expires_ms"], written // 1000 + 86400000)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")
    rows(cwd, "t", {"default_ttl": 1})
    until(lambda: rows(cwd, "t", {"get": {"id": 1}}) == [None])
    with Server(cwd):
        until(lambda: "'x'" not in ok("inspect", "rows:t", cwd=cwd).stdout)
    equal([row["key"]["id"] for row in rows(cwd, "t", {"scan": None})], [2])
    rows(cwd, "t", {"default_ttl": 0}, {"add_columns": ["d", "e"]},
         {"insert": {"id": 3, "c": 1, "e": {"k": 2}}})
    equal([leaf["path"] for leaf in rows(cwd, "t", {"get": {"id": 3}})[0]["leaves"]],
          [["c"], ["e", "k"]])
    contains(rows(cwd, "t", {"add_columns": ["f", "d"]}, code=1), 'two columns are called "d"')
    contains(rows(cwd, "t", {"add_columns": ["id"]}, code=1), 'two columns are called "id"')
    contains(rows(cwd, "t", {"add_columns": [""]}, code=1), "TIMED_NAME_BYTES")
    contains(rows(cwd, "t", {"default_ttl": -1}, code=1), "default_ttl is a whole number")
    rows(cwd, "values", create=("--hash", "key"))
    contains(rows(cwd, "values", {"add_columns": ["c"]}, code=1), "the database has no columns")
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def the_past_moves_along(cwd):
    rows(cwd, "t", {"history": 3600}, {"insert": {"id": 1, "c": "before"}, "ttl": 86400},
         create=("--hash", "id", "--columns", "c"))
    before = rows(cwd, "t", {"get": {"id": 1}})[0]["written_us"]
    rows(cwd, "t", {"update": {"id": 1, "c": "after"}})
    target = ("--store", "embedded:other")
    rows(cwd, "first", {"insert": {"id": 1, "c": 1}}, create=("--hash", "id", "--columns", "c",
                                                               *target))
    here = ok("inspect", "rows:t", cwd=cwd).stdout
    contains(ok("move", "--from", "embedded:./data", "--to", "embedded:other", "rows:t",
                cwd=cwd).stdout, '"rows:t" moved from ')
    there = ok("inspect", "rows:t", *target, cwd=cwd).stdout
    equal(there.split("\n", 1)[1], here.split("\n", 1)[1])
    equal(run("inspect", "rows:t", cwd=cwd).returncode, 1)
    row, = rows(cwd, "t", {"get": {"id": 1}, "at": before}, create=target)
    equal(row["leaves"][0]["value"], "before")
    contains(ok("inspect", "rows:t", "--at", str(before), *target, cwd=cwd).stdout, "'before'")
    rows(cwd, "t", {"update": {"id": 1, "c": "since"}}, create=target)
    row, = rows(cwd, "t", {"get": {"id": 1}}, create=target)
    assert row["leaves"][0]["written_us"] > before
    contains(ok("verify", *target, cwd=cwd).stdout, " 0 findings")
    contains(ok("verify", "rows:t", *target, cwd=cwd).stdout, "1 databases, 1 documents, ")
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


def dumped(cwd, db, *options):
    return ok("dump", db, "--quiet", *options, cwd=cwd).stdout


def goes_round(cwd, db, *target):
    """What is dumped of a database is loaded into another store, and dumped as it was."""
    text = dumped(cwd, db)
    contains(ok("load", db, "-", *target, cwd=cwd, stdin=text).stdout, f" loaded into {db} in ")
    equal(dumped(cwd, db, *target), text)
    contains(ok("verify", *target, cwd=cwd).stdout, " 0 findings")
    return text


@test
def a_dump_of_rows_keeps_types_times_and_expiry(cwd):
    target = ("--store", "embedded:other")
    rows(cwd, "types", create=("--hash", "h", "--range", "up, down desc", "--columns", "v, m",
                               "--ttl", "86400"))
    keys = [value for value in VALUES if value is not None]
    rows(cwd, "types", *[{"update": {"h": 1, "up": value, "down": value, "v": value,
                                     "m": {"$map": [[value, {"x": value}]]}}} for value in keys])
    rows(cwd, "types", {"insert": {"h": 2, "up": 1, "down": 1, "v": {"$double": 10.0}}, "ttl": 50},
         {"insert": {"h": 3, "up": 1, "down": 1}, "ttl": 0}, {"history": 3600},
         {"add": {"h": 3, "up": 1, "down": 1, "m": {f"k{n:04}": n for n in range(1500)}}})
    text = goes_round(cwd, "rows:types", *target)
    lines = [json.loads(line) for line in text.splitlines()]
    equal((lines[0]["frond"], lines[0]["ttl_ms"], lines[0]["history_seconds"]),
          ("rows", 86400000, 3600))
    equal([line for line in lines if line.get("more")][0]["key"], {"h": 3, "up": 1, "down": 1})
    here = rows(cwd, "types", {"scan": None})
    equal(rows(cwd, "types", {"scan": None}, create=target), here)
    own, = [row for row in here if row["key"]["h"] == 3]
    assert "expires_ms" not in own, own["expires_ms"]
    # A row that is there is replaced, and the rest stays.
    rows(cwd, "types", {"update": {"h": 3, "up": 1, "down": 1, "v": "gone again"}},
         {"insert": {"h": 4, "up": 1, "down": 1}}, create=target)
    ok("load", "rows:types", "-", *target, cwd=cwd, stdin=text)
    equal([row for row in rows(cwd, "types", {"scan": None}, create=target)
           if row["key"]["h"] != 4], here)


@test
def a_dump_of_collections_and_of_the_past(cwd):
    target = ("--store", "embedded:other")
    rows(cwd, "c", {"history": 3600}, {"set": {"key": "v"}, "value": {"$int8": 5}, "ttl": 99},
         {"hset": {"key": "h"}, "members": {"a": 1, "b": "x"}, "ttl": 50},
         {"hset": {"key": "h"}, "members": {"c": 2}},
         {"sadd": {"key": "s"}, "members": [1, "two", {"$uuid": "123e4567-e89b-42d3-a456-426614174000"}]},
         create=("--hash", "key"))
    text = goes_round(cwd, "rows:c", *target)
    before = max(cell["written_us"] for line in map(json.loads, text.splitlines())
                 for cell in (line, *line.get("leaves", ())) if "written_us" in cell)
    rows(cwd, "c", {"delete": {"key": "h"}}, {"set": {"key": "new"}, "value": 1})
    assert dumped(cwd, "rows:c") != text
    equal(dumped(cwd, "rows:c", "--at", str(before)), text)


@test
def a_dump_that_makes_no_sense_is_refused_with_the_line(cwd):
    rows(cwd, "t", {"insert": {"id": 1, "c": 1}}, create=("--hash", "id", "--columns", "c"))
    head, row = dumped(cwd, "rows:t").splitlines()
    target = ("--store", "embedded:other")
    for text, reason in (
            (row, "there is no database rows:new, and no line before that describes it"),
            (head.replace('"rows"', '"redis"'), "this is no dump of such a database"),
            (head.replace('"format":1', '"format":2'), "a newer frond has written this dump"),
            (head + "\n" + row.replace('"id":', '"x":'), 'the component "id" of the key is missing'),
            (head + "\n" + row.replace('"inserted"', '"hash"'), 'no row here can have this "type"'),
            (head + "\n" + row.replace('"c"', '"d"'), 'there is no column "d"'),
            # A line is told where it stands in the file, whatever blank ones are before it.
            (head + "\n\n\n" + row + "\n \n{", "standard input:6: "),
            (head + "\n{", "standard input:2: ")):
        result = run("load", "rows:new", "-", *target, cwd=cwd, stdin=text)
        equal(result.returncode, 1)
        contains(result.stderr, reason)
    # What was loaded is not told to be loaded again.
    result = run("load", "rows:new", "-", "--batch", "1", *target, cwd=cwd, stdin=f"{head}\n\n{row}\n\n{{")
    contains(result.stderr, "standard input:5: ")
    contains(result.stderr, "nothing from line 5 on was loaded")
    equal(run("load", "rows:new", "-", "--no-create", *target, cwd=cwd, stdin="").returncode, 0)
    result = run("load", "rows:t", "-", cwd=cwd, stdin=head.replace('["c"]', '["c","d"]'))
    contains(result.stderr, "look different from those of the dump")
    for args in (("dump", "rows:t", "--revs"), ("dump", "docs", "--at", "5"),
                 ("dump", "rows:t", "--at", "noon"), ("load", "rows:t", "--update"),
                 ("load", "rows:t", "--id", "c")):
        equal(run(*args, cwd=cwd).returncode, 2)
    equal(run("dump", "rows:none", cwd=cwd).returncode, 1)


@test
def statements_that_make_no_sense_are_refused_with_the_line(cwd):
    rows(cwd, "t", {"insert": {"id": 1, "c": 1}}, create=("--hash", "id", "--columns", "c"))
    for statement, reason in (
            ({"insert": {"c": 1}}, 'the component "id" of the key is missing'),
            ({"update": {"id": 1, "x": 1}}, 'there is no column "x"'),
            ({"get": {"id": 1, "c": 1}}, '"c" is no component of the key'),
            ({"get": {"id": None}}, "cannot be part of a key"),
            ({"set": {"id": 1}, "value": 1}, "the database is a table"),
            ({"insert": {"id": 1}, "ttl": -1}, "ttl is a whole number"),
            ({"update": {"id": 1, "c": {"$int8": 200}}}, "200 is no integer of 8 bits"),
            ({"update": {"id": 1, "c": {"$inet": "x"}}}, "x is no internet address"),
            ({"update": {"id": 1, "c": {"$colour": 1}}}, 'there is no type "$colour"'),
            ({"insert": {"id": "x" * 9900}}, "TIMED_KEY_BYTES"),
            ({"update": {"id": 1, "c": "x" * 90001}}, "TIMED_VALUE_BYTES"),
            ({"nonsense": 1}, "there is no such statement")):
        error = rows(cwd, "t", {"insert": {"id": 2, "c": 2}}, statement, code=1)
        contains(error, "-:2: ")
        contains(error, reason)
    equal(len(rows(cwd, "t", {"scan": None})), 2)
    contains(rows(cwd, "none", {"scan": None}, code=1), 'no database of rows "none"')
    contains(rows(cwd, "t", create=("--hash", "id"), code=1), "already exists")
    contains(rows(cwd, "b/d", create=("--hash", "id"), code=1), "no database of rows can be called")
    contains(rows(cwd, "u", create=("--hash", "id", "--columns", "id"), code=1), 'called "id"')
    equal(run("inspect", "rows:none", cwd=cwd).returncode, 1)


@test
def rows_live_beside_documents_and_are_backed_up(cwd):
    ok("load", "docs", "-", cwd=cwd, stdin='{"_id": "a"}')
    rows(cwd, "docs", {"insert": {"id": 1, "c": 1}}, create=("--hash", "id", "--columns", "c"))
    with Server(cwd) as server:
        equal(server.request("GET", "/_all_dbs")[1], ["docs"])
    drawn = ok("inspect", cwd=cwd).stdout
    contains(drawn, 'database "rows:docs", prefix (2), rows')
    contains(drawn, ", 1), c_column_id, ")
    ok("backup", "backups", cwd=cwd)
    ok("restore", "backups", "--store", "embedded:other", cwd=cwd)
    equal(ok("inspect", "rows:docs", "--store", "embedded:other", cwd=cwd).stdout,
          ok("inspect", "rows:docs", cwd=cwd).stdout)


main()
