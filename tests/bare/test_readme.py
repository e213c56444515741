#!/usr/bin/env python3
"""Tests of what is read from README and how it is compared, as TAP."""

import pathlib
import sys

import readme

TEXT = """# x

## One

```sh
make run
```

Words.

```sh
sudo apt install curl
curl a
curl b
```

```json
{"a":1}
```

## Two

```
not printed by anything
```
"""

LOADED = ["3 documents loaded into bcd, 0 refused; 50.1 MB in 1.5 s, 13696 documents/s"]
EDITED = ["x edited: 1-aa -> 2-11e5981ff4102d40b0b7f57a6f41e796",
          "the server has 2-11e5981ff4102d40b0b7f57a6f41e796"]
MINE, OTHER = "2-" + "0" * 32, "2-" + "1" * 32


def lines_are_read_with_what_they_print():
    one, two = readme.blocks(TEXT)
    assert one.section == two.section == "One"
    assert one.lines == ["make run"] and one.printed is None
    assert two.lines == ["sudo apt install curl", "curl a", "curl b"] and two.printed == ['{"a":1}']
    assert two.quiet_lines() == ["curl a", "curl b"]


def the_tree_has_pages_that_are_read():
    top = pathlib.Path(__file__).resolve().parents[2]
    found = [block for block in readme.blocks((top / "README.md").read_text()) if block.section == "Five minutes"]
    assert found[0].lines[0].startswith("make run ")
    assert found[1].printed is not None and len(found) == 2
    tour = readme.blocks((top / "docs" / "TOUR.md").read_text())
    assert sum(block.printed is not None for block in tour) >= 5


def what_varies_is_of_its_kind():
    assert not readme.difference(LOADED, LOADED[0])
    assert not readme.difference(LOADED, LOADED[0].replace("1.5 s", "21.0 s").replace("13696", "9"))
    assert readme.difference(LOADED, LOADED[0].replace("1.5 s", "soon"))


def all_else_is_compared():
    assert readme.difference(LOADED, LOADED[0].replace("3 documents", "2 documents"))
    assert readme.difference(LOADED, LOADED[0].replace("50.1 MB", "50.2 MB"))
    assert readme.difference(LOADED, f"{LOADED[0]}\nmore\n")
    assert readme.difference(LOADED, "")


def a_revision_is_the_same_in_all_places():
    said = "\n".join(EDITED).replace(EDITED[1][-34:], MINE)
    assert not readme.difference(EDITED, said)
    assert readme.difference(EDITED, said[:-34] + OTHER)


def an_ellipsis_leaves_out_text_or_lines():
    printed = ["a", "…", "b = (1, …", "…"]
    assert not readme.difference(printed, "a\nb = (1, 2)\n")
    assert not readme.difference(printed, "a\nx\ny\nb = (1, 2)\nz\n")
    assert readme.difference(printed, "a\nx\nc = (1, 2)\n")
    assert readme.difference(printed, "x\na\nb = (1, 2)\n")


TESTS = [lines_are_read_with_what_they_print, the_tree_has_pages_that_are_read, what_varies_is_of_its_kind,
         all_else_is_compared, a_revision_is_the_same_in_all_places, an_ellipsis_leaves_out_text_or_lines]


def main():
    print(f"1..{len(TESTS)}")
    failed = False
    for number, test in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}")
        except AssertionError as error:
            failed = True
            print(f"not ok {number} - {test.__name__}\n# line {error.__traceback__.tb_lineno}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
