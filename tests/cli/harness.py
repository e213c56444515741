"""What the black-box tests of the binary share: TAP, running frond, a server as a fixture."""

import fcntl
import itertools
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TESTS), str(TESTS / "mutants")]
import cases
import foundationdb

FROND = os.path.abspath(sys.argv[1])
ENV = dict(os.environ, no_proxy="*", NO_PROXY="*", LC_ALL="C")
ENV.pop("FROND_ADMIN", None)

_tests = []


class Skip(Exception):
    """A test raises it to be named as skipped for what it needs."""


def test(fn):
    """Registers a test; its name is its sentence. It gets an empty directory to work in."""
    _tests.append(fn)
    return fn


PATIENCE_SECONDS = 600  # with an answer: on a busy machine a worker is long in coming

# Under a sanitizer a command takes a third of its time to look for what it has leaked, and another to guard
# what lies around static arrays, which tests of units guard, too. So does every fourth; which ones these are
# differs between turns of all tests.
GUARDED_EVERY = 4
_programs = itertools.count(int(os.environ.get("FROND_TEST_TURN", "0")))


def environment(more, unguarded):
    """Of one more program. Three of four leave out what these options of the sanitizer say."""
    env = {**ENV, **(more or {})}
    if next(_programs) % GUARDED_EVERY:
        env["ASAN_OPTIONS"] = f"{env.get('ASAN_OPTIONS', '')}:{unguarded}"
    return env


def run(*args, cwd, stdin=None, env=None, timeout=PATIENCE_SECONDS):
    return subprocess.run(
        [FROND, *args], cwd=cwd, input=stdin, env=environment(env, "detect_leaks=0:report_globals=0"),
        capture_output=True, text=True, timeout=timeout)


def ok(*args, **kwargs):
    result = run(*args, **kwargs)
    assert result.returncode == 0, f"{args}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result


def equal(got, expected):
    if isinstance(got, list) and isinstance(expected, list) and max(len(got), len(expected)) > 100:
        # A report that is cut in the middle of the one tells nothing of the other.
        same = next((n for n, (a, b) in enumerate(zip(got, expected)) if a != b), min(len(got), len(expected)))
        assert got == expected, (f"behind {same} of the same, of {len(got)} got {got[same:same + 10]!r}\n"
                                 f"of {len(expected)} expected {expected[same:same + 10]!r}")
    assert got == expected, f"got {got!r}\nexpected {expected!r}"


def contains(text, part):
    assert part in text, f"{part!r} is not in:\n{text}"


# Few rounds: 600,000 of them take two seconds of a processor under a sanitizer, and an administrator's
# password is hashed at each start. What the default is, and that it is served, others tell (test_users.py).
# And patience with functions in JavaScript: their workers let all others of a busy machine go first.
QUICK = "[chttpd_auth]\niterations = 10\n[couchdb]\nos_process_timeout = 60000\n"


def with_settings(cwd, options):
    """The options, and a file of settings for a server that has none."""
    if "--config" in options:
        return options
    path = pathlib.Path(cwd) / "quick.ini"
    path.write_text(QUICK)
    return (*options, "--config", str(path))


class Server:
    """`with Server(dir, *options) as server`: a frond that serves on a free port. A file of settings that
    a test gives to one with an administrator begins with QUICK; without `settings` there is none."""

    def __init__(self, cwd, *options, env=None, http="127.0.0.1:0", before=None, settings=True):
        self.stop_code = None
        listen = ["--http", http] if http else []
        self.log = open(pathlib.Path(cwd) / "server.log", "w")
        self.process = subprocess.Popen(
            [FROND, "serve", *listen, *(with_settings(cwd, options) if settings else options)], cwd=cwd,
            env=environment(env, "report_globals=0"), stdout=subprocess.PIPE, stderr=self.log, text=True,
            preexec_fn=before)
        line = self.process.stdout.readline()
        assert " at http" in line, f"frond serve did not start: {line}{self.read_log()}"
        self.url = line.split(" at ")[1].strip().rstrip("/")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self.log.close()

    def read_log(self):
        # Opened anew: the server has the place in the open file in common with this program.
        return pathlib.Path(self.log.name).read_text()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        try:
            self.stop_code = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.stop_code

    def request(self, method, path, body=None, headers=None):
        """Status and JSON; the status of an error, too."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data=data, method=method,
            headers={"Content-Type": "application/json", **(headers or {})})
        try:
            with opener.open(request, timeout=PATIENCE_SECONDS) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def metrics(self, headers=None):
        """The numbers that it shows to Prometheus, by name: with the labels, if there are any."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(self.url + "/_node/_local/_prometheus", headers=headers or {})
        with opener.open(request, timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}


def make_quick_store(cwd):
    """A store with a setting to hash quickly, which is for commands without a server, too."""
    with Server(cwd) as server:
        status, _ = server.request("PUT", "/_node/_local/_config/chttpd_auth/iterations", "10")
        equal(status, 200)


def run_threads(*jobs):
    """Runs them side by side; what one of them raises is raised."""
    failures = []

    def guarded(job):
        try:
            job()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def until(condition, seconds=120, told=lambda: ""):
    """Waits until the condition holds, and returns its value; fails if it does not for so long, with
    what is told then. A turn counts as a second at most, however long it asked: a machine that stands
    still for minutes goes on at the next one. What takes long to ask, such as a program, is asked less often,
    so that asking does not take the processors from what is waited for."""
    left = seconds
    started = time.monotonic()
    while not (value := condition()):
        assert left > 0, f"it has not happened within {seconds} seconds {told()}"
        time.sleep(min(max(0.02, 3 * (time.monotonic() - started)), 0.75))
        now = time.monotonic()
        left -= min(now - started, 1)
        started = now
    return value


def computed(pid):
    """The seconds that a process has computed."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ended_programs():
    """The seconds that this program and those which it began and which have ended have computed."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


_cluster = None


def take_cluster(paths):
    """Locks the first cluster file that no other program has, until this one ends; waits for one. The
    cluster is empty then: what another program left could become part of a new database, since the
    programs in C give databases numbers of their own choice."""
    while True:
        for path in paths:
            file = open(path.partition("?")[0])
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                continue
            foundationdb.empty(file.name)
            return file, path
        time.sleep(0.02)


def cluster():
    """The URL of a FoundationDB cluster of those whose files FROND_TEST_FDB names, with colons between
    them, some with a "?prefix=…", which is this program's until it ends; None without one."""
    global _cluster
    paths = list(filter(None, os.environ.get("FROND_TEST_FDB", "").split(":")))
    if paths and not _cluster:
        _cluster = take_cluster(paths)
    return f"fdb:{_cluster[1]}" if paths else None


SEEDS_A_TURN = 1000


def seed(variant):
    """What a variant draws its choices from: another in each turn of all tests, or FROND_TEST_SEED."""
    turn = int(os.environ.get("FROND_TEST_TURN", "0"))
    return int(os.environ.get("FROND_TEST_SEED", SEEDS_A_TURN * turn + int(variant)))


def main(needs=None):
    """Runs all tests, or names them as skipped for what they need."""
    if needs:
        print(f"1..{len(_tests)}")
        for number, fn in enumerate(_tests, 1):
            print(f"ok {number} - {fn.__name__} # SKIP {needs}")
        return
    failed = 0
    print(f"1..{len(_tests)}", flush=True)
    for number, fn in enumerate(_tests, 1):
        if not cases.is_wanted(number):
            continue
        directory = tempfile.mkdtemp(prefix="frond-cli-")
        begun, before = time.monotonic(), ended_programs()
        try:
            with cases.case(number):
                fn(pathlib.Path(directory))
            print(f"ok {number} - {fn.__name__}", flush=True)
        except Skip as needs:
            print(f"ok {number} - {fn.__name__} # SKIP {needs}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {fn.__name__}")
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
            sys.stdout.flush()
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        print(f"# {time.monotonic() - begun:.1f} s, {ended_programs() - before:.1f} s of processors", flush=True)
    sys.exit(1 if failed else 0)
