#!/usr/bin/env python3
"""Tests of what mutants are made of, as TAP: the lexer, the drawing, the reasons."""

import argparse
import fnmatch
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading
import time

import lexer
import run
import schema
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
	if (a < b)
		a = b;
	if (t->n[a] > b)
		b = t->n[b];
	a = t->n[b] < b * 2 ? t->n[b] : b * 2;
	if (a > 5)
		log_info("a=%d", a);
	if (a > 6) {
		log_info("a=%d", a);
		assert(b);
	}
	if (a > 7) {
		log_info("a=%d", a);
		b = a;
	}
	if (a > 8)
		log_info("a=%d", a);
	else
		b = a;
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
    (23, "if (!(a < b))"),
    (25, "if (!(t->n[a] > b))"),
    (25, "if (t->n[a] >= b)"),
    (34, "if (!(a > 7)) {"),
    (34, "if (a >= 7) {"),
    (38, "if (!(a > 8))"),
    (38, "if (a >= 8)"),
    (48, "return false;"),
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
    try:
        run.reasons_of(REASON + REASON[REASON.index("src/"):])
    except ValueError as error:
        assert "two reasons" in str(error), error
    else:
        raise AssertionError("the second one was taken for words of the first")


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
        for path in sorted((tree.TOP / "src" / folder).rglob("*.c")):
            if len(found) <= 100:
                found += lexer.changes_of(str(path.relative_to(tree.TOP)), path.read_text())
        assert len(found) > 100, folder
        kinds |= {change.kind for change in found}
    assert kinds == set(lexer.KINDS), kinds


def suites_have_tests_that_are_there():
    for suite in {suite for suites in tree.SUITES.values() for suite in suites}:
        if (tree.TOP / "tests" / suite).is_dir():
            continue
        folder, name = suite.rsplit("/", 1)
        named = f"test_{name.split('_', 1)[1]}"  # without the name of what all tests of the folder are about
        there = [path for path in (tree.TOP / "tests" / folder).rglob("test_*") if fnmatch.fnmatchcase(path.stem, named)]
        assert there, suite


CALLS = """
#include "calls.h"
static int by_thread(int a)
{
	if (a < 0)
		goto out;
	return 0;
out:
	return 1;
}
static int by_child(int a)
{
	if (a < 0)
		goto out;
	return 0;
out:
	return 1;
}
static int by_itself(int a)
{
	return a < 0;
}
static int by_nobody(int a)
{
	return a < 0;
}
static void *run(void *arg)
{
	threads_failed |= by_thread(0);
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];
	int status;

	if (argc == 2)
		return by_itself(0);
	if (argc > 5)
		return by_nobody(0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (fork() == 0) {
		if (by_child(0))
			_exit(2);
		execl(argv[0], argv[0], "again", NULL);
	}
	wait(&status);
	return WEXITSTATUS(status) * 2 + threads_failed;
}
"""
CALLS_HEADER = """
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int threads_failed;
"""


def built(home, name, source, *libraries):
    """A program of a source, with what chooses among its changes."""
    (home / f"{name}.c").write_text(source)
    subprocess.run(["clang", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", "-I", str(home), tree.WRAP, "-o", str(home / name),
                    f"{home}/{name}.c", str(tree.CHOSEN), *libraries], check=True)
    return home / name


def met_by(home, program, **env):
    table = home / "table"
    schema.new_table(table)
    subprocess.run([program], env=dict(os.environ, MUTANT_TABLE=str(table), **env), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return schema.read_table(table)


def a_program_holds_all_changes():
    """One is made where the environment says so. In threads, children, and where the program executes itself."""
    formatted = CALLS.replace(")\n{", ")\n{\n")
    changes = [change for change in lexer.changes_of("calls.c", formatted) if change.function.startswith("by_")
               and change.kind == lexer.COMPARISON]
    numbered = dict(enumerate(changes, 1))
    assert [change.function for change in changes] == ["by_thread", "by_child", "by_itself", "by_nobody"]
    with tempfile.TemporaryDirectory() as home:
        home = pathlib.Path(home)
        (home / "calls.h").write_text(CALLS_HEADER)
        program = built(home, "calls", schema.source_of("calls.c", formatted, numbered), "-pthread")
        said = [subprocess.run([program], env=dict(os.environ, MUTANT=str(number))).returncode for number in range(6)]
        assert said == [0, 1, 4, 2, 0, 0], said
        met, _ = met_by(home, program)
        assert met == {1: {0}, 2: {0}, 3: {0}}, met
    assert schema.source_of("calls.c", formatted, {}) == formatted


def what_gcc_alone_finds_in_a_change_is_compiled():
    """An index that is always beyond its array, and a null pointer that is always followed."""
    source = ("static int\nf(const int *p)\n{\n\tint room[2] = { 0 };\n\n\tif (!p)\n\t\treturn 0;\n"
              "\tfor (int i = 0; i < 2; i++)\n\t\troom[i] = *p;\n\treturn room[0];\n}\n")
    changes = dict(enumerate(lexer.changes_of("f.c", source), 1))
    assert {"if (p)", "for (int i = 0; i <= 2; i++)"} <= {change.new for change in changes.values()}, changes
    whole = source + "int g(int a);\nint\ng(int a)\n{\n\treturn f(a ? &a : 0);\n}\n"
    warn = ["-O2", "-Wall", "-Wextra", "-Wnull-dereference", "-Werror", "-c", "-o", "/dev/null"]

    def compiles(text):
        with tempfile.TemporaryDirectory() as home:
            there = pathlib.Path(home) / "f.c"
            there.write_text(text)
            done = subprocess.run([tree.CC, "gcc", *warn, there], text=True, capture_output=True)
            return done.returncode == 0 and not done.stderr
    assert compiles(schema.source_of("f.c", whole, changes))
    said = [not compiles(change.apply(whole)) for change in changes.values()]
    assert any(said), "gcc warns of none of them"


def a_test_runs_in_either_build():
    test = tree.Test("t", "p", "kv", [f"{tree.PLACES[tree.FAST]}/tests/t", "--builder"],
                     {"HOME": str(tree.PLACES[tree.FAST]), "OTHER": f"{tree.PLACES[tree.FAST]}er"})
    fast, sanitized = (tree.Build(kind) for kind in (tree.FAST, tree.SANITIZED))
    assert test.command_in(fast) == test.command and test.env_in(fast) == test.env
    assert test.command_in(sanitized) == [f"{tree.PLACES[tree.SANITIZED]}/tests/t", "--builder"]
    assert test.env_in(sanitized) == {"HOME": str(tree.PLACES[tree.SANITIZED]), "OTHER": test.env["OTHER"]}


def what_the_compiler_refuses_is_left_out():
    source = "int\nf(int a, unsigned b)\n{\n\tif (a < 1 || b > 0)\n\t\treturn a + 1;\n\treturn 0;\n}\n"
    changes = dict(enumerate(lexer.changes_of("f.c", source), 1))
    refused = {number for number, change in changes.items() if "b >= 0" in change.new}
    assert len(refused) == 1 and len(changes) > 3
    with tempfile.TemporaryDirectory() as home:
        scratch = pathlib.Path(home) / "f.c"
        command = ["clang", "-Wextra", "-Wtautological-compare", "-Wtautological-unsigned-zero-compare", "-Werror"]
        taken = schema.without_refused("f.c", source, changes, command, home, scratch)
        assert taken.keys() == changes.keys() - refused
        try:
            schema.without_refused("f.c", "int x = y;\n" + source, {}, command, home, scratch)
            schema.without_refused("f.c", "int x = y;\n" + source, changes, command, home, scratch)
            assert False, "an error elsewhere is none of a change"
        except ValueError:
            pass


GROUPS = """
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
extern struct table *mutant_table;
bool mutant_met(int number);
static void meet(int number) { if (mutant_table) mutant_met(number); }
static int setup(void **state) { (void)state; meet(1); return 0; }
static void first(void **state) { (void)state; meet(2); }
static void second(void **state) { (void)state; }
static void last(void **state) { (void)state; meet(2); meet(3); }
static void shared(void **state) { (void)state; meet(4); }
int main(void)
{
	const struct CMUnitTest some[] = { cmocka_unit_test(first), cmocka_unit_test_setup_teardown(second, setup, NULL) };
	const struct CMUnitTest more[] = { cmocka_unit_test(shared), cmocka_unit_test(second) };
	const struct CMUnitTest rest[] = { cmocka_unit_test_setup_teardown(last, NULL, setup) };

	meet(5);
	return cmocka_run_group_tests(some, NULL, NULL) + cmocka_run_group_tests(more, setup, NULL) +
	       cmocka_run_group_tests(rest, NULL, NULL);
}
"""


def cases_run_alone():
    """Those that meet a change, by their numbers; those that share what a group sets up run together."""
    with tempfile.TemporaryDirectory() as home:
        home = pathlib.Path(home)
        program = built(home, "groups", GROUPS, "-lcmocka")

        def names(**env):
            said = subprocess.run([program], capture_output=True, text=True, check=True,
                                  env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", **env)).stdout
            return [line.split()[-1] for line in said.splitlines() if line.startswith("ok")]
        assert names() == ["first", "second", "shared", "second", "last"]
        assert names(MUTANT_CASES="4,1") == ["first", "last"]
        assert names(MUTANT_CASES="3") == ["shared", "second"]
        met, seconds = met_by(home, program)
        assert met == {1: {2, 3, 4}, 2: {1, 4}, 3: {4}, 4: {3}, 5: {0}}, met
        assert all(0 < seconds[case] < 60 for case in (1, 2, 3, 4)) and seconds[5] == 0


def a_test_is_asked_once_what_it_meets():
    told = []

    def run_it(table):
        told.append(table)
        with table.open("r+b") as file:
            for number, case in ((1, 3), (1, 2), (2, 0), (2, 3)):
                file.seek(schema.MET_AT + case * schema.MUTANTS_MAX + number)
                file.write(b"\1")
            file.seek(schema.SECONDS_AT + 8 * 2)
            file.write(struct.pack("2d", 1.5, 2.0))
        return True
    test, broken = (tree.Test(name, name, "kv", [name], {}) for name in ("kv_a", "kv_b"))
    reach = tree.Reach(None)
    assert reach.seconds(test, 1) is None
    assert reach.cases(test, 1, run_it) == (2, 3) and reach.cases(test, 2, run_it) == ()
    assert reach.cases(test, 3, run_it) is None and len(told) == 1
    assert [reach.seconds(test, number) for number in (1, 2, 3)] == [3.5, None, 0]
    assert reach.cases(broken, 1, lambda table: False) == ()


def what_a_test_meets_is_kept_while_its_files_are_the_same():
    told = []

    def run_it(table):
        told.append(table)
        with table.open("r+b") as file:
            file.seek(schema.MET_AT + 2 * schema.MUTANTS_MAX + 1)
            file.write(b"\1")
            file.seek(schema.SECONDS_AT + 8 * 2)
            file.write(struct.pack("d", 1.5))
        return True
    with tempfile.TemporaryDirectory() as home:
        build = argparse.Namespace(out=pathlib.Path(home))
        (build.out / "p").write_text("program")
        test, path = tree.Test("kv_a", "p", "kv", ["p"], {}), build.out / "reach"
        for _ in range(2):
            reach = tree.Reach(build, path)
            assert reach.cases(test, 1, run_it) == (2,) and reach.seconds(test, 1) == 1.5
            assert reach.cases(test, 2, run_it) is None and len(told) == 1
        (build.out / "p").write_text("another")
        assert tree.Reach(build, path).cases(test, 1, run_it) == (2,) and len(told) == 2


def cases_that_fail_alone_run_with_the_others():
    worker = Scripted([("not ok 2 - b", 1), ("passed", 5)], [("not ok 2 - b", 1)])
    outcome, judged = noticed(worker, cases=(2, 3))
    assert outcome == "" and not judged.unsound and worker.ran == [(2, 3), (2, 3), ()]
    worker = Scripted([("not ok 2 - b", 1), ("not ok 2 - b", 1)], [("passed", 1)])
    assert noticed(worker, cases=(2, 3))[0] == "not ok 2 - b" and worker.ran == [(2, 3)] * 3


class Scripted:
    """A build whose tests end as it is told: (what a run says, its seconds), one after the other."""

    kind = tree.FAST

    def __init__(self, changed, unchanged=()):
        self.told = {True: list(changed), False: list(unchanged)}
        self.limits, self.ran = [], []

    def uses(self, test, path):
        return True

    def run(self, test, limit, number=0, cases=(), table=None):
        if table:
            with table.open("r+b") as file:
                file.seek(schema.MET_AT + 1)
                file.write(b"\1")
            return "passed", 1
        self.ran.append(cases)
        self.limits += [limit] if number else []
        return self.told[bool(number)].pop(0)


def run_of(tests, suites, build, **more):
    return run.Run(tests, {path: SOURCE for path in suites}, suites, more.pop("numbers", {}), [build, build], **more)


def noticed(build, passed=False, cases=()):
    test = tree.Test("kv_a", "p", "kv", ["p"], {})
    judged = run_of([test], {"src/kv/a.c": ["kv"]}, build)
    if passed:
        judged.note_pass(build, test, 1)
    return judged.notices(build, test, 1, cases), judged


def a_slow_machine_kills_nothing():
    worker = Scripted([("time", 20), ("passed", 110)], [("passed", 50)])
    assert noticed(worker)[0] == "" and worker.limits == [run.TIME_LEAST, 50 * run.TIME_FACTOR]
    worker = Scripted([("time", 20), ("time", 250)], [("passed", 50), ("passed", 40)])
    assert noticed(worker)[0] == "time"
    worker = Scripted([("time", 20)], [("passed", 2)])
    assert noticed(worker)[0] == "time"


def a_test_that_fails_by_itself_kills_nothing():
    worker = Scripted([("not ok 1 - a", 1)], [("not ok 1 - a", 1)])
    outcome, judged = noticed(worker)
    assert outcome == "" and judged.unsound == {"kv_a": "not ok 1 - a"}
    assert judged.notices(None, judged.tests[0], 1) == ""  # and is not run again
    assert noticed(Scripted([("exit -6", 1)] * 2, [("passed", 1)]))[0] == "exit -6"


def what_fails_now_and_then_kills_nothing():
    assert noticed(Scripted([("not ok 1 - a", 1), ("passed", 1)], [("passed", 1)]))[0] == ""
    assert noticed(Scripted([("not ok 1 - a", 1), ("passed", 1)]), passed=True)[0] == ""


def a_test_that_has_passed_lately_is_not_run_without_the_change():
    assert noticed(Scripted([("not ok 1 - a", 1)] * 2), passed=True)[0] == "not ok 1 - a"


def what_ends_the_process_is_believed_at_once():
    assert noticed(Scripted([("exit -6", 1)]), passed=True)[0] == "exit -6"
    assert noticed(Scripted([("exit -6", 1)], [("passed", 1)]))[0] == "exit -6"
    assert noticed(Scripted([("exit 99", 1)], [("exit 99", 1)]))[0] == ""
    assert noticed(Scripted([("exit -9", 1), ("passed", 1)]), passed=True)[0] == ""


def what_is_skipped_is_told():
    outcome, judged = noticed(Scripted([("skipped", 1)]))
    assert outcome == "" and judged.skipped == {"kv_a"}


def who_noticed_last_is_asked_first():
    far, near, other = (tree.Test(name, program, folder, [program], {}) for name, folder, program in
                        (("cli_disk", "cli", "frond"), ("kv_a", "kv", "p"), ("kv_b", "kv", "q")))
    variant = tree.Test("kv_c", "p", "kv", ["p"], {"FROND_TEST_FAULTS": "rate=1"})
    known = run.Known()
    known.seconds = {"cli_disk": 1.0, "kv_a": 3.0, "kv_b": 2.0, "kv_c": 1.0}
    judged = run_of([far, variant, near, other], {"src/kv/a.c": ["kv", "cli/cli_*"]}, Scripted([]), known=known)
    assert judged.order("src/kv/a.c") == [far, other, near, variant]
    judged.last_kill = {("src/kv/a.c", "kv_a"): 1, ("src/kv/b.c", "kv_c"): 3}
    assert judged.order("src/kv/a.c") == [near, far, other, variant]
    judged.last_kill["src/kv/a.c", "kv_b"] = 4
    assert judged.order("src/kv/a.c") == [other, near, far, variant]


def a_namesake_is_asked_before_others():
    tests = [tree.Test(name, "p", "kv", ["p"], {}) for name in ("kv_size", "kv_salvage")]
    judged = run_of(tests, {"src/kv/salvage_logs.c": ["kv"]}, Scripted([]))
    assert [test.name for test in judged.order("src/kv/salvage_logs.c")] == ["kv_salvage", "kv_size"]
    assert run.shares_a_word("src/model/revisioned/verify_atts.c", "revisioned_attachments")
    assert not run.shares_a_word("src/kv/kv.c", "kv_size")


def judged_of(fast, sanitized=None, same=False, **more):
    """How a change is judged whose tests are kv_a and a script."""
    tests = [tree.Test("kv_a", "p", "kv", ["p"], {}), tree.Test("cli_a", "frond", "kv", ["python3", "a.py", "frond"], {})]
    change = lexer.changes_of("src/kv/a.c", SOURCE)[0]
    judged = run_of(tests, {"src/kv/a.c": ["kv"]}, fast, numbers={change: 1}, **more)
    judged.sanitized = sanitized or Scripted([("passed", 1)])
    judged.is_same = lambda change: same
    return judged.judge(change)[0]


def a_change_may_be_given_up():
    assert judged_of(Scripted([]), patience=1e-9) == run.OPEN
    assert judged_of(Scripted([("passed", 1)] * 2)) == run.SURVIVED


def what_is_slow_comes_last():
    """Programs without sanitizers, then with them, then scripts; no more of these if the compiler makes the same."""
    failed = [("not ok 1 - a", 1)] * 2
    sanitized = Scripted(failed)
    assert judged_of(Scripted(failed), sanitized) == run.KILLED and len(sanitized.told[True]) == 2
    fast = Scripted([("passed", 1)] + failed)
    assert judged_of(fast, Scripted(failed, [("passed", 1)])) == run.KILLED and len(fast.told[True]) == 2
    assert judged_of(Scripted([("passed", 1)] + failed)) == run.KILLED
    assert judged_of(Scripted([("passed", 1)]), same=True) == run.SAME
    judged = run_of([], {"src/kv/a.c": ["kv"]}, Scripted([]))
    assert judged.judge(lexer.changes_of("src/kv/a.c", SOURCE)[0])[0] == run.REFUSED


def who_kills_most_a_second_is_asked_first():
    slow, fast, idle = (tree.Test(name, "p", "kv", ["p"], {}) for name in ("slow", "fast", "idle"))
    with tempfile.TemporaryDirectory() as home:
        known = run.Known(pathlib.Path(home) / "known")
        known.seconds = {"slow": 10.0, "fast": 1.0, "idle": 1.0}
        for killed in (True, False, False, False):
            known.note("kv", fast, killed)
            known.note("kv", idle, False)
            known.note("kv", slow, True)
        known.save()
        judged = run_of([slow, idle, fast], {"src/kv/a.c": ["kv"]}, Scripted([]), known=run.Known(known.path))
        assert judged.order("src/kv/a.c") == [fast, idle, slow]


def a_report_tells_rates_by_folders():
    changes = [change for path in ("src/kv/a.c", "src/model/timed/tables/b.c")
               for change in lexer.changes_of(path, SOURCE)[:4]]
    outcomes = [run.KILLED, run.TIME, run.SURVIVED, run.SURVIVED, run.KILLED, run.SAME, run.REFUSED, run.KILLED]
    results = [(change, outcome, "") for change, outcome in zip(changes, outcomes)]
    reasons = {changes[3].fingerprint(): "It is so."}
    lines, saved = [], run.say
    run.say = lines.append
    try:
        assert not run.report(results, reasons, {}, {"kv_a"})
        assert run.report(results[3:], reasons, {}, set())
        assert not run.report(results[3:], reasons, {"kv_a": "not ok 1"}, set())
    finally:
        run.say = saved
    rates = [line.split() for line in lines if line.endswith(" %")][:3]
    assert rates == [["kv", "1", "1", "1", "1", "0", "0", "0", "66.7", "%"],
                     ["model/timed/tables", "2", "0", "0", "0", "1", "1", "0", "100.0", "%"],
                     ["all", "3", "1", "1", "1", "1", "1", "0", "80.0", "%"]], rates
    assert f"+ {changes[2].new}" in "\n".join(lines) and not any(changes[3].new in line for line in lines)
    assert "\n4 of 5 killed, 80.0 %, 1 survived" in lines and "\n2 of 2 killed, 100.0 %, 0 survived" in lines
    assert "\nskipped, and has judged nothing: kv_a" in lines


def folders_have_the_longest_name_that_fits():
    assert tree.room_of("src/model/timed/tables/row.c") == "model/timed/tables"
    assert tree.room_of("src/model/timed/history.c") == "model/timed"
    assert tree.room_of("src/kv/embedded/store.c") == "kv"


def an_even_draw_is_of_each_folder():
    changes = [change for path in ("src/kv/a.c", "src/mql/b.c", "src/access/c.c")
               for change in lexer.changes_of(path, SOURCE)]
    drawn = run.draw(changes, 7, 1, even=True)
    rooms = [tree.room_of(change.path) for change in drawn]
    assert len(set(drawn)) == 7 and len(set(rooms[:3])) == len(set(rooms[3:6])) == 3, rooms


def a_draw_may_be_of_some_folders():
    changes = [change for path in ("src/kv/a.c", "src/kvx/b.c", "src/mql/expr/b.c", "src/mql/c.c")
               for change in lexer.changes_of(path, SOURCE)]
    options = argparse.Namespace(again=False, at=None, folders=["kv", "mql/expr/"], count=20, seed=1, even=True)
    drawn = run.chosen(changes, options, None)
    assert len(drawn) == 20 and {change.path for change in drawn} == {"src/kv/a.c", "src/mql/expr/b.c"}


def survivors_are_judged_again():
    first, second, third = lexer.changes_of("src/a.c", SOURCE)[:3]
    with tempfile.TemporaryDirectory() as home:
        outcomes = run.Outcomes(pathlib.Path(home) / "outcomes")
        options = argparse.Namespace(again=True, at=None, folders=None)
        assert run.chosen([first], options, outcomes) == []
        outcomes.begin()
        outcomes.add(first, run.SURVIVED, "2 tests passed")
        outcomes.add(second, run.KILLED, "a: not ok 1")
        outcomes.add(third, run.SURVIVED, "1 tests passed")
        outcomes.add(third, run.KILLED, "b: exit -6")
        moved = lexer.changes_of("src/a.c", "\n\n" + SOURCE)
        assert run.chosen(moved, options, outcomes) == [moved[0]] and moved[0].line == first.line + 2
        outcomes.begin()
        assert run.chosen(moved, options, outcomes) == []


def an_interrupted_draw_goes_on():
    changes = lexer.changes_of("src/a.c", SOURCE)[:3]
    with tempfile.TemporaryDirectory() as home:
        outcomes = run.Outcomes(pathlib.Path(home) / "outcomes")
        assert outcomes.rest(changes) == (changes, [])
        outcomes.begin()
        outcomes.add(changes[1], run.SURVIVED, "1 tests passed")
        outcomes.add(changes[1], run.KILLED, "a: not ok 1")
        assert outcomes.rest(changes) == ([changes[0], changes[2]], [(changes[1], run.KILLED, "a: not ok 1")])


def nobody_waits_for_a_test_while_there_are_others():
    tests = [tree.Test(name, "p", "kv", ["p"], {}) for name in "abc"]
    judged = run_of(tests, {"src/kv/a.c": ["kv"]}, Scripted([]))
    lock = judged.reach.locks["a"]
    lock.acquire()
    turns = judged.in_turn(tests)
    assert next(turns).name == "b"
    lock.release()
    assert [test.name for test in turns] == ["a", "c"]
    lock.acquire()
    assert [test.name for test in judged.in_turn(tests[:1])] == ["a"], "the last one is waited for"
    lock.release()


def what_runs_ends_with_the_run():
    """A test that hangs, whose child hangs, too, in a folder of its own."""
    running = tree.Running()
    saved = tree.RUNNING
    with tempfile.TemporaryDirectory() as home:
        tree.RUNNING = running
        build = tree.Build(tree.FAST)
        build.out = home  # there may be none
        told = os.path.join(home, "told")
        os.mkfifo(told)
        test = tree.Test("hangs", "", "kv",
                         ["sh", "-c", f"sleep 600 & echo $TMPDIR $! > {told}; wait"], {})
        ended = []

        def hang():
            try:
                tree.run_test(build, test, 600)
            except tree.Stopped:
                ended.append(True)
        thread = threading.Thread(target=hang)
        try:
            thread.start()
            with open(told) as said:
                room, child = said.read().split()
            assert os.path.isdir(room) and is_running(child)
            assert os.stat(room).st_mode & 0o777 == 0o755
            running.stop()
            thread.join()
            hang()
            assert ended == [True, True] and not os.path.exists(room) and not running.processes
            while is_running(child):
                time.sleep(0.01)
        finally:
            running.stop()
            tree.RUNNING = saved


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def main():
    tests = [changes_are_those_of_bodies_alone, a_change_touches_nothing_else,
             a_seed_draws_the_same_again, a_reason_is_of_one_change,
             reasons_are_of_lines_that_are_there, sources_have_changes_of_all_kinds, suites_have_tests_that_are_there,
             a_slow_machine_kills_nothing, a_test_that_fails_by_itself_kills_nothing,
             what_fails_now_and_then_kills_nothing,
             a_test_that_has_passed_lately_is_not_run_without_the_change,
             what_ends_the_process_is_believed_at_once, what_is_skipped_is_told,
             who_noticed_last_is_asked_first, who_kills_most_a_second_is_asked_first,
             a_namesake_is_asked_before_others, a_change_may_be_given_up,
             a_report_tells_rates_by_folders, folders_have_the_longest_name_that_fits, an_even_draw_is_of_each_folder,
             a_draw_may_be_of_some_folders, survivors_are_judged_again, an_interrupted_draw_goes_on, a_program_holds_all_changes,
             what_gcc_alone_finds_in_a_change_is_compiled, a_test_runs_in_either_build,
             what_the_compiler_refuses_is_left_out, cases_run_alone, a_test_is_asked_once_what_it_meets,
             what_a_test_meets_is_kept_while_its_files_are_the_same,
             what_is_slow_comes_last,
             cases_that_fail_alone_run_with_the_others, nobody_waits_for_a_test_while_there_are_others,
             what_runs_ends_with_the_run]
    run.say = lambda text: print(f"# {text}")
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
