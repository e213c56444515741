#!/usr/bin/env python3
"""An hour of faults, or as long as is said: three processes of FoundationDB with three coordinators keep
everything twice (`double`), and are killed, stopped, cut off and started again one after the other, while
clients of every door write through two fronds. At the end nothing that was acknowledged is missing, nothing is
there that nobody has sent, a follower of the feed has what the feed has, and `frond verify --ranges` finds
nothing. Not one of the suites: it is run by hand.

    cluster_hour.py FROND --minutes 60 --server PATH/fdbserver [--rows-client PROGRAM] [--seed N]
    cluster_hour.py FROND --minutes 0.2 --store embedded:data      without faults: tries the script itself
"""

import argparse
import contextlib
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
parser.add_argument("frond")
parser.add_argument("--minutes", type=float, default=60)
parser.add_argument("--server", help="fdbserver; fdbcli lies beside it or in the folder bin beside its own")
parser.add_argument("--store", help="a store to be used as it is, without faults")
parser.add_argument("--rows-client", help="tests/cli/rows_client of a build: the door for rows, too")
parser.add_argument("--seed", type=int, default=int(time.time()))
args = parser.parse_args()
sys.argv = [sys.argv[0], args.frond]

# The program's name has to be known when these are imported.
from cql_wire import Connection as Cql
from harness import Server, foundationdb, run, until
from mongo import Client as Mongo
from resp import Client as Redis
from rows_server import Session

DOORS = ("redis", "mongo", "cql", "rows")
PROCESSES = 3
PAUSE_S = (2, 20)  # between two faults, and as long as one lasts
PATIENCE_S = 600  # at the end, for a cluster that heals
LOOK_S = 0.5  # between two looks at the clock
SLOW_S = 20  # docs/CLUSTER.md promises answers within that: what takes longer is told with its moment


class Cluster:
    """Three processes, each of which is a coordinator."""

    def __init__(self, server, cwd):
        self.programs, self.cwd = foundationdb.with_server(server), cwd
        self.addresses = [f"127.0.0.1:{foundationdb.free_port()}" for _ in range(PROCESSES)]
        self.file = cwd / "hour.cluster"
        self.processes = [None] * PROCESSES

    def start(self, n):
        folder = self.cwd / f"process{n}"
        for name in "data", "log":
            (folder / name).mkdir(parents=True, exist_ok=True)
        own = folder / "fdb.cluster"
        if not own.exists():
            shutil.copy(self.file, own)
        with open(folder / "server.log", "a") as log:
            self.processes[n] = subprocess.Popen(
                [self.programs.server, "-p", self.addresses[n], "-C", own, "-d", folder / "data", "-L", folder / "log",
                 f"--locality-machineid=m{n}", f"--locality-zoneid=z{n}"], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, preexec_fn=foundationdb.die_with_parent)

    def kill(self, n):
        self.processes[n].kill()
        self.processes[n].wait()

    def signal(self, n, number):
        self.processes[n].send_signal(number)

    def ask(self, command):
        return foundationdb.ask(self.programs, self.file, command).stdout

    def __enter__(self):
        self.file.write_text("hour:first@" + self.addresses[0] + "\n")
        for n in range(PROCESSES):
            self.start(n)
        until(lambda: "created" in self.ask("configure new double ssd") or "available" in self.ask("status minimal"))
        until(lambda: "changed" in self.ask("coordinators " + " ".join(self.addresses)) or
              all(address in self.file.read_text() for address in self.addresses))
        until(lambda: "is available" in self.ask("status minimal"))
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process:
                process.kill()
                process.wait()


def faults(cluster, draw, until_s):
    """One fault at a time, so that two of three copies and coordinators are always there, but for what is
    said to be more."""
    count = {}
    while time.monotonic() < until_s:
        n, lasts = draw.randrange(PROCESSES), draw.uniform(*PAUSE_S)
        kind = draw.choice(("kill", "kill", "stop", "long stop", "all"))
        count[kind] = count.get(kind, 0) + 1
        print(f"# {time.strftime('%H:%M:%S')} {kind} of process {n} for {lasts:.0f} s", flush=True)
        if kind == "kill":  # a coordinator is lost with it
            cluster.kill(n)
            time.sleep(lasts)
            cluster.start(n)
        elif kind == "all":
            for each in range(PROCESSES):
                cluster.kill(each)
            for each in range(PROCESSES):
                cluster.start(each)
        else:  # as a network that is cut: its connections stay, and nothing comes
            cluster.signal(n, signal.SIGSTOP)
            time.sleep(lasts * (1 if kind == "stop" else 3))
            cluster.signal(n, signal.SIGCONT)
        time.sleep(draw.uniform(*PAUSE_S))
    return count


class Fronds:
    """Two of them, at the ports that they have had before when one is started again."""

    def __init__(self, cwd, store):
        self.servers = []
        shared = store.startswith("fdb:")
        for n in range(2 if shared else 1):
            folder = cwd / f"frond{n}"
            folder.mkdir()
            ports = [word for door in DOORS for word in ("--" + door, "127.0.0.1:0")]
            self.servers.append(Server(folder, "--store", store, *ports))

    def http(self, n):
        return self.servers[n % len(self.servers)].url

    def port(self, n, door):
        log = self.servers[n % len(self.servers)].read_log()
        return int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", log).group(1))

    def close(self):
        for server in self.servers:
            server.stop()


def ask(url, method, path, body=None):
    request = urllib.request.Request(url + path, data=None if body is None else json.dumps(body).encode(),
                                     method=method, headers={"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
        return json.load(answer)


class Couch:
    def __init__(self, fronds, n):
        self.url = fronds.http(n)

    def make(self):
        ask(self.url, "PUT", "/hour")

    def write(self, key):
        ask(self.url, "PUT", f"/hour/{key}", {"n": 1})

    def keys(self):
        return {row["id"] for row in ask(self.url, "GET", "/hour/_all_docs")["rows"]}

    def close(self):
        pass


class RedisDoor:
    def __init__(self, fronds, n):
        self.client = Redis(fronds.port(n, "redis"), timeout=120)

    def make(self):
        pass

    def write(self, key):
        self.client("SADD", "hour", key)

    def keys(self):
        return {key.decode() for key in self.client("SMEMBERS", "hour")}

    def close(self):
        self.client.close()


class MongoDoor:
    def __init__(self, fronds, n):
        self.client = Mongo(fronds.port(n, "mongo"))

    def make(self):
        self.client({"create": "hour"}, "d")

    def write(self, key):
        answer = self.client({"insert": "hour", "documents": [{"_id": key}]}, "d")
        if answer.get("writeErrors") or answer.get("writeConcernError"):
            raise OSError(str(answer))

    def keys(self):
        found, cursor = set(), self.client({"find": "hour", "batchSize": 1000}, "d")["cursor"]
        found |= {doc["_id"] for doc in cursor["firstBatch"]}
        while cursor["id"]:
            cursor = self.client({"getMore": cursor["id"], "collection": "hour", "batchSize": 1000}, "d")["cursor"]
            found |= {doc["_id"] for doc in cursor["nextBatch"]}
        return found

    def close(self):
        self.client.close()


class CqlDoor:
    def __init__(self, fronds, n):
        self.client = Cql(fronds.port(n, "cql"))
        self.client.start()

    def make(self):
        self.client.query("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        self.client.query("CREATE TABLE k.hour (id text PRIMARY KEY, v int)")

    def write(self, key):
        self.client.query(f"INSERT INTO k.hour (id, v) VALUES ('{key}', 1)")

    def has(self, key):
        return len(self.client.query(f"SELECT v FROM k.hour WHERE id = '{key}'")) == 1

    def close(self):
        self.client.__exit__()


class RowsDoor:
    def __init__(self, fronds, n):
        place = argparse.Namespace(port=fronds.port(n, "rows"))
        self.session = Session(place)
        self.used = False

    def make(self):
        self.session.do("schema_create", "s")
        self.session.do("create", "s", "t", "id", "text", "range", "v", "int4", "regular")

    def use(self):
        if not self.used:
            self.session.do("use", "s", "t")
        self.used = True

    def write(self, key):
        self.use()
        self.session.do("write", 4, "v", "|", key, "|", "1")

    def has(self, key):
        self.use()
        return self.session.do("get", "v", "|", key) == ["1"]

    def close(self):
        self.session.__exit__()


class Writer(threading.Thread):
    """Writes one key after the other. What ended with anything but an answer may be there or not."""

    def __init__(self, door, fronds, n, stop):
        super().__init__(name=f"{door.__name__}{n}")
        self.door, self.fronds, self.n, self.stop = door, fronds, n, stop
        self.there, self.unknown = [], []
        self.slowest = 0

    def run(self):
        client, n = None, 0
        while not self.stop.is_set():
            key, began = f"{self.name}-{n:07}", time.monotonic()
            n += 1
            try:
                client = client or self.door(self.fronds, self.n)
                client.write(key)
                self.there.append(key)
            except Exception:  # an error of its protocol, or of the connection
                self.unknown.append(key)
                with contextlib.suppress(Exception):
                    client.close()
                client = None
                time.sleep(0.5)
            took = time.monotonic() - began
            self.slowest = max(self.slowest, took)
            if took > SLOW_S:
                what = "answer" if client else "error"
                print(f"# {time.strftime('%H:%M:%S')} {self.name}: {took:.1f} s for an {what}", flush=True)


class Clock(threading.Thread):
    """How long this program did not run although it wanted to: as long as the clients, and on a machine that
    stands still or is starved, as everything else."""

    def __init__(self, stop):
        super().__init__(name="clock")
        self.stop, self.longest = stop, 0

    def run(self):
        while not self.stop.is_set():
            began = time.monotonic()
            self.stop.wait(LOOK_S)
            late = time.monotonic() - began - LOOK_S
            if late > SLOW_S / 4:
                print(f"# {time.strftime('%H:%M:%S')} this program did not run for {late:.1f} s", flush=True)
            self.longest = max(self.longest, late)


class Follower(threading.Thread):
    """Follows the feed of changes, from where it was."""

    def __init__(self, fronds, stop):
        super().__init__()
        self.fronds, self.stop, self.since, self.rows, self.wrong = fronds, stop, "0", {}, []

    def run(self):
        n = 0
        while True:
            last, n = self.stop.is_set(), n + 1
            try:
                feed = ask(self.fronds.http(n), "GET",
                           f"/hour/_changes?feed=longpoll&timeout=2000&limit=1000&since={self.since}")
            except Exception:
                time.sleep(0.5)
                continue
            for row in feed["results"]:
                if row["id"] in self.rows:
                    self.wrong.append(f"{row['id']} came twice")
                self.rows[row["id"]] = row["changes"][0]["rev"]
            self.since = feed["last_seq"]
            if last and not feed["results"]:
                return


def patiently(job):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return job()
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def check(fronds, writers, follower):
    wrong = list(follower.wrong)
    for door in sorted({writer.door for writer in writers}, key=lambda door: door.__name__):
        own = [writer for writer in writers if writer.door is door]
        there, unknown = ({key for writer in own for key in getattr(writer, name)} for name in ("there", "unknown"))
        client = patiently(lambda door=door: door(fronds, 0))
        if hasattr(client, "keys"):
            found = patiently(client.keys)
            wrong += [f"{key} is missing" for key in sorted(there - found)]
            wrong += [f"nobody has sent {key}" for key in sorted(found - there - unknown)]
        else:
            wrong += [f"{key} is missing" for key in sorted(there) if not client.has(key)]
        client.close()
        print(f"# {door.__name__}: {len(there)} acknowledged, {len(unknown)} not known, slowest answer "
              f"{max(writer.slowest for writer in own):.1f} s")
        if not there:
            wrong.append(f"{door.__name__} has written nothing")
    changes = patiently(lambda: ask(fronds.http(0), "GET", "/hour/_changes"))["results"]
    if {row["id"]: row["changes"][0]["rev"] for row in changes} != follower.rows:
        wrong.append(f"the follower has {len(follower.rows)} changes, the feed {len(changes)}, or others")
    return wrong


def hour(cwd, store, cluster):
    fronds, stop, still = Fronds(cwd, store), threading.Event(), threading.Event()
    doors = [Couch, RedisDoor, MongoDoor, CqlDoor]
    if args.rows_client:
        Session.client = str(pathlib.Path(args.rows_client).resolve())
        doors.append(RowsDoor)
    for door in doors:
        client = door(fronds, 0)
        client.make()
        client.close()
    writers = [Writer(door, fronds, n, stop) for door in doors for n in range(2)]
    follower, clock = Follower(fronds, still), Clock(still)
    for thread in *writers, follower, clock:
        thread.start()
    end = time.monotonic() + args.minutes * 60
    count = faults(cluster, random.Random(args.seed), end) if cluster else time.sleep(max(0, end - time.monotonic()))
    stop.set()
    for writer in writers:
        writer.join(180)
    still.set()
    follower.join(180)
    clock.join()
    wrong = check(fronds, writers, follower)
    fronds.close()
    verified = run("verify", "--ranges", "--quiet", "--store", store, cwd=cwd, timeout=3600)
    if " 0 findings" not in verified.stdout:
        wrong.append(verified.stdout + verified.stderr)
    print(f"# seed {args.seed}, faults {count}; this program stood still for {clock.longest:.1f} s at most")
    print("\n".join(wrong[:50]) if wrong else "nothing is missing")
    return not wrong


def main():
    with tempfile.TemporaryDirectory(prefix="frond-hour-") as folder:
        cwd = pathlib.Path(folder)
        if args.store:
            scheme, _, path = args.store.partition(":")
            return hour(cwd, f"{scheme}:{cwd / path}", None)
        if not args.server:
            parser.error("--server or --store")
        with Cluster(args.server, cwd) as cluster:
            return hour(cwd, f"fdb:{cluster.file}", cluster)


sys.exit(0 if main() else 1)
