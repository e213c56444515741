"""The binary without memory, and with many clients that ask for much and read nothing."""

import base64
import http.client
import json
import os
import pathlib
import resource
import socket
import struct
import time

from harness import Server, contains, equal, main, test, until
from rows_server import Door
from attack.unread_rows import BEGIN, GREETING, frame  # harness has made the folder of tests known

SPARE_BYTES = 12 * 1024 * 1024  # that a server without memory may still take
DEADLINE_S = 120


def memory_of(pid, name):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {name}")


def resident(pid):
    return memory_of(pid, "VmRSS")


def write_until_refused(server):
    """How many bulks were acknowledged before the server ended."""
    client = http.client.HTTPConnection(server.url[len("http://"):], timeout=60)
    acknowledged = 0
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        docs = [{"_id": f"{acknowledged:06}-{i:03}", "text": os.urandom(500).hex()}
                for i in range(100)]
        try:
            client.request("POST", "/db/_bulk_docs", json.dumps({"docs": docs}),
                           {"Content-Type": "application/json"})
            answer = client.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return acknowledged
        if answer.status == 201 and b'"error"' not in text:
            acknowledged += 1
    raise AssertionError("the server still runs")


@test
def engine_without_memory_ends_the_process_with_a_line_and_a_code(cwd):
    with Server(cwd, "--no-sync") as server:
        equal(server.request("PUT", "/db")[0], 201)
        # Not of addresses: a heap has tens of megabytes of them that it has not yet made memory.
        most = memory_of(server.process.pid, "VmData") + SPARE_BYTES
        resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (most, most))
        acknowledged = write_until_refused(server)
        equal(server.process.wait(60), 4)
        last = server.read_log().splitlines()[-1]
        contains(last, "level=error event=out_of_memory ")
        contains(last, "exit_code=4")
    with Server(cwd) as server:
        info = server.request("GET", "/db")[1]
        assert info["doc_count"] >= acknowledged * 100, (info, acknowledged)
        equal(server.stop(), 0)


def fill(server, count):
    equal(server.request("PUT", "/db")[0], 201)
    for first in range(0, count, 500):
        docs = [{"_id": f"{i:06}", "text": "x" * 1000}
                for i in range(first, min(first + 500, count))]
        equal(server.request("POST", "/db/_bulk_docs", {"docs": docs})[0], 201)


def ask(server, path, accept="application/json"):
    """A connection that has asked for something, and reads nothing yet."""
    host, port = server.url[len("http://"):].split(":")
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect((host, int(port)))
    s.sendall(f"GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n".encode())
    s.settimeout(60)
    return s


def read_ids(s):
    """The ids of the rows of an answer, in order."""
    pieces = []
    while piece := s.recv(1 << 20):
        pieces.append(piece)
    s.close()
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    contains(head.decode(), " 200 ")
    rows = json.loads(body)
    return [row["id"] for row in rows.get("results") or rows["rows"]]


def until_nothing_is_read(server, requests=None):
    """
    Waits until the requests hold nothing of the store, and tells of their memory then. `requests`
    is how many there are by then: the one that asked before this one may not have gone yet.
    """
    told = {}

    def nothing():
        told.update(server.metrics())
        held = [told[f"frond_memory_requests_{name}"] for name in ("reading_bytes", "waiting")]
        return (held == [0, 0] and told["frond_store_snapshots"] <= 1
                and requests in (None, told["frond_memory_requests"]))

    until(nothing, told=lambda: {name: told[name] for name in told if "memory_requests" in name})
    return told


def ask_in_turn(server, paths, accept="application/json"):
    """
    One connection for each path, each after the one before it has given back what it needs to
    begin: all at once could need more than there is for requests that last, and be refused.
    """
    asked = []
    for path in paths:
        asked.append(ask(server, path, accept))
        until_nothing_is_read(server)
    return asked


PATHS = ["/db/_changes", "/db/_changes?include_docs=true", "/db/_all_docs?include_docs=true",
         "/db/_all_docs?include_docs=true&descending=true&skip=10"]


def measure_nobody(cwd, memory):
    """Whoever reads nothing stays, however long a busy machine takes: nobody is measured within a day."""
    (cwd / "ini").write_text(f"[frond]\nmemory_bytes = {memory}\nrate_window_ms = 86400000\nbody_timeout_ms = 86400000\n")


@test
def listings_that_nobody_reads_hold_no_snapshot_and_go_on_where_they_were(cwd):
    count, memory = 4000, 8388608
    measure_nobody(cwd, memory)
    with Server(cwd, "--config", "ini", "--no-sync") as server:
        fill(server, count)
        paths = [path for path in PATHS for _ in range(8)]
        clients = list(zip(paths, ask_in_turn(server, paths)))
        told = until_nothing_is_read(server, len(clients) + 1)
        # Each holds its flat amount and its output, and nothing besides that counts: five eighths
        # for all of them, and the eighth by which output grows.
        assert told["frond_memory_requests_bytes"] < memory // 8 * 6, told
        for path, s in clients:
            ids = read_ids(s)
            expected = [f"{i:06}" for i in range(count)]
            if "descending" in path:
                expected = expected[::-1][10:]
            if "_changes" in path:
                ids.sort()
            equal((path, ids == expected, len(ids)), (path, True, len(expected)))
        until_nothing_is_read(server, 1)
        equal(server.stop(), 0)


def read_body(s):
    """The body of an answer that ends with its connection."""
    pieces = []
    while piece := s.recv(1 << 20):
        pieces.append(piece)
    s.close()
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    contains(head.decode(), " 200 ")
    return body


def put_attachment(server, path, kind, data):
    client = http.client.HTTPConnection(server.url[len("http://"):], timeout=60)
    client.request("PUT", path, data, {"Content-Type": kind})
    equal(client.getresponse().status, 201)
    client.close()


@test
def attachments_that_nobody_reads_hold_no_snapshot_and_arrive_whole(cwd):
    data = os.urandom(5_000_123)
    measure_nobody(cwd, 16777216)
    with Server(cwd, "--config", "ini", "--no-sync") as server:
        equal(server.request("PUT", "/db")[0], 201)
        put_attachment(server, "/db/raw/a", "image/png", data)
        put_attachment(server, "/db/packed/a", "text/plain", data)  # is stored compressed
        for i in range(3):  # rows behind the one that stalls
            equal(server.request("PUT", f"/db/z{i}", {})[0], 201)
        whole = ask_in_turn(server, [f"/db/{name}/a" for name in ("raw", "packed")
                                     for _ in range(20)])
        inline = ask_in_turn(server, [f"/db/{name}?attachments=true"
                                      for name in ("raw", "packed")])
        parts = ask_in_turn(server, ["/db/raw?attachments=true"] * 2, "multipart/related")
        lists = ask_in_turn(server, [f"/db/{name}?include_docs=true&attachments=true"
                                     for name in ("_all_docs", "_changes") for _ in range(2)])
        clients = len(whole) + len(inline) + len(parts) + len(lists)
        told = until_nothing_is_read(server, clients + 1)
        assert told["frond_memory_requests_bytes"] < clients * 224 * 1024, told
        for s in whole:
            assert read_body(s) == data
        expected = base64.b64encode(data).decode()
        for s in inline:
            assert json.loads(read_body(s))["_attachments"]["a"]["data"] == expected
        for s in parts:
            assert data in read_body(s)
        for s in lists:
            body = json.loads(read_body(s))
            rows = body.get("results") or body["rows"]
            equal(sorted(row["id"] for row in rows), ["packed", "raw", "z0", "z1", "z2"])
            found = [row["doc"]["_attachments"]["a"]["data"] == expected
                     for row in rows if "_attachments" in row["doc"]]
            equal(found, [True, True])
        until_nothing_is_read(server, 1)
        equal(server.stop(), 0)


@test
def thousand_listings_that_nobody_reads_stay_within_the_memory(cwd):
    memory, clients_count = 32 * 1024 * 1024, 1000
    measure_nobody(cwd, memory)
    with Server(cwd, "--config", "ini", "--no-sync") as server:
        fill(server, 4000)
        before = resident(server.process.pid)
        clients = [ask(server, PATHS[i % len(PATHS)]) for i in range(clients_count)]
        peak = 0
        for _ in range(25):
            time.sleep(0.2)
            peak = max(peak, resident(server.process.pid))
        assert peak - before < memory + memory // 4, (before, peak)
        for s in clients:
            s.close()
        equal(server.stop(), 0)


def rows_answers(s, count):
    """The bodies of so many answers."""
    text, bodies = b"", b""
    for _ in range(count):
        while len(text) < 8 or len(text) < 8 + struct.unpack(">I", text[:4])[0]:
            text += s.recv(4096)
        end = 8 + struct.unpack(">I", text[:4])[0]
        bodies, text = bodies + text[8:end], text[end:]
    return bodies


@test
def those_who_rest_in_transactions_keep_nobody_out_when_they_look(cwd):
    """Each looks once a second whether its transaction is over, all at about the same time."""
    measure_nobody(cwd, 8388608)
    with Door(cwd, "--config", "ini", "--no-sync") as server:
        fill(server, 1)
        clients = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(400)]
        for s in clients:
            s.sendall(GREETING + frame(BEGIN, b"\0"))
        begun = sum(b"53200" not in rows_answers(s, 2) for s in clients)
        assert 60 < begun < len(clients), begun
        client = http.client.HTTPConnection(server.url[len("http://"):], timeout=60)
        answers = []
        end = time.monotonic() + 3
        while time.monotonic() < end:
            client.request("GET", "/db/000000")
            answer = client.getresponse()
            answer.read()
            answers.append(answer.status)
            time.sleep(0.002)
        equal(set(answers), {200})
        for s in clients:
            s.close()
        equal(server.stop(), 0)


@test
def short_requests_get_through_although_others_have_taken_the_memory(cwd):
    memory = 8388608
    measure_nobody(cwd, memory)
    with Server(cwd, "--config", "ini", "--no-sync") as server:
        fill(server, 1000)
        put_attachment(server, "/db/pictured/a", "image/png", os.urandom(1_000_000))
        paths = [*PATHS, "/db/pictured/a", "/db/pictured?attachments=true",
                 "/_db_updates?feed=continuous&since=0", "/db/_changes?feed=longpoll&since=now"]
        clients = [ask(server, paths[i % len(paths)]) for i in range(1000)]
        # Those whose bodies do not come stay, too.
        for _ in range(400):
            s = socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
            s.sendall(b"PUT /db/late HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20\r\n\r\n{")
            clients.append(s)
        time.sleep(2)
        # Of the five eighths that they may have: who was not let in, and stays, is cut off.
        held = server.metrics()["frond_memory_requests_bytes"]
        assert held > memory // 8 * 3, held
        for i in range(200):
            equal(server.request("PUT", f"/db/short{i}", {"text": "x" * 1000})[0], 201)
            equal(server.request("GET", f"/db/short{i}")[0], 200)
        for s in clients:
            s.close()
        equal(server.stop(), 0)


main()
