"""HTTPS as operators and clients meet it: curl, certificates that change, replications."""

import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import time

from harness import Server, contains, equal, main, ok, run, test, until

ADMIN = {"FROND_ADMIN": "root:secret"}


EXPIRY = "frond_tls_certificate_expiry_timestamp_seconds"


def certificate(cwd, name, host="localhost", days=2):
    """Makes NAME.pem and NAME.key, for that host and the loopback, signed by itself."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", str(days), "-subj", f"/CN={host}", "-addext",
         f"subjectAltName=DNS:{host},IP:127.0.0.1", "-keyout", cwd / f"{name}.key",
         "-out", cwd / f"{name}.pem"], check=True, capture_output=True)


def settings(cwd, more="", replicator=""):
    (cwd / "ini").write_text(
        f"[ssl]\ncert_file = {cwd}/cert.pem\nkey_file = {cwd}/cert.key\n{more}"
        f"[replicator]\n{replicator}")


class Secure(Server):
    """A server with HTTPS, by cert.pem."""

    def __init__(self, cwd, *options, env=None, http="127.0.0.1:0", https="127.0.0.1:0"):
        more = ["--https", https] if https else []
        super().__init__(cwd, "--config", "ini", *more, *options, env=env, http=http)
        self.tls = self.url
        if http != "none":
            line = self.process.stdout.readline()
            contains(line, "With TLS: https://")
            self.tls = line.split(": ")[1].strip().rstrip("/")
        self.port = int(self.tls.rsplit(":", 1)[1])
        self.cwd = cwd

    def curl(self, path, *options, trusted="cert.pem"):
        return subprocess.run(
            ["curl", "-sS", "--noproxy", "*", "-m", "20", "--cacert", trusted, *options,
             self.tls + path], cwd=self.cwd, capture_output=True, text=True, timeout=30)

    def ask(self, method, path, body=None, options=()):
        """JSON of an answer over TLS."""
        data = [] if body is None else ["-H", "Content-Type: application/json",
                                        "-d", json.dumps(body)]
        result = self.curl(path, "-X", method, *data, *options)
        equal((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)


def names(connection):
    """The hosts that the certificate of an open connection is for."""
    return [value for kind, value in connection.sock.getpeercert()["subjectAltName"]
            if kind == "DNS"]


def open_tls(server, trusted):
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, timeout=20,
        context=ssl.create_default_context(cafile=server.cwd / trusted))
    connection.connect()
    return connection


def get(connection, path="/"):
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@test
def https_answers_beside_http(cwd):
    certificate(cwd, "cert")
    settings(cwd)
    with Secure(cwd) as server:
        equal(server.ask("PUT", "/db"), {"ok": True})
        equal(server.request("GET", "/_all_dbs"), (200, ["db"]))
        (cwd / "body").write_text(json.dumps({"_id": "x", "text": "y" * 200000}))
        result = server.curl("/db", "-i", "-X", "POST", "-H", "Content-Type: application/json",
                             "-d", "@body")
        contains(result.stdout, f"Location: {server.tls}/db/x")
        equal(len(server.ask("GET", "/db/x")["text"]), 200000)
        for version in "--tls-max 1.2", "--tlsv1.3":
            equal(server.ask("GET", "/db", options=version.split())["doc_count"], 1)
        log = server.read_log()
        contains(log, f"event=https address=127.0.0.1:{server.port}\n")
        contains(log, "event=certificates expires=20")
        contains(log, f"https=127.0.0.1:{server.port} ")
        assert server.curl("/", trusted="/etc/ssl/certs/ca-certificates.crt").returncode != 0
        contains(server.metrics(), 'frond_tls_handshakes_total{result="full"}')


@test
def https_is_configured_as_couchdb_is(cwd):
    certificate(cwd, "cert")
    settings(cwd, "enable = true\nport = 0\ntls_versions = ['tlsv1.2']\n")
    with Secure(cwd, https=None) as server:
        equal(server.ask("GET", "/_all_dbs"), [])
        assert server.curl("/", "--tlsv1.3").returncode != 0


@test
def session_cookie_is_for_tls_alone_if_it_came_by_tls(cwd):
    certificate(cwd, "cert")
    settings(cwd)
    with Secure(cwd, env=ADMIN) as server:
        login = ["-i", "-d", "name=root&password=secret"]
        cookie = re.search("Set-Cookie: (AuthSession=[^;]+)(.*)",
                           server.curl("/_session", *login).stdout)
        contains(cookie[2], "; Secure")
        equal(server.ask("GET", "/_session", options=["-b", cookie[1]])["userCtx"]["name"], "root")
        plain = subprocess.run(["curl", "-sS", "--noproxy", "*", *login, server.url + "/_session"],
                               capture_output=True, text=True, check=True).stdout
        contains(plain, "Set-Cookie: AuthSession=")
        assert "Secure" not in plain


@test
def without_an_administrator_only_the_loopback_is_served_by_tls_too(cwd):
    certificate(cwd, "cert")
    settings(cwd)
    with Secure(cwd) as server:
        contains(server.curl("/", "-H", "Host: evil.example.org").stdout, "forbidden")
        contains(server.curl("/", "-H", "Host: localhost:1").stdout, "Welcome")
    refused = run("serve", "--config", "ini", "--https", "0.0.0.0:0", "--http", "none", cwd=cwd)
    equal(refused.returncode, 2)
    contains(refused.stderr, "refusing to listen on 0.0.0.0 without an administrator")
    with Secure(cwd, env=ADMIN, https="0.0.0.0:0") as server:
        contains(server.read_log(), "event=https address=0.0.0.0:")


@test
def server_may_speak_nothing_but_tls(cwd):
    certificate(cwd, "cert")
    settings(cwd, replicator="verify_ssl_certificates = true\n")
    with Secure(cwd, http="none") as server:
        contains(server.url, "https://")
        hints = [server.process.stdout.readline() for _ in range(5)]
        assert all("https://" in line for line in hints if "curl" in line or "browser" in line)
        equal(server.ask("PUT", "/a"), {"ok": True})
        equal(server.ask("PUT", "/a/x", {"n": 1})["ok"], True)
        done = server.ask("POST", "/_replicate",
                          {"source": "a", "target": "b", "create_target": True})
        equal(done["ok"], True)
        equal(server.ask("GET", "/b/x")["n"], 1)
    refused = run("serve", "--http", "none", cwd=cwd)
    equal(refused.returncode, 2)
    contains(refused.stderr, "leaves nowhere to listen")


@test
def mistakes_end_the_start_before_the_store_is_made(cwd):
    certificate(cwd, "cert")
    for text, says in (("", "needs a certificate"),
                       ("cert_file = nowhere.pem\n", "nowhere.pem\": No such file"),
                       ("cert_file = cert.pem\nkey_file = cert.pem\n", "[ssl] key_file"),
                       ("cert_file = cert.pem\nkey_file = cert.key\nciphers = ROT13\n", "ROT13"),
                       ("cert_file = cert.pem\nkey_file = cert.key\ntls_versions = tlsv1\n",
                        "older ones are not spoken")):
        (cwd / "ini").write_text("[ssl]\n" + text)
        result = run("serve", "--config", "ini", "--https", "127.0.0.1:0", cwd=cwd)
        equal(result.returncode, 2)
        contains(result.stderr, says)
        assert not (cwd / "data").exists()


@test
def sighup_changes_certificates_under_open_connections(cwd):
    certificate(cwd, "cert", "old.example.org")
    settings(cwd)
    (cwd / "old.pem").write_bytes((cwd / "cert.pem").read_bytes())
    with Secure(cwd) as server:
        before = open_tls(server, "old.pem")
        equal(get(before)[0], 200)
        equal(names(before), ["old.example.org"])
        certificate(cwd, "cert", "new.example.org")
        (cwd / "new.pem").write_bytes((cwd / "cert.pem").read_bytes())
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "event=certificates_reloaded expires=20" in server.read_log())
        equal(get(before)[0], 200)
        after = open_tls(server, "new.pem")
        equal(names(after), ["new.example.org"])
        # A half-written file changes nothing, and is told.
        (cwd / "cert.pem").write_text("-----BEGIN CERTIFICATE-----\nMII")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "event=certificates_not_reloaded" in server.read_log())
        contains(server.read_log(), "cert.pem")
        again = open_tls(server, "new.pem")
        for connection in before, after, again:
            equal(get(connection)[0], 200)
            connection.close()
        equal(server.stop(), 0)


def names_at(port, trusted):
    """The hosts of the certificate that a new connection is shown."""
    context = ssl.create_default_context(cafile=trusted)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, \
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        return [value for kind, value in connection.getpeercert()["subjectAltName"]
                if kind == "DNS"]


def port_of(server, event):
    return int(re.search(rf"event={event} address=127.0.0.1:(\d+)", server.read_log())[1])


@test
def sighup_changes_the_certificates_of_all_doors_together(cwd):
    certificate(cwd, "cert", "old.example.org")
    settings(cwd)
    (cwd / "old.pem").write_bytes((cwd / "cert.pem").read_bytes())
    with Secure(cwd, "--rediss", "127.0.0.1:0", "--mongos", "127.0.0.1:0") as server:
        ports = [port_of(server, event) for event in ("https", "rediss", "mongos")]
        for port in ports:
            equal(names_at(port, cwd / "old.pem"), ["old.example.org"])
        certificate(cwd, "cert", "new.example.org")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "event=certificates_reloaded expires=20" in server.read_log())
        for port in ports:
            equal(names_at(port, cwd / "cert.pem"), ["new.example.org"])
        equal(server.stop(), 0)


@test
def sighup_renews_where_only_another_door_speaks_tls(cwd):
    for number, option in enumerate(("--rediss", "--mongos")):
        path = cwd / str(number)
        path.mkdir()
        certificate(path, "cert", "old.example.org")
        settings(path)
        with Server(path, "--config", "ini", option, "127.0.0.1:0") as server:
            port = port_of(server, option.strip("-"))
            equal(names_at(port, path / "cert.pem"), ["old.example.org"])
            certificate(path, "cert", "new.example.org")
            server.process.send_signal(signal.SIGHUP)
            until(lambda: "event=certificates_reloaded" in server.read_log())
            equal(names_at(port, path / "cert.pem"), ["new.example.org"])
            equal(server.stop(), 0)


@test
def sighup_stops_a_server_without_certificates_in_order(cwd):
    # The tests may run where SIGHUP is ignored, as below nohup, and a server would leave it so.
    heeded = lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with Server(cwd, before=heeded) as server:
        equal(server.request("PUT", "/db")[0], 201)
        equal(server.stop(signal.SIGHUP), 0)
        contains(server.read_log(), "event=stop ")


@test
def end_of_certificates_is_told_by_log_and_metric(cwd):
    certificate(cwd, "cert", days=90)
    certificate(cwd, "other", "other.example.org", days=20)
    (cwd / "both.pem").write_text((cwd / "other.pem").read_text() + (cwd / "other.key").read_text())
    settings(cwd, f"sni_cert_files = {cwd}/both.pem\n")
    now = time.time()
    with Secure(cwd) as server:
        # The first one of all that expires is what an operator has to know of.
        days = (server.metrics()[EXPIRY] - now) / 86400
        assert 19 < days < 21, days
        assert "certificate_expires_soon" not in server.read_log()
        certificate(cwd, "cert", days=3)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "event=certificate_expires_soon" in server.read_log())
        assert re.search(r"expires_soon \S+ days=[23] ", server.read_log())
        days = (server.metrics()[EXPIRY] - now) / 86400
        assert 2 < days < 4, days
    with Server(cwd, "--store", "embedded:plain") as server:
        assert EXPIRY not in server.metrics()


@test
def clients_show_certificates_where_settings_ask_for_them(cwd):
    certificate(cwd, "cert")
    certificate(cwd, "client", "anna")
    certificate(cwd, "stranger", "eve")
    settings(cwd, f"verify_ssl_certificates = true\nfail_if_no_peer_cert = true\n"
                  f"cacert_file = {cwd}/client.pem\n")
    with Secure(cwd) as server:
        def shown(name):
            return server.curl("/", "--cert", f"{name}.pem", "--key", f"{name}.key")
        contains(shown("client").stdout, "Welcome")
        assert shown("stranger").returncode != 0
        assert server.curl("/").returncode != 0
        contains(server.read_log(), "event=tls_handshake_failed")


@test
def plain_http_at_the_port_of_tls_is_told_so(cwd):
    certificate(cwd, "cert")
    settings(cwd)
    with Secure(cwd) as server:
        result = subprocess.run(
            ["curl", "-sS", "-i", "--noproxy", "*", server.tls.replace("https", "http")],
            capture_output=True, text=True, timeout=20, check=True)
        contains(result.stdout, "400 Bad Request")
        contains(result.stdout, "https://")


@test
def replications_come_and_go_by_tls(cwd):
    certificate(cwd, "cert")
    settings(cwd, replicator=f"verify_ssl_certificates = true\n"
                             f"ssl_trusted_certificates_file = {cwd}/cert.pem\n")
    other = cwd / "other"
    other.mkdir()
    certificate(other, "cert")
    settings(other, replicator="verify_ssl_certificates = true\n")
    with Secure(cwd) as one, Secure(other) as two:
        equal(one.request("PUT", "/db")[0], 201)
        docs = {"docs": [{"_id": str(i), "text": "z" * 5000} for i in range(300)]}
        equal(one.request("POST", "/db/_bulk_docs", docs)[0], 201)
        # The first trusts its own certificate, so it may replicate from itself by TLS.
        job = {"source": one.tls + "/db", "target": one.tls + "/copy", "create_target": True}
        equal(one.request("POST", "/_replicate", job)[1]["ok"], True)
        equal(one.request("GET", "/copy")[1]["doc_count"], 300)
        # The second does not: it gets nothing.
        job = {"source": one.tls + "/db", "target": "db", "create_target": True}
        status, refused = two.request("POST", "/_replicate", job)
        assert status >= 400, refused
        contains(json.dumps(refused).lower(), "certificate")


@test
def commands_reach_a_server_by_tls(cwd):
    certificate(cwd, "cert")
    settings(cwd)
    with Secure(cwd) as server:
        equal(server.ask("PUT", "/db"), {"ok": True})
        trusted = {"SSL_CERT_FILE": str(cwd / "cert.pem")}
        ok("load", "--to", server.tls, "db", cwd=cwd, stdin='{"_id":"x","n":1}\n', env=trusted)
        dumped = ok("dump", "--from", server.tls, "db", cwd=cwd, env=trusted).stdout
        equal(json.loads(dumped)["n"], 1)
        contains(run("dump", "--from", server.tls, "db", cwd=cwd).stderr.lower(), "certificate")


main()
