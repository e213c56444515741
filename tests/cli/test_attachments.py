"""Large attachments through a server: memory stays bounded, and what breaks off leaves nothing."""

import base64
import gzip
import hashlib
import http.client
import json
import pathlib
import socket
import threading
import time

from harness import Server, contains, equal, main, ok, run, test

BLOCK = bytes((i * 7919 >> 3) & 0xff for i in range(1 << 20))
BLOCKS = 48

# What the sanitizer holds back of freed memory is not the server's.
QUIET = {"ASAN_OPTIONS": "quarantine_size_mb=1:malloc_context_size=1:detect_leaks=0"}


def blocks(count):
    for i in range(count):
        yield i.to_bytes(8, "big") + BLOCK[8:]


def connect(server):
    host, port = server.url[len("http://"):].split(":")
    return http.client.HTTPConnection(host, int(port), timeout=60)


def peak_kb(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def upload(server, path, count, **headers):
    connection = connect(server)
    connection.request("PUT", path, body=blocks(count), encode_chunked=True,
                       headers={"Content-Type": "image/png", "Transfer-Encoding": "chunked",
                                **headers})
    answer = connection.getresponse()
    body = json.load(answer)
    connection.close()
    return answer.status, body


def digest_of(server, path):
    connection = connect(server)
    connection.request("GET", path)
    answer = connection.getresponse()
    equal(answer.status, 200)
    digest, length = hashlib.md5(), 0
    while piece := answer.read(1 << 16):
        digest.update(piece)
        length += len(piece)
    connection.close()
    return digest.hexdigest(), length


def expected(count):
    digest = hashlib.md5()
    for block in blocks(count):
        digest.update(block)
    return digest.hexdigest(), count << 20


@test
def memory_does_not_grow_with_the_attachment(cwd):
    # The store's own buffers fill up first, and its caches.
    (cwd / "ini").write_text("[frond]\ncache_bytes = 8388608\nrecent_bytes = 1048576\n")
    with Server(cwd, "--config", "ini", "--no-sync", env=QUIET) as server:
        equal(server.request("PUT", "/db")[0], 201)
        for i in range(2):
            equal(upload(server, f"/db/warm{i}/f", BLOCKS)[0], 201)
            equal(digest_of(server, f"/db/warm{i}/f"), expected(BLOCKS))
        before = peak_kb(server)
        status, body = upload(server, "/db/doc/f", 2 * BLOCKS)
        equal(status, 201)
        equal(digest_of(server, "/db/doc/f"), expected(2 * BLOCKS))
        connection = connect(server)
        connection.request(
            "GET", "/db/doc?attachments=true", headers={"Accept": "application/json"}
        )
        length = 0
        answer = connection.getresponse()
        while piece := answer.read(1 << 16):
            length += len(piece)
        connection.close()
        assert length > (2 * BLOCKS << 20) * 4 // 3, length
        grown = peak_kb(server) - before
        assert grown < 48 * 1024, f"{grown} kB more for {2 * BLOCKS} MB"


@test
def slow_reader_holds_nothing_up(cwd):
    with Server(cwd, "--no-sync", env=QUIET) as server:
        equal(server.request("PUT", "/db")[0], 201)
        equal(upload(server, "/db/doc/f", 32)[0], 201)
        host, port = server.url[len("http://"):].split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(b"GET /db/doc/f HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert slow.recv(1000)
            before = peak_kb(server)
            for _ in range(20):
                equal(server.request("GET", "/db/doc")[0], 200)
            assert peak_kb(server) - before < 16 * 1024


def stop_in_the_middle(server):
    """Sends half of an upload; returns once some of it is in the store."""
    host, port = server.url[len("http://"):].split(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(b"PUT /db/doc/f HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\n"
                       b"Content-Length: %d\r\n\r\n" % (64 << 20))
    for block in blocks(16):
        connection.sendall(block)
    return connection


@test
def upload_that_breaks_off_is_taken_back_at_once(cwd):
    with Server(cwd, "--no-sync") as server:
        equal(server.request("PUT", "/db")[0], 201)
        stop_in_the_middle(server).close()
        for _ in range(100):
            if server.request("GET", "/_up")[0] == 200 and \
               "uploads" not in ok("inspect", cwd=cwd).stdout:
                break
            time.sleep(0.1)
        equal(server.request("GET", "/db/doc")[0], 404)
        equal(server.stop(), 0)
    shown = ok("inspect", cwd=cwd).stdout
    assert "attachments" not in shown and "uploads" not in shown, shown


@test
def upload_that_dies_with_the_server_leaves_what_the_sweep_knows(cwd):
    with Server(cwd, "--no-sync") as server:
        equal(server.request("PUT", "/db")[0], 201)
        connection = stop_in_the_middle(server)
        for _ in range(100):
            if "uploads" in ok("inspect", cwd=cwd).stdout:
                break
            time.sleep(0.1)
        server.process.kill()
        server.process.wait()
        connection.close()
    shown = ok("inspect", cwd=cwd).stdout
    contains(shown, '"uploads"')
    contains(shown, '("attachments", "data", ')
    contains(ok("verify", cwd=cwd).stdout, "0 findings")
    # It is young: somebody else might still be writing it.
    with Server(cwd) as server:
        equal(server.request("GET", "/db/doc")[0], 404)
        equal(upload(server, "/db/doc/f", 2)[0], 201)
        equal(server.stop(), 0)
    contains(ok("inspect", cwd=cwd).stdout, '"uploads"')
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


@test
def limit_is_told_before_all_of_it_was_sent(cwd):
    (cwd / "frond.ini").write_text("[couchdb]\nmax_attachment_size = 3000000\n")
    with Server(cwd, "--config", "frond.ini") as server:
        equal(server.request("PUT", "/db")[0], 201)
        equal(upload(server, "/db/doc/f", 2)[0], 201)
        connection = connect(server)
        connection.putrequest("PUT", "/db/other/f")
        connection.putheader("Content-Length", str(1 << 40))
        connection.endheaders()
        answer = connection.getresponse()
        equal((answer.status, json.load(answer)["error"]), (413, "attachment_too_large"))
        connection.close()
        host, port = server.url[len("http://"):].split(":")
        with socket.create_connection((host, int(port))) as s:
            s.sendall(b"PUT /db/other/f HTTP/1.1\r\nHost: localhost\r\n"
                      b"Transfer-Encoding: chunked\r\n\r\n")
            threading.Thread(target=send_chunks, args=(s, 8), daemon=True).start()
            contains(s.recv(4096).decode(), "413 ")
        equal(server.request("GET", "/db/other")[0], 404)


def send_chunks(s, count):
    try:
        for block in blocks(count):
            s.sendall(b"%x\r\n" % len(block) + block + b"\r\n")
    except OSError:
        pass  # refused in the middle, as it should be


main()
