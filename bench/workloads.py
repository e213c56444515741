"""The workloads of the table: how each is prepared and run on a side."""

import subprocess
import time

DISK_SINGLE_WRITES = 34000
DISK_SINGLE_WRITES_SHORT = 4000
UPDATED_DOCS = 1024
BIG_BYTES = 500 * 1000
CONNECTED = 1000
READ_DB = "bench"
NUMBER = "number"                   # a member that differs in all documents
GROUPS = 100                        # that a view is reduced by
STRING = "type"                     # a short string
VALIDATE = """function (newDoc, oldDoc, userCtx, secObj) {
    if (newDoc._deleted) return;
    if (typeof newDoc.type !== 'string') throw({forbidden: 'type is a string'});
    if (oldDoc && oldDoc.type !== newDoc.type) throw({forbidden: 'type stays'});
}"""
START_SECONDS = 0.5                 # of writes that have workers started before what is measured
START_DOCS = 5000                   # likewise, of batches
TICK_US = 10000                     # of processor time, in /proc


class Bench:
    """What the workloads share: sizes, the programs, and how far ids have been used."""

    def __init__(self, load, docs, seconds, bulk):
        self.load = load
        self.docs = docs
        self.seconds = seconds
        self.bulk = bulk
        self.used = {}

    def rows(self, server):
        return min(self.docs, server.rows or self.docs)

    def first(self, server, db):
        return self.used.get((server.name, db), 0)

    def use(self, server, db, result):
        self.used[(server.name, db)] = result["next"]


def measured(result, server=None):
    units = max(1, result["units"])
    return {
        "rate": result["units"] / result["seconds"],
        "p50_ms": result["p50_us"] / 1000,
        "p99_ms": result["p99_us"] / 1000,
        "max_ms": result["max_us"] / 1000,
        "cpu_us": result["server_cpu_us"] / units if result["server_cpu_us"] else None,
        "client_cpu_us": result.get("client_cpu_us", 0) / units,
        "peak_mb": server.memory_mb() if server and server.pids() else None,
        "units": result["units"],
    }


class Workload:
    limit_name = None  # "raw" or "constant"
    unit = "a second"

    def __init__(self, name, title):
        self.name = name
        self.title = title

    def prepare(self, bench, server):
        """Once a side, before the first round."""

    def run(self, bench, server):
        raise NotImplementedError

    def run_limit(self, bench, limits):
        return None

    queries = False  # whether it asks queries, or has functions run

    # Whether frond's other way of keeping documents makes a difference that is aimed at.
    by_scheme = False


class Put(Workload):
    by_scheme = True

    def __init__(self, connections):
        super().__init__(f"put-{connections}", f"PUT new document, {connections} connections"
                         if connections > 1 else "PUT new document, 1 connection")
        self.connections = connections

    def prepare(self, bench, server):
        if not bench.first(server, "put"):
            server.make("put")

    def put(self, bench, server, db):
        result = bench.load.run(server, "put", db=db, connections=self.connections,
                                first=bench.first(server, db), seconds=bench.seconds)
        bench.use(server, db, result)
        return measured(result, server)

    def run(self, bench, server):
        return self.put(bench, server, "put")

    def run_limit(self, bench, limits):
        return measured(limits["raw"].run("write", self.connections, 1, bench.seconds))


class Update(Workload):
    def __init__(self, connections):
        super().__init__(f"update-{connections}",
                         f"update an existing document, {connections} connections")
        self.connections = connections

    def prepare(self, bench, server):
        if not bench.first(server, "update"):
            server.make("update")
            bench.use(server, "update", bench.load.run(server, "bulk", db="update", batch=256,
                                                       count=UPDATED_DOCS))

    def run(self, bench, server):
        return measured(bench.load.run(server, "update", db="update", docs=UPDATED_DOCS,
                                       connections=self.connections, seconds=bench.seconds),
                        server)

    def run_limit(self, bench, limits):
        return measured(limits["raw"].run("update", self.connections, 1, bench.seconds))


class Get(Workload):
    by_scheme = True

    def __init__(self, connections):
        super().__init__(f"get-{connections}", f"GET one document, {connections} connections"
                         if connections > 1 else "GET one document, 1 connection")
        self.connections = connections

    def run(self, bench, server):
        return measured(bench.load.run(server, "get", db=READ_DB, docs=bench.rows(server),
                                       connections=self.connections, seconds=bench.seconds),
                        server)

    def run_limit(self, bench, limits):
        return measured(bench.load.run(limits["constant"], "constant", docs=bench.docs,
                                       connections=self.connections, seconds=bench.seconds),
                        limits["constant"])


class Bulk(Workload):
    by_scheme = True

    def __init__(self, writers):
        super().__init__(f"bulk-{writers}", f"_bulk_docs, 1,000 a batch, {writers} "
                         f"writer{'s' if writers > 1 else ''}")
        self.writers = writers

    def prepare(self, bench, server):
        if not bench.first(server, "bulk"):
            server.make("bulk")

    def bulk(self, bench, server, db):
        count = min(bench.bulk, server.rows or bench.bulk)
        result = bench.load.run(server, "bulk", db=db, connections=self.writers, count=count,
                                first=bench.first(server, db))
        bench.use(server, db, result)
        return measured(result, server)

    def run(self, bench, server):
        return self.bulk(bench, server, "bulk")

    def run_limit(self, bench, limits):
        return measured(limits["raw"].run("write", self.writers, 1000, bench.seconds))


class Listing(Workload):
    by_scheme = True

    def __init__(self, listing, docs):
        super().__init__(listing.strip("_").replace("_", "-") + ("-docs" if docs else ""),
                         f"{listing}, rows{' with include_docs' if docs else ''}")
        self.listing = listing
        self.docs = docs

    def run(self, bench, server):
        return measured(bench.load.run(server, self.listing, db=READ_DB, rows=self.rows(server),
                                       seconds=0.5,
                                       query="include_docs=true" if self.docs else None), server)

    def rows(self, server):
        """Other workloads have views and indexes there: design documents, of which some are gone again."""
        info = server.must("GET", f"/{READ_DB}")
        return info["doc_count"] + (info.get("doc_del_count", 0) if self.listing == "_changes" else 0)

    def run_limit(self, bench, limits):
        return measured(limits["raw"].run(self.listing, 1, int(self.docs), 0.5))


class IndexBuild(Workload):
    """An index on all documents: from the request for it until it is used."""

    queries = True

    def __init__(self, name, title, field):
        super().__init__(name, title)
        self.field = field

    def run(self, bench, server):
        server.drop_index(READ_DB, self.field)
        server.settle()
        before = server.cpu_ticks()
        begin = time.monotonic()
        server.make_index(READ_DB, self.field)
        server.await_index(READ_DB, self.field)
        seconds = time.monotonic() - begin
        server.settle()
        rows = bench.rows(server)
        return {"rate": rows / seconds, "peak_mb": server.memory_mb(), "units": rows,
                "cpu_us": (server.cpu_ticks() - before) * TICK_US / rows}


class Find(Workload):
    queries = True

    def __init__(self, name, title, op, connections, rows=None):
        super().__init__(name, title)
        self.op = op
        self.connections = connections
        self.rows = rows

    def prepare(self, bench, server):
        server.make_index(READ_DB, NUMBER)
        server.await_index(READ_DB, NUMBER)

    def run(self, bench, server):
        return measured(bench.load.run(server, self.op, db=READ_DB, docs=bench.rows(server),
                                       connections=self.connections, rows=self.rows,
                                       seconds=bench.seconds), server)


def beside_bare(bare, found):
    """With what it takes of the processor times a PUT with nothing else there takes. Both are
    measured at one time, since what else the machine does changes either."""
    if bare["cpu_us"] and found["cpu_us"]:
        found["cpu_ratio"] = found["cpu_us"] / bare["cpu_us"]
    return found


class PutIndexed(Put):
    """As Put, with indexes there."""

    by_scheme = False
    queries = True

    def __init__(self, connections):
        super().__init__(connections)
        self.name = f"put-indexed-{connections}"
        self.title = f"PUT new document with three indexes, {connections} connections"

    def prepare(self, bench, server):
        super().prepare(bench, server)
        server.make("indexed")
        for field in (NUMBER, STRING, "address.code"):
            server.make_index("indexed", field)
        bench.use(server, "indexed", bench.load.run(server, "bulk", db="indexed", batch=256,
                                                    count=UPDATED_DOCS))
        server.await_index("indexed", NUMBER)

    def run(self, bench, server):
        return beside_bare(super().run(bench, server), self.put(bench, server, "indexed"))

    def run_limit(self, bench, limits):
        return None


def make_validated(server, db):
    server.make(db)
    server.must("PUT", f"/{db}/_design/types", {"validate_doc_update": VALIDATE})


class PutValidated(Put):
    """As Put, with a function that is asked about each document."""

    by_scheme = False
    queries = True

    def __init__(self, connections):
        super().__init__(connections)
        self.name = f"put-validated-{connections}"
        self.title = f"PUT new document under validate_doc_update, {connections} connections"

    def prepare(self, bench, server):
        super().prepare(bench, server)
        make_validated(server, "validated")

    def run(self, bench, server):
        self.start_workers(bench, server)
        return beside_bare(super().run(bench, server), self.put(bench, server, "validated"))

    def start_workers(self, bench, server):
        """What runs the function is started by the first writes, which are not measured."""
        result = bench.load.run(server, "put", db="validated", connections=self.connections,
                                first=bench.first(server, "validated"), seconds=START_SECONDS)
        bench.use(server, "validated", result)

    def run_limit(self, bench, limits):
        return None


class BulkValidated(Bulk):
    """As Bulk, with a function that is asked about each document."""

    by_scheme = False
    queries = True

    def __init__(self, writers):
        super().__init__(writers)
        self.name = f"bulk-validated-{writers}"
        self.title += " under validate_doc_update"

    def prepare(self, bench, server):
        super().prepare(bench, server)
        make_validated(server, "bulk-validated")

    def run(self, bench, server):
        db = "bulk-validated"
        result = bench.load.run(server, "bulk", db=db, connections=self.writers, count=START_DOCS,
                                first=bench.first(server, db))
        bench.use(server, db, result)
        return beside_bare(super().run(bench, server), self.bulk(bench, server, db))

    def run_limit(self, bench, limits):
        return None


def emits(key, value="null"):
    return f"function (doc) {{ emit(doc.{key}, {value}); }}"


class ViewBuild(Workload):
    """A view of all documents: from the design document until it answers."""

    queries = True
    builds = 0  # of all views: each has another text, so that none is there already

    def __init__(self, name, title, reduce=None):
        super().__init__(name, title)
        self.reduce = reduce

    def run(self, bench, server):
        ViewBuild.builds += 1
        view = {"map": emits(NUMBER) + f" // {ViewBuild.builds}"}
        if self.reduce:
            view["reduce"] = self.reduce
        before = server.cpu_ticks()
        begin = time.monotonic()
        server.make_view(READ_DB, "built", view)
        server.must("GET", f"/{READ_DB}/_design/built/_view/v?limit=1")
        seconds = time.monotonic() - begin
        server.settle()
        rows = bench.rows(server)
        found = {"rate": rows / seconds, "peak_mb": server.memory_mb(), "units": rows,
                 "cpu_us": (server.cpu_ticks() - before) * TICK_US / rows}
        server.drop_view(READ_DB, "built")
        return found


class View(Workload):
    """Questions to a view that is built; `rows` that an answer has, None: all documents'."""

    queries = True

    def __init__(self, name, title, query, connections=1, rows=None, view=None):
        super().__init__(name, title)
        self.query = query
        self.connections = connections
        self.rows = rows
        self.view = view or {"map": emits(NUMBER)}

    def prepare(self, bench, server):
        server.make_view(READ_DB, self.name, self.view)
        server.must("GET", f"/{READ_DB}/_design/{self.name}/_view/v?limit=1")

    def run(self, bench, server):
        rows = bench.rows(server) if self.rows is None else self.rows
        return measured(bench.load.run(server, "view", db=READ_DB, rows=rows, seconds=bench.seconds,
                                       connections=self.connections,
                                       query=f"{self.name}/_view/v?{self.query}"), server)


class Path(Workload):
    """One value out of a large document; of a peer, the whole document."""

    def __init__(self):
        super().__init__("path", "one path of a 500 KB document (peers: all of it)")

    def prepare(self, bench, server):
        server.make("big")
        bench.load.run(server, "put-big", db="big", big=BIG_BYTES, count=1)

    def run(self, bench, server):
        return measured(bench.load.run(server, "path" if server.paths else "get-big", db="big",
                                       big=BIG_BYTES, seconds=bench.seconds), server)


class Whole(Path):
    def __init__(self):
        super().__init__()
        self.name = "get-big"
        self.title = "GET a whole document of 500 KB"

    def run(self, bench, server):
        return measured(bench.load.run(server, "get-big", db="big", big=BIG_BYTES,
                                       seconds=bench.seconds), server)


def one_by_one(bench, server, writes):
    """What single writes leave on the disk, each: over one connection, so that none shares a
    commit with others."""
    server.make("single")
    server.settle()
    before = server.disk_bytes("single")
    bench.load.run(server, "put", db="single", count=writes)
    server.settle()
    return {"bytes": (server.disk_bytes("single") - before) / writes, "writes": writes}


def bulk_loaded(bench, server):
    """Loads the database that the reads are made of. Gives the load's figures and the disk's."""
    rows = bench.rows(server)
    server.make(READ_DB)
    server.settle()
    at_rest = server.memory_mb("VmRSS")
    before = server.disk_bytes(READ_DB)
    result = bench.load.run(server, "bulk", db=READ_DB, count=rows)
    server.settle()
    after = server.disk_bytes(READ_DB)
    return {
        "rest": {"mb": at_rest},
        # Little data lies in logs that were there before.
        "disk": {"bytes": (after - before) / rows if after and after > before else None,
                 "docs": rows},
        "load": measured(result, server),
    }


def connected(bench, server):
    """Peak memory with all documents there and a thousand connections that read them."""
    server.reset_peak()
    bench.load.run(server, "get", db=READ_DB, docs=bench.rows(server), connections=CONNECTED,
                   seconds=bench.seconds)
    return {"mb": server.memory_mb("VmHWM")}


def nested(bench, server, lines):
    """Real documents, up to thousands of leaves each: all of them written, then read at random."""
    server.make("nested")
    server.settle()
    server.reset_peak()
    before = server.disk_bytes("nested")
    written = bench.load.run(server, "bulk-lines", db="nested", file=lines, batch=500,
                             seconds=3600)
    figures = measured(written, server)
    server.settle()
    after = server.disk_bytes("nested")
    if after is not None:
        figures["disk_bytes"] = (after - before) / written["units"]
    read = bench.load.run(server, "get-lines", db="nested", file=lines, connections=16,
                          seconds=bench.seconds)
    return figures, measured(read, server)


def pull(server, script, db):
    """PouchDB replicating a database to itself, in memory."""
    begin = time.monotonic()
    before = server.cpu_ticks()
    auth = f"{server.auth}" if server.auth else ""
    out = subprocess.run(["node", str(script), f"http://{server.host}:{server.port}/{db}", auth],
                         stdout=subprocess.PIPE, text=True, check=False)
    if out.returncode:
        return None
    docs = int(out.stdout.split()[0])
    seconds = time.monotonic() - begin
    return {"rate": docs / seconds, "seconds": seconds, "docs": docs,
            "cpu_us": (server.cpu_ticks() - before) * 10000 / docs}


TIMED = [
    Put(1), Put(16), Put(64),
    Update(16), Update(64),
    Get(1), Get(16), Get(64),
    Bulk(1), Bulk(4),
    Listing("_changes", False), Listing("_changes", True),
    Listing("_all_docs", False), Listing("_all_docs", True),
    Path(), Whole(),
    IndexBuild("index-number", "index on a number, documents", NUMBER),
    IndexBuild("index-string", "index on a short string, documents", STRING),
    Find("find-16", "_find one document by an index, 16 connections", "find", 16),
    Find("find-range", "_find 100 documents by an index", "find-range", 1, rows=100),
    Find("find-scan", "_find without an index, documents looked at", "find-none", 1),
    PutIndexed(16), PutValidated(16), BulkValidated(1),
    ViewBuild("view-map", "view of a map built, documents"),
    ViewBuild("view-count", "view with _count built, documents", "_count"),
    View("view-rows", "a view's rows", "reduce=false"),
    View("view-one-16", "first row of a view, 16 connections", "limit=1", connections=16, rows=1),
    View("view-grouped", "_sum by 100 groups of all rows, groups", "group=true", rows=GROUPS,
         view={"map": emits(f"{NUMBER} % {GROUPS}", "1"), "reduce": "_sum"}),
]
