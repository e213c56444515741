"""Redis's door of several processes at one store: what one of them does, clients of the others see.

With a FoundationDB cluster (FROND_TEST_FDB) these are three processes of frond. Otherwise the
second argument is a program with three doors over one store (redis_doors.c), which know as little
of each other.
"""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

from harness import ENV, Server, cluster, contains, equal, main, ok, run_threads, seed, test, until
from resp import Client, Error

DOORS = sys.argv[2] if len(sys.argv) > 2 else None
FAULTS = os.environ.get("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0")
ANSWER_S = 300  # for an answer that a busy machine's cluster has to give
SEED = seed(os.environ.get("FROND_TEST_DEFAULT_SEED", "1"))


def test_of_processes(fn):
    """A test that needs several processes or people: the program with three doors has neither."""
    return fn if DOORS else test(fn)


class Door:
    """One of the doors, of this number's process."""

    def __init__(self, port, process=None):
        self.port, self.process = port, process

    def client(self, **kwargs):
        return Client(self.port, **{"timeout": ANSWER_S, **kwargs})

    def kill(self):
        self.process.stop(signal.SIGKILL)


@contextlib.contextmanager
def doors(cwd):
    with contextlib.ExitStack() as stack:
        if DOORS:
            print(f"# FROND_TEST_SEED={SEED}", flush=True)
            url = f"faulty:shared=1,seed={SEED},{FAULTS}:embedded:{cwd / 'store'}"
            process = stack.enter_context(subprocess.Popen(
                [DOORS, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV, text=True))
            found = [Door(int(port)) for port in process.stdout.readline().split()]
        else:
            found = []
            for n in range(3):
                (cwd / f"server{n}").mkdir()
                server = stack.enter_context(
                    Server(cwd / f"server{n}", "--store", cluster(), "--redis", "127.0.0.1:0"))
                found.append(Door(int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)",
                                                server.read_log()).group(1)), server))
            with found[0].client() as c:
                c("FLUSHALL")
        equal(len(found), 3)
        yield found
        if DOORS:
            process.stdin.close()
            equal(process.wait(60), 0)


def until_blocked(door, count):
    with door.client() as c:
        until(lambda: b"blocked_clients:%d\r\n" % count in c("INFO", "clients"),
              told=lambda: c("INFO", "clients"))


# ---- Readers ----

@test
def readers_that_share_transactions_see_what_was_acknowledged_before(cwd):
    """In front of a cluster, where a transaction costs more than what it reads, clients share them. None may
    be read for in one that began before its command came."""
    readers, rounds = 16, 40
    with doors(cwd) as all_doors:
        acknowledged, done = [0], threading.Event()

        def write():
            with all_doors[1].client() as c:
                while not done.is_set():
                    acknowledged[0] = c("INCR", "n")

        def read():
            with all_doors[0].client() as c:
                for _ in range(rounds):
                    least = acknowledged[0]
                    got = int(c("GET", "n") or 0)
                    assert got >= least, f"{got} was read when {least} had been acknowledged"

        def read_all():
            try:
                run_threads(*[read] * readers)
            finally:
                done.set()

        before = all_doors[0].process and all_doors[0].process.metrics()
        run_threads(write, read_all)
        if before:
            after = all_doors[0].process.metrics()
            commands, transactions = (after[name] - before[name] for name in
                                      ("frond_redis_commands_total", "frond_redis_transactions_total"))
            equal(commands, readers * rounds)
            print(f"# {commands:.0f} commands in {transactions:.0f} transactions")
            assert transactions < commands, f"{commands} commands took {transactions} transactions"


# ---- WATCH ----

@test
def a_counter_that_all_change_by_watch_and_exec_is_exact(cwd):
    rounds = 25
    with doors(cwd) as all_doors:
        def count(door):
            with door.client() as c:
                done = 0
                while done < rounds:
                    c("WATCH", "n")
                    n = int(c("GET", "n") or 0)
                    answers = c.pipeline(("MULTI",), ("SET", "n", n + 1), ("EXEC",))
                    done += answers[2] is not None

        run_threads(*[lambda d=door: count(d) for door in all_doors for _ in range(2)])
        with all_doors[0].client() as c:
            equal(c("GET", "n"), b"%d" % (6 * rounds))


# What is there, what another client does after the WATCH, and whether EXEC then does its work.
LARGE = "x" * 40000
CHANGES = [
    ([], [("SET", "k", "1")], False),
    ([], [("SET", "other", "1")], True),
    ([], [("DEL", "k")], True),
    ([], [("FLUSHDB",)], True),
    ([], [("SET", "k", "1"), ("DEL", "k")], True),
    ([("SET", "k", "1")], [("SET", "k", "1")], False),
    ([("SET", "k", "1")], [("GET", "k")], True),
    ([("SET", "k", "1")], [("APPEND", "k", "1")], False),
    ([("SET", "k", "1")], [("DEL", "k")], False),
    ([("SET", "k", "1")], [("DEL", "k"), ("SET", "k", "1")], False),
    ([("SET", "k", "1")], [("FLUSHDB",)], False),
    ([("SET", "k", "1")], [("FLUSHDB",), ("SET", "k", "1")], False),
    ([("SET", "k", "1")], [("EXPIRE", "k", "100")], False),
    ([("SET", "k", "1")], [("RENAME", "k", "l"), ("RENAME", "l", "k")], False),
    ([("SET", "k", "1")], [("COPY", "k", "l")], True),
    ([("SET", "k", "1", "PX", "1")], [], None),  # it expires before or after the WATCH
    ([("SET", "k", LARGE)], [("SETRANGE", "k", "5", "y")], False),
    ([("SET", "k", LARGE)], [("SET", "k", LARGE)], False),
    ([("HSET", "k", "f", "1")], [("HSET", "k", "g", "1")], False),
    ([("HSET", "k", "f", "1")], [("HSET", "k", "f", "2")], False),
    ([("HSET", "k", "f", "1", "g", "2")], [("HDEL", "k", "g")], False),
    ([("HSET", "k", "f", "1")], [("HDEL", "k", "g")], True),
    ([("SADD", "k", "a")], [("SADD", "k", "b")], False),
    ([("SADD", "k", "a")], [("SADD", "k", "a")], True),
    ([("SADD", "k", "a", "b")], [("SMOVE", "k", "l", "a")], False),
    ([("ZADD", "k", "1", "a")], [("ZADD", "k", "2", "a")], False),
    ([("ZADD", "k", "1", "a")], [("ZADD", "k", "1", "a")], True),
    ([("ZADD", "k", "1", "a", "2", "b")], [("ZPOPMIN", "k")], False),
    ([("RPUSH", "k", "a")], [("RPUSH", "k", "b")], False),
    ([("RPUSH", "k", "a")], [("LSET", "k", "0", "b")], False),
    ([("RPUSH", "k", "a", "b")], [("LPOP", "k")], False),
    ([("RPUSH", "k", "a", "b")], [("LMOVE", "k", "l", "LEFT", "LEFT")], False),
    ([("RPUSH", "k", "a")], [("LRANGE", "k", "0", "-1")], True),
    ([("SET", "k", "1")], [("EVAL", "redis.call('SET', 'k', '2')", "0")], False),
    ([("SET", "k", "1")], [("SELECT", "1"), ("SET", "k", "2")], True),
]


@test
def exec_fails_if_anybody_has_changed_what_is_watched(cwd):
    with doors(cwd) as all_doors:
        with all_doors[0].client() as c, all_doors[0].client() as near, \
                all_doors[1].client() as far:
            for before, changes, holds in CHANGES:
                for other in near, far:
                    c("FLUSHALL")
                    for command in before:
                        c(*command)
                    c("WATCH", "k")
                    for command in changes:
                        other(*command)
                    other("SELECT", "0")
                    answer = c.pipeline(("MULTI",), ("PING",), ("EXEC",))[2]
                    if holds is not None:
                        equal((before, changes, answer is not None), (before, changes, holds))


@test
def a_watched_key_that_expires_has_changed_and_one_that_had_expired_has_not(cwd):
    with doors(cwd) as (a, b, _):
        with a.client() as c, b.client() as other:
            # Until the watch comes in time: a busy machine may take longer for it than the key lives.
            for lives_ms in 200, 2000, 20000:
                c("SET", "k", "1", "PX", lives_ms)
                c("WATCH", "k")
                if c("EXISTS", "k"):
                    break
                c("UNWATCH")
            while other("EXISTS", "k"):
                pass
            equal(c.pipeline(("MULTI",), ("PING",), ("EXEC",))[2], None)
            c("WATCH", "k")
            equal(c.pipeline(("MULTI",), ("PING",), ("EXEC",))[2], ["PONG"])


@test
def a_watch_of_what_was_written_just_before_it_in_the_pipeline_holds(cwd):
    with doors(cwd) as (a, b, _):
        with a.client() as c, b.client() as other:
            commands = (("RPUSH", "k", "a"), ("SET", "s", "1"), ("WATCH", "k", "s"), ("MULTI",),
                        ("RPUSH", "k", "b"), ("EXEC",))
            for _ in range(5):
                equal(c.pipeline(*commands)[5], [2])
                equal(c.pipeline(*commands[:3], commands[0], *commands[3:])[6], None)
                other("DEL", "k")


# ---- Waiting ----

WAITING = [
    (("BLPOP", "k", "0"), ("RPUSH", "k", "x"), [b"k", b"x"]),
    (("BRPOP", "none", "k", "0"), ("LPUSH", "k", "x"), [b"k", b"x"]),
    (("BLMOVE", "k", "to", "LEFT", "RIGHT", "0"), ("RPUSH", "k", "x"), b"x"),
    (("BRPOPLPUSH", "k", "to", "0"), ("RPUSH", "k", "x"), b"x"),
    (("BLMPOP", "0", "1", "k", "LEFT"), ("RPUSH", "k", "x"), [b"k", [b"x"]]),
    (("BZPOPMIN", "k", "0"), ("ZADD", "k", "1", "x"), [b"k", b"x", b"1"]),
    (("BZPOPMAX", "k", "0"), ("ZADD", "k", "1", "x"), [b"k", b"x", b"1"]),
    (("BZMPOP", "0", "1", "k", "MIN"), ("ZADD", "k", "1", "x"), [b"k", [[b"x", b"1"]]]),
    (("BLPOP", "k", "0"), ("EVAL", "redis.call('RPUSH', 'k', 'x')", "0"), [b"k", b"x"]),
    (("BLPOP", "k", "0"), ("RENAME", "there", "k"), [b"k", b"x"]),
    (("BLPOP", "k", "0"), ("COPY", "there", "k"), [b"k", b"x"]),
    (("BLPOP", "k", "0"), ("SORT", "there", "ALPHA", "STORE", "k"), [b"k", b"x"]),
]


@test
def what_waits_in_one_process_is_served_by_another_one(cwd):
    with doors(cwd) as (a, b, _):
        with a.client() as waits, b.client() as c:
            for command, brings, answer in WAITING:
                c("FLUSHALL")
                c("RPUSH", "there", "x")
                waits.send(*command)
                until_blocked(a, 1)
                c(*brings)
                equal((command, waits.read()), (command, answer))


@test
def who_waits_for_entries_of_a_stream_gets_those_of_another_process(cwd):
    with doors(cwd) as (one, two, _), one.client() as c, two.client() as other:
        other("XADD", "s", "1-0", "a", "b")
        for number in range(2, 5):
            c.send("XREAD", "BLOCK", "0", "STREAMS", "s", "none", "$", "$")
            until_blocked(one, 1)
            other("XADD", "s", f"{number}-0", "n", number)
            equal(c.read(), [[b"s", [[b"%d-0" % number, [b"n", b"%d" % number]]]]])


@test
def who_waits_in_a_group_is_served_by_another_process_and_told_that_it_is_gone(cwd):
    with doors(cwd) as (one, two, _), one.client() as a, one.client() as b, two.client() as other:
        other("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        other("XGROUP", "CREATE", "s", "h", "$")
        for number in range(1, 4):
            for count, (client, group) in enumerate(((a, "g"), (b, "h")), 1):
                client.send("XREADGROUP", "GROUP", group, "c", "BLOCK", "0", "STREAMS", "s", ">")
                until_blocked(one, count)
            other("XADD", "s", f"{number}-0", "n", number)
            for client in (a, b):
                equal(client.read(), [[b"s", [[b"%d-0" % number, [b"n", b"%d" % number]]]]])
        equal(other("XPENDING", "s", "g")[0], 3)
        for gone in ("XGROUP", "DESTROY", "s", "g"), ("DEL", "s"):
            group = "g" if gone[0] == "XGROUP" else "h"
            a.send("XREADGROUP", "GROUP", group, "c", "BLOCK", "0", "STREAMS", "s", ">")
            until_blocked(one, 1)
            other(*gone)
            contains(str(a.read()), "NOGROUP the consumer group" if group == "g" else "UNBLOCKED the stream key")


@test
def what_another_process_brings_from_another_database_serves_who_waits(cwd):
    ways = [[("SWAPDB", "0", "1")], [("SELECT", "1"), ("MOVE", "k", "0")],
            [("SELECT", "1"), ("COPY", "k", "k", "DB", "0")],
            [("MULTI",), ("SWAPDB", "1", "0"), ("EXEC",)]]
    with doors(cwd) as (a, b, c):
        with a.client() as waits, b.client() as waits_too, c.client() as brings:
            for way in ways:
                brings("FLUSHALL")
                brings("SELECT", "1")
                brings("RPUSH", "k", "x", "y")
                brings("SELECT", "0")
                for door, client in (a, waits), (b, waits_too):
                    client.send("BLPOP", "k", "0")
                    until_blocked(door, 1)
                for command in way:
                    brings(*command)
                equal((way, sorted([waits.read()[1], waits_too.read()[1]])), (way, [b"x", b"y"]))
                brings("SELECT", "0")


@test
def who_waits_in_three_processes_for_one_key_is_served_by_as_many_pushes(cwd):
    with doors(cwd) as all_doors, contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(door.client()) for door in all_doors for _ in range(2)]
        pushes = [stack.enter_context(door.client()) for door in all_doors]
        for turn in range(5):
            for client in waiting:
                client.send("BZPOPMIN", "none", "k", "0")
            for door in all_doors:
                until_blocked(door, 2)
            for n, client in enumerate(pushes * 2):
                client("ZADD", "k", n, f"{turn}-{n}")
            equal(sorted(client.read()[1] for client in waiting),
                  [b"%d-%d" % (turn, n) for n in range(6)])
            equal(pushes[0]("EXISTS", "k"), 0)


@test
def a_wait_outlasts_other_databases_of_the_same_name_and_other_types(cwd):
    with doors(cwd) as (a, b, _):
        with a.client() as waits, b.client() as c:
            waits("SELECT", "7")
            c("SELECT", "7")
            for _ in range(3):
                waits.send("BLPOP", "k", "0")
                until_blocked(a, 1)
                c("SET", "k", "no list")
                c("FLUSHDB")
                c("HSET", "k", "a", "b")
                c("DEL", "k")
                c("FLUSHDB")
                c("RPUSH", "k", "x")
                equal(waits.read(), [b"k", b"x"])


@test
def those_who_wait_in_a_process_are_served_in_their_order(cwd):
    with doors(cwd) as (a, b, _):
        with contextlib.ExitStack() as stack, b.client() as c:
            waiting = [stack.enter_context(a.client()) for _ in range(4)]
            for number, one in enumerate(waiting, 1):
                one.send("BLPOP", "k", "0")
                until_blocked(a, number)
            c("RPUSH", "k", "0", "1")
            c("RPUSH", "k", "2")
            c("RPUSH", "k", "3")
            for number, one in enumerate(waiting):
                equal(one.read(), [b"k", b"%d" % number])
            equal(c("EXISTS", "k"), 0)


@test
def those_who_wait_keep_their_order_when_all_of_them_are_woken(cwd):
    """As at the end of a pause, or when rights have changed: each looks whether it may go on waiting."""
    with doors(cwd) as (a, b, _), contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(a.client()) for _ in range(6)]
        done = threading.Event()

        def wake():
            with a.client() as c:
                while not done.is_set():
                    c("CLIENT", "UNPAUSE")

        def push():
            try:
                with b.client() as c:
                    for _ in range(3):
                        for number, one in enumerate(waiting, 1):
                            one.send("BLPOP", "k", "0")
                            until_blocked(a, number)
                        for number in range(len(waiting)):
                            c("RPUSH", "k", number)
                        equal([one.read()[1] for one in waiting],
                              [b"%d" % number for number in range(len(waiting))])
            finally:
                done.set()

        run_threads(wake, push)


@test
def who_waits_for_the_source_of_a_move_does_not_hold_up_who_waits_for_its_destination(cwd):
    with doors(cwd) as (a, b, _):
        for other in a, b:
            with a.client() as moves, a.client() as pops, other.client() as c:
                moves.send("BLMOVE", "from", "to", "LEFT", "LEFT", "0")
                until_blocked(a, 1)
                pops.send("BLPOP", "to", "0")
                until_blocked(a, 2)
                c("RPUSH", "to", "x")
                equal(pops.read(), [b"to", b"x"])
                c("RPUSH", "from", "y")
                equal(moves.read(), b"y")
                c("DEL", "to")


class Worker(threading.Thread):
    """Moves elements of a queue to what it has done, until it is told to end or its process is."""

    def __init__(self, door, number):
        super().__init__()
        self.client, self.number, self.failure = door.client(timeout=100), number, None
        self.got = []
        self.start()

    def run(self):
        try:
            while True:
                one = self.client("BLMOVE", "queue", f"done{self.number}", "LEFT", "RIGHT", "0")
                if one == b"end":
                    break
                self.got.append(one)
        except (EOFError, OSError):
            pass  # killed
        except BaseException as failure:
            self.failure = failure
        self.client.close()


def work(all_doors, elements, killed):
    """All elements by workers in all processes, one of which is killed in the middle."""
    workers = [Worker(door, 2 * n + k) for n, door in enumerate(all_doors) for k in range(2)]
    with all_doors[0].client() as c:
        for n in range(elements):
            c("RPUSH", "queue", n)
            if n == elements // 2 and killed:
                killed.kill()
        for _ in workers:
            c("RPUSH", "queue", "end")
        for worker in workers:
            worker.join(100)
            assert not worker.is_alive() and worker.failure is None, worker.failure
        done = [one for worker in workers for one in c("LRANGE", f"done{worker.number}", "0", "-1")]
        left = c("LRANGE", "queue", "0", "-1")
    equal(sorted(int(one) for one in done + left if one != b"end"), list(range(elements)))
    if not killed:
        equal(left, [])
    for worker in workers:
        assert set(worker.got) <= set(done)


@test
def each_element_of_a_queue_is_taken_once_by_workers_in_all_processes(cwd):
    with doors(cwd) as all_doors:
        work(all_doors, 150, None)


@test_of_processes
def nothing_of_a_queue_is_lost_or_doubled_when_a_process_is_killed(cwd):
    with doors(cwd) as all_doors:
        work(all_doors, 150, all_doors[2])


# ---- Messages ----

@test
def messages_reach_subscribers_of_all_processes(cwd):
    with doors(cwd) as all_doors:
        with contextlib.ExitStack() as stack:
            publish = stack.enter_context(all_doors[1].client())
            for door in all_doors:
                sub = stack.enter_context(door.client())
                door.sub = sub
                equal(sub("SUBSCRIBE", "news", "other"), [b"subscribe", b"news", 1])
                equal(sub.read(), [b"subscribe", b"other", 2])
                equal(sub("PSUBSCRIBE", "n?ws"), [b"psubscribe", b"n?ws", 3])
                equal(sub("SSUBSCRIBE", "shard"), [b"ssubscribe", b"shard", 1])
            # It counts those of its own process.
            equal(publish("PUBLISH", "news", "hello"), 2)
            equal(publish.pipeline(("MULTI",), ("PUBLISH", "other", b"\0\xff"), ("EXEC",))[2], [1])
            equal(publish("SPUBLISH", "shard", ""), 1)
            publish("EVAL", "redis.call('PUBLISH', 'other', 'from a script')", "0")
            # What is undone is not sent: the command after it fails the script.
            publish.send("EVAL", "redis.call('PUBLISH', 'other', 'x'); while true do end", "0")
            with all_doors[1].client() as c:
                while c.pipeline(("SCRIPT", "KILL"))[0] != "OK":
                    pass
            assert isinstance(publish.read(), Error)
            publish("PUBLISH", "other", "last")
            for door in all_doors:
                equal([door.sub.read() for _ in range(6)],
                      [[b"message", b"news", b"hello"], [b"pmessage", b"n?ws", b"news", b"hello"],
                       [b"message", b"other", b"\0\xff"], [b"smessage", b"shard", b""],
                       [b"message", b"other", b"from a script"], [b"message", b"other", b"last"]])


@test
def each_message_comes_once_and_in_the_order_of_its_publisher(cwd):
    count = 150
    with doors(cwd) as all_doors:
        with contextlib.ExitStack() as stack:
            subs = [stack.enter_context(door.client()) for door in all_doors for _ in range(2)]
            for sub in subs:
                sub("PSUBSCRIBE", "*")

            def publish(number, door):
                with door.client() as c:
                    for n in range(count):
                        c("PUBLISH", f"channel{n % 5}", f"{number} {n}")

            def receive(sub):
                seen = {}
                for _ in range(count * len(all_doors)):
                    number, n = sub.read()[3].split()
                    equal(int(n), seen.get(number, -1) + 1)
                    seen[number] = int(n)
                equal(set(seen.values()), {count - 1})

            run_threads(*[lambda n=n, d=door: publish(n, d) for n, door in enumerate(all_doors)],
                        *[lambda s=sub: receive(s) for sub in subs])


@test
def a_subscriber_gets_what_comes_after_its_subscription_though_another_is_killed(cwd):
    with doors(cwd) as (a, b, c):
        with a.client() as publish, b.client() as sub, c.client() as other:
            for n in range(20):
                publish("PUBLISH", "news", "before")
                equal(sub("SUBSCRIBE", "news"), [b"subscribe", b"news", 1])
                publish("PUBLISH", "news", n)
                message = sub.read()
                while message[2] == b"before":
                    message = sub.read()
                equal(message, [b"message", b"news", b"%d" % n])
                equal(sub("UNSUBSCRIBE", "news"), [b"unsubscribe", b"news", 0])
            if c.process:
                other("SUBSCRIBE", "news")
                c.kill()
                sub("SUBSCRIBE", "news")
                publish("PUBLISH", "news", "after")
                equal(sub.read(), [b"message", b"news", b"after"])


@test
def keys_tell_of_changes_in_all_processes(cwd):
    with doors(cwd) as (a, b, _):
        with a.client() as c, b.client() as sub:
            # Who has the setting tells of what it does itself.
            c("CONFIG", "SET", "notify-keyspace-events", "KEA")
            sub("PSUBSCRIBE", "__key*__:*")
            c("SET", "a", "1")
            equal(sub.read(), [b"pmessage", b"__key*__:*", b"__keyspace@0__:a", b"set"])
            equal(sub.read(), [b"pmessage", b"__key*__:*", b"__keyevent@0__:set", b"a"])


@test
def processes_tell_of_what_each_does_to_one_key(cwd):
    rounds = 20
    with doors(cwd) as all_doors, contextlib.ExitStack() as stack:
        subs = [stack.enter_context(door.client()) for door in all_doors]
        for door, sub in zip(all_doors, subs):
            with door.client() as c:
                c("CONFIG", "SET", "notify-keyspace-events", "K$gl")
            sub("SUBSCRIBE", "__keyspace@0__:k")

        def change(door):
            with door.client() as c:
                for _ in range(rounds):
                    c("INCR", "k")

        run_threads(*[lambda d=door: change(d) for door in all_doors])
        with all_doors[0].client() as c:
            equal(c("DEL", "k"), 1)
        # What its own process does, a subscriber may hear before what others did earlier.
        for sub in subs:
            events = sorted(sub.read()[2] for _ in range(3 * rounds + 1))
            equal(events, [b"del"] + [b"incrby"] * 3 * rounds)


# ---- Expiry ----

def until_gone(client, keys):
    """Until keys have not only expired, but are removed."""
    until(lambda: client("DBSIZE") <= keys)


@test
def keys_that_any_process_lets_expire_are_gone_for_all_and_told_once(cwd):
    count = 100
    with doors(cwd) as all_doors, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(door.client()) for door in all_doors]
        subs = [stack.enter_context(door.client(timeout=120)) for door in all_doors]
        if all_doors[0].process:
            for client, sub in zip(clients, subs):
                client("CONFIG", "SET", "notify-keyspace-events", "Exh")
                sub("PSUBSCRIBE", "__keyevent@0__:*expired")
        for number, client in enumerate(clients):
            for n in range(count):
                client("SET", f"{number}-{n}", "x", "PX", 100 + n)
            client("HSET", f"h{number}", "stays", "1", "goes", "1")
            client("HPEXPIRE", f"h{number}", "200", "FIELDS", "1", "goes")
            client("RPUSH", f"l{number}", *range(50))
            client("PEXPIRE", f"l{number}", "300")
        names = [f"{number}-{n}" for number in range(3) for n in range(count)]
        until(lambda: not any(client("EXISTS", *names, "l0", "l1", "l2") for client in clients))
        until_gone(clients[0], 3)
        for client in clients:
            equal([client("HGETALL", f"h{n}") for n in range(3)], [[b"stays", b"1"]] * 3)
            equal(client("DBSIZE"), 3)
        if all_doors[0].process:
            expected = sorted([(b"expired", name.encode()) for name in names]
                              + [(b"expired", b"l%d" % n) for n in range(3)]
                              + [(b"hexpired", b"h%d" % n) for n in range(3)])
            for sub in subs:
                told = [sub.read() for _ in expected]
                equal(sorted((message[2].split(b":")[1], message[3]) for message in told), expected)


@test
def what_one_process_keeps_longer_no_other_one_removes(cwd):
    ways = [("PERSIST",), ("EXPIRE", "100"), ("GETEX", "PERSIST"), ("SET", "y"),
            ("SET", "y", "EX", "100"), ("PEXPIREAT", "9999999999999")]
    with doors(cwd) as (a, b, c):
        with a.client() as sets, b.client() as keeps, c.client() as asks:
            for n, (command, *words) in enumerate(ways):
                sets("SET", f"k{n}", "x", "PX", "1500")
                keeps(command, f"k{n}", *words)
            sets("SET", "last", "x", "PX", "1600")
            until_gone(asks, len(ways))
            for client in sets, keeps, asks:
                equal([client("EXISTS", f"k{n}") for n in range(len(ways))], [1] * len(ways))


@test_of_processes
def keys_are_removed_though_processes_are_killed(cwd):
    with doors(cwd) as (a, b, c):
        with a.client() as client:
            for door in b, c:
                with door.client() as other:
                    for n in range(50):
                        other("SET", f"{door.port}-{n}", "x", "PX", "50")
                    door.kill()
                until_gone(client, 0)


@test
def a_message_that_is_too_long_for_a_cluster_is_refused_by_the_name_of_its_limit(cwd):
    with doors(cwd) as (a, b, _):
        with a.client() as c, b.client() as sub:
            sub("SUBSCRIBE", "news")
            contains(c.error("PUBLISH", "news", "x" * 90000), "MESSAGES_BYTES")
            equal(c("PUBLISH", "news", "x" * 80000), 0)
            equal(sub.read()[2], b"x" * 80000)
            for _ in range(100):
                c.send("PUBLISH", "news", "y" * 60000)
            for _ in range(100):
                equal(c.read(), 0)
            for _ in range(100):
                equal(sub.read()[2], b"y" * 60000)


@test
def one_transaction_publishes_so_many_messages_and_no_more(cwd):
    script = "for i = 1, ARGV[1] do redis.call('PUBLISH', 'news', i) end return redis.call('INCR', 'n')"
    with doors(cwd) as (a, b, _):
        with a.client(timeout=600) as c, b.client(timeout=600) as sub:
            c("CONFIG", "SET", "lua-time-limit", "0")
            sub("SUBSCRIBE", "news")
            contains(c.error("EVAL", script, "0", "30001"), "30000 messages (MESSAGES_COUNT)")
            # Nothing of it has happened.
            equal([c("EXISTS", "n"), c("PUBLISH", "news", "first")], [0, 0])
            equal(sub.read()[2], b"first")
            equal(c("EVAL", script, "0", "20000"), 1)
            for i in range(1, 20001):
                equal(sub.read()[2], b"%d" % i)


@test
def clients_of_a_process_wait_for_so_many_keys_and_no_more(cwd):
    with doors(cwd) as (a, b, _):
        with a.client(timeout=600) as c, a.client(timeout=600) as d, b.client() as other:
            keys = [f"k{i}" for i in range(10000)]
            # A transaction that reads so many keys may be too slow for a busy cluster.
            until(lambda: "10000 keys (REDIS_WAITED_KEYS)" in c.error("BLPOP", *keys, "one more", "0"))
            c.send("BLPOP", *keys, "0")
            until_blocked(a, 1)
            # Another one may wait for the same keys, and for no other.
            contains(d.error("BLPOP", "one more", "0"), "10000 keys (REDIS_WAITED_KEYS)")
            d.send("BLPOP", keys[-1], "0")
            until_blocked(a, 2)
            other("RPUSH", keys[5000], "x")
            equal(c.read(), [keys[5000].encode(), b"x"])
            other("RPUSH", keys[-1], "y")
            equal(d.read(), [keys[-1].encode(), b"y"])
            # Who has been served makes room.
            c.send("BLPOP", "one more", "0")
            until_blocked(a, 1)
            other("RPUSH", "one more", "z")
            equal(c.read(), [b"one more", b"z"])


@test_of_processes
def a_process_that_falls_behind_the_log_closes_its_subscribers(cwd):
    with doors(cwd) as (a, b, _):
        with a.client(timeout=300) as c:
            # The lease of the chore that clears may be the stopped one's: then it takes longer.
            for seconds in (20, 40, 80):
                with b.client(timeout=300) as sub:
                    sub("SUBSCRIBE", "news")
                    b.process.process.send_signal(signal.SIGSTOP)
                    try:
                        end, count = time.monotonic() + seconds, 0
                        while time.monotonic() < end:
                            c("PUBLISH", "news", count)
                            count += 1
                            time.sleep(0.2)
                    finally:
                        b.process.process.send_signal(signal.SIGCONT)
                    try:
                        # All of them in order, or an end: none is left out silently.
                        for i in range(count):
                            equal(sub.read()[2], b"%d" % i)
                    except (EOFError, OSError):
                        break
            else:
                raise AssertionError("nobody was closed")
            # Whoever subscribes anew gets what comes.
            with b.client(timeout=300) as sub:
                sub("SUBSCRIBE", "news")
                c("PUBLISH", "news", "since")
                equal(sub.read()[2], b"since")


@test_of_processes
def rules_that_clients_of_one_process_change_hold_in_all(cwd):
    with doors(cwd) as all_doors, all_doors[0].client() as root:
        root("ACL", "DELUSER", "ann")
        equal(root("ACL", "SETUSER", "ann", "on", ">pear", "~*", "&*", "+@all"), "OK")
        clients = []
        for door in all_doors[1:]:
            # People are read for each login: the others know of her at once.
            idle, subscriber = door.client(), door.client()
            for c in (idle, subscriber):
                equal(c("AUTH", "ann", "pear"), "OK")
            equal(subscriber("SUBSCRIBE", "news"), [b"subscribe", b"news", 1])
            clients.append((idle, subscriber))
        root("ACL", "SETUSER", "ann", "resetchannels", "-@all", "+ping", "<pear", ">plum")
        for door, (idle, subscriber) in zip(all_doors[1:], clients):
            subscriber.socket.settimeout(60)
            equal(subscriber.file.read(1), b"")

            def is_refused():
                idle.send("GET", "k")
                return isinstance(idle.read(), Error)
            until(is_refused)
            equal(idle("PING"), "PONG")
            with door.client() as c:
                contains(c.error("AUTH", "ann", "pear"), "WRONGPASS")
                equal(c("AUTH", "ann", "plum"), "OK")
        equal(root("ACL", "DELUSER", "ann"), 1)
        for idle, _ in clients:
            def has_ended():
                try:
                    idle("PING")
                except (EOFError, ConnectionError):
                    return True
                return False
            until(has_ended)


@test
def the_past_that_one_process_keeps_is_read_by_all(cwd):
    def moment(client):
        """A time behind all that was written, in milliseconds."""
        seconds, micros = client("TIME")
        at = int(seconds) * 1000 + int(micros) // 1000 + 1
        while int(client("TIME")[0]) * 1000 + int(client("TIME")[1]) // 1000 <= at:
            pass
        return at

    with doors(cwd) as all_doors, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(door.client()) for door in all_doors]
        clients[0]("FROND.HISTORY", "3600")
        try:
            while clients[2]("FROND.HISTORY")[1] is None:
                pass
            moments = []
            for n, client in enumerate(clients * 2):
                client("SET", "s", n)
                client("RPUSH", "l", n)
                client("HSET", "h", f"f{n % 3}", n)
                moments.append((moment(client), n))
            clients[1]("DEL", "l", "h")
            clients[2]("SET", "s", "x", "PX", "1")
            for client in clients:
                equal([client("EXISTS", "l"), client("EXISTS", "h")], [0, 0])
                for at, n in moments:
                    equal(client("FROND.AT", at, "GET", "s"), b"%d" % n)
                    equal(client("FROND.AT", at, "LRANGE", "l", "0", "-1"),
                          [b"%d" % i for i in range(n + 1)])
                    equal(client("FROND.AT", at, "HLEN", "h"), min(n + 1, 3))
                    equal(client("FROND.AT", at, "DBSIZE"), 3)
        finally:
            clients[0]("FROND.HISTORY", "0")


@test
def clients_in_all_processes_that_write_one_key_all_count(cwd):
    with doors(cwd) as all_doors:
        def count(door):
            with door.client() as c:
                for _ in range(30):
                    c.pipeline(("INCR", "n"), ("RPUSH", "list", "x"), ("ZINCRBY", "z", "1", "m"),
                               ("HINCRBY", "h", "f", "1"), ("SADD", "s", str(c("INCR", "id"))))

        run_threads(*[lambda d=door: count(d) for door in all_doors for _ in range(3)])
        with all_doors[2].client() as c:
            equal([c("GET", "n"), c("LLEN", "list"), c("ZSCORE", "z", "m"), c("HGET", "h", "f"),
                   c("SCARD", "s")], [b"270", 270, b"270", b"270", 270])


# ---- CLIENT TRACKING ----

def tracker(door, *options, **kwargs):
    c = door.client(**kwargs)
    c("HELLO", 3)
    equal(c("CLIENT", "TRACKING", "ON", *options), "OK")
    return c


def hears(c, *keys):
    """Waits until the client has been told of all of these; None stands for all keys. It may hear of others: of a
    write that it has read already, too."""
    wanted, found = {key and key.encode() for key in keys}, []
    while not wanted <= set(found):
        message = c.read()
        equal(message[0], b"invalidate")
        found += message[1] or [None]
    return found


class Cache:
    """A client that keeps what it reads until it is told, as client libraries do."""

    def __init__(self, door):
        self.client, self.kept, self.nulls = tracker(door), {}, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def ask(self, *command):
        self.client.send(*command)
        while isinstance(answer := self.client.read(), list) and answer and answer[0] == b"invalidate":
            self.drop(answer[1])
        return answer

    def drop(self, keys):
        if keys is None:
            self.kept.clear()
            self.nulls += 1
        for key in keys or ():
            self.kept.pop(key.decode(), None)

    def keep(self, writer, *keys):
        """Keeps these, behind all messages about what was written before."""
        mark = f"mark {time.monotonic_ns()}"
        self.kept[mark] = self.ask("GET", mark)
        writer("SET", mark, 1)
        self.loses(mark)
        for key in keys:
            self.kept[key] = self.ask("GET", key)

    def loses(self, *keys):
        """Waits until it has been told of all of these."""
        until(lambda: self.ask("PING") and not self.kept.keys() & set(keys), told=lambda: (keys, self.kept))

    def loses_all(self, change):
        """Has somebody change all, and waits until it has been told that."""
        before = self.nulls
        change()
        until(lambda: self.ask("PING") and self.nulls > before)
        equal(self.kept, {})

    def settles(self, now):
        """Waits until what it keeps is what is there."""
        def is_so():
            self.ask("PING")
            return all(now[key] == value for key, value in self.kept.items())
        until(is_so, told=lambda: (self.kept, now))


@test
def what_one_process_changes_is_told_to_those_who_keep_it_in_others(cwd):
    with doors(cwd) as (a, b, d), Cache(a) as one, Cache(d) as other, b.client() as writer:
        writer("MSET", "k", 1, "l", 1, "m", 1)
        one.keep(writer, "k", "l")
        other.keep(writer, "k")
        equal([one.kept, other.kept], [{"k": b"1", "l": b"1"}, {"k": b"1"}])
        writer("SET", "m", 2)  # nobody has read it
        writer("SET", "k", 2)
        one.loses("k")
        other.loses("k")
        equal(one.kept, {"l": b"1"})
        writer("DEL", "l")
        one.loses("l")
        # All writers alike, and all that a transaction changes.
        one.keep(writer, "x", "y", "z", "k")
        with d.client() as third:
            third("MULTI"), third("LPUSH", "x", 1), third("SADD", "y", 1), third("EXEC")
            third("EVAL", "return redis.call('SET', KEYS[1], 1)", 1, "z")
        one.loses("x", "y", "z")
        equal(one.kept, {"k": b"2"})
        for flush in (("FLUSHDB",), ("SWAPDB", 0, 1), ("FLUSHALL",)):
            one.keep(writer, "k")
            one.loses_all(lambda: writer(*flush))
        # Beyond MESSAGES_BYTES of names a transaction says that all may be others.
        names = [f"{n}" * 4500 for n in range(10, 40)]
        one.keep(writer, "k")
        one.loses_all(lambda: writer("MSET", *[word for name in names for word in (name, 1)]))


@test
def prefixes_and_others_ears_know_no_processes(cwd):
    with doors(cwd) as (a, b, d), a.client() as listener, b.client() as writer:
        listener("HELLO", 3)
        number = listener("CLIENT", "ID")
        with tracker(a, "BCAST", "PREFIX", "user:", "NOLOOP") as prefix, \
                tracker(a, "REDIRECT", number) as silent, tracker(d, "OPTIN") as picky:
            equal(silent("GET", "k"), None)
            equal(picky("GET", "k"), None)
            equal(picky("CLIENT", "CACHING", "YES"), "OK")
            equal(picky("GET", "l"), None)
            prefix("SET", "user:own", 1)
            writer("MSET", "job:1", 1, "user:1", 1, "user:2", 1)
            equal(sorted(hears(prefix, "user:1", "user:2")), [b"user:1", b"user:2"])
            writer("SET", "k", 1)
            equal(hears(listener, "k"), [b"k"])
            writer("SET", "l", 1)
            equal(hears(picky, "l"), [b"l"])


@test
def what_expires_is_told_to_those_who_keep_it_in_all_processes(cwd):
    with doors(cwd) as all_doors, all_doors[0].client() as writer:
        trackers = [tracker(door) for door in all_doors]
        writer("SET", "soon", 1, "PX", 1500)
        for c in trackers:
            equal(c("GET", "soon"), b"1")
        for c in trackers:
            hears(c, "soon")
            c.close()


@test
def a_process_asks_others_to_tell_only_while_its_clients_track(cwd):
    with doors(cwd) as (a, b, _), b.client() as writer:
        def drawn(what):
            store = f"embedded:{cwd / 'store'}" if DOORS else cluster()
            told = ok("inspect", "--limit", "100000", "--store", store, cwd=cwd).stdout
            return told.count(f'("root", "{what}", ')

        # Another test may have left a record.
        until(lambda: not drawn("trackers"))
        with Cache(a) as cache:
            cache.keep(writer, "k")
            equal(drawn("trackers"), 1)
        until(lambda: not drawn("trackers"))
        until(lambda: drawn("messages") <= 8)  # what is kept of what was told is cleared, but for the places
        writer("SET", "k", 1)
        assert drawn("messages") <= 8
        with Cache(a) as cache:
            cache.keep(writer, "k")
            writer("SET", "k", 2)
            cache.loses("k")


@test
def nobody_keeps_what_another_process_has_changed(cwd):
    """Readers with caches in each process, beside writers in each; clients come and go, so that records do, too."""
    draw = random.Random(SEED)
    keys = [f"k{i}" for i in range(20)]
    with doors(cwd) as all_doors:
        over = threading.Event()
        caches = []

        def write(door, number):
            own = random.Random(number)
            with door.client() as c:
                for i in range(200):
                    key = own.choice(keys)
                    if own.random() < 0.1:
                        c("DEL", key)
                    elif own.random() < 0.2:
                        c("MSET", key, f"{number}-{i}", own.choice(keys), f"{number}-{i}")
                    else:
                        c("SET", key, f"{number}-{i}")

        def read(door, number):
            own = random.Random(number)
            cache = Cache(door)
            while not over.is_set():
                missing = [key for key in keys if key not in cache.kept]
                if missing:
                    key = own.choice(missing)
                    cache.kept[key] = cache.ask("GET", key)
                elif own.random() < 0.02:
                    cache.client.close()
                    cache = Cache(door)
                else:
                    cache.ask("PING")
            caches.append(cache)

        readers = [threading.Thread(target=read, args=(door, draw.randrange(10 ** 6))) for door in all_doors]
        for reader in readers:
            reader.start()
        run_threads(*(lambda d=door: write(d, draw.randrange(10 ** 6)) for door in all_doors))
        over.set()
        for reader in readers:
            reader.join()
        equal(len(caches), 3)
        with all_doors[0].client() as c:
            now = {key: c("GET", key) for key in keys}
        for cache in caches:
            cache.settles(now)
            cache.client.close()


@test_of_processes
def who_keeps_something_learns_of_changes_though_processes_die_or_stand_still(cwd):
    with doors(cwd) as (a, b, d):
        killed, stopped, cache = Cache(a), Cache(b), Cache(d)
        with d.client(timeout=300) as c:
            c("SET", "k", 0)
            for one in (killed, stopped, cache):
                one.kept["k"] = one.ask("GET", "k")
            a.kill()
            b.process.process.send_signal(signal.SIGSTOP)
            try:
                # For longer than others wait for it.
                end, count = time.monotonic() + 75, 0
                while time.monotonic() < end:
                    count += 1
                    c("SET", "k", count)
                    cache.settles({"k": b"%d" % count})
                    cache.kept["k"] = cache.ask("GET", "k")
                    time.sleep(0.5)
            finally:
                b.process.process.send_signal(signal.SIGCONT)
            stopped.client.socket.settimeout(300)
            stopped.settles({"k": b"%d" % count})
            stopped.kept["k"] = stopped.ask("GET", "k")
            c("SET", "k", "last")
            for one in (stopped, cache):
                one.settles({"k": b"last"})


main(needs=None if DOORS or cluster() else "FROND_TEST_FDB names no cluster file")
