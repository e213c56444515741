"""What an attack must not harm: readers, a writer that keeps a ledger, and the server's memory."""

import http.client
import json
import subprocess
import threading
import time

READERS = 16
DOCUMENTS = 2000
DATABASE = "bench"  # the load generator's
WRITER_PAUSE_SECONDS = 0.02
SAMPLE_SECONDS = 0.05


def prepare(frond):
    """The documents that readers read: those that the load generator makes of their numbers."""
    frond.must("PUT", f"/{DATABASE}")


def fill(load, frond):
    run_load(load, frond, "bulk", "--count", str(DOCUMENTS), "--batch", "500")


def run_load(load, frond, operation, *options):
    auth = ["--auth", frond.auth] if frond.auth else []
    result = subprocess.run(
        [load, "--port", str(frond.port), "--db", DATABASE, *auth, operation, *options],
        capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"a well-behaved client ({operation}): {result.stderr.strip()}")
    return json.loads(result.stdout)


def read(load, frond, seconds):
    """Runs the readers; what the load generator measured. RuntimeError if an answer was wrong."""
    return run_load(load, frond, "get", "--connections", str(READERS), "--docs",
                    str(DOCUMENTS), "--seconds", str(seconds))


class Writer(threading.Thread):
    """Writes small documents one after another, and remembers which were acknowledged."""

    def __init__(self, frond, first):
        super().__init__(daemon=True)
        self.frond = frond
        self.next = first
        self.acknowledged = []
        self.refused = {}
        self.longest_seconds = 0.0
        self.ending = threading.Event()

    def run(self):
        connection = None
        while not self.ending.is_set():
            name = f"written-{self.next:08d}"
            self.next += 1
            begin = time.monotonic()
            try:
                if not connection:
                    connection = http.client.HTTPConnection("127.0.0.1", self.frond.port,
                                                            timeout=60)
                connection.request("PUT", f"/{DATABASE}/{name}", json.dumps({"n": self.next}),
                                   self.frond.headers())
                answer = connection.getresponse()
                rev = json.loads(answer.read()).get("rev")
                if answer.status in (201, 202):
                    self.acknowledged.append((name, rev))
                else:
                    self.refused[answer.status] = self.refused.get(answer.status, 0) + 1
            except (OSError, http.client.HTTPException, ValueError):
                connection = None
                self.refused["no answer"] = self.refused.get("no answer", 0) + 1
            self.longest_seconds = max(self.longest_seconds, time.monotonic() - begin)
            self.ending.wait(WRITER_PAUSE_SECONDS)

    def end(self):
        self.ending.set()
        self.join()

    def lost(self, frond):
        """The names of acknowledged documents that the server does not have as they were."""
        lost = []
        for begin in range(0, len(self.acknowledged), 1000):
            page = self.acknowledged[begin:begin + 1000]
            rows = frond.must("POST", f"/{DATABASE}/_all_docs", {"keys": [n for n, _ in page]})
            for (name, rev), row in zip(page, rows["rows"]):
                if row.get("value", {}).get("rev") != rev:
                    lost.append(name)
        return lost


class Memory(threading.Thread):
    """The most resident memory that the server, and its workers together, had while this ran."""

    def __init__(self, frond):
        super().__init__(daemon=True)
        self.frond = frond
        self.peak_bytes = 0
        self.peak_workers_bytes = 0
        self.ending = threading.Event()

    def run(self):
        while not self.ending.is_set():
            self.peak_bytes = max(self.peak_bytes, self.frond.resident_bytes())
            self.peak_workers_bytes = max(self.peak_workers_bytes, self.frond.workers_bytes())
            self.ending.wait(SAMPLE_SECONDS)

    def end(self):
        self.ending.set()
        self.join()
