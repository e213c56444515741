#!/usr/bin/env python3
"""The two listings of YCQL in the text on rows: its statements through Cassandra's door, and what `frond inspect`
then draws of the table, compared with what the text prints."""

import random
import re

from cql_server import KEYSPACE, Cluster, Door, Session
from harness import contains, equal, main, ok, seed, test

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


class Listing:
    """What inspect draws of a table, its times as T1, T2, …, which each call names, and hashes as hash1, …"""

    def __init__(self, cwd, session, table, *at):
        self.cwd, self.session, self.table, self.at, self.times = cwd, session, table, at, {}

    def cells(self):
        drawn = ok("inspect", f"table:{self.table}", *self.at, cwd=self.cwd).stdout
        return [line.strip() for line in drawn.splitlines() if " -> " in line]

    def __call__(self, name, statement):
        known = {stamp for cell in self.cells() for stamp in STAMP.findall(cell)}
        self.session(statement)
        new = {stamp for cell in self.cells() for stamp in STAMP.findall(cell)} - known
        assert len(new) <= 1, new
        self.times.update((stamp, name) for stamp in new)

    def is_as(self, text):
        """In any order: the text has columns by their names, the store by their numbers."""
        hashes, got = {}, []
        for cell in self.cells():
            cell = STAMP.sub(lambda found: self.times[found.group()], cell)
            digits = re.match(r"(?:<s>)?\(0x([0-9a-f]{4})", cell).group(1)
            got.append(cell.replace(f"(0x{digits}", "(" + hashes.setdefault(digits, f"hash{len(hashes) + 1}")))
        equal(sorted(got), sorted(line.strip() for line in text.strip().splitlines()))


FIRST = """
    (hash1, 'user1', 10), liveness_column_id, T1 -> [NULL]
    (hash1, 'user1', 10), msg_column_id, T1 -> 'msg1'
"""
PROPS = """
    (hash1, 'user1', 10), msg_props_column_id, 'from', T1 -> 'a@b.com'
    (hash1, 'user1', 10), msg_props_column_id, 'read_status', T2 -> 'true'
    (hash1, 'user1', 10), msg_props_column_id, 'subject', T1 -> 'hello'
"""
SECOND = """
    (hash1, 'user1', 20), liveness_column_id, T3 -> [NULL]
    (hash1, 'user1', 20), msg_column_id, T3 -> 'msg2'
    (hash1, 'user1', 20), msg_props_column_id, 'from', T3 -> 'c@d.com'
    (hash1, 'user1', 20), msg_props_column_id, 'subject', T3 -> 'bar'
"""


def struck(text):
    return "\n".join(f"<s>{line.strip()}</s>" for line in text.strip().splitlines()) + "\n"


def joined(*texts):
    return "\n".join(text.strip() for text in texts)


def messages(session, options):
    session(KEYSPACE)
    session("CREATE TABLE ks.msgs (user_id text, msg_id int, msg text, msg_props map<text, text>, "
            f"PRIMARY KEY ((user_id), msg_id)) {options}")


STATEMENTS = {
    "T1": "INSERT INTO ks.msgs (user_id, msg_id, msg, msg_props) "
          "VALUES ('user1', 10, 'msg1', {'from' : 'a@b.com', 'subject' : 'hello'})",
    "T2": "UPDATE ks.msgs SET msg_props = msg_props + {'read_status' : 'true'} WHERE user_id = 'user1' AND msg_id = 10",
    "T3": "INSERT INTO ks.msgs (user_id, msg_id, msg, msg_props) "
          "VALUES ('user1', 20, 'msg2', {'from' : 'c@d.com', 'subject' : 'bar'})",
    "T4": "DELETE msg_props FROM ks.msgs WHERE user_id = 'user1' AND msg_id = 10",
    "T5": "DELETE FROM ks.msgs WHERE user_id = 'user1' AND msg_id = 10",
}


@test
def a_collection_is_drawn_as_the_text_draws_it(cwd):
    with Door(cwd) as door, Session(door) as session:
        messages(session, "WITH packed = false")
        listing = Listing(cwd, session, "ks.msgs")
        listing("T1", STATEMENTS["T1"])
        listing.is_as(joined(FIRST, *[line for line in PROPS.strip().splitlines() if "T2" not in line]))
        listing("T2", STATEMENTS["T2"])
        listing.is_as(joined(FIRST, PROPS))
        listing("T3", STATEMENTS["T3"])
        listing.is_as(joined(FIRST, PROPS, SECOND))
        # Without a history, what is deleted goes at once, as in the text after a compaction.
        listing("T4", STATEMENTS["T4"])
        listing.is_as(joined(FIRST, SECOND))
        listing("T5", STATEMENTS["T5"])
        listing.is_as(SECOND)


@test
def what_was_deleted_is_struck_out_as_in_the_text(cwd):
    with Door(cwd) as door, Session(door) as session:
        messages(session, "WITH packed = false AND history_seconds = 3600")
        listing = Listing(cwd, session, "ks.msgs", "--at", "now")
        for name in ("T1", "T2", "T3", "T4"):
            listing(name, STATEMENTS[name])
        props = joined("(hash1, 'user1', 10), msg_props_column_id, T4 -> [DELETE]", struck(PROPS))
        listing.is_as(joined(FIRST, props, SECOND))
        listing("T5", STATEMENTS["T5"])
        listing.is_as(joined("(hash1, 'user1', 10), T5 -> [DELETE]", struck(FIRST), props, SECOND))


@test
def times_to_live_of_table_row_and_column_are_drawn_as_in_the_text(cwd):
    with Door(cwd) as door, Session(door) as session:
        session(KEYSPACE)
        session("CREATE TABLE ks.page_views (page_id text, views int, category text, PRIMARY KEY ((page_id))) "
                "WITH packed = false")
        listing = Listing(cwd, session, "ks.page_views")
        listing("T1", "INSERT INTO ks.page_views (page_id, views) VALUES ('abc.com', 10) USING TTL 86400")
        row = """
            (hash1, 'abc.com'), liveness_column_id, T1 -> (TTL = 86400) [NULL]
            (hash1, 'abc.com'), views_column_id, T1 -> (TTL = 86400) 10
        """
        listing.is_as(row)
        listing("T2", "UPDATE ks.page_views USING TTL 3600 SET category = 'news' WHERE page_id = 'abc.com'")
        column = "(hash1, 'abc.com'), category_column_id, T2 -> (TTL = 3600) 'news'"
        listing.is_as(joined(row, column))
        # The table's lies with no value: it counts where a value has none.
        session("ALTER TABLE ks.page_views WITH default_time_to_live = 7200")
        listing("T3", "INSERT INTO ks.page_views (page_id, views) VALUES ('abc.com', 11)")
        listing.is_as(joined("""
            (hash1, 'abc.com'), liveness_column_id, T3 -> [NULL]
            (hash1, 'abc.com'), views_column_id, T3 -> 11
        """, column))
        (views, category), = session("SELECT TTL(views), TTL(category) FROM ks.page_views")
        assert 3600 < views <= 7200 and 0 < category <= 3600, (views, category)


@test
def durations_are_drawn_with_all_of_their_parts(cwd):
    with Door(cwd) as door, Session(door) as session:
        session(KEYSPACE)
        session("CREATE TABLE ks.t (k int PRIMARY KEY, d duration) WITH packed = false")
        for k, text in enumerate(("1y2mo3d4ns", "-5d6ns", "7s", "0s")):
            session(f"INSERT INTO ks.t (k, d) VALUES ({k}, {text})")
        drawn = ok("inspect", "table:ks.t", cwd=cwd).stdout
        equal(sorted(re.findall(r", (\d)\), d_column_id, .* -> (.*)", drawn)),
              [("0", "14mo3d4ns"), ("1", "-5d6ns"), ("2", "7000000000ns"), ("3", "0ns")])


@test
def packed_rows_are_one_pair(cwd):
    table = "CREATE TABLE ks.t (k int PRIMARY KEY, a int, b text, m map<text, int>)"
    row = "a_column_id: 1, b_column_id: 'x'"
    with Door(cwd) as door, Session(door) as session:
        session(KEYSPACE)
        session(f"{table} WITH history_seconds = 3600")
        session("INSERT INTO ks.t (k, a, b, m) VALUES (1, 1, 'x', {'y': 2})")
        session("INSERT INTO ks.t (k, a, b) VALUES (2, 1, 'x') USING TTL 1000")
        session("UPDATE ks.t SET a = 3 WHERE k = 2")
        session("INSERT INTO ks.t (k, a, b) VALUES (3, 1, 'x')")
        session("DELETE a FROM ks.t WHERE k = 3")
        read = "SELECT k, a, b, m FROM ks.t"
        rows = [(1, 1, "x", {"y": 2}), (2, 3, "x", None), (3, None, "x", None)]
        equal(sorted(session(read), key=lambda row: row[0]), rows)
        drawn = [line for line in ok("inspect", "table:ks.t", cwd=cwd).stdout.splitlines() if "liveness" in line]
        equal(sorted(re.sub(r".*, (\d)\), liveness_column_id, .* -> ", r"\1 ", line) for line in drawn),
              [f"1 {{{row}}}", f"2 (TTL = 1000) {{{row}}}", "3 {b_column_id: 'x'}"])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")
    ok("load", "table:ks.u", "--quiet", cwd=cwd, stdin=ok("dump", "table:ks.t", cwd=cwd).stdout)
    with Door(cwd) as door, Session(door) as session:
        equal(sorted(session(read.replace("ks.t", "ks.u")), key=lambda row: row[0]), rows)
        session("INSERT INTO ks.u (k, a) VALUES (4, 4)")
        contains(ok("inspect", "table:ks.u", cwd=cwd).stdout, "{a_column_id: 4}")
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def tables_pack_rows_unless_they_say_otherwise(cwd):
    keys = "(k int PRIMARY KEY, v text)"
    with Door(cwd) as door, Session(door) as session:
        session(KEYSPACE)
        for name, text, told in (
                ("said", f"{keys} WITH packed = true", None), ("silent", keys, None),
                ("never", f"{keys} WITH packed = false", "packed = false"),
                ("stamped", f"{keys} WITH client_timestamps = true", None),
                ("both", f"{keys} WITH client_timestamps = true AND packed = true", "packed = true"),
                ("compact", f"{keys} WITH COMPACT STORAGE", None),
                ("counted", "(k int PRIMARY KEY, v counter)", None)):
            session(f"CREATE TABLE ks.{name} {text}")
            described = session(f"DESCRIBE TABLE ks.{name}")[0][3]
            equal((name, re.findall("packed = [a-z]*", described)), (name, [told] if told else []))
            if name != "counted":
                session(f"INSERT INTO ks.{name} (k, v) VALUES (1, 'x')")
            packs = name in ("said", "silent")
            drawn = ok("inspect", f"table:ks.{name}", cwd=cwd).stdout
            equal((name, "{v_column_id: 'x'}" in drawn), (name, packs))
        # Who makes the table anew by what is told makes the same one.
        session("ALTER TABLE ks.silent WITH packed = false")
        contains(session("DESCRIBE TABLE ks.silent")[0][3], "packed = false")
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


@test
def inserts_of_a_batch_see_each_other(cwd):
    """INSERTs side by side ask for their rows before any of them is written, but for those of one row."""
    r = random.Random(seed(0))
    with Door(cwd) as door, Session(door) as session:
        session(KEYSPACE)
        for name in ("ks.packed", "ks.plain"):
            session(f"CREATE TABLE {name} (k int, c int, a int, b text, d int, PRIMARY KEY (k, c)) "
                    f"WITH packed = {'true' if name == 'ks.packed' else 'false'}")
            session(f"CREATE INDEX ON {name} (a)")
            session(f"CREATE INDEX ON {name} (b)")
        for turn in range(60):
            texts = []
            for _ in range(r.randrange(1, 40)):
                key, kind = (r.randrange(3), r.randrange(4)), r.randrange(8)
                where = "k = %d AND c = %d" % key
                # Rows are whole at first: nothing but nulls is written by itself.
                whole = turn < 20
                values = {name: r.choice(("null", str(r.randrange(4)))) for name in "ad" if whole or r.randrange(3)}
                if whole or r.randrange(3):
                    values["b"] = f"'b{r.randrange(4)}'"
                if kind == 0:
                    texts.append(f"DELETE FROM {{}} WHERE {where}")
                elif kind == 1 and values:
                    values = dict.fromkeys(values, "null") if whole else values
                    texts.append("UPDATE {} SET " + ", ".join(f"{n} = {v}" for n, v in values.items()) + f" WHERE {where}")
                else:
                    texts.append(f"INSERT INTO {{}} ({', '.join(('k', 'c', *values))}) "
                                 f"VALUES ({', '.join((*map(str, key), *values.values()))})")
            for name in ("ks.packed", "ks.plain"):
                session("BEGIN BATCH " + "; ".join(texts).format(*[name] * len(texts)) + "; APPLY BATCH")
            for where in ("", " WHERE a = 1", " WHERE a = 3", " WHERE b = 'b0'", " WHERE b = 'b2'"):
                equal(*[sorted(map(repr, session(f"SELECT k, c, a, b, d FROM {name}{where}")))
                        for name in ("ks.packed", "ks.plain")])
    contains(ok("verify", cwd=cwd).stdout, " 0 findings")


main("needs python3-cassandra" if Cluster is None else None)
