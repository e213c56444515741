"""Three frond processes at one FoundationDB cluster: clients of MongoDB's door that go on at another
process, builds of indexes beside other processes' writers, and documents whose time is over. Needs a
cluster; see FROND_TEST_FDB."""

import contextlib
import os
import random
import signal
import threading
import time

from harness import cluster, equal, main, run_threads, test
from mongo import Client, Date, Failure, Int64
from mongo_processes import Door, Session, doors

DOCS = 2000
CLOSED = (EOFError, OSError)  # of a connection whose process was killed


def more(door, cursor, **options):
    return door({"getMore": Int64(cursor["id"]), "collection": "c", **options})["cursor"]


def ids(documents):
    return [document["_id"] for document in documents]


def numbered(session, number, document):
    return {**document, "lsid": {"id": session}, "txnNumber": Int64(number)}


# ---- Cursors ----

@test
def a_cursor_belongs_to_its_process_and_meets_what_others_write_behind_its_place(cwd):
    with doors(cwd) as (a, b, c):
        a.insert(*({"_id": n, "n": n} for n in range(300)))
        a({"createIndexes": "c", "indexes": [{"key": {"n": -1}, "name": "n"}]})
        cursor = a({"find": "c", "batchSize": 100})["cursor"]
        by_n = b({"find": "c", "sort": {"n": -1}, "hint": "n", "batchSize": 100})["cursor"]
        equal((ids(cursor["firstBatch"]), ids(by_n["firstBatch"])),
              (list(range(100)), list(range(299, 199, -1))))
        for other in b, c:
            asked = {"getMore": Int64(cursor["id"]), "collection": "c"}
            equal(other.fails(asked)["code"], 43)
        # Before its place, and behind it.
        c({"delete": "c", "deletes": [{"q": {"_id": {"$in": [50, 120]}}, "limit": 0}]})
        c.insert({"_id": 300, "n": 50.5}, {"_id": -1, "n": 300})
        b.replace(130, {"n": "changed"})
        rest = more(a, cursor)
        equal((rest["id"], ids(rest["nextBatch"])),
              (0, [n for n in range(100, 301) if n != 120]))
        equal(rest["nextBatch"][29], {"_id": 130, "n": "changed"})
        rest = more(b, by_n)
        equal((rest["id"], ids(rest["nextBatch"])),
              (0, [n for n in range(199, 50, -1) if n not in (120, 130)] + [300]
               + list(range(49, -1, -1))))


@test
def what_another_process_drops_ends_cursors(cwd):
    with doors(cwd) as (a, b, c):
        a.insert(*({"_id": n, "n": n} for n in range(300)))
        a({"createIndexes": "c", "indexes": [{"key": {"n": 1}, "name": "n"}]})
        by_n = a({"find": "c", "hint": "n", "batchSize": 10})["cursor"]
        cursor = a({"find": "c", "batchSize": 10})["cursor"]
        b({"dropIndexes": "c", "index": "n"})
        failure = a.fails({"getMore": Int64(by_n["id"]), "collection": "c"})
        equal(failure["code"], 175)
        equal(ids(more(a, cursor, batchSize=2)["nextBatch"]), [10, 11])
        c({"drop": "c"})
        b.insert({"_id": 299})
        failure = a.fails({"getMore": Int64(cursor["id"]), "collection": "c"})
        equal(failure["code"], 175)


# ---- Sessions ----

@test
def a_write_that_is_sent_again_to_another_process_is_done_once(cwd):
    with doors(cwd) as all_doors:
        a, b, c = all_doors
        session = os.urandom(16)
        insert = numbered(session, 1, {"insert": "c", "documents": [{"_id": 1, "n": 0}, {"_id": 2}]})
        equal(a(insert)["n"], 2)
        for other in b, c:
            answer = other(insert)
            equal((answer["n"], answer["retriedStmtIds"], answer.get("writeErrors")),
                  (2, [0, 1], None))
        modify = numbered(session, 2, {"findAndModify": "c", "query": {"_id": 1},
                                       "update": {"$inc": {"n": 1}}, "new": True})
        for door in b, a, c, b:
            equal(door(modify)["value"], {"_id": 1, "n": 1})
        remove = numbered(session, 3, {"findAndModify": "c", "query": {"_id": 2}, "remove": True})
        for door in c, b, a:
            equal(door(remove)["value"], {"_id": 2})
        # A process that has not seen the later ones knows of them.
        for door in all_doors:
            equal(door.fails(insert)["code"], 225)
        many = numbered(session, 4, {"bulkWrite": 1, "nsInfo": [{"ns": a.db + ".c"}], "ops": [
            {"update": 0, "filter": {"_id": 1}, "updateMods": {"$inc": {"n": 1}}},
            {"insert": 0, "document": {"_id": 3}}]})
        for door in a, c, b:
            answer = door(many, "admin")
            equal((answer["nMatched"], answer["nInserted"], answer["nErrors"]), (1, 1, 0))
        equal(c.find(), [{"_id": 1, "n": 2}, {"_id": 3}])


@test
def the_same_write_through_all_processes_at_once_is_done_once(cwd):
    with doors(cwd) as all_doors:
        all_doors[0].insert({"_id": 1, "n": 0})
        session = os.urandom(16)
        rounds = 15
        steps = threading.Barrier(len(all_doors), timeout=300)

        def send(door):
            for number in range(1, rounds + 1):
                steps.wait()
                answer = door(numbered(session, number, {"update": "c", "updates": [
                    {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}))
                equal((answer["n"], answer["nModified"]), (1, 1))

        run_threads(*[lambda d=door: send(d) for door in all_doors])
        equal(all_doors[2].find(), [{"_id": 1, "n": rounds}])


class Follower:
    """A client that changes its process whenever a connection ends, and sends again what was under way."""

    def __init__(self, all_doors, number):
        self.all_doors, self.number = all_doors, number
        self.door = Door(all_doors[1].process, all_doors[1].db)
        self.session = os.urandom(16)
        self.switches = 0

    def send(self, document, db=None):
        while True:
            try:
                return self.door(document, db)
            except CLOSED:
                self.switch()

    def switch(self):
        self.door.close()
        self.switches += 1
        other = self.all_doors[(0, 2)[self.switches % 2]]
        self.door = Door(other.process, other.db)


@test
def writes_of_clients_of_a_killed_process_are_done_once_by_others(cwd):
    with doors(cwd) as all_doors:
        clients = [Follower(all_doors, number) for number in range(6)]
        all_doors[0].insert(*({"_id": client.number, "n": 0} for client in clients))
        after = 30
        counts = [0] * len(clients)
        killed = threading.Event()

        def count(client):
            rest = after
            while rest:
                rest -= killed.is_set()
                counts[client.number] += 1
                answer = client.send(numbered(client.session, counts[client.number], {
                    "update": "c", "updates": [{"q": {"_id": client.number},
                                                "u": {"$inc": {"n": 1}}}]}))
                equal((answer["n"], answer.get("writeErrors")), (1, None))
            client.door.close()

        def kill():
            while min(counts) < 10:
                time.sleep(0.01)
            all_doors[1].process.stop(signal.SIGKILL)
            killed.set()

        run_threads(kill, *[lambda c=client: count(c) for client in clients])
        equal([client.switches for client in clients], [1] * len(clients))
        equal([row["n"] for row in all_doors[2].find(sort={"_id": 1})], counts)


# ---- Transactions ----

@test
def a_transaction_belongs_to_its_process_and_its_commit_to_all(cwd):
    with doors(cwd) as (a, b, c):
        a.insert({"_id": 1})
        session = Session(a).start()
        session.replace(1, {"n": 1})
        for other in b, c:
            failure = other.fails(session.members({"find": "c"}))
            equal((failure["code"], failure["errorLabels"]), (251, ["TransientTransactionError"]))
        session.commit()
        for other in b, c, a:
            other(session.members({"commitTransaction": 1}), "admin")
        # Another process goes on with the session.
        session.door = b
        session.start().replace(1, {"n": 2})
        session.commit()
        equal(c.find(), [{"_id": 1, "n": 2}])
        session.number -= 1
        equal(c.fails(session.members({"commitTransaction": 1}), "admin")["code"], 225)


@test
def a_commit_that_a_kill_left_open_is_told_by_another_process(cwd):
    with doors(cwd) as all_doors:
        clients = [Follower(all_doors, number) for number in range(6)]
        all_doors[0].insert(*({"_id": client.number, "n": 0} for client in clients))
        counts = [0] * len(clients)
        open_commits = [0]
        killed = threading.Event()

        def change(client, number):
            """A transaction, and whether it has taken place."""
            about = {"lsid": {"id": client.session}, "txnNumber": Int64(number), "autocommit": False}
            try:
                client.door({"update": "c", "updates": [{"q": {"_id": client.number},
                                                         "u": {"$inc": {"n": 1}}}],
                             "startTransaction": True, **about})
            except CLOSED:
                client.switch()
                return False
            switches = client.switches
            try:
                client.send({"commitTransaction": 1, **about}, "admin")
                return True
            except Failure as failure:
                assert client.switches > switches, failure
                equal(failure.code, 251)
                return False
            finally:
                open_commits[0] += client.switches > switches

        def count(client):
            rest, number = 20, 0
            while rest:
                rest -= killed.is_set()
                number += 1
                counts[client.number] += change(client, number)
            client.door.close()

        def kill():
            while min(counts) < 5:
                time.sleep(0.01)
            all_doors[1].process.stop(signal.SIGKILL)
            killed.set()

        run_threads(kill, *[lambda c=client: count(c) for client in clients])
        print(f"# {open_commits[0]} commits were under way")
        equal([row["n"] for row in all_doors[2].find(sort={"_id": 1})], counts)


@test
def each_job_of_a_queue_is_taken_once_by_workers_in_all_processes(cwd):
    jobs = 60
    with doors(cwd) as all_doors:
        all_doors[0].insert(*({"_id": n, "state": "new"} for n in range(jobs)))
        all_doors[1]({"createIndexes": "c", "indexes": [{"key": {"state": 1}, "name": "state"}]})
        taken = []

        def work(process, db, name):
            with contextlib.closing(Door(process, db)) as door:
                while True:
                    job = door({"findAndModify": "c", "query": {"state": "new"},
                                "sort": {"_id": 1}, "update": {"$set": {"state": name}}})["value"]
                    if job is None:
                        break
                    taken.append((job["_id"], name))

        run_threads(*[lambda d=door, n=n: work(d.process, d.db, f"w{n}")
                      for n, door in enumerate(all_doors * 2)])
        equal(sorted(ids({"_id": id} for id, _ in taken)), list(range(jobs)))
        equal(sorted(taken), [(row["_id"], row["state"]) for row in all_doors[0].find()])


# ---- Builds of indexes ----

class Writer(threading.Thread):
    """Inserts, changes and deletes until it is told to end."""

    def __init__(self, door, number):
        super().__init__()
        self.door, self.number = Door(door.process, door.db), number
        self.ends, self.failure, self.done = threading.Event(), None, 0
        self.start()

    def run(self):
        dice = random.Random(self.number)
        try:
            while not self.ends.is_set():
                self.write(dice)
                self.done += 1
        except BaseException as failure:
            self.failure = failure
        self.door.close()

    def write(self, dice):
        id, n = dice.randrange(DOCS * 5 // 4), dice.randrange(100)
        document = {"n": n, "tags": [f"a{n % 7}", f"b{n % 11}"], "email": f"{self.number}-{self.done}"}
        kind = dice.randrange(3)
        if kind == 0:
            self.door({"delete": "c", "deletes": [{"q": {"_id": id}, "limit": 1}]})
            return
        change = document if kind == 1 else {"$set": {"n": n}}
        answer = self.door({"update": "c", "updates": [{"q": {"_id": id}, "u": change,
                                                        "upsert": kind == 1}]})
        equal(answer.get("writeErrors"), None)

    def end(self):
        self.ends.set()
        self.join()
        if self.failure:
            raise self.failure


def fill(door):
    for first in range(0, DOCS, 500):
        door.insert(*({"_id": n, "n": n % 100, "tags": [f"a{n % 7}", f"b{n % 11}"], "email": f"e{n}"}
                      for n in range(first, first + 500)))


def check_indexes(all_doors):
    """Each process finds by each index what it finds without one."""
    for door in all_doors:
        rows = door.find(batchSize=DOCS * 2)
        equal(ids(sorted(door.find(hint="email", batchSize=DOCS * 2), key=lambda row: row["_id"])),
              ids(rows))
        for n in range(0, 100, 9):
            equal(sorted(ids(door.find(filter={"n": n}, hint="n_tags", batchSize=DOCS * 2))),
                  [row["_id"] for row in rows if row["n"] == n])
        equal(sorted(ids(door.find(filter={"n": {"$gte": 50}, "tags": "b3"}, hint="n_tags",
                                   batchSize=DOCS * 2))),
              [row["_id"] for row in rows if row["n"] >= 50 and "b3" in row["tags"]])
    answer = all_doors[0]({"validate": "c"})
    equal((answer["valid"], answer["errors"]), (True, []))


INDEXES = [{"key": {"n": 1, "tags": 1}, "name": "n_tags"},
           {"key": {"email": 1}, "name": "email", "unique": True}]


@test
def indexes_that_one_process_builds_have_what_the_others_write_meanwhile(cwd):
    with doors(cwd) as all_doors:
        a, b, c = all_doors
        fill(a)
        writers = [Writer(door, n) for n, door in enumerate((a, b, c))]
        try:
            a({"createIndexes": "c", "indexes": INDEXES})
            done = [writer.done for writer in writers]
            while any(writer.is_alive() and writer.done < before + 10
                      for writer, before in zip(writers, done)):
                time.sleep(0.01)
        finally:
            for writer in writers:
                writer.end()
        check_indexes(all_doors)
        kept = a.find(limit=1)[0]["email"]
        for door in b, c:
            equal(door.insert({"_id": "twin", "email": kept})["writeErrors"][0]["code"], 11000)


@test
def processes_that_ask_for_the_same_index_at_once_get_one(cwd):
    with doors(cwd) as all_doors:
        fill(all_doors[0])
        run_threads(*[lambda d=door: d({"createIndexes": "c", "indexes": INDEXES})
                      for door in all_doors])
        for door in all_doors:
            listed = door({"listIndexes": "c"})["cursor"]["firstBatch"]
            equal([index["name"] for index in listed], ["_id_", "n_tags", "email"])
        check_indexes(all_doors)


@test
def a_build_whose_process_is_killed_is_finished_by_another(cwd):
    with doors(cwd) as all_doors:
        a, b, c = all_doors
        fill(a)
        writer = Writer(c, 0)
        try:
            with Client(b.process.port, timeout=300) as maker:
                maker.send({"createIndexes": "c", "indexes": INDEXES, "$db": b.db})
                while len(a({"listIndexes": "c"})["cursor"]["firstBatch"]) < 3:
                    pass
                b.process.stop(signal.SIGKILL)
            # Whoever asks for it waits until it is there.
            a({"createIndexes": "c", "indexes": INDEXES})
        finally:
            writer.end()
        check_indexes([a, c])


# ---- Documents whose time is over ----

@test
def documents_whose_time_is_over_are_removed_once_also_when_a_process_is_killed(cwd):
    with doors(cwd, "expire_seconds = 1\n") as all_doors:
        a, b, c = all_doors
        a({"createIndexes": "c", "indexes": [{"key": {"at": 1}, "name": "at", "expireAfterSeconds": 0}]})
        stream = c({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}})["cursor"]
        events = []

        def wait_for_deletions(count):
            while sum(event["operationType"] == "delete" for event in events) < count:
                events.extend(more(c, stream, maxTimeMS=60000)["nextBatch"])

        def insert(door, first):
            now = int(time.time() * 1000)
            door.insert(*({"_id": n, "at": Date(now + n % 500)} for n in range(first, first + 300)))

        for n, door in enumerate(all_doors):
            insert(door, 300 * n)
        b.insert({"_id": "stays", "at": Date(int(time.time() * 1000) + 3600000)})
        wait_for_deletions(900)
        # Whichever of them had the work, another one takes it up.
        b.process.stop(signal.SIGKILL)
        insert(a, 900)
        wait_for_deletions(1200)
        equal(a.find(projection={"at": 0}), [{"_id": "stays"}])
        equal(sorted(event["documentKey"]["_id"] for event in events
                     if event["operationType"] == "delete"), list(range(1200)))


main(needs=None if cluster() else "FROND_TEST_FDB names no cluster file")
