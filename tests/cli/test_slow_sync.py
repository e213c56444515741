"""What bench/redis.py preloads to make syncs take longer does so in both servers; and how writers share them."""

import importlib.util
import pathlib
import select
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from harness import FROND, Skip, equal, main, test  # noqa: E402

SPEC = importlib.util.spec_from_file_location("bench_redis", BENCH / "redis.py")
bench = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bench)

SYNC_MS = 300
WRITES = 2
CLIENTS = 20
SHARED_SYNCS_MS = 20, 100, 500
SHARED_WRITES = 1000


def writes_wait_for_syncs(server):
    """Each write is one sync at least; without the library one takes a few milliseconds at most."""
    server.start()
    try:
        with bench.Client(server.redis_port) as client:
            equal(client.ask("SET", "first", "1"), b"OK")
            began = time.monotonic()
            for i in range(WRITES):
                equal(client.ask("SET", "key", i), b"OK")
            equal(time.monotonic() - began >= WRITES * SYNC_MS / 1000, True)
    finally:
        server.stop()


@test
def syncs_of_frond_take_longer(cwd):
    env = bench.slow_sync(cwd, SYNC_MS)
    writes_wait_for_syncs(bench.Frond(FROND, pathlib.Path(cwd) / "frond", env=env))


@test
def syncs_of_redis_server_take_longer(cwd):
    if not bench.REDIS_SERVER:
        raise Skip("there is no redis-server here: apt-get install redis-tools")
    env = bench.slow_sync(cwd, SYNC_MS)
    writes_wait_for_syncs(bench.Redis(pathlib.Path(cwd) / "redis", "always", env))


def syncs_of_writers(server, sync_ms):
    """How many syncs of that length the writes of clients take that each have keys of their own."""
    clients = {}
    for i in range(CLIENTS):
        client = bench.Client(server.redis_port)
        clients[client.socket.fileno()] = (client, f"key{i}:")
    began = time.monotonic()
    sent = answered = 0
    for client, key in clients.values():
        client.socket.sendall(client.encode(["SET", f"{key}{sent}", "x"]))
        sent += 1
    while answered < sent:
        for fd in select.select(list(clients), [], [])[0]:
            client, key = clients[fd]
            equal(client.read(), b"OK")
            answered += 1
            if sent < SHARED_WRITES:
                client.socket.sendall(client.encode(["SET", f"{key}{sent}", "x"]))
                sent += 1
    took = time.monotonic() - began
    for client, _ in clients.values():
        client.socket.close()
    return took * 1000 / sync_ms


@test
def writers_of_different_keys_share_each_sync(cwd):
    """
    Two groups that took turns would need twice as many, however long a sync takes. Where the machine
    is busy, the clients need a longer one to write again while it lasts.
    """
    syncs = []
    for sync_ms in SHARED_SYNCS_MS:
        env = bench.slow_sync(cwd, sync_ms)
        server = bench.Frond(FROND, pathlib.Path(cwd) / f"frond-{sync_ms}", env=env)
        server.start()
        try:
            syncs.append(syncs_of_writers(server, sync_ms))
        finally:
            server.stop()
        if syncs[-1] < 1.6 * SHARED_WRITES / CLIENTS:
            return
    raise AssertionError(f"{SHARED_WRITES} writes of {CLIENTS} clients took {syncs} syncs")


main()
