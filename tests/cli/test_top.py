"""frond top: what it shows of a server at work."""

import base64
import pathlib
import re
import signal
import subprocess

from harness import ENV, FROND, QUICK, Server, contains, equal, main, ok, run, run_threads, test, until
from redis_server import Redis

TOP = pathlib.Path(__file__).resolve().parents[2]


def top(server, cwd, *more):
    return ok("top", "--once", "--interval", "1", "--url", server.url, *more, cwd=cwd).stdout


def rows(screen):
    """[operations a second, mean ms, 99 % ms] by door and class."""
    found = re.findall(r"^(http|mongo|redis) +(\S+) +([\d.]+) +([\d.]+) +([\d.]+)$", screen, re.M)
    return {(door, name): [float(x) for x in numbers] for door, name, *numbers in found}


def operations(server, admin):
    code, answer = server.request("GET", "/_frond/operations", headers=admin)
    equal(code, 200)
    return answer["operations"]


def while_busy(server, work, cwd):
    """A screen that is taken while others do `work` again and again."""
    over, screens = [], []

    def busy():
        while not over:
            work()

    def watch():
        try:
            screens.append(top(server, cwd))
        finally:
            over.append(True)
    run_threads(busy, watch)
    return screens[0]


@test
def operations_are_shown_by_door_and_class(cwd):
    with Redis(cwd) as server, server.client() as client:
        equal(server.request("PUT", "/db")[0], 201)

        def work():
            equal(server.request("GET", "/db")[0], 200)
            equal(client("SET", "k", "v"), "OK")
        screen = while_busy(server, work, cwd)
        shown = rows(screen)
        for place in ("http", "db"), ("redis", "string"):
            assert place in shown, screen
            rate, mean, most = shown[place]
            assert rate > 0 and most > 0 and mean <= most, screen
        assert shown[("http", "db")][0] >= shown[("http", "node")][0], screen
        contains(screen, f"at {server.url}/, up ")
        contains(screen, "store open\n")
        contains(screen, "\nrefused: none\n")


@test
def what_has_ended_before_is_not_shown(cwd):
    with Server(cwd) as server:
        equal(server.request("PUT", "/db")[0], 201)
        equal(server.request("PUT", "/db/doc", {})[0], 201)
        equal(set(rows(top(server, cwd))), {("http", "node"), ("http", "active_tasks"), ("http", "frond")})


@test
def slow_operations_and_refusals_are_shown(cwd):
    (cwd / "ini").write_text("[frond]\nslow_request_ms = 1\n[couchdb]\nmax_document_size = 10\n")
    with Server(cwd, "--config", "ini") as server:
        equal(server.request("PUT", "/db")[0], 201)

        def work():
            equal(server.request("PUT", "/db/doc", {"a": "too long for it"})[0], 413)
            equal(server.request("GET", "/db/_changes?feed=longpoll&since=now&timeout=20")[0], 200)
            equal(server.request("POST", "/_frond/compact", {})[0], 200)
        screen = while_busy(server, work, cwd)
        assert re.search(r"^slow: http \d+$", screen, re.M), screen
        assert re.search(r"^refused: max_document_size \d+$", screen, re.M), screen


@test
def what_runs_is_shown_the_oldest_first(cwd):
    with Redis(cwd, "--admin", "root:secret") as server, server.client() as client:
        admin = {"Authorization": "Basic " + base64.b64encode(b"root:secret").decode()}
        equal(client("AUTH", "root", "secret"), "OK")
        client.send("BLPOP", "queue", 0)
        until(lambda: any(op["name"] == "blpop" for op in operations(server, admin)))
        feed = server.request("PUT", "/db", headers=admin)
        equal(feed[0], 201)
        screen = ok("top", "--once", "--interval", "1", "--url", server.url.replace("//", "//root:secret@"),
                    cwd=cwd).stdout
        assert re.search(r"^running: \d+\n  redis +[\d.]+ ms  blpop, root, from 127.0.0.1:\d+$", screen, re.M), screen
        # Whoever shows it can end it.
        op, = (op for op in operations(server, admin) if op["name"] == "blpop")
        equal(server.request("POST", "/_frond/operations", {"end": op["id"]}, headers=admin)[0], 202)
        try:
            client.read()
            raise AssertionError("it goes on")
        except (EOFError, OSError):
            pass
        equal(server.request("POST", "/_frond/operations", {"end": op["id"]}, headers=admin)[0], 404)


@test
def what_is_built_is_shown(cwd):
    (cwd / "ini").write_text("[indexes]\nbuild_threads = 1\nbuild_percent = 1\n")
    lines = "".join(f'{{"_id":"{i:06}","n":{i}}}\n' for i in range(20000))
    ok("load", "db", "-", "--quiet", "--store", "embedded:data", cwd=cwd, stdin=lines)
    with Server(cwd, "--config", "ini") as server:
        for i in range(8):
            equal(server.request("POST", "/db/_index", {"index": {"fields": ["n", f"m{i}"]}, "name": f"n{i}"})[0], 200)
        screen = top(server, cwd)
        assert re.search(r"^built: [12] indexes, ", screen, re.M), screen
        assert re.search(r"^  indexer db \d+ %$", screen, re.M), screen
        assert re.search(r"^  and \d+ more$", screen, re.M), screen


@test
def screens_follow_each_other_until_it_is_interrupted(cwd):
    with Server(cwd) as server:
        shown = subprocess.Popen([FROND, "top", "--interval", "1", "--url", server.url], cwd=cwd, env=ENV,
                                 stdout=subprocess.PIPE, text=True)
        seen = 0
        for line in shown.stdout:
            assert "\x1b" not in line, line
            seen += line.startswith("frond ")
            if seen == 2:
                break
        shown.send_signal(signal.SIGINT)
        shown.stdout.close()
        equal(shown.wait(60), -signal.SIGINT)


@test
def it_is_for_administrators(cwd):
    (cwd / "ini").write_text(QUICK)
    with Server(cwd, "--admin", "root:secret", "--config", "ini") as server:
        refused = run("top", "--once", "--url", server.url, cwd=cwd)
        equal(refused.returncode, 1)
        contains(refused.stderr, "401")
        contains(top(server, cwd, "--url", server.url.replace("//", "//root:secret@")), "store open")


@test
def wrong_usage_and_no_server_are_told(cwd):
    for args in (["--interval", "0"], ["--interval", "x"], ["server"], ["--url", "ftp://x"]):
        assert run("top", "--once", *args, cwd=cwd).returncode in (1, 2)
    failed = run("top", "--once", "--url", "http://127.0.0.1:1", cwd=cwd)
    equal(failed.returncode, 1)
    contains(failed.stderr, "127.0.0.1:1")


def shape(lines):
    """The words of the lines that are always there, without numbers and units."""
    rows = re.compile(r"http |mongo |redis |…|  indexer |  (?:http|mongo|redis) ")
    return [re.sub(r"\S*\d\S*( (bytes|kB|MB|GB|TB))?", "N", line).split()
            for line in lines if not rows.match(line)]


@test
def lines_of_its_page_are_what_it_prints(cwd):
    page = (TOP / "docs" / "OPERATING.md").read_text()
    shown = page[page.index("## frond top"):page.index("## Endpoints for operators")]
    wanted = shown[shown.index("```\nfrond ") + 4:].split("```")[0].strip().replace("memory_bytes 3", "none")
    with Server(cwd) as server:
        equal(shape(top(server, cwd).strip().splitlines()), shape(wanted.splitlines()))


main()
