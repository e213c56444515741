"""The past of Redis's door: FROND.AT and FROND.HISTORY."""

import re
import signal
import time

from harness import contains, equal, main, make_quick_store, ok, test, until
from redis_server import Redis, later
from resp import Error


# ---- Every command ----

# Enough for several blocks of a list and of a sorted set; a value in chunks; names and members in pieces.
MANY = 500
LARGE = "x" * 70000
NAME = "n" * 3000


def first_state():
    return [
        ("SET", "s", "some text", "PX", "100000000"),
        ("SET", "t", "mytext"),
        ("SET", "large", LARGE),
        ("SET", NAME, "of a long name"),
        ("SETBIT", "bits", "70", "1"),
        ("HSET", "h", "a", "1", "b", "2", "long", LARGE, NAME, "f"),
        ("HPEXPIREAT", "h", "4102444800500", "FIELDS", "1", "a"),
        ("HSET", "hash", *[part for n in range(MANY) for part in (f"f{n}", n)]),
        ("RPUSH", "l", "3", "1", "2", "1", LARGE),
        ("RPUSH", "list", *range(MANY)),
        ("SADD", "u", "x", "y", "z", NAME),
        ("SADD", "v", "y", "z", "q"),
        ("SADD", "set", *range(MANY)),
        ("ZADD", "z", "1", "a", "2", "b", "2", "c", "inf", "d"),
        ("ZADD", "w", "5", "b", "-1", "e"),
        ("ZADD", "lex", "0", "a", "0", "b", "0", "c", "0", "d"),
        ("ZADD", "zset", *[part for n in range(MANY) for part in (n / 4, f"m{n}")]),
        ("GEOADD", "geo", "13.361389", "38.115556", "p", "15.087269", "37.502669", "q"),
        ("PFADD", "hll", "a", "b"),
        *[("XADD", "x", f"{n}-1", "f", n) for n in range(1, 5)],
        ("XADD", "stream", "1-1", "f", LARGE),
        ("XGROUP", "CREATE", "x", "g", "0"),
        ("XREADGROUP", "GROUP", "g", "ann", "COUNT", "2", "STREAMS", "x", ">"),
        ("JSON.SET", "doc", "$", '{"a":[1,2,3],"o":{"t":"text"}}'),
        ("JSON.SET", "leaves", "$", f'{{"a":[1,2,3],"o":{{"t":"text"}},"pad":"{LARGE}"}}'),
    ]


def changes():
    """Each is run alone, and what all commands answered before and after it is read later on."""
    return [
        # A little of each.
        [("APPEND", "s", "!"), ("PEXPIREAT", "s", "4102444800000"), ("SETRANGE", "large", "69000", "y"),
         ("SETBIT", "bits", "3", "1"), ("HSET", "h", "b", "3", "c", "4"), ("HDEL", "h", "long"),
         ("HPERSIST", "h", "FIELDS", "1", "a"), ("LSET", "l", "0", "9"), ("LPUSH", "list", "first"),
         ("SREM", "u", "x"), ("SADD", "v", "x"), ("ZINCRBY", "z", "5", "a"), ("ZREM", "w", "b"),
         ("XADD", "x", "9-1", "f", "9"), ("XDEL", "x", "2-1"),
         ("GEOADD", "geo", "14", "38", "p"), ("PFADD", "hll", "c"), ("XACK", "x", "g", "1-1"), ("XREADGROUP", "GROUP", "g", NAME, "STREAMS", "x", ">"),
         *[change for key in ("doc", "leaves") for change in [
             ("JSON.ARRPOP", key, "$.a", "0"), ("JSON.ARRAPPEND", key, "$.a", "7"), ("JSON.STRAPPEND", key, "$.o.t", '"s"'),
             ("JSON.SET", key, "$.o.new", "{}")]]],
        # Ends of what has many members.
        [("LTRIM", "list", "100", "400"), ("ZREMRANGEBYRANK", "zset", "50", "400"),
         ("HDEL", "hash", *[f"f{n}" for n in range(0, MANY, 3)]), ("SREM", "set", *range(0, MANY, 2)),
         ("ZREMRANGEBYLEX", "lex", "[b", "[c"), ("XTRIM", "x", "MAXLEN", "1"),
         ("XGROUP", "DESTROY", "x", "g"), ("XGROUP", "CREATE", "x", "g", "$"),
         ("JSON.SET", "doc", "$.a", f'"{LARGE}"'), ("JSON.DEL", "leaves", "$.pad"), ("JSON.SET", "leaves", "$.a", "[[2]]")],
        # Other types under the same names.
        [("RENAME", "z", "s"), ("COPY", "hash", "list", "REPLACE"), ("SET", "u", "text"),
         ("DEL", "h"), ("RPUSH", "h", "of another type"), ("SORT", "l", "ALPHA", "STORE", "v"),
         ("ZUNIONSTORE", "zset", "2", "w", "lex"), ("MOVE", "t", "1"), ("XSETID", "stream", "7-7"),
         ("SET", "large", "small"), ("GETEX", "bits", "PXAT", "4102444800000")],
        [("DEL", "s", "h", "l", "list", "hash", "u", "set", "v", "zset", "lex", "x", "stream", NAME, "large", "doc", "leaves")],
        first_state(),
        [("UNLINK", "h", "hash"), ("SPOP", "set", MANY), ("LPOP", "list", MANY), ("ZPOPMIN", "zset", MANY)],
    ]


def reads():
    """
    Commands of every name that FROND.AT takes, each with what has no order of its own sorted, or with
    nothing left to chance: all members, or one of one.
    """
    for key in ("s", "t", "large", "bits", NAME, "u"):
        yield from [("GET", key), ("STRLEN", key), ("GETRANGE", key, "-5", "-1"), ("SUBSTR", key, "1", "3"),
                    ("GETBIT", key, "70"), ("BITCOUNT", key), ("BITCOUNT", key, "1", "-2", "BIT"),
                    ("BITPOS", key, "1", "2"), ("BITFIELD_RO", key, "GET", "u9", "65")]
    for key in ("h", "hash", "list"):
        yield from [("HGETALL", key), ("HKEYS", key), ("HVALS", key), ("HLEN", key), ("HGET", key, "a"),
                    ("HMGET", key, "b", "f3", "long"), ("HEXISTS", key, "c"), ("HSTRLEN", key, NAME),
                    ("HRANDFIELD", key, "10000", "WITHVALUES"), ("HSCAN", key, "0", "COUNT", "10000"),
                    ("HSCAN", key, "0", "MATCH", "f1*", "COUNT", "10000"),
                    ("HEXPIRETIME", key, "FIELDS", "2", "a", "b"), ("HPEXPIRETIME", key, "FIELDS", "1", "a")]
    for key in ("l", "list", "h"):
        yield from [("LRANGE", key, "0", "-1"), ("LRANGE", key, "150", "160"), ("LLEN", key),
                    ("LINDEX", key, "-1"), ("LINDEX", key, "300"), ("LPOS", key, "1", "COUNT", "0"),
                    ("LPOS", key, "250")]
    for key in ("u", "v", "set"):
        yield from [("SMEMBERS", key), ("SCARD", key), ("SISMEMBER", key, "x"),
                    ("SMISMEMBER", key, NAME, "4", "5"), ("SRANDMEMBER", key, "10000"),
                    ("SSCAN", key, "0", "COUNT", "10000"), ("SORT_RO", key, "ALPHA", "LIMIT", "0", "5"),
                    ("SINTER", key, "v"), ("SINTERCARD", "2", key, "v"), ("SUNION", key, "v"),
                    ("SDIFF", key, "v")]
    for key in ("z", "w", "zset", "s"):
        yield from [("ZRANGE", key, "0", "-1", "WITHSCORES"), ("ZRANGE", key, "1", "(5", "BYSCORE"),
                    ("ZREVRANGE", key, "90", "95"), ("ZRANGEBYSCORE", key, "-inf", "2"),
                    ("ZREVRANGEBYSCORE", key, "inf", "(2", "LIMIT", "1", "2"), ("ZCARD", key),
                    ("ZCOUNT", key, "2", "50"), ("ZSCORE", key, "b"), ("ZMSCORE", key, "a", "m300"),
                    ("ZRANK", key, "c"), ("ZRANK", key, "m450"), ("ZREVRANK", key, "m5"),
                    ("ZRANDMEMBER", key, "10000", "WITHSCORES"), ("ZSCAN", key, "0", "COUNT", "10000"),
                    ("ZUNION", "2", key, "w", "WITHSCORES"), ("ZINTER", "2", key, "w", "WITHSCORES"),
                    ("ZDIFF", "2", key, "w", "WITHSCORES"), ("ZINTERCARD", "2", key, "w")]
    yield from [("PFCOUNT", "hll"), ("GEODIST", "geo", "p", "q"), ("GEOHASH", "geo", "p", "q"), ("GEOPOS", "geo", "p"),
                ("GEOSEARCH", "geo", "FROMLONLAT", "15", "37", "BYRADIUS", "200", "km", "WITHCOORD"),
                ("GEORADIUS_RO", "geo", "15", "37", "200", "km", "WITHDIST", "DESC"),
                ("GEORADIUSBYMEMBER_RO", "geo", "p", "200", "km", "WITHHASH", "ASC")]
    yield from [("ZRANGEBYLEX", "lex", "[b", "+"), ("ZREVRANGEBYLEX", "lex", "(c", "-"),
                ("ZLEXCOUNT", "lex", "-", "(c")]
    for key in ("x", "stream"):
        yield from [("XRANGE", key, "-", "+"), ("XREVRANGE", key, "+", "2", "COUNT", "2"), ("XLEN", key),
                    ("XREAD", "COUNT", "3", "STREAMS", key, "1-1"), ("XINFO", "STREAM", key, "FULL"),
                    ("XINFO", "STREAM", key), ("XPENDING", key, "g"), ("XINFO", "GROUPS", key)]
    for key in ("doc", "leaves"):
        yield from [("JSON.GET", key), ("JSON.GET", key, "$.o", "$.a[0]"), ("JSON.MGET", key, "none", "$..t"), ("JSON.RESP", key, "$.a"),
                    ("JSON.TYPE", key, "$.a"), ("JSON.STRLEN", key, "$.o.t"), ("JSON.ARRLEN", key, "$.a"),
                    ("JSON.ARRINDEX", key, "$.a", "2"), ("JSON.OBJKEYS", key, "$.o"), ("JSON.OBJLEN", key, "$.o"),
                    ("JSON.DEBUG", "MEMORY", key)]
    keys = ["doc", "leaves", "s", "t", "large", "h", "hash", "l", "list", "u", "v", "set", "z", "w", "x", NAME, "none"]
    for key in keys:
        yield from [("TYPE", key), ("EXPIRETIME", key), ("PEXPIRETIME", key), ("OBJECT", "ENCODING", key),
                    ("OBJECT", "REFCOUNT", key), ("MEMORY", "USAGE", key), ("DUMP", key)]
    yield from [("EXISTS", *keys), ("TOUCH", *keys), ("MGET", *keys), ("LCS", "s", "t", "IDX"), ("KEYS", "*"),
                ("KEYS", "l*"), ("DBSIZE",), ("SCAN", "0", "COUNT", "10000"),
                ("SCAN", "0", "COUNT", "10000", "TYPE", "zset")]


# What counts from the time of the read, and what is left to chance: tested by themselves.
OTHERS = {"ttl", "pttl", "httl", "hpttl", "randomkey"}
BY_SUBCOMMAND = {"object", "memory"}  # of which only some read keys
IN_PAIRS = {"HGETALL", "HSCAN", "HRANDFIELD", "ZSCAN", "ZRANDMEMBER"}
UNORDERED = IN_PAIRS | {"HKEYS", "HVALS", "SMEMBERS", "SUNION", "SINTER", "SDIFF", "SRANDMEMBER", "SSCAN",
                        "SCAN", "KEYS"}


def answers(c, commands, at=None):
    """What the commands answer now, or did at a time; without the order that it has by chance."""
    found = c.pipeline(*[("FROND.AT", at, *words) if at else words for words in commands])
    for number, (words, answer) in enumerate(zip(commands, found)):
        if words[0] not in UNORDERED or isinstance(answer, Error):
            continue
        if words[0].endswith("SCAN"):
            equal(answer[0], b"0")
            answer = answer[1]
        step = 2 if words[0] in IN_PAIRS else 1
        found[number] = sorted(tuple(answer[i:i + step]) for i in range(0, len(answer), step))
    return found


def takes(c, name, arity):
    """Whether FROND.AT takes a command of that name, with as few arguments as it has."""
    answer, = c.pipeline(("FROND.AT", "-0s", name, *["x"] * (abs(arity) - 1)))
    return not (isinstance(answer, Error) and "is no command that reads keys" in str(answer))


@test
def each_command_that_reads_answers_what_it_did_at_the_time(cwd):
    commands = list(reads())
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        c("FROND.HISTORY", "3600")
        names = {entry[0].decode() for entry in c("COMMAND") if takes(c, entry[0].decode(), entry[1])}
        # A command that is new has to be added above.
        equal(names, {words[0].lower() for words in commands} - BY_SUBCOMMAND | OTHERS)
        remembered = []
        for change in [first_state(), *changes(), []]:
            for words in change:
                answer, = c.pipeline(words)
                assert not isinstance(answer, Error), (words, answer)
            remembered.append((answers(c, commands), later(c)))
        # Each command has another answer at some time: else it would say nothing of the past.
        changing = {words[0].lower() for words, *seen in zip(commands, *[then for then, _ in remembered])
                    if any(one != seen[0] for one in seen)}
        equal(changing - BY_SUBCOMMAND | OTHERS, names)
        assert BY_SUBCOMMAND <= changing, changing
        for then, at in reversed(remembered):
            for words, expected, got in zip(commands, then, answers(c, commands, at)):
                assert got == expected, f"{words}: {str(got)[:500]}, and not {str(expected)[:500]}"
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


@test
def what_counts_from_now_or_is_drawn_is_of_that_time_as_well(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        c("FROND.HISTORY", "3600")
        c("SET", "s", "x", "PXAT", "4102444800500")
        c("HSET", "h", "a", "1", "b", "2")
        c("HPEXPIREAT", "h", "4102444800500", "FIELDS", "1", "a")
        c("XADD", "x", "1-1", "f", "v")
        at = later(c)
        c("DEL", "s", "h", "x")
        c("SET", "other", "y")
        left = 4102444800500 - at
        equal([c("FROND.AT", at, "PTTL", "s"), c("FROND.AT", at, "TTL", "s")], [left, (left + 500) // 1000])
        equal(c("FROND.AT", at, "HPTTL", "h", "FIELDS", "3", "a", "b", "c"), [left, -1, -2])
        equal(c("FROND.AT", at, "HTTL", "h", "FIELDS", "1", "a"), [-(-left // 1000)])
        equal([c("FROND.AT", at, "TTL", key) for key in ("h", "other")], [-1, -2])
        drawn = {c("FROND.AT", at, "RANDOMKEY") for _ in range(50)}
        assert drawn <= {b"s", b"h", b"x"} and drawn, drawn
        # Nothing comes to the past, so nobody waits for it.
        equal(c("FROND.AT", at, "XREAD", "BLOCK", "0", "STREAMS", "x", "1-1"), None)
        equal(c("FROND.AT", at, "XREAD", "BLOCK", "0", "STREAMS", "x", "$"), None)
        # A scan in pages, of what is not there any more.
        cursor, keys = b"0", []
        while True:
            cursor, page = c("FROND.AT", at, "SCAN", cursor, "COUNT", "1")
            keys += page
            if cursor == b"0":
                break
        equal(sorted(keys), [b"h", b"s", b"x"])


@test
def commands_that_do_more_than_read_are_refused(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        c("FROND.HISTORY", "3600")
        c("SET", "x", "1")
        seen = 0
        for entry in c("COMMAND"):
            name, arity = entry[0].decode(), entry[1]
            if takes(c, name, arity):
                equal(any("readonly" in e[2] for e in (entry, *entry[9])), True)
                if abs(arity) > 1:
                    equal(c.error("FROND.AT", "-0s", name),
                          f"ERR wrong number of arguments for '{name}' command")
                continue
            words = ("FROND.AT", "-0s", name.upper(), *["x"] * (abs(arity) - 1))
            equal(c.error(*words),
                  f"ERR '{name.upper()}' is no command that reads keys, so it cannot read the past")
            seen += 1
        assert seen > 100, seen
        contains(c.error("FROND.AT", "-0s", "NOSUCH", "x"), "ERR 'NOSUCH' is no command that reads keys")
        contains(c.error("FROND.AT", "-0s", "y" * 1000), f"ERR '{'y' * 128}' is no command")
        # Not in EXEC, where the rest is done, nor in a script.
        equal(c.pipeline(("MULTI",), ("FROND.AT", "-0s", "SET", "x", "2"), ("INCR", "x"), ("EXEC",))[3],
              [Error("ERR 'SET' is no command that reads keys, so it cannot read the past"), 2])
        contains(c.error("EVAL", "return redis.call('FROND.AT', '-0s', 'DEL', 'x')", "1", "x"),
                 "'DEL' is no command that reads keys")
        equal(c("GET", "x"), b"2")


@test
def the_past_is_read_by_commands_of_every_type(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c.error("FROND.AT", "-0s", "GET", "a"), 'ERR the database "0" keeps no history')
        equal(c("FROND.HISTORY"), [b"seconds", 0, b"oldest", None, b"bytes", None, b"held", None, b"versions", None])
        equal(c("FROND.HISTORY", "3600"), "OK")
        answer = c("FROND.HISTORY")
        equal(answer[:3] + answer[4:], [b"seconds", 3600, b"oldest", b"bytes", None, b"held", None, b"versions", None])
        assert later(c) >= answer[3] > 0
        contains(c.error("FROND.AT", answer[3] - 1000, "GET", "a"),
                 'ERR the history of the database "0" begins at')
        c("SET", "s", "one", "PX", "1000000")
        c("HSET", "h", "a", "1", "b", "2")
        c("RPUSH", "l", "x", "y")
        c("SADD", "set", "m")
        c("ZADD", "z", "1", "p", "2", "q")
        at = later(c)
        reads = [(("GET", "s"), b"one"), (("MGET", "s", "none"), [b"one", None]),
                 (("STRLEN", "s"), 3), (("HGET", "h", "a"), b"1"),
                 (("HMGET", "h", "a", "c"), [b"1", None]), (("HLEN", "h"), 2),
                 (("LRANGE", "l", "0", "-1"), [b"x", b"y"]), (("LINDEX", "l", "1"), b"y"),
                 (("SMEMBERS", "set"), [b"m"]), (("SISMEMBER", "set", "m"), 1),
                 (("ZRANGE", "z", "0", "-1", "WITHSCORES"), [b"p", b"1", b"q", b"2"]),
                 (("ZSCORE", "z", "q"), b"2"), (("ZRANK", "z", "q"), 1), (("TYPE", "l"), "list"),
                 (("EXISTS", "s", "h", "none"), 2), (("DBSIZE",), 5)]
        for command, answer in reads:
            equal(c("FROND.AT", at, *command), answer)
        equal(sorted(c("FROND.AT", at, "HGETALL", "h")), [b"1", b"2", b"a", b"b"])
        equal(sorted(c("FROND.AT", at, "SCAN", "0")[1]), [b"h", b"l", b"s", b"set", b"z"])
        ttl = c("FROND.AT", at, "PTTL", "s")
        # All else is changed, and what was is still read.
        c("DEL", "s", "set")
        c("HSET", "h", "a", "3", "c", "4")
        c("LPOP", "l")
        c("ZADD", "z", "5", "p")
        for command, answer in reads:
            equal(c("FROND.AT", at, *command), answer)
        assert 0 < c("FROND.AT", at, "PTTL", "s") == ttl < 1000000
        equal(c("FROND.AT", later(c), "DBSIZE"), 3)
        equal(c("FROND.AT", "-1ms", "EXISTS", "s"), 0)
        equal(c.error("FROND.AT", "2100-01-01T00:00:00Z", "GET", "s"), "ERR this time has not come yet")
        contains(c.error("FROND.AT", "2001-01-01T00:00:00.5Z", "GET", "s"), "begins at")
        for words, text in [
                (("-5x", "GET", "s"), "the time is milliseconds since 1970, or like"),
                (("yesterday", "GET", "s"), "the time is milliseconds since 1970, or like"),
                (("-0s", "SET", "s", "x"), "'SET' is no command that reads keys"),
                (("-0s", "EVAL_RO", "return 1", "0"), "'EVAL_RO' is no command that reads keys"),
                (("-0s", "FROND.AT", "-1s", "GET", "s"), "is no command that reads keys"),
                (("-0s", "GET"), "wrong number of arguments for 'get' command")]:
            contains(c.error("FROND.AT", *words), text)
        # An error of the time undoes nothing of a transaction.
        equal(c.pipeline(("MULTI",), ("SET", "s", "new"), ("FROND.AT", "1", "GET", "s"),
                         ("FROND.AT", at, "GET", "s"), ("EXEC",))[4][::2], ["OK", b"one"])
        equal(c("GET", "s"), b"new")
        equal(c("EVAL", "return redis.call('FROND.AT', ARGV[1], 'GET', KEYS[1])", "1", "s", at), b"one")
        equal(c("COMMAND", "GETKEYS", "FROND.AT", "-1s", "MGET", "a", "b"), [b"a", b"b"])
        equal(c("FROND.HISTORY", "0"), "OK")
        contains(c.error("FROND.AT", at, "GET", "s"), "keeps no history")
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


def history(c):
    answer = c("FROND.HISTORY")
    return dict(zip((name.decode() for name in answer[::2]), answer[1::2]))


def swept(c):
    """The chore that removes what has expired, and what is beyond the bounds, has had a turn."""
    def expired():
        return int(re.search(r"expired_keys:(\d+)", c("INFO", "stats").decode())[1])

    before = expired()
    c("SET", "brief", "", "PX", "1")
    until(lambda: c("GET", "brief") is None and expired() > before)


@test
def the_past_is_bounded_by_bytes(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        for words in (("3600", "BYTES"), ("3600", "PAGES", "1")):
            equal(c.error("FROND.HISTORY", *words), "ERR syntax error")
        contains(c.error("FROND.HISTORY", "3600", "BYTES", "0"), "the bytes of a history are 1 to")
        contains(c.error("FROND.HISTORY", "0", "BYTES", "5"), "a history of 0 seconds has no bytes")
        equal(c("FROND.HISTORY", "3600", "BYTES", "100000"), "OK")
        equal([history(c)[name] for name in ("seconds", "bytes", "held")], [3600, 100000, 0])
        moments = []
        for n in range(16):
            c("SET", "s", "x" * 10000 + str(n))
            moments.append(later(c))
            swept(c)
        until(lambda: 50000 < history(c)["held"] <= 100000, told=lambda: history(c))
        oldest = history(c)["oldest"]
        assert oldest > moments[0], (oldest, moments)
        contains(c("INFO", "keyspace").decode(), f"db0:keys=1,past_bytes={history(c)['held']}")
        readable = [n for n, at in enumerate(moments) if at >= oldest]
        assert 5 <= len(readable) < 16, readable
        for n, at in enumerate(moments):
            if n in readable:
                equal(c("FROND.AT", at, "GET", "s"), b"x" * 10000 + str(n).encode())
            else:
                contains(c.error("FROND.AT", at, "GET", "s"), 'ERR the history of the database "0" begins at ')
                contains(c.error("FROND.DIFF", "s", at, "-0s"), "begins at")
        # It goes with the database, and is the same in a new one.
        c("FLUSHDB")
        equal([history(c)[name] for name in ("seconds", "bytes", "held")], [3600, 100000, 0])
        c("SET", "s", "1")
        c("SET", "s", "2")
        held = history(c)["held"]
        assert 0 < held < 1000, held
        # What is too long to be kept in a record is weighed by the background work.
        c("SET", "s", "x" * 60000)
        c("SET", "s", "2")
        until(lambda: held + 60000 < history(c)["held"] < held + 61000, told=lambda: history(c))
        held = history(c)["held"]
        metrics = server.metrics()
        assert metrics['frond_history_ended_total{bound="bytes"}'] > 0
        server.stop()
    contains(ok("verify", cwd=cwd).stdout, "0 findings")
    contains(ok("inspect", cwd=cwd).stdout, f": {held}")
    dump = ok("dump", "redis:0", cwd=cwd).stdout
    contains(dump, '"history_seconds":3600,"history_bytes":100000}')
    ok("load", "redis:0", "--store", "embedded:copy", cwd=cwd, stdin=dump)
    ok("move", "redis:0", "--from", "embedded:data", "--to", "embedded:there", cwd=cwd)
    for store in ("copy", "there"):
        contains(ok("verify", "--store", f"embedded:{store}", cwd=cwd).stdout, "0 findings")
        contains(ok("dump", "redis:0", "--store", f"embedded:{store}", cwd=cwd).stdout, '"history_bytes":100000}')


def answer_of(c, *words):
    c.send(*words)
    return c.read()


@test
def the_past_is_bounded_by_versions_of_each_key(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        contains(c.error("FROND.HISTORY", "3600", "VERSIONS", "0"), "the versions of a history are 1 to 10000")
        contains(c.error("FROND.HISTORY", "3600", "VERSIONS", "10001"), "the versions of a history are 1 to 10000")
        contains(c.error("FROND.HISTORY", "0", "VERSIONS", "5"), "a history of 0 seconds has no versions")
        equal(c.error("FROND.HISTORY", "3600", "VERSIONS"), "ERR syntax error")
        equal(c("FROND.HISTORY", "3600", "VERSIONS", "4"), "OK")
        equal([history(c)[name] for name in ("seconds", "bytes", "versions")], [3600, None, 4])
        moments = []
        for n in range(12):
            c("SET", "s", str(n))
            c("HSET", "h", "field", str(n))
            c("HSET", "h", "other", str(n))
            if n % 4 == 0:
                c("SET", "seldom", "x" * 20000 + str(n))
            moments.append(later(c))

        def forgotten():
            return server.metrics()["frond_history_versions_forgotten_total"]

        # Of 12 versions of "s" and 24 of "h": the first of those that are kept is the one at the horizon.
        until(lambda: forgotten() == 12 - 4 + 24 - 4, told=forgotten)
        for n, at in enumerate(moments):
            if n >= 12 - 4 - 1:
                equal(c("FROND.AT", at, "GET", "s"), str(n).encode())
            else:
                contains(c.error("FROND.AT", at, "GET", "s"), 'ERR the history of a key of the database "0" begins at ')
                contains(c.error("FROND.DIFF", "s", at, "-0s"), "begins at")
            if n >= 12 - 2 - 1:
                equal(c("FROND.AT", at, "HGETALL", "h"), [b"field", str(n).encode(), b"other", str(n).encode()])
                equal(sorted(c("FROND.AT", at, "KEYS", "*")), [b"h", b"s", b"seldom"])
            else:
                contains(c.error("FROND.AT", at, "HGETALL", "h"), "begins at")
                contains(c.error("FROND.AT", at, "KEYS", "*"), "begins at")
                contains(c.error("FROND.AT", at, "SCAN", "0"), "begins at")
            equal(c("FROND.AT", at, "GET", "seldom"), b"x" * 20000 + str(n // 4 * 4).encode())
            equal(c("FROND.AT", at, "DBSIZE"), 3)
        # It goes with the database, and is the same in a new one.
        c("FLUSHDB")
        equal([history(c)[name] for name in ("seconds", "versions")], [3600, 4])
        until(lambda: history(c)["oldest"])
        for n in range(6):
            c("SET", "s", str(n))
            moments.append(later(c))
        until(lambda: forgotten() == 12 - 4 + 24 - 4 + 2, told=forgotten)
        server.stop()
    contains(ok("verify", cwd=cwd).stdout, "0 findings")
    dump = ok("dump", "redis:0", cwd=cwd).stdout
    contains(dump, '"history_seconds":3600,"history_versions":4}')
    ok("load", "redis:0", "--store", "embedded:copy", cwd=cwd, stdin=dump)
    ok("backup", "backups", cwd=cwd)
    ok("restore", "backups", "--store", "embedded:backed", cwd=cwd)
    ok("move", "redis:0", "--from", "embedded:data", "--to", "embedded:there", cwd=cwd)
    for store in ("copy", "there", "backed"):
        contains(ok("verify", "--store", f"embedded:{store}", cwd=cwd).stdout, "0 findings")
        contains(ok("dump", "redis:0", "--store", f"embedded:{store}", cwd=cwd).stdout, '"history_versions":4}')
    # What was restored has its past, and goes on forgetting it.
    with Redis(cwd, "--no-sync", "--store", "embedded:backed") as server, server.client() as c:
        equal(c("FROND.AT", moments[-2], "GET", "s"), b"4")
        contains(c.error("FROND.AT", moments[-6], "GET", "s"), "begins at")
        for n in range(6, 12):
            c("SET", "s", str(n))
        until(lambda: "begins at" in str(answer_of(c, "FROND.AT", moments[-2], "GET", "s")))


@test
def a_kill_in_the_middle_of_forgetting_versions_loses_nothing(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("FROND.HISTORY", "3600", "VERSIONS", "2")
        for n in range(3):
            for i in range(20):
                c.pipeline(*[("HSET", f"h{i}", *sum(([f"f{j}", n] for j in range(50)), [])), ("SET", f"s{i}", "x" * 20000 + str(n))])
    for turn in range(4):
        with Redis(cwd) as server, server.client() as c:
            at = later(c)
            for n in range(3):
                for i in range(20):
                    c.pipeline(("HSET", f"h{i}", *sum(([f"f{j}", f"{turn} {n}"] for j in range(50)), [])), ("SET", f"s{i}", "x" * 20000 + f"{turn} {n}"))
                if n == 0:
                    at = later(c)
            time.sleep(0.4 * (turn + 1))
            server.stop(signal.SIGKILL)
        contains(ok("verify", cwd=cwd).stdout, "0 findings")
    with Redis(cwd) as server, server.client() as c:
        equal(c("FROND.AT", at, "HGET", "h3", "f7"), b"3 0")
        equal(c("FROND.AT", at, "GET", "s3"), b"x" * 20000 + b"3 0")


def difference(c, key, a, b):
    answer = c("FROND.DIFF", key, a, b)
    equal(answer[::2], [b"type", b"expires", b"changes"])
    return answer[1::2]


@test
def what_became_of_a_key_between_two_times_is_told(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        contains(c.error("FROND.DIFF", "k", "-1s", "-0s"), "keeps no history")
        c("FROND.HISTORY", "3600")
        states = [
            [("SET", "s", "one", "PXAT", "4102444800500"), ("HSET", "h", "a", 1, "b", 2), ("SADD", "u", "x", "y"),
             ("ZADD", "z", 1, "p", 2, "q"), ("RPUSH", "l", *"abcde"), ("XADD", "x", "1-1", "f", "v"), ("XADD", "x", "2-1", "g", "w"),
             ("JSON.SET", "j", "$", '{"a":1}'), ("SET", "other", "text"), ("RPUSH", "long", *range(600))],
            [("SET", "s", "two"), ("HSET", "h", "b", 3, "c", 4), ("HDEL", "h", "a"), ("SREM", "u", "x"), ("SADD", "u", "z"),
             ("ZADD", "z", 5, "p", 7, "r"), ("LREM", "l", 1, "c"), ("LINSERT", "l", "BEFORE", "d", "new"), ("XDEL", "x", "1-1"),
             ("XADD", "x", "3-1", "h", "i"), ("JSON.SET", "j", "$.b", "2"), ("DEL", "other"), ("SADD", "other", "m"), ("LPOP", "long"),
             ("RPUSH", "long", "end")],
        ]
        moments = [later(c)]
        for state in states:
            c.pipeline(*state)
            moments.append(later(c))
        empty, first, second = moments
        equal(difference(c, "s", first, second), [[b"string", b"string"], [4102444800500, None], [[b"", b"one", b"two"]]])
        for key, changes in [
                ("h", [[b"a", b"1", None], [b"b", b"2", b"3"], [b"c", None, b"4"]]), ("u", [[b"x", 1, None], [b"z", None, 1]]),
                ("z", [[b"p", b"1", b"5"], [b"r", None, b"7"]]), ("l", [[2, b"c", None], [2, None, b"new"]]),
                ("x", [[b"1-1", [b"f", b"v"], None], [b"3-1", None, [b"h", b"i"]]]), ("j", [[b"", b'{"a":1}', b'{"a":1,"b":2}']])]:
            equal((key, difference(c, key, first, second)[2]), (key, changes))
            # The other way round, and of a key with itself.
            back = sorted(([name, new, old] for name, old, new in changes), key=lambda change: (change[1] is None, change[0]))
            equal(sorted(difference(c, key, second, first)[2], key=lambda change: (change[1] is None, change[0])), back)
            equal(difference(c, key, second, second)[1:], [[None, None], []])
            # Of what was not there all parts have come.
            kinds, _, came = difference(c, key, empty, first)
            equal((kinds[0], {change[1] for change in came}), (b"none", {None}))
        equal(difference(c, "other", first, second)[::2], [[b"string", b"set"], [[b"", b"text", None], [b"m", None, 1]]])
        changes = difference(c, "long", first, second)[2]
        equal([len(changes), changes[0], changes[-1]], [1200, [0, b"0", None], [599, None, b"end"]])
        equal(difference(c, "none", empty, second), [[b"none", b"none"], [None, None], []])
        for words in (("k", "yesterday", "-0s"), ("k", "-0s", "tomorrow")):
            contains(c.error("FROND.DIFF", *words), "the time is milliseconds since 1970")
        contains(c.error("FROND.DIFF", "k", "1", "-0s"), "begins at")
        contains(c.error("FROND.AT", "-0s", "FROND.DIFF", "k", "-1s", "-0s"), "is no command that reads keys")
        equal(c.pipeline(("MULTI",), ("SET", "k", "new"), ("FROND.DIFF", "k", "1", "-0s"), ("EXEC",))[3][0], "OK")
        c("HELLO", "3")
        equal(c("FROND.DIFF", "z", first, second)[b"changes"][0], [b"p", 1.0, 5.0])


@test
def the_past_is_for_those_who_may_read_the_present(cwd):
    admin = ("--admin", "root:secret")
    with Redis(cwd, *admin) as server, server.client() as c:
        c("AUTH", "root", "secret")
        c("FROND.HISTORY", "60")
        c("MSET", "cache:a", "1", "other", "2")
        server.stop()
    make_quick_store(cwd)
    ok("user", "add", "ann", "--roles", "redis:~cache:* +@read -get -object|freq +multi +exec", cwd=cwd, stdin="pw\n")
    with Redis(cwd, *admin) as server, server.client() as c:
        equal(c("AUTH", "ann", "pw"), "OK")
        equal(c("FROND.AT", "-0s", "MGET", "cache:a"), [b"1"])
        contains(c.error("FROND.AT", "-0s", "MGET", "other"), "NOPERM")
        equal(c.error("FROND.AT", "-0s", "GET", "cache:a"),
              "NOPERM this user has no permissions to run the 'get' command")
        contains(c.error("FROND.HISTORY", "0"), "NOPERM")
        # What was refused within is noted as any other refusal.
        for command in (("MULTI",), ("FROND.AT", "-0s", "OBJECT", "FREQ", "cache:a"), ("EXEC",)):
            c(*command) if command[0] != "EXEC" else contains(str(c(*command)), "'object|freq'")
        with server.client() as root:
            root("AUTH", "root", "secret")
            entries = [dict(zip(e[::2], e[1::2])) for e in root("ACL", "LOG")]
            equal([(e[b"reason"], e[b"context"], e[b"object"], e[b"username"]) for e in entries],
                  [(b"command", b"multi", b"object|freq", b"ann"),
                   (b"command", b"toplevel", b"frond.history", b"ann"),
                   (b"command", b"toplevel", b"get", b"ann"), (b"key", b"toplevel", b"other", b"ann")])
        contains(server.read_log(), 'event=refused method=get path="" status=NOPERM left_out=0 user="ann"')


main()
