"""Documents of Redis's door: JSON.* as RedisJSON 2.x has it, small ones in a text and others in leaves."""

import json
import random
import re

from harness import contains, equal, main, make_quick_store, ok, run, seed, test
from redis_server import Redis, later
from resp import Error

PAD = "p" * 5000  # a document that has it lies in leaves
NO_KEY = "ERR could not perform this operation on a key that doesn't exist"


def put(c, key, value, path="$"):
    equal(c("JSON.SET", key, path, json.dumps(value)), "OK")


def got(c, key, path="."):
    return json.loads(c("JSON.GET", key, path))


def each_form(check):
    """A test of both forms: `check` makes its documents by a function, and paths do not meet what pads them."""
    def run_both(cwd):
        with Redis(cwd, "--no-sync") as server, server.client() as c:
            check(c, lambda key, value: put(c, key, value))
            c("FLUSHALL")
            check(c, lambda key, value: put(c, key, [value, PAD] if not isinstance(value, dict)
                                            else {**value, "pad": PAD}))
        contains(ok("verify", cwd=cwd).stdout, "0 findings")

    run_both.__name__ = check.__name__
    return test(run_both)


@test
def texts_come_back_as_redisjson_writes_them(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        for text, written in [
                ("1", "1"), ("-0", "-0.0"), ("1.0", "1.0"), ("1e2", "100.0"), ("1E400", "1.7976931348623157e308"),
                ("1e16", "1e16"), ("123456789012345680", "123456789012345680"), ("1e15", "1000000000000000.0"),
                ("0.00001", "0.00001"), ("0.000001", "1e-6"), ("1.5e-7", "1.5e-7"), ("-2.25", "-2.25"),
                ("9223372036854775807", "9223372036854775807"), ("18446744073709551615", "18446744073709551615"),
                ("18446744073709551616", "1.8446744073709552e19"), ("5e-324", "5e-324"), ("100.5", "100.5"),
                (' { "b" : 1 , "a" : [ ] , "b" : {"c":null} } ', '{"b":{"c":null},"a":[]}'),
                (r'"\u00e9\n\/\u0001\"\\"', '"é\\n/\\u0001\\"\\\\"'), ("[true,false,null]", "[true,false,null]")]:
            equal(c("JSON.SET", "d", "$", text), "OK")
            equal(c("JSON.GET", "d").decode(), written)
            # The same out of leaves.
            equal(c("JSON.SET", "l", "$", f'[{text},"{PAD}"]'), "OK")
            equal(c("JSON.GET", "l", "$[0]").decode(), f"[{written}]")
        put(c, "d", {"a": [1, {"b": "c"}], "e": [], "o": {}})
        equal(c("JSON.GET", "d", "INDENT", "\t", "NEWLINE", "\n", "SPACE", " ", "$").decode(),
              '[\n\t{\n\t\t"a": [\n\t\t\t1,\n\t\t\t{\n\t\t\t\t"b": "c"\n\t\t\t}\n\t\t],\n\t\t"e": [],\n\t\t"o": {}\n\t}\n]')
        equal(c("JSON.GET", "d", "$.a[0]", "$..b", "SPACE", " "), b'{"$.a[0]": [1],"$..b": ["c"]}')
        equal(c("JSON.GET", "d", ".a[0]", "a[1].b"), b'{".a[0]":1,"a[1].b":"c"}')
        equal(c("JSON.GET", "d", ".a[0]", "$.a[1].b"), b'{".a[0]":[1],"$.a[1].b":["c"]}')
        equal(c.error("JSON.GET", "d", ".a", ".none"), "ERR Path '.none' does not exist")
        for text, error in [("{", "line 1 column"), ("[1,]", "line 1 column"), ("", "line 1"), ("1 2", "column"),
                            ("[" * 129 + "]" * 129, "recursion limit exceeded"), (b'"\xff"', "column"), ("nan", "column")]:
            contains(c.error("JSON.SET", "d", "$", text), error)


@each_form
def documents_and_parts_of_them_are_set(c, make):
    make("d", {"a": 1, "o": {"x": 1, "y": [1, 2, {"x": 3}]}})
    equal(c("JSON.SET", "d", "$.a", "2"), "OK")
    equal(c("JSON.SET", "d", ".o.y[2].new", '{"k":[]}'), "OK")
    equal(c("JSON.SET", "d", "$..x", '"all"'), "OK")
    equal(got(c, "d", "$.a") + got(c, "d", "$.o"), [2, {"x": "all", "y": [1, 2, {"x": "all", "new": {"k": []}}]}])
    # What is below a value that is set is not set.
    equal(c("JSON.SET", "d", "$..y", "0"), "OK")
    equal(got(c, "d", "$.o"), [{"x": "all", "y": 0}])
    equal([c("JSON.SET", "d", "$.a", "3", "NX"), c("JSON.SET", "d", "$.z", "3", "XX")], [None, None])
    equal([c("JSON.SET", "d", "$.a", "3", "XX"), c("JSON.SET", "d", "$.z", "3", "NX")], ["OK", "OK"])
    equal([c("JSON.SET", "d", "$", "3", "NX"), c("JSON.SET", "none", "$", "3", "XX")], [None, None])
    equal(c("JSON.SET", "d", "$.no.way", "1"), None)
    equal(c("JSON.GET", "d", "$.a", "$.z"), b'{"$.a":[3],"$.z":[3]}')
    equal(c.error("JSON.SET", "none", "$.a", "1"), "ERR new objects must be created at the root")
    equal(c.error("JSON.SET", "d", "$.none.*", "1"), "ERR wrong static path")
    equal(c.error("JSON.SET", "d", "$.o[5]", "1"), "ERR array index out of range")
    equal(c.error("JSON.SET", "d", "$", "1", "NX", "XX"), "ERR syntax error")
    equal(c.error("JSON.SET", "d", "$", "1", "FORMAT", "BSON"), "ERR wrong format")
    # Values that are already there keep their places, new ones come last.
    c("JSON.DEL", "d", "$.pad")
    equal(list(got(c, "d")), ["a", "o", "z"])


@each_form
def merging_changes_adds_and_removes(c, make):
    make("d", {"person": {"name": "Ann", "tags": ["a"], "home": {"city": "X"}}, "n": 1})
    equal(c("JSON.MERGE", "d", "$.person", '{"name":null,"age":5,"home":{"zip":"1","none":null},"tags":{"x":null}}'), "OK")
    equal(got(c, "d", "$.person"), [{"tags": {}, "home": {"city": "X", "zip": "1"}, "age": 5}])
    equal(c("JSON.MERGE", "d", "$", '{"n":null,"new":{"deep":[1]}}'), "OK")
    equal([got(c, "d", "$.n"), got(c, "d", "$.new")], [[], [{"deep": [1]}]])
    equal(c("JSON.MERGE", "d", "$.new.deep", "7"), "OK")
    equal(c("JSON.MERGE", "d", "$.added", '{"a":null,"b":1}'), "OK")
    equal([got(c, "d", "$.new"), got(c, "d", "$.added")], [[{"deep": 7}], [{"a": None, "b": 1}]])
    equal(c("JSON.MERGE", "made", "$", '{"a":null}'), "OK")
    equal(got(c, "made"), {"a": None})


@each_form
def arrays_are_changed_at_any_place(c, make):
    make("d", {"a": list(range(10)), "n": [{"a": [1]}, {"a": "text"}]})
    equal(c("JSON.ARRLEN", "d", "$..a"), [10, 1, None])
    equal(c("JSON.ARRAPPEND", "d", "$..a", '"x"', '{"y":[]}'), [12, 3, None])
    equal(c("JSON.ARRINSERT", "d", "$.a", "0", "-2", "-1"), [14])
    equal(c("JSON.ARRINSERT", "d", "$.a", "-1", "[]"), [15])
    equal(got(c, "d", "$.a"), [[-2, -1, *range(10), "x", [], {"y": []}]])
    equal(c("JSON.ARRPOP", "d", "$.a", "0"), [b"-2"])
    equal(c("JSON.ARRPOP", "d", "$.a"), [b'{"y":[]}'])
    equal(c("JSON.ARRPOP", "d", "$.a", "4"), [b"3"])
    equal(c("JSON.ARRPOP", "d", ".a", "-3"), b"9")
    equal(got(c, "d", "$.a"), [[-1, 0, 1, 2, 4, 5, 6, 7, 8, "x", []]])
    equal(c("JSON.ARRTRIM", "d", "$.a", "2", "-3"), [7])
    equal(got(c, "d", "$.a"), [[1, 2, 4, 5, 6, 7, 8]])
    equal(c("JSON.ARRINDEX", "d", "$.a", "5"), [3])
    equal([c("JSON.ARRINDEX", "d", ".a", "5", "4"), c("JSON.ARRINDEX", "d", ".a", "5", "1", "3"),
           c("JSON.ARRINDEX", "d", ".a", "8", "-2", "-1"), c("JSON.ARRINDEX", "d", ".a", "5.0")], [-1, -1, -1, -1])
    equal(c("JSON.DEL", "d", "$.a[?(@>4 && @<8)]"), 3)
    equal(got(c, "d", "$.a"), [[1, 2, 4, 8]])
    equal(c("JSON.DEL", "d", "$.a[1,-1]"), 2)
    equal(got(c, "d", "$.a[*]"), [1, 4])
    equal(c.error("JSON.ARRINSERT", "d", "$.a", "3", "1"), "ERR index out of bounds")
    equal(c.error("JSON.ARRAPPEND", "d", ".none", "1"), "ERR Path '.none' does not exist or not an array")
    equal(c.error("JSON.ARRPOP", "d", ".n[1].a"), "ERR Path '.n[1].a' does not exist or not an array")
    # Arrays in arrays: the inner ones first.
    make("n", {"a": [[1, 2], [3, [4, 5]]]})
    equal(c("JSON.ARRPOP", "n", "$.a..*", "0"), [b"1", b"3", None, None, None, b"4", None, None])
    equal(got(c, "n", "$.a"), [[[2], [[5]]]])
    equal(c("JSON.ARRTRIM", "n", "$.a", "5", "9"), [0])
    equal(got(c, "n", "$.a"), [[]])
    equal(c("JSON.ARRPOP", "n", "$.a"), [None])


@each_form
def numbers_texts_and_booleans_are_changed(c, make):
    make("d", {"a": 2, "f": 1.5, "t": "é", "b": True, "n": {"a": "x", "b": False, "t": ""}, "big": 2**63 - 1})
    equal(c("JSON.NUMINCRBY", "d", "$..a", "2"), b"[4,null]")
    equal(c("JSON.NUMMULTBY", "d", ".a", "2.5"), b"10.0")
    equal(c("JSON.NUMINCRBY", "d", "$.f", "0.5"), b"[2.0]")
    equal(c.error("JSON.NUMINCRBY", "d", "$.big", "1"), "ERR numeric overflow")
    equal(c.error("JSON.NUMMULTBY", "d", "$.f", "1e308e"), c.error("JSON.SET", "x", "$", "1e308e"))
    equal(c.error("JSON.NUMMULTBY", "d", "$.f", "1e308"), "ERR result is not a number")
    equal(c.error("JSON.NUMINCRBY", "d", "$.a", '"x"'), "ERR bad input number")
    equal(c.error("JSON.NUMINCRBY", "d", ".t", "1"), "ERR Path '.t' does not exist or does not contains a number")
    equal(c("JSON.STRAPPEND", "d", "$..t", '"bc"'), [4, 2])
    equal([c("JSON.STRLEN", "d", ".t"), c("JSON.STRLEN", "d", "$..b")], [4, [None, None]])
    equal(c.error("JSON.STRAPPEND", "d", "$.t", "1"), "WRONGTYPE wrong type of path value - expected string")
    equal(c("JSON.TOGGLE", "d", "$..b"), [0, 1])
    equal(c("JSON.TOGGLE", "d", ".b"), b"true")
    equal(c.error("JSON.TOGGLE", "d", ".a"), "ERR Path '.a' does not exist or not a bool")
    equal([got(c, "d", f"$..{name}") for name in "atb"], [[10.0, "x"], ["ébc", "bc"], [True, True]])
    equal(c("JSON.CLEAR", "d", "$.n"), 1)
    equal(c("JSON.CLEAR", "d", "$['a','b','big','n']"), 2)
    equal(got(c, "d", "$['a','b','big','n']"), [0, True, 0, {}])
    # Paths behind the first one are ignored, as RedisJSON 2.6 does.
    equal(c("JSON.SET", "d", "$.n", "5"), "OK")
    equal(c("JSON.CLEAR", "d", "$.none", "$.n", "["), 0)
    equal(c("JSON.CLEAR", "d", "$.n", "$.none"), 1)


@each_form
def what_documents_have_is_told(c, make):
    make("d", {"o": {"x": 1, "y": [1.5, None, True]}, "s": "text"})
    equal(c("JSON.OBJKEYS", "d", "$.o"), [[b"x", b"y"]])
    equal([c("JSON.OBJKEYS", "d", "$.s"), c("JSON.OBJKEYS", "d", ".none")], [[None], None])
    equal([c("JSON.OBJLEN", "d", "$.o"), c("JSON.OBJLEN", "d", ".o"), c("JSON.OBJLEN", "d", ".none")], [[2], 2, None])
    equal(c("JSON.TYPE", "d", "$.o..*"), [b"integer", b"array", b"number", b"null", b"boolean"])
    equal([c("JSON.TYPE", "d", ".s"), c("JSON.TYPE", "d", ".none"), c("JSON.TYPE", "none")], [b"string", None, None])
    equal(c("JSON.RESP", "d", ".o"), ["{", b"x", 1, b"y", ["[", b"1.5", None, "true"]])
    equal(c("JSON.RESP", "d", "$.s"), [b"text"])
    assert c("JSON.DEBUG", "MEMORY", "d") > c("JSON.DEBUG", "MEMORY", "d", ".o") > 8
    equal([c("JSON.DEBUG", "MEMORY", "none"), c("JSON.DEBUG", "MEMORY", "none", "$")], [0, []])
    equal(len(c("JSON.DEBUG", "HELP")), 2)
    make("e", {"o": {"x": 2}})
    c("SET", "text", "x")
    equal(c("JSON.MGET", "d", "none", "text", "e", "$..x"), [b"[1]", None, None, b"[2]"])
    equal(c("JSON.MGET", "d", "e", ".s"), [b'"text"', None])
    equal(c("JSON.MSET", "d", "$.s", "1", "new", "$", "[2]", "d", "$.o.z", "3"), "OK")
    equal([got(c, "d", "$.s"), got(c, "new"), got(c, "d", "$.o.z")], [[1], [2], [3]])
    equal(c.error("JSON.MSET", "d", "$.s", "5", "other", "$.x", "[2]"), "ERR new objects must be created at the root")
    equal(got(c, "d", "$.s"), [1])
    for words in (("JSON.ARRLEN", "none", "$"), ("JSON.STRLEN", "none", "$"), ("JSON.CLEAR", "none"),
                  ("JSON.OBJKEYS", "none", "$"), ("JSON.TOGGLE", "none", "."), ("JSON.NUMINCRBY", "none", ".", "1")):
        equal(c.error(*words), NO_KEY)
    for words in (("JSON.GET", "text"), ("JSON.SET", "text", "$", "1"), ("JSON.DEL", "text"), ("GET", "d"),
                  ("APPEND", "d", "x"), ("HGET", "d", "x"), ("LPUSH", "d", "x"), ("SORT", "d")):
        contains(c.error(*words), "WRONGTYPE")
    equal(c("JSON.DEL", "d", "$.o"), 1)
    equal([c("JSON.FORGET", "d"), c("JSON.DEL", "d"), c("EXISTS", "d")], [1, 0, 0])


@test
def paths_lead_where_redisjsons_do(cwd):
    document = {"store": {"book": [{"price": 8, "title": "A", "isbn": "1"}, {"price": 12, "title": "Bb"},
                                   {"price": 8.5, "title": "C c"}], "open": True, "owner": None},
                "max": 10, "odd name": {"a.b": 1, "q'\"\\": 2}, "é": 3, "m": [[1, 2], [3]]}
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        put(c, "d", document)
        put(c, "l", {**document, "pad": PAD})
        for path, found in [
                ("$.max", [10]), ("$['max','none','max']", [10, 10]), ('$["odd name"]["a.b"]', [1]),
                (r"""$['odd name']['q\'"\\']""", [2]), (r'''$["odd name"]["q'\"\\"]''', [2]), ("$['é']", [3]),
                ("$.store.book[0].price", [8]), ("$.store.book[-1].title", ["C c"]), ("$.store.book[9]", []),
                ("$.store.book[0,2].price", [8, 8.5]), ("$.store.book[1:].price", [12, 8.5]),
                ("$.store.book[:-1].price", [8, 12]), ("$.store.book[::2].price", [8, 8.5]),
                ("$.store.book[-2:].price", [12, 8.5]), ("$.store.book[2:1]", []), ("$.store.book[*].isbn", ["1"]),
                ("$..price", [8, 12, 8.5]), ("$.store..title", ["A", "Bb", "C c"]), ("$.m[*][0]", [1, 3]),
                ("$.m..[0]", [[1, 2], 1, 3]), ("$..book[1].title", ["Bb"]), ("$.store.*", None),
                ("$.store.book[?(@.isbn)].title", ["A"]), ("$.store.book[?(@.price<10)].title", ["A", "C c"]),
                ("$.store.book[?(@.price>=$.max)].title", ["Bb"]), ("$.store.book[?(@.price==8)].title", ["A"]),
                ("$.store.book[?(@.price!=8)].title", ["Bb", "C c"]), ('$.store.book[?(@.title=="Bb")].price', [12]),
                ("$.store.book[?(@.title=='A' || @.price>10 && @.title=='x')].price", [8]),
                ("$.store.book[?((@.title=='A' || @.price>10) && @.price>9)].price", [12]),
                ("$.store.book[?(@.title =~ '^[AB]')].price", [8, 12]), ("$.store.book[?(@.title=~'(')]", []),
                ("$.store.book[?@.price>11].price", [12]), ("$.store[?(@==true)]", [True]),
                ("$.store[?(@==null)]", [None]), ("$.m[?(@[?(@==3)])]", [[3]]), ("$.m[?(@[0]==1)]", [[1, 2]]),
                ("$.max.none", []), ("$.m.none", []), ("$. max", [10]), ("$.[\"max\"]", [10])]:
            answers = [json.loads(c("JSON.GET", key, path)) for key in "dl"]
            equal(answers[0], answers[1])
            if found is not None:
                equal((path, answers[0]), (path, found))
        for path in ("$.", "$[", "$['a'", "$[1", "$[?(", "$[?(@.a=)]", "$..", "$.a b", "$[1:2:0]", "$[?(@ ~ 1)]",
                     "$.a[?(@>1]", "$['a',]", "$.é", "$[99999999999999999999]"):
            contains(c.error("JSON.GET", "d", path), " of the path" if path != "$.a b" else "no step")
        # Limits.
        contains(c.error("JSON.GET", "d", "$" + ".a" * 257), "JSONPATH_STEPS")
        contains(c.error("JSON.GET", "d", "$" + "[?(@" * 9), "JSONPATH_NESTED")
        contains(c.error("JSON.GET", "d", "$[?" + "(" * 33), "JSONPATH_BRACKETS")
        contains(c.error("JSON.GET", "d", "$." + "a" * 70000), "JSONPATH_BYTES")
        put(c, "many", [[0] * 40] * 40)
        contains(c.error("JSON.GET", "many", "$[?(" + " || ".join(["$..[?(@.x)]"] * 300) + ")]"), "JSONPATH_VISITS")
        put(c, "deep", eval("[" * 60 + "1" + "]" * 60))
        contains(c.error("JSON.GET", "deep", "$" + "..*" * 6), "JSONPATH_MATCHES")
        equal(c("JSON.SET", "top", "$", "[" * 128 + "]" * 128), "OK")
        for pad in ("", PAD):
            put(c, "o", {"a": [], "pad": pad})
            equal(c.error("JSON.ARRAPPEND", "o", "$.a", "[" * 127 + "]" * 127), "ERR recursion limit exceeded")
            equal(c.error("JSON.SET", "o", "$.b", "[" * 128 + "]" * 128), "ERR recursion limit exceeded")
            equal(c("JSON.ARRAPPEND", "o", "$.a", "[" * 126 + "]" * 126), [1])


# ---- Both forms alike ----

def random_value(rnd, depth=0):
    if depth < 3 and rnd.random() < 0.4:
        if rnd.random() < 0.5:
            return [random_value(rnd, depth + 1) for _ in range(rnd.randrange(5))]
        return {name: random_value(rnd, depth + 1) for name in rnd.sample("abcd", rnd.randrange(4))}
    return rnd.choice([0, 1, 2.5, -3, "", "text", "x" * 300, True, False, None, 2**64 - 1])


def random_path(rnd):
    step = lambda: rnd.choice([".a", ".b", ".c", ".d", "[0]", "[-1]", "[1]", ".a[*]", "..a", "..b", "[0:2]",
                               ".a[?(@>0)]", ".b.*", "['a','c']", ".c[?(@.a)]"])
    return "$.d" + "".join(step() for _ in range(rnd.randrange(4)))


def random_call(rnd):
    path, value = random_path(rnd), lambda: json.dumps(random_value(rnd, 1))
    return rnd.choice([
        lambda: ("JSON.SET", path, value()), lambda: ("JSON.SET", path, value()),
        lambda: ("JSON.SET", path, value(), "NX"), lambda: ("JSON.MERGE", path, value()),
        lambda: ("JSON.DEL", path) if path != "$.d" else ("JSON.TYPE", path), lambda: ("JSON.CLEAR", path),
        lambda: ("JSON.ARRAPPEND", path, value(), value()), lambda: ("JSON.ARRAPPEND", path, value()),
        lambda: ("JSON.ARRINSERT", path, rnd.randrange(-2, 3), value()), lambda: ("JSON.ARRPOP", path, rnd.randrange(-3, 4)),
        lambda: ("JSON.ARRTRIM", path, rnd.randrange(-4, 4), rnd.randrange(-4, 4)), lambda: ("JSON.NUMINCRBY", path, 1),
        lambda: ("JSON.NUMMULTBY", path, 0.5), lambda: ("JSON.STRAPPEND", path, '"more"'), lambda: ("JSON.TOGGLE", path),
        lambda: ("JSON.ARRLEN", path), lambda: ("JSON.OBJKEYS", path), lambda: ("JSON.GET", path),
        lambda: ("JSON.ARRINDEX", path, value())])()


@test
def random_changes_do_the_same_to_texts_and_to_leaves(cwd):
    rnd = random.Random(seed(1))
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        c("FROND.HISTORY", "3600")
        past = []
        for turn in range(60):
            value = {"d": [random_value(rnd), random_value(rnd)] if turn % 2 else {"a": random_value(rnd), "b": random_value(rnd)}}
            put(c, "text", value)
            put(c, "leaves", {**value, "pad": PAD})
            history = []
            for _ in range(30):
                name, *rest = random_call(rnd)
                history.append((name, *rest))
                pair = c.pipeline((name, "text", *rest), (name, "leaves", *rest))
                same = [str(x) if isinstance(x, Error) else x for x in pair]
                assert same[0] == same[1], (history, same, value)
            texts = [c("JSON.GET", key, "$.d") for key in ("text", "leaves")]
            assert texts[0] == texts[1], (history, texts, value)
            past.append((later(c), texts[0]))
        for at, text in past:
            equal([c("FROND.AT", at, "JSON.GET", key, "$.d") for key in ("text", "leaves")], [text, text])
        equal(c("DBSIZE"), 2)
        c("FROND.HISTORY", "0")
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


# ---- Beside other commands ----

@test
def keys_of_documents_are_keys_as_any_other(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c, server.client() as other:
        c("CONFIG", "SET", "notify-keyspace-events", "KEA")
        other("PSUBSCRIBE", "__keyevent@0__:*")
        told = lambda: other.read()[3]
        put(c, "d", {"a": [1, 2], "pad": PAD})
        put(c, "s", {"a": [1]})
        equal([told(), told()], [b"d", b"s"])
        for words, event in [(("JSON.ARRAPPEND", "d", "$.a", "3"), "arrappend"), (("JSON.DEL", "d", "$.a[0]"), "del"),
                             (("JSON.ARRPOP", "d", "$.a"), "arrpop"), (("JSON.MERGE", "d", "$", '{"n":1}'), "merge"),
                             (("JSON.NUMINCRBY", "d", "$.n", "1"), "numincrby"), (("JSON.CLEAR", "d", "$.n"), "clear"),
                             (("JSON.MSET", "d", "$.n", "true"), "mset"), (("JSON.TOGGLE", "d", "$.n"), "toggle"),
                             (("JSON.FORGET", "d", "$.n"), "del"), (("JSON.STRAPPEND", "d", "$.pad", '"q"'), "strappend"),
                             (("JSON.ARRINSERT", "d", "$.a", "0", "3"), "arrinsert"), (("JSON.ARRTRIM", "d", "$.a", "0", "0"), "arrtrim")]:
            c(*words)
            message = other.read()
            equal(message[2:], [f"__keyevent@0__:json.{event}".encode(), b"d"])
        # Nothing changes, and nothing is told.
        for words in (("JSON.DEL", "d", "$.none"), ("JSON.TOGGLE", "d", "$.a"), ("JSON.SET", "d", "$.pad", "1", "NX")):
            c(*words)
        equal([c("TYPE", "d"), c("OBJECT", "ENCODING", "d")], ["ReJSON-RL", b"raw"])
        equal(sorted(c("SCAN", "0", "TYPE", "rejson-rl", "COUNT", "100")[1]), [b"d", b"s"])
        equal(c("EXPIRE", "d", "1000"), 1)
        put(c, "d", 5, "$.a")
        put(c, "s", {"b": 1})
        assert 0 < c("TTL", "d") <= 1000
        # A document that is set as a whole keeps its time, as in RedisJSON.
        c("EXPIRE", "s", "1000")
        put(c, "s", {"pad": PAD})
        assert c("TTL", "s") > 0
        for key in ("d", "s"):
            was = got(c, key)
            equal([c("COPY", key, "copy", "REPLACE"), c("RENAME", key, "moved"), c("MOVE", "moved", "1")], [1, "OK", 1])
            c("SELECT", "1")
            equal(got(c, "moved"), was)
            equal(c("JSON.SET", "moved", "$.more", "1"), "OK")
            c("DEL", "moved")
            c("SELECT", "0")
            equal(got(c, "copy"), was)
        equal(c("JSON.SET", "copy", "$.x", "1"), "OK")
        assert c("MEMORY", "USAGE", "copy") > 0
        # WATCH hears of a change of any part.
        with server.client() as watcher:
            for change in (("JSON.SET", "copy", "$.x", "2"), ("JSON.GET", "copy")):
                watcher("WATCH", "copy")
                c(*change)
                watcher("MULTI")
                watcher("JSON.SET", "copy", "$.y", "3")
                equal(watcher("EXEC"), None if change[0] == "JSON.SET" else ["OK"])
        equal(c("EVAL", "redis.call('JSON.SET', KEYS[1], '$.z', '4') return redis.call('JSON.GET', KEYS[1], '$.z')",
                "1", "copy"), b"[4]")
        contains(c.error("DUMP", "copy"), "documents are not dumped")
        c("PEXPIRE", "copy", "1")
        while c("DBSIZE"):
            pass
        equal(c("JSON.GET", "copy"), None)
        equal(c("COMMAND", "GETKEYS", "JSON.MGET", "a", "b", "$"), [b"a", b"b"])
        equal(c("COMMAND", "GETKEYS", "JSON.MSET", "a", "$", "1", "b", "$", "2"), [b"a", b"b"])
        equal(c("COMMAND", "GETKEYS", "JSON.DEBUG", "MEMORY", "a"), [b"a"])
        assert b"json.get" in c("ACL", "CAT", "read") and b"json.set" in c("ACL", "CAT", "write")
    contains(ok("verify", cwd=cwd).stdout, "0 findings")
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        c("HELLO", "3")
        put(c, "d", {"a": 1, "b": "x"})
        equal(c("JSON.TYPE", "d", "$.a"), [[b"integer"]])
        equal(c("JSON.TYPE", "d", ".a"), [b"integer"])
        equal(c("JSON.NUMINCRBY", "d", "$.*", "1.5"), [2.5, None])
        equal(c("JSON.GET", "d", "FORMAT", "STRING", "$.a"), b"[2.5]")


@test
def large_documents_are_set_in_databases_with_a_past(cwd):
    """A transaction writes a record beside each leaf: what has no room for that is a text."""
    with Redis(cwd, "--no-sync") as server, server.client(timeout=60) as c:
        for history in ("0", "3600"):
            c("FROND.HISTORY", history)
            for count in (1000, 20000, 28000, 45000, 70000):
                put(c, "d", list(range(count)))
                put(c, "d", [0, {"a": list(range(count))}])
                equal(c("JSON.ARRLEN", "d", "$[1].a"), [count])
                put(c, "d", {"b": list(range(count))}, "$[0]")
                equal(c("JSON.ARRLEN", "d", "$[0].b"), [count])
        at = later(c)
        put(c, "d", 5)
        equal(c("FROND.AT", at, "JSON.ARRLEN", "d", "$[0].b"), [70000])
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


@test
def people_have_the_documents_of_their_keys(cwd):
    admin = ("--admin", "root:secret")
    with Redis(cwd, *admin) as server, server.client() as c:
        c("AUTH", "root", "secret")
        put(c, "cache:a", {"x": 1})
        put(c, "b", {"x": 1})
        server.stop()
    make_quick_store(cwd)
    ok("user", "add", "ann", "--roles", "redis:~cache:* +@read +json.set", cwd=cwd, stdin="pw\n")
    with Redis(cwd, *admin) as server, server.client() as c:
        c("AUTH", "ann", "pw")
        equal(c("JSON.GET", "cache:a", "$.x"), b"[1]")
        put(c, "cache:a", 2, "$.x")
        for words in (("JSON.GET", "b"), ("JSON.MGET", "cache:a", "b", "$"), ("JSON.SET", "b", "$", "1"),
                      ("JSON.DEL", "cache:a"), ("JSON.DEBUG", "MEMORY", "b"), ("JSON.MSET", "cache:a", "$", "1")):
            contains(c.error(*words), "NOPERM")


# ---- What is stored ----

LONG = "ü" * 40000


def make_documents(c):
    put(c, "small", {"a": [1, 2.5, None, True, "t"], "big": 2**64 - 1})
    put(c, "leaves", {"a b": {"c": [10, 20, 30, {"d": "x"}]}, "long": LONG, "nul\0": -1.5, "pad": PAD, "e": [], "o": {}})
    put(c, "name", {"n" * 9000: [1], "pad": PAD})
    equal(c("JSON.ARRPOP", "leaves", "$['a b'].c", "0"), [b"10"])
    equal(c("JSON.ARRINSERT", "leaves", "$['a b'].c", "0", "5", "6"), [5])


@test
def documents_are_drawn_dumped_loaded_moved_and_checked(cwd):
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        make_documents(c)
        was = {key: c("JSON.GET", key) for key in ("small", "leaves", "name")}
        equal(c("JSON.GET", "leaves", "$.long"), json.dumps([LONG], ensure_ascii=False).encode())
        equal(c("JSON.STRAPPEND", "leaves", "$.long", '"!"'), [80001])
        equal(c("JSON.STRLEN", "leaves", "$.long"), [80001])
        put(c, "leaves", LONG, "$.long")
        equal(c("JSON.SET", "name", "$.x", "1"), "OK")
        equal(c("JSON.DEL", "name", "$.x"), 1)
        # What leaves cannot hold makes a text of a document.
        put(c, "turned", {"a": {}, "pad": PAD})
        equal(c("JSON.SET", "turned", "$.a." + "n" * 8500, "1"), "OK")
        equal(c("JSON.OBJLEN", "turned", "$.a"), [1])
        was["turned"] = c("JSON.GET", "turned")
        equal({key: c("JSON.GET", key) for key in was}, was)
    drawn = ok("inspect", "redis:0", cwd=cwd).stdout
    for line in ('$["a b"].c -> [] of 5 elements from [-1] on', '$["a b"].c[-1] -> 5', "$.long -> a text of 80000 bytes",
                 '$["nul\\u0000"] -> -1.5', "$.e -> [] of 0 elements", "$.o -> {} of 0 members", "$ -> {} of 6 members",
                 """ -> '{"a":[1,2.5,null,true,"t"],"big":18446744073709551615}'""", "[Redis-JSON-Type]"):
        contains(drawn, line)
    contains(ok("verify", cwd=cwd).stdout, "0 findings")
    ok("move", "--from", "embedded:./data", "--to", "embedded:moved", "redis:0", cwd=cwd)
    text = ok("dump", "redis:0", "--store", "embedded:moved", "--quiet", cwd=cwd).stdout
    target = ("--store", "embedded:loaded")
    for _ in range(2):
        ok("load", "redis:0", "-", *target, cwd=cwd, stdin=text)
        equal(ok("dump", "redis:0", "--quiet", *target, cwd=cwd).stdout, text)
    for name in ("moved", "loaded"):
        contains(ok("verify", "--store", f"embedded:{name}", cwd=cwd).stdout, " 0 findings")
        with Redis(cwd, "--store", f"embedded:{name}") as server, server.client() as c:
            equal({key: c("JSON.GET", key) for key in was}, was)
            equal(c("DBSIZE"), len(was))
    head = text.split("\n")[0] + "\n"
    for line in ('"text":"{"', '"leaves":[[[],0]]', '"leaves":[[[],0,[1]]]', '"leaves":[[[null],0,1]]',
                 '"offset":5,"text":"{}"', '"leaves":[[[],0,{"members":"x"}]]'):
        bad = f'{head}{{"key":"k","type":"json",{line}}}\n'
        assert run("load", "redis:1", "-", cwd=cwd, stdin=bad).returncode, line


@test
def the_check_finds_what_does_not_fit_together(cwd):
    """A dump is loaded without its lines being compared, so each of these makes a broken document."""
    head = '{"frond":"redis","format":1,"history_seconds":0}\n'
    whole = [[[], 0, {"members": 2, "next": 2}], [["a"], 0, {"elements": 2, "first": 5}], [["a", 5], 0, 1], [["a", 6], 0, 2],
             [["t"], 1, {"bytes": 3}], [["t"], 0, {"piece": "abc"}]]
    nul = ["x\u0000" * 500, "y\u0000z"]

    def found(leaves):
        line = json.dumps({"key": "k", "type": "json", "leaves": leaves})
        ok("load", "redis:0", "-", cwd=cwd, stdin=head + line + "\n")
        out = run("verify", cwd=cwd).stdout
        return int(re.search(r"(\d+) findings", out)[1])

    equal(found(whole), 0)
    equal(found([[[], 0, {"members": 2, "next": 2}], [nul[:1], 0, nul[1] * 500], [nul[1:], 1, None]]), 0)
    for at in range(len(whole)):
        assert found(whole[:at] + whole[at + 1:]), whole[at]
    for at, changed in [(0, [[], 0, {"members": 3, "next": 3}]), (0, [[], 0, {"members": 2, "next": 1}]), (0, [[], 1, {"members": 2, "next": 2}]),
                        (1, [["a"], 0, {"elements": 2, "first": 4}]), (1, [["a"], 0, 5]), (2, [["a", "x"], 0, 1]), (2, [["a", 5], 1, 1]),
                        (4, [["t"], 1, {"bytes": 4}]), (5, [["t"], 1, {"piece": "abc"}]), (5, [["t"], 0, {"piece": "abcd"}]), (0, [[], 0, 7])]:
        assert found(whole[:at] + [changed] + whole[at + 1:]), changed
    # Whoever asks for it is told, and the server goes on.
    assert found(whole[:3] + whole[4:])
    with Redis(cwd, "--no-sync") as server, server.client() as c:
        contains(c.error("JSON.GET", "k", "$.a"), "cannot be read")
        equal(c("DEL", "k"), 1)
    contains(ok("verify", cwd=cwd).stdout, "0 findings")


main()
