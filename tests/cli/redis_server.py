"""A frond with Redis's door, for tests."""

import re

from harness import Server
from resp import Client


class Redis(Server):
    """A frond with Redis's door on a free port."""

    def __init__(self, cwd, *options, **kwargs):
        super().__init__(cwd, "--redis", "127.0.0.1:0", *options, **kwargs)
        self.port = int(re.search(r"event=redis address=127\.0\.0\.1:(\d+)",
                                  self.read_log()).group(1))

    def client(self, **kwargs):
        return Client(self.port, **kwargs)


def later(c):
    """A time of the server, in milliseconds, behind all that was answered; nothing is written in it."""
    def now():
        seconds, micros = c("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    # The moment of a write is never before that of an earlier one: single microseconds may be ahead.
    at = now() + 2
    while now() <= at:
        pass
    return at
