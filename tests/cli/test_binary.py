"""The binary from outside: usage, loading, dumping, inspecting a store."""

import base64
import json
import os
import subprocess

from harness import FROND, ENV, Server, contains, equal, main, ok, run, test

DOCS = [
    {"_id": "a", "list": [1, 2.5, {"x": None}], "name": "Anna"},
    {"_id": "b", "empty": {}, "none": [], "text": "ü\n\"quoted\""},
    {"_id": "c", "big": 123456789012345678901234567890, "flag": True},
]
LINES = "".join(json.dumps(d, ensure_ascii=False, separators=(",", ":")) + "\n" for d in DOCS)


# ---- Usage ----

@test
def version_is_told(cwd):
    contains(ok("--version", cwd=cwd).stdout, "frond ")
    contains(ok("load", "--version", cwd=cwd).stdout, "frond ")


@test
def help_lists_commands_and_options(cwd):
    text = ok("--help", cwd=cwd).stdout
    equal(ok("-h", cwd=cwd).stdout, text)
    for command in ("serve", "load", "dump", "inspect"):
        contains(text, f"frond {command}")
        for one in (ok(command, "--help", cwd=cwd), ok("help", command, cwd=cwd)):
            contains(one.stdout, f"Usage: frond {command}")
            contains(one.stdout, "--store=URL")
            contains(one.stdout, "Exit codes: 0 done, 1 failed (in part, too), 2 wrong usage.")
    equal(ok("help", cwd=cwd).stdout, text)


@test
def wrong_usage_is_exit_code_2(cwd):
    for args in ([], ["nonsense"], ["load"], ["dump"], ["load", "db", "--format", "xml"],
                 ["load", "db", "--batch", "0"], ["load", "db", "--batch", "many"],
                 ["load", "db", "--on-error", "panic"], ["load", "db", "--new-edits", "maybe"],
                 ["load", "db", "--store", "embedded:x", "--to", "http://localhost"],
                 ["load", "db", "--update", "--to", "http://localhost"],
                 ["load", "db", "--nonsense"], ["dump", "one", "two"],
                 ["dump", "db", "--store", "embedded:x", "--from", "http://localhost"],
                 ["load", "db", "--store", "nonsense"], ["load", "db", "--store", "embedded:"],
                 ["load", "db", "--store", "other:x"], ["load", "DB"], ["dump", "1db"],
                 ["dump", "db", "--store", "data"], ["inspect", "A"], ["verify", "db", "x y"],
                 ["inspect", "--store", "x"], ["verify", "--store", "x"],
                 ["compact", "--store", "x"], ["backup", "to", "--store", "x"],
                 ["restore", "from", "--store", "x"], ["serve", "--store", "x"],
                 ["inspect", "a", "b", "c"], ["inspect", "--limit", "x"], ["serve", "x"],
                 ["help", "nonsense"]):
        result = run(*args, cwd=cwd)
        equal((args, result.returncode), (args, 2))
        contains(result.stderr, "frond")
    equal(os.listdir(cwd), [])


@test
def faulty_engine_is_not_in_the_program(cwd):
    for args in (["serve"], ["load", "db"], ["dump", "db"]):
        result = run(*args, "--store", "faulty:seed=1,rate=0:embedded:data", cwd=cwd)
        equal(result.returncode, 2)
        contains(result.stderr, "no engine is called 'faulty'")
    equal(os.listdir(cwd), [])


# ---- Loading and dumping ----

@test
def dump_equals_what_was_loaded_as_lines(cwd):
    (cwd / "docs.jsonl").write_text(LINES)
    result = ok("load", "db", "docs.jsonl", cwd=cwd)
    contains(result.stdout, "3 documents loaded into db, 0 refused")
    equal(ok("dump", "db", cwd=cwd).stdout, LINES)


@test
def dump_equals_what_was_loaded_as_array(cwd):
    (cwd / "docs.json").write_text(json.dumps(DOCS, indent=2, ensure_ascii=False))
    ok("load", "db", "docs.json", cwd=cwd)
    equal(ok("dump", "db", cwd=cwd).stdout, LINES)


@test
def dump_equals_what_was_loaded_as_map(cwd):
    docs = {d["_id"]: {k: v for k, v in d.items() if k != "_id"} for d in DOCS}
    (cwd / "docs.json").write_text(json.dumps(docs, indent=2, ensure_ascii=False))
    ok("load", "db", "docs.json", cwd=cwd)
    equal(ok("dump", "db", cwd=cwd).stdout, LINES)


@test
def standard_input_is_loaded_without_a_file(cwd):
    ok("load", "db", cwd=cwd, stdin=LINES)
    ok("load", "db2", "-", cwd=cwd, stdin=LINES)
    equal(ok("dump", "db", cwd=cwd).stdout, LINES)
    equal(ok("dump", "db2", cwd=cwd).stdout, LINES)


@test
def several_files_and_small_batches_are_loaded(cwd):
    for i in range(3):
        (cwd / f"{i}.jsonl").write_text(json.dumps({"_id": str(i), "n": i}))
    ok("load", "db", "--batch", "1", "0.jsonl", "1.jsonl", "2.jsonl", cwd=cwd)
    docs = [json.loads(line) for line in ok("dump", "db", cwd=cwd).stdout.splitlines()]
    equal(docs, [{"_id": str(i), "n": i} for i in range(3)])


@test
def thousands_of_documents_come_back(cwd):
    lines = "".join(f'{{"_id":"{i:05}","n":{i},"text":"{"x" * (i % 50)}"}}\n'
                    for i in range(5000))
    ok("load", "db", cwd=cwd, stdin=lines)
    equal(ok("dump", "db", cwd=cwd).stdout, lines)


@test
def document_without_id_gets_one(cwd):
    ok("load", "db", cwd=cwd, stdin='{"n":1}\n{"n":2}\n')
    docs = [json.loads(line) for line in ok("dump", "db", cwd=cwd).stdout.splitlines()]
    equal(sorted(d["n"] for d in docs), [1, 2])
    equal({len(d["_id"]) for d in docs}, {32})


@test
def id_is_taken_from_a_member(cwd):
    ok("load", "db", "--id", "key", cwd=cwd, stdin='{"key":"k1"}\n{"key":17}\n')
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"17","key":17}\n{"_id":"k1","key":"k1"}\n')
    result = run("load", "db", "--id", "key", cwd=cwd, stdin='{"other":1}\n')
    equal(result.returncode, 1)
    contains(result.stderr,
             'standard input:1: it has no member "key" to take the id from')


@test
def refused_line_names_file_line_and_reason_and_stops(cwd):
    (cwd / "bad.jsonl").write_text('{"_id":"a"}\n\n{"_id":\n{"_id":"b"}\n')
    result = run("load", "db", "bad.jsonl", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "bad.jsonl:3: in this document, line 1 column ")
    contains(result.stdout, "1 documents loaded into db, 1 refused")
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"a"}\n')


@test
def on_error_continue_loads_the_rest(cwd):
    (cwd / "bad.jsonl").write_text(
        '{"_id":"a"}\n[1]\n{"_id":7}\n{"_id":"b"}\n{"_id":"_x"}\n{"_y":1}\n'
        '{"_id":"c","_attachments":{"f":{"data":"?"}}}\n{"_id":""}\n{"_id":"_local/x"}\n{"_id":"d"}')
    result = run("load", "--on-error", "continue", "db", "bad.jsonl", cwd=cwd)
    equal(result.returncode, 1)
    for reason in ("2: a document must be an object", '3: member "_id" must be a string',
                   "5: Only reserved document ids may start with underscore.",
                   "6: Bad special document member: _y",
                   "7: Invalid attachment data for f",
                   "8: its id is empty", "9: local documents are not loaded"):
        contains(result.stderr, "bad.jsonl:" + reason)
    contains(result.stdout, "3 documents loaded into db, 7 refused")
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"a"}\n{"_id":"b"}\n{"_id":"d"}\n')


@test
def broken_element_of_an_array_names_its_line(cwd):
    (cwd / "bad.json").write_text('[{"_id":"a"},\n {"_id":"b",},\n {"_id":"c"}]')
    result = run("load", "--on-error", "continue", "db", "bad.json", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "bad.json:2: in this document, line 1 column ")
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"a"}\n{"_id":"c"}\n')


@test
def array_that_ends_early_is_refused_from_there(cwd):
    (cwd / "cut.json").write_text('[{"_id":"a"},\n{"_id":"b"')
    result = run("load", "db", "cut.json", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "cut.json:2: the input ends in the middle of the value that starts "
             "here; the rest of it is left out")
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"a"}\n')


@test
def document_that_is_there_is_a_conflict(cwd):
    ok("load", "db", cwd=cwd, stdin=LINES)
    result = run("load", "db", "--on-error", "continue", cwd=cwd, stdin=LINES + '{"_id":"d"}')
    equal(result.returncode, 1)
    contains(result.stderr, 'standard input:1: document "a": conflict')
    contains(result.stdout, "1 documents loaded into db, 3 refused")


@test
def update_extends_what_is_there(cwd):
    ok("load", "db", cwd=cwd, stdin=LINES)
    ok("load", "db", "--update", cwd=cwd, stdin='{"_id":"a","new":1}\n{"_id":"d","new":2}\n')
    lines = ok("dump", "db", cwd=cwd).stdout.splitlines()
    equal(lines[0], '{"_id":"a","new":1}')
    equal(lines[3], '{"_id":"d","new":2}')
    contains(ok("dump", "--revs", "db", cwd=cwd).stdout, '"_rev":"2-')


@test
def same_id_twice_in_a_file_is_a_conflict(cwd):
    result = run("load", "db", "--on-error", "continue", cwd=cwd,
                 stdin='{"_id":"a","n":1}\n{"_id":"a","n":2}\n{"_id":"b"}\n')
    equal(result.returncode, 1)
    contains(result.stderr, 'standard input:2: document "a": conflict')
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"a","n":1}\n{"_id":"b"}\n')


@test
def document_over_the_limit_is_refused(cwd):
    text = '{"_id":"a","x":"' + "x" * 1000 + '"}\n{"_id":"b"}\n'
    result = run("load", "db", "--max-document-size", "1000", "--on-error", "continue",
                 cwd=cwd, stdin=text)
    equal(result.returncode, 1)
    contains(result.stderr, "standard input:1: ")
    contains(result.stderr, "1000")
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"b"}\n')


@test
def document_at_the_limit_stays_there_with_its_revisions(cwd):
    document = '{"_id":"a","x":"' + "x" * 100 + '"}\n'
    limit = ["--max-document-size", "108"]  # {"x":"…"}
    ok("load", "db", *limit, cwd=cwd, stdin=document)
    dumped = ok("dump", "--revs", "db", cwd=cwd).stdout
    contains(dumped, '"_revisions"')
    ok("load", "--new-edits", "false", "copy", *limit, cwd=cwd, stdin=dumped)
    equal(ok("dump", "copy", cwd=cwd).stdout, document)
    equal(run("load", "other", "--max-document-size", "107", cwd=cwd, stdin=document).returncode, 1)
    with Server(cwd) as server:
        ok("load", "--new-edits", "false", "--to", server.url, "over", *limit, cwd=cwd,
           stdin=dumped)
        equal(run("load", "--to", server.url, "over", "--max-document-size", "107", cwd=cwd,
                  stdin=document).returncode, 1)


@test
def document_too_large_for_anything_is_skipped(cwd):
    (cwd / "large.jsonl").write_text(
        '{"_id":"a"}\n{"x":"' + "x" * 70000000 + '"}\n{"_id":"b"}\n')
    result = run("load", "db", "--on-error", "continue", "large.jsonl", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "large.jsonl:2: the document is larger than 67108864 bytes")
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"a"}\n{"_id":"b"}\n')


@test
def attachments_come_out_as_they_went_in(cwd):
    data = base64.b64encode(os.urandom(2500000)).decode()
    lines = ('{"_id":"a","x":1,"_attachments":{"t.txt":{"content_type":"text/plain","data":"aGk="},'
             '"big":{"content_type":"image/png","data":"' + data + '"}}}\n'
             '{"_id":"b","_attachments":{"none":{"content_type":"x/y","data":""}}}\n')
    (cwd / "in.jsonl").write_text(lines)
    ok("load", "db", "in.jsonl", cwd=cwd)
    equal(ok("dump", "db", cwd=cwd).stdout == lines, True)
    dump = ok("dump", "--revs", "db", cwd=cwd).stdout
    contains(dump, '"t.txt":{"content_type":"text/plain","revpos":1,"digest":"md5-')
    ok("load", "--new-edits", "false", "--store", "embedded:copy", "db", cwd=cwd, stdin=dump)
    equal(ok("dump", "--revs", "--store", "embedded:copy", "db", cwd=cwd).stdout == dump, True)
    contains(ok("verify", "--store", "embedded:copy", cwd=cwd).stdout, "0 findings")
    shown = ok("inspect", "--store", "embedded:copy", "db", "a", cwd=cwd).stdout
    contains(shown, "= (90000 bytes)")
    contains(shown, '("attachments", "refs", uuid:')
    result = run("load", "db", cwd=cwd, stdin='{"_id":"c","_attachments":{"f":{"stub":true}}}')
    equal(result.returncode, 1)
    contains(result.stderr, 'its attachment "f" is only a stub')


@test
def document_with_more_values_than_a_transaction_takes_is_loaded(cwd):
    many = json.dumps({"_id": "many", "list": [1] * 450000}, separators=(",", ":"))
    lines = '{"_id":"a"}\n' + many + '\n{"_id":"z"}\n'
    for scheme in ("packed", "exploded"):
        result = ok("load", "--scheme", scheme, scheme, cwd=cwd, stdin=lines)
        equal(result.stderr.count("document"), 0)
        equal(ok("dump", scheme, cwd=cwd).stdout == lines, True)
        contains(ok("verify", scheme, cwd=cwd).stdout, "0 findings")


@test
def missing_file_is_told(cwd):
    result = run("load", "db", "nowhere.json", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "nowhere.json: cannot open: No such file or directory")
    result = run("load", "db", "--on-error", "continue", "nowhere.json", "neither.json", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "neither.json: cannot open")
    equal(os.listdir(cwd), [])
    (cwd / "there.json").write_text('{"_id":"a"}')
    equal(run("load", "db", "there.json", "nowhere.json", cwd=cwd).returncode, 1)
    assert not (cwd / "data").exists()
    result = run("load", "db", "--on-error", "continue", "nowhere.json", "there.json", cwd=cwd)
    equal(result.returncode, 1)
    equal(ok("dump", "db", cwd=cwd).stdout, '{"_id":"a"}\n')


@test
def missing_database_or_store_is_told(cwd):
    result = run("dump", "db", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "cannot open the store embedded:./data")
    assert not (cwd / "data").exists()
    ok("load", "db", cwd=cwd, stdin=LINES)
    for args in (["dump", "other"], ["inspect", "other"],
                 ["load", "other", "--no-create", "/dev/null"]):
        result = run(*args, cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, 'there is no database "other"')
    result = run("load", "BAD", cwd=cwd, stdin=LINES)
    equal(result.returncode, 2)
    contains(result.stderr, 'no database can be called "BAD"')


@test
def faithful_copy_keeps_revisions_conflicts_and_tombstones(cwd):
    docs = [
        {"_id": "a", "_revisions": {"start": 2, "ids": ["b" * 32, "a" * 32]}, "n": 1},
        {"_id": "a", "_revisions": {"start": 2, "ids": ["c" * 32, "a" * 32]}, "n": 2},
        {"_id": "b", "_rev": "1-" + "d" * 32, "n": 3},
        {"_id": "gone", "_deleted": True, "_revisions": {"start": 2, "ids": ["e" * 32, "f" * 32]}},
        {"_id": "note", "_deleted": True, "_rev": "3-opaque", "why": "kept"},
    ]
    text = "".join(json.dumps(d) + "\n" for d in docs)
    ok("load", "--new-edits", "false", "one", cwd=cwd, stdin=text)
    copy = ok("dump", "--revs", "one", cwd=cwd).stdout
    equal(len(copy.splitlines()), 5)
    for part in ('"_rev":"2-' + "b" * 32, '"_deleted":true', '"ids":["' + "c" * 32 + '","'
                 + "a" * 32 + '"]', '"3-opaque"', '"why":"kept"'):
        contains(copy, part)
    ok("load", "--new-edits", "false", "two", cwd=cwd, stdin=copy)
    again = ok("dump", "--revs", "two", cwd=cwd).stdout
    equal(sorted(again.splitlines()), sorted(copy.splitlines()))
    equal([json.loads(line)["_id"] for line in ok("dump", "two", cwd=cwd).stdout.splitlines()],
          ["a", "b"])
    result = run("load", "--new-edits", "false", "two", cwd=cwd, stdin='{"_id":"x"}\n')
    equal(result.returncode, 1)
    contains(result.stderr, "neither _rev nor _revisions")


@test
def dump_into_a_file_or_a_full_disk(cwd):
    ok("load", "db", cwd=cwd, stdin=LINES)
    ok("dump", "db", "-o", "out.jsonl", cwd=cwd)
    equal((cwd / "out.jsonl").read_text(), LINES)
    result = run("dump", "db", "-o", "/dev/full", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "cannot write to /dev/full: No space left on device")
    result = run("dump", "db", "-o", "no/such/dir", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "cannot create no/such/dir")


@test
def reader_that_closes_its_pipe_early_is_no_failure(cwd):
    ok("load", "db", cwd=cwd, stdin=LINES)
    for command in (["dump", "db"], ["inspect"], ["inspect", "db"], ["verify"], ["--help"]):
        read_end, write_end = os.pipe()
        os.close(read_end)
        result = subprocess.run([FROND, *command], cwd=cwd, env=ENV, stdout=write_end,
                                stderr=subprocess.PIPE, text=True, timeout=60)
        os.close(write_end)
        equal((command, result.returncode, result.stderr), (command, 0, ""))
    with open("/dev/full", "w") as full:
        for command in (["dump", "db"], ["inspect"], ["verify"], ["--help"]):
            result = subprocess.run([FROND, *command], cwd=cwd, env=ENV, stdout=full,
                                    stderr=subprocess.PIPE, text=True, timeout=60)
            equal(result.returncode, 1)
            contains(result.stderr, "cannot write to standard output: No space left on device")


# ---- Inspecting ----

@test
def scheme_says_how_a_new_database_keeps_its_documents(cwd):
    line = '{"_id":"mydoc","b":["bar",1.10],"a":{}}\n'
    for scheme in ("packed", "exploded"):
        ok("load", "--scheme", scheme, scheme, cwd=cwd, stdin=line)
        contains(ok("inspect", scheme, cwd=cwd).stdout, 'prefix (%d), %s'
                 % (1 if scheme == "packed" else 2, scheme))
        equal(ok("dump", scheme, cwd=cwd).stdout, '{"_id":"mydoc","a":{},"b":["bar",1.10]}\n')
        contains(ok("verify", scheme, cwd=cwd).stdout,
                 "0 leaves, 1 packed, 0 findings" if scheme == "packed"
                 else "3 leaves, 0 packed, 0 findings")
    contains(ok("inspect", "packed", "mydoc", cwd=cwd).stdout, ') = (2, {"a":{},"b":["bar",1.10]})')
    bad = run("load", "--scheme", "flat", "x", cwd=cwd, stdin=line)
    equal(bad.returncode, 2)
    contains(bad.stderr, '"flat" is neither "packed" nor "exploded"')


@test
def inspect_draws_a_document_as_the_layout_says(cwd):
    ok("load", "--scheme", "exploded", "db", cwd=cwd,
       stdin='{"_id":"mydoc","foo":["bar"]}\n{"_id":"mydoc2"}\n')
    text = ok("inspect", "db", "mydoc", cwd=cwd).stdout
    lines = [line.strip() for line in text.splitlines()]
    equal(lines[0], 'database "db", prefix (1), exploded')
    for heading in ("all_docs", "changes", "revisions", "documents"):
        assert heading in lines, text
    start = '("%s", "mydoc"'
    hashes = [line for line in lines if line.startswith(start % "revisions")]
    equal(len(hashes), 1)
    contains(hashes[0], '("revisions", "mydoc", true, 1, \\x')
    contains(hashes[0], " = (1, 00")
    contains(hashes[0], ", 1, [])")
    root = hashes[0].split(" = ")[0].replace("revisions", "documents")
    contains(text, root + " = (")
    contains(text, root[:-1] + ', "foo", 0) = ("bar")')
    contains(text, '("all_docs", "mydoc") = (1, 1, \\x')
    contains(text, '("changes", 00')
    assert "mydoc2" not in text
    assert lines[-1].split()[1::2] == ["keys,", "bytes"], lines[-1]


@test
def inspect_shows_databases_and_the_whole_store(cwd):
    ok("load", "one", cwd=cwd, stdin=LINES)
    ok("load", "two", cwd=cwd, stdin=LINES)
    one = ok("inspect", "one", cwd=cwd).stdout
    contains(one, '("stats", "doc_count") = 3')
    contains(one, '("documents", "a", true, 1, \\x')
    assert '"two"' not in one
    text = ok("inspect", cwd=cwd).stdout
    for part in ("the store as a whole", '("root", "databases", "one") = (',
                 'database "one", prefix (1), ', 'database "two", prefix (2), '):
        contains(text, part)
    limited = ok("inspect", "--limit", "2", cwd=cwd).stdout
    equal(len([line for line in limited.splitlines() if line.startswith("  ")]), 2)
    contains(limited, "the first 2 keys, ")
    contains(ok("inspect", "--raw", "one", cwd=cwd).stdout, "\\x02doc_count\\x00 = ")


@test
def inspect_of_a_missing_document_fails(cwd):
    ok("load", "db", cwd=cwd, stdin=LINES)
    result = run("inspect", "db", "nowhere", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, 'there is no document "nowhere" in the database "db"')


main()
