#!/usr/bin/env python3
"""Runs CouchDB's own Mango tests against frond, and tells how many pass.

    tests/clients/others.py [--frond build/frond] [--couchdb DIR] [--write]

The tests are those of a version of CouchDB, which git fetches, or which lies in DIR. They need nose2, requests
and hypothesis (Debian: python3-nose2 python3-requests python3-hypothesis). --write puts their row into
docs/COUCHDB.md. Tests of text indexes do not count: there are none here."""

import argparse
import base64
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = TOP / "docs" / "COUCHDB.md"
VERSION = "3.5.2"
SOURCES = "https://github.com/apache/couchdb"
NAME, PASSWORD = "adm", "pass"
ROW = re.compile(r"^(\| CouchDB's Mango tests [^|]*\| ).*?( \|)", re.M)
RESULT = re.compile(r"^(test_\w+) \((\S+?)\)(?: \(.*\))? \.\.\. (ok|FAIL|ERROR|skipped|expected failure)", re.M)
FAILED = re.compile(r"^(?:FAIL|ERROR): (test_\w+) \((\S+?)\)", re.M)


def fetch(directory):
    subprocess.run(["git", "clone", "-q", "--depth", "1", "--branch", VERSION, SOURCES, directory],
                   check=True)
    return pathlib.Path(directory)


def start(frond, cwd):
    process = subprocess.Popen(
        [frond, "serve", "--http", "127.0.0.1:0", "--admin", f"{NAME}:{PASSWORD}"], cwd=cwd,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    return process, line.split(" at ")[1].strip().rstrip("/")


def make_users(url):
    request = urllib.request.Request(f"{url}/_users", method="PUT")
    token = base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
    request.add_header("Authorization", f"Basic {token}")
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()


def is_of_text(name):
    return "text" in name.lower()


def run_mango(url, sources):
    """The tests that ran, and those that failed, by their full names."""
    env = {**os.environ, "COUCH_HOST": url, "COUCH_USER": NAME, "COUCH_PASS": PASSWORD}
    done = subprocess.run([sys.executable, "-m", "nose2", "-v", "-c", "unittest.cfg"],
                          cwd=sources / "src" / "mango", env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    ran = {match[1] for match in RESULT.findall(done.stdout) if match[2] != "skipped"}
    failed = {match[1] for match in FAILED.findall(done.stdout)}
    ran |= failed
    if not ran:
        sys.exit(done.stdout)
    return {n for n in ran if not is_of_text(n)}, {n for n in failed if not is_of_text(n)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default=TOP / "build" / "frond", type=pathlib.Path)
    parser.add_argument("--couchdb", type=pathlib.Path, help="CouchDB's sources, already there")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frond-others-") as directory:
        sources = args.couchdb or fetch(f"{directory}/couchdb")
        os.mkdir(f"{directory}/store")
        process, url = start(args.frond.resolve(), f"{directory}/store")
        try:
            make_users(url)
            ran, failed = run_mango(url, sources.resolve())
        finally:
            process.terminate()
            process.wait()
    for name in sorted(failed):
        print(f"failed: {name}")
    print(f"{len(ran) - len(failed)} of {len(ran)}")
    if args.write:
        text, count = ROW.subn(rf"\g<1>{len(ran) - len(failed)} of {len(ran)} of {VERSION}\2",
                               PAGE.read_text())
        assert count == 1, "docs/COUCHDB.md has no row of the Mango tests"
        PAGE.write_text(text)


main()
