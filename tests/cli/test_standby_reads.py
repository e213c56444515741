"""A standby that serves: it reads what the first has committed, names how old that may be, takes no writes
by any door, and goes on whichever side ends, is killed or is too far behind."""

import re
import signal
import threading
import time
import urllib.request

from harness import QUICK, Server, contains, equal, main, ok, run, test, until
from mongo import Client as Mongo
from mongo import Failure, Timestamp
from mongo_server import MongoServer
from resp import Client

KEEP = QUICK + "[frond]\nkeep_log_bytes = {}\n"


def first(cwd, keep=1 << 30, port=0, extra=""):
    (cwd / "first").mkdir(exist_ok=True)
    (cwd / "first" / "frond.ini").write_text(KEEP.format(keep) + extra)
    server = Server(cwd / "first", "--config", "frond.ini", "--redis", "127.0.0.1:0", "--mongo", "127.0.0.1:0",
                    http=f"127.0.0.1:{port}")
    server.mongo = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))
    return server


def standby(cwd, server, extra="", port=0, url=None):
    (cwd / "second").mkdir(exist_ok=True)
    (cwd / "second" / "frond.ini").write_text(
        QUICK + f"[frond]\nfollow_url = {url or server.url}\nfollow_name = second\n" + extra)
    return MongoServer(cwd / "second", "--config", "frond.ini", "--redis", "127.0.0.1:0",
                       http=f"127.0.0.1:{port}")


def redis(server):
    return Client(int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)", server.read_log()).group(1)))


def header(server, path):
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(server.url + path) as answer:
        return answer.headers["X-Frond-Standby"]


def behind(server):
    return server.request("GET", "/_up")[1]["standby"]


@test
def it_reads_what_the_first_has_committed(cwd):
    with first(cwd) as one:
        one.request("PUT", "/db")
        one.request("PUT", "/db/a", {"n": 1})
        with redis(one) as client:
            client("SET", "key", "value")
        with standby(cwd, one) as two:
            equal(two.request("GET", "/db/a")[1]["n"], 1)
            assert header(one, "/db/a") is None
            assert re.fullmatch(r"behind=\d+; seconds=\d+\.\d{3}", header(two, "/db/a"))
            one.request("PUT", "/db/b", {"n": 2})
            until(lambda: two.request("GET", "/db/b")[0] == 200)
            until(lambda: behind(two)["behind"] == 0)
            equal(two.request("POST", "/db/_find", {"selector": {"n": 2}})[1]["docs"][0]["_id"], "b")
            with redis(one) as a, redis(two) as b:
                equal(b("GET", "key"), b"value")
                a("SET", "key", "changed")
                until(lambda: b("GET", "key") == b"changed")
                a("ZADD", "scores", 1, "x", 2, "y")
                until(lambda: b("ZRANGE", "scores", 0, -1) == [b"x", b"y"])
                equal(b("ROLE")[0], b"slave")
                contains(b("INFO", "replication").decode(), "master_link_status:up")
            one.request("DELETE", "/db")
            until(lambda: two.request("GET", "/db")[0] == 404)
            assert two.metrics()["frond_follow_behind_seconds"] < 30
            equal(two.metrics()['frond_store_state{state="standby"}'], 1)
        equal(two.stop_code, 0)


@test
def no_door_takes_a_write(cwd):
    with first(cwd) as one:
        one.request("PUT", "/db")
        with redis(one) as client:
            client("RPUSH", "list", 1)
        with standby(cwd, one) as two, redis(two) as items, two.client() as mongo:
            for method, path, body in (("PUT", "/db/a", {}), ("PUT", "/new", None), ("DELETE", "/db", None),
                                       ("POST", "/db/_index", {"index": {"fields": ["a"]}}),
                                       ("PUT", "/db/_local/a", {}), ("PUT", "/db/_security", {"admins": {}}),
                                       ("PUT", "/_node/_local/_config/log/level", "debug")):
                status, answer = two.request(method, path, body)
                equal((status, answer["error"]), (503, "standby"))
                contains(answer["reason"], "is a standby, and takes no writes")
            contains(str(two.request("POST", "/db/_bulk_docs", {"docs": [{}, {}]})), "standby")
            for command in (("SET", "a", "b"), ("LPUSH", "l", 1), ("BLPOP", "list", 1), ("PUBLISH", "c", "m"),
                            ("EVAL", "return redis.call('set', 'a', 'b')", 0), ("FLUSHALL",)):
                answer = str(items.error(*command))
                assert "READONLY" in answer, (command, answer)
            hello = mongo({"hello": 1})
            equal((hello["isWritablePrimary"], hello["secondary"]), (False, True))
            for command in ({"insert": "c", "documents": [{"a": 1}]}, {"create": "c"}):
                try:
                    mongo(command, db="shop")
                except Failure as error:
                    equal(error.code, 10107)
                else:
                    raise AssertionError(command)
        with redis(one) as items:
            equal(items("DBSIZE"), 1)


@test
def a_session_reads_what_it_has_written_to_the_first(cwd):
    with first(cwd) as one, standby(cwd, one) as two, two.client() as reader:
        with Mongo(one.mongo) as writer:
            for i in range(20):
                at = writer({"insert": "c", "documents": [{"_id": i}]}, db="shop")["operationTime"]
                found = reader({"find": "c", "filter": {"_id": i}, "readConcern": {"afterClusterTime": at}},
                               db="shop")
                equal(len(found["cursor"]["firstBatch"]), 1)


@test
def a_read_that_waits_for_the_first_ends_with_its_time_its_operation_and_its_person(cwd):
    admins = "[admins]\nroot = secret\n[chttpd_auth]\niterations = 10\n"
    with first(cwd, extra=admins) as one, Mongo(one.mongo).login("root", "secret") as writer:
        writer({"createUser": "ann", "pwd": "apple", "roles": ["readWrite"]}, "shop")
        at = writer({"insert": "c", "documents": [{"_id": 1}]}, "shop")["operationTime"]
        find = {"find": "c", "readConcern": {"afterClusterTime": Timestamp(at + (1000 << 32))}}
        url = one.url.replace("http://", "http://root:secret@")
        with standby(cwd, one, extra=admins, url=url) as two, two.client().login("root", "secret") as root, \
                two.client().login("ann", "apple") as ann:
            def waiting():
                return [op["opid"] for op in root({"currentOp": 1})["inprog"]
                        if op.get("command", {}).get("find") == "c"]

            equal(root.fails({**find, "maxTimeMS": 200}, "shop")["errmsg"], "operation exceeded time limit")
            ann.send({**find, "$db": "shop"})
            until(waiting)
            root({"killOp": 1, "op": waiting()[0]})
            equal(ann.read()[2]["code"], 11601)
            ann.send({**find, "$db": "shop"})
            until(waiting)
            writer({"dropUser": "ann"}, "shop")
            equal(ann.read()[2]["code"], 13)


@test
def whoever_waits_is_told(cwd):
    with first(cwd) as one:
        one.request("PUT", "/db")
        with redis(one) as writer:
            writer("XADD", "stream", "1-1", "a", "b")
            with standby(cwd, one) as two:
                found = {}

                def longpoll():
                    found["feed"] = two.request("GET", "/db/_changes?feed=longpoll&since=now&timeout=20000")[1]

                def read_stream():
                    with redis(two) as client:
                        found["stream"] = client("XREAD", "BLOCK", 20000, "STREAMS", "stream", "1-1")

                threads = [threading.Thread(target=t) for t in (longpoll, read_stream)]
                for thread in threads:
                    thread.start()
                time.sleep(1)
                one.request("PUT", "/db/a", {"n": 1})
                writer("XADD", "stream", "2-1", "c", "d")
                for thread in threads:
                    thread.join(30)
                equal([row["id"] for row in found["feed"]["results"]], ["a"])
                equal(found["stream"][0][1][0][0], b"2-1")


@test
def it_serves_without_its_first_and_goes_on(cwd):
    with first(cwd) as one:
        port = int(one.url.rsplit(":", 1)[1])
        one.request("PUT", "/db")
        one.request("PUT", "/db/a", {"n": 1})
        url = one.url
        two = standby(cwd, one)
        with two:
            until(lambda: two.request("GET", "/db/a")[0] == 200)
            one.stop(signal.SIGKILL)
            equal(two.request("GET", "/db/a")[1]["n"], 1)
            until(lambda: behind(two)["seconds"] > 2)
            with first(cwd, port=port) as again:
                again.request("PUT", "/db/b", {"n": 2})
                until(lambda: two.request("GET", "/db/b")[0] == 200)
                two.stop(signal.SIGKILL)
    # Nobody answers: a standby that is there is served, and one that is not cannot be.
    with standby(cwd, None, url=url) as two:
        contains(two.read_log(), "event=follow_failed")
        equal(two.request("GET", "/db/b")[1]["n"], 2)
    answer = run("serve", "--config", "second/frond.ini", "--store", "embedded:third", "--http", "127.0.0.1:0",
                 cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "Couldn't connect")


@test
def one_that_is_too_far_behind_ends_and_copies_at_its_next_start(cwd):
    with first(cwd, keep=1) as one:
        one.request("PUT", "/db")
        with standby(cwd, one) as two:
            two.process.send_signal(signal.SIGSTOP)
            for turn in range(3):
                for part in range(20):
                    one.request("POST", "/db/_bulk_docs",
                                {"docs": [{"_id": f"{turn}-{part}-{i}", "text": "x" * 100} for i in range(1000)]})
                equal(one.request("POST", "/_frond/compact", {})[0], 200)
            until(lambda: not list((cwd / "first" / "data" / "archive").glob("*.log")))
            two.process.send_signal(signal.SIGCONT)
            equal(two.process.wait(60), 1)
            contains(two.read_log(), "event=follow_ended")
            contains(two.read_log(), "all has to be copied again")
        with standby(cwd, one) as two:
            contains(two.read_log(), "event=copying")
            equal(two.request("GET", "/db")[1]["doc_count"], 60000)


@test
def its_first_knows_it_for_a_standby_until_it_is_promoted(cwd):
    with first(cwd) as one:
        one.request("PUT", "/db")
        with standby(cwd, one) as two:
            port = two.url.rsplit(":", 1)[1]
            at = int(one.url.rsplit(":", 1)[1])
            one.stop()
            with first(cwd, port=at, extra=f"standby_url = {two.url}\n") as again:
                equal(again.request("PUT", "/db/a", {"n": 1})[0], 201)
                until(lambda: two.request("GET", "/db/a")[0] == 200)
    ok("promote", "--store", "embedded:second/data", cwd=cwd)
    answer = run("serve", "--config", "second/frond.ini", "--store", "embedded:second/data",
                 "--http", "127.0.0.1:0", cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "is a store of its own, and no standby")
    (cwd / "second" / "frond.ini").write_text(KEEP.format(1 << 20))
    with Server(cwd / "second", "--config", "frond.ini", http=f"127.0.0.1:{port}") as promoted:
        equal(promoted.request("PUT", "/db/b", {})[0], 201)
        answer = run("serve", "--config", "frond.ini", "--http", "127.0.0.1:0", cwd=cwd / "first")
        contains(answer.stderr, "has taken this store's place")


@test
def it_is_backed_up_and_compacted(cwd):
    (cwd / "second" / "backups").mkdir(parents=True)
    with first(cwd) as one:
        one.request("PUT", "/db")
        one.request("PUT", "/db/a", {"n": 1})
        with standby(cwd, one, extra="backup_dir = backups\n") as two:
            until(lambda: two.request("GET", "/db/a")[0] == 200)
            equal(two.request("POST", "/_frond/compact", {})[0], 200)
            ok("backup", "daily", "--from", two.url, cwd=cwd)
            one.request("PUT", "/db/b", {"n": 2})
            until(lambda: two.request("GET", "/db/b")[0] == 200)
    ok("restore", "second/backups/daily", "--store", "embedded:restored", cwd=cwd)
    contains(ok("verify", "--store", "embedded:restored", "--quiet", cwd=cwd).stdout, " 0 findings")
    (cwd / "third").mkdir()
    with Server(cwd / "third", "--store", "embedded:../restored") as server:
        equal(server.request("GET", "/db/a")[1]["n"], 1)
        equal(server.request("PUT", "/db/c", {})[0], 201)


@test
def settings_that_do_not_fit_are_refused(cwd):
    (cwd / "frond.ini").write_text("[frond]\nfollow_url = http://127.0.0.1:1\nstandby_url = http://127.0.0.1:2\n")
    answer = run("serve", "--config", "frond.ini", "--http", "127.0.0.1:0", cwd=cwd)
    equal(answer.returncode, 1)
    contains(answer.stderr, "set one of them")
    (cwd / "frond.ini").write_text("[frond]\nfollow_url = http://127.0.0.1:1\nfollow_name = a/b\n")
    contains(run("serve", "--config", "frond.ini", "--http", "127.0.0.1:0", cwd=cwd).stderr, "follow_name takes")


main()
