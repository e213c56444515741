#!/usr/bin/env python3
"""Rows of tables as CSV, in the format of cqlsh's COPY: every type there and back, what Python's csv reads, headers,
columns, mistakes with the numbers of their lines."""

import csv
import io
import shutil
import time

from harness import contains, equal, main, ok, run, test
from tables_made import EVERYTHING, KEYSPACE, QUERIES, TIME_ID, Cluster, Door, make_everything, whole

COPY = ("--format", "csv")
DIALECT = {"escapechar": "\\", "doublequote": False}  # cqlsh's


def csv_of(cwd, db, store="data", *options):
    ok("dump", f"table:{db}", "--quiet", "--store", f"embedded:{store}", "--output", "out.csv", *COPY, *options, cwd=cwd)
    return (cwd / "out.csv").read_bytes().decode()


def load_csv(cwd, db, text, store="data", *options):
    return run("load", f"table:{db}", "--store", f"embedded:{store}", *COPY, *options, cwd=cwd, stdin=text)


def refused(cwd, db, text, *options):
    result = load_csv(cwd, db, text, "data", *options)
    equal(result.returncode, 1)
    return result.stderr


def records(text):
    return list(csv.reader(io.StringIO(text, newline=""), **DIALECT))


def seen(door):
    """What SELECT shows; no write times, which CSV does not have."""
    return [[repr(row) for row in door(text)] for text in QUERIES if "WRITETIME" not in text]


@test
def all_types_come_back(cwd):
    with Door(cwd) as door:
        make_everything(door)
        before = seen(door)
    shutil.copytree(cwd / "data", cwd / "copy")
    dumps = {db: csv_of(cwd, db) for db in EVERYTHING}
    with Door(cwd, "copy") as door:
        for db in EVERYTHING:
            name = '"Keys"' if db.endswith("Keys") else db.split(".")[1]
            door(f"TRUNCATE ks.{name}")
    for db, text in dumps.items():
        ok("load", f"table:{db}", "--quiet", "--store", "embedded:copy", *COPY, "--batch", "7", cwd=cwd, stdin=text)
        equal(csv_of(cwd, db, "copy"), text)
        # Python's csv, which cqlsh writes and reads with, sees the same values.
        out = io.StringIO(newline="")
        csv.writer(out, **DIALECT).writerows(records(text))
        equal(records(out.getvalue()), records(text))
    whole(cwd, "copy")
    with Door(cwd, "copy") as door:
        # What an UPDATE has made is a row of an INSERT now, which nothing of this shows.
        equal(seen(door), before)


@test
def values_are_as_cqlsh_writes_them(cwd):
    with Door(cwd) as door:
        make_everything(door)
    rows = {row["k"]: row for row in csv.DictReader(
        io.StringIO(csv_of(cwd, "ks.everything", "data", "--header"), newline=""), **DIALECT)}
    both = rows["1000"]
    expected = {
        "c": TIME_ID, "a": "plain", "b": "-9223372036854775808", "bl": "0x00ff", "bo": "True", "da": "-5877641-06-23",
        "de": "1E+400", "d": "3.0", "du": "1y3d4h", "f": "Infinity", "i": "10.0.0.1", "s": "-32768",
        "t": "a \"quoted\" \\ text, ünïcode \U0001f33f\n", "ti": "23:59:59.999999999",
        "ts": "2026-11-26 12:00:00.123+0000", "y": "-128", "u": "00000000-0000-0000-0000-000000000000", "v": "0",
        "l": "[2, 1, 0, 3, 1, 3, 0, 1, 2]", "m": "{'': [], 'x': [1.5, 2.0], 'y': []}", "n": "{'::1', '127.0.0.1'}",
        "fl": "['b', 'a', 'b']", "tu": "(1, )", "p": "{name: 'ann', nick: 'a', home: }",
        "fp": "{name: , nick: , home: {street: 'x', no: 3}}", "st": "of all", "sm": "{1: 'one', 2: 'two'}",
    }
    equal({name: both[name] for name in expected}, expected)
    equal([name for name in rows["5"] if rows["5"][name]], ["k", "c", "de"])
    # Static columns without a row have no clustering key.
    equal({name: value for name, value in rows["1001"].items() if value}, {"k": "1001", "st": "alone"})
    text = csv_of(cwd, "ks.everything", "data", "--columns", "k,t")
    contains(text, '1000,"a \\"quoted\\" \\\\ text, ünïcode \U0001f33f\n"\r\n')
    # An empty text is in quotes, a null is nothing.
    contains(text, '\r\n19,""\r\n')
    contains(text, "\r\n0,\r\n")


TABLE = "CREATE TABLE ks.t (k int, c text, s int STATIC, v text, l list<int>, n int, PRIMARY KEY (k, c))"


def make_table(cwd):
    with Door(cwd) as door:
        door(KEYSPACE.format("ks"))
        door(TABLE)
        door("INSERT INTO ks.t (k, c, v, l, n) VALUES (1, 'a', 'old', [1, 2], 7)")


def rows_of(cwd, query="SELECT k, c, s, v, l, n FROM ks.t"):
    with Door(cwd) as door:
        return sorted(door(query), key=repr)


@test
def what_is_loaded_is_inserted(cwd):
    make_table(cwd)
    # All columns in the order of SELECT *: k, c, s, l, n, v.
    result = load_csv(cwd, "ks.t", '1,a,5,[3],,""\r\n2,"b\nB",6,,9,"x, \\"y\\" ""z"" \\\\"\r\n\r\n3,,8,,,\n')
    equal(result.returncode, 0)
    contains(result.stdout, "3 lines loaded into table:ks.t")
    equal(rows_of(cwd), [(1, "a", 5, "", [3], None), (2, "b\nB", 6, 'x, "y" "z" \\', None, 9),
                         (3, None, 8, None, None, None)])
    # Columns that are not named stay.
    equal(load_csv(cwd, "ks.t", "v,c,k\nnew,a,1\n", "data", "--header").returncode, 0)
    equal(load_csv(cwd, "ks.t", "1,c,4", "data", "--columns", "k,c,n").returncode, 0)
    equal(rows_of(cwd)[:2], [(1, "a", 5, "new", [3], None), (1, "c", 5, None, None, 4)])
    # A header is only passed over where the command has the columns.
    equal(load_csv(cwd, "ks.t", "x,y,z\n1,d,4", "data", "--columns", "k,c,n", "--header").returncode, 0)
    equal(rows_of(cwd, "SELECT n FROM ks.t WHERE k = 1 AND c = 'd'"), [(4,)])


@test
def counters_are_added_to(cwd):
    with Door(cwd) as door:
        door(KEYSPACE.format("ks"))
        door("CREATE TABLE ks.t (k int PRIMARY KEY, a counter, b counter)")
        door("UPDATE ks.t SET a = a + 1 WHERE k = 1")
    equal(csv_of(cwd, "ks.t"), "1,1,\r\n")
    equal(load_csv(cwd, "ks.t", "1,5,-2\n2,,3\n").returncode, 0)
    equal(rows_of(cwd, "SELECT k, a, b FROM ks.t"), [(1, 6, -2), (2, None, 3)])


@test
def files_with_headers_each(cwd):
    make_table(cwd)
    (cwd / "a.csv").write_text("k,c,n\n1,x,1\n")
    (cwd / "b.csv").write_text("n,k,c\n2,1,y\n")
    ok("load", "table:ks.t", "a.csv", "b.csv", "--store", "embedded:data", *COPY, "--header", cwd=cwd)
    equal(rows_of(cwd, "SELECT c, n FROM ks.t WHERE k = 1"), [("a", 7), ("x", 1), ("y", 2)])


@test
def mistakes_are_told_by_their_lines(cwd):
    make_table(cwd)
    columns = ("--columns", "k,c,n")
    told = refused(cwd, "ks.t", '1,"x\ny",1\n2,z,two\n', *columns)
    contains(told, "standard input:3: the column \"n\": Unable to make int from 'two'")
    contains(told, "nothing from line 1 on was loaded")
    # What came before stays, and the line to go on from is told.
    told = refused(cwd, "ks.t", "1,p,1\n1,q,2\n\n1,r\n", *columns, "--batch", "1")
    contains(told, "standard input:4: 2 values for 3 columns; nothing from line 4 on was loaded")
    equal(rows_of(cwd, "SELECT c FROM ks.t WHERE k = 1"), [("a",), ("p",), ("q",)])
    for text, why in (("1,\n", "2 values for 3 columns"), (",c,1\n", 'the column "k" of the key has no value'),
                      ("1,,1\n", 'the clustering key has no value, and "n", which is no static column, has one'),
                      ('1,"c"d,1\n', "goes on behind its closing quote"), ('1,"c,1\n', "the value 2 is not closed"),
                      ("1,c\r,1\n", "has a carriage return outside of quotes"),
                      ("," * 1001, "a record has more than 1000 values (CSV_FIELDS)")):
        contains(refused(cwd, "ks.t", text, *columns), why)
    contains(refused(cwd, "ks.t", "1,c,4,[1,2],5,x\n"), "7 values for 6 columns")
    contains(refused(cwd, "ks.t", '1,c,4,"[1,2",5,x\n'), "the column \"l\": Unable to make list<int> from '[1,2'")
    contains(refused(cwd, "ks.t", "k,c,other\n", "--header"), 'standard input:1: the table has no column "other"')
    contains(refused(cwd, "ks.t", "", "--columns", "k,c,k"), 'the column "k" is named twice')
    contains(refused(cwd, "ks.missing", ""), "there is no table table:ks.missing; CSV does not tell what it is like")
    for command in ("dump", "load"):
        for more in (("couch", *COPY), ("table:ks.t", "--header"), ("table:ks.t", "--columns", "k"), ("redis:0", *COPY)):
            equal(run(command, *more, "--store", "embedded:data", cwd=cwd).returncode, 2)
    equal(run("load", "--rdb", "dump.rdb", "--header", cwd=cwd).returncode, 2)


@test
def the_past_is_dumped_too(cwd):
    make_table(cwd)
    with Door(cwd) as door:
        door("ALTER TABLE ks.t WITH history_seconds = 1000")
        door("UPDATE ks.t SET v = 'then' WHERE k = 1 AND c = 'a'")
        moment = door("SELECT toUnixTimestamp(now()) FROM system.local")[0][0]
        time.sleep(0.1)
        door("UPDATE ks.t SET v = 'now' WHERE k = 1 AND c = 'a'")
    equal(csv_of(cwd, "ks.t", "data", "--columns", "v"), "now\r\n")
    equal(csv_of(cwd, "ks.t", "data", "--columns", "v", "--at", f"{(moment + 20) / 1000}"), "then\r\n")


main("needs python3-cassandra" if Cluster is None else None)
