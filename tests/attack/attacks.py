"""The attacks. Each has sizes for a full and for a bounded run, and prepares its own database."""

import base64
import json
import os
import socket
import time

DB = "target"
MIB = 1024 * 1024


class Target:
    """What an attacker works on: a port, and the count of what was tried."""

    def __init__(self, port, tried, number):
        self.port = port
        self.tried = tried
        self.number = number

    def connect(self, timeout=120):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def count(self, n=1):
        with self.tried.get_lock():
            self.tried.value += n

    def ask(self, text):
        """One request on a connection of its own; reads whatever comes, to the end."""
        with self.connect() as s:
            self.count()
            s.sendall(text)
            while s.recv(256 * 1024):
                pass


def request(method, path, body=b"", headers=(), close=True):
    if not isinstance(body, bytes):
        body = (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json",
             f"Content-Length: {len(body)}", *headers]
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Attack:
    name = ""
    title = ""
    door = "http"  # by whose protocol it comes
    processes = 2
    full = 1
    bounded = 1
    admin = None  # NAME:PASSWORD of an administrator that the server has
    functions = False  # it needs workers for functions of design documents

    def prepare(self, frond, size):
        status, answer = frond.request("PUT", f"/{DB}")
        if status not in (201, 412):  # created, or there already
            raise RuntimeError(f"PUT /{DB}: {status} {answer}")

    def work(self, target, size):
        """Until it is ended, or cut off: then it is called again."""
        raise NotImplementedError


class Request(Attack):
    """The same expensive request over and over."""

    def text(self, size):
        raise NotImplementedError

    def work(self, target, size):
        text = self.text(size)
        while True:
            target.ask(text)


class SelectorAll(Request):
    name = "selector_with_a_long_list_of_arguments"
    title = "_changes by a selector with $all of many values over an array of many"
    full, bounded = 90000, 20000

    def prepare(self, frond, size):
        super().prepare(frond, size)
        frond.must("PUT", f"/{DB}/zeros", {"a": [0] * 20000 + [1]})

    def text(self, size):
        return request("POST", f"/{DB}/_changes?filter=_selector",
                       {"selector": {"a": {"$all": [1] * size}}})


class SelectorMatch(SelectorAll):
    name = "selector_that_compares_each_with_each"
    title = "_changes by a selector with $allMatch of a $in of many values"

    def text(self, size):
        values = [i + 0.5 for i in range(size)]
        return request("POST", f"/{DB}/_changes?filter=_selector",
                       {"selector": {"$or": [{"a": {"$elemMatch": {"$in": values}}},
                                             {"a": {"$allMatch": {"$nin": values}}},
                                             {"a": {"$elemMatch": {"$all": values}}}]}})


class Regex(Request):
    name = "regex_that_backtracks"
    title = "_changes by ^(a+)+$ over documents that nearly match"
    full, bounded = 2000, 100

    def prepare(self, frond, size):
        super().prepare(frond, size)
        frond.must("POST", f"/{DB}/_bulk_docs",
                   {"docs": [{"a": "a" * 40 + "b"} for _ in range(size)]})

    def text(self, size):
        return request("POST", f"/{DB}/_changes?filter=_selector",
                       {"selector": {"a": {"$regex": "^(a+)+$"}}})


def rev_of(pos, n):
    return f"{pos}-{n:032x}"


def put_ancestors(frond, count):
    frond.must("POST", f"/{DB}/_bulk_docs", {"new_edits": False, "docs": [
        {"_id": "old", "_rev": rev_of(count, count),
         "_revisions": {"start": count, "ids": [f"{n:032x}" for n in range(count, 0, -1)]}}]})


class RevsDiff(Request):
    name = "revs_diff_of_many_revisions"
    title = "_revs_diff of many revisions of a document of 1,000 ancestors"
    full, bounded = 900000, 100000
    endpoint = "_revs_diff"

    def prepare(self, frond, size):
        super().prepare(frond, size)
        put_ancestors(frond, 1000)

    def text(self, size):
        revs = ",".join(f'"{rev_of(1 + n % 1200, n)}"' for n in range(size))
        return request("POST", f"/{DB}/{self.endpoint}", '{"old":[' + revs + "]}")


class MissingRevs(RevsDiff):
    name = "missing_revs_of_many_branches"
    title = "_missing_revs of many revisions of a document of 4,000 branches"
    endpoint = "_missing_revs"

    def prepare(self, frond, size):
        Attack.prepare(self, frond, size)
        frond.must("POST", f"/{DB}/_bulk_docs", {"new_edits": False, "docs": [
            {"_id": "old", "_rev": rev_of(2, n)} for n in range(4000)]})


class Branches(Request):
    name = "bulk_of_branches_of_one_document"
    title = "_bulk_docs with many branches of one document"
    full, bounded = 3000, 500

    def work(self, target, size):
        while True:
            name = base64.b16encode(os.urandom(8)).decode()
            target.ask(request("POST", f"/{DB}/_bulk_docs", {"new_edits": False, "docs": [
                {"_id": name, "_rev": rev_of(1, n)} for n in range(size)]}))


class BulkGet(Request):
    name = "bulk_get_of_many_revisions"
    title = "_bulk_get of many revisions of one document"
    full, bounded = 100000, 10000

    def prepare(self, frond, size):
        super().prepare(frond, size)
        put_ancestors(frond, 1000)

    def text(self, size):
        docs = ",".join(f'{{"id":"old","rev":"{rev_of(1000, n)}"}}' for n in range(size))
        return request("POST", f"/{DB}/_bulk_get", '{"docs":[' + docs + "]}")


class Keys(Request):
    name = "all_docs_of_many_keys"
    title = "_all_docs of many keys"
    full, bounded = 400000, 50000

    def text(self, size):
        keys = ",".join(f'"k{n:07d}"' for n in range(size))
        return request("POST", f"/{DB}/_all_docs", '{"keys":[' + keys + "]}")


class DeepPatch(Request):
    name = "json_that_is_large_and_deep"
    title = "documents of a million small members, and of arrays in arrays"
    full, bounded = 7, 1  # MiB

    def work(self, target, size):
        members = ",".join(f'"k{n}":{n}' for n in range(size * 75000))
        arrays = "[1]," * (size * 250000)
        while True:
            target.ask(request("PUT", f"/{DB}/members{target.number}", "{" + members + "}"))
            target.ask(request("PUT", f"/{DB}/arrays{target.number}",
                               '{"a":[' + arrays + "0]}"))


class Pipeline(Attack):
    name = "pipelined_requests"
    title = "thousands of requests at once on one connection"
    full, bounded = 5000, 1000

    def prepare(self, frond, size):
        super().prepare(frond, size)
        frond.must("PUT", f"/{DB}/doc", {"text": "x" * 1000})

    def work(self, target, size):
        text = request("GET", f"/{DB}/doc", close=False)
        with target.connect() as s:
            s.setblocking(False)
            out, unsent = text * size, 0
            while True:
                try:
                    sent = s.send(out[unsent:])
                    target.count(max(1, sent // len(text)))
                    unsent = (unsent + sent) % len(out)
                except BlockingIOError:
                    pass
                try:
                    if not s.recv(MIB):
                        return
                except BlockingIOError:
                    time.sleep(0.0005)


class Readers(Attack):
    """Listings that are asked for and not read."""

    processes = 1
    path = ""

    def prepare(self, frond, size):
        super().prepare(frond, size)
        for first in range(0, 20000, 1000):
            frond.must("POST", f"/{DB}/_bulk_docs", {"docs": [
                {"_id": f"{n:08d}", "text": "x" * 1000} for n in range(first, first + 1000)]})

    def work(self, target, size):
        held = []
        text = request("GET", self.path)
        while True:
            if len(held) == size:
                time.sleep(1)
                continue
            s = target.connect()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(text)
            held.append(s)
            target.count()


class ChangesReaders(Readers):
    name = "readers_of_changes_that_do_not_read"
    title = "connections that ask for _changes and do not read it"
    full, bounded = 3000, 300
    path = f"/{DB}/_changes"


class DocsReaders(Readers):
    name = "readers_of_documents_that_do_not_read"
    title = "connections that ask for _changes?include_docs=true and do not read it"
    full, bounded = 1000, 200
    path = f"/{DB}/_changes?include_docs=true"


class AllDocsReaders(Readers):
    name = "readers_of_all_docs_that_do_not_read"
    title = "connections that ask for _all_docs?include_docs=true and do not read it"
    full, bounded = 3000, 200
    path = f"/{DB}/_all_docs?include_docs=true"


class Churn(Attack):
    name = "connections_that_come_and_go"
    title = "connections that are opened, send half a head, and are closed"
    full, bounded = 1, 1

    def work(self, target, size):
        while True:
            with target.connect() as s:
                s.sendall(b"GET / HTTP/1.1\r\nHost: 127.")
                target.count()


class SlowBodies(Attack):
    name = "bodies_that_trickle"
    title = "announced bodies of 16 MiB that come a byte at a time"
    full, bounded = 30, 12
    processes = 1

    def work(self, target, size):
        held = [None] * size
        head = request("POST", f"/{DB}/_bulk_docs", close=False).replace(
            b"Content-Length: 0", b"Content-Length: 16777216")
        while True:
            for i in range(size):
                try:
                    if not held[i]:
                        held[i] = target.connect()
                        held[i].sendall(head + b'{"docs":[')
                        target.count()
                    held[i].sendall(b" ")
                except OSError:
                    held[i] = None
            time.sleep(0.5)


class SlowHeads(Attack):
    name = "heads_that_trickle"
    title = "connections whose request's head comes a byte at a time"
    full, bounded = 2000, 200
    processes = 1

    def work(self, target, size):
        held = [None] * size
        while True:
            for i in range(size):
                try:
                    if not held[i]:
                        held[i] = target.connect()
                        held[i].sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
                        target.count()
                    held[i].sendall(b"x")
                except OSError:
                    held[i] = None
            time.sleep(0.5)


class SlowReaders(Readers):
    name = "readers_that_read_a_byte_at_a_time"
    title = "connections that ask for all documents and read a byte of them now and then"
    full, bounded = 500, 50
    path = f"/{DB}/_all_docs?include_docs=true"

    def work(self, target, size):
        held = []
        text = request("GET", self.path)
        while True:
            if len(held) < size:
                s = target.connect()
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                s.sendall(text)
                held.append(s)
                target.count()
                continue
            for s in list(held):
                try:
                    if not s.recv(1):
                        held.remove(s)
                except OSError:
                    held.remove(s)
            time.sleep(0.5)


class Passwords(Request):
    name = "wrong_passwords"
    title = "logins with names and passwords that are wrong"
    full, bounded = 8, 4
    processes = 4
    admin = "anna:a-long-password"

    def work(self, target, size):
        """Always another name: one that has failed five times is refused before it is hashed."""
        while True:
            name = b"a" + base64.b16encode(os.urandom(6)) + b":" + base64.b16encode(os.urandom(6))
            target.ask(request("GET", "/_session", headers=(
                "Authorization: Basic " + base64.b64encode(name).decode(),)))


# ---- Functions of design documents ----


class Function(Attack):
    """A function that does its worst, in a database of its own, called over and over."""

    functions = True
    processes = 4
    full, bounded = 20, 5  # documents that it is called for
    design = {}
    PAUSE_SECONDS = 0.05  # mostly its caller waits for it; the constant server's would not

    @property
    def db(self):
        return f"{DB}_{self.name}"

    def prepare(self, frond, size):
        frond.must("PUT", f"/{self.db}")
        frond.must("POST", f"/{self.db}/_bulk_docs", {"docs": self.docs(size)})
        frond.must("PUT", f"/{self.db}/_design/attack", self.design)

    def docs(self, size):
        return [{"text": "a" * 40 + "b"} for _ in range(size)]

    def call(self, target, size):
        raise NotImplementedError

    def work(self, target, size):
        while True:
            self.call(target, size)
            time.sleep(self.PAUSE_SECONDS)


class FunctionMap(Function):
    source = ""

    @property
    def design(self):
        return {"views": {"view": {"map": self.source}}}

    def call(self, target, size):
        """New documents, so that the view has something to do, and a question to the view."""
        target.ask(request("POST", f"/{self.db}/_bulk_docs", {"docs": self.docs(size)}))
        target.ask(request("GET", f"/{self.db}/_design/attack/_view/view?limit=1"))


class FunctionLoopMap(FunctionMap):
    name = "function_map_that_never_ends"
    title = "a view whose map function loops for ever"
    source = "function (doc) { for (;;); }"


class FunctionRecursion(FunctionMap):
    name = "function_that_calls_itself"
    title = "a view whose map function calls itself for ever"
    source = "function (doc) { function f(n) { return f(n + 1) + 1; } emit(f(0), null); }"


class FunctionString(FunctionMap):
    name = "function_that_makes_a_string_of_4_gib"
    title = "a view whose map function doubles a string until it has 4 GiB"
    source = "function (doc) { var s = 'x'; while (s.length < 4 * 1024 * 1024 * 1024) s += s; }"


class FunctionEmits(FunctionMap):
    name = "function_that_emits_without_end"
    title = "a view whose map function emits rows for ever"
    source = "function (doc) { for (var i = 0;; i++) emit(i, 'x'.repeat(1000)); }"


class FunctionFilter(Function):
    source = ""

    @property
    def design(self):
        return {"filters": {"filter": self.source}}

    def call(self, target, size):
        target.ask(request("GET", f"/{self.db}/_changes?filter=attack/filter"))


class FunctionLoopFilter(FunctionFilter):
    name = "function_filter_that_never_ends"
    title = "_changes with a filter function that loops for ever"
    source = "function (doc, req) { for (;;); }"


class FunctionRegex(FunctionFilter):
    name = "function_with_a_regex_that_backtracks"
    title = "_changes with a filter function that tests ^(a+)+$"
    source = "function (doc, req) { return /^(a+)+$/.test(doc.text); }"


class FunctionLoopValidator(Function):
    name = "function_validator_that_never_ends"
    title = "documents put into a database whose validator loops for ever"
    design = {"validate_doc_update": "function (doc) { for (;;); }"}

    def call(self, target, size):
        target.ask(request("POST", f"/{self.db}/_bulk_docs", {"docs": self.docs(size)}))


ALL = [
    SelectorAll(), SelectorMatch(), Regex(), RevsDiff(), MissingRevs(), Branches(), BulkGet(),
    Keys(), DeepPatch(), Pipeline(), ChangesReaders(), DocsReaders(), AllDocsReaders(), Churn(),
    SlowBodies(), SlowHeads(), SlowReaders(), Passwords(),
    FunctionLoopMap(), FunctionLoopFilter(), FunctionLoopValidator(), FunctionRecursion(),
    FunctionString(), FunctionRegex(), FunctionEmits(),
]
