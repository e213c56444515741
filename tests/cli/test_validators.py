"""frond load into databases with a validate_doc_update: into a store, where the command runs the
function itself, and into a server, which does."""

import json
import pathlib
import shutil
import subprocess

from harness import ENV, FROND, Server, contains, equal, main, ok, run, test

HAS_WORKER = (pathlib.Path(FROND).parent / "frond-js").exists()

VALIDATOR = """function (doc, old, user, security) {
    if (doc.type === 'closed') throw {forbidden: 'closed for ' + user.roles.join()};
    if (doc.type === 'unknown') throw {unauthorized: 'who?'};
    if (doc.type === 'broken') throw new Error('no');
    if (old && doc.n < old.n) throw {forbidden: 'n has been ' + old.n};
    if (doc.type === 'shown')
        throw {forbidden: JSON.stringify([user, security.members, doc._id, doc._attachments.a.length,
                                          doc.n, doc._revisions])};
}"""
DESIGN = {"_id": "_design/rules", "validate_doc_update": VALIDATOR}


def lines(*docs):
    return "".join(json.dumps(doc) + "\n" for doc in docs)


def load(cwd, docs, *options, db="db"):
    return run("load", db, "--quiet", "--on-error", "continue", *options, cwd=cwd,
               stdin=lines(*docs))


def dumped(cwd, db="db"):
    found = [json.loads(line) for line in ok("dump", db, cwd=cwd).stdout.splitlines()]
    return {doc["_id"]: doc for doc in found if not doc["_id"].startswith("_design/")}


def prepare(cwd, *docs):
    ok("load", "db", cwd=cwd, stdin=lines(DESIGN))
    if docs:
        equal(load(cwd, docs).stderr, "")


@test
def documents_that_a_validator_refuses_are_told_and_counted(cwd):
    prepare(cwd)
    docs = [{"_id": "a"}, {"_id": "b", "type": "closed"}, {"_id": "c", "type": "unknown"},
            {"_id": "d", "type": "broken"}, {"_id": "e"}]
    result = run("load", "db", "--on-error", "continue", cwd=cwd, stdin=lines(*docs))
    equal(result.returncode, 1)
    contains(result.stderr, 'standard input:2: document "b": forbidden: closed for _admin\n')
    contains(result.stderr, 'standard input:3: document "c": unauthorized: who?\n')
    contains(result.stderr, 'standard input:4: document "d": Error: no\n')
    contains(result.stdout, "2 documents loaded into db, 3 refused")
    equal(sorted(dumped(cwd)), ["a", "e"])


@test
def a_validator_that_is_loaded_holds_for_all_behind_it(cwd):
    result = load(cwd, [{"_id": "before", "type": "closed"}, DESIGN,
                        {"_id": "behind", "type": "closed"}, {"_id": "fine"}])
    contains(result.stderr, 'document "behind": forbidden')
    equal(sorted(dumped(cwd)), ["before", "fine"])


@test
def a_validator_sees_what_is_replaced(cwd):
    prepare(cwd, {"_id": "a", "n": 5}, {"_id": "b", "n": 5})
    result = load(cwd, [{"_id": "a", "n": 4}, {"_id": "b", "n": 6}, {"_id": "b", "n": 5}], "--update")
    equal(result.stderr.splitlines(),
          ['standard input:1: document "a": forbidden: n has been 5',
           'standard input:3: document "b": forbidden: n has been 6'])
    equal([doc["n"] for doc in dumped(cwd).values()], [5, 6])


@test
def a_validator_is_shown_the_document_and_an_administrator(cwd):
    prepare(cwd)
    doc = {"_id": "x", "type": "shown", "n": 1.5,
           "_attachments": {"a": {"content_type": "text/plain", "data": "aGVsbG8="}}}
    members = {"roles": ["_admin"]}
    user = {"db": "db", "name": None, "roles": ["_admin"]}
    contains(load(cwd, [doc]).stderr,
             "forbidden: " + json.dumps([user, members, "x", 5, 1.5], separators=(",", ":"))[:-1])


@test
def revisions_that_are_kept_are_validated_too(cwd):
    prepare(cwd, {"_id": "a", "n": 5})
    rev = json.loads(ok("dump", "db", "--revs", cwd=cwd).stdout.splitlines()[-1])["_rev"]
    hashes = ["b" * 32, rev.split("-")[1]]
    docs = [{"_id": "a", "_rev": "2-" + hashes[0], "_revisions": {"start": 2, "ids": hashes}, "n": 1},
            {"_id": "new", "_rev": "1-" + "c" * 32, "type": "closed"},
            {"_id": "known", "_rev": "1-" + "d" * 32}]
    result = load(cwd, docs, "--new-edits", "false")
    equal(result.stderr.splitlines(),
          ['standard input:1: document "a": forbidden: n has been 5',
           'standard input:2: document "new": forbidden: closed for _admin'])
    equal(sorted(dumped(cwd)), ["a", "known"])


@test
def many_documents_of_many_batches_are_validated(cwd):
    prepare(cwd)
    docs = [{"_id": f"{i:05}", "type": "closed" if i % 7 == 0 else "open", "n": i} for i in range(2000)]
    result = load(cwd, docs, "--batch", "300")
    equal(len(result.stderr.splitlines()), len(range(0, 2000, 7)))
    equal(sorted(dumped(cwd)), [doc["_id"] for doc in docs if doc["type"] == "open"])


@test
def a_function_that_does_not_compile_lets_nothing_pass(cwd):
    ok("load", "db", cwd=cwd, stdin=lines({"_id": "_design/x", "validate_doc_update": "function ("}))
    result = load(cwd, [{"_id": "a"}])
    contains(result.stderr, 'document "a": compilation_error: ')
    equal(dumped(cwd), {})


@test
def a_program_without_workers_says_so_where_it_needs_one(cwd):
    alone = cwd / "frond"
    shutil.copy(FROND, alone)

    def load_alone(*docs):
        return subprocess.run([alone, "load", "db", "--quiet"], cwd=cwd, input=lines(*docs), env=ENV,
                              capture_output=True, text=True, timeout=60)

    equal(load_alone({"_id": "a"}, DESIGN).returncode, 0)
    result = load_alone({"_id": "b"})
    equal(result.returncode, 1)
    contains(result.stderr, "frond-js")
    equal(sorted(dumped(cwd)), ["a"])


@test
def a_server_tells_what_its_validators_refuse(cwd):
    with Server(cwd) as server:
        to = ("--to", server.url)
        equal(load(cwd, [DESIGN], *to).stderr, "")
        result = run("load", "db", "--on-error", "continue", *to, cwd=cwd,
                     stdin=lines({"_id": "a"}, {"_id": "b", "type": "closed"}))
        equal(result.returncode, 1)
        contains(result.stderr, 'standard input:2: document "b": forbidden: closed for _admin')
        contains(result.stdout, "1 documents loaded into db, 1 refused")
        result = load(cwd, [{"_id": "c", "_rev": "1-" + "c" * 32, "type": "unknown"}], *to,
                      "--new-edits", "false")
        contains(result.stderr, 'standard input:1: document "c": unauthorized: who?')
    equal(sorted(dumped(cwd)), ["a"])


main(None if HAS_WORKER else "a build with JavaScript")
