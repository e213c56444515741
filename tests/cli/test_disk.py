#!/usr/bin/env python3
"""A server whose disk is full, read-only, or has room again: what its clients see. The disks are small
file systems in memory, which only a process that may mount them can have."""

import http.client
import json
import os
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

from disk import Disk
from harness import FROND, Server, contains, equal, main, test, until

PROBE = "[frond]\nstore_probe_ms = 50\n"


def serve(cwd):
    (cwd / "frond.ini").write_text(PROBE)
    return Server(cwd, "--store", "embedded:disk/data", "--config", "frond.ini")


def put_until_refused(server, first):
    """Documents that do not compress. How many were taken, and the answer to the next."""
    for n in range(first, first + 100000):
        document = {"text": os.urandom(20000).hex()}
        status, answer = server.request("PUT", f"/db/{n:06}", document)
        if status != 201:
            return n, status, answer
    raise AssertionError("the disk never became full")


def wait_for_log(server, event):
    until(lambda: event in server.read_log(), told=lambda: f"{event} in:\n{server.read_log()}")


def put_when_possible(server, name):
    def put():
        status, answer = server.request("PUT", f"/db/{name}", {})
        assert status in (201, 503, 507), (status, answer)
        return status == 201

    until(put)


class Feed(threading.Thread):
    """Reads a continuous feed of changes."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.ids = []
        self.answer = urllib.request.urlopen(
            server.url + "/db/_changes?feed=continuous&heartbeat=1000&since=0", timeout=60)
        self.start()

    def run(self):
        try:
            for line in self.answer:
                if line.strip():
                    self.ids.append(json.loads(line)["id"])
        except (OSError, ValueError, KeyError):
            pass

    def wait_for(self, name):
        until(lambda: name in self.ids, told=lambda: name)


@test
def full_disk_answers_507_and_reads_and_feeds_go_on_until_there_is_room(cwd):
    with Disk(cwd / "disk", "24m") as disk, serve(cwd) as server:
        equal(server.request("PUT", "/db")[0], 201)
        feed = Feed(server)
        taken, status, answer = put_until_refused(server, 0)
        equal((status, answer["error"]), (507, "insufficient_storage"))
        contains(answer["reason"], "No space left on device")
        contains(server.read_log(), "event=store_full")
        # Everything that reads goes on; everything that writes says why it does not.
        equal(server.request("GET", f"/db/{taken - 1:06}")[0], 200)
        equal(server.request("GET", f"/db/{taken:06}")[0], 404)
        equal(server.request("GET", "/db/_all_docs?limit=0")[1]["total_rows"], taken)
        for method, path, body in [
                ("PUT", "/other", None), ("PUT", "/db/x", {}), ("PUT", "/db/_local/x", {}),
                ("PUT", "/db/_security", {}), ("POST", "/db", {})]:
            status, answer = server.request(method, path, body)
            equal((path, status, answer["error"]), (path, 507, "insufficient_storage"))
        status, answer = server.request("GET", "/_up")
        equal(status, 503)
        contains(answer["reason"], "full")
        feed.wait_for(f"{taken - 1:06}")

        disk.resize("200m")
        put_when_possible(server, "room")
        contains(server.read_log(), "event=store_reopened")
        equal(server.request("GET", "/_up")[0], 200)
        feed.wait_for("room")
        # The feed has told of each change once, in order, and of nothing that was refused.
        equal(feed.ids, [f"{n:06}" for n in range(taken)] + ["room"])
        equal(server.request("GET", f"/db/{taken:06}")[0], 404)
        equal(server.stop(), 0)


@test
def long_answer_goes_on_behind_its_last_row_when_the_store_was_opened_again(cwd):
    with Disk(cwd / "disk", "24m") as disk, serve(cwd) as server:
        equal(server.request("PUT", "/db")[0], 201)
        taken, status, _ = put_until_refused(server, 0)
        equal(status, 507)
        # Far more than the sockets take, so that the answer is under way while the store is not. A kernel
        # lets what a socket takes grow to more than the disk has, unless it is told how much.
        host = urllib.parse.urlsplit(server.url)
        connection = http.client.HTTPConnection(host.hostname, host.port, timeout=60)
        connection.sock = socket.socket()
        connection.sock.settimeout(60)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sock.connect((host.hostname, host.port))
        connection.request("GET", "/db/_all_docs?include_docs=true")
        answer = connection.getresponse()
        first = answer.read(1000)
        disk.resize("200m")
        put_when_possible(server, "room")
        contains(server.read_log(), "event=store_reopened")
        rows = json.loads(first + answer.read())["rows"]
        # What is read after the reopening is of a later moment, as on a cluster.
        equal([row["id"] for row in rows], [f"{n:06}" for n in range(taken)] + ["room"])
        assert all(row["doc"]["_id"] == row["id"] for row in rows)


@test
def server_that_stops_or_is_killed_on_a_full_disk_starts_on_it_again(cwd):
    with Disk(cwd / "disk", "60m") as disk:
        with serve(cwd) as server:
            equal(server.request("PUT", "/db")[0], 201)
            equal(server.request("PUT", "/db/kept", {"n": 1})[0], 201)
            disk.fill()
            taken, status, _ = put_until_refused(server, 0)
            equal(status, 507)
            equal(server.stop(), 0)
        for end in ("stop", "kill"):
            with serve(cwd) as server:
                contains(server.read_log(), "event=store_full")
                equal(server.request("GET", "/db/kept")[1]["n"], 1)
                equal(server.request("GET", "/db/_all_docs?limit=0")[1]["total_rows"], taken + 1)
                equal(server.request("PUT", "/db/x", {})[0], 507)
                if end == "stop":
                    equal(server.stop(), 0)
                else:
                    server.process.kill()
                    server.process.wait()
        with serve(cwd) as server:
            equal(server.request("PUT", "/db/x", {})[0], 507)
            disk.empty()
            put_when_possible(server, "x")
            equal(server.request("GET", "/db/_all_docs?limit=0")[1]["total_rows"], taken + 2)
            equal(server.stop(), 0)


@test
def read_only_file_system_is_served_and_written_to_when_that_is_possible(cwd):
    with Disk(cwd / "disk", "60m") as disk:
        with serve(cwd) as server:
            equal(server.request("PUT", "/db")[0], 201)
            equal(server.request("PUT", "/db/kept", {"n": 1})[0], 201)
            equal(server.stop(), 0)
        disk.set_read_only(True)
        with serve(cwd) as server:
            contains(server.read_log(), "event=store_read_only")
            equal(server.request("GET", "/db/kept")[1]["n"], 1)
            status, answer = server.request("PUT", "/db/x", {})
            equal((status, answer["error"]), (503, "service unavailable"))
            contains(answer["reason"], "Read-only file system")
            disk.set_read_only(False)
            put_when_possible(server, "x")
            equal(server.stop(), 0)


@test
def directory_that_cannot_be_written_to_at_its_first_start_is_refused(cwd):
    with Disk(cwd / "disk", "1m") as disk:
        disk.fill()
        (cwd / "frond.ini").write_text(PROBE)
        result = subprocess.run(
            [FROND, "serve", "--store",
             "embedded:disk/data", "--http", "127.0.0.1:0"],
            cwd=cwd, capture_output=True, text=True, timeout=60)
        equal(result.returncode, 1)
        contains(result.stderr, "No space left on device")


if __name__ == "__main__":
    main()
