#!/usr/bin/env python3
"""A long run in which one client in ten misbehaves. README.md has the rules."""

import argparse
import collections
import hashlib
import http.client
import json
import multiprocessing
import os
import queue
import random
import resource
import signal
import statistics
import sys
import threading
import time
import traceback

import attacks
import server

MIB = 1024 * 1024
DB = "soak"
GOOD_CLIENTS = 36
BAD_CLIENTS = 4
PROCESSES = 4          # that the good clients are spread over
PAUSE_SECONDS = 0.1    # of a good client between two requests, on average
TURN_SECONDS = (5, 20)  # that a bad client spends on one attack
COMPARE_SECONDS = 300  # at most, and a third of the run: for windows beside the constant server
WINDOW_SECONDS = (4, 10)  # of those windows, and what their clients take to be there
DRAIN_MS = 10000
RETRIES = 20


# On which server the bad clients work, in windows that are compared; outside of those it is frond.
OUTSIDE, FROND, CONSTANT = 0, 1, 2


class Wrong(Exception):
    """An answer that a well-behaved client must not get."""


class Client:
    """A well-behaved client. It checks each answer and remembers what was acknowledged."""

    def __init__(self, port, number, seed, window):
        self.port = port
        self.number = number
        self.random = random.Random(seed)
        self.connection = None
        self.acknowledged = {}  # id: revision; None: deleted
        self.uncertain = set()  # ids of writes whose answer did not come
        self.latencies = {OUTSIDE: [], FROND: [], CONSTANT: []}
        self.window = window
        self.refused = collections.Counter()

    def ask(self, method, path, body=None, headers=None, raw=False):
        """Status and answer. Refusals that a client may repeat are repeated."""
        for _ in range(RETRIES):
            try:
                status, answer = self.ask_once(method, path, body, headers, raw)
            except (OSError, http.client.HTTPException) as error:
                self.connection = None
                self.refused[type(error).__name__] += 1
                if method in ("PUT", "POST", "DELETE"):
                    return None, None
                continue
            if status in (408, 429, 503):
                self.refused[status] += 1
                time.sleep(0.2)
                continue
            return status, answer
        raise Wrong(f"{method} {path}: refused {RETRIES} times: {dict(self.refused)}")

    def ask_once(self, method, path, body, headers, raw):
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        window = self.window.value
        begin = time.monotonic()
        self.connection.request(method, f"/{DB}{path}", body,
                                headers or {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if window == self.window.value:
            self.latencies[window].append(time.monotonic() - begin)
        return answer.status, text if raw else json.loads(text)

    def expect(self, status, expected, what, answer):
        if status not in expected:
            raise Wrong(f"{what}: {status} {str(answer)[:300]}")

    def keep(self, name, status, answer, what):
        """What a write of one document was answered."""
        if status is None:
            self.uncertain.add(name)
            self.acknowledged.pop(name, None)
        else:
            self.expect(status, (200, 201, 202), what, answer)
            self.acknowledged[name] = answer["rev"]

    def edit(self):
        name = f"c{self.number}-{self.random.randrange(200)}"
        if name in self.uncertain:
            return
        rev = self.acknowledged.get(name)
        doc = {"n": self.random.randrange(10 ** 9), "text": "x" * self.random.randrange(3000)}
        status, answer = self.ask("PUT", f"/{name}" + (f"?rev={rev}" if rev else ""), doc)
        self.keep(name, status, answer, f"PUT {name} over {rev}")
        if status is None:
            return
        status, found = self.ask("GET", f"/{name}")
        self.expect(status, (200,), f"GET {name}", found)
        if found["_rev"] != self.acknowledged[name] or found["n"] != doc["n"]:
            raise Wrong(f"GET {name}: {str(found)[:200]} and not {self.acknowledged[name]}")

    def bulk(self):
        tag = f"{self.number}-{self.random.getrandbits(60):x}"
        docs = [{"_id": f"b{tag}-{i}", "i": i} for i in range(50)]
        status, rows = self.ask("POST", "/_bulk_docs", {"docs": docs})
        if status is None:
            return
        self.expect(status, (201,), "_bulk_docs", rows)
        for row in rows:
            if row.get("error") not in (None, "service unavailable"):
                raise Wrong(f"_bulk_docs: {row}")
            if "rev" in row:
                self.acknowledged[row["id"]] = row["rev"]

    def attach(self):
        name = f"a{self.number}-{self.random.getrandbits(60):x}"
        data = self.random.randbytes(self.random.randrange(1, 300000))
        status, answer = self.ask("PUT", f"/{name}/file", data, {"Content-Type": "image/png"})
        self.keep(name, status, answer, f"PUT {name}/file")
        if status is None:
            return
        status, found = self.ask("GET", f"/{name}/file", raw=True)
        self.expect(status, (200,), f"GET {name}/file", found)
        if hashlib.md5(found).digest() != hashlib.md5(data).digest():
            raise Wrong(f"GET {name}/file: {len(found)} bytes that differ")

    def list_some(self):
        names = self.random.sample(sorted(self.acknowledged), min(50, len(self.acknowledged)))
        status, answer = self.ask("POST", "/_all_docs", {"keys": names})
        self.expect(status, (200,), "_all_docs", answer)
        for name, row in zip(names, answer["rows"]):
            if row.get("value", {}).get("rev") != self.acknowledged[name]:
                raise Wrong(f"_all_docs: {row} and not {self.acknowledged[name]}")

    def changes(self):
        status, answer = self.ask("GET", "/_changes?descending=true&limit=100&include_docs=true")
        self.expect(status, (200,), "_changes", answer)
        seqs = [row["seq"] for row in answer["results"]]
        if seqs != sorted(seqs, reverse=True):
            raise Wrong("_changes: not in order")

    def delete(self):
        name = f"c{self.number}-{self.random.randrange(200)}"
        rev = self.acknowledged.get(name)
        if not rev:
            return
        status, answer = self.ask("DELETE", f"/{name}?rev={rev}")
        self.keep(name, status, answer, f"DELETE {name} {rev}")
        if status is not None:
            del self.acknowledged[name]
            self.uncertain.add(name)  # another edit would need the deleted revision

    def step(self):
        do = self.random.choices(
            (self.edit, self.bulk, self.attach, self.list_some, self.changes, self.delete),
            (60, 5, 5, 15, 5, 2))[0]
        do()


def run_good(port, numbers, seed, until, window, results):
    """A process with some of the good clients, a thread each."""
    def work(number):
        client = Client(port, number, seed + number, window)
        fault = None
        try:
            while time.monotonic() < until:
                client.step()
                time.sleep(client.random.expovariate(1 / PAUSE_SECONDS))
        except Exception:  # whatever it is, the run has failed, and the parent tells it
            fault = traceback.format_exc()
        results.put((number, client.acknowledged, dict(client.refused),
                     client.latencies, fault))

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threads = [threading.Thread(target=work, args=(n,)) for n in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_attack(attack, port, size, tried):
    while True:
        try:
            attack.work(attacks.Target(port, tried, os.getpid()), size)
        except (OSError, EOFError):
            time.sleep(0.01)


def run_bad(port, chosen, allowed, until, tried):
    """
    A bad client: one attack after another, each in a process of its own. What they tried is added
    to the list. Each has a count of its own, since one that is killed may keep the count's lock.
    """
    while time.monotonic() < until:
        attack = chosen.choice(allowed)
        count = multiprocessing.Value("L", 0)
        worker = multiprocessing.Process(
            target=run_attack, args=(attack, port, max(1, attack.bounded // 4), count))
        worker.start()
        time.sleep(min(chosen.uniform(*TURN_SECONDS), max(0, until - time.monotonic())))
        worker.kill()
        worker.join()
        tried.append(count.get_obj().value)


class BadClients(threading.Thread):
    """They compare the two servers for a while, and work on frond for the rest of the time."""

    def __init__(self, options, frond, constant, until, window):
        super().__init__(daemon=True)
        self.ports = {FROND: frond.port, CONSTANT: constant.port}
        self.chosen = random.Random(options.seed)
        self.allowed = attacks_of(options)
        self.compare_until = time.monotonic() + min(COMPARE_SECONDS, options.seconds / 3)
        self.until = until
        self.window = window
        self.tried = []

    def work(self, victim, seed, until):
        """All of them, on one server; the same seed makes them choose the same attacks."""
        threads = [threading.Thread(target=run_bad, args=(
            self.ports[victim], random.Random(seed + n), self.allowed, until, self.tried))
                   for n in range(BAD_CLIENTS)]
        for thread in threads:
            thread.start()
        return threads

    def compare(self, victim, seed):
        warm_up, measured = WINDOW_SECONDS
        threads = self.work(victim, seed, time.monotonic() + warm_up + measured)
        time.sleep(warm_up)
        self.window.value = victim
        time.sleep(measured)
        self.window.value = OUTSIDE
        for thread in threads:
            thread.join()

    def run(self):
        while time.monotonic() + 2 * sum(WINDOW_SECONDS) < self.compare_until:
            seed = self.chosen.getrandbits(32)
            order = [FROND, CONSTANT]
            self.chosen.shuffle(order)
            for victim in order:
                self.compare(victim, seed)
        for thread in self.work(FROND, self.chosen.getrandbits(32), self.until):
            thread.join()


def attacks_of(options):
    return [a for a in attacks.ALL if not a.functions or server.has_functions(options.frond)]


def prepare(frond, options):
    """Each attack's database, and the good clients'."""
    frond.must("PUT", f"/{DB}")
    for attack in attacks_of(options):
        try:
            attack.prepare(frond, max(1, attack.bounded // 4))
        except server.Failure:
            pass  # what it needs is there, put by an attack before it


def collect(results, frond, until, samples):
    """The clients' reports; samples memory meanwhile."""
    reports = []
    while len(reports) < GOOD_CLIENTS:
        samples.append(frond.resident_bytes())
        if frond.process.poll() is not None:
            raise server.Failure(f"the server ended: {frond.log_path.read_text()[-2000:]}")
        try:
            reports.append(results.get(timeout=1))
        except queue.Empty:
            if time.monotonic() > until + 300:
                raise server.Failure("clients do not come back") from None
    return reports


def lost_of(frond, acknowledged):
    lost = []
    items = sorted(acknowledged.items())
    for begin in range(0, len(items), 1000):
        page = items[begin:begin + 1000]
        rows = frond.must("POST", f"/{DB}/_all_docs", {"keys": [name for name, _ in page]})
        lost += [name for (name, rev), row in zip(page, rows["rows"])
                 if row.get("value", {}).get("rev") != rev]
    return lost


def soak(options, directory):
    frond = server.Frond(options.frond, directory, options.memory, DRAIN_MS)
    constant = server.Constant(options.constant, directory)
    children = []
    samples = []
    try:
        prepare(frond, options)
        until = time.monotonic() + options.seconds
        results = multiprocessing.Queue()
        window = multiprocessing.Value("i", OUTSIDE)
        share = [range(n, GOOD_CLIENTS, PROCESSES) for n in range(PROCESSES)]
        children = [multiprocessing.Process(target=run_good, args=(
            frond.port, list(numbers), options.seed, until, window, results))
                    for numbers in share]
        bad = BadClients(options, frond, constant, until, window)
        for worker in children + [bad]:
            worker.start()
        reports = collect(results, frond, until, samples)
        bad.join()
        ended = frond.end(DRAIN_MS / 1000 + 20)
        frond = server.Frond(options.frond, directory, options.memory, DRAIN_MS)
        acknowledged = {k: v for report in reports for k, v in report[1].items()}
        return (reports, samples, sum(bad.tried), ended, acknowledged,
                lost_of(frond, acknowledged))
    finally:
        for child in children:
            child.kill()
        frond.kill()
        constant.kill()


def latencies_of(reports, *windows):
    return sorted(x for report in reports for window in windows for x in report[3][window])


def p99_ms(latencies):
    return latencies[len(latencies) * 99 // 100] * 1000 if latencies else 0


def compared(reports):
    frond, constant = (p99_ms(latencies_of(reports, window)) for window in (FROND, CONSTANT))
    if not frond or not constant:
        return "too short for a comparison"
    return (f"p99 {frond:.1f} ms while the others work on frond, {constant:.1f} while they work "
            f"on the constant server (× {frond / constant:.1f})")


def tell(options, reports, samples, tried, ended, acknowledged, lost):
    latencies = latencies_of(reports, OUTSIDE, FROND, CONSTANT)
    refused = collections.Counter()
    for report in reports:
        refused.update(report[2])
    faults = [report[4] for report in reports if report[4]]
    third = max(1, len(samples) // 3)
    early, late = statistics.median(samples[:third]), statistics.median(samples[-third:])
    limit = options.memory * 1.25 + options.allowance
    print(f"# {len(latencies)} requests of {GOOD_CLIENTS} well-behaved clients, p50 "
          f"{latencies[len(latencies) // 2] * 1000:.1f} ms, p99 {p99_ms(latencies):.1f} ms, longest "
          f"{latencies[-1] * 1000:.0f} ms, refused {dict(refused) or 'none'}; {tried} attempts of "
          f"{BAD_CLIENTS} others; memory {early / MIB:.0f} MiB early, {late / MIB:.0f} late, "
          f"{max(samples) / MIB:.0f} at most; {len(acknowledged)} documents acknowledged")
    print(f"# {compared(reports)}")
    if max(samples) > limit:
        faults.append(f"{max(samples) / MIB:.0f} MiB resident, of {limit / MIB:.0f}")
    faults += ended.faults(DRAIN_MS / 1000 + 1)
    if lost:
        faults.append(f"{len(lost)} acknowledged documents are lost: {lost[:3]}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frond", required=True)
    parser.add_argument("--constant", required=True)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--memory", type=int, default=128 * MIB, help="memory_bytes")
    parser.add_argument("--allowance", type=int, default=192 * MIB,
                        help="resident bytes for code, caches and what is not in tables yet")
    options = parser.parse_args()
    options.frond, options.constant = map(os.path.abspath, (options.frond, options.constant))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(f"1..1\n# seed {options.seed}", flush=True)
    with server.Directory() as directory:
        try:
            faults = tell(options, *soak(options, directory))
        except server.Failure as error:
            faults = [str(error)]
    print(f"{'not ok' if faults else 'ok'} 1 - soak_in_which_one_client_in_ten_misbehaves")
    for fault in faults:
        for line in fault.splitlines():
            print(f"#   {line}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
