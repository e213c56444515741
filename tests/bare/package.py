"""Installs a package in an empty Debian whose first process is systemd, and does with its service what operators
do: see that it is closed, use every door, restart, upgrade, remove, purge."""

import base64
import contextlib
import json
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests" / "cli"))
import cql_wire
import mongo
import resp
import readme

WAIT_SECONDS = 120  # only ends what hangs
DOORS = {"http": 5984, "redis": 6379, "mongo": 27017, "cql": 9042, "rows": 9342}
STORE = "/var/lib/frond/store"
EXPOSURE_MOST = 2.0  # of systemd-analyze's 10; what it cannot know of is the machine code of the workers

# Calls of the system that are not on the unit's list end the process here, so that none is overlooked. And it is
# started more often than systemd lets a service be by itself.
STRICT = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nSystemCallErrorNumber=kill\n"
DOORS_OPEN = "".join(f"[{door}]\nenable = true\n" for door in DOORS if door != "http")


class Failed(Exception):
    """What is not as it has to be."""


def check(found, wanted):
    if found != wanted:
        raise Failed(f"found {found!r}, wanted {wanted!r}")


def earlier(deb, directory):
    """The same package under a version below every other one."""
    tree = directory / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"^Version: .*", "Version: 0~before", control.read_text(), flags=re.M))
    made = directory / "before.deb"
    # Packing it well would take longer than all else that is done with it.
    subprocess.run(["dpkg-deb", "-b", "-Zgzip", "-z1", "--root-owner-group", tree, made], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.rmtree(tree)
    return made


class Service:
    """The service in the machine, as its operator and its clients see it. The network is the host's."""

    def __init__(self, bare):
        self.bare = bare

    def runs(self, *command, check=True, input="", strip=True):
        done = self.bare.root_runs("env", "DEBIAN_FRONTEND=noninteractive", *command, check=False, input=input)
        if check and done.returncode:
            raise Failed(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
                         f"{self.journal()}")
        return done.stdout.strip() if strip else done.stdout

    def journal(self):
        return self.bare.root_runs("journalctl", "-u", "frond", "-n", "30", "--no-pager", check=False).stdout

    def put(self, deb):
        """Copies a package into the machine; returns what apt calls it."""
        name = f"frond_{pathlib.Path(deb).name}"
        self.bare.root_runs("tee", f"/root/{name}", input=pathlib.Path(deb).read_bytes(), text=False)
        return f"/root/{name}"

    def apt(self, *command):
        return self.runs("apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0", *command)

    def write(self, path, text):
        self.runs("mkdir", "-p", str(pathlib.PurePath(path).parent))
        self.runs("tee", path, input=text)

    def show(self, name):
        return self.runs("systemctl", "show", "frond", "-P", name)

    def pid(self):
        return int(self.show("MainPID"))

    def password(self):
        return re.fullmatch(r'FROND_ADMIN="admin:(.*)"', self.runs("cat", "/etc/frond/admin.env"))[1]

    def ask(self, method, path, body=None, password=None, kind="application/json"):
        """Status and JSON, as the administrator unless `password` is empty."""
        password = self.password() if password is None else password
        headers = {"Content-Type": kind}
        if password:
            headers["Authorization"] = "Basic " + base64.b64encode(f"admin:{password}".encode()).decode()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(f"http://127.0.0.1:{DOORS['http']}{path}", data, headers, method=method)
        try:
            with opener.open(request, timeout=WAIT_SECONDS) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def as_its_user(self, *command):
        return self.runs("runuser", "-u", "frond", "--", *command)

    def owner(self, path):
        return self.runs("stat", "-c", "%a %U:%G", path)


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


# ---- What is looked at, in this order ----

def ports_are_free(service):
    taken = [port for port in DOORS.values() if listens(port)]
    if taken:
        raise Failed(f"a server of this host has the port {taken[0]}")


def it_installs_and_serves(service, before):
    service.apt("update")
    service.apt("install", service.put(before))
    check(service.runs("systemctl", "is-active", "frond"), "active")
    check(service.runs("systemctl", "is-enabled", "frond"), "enabled")
    check(service.owner(f"/proc/{service.pid()}/task").split()[1], "frond:frond")
    check(service.owner("/etc/frond/admin.env"), "600 root:root")
    check(service.owner("/etc/frond/frond.ini"), "640 root:frond")
    check(service.owner("/var/lib/frond"), "700 frond:frond")
    check(service.ask("GET", "/_up", password="")[0], 200)


def nobody_is_let_in_without_the_password(service):
    check(service.ask("GET", "/_all_dbs", password="")[0], 401)
    check(service.ask("PUT", "/nobody", password="")[0], 401)
    check(service.ask("PUT", "/notes", password="wrong")[0], 401)
    check(service.ask("PUT", "/notes")[0], 201)


def settings_of_the_package_are_the_defaults(service):
    said = service.runs("frond", "config", "--check", "/etc/frond/frond.ini")
    text = service.runs("cat", "/etc/frond/frond.ini")
    service.write("/tmp/all.ini", re.sub(r"^;(\w+ = )", r"\1", text, flags=re.M))
    if "embedded:/var/lib/frond/store" not in said:
        raise Failed(said)
    for section, name, value in every_setting(text):
        if name not in ("backup_dir", "cert_file", "key_file", "anna", "cache_bytes", "store"):
            known = service.runs("frond", "config", "--list")
            part = known[known.index(f"[{section}]"):]
            check(re.search(rf"^;{name} = (.*)$", part, re.M)[1], value)


def every_setting(text):
    section = None
    for line in text.splitlines():
        if line.startswith("["):
            section = line[1:-1]
        found = re.match(r";(\w+) = (.*)", line)
        if found:
            yield section, found[1], found[2]


def every_program_is_there(service):
    """With the libraries that they want, and those that a build goes without where a library is missing, too."""
    for name in ("bin/frond", "libexec/frond-js", "libexec/frond-import"):
        check([line for line in service.runs("ldd", f"/usr/{name}").splitlines() if "not found" in line], [])


def manuals_and_completions_are_there(service):
    for name in ("frond", "frond-serve", "frond-user"):
        service.runs("test", "-s", f"/usr/share/man/man1/{name}.1.gz")
    service.runs("test", "-s", "/usr/share/zsh/vendor-completions/_frond")
    service.runs("bash", "-n", "/usr/share/bash-completion/completions/frond")


def the_unit_is_closed(service):
    said = service.runs("systemd-analyze", "security", "--no-pager", "frond.service", check=False)
    exposure = float(re.search(r"Overall exposure level.*?: ([\d.]+)", said)[1])
    if exposure > EXPOSURE_MOST:
        raise Failed(said)
    units = [f"/lib/systemd/system/frond.{kind}" for kind in ("service", "socket")]
    verified = service.bare.root_runs("systemd-analyze", "verify", *units, check=False)
    # Nobody has installed man.
    check([line for line in verified.stderr.splitlines() if "Command 'man " not in line], [])
    return f"exposure {exposure} of 10"


def open_every_door(service):
    """With calls of the system that are not listed ending the process."""
    service.write("/etc/systemd/system/frond.service.d/strict.conf", STRICT)
    service.runs("sh", "-c", f"printf '%s' '{DOORS_OPEN}' >>/etc/frond/frond.ini")
    service.runs("systemctl", "daemon-reload")
    service.runs("systemctl", "restart", "frond")
    check(service.runs("systemctl", "is-active", "frond"), "active")


def every_door_works_under_its_restrictions(service):
    open_every_door(service)
    before = service.pid()
    views = {"views": {"n": {"map": "function (doc) { emit(doc.n, fib(doc.n)); function fib(n) "
                                    "{ return n < 2 ? n : fib(n - 1) + fib(n - 2); } }", "reduce": "_sum"}},
             "validate_doc_update": "function (doc) { if (doc.bad) throw {forbidden: 'bad'}; }"}
    check(service.ask("PUT", "/notes/_design/d", views)[0], 201)
    for n in range(25):
        check(service.ask("PUT", f"/notes/{n}", {"n": n, "text": "x" * 100})[0], 201)
    check(service.ask("PUT", "/notes/bad", {"bad": True})[0], 403)
    # Recursive enough that the engine compiles it to machine code.
    check(service.ask("GET", "/notes/_design/d/_view/n")[1]["rows"][0]["value"], sum(map(fibonacci, range(25))))
    check(service.ask("POST", "/notes/_index", {"index": {"fields": ["n"]}})[0], 200)
    check(len(service.ask("POST", "/notes/_find", {"selector": {"n": {"$lt": 5}}})[1]["docs"]), 5)
    rev = service.ask("GET", "/notes/3")[1]["_rev"]
    check(service.ask("PUT", f"/notes/3/file?rev={rev}", b"a" * 300000, kind="text/plain")[0], 201)
    check(service.ask("POST", "/_replicate", {"source": "notes", "target": "copy", "create_target": True})[0], 200)
    check(service.ask("POST", "/_frond/compact", {})[0], 200)
    service.as_its_user("frond", "verify", "--store", f"embedded:{STORE}", "--quiet")
    speak_redis(service)
    speak_mongo(service)
    speak_cql(service)
    speak_rows()
    check(service.pid(), before)
    if "SYS" in service.journal():
        raise Failed(service.journal())


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def speak_redis(service):
    with resp.Client(DOORS["redis"]) as client:
        check(client("AUTH", "admin", service.password()), "OK")
        check(client("SET", "k", "v"), "OK")
        check(client("EVAL", "return redis.call('GET', KEYS[1])", 1, "k"), b"v")


def speak_mongo(service):
    with mongo.Client(DOORS["mongo"]) as client:
        client.login("admin", service.password())
        check(client({"insert": "c", "documents": [{"_id": i, "n": i} for i in range(9)]}, "shop")["n"], 9)
        found = client({"find": "c", "filter": {"$where": "this.n > 5"}}, "shop")
        check(len(found["cursor"]["firstBatch"]), 3)


def speak_cql(service):
    with cql_wire.Connection(DOORS["cql"]) as client:
        client.start()
        check(client.login("admin", service.password()), cql_wire.AUTH_SUCCESS)
        client.query("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.query("CREATE TABLE shop.books (id int PRIMARY KEY, title text)")
        client.query("CREATE INDEX ON shop.books (title)")
        client.query("INSERT INTO shop.books (id, title) VALUES (1, 'one')")
        check(client.query("SELECT title FROM shop.books WHERE title = 'one'"), [{"title": b"one"}])


def speak_rows():
    """What begins a connection: the answer says that logging in is next."""
    with socket.create_connection(("127.0.0.1", DOORS["rows"]), WAIT_SECONDS) as s:
        s.sendall(struct.pack(">IBBHIHH", 8, 1, 0, 7, 0x46524f57, 0, 1))
        head = s.recv(8, socket.MSG_WAITALL)
        check(struct.unpack(">BBH", head[4:]), (128, 0, 7))
        body = s.recv(struct.unpack(">I", head[:4])[0], socket.MSG_WAITALL)
        check(struct.unpack(">H", body[:2])[0], 1)


class Callers:
    """Clients that connect and ask all the time; nobody refuses them."""

    def __enter__(self):
        self.refused, self.answered, self.over = [], 0, threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(4)]
        for thread in self.threads:
            thread.start()
        return self

    def run(self):
        while not self.over.is_set():
            try:
                with socket.create_connection(("127.0.0.1", DOORS["http"]), WAIT_SECONDS) as s:
                    with contextlib.suppress(ConnectionResetError):
                        s.sendall(b"GET /_up HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        self.answered += s.recv(12) == b"HTTP/1.1 200"
            except OSError as why:
                self.refused.append(str(why))
                return

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def check(self):
        check(self.refused, [])
        if self.answered < 10:
            raise Failed(f"only {self.answered} were answered")


def no_client_is_refused_by_a_restart(service):
    before = service.pid()
    with Callers() as callers:
        service.runs("systemctl", "restart", "frond")
        service.runs("systemctl", "reload", "frond")
        time.sleep(0.5)
    callers.check()
    if service.pid() == before:
        raise Failed("it was not restarted")
    check(service.ask("GET", "/notes/7")[1]["n"], 7)


def its_socket_starts_it(service):
    service.runs("systemctl", "stop", "frond")
    check(listens(DOORS["http"]), False)
    service.runs("systemctl", "start", "frond.socket")
    check(service.runs("systemctl", "is-active", "frond", check=False), "inactive")
    check(service.ask("GET", "/notes/7")[1]["n"], 7)
    check(service.runs("systemctl", "is-active", "frond"), "active")
    service.runs("systemctl", "stop", "frond.socket", "frond")
    service.runs("systemctl", "start", "frond")


def every_kept_store_is_served(service):
    """Those of tests/stores: opened by the service, read, written, verified."""
    archives = sorted((TOP / "tests" / "stores").glob("*.tar.xz"))
    service.runs("systemctl", "stop", "frond")
    service.runs("mv", STORE, "/var/lib/frond/own")
    for archive in archives:
        with tarfile.open(archive) as tar:
            tar.extractall(service.bare.root / "var/lib/frond/old", filter="tar")
        service.runs("mv", "/var/lib/frond/old/store", STORE)
        service.runs("chown", "-R", "frond:frond", STORE)
        service.runs("systemctl", "start", "frond")
        count = service.ask("GET", "/packed")[1]["doc_count"]
        check(service.ask("PUT", "/packed/since", {"n": 1})[0], 201)
        check(service.ask("GET", "/packed")[1]["doc_count"], count + 1)
        service.runs("systemctl", "stop", "frond")
        service.as_its_user("frond", "verify", "--store", f"embedded:{STORE}", "--quiet")
        service.runs("rm", "-r", STORE, "/var/lib/frond/old")
    service.runs("mv", "/var/lib/frond/own", STORE)
    service.runs("systemctl", "start", "frond")
    return f"{len(archives)} stores"


def an_upgrade_restarts_it_and_keeps_what_is_the_operators(service, deb):
    before, password = service.pid(), service.password()
    with Callers() as callers:
        service.apt("install", service.put(deb))
    callers.check()
    if service.pid() == before:
        raise Failed("it was not restarted")
    version = subprocess.run(["dpkg-deb", "-f", deb, "Version"], capture_output=True, text=True, check=True).stdout
    check(service.runs("dpkg-query", "-W", "-f", "${Version}", "frond"), version.strip())
    if DOORS_OPEN not in service.runs("cat", "/etc/frond/frond.ini") + "\n":
        raise Failed("the file of settings is another one")
    check(service.owner("/etc/frond/frond.ini"), "640 root:frond")
    check(service.password(), password)
    check(service.ask("GET", "/notes/7")[1]["n"], 7)
    speak_redis(service)


def a_removal_keeps_the_data(service, deb):
    service.apt("remove", "frond")
    check(listens(DOORS["http"]), False)
    for path in ("/etc/frond/frond.ini", "/etc/frond/admin.env", STORE):
        service.runs("test", "-e", path)
    service.runs("test", "!", "-e", "/usr/bin/frond")
    service.apt("install", service.put(deb))
    check(service.ask("GET", "/notes/7")[1]["n"], 7)


def a_purge_leaves_nothing(service):
    service.runs("rm", "-r", "/etc/systemd/system/frond.service.d")
    service.apt("purge", "frond")
    check(service.runs("sh", "-c", "ls -d /etc/frond /var/lib/frond /usr/share/doc/frond 2>/dev/null; true"), "")
    check(service.runs("sh", "-c", "find /etc /usr /var/lib/systemd -name '*frond*'"), "")
    if "frond" not in service.runs("getent", "passwd", "frond"):
        raise Failed("the user is gone, and another one may get its number")
    check(service.runs("systemctl", "--failed", "--no-legend"), "")


def a_given_password_is_the_administrators(service, deb):
    given = "it's \"a\" $word\\ of `mine`"
    service.runs("debconf-set-selections", input=f"frond frond/admin-password password {given}\n"
                                                 "frond frond/purge-data boolean false\n")
    service.apt("install", service.put(deb))
    check(service.ask("GET", "/_all_dbs", password=given)[0], 200)
    check(service.runs("sh", "-c", "grep -cF '$word' /var/cache/debconf/passwords.dat || true"), "0")
    service.apt("purge", "frond")
    service.runs("test", "-d", STORE)


def the_first_week_is_as_its_page_says(service, deb):
    """Each line of docs/guides/OPERATOR.md as root, and what it prints."""
    began = time.monotonic()
    service.runs("sh", "-c", "rm -rf /root/frond_*.deb /var/lib/frond /etc/frond")
    service.runs("mkdir", "-p", "/root/week")
    service.runs("mv", service.put(deb), "/root/week/")
    lines = 0
    for block in readme.blocks((TOP / "docs" / "guides" / "OPERATOR.md").read_text()):
        said = ""
        for line in block.lines:
            shell = f"cd /root/week; [ ! -f /etc/frond/admin.env ] || . /etc/frond/admin.env; {line}"
            printed = service.runs("bash", "-c", shell, strip=False).rstrip("\n")
            said += f"{printed}\n" if printed and not line.startswith("apt-get ") else ""
            lines += 1
        differs = block.printed and readme.difference(block.printed, said)
        if differs:
            raise Failed("\n".join(differs) + service.journal())
    check(service.runs("systemctl", "--failed", "--no-legend"), "")
    return f"{lines} lines in {(time.monotonic() - began) / 60:.1f} minutes"


def containerfile():
    """What packaging/Containerfile says behind its last FROM: (instruction, the rest of its line)."""
    text = (TOP / "packaging" / "Containerfile").read_text().replace("\\\n", "")
    return re.findall(r"^([A-Z]+) +(.*)$", text[text.rindex("\nFROM ") + 1:], re.M)


def in_exec_form(said, instruction):
    return next(json.loads(rest) for name, rest in said if name == instruction)


def an_image_serves_with_a_root_that_is_read_only(service, deb):
    """What the Containerfile does to its second Debian is done to this one; systemd stands in for who runs images."""
    service.apt("purge", "frond")
    service.runs("sh", "-c", "rm -rf /var/lib/frond /etc/frond")
    said = containerfile()
    place = {}
    for instruction, rest in said:
        if instruction == "COPY":
            # The package, whose making the first stage is: README's line, which has been typed before.
            check(rest, "--from=build /src/build/frond_*.deb /tmp/")
            service.runs("mv", service.put(deb), "/tmp/")
        elif instruction == "RUN":
            service.runs("sh", "-c", rest)
        else:
            place[instruction] = rest
    check(place["VOLUME"], place["WORKDIR"])
    # The package has started its service, which an image has nobody to do.
    service.runs("systemctl", "disable", "--now", "frond.service", "frond.socket", "frond-standby.service")
    service.runs("sh", "-c", f"rm -rf {place['VOLUME']}/*")
    check(service.owner(place["VOLUME"]), f"700 {place['USER']}:{place['USER']}")
    restrictions = {"User": place["USER"], "WorkingDirectory": place["WORKDIR"], "ProtectSystem": "strict",
                    "ReadWritePaths": place["VOLUME"], "PrivateTmp": "yes", "KillSignal": place["STOPSIGNAL"]}
    service.runs("systemd-run", "--unit=image", *(f"--property={name}={value}" for name, value in restrictions.items()),
                 "--setenv=FROND_ADMIN=admin:a-long-password", *in_exec_form(said, "ENTRYPOINT"),
                 *in_exec_form(said, "CMD"))
    deadline = time.monotonic() + WAIT_SECONDS
    while not listens(int(place["EXPOSE"])):
        if time.monotonic() > deadline:
            raise Failed(service.runs("journalctl", "-u", "image", "--no-pager"))
        time.sleep(0.1)
    views = {"views": {"n": {"map": "function (doc) { emit(doc.n, 1); }"}}}
    for path, body in (("", None), ("/_design/d", views), ("/a", {"n": 7})):
        check(service.ask("PUT", f"/notes{path}", body, "a-long-password")[0], 201)
    rows = service.ask("GET", "/notes/_design/d/_view/n", password="a-long-password")[1]["rows"]
    check(rows, [{"id": "a", "key": 7, "value": 1}])
    service.runs("test", "-d", f"{place['VOLUME']}/store")
    service.runs("systemctl", "stop", "image")
    check(service.runs("systemctl", "--failed", "--no-legend"), "")


def follow(tap, bare, deb, before):
    """All of that. `before` is a package of a lower version."""
    service = Service(bare)
    for proof, *more in (
            (ports_are_free,), (it_installs_and_serves, before), (nobody_is_let_in_without_the_password,),
            (settings_of_the_package_are_the_defaults,), (every_program_is_there,), (manuals_and_completions_are_there,),
            (the_unit_is_closed,),
            (every_door_works_under_its_restrictions,), (no_client_is_refused_by_a_restart,),
            (its_socket_starts_it,), (every_kept_store_is_served,),
            (an_upgrade_restarts_it_and_keeps_what_is_the_operators, deb), (a_removal_keeps_the_data, deb),
            (a_purge_leaves_nothing,), (a_given_password_is_the_administrators, deb),
            (the_first_week_is_as_its_page_says, deb), (an_image_serves_with_a_root_that_is_read_only, deb)):
        noted = tap.test(f"package: {proof.__name__.replace('_', ' ')}", proof, service, *more)
        if noted:
            tap.say(noted)
