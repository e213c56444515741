#!/usr/bin/env python3
"""frond's door for Redis's clients beside redis-server, by Debian's redis-benchmark.

    bench/redis.py [--build DIR] [--only WORD]... [--sync-ms N] [--publish]

The sides take turns in each round: frond, redis-server that syncs every write (appendfsync always),
redis-server that syncs once a second (everysec). 50 connections; every command without a pipeline
and with 16 in one; of one key, and of 100,000: HSET, SADD and ZADD then ask for 100,000 fields and
members of one key, and rows of their own for small collections of 100,000 keys. What is shown are
the medians of the rounds' ratios.
Then what memory and a GET cost with many keys, 10,000 idle subscribers, keys that fall due
together, what history adds to a SET, and whether a queue that is emptied becomes slower. The
results go to bench/results/redis.json; --publish puts the tables into
docs/PERFORMANCE.md.

With --sync-ms N each fdatasync() and fsync() of all servers takes N milliseconds longer than the
disk here does (slow_sync.c, preloaded), as on a machine whose disk is slower. Then the writes
are measured, and nothing else; they have a table of their own.
"""

import argparse
import csv
import datetime
import hashlib
import io
import json
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import sides

TOP = pathlib.Path(__file__).resolve().parent.parent
RESULTS = TOP / "bench" / "results"
PAGE = TOP / "docs" / "PERFORMANCE.md"
BEGIN = "<!-- redis: made by `bench/redis.py --publish` -->"
END = "<!-- /redis -->"
SLOW_BEGIN = "<!-- redis, slow syncs: made by `bench/redis.py --sync-ms 5 --publish` -->"
SLOW_END = "<!-- /redis, slow syncs -->"

# Debian's redis-server is the same program by another name, and in a package that brings a service.
REDIS_SERVER = shutil.which("redis-server") or shutil.which("redis-check-rdb")
CLIENTS = 50
RANGE = 100000
CALIBRATE = 4000       # commands of the run that tells how many a measured one has
FEW = 10000            # keys that a GET is compared with
LOAD_AT_ONCE = 500     # keys of an MSET
SPARE_FILES = 200

# How many times as fast as redis-server with appendfsync always, without and with a pipeline.
WRITES = (2.0, 0.7)
GOALS = {"SET": WRITES, "INCR": WRITES, "LPUSH": WRITES, "RPUSH": WRITES, "SADD": WRITES,
         "HSET": WRITES, "ZADD": (2.0, 0.5), "GET": (1.0, 0.5), "PFADD": WRITES, "SPOP": WRITES, "SRANDMEMBER": (1.0, 0.5), "XREADGROUP": (1.0, 0.3),
         "GEOSEARCH": (0.5, 0.3), "EVALSHA": (1.0, 0.4), "LPOP": WRITES, "RPOP": WRITES, "ZPOPMIN": (1.0, 0.6), "LRANGE_100": (1.0, 0.6)}
# What EVALSHA runs: a counter that expires, as clients limit rates with.
SCRIPT = "local n = redis.call('INCR', KEYS[1]) " \
    "if n == 1 then redis.call('PEXPIRE', KEYS[1], 60000) end return n"
# Commands that redis-benchmark has no name for, of one key. A number between two of its own is drawn.
OWN = {"PFADD": ["PFADD", "hll", "__rand_int__"],
       "SPOP": ["SPOP", "popped"],
       "LPOP": ["LPOP", "list"],
       "RPOP": ["RPOP", "list"],
       "LRANGE_100": ["LRANGE", "list", "0", "99"],
       "ZPOPMIN": ["ZPOPMIN", "zset"],
       "SRANDMEMBER": ["SRANDMEMBER", "members"],
       "EVALSHA": ["EVALSHA", hashlib.sha1(SCRIPT.encode()).hexdigest(), "1", "key:__rand_int__"],
       "XREADGROUP": ["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "s", ">"],
       "GEOSEARCH": ["GEOSEARCH", "geo", "FROMMEMBER", "m__rand_int__", "BYRADIUS", "5", "km"]}
# Small collections, each under a key of its own among RANGE. Every number is drawn.
SMALL = {"HSET of 5 fields": ["HSET", "hash:__rand_int__",
                              *(word for n in range(5) for word in (f"field{n}", "__rand_int__"))],
         "SADD of a member": ["SADD", "set:__rand_int__", "m__rand_int__"],
         "ZADD of a member": ["ZADD", "zset:__rand_int__", "__rand_int__", "member"]}
GOALS |= {"HSET of 5 fields": WRITES, "SADD of a member": WRITES, "ZADD of a member": (2.0, 0.6)}
READS = {"GET", "GEOSEARCH", "SRANDMEMBER", "LRANGE_100"}
PLACES = 10000  # that GEOSEARCH looks among, and members of SRANDMEMBER's set
MOST = {"memory share": 1 / 3, "GET with all keys": 2, "subscribers MB": 250,
        "p99 beside expiry": 3, "CPU of SET with history": 1.6, "last messages of a queue": 2}


SIZES = ("keys", "subscribers", "expiry", "history", "queue")  # the names of the other figures


def say(text):
    print(text, file=sys.stderr, flush=True)


def slow_sync(directory, sync_ms):
    """The environment of a server whose syncs take so much longer; None: that of this process."""
    if not sync_ms:
        return None
    library = pathlib.Path(directory) / "slow_sync.so"
    if not library.exists():
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", "-Wextra", "-shared", "-fPIC",
                        "-o", str(library), str(TOP / "bench" / "slow_sync.c"), "-ldl"],
                       check=True)
    return os.environ | {"LD_PRELOAD": str(library), "SLOW_SYNC_US": str(int(sync_ms * 1000))}


class Frond(sides.Frond):
    """frond with Redis's door."""

    doors = ("redis",)

    def __init__(self, binary, directory, name="frond", more=(), env=None):
        super().__init__(binary, directory, name=name)
        self.more = list(more)
        self.env = env

    def page_cache_mb(self):
        """Of its store's files."""
        files = [str(p) for p in (self.directory / "store").rglob("*") if p.is_file()]
        done = subprocess.run(["fincore", "--bytes", "--noheadings", "--output", "RES", *files],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False)
        return sum(int(n) for n in done.stdout.split()) / 1e6


class Redis(sides.Server):
    """redis-server with a log of what is written."""

    def __init__(self, directory, fsync, env=None):
        super().__init__()
        self.env = env
        self.name = f"redis, {fsync}"
        self.fsync = fsync
        self.directory = pathlib.Path(directory)
        self.redis_port = 0

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.redis_port = sides.free_port()
        self.spawn(["redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1",
                    "--dir", str(self.directory), "--appendonly", "yes", "--appendfsync",
                    self.fsync, "--save", "", "--auto-aof-rewrite-percentage", "0"],
                   self.directory / "log", env=self.env, executable=REDIS_SERVER)

    def request(self, method, path, body=None):
        with Client(self.redis_port) as client:
            return 200 if client.ask("PING") == b"PONG" else 500, b""

    def page_cache_mb(self):
        return 0  # it need not read its log again while it runs


class Client:
    """As much of the protocol as the bench needs."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    @staticmethod
    def encode(words):
        out = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(word), word))
        return b"".join(out)

    def read(self):
        line = self.file.readline()
        if not line:
            raise OSError("the connection was closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            if int(rest) < 0:
                return None
            return self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def ask(self, *words):
        self.socket.sendall(self.encode(words))
        return self.read()

    def ask_all(self, commands):
        self.socket.sendall(b"".join(self.encode(words) for words in commands))
        return [self.read() for _ in commands]


def prepare(server, command, count):
    """What an own command finds: an entry for each XREADGROUP, a member for each SPOP, places on a grid."""
    with Client(server.redis_port) as client:
        if command == "XREADGROUP":
            client.ask("DEL", "s")
            client.ask("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
            for done in range(0, count, LOAD_AT_ONCE):
                client.ask_all([("XADD", "s", f"{n + 1}-0", "f", "v")
                                for n in range(done, min(done + LOAD_AT_ONCE, count))])
        elif command == "EVALSHA":
            client.ask("SCRIPT", "LOAD", SCRIPT)
        elif command == "SPOP":
            client.ask("DEL", "popped")
            for done in range(0, count, LOAD_AT_ONCE):
                client.ask("SADD", "popped", *(f"m{n:012}" for n in range(done, min(done + LOAD_AT_ONCE, count))))
        elif command == "SRANDMEMBER" and client.ask("SCARD", "members") < PLACES:
            client.ask("SADD", "members", *(f"m{n:012}" for n in range(PLACES)))
        elif command in {"LPOP", "RPOP"} or (command == "LRANGE_100" and not client.ask("EXISTS", "list")):
            client.ask("DEL", "list")
            for done in range(0, count, LOAD_AT_ONCE):
                client.ask_all([("LPUSH", "list", "xxx")] * min(count - done, LOAD_AT_ONCE))
        elif command == "ZPOPMIN":
            client.ask("DEL", "zset")
            for done in range(0, count, LOAD_AT_ONCE):
                client.ask("ZADD", "zset", *(word for n in range(done, min(done + LOAD_AT_ONCE, count))
                                             for word in (n * 7919 % count, f"element:{n:012}")))
        elif command == "GEOSEARCH" and client.ask("ZCARD", "geo") < PLACES:
            client.ask_all([("GEOADD", "geo", n % 100 / 50, n // 100 / 50, f"m{n:012}")
                            for n in range(PLACES)])


def run_benchmark(server, command, count, pipeline, keys):
    """One run of redis-benchmark: its rate, its p99, the server's processor time a command."""
    words = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(server.redis_port), "-c",
             str(CLIENTS), "-n", str(count), "-P", str(pipeline), "--csv"]
    if command in OWN:
        prepare(server, command, count)
        words += ["-r", str(PLACES), *OWN[command]]
    elif command in SMALL:
        words += ["-r", str(keys), *SMALL[command]]
    else:
        words += ["-t", command.lower(), *(["-r", str(keys)] if keys > 1 else [])]
    before = server.cpu_ticks()
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    after = server.cpu_ticks()
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    if done.returncode or not rows:
        sides.fail(f"redis-benchmark -t {command} of {server.name}: {done.stderr or done.stdout}")
    return {"rate": float(rows[-1]["rps"]), "p99_ms": float(rows[-1]["p99_latency_ms"]),
            "cpu_us": (after - before) / os.sysconf("SC_CLK_TCK") * 1e6 / count}


def begin_anew(server):
    """
    With an empty store. What a FLUSHALL leaves, frond clears in the background, and begins with that
    some seconds later: the next row would be measured beside that, and its processor time with it.
    """
    server.stop()
    shutil.rmtree(server.directory, ignore_errors=True)
    server.start()


def rows_of():
    for command in GOALS:
        for pipeline in (1, 16):
            for keys in (1,) if command in OWN else (RANGE,) if command in SMALL else (1, RANGE):
                yield command, pipeline, keys


def title(command, pipeline, keys):
    return f"{command}, {'one key' if keys == 1 else f'{keys:,} keys'}" + \
        (f", {pipeline} in a pipeline" if pipeline > 1 else "")


def goal_of(command, pipeline):
    return GOALS[command][pipeline > 1]


class Bench:
    def __init__(self, options):
        self.o = options
        self.frond = f"{options.build}/frond"
        self.found = {"rows": {}, "sizes": {}}

    def wants(self, name):
        return not self.o.only or any(word in name for word in self.o.only)

    def wants_row(self, name):
        """"keys" is in the titles of rows, and means the figure of that name."""
        return not self.o.only or any(word in name and word not in SIZES for word in self.o.only)

    # ---- Commands ----

    def commands(self, directory):
        wanted = [row for row in rows_of() if self.wants_row(title(*row))]
        if self.o.sync_ms:
            wanted = [row for row in wanted if row[0] not in READS]
        if not wanted:
            return
        env = slow_sync(directory, self.o.sync_ms)
        servers = [Frond(self.frond, directory / "frond", env=env),
                   Redis(directory / "always", "always", env)]
        if not self.o.sync_ms:
            servers.append(Redis(directory / "everysec", "everysec"))
        try:
            for server in servers:
                server.start()
            self.rounds(servers, wanted)
        finally:
            for server in servers:
                server.stop()

    def rounds(self, servers, wanted):
        measured = {}
        for number in range(self.o.rounds):
            for row in wanted:
                command, pipeline, keys = row
                for server in servers:
                    if command not in READS:
                        begin_anew(server)
                    with Client(server.redis_port) as client:
                        if command == "GET" and client.ask("DBSIZE") < keys // 2:
                            run_benchmark(server, "SET", 3 * keys, 16, keys)
                    server.settle()
                    first = run_benchmark(server, command, CALIBRATE * pipeline, pipeline, keys)
                    count = max(CALIBRATE * pipeline, int(first["rate"] * self.o.seconds))
                    figures = run_benchmark(server, command, count, pipeline, keys)
                    measured.setdefault(row, {}).setdefault(server.name, []).append(figures)
                ours = measured[row]["frond"][-1]["rate"]
                say(f"round {number + 1}: {title(*row)}: {ours:,.0f}" + "".join(
                    f", {ours / measured[row][s.name][-1]['rate']:.2f} of {s.name}"
                    for s in servers[1:]))
        for row, by_side in measured.items():
            self.note(row, by_side)

    def note(self, row, by_side):
        found = {}
        for name, figures in by_side.items():
            found[name] = {key: statistics.median(f[key] for f in figures) for key in figures[0]}
            found[name]["ratio"] = statistics.median(
                ours["rate"] / theirs["rate"] for ours, theirs in zip(by_side["frond"], figures))
        self.found["rows"][title(*row)] = {"goal": goal_of(*row[:2]), "sides": found}

    # ---- Sizes ----

    def sizes(self, directory):
        for name, measure in (("keys", self.many_keys), ("subscribers", self.subscribers),
                              ("expiry", self.expiry), ("history", self.history),
                              ("queue", self.queue)):
            if not self.wants(name):
                continue
            place = directory / name
            measure(place)
            shutil.rmtree(place, ignore_errors=True)

    def with_frond(self, directory, measure, more=()):
        server = Frond(self.frond, directory, more=more)
        server.start()
        try:
            return measure(server)
        finally:
            server.stop()

    @staticmethod
    def load(server, first, last, more=lambda i: (), verb="MSET"):
        with Client(server.redis_port) as client:
            for at in range(first, last, LOAD_AT_ONCE):
                until = min(at + LOAD_AT_ONCE, last)
                if verb == "MSET":
                    words = [verb]
                    for i in range(at, until):
                        words += [f"key:{i:012}", "v" * 100]
                    client.ask(*words)
                else:
                    client.ask_all([(verb, f"due:{i:012}", "v" * 100, *more(i))
                                    for i in range(at, until)])

    def get_ms(self, server, keys):
        """Of one GET at a time, the keys drawn among the first `keys`: the median of three runs."""
        runs = []
        for _ in range(3):
            done = subprocess.run(
                ["redis-benchmark", "-p", str(server.redis_port), "-c", "1", "-n", "20000", "-r",
                 str(keys), "--csv", "GET", "key:__rand_int__"],
                stdout=subprocess.PIPE, text=True, check=True)
            runs.append(1000 / float(list(csv.DictReader(io.StringIO(done.stdout)))[-1]["rps"]))
        return statistics.median(runs)

    def many_keys(self, directory):
        def frond(server):
            self.load(server, 0, FEW)
            few = self.get_ms(server, FEW)
            self.load(server, FEW, self.o.keys)
            server.settle()
            many = self.get_ms(server, self.o.keys)
            return few, many, server.memory_mb("VmRSS"), server.page_cache_mb()

        few, many, memory, cache = self.with_frond(directory / "frond", frond)
        redis = Redis(directory / "redis", "everysec")
        redis.start()
        try:
            self.load(redis, 0, self.o.keys)
            theirs = redis.memory_mb("VmRSS")
        finally:
            redis.stop()
        self.size("memory share", (memory + cache) / theirs,
                  f"{self.o.keys:,} keys of 100 bytes: {memory:.0f} MB and {cache:.0f} MB of page "
                  f"cache, redis {theirs:.0f} MB")
        self.size("GET with all keys", many / few,
                  f"{many * 1000:.0f} µs with {self.o.keys:,} keys, {few * 1000:.0f} µs with "
                  f"{FEW:,}")

    def subscribers(self, directory):
        wanted = self.o.subscribers
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard // 8 * 5 - SPARE_FILES)

        def measure(server):
            clients = []
            try:
                for i in range(wanted):
                    client = socket.create_connection(("127.0.0.1", server.redis_port))
                    client.sendall(Client.encode(["SUBSCRIBE", f"channel:{i}"]))
                    clients.append(client)
                for client in clients:
                    client.recv(200)
                server.settle()
                time.sleep(self.o.rest)
                return server.memory_mb("VmRSS")
            finally:
                for client in clients:
                    client.close()

        memory = self.with_frond(directory, measure)
        self.size("subscribers MB", memory, f"{wanted:,} idle subscribers: {memory:.0f} MB")

    def expiry(self, directory):
        def p99(server):
            return run_benchmark(server, "SET", self.o.beside, 1, RANGE)["p99_ms"]

        def measure(server):
            before = p99(server)
            due = int(time.time()) + max(20, self.o.keys_due // 10000)
            self.load(server, 0, self.o.keys_due, lambda i: ("EXAT", due), "SET")
            server.settle()
            time.sleep(max(0, due + 0.5 - time.time()))
            with Client(server.redis_port) as client:
                at_once = client.ask("DBSIZE")
            while_due = p99(server)
            with Client(server.redis_port) as client:
                left = client.ask("DBSIZE")
            return before, while_due, at_once, left

        before, while_due, at_once, left = self.with_frond(directory, measure)
        self.size("p99 beside expiry", while_due / before,
                  f"{self.o.keys_due:,} keys fall due at once: p99 of SET {while_due:.1f} ms, "
                  f"before {before:.1f} ms; {at_once:,} keys when it began, {left:,} at its end")

    def history(self, directory):
        def measure(history):
            def run(server):
                with Client(server.redis_port) as client:
                    client.ask("SET", "first", "1")
                if history:
                    server.stop()
                    subprocess.run([self.frond, "rows", "--store", server.store, "redis:0"],
                                   input='{"history": 3600}\n', text=True, check=True,
                                   stdout=subprocess.DEVNULL)
                    server.start()
                run_benchmark(server, "SET", RANGE, 16, RANGE)
                return statistics.median(run_benchmark(server, "SET", RANGE, 1, RANGE)["cpu_us"]
                                         for _ in range(self.o.rounds))
            return run

        on = self.with_frond(directory / "on", measure(True))
        off = self.with_frond(directory / "off", measure(False))
        self.size("CPU of SET with history", on / off, f"{on:.1f} µs with history, {off:.1f} "
                                                       "without")

    def queue(self, directory):
        """What was taken leaves deleted keys in front of what is left: must not cost the next."""
        tenth = self.o.messages // 10

        def rate(server, words, count, pipeline):
            done = subprocess.run(["redis-benchmark", "-p", str(server.redis_port), "-c",
                                   str(CLIENTS), "-n", str(count), "-P", str(pipeline), "--csv",
                                   *words], stdout=subprocess.PIPE, text=True, check=True)
            return float(list(csv.DictReader(io.StringIO(done.stdout)))[-1]["rps"])

        def measure(server):
            rate(server, ["RPUSH", "queue", "message"], self.o.messages, 1)
            rates = [rate(server, ["LPOP", "queue"], tenth, 16) for _ in range(10)]
            with Client(server.redis_port) as client:
                if client.ask("LLEN", "queue"):
                    sides.fail("messages are left in the queue")
            return rates[0], rates[-1]

        first, last = self.with_frond(directory, measure)
        self.size("last messages of a queue", first / last,
                  f"{self.o.messages:,} messages, each pushed by a transaction of its own, taken by "
                  f"LPOP, 16 in a pipeline: {first:,.0f} a second at first, {last:,.0f} at last")

    def size(self, name, value, text):
        say(f"{name}: {value:.2f} ({text})")
        self.found["sizes"][name] = {"value": value, "text": text, "most": MOST[name],
                                     "commit": sides.commit(TOP),
                                     "load_average": os.getloadavg()[0]}


# ---- The tables ----

def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.2f}"


def rows_text(found):
    out = ["| command | frond | redis, always | frond/it | goal | redis, everysec | frond/it | "
           "CPU µs | redis's |", "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for name, row in found["rows"].items():
        ours = row["sides"]["frond"]
        always, everysec = row["sides"]["redis, always"], row["sides"]["redis, everysec"]
        out.append(f"| {name} | {number(ours['rate'])} | {number(always['rate'])} | "
                   f"{always['ratio']:.2f}× | {row['goal']}× | {number(everysec['rate'])} | "
                   f"{everysec['ratio']:.2f}× | {ours['cpu_us']:.1f} | {always['cpu_us']:.1f} |")
    return "\n".join(out)


def sizes_text(found):
    out = ["| | measured | at most | | at | load |", "|---|---:|---:|---|---|---:|"]
    for name, size in found["sizes"].items():
        out.append(f"| {name} | {number(size['value'])} | {number(size['most'])} | "
                   f"{size['text']} | {size['commit']} | {size['load_average']:.0f} |")
    return "\n".join(out)


def about_text(found):
    a = found["about"]
    return (f"Made by `bench/redis.py` on {a['date'].split()[0]} at {a['commit']}, on "
            f"{a['processors']} processors, redis-benchmark on the same; {CLIENTS} connections, "
            f"medians of {a['rounds']} rounds; load average {a['load_average']:.0f} at the end.")


def slow_text(slow):
    out = [f"| command, syncs {slow['sync_ms']:g} ms longer | frond | redis, always | frond/it | goal |",
           "|---|---:|---:|---:|---:|"]
    for name, row in slow["rows"].items():
        ours, always = row["sides"]["frond"], row["sides"]["redis, always"]
        out.append(f"| {name} | {number(ours['rate'])} | {number(always['rate'])} | "
                   f"{always['ratio']:.2f}× | {row['goal']}× |")
    return "\n".join(out)


def put(path, begin, text, end):
    old = path.read_text()
    if begin not in old or end not in old:
        sys.exit(f"{path} has no place for the table")
    path.write_text(old[:old.index(begin)] + f"{begin}\n\n{text}\n\n" + old[old.index(end):])


def publish_slow(slow):
    put(PAGE, SLOW_BEGIN, f"{slow_text(slow)}\n\n{about_text(slow)}", SLOW_END)


def publish(found):
    put(PAGE, BEGIN, f"{rows_text(found)}\n\n{sizes_text(found)}\n\n{about_text(found)}", END)


def merge(old, new):
    """The last whole run's figures, with new ones in their place. Sizes say when they are of."""
    return {**old, "about": new["about"] if new["rows"] else old["about"],
            "rows": {**old.get("rows", {}), **new["rows"]},
            "sizes": {**old.get("sizes", {}), **new["sizes"]}}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    env = os.environ
    parser.add_argument("--build", default=str(TOP / "build"))
    parser.add_argument("--only", action="append", metavar="WORD",
                        help="rows whose titles have the word; " + ", ".join(SIZES))
    parser.add_argument("--rounds", type=int, default=int(env.get("BENCH_ROUNDS", "3")))
    parser.add_argument("--seconds", type=float, default=float(env.get("BENCH_SECONDS", "2")))
    parser.add_argument("--keys", type=int, default=1000000,
                        help="keys in memory; the goal is about 10,000,000")
    parser.add_argument("--keys-due", type=int, default=1000000, help="keys that expire at once")
    parser.add_argument("--beside", type=int, default=100000, help="SETs beside those")
    parser.add_argument("--subscribers", type=int, default=10000)
    parser.add_argument("--messages", type=int, default=100000, help="of a queue")
    parser.add_argument("--sync-ms", type=float, default=0, metavar="N",
                        help="milliseconds that each sync of all servers takes longer")
    parser.add_argument("--rest", type=float, default=10, help="seconds that subscribers idle")
    parser.add_argument("--work", help="directory for the data")
    parser.add_argument("--publish", action="store_true")
    options = parser.parse_args()
    options.build = str(pathlib.Path(options.build).resolve())
    return options


def main():
    options = arguments()
    if not REDIS_SERVER or not shutil.which("redis-benchmark"):
        say("bench/redis.py: redis-tools are not installed; nothing is measured")
        return
    bench = Bench(options)
    work = tempfile.mkdtemp(prefix="frond-redis-", dir=options.work)
    try:
        bench.commands(pathlib.Path(work))
        if not options.sync_ms:
            bench.sizes(pathlib.Path(work))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    found = bench.found
    found["about"] = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": sides.commit(TOP), "processors": os.cpu_count(), "rounds": options.rounds,
        "seconds": options.seconds, "load_average": os.getloadavg()[0]}
    if options.sync_ms:
        found["sync_ms"] = options.sync_ms
        print(slow_text(found))
    elif found["rows"]:
        print(rows_text(found))
    if found["sizes"]:
        print(f"\n{sizes_text(found)}")
    print(f"\n{about_text(found)}")
    out = RESULTS if options.publish else pathlib.Path(options.build) / "bench" / "results"
    out.mkdir(parents=True, exist_ok=True)
    path = out / "redis.json"
    old = json.loads(path.read_text()) if path.exists() else {}
    if options.sync_ms:
        slow = old.get("slow", {})
        same = slow.get("sync_ms") == options.sync_ms
        whole = {**old, "slow": merge(slow, found) if same else found}
    else:
        whole = merge(old, found) if old.get("rows") else {**old, **found}
    path.write_text(json.dumps(whole, indent=1) + "\n")
    if options.publish and options.sync_ms:
        publish_slow(whole["slow"])
    elif options.publish:
        publish(whole)


if __name__ == "__main__":
    main()
