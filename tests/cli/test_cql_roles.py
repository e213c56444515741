#!/usr/bin/env python3
"""Roles and permissions as statements of CQL: who may what, what follows a person, what other doors see of it."""

import base64

from cql_wire import AUTH_SUCCESS, ERROR, QUERY, RESULT, Connection, CqlError
from cql_wire_server import Door
from harness import contains, equal, main, test

UNAUTHORIZED, INVALID = 0x2100, 0x2200
TRACING = 2  # a flag of frames
REPLICATION = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


class People(Door):
    def __init__(self, cwd):
        super().__init__(cwd, env={"FROND_ADMIN": "root:secret"})

    def login(self, name, password=None, version=4):
        c = Connection(self.port, version)
        c.start()
        equal(c.login(name, password or name), AUTH_SUCCESS)
        return c

    def root(self):
        return self.login("root", "secret")

    def as_root(self, method, path, body=None):
        token = base64.b64encode(b"root:secret").decode()
        return self.request(method, path, body, {"Authorization": f"Basic {token}"})

    def person(self, name, *roles):
        """Somebody of every door, whose password is the name."""
        self.as_root("PUT", "/_users")
        status, answer = self.as_root("PUT", f"/_users/org.couchdb.user:{name}",
                                      {"name": name, "type": "user", "password": name, "roles": list(roles)})
        assert status < 300, answer


def begin(root):
    root.query(f"CREATE KEYSPACE ks {REPLICATION}")
    root.query("CREATE TABLE ks.t (k int PRIMARY KEY)")
    root.query("CREATE TABLE ks.u (k int PRIMARY KEY)")


def make(root, name, *more):
    root.query(f"CREATE ROLE {name} WITH PASSWORD = '{name}' AND LOGIN = true")
    for statement in more:
        root.query(statement)


def refusal(connection, text):
    try:
        connection.query(text)
    except CqlError as error:
        return error.code, error.text
    raise AssertionError(f"{text} has not failed")


STATEMENTS = {
    "read": "SELECT * FROM ks.t",
    "read others": "SELECT * FROM ks.u",
    "write": "INSERT INTO ks.t (k) VALUES (1)",
    "empty": "TRUNCATE ks.t",
    "batch": "BEGIN BATCH INSERT INTO ks.t (k) VALUES (1); INSERT INTO ks.u (k) VALUES (1); APPLY BATCH",
    "keyspace": f"CREATE KEYSPACE IF NOT EXISTS ks {REPLICATION}",
    "table": "CREATE TABLE IF NOT EXISTS ks.t (k int PRIMARY KEY)",
    "type": "CREATE TYPE IF NOT EXISTS ks.y (a int)",
    "alter": "ALTER TABLE ks.t WITH comment = 'x'",
    "drop": "DROP TABLE IF EXISTS ks.gone",
    "grant": "GRANT SELECT ON ks.t TO sink",
    "grant modify": "GRANT MODIFY ON ks.t TO sink",
    "revoke": "REVOKE SELECT ON ks.u FROM sink",
    "grant role": "GRANT crew TO sink",
    "hire": "CREATE ROLE IF NOT EXISTS crew",
    "hire boss": "CREATE ROLE IF NOT EXISTS crew WITH SUPERUSER = true",
    "password": "ALTER ROLE crew WITH PASSWORD = 'new'",
    "promote": "ALTER ROLE crew WITH SUPERUSER = false",
    "fire": "DROP ROLE IF EXISTS nobody",
    "roles": "LIST ROLES",
    "roles of": "LIST ROLES OF boss",
    "permissions": "LIST ALL PERMISSIONS",
    "system_auth": "SELECT * FROM system_auth.roles",
    "system": "SELECT * FROM system_schema.tables",
}

ALWAYS = {"roles", "system"}
EVERYTHING = set(STATEMENTS)
# The one table of who may what: how a role is made, and which statements it may use besides ALWAYS.
RIGHTS = {
    "nothing": ([], set()),
    "reader": (["GRANT SELECT ON ks.t TO reader"], {"read"}),
    "readers": (["GRANT SELECT ON KEYSPACE ks TO readers"], {"read", "read others"}),
    "everywhere": (["GRANT SELECT ON ALL KEYSPACES TO everywhere"], {"read", "read others"}),
    "writer": (["GRANT MODIFY ON TABLE ks.t TO writer"], {"write", "empty"}),
    "maker": (["GRANT CREATE ON KEYSPACE ks TO maker"], {"table", "type"}),
    "founder": (["GRANT CREATE ON ALL KEYSPACES TO founder"], {"table", "type", "keyspace"}),
    "changer": (["GRANT ALTER ON ks.t TO changer"], {"alter"}),
    "dropper": (["GRANT DROP ON KEYSPACE ks TO dropper"], {"drop"}),
    "giver": (["GRANT AUTHORIZE ON KEYSPACE ks TO giver", "GRANT SELECT ON KEYSPACE ks TO giver"],
              {"read", "read others", "grant", "revoke"}),
    "halfgiver": (["GRANT AUTHORIZE ON KEYSPACE ks TO halfgiver"], set()),
    "hirer": (["GRANT CREATE ON ALL ROLES TO hirer"], {"hire"}),
    "keeper": (["GRANT ALL ON ROLE crew TO keeper"], {"password", "grant role"}),
    "manager": (["GRANT ALL ON ALL ROLES TO manager"],
                {"hire", "password", "grant role", "fire", "roles of", "permissions", "system_auth"}),
    "looker": (["GRANT DESCRIBE ON ALL ROLES TO looker"], {"roles of", "permissions", "system_auth"}),
    "member": (["GRANT reader TO member"], {"read"}),
    "grandchild": (["GRANT member TO grandchild", "GRANT writer TO grandchild"], {"read", "write", "empty"}),
    "lord": (["GRANT ALL PERMISSIONS ON KEYSPACE ks TO lord"],
             {"read", "read others", "write", "empty", "batch", "table", "type", "alter", "drop", "grant",
              "grant modify", "revoke"}),
    "boss": (["ALTER ROLE boss WITH SUPERUSER = true"], EVERYTHING),
    "heir": (["GRANT boss TO heir"], EVERYTHING),
}


@test
def every_statement_by_every_role_is_as_the_table_says(cwd):
    with People(cwd) as server, server.root() as root:
        begin(root)
        root.query("CREATE ROLE crew")
        root.query("CREATE ROLE sink")
        for name, (statements, _) in RIGHTS.items():
            make(root, name, *statements)
        wrong = []
        for name, (_, may) in RIGHTS.items():
            with server.login(name) as c:
                for what, text in STATEMENTS.items():
                    allowed = c.code(text) != UNAUTHORIZED
                    if allowed != (what in may | ALWAYS):
                        wrong.append(f"{name} {'may' if allowed else 'may not'} {what}")
        equal(wrong, [])
        for what, text in STATEMENTS.items():
            assert root.code(text) != UNAUTHORIZED, what


@test
def nobody_gives_more_than_they_have(cwd):
    with People(cwd) as server, server.root() as root:
        begin(root)
        make(root, "boss", "ALTER ROLE boss WITH SUPERUSER = true")
        make(root, "manager", "GRANT ALL ON ALL ROLES TO manager")
        with server.login("manager") as c:
            for text in ("GRANT boss TO manager", "ALTER ROLE boss WITH PASSWORD = 'mine'", "DROP ROLE boss",
                         "GRANT SELECT ON ks.t TO manager", "CREATE ROLE more WITH SUPERUSER = true"):
                equal(refusal(c, text)[0], UNAUTHORIZED)
            contains(refusal(c, "DROP ROLE manager")[1], "Cannot DROP primary role for current login")
            for text in ("ALTER ROLE root WITH PASSWORD = 'mine'", "DROP ROLE root", "CREATE ROLE root",
                         "GRANT root TO manager", "GRANT CREATE ON ALL ROLES TO root"):
                contains(refusal(c, text)[1], "is an administrator, whom the settings name")
        with server.login("boss") as c:
            equal(refusal(c, "ALTER ROLE boss WITH SUPERUSER = false")[0], UNAUTHORIZED)
            contains(refusal(c, "GRANT root TO boss")[1], "is an administrator")


@test
def what_cannot_be_is_told_in_cassandras_words(cwd):
    with People(cwd) as server, server.root() as root:
        begin(root)
        make(root, "ann")
        root.query("CREATE ROLE clerks")
        root.query("GRANT clerks TO ann")
        for text, words in {
            "CREATE ROLE ann": "ann already exists",
            "ALTER ROLE nobody WITH LOGIN = true": "nobody doesn't exist",
            "DROP USER nobody": "nobody doesn't exist",
            "GRANT SELECT ON ks.t TO nobody": "Role nobody doesn't exist",
            "GRANT SELECT ON ks.gone TO ann": "Resource <table ks.gone> doesn't exist",
            "GRANT SELECT ON KEYSPACE gone TO ann": "Resource <keyspace gone> doesn't exist",
            "GRANT ALTER ON ROLE gone TO ann": "Resource <role gone> doesn't exist",
            "GRANT CREATE ON ks.t TO ann": "does not support any of the requested permissions",
            "GRANT clerks TO ann": "ann is a member of clerks",
            "GRANT ann TO clerks": "ann is a member of clerks",
            "REVOKE ann FROM clerks": "clerks is not a member of ann",
            "LIST ROLES OF nobody": "nobody doesn't exist",
            "CREATE ROLE b WITH OPTIONS = {'a': 1}": "OPTIONS of a role is not supported",
            "CREATE ROLE b WITH ACCESS TO DATACENTERS {'a'}": "ACCESS TO DATACENTERS is not supported",
            "CREATE ROLE b WITH HASHED PASSWORD = 'x'": "HASHED PASSWORD is not supported",
            "GRANT EXECUTE ON ALL FUNCTIONS TO ann": "Permissions on functions is not supported",
            "CREATE ROLE 'a:b'": "no colon",
        }.items():
            code, got = refusal(root, text)
            equal((text, code), (text, INVALID))
            contains(got, words)
        root.query("CREATE ROLE IF NOT EXISTS ann")
        root.query("DROP ROLE IF EXISTS nobody")


@test
def rights_follow_a_person_in_all_sessions_at_once(cwd):
    with People(cwd) as server, server.root() as root:
        begin(root)
        make(root, "ann")
        root.query("CREATE ROLE clerks")
        with server.login("ann") as one, server.login("ann", version=5) as two:
            def both(text, *codes):
                equal([c.code(text) for c in (one, two)], [*codes])
            both("SELECT * FROM ks.t", UNAUTHORIZED, UNAUTHORIZED)
            root.query("GRANT SELECT ON ks.t TO ann")
            both("SELECT * FROM ks.t", 0, 0)
            root.query("REVOKE SELECT ON ks.t FROM ann")
            both("SELECT * FROM ks.t", UNAUTHORIZED, UNAUTHORIZED)
            root.query("GRANT clerks TO ann")
            root.query("GRANT SELECT ON KEYSPACE ks TO clerks")
            both("SELECT * FROM ks.t", 0, 0)
            root.query("REVOKE ALL ON KEYSPACE ks FROM clerks")
            both("SELECT * FROM ks.t", UNAUTHORIZED, UNAUTHORIZED)
            root.query("GRANT SELECT ON KEYSPACE ks TO clerks")
            both("SELECT * FROM ks.t", 0, 0)
            root.query("DROP ROLE clerks")
            root.query("CREATE ROLE clerks")
            root.query("GRANT SELECT ON KEYSPACE ks TO clerks")
            both("SELECT * FROM ks.t", UNAUTHORIZED, UNAUTHORIZED)
            # Who changes the own password stays; other connections of the person log in anew.
            root.query("GRANT SELECT ON ks.t TO ann")
            one.query("ALTER ROLE ann WITH PASSWORD = 'other'")
            equal([one.code("SELECT * FROM ks.t"), two.code("SELECT * FROM ks.t")], [0, 0xa])
            root.query("DROP ROLE ann")
            equal(one.code("SELECT * FROM ks.t"), 0xa)
        with Connection(server.port) as c:
            c.start()
            equal(c.login("ann", "other"), ERROR)


@test
def revoking_leaves_what_was_not_said(cwd):
    with People(cwd) as server, server.root() as root:
        begin(root)
        make(root, "ann", "GRANT ALL ON ks.t TO ann", "REVOKE DROP ON ks.t FROM ann")
        rows = root.query("LIST ALL PERMISSIONS OF ann")
        equal([(r["role"], r["resource"], r["permission"]) for r in rows],
              [(b"ann", b"<table ks.t>", p) for p in (b"SELECT", b"MODIFY", b"ALTER", b"AUTHORIZE")])
        equal(root.query("LIST MODIFY ON KEYSPACE ks OF ann"), [])
        equal(len(root.query("LIST MODIFY ON ks.t OF ann NORECURSIVE")), 1)
        root.query("DROP TABLE ks.t")
        root.query("REVOKE ALL ON ks.t FROM ann")
        equal(root.query("LIST ALL PERMISSIONS OF ann"), [])


@test
def roles_are_listed_and_are_in_system_auth(cwd):
    with People(cwd) as server, server.root() as root:
        begin(root)
        server.person("max", "staff", "cql:select@ks")
        root.query("CREATE ROLE clerks")
        make(root, "ann", "GRANT clerks TO ann", "GRANT SELECT ON ks.t TO clerks")
        equal([(r["role"], r["super"], r["login"]) for r in root.query("LIST ROLES")],
              [(b"root", b"\1", b"\1"), (b"ann", b"\0", b"\1"), (b"clerks", b"\0", b"\0"), (b"max", b"\0", b"\1")])
        equal([r["name"] for r in root.query("LIST USERS")], [b"root", b"ann", b"max"])
        equal([r["role"] for r in root.query("LIST ROLES OF ann")], [b"ann", b"clerks"])
        equal([(r["role"], r["permission"]) for r in root.query("LIST ALL PERMISSIONS OF ann")],
              [(b"clerks", b"SELECT")])
        equal([r["member"] for r in root.query("SELECT member FROM system_auth.role_members WHERE role = 'clerks'")],
              [b"ann"])
        equal([(r["role"], r["resource"]) for r in root.query("SELECT role, resource FROM system_auth.role_permissions")],
              [(b"clerks", b"data/ks/t"), (b"max", b"data/ks")])
        equal([r["salted_hash"] for r in root.query("SELECT * FROM system_auth.roles WHERE role = 'ann'")], [None])
        equal(root.code("INSERT INTO system_auth.roles (role) VALUES ('x')"), UNAUTHORIZED)
        with server.login("ann") as c:
            equal([r["role"] for r in c.query("LIST ROLES")], [b"ann", b"clerks"])
            equal(len(c.query("LIST ALL PERMISSIONS OF clerks")), 1)
            equal(c.code("LIST ROLES OF max"), UNAUTHORIZED)


@test
def a_role_opens_no_other_door(cwd):
    with People(cwd) as server, server.root() as root:
        begin(root)
        server.as_root("PUT", "/_users")
        make(root, "ann", "ALTER ROLE ann WITH SUPERUSER = true")
        status, _ = server.request("POST", "/_session", {"name": "ann", "password": "ann"})
        equal(status, 401)
        _, document = server.as_root("GET", "/_users/org.couchdb.user:ann")
        equal(document["roles"], ["cql:superuser"])
        assert "derived_key" not in document, document
        # Somebody of every door keeps the password there, and gets another one here.
        server.person("max", "staff")
        with server.login("max") as c:
            equal(c.code("SELECT * FROM ks.t"), UNAUTHORIZED)
        root.query("ALTER ROLE max WITH PASSWORD = 'here'")
        with Connection(server.port) as c:
            c.start()
            equal(c.login("max", "max"), ERROR)
        server.login("max", "here").socket.close()
        equal(server.request("POST", "/_session", {"name": "max", "password": "here"})[0], 401)
        equal(server.request("POST", "/_session", {"name": "max", "password": "max"})[0], 200)
        # Whom other doors know stays, and this door is shut.
        root.query("GRANT SELECT ON ks.t TO max")
        root.query("DROP ROLE max")
        equal(server.request("POST", "/_session", {"name": "max", "password": "max"})[0], 200)
        equal(server.as_root("GET", "/_users/org.couchdb.user:max")[1]["roles"], ["staff", "cql:dropped"])
        equal([r["role"] for r in root.query("LIST ROLES")], [b"root", b"ann"])
        for password in ("max", "here"):
            with Connection(server.port) as c:
                c.start()
                equal(c.login("max", password), ERROR)
        make(root, "max")
        equal(server.login("max").code("SELECT * FROM ks.t"), UNAUTHORIZED)
        equal(server.as_root("GET", "/_users/org.couchdb.user:max")[1]["roles"], ["staff"])
        # A role that only this door has made is gone.
        root.query("DROP ROLE ann")
        equal(server.as_root("GET", "/_users/org.couchdb.user:ann")[0], 404)


@test
def a_role_that_may_not_log_in_does_not(cwd):
    with People(cwd) as server, server.root() as root:
        make(root, "ann", "ALTER ROLE ann WITH LOGIN = false")
        with Connection(server.port) as c:
            c.start()
            equal(c.login("ann", "ann"), ERROR)
        root.query("ALTER ROLE ann WITH LOGIN = true")
        server.login("ann").socket.close()
        contains(server.read_log(), "event=person_changed")
        assert "ann'" not in server.read_log()


@test
def a_trace_is_its_persons_own(cwd):
    with People(cwd) as server, server.root() as root:
        begin(root)
        make(root, "ann", "GRANT SELECT ON ks.t TO ann")
        make(root, "bob")
        ann, bob = server.login("ann"), server.login("bob")
        (_, flags, _, opcode), body = ann.ask(QUERY, ann.query_body("SELECT * FROM ks.t"), flags=TRACING)
        equal((flags & TRACING, opcode), (TRACING, RESULT))

        def seen(connection):
            return [row["session_id"] for row in connection.query("SELECT session_id FROM system_traces.sessions")]

        equal((seen(ann), seen(bob), seen(root)), ([body[:16]], [], [body[:16]]))
        equal(len(ann.query("SELECT activity FROM system_traces.events")), 3)
        equal(len(bob.query("SELECT activity FROM system_traces.events")), 0)
        # Somebody else of that name gets none of it.
        root.query("DROP ROLE ann")
        make(root, "ann", "ALTER ROLE ann WITH PASSWORD = 'other'")
        equal(seen(server.login("ann", "other")), [])
        # Passwords are in no trace, nor where a statement with one cannot be read.
        for text in ("CREATE ROLE max WITH PASSWORD = 'hush' AND LOGIN = true", "ALTER ROLE max WITH PASSWORD = 'hush'",
                     "CREATE ROLE joe WITH PASSWORD = 'hush"):
            root.ask(QUERY, root.query_body(text), flags=TRACING)
        told = [*root.query("SELECT parameters FROM system_traces.sessions"),
                *root.query("SELECT activity FROM system_traces.events")]
        assert len(told) > 4 and "hush" not in str(told), told


main()
