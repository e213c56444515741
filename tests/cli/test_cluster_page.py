"""docs/CLUSTER.md: its lines are run as they are printed, but for ports, on clusters of their own. Needs
FoundationDB's server; FROND_TEST_FDBSERVER names its program, and the others lie beside it or in the
folder bin beside its folder."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import time

from harness import ENV, FROND, Server, Skip, contains, equal, foundationdb, main, test, until

FDBSERVER = os.environ.get("FROND_TEST_FDBSERVER")
PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "CLUSTER.md"
PORTS = ("4689", "4690", "5984", "5985")  # of the page: each test has others
COMMAND_SECONDS = 300  # of one command, however busy the machine is


def lines_of(section):
    """The commands of a section of the page."""
    text = PAGE.read_text().split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]


class Shell:
    """`with Shell(cwd) as shell`: a directory in which lines of the page are run. Programs that a line
    puts into the background, and servers, end with the block."""

    def __init__(self, cwd):
        self.cwd = cwd
        self.servers, self.stack = {}, contextlib.ExitStack()
        self.ports = {port: str(foundationdb.free_port()) for port in PORTS}
        programs = foundationdb.with_server(FDBSERVER)
        folders = [programs.server.parent, programs.cli.parent]
        (cwd / "bin").mkdir()
        (cwd / "bin" / "frond").symlink_to(FROND)
        for name in ("fdbserver", "fdbcli", "fdbbackup"):
            found = [folder / name for folder in folders if (folder / name).is_file()]
            if found:
                (cwd / "bin" / name).symlink_to(found[0])
        options = foundationdb.options_in(cwd)
        if options:
            (cwd / "bin" / "fdbserver").unlink()
            (cwd / "bin" / "fdbserver").write_text(
                f'#!/bin/sh\nexec {programs.server} {" ".join(options)} "$@"\n')
            (cwd / "bin" / "fdbserver").chmod(0o755)
        if (cwd / "bin" / "fdbbackup").exists():  # one program, which looks at what it is called
            for name in ("fdbrestore", "backup_agent"):
                (cwd / "bin" / name).symlink_to(cwd / "bin" / "fdbbackup")
        self.env = {**ENV, "PATH": f"{cwd / 'bin'}:{os.environ['PATH']}"}

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return self.stack.__exit__(*args)

    def background(self, line):
        with open(self.cwd / "background.log", "a") as log:
            process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=self.cwd, env=self.env,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       preexec_fn=foundationdb.die_with_parent)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)

    def serve(self, words):
        """A frond, as the words say; the one before it at its address has been stopped."""
        http = f"127.0.0.1:{self.ports['5984']}"
        if "--http" in words:
            at = words.index("--http")
            http = words[at + 1]
            words = words[:at] + words[at + 2:]
        env = {name: value for name, value in self.env.items() if name.startswith("FDB_TLS_")}
        server = Server(self.cwd, *words, http=http, env=env, settings=False)
        self.stack.enter_context(server)
        self.servers[http.rsplit(":")[1]] = server
        return server

    def run(self, line):
        """What a line prints; of a server the server."""
        for port, own in self.ports.items():
            line = line.replace(f":{port}", f":{own}")
        if line.startswith("export "):
            said = subprocess.run(["bash", "-c", f"{line}; env -0"], cwd=self.cwd, env=self.env,
                                  capture_output=True, text=True)
            self.env = dict(pair.split("=", 1) for pair in said.stdout.split("\0") if pair)
            return None
        if line.startswith("frond serve "):
            return self.serve(shlex.split(line)[2:])
        if line.endswith(" &"):
            return self.background(line[:-2])
        said = subprocess.run(["bash", "-c", line], cwd=self.cwd, env=self.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS)
        equal((line, said.returncode, said.stderr if said.returncode else ""), (line, 0, ""))
        return said.stdout

    def run_all(self, lines):
        return [self.run(line) for line in lines]


def names(server):
    return [row["id"] for row in server.request("GET", "/db/_all_docs")[1]["rows"]]


def is_whole(cluster):
    """What the ratekeeper or a process has not been asked in time is left out of a status."""
    return "qos" in cluster and all("disk" in one for one in cluster["processes"].values())


@test
def a_cluster_is_begun_backed_up_and_restored_as_the_page_says(cwd):
    begin, several = lines_of("Beginning"), lines_of("Several stores")
    backup = lines_of("Backup and restore")
    at = next(n for n, line in enumerate(backup) if "clearrange" in line)
    with Shell(cwd) as shell:
        server = shell.run_all(begin[:4])[-1]
        said = shell.run_all(begin[4:])
        contains(said[0], "Replication health")
        up = json.loads(said[1])
        equal((up["status"], list(up["cluster"])), ("ok", ["answer_ms"]))
        test_store = shell.run_all(several)[-1]
        equal(server.request("PUT", "/db")[0], 201)
        equal(test_store.request("GET", "/db")[0], 404)
        equal(test_store.request("PUT", "/db")[0], 201)
        for n in range(5):
            equal(server.request("PUT", f"/db/kept{n}", {"n": n})[0], 201)
        contains(shell.run(lines_of("What operations cost")[0]), "frond_cluster_round_trips_total ")
        watch, status = lines_of("What to watch")
        contains(shell.run(watch), "Replication health")
        cluster = until(lambda: is_whole(got := json.loads(shell.run(status))["cluster"]) and got)
        equal(cluster["database_lock_state"]["locked"], False)
        assert cluster["data"]["state"]["name"], cluster["data"]
        assert "max_zone_failures_without_losing_data" in cluster["fault_tolerance"]
        contains(cluster["qos"], "performance_limited_by")
        assert all("free_bytes" in one["disk"] for one in cluster["processes"].values())

        if not (cwd / "bin" / "fdbbackup").exists():
            raise Skip("fdbbackup, beside fdbserver or fdbcli")
        contains(shell.run_all(backup[:at])[-1], "Restorable: true")
        for n in range(5):
            equal(server.request("PUT", f"/db/lost{n}", {})[0], 201)
        equal(test_store.request("PUT", "/db/other", {})[0], 201)
        since = server.request("GET", "/db/_changes")[1]["last_seq"]
        server.stop()
        said = shell.run_all(backup[at:])
        equal(said[2], "incarnation 1\n")
        contains(said[3], " 0 findings")
        server = said[4]
        equal(names(server), [f"kept{n}" for n in range(5)])
        equal(server.request("GET", f"/db/_changes?since={since}")[1]["results"], [])
        equal(server.request("PUT", "/db/new", {})[0], 201)
        answer = server.request("GET", f"/db/_changes?since={since}")[1]
        equal([row["id"] for row in answer["results"]], ["new"])
        assert answer["last_seq"] > since and answer["last_seq"][:2] == "01"
        until(lambda: test_store.request("GET", "/db/other")[0] == 200)  # nothing has touched it


@test
def a_cluster_is_spoken_to_by_tls_as_the_page_says(cwd):
    if not shutil.which("openssl"):
        raise Skip("openssl")
    with Shell(cwd) as shell:
        without = dict(shell.env)
        server = shell.run_all(lines_of("TLS"))[-1]
        equal(server.request("PUT", "/db")[0], 201)
        equal(server.request("PUT", "/db/doc", {"n": 1})[0], 201)
        url = "fdb:tls.cluster?prefix=shop"
        said = subprocess.run([FROND, "dump", "db", "--quiet", "--store", url], cwd=cwd,
                              env=shell.env, capture_output=True, text=True)
        contains(said.stdout, '"doc"')
        # Without a certificate, and with one of another authority, nothing is answered.
        other = cwd / "other"
        other.mkdir()
        strange = Shell(other)
        strange.run_all(line for line in lines_of("TLS") if line.startswith(("openssl", "export")))
        for env in (without, strange.env):
            begun = time.monotonic()
            said = subprocess.run([FROND, "dump", "db", "--quiet", "--store", url], cwd=cwd, env=env,
                                  capture_output=True, text=True, timeout=COMMAND_SECONDS)
            equal((said.returncode, said.stdout), (1, ""))
            contains(said.stderr, "no FoundationDB cluster answers within 5000 ms")
            assert time.monotonic() - begun >= 4
        equal(server.request("GET", "/db/doc")[0], 200)


@test
def every_line_of_the_page_is_run(cwd):
    """A section with new lines needs them in a test."""
    text = PAGE.read_text()
    run = sum(len(lines_of(name)) for name in (
        "Beginning", "Several stores", "What operations cost", "What to watch",
        "Backup and restore", "TLS"))
    equal(len(re.findall(r"^    \S", text, flags=re.M)), run)
    equal(len(lines_of("What operations cost")), 1)


main(needs=None if FDBSERVER else "FROND_TEST_FDBSERVER names no server")
