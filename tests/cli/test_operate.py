"""The commands for operators: verify, compact, backup, restore; with a store and with a server."""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

from damage import damage
from harness import FROND, QUICK, Server, contains, equal, main, ok, run, test, until
from mongo import Failure
from mongo_server import MongoServer

DOCS = "".join(json.dumps({"_id": f"{i:04}", "list": [i, {"x": "y" * 20}], "n": i},
                          separators=(",", ":")) + "\n" for i in range(500))


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def backup_ids(text):
    return [int(line.split()[0]) for line in text.splitlines()[1:]]


# ---- Usage ----

@test
def wrong_usage_is_exit_code_2(cwd):
    for args in (["verify", "--limit", "0"], ["verify", "--nonsense"], ["compact", "db"],
                 ["compact", "--store", "embedded:x", "--at", "http://localhost"],
                 ["backup"], ["backup", "a", "b"], ["backup", "a", "--keep", "0"],
                 ["backup", "a", "--store", "embedded:x", "--from", "http://localhost"],
                 ["backup", "a", "--list", "--keep", "1"], ["restore"], ["restore", "a", "b"],
                 ["restore", "a", "--backup", "x"]):
        result = run(*args, cwd=cwd)
        equal((args, result.returncode), (args, 2))
        contains(result.stderr, "frond")
    equal(os.listdir(cwd), [])


@test
def help_tells_what_each_command_takes(cwd):
    general = ok("--help", cwd=cwd).stdout
    for command, options in (("verify", ["--store=URL", "--limit=N", "--quiet"]),
                             ("compact", ["--store=URL", "--at=URL"]),
                             ("backup", ["--store=URL", "--from=URL", "--keep=N", "--list"]),
                             ("restore", ["--store=URL", "--backup=ID"])):
        contains(general, f"frond {command}")
        text = ok(command, "--help", cwd=cwd).stdout
        for option in options:
            contains(text, option)
        contains(text, "Exit codes: 0 ")


# ---- Closed streams ----

@test
def no_file_gets_the_number_of_a_closed_stream(cwd):
    for closed in ((0,), (2,), (0, 2)):
        def close(fds=closed):
            for fd in fds:
                os.close(fd)
        with Server(cwd, before=close) as server:
            for fd in closed:
                equal((fd, os.readlink(f"/proc/{server.process.pid}/fd/{fd}")), (fd, "/dev/null"))
            equal(server.request("PUT", f"/db{len(closed)}{closed[0]}")[0], 201)
            equal(server.stop(), 0)
    # What cannot be written is a failure as it is without these numbers.
    equal(subprocess.run([FROND, "--version"], cwd=cwd, preexec_fn=lambda: os.close(1),
                         stderr=subprocess.DEVNULL).returncode, 1)
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


# ---- Threads ----

@test
def threads_have_names(cwd):
    (cwd / "frond.ini").write_text("[frond]\nloops = 2\n")
    with Server(cwd, "--config", "frond.ini") as server:
        tasks = pathlib.Path(f"/proc/{server.process.pid}/task")

        def named():
            names = set()
            for task in tasks.iterdir():
                with contextlib.suppress(OSError):  # it has ended
                    names.add((task / "comm").read_text().strip())
            return names >= {"frond", "loop 1", "chores", "watchdog"}
        until(named)  # each thread names itself when it has begun


# ---- verify ----

@test
def good_store_has_nothing_to_be_found(cwd):
    ok("load", "db", cwd=cwd, stdin=DOCS)
    ok("load", "other", cwd=cwd, stdin='{"_id":"a","x":{}}\n')
    result = ok("verify", cwd=cwd)
    equal(result.stdout, "2 databases, 501 documents, 0 leaves, 501 packed, 0 findings\n")
    equal(ok("verify", "other", cwd=cwd).stdout,
          "1 databases, 1 documents, 0 leaves, 1 packed, 0 findings\n")
    equal(ok("verify", "other", "db", cwd=cwd).stdout, result.stdout)
    for how in (), ("--rate", "100000000"):
        equal(ok("verify", "--ranges", *how, cwd=cwd).stdout, result.stdout)
    for wrong in ("--ranges", "--still"), ("--rate", "1"):
        equal(run("verify", *wrong, cwd=cwd).returncode, 2)
    missing = run("verify", "none", cwd=cwd)
    equal(missing.returncode, 1)
    contains(missing.stderr, 'there is no database "none"')
    equal(run("verify", "--store", "embedded:nowhere", cwd=cwd).returncode, 1)


@test
def damage_is_told_with_its_place(cwd):
    ok("load", "db", cwd=cwd, stdin=DOCS)
    # (1, "all_docs", id)
    damage(cwd / "data", b"\x15\x01\x15\x01\x02zz\x00", b"\x15\x01")
    for i in range(10):
        damage(cwd / "data", b"\x15\x01\x15\x01\x02%04d\x00" % i, None)
    damage(cwd / "data", b"\x15\x63\x15\x01", b"of nobody")
    result = run("verify", "--limit", "3", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stdout, 'entry: database "db", all_docs, (1, 1, "0000"): the document is not '
             'deleted, and has no entry\n')
    contains(result.stdout, 'entry_stray: database "db", all_docs, (1, 1, "zz"): there is no such '
             'document\n')
    contains(result.stdout, "no_database: all_docs, (99, 1): no database has number 99")
    equal(result.stdout.count("entry: "), 4)
    contains(result.stdout, "entry: 7 more\n")
    contains(result.stdout, 'tally: database "db", tallies, ')
    contains(result.stdout, "the counters of this range say 500, and there are 491\n")
    assert result.stdout.endswith("1 databases, 500 documents, 0 leaves, 500 packed, 13 findings\n")
    equal(run("verify", "db", cwd=cwd).returncode, 1)
    ranges = run("verify", "--ranges", cwd=cwd)
    equal(ranges.returncode, 1)
    equal(sorted(ranges.stdout.splitlines()), sorted(run("verify", cwd=cwd).stdout.splitlines()))


@test
def running_server_is_no_obstacle_to_a_check(cwd):
    with Server(cwd) as server:
        ok("load", "db", "--to", server.url, cwd=cwd, stdin=DOCS)
        equal(ok("verify", cwd=cwd).stdout,
              "1 databases, 500 documents, 0 leaves, 500 packed, 0 findings\n")


# ---- compact ----

@test
def compaction_tells_what_it_gave_back(cwd):
    ok("load", "db", cwd=cwd, stdin=DOCS)
    result = ok("compact", cwd=cwd)
    assert re.fullmatch(r"compacted: .+ before, .+ after\n", result.stdout), result.stdout
    equal(ok("dump", "db", cwd=cwd).stdout, DOCS)
    equal(run("compact", "--store", "embedded:nowhere", cwd=cwd).returncode, 1)
    assert not (cwd / "nowhere").exists()
    with Server(cwd, "--admin", "anna:secret") as server:
        contains(run("compact", cwd=cwd).stderr, "is in use by another frond")
        url = server.url.replace("http://", "http://anna:secret@")
        assert re.fullmatch(r"compacted: .+ before, .+ after\n", ok("compact", "--at", url,
                                                                    cwd=cwd).stdout)
        equal(run("compact", "--at", server.url, cwd=cwd).returncode, 1)
        equal(server.request("POST", "/_frond/compact", {})[0], 401)
        equal(server.request("GET", "/_frond/compact", headers=basic("anna", "secret"))[0], 405)


def raw_bytes(text):
    """The bytes that `inspect --raw` draws so."""
    return text.encode().decode("unicode_escape").encode("latin-1")


def pair_drawn_as(cwd, part):
    """Key and value of the pair whose drawing has this part."""
    drawn = ok("inspect", cwd=cwd).stdout.splitlines()
    raw = ok("inspect", "--raw", cwd=cwd).stdout.splitlines()
    line = next(raw[n] for n, line in enumerate(drawn) if part in line)
    return [raw_bytes(half) for half in line.removeprefix("  ").split(" = ", 1)]


@test
def damaged_filter_of_an_index_is_named_and_other_pairs_are_drawn(cwd):
    with MongoServer(cwd) as server:
        client = server.client()
        client({"insert": "c", "documents": [{"_id": 1, "n": 7}]}, db="db")
        client({"createIndexes": "c", "indexes": [
            {"key": {"n": 1}, "name": "n", "partialFilterExpression": {"n": {"$gt": 5}}}]}, db="db")
        client({"insert": "c", "documents": [{"_id": 2, "n": 8}]}, db="db")
    key, value = pair_drawn_as(cwd, ', where {"n":{"$gt":5}}')
    # Of the filter, which stands in front of the description: a type that there is not, a name that is no
    # UTF-8, a document that is longer than its bytes.
    for whole, damaged in ((b"\x10$gt", b"\x1e$gt"), (b"\x03n\0\xff", b"\x03\xff\0\xff"),
                           (b"\x03n\0\xff\x0e", b"\x03n\0\xff\x3e")):
        contains(value, whole)
        damage(cwd / "data", key, value.replace(whole, damaged, 1))
        for args in ([], ["mongo:db.c"]):
            drawn = ok("inspect", *args, cwd=cwd).stdout
            contains(drawn, '("indexes", 1) = damaged: (2, ')
            contains(drawn, '{"_id":2,"n":8}')
        result = run("verify", "--quiet", cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stdout, "not the definition of an index")
    with MongoServer(cwd) as server:
        try:
            server.client()({"find": "c", "filter": {"n": {"$gt": 5}}}, db="db")
            raise AssertionError("a damaged filter was used")
        except Failure as failure:
            contains(str(failure), "The definition of the index 1 is damaged.")
    damage(cwd / "data", key, value)
    contains(ok("verify", "--quiet", cwd=cwd).stdout, " 0 findings")


# ---- backup and restore ----

@test
def restored_store_equals_the_one_that_was_backed_up(cwd):
    ok("load", "db", cwd=cwd, stdin=DOCS)
    ok("load", "db", "--new-edits", "false", cwd=cwd,
       stdin='{"_id":"c","_rev":"1-a","n":1}\n{"_id":"c","_rev":"1-b","n":2}\n'
             '{"_id":"d","_rev":"1-a","_deleted":true}\n')
    before = ok("dump", "db", "--revs", cwd=cwd).stdout
    result = ok("backup", "backups", cwd=cwd)
    assert re.fullmatch(r"backup 1 in backups: .+\n", result.stdout), result.stdout
    ok("load", "db", cwd=cwd, stdin='{"_id":"later"}\n')
    result = ok("restore", "backups", "--store", "embedded:copy", cwd=cwd)
    contains(result.stdout, "backup 1 restored to embedded:copy: 1 databases, ")
    equal(ok("dump", "db", "--revs", "--store", "embedded:copy", cwd=cwd).stdout, before)
    contains(ok("verify", "--store", "embedded:copy", cwd=cwd).stdout, " 0 findings")
    equal(sorted(os.listdir(cwd)), ["backups", "copy", "data"])


@test
def backups_are_listed_kept_and_chosen_by_id(cwd):
    for i in range(4):
        ok("load", "db", cwd=cwd, stdin=f'{{"_id":"{i}"}}\n')
        ok("backup", "backups", cwd=cwd)
    text = ok("backup", "--list", "backups", cwd=cwd).stdout
    equal(text.splitlines()[0].split(), ["ID", "TIME", "BYTES"])
    assert re.search(r"^ +1  20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ  \d+$", text, re.M), text
    equal(backup_ids(text), [1, 2, 3, 4])
    ok("restore", "backups", "--backup", "2", "--store", "embedded:two", cwd=cwd)
    equal(ok("dump", "db", "--store", "embedded:two", cwd=cwd).stdout.count("\n"), 2)
    ok("backup", "backups", "--keep", "2", cwd=cwd)
    equal(backup_ids(ok("backup", "--list", "backups", cwd=cwd).stdout), [4, 5])
    result = run("restore", "backups", "--backup", "2", "--store", "embedded:again", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "there is no backup 2 in backups")
    assert not (cwd / "again").exists()


@test
def nothing_that_is_there_is_overwritten(cwd):
    ok("load", "db", cwd=cwd, stdin=DOCS)
    ok("backup", "backups", cwd=cwd)
    result = run("restore", "backups", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "data is not empty")
    equal(ok("dump", "db", cwd=cwd).stdout, DOCS)
    result = run("backup", "data", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "data is not empty and holds no backups")
    for args in (["backup", "--list", "nowhere"], ["restore", "nowhere"], ["backup", "x/y/z"]):
        equal(run(*args, cwd=cwd).returncode, 1)
    equal(sorted(os.listdir(cwd)), ["backups", "data"])


@test
def server_backs_up_its_store_while_others_write(cwd):
    (cwd / "backups").mkdir()
    (cwd / "frond.ini").write_text(QUICK + "[frond]\nbackup_dir = backups\n")
    with Server(cwd, "--config", "frond.ini", "--admin", "anna:secret") as server:
        admin = basic("anna", "secret")
        url = server.url.replace("http://", "http://anna:secret@")
        ok("load", "db", "--to", url, cwd=cwd, stdin=DOCS)
        contains(run("backup", "elsewhere", cwd=cwd).stderr, "is in use by another frond")
        stop = threading.Event()
        written = []

        def write():
            while not stop.is_set():
                name = f"w{len(written)}"
                equal(server.request("PUT", f"/db/{name}", {}, headers=admin)[0], 201)
                written.append(name)

        writer = threading.Thread(target=write)
        writer.start()
        while len(written) < 5:
            time.sleep(0.01)
        before = len(written)
        result = ok("backup", "--from", url, "nightly", cwd=cwd)
        assert re.fullmatch(r"backup 1 in nightly: .+\n", result.stdout), result.stdout
        stop.set()
        writer.join()
        ok("restore", "backups/nightly", "--store", "embedded:early", cwd=cwd)
        ok("backup", "--from", url, "nightly", cwd=cwd)
        equal(backup_ids(ok("backup", "--list", "--from", url, "nightly", cwd=cwd).stdout), [1, 2])
        ok("backup", "--from", url, "nightly", "--keep", "2", cwd=cwd)
        equal(backup_ids(ok("backup", "--list", "backups/nightly", cwd=cwd).stdout), [2, 3])
        equal(server.request("GET", "/db", headers=admin)[1]["doc_count"], 500 + len(written))
    ok("restore", "backups/nightly", "--backup", "2", "--store", "embedded:copy", cwd=cwd)
    for store, least in (("embedded:early", before), ("embedded:copy", len(written))):
        copy = ok("dump", "db", "--store", store, cwd=cwd).stdout
        assert copy.startswith(DOCS)
        names = {json.loads(line)["_id"] for line in copy.splitlines()[500:]}
        equal(names, set(written[:len(names)]))
        assert len(names) >= least
        contains(ok("verify", "--store", store, cwd=cwd).stdout, " 0 findings")


@test
def endpoints_are_for_administrators_and_stay_in_their_directory(cwd):
    (cwd / "backups").mkdir()
    (cwd / "frond.ini").write_text(QUICK + "[frond]\nbackup_dir = backups\n")
    with Server(cwd, "--config", "frond.ini", "--admin", "anna:secret") as server:
        admin = basic("anna", "secret")
        equal(server.request("POST", "/_frond/backup", {"target": "x"})[0], 401)
        equal(server.request("GET", "/_frond/backup?target=x")[0], 401)
        for target in ("", ".", "..", ".hidden", "a/b", "../x", "a b", "x" * 65, 7, None):
            code, answer = server.request("POST", "/_frond/backup", {"target": target},
                                          headers=admin)
            equal((target, code), (target, 400))
            contains(answer["reason"], "`target` must be a name")
        for keep in (0, -1, "2", 1.5):
            equal(server.request("POST", "/_frond/backup", {"target": "x", "keep": keep},
                                 headers=admin)[0], 400)
        equal(server.request("GET", "/_frond/backup?target=x", headers=admin)[0], 404)
        equal(server.request("POST", "/_frond", {}, headers=admin)[0], 404)
        equal(server.request("POST", "/_frond/nonsense", {}, headers=admin)[0], 404)
        equal(server.request("DELETE", "/_frond/backup", headers=admin)[0], 405)
        equal(server.request("POST", "/_frond/backup", {"target": "x"},
                             headers={**admin, "Content-Type": "text/plain"})[0], 415)
        equal(os.listdir(cwd / "backups"), [])
        code, answer = server.request("POST", "/_frond/backup", {"target": "x", "keep": 1},
                                      headers=admin)
        equal((code, answer["ok"], answer["id"]), (200, True, 1))
        assert answer["bytes"] > 0 and answer["time"] > 0
    with Server(cwd) as server:
        code, answer = server.request("POST", "/_frond/backup", {"target": "x"})
        equal(code, 403)
        contains(answer["reason"], "backup_dir is not set")
        equal(server.request("POST", "/db/_compact", {})[0], 404)
        equal(server.request("PUT", "/db")[0], 201)
        equal(server.request("POST", "/db/_compact", {})[0], 202)


@test
def reader_goes_on_after_a_restore_without_missing_anything(cwd):
    with Server(cwd) as server:
        equal(server.request("PUT", "/db")[0], 201)
        equal(server.request("PUT", "/db/old", {})[0], 201)
        equal(server.stop(), 0)
    ok("backup", "backups", cwd=cwd)
    with Server(cwd) as server:
        for i in range(20):
            equal(server.request("PUT", f"/db/lost{i}", {})[0], 201)
        since = server.request("GET", "/db/_changes")[1]["last_seq"]
        equal(server.stop(), 0)
    # Twice from the same backup: the second must come after what readers have seen of the first.
    for store in ("embedded:first", "embedded:second"):
        ok("restore", "backups", "--store", store, cwd=cwd)
        with Server(cwd, "--store", store) as server:
            equal(server.request("GET", f"/db/_changes?since={since}")[1]["results"], [])
            for i in range(3):
                equal(server.request("PUT", f"/db/new{i}", {})[0], 201)
            answer = server.request("GET", f"/db/_changes?since={since}")[1]
            equal([row["id"] for row in answer["results"]], ["new0", "new1", "new2"])
            assert answer["last_seq"] > since
            since = answer["last_seq"]
            equal(server.stop(), 0)
        contains(ok("verify", "--store", store, cwd=cwd).stdout, " 0 findings")
    equal(since[:2], "01")


@test
def copied_directory_gets_a_higher_incarnation_by_hand(cwd):
    """A copy that another tool has made comes back after more was written, twice."""
    with Server(cwd) as server:
        for name in ("db", "other"):
            equal(server.request("PUT", f"/{name}")[0], 201)
            equal(server.request("PUT", f"/{name}/old", {})[0], 201)
        equal(server.stop(), 0)
    shutil.copytree(cwd / "data", cwd / "copy")
    with Server(cwd) as server:
        for i in range(20):
            equal(server.request("PUT", f"/db/lost{i}", {})[0], 201)
        since = server.request("GET", "/db/_changes")[1]["last_seq"]
        equal(server.stop(), 0)
    for how, shown in ((("--raise",), 1), (("--least", "2"), 2)):
        shutil.rmtree(cwd / "data")
        shutil.copytree(cwd / "copy", cwd / "data")
        equal(ok("incarnation", cwd=cwd).stdout, "incarnation 0\n")
        equal(ok("incarnation", *how, cwd=cwd).stdout, f"incarnation {shown}\n")
        equal(ok("incarnation", "--least", "1", cwd=cwd).stdout, f"incarnation {shown}\n")
        with Server(cwd) as server:
            equal(server.request("GET", f"/db/_changes?since={since}")[1]["results"], [])
            equal(server.request("PUT", "/db/new", {})[0], 201)
            answer = server.request("GET", f"/db/_changes?since={since}")[1]
            equal([row["id"] for row in answer["results"]], ["new"])
            assert answer["last_seq"] > since
            since = answer["last_seq"]
            equal(server.request("PUT", "/other/new", {})[0], 201)
            equal(server.request("GET", "/other/_changes")[1]["last_seq"][:2], f"{shown:02x}")
            equal(server.stop(), 0)
        contains(ok("verify", cwd=cwd).stdout, " 0 findings")
    ok("incarnation", "--least", "255", cwd=cwd)
    answer = run("incarnation", "--raise", cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "cannot be raised")
    equal(run("incarnation", "--raise", "--least", "3", cwd=cwd).returncode, 2)
    equal(run("incarnation", "--least", "256", cwd=cwd).returncode, 2)


main()
