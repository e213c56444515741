#!/usr/bin/env python3
"""Changes lines of the sources, one at a time, and tells which changes no test notices.

Draws changes by a seed, builds them all at once in a scratch copy of the tree, and runs the suites of each
changed file with that change up to the first failure. The end is a table, the survivors, and the rate; below 90 % killed the exit
code is 1. README.md has the rules.
"""

import argparse
import collections
import concurrent.futures
import fcntl
import itertools
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time

import lexer
import schema
import tree

RATE = 0.9
USUAL_COUNT = 400
CONFLICT_SHARE = 0.1  # of what is drawn: there are few, and each matters
TIME_FACTOR = 5    # of what a test takes without a change, after which it counts as noticed
TIME_LEAST = 20.0  # seconds
TIME_MOST = 900.0  # without a change
LATELY = 1800.0    # seconds in which a test that has passed does not start to fail by itself
NAMESAKE = 5       # so many times more is expected of a test with a word of the source's name
SCRIPT_SECONDS, PROGRAM_SECONDS, LEAST_SECONDS = 20.0, 2.0, 0.3  # of a test that has not run yet; of any
# An assertion of the sources, or a sanitizer, has ended the process.
ENDED = {f"exit -{int(signal.SIGABRT)}", f"exit {tree.SANITIZER_EXIT}"}
KNOWN_FILE = "known"  # in tree.HOME: what tests take, and what they kill
REACH_FILE = "reach"  # in tree.HOME: which changes each test calls, for a run that goes on with the same ones
OUTCOMES_FILE = "outcomes"  # in tree.HOME: a line for each mutant, written when it is judged
REASONS = pathlib.Path(__file__).resolve().parent / "reasons"
KILLED, TIME, SURVIVED, EXCUSED, SAME, REFUSED, OPEN = OUTCOMES = (
    "killed", "timed out", "survived", "reason", "same code", "not compiled", "given up")


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
        if any(line.startswith("src/") for line in lines[1:]):
            raise ValueError(f"two reasons without a line between them: {lines[0]}")
        path, function = lines[0].split()
        found[path, function, lines[1][2:], lines[2][2:]] = " ".join(lines[3:])
    return found


def stale_reasons(reasons, changes):
    """Those whose line or change there is no more."""
    there = {change.fingerprint() for change in changes}
    return sorted(reason for reason in reasons if reason not in there)


def draw(changes, count, seed, even=False):
    rng = random.Random(seed)
    if even:
        rooms = collections.defaultdict(list)
        for change in changes:
            rooms[tree.room_of(change.path)].append(change)
        turns = [rng.sample(rooms[room], min(len(rooms[room]), -(-count // len(rooms)))) for room in rooms]
        return [change for turn in itertools.zip_longest(*turns) for change in turn if change][:count]
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

    def last(self):
        """{fingerprint: (outcome, why)} of what was judged, the last time that it was."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return {tuple(fingerprint): (outcome, why) for *fingerprint, outcome, why in map(json.loads, lines)}

    def rest(self, changes):
        """Those that were not judged yet, and the results of those that were."""
        last = self.last()
        return ([change for change in changes if change.fingerprint() not in last],
                [(change, *last[change.fingerprint()]) for change in changes if change.fingerprint() in last])

    def survivors(self):
        return {fingerprint for fingerprint, (outcome, _) in self.last().items() if outcome in (SURVIVED, OPEN)}


def shares_a_word(path, name):
    """True for verify_atts.c and revisioned_attachments, or for tally.c and revisioned_tally."""
    words = [word for word in pathlib.Path(path).stem.split("_") if len(word) >= 3]
    return any(other.startswith(word.rstrip("s")) for word in words for other in name.split("_"))


class Known:
    """What is known of the tests, also of runs before: how long each takes, and what it kills by rooms."""

    def __init__(self, path=None):
        self.path = path
        self.seconds, self.tries, self.kills = {}, collections.Counter(), collections.Counter()
        if path and path.exists():
            told = json.loads(path.read_text())
            self.seconds.update(told["seconds"])
            self.tries.update(told["tries"])
            self.kills.update(told["kills"])

    def save(self):
        if self.path:
            self.path.write_text(json.dumps(
                {"seconds": self.seconds, "tries": self.tries, "kills": self.kills}, indent=1))

    def note(self, room, test, killed):
        key = f"{room} {test.name}"
        self.tries[key] += 1
        self.kills[key] += killed

    def worth(self, path, near, test, seconds=None):
        """
        Kills that are to be expected of a second; of a test that was not tried yet, by its nearness, and
        more if it is called as the source is. `seconds` are what those of its cases take that call the change.
        """
        key = f"{tree.room_of(path)} {test.name}"
        guess = (0.1 if test.is_variant() else 0.5) * (1 + NAMESAKE * shares_a_word(path, test.name))
        expected = (self.kills[key] + guess / (near + 1)) / (self.tries[key] + 1)
        took = seconds if seconds is not None else self.seconds.get(
            test.name, SCRIPT_SECONDS if test.is_script() else PROGRAM_SECONDS)
        return expected / max(took, LEAST_SECONDS)


class Run:
    def __init__(self, tests, texts, folders, numbers, builds, outcomes=None, known=None, patience=None, near=False,
                 reach_file=None):
        """`numbers` of the changes that the builds hold; the compiler has refused the others."""
        self.outcomes, self.known, self.patience = outcomes, known or Known(), patience
        self.near = near
        self.reach = tree.Reach(builds[0], reach_file)
        self.tests, self.texts, self.suites, self.numbers = tests, texts, folders, numbers
        self.fast, self.sanitized = builds
        self.lock = threading.Lock()
        self.kills = 0
        self.last_kill = {}  # of a test by changes of a path: the how manieth kill it was
        self.passed = {}   # when cases of a test have passed last, with a change or without
        self.took = collections.Counter()  # the most seconds that they took then
        self.whole = set()  # tests whose cases fail where the rest does not run
        self.unsound = {}  # tests that fail without a change, and how
        self.skipped = set()
        self.results = []

    def order(self, path, number=0):
        """The tests of a file: those that noticed a change of it last, then those that kill most a second."""
        suites = self.suites[path]

        def place(test):
            near = next(i for i, suite in enumerate(suites) if test.is_of(suite))
            seconds = self.reach.seconds(test, number) if number else None
            return -self.last_kill.get((path, test.name), 0), -self.known.worth(path, near, test, seconds)
        return sorted((test for test in self.tests if any(map(test.is_of, suites))), key=place)

    def note_pass(self, build, test, seconds, cases=()):
        key = build.kind, test.name, cases
        self.took[key] = max(self.took[key], seconds)
        self.passed[key] = time.monotonic()
        if build is self.fast and not cases:
            self.known.seconds[test.name] = seconds

    def is_sound(self, build, test, cases=(), table=None):
        """Runs a test or some of its cases without a change, and notes how long that takes; False if it fails."""
        outcome, seconds = build.run(test, TIME_MOST, 0, cases, table)
        if outcome == "passed":
            self.note_pass(build, test, seconds, cases)
            return True
        if outcome == "skipped":
            self.skipped.add(test.name)
        elif cases:
            self.whole.add(test.name)
        else:
            if test.name not in self.unsound:
                say(f"     {test.name} is of no use, without a change: {outcome}")
            self.unsound[test.name] = outcome
        return False

    def has_passed_lately(self, build, test, cases=()):
        return time.monotonic() - self.passed.get((build.kind, test.name, cases), -LATELY) < LATELY

    def notices(self, build, test, number, cases=()):
        """
        What the test, or those of its cases, say of the change, or "". The machine may be busy, and a test may
        fail now and then: one that fails has to have passed a short time ago, or is run without the change, and
        then has to fail once more, unless what ended it is no matter of time. Being late counts only beside what
        the test takes now without the change. Cases that fail alone without the change run with the others.
        """
        failed = 0
        while test.name not in self.unsound and test.name not in self.skipped:
            if test.name in self.whole:
                cases = ()
            key = build.kind, test.name, cases
            limit = max(TIME_LEAST, TIME_FACTOR * self.took[key])
            outcome, seconds = build.run(test, limit, number, cases)
            if outcome == "passed":
                self.note_pass(build, test, seconds, cases)
            if outcome == "skipped":
                self.skipped.add(test.name)
            if outcome in ("passed", "skipped"):
                break
            late = outcome == "time"
            if (late or not self.has_passed_lately(build, test, cases)) and not self.is_sound(build, test, cases):
                continue  # with all cases, or not at all
            if late and TIME_FACTOR * self.took[key] <= limit:
                return outcome
            failed += not late
            if failed == 2 or outcome in ENDED:
                return outcome
        return ""

    def may_notice(self, test, change):
        """The cases that call the changed function; none: any may; None: the test cannot."""
        if not self.fast.uses(test, change.path):
            return None
        cases = self.reach.cases(test, self.numbers[change],
                                 lambda table: self.is_sound(self.fast, test, (), table))
        return None if test.name in self.unsound or test.name in self.skipped else cases

    def is_same(self, change):
        """True if the compiler makes the same of both, which then behave the same."""
        source = self.texts[change.path]
        return self.fast.compiled(change.path, source) == self.fast.compiled(change.path, change.apply(source))

    def in_turn(self, tests):
        """What another mutant runs for the first time comes later, so that no mutant waits while there are others."""
        rest = list(tests)
        while rest:
            at = next((i for i, test in enumerate(rest) if not self.reach.is_being_found(test)), 0)
            yield rest.pop(at)

    def judge(self, change):
        if change not in self.numbers:
            return REFUSED, ""
        begin, number, count = time.monotonic(), self.numbers[change], 0
        room = tree.room_of(change.path)
        ordered = self.order(change.path, number)
        programs, scripts = ([test for test in ordered if test.is_script() == are] for are in (False, True))
        for build, tests in ((self.fast, programs), (self.sanitized, programs), (self.fast, scripts)):
            if build is self.sanitized and self.is_same(change):
                return SAME, ""
            for test in self.in_turn(tests if not self.near or build is self.fast else ()):
                if self.patience and time.monotonic() - begin > self.patience:
                    return OPEN, f"{count} tests passed"
                cases = self.may_notice(test, change)
                if cases is None:
                    continue
                count += build is self.fast
                outcome = self.notices(build, test, number, cases)
                with self.lock:
                    self.known.note(room, test, bool(outcome))
                    if outcome:
                        self.kills += 1
                        self.last_kill[change.path, test.name] = self.kills
                if outcome:
                    return (TIME if outcome == "time" else KILLED), f"{test.name}: {outcome}"
        return SURVIVED, f"{count} tests passed"

    def one(self, change):
        begin = time.monotonic()
        try:
            outcome, why = self.judge(change)
        except tree.Stopped:
            return
        seconds = time.monotonic() - begin
        with self.lock:
            self.results.append((change, outcome, why))
            self.known.save()
            if self.outcomes:
                self.outcomes.add(change, outcome, why)
            say(f"{len(self.results):4} {outcome:12} {change.path}:{change.line} [{change.kind}] "
                f"{seconds:.0f} s {why}")
            if outcome in (SURVIVED, OPEN):
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


def report(results, reasons, unsound, skipped):
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
    say(f"{'':20}" + "".join(f"{outcome:>14}" for outcome in OUTCOMES) + f"{'rate':>10}")
    for room in sorted(rooms, key=lambda name: (name == "all", name)):
        say(f"{room:20}" + "".join(f"{rooms[room][outcome]:14}" for outcome in OUTCOMES) +
            f"{100 * rate_of(rooms[room]):8.1f} %")
    for change, why in survivors:
        say("")
        show(change, why)
    for name in sorted(skipped):
        say(f"\nskipped, and has judged nothing: {name}")
    for name, outcome in sorted(unsound.items()):
        say(f"\nfails without a change: {name}: {outcome}")
    all_ = rooms["all"]
    say(f"\n{killed_of(all_)} of {killed_of(all_) + all_[SURVIVED]} killed, {100 * rate_of(all_):.1f} %, "
        f"{all_[SURVIVED]} survived")
    return rate_of(all_) >= RATE and not unsound


def killed_of(counts):
    return counts[KILLED] + counts[TIME]


def rate_of(counts):
    """Of what is counted; 0 if that is nothing."""
    return killed_of(counts) / max(1, killed_of(counts) + counts[SURVIVED])


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=USUAL_COUNT, help="changes that are drawn")
    parser.add_argument("--even", action="store_true", help="as many changes of each folder, in turn")
    parser.add_argument("--in", action="append", dest="folders", metavar="FOLDER",
                        help="drawn of that folder of src/ alone, for example kv/embedded")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants side by side")
    parser.add_argument("--at", action="append", metavar="PATH[:LINE]",
                        help="all changes of a file or a line in the place of drawn ones")
    parser.add_argument("--again", action="store_true",
                        help="the survivors of the runs before, in the place of drawn ones")
    parser.add_argument("--go-on", action="store_true",
                        help="what the run before had drawn and not judged, with its --seed and --count")
    parser.add_argument("--patience", type=float, metavar="SECONDS",
                        help="no further test of a change after that; it is then given up, and not counted")
    parser.add_argument("--near", action="store_true",
                        help="no tests that run servers, and no sanitizers: faster, and others may notice what survives")
    return parser.parse_args()


def chosen(changes, options, outcomes):
    if options.again:
        survivors = outcomes.survivors()
        return [change for change in changes if change.fingerprint() in survivors]
    if options.folders:
        inside = tuple(f"src/{folder.strip('/')}/" for folder in options.folders)
        changes = [change for change in changes if change.path.startswith(inside)]
    if not options.at:
        return draw(changes, options.count, options.seed, options.even)
    return [change for change in changes
            if {change.path, f"{change.path}:{change.line}"} & set(options.at)]


def put_in(wanted, texts, builds):
    """Has the changes in the copy of the tree, but for those that the compiler refuses, and returns their numbers."""
    numbers = {change: number for number, change in enumerate(wanted, 1)}
    if len(numbers) >= schema.MUTANTS_MAX:
        raise ValueError(f"more than {schema.MUTANTS_MAX - 1} changes at once")
    by_paths = collections.defaultdict(dict)
    for change, number in numbers.items():
        by_paths[change.path][number] = change
    tree.copy_tree({path: schema.source_of(path, texts[path], found) for path, found in by_paths.items()})
    builds[0].configure()

    def taken(path):
        return path, schema.without_refused(path, texts[path], by_paths[path], builds[0].check_command(path),
                                            builds[0].out, tree.COPY / path)
    with concurrent.futures.ThreadPoolExecutor(tree.JOBS) as pool:
        kept = dict(pool.map(taken, by_paths))
    tree.copy_tree({path: schema.source_of(path, texts[path], found) for path, found in kept.items()})
    return {change: number for found in kept.values() for number, change in found.items()}


def main():
    options = parse()
    say(f"SEED={options.seed}")
    tree.HOME.mkdir(parents=True, exist_ok=True)
    with (tree.HOME / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another run is in {tree.HOME}")
            return 1
        return run(options)


def run(options):
    folders = tree.sources(options.near)
    texts = {path: (tree.TOP / path).read_text() for path in folders}
    changes = [change for path, text in texts.items() for change in lexer.changes_of(path, text)]
    reasons = reasons_of(REASONS.read_text())
    for stale in stale_reasons(reasons, changes):
        say(f"a reason for what is gone: {' '.join(stale)}")
        return 1
    outcomes = Outcomes(tree.HOME / OUTCOMES_FILE)
    drawn = chosen(changes, options, outcomes)
    wanted, judged = outcomes.rest(drawn) if options.go_on else (drawn, [])
    if not options.go_on:
        (tree.HOME / REACH_FILE).unlink(missing_ok=True)
        if not options.again and not options.at:
            outcomes.begin()
    tree.JOBS = options.jobs
    builds = [tree.Build(kind) for kind in (tree.FAST, tree.SANITIZED)]
    numbers = put_in(drawn, texts, builds)
    tests = builds[0].tests({suite for change in wanted for suite in folders[change.path]})
    say(f"{len(wanted)} of {len(changes)} changes, {len(tests)} tests")
    builds[0].need(*(target for test in tests for target in test.needed),
                   *(builds[0].commands[change.path][0] for change in numbers))
    all_of_it = Run(tests, texts, folders, numbers, builds, outcomes, Known(tree.HOME / KNOWN_FILE),
                    options.patience, options.near, tree.HOME / REACH_FILE)
    begin = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    complete = all_of_it.all(wanted, options.jobs)
    good = report(judged + all_of_it.results, reasons, all_of_it.unsound, all_of_it.skipped)
    took = time.monotonic() - begin
    done = len(all_of_it.results)
    say(f"{done} of {len(wanted)} drawn with SEED={options.seed} in {took:.0f} s; "
        f"at this pace {USUAL_COUNT} take {USUAL_COUNT * took / max(1, done) / 3600:.1f} hours")
    return 0 if complete and good else 1


if __name__ == "__main__":
    sys.exit(main())
