#!/usr/bin/env python3
"""Runs test suites that others wrote for CouchDB against frond, and tells how many tests pass.

    tests/clients/others.py [SUITE...] [--frond build/frond] [--sources DIR] [--write]

Without a SUITE all of them run. Each is of one version, which git fetches into DIR, by default
~/.cache/frond/others, unless it lies there already: DIR/couchdb, DIR/pouchdb. --write puts the figures into the
table of docs/COUCHDB.md. What stands there of the reasons is written by hand: the command says if they explain
another number of failures than there are.

  mango                needs nose2, requests and hypothesis (Debian: python3-nose2 python3-requests
                       python3-hypothesis). Tests of text indexes do not count: there are none here.
  pouchdb-integration  needs Node.js; npm fetches what PouchDB needs, beside its sources. Each file of tests of
  pouchdb-mapreduce    the first runs in a process of its own, since a test that fails there may end the
  pouchdb-find         others of its process, and takes port 3010.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = TOP / "docs" / "COUCHDB.md"
CACHE = pathlib.Path("~/.cache/frond/others").expanduser()
NAME, PASSWORD = "adm", "pass"
RESULT = re.compile(r"^(test_\w+) \((\S+?)\)(?: \(.*\))? \.\.\. (ok|FAIL|ERROR|skipped|expected failure)", re.M)
FAILED = re.compile(r"^(?:FAIL|ERROR): (test_\w+) \((\S+?)\)", re.M)
TEST_MS = 60000  # of one test of PouchDB's, also on a busy machine
FILE_SECONDS = 1200


class Source:
    """Sources of one version, by the name of their folder."""

    def __init__(self, folder, url, commit, version):
        self.folder, self.url, self.commit, self.version = folder, url, commit, version

    def fetch(self, sources):
        place = sources / self.folder
        if not place.exists():
            place.mkdir(parents=True)
            for words in (["init", "-q"], ["fetch", "-q", "--depth", "1", self.url, self.commit],
                          ["checkout", "-q", "FETCH_HEAD"]):
                subprocess.run(["git", "-C", place, *words], check=True)
        return place


COUCHDB = Source("couchdb", "https://github.com/apache/couchdb", "3.5.2", "3.5.2")
POUCHDB = Source("pouchdb", "https://github.com/pouchdb/pouchdb",
                 "c135c4ce4c6c914f3124d8dd999edd0241f1c38a", "c135c4ce")


class Frond:
    """A server on a store of its own; `admin`: with an administrator, else everybody may do all."""

    def __init__(self, frond, cwd, admin):
        who = ["--admin", f"{NAME}:{PASSWORD}"] if admin else []
        self.process = subprocess.Popen(
            [frond, "serve", "--http", "127.0.0.1:0", *who], cwd=cwd, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split(" at ")[1].strip().rstrip("/")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def make_users(url):
    request = urllib.request.Request(f"{url}/_users", method="PUT")
    token = base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
    request.add_header("Authorization", f"Basic {token}")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()


class Mango:
    """CouchDB's tests of Mango, in Python."""

    source = COUCHDB
    row = "CouchDB's Mango tests"
    admin = True

    def run(self, url, sources, _directory):
        make_users(url)
        env = {**os.environ, "COUCH_HOST": url, "COUCH_USER": NAME, "COUCH_PASS": PASSWORD}
        done = subprocess.run([sys.executable, "-m", "nose2", "-v", "-c", "unittest.cfg"],
                              cwd=sources / "src" / "mango", env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        ran = {match[1] for match in RESULT.findall(done.stdout) if match[2] != "skipped"}
        failed = {match[1] for match in FAILED.findall(done.stdout)}
        ran |= failed
        if not ran:
            sys.exit(done.stdout)
        ran = {name for name in ran if "text" not in name.lower()}
        return len(ran), sorted(failed & ran)


class Pouch:
    """PouchDB's tests of one kind, in mocha."""

    source = POUCHDB
    admin = False

    def __init__(self, row, files, adapters, plugins="", apart=False):
        self.row, self.files, self.adapters, self.plugins = row, files, adapters, plugins
        self.apart = apart

    def build(self, sources):
        if not (sources / "node_modules").exists():
            env = {**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=sources, env=env, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not (sources / "packages" / "node_modules" / "pouchdb" / "lib").exists():
            subprocess.run(["npm", "run", "build-node"], cwd=sources, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, url, sources, directory):
        self.build(sources)
        env = {**os.environ, "COUCH_HOST": url, "ADAPTERS": self.adapters, "VIEW_ADAPTERS": "memory",
               "PLUGINS": self.plugins, "SERVER": "couchdb-master"}
        down = None
        if self.apart:  # some of these ask a server that answers 500
            down = subprocess.Popen(["node", "bin/down-server.js", "3010"], cwd=sources,
                                    stdout=subprocess.DEVNULL)
        ran, failed = 0, []
        try:
            paths = [path.relative_to(sources) for path in sorted(sources.glob(self.files))]
            for together in [[path] for path in paths] if self.apart else [paths]:
                result = directory / "result.json"
                result.unlink(missing_ok=True)
                subprocess.run(
                    ["node_modules/.bin/mocha", "--exit", "--timeout", str(TEST_MS),
                     "--require=./tests/integration/node.setup.js", "--reporter=json",
                     "--reporter-option", f"output={result}", *together],
                    cwd=sources, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    timeout=FILE_SECONDS)
                if not result.exists():
                    sys.exit(f"{together[0]} told no result")
                told = json.loads(result.read_text())
                wrong = [one["fullTitle"] for one in told["failures"]
                         if not re.search(r'"(before|after) (each|all)" hook', one["fullTitle"])]
                ran += len(told["passes"]) + len(wrong)
                failed += wrong
                print(f"# {together[0]}: {len(told['passes'])} passed, {len(wrong)} failed", flush=True)
        finally:
            if down:
                down.kill()
                down.wait()
        return ran, failed


SUITES = {
    "mango": Mango(),
    "pouchdb-integration": Pouch("PouchDB's integration tests", "tests/integration/test.*.js", "memory",
                                apart=True),
    "pouchdb-mapreduce": Pouch("PouchDB's `mapreduce` tests", "tests/mapreduce/test.*.js", "http"),
    "pouchdb-find": Pouch("PouchDB's `find` tests", "tests/find/*/test.*.js", "http",
                          "pouchdb-find"),
}


def write_row(suite, figures, failures):
    """Puts the figures into the suite's row, and tells if its reasons are of another number of failures."""
    text = PAGE.read_text()
    row = re.search(rf"^(\| {re.escape(suite.row)}[^|]*\| )([^|]*)( \|)([^|]*)(\|)$", text, re.M)
    if not row:
        sys.exit(f"docs/COUCHDB.md has no row of {suite.row}")
    explained = sum(map(int, re.findall(r"\((\d+)[:)]", row[4])))
    if explained != failures:
        print(f"# the row of {suite.row} explains {explained} failures of {failures}")
    beside = re.search(r" \(CouchDB:.*", row[2])  # what another server has passed
    PAGE.write_text(text[:row.start(2)] + figures + (beside[0] if beside else "") + text[row.end(2):])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--frond", default=TOP / "build" / "frond", type=pathlib.Path)
    parser.add_argument("--sources", default=CACHE, type=pathlib.Path, help="where the sources are, or will be")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    unknown = [name for name in args.suite if name not in SUITES]
    if unknown:
        parser.error(f"no suite {unknown[0]}; there are: {', '.join(SUITES)}")
    for name in args.suite or SUITES:
        suite = SUITES[name]
        sources = suite.source.fetch(args.sources.resolve())
        with tempfile.TemporaryDirectory(prefix="frond-others-") as directory:
            store = pathlib.Path(directory, "store")
            store.mkdir()
            with Frond(args.frond.resolve(), store, suite.admin) as server:
                ran, failed = suite.run(server.url, sources, pathlib.Path(directory))
        for test in failed:
            print(f"failed: {test}")
        figures = f"{ran - len(failed)} of {ran} of {suite.source.version}"
        print(f"{name}: {figures}", flush=True)
        if args.write:
            write_row(suite, figures, len(failed))


main()
