"""The scratch copy of the tree that mutants are made of, its build, and its test programs.

The copy and its build are made once and never hold a mutant. A mutant is one source that is compiled by
the build's own command into a folder of a worker's own; the object is then linked before the libraries, so
that the linker takes nothing from the library's unchanged one.
"""

import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HOME = TOP / "build" / "mutants"
COPY = HOME / "tree"
# In the place and with the options of the build that `make test` makes: a compiler cache knows its objects,
# and only mutants are compiled. What reads or writes beyond an array ends the program: arrays in arenas, too
# (base/arena.c).
OUT = COPY / "build" / "asan"
OPTIONS = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dc_link_args=-no-pie"]
# Mutants are no business of a cache. Without what makes an object know its columns in the source, two that do
# the same are the same.
LEFT_OUT_OF_COMPILING = {"ccache", "-MD", "-g"}
PLAINER = {"-fsanitize=address,undefined": "-fsanitize=address"}

# The folders of sources, and the tests that are theirs, the nearest first: a folder of tests/, or the
# names of tests in it, where most of it is about something else. A source is of the longest that it is in.
SUITES = {
    "kv": ["kv", "iso", "catalog/catalog_kinds", "model/revisioned_races", "model/revisioned_random",
           "model/timed/timed_items", "model/timed/timed_history", "cli/cli_disk", "cli/cli_operate",
           "cli/cli_damage", "cli/cli_metrics", "cli/cli_stop", "cli/cli_follow"],
    "catalog": ["catalog", "model/revisioned_db", "model/revisioned_events", "model/revisioned_move",
                "model/revisioned_tally", "model/revisioned_partitions", "model/revisioned_feed",
                "model/revisioned_verify", "model/revisioned_index_build", "model/timed/timed_history",
                "model/timed/timed_items", "model/plain", "door/couch_db_updates", "door/couch_node",
                "cli/cli_operate", "cli/cli_move", "cli/cli_config", "cli/cli_metrics",
                "cli/cli_damage", "cli/cli_rows"],
    "model/revisioned": ["model", "door/couch_documents", "door/couch_bulk", "door/couch_changes",
                         "door/couch_attachments", "door/couch_partitions", "door/couch_listing",
                         "door/couch_views", "cli/cli_attachments", "cli/cli_large", "cli/cli_move"],
    "model/timed": ["model/timed", "cli/cli_rows", "cli/cli_redis", "cli/cli_redis_past",
                    "cli/cli_cql", "cli/cli_cql_timestamps", "cli/cli_tables",
                    "cli/cli_redis_streams", "cli/cli_redis_differential"],
    "model/timed/items": ["model/timed/timed_[ijqvw]*", "model/timed", "cli/cli_redis",
                          "cli/cli_redis_past", "cli/cli_redis_streams",
                          "cli/cli_redis_differential"],
    "model/timed/rows": ["model/timed/timed_rows*", "model/timed/timed_past", "model/timed",
                         "cli/cli_rows"],
    "model/timed/tables": ["model/timed/timed_table*", "model/timed", "cli/cli_cql",
                           "cli/cli_cql_drawn", "cli/cli_cql_language", "cli/cli_cql_statements",
                           "cli/cli_tables", "cli/cli_cql_timestamps", "cli/cli_cql_indexes",
                           "cli/cli_cql_lwt", "cli/cli_cql_ycql", "cli/cli_rows_door"],
    "model/plain": ["model/plain", "cli/cli_collections", "cli/cli_mongo", "cli/cli_mongo_changes",
                    "cli/cli_mongo_indexes", "cli/cli_mongo_collections", "cli/cli_mongo_queries",
                    "cli/cli_mongo_schemes", "cli/cli_mongo_bulk", "cli/cli_mongo_builds"],
    "index": ["index", "index/plan", "model/revisioned_indexes", "model/revisioned_index_build",
              "model/revisioned_view_build", "model/revisioned_view_groups", "model/revisioned_views",
              "model/revisioned_verify", "model/plain", "model/timed/timed_table_indexes*",
              "door/couch_find", "door/couch_mango", "door/couch_partition_queries",
              "door/couch_aggregate", "door/couch_views", "cli/cli_indexed",
              "cli/cli_mongo_indexes", "cli/cli_cql_indexes"],
    "access": ["access", "door/couch_access", "door/couch_people", "door/couch_rights",
               "door/couch_tokens", "door/cql/cql_grants", "cli/cli_users", "cli/cli_redis_people",
               "cli/cli_mongo_people", "cli/cli_cql_roles"],
    "serve": ["serve", "cli/cli_redis", "cli/cli_redis_admin", "cli/cli_mongo", "cli/cli_mongo_sessions",
              "cli/cli_mongo_transactions"],
    "mql": ["mql", "model/plain", "cli/cli_mongo_queries", "cli/cli_mongo_aggregate", "cli/cli_mongo"],
}
# What no suite runs without a cluster, and what only injects faults into tests.
LEFT_OUT = ["kv/fdb", "kv/faulty"]

JOBS = os.cpu_count()  # of a build, side by side
SERVER = "frond"
FILE_BYTES = 2 << 30
SKIPPED = 77
# Memory that nobody has written to holds no zeros: what reads too much of an array meets that. The limit
# is of memory that is in use, since the sanitizer reserves all addresses there are.
SANITIZER = ":max_malloc_fill_size=1073741824:malloc_fill_byte=165:hard_rss_limit_mb=8192"


@dataclasses.dataclass(eq=False)
class Test:
    name: str
    program: str    # its place in the build
    folder: str     # of tests/
    command: list   # with the program's path in the build, which a changed one takes the place of
    env: dict
    needed: set = frozenset()  # what is built before it runs
    seconds: float = 0.0  # that it takes without a change; 0: not known yet

    def is_of(self, suite):
        return suite == self.folder or fnmatch.fnmatchcase(f"{self.folder}/{self.name}", suite)

    def is_variant(self):
        """True if it repeats another test over faults, or with another scheme."""
        return bool({"FROND_TEST_FAULTS", "FROND_TEST_SCHEME", "FROND_TEST_INDEXES"} & set(self.env))


class Stopped(Exception):
    """The run has been asked to end."""


def run(command, **kwargs):
    return subprocess.run(command, check=True, text=True, capture_output=True, **kwargs).stdout


def sources(near=False):
    """The C sources that are changed, and the suites of their tests; `near`: without servers."""
    found = {}
    for folder in SUITES:
        for path in sorted((COPY / "src" / folder).rglob("*.c")):
            name = str(path.relative_to(COPY))
            if not any(name.startswith(f"src/{left}/") for left in LEFT_OUT):
                found[name] = [suite for suite in SUITES[room_of(name)]
                               if not near or not suite.startswith(("cli/", "door/"))]
    return found


def room_of(path):
    """The folder of SUITES that a source is of."""
    return max((folder for folder in SUITES if path.startswith(f"src/{folder}/")), key=len)


def copy_tree():
    """Brings the copy up to date, and touches no file that is as it was, so that little is built."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP)
    names = {name for name in listed.split("\0") if name and (TOP / name).is_file()}
    for name in names:
        here, there = TOP / name, COPY / name
        if not there.is_file() or there.read_bytes() != here.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)
    for folder, folders, files in os.walk(COPY):
        if folder == str(COPY) and "build" in folders:
            folders.remove("build")
        for there in (pathlib.Path(folder) / file for file in files):
            if str(there.relative_to(COPY)) not in names:
                there.unlink()


def build_env():
    """A cache of what was compiled, and a fast linker, where these are installed, as tests/run has them."""
    env = dict(os.environ)
    env.setdefault("CC", "ccache clang" if shutil.which("ccache") else "clang")
    env.setdefault("CCACHE_NOHASHDIR", "1")
    if shutil.which("ld.lld"):
        env.setdefault("CC_LD", "lld")
    return env


def configure():
    if not (OUT / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(OUT), str(COPY), *OPTIONS], env=build_env(), check=True)


def tests_of_build(suites):
    """The tests of these suites, not built yet. Those for a cluster would only be skipped."""
    build("build.ninja")
    told = json.loads(run(["meson", "introspect", "--tests", "--targets", str(OUT)]))
    made = {target["id"]: os.path.relpath(target["filename"][0], OUT) for target in told["targets"]}
    executables = {os.path.relpath(target["filename"][0], OUT) for target in told["targets"]
                   if target["type"] == "executable"}
    tests = []
    for test in told["tests"]:
        words = [os.path.relpath(OUT / word, OUT) for word in test["cmd"]]  # "./frond" is one of OUT
        programs = [word for word in words if word in executables]
        if not programs or "fdb" in str(test["suite"]):
            continue
        scripts = [os.path.relpath(OUT / word, COPY) for word in words if word.endswith(".py")]
        folder = os.path.dirname((scripts or programs)[0]).removeprefix("tests/")
        command = [word if word in executables else said for word, said in zip(words, test["cmd"])]
        needed = {*programs, *(made[target] for target in test["depends"])}
        found = Test(test["name"], programs[0], folder, command, test["env"], needed)
        if any(found.is_of(suite) for suite in suites):
            tests.append(found)
    for suite in suites:
        if not any(test.is_of(suite) for test in tests):
            raise ValueError(f"no test is of {suite}")
    return tests


def build(*targets):
    subprocess.run(["nice", "ninja", "-C", str(OUT), "-j", str(JOBS), *sorted(targets)],
                   env=build_env(), check=True, stdout=subprocess.DEVNULL)


class Programs:
    """Test programs: each is built when a mutant is the first to ask for it; how it is linked, and of what."""

    def __init__(self):
        self.lock = threading.Lock()
        self.built = set()
        self.links, self.symbols = {}, {}

    def need(self, *targets):
        with self.lock:
            if not self.built.issuperset(targets):
                build(*targets)
                self.built.update(targets)

    def uses(self, test, object_):
        """True if the test's program holds the object: what that defines is in it."""
        self.need(object_, *test.needed)
        with self.lock:
            for file in (object_, test.program):
                if file not in self.symbols:
                    self.symbols[file] = defined_by(OUT / file, file == object_)
            return not self.symbols[object_].isdisjoint(self.symbols[test.program])

    def command(self, program, output, objects=()):
        with self.lock:
            if program not in self.links:
                said = run(["ninja", "-C", str(OUT), "-t", "commands", program])
                self.links[program] = shlex.split(said.splitlines()[-1])
            link = self.links[program]
        at = link.index("-o")
        return [*link[:at], "-o", str(output), *map(str, objects), *link[at + 2:]]


def defined_by(file, for_others):
    """The names of functions and variables: all, or those that an object has for others, which a program
    that is made of it has for itself."""
    said = run(["nm", "--defined-only", "-f", "posix", *(["-g"] if for_others else []), str(file)])
    return {line.split()[0] for line in said.splitlines()}


def compile_commands():
    """For each source of the copy, the object and the command without what names either."""
    found = {}
    for entry in json.loads((OUT / "compile_commands.json").read_text()):
        path = os.path.relpath(OUT / entry["file"], COPY)
        words, kept = iter(shlex.split(entry["command"])), []
        for word in words:
            if word in ("-o", "-c", "-MF", "-MQ"):
                next(words)
            elif word not in LEFT_OUT_OF_COMPILING:
                kept.append(PLAINER.get(word, word))
        found[path] = entry["output"], kept
    return found


def limit_process():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))


def end_group(process):
    """Ends the program and what it started. Its id is its own until it is waited for."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Running:
    """The tests that run now, so that the end of the tool is theirs, too."""

    def __init__(self):
        self.lock = threading.Lock()
        self.processes = set()
        self.stopped = False

    def start(self, command, **kwargs):
        with self.lock:
            if self.stopped:
                raise Stopped
            process = subprocess.Popen(command, **kwargs)
            self.processes.add(process)
        return process

    def forget(self, process):
        with self.lock:
            self.processes.discard(process)

    def stop(self):
        with self.lock:
            self.stopped = True
            for process in self.processes:
                end_group(process)


RUNNING = Running()


def run_test(test, program, limit):
    """Runs one test up to its first failure: "passed", "skipped", "time", or what it said."""
    room = tempfile.mkdtemp(prefix="mutant-", dir="/tmp")  # short: tests keep paths of few bytes
    env = dict(os.environ, **test.env, TMPDIR=room)
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + SANITIZER
    command = [str(program) if word == test.program else word for word in test.command]
    late = threading.Event()
    failed = ""
    try:
        process = RUNNING.start(command, cwd=OUT, env=env, text=True, errors="replace",
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                start_new_session=True, preexec_fn=limit_process)
        timer = threading.Timer(limit, lambda: (late.set(), end_group(process)))
        timer.start()
        try:
            for line in process.stdout:
                if line.startswith("not ok"):
                    failed = line.strip()
                    break
        finally:
            timer.cancel()
            end_group(process)  # also what it has left behind
            RUNNING.forget(process)
            process.stdout.close()
            code = process.wait()
    finally:
        shutil.rmtree(room, ignore_errors=True)
    if RUNNING.stopped:
        raise Stopped
    if late.is_set():
        return "time"
    if failed:
        return failed
    return {0: "passed", SKIPPED: "skipped"}.get(code, f"exit {code}")


class Worker:
    """A folder of its own, in which one mutant after another is built and run."""

    def __init__(self, number, commands, programs):
        self.home = HOME / f"worker-{number}"
        self.commands, self.programs = commands, programs
        self.unchanged, self.linked = {}, {}
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)

    def compile(self, path, source):
        """The object's bytes; None where the compiler has an error or a warning."""
        there = self.home / path
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(source)
        done = subprocess.run([*self.commands[path][1], "-o", str(self.home / "mutant.o"), "-c",
                               str(there)], cwd=OUT, capture_output=True)
        return None if done.returncode else (self.home / "mutant.o").read_bytes()

    def is_unchanged(self, path, source, compiled):
        """True if the compiler makes the same of both, which then behave the same."""
        if path not in self.unchanged:
            self.unchanged[path] = self.compile(path, source)
            (self.home / "mutant.o").write_bytes(compiled)
        return self.unchanged[path] == compiled

    def begin(self):
        """From now on tests run with what was compiled last."""
        for program in self.linked.values():
            program.unlink(missing_ok=True)
        self.linked = {}

    def link(self, program):
        if program not in self.linked:
            there = self.home / os.path.basename(program)
            self.linked[program] = there
            subprocess.run(self.programs.command(program, there, [self.home / "mutant.o"]), cwd=OUT,
                           check=True, capture_output=True)
        return self.linked[program]

    def run(self, test, limit, changed):
        """What the test says, with the change or without, and after how many seconds."""
        program = self.link(test.program) if changed else OUT / test.program
        begin = time.monotonic()
        return run_test(test, program, limit), time.monotonic() - begin
