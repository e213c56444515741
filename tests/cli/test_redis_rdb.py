"""DUMP and RESTORE, and files of Redis: frond load --rdb.

What a redis-server writes, and what it makes of what frond writes, is compared where there is one, and
named as skipped otherwise.
"""

import contextlib
import os
import pathlib
import struct
import time

from harness import Skip, contains, main, ok, run, test
from redis_random import PROGRAM, Commands, Peer
from redis_server import Redis
from resp import Client


def crc64(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95ac9329ac4bc9b5 if crc & 1 else 0)
    return crc


def payload(value, version=10):
    """A payload of a type's code and a value, with version and checksum."""
    signed = value + struct.pack("<H", version)
    return signed + struct.pack("<Q", crc64(signed))


def text(s):
    return bytes([len(s)]) + s


def equal(got, expected, about=None):
    assert got == expected, f"{about}: got {got!r:.2000}\nexpected {expected!r:.2000}"


def fails(*args, code=1, **kwargs):
    """What a command says that fails."""
    result = run(*args, **kwargs)
    assert result.returncode == code, f"{args}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stderr


def state(c, key):
    """All that a key has, in one order."""
    kind = c("TYPE", key)
    read = {
        "string": lambda: c("GET", key),
        "list": lambda: c("LRANGE", key, "0", "-1"),
        "set": lambda: sorted(c("SMEMBERS", key)),
        "hash": lambda: sorted(zip(*[iter(c("HGETALL", key))] * 2)),
        "zset": lambda: c("ZRANGE", key, "0", "-1", "WITHSCORES"),
        "stream": lambda: stream_state(c, key),
    }
    return kind, read[kind]()


def stream_state(c, key):
    def plain(pairs):
        return dict(zip(pairs[::2], pairs[1::2]))

    info = plain(c("XINFO", "STREAM", key, "FULL", "COUNT", "0"))
    groups = []
    for group in map(plain, info[b"groups"]):
        consumers = [{name: value for name, value in plain(consumer).items() if name != b"active-time"}
                     for consumer in group[b"consumers"]]
        groups.append({**group, b"consumers": consumers})
    left_out = (b"groups", b"radix-tree-keys", b"radix-tree-nodes")
    return {**{name: value for name, value in info.items() if name not in left_out}, b"groups": groups}


def fill(c):
    """Keys of all types, in all forms that Redis writes them in."""
    c("SET", "string", "hello")
    c("SET", "empty", "")
    c("SET", "long", "abcdefgh" * 5000)
    c("SET", "binary", bytes(range(256)))
    for n in (0, -1, 127, -129, 40000, -2**31, 2**31, 2**63 - 1):
        c("SET", f"n{n}", n)
    c("SET", "later", "v", "PX", "5000000")
    c("RPUSH", "list", "a", "-5", "70000", "x" * 200, "9223372036854775807", "4095", "-4097", "8388607", "")
    c("RPUSH", "list-long", *["y" * 3000 for _ in range(30)], "z" * 70000)
    c("SADD", "ints", "1", "-2", "70000", "5000000000")
    c("SADD", "set", *[f"m{i}" for i in range(1000)])
    c("SADD", "few", "a", "b", "1")
    c("HSET", "hash", "f", "v", "g", "12", "h", "")
    c("HSET", "hash-long", *[f"{kind}{i}" * (i + 1) for i in range(200) for kind in "fv"])
    c("ZADD", "zset", "1", "a", "-2.5", "b", "inf", "c", "-inf", "d", "1e300", "e", "0.1", "f")
    c("ZADD", "zset-long", *[x for i in range(300) for x in (i / 7, f"m{i}" * 20)])
    for i in range(1, 251):
        c("XADD", "stream", f"{i}-1", "f", f"v{i}", "n", i)
    c("XADD", "stream", "300-0", "other", "x" * 5000)
    c("XDEL", "stream", "7-1", "299-0")
    c("XGROUP", "CREATE", "stream", "g", "0")
    c("XGROUP", "CREATE", "stream", "unread", "50-1")
    c("XREADGROUP", "GROUP", "g", "ann", "COUNT", "30", "STREAMS", "stream", ">")
    c("XREADGROUP", "GROUP", "g", "bob", "COUNT", "3", "STREAMS", "stream", ">")
    c("XCLAIM", "stream", "g", "bob", "0", "5-1", "6-1")
    c("XACK", "stream", "g", "1-1")
    c("XDEL", "stream", "9-1")
    c("XGROUP", "CREATECONSUMER", "stream", "g", "idle")
    c("XGROUP", "CREATE", "stream-empty", "g", "$", "MKSTREAM")
    # The last entry of a container is one that was deleted.
    for i in (1, 2):
        c("XADD", "stream-deleted", f"{i}-1", "f", "v")
    c("XDEL", "stream-deleted", "2-1")
    c("PFADD", "hll", *[f"e{i}" for i in range(100)])
    c("GEOADD", "places", "13.361389", "38.115556", "Palermo")


def redis_server(*options):
    if not PROGRAM:
        raise Skip("no redis-server")
    return Peer(*options)


@test
def a_payload_is_restored_as_it_was(cwd):
    with Redis(cwd) as server, server.client() as c:
        fill(c)
        for key in sorted(c("KEYS", "*")):
            dumped = c("DUMP", key)
            equal(c("RESTORE", b"copy of " + key, "0", dumped), "OK")
            equal(state(c, b"copy of " + key), state(c, key), key)
            equal(c("PTTL", b"copy of " + key), -1)
            # The same bytes, since the order is the same.
            equal(c("DUMP", b"copy of " + key), dumped, key)
        equal(c("DUMP", "none"), None)
        for key in c("KEYS", "*"):
            equal(c("RESTORE", key, "0", c("DUMP", key), "REPLACE"), "OK")
        equal(c("LRANGE", "list", "0", "2"), [b"a", b"-5", b"70000"])
    ok("verify", cwd=cwd)


@test
def restore_keeps_to_its_options(cwd):
    with Redis(cwd) as server, server.client() as c:
        hello = payload(b"\x00" + text(b"hello"))
        equal(c("RESTORE", "k", "0", hello), "OK")
        equal(c.error("RESTORE", "k", "0", hello), "BUSYKEY Target key name already exists.")
        equal(c("RESTORE", "k", "50000", hello, "REPLACE"), "OK")
        assert 40000 < c("PTTL", "k") <= 50000
        equal(c("RESTORE", "k", "33177117420000", hello, "ABSTTL", "REPLACE"), "OK")
        equal(c("PEXPIRETIME", "k"), 33177117420000)
        equal(c("RESTORE", "k", "1000", hello, "ABSTTL", "REPLACE"), "OK")
        equal(c("EXISTS", "k"), 0)
        equal(c("RESTORE", "k", "0", hello, "IDLETIME", "5"), "OK")
        equal(c("RESTORE", "k", "0", hello, "FREQ", "5", "replace"), "OK")
        for options, error in {
                ("-1", hello): "ERR Invalid TTL value, must be >= 0",
                ("x", hello): "ERR value is not an integer or out of range",
                ("9223372036854775807", hello): "ERR Invalid TTL value, must be >= 0",
                ("0", hello, "IDLETIME", "-1"): "ERR Invalid IDLETIME value, must be >= 0",
                ("0", hello, "FREQ", "256"): "ERR Invalid FREQ value, must be >= 0 and <= 255",
                ("0", hello, "FREQ", "1", "IDLETIME", "1"): "ERR syntax error",
                ("0", hello, "BOGUS"): "ERR syntax error",
                ("0", hello[:-1] + b"x"): "ERR DUMP payload version or checksum are wrong",
                ("0", hello[:9]): "ERR DUMP payload version or checksum are wrong",
                ("0", ""): "ERR DUMP payload version or checksum are wrong",
                ("0", payload(b"\x00" + text(b"hello"), version=13)): "ERR DUMP payload version or checksum are wrong",
                ("0", payload(b"\x00\x09hello")): "ERR Bad data format",
                ("0", payload(b"\x00" + text(b"hello") + b"more")): "ERR Bad data format",
                ("0", payload(b"")): "ERR Bad data format",
                ("0", payload(b"\x63\x00")): "ERR Bad data format",
                ("0", payload(b"\x02\x00")): "ERR Bad data format",
                ("0", payload(b"\x07\x05\x00")): "ERR Bad data format",
        }.items():
            equal(c.error("RESTORE", "other", *options), error, options)
        equal(c("KEYS", "*"), [b"k"])
        # What is damaged further behind changes nothing either.
        c("RPUSH", "l", "kept")
        damaged = payload(b"\x01\x03" + text(b"a") + text(b"b") + b"\x05c")
        equal(c.error("RESTORE", "l", "0", damaged, "REPLACE"), "ERR Bad data format")
        equal(c("LRANGE", "l", "0", "-1"), [b"kept"])
        c("MULTI")
        c("RESTORE", "m", "0", payload(b"\x01\x01" + text(b"a")))
        c("RPUSH", "m", "b")
        c("DUMP", "m")
        equal(c("EXEC"), ["OK", 2, payload(b"\x01\x02" + text(b"a") + text(b"b"))])


@test
def fields_that_expire_come_back(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("HSET", "h", "f", "v", "g", "w", "past", "x")
        c("HPEXPIREAT", "h", "33177117420000", "FIELDS", "1", "g")
        dumped = c("DUMP", "h")
        equal(struct.unpack("<H", dumped[-10:-8])[0], 12)
        equal(c("RESTORE", "copy", "0", dumped), "OK")
        equal(c("HPEXPIRETIME", "copy", "FIELDS", "3", "f", "g", "past"), [-1, 33177117420000, -1])
        # Times in a container, from before now on; those that are over are left out.
        over = payload(b"\x18" + struct.pack("<Q", 1000) + b"\x02\x01" + text(b"f") + text(b"v") + b"\x00" +
                       text(b"g") + text(b"w"), version=12)
        equal(c("RESTORE", "over", "0", over), "OK")
        equal(c("HGETALL", "over"), [b"g", b"w"])
        gone = payload(b"\x18" + struct.pack("<Q", 1000) + b"\x01\x01" + text(b"f") + text(b"v"), version=12)
        equal(c("RESTORE", "over", "0", gone, "REPLACE"), "OK")
        equal(c("EXISTS", "over"), 0)


@test
def a_restored_list_wakes_those_who_wait(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as waiting:
        waiting.send("BLPOP", "l", "0")
        while b"blocked_clients:1" not in c("INFO", "clients"):
            time.sleep(0.01)
        equal(c("RESTORE", "l", "0", payload(b"\x01\x02" + text(b"a") + text(b"b"))), "OK")
        equal(waiting.read(), [b"l", b"a"])
        equal(c("LRANGE", "l", "0", "-1"), [b"b"])


@test
def a_long_string_is_restored_in_several_transactions(cwd):
    with Redis(cwd) as server, server.client() as c:
        value = os.urandom(1024) * 20 * 1024
        c("SET", "long", value)
        dumped = c("DUMP", "long")
        equal(c("RESTORE", "copy", "0", dumped), "OK")
        equal(c("GET", "copy") == value, True)


@test
def redis_takes_what_frond_dumps_and_the_other_way_round(cwd):
    with redis_server() as redis, Client(redis.port) as theirs, Redis(cwd) as server, server.client() as ours:
        fill(theirs)
        fill(ours)
        theirs("CONFIG", "SET", "sanitize-dump-payload", "yes")
        for key in sorted(theirs("KEYS", "*")):
            for here, there in ((theirs, ours), (ours, theirs)):
                equal(there("RESTORE", b"from " + key, "0", here("DUMP", key), "REPLACE"), "OK", key)
                equal(state(there, b"from " + key), state(here, key), key)
        # All forms in which Redis may have each type.
        for setting in ("list-max-listpack-size", "set-max-intset-entries", "hash-max-listpack-entries",
                        "zset-max-listpack-entries", "stream-node-max-entries"):
            theirs("CONFIG", "SET", setting, "1")
        theirs("CONFIG", "SET", "rdbcompression", "no")
        theirs("FLUSHALL")
        fill(theirs)
        for key in sorted(theirs("KEYS", "*")):
            equal(ours("RESTORE", b"again " + key, "0", theirs("DUMP", key)), "OK", key)
            equal(state(ours, b"again " + key), state(theirs, key), key)


@test
def random_keys_of_redis_are_restored(cwd):
    with redis_server() as redis, Client(redis.port) as theirs, Redis(cwd) as server, server.client() as ours:
        for seed in range(3):
            commands = Commands(seed)
            theirs("FLUSHALL")
            for _ in range(1500):
                with contextlib.suppress(AssertionError):
                    theirs.send(*commands.next(commands.data()))
                    theirs.read()
            for key in theirs("KEYS", "*"):
                equal(ours("RESTORE", key, "0", theirs("DUMP", key), "REPLACE"), "OK", (seed, key))
                equal(state(ours, key), state(theirs, key), (seed, key))


# ---- Files ----


@test
def a_file_of_redis_is_loaded_whole(cwd):
    path = pathlib.Path(cwd, "dump.rdb")
    with redis_server("--dir", str(cwd)) as redis, Client(redis.port) as theirs:
        fill(theirs)
        theirs("SELECT", "3")
        theirs("SET", "elsewhere", "v")
        theirs("HSET", "many", *[x for i in range(30000) for x in (f"field{i}", f"value{i}")])
        theirs("RPUSH", "many-elements", *range(30000))
        theirs("SET", "large", "0123456789" * 200000)
        theirs("SET", "gone", "v", "PX", "1")
        time.sleep(0.01)
        equal(theirs("SAVE"), "OK")
        ok("load", "--rdb", path, cwd=cwd)
        with Redis(cwd) as server, server.client() as ours:
            for db in (0, 3):
                theirs("SELECT", db)
                ours("SELECT", db)
                keys = sorted(theirs("KEYS", "*"))
                equal(sorted(ours("KEYS", "*")), keys)
                for key in keys:
                    equal(state(ours, key), state(theirs, key), key)
                    equal(ours("PEXPIRETIME", key), theirs("PEXPIRETIME", key), key)
    equal(ok("load", "--rdb", path, "--quiet", cwd=cwd).stdout, "")
    ok("verify", cwd=cwd)


def library(name, *functions, then=""):
    """The code of a library whose functions return their own names."""
    return f"#!lua name={name}\n" + "".join(
        f"redis.register_function{{function_name='{f}', callback=function(keys) {then} return '{f}' end, "
        f"description='of {name}', flags={{'allow-oom'}}}}\n" for f in functions)


def listed(c):
    """What libraries there are, by their names: the engine, the functions, the code."""
    libraries = [dict(zip(lib[::2], lib[1::2])) for lib in c("FUNCTION", "LIST", "WITHCODE")]
    return {lib[b"library_name"]: (lib[b"engine"], sorted(lib[b"functions"]), lib[b"library_code"]) for lib in libraries}


@test
def functions_of_a_file_run_after_it_was_loaded(cwd):
    path = pathlib.Path(cwd, "dump.rdb")
    long = library("long", *[f"long{i}" for i in range(300)])  # Redis compresses it
    with redis_server("--dir", str(cwd)) as redis, Client(redis.port) as theirs:
        for code in (library("one", "f", "g", then="redis.call('INCR', keys[1])"), library("two", "h"), long):
            theirs("FUNCTION", "LOAD", code)
        theirs("SET", "count", "5")
        equal(theirs("SAVE"), "OK")
        with Redis(cwd):
            pass  # there is a store from now on
        contains(fails("load", "--rdb", path, "--no-create", cwd=cwd), "there is no database redis:functions; nothing was loaded")
        contains(ok("load", "--rdb", path, cwd=cwd).stdout, "1 keys loaded")
        with Redis(cwd) as server, server.client() as ours:
            equal(listed(ours), listed(theirs))
            equal([ours("FCALL", "f", 1, "count"), ours("FCALL", "g", 1, "count"), ours("FCALL", "LONG299", 0)],
                  [b"f", b"g", b"long299"])
            equal(ours("GET", "count"), b"7")
            ours("FUNCTION", "DELETE", "two")
            ours("FUNCTION", "LOAD", library("mine", "own"))
        # Functions move between libraries that are loaded together; what the file does not have stays.
        theirs("FUNCTION", "FLUSH")
        for code in (library("one", "h", "new"), library("two", "f")):
            theirs("FUNCTION", "LOAD", code)
        equal(theirs("SAVE"), "OK")
        contains(ok("load", "--rdb", path, cwd=cwd).stdout, "2 libraries of functions")
        with Redis(cwd) as server, server.client() as ours:
            equal(sorted(listed(ours)), [b"long", b"mine", b"one", b"two"])
            equal([ours("FCALL", name, 0) for name in ("f", "h", "new", "own")], [b"f", b"h", b"new", b"own"])
            equal(ours.error("FCALL", "g", 0), "ERR Function not found")
        # One of another library has the name of one that stays: nothing is loaded.
        theirs("FUNCTION", "LOAD", library("three", "own"))
        theirs("SET", "count", "9")
        equal(theirs("SAVE"), "OK")
        contains(fails("load", "--rdb", path, cwd=cwd), "Function own already exists; nothing was loaded")
    with Redis(cwd) as server, server.client() as ours:
        equal(sorted(listed(ours)), [b"long", b"mine", b"one", b"two"])
        equal(ours("GET", "count"), b"5")
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def a_library_that_fails_is_named(cwd):
    path = pathlib.Path(cwd, "dump.rdb")
    for code, why in ((library("bad", "f") + "error('no')", 'the library of functions "bad": Error registering functions: '),
                      ("redis.register_function('f', function() end)", "Missing library metadata")):
        code = code.encode()
        content = b"REDIS0010\xf5" + struct.pack(">BI", 0x80, len(code)) + code + b"\x00\x01a\x01b\xff"
        path.write_bytes(content + bytes(8))
        told = fails("load", "--rdb", path, cwd=cwd)
        contains(told, why)
        contains(told, "nothing was loaded")
    content = b"REDIS0010\xf5\x20#!lua"
    path.write_bytes(content + b"\xff" + bytes(8))
    contains(fails("load", "--rdb", path, cwd=cwd), "nothing was loaded")


FILE = (b"REDIS0010\xfe\x00\x00\x01a\x01b\xfc" + struct.pack("<Q", 33177117420000) + b"\x00\x01k\xc0\x07" +
        b"\xfd" + struct.pack("<I", 1000) + b"\x00\x03old\x01x" + b"\xfe\x05\x02\x01s\x02\x01a\xc0\x05\xff")


@test
def a_file_is_checked_before_it_is_loaded(cwd):
    path = pathlib.Path(cwd, "dump.rdb")
    whole = FILE + struct.pack("<Q", crc64(FILE))

    def refuse(content, reason):
        path.write_bytes(content)
        contains(fails("load", "--rdb", path, cwd=cwd), reason)

    refuse(whole[:-20], "its checksum is wrong: it is damaged, or not all of it is there; nothing was loaded")
    refuse(whole.replace(b"\x01b", b"\x01c"), "its checksum is wrong")
    refuse(b"", "it does not begin as files of Redis do")
    refuse(b"REDIS0013" + FILE[9:] + bytes(8), "it has version 13 of the format; up to 12 are known")
    refuse(FILE.replace(b"\xfe\x05", b"\xfe\x10") + bytes(8), "it has a database 16")
    refuse(FILE.replace(b"\x02\x01s\x02", b"\x02\x01s\x09") + bytes(8), "nothing was loaded")
    contains(fails("load", "--rdb", "none", cwd=cwd), "cannot open none")
    contains(fails("load", "--rdb", path, "redis:0", cwd=cwd, code=2), "with --rdb go --store")
    path.write_bytes(whole)
    told = ok("load", "--rdb", path, "--batch", "1", cwd=cwd).stdout
    contains(told, "3 keys loaded")
    contains(told, "1 had expired")
    with Redis(cwd) as server, server.client() as c:
        equal([c("GET", "a"), c("GET", "k"), c("PEXPIRETIME", "k"), c("EXISTS", "old")],
              [b"b", b"7", 33177117420000, 0])
        c("SELECT", "5")
        equal(sorted(c("SMEMBERS", "s")), [b"5", b"a"])


main()
