"""Documents as large as CouchDB's default takes them: of many small parts, however they are kept,
with indexes, views, filters and validators beside them."""

import json
import os
import urllib.error
import urllib.request

from harness import Server, contains, equal, main, test

MOST = 8_000_000  # [couchdb] max_document_size, CouchDB's default


def fitted(make):
    """The largest document that make(n) makes within MOST bytes, but for its last element."""
    empty = len(make(0))
    return make((MOST - empty) // (len(make(2)) - len(make(1))))


def text(value):
    return json.dumps(value, separators=(",", ":"))


SHAPES = {
    "string": lambda n: text({"k": "string", "v": "x" * n}),
    "numbers": lambda n: text({"k": "numbers", "v": [7] * n}),
    "members": lambda n: text({"k": "members", "v": {f"m{i:06}": True for i in range(n)}}),
}

DESIGN = {
    "views": {"v": {"map": "function (doc) { emit(doc.k, 1); }", "reduce": "_sum"}},
    "filters": {"f": "function (doc) { return doc.k === 'numbers'; }"},
    "validate_doc_update": "function (doc) { if (doc.no) throw {forbidden: 'no'}; }",
}


WITH_FUNCTIONS = "FROND_JS_WORKER" in os.environ


def expect(server, code, method, path, body=None):
    """The JSON of an answer; `body` is a text, or what becomes one."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    data = None if body is None else (body if isinstance(body, str) else text(body)).encode()
    request = urllib.request.Request(server.url + path, data=data, method=method,
                                     headers={"Content-Type": "application/json"})
    try:
        with opener.open(request, timeout=200) as answer:
            status, got = answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        status, got = error.code, json.load(error)
    assert status == code, (method, path, status, str(got)[:300])
    return got


def stays_the_same(server, db, name, document, functions):
    """Writes a document, reads it in all ways, replaces it, and deletes it."""
    path = f"/{db}/{name}"
    rev = expect(server, 201, "PUT", path, document)["rev"]
    read = expect(server, 200, "GET", path)
    equal({m: v for m, v in read.items() if m[0] != "_"} == json.loads(document), True)
    query = {"selector": {"k": name}, "fields": ["k", "_id"]}
    equal(expect(server, 200, "POST", f"/{db}/_find", query)["docs"], [{"_id": name, "k": name}])
    whole = expect(server, 200, "POST", f"/{db}/_find", {"selector": {"k": name}})["docs"]
    equal(whole == [read], True)
    if functions and WITH_FUNCTIONS:
        rows = expect(server, 200, "GET", f'/{db}/_design/d/_view/v?reduce=false&key="{name}"')["rows"]
        equal(rows, [{"id": name, "key": name, "value": 1}])
        changes = expect(server, 200, "GET", f"/{db}/_changes?filter=d/f")["results"]
        equal(name in [row["id"] for row in changes], name == "numbers")
    got = expect(server, 200, "POST", f"/{db}/_bulk_get", {"docs": [{"id": name, "rev": rev}]})
    equal(got["results"][0]["docs"][0]["ok"] == read, True)
    rows = expect(server, 200, "GET", f'/{db}/_all_docs?include_docs=true&key="{name}"')["rows"]
    equal(rows[0]["doc"] == read, True)
    expect(server, 201, "PUT", f"{path}?rev={rev}", document)
    answer = expect(server, 200, "GET", path)
    expect(server, 200, "DELETE", f"{path}?rev={answer['_rev']}")
    equal(expect(server, 200, "POST", f"/{db}/_find", query)["docs"], [])


def prepare(server, db, scheme, functions):
    expect(server, 201, "PUT", f"/{db}?scheme={scheme}")
    expect(server, 200, "POST", f"/{db}/_index", {"index": {"fields": ["k"]}})
    expect(server, 200, "POST", f"/{db}/_index", {"index": {"fields": ["v"]}})
    if functions and WITH_FUNCTIONS:
        expect(server, 201, "PUT", f"/{db}/_design/d", DESIGN)


@test
def documents_of_any_shape_are_as_large_as_in_couchdb(directory):
    with Server(directory) as server:
        prepare(server, "packed", "packed", False)
        stays_the_same(server, "packed", "numbers", fitted(SHAPES["numbers"]), False)
        prepare(server, "exploded", "exploded", False)
        stays_the_same(server, "exploded", "members", fitted(SHAPES["members"]), False)


@test
def functions_are_given_documents_as_large(directory):
    with Server(directory) as server:
        prepare(server, "called", "packed", True)
        stays_the_same(server, "called", "string", fitted(SHAPES["string"]), True)


@test
def a_larger_one_is_refused_by_the_limits_name(directory):
    with Server(directory) as server:
        expect(server, 201, "PUT", "/db")
        fits = text({"v": "x" * (MOST - 8)})
        expect(server, 201, "PUT", "/db/fits", fits)
        refused = expect(server, 413, "PUT", "/db/more", text({"v": "x" * (MOST - 7)}))
        equal(refused["error"], "document_too_large")
        contains(refused["reason"], "8000000 bytes")
        equal(server.metrics()['frond_refusals_total{limit="max_document_size"}'], 1)
        # Together they are more than a transaction holds.
        docs = [{"_id": f"{i}", "v": "x" * 7_000_000} for i in range(3)]
        rows = expect(server, 201, "POST", "/db/_bulk_docs", {"docs": docs})
        equal([row.get("ok") for row in rows], [True] * 3)
        replicated = expect(server, 200, "POST", "/_replicate", {
            "source": "db", "target": "copy", "create_target": True})
        equal(replicated["history"][0]["docs_written"], 4)


main()
