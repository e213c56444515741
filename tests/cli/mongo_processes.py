"""Three frond processes at one FoundationDB cluster that serve MongoDB's clients, for tests of what they
agree about."""

import contextlib
import os
import re
import uuid

from harness import Server, cluster, equal
from mongo import Client, Int64


class Process(Server):
    def __init__(self, cwd, settings=""):
        cwd.mkdir()
        (cwd / "ini").write_text("[mongo]\nreplica_set = frond\n" + settings)
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
def doors(cwd, settings=""):
    """A door of each process to a new database. A test may kill all of the processes but the first.
    `settings` are more of those in the group `mongo`."""
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(Process(cwd / str(n), settings)) for n in range(3)]
        db = "m" + uuid.uuid4().hex
        found = [Door(process, db) for process in processes]
        try:
            yield found
        finally:
            with contextlib.closing(Door(processes[0], db)) as last:
                last({"dropDatabase": 1})
            for door in found:
                door.close()


class Session:
    """A session and its transactions. What is stored of it outlasts the test."""

    def __init__(self, door):
        self.door, self.id = door, os.urandom(16)
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
