"""Three frond processes at one FoundationDB cluster serve MongoDB's clients: what is written through
one of them is read, told and conflicted with through the others. Needs a cluster; see FROND_TEST_FDB."""

import contextlib
import random
import re
import signal
import threading
import uuid

from harness import Server, cluster, equal, main, test
from mongo import Client, Failure, Int64

WAIT_MS = 60000


class Process(Server):
    def __init__(self, cwd):
        cwd.mkdir()
        (cwd / "ini").write_text("[mongo]\nreplica_set = frond\n")
        super().__init__(cwd, "--store", cluster(), "--mongo", "127.0.0.1:0", "--config", "ini")
        self.port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)",
                                  self.read_log()).group(1))


class Door:
    """A client of one process and one database."""

    def __init__(self, process, db):
        self.process, self.db = process, db
        self.client = Client(process.port, timeout=300)

    def __call__(self, document, db=None):
        return self.client(document, db or self.db)

    def fails(self, document, db=None):
        return self.client.fails(document, db or self.db)

    def insert(self, *documents, collection="c"):
        return self({"insert": collection, "documents": list(documents)})

    def replace(self, id, document):
        return self({"update": "c", "updates": [{"q": {"_id": id}, "u": document}]})

    def find(self, collection="c", **more):
        answer = self({"find": collection, **more})["cursor"]
        equal(answer["id"], 0)
        return answer["firstBatch"]

    def close(self):
        self.client.close()


@contextlib.contextmanager
def doors(cwd):
    """A door of each process to a new database."""
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(Process(cwd / str(n))) for n in range(3)]
        db = "m" + uuid.uuid4().hex
        found = [Door(process, db) for process in processes]
        try:
            yield found
        finally:
            with contextlib.closing(Door(processes[0], db)) as last:
                last({"dropDatabase": 1})
            for door in found:
                door.close()


class Stream:
    """A change stream of the collection."""

    def __init__(self, door, **options):
        self.door = door
        answer = door({"aggregate": "c", "pipeline": [{"$changeStream": options}],
                       "cursor": {}})["cursor"]
        self.seen, self.id = answer["firstBatch"], answer["id"]
        self.token = answer["postBatchResumeToken"]

    def read(self, count):
        while len(self.seen) < count:
            answer = self.door({"getMore": Int64(self.id), "collection": "c",
                                "maxTimeMS": WAIT_MS})["cursor"]
            self.seen += answer["nextBatch"]
            self.token = answer["postBatchResumeToken"]
        return [(e["operationType"], e["documentKey"]["_id"]) for e in self.seen]


class Session:
    """A session and its transactions."""

    next = 0

    def __init__(self, door):
        Session.next += 1
        self.door, self.id = door, Session.next.to_bytes(16, "big")
        self.number, self.begins = 0, False

    def start(self):
        self.number += 1
        self.begins = True
        return self

    def members(self, document):
        document = {**document, "lsid": {"id": self.id}, "txnNumber": Int64(self.number),
                    "autocommit": False}
        if self.begins:
            document["startTransaction"] = True
            self.begins = False
        return document

    def __call__(self, document, db=None):
        return self.door(self.members(document), db)

    def replace(self, id, document):
        return self({"update": "c", "updates": [{"q": {"_id": id}, "u": document}]})

    def find(self):
        return self({"find": "c", "sort": {"_id": 1}})["cursor"]["firstBatch"]

    def commit(self):
        return self({"commitTransaction": 1}, "admin")

    def fails_to_commit(self):
        return self.door.fails(self.members({"commitTransaction": 1}), "admin")


def run_threads(*jobs):
    """Runs them side by side; what one of them raises is raised."""
    failures = []

    def guarded(job):
        try:
            job()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


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
