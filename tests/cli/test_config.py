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
