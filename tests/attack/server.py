"""The servers under attack: frond, and the one that answers every request with a constant."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import ending

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import unread_cql  # noqa: E402  attacks by Cassandra's protocol
from resp import Client  # noqa: E402  a client of Redis's protocol

START_SECONDS = 30
FIRST_PORT = 20000  # of those that are tried
# Of frond, whatever the machine has: figures of different machines stay comparable.
LOOPS = 2
CACHES = f"cache_bytes = {40 << 20}\nrecent_bytes = {16 << 20}\nwrite_buffer_bytes = {16 << 20}\n"


TURNS = 3  # of all tests, after which each attack and each rung has run


def of_this_turn(things):
    """Every third of them, other ones in each turn of all tests; all of them where no turn is told."""
    turn = os.environ.get("FROND_TEST_TURN")
    return things[int(turn) % TURNS::TURNS] if turn else things


class Failure(Exception):
    """Something that an attack must not be able to cause."""


def free_ports(count):
    """Each is another one, since all are held until all are there. The system gives none of them to whoever
    connects, or lets it choose a port, before the server has it."""
    given = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    held = []
    while len(held) < count:
        with contextlib.suppress(OSError):
            held.append(socket.create_server(("127.0.0.1", random.SystemRandom().randrange(FIRST_PORT, given))))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def resident_bytes_of(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def has_functions(program):
    """True if functions of design documents run with that frond: their worker is beside it."""
    return pathlib.Path(program).with_name("frond-js").exists()


class Server:
    """A process that listens on a free port of the loopback."""

    def __init__(self, command, directory, env=None):
        self.log_path = pathlib.Path(directory) / "server.log"
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory,
                                            env={**os.environ, **(env or {})})

    def await_port(self, port):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise Failure(f"the server did not start: {self.log_path.read_text()}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Constant(Server):
    """Costs the machine the attacker's own work and next to nothing else."""

    def __init__(self, program, directory):
        [self.port] = free_ports(1)
        super().__init__([program, str(self.port)], directory)
        self.await_port(self.port)

    def port_of(self, _):
        """Whatever protocol an attacker speaks: one that is not HTTP is answered with 400, and cut off."""
        return self.port


class Frond(Server):
    """A frond with a store of its own in `directory`, which a later one finds again."""

    def __init__(self, program, directory, memory_bytes, drain_ms, admin=None):
        doors = ("http", "redis", "mongo", "cql", "rows")
        self.ports = dict(zip(doors, free_ports(len(doors))))
        self.port, self.redis_port, self.mongo_port, self.cql_port, self.rows_port = self.ports.values()
        self.auth = base64.b64encode(admin.encode()).decode() if admin else None
        config = pathlib.Path(directory) / "attack.ini"
        config.write_text(
            f"[frond]\nloops = {LOOPS}\nmemory_bytes = {memory_bytes}\n{CACHES}"
            f"drain_timeout_ms = {drain_ms}\n")
        super().__init__([program, "serve", "--config", str(config), "--store", "embedded:store",
                          *(word for door, port in self.ports.items()
                            for word in (f"--{door}", f"127.0.0.1:{port}"))], directory,
                         {"FROND_ADMIN": admin} if admin else None)
        for port in self.ports.values():
            self.await_port(port)

    def port_of(self, door):
        return self.ports[door]

    def redis(self):
        """A client of Redis's door."""
        return Client(self.redis_port, timeout=120)

    def cql(self):
        """A client of Cassandra's door."""
        return unread_cql.Client(self.cql_port)

    def headers(self):
        headers = {"Content-Type": "application/json"}
        if self.auth:
            headers["Authorization"] = f"Basic {self.auth}"
        return headers

    def request(self, method, path, body=None, timeout=120):
        """Status and body; JSON where it is JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method, path, data, self.headers())
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def must(self, method, path, body=None, timeout=120):
        status, answer = self.request(method, path, body, timeout)
        if status >= 300:
            raise Failure(f"{method} {path}: {status} {str(answer)[:300]}")
        return answer

    def resident_bytes(self):
        return resident_bytes_of(self.process.pid)

    def workers_bytes(self):
        """Resident memory of the processes that run functions."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/children")
        total = 0
        for path in children:
            try:
                pids = path.read_text().split()
            except OSError:
                continue  # the thread has ended
            total += sum(resident_bytes_of(pid) for pid in pids)
        return total

    def cpu_seconds(self):
        """Of the process's threads, those of its workers aside."""
        try:
            text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, limit_seconds):
        """Sends SIGTERM. Returns how the process ended."""
        return ending.end(self.process, limit_seconds)


class Directory:
    """A directory for stores, removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="frond-attack-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
