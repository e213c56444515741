"""What bench/redis.py preloads to make syncs take longer does so in both servers."""

import importlib.util
import pathlib
import shutil
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
    if not shutil.which("redis-server"):
        raise Skip("there is no redis-server here: apt-get install redis-server")
    env = bench.slow_sync(cwd, SYNC_MS)
    writes_wait_for_syncs(bench.Redis(pathlib.Path(cwd) / "redis", "always", env))


main()
