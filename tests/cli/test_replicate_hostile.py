"""Replications whose source or target is hostile: each ends with a reason, and nothing else ends.

One server of ours plays all of them, on 127.0.0.1: the name of a database says what it does."""

import gzip
import json
import socket
import threading
import time
import zlib

from harness import Server, contains, equal, main, test, until

JOB_MEMORY = 16 << 20
BLOCK = b"a" * 65536
CONFIG = f"""[replicator]
connection_timeout = 1000
retries_per_request = 0
job_memory = {JOB_MEMORY}
"""


def head(status=200, **headers):
    lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(value, status=200):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return head(status, Content_Length=len(text)) + text


def forever(begin, piece, pause=0):
    def send(out):
        out(begin)
        while True:
            out(piece)
            time.sleep(pause)
    return send


def bomb(out):
    """A row of 2 GB in a few megabytes."""
    out(head(Content_Encoding="gzip"))
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    out(packer.compress(b'{"results":[\n{"seq":1,"id":"'))
    for _ in range(32768):
        out(packer.compress(BLOCK))
    out(packer.flush())


def changes(*ids):
    return {"results": [{"seq": n, "id": name, "changes": [{"rev": "1-a"}]}
                        for n, name in enumerate(ids, 1)], "last_seq": len(ids), "pending": 0}


def doc(name, **members):
    return {"_id": name, "_rev": "1-a", "_revisions": {"start": 1, "ids": ["a"]}, **members}


def got(name, of=None):
    return {"id": name, "docs": [{"ok": of or doc(name)}]}


LONGER = (b'--o\r\nContent-Type: multipart/related; boundary="i"\r\n\r\n'
          b'--i\r\nContent-Type: application/json\r\n\r\n' +
          json.dumps(doc("d", _attachments={"x": {
              "content_type": "text/plain", "length": 3, "follows": True, "digest": "md5-x",
              "revpos": 1}})).encode() +
          b'\r\n--i\r\n\r\n' + b"x" * 100000 + b'\r\n--i--\r\n--o--')

# What a database answers to the requests whose path contains a text; and the reason of the end.
HOSTILE = {
    "endless-row": ("_changes", forever(head() + b'{"results":[\n{"id":"', BLOCK), "job_memory"),
    "endless-space": ("_changes", forever(head() + b'{"results":[\n', b" " * 65536),
                      "between rows"),
    "endless-commas": ("_changes", forever(head() + b'{"results":[\n' + json.dumps(
        changes("d")["results"][0]).encode(), b"," * 65536),
                       "between rows"),
    "endless-rest": ("_changes", forever(head() + b'{"x":"', BLOCK), "beside its rows"),
    "bomb": ("_changes", bomb, "job_memory"),
    "no-gzip": ("_changes", head(Content_Encoding="gzip", Content_Length=4) + b"1234",
                "not the gzip"),
    "short-gzip": ("_changes", head(Content_Encoding="gzip", Content_Length=20) +
                   gzip.compress(b"[" * 1000)[:20], "ends too early"),
    "other-encoding": ("_changes", head(Content_Encoding="gzip, gzip") + b"1",
                       "Content-Encoding"),
    "redirect-elsewhere": ("_changes", lambda out: out(
        head(302, Location=f"http://127.0.0.1:{other_port()}/x", Content_Length=0)),
        "redirects to another server"),
    "redirect-by-name": ("_changes", lambda out: out(
        head(307, Location=f"http://localhost:{port()}/x", Content_Length=0)),
        "redirects to another server"),
    "redirect-forever": ("_changes", head(302, Location="_changes?x", Content_Length=0),
                         "redirects"),
    "endless-head": ("_changes", forever(b"HTTP/1.1 200 X\r\n", b"X-A: 1\r\n" * 1000), "head"),
    "slow-head": ("_changes", forever(b"HTTP/1.1 200 X\r\n", b"X: 1\r\n", 0.2), "minimum_rate"),
    "slow-body": ("_changes", forever(head() + b'{"results":[\n{"id":"', b"a", 0.2),
                  "minimum_rate"),
    "silent": ("_changes", forever(b"", b"", 1), "no byte has moved"),
    "deep": ("_changes", head() + b'{"results":[\n{"id":' + b"[" * 2000, "cut off"),
    "deep-row": ("_changes", whole(b'{"results":[\n{"id":' + b"[" * 700 + b"]" * 700 + b"}]}"),
                 "nested too deeply"),
    "lying-length": ("_changes", head(Content_Length=1000) + b'{"results":[', "remaining to read"),
    "no-json": ("_changes", whole(b"<html>"), "unexpected '<'"),
    "error-500": ("_changes", whole({}, 500), "http_error_code: 500"),
    "error-401": ("_changes", whole({}, 401), "unauthorized"),
    "long-seq": ("_changes", whole({**changes(), "last_seq": "9" * 20000}), "last_seq exceeds"),
    "longer-seq": ("_changes", whole({**changes(), "last_seq": "9" * 200000}),
                   "beside its rows"),
    "unasked": ("_bulk_get", whole({"results": [got("d"), got("secret")]}), "not asked for"),
    "in-place": ("_bulk_get", whole({"results": [got("d", doc("_design/d"))]}),
                 "another document"),
    "endless-docs": ("_bulk_get", forever(head() + b'{"results":[\n' + json.dumps(
        got("d")).encode(), b"," + json.dumps(got("d")).encode()), "not asked for"),
    "long-attachment": ("open_revs", b"HTTP/1.1 200 X\r\nContent-Type: multipart/mixed; "
                        b'boundary="o"\r\nContent-Length: %d\r\n\r\n' % len(LONGER) + LONGER,
                        "longer than its length"),
    "to-unoffered": ("_revs_diff", whole({"other": {"missing": ["1-a"]}}), "not offered"),
    "to-endless": ("_bulk_docs", forever(head(201) + b"[", BLOCK), "job_memory"),
    "to-deaf": ("_bulk_docs", lambda out: time.sleep(3600), "no byte has moved"),
}
IS_ATTACHMENT = doc("d", _attachments={"x": {"stub": True, "length": 3, "revpos": 1}})
asked_elsewhere = []


def honest(method, path, name):
    if method == "PUT":
        return whole({"ok": True, "rev": "0-1"}, 201)
    if "_local/" in path:
        return whole({"error": "not_found"}, 404)
    if "_ensure_full_commit" in path:
        return whole({"instance_start_time": "0"}, 201)
    if "_changes" in path:
        return whole(changes("d"))
    if "_bulk_get" in path:
        return whole({"results": [got("d", IS_ATTACHMENT if name == "long-attachment" else None)]})
    if "_revs_diff" in path:
        return whole({f"{n:03}": {"missing": ["1-a"]} for n in range(20)})
    return whole({"couchdb": "Welcome", "instance_start_time": "0"})


def serve_one(client):
    try:
        stream = client.makefile("rb")
        while True:
            line = stream.readline().decode().split()
            if not line:
                return
            length = 0
            while (header := stream.readline().strip()):
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            name = line[1].split("/")[1]
            where, answer, _ = HOSTILE.get(name, ("\0", b"", ""))
            if where not in line[1]:
                stream.read(length)
                client.sendall(honest(line[0], line[1], name))
                continue
            if name != "to-deaf":
                stream.read(length)
            if callable(answer):
                answer(client.sendall)
            else:
                client.sendall(answer)
            if name in ("lying-length", "deep", "other-encoding"):
                return
    except OSError:
        pass
    finally:
        client.close()


def listen(handle):
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

    def accept():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=handle, args=(client,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def refuse(client):
    asked_elsewhere.append(client.recv(65536))
    client.close()


PORTS = []


def port():
    return PORTS[0]


def other_port():
    return PORTS[1]


def resident_bytes(server, field="VmHWM"):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(field))


def fill(server, db):
    equal(server.request("PUT", f"/{db}")[0], 201)
    docs = [doc(f"{n:03}", text="x" * 100000) for n in range(20)]
    equal(server.request("POST", f"/{db}/_bulk_docs", {"new_edits": False, "docs": docs})[0], 201)


def start(server, name):
    ends = {"source": f"http://127.0.0.1:{port()}/{name}", "target": "copy"}
    if name.startswith("to-"):
        ends = {"source": "a", "target": ends["source"]}
    ends = {end: {"url": url, "headers": {"X-Secret": "secret"}} if "http" in url else url
            for end, url in ends.items()}
    equal(server.request("PUT", f"/_replicator/{name}", ends)[0], 201)


def reason(server, name):
    """The error of a replication that has crashed; None before."""
    found = server.request("GET", f"/_scheduler/docs/_replicator/{name}")[1]
    return found["info"]["error"] if found["state"] in ("crashing", "failed") else None


def others_than_expected(server, told):
    """Takes those out of `told` that have ended with their reason, and notes what the others say."""
    for name in list(told):
        told[name] = reason(server, name)
        if told[name] and HOSTILE[name][2] in told[name]:
            del told[name]
    return told


@test
def each_hostile_end_ends_its_own_replication_with_a_reason(cwd):
    PORTS[:] = [listen(serve_one), listen(refuse)]
    (cwd / "ini").write_text(CONFIG)
    with Server(cwd, "--config", "ini") as server:
        fill(server, "a")
        server.request("PUT", "/_replicator")
        server.request("PUT", "/copy")
        before = resident_bytes(server)
        for name in HOSTILE:
            start(server, name)
        # Others go on meanwhile.
        job = {"source": "a", "target": "b", "create_target": True}
        equal(server.request("POST", "/_replicate", job)[1]["ok"], True)
        # Our server is slow where the machine is busy; a replication that crashed by that runs again.
        told = dict.fromkeys(HOSTILE)
        until(lambda: not others_than_expected(server, told), 300, lambda: told)
        equal(asked_elsewhere, [])
        equal(server.request("GET", "/copy/secret")[0], 404)
        equal(server.request("GET", "/")[0], 200)
        # Under a sanitizer memory that was freed stays for a while, and all has its shadow.
        most = before + 3 * len(HOSTILE) * JOB_MEMORY
        assert resident_bytes(server) < most, (before, resident_bytes(server), most)
        equal(server.stop(), 0)


@test
def a_redirect_on_the_same_server_is_followed(cwd):
    seen = []

    def handle(client):
        stream = client.makefile("rb")
        while (line := stream.readline().decode().split()):
            headers = []
            while (header := stream.readline().strip()):
                headers.append(header)
            length = sum(int(h.split(b":")[1]) for h in headers
                         if h.lower().startswith(b"content-length:"))
            stream.read(length)
            if line[1].startswith("/old"):
                client.sendall(head(307, Location="/new" + line[1][4:], Content_Length=0))
            else:
                seen.append(b"X-Secret: secret" in headers)
                client.sendall(honest(line[0], line[1], "new"))
    url = f"http://127.0.0.1:{listen(handle)}/old"
    with Server(cwd) as server:
        answer = server.request("POST", "/_replicate", {
            "source": {"url": url, "headers": {"X-Secret": "secret"}}, "target": "copy",
            "create_target": True})
        assert answer[0] == 200 and answer[1]["ok"], answer
        equal(server.request("GET", "/copy/d")[0], 200)
        assert seen and all(seen)


main()
