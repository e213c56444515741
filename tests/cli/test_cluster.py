"""Three frond processes at one FoundationDB cluster: what one of them changes, the others know with
the very next request. Needs a cluster; see FROND_TEST_FDB."""

import http.client
import json
import subprocess
import threading
import time
import urllib.request
import uuid

from harness import ENV, FROND, Server, cluster, contains, equal, main, ok, run, test, until
from processes import BASIC, Processes, Waiting, ask, database, login, names, status, turns


@test
def database_is_there_and_gone_for_all_at_once(cwd):
    name = "/t" + uuid.uuid4().hex
    with Processes(cwd) as servers:
        for _, one, others in turns(servers):
            equal(status(one, "PUT", name), 201)
            for other in others:
                equal(status(other, "PUT", f"{name}/d{other.url[-5:]}", {}), 201)
                equal(status(other, "PUT", name), 412)
            count = ask(one, "GET", name)[1]["doc_count"]
            there = [row["id"] for row in ask(one, "GET", f"{name}/_all_docs")[1]["rows"]]
            equal((count, there), (len(others), sorted(f"d{other.url[-5:]}" for other in others)))
            equal(status(one, "DELETE", name), 200)
            for other in others:
                equal(status(other, "GET", name), 404)
                equal(status(other, "PUT", f"{name}/d", {}), 404)


@test
def database_made_again_is_another_one_for_all(cwd):
    with Processes(cwd) as servers, database(servers[0]) as db:
        for n, one, others in turns(servers):
            for other in others:  # they know the one that was there before
                equal(status(other, "PUT", f"{db}/old{other.url[-5:]}", {}), 201)
            equal(status(one, "DELETE", db), 200)
            equal(status(one, "PUT", db), 201)
            for other in others:
                equal(ask(other, "GET", db)[1]["doc_count"], 0)
                equal(ask(other, "GET", f"{db}/_all_docs")[1]["rows"], [])
                equal(status(other, "PUT", f"{db}/new", {}), 201)
                rev = ask(one, "GET", f"{db}/new")[1]["_rev"]
                equal(status(one, "DELETE", f"{db}/new?rev={rev}"), 200)


@test
def cookie_of_one_holds_at_all_until_the_password_changes(cwd):
    # Each of them was given anna's password in plain and has hashed it by itself.
    with Processes(cwd) as servers:
        cookie = login(servers[0], "anna", "secret")
        equal(names(servers, cookie), ["anna"] * len(servers))
        name = "t" + uuid.uuid4().hex
        setting = f"/_node/_local/_config/admins/{name}"
        try:
            equal(status(servers[0], "PUT", setting, "one"), 200)
            cookie = login(servers[1], name, "one")
            equal(names(servers, cookie), [name] * len(servers))
            equal(status(servers[2], "PUT", setting, "two"), 200)
            equal(names(servers, cookie), [None] * len(servers))
        finally:
            status(servers[0], "DELETE", setting)


@test
def security_holds_for_all_at_once(cwd):
    nobody = {"admins": {"names": ["x"], "roles": []}, "members": {"names": ["x"], "roles": []}}
    everybody = {"admins": {"names": [], "roles": []}, "members": {"names": [], "roles": []}}
    with Processes(cwd) as servers, database(servers[0]) as db:
        for _, one, others in turns(servers):
            equal(status(one, "PUT", f"{db}/_security", nobody), 200)
            for other in others:
                equal(ask(other, "GET", f"{db}/_security")[1], nobody)
                equal(status(other, "GET", f"{db}/_all_docs", headers={}), 401)
                equal(status(other, "POST", db, {}, headers={}), 401)
            equal(status(one, "PUT", f"{db}/_security", everybody), 200)
            for other in others:
                equal(status(other, "GET", f"{db}/_all_docs", headers={}), 200)
                equal(status(other, "POST", db, {}, headers={}), 201)


@test
def quiet_feeds_ask_the_store_nothing_and_end_with_the_right_that_another_takes(cwd):
    count, seconds = 200, 3
    nobody = {"admins": {"names": ["x"], "roles": []}, "members": {"names": ["x"], "roles": []}}
    with Processes(cwd) as servers, database(servers[0]) as db:
        equal(status(servers[0], "PUT", f"{db}/_security",
                     {"admins": {"names": [], "roles": []}, "members": {"names": [], "roles": []}}), 200)
        feeds = []
        for _ in range(count):
            feeds.append(http.client.HTTPConnection(servers[1].url.removeprefix("http://"), timeout=60))
            feeds[-1].request("GET", f"{db}/_changes?feed=continuous&heartbeat=60000&since=now")
        answers = [feed.getresponse() for feed in feeds]
        equal({answer.status for answer in answers}, {200})

        def transactions():
            return servers[1].metrics(BASIC)["frond_cluster_transactions_total"]

        def rate():
            begun = transactions(), time.monotonic()
            time.sleep(seconds)
            return (transactions() - begun[0]) / (time.monotonic() - begun[1])

        # The chores of a process begin some twenty a second, and feeds a few until they wait.
        until(lambda: rate() < count / 4)
        equal(status(servers[0], "PUT", f"{db}/_security", nobody), 200)
        for answer in answers:
            # The feed's last line, which tells how far it got, and its end.
            contains(answer.read().decode(), '"last_seq"')


@test
def limits_hold_for_all_at_once(cwd):
    with Processes(cwd) as servers, database(servers[0]) as db:
        for n, one, others in turns(servers):
            limit = n % 3 + 1
            equal(status(one, "PUT", f"{db}/_revs_limit", limit), 200)
            equal(status(one, "PUT", f"{db}/_purged_infos_limit", 100 + n), 200)
            for other in others:
                equal(ask(other, "GET", f"{db}/_revs_limit")[1], limit)
                equal(ask(other, "GET", f"{db}/_purged_infos_limit")[1], 100 + n)
                path, rev = f"{db}/d{n}{other.url[-5:]}", ""
                for _ in range(5):
                    rev = ask(other, "PUT", path + rev, {})[1]["rev"]
                    rev = f"?rev={rev}"
                history = ask(one, "GET", path + "?revs=true")[1]["_revisions"]["ids"]
                equal(len(history), limit)


@test
def settings_hold_for_all_at_once(cwd):
    path = "/_node/_local/_config/couchdb/max_document_size"
    with Processes(cwd) as servers, database(servers[0]) as db:
        try:
            for n, one, others in turns(servers):
                equal(status(one, "PUT", path, str(1000 + n)), 200)
                for other in others:
                    equal(ask(other, "GET", path)[1], str(1000 + n))
                    equal(status(other, "POST", db, {"text": "x" * 2000}), 413)
                equal(status(one, "PUT", path, "100000"), 200)
                for other in others:
                    equal(status(other, "POST", db, {"text": "x" * 2000}), 201)
        finally:
            status(servers[0], "DELETE", path)


@test
def feeds_of_one_tell_what_another_has_written(cwd):
    with Processes(cwd) as servers, database(servers[0]) as db:
        for n, one, others in turns(servers):
            since = ask(one, "GET", db)[1]["update_seq"]
            feed = f"{db}/_changes?feed=longpoll&timeout=30000&since={since}"
            waiting = [Waiting(other, feed) for other in others]
            rev = ask(one, "PUT", f"{db}/d{n}", {})[1]["rev"]
            for thread in waiting:
                code, answer = thread.answer()
                equal(code, 200)
                equal([(row["id"], row["changes"]) for row in answer["results"]],
                      [(f"d{n}", [{"rev": rev}])])


@test
def continuous_feed_tells_of_all_writers_in_one_order(cwd):
    with Processes(cwd) as servers, database(servers[0]) as db:
        request = urllib.request.Request(
            servers[0].url + f"{db}/_changes?feed=continuous&timeout=5000", headers=BASIC)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as feed:
            threads = [threading.Thread(target=lambda s=server, k=k: [
                equal(status(s, "PUT", f"{db}/{k}-{i}", {}), 201) for i in range(20)])
                for k, server in enumerate(servers)]
            for thread in threads:
                thread.start()
            rows = []
            while len(rows) < 60:
                line = feed.readline().strip()
                assert not line.startswith(b'{"last_seq"'), "the feed ended early"
                if line:
                    rows.append(json.loads(line))
            for thread in threads:
                thread.join()
        equal(sorted(row["id"] for row in rows),
              sorted(f"{k}-{i}" for k in range(3) for i in range(20)))
        equal([row["seq"] for row in rows], sorted(row["seq"] for row in rows))


@test
def updates_of_databases_reach_all(cwd):
    name = "t" + uuid.uuid4().hex
    with Processes(cwd) as (a, b, c):
        since = ask(c, "GET", "/_db_updates")[1]["last_seq"]
        waiting = Waiting(c, f"/_db_updates?feed=longpoll&timeout=30000&since={since}")
        equal(status(a, "PUT", f"/{name}"), 201)
        events = waiting.answer()[1]
        contains([(e["db_name"], e["type"]) for e in events["results"]], (name, "created"))
        waiting = Waiting(a, f"/_db_updates?feed=longpoll&timeout=30000&since={events['last_seq']}")
        equal(status(b, "DELETE", f"/{name}"), 200)
        events = waiting.answer()[1]
        contains([(e["db_name"], e["type"]) for e in events["results"]], (name, "deleted"))


@test
def no_update_of_one_document_is_lost_among_three(cwd):
    per_server = 15
    with Processes(cwd) as servers, database(servers[0]) as db:
        equal(status(servers[0], "PUT", f"{db}/n", {"n": 0}), 201)

        def count(server):
            done = 0
            while done < per_server:
                doc = ask(server, "GET", f"{db}/n")[1]
                doc["n"] += 1
                code = status(server, "PUT", f"{db}/n", doc)
                assert code in (201, 409), code
                done += code == 201

        threads = [threading.Thread(target=count, args=(server,)) for server in servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        doc = ask(servers[1], "GET", f"{db}/n")[1]
        equal(doc["n"], 3 * per_server)
        equal(doc["_rev"].split("-")[0], str(3 * per_server + 1))


def get_slowly(server, path, seconds):
    """The answer's bytes, read after a rest in the middle."""
    request = urllib.request.Request(server.url + path, headers=BASIC)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        begun = answer.read(65536)
        time.sleep(seconds)
        return begun + answer.read()


@test
def answers_longer_than_a_version_is_kept_and_requests_larger_than_a_transaction_are_whole(cwd):
    """A cluster keeps a version for five seconds, and a transaction is ten megabytes."""
    ids = [f"d{n:05}" for n in range(10000)]
    photo = bytes(n * n % 251 for n in range(1 << 16)) * 500
    with Processes(cwd, 1) as (server,), database(server) as db:
        code, results = ask(server, "POST", f"{db}/_bulk_docs", {
            "docs": [{"_id": id, "text": id * 500} for id in ids]})
        equal(code, 201)
        equal([(result["id"], result["ok"]) for result in results], [(id, True) for id in ids])
        revs = [result["rev"] for result in results]
        equal(ask(server, "PUT", f"{db}/photo", {})[0], 201)
        rev = ask(server, "GET", f"{db}/photo")[1]["_rev"]
        request = urllib.request.Request(
            f"{server.url}{db}/photo/photo?rev={rev}", data=photo, method="PUT",
            headers={"Content-Type": "image/png", **BASIC})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            equal(answer.status, 201)

        rows = json.loads(get_slowly(server, f"{db}/_all_docs?include_docs=true", 7))["rows"]
        equal([row["id"] for row in rows], [*ids, "photo"])
        equal([row["doc"]["_rev"] for row in rows[:-1]], revs)
        assert all(row["doc"]["text"] == row["id"] * 500 for row in rows[:-1])
        rows = json.loads(get_slowly(server, f"{db}/_changes?include_docs=true", 7))["results"]
        equal([row["id"] for row in rows], [*ids, "photo"])
        assert get_slowly(server, f"{db}/photo/photo", 7) == photo


@test
def document_too_large_for_a_transaction_is_refused_with_a_reason(cwd):
    # 7.9 MB of JSON, of whose leaves the keys are several times as large.
    text = "x" * 200
    doc = {"a" * 500: {text + str(n): n for n in range(38000)}}
    (cwd / "large.ini").write_text("[couchdb]\nmax_document_size = 8000000\n")
    with Server(cwd, "--store", cluster(), "--config", str(cwd / "large.ini")) as server:
        name = "/t" + uuid.uuid4().hex
        equal(ask(server, "PUT", name, headers={})[0], 201)
        code, body = ask(server, "PUT", f"{name}/large", doc, headers={})
        equal((code, body["error"]), (413, "document_too_large"))
        equal(ask(server, "GET", f"{name}/large", headers={})[0], 404)
        equal(ask(server, "PUT", f"{name}/small", {}, headers={})[0], 201)
        equal(ask(server, "DELETE", name, headers={})[0], 200)


@test
def moved_database_is_fenced_for_all_and_goes_on_elsewhere(cwd):
    with Processes(cwd) as servers, database(servers[0]) as db:
        name = db[1:]
        docs = [{"_id": f"d{n:05}", "text": "x" * 1000} for n in range(8000)]
        equal(status(servers[0], "POST", f"{db}/_bulk_docs", {"docs": docs}), 201)
        since = ask(servers[0], "GET", db)[1]["update_seq"]
        waiting = Waiting(servers[1], f"{db}/_changes?feed=longpoll&heartbeat=5000&since={since}")
        command = ("move", "--from", cluster(), "--to", "embedded:there", name)
        process = subprocess.Popen([FROND, *command, "--quiet"], cwd=cwd, env=ENV,
                                   stdout=subprocess.DEVNULL)
        codes = [[], [], []]
        while process.poll() is None:
            for server, seen in zip(servers, codes):
                # Without a revision: refused as a conflict before the move.
                seen.append(status(server, "PUT", f"{db}/d00000", {}))
                assert status(server, "GET", f"{db}/d00001") in (200, 404)
        equal(process.returncode, 0)
        for seen in codes:
            assert set(seen) <= {409, 503, 404}, seen
            # On a busy machine a request or two may be all, and before the fence.
            assert 503 in seen or len(seen) < 5, seen
            # In this order.
            equal(seen, sorted(seen, key=lambda code: [409, 503, 404].index(code)))
        for server in servers:
            equal(status(server, "GET", db), 404)
        equal(waiting.answer(10)[0], None)  # its database has gone
        contains(ok("verify", "--store", "embedded:there", cwd=cwd).stdout, " 0 findings")
        back = ("move", "--to", cluster(), "--from", "embedded:there", name)
        ok(*back, cwd=cwd)
        for server in servers:
            info = ask(server, "GET", db)[1]
            equal((info["doc_count"], info["update_seq"]), (8000, since))
        equal(status(servers[2], "PUT", f"{db}/new", {}), 201)
        rows = ask(servers[0], "GET", f"{db}/_changes?since={since}")[1]["results"]
        equal([row["id"] for row in rows], ["new"])


@test
def move_to_a_cluster_that_was_killed_goes_on(cwd):
    name = "t" + uuid.uuid4().hex
    docs = "\n".join(json.dumps({"_id": f"d{n}", "text": "x" * 1000}) for n in range(5000))
    command = ("move", "--from", "embedded:here", "--to", cluster(), name)
    ok("load", name, "--store", "embedded:here", "--quiet", cwd=cwd, stdin=docs)
    before = ok("dump", name, "--revs", "--quiet", "--store", "embedded:here", cwd=cwd).stdout
    seconds, kills = 0.1, 0
    while True:
        process = subprocess.Popen([FROND, *command, "--quiet"], cwd=cwd, env=ENV,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            said = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
            seconds *= 1.5
            continue
        # One that was killed behind its last transaction has left nothing to move.
        if process.returncode != 0:
            assert kills and f'there is no database "{name}"' in said, said
        break
    print(f"# killed {kills} times")
    with Processes(cwd, 1) as (server,):
        after = ok("dump", name, "--revs", "--quiet", "--from",
                   server.url.replace("//", "//anna:secret@"), cwd=cwd).stdout
        equal(sorted(after.splitlines()) == sorted(before.splitlines()), True)
        equal(run("dump", name, "--store", "embedded:here", cwd=cwd).returncode, 1)
        equal(status(server, "DELETE", f"/{name}"), 200)


main(needs=None if cluster() else "FROND_TEST_FDB names no cluster file")
