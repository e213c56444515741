"""A frond with MongoDB's door on a free port, for tests that ask it by mongo.py."""

import re

from harness import Server
from mongo import Client


class MongoServer(Server):
    """`ini`: the text of a file of settings, which is written first; None: there is no such file."""

    def __init__(self, cwd, *options, ini=None, **kwargs):
        if ini is not None:
            (cwd / "ini").write_text(ini)
            options = ("--config", "ini", *options)
        super().__init__(cwd, "--mongo", "127.0.0.1:0", *options, **kwargs)
        self.port = int(re.search(r"event=mongo address=127\.0\.0\.1:(\d+)", self.read_log()).group(1))

    def client(self, **kwargs):
        return Client(self.port, **kwargs)
