"""A frond with the door for rows, on a free port or a given one, and a session of its clients."""

import re
import subprocess

from harness import Server, equal


class Door(Server):
    def __init__(self, cwd, *options, port=0, **how):
        super().__init__(cwd, "--rows", f"127.0.0.1:{port}", *options, **how)
        self.port = int(re.search(r"event=rows address=127\.0\.0\.1:(\d+)", self.read_log()).group(1))


class Failure(Exception):
    """What a command failed with: SQLSTATE, the row of the request, the text."""

    def __init__(self, state, row, text):
        super().__init__(state, row, text)
        self.state, self.row, self.text = state, int(row), text


class Session:
    """A connection of the library's, by the program of tests (rows_client.c), whose path is `client`."""

    client = None

    def __init__(self, server, *login, host="127.0.0.1"):
        self.process = subprocess.Popen([self.client], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.do("open", host, str(server.port), *login)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()

    def send(self, *words):
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def read(self):
        lines = []
        while True:
            line = self.process.stdout.readline()
            assert line.endswith("\n"), "the client has ended"
            line = line[:-1]
            if line == "ok":
                return lines
            if line.startswith("error\t"):
                raise Failure(*line.split("\t", 3)[1:])
            lines.append(line)

    def do(self, *words):
        self.send(*words)
        return self.read()

    def fails(self, state, *words):
        try:
            got = self.do(*words)
        except Failure as failure:
            equal(failure.state, state)
            return failure
        raise AssertionError(f"{words} gave {got}")

    def write(self, op, columns, *rows):
        """Rows are a key and values."""
        words = []
        for key, values in rows:
            words += [*key, "|", *values, "|"]
        return self.do("write", op, *columns, "|", *words[:-1])

    def scan(self, *words):
        """The rows, without the line about pages."""
        return self.do("scan", *words)[:-1]
