#!/usr/bin/env python3
"""Attacks a frond on this machine, and prints what others had of it. README.md has the rules."""

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import time

import attacks
import others
import server

MIB = 1024 * 1024
DRAIN_MS = 3000
END_SLACK_SECONDS = 1.0  # for the process to be seen to have ended, on a busy machine
P99_RATIO = 3.0


class Attackers:
    """The processes of an attack, working on one port until they are ended."""

    def __init__(self, attack, port, size):
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

    def end(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()


def measure(attack, options, size, frond, victim_port):
    """The readers' figures on `frond` while the attack is on `victim_port`."""
    attackers = Attackers(attack, victim_port, size)
    try:
        time.sleep(options.warm_up)
        figures = others.read(options.load, frond, options.seconds)
        figures["tried"] = attackers.tried.value
        return figures, attackers
    except BaseException:
        attackers.end()
        raise


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


def run_prepared(attack, options, size, directory, frond, constant):
    others.prepare(frond)
    others.fill(options.load, frond)
    attack.prepare(frond, size)
    calm, attackers = measure(attack, options, size, frond, constant.port)
    attackers.end()
    writer = others.Writer(frond, 0)
    memory = others.Memory(frond)
    writer.start()
    memory.start()
    try:
        under, attackers = measure(attack, options, size, frond, frond.port)
    finally:
        writer.end()
        memory.end()
    ended = frond.end(DRAIN_MS / 1000 + 20)
    attackers.end()
    again = server.Frond(options.frond, directory, options.memory, DRAIN_MS, attack.admin)
    try:
        lost = writer.lost(again)
    finally:
        again.kill()
    return {
        "attack": attack, "calm": calm, "under": under, "writer": writer,
        "peak": memory.peak_bytes, "ended": ended, "lost": lost,
    }


def faults_of(row, options):
    """What was not as it should be, as sentences."""
    faults = []
    ratio = row["under"]["p99_us"] / max(row["calm"]["p99_us"], 1)
    if not options.bounded and ratio > P99_RATIO:
        faults.append(f"the readers' 99th percentile rose {ratio:.1f} times")
    if row["under"]["max_us"] > options.patience * 1e6:
        faults.append(f"a reader waited {row['under']['max_us'] / 1e6:.1f} s")
    if row["writer"].longest_seconds > options.patience:
        faults.append(f"a write took {row['writer'].longest_seconds:.1f} s")
    if not row["writer"].acknowledged:
        faults.append(f"no write was acknowledged: {row['writer'].refused}")
    limit = options.memory * 1.25 + options.allowance
    if row["peak"] > limit:
        faults.append(f"{row['peak'] / MIB:.0f} MiB resident, of {limit / MIB:.0f}")
    if row["ended"] is None:
        faults.append("SIGTERM did not end the process")
    elif row["ended"] > DRAIN_MS / 1000 + END_SLACK_SECONDS:
        faults.append(f"SIGTERM took {row['ended']:.1f} s to end the process")
    if row["lost"]:
        faults.append(f"{len(row['lost'])} acknowledged writes are lost: {row['lost'][:3]}")
    return faults


def describe(row):
    calm, under, writer = row["calm"], row["under"], row["writer"]
    ended = "never" if row["ended"] is None else f"{row['ended']:.1f} s"
    return (f"tried {under['tried']} times; readers p50 {under['p50_us'] / 1000:.2f} ms "
            f"p99 {under['p99_us'] / 1000:.2f} ms (beside the constant server's attacker "
            f"{calm['p50_us'] / 1000:.2f}, {calm['p99_us'] / 1000:.2f}; "
            f"× {under['p99_us'] / max(calm['p99_us'], 1):.1f}), longest "
            f"{under['max_us'] / 1000:.0f} ms; {len(writer.acknowledged)} writes, longest "
            f"{writer.longest_seconds * 1000:.0f} ms, refused {writer.refused or 'none'}; "
            f"{row['peak'] / MIB:.0f} MiB; ended in {ended}")


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
    parser.add_argument("--bounded", action="store_true", help="smaller, as in make test")
    parser.add_argument("--seconds", type=float, help="the readers' time (5; bounded: 1)")
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
    options.seconds = options.seconds or (1 if options.bounded else 5)
    options.warm_up = 0.5 if options.bounded else 1.5
    return options


def main():
    options = options_of_command_line()
    allow_descriptors()
    chosen = [a for a in attacks.ALL
              if not options.only or any(word in a.name for word in options.only)]
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
