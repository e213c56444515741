"""Redis's door and people who change while their connections are open; and what is no client of Redis."""

import base64
import re
import socket

from cql_wire import AUTH_SUCCESS
from cql_wire import Connection as CqlConnection
from harness import contains, equal, main, test, until
from redis_server import Redis
from resp import Error

ROUNDS = "[chttpd_auth]\niterations = 10\n"  # few, so that the tests are quick
ALL = "redis:~* &* +@all"


class People(Redis):
    """A frond with an administrator, root, who makes and changes people as CouchDB's are."""

    def __init__(self, cwd, env=None, options=()):
        (cwd / "ini").write_text(ROUNDS)
        super().__init__(cwd, "--config", "ini", *options, env={"FROND_ADMIN": "root:secret"} if env is None else env)

    def as_root(self, method, path, body=None):
        token = base64.b64encode(b"root:secret").decode()
        status, answer = self.request(method, path, body, {"Authorization": f"Basic {token}"})
        assert status < 300 or path == "/_users", (status, answer)
        return answer

    def person(self, name, *roles, **changes):
        """Makes the person, or changes what is there."""
        path = f"/_users/org.couchdb.user:{name}"
        self.as_root("PUT", "/_users")
        document = {"name": name, "type": "user", "password": "pass"}
        try:
            document = self.as_root("GET", path)
        except AssertionError:
            pass
        self.as_root("PUT", path, {**document, "roles": roles, **changes})

    def remove(self, name):
        revision = self.as_root("GET", f"/_users/org.couchdb.user:{name}")["_rev"]
        self.as_root("DELETE", f"/_users/org.couchdb.user:{name}?rev={revision}")

    def login(self, name="ann", password="pass"):
        c = self.client()
        equal(c("AUTH", name, password), "OK")
        return c


def lingering(server, **who):
    """Connections that get or wait for something, and send nothing."""
    subscriber, pattern, monitor, blocked = [server.login(**who) for _ in range(4)]
    subscriber("SUBSCRIBE", "news")
    pattern("PSUBSCRIBE", "new*")
    monitor("MONITOR")
    blocked.send("BLPOP", "queue", 0)
    return [subscriber, pattern, monitor, blocked]


def ends(c):
    """Reads until the end of the connection."""
    c.socket.settimeout(60)
    while c.file.read(1):
        pass
    c.close()


def ends_at_a_command(c):
    """Whatever is answered until then."""
    def has_ended():
        try:
            c("GET", "k")
            return False
        except (EOFError, ConnectionError):
            return True
    until(has_ended)
    c.close()


def goes_on(c):
    equal(c("PING"), "PONG")


@test
def a_weak_hash_is_replaced_by_a_login_at_any_door(cwd):
    with People(cwd, options=("--cql", "127.0.0.1:0")) as server:
        cql = int(re.search(r"event=cql address=127\.0\.0\.1:(\d+)", server.read_log())[1])
        weak = {"type": "user", "roles": [], "salt": "salt", "more": 1,
                "password_sha": "8152bc582f58c854f580cb101d3182813dec4afe"}  # of "secret"
        server.as_root("PUT", "/_users")
        for name in ("ann", "bob"):
            server.as_root("PUT", f"/_users/org.couchdb.user:{name}", {"name": name, **weak})
        server.login("ann", "secret").close()
        with CqlConnection(cql) as c:
            c.start()
            equal(c.login("bob", "secret"), AUTH_SUCCESS)
        for name, door in (("ann", "redis"), ("bob", "cql")):
            document = server.as_root("GET", f"/_users/org.couchdb.user:{name}")
            equal([document.get(member) for member in ("password_scheme", "pbkdf2_prf", "password_sha", "more")],
                  ["pbkdf2", "sha256", None, 1])
            assert re.search(rf'event=hash_upgraded person="{name}" .*door={door}', server.read_log()), door
        server.login("ann", "secret").close()


@test
def connections_of_a_person_who_is_removed_end(cwd):
    with People(cwd) as server, server.login("root", "secret") as root:
        server.person("ann", ALL)
        server.person("bob", ALL)
        others = lingering(server, name="bob")
        bob, ann = server.login("bob"), server.login()
        all_of_ann = lingering(server)
        server.remove("ann")
        for c in all_of_ann:
            ends(c)
        ends_at_a_command(ann)
        goes_on(bob)
        equal(root("PUBSUB", "NUMSUB", "news"), [b"news", 1])
        equal(root("RPUSH", "queue", "x"), 1)
        equal(others[3].read(), [b"queue", b"x"])
        root("PUBLISH", "news", "hello")
        equal(others[0].read(), [b"message", b"news", b"hello"])


@test
def connections_end_with_another_password(cwd):
    with People(cwd) as server:
        server.person("ann", ALL)
        ann = server.login()
        lingerers = lingering(server)
        server.person("ann", ALL, password="another")
        for c in lingerers:
            ends(c)
        ends_at_a_command(ann)
        goes_on(server.login("ann", "another"))


@test
def other_roles_hold_for_connections_that_are_open(cwd):
    with People(cwd) as server, server.login("root", "secret") as root:
        server.person("ann", ALL)
        root("SET", "a:1", "x")
        ann, multi = server.login(), server.login()
        lingerers = lingering(server)
        kept = server.login()
        kept("SUBSCRIBE", "a:news")
        equal(multi.pipeline(("MULTI",), ("GET", "k"), ("GET", "a:1")), ["OK", "QUEUED", "QUEUED"])
        equal(ann("GET", "k"), None)
        server.person("ann", "redis:~a:* &a:* +get +subscribe +ping +exec +multi")
        for c in lingerers:
            ends(c)

        def is_refused():
            ann.send("GET", "k")
            return isinstance(ann.read(), Error)
        until(is_refused)
        equal(ann("GET", "a:1"), b"x")
        contains(multi.error("EXEC"), "EXECABORT")
        equal(multi.pipeline(("MULTI",), ("GET", "a:1"), ("EXEC",)), ["OK", "QUEUED", [b"x"]])
        root("PUBLISH", "a:news", "hello")
        equal(kept.read(), [b"message", b"a:news", b"hello"])
        # And back again.
        server.person("ann", ALL)
        until(lambda: not isinstance(ann.pipeline(("GET", "k"))[0], Error))


@test
def what_a_pause_keeps_waiting_runs_with_the_rights_of_then(cwd):
    with People(cwd) as server, server.login("root", "secret") as root:
        server.person("ann", ALL)
        ann, multi, allowed = server.login(), server.login(), server.login()
        equal(root("CLIENT", "PAUSE", "100000", "WRITE"), "OK")
        ann.send("SET", "k", "of ann")
        equal(multi.pipeline(("MULTI",), ("SET", "in:multi", "of ann")), ["OK", "QUEUED"])
        multi.send("EXEC")
        allowed.send("SET", "a:k", "allowed")
        until(lambda: b"blocked_clients:3" in root("INFO", "clients"))
        server.person("ann", "redis:~a:* +set +get +multi +exec")
        ends(ann)
        ends(multi)
        equal(root("CLIENT", "UNPAUSE"), "OK")
        equal(allowed.read(), "OK")
        equal(root("MGET", "k", "in:multi", "a:k"), [None, None, b"allowed"])


@test
def connections_of_an_administrator_of_the_settings_end_with_it(cwd):
    with People(cwd) as server, server.login("root", "secret") as root:
        server.as_root("PUT", "/_node/_local/_config/admins/eve", "pass")
        server.as_root("PUT", "/_node/_local/_config/admins/max", "pass")
        eve, other = server.login("eve"), server.login("max")
        of_eve, of_max = lingering(server, name="eve"), lingering(server, name="max")
        server.as_root("DELETE", "/_node/_local/_config/admins/eve")
        for c in of_eve:
            ends(c)
        ends_at_a_command(eve)
        goes_on(other)
        server.as_root("PUT", "/_node/_local/_config/admins/max", "another")
        for c in of_max:
            ends(c)
        ends_at_a_command(other)
        goes_on(root)


@test
def connections_from_before_the_first_administrator_are_strangers_then(cwd):
    with People(cwd, env={}) as server:
        c, subscriber, blocked = [server.client() for _ in range(3)]
        equal(c("SET", "k", "v"), "OK")
        subscriber("SUBSCRIBE", "news")
        blocked.send("BLPOP", "queue", 0)
        until(lambda: b"blocked_clients:1" in c("INFO", "clients"))
        server.request("PUT", "/_node/_local/_config/admins/root", "secret")
        ends(subscriber)
        ends(blocked)

        def is_stranger():
            c.send("GET", "k")
            return c.read() == Error("NOAUTH Authentication required.")
        until(is_stranger)
        equal(c("AUTH", "root", "secret"), "OK")
        equal(c("GET", "k"), b"v")


@test
def a_request_of_http_runs_no_command(cwd):
    """A browser that some page has send one is as much a client as any."""
    body = "SET pwned yes\r\n"
    head = f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    with Redis(cwd) as server, server.client() as c:
        for request in (f"POST / HTTP/1.1\r\n{head}{body}", f"PUT / HTTP/1.1\r\nHost: x\r\n{head}{body}",
                        f"GET /pwned HTTP/1.1\r\nhOST: x\r\n{head}{body}", "*2\r\n$4\r\npost\r\n$1\r\n/\r\n" + body):
            with socket.create_connection(("127.0.0.1", server.port), timeout=60) as http:
                http.sendall(request.encode())
                while http.recv(4096):
                    pass
        equal(c("EXISTS", "pwned"), 0)
        equal(server.metrics()["frond_redis_http_requests_total"], 4)
        contains(server.read_log(), "event=redis_http_request from=127.0.0.1:")


@test
def logins_and_refusals_are_in_the_log(cwd):
    with People(cwd) as server:
        server.person("ann", "redis:~mine:* &* +@all -flushall")
        stranger = server.client()
        stranger.error("GET", "k")
        stranger.error("AUTH", "ann", "no-such")
        ann = server.login()
        ann.error("FLUSHALL")
        ann.error("GET", "other:\nevent=login")
        ann.error("EVAL", "return redis.call('GET', 'theirs')", 0)
        ann.error("SORT", "mine:l", "BY", "weight_*")
        log = server.read_log()
        contains(log, 'level=info event=refused method=GET path="" status=NOAUTH left_out=0 user="" '
                      "from=127.0.0.1:")
        contains(log, 'level=warn event=login_refused name="ann" method=auth reason=wrong left_out=0 user=""')
        contains(log, 'level=info event=login name="ann" method=auth left_out=0 user="ann"')
        contains(log, 'event=refused method=flushall path="" status=NOPERM left_out=0 user="ann"')
        contains(log, 'event=refused method=get path="other:%0Aevent=login" status=NOPERM')
        contains(log, 'path="theirs" status=NOPERM')
        contains(log, 'event=refused method=sort path="weight_*" status=NOPERM')
        assert "no-such" not in log, log


main()
