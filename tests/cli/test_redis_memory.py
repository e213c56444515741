"""What clients of Redis's protocol hold that do not read, or do not end what they begin to send."""

import pathlib
import socket
import struct
import threading
import time

from harness import FROND, contains, equal, main, test, until
from redis_server import Redis
from resp import Client, encode

MB = 1024 * 1024
DEADLINE_S = 120
MEMORY_WAIT_S = 10


class Small(Redis):
    """A server with little memory, whose store does not wait for the disk."""

    def __init__(self, cwd, memory):
        (cwd / "ini").write_text(f"[frond]\nmemory_bytes = {memory}\nmemory_timeout_ms = {MEMORY_WAIT_S * 1000}\n"
                                "rate_window_ms = 86400000\nbody_timeout_ms = 86400000\n")
        super().__init__(cwd, "--config", "ini", "--no-sync")


def unread(server):
    """A connection with little room for what it does not read."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(DEADLINE_S)
    s.connect(("127.0.0.1", server.port))
    return s


def commands(server):
    return server.metrics()["frond_redis_commands_total"]


def held(server):
    return server.metrics()["frond_memory_requests_bytes"]


def until_quiet(server):
    """Waits until no more commands are run, and tells how many were."""
    before = [-1]

    def same():
        now = commands(server)
        time.sleep(0.5)
        before.append(now)
        return before[-1] == before[-2]

    until(same)
    return before[-1]


@test
def commands_behind_answers_that_nobody_reads_are_not_run(cwd):
    clients_count, pipeline = 8, 40
    with Small(cwd, 64 * MB) as server:
        with server.client() as c:
            c("SET", "long", b"x" * MB)
        for first in ([], [("SET", "short", "1")]):
            begun = until_quiet(server)
            clients = [unread(server) for _ in range(clients_count)]
            for s in clients:
                s.sendall(b"".join(encode(one) for one in first))
                s.sendall(encode(("GET", "long")) * pipeline)
            until(lambda: commands(server) >= begun + clients_count)
            ran = until_quiet(server) - begun
            # An answer in each buffer on the way, and one more.
            assert clients_count <= ran <= clients_count * (6 + len(first)), ran
            assert held(server) < 64 * MB, held(server)
            for s in clients:
                s.close()
        with server.client() as c:
            equal(c("GET", "long"), b"x" * MB)
        equal(server.stop(), 0)


@test
def pipeline_of_long_answers_is_answered_in_order_to_one_who_reads(cwd):
    with Small(cwd, 16 * MB) as server:
        with server.client(timeout=DEADLINE_S) as c:
            for i in range(4):
                c("SET", f"key{i}", str(i).encode() * MB)
            asked = [("GET", f"key{i % 4}") if i % 5 else ("SET", f"other{i}", i)
                     for i in range(100)]
            answers = c.pipeline(*asked)
            for i, answer in enumerate(answers):
                equal(answer, str(i % 4).encode() * MB if i % 5 else "OK")
        equal(server.stop(), 0)


@test
def messages_are_held_once_for_all_who_have_not_read_them(cwd):
    clients_count, messages, length = 40, 3, MB
    with Small(cwd, 32 * MB) as server:
        clients = [Client(server.port, timeout=DEADLINE_S) for _ in range(clients_count)]
        for c in clients:
            c("SUBSCRIBE", "news")
        with server.client() as c:
            for i in range(messages):
                equal(c("PUBLISH", "news", bytes([97 + i]) * length), clients_count)
        # Each message, what subscribers have in their own buffers, and a flat amount for each.
        assert messages * length < held(server) < 24 * MB, held(server)
        for c in clients:
            for i in range(messages):
                equal(c.read(), [b"message", b"news", bytes([97 + i]) * length])
        until(lambda: held(server) < 4 * MB)
        for c in clients:
            c.close()
        equal(server.stop(), 0)


@test
def references_to_messages_subscriptions_and_watched_keys_are_counted(cwd):
    clients_count, messages, name_bytes, names = 100, 20000, 20000, 50
    with Small(cwd, 64 * MB) as server:
        with server.client(timeout=DEADLINE_S) as c:
            before = held(server)
            for i in range(names):
                c("SUBSCRIBE", f"{i}" * name_bytes)
            until(lambda: held(server) > before + names * name_bytes)
        until(lambda: held(server) < before + MB)
        with server.client(timeout=DEADLINE_S) as c:
            for i in range(names):
                c("WATCH", f"{i}" * name_bytes)
            until(lambda: held(server) > before + names * name_bytes)
        until(lambda: held(server) < before + MB)
        clients = [unread(server) for _ in range(clients_count)]
        for s in clients:
            s.sendall(encode(("SUBSCRIBE", "news")))
            s.recv(100)
        with server.client(timeout=DEADLINE_S) as c:
            for _ in range(messages // 1000):
                equal(c.pipeline(*[("PUBLISH", "news", "m")] * 1000), [clients_count] * 1000)
        # Of each message 8 bytes for each client, and most are in no buffer of the connection.
        until(lambda: held(server) > before + clients_count * messages * 8)
        for s in clients:
            s.close()
        until(lambda: held(server) < before + MB)
        equal(server.stop(), 0)


@test
def those_who_do_not_read_are_ended_when_the_memory_is_short_and_others_are_served(cwd):
    with Small(cwd, 16 * MB) as server:
        with server.client() as c:
            c("SET", "long", b"x" * MB)
            c("SET", "short", "1")
        clients = []
        for _ in range(40):
            s = unread(server)
            s.sendall(encode(("GET", "long")) * 20)
            clients.append(s)
        for _ in range(30):
            with server.client(timeout=DEADLINE_S) as c:
                equal(c("GET", "short"), b"1")
            equal(server.request("GET", "/_up")[0], 200)
        # Readers get what they ask for when those who do not read have been ended.
        with server.client(timeout=DEADLINE_S) as c:
            def reads():
                c.send("GET", "long")
                return c.read() == b"x" * MB

            until(reads)
        ended = 'frond_refusals_total{limit="memory_bytes"}'
        until(lambda: server.metrics().get(ended, 0) > 0)
        assert held(server) <= 20 * MB, held(server)
        for s in clients:
            s.close()
        until(lambda: held(server) < MB)
        equal(server.stop(), 0)


@test
def short_request_waits_for_memory_that_slow_subscribers_hold(cwd):
    answers = []
    with Small(cwd, 16 * MB) as server:
        subscribers = [unread(server) for _ in range(700)]
        for s in subscribers:
            s.sendall(encode(("SUBSCRIBE", "news")))
            s.recv(100)

        def publish():
            while len(answers) < 40:
                with server.client(timeout=DEADLINE_S) as c:
                    begun = time.monotonic()
                    c.send("PUBLISH", "news", b"m" * 60000)
                    answer = c.read()
                    # It had sent a part while the memory was full, is told so and tries again; so
                    # it does if the busy machine did not end enough of them while it waited.
                    waited = time.monotonic() - begun >= MEMORY_WAIT_S
                    if "end of a request" not in str(answer) and not (waited and "no memory" in str(answer)):
                        answers.append(answer)

        publishers = [threading.Thread(target=publish) for _ in range(2)]
        for one in publishers:
            one.start()
        for one in publishers:
            one.join()
        equal([a for a in answers if not isinstance(a, int)], [])
        for s in subscribers:
            s.close()
        until(lambda: held(server) < MB)
        equal(server.stop(), 0)


@test
def values_that_nobody_asks_for_are_not_read(cwd):
    fields = [f"f{i}" for i in range(6)]
    with Small(cwd, 256 * MB) as server, server.client() as c:
        for field in fields:
            equal(c("HSETEX", "h", "EX", "1000", "FIELDS", "1", field, b"x" * 7000000), 1)
        equal(c("HSET", "h", "short", "12345"), 1)
    with Small(cwd, 8 * MB) as server, server.client() as c:
        contains(c.error("HGET", "h", "f0"), "memory_bytes")
        # One transaction has room for no two of them.
        for command, answer in (("HEXISTS", 1), ("HSTRLEN", 7000000)):
            c("MULTI")
            for field in fields:
                c(command, "h", field)
            equal(c("EXEC"), [answer] * len(fields))
        assert {0 < left <= 1000 for left in c("HTTL", "h", "FIELDS", len(fields), *fields)} == {True}
        equal([c("HSTRLEN", "h", field) for field in ("short", "short", "none")], [5, 5, 0])
        equal(c("HSETNX", "h", "f0", "y"), 0)
        equal(c("HSETEX", "h", "FXX", "FIELDS", "1", "f0", "y"), 1)
        equal([c("HGET", "h", "f0"), c("HSTRLEN", "h", "f0")], [b"y", 1])
        equal(server.stop(), 0)


@test
def reads_of_clients_that_have_left_are_not_run(cwd):
    with Small(cwd, 64 * MB) as server:
        with server.client() as c:
            c("SET", "long", b"x" * MB)
        begun = until_quiet(server)
        for _ in range(5):
            s = unread(server)
            s.sendall(encode(("GET", "long")) * 100)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        ran = until_quiet(server) - begun
        assert ran <= 5 * 8, ran
        equal(server.stop(), 0)


@test
def halves_of_requests_and_commands_of_multi_are_counted_and_ended(cwd):
    with Small(cwd, 16 * MB) as server:
        halves = [unread(server) for _ in range(10)]
        before = held(server)
        for s in halves:
            s.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n" + b"v" * 150000)
        until(lambda: held(server) > before + MB)
        queued = [unread(server) for _ in range(60)]
        for s in queued:
            s.setblocking(False)
            try:
                s.send(encode(("MULTI",)) + encode(("SET", "k", b"v" * 100000)) * 10)
            except OSError:
                pass
        with server.client(timeout=DEADLINE_S) as c:
            for _ in range(20):
                equal(c("SET", "k", "1"), "OK")
        assert held(server) <= 20 * MB, held(server)
        for s in halves + queued:
            s.close()
        until(lambda: held(server) < MB)
        equal(server.stop(), 0)


@test
def whoever_has_sent_half_of_a_request_is_told_why_it_ends(cwd):
    """Also if the half was small, and came before the memory was full."""
    with Small(cwd, 16 * MB) as server:
        halves = [unread(server) for _ in range(400)]
        for i, s in enumerate(halves):
            s.sendall(b"*3\r\n$7\r\nPUBLISH\r\n$1\r\nk\r\n$100000\r\n" + b"v" * (30000 if i % 2 else 5000))
        refused = 'frond_refusals_total{limit="memory_bytes"}'
        until(lambda: server.metrics().get(refused, 0) >= 3)
        # Whoever goes on is served, or learns that it is not.
        for i, s in enumerate(halves):
            try:
                s.sendall(b"v" * (70000 if i % 2 else 95000) + b"\r\n")
            except OSError:
                pass
        answers = [s.makefile("rb").readline() for s in halves]
        for answer in answers:
            assert answer[:5] == b"-ERR " and b"memory_bytes" in answer or answer == b":0\r\n", answer
        assert any(answer.startswith(b"-ERR") for answer in answers)
        for s in halves:
            s.close()
        until(lambda: held(server) < MB)
        equal(server.stop(), 0)


@test
def what_comes_in_pieces_stays_within_the_memory(cwd):
    """Halves of requests and commands of MULTI: each piece is little, and their sum is not."""
    memory, clients_count, rounds = 16 * MB, 400, 8
    piece = b"v" * 8000
    begun = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n" + piece, encode(("MULTI",))]
    more = [piece, encode(("SET", "k", piece))]
    with Small(cwd, memory) as server:
        clients = [unread(server) for _ in range(clients_count)]
        peak = 0
        for i in range(rounds):
            for j, s in enumerate(clients):
                s.setblocking(False)
                try:
                    s.send((more if i else begun)[j % 2])
                except OSError:
                    pass
            time.sleep(0.2)  # they rest, and go on
            peak = max(peak, held(server))
            with server.client(timeout=DEADLINE_S) as c:
                equal(c("SET", "short", "1"), "OK")
        assert memory // 2 < peak <= memory + memory // 4, peak
        ended = 'frond_refusals_total{limit="memory_bytes"}'
        until(lambda: server.metrics().get(ended, 0) > 0)
        for s in clients:
            s.close()
        until(lambda: held(server) < MB)
        equal(server.stop(), 0)


@test
def memory_of_scripts_is_that_of_all_requests(cwd):
    """Less than a script may have at most, and more than there is."""
    # A megabyte with each turn of the loop, as tables and as one text.
    tables = "local t = {} for i = 1, %d do local a = {} for j = 1, 65536 do a[j] = j end t[i] = a end return #t"
    text = "return #string.rep('x', %d * 1048576)"
    with Small(cwd, 16 * MB) as server, server.client(timeout=DEADLINE_S) as c:
        equal([c("EVAL", tables % 5, 0), c("EVAL", text % 3, 0)], [5, 3 * MB])
        for script in (tables % 40, text % 30):
            for command in ("EVAL", "EVAL_RO"):
                contains(c.error(command, script, 0), "memory_bytes")
            # It cannot be caught, and nothing of the script happens.
            contains(c.error("EVAL", f"redis.call('SET', 'k', 'v') pcall(function() {script} end) return 1", 1, "k"),
                     "OOM there is no memory for the script (memory_bytes); nothing of it has happened")
            equal(c("EXISTS", "k"), 0)
            # What a collection of garbage finds is there for others.
            equal(c("EVAL", f"for i = 1, 12 do (function() {tables % 3} end)() collectgarbage() end return 1", 0), 1)
        until(lambda: held(server) < MB)
        # Halves of requests hold most of it; a script that needs little runs beside them.
        halves = [unread(server) for _ in range(100)]
        for s in halves:
            s.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n" + b"v" * 90000)
        until(lambda: held(server) > 8 * MB)
        equal(c("EVAL", "return 1", 0), 1)
        contains(c.error("EVAL", "redis.call('SET', 'k', 'v') " + tables % 9, 1, "k"), "memory_bytes")
        for s in halves:
            s.close()
        until(lambda: held(server) < MB)
        equal(c("EVAL", tables % 5, 0), 5)
        equal(server.stop(), 0)


@test
def stacks_of_scripts_count(cwd):
    """What the library of strings has on its stack while functions call each other through it."""
    nested = ("local function f(n) if n == 0 then while true do end end"
              " return (string.gsub('a', 'a', function() return f(n - 1) end)) end return f(%d)")
    with Small(cwd, 32 * MB) as server, server.client(timeout=DEADLINE_S) as c, server.client() as other:
        rest = held(server)
        for depth in (0, 150):
            c.send("EVAL", nested % depth, 0)
            until(lambda: held(server) > rest + (150 * 8192 if depth else 0))
            assert depth or held(server) < rest + MB, held(server)
            equal(other("SCRIPT", "KILL"), "OK")
            contains(str(c.read()), "Script killed by user")
        until(lambda: held(server) < rest + MB // 4)
        equal(server.stop(), 0)


@test
def info_tells_the_memory_of_the_process(cwd):
    with Redis(cwd, "--no-sync") as server:
        with server.client() as c:
            told = dict(line.split(":", 1)
                        for line in c("INFO", "memory").decode().splitlines() if ":" in line)
        resident = int(told["used_memory_rss"])
        # Sanitizers bring a heap of their own, of which libc knows nothing.
        sanitized = b"__asan_init" in pathlib.Path(FROND).read_bytes()
        assert sanitized or 0 < int(told["used_memory"]), told
        assert MB < resident <= int(told["used_memory_peak"]) + 64 * MB, told
        equal(told["used_memory_rss_human"][-1], "M" if resident < 1024 * MB else "G")
        equal([told["maxmemory"], told["maxmemory_human"]], ["0", "0B"])
        equal(server.stop(), 0)


main()
