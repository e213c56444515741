"""A client of Redis's protocol for tests: what the server says, and nothing more."""

import socket


class Error(Exception):
    """An error that the server has answered; pipelines give it as a value."""

    def __eq__(self, other):
        return isinstance(other, Error) and str(self) == str(other)

    __hash__ = Exception.__hash__


def encode(args):
    parts = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


class Client:
    def __init__(self, port, timeout=30, host="127.0.0.1"):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *args):
        self.socket.sendall(encode(args))

    def read(self):
        line = self.file.readline()
        if not line:
            raise EOFError
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        n = int(rest)
        if n < 0:
            return None
        if kind in b"$=":
            return self.file.read(n + 2)[:-2]
        if kind in b"*>~":
            return [self.read() for _ in range(n)]
        assert kind == b"%", line
        return {self.read(): self.read() for _ in range(n)}

    def __call__(self, *args):
        self.send(*args)
        answer = self.read()
        if isinstance(answer, Error):
            raise answer
        return answer

    def error(self, *args):
        """The text of the error that the command has to be answered with."""
        self.send(*args)
        answer = self.read()
        assert isinstance(answer, Error), answer
        return str(answer)

    def pipeline(self, *commands):
        self.socket.sendall(b"".join(encode(one) for one in commands))
        return [self.read() for _ in commands]
