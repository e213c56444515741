"""Redis's door, as clients see it."""

import collections
import contextlib
import itertools
import pathlib
import random
import re
import signal
import threading

from harness import (Server, computed, contains, equal, main, make_quick_store, ok, run, run_threads, test,
                     until)
from redis_server import Redis, later
from resp import Error

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"


@test
def without_the_option_there_is_no_door(cwd):
    with Server(cwd) as server:
        assert "event=redis" not in server.read_log()


@test
def others_than_this_machine_are_served_with_an_administrator_only(cwd):
    result = run("serve", "--http", "127.0.0.1:0", "--redis", "0.0.0.0:0", cwd=cwd)
    equal(result.returncode, 2)
    contains(result.stderr, "refusing to listen on 0.0.0.0 without an administrator")


@test
def a_database_moves_with_all_that_is_in_it(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("SET", "s", "value", "EX", "3600")
        c("SET", "large", "x" * 200000)
        c("HSET", "h", *[f"f{n}" for n in range(200)])
        c("RPUSH", "l", *range(300))
        c("SADD", "set", "x", "y")
        for n in range(300):
            c("ZADD", "z", n, f"m{n}")
        c("SELECT", "3")
        c("SET", "s", "of another database")
    here = ok("inspect", "redis:0", cwd=cwd).stdout
    item = ok("inspect", "redis:0", "h", cwd=cwd).stdout
    contains(item, "'f198', ")
    assert "m299" not in item and "'large'" not in item, item
    contains(run("inspect", "redis:0", "nothing", cwd=cwd).stderr, 'there is no document "nothing"')
    contains(ok("move", "--from", "embedded:./data", "--to", "embedded:other", "redis:0",
                cwd=cwd).stdout, '"redis:0" moved from ')
    there = ok("inspect", "redis:0", "--store", "embedded:other", cwd=cwd).stdout
    equal(there.split("\n", 1)[1], here.split("\n", 1)[1])
    contains(ok("verify", "redis:0", "--store", "embedded:other", cwd=cwd).stdout, " 0 findings")
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")
    with Redis(cwd, "--store", "embedded:other") as server, server.client() as c:
        equal(c("GET", "s"), b"value")
        assert 3000 < c("TTL", "s") <= 3600
        equal([c("STRLEN", "large"), c("HLEN", "h"), c("LLEN", "l"), c("SCARD", "set")],
              [200000, 100, 300, 2])
        equal([c("ZRANK", "z", "m299"), c("LINDEX", "l", "200"), c("DBSIZE")], [299, b"200", 6])
        equal(c("RPUSH", "l", "300"), 301)
        equal(c("ZADD", "z", "-1", "new"), 1)
        equal(c("ZRANK", "z", "m299"), 300)
    with Redis(cwd) as server, server.client() as c:
        equal(c("DBSIZE"), 0)
        c("SELECT", "3")
        equal(c("GET", "s"), b"of another database")
    contains(ok("verify", "--store", "embedded:other", cwd=cwd).stdout, " 0 findings")


@test
def a_dump_keeps_types_times_and_expiry(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("SET", "s", "value", "EX", "3600")
        c("SET", b"\xff\x00key", b"\x00\xfe" * 700000)
        c("SET", "empty", "")
        c("HSET", "h", *range(5000))
        c("HSET", "h", "late", b"\xff")
        for n in range(0, 3000, 1000):
            c("RPUSH", "l", *range(n, n + 1000))
        c("LPUSH", "l", "first")
        c("SADD", "set", "x", b"\x80", "z" * 2000)
        c("EXPIRE", "set", "1000")
        c("ZADD", "z", *[part for n in range(1500) for part in (n / 3, f"m{n}")])
        c("ZADD", "z", "-inf", "low", "inf", "high", "-0", "zero", "10", "ten")
    text = ok("dump", "redis:0", "--quiet", cwd=cwd).stdout
    target = ("--store", "embedded:other")
    contains(ok("load", "redis:0", "-", *target, cwd=cwd, stdin=text).stdout,
             " loaded into redis:0 in ")
    equal(ok("dump", "redis:0", "--quiet", *target, cwd=cwd).stdout, text)
    contains(ok("verify", *target, cwd=cwd).stdout, " 0 findings")
    with Redis(cwd, *target) as server, server.client() as c:
        equal(c("GET", b"\xff\x00key"), b"\x00\xfe" * 700000)
        equal([c("HLEN", "h"), c("HGET", "h", "late"), c("HGET", "h", "4998")],
              [2501, b"\xff", b"4999"])
        equal([c("LLEN", "l"), c("LINDEX", "l", "0"), c("LINDEX", "l", "3000")],
              [3001, b"first", b"2999"])
        equal(c("ZRANGE", "z", "0", "1", "WITHSCORES"), [b"low", b"-inf", b"m0", b"0"])
        equal([c("ZSCORE", "z", "zero"), c("ZRANK", "z", "high")], [b"-0", 1503])
        equal(sorted(c("SMEMBERS", "set")), [b"x", b"z" * 2000, b"\x80"])
        assert 900 < c("TTL", "set") <= 1000
        equal([c("DBSIZE"), c("STRLEN", "empty"), c("TTL", "l")], [7, 0, -1])
    # A second load replaces what is there.
    ok("load", "redis:0", "-", *target, cwd=cwd, stdin=text)
    equal(ok("dump", "redis:0", "--quiet", *target, cwd=cwd).stdout, text)
    contains(ok("verify", *target, cwd=cwd).stdout, " 0 findings")


@test
def a_backup_has_databases_of_every_door(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("SET", "s", "value")
        c("ZADD", "z", "1", "a", "2", "b")
        c("SELECT", "3")
        c("RPUSH", "l", "a", "b")
    ok("backup", "backups", cwd=cwd)
    ok("restore", "backups", "--store", "embedded:other", cwd=cwd)
    for db in ("redis:0", "redis:3"):
        equal(ok("inspect", db, "--store", "embedded:other", cwd=cwd).stdout,
              ok("inspect", db, cwd=cwd).stdout)
    contains(ok("verify", "--store", "embedded:other", cwd=cwd).stdout, " 0 findings")
    with Redis(cwd, "--store", "embedded:other") as server, server.client() as c:
        equal([c("GET", "s"), c("ZRANGE", "z", "0", "-1")], [b"value", [b"a", b"b"]])
        c("SELECT", "3")
        equal(c("LRANGE", "l", "0", "-1"), [b"a", b"b"])


@test
def a_database_is_dumped_copied_and_moved_with_its_past(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("FROND.HISTORY", "3600")
        while c("FROND.HISTORY")[1] is None:
            pass
        c("SET", "s", "before", "PX", "100000000")
        c("HSET", "h", "f", "1", "g", "2")
        c("RPUSH", "l", *range(50))
        c("ZADD", "z", "1", "a", "2", "b")
        c("SADD", "t", "a", "b")
        c("XADD", "x", "1-1", "f", "v")
        reads = [("GET", "s"), ("HGETALL", "h"), ("LRANGE", "l", "0", "-1"), ("ZRANGE", "z", "0", "-1"),
                 ("SMEMBERS", "t"), ("XRANGE", "x", "-", "+"), ("DBSIZE",), ("KEYS", "*"),
                 ("PEXPIRETIME", "s")]
        at = later(c)
        before = [c(*words) for words in reads]
        for words in (("SET", "s", "after"), ("HDEL", "h", "f"), ("LTRIM", "l", "10", "20"),
                      ("ZINCRBY", "z", "5", "a"), ("DEL", "t"), ("XDEL", "x", "1-1"), ("SET", "n", "1")):
            c(*words)
    text = ok("dump", "redis:0", "--quiet", cwd=cwd).stdout
    past = ok("dump", "redis:0", "--quiet", "--at", str(at / 1000), cwd=cwd).stdout
    contains(past, "before")
    assert '"n"' not in past and '"t"' in past, past
    ok("backup", "backups", cwd=cwd)
    ok("restore", "backups", "--store", "embedded:restored", cwd=cwd)
    ok("move", "--keep-source", "--from", "embedded:./data", "--to", "embedded:moved", "redis:0",
       cwd=cwd)
    ok("load", "redis:0", "-", "--store", "embedded:loaded", cwd=cwd, stdin=past)
    for store in ("restored", "moved"):
        target = ("--store", f"embedded:{store}")
        contains(ok("verify", *target, cwd=cwd).stdout, " 0 findings")
        equal(ok("dump", "redis:0", "--quiet", *target, cwd=cwd).stdout, text)
        equal(ok("dump", "redis:0", "--quiet", "--at", str(at / 1000), *target, cwd=cwd).stdout, past)
        with Redis(cwd, *target) as server, server.client() as c:
            equal([c("FROND.AT", at, *words) for words in reads], before)
            equal(c("GET", "s"), b"after")
            # And it goes on.
            again = later(c)
            c("SET", "s", "since")
            equal(c("FROND.AT", again, "GET", "s"), b"after")
    with Redis(cwd, "--store", "embedded:loaded") as server, server.client() as c:
        equal([c(*words) for words in reads], before)


@test
def each_type_answers(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c("PING"), "PONG")
        equal(c("SET", "s", "1"), "OK")
        equal(c("INCR", "s"), 2)
        equal(c("HSET", "h", "a", "1", "b", "2"), 2)
        equal(sorted(c("HGETALL", "h")), [b"1", b"2", b"a", b"b"])
        equal(c("RPUSH", "l", "a", "b", "c"), 3)
        equal(c("LRANGE", "l", "0", "-1"), [b"a", b"b", b"c"])
        equal(c("SADD", "set", "x", "y"), 2)
        equal(sorted(c("SMEMBERS", "set")), [b"x", b"y"])
        equal(c("ZADD", "z", "2", "b", "1", "a"), 2)
        equal(c("ZRANGE", "z", "0", "-1", "WITHSCORES"), [b"a", b"1", b"b", b"2"])
        equal(sorted(c("KEYS", "*")), [b"h", b"l", b"s", b"set", b"z"])
        equal([c("TYPE", key) for key in ("s", "h", "l", "set", "z", "none")],
              ["string", "hash", "list", "set", "zset", "none"])
        equal(c.error("LPUSH", "s", "x"),
              "WRONGTYPE Operation against a key holding the wrong kind of value")
        equal(c("HELLO", "3")[b"proto"], 3)
        equal(c("HGETALL", "h"), {b"a": b"1", b"b": b"2"})


@test
def what_was_answered_is_there_after_a_kill(cwd):
    with Redis(cwd) as server, server.client() as c:
        for i in range(50):
            c("RPUSH", "list", i)
        c("SET", "a", "b")
        server.stop(signal.SIGKILL)
    with Redis(cwd) as server, server.client() as c:
        equal(c("LLEN", "list"), 50)
        equal(c("GET", "a"), b"b")


class Writer(threading.Thread):
    """
    Writes to what all share until the server is gone, and keeps what was answered; with moments also
    times of the server between two rounds, with the count of rounds until then.
    """

    def __init__(self, server, number, progress, moments=False):
        super().__init__()
        self.client, self.number, self.progress = server.client(), number, progress
        self.done = 0
        self.moments = [] if moments else None

    def note_moment(self):
        done, at = self.done, later(self.client)
        self.moments.append((at, done))

    def run(self):
        try:
            while True:
                if self.moments is not None and self.done % 5 == 0:
                    self.note_moment()
                name = f"{self.number}-{self.done}"
                # A pipeline; the transaction in its middle is there as a whole or not at all.
                for words in (("RPUSH", "list", name), ("MULTI",), ("ZADD", "zset", self.done, name),
                              ("SADD", "set", name), ("EXEC",), ("INCR", f"n{self.number}")):
                    self.client.send(*words)
                answers = [self.client.read() for _ in range(6)]
                assert not any(isinstance(a, Error) for a in answers), answers
                self.done += 1
                self.progress.release()
        except (EOFError, OSError, ValueError):
            self.client.close()


@test
def what_fifty_clients_were_answered_is_there_after_a_kill(cwd):
    progress = threading.Semaphore(0)
    with Redis(cwd) as server:
        writers = [Writer(server, number, progress) for number in range(50)]
        for writer in writers:
            writer.start()
        for _ in range(1000):
            assert progress.acquire(timeout=60)
        server.stop(signal.SIGKILL)
        for writer in writers:
            writer.join()
    with Redis(cwd) as server, server.client() as c:
        elements = c("LRANGE", "list", "0", "-1")
        scores = c("ZRANGE", "zset", "0", "-1")
        equal(len(set(elements)), len(elements))
        equal([c("LLEN", "list"), c("ZCARD", "zset")], [len(elements), len(scores)])
        equal(set(c("SMEMBERS", "set")), set(scores))
        for writer in writers:
            names = [f"{writer.number}-{i}".encode() for i in range(writer.done)]
            assert set(names) <= set(elements) & set(scores)
            # At most one round of each was under way.
            assert writer.done <= int(c("GET", f"n{writer.number}") or 0) <= writer.done + 1
        assert len(elements) <= sum(writer.done + 1 for writer in writers)
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


@test
def what_fifty_clients_were_answered_is_there_after_a_kill_and_so_is_the_past(cwd):
    progress = threading.Semaphore(0)
    with Redis(cwd) as server, server.client() as c:
        c("FROND.HISTORY", "3600")
        while c("FROND.HISTORY")[1] is None:
            pass  # the past begins with a turn in the background
        writers = [Writer(server, number, progress, moments=True) for number in range(50)]
        for writer in writers:
            writer.start()
        for _ in range(600):
            assert progress.acquire(timeout=120)
        server.stop(signal.SIGKILL)
        for writer in writers:
            writer.join()
    with Redis(cwd) as server, server.client() as c:
        for writer in writers:
            for at, done in writer.moments:
                # Nobody writes n while its writer waits for the time to pass, so this is exact.
                equal(int(c("FROND.AT", at, "GET", f"n{writer.number}") or 0), done)
        moments = sorted((at, writer.number, done) for writer in writers
                         for at, done in writer.moments if done)[::20]
        for at, number, done in moments:
            names = {f"{number}-{i}".encode() for i in range(done)}
            past = c.pipeline(*[("FROND.AT", at, *words) for words in (
                ("LRANGE", "list", "0", "-1"), ("LLEN", "list"), ("SMEMBERS", "set"),
                ("ZRANGE", "zset", "0", "-1"), ("ZCARD", "zset"))])
            elements, length, members, ranked, card = past
            equal([len(elements), len(ranked), set(members)], [length, card, set(ranked)])
            assert names <= set(elements) & set(ranked)
            assert f"{number}-{done}".encode() not in elements
        equal(set(c("SMEMBERS", "set")), set(c("ZRANGE", "zset", "0", "-1")))
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


@test
def a_key_costs_the_same_among_few_and_among_many_of_a_command(cwd):
    with Redis(cwd) as server, server.client() as c:
        pid = server.process.pid
        c("SET", "k", "v")

        def cost(command, *counts):
            before = computed(pid)
            for count in counts:
                c(command, *[f"k{n}" for n in range(count)])
            return computed(pid) - before

        for command in ("MGET", "EXISTS", "DEL"):
            # The many fit in no processor's cache, and their memory is new: ten times as dear. Each looked for
            # among all would be 200 times.
            assert cost(command, 100000) < 50 * cost(command, *[500] * 200), command


@test
def clients_that_meet_at_one_key_all_count(cwd):
    with Redis(cwd) as server:
        def count():
            with server.client() as c:
                for _ in range(20):
                    c("INCR", "n")
                    c.pipeline(("INCR", "n"), ("LPUSH", "n", "x"), ("INCR", "n"))

        threads = [threading.Thread(target=count) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with server.client() as c:
            equal(c("GET", "n"), b"1200")


def drawn_command(rand, other):
    """A command of one of two databases. `other` is by how much their numbers differ."""
    key, second = (f"k{rand.randrange(6)}" for _ in range(2))
    word = rand.choice("GET SET STRLEN EXISTS INCR DEL APPEND GETDEL TYPE TTL LLEN LPOP LPUSH HGET HSET SCARD SADD ZSCORE "
                       "ZADD MGET MSET RENAME COPY EXPIRE SELECT SWAPDB FLUSHDB MOVE".split())
    more = {"SET": [rand.randrange(9)], "APPEND": ["x"], "LPUSH": ["a", "b"], "HGET": ["f"], "HSET": ["f", "v"],
            "SADD": ["m"], "ZSCORE": ["m"], "ZADD": [rand.randrange(9), "m"], "RENAME": [second], "COPY": [second],
            "EXPIRE": [rand.choice((-1, 100))], "MOVE": [other + 1], "MSET": ["v", second, "w"],
            "MGET": [f"k{n % 8}" for n in range(20)]}
    if word == "SELECT":
        return word, other + rand.randrange(2)
    return {"SWAPDB": (word, other, other + 1), "FLUSHDB": (word,)}.get(word, (word, key, *more.get(word, ())))


@test
def a_pipeline_answers_what_its_commands_answer_one_by_one(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as one:
        one("SELECT", 2)
        for _ in range(60):
            seed, count = random.getrandbits(32), random.randrange(2, 120)
            commands = [[drawn_command(rand, other) for rand in [random.Random(seed)] for _ in range(count)]
                        for other in (0, 2)]
            told = [c.pipeline(*commands[0]), [answer for command in commands[1] for answer in one.pipeline(command)]]
            equal([str(answer) for answer in told[0]], [str(answer) for answer in told[1]])


@test
def a_pipeline_is_answered_in_order_and_an_error_undoes_nothing_else(cwd):
    with Redis(cwd) as server, server.client() as c:
        answers = c.pipeline(("SET", "a", "x"), ("INCR", "a"), ("NOSUCH", "1"), ("APPEND", "a", "y"),
                             ("SELECT", "1"), ("GET", "a"), ("SELECT", "0"), ("GET", "a"))
        equal(answers, ["OK", Error("ERR value is not an integer or out of range"),
                        Error("ERR unknown command 'NOSUCH', with args beginning with: '1' "), 2,
                        "OK", None, "OK", b"xy"])


@test
def long_requests_come_in_parts(cwd):
    value = bytes(range(256)) * 16384
    with Redis(cwd) as server, server.client() as c:
        equal(c("SET", "large", value), "OK")
        equal(c("STRLEN", "large"), len(value))
        equal(c("GETRANGE", "large", "1000000", "1000009"), value[1000000:1000010])
        equal(c("GET", "large"), value)


@test
def what_is_no_protocol_ends_the_connection(cwd):
    with Redis(cwd) as server, server.client() as c:
        c.socket.sendall(b"*1\r\nfoo\r\n")
        equal(c.read(), Error("ERR Protocol error: expected '$', got 'f'"))
        equal(c.file.read(), b"")


def pattern(seed, length):
    block = bytes((seed + 7 * i) % 251 for i in range(251))
    return (block * (length // len(block) + 1))[:length]


@test
def a_value_may_have_more_bytes_than_a_transaction(cwd):
    first, more = pattern(1, 20_000_000), pattern(2, 9_000_000)
    with Redis(cwd) as server, server.client(timeout=120) as c:
        equal(c("SET", "big", first), "OK")
        assert c("GET", "big") == first
        equal(c("APPEND", "big", more), 29_000_000)
        equal(c("SETRANGE", "big", 5_000_001, more), 29_000_000)
        whole = first[:5_000_001] + more + (first + more)[14_000_001:]
        assert c("GET", "big") == whole
        assert c("GETRANGE", "big", 13_000_000, 16_000_000) == whole[13_000_000:16_000_001]
        equal(c("SETRANGE", "far", 30_000_000, more), 39_000_000)
        assert c("GETRANGE", "far", 29_999_999, 30_000_099) == b"\0" + more[:100]
        # Several of one command, in a transaction, and one that is then not written.
        equal(c("MSET", "a", more, "b", first, "c", more), "OK")
        assert c("MGET", "a", "b", "c") == [more, first, more]
        equal(c.pipeline(("MULTI",), ("SET", "d", first), ("INCR", "n"), ("EXEC",))[-1], ["OK", 1])
        assert c("GET", "d") == first
        equal(c("SET", "d", more, "NX"), None)
        assert c("GET", "d") == first
        contains(c.error("EVAL", "return redis.call('SET', KEYS[1], string.rep('x', 9000000))", 1,
                         "e"), "TIMED_WRITE_BYTES")
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


@test
def members_and_elements_may_be_longer_than_a_record(cwd):
    """Of each type: written, read in all ways, overwritten, copied, renamed, removed, of the past."""
    long, other, name = b"L" * 3_000_000, b"O" * 70_000, b"n" * 100_000
    with Redis(cwd) as server, server.client() as c:
        c("FROND.HISTORY", "1000")
        c("HSET", "h", "f", long, name, other, "g", "short")
        c("RPUSH", "l", "a", long, other)
        c("SADD", "s", name, "m")
        c("ZADD", "z", "1", name, "2", "m", "3", name + b"2")
        c("XADD", "x", "1-1", "f", long, "g", other)
        c("XADD", "x", "2-1", "f", other)
        equal(c("HMGET", "h", "f", name, "g"), [long, other, b"short"])
        equal([c("HSTRLEN", "h", "f"), c("HLEN", "h"), c("HEXISTS", "h", name)], [3_000_000, 3, 1])
        equal(sorted(c("HGETALL", "h")), sorted([b"f", long, name, other, b"g", b"short"]))
        # A page ends behind a member that is this long.
        scanned, cursor = [], None
        while cursor != b"0":
            cursor, page = c("HSCAN", "h", cursor or "0", "COUNT", "100")
            scanned += page
        equal(sorted(scanned), sorted(c("HGETALL", "h")))
        equal(c("LRANGE", "l", "0", "-1"), [b"a", long, other])
        equal([c("LINDEX", "l", "1"), c("LPOS", "l", other)], [long, 2])
        equal([c("SISMEMBER", "s", name), c("SCARD", "s")], [1, 2])
        equal(sorted(c("SMEMBERS", "s")), [b"m", name])
        equal(c("ZRANGE", "z", "0", "-1"), [name, b"m", name + b"2"])
        equal(c("ZRANGE", "z", "1", "2", "BYSCORE", "REV"), [])
        equal([c("ZRANK", "z", name + b"2"), c("ZSCORE", "z", name)], [2, b"1"])
        equal(c("XRANGE", "x", "-", "+"), [[b"1-1", [b"f", long, b"g", other]],
                                           [b"2-1", [b"f", other]]])
        for key in ("h", "l", "s", "z", "x"):
            equal([c("COPY", key, key + "copy"), c("RENAME", key + "copy", key + "2")], [1, "OK"])
        equal(c("HGET", "h2", "f"), long)
        equal(c("LRANGE", "l2", "1", "1"), [long])
        equal(c("ZRANGE", "z2", "0", "0"), [name])
        equal(c("XLEN", "x2"), 2)
        moment = later(c)
        # What is long gets short, what is short gets long, and all of them go.
        equal(c("HSET", "h", "f", "1", "g", long), 0)
        equal(c("HSET", "h", "twice", long, "twice", other), 1)
        equal(c("HMGET", "h", "f", "g", "twice"), [b"1", long, other])
        equal([c("HDEL", "h", "g", name, "twice"), c("HGETALL", "h")], [3, [b"f", b"1"]])
        equal([c("LSET", "l", "1", "b"), c("LSET", "l", "0", long)], ["OK", "OK"])
        equal(c("LRANGE", "l", "0", "-1"), [long, b"b", other])
        equal([c("LPOP", "l"), c("RPOP", "l"), c("LRANGE", "l", "0", "-1")], [long, other, [b"b"]])
        equal([c("SREM", "s", name), c("SMEMBERS", "s")], [1, [b"m"]])
        equal([c("ZADD", "z", "5", name), c("ZINCRBY", "z", "1", name)], [0, b"6"])
        equal(c("ZRANGE", "z", "0", "-1"), [b"m", name + b"2", name])
        equal([c("ZREM", "z", name), c("ZPOPMAX", "z")], [1, [name + b"2", b"3"]])
        equal([c("XDEL", "x", "1-1"), c("XTRIM", "x", "MAXLEN", "0")], [1, 1])
        equal(c("FROND.AT", moment, "HMGET", "h", "f", name, "g"), [long, other, b"short"])
        equal(c("FROND.AT", moment, "LRANGE", "l", "0", "-1"), [b"a", long, other])
        equal(c("FROND.AT", moment, "ZRANGE", "z", "0", "-1"), [name, b"m", name + b"2"])
        equal(sorted(c("FROND.AT", moment, "SMEMBERS", "s")), [b"m", name])
        equal(c("FROND.AT", moment, "XLEN", "x"), 2)
        equal(c("FROND.AT", moment, "XRANGE", "x", "-", "+")[1], [b"2-1", [b"f", other]])
        # A field that has expired goes with its pieces.
        equal(c("HPEXPIRE", "h2", "1", "FIELDS", "1", "f"), [1])
        while c("HLEN", "h2") != 2:
            pass
        # A score whose bytes begin with 0xff, behind the name's pieces.
        equal(c("ZADD", "z3", "-inf", name, "-1", name + b"2"), 2)
        equal(c("ZRANGE", "z3", "0", "-1", "WITHSCORES"), [name, b"-inf", name + b"2", b"-1"])
        equal(sorted(c("ZSCAN", "z3", "0")[1]), sorted([name, b"-inf", name + b"2", b"-1"]))
        for args in (("RPUSH", "l", b"x" * 8_000_001), ("HSET", "h", "f", b"x" * 8_000_000),
                     ("SADD", "s", b"x" * 8_000_001), ("XADD", "x", "*", "f", b"x" * 8_000_000)):
            contains(c.error(*args), "TIMED_ELEMENT_BYTES")
        contains(c.error("RPUSH", "l", *[b"x" * 3_000_000] * 4), "10000000 bytes")
        equal(c("RPUSH", "l", b"x" * 8_000_000), 2)
        server.stop(signal.SIGKILL)
    contains(ok("verify", cwd=cwd).stdout, "0 findings")
    text = ok("dump", "redis:0", "--quiet", cwd=cwd).stdout
    target = ["--store", "embedded:loaded"]
    ok("load", "redis:0", "-", *target, cwd=cwd, stdin=text)
    equal(ok("dump", "redis:0", "--quiet", *target, cwd=cwd).stdout, text)
    contains(ok("verify", *target, cwd=cwd).stdout, "0 findings")
    ok("move", "--from", "embedded:./data", "--to", "embedded:moved", "redis:0", cwd=cwd)
    moved = ["--store", "embedded:moved"]
    equal(ok("dump", "redis:0", "--quiet", *moved, cwd=cwd).stdout, text)
    contains(ok("verify", *moved, cwd=cwd).stdout, "0 findings")


@test
def a_request_that_needs_too_much_memory_is_told_so(cwd):
    (cwd / "frond.ini").write_text("[frond]\nmemory_bytes = 8388608\n")
    with Redis(cwd, "--config", "frond.ini") as server, server.client() as c:
        equal(c("SET", "small", "x" * 1_000_000), "OK")
        with server.client() as other:
            contains(other.error("SET", "large", "x" * 20_000_000), "memory_bytes")
            equal(other.file.read(), b"")
        equal(c("EXISTS", "large"), 0)


@test
def commands_about_a_long_list_count_steps_and_read_it_in_parts(cwd):
    """Each element that is looked at is a step, so what goes through a long list gives way to others, and
    ends at the limit of steps, which the list is longer than here."""
    count, at_once = 1_020_000, 60_000
    (cwd / "frond.ini").write_text("[frond]\nrequest_steps = 1000000\n")
    with Redis(cwd, "--config", "frond.ini") as server, server.client(timeout=240) as c:
        for _ in range(count // at_once):
            c("RPUSH", "l", *["x"] * at_once)
        for command in (("LREM", "l", 0, "none"), ("LPOS", "l", "none"), ("LRANGE", "l", 0, -1),
                        ("LINSERT", "l", "BEFORE", "none", "y"),
                        ("EVAL", "return redis.call('LPOS', KEYS[1], 'none')", 1, "l")):
            contains(c.error(*command), "request_steps")
        equal(c("LLEN", "l"), count)
    # An answer that fits is not kept in memory a second time, element by element.
    (cwd / "frond.ini").write_text("[frond]\nrequest_bytes = 67108864\n")
    with Redis(cwd, "--config", "frond.ini") as server, server.client(timeout=240) as c:
        equal(c("LRANGE", "l", 0, -1), [b"x"] * count)
        equal(c("LRANGE", "l", -5000, -2), [b"x"] * 4999)
        equal(c("LREM", "l", 0, "none"), 0)


@test
def what_was_staged_in_vain_is_removed_from_the_database_it_was_staged_in(cwd):
    with Redis(cwd) as server, server.client(timeout=120) as c:
        big = "x" * 9_000_000
        for db in (0, 1):
            c("SELECT", db)
            c("SET", "there", "x")
        c("SELECT", 0)
        # The copy at the end is more than a transaction writes, so nothing of it happens.
        answer = c.pipeline(("MULTI",), ("SET", "a", big), ("SELECT", 1), ("SET", "b", big),
                            ("BITOP", "NOT", "c", "b"), ("EXEC",))[-1]
        contains(str(answer), "8000000")
        equal(server.metrics()["frond_redis_staged_total"], 2)
        equal([c("EXISTS", "a"), c("SELECT", 1), c("EXISTS", "b")], [0, "OK", 0])
    for db in ("redis:0", "redis:1"):
        text = ok("inspect", db, cwd=cwd).stdout
        contains(text, "'there'")
        assert "\nexpiry\n" not in text, text[:2000]


LIMITS = ["9223372036854775807", "-9223372036854775808", "9223372036854775000", "9223372036854775",
          "-9223372036854775", "70368744177663", "18446744073709551615"]
# With each of these numbers in the place of a _; the tests are built so that an overflow ends the server.
WITH_NUMBERS = """
hexpire h _ FIELDS 1 f | hpexpire h _ FIELDS 1 f | hexpireat h _ FIELDS 1 f | hpexpireat h _ FIELDS 1 f | hset h f v
hgetex h EX _ FIELDS 1 f | hsetex h PXAT _ FIELDS 1 f v | hsetex h EX _ FIELDS 1 f v | httl h FIELDS 1 f
hpttl h FIELDS 1 f | hexpiretime h FIELDS 1 f | hpexpiretime h FIELDS 1 f | httl h FIELDS _ f
set k v EX _ | set k v PX _ | set k v EXAT _ | set k v PXAT _ | ttl k | pttl k | expiretime k | pexpiretime k
object idletime k | getex k EX _ | getex k PXAT _ | setex k _ v | psetex k _ v | expire k _ | pexpire k _
expireat k _ | pexpireat k _ | ttl k | expiretime k | pexpireat k _ GT | copy k k2 | rename k2 k3 | persist k
frond.diff k _ -_s | frond.diff k -_ms -0s | frond.at _ get k | frond.at -_s get k | frond.at -_d get k | frond.history _ | client list id _ | slowlog get _
lrange l _ _ | lrange l 0 _ | ltrim l2 _ _ | lindex l _ | lset l _ v | lrem l _ v | lpop l3 _ | lpos l a rank _
lpos l a count _ | lpos l a maxlen _ | lmpop _ l left | getrange k _ _ | setrange k3 _ v | setbit k3 _ 1 | getbit k _
bitcount k _ _ bit | bitpos k 1 _ _ | bitpos k 0 _ _ bit | bitfield k get u8 #_ | bitfield k set i64 0 _
bitfield k incrby i64 0 _ | bitfield k incrby u63 0 _ | bitfield k overflow sat incrby i64 0 _ | incrby n _ | decrby n _
incrby n _ | hincrby h n _ | hincrby h n _ | zrange z _ _ rev | zrange z 0 -1 byscore limit _ _
zrangebylex z - + limit _ _ | zremrangebyrank z2 _ _ | zpopmin z3 _ | zincrby z _ a | zrandmember z _
zrandmember none _ | srandmember none _ | hrandfield none _ withvalues | sintercard 1 s limit _ | zintercard 1 z limit _
xadd x _-_ f v | xadd x2 _-* f v | xadd x maxlen _ 5-5 f v | xtrim x maxlen ~ _ limit _ | xtrim x minid _-_
xrange x (_-_ (_-_ | xrevrange x (_ (_ count _ | xread count _ streams x _-_ | xsetid x _-_ entriesadded _ maxdeletedid 0-0
xinfo stream x full count _ | scan 0 count _ | scan _ | sort l limit _ _ alpha | lcs k k3 idx minmatchlen _
wait 0 _ | select _ | swapdb _ 0 | eval return _ | memory usage k samples _ | client pause _ | client unpause
json.set j $ [1,[2,3],{"n":4}] | json.arrinsert j $ _ 1 | json.arrinsert j $[1] _ 1 2 | json.arrpop j $ _ | json.arrpop j .[1] _
json.arrtrim j $ _ _ | json.arrindex j $ 1 _ _ | json.set j $ [1,[2,3],{"n":4}] | json.numincrby j $..n _ | json.nummultby j $..n _
json.get j $[_] | json.get j $[_,_] | json.get j $[_:_] | json.get j $[_:_:_] | json.get j $[?(@>_)] | json.set j $[_] 5
multi | blpop none _ | bzpopmin none _ | blmove none b left left _ | xread block _ streams x $ | exec
"""


@test
def values_longer_than_a_transaction_holds_are_read_in_parts_or_refused(cwd):
    with Redis(cwd, "--no-sync") as server, server.client(timeout=90) as c:
        zeros = 500_000_000
        assert c("SETRANGE", "k", zeros, "x") == zeros + 1
        assert c("BITCOUNT", "k") == 4
        assert c("BITCOUNT", "k", 8 * zeros - 30_000_003, 8 * zeros + 1, "BIT") == 1
        assert c("BITPOS", "k", 1, zeros - 3_000_001) == 8 * zeros + 1
        assert c("BITPOS", "k", 0, 0) == 0
        assert str(c.error("INCR", "k")) == "ERR value is not an integer or out of range"
        assert str(c.error("INCRBYFLOAT", "k", "1.5")) == "ERR value is not a valid float"
        for whole in (["SET", "k", "v", "GET"], ["GETSET", "k", "v"], ["LCS", "k", "k"], ["BITOP", "NOT", "k2", "k"]):
            answer = str(c.error(*whole))
            assert answer == f"ERR {zeros + 1} bytes of a value are more than one transaction may hold", answer
        assert c("STRLEN", "k") == zeros + 1


@test
def numbers_are_not_looked_for_in_long_fields(cwd):
    with Redis(cwd, "--no-sync") as server, server.client(timeout=90) as c:
        equal(c("HSET", "h", "f", "x" * 7_900_000, "n", "5"), 2)
        # What was not read is not taken for what is there.
        equal([len(answer) if isinstance(answer, bytes) else str(answer)
               for answer in c.pipeline(["HINCRBY", "h", "f", "1"], ["HGET", "h", "f"])],
              ["ERR hash value is not an integer", 7_900_000])
    (cwd / "frond.conf").write_text("[frond]\nrequest_bytes = 4194304\n")
    with Redis(cwd, "--no-sync", "--config", "frond.conf") as server, server.client(timeout=90) as c:
        equal([str(answer) for answer in c.pipeline(
            ["HINCRBY", "h", "f", "1"], ["HINCRBYFLOAT", "h", "f", "1.5"], ["HSETNX", "h", "f", "1"],
            ["HINCRBY", "h", "n", "1"])],
              ["ERR hash value is not an integer", "ERR hash value is not a float", "0", "6"])


@test
def numbers_at_their_limits_overflow_nothing(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        c("FROND.HISTORY", "1000")
        for number in LIMITS:
            for line in ("set k abc", "rpush l a b c", "rpush l2 a", "rpush l3 a", "zadd z 1 a", "zadd z2 1 a",
                         "zadd z3 1 a", "sadd s a", "xadd x * f v", "set n 5"):
                c.pipeline(line.split())
            for line in WITH_NUMBERS.replace("\n", "|").split("|"):
                if line.strip():
                    c.pipeline(line.replace("_", number).split())
        equal(server.stop(), 0)


@test
def an_exec_that_gets_no_memory_is_answered(cwd):
    """Its MULTI has commands that nearly fill what a request may take."""
    (cwd / "frond.ini").write_text("[frond]\nrequest_bytes = 1048576\n")
    with Redis(cwd, "--config", "frond.ini") as server:
        refused = 0
        for less in range(0, 800, 20):
            with server.client(timeout=20) as c:
                try:
                    answers = c.pipeline(("MULTI",), ("MGET", *["k"] * (65536 - less)), ("EXEC",))
                except EOFError:
                    continue  # the command itself was too long
                equal(answers[0], "OK")
                refused += isinstance(answers[2], Error)
                equal(c("PING"), "PONG")
        assert refused


@test
def sort_holds_little_beside_the_elements_themselves(cwd):
    """A request has room for 32,000 elements of 32 bytes; what orders them by other keys has less."""
    (cwd / "frond.ini").write_text("[frond]\nrequest_bytes = 1048576\n")
    with Redis(cwd, "--config", "frond.ini") as server, server.client(timeout=120) as c:
        def fill(count):
            for first in range(c("LLEN", "l"), count, 1000):
                numbers = [(n * 7919) % 100000 for n in range(first, first + 1000)]
                c("RPUSH", "l", *numbers)
                c("SADD", "s", *numbers)
            return sorted((n * 7919) % 100000 for n in range(count))

        too_much = "ERR the command needs more memory than there is for it (request_bytes"
        numbers = fill(2000)
        equal(c("SORT", "l", "BY", "w_*", "GET", "w_*"), [None] * 2000)
        numbers = fill(20000)
        for key in ("l", "s"):
            equal(list(map(int, c("SORT", key))), numbers)
            equal(c("SORT", key, "ALPHA", "DESC", "LIMIT", "1", "2"), sorted(c("SORT", key))[-2:-4:-1])
        equal(c("SORT", "l", "BY", "nosort", "LIMIT", "3", "2"), [str((n * 7919) % 100000).encode() for n in (3, 4)])
        equal(c("SORT", "l", "LIMIT", "0", "10", "STORE", "d"), 10)
        contains(c.error("SORT", "l", "BY", "w_*"), too_much)
        contains(c.error("SORT", "l", "BY", "nosort", "GET", "w_*"), too_much)
        fill(32000)
        contains(c.error("SORT", "l", "LIMIT", "0", "10"), too_much)
        equal(len(c("SORT", "l", "BY", "nosort", "LIMIT", "0", "10")), 10)
        equal(c("PING"), "PONG")


@test
def a_value_that_is_being_staged_at_a_kill_is_whole_or_absent(cwd):
    values = [pattern(seed, 24_000_000) for seed in range(3)]
    with Redis(cwd) as server, server.client(timeout=120) as c:
        equal(c("SET", "big", values[0]), "OK")
        before = server.metrics()["frond_redis_staged_total"]
        for seed in (1, 2):
            threading.Thread(target=swallow, args=(server, values[seed]), daemon=True).start()
        while server.metrics()["frond_redis_staged_total"] < before + 1:
            pass
        server.stop(signal.SIGKILL)
    with Redis(cwd) as server, server.client(timeout=120) as c:
        assert c("GET", "big") in values
        equal(c("SET", "big", "small"), "OK")
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


def swallow(server, value):
    try:
        with server.client(timeout=120) as c:
            c("SET", "big", value)
    except (EOFError, OSError):
        pass


@test
def a_transaction_is_all_or_nothing(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as other:
        equal(c.pipeline(("MULTI",), ("SET", "a", "1"), ("INCR", "a"), ("EXEC",)),
              ["OK", "QUEUED", "QUEUED", ["OK", 2]])
        c("WATCH", "a")
        other("SET", "a", "5")
        equal(c.pipeline(("MULTI",), ("SET", "a", "6"), ("EXEC",)), ["OK", "QUEUED", None])
        equal(c("GET", "a"), b"5")
        equal(c.pipeline(("WATCH", "a"), ("MULTI",), ("SET", "a", "7"), ("EXEC",)),
              ["OK", "OK", "QUEUED", ["OK"]])
        equal(c.pipeline(("MULTI",), ("NOSUCH",), ("SET", "a", "8"), ("EXEC",))[3],
              Error("EXECABORT Transaction discarded because of previous errors."))
        equal(c("GET", "a"), b"7")


@test
def what_sets_have_already_is_no_change(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as other:
        c("SADD", "s", "a", "b")
        c("SADD", "t", "a")
        c("ZADD", "z", "1", "a", "0", "zero")
        c("WATCH", "s", "t", "z")
        equal(other("SADD", "s", "a", "b", "a"), 0)
        equal(other("SMOVE", "s", "u", "nothing"), 0)
        equal(other("ZADD", "z", "CH", "1", "a", "-0", "zero"), 0)
        other("MULTI"), other("SADD", "t", "a"), other("EXEC")
        equal([c("MULTI"), c("PING"), c("EXEC")], ["OK", "QUEUED", ["PONG"]])
        for words in (("SADD", "s", "a", "c"), ("ZADD", "z", "2", "a", "1", "a"),
                      ("SMOVE", "s", "t", "c")):
            c("WATCH", "s", "z")
            other(*words)
            equal([c("MULTI"), c("PING"), c("EXEC")], ["OK", "QUEUED", None])
        c("WATCH", "t")
        equal(other("SMOVE", "s", "t", "a"), 1)
        equal([c("MULTI"), c("PING"), c("EXEC")], ["OK", "QUEUED", ["PONG"]])
        equal([c("SMEMBERS", "s"), c("SCARD", "t"), c("ZSCORE", "z", "a"), c("ZSCORE", "z", "zero")],
              [[b"b"], 2, b"1", b"0"])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_script_is_one_transaction(cwd):
    script = "redis.call('SET', KEYS[1], ARGV[1]); return {redis.call('GET', KEYS[1]), 1.9, true}"
    with Redis(cwd) as server, server.client() as c, server.client() as sub:
        equal(c("EVAL", script, "1", "a", "x"), [b"x", 1, 1])
        sha = c("SCRIPT", "LOAD", script)
        equal(c("EVALSHA", sha.upper(), "1", "a", "y"), [b"y", 1, 1])
        equal(c("SCRIPT", "EXISTS", sha, "0" * 40), [1, 0])
        equal(c.pipeline(("MULTI",), ("EVALSHA", sha, "1", "a", "z"), ("GET", "a"), ("EXEC",))[3],
              [[b"z", 1, 1], b"z"])
        # As in Redis an error undoes nothing of what the script did before.
        contains(c.error("EVAL", "redis.call('SET', KEYS[1], '1'); redis.call('LPUSH', KEYS[1], 'x')",
                         "1", "a"), "WRONGTYPE")
        equal(c("GET", "a"), b"1")
        sub("SUBSCRIBE", "news")
        equal(c("EVAL", "redis.call('PUBLISH', 'news', 'm'); return redis.status_reply('FINE')", "0"),
              "FINE")
        equal(sub.read(), [b"message", b"news", b"m"])
        equal(c("EVAL", "local t = redis.call('TIME'); for i = 1, 30000 do redis.call('PING') end; "
                "local u = redis.call('TIME'); return t[1] == u[1] and t[2] == u[2]", "0"), 1)
        equal(c("SCRIPT", "FLUSH"), "OK")
        equal(c.error("EVALSHA", sha, "1", "a", "y"),
              "NOSCRIPT No matching script. Please use EVAL.")
        contains(c.error("EVAL_RO", script, "1", "a", "y"), "Write commands are not allowed")
        contains(c.error("EVAL", "#!lua flags=no-writes\n" + script, "1", "a", "y"),
                 "Write commands are not allowed")


@test
def scripts_meet_at_keys_that_they_name_and_at_others(cwd):
    with Redis(cwd) as server:
        def count(named):
            with server.client() as c:
                for _ in range(25):
                    c("EVAL", "local n = tonumber(redis.call('GET', 'n') or 0); "
                      "redis.call('SET', 'n', n + 1)", *(("1", "n") if named else ("1", "m")))
                    c("INCR", "n")

        threads = [threading.Thread(target=count, args=(i % 2 == 0,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with server.client() as c, server.client() as other:
            equal(c("GET", "n"), b"400")
            # A key that a script does not name is watched all the same.
            c("WATCH", "n")
            other("EVAL", "redis.call('SET', 'n', 'x')", "0")
            equal(c.pipeline(("MULTI",), ("SET", "n", "y"), ("EXEC",)), ["OK", "QUEUED", None])


@test
def a_script_stays_in_its_sandbox(cwd):
    readonly = "Attempt to modify a readonly table"
    absent = "Script attempted to access nonexistent global variable"
    with Redis(cwd) as server, server.client(timeout=600) as c:
        # On a busy machine the time of a script may end before its memory.
        equal(c("CONFIG", "SET", "lua-time-limit", "0"), "OK")
        for script, text in [
                ("a = 1", readonly), ("redis.call = 1", readonly), ("_G = {}", readonly),
                ("setmetatable(_G, {})", readonly), ("getmetatable(_G).__index = {}", readonly),
                ("rawset(_G, 'a', 1)", readonly), ("string.rep = 1", readonly),
                ("cjson.encode = 1", readonly), ("return a", absent), ("print('x')", absent),
                ("dofile('x')", absent), ("loadfile('x')", absent), ("return package", absent),
                ("return io", absent), ("return debug", absent), ("return require", absent),
                ("os.exit()", "attempt to call field 'exit'"),
                ("return loadstring(string.dump(function() end))()", "attempt to call a nil value"),
                ("return string.rep('x', 1e9)", "SCRIPT_MEMORY_BYTES"),
                ("local s = 'x'; while true do s = s .. s end", "memory"),
                ("local t = {}; for i = 1, 1e9 do t[i] = {} end", "memory"),
                ("return ('x'):find(('a?'):rep(100000))", "SCRIPT_PATTERN_BYTES"),
                ("local function f() return f() + 1 end; return f()", "stack overflow"),
                ("local function f() return coroutine.wrap(f)() end; return f()", "C stack overflow"),
                ("local function f() return ('x'):gsub('.', f) end; return f()", "C stack overflow"),
                ("return loadstring(('('):rep(5000))()", "attempt to call a nil value"),
                ("redis.call('BLPOP', 'a', 0)", "not allowed from script"),
                ("redis.call('CONFIG', 'GET', '*')", "not allowed from script"),
                ("redis.call('EVAL', 'return 1', 0)", "not allowed from script"),
                ("this is not Lua", "Error compiling script"),
                ("return cjson.decode('[1')", "Expected comma or array end but found T_END"),
                ("return cjson.decode(('['):rep(2000))", "too many nested data structures")]:
            contains(c.error("EVAL", script, "0"), text)
        equal(c("EVAL", "local a = {}; a[1] = a; return pcall(tostring, a)", "0"), 1)
        equal(c("EVAL", "return cjson.encode(cjson.decode(ARGV[1]))", "0",
                '[1, 2.5, "a\\u00e9\\n/", {"x": [null, true]}, {}]'),
              '[1,2.5,"aé\\n\\/",{"x":[null,true]},{}]'.encode())
        equal(c("EVAL", "return {bit.band(0xff, 15), bit.tohex(255, 4), bit.bxor(1, 2)}", "0"),
              [15, b"00ff", 3])
        equal(c("EVAL", "local b = math.random; math.randomseed(7); return tostring(b())", "0"),
              c("EVAL", "local b = math.random; math.randomseed(7); return tostring(b())", "0"))


@test
def a_long_script_holds_up_nobody_and_can_be_ended(cwd):
    endless = ("redis.call('SET', 'a', '1'); while true do "
               "pcall(function() while true do redis.call('PING') end end) end")
    with Redis(cwd) as server, server.client() as c, server.client() as other:
        equal(other.error("SCRIPT", "KILL"), "NOTBUSY No scripts in execution right now.")
        for script in ("while true do end", endless):
            c.send("EVAL", script, "0")
            while True:
                other.send("SCRIPT", "KILL")
                if other.read() == "OK":
                    break
            equal(other("PING"), "PONG")
            contains(str(c.read()), "Script killed by user with SCRIPT KILL")
            equal(other("GET", "a"), None)
        other("CONFIG", "SET", "lua-time-limit", "100")
        answers = c.pipeline(("SET", "b", "1"), ("EVAL", endless, "1", "a"), ("INCR", "b"))
        contains(str(answers[1]), "(lua-time-limit)")
        equal([answers[0], answers[2]], ["OK", 2])
        equal(other("GET", "a"), None)
        equal(c("PING"), "PONG")


@test
def a_pause_of_writes_is_about_scripts_too(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as other:
        c("CLIENT", "PAUSE", "100000", "WRITE")
        other.send("EVAL", "return redis.call('INCR', KEYS[1])", "1", "a")
        while b"blocked_clients:1\r\n" not in c("INFO", "clients"):
            pass
        equal(c("EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "a"), None)
        c("CLIENT", "UNPAUSE")
        equal(other.read(), 1)


@test
def those_who_wait_are_served_in_their_order(cwd):
    with Redis(cwd) as server, server.client() as c:
        waiting = [server.client() for _ in range(3)]
        for number, one in enumerate(waiting, 1):
            one.send("BLPOP", "queue", "0")
            while b"blocked_clients:%d\r\n" % number not in c("INFO", "clients"):
                pass
        for number, one in enumerate(waiting):
            c("RPUSH", "queue", number)
            equal(one.read(), [b"queue", str(number).encode()])
        one = waiting[0]
        one.send("BLMOVE", "queue", "other", "LEFT", "LEFT", "0")
        while b"blocked_clients:1\r\n" not in c("INFO", "clients"):
            pass
        c("RPUSH", "queue", "x")
        equal(one.read(), b"x")
        equal(c("LRANGE", "other", "0", "-1"), [b"x"])
        equal(one("BLPOP", "queue", "0.01"), None)
        for one in waiting:
            one.close()


def block(c, number, client, *command):
    client.send(*command)
    while b"blocked_clients:%d\r\n" % number not in c("INFO", "clients"):
        pass


@test
def those_who_wait_keep_their_order_when_all_of_them_are_woken(cwd):
    """By the end of a pause and by other rights, after which each looks whether it may go on waiting."""
    with Redis(cwd) as server, server.client() as c, contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(server.client()) for _ in range(8)]
        done = threading.Event()

        def wake():
            with server.client() as other:
                for way in itertools.cycle(("+@read", "-@read")):
                    if done.is_set():
                        break
                    other("CLIENT", "UNPAUSE")
                    other("ACL", "SETUSER", "ann", way)

        def push():
            try:
                for _ in range(5):
                    for number, one in enumerate(waiting, 1):
                        block(c, number, one, "BLPOP", "queue", "0")
                    for number in range(len(waiting)):
                        c("RPUSH", "queue", number)
                    equal([one.read()[1] for one in waiting],
                          [b"%d" % number for number in range(len(waiting))])
            finally:
                done.set()

        run_threads(wake, push)


@test
def whoever_waits_is_served_before_the_next_command(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as one, \
            server.client() as two, server.client() as three:
        def lists():
            return [["LRANGE", name, "0", "-1"] for name in ("a", "b", "c")]

        for push in (["RPUSH", "a", "x"], ["EVAL", "return redis.call('RPUSH', 'a', 'x')", "0"]):
            block(c, 1, one, "BLMOVE", "a", "b", "RIGHT", "LEFT", "0")
            block(c, 2, two, "BLMOVE", "b", "c", "LEFT", "RIGHT", "0")
            equal(c.pipeline(push, *lists(), ["DEL", "c"]), [1, [], [], [b"x"], 1])
            equal([one.read(), two.read()], [b"x", b"x"])
        # In a circle it comes back.
        block(c, 1, one, "BRPOPLPUSH", "a", "b", "0")
        block(c, 2, two, "BRPOPLPUSH", "b", "a", "0")
        equal(c.pipeline(["RPUSH", "a", "x"], *lists()), [1, [b"x"], [], []])
        equal([one.read(), two.read(), c("DEL", "a")], [b"x", b"x", 1])
        # A transaction and a script bring something when they have ended.
        block(c, 1, one, "BLPOP", "z", "a", "0")
        block(c, 2, two, "BZPOPMIN", "a", "z", "0")
        equal(c.pipeline(["MULTI"], ["RPUSH", "a", "1"], ["DEL", "a"], ["ZADD", "a", "1", "m"],
                         ["EXEC"], ["EXISTS", "a"])[4:], [[1, 1, 1], 0])
        equal(two.read(), [b"a", b"m", b"1"])
        # As many as there is something for, in their order.
        block(c, 2, two, "BLMPOP", "0", "1", "a", "LEFT", "COUNT", "2")
        block(c, 3, three, "BLPOP", "a", "0")
        equal(c.pipeline(["RPUSH", "a", "1", "2", "3"], ["LLEN", "a"]), [3, 0])
        equal([one.read(), two.read()], [[b"a", b"1"], [b"a", [b"2", b"3"]]])
        equal(c.pipeline(["LPUSH", "a", "4"], ["LPOP", "a"], ["RPUSH", "a", "5"]), [1, None, 1])
        equal([three.read(), c("LPOP", "a")], [[b"a", b"4"], b"5"])
        # Whoever gets an error takes nothing, and what is too large for a transaction comes later.
        c("SET", "b", "no list")
        block(c, 1, one, "BLMOVE", "a", "b", "LEFT", "LEFT", "0")
        block(c, 2, two, "BLMOVE", "a", "c", "LEFT", "LEFT", "0")
        equal(c.pipeline(["RPUSH", "a", "x"], ["LLEN", "a"], ["LLEN", "c"]), [1, 0, 1])
        contains(str(one.read()), "WRONGTYPE")
        equal(two.read(), b"x")
        block(c, 1, one, "BLMOVE", "a", "c", "LEFT", "LEFT", "0")
        equal(c("RPUSH", "a", "y" * 3000000), 1)
        equal([len(one.read()), c("LLEN", "a")], [3000000, 0])


@test
def whoever_waits_gets_each_element_once_whatever_ends_the_waiting(cwd):
    with Redis(cwd) as server, server.client() as c:
        total = 600
        got, ids = [], []

        def work(number):
            with server.client() as own:
                ids.append(own("CLIENT", "ID"))
                other = "bc"[number % 2]
                while not done.is_set():
                    if number < 4:
                        own("BLMOVE", "abc"[number % 2], "bc"[number % 2], "LEFT", "RIGHT", "0.01")
                    else:
                        popped = own("BLPOP", "none", other, "0.01")
                        got.extend(popped[1:] if popped else [])

        done = threading.Event()
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for n in range(0, total, 3):
            c.pipeline(*[["RPUSH", "a", n + i] for i in range(3)],
                       *[["CLIENT", "UNBLOCK", one] for one in ids[n % 8:][:1]])
        while len(got) < total:
            pass
        done.set()
        for thread in threads:
            thread.join()
        equal(sorted(map(int, got)), list(range(total)))
        equal(c("EXISTS", "a", "b", "c"), 0)
        contains(c("INFO", "clients").decode(), "blocked_clients:0\r\n")


@test
def messages_go_to_subscribers_and_keys_tell_of_changes(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as sub:
        equal(sub("SUBSCRIBE", "news"), [b"subscribe", b"news", 1])
        equal(sub("PSUBSCRIBE", "__key*__:*"), [b"psubscribe", b"__key*__:*", 2])
        equal(c("PUBLISH", "news", "hello"), 1)
        equal(sub.read(), [b"message", b"news", b"hello"])
        equal(c("CONFIG", "SET", "notify-keyspace-events", "KEA"), "OK")
        c("SET", "a", "1")
        equal(sub.read(), [b"pmessage", b"__key*__:*", b"__keyspace@0__:a", b"set"])
        equal(sub.read(), [b"pmessage", b"__key*__:*", b"__keyevent@0__:set", b"a"])
        contains(sub.error("GET", "a"), "only (P|S)SUBSCRIBE")


@test
def keys_tell_that_they_are_new_missed_or_expired(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as sub:
        sub("PSUBSCRIBE", "__keyevent@*__:*")

        def events(letters, *commands):
            """What the commands publish; a message tells where they end."""
            c("CONFIG", "SET", "notify-keyspace-events", letters)
            for command in commands:
                c.send(*command)
                c.read()
            c("PUBLISH", "__keyevent@end__:", "")
            seen = []
            while (message := sub.read())[2] != b"__keyevent@end__:":
                seen.append((message[2].decode().split(":")[1], message[3].decode()))
            return seen

        equal(events("En", ("SET", "a", "1"), ("SET", "a", "2"), ("RPUSH", "l", "x"), ("LPOP", "l"),
                     ("RPUSH", "l", "x"), ("RENAME", "l", "k"), ("COPY", "k", "m"), ("DEL", "a"),
                     ("MULTI",), ("INCR", "a"), ("INCR", "a"), ("EXEC",), ("SUNIONSTORE", "d", "e")),
              [("new", "a"), ("new", "l"), ("new", "l"), ("new", "k"), ("new", "m"), ("new", "a")])
        equal(events("Em", ("GET", "a"), ("GET", "none"), ("MGET", "none", "a", "other"),
                     ("EXISTS", "none"), ("SET", "none2", "x"), ("OBJECT", "ENCODING", "none")),
              [("keymiss", "none"), ("keymiss", "none"), ("keymiss", "other"), ("keymiss", "none")])
        equal(events("EA$", ("SET", "a", "1"), ("GET", "none")), [("set", "a")])
        # Of keys that nobody touches the sweep tells.
        c("CONFIG", "SET", "notify-keyspace-events", "Exg")
        c("CONFIG", "RESETSTAT")
        contains(c("INFO", "stats"), b"\r\nexpired_keys:0\r\n")
        c("SELECT", "3")
        c("PSETEX", "short", "1", "x")
        equal(sub.read(), [b"pmessage", b"__keyevent@*__:*", b"__keyevent@3__:expire", b"short"])
        equal(sub.read(), [b"pmessage", b"__keyevent@*__:*", b"__keyevent@3__:expired", b"short"])
        # Whoever writes one that has expired tells of it at once, or the sweep did so before.
        c("PSETEX", "short", "1", "x")
        while c("EXISTS", "short"):
            pass
        equal(c("APPEND", "short", "y"), 1)
        equal(sub.read()[2], b"__keyevent@3__:expire")
        equal(sub.read()[2], b"__keyevent@3__:expired")
        contains(c("INFO", "stats"), b"\r\nexpired_keys:2\r\n")


@test
def a_value_whose_time_has_passed_expires_as_others_do(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as sub:
        sub("PSUBSCRIBE", "__keyevent@0__:*")
        c("CONFIG", "SET", "notify-keyspace-events", "EAn")
        for past in (("PXAT", "5"), ("EXAT", "5")):
            equal(c("SET", "a", "x", *past), "OK")
            equal([c("EXISTS", "a"), c("GET", "a"), c("TTL", "a"), c("DBSIZE") in (0, 1)],
                  [0, None, -2, True])
            # The sweep tells of it.
            equal([sub.read()[2] for _ in range(4)],
                  [b"__keyevent@0__:" + e for e in (b"new", b"set", b"expire", b"expired")])
            equal(c("DBSIZE"), 0)
        contains(c("INFO", "stats"), b"\r\nexpired_keys:2\r\n")
        # In one transaction whoever writes next finds that it has expired.
        c("RPUSH", "a", "1")
        c("MULTI")
        for command in (("SET", "a", "x", "GET"), ("SET", "a", "x", "PXAT", "5"), ("LLEN", "a"),
                        ("SET", "a", "x", "XX"), ("SET", "a", "y", "NX", "EXAT", "1"),
                        ("APPEND", "a", "z"), ("GET", "a"), ("EXPIREAT", "a", "5")):
            c(*command)
        equal(c("EXEC")[1:], ["OK", 0, None, "OK", 1, b"z", 1])
        equal([sub.read()[2].decode().split(":")[1] for _ in range(12)],
              ["new", "rpush", "set", "expire", "expired", "new", "set", "expire", "expired", "new",
               "append", "del"])
        # What is read, and has come, is removed at once.
        c("SET", "a", "x")
        equal(c("GETEX", "a", "PXAT", "5"), b"x")
        equal(c("DBSIZE"), 0)
        equal([sub.read()[2].decode().split(":")[1] for _ in range(3)], ["new", "set", "del"])


@test
def commands_that_write_count_what_they_only_read(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as sub:
        sub("PSUBSCRIBE", "__keyevent@*__:*")
        c("CONFIG", "SET", "notify-keyspace-events", "Em")

        def looked(*command):
            """Hits, misses and the keys that are told to be missed."""
            c("CONFIG", "RESETSTAT")
            c.send(*command)
            c.read()
            c("PUBLISH", "__keyevent@end__:", "")
            missed = []
            while (message := sub.read())[2] != b"__keyevent@end__:":
                missed.append(message[3].decode())
            stats = counted(c, "stats")
            return int(stats["keyspace_hits"]), int(stats["keyspace_misses"]), missed

        for command in (("GETEX", "v"), ("GETSET", "v", "1"), ("SET", "v", "1", "GET"),
                        ("BITOP", "NOT", "d", "v"), ("BITFIELD", "v", "GET", "u8", "0"),
                        ("COPY", "v", "w"), ("SORT", "v", "STORE", "d"), ("SUNIONSTORE", "d", "v"),
                        ("ZUNIONSTORE", "d", "1", "v"), ("ZRANGESTORE", "d", "v", "0", "-1"),
                        ("GETDEL", "v")):
            c("DEL", "v", "w", "d")
            equal((command, looked(*command)), (command, (0, 1, ["v"])))
            c("SET", "v", "1")
            equal((command, looked(*command)), (command, (1, 0, [])))
        for command in (("APPEND", "v", "1"), ("INCR", "v"), ("RENAME", "v", "w"), ("LPOP", "l"),
                        ("SET", "v", "1"), ("EXPIRE", "n", "1"), ("DEL", "n"),
                        ("BITFIELD", "v", "SET", "u8", "0", "1")):
            equal((command, looked(*command)), (command, (0, 0, [])))
        equal(looked("OBJECT", "ENCODING", "v"), (1, 0, []))
        equal(looked("OBJECT", "ENCODING", "none"), (0, 1, []))


@test
def messages_come_although_answers_are_off(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as sub:
        sub("HELLO", "3")
        sub.send("CLIENT", "REPLY", "OFF")
        equal(sub("SUBSCRIBE", "news"), [b"subscribe", b"news", 1])
        sub.send("PING")
        c("PUBLISH", "news", "hello")
        equal(sub.read(), [b"message", b"news", b"hello"])
        equal(sub("CLIENT", "REPLY", "ON"), "OK")


@test
def a_pause_of_writes_stops_writes_alone(cwd):
    with Redis(cwd) as server, server.client() as c, \
            server.client() as writer, server.client() as script:
        equal(c("PFADD", "log", "x"), 1)
        equal(c("CLIENT", "PAUSE", "100000", "WRITE"), "OK")
        equal(c("GET", "a"), None)
        equal(c("EVAL_RO", "return 1", "0"), 1)
        contains(c("INFO"), b"blocked_clients:0\r\n")
        # What Redis would tell replicas of waits, too.
        with server.client() as counter, server.client() as publisher, server.client() as queue:
            counter.send("PFCOUNT", "log")
            publisher.send("PUBLISH", "channel", "m")
            queue("MULTI")
            queue("PFCOUNT", "log")
            queue.send("EXEC")
            until(lambda: b"blocked_clients:3\r\n" in c("INFO"))
            c("CLIENT", "UNPAUSE")
            equal([counter.read(), publisher.read(), queue.read()], [1, 0, [1]])
        c("CLIENT", "PAUSE", "100000", "WRITE")
        writer.send("SET", "a", "b")
        script.send("EVAL", "return 2", "0")
        while b"blocked_clients:2\r\n" not in c("INFO"):
            pass
        equal(c("GET", "a"), None)
        equal(c("CLIENT", "UNPAUSE"), "OK")
        equal([writer.read(), script.read()], ["OK", 2])
        contains(c("INFO"), b"blocked_clients:0\r\n")


@test
def subcommands_want_their_arguments(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c.error("CLIENT", "KILL"),
              "ERR wrong number of arguments for 'client|kill' command")


@test
def clients_are_listed_and_killed(cwd):
    with Redis(cwd, "--admin", "root:secret") as server, server.client() as c, \
            server.client() as other, server.client() as third:
        for client in (c, other, third):
            client("AUTH", "root", "secret")
        other("CONFIG", "GET", "port")
        third("SELECT", "0")
        lines = c("CLIENT", "LIST").decode().splitlines()
        for name in ("client|list", "config|get", "select"):
            line, = [line for line in lines if f" cmd={name} " in line]
            contains(line, f" laddr=127.0.0.1:{server.port} ")
        contains(c("CLIENT", "INFO"), b" qbuf=26 ")
        equal(c.error("CLIENT", "KILL", "USER", "nobody"), "ERR No such user 'nobody'")
        equal(c("CLIENT", "KILL", "USER", "default"), 0)
        equal(c("CLIENT", "KILL", "LADDR", "127.0.0.1:1"), 0)
        equal(c("CLIENT", "KILL", "ID", other("CLIENT", "ID"), "LADDR", f"127.0.0.1:{server.port}"), 1)
        equal(other.file.read(), b"")
        equal(c("CLIENT", "KILL", "USER", "root"), 1)
        equal(third.file.read(), b"")


@test
def a_timeout_ends_connections_that_ask_for_nothing(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as idle, server.client() as sub:
        idle("PING")
        sub("SUBSCRIBE", "news")
        equal(c("CONFIG", "SET", "timeout", "1"), "OK")
        while c("CLIENT", "LIST").count(b"\n") > 2:
            pass
        equal(idle.file.read(), b"")
        c("CONFIG", "SET", "timeout", "0")
        c("PUBLISH", "news", "hello")
        equal(sub.read(), [b"message", b"news", b"hello"])


@test
def settings_are_looked_for_before_their_values(cwd):
    with Redis(cwd) as server, server.client() as c:
        contains(c.error("CONFIG", "SET", "maxmemory", "1", "maxmemory", "2"), "duplicate parameter")
        contains(c.error("CONFIG", "SET", "maxmemory", "1", "nosuch", "2"), "Unknown option")
        contains(c.error("CONFIG", "SET", "maxmemory", "1"), "frond cannot set it")
        contains(c.error("CONFIG", "SET", "daemonize", "yes"), "immutable")
        equal(c("CONFIG", "SET", "port", server.port), "OK")
        contains(c.error("CONFIG", "SET", "port", "1"), "frond cannot set it")


@test
def keys_of_subcommands_are_known(cwd):
    admin = ("--admin", "root:secret")
    make_quick_store(cwd)
    ok("user", "add", "ann", "--roles", "redis:~cache:* +@all", cwd=cwd, stdin="pw\n")
    with Redis(cwd, *admin) as server, server.client() as c:
        c("AUTH", "ann", "pw")
        c("SET", "cache:a", "1")
        equal(c("OBJECT", "ENCODING", "cache:a"), b"int")
        for words in (("OBJECT", "ENCODING", "other"), ("MEMORY", "USAGE", "other")):
            contains(c.error(*words), "NOPERM")
        equal(c("COMMAND", "GETKEYS", "MEMORY", "USAGE", "a"), [b"a"])
        equal(c.error("COMMAND", "GETKEYS", "MEMORY", "DOCTOR"), "ERR The command has no key arguments")
        equal(c.error("COMMAND", "LIST", "FILTERBY", "nothing", "x"), "ERR syntax error")
        listed = c("COMMAND", "LIST", "FILTERBY", "PATTERN", "config*")
        equal(listed[:2], [b"config", b"config|get"])
        assert b"script|kill" in c("COMMAND", "LIST", "FILTERBY", "ACLCAT", "scripting")
        assert b"client|list" in c("COMMAND", "LIST")
        equal(c("COMMAND", "LIST", "FILTERBY", "MODULE", "x"), [])
        equal(c("COMMAND", "GETKEYSANDFLAGS", "MSET", "a", "1", "b", "2"),
              [[b"a", ["OW", "update"]], [b"b", ["OW", "update"]]])
        equal(c("COMMAND", "GETKEYSANDFLAGS", "LMOVE", "a", "b", "LEFT", "RIGHT"),
              [[b"a", ["RW", "access", "delete"]], [b"b", ["RW", "insert"]]])
        equal(c("COMMAND", "GETKEYSANDFLAGS", "SET", "a", "1", "GET"),
              [[b"a", ["RW", "access", "update"]]])
        equal(c("COMMAND", "GETKEYSANDFLAGS", "HGET", "a", "f"), [[b"a", ["RO", "access"]]])
        equal(c("COMMAND", "GETKEYSANDFLAGS", "BITFIELD", "a", "GET", "u8", "0"),
              [[b"a", ["RO", "access"]]])
        equal(c("COMMAND", "GETKEYS", "EVAL", "x", "2", "a"), [])
        equal(c.error("COMMAND", "GETKEYS", "SSUBSCRIBE", "a"), "ERR The command has no key arguments")
        equal(c.error("COMMAND", "GETKEYS", "OBJECT", "NOSUCH", "a"), "ERR Invalid command specified")


@test
def commands_tell_where_their_keys_are(cwd):
    with Redis(cwd) as server, server.client() as c:
        def info(name):
            return c("COMMAND", "INFO", name)[0]

        def one(flags, begin, find):
            return [b"flags", flags.split(), b"begin_search", begin, b"find_keys", find]

        def index(i):
            return [b"type", b"index", b"spec", [b"index", i]]

        def span(last, step, limit):
            return [b"type", b"range", b"spec", [b"lastkey", last, b"keystep", step, b"limit", limit]]

        equal(info("mset")[8], [one("OW update", index(1), span(-1, 2, 0))])
        equal(info("bitop")[8], [one("OW update", index(2), span(0, 1, 0)),
                                 one("RO access", index(3), span(-1, 1, 0))])
        counted = [b"type", b"keynum", b"spec", [b"keynumidx", 0, b"firstkey", 1, b"keystep", 1]]
        equal(info("zunionstore")[8], [one("OW update", index(1), span(0, 1, 0)),
                                       one("RO access", index(2), counted)])
        word = [b"type", b"keyword", b"spec", [b"keyword", b"STREAMS", b"startfrom", 1]]
        equal(info("xread")[8], [one("RO access", word, span(-1, 1, 2))])
        sort = info("sort")[8]
        equal(sort[0], one("RO access", index(1), span(0, 1, 0)))
        equal(sort[1][0], b"notes")
        equal(sort[2][4:], [b"begin_search", [b"type", b"unknown", b"spec", []],
                            b"find_keys", [b"type", b"unknown", b"spec", []]])
        equal(info("object|encoding")[8], [one("RO", index(2), span(0, 1, 0))])
        equal(info("OBJECT|encoding")[7], [b"nondeterministic_output"])
        equal(info("object|nosuch"), None)
        assert "no_mandatory_keys" in info("eval")[2] and not info("xinfo")[2]


@test
def people_log_in_and_may_do_what_their_roles_say(cwd):
    admin = ("--admin", "root:secret")
    with Redis(cwd, *admin) as server, server.client() as c:
        equal(c.error("GET", "a"), "NOAUTH Authentication required.")
        contains(c.error("AUTH", "root", "wrong"), "WRONGPASS")
        equal(c("AUTH", "root", "secret"), "OK")
        equal(c("ACL", "WHOAMI"), b"root")
        equal(c("SET", "cache:a", "1"), "OK")
        server.stop()
    make_quick_store(cwd)
    ok("user", "add", "ann", "--roles", "redis:~cache:* +@read", cwd=cwd,
       stdin="pw\n")
    with Redis(cwd, *admin) as server, server.client() as c:
        equal(c("AUTH", "ann", "pw"), "OK")
        equal(c("GET", "cache:a"), b"1")
        contains(c.error("GET", "other"), "NOPERM this user has no permissions to access one of")
        equal(c.error("SET", "cache:a", "2"),
              "NOPERM this user has no permissions to run the 'set' command")


@test
def a_stop_ends_waiting_connections(cwd):
    with Redis(cwd) as server, server.client() as idle, server.client() as waits:
        idle("PING")
        waits.send("BLPOP", "nothing", "0")
        with server.client() as c:
            while b"blocked_clients:1\r\n" not in c("INFO", "clients"):
                pass
        equal(server.stop(), 0)


@test
def databases_are_exchanged_as_a_whole(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as other, \
            server.client() as waits:
        equal(c("SWAPDB", "3", "4"), "OK")
        c("MSET", "a", "1", "b", "2")
        equal(c("SWAPDB", "0", "1"), "OK")
        equal([c("GET", "a"), c("DBSIZE")], [None, 0])
        other("SELECT", "1")
        equal(other("MGET", "a", "b"), [b"1", b"2"])
        for words, text in [(("x", "1"), "ERR invalid first DB index"),
                            (("0", "1.5"), "ERR invalid second DB index"),
                            (("0", "16"), "ERR DB index is out of range"),
                            (("-1", "0"), "ERR DB index is out of range")]:
            equal(c.error("SWAPDB", *words), text)
        equal(c("SWAPDB", "1", "1"), "OK")
        # Keys that are there, before or afterwards, are others; the rest is still not there.
        for key, answer in [("a", None), ("none", ["OK"])]:
            for client in (c, other):
                client("WATCH", key)
            c("SWAPDB", "1", "0")
            for client in (c, other):
                equal(client.pipeline(("MULTI",), ("SET", "x", "1"), ("EXEC",))[2], answer)
            c("SWAPDB", "0", "1")
        # With what follows in the same transaction.
        equal(c.pipeline(("MULTI",), ("SET", "n", "zero"), ("SWAPDB", "0", "1"), ("GET", "n"),
                         ("SET", "m", "new"), ("SELECT", "1"), ("MGET", "n", "m"), ("EXEC",))[7],
              ["OK", "OK", None, "OK", "OK", [b"zero", None]])
        c("SELECT", "0")
        c("FLUSHALL")
        # Whoever waits gets what comes with the other database.
        waits.send("BLPOP", "none", "list", "0")
        while b"blocked_clients:1\r\n" not in c("INFO", "clients"):
            pass
        other("RPUSH", "list", "x")
        c("SWAPDB", "0", "1")
        equal(waits.read(), [b"list", b"x"])
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


@test
def fields_of_hashes_expire(cwd):
    with Redis(cwd) as server, server.client() as c:
        def fields(command, *names, key="h", options=()):
            return c(command, key, *options, "FIELDS", len(names), *names)

        c("HSET", "h", "a", "1", "b", "2", "c", "3")
        equal(fields("HTTL", "a", "x"), [-1, -2])
        equal(fields("HTTL", "a", key="none"), [-2])
        equal(fields("HEXPIRE", "a", "x", options=("1000",)), [1, -2])
        equal(fields("HTTL", "a", "b"), [1000, -1])
        assert 999000 < fields("HPTTL", "a")[0] <= 1000000
        # Conditions, and a name that is given twice.
        for options, answer in [(("500", "NX"), [0, 1]), (("600", "XX"), [1, 1]), (("700", "GT"), [1, 1]),
                                (("600", "GT"), [0, 0]), (("100", "LT"), [1, 1])]:
            equal(fields("HEXPIRE", "a", "b", options=options), answer)
        equal(fields("HPEXPIRE", "c", "c", options=("50000", "NX")), [1, 0])
        equal(fields("HPERSIST", "c", "c", "a", "x"), [1, -1, 1, -2])
        equal(fields("HPEXPIREAT", "a", options=("4102444800500",)), [1])
        equal([fields("HPEXPIRETIME", "a", "c"), fields("HEXPIRETIME", "a")],
              [[4102444800500, -1], [4102444801]])
        equal(fields("HEXPIREAT", "a", options=("4102444800",)), [1])
        # HINCRBY keeps the time, HSET does not.
        equal(c("HINCRBY", "h", "a", "5"), 6)
        equal(fields("HEXPIRETIME", "a"), [4102444800])
        c("HSET", "h", "a", "7")
        equal(fields("HTTL", "a"), [-1])
        # A time that has passed deletes.
        equal(fields("HEXPIREAT", "a", "a", "x", options=("1",)), [2, -2, -2])
        equal([c("HEXISTS", "h", "a"), c("HLEN", "h")], [0, 2])
        equal(fields("HGETDEL", "b", "b", "x"), [b"2", None, None])
        equal(fields("HGETEX", "c", "x"), [b"3", None])
        equal(fields("HGETEX", "c", options=("EX", "100")), [b"3"])
        equal(fields("HTTL", "c"), [100])
        equal(fields("HGETEX", "c", options=("PERSIST",)), [b"3"])
        equal(fields("HTTL", "c"), [-1])
        equal(fields("HGETEX", "c", options=("PXAT", "1")), [b"3"])
        equal(c("EXISTS", "h"), 0)
        equal(c("HSETEX", "h", "EX", "100", "FNX", "FIELDS", "2", "a", "1", "b", "2"), 1)
        equal(c("HSETEX", "h", "FNX", "FIELDS", "2", "b", "3", "c", "3"), 0)
        equal(c("HSETEX", "h", "FXX", "KEEPTTL", "FIELDS", "1", "b", "3"), 1)
        equal([c("HGET", "h", "b"), fields("HTTL", "a", "b")], [b"3", [100, 100]])
        equal(c("HSETEX", "h", "PX", "0", "FIELDS", "2", "a", "1", "b", "2"), 1)
        equal(c("EXISTS", "h"), 0)


@test
def fields_that_have_expired_are_hidden_from_all_commands(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("FROND.HISTORY", "3600")
        c("HSET", "some", "a", "1", "b", "2", "c", "3")
        c("HSET", "all", "a", "1", "b", "2")
        begin = later(c)
        c("MULTI")
        c("HPEXPIRE", "some", "1", "FIELDS", "2", "a", "b")
        c("HPEXPIRE", "all", "1", "FIELDS", "2", "a", "b")
        c("EXEC")
        at = later(c)
        for _ in range(2):
            for command, answer in [
                    (("HLEN", "some"), 1), (("HGETALL", "some"), [b"c", b"3"]),
                    (("HMGET", "some", "a", "c"), [None, b"3"]), (("HRANDFIELD", "some", "9"), [b"c"]),
                    (("HSCAN", "some", "0"), [b"0", [b"c", b"3"]]), (("EXISTS", "all", "some"), 1),
                    (("TYPE", "all"), "none"), (("HLEN", "all"), 0), (("KEYS", "*"), [b"some"]),
                    (("RANDOMKEY",), b"some"), (("HTTL", "some", "FIELDS", "2", "a", "c"), [-2, -1])]:
                equal(c(*command), answer)
                if command[0] != "RANDOMKEY":
                    equal(c("FROND.AT", at, *command), answer)
            # The same when they are removed.
            while c("DBSIZE") != 1:
                pass
        equal(c("FROND.AT", begin, "HLEN", "some"), 3)
        equal(c("FROND.AT", begin, "EXISTS", "all"), 1)
        # What had expired begins anew.
        c("HPEXPIRE", "some", "1", "FIELDS", "1", "c")
        later(c)
        equal(c("HINCRBY", "some", "c", "5"), 5)
        equal([c("HGETALL", "some"), c("HTTL", "some", "FIELDS", "1", "c")], [[b"c", b"5"], [-1]])
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


@test
def commands_about_expiry_of_fields_want_their_arguments(cwd):
    missing = "ERR Mandatory argument FIELDS is missing or not at the right position"
    must_match = "ERR The `numfields` parameter must match the number of arguments"
    with Redis(cwd) as server, server.client() as c:
        c("HSET", "h", "a", "1")
        c("SET", "s", "x")
        for words, text in [
                ("HEXPIRE h 10 FIELDS 0 a", "ERR Parameter `numFields` should be greater than 0"),
                ("HEXPIRE h 10 FIELDS 2 a", must_match),
                ("HEXPIRE h 10 NX XX FIELDS 1 a", missing),
                ("HEXPIRE h -1 FIELDS 1 a", "ERR invalid expire time, must be >= 0"),
                ("HEXPIRE h x FIELDS 1 a", "ERR value is not an integer or out of range"),
                ("HEXPIRE h 70368744178 FIELDS 1 a", "ERR invalid expire time in 'hexpire' command"),
                ("HEXPIRE h 10 FIELDS 1", "ERR wrong number of arguments for 'hexpire' command"),
                ("HPEXPIREAT s 10 FIELDS 1 a",
                 "WRONGTYPE Operation against a key holding the wrong kind of value"),
                ("HTTL h FIELDS 0 a", "ERR Number of fields must be a positive integer"),
                ("HTTL h a 1 a", missing), ("HPERSIST h FIELDS 2 a", must_match),
                ("HGETDEL h FIELDS x a", "ERR Number of fields must be a positive integer"),
                ("HGETEX h EX -1 FIELDS 1 a", "ERR invalid expire time, must be >= 0"),
                ("HGETEX h PERSIST 1 FIELDS 1 a", missing),
                ("HGETEX h EX bla FIELDS 1 a", "ERR value is not an integer or out of range"),
                ("HSETEX h FIELDS 0 a b", "ERR invalid number of fields"),
                ("HSETEX h FIELDS 2 a b c", "ERR wrong number of arguments for 'hsetex' command"),
                ("HSETEX h NX FIELDS 1 a b", "ERR unknown argument: NX"),
                ("HSETEX h FNX FXX FIELDS 1 a b",
                 "ERR Only one of FXX or FNX arguments can be specified"),
                ("HSETEX h EX 1 KEEPTTL FIELDS 1 a b",
                 "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")]:
            equal(c.error(*words.split()), text)


@test
def thousands_that_wait_for_one_key_are_looked_at_a_few_times_each(cwd):
    count = 1000
    looked = "frond_redis_waiters_looked_at_total"
    with Redis(cwd, "--no-sync") as server, contextlib.ExitStack() as stack:
        own = stack.enter_context(server.client())
        waiting = [stack.enter_context(server.client()) for _ in range(count)]

        def wait(*command):
            for n, c in enumerate(waiting):
                c.send(*command)
                # In their order, and no ten at once.
                while n % 10 == 9 and counted(own, "clients")["blocked_clients"] != str(n + 1):
                    pass

        def looks():
            return server.metrics()[looked]

        # One push for all of them, and a push for each.
        for elements in ([range(count)], [[n] for n in range(count)]):
            before = looks()
            wait("BLPOP", "list", "other", "list", "0")
            contains(range(4 * count), looks() - before)
            own.pipeline(*[("RPUSH", "list", *some) for some in elements])
            equal(sorted(int(c.read()[1]) for c in waiting), list(range(count)))
            contains(range(25 * count), looks() - before)
        # Those who take nothing, and have the next one look.
        before = looks()
        wait("XREAD", "BLOCK", "0", "STREAMS", "stream", "$")
        own("XADD", "stream", "1-0", "a", "b")
        for c in waiting:
            equal(c.read(), [[b"stream", [[b"1-0", [b"a", b"b"]]]]])
        contains(range(25 * count), looks() - before)


@test
def a_message_is_compared_with_patterns_that_begin_alike(cwd):
    compared = "frond_redis_patterns_compared_total"
    with Redis(cwd) as server, server.client() as c, server.client() as sub:
        count = 5000
        sub.pipeline(*(("PSUBSCRIBE", f"room:{n}:*") for n in range(count)))
        long = "x" * 100
        for pattern in ("*", "room:7[:]*", "room:7:news", "?oom:7:*", "room:7:new\\s", long + "*", long[1:], ""):
            sub("PSUBSCRIBE", pattern)
        for channel, found in (("room:7:news", 6), ("room:7", 1), ("", 2), (long, 2), (long[1:], 2), (long[2:], 1)):
            before = server.metrics()[compared]
            equal(c("PUBLISH", channel, "text"), found)
            equal(sorted({tuple(sub.read()[2:]) for _ in range(found)}), [(channel.encode(), b"text")])
            assert server.metrics()[compared] - before <= 10, channel
        for n in range(count):
            sub.send("PUNSUBSCRIBE", f"room:{n}:*")
        for n in range(count):
            sub.read()
        equal(c("PUBLISH", "room:7:news", "text"), 5)
        for _ in range(5):
            sub.read()
        equal(sub("RESET"), "RESET")
        equal([c("PUBLISH", "room:7:news", "text"), c("PUBSUB", "NUMPAT")], [0, 0])


@test
def what_has_expired_is_told_of_after_what_has_made_it(cwd):
    """Also if it is removed right after it was written, and the sweep is told to look by readers."""
    rounds = 300
    with Redis(cwd, "--no-sync") as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(4)]
        sub = stack.enter_context(server.client())
        sub("PSUBSCRIBE", "__keyspace@0__:*")
        clients[0]("CONFIG", "SET", "notify-keyspace-events", "KA")
        for n in range(rounds):
            for number, c in enumerate(clients):
                c.send("HSETEX", f"h{number}", "PX", "1", "FIELDS", "1", "f", n)
                c.send("SET", f"s{number}", n, "PX", "1")
                c.send("GET", f"s{number}")
            for c in clients:
                equal([c.read(), c.read()], [1, "OK"])
                c.read()
        for c in clients:
            c("PUBLISH", "__keyspace@0__:end", "")
        # How many were made, and have not gone, as far as a subscriber knows.
        there = collections.Counter()
        ends = 0
        while ends < len(clients):
            channel, event = (part.decode() for part in sub.read()[2:])
            ends += channel == "__keyspace@0__:end"
            there[channel] += {"hset": 1, "hexpired": -1, "set": 1, "expired": -1}.get(event, 0)
            contains(range(rounds + 1), there[channel])


@test
def what_has_expired_is_told_of_before_it_is_written_again(cwd):
    """Each key is written as soon as it is seen to be gone, beside the sweep that removes all."""
    keys = [f"k{n}" for n in range(200)]
    with Redis(cwd, "--no-sync") as server, server.client() as c, server.client() as sub:
        sub("PSUBSCRIBE", "__keyspace@0__:*")
        c("CONFIG", "SET", "notify-keyspace-events", "KA")
        for n in range(40):
            c.pipeline(*(("SET", key, n, "PX", "3") for key in keys))
            while c("EXISTS", *keys):
                pass
            # The reader has had the sweep look, which is at it now or soon.
            for key in keys[n % 2::2]:
                c("SET", key, n)
            c("DEL", *keys)
        c("PUBLISH", "__keyspace@0__:end", "")
        last = {}
        for _, _, channel, event in iter(sub.read, None):
            if channel == b"__keyspace@0__:end":
                break
            if event == b"set":
                assert last.get(channel) in (None, b"expired", b"del"), (channel, last[channel])
            if event == b"expired":
                equal(last[channel], b"expire")
            last[channel] = event


@test
def changes_of_the_expiry_of_fields_are_published(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as sub:
        sub("PSUBSCRIBE", "__keyspace@0__:h")
        c("CONFIG", "SET", "notify-keyspace-events", "Khg")
        for words, events in [
                ("HSETEX h FIELDS 2 a 1 b 2", ["hset"]), ("HGETEX h PX 0 FIELDS 1 a", ["hdel"]),
                ("HSETEX h EX 100 FIELDS 1 a 1", ["hset", "hexpire"]),
                ("HGETEX h EX 200 FIELDS 1 b", ["hexpire"]), ("HGETEX h PERSIST FIELDS 1 b", ["hpersist"]),
                ("HEXPIRE h 1 XX FIELDS 1 b", []), ("HPERSIST h FIELDS 2 a b", ["hpersist"]),
                ("HGETDEL h FIELDS 1 a", ["hdel"]), ("HSETEX h PX 0 FIELDS 1 b 2", ["hset", "hdel", "del"]),
                ("HSETEX h PX 1 FIELDS 2 a 1 b 2", ["hset", "hexpire", "hexpired", "del"])]:
            c(*words.split())
            for event in events:
                equal(sub.read()[3].decode(), event)


def counted(c, section):
    """The lines of a section of INFO, by their names."""
    return dict(line.split(":", 1) for line in c("INFO", section).decode().split("\r\n") if ":" in line)


def calls(c):
    """How often each command was called, refused, and has failed."""
    numbers = {name[len("cmdstat_"):]: dict(part.split("=") for part in line.split(","))
               for name, line in counted(c, "commandstats").items()}
    return {name: tuple(int(n[of]) for of in ("calls", "rejected_calls", "failed_calls"))
            for name, n in numbers.items()}


@test
def commands_and_errors_are_counted(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c, server.client() as other:
        def after(*commands):
            c("CONFIG", "RESETSTAT")
            c.pipeline(*commands)
            errors = {name[len("errorstat_"):]: int(line.split("=")[1])
                      for name, line in counted(c, "errorstats").items()}
            found = calls(c)
            for name in ("config|resetstat", "info"):
                found.pop(name)
            equal(sum(errors.values()), int(counted(c, "stats")["total_error_replies"]))
            return found, errors

        equal(after(("SET", "s", "x"), ("GET", "s"), ("get", "s"), ("INCR", "s"), ("LPUSH", "s", "x"),
                    ("GET",), ("NOSUCH",), ("CLIENT", "ID"), ("client", "id"), ("CLIENT", "X")),
              ({"set": (1, 0, 0), "get": (2, 1, 0), "incr": (1, 0, 1), "lpush": (1, 0, 1),
                "client|id": (2, 0, 0), "client": (0, 1, 0)}, {"ERR": 4, "WRONGTYPE": 1}))
        # What EXEC runs; and where it was refused something before.
        equal(after(("MULTI",), ("INCR", "s"), ("SET", "s", "y"), ("EXEC",), ("MULTI",), ("GET",), ("EXEC",)),
              ({"multi": (2, 0, 0), "exec": (2, 0, 1), "incr": (1, 0, 1), "set": (1, 0, 0), "get": (0, 1, 0)},
               {"ERR": 2, "EXECABORT": 1}))
        # An error that a script is answered counts once, whatever becomes of it.
        call, pcall = "return redis.call(unpack(ARGV))", "return redis.pcall(unpack(ARGV))"
        for text, failed in ((call, 1), (pcall, 1), ("redis.pcall(unpack(ARGV)); return 1", 0)):
            equal(after(("EVAL", text, "1", "s", "LPUSH", "s", "x")),
                  ({"eval": (1, 0, failed), "lpush": (1, 0, 1)}, {"WRONGTYPE": 1}))
        equal(after(("EVAL_RO", call, "1", "s", "SET", "s", "x"), ("EVAL", call, "0", "GET")),
              ({"eval_ro": (1, 0, 1), "eval": (1, 0, 1), "set": (0, 1, 0), "get": (0, 1, 0)}, {"ERR": 2}))
        equal(after(("EVAL", "return redis.error_reply('MINE of a script')", "0"), ("EVAL", "x = 1", "0"),
                    ("EVAL", "return {err = 'A:B c'}", "0"), ("EVAL", "return {err = ''}", "0")),
              ({"eval": (4, 0, 4)}, {"MINE": 1, "ERR": 3}))
        # What is not answered is no error that was answered.
        c("CONFIG", "RESETSTAT")
        c.send("CLIENT", "REPLY", "SKIP")
        c.send("INCR", "s")
        equal([counted(c, "errorstats"), calls(c)["incr"]], [{}, (1, 0, 1)])
        # A command that waits is counted once, and takes none of the time.
        other("CONFIG", "SET", "slowlog-log-slower-than", "200000")
        other("SLOWLOG", "RESET")
        c("CONFIG", "RESETSTAT")
        c.send("BLPOP", "list", "0")
        while b"blocked_clients:1\r\n" not in other("INFO", "clients"):
            pass
        at = later(other) + 300
        while later(other) < at:
            pass
        other("RPUSH", "list", "a")
        equal(c.read(), [b"list", b"a"])
        equal([calls(c)["blpop"], c("SLOWLOG", "LEN")], [(1, 0, 0), 0])
        # Names that scripts make up do not take memory without end.
        for n in range(200):
            c.error("EVAL", "return {err = ARGV[1] .. ' x'}", "0", f"E{n}")
        equal(len(counted(c, "errorstats")), 128)
        equal(counted(c, "stats")["total_error_replies"], "200")


@test
def a_client_may_subscribe_to_many_channels(cwd):
    names = [f"channel:{i}" for i in range(30000)]
    with Redis(cwd) as server, server.client() as other:
        for subscribe, unsubscribe, publish in [("SUBSCRIBE", "UNSUBSCRIBE", "PUBLISH"),
                                                ("PSUBSCRIBE", "PUNSUBSCRIBE", "PUBLISH"),
                                                ("SSUBSCRIBE", "SUNSUBSCRIBE", "SPUBLISH")]:
            with server.client() as many:
                many.send(subscribe, *names)
                equal([many.read()[2] for _ in names], list(range(1, len(names) + 1)))
                many.send(subscribe, names[5])
                equal(many.read(), [subscribe.lower().encode(), names[5].encode(), len(names)])
                equal(other(publish, names[-1], "text"), 1)
                equal(many.read()[-2:], [names[-1].encode(), b"text"])
                many.send(unsubscribe, *names[:10000])
                equal([many.read()[2] for _ in range(10000)], list(range(len(names) - 1, len(names) - 10001, -1)))
                many.send(unsubscribe)
                equal({many.read()[1] for _ in range(20000)}, {name.encode() for name in names[10000:]})
                many.send(subscribe, *names)
                for _ in names:
                    many.read()
            # What was left of a client that has ended is gone, too.
            while other("PUBSUB", "CHANNELS") or other("PUBSUB", "NUMPAT") or other("PUBSUB", "SHARDCHANNELS"):
                pass


@test
def a_large_set_needs_no_memory_for_each_member(cwd):
    """But for what is to be found again: its name, where sets are united."""
    (cwd / "frond.conf").write_text("[frond]\nrequest_bytes = 8388608\n")
    names = [b"member:%d" % i for i in range(20000)]
    with Redis(cwd, "--config", "frond.conf") as server, server.client() as c:
        for i in range(0, len(names), 1000):
            c.pipeline(("SADD", "a", *names[i:i + 1000]),
                       ("SADD", "b", *(b"b" + name for name in names[i:i + 1000])),
                       ("HSET", "hash", *(x for name in names[i:i + 1000] for x in (name, b"x" * 400))))
        equal(set(c("SMEMBERS", "a")), set(names))
        equal(len(c("HGETALL", "hash")), 2 * len(names))
        equal(set(c("SUNION", "a", "b", "a")), set(names) | {b"b" + name for name in names})
        equal(set(c("SDIFF", "a", "b")), set(names))
        equal(c("SINTER", "a", "b"), [])
        equal(set(c("SINTER", "a", "a")), set(names))
        c("SADD", "some", *names[5:10000:2])
        equal(set(c("SINTER", "a", "some", "a")), set(names[5:10000:2]))
        equal(set(c("SDIFF", "a", "some", "b", "none")), set(names) - set(names[5:10000:2]))
        equal([c("SINTERCARD", 2, "a", "some"), c("SINTERCARD", 2, "a", "some", "LIMIT", 300)],
              [len(names[5:10000:2]), 300])


@test
def a_large_sorted_set_needs_little_memory_for_each_member(cwd):
    """Its name and its score, where sorted sets are united or compared."""
    (cwd / "frond.conf").write_text("[frond]\nrequest_bytes = 8388608\n")
    names = [b"member:%05d" % i for i in range(30000)]
    some = names[5:20000:2]
    with Redis(cwd, "--config", "frond.conf") as server, server.client() as c:
        for i in range(0, len(names), 1000):
            c.pipeline(("ZADD", "a", *(x for n, name in enumerate(names[i:i + 1000], i) for x in (n, name))),
                       ("ZADD", "b", *(x for n, name in enumerate(names[i:i + 1000], i) for x in (n, b"b" + name))))
        c("SADD", "some", *some)
        c("ZADD", "one", 7, some[3])
        equal(set(c("ZUNION", 3, "a", "b", "a")), set(names) | {b"b" + name for name in names})
        equal(c("ZUNION", 2, "a", "a"), names)
        equal(c("ZDIFF", 2, "a", "b"), names)
        equal(c("ZDIFF", 4, "a", "some", "b", "none"), sorted(set(names) - set(some)))
        equal((c("ZINTER", 2, "a", "b"), c("ZINTER", 3, "a", "some", "none")), ([], []))
        equal(c("ZINTER", 3, "a", "some", "a", "WITHSCORES")[:4], [some[0], b"11", some[1], b"15"])
        equal(c("ZINTER", 3, "a", "one", "some", "WEIGHTS", 2, 10, 100, "WITHSCORES"), [some[3], b"192"])
        equal(c("ZINTER", 3, "one", "a", "some", "AGGREGATE", "MAX", "WITHSCORES"), [some[3], b"11"])
        equal([c("ZINTERCARD", 2, "a", "some"), c("ZINTERCARD", 2, "a", "some", "LIMIT", 300)], [len(some), 300])
        equal((c("ZINTERSTORE", "to", 2, "a", "one"), c("ZRANGE", "to", 0, -1, "WITHSCORES")), (1, [some[3], b"18"]))


@test
def members_at_random_are_members(cwd):
    with Redis(cwd) as server, server.client() as c:
        names = {b"m%d" % i for i in range(5000)}
        c("SADD", "set", *names)
        c("HSET", "hash", *(x for name in names for x in (name, b"v" + name)))
        c("ZADD", "zset", *(x for i, name in enumerate(names) for x in (i, name)))
        assert c("SRANDMEMBER", "set") in names
        for command, key in [("SRANDMEMBER", "set"), ("HRANDFIELD", "hash"), ("ZRANDMEMBER", "zset")]:
            for count in (1, 40, 3000, 4999, 6000):
                drawn = c(command, key, count)
                equal(len(drawn), min(count, 5000))
                assert len(set(drawn)) == len(drawn) and set(drawn) <= names
            for count in (1, 70, 7000):
                drawn = c(command, key, -count)
                assert len(drawn) == count and set(drawn) <= names
        drawn = c("HRANDFIELD", "hash", 40, "WITHVALUES")
        equal(drawn[1::2], [b"v" + name for name in drawn[::2]])
        left = set(names)
        for count in (None, 1, 30, 2000, 100, 3000):
            popped = c("SPOP", "set") if count is None else c("SPOP", "set", count)
            popped = {popped} if count is None else set(popped)
            assert popped <= left
            left -= popped
            equal(c("SCARD", "set"), len(left))
        equal(c("EXISTS", "set"), 0)
        # In one transaction, which sees what it has taken itself.
        c("SADD", "set", *names)
        answers = c.pipeline(*[("SPOP", "set") for _ in range(1000)])
        equal(len(set(answers)), 1000)
        equal(c("SCARD", "set"), 4000)


@test
def how_long_commands_took_is_told(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        c("SET", "s", "x")
        c("CONFIG", "RESETSTAT")
        equal(c("LATENCY", "HISTOGRAM", "set", "nosuch"), [])
        for _ in range(3):
            c("SET", "s", "x")
        c("CLIENT", "ID")
        found = c("LATENCY", "HISTOGRAM", "SET", "client|id", "get")
        equal(found[::2], [b"client|id", b"set"])
        name, count, histogram, spans = found[3]
        equal([name, count, histogram, spans[-1]], [b"calls", 3, b"histogram_usec", 3])
        equal([sorted(spans[::2]), sorted(spans[1::2])], [spans[::2], spans[1::2]])
        equal([c("LATENCY", "HISTOGRAM", "client")[0], len(c("LATENCY", "HISTOGRAM"))], [b"client|id", 8])
        equal(c("LATENCY", "LATEST"), [])  # nothing is kept unless somebody wants it
        contains(c.error("LATENCY", "HELP", "x"), "wrong number of arguments for 'latency|help' command")
        contains(c("LATENCY", "DOCTOR").decode(), "SLOWLOG")
        c("HELLO", "3")
        equal(c("LATENCY", "HISTOGRAM", "set")[b"set"][b"calls"], 3)
        # Sections that nobody asks for are not there.
        for words, there in (((), False), (("default",), False), (("all",), True), (("everything",), True),
                             (("cpu", "COMMANDSTATS"), True), (("cpu",), False)):
            equal(b"rejected_calls" in c("INFO", *words), there)


def shown(answer, indent=""):
    """As redis-cli shows it."""
    if isinstance(answer, Error):
        return f"(error) {answer}"
    if answer is None:
        return "(nil)"
    if isinstance(answer, int):
        return f"(integer) {answer}"
    if isinstance(answer, bytes):
        return '"' + answer.decode().replace('"', '\\"') + '"'
    if isinstance(answer, str):
        return answer
    if not answer:
        return "(empty array)"
    return "\n".join(f"{indent if number > 1 else ''}{number}) {shown(one, indent + '   ')}"
                     for number, one in enumerate(answer, 1))


@test
def the_commands_of_the_page_answer_what_it_says(cwd):
    text = (DOCS / "REDIS.md").read_text()
    blocks = re.findall(r"```redis\n(.*?)```", text, re.S)
    assert blocks
    with Redis(cwd) as server, server.client() as c:
        for block in blocks:
            for command, expected in re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", block, re.M):
                words = [a.replace("\\n", "\n") or b or c  # as redis-cli reads it
                         for a, b, c in re.findall(r'"([^"]*)"|\'([^\']*)\'|(\S+)', command)]
                c.send(*words)
                equal(f"{command}\n{shown(c.read())}\n", f"{command}\n{expected}")


@test
def the_page_travels_in_time(cwd):
    text = (DOCS / "REDIS.md").read_text()
    blocks = re.findall(r"```redis-past\n(.*?)```", text, re.S)
    commands = [pair for block in blocks for pair in re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", block, re.M)]
    equal(len(commands), 6)
    before = None
    with Redis(cwd) as server, server.client() as c:
        for command, expected in commands:
            words = command.split()
            if words[0] == "SET":
                # What is five seconds ago when the page is read.
                before = later(c)
            words = [before if word == "-5s" else word for word in words]
            c.send(*words)
            equal(f"{command}\n{shown(c.read())}\n", f"{command}\n{expected}")


@test
def an_option_that_is_there_again_holds_as_it_was_said_last(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c("SET", "k", "v", "EX", 10, "EX", 2000), "OK")
        assert 1000 < c("TTL", "k") <= 2000
        equal(c("GETEX", "k", "PX", 5000, "PX", 9000000), b"v")
        assert 8000 < c("TTL", "k") <= 9000
        equal(c("GETEX", "k", "PERSIST", "PERSIST"), b"v")
        equal(c("TTL", "k"), -1)
        for options in ("EX", 10, "PX", 10), ("EX", 10, "KEEPTTL"), ("NX", "XX"):
            contains(str(c.error("SET", "k", "v", *options)), "syntax error")
        contains(str(c.error("GETEX", "k", "PERSIST", "EX", 10)), "syntax error")
        c("ZADD", "z", 1, "a")
        equal(c("ZREVRANGE", "z", 0, -1, "WITHSCORES", "WITHSCORES"), [b"a", b"1"])
        contains(str(c.error("ZREVRANGE", "z", 0, -1, "LIMIT", 0, 1)), "LIMIT is only supported")
        contains(str(c.error("ZREVRANGE", "z", 0, -1, "REV")), "syntax error")


main()
