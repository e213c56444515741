"""CLIENT TRACKING: who keeps what was read is told when it is another value; as redis-server tells, where one
is here, and never too late, whoever changes what at the same time."""

import contextlib
import random
import socket
import threading
import time

from harness import Skip, contains, equal, main, ok, run_threads, seed, test, until
from redis_random import PROGRAM, Peer
from redis_server import Redis
from resp import Client, Error


@contextlib.contextmanager
def clients(server, *versions):
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(server.client()) for _ in versions]
        for client, version in zip(made, versions):
            if version == 3:
                client("HELLO", 3)
        yield made


def told(client, seconds=5):
    """The next message; None if there is none for a while."""
    client.socket.settimeout(seconds)
    try:
        return client.read()
    except (TimeoutError, socket.timeout):
        return None
    finally:
        client.socket.settimeout(30)


def hears(client, *keys):
    """Messages about these keys, in any order, and no other one before the answer to a PING."""
    found = []
    client.send("PING")
    while (message := client.read()) not in ("PONG", b"PONG"):
        equal(message[0], b"invalidate")
        found += message[1] or [None]
    equal(sorted(found, key=str), sorted([k if k is None else k.encode() for k in keys], key=str))


@test
def who_has_read_a_key_is_told_once(cwd):
    with Redis(cwd) as server, clients(server, 3, 2) as (a, b):
        b("MSET", "k", 1, "other", 2)
        equal(a("CLIENT", "TRACKING", "ON"), "OK")
        equal(a("GET", "k"), b"1")
        equal(a("MGET", "x", "y"), [None, None])
        b("SET", "other", 3)
        hears(a)
        b("SET", "k", 2)
        hears(a, "k")
        b("SET", "k", 3)  # it was not read again
        hears(a)
        b("SET", "y", 1)
        b("DEL", "y")
        hears(a, "y")
        a("GET", "k")
        b("EXPIRE", "k", 100)
        hears(a, "k")
        a("GET", "k")
        a("SET", "k", "own")
        hears(a, "k")
        for flush in (("FLUSHDB",), ("SWAPDB", 0, 1), ("FLUSHALL",)):
            a("GET", "k")
            b(*flush)
            assert None in flushes(a), flush
        equal(a("CLIENT", "TRACKING", "OFF"), "OK")
        a("GET", "k")
        b("SET", "k", 9)
        hears(a)


def flushes(client):
    found = []
    client.send("PING")
    while (message := client.read()) not in ("PONG", b"PONG"):
        equal(message[0], b"invalidate")
        found += message[1] or [None]
    return found


@test
def what_expires_is_told(cwd):
    with Redis(cwd) as server, clients(server, 3, 2) as (a, b):
        a("CLIENT", "TRACKING", "ON")
        b("SET", "soon", 1, "PX", 200)
        equal(a("GET", "soon"), b"1")
        equal(told(a, 30), [b"invalidate", [b"soon"]])


@test
def prefixes_are_told_of_whoever_has_read(cwd):
    with Redis(cwd) as server, clients(server, 3, 2) as (a, b):
        equal(a("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "user:", "PREFIX", "job:"), "OK")
        b("SET", "user:1", 1)
        b("SET", "nobody", 1)
        b("SET", "job:1", 1)
        b("SET", "user:1", 2)
        hears(a, "user:1", "job:1", "user:1")
        b("MSET", "user:1", 1, "job:1", 1, "user:2", 1, *(w for i in range(30) for w in (f"user:{i + 3}", 1)))
        equal(sorted(len(keys) for keys in (told(a)[1], told(a)[1])), [1, 32])  # one message a prefix
        contains(a.error("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "user:2"), "overlaps with an existing prefix")
        contains(a.error("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x", "PREFIX", "xy"),
                 "overlaps with another provided prefix")
        equal(a("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "more:"), "OK")
        equal(sorted(dict(a("CLIENT", "TRACKINGINFO"))[b"prefixes"]), [b"job:", b"more:", b"user:"])
        a("CLIENT", "TRACKING", "OFF")
        a("CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP")
        a("SET", "mine", 1)
        b("SET", "yours", 1)
        hears(a, "yours")


@test
def only_what_is_asked_for_is_kept(cwd):
    with Redis(cwd) as server, clients(server, 3, 2) as (a, b):
        b("MSET", "k", 1, "l", 1)
        a("CLIENT", "TRACKING", "ON", "OPTIN")
        a("GET", "k")
        equal(a("CLIENT", "CACHING", "YES"), "OK")
        a("GET", "l")
        a("GET", "k")  # not this one
        b("MSET", "k", 2, "l", 2)
        hears(a, "l")
        a("CLIENT", "CACHING", "YES")
        a("MULTI"), a("GET", "k"), a("GET", "l"), a("EXEC")
        b("MSET", "k", 3, "l", 3)
        hears(a, "k", "l")
        contains(a.error("CLIENT", "CACHING", "NO"), "only valid when tracking is enabled in OPTOUT mode")
        contains(a.error("CLIENT", "TRACKING", "ON", "OPTOUT"), "You can't switch OPTIN/OPTOUT mode")
        a("CLIENT", "TRACKING", "OFF")
        a("CLIENT", "TRACKING", "ON", "OPTOUT")
        a("GET", "k")
        a("CLIENT", "CACHING", "NO")
        a("GET", "l")
        b("MSET", "k", 4, "l", 4)
        hears(a, "k")
        # In a script, what it has read.
        a("EVAL", "return redis.call('GET', 'l')", 0)
        b("SET", "l", 5)
        hears(a, "l")
        # And each key that a script was called with which has read something, as in Redis.
        a("EVAL", "redis.call('SET', 'other', 1)", 2, "k", "l")
        b("MSET", "k", 6, "l", 6)
        a("EVAL", "redis.call('GET', 'other')", 2, "k", "l")
        b("MSET", "k", 7, "l", 7)
        hears(a, "k", "l")
        a("EVAL_RO", "redis.call('PING')", 2, "k", "l")
        b("MSET", "k", 8, "l", 8)
        equal(a("PING"), "PONG")


@test
def another_connection_gets_the_messages(cwd):
    with Redis(cwd) as server, clients(server, 2, 2, 2) as (a, b, listener):
        number = listener("CLIENT", "ID")
        contains(a.error("CLIENT", "TRACKING", "ON", "REDIRECT", 10 ** 9), "does not exist")
        contains(a.error("CLIENT", "TRACKING", "ON", "REDIRECT", number, "REDIRECT", number), "single other client")
        equal(a("CLIENT", "TRACKING", "ON", "REDIRECT", number), "OK")
        equal(a("CLIENT", "GETREDIR"), number)
        contains(a("CLIENT", "INFO").decode(), f" redir={number} ")
        listener("SUBSCRIBE", "__redis__:invalidate")
        a("GET", "k")
        b("SET", "k", 1)
        equal(told(listener), [b"message", b"__redis__:invalidate", [b"k"]])
        a("GET", "k")
        b("FLUSHALL")
        equal(told(listener), [b"message", b"__redis__:invalidate", None])
        a("HELLO", 3)
        a("GET", "k")
        listener.close()
        until(lambda: b"broken_redirect" in list(dict(a("CLIENT", "TRACKINGINFO"))[b"flags"]))
        b("SET", "k", 2)
        equal(told(a), [b"tracking-redir-broken", number])


@test
def keys_that_somebody_may_not_read_are_not_told(cwd):
    with Redis(cwd, "--admin", "root:pw") as server, server.client() as root, server.client() as a:
        root("AUTH", "root", "pw")
        root("ACL", "SETUSER", "anna", "on", ">pw", "~mine:*", "+@all")
        a("HELLO", 3, "AUTH", "anna", "pw")
        contains(a.error("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "mine:"), "NOPERM BCAST tells of every key")
        a("CLIENT", "TRACKING", "ON")
        a("GET", "mine:1")
        root("SET", "mine:1", 1)
        hears(a, "mine:1")
        root("ACL", "SETUSER", "anna", "allkeys")
        a("CLIENT", "TRACKING", "OFF")
        equal(a("CLIENT", "TRACKING", "ON", "BCAST"), "OK")
        root("ACL", "SETUSER", "anna", "resetkeys", "~mine:*")
        try:
            until(lambda: a("PING") != "PONG")
        except (EOFError, OSError):
            pass


@test
def it_is_told_of_in_lists_and_ends_with_the_client(cwd):
    with Redis(cwd) as server, clients(server, 3, 2) as (a, b):
        equal(a("CLIENT", "GETREDIR"), -1)
        equal(list(dict(a("CLIENT", "TRACKINGINFO"))[b"flags"]), [b"off"])
        a("CLIENT", "TRACKING", "ON", "NOLOOP", "OPTIN")
        a("CLIENT", "CACHING", "YES")
        equal(sorted(dict(a("CLIENT", "TRACKINGINFO"))[b"flags"]), [b"caching-yes", b"noloop", b"on", b"optin"])
        a("MGET", "a", "b", "c")
        contains(a("CLIENT", "INFO").decode(), " flags=t ")
        info = b("INFO").decode()
        for line in ("tracking_clients:1", "tracking_total_keys:3", "tracking_total_items:3",
                     "tracking_total_prefixes:0"):
            contains(info, line)
        a("RESET")
        contains(b("INFO").decode(), "tracking_clients:0")
        a("HELLO", 3)
        a("CLIENT", "TRACKING", "ON")
        b("CONFIG", "SET", "tracking-table-max-keys", 10)
        for i in range(50):
            a.send("GET", f"k{i}")
        a.send("PING")
        # A message comes behind the answers to what came together with the command that has made it.
        heard = 0
        while (answer := a.read()) != "PONG":
            heard += answer is not None
        equal(heard + len(flushes(a)), 40)
        contains(b("INFO").decode(), "tracking_total_keys:10\r")
        a.close()
        until(lambda: "tracking_total_keys:0\r" in b("INFO").decode())
        for wrong in (("ON", "PREFIX", "x"), ("ON", "OPTIN", "OPTOUT"), ("ON", "BCAST", "OPTIN"), ("ON", "PREFIX"),
                      ("MAYBE",), ("ON", "REDIRECT", "x"), ("ON", "LOUDLY")):
            assert b.error("CLIENT", "TRACKING", *wrong)


@test
def nobody_keeps_what_is_not_so_any_more(cwd):
    """Readers with caches that only messages empty, beside writers: in the end each cache has what is there."""
    draw = random.Random(seed(1))
    keys = [f"k{i}" for i in range(20)]
    with Redis(cwd, "--no-sync") as server:
        over = threading.Event()
        caches = []

        def write(number):
            own = random.Random(number)
            with server.client() as c:
                for i in range(1500):
                    key = own.choice(keys)
                    if own.random() < 0.1:
                        c("DEL", key)
                    elif own.random() < 0.2:
                        c("MSET", key, f"{number}-{i}", own.choice(keys), f"{number}-{i}")
                    else:
                        c("SET", key, f"{number}-{i}")

        def read(number):
            own = random.Random(number)
            cache = {}
            caches.append(cache)
            with server.client() as c:
                c("HELLO", 3)
                c("CLIENT", "TRACKING", "ON")

                def ask(*command):
                    c.send(*command)
                    while isinstance(answer := c.read(), list) and answer and answer[0] == b"invalidate":
                        for key in answer[1]:
                            cache.pop(key.decode(), None)
                    return answer

                while not over.is_set():
                    missing = [key for key in keys if key not in cache]
                    if missing:
                        key = own.choice(missing)
                        cache[key] = ask("GET", key)
                    else:
                        ask("PING")
                ask("PING")

        readers = [threading.Thread(target=read, args=(100 + n,)) for n in range(3)]
        for reader in readers:
            reader.start()
        run_threads(*(lambda n=n: write(draw.randrange(1000) * 10 + n) for n in range(3)))
        time.sleep(0.2)
        over.set()
        for reader in readers:
            reader.join()
        with server.client() as c:
            now = {key: c("GET", key) for key in keys}
        for cache in caches:
            equal(cache, {key: now[key] for key in cache})
            assert len(cache) > len(keys) // 2, cache
    ok("verify", "--quiet", cwd=cwd)


@test
def messages_are_those_of_redis(cwd):
    """The same calls here and there, and what each connection then hears."""
    if not PROGRAM:
        raise Skip("there is no redis-server here: apt-get install redis-tools")
    draw = random.Random(seed(2))
    with Redis(cwd) as server, Peer() as peer:
        heard = []
        calls = [draw.choice((("a", "GET", f"k{draw.randrange(6)}"), ("a", "MGET", "k1", f"k{draw.randrange(6)}"),
                              ("b", "SET", f"k{draw.randrange(6)}", 1), ("b", "DEL", f"k{draw.randrange(6)}"),
                              ("b", "LPUSH", f"l{draw.randrange(3)}", 1),
                              ("a", "LRANGE", f"l{draw.randrange(3)}", 0, -1),
                              ("b", "RPOP", f"l{draw.randrange(3)}"), ("a", "SET", f"k{draw.randrange(6)}", 2),
                              ("b", "RENAME", "k1", "k2"), ("b", "EXPIRE", f"k{draw.randrange(6)}", 1000),
                              ("b", "PERSIST", f"k{draw.randrange(6)}"), ("b", "SADD", "s", draw.randrange(3)),
                              ("a", "SMEMBERS", "s"), ("b", "SINTERSTORE", "s", "s", "t"), ("b", "COPY", "s", "t"),
                              ("b", "EVAL", "redis.call('SET', KEYS[1], 1)", 1, f"k{draw.randrange(6)}")))
                 for _ in range(400)]
        for port in (server.port, peer.port):
            with Client(port) as a, Client(port) as b:
                a("HELLO", 3)
                a("CLIENT", "TRACKING", "ON")
                found = []
                for who, *call in calls:
                    client = a if who == "a" else b
                    client.send(*call)
                    while True:
                        answer = client.read()
                        if not (who == "a" and isinstance(answer, list) and answer and answer[0] == b"invalidate"):
                            break
                        found += answer[1]
                    found += sorted(flushes(a))
                heard.append(found)
        equal(heard[0], heard[1])


main()
