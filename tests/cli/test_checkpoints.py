"""Replications whose source is not what its checkpoints say: restored from a backup, or another."""

import shutil

from harness import Server, contains, equal, main, test


def fill(server, db, first, count):
    docs = [{"_id": f"doc{i}"} for i in range(first, first + count)]
    equal(server.request("POST", f"/{db}/_bulk_docs", {"docs": docs})[0], 201)


def replicate(server, source):
    status, answer = server.request("POST", "/_replicate", {
        "source": source, "target": server.url + "/copy", "create_target": True})
    equal(status, 200)
    return answer


def count(server, db):
    return server.request("GET", f"/{db}")[1]["doc_count"]


@test
def a_source_restored_from_a_backup_goes_on_where_both_ends_agree(cwd):
    (cwd / "source").mkdir()
    (cwd / "target").mkdir()
    with Server(cwd / "target") as target:
        with Server(cwd / "source") as source:
            address = source.url.rpartition("/")[2]
            source.request("PUT", "/notes")
            fill(source, "notes", 0, 10)
            replicate(target, source.url + "/notes")
        shutil.copytree(cwd / "source" / "data", cwd / "backup")
        with Server(cwd / "source", http=address) as source:
            fill(source, "notes", 10, 10)
            replicate(target, source.url + "/notes")
            newest = source.request("GET", "/notes")[1]["update_seq"]
        shutil.rmtree(cwd / "source" / "data")
        shutil.copytree(cwd / "backup", cwd / "source" / "data")
        with Server(cwd / "source", http=address) as source:
            status, answer = source.request("GET", f"/notes/_changes?since={newest}")
            equal(status, 400)
            contains(answer["reason"], "lies beyond every change")
            fill(source, "notes", 20, 5)
            replicate(target, source.url + "/notes")
            equal(count(target, "copy"), 25)


@test
def a_checkpoint_that_the_source_has_never_reached_begins_at_the_beginning(cwd):
    with Server(cwd) as server:
        server.request("PUT", "/notes")
        fill(server, "notes", 0, 10)
        source = server.url + "/notes"
        session = replicate(server, source)["session_id"]
        beyond = "00" + "7f" * 12
        for db in ("notes", "copy"):
            rows = server.request("GET", f"/{db}/_local_docs?include_docs=true")[1]["rows"]
            for row in rows:
                doc = row["doc"]
                doc["source_last_seq"] = beyond
                for entry in doc["history"]:
                    entry["recorded_seq"] = entry["end_last_seq"] = beyond
                equal(doc["session_id"], session)
                equal(server.request("PUT", f"/{db}/{doc['_id']}", doc)[0], 201)
        fill(server, "notes", 10, 5)
        answer = replicate(server, source)
        equal(answer["history"][0]["docs_written"], 15)  # of both runs
        equal(count(server, "copy"), 15)
        contains(server.read_log(), "replication_from_beginning")
        # From then on there is a checkpoint again.
        fill(server, "notes", 15, 1)
        equal(replicate(server, source)["history"][0]["missing_checked"], 10 + 15 + 1)
        # A place that the client itself has named is not read over.
        status, _ = server.request("POST", "/_replicate", {
            "source": source, "target": server.url + "/copy", "since_seq": beyond})
        assert status >= 400, status


if __name__ == "__main__":
    main()
