"""The binary as a server: starting, stopping, settings, and commands that go through it."""

import base64
import json
import random
import resource
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid

from harness import FROND, QUICK, Server, contains, equal, main, ok, run, test, until

DOCS = "".join(json.dumps({"_id": f"{i:04}", "n": i}, separators=(",", ":")) + "\n"
               for i in range(1200))


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def login(server, name, password):
    """The cookie of a session."""
    body = json.dumps({"name": name, "password": password}).encode()
    request = urllib.request.Request(server.url + "/_session", data=body, method="POST",
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.headers["Set-Cookie"].split(";")[0]


@test
def server_starts_answers_and_stops_on_sigterm(cwd):
    with Server(cwd) as server:
        equal(server.request("GET", "/_up")[0], 200)
        assert (cwd / "data").is_dir()
        equal(server.stop(), 0)
        log = server.read_log()
        contains(log, "event=start ")
        contains(log, "event=stop ")


def hints(server):
    """What the server has printed below its first line."""
    return [server.process.stdout.readline().strip() for _ in range(5)]


def tried(command, cwd):
    return json.loads(subprocess.run(["sh", "-ec", command], cwd=cwd, capture_output=True,
                                     timeout=30, check=True).stdout)


@test
def printed_hints_work_as_they_stand(cwd):
    with Server(cwd, http="0.0.0.0:0", env={"FROND_ADMIN": "root:secret"}) as server:
        browser, _, *commands = hints(server)
        contains(browser, "In a browser: http://127.0.0.1:")
        equal([line.count(" -u root ") for line in commands], [1, 1, 1])
        # Curl asks for the password; here it is told.
        said = [line.replace(" -u root ", " -u root:secret ") for line in commands]
        equal([tried(line, cwd).get("ok") for line in said], [True, True, None])
    with Server(cwd, "--store", "embedded:other") as server:
        commands = hints(server)[2:]
        equal(tried(commands[0], cwd), {"ok": True})
        equal(tried(commands[1], cwd)["id"], "mydoc")
        equal(tried(commands[2], cwd)["hello"], "world")


@test
def hint_does_not_print_a_name_that_a_shell_would_read(cwd):
    with Server(cwd, env={"FROND_ADMIN": "a$(b) 'c:secret"}) as server:
        assert all(" -u NAME " in line for line in hints(server)[2:])


@test
def browser_at_the_root_is_shown_where_to_go(cwd):
    with Server(cwd) as server:
        def get(accept):
            request = urllib.request.Request(server.url + "/", headers={"Accept": accept})
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.headers["Content-Type"].split(";")[0], answer.read().decode()
        kind, page = get("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
        equal(kind, "text/html")
        contains(page, 'href="/_utils/"')
        for accept in "*/*", "application/json", "application/json, text/html", "text/plain":
            kind, body = get(accept)
            equal((kind, json.loads(body)["couchdb"]), ("application/json", "Welcome"))


@test
def changed_password_of_a_given_administrator_holds_after_a_restart(cwd):
    given, changed = basic("root", "given"), basic("root", "changed")
    path = "/_node/_local/_config/admins/root"
    with Server(cwd, env={"FROND_ADMIN": "root:given"}) as server:
        equal(server.request("GET", "/_all_dbs", headers=given)[0], 200)
        assert "admin_password_changed" not in server.read_log()
        equal(server.request("DELETE", path, headers=given)[0], 403)
        equal(server.request("PUT", path, "changed", headers=given)[0], 200)
        equal(server.request("GET", "/_all_dbs", headers=given)[0], 401)
        equal(server.request("GET", "/_all_dbs", headers=changed)[0], 200)
    with Server(cwd, env={"FROND_ADMIN": "root:given"}) as server:
        contains(server.read_log(), 'event=admin_password_changed name="root"')
        equal(server.request("GET", "/_all_dbs", headers=given)[0], 401)
        equal(server.request("GET", "/_all_dbs", headers=changed)[0], 200)


@test
def server_stops_on_sigint_too(cwd):
    with Server(cwd) as server:
        equal(server.stop(signal.SIGINT), 0)


@test
def second_signal_gives_up_waiting_for_a_request(cwd):
    with Server(cwd) as server:
        equal(server.request("PUT", "/db")[0], 201)
        host, port = server.url[len("http://"):].split(":")
        with socket.create_connection((host, int(port))) as stuck:
            stuck.sendall(b"PUT /db/doc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
                          b"Expect: 100-continue\r\n\r\n")
            contains(stuck.recv(100).decode(), "100 Continue")  # its handler waits for the body
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            equal(server.process.poll(), None)
            begun = time.monotonic()
            equal(server.stop(), 0)
            assert time.monotonic() - begun < 10
        contains(server.read_log(), "event=stop ")


def large_requests_are_refused(server, docs):
    """
    While a request holds most of the memory and does not arrive. False if it has given that back, as
    it does after some time (NET_MEMORY_LOOK_MS), and a busy machine lets time pass.
    """
    host, port = server.url[len("http://"):].split(":")
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(b"POST /db/_bulk_docs HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Type: application/json\r\nContent-Length: 2000000\r\n"
                     b"Expect: 100-continue\r\n\r\n")
        contains(slow.recv(100).decode(), "100 Continue")
        request = urllib.request.Request(server.url + "/db/_bulk_docs", json.dumps(docs).encode(),
                                         {"Content-Type": "application/json"})
        try:
            urllib.request.urlopen(request)
            return False
        except urllib.error.HTTPError as error:
            equal(error.code, 503)
            equal(error.headers["Retry-After"], "5")
            contains(json.load(error)["reason"], "memory")
        assert server.request("PUT", "/db/small", {})[0] in (201, 409)
        for size in (1000, 100000):
            # A document of its own each time: one that is there already is a conflict, whatever its size.
            put = ["curl", "-s", "-X", "PUT", f"{server.url}/db/{uuid.uuid4().hex}/f", "--data-binary", "@-"]
            answer = subprocess.run(put, input=b"x" * size, capture_output=True, check=True)
            equal((size, b"memory" in answer.stdout and size == 1000), (size, False))
        return b"memory" in answer.stdout


@test
def requests_beyond_the_memory_for_all_are_told_to_come_again(cwd):
    (cwd / "ini").write_text("[frond]\nmemory_bytes = 8388608\nmemory_timeout_ms = 50\n")
    docs = {"docs": [{"_id": str(i), "text": "x" * 100} for i in range(2000)]}
    with Server(cwd, "--config", "ini") as server:
        equal(server.request("PUT", "/db")[0], 201)
        until(lambda: large_requests_are_refused(server, docs))
        equal(server.request("POST", "/db/_bulk_docs", docs)[0], 201)
        # More than there is for a single one.
        docs = {"docs": [{"_id": f"n{i}", "n": list(range(1000))} for i in range(1000)]}
        status, answer = server.request("POST", "/db/_bulk_docs", docs)
        equal((status, answer["error"]), (413, "too_large"))


@test
def what_was_written_is_there_after_a_restart(cwd):
    with Server(cwd, "--store", "embedded:there") as server:
        equal(server.request("PUT", "/db")[0], 201)
        equal(server.request("PUT", "/db/doc", {"hello": "world"})[0], 201)
        equal(server.stop(), 0)
    with Server(cwd, "--store", "embedded:there") as server:
        status, doc = server.request("GET", "/db/doc")
        equal((status, doc["hello"]), (200, "world"))
    equal(ok("dump", "db", "--store", "embedded:there", cwd=cwd).stdout,
          '{"_id":"doc","hello":"world"}\n')


@test
def settings_changed_over_http_win_over_the_file_and_outlive_a_restart(cwd):
    (cwd / "frond.ini").write_text(
        QUICK + "[couchdb]\nmax_document_size = 5000\n[admins]\nfile = pw\n")
    limit = "/_node/_local/_config/couchdb/max_document_size"
    options = ["--config", "frond.ini", "--admin", "anna:secret"]
    anna = basic("anna", "secret")
    with Server(cwd, *options) as server:
        equal(server.request("GET", limit, headers=anna), (200, "5000"))
        equal(server.request("PUT", limit, "6000", headers=anna), (200, "5000"))
        equal(server.request("PUT", "/_node/_local/_config/admins/file", "other", headers=anna)[0],
              200)
        equal(server.request("DELETE", "/_node/_local/_config/admins/anna", headers=anna)[0], 403)
        cookie = login(server, "file", "other")
        equal(server.stop(), 0)
    with Server(cwd, *options) as server:
        equal(server.request("GET", limit, headers={"Cookie": cookie}), (200, "6000"))
        equal(server.request("GET", limit, headers=basic("file", "pw"))[0], 401)
        equal(server.request("GET", limit, headers=basic("file", "other"))[0], 200)


@test
def cookie_outlives_a_restart_unless_the_password_is_another_one(cwd):
    def session_name(server):
        return server.request("GET", "/_session", headers={"Cookie": cookie})[1]["userCtx"]["name"]

    with Server(cwd, "--admin", "anna:secret") as server:
        cookie = login(server, "anna", "secret")
        equal(session_name(server), "anna")
        equal(server.stop(), 0)
    for password, name in (("secret", "anna"), ("other", None), ("secret", "anna")):
        with Server(cwd, "--admin", f"anna:{password}") as server:
            equal(session_name(server), name)
            equal(server.stop(), 0)


@test
def last_administrator_of_a_server_that_others_reach_stays(cwd):
    with Server(cwd, http="0.0.0.0:0", env={"FROND_ADMIN": "env:pw"}) as server:
        env = basic("env", "pw")
        equal(server.request("PUT", "/_node/_local/_config/admins/bob", "pw", headers=env)[0], 200)
        equal(server.stop(), 0)
    (cwd / "frond.ini").write_text(QUICK + "[admins]\nbert = pw\n")
    with Server(cwd, "--config", "frond.ini", http="0.0.0.0:0") as server:
        for name, status in (("bob", 200), ("bert", 400)):
            equal(server.request("DELETE", f"/_node/_local/_config/admins/{name}",
                                 headers=basic("bert", "pw"))[0], status)


@test
def connections_of_one_address_are_limited(cwd):
    (cwd / "ini").write_text("[frond]\nmax_connections_per_address = 3\n")
    with Server(cwd, "--config", "ini") as server:
        host, port = server.url[len("http://"):].split(":")

        def connect(source):
            return socket.create_connection((host, int(port)), 10, source_address=(source, 0))

        def ask(connection):
            connection.sendall(b"GET /_up HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return connection.recv(4096).decode()

        held = [connect("127.0.0.2") for _ in range(3)]
        for connection in held:
            contains(ask(connection), "HTTP/1.1 200 ")
        with connect("127.0.0.2") as refused:
            text = b""
            while data := refused.recv(4096):
                text += data
            contains(text.decode(), "HTTP/1.1 429 ")
            contains(text.decode(), "\r\nRetry-After: 5\r\n")
            contains(text.decode(), '{"error":"too_many_requests","reason":"Too many connections '
                     'from this address: the limit, max_connections_per_address, is 3."}')
        with connect("127.0.0.3") as other:
            contains(ask(other), "HTTP/1.1 200 ")
        held.pop().close()
        for _ in range(100):  # until the server has noticed
            with connect("127.0.0.2") as again:
                if "HTTP/1.1 200 " in ask(again):
                    break
        else:
            raise AssertionError("the place of a connection that has ended is not free")
        for connection in held:
            connection.close()


@test
def second_process_on_the_store_is_refused_clearly(cwd):
    with Server(cwd):
        for args in (["serve", "--http", "127.0.0.1:0"], ["load", "db", "/dev/null"]):
            result = run(*args, cwd=cwd)
            equal(result.returncode, 1)
            contains(result.stderr, "is in use by another frond; stop it, or go through its HTTP "
                     "address")


@test
def address_in_use_is_told(cwd):
    with Server(cwd) as server:
        result = run("serve", "--store", "embedded:other", "--http", server.url[len("http://"):],
                     cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, "frond: ")


@test
def open_address_needs_an_administrator(cwd):
    result = run("serve", "--http", "0.0.0.0:0", cwd=cwd)
    equal(result.returncode, 2)
    contains(result.stderr, "refusing to listen on 0.0.0.0 without an administrator")
    assert not (cwd / "data").exists()
    with Server(cwd, "--admin", "anna:secret", http="0.0.0.0:0") as server:
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        equal(server.request("PUT", "/db")[0], 401)
        equal(server.request("PUT", "/db", headers=basic("anna", "secret"))[0], 201)
        equal(server.request("PUT", "/db2", headers=basic("anna", "wrong"))[0], 401)


@test
def administrator_comes_from_the_environment(cwd):
    with Server(cwd, env={"FROND_ADMIN": "anna:se:cret"}) as server:
        equal(server.request("PUT", "/db")[0], 401)
        equal(server.request("PUT", "/db", headers=basic("anna", "se:cret"))[0], 201)
    result = run("serve", cwd=cwd, env={"FROND_ADMIN": "nonsense"})
    equal(result.returncode, 2)
    contains(result.stderr, "FROND_ADMIN is not NAME:PASSWORD")


@test
def settings_come_from_a_file_and_the_command_line_wins(cwd):
    (cwd / "frond.ini").write_text(
        QUICK + "[chttpd]\nport = 1\n[admins]\nanna = secret\n[frond]\nstore = embedded:filed\n"
        "[couchdb]\nmax_document_size = 1000\n[log]\nlevel = error\n")
    with Server(cwd, "--config", "frond.ini") as server:
        assert (cwd / "filed").is_dir()
        admin = basic("anna", "secret")
        equal(server.request("PUT", "/db", headers=admin)[0], 201)
        equal(server.request("PUT", "/db/x", {"x": "y" * 2000}, headers=admin)[0], 413)
        equal(server.stop(), 0)
        assert "event=start" not in server.read_log()
    with Server(cwd, "--config", "frond.ini", "--store", "embedded:lined"):
        assert (cwd / "lined").is_dir()


@test
def mistakes_in_the_file_are_exit_code_2(cwd):
    (cwd / "frond.ini").write_text("[chttpd]\nprot = 1\n")
    result = run("serve", "--config", "frond.ini", cwd=cwd)
    equal(result.returncode, 2)
    contains(result.stderr, 'frond: frond.ini:2: [chttpd] has no setting "prot"')
    result = run("serve", "--config", "nowhere.ini", cwd=cwd)
    equal(result.returncode, 2)
    contains(result.stderr, "nowhere.ini: No such file or directory")


@test
def load_and_dump_go_through_a_server(cwd):
    with Server(cwd, "--admin", "anna:secret") as server:
        url = server.url.replace("http://", "http://anna:secret@")
        result = ok("load", "db", "--to", url, cwd=cwd, stdin=DOCS)
        contains(result.stdout, "1200 documents loaded into db, 0 refused")
        equal(ok("dump", "db", "--from", url, cwd=cwd).stdout, DOCS)
        result = run("load", "db", "--to", url, "--on-error", "continue", cwd=cwd,
                     stdin='{"_id":"0001"}\n{"_id":"new"}\n{"broken\n')
        equal(result.returncode, 1)
        contains(result.stderr, 'standard input:1: document "0001": conflict')
        contains(result.stderr, "standard input:3: ")
        contains(result.stdout, "1 documents loaded into db, 2 refused")
        ok("load", "ids", "--to", url, "--id", "k", cwd=cwd, stdin='{"k":1}\n')
        ok("load", "ids", "--to", url, cwd=cwd, stdin='{"m":{},"n":{"x":1}}')
        equal(ok("dump", "ids", "--from", url, cwd=cwd).stdout,
              '{"_id":"1","k":1}\n{"_id":"m"}\n{"_id":"n","x":1}\n')


@test
def faithful_copy_goes_through_a_server(cwd):
    docs = [
        {"_id": "a", "_revisions": {"start": 2, "ids": ["b" * 32, "a" * 32]}, "n": 1},
        {"_id": "a", "_revisions": {"start": 2, "ids": ["c" * 32, "a" * 32]}, "n": 2},
        {"_id": "g/one", "_deleted": True,
         "_revisions": {"start": 2, "ids": ["e" * 32, "f" * 32]}},
    ]
    for doc in docs:
        doc["_rev"] = f'{doc["_revisions"]["start"]}-{doc["_revisions"]["ids"][0]}'
    text = "".join(json.dumps(d) + "\n" for d in docs)

    def read(dumped):
        return sorted((json.loads(line) for line in dumped.splitlines()), key=lambda d: d["_rev"])

    with Server(cwd) as server:
        ok("load", "db", "--new-edits", "false", "--to", server.url, cwd=cwd, stdin=text)
        copy = ok("dump", "db", "--revs", "--from", server.url, cwd=cwd).stdout
        equal(read(copy), read(text))
        ok("load", "copy", "--new-edits", "false", "--to", server.url, cwd=cwd, stdin=copy)
        equal(server.stop(), 0)
    equal(read(ok("dump", "copy", "--revs", cwd=cwd).stdout), read(text))


@test
def server_that_refuses_is_quoted_without_the_password(cwd):
    with Server(cwd, "--admin", "anna:secret") as server:
        url = server.url.replace("http://", "http://anna:wrong@")
        result = run("load", "db", "--to", url, cwd=cwd, stdin=DOCS)
        equal(result.returncode, 1)
        contains(result.stderr, "answers 401 to /db: unauthorized")
        assert "wrong@" not in result.stderr, result.stderr
        good = server.url.replace("http://", "http://anna:secret@")
        for args in (["dump", "none", "--from", good],
                     ["load", "none", "--no-create", "--to", good]):
            result = run(*args, cwd=cwd, stdin=DOCS)
            equal(result.returncode, 1)
            contains(result.stderr, "answers 404 to /none")
        url = server.url
    result = run("dump", "db", "--from", url, cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, url)
    result = run("dump", "db", "--from", "ftp://localhost", cwd=cwd)
    equal(result.returncode, 1)
    contains(result.stderr, "that is not the URL of a server")


@test
def inspect_works_next_to_a_server_or_says_why_not(cwd):
    with Server(cwd) as server:
        equal(server.request("PUT", "/db")[0], 201)
        result = run("inspect", cwd=cwd)
        if result.returncode == 0:
            contains(result.stdout, '("root", "databases", "db")')
        else:
            contains(result.stderr, "is in use by another frond")


def once_there_is_room(request):
    """The status, when it is no refusal of the connection any more."""
    for _ in range(100):
        try:
            status, _ = request()
        except (urllib.error.URLError, ConnectionError):
            status = 503
        if status != 503:
            break
        time.sleep(0.1)
    return status


@test
def connections_leave_descriptors_to_the_store(cwd):
    def few_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    with Server(cwd, before=few_descriptors) as server:
        equal(server.request("PUT", "/db")[0], 201)
        host, port = server.url[len("http://"):].split(":")
        busy = [socket.create_connection((host, int(port))) for _ in range(400)]
        writer = busy[0]
        for i in range(60):  # several tables' worth
            body = b'{"a":"' + random.randbytes(350000).hex().encode() + b'"}'
            writer.sendall(b"PUT /db/%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                           % (i, len(body)) + body)
            contains(writer.recv(4096).decode(), " 201 Created")
        for connection in busy:
            connection.close()
        equal(once_there_is_room(lambda: server.request("PUT", "/db/after", {})), 201)
        equal(server.request("GET", "/db")[1]["doc_count"], 61)
        log = server.read_log()
        contains(log, "event=connections_limited max_connections=160 ")
        contains(log, "raise ulimit -n, or lower max_connections")
        assert log.count("event=accept_failed") <= 2, log


@test
def too_few_descriptors_are_told(cwd):
    result = subprocess.run(["sh", "-c", 'ulimit -n 100; exec "$0" serve', FROND], cwd=cwd,
                            capture_output=True, text=True, timeout=60)
    equal(result.returncode, 2)
    contains(result.stderr, "100 open files are too few")


@test
def failing_disk_is_told_to_client_and_operator(cwd):
    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000000, 3000000))

    with Server(cwd, before=small_files) as server:
        equal(server.request("PUT", "/db")[0], 201)
        body = {"a": "x" * 900000}
        written = 0
        while (answer := server.request("PUT", f"/db/{written}", body))[0] == 201:
            written += 1
        equal(answer[0], 500)
        equal(server.request("PUT", "/db/another", {})[0], 503)
        for i in range(written):
            equal(server.request("GET", f"/db/{i}")[0], 200)
        equal(server.read_log().count("event=request_failed status=io"), 1)
        contains(server.read_log(), "event=store_failed")
    with Server(cwd) as server:
        equal(server.request("GET", "/db/0")[1]["a"], body["a"])
        equal(server.request("GET", "/db")[1]["doc_count"] >= written, True)
        equal(server.request("PUT", "/db/another", {})[0], 201)


@test
def settings_say_where_the_server_listens(cwd):
    (cwd / "frond.ini").write_text("[chttpd]\nport = 1\n[redis]\nport = 2\n")
    for options in ((), ("--config", "frond.ini", "--redis", "127.0.0.2:0")):
        with Server(cwd, *options, http="127.0.0.3:0") as server:
            host, port = server.url.rsplit("/", 1)[1].split(":")
            config = server.request("GET", "/_node/_local/_config")[1]
            equal((config["chttpd"]["bind_address"], config["chttpd"]["port"]), (host, port))
            equal(server.request("GET", "/_node/_local/_config/chttpd/port"), (200, port))
            equal("redis" in config, bool(options))
            if options:
                equal((config["redis"]["bind_address"], config["redis"]["enable"]),
                      ("127.0.0.2", "true"))
                contains(server.read_log(), f"address=127.0.0.2:{config['redis']['port']}\n")
            # The rest is as it was: what is fixed at the start cannot be changed.
            equal(server.request("PUT", "/_node/_local/_config/chttpd/port", "1")[0], 403)
        assert server.stop_code == 0


main()
