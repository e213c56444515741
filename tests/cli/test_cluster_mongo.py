"""Three frond processes at one FoundationDB cluster serve MongoDB's clients: what is written through
one of them is read, told and conflicted with through the others. Needs a cluster; see FROND_TEST_FDB."""

import contextlib
import random
import signal
import threading

from harness import cluster, equal, main, run_threads, test
from mongo import Failure, Int64
from mongo_processes import Door, Session, doors

WAIT_MS = 60000


class Stream:
    """A change stream of the collection; of the database, if `of` is 1."""

    def __init__(self, door, of="c", **options):
        self.door, self.collection = door, "$cmd.aggregate" if of == 1 else of
        answer = door({"aggregate": of, "pipeline": [{"$changeStream": options}],
                       "cursor": {}})["cursor"]
        self.seen, self.id = answer["firstBatch"], answer["id"]
        self.token = answer["postBatchResumeToken"]

    def events(self, count):
        while len(self.seen) < count:
            assert self.id, self.seen
            answer = self.door({"getMore": Int64(self.id), "collection": self.collection,
                                "maxTimeMS": WAIT_MS})["cursor"]
            self.seen += answer["nextBatch"]
            self.id = answer["id"]
            self.token = answer["postBatchResumeToken"]
        return self.seen

    def read(self, count):
        return [(e["operationType"], e["documentKey"]["_id"]) for e in self.events(count)]


@test
def what_one_writes_the_others_read_at_once(cwd):
    with doors(cwd) as (a, b, c):
        for n, door in enumerate((a, b, c) * 3):
            door.insert({"_id": n, "n": n})
            for other in (a, b, c):
                equal(other.find(filter={"_id": n}), [{"_id": n, "n": n}])
                equal(other({"count": "c"})["n"], n + 1)
        b.replace(0, {"n": "b"})
        equal([door.find(filter={"_id": 0}) for door in (a, c)], [[{"_id": 0, "n": "b"}]] * 2)
        c({"delete": "c", "deletes": [{"q": {"_id": 0}, "limit": 1}]})
        equal([door.find(filter={"_id": 0}) for door in (a, b)], [[], []])
        # Collections and indexes are made and dropped for all.
        a({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n", "unique": True}]})
        equal(b.insert({"_id": 100, "n": 3})["writeErrors"][0]["code"], 11000)
        equal(c.find(filter={"n": {"$gte": 7}}, hint="n"), [{"_id": 7, "n": 7}, {"_id": 8, "n": 8}])
        c({"dropIndexes": "c", "index": "n"})
        b.insert({"_id": 100, "n": 3})
        b({"drop": "c"})
        equal([door.find() for door in (a, b, c)], [[], [], []])
        c.insert({"_id": 1})
        equal([door.find() for door in (a, b, c)], [[{"_id": 1}]] * 3)


@test
def what_one_changes_of_a_collection_holds_for_all_at_once(cwd):
    with doors(cwd) as all_doors:
        for n, door in enumerate(all_doors * 3):
            others = [other for other in all_doors if other is not door]
            for other in others:  # they know the collection as it was
                equal(other.insert({"_id": f"before{n}{other.process.port}", "n": -1})["n"], 1)
            door({"collMod": "c", "validator": {"n": {"$ne": n}}})
            for other in others:
                equal(other.insert({"n": n})["writeErrors"][0]["code"], 121)
            view = f"v{n}"
            door({"create": view, "viewOn": "c", "pipeline": [{"$match": {"n": n}}]})
            door({"collMod": "c", "validator": {}})
            for other in others:
                equal(other.insert({"_id": f"after{n}{other.process.port}", "n": n})["n"], 1)
            for other in others:
                equal(len(other.find(view)), 2)
            others[0]({"drop": view})
            equal([other.find(view) for other in all_doors], [[]] * 3)
            door({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]})
            for other in all_doors:
                plan = other({"explain": {"find": "c", "filter": {"n": n}}})["queryPlanner"]
                assert "IXSCAN" in str(plan), plan
            others[0]({"dropIndexes": "c", "index": "n"})
            equal(door.fails({"find": "c", "hint": "n"})["code"], 2)


@test
def one_document_that_all_update_counts_all_of_them(cwd):
    rounds = 30
    with doors(cwd) as all_doors:
        all_doors[0].insert({"_id": 1, "n": 0})

        def count(process, db):
            with contextlib.closing(Door(process, db)) as door:
                for _ in range(rounds):
                    answer = door({"update": "c", "updates": [{"q": {"_id": 1},
                                                               "u": {"$inc": {"n": 1}}}]})
                    equal(answer["nModified"], 1)

        run_threads(*[lambda d=door: count(d.process, d.db) for door in all_doors for _ in range(2)])
        for door in all_doors:
            equal(door.find(), [{"_id": 1, "n": 6 * rounds}])


@test
def a_change_stream_tells_what_all_processes_do_in_one_order(cwd):
    rounds = 15
    with doors(cwd) as all_doors:
        all_doors[0].insert({"_id": -1})
        streams = [Stream(door) for door in all_doors]
        # Who waits is woken by what another process writes.
        for n, door in enumerate(all_doors):
            waits = streams[(n + 1) % 3]
            timer = threading.Timer(0.05, all_doors[n].insert, ({"_id": n},))
            timer.start()
            equal(waits.read(n + 1)[-1], ("insert", n))
            timer.join()

        def write(process, db, number):
            with contextlib.closing(Door(process, db)) as door:
                for i in range(rounds):
                    door.insert({"_id": f"{number}-{i}"})

        run_threads(*[lambda d=door, n=n: write(d.process, d.db, n)
                      for n, door in enumerate(all_doors)])
        count = 3 + 3 * rounds
        first = streams[0].read(count)
        equal([stream.read(count) for stream in streams], [first] * 3)
        for n in range(3):
            equal([id for _, id in first if str(id).startswith(f"{n}-")],
                  [f"{n}-{i}" for i in range(rounds)])


@test
def a_stream_goes_on_at_another_process_after_a_kill(cwd):
    with doors(cwd) as (a, b, c):
        c.insert({"_id": 0})
        stream = Stream(b)
        a.insert({"_id": 1})
        stream.read(1)
        open_one = Session(b).start()
        open_one.replace(1, {"never": True})
        b.process.stop(signal.SIGKILL)
        a.insert({"_id": 2})
        c.replace(1, {"n": 1})
        equal(Stream(a, resumeAfter=stream.token).read(2), [("insert", 2), ("replace", 1)])
        # What was open in that process has left nothing.
        equal(a.find(filter={"_id": 1}), [{"_id": 1, "n": 1}])


@test
def a_stream_of_a_database_tells_what_each_process_does_to_its_collections(cwd):
    with doors(cwd) as (a, b, c):
        a.insert({"_id": 0}, collection="first")
        streams = [Stream(door, of=1) for door in (a, b, c)]
        b.insert({"_id": 1}, collection="second")
        c.insert({"_id": 2}, collection="first")
        session = Session(a).start()
        for n, collection in enumerate(("first", "second", "third")):
            session({"insert": collection, "documents": [{"_id": 3 + n}]})
        session.commit()
        b({"renameCollection": b.db + ".second", "to": b.db + ".fourth"}, "admin")
        c.insert({"_id": 6}, collection="fourth")
        a({"drop": "first"})
        b.insert({"_id": 7}, collection="third")
        expected = [("insert", "second", 1), ("insert", "first", 2), ("insert", "first", 3),
                    ("insert", "second", 4), ("insert", "third", 5), ("rename", "second", None),
                    ("insert", "fourth", 6), ("drop", "first", None), ("insert", "third", 7)]

        def told(stream, count):
            return [(e["operationType"], e["ns"]["coll"], e.get("documentKey", {}).get("_id"))
                    for e in stream.events(count)]

        for stream in streams:
            equal(told(stream, len(expected)), expected)
        # One begins where another process's has stopped.
        later = Stream(c, of=1, resumeAfter=streams[0].seen[3]["_id"])
        equal(told(later, 5), expected[4:])
        equal([e["_id"] for e in later.seen], [e["_id"] for e in streams[1].seen[4:]])


@test
def what_another_process_drops_ends_streams(cwd):
    with doors(cwd) as (a, b, c):
        a({"create": "c", "changeStreamPreAndPostImages": {"enabled": True}})
        streams = [Stream(door, fullDocument="required", fullDocumentBeforeChange="required")
                   for door in (a, b)]
        b.insert({"_id": 1, "n": 0})
        c({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]})
        for stream in streams:
            stream.events(2)
        a({"drop": "c"})
        for stream in streams:
            told = [(e["operationType"], e.get("fullDocumentBeforeChange"), e.get("fullDocument"))
                    for e in stream.events(4)]
            equal(told, [("insert", None, {"_id": 1, "n": 0}),
                         ("update", {"_id": 1, "n": 0}, {"_id": 1, "n": 1}),
                         ("drop", None, None), ("invalidate", None, None)])
            equal(stream.id, 0)
        after = Stream(c, startAfter=streams[0].seen[-1]["_id"])
        b.insert({"_id": 2})
        equal(after.read(1), [("insert", 2)])


@test
def transactions_of_two_processes_conflict(cwd):
    with doors(cwd) as (a, b, c):
        a.insert({"_id": 1, "n": 0}, {"_id": 2, "n": 0})
        one, two = Session(a).start(), Session(b).start()
        one.replace(1, {"n": 1})
        two.replace(1, {"n": 2})
        equal(c.find(), [{"_id": 1, "n": 0}, {"_id": 2, "n": 0}])
        one.commit()
        equal(c.find(), [{"_id": 1, "n": 1}, {"_id": 2, "n": 0}])
        failure = two.fails_to_commit()
        equal((failure["code"], failure["errorLabels"]), (112, ["TransientTransactionError"]))
        one.start().replace(1, {"n": 3})
        two.start().replace(2, {"n": 4})
        one.commit()
        two.commit()
        equal(c.find(), [{"_id": 1, "n": 3}, {"_id": 2, "n": 4}])


@test
def sums_stay_where_processes_transfer(cwd):
    accounts, transfers = 6, 12
    with doors(cwd) as all_doors:
        all_doors[0].insert(*[{"_id": i, "n": 100} for i in range(accounts)])

        def move(process, db, seed):
            dice = random.Random(seed)
            with contextlib.closing(Door(process, db)) as door:
                session = Session(door)
                done = 0
                while done < transfers:
                    a, b = dice.sample(range(accounts), 2)
                    try:
                        rows = session.start().find()
                        equal(sum(row["n"] for row in rows), accounts * 100)
                        session.replace(a, {"n": rows[a]["n"] - 1})
                        session.replace(b, {"n": rows[b]["n"] + 1})
                        session.commit()
                        done += 1
                    except Failure as failure:
                        equal((failure.code, failure.answer["errorLabels"]),
                              (112, ["TransientTransactionError"]))

        run_threads(*[lambda d=door, n=n: move(d.process, d.db, n)
                      for n, door in enumerate(all_doors)])
        for door in all_doors:
            equal(sum(row["n"] for row in door.find()), accounts * 100)


main(needs=None if cluster() else "FROND_TEST_FDB names no cluster file")
