"""The same random commands to Debian's redis-server and to Redis's door: the same answers.

Where Redis leaves an order open (members of hashes and sets, keys), both are sorted. The program is
in the package redis-tools, too, as redis-check-rdb: under the name that it is started by it is the
server. Named as skipped where neither is installed; REDIS_SEED=N repeats a run, REDIS_COMMANDS=N
makes it longer.
"""

import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import time

from harness import Server, Skip, main, test
from resp import Client, Error

KEYS = [f"k{i}" for i in range(6)]
MEMBERS = [f"m{i}" for i in range(8)] + ["", "10", "-3", "a b", "x" * 70]
# What has no order of its own.
UNORDERED = {"hgetall", "hkeys", "hvals", "smembers", "sunion", "sinter", "sdiff", "keys"}


PROGRAM = shutil.which("redis-server") or shutil.which("redis-check-rdb")


class Peer:
    """A redis-server on a free port."""

    def __enter__(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--bind", "127.0.0.1"],
            executable=PROGRAM, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                Client(self.port).close()
                return self
            except OSError:
                assert time.monotonic() < deadline, "redis-server does not answer"
                time.sleep(0.02)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Commands:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def key(self):
        return self.random.choice(KEYS)

    def member(self):
        return self.random.choice(MEMBERS)

    def value(self):
        return self.random.choice(["", "1", "-7", "3.5", "abc", "9223372036854775807",
                                   "x" * self.random.randrange(100)])

    def index(self):
        return self.random.randrange(-6, 7)

    def score(self):
        return self.random.choice(["0", "1", "-1", "2.5", "inf", "-inf", "1e3", "x",
                                   str(self.random.randrange(10))])

    def bound(self):
        return self.random.choice(["", "("]) + self.score()

    def name_bound(self):
        return self.random.choice(["-", "+", "[" + self.member(), "(" + self.member()])

    def some(self, make):
        return [make() for _ in range(self.random.randrange(1, 4))]

    def pairs(self, first, second):
        return [make() for _ in range(self.random.randrange(1, 4)) for make in (first, second)]

    def side(self):
        return self.random.choice(["left", "right"])

    def maybe(self, *words):
        return [word for word in words if self.random.random() < 0.3]

    def strings(self):
        r, k, v = self.random, self.key, self.value
        return [
            ["set", k(), v(), *self.maybe("nx", "get")], ["set", k(), v(), "xx", "keepttl"],
            ["get", k()], ["getset", k(), v()], ["getdel", k()], ["setnx", k(), v()],
            ["append", k(), v()], ["strlen", k()], ["incr", k()], ["decr", k()],
            ["incrby", k(), v()], ["decrby", k(), v()], ["incrbyfloat", k(), v()],
            ["getrange", k(), self.index(), self.index()],
            ["setrange", k(), r.randrange(-1, 20), v()], ["mget", *self.some(k)],
            ["mset", *self.pairs(k, v)], ["msetnx", *self.pairs(k, v)],
            ["lcs", k(), k(), *self.maybe("idx", "len", "withmatchlen")],
            ["setbit", k(), r.randrange(100), r.randrange(3)], ["getbit", k(), r.randrange(100)],
            ["bitcount", k()], ["bitcount", k(), self.index(), self.index(), *self.maybe("bit")],
            ["bitpos", k(), r.randrange(2)],
            ["bitpos", k(), r.randrange(2), self.index(), self.index(), *self.maybe("bit")],
            ["bitop", r.choice(["and", "or", "xor"]), k(), *self.some(k)],
            ["bitop", "not", k(), k()],
            ["bitfield", k(), "set", r.choice(["u5", "i8", "i64", "u64"]), r.randrange(40), v(),
             "overflow", r.choice(["wrap", "sat", "fail"]), "incrby", "i5", "#2", r.randrange(-40, 40),
             "get", "u7", r.randrange(60)],
        ]

    def keys(self):
        k, r = self.key, self.random
        return [
            ["del", *self.some(k)], ["exists", *self.some(k)], ["type", k()], ["touch", *self.some(k)],
            ["rename", k(), k()], ["renamenx", k(), k()], ["copy", k(), k(), *self.maybe("replace")],
            ["expire", k(), 1000, *self.maybe("nx", "xx", "gt", "lt")], ["expire", k(), -1],
            ["persist", k()], ["expiretime", k()], ["expireat", k(), 33177117420], ["pexpireat", k(), 5],
            ["dbsize"], ["keys", r.choice(["*", "k[1-3]", "?2", "x"])], ["ttl", k()],
            ["sort", k(), "alpha", *self.maybe("desc"), "limit", self.index(), self.index()],
            ["sort", k(), "alpha", "store", k()], ["sort", k(), "by", "nosort", "get", "#", "alpha"],
        ]

    def databases(self):
        db = lambda: self.random.choice([0, 0, 1, 2, "x", 16])
        return [
            ["swapdb", db(), db()], ["swapdb", 0, 1], ["select", self.random.randrange(2)],
            ["move", self.key(), db()], ["copy", self.key(), self.key(), "db", db()], ["dbsize"],
        ]

    def scans(self):
        """All on one page, or an error: pages are cut elsewhere."""
        options = lambda: self.maybe("match", "m*", "count", "0", "x", "type", "list")
        key = lambda: [self.random.choice(["hscan", "sscan", "zscan"]), self.key()]
        return [
            ["scan", self.random.choice(["0", "x"]), *options(), "count", "10000"],
            [*key(), self.random.choice(["0", "x"]), *options(), "count", "10000"],
        ]

    def hashes(self):
        k, m, v = self.key, self.member, self.value
        return [
            ["hset", k(), *self.pairs(m, v)], ["hsetnx", k(), m(), v()], ["hget", k(), m()],
            ["hmget", k(), *self.some(m)], ["hdel", k(), *self.some(m)], ["hlen", k()],
            ["hexists", k(), m()], ["hstrlen", k(), m()], ["hincrby", k(), m(), v()],
            ["hincrbyfloat", k(), m(), v()], ["hgetall", k()], ["hkeys", k()], ["hvals", k()],
            ["hset", k(), m()],
        ]

    def sets(self):
        k, m = self.key, self.member
        return [
            ["sadd", k(), *self.some(m)], ["srem", k(), *self.some(m)], ["sismember", k(), m()],
            ["smismember", k(), *self.some(m)], ["smembers", k()], ["scard", k()],
            ["smove", k(), k(), m()], ["sunion", *self.some(k)], ["sinter", *self.some(k)],
            ["sdiff", *self.some(k)], ["sunionstore", k(), *self.some(k)],
            ["sinterstore", k(), *self.some(k)], ["sdiffstore", k(), *self.some(k)],
            ["sintercard", 2, k(), k(), "limit", self.random.randrange(-1, 3)],
        ]

    def lists(self):
        k, m, i = self.key, self.member, self.index
        return [
            ["lpush", k(), *self.some(m)], ["rpush", k(), *self.some(m)], ["lpushx", k(), m()],
            ["rpushx", k(), *self.some(m)], ["lpop", k()], ["rpop", k(), i()], ["llen", k()],
            ["lindex", k(), i()], ["lset", k(), i(), m()], ["lrange", k(), i(), i()],
            ["ltrim", k(), i(), i()], ["lrem", k(), i(), m()],
            ["linsert", k(), self.random.choice(["before", "after"]), m(), m()],
            ["lpos", k(), m(), "rank", i(), "count", i(), "maxlen", i()],
            ["lmove", k(), k(), self.side(), self.side()], ["rpoplpush", k(), k()],
            ["lmpop", 2, k(), k(), self.side(), "count", i()],
        ]

    def zsets(self):
        k, m, s, b, i = self.key, self.member, self.score, self.bound, self.index
        both = ["zrangebyscore", "zcount", "zremrangebyscore"]
        r = self.random
        return [
            ["zadd", k(), *self.maybe("nx", "xx", "gt", "lt", "ch"), *self.pairs(s, m)],
            ["zadd", k(), "incr", s(), m()], ["zincrby", k(), s(), m()],
            ["zrem", k(), *self.some(m)], ["zscore", k(), m()], ["zmscore", k(), *self.some(m)],
            ["zcard", k()], ["zrank", k(), m()], ["zrevrank", k(), m()],
            ["zrange", k(), i(), i(), *self.maybe("rev", "withscores")],
            ["zrange", k(), b(), b(), "byscore", *self.maybe("rev", "withscores"), "limit", i(), i()],
            ["zrevrange", k(), i(), i()], ["zrevrangebyscore", k(), b(), b(), "withscores"],
            [r.choice(both), k(), b(), b()], ["zremrangebyrank", k(), i(), i()],
            ["zrangestore", k(), k(), i(), i()], ["zpopmin", k(), *self.maybe(i())],
            ["zpopmax", k()], ["zmpop", 2, k(), k(), r.choice(["min", "max"]), "count", i()],
            ["zunionstore", k(), 2, k(), k(), "weights", s(), s(), "aggregate",
             r.choice(["sum", "min", "max"])],
            ["zinterstore", k(), 2, k(), k()], ["zdiffstore", k(), 2, k(), k()],
            ["zunion", 2, k(), k(), "withscores"], ["zinter", 2, k(), k(), "withscores"],
            ["zdiff", 2, k(), k()], ["zintercard", 2, k(), k(), "limit", i()],
        ]

    def scripts(self):
        """Any command in a script, and values that go to and fro."""
        command = [str(arg) for arg in self.random.choice(self.strings() + self.lists())]
        call = "return redis.call(unpack(ARGV))"
        texts = [
            call, "return redis.pcall(unpack(ARGV))", "redis.setresp(3); " + call,
            "local r = redis.pcall(unpack(ARGV)); return {type(r), r}",
            "local ok, e = pcall(redis.call, unpack(ARGV)); return {tostring(ok), e}",
            "return cjson.encode(ARGV)", "return cjson.decode(ARGV[2])", "return {1.7, -1.7, 'a', nil, 2}",
            "return bit.tobit(tonumber(ARGV[2]) or 0)", "return {ok = ARGV[1]}", "return {err = ARGV[1]}",
            "return redis.error_reply(ARGV[1])", "return x", "x = 1", "return #ARGV + #KEYS",
            "return cmsgpack.pack(unpack(ARGV))", "return cmsgpack.pack({a = tonumber(ARGV[2])})",
            "return {pcall(cmsgpack.unpack, ARGV[2])}",
            "return {cmsgpack.unpack_limit(cmsgpack.pack(1.5, {ARGV[1], 2, -300}, true), 2, 0)}",
            "return struct.pack('>I2c0Bs', #ARGV[1], ARGV[1], 7, ARGV[2])",
            "return {pcall(struct.unpack, '<i2!4lbc0', ARGV[2])}",
            "return {pcall(string.gsub, ARGV[2], '(%w)(%d*)', '%2-%1')}",
            "return {pcall(string.find, ARGV[2], ARGV[1] .. '.-$')}",
            "local t = {unpack(ARGV)}; table.sort(t); return t",
            "local n = 0; for k in pairs(math) do n = n + #k end; return n",
            "return {double = 1.5, x = 1}", "return {map = {a = 1}}", "return redis.sha1hex(ARGV[1])",
        ]
        return [[self.random.choice(["eval", "eval", "eval_ro"]), self.random.choice(texts), 0, *command]]

    def id(self):
        return self.random.choice(["-", "+", "0", "$", "5", "5-1", "7-3", "(5-1", "9-18446744073709551615",
                                   f"{self.random.randrange(9)}-{self.random.randrange(4)}", "x"])

    def streams(self):
        k, m, i = self.key, self.member, self.id
        r = self.random
        new = ["*" if r.random() < 0.02 else f"{r.randrange(12)}-{r.choice('*01234')}" for _ in range(2)]
        trim = [["maxlen", r.randrange(5)], ["minid", i()], ["maxlen", "=", r.randrange(-1, 5)], []]
        return [
            ["xadd", k(), *r.choice(trim), new[0], *self.pairs(m, m)],
            ["xadd", k(), "nomkstream", new[1], m(), m()], ["xadd", k(), new[0], m()],
            ["xlen", k()], ["xrange", k(), i(), i(), *self.maybe("count", r.randrange(-1, 3))[:2]],
            ["xrange", k(), i(), i()], ["xrevrange", k(), i(), i(), "count", r.randrange(-1, 3)],
            ["xdel", k(), i(), i()], ["xtrim", k(), *r.choice(trim)],
            ["xtrim", k(), "maxlen", "~", 3, *self.maybe("limit")],
            ["xread", "count", r.randrange(3), "streams", k(), k(), i(), i()],
            ["xread", "streams", k(), i()], ["xsetid", k(), i()],
            ["xsetid", k(), i(), "entriesadded", r.randrange(9), "maxdeletedid", i()],
        ]

    def next(self):
        kinds = [self.strings, self.keys, self.hashes, self.sets, self.lists, self.zsets,
                 self.scripts, self.streams, self.databases, self.scans]
        return [str(arg) for arg in self.random.choice(self.random.choice(kinds)())]


def comparable(command, answer):
    if not isinstance(answer, list):
        return str(answer) if isinstance(answer, Error) else answer
    if command[0].endswith("scan"):
        step = 1 if command[0] in ("scan", "sscan") else 2
        return answer[0], sorted(tuple(answer[1][i:i + step]) for i in range(0, len(answer[1]), step))
    if command[0] in UNORDERED or "nosort" in command:
        step = 2 if command[0] == "hgetall" else 1
        return sorted(tuple(answer[i:i + step]) for i in range(0, len(answer), step))
    return answer


def compare(frond, redis, seed, count):
    commands = Commands(seed)
    for number in range(count):
        command = commands.next()
        got, expected = [], []
        for client, answers in ((frond, got), (redis, expected)):
            client.send(*command)
            answers.append(comparable(command, client.read()))
        assert got == expected, (f"REDIS_SEED={seed}, command {number}: {command}\n"
                                 f"frond {got[0]!r}\nredis {expected[0]!r}")


def run(cwd, seed):
    if not PROGRAM:
        raise Skip("there is no redis-server here: apt-get install redis-tools")
    count = int(os.environ.get("REDIS_COMMANDS", "3000"))
    with Peer() as peer, Server(cwd, "--redis", "127.0.0.1:0", "--no-sync") as server:
        port = int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)",
                             server.read_log()).group(1))
        with Client(port) as frond, Client(peer.port) as redis:
            compare(frond, redis, seed, count)


@test
def random_commands_have_the_answers_of_redis(cwd):
    run(cwd, int(os.environ.get("REDIS_SEED", "1")))


@test
def others_do_too(cwd: pathlib.Path):
    run(cwd, int(os.environ.get("REDIS_SEED", "1")) + 1)


main()
