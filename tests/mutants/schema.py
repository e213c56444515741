"""All drawn changes of a source in one source: which of them is made, a process is told when it begins.

The body of a function is there once as it is, and once more for each of its changes. So what is slow, building,
is done once for all changes, and judging one of them costs no more than running tests.
"""

import re
import struct
import subprocess

from cases import SECONDS_AT
import lexer

CASES_MAX, MUTANTS_MAX = 1024, 4096  # chosen.c has the same numbers
MET_AT = SECONDS_AT + 8 * CASES_MAX
TABLE_BYTES = MET_AT + CASES_MAX * MUTANTS_MAX
HEAD = "extern int mutant_chosen;\nextern struct table *mutant_table;\n_Bool mutant_met(int number);\n"
LABEL = re.compile(r"\bgoto\s+(\w+)\s*;")
REFUSED = re.compile(r"^mutant-(\d+):.*\berror:", re.MULTILINE)


def source_of(path, source, changes):
    """The source with these changes, {number: change}; as it was if there are none."""
    if not changes:
        return source
    tokens = lexer.tokens_of(source)
    partners = lexer.brackets_of(tokens)
    parts, at = [HEAD, f'#line 1 "{path}"\n'], 0
    for _, first, last in lexer.bodies_of(source, tokens, partners):
        begin, end = tokens[first].end, tokens[last].begin
        inside = {number: change for number, change in changes.items() if begin <= change.begin < end}
        if not inside:
            continue
        line = source.count("\n", 0, begin) + 1
        labels = sorted(set(LABEL.findall(source[begin:end])))
        local = f"__label__ {', '.join(labels)};" if labels else ""
        parts.append(source[at:begin])
        for number, change in inside.items():
            body = source[begin:change.begin] + change.text + source[change.end:end]
            parts.append(f"if (mutant_chosen == {number} || (mutant_table && mutant_met({number}))) {{ {local}\n"
                         f'#line {line} "mutant-{number}"\n{body}\n}} else ')
        parts.append(f'{{ {local}\n#line {line} "{path}"\n{source[begin:end]}\n}}\n')
        line = source.count("\n", 0, end) + 1
        parts.append(f'#line {line} "{path}"\n')
        at = end
    return "".join(parts) + source[at:]


def without_refused(path, source, changes, command, cwd, scratch):
    """Those of the changes that the compiler takes; warnings are errors. `scratch` is a file that is written."""
    changes = dict(changes)
    while changes:
        scratch.write_text(source_of(path, source, changes))
        done = subprocess.run([*command, "-fsyntax-only", "-ferror-limit=0", "-fno-color-diagnostics", str(scratch)],
                              cwd=cwd, capture_output=True, text=True)
        if done.returncode == 0:
            break
        refused = set(map(int, REFUSED.findall(done.stderr)))
        if not refused:
            raise ValueError(f"{path} with its changes: {done.stderr}")
        changes = {number: change for number, change in changes.items() if number not in refused}
    return changes


def new_table(file):
    with file.open("wb") as there:
        there.truncate(TABLE_BYTES)


def read_table(file):
    """({number of a change: {case, ...}}, {case: seconds}) of what a run has met."""
    told = file.read_bytes()
    seconds = dict(enumerate(struct.unpack_from(f"{CASES_MAX}d", told, SECONDS_AT)))
    met = {}
    for case in range(CASES_MAX):
        row = told[MET_AT + case * MUTANTS_MAX:MET_AT + (case + 1) * MUTANTS_MAX]
        for number in (i for i in range(MUTANTS_MAX) if row[i]) if any(row) else ():
            met.setdefault(number, set()).add(case)
    return met, seconds
