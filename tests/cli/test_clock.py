"""
Clocks that are set while a server runs, and while it does not. Time passes when a test says so, and
goes on by itself besides, so everything here lasts for minutes by the server's clocks.
"""

import base64
import json
import mmap
import os
import re
import struct
import sys
import time
import urllib.request

from harness import equal, main, test, until
from mongo import Date
from mongo_server import MongoServer
from redis_server import Redis

SET_CLOCK = os.path.abspath(sys.argv[2])
SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
ADMIN = "Basic " + base64.b64encode(b"root:secret").decode()
SLACK = 20 * SECOND  # what a busy machine may take between two commands


def fetch(server, path, body=None, headers=None):
    """The headers and the body of an answer to an administrator."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(
        server.url + path, data=body and json.dumps(body).encode(),
        headers=headers or {"Authorization": ADMIN, "Content-Type": "application/json"})
    with opener.open(request, timeout=200) as answer:
        return answer.headers, answer.read()


class Clock:
    """The clocks of the servers of a test."""

    def __init__(self, cwd):
        path = cwd / "clock"
        path.write_bytes(bytes(16))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 16)
        self.env = {"LD_PRELOAD": SET_CLOCK, "FROND_TEST_CLOCK": str(path),
                    "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}
        self.server = None
        self.stepped = 0

    def change(self, at, ms):
        now, = struct.unpack_from("=q", self.map, at)
        struct.pack_into("=q", self.map, at, now + ms)

    def off(self):
        """How far the server's clock for lifetimes is from its wall clock."""
        text = fetch(self.server, "/_node/_local/_prometheus")[1].decode()
        return float(re.search(r"(?m)^frond_clock_off_seconds (.*)$", text).group(1)) * SECOND

    def step(self, ms):
        """The wall clock is set, and the server has seen it."""
        self.change(0, ms)
        self.stepped += ms
        if self.server:
            until(lambda: abs(self.off() - abs(self.stepped)) < MINUTE)

    def go(self, ms):
        """So much time passes."""
        self.change(8, ms)


class Clocked(Redis):
    def __init__(self, cwd, clock, *options):
        super().__init__(cwd, *options, env=clock.env)
        clock.server = self
        self.clock = clock

    def __exit__(self, *args):
        self.clock.server = None
        super().__exit__(*args)


def lock_is_held_once(c, clock):
    equal(c("SET", "lock", "a", "NX", "PX", 30 * MINUTE), "OK")
    equal(c("SET", "lock", "b", "NX", "PX", 30 * MINUTE), None)
    equal(c("GET", "lock"), b"a")
    left = c("PTTL", "lock")
    assert 30 * MINUTE - SLACK <= left <= 30 * MINUTE, left
    clock.go(28 * MINUTE)
    equal(c("SET", "lock", "b", "NX", "PX", 30 * MINUTE), None)


def lock_is_free(c, clock):
    clock.go(2 * MINUTE + 30 * SECOND)
    equal(c("SET", "lock", "b", "NX", "PX", 30 * MINUTE), "OK")
    equal(c("GET", "lock"), b"b")


@test
def a_lock_taken_after_a_step_back_is_held_once_and_for_its_time(cwd):
    clock = Clock(cwd)
    with Clocked(cwd, clock) as server, server.client() as c:
        c("SET", "before", "x", "PX", HOUR)
        clock.step(-2 * HOUR)
        lock_is_held_once(c, clock)
        equal(c("GET", "before"), b"x")
        lock_is_free(c, clock)
        clock.go(31 * MINUTE)
        equal(c("GET", "before"), None)
        until(lambda: "event=clock_stepped by_ms=-7" in server.read_log())


@test
def a_lock_taken_after_a_step_back_is_held_over_a_restart(cwd):
    clock = Clock(cwd)
    with Clocked(cwd, clock) as server, server.client() as c:
        c("SET", "before", "x")
        clock.step(-2 * HOUR)
        lock_is_held_once(c, clock)
        server.stop()
    with Clocked(cwd, clock) as server, server.client() as c:
        equal(c("GET", "lock"), b"a")
        lock_is_free(c, clock)


@test
def a_step_back_while_no_server_ran_is_one_like_others(cwd):
    clock = Clock(cwd)
    with Clocked(cwd, clock) as server, server.client() as c:
        c("SET", "before", "x", "PX", HOUR)
        server.stop()
    clock.go(10 * MINUTE)
    clock.step(-2 * HOUR)
    with Clocked(cwd, clock) as server, server.client() as c:
        left = c("PTTL", "before")
        assert 50 * MINUTE - 2 * SLACK <= left <= 50 * MINUTE, left
        lock_is_held_once(c, clock)
        lock_is_free(c, clock)


@test
def a_day_forward_for_a_moment_expires_nothing_and_stops_nothing(cwd):
    clock = Clock(cwd)
    with Clocked(cwd, clock) as server, server.client() as c:
        c("SET", "hour", "x", "PX", HOUR)
        c("HSET", "h", "f", "x")
        c("HPEXPIRE", "h", HOUR, "FIELDS", 1, "f")
        clock.step(DAY)
        # Writes carry the database's clock, so what they carry it to matters.
        c("SET", "during", "x", "PX", HOUR)
        clock.go(SECOND)
        clock.step(-DAY)
        for key in "hour", "during":
            left = c("PTTL", key)
            assert HOUR - MINUTE <= left <= HOUR, left
        equal(c("HGET", "h", "f"), b"x")
        lock_is_held_once(c, clock)
        lock_is_free(c, clock)
        clock.go(31 * MINUTE)
        equal([c("EXISTS", "hour", "during"), c("HGET", "h", "f")], [0, None])
        until(lambda: c("DBSIZE") <= 1)


@test
def times_that_clients_name_are_by_the_wall_clock(cwd):
    clock = Clock(cwd)

    def now(c):
        seconds, micros = c("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    with Clocked(cwd, clock) as server, server.client() as c:
        at = now(c) + 10 * HOUR
        c("SET", "k", "x", "PXAT", at)
        equal(c("PEXPIRETIME", "k"), at)
        before = now(c)
        clock.step(-2 * HOUR)
        assert -2 * HOUR <= now(c) - before <= -2 * HOUR + SLACK, (now(c), before)
        # The key lives as long as it should; the wall clock will show less then.
        left = c("PTTL", "k")
        assert 10 * HOUR - SLACK <= left <= 10 * HOUR, left
        shown = c("PEXPIRETIME", "k")
        assert abs(shown - (at - 2 * HOUR)) <= SECOND, (shown, at)
        # And what is named now is so far from now.
        equal(c("SET", "lock", "a", "NX", "PXAT", now(c) + 30 * MINUTE), "OK")
        equal(c("SET", "lock", "b", "NX", "PXAT", now(c) + 30 * MINUTE), None)
        left = c("PTTL", "lock")
        assert 30 * MINUTE - SLACK <= left <= 30 * MINUTE + SECOND, left
        c("HSET", "h", "f", "x")
        equal(c("HPEXPIREAT", "h", now(c) + 30 * MINUTE, "FIELDS", 1, "f"), [1])
        left, = c("HPTTL", "h", "FIELDS", 1, "f")
        assert 30 * MINUTE - SLACK <= left <= 30 * MINUTE + SECOND, left
        equal(c("EXPIREAT", "k", now(c) // 1000 - 60), 1)
        equal(c("EXISTS", "k"), 0)


@test
def the_past_is_counted_from_now(cwd):
    clock = Clock(cwd)
    with Clocked(cwd, clock) as server, server.client() as c:
        c("FROND.HISTORY", 7 * 24 * 3600)
        c("SET", "k", "old")
        clock.go(HOUR)
        c("SET", "k", "new")
        clock.go(HOUR)
        clock.step(-2 * HOUR)
        equal(c("FROND.AT", "-90m", "GET", "k"), b"old")
        equal(c("FROND.AT", "-30m", "GET", "k"), b"new")


@test
def a_login_outlives_a_step_of_the_clock(cwd):
    clock = Clock(cwd)
    with Clocked(cwd, clock, "--admin", "root:secret") as server:
        def login():
            headers, _ = fetch(server, "/_session", {"name": "root", "password": "secret"})
            return headers["Set-Cookie"].split(";")[0]

        def is_known(cookie):
            _, body = fetch(server, "/_session", headers={"Cookie": cookie})
            return json.loads(body)["userCtx"]["name"] == "root"

        cookie = login()
        clock.go(MINUTE)
        clock.step(-2 * HOUR)
        assert is_known(cookie)
        clock.step(DAY)
        assert is_known(cookie)
        # Ten minutes are ten minutes.
        clock.go(10 * MINUTE)
        assert not is_known(cookie)


@test
def documents_outlive_a_clock_that_is_wrong_for_a_moment(cwd):
    clock = Clock(cwd)
    with MongoServer(cwd, ini="[mongo]\nexpire_seconds = 1\n", env=clock.env) as server, server.client() as c:
        def is_there(name):
            return c({"count": "c", "query": {"_id": name}}, "db")["n"] == 1

        def insert(name, ago_ms):
            at = Date(time.time() * SECOND - ago_ms)
            equal(c({"insert": "c", "documents": [{"_id": name, "at": at}]}, "db")["n"], 1)

        def look_for_what_is_due():
            """What is due beyond doubt is removed, in the order of the dates: nothing else was due."""
            insert("due", 3 * DAY)
            until(lambda: not is_there("due"))

        clock.server = server
        c({"createIndexes": "c", "indexes": [{"key": {"at": 1}, "name": "at", "expireAfterSeconds": 3600}]}, "db")
        insert("new", 0)
        clock.step(DAY)
        look_for_what_is_due()
        assert is_there("new")
        clock.step(-DAY)
        look_for_what_is_due()
        assert is_there("new")
        # What is due by the clock still goes.
        clock.go(2 * HOUR)
        until(lambda: not is_there("new"))


main()
