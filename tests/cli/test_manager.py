"""The binary as a service: a manager of services is told what it does, and hands over sockets."""

import array
import fcntl
import json
import os
import signal
import socket
import subprocess
import threading
import urllib.request

from harness import ENV, FROND, contains, equal, main, test, until
from resp import Client

HIGH = 200  # descriptors from here on are nobody else's
# What systemd does between fork and exec: the sockets from 3 on, and the process's own number.
START = """
export LISTEN_PID=${LISTEN_PID:-$$}
n=3
for fd in $GIVEN; do
        eval "exec $n<&$fd $fd<&-"
        n=$((n + 1))
done
exec "$@"
"""


class Manager:
    """What systemd is to a service: a socket for messages, and those that it keeps."""

    def __init__(self, cwd):
        self.cwd = cwd
        self.path = str(cwd / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(60)
        self.kept = {}
        self.dropped = []

    def next(self):
        """The next message that is not about what is kept, as a dict."""
        while True:
            text, rights, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(4))
            said = dict(line.split("=", 1) for line in text.decode().splitlines())
            if "FDSTORE" in said:
                [(_, _, data)] = rights
                self.kept[said["FDNAME"]] = socket.socket(fileno=array.array("i", data)[0])
            elif "FDSTOREREMOVE" in said:
                self.dropped.append(said["FDNAME"])
                self.kept.pop(said["FDNAME"]).close()
            else:
                return said

    def expect(self, name):
        said = self.next()
        equal(said.get(name), "1")
        return said

    def start(self, *options, sockets=(), env=None):
        """A server that gets these [name, socket]; names that are None are not told."""
        fds = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, HIGH + i * 10) for i, (_, s) in enumerate(sockets)]
        try:
            names = [name for name, _ in sockets if name is not None]
            told = {"LISTEN_FDNAMES": ":".join(names)} if names else {}
            self.log = open(self.cwd / "server.log", "w+")
            self.process = subprocess.Popen(
                ["bash", "-c", START, "start", FROND, "serve", *options], cwd=self.cwd, pass_fds=fds,
                stdout=subprocess.DEVNULL, stderr=self.log,
                env={**ENV, "NOTIFY_SOCKET": self.path, "GIVEN": " ".join(map(str, fds)),
                     "LISTEN_FDS": str(len(fds)), **told, **(env or {})})
        finally:
            for fd in fds:
                os.close(fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()
        self.socket.close()
        for kept in self.kept.values():
            kept.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.expect("STOPPING")
        equal(self.process.wait(60), 0)

    def refuses(self, *options, sockets=(), env=None):
        """What it says when it does not start."""
        self.start(*options, sockets=sockets, env=env)
        equal(self.process.wait(60), 2)
        self.log.seek(0)
        return self.log.read()


def listener(host="127.0.0.1", kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    s.bind((host, 0))
    if kind == socket.SOCK_STREAM:
        s.listen(16)
    return s


def port_of(s):
    return s.getsockname()[1]


def ask(port, path="/_up", host="127.0.0.1"):
    with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=60) as answer:
        return json.load(answer)


@test
def manager_is_told_when_it_serves_and_when_it_stops(cwd):
    with Manager(cwd) as manager:
        manager.start("--http", "127.0.0.1:0")
        manager.expect("READY")
        [kept] = manager.kept.values()
        equal(ask(port_of(kept))["status"], "ok")
        manager.stop()


@test
def name_of_its_socket_may_be_in_no_file_system(cwd):
    with Manager(cwd) as manager:
        manager.socket.close()
        manager.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = f"frond-{os.getpid()}"
        manager.socket.bind("\0" + name)
        manager.socket.settimeout(60)
        manager.path = "@" + name
        manager.start("--http", "127.0.0.1:0")
        manager.expect("READY")
        manager.stop()


@test
def reload_without_certificates_leaves_it_serving(cwd):
    with Manager(cwd) as manager:
        manager.start("--http", "127.0.0.1:0")
        manager.expect("READY")
        manager.process.send_signal(signal.SIGHUP)
        assert int(manager.expect("RELOADING")["MONOTONIC_USEC"]) > 0
        manager.expect("READY")
        [kept] = manager.kept.values()
        equal(ask(port_of(kept))["status"], "ok")
        manager.stop()


@test
def doors_listen_at_the_sockets_that_have_their_names(cwd):
    (cwd / "frond.ini").write_text("[chttpd]\nport = 1\n[prometheus]\nport = 2\n")
    with Manager(cwd) as manager, listener() as http, listener() as redis, listener() as metrics:
        early = socket.create_connection(http.getsockname())
        early.sendall(b"GET /_up HTTP/1.1\r\nHost: localhost\r\n\r\n")
        manager.start("--config", "frond.ini",
                      sockets=[("http", http), ("redis", redis), ("metrics", metrics)])
        manager.expect("READY")
        equal(manager.kept, {})
        contains(early.recv(100).decode(), "200 OK")
        early.close()
        equal(ask(port_of(http), "/_node/_local/_config/chttpd")["port"], str(port_of(http)))
        with urllib.request.urlopen(f"http://127.0.0.1:{port_of(metrics)}/_node/_local/_prometheus",
                                    timeout=60) as answer:
            contains(answer.read().decode(), "frond_build_info")
        with Client(port_of(redis)) as client:
            equal(client("PING"), "PONG")
        manager.stop()


@test
def sockets_of_paths_are_taken_and_their_files_stay(cwd):
    with Manager(cwd) as manager, listener() as http, socket.socket(socket.AF_UNIX) as redis:
        redis.bind(str(cwd / "redis.sock"))
        redis.listen(16)
        with socket.socket(socket.AF_UNIX) as early:
            early.connect(str(cwd / "redis.sock"))
            early.sendall(b"PING\r\nCONFIG GET unixsocket\r\nCONFIG GET bind\r\n")
            manager.start(sockets=[("http", http), ("redis", redis)])
            manager.expect("READY")
            answer = early.makefile("rb")
            equal(answer.readline(), b"+PONG\r\n")
            contains([answer.readline() for _ in range(5)][-1].decode(), str(cwd / "redis.sock"))
            equal([answer.readline() for _ in range(5)][-1], b"\r\n")
            answer.close()
        manager.stop()
        assert (cwd / "redis.sock").is_socket()
        contains(manager.refuses(sockets=[("http", redis)]), "this door listens at IP addresses alone")


@test
def sockets_of_paths_are_not_given_to_be_kept(cwd):
    with Manager(cwd) as manager:
        manager.start("--http", "127.0.0.1:0", "--redis", str(cwd / "redis.sock"))
        manager.expect("READY")
        equal(len(manager.kept), 1)
        manager.stop()
        assert not (cwd / "redis.sock").exists()


@test
def single_socket_without_a_name_is_for_http(cwd):
    with Manager(cwd) as manager, listener("::1") as http:
        manager.start(sockets=[(None, http)])
        manager.expect("READY")
        equal(ask(port_of(http), host="[::1]")["status"], "ok")
        manager.stop()


@test
def sockets_that_cannot_be_used_are_refused(cwd):
    with Manager(cwd) as manager, listener() as one, listener() as two, \
            listener(kind=socket.SOCK_DGRAM) as datagrams, socket.socket() as deaf:
        said = manager.refuses(sockets=[("httpd", one)])
        contains(said, 'a socket "httpd": no door is called so')
        contains(said, "http, https, redis, rediss, mongo, mongos, cql, cqls, rows, rowss, or metrics")
        contains(manager.refuses(sockets=[("", one)]), 'a socket "": no door is called so')
        contains(manager.refuses(sockets=[("http", one), ("http", two)]), "or there are two")
        contains(manager.refuses(sockets=[("http", datagrams)]), "no socket of TCP or of a path that listens")
        contains(manager.refuses(sockets=[("http", deaf)]), "no socket of TCP or of a path that listens")
        contains(manager.refuses("--http", "127.0.0.1:0", sockets=[("http", one)]),
                 "--http 127.0.0.1:0, and the manager")
        contains(manager.refuses(sockets=[(f"kept-{i}", one) for i in range(17)]), "16 are the most")


@test
def socket_that_others_can_reach_needs_an_administrator(cwd):
    with Manager(cwd) as manager, listener("0.0.0.0") as http:
        contains(manager.refuses(sockets=[("http", http)]), "without an administrator")


@test
def sockets_of_another_process_are_not_taken(cwd):
    with Manager(cwd) as manager, listener() as http:
        manager.start("--http", "127.0.0.1:0", sockets=[("http", http)], env={"LISTEN_PID": "1"})
        manager.expect("READY")
        [kept] = manager.kept.values()
        assert port_of(kept) != port_of(http)
        manager.stop()


@test
def no_client_is_refused_while_it_is_restarted(cwd):
    with listener() as free:
        address = f"127.0.0.1:{port_of(free)}"
    with Manager(cwd) as manager:
        manager.start("--http", address, "--redis", "127.0.0.1:0")
        manager.expect("READY")
        equal(len(manager.kept), 2)
        assert f"kept-{address.replace(':', '_')}" in manager.kept, manager.kept
        port = int(address.split(":")[1])
        failures, answered, over = [], [], threading.Event()

        def connect_on():
            while not over.is_set():
                with socket.socket() as s:
                    s.settimeout(60)
                    try:
                        s.connect(("127.0.0.1", port))
                    except OSError as failure:
                        failures.append(failure)
                        return
                    try:
                        s.sendall(b"GET /_up HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        answered.append(s.recv(15))
                    except ConnectionResetError:
                        pass  # it had been accepted by the one that stops
        threads = [threading.Thread(target=connect_on) for _ in range(4)]
        for thread in threads:
            thread.start()
        for turn in range(3):
            manager.stop()
            kept = list(manager.kept.items())
            equal(len(kept), 2 if turn == 0 else 1)
            manager.start("--http", address, sockets=kept)
            manager.expect("READY")
            equal([name.startswith("kept-127.0.0.1_") for name in manager.dropped], [True])
        equal(len(manager.kept), 1)
        until(lambda: failures or answered.count(b"HTTP/1.1 200 OK") > 10)
        over.set()
        for thread in threads:
            thread.join()
        equal(failures, [])
        manager.stop()


@test
def kept_sockets_at_which_no_door_listens_are_dropped(cwd):
    with Manager(cwd) as manager:
        manager.start("--http", "127.0.0.1:0")
        manager.expect("READY")
        manager.stop()
        [(name, before)] = manager.kept.items()
        port = port_of(before)
        manager.start("--http", "127.0.0.1:0", sockets=[(name, before)])
        manager.expect("READY")
        equal(manager.dropped, [name])
        [now] = manager.kept.values()
        assert port_of(now) != port
        with socket.socket() as s:
            assert s.connect_ex(("127.0.0.1", port)) != 0
        manager.stop()


main()
