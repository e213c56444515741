"""What administrators do by Redis's door: MONITOR, rights to subcommands, what the server tells."""

import pathlib
import re
import socket
import time

from harness import Server, Skip, contains, equal, main, make_quick_store, ok, test, until
from redis_random import PROGRAM, Peer
from redis_server import Redis
from resp import Client, encode


def lines(c, count):
    """What MONITOR shows, without times and ports."""
    shown = []
    for _ in range(count):
        line = c.read()
        time, rest = line.split(" ", 1)
        assert re.fullmatch(r"\d{10}\.\d{6}", time), line
        shown.append(re.sub(r"^(\[\d+) 127\.0\.0\.1:\d+\]", r"\1]", rest))
    return shown


@test
def monitor_shows_the_commands_of_all_databases(cwd):
    with Redis(cwd) as server, server.client() as m, server.client() as c:
        equal(m("MONITOR"), "OK")
        equal(m("MONITOR"), "OK")
        c("SET", "a", 'x\0\n\r\t\a\b"\\é')
        c("SELECT", "3")
        c.error("LPUSH", "b")  # refused before it runs
        c("SADD", "b", "x")
        c.error("GET", "b")
        equal(lines(m, 4), [r'[0] "SET" "a" "x\x00\n\r\t\a\b\"\\\xc3\xa9"',
                            '[3] "SELECT" "3"', '[3] "SADD" "b" "x"', '[3] "GET" "b"'])
        c.pipeline(("MULTI",), ("SET", "n", "1"), ("SELECT", "0"), ("INCR", "n"), ("EXEC",))
        equal(lines(m, 5), ['[3] "MULTI"', '[3] "SET" "n" "1"', '[0] "SELECT" "0"', '[0] "INCR" "n"',
                            '[0] "EXEC"'])
        c.error("EVAL", "redis.call('SET', 'n', 1); return redis.pcall('SADD', 'n', 2)", "0")
        shown = lines(m, 3)
        contains(shown[0], '[0] "EVAL" "redis.call(')
        equal(shown[1:], ['[0 lua] "SET" "n" "1"', '[0 lua] "SADD" "n" "2"'])
        equal(c("BLPOP", "nothing", "0.01"), None)
        c("WATCH", "n")
        with server.client() as other:
            other("SET", "n", "2")
        c.pipeline(("MULTI",), ("GET", "n"), ("EXEC",))
        equal(lines(m, 5), ['[0] "BLPOP" "nothing" "0.01"', '[0] "WATCH" "n"', '[0] "SET" "n" "2"',
                            '[0] "MULTI"', '[0] "EXEC"'])
        c("MULTI")
        c.error("NOSUCH")
        contains(c.error("EXEC"), "EXECABORT")
        equal(lines(m, 2), ['[0] "MULTI"', '[0] "EXEC"'])
        equal(m.error("GET", "a"), "ERR Replica can't interact with the keyspace")
        contains(c("CLIENT", "LIST").decode(), "flags=O ")
        equal(m("RESET"), "RESET")
        equal(m("GET", "n"), b"2")


@test
def config_tells_where_the_server_listens(cwd):
    with Server(cwd, "--redis", "127.0.0.2:0") as server:
        port = re.search(r"event=redis address=127\.0\.0\.2:(\d+)", server.read_log()).group(1)
        with Client(int(port), host="127.0.0.2") as c:
            equal(c("CONFIG", "GET", "bind"), [b"bind", b"127.0.0.2"])
            equal(c("CONFIG", "GET", "port"), [b"port", port.encode()])
            equal(c("CONFIG", "SET", "bind", "127.0.0.2"), "OK")
            contains(c.error("CONFIG", "SET", "bind", "127.0.0.1"), "--redis says where")


@test
def monitor_hides_passwords_and_what_administrators_do(cwd):
    with Redis(cwd) as server, server.client() as m, server.client() as c:
        equal(m("MONITOR"), "OK")
        c.error("AUTH", "me", "hunter2")
        c.error("AUTH", "hunter2")
        c.error("HELLO", "3", "AUTH", "me", "hunter2", "SETNAME", "x")
        c("CONFIG", "GET", "port")
        c("CLIENT", "LIST")
        c("ACL", "SETUSER", "me", ">hunter2")
        c("CLIENT", "ID")
        equal(lines(m, 4), ['[0] "AUTH" "(redacted)" "(redacted)"', '[0] "AUTH" "(redacted)"',
                            '[0] "HELLO" "3" "AUTH" "(redacted)" "(redacted)" "SETNAME" "x"',
                            '[0] "CLIENT" "ID"'])
        c("MULTI")
        equal(c("MONITOR"), "QUEUED")
        contains(str(c("EXEC")[0]), "MONITOR isn't allowed")
        contains(c.error("EVAL", "return redis.call('MONITOR')", "0"), "not allowed from script")


@test
def monitor_shows_the_beginning_of_what_is_long(cwd):
    with Redis(cwd) as server, server.client() as m, server.client() as c:
        m("MONITOR")
        c("SET", "a", "x" * 100000)
        equal(lines(m, 1), ['[0] "SET" "a" "' + "x" * 16384 + '... (83616 more bytes)"'])
        c("RPUSH", "b", *["\0" * 16384] * 40)
        line = lines(m, 1)[0]
        assert line.endswith(' "... (24 more arguments)"'), line[-100:]
        assert line.count('"') == 2 * 19


@test
def who_does_not_read_what_monitor_shows_is_closed_and_holds_up_nobody(cwd):
    with Redis(cwd) as server, server.client() as m, server.client() as c:
        m("MONITOR")
        for _ in range(10):  # more than CLIENT_PUSH_BYTES, and what is on the way
            c.pipeline(*[("ECHO", "\0" * 16384)] * 100)
        equal(c("PING"), "PONG")
        # Decided by what is unread, before the command that was too much was answered.
        equal(server.metrics()["frond_redis_output_overflows_total"], 1)
        until(lambda: c("CLIENT", "LIST").count(b"\n") == 1)
        seen = 0
        try:
            while part := m.socket.recv(1 << 20):
                seen += len(part)
        except ConnectionResetError:
            pass
        assert seen < 60 << 20, seen


def forgetful(server, *command):
    """A client that sends a command and reads nothing, and has little room for what comes."""
    s = socket.socket()
    s.settimeout(30)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", server.port))
    s.sendall(encode(command))
    return s


def assert_cut(s):
    """The connection ends, before all of an answer of 20 MB has come."""
    seen = 0
    try:
        while part := s.recv(1 << 20):
            seen += len(part)
    except ConnectionResetError:
        pass
    assert seen < 20000000, seen


def eventually(condition):
    """Waits for it, for less than a connection that stalls is left alone."""
    until(condition, seconds=20)


LIMIT = "client-output-buffer-limit"


@test
def limits_of_output_are_changed_by_classes(cwd):
    with Redis(cwd) as server, server.client() as c:
        def limits():
            return c("CONFIG", "GET", LIMIT)[1].decode()

        equal(limits(), "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60")
        equal(c("CONFIG", "SET", LIMIT, "PUBSUB 1mb 2k 3"), "OK")
        equal(c("CONFIG", "SET", LIMIT, "normal 1 2 3 replica 4 5 6"), "OK")
        equal(limits(), "normal 1 2 3 slave 4 5 6 pubsub 1048576 2000 3")
        equal(c("CONFIG", "SET", LIMIT, ""), "OK")
        for value, why in (("pubsub", "Wrong number of arguments in buffer limit configuration."),
                           ("pubsub  5 6 7", "Wrong number of arguments"),
                           ("master 1 2 3", "Invalid client class specified"),
                           ("pubsub x 2 3", "Error in hard, soft or soft_seconds setting"),
                           ("pubsub 1 2 -3", "Error in hard, soft or soft_seconds setting"),
                           ("pubsub 1 -2 3", "Error in hard, soft or soft_seconds setting"),
                           ("pubsub 0 0 0", "CLIENT_PUSH_BYTES"),
                           ("pubsub 33554433 0 0", "CLIENT_PUSH_BYTES")):
            contains(c.error("CONFIG", "SET", LIMIT, value), why)
        equal(limits(), "normal 1 2 3 slave 4 5 6 pubsub 1048576 2000 3")


@test
def settings_are_known_by_redis_names(cwd):
    with Redis(cwd) as server, server.client() as c:
        def get(*names):
            flat = [x.decode() for x in c("CONFIG", "GET", *names)]
            return dict(zip(flat[::2], flat[1::2]))

        assert len(get("*")) > 160
        assert int(get("maxclients")["maxclients"]) > 100
        contains(c("INFO", "clients").decode(), f"maxclients:{get('maxclients')['maxclients']}")
        # Two names of one setting, which has an effect.
        c("HSET", "h", *[str(i) for i in range(8)])
        equal(c("OBJECT", "ENCODING", "h"), b"listpack")
        equal(c("CONFIG", "SET", "hash-max-ziplist-entries", "3"), "OK")
        equal(get("hash-max-*-entries"), {"hash-max-listpack-entries": "3", "hash-max-ziplist-entries": "3"})
        equal(c("OBJECT", "ENCODING", "h"), b"hashtable")
        contains(c.error("CONFIG", "SET", "hash-max-ziplist-entries", "3", "hash-max-listpack-entries", "4"),
                 "duplicate parameter")
        equal(c("CONFIG", "SET", "stop-writes-on-bgsave-error", "no", "lfu-log-factor", "5"), "OK")
        equal(get("lfu-log-*"), {"lfu-log-factor": "5"})
        contains(c.error("CONFIG", "SET", "active-expire-effort", "11"), "between 1 and 10")
        for name, value in (("maxclients", "5"), ("repl-timeout", "1"), ("cluster-enabled", "yes"),
                            ("protected-mode", "no"), ("tcp-keepalive", "0")):
            contains(c.error("CONFIG", "SET", name, value), "frond cannot set it")
            equal(c("CONFIG", "SET", name, get(name)[name]), "OK")


@test
def peers_that_vanish_are_found_out(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("PING")
        local = c.socket.getsockname()[1]
        ours = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        # What the kernel waits for at the server's end of the connection: 02 is to ask the peer.
        equal([row[5][:2] for row in ours
               if row[1].endswith(f":{server.port:04X}") and row[2].endswith(f":{local:04X}")], ["02"])


SPIN = "local i = 0 while i < tonumber(ARGV[1]) do i = i + 1 end return 1"


@test
def what_took_long_is_kept_as_samples(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        equal(c("CONFIG", "GET", "latency-monitor-threshold")[1], b"0")
        equal(c("LATENCY", "HISTORY", "nosuch"), [])
        contains(c.error("LATENCY", "GRAPH", "command"), "No samples available for event 'command'")
        c("CONFIG", "SET", "latency-monitor-threshold", "1")
        before = int(time.time())
        c("EVAL", SPIN, 0, 1000000)
        c("SET", "a", "b")
        (name, at, ms, most), = [event for event in c("LATENCY", "LATEST") if event[0] == b"command"]
        assert before <= at <= time.time() and 1 <= ms <= most, (at, ms, most)
        until(lambda: c("TIME")[0] > str(at).encode())
        c("EVAL", SPIN, 0, 1000000)
        samples = c("LATENCY", "HISTORY", "command")
        equal(samples[0], [at, ms])
        # Of one second there is one.
        assert len(samples) > 1 and all(a[0] < b[0] for a, b in zip(samples, samples[1:])), samples
        most = max(sample[1] for sample in samples)
        graph = c("LATENCY", "GRAPH", "COMMAND").decode().split("\n")
        contains(graph[0], f"command - high {most} ms")
        equal(graph[1], "-" * 80)
        equal([len(line) for line in graph[2:6]], [len(samples)] * 4)
        assert any("#" in line for line in graph[2:6]), graph
        equal(c("LATENCY", "RESET", "nosuch", "command"), 1)
        equal(c("LATENCY", "HISTORY", "command"), [])
        c("CONFIG", "SET", "latency-monitor-threshold", "0")
        c("EVAL", SPIN, 0, 1000000)
        equal(c("LATENCY", "HISTORY", "command"), [])


# Of parts of redis-server that frond has not: a process that forks, threads, an allocator of its own, replicas.
NOT_TOLD = re.compile(r"aof_|rdb_|current_|io_threads_active|lru_clock|(monotonic|multiplexing|atomicvar)|gcc_|process_super|"
                      r"client_recent|clients_in_timeout|used_memory_(lua|vm|functions|scripts_eval)|number_of_(f|l)|.*rss_|"
                      r"rss_overhead|mem_(total_r|cluster)|lazyfree|module_fork|.*repl|instantaneous_(in|out)|expire|total_(evi|act)|"
                      r"slave_expires|active_defrag|migrate_|unexpected_|dump_payload|total_(reads|writes)_p|io_threaded|"
                      r"reply_buffer|used_cpu_|second_|total_eviction")


@test
def info_has_what_exporters_read(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        c("SET", "a", "b" * 1000)

        def told():
            text = c("INFO", "everything").decode()
            return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

        info = told()
        # A sanitizer has an allocator of its own, of which malloc's figures know nothing.
        plain = info["used_memory"] != "0"
        for name in ("used_memory_rss", "used_memory_peak", "total_system_memory",
                     *(("used_memory", "used_memory_startup") if plain else ())):
            assert int(info[name]) > 1 << 20, (name, info[name])
        assert int(info["used_memory_overhead"]) <= int(info["used_memory"]) <= int(info["used_memory_rss"])
        assert abs(int(info["rdb_last_save_time"]) - time.time()) < 60
        moved = int(info["total_net_input_bytes"])
        c("SET", "a", "b" * 10000)
        assert int(told()["total_net_input_bytes"]) - moved >= 10000
        stats = c("MEMORY", "STATS")
        stats = dict(zip(stats[::2], stats[1::2]))
        equal((stats[b"keys.count"], stats[b"aof.buffer"]), (1, 0))
        assert stats[b"dataset.bytes"] + stats[b"overhead.total"] == stats[b"total.allocated"], stats
        c("HELLO", "3")
        assert c("MEMORY", "STATS")[b"fragmentation"] >= 1 or not plain
        contains(c("MEMORY", "MALLOC-STATS").decode(), "<malloc version=")
    if not PROGRAM:
        raise Skip("there is no redis-server here: apt-get install redis-tools")
    with Peer() as peer, Client(peer.port) as redis:
        names = {line.split(":")[0] for line in redis("INFO", "everything").decode().split("\r\n") if ":" in line}
        figures = redis("MEMORY", "STATS")[::2]
    # Redis adds what tables of each database take, of which there are none here.
    equal({name for name in figures if not name.startswith(b"db.")} ^ set(stats), set())
    equal({name for name in names - set(info) if not NOT_TOLD.match(name) and "|" not in name}, set())


@test
def nothing_is_tracked_at_first(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c("CLIENT", "TRACKING", "OFF"), "OK")
        equal(c("CLIENT", "TRACKINGINFO"), [b"flags", [b"off"], b"redirect", -1, b"prefixes", []])
        contains(c.error("CLIENT", "CACHING", "YES"), "only when the client is in tracking mode")
        c("CLIENT", "NO-EVICT", "ON")
        contains(c("CLIENT", "INFO").decode(), " flags=e ")


@test
def rules_are_told_by_kinds(cwd):
    admin = ("--admin", "root:secret")
    make_quick_store(cwd)
    ok("user", "add", "ann", "--roles", "redis:~cache:* %R~log:* &news +get +acl|getuser", cwd=cwd,
       stdin="pw\n")
    with Redis(cwd, *admin) as server, server.client() as c:
        c("AUTH", "ann", "pw")
        equal(c("ACL", "GETUSER", "ann"),
              [b"flags", [b"on", b"ownpass"], b"passwords", [], b"commands", b"-@all +acl|getuser +get",
               b"keys", b"~cache:* %R~log:*", b"channels", b"&news", b"selectors", []])
    (cwd / "open").mkdir()
    with Redis(cwd / "open") as server, server.client() as c:
        equal(c("ACL", "GETUSER", "default"),
              [b"flags", [b"on", b"nopass"], b"passwords", [], b"commands", b"+@all",
               b"keys", b"~*", b"channels", b"&*", b"selectors", []])


@test
def a_subscriber_that_does_not_read_is_closed_by_its_limits(cwd):
    with Redis(cwd) as server, server.client() as c:
        message = b"m" * 100000
        # Past the hard limit at once.
        c("CONFIG", "SET", LIMIT, "pubsub 1mb 0 0")
        with forgetful(server, "SUBSCRIBE", "news"):
            eventually(lambda: c("PUBSUB", "NUMSUB", "news")[1] == 1)
            eventually(lambda: not c("PUBLISH", "news", message))
        # Past the soft one after its time, and not before.
        c("CONFIG", "SET", LIMIT, "pubsub 32mb 100kb 2")
        with forgetful(server, "SUBSCRIBE", "news"):
            eventually(lambda: c("PUBSUB", "NUMSUB", "news")[1] == 1)
            began = time.monotonic()
            for _ in range(100):
                c("PUBLISH", "news", message)
            # No other message has to come.
            eventually(lambda: c("PUBSUB", "NUMSUB", "news")[1] == 0)
            assert time.monotonic() - began > 1.9
        # What was read long ago does not count, however little of it was over the limit.
        c("CONFIG", "SET", LIMIT, "pubsub 32mb 20kb 1")
        with server.client() as sub:
            sub("SUBSCRIBE", "news")
            for _ in range(2):
                for _ in range(3):
                    c("PUBLISH", "news", message)
                for _ in range(3):
                    equal(sub.read()[2], message)
                time.sleep(1.2)
        # One that is killed does not wait for its reader.
        c("CONFIG", "SET", LIMIT, "pubsub 32mb 0 0")
        with forgetful(server, "SUBSCRIBE", "news"):
            eventually(lambda: c("PUBSUB", "NUMSUB", "news")[1] == 1)
            for _ in range(100):
                c("PUBLISH", "news", message)
            equal(c("CLIENT", "KILL", "TYPE", "pubsub"), 1)
            eventually(lambda: c("PUBSUB", "NUMSUB", "news")[1] == 0)
        equal(server.metrics()["frond_redis_output_overflows_total"], 2)
        # Who reads is left alone.
        c("CONFIG", "SET", LIMIT, "pubsub 1mb 200kb 1")
        with server.client() as sub:
            sub("SUBSCRIBE", "news")
            for _ in range(100):
                equal(c("PUBLISH", "news", message), 1)
                equal(sub.read()[2], message)


@test
def who_waits_for_a_key_and_gets_too_much_is_closed(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as waits:
        waits("HELLO", "3")
        waits("SUBSCRIBE", "news")
        c("CONFIG", "SET", LIMIT, "pubsub 1 0 0")
        waits.send("BLPOP", "none", "0")
        eventually(lambda: b"blocked_clients:1" in c("INFO", "clients"))
        c("PUBLISH", "news", b"m" * 100000)
        eventually(lambda: b"blocked_clients:0" in c("INFO", "clients"))
        equal(server.metrics()["frond_redis_output_overflows_total"], 1)


@test
def answers_that_nobody_reads_have_limits_too(cwd):
    with Redis(cwd) as server, server.client() as c:
        def others():
            # The other one has been there for sure when its command was counted.
            return "cmdstat_get" not in counts() or c("CLIENT", "LIST").decode().count("\n") - 1

        def counts():
            return c("INFO", "commandstats").decode()

        c("SET", "long", b"x" * 20000000)
        for limit in ("normal 10mb 0 0", "normal 0 1mb 1"):
            c("CONFIG", "SET", LIMIT, limit)
            c("CONFIG", "RESETSTAT")
            with forgetful(server, "GET", "long") as s:
                eventually(lambda: others() == 0)
                assert_cut(s)
        equal(server.metrics()["frond_redis_output_overflows_total"], 2)
        equal(len(c("GET", "long")), 20000000)
        c("CONFIG", "SET", LIMIT, "normal 0 0 0")
        equal(len(c("GET", "long")), 20000000)


@test
def rules_may_be_about_subcommands(cwd):
    admin = ("--admin", "root:secret")
    make_quick_store(cwd)
    for name, rules in (("ops", "+@all -@dangerous"), ("reads", "+@read +client|id +config|get"),
                        ("most", "+config -config|set +config| -client|nosuch"), ("conn", "+@connection")):
        ok("user", "add", name, "--roles", f"redis:~* {rules}", cwd=cwd, stdin="pw\n")
    with Redis(cwd, *admin) as server, server.client() as c:
        def may(*words):
            c.send(*words)
            answer = str(c.read())
            refusal = f"NOPERM this user has no permissions to run the '{words[0].lower()}|" \
                      f"{words[1].lower()}' command" if len(words) > 1 else "NOPERM"
            assert ("NOPERM" in answer) == answer.startswith(refusal), answer
            return "NOPERM" not in answer

        c("AUTH", "ops", "pw")
        for words in (("CONFIG", "SET", "timeout", "0"), ("CONFIG", "GET", "x"), ("CLIENT", "KILL", "x"),
                      ("CLIENT", "LIST"), ("SLOWLOG", "GET"), ("LATENCY", "LATEST"), ("MONITOR",),
                      ("ROLE",)):
            assert not may(*words), words
        for words in (("CONFIG", "HELP"), ("CLIENT", "ID"), ("CLIENT", "SETNAME", "x"), ("ACL", "WHOAMI"),
                      ("MEMORY", "USAGE", "a"), ("SCRIPT", "EXISTS", "x"), ("OBJECT", "ENCODING", "a")):
            assert may(*words), words
        equal(c("EVAL", "return {tostring(redis.acl_check_cmd('config', 'get', 'x')), "
                        "tostring(redis.acl_check_cmd('client', 'id'))}", "0"), [b"false", b"true"])
        c("AUTH", "reads", "pw")
        assert may("CONFIG", "GET", "x") and may("CLIENT", "ID") and may("OBJECT", "FREQ", "a")
        assert not may("CONFIG", "SET", "timeout", "0") and not may("CLIENT", "INFO")
        c("AUTH", "most", "pw")
        assert may("CONFIG", "GET", "x") and not may("CONFIG", "SET", "timeout", "0")
        c("AUTH", "conn", "pw")
        assert may("CLIENT", "KILL", "x") and may("COMMAND") and not may("CONFIG", "HELP")
        c("AUTH", "root", "secret")
        assert b"config|set" in c("ACL", "CAT", "dangerous")
        assert b"config|help" not in c("ACL", "CAT", "dangerous")
        assert b"sort" in c("ACL", "CAT", "sortedset") and b"eval_ro" not in c("ACL", "CAT", "read")
        equal([sub[0] for sub in c("COMMAND", "INFO", "slowlog")[0][9]],
              [b"slowlog|get", b"slowlog|help", b"slowlog|len", b"slowlog|reset"])


RULES = "redis:~cache:* %R~ro:* &news* +get +set +mget +config|get +publish +subscribe +multi +exec " \
        "+eval +psubscribe"


@test
def a_dry_run_tells_what_a_person_may_do(cwd):
    make_quick_store(cwd)
    ok("user", "add", "bob", "--roles", RULES, cwd=cwd, stdin="pw\n")
    with Redis(cwd, "--admin", "root:secret") as server, server.client() as c:
        c("AUTH", "root", "secret")

        def dry(*words):
            return c("ACL", "DRYRUN", "bob", *words)

        for words in (("get", "cache:1"), ("GET", "ro:1"), ("config", "get", "a"), ("publish", "news", "x"),
                      ("psubscribe", "news*"), ("eval", "return 1", "0")):
            equal(dry(*words), "OK")
        equal(c("ACL", "DRYRUN", "root", "config", "set", "a", "b"), "OK")
        for words, what in ((("get", "other"), "access the 'other' key"),
                            (("set", "ro:1", "x"), "access the 'ro:1' key"),
                            (("mget", "cache:1", "other"), "access the 'other' key"),
                            (("eval", "return 1", "1", "other"), "access the 'other' key"),
                            (("del", "cache:1"), "run the 'del' command"),
                            (("config", "SET", "a", "b"), "run the 'config|set' command"),
                            (("publish", "old", "x"), "access the 'old' channel"),
                            (("subscribe", "news.a", "old"), "access the 'old' channel"),
                            (("psubscribe", "news.*"), "access the 'news.*' channel")):
            equal(dry(*words).decode(), "This user has no permissions to " + what)
        for words, error in ((("config", "nosuch", "a"), "ERR Command 'config' not found"),
                             (("nosuch", "a"), "ERR Command 'nosuch' not found"),
                             (("get",), "ERR wrong number of arguments for 'get' command"),
                             (("config",), "ERR wrong number of arguments for 'config' command")):
            equal(c.error("ACL", "DRYRUN", "bob", *words), error)
        equal(c.error("ACL", "DRYRUN", "nobody", "get", "a"), "ERR User 'nobody' not found")
        equal(c.error("ACL", "DRYRUN", "bob"), "ERR wrong number of arguments for 'acl|dryrun' command")
    with Redis(cwd) as server, server.client() as c:
        equal(c("ACL", "DRYRUN", "default", "flushall"), "OK")


@test
def sort_looks_up_keys_for_those_who_may_read_all(cwd):
    make_quick_store(cwd)
    for name, rules in (("ann", "~mine:*"), ("bob", "~mine:* %R~*")):
        ok("user", "add", name, "--roles", f"redis:{rules} +sort +eval", cwd=cwd, stdin="pw\n")
    with Redis(cwd, "--admin", "root:secret") as server, server.client() as c:
        c("AUTH", "root", "secret")
        c("RPUSH", "mine:l", "1", "2")
        c("MSET", "w_1", "b", "w_2", "a")
        c("AUTH", "ann", "pw")
        denied = "ERR {} option of SORT denied due to insufficient ACL permissions."
        for words in (("BY", "w_*"), ("BY", "mine:w_*"), ("GET", "w_*"), ("GET", "#"), ("GET", "w_1")):
            equal(c.error("SORT", "mine:l", *words), denied.format(words[0]))
        contains(c.error("EVAL", "return redis.call('sort', 'mine:l', 'get', 'w_*')", "0"),
                 denied.format("GET"))
        equal(c("SORT", "mine:l", "BY", "nosort"), [b"1", b"2"])
        c("AUTH", "bob", "pw")
        equal(c("SORT", "mine:l", "BY", "w_*", "ALPHA", "GET", "w_*"), [b"a", b"b"])


@test
def what_was_refused_is_in_a_log(cwd):
    make_quick_store(cwd)
    ok("user", "add", "bob", "--roles", RULES, cwd=cwd, stdin="pw\n")
    with Redis(cwd, "--admin", "root:secret") as server, server.client() as c, server.client() as bob:
        c("AUTH", "root", "secret")

        def log(*args):
            """Entries as count, reason, context, object, user."""
            entries = [dict(zip(e[::2], e[1::2])) for e in c("ACL", "LOG", *args)]
            for e in entries:
                assert 0 <= float(e[b"age-seconds"]) < 60, e
                contains(e[b"client-info"].decode(), " addr=127.0.0.1:")
            return [(e[b"count"], *(e[n].decode() for n in (b"reason", b"context", b"object",
                     b"username"))) for e in entries]

        equal(log(), [])
        for words in (("AUTH", "bob", "wrong"), ("HELLO", "3", "AUTH", "bob", "wrong")):
            contains(bob.error(*words), "WRONGPASS")
        equal(log(), [(1, "auth", "toplevel", "HELLO", "bob"), (1, "auth", "toplevel", "AUTH", "bob")])
        equal(c("ACL", "LOG", "RESET"), "OK")
        bob("AUTH", "bob", "pw")
        for words in (("GET", "other"), ("MGET", "cache:1", "other"), ("DEL", "cache:1"),
                      ("CONFIG", "SET", "timeout", "0"), ("PUBLISH", "old", "x"),
                      ("SUBSCRIBE", "news", "old")):
            contains(bob.error(*words), "NOPERM this user has no permissions to ")
        contains(bob.error("EVAL", "return redis.call('get', 'other')", "0"), "can't access at least one")
        contains(bob.error("EVAL", "return redis.call('publish', 'old', 'x')", "0"), "can't publish")
        contains(bob.error("EVAL", "redis.call('set', 'cache:1', 1); redis.call('del', 'cache:1')", "0"),
                 "can't run this command")
        bob("MULTI")
        contains(bob.error("PUBLISH", "old", "x"), "NOPERM")
        contains(bob.error("EXEC"), "EXECABORT")
        equal(log(), [(1, "channel", "multi", "old", "bob"), (1, "command", "lua", "del", "bob"),
                      (1, "channel", "lua", "old", "bob"), (1, "key", "lua", "other", "bob"),
                      (2, "channel", "toplevel", "old", "bob"),
                      (1, "command", "toplevel", "config|set", "bob"),
                      (1, "command", "toplevel", "del", "bob"), (2, "key", "toplevel", "other", "bob")])
        bob.error("DEL", "cache:1")  # the same again comes first
        equal(log("2"), [(2, "command", "toplevel", "del", "bob"), (1, "channel", "multi", "old", "bob")])
        equal((log("0"), log("-1")), ([], []))
        equal(c.error("ACL", "LOG", "x"), "ERR value is not an integer or out of range")
        # Its length has a limit, and none at all is one, too.
        c("CONFIG", "SET", "acllog-max-len", "3")
        for i in range(5):
            bob.error("GET", f"key:{i}")
        equal([e[3] for e in log()], ["key:4", "key:3", "key:2"])
        c("CONFIG", "SET", "acllog-max-len", "0")
        bob.error("GET", "key:9")
        equal(log(), [])
        contains(c.error("CONFIG", "SET", "acllog-max-len", "1025"), "between 0 and 1024")
        c("ACL", "LOG", "RESET")
        equal(log(), [])
        # Of a long key the beginning is kept.
        c("CONFIG", "SET", "acllog-max-len", "1")
        bob.error("GET", "k" * 5000)
        equal([len(e[3]) for e in log()], [1024])


@test
def subcommands_are_checked_before_they_are_queued(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c.error("CONFIG", "GET"), "ERR wrong number of arguments for 'config|get' command")
        c("MULTI")
        equal(c.error("CLIENT", "SETNAME"), "ERR wrong number of arguments for 'client|setname' command")
        contains(c.error("EXEC"), "EXECABORT")


@test
def anybody_may_log_in_as_default_where_there_is_no_administrator(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c("AUTH", "default", "any"), "OK")
        contains(c.error("AUTH", "any"), "without any password configured")
        contains(c.error("AUTH", "other", "any"), "WRONGPASS")
        equal(c("SET", "a", "1"), "OK")
        server.stop()
    with Redis(cwd, "--admin", "root:secret") as server, server.client() as c:
        contains(c.error("AUTH", "default", "any"), "WRONGPASS")
        contains(c.error("GET", "a"), "NOAUTH")


@test
def scripts_are_told_of_subcommands_that_are_not_there(cwd):
    with Redis(cwd) as server, server.client() as c:
        for words, text in (("'object', 'nosuch', 'a'", "Unknown Redis command called from script"),
                            ("'object', 'encoding'", "Wrong number of args calling Redis command"),
                            ("'command', 'nosuch'", "Unknown Redis command called from script"),
                            ("'debug', 'nosuch'", "not allowed from script")):
            contains(c.error("EVAL", f"return redis.call({words})", "0"), text)
        equal(c("EVAL", "redis.debug('x'); return {redis.breakpoint(), 1}", "0"), [None, 1])


@test
def lolwut_tells_the_version(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c("LOLWUT"), b"Redis ver. 7.0.15\n")
        equal(c("LOLWUT", "VERSION", "5", "1", "1", "1"), b"Redis ver. 7.0.15\n")
        contains(c.error("LOLWUT", "VERSION", "x"), "not an integer")


@test
def info_tells_the_file_of_settings_and_the_rate_of_commands(cwd):
    (cwd / "frond.ini").write_text("[redis]\nenable = true\nport = 0\n")
    with Redis(cwd, "--config", "frond.ini") as server, server.client() as c:
        contains(c("INFO", "server"), f"config_file:{cwd / 'frond.ini'}\r\n".encode())

        def rate():
            for _ in range(50):
                c("PING")
            return int(c("INFO", "stats").split(b"instantaneous_ops_per_sec:")[1].split(b"\r")[0])
        until(lambda: rate() > 0)
    with Redis(cwd, "--store", "embedded:other", settings=False) as server, server.client() as c:
        contains(c("INFO", "server"), b"config_file:\r\n")


main()
