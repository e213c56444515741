"""Streams, as clients see them."""

import re
import signal

from harness import contains, equal, main, ok, run, test
from redis_server import Redis, later


@test
def entries_come_in_the_order_of_their_ids(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c("XADD", "s", "5-1", "a", "1"), b"5-1")
        equal(c("XADD", "s", "5-*", "b", "2"), b"5-2")
        equal(c("XADD", "s", "7", "c", "3", "d", "4"), b"7-0")
        contains(c.error("XADD", "s", "6-0", "x", "y"), "equal or smaller than the target stream top item")
        contains(c.error("XADD", "none", "0-0", "x", "y"), "must be greater than 0-0")
        contains(c.error("XADD", "s", "8", "x"), "wrong number of arguments for 'xadd' command")
        assert re.fullmatch(rb"\d{13}-0", c("XADD", "s", "*", "e", "5"))
        equal(c("XLEN", "s"), 4)
        equal(c("XRANGE", "s", "-", "7"),
              [[b"5-1", [b"a", b"1"]], [b"5-2", [b"b", b"2"]], [b"7-0", [b"c", b"3", b"d", b"4"]]])
        equal(c("XRANGE", "s", "(5-1", "+", "COUNT", "1"), [[b"5-2", [b"b", b"2"]]])
        equal([e[0] for e in c("XREVRANGE", "s", "(7-0", "-")], [b"5-2", b"5-1"])
        equal(c("XREAD", "COUNT", "1", "STREAMS", "s", "none", "5-1", "0"),
              [[b"s", [[b"5-2", [b"b", b"2"]]]]])
        equal(c("XREAD", "STREAMS", "s", "$"), None)
        equal([c("TYPE", "s"), c("OBJECT", "ENCODING", "s"), c("DBSIZE")], ["stream", b"stream", 1])
        contains(c.error("LPUSH", "s", "x"), "WRONGTYPE")
        equal(c("HELLO", "3")[b"proto"], 3)
        equal(c("XREAD", "STREAMS", "s", "5-2"), {b"s": c("XRANGE", "s", "7", "+")})


@test
def entries_are_deleted_and_trimmed(cwd):
    with Redis(cwd) as server, server.client() as c:
        c.pipeline(*[("XADD", "s", f"{i}-0", "n", i) for i in range(1, 1001)])
        equal(c("XDEL", "s", "1000", "1", "5000"), 2)
        equal(c("XTRIM", "s", "MINID", "11"), 9)
        equal(c("XTRIM", "s", "MAXLEN", "~", "950"), 0)
        equal(c("XTRIM", "s", "MAXLEN", "~", "650"), 289)
        equal(c("XTRIM", "s", "MAXLEN", "~", "0", "LIMIT", "150"), 100)
        equal(c("XTRIM", "s", "MAXLEN", "=", "590"), 10)
        equal(c("CONFIG", "SET", "stream-node-max-entries", "20"), "OK")
        equal(c("XTRIM", "s", "MAXLEN", "~", "575"), 10)
        equal(c("XTRIM", "s", "MINID", "~", "441"), 20)
        equal(c("CONFIG", "SET", "stream-node-max-entries", "100"), "OK")
        contains(c.error("XINFO", "HELP", "x"), "wrong number of arguments for 'xinfo|help'")
        equal(c("XTRIM", "s", "MAXLEN", "100"), 460)
        equal(c("XRANGE", "s", "-", "+", "COUNT", "1")[0][0], b"900-0")
        c("XADD", "s", "MAXLEN", "=", "2", "2000-0", "n", "last")
        equal(c("XLEN", "s"), 2)
        info = c("XINFO", "STREAM", "s")
        info = dict(zip(info[::2], info[1::2]))
        equal([info[k] for k in (b"length", b"last-generated-id", b"max-deleted-entry-id",
                                 b"entries-added", b"first-entry", b"groups")],
              [2, b"2000-0", b"1000-0", 1001, [b"999-0", [b"n", b"999"]], 0])
        equal(c("XTRIM", "s", "MAXLEN", "0"), 2)
        equal([c("XLEN", "s"), c("EXISTS", "s")], [0, 1])
        contains(c.error("XADD", "s", "1999-0", "a", "b"), "equal or smaller")
        equal(c("XSETID", "s", "3000-5"), "OK")
        equal(c("XADD", "s", "3000-*", "a", "b"), b"3000-6")
        # The last block goes whole, however few entries it has.
        c.pipeline(*[("XADD", "few", f"{i}-0", "n", i) for i in range(1, 251)])
        equal(c("XTRIM", "few", "MAXLEN", "~", "1"), 200)
        equal(c("XTRIM", "few", "MAXLEN", "~", "0", "LIMIT", "49"), 0)
        equal(c("XTRIM", "few", "MINID", "~", "250"), 0)
        equal(c("XTRIM", "few", "MINID", "~", "251"), 50)
        c.pipeline(*[("XADD", "few", f"{i}-0", "n", i) for i in range(300, 303)])
        equal(c("XTRIM", "few", "MAXLEN", "~", "0"), 3)
        equal([c("COPY", "s", "t"), c("RENAME", "s", "u"), c("XRANGE", "t", "-", "+")],
              [1, "OK", [[b"3000-6", [b"a", b"b"]]]])
        equal(c("XADD", "t", "3000-*", "c", "d"), b"3000-7")
        equal([c("XLEN", "u"), c("DEL", "u"), c("XLEN", "u")], [1, 1, 0])
        contains(c.error("XADD", "t", "*", "long", "x" * 8000000), "TIMED_ELEMENT_BYTES")
        server.stop(signal.SIGKILL)
    contains(ok("verify", cwd=cwd).stdout, "0 findings")
    with Redis(cwd) as server, server.client() as c:
        equal(c("XRANGE", "t", "-", "+"), [[b"3000-6", [b"a", b"b"]], [b"3000-7", [b"c", b"d"]]])


@test
def all_who_wait_for_a_stream_get_what_comes(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("XADD", "s", "1-0", "a", "b")
        waiting = [server.client() for _ in range(5)]
        for number, one in enumerate(waiting, 1):
            # The first waits for what never comes, and stands before the others.
            one.send("XREAD", "BLOCK", "0", "STREAMS", "none", "s", "$", "99" if number == 1 else "$")
            while b"blocked_clients:%d\r\n" % number not in c("INFO", "clients"):
                pass
        c("XADD", "s", "2-0", "c", "d")
        for one in waiting[1:]:
            equal(one.read(), [[b"s", [[b"2-0", [b"c", b"d"]]]]])
        c("EVAL", "return redis.call('XADD', KEYS[1], '100-0', 'e', 'f')", "1", "s")
        equal(waiting[0].read(), [[b"s", [[b"100-0", [b"e", b"f"]]]]])
        equal(c("XREAD", "BLOCK", "10", "STREAMS", "s", "$"), None)
        equal(c.pipeline(("MULTI",), ("XREAD", "BLOCK", "0", "STREAMS", "s", "$"), ("EXEC",))[2], [None])
        contains(c.error("EVAL", "return redis.call('XREAD', 'BLOCK', 0, 'STREAMS', KEYS[1], '$')", "1", "s"),
                 "xread command is not allowed with BLOCK option from scripts")
        for one in waiting:
            one.close()


@test
def a_dump_and_a_move_take_streams_along(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("XADD", "events", "5-1", "a", "1")
        c("XADD", "events", "5-2", "b", "2")
        c("XDEL", "events", "5-2")
        c("XADD", "empty", "7-0", "a", "1")
        c("XTRIM", "empty", "MAXLEN", "0")
        c("EXPIRE", "empty", "1000")
        for n in range(1, 2501):
            c("XADD", "long", f"{n}-1", "n", n, b"\xff", "")
    ok("move", "--from", "embedded:./data", "--to", "embedded:moved", "redis:0", cwd=cwd)
    text = ok("dump", "redis:0", "--store", "embedded:moved", "--quiet", cwd=cwd).stdout
    assert text.count('"more":true') == 2
    target = ("--store", "embedded:loaded")
    for _ in range(2):  # the second load replaces what is there
        ok("load", "redis:0", "-", *target, cwd=cwd, stdin=text)
        equal(ok("dump", "redis:0", "--quiet", *target, cwd=cwd).stdout, text)
    for name in ("moved", "loaded"):
        contains(ok("verify", "--store", f"embedded:{name}", cwd=cwd).stdout, " 0 findings")
        with Redis(cwd, "--store", f"embedded:{name}") as server, server.client() as c:
            equal(c("XRANGE", "events", "-", "+"), [[b"5-1", [b"a", b"1"]]])
            contains(c.error("XADD", "events", "5-2", "c", "3"), "equal or smaller")
            equal(c("XADD", "events", "5-*", "c", "3"), b"5-3")
            equal([c("XLEN", "empty"), c("XLEN", "long")], [0, 2500])
            assert 900 < c("TTL", "empty") <= 1000
            equal(c("XREVRANGE", "long", "+", "-", "COUNT", "1"),
                  [[b"2500-1", [b"n", b"2500", b"\xff", b""]]])
            contains(c.error("XADD", "empty", "7-0", "a", "1"), "equal or smaller")


@test
def a_load_refuses_entries_that_are_not_in_their_order(cwd):
    header = '{"frond":"redis","format":1,"history_seconds":0}\n'
    line = '{"key":"k","type":"stream","last_ms":9,"members":[[5,1,"a","b"],[5,1,"a","b"]]}\n'
    contains(run("load", "redis:1", "-", cwd=cwd, stdin=header + line).stderr,
             "not in the order of their ids")
    line = '{"key":"k","type":"stream","last_ms":4,"members":[[5,1,"a","b"]]}\n'
    contains(run("load", "redis:1", "-", cwd=cwd, stdin=header + line).stderr,
             "behind its last id")


LONG = "n" * 5000  # a name that is cut in keys


def fill_groups(c):
    """A stream with two groups, one of long names, and something pending for each consumer."""
    for n in range(1, 7):
        c("XADD", "s", f"{n}-0", "n", n)
    c("XGROUP", "CREATE", "s", "g", "0")
    c("XGROUP", "CREATE", "s", LONG, "2", "ENTRIESREAD", "2")
    c("XREADGROUP", "GROUP", "g", "ann", "COUNT", "2", "STREAMS", "s", ">")
    c("XREADGROUP", "GROUP", "g", "bob", "COUNT", "2", "STREAMS", "s", ">")
    c("XREADGROUP", "GROUP", LONG, LONG, "COUNT", "1", "STREAMS", "s", ">")
    c("XREADGROUP", "GROUP", LONG, b"\xff", "COUNT", "1", "STREAMS", "s", ">")
    c("XGROUP", "CREATECONSUMER", "s", "g", "idle")
    c("XACK", "s", "g", "1-0")
    c("XDEL", "s", "3-0")


def told(c, key="s"):
    """What a stream's groups are, without the times that go on."""
    pending = {group: [[e[0], e[1], e[3]] for e in c("XPENDING", key, group, "-", "+", "100")]
               for group in ("g", LONG)}
    return c("XINFO", "GROUPS", key), pending, c("XINFO", "STREAM", key, "FULL", "COUNT", "0")[-1]


@test
def groups_are_stored_copied_and_moved_with_their_stream(cwd):
    with Redis(cwd) as server, server.client() as c:
        fill_groups(c)
        before = told(c)
        equal(c("XPENDING", "s", "g"), [3, b"2-0", b"4-0", [[b"ann", b"1"], [b"bob", b"2"]]])
        equal(before[1][LONG], [[b"3-0", LONG.encode(), 1], [b"4-0", b"\xff", 1]])
        equal([c("COPY", "s", "t"), c("XACK", "t", "g", "2-0", "4-0"), c("RENAME", "s", "u")], [1, 2, "OK"])
        equal(told(c, "u"), before)
        equal(c("XPENDING", "t", "g"), [1, b"3-0", b"3-0", [[b"bob", b"1"]]])
        equal([c("MOVE", "u", "1"), c("SELECT", "1"), told(c, "u") == before], [1, "OK", True])
        equal(c("XGROUP", "DELCONSUMER", "u", LONG, LONG), 1)
        equal(c("XPENDING", "u", LONG), [1, b"4-0", b"4-0", [[b"\xff", b"1"]]])
        # What a removed group had is not another one's of that name.
        equal([c("XGROUP", "DESTROY", "u", "g"), c("XGROUP", "CREATE", "u", "g", "$")], [1, "OK"])
        equal(c("XPENDING", "u", "g"), [0, None, None, None])
        c("COPY", "u", "v")
        equal([c("XACK", "u", "g", "2-0"), c("XINFO", "CONSUMERS", "u", "g")], [0, []])
        contains(c.error("XGROUP", "CREATE", "u", "x" * 60001, "0"), "TIMED_GROUP_NAME_BYTES")
        server.stop(signal.SIGKILL)
    contains(ok("verify", cwd=cwd).stdout, "0 findings")
    drawn = ok("inspect", "redis:0", cwd=cwd).stdout
    contains(drawn, "group 'g' -> 4-0, 4 entries read")
    contains(drawn, "pending 3-0 -> 'bob', 1 times")
    contains(drawn, "consumer 'idle' -> seen ")


@test
def a_dump_and_a_move_take_groups_along(cwd):
    with Redis(cwd) as server, server.client() as c:
        fill_groups(c)
        c("XGROUP", "CREATE", "many", "g", "$", "MKSTREAM")
        c.pipeline(*[("XGROUP", "CREATECONSUMER", "many", "g", f"c{n}") for n in range(2500)])
        c.pipeline(*[("XADD", "many", f"{n}-0", "f", "v") for n in range(1, 2502)])
        for count in (1500, 1001):
            c("XREADGROUP", "GROUP", "g", "c5", "COUNT", count, "STREAMS", "many", ">")
        before, many = told(c), c("XINFO", "STREAM", "many", "FULL", "COUNT", "0")
    ok("move", "--from", "embedded:./data", "--to", "embedded:moved", "redis:0", cwd=cwd)
    text = ok("dump", "redis:0", "--store", "embedded:moved", "--quiet", cwd=cwd).stdout
    target = ("--store", "embedded:loaded")
    for _ in range(2):
        ok("load", "redis:0", "-", *target, cwd=cwd, stdin=text)
        equal(ok("dump", "redis:0", "--quiet", *target, cwd=cwd).stdout, text)
    for name in ("moved", "loaded"):
        contains(ok("verify", "--store", f"embedded:{name}", cwd=cwd).stdout, " 0 findings")
        with Redis(cwd, "--store", f"embedded:{name}") as server, server.client() as c:
            equal(told(c), before)
            equal(c("XINFO", "STREAM", "many", "FULL", "COUNT", "0"), many)
    line = '{"key":"k","type":"stream","more":true,"group":"g","pending":[[1,1,"nobody",5,1]]}\n'
    contains(run("load", "redis:1", "-", cwd=cwd, stdin=text.split("\n")[0] + "\n" + line).stderr,
             "a consumer that the group does not have")


@test
def the_past_has_groups_that_were_removed(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("FROND.HISTORY", "3600")
        fill_groups(c)
        times = []
        for change in (("XACK", "s", "g", "2-0"), ("XGROUP", "DESTROY", "s", "g"),
                       ("XGROUP", "CREATE", "s", "g", "0"), ("DEL", "s")):
            times.append((later(c), c("XPENDING", "s", "g") if "CREATE" not in change else None))
            c(*change)
        for at, pending in times:
            if pending:
                equal(c("FROND.AT", at, "XPENDING", "s", "g"), pending)
            else:
                contains(c.error("FROND.AT", at, "XPENDING", "s", "g"), "NOGROUP")
        c("FROND.HISTORY", "0")
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


def blocked(c, count):
    while b"blocked_clients:%d\r\n" % count not in c("INFO", "clients"):
        pass


def wait_in(server, c, group, name, *more):
    """A client that waits in the group."""
    one = server.client()
    count = int(re.search(rb"blocked_clients:(\d+)", c("INFO", "clients"))[1])
    one.send("XREADGROUP", "GROUP", group, name, "BLOCK", "0", "STREAMS", "s", *more, ">", *[">" for _ in more])
    blocked(c, count + 1)
    return one


@test
def who_waits_in_a_group_gets_what_nobody_else_of_it_gets(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        c("XGROUP", "CREATE", "s", "h", "$")
        ann, bob, eve = [wait_in(server, c, group, name) for group, name in
                         (("g", "ann"), ("g", "bob"), ("h", "eve"))]
        reader = server.client()
        reader.send("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
        blocked(c, 4)
        for number, waits in ((1, ann), (2, bob)):
            c("XADD", "s", f"{number}-0", "n", number)
            entry = [[b"s", [[b"%d-0" % number, [b"n", b"%d" % number]]]]]
            equal(waits.read(), entry)
            for one in (eve, reader) if number == 1 else ():
                equal(one.read(), entry)
        equal(c("XPENDING", "s", "g")[3], [[b"ann", b"1"], [b"bob", b"1"]])
        # In the same pipeline it is theirs before the next command looks.
        again = wait_in(server, c, "g", "ann")
        equal(c.pipeline(("XADD", "s", "3-0", "n", "3"),
                         ("XREADGROUP", "GROUP", "g", "bob", "STREAMS", "s", ">"))[1], None)
        equal(again.read()[0][1][0][0], b"3-0")
        equal(c.pipeline(("MULTI",), ("XREADGROUP", "GROUP", "g", "x", "BLOCK", "0", "STREAMS", "s", ">"),
                         ("EXEC",))[2], [None])
        for one in (ann, bob, eve, reader, again):
            one.close()


@test
def who_waits_in_a_group_is_told_that_it_is_gone(cwd):
    gone, unblocked = "NOGROUP the consumer group this client was blocked on no longer exists", \
        "UNBLOCKED the stream key no longer exists"
    ways = [([("XGROUP", "DESTROY", "s", "g")], gone), ([("DEL", "s")], unblocked), ([("SET", "s", "x")], unblocked),
            ([("RENAME", "other", "s")], gone), ([("FLUSHALL",)], unblocked), ([("SWAPDB", "0", "1")], unblocked),
            ([("MULTI",), ("DEL", "s"), ("SADD", "s", "m"), ("EXEC",)], unblocked), ([("RENAME", "s", "t")], unblocked),
            ([("EXPIRE", "s", "-1")], unblocked), ([("PEXPIRE", "s", "50")], unblocked)]
    with Redis(cwd) as server, server.client() as c:
        for commands, expected in ways:
            c("FLUSHALL")
            c("XADD", "other", "1-0", "a", "b")
            c("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
            waiting = [wait_in(server, c, "g", f"c{n}") for n in range(3)]
            for command in commands:
                c(*command)
            for one in waiting:
                equal((commands, str(one.read())), (commands, expected))
                one.close()


main()
