#!/usr/bin/env python3
"""What the scheme of a collection costs: packed against exploded, by pymongo at MongoDB's door.

    bench/mongo_schemes.py [--build DIR] [--rounds N] [--count N] [--python PYTHON]

Documents of 1 KB, 5 KB and 500 KB are inserted, found, found by one field, and one field of them is
changed, each N times and on disk before it is answered. The schemes take turns in each round; the
median of the rounds' processor time that the server takes for an operation is shown, which another
load of the machine changes less than the time that passes. The last line is what one field's change
in 500 KB costs beside one in 5 KB, exploded.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import mongo
import sides

SIZES = {"1 KB": 18, "5 KB": 100, "500 KB": 10000}  # members of about 50 bytes
SCHEMES = ("packed", "exploded")
OPERATIONS = ("insert", "find", "find a field", "update a field")

CLIENT = """
import json, os, sys, time
import pymongo
port, pid, members, count, scheme = (*map(int, sys.argv[1:5]), sys.argv[5])
db = pymongo.MongoClient("127.0.0.1", port, directConnection=True, retryWrites=False).schemes
db.c.drop()
db.create_collection("c", storageEngine={"frond": {"scheme": scheme}})
document = {f"member {n:05}": "the value of this member" if n % 2 else n for n in range(members)}
def cpu():
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
def insert(n):
    db.c.insert_one({"_id": n, **document})
def find(n):
    assert len(db.c.find_one({"_id": n})) == members + 1
def find_field(n):
    assert db.c.find_one({"_id": n}, {"member 00006": 1})["member 00006"] == 6
def update(n):
    assert db.c.update_one({"_id": n}, {"$inc": {"member 00004": 1}}).modified_count == 1
answer = {}
for name, run in (("insert", insert), ("find", find), ("find a field", find_field),
                  ("update a field", update)):
    before, done, begin = cpu(), 0, time.perf_counter()
    # The clock of a process ticks a hundred times a second: long enough for some digits.
    while done < count or cpu() - before < 0.3:
        if name == "insert" and done == count:
            db.c.delete_many({})
            before, done = cpu(), 0
            count *= 2
        run(done if name == "insert" else done % count)
        done += 1
    answer[name] = [(cpu() - before) / done * 1e6, (time.perf_counter() - begin) / done * 1e6]
print(json.dumps(answer))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(mongo.TOP / "build"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=20, help="documents, at least")
    parser.add_argument("--python", default="/usr/bin/python3", help="an interpreter with pymongo")
    o = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="frond-schemes-"))
    frond = mongo.Frond(str(pathlib.Path(o.build).resolve() / "frond"), work / "frond")
    found = {}
    try:
        frond.start()
        for _ in range(o.rounds):
            for size, members in SIZES.items():
                for scheme in SCHEMES:
                    done = subprocess.run(
                        [o.python, "-c", CLIENT, str(frond.mongo_port), str(frond.pids()[0]),
                         str(members), str(o.count), scheme], stdout=subprocess.PIPE, text=True,
                        check=False)
                    if done.returncode:
                        sides.fail(f"{scheme}, {size}: the client failed")
                    for name, pair in json.loads(done.stdout).items():
                        found.setdefault((size, name, scheme), []).append(pair)
    finally:
        frond.stop()
        shutil.rmtree(work, ignore_errors=True)
    cost = {key: statistics.median(cpu for cpu, _ in pairs) for key, pairs in found.items()}
    print("| CPU µs of the server | " + " | ".join(SCHEMES) + " |\n|---|---:|---:|")
    for size in SIZES:
        for name in OPERATIONS:
            print(f"| {size}: {name} | " +
                  " | ".join(f"{cost[size, name, scheme]:,.0f}" for scheme in SCHEMES) + " |")
    ratio = cost["500 KB", "update a field", "exploded"] / cost["5 KB", "update a field", "exploded"]
    print(f"update of a field, exploded, 500 KB / 5 KB: {ratio:.2f}×")


if __name__ == "__main__":
    sys.exit(main())
