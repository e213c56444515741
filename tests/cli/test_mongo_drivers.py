"""MongoDB's door through MongoDB's own driver for Python, unchanged: Debian's python3-pymongo."""

try:
    import pymongo
except ImportError:
    pymongo = None

from harness import equal, main, test
from mongo_server import MongoServer


class Mongo(MongoServer):
    def __init__(self, cwd, *options, **kwargs):
        super().__init__(cwd, *options, ini="[chttpd_auth]\niterations = 4096\n[mongo]\nreplica_set = frond\n", **kwargs)

    def client(self, **kwargs):
        return pymongo.MongoClient("127.0.0.1", self.port, serverSelectionTimeoutMS=30000, **kwargs)


@test
def a_driver_connects_as_to_one_server_and_as_to_a_replica_set(cwd):
    with Mongo(cwd) as server:
        with server.client() as client:
            equal(client.admin.command("ping")["ok"], 1.0)
            equal(client.server_info()["version"], "8.0.0")
        with server.client(replicaSet="frond") as client:
            equal(client.admin.command("ping")["ok"], 1.0)
            equal(client.primary, ("127.0.0.1", server.port))
            with client.start_session() as session:
                equal(client.admin.command("ping", session=session)["ok"], 1.0)
                assert session.cluster_time and session.operation_time


@test
def a_driver_commits_and_aborts_transactions(cwd):
    with Mongo(cwd) as server, server.client(replicaSet="frond") as client:
        books = client.shop.books
        with client.start_session() as session:
            with session.start_transaction():
                books.insert_one({"_id": 1}, session=session)
                client.shop.sold.insert_one({"_id": 1}, session=session)
                equal(list(books.find({}, session=session)), [{"_id": 1}])
                equal(list(books.find({})), [])
            equal((list(books.find({})), list(client.shop.sold.find({}))), ([{"_id": 1}], [{"_id": 1}]))
            session.start_transaction()
            books.replace_one({"_id": 1}, {"n": 1}, session=session)
            session.abort_transaction()
            equal(list(books.find({})), [{"_id": 1}])

            # The first try meets somebody else's write; the driver does all of it again.
            tries = []

            def callback(s):
                tries.append(books.find_one({"_id": 1}, session=s))
                if len(tries) == 1:
                    books.replace_one({"_id": 1}, {"n": 5})
                books.replace_one({"_id": 1}, {"n": tries[-1].get("n", 0) + 1}, session=s)
            session.with_transaction(callback)
            equal(tries, [{"_id": 1}, {"_id": 1, "n": 5}])
            equal(books.find_one({"_id": 1}), {"_id": 1, "n": 6})


@test
def a_driver_follows_changes(cwd):
    with Mongo(cwd) as server, server.client(replicaSet="frond") as client:
        books = client.shop.books
        with books.watch() as stream, client.watch() as everything:
            books.insert_one({"_id": 1, "n": 1})
            books.update_one({"_id": 1}, {"$set": {"n": 2}, "$unset": {"none": 1}})
            books.delete_one({"_id": 1})
            events = [next(stream) for _ in range(3)]
            equal([e["operationType"] for e in events], ["insert", "update", "delete"])
            equal(events[1]["updateDescription"]["updatedFields"], {"n": 2})
            equal(events[1]["updateDescription"]["removedFields"], [])
            equal([next(everything)["operationType"] for _ in range(3)], ["insert", "update", "delete"])
        with books.watch(resume_after=events[0]["_id"], full_document="updateLookup") as stream:
            event = next(stream)
            equal((event["operationType"], event["fullDocument"]), ("update", None))


@test
def a_driver_compresses(cwd):
    with Mongo(cwd) as server, server.client(compressors="zlib") as client:
        assert len(client.admin.command("listCommands")["commands"]) > 10


@test
def a_driver_logs_in_with_its_own_choice_of_mechanism(cwd):
    with Mongo(cwd, env={"FROND_ADMIN": "root:secret"}) as server:
        for more in ({}, {"authMechanism": "SCRAM-SHA-256"}, {"authSource": "other"}):
            with server.client(username="root", password="secret", **more) as client:
                equal(client.admin.command("serverStatus")["process"], "frond")
        with server.client(username="root", password="wrong") as client:
            try:
                client.admin.command("serverStatus")
                raise AssertionError("a wrong password has logged in")
            except pymongo.errors.OperationFailure as error:
                equal(error.code, 18)


@test
def a_driver_writes_and_reads(cwd):
    with Mongo(cwd) as server, server.client() as client:
        books = client.shop.books
        equal(books.insert_one({"_id": 1, "title": "Fronds"}).inserted_id, 1)
        made = books.insert_many([{"title": str(n)} for n in range(300)]).inserted_ids
        equal(len(set(made)), 300)
        equal(books.find_one({"_id": 1}), {"_id": 1, "title": "Fronds"})
        equal(len(list(books.find().batch_size(50))), 301)
        equal(books.find_one({"_id": made[7]})["title"], "7")
        try:
            books.insert_one({"_id": 1})
            raise AssertionError("a second one was inserted")
        except pymongo.errors.DuplicateKeyError as error:
            equal(error.code, 11000)
        equal(books.replace_one({"_id": 1}, {"title": "Ferns"}).modified_count, 1)
        equal(books.replace_one({"_id": 2}, {"title": "Mosses"}, upsert=True).upserted_id, 2)
        equal(books.estimated_document_count(), 302)
        equal(books.delete_one({"_id": 2}).deleted_count, 1)
        equal(client.list_database_names(), ["shop"])
        equal(client.shop.list_collection_names(), ["books"])
        books.drop()
        equal(client.list_database_names(), [])


main(None if pymongo else "pymongo (python3-pymongo)")
