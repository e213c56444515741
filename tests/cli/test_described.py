"""Manual pages and completions for shells, which packaging/describe.py makes of what commands say by --help."""

import functools
import pathlib
import re
import shutil
import subprocess
import sys

from harness import FROND, Skip, contains, equal, main, ok, test

TOP = pathlib.Path(__file__).resolve().parents[2]


def described(cwd):
    """Once for a directory: it begins every command."""
    out = cwd / "out"
    if not out.exists():
        subprocess.run([sys.executable, "-B", TOP / "packaging" / "describe.py", FROND, out], check=True)
    return out


def commands(cwd):
    return re.findall(r"^  frond (\w+) ", ok("--help", cwd=cwd).stdout, re.M)


@functools.cache
def options(cwd, command):
    return set(re.findall(r"^ +(?:-\S, )?(--[\w-]+)", ok(command, "--help", cwd=cwd).stdout, re.M))


@test
def every_command_has_a_page_with_all_of_its_options(cwd):
    out, names = described(cwd), commands(cwd)
    equal({path.name for path in out.glob("*.1")}, {"frond.1", *(f"frond-{name}.1" for name in names)})
    for name in names:
        page = (out / f"frond-{name}.1").read_text().replace("\\-", "-")
        for option in options(cwd, name):
            contains(page, f"\\fB{option}\\fR")
        contains(page, f"frond-{name} - ")
        contains((out / "frond.1").read_text(), f"frond\\-{name}")


@test
def pages_are_read_by_man_without_a_warning(cwd):
    if not shutil.which("man") or not shutil.which("groff"):
        raise Skip("there is no man")
    for page in described(cwd).glob("*.1"):
        done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True)
        equal(done.stderr, "")
    text = subprocess.run(["man", "-l", cwd / "out" / "frond-user.1"], capture_output=True, text=True).stdout
    contains(text, "list           a line of JSON for everybody")


def completed(cwd, *words):
    """What bash offers for the last of these words."""
    script = f"source {described(cwd)}/frond.bash\nCOMP_WORDS=(\"$@\")\nCOMP_CWORD=$(($# - 1))\n_frond\n" \
             "printf '%s\\n' \"${COMPREPLY[@]}\""
    return set(subprocess.run(["bash", "-c", script, "bash", *words], cwd=cwd, capture_output=True, text=True,
                              check=True).stdout.split())


@test
def bash_completes_commands_options_and_words(cwd):
    if not shutil.which("bash"):
        raise Skip("there is no bash")
    equal(completed(cwd, "frond", "ser"), {"serve"})
    equal(completed(cwd, "frond", ""), {*commands(cwd), "help", "--help", "--version"})
    for name in commands(cwd):
        equal(completed(cwd, "frond", name, "--"), options(cwd, name))
    equal(completed(cwd, "frond", "user", "li"), {"list"})
    equal(completed(cwd, "frond", "help", "du"), {"dump"})
    (cwd / "frond.ini").touch()
    equal(completed(cwd, "frond", "serve", "--config", "fro"), {"frond.ini"})


@test
def zsh_reads_its_completion(cwd):
    if not shutil.which("zsh"):
        raise Skip("there is no zsh")
    out = described(cwd)
    subprocess.run(["zsh", "-n", out / "_frond"], check=True)
    for name in commands(cwd):
        for option in options(cwd, name):
            contains((out / "_frond").read_text(), option)


main()
