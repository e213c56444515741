"""FUNCTION and FCALL: libraries are kept in the store, and their functions run in its transactions."""

import json
import threading

from harness import contains, equal, main, ok, run, test, until
from redis_server import Redis
from resp import Error

LIBRARY = """#!lua name=%s
local calls = 0
local function add(keys, args)
  calls = calls + 1
  redis.call('INCRBY', keys[1], args[1])
  return redis.call('GET', keys[1]) .. ' ' .. calls
end
redis.register_function('%s', add)
redis.register_function{function_name='%s_read', callback=function(keys) return redis.call('GET', keys[1]) end,
                        flags={'no-writes', 'allow-stale'}, description='reads a key'}
"""


def library(name="mylib", function="add"):
    return LIBRARY % (name, function, function)


def listed(c, *args):
    """Functions with their flags by the names of libraries."""
    found = {}
    for lib in c("FUNCTION", "LIST", *args):
        fields = dict(zip(lib[::2], lib[1::2]))
        functions = [dict(zip(f[::2], f[1::2])) for f in fields[b"functions"]]
        found[fields[b"library_name"].decode()] = {f[b"name"].decode(): sorted(f[b"flags"]) for f in functions}
    return found


@test
def functions_are_called_and_outlive_the_process(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c("FUNCTION", "LOAD", library()), b"mylib")
        # What a body keeps is new in each call.
        equal([c("FCALL", "add", 1, "k", 5), c("FCALL", "add", 1, "k", 6)], [b"5 1", b"11 1"])
        equal([c("FCALL_RO", "add_read", 1, "k"), c("FCALL", "add_read", 1, "k")], [b"11", b"11"])
        contains(c.error("FCALL_RO", "add", 1, "k", 1), "Can not execute a script with write flag using *_ro command")
        equal(listed(c), {"mylib": {"add": [], "add_read": ["allow-stale", "no-writes"]}})
        equal(listed(c, "LIBRARYNAME", "other*"), {})
        lib, = c("FUNCTION", "LIST", "LIBRARYNAME", "MY*", "WITHCODE")
        equal(lib[-1].decode(), library())
        equal(c("FLUSHALL"), "OK")
        equal(server.stop(), 0)
    with Redis(cwd) as server, server.client() as c:
        equal(c("FCALL", "add", 1, "k", 7), b"7 1")
        equal(c("MULTI"), "OK")
        c("FUNCTION", "LOAD", "REPLACE", library(function="plus"))
        c("FCALL", "plus", 1, "k", 1)
        c("FCALL", "add", 1, "k", 1)
        equal(c("EXEC"), [b"mylib", b"8 1", Error("ERR Function not found")])
        equal(c("FUNCTION", "DELETE", "mylib"), "OK")
        equal([c.error("FUNCTION", "DELETE", "mylib"), c.error("FCALL", "plus", 1, "k", 1)],
              ["ERR Library not found", "ERR Function not found"])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def libraries_exclude_each_other(cwd):
    with Redis(cwd) as server, server.client() as c:
        equal(c("FUNCTION", "LOAD", library("one", "f")), b"one")
        equal(c.error("FUNCTION", "LOAD", library("one", "g")), "ERR Library 'one' already exists")
        equal(c.error("FUNCTION", "LOAD", library("two", "f")), "ERR Function f already exists")
        equal(c.error("FUNCTION", "LOAD", "REPLACE", library("two", "f")), "ERR Function f already exists")
        equal(c("FUNCTION", "LOAD", library("two", "g")), b"two")
        # What was refused has changed nothing.
        equal(listed(c), {"one": {"f": [], "f_read": ["allow-stale", "no-writes"]},
                          "two": {"g": [], "g_read": ["allow-stale", "no-writes"]}})
        equal(c("FUNCTION", "LOAD", "REPLACE", library("one", "h")), b"one")
        contains(c.error("FCALL", "f", 0), "Function not found")
        stats = c("FUNCTION", "STATS")
        equal(stats[:2], [b"running_script", None])
        equal(stats[3][1], [b"libraries_count", 2, b"functions_count", 4])


@test
def restored_libraries_may_exchange_functions(cwd):
    with Redis(cwd) as server, server.client() as c:
        for code in (library("one", "f"), library("two", "g")):
            c("FUNCTION", "LOAD", code)
        exchanged = c("FUNCTION", "DUMP")
        c("FUNCTION", "FLUSH")
        for code in (library("one", "g"), library("two", "f")):
            c("FUNCTION", "LOAD", code)
        equal(c("FUNCTION", "RESTORE", exchanged, "REPLACE"), "OK")
        equal([c("FCALL", "f", 1, "k", 1), c("FCALL", "g", 1, "k", 1)], [b"1 1", b"2 1"])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def code_that_is_no_library_is_refused(cwd):
    head = "#!lua name=l\n"
    with Redis(cwd) as server, server.client() as c:
        for code, why in (
                ("redis.register_function('f', function() end)", "Missing library metadata"),
                ("#!lua name=l", "Invalid library metadata"),
                ("#!js name=l\n", "Engine 'js' not found"),
                ("#!lua\n", "Library name was not given"),
                ("#!lua name=a name=b\n", "name argument was given multiple times"),
                ("#!lua name=a foo=b\n", "Invalid metadata value given: foo=b"),
                ("#!lua name=a-b\n", "Library names can only contain letters"),
                (head, "No functions registered"),
                (head + "if", "Error compiling function: user_function:2: unexpected symbol"),
                (head + "local x = nil + 1", "Error registering functions: "),
                (head + "x = 1", "Attempt to modify a readonly table"),
                (head + "redis.call('PING')", "attempted to access nonexistent global variable 'call'"),
                (head + "return KEYS[1]", "nonexistent global variable 'KEYS'"),
                (head + "return math.random()", "nonexistent global variable 'math'"),
                (head + "while true do end", "FUNCTION LOAD timeout"),
                (head + "redis.register_function()", "wrong number of arguments"),
                (head + "redis.register_function(1, 2)", "first argument to redis.register_function must be a string"),
                (head + "redis.register_function('f', 2)", "second argument"),
                (head + "redis.register_function('f-g', function() end)", "can only contain letters"),
                (head + "redis.register_function{function_name='f'}", "must get a callback argument"),
                (head + "redis.register_function{callback=function() end}", "must get a function name argument"),
                (head + "redis.register_function{function_name='f', callback=function() end, flags={'x'}}",
                 "unknown flag"),
                (head + "redis.register_function{function_name='f', callback=function() end, x=1}", "unknown argument"),
                (head + "local f = function() end redis.register_function('f', f) redis.register_function('f', f)",
                 "Function already exists in the library"),
                (head + "for i = 1, 1001 do redis.register_function('f' .. i, function() end) end",
                 "LIBRARY_FUNCTIONS"),
                (head + "-" * 300000, "SCRIPT_BYTES")):
            contains(c.error("FUNCTION", "LOAD", code), why)
        # A busy machine may need all of the time that there is for the memory that there is.
        doubles = head + "local s = 'x' while true do s = s .. s end"
        until(lambda: "not enough memory" in c.error("FUNCTION", "LOAD", doubles))
        equal(listed(c), {})
        equal(c("FUNCTION", "LOAD", head + "redis.register_function('f', function() return 1 end)\n"
                "redis.register_function('g', function() redis.register_function('h', function() end) end)\n"
                "redis.register_function('e', function() error('so it is') end)"), b"l")
        contains(c.error("FCALL", "G", 0), "attempt to call field 'register_function' (a nil value)")
        contains(c.error("FCALL", "e", 0), "so it is script: e, on @user_function:4.")
        contains(c.error("FCALL", "e", -1), "Number of keys can't be negative")


@test
def payloads_bring_libraries_to_another_server(cwd):
    (cwd / "a").mkdir()
    (cwd / "b").mkdir()
    with Redis(cwd / "a") as one, Redis(cwd / "b") as other, one.client() as a, other.client() as b:
        a("FUNCTION", "LOAD", library("one", "f"))
        a("FUNCTION", "LOAD", library("two", "g"))
        payload = a("FUNCTION", "DUMP")
        equal(b("FUNCTION", "RESTORE", payload), "OK")
        equal(listed(b), listed(a))
        equal(b("FCALL", "g", 1, "k", 3), b"3 1")
        contains(b.error("FUNCTION", "RESTORE", payload), "already exists")
        equal(b("FUNCTION", "RESTORE", payload, "REPLACE"), "OK")
        b("FUNCTION", "DELETE", "two")
        b("FUNCTION", "LOAD", library("three", "g"))
        # One of its functions is in a library that stays: nothing is restored.
        contains(b.error("FUNCTION", "RESTORE", payload, "REPLACE"), "Function g already exists")
        equal(sorted(listed(b)), ["one", "three"])
        equal(b("FUNCTION", "RESTORE", payload, "FLUSH"), "OK")
        equal(listed(b), listed(a))
        for spoiled in (payload[:-1], b"", payload[:5] + b"x" + payload[6:]):
            contains(b.error("FUNCTION", "RESTORE", spoiled), "version or checksum are wrong")
        contains(b.error("FUNCTION", "RESTORE", payload, "MERGE"), "Wrong restore policy")
        equal([b("FUNCTION", "FLUSH"), listed(b)], ["OK", {}])
        # A server without functions has a payload, too, which may take all from another one.
        none = b("FUNCTION", "DUMP")
        equal(len(none), 10)
        equal([a("FUNCTION", "RESTORE", none), sorted(listed(a))], ["OK", ["one", "two"]])
        equal([a("FUNCTION", "RESTORE", none, "FLUSH"), listed(a)], ["OK", {}])


@test
def a_function_that_runs_is_told_and_killed(cwd):
    code = ("#!lua name=l\nredis.register_function('f', function(keys)"
            " redis.call('SET', keys[1], 1) while true do end end)")
    with Redis(cwd) as server, server.client() as c, server.client() as other:
        c("FUNCTION", "LOAD", code)
        contains(other.error("FUNCTION", "KILL"), "NOTBUSY")
        c.send("FCALL", "f", 1, "k")
        until(lambda: other("FUNCTION", "STATS")[1] is not None)
        running = other("FUNCTION", "STATS")[1]
        equal(running[:4], [b"name", b"f", b"command", [b"FCALL", b"f", b"1", b"k"]])
        assert running[5] >= 0
        contains(other.error("SCRIPT", "KILL"), "NOTBUSY")
        equal(other("FUNCTION", "KILL"), "OK")
        contains(str(c.read()), "Script killed by user")
        equal(other("EXISTS", "k"), 0)


@test
def those_who_load_at_once_lose_no_library(cwd):
    with Redis(cwd, "--no-sync") as server:
        def load(n):
            with server.client() as c:
                for i in range(10):
                    equal(c("FUNCTION", "LOAD", library(f"lib{n}_{i}", f"f{n}_{i}")), f"lib{n}_{i}".encode())
        threads = [threading.Thread(target=load, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with server.client() as c:
            equal(len(listed(c)), 40)
            equal(c("FUNCTION", "STATS")[3][1], [b"libraries_count", 40, b"functions_count", 80])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")
    contains(ok("inspect", "redis:functions", cwd=cwd).stdout, "'lib3_9'")


@test
def verify_compares_libraries_with_the_index_of_their_functions(cwd):
    with Redis(cwd) as server, server.client() as c:
        c("FUNCTION", "LOAD", library())
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")
    dumped = [json.loads(line) for line in ok("dump", "redis:functions", cwd=cwd).stdout.splitlines()]
    index, = [line for line in dumped if line.get("key") == "functions"]
    libraries, = [line for line in dumped if line.get("key") == "libraries"]

    def found(number, members, record=None):
        """Findings about a store whose index has these members, and whose library is that record."""
        lines = [dumped[0], {**libraries, "members": [["mylib", record or libraries["members"][0][1]]]},
                 {**index, "members": members}]
        (cwd / "edited").write_text("".join(json.dumps(line) + "\n" for line in lines))
        store = f"embedded:edited{number}"
        ok("load", "redis:functions", "edited", "--store", store, "--create", cwd=cwd)
        return run("verify", "--store", store, "--quiet", cwd=cwd)

    whole = [["add", "mylib"], ["add_read", "mylib"]]
    equal(found(0, whole).returncode, 0)
    for number, members, texts in (
            (1, [["add", "mylib"]], ["a function of a library is not in the index of functions: \"add_read\""]),
            (2, [["add", "mylib"], ["add_read", "other"]], ["names another library than the one that has the function"]),
            (3, [*whole, ["more", "mylib"]], ["the index has functions that are in no library"])):
        answer = found(number, members)
        equal(answer.returncode, 1)
        for text in texts:
            contains(answer.stdout, text)
        contains(answer.stdout, 'library: database "redis:functions"')
    answer = found(4, whole, libraries["members"][0][1][:-1])
    contains(answer.stdout, "a library cannot be read: \"mylib\"")


main()
