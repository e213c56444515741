#!/usr/bin/env python3
"""Rows and partitions that a SELECT names one by one, against the same in Python: pages, limits, statics, few columns
or all, rows that no INSERT has made, values in pieces; statements with conditions about them; entries of indexes."""

import random

from cql_server import KEYSPACE, Cluster, Door, Session, SimpleStatement
from harness import equal, main, run, seed, test

PARTITIONS, ROWS = 40, 6
LONG = 100_000  # bytes of a value that lies in several pairs
COLUMNS = ("v", "w", "x")
SEEN = 200  # statements of a table


class Table:
    """Partitions as {k: (static, {c: {column: value}})}; a row is there if it was inserted or has a value."""

    def __init__(self, s, name, properties):
        self.s, self.name = s, f"ks.{name}"
        self.partitions = {}
        s(f"CREATE TABLE {self.name} (k int, c int, st text STATIC, v int, w text, x set<int>, PRIMARY KEY (k, c)){properties}")
        s(f"CREATE INDEX ON {self.name} (w)")
        s(f"CREATE INDEX ON {self.name} (v, w)")

    def write(self, r):
        k, c = r.randrange(PARTITIONS), r.randrange(ROWS)
        part = self.partitions.setdefault(k, [None, {}])
        what = r.random()
        if what < 0.1:
            part[0] = r.choice((None, "s", "static" * 10))
            self.s(f"UPDATE {self.name} SET st = %s WHERE k = {k}", (part[0],))
        elif what < 0.2:
            part[1].pop(c, None)
            self.s(f"DELETE FROM {self.name} WHERE k = {k} AND c = {c}")
        else:
            column = r.choice(COLUMNS)
            value = {"v": r.randrange(9), "x": set(r.sample(range(9), 2)),
                     "w": "w" * (LONG if r.random() < 0.05 else r.randrange(1, 9))}[column]
            if r.random() < 0.2:
                value = None
            row = part[1].setdefault(c, {})
            row[column] = value
            if what < 0.6:
                self.s(f"INSERT INTO {self.name} (k, c, {column}) VALUES ({k}, {c}, %s)", (value,))
                row["inserted"] = True
            else:
                self.s(f"UPDATE {self.name} SET {column} = %s WHERE k = {k} AND c = {c}", (value,))
        for c in [c for c, row in part[1].items() if not any(v is not None for v in row.values())]:
            del part[1][c]

    def rows(self, keys, among, columns, per_partition=None):
        found = []
        for k in sorted(set(keys)):
            static, rows = self.partitions.get(k, (None, {}))
            shown = sorted(c for c in rows if among is None or c in among)
            # A partition that has static columns alone is a row without a key.
            if among is None and not rows and static is not None:
                shown = [None]
            for c in shown[:per_partition]:
                row = rows.get(c, {})
                found.append(tuple({"k": k, "c": c, "st": static, **{n: row.get(n) for n in COLUMNS}}[n] for n in columns))
        return found


def asked(r, table):
    """A random SELECT of the table, how large its pages are, and what it finds."""
    keys = r.sample(range(PARTITIONS + 10), r.choice((1, 2, 5, 15, 16, 17, 35)))
    among = r.choice((None, r.sample(range(ROWS), r.randrange(1, 4))))
    columns = r.choice((("k", "c"), ("c", "v"), ("w",), ("v", "w"), ("k", "st"), ("k", "c", "st", "w"), ("k", "c", "x"),
                        ("k", "c", "st", *COLUMNS)))
    per_partition, limit = r.choice((None, None, 1, 2)), r.choice((None, None, 1, 7, 30))
    text = f"SELECT {', '.join(columns)} FROM {table.name} WHERE k IN ({', '.join(map(str, keys))})"
    if among:
        text += f" AND c IN ({', '.join(map(str, among))})"
    if per_partition:
        text += f" PER PARTITION LIMIT {per_partition}"
    if limit:
        text += f" LIMIT {limit}"
    return text, r.choice((1, 3, 16, 5000)), table.rows(keys, among, columns, per_partition)[:limit]


def plain(rows):
    """Sets as they are in Python; the driver has none where one is empty."""
    return [tuple(set(value) if hasattr(value, "isdisjoint") else value for value in row) for row in rows]


@test
def what_is_named_comes_in_its_order(cwd):
    r = random.Random(seed(0))
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        for name, properties in (("plain", ""), ("packed", " WITH packed = true")):
            table = Table(s, name, properties)
            for _ in range(400):
                table.write(r)
            for _ in range(SEEN):
                text, page, expected = asked(r, table)
                got = s.session.execute(SimpleStatement(text, fetch_size=page))
                assert plain(got) == expected, (text, page, expected)
    done = run("verify", cwd=cwd)
    assert " 0 findings" in done.stdout, done.stdout


@test
def conditions_see_the_row_as_it_is(cwd):
    r = random.Random(seed(1))
    with Door(cwd) as door, Session(door) as s:
        s(KEYSPACE)
        for name, properties in (("plain", ""), ("packed", " WITH packed = true")):
            table = Table(s, name, properties)
            for _ in range(300):
                table.write(r)
                k, c = r.randrange(PARTITIONS // 8), r.randrange(ROWS)
                part = table.partitions.setdefault(k, [None, {}])
                row = part[1].get(c, {})
                column = r.choice(("v", "w"))
                value = r.choice((row.get(column), None, 3 if column == "v" else "w"))
                applied = s(f"UPDATE {table.name} SET v = 100 WHERE k = {k} AND c = {c} IF {column} = %s", (value,))[0][0]
                equal((k, c, column, applied), (k, c, column, row.get(column) == value))
                if applied:
                    part[1].setdefault(c, {})["v"] = 100
                there = s(f"UPDATE {table.name} SET v = 101 WHERE k = {k} AND c = {c} IF EXISTS")[0][0]
                equal((k, c, there), (k, c, c in part[1]))
                if there:
                    part[1][c]["v"] = 101
            keys = range(PARTITIONS)
            equal(s(f"SELECT k, c, v FROM {table.name} WHERE k IN ({', '.join(map(str, keys))})"),
                  table.rows(keys, None, ("k", "c", "v")))


main("needs python3-cassandra" if Cluster is None else None)
