"""Change streams of MongoDB's door."""

import threading
import time

from harness import contains, equal, main, ok, test
from mongo import Int64
from mongo_server import MongoServer


class Mongo(MongoServer):
    def __init__(self, cwd, *options, **kwargs):
        super().__init__(cwd, *options, ini="[mongo]\nreplica_set = frond\n", **kwargs)


class Stream:
    def __init__(self, client, target="c", db="d", batch=None, stages=(), **options):
        self.client, self.db = client, db
        answer = client({"aggregate": target, "pipeline": [{"$changeStream": options}, *stages],
                         "cursor": {} if batch is None else {"batchSize": batch}}, db)["cursor"]
        self.take(answer, "firstBatch")
        self.name = answer["ns"].split(".", 1)[1]
        self.seen = answer["firstBatch"]

    def take(self, answer, batch):
        self.id = answer["id"]
        self.token = answer["postBatchResumeToken"]
        return answer[batch]

    def more(self, wait=0, **more):
        return self.take(self.client({"getMore": Int64(self.id), "collection": self.name,
                                      "maxTimeMS": wait, **more}, self.db)["cursor"], "nextBatch")

    def read(self, count):
        """So many events, as they come."""
        while len(self.seen) < count:
            self.seen += self.more(wait=20000)
        return self.seen


def insert(c, *documents, collection="c", db="d"):
    c({"insert": collection, "documents": list(documents)}, db)


def replace(c, id, document):
    c({"update": "c", "updates": [{"q": {"_id": id}, "u": document}]}, "d")


def delete(c, id):
    c({"delete": "c", "deletes": [{"q": {"_id": id}, "limit": 1}]}, "d")


def kinds(events):
    return [(e["operationType"], e["documentKey"]["_id"]) for e in events]


@test
def every_change_is_told_in_order(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 0})
        stream = Stream(c)
        equal(stream.seen, [])
        insert(c, {"_id": 1, "a": 1}, {"_id": 2})
        replace(c, 1, {"a": 2})
        delete(c, 2)
        insert(c, {"_id": 9}, collection="other")
        events = stream.read(4)
        equal(kinds(events), [("insert", 1), ("insert", 2), ("replace", 1), ("delete", 2)])
        equal(events[0]["fullDocument"], {"_id": 1, "a": 1})
        equal(events[2]["fullDocument"], {"_id": 1, "a": 2})
        assert "fullDocument" not in events[3]
        equal([e["ns"] for e in events], [{"db": "d", "coll": "c"}] * 4)
        times = [e["clusterTime"] for e in events]
        equal(times, sorted(times))
        tokens = [e["_id"]["_data"] for e in events]
        equal(tokens, sorted(set(tokens)))
        equal(stream.more(), [])
        # The first two were written together.
        equal(times[0] == times[1], True)


@test
def a_stream_goes_on_where_it_was(cwd):
    with Mongo(cwd) as server:
        with server.client() as c:
            stream = Stream(c)
            nothing = stream.token
            for i in range(10):
                insert(c, {"_id": i})
            events = stream.read(10)
            for i in (0, 4, 9):
                equal(kinds(Stream(c, resumeAfter=events[i]["_id"]).seen),
                      [("insert", n) for n in range(i + 1, 10)])
            equal(len(Stream(c, startAfter=nothing).seen), 10)
            few = Stream(c, batch=3, resumeAfter=nothing)
            equal((kinds(few.seen), kinds(few.more(batchSize=2))),
                  ([("insert", n) for n in (0, 1, 2)], [("insert", n) for n in (3, 4)]))
            again = Stream(c, batch=0, resumeAfter=events[0]["_id"])
            equal((again.seen, len(again.more())), ([], 9))
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 10})
        equal(kinds(Stream(c, resumeAfter=events[7]["_id"]).seen), [("insert", n) for n in (8, 9, 10)])


@test
def a_token_has_the_age_of_its_event_whenever_that_is_read(cwd):
    """What comes behind a late reader's event is as old as the event: a token that looked younger
    would hide that it has been cleared."""
    with Mongo(cwd) as server, server.client() as c:
        stream = Stream(c)
        start = stream.token
        insert(c, {"_id": 1})
        c({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"a": 1}}]}, "d")
        c({"drop": "c"}, "d")
        first = [e["_id"]["_data"] for e in stream.read(4)]
        while time.time() * 1000 < stream.seen[-1]["wallTime"] + 5:
            pass
        again = Stream(c, batch=1, startAfter=start)
        equal(again.token, again.seen[0]["_id"])
        for event, token in zip(again.read(4), first):
            # The time is in front of the last byte.
            equal((event["_id"]["_data"], int(token[-18:-2], 16)), (token, event["wallTime"]))


@test
def a_batch_with_events_has_the_token_of_the_last_one(cwd):
    with Mongo(cwd) as server, server.client() as c:
        stream = Stream(c)
        start = stream.token
        for i in range(3):
            insert(c, {"_id": i})
        whole, part = Stream(c, startAfter=start), Stream(c, batch=2, startAfter=start)
        equal([s.token for s in (whole, part)], [s.seen[-1]["_id"] for s in (whole, part)])
        last = stream.read(3)[-1]["_id"]
        equal(stream.token, last)
        # Without events the token goes on, so that it does not get old.
        insert(c, {"_id": 0}, collection="other")
        equal((stream.more(), stream.token["_data"] > last["_data"]), ([], True))
        c({"drop": "c"}, "d")
        equal(([e["operationType"] for e in stream.more(wait=20000)], stream.id), (["drop", "invalidate"], 0))
        equal(c.fails({"aggregate": "c", "pipeline": [{"$changeStream": {"resumeAfter": stream.token}}],
                       "cursor": {}}, "d")["code"], 260)


@test
def a_stream_of_a_database_and_of_all(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 0}, collection="a")
        of_d, of_all = Stream(c, 1), Stream(c, 1, "admin", allChangesForCluster=True)
        insert(c, {"_id": 1}, collection="a")
        insert(c, {"_id": 2}, collection="b")
        insert(c, {"_id": 3}, db="e")
        insert(c, {"_id": 4}, collection="a")
        equal([(e["ns"]["coll"], e["documentKey"]["_id"]) for e in of_d.read(3)],
              [("a", 1), ("b", 2), ("a", 4)])
        killed = c({"killCursors": "$cmd.aggregate", "cursors": [Int64(of_d.id)]}, "d")
        equal(killed["cursorsKilled"], [of_d.id])
        equal([(e["ns"]["db"], e["ns"]["coll"], e["documentKey"]["_id"]) for e in of_all.read(4)],
              [("d", "a", 1), ("d", "b", 2), ("e", "c", 3), ("d", "a", 4)])
        equal(c.fails({"aggregate": 1, "pipeline": [{"$changeStream": {"allChangesForCluster": True}}],
                       "cursor": {}}, "d")["code"], 72)


@test
def a_getmore_waits_for_a_change(cwd):
    with Mongo(cwd) as server, server.client() as c, server.client() as other:
        stream = Stream(c)
        for i in range(20):
            # Also the collection is only made by the first of them.
            thread = threading.Timer(0.02, insert, (other, {"_id": i}))
            thread.start()
            equal(kinds(stream.more(wait=60000)), [("insert", i)])
            thread.join()


@test
def many_changes_come_in_batches(cwd):
    with Mongo(cwd) as server, server.client() as c:
        streams = [Stream(c), Stream(c, 1)]
        for i in range(4):
            insert(c, *({"_id": i * 300 + n, "text": "x" * 500} for n in range(300)))
        for stream in streams:
            equal([e["documentKey"]["_id"] for e in stream.read(1200)], list(range(1200)))


@test
def behind_many_events_a_stream_lets_others_gather(cwd):
    with Mongo(cwd) as server, server.client() as c, server.client() as other:
        insert(c, {"_id": -1})
        stream = Stream(c)
        insert(c, *({"_id": n} for n in range(20)))
        began = time.monotonic()
        equal(len(stream.more(wait=20000)), 20)
        # The next answer comes 10 ms later (WATCH_PACE_MOST_US), with what has come by then.
        for n in range(20, 23):
            insert(other, {"_id": n})
        events = stream.more(wait=20000)
        assert time.monotonic() - began >= 0.01, time.monotonic() - began
        while len(events) < 3:
            events += stream.more(wait=20000)
        equal(kinds(events), [("insert", n) for n in range(20, 23)])
        # It is no reason to wait longer than the client wants, nor with more events at hand.
        insert(c, *({"_id": n} for n in range(100, 1100)))
        rest = []
        while len(rest) < 1000:
            rest += stream.more(wait=1)
        equal(len(rest), 1000)


@test
def a_large_document_is_looked_up(cwd):
    with Mongo(cwd) as server, server.client() as c:
        stream = Stream(c)
        insert(c, {"_id": 1, "text": "x" * 100000})
        insert(c, {"_id": 2, "text": "x" * 100000})
        delete(c, 2)
        events = stream.read(3)
        equal([len(events[0]["fullDocument"]["text"]), events[1]["fullDocument"]], [100000, None])


@test
def a_transaction_is_told_when_it_is_committed(cwd):
    with Mongo(cwd) as server, server.client() as c:
        for collection in ("a", "b"):
            c({"create": collection}, "d")
        stream = Stream(c, 1)
        more = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        c({"insert": "a", "documents": [{"_id": 1}, {"_id": 2}], **more, "startTransaction": True}, "d")
        c({"insert": "a", "documents": [{"_id": 3}], **more}, "d")
        insert(c, {"_id": 9}, collection="b")
        c({"commitTransaction": 1, **more})
        events = stream.read(4)
        equal([e["documentKey"]["_id"] for e in events], [9, 1, 2, 3])
        equal(len({e["clusterTime"] for e in events[1:]}), 1)


@test
def a_transaction_wakes_the_streams_of_all_its_collections(cwd):
    with Mongo(cwd) as server, server.client() as c, server.client(timeout=60) as waiting:
        for collection in ("a", "b"):
            c({"create": collection}, "d")
        stream = Stream(waiting, "b")
        events = []
        # Were it not woken, the answer would come after the socket's patience.
        thread = threading.Thread(target=lambda: events.extend(stream.more(wait=100000)))
        thread.start()
        more = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        c({"insert": "a", "documents": [{"_id": 1}], **more, "startTransaction": True}, "d")
        c({"insert": "b", "documents": [{"_id": 2}], **more}, "d")
        # It looks once at its beginning, and then only when it is woken.
        while not any("getMore" in op.get("command", {}) and op["microsecs_running"] > 200000
                      for op in c({"currentOp": 1})["inprog"]):
            pass
        c({"commitTransaction": 1, **more})
        thread.join()
        equal(kinds(events), [("insert", 2)])


@test
def a_stream_ends_with_its_collection(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 1})
        stream = Stream(c)
        c({"drop": "c"}, "d")
        events = stream.read(2)
        equal([e["operationType"] for e in events], ["drop", "invalidate"])
        equal((events[0]["ns"], stream.id), ({"db": "d", "coll": "c"}, 0))
        insert(c, {"_id": 2})
        end = events[1]["_id"]
        equal(c.fails({"aggregate": "c", "pipeline": [{"$changeStream": {"resumeAfter": end}}],
                       "cursor": {}}, "d")["code"], 260)
        equal(kinds(Stream(c, startAfter=end).seen), [("insert", 2)])

        stream = Stream(c)
        insert(c, {"_id": 3})
        c({"renameCollection": "d.c", "to": "e.n"})
        events = stream.read(3)
        equal([e["operationType"] for e in events], ["insert", "rename", "invalidate"])
        equal(events[1]["to"], {"db": "e", "coll": "n"})


@test
def a_database_s_stream_tells_what_becomes_of_collections(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 0}, collection="a")
        of_d, of_all = Stream(c, 1), Stream(c, 1, "admin", allChangesForCluster=True)
        expanded = Stream(c, 1, showExpandedEvents=True)
        insert(c, {"_id": 1}, collection="a")
        c({"renameCollection": "d.a", "to": "d.b"})
        insert(c, {"_id": 2}, collection="b")
        insert(c, {"_id": 3}, collection="x")
        c({"createIndexes": "x", "indexes": [{"key": {"n": 1}, "name": "n"}]}, "d")
        c({"dropIndexes": "x", "index": "n"}, "d")
        c({"collMod": "x", "validationLevel": "off"}, "d")
        c({"drop": "x"}, "d")
        c({"renameCollection": "d.b", "to": "e.b"})
        insert(c, {"_id": 4}, collection="b", db="e")
        insert(c, {"_id": 5}, collection="y")
        c({"dropDatabase": 1}, "d")
        insert(c, {"_id": 6}, collection="y")

        def told(events):
            return [(e["operationType"], e.get("ns", {}).get("coll")) for e in events]
        wanted = [("insert", "a"), ("rename", "a"), ("insert", "b"), ("insert", "x"), ("drop", "x"),
                  ("rename", "b"), ("insert", "y"), ("drop", "y"), ("dropDatabase", None),
                  ("invalidate", None)]
        equal(told(of_d.read(10)), wanted)
        equal(of_d.id, 0)
        equal(of_d.seen[1]["to"], {"db": "d", "coll": "b"})
        equal(of_d.seen[8]["ns"], {"db": "d"})
        all_wanted = wanted[:6] + [("insert", "b")] + wanted[6:9] + [("insert", "y")]
        equal(told(of_all.read(11)), all_wanted)
        more = expanded.read(15)
        equal(told(more), wanted[:3] + [("create", "x"), ("insert", "x"), ("createIndexes", "x"),
                                       ("dropIndexes", "x"), ("modify", "x")] + wanted[4:6] +
              [("create", "y")] + wanted[6:])
        equal(more[5]["operationDescription"], {"indexes": [{"v": 2, "key": {"n": 1}, "name": "n"}]})
        equal(more[7]["operationDescription"], {"validationLevel": "off"})
        equal(len({e["collectionUUID"] for e in more if e.get("ns", {}).get("coll") == "x"}), 1)

        # Going on behind each of them gives the rest.
        for i, event in enumerate(of_d.seen[:-1]):
            again = Stream(c, 1, resumeAfter=event["_id"])
            equal(told(again.read(9 - i)), wanted[i + 1:])
        end = of_d.seen[-1]["_id"]
        equal(c.fails({"aggregate": 1, "pipeline": [{"$changeStream": {"resumeAfter": end}}],
                       "cursor": {}}, "d")["code"], 260)
        equal(told(Stream(c, 1, startAfter=end).read(1)), [("insert", "y")])
        one_by_one = Stream(c, 1, batch=0, resumeAfter=of_d.seen[0]["_id"])
        seen = []
        while one_by_one.id:
            seen += one_by_one.more(batchSize=1)
        equal(told(seen), wanted[1:])


@test
def a_collection_s_stream_knows_earlier_names(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 0})
        stream = Stream(c)
        insert(c, {"_id": 1})
        first = stream.read(1)[0]["_id"]
        insert(c, {"_id": 2})
        c({"renameCollection": "d.c", "to": "d.n"})
        insert(c, {"_id": 3}, collection="n")
        insert(c, {"_id": 4})
        # It has another name by now, and its name is another one's.
        again = Stream(c, resumeAfter=first)
        equal([e["operationType"] for e in again.read(3)], ["insert", "rename", "invalidate"])
        # Somebody who has read as far as the rename is told the end.
        end = Stream(c, resumeAfter=again.seen[1]["_id"])
        equal(([e["operationType"] for e in end.seen], end.id), (["invalidate"], 0))
        equal(kinds(Stream(c, startAfter=end.seen[0]["_id"]).seen), [("insert", 4)])
        # Whatever takes the name's place ends the stream, too.
        stream = Stream(c, "n")
        c({"renameCollection": "d.c", "to": "d.n", "dropTarget": True})
        equal([e["operationType"] for e in stream.read(2)], ["drop", "invalidate"])
        equal([e["operationType"] for e in Stream(c, "n", startAfter=stream.seen[1]["_id"]).read(2)],
              ["rename", "invalidate"])


@test
def a_rename_tells_the_collection_that_it_dropped(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 0})
        insert(c, {"_id": 0}, collection="n")
        uuid = c({"listCollections": 1, "filter": {"name": "n"}}, "d")["cursor"]["firstBatch"][0]["info"]["uuid"]
        stream = Stream(c, showExpandedEvents=True)
        c({"renameCollection": "d.c", "to": "d.n", "dropTarget": True})
        event = stream.read(1)[0]
        to = {"db": "d", "coll": "n"}
        equal((event["operationType"], event["to"], event["operationDescription"]),
              ("rename", to, {"to": to, "dropTarget": uuid}))
        stream = Stream(c, "n", showExpandedEvents=True)
        c({"renameCollection": "d.n", "to": "d.c", "dropTarget": True})
        equal(stream.read(1)[0]["operationDescription"], {"to": {"db": "d", "coll": "c"}})


@test
def an_update_by_a_pipeline_is_told_by_what_it_changes(cwd):
    with Mongo(cwd) as server, server.client() as c:
        for scheme in ("packed", "exploded"):
            c({"drop": "c"}, "d")
            c({"create": "c", "storageEngine": {"frond": {"scheme": scheme}}}, "d")
            text = "x" * 200
            insert(c, {"_id": 1, "text": text, "list": ["foo", {"a": "bar"}, 1, 2, 3], "in": {"a": 1, "b": [1, 2]}})
            stream = Stream(c)

            def told(*stages):
                c({"update": "c", "updates": [{"q": {"_id": 1}, "u": list(stages)}]}, "d")
                stream.seen = []
                event = stream.read(1)[0]
                description = event.get("updateDescription")
                return description and [description[k] for k in ("updatedFields", "removedFields", "truncatedArrays")]

            equal(told({"$set": {"list": ["foo", {"a": "bar"}]}}), [{}, [], [{"field": "list", "newSize": 2}]])
            equal(told({"$set": {"list": ["bar", {"a": "bar", "n": 1}, 5]}}),
                  [{"list.0": "bar", "list.1.n": 1, "list.2": 5}, [], []])
            equal(told({"$set": {"in.b": [2], "in.c": 1}}, {"$unset": "in.a"}),
                  [{"in.b.0": 2, "in.c": 1}, ["in.a"], [{"field": "in.b", "newSize": 1}]])
            equal(told({"$set": {"list": [], "in": 1}}), [{"list": [], "in": 1}, [], []])
            equal(told({"$set": {"list": {}}}), [{"list": {}}, [], []])
            # Another order, and what is not shorter than the document, are told as a whole.
            equal(told({"$replaceWith": {"text": text, "in": 1, "list": {}}}), None)
            equal(told({"$replaceWith": {"n": 1}}), None)
            equal(c({"find": "c"}, "d")["cursor"]["firstBatch"], [{"_id": 1, "n": 1}])


@test
def aggregations_that_write_are_told(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 1}, {"_id": 2})
        insert(c, {"_id": 0}, collection="target")
        stream = Stream(c, "target")
        c({"aggregate": "c", "pipeline": [{"$out": "target"}], "cursor": {}}, "d")
        equal([e["operationType"] for e in stream.read(2)], ["drop", "invalidate"])



@test
def stages_behind_a_stream_change_what_is_told(cwd):
    with Mongo(cwd) as server, server.client() as c:
        streams = [Stream(c, stages=[{"$match": {"operationType": "insert", "fullDocument.n": {"$gt": 1}}}]),
                   Stream(c, stages=[{"$project": {"operationType": 1}}, {"$set": {"more": "$operationType"}},
                                     {"$unset": "operationType"}]),
                   Stream(c, stages=[{"$replaceRoot": {"newRoot": {"_id": "$_id", "n": "$fullDocument.n"}}}]),
                   Stream(c, stages=[{"$redact": {"$cond": [{"$eq": ["$operationType", "delete"]},
                                                            "$$PRUNE", "$$KEEP"]}}])]
        insert(c, {"_id": 1, "n": 1}, {"_id": 2, "n": 2})
        delete(c, 1)
        insert(c, {"_id": 3, "n": 3})
        seen = [s.read(n) for s, n in zip(streams, (2, 4, 4, 3))]
        equal(kinds(seen[0]), [("insert", 2), ("insert", 3)])
        equal([{k: v for k, v in e.items() if k != "_id"} for e in seen[1]],
              [{"more": m} for m in ("insert", "insert", "delete", "insert")])
        equal([e.get("n") for e in seen[2]], [1, 2, None, 3])
        equal(kinds(seen[3]), [("insert", 1), ("insert", 2), ("insert", 3)])
        # What was left out is not told again.
        equal(kinds(Stream(c, resumeAfter=streams[0].token).seen), [])
        gone = Stream(c, stages=[{"$project": {"_id": 0}}])
        insert(c, {"_id": 4})
        answer = c.fails({"getMore": Int64(gone.id), "collection": "c", "maxTimeMS": 20000}, "d")
        equal((answer["code"], answer["errorLabels"]), (280, ["NonResumableChangeStreamError"]))
        equal(c.fails({"getMore": Int64(gone.id), "collection": "c"}, "d")["code"], 43)


@test
def events_that_stages_leave_out_do_not_end_the_wait(cwd):
    with Mongo(cwd) as server, server.client() as c, server.client() as other:
        stream = Stream(c, stages=[{"$match": {"documentKey._id": 5}}])

        def write():
            for i in range(6):
                insert(other, {"_id": i})
        thread = threading.Timer(0.02, write)
        thread.start()
        equal(kinds(stream.more(wait=60000)), [("insert", 5)])
        thread.join()


@test
def documents_before_and_after_a_change_are_kept(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"create": "c", "changeStreamPreAndPostImages": {"enabled": True}}, "d")
        options = c({"listCollections": 1}, "d")["cursor"]["firstBatch"][0]["options"]
        equal(options, {"changeStreamPreAndPostImages": {"enabled": True}})
        streams = [Stream(c, fullDocument=w, fullDocumentBeforeChange=w)
                   for w in ("required", "whenAvailable")]
        long = "x" * 300000
        insert(c, {"_id": 1, "n": 1}, {"_id": 2, "text": long})
        c({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}},
                                      {"q": {"_id": 1}, "u": {"$set": {"text": long}}},
                                      {"q": {"_id": 1}, "u": {"n": 5}}]}, "d")
        delete(c, 1)
        insert(c, {"_id": 1, "n": "another"})
        for stream in streams:
            events = stream.read(7)
            equal([e.get("fullDocumentBeforeChange", "none") for e in events],
                  ["none", "none", {"_id": 1, "n": 1}, {"_id": 1, "n": 2},
                   {"_id": 1, "n": 2, "text": long}, {"_id": 1, "n": 5}, "none"])
            equal([e.get("fullDocument", "none") for e in events],
                  [{"_id": 1, "n": 1}, {"_id": 2, "text": long}, {"_id": 1, "n": 2},
                   {"_id": 1, "n": 2, "text": long}, {"_id": 1, "n": 5}, "none",
                   {"_id": 1, "n": "another"}])
        # Where none are kept, that is told, or is an error.
        c({"collMod": "c", "changeStreamPreAndPostImages": {"enabled": False}}, "d")
        equal(c({"listCollections": 1}, "d")["cursor"]["firstBatch"][0]["options"], {})
        available = Stream(c, fullDocument="whenAvailable", fullDocumentBeforeChange="whenAvailable")
        required = [Stream(c, **{name: "required"}) for name in ("fullDocument", "fullDocumentBeforeChange")]
        c({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"n": 7}}}]}, "d")
        event = available.read(1)[0]
        equal((event["fullDocument"], event["fullDocumentBeforeChange"]), (None, None))
        for stream in required:
            answer = c.fails({"getMore": Int64(stream.id), "collection": "c", "maxTimeMS": 20000}, "d")
            equal((answer["code"], "errorLabels" in answer), (47, False))
        for images in (1, {}, {"enabled": 1}):
            equal(c.fails({"create": "x", "changeStreamPreAndPostImages": images}, "d")["code"],
                  40414 if images == {} else 14)


@test
def documents_of_any_length_are_kept_before_and_after(cwd):
    """Longer ones than fit into a transaction are written ahead; they outlive their collection."""
    with Mongo(cwd) as server, server.client() as c:
        c({"create": "c", "changeStreamPreAndPostImages": {"enabled": True}}, "d")
        stream = Stream(c, fullDocument="required", fullDocumentBeforeChange="required")
        middle, long = "m" * 1500000, "l" * 8000000
        insert(c, {"_id": 1, "text": middle})
        insert(c, {"_id": 2, "text": long})
        c({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"text": middle[1:]}}},
                                      {"q": {"_id": 2}, "u": {"$set": {"n": 1}}},
                                      {"q": {"_id": 2}, "u": [{"$set": {"text": "short"}}]}]}, "d")
        replace(c, 2, {"_id": 2, "text": long[2:]})
        more = {"lsid": {"id": bytes(16)}, "txnNumber": Int64(1), "autocommit": False}
        c({"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}, {"q": {"_id": 2}, "limit": 1}],
           **more, "startTransaction": True}, "d")
        c({"commitTransaction": 1, **more})
        insert(c, {"_id": 3})
        told = [("insert", None, 1500000), ("insert", None, 8000000), ("replace", 1500000, 1499999),
                ("update", 8000000, 8000000), ("update", 8000000, 5), ("replace", 5, 7999998),
                ("delete", 1499999, None), ("delete", 7999998, None), ("insert", None, 0)]

        def length(document):
            return document and len(document.get("text", ""))

        def check(stream):
            events = stream.read(len(told))
            equal([(e["operationType"], length(e.get("fullDocumentBeforeChange")),
                    length(e.get("fullDocument"))) for e in events], told)
            return events
        first = check(stream)[0]["_id"]
        equal(c({"validate": "c"}, "d")["errors"], [])
        c({"drop": "c"}, "d")
        again = Stream(c, fullDocument="required", fullDocumentBeforeChange="required",
                       resumeAfter=first)
        told = told[1:] + [("drop", None, None), ("invalidate", None, None)]
        check(again)


@test
def a_large_event_is_told_in_fragments(cwd):
    split = {"$changeStreamSplitLargeEvent": {}}
    with Mongo(cwd) as server, server.client() as c:
        c({"create": "c", "changeStreamPreAndPostImages": {"enabled": True}}, "d")
        before = {"_id": 1, "text": "x" * 900000}
        after = {"_id": 1, "text": "y" * 16700000}
        stream = Stream(c, stages=[split], fullDocumentBeforeChange="required")
        whole = Stream(c, fullDocumentBeforeChange="required")
        without = Stream(c, stages=[{"$match": {"operationType": {"$ne": "replace"}}}, split],
                         fullDocumentBeforeChange="required")
        insert(c, before)
        replace(c, 1, after)
        insert(c, {"_id": 2})

        events = stream.read(4)
        equal([e.get("splitEvent") for e in events], [None, {"fragment": 1, "of": 2}, {"fragment": 2, "of": 2}, None])
        tokens = [e["_id"]["_data"] for e in events]
        equal(tokens, sorted(set(tokens)))
        equal(sorted(events[1]), ["_id", "clusterTime", "documentKey", "fullDocumentBeforeChange", "ns",
                                  "operationType", "splitEvent", "wallTime"])
        equal(sorted(events[2]), ["_id", "fullDocument", "splitEvent"])
        assert events[1]["fullDocumentBeforeChange"] == before and events[2]["fullDocument"] == after

        # Going on behind each of them gives the rest; also one by one.
        for i in range(3):
            again = Stream(c, stages=[split], fullDocumentBeforeChange="required", resumeAfter=events[i]["_id"])
            equal([e.get("splitEvent") for e in again.read(3 - i)], [e.get("splitEvent") for e in events[i + 1:]])
        slow = Stream(c, stages=[split], batch=0, fullDocumentBeforeChange="required", resumeAfter=events[0]["_id"])
        for i in range(1, 4):
            batch = slow.more(batchSize=1)
            equal([e.get("splitEvent") for e in batch], [events[i].get("splitEvent")])
            # Behind the last fragment it is the place behind the whole event.
            equal(slow.token["_data"], batch[0]["_id"]["_data"][:len(events[0]["_id"]["_data"]) + (2 if i == 1 else 0)])

        # Without the stage it is an error, unless a stage leaves the event out.
        equal(kinds(whole.more(batchSize=1)), [("insert", 1)])
        answer = c.fails({"getMore": Int64(whole.id), "collection": "c"}, "d")
        equal((answer["code"], answer["codeName"], "errorLabels" in answer), (10334, "BSONObjectTooLarge", False))
        equal(kinds(without.read(2)), [("insert", 1), ("insert", 2)])

        def fails(*stages, **options):
            return c.fails({"aggregate": "c", "pipeline": [{"$changeStream": options}, *stages], "cursor": {}}, "d")
        equal(fails(resumeAfter=events[1]["_id"])["code"], 280)
        equal(fails({"$project": {"fullDocument": 0}}, split, resumeAfter=events[1]["_id"])["code"], 280)
        equal(fails({"$changeStreamSplitLargeEvent": {"n": 1}})["code"], 7182800)
        equal(fails({"$changeStreamSplitLargeEvent": 1})["code"], 7182800)
        equal(fails(split, {"$match": {}})["code"], 7182802)
        equal(fails(split, split)["code"], 7182802)
        token = events[1]["_id"]["_data"]
        for damaged in (token[:-2] + "00", token + "00", token[:-1]):
            equal(fails(split, resumeAfter={"_data": damaged})["code"], 260)


@test
def an_answer_takes_as_many_events_as_a_batch_holds(cwd):
    with Mongo(cwd) as server, server.client() as c:
        copies = {f"copy{i}": "$fullDocument.text" for i in range(60)}
        stream = Stream(c, stages=[{"$set": copies}, {"$unset": "fullDocument"}])
        insert(c, *({"_id": i, "text": "x" * 30000} for i in range(40)))
        first = len(stream.more(wait=20000))
        equal((0 < first < 40, stream.more()[0]["documentKey"]["_id"]), (True, first))


@test
def paths_that_may_be_read_in_two_ways_are_told(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 1, "a": {"1": 1}, "b": [{"1": 1}], "c": 1})
        streams = [Stream(c, showExpandedEvents=e) for e in (True, False)]
        c({"update": "c", "updates": [{"q": {}, "u": {"$set": {"a.1": 2, "b.0.1": 2, "c": 2}}}]}, "d")
        told = [s.read(1)[0]["updateDescription"] for s in streams]
        equal(told[0]["disambiguatedPaths"], {"a.1": ["a", "1"], "b.0.1": ["b", 0, "1"]})
        assert "disambiguatedPaths" not in told[1]


@test
def errors_say_whether_a_stream_may_be_resumed(cwd):
    with Mongo(cwd, "--mongo-test-commands") as server, server.client() as c:
        def fails_with(code):
            stream = Stream(c)
            c({"configureFailPoint": "failGetMoreAfterCursorCheckout", "mode": {"times": 1},
               "data": {"errorCode": code}})
            answer = c.fails({"getMore": Int64(stream.id), "collection": "c"}, "d")
            equal(answer["code"], code)
            equal(c.fails({"getMore": Int64(stream.id), "collection": "c"}, "d")["code"], 43)
            return answer.get("errorLabels")
        for code in (6, 63, 150, 189, 234, 10107, 11602, 13388):
            equal(fails_with(code), ["ResumableChangeStreamError"])
        for code in (1, 216, 280 - 1, 286, 11601):
            equal(fails_with(code), None)


@test
def times_and_options_are_checked(cwd):
    with Mongo(cwd) as server, server.client() as c:
        insert(c, {"_id": 1})
        stream = Stream(c)
        insert(c, {"_id": 2})
        events = stream.read(1)

        def fails(*pipeline):
            return c.fails({"aggregate": "c", "pipeline": list(pipeline), "cursor": {}}, "d")["code"]
        for options, code in (({"fullDocument": "other"}, 2),
                              ({"fullDocumentBeforeChange": "updateLookup"}, 2),
                              ({"showExpandedEvents": 1}, 14),
                              ({"resumeAfter": {"_data": "00"}}, 260), ({"resumeAfter": 1}, 260),
                              ({"startAtOperationTime": 1}, 14), ({"nosuch": 1}, 40415),
                              ({"resumeAfter": events[0]["_id"], "startAfter": events[0]["_id"]}, 72)):
            equal(fails({"$changeStream": options}), code)
        equal(fails({"$changeStream": 1}), 14)
        for stage, code in (({"$sort": {"n": 1}}, 20), ({"$nosuch": 1}, 40324), ({"$match": 1}, 15959)):
            equal(fails({"$changeStream": {}}, stage), code)
        for options in ({"fullDocument": "default"}, {"fullDocument": "whenAvailable"},
                        {"fullDocumentBeforeChange": "off"}, {"showExpandedEvents": True}):
            equal(Stream(c, **options).seen, [])
        c({"killCursors": "c", "cursors": [Int64(stream.id)]}, "d")
        equal(c.fails({"getMore": Int64(stream.id), "collection": "c"}, "d")["code"], 43)


@test
def events_of_a_transaction_tell_its_session_and_number(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{"_id": 0}]}, "d")
        stream = Stream(c)
        of = {"lsid": {"id": b"0123456789abcdef"}, "txnNumber": Int64(7), "autocommit": False}
        c({"insert": "c", "documents": [{"_id": 1}], **of, "startTransaction": True}, "d")
        c({"update": "c", "updates": [{"q": {"_id": 0}, "u": {"$set": {"a": 1}}}], **of}, "d")
        c({"bulkWrite": 1, "ops": [{"delete": 0, "filter": {"_id": 0}}], "nsInfo": [{"ns": "d.c"}], **of})
        c({"commitTransaction": 1, **of})
        c({"insert": "c", "documents": [{"_id": 2}], "lsid": of["lsid"], "txnNumber": Int64(8)}, "d")
        c({"insert": "c", "documents": [{"_id": 3}]}, "d")
        events = stream.read(5)
        equal([(e["operationType"], e.get("txnNumber"), e.get("lsid")) for e in events],
              [*((kind, 7, {"id": b"0123456789abcdef"}) for kind in ("insert", "update", "delete")),
               ("insert", None, None), ("insert", None, None)])
    contains(ok("inspect", cwd=cwd).stdout, "in transaction 7")


main()
