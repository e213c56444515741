"""The binary stops on SIGTERM within its time, whatever it is doing; others are served meanwhile."""

import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from cql_wire import QUERY, RESULT, segment
from cql_wire import Connection as CqlConnection
from cql_wire_server import Door as CqlDoor
from harness import FROND, Server, Skip, computed, contains, equal, main, test, until
from mongo import OP_MSG, encode
from mongo import Client as mongo_client
from redis_server import Redis
from resp import encode as resp_encode

HAS_WORKER = (pathlib.Path(FROND).parent / "frond-js").exists()
STUCK_DISK = os.path.abspath(sys.argv[2])
DRAIN_S = 4
SLOW_S = 60  # of a busy machine; what does not end would go on for hours
OVERDUE = 3  # the exit code

# Documents and a selector that need a product of these: many minutes, but for the limit.
ZEROS = 100000
CONDITIONS = 3000
DOCS = 20


def ini(cwd, *lines):
    (cwd / "ini").write_text("\n".join(
        ["[frond]", "loops = 2", f"drain_timeout_ms = {DRAIN_S * 1000}", *lines]) + "\n")
    return ["--config", "ini"]


def connect(server):
    host, port = server.url[len("http://"):].split(":")
    return socket.create_connection((host, int(port)))


def send(sock, method, path, body):
    body = body.encode()
    sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                 .encode() + body)


def fill(server):
    equal(server.request("PUT", "/db")[0], 201)
    docs = [{"_id": str(i), "a": [0] * ZEROS} for i in range(DOCS)]
    equal(server.request("POST", "/db/_bulk_docs", {"docs": docs})[0], 201)


def attack(server, count=2):
    """Requests that compute for as long as they may."""
    conditions = ",".join(f'{{"$gt":{i}}}' for i in range(1, CONDITIONS + 1))
    selector = f'{{"selector":{{"a":{{"$elemMatch":{{"$or":[{conditions}]}}}}}}}}'
    socks = [connect(server) for _ in range(count)]
    for sock in socks:
        send(sock, "POST", "/db/_changes?filter=_selector", selector)
    return socks


def is_answered(sock, within):
    sock.settimeout(within)
    try:
        return sock.recv(4096)
    except TimeoutError:
        return None


def stop_takes(server, number=signal.SIGTERM):
    begun = time.monotonic()
    code = server.stop(number)
    return code, time.monotonic() - begun


@test
def others_are_served_while_two_requests_compute(cwd):
    with Server(cwd, *ini(cwd, "request_steps = 1000000000000")) as server:
        fill(server)
        attackers = attack(server)
        time.sleep(0.5)
        slowest = 0
        for _ in range(100):
            begun = time.monotonic()
            equal(server.request("GET", "/db")[0], 200)
            slowest = max(slowest, time.monotonic() - begun)
        equal([is_answered(a, 0.01) for a in attackers], [None, None])
        # Who is not served waits as long as they compute, which is many minutes.
        assert slowest < SLOW_S, slowest
        # A connection that breaks off ends its request, and the process idles again.
        for attacker in attackers:
            attacker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            attacker.close()
        until(lambda: busy(server.process.pid) <= 0.5)
        equal(server.stop(), 0)


def busy(pid):
    """How many processors the process takes, over half a second."""
    before = computed(pid)
    time.sleep(0.5)
    return (computed(pid) - before) / 0.5


@test
def a_client_that_has_sent_its_end_does_not_compute_for_long(cwd):
    with Server(cwd, *ini(cwd, "request_steps = 1000000000000")) as server:
        fill(server)
        attackers = attack(server)
        equal([is_answered(a, 0.3) for a in attackers], [None, None])
        for attacker in attackers:
            attacker.shutdown(socket.SHUT_WR)
        until(lambda: busy(server.process.pid) <= 0.5)


def not_read_of(sock):
    """Bytes that have reached the other end of a connection over loopback, and that nobody has read there."""
    local, peer = (f"{struct.unpack('=I', socket.inet_aton(host))[0]:08X}:{port:04X}" for host, port in (sock.getsockname(), sock.getpeername()))
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1:3] == [peer, local]:
            return int(fields[4].split(":")[1], 16)
    raise AssertionError("no such connection")


@test
def a_client_that_leaves_more_than_is_read_does_not_compute_for_long(cwd):
    """MongoDB's: its end is behind messages that are not read while its command computes."""
    ping = b"\0" * 5 + encode({"ping": 1, "$db": "d"})
    pings = (struct.pack("<iiii", 16 + len(ping), 1, 0, OP_MSG) + ping) * 100
    conditions = [{"a": {"$gt": i}} for i in range(1, CONDITIONS + 1)]
    with Redis(cwd, "--mongo", "127.0.0.1:0", *ini(cwd, "request_steps = 1000000000000")) as server:
        port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", server.read_log())[1])
        with mongo_client(port) as client:
            for i in range(DOCS):
                client({"insert": "c", "documents": [{"_id": i, "a": [0] * ZEROS}]}, "d")
        leaves = mongo_client(port)
        leaves.send({"find": "c", "filter": {"$or": conditions}, "$db": "d"})
        # As little as has its end reach the server's side: behind a closed window nobody sees one.
        until(lambda: leaves.socket.sendall(pings) or not_read_of(leaves.socket))
        equal(is_answered(leaves.socket, 0.1), None)
        leaves.close()
        until(lambda: busy(server.process.pid) <= 0.5)
        equal(server.stop(), 0)


@test
def sigterm_ends_what_computes_in_time(cwd):
    with Server(cwd, *ini(cwd, "request_steps = 1000000000000")) as server:
        fill(server)
        attackers = attack(server, 4)
        equal([is_answered(a, 0.3) for a in attackers], [None] * 4)
        code, took = stop_takes(server)
        equal(code, 0)
        assert took < DRAIN_S + SLOW_S, took
        contains(server.read_log(), "event=stop ")
        for attacker in attackers:
            attacker.close()


@test
def sigterm_ends_commands_of_redis_that_run_in_time(cwd):
    """Those that run, those that wait for their keys, and those that a transaction runs with them."""
    endless = "while true do redis.call('SET', KEYS[1], 'x') end"
    pure = "while true do end"
    with Redis(cwd, *ini(cwd)) as server:
        clients = [server.client() for _ in range(6)]
        clients[0]("CONFIG", "SET", "lua-time-limit", 0)
        clients[0].send("EVAL", endless, 1, "a")
        clients[1].send("EVAL", pure, 1, "a")
        clients[2].send("SET", "a", 1)
        clients[3].send("EVAL", "for i = 1, 1e12 do redis.call('SET', 'b' .. i % 9, 'x') end", 0)
        clients[4].send("EVAL_RO", pure, 0)
        clients[5].send("BLPOP", "l", 0)
        time.sleep(0.5)
        code, _ = stop_takes(server)
        log = server.read_log()
        equal(code, 0)
        contains(log, "event=stop ")
        assert "event=server_gave_up" not in log, log
        for client in clients:
            client.close()


@test
def a_stop_does_not_wait_for_clients_that_read_nothing(cwd):
    """Of each door. The stop would have ten minutes."""
    (cwd / "ini").write_text("[frond]\ndrain_timeout_ms = 600000\n")
    long = 1024 * 1024
    with Redis(cwd, "--mongo", "127.0.0.1:0", "--config", "ini") as server:
        mongo_port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", server.read_log())[1])
        equal(server.request("PUT", "/db")[0], 201)
        equal(server.request("POST", "/db/_bulk_docs", {"docs": [
            {"_id": str(i), "text": "x" * long} for i in range(12)]})[0], 201)
        redis, mongo = server.client(), mongo_client(mongo_port)
        redis("SET", "long", b"x" * long)
        for i in range(12):
            mongo({"insert": "c", "documents": [{"_id": i, "text": "x" * long}]}, "d")
        http = connect(server)
        send(http, "GET", "/db/_all_docs?include_docs=true", "")
        for _ in range(12):
            redis.send("GET", "long")
        mongo.send({"find": "c", "batchSize": 12, "$db": "d"})
        for sock in (http, redis.socket, mongo.socket):
            equal(len(sock.recv(1, socket.MSG_PEEK)), 1)
        equal(server.stop(), 0)
        log = server.read_log()
        equal(log.count("event=slow_reader "), 3)
        equal(log.count(" limit=drain_timeout_ms"), 3)
        for client in (http, redis, mongo):
            client.close()


def goes_on_asking(port, requests, greeting=b""):
    """Sends the requests without end, and reads the answers, until the connection ends."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(greeting)

    def send():
        try:
            while True:
                sock.sendall(requests)
        except OSError:
            pass

    def read():
        try:
            while sock.recv(65536):
                pass
        except OSError:
            pass
        sock.close()

    for work in (send, read):
        threading.Thread(target=work, daemon=True).start()


@test
def a_stop_does_not_wait_for_requests_that_keep_coming(cwd):
    """Of each door but HTTP's. The stop would have ten minutes."""
    (cwd / "ini").write_text("[frond]\ndrain_timeout_ms = 600000\n")
    ping = b"\0" * 5 + encode({"ping": 1, "$db": "admin"})
    requests = {"redis": b"PING\r\n" * 100,
                "mongo": (struct.pack("<iiii", 16 + len(ping), 1, 0, OP_MSG) + ping) * 100,
                "cql": bytes((4, 0, 0, 0, 5, 0, 0, 0, 0)) * 100,  # OPTIONS
                "rows": struct.pack(">IBBH", 0, 3, 0, 1) * 100}   # PING
    hello = struct.pack(">IBBHIHH", 8, 1, 0, 1, 0x46524f57, 1, 2)
    doors = [word for door in requests if door != "redis" for word in (f"--{door}", "127.0.0.1:0")]
    with Redis(cwd, *doors, "--config", "ini") as server:
        for door, text in requests.items():
            port = int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", server.read_log())[1])
            goes_on_asking(port, text, hello if door == "rows" else b"")
        time.sleep(0.5)
        code, took = stop_takes(server)
        equal(code, 0)
        assert took < SLOW_S, took


def all_that_comes(read):
    """What is read until the connection ends."""
    answers = []
    try:
        while True:
            answers.append(read())
    except (EOFError, ConnectionResetError):
        return answers


@test
def a_stop_does_not_wait_for_a_pipeline_of_redis(cwd):
    """Its commands have come together. The stop would have ten minutes."""
    (cwd / "ini").write_text("[frond]\ndrain_timeout_ms = 600000\n")
    long = "local n = 0 for i = 1, 1e6 do n = n + i end return redis.call('INCR', KEYS[1])"
    with Redis(cwd, "--config", "ini") as server, server.client() as c:
        c("CONFIG", "SET", "lua-time-limit", 0)
        c.socket.sendall(resp_encode(("EVAL", long, 1, "n")) * 500)
        time.sleep(0.3)
        equal(server.stop(), 0)
        answers = all_that_comes(c.read)
        equal(answers, list(range(1, len(answers) + 1)))
        assert len(answers) < 400, len(answers)
    with Redis(cwd, "--config", "ini") as server, server.client() as c:
        equal(int(c("GET", "n") or 0), len(answers))


@test
def a_stop_does_not_wait_for_a_segment_of_cassandras_clients(cwd):
    (cwd / "ini").write_text("[frond]\ndrain_timeout_ms = 600000\n")
    with CqlDoor(cwd, "--config", "ini") as server, CqlConnection(server.port, 5) as c:
        c.start()
        c.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        c.query("CREATE TABLE k.t (a int, b int, PRIMARY KEY (a, b))")
        for at in range(0, 5000, 1000):
            rows = " ".join(f"INSERT INTO k.t (a, b) VALUES (1, {at + i});" for i in range(1000))
            c.query(f"BEGIN UNLOGGED BATCH {rows} APPLY BATCH")
        body = c.query_body("SELECT COUNT(*) FROM k.t")
        frames = [struct.pack(">BBhBI", 5, 0, i, QUERY, len(body)) + body for i in range(2500)]
        c.socket.sendall(segment(b"".join(frames)))
        c.read()
        equal(server.stop(), 0)
        kinds = [frame[0][3] for frame in all_that_comes(c.read)]
        assert kinds.count(RESULT) < 1250, kinds.count(RESULT)


@test
def the_limit_ends_a_request_that_computes(cwd):
    with Server(cwd, *ini(cwd, "request_steps = 20000000")) as server:
        fill(server)
        answer = is_answered(attack(server, 1)[0], 60).decode()
        contains(answer, " 413 ")
        contains(answer, "request_steps, is 20000000 steps")


def stuck(cwd):
    """The environment of a server whose disk does not answer while the file `stuck` exists."""
    return {"LD_PRELOAD": STUCK_DISK, "FROND_TEST_STUCK": str(cwd / "stuck"),
            "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}


@test
def a_stuck_disk_does_not_keep_the_process_and_loses_nothing(cwd):
    with Server(cwd, *ini(cwd), env=stuck(cwd)) as server:
        equal(server.request("PUT", "/db")[0], 201)
        equal(server.request("PUT", "/db/before", {"n": 1})[0], 201)
        (cwd / "stuck").touch()
        with connect(server) as writer:
            send(writer, "PUT", "/db/lost", '{"n":2}')
            time.sleep(0.5)
            code, took = stop_takes(server)
        equal(code, OVERDUE)
        assert took < DRAIN_S + SLOW_S, took
        contains(server.read_log(), "event=stop_overdue ")
    (cwd / "stuck").unlink()
    with Server(cwd, *ini(cwd)) as server:
        status, doc = server.request("GET", "/db/before")
        equal((status, doc["n"]), (200, 1))
        equal(server.stop(), 0)


@test
def a_second_signal_does_not_wait_for_a_stuck_disk(cwd):
    ini(cwd)
    (cwd / "ini").write_text("[frond]\ndrain_timeout_ms = 600000\n")
    with Server(cwd, "--config", "ini", env=stuck(cwd)) as server:
        equal(server.request("PUT", "/db")[0], 201)
        (cwd / "stuck").touch()
        with connect(server) as writer:
            send(writer, "PUT", "/db/lost", '{"n":2}')
            time.sleep(0.5)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            equal(server.process.poll(), None)
            code, took = stop_takes(server)
        equal(code, OVERDUE)
        assert took < SLOW_S, took


@test
def a_log_that_nobody_reads_does_not_keep_the_process(cwd):
    with Server(cwd, *ini(cwd)) as server:
        pass
    begun = None
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [FROND, "serve", "--http", "127.0.0.1:0", *ini(cwd)], cwd=cwd,
        env={**os.environ, **stuck(cwd)}, stdout=subprocess.PIPE, stderr=writer, text=True)
    try:
        contains(process.stdout.readline(), " at http://")
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DRAIN_S + SLOW_S) != 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(reader)
        os.close(writer)


@test
def a_fiber_that_holds_a_loop_is_logged_with_what_it_does(cwd):
    """The only connection's commits are made on its loop's thread: there the disk holds it up."""
    with Server(cwd, *ini(cwd), env=stuck(cwd)) as server:
        equal(server.request("PUT", "/db")[0], 201)
        with connect(server) as writer:
            held = False
            for i in range(50):
                (cwd / "stuck").touch()
                timer = threading.Timer(0.3, (cwd / "stuck").unlink)
                timer.start()
                send(writer, "PUT", f"/db/doc{i}", json.dumps({"n": i}))
                contains(writer.recv(4096).decode(), " 201 ")
                timer.join()
                held = 'event=loop_held ' in server.read_log()
                if held:
                    break
        assert held
        time.sleep(0.2)
        log = server.read_log()
        contains(log, 'doing="PUT /db/doc')
        contains(log, "event=loop_released ms=")
        equal(server.stop(), 0)


@test
def a_view_whose_function_is_slow_does_not_hold_up_the_end(cwd):
    if not HAS_WORKER:
        raise Skip("there is no frond-js")
    slow = "function (doc) { var end = Date.now() + 1000; while (Date.now() < end) ; emit(1); }"
    with Server(cwd, *ini(cwd)) as server:
        equal(server.request("PUT", "/db")[0], 201)
        docs = [{"_id": str(i)} for i in range(100)] + [{"_id": "_design/slow", "views": {"v": {"map": slow}}}]
        equal(server.request("POST", "/db/_bulk_docs", {"docs": docs})[0], 201)
        equal(server.request("GET", "/db/_design/slow/_view/v?update=lazy")[0], 200)
        until(lambda: any(task["type"] == "indexer" for task in server.request("GET", "/_active_tasks")[1]))
        time.sleep(1)  # a function runs
        code, took = stop_takes(server)
        equal(code, 0)
        assert took < DRAIN_S + 2, took


main()
