"""A frond with Cassandra's door on a free port, for tests that ask it by cql_wire.py."""

import re

from harness import Server


class Door(Server):
    def __init__(self, cwd, *options, **how):
        super().__init__(cwd, "--cql", "127.0.0.1:0", *options, **how)
        self.port = int(re.search(r"event=cql address=127\.0\.0\.1:(\d+)", self.read_log()).group(1))
