"""Debian's driver for Cassandra in Python at work: prints how many requests a second it gets done.

    cql_driver.py PORT OPERATION SECONDS ROWS

OPERATION: insert or select, one after the other; insert-32 or select-32, 32 under way. The tables are bench/cql.py's.
"""

import sys
import time

from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args

TOGETHER = 32
ROUND = 320  # requests between two looks at the clock


def main():
    port, operation, seconds, rows = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    cluster = Cluster(["127.0.0.1"], port=port, protocol_version=4, compression=False)
    session = cluster.connect()
    if operation.startswith("insert"):
        statement = session.prepare("INSERT INTO bench.d (k, a, b, c, d, e, f) VALUES (?, ?, ?, ?, ?, ?, ?)")
    else:
        statement = session.prepare("SELECT * FROM bench.t WHERE k = ?")

    def values(n):
        return (n, *["x" * 166] * 6) if operation.startswith("insert") else (n * 7919 % rows,)

    def one_by_one(n):
        for i in range(n, n + ROUND):
            session.execute(statement, values(i))

    def together(n):
        made = [values(i) for i in range(n, n + ROUND)]
        execute_concurrent_with_args(session, statement, made, concurrency=TOGETHER)

    run = together if operation.endswith(f"-{TOGETHER}") else one_by_one
    run(0)
    done, begin = ROUND, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        run(done)
        done += ROUND
    print((done - ROUND) / (time.perf_counter() - begin))
    cluster.shutdown()


main()
