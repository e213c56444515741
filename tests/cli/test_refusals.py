"""Whatever a client sends, what it gets is JSON: names, parameters, headers and bodies of any bytes."""

import json
import random
import socket
import urllib.parse

from harness import Server, equal, main, test

SEED = 20

# Every place of a request whose text an answer may show. {} is where the bytes go.
TARGETS = [
    ("PUT", "/{}"), ("GET", "/{}"), ("DELETE", "/{}"), ("GET", "/{}/a"), ("PUT", "/db/{}"),
    ("GET", "/db/{}"), ("GET", "/db/_{}"), ("PUT", "/db/_{}"), ("GET", "/db/_design/{}/x"),
    ("GET", "/db/_design/{}/_view/{}"), ("GET", "/db/_local/{}"), ("PUT", "/db/_local/{}"),
    ("PUT", "/db/a/{}"), ("PUT", "/db/a/_{}"), ("GET", "/db/a/{}"), ("DELETE", "/db/a/{}"),
    ("GET", "/db/a?rev={}"), ("GET", "/db/a?open_revs={}"), ("GET", "/db/a?atts_since={}"),
    ("GET", "/db/a?path={}"), ("GET", "/db/a?paths={}"), ("GET", "/db/a?paths=[%22{}%22]"),
    ("PUT", "/db/a?rev={}"), ("DELETE", "/db/a?rev={}"), ("PUT", "/db/b?new_edits={}"),
    ("GET", "/db/_all_docs?limit={}"), ("GET", "/db/_all_docs?descending={}"),
    ("GET", "/db/_all_docs?startkey={}"), ("GET", "/db/_all_docs?keys={}"),
    ("GET", "/db/_all_docs?stale={}"), ("GET", "/db/_all_docs?update={}"),
    ("GET", "/db/_all_docs?keys=[%22{}%22]"), ("GET", "/db/_changes?feed={}"),
    ("GET", "/db/_changes?since={}"), ("GET", "/db/_changes?filter={}"),
    ("GET", "/db/_changes?filter=_doc_ids&doc_ids={}"), ("GET", "/db/_changes?heartbeat={}"),
    ("GET", "/db/_changes?filter=_view&view={}"), ("GET", "/db/_changes?limit={}"),
    ("GET", "/_all_dbs?limit={}"), ("GET", "/_all_dbs?startkey={}"), ("GET", "/_uuids?count={}"),
    ("GET", "/_node/{}/_config"), ("GET", "/_node/_local/_config/{}"), ("GET", "/_scheduler/docs/{}"),
    ("GET", "/_node/_local/_config/{}/{}"), ("GET", "/_db_updates?since={}"),
    ("COPY", "/db/{}"), ("PATCH", "/db/{}"), ("POST", "/db/{}"), ("GET", "/{}?{}={}"),
]
HEADERS = [
    "Transfer-Encoding", "Expect", "Host", "Content-Encoding", "Content-Type", "Accept", "If-Match",
    "If-None-Match", "Authorization", "Cookie", "Destination", "Range", "X-HTTP-Method-Override",
    "X-Couch-Request-ID", "X-Couch-Full-Commit", "Origin", "Access-Control-Request-Method",
    "Content-Length", "Content-MD5", "Upgrade", "Connection", "X-Forwarded-Host", "Last-Event-ID",
    "X-CouchDB-WWW-Authenticate",
]
# JSON bodies; {} is the content of a JSON string.
BODIES = [
    ("PUT", "/db/c", '{{"_{}":1}}'), ("PUT", "/db/c", '{{"_id":"{}"}}'),
    ("PUT", "/db/c", '{{"_rev":"{}"}}'), ("PUT", "/db/c", '{{"a":1,"_attachments":{{"{}":1}}}}'),
    ("PUT", "/db/c", '{{"_attachments":{{"{}":{{"data":"{}"}}}}}}'),
    ("PUT", "/db/c", '{{"_attachments":{{"{}":{{"stub":true}}}}}}'),
    ("PUT", "/db/_design/d", '{{"views":{{"{}":1}}}}'),
    ("PUT", "/db/_design/d", '{{"views":{{"{}":{{"map":"x","reduce":"_{}"}}}}}}'),
    ("POST", "/db/_bulk_docs", '{{"docs":[{{"_id":"{}","_rev":"{}"}}]}}'),
    ("POST", "/db/_bulk_get", '{{"docs":[{{"id":"{}","rev":"{}"}}]}}'),
    ("POST", "/db/_revs_diff", '{{"{}":["{}"]}}'), ("POST", "/db/_purge", '{{"{}":["{}"]}}'),
    ("POST", "/db/_all_docs", '{{"keys":["{}"],"limit":"{}"}}'),
    ("POST", "/db/_all_docs/queries", '{{"queries":[{{"descending":"{}"}}]}}'),
    ("POST", "/db/_changes?filter=_selector", '{{"selector":{{"${}":1}}}}'),
    ("POST", "/db/_changes?filter=_selector", '{{"selector":{{"a":{{"${}":"{}"}}}}}}'),
    ("POST", "/db/_changes?filter=_selector", '{{"selector":{{"a":{{"$regex":"{}("}}}}}}'),
    ("POST", "/db/_changes?filter=_selector", '{{"selector":{{"{}..":1}},"fields":["{}"]}}'),
    ("POST", "/_dbs_info", '{{"keys":["{}"]}}'), ("PUT", "/db/_security", '{{"admins":{{"names":"{}"}}}}'),
    ("POST", "/_session", '{{"name":"{}","password":"{}"}}'), ("PUT", "/db/_scheme", '"{}"'),
    ("POST", "/_replicate", '{{"source":"{}","target":"{}"}}'), ("PUT", "/db/_revs_limit", '"{}"'),
    ("PUT", "/_node/_local/_config/log/level", '"{}"'),
]


def talk(server, request):
    """The status and the body of the answer to a raw request; None if there is none."""
    host, port = server.url[len("http://"):].split(":")
    with socket.create_connection((host, int(port)), timeout=60) as s:
        s.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            piece = s.recv(65536)
            if not piece:
                return None
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        headers = {k.strip().lower(): v.strip() for k, v in (x.split(b":", 1) for x in lines[1:])}
        status = int(lines[0].split()[1])
        if status < 200:
            return talk_rest(s, body)
        if b"content-length" in headers:
            while len(body) < int(headers[b"content-length"]):
                body += s.recv(65536)
        elif headers.get(b"transfer-encoding") == b"chunked":
            while not body.endswith(b"0\r\n\r\n"):
                body += s.recv(65536)
            body = unchunk(body)
        return status, headers, body


def talk_rest(s, data):
    s.settimeout(60)
    while b"\r\n\r\n" not in data:
        data += s.recv(65536)
    head, body = data.split(b"\r\n\r\n", 1)
    status = int(head.split()[1])
    length = int(head.lower().split(b"content-length:")[1].split()[0])
    while len(body) < length:
        body += s.recv(65536)
    return status, {b"content-type": b"application/json"}, body


def unchunk(data):
    body = b""
    while data:
        size, data = data.split(b"\r\n", 1)
        body += data[:int(size, 16)]
        data = data[int(size, 16) + 2:]
    return body


def is_json(what, answer):
    assert answer, f"{what!r}: no answer"
    status, headers, body = answer
    # An icon, say, or an attachment.
    if status == 304 or (status < 400 and headers.get(b"content-type") != b"application/json"):
        return status
    try:
        value = json.loads(body.decode())
    except ValueError as error:
        raise AssertionError(f"{what!r}: {status} {body!r}: {error}") from None
    if status >= 400:
        assert isinstance(value["error"], str) and isinstance(value["reason"], str), (what, body)
        assert value["error"] and len(body) < 8192, (what, body)
        # A replication that fails is answered as CouchDB does it.
        assert status < 500 or status == 501 or b"/_replicate" in str(what).encode(), (what, status, body)
    return status


PIECES = [b'"', b"\\", b"\0", b"\x01", b"\x1f", b"\x7f", b"\xff", b"\xc3", b"\xc3\xa9", b"\xed\xa0\x80",
          b"\xf4\x90\x80\x80", b"\xe2\x82", b"'", b"/", b"%", b"{", b"}", b"[", b",", b"a", b"\n", b"\r\n",
          b"\\u0000", b"\xf0\x9f\x98\x80", b" ", b"<", b"x" * 300, b"\xe2\x82\xac" * 120]


def any_bytes(rng):
    return b"".join(rng.choice(PIECES) if rng.random() < 0.8 else bytes([rng.randrange(256)])
                    for _ in range(rng.randrange(1, 9)))


def request_of(method, target, headers=b"", body=b""):
    return (method.encode() + b" " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
            headers + (b"Content-Length: %d\r\n" % len(body) if body or method in ("PUT", "POST") else b"") +
            b"\r\n" + body)


def prepare(server):
    equal(server.request("PUT", "/db")[0], 201)
    equal(server.request("PUT", "/db/a", {"x": [1, {"y": 2}]})[0], 201)


@test
def a_name_with_a_nul_is_shown_as_a_whole(cwd):
    with Server(cwd, "--no-sync") as server:
        status, _, body = talk(server, request_of("PUT", b"/a%00b%ff%22"))
        equal(status, 400)
        assert "'a\\x00b\\xff\"'" in json.loads(body)["reason"], body


@test
def refusals_of_codings_and_expectations_are_json(cwd):
    with Server(cwd, "--no-sync") as server:
        for line, code in [(b'Transfer-Encoding: "gzip"\\', 501), (b'Expect: "200-\\maybe"', 417)]:
            status, _, body = talk(server, request_of("GET", b"/db", line + b"\r\n"))
            equal(status, code)
            assert json.loads(body)["reason"], body


@test
def any_bytes_in_a_target_are_answered_in_json(cwd):
    rng = random.Random(SEED)
    with Server(cwd, "--no-sync") as server:
        prepare(server)
        for method, template in TARGETS * 5:
            parts = template.encode().split(b"{}")
            target = parts[0] + b"".join(
                urllib.parse.quote_from_bytes(any_bytes(rng)).encode() + p for p in parts[1:])
            is_json((method, target), talk(server, request_of(method, target)))


@test
def any_bytes_in_a_header_are_answered_in_json(cwd):
    rng = random.Random(SEED)
    with Server(cwd, "--no-sync") as server:
        prepare(server)
        for name in HEADERS * 8:
            value = any_bytes(rng)
            method, target = rng.choice([("PUT", b"/db/h"), ("GET", b"/db/a"), ("POST", b"/db"),
                                         ("GET", b"/db/_changes"), ("OPTIONS", b"/db"), ("COPY", b"/db/a")])
            line = name.encode() + b": " + value + b"\r\n"
            request = request_of(method, target, line, b"{}" if method in ("PUT", "POST") else b"")
            answer = talk(server, request)
            # A length that is no number leaves it open where the request ends.
            if answer or name not in ("Content-Length", "Transfer-Encoding"):
                is_json((method, target, line), answer)


@test
def any_text_in_a_body_is_answered_in_json(cwd):
    rng = random.Random(SEED)
    with Server(cwd, "--no-sync") as server:
        prepare(server)
        for method, target, template in BODIES * 8:
            whole = rng.random() < 0.7
            holes = []
            for _ in range(template.count("{}")):
                text = any_bytes(rng)
                holes.append(json.dumps(text.decode("utf-8", "replace"))[1:-1].encode() if whole else text)
            body = template.replace("{}", "\0").replace("{{", "{").replace("}}", "}").encode()
            for hole in holes:
                body = body.replace(b"\0", hole, 1)
            headers = b"Content-Type: application/json\r\n"
            is_json((method, target, body), talk(server, request_of(method, target.encode(), headers, body)))


@test
def parameters_of_the_scheduler_are_checked(cwd):
    with Server(cwd, "--no-sync") as server:
        equal(server.request("PUT", "/_replicator")[0], 201)
        numbers = ["-1", "1.5", "", "x", "1e999", "NaN", "%00", "-" + "9" * 10000]
        for path in "/_scheduler/jobs", "/_scheduler/docs":
            for name in "limit", "skip":
                for value in numbers:
                    is_refused(server, f"{path}?{name}={value}")
                for value in "0", "%2B7", "18446744073709551616", "9" * 10000:
                    equal(server.request("GET", f"{path}?{name}={value}")[0], 200)
        for value in "x", "completed,x", "%ff", "%00":
            is_refused(server, f"/_scheduler/docs?states={value}")
        for value in "", "completed", "FAILED,Running", ",":
            equal(server.request("GET", f"/_scheduler/docs?states={value}")[0], 200)
        for name in "descending", "include_docs", "reduce", "sorted":
            is_refused(server, f"/_scheduler/docs?{name}=maybe")
            equal(server.request("GET", f"/_scheduler/docs?{name}=FALSE")[0], 200)


def is_refused(server, target):
    status, _, body = talk(server, request_of("GET", target.encode()))
    equal((status, json.loads(body)["error"]), (400, "query_parse_error"))


if __name__ == "__main__":
    main()
