#!/usr/bin/env python3
"""The protocol for rows: by the library of its clients (rows_client.c), and byte by byte."""

import base64
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

from damaged import files, flip, noise
from harness import Server, contains, equal, main, ok, run, test, until
from rows_server import Door, Failure, Session

Session.client = os.path.abspath(sys.argv[2])
INSERT, INSERT_NEW, UPDATE, PUT, REPLACE, DELETE, DELETE_ANY = range(1, 8)


def shop(session):
    session.do("schema_create", "shop")
    session.do("create", "shop", "books", "id", "int4", "range", "title", "text", "regular",
               "price", "numeric", "regular")
    session.do("use", "shop", "books")


def put_books(session, count):
    session.write(PUT, ["title", "price"], *(([n], [f"book {n}", f"{n}.50"]) for n in range(count)))


def metrics(server):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(server.url + "/_node/_local/_prometheus").read().decode()


# ---- Rows ----

@test
def rows_are_written_and_read(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        equal(c.write(INSERT, ["title", "price"], ([3], ["c", "3.10"]), ([1], ["a", "\\n"]), ([2], ["b", "-0.00"])),
              ["1", "1", "1"])
        equal(c.scan("id", "title", "price", "|"), ["1\ta\t\\n", "2\tb\t-0.00", "3\tc\t3.10"])
        equal(c.scan("title", "|", "reverse", "rows", 2, "pages", 1), ["c", "b"])
        equal(c.scan("id", "|", "from", ">=", 2, "|"), ["2", "3"])
        equal(c.scan("id", "|", "from", ">", 1, "|", "to", "<", 3), ["2"])
        equal(c.scan("title", "|", "eq", 3), ["c"])
        equal(c.do("get", "title", "|", 2, "|", 9, "|", 1), ["b", "-", "a"])
        failure = c.fails("23505", "write", INSERT, "title", "|", 7, "|", "x", "|", 2, "|", "y")
        equal(failure.row, 1)
        equal(c.scan("id", "|", "eq", 7), [])
        equal(c.write(INSERT_NEW, ["title"], ([2], ["y"]), ([4], ["d"])), ["0", "1"])
        equal(c.write(UPDATE, ["title", "price"], ([2], ["y", "\\a"]), ([9], ["z", "1"])), ["1", "0"])
        equal(c.do("get", "title", "price", "|", 2), ["y\t-0.00"])
        equal(c.write(REPLACE, ["title"], ([3], ["only"])), ["1"])
        equal(c.do("get", "title", "price", "|", 3), ["only\t\\n"])
        equal(c.do("write", DELETE, "|", 1, "|", "|", 1), ["1", "0"])
        equal(c.do("write", DELETE_ANY, "|", 2, "|", "|", 99), ["1", "1"])
        equal(c.scan("id", "|"), ["3", "4"])


@test
def a_unix_socket_is_a_way_in(cwd):
    path = cwd / "rows.sock"
    with Server(cwd, "--rows", path, env={"FROND_ADMIN": "root:secret"}) as server:
        server.port = "none"
        with Session(server, "root", "secret", host=path) as c:
            shop(c)
            # More than its buffers hold, both ways.
            text = "é" * 100000
            c.write(PUT, ["title"], *(([n], [f"{n}{text}"]) for n in range(40)))
            equal([row[:2] for row in c.scan("title", "|")], [f"{n}é"[:2] for n in range(40)])
            with Session(server, "root", "secret", host=path) as other:
                other.do("use", "shop", "books")
                other.do("begin")
                equal(other.scan("id", "|", "eq", 7), ["7"])
                equal(c.do("write", DELETE, "|", 7), ["1"])
                other.do("write", UPDATE, "title", "|", 7, "|", "x")
                other.fails("40001", "commit")
            # A login is one, as everywhere.
            contains(server.read_log(), f'event=login name="root" method=password left_out=0 user="root" from=unix-{os.getuid()}:')
            for said in (("root", "wrong"), ("nobody", "secret")):
                c.fails("28P01", "open", path, "none", *said)
        with Session(server, host=path, *("root", "secret")) as c:
            c.fails("08001", "open", cwd / "other.sock", "none", "root", "secret")
            c.fails("08001", "open", "/" + "p" * 200, "none", "root", "secret")


@test
def a_row_stays_when_its_last_column_becomes_null(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        c.write(INSERT, ["title"], ([1], ["a"]))
        c.write(UPDATE, ["title"], ([1], ["\\n"]))
        equal(c.do("get", "id", "title", "|", 1), ["1\t\\n"])


ORDERS = {
    "bool": ["0", "1"],
    "int2": ["-32768", "-1", "0", "7"],
    "int8": ["-9223372036854775808", "-1", "0", "9223372036854775807"],
    "float8": ["-inf", "-1.5", "0", "2.25", "inf", "nan"],
    "numeric": ["-Infinity", "-100", "-99.5", "-0.01", "0", "0.001", "12", "12.5", "Infinity", "NaN"],
    "text": ["", "A", "a", "aa", "\u00e4", "\U0001f600"],
    "bytes": ["x:", "x:00", "x:0001", "x:01", "x:ff"],
    "date": ["-2147483648", "-1", "0", "2147483647"],
    "time": ["0", "1", "86400000000"],
    "timetz": ["x:0000000000000000fffff1f0", "x:000000000000000000000000"],
    "timestamp": ["-9223372036854775808", "-1", "0", "1", "9223372036854775807"],
    "timestamptz": ["-9223372036854775808", "123456", "9223372036854775807"],
    "interval": ["x:0000000000000000ffffffff00000000", "x:00000000000000000000001d00000000",
                 "x:00000000000000000000001e00000000"],
    "uuid": ["x:00000000000010008000000000000000", "x:ff000000000010008000000000000000"],
    "inet": ["x:04080a000000", "x:04200a000001", "x:068000000000000000000000000000000001"],
    "macaddr": ["x:000000000001", "x:ff0000000000"],
    "macaddr8": ["x:0000000000000001", "x:ff00000000000000"],
    "bits": ["x:00000000", "x:0000000100", "x:0000000180", "x:0000000280"],
}


@test
def keys_of_every_kind_are_in_the_order_of_postgresql(cwd):
    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        for kind, values in ORDERS.items():
            for role in ("range", "rangedesc", "hash"):
                c.do("create", "s", f"{kind}_{role}", "k", kind, role, "v", kind, "regular")
                c.do("use", "s", f"{kind}_{role}")
                shuffled = random.sample(values, len(values))
                c.write(INSERT, ["v"], *(([v], [v]) for v in shuffled))
                got = c.scan("k", "v", "|")
                for line in got:
                    equal(*line.split("\t"))
                keys = [line.split("\t")[0] for line in got]
                if role == "hash":
                    equal(sorted(keys), sorted(values))
                else:
                    equal(keys, values[::-1] if role == "rangedesc" else values)
                    equal(c.scan("k", "|", "eq", values[1]), [values[1]])
                equal(c.do("get", "v", "|", values[0]), [values[0]])
                told = c.do("describe", "s", f"{kind}_{role}")[0].split("\t")
                equal((told[1], told[3]), (kind, "descordered" if role == "rangedesc" else "ordered"))


@test
def what_equals_a_key_is_that_key(cwd):
    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        for kind, one, other, told in (("numeric", "1.00", "1", "1"),
                                       ("float8", "-0", "0", "0"),
                                       ("interval", "x:00000000000000000000000000000001",
                                        "x:00000000000000000000001e00000000", "x:00000000000000000000001e00000000")):
            c.do("create", "s", kind, "k", kind, "range")
            c.do("use", "s", kind)
            c.write(INSERT, [], ([one], []))
            c.fails("23505", "write", INSERT, "|", other)
            equal(c.scan("k", "|"), [told])


@test
def keys_of_several_columns_lie_in_ranges(cwd):
    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        c.do("create", "s", "t", "h", "text", "hash", "a", "int4", "range", "b", "int4", "rangedesc")
        c.do("use", "s", "t")
        c.write(INSERT, [], *(([h, a, b], []) for h in "xy" for a in range(3) for b in range(3)))
        equal(c.scan("a", "b", "|", "eq", "x", 1), ["1\t2", "1\t1", "1\t0"])
        equal(c.scan("a", "b", "|", "eq", "x", "|", "from", ">", 1, 1, "|", "to", "<=", 2, 1),
              ["1\t0", "2\t2", "2\t1"])
        equal(c.scan("a", "b", "|", "eq", "x", 2, "|", "from", ">=", 1, "|", "reverse"), ["2\t0", "2\t1"])
        equal(len(c.scan("h", "|")), 18)
        c.do("create", "s", "u", "g", "int4", "hash", "h", "int4", "hash", "a", "int4", "range")
        c.do("use", "s", "u")
        c.fails("0A000", "scan", "a", "|", "eq", 1)
        c.fails("42P16", "scan", "a", "|", "eq", 1, 2, 3, 4)
        c.fails("42P16", "get", "a", "|", 1, 2)
        c.fails("42P16", "write", PUT, "|", 1)


@test
def scans_filter_count_and_sum(cwd):
    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        c.do("create", "s", "t", "k", "int4", "range", "n", "int8", "regular", "d", "float8", "regular",
             "t", "text", "regular", "o", "other", "regular")
        c.do("use", "s", "t")
        rows = [(k, None if k % 5 == 0 else k * 10 ** 17, k / 4, f"t{k % 3}") for k in range(40)]
        c.write(PUT, ["n", "d", "t", "o"], *(([k], ["\\n" if n is None else n, d, t, "{}"]) for k, n, d, t in rows))
        some = [n for _, n, _, _ in rows if n is not None]
        equal(c.scan("n", "n", "n", "n", "d", "t", "|", "sums", 1, 2, 3, 4, 2, 4),
              [f"40\t{len(some)}\t{sum(some)}\t{min(some)}\t{max(some)}\t195\tt2"])
        equal(c.scan("|", "count"), ["40\t"])
        equal(c.scan("|", "count", "where", "n", "null"), ["8\t"])
        equal(c.scan("|", "count", "where", "n", "not", "where", "t", "=", "t1"),
              [f"{sum(n is not None and t == 't1' for _, n, _, t in rows)}\t"])
        equal(c.scan("k", "|", "where", "d", ">=", 9, "where", "d", "<", "9.5"), ["36", "37"])
        equal(c.scan("k", "|", "where", "k", ">", 37, "where", "k", "<=", 39), ["38", "39"])
        equal(c.scan("n", "|", "where", "k", "<", 0, "sums", 2), ["0\t\\n"])
        c.fails("0A000", "scan", "k", "|", "where", "o", "=", "{}")
        c.fails("0A000", "scan", "t", "|", "sums", 2)
        c.fails("0A000", "scan", "o", "|", "sums", 3)
        sampled = len(c.scan("k", "|", "sample", 2 ** 31))
        assert 2 <= sampled <= 38, sampled
        equal(c.scan("k", "|", "sample", 1), [])


def added(lines):
    """Groups of pages, counts and sums of the same key added up; of one that came back, it fails."""
    groups = {}
    for line in lines:
        a, b, *numbers = line.split("\t")
        assert (a, b) not in groups or list(groups)[-1] == (a, b), f"{a} {b} has come twice"
        groups[a, b] = [x + int(y) for x, y in zip(groups.get((a, b), [0, 0]), numbers)]
    return groups


@test
def sums_come_for_each_group_of_rows_that_lie_together(cwd):
    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        c.do("create", "s", "t", "a", "int4", "range", "b", "text", "range", "c", "int4", "range", "n", "int8", "regular")
        c.do("use", "s", "t")
        rows = [(i % 3, "xy"[i % 2], i, i * i) for i in range(60)]
        c.write(PUT, ["n"], *(([a, b, i], [n]) for a, b, i, n in rows))
        expected = {}
        for a, b, i, n in rows:
            one = expected.setdefault((str(a), b), [0, 0])
            one[0] += 1
            one[1] += n
        lines = c.scan("n", "|", "sums", 2, "groups", 2)
        equal(added(lines), expected)
        equal([line.split("\t")[:2] for line in lines], [[str(a), b] for a in range(3) for b in "xy"])
        # A page ends in the middle of a group, which goes on in the next one.
        for page in (("rows", 1), ("rows", 7), ("bytes", 1)):
            for order in ((), ("reverse",)):
                equal(added(c.scan("n", "|", "sums", 2, "groups", 2, *page, *order)), expected)
        equal(c.scan("n", "n", "|", "sums", 3, 4, "groups", 1, "where", "n", ">", 3000),
              [f"{a}\t{len(ns)}\t{min(ns)}\t{max(ns)}"
               for a in range(3) if (ns := [n for x, _, _, n in rows if x == a and n > 3000])])
        equal(c.scan("|", "count", "groups", 2, "eq", 1), ["1\tx\t10", "1\ty\t10"])
        equal(c.scan("|", "count", "groups", 1, "eq", 1, "y"), ["1\t10"])
        equal(len(c.scan("|", "count", "groups", 3)), 60)
        # A group without rows is none.
        equal(c.scan("|", "count", "groups", 1, "where", "n", "<", 0), [])
        c.fails("42P16", "scan", "|", "count", "groups", 4)
        c.fails("22023", "scan", "|", "count", "groups", 33)
        c.fails("22023", "scan", "n", "|", "groups", 1)
        c.do("create", "s", "u", "g", "int4", "hash", "h", "int4", "hash", "a", "int4", "range", "n", "int4", "regular")
        c.do("use", "s", "u")
        c.write(PUT, ["n"], *(([g, h, a], [1]) for g in range(3) for h in range(3) for a in range(5)))
        c.fails("0A000", "scan", "|", "count", "groups", 1)
        equal(sorted(added(c.scan("n", "|", "sums", 2, "groups", 2, "rows", 4)).items()),
              [((str(g), str(h)), [5, 5]) for g in range(3) for h in range(3)])
        equal(sorted(c.scan("|", "count", "groups", 2)), [f"{g}\t{h}\t5" for g in range(3) for h in range(3)])


@test
def a_scan_goes_on_page_by_page(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        put_books(c, 500)
        lines = c.do("scan", "id", "|", "rows", 7)
        equal(lines[:-1], [str(n) for n in range(500)])
        equal(lines[-1], "pages 72")
        lines = c.do("scan", "id", "|", "rows", 100, "reverse")
        equal(lines[:-1], [str(n) for n in reversed(range(500))])
        lines = c.do("scan", "title", "|", "bytes", 1000, "pages", 1)
        contains(lines[-1], "more")
        assert 60 < len(lines) < 120, len(lines)


# ---- Schemas ----

@test
def tables_are_made_changed_and_deleted(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        equal(c.do("schemas"), ["shop"])
        equal(c.do("tables", "shop"), ["books"])
        equal(c.do("describe", "shop", "books"),
              ["id\tint4\trange\tordered\tint", "title\ttext\tregular\tordered\ttext",
               "price\tnumeric\tregular\tordered\t'frond.numeric'"])
        c.write(PUT, ["title", "price"], ([1], ["a", "1"]))
        c.do("alter", "shop", "books", "year", "int2", "regular", "|", "price", "|", "id", "nr")
        c.do("use", "shop", "books")
        c.write(PUT, ["year"], ([1], [1999]))
        equal(c.scan("nr", "title", "year", "|"), ["1\ta\t1999"])
        c.do("alter", "shop", "books", "price", "numeric", "regular", "|")
        c.do("use", "shop", "books")
        equal(c.scan("price", "|"), ["\\n"])
        c.do("empty", "shop", "books")
        equal(c.scan("nr", "|"), [])
        c.do("drop", "shop", "books")
        c.fails("42P01", "scan", "nr", "|")
        c.fails("42P01", "drop", "shop", "books")
        c.fails("3F000", "create", "none", "t", "k", "int4", "range")
        c.do("create", "shop", "books", "id", "int4", "range")
        failure = c.fails("0A000", "scan", "nr", "|")
        contains(failure.text, "made anew")
        c.fails("42P01", "describe", "shop", "none")
        c.fails("42P07", "create", "shop", "books", "id", "int4", "range")
        c.fails("42P06", "schema_create", "shop")
        c.do("schema_drop", "shop")
        c.fails("3F000", "schema_drop", "shop")
        equal(c.do("schemas"), [])


@test
def a_table_that_cannot_be_is_refused(cwd):
    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        for state, *columns in (("42P16",), ("42P16", "v", "int4", "regular"),
                                ("0A000", "k", "other", "range"), ("0A000", "k", "99", "range"),
                                ("42P16", "k", "int4", "range", "h", "int4", "hash"),
                                ("42P16", "k", "int4", "range", "k", "int4", "regular"),
                                ("42P16", "k", "int4", "hash", "v", "int4", "static"),
                                ("42P16", "frond_all", "int4", "range")):
            c.fails(state, "create", "s", "t", *columns)
        equal(c.do("tables", "s"), [])
        c.fails("22023", "create", "s", "no name", "k", "int4", "range")
        c.fails("22023", "schema_create", "no name")
        c.do("create", "s", "t", "k", "int4", "range")
        c.fails("42P16", "alter", "s", "t", "|", "k")
        c.fails("42703", "alter", "s", "t", "|", "|", "frond_all", "x")
        c.do("use", "s", "t")
        c.fails("42703", "scan", "nothing", "|")
        c.fails("22P03", "write", PUT, "|", "x:0000")


@test
def many_tables_are_listed_in_pages(cwd):
    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        for n in range(30):
            c.do("create", "s", f"t{n:02}", "k", "int4", "range")
        equal(c.do("tables", "s"), [f"t{n:02}" for n in range(30)])
        equal(c.do("tables", "s", "t27"), ["t28", "t29"])


# ---- Transactions ----

@test
def a_transaction_commits_all_or_nothing(cwd):
    with Door(cwd) as server, Session(server) as a, Session(server) as b:
        shop(a)
        b.do("use", "shop", "books")
        a.do("begin")
        put_books(a, 3)
        equal(len(a.scan("id", "|")), 3)
        equal(b.scan("id", "|"), [])
        assert int(a.do("commit")[0], 16) > 0
        equal(len(b.scan("id", "|")), 3)
        a.do("begin")
        a.do("write", DELETE, "|", 1)
        a.do("rollback")
        equal(len(b.scan("id", "|")), 3)
        equal(int(run_empty(a), 16), 0)
        a.fails("25P01", "commit")
        a.fails("25P01", "rollback")
        a.fails("25P01", "savepoint")
        a.do("begin", "read")
        a.fails("25001", "begin")
        a.fails("25006", "write", PUT, "|", 1)
        a.do("scan", "id", "|")
        a.do("rollback")
        a.do("begin", "read")
        a.fails("25006", "create", "shop", "t", "k", "int4", "range")
        a.do("rollback")


def run_empty(session):
    session.do("begin")
    return session.do("commit")[0]


@test
def begin_and_rollback_go_with_other_requests(cwd):
    with Door(cwd) as server, Session(server) as a, Session(server) as b:
        shop(a)
        b.do("use", "shop", "books")
        a.do("begin_later")
        equal(a.write(INSERT, ["title"], ([1], ["a"])), ["1"])
        equal(b.scan("id", "|"), [])
        a.do("rollback_later")
        equal(a.scan("id", "|"), [])
        a.do("begin_later")
        a.do("rollback")  # nothing has begun
        a.do("begin_later", "read")
        a.fails("25006", "write", INSERT, "title", "|", 1, "|", "x")
        a.do("rollback_later")
        a.do("rollback_later")  # there is none, which nobody hears
        a.do("begin_later")
        equal(a.write(INSERT, ["title"], ([2], ["b"])), ["1"])
        a.do("begin_later")
        # The BEGIN within a transaction fails, and what went with it is not told as done.
        equal(a.fails("25001", "get", "title", "|", 2).text[:5], "there")
        a.do("commit")
        equal(b.scan("id", "|"), ["2"])
        a.do("alive")


@test
def rows_that_are_written_later_go_with_the_next_request(cwd):
    with Door(cwd) as server, Session(server) as a, Session(server) as b:
        shop(a)
        b.do("use", "shop", "books")
        put_books(a, 2)
        a.do("begin_later")
        equal(a.do("write_later", UPDATE, "title", "|", 0, "|", "new"), [])
        equal(a.do("write_later", PUT, "title", "|", 7, "|", "seven"), [])
        equal(b.scan("title", "|"), ["book 0", "book 1"])
        equal(a.scan("title", "|"), ["new", "book 1", "seven"])
        a.do("write_later", PUT, "title", "|", 8, "|", "eight")
        a.do("commit")
        equal(b.scan("title", "|"), ["new", "book 1", "seven", "eight"])
        # The next request fails as they do, and the transaction with it.
        a.do("begin")
        a.do("write_later", PUT, "title", "|", 9, "|", "nine")
        a.do("write_later", INSERT, "title", "|", 7, "|", "again")
        equal(a.fails("23505", "commit").row, -1)
        equal(len(b.scan("title", "|")), 4)
        # What was rolled back before it was sent is forgotten.
        a.do("begin_later")
        a.do("write_later", PUT, "title", "|", 9, "|", "nine")
        a.do("rollback_later")
        a.do("begin")
        equal(a.do("savepoint"), ["1"])
        a.do("write_later", PUT, "title", "|", 9, "|", "nine")
        a.do("rollback_to", 1)
        a.do("commit")
        equal(len(b.scan("title", "|")), 4)


@test
def a_transaction_moves_on_while_what_it_has_read_is_as_it_was(cwd):
    with Door(cwd) as server, Session(server) as a, Session(server) as b:
        shop(a)
        b.do("use", "shop", "books")
        put_books(a, 3)
        a.fails("25P01", "refresh")
        a.do("begin")
        equal(a.do("get", "title", "|", 0), ["book 0"])
        a.write(UPDATE, ["title"], ([0], ["mine"]))
        b.write(UPDATE, ["title"], ([1], ["theirs"]))
        equal(a.do("refresh"), ["moved"])
        equal(a.scan("title", "|"), ["mine", "theirs", "book 2"])
        # Write times never go back: what it writes over a later row is what stays.
        b.write(PUT, ["title"], ([4], ["theirs"]))
        equal(a.do("refresh"), ["stays"])  # the scan has read where a row has come
        a.fails("40001", "commit")
        a.do("begin")
        equal(a.do("get", "title", "|", 0), ["book 0"])
        a.write(UPDATE, ["title"], ([0], ["mine"]))
        for n in range(3):
            b.write(UPDATE, ["title"], ([1], [f"theirs {n}"]))
        a.do("refresh_later")
        equal(a.do("get", "title", "|", 1), ["theirs 2"])
        a.write(UPDATE, ["title"], ([1], ["mine"]))
        a.do("commit")
        equal(b.scan("title", "|"), ["mine", "mine", "book 2", "theirs"])


@test
def nothing_is_done_behind_a_begin_that_fails(cwd):
    with Door(cwd) as server, Raw(server) as c:
        for end in (5, 6):  # COMMIT, ROLLBACK
            equal(c.state(4, b"\x09"), "08P01")
            equal(c.state(3), "25P02")
            equal(c.ask(end)[0], 129 if end == 5 else 128)
            equal(c.ask(3)[0], 128)
        equal(c.state(6), "25P01")


@test
def of_two_transactions_that_meet_one_fails_with_40001(cwd):
    with Door(cwd) as server, Session(server) as a, Session(server) as b:
        shop(a)
        b.do("use", "shop", "books")
        put_books(a, 2)
        for c, other in ((a, 1), (b, 0)):
            c.do("begin")
            equal(c.do("get", "title", "|", other), [f"book {other}"])
        a.write(UPDATE, ["title"], ([0], ["by a"]))
        b.write(UPDATE, ["title"], ([1], ["by b"]))
        a.do("commit")
        failure = b.fails("40001", "commit")
        contains(failure.text, "serialize")
        equal(a.scan("title", "|"), ["by a", "book 1"])
        b.do("begin")
        b.write(UPDATE, ["title"], ([1], ["by b"]))
        b.do("commit")
        equal(a.scan("title", "|"), ["by a", "by b"])


@test
def of_two_inserts_of_a_key_one_fails(cwd):
    with Door(cwd) as server, Session(server) as a, Session(server) as b:
        shop(a)
        b.do("use", "shop", "books")
        for c in (a, b):
            c.do("begin")
            c.write(INSERT, ["title"], ([1], ["x"]))
        a.do("commit")
        b.fails("40001", "commit")
        b.fails("23505", "write", INSERT, "title", "|", 1, "|", "y")


@test
def savepoints_bring_back_what_was(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        put_books(c, 3)
        c.do("begin")
        c.write(UPDATE, ["title"], ([0], ["kept"]))
        one, = c.do("savepoint")
        c.write(UPDATE, ["title"], ([0], ["gone"]), ([1], ["gone"]))
        c.do("write", DELETE, "|", 2)
        two, = c.do("savepoint")
        c.write(REPLACE, ["price"], ([1], ["9"]))
        c.write(INSERT, ["title"], ([7], ["new"]), ([2], ["again"]))
        c.do("rollback_to", two)
        equal(c.scan("id", "title", "price", "|"), ["0\tgone\t0.50", "1\tgone\t1.50"])
        c.write(INSERT, ["title"], ([8], ["eight"]))
        c.do("rollback_to", one)
        equal(c.scan("id", "title", "price", "|"), ["0\tkept\t0.50", "1\tbook 1\t1.50", "2\tbook 2\t2.50"])
        c.fails("3B001", "rollback_to", two)
        c.do("rollback")


@test
def a_failure_is_taken_back_by_a_savepoint(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        put_books(c, 1)
        c.do("begin")
        c.write(INSERT, ["title"], ([5], ["five"]))
        number, = c.do("savepoint")
        failure = c.fails("23505", "write", INSERT, "title", "|", 6, "|", "six", "|", 0, "|", "x")
        equal(failure.row, 1)
        c.fails("25P02", "scan", "id", "|")
        c.fails("25P02", "savepoint")
        c.do("rollback_to", number)
        equal(c.scan("id", "|"), ["0", "5"])
        equal(c.scan("|", "count"), ["2\t"])
        again, = c.do("savepoint")
        c.do("release", number)
        c.fails("3B001", "release", again)
        c.fails("3B001", "rollback_to", number)
        c.do("commit")
        equal(c.scan("id", "|"), ["0", "5"])
        c.do("begin")
        c.fails("22P03", "write", PUT, "|", "x:00")
        c.fails("25P02", "commit")
        c.fails("25P01", "rollback")


@test
def random_savepoints_are_as_a_dictionary_says(cwd):
    seed = int(os.environ.get("FROND_TEST_SEED", random.randrange(2 ** 32)))
    print(f"# FROND_TEST_SEED={seed}")
    r = random.Random(seed)
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        rows = {}
        for _ in range(12):
            now, saved = dict(rows), []
            c.do("begin")
            for _ in range(r.randrange(5, 25)):
                what, key = r.random(), r.randrange(6)
                if what < 0.2:
                    saved.append((c.do("savepoint")[0], dict(now)))
                elif what < 0.35 and saved:
                    at = r.randrange(len(saved))
                    c.do("rollback_to", saved[at][0])
                    now = dict(saved[at][1])
                    del saved[at + 1:]
                elif what < 0.42 and saved:
                    at = r.randrange(len(saved))
                    c.do("release", saved[at][0])
                    del saved[at:]
                elif what < 0.6:
                    equal(c.do("write", DELETE, "|", key), ["1" if key in now else "0"])
                    now.pop(key, None)
                elif what < 0.8:
                    title = f"t{r.randrange(100)}"
                    c.write(REPLACE, ["title"], ([key], [title]))
                    now[key] = (title, "\\n")
                else:
                    price = str(r.randrange(100))
                    c.write(PUT, ["price"], ([key], [price]))
                    now[key] = (now.get(key, ("\\n", ""))[0], price)
                equal(c.scan("id", "title", "price", "|"),
                      [f"{k}\t{t}\t{p}" for k, (t, p) in sorted(now.items())])
                equal(c.scan("|", "count"), [f"{len(now)}\t"])
            if r.random() < 0.3:
                c.do("rollback")
            else:
                c.do("commit")
                rows = now
            equal(c.scan("id", "title", "price", "|"),
                  [f"{k}\t{t}\t{p}" for k, (t, p) in sorted(rows.items())])
            equal(c.scan("|", "count"), [f"{len(rows)}\t"])
        equal(server.stop(), 0)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_store_is_sound_after_savepoints(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        put_books(c, 20)
        c.do("begin")
        number, = c.do("savepoint")
        c.write(REPLACE, ["title"], *(([n], ["x"]) for n in range(10, 30)))
        c.do("write", DELETE_ANY, "|", 1, "|", "|", 2)
        c.do("rollback_to", number)
        put_books(c, 3)
        c.do("commit")
        equal(len(c.scan("id", "|")), 20)
        equal(c.scan("|", "count"), ["20\t"])
        equal(server.stop(), 0)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


def drawn(cwd, table):
    """What inspect draws of a table: its description, and its rows' pairs."""
    text = ok("inspect", f"table:{table}", cwd=cwd).stdout
    return text, len(re.findall(r"^  \(.* -> ", text, re.M))


@test
def an_update_keeps_a_row_one_pair(cwd):
    with Door(cwd) as server, Session(server) as c, Session(server) as other:
        shop(c)
        put_books(c, 3)
        text, pairs = drawn(cwd, "shop.books")
        contains(text, "rows are whole")
        equal(pairs, 3)
        equal(c.write(UPDATE, ["title"], ([0], ["new"]), ([9], ["none"])), ["1", "0"])
        equal(c.write(UPDATE, ["price"], ([1], ["\\n"])), ["1"])
        equal(c.write(PUT, ["price"], ([2], ["7"])), ["1"])
        equal(c.scan("id", "title", "price", "|"), ["0\tnew\t0.50", "1\tbook 1\t\\n", "2\tbook 2\t7"])
        c.do("begin")
        number, = c.do("savepoint")
        equal(c.write(UPDATE, ["title"], ([1], ["gone"])), ["1"])
        equal(c.write(UPDATE, ["price"], ([1], ["3"])), ["1"])
        c.do("rollback_to", number)
        c.do("commit")
        equal(c.scan("title", "price", "|", "eq", 1), ["book 1\t\\n"])
        text, now = drawn(cwd, "shop.books")
        contains(text, "rows are whole")
        equal(now, pairs)
        # Both wrote the row as a whole, so one of them has to look again.
        other.do("use", "shop", "books")
        for session, column in ((c, "title"), (other, "price")):
            session.do("begin")
            session.write(UPDATE, [column], ([0], ["1"]))
        c.do("commit")
        other.fails("40001", "commit")
        equal(server.stop(), 0)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_long_row_has_columns_of_its_own_from_then_on(cwd):
    updates = {"update": (UPDATE, 0, 5000), "insert": (INSERT, 7, 20000), "put": (PUT, 1, 5000),
               "replace": (REPLACE, 1, 20000)}
    with Door(cwd) as server, Session(server) as c:
        for within in (False, True):
            for name, (operation, key, size) in updates.items():
                name, other = f"{name}_{within}".lower(), 8 if operation == INSERT else 2
                c.do("schema_create", name)
                c.do("create", name, "books", "id", "int4", "range", "title", "text", "regular",
                     "price", "numeric", "regular")
                c.do("use", name, "books")
                put_books(c, 3)
                if within:
                    c.do("begin")
                    c.write(UPDATE, ["title"], ([2], ["two"]))
                    number, = c.do("savepoint")
                equal(c.write(operation, ["title"], ([key], ["x" * size]), ([other], ["short"])), ["1", "1"])
                c.write(UPDATE, ["price"], ([key], ["4"]))
                equal(c.scan("title", "price", "|", "eq", key), ["x" * size + "\t4"])
                if within:
                    c.do("rollback_to", number)
                    equal(c.scan("title", "|", "eq", 2), ["two"])
                    c.write(PUT, ["title"], ([other], ["short"]))
                    c.do("commit")
                equal(c.scan("title", "|", "eq", other), ["short"])
                contains(drawn(cwd, f"{name}.books")[0], "rows may be packed")
        equal(server.stop(), 0)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def writes_are_sent_ahead_of_their_answers(cwd):
    def rows(*keys):
        return [word for key in keys for word in ("|", key, "|", "x")]

    with Door(cwd) as server, Session(server) as c, Session(server) as other:
        shop(c)
        other.do("use", "shop", "books")
        c.do("begin_later")
        c.do("write_send", INSERT, "title", *rows(1, 2))
        c.do("write_send", INSERT, "title", *rows(3))
        # Any request waits for what is under way, and parts are committed without a wait.
        equal(c.scan("id", "|"), ["1", "2", "3"])
        c.do("write_send", INSERT, "title", *rows(4))
        c.do("commit_send")
        c.do("begin_later")
        c.do("write_send", INSERT, "title", *rows(5))
        equal(other.scan("id", "|"), ["1", "2", "3", "4"])
        c.do("write_wait")
        c.do("write_wait")
        c.do("commit")
        equal(other.scan("id", "|"), ["1", "2", "3", "4", "5"])
        # The next one tells of a failure, once, and what follows is a part of a failed transaction.
        c.do("begin_later")
        c.do("write_send", INSERT, "title", *rows(6, 3, 7))
        equal(c.fails("23505", "write_send", INSERT, "title", *rows(8)).row, 1)
        c.fails("25P02", "write_wait")
        c.do("rollback")
        for told in (("write_wait",), ("ping",), ("scan", "id", "|"), ("commit",), ("savepoint",)):
            c.do("begin")
            c.do("write_send", INSERT, "title", *rows(9, 3))
            equal(c.fails("23505", *told).row, 1)
            c.do("rollback")
        # Who rolls back is told nothing.
        for back in ("rollback", "rollback_later"):
            c.do("begin")
            c.do("write_send", INSERT, "title", *rows(9, 3))
            c.do(back)
            equal(c.scan("id", "|"), ["1", "2", "3", "4", "5"])
        c.do("begin")
        number, = c.do("savepoint")
        c.do("write_send", INSERT, "title", *rows(9, 3))
        c.do("rollback_to", number)
        c.do("write_send", INSERT, "title", *rows(10))
        c.do("commit")
        equal(c.scan("id", "|"), ["1", "2", "3", "4", "5", "10"])
        # A commit that was sent fails as any other.
        c.do("begin")
        equal(c.scan("|", "count"), ["6\t"])
        c.do("write_send", INSERT, "title", *rows(11))
        c.do("write_wait")
        other.write(INSERT, ["title"], ([12], ["x"]))
        c.do("commit_send")
        c.do("begin_later")
        c.fails("40001", "write_send", INSERT, "title", *rows(13))
        c.do("rollback_later")
        equal(c.scan("id", "|"), ["1", "2", "3", "4", "5", "10", "12"])
        # Whether a commit has happened behind which the connection was lost, nobody knows.
        c.do("begin")
        c.do("write_send", INSERT, "title", *rows(14))
        server.process.send_signal(signal.SIGSTOP)
        c.do("commit_send")
        server.process.kill()
        c.fails("08007", "write_wait")
        c.fails("08003", "write_send", INSERT, "title", *rows(15))


@test
def a_client_that_left_has_committed_nothing(cwd):
    with Door(cwd) as server, Session(server) as a:
        shop(a)
        with Session(server) as b:
            b.do("use", "shop", "books")
            b.do("begin")
            put_books(b, 10)
            b.process.kill()
        a.write(INSERT, ["title"], ([1], ["a"]))
        equal(a.scan("id", "|"), ["1"])


@test
def a_stop_ends_connections_and_their_transactions(cwd):
    with Door(cwd) as server, Session(server) as a, Session(server) as b:
        shop(a)
        a.do("begin")
        put_books(a, 3)
        b.do("begin")
        equal(server.stop(), 0)
        a.fails("08006", "commit")
    with Door(cwd) as server, Session(server) as c:
        c.do("use", "shop", "books")
        equal(c.scan("id", "|"), [])


@test
def a_transaction_that_lasts_too_long_is_rolled_back(cwd):
    settings = os.path.join(cwd, "short.ini")
    with open(settings, "w") as f:
        f.write("[rows]\ntransaction_seconds = 1\n")
    with Door(cwd, "--config", settings) as server, Session(server) as c:
        shop(c)
        c.do("begin")
        put_books(c, 1)
        time.sleep(1.5)
        failure = c.fails("25P04", "scan", "id", "|")
        contains(failure.text, "transaction_seconds, 1")
        c.fails("25P04", "savepoint")
        c.do("rollback")
        equal(c.scan("id", "|"), [])


@test
def a_transaction_ends_in_its_time_while_a_request_trickles(cwd):
    """Nothing that a client does slowly keeps what others write meanwhile for longer."""
    (cwd / "short.ini").write_text("[rows]\ntransaction_seconds = 1\n")
    with Door(cwd, "--config", "short.ini") as server, Raw(server) as c:
        equal(c.ask(4, b"\0")[0], 128)
        c.socket.sendall(struct.pack(">IBBH", 100, 3, 0, 8))
        deadline = time.monotonic() + 30
        while 'frond_open_transactions_expired_total{door="rows"} 1\n' not in metrics(server):
            assert time.monotonic() < deadline, "it is open"
            c.socket.sendall(b"x")
            time.sleep(0.5)
        sent = c.socket.send(bytes(200))
        equal(c.read()[0], 129)
        assert sent == 200


@test
def nothing_of_a_person_who_is_gone_is_committed(cwd):
    def login(c, name, password):
        return c.ask(2, struct.pack(">H", len(name)) + name + struct.pack(">H", len(password)) + password)

    with Door(cwd, "--admin", "root:secret") as server:
        head = {"Authorization": "Basic " + base64.b64encode(b"root:secret").decode()}
        server.request("PUT", "/_users", None, head)
        user = {"type": "user", "name": "ann", "password": "pw", "roles": ["rows:all"]}
        status, answer = server.request("PUT", "/_users/org.couchdb.user:ann", user, head)[:2]
        assert status in (201, 202), status
        with Session(server, "root", "secret") as root, Raw(server) as c:
            root.do("schema_create", "s")
            root.do("create", "s", "t", "k", "int4", "range")
            equal(login(c, b"ann", b"pw")[0], 128)
            equal(c.ask(4, b"\0")[0], 128)
            # One row of the key 1, by put.
            table = struct.pack(">H", 1) + b"s" + struct.pack(">H", 1) + b"t" + bytes(16)
            row = struct.pack(">BBii", PUT, 1, 4, 1)
            equal(c.ask(21, table + b"\0" + struct.pack(">HI", 0, 1) + row)[0], 128)
            # Somebody else does not commit what she has written.
            equal(login(c, b"root", b"secret")[2][:5], b"25001")
            server.request("DELETE", f"/_users/org.couchdb.user:ann?rev={answer['rev']}", None, head)
            time.sleep(1.5)  # each process looks for changes of people twice a second
            equal(c.state(5), "28000")
            equal(login(c, b"root", b"secret")[0], 128)
            equal(c.state(5), "25P01")
            root.do("use", "s", "t")
            equal(root.scan("k", "|"), [])


@test
def a_sum_is_kept_by_transactions_that_meet(cwd):
    """Money goes from account to account, by sessions that try again at 40001."""
    with Door(cwd) as server, Session(server) as a, Session(server) as b:
        sessions, conflicts = [a, b], 0
        a.do("schema_create", "s")
        a.do("create", "s", "t", "k", "int4", "range", "n", "int8", "regular")
        for c in sessions:
            c.do("use", "s", "t")
        a.write(PUT, ["n"], *(([k], [100]) for k in range(3)))
        for turn in range(40):
            waiting = []
            for c in sessions:
                x, y = random.sample(range(3), 2)
                c.do("begin")
                n, m = map(int, c.do("get", "n", "|", x, "|", y))
                c.write(UPDATE, ["n"], ([x], [n - 1]), ([y], [m + 1]))
                waiting.append(c)
            for c in waiting:
                try:
                    c.do("commit")
                except Failure as failure:
                    equal(failure.state, "40001")
                    conflicts += 1
        equal(a.scan("n", "|", "sums", 2), ["3\t300"])
        assert conflicts > 5, conflicts


@test
def what_was_committed_is_there_after_kill_9(cwd):
    with Door(cwd) as server:
        with Session(server) as a, Session(server) as b:
            shop(a)
            b.do("use", "shop", "books")
            a.do("begin")
            put_books(a, 5)
            a.do("commit")
            b.do("begin")
            b.write(PUT, ["title"], ([9], ["never"]))
            server.process.send_signal(signal.SIGKILL)
            server.process.wait(60)
            b.fails("08006", "commit")
            b.fails("08003", "ping")
    with Door(cwd) as server, Session(server) as c:
        c.do("use", "shop", "books")
        equal(c.scan("id", "|"), [str(n) for n in range(5)])


# ---- Cassandra's clients ----

@test
def tables_of_cassandras_clients_are_the_same(cwd):
    with Door(cwd, "--cql", "127.0.0.1:0") as server, Session(server) as c:
        port = int(re.search(r"event=cql address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as cql:
            def ask(opcode, body):
                cql.sendall(struct.pack(">BBhBI", 4, 0, 1, opcode, len(body)) + body)
                head = cql.recv(9, socket.MSG_WAITALL)
                return head[4], cql.recv(struct.unpack(">I", head[5:])[0], socket.MSG_WAITALL)

            def query(text):
                opcode, body = ask(7, struct.pack(">I", len(text)) + text.encode() + struct.pack(">HB", 1, 0))
                assert opcode == 8, body
                return body

            equal(ask(1, b"\0\1\0\x0bCQL_VERSION\0\x053.0.0")[0], 2)
            query("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            query("CREATE TABLE ks.t (k text, a int, s text static, n bigint, m timestamp, d decimal, v varint,"
                  " u uuid, i inet, b tinyint, day date, l list<int>, PRIMARY KEY (k, a)) WITH CLUSTERING ORDER BY (a DESC)")
            query("INSERT INTO ks.t (k, a, s, n, m, d, v, u, i, b, day, l) VALUES ('x', 1, 'st', 5, 946684800123, 1.50,"
                  " -123456789012345678901234567890, 123e4567-e89b-12d3-a456-426614174000, '10.0.0.1', -3, '2000-01-02',"
                  " [1, 2])")
            query("INSERT INTO ks.t (k, a, n) VALUES ('x', 2, 6)")
            told = [line.split("\t") for line in c.do("describe", "ks", "t")]
            equal([(name, kind, role) for name, kind, role, *_ in told],
                  [("k", "text", "hash"), ("a", "int4", "range"), ("s", "text", "static"),
                   *((name, kind, "regular") for name, kind in
                     (("n", "int8"), ("m", "timestamptz"), ("d", "numeric"), ("v", "numeric"), ("u", "uuid"),
                      ("i", "inet"), ("b", "int2"), ("day", "date"), ("l", "none")))]
                  )
            equal(c.scan("k", "a", "s", "n", "m", "d", "v", "u", "i", "b", "day", "|", "eq", "x"),
                  ["x\t2\tst\t6" + "\t\\n" * 7,
                   "x\t1\tst\t5\t123000\t1.50\t-123456789012345678901234567890\tx:123e4567e89b12d3a456426614174000"
                   "\tx:04200a000001\t-3\t1"])
            c.fails("0A000", "scan", "l", "|")
            c.fails("0A000", "write", PUT, "s", "|", "x", 1, "|", "y")
            c.fails("22003", "write", PUT, "m", "|", "x", 1, "|", "1")
            c.fails("22003", "write", PUT, "b", "|", "x", 1, "|", "200")
            c.fails("22003", "write", PUT, "d", "|", "x", 1, "|", "NaN")
            c.fails("22003", "write", PUT, "v", "|", "x", 1, "|", "1.5")
            c.write(PUT, ["n", "m", "d", "v", "i", "day"],
                    (["y", 7], [70, -1000, "-0.001", "12", "x:0420ffffffff", -1]))
            assert b"\0\0\0\x08\0\0\0\0\0\0\0\x46" in query("SELECT n FROM ks.t WHERE k = 'y' AND a = 7")
            equal(c.do("get", "m", "d", "v", "i", "day", "|", "y", 7), ["-1000\t-0.001\t12\tx:0420ffffffff\t-1"])

            c.do("schema_create", "s")
            c.do("create", "s", "t", "k", "numeric", "hash", "r", "timestamp", "range", "n", "interval", "regular")
            c.do("use", "s", "t")
            c.write(INSERT, ["n"], (["1.5", 5], ["x:0000000000000001" + "00" * 8]))
            body = query("SELECT * FROM s.t")
            assert b"frond.numeric" in body and b"\0\0\0\x10\0\0\0\0\0\0\0\x01" in body, body
            for text in ("INSERT INTO s.t (k, r, n) VALUES (0x00, 0x00, 0x00)", "UPDATE s.t SET n = 0x00 WHERE k = 0x00 AND r = 0x00",
                         "SELECT * FROM s.t WHERE k = 0x00"):
                equal(ask(7, struct.pack(">I", len(text)) + text.encode() + struct.pack(">HB", 1, 0))[0], 0)
            body = query("SELECT r FROM s.t")
            assert b"\0\0\0\x08\x80\0\0\0\0\0\0\x05" in body, body


# ---- People ----

@test
def people_may_what_their_roles_say(cwd):
    with Door(cwd, "--admin", "root:secret") as server:
        base = {"type": "user", "password": "pw"}
        head = {"Authorization": "Basic " + base64.b64encode(b"root:secret").decode()}
        server.request("PUT", "/_users", None, head)
        for name, roles in (("reader", ["rows:select@shop"]), ("writer", ["cql:modify@shop.books"]), ("none", []),
                            ("maker", ["rows:create@shop", "rows:drop@shop.t"])):
            status, _ = server.request("PUT", f"/_users/org.couchdb.user:{name}",
                                       {**base, "name": name, "roles": roles}, head)[:2]
            assert status in (201, 202), status
        with Session(server, "root", "secret") as c:
            shop(c)
            c.do("schema_create", "other")
            put_books(c, 1)
        allowed = {
            "reader": {"scan", "get", "describe", "tables"},
            "writer": {"write", "empty", "describe", "tables"},
            "none": set(),
            "maker": {"create", "drop", "tables", "describe"},
        }
        calls = {
            "scan": ("scan", "|"), "get": ("get", "|", 0), "write": ("write", PUT, "|", 0),
            "describe": ("describe", "shop", "books"), "tables": ("tables", "shop"),
            "create": ("create", "shop", "t", "k", "int4", "range"), "drop": ("drop", "shop", "t"),
            "alter": ("alter", "shop", "books", "x", "int4", "regular"), "empty": ("empty", "shop", "books"),
            "schema_create": ("schema_create", "mine"), "schema_drop": ("schema_drop", "shop"),
        }
        for name, may in allowed.items():
            with Session(server, name, "pw") as c:
                if "describe" in may:
                    c.do("use", "shop", "books")
                else:
                    c.fails("42501", "use", "shop", "books")
                equal(c.do("schemas"), ["shop"] if may else [])
                if name != "maker" and may:
                    equal(c.do("tables", "shop"), ["books"])
                for call, words in calls.items():
                    if call in may:
                        c.do(*words)
                    else:
                        c.fails("42501", *words)
        with Session(server) as c:
            for words in calls.values():
                c.fails("28000", *words)
            c.fails("28000", "begin")
            c.do("ping")
        for login in (("root", "wrong"), ("nobody", "pw")):
            try:
                Session(server, *login)
            except Failure as failure:
                equal(failure.state, "28P01")
            else:
                raise AssertionError(login)


@test
def a_client_with_tls_checks_the_certificate(cwd):
    for name in ("cert", "other"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", cwd / f"{name}.key", "-out", cwd / f"{name}.pem"], check=True, capture_output=True)
    (cwd / "ini").write_text(f"[ssl]\ncert_file = {cwd}/cert.pem\nkey_file = {cwd}/cert.key\n")
    with Server(cwd, "--rowss", "127.0.0.1:0", "--config", str(cwd / "ini")) as server:
        server.port = int(re.search(r"event=rows\w* address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
        with Session(server, "", "", cwd / "cert.pem") as c:
            shop(c)
            put_books(c, 3)
            equal(len(c.scan("id", "|")), 3)
        for login in (("", "", cwd / "other.pem"), ()):
            try:
                Session(server, *login)
            except Failure as failure:
                equal(failure.state, "08006")
            else:
                raise AssertionError(login)


# ---- Bytes ----

class Raw:
    """A connection that sends what it likes."""

    def __init__(self, server, greets=True):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        if greets:
            equal(self.ask(1, struct.pack(">IHH", 0x46524f57, 1, 9))[0], 128)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, code, body=b"", number=7, reserved=0):
        self.socket.sendall(struct.pack(">IBBH", len(body), code, reserved, number) + body)

    def read_bytes(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise EOFError(data)
            data += more
        return data

    def read(self):
        length, code, _, number = struct.unpack(">IBBH", self.read_bytes(8))
        return code, number, self.read_bytes(length)

    def ask(self, code, body=b"", **how):
        self.send(code, body, **how)
        return self.read()

    def state(self, code, body=b"", **how):
        got, _, answer = self.ask(code, body, **how)
        equal(got, 129)
        return answer[:5].decode()

    def ends(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@test
def a_connection_begins_with_hello(cwd):
    with Door(cwd) as server:
        with Raw(server, False) as c:
            equal(c.state(1, struct.pack(">IHH", 0x46524f57, 5, 9)), "08P01")
            equal(c.state(1, struct.pack(">IHH", 0x46524f58, 1, 9)), "08P01")
            equal(c.state(1, b"\0"), "08P01")
            code, number, body = c.ask(1, struct.pack(">IHH", 0x46524f57, 0, 1), number=65535)
            equal((code, number), (128, 65535))
            equal(struct.unpack(">HIB", body[:7]), (1, 16 * 1024 * 1024, 0))
            equal(c.state(1, struct.pack(">IHH", 0x46524f57, 1, 1)), "08P01")
            for bad in (0, 29, 127, 128, 255):
                equal(c.state(bad), "08P01")
            equal(c.state(3, reserved=1), "08P01")
            equal(c.ask(3), (128, 7, b""))
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x04\0\0\0\x01\0\0\0\0", b"\0" * 100, b"\xff" * 100):
            with Raw(server, False) as c:
                c.socket.sendall(data)
                assert c.ends()


@test
def garbage_is_answered_and_hurts_nobody(cwd):
    seed = int(os.environ.get("FROND_TEST_SEED", random.randrange(2 ** 32)))
    print(f"# FROND_TEST_SEED={seed}")
    r = random.Random(seed)
    with Door(cwd) as server:
        with Session(server) as s:
            shop(s)
            put_books(s, 10)
        table = struct.pack(">H", 4) + b"shop" + struct.pack(">H", 5) + b"books" + bytes(16)
        value = struct.pack(">i", 4) + struct.pack(">i", 3)
        bodies = {
            13: table[:6] + b"\0\0", 14: table[:-16], 19: table + b"\0\0\1\0\0\0\1\1" + value + bytes(6) + bytes(16),
            20: table + b"\0\0\1\0\0\0\1\0\0\0\1\1" + value,
            21: table + b"\0\0\1\0\0\0\2\0\0\0\1\4\1" + value + struct.pack(">i", 1) + b"t",
            4: b"\0", 7: b"", 8: bytes(4), 9: bytes(4), 5: b"", 6: b"",
        }
        with Raw(server) as c:
            for _ in range(1500):
                code = r.choice(list(bodies))
                body = bytearray(bodies[code])
                for _ in range(r.randrange(4)):
                    if body:
                        body[r.randrange(len(body))] = r.choice((0, 1, 255, r.randrange(256)))
                if r.random() < 0.2:
                    body = body[:r.randrange(len(body) + 1)]
                got, number, answer = c.ask(code, bytes(body), number=r.randrange(65536))
                assert got in (128, 129), got
                if got == 129:
                    assert not answer.startswith(b"XX"), (code, body, answer)
        with Session(server) as s:
            s.do("use", "shop", "books")
            s.do("scan", "id", "|")
        equal(server.stop(), 0)


@test
def places_that_are_made_up_are_refused_or_end(cwd):
    with Door(cwd) as server:
        with Session(server) as s:
            shop(s)
            put_books(s, 50)
        table = struct.pack(">H", 4) + b"shop" + struct.pack(">H", 5) + b"books" + bytes(16)

        def scan(place):
            return table + b"\0\0\0" + bytes(5) + bytes(2) + struct.pack(">III", 5, 0, 0) + struct.pack(">I", len(place)) + place

        with Raw(server) as c:
            code, _, body = c.ask(19, scan(b""))
            equal(code, 128)
            count, more, length = struct.unpack(">IBI", body[:9])
            equal((count, more), (5, 1))
            place = body[9:9 + length]
            for n in range(length):
                for byte in (0, 255, place[n] ^ 1):
                    c.ask(19, scan(place[:n] + bytes([byte]) + place[n + 1:]))
                c.ask(19, scan(place[:n]))
            equal(c.state(19, scan(b"x" * 30)), "22023")
            equal(c.state(19, scan(b"x" * 70000)), "22023")
            equal(c.ask(3)[0], 128)


@test
def limits_are_named_at_their_edge(cwd):
    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        c.do("create", "s", "t", "k", "text", "range", "v", "text", "regular")
        c.do("use", "s", "t")
        c.write(PUT, ["v"], (["long"], ["v" * 89000]))
        # Longer ones lie in pieces: the first of a column meets a conflict, which a client's transaction is told of.
        c.do("begin")
        c.fails("40001", "write", PUT, "v", "|", "longer", "|", "v" * 91000)
        c.do("rollback")
        c.write(PUT, ["v"], (["longer"], ["w" * 91000]))
        failure = c.fails("54000", "write", PUT, "v", "|", "k", "|", "v" * 4000001)
        contains(failure.text, "TABLE_VALUE_BYTES")
        c.write(PUT, ["v"], (["k" * 9000], ["x"]))
        failure = c.fails("54000", "write", PUT, "v", "|", "k" * 9900, "|", "x")
        contains(failure.text, "TIMED_KEY_BYTES")
        columns = [word for n in range(999) for word in (f"c{n}", "int4", "regular")]
        c.do("create", "s", "wide", "k", "int4", "hash", *columns)
        columns += ["more", "int4", "regular"]
        contains(c.fails("42P16", "create", "s", "wider", "k", "int4", "range", *columns[:-3]).text, "TABLE_COLUMNS")
        c.fails("22023", "create", "s", "wider", "k", "int4", "hash", *columns)
        c.do("begin")
        for _ in range(1000):
            number, = c.do("savepoint")
        contains(c.fails("54000", "savepoint").text, "ROWS_SAVEPOINTS")
        c.do("release", number)
        c.do("savepoint")
        c.do("rollback")
        c.do("begin")
        for n in range(120):
            try:
                c.write(PUT, ["v"], ([f"k{n}"], ["v" * 88000]))
            except Failure as failure:
                equal(failure.state, "54000")
                break
        else:
            assert c.fails("54000", "commit")
        with Raw(server) as raw:
            raw.socket.sendall(struct.pack(">IBBH", 16 * 1024 * 1024 + 1, 3, 0, 9))
            raw.socket.sendall(bytes(16 * 1024 * 1024 + 1))
            code, number, body = raw.read()
            equal((code, number, body[:5]), (129, 9, b"54000"))
            contains(body.decode(errors="replace"), "ROWS_FRAME_BYTES")
            equal(raw.ask(3)[0], 128)


@test
def pages_that_nobody_reads_take_little_memory(cwd):
    """A client that asks for a thousand pages at once and reads none holds no more than a few."""
    with Door(cwd) as server:
        with Session(server) as s:
            s.do("schema_create", "s")
            s.do("create", "s", "t", "k", "int4", "range", "v", "text", "regular")
            s.do("use", "s", "t")
            for n in range(0, 300, 50):
                s.write(PUT, ["v"], *(([k], ["v" * 20000]) for k in range(n, n + 50)))
        table = struct.pack(">H", 1) + b"s" + struct.pack(">H", 1) + b"t" + bytes(16)
        body = table + b"\0\0\1\0\0\0\3" + bytes(5) + bytes(2) + struct.pack(">III", 0, 4 * 1024 * 1024, 0) + bytes(4)

        lazy = [Raw(server) for _ in range(8)]
        for c in lazy:
            c.socket.setblocking(False)
            try:
                for n in range(1000):
                    c.send(19, body, number=n)
            except BlockingIOError:
                pass
        time.sleep(2)
        with Session(server) as s:
            s.do("use", "s", "t")
            equal(s.scan("|", "count"), ["300\t"])
        held = int(re.search(r"^frond_memory_requests_bytes (\d+)", metrics(server), re.M).group(1))
        assert held < len(lazy) * 12 * 1024 * 1024, held
        for c in lazy:
            c.socket.close()


# ---- Indexes ----

def people(c):
    c.do("schema_create", "s")
    c.do("create", "s", "people", "id", "int4", "range", "name", "text", "regular", "age", "int4", "regular",
         "since", "timestamp", "regular", "pay", "numeric", "regular", "doc", "other", "regular")
    c.do("use", "s", "people")


@test
def an_index_is_made_told_read_and_dropped(cwd):
    with Door(cwd) as server, Session(server) as c:
        people(c)
        rows = [(n, f"name {n % 7}", n % 50 - 25, (n % 90 - 45) * 10**9) for n in range(600)]
        c.write(PUT, ["name", "age", "since"], *(([n], [name, age, since]) for n, name, age, since in rows))
        c.write(PUT, ["name"], ([1000], ["name 3"]), ([1001], ["\\n"]))
        number, state, _ = c.do("index_create", "by_age", "name", "-age")[0].split("\t")
        equal(state, "ready")
        equal(c.do("indexes"), ["by_age\tready\tname\tage desc"])
        equal(c.do("index_find", "s", "by_age"), ["people"])
        found = c.scan("id", "|", "index", number, "eq", "name 3", "|")
        wanted = sorted((row for row in rows if row[1] == "name 3"), key=lambda row: (-row[2], row[0]))
        equal(found, [str(row[0]) for row in wanted] + ["1000"])
        equal(c.scan("id", "|", "index", number, "reverse", "eq", "name 3", "|"), found[::-1])
        equal(c.scan("id", "|", "index", number, "eq", "name 3", "|", "rows", 7), found)
        equal(c.scan("id", "|", "index", number, "reverse", "eq", "name 3", "|", "rows", 7), found[::-1])
        # A range lies in the order of the index: the greater value comes first.
        equal(c.scan("id", "|", "index", number, "eq", "name 3", "|", "from", ">=", 9, "|", "to", "<", -3, "|"),
              [str(row[0]) for row in wanted if -3 < row[2] <= 9])
        equal(c.scan("|", "index", number, "eq", "name 3", "|", "count", "where", "age", ">", 20), [
            f"{sum(row[2] > 20 for row in wanted)}\t"])
        since, state, _ = c.do("index_create", "by_since", "since")[0].split("\t")
        equal(c.scan("id", "|", "index", since, "from", ">", -5 * 10**9, "|", "to", "<=", 3 * 10**9, "|"),
              [str(row[0]) for row in sorted(rows, key=lambda row: (row[3], row[0])) if -5 * 10**9 < row[3] <= 3 * 10**9])
        equal(len(c.scan("id", "|", "index", number)), 601)
        c.fails("42P07", "index_create", "by_age", "age")
        c.fails("0A000", "index_create", "by_doc", "doc")
        c.fails("42703", "index_create", "by_none", "none")
        c.fails("42P16", "scan", "id", "|", "index", number, "eq", "a", 1, 2, "|")
        c.fails("42704", "scan", "id", "|", "index", 99)
        c.do("begin")
        c.fails("25001", "index_create", "late", "age")
        c.do("rollback")
        c.do("index_drop", "s", "by_age")
        c.fails("42704", "index_drop", "s", "by_age")
        c.fails("42704", "index_find", "s", "by_age")
        c.fails("42704", "scan", "id", "|", "index", number)
        equal(c.do("indexes"), ["by_since\tready\tsince"])


@test
def nulls_are_found_by_an_index(cwd):
    with Door(cwd) as server, Session(server) as c:
        people(c)
        ages = {n: None if n % 3 == 0 else n % 10 for n in range(40)}
        c.write(PUT, ["name", "age"], *(([n], ["a", "\\n" if age is None else age]) for n, age in ages.items()))
        c.write(PUT, ["name", "age"], ([50], ["b", 1]), ([51], ["\\n", "\\n"]), ([52], ["\\n", 1]))
        falls, rises = (c.do("index_create", name, *how)[0].split("\t")[0] for name, how in (
            ("falls", ["name", "-age"]), ("rises", ["unique", "name", "age", "id"])))
        nulls = [str(n) for n, age in ages.items() if age is None]
        there = [str(n) for age in range(10) for n in ages if ages[n] == age]
        for number, edge, values in ((falls, ("to", "<"), [str(n) for age in range(9, -1, -1) for n in ages if ages[n] == age]),
                                     (rises, ("from", ">"), there)):
            ask = lambda *more: c.scan("id", "|", "index", number, *more)
            equal(ask("eq", "a", "\\n", "|"), nulls)
            equal(ask("reverse", "eq", "a", "\\n", "|", "rows", 5), nulls[::-1])
            equal(ask("eq", "a", "|", *edge, "\\n", "|"), values)
            equal(ask("eq", "\\n", "|"), [])
            equal(ask("eq", "b", "\\n", "|"), [])
            c.fails("22023", "scan", "id", "|", "index", number, "eq", "a", "|", edge[0], edge[1] + "=", "\\n", "|")
        equal(c.scan("id", "|", "index", rises, "eq", "a", "|", "to", "<", 4, "|"), [n for n in there if ages[int(n)] < 4])
        equal(c.scan("|", "index", rises, "eq", "a", "\\n", "|", "count"), [f"{len(nulls)}\t"])
        c.fails("22023", "scan", "id", "|", "eq", "\\n", "|")


@test
def a_unique_index_refuses_and_names_itself(cwd):
    with Door(cwd) as server, Session(server) as c:
        people(c)
        c.write(PUT, ["name", "age"], ([1], ["a", 1]), ([2], ["a", 2]), ([3], ["\\n", 1]), ([4], ["\\n", 1]))
        number, state, why = c.do("index_create", "one_name", "unique", "name")[0].split("\t")
        equal(state, "failed")
        contains(why, "have the values of others")
        c.do("index_drop", "s", "one_name")
        equal(c.do("index_create", "one", "unique", "name", "age")[0].split("\t")[1], "ready")
        failure = c.fails("23505", "write", INSERT, "name", "age", "|", 5, "|", "b", 1, "|", 6, "|", "a", 2)
        equal((failure.row, failure.text.split("\t")[1]), (1, "one"))
        equal(c.scan("id", "|", "eq", 5), [])
        c.fails("23505", "write", UPDATE, "age", "|", 1, "|", 2)
        # Null is like no other, and a savepoint brings back what was.
        c.write(INSERT, ["name", "age"], ([7], ["\\n", 1]), ([8], ["z", "\\n"]), ([9], ["z", "\\n"]))
        c.do("begin")
        point = c.do("savepoint")[0]
        c.write(UPDATE, ["age"], ([1], [3]))
        c.fails("23505", "write", UPDATE, "age", "|", 1, "|", 2)
        c.do("rollback_to", point)
        c.write(UPDATE, ["age"], ([2], [3]))
        c.fails("23505", "write", INSERT, "name", "age", "|", 10, "|", "a", 1)
        c.do("rollback")
        c.write(DELETE, [], ([2], []))
        c.write(UPDATE, ["age"], ([1], [2]))
        c.fails("23505", "write", INSERT, "name", "age", "|", 10, "|", "a", 2)
        c.write(INSERT, ["name", "age"], ([10], ["a", 1]))


@test
def an_index_has_some_rows_and_includes_columns(cwd):
    with Door(cwd) as server, Session(server) as c:
        people(c)
        c.write(PUT, ["name", "age", "pay"], *(([n], [f"n{n % 3}", n % 20, f"{n}.50"]) for n in range(100)))
        number = c.do("index_create", "old", "name", "|", "age", "pay", "|", "age", ">=", 10)[0].split("\t")[0]
        equal(c.do("indexes"), ["old\tready\tname\tinclude age\tinclude pay\twhere age >= 10"])
        equal(c.scan("id", "pay", "|", "index", number, "eq", "n1", "|"),
              [f"{n}\t{n}.50" for n in range(100) if n % 3 == 1 and n % 20 >= 10])
        c.fails("0A000", "index_create", "x", "name", "|", "|", "pay", ">", "1")


@test
def equal_numbers_have_one_place_in_an_index(cwd):
    with Door(cwd) as server, Session(server) as c:
        people(c)
        pays = ["1.50", "-3", "1.5", "NaN", "1.500", "0.00", "\\n", "20", "Infinity", "0"]
        c.write(PUT, ["pay"], *(([n], [pay]) for n, pay in enumerate(pays)))
        number, state, _ = c.do("index_create", "by_pay", "pay", "|", "age")[0].split("\t")
        equal(state, "ready")
        equal(c.do("indexes"), ["by_pay\tready\tpay\tinclude age"])
        equal(c.scan("id", "pay", "|", "index", number), [
            "1\t-3", "5\t0.00", "9\t0", "0\t1.50", "2\t1.5", "4\t1.500", "7\t20", "8\tInfinity", "3\tNaN"])
        equal(c.scan("id", "|", "index", number, "eq", "1.5000", "|"), ["0", "2", "4"])
        equal(c.scan("id", "|", "index", number, "from", ">", "0.0", "|", "to", "<=", "20.0", "|"), ["0", "2", "4", "7"])
        c.do("index_drop", "s", "by_pay")
        equal(c.do("index_create", "one_pay", "unique", "pay")[0].split("\t")[1], "failed")
        c.do("index_drop", "s", "one_pay")
        c.write(DELETE, [], ([0], []), ([2], []), ([9], []))
        number = c.do("index_create", "one_pay", "unique", "pay")[0].split("\t")[0]
        c.fails("23505", "write", INSERT, "pay", "|", 10, "|", "1.5")
        c.write(UPDATE, ["pay"], ([4], ["1.50"]))
        equal(c.scan("id", "pay", "|", "index", number, "eq", "1.5", "|"), ["4\t1.50"])
        c.write(UPDATE, ["pay"], ([4], ["1.51"]))
        equal(c.scan("id", "|", "index", number, "eq", "1.5", "|"), [])
    contains(ok("verify", "--quiet", cwd=cwd).stdout, " 0 findings")
    contains(ok("dump", "table:s.people", "--quiet", cwd=cwd).stdout, '"part":"order","path":["numeric"]')


@test
def a_dump_brings_values_of_every_kind_back(cwd):
    def read(c):
        got = {}
        for table in c.do("tables", "s"):
            c.do("use", "s", table)
            got[table] = (c.do("describe", "s", table), c.do("indexes"), c.scan("k", "v", "|"))
        return got

    with Door(cwd) as server, Session(server) as c:
        c.do("schema_create", "s")
        for kind, values in ORDERS.items():
            for role in ("hash", "range"):
                c.do("create", "s", f"{kind}_{role}", "k", kind, role, "v", kind, "regular")
                c.do("use", "s", f"{kind}_{role}")
                c.write(INSERT, ["v"], *(([v], [v]) for v in values))
            c.do("index_create", f"{kind}_v", "v")
        before = read(c)
        equal(len(before), 2 * len(ORDERS))
    copy = ("--quiet", "--store", "embedded:copy")
    for table in before:
        text = ok("dump", f"table:s.{table}", "--quiet", cwd=cwd).stdout
        ok("load", f"table:s.{table}", *copy, cwd=cwd, stdin=text)
        equal(ok("dump", f"table:s.{table}", *copy, cwd=cwd).stdout, text)
        for kind in ("timestamptz", "numeric"):
            # A value that its type does not have.
            if table == f"{kind}_range":
                lines = text.splitlines()
                lines[1] = re.sub(r'("k":\{"\$blob":")[^"]*', r"\g<1>0x01", lines[1])
                told = run("load", f"table:s.{table}", *copy, cwd=cwd, stdin="\n".join(lines)).stderr
                contains(told, f"the column \"k\" is of the type 'frond.{kind}'")
    contains(ok("verify", "--quiet", "--store", "embedded:copy", cwd=cwd).stdout, " 0 findings")
    with Door(cwd, "--store", "embedded:copy") as server, Session(server) as c:
        equal(read(c), before)


@test
def a_client_of_version_1_knows_no_indexes(cwd):
    with Door(cwd) as server:
        c = Raw(server, greets=False)
        equal(c.ask(1, struct.pack(">IHH", 0x46524F57, 1, 1))[2][:2], b"\0\1")
        code, _, body = c.ask(19, b"")
        equal(code, 129)
        equal(len(body), 5 + 4 + 2 + struct.unpack(">H", body[9:11])[0])
        code, _, body = Raw(server, greets=False).ask(1, struct.pack(">IHH", 0x46524F57, 5, 9))
        equal((code, body[:5]), (129, b"08P01"))


@test
def definitions_are_a_part_of_their_transaction(cwd):
    with Door(cwd) as server, Session(server) as c, Session(server) as other:
        shop(c)
        put_books(c, 3)

        def define():
            c.do("begin")
            c.write(PUT, ["title"], ([7], ["seven"]))
            c.do("alter", "shop", "books", "more", "int4", "regular", "|", "|")
            c.do("schema_create", "late")
            c.do("create", "late", "t", "k", "int4", "range", "v", "int4", "regular")
            # It sees what it has made, and others do not.
            c.do("use", "late", "t")
            c.write(INSERT, ["v"], ([1], [2]))
            equal(c.scan("k", "v", "|"), ["1\t2"])
            c.do("use", "shop", "books")
            c.write(UPDATE, ["more"], ([7], [70]))
            equal(c.scan("id", "title", "more", "|", "eq", 7), ["7\tseven\t70"])
            equal(c.do("estimate", "shop", "books"), ["4 exactly"])
            other.fails("42P01", "describe", "late", "t")
            equal(other.do("estimate", "shop", "books"), ["3 exactly"])

        define()
        c.do("rollback")
        c.fails("42P01", "describe", "late", "t")
        c.do("use", "shop", "books")
        c.fails("42P16", "alter", "shop", "books", "|", "more", "|")
        define()
        c.do("commit")
        other.do("use", "late", "t")
        equal(other.scan("k", "v", "|"), ["1\t2"])
        # A savepoint brings back rows, and no definitions: none may be there to be brought back.
        c.do("begin")
        c.do("savepoint")
        c.fails("0A000", "create", "late", "u", "k", "int4", "range")
        c.do("rollback")
        # A table that is made anew within a transaction, whose rows others change meanwhile.
        c.do("begin")
        c.do("use", "late", "t")
        c.do("scan", "k", "|")
        c.do("drop", "late", "t")
        c.do("create", "late", "t", "v", "int4", "range", "k", "int4", "regular")
        c.do("use", "late", "t")
        c.write(INSERT, ["k"], ([2], [1]))
        other.write(INSERT, ["v"], ([5], [6]))
        c.fails("40001", "commit")
        equal(other.scan("k", "v", "|"), ["1\t2", "5\t6"])
    contains(ok("verify", "--quiet", cwd=cwd).stdout, " 0 findings")


class Cql:
    """A connection of one of Cassandra's clients."""

    def __init__(self, server):
        port = re.search(r"event=cql address=127\.0\.0\.1:(\d+)", server.read_log()).group(1)
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
        self.ask(1, b"\0\1\0\x0bCQL_VERSION\0\x053.0.0")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBI", 4, 0, 1, opcode, len(body)) + body)
        head = self.socket.recv(9, socket.MSG_WAITALL)
        return head[4], self.socket.recv(struct.unpack(">I", head[5:])[0], socket.MSG_WAITALL)

    def query(self, text):
        opcode, body = self.ask(7, struct.pack(">I", len(text)) + text.encode() + struct.pack(">HB", 1, 0))
        assert opcode == 8, body


def is_counted(session):
    return session.do("estimate", "shop", "books")[0].endswith(" exactly")


def put_many(session, count):
    for first in range(0, count, 500):
        session.write(PUT, ["title", "price"], *(([first + n], ["a book", "1.50"]) for n in range(500)))


@test
def rows_are_counted_by_those_who_write_them(cwd):
    with Door(cwd) as server, Session(server) as c, Session(server) as other:
        shop(c)
        other.do("use", "shop", "books")
        put_many(c, 3000)
        put_many(c, 1000)
        equal(c.do("estimate", "shop", "books"), ["3000 exactly"])
        # A transaction sees its own rows, and others do not.
        c.do("begin")
        c.write(INSERT, ["title"], ([5000], ["x"]), ([5001], ["y"]))
        c.write(INSERT_NEW, ["title"], ([5001], ["x"]), ([5002], ["y"]))
        c.write(UPDATE, ["title"], ([5002], ["z"]), ([6000], ["z"]))
        c.write(REPLACE, ["title"], ([5002], ["z"]), ([5003], ["z"]))
        c.do("write", DELETE, "|", 1, "|", "|", 6000)
        c.do("write", DELETE_ANY, "|", 2, "|", "|", 6000)
        equal(c.scan("|", "count"), ["3002\t"])
        equal(other.scan("|", "count"), ["3000\t"])
        c.do("rollback")
        equal(c.scan("|", "count"), ["3000\t"])
        # Who has counted meets those who insert; who inserts and counts nothing meets nobody.
        c.do("begin")
        equal(c.scan("|", "count"), ["3000\t"])
        c.write(INSERT, ["title"], ([7000], ["x"]))
        other.write(INSERT, ["title"], ([7001], ["x"]))
        c.fails("40001", "commit")
        c.do("begin")
        c.write(INSERT, ["title"], ([7002], ["x"]))
        other.write(INSERT, ["title"], ([7003], ["x"]))
        c.do("commit")
        equal(c.scan("|", "count"), ["3003\t"])
        # Of some rows, and of groups, they are counted one by one.
        equal(c.scan("|", "count", "from", ">=", 7000), ["3\t"])
        equal(c.scan("|", "count", "where", "title", "=", "x"), ["3\t"])
        c.do("empty", "shop", "books")
        equal(c.scan("|", "count"), ["0\t"])
        put_books(c, 5)
        equal(c.scan("|", "count"), ["5\t"])
        equal(server.stop(), 0)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def groups_by_an_index_come_in_its_order(cwd):
    with Door(cwd, "--cql", "127.0.0.1:0") as server, Session(server) as c, Cql(server) as cql:
        people(c)
        rows = [(n, f"name {n % 7}", n % 3 if n % 5 else None) for n in range(3000)]
        names, pairs, ages, null = {}, {}, {}, "\\n"
        for first in range(0, 3000, 500):
            c.write(INSERT, ["name", "age", "pay"], *(([n], [name, null if age is None else age, f"{n % 2}.{'0' * (1 + n % 4)}"])
                                                      for n, name, age in rows[first:first + 500]))
        number, late, pays = (c.do("index_create", *how)[0].split("\t")[0] for how in (
            ("by_name", "name", "-age"), ("by_age", "age"), ("by_pay", "pay")))
        for _, name, age in rows:
            names[name] = names.get(name, 0) + 1
            pairs[name, age] = pairs.get((name, age), 0) + 1
            ages[age] = ages.get(age, 0) + 1

        by_name = [f"{name}\t{n}" for name, n in sorted(names.items())]
        by_pair = [f"{name}\t{null if age is None else age}\t{pairs[name, age]}"
                   for name, age in sorted(pairs, key=lambda p: (p[0], p[1] is None, -(p[1] or 0)))]
        # Counted by the entries, and once the table is not counted any more by the rows.
        for _ in range(2):
            equal(c.scan("|", "count", "groups", 1, "index", number), by_name)
            equal(c.scan("|", "count", "groups", 2, "index", number), by_pair)
            parts = {}
            for line in c.scan("|", "count", "groups", 1, "index", number, "bytes", 1):
                name, n = line.split("\t")
                parts[name] = parts.get(name, 0) + int(n)
            equal(parts, names)
            # A row whose first column is null has no entry.
            equal(c.scan("|", "count", "groups", 1, "index", late), [f"{age}\t{ages[age]}" for age in range(3)])
            equal(c.scan("|", "count", "groups", 2, "index", number, "eq", "name 3", "|"),
                  [line for line in by_pair if line.startswith("name 3\t")])
            equal(c.scan("|", "count", "groups", 1, "index", number, "from", ">=", "name 5", "|"), by_name[5:])
            equal(c.scan("|", "count", "index", number, "eq", "name 3", "|"), [f"{names['name 3']}\t"])
            equal(c.scan("|", "count", "index", number, "eq", "x" * 3000, "|"), ["0\t"])
            equal(c.scan("|", "count", "groups", 1, "index", number, "reverse"), by_name[::-1])
            equal(c.scan("|", "count", "groups", 1, "index", number, "where", "age", "=", 1),
                  [f"name {n}\t{pairs[f'name {n}', 1]}" for n in range(7)])
            equal(c.scan("age", "id", "|", "sums", 2, 4, "groups", 1, "index", number),
                  [f"name {n}\t{names[f'name {n}']}\t{sum(age or 0 for _, name, age in rows if name == f'name {n}')}"
                   f"\t{max(k for k, name, _ in rows if name == f'name {n}')}" for n in range(7)])
            # 1.0 and 1.00 have one entry.
            c.fails("0A000", "scan", "|", "count", "groups", 1, "index", pays)
            c.fails("42P16", "scan", "|", "count", "groups", 3, "index", number)
            cql.query("INSERT INTO s.people (frond_all, id, name, age) VALUES (0, 0, 'name 0', null)")
        c.write(PUT, ["name"], ([9000], ["y" * 3000]), ([9001], ["y" * 3000]))
        equal(c.scan("|", "count", "groups", 1, "index", number)[-1], "y" * 3000 + "\t2")
        c.do("empty", "s", "people")
        c.write(INSERT, ["name"], ([9000], ["y" * 3000]), ([9001], ["z"]))
        c.fails("0A000", "scan", "|", "count", "groups", 1, "index", number)
        equal(c.scan("|", "count", "groups", 1, "index", number, "from", ">=", "z", "|"), ["z\t1"])
        equal(server.stop(), 0)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def writers_that_do_not_know_end_the_count(cwd):
    with Door(cwd, "--cql", "127.0.0.1:0") as server, Session(server) as c, Cql(server) as cql:
        shop(c)
        # What expires is counted by nobody.
        put_many(c, 3000)
        for seconds in (1000, 0):
            cql.query(f"ALTER TABLE shop.books WITH default_time_to_live = {seconds}")
            assert not is_counted(c)
            cql.query("TRUNCATE shop.books")
            put_many(c, 3000)
            equal(is_counted(c), not seconds)
            equal(c.scan("|", "count"), ["3000\t"])
        for text in ("UPDATE shop.books SET title = 'x' WHERE frond_all = 0 AND id = 9000",
                     "INSERT INTO shop.books (frond_all, id, title) VALUES (0, 9000, 'x')",
                     "INSERT INTO shop.books (frond_all, id) VALUES (0, 9000) USING TTL 1000",
                     "DELETE FROM shop.books WHERE frond_all = 0 AND id = 2999",
                     "DELETE FROM shop.books WHERE frond_all = 0 AND id > 2998",
                     "DELETE FROM shop.books WHERE frond_all = 0",
                     "DELETE FROM shop.books USING TIMESTAMP 1 WHERE frond_all = 0 AND id = 7"):
            put_many(c, 3000)
            assert is_counted(c), text
            # The transaction was begun while the table was counted.
            c.do("begin")
            c.write(INSERT, ["title"], ([8000], ["x"]))
            cql.query(text)
            assert not is_counted(c) or "DELETE FROM shop.books WHERE frond_all = 0" == text, text
            c.fails("40001", "commit")
            equal(c.scan("|", "count"), [f"{len(c.scan('id', '|'))}\t"])
            c.write(PUT, ["title"], ([1], ["y"]), ([9001], ["y"]))
            c.do("write", DELETE, "|", 3)
            equal(c.scan("|", "count"), [f"{len(c.scan('id', '|'))}\t"])
            cql.query("TRUNCATE shop.books")
        equal(server.stop(), 0)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_table_that_has_lost_rows_is_salvaged_with_the_number_of_those_it_has(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        c.write(PUT, ["title"], *(([n], [noise(n + 1, 10)]) for n in range(3000)))
        assert is_counted(c)
        equal(server.stop(), 0)
    ok("compact", "--store", "embedded:data", cwd=cwd)
    path = files(cwd / "data", ".sst")[-1]
    lost = set()
    for place in range(2, 7):
        for directory in ("bad", "new"):
            shutil.rmtree(cwd / directory, ignore_errors=True)
        shutil.copytree(cwd / "data", cwd / "bad")
        flip(cwd / "bad" / path.relative_to(cwd / "data"), path.stat().st_size * place // 8)
        run("salvage", "--quiet", "embedded:bad", "embedded:new", cwd=cwd)
        with Door(cwd, "--store", "embedded:new") as server, Session(server) as c:
            c.do("use", "shop", "books")
            found = len(c.scan("id", "|"))
            equal(c.scan("|", "count"), [f"{found}\t"])
            c.write(PUT, ["title"], ([9000], ["x"]))
            equal(c.scan("|", "count"), [f"{found + 1}\t"])
            lost.add(3000 - found)
            equal(server.stop(), 0)
    assert max(lost) > 0, lost


@test
def rows_are_estimated_beside_a_transaction(cwd):
    with Door(cwd, "--cql", "127.0.0.1:0") as server, Session(server) as c, Session(server) as other, Cql(server) as cql:
        c.fails("42P01", "estimate", "shop", "books")
        shop(c)
        equal(c.do("estimate", "shop", "books"), ["0 exactly"])
        # As one that is not counted.
        cql.query("DELETE FROM shop.books WHERE frond_all = 0 AND id = 7")
        put_books(c, 500)
        equal(c.do("estimate", "shop", "books"), ["500 exactly"])
        for first in range(500, 3000, 500):
            c.write(PUT, ["title", "price"], *(([first + n], ["a book", "1.50"]) for n in range(500)))
        rows, how = c.do("estimate", "shop", "books")[0].split()
        assert how == "about" and 1000 < int(rows) < 9000, (rows, how)
        # It reads nothing that a commit would be checked for, and sees what is committed.
        other.do("use", "shop", "books")
        c.do("begin")
        c.do("write", DELETE, "|", 7)
        c.do("estimate", "shop", "books")
        put_books(other, 5)
        c.do("commit")
        equal(c.scan("id", "|", "to", "<", 9), ["0", "1", "2", "3", "4", "5", "6", "8"])


@test
def a_server_of_version_2_estimates_nothing(cwd):
    listener = socket.create_server(("127.0.0.1", 0))
    server = type("Old", (), {"port": listener.getsockname()[1]})

    def greet():
        with listener.accept()[0] as conn:
            number = conn.recv(100)[6:8]
            conn.sendall(struct.pack(">IBB", 9, 128, 0) + number + struct.pack(">HIBH", 2, 1 << 20, 0, 0))
            conn.recv(100)

    with listener:
        thread = threading.Thread(target=greet)
        thread.start()
        with Session(server) as c:
            contains(c.fails("0A000", "estimate", "shop", "books").text, "no estimates")
        thread.join()


@test
def at_a_unix_socket_a_client_is_woken_by_answers_alone(cwd):
    """Not by the server that reads the request: whoever waits would be switched to for nothing."""
    def greet():
        conn = listener.accept()[0]
        number = conn.recv(100)[6:8]
        conn.sendall(struct.pack(">IBB", 9, 128, 0) + number + struct.pack(">HIBH", 2, 1 << 20, 0, 0))
        taken.append(conn)

    def told(what):
        return re.search(rf"^{what}:\s*(\S+)", (pathlib.Path("/proc") / str(c.process.pid) / "status").read_text(), re.M)[1]

    taken, path = [], cwd / "server.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=greet)
        thread.start()
        with Session(type("Other", (), {"port": "none"}), host=path) as c:
            thread.join()
            with taken[0] as conn:
                c.send("ping")
                conn.recv(1, socket.MSG_PEEK)
                until(lambda: told("State") == "S")
                slept = told("voluntary_ctxt_switches")
                number = conn.recv(100)[6:8]
                time.sleep(0.2)
                equal(told("voluntary_ctxt_switches"), slept)
                conn.sendall(struct.pack(">IBB", 0, 128, 0) + number)
                equal(c.read(), [])


@test
def counters_and_slow_requests_are_told(cwd):
    with Door(cwd) as server, Session(server) as c:
        shop(c)
        c.fails("42P01", "describe", "shop", "none")
        text = metrics(server)
        for name in ("frond_rows_requests_total", "frond_rows_failures_total 1", "frond_rows_conflicts_total 0",
                     'door="rows",class="schema"'):
            contains(text, name)


main()
