"""Clients of Redis that Debian has, unchanged: redis-cli, redis-benchmark, hiredis, redis-py.

Each is named as skipped where it is not installed: redis-tools, libhiredis-dev, python3-redis.
"""

import pathlib
import re
import shutil
import subprocess
import sys

from harness import Server, Skip, contains, equal, main, test

PROGRAMS = pathlib.Path(__file__).resolve().parent / "redis_clients"
HIREDIS = sys.argv[2] if len(sys.argv) > 2 else None


class Redis(Server):
    """A frond with Redis's door, and one with TLS beside it, on free ports."""

    def __init__(self, cwd):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", cwd / "cert.key",
             "-out", cwd / "cert.pem"], check=True, capture_output=True)
        (cwd / "ini").write_text(
            f"[ssl]\ncert_file = {cwd}/cert.pem\nkey_file = {cwd}/cert.key\n")
        super().__init__(cwd, "--config", "ini", "--redis", "127.0.0.1:0", "--rediss",
                         "127.0.0.1:0", "--no-sync")
        self.cert = cwd / "cert.pem"
        self.port, self.tls = [
            re.search(rf"event={event} address=127\.0\.0\.1:(\d+)", self.read_log()).group(1)
            for event in ("redis", "rediss")]

    def cli(self, *args, stdin="", tls=False):
        options = ["--tls", "--cacert", self.cert, "-h", "localhost", "-p", self.tls] if tls \
            else ["-p", self.port]
        return said("redis-cli", *options, *args, stdin=stdin)


def said(program, *args, stdin=""):
    if not shutil.which(program):
        raise Skip(f"there is no {program} here: apt-get install redis-tools")
    result = subprocess.run([program, *args], input=stdin, capture_output=True, text=True,
                            timeout=120)
    equal((result.returncode, result.stderr), (0, ""))
    return result.stdout


@test
def redis_cli_runs_commands_and_shows_answers(cwd):
    with Redis(cwd) as server:
        equal(server.cli(stdin="SET a 1\nINCR a\nRPUSH l x y\nLRANGE l 0 -1\nGET none\nINCR l\n"),
              "OK\n2\n2\nx\ny\n\nWRONGTYPE Operation against a key holding the wrong kind of value"
              "\n\n")
        equal(server.cli("--no-raw", "HGETALL", "none"), "(empty array)\n")
        equal(server.cli("-3", "--no-raw", "HELLO", "3").splitlines()[0], '1# "server" => "redis"')
        equal(server.cli("-x", "SET", "text", stdin="from stdin"), "OK\n")
        equal(server.cli("GET", "text"), "from stdin\n")
        contains(server.cli("--json", "HGETALL", "none"), "{}")


@test
def redis_cli_loads_scans_and_measures(cwd):
    with Redis(cwd) as server:
        protocol = "".join(f"*3\r\n$3\r\nSET\r\n$7\r\nkey{i:04}\r\n$1\r\nx\r\n" for i in range(2000))
        contains(server.cli("--pipe", stdin=protocol), "errors: 0, replies: 2000")
        keys = server.cli("--scan", "--pattern", "key*").split()
        equal(sorted(keys), [f"key{i:04}" for i in range(2000)])
        contains(server.cli("--bigkeys"), "2000 strings with 2000 bytes")
        (cwd / "add.lua").write_text("return redis.call('INCRBY', KEYS[1], ARGV[1])")
        equal(server.cli("--eval", cwd / "add.lua", "n", ",", "5"), "5\n")


@test
def redis_cli_talks_over_tls(cwd):
    with Redis(cwd) as server:
        equal(server.cli(stdin="SET a 1\nGET a\n", tls=True), "OK\n1\n")
        equal(server.cli("GET", "a"), "1\n")
        big = "x" * 300000
        equal(server.cli("-x", "SET", "big", stdin=big, tls=True), "OK\n")
        equal(server.cli("GET", "big", tls=True), big + "\n")


@test
def redis_benchmark_runs(cwd):
    with Redis(cwd) as server:
        out = said("redis-benchmark", "-p", server.port, "-n", "200", "-c", "5", "-P", "4", "-q",
                   "-t", "set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset")
        equal(len(re.findall(r"requests per second", out)), 11)


@test
def hiredis_runs(cwd):
    if not HIREDIS:
        raise Skip("there is no hiredis here: apt-get install libhiredis-dev")
    with Redis(cwd) as server:
        equal(said(HIREDIS, server.port), "")


def python_redis(*where):
    if subprocess.run([sys.executable, "-c", "import redis.asyncio"], capture_output=True).returncode:
        raise Skip("there is no redis-py here: apt-get install python3-redis")
    equal(said(sys.executable, "-B", PROGRAMS / "python_redis.py", *where), "")


@test
def python_redis_runs(cwd):
    with Redis(cwd) as server:
        python_redis(server.port)


@test
def python_redis_runs_over_tls(cwd):
    with Redis(cwd) as server:
        python_redis(server.tls, server.cert)


main()
