"""Replications between databases of one server, and between two servers, as clients start them."""

import base64
import json
import re
import pathlib
import threading
import time

from harness import QUICK, Server, contains, equal, main, test, until

LONG = base64.b64encode(bytes(range(256)) * 2000).decode()


def fill(server, db, count=250):
    """Documents, a conflict, a tombstone and two attachments."""
    equal(server.request("PUT", f"/{db}")[0], 201)
    docs = [{"_id": f"{i:04}", "n": i} for i in range(count)]
    docs += [{"_id": "_design/d", "views": {}}, {"_id": "gone"}, {"_id": "a/b c?\u00e4"}]
    status, rows = server.request("POST", f"/{db}/_bulk_docs", {"docs": docs})
    equal(status, 201)
    gone = next(row for row in rows if row["id"] == "gone")
    equal(server.request("DELETE", f"/{db}/gone?rev={gone['rev']}")[0], 200)
    equal(server.request("POST", f"/{db}/_bulk_docs", {"new_edits": False, "docs": [
        {"_id": "torn", "_rev": "1-a"}, {"_id": "torn", "_rev": "1-b", "x": 1}]})[0], 201)
    equal(server.request("PUT", f"/{db}/att", {"_attachments": {
        'quo"ted \\ name.txt': {"content_type": "text/plain", "data": LONG},
        "raw": {"content_type": "image/png", "data": "AAAA"}}})[0], 201)


def revisions(server, db):
    _, feed = server.request("GET", f"/{db}/_changes?style=all_docs")
    return sorted((row["id"], sorted(change["rev"] for change in row["changes"]))
                  for row in feed["results"])


def same(server, db, other, copy):
    equal(revisions(other, copy), revisions(server, db))
    for path in ("att?attachments=true", "torn?conflicts=true", "a%2Fb%20c%3F%C3%A4"):
        json_only = {"Accept": "application/json"}
        equal(other.request("GET", f"/{copy}/{path}", headers=json_only),
              server.request("GET", f"/{db}/{path}", headers=json_only))


def beside(directory):
    """A directory for another server, which has a store of its own."""
    other = pathlib.Path(directory) / "other"
    other.mkdir()
    return other


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@test
def a_replication_of_a_user_may_what_the_user_may(directory):
    admin, anna = basic("admin", "secret"), basic("anna", "apple")
    with Server(directory, "--admin", "admin:secret") as server:
        def put(path, body=None):
            status, answer = server.request("PUT", path, body, admin)
            assert status in (200, 201), answer

        put("/_users")
        put("/_users/org.couchdb.user:anna",
            {"type": "user", "name": "anna", "roles": ["cook"], "password": "apple"})
        for db, members in (("from", {"roles": ["cook"]}), ("to", {"names": ["anna"]}),
                            ("closed", {"names": ["otto"]})):
            put(f"/{db}")
            put(f"/{db}/_security", {"members": members})
        put("/from/a", {"n": 1})
        put("/closed/b", {"n": 2})

        def replicate(source, target):
            return server.request("POST", "/_replicate", {"source": source, "target": target}, anna)

        status, answer = replicate("from", "to")
        equal((status, answer.get("ok")), (200, True))
        equal(server.request("GET", "/to/a", headers=anna)[1]["n"], 1)
        for source, target in (("closed", "to"), ("from", "closed")):
            status, answer = replicate(source, target)
            assert status >= 400, answer
        equal(server.request("GET", "/to/b", headers=anna)[0], 404)
        equal(server.request("GET", "/closed/a", headers=admin)[0], 404)


@test
def a_replication_stops_copying_when_its_owner_loses_the_right(directory):
    admin, anna = basic("admin", "secret"), basic("anna", "apple")
    with Server(directory, "--admin", "admin:secret") as server:
        def put(path, body=None):
            status, answer = server.request("PUT", path, body, admin)
            assert status in (200, 201), answer
            return answer

        def has(db, doc):
            return server.request("GET", f"/{db}/{doc}", headers=admin)[0] == 200

        def ran(event):
            jobs = server.request("GET", "/_scheduler/jobs", headers=admin)[1]["jobs"]
            return any(entry["type"] == event for job in jobs for entry in job["history"])

        put("/_users")
        person = put("/_users/org.couchdb.user:anna",
                     {"type": "user", "name": "anna", "roles": ["cook"], "password": "apple"})
        for db in ("from", "to"):
            put(f"/{db}")
            put(f"/{db}/_security", {"members": {"roles": ["cook"]}})
        put("/from/a", {})
        status, answer = server.request("POST", "/_replicate", {
            "source": "from", "target": "to", "continuous": True}, anna)
        equal((status, answer.get("ok")), (202, True))
        until(lambda: has("to", "a"))
        put(f"/_users/org.couchdb.user:anna?rev={person['rev']}",
            {"type": "user", "name": "anna", "roles": [], "password": "apple"})
        # The request that waits for changes ends, and the next one is refused.
        until(lambda: ran("crashed"))
        put("/from/b", {})
        status, answer = server.request("POST", "/_replicate", {
            "source": "from", "target": "to"}, anna)
        assert status in (401, 403), (status, answer)
        assert not has("to", "b")


def people(server, *names):
    """Users, each with the role of a cook, and the databases `from` and `to`."""
    admin = basic("admin", "secret")
    equal(server.request("PUT", "/_users", headers=admin)[0], 201)
    for name in names:
        equal(server.request("PUT", f"/_users/org.couchdb.user:{name}", {
            "type": "user", "name": name, "roles": ["cook"], "password": "apple"}, admin)[0], 201)
    for db, members in (("from", {"roles": ["cook"]}), ("to", {"roles": ["cook"]}),
                        ("_replicator", {"names": list(names)})):
        equal(server.request("PUT", f"/{db}", headers=admin)[0], 201)
        equal(server.request("PUT", f"/{db}/_security", {"members": members}, admin)[0], 200)


def change_person(server, name, **members):
    admin, path = basic("admin", "secret"), f"/_users/org.couchdb.user:{name}"
    doc = server.request("GET", path, headers=admin)[1]
    assert server.request("PUT", path, {**doc, **members}, admin)[0] in (200, 201)


def doc_state(server, doc):
    admin = basic("admin", "secret")
    shown = server.request("GET", f"/_scheduler/docs/_replicator/{doc}", headers=admin)[1]
    return shown.get("state"), shown.get("info")


def written_state(server, name, state):
    """The document, once that state is written in it; None until then."""
    doc = server.request("GET", f"/_replicator/{name}", headers=basic("admin", "secret"))[1]
    return doc if doc.get("_replication_state") == state else None


FROM_TO = {"source": "from", "target": "to", "continuous": True}


@test
def a_document_runs_with_the_rights_that_its_owner_has_now(directory):
    admin, anna = basic("admin", "secret"), basic("anna", "apple")
    (pathlib.Path(directory) / "ini").write_text(QUICK + "[replicator]\nbackoff = 300\n")
    with Server(directory, "--config", "ini", "--admin", "admin:secret") as server:
        people(server, "anna")

        def has(doc):
            return server.request("GET", f"/to/{doc}", headers=admin)[0] == 200

        equal(server.request("PUT", "/_replicator/r", FROM_TO, anna)[0], 201)
        equal(server.request("GET", "/_replicator/r", headers=anna)[1]["owner"], "anna")
        equal(server.request("PUT", "/from/a", {}, admin)[0], 201)
        until(lambda: has("a"))
        change_person(server, "anna", roles=[])
        until(lambda: doc_state(server, "r")[0] == "crashing")
        contains(doc_state(server, "r")[1]["error"], "unauthorized")
        equal(server.request("PUT", "/from/b", {}, admin)[0], 201)
        assert not has("b")
        # With the role, the next of its runs goes on.
        change_person(server, "anna", roles=["cook"])
        until(lambda: has("b"))


@test
def a_document_whose_owner_is_removed_has_failed(directory):
    admin, anna = basic("admin", "secret"), basic("anna", "apple")
    with Server(directory, "--admin", "admin:secret") as server:
        people(server, "anna")
        # Not even what everybody may is done in the name of somebody who is gone.
        for db in ("from", "to"):
            equal(server.request("PUT", f"/{db}/_security", {"members": {}}, admin)[0], 200)
        equal(server.request("PUT", "/_replicator/r", FROM_TO, anna)[0], 201)
        equal(server.request("PUT", "/from/a", {}, admin)[0], 201)
        until(lambda: server.request("GET", "/to/a", headers=admin)[0] == 200)
        change_person(server, "anna", _deleted=True)
        until(lambda: doc_state(server, "r")[0] == "failed")
        # The document is told a moment later.
        doc = until(lambda: written_state(server, "r", "failed"))
        contains(doc["_replication_state_reason"], "anna, is no user of this server any more")
        equal(server.request("PUT", "/from/b", {}, admin)[0], 201)
        # Somebody else of that name gets none of it.
        equal(server.request("PUT", "/_users/org.couchdb.user:anna", {
            "type": "user", "name": "anna", "roles": [], "password": "pear"}, admin)[0], 201)
        equal(doc_state(server, "r")[0], "failed")
        equal(server.request("GET", "/to/b", headers=admin)[0], 404)


@test
def a_document_does_not_run_with_the_rights_of_somebody_else(directory):
    admin, anna, otto = basic("admin", "secret"), basic("anna", "apple"), basic("otto", "apple")
    with Server(directory, "--admin", "admin:secret") as server:
        people(server, "anna", "otto")
        equal(server.request("PUT", "/closed", headers=admin)[0], 201)
        equal(server.request("PUT", "/closed/a", {"x": 1}, admin)[0], 201)
        job = {"source": "closed", "target": "to"}
        for body in ({**job, "owner": "admin"}, {**job, "source": 1}):
            equal(server.request("PUT", "/_replicator/r", body, anna)[0], 403)
        equal(server.request("PUT", "/_replicator/r", job, anna)[0], 201)
        until(lambda: doc_state(server, "r")[0] == "crashing")
        equal(server.request("GET", "/to/a", headers=admin)[0], 404)
        equal(server.request("GET", "/_scheduler/docs", headers=otto)[0], 401)
        status, doc = server.request("GET", "/_replicator/r", headers=otto)
        equal((status, doc["owner"]), (200, "anna"))
        equal(server.request("DELETE", f"/_replicator/r?rev={doc['_rev']}", headers=otto)[0], 403)
        equal(server.request("DELETE", f"/_replicator/r?rev={doc['_rev']}", headers=anna)[0], 200)
        until(lambda: server.request("GET", "/_scheduler/docs", headers=admin)[1]["docs"] == [])


@test
def a_local_replication_copies_everything(directory):
    with Server(directory) as server:
        fill(server, "a")
        job = {"source": "a", "target": "b", "create_target": True}
        status, answer = server.request("POST", "/_replicate", job)
        equal((status, answer["ok"]), (200, True))
        equal(answer["history"][0]["doc_write_failures"], 0)
        same(server, "a", server, "b")
        equal(server.request("POST", "/_replicate", job)[1]["no_changes"], True)
        equal(server.stop(), 0)


@test
def what_fails_is_told_to_the_client(directory):
    with Server(directory) as server:
        status, answer = server.request("POST", "/_replicate", {"source": "no", "target": "b"})
        equal((status, answer["error"]), (500, "db_not_found"))
        equal(server.request("PUT", "/a")[0], 201)
        status, answer = server.request("POST", "/_replicate", {
            "source": "a", "target": "http://127.0.0.1:1/x", "retries_per_request": 0})
        assert status >= 500, answer


@test
def a_document_of_replicator_becomes_a_job_and_shows_its_end(directory):
    with Server(directory) as server, Server(beside(directory)) as other:
        fill(server, "a")
        server.request("PUT", "/_replicator")
        equal(server.request("PUT", "/_replicator/job", {
            "source": "a", "target": other.url + "/b", "create_target": True})[0], 201)
        until(lambda: server.request("GET", "/_replicator/job")[1].get("_replication_state")
              == "completed")
        same(server, "a", other, "b")
        _, listed = server.request("GET", "/_scheduler/docs?states=completed,failed")
        equal([doc["doc_id"] for doc in listed["docs"]], ["job"])
        equal(server.request("GET", "/_scheduler/docs?states=running")[1]["docs"], [])


@test
def a_continuous_job_follows_until_it_is_cancelled(directory):
    with Server(directory) as server:
        fill(server, "a")
        job = {"source": server.url + "/a", "target": "b", "create_target": True,
               "continuous": True}
        status, answer = server.request("POST", "/_replicate", job)
        assert status in (200, 202), answer
        until(lambda: server.request("GET", "/b")[1].get("doc_count") ==
              server.request("GET", "/a")[1]["doc_count"])
        equal(server.request("PUT", "/a/later", {})[0], 201)
        until(lambda: server.request("GET", "/b/later")[0] == 200)
        jobs = server.request("GET", "/_scheduler/jobs")[1]["jobs"]
        tasks = server.request("GET", "/_active_tasks")[1]
        equal((len(jobs), len(tasks)), (1, 1))
        assert re.fullmatch(r"<0\.\d+\.0>", jobs[0]["pid"]), jobs
        equal(tasks[0]["pid"], jobs[0]["pid"])
        equal(server.request("POST", "/_replicate", {**job, "cancel": True})[0], 200)
        equal(server.request("GET", "/_scheduler/jobs")[1]["jobs"], [])
        equal(server.request("POST", "/_replicate", {**job, "cancel": True})[0], 404)


def replicated(server, **members):
    status, answer = server.request("POST", "/_replicate", {
        "source": "a", "target": "b", "create_target": True, **members})
    assert status == 200, (status, answer)
    return answer


def figures(answer, *names):
    return [answer["history"][0][name] for name in names]


@test
def figures_of_a_history_are_of_all_runs_together(directory):
    names = ("missing_checked", "missing_found", "docs_read", "docs_written", "bulk_get_docs",
             "bulk_get_attempts")
    with Server(directory) as server:
        equal(server.request("PUT", "/a")[0], 201)
        for i in range(5):
            equal(server.request("PUT", f"/a/{i}", {})[0], 201)
        equal(figures(replicated(server), *names), [5, 5, 5, 5, 5, 5])
        for i in range(5, 8):
            equal(server.request("PUT", f"/a/{i}", {})[0], 201)
        answer = replicated(server)
        equal(figures(answer, *names), [8, 8, 8, 8, 8, 8])
        equal([entry["docs_written"] for entry in answer["history"]], [8, 5])
        # Several pages in one run are one session.
        for i in range(8, 20):
            equal(server.request("PUT", f"/a/{i}", {})[0], 201)
        answer = replicated(server, worker_batch_size=3)
        equal(figures(answer, *names), [20, 20, 20, 20, 20, 20])
        equal(len(answer["history"]), 3)


@test
def a_run_whose_filter_matches_nothing_new_has_no_changes(directory):
    with Server(directory) as server:
        equal(server.request("PUT", "/a")[0], 201)
        equal(server.request("PUT", "/a/x", {"n": 1})[0], 201)
        for members in ({"doc_ids": ["x"]}, {"selector": {"n": 1}}):
            answer = replicated(server, **members)
            assert "no_changes" not in answer, answer
            equal(server.request("PUT", "/a/other" + next(iter(members)), {"n": 2})[0], 201)
            again = replicated(server, **members)
            equal(again.pop("no_changes"), True)
            again.pop("ok")
            answer.pop("ok")
            equal(again, answer)
        for members in ({"doc_ids": ["none"]}, {"selector": {"n": 3}}):
            equal(replicated(server, **members), {"ok": True, "no_changes": True})


@test
def leaves_beside_one_with_attachments_are_copied_once(directory):
    docs = [{"_id": "many", "_rev": f"1-{i:02}", "n": i} for i in range(30)]
    docs[17]["_attachments"] = {"file": {"content_type": "text/plain", "data": "AAAA"}}
    with Server(directory) as server:
        equal(server.request("PUT", "/a")[0], 201)
        equal(server.request("POST", "/a/_bulk_docs", {"new_edits": False, "docs": docs})[0], 201)
        answer = replicated(server)
        equal(figures(answer, "missing_found", "docs_read", "docs_written", "bulk_get_docs",
                      "bulk_get_attempts"), [30, 30, 30, 29, 30])
        equal(revisions(server, "b"), revisions(server, "a"))
        copied = server.request("GET", "/b/many?rev=1-17&attachments=true",
                                headers={"Accept": "application/json"})[1]
        equal(copied["_attachments"]["file"]["data"], "AAAA")


@test
def a_function_of_a_local_source_filters(directory):
    with Server(directory) as server:
        equal(server.request("PUT", "/a")[0], 201)
        equal(server.request("POST", "/a/_bulk_docs", {
            "docs": [{"_id": f"{i:02}", "n": i} for i in range(20)]})[0], 201)
        equal(server.request("PUT", "/a/_design/d", {
            "filters": {"below": "function (doc, req) { return doc.n < Number(req.query.n); }",
                        "bad": "function (doc) { throw 'no'; }"},
            "views": {"even": {"map": "function (doc) { if (doc.n % 2 === 0) emit(1); }"}}})[0],
              201)
        answer = replicated(server, filter="d/below", query_params={"n": "5"})
        equal(figures(answer, "docs_written"), [5])
        equal(server.request("GET", "/b")[1]["doc_count"], 5)
        replicated(server, target="c", filter="_view", query_params={"view": "d/even"})
        equal(server.request("GET", "/c")[1]["doc_count"], 10)
        status, answer = server.request("POST", "/_replicate", {
            "source": "a", "target": "x", "create_target": True, "filter": "d/bad"})
        assert status >= 500, (status, answer)


@test
def parameters_of_a_filter_are_what_they_are_in_couchdb(directory):
    filters = {"asked": "function (doc, req) { return req.query.told === doc._id; }",
               "some": "function (doc) { return doc.n < 150; }"}
    with Server(directory) as server:
        equal(server.request("PUT", "/a")[0], 201)
        equal(server.request("PUT", "/a/_design/d", {"filters": filters})[0], 201)
        told = {"5": 5, "-1.5": -1.5, "true": True, "false": False, "null": None, "a b&c": "a b&c",
                '[1, {"x": 2}]': [1, {"x": 2}]}
        docs = [{"_id": key} for key in told] + [{"_id": f"{i:03}", "n": i} for i in range(300)]
        equal(server.request("POST", "/a/_bulk_docs", {"docs": docs})[0], 201)
        for number, (key, value) in enumerate(told.items()):
            target = f"t{number}"
            replicated(server, target=target, filter="d/asked", query_params={"told": value})
            rows = server.request("GET", f"/{target}/_all_docs")[1]["rows"]
            equal([row["id"] for row in rows], [key])
        # What the replicator asks by is its own: these would let it begin anew, or never end.
        own = {"since": 0, "limit": 1, "feed": "continuous", "style": "main_only", "heartbeat": 1,
               "filter": "d/none"}
        answer = replicated(server, target="own", filter="d/some", query_params=own)
        equal(figures(answer, "docs_written"), [150])
        # Of a view they are JSON, as for the view itself.
        equal(server.request("PUT", "/a/_design/v", {"views": {"v": {
            "map": "function (doc) { if (doc.n < 20) emit(doc.n); }"}}})[0], 201)
        answer = replicated(server, target="viewed", filter="_view",
                            query_params={"view": "v/v", "key": "x", "start_key": [1]})
        equal(figures(answer, "docs_written"), [20])


@test
def a_filter_that_is_not_there_is_told_in_couchdbs_words(directory):
    with Server(directory) as server:
        equal(server.request("PUT", "/a")[0], 201)
        equal(server.request("PUT", "/a/_design/d", {
            "filters": {"f": "function () { return true; }"}})[0], 201)
        equal(server.request("PUT", "/a/_design/empty", {})[0], 201)

        def refused(source, name):
            job = {"source": source, "target": "x", "create_target": True, "filter": name}
            status, answer = server.request("POST", "/_replicate", job)
            equal((status, answer["error"]), (404, "not_found"))
            equal(server.request("POST", "/_replicate", {**job, "continuous": True}), (status, answer))
            # There is no job that goes on failing.
            equal(server.request("GET", "/_scheduler/jobs")[1]["jobs"], [])
            return answer["reason"]

        where = server.url
        equal(refused("a", "none/f"),
              f"Couldn't open document `_design/none` from source database `{where}/a/`: not_found")
        for name, key in (("d/none", "none"), ("d/f/g", "f/g"), ("empty/f", "filters")):
            equal(refused("a", name),
                  f"Couldn't parse filter code from document {name.split('/')[0]} on `{where}/a/`"
                  f" Error: missing json key: {key}")
        equal(refused("nowhere", "d/f"),
              f"Could not open source database `{where}/nowhere/`: db_not_found")
        # Nothing was made of the target by then.
        equal(server.request("GET", "/x")[0], 404)
        # Without a filter it is CouchDB's other answer.
        status, answer = server.request("POST", "/_replicate", {"source": "nowhere", "target": "a"})
        equal((status, answer), (500, {"error": "db_not_found",
                                       "reason": f"could not open {where}/nowhere/"}))
        # A continuous one whose filter is there is answered, and known by the id, at once.
        job = {"source": "a", "target": "y", "create_target": True, "filter": "d/f", "continuous": True}
        status, answer = server.request("POST", "/_replicate", job)
        equal((status, server.request("POST", "/_replicate", job)), (202, (202, answer)))
        until(lambda: server.request("GET", "/y/_design/d")[0] == 200)
        equal(server.request("POST", "/_replicate", {**job, "cancel": True})[0], 200)
        # A document of _replicator has it as the reason, and is tried again.
        equal(server.request("PUT", "/_replicator")[0], 201)
        equal(server.request("PUT", "/_replicator/r", {
            "source": "a", "target": "x", "create_target": True, "filter": "none/f"})[0], 201)

        def told():
            return server.request("GET", "/_scheduler/docs/_replicator/r")[1]

        until(lambda: told().get("state") == "error")
        contains(told()["info"]["error"], "Couldn't open document `_design/none`")
        for states, found in (("error", ["r"]), ("crashing,pending", [])):
            _, answer = server.request("GET", f"/_scheduler/docs?states={states}")
            equal([doc["doc_id"] for doc in answer["docs"]], found)
        equal("_replication_state" in server.request("GET", "/_replicator/r")[1], False)


@test
def a_changed_filter_function_begins_from_the_start(directory):
    def write(function, rev=None):
        doc = {"filters": {"f": function, "other": f"function () {{ return {rev is None}; }}"}}
        status, answer = server.request("PUT", "/a/_design/d", {**doc, **({"_rev": rev} if rev else {})})
        equal(status, 201)
        return answer["rev"]

    with Server(directory) as server:
        equal(server.request("PUT", "/a")[0], 201)
        equal(server.request("POST", "/a/_bulk_docs", {
            "docs": [{"_id": f"{i:02}", "n": i} for i in range(10)]})[0], 201)
        rev = write("function (doc) { return doc.n < 3; }")
        equal(figures(replicated(server, filter="d/f"), "docs_written"), [3])
        # Another revision of the design document with the same function goes on.
        rev = write("function (doc) { return doc.n < 3; }", rev)
        equal(replicated(server, filter="d/f")["no_changes"], True)
        rev = write("function (doc) { return doc.n >= 3; }", rev)
        answer = replicated(server, filter="d/f")
        equal(figures(answer, "docs_written"), [7])
        equal(len(answer["history"]), 1)
        equal(server.request("GET", "/b")[1]["doc_count"], 10)
        # The first function is back, and with it its checkpoint.
        write("function (doc) { return doc.n < 3; }", rev)
        equal(replicated(server, filter="d/f")["no_changes"], True)


@test
def those_who_ask_again_at_once_get_a_run_of_their_own(directory):
    """Not one that was over already, and that is removed."""
    with Server(directory) as server:
        equal(server.request("PUT", "/a")[0], 201)
        equal(server.request("PUT", "/a/x", {})[0], 201)
        wrong = []

        def ask():
            for _ in range(100):
                answer = server.request("POST", "/_replicate", {"source": "a", "target": "b", "create_target": True})
                if answer[0] != 200:
                    wrong.append(answer)

        askers = [threading.Thread(target=ask) for _ in range(6)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        equal(wrong, [])


@test
def a_filter_that_the_source_does_not_offer_fails_at_once(directory):
    away = beside(directory)
    (away / "ini").write_text("[js]\nworker = /nowhere/frond-js\n")
    with Server(directory) as server, Server(away, "--config", "ini") as other:
        equal(other.request("PUT", "/a")[0], 201)
        equal(other.request("PUT", "/a/_design/d", {
            "filters": {"f": "function (doc) { return true; }"}})[0], 201)
        begun = time.monotonic()
        status, answer = server.request("POST", "/_replicate", {
            "source": other.url + "/a", "target": "b", "create_target": True, "filter": "d/f"})
        assert status >= 500 and "501" in answer["reason"], (status, answer)
        assert time.monotonic() - begun < 3, time.monotonic() - begun


@test
def a_server_that_stops_leaves_checkpoints(directory):
    job = {"source": "a", "target": "b", "create_target": True, "continuous": True}
    with Server(directory) as server:
        fill(server, "a")
        server.request("PUT", "/_replicator")
        equal(server.request("PUT", "/_replicator/job", job)[0], 201)
        until(lambda: server.request("GET", "/b")[1].get("doc_count") ==
              server.request("GET", "/a")[1]["doc_count"])
        equal(server.stop(), 0)
    with Server(directory) as server:
        _, local = server.request("GET", "/b/_local_docs?include_docs=true")
        contains(json.dumps(local), "source_last_seq")
        until(lambda: any(job["info"] for job in
                          server.request("GET", "/_scheduler/jobs")[1]["jobs"]))
        equal(server.request("PUT", "/a/later", {})[0], 201)
        until(lambda: server.request("GET", "/b/later")[0] == 200)
        equal(server.stop(), 0)


main()
