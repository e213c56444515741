"""Calls of every command of a door, whose arguments a random generator makes worse, to a server.

A run fails if the server ends or a sanitizer reports, if a call gets no answer or one that cannot be
read, if an answer tells of an internal error, or if the server does not end with 0 on SIGTERM. The
doors know plausible calls of the commands (fuzz_mongo.py, fuzz_redis.py). They ask the server for the
list of its commands, and the sources for words, so that a new command or operator is called without
being added here; what they have found before is in their lists of fixed calls.

    fuzz_doors.py FROND mongo|redis [--seconds S] [--seed N] [--calls N]

What is called follows from the seed alone, so that a run that failed is repeated by its seed. A failure
prints the seed and the last calls.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time
import traceback

ARGS = argparse.ArgumentParser(description=__doc__.splitlines()[0])
ARGS.add_argument("frond")
ARGS.add_argument("door", choices=["mongo", "redis"])
ARGS.add_argument("--seconds", type=float, default=10)
ARGS.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
ARGS.add_argument("--calls", type=int, default=None, help="that many, however long they take")

LAST_CALLS = 12    # printed with a failure
CALL_LETTERS = 4000
FRESH_CALLS = 150  # the data that calls are about is made anew after so many
SANITIZERS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=0:allocator_may_return_null=1:intercept_strstr=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
REPORTS = re.compile(r"ERROR: \w+Sanitizer|runtime error:|SUMMARY: |Assertion ")


class Wrong(Exception):
    """What a call was answered must not be, or there was no answer."""


def harvest(folder, pattern):
    """The words between quotation marks in the sources below src/, as new ones come by themselves."""
    top = pathlib.Path(__file__).resolve().parent.parent.parent / "src"
    words = sorted({word for path in sorted(top.glob(folder))
                    for word in re.findall(pattern, path.read_text())})
    assert words, f"{folder} has none: have the sources moved?"
    return words


def number_at_an_edge(chance):
    """Whole numbers, most of them beside one that some type ends at."""
    edge = chance.choice([0, 1, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**53, 2**63, 2**64, 1000])
    return chance.choice([1, -1]) * edge + chance.choice([-1, 0, 0, 1])


class Run:
    def __init__(self, options, door, server):
        self.options, self.door, self.server = options, door, server
        self.last = []

    def remember(self, call):
        self.last = [*self.last[1 - LAST_CALLS:], call]

    def go(self):
        """Makes calls until the time is over; returns how many, of which how many were obeyed."""
        end = time.monotonic() + self.options.seconds
        for call in self.door.fixed():
            self.call(call, always=True)
        count = obeyed = 0
        while count < self.options.calls if self.options.calls else time.monotonic() < end:
            if count % FRESH_CALLS == 0:
                self.door.make_data()
            obeyed += self.call(self.door.next())
            count += 1
        self.door.make_data()  # a server that no longer obeys anything is not tested by more calls
        return count, obeyed

    def call(self, call, always=False):
        self.remember(call)
        if always:
            self.door.make_data()
        return bool(self.door.run(call))

    def tell(self):
        print(f"# seed {self.options.seed}; the last calls, the latest last:")
        for call in self.last:
            text = self.door.text(call)
            print(f"#   {text[:CALL_LETTERS]}{'…' if len(text) > CALL_LETTERS else ''}")


def tell_log(log):
    for line in log.splitlines()[-80:]:
        print(f"# log: {line[:500]}")


def stop(server):
    """Ends it, however it is; returns what is wrong with how it has ended."""
    if server.process.poll() is None:
        code = server.stop()
    else:
        code = server.process.returncode
    log = server.read_log()
    if REPORTS.search(log):
        return f"a sanitizer has reported, and the server has ended with {code}"
    return f"the server has ended with {code}" if code else None


def fuzz(options, module, cwd):
    env = {name: os.environ.get(name, value) for name, value in SANITIZERS.items()}
    wrong = None
    with module.make_server(cwd, env) as server:
        door = module.Door(server, random.Random(options.seed))
        run = Run(options, door, server)
        try:
            count, obeyed = run.go()
            print(f"# seed {options.seed}: {count} calls, {obeyed} of them obeyed")
        except Exception as failure:
            wrong = "".join(traceback.format_exception_only(type(failure), failure)).strip()
            if not isinstance(failure, (Wrong, OSError, EOFError)):
                traceback.print_exc()
            try:  # so that the log is whole
                server.process.wait(timeout=5)
            except Exception:
                pass
        at_end = stop(server)
        if wrong or at_end:
            print(f"# {wrong or ''}")
            run.tell()
            tell_log(server.read_log())
    return wrong or at_end


def main():
    options = ARGS.parse_args()
    module = __import__(f"fuzz_{options.door}")
    cwd = tempfile.mkdtemp(prefix="frond-fuzz-")
    print("1..1", flush=True)
    try:
        wrong = fuzz(options, module, pathlib.Path(cwd))
    finally:
        shutil.rmtree(cwd, ignore_errors=True)
    name = f"calls_of_{options.door}_with_random_arguments_are_answered"
    print(f"{'not ok' if wrong else 'ok'} 1 - {name}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    sys.setrecursionlimit(10000)
    main()
