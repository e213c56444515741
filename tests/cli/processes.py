"""Several frond processes at one FoundationDB cluster, for the tests of what they agree about."""

import base64
import contextlib
import http.client
import json
import threading
import time
import urllib.request
import uuid

from harness import QUICK, Server, cluster, equal

ROUNDS = 9  # three of each of three processes
BASIC = {"Authorization": "Basic " + base64.b64encode(b"anna:secret").decode()}


class Processes:
    """`with Processes(dir) as (a, b, c)`: three servers; every request is the administrator's.
    `settings` is the text of a file that all of them get."""

    def __init__(self, cwd, count=3, settings=""):
        self.cwd, self.count, self.settings = cwd, count, settings
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        servers = []
        for n in range(self.count):
            directory = self.cwd / f"server{n}"
            directory.mkdir()
            (directory / "ini").write_text(QUICK + self.settings)
            servers.append(self.stack.enter_context(
                Server(directory, "--store", cluster(), "--admin", "anna:secret",
                       "--config", str(directory / "ini"))))
        return servers

    def __exit__(self, *args):
        return self.stack.__exit__(*args)


def ask(server, method, path, body=None, headers=BASIC):
    return server.request(method, path, body, headers)


def status(server, method, path, body=None, headers=BASIC):
    return ask(server, method, path, body, headers)[0]


def login(server, name, password):
    """The cookie of a new session."""
    body = json.dumps({"name": name, "password": password}).encode()
    request = urllib.request.Request(server.url + "/_session", data=body, method="POST",
                                     headers={"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as response:
        return response.headers["Set-Cookie"].split(";")[0]


def names(servers, cookie):
    """Whom each of the servers takes the owner of a cookie for."""
    return [ask(server, "GET", "/_session", headers={"Cookie": cookie})[1]["userCtx"]["name"]
            for server in servers]


@contextlib.contextmanager
def database(server):
    """A new database, deleted in the end if it and its server are still there."""
    name = "t" + uuid.uuid4().hex
    equal(status(server, "PUT", f"/{name}"), 201)
    try:
        yield f"/{name}"
    finally:
        if server.process.poll() is None:
            status(server, "DELETE", f"/{name}")


def turns(servers):
    """One after the other as who changes something, with the others."""
    for n in range(ROUNDS):
        one = servers[n % len(servers)]
        yield n, one, [server for server in servers if server is not one]


class Waiting(threading.Thread):
    """A request that is answered later."""

    def __init__(self, server, path):
        super().__init__()
        self.server, self.path = server, path
        self.start()
        time.sleep(0.3)  # it is waiting there by then

    def answer(self, seconds=20):
        self.join(seconds)
        assert not self.is_alive(), f"{self.path} has not been answered"
        return self.got

    def run(self):
        try:
            self.got = ask(self.server, "GET", self.path)
        except (OSError, http.client.HTTPException):
            self.got = (None, None)  # the feed ended, and not in good order
