#!/usr/bin/env python3
"""Tables by the commands: dump and load of all types, statics, collections, user types, counters, write times and
expiry, of random tables, too; move, backup, restore, also of the past and of indexes; salvage."""

import json
import random
import re
import shutil

from damaged import files, flip
from harness import contains, equal, main, ok, run, seed, test
from tables_made import (EVERYTHING, KEYSPACE, PAST_TABLES, QUERIES, TIME_ID, Cluster, Door, InvalidRequest, look_at_past,
                         make_everything, make_past, whole)

TABLES = 6
ROWS = 40


def dump(cwd, db, store="data", *options):
    return ok("dump", f"table:{db}", "--quiet", "--store", f"embedded:{store}", *options, cwd=cwd).stdout


def load(cwd, db, text, store="copy", *options):
    return ok("load", f"table:{db}", "--quiet", "--store", f"embedded:{store}", *options, cwd=cwd, stdin=text)


def there_and_back(cwd, dbs, store="data"):
    """Dumps each table, loads it into an empty store, and dumps that: byte by byte the same."""
    dumps = {db: dump(cwd, db, store) for db in dbs}
    shutil.rmtree(cwd / "copy", ignore_errors=True)
    for db, text in dumps.items():
        load(cwd, db, text, "copy", "--batch", "7")
        for got, expected in zip(dump(cwd, db, "copy").splitlines(), text.splitlines()):
            equal(got, expected)
        assert dump(cwd, db, "copy") == text
    whole(cwd, "copy")
    return dumps


def seen(door):
    return [[repr(row) for row in door(text)] for text in QUERIES]


@test
def all_that_a_table_has_comes_back(cwd):
    with Door(cwd) as door:
        make_everything(door)
        before = seen(door)
    dumps = there_and_back(cwd, EVERYTHING)
    header = json.loads(dumps["ks.everything"].splitlines()[0])
    equal([t["name"] for t in header["types"]], ["address", "person"])
    contains(header["keyspace"]["replication"], "'3'")
    with Door(cwd, "copy") as door:
        equal(seen(door), before)
        ttl = dict(door("SELECT k, TTL(t) FROM ks.everything WHERE k = 1003"))[1003]
        assert 90000 < ttl <= 100000, ttl
        equal(dict(door("SELECT k, TTL(v) FROM ks.living"))["never"], None)
        assert 800000 < dict(door("SELECT k, TTL(v) FROM ks.living"))["default"] <= 864000
        equal(door("SELECT st FROM ks.everything WHERE k = 1001"), [("alone",)])
        # Elements keep their places: who extends the list does so at its ends.
        door(f"UPDATE ks.everything SET l = l + [77] WHERE k = 1000 AND c = {TIME_ID}")
        door(f"UPDATE ks.everything SET l = [66] + l WHERE k = 1000 AND c = {TIME_ID}")
        equal(door("SELECT l FROM ks.everything WHERE k = 1000")[0][0], [66, 2, 1, 0, 3, 1, 3, 0, 1, 2, 77])
        # A default that changes counts for what was dumped without an expiry of its own.
        door("ALTER TABLE ks.living WITH default_time_to_live = 1000")
        assert dict(door("SELECT k, TTL(v) FROM ks.living"))["default"] <= 1000
        door("UPDATE ks.counts SET a = a + 100 WHERE k = 0 AND c = 'x'")
        equal(door("SELECT a, b FROM ks.counts WHERE k = 0"), [(106, -21)])


@test
def a_load_replaces_rows_and_makes_what_is_missing(cwd):
    with Door(cwd) as door:
        make_everything(door)
    text = dump(cwd, "ks.everything")
    load(cwd, "other.copy", text)
    with Door(cwd, "copy") as door:
        equal(len(door("SELECT k FROM other.copy")), len(text.splitlines()) - 2)
        door("INSERT INTO other.copy (k, c, a, l) VALUES (0, now(), 'more', [1])")
        door(f"INSERT INTO other.copy (k, c, t, l) VALUES (0, {TIME_ID}, 'changed', [1])")
        door("UPDATE other.copy SET sm[9] = 'nine' WHERE k = 1000")
    load(cwd, "other.copy", text)
    load(cwd, "other.copy", dump(cwd, "ks.everything"))
    again = dump(cwd, "other.copy", "copy").splitlines()
    equal([line for line in again if '"more"' not in line][1:], text.splitlines()[1:])
    equal(len(again), len(text.splitlines()) + 1)
    # Counters are set, and not added to once more.
    counts = dump(cwd, "ks.counts")
    load(cwd, "ks.counts", counts)
    load(cwd, "ks.counts", counts)
    equal(dump(cwd, "ks.counts", "copy"), counts)


@test
def what_does_not_fit_is_refused_by_its_line(cwd):
    with Door(cwd) as door:
        make_everything(door)
    lines = dump(cwd, "ks.everything").splitlines()

    def refused(text, db="ks.everything"):
        result = run("load", f"table:{db}", "--store", "embedded:copy", cwd=cwd, stdin=text)
        equal(result.returncode, 1)
        return result.stderr

    contains(refused("\n".join(lines[1:])), "no line before that describes it")
    contains(refused(dump(cwd, "ks.counts").splitlines()[0].replace('"table"', '"rows"')), "no dump of such a database")
    load(cwd, "ks.everything", "\n".join(lines[:3]))
    row = '{"key":{"k":7,"c":{"$timeuuid":"' + TIME_ID + '"}},"inserted":true,"cells":[%s]}'
    for cell, why in (('{"column":"b","value":"x"}', 'the column "b" is of the type bigint'),
                      ('{"column":"a","value":"ü"}', 'the column "a" is of the type ascii'),
                      ('{"column":"nope","value":1}', 'there is no column "nope"'),
                      ('{"column":"k","value":1}', 'there is no column "k" outside of the key'),
                      ('{"column":"b"}', 'of the type bigint'), ('{"column":"s","value":32768}', "of the type smallint"),
                      ('{"column":"fl","value":{"$blob":"0x0000000100"}}', "of the type frozen<list<text>>"),
                      ('{"column":"p","element":3,"value":"x"}', "of the type person"),
                      ('{"column":"l","element":1,"value":1}', "cannot be changed in this way"),
                      ('{"column":"st","value":"x"}', "in such rows")):
        contains(refused(row % cell), why)
    contains(refused(row % '{"column":"du","value":{"$duration":"1mo2d-3ns"}}'), "is no duration")
    load(cwd, "ks.everything", row % '{"column":"v","value":{"$varint":"-0x000007"}}')
    contains(dump(cwd, "ks.everything", "copy"), '{"$varint":"-7"}')
    contains(refused(row.replace('"k":7', '"k":"x"') % ""), 'the column "k" is of the type int')
    contains(refused(row.replace('"k":7', '"k":2147483648') % ""), 'the column "k" is of the type int')
    contains(refused(row.replace('"key"', '"token":1,"key"') % ""), "the token of this key is 1634052884888577606")
    contains(refused('{"key":{"c":1,"k":1},"cells":[]}'), 'the component 1 of the key is "k"')
    contains(refused('{"key":{},"cells":[]}'), "a key has 2 components, and a partition's 1")
    contains(refused(lines[0].replace('"bigint"', '"int"')), "has other columns")
    load(cwd, "ks.counts", dump(cwd, "ks.counts"))
    counts = dump(cwd, "ks.counts").splitlines()
    contains(refused(counts[1].replace('"cells"', '"more":true,"cells"'), "ks.counts"), "one line")
    contains(refused(lines[0].replace('["street","text"]', '["road","text"]').replace("replication", "other"), "ks.third"),
             'the type "address" of the keyspace "ks" has other fields there')
    whole(cwd, "copy")


@test
def long_rows_go_on_in_other_lines(cwd):
    with Door(cwd) as door:
        door(KEYSPACE.format("ks"))
        door("CREATE TABLE ks.t (k int PRIMARY KEY, m map<int, text>, b blob)")
        for n in range(25):
            door("UPDATE ks.t SET m = m + %s WHERE k = 1", ({i: "x" * 20 for i in range(n * 100, n * 100 + 100)},))
        door("INSERT INTO ks.t (k, b) VALUES (2, %s)", (b"\x01" * 80000,))
    text = there_and_back(cwd, ["ks.t"])["ks.t"]
    equal(text.count('"more":true'), 2)
    # The load goes on where it has ended: the lines of one row are not asked to come together.
    lines = text.splitlines()
    shutil.rmtree(cwd / "copy")
    load(cwd, "ks.t", "\n".join(lines[:3]))
    load(cwd, "ks.t", "\n".join(lines[3:]))
    equal(dump(cwd, "ks.t", "copy"), text)


TYPES = {
    "int": lambda r: str(r.randint(-2**31, 2**31 - 1)), "bigint": lambda r: str(r.randint(-2**63, 2**63 - 1)),
    "text": lambda r: "'" + "".join(r.choice("ab''\"\\é\U0001f33f ").replace("'", "''") for _ in range(r.randint(0, 9))) + "'",
    "blob": lambda r: "0x" + "".join(r.choice("0123456789abcdef") for _ in range(2 * r.randint(0, 6))),
    "boolean": lambda r: r.choice(("true", "false")), "double": lambda r: repr(r.uniform(-1, 1) * 10.0 ** r.randint(-300, 300)),
    "float": lambda r: repr(r.uniform(-1, 1)), "decimal": lambda r: f"{r.randint(-10**6, 10**6)}e{r.randint(-9, 9)}",
    "varint": lambda r: str(r.randint(-10**30, 10**30)), "tinyint": lambda r: str(r.randint(-128, 127)),
    "date": lambda r: str(r.randint(0, 2**32 - 1)), "timestamp": lambda r: str(r.randint(-10**13, 10**13)),
    "time": lambda r: str(r.randint(0, 86399999999999)), "inet": lambda r: f"'{r.randint(0, 255)}.1.2.{r.randint(0, 255)}'",
    "uuid": lambda r: f"{r.getrandbits(32):08x}-0000-4000-8000-{r.getrandbits(48):012x}",
}


def drawn_type(r, depth=0):
    """A type with how to write a value of it; frozen unless it is a column's."""
    shape = r.choice(("native", "native", "list", "set", "map", "tuple")) if depth < 2 else "native"
    if shape == "native":
        name = r.choice(list(TYPES))
        return name, TYPES[name]
    parts = [drawn_type(r, depth + 1) for _ in range({"list": 1, "set": 1, "map": 2, "tuple": r.randint(1, 3)}[shape])]
    name = f"{shape}<{', '.join(part[0] for part in parts)}>"
    if depth or shape == "tuple" or r.random() < 0.3:
        name = f"frozen<{name}>"

    def value(r):
        many = range(r.randint(0, 3))
        if shape == "tuple":
            return "(" + ", ".join(write(r) for _, write in parts) + ")"
        if shape == "map":
            return "{" + ", ".join(f"{parts[0][1](r)}: {parts[1][1](r)}" for _ in many) + "}"
        inside = ", ".join(parts[0][1](r) for _ in many)
        return f"[{inside}]" if shape == "list" else f"{{{inside}}}"
    return name, value


def frozen(drawn):
    name, value = drawn
    return (name if "<" not in name or name.startswith("frozen<") else f"frozen<{name}>"), value


@test
def random_tables_come_back(cwd):
    r = random.Random(seed(0))
    dbs = []
    with Door(cwd) as door:
        door(KEYSPACE.format("ks"))
        for n in range(TABLES):
            hashes, ranges = r.randint(1, 3), r.randint(0, 3)
            key = {f"k{i}": frozen(drawn_type(r)) for i in range(hashes + ranges)}
            statics = {f"s{i}": drawn_type(r) for i in range(r.randint(0, 2) if ranges else 0)}
            regular = {f"v{i}": drawn_type(r) for i in range(r.randint(0, 5))}
            names = list(key)
            order = ", ".join(f"{c} {r.choice(('ASC', 'DESC'))}" for c in names[hashes:])
            columns = [f"{c} {t}" for c, (t, _) in key.items()] + [f"{c} {t} static" for c, (t, _) in statics.items()]
            columns += [f"{c} {t}" for c, (t, _) in regular.items()]
            door(f"CREATE TABLE ks.t{n} ({', '.join(columns)}, PRIMARY KEY (({', '.join(names[:hashes])})"
                 f"{''.join(', ' + c for c in names[hashes:])}))"
                 + (f" WITH CLUSTERING ORDER BY ({order})" if order else ""))
            dbs.append(f"ks.t{n}")
            partitions = [[key[c][1](r) for c in names[:hashes]] for _ in range(5)]
            for _ in range(ROWS):
                values = {c: v for c, v in zip(names, r.choice(partitions))}
                values |= {c: key[c][1](r) for c in names[hashes:]}
                for c, (_, write) in {**statics, **regular}.items():
                    if r.random() < 0.6:
                        values[c] = write(r)
                ttl = f" USING TTL {r.randint(10**5, 10**6)}" if r.random() < 0.3 else ""
                try:
                    door(f"INSERT INTO ks.t{n} ({', '.join(values)}) VALUES ({', '.join(values.values())}){ttl}")
                except Exception as error:
                    # An empty key, or one that is too long.
                    assert "Key may not be empty" in str(error) or "Key length" in str(error), (error, values)
        before = {db: [repr(row) for row in door(f"SELECT * FROM {db}")] for db in dbs}
    there_and_back(cwd, dbs)
    with Door(cwd, "copy") as door:
        for db in dbs:
            equal([repr(row) for row in door(f"SELECT * FROM {db}")], before[db])


@test
def a_move_takes_the_types_and_the_keyspace_along(cwd):
    with Door(cwd) as door:
        make_everything(door)
        before = seen(door)
    dumps = {db: dump(cwd, db) for db in EVERYTHING}
    with Door(cwd, "moved") as door:
        door(KEYSPACE.format("ks"))
        door("CREATE TYPE ks.address (road text)")
    move = ("move", "--quiet", "--from", "embedded:data", "--to", "embedded:moved")
    result = run(*move, "table:ks.everything", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, 'the type "address" of the keyspace "ks" has other fields there')
    with Door(cwd, "moved") as door:
        door("DROP TYPE ks.address")
    for db in EVERYTHING:
        ok(*move, f"table:{db}", cwd=cwd)
        equal(dump(cwd, db, "moved").splitlines(), dumps[db].splitlines())
        equal(run("dump", f"table:{db}", cwd=cwd).returncode, 1)
    whole(cwd, "moved")
    whole(cwd, "data")
    with Door(cwd, "moved") as door:
        equal(seen(door), before)


@test
def backup_and_restore_keep_tables(cwd):
    with Door(cwd) as door:
        make_everything(door)
        before = seen(door)
    ok("backup", str(cwd / "saved"), "--store", "embedded:data", cwd=cwd)
    with Door(cwd) as door:
        door("DROP KEYSPACE ks")
    ok("restore", str(cwd / "saved"), "--store", "embedded:restored", cwd=cwd)
    whole(cwd, "restored")
    there_and_back(cwd, EVERYTHING, "restored")
    with Door(cwd, "restored") as door:
        equal(seen(door), before)


@test
def the_past_indexes_and_timestamps_are_moved_and_restored(cwd):
    with Door(cwd) as door:
        questions = make_past(door)
        expected = [[repr(row) for row in door(text)] for text in questions]
    ok("backup", str(cwd / "saved"), "--store", "embedded:data", cwd=cwd)
    ok("restore", str(cwd / "saved"), "--store", "embedded:restored", cwd=cwd)
    for db in PAST_TABLES:
        ok("move", "--quiet", "--from", "embedded:data", "--to", "embedded:moved", f"table:{db}", cwd=cwd)
    whole(cwd, "data")
    for store in ("restored", "moved"):
        look_at_past(cwd, store, questions, expected)


def rows_of(text):
    rows = (json.loads(line) for line in text.splitlines()[1:])
    return {json.dumps(row["key"]): {json.dumps(cell) for cell in row["cells"]} for row in rows}


@test
def salvage_keeps_what_can_be_read_of_tables(cwd):
    with Door(cwd) as door:
        make_everything(door)
        door("CREATE TABLE ks.many (k int PRIMARY KEY, v text)")
        insert = door.session.prepare("INSERT INTO ks.many (k, v) VALUES (?, ?)")
        for k in range(500):
            door.session.execute(insert, (k, f"value {k} " * 20))
    ok("compact", "--store", "embedded:data", cwd=cwd)
    dbs = (*EVERYTHING, "ks.many")
    good = {db: dump(cwd, db) for db in dbs}
    result = ok("salvage", "--quiet", "embedded:data", "embedded:new", cwd=cwd)
    contains(result.stdout, " 0 losses")
    for db in dbs:
        equal(dump(cwd, db, "new").splitlines(), good[db].splitlines())
    tables = files(cwd / "data", ".sst")
    path = max(tables, key=lambda one: one.stat().st_size)
    for place in range(4):
        shutil.rmtree(cwd / "bad", ignore_errors=True)
        shutil.rmtree(cwd / "new", ignore_errors=True)
        shutil.copytree(cwd / "data", cwd / "bad")
        flip(cwd / "bad" / path.relative_to(cwd / "data"), path.stat().st_size * (2 * place + 1) // 10)
        result = run("salvage", "--quiet", "embedded:bad", "embedded:new", cwd=cwd)
        equal((result.returncode, result.stderr), (1, ""))
        verified = run("verify", "--quiet", "--store", "embedded:new", cwd=cwd)
        equal((verified.returncode, verified.stderr), (0, ""))
        left = run("dump", "table:ks.many", "--quiet", "--store", "embedded:new", cwd=cwd)
        # A row at the edge of what is lost may have lost its first pairs or its last ones.
        known = rows_of(good["ks.many"])
        for key, cells in rows_of(left.stdout).items():
            assert cells <= known[key], (key, cells, known[key])


@test
def indexes_come_with_their_table(cwd):
    statements = ("CREATE INDEX by_v ON ks.t (v)",
                  "CREATE INDEX two ON ks.t (a, v) WITH CLUSTERING ORDER BY (v DESC)",
                  "CREATE INDEX parts ON ks.t (entries(m))", "CREATE INDEX ON ks.t (c)", "CREATE INDEX ON ks.t (s)",
                  "CREATE INDEX paths ON ks.t (a, j->'b'->>'d', j->7)", "CREATE INDEX ON ks.t (j->>'b') INCLUDE (v, a)",
                  "CREATE UNIQUE INDEX one ON ks.t (u) WHERE a = 3 AND v IS NOT NULL AND c > 1")
    with Door(cwd) as s:
        s(KEYSPACE.format("ks"))
        s("CREATE TABLE ks.t (k int, c int, v text, a int, m map<text, int>, u bigint, s text static, "
          "j jsonb, PRIMARY KEY (k, c))")
        for statement in statements:
            s(statement)
        for n in range(30):
            s("INSERT INTO ks.t (k, c, v, a, m, u, s, j) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
              (n % 4, n, f"v{n % 3}", n % 5, {"x": n % 2}, n, f"s{n % 4}", '{"b": {"d": "%d"}}' % (n % 3)))
        described = [row[3] for row in s("DESCRIBE TABLE ks.t")]
    there_and_back(cwd, ["ks.t"])
    with Door(cwd, "copy") as s:
        equal([row[3] for row in s("DESCRIBE TABLE ks.t")], described)
        equal(sorted(row[0] for row in s("SELECT c FROM ks.t WHERE v = 'v1'")), list(range(1, 30, 3)))
        equal(sorted(row[0] for row in s("SELECT c FROM ks.t WHERE m['x'] = 1")), list(range(1, 30, 2)))
        equal(sorted(s("SELECT c, v, a FROM ks.t WHERE j->>'b' = '{\"d\":\"0\"}'")), [(n, "v0", n % 5) for n in range(0, 30, 3)])
        equal(sorted(row[0] for row in s("SELECT c FROM ks.t WHERE a = 1 AND j->'b'->>'d' = '2'")), [11, 26])
        try:
            s("INSERT INTO ks.t (k, c, v, a, u) VALUES (9, 99, 'x', 3, 13)")
            raise AssertionError("a unique index let another row have the same value")
        except InvalidRequest as error:
            contains(str(error), "unique index one")
    whole(cwd, "copy")
    text = dump(cwd, "ks.t")
    for wrong in (text.replace('"part":"entries"', '"part":"halves"'), text.replace('"operator":">"', '"operator":"~"'),
                  text.replace('"include":[{"column":"v"}', '"include":[{"column":"m"}'),
                  text.replace('"path":["b"]', '"path":[]'), text.replace('"path":["b"]', '"path":[1]'),
                  text.replace('"column":"a"},{"column":"j"', '"column":"j"},{"column":"a"'),
                  text.replace('"column":"u"', '"column":"none"', 1)):
        shutil.rmtree(cwd / "other", ignore_errors=True)
        result = run("load", "table:ks.t", "--store", "embedded:other", cwd=cwd, stdin=wrong)
        assert result.returncode and "index" in result.stderr, result.stderr


main("needs python3-cassandra" if Cluster is None else None)
