"""People and their roles by MongoDB's commands: documents of _users, as every door has them."""

import base64
import pathlib
import time

from harness import FROND, Skip, contains, equal, main, ok, test, until
from mongo import Client, Failure, Int64
from mongo_server import MongoServer

ADMIN = {"FROND_ADMIN": "root:secret"}


class Mongo(MongoServer):
    def __init__(self, cwd, ini="", **kwargs):
        super().__init__(cwd, ini="[chttpd_auth]\niterations = 10\n" + ini, env=ADMIN, **kwargs)

    def login(self, name="root", password="secret"):
        return Client(self.port).login(name, password)

    def document(self, name):
        token = base64.b64encode(b"root:secret").decode()
        return self.request("GET", f"/_users/org.couchdb.user:{name}",
                            headers={"Authorization": f"Basic {token}"})


def can(c, command, db):
    """False if the person may not."""
    try:
        c(command, db)
    except Failure as failure:
        equal(failure.code, 13)
        return False
    return True


def person(db, name, *roles, **more):
    return {"_id": f"{db}.{name}", "user": name, "db": db, **more,
            "roles": [{"role": role, "db": of} for role, of in roles],
            "mechanisms": ["SCRAM-SHA-256"]}


@test
def people_are_made_changed_told_and_removed(cwd):
    with Mongo(cwd) as server, server.login() as c:
        equal(c({"createUser": "ann", "pwd": "apple", "customData": {"team": [1, "x"]},
                 "roles": ["readWrite", {"role": "read", "db": "other"}]}, "shop")["ok"], 1.0)
        ann = person("shop", "ann", ("readWrite", "shop"), ("read", "other"),
                     customData={"team": [1, "x"]})
        equal(c({"usersInfo": "ann"}, "shop")["users"], [ann])
        equal(c({"usersInfo": {"user": "ann", "db": "shop"}})["users"], [ann])
        equal(c({"usersInfo": ["ann", "bob"]}, "shop")["users"], [ann])
        equal(c({"usersInfo": "ann"})["users"], [])
        with server.login("ann", "apple") as own:
            own({"insert": "c", "documents": [{"_id": 1}]}, "shop")
            equal(own.fails({"insert": "c", "documents": [{"_id": 1}]}, "other")["code"], 13)
            equal(own({"usersInfo": "ann", "showCustomData": False}, "shop")["users"][0]["db"], "shop")
            equal(own.fails({"usersInfo": 1}, "shop")["code"], 13)
        c({"grantRolesToUser": "ann", "roles": ["dbAdmin", "readWrite"]}, "shop")
        c({"revokeRolesFromUser": "ann", "roles": [{"role": "read", "db": "other"}]}, "shop")
        equal(c({"usersInfo": "ann"}, "shop")["users"][0]["roles"],
              [{"role": "readWrite", "db": "shop"}, {"role": "dbAdmin", "db": "shop"}])
        c({"updateUser": "ann", "pwd": "pear", "roles": [], "customData": {}}, "shop")
        equal(c({"usersInfo": "ann"}, "shop")["users"], [person("shop", "ann", customData={})])
        server.login("ann", "pear").close()
        c({"dropUser": "ann"}, "shop")
        equal(c({"usersInfo": 1}, "shop")["users"], [])
        c({"createUser": "ann", "pwd": "plum", "roles": []})
        equal(c({"usersInfo": 1})["users"], [person("admin", "ann")])
        contains(server.read_log(), 'event=person_changed person="ann" user="root" from=127.0.0.1')
        assert "plum" not in server.read_log()


@test
def uses_of_indexes_are_told_to_those_who_administer_or_monitor(cwd):
    with Mongo(cwd) as server, server.login() as c:
        c({"insert": "c", "documents": [{"_id": 1}]}, "shop")
        for name, roles, code in (("ann", ["readWrite"], 13), ("bob", ["read", "dbAdmin"], None),
                                  ("eve", ["read", {"role": "clusterMonitor", "db": "admin"}], None),
                                  ("joe", ["dbAdmin"], 13)):
            c({"createUser": name, "pwd": "x", "roles": roles}, "shop")
            command = {"aggregate": "c", "pipeline": [{"$indexStats": {}}], "cursor": {}}
            with server.login(name, "x") as own:
                if code:
                    equal((name, own.fails(command, "shop")["code"]), (name, code))
                else:
                    equal((name, len(own(command, "shop")["cursor"]["firstBatch"])), (name, 1))


@test
def people_are_those_of_every_door(cwd):
    with Mongo(cwd) as server, server.login() as c:
        c({"createUser": "ann", "pwd": "apple", "roles": ["root"]})
        equal(server.document("ann")[1]["roles"], ["mongo:root@admin"])
        status, answer = server.request("POST", "/_session", {"name": "ann", "password": "apple"})
        equal((status, answer["ok"]), (200, True))
        document = server.document("ann")[1]
        token = base64.b64encode(b"root:secret").decode()
        document.update(roles=["staff", "mongo:root", "mongo:read@shop"], hobby="moss")
        equal(server.request("PUT", "/_users/org.couchdb.user:ann", document,
                             {"Authorization": f"Basic {token}"})[0], 201)
        # What other doors have given stays, a role without a database is one on admin.
        c({"revokeRolesFromUser": "ann", "roles": ["root"]})
        equal(server.document("ann")[1]["roles"], ["staff", "mongo:read@shop"])
        c({"updateUser": "ann", "roles": ["read"]})
        document = server.document("ann")[1]
        equal((document["roles"], document["hobby"]), (["staff", "mongo:read@admin"], "moss"))
        server.login("ann", "apple").close()
        # People that another door has made are those of admin, and are not dropped with it.
        server.request("PUT", "/_users/org.couchdb.user:bob",
                       {"name": "bob", "type": "user", "password": "b", "roles": []},
                       {"Authorization": f"Basic {token}"})
        equal([user["_id"] for user in c({"usersInfo": 1})["users"]], ["admin.ann", "admin.bob"])
        c({"createUser": "eve", "pwd": "e", "roles": []}, "shop")
        equal([user["_id"] for user in c({"usersInfo": {"forAllDBs": True}})["users"]],
              ["admin.ann", "admin.bob", "shop.eve"])
        equal(c({"dropAllUsersFromDatabase": 1})["n"], 1)
        equal([user["_id"] for user in c({"usersInfo": {"forAllDBs": True}})["users"]],
              ["admin.bob", "shop.eve"])
        # Whoever is removed with the others removes all of them.
        for name in ("ada", "boss", "zoe"):
            c({"createUser": name, "pwd": "b", "roles": ["userAdmin"]}, "yard")
        with server.login("boss", "b") as boss:
            equal(boss({"dropAllUsersFromDatabase": 1}, "yard")["n"], 3)
        equal([user["_id"] for user in c({"usersInfo": {"forAllDBs": True}})["users"]],
              ["admin.bob", "shop.eve"])
    contains(ok("user", "list", cwd=cwd).stdout, '"eve"')


@test
def nobody_gives_more_than_the_people_of_a_database_that_are_theirs(cwd):
    with Mongo(cwd) as server, server.login() as c:
        c({"createUser": "boss", "pwd": "b", "roles": ["userAdmin"]}, "shop")
        c({"createUser": "ann", "pwd": "a", "roles": ["root"]})
        with server.login("boss", "b") as boss:
            boss({"createUser": "eve", "pwd": "e", "roles": ["readWrite"]}, "shop")
            for command, db in (
                    ({"createUser": "x", "pwd": "e", "roles": []}, "other"),
                    ({"createUser": "x", "pwd": "e", "roles": [{"role": "read", "db": "other"}]}, "shop"),
                    ({"createUser": "x", "pwd": "e", "roles": [{"role": "root", "db": "admin"}]}, "shop"),
                    ({"grantRolesToUser": "boss", "roles": [{"role": "root", "db": "admin"}]}, "shop"),
                    ({"updateUser": "ann", "pwd": "mine"}, "admin"),
                    ({"dropUser": "ann"}, "admin"), ({"usersInfo": 1}, "admin"),
                    ({"usersInfo": {"forAllDBs": True}}, "shop"),
                    ({"usersInfo": {"user": "ann", "db": "admin"}}, "shop")):
                equal(boss.fails(command, db)["code"], 13)
            equal(boss.fails({"updateUser": "ann", "pwd": "mine"}, "shop")["code"], 11)
            equal(boss.fails({"createUser": "ann", "pwd": "mine", "roles": []}, "shop")["code"], 51003)
        server.login("ann", "a").close()
        equal(server.document("x")[0], 404)


@test
def what_makes_no_sense_has_the_codes_of_mongodb(cwd):
    with Mongo(cwd) as server, server.login() as c:
        c({"createUser": "ann", "pwd": "a", "roles": []}, "shop")
        for command, code in (
                ({"createUser": "ann", "pwd": "a", "roles": []}, 51003),
                ({"createUser": "", "pwd": "a", "roles": []}, 2),
                ({"createUser": 1, "pwd": "a", "roles": []}, 14),
                ({"createUser": "b", "roles": []}, 2),
                ({"createUser": "b", "pwd": "", "roles": []}, 50687),
                ({"createUser": "b", "pwd": "a"}, 40414),
                ({"createUser": "b", "pwd": "a", "roles": ["none"]}, 31),
                ({"createUser": "b", "pwd": "a", "roles": ["root"]}, 31),
                ({"createUser": "b", "pwd": "a", "roles": [1]}, 2),
                ({"createUser": "b", "pwd": "a", "roles": [], "mechanisms": ["SCRAM-SHA-1"]}, 2),
                ({"createUser": "b", "pwd": "a", "roles": [], "mechanisms": ["x"]}, 2),
                ({"createUser": "b", "pwd": "a", "roles": [], "digestPassword": False}, 2),
                ({"createUser": "b", "pwd": "a", "roles": [], "nonsense": 1}, 40415),
                ({"createUser": "_b", "pwd": "a", "roles": []}, 2),
                ({"updateUser": "ann"}, 2), ({"updateUser": "none", "pwd": "a"}, 11),
                ({"dropUser": "none"}, 11), ({"grantRolesToUser": "ann"}, 40414),
                ({"usersInfo": "ann", "showCredentials": True}, 238),
                ({"createRole": "r", "privileges": [], "roles": []}, 115), ({"dropRole": "r"}, 115)):
            equal((command, c.fails(command, "shop")["code"]), (command, code))


@test
def built_in_roles_are_told(cwd):
    with Mongo(cwd) as server, server.login() as c:
        role, = c({"rolesInfo": "readWrite"}, "shop")["roles"]
        equal((role["role"], role["db"], role["isBuiltin"]), ("readWrite", "shop", True))
        equal(c({"rolesInfo": "root"}, "shop")["roles"], [])
        equal(c({"rolesInfo": 1}, "shop")["roles"], [])
        names = {role["role"] for role in c({"rolesInfo": 1, "showBuiltinRoles": True})["roles"]}
        assert {"root", "read", "clusterMonitor"} <= names
        equal(len(c({"rolesInfo": ["read", {"role": "root", "db": "admin"}]}, "shop")["roles"]), 2)
        equal(c({"dropAllRolesFromDatabase": 1}, "shop")["n"], 0)
        role, = c({"rolesInfo": "read", "showPrivileges": True}, "shop")["roles"]
        (privilege,) = role["privileges"]
        equal(privilege["resource"], {"db": "shop", "collection": ""})
        contains(privilege["actions"], "find")
        assert "insert" not in privilege["actions"]
        equal(role["inheritedPrivileges"], role["privileges"])
        equal(c.fails({"rolesInfo": "read", "showPrivileges": "asUserFragment"}, "shop")["code"], 238)
        c({"createUser": "bob", "pwd": "pass", "roles": ["readWrite", {"role": "clusterMonitor", "db": "admin"}]}, "shop")
        bob, = c({"usersInfo": "bob", "showPrivileges": True}, "shop")["users"]
        equal(bob["inheritedRoles"], bob["roles"])
        equal([one["resource"] for one in bob["inheritedPrivileges"]],
              [{"db": "", "collection": ""}, {"cluster": True}, {"db": "shop", "collection": ""}])
        contains(bob["inheritedPrivileges"][0]["actions"], "collStats")
        contains(bob["inheritedPrivileges"][1]["actions"], "serverStatus")
        contains(bob["inheritedPrivileges"][2]["actions"], "insert")
        equal(c.fails({"usersInfo": 1, "showPrivileges": True}, "shop")["code"], 72)


@test
def a_stream_that_waits_ends_with_the_right(cwd):
    with Mongo(cwd) as server, server.login() as c:
        c({"insert": "c", "documents": [{"_id": 0}]}, "shop")
        for change, wanted in (({"updateUser": "ann", "roles": []}, "not authorized on shop"),
                               ({"dropUser": "ann"}, "not authorized on shop")):
            if not c({"usersInfo": "ann"})["users"]:
                c({"createUser": "ann", "pwd": "x", "roles": []})
            c({"updateUser": "ann", "roles": [{"role": "read", "db": "shop"}]})
            with server.login("ann", "x") as own:
                cursor = own({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}},
                             "shop")["cursor"]["id"]
                own.send({"getMore": Int64(cursor), "collection": "c", "maxTimeMS": 60000, "$db": "shop"})
                time.sleep(0.3)
                c(change)
                time.sleep(2)  # nothing happens to the collection before the right is gone
                c({"insert": "c", "documents": [{"x": 1}]}, "shop")
                answer = own.read()[2]
                equal((answer["ok"], answer.get("code")), (0.0, 13))
                contains(answer["errmsg"], wanted)


@test
def a_command_that_waits_for_a_function_ends_with_the_right(cwd):
    if not (pathlib.Path(FROND).parent / "frond-js").exists():
        raise Skip("there is no frond-js")
    with Mongo(cwd, ini="[couchdb]\nos_process_timeout = 3600000\n") as server, server.login() as c:
        c({"insert": "c", "documents": [{"_id": 0}]}, "shop")
        for change in ({"updateUser": "ann", "roles": []}, {"dropUser": "ann"}):
            if not c({"usersInfo": "ann"})["users"]:
                c({"createUser": "ann", "pwd": "x", "roles": []})
            c({"updateUser": "ann", "roles": [{"role": "read", "db": "shop"}]})
            with server.login("ann", "x") as own:
                own.send({"find": "c", "filter": {"$where": "for (;;) ;"}, "$db": "shop"})
                until(lambda: [op for op in c({"currentOp": 1})["inprog"] if op.get("ns") == "shop.c"])
                c(change)
                answer = own.read()[2]
                equal((answer["ok"], answer.get("code")), (0.0, 13))


@test
def a_cursor_reads_no_more_than_its_person_may_now(cwd):
    """Of other databases than the one that getMore names, too."""
    with Mongo(cwd) as server, server.login() as c:
        for db in ("shop", "other"):
            c({"insert": "c", "documents": [{"_id": i} for i in range(300)]}, db)
        c({"createUser": "ann", "pwd": "x", "roles": ["readAnyDatabase"]})
        with server.login("ann", "x") as own:
            stream = own({"aggregate": 1, "pipeline": [{"$changeStream": {"allChangesForCluster": True}}],
                          "cursor": {}})["cursor"]
            join = {"$lookup": {"from": {"db": "other", "coll": "c"}, "localField": "_id",
                                "foreignField": "_id", "as": "joined"}}
            joined = own({"aggregate": "c", "pipeline": [join], "cursor": {"batchSize": 2}},
                         "shop")["cursor"]
            equal(len(joined["firstBatch"][1]["joined"]), 1)
            c({"updateUser": "ann", "roles": ["read", {"role": "read", "db": "shop"}]})
            until(lambda: not can(own, {"find": "c"}, "other"))
            c({"insert": "c", "documents": [{"_id": "new"}]}, "other")
            name = stream["ns"].split(".", 1)[1]
            equal(own.fails({"getMore": Int64(stream["id"]), "collection": name})["code"], 13)
            equal(own.fails({"getMore": Int64(joined["id"]), "collection": "c", "batchSize": 2},
                            "shop")["code"], 13)
            assert can(own, {"find": "c"}, "shop")


@test
def logins_and_refusals_are_in_the_log(cwd):
    with Mongo(cwd) as server, server.login() as c, server.client() as stranger:
        c({"createUser": "ann", "pwd": "apple", "roles": ["read"]}, "shop")
        equal(stranger.fails({"find": "c"}, "shop")["code"], 13)
        try:
            server.login("ann", "pear")
            raise AssertionError("a wrong password was right")
        except Failure as failure:
            equal(failure.answer["code"], 18)
        with server.login("ann", "apple") as own:
            equal(own.fails({"insert": "c", "documents": [{"_id": 1}]}, "shop")["code"], 13)
        log = server.read_log()
        contains(log, 'level=info event=login name="root" method=scram left_out=0 user="root" from=127.0.0.1:')
        contains(log, 'event=refused method=find path="" status=Unauthorized left_out=0 user=""')
        contains(log, 'level=warn event=login_refused name="ann" method=scram reason=wrong')
        contains(log, 'event=refused method=insert path="shop.c" status=Unauthorized left_out=0 user="ann"')
        assert "pear" not in log, log


main()
