"""Ends a server under attack with SIGTERM, and tells what of the time that it took was the machine's."""

import os
import pathlib
import signal
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS = 0.05
# Where others had more of the processors' time than this, how long an end took says nothing of the server.
OTHERS_MOST = 0.25
CODE_OVERDUE = 3  # of a frond that did not end within drain_timeout_ms


def busy_seconds():
    """What all processes of the machine have had of its processors."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(int(fields[i]) for i in (0, 1, 2, 5, 6)) / TICKS  # user, nice, system, interrupts


def seconds_of(stat):
    """What the process or thread of that file has had; 0 if it has ended."""
    try:
        fields = pathlib.Path(stat).read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def own_processes():
    """Those that the test has started, and itself: they are of one group."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            group = int(stat.read_text().rpartition(")")[2].split()[2])
        except OSError:
            continue
        if group == os.getpgrp():
            found.append(stat)
    return found


class End:
    """How a server has ended."""

    def __init__(self, code, seconds, others):
        self.code = code          # None: it did not, and was killed
        self.seconds = seconds
        self.others = others      # their part of the processors' time meanwhile

    def faults(self, limit_seconds):
        """What is wrong with that, as sentences."""
        if self.code is None:
            return [f"SIGTERM did not end it in {self.seconds:.1f} s"]
        if self.others > OTHERS_MOST and self.code in (0, CODE_OVERDUE):
            return []
        return [f"ended with {self.code}"] * (self.code != 0) + \
            [f"ended after {self.seconds:.1f} s"] * (self.seconds > limit_seconds)

    def __str__(self):
        code = f" with {self.code}" if self.code else ""
        others = f" while others had {self.others:.0%} of the machine" if self.others > OTHERS_MOST else ""
        return f"ended in {self.seconds:.1f} s{code}{others}"


def end(process, limit_seconds):
    """Sends SIGTERM, and waits for `limit_seconds`."""
    stat = f"/proc/{process.pid}/stat"
    begin, busy, had = time.monotonic(), busy_seconds(), {own: seconds_of(own) for own in own_processes()}
    last, code = seconds_of(stat), None
    process.send_signal(signal.SIGTERM)
    while code is None and time.monotonic() < begin + limit_seconds:
        try:
            code = process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            last = max(last, seconds_of(stat))
    seconds = time.monotonic() - begin
    busy = busy_seconds() - busy
    if code is None:
        process.kill()
        process.wait()
    own = sum(max(last if str(one) == stat else seconds_of(one), before) - before for one, before in had.items())
    return End(code, seconds, max(0.0, busy - own) / (seconds * os.cpu_count()))
