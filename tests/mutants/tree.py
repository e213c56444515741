"""The scratch copy of the tree that mutants are made of, its build, and its test programs.

The copy and its build are made once and never hold a mutant. A mutant is one source that is compiled by
the build's own command into a folder of a worker's own; the object is then linked before the libraries, so
that the linker takes nothing from the library's unchanged one.
"""

import dataclasses
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
OUT = HOME / "out"
# What builds fastest: no sanitizers, nothing for a debugger, little optimisation.
OPTIONS = ["-Doptimization=1", "-Ddebug=false"]

# The folders of sources, and those of the tests that are theirs, the nearest first.
SUITES = {
    "kv": ["kv", "iso"],
    "catalog": ["catalog", "model"],
    "model/revisioned": ["model"],
    "model/timed": ["model/timed"],
    "model/plain": ["model/plain"],
    "index": ["index", "model", "model/plain"],
    "access": ["access"],
    "mql": ["mql", "model/plain"],
}
# What no suite runs without a cluster, and what only injects faults into tests.
LEFT_OUT = ["kv/fdb", "kv/faulty"]

TIME_FACTOR = 10
TIME_LEAST = 20.0  # seconds; others use the machine, too
MEMORY_BYTES = 8 << 30
FILE_BYTES = 2 << 30
SKIPPED = 77


@dataclasses.dataclass
class Test:
    name: str
    program: str    # its place in the build
    folder: str     # of tests/
    args: list
    env: dict
    seconds: float = 0.0


def run(command, **kwargs):
    return subprocess.run(command, check=True, text=True, capture_output=True, **kwargs).stdout


def sources():
    """The C sources that are changed, and the folders of their tests."""
    found = {}
    for folder, tests in SUITES.items():
        for path in sorted((COPY / "src" / folder).rglob("*.c")):
            name = str(path.relative_to(COPY))
            if not any(name.startswith(f"src/{left}/") for left in LEFT_OUT):
                found[name] = tests
    return found


def room_of(path):
    return path.split("/")[1]


def copy_tree():
    """Brings the copy up to date, and touches no file that is as it was, so that little is built."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP)
    names = {name for name in listed.split("\0") if name and (TOP / name).is_file()}
    for name in names:
        here, there = TOP / name, COPY / name
        if not there.is_file() or there.read_bytes() != here.read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, there)
    for there in COPY.rglob("*"):
        if there.is_file() and str(there.relative_to(COPY)) not in names:
            there.unlink()


def configure():
    if (OUT / "build.ninja").exists():
        return
    env = dict(os.environ, CC=os.environ.get("CC", "clang"))
    if shutil.which("ld.lld"):
        env["CC_LD"] = "lld"
    subprocess.run(["meson", "setup", str(OUT), str(COPY), *OPTIONS], env=env, check=True)


def tests_of_build():
    """The test programs of the folders above, built. Those for a cluster would only be skipped."""
    subprocess.run(["ninja", "-C", str(OUT), "build.ninja"], check=True)
    folders = {folder for tests in SUITES.values() for folder in tests}
    tests = []
    for test in json.loads(run(["meson", "introspect", "--tests", str(OUT)])):
        program = os.path.relpath(test["cmd"][0], OUT)
        folder = os.path.dirname(program).removeprefix("tests/")
        if program.startswith("tests/") and folder in folders and "fdb" not in str(test["suite"]):
            tests.append(Test(test["name"], program, folder, test["cmd"][1:], test["env"]))
    subprocess.run(["nice", "ninja", "-C", str(OUT), *sorted({test.program for test in tests})],
                   check=True)
    return tests


class Programs:
    """How each test program is linked, and of which objects of libraries."""

    def __init__(self, programs):
        self.links, self.users = {}, {}
        for program in sorted(programs):
            said = run(["ninja", "-C", str(OUT), "-t", "commands", program])
            link = shlex.split(said.splitlines()[-1])
            at = link.index("-o")
            self.links[program] = link[:at], link[at + 2:]
            for user in self.objects_of(program):
                self.users.setdefault(user, set()).add(program)

    def command(self, program, output, objects=()):
        before, after = self.links[program]
        return [*before, "-o", str(output), *map(str, objects), *after]

    def objects_of(self, program):
        with tempfile.TemporaryDirectory(dir=HOME) as room:
            said = run([*self.command(program, pathlib.Path(room) / "program"), "-Wl,-t"], cwd=OUT)
        for folder, member in re.findall(r"^(.*/)[^/]*\.a\((.*)\)$", said, re.MULTILINE):
            yield folder + member


def compile_commands():
    """For each source of the copy, the object and the command without what names either."""
    found = {}
    for entry in json.loads((OUT / "compile_commands.json").read_text()):
        path = os.path.relpath(OUT / entry["file"], COPY)
        words, kept = iter(shlex.split(entry["command"])), []
        for word in words:
            if word in ("-o", "-c", "-MF", "-MQ"):
                next(words)
            elif word != "-MD":
                kept.append(word)
        found[path] = entry["output"], kept
    return found


def limit_process():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))


def end_group(process):
    """Ends the program and what it started. Its id is its own until it is waited for."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_test(test, program, seconds):
    """Runs one test up to its first failure: "passed", "skipped", "time", or what it said."""
    room = tempfile.mkdtemp(prefix="mutant-", dir="/tmp")  # short: tests keep paths of few bytes
    env = dict(os.environ, **test.env, TMPDIR=room)
    process = subprocess.Popen([str(program), *test.args], cwd=OUT, env=env, text=True,
                               errors="replace", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               start_new_session=True, preexec_fn=limit_process)
    late = threading.Event()
    timer = threading.Timer(seconds, lambda: (late.set(), end_group(process)))
    timer.start()
    failed = ""
    try:
        for line in process.stdout:
            if line.startswith("not ok"):
                failed = line.strip()
                break
    finally:
        timer.cancel()
        if failed:
            end_group(process)
        process.stdout.close()
        code = process.wait()
        shutil.rmtree(room, ignore_errors=True)
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
        self.unchanged = {}
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

    def link(self, program):
        there = self.home / os.path.basename(program)
        subprocess.run(self.programs.command(program, there, [self.home / "mutant.o"]), cwd=OUT,
                       check=True, capture_output=True)
        return there

    def kills(self, path, tests):
        """The first of the tests that fails with the mutant, and how; or None."""
        linked = {}
        try:
            for test in tests:
                if test.program not in linked:
                    linked[test.program] = self.link(test.program)
                limit = max(TIME_LEAST, TIME_FACTOR * test.seconds)
                outcome = run_test(test, linked[test.program], limit)
                if outcome != "passed":
                    return test, outcome
        finally:
            for program in linked.values():
                program.unlink(missing_ok=True)
        return None


def measure(tests):
    """Runs what is not changed: the tests that pass, with their time; and the names of others."""
    passed, failed = [], []
    for test in tests:
        begin = time.monotonic()
        outcome = run_test(test, OUT / test.program, 600)
        test.seconds = time.monotonic() - begin
        if outcome == "passed":
            passed.append(test)
        elif outcome != "skipped":
            failed.append(f"{test.name}: {outcome}")
    return passed, failed
