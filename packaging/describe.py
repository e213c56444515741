#!/usr/bin/env python3
"""Makes manual pages and completions for shells of what the commands say by --help:

    packaging/describe.py build/frond DIRECTORY

writes frond.1, frond-COMMAND.1 for each command, frond.bash for bash and _frond for zsh."""

import os
import pathlib
import re
import subprocess
import sys

OPTION = re.compile(r"  (?:-(?P<short>\S)(?:, )?|    )?(?:--(?P<long>[\w-]+)(?:=(?P<value>\S+))?)?(?:\s{2,}(?P<text>.*))?$")
GENERAL = re.compile(r"Mandatory or optional arguments to long options")
FILES = ("FILE", "DIR", "TARGET")  # values that are completed as names of files


class Option:
    def __init__(self, match):
        self.short, self.long, self.value = match["short"], match["long"], match["value"]
        self.text = match["text"] or ""

    def names(self):
        return [f"-{self.short}"] * bool(self.short) + [f"--{self.long}"] * bool(self.long)


class Command:
    """What a command says of itself."""

    def __init__(self, name, summary, text):
        self.name, self.summary = name, summary
        self.usage, self.about, self.options, self.more = [], [], [], []
        part = self.read_usage
        for line in text.splitlines():
            part = part(line) or part

    def read_usage(self, line):
        found = re.match(r"(?:Usage:|  or: ) (frond.*)", line)
        if found:
            self.usage.append(found[1])
        elif self.usage and re.match(r"\s{8,}\S", line):
            self.usage[-1] += " " + line.strip()
        else:
            return self.read_about(line)

    def read_about(self, line):
        if re.match(r" {2,6}-\S", line):
            return self.read_options(line) or self.read_options
        self.about.append(line)
        return self.read_about

    def read_options(self, line):
        if GENERAL.match(line):
            return self.read_general
        found = OPTION.match(line)
        if line.strip() and found and (found["short"] or found["long"]):
            self.options.append(Option(found))
        elif line.strip():
            self.options[-1].text += " " + line.strip()

    def read_general(self, line):
        """What argp says of all options."""
        if not line.strip():
            return self.read_more

    def read_more(self, line):
        self.more.append(line)

    def words(self):
        """The words of which the first argument is one, if that is so."""
        found = re.search(r"\] ([a-z]+(?:\|[a-z]+)+)", self.usage[0])
        return found[1].split("|") if found else []


def said_by(frond, *arguments):
    env = {name: value for name, value in os.environ.items() if name != "ARGP_HELP_FMT"}
    return subprocess.run([frond, *arguments], capture_output=True, text=True, check=True, env=env).stdout


def read_commands(frond):
    listed = re.findall(r"^  frond (\w+) +(.*)$", said_by(frond, "--help"), re.M)
    return [Command(name, summary, said_by(frond, name, "--help")) for name, summary in listed]


# ---- Manual pages ----

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def paragraphs(lines):
    """Lines as roff: those that are indented stay as they are."""
    out, block = [], False
    for line in lines:
        indented = line.startswith("  ")
        if indented != block:
            out.append(".RS 2\n.nf" if indented else ".fi\n.RE")
            block = indented
        if line.strip():
            out.append(roff(line[2:] if indented else line))
        elif out and out[-1] != ".PP":
            out.append("" if block else ".PP")
    if block:
        out.append(".fi\n.RE")
    while out and out[-1] == ".PP":
        out.pop()
    while out and out[0] == ".PP":
        out.pop(0)
    return out


def title(name, version):
    return f'.TH {name.upper()} 1 "" "{version}" "User Commands"'


def options_page(options):
    out = []
    for option in options:
        names = [f"\\fB{roff(name)}\\fR" for name in option.names()]
        if option.value:
            names[-1] += ("=" if option.long else " ") + f"\\fI{roff(option.value)}\\fR"
        out += [".TP", ", ".join(names), roff(option.text)]
    return out


def command_page(command, version):
    out = [title(f"frond-{command.name}", version), ".SH NAME",
           f"frond\\-{command.name} \\- {roff(command.summary)}", ".SH SYNOPSIS"]
    for i, usage in enumerate(command.usage):
        out += [".br"] * bool(i) + [roff(usage)]
    out += [".SH DESCRIPTION", *paragraphs(command.about), ".SH OPTIONS", *options_page(command.options)]
    if any(line.strip() for line in command.more):
        out += [".SH NOTES", *paragraphs(command.more)]
    return out + [".SH SEE ALSO", ".BR frond (1)"]


def program_page(frond, commands, version):
    text = said_by(frond, "--help").splitlines()
    about = text[2:next(i for i, line in enumerate(text) if line.startswith("  frond "))]
    out = [title("frond", version), ".SH NAME", f"frond \\- {roff(about[0][2:].rstrip('.'))}", ".SH SYNOPSIS",
           roff(text[0].removeprefix("Usage: ")), ".SH DESCRIPTION", *paragraphs(about), ".SH COMMANDS"]
    for command in commands:
        out += [".TP", f".BR frond\\-{command.name} (1)", roff(command.summary)]
    last = max(i for i, line in enumerate(text) if line.startswith("  frond "))
    out += [".SH NOTES", *paragraphs(text[last + 2:]), ".SH SEE ALSO"]
    return out + [", ".join(f"\\fBfrond\\-{command.name}\\fR(1)" for command in commands)]


# ---- Completions ----

def shell_word(text):
    return "'" + text.replace("'", "'\\''") + "'"


def bash(commands):
    out = ["# frond's completion for bash, made of what its commands say by --help.", "_frond() {",
           "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}",
           "\tlocal options files words", "\tCOMPREPLY=()",
           '\tif [ "$COMP_CWORD" -eq 1 ]; then',
           f'\t\tCOMPREPLY=($(compgen -W "{" ".join(c.name for c in commands)} help --help --version" -- "$word"))',
           "\t\treturn", "\tfi", '\tcase $command in']
    for c in commands:
        names = " ".join(name for option in c.options for name in option.names() if name.startswith("--"))
        takes = " ".join(name for option in c.options if option.value in FILES for name in option.names())
        out += [f"\t{c.name})", f'\t\toptions="{names}" files=" {takes} " words="{" ".join(c.words())}"', "\t\t;;"]
    names = " ".join(c.name for c in commands)
    out += ["\thelp)", f'\t\twords="{names}"', "\t\t;;", "\t*)", "\t\treturn", "\t\t;;", "\tesac",
            '\tif [[ $word == -* ]]; then', '\t\tCOMPREPLY=($(compgen -W "$options" -- "$word"))',
            '\telif [[ $files == *" $before "* ]]; then', '\t\tCOMPREPLY=($(compgen -f -- "$word"))',
            '\telif [ -n "$words" ] && [ "$COMP_CWORD" -eq 2 ]; then',
            '\t\tCOMPREPLY=($(compgen -W "$words" -- "$word"))',
            "\telse", '\t\tCOMPREPLY=($(compgen -f -- "$word"))', "\tfi", "}", "complete -o filenames -F _frond frond"]
    return out


def zsh_text(text):
    """In a description of _arguments brackets and colons mean something."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text.split(";")[0].split(". ")[0])


def zsh_option(option):
    kind = ""
    if option.value:
        kind = f":{zsh_text(option.value)}:" + ("_files" if option.value in FILES else "")
    names, equals = option.names(), "=" if option.value else ""
    specs = []
    for name in names:
        others = f"({' '.join(names)})" if len(names) > 1 else ""
        sign = equals if name.startswith("--") else ("+" if option.value else "")
        specs.append(shell_word(f"{others}{name}{sign}[{zsh_text(option.text)}]{kind}"))
    return specs


def zsh(commands):
    out = ["#compdef frond", "# frond's completion for zsh, made of what its commands say by --help.", "_frond() {",
           "\tlocal -a commands", "\tcommands=("]
    out += [f"\t\t{shell_word(f'{c.name}:{c.summary}')}" for c in commands]
    out += ["\t)", "\tif (( CURRENT == 2 )); then", "\t\t_describe command commands", "\t\treturn", "\tfi",
            "\tlocal command=$words[2]", "\tshift words", "\t(( CURRENT-- ))", "\tcase $command in"]
    for c in commands:
        first = f"1:what:({' '.join(c.words())})" if c.words() else "*:file:_files"
        specs = [spec for option in c.options for spec in zsh_option(option)]
        out += [f"\t{c.name})", "\t\t_arguments -s \\"]
        out += [f"\t\t\t{spec} \\" for spec in specs]
        out += [f"\t\t\t{shell_word(first)}", "\t\t;;"]
    return out + ["\tesac", "}", '_frond "$@"']


def main():
    frond, directory = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    version = said_by(frond, "--version").strip()
    commands = read_commands(frond)
    pages = {f"frond-{c.name}.1": command_page(c, version) for c in commands}
    pages.update({"frond.1": program_page(frond, commands, version), "frond.bash": bash(commands),
                  "_frond": zsh(commands)})
    for old in [*directory.glob("*.1")]:
        old.unlink()
    for name, lines in pages.items():
        (directory / name).write_text("\n".join(lines) + "\n")


main()
