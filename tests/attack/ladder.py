#!/usr/bin/env python3
"""
The size ladder: what a list of n elements costs at every endpoint that takes or returns one, what a
document (JSON) of n values costs at each command of Redis's door, and what rows, columns, elements and
statements cost at Cassandra's door.

Starts a frond of its own for each endpoint, climbs n = 10 … 10^6, and prints a table: the time at each
n, the exponent of growth, the most resident memory, and what a light reader at the side had of it. With
--write it puts the table of endpoints between the markers of docs/LIMITS.md; rows of commands and of
statements are printed.
"""

import argparse
import http.client
import json
import math
import multiprocessing
import pathlib
import re
import sys
import time

import others
import server
import unread_cql

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from resp import Client, Error  # noqa: E402  a client of Redis's protocol

MIB = 1024 * 1024
NS = [10, 100, 1000, 10 ** 4, 10 ** 5, 10 ** 6]
SHOWN = 2000           # bytes of an answer that are kept
SIDE_PAUSE = 0.002     # between two requests of the reader at the side
LONGEST = 25.0         # a rung that is expected to take longer is left out
LEAST = 0.004          # shorter times tell nothing about growth
EXPONENT = 1.1
BEGIN, END = "<!-- ladder: begin -->", "<!-- ladder: end -->"
LIMITS = re.compile(r"max_http_request_size|max_document_size|request_bytes|memory_bytes|request_steps"
                    r"|header_bytes|CQL_[A-Z_]+|FRAME_BYTES|SELECT_[A-Z_]+|TABLE_[A-Z_]+|TIMED_[A-Z_]+|JSONPATH_[A-Z]+|JTREE_DEPTH|limit[^.:]*? (?:is|of) [0-9]+|(?:more than|at most) [0-9]+ [A-Za-z]+"
                    r"|[0-9]+ bytes")


class Rung:
    """One endpoint and what n counts. `make(n)` gives method, path, body and perhaps headers."""

    def __init__(self, name, counts, make, most=10 ** 6, prepare=None, why=""):
        self.name, self.counts, self.make, self.most = name, counts, make, most
        self.prepare, self.why = prepare, why

    def fill(self, frond, n):
        if self.prepare:
            self.prepare(frond, n)

    def ask(self, frond, n):
        return ask(frond, *self.make(n))


class CommandRung(Rung):
    """
    One command of Redis's door. `make(n)` gives its words, and `prepare(client, n)` what it needs. An
    answer counts as HTTP's 200, an error as 400, so that both kinds are judged alike.
    """

    def fill(self, frond, n):
        if self.prepare:
            with frond.redis() as client:
                self.prepare(client, n)

    def ask(self, frond, n):
        words = self.make(n)
        begin = time.monotonic()
        try:
            with frond.redis() as client:
                begin = time.monotonic()
                try:
                    answer = client(*words)
                    status, head = 200, repr(answer)[:SHOWN].encode()
                except Error as error:
                    status, head = 400, json.dumps({"reason": str(error)}).encode()
                return status, head, time.monotonic() - begin
        except (OSError, EOFError) as error:
            return None, repr(error).encode(), time.monotonic() - begin


class StatementRung(Rung):
    """
    One statement of Cassandra's door. `make(n)` gives its text, or a frame, and `prepare(client, n)` what
    it needs. Answers count as those of commands do.
    """

    def fill(self, frond, n):
        with frond.cql() as client:
            client(f"CREATE KEYSPACE k {unread_cql.REPLICATION}")
            if self.prepare:
                self.prepare(client, n)

    def ask(self, frond, n):
        what = self.make(n)
        begin = time.monotonic()
        try:
            with frond.cql() as client:
                begin = time.monotonic()
                try:
                    answer = client.ask(what if isinstance(what, bytes) else unread_cql.query(what))
                    status, head = 200, answer[:SHOWN]
                except unread_cql.Refused as error:
                    status, head = 400, json.dumps({"reason": str(error)}).encode()
                return status, head, time.monotonic() - begin
        except (OSError, EOFError) as error:
            return None, repr(error).encode(), time.monotonic() - begin


def listed(n, form="{}", separator=","):
    return separator.join(form.format(i) for i in range(n))


def post(path, before, form, after, **options):
    return lambda n: ("POST", path, before + listed(n, form) + after)


def fill(frond, n, name="db", form='{{"_id":"d{}"}}'):
    """A database with n small documents."""
    frond.must("PUT", f"/{name}")
    for begin in range(0, n, 20000):
        docs = ",".join(form.format(i) for i in range(begin, min(n, begin + 20000)))
        frond.must("POST", f"/{name}/_bulk_docs", f'{{"docs":[{docs}]}}')


def thousand(frond, _n):
    fill(frond, 1000)


VIEW = "/db/_design/v/_view/v"


def viewed(frond, n):
    """n documents, and a view of them that has been built."""
    fill(frond, n)
    frond.must("PUT", "/db/_design/v", json.dumps({"views": {"v": {
        "map": "(doc) => { emit(doc._id, 1); }", "reduce": "_count"}}}))
    frond.must("GET", VIEW)


NUMBERED = '{{"_id":"d{0}","n":{0}}}'


def indexed(frond, n):
    """n documents, and an index of them that has been built."""
    fill(frond, n, form=NUMBERED)
    frond.must("POST", "/db/_index", {"index": {"fields": ["n"]}})
    frond.must("POST", "/db/_find", {"selector": {"n": {"$gte": 0}}, "limit": 1})


def many_indexes(frond, n):
    fill(frond, 10, form=NUMBERED)
    for i in range(n):
        frond.must("POST", "/db/_index", {"index": {"fields": [f"f{i}"]}, "ddoc": f"i{i}",
                                          "name": f"i{i}"})


STUB = '"_attachments":{{"a":{{"stub":true}}}}'


def with_attachments(frond, n):
    with_branches(frond, n, ',"_attachments":{"a":{"data":"YQ==","content_type":"image/png"}}')


def with_branches(frond, n, more=""):
    frond.must("PUT", "/db")
    for begin in range(0, n, 5000):
        docs = ",".join(f'{{"_id":"d","_rev":"1-{i:032x}"{more}}}' for i in range(begin, min(n, begin + 5000)))
        frond.must("POST", "/db/_bulk_docs", f'{{"new_edits":false,"docs":[{docs}]}}')


def nested(frond, _n):
    """A document that is as deep as any may be, with the members 0 … 999 beside that."""
    members = listed(1000, '"{0}":{0}')
    depth = 500
    frond.must("PUT", "/db")
    frond.must("PUT", "/db/deep", "{" + members + ',"a":' + '{"a":' * depth + "1" + "}" * depth + "}")


def databases(frond, n):
    for i in range(n):
        frond.must("PUT", f"/n{i}")


def rungs():
    hexes = '"1-{:032x}"'
    keys = '"d{}"'
    return [
        Rung("`POST _all_docs`", "keys that are there", lambda n: (
            "POST", "/db/_all_docs", '{"keys":[' + ",".join(f'"d{i % 1000}"' for i in range(n)) + "]}"),
            prepare=thousand),
        Rung("`POST _all_docs`", "keys that are not there",
             post("/db/_all_docs", '{"keys":[', '"x{}"', "]}"), prepare=thousand),
        Rung("`POST _all_docs?include_docs=true`", "keys that are there", lambda n: (
            "POST", "/db/_all_docs?include_docs=true",
            '{"keys":[' + ",".join(f'"d{i % 1000}"' for i in range(n)) + "]}"), prepare=thousand),
        Rung("`POST _all_docs/queries`", "queries",
             post("/db/_all_docs/queries", '{"queries":[', '{{"limit":1,"skip":{0}}}', "]}"),
             prepare=lambda f, n: fill(f, 10)),
        Rung("`POST _view`", "keys that are there", lambda n: (
            "POST", VIEW + "?reduce=false",
            '{"keys":[' + ",".join(f'"d{i % 1000}"' for i in range(n)) + "]}"),
             prepare=lambda f, n: viewed(f, 1000)),
        Rung("`POST _view?group=true`", "keys that are not there",
             post(VIEW + "?group=true", '{"keys":[', '"x{}"', "]}"),
             prepare=lambda f, n: viewed(f, 1000)),
        Rung("`POST _view/queries`", "queries",
             post(VIEW + "/queries", '{"queries":[', '{{"limit":1,"skip":{0}}}', "]}"),
             prepare=lambda f, n: viewed(f, 10)),
        Rung("`GET _view`", "rows", lambda n: ("GET", VIEW + "?reduce=false", None), 10 ** 5, viewed),
        Rung("`POST _find`", "documents, without an index", lambda n: (
            "POST", "/db/_find", f'{{"selector":{{"n":{{"$gte":0}}}},"limit":{n}}}'), 10 ** 5,
            lambda f, n: fill(f, n, form=NUMBERED)),
        Rung("`POST _find`", "documents, by an index", lambda n: (
            "POST", "/db/_find", f'{{"selector":{{"n":{{"$gte":0}}}},"limit":{n}}}'), 10 ** 5, indexed),
        Rung("`POST _find`", "values of `$in`, by an index", post(
            "/db/_find", '{"selector":{"n":{"$in":[', "{}", "]}}}"),
            prepare=lambda f, n: indexed(f, 1000)),
        Rung("`POST _find`", "conditions of `$or`", post(
            "/db/_find", '{"selector":{"$or":[', '{{"n":{}}}', "]}}"),
            prepare=lambda f, n: indexed(f, 1000)),
        Rung("`POST _find`", "fields", post(
            "/db/_find", '{"selector":{"n":{"$gte":0}},"fields":[', '"f{}"', "]}"),
            prepare=lambda f, n: indexed(f, 1000)),
        Rung("`POST _find`", "groups of an `aggregate`", lambda n: (
            "POST", "/db/_find",
            '{"selector":{"n":{"$gte":0}},"aggregate":{"group_by":["n"],"count":true},'
            f'"limit":{n}}}'), 10 ** 4, indexed),
        Rung("`POST _explain`", "values of `$in`", post(
            "/db/_explain", '{"selector":{"n":{"$in":[', "{}", "]}}}"),
            prepare=lambda f, n: indexed(f, 1000)),
        Rung("`POST _explain`", "indexes", lambda n: (
            "POST", "/db/_explain", '{"selector":{"n":{"$gte":0}}}'), 1000, many_indexes),
        Rung("`POST _index/_bulk_delete`", "names that are not there", post(
            "/db/_index/_bulk_delete", '{"docids":[', '"_design/x{}"', "]}"), prepare=thousand),
        Rung("`POST _index/_bulk_delete`", "indexes", post(
            "/db/_index/_bulk_delete", '{"docids":[', '"_design/i{}"', "]}"), 1000, many_indexes),
        Rung("`GET _index`", "indexes", lambda n: ("GET", "/db/_index", None), 1000, many_indexes),
        Rung("`POST _design_docs`", "keys", post("/db/_design_docs", '{"keys":[', '"_design/{}"', "]}"),
             prepare=thousand),
        Rung("`POST _local_docs`", "keys", post("/db/_local_docs", '{"keys":[', '"_local/{}"', "]}"),
             prepare=thousand),
        Rung("`GET _all_docs`", "documents", lambda n: ("GET", "/db/_all_docs", None), 10 ** 5, fill),
        Rung("`GET _all_docs?include_docs=true`", "documents",
             lambda n: ("GET", "/db/_all_docs?include_docs=true", None), 10 ** 5, fill),
        Rung("`GET _changes`", "changes", lambda n: ("GET", "/db/_changes", None), 10 ** 5, fill),
        Rung("`POST _changes?filter=_doc_ids`", "ids", post(
            "/db/_changes?filter=_doc_ids", '{"doc_ids":[', keys, "]}"), prepare=thousand),
        Rung("`POST _changes?filter=_selector`", "values of `$in`", post(
            "/db/_changes?filter=_selector", '{"selector":{"_id":{"$in":[', keys, "]}}}"),
            prepare=thousand),
        Rung("`POST _changes?filter=_selector`", "conditions of `$or`", post(
            "/db/_changes?filter=_selector", '{"selector":{"$or":[', '{{"_id":"d{}"}}', "]}}"),
            prepare=thousand),
        Rung("`POST _changes?filter=_selector`", "fields", post(
            "/db/_changes?filter=_selector&include_docs=true", '{"selector":{},"fields":[', '"f{}"', "]}"),
            prepare=thousand),
        Rung("`POST _bulk_docs`", "documents", post("/db/_bulk_docs", '{"docs":[', '{{"_id":"n{}"}}', "]}"),
             prepare=lambda f, n: f.must("PUT", "/db")),
        Rung("`POST _bulk_docs`, `new_edits: false`", "branches of one document", post(
            "/db/_bulk_docs", '{"new_edits":false,"docs":[', '{{"_id":"d","_rev":"1-{:032x}"}}', "]}"),
            10 ** 5, lambda f, n: f.must("PUT", "/db")),
        Rung("`POST _bulk_docs`, `new_edits: false`", "branches with a stub of an attachment", post(
            "/db/_bulk_docs", '{"new_edits":false,"docs":[',
            '{{"_id":"d","_revisions":{{"start":2,"ids":["{0:032x}","{0:032x}"]}},' + STUB + "}}", "]}"),
            10 ** 4, with_attachments),
        Rung("`POST _bulk_get`", "documents", lambda n: (
            "POST", "/db/_bulk_get", '{"docs":[' + ",".join(f'{{"id":"d{i % 1000}"}}' for i in range(n)) + "]}"),
            prepare=thousand),
        Rung("`POST _bulk_get`", "revisions of one document", post(
            "/db/_bulk_get", '{"docs":[', '{{"id":"d1","rev":' + hexes + "}}", "]}"), prepare=thousand),
        Rung("`POST _revs_diff`", "documents", post("/db/_revs_diff", "{", '"d{0}":["1-{0:032x}"]', "}"),
             prepare=thousand),
        Rung("`POST _revs_diff`", "revisions of one document", post(
            "/db/_revs_diff", '{"d1":[', hexes, "]}"), prepare=thousand),
        Rung("`POST _missing_revs`", "revisions of one document", post(
            "/db/_missing_revs", '{"d1":[', hexes, "]}"), prepare=thousand),
        Rung("`POST _purge`", "documents", post("/db/_purge", "{", '"x{0}":["1-{0:032x}"]', "}"),
             prepare=thousand),
        Rung("`POST _purge`", "revisions of one document", post(
            "/db/_purge", '{"d1":[', hexes, "]}"), prepare=thousand),
        Rung("`GET doc?open_revs=all`", "branches", lambda n: (
            "GET", "/db/d?open_revs=all", None, {"Accept": "application/json"}), 10 ** 4, with_branches),
        Rung("`GET doc?conflicts=true`", "branches", lambda n: ("GET", "/db/d?conflicts=true", None),
             10 ** 4, with_branches),
        Rung("`PUT doc`", "members", lambda n: ("PUT", "/db/p", "{" + listed(n, '"m{0}":{0}') + "}"),
             prepare=thousand),
        Rung("`PUT doc`", "elements of an array", lambda n: ("PUT", "/db/p", '{"a":[' + listed(n) + "]}"),
             prepare=thousand),
        Rung("`PUT doc`", "attachments in its JSON", lambda n: (
            "PUT", "/db/p", '{"_attachments":{' + listed(n, '"f{}":{{"data":"YQ=="}}') + "}}"),
            prepare=thousand),
        Rung("`PATCH doc`", "operations", lambda n: (
            "PATCH", "/db/d1", "[" + listed(n, '{{"op":"add","path":"/m{0}","value":{0}}}') + "]",
            {"Content-Type": "application/json-patch+json"}), prepare=thousand),
        Rung("`PUT _security`", "names", lambda n: (
            "PUT", "/db/_security", '{"members":{"names":[' + listed(n, keys) + "]}}"), prepare=thousand),
        Rung("`POST _dbs_info`", "names", post("/_dbs_info", '{"keys":[', keys, "]}"), prepare=thousand),
        Rung("`GET _all_dbs`", "databases", lambda n: ("GET", "/_all_dbs", None), 1000, databases),
        Rung("`GET _dbs_info`", "databases", lambda n: ("GET", "/_dbs_info", None), 1000, databases),
        Rung("`GET doc?path=`", "tokens", lambda n: ("GET", "/db/deep?path=" + "/a" * n, None),
             prepare=nested),
        Rung("`GET doc?paths=`", "paths", lambda n: (
            "GET", "/db/deep?paths=[" + listed(n, "%22/{}%22") + "]", None), prepare=nested),
        Rung("`GET doc?open_revs=`", "revisions", lambda n: (
            "GET", "/db/d1?open_revs=[" + listed(n, "%221-{}%22") + "]", None,
            {"Accept": "application/json"}), prepare=thousand),
        Rung("`GET doc`", "parameters", lambda n: ("GET", "/db/d1?" + listed(n, "p{}=1", "&"), None),
             prepare=thousand),
        Rung("`GET doc`", "headers", lambda n: ("GET", "/db/d1", None, {f"X-{i}": "1" for i in range(n)}),
             prepare=thousand),
        Rung("`GET doc`", "tags of `If-None-Match`", lambda n: (
            "GET", "/db/d1", None, {"If-None-Match": listed(n, '"{}"')}), prepare=thousand),
    ]


# ---- Documents of Redis's door ----

def elements(client, n):
    """A document with an array of n numbers."""
    client("JSON.SET", "d", "$", '{"a":[' + listed(n) + '],"n":1}')


def members(client, n):
    """A document with n members that are objects of one member."""
    client("JSON.SET", "d", "$", "{" + listed(n, '"m{0}":{{"n":{0}}}') + "}")


def many_documents(client, n):
    for begin in range(0, n, 10000):
        client.pipeline(*(("JSON.SET", f"d{i}", "$", '{"n":1}') for i in range(begin, min(n, begin + 10000))))


def command(name, *words, counts, prepare, most=10 ** 6):
    return CommandRung(f"`{name}`", counts, lambda n: words, most, prepare)


def command_rungs():
    of_elements, of_members = "elements of an array", "members"
    return [
        CommandRung("`JSON.SET`", of_elements, lambda n: ("JSON.SET", "d", "$", "[" + listed(n) + "]")),
        CommandRung("`JSON.SET`", of_members, lambda n: (
            "JSON.SET", "d", "$", "{" + listed(n, '"m{0}":{{"n":{0}}}') + "}")),
        command("JSON.SET", "JSON.SET", "d", "$.a[3]", "7", counts=f"{of_elements}, of one", prepare=elements),
        command("JSON.SET", "JSON.SET", "d", "$.*.n", "7", counts=f"{of_members}, below each",
                prepare=members),
        command("JSON.GET", "JSON.GET", "d", counts=of_elements, prepare=elements),
        command("JSON.GET", "JSON.GET", "d", "$.a[3]", counts=f"{of_elements}, of one", prepare=elements),
        command("JSON.GET", "JSON.GET", "d", "$.m3.n", counts=f"{of_members}, of one", prepare=members),
        command("JSON.GET", "JSON.GET", "d", "$..n", counts=f"{of_members}, at any depth", prepare=members),
        command("JSON.GET", "JSON.GET", "d", "$[?(@.n>3)]", counts=f"{of_members}, by a filter",
                prepare=members),
        CommandRung("`JSON.GET`", "paths", lambda n: ("JSON.GET", "d", *["$.a[3]"] * n), prepare=elements),
        CommandRung("`JSON.GET`", "steps of a path", lambda n: ("JSON.GET", "d", "$" + ".a" * n),
                    prepare=lambda c, _: elements(c, 10)),
        command("JSON.TYPE", "JSON.TYPE", "d", "$.*", counts=of_members, prepare=members),
        command("JSON.OBJKEYS", "JSON.OBJKEYS", "d", "$", counts=of_members, prepare=members),
        command("JSON.ARRLEN", "JSON.ARRLEN", "d", "$.a", counts=of_elements, prepare=elements),
        command("JSON.ARRINDEX", "JSON.ARRINDEX", "d", "$.a", "-1", counts=of_elements, prepare=elements),
        CommandRung("`JSON.ARRAPPEND`", "values", lambda n: ("JSON.ARRAPPEND", "d", "$.a", *range(n)),
                    10 ** 6, lambda c, _: elements(c, 10)),
        CommandRung("`JSON.ARRINSERT`", "values in front", lambda n: (
            "JSON.ARRINSERT", "d", "$.a", "0", *range(n)), 10 ** 6, lambda c, _: elements(c, 10)),
        command("JSON.ARRPOP", "JSON.ARRPOP", "d", "$.a", counts=f"{of_elements}, of the last",
                prepare=elements),
        command("JSON.ARRPOP", "JSON.ARRPOP", "d", "$.a", "5", counts=f"{of_elements}, of one in the middle",
                prepare=elements),
        command("JSON.ARRTRIM", "JSON.ARRTRIM", "d", "$.a", "5", "6", counts=of_elements, prepare=elements),
        command("JSON.NUMINCRBY", "JSON.NUMINCRBY", "d", "$.a[*]", "1", counts=of_elements, prepare=elements),
        command("JSON.CLEAR", "JSON.CLEAR", "d", "$.*", counts=of_members, prepare=members),
        command("JSON.DEL", "JSON.DEL", "d", "$.*.n", counts=of_members, prepare=members),
        command("JSON.DEL", "JSON.DEL", "d", counts=of_members, prepare=members),
        CommandRung("`JSON.MERGE`", of_members, lambda n: (
            "JSON.MERGE", "d", "$", "{" + listed(n, '"m{0}":{{"o":{0}}}') + "}"), 10 ** 6, members),
        CommandRung("`JSON.MGET`", "keys", lambda n: ("JSON.MGET", *(f"d{i}" for i in range(n)), "$.n"),
                    10 ** 5, many_documents),
        CommandRung("`JSON.MSET`", "keys", lambda n: (
            "JSON.MSET", *(word for i in range(n) for word in (f"d{i}", "$", "1")))),
    ]


# ---- Tables of Cassandra's door ----

def rows(client, n, table="k.p", columns="k, c, v", form="1, {0}, {0}"):
    """A table with n rows, by default of one partition."""
    client("CREATE TABLE k.p (k int, c int, v int, PRIMARY KEY (k, c))")
    client("CREATE TABLE k.t (k int PRIMARY KEY, v int)")
    for begin in range(0, n, 1000):
        client.ask(unread_cql.batch([f"INSERT INTO {table} ({columns}) VALUES ({form.format(i)})"
                                     for i in range(begin, min(n, begin + 1000))]))


def partitions(client, n):
    rows(client, n, "k.t", "k, v", "{0}, {0}")


def rows_indexed(client, n):
    rows(client, 0)
    client("CREATE INDEX ON k.t (v)")
    for begin in range(0, n, 1000):
        client.ask(unread_cql.batch([f"INSERT INTO k.t (k, v) VALUES ({i}, 1)"
                                     for i in range(begin, min(n, begin + 1000))]))


def collection(kind, form, each="{}"):
    """A table with a row that has a collection of n elements."""
    def prepare(client, n):
        client(f"CREATE TABLE k.l (k int PRIMARY KEY, l {kind})")
        for begin in range(0, n, 10000):
            elements_text = ",".join(each.format(i) for i in range(begin, min(n, begin + 10000)))
            client(f"UPDATE k.l SET l = l + {form.format(elements_text)} WHERE k = 1")
    return prepare


def statement(name, counts, make, prepare, most=10 ** 5):
    return StatementRung(f"`{name}`", counts, make if callable(make) else lambda n: make, most, prepare)


def inserts(n, table="k.t", columns="k, v", form="{0}, {0}"):
    return [f"INSERT INTO {table} ({columns}) VALUES ({form.format(i)})" for i in range(n)]


def statement_rungs():
    of_partition, of_table = "rows of a partition", "rows of a table"
    of_list = collection("list<int>", "[{}]")
    return [
        statement("SELECT", of_partition, "SELECT * FROM k.p WHERE k = 1", rows),
        statement("SELECT", f"{of_partition}, the last", "SELECT * FROM k.p WHERE k = 1 ORDER BY c DESC LIMIT 1",
                  rows),
        statement("SELECT", of_table, "SELECT * FROM k.t", partitions),
        statement("SELECT", f"{of_table}, of which none is wanted",
                  "SELECT * FROM k.t WHERE v = -1 ALLOW FILTERING", partitions),
        statement("SELECT", "rows by an index", "SELECT * FROM k.t WHERE v = 1", rows_indexed),
        statement("SELECT", "partitions that IN names",
                  lambda n: f"SELECT * FROM k.t WHERE k IN ({listed(n)})", partitions),
        statement("SELECT", "rows of a partition that IN names",
                  lambda n: f"SELECT * FROM k.p WHERE k = 1 AND c IN ({listed(n)})", rows),
        statement("SELECT", "columns", lambda n: f"SELECT {listed(n, 'v')} FROM k.t", partitions, 10 ** 4),
        statement("SELECT count(*)", of_table, "SELECT count(*) FROM k.t", partitions),
        statement("SELECT … GROUP BY", of_partition, "SELECT c, max(v) FROM k.p WHERE k = 1 GROUP BY c", rows),
        statement("SELECT … GROUP BY", of_table, "SELECT k, max(v) FROM k.t GROUP BY k", partitions),
        statement("SELECT", "elements of a list", "SELECT l FROM k.l WHERE k = 1", of_list),
        statement("SELECT", "members of a set", "SELECT l FROM k.l WHERE k = 1", collection("set<int>", "{{{}}}")),
        statement("SELECT", "entries of a map", "SELECT l FROM k.l WHERE k = 1",
                  collection("map<int, int>", "{{{}}}", "{0}:{0}")),
        statement("UPDATE", "elements of a list, of one", "UPDATE k.l SET l[5] = 7 WHERE k = 1", of_list),
        statement("UPDATE", "elements of a list, without one", "UPDATE k.l SET l = l - [5] WHERE k = 1", of_list),
        statement("INSERT", "elements of a list",
                  lambda n: f"INSERT INTO k.l (k, l) VALUES (1, [{listed(n)}])",
                  lambda client, n: of_list(client, 0)),
        statement("DELETE", of_partition, "DELETE FROM k.p WHERE k = 1", rows),
        statement("DELETE", f"{of_partition}, a range of them", "DELETE FROM k.p WHERE k = 1 AND c > 3", rows),
        statement("BATCH", "statements", lambda n: unread_cql.batch(inserts(n)), lambda c, n: rows(c, 0)),
        statement("BATCH", "statements of one partition",
                  lambda n: unread_cql.batch(inserts(n, "k.p", "k, c, v", "1, {0}, {0}")),
                  lambda c, n: rows(c, 0)),
        statement("CREATE TABLE", "columns",
                  lambda n: f"CREATE TABLE k.w (k int PRIMARY KEY, {listed(n, 'c{} int')})", None, 10 ** 4),
        statement("TRUNCATE", of_table, "TRUNCATE k.t", partitions),
    ]


# ---- The reader at the side ----

def read_aside(port, ending, results):
    """Reads the welcome again and again; puts when each request began and how long it took."""
    taken = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not ending.is_set():
        begin = time.monotonic()
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()
        taken.append((begin, time.monotonic() - begin))
        time.sleep(SIDE_PAUSE)
    results.send(taken)


def p99_of(taken, since):
    times = sorted(t for begin, t in taken if begin + t >= since)
    return times[min(len(times) - 1, int(len(times) * 0.99))] if times else 0.0


# ---- Climbing ----

def ask(frond, method, path, body, headers=None, timeout=120):
    """Status, the beginning of the answer, seconds. Status None: the connection ended."""
    connection = http.client.HTTPConnection("127.0.0.1", frond.port, timeout=timeout)
    all_headers = {**frond.headers(), **(headers or {})}
    begin = time.monotonic()
    try:
        try:
            connection.request(method, path, body, all_headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a refusal may come before all was sent
        answer = connection.getresponse()
        head = answer.read(SHOWN)
        while answer.read(1 << 20):
            pass
        return answer.status, head, time.monotonic() - begin
    except (OSError, http.client.HTTPException) as error:
        return None, repr(error).encode(), time.monotonic() - begin
    finally:
        connection.close()


def measure(frond, rung, n):
    ending = multiprocessing.Event()
    mine, theirs = multiprocessing.Pipe(False)
    side = multiprocessing.Process(target=read_aside, args=(frond.port, ending, theirs), daemon=True)
    memory = others.Memory(frond)
    side.start()
    memory.start()
    time.sleep(0.05)
    begin = time.monotonic()
    status, head, seconds = rung.ask(frond, n)
    ending.set()
    taken = mine.recv()
    side.join()
    memory.end()
    return {"status": status, "head": head, "seconds": seconds, "rss": memory.peak_bytes,
            "p99": p99_of(taken, begin)}


def climb(rung, options):
    """The rungs that were reached: n and what was measured there."""
    reached = []
    for n in NS:
        if n > min(rung.most, options.max):
            break
        if reached and reached[-1][1]["seconds"] * 10 > options.longest:
            break
        with server.Directory() as directory:
            frond = server.Frond(options.frond, directory, options.memory, 3000)
            try:
                rung.fill(frond, n)
                figures = measure(frond, rung, n)
                figures["alive"] = frond.process.poll() is None
            finally:
                frond.kill()
        reached.append((n, figures))
        if figures["status"] is None or figures["status"] >= 400:
            break
    return reached


def exponent(reached):
    """Least squares over the two upper decades of what was answered and took long enough."""
    points = [(math.log(n), math.log(f["seconds"])) for n, f in reached
              if f["status"] and f["status"] < 400 and f["seconds"] >= LEAST][-3:]
    if len(points) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def refusal(figures):
    """"413 request_bytes", or what else of the reason names the limit."""
    if figures["status"] is None:
        return "cut off: " + figures["head"].decode()[:60]
    if figures["status"] < 400:
        return ""
    try:
        reason = json.loads(figures["head"])["reason"]
    except (ValueError, KeyError):
        return f"{figures['status']}, no reason"
    found = LIMITS.search(reason)
    return f"{figures['status']} {found.group(0) if found else reason[:60]}"


def faults(rung, reached):
    """What must not be, whatever the machine: counts, not seconds."""
    for n, f in reached:
        if f["status"] is None:
            yield f"n = {n}: the answer was cut off: {f['head']!r}"
        elif f["status"] >= 500:
            yield f"n = {n}: {f['status']} {f['head'][:200]!r}"
        elif f["status"] >= 400 and not LIMITS.search(f["head"].decode("utf-8", "replace")):
            yield f"n = {n}: a refusal that names no limit: {f['head'][:200]!r}"
        if not f["alive"]:
            yield f"n = {n}: the server has ended"


def seconds_text(s):
    return f"{s * 1000:.0f} ms" if s < 1 else f"{s:.1f} s"


def row(rung, reached):
    cells = []
    for n in NS:
        f = dict(reached).get(n)
        if not f:
            cells.append("")
        elif f["status"] is None or f["status"] >= 400:
            cells.append(refusal(f))
        else:
            cells.append(seconds_text(f["seconds"]))
    e = exponent(reached)
    return (f"| {rung.name} | {rung.counts} | " + " | ".join(cells) +
            f" | {'' if e is None else f'{e:.2f}'}"
            f" | {max(f['rss'] for _, f in reached) // MIB} MB"
            f" | {seconds_text(max(f['p99'] for _, f in reached))} |")


def table_head():
    return ("| endpoint | n counts | " + " | ".join(f"{n:,}" for n in NS) +
            " | exponent | peak RSS | others' p99 |\n|" + "---|" * (len(NS) + 5))


def write(path, lines):
    text = path.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default="build/frond")
    parser.add_argument("--max", type=int, default=10 ** 6, help="the largest n")
    parser.add_argument("--only", default="", help="endpoints with this in their name")
    parser.add_argument("--memory", type=int, default=384 * MIB)
    parser.add_argument("--longest", type=float, default=LONGEST)
    parser.add_argument("--write", help="the document whose table is replaced")
    options = parser.parse_args()
    options.frond = str(pathlib.Path(options.frond).resolve())
    lines = table_head().split("\n")
    print("\n".join(lines), flush=True)
    bad = []
    for rung in server.of_this_turn(rungs() + command_rungs() + statement_rungs()):
        if options.only not in rung.name + " " + rung.counts:
            continue
        if "_view" in rung.name and not (pathlib.Path(options.frond).parent / "frond-js").exists():
            print(f"# {rung.name} wants frond-js beside the program", flush=True)
            continue
        try:
            reached = climb(rung, options)
        except server.Failure as failure:
            bad.append(f"{rung.name}, {rung.counts}: {failure}")
            print(f"# {bad[-1]}", flush=True)
            continue
        print(row(rung, reached), flush=True)
        if not isinstance(rung, (CommandRung, StatementRung)):
            lines.append(row(rung, reached))
        bad += [f"{rung.name}, {rung.counts}: {fault}" for fault in faults(rung, reached)]
    if options.write:
        write(pathlib.Path(options.write), lines)
    for fault in bad:
        print(f"# {fault}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
