#!/usr/bin/env python3
"""What a scan of the extension's looks at: texts, beside what heap tables answer."""

from harness import main, test
from pg_server import end_shared, missing, shared


def plan(s, query):
    return "\n".join(line[0] for line in s.do(f"EXPLAIN (COSTS OFF) {query}"))


def both(s, columns, *indexes, how=""):
    """A table in frond, t, with indexes, and a heap, h."""
    s.do(f"CREATE TABLE t ({columns}) {how}")
    s.do(f"CREATE TABLE h ({columns}) USING heap")
    s.do("SET frond.allow_mixed_writes = on")
    for index in indexes:
        s.do(f"CREATE INDEX ON t {index}")


def write(s, sql):
    for table in "th":
        s.do(sql.replace("§", table))


def same(s, query):
    ours, heap = (s.do(query.replace("§", table)) for table in "th")
    if ours != heap:
        differs = next((i for i, (a, b) in enumerate(zip(ours, heap)) if a != b), min(len(ours), len(heap)))
        raise AssertionError(f"{query}\n{plan(s, query.replace('§', 't'))}\n{len(ours)} rows, and of a heap {len(heap)}; from"
                             f" {differs} on:\n{ours[differs:][:3]}\nof a heap\n{heap[differs:][:3]}")
    return ours


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


@test
def texts_of_another_encoding_are_in_its_own_order(cwd):
    postgres, door = shared()
    with postgres.session() as s:
        s.do("CREATE DATABASE japanese ENCODING 'EUC_JP' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with postgres.session("japanese") as s:
        s.do("SET client_encoding = 'UTF8'")
        s.do("CREATE EXTENSION frond")
        s.do(f"CREATE SERVER frond FOREIGN DATA WRAPPER frond OPTIONS (host '127.0.0.1', port '{door.port}')")
        s.do("CREATE SCHEMA japanese")
        s.do("SET search_path = japanese")
        s.do("SET default_table_access_method = frond")
        both(s, "k text PRIMARY KEY, n int", "(n)")
        write(s, "INSERT INTO § VALUES ('ぁ', 1), ('Α', 2), ('ぁa', 3), ('Αb', 4), ('亜', 5), ('a', 6)")
        for where in ("k < 'Α'", "k >= 'ぁ'", "k > 'ぁ' AND k <= 'Α'", "k = 'Α'", "k LIKE 'ぁ%'", "k LIKE 'Α_'", "k LIKE 'ぁ'"):
            same(s, f"SELECT n FROM § WHERE {where} ORDER BY n")
        same(s, "SELECT k FROM § ORDER BY k")
        same(s, "SELECT min(k), max(k) FROM §")


try:
    main(missing())
finally:
    end_shared()
