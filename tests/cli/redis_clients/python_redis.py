"""redis-py, as programs use it. Arguments: the port, and a certificate to trust, for TLS."""

import asyncio
import sys
import threading

import redis
import redis.asyncio

PORT = int(sys.argv[1])
TLS = {"ssl": True, "ssl_ca_certs": sys.argv[2]} if len(sys.argv) > 2 else {}


def client(**options):
    return redis.Redis(host="localhost" if TLS else "127.0.0.1", port=PORT, decode_responses=True,
                       **TLS, **options)


def types(r):
    assert r.ping()
    assert r.set("text", "grüße", ex=100) and r.get("text") == "grüße" and r.ttl("text") == 100
    assert r.set("text", "other", nx=True) is None
    assert r.hset("hash", mapping={"a": 1, "b": 2}) == 2
    assert r.hgetall("hash") == {"a": "1", "b": "2"}
    assert r.rpush("list", "a", "b") == 2 and r.lrange("list", 0, -1) == ["a", "b"]
    assert r.sadd("set", "x", "y") == 2 and r.smembers("set") == {"x", "y"}
    assert r.zadd("zset", {"one": 1, "two": 2.5}) == 2
    assert r.zrange("zset", 0, -1, withscores=True) == [("one", 1.0), ("two", 2.5)]
    assert r.info("server")["redis_version"] == "7.0.15"
    assert r.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert r.xlen("stream") == 0
    entry = r.xadd("stream", {"a": "1"}, maxlen=100)
    assert r.xread({"stream": 0}) == [["stream", [(entry, {"a": "1"})]]]
    assert r.xinfo_stream("stream")["length"] == 1
    assert r.xrange("stream") == [(entry, {"a": "1"})] and r.xdel("stream", entry) == 1
    try:
        r.incr("list")
        raise AssertionError("a list was counted up")
    except redis.ResponseError as error:
        assert str(error).startswith("WRONGTYPE"), error


def pipelines(r):
    with r.pipeline(transaction=False) as p:
        for i in range(1000):
            p.set(f"key:{i}", i)
        assert p.execute() == [True] * 1000
    assert sorted(r.scan_iter("key:*", count=50)) == sorted(f"key:{i}" for i in range(1000))

    def add(p):
        n = int(p.get("n") or 0)
        p.multi()
        p.set("n", n + 1)

    threads = [threading.Thread(target=lambda: client().transaction(add, "n")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert r.get("n") == "8"


def scripts(r):
    take = r.register_script("local n = redis.call('DECRBY', KEYS[1], ARGV[1]); "
                             "return {KEYS[1], n, cjson.encode({n = n})}")
    assert take(keys=["n"], args=[3]) == ["n", 5, '{"n":5}']
    r.script_flush()
    assert take(keys=["n"], args=[5]) == ["n", 0, '{"n":0}']
    with r.lock("lock", timeout=10):
        assert not r.lock("lock").acquire(blocking=False)
    assert not r.exists("lock")


def messages(r):
    with r.pubsub(ignore_subscribe_messages=True) as p:
        p.subscribe("news")
        p.psubscribe("w*")
        while p.get_message(timeout=0.01):
            pass
        assert r.publish("news", "one") == 1 and r.publish("weather", "rain") == 1
        got = []
        while len(got) < 2:
            message = p.get_message(timeout=10)
            if message:
                got.append((message["type"], message["data"]))
        assert got == [("message", "one"), ("pmessage", "rain")], got


async def waiting():
    r = redis.asyncio.Redis(host="localhost" if TLS else "127.0.0.1", port=PORT,
                            decode_responses=True, **TLS)
    element = asyncio.create_task(r.blpop("queue"))
    await r.rpush("queue", "job")
    assert await element == ("queue", "job")
    assert await r.blpop("queue", timeout=0.01) is None
    await r.close()


with client() as r:
    for part in (types, pipelines, scripts, messages):
        part(r)
asyncio.run(waiting())
