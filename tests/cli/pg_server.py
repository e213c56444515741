"""A PostgreSQL with the extension, beside a frond: for tests. Nothing is installed for it."""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from rows_server import Door

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
EXTENSION = TOP / "build/pg/ext"
CONFIG = pathlib.Path("/usr/lib/postgresql/15/bin/pg_config")
HEADER = pathlib.Path("/usr/include/postgresql/15/server/postgres.h")
OWNER = "postgres" if os.getuid() == 0 else None
INITDB = ("-A", "trust", "-U", "owner", "-E", "UTF8", "--no-sync", "--lc-collate=C", "--lc-ctype=C.UTF-8")
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{}'
session_preload_libraries = 'frond'
fsync = off
max_connections = 30
max_prepared_transactions = 2
"""


def missing():
    """What is not installed here that these tests need, or None."""
    if not CONFIG.exists() or not (CONFIG.parent / "postgres").exists():
        return "postgresql-15 is not installed"
    return None if HEADER.exists() else "postgresql-server-dev-15 is not installed"


def as_owner(*command):
    return ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups", *command] if OWNER else list(command)


@contextlib.contextmanager
def alone():
    """What tests share they make one after the other."""
    EXTENSION.mkdir(parents=True, exist_ok=True)
    with open(EXTENSION.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build():
    """Compiles the extension where `make pg` does, by the compiler's cache where there is one, and returns the folder:
    what has not changed since another program did stays."""
    compiler = ["CC=ccache gcc"] if shutil.which("ccache") else []
    with alone():
        subprocess.run(["make", "-s", "-C", EXTENSION, "-f", TOP / "pg/Makefile", f"SOURCE={TOP / 'pg'}", *compiler],
                       env={**os.environ, "CCACHE_NOHASHDIR": "1"}, check=True, capture_output=True, text=True)
    return EXTENSION


TRIES = 20  # of a transaction that meets definitions


class Failure(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.state = re.search(r"(?:ERROR|FATAL):  (\w{5})", text)
        self.state = self.state.group(1) if self.state else None


class Postgres:
    """`with Postgres(dir) as postgres`: a server of its own, in a directory that its owner may enter."""

    def __init__(self, cwd):
        self.home = pathlib.Path(cwd)
        self.home.chmod(0o755)
        self.bin = pathlib.Path(subprocess.run([TOP / "pg/home", build(), self.home / "home"],
                                               check=True, capture_output=True, text=True).stdout.strip())
        for name in ("data", "socket"):
            (self.home / name).mkdir()
            if OWNER:
                shutil.chown(self.home / name, OWNER)
        self.make_data()
        with open(self.home / "data/postgresql.conf", "a") as conf:
            conf.write(SETTINGS.format(self.home / "socket"))
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ctl("pg_ctl", "stop", "-s", "-m", "immediate", "-D", self.home / "data")

    def ctl(self, program, *args):
        subprocess.run(as_owner(self.bin / program, *args), check=True, stdout=subprocess.DEVNULL, cwd=self.home)

    def make_data(self):
        """What initdb makes, which takes seconds of a processor: it is kept for the tests after this one."""
        version = subprocess.run([CONFIG, "--version"], check=True, capture_output=True, text=True).stdout
        kept = EXTENSION.parent / f"initdb-{hashlib.sha256(repr((version, INITDB)).encode()).hexdigest()[:16]}"
        data = self.home / "data"
        with alone():
            if kept.exists():
                subprocess.run(["cp", "-a", f"{kept}/.", data], check=True)
                return
            self.ctl("initdb", "-D", data, *INITDB)
            made = kept.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            subprocess.run(["cp", "-a", data, made], check=True)
            made.rename(kept)

    def start(self):
        self.ctl("pg_ctl", "start", "-s", "-w", "-D", self.home / "data", "-l", self.home / "data/log")

    def session(self, database="postgres", user="owner"):
        return Session(self, database, user)

    def database(self, name, rows_port):
        """A database with the extension, whose tables are in the frond at the port."""
        with self.session() as s:
            s.do(f"CREATE DATABASE {name}")
        with self.session(name) as s:
            s.do("CREATE EXTENSION frond")
            s.do(f"CREATE SERVER frond FOREIGN DATA WRAPPER frond OPTIONS (host '127.0.0.1', port '{rows_port}')")
            s.do(f"ALTER DATABASE {name} SET default_table_access_method = frond")
        return lambda user="owner": Session(self, name, user)


class Session:
    """A psql that lives: do() gives the rows of a statement as lists of texts, or raises Failure."""

    MARK = "--done--"

    def __init__(self, postgres, database, user):
        self.process = subprocess.Popen(
            [postgres.bin / "psql", "-XqAt", "-F", "\t", "-P", "null=NULL", "-h", postgres.home / "socket",
             "-U", user, "-d", database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PGOPTIONS": "-c client_min_messages=warning"})
        self.process.stdin.write("\\set VERBOSITY verbose\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def send(self, sql, *copied):
        lines = "".join(line + "\n" for line in [*copied, "\\."]) if copied else ""
        self.process.stdin.write(f"{sql};\n{lines}\\echo {self.MARK}\n")
        self.process.stdin.flush()

    def read(self):
        lines = []
        while (line := self.process.stdout.readline()) != self.MARK + "\n":
            assert line, "psql has ended: " + "".join(lines)
            lines.append(line)
        text = "".join(lines)
        if re.search(r"^(ERROR|FATAL|server closed|psql: error)", text, re.M):
            raise Failure(text)
        return [line[:-1].split("\t") for line in lines if not line.startswith(("LOCATION", "WARNING"))]

    def do(self, sql, *copied):
        self.send(sql, *copied)
        return self.read()

    def one(self, sql):
        """The only value."""
        return self.do(sql)[0][0]

    def fails(self, state, sql, *copied):
        try:
            got = self.do(sql, *copied)
        except Failure as failure:
            assert failure.state == state, f"{sql}: {state} was expected\n{failure}"
            return str(failure)
        raise AssertionError(f"{sql} gave {got}")

    def again(self, transaction):
        """Once more where it met another's definition, as clients have to: indexes of tests before are still
        being taken away."""
        for tries_left in range(TRIES - 1, -1, -1):
            try:
                return transaction()
            except Failure as failure:
                if failure.state != "40001" or not tries_left:
                    raise
                self.do("ROLLBACK")


_shared = {}


def shared():
    """One PostgreSQL and one frond for all tests; each has a database, and a schema, of its own."""
    if not _shared:
        home = pathlib.Path(tempfile.mkdtemp(prefix="frond-pg-"))
        _shared["home"] = home
        (home / "frond").mkdir()
        _shared["door"] = Door(home / "frond")
        _shared["postgres"] = Postgres(home)
        _shared["count"] = 0
    return _shared["postgres"], _shared["door"]


def fresh():
    """Makes a session's opener: of an empty database, whose schema no other test has."""
    postgres, door = shared()
    _shared["count"] += 1
    name = f"test{_shared['count']}"
    opener = postgres.database(name, door.port)
    with opener() as s:
        s.do(f"CREATE SCHEMA {name}")
        s.do(f"ALTER DATABASE {name} SET search_path = {name}")
    return opener


def end_shared():
    if _shared:
        _shared["postgres"].__exit__()
        _shared["door"].__exit__()
        shutil.rmtree(_shared["home"], ignore_errors=True)
