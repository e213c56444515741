"""What a server tells of itself: metrics, and the log of slow requests."""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import mongo
import resp
from harness import QUICK, Server, Skip, contains, equal, main, ok, test

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
ADMIN = {"Authorization": "Basic " + base64.b64encode(b"ada:secret").decode()}
SCRAPE = "/_node/_local/_prometheus"
APART = set()  # URLs of ports that count no requests of their own


def fetch(server, path, headers=None):
    """Status, headers and text."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(server.url + path, headers=headers or {})
    try:
        with opener.open(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def scrape(server, headers=None, others=0):
    """The last answers are sent a moment before they are counted, and the scrape comes on another
    connection. So this waits until only the scrape and `others` are in progress. That value stands
    behind others of the same text, so the text that counts is the next one."""
    settled = False
    for _ in range(200):
        status, _, text = fetch(server, SCRAPE, headers)
        equal(status, 200)
        now = series(text)["frond_http_requests_in_progress"] == others + (server.url not in APART)
        if settled and now:
            return text
        settled = settled or now
        time.sleep(0.02)
    raise AssertionError("requests stay in progress")


def series(text):
    """Values by name and labels."""
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines() if line and line[0] != "#"}


def work(server):
    """A few requests of several kinds."""
    server.request("PUT", "/db")
    for i in range(5):
        server.request("PUT", f"/db/doc{i}", {"i": i})
        server.request("GET", f"/db/doc{i}")
    server.request("PUT", "/db/doc0", {})
    server.request("GET", "/db/missing")
    server.request("GET", "/db/_all_docs")
    server.request("GET", "/db/_changes")


def promtool():
    tool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if not tool:
        raise Skip("promtool, of Debian's package prometheus")
    return tool


@test
def page_of_metrics_is_what_the_program_declares(cwd):
    page = (TOP / "docs" / "METRICS.md").read_text()
    head, _, listed = page.partition("\n## Every metric\n\n")
    assert head
    equal(listed, ok("metrics", "--markdown", cwd=cwd).stdout)


@test
def names_follow_the_conventions(cwd):
    for line in ok("metrics", "--list", cwd=cwd).stdout.splitlines():
        name, kind = line.split()
        assert re.fullmatch(r"(frond|process)_[a-z0-9_]+", name), name
        equal(name.endswith("_total"), kind == "counter")
        assert not re.search(r"_(ms|us|ns|kb|mb|milliseconds|count|sum|bucket)$", name), name


@test
def a_scrape_counts_requests_by_endpoint(cwd):
    with Server(cwd) as server:
        work(server)
        contains(fetch(server, SCRAPE)[1]["Content-Type"], "text/plain; version=0.0.4")
        values = series(scrape(server))
        equal(values['frond_http_requests_total{method="PUT"}'], 7)
        equal(values['frond_http_responses_total{endpoint="doc",class="2xx"}'], 10)
        equal(values['frond_http_responses_total{endpoint="doc",class="4xx"}'], 2)
        equal(values['frond_http_answers_total{code="409"}'], 1)
        equal(values['frond_http_answers_total{code="404"}'], 1)
        equal(values['frond_operation_duration_seconds_count{door="http",class="doc"}'], 12)
        equal(values['frond_operation_duration_seconds_count{door="http",class="changes"}'], 1)
        equal(values["frond_http_requests_in_progress"], 1)  # the scrape itself
        assert values["process_resident_memory_bytes"] > 1e6
        assert values["process_start_time_seconds"] > 1e9


@test
def every_metric_of_a_scrape_is_listed(cwd):
    listed = dict(line.split() for line in ok("metrics", "--list", cwd=cwd).stdout.splitlines())
    with Server(cwd) as server:
        work(server)
        types = re.findall(r"^# TYPE (\S+) (\S+)$", scrape(server), flags=re.M)
    equal(dict(types), listed)
    equal(len(types), len(listed))


@test
def a_scrape_satisfies_promtool(cwd):
    tool = promtool()
    with Server(cwd) as server:
        work(server)
        text = scrape(server)
    result = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True,
                            text=True, timeout=60)
    equal((result.returncode, result.stdout, result.stderr), (0, "", ""))


@test
def dashboard_has_a_panel_for_each_metric(cwd):
    board = json.loads(ok("metrics", "--grafana", cwd=cwd).stdout)
    kinds = dict(line.split() for line in ok("metrics", "--list", cwd=cwd).stdout.splitlines())
    panels = [p for p in board["panels"] if p["type"] == "timeseries"]
    equal(sorted(p["title"] for p in panels), sorted(kinds))
    equal(len({p["id"] for p in board["panels"]}), len(board["panels"]))
    taken = set()
    for p in board["panels"]:
        at = p["gridPos"]
        places = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not places & taken and max(x for x, _ in places) < 24, p
        taken |= places
    for p in panels:
        name, kind = p["title"], kinds[p["title"]]
        exprs = [t["expr"] for t in p["targets"]]
        equal(len(exprs), 2 if kind == "histogram" else 1)
        for expr in exprs:
            selector = name + ("_bucket" if kind == "histogram" else "") + '{instance=~"$instance"}'
            contains(expr, selector if kind == "gauge" else f"rate({selector}[$__rate_interval])")
            equal(expr.count("("), expr.count(")"))
        labels = [name for name in ("door", "class", "level") if f"{{{{{name}}}}}" in p["targets"][0]["legendFormat"]]
        assert all(re.search(rf"by \([^)]*\b{label}\b", expr) for label in labels for expr in exprs), p
    contains(next(p for p in panels if p["title"] == "frond_operation_duration_seconds")["targets"][1]["expr"],
             "histogram_quantile(0.99, sum by (le, instance, door, class) (rate(")
    contains(board["templating"]["list"][1]["query"], "frond_build_info")


def watched():
    """The expressions that the page says to watch."""
    page = (TOP / "docs" / "METRICS.md").read_text()
    table = page.partition("\n## What to watch\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    return [expression for row in rows for expression in re.findall(r"`([^`]+)`", row[1])]


@test
def what_to_watch_are_metrics_of_the_program(cwd):
    listed = {line.split()[0] for line in ok("metrics", "--list", cwd=cwd).stdout.splitlines()}
    expressions = watched()
    assert len(expressions) > 10
    for expression in expressions:
        for name in re.findall(r"\b(?:frond|process)_\w+", expression):
            assert re.sub(r"_(bucket|sum|count)$", "", name) in listed or name in listed, name


@test
def what_to_watch_is_understood_by_promtool(cwd):
    tool = promtool()
    rules = [{"alert": f"Alert{i}", "expr": expr} for i, expr in enumerate(watched())]
    (cwd / "rules.yml").write_text(json.dumps({"groups": [{"name": "frond", "rules": rules}]}))
    result = subprocess.run([tool, "check", "rules", "rules.yml"], cwd=cwd, capture_output=True,
                            text=True, timeout=60)
    equal((result.returncode, result.stderr), (0, ""))


@test
def only_administrators_scrape(cwd):
    with Server(cwd, env={"FROND_ADMIN": "ada:secret"}) as server:
        equal(fetch(server, SCRAPE)[0], 401)
        contains(scrape(server, ADMIN), "frond_http_requests_total")
        equal(fetch(server, SCRAPE + "/more", ADMIN)[0], 404)
        equal(fetch(server, "/_node/other@host/_prometheus", ADMIN)[0], 404)


@test
def a_port_of_their_own_has_metrics_for_everybody_and_nothing_else(cwd):
    (cwd / "frond.ini").write_text(QUICK + "[prometheus]\nadditional_port = true\nport = 0\n")
    with Server(cwd, "--config", "frond.ini", env={"FROND_ADMIN": "ada:secret"}) as server:
        address = re.search(r"event=metrics_port address=(\S+)", server.read_log()).group(1)
        apart = type("Apart", (), {"url": f"http://{address}"})
        APART.add(apart.url)
        contains(scrape(apart), "frond_net_connections ")
        equal(fetch(apart, "/_node/nonode@nohost/_prometheus")[0], 200)
        for path in ("/", "/_all_dbs", "/_node/_local/_stats", "/_node/_local/_prometheus/x"):
            equal(fetch(apart, path, ADMIN)[0], 404)
        request = urllib.request.Request(apart.url + SCRAPE, data=b"{}", method="POST")
        try:
            urllib.request.urlopen(request, timeout=30)
            raise AssertionError("POST was answered")
        except urllib.error.HTTPError as error:
            equal((error.code, json.load(error)["error"]), (405, "method_not_allowed"))
        equal(fetch(server, SCRAPE)[0], 401)


@test
def a_scrape_tells_of_commits_and_of_the_store(cwd):
    with Server(cwd) as server:
        work(server)
        values = series(scrape(server))
    assert values["frond_kv_commits_total"] >= 6
    assert values["frond_kv_commit_duration_seconds_count"] >= 6
    assert values["frond_store_batch_transactions_count"] >= 6
    assert values["frond_store_batch_transactions_sum"] >= 6
    assert values['frond_store_memory_bytes{kind="memtables"}'] > 0
    assert values["frond_store_block_cache_capacity_bytes"] >= 40 * 1024 * 1024
    assert values["frond_store_recent_capacity_bytes"] > 13 * 1024 * 1024
    equal(values["frond_store_writes_stopped"], 0)
    equal(values["frond_store_background_errors_total"], 0)
    equal(values['frond_store_files{level="6"}'], 0)
    equal(values["frond_net_connections"], 1)
    equal(values['frond_document_edits_total{outcome="conflict"}'], 1)
    assert values["frond_document_reads_total"] >= 5
    assert values["frond_net_sent_bytes_total"] > 1000
    assert values["frond_fibers"] >= 1
    assert values["frond_loops"] >= 1
    assert 0 < values["frond_loops_cpu_seconds_total"] < values["process_cpu_seconds_total"] + 1
    assert values['frond_catalog_lookups_total{outcome="hit"}'] > 5


@test
def a_scrape_tells_the_build_and_the_room_on_the_disk(cwd):
    version = ok("--version", cwd=cwd).stdout.split()[1]
    with Server(cwd) as server:
        values = server.metrics()
        equal(values[f'frond_build_info{{version="{version}"}}'], 1)
        size = shutil.disk_usage(cwd).total
        equal(values["frond_store_disk_size_bytes"], size)
        assert 0 < values["frond_store_disk_free_bytes"] < size


@test
def commands_of_all_doors_have_histograms_of_their_time(cwd):
    options = ("--redis", "127.0.0.1:0", "--mongo", "127.0.0.1:0")
    with Server(cwd, *options) as server:
        def port(door):
            return int(re.search(rf"event={door} address=127.0.0.1:(\d+)", server.read_log())[1])
        with resp.Client(port("redis")) as c, mongo.Client(port("mongo")) as m:
            for n in range(3):
                c("SET", "k", n)
            c("EVAL", "return redis.call('hset', 'h', 'f', 1)", 0)
            m({"insert": "c", "documents": [{"_id": 1}]}, "db")
            m({"find": "c"}, "db")
            m({"find": "c"}, "db")
        values = server.metrics()

        def count(name, label):
            return values[f'frond_operation_duration_seconds_count{{door="{name}",class="{label}"}}']
        equal(count("redis", "string"), 3)
        # What a script calls counts, too.
        equal((count("redis", "scripting"), count("redis", "hash")), (1, 1))
        equal((count("mongo", "insert"), count("mongo", "query")), (1, 2))


@test
def refusals_are_counted_by_limit(cwd):
    (cwd / "frond.ini").write_text("[couchdb]\nmax_document_size = 100\n"
                                   "[chttpd]\nmax_http_request_size = 1024\n")
    with Server(cwd, "--config", "frond.ini") as server:
        server.request("PUT", "/db")
        equal(server.request("PUT", "/db/a", {"a": "x" * 200})[0], 413)
        equal(server.request("PUT", "/db/a", {"a": "x" * 2000})[0], 413)
        equal(server.request("PUT", "/db/a", {"a": "x" * 2000})[0], 413)
        equal(fetch(server, "/db/a", {"X-Long": "x" * 100000})[0], 431)
        values = series(scrape(server))
    equal(values['frond_refusals_total{limit="max_document_size"}'], 1)
    equal(values['frond_refusals_total{limit="max_http_request_size"}'], 2)
    equal(values['frond_refusals_total{limit="header_bytes"}'], 1)
    equal(values['frond_refusals_total{limit="max_connections"}'], 0)


@test
def limits_of_refusals_are_settings_or_explained(cwd):
    page = (TOP / "docs" / "METRICS.md").read_text()
    explained = page.partition("\n## Limits\n")[2].partition("\n## ")[0]
    settings = set(re.findall(r"^;(\w+) =", ok("config", "--list", cwd=cwd).stdout, flags=re.M))
    row = re.search(r"^\| `frond_refusals_total` .*$", page, flags=re.M).group(0)
    limits = re.findall(r"`(\w+)`", row.partition("`limit`: ")[2])
    assert len(limits) > 10
    unknown = [name for name in limits if name not in settings and f"`{name}`" not in explained]
    equal(unknown, [])


@test
def percentiles_of_statistics_lie_within_the_buckets(cwd):
    with Server(cwd) as server:
        work(server)
        count = sum(value for name, value in series(scrape(server)).items()
                    if name.startswith('frond_operation_duration_seconds_count{door="http"'))
        status, times = server.request("GET", "/_node/_local/_stats/couchdb/request_time/value")
    equal(status, 200)
    assert count <= times["n"] <= count + 2  # the last scrapes may be counted later
    shares = [value for _, value in times["percentile"]]
    equal([name for name, _ in times["percentile"]], [50, 75, 90, 95, 99, 999])
    equal(shares, sorted(shares))
    equal(times["median"], shares[0])
    assert 0 <= times["min"] <= shares[0] <= shares[-1] <= times["max"]
    assert times["min"] <= times["arithmetic_mean"] <= times["max"]
    equal(sum(n for _, n in times["histogram"]), times["n"])


@test
def a_path_never_becomes_a_label(cwd):
    with Server(cwd) as server:
        for i in range(50):
            server.request("GET", f"/made-up-{i}/%22%0a{i}")
        text = scrape(server)
    assert "made-up" not in text
    equal(series(text)['frond_http_responses_total{endpoint="doc",class="4xx"}'], 50)


@test
def an_open_feed_is_a_gauge_and_not_a_slow_request(cwd):
    (cwd / "frond.ini").write_text("[frond]\nslow_request_ms = 30\n")
    with Server(cwd, "--config", "frond.ini") as server:
        server.request("PUT", "/db")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        feed = opener.open(server.url + "/db/_changes?feed=continuous&timeout=500", timeout=30)
        name = 'frond_http_feeds_open{of="changes",feed="continuous"}'
        equal(series(scrape(server, others=1))[name], 1)
        feed.read()
        values = series(scrape(server))
        equal(values[name], 0)
        equal(values['frond_http_responses_total{endpoint="changes_feed",class="2xx"}'], 1)
        server.stop()
        assert "/db/_changes" not in server.read_log()


def slow_lines(server):
    return [line for line in server.read_log().splitlines() if "event=slow_operation door=http " in line]


@test
def a_feed_that_computes_for_long_is_a_slow_request(cwd):
    (cwd / "frond.ini").write_text("[frond]\nslow_request_ms = 1\n")
    with Server(cwd, "--config", "frond.ini") as server:
        server.request("PUT", "/db")
        server.request("PUT", "/db/wide", {"a": [0] * 100000})
        status, _ = server.request(
            "POST", "/db/_changes?feed=longpoll&filter=_selector&timeout=50",
            {"selector": {"a": {"$elemMatch": {"$eq": 1}}}})
        equal(status, 200)
        server.stop()
        feeds = [line for line in slow_lines(server) if "/db/_changes" in line]
    equal(len(feeds), 1)
    assert int(re.search(r" computed_ms=(\d+) ", feeds[0]).group(1)) >= 1, feeds


@test
def a_slow_request_is_logged_without_secrets(cwd):
    (cwd / "frond.ini").write_text(QUICK + "[frond]\nslow_request_ms = 1\n")
    with Server(cwd, "--config", "frond.ini", env={"FROND_ADMIN": "ada:secret"}) as server:
        server.request("PUT", "/db", headers=ADMIN)
        docs = {"docs": [{"_id": f"{i:05}", "n": i} for i in range(3000)]}
        server.request("POST", "/db/_bulk_docs", docs, headers=ADMIN)
        server.request("GET", "/db/_all_docs?include_docs=true&limit=3000&startkey=%22hidden%22"
                       "&password=hidden&hidden&skip=0&st%61rtkey=%22hidden%22", headers=ADMIN)
        trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
        server.request("GET", "/db/_all_docs?include_docs=true&x=" + "y" * 5000, headers={**ADMIN, **trace})
        server.stop()
        lines = slow_lines(server)
    text = "\n".join(lines)
    assert re.search(r'name=POST on="/db/_bulk_docs" took_ms=\d+ status=201 computed_ms=', text), text
    contains(text, 'on="/db/_all_docs?include_docs=true&x=')
    assert re.search(r' request_id=[0-9a-f]{10} user="ada" client=127', text), text
    equal(len(re.findall(r" trace_id=0af7651916cd43dd8448eb211c80319c user=", text)), 1)
    assert "hidden" not in text and "yyy" not in text and "secret" not in text, text
    assert all(len(line) < 1100 for line in lines), lines


@test
def slow_requests_are_logged_at_a_limited_rate_and_all_counted(cwd):
    (cwd / "frond.ini").write_text("[frond]\nslow_request_ms = 1\n")
    with Server(cwd, "--config", "frond.ini") as server:
        server.request("PUT", "/db")
        slow = 0
        while slow < 60:
            docs = {"docs": [{"n": i} for i in range(400)]}
            server.request("POST", "/db/_bulk_docs", docs)
            slow = series(scrape(server))['frond_slow_operations_total{door="http"}']
        server.stop()
        lines = slow_lines(server)
        seconds = {line[:19] for line in lines}
    # The log's seconds and those of the limit do not begin together.
    assert len(lines) <= 20 * len(seconds), len(lines)
    told = sum(int(re.search(r"left_out=(\d+)", line).group(1)) for line in lines)
    assert told + len(lines) <= slow + 5


main()
