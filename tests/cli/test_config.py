"""frond config: the list of settings, and files of them."""

import pathlib
import re
import subprocess

from harness import FROND, contains, equal, main, run, test

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


@test
def page_of_settings_is_what_the_program_declares(cwd):
    page = (TOP / "docs" / "SETTINGS.md").read_text()
    equal(run("config", "--markdown", cwd=cwd).stdout, page)


@test
def list_of_settings_is_a_file_that_makes_sense(cwd):
    listed = run("config", "--list", cwd=cwd).stdout
    uncommented = re.sub(r"^;(\S+ = \S)", r"\1", listed, flags=re.M)
    assert uncommented != listed
    (cwd / "frond.ini").write_text(uncommented)
    result = run("config", "--check", "frond.ini", cwd=cwd)
    equal(result.returncode, 0)
    contains(result.stdout, "[chttpd]\nbind_address = 127.0.0.1\nport = 5984\n")
    (cwd / "frond.ini").write_text(listed)
    equal(run("config", "--check", "frond.ini", cwd=cwd).returncode, 0)


@test
def check_tells_the_line_that_makes_no_sense(cwd):
    (cwd / "frond.ini").write_text("[chttpd]\nport = none\n")
    result = run("config", "--check", "frond.ini", cwd=cwd)
    equal(result.returncode, 2)
    equal(result.stdout, "")
    contains(result.stderr, "frond.ini:2: [chttpd] port: \"none\" is not a whole number")


REFUSED = (
    ("[admins]\nanna = " + "x" * 2000 + "\n", "password"),
    ("[chttpd]\nbind_address = nowhere\n", '[chttpd] bind_address: "nowhere"'),
    ("[chttpd]\nbind_address = 127.0.0.1:80\n", "bind_address"),
    ("[redis]\nenable = true\nbind_address = 1.2.3\n", '[redis] bind_address: "1.2.3"'),
    ("[mongo]\ntls_enable = true\nbind_address = ::x\n", "[mongo] bind_address"),
    ("[mongo]\nhost = example.org\n", "[mongo] host"),
    ("[mongo]\nenable = true\nspill_directory = /nowhere\n", "/nowhere"),
    ("[prometheus]\nadditional_port = true\nbind_address = x\n", '"x"'),
    ("[chttpd]\nport = 6379\n[redis]\nenable = true\n",
     "HTTP and Redis cannot both listen at port 6379"),
    ("[mongo]\nenable = true\nport = 5984\nbind_address = 0.0.0.0\n[admins]\na = b\n",
     "HTTP and MongoDB cannot both listen at port 5984"),
    ("[redis]\nenable = true\ntls_enable = true\ntls_port = 6379\n[ssl]\ncert_file = x\n",
     "Redis and Redis with TLS cannot both listen"),
    ("[prometheus]\nadditional_port = true\nport = 5984\n", "HTTP and metrics cannot both"),
    ("[chttpd]\nbind_address = 0.0.0.0\n", "without an administrator"),
    ("[redis]\nenable = true\nbind_address = ::\n", "without an administrator"),
    ("[ssl]\nenable = true\n", "TLS needs a certificate"),
    ("[redis]\ntls_enable = true\n", "TLS needs a certificate"),
    ("[frond]\nstore = leveldb:x\n", "leveldb"),
    ("[chttpd_auth]\nauthentication_handlers = nonsense\n", "authentication_handlers"),
)


@test
def check_refuses_what_the_server_refuses(cwd):
    for text, says in REFUSED:
        (cwd / "frond.ini").write_text(text)
        checked = run("config", "--check", "frond.ini", cwd=cwd)
        equal((text, checked.returncode, checked.stdout), (text, 2, ""))
        contains(checked.stderr, says)
        served = run("serve", "--config", "frond.ini", cwd=cwd, timeout=60)
        assert served.returncode in (1, 2), (text, served.returncode)
        contains(served.stderr, says)


@test
def check_passes_what_the_server_takes(cwd):
    for text in ("[redis]\nenable = true\nport = 0\ntls_port = 0\n[mongo]\nport = 6379\n",
                 "[chttpd]\nbind_address = ::1\n[redis]\nenable = true\nport = 5984\n",
                 "[chttpd]\nbind_address = localhost\n",
                 "[admins]\nanna = secret\n[chttpd]\nbind_address = 0.0.0.0\n"):
        (cwd / "frond.ini").write_text(text)
        equal((text, run("config", "--check", "frond.ini", cwd=cwd).stderr), (text, ""))
    # An administrator of the environment is one, and is not shown as one of the file.
    (cwd / "frond.ini").write_text("[chttpd]\nbind_address = 0.0.0.0\n")
    checked = run("config", "--check", "frond.ini", cwd=cwd, env={"FROND_ADMIN": "root:secret"})
    equal(checked.returncode, 0)
    contains(checked.stdout, "[chttpd]\nbind_address = 0.0.0.0\n")
    assert "root" not in checked.stdout, checked.stdout


@test
def check_shows_no_passwords(cwd):
    (cwd / "frond.ini").write_text("[admins]\nanna = open sesame\n"
                                   "[chttpd_auth]\nsecret = 0123456789abcdef\n"
                                   "[replicator]\npassword = hidden\n")
    result = run("config", "--check", "frond.ini", cwd=cwd)
    equal(result.returncode, 0)
    contains(result.stdout, "anna = …\n")
    for secret in ("sesame", "0123456789abcdef", "hidden"):
        assert secret not in result.stdout, result.stdout


@test
def one_thing_is_asked_at_a_time(cwd):
    equal(run("config", cwd=cwd).returncode, 2)
    equal(run("config", "--list", "--markdown", cwd=cwd).returncode, 2)


@test
def a_reader_that_stops_early_is_no_failure(cwd):
    with subprocess.Popen([FROND, "config", "--list"], cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.stdout.close()
        equal(process.stderr.read(), b"")
        equal(process.wait(), 0)


main()
