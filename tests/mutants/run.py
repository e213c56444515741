#!/usr/bin/env python3
"""Changes lines of the sources, one at a time, and tells which changes no test notices.

Draws changes by a seed, builds each in a scratch copy of the tree, and runs the suites of the changed
file up to the first failure. The end is a table, the survivors, and the rate; below 90 % killed the exit
code is 1. README.md has the rules.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time

import lexer
import tree

RATE = 0.9
CONFLICT_SHARE = 0.1  # of what is drawn: there are few, and each matters
TIME_FACTOR = 5    # of what a test takes without a change, after which it counts as noticed
TIME_LEAST = 20.0  # seconds
TIME_MOST = 900.0  # without a change
OUTCOMES_FILE = "outcomes"  # in tree.HOME: a line for each mutant, written when it is judged
REASONS = pathlib.Path(__file__).resolve().parent / "reasons"
KILLED, TIME, SURVIVED, EXCUSED, SAME, REFUSED = OUTCOMES = (
    "killed", "timed out", "survived", "reason", "same code", "not compiled")


def say(text):
    print(text, flush=True)


def reasons_of(text):
    """Paragraphs of a path with a function, `- ` the old line, `+ ` the new one, and the reason."""
    found = {}
    for paragraph in text.split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        if len(lines) < 4 or not (lines[1].startswith("- ") and lines[2].startswith("+ ")):
            raise ValueError(f"not a reason: {lines[0]}")
        path, function = lines[0].split()
        found[path, function, lines[1][2:], lines[2][2:]] = " ".join(lines[3:])
    return found


def stale_reasons(reasons, changes):
    """Those whose line or change there is no more."""
    there = {change.fingerprint() for change in changes}
    return sorted(reason for reason in reasons if reason not in there)


def draw(changes, count, seed):
    rng = random.Random(seed)
    conflicts = [change for change in changes if change.kind == lexer.CONFLICT]
    others = [change for change in changes if change.kind != lexer.CONFLICT]
    share = min(len(conflicts), int(count * CONFLICT_SHARE))
    drawn = rng.sample(conflicts, share) + rng.sample(others, min(len(others), count - share))
    rng.shuffle(drawn)
    return drawn


class Outcomes:
    """The file of outcomes. What a run has judged is kept however the run ends."""

    def __init__(self, path):
        self.path = path

    def begin(self):
        self.path.write_text("")

    def add(self, change, outcome, why):
        with self.path.open("a") as file:
            file.write(json.dumps([*change.fingerprint(), outcome, why]) + "\n")

    def survivors(self):
        """The fingerprints of changes that have survived, the last time that they were judged."""
        last = {}
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            *fingerprint, outcome, _ = json.loads(line)
            last[tuple(fingerprint)] = outcome
        return {fingerprint for fingerprint, outcome in last.items() if outcome == SURVIVED}


class Run:
    def __init__(self, tests, texts, folders, workers, outcomes=None):
        self.outcomes = outcomes
        self.tests, self.texts, self.suites = tests, texts, folders
        self.commands = workers[0].commands
        self.programs = workers[0].programs
        self.free = list(workers)
        self.lock = threading.Lock()
        self.kills = 0
        self.last_kill = {}  # of a test by changes of a path: the how manieth kill it was
        self.killers = collections.Counter()  # (room, name of a test)
        self.unsound = {}  # tests that fail without a change, and how
        self.results = []

    def order(self, path):
        """The tests of a file: those that noticed a change of it last, the near ones, the fast ones."""
        using = self.programs.users.get(self.commands[path][0], set())
        suites, room = self.suites[path], tree.room_of(path)

        def place(test):
            near = next(i for i, suite in enumerate(suites) if test.is_of(suite))
            return (-self.last_kill.get((path, test.name), 0), near, test.is_variant(),
                    -self.killers[room, test.name] // 4, test.seconds)
        return sorted((test for test in self.tests
                       if test.program in using and any(map(test.is_of, suites))), key=place)

    def is_sound(self, worker, test):
        """Runs a test without a change, and notes how long that takes; False if it fails."""
        outcome, seconds = worker.run(test, TIME_MOST, False)
        if outcome == "passed":
            test.seconds = max(test.seconds, seconds)
            return True
        if test.name not in self.unsound:
            say(f"     {test.name} is of no use, without a change: {outcome}")
        self.unsound[test.name] = outcome
        return False

    def notices(self, worker, test):
        """
        What the test says of the change, or "". The machine may be busy: what fails is run without
        the change, too, and being late counts only beside what that takes now.
        """
        while test.name not in self.unsound:
            limit = max(TIME_LEAST, TIME_FACTOR * test.seconds)
            outcome, seconds = worker.run(test, limit, True)
            if outcome == "passed":
                test.seconds = max(test.seconds, seconds)
            if outcome in ("passed", "skipped") or not self.is_sound(worker, test):
                break
            if outcome != "time" or TIME_FACTOR * test.seconds <= limit:
                return outcome
        return ""

    def judge(self, worker, change):
        source = self.texts[change.path]
        compiled = worker.compile(change.path, change.apply(source))
        if compiled is None:
            return REFUSED, ""
        if worker.is_unchanged(change.path, source, compiled):
            return SAME, ""
        worker.begin()
        tests = self.order(change.path)
        for test in tests:
            outcome = self.notices(worker, test)
            if outcome:
                with self.lock:
                    self.kills += 1
                    self.last_kill[change.path, test.name] = self.kills
                    self.killers[tree.room_of(change.path), test.name] += 1
                return (TIME if outcome == "time" else KILLED), f"{test.name}: {outcome}"
        return SURVIVED, f"{len(tests)} tests passed"

    def one(self, change):
        begin = time.monotonic()
        with self.lock:
            worker = self.free.pop()
        try:
            outcome, why = self.judge(worker, change)
        except tree.Stopped:
            return
        finally:
            with self.lock:
                self.free.append(worker)
        seconds = time.monotonic() - begin
        with self.lock:
            self.results.append((change, outcome, why))
            if self.outcomes:
                self.outcomes.add(change, outcome, why)
            say(f"{len(self.results):4} {outcome:12} {change.path}:{change.line} [{change.kind}] "
                f"{seconds:.0f} s {why}")
            if outcome == SURVIVED:
                show(change)

    def all(self, changes, jobs):
        """Judges them; an interrupt ends what runs, and leaves what is known."""
        pool = concurrent.futures.ThreadPoolExecutor(jobs)
        try:
            for done in [pool.submit(self.one, change) for change in changes]:
                done.result()
            return True
        except KeyboardInterrupt:
            return False
        finally:
            tree.RUNNING.stop()
            pool.shutdown(cancel_futures=True)


def show(change, why=""):
    say(f"{change.path}:{change.line} {change.function} [{change.kind}] {why}".rstrip())
    say(f"- {change.old}\n+ {change.new}")


def report(results, reasons, unsound):
    """Prints what was found; true if enough was killed, and no test fails by itself."""
    rooms = collections.defaultdict(collections.Counter)
    survivors = []
    for change, outcome, why in results:
        if outcome == SURVIVED and change.fingerprint() in reasons:
            outcome = EXCUSED
        if outcome == SURVIVED:
            survivors.append((change, why))
        rooms[tree.room_of(change.path)][outcome] += 1
        rooms["all"][outcome] += 1
    say("")
    say(f"{'':10}" + "".join(f"{outcome:>14}" for outcome in OUTCOMES))
    for room in sorted(rooms, key=lambda name: (name == "all", name)):
        say(f"{room:10}" + "".join(f"{rooms[room][outcome]:14}" for outcome in OUTCOMES))
    for change, why in survivors:
        say("")
        show(change, why)
    killed = rooms["all"][KILLED] + rooms["all"][TIME]
    counted = killed + len(survivors)
    rate = killed / counted if counted else 0.0
    for name, outcome in sorted(unsound.items()):
        say(f"\nfails without a change: {name}: {outcome}")
    say(f"\n{killed} of {counted} killed, {100 * rate:.1f} %, {len(survivors)} survived")
    return rate >= RATE and not unsound


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=400, help="changes that are drawn")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants side by side")
    parser.add_argument("--at", action="append", metavar="PATH[:LINE]",
                        help="all changes of a file or a line in the place of drawn ones")
    parser.add_argument("--again", action="store_true",
                        help="the survivors of the runs before, in the place of drawn ones")
    parser.add_argument("--near", action="store_true",
                        help="no tests that run servers: faster, and others may notice what survives")
    return parser.parse_args()


def chosen(changes, options, outcomes):
    if options.again:
        survivors = outcomes.survivors()
        return [change for change in changes if change.fingerprint() in survivors]
    if not options.at:
        return draw(changes, options.count, options.seed)
    return [change for change in changes
            if {change.path, f"{change.path}:{change.line}"} & set(options.at)]


def main():
    options = parse()
    say(f"SEED={options.seed}")
    tree.HOME.mkdir(parents=True, exist_ok=True)
    tree.copy_tree()
    folders = tree.sources(options.near)
    texts = {path: (tree.COPY / path).read_text() for path in folders}
    changes = [change for path, text in texts.items() for change in lexer.changes_of(path, text)]
    reasons = reasons_of(REASONS.read_text())
    for stale in stale_reasons(reasons, changes):
        say(f"a reason for what is gone: {' '.join(stale)}")
        return 1
    outcomes = Outcomes(tree.HOME / OUTCOMES_FILE)
    wanted = chosen(changes, options, outcomes)
    if not options.again and not options.at:
        outcomes.begin()
    tree.configure()
    tests = tree.tests_of_build({suite for change in wanted for suite in folders[change.path]})
    commands = tree.compile_commands()
    programs = tree.Programs({test.program for test in tests})
    say(f"{len(wanted)} of {len(changes)} changes, {len(tests)} tests")
    workers = [tree.Worker(number, commands, programs) for number in range(options.jobs)]
    all_of_it = Run(tests, texts, folders, workers, outcomes)
    begin = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    complete = all_of_it.all(wanted, options.jobs)
    good = report(all_of_it.results, reasons, all_of_it.unsound)
    took = time.monotonic() - begin
    say(f"{len(all_of_it.results)} of {len(wanted)} drawn with SEED={options.seed} in {took:.0f} s")
    return 0 if complete and good else 1


if __name__ == "__main__":
    sys.exit(main())
