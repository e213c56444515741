"""Collections of MongoDB's clients by the commands: dump, load, move, backup, verify. Documents come
as Extended JSON, so that no server is needed to write them."""

import json

from harness import Server, contains, equal, main, ok, run, test

OTHER = ("--store", "embedded:other")

# A document for each type, as canonical Extended JSON writes it, in the order of their _ids.
TYPES = [
    '{"_id":{"$minKey":1},"first":{"$maxKey":1}}',
    '{"_id":null}',
    '{"_id":{"$numberInt":"-7"},"long":{"$numberLong":"9007199254740993"}}',
    '{"_id":{"$numberDouble":"0.5"},"nan":{"$numberDouble":"NaN"},"zero":{"$numberDouble":"-0.0"}}',
    '{"_id":{"$numberDecimal":"1.50"},"huge":{"$numberDecimal":"1E+6000"}}',
    '{"_id":"text","b":{"1":"a name of digits","a":[[],{},[{"x":null}]]},"a":"Grüße \\u0000 世界"}',
    '{"_id":{"a":{"$numberInt":"1"}},"code":{"$code":"f()","$scope":{"x":{"$numberInt":"1"}}}}',
    '{"_id":{"$binary":{"base64":"AAEC","subType":"80"}},"old":{"$undefined":true}}',
    '{"_id":{"$oid":"5f0000000000000000000001"},"symbol":{"$symbol":"s"}}',
    '{"_id":false,"pattern":{"$regularExpression":{"pattern":"^a","options":"i"}}}',
    '{"_id":{"$date":{"$numberLong":"1600000000000"}}}',
    '{"_id":{"$timestamp":{"t":1,"i":2}},"twice":true}',
]


def header(scheme="packed", options="{}"):
    return f'{{"frond":"collection","format":1,"scheme":"{scheme}","options":{options}}}\n'


INDEXES = [
    '{"v":{"$numberInt":"2"},"key":{"n":{"$numberInt":"1"},"tags":{"$numberInt":"-1"}},"name":"n_tags"}',
    '{"v":{"$numberInt":"2"},"key":{"email":{"$numberInt":"1"}},"name":"email","unique":true,"sparse":true}',
    '{"v":{"$numberInt":"2"},"key":{"n":"hashed"},"name":"h","hidden":true,'
    '"partialFilterExpression":{"n":{"$gte":{"$numberInt":"5"}}}}',
]
VALIDATOR = '{"validator":{"n":{"$exists":true}},"validationLevel":"strict","validationAction":"error"}'


def indexed(scheme="packed", options="{}", indexes=INDEXES):
    return (f'{{"frond":"collection","format":2,"scheme":"{scheme}","options":{options},'
            f'"indexes":[{",".join(indexes)}]}}\n')


def documents(count, step=1):
    return "".join(f'{{"_id":{{"$numberInt":"{i}"}},"n":{{"$numberInt":"{i // 3}"}},'
                   f'"tags":["a","t{i % 7}"],"email":"e{i}"}}\n' for i in range(0, count, step))


def dumped(cwd, db, *options):
    return ok("dump", db, "--quiet", *options, cwd=cwd).stdout


def load(cwd, db, text, *options):
    return ok("load", db, "-", *options, cwd=cwd, stdin=text).stdout


def whole(cwd, *options):
    contains(ok("verify", *options, cwd=cwd).stdout, " 0 findings")


@test
def a_dump_of_a_collection_keeps_types_order_scheme_and_options(cwd):
    for scheme in ("packed", "exploded"):
        options = '{"validator":{"a":{"$gt":{"$numberLong":"1"}}}}'
        text = header(scheme, options) + "\n".join(TYPES) + "\n"
        contains(load(cwd, f"mongo:shop.{scheme}", text), f"12 lines loaded into mongo:shop.{scheme}")
        equal(dumped(cwd, f"mongo:shop.{scheme}"), text)
        load(cwd, f"mongo:shop.{scheme}", dumped(cwd, f"mongo:shop.{scheme}"), *OTHER)
        equal(dumped(cwd, f"mongo:shop.{scheme}", *OTHER), text)
    whole(cwd)
    whole(cwd, *OTHER)


@test
def documents_take_the_place_of_those_with_their_id(cwd):
    load(cwd, "mongo:a.b", '{"_id":1,"n":1}\n{"_id":2,"n":1}\n', "--scheme", "exploded")
    load(cwd, "mongo:a.b", header() + '{"_id":2.0,"m":true}\n{"_id":3}\n')
    equal(dumped(cwd, "mongo:a.b"), header("exploded") + '{"_id":{"$numberInt":"1"},"n":{"$numberInt":"1"}}\n'
          '{"_id":{"$numberDouble":"2.0"},"m":true}\n{"_id":{"$numberInt":"3"}}\n')
    whole(cwd)


@test
def what_other_programs_export_is_loaded(cwd):
    load(cwd, "mongo:a.lines", '\n{"b":1,"_id":"x"}\n\n{"b":{"$date":"2020-01-01T00:00:00Z"}}\n')
    first, second = map(json.loads, dumped(cwd, "mongo:a.lines").splitlines()[1:])
    equal(list(first), ["_id", "b"])
    equal((list(second["_id"]), second["b"]), (["$oid"], {"$date": {"$numberLong": "1577836800000"}}))
    (cwd / "array.json").write_text('[{"_id":1},\n {"_id":2}]')
    ok("load", "mongo:a.array", "array.json", "--format", "array", cwd=cwd)
    equal(len(dumped(cwd, "mongo:a.array").splitlines()), 3)


@test
def large_documents_and_many_of_them_are_loaded_and_dumped(cwd):
    text = header() + "".join(
        f'{{"_id":{{"$numberInt":"{n}"}},"text":"{"x" * size}"}}\n'
        for n, size in enumerate((10, 2_500_000, 10, 15_000_000, 100_000, 300_000)))
    text += "".join(f'{{"_id":{{"$numberInt":"{n}"}}}}\n' for n in range(100, 2000))
    load(cwd, "mongo:a.b", text, "--batch", "1000")
    assert dumped(cwd, "mongo:a.b") == text
    contains(ok("verify", "mongo:a.b", cwd=cwd).stdout, "1 databases, 1906 documents, ")


@test
def a_load_that_makes_no_sense_is_refused_with_the_line(cwd):
    for text, reason in (
            ('{"_id":1}\n{"_id":2', "standard input:2: "),
            ('{"_id":1}\n{"_id":[1]}\n', "standard input:2: an _id cannot be of the type array"),
            ('{"_id":1}\n\n{"a":{"$oid":"x"}}', "standard input:3: "),
            (header().replace("collection", "rows"), "this is no dump of a collection"),
            (header().replace('"format":1', '"format":4'), "a newer frond has written this dump"),
            (header(options='{"x":{"$oid":1}}'), "standard input:1: "),
            ('{"_id":1,"text":"%s"}' % ("x" * 17_000_000), "standard input:1: ")):
        result = run("load", "mongo:a.b", "-", "--batch", "1", cwd=cwd, stdin=text)
        equal(result.returncode, 1)
        contains(result.stderr, reason)
    equal(dumped(cwd, "mongo:a.b"), header() + '{"_id":{"$numberInt":"1"}}\n')
    contains(run("load", "mongo:none.b", "-", "--no-create", cwd=cwd, stdin='{"_id":1}').stderr,
             "there is no collection mongo:none.b")
    contains(run("load", "mongo:none", "-", cwd=cwd, stdin='{"_id":1}').stderr,
             "no collection can be called")
    equal(run("dump", "mongo:none.b", cwd=cwd).returncode, 1)
    for args in (("load", "mongo:a.b", "--format", "map"), ("load", "mongo:a.b", "--update"),
                 ("dump", "mongo:a.b", "--revs"), ("dump", "mongo:a.b", "--at", "5")):
        equal(run(*args, cwd=cwd).returncode, 2)


@test
def indexes_and_validators_travel_with_a_dump(cwd):
    for scheme in ("packed", "exploded"):
        db = f"mongo:shop.{scheme}"
        text = indexed(scheme, VALIDATOR) + documents(3000)
        load(cwd, db, text, "--batch", "1000")
        assert dumped(cwd, db) == text
        load(cwd, db, dumped(cwd, db), *OTHER)
        assert dumped(cwd, db, *OTHER) == text
        contains(ok("inspect", db, "--limit", "100000", cwd=cwd).stdout,
                 '("indexes", 1) = (2, ready, "n_tags", on ["n", desc "tags"], covering, BSON')
    # Documents that are there get other entries, and one that a unique index refuses ends the load.
    db = "mongo:shop.exploded"
    load(cwd, db, "".join(line.replace('"e', '"f') + "\n" for line in documents(300, 2).splitlines()))
    result = run("load", db, "-", cwd=cwd, stdin='{"_id":5000,"email":"x"}\n{"_id":5001,"email":"e7"}\n')
    equal(result.returncode, 1)
    contains(result.stderr, 'standard input:2: another document has the values that the unique index '
                            '"email" has of this one')
    result = run("load", db, "-", cwd=cwd, stdin='{"_id":5000,"n":[1],"tags":[2]}')
    contains(result.stderr, 'standard input:1: the index "n_tags" cannot have the arrays')
    whole(cwd)
    whole(cwd, *OTHER)


@test
def a_description_of_indexes_that_makes_no_sense_is_refused(cwd):
    for indexes, reason in ((["1"], "an index is a document with a name and a key"),
                            (['{"key":{"a":1}}'], "an index is a document with a name and a key"),
                            ([INDEXES[0], INDEXES[0]], "there are two indexes of one name"),
                            (['{"name":"a","key":{"a":"text"}}'], "standard input:1: "),
                            (['{"name":"a","key":{}}'], "standard input:1: ")):
        result = run("load", "mongo:a.b", "-", cwd=cwd, stdin=indexed(indexes=indexes) + documents(3))
        equal(result.returncode, 1)
        contains(result.stderr, reason)
    equal(run("dump", "mongo:a.b", cwd=cwd).returncode, 1)


@test
def entries_that_are_more_than_a_transaction_takes_are_loaded(cwd):
    wide = ",".join(f'"w{i} {"x" * 900}"' for i in range(200))
    keys = [f'{{"name":"i{n}","key":{{"tags":1,"b{n}":1}}}}' for n in range(8)]
    text = "".join(f'{{"_id":{i},"tags":[{wide}]}}\n' for i in range(20))
    load(cwd, "mongo:a.b", indexed(indexes=keys) + text, "--batch", "1000")
    equal(len(dumped(cwd, "mongo:a.b").splitlines()), 21)
    whole(cwd)


@test
def a_collection_with_indexes_is_moved_and_backed_up(cwd):
    db, text = "mongo:a.b", indexed("exploded", VALIDATOR) + documents(1000)
    load(cwd, db, text)
    ok("backup", "backups", cwd=cwd)
    ok("restore", "backups", "--store", "embedded:third", cwd=cwd)
    ok("move", "--quiet", "--from", "embedded:data", "--to", "embedded:other", db, cwd=cwd)
    for store in (OTHER, ("--store", "embedded:third")):
        assert dumped(cwd, db, *store) == text
        load(cwd, db, '{"_id":7,"email":"other"}\n', *store)
        result = run("load", db, "-", *store, cwd=cwd, stdin='{"_id":8,"email":"e9"}')
        contains(result.stderr, 'unique index "email"')
        whole(cwd, *store)
    whole(cwd)


@test
def a_collection_moves_to_another_store_and_lives_on_there(cwd):
    for scheme in ("packed", "exploded"):
        db = f"mongo:a.{scheme}"
        text = header(scheme) + "\n".join(TYPES) + '\n{"_id":{"$maxKey":1},"text":"%s"}\n' % ("x" * 3_000_000)
        load(cwd, db, text)
        ok("move", "--quiet", "--from", "embedded:data", "--to", "embedded:other", db, cwd=cwd)
        assert dumped(cwd, db, *OTHER) == text
        equal(run("dump", db, cwd=cwd).returncode, 1)
        load(cwd, db, '{"_id":"text"}\n', *OTHER)
        load(cwd, db, '{"_id":"since"}\n', *OTHER)
        contains(ok("verify", db, *OTHER, cwd=cwd).stdout, "1 databases, 14 documents, ")
    whole(cwd)
    whole(cwd, *OTHER)


@test
def collections_live_beside_other_databases_and_are_backed_up(cwd):
    load(cwd, "mongo:docs.docs", header() + "\n".join(TYPES))
    ok("load", "docs", "-", cwd=cwd, stdin='{"_id": "a"}')
    with Server(cwd) as server:
        equal(server.request("GET", "/_all_dbs")[1], ["docs"])
    contains(ok("inspect", cwd=cwd).stdout, 'database "mongo:docs.docs"')
    ok("backup", "backups", cwd=cwd)
    load(cwd, "mongo:docs.docs", '{"_id":"later"}')
    ok("restore", "backups", *OTHER, cwd=cwd)
    equal(dumped(cwd, "mongo:docs.docs", *OTHER), header() + "\n".join(TYPES) + "\n")
    whole(cwd, *OTHER)


main()
