"""Tables that are moved from an embedded store to a cluster and back, with everything that one may have, a past, indexes
and timestamps of clients. Needs a cluster; see FROND_TEST_FDB."""

from harness import cluster, equal, main, ok, test
from tables_made import (EVERYTHING, PAST_TABLES, QUERIES, Cluster, Door, look_at_past, make_everything, make_past, url,
                         whole)


def move(cwd, from_, to, dbs):
    for db in dbs:
        ok("move", "--quiet", "--from", url(from_), "--to", url(to), f"table:{db}", cwd=cwd)


def seen(door, texts):
    return [[repr(row) for row in door(text)] for text in texts]


@test
def tables_are_moved_to_a_cluster_and_back(cwd):
    there = cluster()
    with Door(cwd) as door:
        make_everything(door)
        before = seen(door, QUERIES)
        questions = make_past(door)
        past = seen(door, questions)
    for from_, to in (("data", there), (there, "back")):
        move(cwd, from_, to, (*EVERYTHING, *PAST_TABLES))
        whole(cwd, to)
        with Door(cwd, to) as door:
            equal(seen(door, QUERIES), before)
            equal(seen(door, questions), past)
    look_at_past(cwd, "back", questions, past)


main("FROND_TEST_FDB names no cluster" if not cluster() else "needs python3-cassandra" if Cluster is None else None)
