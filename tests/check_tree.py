#!/usr/bin/env python3
"""Checks of the source tree itself, as TAP: what a compiler does not see and a reviewer should not
have to look for. Layers include downwards only; files stay readable; nothing is left unfinished."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent

# The rooms of src/ from the ground up, and the rooms that each may include, itself aside. A room is
# one folder without its subfolders, which are rooms of their own. A row names only rooms above it.
ROOMS = {
    "base": "",
    "loop": "base",
    "js": "base loop",
    "js/worker": "base js",
    "lua": "base loop",
    "kv": "base loop",
    "kv/embedded": "base loop kv",
    "kv/fdb": "base loop kv",
    "kv/faulty": "base loop kv",
    "catalog": "base loop kv",
    "settings": "base loop kv catalog",
    "doc": "base loop kv",
    "bson": "base doc",
    "mql": "base loop bson",
    "cql": "base loop doc",
    "jtree": "base loop doc mql",
    "mql/expr": "base loop bson mql",
    "mql/schema": "base loop bson mql",
    "mql/match": "base loop bson mql mql/expr mql/schema",
    "mql/stage": "base loop bson mql mql/expr mql/match",
    "mql/update": "base loop bson mql mql/match",
    "access": "base loop kv catalog settings doc",
    "index": "base loop kv doc",
    "index/selector": "base loop kv doc index",
    "index/engine": "base loop kv catalog doc index",
    "index/json": "base loop kv catalog doc index index/selector index/engine",
    "index/bson": "base loop kv doc bson mql mql/match index index/engine",
    "index/typed": "base loop kv catalog doc index index/engine",
    "index/plan": "base loop kv catalog doc index index/engine",
    "index/view": "base loop kv catalog doc index index/json",
    "model/revisioned": "base loop kv catalog doc index index/engine index/json index/view",
    "history": "base loop kv catalog",
    "model/timed": "base loop kv catalog doc history",
    "model/timed/rows": "base kv catalog doc model/timed",
    "model/timed/tables": "base loop kv catalog doc index/engine index/typed model/timed",
    "model/timed/items": "base loop kv catalog doc jtree model/timed",
    "rdb": "base loop",
    "rdb/items": "base loop model/timed model/timed/items rdb",
    "model/plain": "base loop kv catalog doc bson mql index index/engine index/bson",
    "net": "base loop",
    "http": "base loop net",
    "serve": "base loop kv access net",
    "replicator": "base loop kv catalog doc model/revisioned http",
    "door": "base",
    "door/couch/wire": "base loop kv catalog doc model/revisioned access http serve settings replicator",
    "door/couch/admin": "base loop kv catalog doc index index/engine index/view model/revisioned access http serve settings"
                        " replicator door/couch/wire",
    "door/couch/doc": "base loop js kv catalog doc index index/selector index/view model/revisioned access http"
                      " settings replicator door/couch/wire door/couch/admin",
    "door/couch/list": "base loop js kv catalog doc index index/selector model/revisioned access http"
                       " settings door/couch/wire door/couch/admin door/couch/doc",
    "door/couch/look": "base loop kv catalog doc serve door/couch/wire door/couch/admin",
    "door/couch/query": "base loop js kv catalog doc index index/selector index/engine index/json index/plan index/view"
                        " model/revisioned access http settings door/couch/wire door/couch/admin"
                        " door/couch/doc",
    "door/couch/view": "base loop js kv catalog doc index index/view model/revisioned access http"
                       " settings door/couch/wire door/couch/admin door/couch/doc door/couch/list",
    "door/couch": "base loop kv catalog doc model/revisioned access http settings replicator"
                  " door/couch/wire door/couch/admin door/couch/doc door/couch/list"
                  " door/couch/query door/couch/view door/couch/look",
    "door/cql/wire": "base loop cql",
    "door/cql/people": "base loop kv access settings",
    "door/cql/trace": "base serve",
    "door/cql/conn": "base loop catalog cql access settings net serve door door/cql/wire door/cql/people door/cql/trace",
    "door/cql/schema": "base loop cql kv catalog model/timed model/timed/tables settings door/cql/people door/cql/trace",
    "door/cql/run": "base loop kv catalog doc cql model/timed model/timed/tables access settings serve door door/cql/wire"
                    " door/cql/people door/cql/trace door/cql/conn door/cql/schema",
    "door/cql/copy": "base catalog cql model/timed/tables door/cql/schema door/cql/run",
    "door/cql": "base loop catalog settings net serve door model/timed/tables door/cql/wire door/cql/trace door/cql/conn door/cql/schema door/cql/run",
    "door/mongo/wire": "base loop bson",
    "door/mongo/txn": "base loop js kv catalog bson mql mql/expr model/plain access settings net serve door"
                      " door/mongo/wire",
    "door/mongo/index": "base kv catalog bson mql index/engine index/bson model/plain door/mongo/txn",
    "door/mongo/plan": "loop kv bson mql mql/expr mql/match index/bson index/plan model/plain door/mongo/txn"
                       " door/mongo/index",
    "door/mongo/watch": "base loop catalog mql mql/stage net door/mongo/txn door/mongo/index",
    "door/mongo/cmd": "base loop catalog bson mql mql/expr mql/match mql/stage mql/update index/engine access"
                      " settings net door door/mongo/txn door/mongo/index door/mongo/plan door/mongo/watch",
    "door/mongo": "base loop catalog access settings net serve door door/mongo/txn door/mongo/index door/mongo/cmd",
    "door/redis/wire": "base",
    "door/redis/acl": "base door/redis/wire",
    "door/redis/txn": "base loop kv catalog model/timed model/timed/items access settings net serve door"
                      " door/redis/wire door/redis/acl",
    "door/redis/script": "base loop catalog model/timed/items serve lua door/redis/wire door/redis/acl door/redis/txn",
    "door/redis/cmd": "base loop doc jtree model/timed/items access lua rdb rdb/items door/redis/wire door/redis/acl door/redis/txn door/redis/script",
    "door/redis": "base loop catalog model/timed settings net door door/redis/wire door/redis/acl"
                  " door/redis/txn door/redis/script door/redis/cmd",
    "door/rows/wire": "base doc",
    "door/rows/conn": "base catalog access settings net serve door door/rows/wire",
    "door/rows/data": "base loop kv catalog doc cql model/timed model/timed/tables net serve door/rows/wire"
                      " door/rows/conn",
    "door/rows": "base loop settings net serve door model/timed/tables door/rows/wire door/rows/conn door/rows/data",
    "cli": "base loop js kv catalog doc bson jtree index/engine index/view model/revisioned model/timed"
           " model/timed/rows model/timed/tables model/timed/items rdb rdb/items model/plain access net http serve settings replicator door door/couch door/cql door/cql/copy door/mongo door/redis door/rows"
           " door/rows/data door/redis/script",
    "import": "base cli",
}
# Rooms that must never know each other, whatever the table says: two models, two doors; and the
# catalog, which knows databases of every model, includes none of them.
APART = ("model", "door")

LINE_COLUMNS = 100
TAB_COLUMNS = 8
FILE_LINES = 1200
HEADER_LINES = 500
FORMATTED_KEPT = 20000  # hashes of files that are formatted, a dozen times what the tree has
FOLDER_FILES = 10  # a folder with more has a map of them in its README


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                          *patterns], cwd=TOP, capture_output=True, text=True, check=True).stdout
    return [TOP / line for line in out.splitlines() if (TOP / line).exists()]


def sources():
    return tracked("*.c", "*.h")


def rooms():
    """The sources of src/ by room."""
    found = {}
    for path in sources():
        parts = path.relative_to(TOP).parts
        if parts[0] == "src":
            found.setdefault("/".join(parts[1:-1]), []).append(path)
    return found


def included(path):
    """The headers of the tree that a file includes, each with its line's number."""
    return [(number, found.group(1))
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if (found := re.match(r'\s*#\s*include\s+"([^"]+)"', line))]


def without_comments(path):
    """A file's text; lines keep their numbers."""
    return re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), path.read_text(), flags=re.S)


def code_of(path):
    """A file's text without comments, texts and the names of structs and enums."""
    text = without_comments(path)
    text = re.sub(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"", "0", text)
    return re.sub(r"\b(?:struct|enum|union) \w+|(?:->|\.)\w+", "", text)


def circles(edges):
    """The sets of two and more nodes that reach each other (Tarjan's algorithm)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return found


def rooms_are_in_order():
    wrong = []
    below = []
    for room, allowed in ROOMS.items():
        wrong += [f"{room} names {other}, which does not stand above it in the table"
                  for other in allowed.split() if other not in below]
        parts = room.split("/")
        for other in allowed.split():
            others = other.split("/")
            if parts[0] in APART and others[0] == parts[0] and len(others) > 1 and others[1] != parts[1]:
                wrong.append(f"{room} must not know {other}")
            if parts[0] == "catalog" and others[0] == "model":
                wrong.append(f"{room} must not know {other}")
        below.append(room)
    return wrong


def includes_point_downwards():
    wrong = [f"src/{room}: the room is not in the table" for room in rooms() if room not in ROOMS]
    for room, files in rooms().items():
        allowed = set(ROOMS.get(room, "").split()) | {room}
        for path in files:
            wrong += [f"{path.relative_to(TOP)}:{number}: {room} includes {target}"
                      for number, target in included(path)
                      if target.rpartition("/")[0] not in allowed]
    return wrong


def headers_do_not_include_each_other():
    headers = {str(path.relative_to(TOP / "src")): path
               for files in rooms().values() for path in files if path.suffix == ".h"}
    edges = {name: {target for _, target in included(path) if target in headers}
             for name, path in headers.items()}
    return [" ".join(circle) for circle in circles(edges)]


def files_do_not_call_each_other():
    wrong = []
    for room, files in rooms().items():
        code = {path.stem: code_of(path) for path in files if path.suffix == ".c"}
        owner = {}
        for stem, text in code.items():
            for found in re.finditer(r"^(?!static).*\n(\w+)\((?:[^;{]*)\)\n\{", text, re.M):
                owner.setdefault(found.group(1), stem)
        edges = {stem: {owner[word] for word in set(re.findall(r"\b[a-z]\w+\b", text))
                        if word in owner} - {stem}
                 for stem, text in code.items()}
        wrong += [f"src/{room}: {' '.join(circle)}" for circle in circles(edges)]
    return wrong


def no_c_file_is_included():
    return [f"{path.relative_to(TOP)}:{number}"
            for path in sources()
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if re.match(r'\s*#\s*include\s+["<][^">]+\.c[">]', line)]


def lines_fit():
    wrong = []
    for path in sources():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line.expandtabs(TAB_COLUMNS)) > LINE_COLUMNS and "http" not in line:
                wrong.append(f"{path.relative_to(TOP)}:{number}")
    return wrong


def files_stay_readable():
    return [f"{path.relative_to(TOP)}: {len(path.read_text().splitlines())} lines"
            for path in sources() if len(path.read_text().splitlines()) > FILE_LINES]


def headers_stay_short():
    return [f"{path.relative_to(TOP)}: {len(path.read_text().splitlines())} lines"
            for path in tracked("*.h") if len(path.read_text().splitlines()) > HEADER_LINES]


def large_folders_have_a_map():
    folders = {}
    for path in tracked("*.c", "*.h", "*.py"):
        folders.setdefault(path.parent, set()).add(path)
    wrong = []
    for folder, files in folders.items():
        if len(files) <= FOLDER_FILES:
            continue
        readme = folder / "README.md"
        if not readme.exists():
            wrong.append(f"{folder.relative_to(TOP)}: {len(files)} files and no README.md")
            continue
        named = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`]*)`", readme.read_text()))))
        missing = sorted(path.name for path in files
                         if path.stem not in named and path.stem.removesuffix("_int") not in named)
        if missing:
            wrong.append(f"{readme.relative_to(TOP)} does not name {' '.join(missing)}")
    return wrong


# What a door still guards by itself: locks that it declares. What lives for a time, who is connected, logs and
# counters belong to src/serve/, where a lock is never held over storage, files or a peer.
DOOR_LOCKS = {
    "door/couch/wire/uuid.c": 1,       # the random part of ids in a row
    "door/mongo/txn/fail.h": 1,            # failures that tests have asked for
    "door/mongo/txn/hold.h": 1,            # which transaction has changed which document
    "door/redis/txn/latency.c": 1,         # samples of what took long
    "door/redis/txn/others.c": 1,          # what the thread that waits for other processes has to do
    "door/redis/txn/redis_int.h": 5,       # subscriptions, MONITOR, clients that wait, settings, scripts that run
    "door/redis/txn/stats.c": 1,           # words of errors
    "door/redis/txn/trackers.h": 1,        # what was read last of the processes whose clients track
    "door/redis/txn/tracking.c": 1,        # which clients have read which keys
    "door/redis/txn/waited.h": 1,          # the bell of that thread
}


def doors_have_few_locks():
    wrong = []
    for path in sources():
        name = path.relative_to(TOP).as_posix().removeprefix("src/")
        if not name.startswith("door/"):
            continue
        count = len(re.findall(r"\bpthread_(?:mutex|rwlock|spinlock|cond)_t\b", without_comments(path)))
        if count != DOOR_LOCKS.get(name, 0):
            wrong.append(f"src/{name} declares {count} locks, and DOOR_LOCKS has {DOOR_LOCKS.get(name, 0)}:"
                         " what all doors have belongs into src/serve/")
    return wrong


# Where clients' bytes pass, a growing buffer counts in a part of the memory of all connections (BUF_INIT_OF(), or a
# function that calls it) or has a short maximum that the compiler knows (BUF_SHORT()). These do neither:
UNCOUNTED_BUFFERS = {
    "door/couch/query/find_doc.c": 1,       # a name of the selector's paths, while it is compared
    "door/mongo/cmd/aggregate_count.c": 1,  # one document of a cursor: a field's name and a number
    "door/redis/txn/monitor.c": 1,          # a line of MONITOR, while a command is shown
    "door/redis/txn/notify.c": 1,           # a channel that is named after a key, while its message is written
}


UNCOUNTED_ARRAYS = {"lua/memory.c"}  # which counts what scripts take


def doors_take_memory_by_the_calls_of_net():
    """Parts and turns of the budget are made by net/memory.h, so that no door has rules of its own."""
    own = re.compile(r"\bbudget_(?:part_(?:init|last|end_lasting|admit|give)|enter|ask\w*|use_reserve|queue|leave"
                     r"|stall|unstall|make_room)\b")
    wrong = []
    for path in sources():
        name = path.relative_to(TOP).as_posix().removeprefix("src/")
        if not name.startswith(("door/", "mql/", "cql/", "jtree/", "lua/", "rdb/")):
            continue
        code = without_comments(path)
        count = len(re.findall(r"\bBUF_INIT\(|\bbuf_init\(", code))
        if count != UNCOUNTED_BUFFERS.get(name, 0):
            wrong.append(f"src/{name} has {count} buffers without a part, and UNCOUNTED_BUFFERS says"
                         f" {UNCOUNTED_BUFFERS.get(name, 0)}: BUF_INIT_OF() counts them, BUF_SHORT() bounds them")
        wrong += [f"src/{name}: {call[0]}() is net/memory.h's" for call in own.finditer(code)]
        wrong += [f"src/{name}: an array that grows by mem_realloc() counts nowhere: a buffer or an arena does"
                  for _ in re.finditer(r"\bmem_realloc\(", code) if name not in UNCOUNTED_ARRAYS]
    return wrong


def what_runs_is_told_by_one_registry():
    """How long operations take, which were slow and which run is for src/serve/ops.h, whatever the door."""
    around = re.compile(r"\bMETRIC_HISTOGRAMS?\b|\bMETRIC_KIND_HISTOGRAM\b"
                        r"|\bstruct recent slow\b|_slow_\w*_total|\"slow_(?:operation|request|command)\"")
    return [f"{path.relative_to(TOP)}:{code.count(chr(10), 0, found.start()) + 1}: {found[0].split('(')[0]}"
            for path in sources() if re.match(r"src/(door|http)/", path.relative_to(TOP).as_posix())
            for code in (without_comments(path),) for found in around.finditer(code)]


def doors_begin_and_end_operations():
    """Each door has its part of the registry, and shows what it does."""
    wrong = []
    for door in sorted(path.parent.name for path in tracked("src/door/*/meson.build")
                       if path.parent.parent.name == "door"):
        code = "\n".join(without_comments(path) for path in tracked(f"src/door/{door}/*.c", f"src/door/{door}/**/*.c"))
        wrong += [f"src/door/{door} calls no {what}" for what in ("OPS_DOOR", "op_begin|ops_begin", "op_end|ops_end",
                                                                 "ops_admit|visit_admit", "ops_moved", "settle_request|clients_leave|ops_leave",
                                                                 "ops_count", "ops_note_slow|clients_note_slow")
                  if not re.search(rf"\b(?:\w+_)?(?:{what})\(", code)]
    return wrong


def limits_are_asked_by_one_registry():
    """Limits by person and address are one count for all doors: only serve/ops asks them."""
    return [f"{path.relative_to(TOP)}: {found[0]}" for path in sources()
            if re.match(r"src/(door|http|replicator)/", path.relative_to(TOP).as_posix())
            for found in re.finditer(r'"access/limits\.h"|\blimits_(?:enter|take|work|leave)_?\w*\(|\bops_limit\(',
                                     without_comments(path))]


def open_transactions_are_counted_below_the_doors():
    """A transaction that stays open between requests is serve/open_txn.h's: how many there are, and when one is over.
    Others that doors begin by themselves only read; what writes runs in kv_run(), which ends it."""
    return [f"{path.relative_to(TOP)}: {found[0]}" for path in tracked("src/door/*.c", "src/door/**/*.c")
            for found in re.finditer(r"\bkv_begin\((?![^;]*\bKV_TX_READ_ONLY,)", without_comments(path))]


def people_on_connections_are_followed_below_the_doors():
    """Who is on a connection that stays is for serve/visit.h, which looks again as it admits each command. CouchDB's
    door has none but feeds: each of its requests has credentials, and POST /_session checks a password."""
    around = re.compile(r"\b(?:follow_look|follow_is_current|auth_login|auth_check|ops_admit|ops_admit_always"
                        r"|visitor_(?:login|look|enter|change|copy|reset|is_current)|visit_admit_beside)\(")
    return [f"{path.relative_to(TOP)}: {found[0]})" for path in tracked("src/door/*.c", "src/door/**/*.c")
            if not path.relative_to(TOP).as_posix().startswith("src/door/couch/")
            for found in around.finditer(without_comments(path))]


def work_ends_below_the_doors():
    """What ends a door's work, its client, its time, or whoever ends it, is serve/wanted.h's: an operation that begins
    has it, and a group of lanes by wanted_group_begin()."""
    around = re.compile(r"\bstep_set_owner\(|\bsteps?(?:->|\.)owner\b|\bnet_session_is_wanted\("
                        r"|\blimits_work_under\(|\btask_work_for\(")
    wrong = [f"{path.relative_to(TOP)}: {found[0]}" for path in tracked("src/door/*.c", "src/door/**/*.c")
             for found in around.finditer(without_comments(path))]
    for path in tracked("src/door/*.c", "src/door/**/*.c"):
        code = without_comments(path)
        if "lanes_enter(" in code and "wanted_group_begin(" not in code:
            wrong.append(f"{path.relative_to(TOP)} runs groups of lanes without wanted_group_begin()")
    return wrong


# What doors wait for by events and pauses of their own, other than wait_asking(), and how that ends. Waits for a
# client, for memory, for a worker and for the store have their ends below the doors.
DOOR_WAITS = {
    "door/couch/admin/follow.c": 1,        # a standby's question: with the exchange, which is asked each time
    "door/couch/admin/replicate.c": 1,     # the end of a replication: with the exchange
    "door/couch/admin/scrape.c": 1,        # the store's numbers: after SCRAPE_WAIT_MS
    "door/couch/list/feed_wait.c": 2,      # a feed, which looks at its rights
    "door/cql/flight.c": 3,                # statements of the connection, each of which ends by itself
    "door/mongo/txn/cluster_time.c": 1,    # visit_check_waiting() each time
    "door/mongo/txn/hold.c": 1,            # likewise
    "door/mongo/watch/watch_look.c": 2,    # likewise
    "door/redis/txn/effects_block.c": 1,   # a group that runs the client's command
    "door/redis/txn/user_change.c": 1,     # connections that look: USER_APPLY_MS
    "door/redis/txn/waited.c": 1,          # the thread that waits for other processes
}


def doors_wait_where_they_are_asked():
    """A wait that nobody ends is what a removed person, killOp and maxTimeMS would not end."""
    wrong = []
    for path in tracked("src/door/*.c", "src/door/**/*.c"):
        name = path.relative_to(TOP).as_posix().removeprefix("src/")
        count = len(re.findall(r"\b(?:event_wait(?:_any)?|wait_pause(?:_until)?)\(", without_comments(path)))
        if count != DOOR_WAITS.get(name, 0):
            wrong.append(f"src/{name} has {count} waits, and DOOR_WAITS says {DOOR_WAITS.get(name, 0)}:"
                         " wait_asking() (loop/asking.h) ends with the work that waits")
    return wrong


def strangers_have_short_requests():
    """Nobody gets memory before they are known: a connection has little of it until serve/visit.c says that somebody
    has logged in. CouchDB's door knows people by each request's headers."""
    return [f"{path.relative_to(TOP)}: {found[0]}" for path in tracked("src/*.c", "src/**/*.c")
            if path.relative_to(TOP).as_posix() not in ("src/serve/visit.c", "src/net/stream.c")
            for found in re.finditer(r"\bnet_stream_set_stranger\(|\bpart(?:->|\.)most_bytes\b(?= =[^=])",
                                     without_comments(path))]


# Who tells of refusals one by one, since an operation of theirs is many commands (a pipeline, a script).
REFUSES_ONE_BY_ONE = {"src/door/redis/txn/acl_log.c"}


def refusals_are_told_below_the_doors():
    """serve/visit.h writes the audit line of a command that nobody may run who has not logged in, and ops_end() that of
    an operation whose person has no right to it: no door ends one without saying how. In Redis's, what answers NOPERM
    has noted it in ACL LOG, which tells."""
    wrong = []
    for path in tracked("src/door/*.c", "src/door/**/*.c"):
        name, code = path.relative_to(TOP).as_posix(), without_comments(path)
        wrong += [f"{name}: audit_refused()" for _ in re.finditer(r"\baudit_refused\(", code)]
        # What changes people for other doors than CouchDB's is given to them (door/people.h), and tells of it.
        wrong += [f"{name}: audit_changed()" for _ in re.finditer(r"\baudit_changed\(", code)
                  if not name.startswith("src/door/couch/")]
        wrong += [f"{name}: visit_refuse()" for _ in re.finditer(r"\bvisit_refuse\(", code)
                  if name not in REFUSES_ONE_BY_ONE]
        if re.search(r"\"NOPERM ", code) and not re.search(r"\b(?:acl_log_add|txn_denied)\(", code):
            wrong.append(f"{name} answers NOPERM, and nobody notes it")
    return wrong


def ends_of_tuples_are_not_handed_on():
    """What a caller takes for "there is none" would be a record that was cut: tuple_next_elem() calls that corrupt."""
    return [f"{path.relative_to(TOP)}: TRY(tuple_next())" for path in tracked("src/*.c", "src/**/*.c")
            if "TRY(tuple_next(" in without_comments(path)]


def buffers_hand_their_failure_on():
    """What is made of a buffer without memory lacks something, and is none: buf_append_buf(), buf_set_buf(),
    buf_dup(), buf_copy()."""
    whole = r"(?:[^,()]|\([^()]*\))+, buf_str\([^()]+\)\)"
    return [f"{path.relative_to(TOP)}: {found[0]}" for path in tracked("src/*.[ch]", "src/**/*.[ch]")
            if path.relative_to(TOP).as_posix() != "src/base/buf.h"
            for found in re.finditer(rf"\b(?:buf_append_str|buf_set|arena_dup)\({whole}", without_comments(path))]


def pauses_are_pauses():
    """A wait for nothing but time is wait_pause() (loop/pause.h), and not an event that nobody sets."""
    return [f"{path.relative_to(TOP)}: {found[0]}" for path in tracked("src/*.c", "src/**/*.c")
            if path.relative_to(TOP).as_posix() != "src/loop/wait.c"
            for code in (without_comments(path),)
            for found in re.finditer(r"\bstruct event (\w+);", code)
            if found[1] in set(re.findall(r"\bevent_init\(&(\w+)\)", code))
            and not re.search(rf"(?<!event_init\()(?<!event_wait\()&{found[1]}\b|(?:->|\.){found[1]}\b", code)]


def what_clients_make_long_is_sorted_in_steps():
    """loop/sort.h lets others have their turns, and ends with whoever waits; qsort() does neither."""
    return [path.relative_to(TOP).as_posix() for path in sources()
            if re.match(r"src/(door|mql|cql|jtree|lua|rdb|index/(plan|selector|view))/", path.relative_to(TOP).as_posix())
            and "qsort(" in without_comments(path)]


def members_of_values_are_read_by_their_type():
    """A member of a bson_value may be written, or be where a call writes; reading is for bson_text()
    and its kin, which know whether the value has it."""
    reads = re.compile(r"(&[^&,;(){}]*)?(?:\.|->)as_(?:text|more|truth|n|d|decimal)\b(?!(?:\.\w+)? [-+|&^]?=[^=])")
    return [f"{path.relative_to(TOP)}:{code.count(chr(10), 0, found.start()) + 1}"
            for path in sources() if path.relative_to(TOP).as_posix() not in ("src/bson/bson.h", "src/bson/read.c")
            for code in (without_comments(path),) for found in reads.finditer(code) if not found[1]]


# The conversions that log_event() has (base/log.c): another one ends the line there, with a "?".
LOG_CONVERSION = re.compile(r"%(?:(?:\.\*)?s|d|u|ld|lld|llu|zu)")


def literals_of(text):
    """The texts between quotes of C's source, as one."""
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text))


def call_at(code, start):
    """The arguments of the call whose parenthesis opens at `start`: texts may have parentheses, too."""
    depth = 0
    for found in re.finditer(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[()]", code[start:]):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if not depth:
            return code[start:start + found.end()]
    return code[start:]


def arguments_of(call):
    """The arguments of a call in parentheses."""
    found, depth, start = [], 0, 1
    for at in re.finditer(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[(){},]", call):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(at[0], 0)
        if (at[0] == "," and depth == 1) or not depth:
            found.append(call[start:at.start()])
            start = at.end()
    return found


def lines_of_the_log_use_what_it_can_write():
    """The compiler compares arguments with formats, and knows all of printf's conversions: log_event() has some."""
    wrong = []
    for path in sources():
        code = without_comments(path)
        for found in re.finditer(r"\blog_event(?=\()", code):
            formats = literals_of(arguments_of(call_at(code, found.end()))[2])
            left = LOG_CONVERSION.sub("", formats)
            wrong += [f"{path.relative_to(TOP)}:{code.count(chr(10), 0, found.start()) + 1}: log_event() cannot write"
                      f" '{left[at.start():at.start() + 4]}'" for at in re.finditer("%", left)]
    return wrong


def large_members_are_left_alone_by_one_header():
    """What clears a struct but for some of it says so by base/clear.h, which looks at what is between."""
    return [f"{path.relative_to(TOP)}:{code.count(chr(10), 0, found.start()) + 1}"
            for path in sources() if path.relative_to(TOP).as_posix() != "src/base/clear.h"
            for code in (without_comments(path),)
            for found in re.finditer(r"\bmemset(?=\()", code) if "offsetof(" in call_at(code, found.end())]


def nothing_is_left_to_do():
    marker = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    return [f"{path.relative_to(TOP)}:{number}"
            for path in sources() + tracked("*.md", "*.py", "*.mjs")
            if path.name != pathlib.Path(__file__).name
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if marker.search(line)]


def limits_are_told_as_they_are():
    """The numbers of docs/LIMITS.md that have the name of a constant in src/."""
    source = "\n".join(path.read_text() for path in tracked("src/*.h"))
    wrong = []
    for line in (TOP / "docs/LIMITS.md").read_text().splitlines():
        row = re.fullmatch(r"\| .* \| ([\d,]+)(?: \w+)? \| `([A-Z_]+)` \|", line)
        if not row:
            continue
        found = re.search(rf"\b{row[2]} = ([\d\s*<]+)[,}}\s/]", source)
        # Products and shifts of numbers, and nothing else.
        if not found or eval(found[1]) != int(row[1].replace(",", "")):
            wrong.append(f"{row[2]} is {found[1].strip() if found else 'nowhere'}")
    return wrong


def promises_are_kept_below_the_doors():
    """The files that docs/ARCHITECTURE.md names as those that keep a promise to all doors."""
    text = (TOP / "docs/ARCHITECTURE.md").read_text()
    table = text.partition("\n## Promises to all doors\n")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    kept = [re.findall(r"`([^`]+)`", row[2]) for row in rows]
    return [f"no file keeps:{row[1]}" for row, names in zip(rows, kept) if not names] + [
        name for names in kept for name in names
        if name.startswith("door/") or not (TOP / "src" / name).exists()] + ([] if rows else ["there is no table"])


def versions_are_told_alike():
    """CHANGELOG.md begins with the version that is built."""
    built = re.search(r"^  version: '([^']+)'", (TOP / "meson.build").read_text(), re.M)[1]
    told = re.search(r"^## (\S+)$", (TOP / "CHANGELOG.md").read_text(), re.M)
    return [] if told and told[1] == built else [f"{built} is not the first section of CHANGELOG.md"]


def headers_have_guards_of_their_own():
    wrong = []
    seen = {}
    for path in tracked("*.h"):
        guard = re.search(r"#ifndef (FROND_\w+_H)\n#define \1\n", path.read_text())
        name = str(path.relative_to(TOP))
        if not guard:
            wrong.append(f"{name}: no FROND_..._H guard")
        elif seen.setdefault(guard.group(1), name) != name:
            wrong.append(f"{name}: shares its guard with {seen[guard.group(1)]}")
    return wrong


class Formatted:
    """The hashes of files that clang-format has found nothing in, with its version and its settings: kept for all
    clones, since it takes twenty seconds to look at all files again."""

    def __init__(self):
        home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        self.file = pathlib.Path(home, "frond", "formatted")
        version = subprocess.run(["clang-format", "--version"], capture_output=True, check=True).stdout
        self.how = version + (TOP / ".clang-format").read_bytes()
        self.known = self.file.read_text().split() if self.file.exists() else []

    def hash(self, path):
        return hashlib.sha256(self.how + path.read_bytes()).hexdigest()

    def add(self, hashes):
        """A new file takes the place of the old one: a run beside this one reads the one or the other."""
        new = self.file.with_suffix(f".{os.getpid()}")
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text("\n".join([*self.known, *hashes][-FORMATTED_KEPT:]) + "\n")
        new.replace(self.file)


def code_is_formatted():
    if not shutil.which("clang-format"):
        return None
    formatted = Formatted()
    known = set(formatted.known)
    hashes = {path: formatted.hash(path) for path in sources()}
    unknown = [path for path in hashes if hashes[path] not in known]
    if not unknown:
        return []
    out = subprocess.run(["clang-format", "--dry-run", *map(str, unknown)], cwd=TOP,
                         capture_output=True, text=True, check=False)
    wrong = {line.split(":")[0] for line in out.stderr.splitlines() if "[-Wclang-format" in line}
    if out.returncode == 0:
        formatted.add([hashes[path] for path in unknown if str(path) not in wrong])
    return sorted(path.replace(f"{TOP}/", "") for path in wrong)


# What a program that was started in the tree by hand leaves behind would otherwise be part of the next commit.
TOP_LEVEL = {".ci", ".clang-format", ".clang-tidy", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
             "README.md", "bench", "docs", "fuzz", "lib", "meson.build", "meson_options.txt", "packaging", "pg", "scripts",
             "src", "tests"}


def nothing_lies_about():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    return [str(path) for path in map(pathlib.Path, listed.split("\0")[:-1])
            if path.parts[0] not in TOP_LEVEL or any(re.search(r"^-|\s", part) for part in path.parts)]


CHECKS = [nothing_lies_about, rooms_are_in_order, includes_point_downwards, headers_do_not_include_each_other,
          files_do_not_call_each_other, no_c_file_is_included, lines_fit, files_stay_readable, headers_stay_short,
          large_folders_have_a_map, doors_have_few_locks, doors_take_memory_by_the_calls_of_net,
          what_runs_is_told_by_one_registry, doors_begin_and_end_operations,
          limits_are_asked_by_one_registry, open_transactions_are_counted_below_the_doors,
          people_on_connections_are_followed_below_the_doors,
          work_ends_below_the_doors, doors_wait_where_they_are_asked, strangers_have_short_requests, refusals_are_told_below_the_doors,
          ends_of_tuples_are_not_handed_on, buffers_hand_their_failure_on, pauses_are_pauses, what_clients_make_long_is_sorted_in_steps,
          members_of_values_are_read_by_their_type, lines_of_the_log_use_what_it_can_write,
          large_members_are_left_alone_by_one_header, nothing_is_left_to_do, limits_are_told_as_they_are,
          promises_are_kept_below_the_doors, versions_are_told_alike,
          headers_have_guards_of_their_own, code_is_formatted]


def main():
    print(f"1..{len(CHECKS)}")
    failed = False
    for number, check in enumerate(CHECKS, 1):
        wrong = check()
        if wrong is None:
            print(f"ok {number} - {check.__name__} # SKIP clang-format is not installed")
            continue
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {check.__name__}")
        for line in wrong[:20]:
            print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
