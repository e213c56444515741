#!/usr/bin/env python3
"""Tables in frond beside heap tables of the same PostgreSQL.

    bench/sql.py [--build DIR] [--frond FILE] [--scale N] [--rows N] [--only WORD] [--tcp] [--publish]

pgbench's three scripts with 1, 16 and 64 clients, whose transactions are tried again when they meet
others (--max-tries); COPY of a million rows, an index of them, count(*), GROUP BY of that index's
column, and rows read by their key, by one client. Each is asked of a database with tables in frond,
and of one with heap tables; one PostgreSQL has both, with its settings as they come (fsync and
synchronous_commit are on), which pgbench and frond's extension reach by Unix sockets; with --tcp the
extension asks frond by TCP. The sides take turns in each round, and begin by turns; medians of the
rounds are shown, and of their ratios. The processor time is that of PostgreSQL and frond together,
until both rest. The results go to bench/results/sql.json with --publish, which puts the table into
docs/PERFORMANCE.md, else below the build.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import sides

TOP = pathlib.Path(__file__).resolve().parent.parent
RESULTS = TOP / "bench" / "results"
PAGE = TOP / "docs" / "PERFORMANCE.md"
BEGIN = "<!-- sql: made by `bench/sql.py --publish` -->"
END = "<!-- /sql -->"

CONFIG = pathlib.Path("/usr/lib/postgresql/15/bin/pg_config")
HEADER = pathlib.Path("/usr/include/postgresql/15/server/postgres.h")
OWNER = "postgres"
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{}'
synchronous_commit = on
max_connections = 100
"""

CLIENTS = (1, 16, 64)
TRIES = 100
GROUPS = 100
SIDES = ("frond", "heap")
# pgbench's own scripts: what they are called, their option, and the goals by clients.
SCRIPTS = (("TPC-B", "tpcb-like", {1: 0.5, 16: 0.6}),
           ("select-only", "select-only", {1: 0.6, 16: 0.6, 64: 0.6}),
           ("simple update (`-N`)", "simple-update", {1: 0.6, 16: 0.6, 64: 0.6}))
TABLE = ("CREATE TABLE loaded (id bigint PRIMARY KEY, class int NOT NULL, name text NOT NULL, amount numeric(12, 2), "
         "at timestamptz NOT NULL)")
INDEX = "CREATE INDEX loaded_class ON loaded (class)"
# Of the rows that COPY has brought: units are rows, or statements.
COPY, MAKE_INDEX, COUNT, GROUP, POINT = ("`COPY`, rows", "`CREATE INDEX`, rows", "`count(*)`", "`GROUP BY` an index",
                                         "row by its key, prepared")
LOADED = {COPY: 0.4, MAKE_INDEX: None, COUNT: 1, GROUP: 1, POINT: 0.6}
QUERIES = {COUNT: "SELECT count(*) FROM loaded;\n",
           GROUP: "SELECT class, count(*) FROM loaded GROUP BY class;\n",
           POINT: "\\set id random(1, {rows})\nSELECT * FROM loaded WHERE id = :id;\n"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def missing():
    if not CONFIG.exists() or not (CONFIG.parent / "postgres").exists():
        return "postgresql-15 is not installed"
    if not shutil.which("pgbench") and not (CONFIG.parent / "pgbench").exists():
        return "pgbench (postgresql-contrib's) is not installed"
    return None if HEADER.exists() else "postgresql-server-dev-15 is not installed"


class Frond(sides.Frond):
    """frond with the door for rows."""

    def __init__(self, binary, directory, tcp=False):
        super().__init__(binary, directory)
        self.rows_port = sides.free_port() if tcp else None
        self.socket = self.directory / "rows" / "socket"

    def start(self):
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:  # the socket gets the directory's group, which is PostgreSQL's
            shutil.chown(self.socket.parent, "root", OWNER)
            self.socket.parent.chmod(0o2750)
        self.port = sides.free_port()
        rows = f"127.0.0.1:{self.rows_port}" if self.rows_port else self.socket
        self.spawn([self.binary, "serve", "--store", self.store, "--http", f"127.0.0.1:{self.port}", "--rows", rows],
                   self.directory / "log")

    def where(self):
        """The options of its server in PostgreSQL."""
        return f"host '127.0.0.1', port '{self.rows_port}'" if self.rows_port else f"host '{self.socket}'"


class Postgres(sides.Server):
    """A PostgreSQL of its own with the extension; the databases `frond` and `heap`."""

    name = "PostgreSQL"

    def __init__(self, extension, directory):
        super().__init__()
        self.directory = pathlib.Path(directory)
        self.directory.mkdir()
        self.bin = pathlib.Path(subprocess.run([TOP / "pg" / "home", extension, self.directory / "home"],
                                               check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
        self.root = os.getuid() == 0  # whose PostgreSQL refuses to be
        self.socket = self.directory / "socket"

    def as_owner(self, *command):
        drop = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"] if self.root else []
        return [*drop, *command]

    def start(self):
        data = self.directory / "data"
        for path in (data, self.socket):
            path.mkdir()
            if self.root:
                shutil.chown(path, OWNER)
        subprocess.run(self.as_owner(self.bin / "initdb", "-D", data, "-A", "trust", "-U", "bench", "-E", "UTF8",
                                     "--lc-collate=C", "--lc-ctype=C.UTF-8"),
                       check=True, stdout=subprocess.DEVNULL, cwd=self.directory)
        with open(data / "postgresql.conf", "a") as conf:
            conf.write(SETTINGS.format(self.socket))
        self.spawn(self.as_owner(self.bin / "postgres", "-D", data), self.directory / "log", cwd=self.directory)

    def await_up(self, log=None):
        deadline = time.monotonic() + sides.START_SECONDS
        while subprocess.run([self.bin / "pg_isready", "-q", "-h", self.socket], check=False).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                sides.fail(f"PostgreSQL did not start: {pathlib.Path(log).read_text()}")
            time.sleep(0.1)

    def stop(self):
        if self.process:
            self.process.send_signal(2)  # "fast": sessions are ended
            self.process.wait()
            self.process = None

    def run(self, program, database, *args, options="", stdin=None):
        env = {**os.environ, "PGHOST": str(self.socket), "PGUSER": "bench", "PGDATABASE": database, "PGOPTIONS": options}
        done = subprocess.run([self.bin / program, *map(str, args)], env=env, stdin=stdin, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            sides.fail(f"{database}: {program} {' '.join(map(str, args))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def sql(self, database, *statements, **how):
        commands = [arg for statement in statements for arg in ("-c", statement)]
        return self.run("psql", database, "-XqAt", "-v", "ON_ERROR_STOP=1", *commands, **how)

    def make_databases(self, where):
        self.sql("postgres", "CREATE DATABASE heap", "CREATE DATABASE frond",
                 "ALTER DATABASE frond SET session_preload_libraries = 'frond'")
        self.sql("frond", "CREATE EXTENSION frond",
                 f"CREATE SERVER frond FOREIGN DATA WRAPPER frond OPTIONS ({where})",
                 "ALTER DATABASE frond SET default_table_access_method = frond")


class Bench:
    def __init__(self, options, postgres, frond, work):
        self.o, self.postgres, self.frond, self.work = options, postgres, frond, work
        self.rows = {}

    # -- what is there before the first round --

    def prepare(self):
        if any(map(self.wanted, (script[0] for script in SCRIPTS))):
            for side in SIDES:
                self.load_pgbench(side)
        self.file = self.work / "rows"
        if any(map(self.wanted, LOADED)):
            self.make_rows()
            for side in SIDES:
                self.postgres.sql(side, TABLE)

    def load_pgbench(self, side):
        """Tables, their keys, rows: frond gives no key to a table that has rows."""
        say(f"{side}: pgbench's tables, scale {self.o.scale}")
        self.postgres.run("pgbench", side, "-i", "-q", "-I", "dtpg", "-s", self.o.scale, options=self.bulk(side))
        self.analyze(side, *(f"pgbench_{name}" for name in ("accounts", "branches", "tellers", "history")))

    def analyze(self, side, *tables):
        verb = "ANALYZE" if side == "frond" else "VACUUM (ANALYZE)"
        self.postgres.sql(side, *(f"{verb} {table}" for table in tables))

    @staticmethod
    def bulk(side):
        return "-c frond.bulk_load=on" if side == "frond" else ""

    def make_rows(self):
        with open(self.file, "w") as out:
            for i in range(1, self.o.rows + 1):
                out.write(f"{i}\t{i * 7919 % GROUPS}\tname of row {i:09d}\t{i % 100000 / 4:.2f}\t"
                          f"2024-01-{i % 28 + 1:02d} 12:{i % 60:02d}:00+00\n")

    # -- a round --

    def wanted(self, operation):
        return self.o.only in operation

    def round(self, number):
        order = SIDES if number % 2 == 0 else SIDES[::-1]
        for name, script, _ in SCRIPTS:
            for clients in CLIENTS:
                if self.wanted(name):
                    for side in order:
                        self.note(name, clients, side, self.measured(
                            lambda: self.pgbench(side, clients, "-b", script)))
        if any(map(self.wanted, LOADED)):
            for side in order:
                self.load(side)
            for operation, query in QUERIES.items():
                if self.wanted(operation):
                    for side in order:
                        self.note(operation, 1, side, self.measured(lambda: self.query(side, operation, query)))

    def load(self, side):
        self.postgres.sql(side, "DROP INDEX IF EXISTS loaded_class", "TRUNCATE loaded")
        with open(self.file) as lines:
            self.note(COPY, 1, side, self.measured(lambda: self.timed(
                side, "COPY loaded FROM STDIN", options=self.bulk(side), stdin=lines)))
        self.note(MAKE_INDEX, 1, side, self.measured(lambda: self.timed(side, INDEX)))
        self.analyze(side, "loaded")

    def timed(self, side, statement, **how):
        begin = time.monotonic()
        self.postgres.sql(side, statement, **how)
        return {"units": self.o.rows, "rate": self.o.rows / (time.monotonic() - begin)}

    def query(self, side, operation, text):
        path = self.work / "query.sql"
        path.write_text(text.format(rows=self.o.rows))
        prepared = ("-M", "prepared") if operation == POINT else ()
        return self.pgbench(side, 1, "-f", path, *prepared)

    def pgbench(self, side, clients, *what):
        out = self.postgres.run("pgbench", side, "-n", "-c", clients, "-j", min(clients, os.cpu_count()),
                                "-T", self.o.seconds, "--max-tries", TRIES, *what)

        def number(pattern):
            found = re.search(pattern, out, re.M)
            return float(found.group(1)) if found else 0
        return {"units": number(r"^number of transactions actually processed: (\d+)"),
                "rate": number(r"^tps = ([\d.]+)"),
                "ms": number(r"^latency average = ([\d.]+)"),
                "failed_percent": number(r"^number of failed transactions: \d+ \(([\d.]+)%"),
                "again_percent": number(r"^number of transactions retried: \d+ \(([\d.]+)%")}

    def measured(self, run):
        """With the processor time of a unit, by what both servers have used until they rest."""
        def ticks():
            self.frond.settle()
            self.postgres.settle()
            return self.frond.cpu_ticks() + self.postgres.cpu_ticks()
        before = ticks()
        done = run()
        units = max(1, done.pop("units"))
        return done | {"cpu_us": (ticks() - before) * 1e6 / os.sysconf("SC_CLK_TCK") / units}

    def note(self, operation, clients, side, took):
        found = self.rows.setdefault(f"{operation}, {clients}", {}).setdefault(side, {})
        for what, value in took.items():
            found.setdefault(what, []).append(value)


# ---- Tables ----


def goal_of(operation, clients):
    for name, _, goals in SCRIPTS:
        if name == operation:
            return goals.get(clients)
    return LOADED.get(operation)


def median(row, side, what):
    return statistics.median(row[side][what])


def ratio(row, what):
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(row["frond"][what], row["heap"][what]) if b)


def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.2g}" if x < 1 else f"{x:.1f}"


def percent(x):
    return f"{x:.1f} %"


def table(rows):
    out = ["| operation, clients | frond | heap | frond/heap | goal | CPU µs | heap's | frond/heap | tried again, heap's |",
           "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for name, row in rows.items():
        operation, clients = name.rsplit(", ", 1)
        goal = goal_of(operation, int(clients))
        rate = ratio(row, "rate")
        again = ", ".join(f"{percent(median(row, side, 'again_percent'))}" for side in SIDES
                          if row[side].get("again_percent")) if int(clients) > 1 else ""
        out.append(f"| {name} | {number(median(row, 'frond', 'rate'))} | {number(median(row, 'heap', 'rate'))} | "
                   f"{rate:.2f}× | {f'{goal}×' if goal else ''}{' missed' if goal and rate < goal else ''} | "
                   f"{number(median(row, 'frond', 'cpu_us'))} | {number(median(row, 'heap', 'cpu_us'))} | "
                   f"{ratio(row, 'cpu_us'):.1f}× | {again} |")
    return "\n".join(out)


def about_text(about):
    return (f"Made by `bench/sql.py` on {about['date'].split()[0]} at {about['commit']}, on {about['processors']} "
            f"processors, the clients on the same: {about['postgresql']}; scale {about['scale']}, "
            f"{about['rows']:,} rows copied; medians of {about['rounds']} rounds of {about['seconds']} s; "
            f"load average {about['load_average']:.0f} at the end.")


def publish(rows, about):
    old = PAGE.read_text()
    if BEGIN not in old or END not in old:
        sys.exit(f"{PAGE} has no place for the table")
    text = f"{table(rows)}\n\n{about_text(about)}"
    PAGE.write_text(old[:old.index(BEGIN)] + f"{BEGIN}\n\n{text}\n\n" + old[old.index(END):])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    env = os.environ
    parser.add_argument("--build", default=str(TOP / "build"))
    parser.add_argument("--frond", help="the program, if not the build's")
    parser.add_argument("--extension", help="what `make pg` has built, if not in the build's pg/ext")
    parser.add_argument("--rounds", type=int, default=int(env.get("BENCH_ROUNDS", "3")))
    parser.add_argument("--seconds", type=int, default=max(1, round(float(env.get("BENCH_SECONDS", "5")))))
    parser.add_argument("--scale", type=int, default=10, help="pgbench's: 100,000 accounts each")
    parser.add_argument("--rows", type=int, default=1000000, help="that COPY brings")
    parser.add_argument("--work", help="directory for the data")
    parser.add_argument("--only", default="", help="operations whose names have this word")
    parser.add_argument("--tcp", action="store_true", help="the extension asks frond by TCP")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    options.build = pathlib.Path(options.build).resolve()
    options.frond = pathlib.Path(options.frond or options.build / "frond").resolve()
    options.extension = pathlib.Path(options.extension or options.build / "pg" / "ext").resolve()
    return options


def main():
    options = arguments()
    if missing():
        say(f"bench/sql.py: {missing()}; nothing is measured")
        return
    if not (options.extension / "frond.so").exists():
        sys.exit(f"bench/sql.py: there is no extension in {options.extension}: `make pg` makes it")
    work = pathlib.Path(tempfile.mkdtemp(prefix="frond-sql-", dir=options.work))
    work.chmod(0o755)
    frond = Frond(options.frond, work / "frond", options.tcp)
    postgres = Postgres(options.extension, work / "postgres")
    bench = Bench(options, postgres, frond, work)
    try:
        frond.start()
        postgres.start()
        postgres.make_databases(frond.where())
        bench.prepare()
        for n in range(options.rounds):
            say(f"round {n + 1} of {options.rounds}")
            bench.round(n)
        about = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
                 "commit": sides.commit(TOP), "processors": os.cpu_count(), "rounds": options.rounds,
                 "seconds": options.seconds, "scale": options.scale, "rows": options.rows,
                 "load_average": os.getloadavg()[0],
                 "postgresql": "PostgreSQL " + postgres.sql("heap", "SHOW server_version").split()[0]}
    finally:
        postgres.stop()
        frond.stop()
        shutil.rmtree(work, ignore_errors=True)
    print(f"{table(bench.rows)}\n\n{about_text(about)}")
    out = RESULTS if options.publish else options.build / "bench" / "results"
    out.mkdir(parents=True, exist_ok=True)
    (out / "sql.json").write_text(json.dumps({"about": about, "rows": bench.rows}, indent=1) + "\n")
    if options.publish:
        publish(bench.rows, about)


if __name__ == "__main__":
    main()
