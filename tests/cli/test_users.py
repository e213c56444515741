"""People: frond user with a store and with a server, and loads into _users."""

import base64
import json
import os
import pty

from harness import ENV, FROND, Server, contains, equal, main, make_quick_store, ok, run, test

ADMIN = "boss:secret"


def basic(credentials):
    return {"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode()}


def serve(cwd, *options):
    return Server(cwd, "--admin", ADMIN, *options)


def session(server, credentials):
    """The status of a request by somebody, and what the server takes them for."""
    status, answer = server.request("GET", "/_session", headers=basic(credentials))
    return status, answer.get("userCtx")


def people(*args, cwd):
    lines = ok("user", "list", *args, cwd=cwd).stdout.splitlines()
    return {person["name"]: person["roles"] for person in map(json.loads, lines)}


def user(name, **more):
    return {"_id": f"org.couchdb.user:{name}", "name": name, "roles": [], "type": "user", **more}


def walk(cwd, options, look):
    """Adds, changes and removes; look(credentials) tells what a server makes of somebody."""
    ok("user", "add", "anna", "--roles", "editors,readers", *options, cwd=cwd, stdin="first\n")
    ok("user", "add", "bob", *options, cwd=cwd, stdin="bob's, all of it")
    equal(people(*options, cwd=cwd), {"anna": ["editors", "readers"], "bob": []})
    equal(look("anna:first"), (200, {"name": "anna", "roles": ["editors", "readers"]}))
    equal(look("bob:bob's, all of it"), (200, {"name": "bob", "roles": []}))
    equal(look("anna:wrong")[0], 401)

    ok("user", "password", "anna", *options, cwd=cwd, stdin="second\n")
    equal(look("anna:second"), (200, {"name": "anna", "roles": ["editors", "readers"]}))
    equal(look("anna:first")[0], 401)

    ok("user", "remove", "anna", *options, cwd=cwd)
    equal(people(*options, cwd=cwd), {"bob": []})
    equal(look("anna:second")[0], 401)
    ok("user", "add", "anna", *options, cwd=cwd, stdin="third\n")
    equal(look("anna:third"), (200, {"name": "anna", "roles": []}))


@test
def people_of_a_server_are_added_listed_changed_and_removed(cwd):
    with serve(cwd) as server:
        to = ["--to", server.url.replace("http://", f"http://{ADMIN}@")]
        walk(cwd, to, lambda who: session(server, who))


@test
def people_of_a_store_are_those_whom_a_server_lets_in(cwd):
    def look(who):
        with serve(cwd) as server:
            return session(server, who)

    make_quick_store(cwd)
    walk(cwd, ["--store", "embedded:data"], look)
    ok("verify", cwd=cwd)


@test
def a_password_is_stored_as_a_hash_of_600000_rounds_and_other_members_stay(cwd):
    docs = json.dumps(user("anna", password="first", color="green"))
    ok("load", "_users", cwd=cwd, stdin=docs)
    ok("user", "password", "anna", cwd=cwd, stdin="second\n")
    doc = json.loads(ok("dump", "_users", cwd=cwd).stdout)
    equal((doc["color"], doc["password_scheme"], doc.get("password")), ("green", "pbkdf2", None))
    equal(doc["iterations"], 600000)
    with serve(cwd) as server:
        equal(session(server, "anna:second")[0], 200)
        equal(session(server, "anna:first")[0], 401)


@test
def what_makes_no_sense_is_refused_with_a_reason(cwd):
    def refused(code, text, *args, stdin="secret\n"):
        result = run("user", *args, cwd=cwd, stdin=stdin)
        equal(result.returncode, code)
        contains(result.stderr, text)

    make_quick_store(cwd)
    ok("user", "add", "anna", cwd=cwd, stdin="x\n")
    refused(1, 'there is a user "anna" already', "add", "anna")
    refused(1, 'there is no user "eve"', "remove", "eve")
    refused(1, 'there is no user "eve"', "password", "eve")
    refused(1, "the password is empty", "add", "eve", stdin="\n")
    refused(1, "a password has at most 1024 bytes", "add", "eve", stdin="x" * 1025)
    refused(1, "No system roles", "add", "eve", "--roles", "_admin")
    refused(2, "and no \":\"", "add", "e:ve")
    refused(1, "may not start with underscore", "add", "_eve")
    refused(1, "cannot open the store", "list", "--store", "embedded:nowhere")
    refused(2, "add, list, remove or password?")
    refused(2, '"make" is none of', "make", "eve")
    refused(2, "whom?", "add")
    refused(2, "takes no name", "list", "eve")
    refused(2, "--roles works with add only", "remove", "eve", "--roles", "a")
    refused(2, "exclude each other", "list", "--store", "embedded:data", "--to", "http://x")
    equal(people(cwd=cwd), {"anna": []})


@test
def a_server_refuses_who_is_no_administrator(cwd):
    with serve(cwd) as server:
        result = run("user", "add", "eve", "--to", server.url, cwd=cwd, stdin="x\n")
        equal(result.returncode, 1)
        contains(result.stderr, "answers 401 to /_users: unauthorized")
        equal(server.request("GET", "/_users", headers=basic(ADMIN))[0], 404)


@test
def a_store_that_a_server_has_open_is_told_to_be(cwd):
    with serve(cwd):
        result = run("user", "list", cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, "is in use by another frond")


def at_a_terminal(cwd, *args, typed):
    """Runs frond with a terminal as its input: what it shows there, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(FROND, [FROND, *args], ENV)
    shown = b""
    for line in typed:
        while not shown.endswith(b": "):
            shown += os.read(terminal, 1024)
        os.write(terminal, line)
        shown += b"|"
    try:
        while more := os.read(terminal, 1024):
            shown += more
    except OSError:
        pass  # the other side has gone
    os.close(terminal)
    return shown.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@test
def a_terminal_is_asked_twice_and_shows_no_password(cwd):
    make_quick_store(cwd)
    shown, code = at_a_terminal(cwd, "user", "add", "anna", typed=[b"hidden\n", b"hidden\n"])
    equal(code, 0)
    contains(shown, "Password of anna: ")
    assert "hidden" not in shown, shown
    shown, code = at_a_terminal(cwd, "user", "add", "bob", typed=[b"hidden\n", b"other\n"])
    equal(code, 1)
    contains(shown, "the passwords differ")
    equal(people(cwd=cwd), {"anna": []})


@test
def settings_of_a_store_say_what_a_password_must_be_and_how_it_is_hashed(cwd):
    with serve(cwd) as server:
        for name, value in (("password_regexp", '[{".{10,}", "Ten letters."}]'),
                            ("iterations", "1234")):
            equal(server.request("PUT", f"/_node/_local/_config/chttpd_auth/{name}", value,
                                 headers=basic(ADMIN))[0], 200)
    result = run("user", "add", "anna", cwd=cwd, stdin="short\n")
    equal(result.returncode, 1)
    contains(result.stderr, "Password does not conform to requirements. Ten letters.")
    result = run("load", "_users", cwd=cwd, stdin=json.dumps(user("bob", password="short")))
    equal(result.returncode, 1)
    contains(result.stderr, "Ten letters.")
    ok("user", "add", "anna", cwd=cwd, stdin="long enough\n")
    ok("load", "_users", cwd=cwd, stdin=json.dumps(user("bob", password="long enough")))
    equal([json.loads(line)["iterations"] for line in ok("dump", "_users", cwd=cwd).stdout.splitlines()],
          [1234, 1234])


@test
def a_load_into_users_hashes_passwords_and_keeps_couchdbs_rules(cwd):
    make_quick_store(cwd)
    docs = [user("anna", password="first", roles=["editors"]),
            user("bob", roles=["_admin"]),
            {"_id": "bob", "name": "bob", "roles": [], "type": "user"},
            user("eve", password=1),
            {**user("carl"), "name": "carla"}]
    result = run("load", "_users", "--on-error", "continue", cwd=cwd,
                 stdin="\n".join(map(json.dumps, docs)))
    equal(result.returncode, 1)
    contains(result.stdout, "1 documents loaded into _users, 4 refused")
    contains(result.stderr, 'standard input:2: document "org.couchdb.user:bob": No system roles')
    contains(result.stderr, 'standard input:3: document "bob": Doc ID must be of the form')
    contains(result.stderr, "standard input:4: document \"org.couchdb.user:eve\": The value of a "
                            "password is a string.")
    contains(result.stderr, "standard input:5: document \"org.couchdb.user:carl\": Doc ID must be")
    dumped = ok("dump", "_users", cwd=cwd).stdout
    assert "first" not in dumped, dumped

    # What was dumped has hashes, which a load keeps.
    ok("load", "_users", "--store", "embedded:copy", cwd=cwd, stdin=dumped)
    equal(ok("dump", "_users", "--store", "embedded:copy", cwd=cwd).stdout, dumped)
    with serve(cwd, "--store", "embedded:copy") as server:
        equal(session(server, "anna:first"), (200, {"name": "anna", "roles": ["editors"]}))


main()
