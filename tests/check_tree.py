#!/usr/bin/env python3
"""Checks of the source tree itself, as TAP: what a compiler does not see and a reviewer should not
have to look for. Layers include downwards only; files stay readable; nothing is left unfinished."""

import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent

# What each folder of src/ may include, itself aside.
BELOW = {
    "base": set(),
    "kv": {"base"},
    "doc": {"base", "kv"},
    "model": {"base", "kv", "doc"},
    "index": {"base", "kv", "doc", "model"},
    "server": {"base", "kv"},
    "replicator": {"base", "kv", "doc", "model", "server"},
    "door": {"base", "kv", "doc", "model", "index", "server", "replicator"},
    "cli": {"base", "kv", "doc", "model", "index", "server", "replicator", "door"},
}
LINE_COLUMNS = 100
TAB_COLUMNS = 8
FILE_LINES = 1200


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                          *patterns], cwd=TOP, capture_output=True, text=True, check=True).stdout
    return [TOP / line for line in out.splitlines() if (TOP / line).exists()]


def sources():
    return tracked("*.c", "*.h")


def includes_point_downwards():
    wrong = []
    for path in sources():
        parts = path.relative_to(TOP).parts
        if parts[0] != "src":
            continue
        allowed = BELOW[parts[1]] | {parts[1]}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not found:
                continue
            target = found.group(1).split("/")[0]
            if target not in allowed:
                wrong.append(f"{path.relative_to(TOP)}:{number}: {parts[1]}/ includes {target}/")
    return wrong


def no_c_file_is_included():
    return [f"{path.relative_to(TOP)}:{number}"
            for path in sources()
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if re.match(r'\s*#\s*include\s+["<][^">]+\.c[">]', line)]


def lines_fit():
    wrong = []
    for path in sources():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line.expandtabs(TAB_COLUMNS)) > LINE_COLUMNS and "http" not in line:
                wrong.append(f"{path.relative_to(TOP)}:{number}")
    return wrong


def files_stay_readable():
    return [f"{path.relative_to(TOP)}: {len(path.read_text().splitlines())} lines"
            for path in sources() if len(path.read_text().splitlines()) > FILE_LINES]


def nothing_is_left_to_do():
    marker = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    return [f"{path.relative_to(TOP)}:{number}"
            for path in sources() + tracked("*.md", "*.py", "*.mjs")
            if path.name != pathlib.Path(__file__).name
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if marker.search(line)]


def headers_have_guards_of_their_own():
    wrong = []
    seen = {}
    for path in tracked("*.h"):
        guard = re.search(r"#ifndef (FROND_\w+_H)\n#define \1\n", path.read_text())
        name = str(path.relative_to(TOP))
        if not guard:
            wrong.append(f"{name}: no FROND_..._H guard")
        elif seen.setdefault(guard.group(1), name) != name:
            wrong.append(f"{name}: shares its guard with {seen[guard.group(1)]}")
    return wrong


def code_is_formatted():
    if not shutil.which("clang-format"):
        return None
    out = subprocess.run(["clang-format", "--dry-run", *map(str, sources())], cwd=TOP,
                         capture_output=True, text=True, check=False).stderr
    return sorted({line.split(":")[0].replace(str(TOP) + "/", "")
                   for line in out.splitlines() if "[-Wclang-format" in line})


CHECKS = [includes_point_downwards, no_c_file_is_included, lines_fit, files_stay_readable,
          nothing_is_left_to_do, headers_have_guards_of_their_own, code_is_formatted]


def main():
    print(f"1..{len(CHECKS)}")
    failed = False
    for number, check in enumerate(CHECKS, 1):
        wrong = check()
        if wrong is None:
            print(f"ok {number} - {check.__name__} # SKIP clang-format is not installed")
            continue
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {check.__name__}")
        for line in wrong[:20]:
            print(f"# {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
