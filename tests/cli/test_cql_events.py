#!/usr/bin/env python3
"""Cassandra's clients are told of changes of the schema, of this process and of others at its store."""

import socket
import time

from cql_wire import AUTH_SUCCESS, READY, REGISTER, Connection, Reader, string
from cql_wire_server import Door
from harness import QUICK, equal, main, test

EVENT = 0xc
REPLICATION = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


def register(door, version=4):
    c = Connection(door.port, version)
    c.start()
    equal(c.ask(REGISTER, b"\0\1" + string("SCHEMA_CHANGE"))[0][3], READY)
    return c


def events(connection, count):
    told = []
    for _ in range(count):
        (_, _, stream, opcode), body = connection.read()
        equal((stream, opcode), (-1, EVENT))
        r = Reader(body)
        equal(r.string(), "SCHEMA_CHANGE")
        change, target, keyspace = r.string(), r.string(), r.string()
        told.append((change, target, keyspace) if target == "KEYSPACE" else (change, target, keyspace, r.string()))
    return told


CHANGES = {
    f"CREATE KEYSPACE ks {REPLICATION}": ("CREATED", "KEYSPACE", "ks"),
    "CREATE TYPE ks.place (street text)": ("CREATED", "TYPE", "ks", "place"),
    "CREATE TABLE ks.t (k int PRIMARY KEY)": ("CREATED", "TABLE", "ks", "t"),
    "ALTER TABLE ks.t ADD v int": ("UPDATED", "TABLE", "ks", "t"),
    "ALTER TABLE ks.t WITH comment = 'x'": ("UPDATED", "TABLE", "ks", "t"),
    "ALTER TABLE ks.t WITH default_time_to_live = 100": ("UPDATED", "TABLE", "ks", "t"),
    "ALTER TYPE ks.place ADD town text": ("UPDATED", "TYPE", "ks", "place"),
    f"ALTER KEYSPACE ks {REPLICATION} AND durable_writes = false": ("UPDATED", "KEYSPACE", "ks"),
    "CREATE INDEX i ON ks.t (v)": ("UPDATED", "TABLE", "ks", "t"),
    "DROP INDEX ks.i": ("UPDATED", "TABLE", "ks", "t"),
    "DROP TABLE ks.t": ("DROPPED", "TABLE", "ks", "t"),
    "DROP TYPE ks.place": ("DROPPED", "TYPE", "ks", "place"),
    "CREATE TABLE ks.u (k int PRIMARY KEY)": ("CREATED", "TABLE", "ks", "u"),
    "DROP KEYSPACE ks": ("DROPPED", "KEYSPACE", "ks"),
}
NOTHING = ("CREATE TABLE IF NOT EXISTS ks.t (k int PRIMARY KEY)", "INSERT INTO ks.t (k) VALUES (1)", "TRUNCATE ks.t")


@test
def clients_of_this_process_are_told(cwd):
    with Door(cwd) as door, register(door) as four, register(door, 5) as five, Connection(door.port) as c:
        c.start()
        for text, event in CHANGES.items():
            c.query(text)
            equal([events(four, 1), events(five, 1)], [[event], [event]])
            if event == ("CREATED", "TABLE", "ks", "t"):
                for other in NOTHING:
                    c.query(other)


def standby(cwd, first):
    (cwd / "second").mkdir()
    (cwd / "second" / "frond.ini").write_text(QUICK + f"[frond]\nfollow_url = {first.url}\nfollow_name = second\n")
    return Door(cwd / "second", "--config", "frond.ini")


@test
def clients_of_another_process_are_told_once(cwd):
    (cwd / "first").mkdir()
    (cwd / "first" / "frond.ini").write_text(QUICK + "[frond]\nkeep_log_bytes = 1000000000\n")
    with Door(cwd / "first", "--config", "frond.ini") as one, Connection(one.port) as c:
        c.start()
        c.query(f"CREATE KEYSPACE before {REPLICATION}")
        c.query("CREATE TABLE before.t (k int PRIMARY KEY)")
        with standby(cwd, one) as two, register(two) as there:
            for text, event in CHANGES.items():
                c.query(text)
                equal(events(there, 1), [event])
                if event == ("CREATED", "TABLE", "ks", "t"):
                    for other in NOTHING:
                        c.query(other)
            # What a keyspace had goes with it; nothing was told twice.
            c.query("DROP KEYSPACE before")
            equal(events(there, 1), [("DROPPED", "KEYSPACE", "before")])
            with register(two) as later:
                c.query(f"CREATE KEYSPACE after {REPLICATION}")
                equal([events(there, 1), events(later, 1)], [[("CREATED", "KEYSPACE", "after")]] * 2)


@test
def nobody_is_told_who_has_not_registered(cwd):
    with Door(cwd) as door, register(door) as told, Connection(door.port) as c:
        c.start()
        c.query(f"CREATE KEYSPACE ks {REPLICATION}")
        equal(events(told, 1), [("CREATED", "KEYSPACE", "ks")])
        c.query("CREATE TABLE ks.t (k int PRIMARY KEY)")
        # The answer of the next statement comes next on the connection that has not registered.
        equal(c.query("SELECT * FROM ks.t"), [])
        equal(c.error(REGISTER, b"\0\1" + string("RAIN"))[0], 0xa)


@test
def who_is_removed_hears_nothing_more(cwd):
    with Door(cwd, env={"FROND_ADMIN": "root:secret"}) as door, Connection(door.port) as root:
        root.start()
        equal(root.login("root", "secret"), AUTH_SUCCESS)
        for name in ("ann", "bob"):
            root.query(f"CREATE ROLE {name} WITH PASSWORD = '{name}' AND LOGIN = true")
        heard = {}
        for name in ("ann", "bob"):
            heard[name] = Connection(door.port)
            heard[name].start()
            equal(heard[name].login(name, name), AUTH_SUCCESS)
            equal(heard[name].ask(REGISTER, b"\0\1" + string("SCHEMA_CHANGE"))[0][3], READY)
        root.query("DROP ROLE ann")
        time.sleep(1.5)  # each process looks for changes of people twice a second
        root.query(f"CREATE KEYSPACE ks {REPLICATION}")
        equal(events(heard["bob"], 1), [("CREATED", "KEYSPACE", "ks")])
        heard["ann"].socket.settimeout(1)
        try:
            heard["ann"].read()
        except socket.timeout:
            pass
        else:
            raise AssertionError("ann has been told")
        for c in heard.values():
            c.socket.close()


main()
