#!/usr/bin/env python3
"""Attacks a frond on this machine, and prints what others had of it. README.md has the rules."""

import argparse
import multiprocessing
import os
import random
import resource
import statistics
import subprocess
import sys
import time

import attacks
import doors
import others
import server

MIB = 1024 * 1024
DRAIN_MS = 3000
END_SLACK_SECONDS = 2.0  # for the process to have ended, on a busy machine
P99_RATIO = 3.0
FIRST_TRY_TURNS, TURN_SECONDS = 1200, 0.1


class Attackers:
    """The processes of an attack, working on one server until they are ended."""

    def __init__(self, attack, victim, size):
        port = victim.port_of(attack.door)
        self.tried = multiprocessing.Value("L", 0)
        self.processes = [
            multiprocessing.Process(target=self.work, args=(attack, port, size, number),
                                    daemon=True)
            for number in range(attack.processes)]
        for process in self.processes:
            process.start()

    def work(self, attack, port, size, number):
        while True:
            try:
                attack.work(attacks.Target(port, self.tried, number), size)
            except (OSError, EOFError):
                time.sleep(0.01)  # refused or cut off, as it should be: again

    def count(self):
        """What they have tried. Beside other work the first try may outlast what is measured: it is waited for."""
        for _ in range(FIRST_TRY_TURNS):
            if self.tried.value:
                break
            time.sleep(TURN_SECONDS)
        return self.tried.value

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()


# Whom an attack is on while others are measured: all of them give a ratio, the last alone what is bounded.
WHERE = ("nobody", "constant", "frond")
WHERE_BOUNDED = ("frond",)


def measure(attack, options, size, frond, victim):
    """What the readers of `frond` measured while the attack was on `victim`, None for nobody."""
    attackers = Attackers(attack, victim, size) if victim else None
    try:
        time.sleep(options.warm_up)
        figures = others.read(options.load, frond, options.seconds)
        figures["tried"] = attackers.count() if attackers else 0
        return figures
    finally:
        if attackers:
            attackers.end()


def settle(frond, options):
    """Until nothing of the attack is left that the server still works on, within reason."""
    end = time.monotonic() + options.settle
    while time.monotonic() < end:
        before = frond.cpu_seconds()
        time.sleep(0.1)
        if frond.cpu_seconds() - before < 0.02:
            return


def measure_rounds(attack, options, size, frond, constant):
    """
    Figures of windows: in each round one with the attack on nobody, on the constant server and on
    frond, in an order of its own. So what the machine does meanwhile falls on all of them. A bounded
    run judges no ratio, and measures the attack on frond alone.
    """
    victims = {"nobody": None, "constant": constant, "frond": frond}
    windows = {where: [] for where in options.where}
    for _ in range(options.rounds):
        order = list(options.where)
        random.shuffle(order)
        for where in order:
            windows[where].append(measure(attack, options, size, frond, victims[where]))
            if where == "frond":
                settle(frond, options)
    return {where: summary(list_) for where, list_ in windows.items()}


def summary(windows):
    """Medians over windows; of the longest wait the longest, and what was tried altogether."""
    found = {key: statistics.median(w[key] for w in windows) for key in ("p50_us", "p99_us")}
    found["max_us"] = max(w["max_us"] for w in windows)
    found["tried"] = sum(w["tried"] for w in windows)
    return found


def run_attack(attack, options):
    """Runs one attack. Returns a row for the table; raises what must not happen."""
    size = attack.bounded if options.bounded else attack.full
    with server.Directory() as directory:
        frond = server.Frond(options.frond, directory, options.memory, DRAIN_MS, attack.admin)
        constant = server.Constant(options.constant, directory)
        try:
            return run_prepared(attack, options, size, directory, frond, constant)
        finally:
            frond.kill()
            constant.kill()


def end_under_attack(attack, options, size, frond):
    """How the process ended after SIGTERM, in the middle of the attack."""
    attackers = Attackers(attack, frond, size)
    try:
        time.sleep(options.warm_up)
        return frond.end(DRAIN_MS / 1000 + 20)
    finally:
        attackers.end()


def run_prepared(attack, options, size, directory, frond, constant):
    others.prepare(frond)
    others.fill(options.load, frond)
    attack.prepare(frond, size)
    writer = others.Writer(frond, 0)
    memory = others.Memory(frond)
    writer.start()
    memory.start()
    try:
        found = measure_rounds(attack, options, size, frond, constant)
    finally:
        writer.end()
        memory.end()
    ended = end_under_attack(attack, options, size, frond)
    again = server.Frond(options.frond, directory, options.memory, DRAIN_MS, attack.admin)
    try:
        lost = writer.lost(again)
    finally:
        again.kill()
    return {
        "attack": attack, **found, "writer": writer,
        "peak": memory.peak_bytes, "workers": memory.peak_workers_bytes, "ended": ended, "lost": lost,
    }


def ratio_of(row):
    return row["frond"]["p99_us"] / max(row["constant"]["p99_us"], 1)


def faults_of(row, options):
    """What was not as it should be, as sentences."""
    faults = []
    if not options.bounded and ratio_of(row) > P99_RATIO:
        faults.append(f"the readers' 99th percentile rose {ratio_of(row):.1f} times")
    longest = max(row[where]["max_us"] for where in options.where)
    if longest > options.patience * 1e6:
        faults.append(f"a reader waited {longest / 1e6:.1f} s")
    if row["writer"].longest_seconds > options.patience:
        faults.append(f"a write took {row['writer'].longest_seconds:.1f} s")
    if not row["writer"].acknowledged:
        faults.append(f"no write was acknowledged: {row['writer'].refused}")
    if not row["frond"]["tried"]:
        faults.append("the attackers have tried nothing")
    limit = options.memory * 1.25 + options.allowance
    if row["peak"] > limit:
        faults.append(f"{row['peak'] / MIB:.0f} MiB resident, of {limit / MIB:.0f}")
    faults += row["ended"].faults(DRAIN_MS / 1000 + END_SLACK_SECONDS)
    if row["lost"]:
        faults.append(f"{len(row['lost'])} acknowledged writes are lost: {row['lost'][:3]}")
    return faults


def percentiles(row):
    frond = row["frond"]
    if "constant" not in row:
        return f"readers p99 {frond['p99_us'] / 1000:.2f} ms, p50 {frond['p50_us'] / 1000:.2f}"
    constant, nobody = row["constant"], row["nobody"]
    return (f"readers p99 {frond['p99_us'] / 1000:.2f} ms, beside "
            f"the constant server's attacker {constant['p99_us'] / 1000:.2f} "
            f"(× {ratio_of(row):.1f}), without attack {nobody['p99_us'] / 1000:.2f}; p50 "
            f"{frond['p50_us'] / 1000:.2f}, {constant['p50_us'] / 1000:.2f}, "
            f"{nobody['p50_us'] / 1000:.2f} ms")


def describe(row):
    frond, writer = row["frond"], row["writer"]
    workers = f" and {row['workers'] / MIB:.0f} of workers" if row["workers"] else ""
    return (f"tried {frond['tried']} times; {percentiles(row)}; longest {frond['max_us'] / 1000:.0f} ms; "
            f"{len(writer.acknowledged)} writes, longest {writer.longest_seconds * 1000:.0f} ms, "
            f"refused {writer.refused or 'none'}; {row['peak'] / MIB:.0f} MiB{workers}; "
            f"{row['ended']}")


def allow_descriptors():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def options_of_command_line():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", help="a build directory, instead of the three programs")
    parser.add_argument("--frond")
    parser.add_argument("--load")
    parser.add_argument("--constant")
    parser.add_argument("--only", action="append", help="attacks whose names have this word")
    parser.add_argument("--bounded", action="store_true", help="smaller, and a third of them, as in make test")
    parser.add_argument("--rounds", type=int, help="windows of each kind (5; bounded: 1)")
    parser.add_argument("--seconds", type=float, help="of a window (1.5; bounded: 0.7)")
    parser.add_argument("--memory", type=int, default=128 * MIB, help="memory_bytes")
    parser.add_argument("--allowance", type=int, default=192 * MIB,
                        help="resident bytes for code, caches and what is not in tables yet")
    parser.add_argument("--patience", type=float, default=10, help="seconds that others may wait")
    options = parser.parse_args()
    if options.build:
        options.frond = options.frond or f"{options.build}/frond"
        options.load = options.load or f"{options.build}/bench/load"
        options.constant = options.constant or f"{options.build}/bench/constant"
    options.frond, options.load, options.constant = (
        os.path.abspath(p) for p in (options.frond, options.load, options.constant))
    options.rounds = options.rounds or (1 if options.bounded else 5)
    options.seconds = options.seconds or (0.7 if options.bounded else 1.5)
    options.where = WHERE_BOUNDED if options.bounded else WHERE
    options.warm_up = 0.5 if options.bounded else 1.5
    options.settle = 1 if options.bounded else 5
    return options


def main():
    options = options_of_command_line()
    allow_descriptors()
    chosen = [a for a in attacks.ALL + (doors.BOUNDED if options.bounded else doors.ALL)
              if not options.only or any(word in a.name for word in options.only)]
    if not server.has_functions(options.frond):
        print("# without frond-js beside frond, functions cannot be attacked")
        chosen = [a for a in chosen if not a.functions]
    if options.bounded:
        chosen = server.of_this_turn(chosen)
    failed = 0
    print(f"1..{len(chosen)}", flush=True)
    for number, attack in enumerate(chosen, 1):
        try:
            row = run_attack(attack, options)
            faults = faults_of(row, options)
            print(f"# {attack.title}: {describe(row)}")
        except (server.Failure, RuntimeError, OSError, subprocess.SubprocessError) as error:
            faults = [str(error)]
        print(f"{'not ok' if faults else 'ok'} {number} - {attack.name}", flush=True)
        for fault in faults:
            print(f"#   {fault}", flush=True)
        failed += bool(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
