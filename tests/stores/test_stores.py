"""Stores that earlier commits have written (see README.md): the present binary reads them as those
did, finds nothing wrong in them, and goes on writing."""

import json
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from harness import Server, contains, equal, main, ok, run, test  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
STORE = "embedded:store"


def stores():
    """The name of every store that is kept."""
    names = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))
    assert names, "no store is kept"
    return names


def unpack(cwd, name):
    target = cwd / name
    target.mkdir()
    with tarfile.open(HERE / f"{name}.tar.xz") as tar:
        tar.extractall(target)
    return target


def databases(cwd):
    return json.loads((cwd / "expected" / "databases.json").read_text())


def dump(cwd, db):
    return ok("dump", db, "--revs", "--quiet", "--store", STORE, cwd=cwd).stdout


def whole(cwd):
    contains(ok("verify", "--quiet", "--store", STORE, cwd=cwd).stdout, " 0 findings")


@test
def every_store_is_dumped_as_its_own_binary_dumped_it(cwd):
    for name in stores():
        store = unpack(cwd, name)
        for db in databases(store):
            equal(dump(store, db), (store / "expected" / f"{db}.jsonl").read_text())


@test
def every_pair_of_it_is_drawn_as_its_own_binary_drew_it(cwd):
    for name in stores():
        store = unpack(cwd, name)
        equal(ok("inspect", "--store", STORE, cwd=store).stdout,
              (store / "expected" / "inspect.txt").read_text())


@test
def nothing_is_found_wrong_in_it(cwd):
    for name in stores():
        whole(unpack(cwd, name))


@test
def a_server_goes_on_with_it(cwd):
    for name in stores():
        store = unpack(cwd, name)
        with Server(store, "--store", STORE, "--admin", "root:secret") as server:
            def ask(method, path, body=None):
                return server.request(method, path, body,
                                      {"Authorization": "Basic cm9vdDpzZWNyZXQ="})
            equal(ask("GET", "/dropped")[0], 404)
            for db in ("packed", "exploded", "tallies", "arrived"):
                before = ask("GET", f"/{db}")[1]
                equal(ask("PUT", f"/{db}/written-since", {"n": 1})[0], 201)
                after = ask("GET", f"/{db}")[1]
                equal(after["doc_count"], before["doc_count"] + 1)
                assert after["update_seq"] > before["update_seq"], (before, after)
                equal(ask("GET", f"/{db}/_changes?since={before['update_seq']}")[1]
                      ["results"][0]["id"], "written-since")
            equal(ask("PUT", "/moved/d", {"n": 1})[0], 403)
            equal(ask("PUT", "/moving/d", {"n": 1})[0], 503)
            for db in ("packed", "exploded"):
                doc = ask("GET", f"/{db}/conflicts?conflicts=true")[1]
                equal(len(doc["_conflicts"]), 2)
                equal(ask("DELETE", f"/{db}/conflicts?rev={doc['_rev']}")[0], 200)
                equal(ask("GET", f"/{db}/_revs_limit")[1], 20)
                equal(ask("GET", f"/{db}/_security")[1]["admins"]["names"], ["anna"])
                equal(ask("GET", f"/{db}/_local/checkpoint")[1]["session"], "s")
                equal(ask("GET", f"/{db}/purged")[0], 404)
                # That purge is of before there were records of them.
                equal(ask("GET", f"/{db}/_purged_infos")[1], {"purged_infos": []})
                rev = ask("PUT", f"/{db}/purged", {"n": 2})[1]["rev"]
                equal(ask("POST", f"/{db}/_purge", {"purged": [rev]})[0], 201)
                equal(ask("GET", f"/{db}/_purged_infos")[1],
                      {"purged_infos": [{"id": "purged", "revs": [rev]}]})
            equal(ask("GET", "/tallies/_all_docs?limit=1&startkey=\"t00700\"")[1]["offset"], 700)
            equal(ask("GET", "/_node/_local/_config/cors/origins")[1], "https://example.org")
            equal(ask("PUT", "/created-since")[0], 201)
            equal(ask("DELETE", "/tallies")[0], 200)
        whole(store)


@test
def a_move_that_its_binary_began_is_undone(cwd):
    for name in stores():
        store = unpack(cwd, name)
        ok("move", "--quiet", "--rollback", "--from", STORE, "--to", "embedded:other", "moving",
           cwd=store)
        equal(run("move", "--quiet", "--from", STORE, "--to", "embedded:other", "moved",
                  cwd=store).returncode, 1)
        ok("move", "--quiet", "--from", STORE, "--to", "embedded:other", "moving", cwd=store)
        equal(ok("dump", "moving", "--revs", "--quiet", "--store", "embedded:other",
                 cwd=store).stdout, (store / "expected" / "moving.jsonl").read_text())
        whole(store)


main()
