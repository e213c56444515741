"""Streams, as clients see them."""

import re
import signal

from harness import contains, equal, main, ok, run, test
from redis_server import Redis


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


@test
def what_groups_want_is_told(cwd):
    with Redis(cwd) as server, server.client() as c:
        contains(c.error("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"), "not supported by frond yet")
        contains(c.error("XREAD", "GROUP", "g", "c", "STREAMS", "s", ">"), "only supported by XREADGROUP")


main()
