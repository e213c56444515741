#!/usr/bin/env python3
"""Does on a bare Debian 12 what README and the tour tell their reader to do, and compares what is printed.

A clone of HEAD is put into an empty Debian of its own (machine.py). There an ordinary user types the lines
of README's ```sh blocks, `make deb` among them. The package that this makes is installed in another empty Debian,
whose first process is systemd, upgraded, removed and purged (package.py). With --package FILE that is all that is
done, with a package of before if --before names one. With --test the user types `make test` instead, and
that is all. It prints TAP; README.md has the rules."""

import argparse
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import machine
import package
import readme

TOP = pathlib.Path(__file__).resolve().parents[2]
DIR = TOP / "build" / "bare"
# What is followed, from top to bottom, and which of its sections; None: all.
PAGES = (("README.md", ("Five minutes",)), ("docs/TOUR.md", None), ("README.md", ("As a service",)))
SERVES = re.compile(r"make run\b.*")  # in a terminal of its own
DOORS = {"": 5984, "REDIS=": 6379, "MONGO=": 27017}  # by what names them on such a line
TARBALL = "make tarball && tar xzf build/frond-*.tar.gz -C /tmp && /tmp/frond-*/bin/frond --version"
HANG_SECONDS = 3600  # only ends what hangs
LAST_LINES = 60  # of what was printed, where a line has failed


class Failed(package.Failed):
    """What went wrong; its text is told as comments."""


def computed():
    """The seconds that programs which were begun here and have ended have had of processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = False

    def say(self, text):
        for line in str(text).splitlines():
            print(f"# {line}", flush=True)

    def result(self, passed, name, comment=""):
        self.count += 1
        self.failed |= not passed
        print(f"{'ok' if passed else 'not ok'} {self.count} - {name}{comment}", flush=True)

    def test(self, name, function, *args):
        """Its result if it passed; all that follows would fail, too, if it did not."""
        begun, before = time.monotonic(), computed()
        try:
            result = function(*args)
        except package.Failed as why:
            self.result(False, name)
            self.say(why)
            raise
        self.result(True, name)
        self.say(f"{time.monotonic() - begun:.0f} s, {computed() - before:.0f} s of processors")
        return result


def tell_what_is_tested(tap):
    def git(*command):
        return subprocess.run(["git", *command], cwd=TOP, capture_output=True, text=True, check=True).stdout
    tap.say(f"tested is {git('log', '-1', '--format=%h %s').strip()}")
    changed = git("status", "--porcelain").splitlines()
    if changed:
        tap.say(f"THE CHANGES OF {len(changed)} FILES THAT ARE NOT COMMITTED ARE NOT TESTED")


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def check_ports():
    """They are the host's, since a machine with a network of its own could install nothing."""
    taken = [str(port) for port in DOORS.values() if listens(port)]
    if taken:
        raise Failed(f"a server of this host has the port {' and '.join(taken)}, which README's lines need")


def last_lines(*texts):
    return "\n".join("".join(texts).splitlines()[-LAST_LINES:])


class Terminal:
    """The user's terminal in which `make run` runs."""

    def __init__(self, bare):
        self.bare = bare
        self.process = None
        self.log = bare.dir / "server.log"

    def serve(self, line):
        ports = [port for name, port in DOORS.items() if name in line]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                self.bare.user_runs(line), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                preexec_fn=machine.die_with_parent)
        deadline = time.monotonic() + HANG_SECONDS
        while not all(map(listens, ports)):
            if self.process.poll() is not None:
                raise Failed(f"it ended with {self.process.returncode}:\n{last_lines(self.log.read_text())}")
            if time.monotonic() > deadline:
                raise Failed(f"no server is there:\n{last_lines(self.log.read_text())}")
            time.sleep(0.2)

    def ended(self):
        """Waits for the line to end and returns its exit code."""
        try:
            return self.process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed("it runs still") from None

    def interrupt(self):
        """As Ctrl-C does, which reaches the server alone here."""
        self.bare.root_runs("sh", "-c", "kill -INT $(pidof frond)")
        if self.ended():
            raise Failed(f"it ended with {self.process.returncode}:\n{last_lines(self.log.read_text())}")


def type_line(bare, line):
    """What it prints, without what it says beside that. Enter is what is answered to questions."""
    try:
        done = subprocess.run(bare.user_runs(line), input="\n" * 10, capture_output=True, text=True,
                              preexec_fn=machine.die_with_parent, timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed("it hangs") from None
    if done.returncode:
        raise Failed(f"it ended with {done.returncode}:\n{last_lines(done.stdout, done.stderr)}")
    return done.stdout


def type_block(tap, bare, terminal, block):
    printed = ""
    for line in block.lines:
        if not SERVES.fullmatch(line):
            said = tap.test(line, type_line, bare, line)
            printed += said if line in block.quiet_lines() else ""
        elif terminal.process:
            tap.test("the server before has ended", terminal.ended)
            tap.test(line, terminal.serve, line)
        else:
            chosen = bare.chosen()
            tap.test(line, terminal.serve, line)
            tap.test("the build is one for users", check_build_for_users, bare, chosen)
    if block.printed is not None:
        tap.test(f"prints what README says: {block.quiet_lines()[-1]}", compare, block, printed)


def compare(block, printed):
    wrong = readme.difference(block.printed, printed)
    if wrong:
        raise Failed("\n".join(wrong))


def check_build_for_users(bare, chosen_before):
    """No more is built, nor installed for it, than the programs need."""
    clone = bare.root / machine.CLONE
    found = [name for name in ("tests", "bench", "fuzz") if (clone / "build" / name).exists()]
    if found:
        raise Failed(f"the build has {' and '.join(found)}")
    wanted = re.search(r'^build="([^"]*)"', (clone / "scripts/deps").read_text(), re.M)[1]
    wanted = re.split(r"[\s|]+", wanted)
    more = bare.chosen() - chosen_before - set(wanted)
    if more:
        raise Failed(f"beyond what the build needs, it installs {' '.join(sorted(more))}")


def follow_readme(tap, bare):
    tap.test("the ports of README's servers are free", check_ports)
    terminal = Terminal(bare)
    for page, sections in PAGES:
        text = (bare.root / machine.CLONE / page).read_text()
        for block in readme.blocks(text):
            if sections is None or block.section in sections:
                type_block(tap, bare, terminal, block)
    tap.test("the server ends when it is interrupted", terminal.interrupt)
    tap.test("what `make tarball` packs runs where it is unpacked", type_line, bare, TARBALL)
    return shutil.copy(next((bare.root / machine.CLONE / "build").glob("frond_*.deb")), DIR.parent)


def follow_package(tap, cache, deb, before):
    directory = DIR.parent / "bare_service"
    try:
        with machine.Machine(cache, directory, boots=True) as bare:
            tap.say("an empty Debian whose first process is systemd")
            package.follow(tap, bare, deb, before or package.earlier(deb, directory))
    except machine.CannotBeMade as why:
        tap.result(True, "a package's life", f" # SKIP {why}")


def run_tests(bare):
    """The exit code of the whole of the tests in the machine; they print for themselves."""
    return subprocess.run(bare.user_runs("make test"), stdin=subprocess.DEVNULL,
                          preexec_fn=machine.die_with_parent).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test", action="store_true", help="run `make test` there, nothing else")
    parser.add_argument("--package", metavar="FILE", help="install this one, nothing else")
    parser.add_argument("--before", metavar="FILE", help="a package to be upgraded from")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    machine.end_with_parent()

    tap = Tap()
    begun = time.monotonic()
    try:
        machine.check_host(TOP)
        with machine.Cache(tap.say) as cache:
            deb = options.package
            if not deb:
                with machine.Machine(cache, DIR, on_disk=options.test) as bare:
                    bare.clone(TOP)
                    tell_what_is_tested(tap)
                    tap.say(f"an empty Debian after {time.monotonic() - begun:.0f} s; kept in {cache.dir}")
                    if options.test:
                        return run_tests(bare)
                    deb = follow_readme(tap, bare)
            follow_package(tap, cache, deb, options.before)
    except machine.CannotBeMade as why:
        tap.result(True, "README on a bare Debian 12", f" # SKIP {why}")
    except package.Failed:
        pass
    tap.say(f"{time.monotonic() - begun:.0f} s")
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
