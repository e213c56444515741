#!/usr/bin/env python3
"""How long a connection may be silent: a promise to all doors, whose settings each of them keeps."""

import re
import socket
import struct

from harness import Server, contains, equal, main, test

DAY_MS, SOON_MS = 86400000, 300
PATIENCE_S = 30  # less than a door would wait that did not know the settings
# The beginnings of requests that do not go on. Redis's door waits for the rest as long as redis-server does.
HALVES = {
    "http": b"POST /_session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{",
    "mongo": struct.pack("<iii", 100, 1, 0),
    "cql": b"\x04\x00\x00\x00\x05",
    "rows": struct.pack(">I", 100),
}

DOORS = (*HALVES, "redis")


def serve(cwd, idle_ms, body_ms):
    (cwd / "ini").write_text(f"[frond]\nidle_timeout_ms = {idle_ms}\nbody_timeout_ms = {body_ms}\n")
    doors = [word for door in DOORS if door != "http" for word in (f"--{door}", "127.0.0.1:0")]
    return Server(cwd, "--config", "ini", *doors)


def connect(server, door):
    if door == "http":
        port = server.url.rsplit(":", 1)[1]
    else:
        port = re.search(rf"event={door} address=127\.0\.0\.1:(\d+)", server.read_log()).group(1)
    return socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE_S)


def read_to_its_end(connection):
    answer = b""
    try:
        while piece := connection.recv(65536):
            answer += piece
    except ConnectionResetError:
        pass
    return answer


@test
def half_a_request_is_waited_for_as_long_as_is_set(cwd):
    with serve(cwd, DAY_MS, SOON_MS) as server:
        for door, half in HALVES.items():
            with connect(server, door) as connection:
                connection.sendall(half)
                answer = read_to_its_end(connection)
                if door == "http":
                    contains(answer.decode(), "body_timeout_ms, 300 ms")
        equal(server.stop(), 0)


@test
def who_asks_for_nothing_is_kept_as_long_as_is_set(cwd):
    with serve(cwd, SOON_MS, DAY_MS) as server:
        for door in DOORS:
            with connect(server, door) as connection:
                equal(read_to_its_end(connection), b"")
        equal(server.stop(), 0)


if __name__ == "__main__":
    main()
