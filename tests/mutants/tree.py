"""The scratch copy of the tree, with all drawn changes in it, its two builds, and their tests.

Which change is made a process is told by its environment (schema.py, chosen.c), so programs are linked once
for all of them. One build has no sanitizers and is several times as fast: it kills most. What survives there is
run once more with the sanitizers.
"""

import collections
import dataclasses
import fnmatch
import hashlib
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

import schema

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HOME = TOP / "build" / "mutants"
CHOSEN = TOP / "tests" / "mutants" / "chosen.c"
CC = TOP / "tests" / "mutants" / "cc"
WRAP = "-Wl,--wrap=_cmocka_run_group_tests"  # of what runs the cases of a test's program
COPY = HOME / "tree"
# Both have the compilers, the options and the places in the tree of builds that `make test` makes: so a compiler
# cache knows all their objects but those of changed sources.
FAST, SANITIZED = "gcc", "asan"
COMPILERS = {FAST: "gcc", SANITIZED: "clang"}
PLACES = {FAST: COPY / "build", SANITIZED: COPY / "build" / "asan"}
# With the sanitizers, what reads or writes beyond an array ends the program: arrays in arenas, too (base/arena.c).
OPTIONS = {FAST: ["--buildtype=release", "-Doptimization=2"],
           SANITIZED: ["-Db_sanitize=address,undefined", "-Db_lundef=false"]}
LINKING = {FAST: "", SANITIZED: "-no-pie "}
LEFT_OUT_OF_COMPILING = {str(CC), "-MD"}

# The folders of sources, and the tests that are theirs, the nearest first: a folder of tests/, or the
# names of tests in it, where most of it is about something else. A source is of the longest that it is in.
SUITES = {
    "kv": ["kv", "iso", "catalog/catalog_kinds", "model/revisioned_races", "model/revisioned_random",
           "model/timed/timed_items", "model/timed/timed_history", "cli/cli_disk", "cli/cli_operate",
           "cli/cli_damage", "cli/cli_metrics", "cli/cli_stop", "cli/cli_follow", "torture"],
    "catalog": ["catalog", "model/revisioned_db", "model/revisioned_events", "model/revisioned_move",
                "model/revisioned_tally", "model/revisioned_between",
                "model/revisioned_partitions", "model/revisioned_feed",
                "model/revisioned_verify", "model/revisioned_verify_ranges", "model/revisioned_index_build",
                "model/timed/timed_history",
                "model/timed/timed_items", "model/plain", "door/couch_db_updates", "door/couch_node",
                "cli/cli_operate", "cli/cli_move", "cli/cli_config", "cli/cli_metrics",
                "cli/cli_damage", "cli/cli_salvage", "cli/cli_rows"],
    "model/revisioned": ["model", "catalog/catalog_draw", "door/couch_documents", "door/couch_bulk", "door/couch_changes",
                         "door/couch_attachments", "door/couch_partitions", "door/couch_listing",
                         "door/couch_views", "cli/cli_attachments", "cli/cli_large", "cli/cli_move"],
    "model/timed": ["model/timed", "cli/cli_rows", "cli/cli_redis", "cli/cli_redis_past",
                    "cli/cli_cql", "cli/cli_cql_timestamps", "cli/cli_tables",
                    "cli/cli_redis_streams", "cli/cli_redis_differential"],
    "model/timed/items": ["model/timed/timed_[ijmqsvw]*", "model/timed", "cli/cli_redis",
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
              "model/revisioned_build_probe",
              "model/revisioned_index_builder", "model/revisioned_index_steps", "model/revisioned_view_build", "model/revisioned_view_edges", "model/revisioned_view_groups",
              "model/revisioned_view_pace", "model/revisioned_view_updates", "model/revisioned_views", "model/revisioned_views_probe",
              "model/revisioned_verify", "model/plain", "model/timed/timed_table_indexes*",
              "model/timed/timed_table_groups", "model/timed/timed_table_carried",
              "door/couch_find", "door/couch_mango", "door/couch_partition_queries",
              "door/couch_aggregate", "door/couch_views", "cli/cli_indexed",
              "cli/cli_mongo_indexes", "cli/cli_cql_indexes"],
    "access": ["access", "door/couch_access", "door/couch_people", "door/couch_rights",
               "door/couch_tokens", "door/couch_audit", "door/cql/cql_grants", "cli/cli_users",
               "cli/cli_redis_people", "cli/cli_mongo_people", "cli/cli_cql_roles"],
    "serve": ["serve", "cli/cli_redis", "cli/cli_redis_admin", "cli/cli_mongo", "cli/cli_mongo_sessions",
              "cli/cli_mongo_transactions"],
    "bson": ["bson", "mql", "cli/cli_mongo_queries", "cli/cli_mongo"],
    "mql": ["mql", "model/plain", "cli/cli_mongo_queries", "cli/cli_mongo_aggregate", "cli/cli_mongo"],
}
# What no suite runs without a cluster, and what only injects faults into tests.
LEFT_OUT = ["kv/fdb", "kv/faulty"]

JOBS = os.cpu_count()  # of a build, side by side
AUTOGROUP = pathlib.Path("/proc/self/autogroup")
SERVER = "frond"
FILE_BYTES = 2 << 30
TEST_SEED = "1"  # of the tests that draw: with a change and without it they do the same
SKIPPED = 77
SAID_OF_BUILD = 4000  # the last characters of what a build that fails has said
# Memory that nobody has written to holds no zeros: what reads too much of an array meets that. The limit
# is of memory that is in use, since the sanitizer reserves all addresses there are.
SANITIZER_EXIT = 99
# Two callers of each piece of memory, without which it never counts as leaked.
# Of the build without one: the same for fresh memory, and a limit of all that is written to.
PERTURB = "165"
DATA_BYTES = 8 << 30
SANITIZER = (f":exitcode={SANITIZER_EXIT}:malloc_context_size=2:max_malloc_fill_size=1073741824"
             ":malloc_fill_byte=165:hard_rss_limit_mb=8192")


@dataclasses.dataclass(eq=False)
class Test:
    name: str
    program: str    # its place in the build
    folder: str     # of tests/
    command: list
    env: dict
    needed: set = frozenset()  # what is built before it runs

    def command_in(self, build):
        return [moved_to(build, word) for word in self.command]

    def env_in(self, build):
        return {name: moved_to(build, value) for name, value in self.env.items()}

    def is_of(self, suite):
        return suite == self.folder or fnmatch.fnmatchcase(f"{self.folder}/{self.name}", suite)

    def is_script(self):
        """True if its command is not the program, but runs it."""
        return not self.command[0].endswith(self.program)

    def is_variant(self):
        """True if it repeats another test over faults, or with another scheme."""
        return bool({"FROND_TEST_FAULTS", "FROND_TEST_SCHEME", "FROND_TEST_INDEXES"} & set(self.env))


def moved_to(build, text):
    """The text, with places in that build for those in the fast one."""
    return re.sub(f"{re.escape(str(PLACES[FAST]))}(?=/|$)", str(PLACES[build.kind]), text)


class Stopped(Exception):
    """The run has been asked to end."""


def run(command, **kwargs):
    return subprocess.run(command, check=True, text=True, capture_output=True, **kwargs).stdout


def sources(near=False):
    """The C sources that are changed, and the suites of their tests; `near`: without servers."""
    found = {}
    for folder in SUITES:
        for path in sorted((TOP / "src" / folder).rglob("*.c")):
            name = str(path.relative_to(TOP))
            if not any(name.startswith(f"src/{left}/") for left in LEFT_OUT):
                found[name] = [suite for suite in SUITES[room_of(name)]
                               if not near or not suite.startswith(("cli/", "door/"))]
    return found


def room_of(path):
    """The folder of SUITES that a source is of."""
    return max((folder for folder in SUITES if path.startswith(f"src/{folder}/")), key=len)


def copy_tree(changed):
    """Brings the copy up to date but for what is changed there, {path: text}, and touches no file that is as it was,
    so that little is built."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP)
    names = {name for name in listed.split("\0") if name and (TOP / name).is_file()}
    for name in names:
        here, there = TOP / name, COPY / name
        text = changed[name].encode() if name in changed else here.read_bytes()
        if not there.is_file() or there.read_bytes() != text:
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)
            there.write_bytes(text)
    for folder, folders, files in os.walk(COPY):
        if folder == str(COPY) and "build" in folders:
            folders.remove("build")
        for there in (pathlib.Path(folder) / file for file in files):
            if str(there.relative_to(COPY)) not in names:
                there.unlink()


def build_env(kind):
    """A cache of what was compiled (cc), and a fast linker, where these are installed, as tests/run has them."""
    env = dict(os.environ, CC=f"{CC} {COMPILERS[kind]}")
    env.setdefault("CCACHE_NOHASHDIR", "1")
    if shutil.which("ld.lld"):
        env.setdefault("CC_LD", "lld")
    return env


class Build:
    """One of the two builds of the copy. What is asked for is built when it is asked for first."""

    def __init__(self, kind):
        self.kind = kind
        self.out = PLACES[kind]
        self.lock = threading.Lock()
        self.built = set()
        self.symbols = {}
        self.commands = {}  # of each source: the object, and the command without what names either

    def configure(self):
        """With what chooses among changes linked into every program."""
        state = hashlib.sha256(CHOSEN.read_bytes()).hexdigest()[:16]
        chosen = HOME / f"chosen-{state}.o"
        subprocess.run(["clang", "-D_GNU_SOURCE", "-O1", "-fPIC", "-fvisibility=hidden", "-c", "-o", str(chosen),
                        str(CHOSEN)], check=True)
        link = f"-Dc_link_args={LINKING[self.kind]}{chosen} {WRAP}"
        made = self.out / "build.ninja"
        if made.exists() and str(CC) not in made.read_text():
            shutil.rmtree(self.out)
        if not made.exists():
            subprocess.run(["meson", "setup", str(self.out), str(COPY), *OPTIONS[self.kind], link],
                           env=build_env(self.kind), check=True, stdout=subprocess.DEVNULL)
        elif chosen.name not in made.read_text():
            subprocess.run(["meson", "configure", str(self.out), link], check=True, stdout=subprocess.DEVNULL)
        self.make("build.ninja")
        self.commands = self.compile_commands()

    def make(self, *targets):
        done = subprocess.run(["ninja", "-C", str(self.out), "-j", str(JOBS), *sorted(set(targets))],
                              env=build_env(self.kind), text=True, stdout=subprocess.PIPE)
        if done.returncode:
            raise ValueError(f"{self.out} is not built: {done.stdout[-SAID_OF_BUILD:]}")

    def need(self, *targets):
        with self.lock:
            if not self.commands:
                self.configure()
            if not self.built.issuperset(targets):
                self.make(*targets)
                self.built.update(targets)

    def compile_commands(self):
        found = {}
        for entry in json.loads((self.out / "compile_commands.json").read_text()):
            path = os.path.relpath(self.out / entry["file"], COPY)
            words, kept = iter(shlex.split(entry["command"])), []
            for word in words:
                if word in ("-o", "-c", "-MF", "-MQ"):
                    next(words)
                elif word not in LEFT_OUT_OF_COMPILING:
                    kept.append(word)
            found[path] = entry["output"], kept
        return found

    def tests(self, suites):
        """The tests of these suites, not built yet. Those for a cluster would only be skipped."""
        out = self.out
        told = json.loads(run(["meson", "introspect", "--tests", "--targets", str(out)]))
        made = {target["id"]: os.path.relpath(target["filename"][0], out) for target in told["targets"]}
        executables = {os.path.relpath(target["filename"][0], out) for target in told["targets"]
                       if target["type"] == "executable"}
        tests = []
        for test in told["tests"]:
            words = [os.path.relpath(out / word, out) for word in test["cmd"]]  # "./frond" is one of out
            programs = [word for word in words if word in executables]
            if not programs or "fdb" in str(test["suite"]):
                continue
            scripts = [os.path.relpath(out / word, COPY) for word in words if word.endswith(".py")]
            folder = os.path.dirname((scripts or programs)[0]).removeprefix("tests/")
            command = [str(out / word) if word in executables else said for word, said in zip(words, test["cmd"])]
            needed = {*programs, *(made[target] for target in test["depends"])}
            found = Test(test["name"], programs[0], folder, command, test["env"], needed)
            if any(found.is_of(suite) for suite in suites):
                tests.append(found)
        for suite in suites:
            if not any(test.is_of(suite) for test in tests):
                raise ValueError(f"no test is of {suite}")
        return tests

    def uses(self, test, path):
        """True if the test's program holds the source: what that defines for others is in it."""
        object_ = self.commands[path][0]
        self.need(object_, *test.needed)
        with self.lock:
            for file in (object_, test.program):
                if file not in self.symbols:
                    self.symbols[file] = defined_by(self.out / file, file == object_)
            return not self.symbols[object_].isdisjoint(self.symbols[test.program])

    def check_command(self, path):
        """What makes warnings of a source errors: clang's, which sees more in a changed condition than gcc does."""
        return ["clang", "-Wno-unknown-warning-option", *self.commands[path][1][1:]]

    def compiled(self, path, source):
        """The object of a source as the compiler optimises it for good. It is not told the file's name, which an
        assertion would keep."""
        with tempfile.TemporaryDirectory() as home:
            there = pathlib.Path(home) / "changed.o"
            subprocess.run([*self.commands[path][1], "-O2", "-w", "-iquote", str((COPY / path).parent), "-o", str(there),
                            "-c", "-x", "c", "-"], cwd=self.out, check=True, capture_output=True, input=source.encode())
            return there.read_bytes()

    def run(self, test, limit, number=0, cases=(), table=None):
        """What the test says, or some of its cases, with a change or without, and after how many seconds."""
        self.need(*test.needed)
        begin = time.monotonic()
        return run_test(self, test, limit, number, cases, table), time.monotonic() - begin


def defined_by(file, for_others):
    """The names of functions and variables: all, or those that an object has for others, which a program that
    is made of it has for itself."""
    said = run(["nm", "--defined-only", "-f", "posix", *(["-g"] if for_others else []), str(file)])
    return {line.split()[0] for line in said.splitlines()}


def group_priority():
    """What Linux divides processors by between sessions, where it does: "" elsewhere."""
    try:
        return AUTOGROUP.read_text().split()[-1]
    except (OSError, IndexError):
        return ""


def limit_process(priority, data_bytes):
    if priority:
        try:
            AUTOGROUP.write_text(priority)
        except OSError:
            pass  # it runs, though not as meekly
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    if data_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))


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


def run_test(build, test, limit, number=0, cases=(), table=None):
    """Runs one test with a change, or some of its cases, up to its first failure: "passed", "skipped", "time", or
    what it said. What it meets is told to the table, a file."""
    room = tempfile.mkdtemp(prefix="mutant-", dir="/tmp")  # short: tests keep paths of few bytes
    os.chmod(room, 0o755)  # a test of root's that opens a store as another user has to get there
    env = dict(os.environ, **test.env_in(build), TMPDIR=room, FROND_TEST_SEED=TEST_SEED)
    if build.kind == SANITIZED:
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + SANITIZER
    else:
        env["MALLOC_PERTURB_"] = PERTURB
    env |= {"MUTANT": str(number)} if number else {}
    env |= {"MUTANT_CASES": ",".join(map(str, cases))} if cases else {}
    env |= {"MUTANT_TABLE": str(table)} if table else {}
    data_bytes = DATA_BYTES if build.kind == FAST else 0
    priority = group_priority()  # a test is a session of its own, which begins with the usual one
    late = threading.Event()
    failed = ""
    try:
        process = RUNNING.start(test.command_in(build), cwd=build.out, env=env, text=True, errors="replace",
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                start_new_session=True, preexec_fn=lambda: limit_process(priority, data_bytes))
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


class Reach:
    """
    The changes whose functions each test calls, and its cases that call them: others it cannot notice. They are
    found out by running it once without a change. `path` is a file that keeps this for other runs, in which the
    test's files, its program with all changes among them, are the same.
    """

    def __init__(self, build, path=None):
        self.build, self.path = build, path
        self.found = {}  # by tests: the cases of each change, and the seconds of each case
        self.kept = {}   # by tests' names and their files: the same
        for line in path.read_text().splitlines() if path and path.exists() else []:
            name, stamp, met, seconds = json.loads(line)
            self.kept[name, stamp] = ({int(number): set(cases) for number, cases in met.items()},
                                      {int(case): took for case, took in seconds.items()})
        self.lock = threading.Lock()
        self.locks = collections.defaultdict(threading.Lock)

    def of(self, test, run_it):
        """`run_it` runs the test with a table, and is true if it passes; None if it does not."""
        with self.lock:
            lock = self.locks[test.name]
        with lock:
            if test.name not in self.found:
                stamp = self.stamp(test)
                self.found[test.name] = self.kept.get((test.name, stamp)) or self.find(test, stamp, run_it)
            return self.found[test.name]

    def stamp(self, test):
        """A hash of the files that the test's command names, or None where nothing is kept."""
        if not self.path:
            return None
        told = hashlib.sha256()
        for word in test.command:
            file = self.build.out / word
            if file.is_file():
                told.update(file.read_bytes())
        return told.hexdigest()

    def find(self, test, stamp, run_it):
        with tempfile.NamedTemporaryFile(prefix="mutant-table-") as file:
            table = pathlib.Path(file.name)
            schema.new_table(table)
            if not run_it(table):
                return None
            met, seconds = schema.read_table(table)
        if self.path:
            with self.lock, self.path.open("a") as kept:
                kept.write(json.dumps([test.name, stamp, {number: sorted(cases) for number, cases in met.items()},
                                       {case: took for case, took in seconds.items() if took}]) + "\n")
        return met, seconds

    def is_being_found(self, test):
        """True if another mutant runs it for that now."""
        with self.lock:
            return test.name not in self.found and self.locks[test.name].locked()

    def cases(self, test, number, run_it):
        """
        The numbers of the cases that call what is changed; none: all of them may notice it, or nothing is known;
        None: the test does not call it. What is called outside of cases may be noticed by all of them.
        """
        found = self.of(test, run_it)
        calling = found[0].get(number, ()) if found else (0,)
        return () if 0 in calling else tuple(sorted(calling)) or None

    def seconds(self, test, number):
        """What these cases took; 0 if they do not call what is changed; None if nothing is known."""
        found = self.found.get(test.name)
        if not found:
            return None
        calling = found[0].get(number, ())
        return None if 0 in calling else sum(found[1].get(case, 0) for case in calling)
