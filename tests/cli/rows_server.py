"""A frond with the door for rows, on a free port or a given one."""

import re

from harness import Server


class Door(Server):
    def __init__(self, cwd, *options, port=0, **how):
        super().__init__(cwd, "--rows", f"127.0.0.1:{port}", *options, **how)
        self.port = int(re.search(r"event=rows address=127\.0\.0\.1:(\d+)", self.read_log()).group(1))
