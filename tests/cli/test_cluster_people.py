"""Three frond processes at one FoundationDB cluster agree at once on who may what: people, their
passwords and roles, cookies, tokens, the rights of databases. Needs a cluster; see FROND_TEST_FDB."""

import base64
import contextlib
import hashlib
import hmac
import json
import threading
import time
import urllib.request
import uuid

from harness import cluster, equal, main, ok, test, until
from processes import BASIC, Processes, ask, database, login, names, status, turns

# Hashes are quick: their slowness is no affair of these tests.
TOKENS = """
[chttpd]
authentication_handlers = {chttpd_auth, jwt_authentication_handler}, {chttpd_auth, default_authentication_handler}
"""
SETTINGS = "/_node/_local/_config/"


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def path_of(name):
    return f"/_users/org.couchdb.user:{name}"


def write_user(server, name, rev=None, **more):
    """Signs up or changes somebody. The revision."""
    code, answer = ask(server, "PUT", path_of(name) + (f"?rev={rev}" if rev else ""),
                       {"type": "user", "name": name, "roles": [], **more})
    equal(code, 201)
    return answer["rev"]


@contextlib.contextmanager
def people(cwd, settings=""):
    """Three servers at a store with an empty _users."""
    with Processes(cwd, settings=settings) as servers:
        status(servers[0], "DELETE", "/_users")
        equal(status(servers[0], "PUT", "/_users"), 201)
        try:
            yield servers
        finally:
            status(servers[0], "DELETE", "/_users")


def put_setting(server, name, value):
    equal(status(server, "PUT", SETTINGS + name, value), 200)


def roles(servers, headers):
    """What each of the servers says of somebody: the roles, or the status of a refusal."""
    answers = [ask(server, "GET", "/_session", headers=headers) for server in servers]
    return [answer["userCtx"]["roles"] if code == 200 else code for code, answer in answers]


@test
def who_is_there_changed_or_removed_is_so_for_all_with_the_next_request(cwd):
    with people(cwd) as servers:
        for n, one, others in turns(servers):
            name = f"p{n}"
            rev = write_user(one, name, password="first", roles=["readers"])
            equal(roles(others, basic(name, "first")), [["readers"]] * 2)
            cookie = login(others[0], name, "first")
            equal(names(servers, cookie), [name] * 3)
            rev = write_user(one, name, rev, password="first", roles=["writers"])
            equal(roles(others, basic(name, "first")), [["writers"]] * 2)
            cookie = login(others[1], name, "first")
            rev = write_user(one, name, rev, password="second", roles=["writers"])
            # The others remember that the first one was right, and it counts no more.
            equal(roles(others, basic(name, "first")), [401, 401])
            equal(names(servers, cookie), [None] * 3)
            equal(roles(others, basic(name, "second")), [["writers"]] * 2)
            cookie = login(others[0], name, "second")
            equal(names(servers, cookie), [name] * 3)
            equal(status(one, "DELETE", path_of(name) + f"?rev={rev}"), 200)
            equal(roles(others, basic(name, "second")), [401, 401])
            equal(names(servers, cookie), [None] * 3)


@test
def who_loses_a_role_or_a_place_in_a_list_is_refused_by_all(cwd):
    members = {"admins": {"names": [], "roles": []}, "members": {"names": [], "roles": ["readers"]}}
    by_name = {"admins": {"names": [], "roles": []}, "members": {"names": ["jan"], "roles": []}}
    jan = basic("jan", "secret")

    def answers(servers, db):
        equal({status(server, "GET", f"{db}/_all_docs", headers=jan) for server in servers},
              {status(server, "GET", f"{db}/d", headers=jan) for server in servers})
        return [status(server, "PUT", f"{db}/{uuid.uuid4().hex}", {}, headers=jan)
                for server in servers]

    with people(cwd) as servers, database(servers[0]) as db:
        rev = write_user(servers[0], "jan", password="secret")
        equal(status(servers[0], "PUT", f"{db}/d", {}), 201)
        for _, one, others in turns(servers):
            equal(status(one, "PUT", f"{db}/_security", members), 200)
            equal(answers(others, db), [403, 403])
            rev = write_user(one, "jan", rev, password="secret", roles=["readers"])
            equal(answers(others, db), [201, 201])
            rev = write_user(one, "jan", rev, password="secret", roles=[])
            equal(answers(others, db), [403, 403])
            equal(status(one, "PUT", f"{db}/_security", by_name), 200)
            equal(answers(others, db), [201, 201])


class Feed(threading.Thread):
    """A continuous feed, until it ends."""

    def __init__(self, server, path, headers):
        super().__init__()
        self.request = urllib.request.Request(server.url + path, headers=headers)
        self.answered = threading.Event()
        self.ended = None
        self.start()
        assert self.answered.wait(30), "the feed has not begun"

    def run(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.request, timeout=90) as feed:
            feed.readline()  # of the document that is there
            self.answered.set()
            with contextlib.suppress(OSError, ValueError):
                while feed.readline():
                    pass
        self.ended = time.monotonic()


@test
def feeds_at_all_end_when_one_withdraws_the_right(cwd):
    closed = {"admins": {"names": [], "roles": []}, "members": {"names": ["x"], "roles": []}}
    feed = "/_changes?feed=continuous&timeout=60000"
    with people(cwd) as servers, database(servers[0]) as db:
        equal(status(servers[0], "PUT", f"{db}/d", {}), 201)
        rev = write_user(servers[0], "jan", password="secret", roles=["readers"])
        readers = {"admins": {"names": [], "roles": []},
                   "members": {"names": [], "roles": ["readers"]}}

        def withdrawn_by(change):
            equal(status(servers[0], "PUT", f"{db}/_security", readers), 200)
            feeds = [Feed(server, db + feed, basic("jan", "secret")) for server in servers]
            begun = time.monotonic()
            change()
            for thread in feeds:
                thread.join(50)
                assert not thread.is_alive(), "a feed goes on"
            # A second is promised; the machine that tests may be busy.
            seconds = max(thread.ended for thread in feeds) - begun
            print(f"# ended after {seconds:.2f} s")
            assert seconds < 20, seconds

        withdrawn_by(lambda: equal(status(servers[1], "PUT", f"{db}/_security", closed), 200))
        withdrawn_by(lambda: write_user(servers[2], "jan", rev, password="secret"))


@test
def cookies_of_the_former_secret_hold_at_all_for_the_overlap_and_no_longer(cwd):
    def changed(server, *values):
        for value in values:
            put_setting(server, "chttpd_auth/secret", value)

    def renewed(server, cookie):
        """The cookie that comes with an answer."""
        request = urllib.request.Request(server.url + "/_session", headers={"Cookie": cookie})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return answer.headers["Set-Cookie"].split(";")[0]

    with people(cwd) as servers:
        write_user(servers[0], "jan", password="secret")
        try:
            for n, one, others in turns(servers):
                put_setting(one, "chttpd_auth/secret_overlap", "600")
                changed(one, f"the first secret of {n:03}")
                cookie = login(others[0], "jan", "secret")
                equal(names(servers, cookie), ["jan"] * 3)
                changed(others[1], f"the second secret of {n:03}")
                equal(names(servers, cookie), ["jan"] * 3)
                # Each of them renews it by the secret that holds now, for all of them.
                second = [renewed(server, cookie) for server in servers]
                put_setting(one, "chttpd_auth/secret_overlap", "0")
                equal(names(servers, cookie), [None] * 3)
                for new in second:
                    equal(names(servers, new), ["jan"] * 3)
                changed(one, f"the third secret of {n:03}")
                for new in second:
                    equal(names(servers, new), [None] * 3)
        finally:
            for name in ("secret", "secret_overlap"):
                status(servers[0], "DELETE", f"{SETTINGS}chttpd_auth/{name}")


def token(key, **claims):
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    text = b".".join(part(json.dumps(value).encode()) for value in (
        {"typ": "JWT", "alg": "HS256"}, claims))
    signature = hmac.new(key, text, hashlib.sha256).digest()
    return {"Authorization": "Bearer " + (text + b"." + part(signature)).decode()}


@test
def a_key_of_tokens_that_one_takes_away_ends_them_at_all(cwd):
    key = b"a key of thirty-two bytes or so!"
    other = b"another key of thirty-two bytes!"
    name = "jwt_keys/hmac:_default"
    with people(cwd, TOKENS) as servers:
        jan = token(key, sub="jan", exp=int(time.time()) + 3600)
        try:
            for n, one, others in turns(servers):
                put_setting(one, name, base64.b64encode(key).decode())
                equal(names_by(servers, jan), ["jan"] * 3)
                if n % 2:
                    put_setting(one, name, base64.b64encode(other).decode())
                else:
                    equal(status(one, "DELETE", SETTINGS + name), 200)
                assert all(code in (400, 401) for code in names_by(others, jan))
        finally:
            status(servers[0], "DELETE", SETTINGS + name)


def names_by(servers, headers):
    """The names, or the statuses of refusals."""
    answers = [ask(server, "GET", "/_session", headers=headers) for server in servers]
    return [answer["userCtx"]["name"] if code == 200 else code for code, answer in answers]


@test
def who_may_administer_is_so_for_all(cwd):
    with people(cwd) as servers:
        for n, one, others in turns(servers):
            name = f"t{uuid.uuid4().hex}"
            boss = basic(name, "secret")
            put_setting(one, f"admins/{name}", "secret")
            equal([status(other, "GET", "/_all_dbs", headers=boss) for other in others], [200] * 2)
            put_setting(one, f"admins/{name}", "other")
            equal([status(other, "GET", "/_all_dbs", headers=boss) for other in others], [401] * 2)
            equal(status(one, "DELETE", f"{SETTINGS}admins/{name}"), 200)
            equal([status(other, "GET", "/_all_dbs", headers=basic(name, "other"))
                   for other in others], [401] * 2)


@test
def a_name_is_taken_by_one_of_those_who_sign_up_at_once(cwd):
    with people(cwd) as servers:
        for n in range(10):
            codes = []

            def sign_up(k, server):
                body = {"type": "user", "name": f"n{n}", "roles": [], "password": f"word{k}"}
                codes.append((status(server, "PUT", path_of(f"n{n}"), body), k))

            threads = [threading.Thread(target=sign_up, args=pair) for pair in enumerate(servers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            equal(sorted(code for code, _ in codes), [201, 409, 409])
            winner = min(codes)[1]
            for k in range(3):
                equal(names_by(servers, basic(f"n{n}", f"word{k}")),
                      [f"n{n}" if k == winner else 401] * 3)


@test
def databases_of_users_are_made_once_whoever_writes_the_users(cwd):
    with people(cwd, "[couch_peruser]\nenable = true\ndelete_dbs = true\n") as servers:
        made = []
        try:
            for n in range(12):
                name = f"u{n}{uuid.uuid4().hex[:8]}"
                write_user(servers[n % 3], name, password="secret")
                made.append((name, "/userdb-" + name.encode().hex()))
            for n, (name, db) in enumerate(made):
                until(lambda server=servers[n % 3], db=db: status(server, "GET", db) != 404)
                # The lists and the database come in one transaction, which all of them see.
                for server in servers:
                    equal(status(server, "PUT", f"{db}/{server.url[-5:]}", {},
                                 headers=basic(name, "secret")), 201)
                    equal(status(server, "GET", db, headers={}), 401)
        finally:
            for _, db in made:
                status(servers[0], "DELETE", db)


@test
def the_store_is_whole_after_all_of_this(cwd):
    out = ok("verify", "--still", "--quiet", "--store", cluster(), cwd=cwd, timeout=300).stdout
    assert " 0 findings" in out, out


main(needs=None if cluster() else "FROND_TEST_FDB names no cluster file")
