"""Change streams and time: what was too long ago is told as that, and nothing of a day is lost. Sessions
and time: one that was forgotten begins anew."""

import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[2] / "cli"))

from harness import FROND, equal, main, test  # noqa: E402
from mongo import Client, Int64  # noqa: E402

HOUR = 60 * 60 * 1000
LOST = 286
OPEN_TXN_MOST = 2000


class Clocked:
    """A server of clocked.c."""

    def __init__(self, cwd):
        self.process = subprocess.Popen([FROND, str(cwd / "data")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def __enter__(self):
        self.client = Client(self.port)
        return self, self.client

    def __exit__(self, *_):
        self.client.__exit__()
        self.process.stdin.close()
        equal(self.process.wait(timeout=60), 0)
        self.process.stdout.close()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), "ok\n")

    def pass_hours(self, hours):
        """And whoever clears what is old has been here."""
        self.say(f"clock {hours * HOUR}")
        self.say("sweep")


def watch(c, target="c", **options):
    return c({"aggregate": target, "pipeline": [{"$changeStream": options}], "cursor": {}}, "d")["cursor"]


def watch_fails(c, **options):
    return c.fails({"aggregate": "c", "pipeline": [{"$changeStream": options}], "cursor": {}}, "d")


def get_more(cursor):
    return {"getMore": Int64(cursor["id"]), "collection": cursor["ns"].split(".", 1)[1], "maxTimeMS": 0}


def insert(c, id, collection="c"):
    return c({"insert": collection, "documents": [{"_id": id}]}, "d")


def told(events):
    return [e.get("documentKey", {}).get("_id", e["operationType"]) for e in events]


@test
def a_place_of_more_than_a_day_ago_is_lost(cwd):
    with Clocked(cwd) as (server, c):
        insert(c, 0)
        start = watch(c)["postBatchResumeToken"]
        for id in (1, 2):
            insert(c, id)
        events = watch(c, resumeAfter=start)["firstBatch"]
        time = events[0]["clusterTime"]
        server.pass_hours(20)
        insert(c, 3)
        for place in ({"resumeAfter": start}, {"startAfter": start}, {"startAtOperationTime": time}):
            equal(told(watch(c, **place)["firstBatch"]), [1, 2, 3])
        server.pass_hours(5)
        insert(c, 4)
        for place in ({"resumeAfter": start}, {"startAfter": events[0]["_id"]},
                      {"startAtOperationTime": time}):
            answer = watch_fails(c, **place)
            equal((answer["code"], answer["codeName"]), (LOST, "ChangeStreamHistoryLost"))
            assert "errorLabels" not in answer, answer


@test
def a_stream_that_falls_behind_is_told_so(cwd):
    with Clocked(cwd) as (server, c):
        insert(c, 0)
        slow, quick = watch(c), watch(c)
        insert(c, 1)
        for hours in range(3):
            equal(told(c(get_more(quick), "d")["cursor"]["nextBatch"]), [] if hours else [1])
            server.pass_hours(10)
        insert(c, 2)
        equal(told(c(get_more(quick), "d")["cursor"]["nextBatch"]), [2])
        answer = c.fails(get_more(slow), "d")
        equal((answer["code"], "errorLabels" in answer), (LOST, False))
        equal(c.fails(get_more(slow), "d")["code"], 43)


@test
def what_was_written_before_a_drop_is_told_before_it(cwd):
    def drop(c):
        c({"drop": "c"}, "d")

    def rename(c):
        c({"renameCollection": "d.c", "to": "d.other"}, "admin")

    def rename_over(c):
        insert(c, 5, collection="other")
        c({"renameCollection": "d.other", "to": "d.c", "dropTarget": True}, "admin")

    def drop_database(c):
        c({"dropDatabase": 1}, "d")

    for end, kind in ((drop, "drop"), (rename, "rename"), (rename_over, "drop"), (drop_database, "drop")):
        directory = cwd / end.__name__
        directory.mkdir()
        with Clocked(directory) as (server, c):
            insert(c, 0)
            cursor, of_all = watch(c), watch(c, 1)
            for id in (1, 2, 3):
                insert(c, id)
            end(c)
            server.pass_hours(20)
            if end is not rename_over:
                insert(c, 9)  # into another collection of the same name
            last = c(get_more(cursor), "d")["cursor"]
            equal((told(last["nextBatch"]), last["id"]), ([1, 2, 3, kind, "invalidate"], 0))
            equal(told(c(get_more(of_all), "d")["cursor"]["nextBatch"])[:3], [1, 2, 3])
            again = watch(c, resumeAfter=last["nextBatch"][0]["_id"])
            equal(told(again["firstBatch"]), [2, 3, kind, "invalidate"])
            start = last["nextBatch"][0]["clusterTime"]
            server.pass_hours(6)
            equal(watch_fails(c, startAtOperationTime=start)["code"], LOST)


@test
def a_session_that_is_forgotten_to_make_room_begins_anew(cwd):
    """There are as many open transactions as may be, and their time is over, when an old session begins one."""
    def command(document, session, number, **members):
        return {**document, "lsid": {"id": session.to_bytes(16, "big")}, "txnNumber": Int64(number),
                "autocommit": False, **members}

    find, commit = {"find": "c"}, {"commitTransaction": 1}
    with Clocked(cwd) as (server, c):
        insert(c, 0)
        c(command(find, 0, 1, startTransaction=True), "d")
        c(command(commit, 0, 1))
        server.say(f"wait {HOUR}")
        for session in range(1, OPEN_TXN_MOST + 1):
            c(command(find, session, 1, startTransaction=True), "d")
        server.say(f"wait {HOUR}")
        c(command({"insert": "c", "documents": [{"_id": 1}]}, 0, 2, startTransaction=True), "d")
        c(command(commit, 0, 2))
        equal(len(c({"find": "c"}, "d")["cursor"]["firstBatch"]), 2)


main()
