"""A frond at a FoundationDB server of the test's own, which pauses, is killed and comes back, and is
slow, while clients write: every answer is right or a clear error, nothing that was acknowledged is
lost, and nothing is there twice. Needs the server; FROND_TEST_FDBSERVER names its program, and
fdbcli lies beside it or in the folder bin beside its folder. FROND_TEST_ROWS is how many rows the long
answers have, a multiple of 4,000; each of 10,000,000 takes an hour, and 14 GB where the store lies."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import sys
import threading
import time
import types
import urllib.error
import urllib.request

from harness import ENV, FROND, QUICK, Server, contains, equal, foundationdb, main, ok, test, until
from mongo import Client as Mongo
from mongo import Failure
from resp import Client as Redis
from resp import Error

ENV.pop("FDB_NETWORK_OPTION_KNOB", None)  # a client as patient as users' clients are
HAS_WORKER = (pathlib.Path(FROND).parent / "frond-js").exists()
FDBSERVER = os.environ.get("FROND_TEST_FDBSERVER")
WRITERS = 4
ERRORS = {500, 503}  # "timeout", "service unavailable": the outcome is not known, or nothing was done
SLOW = ("--knob_start_transaction_batch_interval_max=0.2",
        "--knob_commit_transaction_batch_interval_max=0.2")


class Cluster(foundationdb.Cluster):
    def __init__(self, cwd, *options):
        super().__init__(foundationdb.with_server(FDBSERVER), cwd / "cluster", *options)


def ask(server, method, path, body=None):
    """As Server.request(), with as much time as a cluster may take to come back."""
    request = urllib.request.Request(
        server.url + path, data=None if body is None else json.dumps(body).encode(), method=method,
        headers={"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        body = json.load(error)
        assert body["error"] and body["reason"], body
        return error.code, body


def until_answered(server, path):
    def answer():
        code, body = ask(server, "GET", path)
        assert code == 200 or code in ERRORS, (code, body)
        return (body,) if code == 200 else None

    return until(answer)[0]


class Writer(threading.Thread):
    """Creates documents, one after the other, and counts in one of its own."""

    def __init__(self, server, number, stop):
        super().__init__()
        self.server, self.number, self.stop = server, number, stop
        self.there, self.unknown, self.wrong, self.errors = {}, set(), [], []
        self.counted, self.uncertain = 0, 0
        self.start()

    def create(self, n):
        doc = f"w{self.number}-{n}"
        code, body = ask(self.server, "PUT", f"/db/{doc}", {"n": n, "list": [1, {"a": "b"}]})
        if code == 201:
            self.there[doc] = body["rev"]
        elif code in ERRORS:
            self.unknown.add(doc)
            self.errors.append((code, body["reason"]))
        else:
            self.wrong.append((doc, code, body))  # a conflict: it was written twice

    def count(self):
        path = f"/db/counter{self.number}"
        code, doc = ask(self.server, "GET", path)
        if code in ERRORS:
            return
        doc = doc if code == 200 else {"n": 0}
        doc["n"] += 1
        code, body = ask(self.server, "PUT", path, doc)
        if code == 201:
            self.counted += 1
        elif code in ERRORS:
            self.uncertain += 1
            self.errors.append((code, body["reason"]))
        elif code != 409 or not self.uncertain:
            self.wrong.append((path, code, body))

    def run(self):
        n = 0
        try:
            while not self.stop.is_set():
                self.create(n)
                self.count()
                n += 1
        except Exception as error:
            self.wrong.append(repr(error))


class Reader(threading.Thread):
    """Follows the feed, from where it was when an answer ends, whole or not."""

    def __init__(self, server, stop):
        super().__init__()
        self.server, self.stop, self.rows, self.since = server, stop, {}, "0"
        self.last_round = False
        self.wrong = []
        self.start()

    def follow(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        url = f"{self.server.url}/db/_changes?feed=continuous&timeout=1000&since={self.since}"
        with opener.open(url, timeout=120) as feed:
            for line in feed:
                if not line.endswith(b"\n") or not line.strip():
                    continue
                row = json.loads(line)
                if "id" not in row:
                    continue
                if row["seq"] <= self.since:
                    self.wrong.append(f"{row['seq']} after {self.since}")
                self.since = row["seq"]
                self.rows[row["id"]] = row["changes"][0]["rev"]

    def run(self):
        while True:
            last_round = self.stop.is_set()
            try:
                self.follow()
            except (OSError, ValueError):
                time.sleep(0.1)
                continue
            except Exception as error:  # http.client's: the answer ended early
                if not type(error).__module__.startswith("http"):
                    self.wrong.append(repr(error))
                continue
            if last_round:
                return


@contextlib.contextmanager
def clients(server, seconds):
    """Writers and a reader, while the block lasts and at least so long; then everything is compared."""
    equal(ask(server, "PUT", "/db")[0], 201)
    stop, still = threading.Event(), threading.Event()
    writers = [Writer(server, n, stop) for n in range(WRITERS)]
    reader = Reader(server, still)
    begun = time.monotonic()
    try:
        yield
        time.sleep(max(0, begun + seconds - time.monotonic()))
    finally:
        stop.set()
        for writer in writers:
            writer.join(180)
        until_answered(server, "/db")
        still.set()
        reader.join(60)
    assert not reader.is_alive()
    compare(server, writers, reader)


def compare(server, writers, reader):
    rows = {row["id"]: row["value"]["rev"]
            for row in until_answered(server, "/db/_all_docs")["rows"]}
    changes = until_answered(server, "/db/_changes")["results"]
    equal(len({row["id"] for row in changes}), len(changes))
    equal({row["id"]: row["changes"][0]["rev"] for row in changes}, rows)
    equal(reader.wrong, [])
    equal(reader.rows, rows)
    expected = set()
    for writer in writers:
        equal(writer.wrong, [])
        for doc, rev in writer.there.items():
            equal(rows.get(doc), rev)
        expected |= set(writer.there) | writer.unknown | {f"counter{writer.number}"}
        doc = until_answered(server, f"/db/counter{writer.number}")
        assert writer.counted <= doc["n"] <= writer.counted + writer.uncertain, (
            writer.counted, doc["n"], writer.uncertain)
        equal(doc["_rev"].split("-")[0], str(doc["n"]))
    assert set(rows) <= expected
    done = sum(len(w.there) + w.counted for w in writers)
    errors = [error for w in writers for error in w.errors]
    assert done > 0
    print(f"# {done} writes acknowledged, {len(errors)} ended with an error: {sorted(set(errors))}")


@test
def server_that_pauses_loses_and_doubles_nothing(cwd):
    with Cluster(cwd) as cluster, Server(cwd, "--store", cluster.url) as server:
        with clients(server, 5):
            for seconds in (0.3, 2, 6, 12):
                time.sleep(random.uniform(0.3, 1))
                cluster.pause(seconds)
        ok_store(cwd, cluster)


@test
def server_that_is_killed_and_comes_back_loses_and_doubles_nothing(cwd):
    with Cluster(cwd) as cluster, Server(cwd, "--store", cluster.url) as server:
        with clients(server, 5):
            for seconds in (0, 0, 1, 0, 3, 0):
                time.sleep(random.uniform(0.5, 2.5))
                cluster.crash(seconds)
                time.sleep(2)
        ok_store(cwd, cluster)


BUILT = 6000
INDEXES = {"language": "query", "views": {name: {"map": {"fields": {name: "asc"}}}
                                          for name in ("n", "group")}}
VIEW = {"views": {"n": {"map": "function (doc) { emit(doc.n, null); }", "reduce": "_count"}}}


@test
def indexes_and_views_are_whole_though_the_server_is_killed_while_they_are_built(cwd):
    with Cluster(cwd) as cluster, Server(cwd, "--store", cluster.url) as server:
        equal(ask(server, "PUT", "/built")[0], 201)
        for first in range(0, BUILT, 1000):
            docs = [{"_id": f"d{n:05}", "n": n, "group": n % 7} for n in range(first, first + 1000)]
            equal(ask(server, "POST", "/built/_bulk_docs", {"docs": docs})[0], 201)
        with clients(server, 5):
            equal(ask(server, "PUT", "/built/_design/i", INDEXES)[0], 201)
            if HAS_WORKER:
                equal(ask(server, "PUT", "/built/_design/v", VIEW)[0], 201)
            for seconds in (0, 1, 0):
                time.sleep(random.uniform(0.1, 0.5))
                cluster.crash(seconds)
                time.sleep(1)
        def when_ready():
            rows = [row for row in until_answered(server, "/built/_index?sizes=true")["indexes"]
                    if row["type"] == "json"]
            return all(row["state"] == "ready" for row in rows) and rows

        equal([row["entries"] for row in until(when_ready)], [BUILT, BUILT])
        code, found = ask(server, "POST", "/built/_find", {
            "selector": {"n": {"$gte": BUILT - 100}}, "limit": 1000, "fields": ["n"]})
        equal((code, sorted(doc["n"] for doc in found["docs"])),
              (200, list(range(BUILT - 100, BUILT))))
        if HAS_WORKER:
            rows = until_answered(server, "/built/_design/v/_view/n")["rows"]
            equal(rows, [{"key": None, "value": BUILT}])
        ok_store(cwd, cluster)


# ---- Long answers ----

ROWS, QUARTERS = int(os.environ.get("FROND_TEST_ROWS", 8000)), 4
LOAD = 1000
# So that an answer is more than the buffers of a connection.
TEXT = "x" * (2000 if ROWS <= 50000 else 200)
LONG_S = 300 + ROWS // 200  # that reading them may take


def row_id(n):
    return f"d{n:08}"


class Listing:
    """Rows of one long answer, a line each. What has come of one that was cut off is not asked for again."""

    def __init__(self, server):
        self.server, self.last = server, None

    def lines(self, path, body=None):
        request = urllib.request.Request(
            self.server.url + path, data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
            for line in answer:
                if line.startswith(b"{\"id\":") or line.startswith(b"{\"_id\":") or line.startswith(b"{\"seq\":"):
                    yield json.loads(line.strip().rstrip(b","))

    def read(self):
        after = f"&start_key=%22{self.last}%22&skip=1" if self.last else ""
        for row in self.lines(f"/rows/_all_docs?include_docs=true{after}"):
            self.last = row["id"]
            yield row["id"]


class Changes(Listing):
    def read(self):
        since = self.last or "0"
        for row in self.lines(f"/rows/_changes?include_docs=true&since={since}"):
            self.last = row["seq"]
            yield row["id"]


class Find(Listing):
    def read(self):
        body = {"selector": {"_id": {"$gt": self.last or ""}}, "limit": ROWS}
        for doc in self.lines("/rows/_find", body):
            self.last = doc["_id"]
            yield doc["_id"]


class View(Listing):
    def read(self):
        first = 0 if self.last is None else self.last + 1
        for row in self.lines(f"/rows/_design/v/_view/n?reduce=false&include_docs=true&start_key={first}"):
            self.last = row["key"]
            yield row["id"]


class Cursor(Listing):
    def read(self):
        with contextlib.closing(Mongo(port_of(self.server, "mongo"))) as c:
            found = c({"find": "rows", "filter": {"_id": {"$gt": self.last or ""}}, "sort": {"_id": 1},
                       "batchSize": 500}, "d")["cursor"]
            docs = found["firstBatch"]
            while docs:
                for doc in docs:
                    self.last = doc["_id"]
                    yield doc["_id"]
                docs = found["id"] and c({"getMore": found["id"], "collection": "rows", "batchSize": 500},
                                         "d")["cursor"]["nextBatch"]


class Scan(Listing):
    def read(self):
        with contextlib.closing(Redis(port_of(self.server, "redis"), timeout=120)) as c:
            while self.last != b"0":
                got = c("SSCAN", "rows", self.last or "0", "COUNT", "200")
                if isinstance(got, Error):
                    raise OSError(str(got))
                self.last, members = got
                yield from (member.decode() for member in members)


def port_of(server, door):
    return int(re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))


class LongReader(threading.Thread):
    """Reads all rows. After each quarter it rests until the server has been killed."""

    def __init__(self, listing, gate):
        super().__init__(name=type(listing).__name__)
        self.listing, self.gate, self.cut, self.failure = listing, gate, 0, None
        self.count, self.seen, self.others = 0, bytearray(ROWS), set()
        self.start()

    def read(self):
        for row in self.listing.read():
            if row.startswith("_design/"):
                continue
            n = int(row[1:])
            if n < ROWS and row == row_id(n) and self.seen[n] < 255:
                self.seen[n] += 1
            else:
                self.others.add(row)
            self.count += 1
            if self.count % (ROWS // QUARTERS) == 0 and self.count < ROWS:
                self.gate.wait()
                self.gate.wait()

    def wrong(self):
        """Of rows that were not seen once each, the first few."""
        missing_or_twice = [] if self.seen == b"\1" * ROWS else [n for n in range(ROWS) if self.seen[n] != 1]
        return missing_or_twice[:10] + sorted(self.others)[:10]

    def run(self):
        deadline = time.monotonic() + LONG_S
        try:
            while True:
                try:
                    return self.read()
                except threading.BrokenBarrierError:
                    raise
                except Exception as error:  # an error of its protocol, or an answer that ends early
                    self.cut += 1
                    if time.monotonic() > deadline:
                        raise error
                    time.sleep(0.5)
        except BaseException as failure:
            self.failure = failure


def inserted(mongo, docs):
    try:
        return mongo({"insert": "rows", "documents": docs, "ordered": False}, "d")["ok"]
    except Failure:
        return False


def in_parts(put):
    """Puts all rows, LOAD at a time. A busy cluster may not answer a commit in time: whatever took place is found
    when it is repeated."""
    for first in range(0, ROWS, LOAD):
        ids = [row_id(n) for n in range(first, first + LOAD)]
        until(lambda: put(ids, [{"_id": id, "n": first + n, "text": TEXT} for n, id in enumerate(ids)]), seconds=LONG_S)


def fill_rows(server):
    equal(ask(server, "PUT", "/rows")[0], 201)
    with contextlib.closing(Mongo(port_of(server, "mongo"))) as mongo, \
            contextlib.closing(Redis(port_of(server, "redis"), timeout=120)) as redis, \
            concurrent.futures.ThreadPoolExecutor() as doors:
        puts = (lambda _, docs: ask(server, "POST", "/rows/_bulk_docs", {"docs": docs})[0] == 201,
                lambda _, docs: inserted(mongo, docs),
                lambda ids, _: not isinstance(redis("SADD", "rows", *ids), Error))
        for filled in [doors.submit(in_parts, put) for put in puts]:
            filled.result()


@test
def long_answers_lose_and_repeat_nothing_through_restarts_of_the_server(cwd):
    """Each is at a quarter of its rows whenever the server is killed, and longer than what lies between."""
    options = ("--mongo", "127.0.0.1:0", "--redis", "127.0.0.1:0")
    with Cluster(cwd) as cluster, Server(cwd, "--store", cluster.url, *options) as server:
        fill_rows(server)
        kinds = [Listing, Changes, Find, Cursor, Scan]
        if HAS_WORKER:
            equal(ask(server, "PUT", "/rows/_design/v", VIEW)[0], 201)
            until(lambda: [row["value"] for row in until_answered(server, "/rows/_design/v/_view/n?update=lazy")
                           ["rows"]] == [ROWS], seconds=LONG_S + 100)
            kinds.append(View)
        gate = threading.Barrier(len(kinds) + 1, timeout=LONG_S)
        readers = [LongReader(kind(server), gate) for kind in kinds]
        for _ in range(QUARTERS - 1):
            gate.wait()
            cluster.crash(0)
            gate.wait()
        for reader in readers:
            reader.join(LONG_S)
            assert not reader.is_alive() and not reader.failure, (reader.name, reader.failure)
            equal((reader.name, reader.count, reader.wrong()), (reader.name, ROWS, []))
        print("# answers that were cut off:", {reader.name: reader.cut for reader in readers})


@test
def slow_server_is_waited_for(cwd):
    with Cluster(cwd, *SLOW) as cluster, Server(cwd, "--store", cluster.url) as server:
        with clients(server, 6):
            time.sleep(2)
            cluster.pause(1)
        ok_store(cwd, cluster)


def metrics_apart(server):
    """Those at the port of their own, which asks the store for nothing."""
    address = re.search(r"event=metrics_port address=(\S+)", server.read_log()).group(1)
    return Server.metrics(types.SimpleNamespace(url=f"http://{address}"))


@test
def cluster_that_is_away_or_locked_is_told_by_up_and_by_metrics(cwd):
    (cwd / "frond.ini").write_text(QUICK + "[prometheus]\nadditional_port = true\nport = 0\n")
    options = ("--config", str(cwd / "frond.ini"))
    with Cluster(cwd) as cluster, Server(cwd, "--store", cluster.url, *options) as server:
        def failures(reason):
            return metrics_apart(server)[f'frond_cluster_failures_total{{reason="{reason}"}}']

        code, up = ask(server, "GET", "/_up")
        equal((code, up["status"]), (200, "ok"))
        assert 0 < up["cluster"]["answer_ms"] < 60000, up
        before = metrics_apart(server)
        for method, path, body in (("PUT", "/db", None), ("PUT", "/db/d", {}), ("GET", "/db/d", None)):
            assert ask(server, method, path, body)[0] in (200, 201)
        after = metrics_apart(server)
        for name in ("transactions", "round_trips", "keys_read", "read_bytes", "keys_written",
                     "written_bytes"):
            name = f"frond_cluster_{name}_total"
            assert after[name] > before[name], name
        assert after["frond_cluster_answer_duration_seconds_count"] > 0

        equal((failures("timed_out"), failures("locked")), (0, 0))
        cluster.process.send_signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            code, up = ask(server, "GET", "/_up")
            assert 9 < time.monotonic() - begun < 60
            equal((code, up["error"]), (503, "service unavailable"))
            assert failures("timed_out") > 0
        finally:
            cluster.process.send_signal(signal.SIGCONT)
        until_answered(server, "/_up")

        contains(cluster.ask("lock").stdout, "Database locked")
        # A server that has just been woken may begin anew, and not answer for a moment.
        until(lambda: "locked" in ask(server, "GET", "/_up")[1].get("reason", ""))
        begun = time.monotonic()
        for path in ("/_up", "/db/d"):
            code, up = ask(server, "GET", path)
            equal((code, up["error"]), (503, "service unavailable"))
            contains(up["reason"], "locked")
        # Each within a second; without asking why the metadata version does not come, after ten.
        assert time.monotonic() - begun < 9
        assert failures("locked") > 0


def ok_store(cwd, cluster):
    out = ok("verify", "--still", "--quiet", "--store", cluster.url, cwd=cwd).stdout
    assert " 0 findings" in out, out


main(needs=None if FDBSERVER else "FROND_TEST_FDBSERVER names no server")
