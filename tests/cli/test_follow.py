"""frond follow, verify --against and promote: a standby has what its first has, also when either side is
killed, and nothing that was acknowledged and followed is lost."""

import base64
import hmac
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

from damage import damage
from harness import ENV, FROND, QUICK, Server, Skip, contains, equal, main, ok, run, test, until
from mongo_server import MongoServer
from resp import Client

KEEP = QUICK + "[frond]\nkeep_log_bytes = {}\nfollower_role = standby\n"
ADMIN = {"Authorization": "Basic " + base64.b64encode(b"root:pw").decode()}
# How often either side is killed; FROND_FOLLOW_KILLS=1000 for a long run.
KILLS = int(os.environ.get("FROND_FOLLOW_KILLS", "6"))


def first(cwd, keep=1 << 30, port=0):
    (cwd / "frond.ini").write_text(KEEP.format(keep))
    return Server(cwd, "--config", "frond.ini", "--admin", "root:pw", "--redis", "127.0.0.1:0",
                  http=f"127.0.0.1:{port}")


def with_person(url, person="root:pw"):
    return url.replace("http://", f"http://{person}@")


def catch_up(cwd, server):
    return ok("follow", with_person(server.url), "--store", "embedded:second", "--once", cwd=cwd)


def put_docs(server, count, of="d", db="db"):
    docs = [{"_id": f"{of}{i:05}", "n": i, "text": "x" * 100} for i in range(count)]
    status, _ = server.request("POST", f"/{db}/_bulk_docs", {"docs": docs}, ADMIN)
    equal(status, 201)


def compare(cwd):
    return run("verify", "--store", "embedded:data", "--against", "embedded:second", "--quiet", cwd=cwd)


def same(cwd, server):
    """Compares both stores when the standby has caught up. A server's background work writes now and then,
    so that may take another turn."""
    def compared():
        catch_up(cwd, server)
        answer = compare(cwd)
        return answer if "nothing was compared" not in answer.stderr else None

    answer = until(compared)
    equal(answer.returncode, 0)
    contains(answer.stdout, " 0 differences")


class Follower:
    """A frond follow that runs until it is stopped or killed."""

    def __init__(self, cwd, url, *options):
        self.log = open(cwd / "follow.log", "a+")
        self.before = os.fstat(self.log.fileno()).st_size
        self.process = subprocess.Popen([FROND, "follow", with_person(url), "--store", "embedded:second",
                                         *options], cwd=cwd, env=ENV, stderr=self.log)

    def ready(self):
        """Waits until it has said something, and so ends at a signal by itself."""
        until(lambda: os.fstat(self.log.fileno()).st_size > self.before)
        return self

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(timeout=60)
        self.log.close()
        return code


@test
def a_standby_has_every_kind_of_database_byte_by_byte(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        put_docs(server, 300)
        same(cwd, server)
        put_docs(server, 200, "e")
        server.request("PUT", "/other", None, ADMIN)
        server.request("DELETE", "/db", None, ADMIN)
        answer = catch_up(cwd, server)
        contains(answer.stdout, "embedded:second has version ")
        same(cwd, server)
    ok("verify", "--store", "embedded:second", "--quiet", cwd=cwd)


@test
def a_standby_has_what_came_by_all_doors(cwd):
    (cwd / "frond.ini").write_text(KEEP.format(1 << 30))
    with MongoServer(cwd, "--config", "frond.ini", "--redis", "127.0.0.1:0") as server:
        port = int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
        follower = Follower(cwd, server.url)
        with Client(port) as redis, server.client() as mongo:
            for i in range(50):
                redis("SET", f"key{i}", "x" * i)
                redis("RPUSH", "list", i)
            redis("DEL", "key1")
            mongo({"insert": "orders",
                           "documents": [{"_id": i, "n": i % 7} for i in range(100)]}, db="shop")
            mongo({"createIndexes": "orders",
                           "indexes": [{"key": {"n": 1}, "name": "n_1"}]}, db="shop")
            mongo({"delete": "orders",
                           "deletes": [{"q": {"n": 3}, "limit": 0}]}, db="shop")
        equal(follower.ready().end(), 0)
        same(cwd, server)
    ok("verify", "--store", "embedded:second", "--quiet", cwd=cwd)


@test
def what_differs_is_named(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        put_docs(server, 5)
        same(cwd, server)
        server.request("PUT", "/db/new", {"a": 1}, ADMIN)
        answer = compare(cwd)
        equal(answer.returncode, 1)
        contains(answer.stderr, "nothing was compared")
        # What the second has of the first's last version, and then is made to differ.
        same(cwd, server)
        shutil.copytree(cwd / "second", cwd / "third")
    damage(cwd / "third", b"\x15\x20here", b"x")
    damage(cwd / "second", b"\x15\x20there", b"x")
    damage(cwd / "second", b"\x15\x20both", b"x")
    damage(cwd / "third", b"\x15\x20both", b"y")
    answer = run("verify", "--store", "embedded:second", "--against", "embedded:third", "--quiet", cwd=cwd)
    equal(answer.returncode, 1)
    lines = [line.split(": ", 2)[2] for line in answer.stdout.splitlines() if line.startswith("difference")]
    equal(lines, ["has another value in embedded:third", "is not in embedded:second",
                  "is not in embedded:third"])
    contains(answer.stdout, " 3 differences")
    answer = run("verify", "db", "--store", "embedded:data", "--against", "embedded:second", cwd=cwd)
    equal(answer.returncode, 2)


@test
def a_standby_takes_no_writes_until_it_is_promoted(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        put_docs(server, 50)
        _, before = server.request("GET", "/db/_changes?limit=1&descending=true", None, ADMIN)
        catch_up(cwd, server)
    answer = run("serve", "--store", "embedded:second", "--http", "127.0.0.1:0", cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "is a standby of another store")
    answer = run("promote", "--store", "embedded:data", cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "no standby")
    contains(ok("promote", "--store", "embedded:second", cwd=cwd).stdout, "embedded:second is a first")
    with Server(cwd, "--config", "frond.ini", "--admin", "root:pw", "--store", "embedded:second") as promoted:
        status, found = promoted.request("GET", "/db/d00049", None, ADMIN)
        equal((status, found["n"]), (200, 49))
        promoted.request("PUT", "/db/later", {}, ADMIN)
        _, after = promoted.request("GET", f"/db/_changes?since={before['last_seq']}", None, ADMIN)
        equal([row["id"] for row in after["results"]], ["later"])
        assert after["last_seq"] > before["last_seq"]
    # What was a first does not feed it any more, and it does not feed a standby of the old one.
    answer = run("follow", "http://127.0.0.1:1", "--store", "embedded:second", "--once", cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "no standby")


@test
def a_damaged_standby_is_salvaged_to_a_store_of_its_own(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        put_docs(server, 50)
        catch_up(cwd, server)
    ok("salvage", "embedded:second", "embedded:new", cwd=cwd)
    with Server(cwd, "--config", "frond.ini", "--admin", "root:pw", "--store", "embedded:new") as salvaged:
        equal(salvaged.request("PUT", "/db/later", {}, ADMIN)[0], 201)
        equal(salvaged.request("GET", "/db", None, ADMIN)[1]["doc_count"], 51)


@test
def a_standby_of_another_history_is_left_as_it_is(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        put_docs(server, 20)
        catch_up(cwd, server)
    ok("backup", "copies", "--store", "embedded:data", cwd=cwd)
    (cwd / "data").rename(cwd / "gone")
    ok("restore", "copies", "--store", "embedded:data", cwd=cwd)
    with first(cwd) as server:
        answer = run("follow", with_person(server.url), "--store", "embedded:second", "--once", cwd=cwd)
        equal(answer.returncode, 1)
        contains(answer.stderr, "another history")
    contains(ok("dump", "db", "--store", "embedded:second", cwd=cwd).stdout, "d00019")


@test
def what_is_too_far_behind_is_copied_anew(cwd):
    with first(cwd, keep=1) as server:
        server.request("PUT", "/db", None, ADMIN)
        put_docs(server, 10)
        catch_up(cwd, server)
        for turn in range(3):
            for part in range(20):
                put_docs(server, 1000, f"{turn}-{part}-")
            status, _ = server.request("POST", "/_frond/compact", {}, ADMIN)
            equal(status, 200)
        until(lambda: not list((cwd / "data" / "archive").glob("*.log")))
        contains(catch_up(cwd, server).stderr, "event=copying")
        same(cwd, server)


@test
def only_people_who_may_follow(cwd):
    with first(cwd) as server:
        server.request("PUT", "/_users", None, ADMIN)
        for name, roles in (("anna", ["standby"]), ("bert", [])):
            server.request("PUT", f"/_users/org.couchdb.user:{name}",
                           {"name": name, "password": "pw", "type": "user", "roles": roles}, ADMIN)
        for person, code in (("bert:pw", 1), ("anna:wrong", 1), ("anna:pw", 0)):
            answer = run("follow", with_person(server.url, person), "--store", "embedded:second", "--once",
                         cwd=cwd)
            equal(answer.returncode, code)
        for path, status in (("?after=x", 400), ("?after=1&wait=-1", 400), ("?after=1&history=00", 409)):
            equal(server.request("GET", "/_frond/follow" + path, None, ADMIN)[0], status)
    (cwd / "frond.ini").write_text(QUICK)
    with Server(cwd, "--config", "frond.ini", "--admin", "root:pw", "--store", "embedded:plain") as server:
        answer = run("follow", with_person(server.url), "--store", "embedded:third", "--once", cwd=cwd)
        equal(answer.returncode, 1)
        contains(answer.stderr, "keep_log_bytes is not set")


def token(seconds):
    """A token of somebody who may follow, for so long."""
    def text(of):
        return base64.urlsafe_b64encode(of).rstrip(b"=")

    words = ({"alg": "HS256"}, {"sub": "anna", "_couchdb.roles": ["standby"],
                                "exp": int(time.time()) + seconds})
    signed = b".".join(text(json.dumps(word).encode()) for word in words)
    return (signed + b"." + text(hmac.digest(b"hello", signed, "sha256"))).decode()


@test
def a_wait_for_the_log_ends_with_the_right(cwd):
    with first(cwd) as server:
        for name, value in (("jwt_keys/hmac:_default", "aGVsbG8="),
                            ("chttpd/authentication_handlers",
                             "{chttpd_auth, jwt_authentication_handler}, "
                             "{chttpd_auth, default_authentication_handler}")):
            equal(server.request("PUT", f"/_node/_local/_config/{name}", value, ADMIN)[0], 200)
        def bearer(seconds):
            return {"Authorization": "Bearer " + token(seconds)}

        at = until(lambda: (answer := server.request("GET", "/_frond/position", None, bearer(600)))[0] == 200
                   and answer[1])
        status, answer = server.request(
            "GET", f"/_frond/follow?after={at['version']}&history={at['history']}&wait=60000", None, bearer(4))
        equal((status, answer["error"]), (403, "forbidden"))


@test
def a_copy_ends_with_the_right(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        for i in range(12):
            equal(server.request("PUT", f"/db/{i}", {"x": random.randbytes(2000000).hex()}, ADMIN)[0], 201)
        server.request("PUT", "/_users", None, ADMIN)
        path, person = "/_users/org.couchdb.user:anna", {"name": "anna", "password": "pw", "type": "user"}
        rev = server.request("PUT", path, {**person, "roles": ["standby"]}, ADMIN)[1]["rev"]
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        with sock:
            sock.sendall(b"GET /_frond/follow HTTP/1.1\r\nHost: localhost\r\n"
                         b"Connection: close\r\nAuthorization: Basic "
                         + base64.b64encode(b"anna:pw") + b"\r\n\r\n")
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
            equal(server.request("PUT", path, {**person, "roles": [], "_rev": rev}, ADMIN)[0], 201)
            time.sleep(2)  # the right is gone for as long as a feed may need to notice
            got, last = 0, b""
            try:
                while part := sock.recv(65536):
                    got, last = got + len(part), (last + part)[-5:]
            except ConnectionResetError:
                pass
        assert last != b"0\r\n\r\n" and got < 30e6, (got, last)


def scraped(server):
    request = urllib.request.Request(server.url + "/_node/_local/_prometheus", headers=ADMIN)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return answer.read().decode()


@test
def both_sides_tell_how_far_behind(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        follower = Follower(cwd, server.url, "--metrics", "second.prom")
        put_docs(server, 100)
        until(lambda: (cwd / "second.prom").exists() and
              "frond_follow_behind_versions 0" in (cwd / "second.prom").read_text())
        until(lambda: "\nfrond_followers 1" in scraped(server))
        until(lambda: "\nfrond_followers_behind_versions 0" in scraped(server))
        equal(follower.end(), 0)
        put_docs(server, 100, "e")
        until(lambda: re.search(r"^frond_followers_behind_versions [1-9]", scraped(server), flags=re.M))


def reads_second(cwd, ini, options):
    """A server in a directory of its own, which reads the standby beside it."""
    (cwd / "reads").mkdir()
    (cwd / "reads" / "second.ini").write_text(QUICK + ini)
    return Server(cwd / "reads", "--config", "second.ini", options[0], options[1].replace(":", ":../"))


@test
def the_page_on_standbys_does_what_it_says(cwd):
    page = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "STANDBY.md").read_text()
    lines = [line.strip() for line in re.sub(r"\\\n", " ", page).splitlines() if line.startswith("    ")]
    equal([line.split()[1] for line in lines if line.startswith("frond ")],
          ["serve", "follow", "serve", "verify", "promote", "serve", "inspect", "backup", "restore"])
    if not shutil.which("curl"):
        raise Skip("curl")
    of_first, of_second = re.findall(r"```ini\n(.*?)```", page, flags=re.S)[:2]
    (cwd / "frond.ini").write_text(QUICK + of_first)
    options = ("--config", "frond.ini", "--admin", "admin:secret")
    with Server(cwd, *options) as server:
        at = server.url.removeprefix("http://")
        for line in lines:
            words = shlex.split(line.replace("127.0.0.1:5984", at))
            if words[0] == "curl" and "6984" in line:
                with reads_second(cwd, of_second.replace("127.0.0.1:5984", at), read_with) as second:
                    answer = subprocess.run(
                        [word.replace("127.0.0.1:6984", second.url.removeprefix("http://")) for word in words],
                        capture_output=True, text=True, timeout=60)
                    assert re.search(r"^X-Frond-Standby: behind=0; seconds=\d+\.\d{3}", answer.stdout, flags=re.M)
                    assert re.search(r'"standby":\{"behind":0,"seconds":\d', answer.stdout), answer.stdout
            elif words[0] == "curl":
                answer = subprocess.run([*words, "-sS"], capture_output=True, text=True, timeout=60)
                contains(answer.stdout, '"ok":true')
            elif words[:2] == ["frond", "follow"]:
                version = re.search(r"version (\d+)", ok(*words[1:], "--once", cwd=cwd).stdout)[1]
            elif words[:2] == ["frond", "serve"] and "second.ini" in words:
                read_with = words[words.index("--store"):words.index("--http")]
            elif words[:2] == ["frond", "verify"]:
                contains(ok(*words[1:], cwd=cwd).stdout, " 0 differences")
    for line in lines:
        if line.split()[1] in ("promote", "inspect", "backup", "restore"):
            ok(*shlex.split(line.replace("1042", version))[1:], cwd=cwd)
    with Server(cwd, *options, "--store", "embedded:second") as server:
        equal(server.request("GET", "/_users/org.couchdb.user:second", None, {
            "Authorization": "Basic " + base64.b64encode(b"admin:secret").decode()})[0], 200)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def with_standby_at(cwd, port):
    (cwd / "frond.ini").write_text(KEEP.format(1 << 30) + f"standby_url = http://root:pw@127.0.0.1:{port}\n")


def served_second(cwd, port):
    (cwd / "second.ini").write_text(KEEP.format(1 << 30))
    return Server(cwd, "--config", "second.ini", "--admin", "root:pw", "--store", "embedded:second",
                  http=f"127.0.0.1:{port}")


@test
def a_first_that_comes_back_learns_that_another_one_took_its_place(cwd):
    port = free_port()
    serve = ("serve", "--config", "frond.ini", "--admin", "root:pw", "--http", "127.0.0.1:0")
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        put_docs(server, 5)
        catch_up(cwd, server)
        server.request("PUT", "/db/lost", {"only": "here"}, ADMIN)
        server.request("DELETE", "/db/d00001?rev=" +
                       server.request("GET", "/db/d00001", None, ADMIN)[1]["_rev"], None, ADMIN)
    with_standby_at(cwd, port)
    with Server(cwd, *serve[1:-2]) as server:  # nobody serves there: no reason not to serve
        contains(server.read_log(), "event=standby_not_asked")
        assert "pw@" not in server.read_log()
    ok("promote", "--store", "embedded:second", cwd=cwd)
    with served_second(cwd, port):
        answer = run(*serve, cwd=cwd)
        equal(answer.returncode, 1)
        contains(answer.stderr, "has taken this store's place")
        version, commits = re.search(r"at version (\d+), and has not got (\d+) later commits",
                                     answer.stderr).groups()
        assert int(commits) >= 2
        assert "pw@" not in answer.stderr
    shown = ok("inspect", "--after", version, cwd=cwd).stdout
    contains(shown, 'database "db"')
    contains(shown, '"lost"')
    contains(shown, '"only"')
    assert '"d00002"' not in shown
    equal(run("inspect", "db", "--after", version, cwd=cwd).returncode, 2)
    # It does not forget, whether anybody answers or not.
    answer = run(*serve, cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "has taken its place")
    contains(ok("dump", "db", cwd=cwd).stdout, "lost")
    ok("promote", "--store", "embedded:data", cwd=cwd)
    with Server(cwd, *serve[1:-2]) as server:
        equal(server.request("GET", "/db/lost", None, ADMIN)[0], 200)


@test
def a_first_that_is_replaced_while_it_runs_ends(cwd):
    port = free_port()
    with_standby_at(cwd, port)
    with Server(cwd, "--config", "frond.ini", "--admin", "root:pw") as server:
        catch_up(cwd, server)
        ok("promote", "--store", "embedded:second", cwd=cwd)
        with served_second(cwd, port):
            equal(server.process.wait(timeout=60), 1)
        contains(server.read_log(), "event=store_replaced")
        contains(server.read_log(), "has taken this store's place")


@test
def a_standby_url_that_leads_elsewhere_is_refused(cwd):
    port = free_port()
    with_standby_at(cwd, port)
    with served_second(cwd, port):
        answer = run("serve", "--config", "frond.ini", "--admin", "root:pw", "--http", "127.0.0.1:0",
                     cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "a store of another history")


def restored(cwd, name, *options, log="data"):
    return run("restore", "copies", "--log", log, "--store", f"embedded:{name}", *options, cwd=cwd)


def ids_of(cwd, name):
    return sorted(json.loads(line)["_id"] for line in ok("dump", "db", "--store", f"embedded:{name}",
                                                         cwd=cwd).stdout.splitlines())


@test
def a_backup_and_the_log_make_any_moment_after_it(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
        server.request("PUT", "/db/a", {}, ADMIN)
    ok("backup", "copies", cwd=cwd)
    with first(cwd) as server:
        server.request("PUT", "/db/b", {}, ADMIN)
        time.sleep(0.01)  # so that the moment lies between two commits
        moment = f"{time.time():.3f}s"
        time.sleep(0.01)
        server.request("PUT", "/db/c", {}, ADMIN)
        server.stop(signal.SIGKILL)
    # The log of a store that nobody closed.
    answer = restored(cwd, "then", "--until", moment.removesuffix("s").replace(".", "") + "ms")
    contains(answer.stdout, "commits of the log, up to ")
    contains(answer.stdout, "; the next one is of ")
    equal(ids_of(cwd, "then"), ["a", "b"])
    contains(restored(cwd, "all").stdout, "; it ends there")
    equal(ids_of(cwd, "all"), ["a", "b", "c"])
    ok("verify", "--store", "embedded:then", "--quiet", cwd=cwd)
    ok("verify", "--store", "embedded:all", "--quiet", cwd=cwd)
    contains(ok("restore", "copies", "--store", "embedded:only", cwd=cwd).stdout, "restored")
    equal(ids_of(cwd, "only"), ["a"])
    # A copy of the log's files will do.
    (cwd / "kept").mkdir()
    for log in [*(cwd / "data").glob("*.log"), *(cwd / "data" / "archive").glob("*.log")]:
        shutil.copy(log, cwd / "kept")
    contains(restored(cwd, "copied", log="kept").stdout, "; it ends there")
    equal(ids_of(cwd, "copied"), ["a", "b", "c"])
    # New changes come after all that anybody has seen.
    with Server(cwd, "--config", "frond.ini", "--admin", "root:pw", "--store", "embedded:then") as server:
        _, before = server.request("GET", "/db/_changes", None, ADMIN)
        server.request("PUT", "/db/d", {}, ADMIN)
        _, after = server.request("GET", "/db/_changes?since=" + before["last_seq"], None, ADMIN)
        equal([row["id"] for row in after["results"]], ["d"])
    equal(run("restore", "copies", "--until", "now", "--store", "embedded:x", cwd=cwd).returncode, 2)


@test
def a_log_that_misses_something_restores_nothing(cwd):
    with first(cwd) as server:
        server.request("PUT", "/db", None, ADMIN)
    ok("backup", "copies", cwd=cwd)
    for part in range(3):  # a log for each opening, at least
        with first(cwd) as server:
            put_docs(server, 50, f"{part}-")
    logs = sorted([*(cwd / "data").glob("*.log"), *(cwd / "data" / "archive").glob("*.log")],
                  key=lambda path: path.name)
    largest = max(logs[:-1], key=lambda path: path.stat().st_size)
    whole = largest.read_bytes()
    spoiled = bytearray(whole)
    spoiled[len(whole) // 2] ^= 0xff
    largest.write_bytes(spoiled)
    answer = restored(cwd, "x")
    equal(answer.returncode, 1)
    contains(answer.stderr, "does not go on behind version")
    largest.unlink()
    equal(restored(cwd, "x").returncode, 1)
    assert not list(cwd.glob("x*"))
    largest.write_bytes(whole)
    equal(restored(cwd, "x").returncode, 0)
    # The log of another history, of a store that only begins with the same versions.
    ok("restore", "copies", "--store", "embedded:other", cwd=cwd)
    answer = restored(cwd, "y", log="other")
    equal(answer.returncode, 1)
    contains(answer.stderr, "does not reach back to version")


@test
def nothing_is_lost_when_either_side_is_killed(cwd):
    chance = random.Random(int(os.environ.get("FROND_TEST_SEED", "1")))
    server = first(cwd)
    port = int(server.url.rsplit(":", 1)[1])
    server.request("PUT", "/db", None, ADMIN)
    follower = Follower(cwd, server.url)
    written = {}
    try:
        for turn in range(KILLS):
            for i in range(chance.randrange(1, 40)):
                name = f"k{turn:05}-{i:02}"
                status, answer = server.request("PUT", f"/db/{name}", {"turn": turn}, ADMIN)
                equal(status, 201)
                written[name] = answer["rev"]
            # Half of the time the standby is at work when it, or its first, is killed.
            if chance.random() < 0.5:
                follower.ready()
            if chance.random() < 0.5:
                follower.end(signal.SIGKILL)
                follower = Follower(cwd, server.url)
            else:
                server.stop(signal.SIGKILL)
                server.__exit__()
                server = first(cwd, port=port)
            assert follower.process.poll() is None, (cwd / "follow.log").read_text()
        equal(follower.ready().end(), 0)
        same(cwd, server)
    finally:
        if follower.process.poll() is None:
            follower.process.kill()
        server.__exit__()
    ok("promote", "--store", "embedded:second", cwd=cwd)
    with Server(cwd, "--config", "frond.ini", "--admin", "root:pw", "--store", "embedded:second") as promoted:
        _, answer = promoted.request("GET", "/db/_all_docs", None, ADMIN)
    there = {row["id"]: row["value"]["rev"] for row in answer["rows"]}
    equal({name: rev for name, rev in written.items() if there.get(name) != rev}, {})
    ok("verify", "--store", "embedded:second", "--quiet", cwd=cwd)


main()
