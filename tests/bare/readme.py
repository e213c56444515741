"""Reads from README what a user is to type and what is printed then, and compares that."""

import re

# What README shows of one run and is otherwise in each; all else is compared as it is.
VARIES = {
    "seconds": r"\d+\.\d s",
    "rate": r"\d+ documents/s",
    "revision of an edit": r"2-[0-9a-f]{32}",
}
ELLIPSIS = "…"  # any text to the end of what README leaves out of a line, or any lines if it is alone
# These lines print what others have written.
INSTALLS = re.compile(r"sudo apt install |npm ci ")


class Block:
    """Lines of a ```sh block, and what the block after it says that they print, or None."""

    def __init__(self, section, lines):
        self.section, self.lines, self.printed = section, lines, None

    def quiet_lines(self):
        return [line for line in self.lines if not INSTALLS.match(line)]


def blocks(text):
    """All of a README's ```sh blocks, in its order."""
    found = []
    section, fence, lines = "", None, []
    for line in text.splitlines():
        if fence is None:
            if line.startswith("## "):
                section = line[3:]
            elif line.startswith("```"):
                fence, lines = line[3:], []
        elif line == "```":
            if fence == "sh":
                found.append(Block(section, lines))
            elif found and found[-1].section == section and found[-1].printed is None:
                found[-1].printed = lines
            fence = None
        else:
            lines.append(line)
    return found


def pattern(printed):
    """A regular expression for these lines. What varies may be anything of its kind, but a revision
    that README shows twice is the same in both places."""
    groups = {}

    def of_part(part):
        if part == ELLIPSIS:
            return ".*"
        for name, expression in VARIES.items():
            if not re.fullmatch(expression, part):
                continue
            if not name.startswith("revision"):
                return expression
            if part in groups:
                return f"(?P={groups[part]})"
            groups[part] = f"revision{len(groups)}"
            return f"(?P<{groups[part]}>{expression})"
        return re.escape(part)

    parts = re.compile(f"({'|'.join([ELLIPSIS, *VARIES.values()])})")
    whole = ""
    for line in printed:
        if line == ELLIPSIS:
            whole += r"(?:.*\n)*?"
        else:
            whole += "".join(map(of_part, parts.split(line))) + r"\n"
    return re.compile(whole)


def difference(printed, said):
    """None if that is what README says, or else lines that tell."""
    if pattern(printed).fullmatch(said if said.endswith("\n") or not said else said + "\n"):
        return None
    return ["README says:", *(f"  {line}" for line in printed),
            "printed was:", *(f"  {line[:200]}" for line in said.splitlines()[:40])]
