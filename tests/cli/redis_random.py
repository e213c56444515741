"""Random commands for Redis's door and for redis-server, and the comparison of what both answer.

Where Redis leaves an order open (members of hashes and sets, keys), both are sorted. Every command is
made, but those that are named in NOT_SENT with the reason. The program is in the package redis-tools,
too, as redis-check-rdb: under the name that it is started by it is the server.
"""

import contextlib
import hashlib
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import time

from harness import Server, Skip
from resp import Client, Error

KEYS = [f"k{i}" for i in range(6)]
MEMBERS = [f"m{i}" for i in range(8)] + ["", "10", "-3", "a b", "x" * 70]
# Members of these have one score, so that ranges by name are the same.
LEX_KEYS = ["lex0", "lex1"]
CHANNELS = ["c0", "c1"]
# What has no order of its own. Random members are asked for by more than there are, so all of them come.
IN_PAIRS = {"hgetall", "hrandfield", "zrandmember"}
LOWER_LIMIT = "(LCS_CELLS)"  # docs/REDIS.md has it
UNORDERED = IN_PAIRS | {"hkeys", "hvals", "smembers", "sunion", "sinter", "sdiff", "keys", "srandmember",
                        "spop", "acl"}
MANY = 1000
SOON_S = 10**6
ENTRY_FIELDS = {b"length", b"last-generated-id", b"max-deleted-entry-id", b"entries-added",
                b"recorded-first-entry-id", b"groups", b"first-entry", b"last-entry", b"entries"}
# What XINFO tells of times, which are others in each.
TIMES = {b"idle", b"seen-time"}
GROUPS = ["g0", "g1", "g2"]
CONSUMERS = ["ann", "bob", ""]

NOT_SENT = {
    "Redis 7.0 has no such commands": "frond.at frond.diff frond.history hexpire hexpireat hexpiretime hgetdel hgetex "
                                      "hpersist hpexpire hpexpireat hpexpiretime hpttl hsetex httl",
    "they are of a module: test_redis_json.py":
        "json.arrappend json.arrindex json.arrinsert json.arrlen json.arrpop json.arrtrim json.clear json.debug json.del "
        "json.forget json.get json.merge json.mget json.mset json.numincrby json.nummultby json.objkeys json.objlen json.resp "
        "json.set json.strappend json.strlen json.toggle json.type",
    "the answers tell of the process": "client command info lastsave latency memory slowlog time role",
    "it would end the connection": "quit",
    "people are those of every door": "auth",
    "frond answers them with errors, docs/REDIS.md says why":
        "asking restore-asking bgrewriteaof bgsave cluster debug failover fcall fcall_ro migrate module "
        "pfdebug pfselftest psync readonly readwrite replconf replicaof "
        "save shutdown slaveof sync function",
    "payloads differ in how they are written: test_redis_rdb.py": "dump restore",
    "messages come between the answers": "monitor psubscribe punsubscribe ssubscribe subscribe sunsubscribe "
                                         "unsubscribe",
}

PROGRAM = shutil.which("redis-server") or shutil.which("redis-check-rdb")


class Peer:
    """A redis-server on a free port."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--save", "", "--bind", "127.0.0.1",
             *self.options],
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
            ["setex", k(), r.randrange(-1, 2) * 5000, v()], ["psetex", k(), 5000000, v()],
            ["set", k(), v(), r.choice(["ex", "px"]), r.choice([5000000, 0, "x"]), *self.maybe("get")],
            ["getex", k(), *r.choice([[], ["persist"], ["ex", 5000], ["exat", 33177117420], ["px", -1],
                                      ["pxat", 33177117420123], ["pxat", 5]])],
            ["set", k(), v(), *r.choice([["exat", 33177117420], ["pxat", 33177117420123], ["keepttl"]]),
             *self.maybe("get", "nx", "xx")],
            ["set", k(), v(), "px", 5000000, *self.maybe("keepttl", "get", "xx", "get")],
            ["lcs", k(), k(), "idx", "minmatchlen", r.randrange(-1, 4), *self.maybe("withmatchlen")],
            ["bitop", r.choice(["and", "or", "xor", "not"]), k(), "none", *self.some(k)],
            ["setrange", k(), r.choice([0, 3, 5000]), "y" * r.randrange(20)],
            ["bitfield", k(), "overflow", "fail", "incrby", "u63", r.randrange(9), v(), "set", "i1", "#3", -1],
            ["bitpos", k(), r.randrange(2), self.index()], ["bitcount", k(), 0, -1, r.choice(["bit", "byte"])],
            ["substr", k(), self.index(), self.index()],
            ["bitfield_ro", k(), "get", "i7", r.randrange(60), "get", "u3", "#4", *self.maybe("set")],
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
            ["unlink", *self.some(k)], ["randomkey"], ["object", "refcount", "none"],
            ["expire", k(), r.randrange(1000, 9000), *self.maybe("nx", "xx", "gt", "lt")],
            ["pexpire", k(), r.randrange(10**6, 9 * 10**6), *self.maybe("nx", "xx", "gt", "lt")],
            ["expire", k(), -1], ["persist", k()], ["expiretime", k()], ["pexpiretime", k()],
            ["expireat", k(), 33177117420], ["pexpireat", k(), 5], ["pttl", k()],
            ["dbsize"], ["keys", r.choice(["*", "k[1-3]", "?2", "x"])], ["ttl", k()],
            ["sort_ro", k(), "alpha", *self.maybe("desc"), "limit", self.index(), self.index()],
            ["sort", k(), "alpha", *self.maybe("desc"), "limit", self.index(), self.index()],
            ["sort", k(), "alpha", "store", k()], ["sort", k(), "by", "nosort", "get", "#", "alpha"],
            # With ALPHA those of one weight would have no order.
            ["sort", k(), "by", r.choice(["k*", "k*->m1", "*"]), "get", "#", "get", r.choice(["k*", "k*->m2", "*"]),
             *self.maybe("asc", "desc")],
            ["sort", k(), *self.maybe("desc"), "limit", 0, 3, *self.maybe("store")],
            ["sort", k(), "get", "k*", "alpha", "store", k()],
            ["expireat", k(), 33177117420 + r.randrange(-5, 5), *self.maybe("nx", "xx", "gt", "lt")],
            ["pexpireat", k(), 33177117420000, *self.maybe("nx", "xx", "gt", "lt")],
            ["expire", k(), 5000, r.choice(["gt", "lt", "nx", "xx"])],
        ]

    def databases(self):
        db = lambda: self.random.choice([0, 0, 1, 2, "x", 16])
        return [
            ["swapdb", db(), db()], ["swapdb", 0, 1],
            [self.random.choice(["flushdb", "flushall"]), *self.maybe("sync", "x")], ["select", self.random.randrange(2)],
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
            ["hset", k(), m()], ["hmset", k(), *self.pairs(m, v)], ["hmset", k(), m(), v(), m()],
            ["hrandfield", k(), MANY, *self.maybe("withvalues")], ["hrandfield", k(), 0],
        ]

    def sets(self):
        k, m = self.key, self.member
        return [
            ["sadd", k(), *self.some(m)], ["srem", k(), *self.some(m)], ["sismember", k(), m()],
            ["smismember", k(), *self.some(m)], ["smembers", k()], ["scard", k()],
            ["srandmember", k(), MANY], ["spop", k(), self.random.choice([MANY, MANY, 0, -1])],
            ["smove", k(), k(), m()], ["sunion", *self.some(k)], ["sinter", *self.some(k)],
            ["sdiff", *self.some(k)], ["sunionstore", k(), *self.some(k)],
            ["sinterstore", k(), *self.some(k)], ["sdiffstore", k(), *self.some(k)],
            ["sintercard", 2, k(), k(), "limit", self.random.randrange(-1, 3)],
            ["sinterstore", k(), k(), k(), "none"], ["sdiff", "none", *self.some(k)],
            ["sintercard", 3, k(), k(), k()], ["sadd", k(), *[self.random.randrange(99) for _ in range(40)]],
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
            ["lmpop", 2, k(), k(), self.side(), "count", i()], ["rpop", k()], ["lpop", k(), i()],
            ["rpush", k(), *[self.member() for _ in range(30)]], ["lpos", k(), m(), "count", 0],
            ["lpos", k(), m(), "rank", -1, "maxlen", 3],
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
            ["zrandmember", k(), MANY, *self.maybe("withscores")],
            ["zdiff", 2, k(), k()], ["zintercard", 2, k(), k(), "limit", i()],
            ["zunion", 3, k(), k(), k(), "weights", 1, s(), 0.5, "aggregate", r.choice(["sum", "min", "max", "x"])],
            ["zinter", 2, k(), k(), "aggregate", "max", "weights", 2, -1, "withscores"],
            ["zdiff", 3, k(), k(), k(), "withscores"], ["zmpop", 1, k(), r.choice(["min", "max"])],
            ["zrangebyscore", k(), b(), b(), "limit", i(), i(), *self.maybe("withscores")],
            ["zrevrangebyscore", k(), b(), b(), "limit", i(), i()], ["zrevrange", k(), i(), i(), "withscores"],
            ["zrangestore", k(), k(), b(), b(), "byscore", *self.maybe("rev"), "limit", 0, i()],
            ["zrangestore", k(), k(), i(), i(), "rev"], ["zrank", k(), m()],
            ["zadd", k(), "xx", r.choice(["gt", "lt"]), "ch", "incr", s(), m()],
            ["zadd", k(), *[part for n in range(40) for part in (n % 7, f"z{n}")]],
        ]

    def names(self):
        """Sorted sets by the names of members."""
        k, m, b = (lambda: self.random.choice(LEX_KEYS)), self.member, self.name_bound
        return [
            ["zadd", k(), *[part for _ in range(3) for part in (0, m())]],
            ["zadd", k(), 0, m()], ["zlexcount", k(), b(), b()], ["zrangebylex", k(), b(), b()],
            ["zrevrangebylex", k(), b(), b(), "limit", self.index(), self.index()],
            ["zrange", k(), b(), b(), "bylex", *self.maybe("rev")], ["zremrangebylex", k(), b(), b()],
            ["zrangestore", k(), k(), b(), b(), "bylex", "limit", 0, 5], ["zrank", k(), m()],
        ]

    def waits(self):
        """What does not wait, or not for long."""
        k, r = self.key, self.random
        end = lambda: r.choice([0.01, 0.01, 0.01, -1, "x"])
        count = lambda: ["count", self.index()]
        return [
            ["blpop", *self.some(k), end()], ["brpop", *self.some(k), end()],
            ["blmove", k(), k(), self.side(), self.side(), end()], ["brpoplpush", k(), k(), end()],
            ["blmpop", end(), 2, k(), k(), self.side(), *count()], ["bzpopmin", *self.some(k), end()],
            ["bzpopmax", *self.some(k), end()],
            ["bzmpop", end(), 2, k(), k(), r.choice(["min", "max"]), *count()],
            ["xread", "block", 10, "streams", k(), self.id()],
            ["xreadgroup", "group", r.choice(GROUPS), "ann", "block", 10, "streams", k(), ">"],
        ]

    def transactions(self):
        return [["multi"], ["multi"], ["exec"], ["exec"], ["exec"], ["discard"],
                ["watch", *self.some(self.key)], ["unwatch"]]

    def connection(self):
        r, m = self.random, self.member
        return [
            ["ping", *self.some(m)], ["ping"], ["echo", m()], ["wait", 0, 0], ["wait", "x", -1],
            ["publish", r.choice(CHANNELS), m()], ["spublish", r.choice(CHANNELS), m()],
            ["pubsub", "channels", *self.maybe("c*")], ["pubsub", "numsub", *CHANNELS],
            ["pubsub", "shardchannels"], ["pubsub", "shardnumsub", "c0"], ["pubsub", "numpat"],
            ["pubsub", "x"], ["acl", "whoami"], ["acl", "cat", "string"], ["config", "get", "maxmemory-policy"],
            ["config", "get", "list-max-listpack-size"], ["config", "set", "x", 1], ["config", "x"],
            ["config", "set", "hll-sparse-max-bytes", r.choice([0, 30, 3000])],
            ["hello", r.choice([2, 3, 4, "x"])], ["reset"], ["no such command", m()],
            ["lolwut", *self.maybe("version", r.choice([7, 9, "x"]))],
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
        text = self.random.choice(texts)
        sha = hashlib.sha1(text.encode()).hexdigest()
        keyed = "redis.call('set', KEYS[1], ARGV[1]); redis.call('rename', KEYS[1], ARGV[2]); " \
                "return redis.call('get', ARGV[2])"
        return [["eval", keyed, 1, self.key(), self.value(), self.key()],
                ["eval", "return redis.pcall('lpush', KEYS[2], KEYS[1])", 2, self.key(), self.key()],
                [self.random.choice(["eval", "eval", "eval_ro"]), text, 0, *command],
                [self.random.choice(["eval", "eval_ro"]), text, 0, *command],
                [self.random.choice(["evalsha", "evalsha_ro"]), sha, 0, *command],
                ["script", *self.random.choice([["load", text], ["exists", sha, "x"], ["flush"]])]]

    def id(self):
        return self.random.choice(["-", "+", "0", "$", "5", "5-1", "7-3", "(5-1", "9-18446744073709551615",
                                   f"{self.random.randrange(9)}-{self.random.randrange(4)}", "x"])

    def streams(self):
        k, m, i = self.key, self.member, self.id
        r = self.random
        # Those that the server makes of its clock are other ones in each.
        new = [f"{r.randrange(12)}-{r.choice('*01234')}" for _ in range(2)]
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
            ["xinfo", "stream", k()], ["xinfo", "x", k()], ["xinfo", "groups", k()],
            ["xadd", k(), "nomkstream", "maxlen", r.randrange(3), new[0], m(), m()],
            ["xadd", k(), "minid", "=", i(), new[1], m(), m()],
            ["xtrim", k(), "minid", r.choice(["=", "~"]), i(), *self.maybe("limit", "0")],
            ["xrange", k(), i(), i(), "count", r.randrange(4)], ["xread", "streams", k(), k(), k(), i(), "0", "$"],
            ["xdel", k(), i()],
        ]

    def geo(self):
        """Each member has a place of its own, so that no two are as far away as each other."""
        r, k, m = self.random, self.key, lambda: f"p{r.randrange(12)}"
        unit = lambda: r.choice(["m", "km", "ft", "mi", "KM", "x"])

        def place():
            return [f"{r.uniform(-181, 181):.{r.randrange(8)}f}", f"{r.uniform(-86, 86):.{r.randrange(8)}f}"]

        def near():
            return [f"{r.uniform(13, 16):.6f}", f"{r.uniform(37, 39):.6f}"]

        def added():
            return [part for _ in range(r.randrange(1, 4)) for part in (*r.choice([place, near, near])(), m())]

        def around():
            center = r.choice([["frommember", m()], ["fromlonlat", *near()], ["fromlonlat", *place()]])
            length = lambda: r.choice([0, 1, 200, 3000.5, 10**r.randrange(8), -1])
            shape = r.choice([["byradius", length(), unit()], ["bybox", length(), length(), unit()]])
            return [*center, *shape, *self.maybe("asc"), *r.choice([[], [], ["count", r.randrange(5)],
                                                                    ["count", r.randrange(1, 5), "any"]])]

        radius = lambda: [r.choice([100, 200000, 1e7, 0.5]), unit(), *self.maybe("withdist", "withcoord", "withhash"),
                          *r.choice([[], ["desc"], ["asc", "count", 3]])]
        store = lambda: r.choice([[], ["store", k()], ["storedist", k()]])
        return [
            ["geoadd", k(), *self.maybe("ch", "nx", "xx"), *added()], ["geoadd", k(), *added()], ["geoadd", k(), *added()],
            ["geodist", k(), m(), m(), *r.choice([[], [unit()]])], ["geohash", k(), *self.some(m)],
            ["geopos", k(), *self.some(m)], ["zscore", k(), m()], ["zrange", k(), 0, -1, "withscores"],
            ["geosearch", k(), *around(), *self.maybe("withdist", "withcoord", "withhash")],
            ["geosearch", k(), *around(), *self.maybe("withdist", "withcoord", "withhash")],
            ["geosearchstore", k(), k(), *around(), *self.maybe("storedist")],
            ["georadius", k(), *r.choice([place, near])(), *radius(), *store()],
            ["georadius_ro", k(), *near(), *radius(), *self.maybe("store")],
            ["georadiusbymember", k(), m(), *radius(), *store()], ["georadiusbymember_ro", k(), m(), *radius()],
        ]

    def hyperloglogs(self):
        """PFCOUNT of one key leaves what it has counted in Redis's value, and nothing here: it is of a copy."""
        r, k, m = self.random, self.key, self.member
        many = lambda: [f"{r.randrange(10**6)}" for _ in range(r.choice([1, 3, 300, 3000]))]
        return [
            ["pfadd", k(), *many()], ["pfadd", k(), *many()], ["pfadd", k(), *self.some(m)], ["pfadd", k()],
            ["pfcount", k(), "none"], ["pfcount", *self.some(k), k()], ["pfcount", "none"],
            ["pfmerge", k(), *self.some(k)], ["pfmerge", k()], ["get", k()], ["strlen", k()],
            ["setrange", k(), r.choice([4, 5, 15, 16, 17, 20, 100]), r.choice(["\x7f", "\x01", "x"])],
        ]

    def groups(self):
        k, i, r = self.key, self.id, self.random
        g, c = (lambda: r.choice(GROUPS)), (lambda: r.choice(CONSUMERS))
        # Between one call and the next milliseconds pass, so idle times are 0 or far away.
        idle = lambda: r.choice([0, 0, 0, -1, 10**7, "x"])
        options = [["idle", r.choice([10**8, 0, -5])], ["time", r.choice([5, 10**17, -1])],
                   ["retrycount", r.randrange(-1, 9)], ["force"], ["justid"], ["lastid", i()]]
        return [
            ["xgroup", "create", k(), g(), r.choice([i(), "0", "$"]),
             *r.choice([[], ["mkstream"], ["entriesread", r.randrange(-2, 5)], ["mkstream", "entriesread", 2]])],
            ["xgroup", "create", k(), g(), "0", "mkstream"], ["xgroup", "createconsumer", k(), g(), c()],
            ["xgroup", "setid", k(), g(), i(), *r.choice([[], ["entriesread", r.randrange(-2, 5)]])],
            [*r.choice([["xgroup", "destroy", k(), g()], ["xgroup", "delconsumer", k(), g(), c()]])],
            ["xadd", k(), f"{r.randrange(12)}-{r.choice('*01234')}", "f", "v"],
            ["xadd", k(), f"{r.randrange(12)}-{r.choice('*01234')}", "f", "v"],
            *[["xreadgroup", "group", g(), c(), *r.choice([[], ["count", r.randrange(4)]]), *self.maybe("noack"),
               "streams", k(), r.choice([">", ">", ">", i()])] for _ in range(4)],
            ["xreadgroup", "group", g(), c(), "streams", k(), k(), ">", r.choice([">", "0"])],
            ["xack", k(), g(), *self.some(i)], ["xack", k(), g(), *self.some(lambda: f"{r.randrange(9)}-{r.randrange(4)}")],
            ["xpending", k(), g()],
            ["xpending", k(), g(), *r.choice([[], ["idle", idle()]]), i(), i(), r.randrange(-1, 5), *r.choice([[], [c()]])],
            ["xpending", k(), g(), "-", "+", 10, *r.choice([[], [c()]])],
            ["xclaim", k(), g(), c(), idle(), *self.some(i), *[part for o in options if r.random() < 0.2 for part in o]],
            ["xclaim", k(), g(), c(), 0, *self.some(lambda: f"{r.randrange(9)}-{r.randrange(4)}"), *self.maybe("force", "justid")],
            ["xautoclaim", k(), g(), c(), idle(), r.choice([i(), "0", "-"]), *r.choice([[], ["count", r.randrange(4)]]),
             *self.maybe("justid")],
            ["xinfo", "groups", k()], ["xinfo", "consumers", k(), g()],
            ["xinfo", "stream", k(), "full", *r.choice([[], ["count", r.randrange(-1, 4)]])],
            ["xdel", k(), f"{r.randrange(9)}-{r.randrange(4)}"], ["copy", k(), k(), *self.maybe("replace")],
        ]

    def data(self):
        return [self.strings, self.keys, self.hashes, self.sets, self.lists, self.zsets, self.names,
                self.scripts, self.streams, self.groups, self.groups, self.geo, self.hyperloglogs, self.databases, self.scans, self.waits]

    def all(self):
        return [*self.data(), self.transactions, self.connection]

    def next(self, kinds):
        return [str(arg) for arg in self.random.choice(self.random.choice(kinds)())]


def of_time(command, answer):
    """A time that counts from now: soon, or exactly."""
    if command[0].startswith("p"):
        answer = answer // 1000
    if command[0].endswith("ttl"):
        return "soon" if 0 < answer < SOON_S else "late" if answer > 0 else answer
    return "soon" if 0 < answer < time.time() + SOON_S else answer


def pairs_of(answer):
    if isinstance(answer, dict):
        return answer.items()
    return [(answer[i], answer[i + 1]) for i in range(0, len(answer), 2)]


def info_of(command, answer):
    """What XINFO tells, without times and what one server alone can tell."""
    if not answer or isinstance(answer[0] if isinstance(answer, list) else "", str):
        return answer
    if command[1].lower() != "stream":
        return [[(key, value) for key, value in pairs_of(one) if key not in TIMES] for one in answer]
    found = [(key, value) for key, value in pairs_of(answer) if key in ENTRY_FIELDS]
    return [(key, [full_of(group) for group in value] if key == b"groups" and isinstance(value, list) else value)
            for key, value in found]


def full_of(told):
    """A group or a consumer of XINFO STREAM FULL: the time of a pending entry is the last but one of it."""
    told = {key: value for key, value in pairs_of(told) if key not in TIMES}
    told[b"pending"] = [[*entry[:-2], entry[-1]] for entry in told[b"pending"]]
    if b"consumers" in told:
        told[b"consumers"] = [full_of(consumer) for consumer in told[b"consumers"]]
    return told


def comparable(command, answer):
    name = command[0].lower()
    if isinstance(answer, Error):
        return str(answer)
    if name in ("ttl", "pttl", "expiretime", "pexpiretime"):
        return of_time(command, answer) if isinstance(answer, int) else answer
    if name == "randomkey":
        return answer is None or isinstance(answer, str) or "some key"
    if not isinstance(answer, (list, dict)):
        return answer
    if name == "hello":
        return sorted(key for key, _ in pairs_of(answer))
    if name == "xinfo":
        return info_of(command, answer)
    if name == "xpending" and answer and isinstance(answer[0], list):
        return [[entry, consumer, idle // 10**7, times] for entry, consumer, idle, times in answer]
    if name.endswith("scan"):
        step = 1 if name in ("scan", "sscan") else 2
        return answer[0], sorted(tuple(answer[1][i:i + step]) for i in range(0, len(answer[1]), step))
    if name in UNORDERED or "nosort" in command:
        if isinstance(answer, dict):
            return sorted(answer.items())
        if answer and isinstance(answer[0], list):
            return sorted(map(tuple, answer))
        # Elsewhere the word is a key.
        in_pairs = (name == "hgetall" or name == "hrandfield" and "withvalues" in command
                    or name.startswith("z") and "withscores" in command)
        return sorted(pairs_of(answer) if in_pairs else answer)
    return answer


def allowing_limits(got, expected):
    """What frond has answered; where it refuses by a limit that is lower than redis's, what that says."""
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        return [allowing_limits(*both) for both in zip(got, expected)]
    return expected if isinstance(got, (str, Error)) and str(got).endswith(LOWER_LIMIT) else got


class Asked:
    """
    A connection, what MULTI has queued on it, whether it watches something, and whether redis may take
    that for changed though it is as it was: a key without a value, or one that LTRIM has left whole.
    """

    def __init__(self, client):
        self.client, self.queued, self.watches, self.may_be_same = client, None, False, False

    def ask(self, command):
        if command[0] == "watch" and self.queued is None:
            self.may_be_same |= any(not self.client("exists", key) for key in command[1:])
        self.may_be_same |= self.watches and command[0] == "ltrim"
        self.client.send(*command)
        answer = self.client.read()
        if command[0] == "exec" and isinstance(answer, list):
            shown = [comparable(*one) for one in zip(self.queued, answer)]
        else:
            shown = comparable(command, answer)
        if command[0] == "watch":
            self.watches = True
        elif command[0] == "reset" or (command[0] == "unwatch" and self.queued is None) or (
                command[0] in ("exec", "discard") and self.queued is not None):
            self.watches = self.may_be_same = False
        if command[0] in ("exec", "discard", "reset"):
            self.queued = None
        elif command[0] == "multi" and answer == "OK":
            self.queued = []
        elif answer == "QUEUED":
            self.queued.append(command)
        return shown


@contextlib.contextmanager
def both(cwd):
    """The ports of a frond and of a redis-server."""
    if not PROGRAM:
        raise Skip("there is no redis-server here: apt-get install redis-tools")
    with Peer() as peer, Server(cwd, "--redis", "127.0.0.1:0", "--no-sync") as server:
        yield int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)",
                            server.read_log()).group(1)), peer.port


# ---- Spoiled commands ----

# What clients may send where a number, an option or nothing is expected.
NUMBERS = ["0", "-0", "1", "-1", "+1", " 1", "1 ", "01", "1.5", "1e3", "0x10", "1_0", "", "-", "inf", "-inf", "+inf",
           "(inf", "(1", "( 1", "nan", "1e400", "1e-400", "-1e-400", "0.1", "3.0", "123456789012345678", "99999999",
           "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967296", "9007199254740993",
           "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
           "9223372036854775", "-9223372036854775", "9223372036854776", "18446744073709551615",
           "18446744073709551616", "1" + "0" * 40, "x"]
OPTIONS = ["nx", "xx", "gt", "lt", "ch", "incr", "get", "keepttl", "persist", "withscores", "withvalues", "limit", "rev",
           "byscore", "bylex", "count", "store", "asc", "desc", "alpha", "by", "weights", "aggregate", "sum", "rank",
           "maxlen", "minid", "~", "=", "idx", "len", "replace", "db", "bit", "byte", "overflow", "sat", "match",
           "left", "right", "before", "ex", "px", "nosuch"]
# Lists of kinds of commands (class Commands) that are not spoiled: they would wait, or end in pages of another size.
WHOLE = {"waits", "transactions", "connection", "scans", "names", "databases"}
# Numbers that would be memory: a value of so many bytes.
SIZES = {"setrange", "setbit", "bitfield", "bitfield_ro"}
SIZE_LEAST, SIZE_MOST = 10**6, 10**10
# Any of the members, as chance has it.
DRAWN = {"srandmember", "hrandfield", "zrandmember", "spop", "randomkey"}
# Times that are near: what expires meanwhile differs between two servers.
TIMED = {"expire", "pexpire", "expireat", "pexpireat", "set", "setex", "psetex", "getex"}
NEAR = 10**8
# How long an entry has been pending is compared with such a number.
IDLE = {"xclaim", "xautoclaim", "xpending"}
# What stores scores: of -0 Redis keeps the sign in large sorted sets only.
SCORED = {"zadd", "zincrby", "zunionstore", "zinterstore"}
BY_NAME = {"bylex", "zrangebylex", "zrevrangebylex", "zlexcount", "zremrangebylex"}


def is_number(text, least, most):
    try:
        return least < int(text) < most
    except ValueError:
        return False


def is_fit(command):
    """False for what takes too much memory, or is answered by chance or by the clock."""
    name, words = command[0].lower(), {arg.lower() for arg in command}
    if name in SIZES and any(is_number(arg.lstrip("#"), SIZE_LEAST, SIZE_MOST) for arg in command[1:]):
        return False
    if name in DRAWN or {"*", "~"} & words or "object" == name:
        return False
    if name == "pfcount" and len(command) == 2:
        return False
    if name in IDLE and any(is_number(arg, 4, NEAR) for arg in command[3:]):
        return False
    if name in ("sort", "sort_ro") and any(word == "by" and "*" not in pattern.replace("->*", "")
                                           for word, pattern in zip(command[1:], command[2:])):
        return False  # nothing is sorted
    if name in SCORED and {"-0", "-1e-400"} & words:
        return False
    if name == "lpos" and "-9223372036854775808" in command:
        return False
    if name in TIMED and any(is_number(arg, 0, NEAR) for arg in command[2:]):
        return False
    if name == "set" and {"exat", "pxat"} & words:
        return False  # a time that has passed: when the key is removed is open
    if name in ("eval", "eval_ro", "evalsha", "evalsha_ro", "script"):
        return "scan" not in words and not DRAWN & words and is_fit(command[3:]) if len(command) > 3 else True
    # Names count only among members of one score.
    return not (words & BY_NAME) or set(command[1:2]) <= set(LEX_KEYS)


class Spoiler(Commands):
    """Commands, some of which are changed so that they are wrong, or at a limit."""

    def spoil(self, command):
        r = self.random
        command = list(command)
        for _ in range(r.choice([1, 1, 1, 2, 3])):
            at = r.randrange(1, len(command)) if len(command) > 1 else 0
            how = r.randrange(9)
            if how < 4 and at:
                command[at] = r.choice(NUMBERS)
            elif how == 4 and at:
                del command[at]
            elif how == 5:
                command.insert(at + 1, command[at] if r.random() < 0.5 else r.choice(NUMBERS))
            elif how == 6:
                command[len(command) if r.random() < 0.7 else at + 1:] += [r.choice(OPTIONS), *self.maybe(r.choice(NUMBERS))]
            elif how == 7 and at:
                other = r.randrange(1, len(command))
                command[at], command[other] = command[other], command[at]
            elif how == 8:
                command[at] = command[at].swapcase()
        return command

    def next(self, kinds):
        while True:
            kind = self.random.choice(kinds)
            command = [str(arg) for arg in self.random.choice(kind())]
            if "~" in command:
                continue  # whole nodes go, which are others than Redis's
            if kind.__name__ in WHOLE or self.random.random() < 0.4:
                return command
            command = self.spoil(command)
            if is_fit(command):
                return command


class Episode:
    """A history on both servers, from nothing on."""

    def __init__(self, ports):
        self.clients = [Client(port) for port in ports]
        self.asked = [Asked(client) for client in self.clients]
        for client in self.clients:
            client("flushall")
            client("script", "flush")

    def close(self):
        for client in self.clients:
            client.close()

    def differs(self, command):
        """What both have answered, if that is not the same; None otherwise."""
        if command[0] == "swapdb" and self.asked[0].watches:
            return None  # Redis lets EXEC fail after any two of them, frond after one
        returns = command[0] == "exec" and self.asked[0].may_be_same
        got, expected = [one.ask(command) for one in self.asked]
        if returns and expected is None and isinstance(got, list):
            # To frond the keys are as they were.
            for one in self.asked:
                one.ask(["flushall"])
                one.ask(["select", "0"])
            return None
        return None if allowing_limits(got, expected) == expected else (got, expected)


def fails(ports, history):
    """True if the last command of the history, and none before it, is answered differently."""
    with contextlib.closing(Episode(ports)) as episode:
        for number, command in enumerate(history):
            if episode.differs(command):
                return number == len(history) - 1
    return False


def shortest(ports, history, tries=200):
    """A part of the history that differs at its end, too, found by leaving out more and more at once."""
    step = len(history) // 2
    while step and tries > 0:
        at = 0
        while at + step < len(history) and tries > 0:
            shorter = history[:at] + history[at + step:]
            tries -= 1
            if fails(ports, shorter):
                history = shorter
            else:
                at += step
        step //= 2
    return history
