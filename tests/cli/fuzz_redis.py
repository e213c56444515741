"""Calls of Redis's door for fuzz_doors.py: plausible ones of each command, and what makes them worse."""

import contextlib
import io
import pathlib
import re
import socket
import time

from fuzz_doors import Wrong, harvest, number_at_an_edge
from redis_server import Redis
from resp import encode

# A failure that nobody has expected below the door: its class, or the name of a status in place of a text.
STATUSES = "|".join(harvest("base/status.c", r'= "([a-z0-9_]+)"'))
INTERNAL = re.compile(rf"^(MISCONF|ERR internal|[A-Z]+ ({STATUSES})$)")
ANSWER_S = 90
STARVED_TURNS = 20  # of ANSWER_S, while the server waits for a processor
WAIT_S = 0.3  # for answers of a batch with a command that may wait for something to happen
MOST_BYTES = 4 << 20
DONE = b"the batch is answered"

# One line is one call; words in capitals are values that a random one takes the place of.
CALLS = """
append K V|bitcount K INT INT bit|bitfield K set u8 OFFSET INT get i5 #1 overflow sat incrby i64 0 INT
bitfield_ro K get u63 OFFSET
bitop and K K K|bitop not K K|bitpos K 1 INT INT byte|copy K K db 1 replace|dbsize|decr n1|decrby n1 INT
del K K|echo V|exists K K
expire K BIG nx|expireat K BIG gt|expiretime K|pexpire K BIG xx|pexpireat K BIG lt|pexpiretime K|persist K
ttl K|pttl K|type K|touch K|unlink K
get K|getbit K OFFSET|getdel K|getex K px BIG|getex K persist|getex K exat BIG|getrange K INT INT|getset K V
incr n1|incrby n1 INT|incrbyfloat n1 SCORE|lcs s1 s2 idx minmatchlen INT withmatchlen
lcs s1 s2 len|mget K K|mset K V K V|msetnx K V K V|psetex K BIG V|set K V ex BIG nx get|set K V pxat BIG
set K V keepttl xx|setbit K OFFSET 1|setex K BIG V|setnx K V|setrange K OFFSET V|strlen K|substr K INT INT
hdel h1 M M|hexists h1 M|hget h1 M|hgetall h1|hincrby h1 f1 INT|hincrbyfloat h1 f1 SCORE|hkeys h1|hlen h1
hmget h1 M M|hmset h1 M V M V|hrandfield h1 INT withvalues|hscan h1 CURSOR match PATTERN count COUNT
hset h1 M V M V|hsetnx h1 M V|hstrlen h1 M|hvals h1
hexpire h1 BIG nx fields 2 M M|hexpireat h1 BIG fields 1 M|hexpiretime h1 fields 1 M|hgetdel h1 fields 1 M
hgetex h1 px BIG fields 1 M|hpersist h1 fields 1 M|hpexpire h1 BIG gt fields 1 M|hpexpireat h1 BIG fields 1 M
hpexpiretime h1 fields 1 M|hpttl h1 fields 1 M|hsetex h1 fnx ex BIG fields 1 M V|httl h1 fields 1 M
blmove l1 l2 left right 0.01|blmpop 0.01 2 l1 l2 left count COUNT|blpop l1 l2 0.01|brpop l1 0.01
brpoplpush l1 l2 0.01|lindex l1 INT|linsert l1 before M V|llen l1|lmove l1 l2 left right
lmpop 2 l1 l2 right count COUNT|lpop l1 COUNT|lpos l1 M rank INT count COUNT maxlen COUNT|lpush l1 V V
lpushx l1 V
lrange l1 INT INT|lrem l1 INT M|lset l1 INT V|ltrim l1 INT INT|rpop l1 COUNT|rpoplpush l1 l2|rpush l1 V V
rpushx l1 V
sadd t1 M M|scard t1|sdiff t1 t2|sdiffstore t2 t1 t2|sinter t1 t2|sintercard 2 t1 t2 limit COUNT
sinterstore t2 t1 t2|sismember t1 M|smembers t1|smismember t1 M M|smove t1 t2 M|spop t1 COUNT
srandmember t1 INT|srem t1 M|sscan t1 CURSOR match PATTERN count COUNT|sunion t1 t2|sunionstore t1 t1 t2
bzmpop 0.01 2 z1 z2 min count COUNT|bzpopmax z1 z2 0.01|bzpopmin z1 0.01|zadd z1 nx ch SCORE M SCORE M
zadd z1 xx gt incr SCORE M|zcard z1|zcount z1 BOUND BOUND|zdiff 2 z1 z2 withscores|zdiffstore z2 2 z1 z2
zincrby z1 SCORE M|zinter 2 z1 z2 weights SCORE SCORE aggregate max withscores|zintercard 2 z1 z2 limit COUNT
zinterstore z2 2 z1 z2 weights SCORE SCORE aggregate sum|zlexcount z1 LEX LEX|zmpop 2 z1 z2 max count COUNT
zmscore z1 M M|zpopmax z1 COUNT|zpopmin z1 COUNT|zrandmember z1 INT withscores
zrange z1 INT INT rev withscores|zrange z1 BOUND BOUND byscore limit INT INT
zrange z1 LEX LEX bylex limit INT INT|zrangebylex z1 LEX LEX limit INT INT
zrangebyscore z1 BOUND BOUND withscores limit INT INT
zrangestore z2 z1 INT INT|zrangestore z2 z1 BOUND BOUND byscore limit INT INT|zrank z1 M|zrem z1 M
zremrangebylex z1 LEX LEX|zremrangebyrank z1 INT INT|zremrangebyscore z1 BOUND BOUND
zrevrange z1 INT INT withscores|zrevrangebylex z1 LEX LEX|zrevrangebyscore z1 BOUND BOUND limit INT INT
zrevrank z1 M|zscan z1 CURSOR match PATTERN count COUNT|zscore z1 M|zunion 2 z1 z2 aggregate min
zunionstore z2 2 z1 z2 weights SCORE SCORE
geoadd z1 ch nx SCORE SCORE M SCORE SCORE M|geodist z1 M M km|geohash z1 M M|geopos z1 M M
geosearch z1 frommember M byradius SCORE km asc count COUNT any withdist withhash withcoord
geosearch z1 fromlonlat SCORE SCORE bybox SCORE SCORE mi desc count COUNT|geosearchstore z2 z1 frommember M byradius SCORE ft storedist
georadius z1 SCORE SCORE SCORE m withdist store z2|georadius_ro z1 SCORE SCORE SCORE km withcoord|georadiusbymember z1 M SCORE km storedist z2
georadiusbymember_ro z1 M SCORE km count COUNT
pfadd K V V|pfcount K K|pfmerge K K K
xadd x1 nomkstream maxlen ~ COUNT limit COUNT ID M V|xadd x1 minid = ID * M V|xdel x1 ID ID
xinfo stream x1 full count COUNT|xinfo groups x1|xlen x1|xrange x1 ID ID count COUNT
xread count COUNT block 10 streams x1 x2 ID ID|xrevrange x1 ID ID count COUNT
xgroup create x1 g ID mkstream entriesread COUNT|xgroup createconsumer x1 g M|xgroup setid x1 g ID entriesread COUNT
xgroup delconsumer x1 g M|xgroup destroy x1 g|xgroup help|xack x1 g ID ID|xpending x1 g|xpending x1 g idle COUNT ID ID COUNT M
xreadgroup group g M count COUNT block 10 noack streams x1 x2 ID ID|xreadgroup group g M streams x1 ID
xclaim x1 g M COUNT ID ID idle COUNT retrycount COUNT force justid lastid ID|xclaim x1 g M 0 ID time BIG
xautoclaim x1 g M COUNT ID count COUNT justid|xinfo consumers x1 g
xsetid x1 ID entriesadded COUNT maxdeletedid ID|xtrim x1 maxlen = COUNT|xtrim x1 minid ~ ID limit COUNT
keys PATTERN|move K 1|object encoding K|object freq K|object help|randomkey|rename K K|renamenx K K
scan CURSOR match PATTERN count COUNT type string|select 1
sort l1 by PATTERN limit INT INT get PATTERN get # desc alpha store l2|sort_ro t1 by nosort alpha|swapdb 0 1
flushdb async|flushall sync
discard|exec|multi|unwatch|watch K K|eval SCRIPT 1 K V|eval_ro SCRIPT 0 V|evalsha SHA 0 V|evalsha_ro SHA 1 K
script load SCRIPT|script exists SHA SHA|script flush async|script kill|script help
psubscribe PATTERN|publish c1 V|pubsub channels PATTERN|pubsub numsub c1|pubsub numpat|pubsub shardchannels
pubsub shardnumsub c1|punsubscribe|spublish c1 V|ssubscribe c1|subscribe c1 c2|sunsubscribe|unsubscribe c1
acl cat string|acl deluser eve|acl dryrun eve get K|acl genpass COUNT|acl getuser eve|acl list|acl log COUNT
acl log reset|acl setuser eve on >secret ~K &c* +@all -get -@write|acl users|acl whoami|auth eve secret
client getname|client id|client info|client list type normal id 1 2|client kill id 99999 skipme yes
client no-evict on|client reply skip|client setinfo lib-name V|client setname V
client tracking on redirect 5 bcast prefix c noloop|client trackinginfo|client unblock 99999 error
client unpause|client caching yes|client getredir|client help
command count|command docs get set|command getkeys mset K V K V|command getkeysandflags zunionstore z1 2 z1 z2
command info get|command list filterby pattern PATTERN|config get PATTERN PATTERN
config set notify-keyspace-events KEA|config resetstat|config rewrite
config set slowlog-max-len COUNT slowlog-log-slower-than INT
hello 3 auth eve secret setname V|info everything|lastsave|latency histogram get set|latency latest
latency reset|latency doctor|lolwut version 5 INT INT|memory usage K samples COUNT|memory doctor|memory stats
module list|monitor|ping V|quit|readonly|replicaof no one|reset|role|save|shutdown nosave|slowlog get COUNT
slowlog reset|time|wait 0 1
json.set J PATH JSON|json.set J PATH JSON nx|json.set J $ JSON xx format string|json.get J PATH PATH indent V newline V space V
json.get J noescape PATH|json.mget J J K PATH|json.mset J PATH JSON J PATH JSON|json.merge J PATH JSON|json.del J PATH
json.forget J PATH|json.clear J PATH|json.type J PATH|json.resp J PATH|json.debug memory J PATH|json.debug help
json.numincrby J PATH SCORE|json.nummultby J PATH SCORE|json.toggle J PATH|json.strappend J PATH JSON|json.strlen J PATH
json.objkeys J PATH|json.objlen J PATH|json.arrlen J PATH|json.arrappend J PATH JSON JSON|json.arrinsert J PATH INT JSON JSON
json.arrindex J PATH JSON INT INT|json.arrpop J PATH INT|json.arrtrim J PATH INT INT|frond.at MOMENT json.get J PATH|frond.diff K MOMENT MOMENT
frond.at MOMENT get K|frond.at MOMENT zrange z1 INT INT|frond.history K COUNT|frond.history COUNT bytes COUNT|frond.history COUNT versions COUNT|cluster info|debug sleep 0
dump K|restore K 0 V|object idletime K
function list|fcall f 1 K|failover|bgsave
"""
CALLS = [call.split(" ") for line in CALLS.strip().split("\n") for call in line.split("|")]
SCRIPTS = ["return redis.call(unpack(ARGV))", "return redis.pcall(unpack(ARGV))",
    "redis.setresp(3); return redis.call(unpack(ARGV))", "return {1, {2, 'x'}, 1.7, false}",
           "return {double = 1.5}", "return {map = {a = 1}, x = 2}",
           "return cjson.encode(cjson.decode(ARGV[1]))", "return cmsgpack.unpack(ARGV[1])",
           "return struct.unpack(ARGV[1], ARGV[2])", "return struct.pack(ARGV[1], unpack(ARGV, 2))",
           "return string.rep(ARGV[1], tonumber(ARGV[2]))", "return string.format(unpack(ARGV))",
           "return bit.lshift(tonumber(ARGV[1]), tonumber(ARGV[2]))", "return {string.find(ARGV[1], ARGV[2])}",
           "return string.gsub(ARGV[1], ARGV[2], '%1')",
           "return {unpack(ARGV, tonumber(ARGV[1]), tonumber(ARGV[2]))}",
           "return redis.sha1hex(ARGV[1])", "redis.log(redis.LOG_NOTICE, ARGV[1])",
           "return tostring(ARGV[1]):rep(3):sub(tonumber(ARGV[2]) or 1)",
           "return table.concat(ARGV, ',', 1, tonumber(ARGV[1]))",
           "return redis.error_reply('FUZZ: ' .. ARGV[1])", "return redis.status_reply(ARGV[1])",
           "return redis.acl_check_cmd(unpack(ARGV))",
           "redis.replicate_commands() return redis.set_repl(redis.REPL_ALL)",
           "for i, a in ipairs(ARGV) do redis.call('rpush', KEYS[1], a) end return redis.call('lrange', KEYS[1], 0, -1)",
           "#!lua flags=no-writes\nreturn redis.call(unpack(ARGV))",
           "return math.random(tonumber(ARGV[1]), tonumber(ARGV[2]))",
           "return tonumber(ARGV[1], tonumber(ARGV[2]))",
           "return string.char(unpack(ARGV))",
           "return redis.breakpoint()"]
WORDS = harvest("door/redis/**/*.c", r'"([a-z][a-z0-9-]{1,20})"')
KEYS = ["j1", "j2", "s1", "s2", "n1", "h1", "l1", "l2", "t1", "t2", "z1", "z2", "x1", "x2", "none", ""]
MEMBERS = ["f1", "f2", "a", "b", "10", "", "x" * 70]
PATHS = ["$", ".", "$..*", "$.a", ".a", "$.a[1]", "$..x", "$.o.none", "$.a[-1:]", "$.a[0,1]", "$['o','t']", "$.a[?(@>1)]",
         "$..[?(@.x=~'^a' || @==$.n)]", "$.t", "$.b", "$.n", "$.a[2].x", "t"]
JSONS = ["1", "-1.5", "null", "true", '"text"', "[]", "{}", '{"x":[1,{"x":null}]}', "[[1,2],3]", "18446744073709551615", "{", "1e999"]
SMALL = '{"a":[1,2,{"x":"abc"}],"o":{"x":1},"t":"text","b":true,"n":2}'
LARGE = SMALL[:-1] + ',"pad":"' + "p" * 5000 + '"}'  # in leaves
SETTINGS_KEPT = {"set", "rewrite"}  # of CONFIG, by which limits of connections would change

# What has failed once: each batch is sent in every run.
FIXED = [
    [["frond.at", 0, "xinfo", "x"], ["frond.at", 0, "xinfo", "stream"], ["frond.at", 0, "xinfo", "consumers", "x1"]],
    [["eval", "return {unpack(ARGV, tonumber(ARGV[1]), tonumber(ARGV[2]))}", 0, -2147483648, 2147483647]],
    [["frond.at", 0, "object", "x"], ["frond.at", 0, "object", "encoding"], ["frond.at", 0, "xinfo"]],
]


def make_server(cwd, env):
    return Redis(cwd, env=env)


class Unreadable(Exception):
    pass


def states(pid):
    """What the threads of a process do: R runs, or waits for a processor."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            yield (task / "stat").read_text().rpartition(")")[2].split()[0]


def wants_to_run(pid):
    """Whether some thread is at work for a fifth of two seconds, and not only looks now and then."""
    seen = 0
    for _ in range(100):
        seen += "R" in states(pid)
        time.sleep(0.02)
    return seen >= 20


class Patient(io.RawIOBase):
    """
    What comes on a socket. A server that has yet to get its time from the processor, as on a busy machine, is waited
    for longer than one that rests.
    """

    def __init__(self, sock, pid):
        super().__init__()
        self.socket, self.pid = sock, pid

    def readable(self):
        return True

    def readinto(self, buffer):
        for _ in range(STARVED_TURNS):
            try:
                return self.socket.recv_into(buffer)
            except TimeoutError:
                if self.socket.gettimeout() < ANSWER_S or not wants_to_run(self.pid):
                    raise
        raise TimeoutError


class Wire:
    """A connection whose answers are read strictly."""

    def __init__(self, server):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = io.BufferedReader(Patient(self.socket, server.process.pid))

    def close(self):
        self.file.close()
        self.socket.close()

    def line(self):
        line = self.file.readline()
        if not line:
            raise EOFError
        if not line.endswith(b"\r\n"):
            raise Unreadable(line)
        return line[:1], line[1:-2]

    def exactly(self, n):
        data = self.file.read(n + 2)
        if len(data) != n + 2 or data[-2:] != b"\r\n":
            raise Unreadable(data)
        return data[:-2]

    def read(self):
        kind, rest = self.line()
        if kind in b"+-(,":
            return kind + rest
        if kind == b":" and re.fullmatch(rb"[+-]?\d+", rest):
            return int(rest)
        if kind == b"_" and not rest:
            return None
        if kind == b"#" and rest in (b"t", b"f"):
            return rest == b"t"
        if not kind or kind not in b"$=!*>~%|" or not re.fullmatch(rb"-1|\d+", rest):
            raise Unreadable(kind + rest)
        n = int(rest)
        if n < 0:
            return None
        if kind in b"$=!":
            return self.exactly(n)
        return [self.read() for _ in range(n * 2 if kind in b"%|" else n)]


class Door:
    def __init__(self, server, chance):
        self.server, self.random = server, chance
        self.wire = Wire(server)
        with server.client() as c:
            infos = c("command")
        self.may_wait = {b"wait"} | {info[0] for info in infos if "blocking" in flags_of(info)}
        known = {call[0].encode() for call in CALLS}
        self.unknown = []
        for info in infos:
            if info[0] not in known:
                self.unknown.append(info)
            self.unknown += [sub for sub in (info[9] if len(info) > 9 else [])
                             if tuple(sub[0].decode().split("|")) not in {tuple(call[:2]) for call in CALLS}]

    # ---- Data ----

    def make_data(self):
        """What the calls are about, made anew, on a connection that nothing has changed."""
        with self.server.client(timeout=ANSWER_S) as c:
            for answer in c.pipeline(
                    ["flushall"], ["script", "flush"], ["set", "s1", "abcdefgh"], ["set", "s2", "bcxdh" * 10],
                    ["set", "n1", 10], ["json.set", "j1", "$", SMALL], ["json.set", "j2", "$", LARGE],
                    ["hset", "h1", "f1", 1, "f2", "b", "a", "x" * 99], ["rpush", "l1", *"abcabc10"], ["rpush",
                    "l2", 3, 1, 2],
                    ["sadd", "t1", *range(9)], ["sadd", "t2", "a", "b", "5"], ["zadd", "z1", 1, "a", 2, "b", 2,
                    "c", "inf", "d"], ["zadd", "z2", 0, "a", 0, "b", 0, "f1"],
                    ["xadd", "x1", "1-1", "a", "b"], ["xadd", "x1", "5-0", "a", "c"], ["xadd", "x2", "*", "f",
                    "v"]):
                if isinstance(answer, Exception):
                    raise Wrong(f"what is valid is refused: {answer}")

    # ---- Arguments ----

    def leaf(self):
        r = self.random
        return r.choice([
            lambda: number_at_an_edge(r), lambda: r.choice(["nan", "inf", "-inf", "+inf", "1e400", "-0", "0.1",
            "1e-400", "0x10", " 1", "1 ", "1e5", "1.7e308", "+1", "01", "1_0", ".5", "5."]),
            lambda: "", lambda: r.choice("0123456789"), lambda: b"\0\xff\r\n" * r.randrange(3),
            lambda: r.choice(["*", "-", "+", "$", ">", "#", "(", "[", "(1", "[a", "-1-1", "1-", "*-*", "9-*",
            "~", "=", "@all", "%R~", "{x}", "\\"]),
            lambda: "x" * r.choice([100, 511, 512, 513, 1000, 10**4, 10**5]),
            lambda: r.choice(["9", "[", "(", "*", "?", "\\", "[^"]) * r.choice([20, 50, 1000]),
            lambda: r.choice(WORDS), lambda: r.choice(KEYS), lambda: r.choice(MEMBERS)])()

    def fill(self, word):
        r = self.random
        edge = lambda near: r.choice([near, near, near, number_at_an_edge(r)])
        made = {
            "K": lambda: r.choice(KEYS), "V": lambda: r.choice(["v", "", "5", "x" * 200, self.leaf()]),
            "M": lambda: r.choice(MEMBERS), "INT": lambda: edge(r.randrange(-9, 10)),
            "COUNT": lambda: edge(r.randrange(0, 9)),
            "OFFSET": lambda: r.choice([r.randrange(100), r.randrange(10**6), number_at_an_edge(r)]),
            "BIG": lambda: r.choice([10**6, number_at_an_edge(r), 2 * 10**12]),
            "SCORE": lambda: r.choice([1, "2.5", "inf", "-inf", "1e308", "nan", number_at_an_edge(r)]),
            "CURSOR": lambda: r.choice([0, number_at_an_edge(r)]),
            "BOUND": lambda: r.choice(["-inf", "+inf", "(1", "2", "nan", number_at_an_edge(r)]),
            "LEX": lambda: r.choice(["-", "+", "[a", "(b", "["]),
            "ID": lambda: r.choice(["-", "+", "0", "$", "*", "5-1", "5-*", "(1-1",
            "18446744073709551615-18446744073709551615",
            f"{abs(number_at_an_edge(r))}-{abs(number_at_an_edge(r))}"]),
            "PATTERN": lambda: r.choice(["*", "s*", "[a-z]?", "h1->*", "h1->f1", "*->", "nosort",
            "a" * 50 + "*" * 50, "[^", "\\"]), "SCRIPT": lambda: r.choice(SCRIPTS),
            "SHA": lambda: r.choice(["f" * 40, "0" * 39]),
            "J": lambda: r.choice(["j1", "j2", "j2", "j3", "s1"]),
            "PATH": lambda: r.choice([*PATHS, "$" + "".join(r.choice(["..", ".a", "[0]", "[-2:]", "[?(@", ".*", ")]", "['x'"])
                                                        for _ in range(r.randrange(6)))]),
            "JSON": lambda: r.choice(JSONS),
            "MOMENT": lambda: r.choice(["-1", "0", "now", number_at_an_edge(r), 10**12]),
        }.get(word)
        return made() if made else word

    def plausible(self):
        r = self.random
        if self.unknown and r.random() < 0.05:
            info = r.choice(self.unknown)
            arity = info[1]
            words = info[0].decode().split("|")
            return [*words, *(r.choice(KEYS + [1, 0]) for _ in range(max(0,
                abs(arity) - len(words) + (r.randrange(3) if arity < 0 else 0))))]
        return [self.fill(word) for word in r.choice(CALLS)]

    def worsen(self, call):
        r, roll = self.random, self.random.random()
        i = r.randrange(1, len(call)) if len(call) > 1 else 0
        if i == 0 or roll < 0.1:
            call.insert(r.randrange(1, len(call) + 1), self.leaf())
        elif roll < 0.6:
            call[i] = self.leaf()
        elif roll < 0.7:
            del call[i]
        elif roll < 0.8:
            call.insert(i, call[r.randrange(1, len(call))])
        elif roll < 0.87:
            call += self.random.choice(CALLS)[1:]
        elif roll < 0.9:
            call += call[1:] * min(r.choice([1, 10, 500]), MOST_BYTES // size_of(call))
        else:
            call[i] = r.choice([str(call[i])[:-1], f"{call[i]}{call[i]}", f"-{call[i]}", str(call[i]).upper(),
                f" {call[i]}"])

    def one(self):
        r = self.random
        call = self.plausible()
        for _ in range(r.choice([0, 1, 1, 1, 2, 3])):
            self.worsen(call)
        if r.random() < 0.01:
            call[0] = r.choice(WORDS)
        if r.random() < 0.15:
            keys = [r.choice(KEYS) for _ in range(r.randrange(3))]
            call = [r.choice(["eval", "eval", "eval_ro"]), r.choice(SCRIPTS[:3] + SCRIPTS),
                r.choice([len(keys), len(keys), number_at_an_edge(r)]), *keys, *call]
        if r.random() < 0.05:
            call = ["frond.at", r.choice(["-1", 0, number_at_an_edge(r)]), *call]
        return call

    def next(self):
        r = self.random
        calls = [self.one() for _ in range(r.choice([1, 1, 1, 2, 3, 8]))]
        if r.random() < 0.2:
            calls = [["multi"], *calls, r.choice([["exec"], ["exec"], ["discard"], ["ping"]])]
        if r.random() < 0.05:
            calls.insert(0, [r.choice(["hello"]), 3])
        return [call for call in calls if not self.is_left_out(call)] or [["ping"]]

    def is_left_out(self, call):
        """What would, rightly, have the server refuse or close this connection and others."""
        words = [str(arg).lower() for arg in call]
        if "pause" in words:
            return True
        if "config" in words and SETTINGS_KEPT & set(words):
            return "notify-keyspace-events" not in words and "slowlog-max-len" not in words or len(words) > 6
        return "acl" in words and "default" in words

    def fixed(self):
        return FIXED

    def text(self, calls):
        return repr(calls)

    def run(self, calls):
        """Sends them at once; returns whether one was obeyed."""
        data = b"".join(encode(call) for call in calls) + encode(["reset"]) + encode(["echo", DONE])
        if len(data) > MOST_BYTES:
            return False
        words = {str(arg).lower() for call in calls for arg in call}
        waits = any(name.decode() in words for name in self.may_wait)
        self.wire.socket.settimeout(WAIT_S if waits else ANSWER_S)
        obeyed = []
        try:
            self.wire.socket.sendall(data)
            while (answer := self.wire.read()) != DONE:
                obeyed.append(self.check(answer))
            return any(obeyed[:-1])
        except (TimeoutError, socket.timeout):
            if not waits:
                raise Wrong("there was no answer")
        except (EOFError, ConnectionError):
            # A person who deletes herself is gone before the answer to what follows.
            if not words & {"quit", "kill", "deluser", "post", "host:"}:
                raise Wrong("the connection was closed instead of an answer")
        except Unreadable as failure:
            raise Wrong(f"the answer cannot be read: {str(failure)[:2000]}")
        self.wire.close()
        self.wire = Wire(self.server)
        return any(obeyed)

    def check(self, answer):
        if isinstance(answer, list):
            return any([self.check(part) for part in answer])
        if not isinstance(answer, bytes) or not answer.startswith(b"-"):
            return True
        text = answer[1:].decode(errors="replace")
        if INTERNAL.match(text):
            raise Wrong(f"an internal error: {text}")
        return False


def size_of(call):
    return sum(len(arg) if isinstance(arg, (str, bytes)) else len(str(arg)) for arg in call) + len(call)


def flags_of(info):
    return {flag.decode() if isinstance(flag, bytes) else flag for flag in info[2]}
