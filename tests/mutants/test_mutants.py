#!/usr/bin/env python3
"""Tests of what mutants are made of, as TAP: the lexer, the drawing, the reasons."""

import sys

import lexer
import run
import tree

SOURCE = '''#include "x.h"
#define LESS(a, b) \\
	((a) < (b))
/* if (a < b) */
static const int table[] = { 1 + 1 };

enum status
thing_check(struct thing *t, int a, int b)
{
	char room[SIZE + 1];

	assert(a < b && t);
	log_info("a=%d", a == b);
	if (a < b && t->open || b > 1 + a) /* a == b */
		return STATUS_IO;
	if (!t->open)
		return status;
	if (a == b)
		room[a - 1] = "a < b"[0];
	TRY(kv_add_read_conflict_range(t->tx, a, b));
	kv_add_write_conflict_range(t->tx, a, b + 1);
	get(t->tx, KV_READ);
	return STATUS_OK;
}

static bool
thing_is_ready(const struct thing *t)
{
	return true;
}
'''
WANTED = [
    (14, "if (a <= b && t->open || b > 1 + a) /* a == b */"),
    (14, "if (a < b || b > 1 + a) /* a == b */"),
    (14, "if (t->open || b > 1 + a) /* a == b */"),
    (14, "if (a < b && t->open) /* a == b */"),
    (14, "if (b > 1 + a) /* a == b */"),
    (14, "if (a < b && t->open || b >= 1 + a) /* a == b */"),
    (14, "if (!(a < b && t->open || b > 1 + a)) /* a == b */"),
    (15, "return STATUS_OK;"),
    (16, "if (t->open)"),
    (17, "return STATUS_OK;"),
    (18, "if (a != b)"),
    (19, 'room[a] = "a < b"[0];'),
    (20, "TRY(0);"),
    (21, "(void)0;"),
    (21, "kv_add_write_conflict_range(t->tx, a, b);"),
    (22, "get(t->tx, KV_SNAPSHOT);"),
    (29, "return false;"),
]
REASON = """# a comment

src/a.c f
- if (a < b)
+ if (a <= b)
Both are the same, since they are
never equal.
"""


def changes_are_those_of_bodies_alone():
    found = sorted((change.line, change.new) for change in lexer.changes_of("src/a.c", SOURCE))
    assert found == sorted((line, " ".join(new.split())) for line, new in WANTED), found


def a_change_touches_nothing_else():
    for change in lexer.changes_of("src/a.c", SOURCE):
        changed = change.apply(SOURCE)
        before, after = SOURCE.splitlines(), changed.splitlines()
        differ = [i + 1 for i, line in enumerate(before) if line != after[i]]
        assert len(before) == len(after) and differ == [change.line], change


def a_seed_draws_the_same_again():
    changes = lexer.changes_of("src/a.c", SOURCE)
    assert run.draw(changes, 10, 1) == run.draw(changes, 10, 1)
    assert any(run.draw(changes, 10, 1) != run.draw(changes, 10, seed) for seed in range(2, 9))
    assert len(run.draw(changes, 10, 1)) == 10
    assert sum(change.kind == lexer.CONFLICT for change in run.draw(changes, 10, 1)) == 1


def a_reason_is_of_one_change():
    reasons = run.reasons_of(REASON)
    assert reasons == {("src/a.c", "f", "if (a < b)", "if (a <= b)"):
                       "Both are the same, since they are never equal."}, reasons
    there = lexer.changes_of("src/a.c", "int\nf(int a)\n{\n\tif (a < b)\n\t\treturn 1;\n}\n")
    assert not run.stale_reasons(reasons, there)
    assert run.stale_reasons(reasons, lexer.changes_of("src/a.c", SOURCE))


def reasons_are_of_lines_that_are_there():
    reasons = run.reasons_of(run.REASONS.read_text())
    changes = []
    for path in sorted({reason[0] for reason in reasons}):
        changes += lexer.changes_of(path, (tree.TOP / path).read_text())
    assert not run.stale_reasons(reasons, changes), run.stale_reasons(reasons, changes)


def sources_have_changes_of_all_kinds():
    kinds = set()
    for folder in tree.SUITES:
        found = []
        for path in (tree.TOP / "src" / folder).rglob("*.c"):
            found += lexer.changes_of(str(path.relative_to(tree.TOP)), path.read_text())
        assert len(found) > 100, folder
        kinds |= {change.kind for change in found}
    assert kinds == set(lexer.KINDS), kinds


def main():
    tests = [changes_are_those_of_bodies_alone, a_change_touches_nothing_else,
             a_seed_draws_the_same_again, a_reason_is_of_one_change,
             reasons_are_of_lines_that_are_there, sources_have_changes_of_all_kinds]
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}")
        except AssertionError as error:
            failed += 1
            print(f"# {error}\nnot ok {number} - {test.__name__}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
