#!/usr/bin/env python3
"""What a scan of the extension's looks at: prefixes, nulls, numbers, single rows, beside what heap tables answer."""

import random
import re

from harness import contains, equal, main, seed, test
from pg_server import end_shared, fresh, missing, shared


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


# ---- Prefixes ----

ENDS = ["", "a", "z", "%", "_", "\\", "'", "\x01", "\x7f", "\x80", "é", "߿", "ࠀ", "퟿", "\ue000", "￿", "\U00010000", "\U0010ffff"]


@test
def a_prefix_is_looked_for(cwd):
    with fresh()() as s:
        both(s, "k text PRIMARY KEY, v varchar(20), n int", "(v, n)")
        texts = sorted({a + b + c for a in ["", "a", "\U0010ffff", "퟿"] for b in ENDS for c in ["", "x", "\U0010ffff"]})
        write(s, "INSERT INTO § VALUES " + ", ".join(f"({quoted(text)}, {quoted(text)}, {i})" for i, text in enumerate(texts)))
        for prefix in random.Random(seed(4)).sample(texts, 40):
            like = "".join("\\" + c if c in "%_\\" else c for c in prefix)
            for column in "kv":
                for pattern in (like + "%", like, like + "_", like + "%x"):
                    same(s, f"SELECT n FROM § WHERE {column} LIKE {quoted(pattern)} ORDER BY n")
                same(s, f"SELECT count(*), max(n) FROM § WHERE {column} LIKE {quoted(like + '%')}")
            if prefix:
                contains(plan(s, f"SELECT n FROM t WHERE k LIKE {quoted(like + '%')}"), "Frond Key: ")
        equal(s.one("SELECT count(*) FROM t WHERE k LIKE '퟿%'"), str(sum(text.startswith("퟿") for text in texts)))
        text = plan(s, "SELECT n FROM t WHERE k LIKE 'ab%'")
        contains(text, "Filter: (k ~~ 'ab%'::text)\n")
        contains(text, "Frond Key: ((k >= 'ab'::text) AND (k < 'ac'::text))")
        text = plan(s, "SELECT n FROM t WHERE v LIKE 'ab%' AND n = 3")
        contains(text, "Frond Index: t_v_n_idx\n")
        contains(text, "AND ((v)::text < 'ac'::text)")
        # A prefix and no more is all that the condition says, so that sums need no rows.
        for where, is_exact in (("k LIKE 'a%'", True), ("k LIKE 'a'", True), ("k ^@ 'a'", True), ("starts_with(k, 'é')", True),
                                ("v LIKE 'a%'", True), (r"k LIKE 'a\%%'", True), ("k LIKE 'a$%%' ESCAPE '$'", True),
                                ("k LIKE 'a%x'", False), ("k LIKE 'a_'", False), ("k LIKE 'a_%'", False), ("k ~ '^a'", False),
                                ("k ILIKE '%%'", False)):
            query = f"SELECT count(*) FROM § WHERE {where}"
            equal((where, "Frond Sums" in plan(s, query.replace("§", "t"))), (where, is_exact))
            same(s, query)
        for where, part in ((r"k ~ '^a[xz]'", "Frond Key: ((k >= 'a'"), ("k ~* '^é'", "Filter"), ("k ILIKE '\x01%'", "Frond Key"),
                            ("k ~ '^(ax)$'", "Frond Key"), ("k NOT LIKE 'a%'", "Filter"), ("k LIKE '%a'", "Filter"),
                            ("k LIKE ''", "Frond Key: (k = ''::text)"), ("n > 5 AND v LIKE 'a%'", "Frond"),
                            ("k LIKE 'a%' AND k > 'ay'", "Frond Filter: "), ("k LIKE NULL", "One-Time Filter: false")):
            contains(plan(s, f"SELECT n FROM t WHERE {where}"), part)
            same(s, f"SELECT n FROM § WHERE {where} ORDER BY n")
        s.do("PREPARE q (text) AS SELECT count(*) FROM t WHERE k LIKE $1")
        for generic in ("off", "on"):
            s.do(f"SET plan_cache_mode = {'force_generic_plan' if generic == 'on' else 'force_custom_plan'}")
            equal(s.one("EXECUTE q ('a%')"), str(sum(text.startswith("a") for text in texts)))


@test
def prefixes_of_other_types_and_collations_are_looked_for(cwd):
    with fresh()() as s:
        both(s, """k bytea PRIMARY KEY, c char(6), i text COLLATE "en-x-icu", a inet, n int""",
             "(c)", "(i)", "(a)")
        ends = ["", "00", "61", "25", "5f", "5c", "7f", "fe", "ff"]
        keys = sorted({a + b + c for a in ends for b in ends for c in ("", "ff")})
        texts = ["", "a", "ab", "ab x", "A", "aB", "b", "é", "e", "a b", "\x1f", "a\x1f"]
        nets = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "10.255.255.255", "11.0.0.0", "9.255.255.255", "::1", "fe80::/10"]
        write(s, "INSERT INTO § VALUES " + ", ".join(
            f"('\\x{key}', {quoted(texts[i % len(texts)])}, {quoted(texts[-i % len(texts)])}, '{nets[i % len(nets)]}', {i})"
            for i, key in enumerate(keys)))
        s.do("CREATE TABLE few (x int PRIMARY KEY)")
        for a in ends:
            for b in ends:
                escaped = "".join("5c" + byte if byte in ("25", "5f", "5c") else byte for byte in (a, b) if byte)
                for pattern in (escaped + "25", escaped + "5f", escaped, escaped + "2561"):
                    same(s, f"SELECT n FROM § WHERE k LIKE '\\x{pattern}'::bytea ORDER BY n")
                same(s, f"SELECT count(*) FROM § WHERE k LIKE '\\x{escaped}25'::bytea")
        contains(plan(s, r"SELECT n FROM t WHERE k LIKE '\x61ff25'::bytea"), r"""((k >= '\x61ff'::bytea) AND (k < '\x62'::bytea))""")
        text = plan(s, r"SELECT n FROM t WHERE k LIKE '\xff25'::bytea")
        contains(text, r"Frond Key: (k >= '\xff'::bytea)")
        for column in "ci":
            for prefix in ("a", "ab", "ab ", "a ", "é", "A", "\x1f", "a\x1f", "e"):
                for pattern in (prefix + "%", prefix, prefix + "_", prefix + "   "):
                    same(s, f"SELECT n FROM § WHERE {column} LIKE {quoted(pattern)} ORDER BY n")
                    same(s, f"SELECT count(*) FROM § WHERE {column} LIKE {quoted(pattern)}")
        # What begins alike lies together whatever the collation, but is in no order of it.
        text = plan(s, "SELECT n FROM t WHERE i LIKE 'a%'")
        contains(text, "Frond Index: t_i_idx")
        assert "Frond" not in plan(s, "SELECT n FROM t WHERE i >= 'a' AND i < 'b'").replace("Foreign", "")
        for net in nets:
            for op in ("<<", "<<=", "&&"):
                same(s, f"SELECT n FROM § WHERE a {op} '{net}' ORDER BY n")
        contains(plan(s, "SELECT n FROM t WHERE a <<= '10.0.0.0/8'"), "Frond Index: t_a_idx")


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


# ---- Nulls ----

@test
def nulls_are_looked_for_by_an_index(cwd):
    with fresh()() as s:
        both(s, "id int PRIMARY KEY, a int, b varchar(8), c bigint", "(a, b, c DESC)", "(b DESC, a)", "(c)")
        s.do("CREATE UNIQUE INDEX one ON t (c, a)")
        write(s, "INSERT INTO § SELECT i, nullif(i % 4, 0), CASE WHEN i % 3 > 0 THEN 'b' || i % 5 END,"
                 " CASE WHEN i % 7 = 1 THEN i END FROM generate_series(1, 400) i")
        write(s, "INSERT INTO § VALUES (1000, NULL, NULL, 5000), (1001, NULL, NULL, 5000)")
        s.do("ANALYZE t")
        for where, parts in (
                ("a = 1 AND b IS NULL", ["Frond Index: t_a_b_c_idx", "Frond Key: ((a = 1) AND (b IS NULL))"]),
                ("a = 1 AND b IS NULL AND c > 20", ["Frond Key: ((a = 1) AND (b IS NULL) AND (c > 20))"]),
                ("a = 1 AND b IS NULL AND c IS NULL", ["Frond Key: ((a = 1) AND (b IS NULL) AND (c IS NULL))"]),
                ("c IS NOT NULL", ["Frond Key: (c IS NOT NULL)"]),
                ("a = 1 AND b IS NOT NULL", ["Frond Key: ((a = 1) AND (b IS NOT NULL))"]),
                ("c = 5000 AND a IS NULL", ["Frond Index: one", "Frond Key: ((c = 5000) AND (a IS NULL))"]),
                ("a IS NULL", ["Frond Filter: (a IS NULL)"]),
                ("a = 2 AND b < 'b3'", ["Frond Key"]),
                ("a IN (1, 3) AND b IS NULL", ["Frond"]),
                ("b IS NULL AND b IS NOT NULL AND a = 1", ["Frond"]),
                ("a < 30000000000", ["Frond"]),
                ("a > -30000000000 AND b = 'b1'", ["Frond"]),
                ("b = 'b2' AND a < 30000000000", ["Frond"]),
                ("b = 'b2' AND a < 30000000000 AND a > 1", ["Frond"]),
                ("b = 'b2' AND a > 30000000000", ["Frond"])):
            text = plan(s, f"SELECT * FROM t WHERE {where}")
            for part in parts:
                contains(text, part)
            same(s, f"SELECT * FROM § WHERE {where} ORDER BY id")
            same(s, f"SELECT count(*), count(a), sum(c) FROM § WHERE {where}")
        for order in ("c", "c DESC"):
            query = f"SELECT c FROM § WHERE a = 1 AND b IS NULL AND c IS NOT NULL ORDER BY {order} LIMIT 3"
            assert "Sort" not in plan(s, query.replace("§", "t"))
            same(s, query)


# ---- Numbers that are equal and look otherwise ----

NUMBERS = {
    "n": ["0", "-0", "0.00", "1", "1.0", "1.00", "1.5", "-1.50", "NaN", "Infinity", "-Infinity", "1e30", "1e-20", "100", "1e2"],
    "m": ["0", "1", "1.10", "-1.1", "NaN", "99999999.99"],
    "i": ["1 mon", "30 days", "720 hours", "29 days 24 hours", "-1 mon", "0", "1 day", "24 hours", "-24:00:00", "1 year", "360 days",
          "178000000 years", "-178000000 years", "178000000 years 1 us"],
    "f": ["0", "-0", "NaN", "Infinity", "-Infinity", "1", "1.5", "-1e300", "5e-324"],
    "g": ["0", "-0", "NaN", "Infinity", "-Infinity", "1", "1.5", "-1e30", "1e-45"]}
COLUMNS = "n numeric, m numeric(10,2), i interval, f float8, g float4"


@test
def numbers_are_found_by_indexes_as_in_heaps(cwd):
    draw = random.Random(seed(6))
    with fresh()() as s:
        both(s, f"id int PRIMARY KEY, {COLUMNS}", "(n, f)", "(m DESC, id)", "(i DESC)", "(f DESC, n)", "(g, i) INCLUDE (n)")
        value = lambda column: f"'{draw.choice(NUMBERS[column])}'::{dict(c.split() for c in COLUMNS.split(', '))[column]}"
        or_null = lambda column: "NULL" if draw.random() < 0.1 else value(column)
        row = lambda i: f"({i}, {', '.join(or_null(column) for column in 'nmifg')})"
        write(s, "INSERT INTO § VALUES " + ", ".join(row(i) for i in range(300)))
        s.do("ANALYZE t")
        used = 0
        for step in range(120):
            if step % 8 == 0:
                column = draw.choice("nmifg")
                write(s, draw.choice([f"UPDATE § SET {column} = {or_null(column)} WHERE id % 11 = {draw.randrange(11)}",
                                      f"DELETE FROM § WHERE id % 41 = {draw.randrange(41)}", f"INSERT INTO § VALUES {row(1000 + step)}"]))
            tests = [f"{column} " + (draw.choice(["IS NULL", "IS NOT NULL"]) if draw.random() < 0.1 else
                                     f"IN ({value(column)}, {value(column)})" if draw.random() < 0.1 else
                                     f"{draw.choice(['=', '=', '<', '<=', '>', '>='])} {value(column)}")
                     for column in draw.sample("nmifg", draw.randint(1, 2))]
            order = draw.choice(["id", "n, f, id", "m DESC, id", "i, id", "f DESC, n DESC, id", "g, i, id"])
            query = f"SELECT * FROM § WHERE {' AND '.join(tests)} ORDER BY {order}{draw.choice(['', ' LIMIT 7'])}"
            same(s, query)
            used += "Frond Index" in plan(s, query.replace("§", "t"))
            same(s, f"SELECT count(*), count(f) FROM § WHERE {' AND '.join(tests)}")
        assert used > 20, used
        contains(plan(s, "SELECT * FROM t WHERE n = 1.00"), "Frond Index: t_n_f_idx")
        assert "Sort" not in plan(s, "SELECT m FROM t WHERE m IS NOT NULL ORDER BY m DESC LIMIT 2")
        # An entry has so many bytes that digits of a numeric without a limit may be cut.
        contains(plan(s, "SELECT n FROM t WHERE n IS NOT NULL ORDER BY n LIMIT 2"), "Sort")


@test
def equal_numbers_are_one_in_a_unique_index(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE t (id int PRIMARY KEY, n numeric UNIQUE, i interval UNIQUE, f float8 UNIQUE)")
        s.do("INSERT INTO t VALUES (1, 1.0, '1 mon', '-0'), (2, 2.50, '1 day', 'NaN')")
        for column, values in (("n", ["1", "1.00", "2.5"]), ("i", ["30 days", "24 hours"]), ("f", ["0", "NaN"])):
            for value in values:
                s.fails("23505", f"INSERT INTO t (id, {column}) VALUES (3, '{value}')")
                s.fails("23505", f"UPDATE t SET {column} = '{value}'")
        s.do("INSERT INTO t VALUES (3, 1.000, '9 days', 9) ON CONFLICT (n) DO UPDATE SET n = excluded.n, f = t.f")
        equal(s.do("SELECT * FROM t"), [["1", "1.000", "1 mon", "-0"], ["2", "2.50", "1 day", "NaN"]])
        s.do("UPDATE t SET n = 1.0 WHERE n = 1")
        equal(s.do("SELECT id, n FROM t WHERE n = 1.00000"), [["1", "1.0"]])
        s.do("INSERT INTO t (id, n) VALUES (4, NULL), (5, NULL), (6, 1.01)")


@test
def numbers_are_keys_as_in_heaps(cwd):
    draw = random.Random(seed(7))
    with fresh()() as s:
        key = draw.sample("nifg", 2)
        both(s, f"{COLUMNS}, id int, PRIMARY KEY ({', '.join(key)})", how=draw.choice(["", f"WITH (hash = '{key[0]}')"]))
        types = dict(c.split() for c in COLUMNS.split(", "))
        value = lambda column: f"'{draw.choice(NUMBERS[column])}'::{types[column]}"
        for i in range(120):
            write(s, f"INSERT INTO § VALUES ({', '.join(value(column) for column in 'nmifg')}, {i}) ON CONFLICT DO NOTHING")
        same(s, f"SELECT id FROM § ORDER BY {', '.join(key)}")
        for _ in range(80):
            tests = [f"{column} {draw.choice(['=', '=', '<', '<=', '>', '>='])} {value(column)}" for column in key[:draw.randint(1, 2)]]
            same(s, f"SELECT id, m FROM § WHERE {' AND '.join(tests)} ORDER BY {', '.join(key)}")


# ---- All of it, by chance ----

@test
def tables_that_were_not_analyzed_have_estimates(cwd):
    def rows(s, table="t"):
        return int(re.search(r"rows=(\d+)", s.do(f"EXPLAIN SELECT * FROM {table}")[0][0])[1])

    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE t (id int PRIMARY KEY, a int, b text)")
        s.do("INSERT INTO t SELECT i, i % 10, 'text' FROM generate_series(1, 200) i")
        equal((rows(s), rows(other)), (200, 200))
        # What a transaction has written counts in it alone, and where it commits.
        s.do("BEGIN")
        s.do("INSERT INTO t SELECT i, i % 10, 'text' FROM generate_series(201, 300) i")
        s.do("DELETE FROM t WHERE id <= 20")
        equal((rows(s), rows(other)), (280, 200))
        s.do("ROLLBACK")
        equal(rows(s), 200)
        # An ANALYZE counts for as long as frond does not know better.
        s.do("ANALYZE t")
        s.do("DELETE FROM t WHERE id > 60")
        equal(rows(s), 60)
        s.do("CREATE TABLE long (id int PRIMARY KEY, a int, b text)")
        s.do("INSERT INTO long SELECT i, i, repeat(md5(i::text), 10) FROM generate_series(1, 5000) i")
        assert 1000 < rows(other, "long") < 20000, rows(other, "long")
        s.do("ANALYZE long")
        assert 5000 <= rows(s, "long") < 20000, rows(s, "long")
        # A small table is found by its index, so that a query meets those alone who write there.
        s.do("CREATE INDEX ON t (a)")
        contains("\n".join(line[0] for line in s.do("EXPLAIN SELECT * FROM t WHERE a = 3")), "Frond Index: t_a_idx")
        # A join of small tables costs too little for PostgreSQL to compile it.
        for name in "uvwxyz":
            s.do(f"CREATE TABLE {name} AS SELECT i AS a, i AS b FROM generate_series(1, 100) i")
        join = "SELECT * FROM u JOIN v ON u.b = v.a JOIN w ON v.b = w.a JOIN x ON w.b = x.a JOIN y ON x.b = y.a JOIN z ON y.b = z.a"
        cost = float(re.search(r"\.\.([\d.]+)", s.do(f"EXPLAIN {join}")[0][0])[1])
        assert cost < float(s.one("SHOW jit_above_cost")) / 10, cost


@test
def random_conditions_find_what_they_find_in_heaps(cwd):
    draw = random.Random(seed(5))
    with fresh()() as s:
        key = draw.choice(["a", "b", "a, b", "b, a"])
        both(s, f"a varchar(6), b text, c int, d varchar(9), e bytea, id int, PRIMARY KEY ({key}, id)",
             draw.choice(["(d, c)", "(c, d DESC)", "(d DESC)"]), draw.choice(["(e, d)", "(c, e)", "(e DESC, c DESC)"]),
             how=draw.choice(["", f"WITH (hash = '{key.split(',')[0]}')"]))
        letters = ["a", "b", "%", "_", "\\", "é", "퟿", "\U0010ffff", " "]
        text = lambda n: "".join(draw.choice(letters) for _ in range(draw.randint(0, n)))
        literal = {"a": lambda: quoted(text(3)), "b": lambda: quoted(text(3)), "c": lambda: str(draw.randint(0, 4)),
                   "d": lambda: quoted(text(2)), "e": lambda: "'\\x" + "".join(draw.choice(["00", "61", "ff"]) for _ in range(draw.randint(0, 3))) + "'"}
        or_null = lambda column: "NULL" if column in "cde" and draw.random() < 0.3 else literal[column]()

        def condition():
            column = draw.choice("aabbcddee")
            kind = draw.random()
            if kind < 0.3:
                return f"{column} {draw.choice(['=', '=', '<', '<=', '>', '>='])} {literal[column]()}"
            if kind < 0.5:
                return f"{column} IS {draw.choice(['', 'NOT '])}NULL"
            if column in "ce":
                return f"{column} IS NOT NULL" if column == "c" else f"e LIKE '\\x{draw.choice(['61', 'ff', '61ff'])}{draw.choice(['', '25'])}'::bytea"
            return draw.choice([
                lambda: f"{column} LIKE {quoted(text(3).replace(chr(92), chr(92) * 2) + draw.choice(['%', '', '_', 'a%']))}",
                lambda: f"{column} ^@ {quoted(text(2))}",
                lambda: f"{column} ~ {quoted('^' + draw.choice(['a', 'ab', 'é', 'a|b', '(a)']))}",
                lambda: f"{column} IN ({literal[column]()}, {literal[column]()})"])()

        rows = [f"({', '.join(or_null(column) for column in 'abcde')}, {i})" for i in range(400)]
        write(s, "INSERT INTO § VALUES " + ", ".join(rows))
        if draw.random() < 0.5:
            s.do("ANALYZE t")
        found = 0
        for step in range(120):
            if step % 10 == 0:
                column = draw.choice("cde")
                write(s, draw.choice([f"UPDATE § SET {column} = {or_null(column)} WHERE id % 13 = {draw.randrange(13)}",
                                      f"DELETE FROM § WHERE id % 97 = {draw.randrange(97)}"]))
            where = " AND ".join(condition() for _ in range(draw.randint(1, 3)))
            order = draw.choice(["id", "a, b, id", "b, a, id", "d, id", "d DESC, id DESC", "e, d, id", "c, d DESC, id"])
            limit = draw.choice(["", f" LIMIT {draw.randint(1, 9)}"])
            query = f"SELECT * FROM § WHERE {where} ORDER BY {order}{limit}"
            same(s, query)
            found += "Frond Key" in plan(s, query.replace("§", "t"))
            same(s, f"SELECT count(*), min(a), max(d), count(c) FROM § WHERE {where}")
        # By draw: of 40 draws 19 at least, and 87 at most.
        assert found > 5, found


@test
def the_order_of_a_key_says_nothing_of_joined_rows(cwd):
    with fresh()() as s:
        s.do("CREATE TABLE p (id int PRIMARY KEY, name text)")
        s.do("CREATE TABLE g (id int PRIMARY KEY, p int, n int)")
        s.do("INSERT INTO p SELECT i, 'p' || i FROM generate_series(1, 4) i")
        s.do("INSERT INTO g SELECT i, i % 4 + 1, i * 7 % 20 FROM generate_series(1, 20) i")
        wanted = sorted(([str(i % 4 + 1), str(i * 7 % 20)] for i in range(1, 21)), key=lambda row: (int(row[0]), -int(row[1])))
        join = "FROM p JOIN g ON g.p = p.id"
        for settings in ("", "enable_hashjoin", "enable_mergejoin", "enable_nestloop"):
            if settings:
                s.do(f"SET {settings} = off")
            equal(s.do(f"SELECT p.id, g.n {join} ORDER BY p.id, g.n DESC"), wanted)
            equal(s.do(f"SELECT p.id, g.n {join} WHERE p.id = 2 ORDER BY g.n DESC"), [row for row in wanted if row[0] == "2"])
            equal(s.do(f"SELECT DISTINCT p.id, g.n % 3 {join} WHERE p.id = 2 ORDER BY 2"), [["2", str(n)] for n in range(3)])
        # Its own columns have any order behind the key.
        assert "Sort" not in plan(s, "SELECT * FROM p ORDER BY id, name DESC")


# ---- Statements about one row, whose plans PostgreSQL's planner does not make ----

@test
def a_row_that_is_named_by_its_key_is_that_of_a_heap(cwd):
    with fresh()() as s:
        s.do("CREATE DOMAIN small AS int CHECK (VALUE < 100)")
        both(s, "k int, i varchar(8), n small, twice int GENERATED ALWAYS AS (n * 2) STORED, note text DEFAULT 'none'"
                " CHECK (note <> 'bad'), at timestamptz, gone int, PRIMARY KEY (k, i)")
        write(s, "INSERT INTO § (k, i, n, note, at) SELECT k, 'a', k, 'note ' || k, '2024-01-01' FROM generate_series(1, 9) k")
        write(s, "ALTER TABLE § DROP gone")
        for where in ("k = 1 AND i = 'a'", "i = 'a' AND 2 = k", "k = 3::bigint AND i = 'a'", "k = 4 AND i = 'a' AND n > 4",
                      "k = 4 AND i = 'a' AND n = 4", "k = 1 AND k = 2 AND i = 'a'", "k = NULL AND i = 'a'",
                      "k = 5000000000 AND i = 'a'", "k = 1 AND i = 'a' AND note IS NULL", "k = 1 AND i = 'A'",
                      "k = 1 AND i = lower('A')", "k = 1 AND i = 'a' AND random() < 2", "k = 0 + 1 AND i = 'a'",
                      "(k, i) = (6, 'a')", "k = 1 AND i = 'a'::char(3)", "k = 1 AND i = 'a' OR k = 2 AND i = 'a'",
                      "NOT (k <> 1) AND i = 'a'", "k = (SELECT 1) AND i = 'a'", "k = 1 AND i = 'a' AND false"):
            for what in ("*", "n, note", "", "§", "1, k", "n + k, 'x'", "ctid IS NULL", "count(*)", "DISTINCT n",
                         "generate_series(1, n)", "tableoid::regclass::text = '§'", "'§'::regclass IS NULL", "now() > at"):
                same(s, f"SELECT {what} FROM § WHERE {where}")
            for rest in ("ORDER BY n", "LIMIT 1", "OFFSET 1", "FOR UPDATE", "GROUP BY k, i, n, twice, note, at"):
                same(s, f"SELECT * FROM § WHERE {where} {rest}")
            for change in ("n = n + 1", "n = k, note = NULL", "note = DEFAULT", "note = note || '.', at = at + '1 day'",
                           "k = k + 0", "n = (SELECT 3)", "n = length(note)", "(n, note) = (7, 'row')"):
                write(s, f"UPDATE § SET {change} WHERE {where}")
                same(s, "SELECT * FROM § ORDER BY k, i")
        same(s, "SELECT c AS d, x.* FROM § AS x (a, b, c) WHERE a = 5 AND b = 'a'")
        for state, statement in (("23514", "UPDATE § SET n = 100 WHERE k = 1 AND i = 'a'"),
                                 ("23514", "UPDATE § SET note = 'bad' WHERE k = 1 AND i = 'a'"),
                                 ("23505", "UPDATE § SET k = 2 WHERE k = 1 AND i = 'a'"),
                                 ("22012", "SELECT n / 0 FROM § WHERE k = 1 AND i = 'a'")):
            for table in "th":
                s.fails(state, statement.replace("§", table))


@test
def a_statement_about_one_row_may_be_prepared(cwd):
    with fresh()() as s:
        both(s, "k int PRIMARY KEY, n int, note text")
        write(s, "INSERT INTO § SELECT k, k, 'note' FROM generate_series(1, 9) k")
        for table in "th":
            s.do(f"PREPARE {table}_read AS SELECT * FROM {table} WHERE k = $1")
            s.do(f"PREPARE {table}_long AS SELECT n, $2 FROM {table} WHERE k = $1::bigint")
            s.do(f"PREPARE {table}_write AS UPDATE {table} SET n = n + $2, note = $3 WHERE k = $1")
            s.do(f"CREATE FUNCTION {table}_add(key int, more int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE now int; BEGIN"
                 f" UPDATE {table} SET n = n + more WHERE k = key; SELECT n INTO now FROM {table} WHERE k = key;"
                 " RETURN now; END $$")
            s.do(f"CREATE FUNCTION {table}_sql(key int) RETURNS int LANGUAGE sql AS"
                 f" $$ SELECT n FROM {table} WHERE k = key $$")
        for mode in ("auto", "force_generic_plan", "force_custom_plan"):
            s.do(f"SET plan_cache_mode = {mode}")
            for i in range(8):
                for table in "th":
                    s.do(f"EXECUTE {table}_write({i}, 10, 'written')")
                    s.do(f"SELECT {table}_add({i + 2}, 3)")
                same(s, "SELECT * FROM § ORDER BY k")
                equal(s.do(f"EXECUTE t_read({i})"), s.do(f"EXECUTE h_read({i})"))
                equal(s.do(f"EXECUTE t_long({i}, 'a')"), s.do(f"EXECUTE h_long({i}, 'a')"))
                same(s, f"SELECT §_add({i}, 1), §_sql({i}), §_sql(NULL)")
        # What a kept plan depends on changes.
        write(s, "ALTER TABLE § ALTER n SET NOT NULL, ADD extra int DEFAULT 4")
        for table in "th":
            s.fails("0A000", f"EXECUTE {table}_read(1)")
            s.do(f"EXECUTE {table}_write(1, 1, NULL)")
        same(s, "SELECT *, §_add(k, 1) FROM § ORDER BY k")
        write(s, "ALTER TABLE § DROP note")
        for table in "th":
            s.fails("42703", f"EXECUTE {table}_write(1, 1, NULL)")


@test
def a_statement_about_one_row_has_triggers_views_and_rights(cwd):
    opener = fresh()
    with opener() as s:
        both(s, "k int PRIMARY KEY, n int, note text")
        write(s, "INSERT INTO § SELECT k, k, 'note' FROM generate_series(1, 9) k")
        s.do("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
             " $$ BEGIN NEW.note := coalesce(OLD.note, '') || TG_WHEN || NEW.n; RETURN NEW; END $$")
        write(s, "CREATE TRIGGER before BEFORE UPDATE ON § FOR EACH ROW EXECUTE FUNCTION note()")
        write(s, "UPDATE § SET n = 30 WHERE k = 3")
        write(s, "UPDATE § SET k = 40 WHERE k = 4")
        same(s, "SELECT * FROM § ORDER BY k")
        write(s, "CREATE VIEW v§ AS SELECT k, n FROM § WHERE n < 20 WITH CHECK OPTION")
        same(s, "SELECT * FROM v§ WHERE k = 5")
        write(s, "UPDATE v§ SET n = 19 WHERE k = 5")
        for table in "th":
            s.fails("44000", f"UPDATE v{table} SET n = 21 WHERE k = 5")
        same(s, "SELECT * FROM § ORDER BY k")
        user = s.one("SELECT current_database()") + "_one"
        s.do(f"CREATE ROLE {user}")
        s.do(f"GRANT USAGE ON SCHEMA {s.one('SELECT current_schema()')} TO {user}")
        write(s, f"GRANT SELECT (k, n), UPDATE (n) ON § TO {user}")
        s.do(f"SET ROLE {user}")
        same(s, "SELECT n FROM § WHERE k = 5")
        write(s, "UPDATE § SET n = n + 1 WHERE k = 6")
        for table in "th":
            s.fails("42501", f"SELECT * FROM {table} WHERE k = 5")
            s.fails("42501", f"UPDATE {table} SET note = '' WHERE k = 5")
            s.fails("42501", f"UPDATE {table} SET n = 0 WHERE note = '' AND k = 5")
        s.do("RESET ROLE")
        same(s, "SELECT * FROM § ORDER BY k")


def beside(s, name, columns):
    """One more table of each."""
    for table, how in zip("th", ("frond", "heap")):
        s.do(f"CREATE TABLE {name} ({columns}) USING {how}".replace("§", table))


def alike(s, statement):
    """What RETURNING gives, too."""
    ours, heap = (s.do(statement.replace("§", table)) for table in "th")
    equal((statement, ours), (statement, heap))


@test
def a_row_that_is_inserted_alone_is_that_of_a_heap(cwd):
    with fresh()() as s:
        s.do("CREATE DOMAIN small AS int CHECK (VALUE < 100)")
        s.do("CREATE DOMAIN given AS text NOT NULL")
        s.do("CREATE TYPE pair AS (a int, b text)")
        s.do("CREATE FUNCTION twice(n int, more int DEFAULT 1) RETURNS int LANGUAGE sql AS 'SELECT 2 * n + more'")
        both(s, "k int PRIMARY KEY, gone int, n small, c char(3) DEFAULT 'ab', v varchar(4), twice int GENERATED ALWAYS AS (n * 2) STORED,"
                " note text DEFAULT upper('none') NOT NULL CHECK (note <> 'bad'), day date DEFAULT CURRENT_DATE, at timestamp,"
                " list int[], two pair, who name DEFAULT current_user, size numeric(6, 2) DEFAULT 1.005, doc jsonb")
        write(s, "ALTER TABLE § DROP gone")
        write(s, "ALTER TABLE § ADD later text DEFAULT 'late'")
        for i, (columns, values) in enumerate((
                ("k", "(#)"), ("k, n", "(#, 5)"), ("n, k", "('7', #::bigint)"), ("k, c, v", "(#, 'x', 'long')"),
                ("k, note, day", "(#, DEFAULT, '2024-02-29')"), ("k, at", "(#, timestamptz '2024-01-01 10:00+00')"),
                ("k, list[2]", "(#, 4)"), ("k, two.b", "(#, 'b')"), ("k, list, two", "(#, ARRAY[1, 2], ROW(1, 'a'))"),
                ("k, n", "(#, twice(3))"), ("k, n", "(#, twice(3, 4))"), ("k, n", "(#, twice(more => 5, n => 2))"),
                ("k, n", "(#, abs(-4) + 2 * 3)"), ("k, note", "(#, concat('a', 1, NULL))"), ("k, note", "(#, NULLIF('x', 'y'))"),
                ("k, note", "(#, CASE WHEN 1 < 2 THEN 'yes' END)"), ("k, n", "(#, (SELECT 8))"), ("k, doc", "(#, '{\"a\": [1]}')"),
                ("k, note", "(#, 't'::regclass)"), ("k, n", "(#, 1), (# + 1000, 2)"), ("k, later", "(#, NULL)"),
                ("k, size", "(#, 12.345)"), ("k, v", "(#, 'abcd   ')"), ("k, note", "(#, 5)"), ("k, n", "SELECT #, 9"),
                ("k, n", "SELECT #, n FROM generate_series(1, 1) n"), ("k, at", "(#, 'epoch'::timestamp + interval '1 day')"))):
            word = "" if values.startswith("SELECT") else "VALUES "
            for back in ("", " RETURNING *", " RETURNING k + n, note || later AS said, 'x', twice", " RETURNING §.*::text <> ''",
                         " RETURNING tableoid = '§'::regclass, now() > '2000-01-01'"):
                alike(s, f"INSERT INTO § ({columns}) {word}{values.replace('#', str(10 * i))}{back}")
                write(s, f"DELETE FROM § WHERE k % 1000 = {10 * i}")
            write(s, f"INSERT INTO § ({columns}) {word}{values.replace('#', str(10 * i))}")
            same(s, "SELECT * FROM § ORDER BY k")
        for state, rest in (("23505", "(k) VALUES (0)"), ("23505", "(k) VALUES (0) RETURNING k"), ("23502", "(n) VALUES (1)"),
                            ("23514", "(k, n) VALUES (-1, 100)"), ("23514", "(k, note) VALUES (-1, 'bad')"),
                            ("23502", "(k, note) VALUES (-1, NULL)"), ("22001", "(k, v) VALUES (-1, 'abcde')"),
                            ("428C9", "(k, twice) VALUES (-1, 2)"), ("22003", "(k) VALUES (5000000000)"),
                            ("22012", "(k, n) VALUES (-1, 1 / 0)"), ("22012", "(k) VALUES (-1) RETURNING 1 / 0"), ("42601", "(k) VALUES (1, 2)")):
            for table in "th":
                s.fails(state, f"INSERT INTO {table} {rest}")
        same(s, "SELECT * FROM § ORDER BY k")
        # A column of a domain that forbids null gets none by being left out.
        beside(s, "d§", "k int PRIMARY KEY, name given")
        for table in "th":
            s.fails("23502", f"INSERT INTO d{table} VALUES (1)")


@test
def a_row_that_is_inserted_alone_has_numbers_triggers_and_references(cwd):
    with fresh()() as s:
        both(s, "k serial PRIMARY KEY, i bigint GENERATED BY DEFAULT AS IDENTITY, note text")
        for statement in ("INSERT INTO § (note) VALUES ('a') RETURNING *", "INSERT INTO § DEFAULT VALUES RETURNING k, i",
                          "INSERT INTO § (k, i, note) VALUES (1000, 2000, 'b') RETURNING note, i",
                          "INSERT INTO § (k, note) VALUES (DEFAULT, 'c') RETURNING *",
                          "INSERT INTO § (k, note) OVERRIDING USER VALUE VALUES (77, 'd') RETURNING k"):
            alike(s, statement)
        for table in "th":
            s.do(f"PREPARE {table}_in (text) AS INSERT INTO {table} (note) VALUES ($1) RETURNING k, note")
        for i in range(8):
            alike(s, f"EXECUTE §_in('p{i}')")
        write(s, "ALTER TABLE § ADD more int DEFAULT 6")
        write(s, "ALTER TABLE § ALTER k DROP DEFAULT")
        for table in "th":
            s.fails("23502", f"EXECUTE {table}_in('q')")
        alike(s, "INSERT INTO § (k) VALUES (500) RETURNING *")
        same(s, "SELECT * FROM § ORDER BY k")
        beside(s, "kept_§", "k int PRIMARY KEY, of int REFERENCES §")
        alike(s, "INSERT INTO kept_§ VALUES (1, 500) RETURNING *")
        for table in "th":
            s.fails("23503", f"INSERT INTO kept_{table} VALUES (2, 501)")
            s.fails("23503", f"DELETE FROM {table} WHERE k = 500")
            s.fails("23503", f"DELETE FROM {table} WHERE k = 500 RETURNING k")
        beside(s, "log_§", "what text, old text, new text")
        s.do("CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " EXECUTE format('INSERT INTO log_%s VALUES ($1, $2, $3)', TG_TABLE_NAME) USING TG_OP, OLD::text, NEW::text;"
             " IF TG_WHEN = 'BEFORE' AND TG_OP = 'INSERT' THEN NEW.note := NEW.note || '!'; RETURN NEW; END IF;"
             " IF TG_WHEN = 'BEFORE' AND OLD.k = 3 THEN RETURN NULL; END IF; RETURN coalesce(NEW, OLD); END $$")
        for when in ("BEFORE", "AFTER"):
            write(s, f"CREATE TRIGGER {when}_row {when} INSERT OR UPDATE OR DELETE ON § FOR EACH ROW EXECUTE FUNCTION noted()")
            for statement in ("INSERT INTO § (k, i, note) VALUES (600, 1, 'x') RETURNING *", "UPDATE § SET note = note || k WHERE k = 600 RETURNING *",
                              "DELETE FROM § WHERE k = 600 RETURNING *, note || 'gone'", "DELETE FROM § WHERE k = 3 RETURNING note",
                              "INSERT INTO § (k, i) VALUES (601, 2)", "DELETE FROM § WHERE k = 601"):
                alike(s, statement)
        same(s, "SELECT * FROM log_§ ORDER BY 1, 2, 3")
        same(s, "SELECT * FROM § ORDER BY k")


@test
def a_row_that_is_deleted_or_changed_by_its_key_is_returned_as_that_of_a_heap(cwd):
    opener = fresh()
    with opener() as s:
        both(s, "k int, i varchar(8), gone int, n int, twice int GENERATED ALWAYS AS (n * 2) STORED, note text, PRIMARY KEY (k, i)", "(n)")
        write(s, "ALTER TABLE § DROP gone")
        for where in ("k = 1 AND i = 'a'", "i = 'b' AND 2 = k", "k = 3::bigint AND i = 'a' AND n > 4", "k = 4 AND i = 'a' AND n = 4",
                      "k = 4 AND i = 'a' AND n = 5", "k = NULL AND i = 'a'", "k = 50 AND i = 'a'", "k = 1 AND i = lower('A')",
                      "k = 1 AND i = 'a' OR k = 2", "k = 1 AND i = 'a' AND note IS NOT NULL", "k > 7", "true"):
            for back in ("", " RETURNING *", " RETURNING note, twice + k AS sum", " RETURNING §.*::text", " RETURNING (SELECT count(*) > 0)",
                         " RETURNING tableoid = '§'::regclass", " RETURNING 1"):
                write(s, "INSERT INTO § (k, i, n, note) SELECT k, 'a', k, 'note' FROM generate_series(1, 9) k")
                for change in (f"UPDATE § SET n = n + 1 WHERE {where}", f"UPDATE § SET note = 'is ' || n, n = NULL WHERE {where}",
                               f"UPDATE § SET i = 'b' WHERE {where}", f"DELETE FROM § WHERE {where}"):
                    # Rows of several have no order.
                    if where in ("k > 7", "true") or " OR " in where:
                        write(s, change + back)
                    else:
                        alike(s, change + back)
                    same(s, "SELECT * FROM § ORDER BY k, i")
                write(s, "DELETE FROM §")
        write(s, "INSERT INTO § (k, i, n) SELECT k, 'a', k FROM generate_series(1, 20) k")
        for table in "th":
            s.do(f"PREPARE {table}_del (int) AS DELETE FROM {table} WHERE k = $1 AND i = 'a' RETURNING n")
            s.do(f"CREATE FUNCTION {table}_cut(key int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE was int; BEGIN"
                 f" DELETE FROM {table} WHERE k = key AND i = 'a' RETURNING n INTO was; UPDATE {table} SET n = n + 1 WHERE k = key + 1 AND i = 'a'"
                 f" RETURNING n + coalesce(was, 0) INTO was; RETURN was; END $$")
        for i in range(8):
            alike(s, f"EXECUTE §_del({i})")
            alike(s, f"SELECT §_cut({i + 9})")
        same(s, "SELECT * FROM § ORDER BY k")
        s.do("BEGIN")
        alike(s, "DELETE FROM § WHERE k = 19 AND i = 'a' RETURNING *")
        alike(s, "DELETE FROM § WHERE k = 19 AND i = 'a' RETURNING *")
        alike(s, "INSERT INTO § (k, i, n) VALUES (19, 'a', 5) RETURNING *")
        alike(s, "UPDATE § SET n = 6 WHERE k = 19 AND i = 'a' RETURNING *")
        same(s, "SELECT * FROM § WHERE k = 19 AND i = 'a'")
        s.do("ROLLBACK")
        same(s, "SELECT * FROM § ORDER BY k")
        user = s.one("SELECT current_database()") + "_two"
        s.do(f"CREATE ROLE {user}")
        s.do(f"GRANT USAGE ON SCHEMA {s.one('SELECT current_schema()')} TO {user}")
        write(s, f"GRANT SELECT (k, i), INSERT (k, i, n), DELETE ON § TO {user}")
        s.do(f"SET ROLE {user}")
        alike(s, "INSERT INTO § (k, i, n) VALUES (30, 'a', 5) RETURNING k")
        write(s, "DELETE FROM § WHERE k = 30 AND i = 'a'")
        for table in "th":
            s.fails("42501", f"INSERT INTO {table} (k, i, note) VALUES (30, 'a', 'x')")
            s.fails("42501", f"INSERT INTO {table} (k, i) VALUES (30, 'a') RETURNING note")
            s.fails("42501", f"DELETE FROM {table} WHERE k = 20 AND i = 'a' RETURNING n")
            s.fails("42501", f"UPDATE {table} SET n = 1 WHERE k = 20 AND i = 'a'")
        s.do("RESET ROLE")
        same(s, "SELECT * FROM § ORDER BY k")


@test
def other_extensions_measure_a_statement_once(cwd):
    opener = fresh()
    with opener() as s:
        s.do("CREATE TABLE t (k int PRIMARY KEY, n int)")
        s.do(f"ALTER DATABASE {s.one('SELECT current_database()')} SET session_preload_libraries = 'auto_explain', 'frond'")
    with opener() as s:
        s.do("SET auto_explain.log_min_duration = 0")
        s.do("SET auto_explain.log_analyze = on")
        s.do("SET client_min_messages = log")
        for statement in ("INSERT INTO t VALUES (1, 1)", "UPDATE t SET n = 2 WHERE k = 1", "SELECT n FROM t WHERE k = 1 FOR UPDATE",
                          "DELETE FROM t WHERE k = 1 RETURNING n"):
            s.send(statement)
            told = "\n".join(map(str, s.read()))
            equal((statement, told.count("Query Text: ")), (statement, 1))
            assert "never executed" not in told, told


# ---- Rows that the transaction has changed ----

def asked(s, query):
    """How many requests a scan is."""
    explained = "\n".join(line[0] for line in s.do(f"EXPLAIN (ANALYZE, COSTS OFF) {query}"))
    return int(re.search(r"Frond Pages: (\d+)", explained)[1])


@test
def a_row_that_the_transaction_has_changed_is_not_asked_for(cwd):
    with fresh()() as s:
        both(s, "k int, i text, n numeric(8, 2), name char(5), note text, at timestamptz, PRIMARY KEY (k, i)")
        write(s, "INSERT INTO § SELECT k, 'a', k, 'n' || k, NULL, '2024-01-01' FROM generate_series(1, 20) k")
        row = "SELECT * FROM § WHERE k = 1 AND i = 'a'"
        ours = row.replace("§", "t")
        s.do("BEGIN")
        equal(asked(s, ours), 1)
        write(s, "UPDATE § SET n = n + 1.5, note = '' WHERE k = 1 AND i = 'a'")
        equal(asked(s, ours), 0)
        same(s, row)
        equal(asked(s, "SELECT n FROM t WHERE k = 2 AND i = 'a'"), 1)
        write(s, "UPDATE § SET note = NULL, name = 'x' WHERE k = 1")
        equal(asked(s, ours), 0)
        same(s, row)
        same(s, "SELECT n, i FROM § WHERE i = 'a' AND k = 1 AND n > 2 FOR UPDATE")
        # Whatever else writes to the table lets the row be asked for.
        s.do("SAVEPOINT a")
        for statement in ("DELETE FROM § WHERE k = 1", "INSERT INTO § VALUES (1, 'b')", "UPDATE § SET i = 'c' WHERE k = 1",
                          "UPDATE § SET n = 0 WHERE k < 15",
                          "INSERT INTO § VALUES (1, 'a', 9) ON CONFLICT (k, i) DO UPDATE SET n = 9", "TRUNCATE §"):
            write(s, "UPDATE § SET n = 5 WHERE k = 1 AND i = 'a'")
            write(s, statement)
            equal((statement, asked(s, ours)), (statement, 1))
            same(s, row)
            s.do("ROLLBACK TO a")
            same(s, row)
        s.do("COMMIT")
        equal(asked(s, ours), 1)
        same(s, row)


@test
def a_row_that_was_changed_is_what_it_is_for_others(cwd):
    opener = fresh()
    with opener() as s, opener() as other:
        s.do("CREATE TABLE t (k int PRIMARY KEY, n int, m int)")
        s.do("INSERT INTO t VALUES (1, 0, 0), (2, 0, 0)")
        for end, n in (("ROLLBACK", 7), ("COMMIT", 8)):
            s.do("BEGIN")
            s.do("UPDATE t SET n = 1 WHERE k = 1")
            s.do(end)
            other.do(f"UPDATE t SET n = {n} WHERE k = 1")
            equal(s.one("SELECT n FROM t WHERE k = 1"), str(n))
        # A statement does not see itself; what it has called, and what has come since, it sees.
        s.do("CREATE FUNCTION before() RETURNS int STABLE LANGUAGE sql AS 'SELECT n FROM t WHERE k = 1'")
        s.do("CREATE FUNCTION gone() RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM t WHERE k = 2; RETURN 5; END'")
        s.do("CREATE FUNCTION beside() RETURNS int LANGUAGE plpgsql AS 'BEGIN UPDATE t SET m = 9 WHERE k = 1; RETURN 6; END'")
        s.do("BEGIN")
        s.do("UPDATE t SET n = 3 WHERE k = 1")
        equal(s.do("UPDATE t SET n = before() + 1 WHERE k = 1 RETURNING before(), n"), [["3", "4"]])
        equal(s.one("SELECT n FROM t WHERE k = 1"), "4")
        s.do("UPDATE t SET n = gone() WHERE k = 2")
        equal(s.do("SELECT n FROM t WHERE k = 2"), [])
        s.do("UPDATE t SET n = beside() WHERE k = 1")
        equal(s.do("SELECT n, m FROM t WHERE k = 1"), [["6", "9"]])
        s.do("COMMIT")
        equal(s.do("TABLE t"), [["1", "6", "9"]])


@test
def random_changes_of_single_rows_are_those_of_heaps(cwd):
    draw = random.Random(seed(9))
    with fresh()() as s:
        both(s, "k int PRIMARY KEY, n int, name text")
        write(s, "INSERT INTO § SELECT k, 0, 'x' FROM generate_series(0, 9) k")
        for _ in range(12):
            s.do("BEGIN")
            saved = 0
            for _ in range(25):
                k, n = draw.randrange(12), draw.randrange(100)
                kind = draw.randrange(20)
                if kind < 9:
                    write(s, f"UPDATE § SET {draw.choice([f'n = {n}', f'n = n + 1, name = name || {n}', 'name = NULL'])} "
                             f"WHERE k = {k}")
                elif kind < 11:
                    write(s, f"UPDATE § SET n = n + {n} WHERE k BETWEEN {k} AND {k + draw.choice([1, 3])}")
                elif kind < 13:
                    write(s, f"DELETE FROM § WHERE k = {k}")
                elif kind < 15:
                    write(s, f"INSERT INTO § VALUES ({k}, {n}, 'i') ON CONFLICT (k) DO UPDATE SET n = §.n - 1")
                elif kind < 16:
                    write(s, f"UPDATE § SET k = {k} WHERE k = {n % 12} AND NOT EXISTS (SELECT FROM § o WHERE o.k = {k})")
                elif kind < 18 or not saved:
                    s.do("SAVEPOINT a")
                    saved += 1
                else:
                    s.do(draw.choice(["ROLLBACK TO a", "ROLLBACK TO a", "RELEASE a"]))
                    saved = 0
                for key in (k, draw.randrange(12)):
                    same(s, f"SELECT * FROM § WHERE k = {key}")
            s.do(draw.choice(["COMMIT", "ROLLBACK"]))
            same(s, "SELECT * FROM § ORDER BY k")


try:
    main(missing())
finally:
    end_shared()
