"""The same random commands to Debian's redis-server and to Redis's door: the same answers and events.

Named as skipped where there is no redis-server; REDIS_SEED=N repeats a run, REDIS_COMMANDS=N makes it
longer. Commands that are spoiled at random are compared, too; `make fuzz` does that for long, and
`test_redis_differential.py FROND --fuzz SECONDS` does it alone.
"""

import contextlib
import os
import sys
import tempfile
import time

from harness import equal, main, test
from redis_random import NOT_SENT, PROGRAM, Commands, Episode, Spoiler, both, comparable, shortest
from resp import Client

SEED = int(os.environ.get("REDIS_SEED", "1"))
COUNT = int(os.environ.get("REDIS_COMMANDS", "4000"))


def compare(ports, seed, count, sent):
    commands = Commands(seed)
    with contextlib.closing(Episode(ports)) as episode:
        for number in range(count):
            command = commands.next(commands.all())
            sent.add(command[0])
            different = episode.differs(command)
            assert not different, (f"REDIS_SEED={seed}, command {number}: {command}\n"
                                   f"frond {different[0]!r}\nredis {different[1]!r}")


@test
def random_commands_have_the_answers_of_redis(cwd):
    sent = set()
    with both(cwd) as ports:
        for seed in (SEED, SEED + 1):
            compare(ports, seed, COUNT, sent)
        with Client(ports[0]) as frond:
            there = {entry[0].decode() for entry in frond("command")}
    left_out = {name for names in NOT_SENT.values() for name in names.split()}
    assert left_out <= there and not left_out & sent, left_out - there | left_out & sent
    # Whoever asks for fewer commands may miss some.
    assert COUNT < 4000 or there - left_out <= sent, there - left_out - sent


class Events:
    """The messages about keys that commands bring, in order."""

    def __init__(self, port):
        self.client, self.subscriber = Client(port), Client(port)
        self.client("config", "set", "notify-keyspace-events", "AKEn")
        self.subscriber("psubscribe", "__key*")
        self.client("flushall")

    def of(self, command):
        self.client.send(*command)
        answer = comparable(command, self.client.read())
        self.client("publish", "__key: end", "")
        events = []
        while True:
            _, _, channel, message = self.subscriber.read()
            if channel == b"__key: end":
                return answer, events
            events.append((channel.decode(), message.decode()))

    def close(self):
        self.client.close()
        self.subscriber.close()


@test
def random_commands_bring_the_events_of_redis(cwd):
    with both(cwd) as ports, contextlib.closing(Events(ports[0])) as frond, \
            contextlib.closing(Events(ports[1])) as redis:
        commands = Commands(SEED)
        for number in range(COUNT // 2):
            command = commands.next(commands.data())
            got, expected = frond.of(command), redis.of(command)
            assert got == expected, (f"REDIS_SEED={SEED}, command {number}: {command}\n"
                                     f"frond {got!r}\nredis {expected!r}")


# Arguments that are wrong, or nearly so.
CORNERS = r"""
zrange l x 1 | zrange z x 1 | zrange none x y | zrange z 0 -1 limit 0 -1 | zremrangebyrank l x 1 | zrevrange l x 1
zcount z 1e400 3 | zcount z -1e-400 1 | lindex none x | lindex l x | bitcount none x | bitcount none 1 2 x | bitcount a x
bitpos a x | bitpos a 2 | bitpos a 1 x 1 bogus | bitpos a 1 0 x bogus | bitcount a 0 x bogus | bitcount a -1 -2 bogus
evalsha x y | evalsha ffffffffffffffffffffffffffffffffffffffff x | xinfo stream none bogus | xinfo stream l bogus
xrange x +1 01 | xadd none nomkstream 01-1 f v | xsetid x 1-1 maxdeletedid 9-9 bogus | lpos l 1 rank x
zadd neg 0 m | zinter 2 neg neg weights 2 -1 aggregate max withscores | pexpire a 9223370000000000000 | ttl a | expiretime a
pexpireat a 9223372036854775000 | pttl a x | set a 1 pxat 9223372036854775000 | expire a 9223372036854775 | persist a
eval return{pcall(cjson.decode,ARGV[1])} 0 - | eval return{pcall(cjson.decode,ARGV[1])} 0 [1,] | multi | blpop none 9223372036
blpop none 1e17 | blpop none inf | discard
xgroup setid s1 g 0 entriesread +inf match | xgroup setid s1 g 0 entriesread 2 entriesread 3
xgroup create s1 g 0 mkstream mkstream entriesread 2 | xgroup create s1 g 0 mkstream entriesread 2
xgroup setid s1 g 0 entriesread 1 entriesread 1 | xgroup setid s1 g 0 entriesread 1

set a 1 ex 0 | set a 1 px 9223372036854775807 | set a 1 nx xx | set a 1 ex 10 px 10 | set a 1 ex 10 keepttl
set a 1 exat -1 | set a 1 bogus | setex a 0 v | psetex a -1 v | getex a ex 0 | getex a ex 10 persist
getex a bogus | mset a | msetnx a 1 b | append a | setrange a -1 x | setrange a 536870912 x | setrange a x y
getrange a x 1 | setbit a -1 1 | setbit a 4294967296 1 | setbit a 1 2 | getbit a x | bitcount a 1
bitcount a 1 2 bogus | bitpos a 2 | bitpos a 1 0 -1 bogus | bitop nosuch d a | bitop not d a a
bitfield a get u64 0 | bitfield a get i65 0 | bitfield a set u8 x 1 | bitfield a incrby u8 0
bitfield new overflow fail incrby u2 100 9 | strlen new | rpush one q | setrange w_q 3 1
sort one by w_* get # | set w_q x | sort one by w_* | bitfield a overflow x | bitfield a get u8 #x | bitfield_ro a set u8 0 1 | incrbyfloat a nan
incrbyfloat a inf | incrbyfloat a 1e400 | incrbyfloat a 5.0e3 | incrby a 9223372036854775807
decrby a -9223372036854775808 | lcs a b len idx | lcs a l | lcs a b minmatchlen x
lcs a b idx minmatchlen 2 withmatchlen
lpos l 1 rank 0 | lpos l 1 count -1 | lpos l 1 maxlen -1 | lpos l 1 bogus 1 | linsert l bogus 1 x
lset none 0 x | lset l 99 x | lset l x y | lrem l x y | lpop l -1 | lpop l 0 | lpop none 0 | lpop l x
rpop none 1 | lmove l l bogus left | lmpop 0 l left | lmpop 2 l left | lmpop 1 l left count 0 | lmpop 1 l bogus
lmpop x l left | lmpop 1 l left count 1 count 1 | blpop l x | blpop l -1 | blpop l nan
blmove l l left bogus 0 | blmpop x 1 l left | blmpop 0 0 l left | bzmpop 0 1 z min count 0
hset h f | hincrby h f 1 | hincrby h n 9223372036854775807 | hincrby h n 1 | hincrbyfloat h f 1
hincrbyfloat h n inf | hrandfield h 1 bogus | hrandfield h x | hrandfield h -9223372036854775808
hrandfield h -4611686018427387905 withvalues | hscan h 0 count 0 | hscan h 0 bogus | hscan h x
srandmember s x | srandmember s -9223372036854775808 | spop s -1 | spop s x | sintercard 0 s
sintercard 1 s limit -1 | sintercard 1 s limit x | sintercard 1 s bogus | sintercard x s | sintercard 2 s
smove s a 1 | smove s none 99 | sinterstore d s a
zadd z nx xx 1 a | zadd z gt lt 1 a | zadd z nx gt 1 a | zadd z incr 1 a 2 b | zadd z x a | zadd z nan a
zadd z 1 | zadd z ch | zincrby z x a | zincrby z inf i | zincrby z -inf i | zrange z 0 -1 limit 0 1
zrange z 0 -1 byscore | zrange z a b byscore | zrange z a b bylex | zrange z [a [b bylex withscores
zrange z 0 -1 bylex byscore | zrange z 0 1 rev rev | zrange z (a (b byscore limit 1 | zrange z 0 -1 bogus
zrangebyscore z a b | zrangebyscore z 1 2 limit 0 | zrangebyscore z 1 2 bogus | zrangebylex z a b
zrangebylex z - + limit a b | zrangestore d z 0 -1 withscores | zcount z a b | zlexcount z a b
zremrangebylex z a b | zremrangebyscore z a b | zremrangebyrank z a b | zrank z a withscore
zmpop 0 z min | zmpop 1 z bogus | zmpop 1 z min count 0 | zmpop x z min | zpopmin z -1 | zpopmin z x
zpopmin z 0 | zpopmin z 1 2 | bzpopmin z -1 | zrandmember z x | zrandmember z -9223372036854775808
zrandmember z 1 bogus | zunion 0 z | zunion 1 z weights | zunion 1 z weights x | zunion 1 z aggregate bogus
zunion 1 z withscores bogus | zunion x z | zunion 2 z | zunionstore d 0 z | zunionstore d x z
zunionstore d 1 z withscores | zunionstore d 9223372036854775807 z | zdiff 1 z weights 1 | zdiff 1 a
zintercard 1 z limit -1 | zintercard 0 z | zintercard 1 z limit | zscan z 0 match
xadd x * f | xadd x 0-0 f v | xadd x 1-1 f v | xadd x bogus f v | xadd x maxlen -1 * f v
xadd x maxlen ~ 10 limit -1 5-5 f v | xadd x maxlen = 10 limit 1 * f v | xadd x maxlen x * f v
xadd x minid bogus * f v | xadd x nomkstream | xadd none nomkstream 1-1 f v | xadd x maxlen 1 minid 1 9-9 f v
xrange x - + count x | xrange x - + count -1 | xrange x - + bogus
xrange x (18446744073709551615-18446744073709551615 + | xrange x - (0-0 | xrange x bogus + | xread streams x
xread count x streams x 0 | xread block x streams x 0 | xread block -1 streams x 0 | xread streams x y 0
xread bogus streams x 0 | xread streams x > | xread streams x bogus | xtrim x maxlen | xtrim x maxlen -1
xtrim x maxlen 1 limit 5 | xtrim x maxlen ~ 1 limit -5 | xtrim x bogus 1 | xtrim x maxlen 1 minid 1
xdel x bogus | xsetid x bogus | xsetid none 1-1 | xsetid x 0-1 | xsetid x 1-1 entriesadded 1
xsetid x 1-1 entriesadded -1 maxdeletedid 0-0 | xsetid x 1-1 entriesadded 1 maxdeletedid 9-9
xinfo stream none | xinfo stream x bogus | xinfo stream x full count | xinfo groups x | xinfo groups none
xinfo consumers x g | xinfo stream | xinfo nosuch
xadd x 18446744073709551615-18446744073709551615 f v | xadd x 18446744073709551615-* f v | xadd x * f v
xgroup | xgroup nosuch x g | xgroup create x g | xgroup create x g bogus | xgroup create none g $ | xgroup create a g $
xgroup create x g 0 entriesread x | xgroup create x g 0 entriesread -2 | xgroup create x g 0 mkstream mkstream bogus
xgroup create x g 0 entriesread 1 mkstream | xgroup create x g 0 | xgroup create x g - | xgroup setid x g +
xgroup setid x g - entriesread 5 | xgroup setid x nog 0 | xgroup setid x g 0 mkstream | xgroup destroy x nog | xgroup destroy none g
xgroup createconsumer x nog c | xgroup createconsumer x g c | xgroup createconsumer x g c | xgroup delconsumer x g nobody
xgroup createconsumer x g | xgroup help x | xgroup destroy x g extra | xgroup create x g 0 1 2 3 4 5
xreadgroup group g | xreadgroup group g c streams x | xreadgroup group g c streams x y 0 | xreadgroup group g c streams x $
xreadgroup group g c streams none > | xreadgroup group nog c streams x > | xreadgroup group g c streams a > | xreadgroup streams x y z > > >
xreadgroup group g c count x streams x > | xreadgroup group g c block x streams x > | xreadgroup group g c block -1 streams x >
xreadgroup group g c noack bogus streams x > | xreadgroup group g c streams x bogus | xreadgroup group g c nostreams x y
xread group g c streams x 0 | xread noack streams x 0 | xreadgroup group g c noack streams x > | xreadgroup group g c streams x 0
xreadgroup group g c streams x 18446744073709551615-18446744073709551615 | multi | xreadgroup group g c block 0 streams x > | exec
eval return{pcall(redis.call,'xreadgroup','group','g','c','block','1','streams','x','>')} 0
xack x g | xack x g bogus | xack none g 1 | xack x nog bogus | xack a g 1 | xack x g 1-1 1-1
xpending x | xpending x nog | xpending none g | xpending a g | xpending x g - | xpending x g - + | xpending x g - + x
xpending x g bogus + 5 | xpending x g (18446744073709551615-18446744073709551615 + 5 | xpending x g - (0-0 5 | xpending x g idle x - + 5
xpending x g idle 5 - + | xpending x g idle 5 - + 5 c d | xpending x g - + -5 | xpending x g - + 5 nobody | xpending x g bogus 5 - + 5
xclaim x g c x 1-1 | xclaim x g c 0 1-1 idle x | xclaim x g c 0 1-1 time x | xclaim x g c 0 1-1 retrycount x
xclaim x g c 0 1-1 lastid bogus | xclaim x g c 0 1-1 bogus | xclaim x g c 0 bogus | xclaim none g c 0 1-1 | xclaim x nog c x 1-1
xclaim x g c 0 1-1 idle | xclaim a g c 0 1-1 | xclaim x g c -1 5-5 force justid | xclaim x g c 0 1-1 1-1 1-1 force | xpending x g
xclaim x g c 0 1-1 idle -9223372036854775808 | xclaim x g c 0 1-1 time 9223372036854775807 retrycount 9223372036854775807
xclaim x g c 0 1-1 justid lastid 99-99 | xinfo groups x | xautoclaim x g c 0 | xautoclaim x g c x 0 | xautoclaim x g c 0 bogus
xautoclaim x g c 0 0 count 0 | xautoclaim x g c 0 0 count x | xautoclaim x g c 0 0 count | xautoclaim x g c 0 0 bogus
xautoclaim x g c 0 (18446744073709551615-18446744073709551615 | xautoclaim none g c 0 0 | xautoclaim a g c 0 0
xautoclaim x g c 0 0 count 9223372036854775807 | xautoclaim x g c -5 - justid | xautoclaim x g c 0 0 count 576460752303423488
xinfo consumers x nog | xinfo consumers x | xinfo groups | xinfo consumers a g | xinfo stream x full count x | xinfo stream x count 1
geoadd places 13.361389 38.115556 p 15.087269 37.502669 q | geoadd places 200 10 x | geoadd places 10 86 x | geoadd places x y z
geoadd places 1 2 | geoadd places nx xx 1 2 x | geoadd places nx | geoadd places 1 2 x 3 | geoadd a 1 2 x | geoadd places 1e300 0 x
geodist places p q x | geodist places p q km x | geodist places p none | geodist none p q | geodist a p q | geodist places p q ft
geohash places p none | geohash none p | geohash places | geopos places p none | geopos a p | geopos none p | geoadd places -180 -85.05112878 edge
geoadd places 180 85.05112878 corner | geohash places edge corner | geopos places edge corner | geosearch places fromlonlat 180 85 byradius 10 km
geosearch places fromlonlat 15 37 byradius 200 | geosearch places fromlonlat 15 37 byradius 200 km bybox 1 1 km
geosearch places fromlonlat 15 37 frommember p byradius 200 km | geosearch places byradius 200 km asc | geosearch places frommember p asc
geosearch places frommember none byradius 200 km | geosearch none frommember p byradius 200 km | geosearch a frommember p byradius 200 km
geosearch places frommember p byradius -1 km | geosearch places frommember p bybox -1 1 km | geosearch places frommember p byradius x km
geosearch places frommember p bybox x 1 km | geosearch places frommember p bybox 1 x km | geosearch places frommember p byradius 1 x
geosearch places frommember p byradius 1 km count 0 | geosearch places frommember p byradius 1 km count x | geosearch places frommember p byradius 1 km any
geosearch places frommember p byradius 1 km storedist | geosearchstore d places frommember p byradius 1 km withdist
geosearchstore d none frommember p byradius 1 km | GeoSearch places byradius 1 km asc | georadius places 15 37 200 km store d withcoord
georadius places 15 37 200 km store | georadius_ro places 15 37 200 km store d | georadius none 15 37 200 km store d | georadius places 15 37 x km
georadiusbymember none p x y | georadiusbymember none p x y bogus | georadiusbymember places none 1 km | georadiusbymember places p 1 km any
georadius places 15 37 200 km count 2 any withdist withhash withcoord asc | geosearch places frommember p bybox 400 400 km withdist
geosearch none frommember p byradius 1 km | geodist none p q | zadd odd -5 a 1e30 b inf c 4503599627370496 d -inf e | geopos odd a b c d e
command getkeys georadius places 15 37 200 km store x storedist d | command getkeysandflags georadiusbymember places p 1 km store d | geohash odd a b c d e
pfadd hll | pfadd hll | pfadd hll a b | pfadd hll a b | pfcount hll | pfcount hll none | pfadd a x | pfadd l x | pfcount l | pfcount a
pfmerge hll l | pfmerge l hll | pfmerge a hll | pfmerge hll2 hll none | pfcount hll2 hll | get hll2 | setrange bad 0 HYLL | pfadd bad x
setrange bad 15 x | pfadd bad x | pfcount bad | pfmerge hll bad | pfadd | pfcount | pfmerge
expire a x | expire a 9223372036854775807 | pexpire a 9223372036854775807 | expireat a 9223372036854775807
expire a 10 nx xx | expire a 10 gt lt | expire a 10 nx gt | expire none 10 nosuch | persist none | ttl none
move a 0 | move a 16 | move a x | move a -1 | copy a a | copy a b db 99 | copy a b nosuch | rename none x
type none | scan x | scan 0 match | scan 0 count 0 | scan 0 count x | scan 18446744073709551616 | select -1
swapdb 0 99 | swapdb x 0 | flushdb x | flushall async sync | sort l by nosort get # limit 0 -1 | sort l limit 0
sort l limit a b | sort h | sort l get | sort_ro l store x | sort none store dst
object freq a | object encoding | object nosuch a | memory usage none samples x | memory usage none samples
client kill | client kill id 0 | client kill type x | client kill user nobody | client kill skipme maybe
client kill id 5 type | client list type x | client list id x | client list nosuch | client reply x
client pause x | client pause -1 | client pause 0 x | client unblock x | client unblock 99999 foo
client no-evict x | client getredir | client nosuch | config get | config set a | config set nosuch 1 | config set a b c
config set timeout x | config set timeout -1 | config resetstat x | config set notify-keyspace-events Q
latency history | latency nosuch | slowlog get x | slowlog get -2 | slowlog get 1 2 | slowlog len x
module list | command count x | command getkeys | command getkeys get a | command getkeys nosuch a
command getkeys sort a by x store b | command getkeys zunionstore d 2 a b | command list filterby aclcat
acl cat nosuch | acl genpass x | acl genpass 5000 | acl genpass 1 2 | acl nosuch | acl getuser nobody
script nosuch | script load return | script exists | script flush x | script kill | script debug no
function list | function stats | function kill | pubsub channels a b | wait -1 0 | wait 0 -1 | role x
hello 1 | hello 2 x | hello 2 setname | auth x | auth default x | auth nobody x | auth a b c | readonly
replicaof no one | echo a b | multi x | exec | discard | watch | multi | watch a | multi | select 99
object nosuch | exec | multi | eval return 0 | client id x | exec
"""


@test
def odd_arguments_have_the_answers_of_redis(cwd):
    with both(cwd) as ports, Client(ports[0]) as frond, Client(ports[1]) as redis:
        for client in (frond, redis):
            for line in ("set a 1", "rpush l 1 2 3", "hset h f v", "zadd z 1 a", "sadd s 1 2", "xadd x 1-1 f v"):
                client(*line.split())
        for line in CORNERS.replace("\n", "|").split("|"):
            if not line.strip():
                continue
            for client in (frond, redis):
                client.send(*line.split())
            got, expected = frond.read(), redis.read()
            assert got == expected, f"{line}\nfrond {got!r}\nredis {expected!r}"


@test
def spaces_before_numbers_are_taken_where_redis_takes_them(cwd):
    with both(cwd) as ports, Client(ports[0]) as frond, Client(ports[1]) as redis:
        for number in (" 1", "\t 2", "\n-3", "\v1e1", "\f0", "\r+4", " ", "1 ", "", " nan", " 1e999", " inf"):
            for command in (("rpush", "l", number, "5"), ("sort", "l"), ("del", "l"), ("zadd", "z", number, "a"),
                            ("set", "n", number), ("incr", "n"), ("incrbyfloat", "n", number)):
                for client in (frond, redis):
                    client.send(*command)
                got, expected = frond.read(), redis.read()
                assert got == expected, f"{command}\nfrond {got!r}\nredis {expected!r}"


def members(pairs):
    """An answer in Redis's protocol of version 2 that stands for a map."""
    return dict(zip(pairs[::2], pairs[1::2]))


def documented(client, name):
    """What COMMAND DOCS says but for sentences, of a command and of its subcommands by their names."""
    def of(docs):
        docs = members(docs)
        said = {key: docs.get(key) for key in (b"since", b"group", b"deprecated_since", b"arguments")}
        assert docs[b"summary"], docs
        return said, {sub: of(inner)[0] for sub, inner in members(docs.get(b"subcommands", [])).items()}

    found = client("command", "docs", name)
    return of(found[1]) if found else None


@test
def commands_are_documented_as_in_redis(cwd):
    with both(cwd) as ports, Client(ports[0]) as frond, Client(ports[1]) as redis:
        everything = members(frond("command", "docs"))
        equal(len(everything), frond("command", "count"))
        for name in everything:
            equal(frond("command", "docs", name)[1], everything[name])
            expected, mine = documented(redis, name), documented(frond, name)
            if not expected:
                assert mine[0][b"arguments"], name  # each of frond's own takes some
                continue
            equal(mine[0], expected[0])
            # What later versions have, frond may have, too.
            equal({sub: mine[1].get(sub) for sub in expected[1]}, expected[1])
        equal(frond("command", "docs", "config|get")[0], b"config|get")
        equal(frond("command", "docs", "nosuch", "config|nosuch"), [])


@test
def members_in_another_order_are_the_same_answer_whatever_the_keys_are_named(cwd):
    for name in ("withvalues", "withscores", "nosort"):
        call = ["sunion", "k", name]
        assert comparable(call, [b"a", b"b", b"c"]) == comparable(call, [b"b", b"c", b"a"]), name


# ---- Spoiled commands ----

EPISODE = 300  # commands, which are found again quickly
SKIPPED = 77  # the exit code that tests/run knows


def spoiled_episode(ports, seed):
    """None, or what differs: the commands that bring it, and both answers."""
    commands = Spoiler(seed)
    history = []
    with contextlib.closing(Episode(ports)) as episode:
        for _ in range(EPISODE):
            history.append(commands.next(commands.all()))
            different = episode.differs(history[-1])
            if different:
                break
        else:
            return None
    lines = "\n".join(f"    {command}" for command in shortest(ports, history))
    return f"seed {seed}:\n{lines}\nfrond {different[0]!r}\nredis {different[1]!r}"


@test
def spoiled_commands_have_the_answers_of_redis(cwd):
    with both(cwd) as ports:
        for seed in range(SEED, SEED + COUNT // 400):
            different = spoiled_episode(ports, seed)
            assert not different, different


def fuzz(seconds):
    """Episodes of a seed each, the first of which is random, until there is a difference or the time is over."""
    seed = int(os.environ.get("REDIS_SEED", time.time_ns() // 1000000))
    until = time.monotonic() + seconds
    if not PROGRAM:
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="frond-fuzz-") as cwd, both(cwd) as ports:
        print(f"REDIS_SEED={seed}", flush=True)
        while time.monotonic() < until:
            different = spoiled_episode(ports, seed)
            if different:
                print(different)
                sys.exit(1)
            seed += 1
    print(f"no differences until seed {seed}")


if sys.argv[2:3] == ["--fuzz"]:
    fuzz(float(sys.argv[3]))
else:
    main()
