#!/usr/bin/env python3
"""What Cassandra's door has of YCQL's language and of its own: transactions of several statements."""

from cql_server import KEYSPACE, BatchStatement, Cluster, Door, InvalidRequest, Session, SyntaxException
from harness import contains, equal, main, test


def accounts(s):
    s(KEYSPACE)
    s("CREATE TABLE ks.accounts (name text PRIMARY KEY, amount int) WITH transactions = {'enabled': true}")
    s("CREATE TABLE ks.log (name text, at int, what text, PRIMARY KEY (name, at))")
    s("INSERT INTO ks.accounts (name, amount) VALUES ('ann', 10)")
    s("INSERT INTO ks.accounts (name, amount) VALUES ('bob', 0)")


def amounts(s):
    return dict(s("SELECT name, amount FROM ks.accounts"))


@test
def a_transaction_writes_several_tables_or_none(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        equal(s("BEGIN TRANSACTION UPDATE ks.accounts SET amount = 7 WHERE name = 'ann'; "
                "UPDATE ks.accounts SET amount = 3 WHERE name = 'bob'; "
                "INSERT INTO ks.log (name, at, what) VALUES ('ann', 1, 'gave 3'); END TRANSACTION;"), [])
        equal(amounts(s), {"ann": 7, "bob": 3})
        s("START TRANSACTION; DELETE FROM ks.accounts WHERE name = 'bob'; DELETE FROM ks.log WHERE name = 'ann'; COMMIT;")
        equal((amounts(s), s("SELECT * FROM ks.log")), ({"ann": 7}, []))
        # The second statement is about no table: the first one writes nothing either.
        s.error("BEGIN TRANSACTION INSERT INTO ks.log (name, at) VALUES ('ann', 2); "
                "INSERT INTO ks.none (a) VALUES (1); END TRANSACTION")
        equal(s("SELECT * FROM ks.log"), [])
        s("BEGIN TRANSACTION END TRANSACTION")


@test
def conditions_of_a_transaction_are_about_any_rows(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        move = ("BEGIN TRANSACTION UPDATE ks.accounts SET amount = %s WHERE name = 'ann' IF amount = %s; "
                "UPDATE ks.accounts SET amount = %s WHERE name = 'bob' IF amount = %s; "
                "INSERT INTO ks.log (name, at, what) VALUES ('ann', 1, 'gave') IF NOT EXISTS; END TRANSACTION")
        equal(s(move, (6, 10, 4, 1)), [(False,)])
        equal((amounts(s), s("SELECT * FROM ks.log")), ({"ann": 10, "bob": 0}, []))
        equal(s(move, (6, 10, 4, 0)), [(True,)])
        equal((amounts(s), len(s("SELECT * FROM ks.log"))), ({"ann": 6, "bob": 4}, 1))
        equal(s(move, (2, 6, 8, 4)), [(False,)])  # the row of the log is there now
        equal(amounts(s), {"ann": 6, "bob": 4})


@test
def a_transaction_comes_prepared_and_as_a_batch(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        both = s.session.prepare("BEGIN TRANSACTION UPDATE ks.accounts SET amount = ? WHERE name = ?; "
                                 "UPDATE ks.accounts SET amount = ? WHERE name = ?; END TRANSACTION")
        s.session.execute(both, (1, "ann", 9, "bob"))
        equal(amounts(s), {"ann": 1, "bob": 9})
        start, commit = s.session.prepare("START TRANSACTION;"), s.session.prepare("COMMIT;")
        one = s.session.prepare("UPDATE ks.accounts SET amount = ? WHERE name = ? IF EXISTS")
        for begins, ends in ((start, commit), ("BEGIN TRANSACTION", "END TRANSACTION")):
            batch = BatchStatement()
            batch.add(begins)
            batch.add(one, (2, "ann"))
            batch.add(one, (8, "bob"))
            batch.add("INSERT INTO ks.log (name, at) VALUES ('ann', 1)")
            batch.add(ends)
            equal([tuple(row) for row in s.session.execute(batch)], [(True,)])
        equal((amounts(s), s("SELECT name FROM ks.log")), ({"ann": 2, "bob": 8}, [("ann",)]))
        batch = BatchStatement()
        batch.add(start)
        batch.add("DELETE FROM ks.accounts WHERE name = 'ann'")
        try:
            s.session.execute(batch)
            raise AssertionError("a batch that does not end its transaction was run")
        except InvalidRequest as error:
            contains(str(error), "has to end it")
        equal(amounts(s), {"ann": 2, "bob": 8})


@test
def a_transaction_is_refused_what_it_is_in_ycql(cwd):
    with Door(cwd) as door, Session(door) as s:
        accounts(s)
        s("CREATE TABLE ks.plain (k int PRIMARY KEY) WITH transactions = {'enabled': false}")
        insert = "BEGIN TRANSACTION INSERT INTO ks.plain (k) VALUES (1); END TRANSACTION"
        contains(s.error(insert), "Transactions are not enabled in the table ks.plain")
        contains(s("DESCRIBE TABLE ks.plain")[0][3], "AND transactions = {'enabled': 'false'}")
        equal("transactions" in s("DESCRIBE TABLE ks.log")[0][3], False)
        s("ALTER TABLE ks.plain WITH transactions = {'enabled': true}")
        s(insert)
        equal(s("SELECT transactions FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 'plain'"),
              [({"enabled": "true"},)])
        contains(s.error("BEGIN TRANSACTION SELECT * FROM ks.plain; END TRANSACTION"), "only INSERT, UPDATE and DELETE")
        for text in ("START TRANSACTION", "BEGIN TRANSACTION", "COMMIT", "END TRANSACTION"):
            contains(s.error(text), "a transaction is one request")
        for text in ("BEGIN TRANSACTION INSERT INTO ks.plain (k) VALUES (1); COMMIT",
                     "START TRANSACTION; INSERT INTO ks.plain (k) VALUES (1); END TRANSACTION",
                     "BEGIN TRANSACTION INSERT INTO ks.plain (k) VALUES (1)"):
            s.error(text, SyntaxException)
        contains(s.error("INSERT INTO ks.plain (k) VALUES (2) RETURNS STATUS AS ROW"), "RETURNS STATUS AS ROW is not supported")


main("needs python3-cassandra" if Cluster is None else None)
