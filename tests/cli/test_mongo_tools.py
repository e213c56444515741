"""What the programs that people run beside their applications send: MongoDB's tools for the command line, and
Compass."""

import hashlib
import re

from harness import contains, equal, main, test
from mongo import Failure, encode
from mongo_server import MongoServer


class Mongo(MongoServer):
    def __init__(self, cwd, *options, settings="", **kwargs):
        super().__init__(cwd, *options, ini="[mongo]\nreplica_set = frond\n" + settings + "\n[chttpd_auth]\niterations = 10\n", **kwargs)


ID_INDEX = {"v": 2, "key": {"_id": 1}, "name": "_id_"}


@test
def a_restored_collection_is_made_with_the_index_that_it_had(cwd):
    """mongorestore makes a collection with the options and the idIndex that listCollections has told."""
    with Mongo(cwd) as server, server.client() as c:
        c({"create": "c", "idIndex": ID_INDEX}, "d")
        c({"create": "v", "validator": {"a": 1}, "idIndex": {"key": {"_id": 1.0}, "name": "x", "ns": "d.v"}}, "d")
        told = c({"listCollections": 1}, "d")["cursor"]["firstBatch"]
        equal([(one["name"], one["idIndex"]) for one in told], [("c", ID_INDEX), ("v", ID_INDEX)])
        for index, code in (({"key": {"a": 1}}, 2), ({"key": {"_id": -1}}, 2), ({"name": "_id_"}, 9), (1, 14),
                            ({**ID_INDEX, "unique": True}, 197), ({"key": {"_id": 1}}, 9), ({**ID_INDEX, "key": 1}, 14),
                            ({**ID_INDEX, "name": 1}, 14), ({**ID_INDEX, "name": ""}, 67), ({**ID_INDEX, "v": 3}, 67),
                            ({**ID_INDEX, "v": 2.5}, 2), ({**ID_INDEX, "v": True}, 14),
                            ({**ID_INDEX, "collation": {"locale": "en"}}, 2)):
            equal(c.fails({"create": "no", "idIndex": index}, "d")["code"], code)
        equal(len(c({"listCollections": 1}, "d")["cursor"]["firstBatch"]), 2)


@test
def indexes_of_old_dumps_are_made_without_what_nobody_knows(cwd):
    with Mongo(cwd) as server, server.client() as c:
        index = {"v": 1, "key": {"a": 1}, "name": "a_1", "ns": "d.c", "safe": True, "unique": True}
        equal(c.fails({"createIndexes": "c", "indexes": [index]}, "d")["code"], 197)
        c({"createIndexes": "c", "indexes": [index], "ignoreUnknownIndexOptions": True}, "d")
        equal(c({"listIndexes": "c"}, "d")["cursor"]["firstBatch"],
              [ID_INDEX, {"v": 2, "key": {"a": 1}, "name": "a_1", "unique": True}])
        # What MongoDB knows and this server does not is refused all the same.
        equal(c.fails({"createIndexes": "c", "indexes": [{"key": {"b": 1}, "name": "b_1", "storageEngine": {"x": {}}}],
                       "ignoreUnknownIndexOptions": True}, "d")["code"], 197)


def counters(client):
    return client({"serverStatus": 1})["opcounters"]


@test
def what_servers_are_watched_by_is_told(cwd):
    """mongostat and Compass read serverStatus, and fail without these members."""
    with Mongo(cwd) as server, server.client() as c:
        status = c({"serverStatus": 1, "recordStats": 0})
        address = f"127.0.0.1:{server.port}"
        equal(status["globalLock"]["currentQueue"], {"total": 0, "readers": 0, "writers": 0})
        equal(status["globalLock"]["activeClients"], {"total": 1, "readers": 1, "writers": 0})
        equal({name: status["repl"][name] for name in ("setName", "ismaster", "hosts", "me")},
              {"setName": "frond", "ismaster": True, "hosts": [address], "me": address})
        contains(status["extra_info"], "page_faults")
        before = counters(c)
        c({"insert": "c", "documents": [{"_id": i} for i in range(200)]}, "d")
        cursor = c({"find": "c", "batchSize": 2}, "d")["cursor"]["id"]
        c({"getMore": cursor, "collection": "c"}, "d")
        c({"update": "c", "updates": [{"q": {"_id": i}, "u": {"a": 1}} for i in range(3)]}, "d")
        c({"delete": "c", "deletes": [{"q": {"_id": i}, "limit": 1} for i in range(2)]}, "d")
        c({"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}, {"update": 0, "filter": {}, "updateMods": {"$set": {"b": 1}}},
                                   {"delete": 0, "filter": {"_id": 5}}], "nsInfo": [{"ns": "d.c"}]})
        c({"ping": 1})
        after = counters(c)
        # The command also counts bulkWrite, ping, and the serverStatus before.
        equal({name: after[name] - before[name] for name in after},
              {"insert": 201, "query": 1, "getmore": 1, "update": 4, "delete": 3, "command": 3})


@test
def the_use_of_each_collection_is_told(cwd):
    with Mongo(cwd) as server, server.client() as c:
        def top():
            totals = c({"top": 1})["totals"]
            equal(totals.pop("note"), "all times in microseconds")
            return totals

        equal(top(), {})
        c({"insert": "b", "documents": [{"_id": i} for i in range(3)]}, "d")
        c({"insert": "a", "documents": [{"_id": 1}]}, "d")
        cursor = c({"find": "b", "batchSize": 1}, "d")["cursor"]["id"]
        c({"getMore": cursor, "collection": "b"}, "d")
        c({"update": "b", "updates": [{"q": {}, "u": {"a": 1}}]}, "d")
        c({"delete": "b", "deletes": [{"q": {"_id": 1}, "limit": 1}]}, "d")
        c({"aggregate": "b", "pipeline": [], "cursor": {}}, "d")
        c({"createIndexes": "b", "indexes": [{"key": {"a": 1}, "name": "a_1"}]}, "d")
        c.fails({"find": "b", "filter": {"$no": 1}}, "d")
        c({"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}})
        found = top()
        equal(list(found), ["d.a", "d.b"])
        equal({name: one["count"] for name, one in found["d.b"].items()},
              {"total": 7, "readLock": 3, "writeLock": 4, "queries": 1, "getmore": 1, "insert": 1, "update": 1,
               "remove": 1, "commands": 2})
        assert found["d.b"]["total"]["time"] >= found["d.b"]["insert"]["time"] > 0
        # A stream that waits has not worked.
        cursor = c({"aggregate": "a", "pipeline": [{"$changeStream": {}}], "cursor": {}}, "d")["cursor"]["id"]
        c({"getMore": cursor, "collection": "a", "maxTimeMS": 500}, "d")
        assert top()["d.a"]["getmore"]["time"] < 400000
        # What is dropped is forgotten.
        c({"drop": "b"}, "d")
        equal(list(top()), ["d.a"])
        c({"insert": "b", "documents": [{}]}, "d")
        equal(top()["d.b"]["total"]["count"], 1)
        c({"dropDatabase": 1}, "d")
        equal(top(), {})


@test
def figures_of_a_collection_are_told_by_a_stage(cwd):
    """Compass and mongosh read the sizes of indexes from $collStats, and know views by the failure."""
    with Mongo(cwd) as server, server.client() as c:
        def stats(spec, of="c"):
            return c({"aggregate": of, "pipeline": [{"$collStats": spec}], "cursor": {}}, "d")["cursor"]["firstBatch"][0]

        def fails(stage, of="c"):
            return c.fails({"aggregate": of, "pipeline": [stage], "cursor": {}}, "d")

        c({"insert": "c", "documents": [{"_id": i, "a": "x" * 100} for i in range(500)]}, "d")
        c({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}, {"key": {"b": 1}, "name": "b_1"}]}, "d")
        c({"create": "v", "viewOn": "c"}, "d")
        of_command = c({"collStats": "c"}, "d")
        of_stage = stats({"storageStats": {}})["storageStats"]
        for name in ("size", "count", "avgObjSize", "storageSize", "nindexes", "totalIndexSize", "indexSizes", "capped"):
            equal((name, of_stage[name]), (name, of_command[name]))
        equal((of_stage["nindexes"], list(of_stage["indexSizes"])), (3, ["_id_", "a_1", "b_1"]))
        smaller = stats({"storageStats": {"scale": 10, "waitForLock": False}})["storageStats"]
        equal((smaller["size"], smaller["scaleFactor"]), (of_stage["size"] // 10, 10))
        latency = stats({"latencyStats": {"histograms": False}, "count": {}})
        equal((latency["count"], latency["latencyStats"]["writes"]["ops"]), (500, 2))
        assert latency["latencyStats"]["reads"]["latency"] > 0
        equal("storageStats" in latency, False)
        for spec, code in (({"no": 1}, 40415), ({"count": 1}, 14), ({"storageStats": {"scale": 0}}, 2),
                           ({"latencyStats": {"histograms": True}}, 238), ({"queryExecStats": {}}, 238)):
            equal((spec, fails({"$collStats": spec})["code"]), (spec, code))
        for stage in ({"$collStats": {"storageStats": {}}}, {"$indexStats": {}}):
            failure = fails(stage, "v")
            equal((failure["code"], failure["errmsg"]), (166, "Namespace d.v is a view, not a collection"))


@test
def databases_are_compared_by_hashes(cwd):
    """MongoDB's definition: MD5 over the documents in the order of _id, then over those sums as text."""
    def expected(*documents):
        return hashlib.md5(b"".join(encode(one) for one in documents)).hexdigest()

    with Mongo(cwd) as server, server.client() as c:
        equal(c({"dbHash": 1}, "none")["collections"], {})
        documents = [{"_id": i, "a": "x" * i} for i in range(300)]
        c({"insert": "c", "documents": documents[::-1]}, "d")
        c({"create": "e", "storageEngine": {"frond": {"scheme": "exploded"}}}, "d")
        c({"insert": "e", "documents": documents[:2]}, "d")
        c({"create": "empty"}, "d")
        c({"create": "v", "viewOn": "c"}, "d")
        answer = c({"dbHash": 1}, "d")
        sums = {"c": expected(*documents), "e": expected(*documents[:2]), "empty": expected()}
        equal(answer["collections"], sums)
        equal(answer["md5"], hashlib.md5("".join(sums.values()).encode()).hexdigest())
        equal((answer["capped"], sorted(answer["uuids"])), ([], sorted(sums)))
        answer = c({"dbHash": 1, "collections": ["e", "no"]}, "d")
        equal(answer["collections"], {"e": sums["e"]})
        equal(c.fails({"dbHash": 1, "collections": [1]}, "d")["code"], 2)
        c({"delete": "c", "deletes": [{"q": {"_id": 7}, "limit": 1}]}, "d")
        assert c({"dbHash": 1}, "d")["collections"]["c"] != sums["c"]


@test
def slow_commands_are_lines_of_the_log(cwd):
    with Mongo(cwd, settings="slow_ms = 60000\n") as server, server.client() as c:
        equal({name: value for name, value in c({"profile": -1}, "d").items() if name in ("was", "slowms", "sampleRate")},
              {"was": 0, "slowms": 60000, "sampleRate": 1.0})
        c({"insert": "c", "documents": [{}]}, "d")
        assert "slow_operation" not in server.read_log()
        equal(c({"profile": 0, "slowms": 0}, "d")["slowms"], 60000)
        equal(c({"profile": -1}, "other")["slowms"], 0)
        c({"aggregate": "c c", "pipeline": [{"$match": {"secret": 1}}], "cursor": {}}, "d")
        c({"insert": "d", "documents": [{"_id": i, "secret": "x" * 1000} for i in range(3000)]}, "d")
        line = re.search(r'event=slow_operation door=mongo name=insert on="d\.d" took_ms=\d+ .*', server.read_log()).group()
        contains(line, "code=0")
        assert "secret" not in server.read_log()
        for command, code in (({"profile": 1}, 238), ({"profile": 2}, 238), ({"profile": 3}, 2), ({"profile": "0"}, 14),
                              ({"profile": 0, "slowms": -1}, 2), ({"profile": 0, "sampleRate": 0.5}, 238),
                              ({"profile": 0, "filter": {}}, 238), ({"profile": 0, "no": 1}, 40415)):
            equal(c.fails(command, "d")["code"], code)
        c({"profile": 0, "sampleRate": 1}, "d")


@test
def the_set_and_its_member_are_told(cwd):
    with Mongo(cwd) as server, server.client() as c:
        address = f"127.0.0.1:{server.port}"
        c({"insert": "c", "documents": [{}]}, "d")
        status = c({"replSetGetStatus": 1})
        equal((status["set"], status["myState"], len(status["members"])), ("frond", 1, 1))
        member = status["members"][0]
        equal((member["name"], member["stateStr"], member["self"], member["health"]), (address, "PRIMARY", True, 1.0))
        assert member["optime"]["ts"] >= status["optimes"]["appliedOpTime"]["ts"] > 0
        config = c({"replSetGetConfig": 1})["config"]
        equal((config["_id"], [one["host"] for one in config["members"]]), ("frond", [address]))
    (cwd / "alone").mkdir()
    with Mongo(cwd / "alone", settings="standalone = true\n") as server, server.client() as c:
        for name in ("replSetGetStatus", "replSetGetConfig", "replSetInitiate"):
            failure = c.fails({name: 1})
            equal((failure["code"], failure["codeName"], failure["errmsg"]),
                  (76, "NoReplicationEnabled", "not running with --replSet"))
        assert "repl" not in c({"serverStatus": 1})


@test
def what_there_is_nothing_of_says_so(cwd):
    with Mongo(cwd) as server, server.client() as c:
        c({"insert": "c", "documents": [{}]}, "d")
        equal(c({"fsync": 1})["numFiles"], 1)
        equal(c({"lockInfo": 1})["lockInfo"], [])
        equal(c({"planCacheListFilters": "c"}, "d")["filters"], [])
        equal(c({"getClusterParameter": "*"})["clusterParameters"], [])
        c({"planCacheClear": "c"}, "d")
        c({"planCacheClear": "c", "query": {"a": 1}, "sort": {}, "projection": {}}, "d")
        c({"planCacheClearFilters": "c"}, "d")
        c({"setFeatureCompatibilityVersion": "8.0", "confirm": True})
        contains(c.fails({"shutdown": 1})["errmsg"], "SIGTERM")
        for command, db, code in (({"fsync": 1, "lock": True}, "admin", 238), ({"fsync": 1}, "d", 13),
                                  ({"fsyncUnlock": 1}, "admin", 20), ({"logRotate": 1}, "admin", 238),
                                  ({"compact": "c"}, "d", 238), ({"convertToCapped": "c", "size": 1}, "d", 238),
                                  ({"cloneCollectionAsCapped": "c", "toCollection": "e", "size": 1}, "d", 238),
                                  ({"planCacheClear": "c", "sort": {}}, "d", 2),
                                  ({"replSetInitiate": {}}, "admin", 23), ({"replSetReconfig": {}}, "admin", 238),
                                  ({"replSetStepDown": 1}, "admin", 238), ({"shutdown": 1}, "admin", 238),
                                  ({"reIndex": "c"}, "d", 238),
                                  ({"setDefaultRWConcern": 1, "defaultReadConcern": {}}, "admin", 238),
                                  ({"setFeatureCompatibilityVersion": "8.0"}, "admin", 7369100),
                                  ({"setFeatureCompatibilityVersion": "7.0", "confirm": True}, "admin", 2),
                                  ({"planCacheSetFilter": "c", "query": {}, "indexes": []}, "d", 238),
                                  ({"getClusterParameter": "changeStreamOptions"}, "admin", 4),
                                  ({"getClusterParameter": []}, "admin", 2),
                                  ({"setClusterParameter": {"changeStreamOptions": {}}}, "admin", 4)):
            equal((command, c.fails(command, db)["code"]), (command, code))
        # Those of other servers than MongoDB's for data, and what nobody knows.
        for name in ("isdbgrid", "atlasVersion", "getDatabaseVersion", "applyOps", "oplog"):
            failure = c.fails({name: 1})
            equal((failure["code"], failure["codeName"], failure["errmsg"]),
                  (59, "CommandNotFound", f"no such command: '{name}'"))


@test
def each_role_may_do_what_it_is_for(cwd):
    commands = ({"top": 1}, {"lockInfo": 1}, {"replSetGetStatus": 1}, {"replSetGetConfig": 1}, {"getClusterParameter": "*"},
                {"fsync": 1}, {"fsyncUnlock": 1}, {"logRotate": 1}, {"setClusterParameter": {"a": {}}},
                {"shutdown": 1}, {"replSetInitiate": {}}, {"setFeatureCompatibilityVersion": "8.0"},
                {"profile": 0}, {"planCacheClear": "c"}, {"planCacheListFilters": "c"}, {"compact": "c"},
                {"convertToCapped": "c"}, {"dbHash": 1}, {"find": "c"}, {"listCollections": 1}, {"listIndexes": "c"},
                {"collStats": "c"}, {"dbStats": 1}, {"insert": "c", "documents": [{}]},
                {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]},
                {"delete": "c", "deletes": [{"q": {"a": 2}, "limit": 1}]}, {"create": "made"},
                {"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}, {"dropIndexes": "c", "index": "none"},
                {"collMod": "c", "validator": {}}, {"drop": "made"}, {"validate": "c"}, {"dropDatabase": 1})
    of_admin, of_shop = commands[:12], commands[12:]
    monitor, admin = {"top", "lockInfo"}, {"profile", "planCacheClear", "planCacheListFilters", "compact"}
    host = {"fsync", "fsyncUnlock", "logRotate", "shutdown"}
    manage = {"setClusterParameter", "replSetInitiate", "setFeatureCompatibilityVersion"}
    either = {"replSetGetStatus", "replSetGetConfig", "getClusterParameter"}
    figures, lists = {"collStats", "dbStats"}, {"listCollections", "listIndexes"}
    read, make = {"find", "dbHash"} | figures | lists, {"create", "createIndexes", "drop"}
    may = {"nobody": ([], set()), "monitor": (["clusterMonitor"], monitor | either | figures),
           "cluster": (["clusterAdmin"], monitor | either | figures | host | manage | {"dropDatabase"}),
           "hoster": (["hostManager"], host), "manager": (["clusterManager"], manage | either),
           "reader": ([{"role": "read", "db": "shop"}], read),
           "writer": ([{"role": "readWrite", "db": "shop"}],
                      read | make | {"insert", "update", "delete", "dropIndexes", "convertToCapped"}),
           "restorer": (["restore"], make | {"insert", "collMod", "listCollections"}),
           "owner": ([{"role": "dbAdmin", "db": "shop"}],
                     admin | figures | lists | make
                     | {"convertToCapped", "dropIndexes", "collMod", "validate", "dropDatabase"})}
    with Mongo(cwd, env={"FROND_ADMIN": "root:secret"}) as server, server.client() as root:
        root.login("root", "secret")
        root({"insert": "c", "documents": [{}]}, "shop")
        for name, (roles, expected) in may.items():
            root({"createUser": name, "pwd": "pass", "roles": roles})
            with server.client() as c:
                c.login(name, "pass")
                found = set()
                for db, each in (("admin", of_admin), ("shop", of_shop)):
                    for command in each:
                        try:
                            c(command, db)
                        except Failure as failure:
                            if failure.code == 13:
                                continue
                        found.add(next(iter(command)))
                equal((name, found), (name, expected))


if __name__ == "__main__":
    main()
