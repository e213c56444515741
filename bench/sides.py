"""What is measured: servers that the bench starts and stops, servers that the caller names by URL,
and the programs that show the limits."""

import base64
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse

START_SECONDS = 60
SETTLE_SECONDS = 20
INDEX_SECONDS = 600


def fail(text):
    sys.exit(f"bench: {text}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def size_of_directory(path):
    """Blocks that files take, which is what a disk has less."""
    total = 0
    for root, _, files in os.walk(path):
        for name in files:
            try:
                total += os.stat(os.path.join(root, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


def children_of(pid):
    """A process and all below it."""
    found = [pid]
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in path.read_text().split():
                found += children_of(int(child))
        except OSError:
            pass
    return found


def listener_on(port):
    """The process that listens on a port of this machine, or None."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for fd in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(fd) in inodes:
                return int(fd.parts[2])
        except OSError:
            pass
    return None


def status_kib(pid, field):
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def commit(top):
    """What was measured."""
    return subprocess.run(["git", "-C", str(top), "rev-parse", "--short", "HEAD"],
                          stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


class Server:
    """Speaks CouchDB's HTTP API at a port of this machine, or of the caller's."""

    name = "?"
    paths = False  # answers ?path=
    rows = None    # of listings, where not as many as the bench asks for
    is_other = False  # frond, with the scheme that is not its default
    finds = True      # is asked queries, and has functions run

    def __init__(self):
        self.host = "127.0.0.1"
        self.port = 0
        self.auth = None
        self.process = None

    # -- the process --

    def spawn(self, command, log, **kwargs):
        self.process = subprocess.Popen(command, stdout=open(log, "w"), stderr=subprocess.STDOUT,
                                        **kwargs)
        self.await_up(log)

    def await_up(self, log=None):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process and self.process.poll() is not None:
                break
            try:
                if self.request("GET", "/")[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.1)
        fail(f"{self.name} did not start{': ' + pathlib.Path(log).read_text() if log else ''}")

    def stop(self):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def pids(self):
        return children_of(self.process.pid) if self.process else []

    def reset_peak(self):
        for pid in self.pids():
            try:
                pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
            except OSError:
                pass

    def memory_mb(self, field="VmHWM"):
        return sum(status_kib(pid, field) for pid in self.pids()) / 1024

    def cpu_ticks(self):
        ticks = 0
        for pid in self.pids():
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                # With what has been waited for: workers end while others are measured.
                ticks += sum(int(field) for field in fields[11:15])
            except OSError:
                pass
        return ticks

    def settle(self):
        """Until it has nothing left to do of its own accord."""
        deadline = time.monotonic() + SETTLE_SECONDS
        before = self.cpu_ticks()
        while time.monotonic() < deadline:
            time.sleep(0.3)
            now = self.cpu_ticks()
            if now - before <= 1:
                return
            before = now

    # -- HTTP --

    def request(self, method, path, body=None):
        client = http.client.HTTPConnection(self.host, self.port, timeout=600)
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body)
        if self.auth:
            headers["Authorization"] = "Basic " + self.auth
        try:
            client.request(method, path, body=body, headers=headers)
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def must(self, method, path, body=None):
        status, text = self.request(method, path, body)
        if status >= 300:
            fail(f"{self.name}: {method} {path}: {status} {text[:300]}")
        return json.loads(text)

    def make(self, db):
        self.request("DELETE", f"/{db}")
        self.must("PUT", f"/{db}")

    def drop(self, db):
        self.request("DELETE", f"/{db}")

    def make_index(self, db, field):
        self.must("POST", f"/{db}/_index", {"index": {"fields": [field]}, "ddoc": f"by-{field}",
                                            "name": field})

    def drop_index(self, db, field):
        """And what was built of it, which CouchDB would take for the same index once more."""
        status, _ = self.request("DELETE", f"/{db}/_index/by-{field}/json/{field}")
        if status == 200:
            self.request("POST", f"/{db}/_view_cleanup")

    def await_index(self, db, field):
        """Until the index is built, for which the first query of a CouchDB waits."""
        self.must("POST", f"/{db}/_find", {"selector": {field: {"$gt": None}}, "limit": 1,
                                           "use_index": f"by-{field}"})

    def make_view(self, db, name, view):
        self.must("PUT", f"/{db}/_design/{name}", {"views": {"v": view}})

    def drop_view(self, db, name):
        """And what was built of it."""
        rev = self.must("GET", f"/{db}/_design/{name}")["_rev"]
        self.must("DELETE", f"/{db}/_design/{name}?rev={rev}")
        self.must("POST", f"/{db}/_view_cleanup", {})

    def disk_bytes(self, db):
        raise NotImplementedError

    def restart(self):
        """For what only a start shows; nothing where the bench has no say over that."""


class Frond(Server):
    paths = True
    doors = ()  # beside CouchDB's: "mongo", which listens at `mongo_port`
    more = ()   # arguments
    env = None  # None: that of this process

    def __init__(self, binary, directory, store=None, name="frond", options=None):
        super().__init__()
        self.name = name
        self.binary = binary
        self.directory = pathlib.Path(directory)
        self.store = store or f"embedded:{self.directory}/store"
        self.options = options or {}

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        command = [self.binary, "serve", "--store", self.store, "--http", f"127.0.0.1:{self.port}"]
        for door in self.doors:
            port = free_port()
            setattr(self, f"{door}_port", port)
            command += [f"--{door}", f"127.0.0.1:{port}"]
        self.spawn([*command, *self.more], self.directory / "log", env=self.env)

    def make(self, db):
        self.request("DELETE", f"/{db}")
        query = urllib.parse.urlencode(self.options)
        self.must("PUT", f"/{db}{'?' + query if query else ''}")

    def scheme(self):
        """How it keeps documents unless told otherwise."""
        self.make("probe")
        scheme = self.must("GET", "/probe")["props"]["scheme"]
        self.drop("probe")
        return scheme

    def await_index(self, db, field):
        # Not by the state in `_index?sizes=true`, which counts entries: a large part of the work
        # while they come.
        deadline = time.monotonic() + INDEX_SECONDS
        query = {"selector": {field: {"$gt": None}}, "use_index": f"by-{field}"}
        while not self.must("POST", f"/{db}/_explain", query)["plan"]["reads"]:
            if time.monotonic() > deadline:
                fail(f"{self.name}: the index on {field} is not built")
            time.sleep(0.02)

    def disk_bytes(self, db):
        if self.store.startswith("embedded:"):
            return size_of_directory(self.directory / "store")
        return None

    def restart(self):
        self.stop()
        self.start()


class Pouch(Server):
    name = "pouchdb-server"
    rows = 20000
    finds = False  # its queries are PouchDB's, whose indexes are views

    def __init__(self, peers, directory):
        super().__init__()
        self.binary = pathlib.Path(peers) / "node_modules/.bin/pouchdb-server"
        self.directory = pathlib.Path(directory)

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.spawn(["node", str(self.binary), "--port", str(self.port), "--no-stdout-logs",
                    "--config", str(self.directory / "config.json"),
                    "--dir", str(self.directory)], self.directory / "log", cwd=self.directory)

    def disk_bytes(self, db):
        return size_of_directory(self.directory / db)


class Couch(Server):
    """A CouchDB, or whatever answers like one, that the caller has started."""

    name = "CouchDB"

    def __init__(self, url):
        super().__init__()
        parts = urllib.parse.urlsplit(url)
        self.host = socket.gethostbyname(parts.hostname)
        self.port = parts.port or 5984
        if parts.username:
            pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password)}"
            self.auth = base64.b64encode(pair.encode()).decode()

    def start(self):
        self.await_up()
        version = self.must("GET", "/").get("version", "")
        self.name = f"CouchDB {version.split('-')[0]}".strip()

    def pids(self):
        pid = listener_on(self.port) if self.host.startswith("127.") else None
        return children_of(pid) if pid else []

    def disk_bytes(self, db):
        return self.must("GET", f"/{db}")["sizes"]["file"]


class Constant(Server):
    """The HTTP layer alone."""

    name = "HTTP alone"

    def __init__(self, binary, directory):
        super().__init__()
        self.binary = binary
        self.directory = pathlib.Path(directory)

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.spawn([self.binary, str(self.port)], self.directory / "log")


class Raw:
    """RocksDB alone, on the pairs of a store that frond has written."""

    name = "RocksDB alone"

    def __init__(self, binary, source, directory):
        self.binary = binary
        self.source = pathlib.Path(source)
        self.directory = pathlib.Path(directory)

    def run(self, what, threads, number, seconds):
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        out = subprocess.run([self.binary, what, str(self.source), str(self.directory / "db"),
                              str(threads), str(number), str(seconds)],
                             stdout=subprocess.PIPE, text=True, check=False)
        shutil.rmtree(self.directory, ignore_errors=True)
        if out.returncode:
            fail(f"{self.name}: {what} failed")
        return json.loads(out.stdout)


class Loader:
    """Runs the load generator against a server."""

    def __init__(self, binary):
        self.binary = binary

    def command(self, server, op, **options):
        command = [self.binary, op, "--host", server.host, "--port", str(server.port)]
        if server.auth:
            command += ["--auth", server.auth]
        for pid in server.pids():
            command += ["--pid", str(pid)]
        for name, value in options.items():
            if value is not None:
                command.append(f"--{name.replace('_', '-')}={value}")
        return command

    def run(self, server, op, **options):
        out = subprocess.run(self.command(server, op, **options), stdout=subprocess.PIPE,
                             text=True, check=False)
        if out.returncode:
            fail(f"{server.name}: {op} {options} failed")
        return json.loads(out.stdout)
