"""The libraries of scripts, and what holds a script within its limits."""

import hashlib
import select
import threading

from harness import Skip, contains, equal, main, test, until
from redis_random import PROGRAM, Peer
from redis_server import Redis
from resp import Client, Error

# Each runs for ever, or for years, in a function of a library.
ENDLESS = {
    "a pattern": "return ('a'):rep(20000):find(('.-'):rep(30) .. 'b')",
    "a match of a capture": "return ('a'):rep(5000):match('^(.-)(.-)(.-)(.-)%1%2b')",
    "gsub": "while true do ('a'):rep(100000):gsub('%f[b]', '') end",
    "gmatch": "while true do for w in ('a'):rep(3000):gmatch('.-.-b') do end end",
    "sorting": "local t = {}; for i = 1, 100000 do t[i] = (i * 7919) % 100003 end; "
               "while true do table.sort(t); t[1] = 5 end",
    "sorting by a function of C": "local t = {}; for i = 1, 100000 do t[i] = i end; "
                                  "while true do pcall(table.sort, t, rawequal) end",
    "cjson": "local t = {}; for i = 1, 100000 do t[i] = i end; "
             "while true do cjson.decode(cjson.encode(t)) end",
    "cmsgpack": "local t = {}; for i = 1, 100000 do t[i] = i end; "
                "while true do cmsgpack.unpack(cmsgpack.pack(t)) end",
    "struct": "local f, s = ('b'):rep(5000), ('x'):rep(5000); while true do struct.unpack(f, s) end",
    "coroutines that make others":
        "local function f(n) if n > 0 then for i = 1, 50 do coroutine.wrap(f)(n - 1) end end end; f(40)",
    "large memory": "local a = ('a'):rep(15000000); local b = a .. 'b'; while true do local c = a < b end",
    "garbage": "local t = {}; for i = 1, 300000 do t[i] = {} end; while true do collectgarbage() end",
    "concatenation": "local t = {}; for i = 1, 500000 do t[i] = '' end; "
                     "while true do table.concat(t) end",
    "compiling": "local text = ('a=1 '):rep(50000); while true do loadstring(text) end",
    "compiling with many branches": "while true do loadstring(('if a then ' .. ('elseif a then '):rep(17000)) .. 'end') end",
    "texts that grow between two looks":
        "while true do local s = 'a'; for i = 1, 23 do s = s .. s end; "
        "local t = s .. 'b'; for i = 1, 900 do local c = s < t end; collectgarbage() end",
    "an eager collector": "local t = {}; for i = 1, 100000 do t[i] = {} end; "
                          "collectgarbage('setpause', 0); collectgarbage('setstepmul', 0); while true do local x = {} end",
    "elements that make room": "local t = {}; for i = 1, 1000000 do t[i] = i end; "
                               "while true do table.insert(t, 1, 1); table.remove(t, 1) end",
    "an empty table that was large":
        "local t = {}; for i = 1, 1000000 do t[i] = i end; for i = 1, 1000000 do t[i] = nil end; "
        "while true do next(t) end",
    "coroutines that take turns":
        "local a = ('a'):rep(9000000); local b = a .. 'b'; "
        "local c = coroutine.wrap(function() while true do for i = 1, 100 do local x = a < b end; coroutine.yield() end end); "
        "while true do c() end",
}

MANY_BRANCHES = "if a then " + "elseif a then " * 17000 + "end"


@test
def no_function_of_a_library_holds_up_others_or_escapes_the_limits(cwd):
    with Redis(cwd) as server, server.client() as c, server.client() as other:
        for name, script in ENDLESS.items():
            other("CONFIG", "SET", "lua-time-limit", "0")
            c.send("EVAL", script, "0")
            while True: # others are served while it runs
                other.send("SCRIPT", "KILL")
                if other.read() == "OK":
                    break
            contains(str(c.read()), "Script killed by user")
            other("CONFIG", "SET", "lua-time-limit", "50")
            error = c.error("EVAL", script, "0")
            assert "(lua-time-limit)" in error, f"{name}: {error}"
        equal(c("EVAL", "return string.rep('', 1e15)", "0"), b"")


def one_loop(cwd):
    """The options of a server that runs all clients of Redis's door on one thread."""
    (cwd / "frond.conf").write_text("[redis]\nloops = 1\n")
    return "--config", "frond.conf"


@test
def others_are_served_while_a_text_is_compiled(cwd):
    with Redis(cwd, *one_loop(cwd)) as server, server.client() as c, server.client() as other:
        for command in [("EVAL", "if false then " + MANY_BRANCHES + " end return 5", "0"),
                        ("SCRIPT", "LOAD", MANY_BRANCHES)]:
            served = 0
            answered = []

            def wait():
                answered.append(c.read())

            waits = threading.Thread(target=wait)
            c.send(*command)
            waits.start()
            while not answered and served < 20:
                other("PING")
                served += 1
            waits.join()
            assert not isinstance(answered[0], Error), answered
            equal(served, 20)


@test
def a_script_cannot_make_anything_that_outlives_its_end(cwd):
    """A finalizer of Lua 5.1 runs without hooks, so that nothing could end it."""
    with Redis(cwd) as server, server.client() as c:
        equal(c("EVAL", "return type(rawget(_G, 'newproxy'))", "0"), b"nil")
        contains(c.error("EVAL", "return newproxy(true)", "0"), "nonexistent global variable 'newproxy'")
        equal(c("EVAL", "local ends = 0; local t = setmetatable({}, {__gc = function() ends = ends + 1 end}); "
                "t = nil; collectgarbage(); collectgarbage(); return ends", "0"), 0)
        # No library gives out a value that could have one.
        equal(c("EVAL", """
            local seen, found = {}, {}
            local function look(v, name)
                if type(v) == 'userdata' and v ~= cjson.null then found[#found + 1] = name end
                if type(v) ~= 'table' or seen[v] then return end
                seen[v] = true
                look(getmetatable(v), name .. '()')
                for k, x in pairs(v) do look(x, name .. '.' .. tostring(k)) end
            end
            look(_G, '_G'); look(getmetatable(''), 'text')
            return found""", "0"), [])


# What of a state a script can reach and change, and whether one before it has.
LEAVES_TRACES = """
    local meta, globals = getmetatable(''), getfenv(0)
    local found = {#math, #_G, #redis, tostring(rawget(meta, 'left')), tostring(rawget(globals, 'left')),
                   string.upper('a'), ('a'):upper(), tostring(rawequal(globals, _G)), #KEYS, #ARGV,
                   collectgarbage('count') < 200 and 'small' or 'large', cjson.encode({1, 0.1})}
    table.insert(math, 'left'); table.insert(_G, 'left'); table.insert(redis, 'left')
    meta.left, meta.__index = true, function() return function() return 'left' end end
    collectgarbage('stop')
    cjson.encode_number_precision(3)
    local held = {}
    for i = 1, tonumber(ARGV[1]) do held[i] = {tostring(i), {}} end
    meta.held = held
    KEYS[#KEYS + 1] = 'left'
    setfenv(0, {left = true})
    if ARGV[2] == 'fail' then error('left') end
    while ARGV[2] == 'stay' do end
    return found"""


@test
def a_script_leaves_nothing_for_the_next_one(cwd):
    """States are used again, as they were before anything ran in them: however a script has ended."""
    with Redis(cwd) as server, server.client() as c:
        equal(c("CONFIG", "SET", "lua-time-limit", "300"), "OK")
        fresh = c("EVAL", LEAVES_TRACES, "1", "k", "0", "end")
        equal(fresh[:5], [0, 0, 0, b"nil", b"nil"])
        sha = c("SCRIPT", "LOAD", LEAVES_TRACES)
        for size in ("0", "100", "20000"):
            equal(c("EVALSHA", sha, "1", "k", size, "end"), fresh)
            contains(c.error("EVALSHA", sha, "1", "k", size, "fail"), "left")
            equal(c("EVALSHA", sha, "1", "k", size, "end"), fresh)
            contains(c.error("EVALSHA", sha, "1", "k", size, "stay"), "lua-time-limit")
            equal(c("EVALSHA", sha, "1", "k", size, "end"), fresh)
        library = "#!lua name=l\nlocal calls = 0\nredis.register_function('f', function(keys, args) " \
            "calls = calls + 1; local seen = {calls, #string, #keys, #args}; table.insert(string, 1); return seen end)"
        equal(c("FUNCTION", "LOAD", library), b"l")
        for keys in (1, 2, 1):
            equal(c("FCALL", "f", keys, *["k"] * keys, "a"), [1, 0, keys, 1])
        # The same name with another text is another library.
        equal(c("FUNCTION", "LOAD", "REPLACE", library.replace("calls = 0", "calls = 5")), b"l")
        equal(c("FCALL", "f", 1, "k", "a"), [6, 0, 1, 1])
        # A text that is no library, and the same as a script.
        contains(c.error("EVAL", library, "0"), "Unknown lua shebang option")


@test
def states_of_scripts_are_kept_up_to_a_limit(cwd):
    def kept(c):
        stats = c("MEMORY", "STATS")
        return stats[stats.index(b"lua.caches") + 1]

    with Redis(cwd) as server, server.client() as c:
        equal(kept(c), 0)
        equal(c("EVAL", "return 1", "0"), 1)
        one = kept(c)
        assert 50_000 < one < 300_000, one
        equal(c("EVAL", "return 1", "0"), 1)
        equal(kept(c), one)
        texts = 0
        for i in range(200):
            text = f"return {i}"
            texts += len(text)
            equal(c("EVAL", text, "0"), i)
        assert 4 << 20 < kept(c) - texts <= 8 << 20, kept(c)
        # One that is too large is made anew each time.
        c("SCRIPT", "FLUSH")
        equal(kept(c), 0)
        large = "local t = {}\n" + "".join(f"t[{i}] = function(a) return a + {i} end\n" for i in range(4000))
        for i in range(2):
            equal(c("EVAL", large + "return t[7](1)", "0"), 8)
        assert kept(c) < len(large) + 1000, kept(c)


@test
def compiled_code_is_never_loaded(cwd):
    with Redis(cwd) as server, server.client() as c:
        code = c("EVAL", "return string.dump(function() return 'it ran' end)", "0")
        assert code.startswith(b"\x1bLua"), code
        refusal = "compiled code cannot be loaded"
        contains(c.error("EVAL", code, "0"), refusal)
        contains(c.error("EVAL_RO", code, "0"), refusal)
        contains(c.error("EVAL", b"#!lua\n" + code, "0"), "Error compiling script")
        contains(c.error("SCRIPT", "LOAD", code), refusal)
        for load in ["loadstring(ARGV[1])", "load(function() local x = ARGV[1]; ARGV[1] = nil; return x end)",
                     "load((function() local i = 0; return function() i = i + 1; return ARGV[1]:sub(i, i) end end)())"]:
            contains(c("EVAL", f"return select(2, {load})", "0", code).decode(), refusal)


@test
def coroutines_are_those_of_lua(cwd):
    with Redis(cwd) as server, server.client() as c:
        for script, expected in [
                ("local c = coroutine.create(function(a, b) local d = coroutine.yield(a + b); return d * 2 end); "
                 "local _, x = coroutine.resume(c, 1, 2); local _, y = coroutine.resume(c, 21); "
                 "return {x, y, coroutine.status(c), select(2, coroutine.resume(c))}",
                 [3, 42, b"dead", b"cannot resume dead coroutine"]),
                ("local c; c = coroutine.create(function() return select(2, coroutine.resume(c)) end); "
                 "return select(2, coroutine.resume(c))", b"cannot resume running coroutine"),
                ("local a; a = coroutine.create(function() "
                 "return coroutine.wrap(function() return coroutine.status(a) .. select(2, coroutine.resume(a)) end)() end); "
                 "return select(2, coroutine.resume(a))", b"normalcannot resume normal coroutine"),
                ("return select(2, pcall(coroutine.wrap(function() error('gone wrong', 0) end)))", b"gone wrong"),
                ("return select('#', coroutine.resume(coroutine.create(function() end)))", 1),
                ("local n = 0; for i in coroutine.wrap(function() for i = 1, 5 do coroutine.yield(i) end end) "
                 "do n = n + i end; return n", 15)]:
            equal(c("EVAL", script, "0"), expected)
        # They nest on one stack, which is bounded, however they are mixed with other calls.
        for recursion in ["local function f() coroutine.wrap(f)() end f()",
                          "local function f() assert(coroutine.resume(coroutine.create(f))) end f()",
                          "local function f() pcall(coroutine.wrap(f)); error('deep') end f()",
                          "local function f() ('x'):gsub('x', function() coroutine.wrap(f)() end) end f()"]:
            c.error("EVAL", recursion, "0")
        equal(c("PING"), "PONG")


@test
def the_time_of_a_script_is_its_own(cwd):
    """However many others run, what a script may do is the same."""
    script = "local n = 0; for i = 1, tonumber(ARGV[1]) do n = n + i % 7 end; return tostring(os.clock())"
    with Redis(cwd, *one_loop(cwd)) as server:
        clients = [server.client(timeout=120) for _ in range(16)]
        c = clients[0]
        c("CONFIG", "SET", "lua-time-limit", "0")
        rounds, took = 100000, 0
        while took < 0.04:
            rounds *= 2
            took = float(c("EVAL", script, "0", rounds))
        c("CONFIG", "SET", "lua-time-limit", int(took * 4000))
        for client in clients:
            client.send("EVAL", script, "0", rounds)
        answers = [client.read() for client in clients]
        equal([a for a in answers if not isinstance(a, bytes)], [])
        for client in clients:
            client.close()


@test
def patterns_answer_as_those_of_lua(cwd):
    with Redis(cwd) as server, server.client() as c:
        for script, expected in [
                ("return {string.find('hello world', 'o w')}", [5, 7]),
                ("return {string.find('hello', 'l+')}", [3, 4]),
                ("return {string.find('a.b', '.', 2, true)}", [2, 2]),
                ("return {string.find('abc', '()b()')}", [2, 2, 2, 3]),
                ("return {string.match('key = value', '(%w+)%s*=%s*(%w+)')}", [b"key", b"value"]),
                ("return string.match('  trim  ', '^%s*(.-)%s*$')", b"trim"),
                ("return string.match('f(a(b)c)d', '%b()')", b"(a(b)c)"),
                ("return {string.gsub('THE (quick) fox', '%f[%a]%a+', '<%0>')}",
                 [b"<THE> (<quick>) <fox>", 3]),
                ("return (string.gsub('abc', '%w', {a = '1', b = true and 'x'}))", b"1xc"),
                ("return (string.gsub('abc', '', '-'))", b"-a-b-c-"),
                ("local t = {}; for k, v in string.gmatch('a=1, b=2', '(%w)=(%w)') do t[#t + 1] = k .. v end; "
                 "return t", [b"a1", b"b2"]),
                ("return select(2, pcall(string.find, 'a', '%'))", b"malformed pattern (ends with '%')"),
                ("return select(2, pcall(string.find, 'a', '[a'))", b"malformed pattern (missing ']')"),
                ("return select(2, pcall(string.find, 'a', '%1'))", b"invalid capture index"),
                ("return select(2, pcall(string.rep))",
                 b"bad argument #1 to '?' (string expected, got no value)")]:
            equal(c("EVAL", script, "0"), expected)


@test
def cmsgpack_packs_as_redis_does(cwd):
    with Redis(cwd) as server, server.client() as c:
        for value, packed in [
                ("1", "01"), ("-1", "ff"), ("-33", "d0df"), ("255", "ccff"), ("65536", "ce00010000"),
                ("2^40", "cf0000010000000000"), ("-2^40", "d3ffffff0000000000"), ("1.5", "ca3fc00000"),
                ("0.1", "cb3fb999999999999a"), ("'abc'", "a3616263"), ("('x'):rep(40)", "d928" + "78" * 40),
                ("nil, true, false", "c0c3c2"), ("{}", "90"), ("{1, 2}", "920102"), ("{a = 1}", "81a16101"),
                ("{1, nil, 3}", "8201010303"), ("redis.call", "c0")]:
            equal(c("EVAL", f"return cmsgpack.pack({value})", "0").hex(), packed)
        equal(c("EVAL", "return {cmsgpack.unpack(ARGV[1])}", "0",
                bytes.fromhex("93a16102c3" "81a16bcd0100" "e0")),
              [[b"a", 2, 1], [], -32])
        equal(c("EVAL", "local m = cmsgpack.pack(1, 'two', 3); "
                "local offset, first = cmsgpack.unpack_one(m); "
                "return {offset, first, cmsgpack.unpack_limit(m, 5, offset)}", "0"),
              [1, 1, -1, b"two", 3])
        for script, text in [
                ("cmsgpack.pack()", "MessagePack pack needs input"),
                ("cmsgpack.unpack('\\147\\1')", "Missing bytes in input."),
                ("cmsgpack.unpack('\\193')", "Bad data format in input."),
                ("cmsgpack.unpack_one('a', 5)", "Start offset 5 greater than input length 1."),
                ("cmsgpack.unpack_one('a', -1)", "Invalid request to unpack with offset of -1"),
                ("cmsgpack.unpack(('\\145'):rep(3000))", "too many nested data structures"),
                ("cmsgpack.unpack(('\\1'):rep(100000))", "too many return values at once"),
                ("cmsgpack.pack = 1", "Attempt to modify a readonly table")]:
            contains(c.error("EVAL", script, "0"), text)


@test
def struct_packs_by_formats(cwd):
    with Redis(cwd) as server, server.client() as c:
        for args, packed in [
                ("'>I2c0', 5, 'hello'", "0005" + b"hello".hex()), ("'<i4', -2", "feffffff"), ("'bxB', -1, 255", "ff00ff"),
                ("'>hH', 1, 2", "00010002"), ("'s', 'ab'", "616200"), ("'!4bi4', 1, 2", "0100000002000000"),
                ("'>d', 1.5", "3ff8000000000000"), ("'<f', 1.5", "0000c03f"), ("'>i3', 66051", "010203"),
                ("'c3', 'abcdef'", "616263"), ("'>l', -1", "ff" * 8)]:
            equal(c("EVAL", f"return struct.pack({args})", "0").hex(), packed)
        equal(c("EVAL", "return {struct.unpack('>I2c0si3', ARGV[1])}", "0",
                bytes.fromhex("0003616263" "787900" "fffffe")), [b"abc", b"xy", -2, 12])
        equal(c("EVAL", "return {struct.size('!8bd'), struct.unpack('B', 'abc', 2)}", "0"), [16, 98, 3])
        for script, text in [
                ("struct.unpack('i4', 'ab')", "data string too short"),
                ("struct.pack('i33', 1)", "integral size 33 is larger than limit of 32"),
                ("struct.pack('i99999999999', 1)", "integral size overflow"),
                ("struct.pack('z', 1)", "invalid format option 'z'"),
                ("struct.size('s')", "option 's' has no fixed size"),
                ("struct.pack('!3i', 1)", "alignment 3 is not a power of 2"),
                ("struct.unpack('c0', 'ab')", "format 'c0' needs a previous size"),
                ("struct.unpack('s', 'ab')", "unfinished string in data")]:
            contains(c.error("EVAL", script, "0"), text)


@test
def libraries_can_be_gone_through(cwd):
    with Redis(cwd) as server, server.client() as c:
        names = "local t = {}; for k in pairs(%s) do t[#t + 1] = k end; table.sort(t); return t"
        equal(c("EVAL", names % "struct", "0"), [b"pack", b"size", b"unpack"])
        assert b"redis" in c("EVAL", names % "_G", "0")
        equal(c("EVAL", "return {next({}) == nil, next({5}), (next(bit)) ~= nil}", "0"), [1, 1, 1])
        contains(c.error("EVAL", "pairs(5)", "0"), "table expected, got number")


@test
def distant_ends_of_a_table_are_refused_before_lua_computes_with_them(cwd):
    with Redis(cwd) as server, server.client() as c:
        for first, last in ((-2147483648, 2147483647), (-2147483647, 2147483647), (-10, 2147483647),
                            (-2147483648, 10), (1, 8001), (0, 2147483647)):
            contains(c.error("EVAL", f"return {{unpack(ARGV, {first}, {last})}}", 0, "a"), "too many results to unpack")
        equal(c("EVAL", "return {unpack(ARGV, 2147483647, -2147483648)}", 0, "a"), [])
        equal(c("EVAL", "return select('#', unpack(ARGV, -10, 7000))", 0, "a"), 7011)
        equal(c("EVAL", "return {unpack(ARGV)}", 0, "a", "b"), [b"a", b"b"])
        contains(c.error("EVAL", "table.insert({}, -2147483648, 1)", 0), "position out of bounds")
        equal(c("EVAL", "local t = {1}; table.insert(t, -5, 2); return t[-5]", 0), 2)


READS, WRITES = "return redis.call('GET', KEYS[1])", "return redis.call('INCR', KEYS[1])"
SAYS = "#!lua flags=no-writes\n" + READS
FUNCTIONS = f"""#!lua name=l
local function reads(KEYS) {READS} end
redis.register_function{{function_name='says', callback=reads, flags={{'no-writes'}}}}
redis.register_function{{function_name='does', callback=reads}}
"""


def sha(text):
    return hashlib.sha1(text.encode()).hexdigest()


# Calls, and whether a pause of writes is about them.
PAUSED = [
    ([("EVAL", READS, 1, "k")], True),
    ([("EVAL", SAYS, 1, "k")], False),
    ([("EVAL", "#!lua flags=allow-stale,no-writes\n" + READS, 1, "k")], False),
    ([("EVAL", "#!lua\n" + READS, 1, "k")], True),
    ([("EVAL", "#!lua flags=no-writes,none\n" + READS, 1, "k")], True),
    ([("EVAL", "#!lua flags=no-writes", 1, "k")], True),
    ([("EVAL_RO", READS, 1, "k")], False),
    ([("EVALSHA", sha(READS), 1, "k")], True),
    ([("EVALSHA", sha(SAYS), 1, "k")], False),
    ([("EVALSHA", sha(SAYS).upper(), 1, "k")], False),
    ([("EVALSHA", sha("none"), 1, "k")], True),
    ([("EVALSHA", "none", 1, "k")], True),
    ([("EVALSHA_RO", sha(READS), 1, "k")], False),
    ([("FCALL", "says", 1, "k")], False),
    ([("FCALL", "SAYS", 1, "k")], False),
    ([("FCALL", "does", 1, "k")], True),
    ([("FCALL", "none", 1, "k")], True),
    ([("FCALL_RO", "says", 1, "k")], False),
    ([("MULTI",), ("EVAL", SAYS, 1, "k"), ("FCALL", "says", 1, "k"), ("GET", "k"), ("EXEC",)], False),
    ([("MULTI",), ("FCALL", "says", 1, "k"), ("EVAL", READS, 1, "k"), ("EXEC",)], True),
    ([("WATCH", "k"), ("MULTI",), ("FCALL", "says", 1, "k"), ("EXEC",)], False),
]


def waits(port, call):
    """Whether the call waits in a pause of writes; and what it is answered when that is over."""
    with Client(port) as c, Client(port) as other:
        for command in call[:-1]:
            c(*command)
        other("CLIENT", "PAUSE", "100000", "WRITE")
        c.send(*call[-1])
        until(lambda: b"blocked_clients:1\r\n" in other("INFO", "clients") or select.select([c.socket], [], [], 0)[0])
        waited = not select.select([c.socket], [], [], 0)[0]
        other("CLIENT", "UNPAUSE")
        return waited, c.read()


def pauses(port):
    with Client(port) as c:
        c("SET", "k", "1")
        c("FUNCTION", "LOAD", FUNCTIONS)
        for text in (READS, SAYS):
            c("SCRIPT", "LOAD", text)
        # What says that it does not write must not.
        contains(c.error("EVAL", "#!lua flags=no-writes\n" + WRITES, 1, "k"), "Write commands are not allowed")
    return [waits(port, call) for call, _ in PAUSED]


@test
def a_pause_of_writes_lets_those_pass_who_say_that_they_do_not_write(cwd):
    with Redis(cwd) as server:
        found = pauses(server.port)
    for (call, expected), (waited, _) in zip(PAUSED, found):
        equal((call, waited), (call, expected))
    equal([answer for (call, _), (_, answer) in zip(PAUSED, found) if call == [("FCALL", "says", 1, "k")]], [b"1"])


@test
def a_pause_of_writes_is_about_the_scripts_that_redis_lets_wait(cwd):
    if not PROGRAM:
        raise Skip("no redis-server")
    with Peer() as redis:
        equal([waited for waited, _ in pauses(redis.port)], [expected for _, expected in PAUSED])


main()
