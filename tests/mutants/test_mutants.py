#!/usr/bin/env python3
"""Tests of what mutants are made of, as TAP: the lexer, the drawing, the reasons."""

import argparse
import os
import pathlib
import sys
import tempfile
import threading
import time

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


class Scripted:
    """A worker whose tests end as it is told: (what a run says, its seconds), one after the other."""

    def __init__(self, changed, unchanged=()):
        self.commands = {"src/kv/a.c": ("a.o", [])}
        self.programs = type("Programs", (), {"uses": lambda _, test, object_: True})()
        self.told = {True: list(changed), False: list(unchanged)}
        self.limits = []

    def run(self, test, limit, changed):
        self.limits += [limit] if changed else []
        return self.told[changed].pop(0)


def noticed(worker, passed=False):
    test = tree.Test("kv_a", "p", "kv", [], {})
    judged = run.Run([test], {}, {"src/kv/a.c": ["kv"]}, [worker])
    if passed:
        judged.note_pass(test, 1)
    return judged.notices(worker, test), judged


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
    assert judged.notices(worker, judged.tests[0]) == ""  # and is not run again
    assert noticed(Scripted([("exit -6", 1)] * 2, [("passed", 1)]))[0] == "exit -6"


def what_fails_now_and_then_kills_nothing():
    assert noticed(Scripted([("not ok 1 - a", 1), ("passed", 1)], [("passed", 1)]))[0] == ""
    assert noticed(Scripted([("not ok 1 - a", 1), ("passed", 1)]), passed=True)[0] == ""


def a_test_that_has_passed_lately_is_not_run_without_the_change():
    assert noticed(Scripted([("not ok 1 - a", 1)] * 2), passed=True)[0] == "not ok 1 - a"


def what_is_skipped_is_told():
    outcome, judged = noticed(Scripted([("skipped", 1)]))
    assert outcome == "" and judged.skipped == {"kv_a"}


def who_noticed_last_is_asked_first():
    far, near, other = (tree.Test(name, program, folder, [], {}) for name, folder, program in
                        (("cli_disk", "cli", "frond"), ("kv_a", "kv", "p"), ("kv_b", "kv", "q")))
    variant = tree.Test("kv_c", "p", "kv", [], {"FROND_TEST_FAULTS": "rate=1"})
    known = run.Known()
    known.seconds = {"cli_disk": 1.0, "kv_a": 3.0, "kv_b": 2.0, "kv_c": 1.0}
    judged = run.Run([far, variant, near, other], {}, {"src/kv/a.c": ["kv", "cli/cli_*"]},
                     [Scripted([])], known=known)
    assert judged.order("src/kv/a.c") == [far, other, near, variant]
    judged.last_kill = {("src/kv/a.c", "kv_a"): 1, ("src/kv/b.c", "kv_c"): 3}
    assert judged.order("src/kv/a.c") == [near, far, other, variant]
    judged.last_kill["src/kv/a.c", "kv_b"] = 4
    assert judged.order("src/kv/a.c") == [other, near, far, variant]


def a_namesake_is_asked_before_others():
    tests = [tree.Test(name, "p", "kv", [], {}) for name in ("kv_size", "kv_salvage")]
    judged = run.Run(tests, {}, {"src/kv/salvage_logs.c": ["kv"]}, [Scripted([])])
    assert [test.name for test in judged.order("src/kv/salvage_logs.c")] == ["kv_salvage", "kv_size"]
    assert run.shares_a_word("src/model/revisioned/verify_atts.c", "revisioned_attachments")
    assert not run.shares_a_word("src/kv/kv.c", "kv_size")


def a_change_may_be_given_up():
    worker = Scripted([("passed", 1)] * 2)
    worker.compile = lambda path, source: b"changed"
    worker.is_unchanged = lambda path, source, compiled: False
    worker.begin = lambda: None
    tests = [tree.Test(name, "p", "kv", [], {}) for name in ("kv_a", "kv_b")]
    change = lexer.changes_of("src/kv/a.c", SOURCE)[0]
    for patience, outcome in ((1e-9, run.OPEN), (None, run.SURVIVED)):
        judged = run.Run(tests, {"src/kv/a.c": SOURCE}, {"src/kv/a.c": ["kv"]}, [worker], patience=patience)
        assert judged.judge(worker, change)[0] == outcome


def who_kills_most_a_second_is_asked_first():
    slow, fast, idle = (tree.Test(name, "p", "kv", [], {}) for name in ("slow", "fast", "idle"))
    with tempfile.TemporaryDirectory() as home:
        known = run.Known(pathlib.Path(home) / "known")
        known.seconds = {"slow": 10.0, "fast": 1.0, "idle": 1.0}
        for killed in (True, False, False, False):
            known.note("kv", fast, killed)
            known.note("kv", idle, False)
            known.note("kv", slow, True)
        known.save()
        judged = run.Run([slow, idle, fast], {}, {"src/kv/a.c": ["kv"]}, [Scripted([])],
                         known=run.Known(known.path))
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


def survivors_are_judged_again():
    first, second, third = lexer.changes_of("src/a.c", SOURCE)[:3]
    with tempfile.TemporaryDirectory() as home:
        outcomes = run.Outcomes(pathlib.Path(home) / "outcomes")
        options = argparse.Namespace(again=True, at=None)
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


def what_runs_ends_with_the_run():
    """A test that hangs, whose child hangs, too, in a folder of its own."""
    running = tree.Running()
    saved = tree.RUNNING, tree.OUT
    with tempfile.TemporaryDirectory() as home:
        tree.RUNNING, tree.OUT = running, home  # of the build that tests run in, there may be none
        told = os.path.join(home, "told")
        os.mkfifo(told)
        test = tree.Test("hangs", "", "kv",
                         ["sh", "-c", f"sleep 600 & echo $TMPDIR $! > {told}; wait"], {})
        ended = []

        def hang():
            try:
                tree.run_test(test, "", 600)
            except tree.Stopped:
                ended.append(True)
        thread = threading.Thread(target=hang)
        try:
            thread.start()
            with open(told) as said:
                room, child = said.read().split()
            assert os.path.isdir(room) and is_running(child)
            running.stop()
            thread.join()
            hang()
            assert ended == [True, True] and not os.path.exists(room) and not running.processes
            while is_running(child):
                time.sleep(0.01)
        finally:
            running.stop()
            tree.RUNNING, tree.OUT = saved


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def main():
    tests = [changes_are_those_of_bodies_alone, a_change_touches_nothing_else,
             a_seed_draws_the_same_again, a_reason_is_of_one_change,
             reasons_are_of_lines_that_are_there, sources_have_changes_of_all_kinds,
             a_slow_machine_kills_nothing, a_test_that_fails_by_itself_kills_nothing,
             what_fails_now_and_then_kills_nothing,
             a_test_that_has_passed_lately_is_not_run_without_the_change, what_is_skipped_is_told,
             who_noticed_last_is_asked_first, who_kills_most_a_second_is_asked_first,
             a_namesake_is_asked_before_others, a_change_may_be_given_up,
             a_report_tells_rates_by_folders, folders_have_the_longest_name_that_fits, an_even_draw_is_of_each_folder,
             survivors_are_judged_again,
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
