"""Where pipelines put what does not fit their memory: files without names, also after a kill, and
what a client sees when there is no room. The disks are small file systems in memory, which only a
process that may mount them can have."""

import os
import pathlib

from disk import Disk
from harness import contains, equal, main, run, test
from mongo import Client
from mongo_server import MongoServer

MIB = 1 << 20
DOCS = 60
SORT = [{"$sort": {"text": -1, "n": 1}}, {"$project": {"n": 1}}]


class Mongo(MongoServer):
    def __init__(self, cwd, directory, **kwargs):
        super().__init__(cwd, ini=f"[mongo]\nspill_directory = {directory}\n", **kwargs)


def fill(c):
    for n in range(DOCS):
        c({"insert": "c", "documents": [{"_id": n, "n": n, "text": f"{n % 7}" * MIB}]}, "d")


def used(path):
    stat = os.statvfs(path)
    return (stat.f_blocks - stat.f_bfree) * stat.f_frsize


def sort(c, **members):
    return {"aggregate": "c", "pipeline": SORT, "cursor": {"batchSize": 0}, **members}


@test
def what_is_put_aside_lies_where_the_setting_says_and_has_no_name(cwd):
    with Disk(cwd / "spill", 128 * MIB) as _, Mongo(cwd, "spill") as server, Client(server.port) as c:
        fill(c)
        # $facet reads all before it answers, so the batch that is asked for next has spilled.
        answer = c(sort(c), "d")["cursor"]
        batch = c({"getMore": answer["id"], "collection": "c", "batchSize": 1}, "d")["cursor"]["nextBatch"]
        equal(batch, [{"_id": 6, "n": 6}])
        assert used(cwd / "spill") > 10 * MIB, used(cwd / "spill")
        equal(os.listdir(cwd / "spill"), [])
        c({"killCursors": "c", "cursors": [answer["id"]]}, "d")
        assert used(cwd / "spill") < MIB, used(cwd / "spill")
        # A process that is killed leaves nothing, either.
        answer = c(sort(c), "d")["cursor"]
        c({"getMore": answer["id"], "collection": "c", "batchSize": 1}, "d")
        assert used(cwd / "spill") > 10 * MIB
        server.process.kill()
        server.process.wait()
        assert used(cwd / "spill") < MIB, used(cwd / "spill")


@test
def a_full_disk_ends_the_command_and_names_the_directory(cwd):
    with Disk(cwd / "spill", 8 * MIB) as _, Mongo(cwd, "spill") as server, Client(server.port) as c:
        fill(c)
        for _ in range(2):
            answer = c.fails({**sort(c), "cursor": {}}, "d")
            equal((answer["code"], answer["codeName"]), (14031, "OutOfDiskSpace"))
            contains(answer["errmsg"], "the temporary file of $sort in spill: No space left on device")
            assert used(cwd / "spill") < MIB, used(cwd / "spill")
        # Others go on, and without the disk it is refused as it would be anyway.
        equal(c({"count": "c"}, "d")["n"], DOCS)
        equal(c.fails({**sort(c), "cursor": {}, "allowDiskUse": False}, "d")["code"], 292)


def damage(server):
    """Other bytes in all of the one file without a name that the server has open."""
    links = [link for link in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()
             if "/spill/" in os.readlink(link)]
    equal(len(links), 1)
    with open(links[0], "r+b") as file:
        for _ in range(0, os.fstat(file.fileno()).st_size, MIB):
            file.write(b"\xff" * MIB)


@test
def a_damaged_file_ends_the_command_alone(cwd):
    with Disk(cwd / "spill", 128 * MIB) as _, Mongo(cwd, "spill") as server, Client(server.port) as c:
        fill(c)
        answer = c(sort(c), "d")["cursor"]
        c({"getMore": answer["id"], "collection": "c", "batchSize": 1}, "d")
        damage(server)
        answer = c.fails({"getMore": answer["id"], "collection": "c", "batchSize": DOCS}, "d")
        contains(answer["errmsg"], "the temporary file of $sort in spill has other bytes than were written to it")
        equal(c({"count": "c"}, "d")["n"], DOCS)
        assert used(cwd / "spill") < MIB, used(cwd / "spill")


@test
def a_directory_that_cannot_be_used_is_refused_at_the_start(cwd):
    (cwd / "ini").write_text("[mongo]\nspill_directory = missing\n")
    result = run("serve", "--http", "127.0.0.1:0", "--mongo", "127.0.0.1:0", "--config", "ini", cwd=cwd)
    equal(result.returncode, 2)
    contains(result.stderr, 'spill_directory of [mongo], "missing": No such file or directory')


main()
