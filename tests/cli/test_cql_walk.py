#!/usr/bin/env python3
"""What docs/CQL.md lets its readers type, typed as it is printed, and what it says that comes back."""

import doctest
import pathlib
import re

try:
    import cassandra
except ImportError:
    cassandra = None

from harness import Server, equal, main, test

PAGE = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "CQL.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


@test
def the_walk_with_python_prints_what_the_page_says(cwd):
    with Server(cwd, "--cql", "127.0.0.1:0", "--store", "embedded:data") as server:
        port = re.search(r"event=cql address=127\.0\.0\.1:(\d+)", server.read_log()).group(1)
        typed = "\n".join(blocks("python")).replace("9042", port)
        assert typed.count(">>>") > 20, typed
        told = []
        doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(
            doctest.DocTestParser().get_doctest(typed, {}, "docs/CQL.md", None, 0), out=told.append)
        equal("".join(told), "")


main("needs python3-cassandra" if cassandra is None else None)
