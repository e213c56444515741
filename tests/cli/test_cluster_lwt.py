"""Conditional statements and transactions of three processes at one cluster, one of which is ended by kill -9: what they
move between rows is neither lost nor made. Needs a cluster; see FROND_TEST_FDB."""

import random
import signal
import struct
import threading
import time

from cql_wire import Connection, CqlError
from cql_wire_server import Door
from harness import cluster, equal, main, ok, seed, test

ACCOUNTS, EACH = 6, 100
CLIENTS = 2  # of a process
BEFORE_S, BEHIND_S = 3, 3  # of the kill
APPLIED = b"\1"
UNKNOWN_OUTCOME = 0x1100


def number(value):
    return struct.unpack(">i", value)[0]


def begin(door):
    c = Connection(door.port)
    c.start()
    return c


def amounts(c):
    return {number(row["k"]): number(row["n"]) for row in c.query("SELECT k, n FROM ks.accounts")}


class Mover(threading.Thread):
    """Moves amounts by transactions, and counts by conditions of one row, until it is told to end."""

    def __init__(self, door, n, ends):
        super().__init__()
        self.door, self.r, self.ends = door, random.Random(seed(n)), ends
        self.sums, self.moved, self.counted, self.unknown = set(), 0, 0, 0
        self.failure = None

    def run(self):
        try:
            c = begin(self.door)
            while not self.ends.is_set():
                try:
                    self.turn(c)
                except CqlError as error:
                    if error.code != UNKNOWN_OUTCOME:
                        raise
        except (OSError, CqlError, EOFError, AssertionError) as failure:
            self.failure = failure

    def turn(self, c):
        there = amounts(c)
        self.sums.add(sum(there.values()))
        a, b = self.r.sample(range(ACCOUNTS), 2)
        n = self.r.randrange(1, 5)
        moved = c.query("BEGIN TRANSACTION "
                        f"UPDATE ks.accounts SET n = {there[a] - n} WHERE k = {a} IF n = {there[a]}; "
                        f"UPDATE ks.accounts SET n = {there[b] + n} WHERE k = {b} IF n = {there[b]}; END TRANSACTION")
        self.moved += moved[0]["[applied]"] == APPLIED
        [row] = c.query("SELECT n FROM ks.counted WHERE k = 1")
        before = number(row["n"])
        self.unknown += 1  # until it is answered
        done = c.query(f"UPDATE ks.counted SET n = {before + 1} WHERE k = 1 IF n = {before}")
        self.unknown -= 1
        self.counted += done[0]["[applied]"] == APPLIED


@test
def sums_stay_while_one_of_three_processes_is_killed(cwd):
    doors = []
    for n in range(3):
        (cwd / str(n)).mkdir()
        doors.append(Door(cwd / str(n), "--store", cluster()))
    try:
        c = begin(doors[2])
        c.query("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        c.query("CREATE TABLE ks.accounts (k int PRIMARY KEY, n int)")
        c.query("CREATE TABLE ks.counted (k int PRIMARY KEY, n int)")
        for k in range(ACCOUNTS):
            c.query(f"INSERT INTO ks.accounts (k, n) VALUES ({k}, {EACH})")
        c.query("INSERT INTO ks.counted (k, n) VALUES (1, 0)")
        ends = threading.Event()
        movers = [Mover(door, n * CLIENTS + i, ends) for n, door in enumerate(doors) for i in range(CLIENTS)]
        for mover in movers:
            mover.start()
        time.sleep(BEFORE_S)
        doors[0].process.send_signal(signal.SIGKILL)
        doors[0].process.wait()
        time.sleep(BEHIND_S)
        ends.set()
        for mover in movers:
            mover.join()
        killed, others = movers[:CLIENTS], movers[CLIENTS:]
        equal([mover.failure for mover in others], [None] * len(others))
        equal([mover.failure is None for mover in killed], [False] * CLIENTS)
        equal(set().union(*(mover.sums for mover in movers)), {ACCOUNTS * EACH})
        equal(sum(amounts(c).values()), ACCOUNTS * EACH)
        assert sum(mover.moved for mover in others), "nothing was moved"
        # What was answered is counted; what the kill left without an answer may be.
        [row] = c.query("SELECT n FROM ks.counted WHERE k = 1")
        sure, more = sum(m.counted for m in movers), sum(m.unknown for m in movers)
        assert sure <= number(row["n"]) <= sure + more and sure, (sure, number(row["n"]), more)
    finally:
        for door in doors:
            door.__exit__()
    out = ok("verify", "--still", "--quiet", "--store", cluster(), cwd=cwd).stdout
    assert " 0 findings" in out, out


main(None if cluster() else "FROND_TEST_FDB names no cluster")
