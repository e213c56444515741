"""The table of doors: a program whose table has another row (echo_doors.c) serves that protocol."""

import os
import re
import signal
import socket
import ssl
import stat
import subprocess

from harness import Server, contains, equal, main, ok, run, test, until


def address(server, event):
    return int(re.search(rf"event={event} address=127\.0\.0\.1:(\d+)", server.read_log()).group(1))


def ask(connection, line):
    connection.sendall(line)
    with connection.makefile("rb") as answers:
        return answers.readline()


@test
def a_row_of_the_table_is_a_whole_door(cwd):
    with Server(cwd, "--echo", "127.0.0.1:0", "--echo-loudly") as server:
        port = address(server, "echo")
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            equal(ask(connection, b"hello\n"), b"hello\n")
        contains(server.read_log(), "event=echo_open host=127.0.0.1 flag=1 people=1 js=1")
        contains(server.read_log(), f"event=echo_listens port={port} tls=0")
        until(lambda: "event=echo_worked" in server.read_log())
        settings = server.request("GET", "/_node/_local/_config/echo")[1]
        equal((settings["enable"], settings["port"]), ("true", str(port)))
    log = (cwd / "server.log").read_text()
    assert log.index("event=echo_stop") < log.index("event=echo_free"), log


def ask_at(path, line):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(path))
        return ask(connection, line)


@test
def it_listens_at_the_path_of_a_unix_socket(cwd):
    path = cwd / "echo.sock"
    with Server(cwd, "--echo", path) as server:
        contains(server.read_log(), f"event=echo address={path}\n")
        equal(ask_at(path, b"hello\n"), b"hello\n")
        # Who is there is known: limits by address and the log go by it.
        equal(ask_at(path, b"who\n"), f"unix-{os.getuid()}:{os.getpid()}\n".encode())
        equal(stat.S_IMODE(path.stat().st_mode), 0o660)
        settings = server.request("GET", "/_node/_local/_config/echo")[1]
        equal((settings["enable"], settings["bind_address"], settings["port"]), ("true", str(path), "0"))
        # Requests of one who has left are done, up to the end.
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(path))
            connection.sendall(b"a\n" * 5000)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answers:
                equal(answers.read(), b"a\n" * 5000)
        equal(server.stop(), 0)
        assert not path.exists()
    (cwd / "ini").write_text(f"[echo]\nenable = true\nbind_address = {path}\n")
    with Server(cwd, "--config", "ini"):
        equal(ask_at(path, b"hello\n"), b"hello\n")


@test
def a_socket_that_nobody_listens_at_is_replaced_and_nothing_else(cwd):
    path, other = cwd / "echo.sock", cwd / "other"
    with Server(cwd, "--echo", path) as server:
        server.stop(signal.SIGKILL)
    assert path.is_socket()
    with Server(cwd, "--echo", path) as server:
        equal(ask_at(path, b"hello\n"), b"hello\n")
        result = run("serve", "--http", "127.0.0.1:0", "--store", "embedded:./second", "--echo", path, cwd=cwd)
        equal(result.returncode, 1)
        contains(result.stderr, f"cannot listen on {path}: Address already in use")
        equal(ask_at(path, b"hello\n"), b"hello\n")
        # What somebody has put there meanwhile is not the server's to remove.
        path.unlink()
        path.write_text("mine")
    equal(path.read_text(), "mine")
    other.symlink_to(cwd / "echo.sock")
    for there in (path, other):
        result = run("serve", "--http", "127.0.0.1:0", "--echo", there, cwd=cwd)
        contains(result.stderr, f"cannot listen on {there}: there is a file that is no socket")
    equal(path.read_text(), "mine")
    assert other.is_symlink()


@test
def paths_that_are_none_are_refused(cwd):
    long_one = "/" + "p" * 107
    for options, text in (
            (("--echo", long_one), "has 107 bytes at most"), (("--echo", "/tmp/"), "is no path of a Unix socket"),
            (("--echo", cwd / "no/echo"), f"cannot listen on {cwd}/no/echo: No such file or directory"),
            (("--echo", cwd / "one", "--echos", cwd / "one"), f"Echo and Echo with TLS cannot both listen at {cwd}/one"),
            (("--http", cwd / "one"), "is not HOST:PORT")):
        contains(run("serve", "--http", "127.0.0.1:0", *options, cwd=cwd).stderr, text)
    (cwd / "ini").write_text("[echo]\nenable = true\nbind_address = here\n")
    contains(run("serve", "--config", "ini", cwd=cwd).stderr, "is no IP address, and no path of a Unix socket")


@test
def it_is_not_opened_unless_it_is_wanted(cwd):
    with Server(cwd) as server:
        assert "event=echo" not in server.read_log(), server.read_log()


@test
def its_section_of_the_settings_opens_it_too(cwd):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", cwd / "key.pem",
         "-out", cwd / "cert.pem"], check=True, capture_output=True)
    (cwd / "ini").write_text(
        f"[ssl]\ncert_file = {cwd}/cert.pem\nkey_file = {cwd}/key.pem\n"
        "[echo]\ntls_enable = true\ntls_port = 0\n")
    with Server(cwd, "--config", "ini") as server:
        context = ssl.create_default_context(cafile=cwd / "cert.pem")
        with socket.create_connection(("127.0.0.1", address(server, "echos")), timeout=30) as raw, \
                context.wrap_socket(raw, server_hostname="localhost") as connection:
            equal(ask(connection, b"who\n").split(b":")[0].strip(), b"127.0.0.1")


@test
def its_options_and_settings_are_listed(cwd):
    text = " ".join(ok("serve", "--help", cwd=cwd).stdout.split())
    contains(text, "--echo=HOST:PORT Listen there for clients of Echo, too, or at the path of a Unix socket;")
    contains(text, "--echos=HOST:PORT The same with TLS")
    contains(text, "--echo-loudly An option of the door's own")
    assert "redis" not in text.lower() and "mongo" not in text.lower(), text
    listed = ok("config", "--list", cwd=cwd).stdout
    contains(listed, "[echo]")
    contains(listed, "The option --echos of")


@test
def what_it_could_not_start_with_is_refused(cwd):
    (cwd / "ini").write_text("[echo]\nenable = true\nloops = 7\n")
    for command in (("serve", "--config", "ini"), ("config", "--check", "ini")):
        result = run(*command, cwd=cwd)
        assert result.returncode != 0, result
        contains(result.stderr, "[echo] loops: nobody wants 7")
    result = run("serve", "--http", "127.0.0.1:0", "--echo", "127.0.0.1:7007", "--echos",
                 "127.0.0.1:7007", cwd=cwd)
    contains(result.stderr, "Echo and Echo with TLS cannot both listen at port 7007 of 127.0.0.1")
    contains(run("serve", "--echo", "0.0.0.0:0", cwd=cwd).stderr, "without an administrator")


main()
