/*
 * What requests with many revisions cost: n log n at most. Counted in keys read and in steps, for n
 * and 10 n of whatever a request names or a document has; the time does not matter.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "loop/step.h"

enum {
	N = 60,
	TIMES = 10,
	MOST = 12 * TIMES / 10 + 1, /* 10 to the power of 1.1 is 12.6 */
};

struct cost {
	uint64_t keys;
	uint64_t steps;
};

/* On this thread, which is no fiber, the steps are what the credit has fallen by. */
static int64_t
steps_begin(void)
{
	assert_int_equal(step_count(1), STATUS_OK);
	return step_credit;
}

static uint64_t
steps_since(int64_t begin)
{
	return (uint64_t)(begin - step_credit);
}

static void
assert_grows_evenly(struct cost one, struct cost ten)
{
	/* What a request costs at all does not grow. */
	assert_true(ten.keys <= one.keys * MOST + 100);
	assert_true(ten.steps <= one.steps * MOST + 1000);
	assert_true(ten.steps > one.steps);
}

static struct rev_id
rev_numbered(struct fixture *f, uint64_t pos, const char *what, size_t i)
{
	return (struct rev_id){ pos, arena_printf(f->arena, "%s%zu", what, i) };
}

/* A revision with `depth` ancestors, which no other document or branch shares. */
static struct rev_edit
branch_of(struct fixture *f, const char *id, size_t number, size_t depth)
{
	struct rev_edit edit = fixture_copy(f, id, "1-x", false, "{\"n\":1}");

	edit.history = arena_alloc(f->arena, (depth + 1) * sizeof(*edit.history));
	assert_non_null(edit.history);
	edit.start = depth + 1;
	edit.history_count = depth + 1;
	for (size_t i = 0; i <= depth; i++)
		edit.history[i] = arena_printf(f->arena, "b%zu-%zu", number, edit.start - i);
	return edit;
}

/* In one transaction; what that cost. */
static struct cost
add_branches(struct fixture *f, const char *id, size_t count, size_t depth)
{
	struct rev_edit *edits = arena_alloc(f->arena, count * sizeof(*edits));
	struct rev_result *results = arena_alloc(f->arena, count * sizeof(*results));
	int64_t begin = steps_begin();

	assert_non_null(edits);
	assert_non_null(results);
	for (size_t i = 0; i < count; i++)
		edits[i] = branch_of(f, id, i, depth);
	fixture_write(f, edits, count, results);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(results[i].status, STATUS_OK);
	return (struct cost){ f->cost.keys_read, steps_since(begin) };
}

/* ---- Many branches at once ---- */

static void
branches_that_come_together_cost_what_each_does(void **state)
{
	struct fixture *f = *state;
	struct cost one = add_branches(f, "one", N, 5);
	struct cost ten = add_branches(f, "ten", TIMES * N, 5);

	assert_int_equal(ten.keys, 0);
	assert_grows_evenly(one, ten);
	fixture_check(f);
	/* They are there now: each is read once. */
	one = add_branches(f, "one", N, 5);
	ten = add_branches(f, "ten", TIMES * N, 5);
	assert_int_equal(ten.keys, TIMES * N);
	assert_grows_evenly(one, ten);
}

static void
a_line_of_revisions_that_come_together_is_one_branch(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[N];
	struct rev_result results[N];
	struct rev_edit line = branch_of(f, "a", 0, N - 1);

	/* Each with its whole history, the oldest first. */
	for (size_t i = 0; i < N; i++) {
		edits[i] = line;
		edits[i].start = i + 1;
		edits[i].history = line.history + (N - 1 - i);
		edits[i].history_count = i + 1;
	}
	fixture_write(f, edits, N / 2, results);
	fixture_write(f, edits, N, results);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(results[i].status, STATUS_OK);
		assert_int_equal(results[i].unchanged, i < N / 2);
	}
	assert_int_equal(f->cost.keys_read, 1);
	assert_string_equal(fixture_tree(f, "a", false),
			    arena_printf(f->arena, "%d-b0-%d!", N, N).ptr);
	fixture_check(f);
}

/* ---- What is missing ---- */

static struct cost
cost_of_diff(struct fixture *f, const char *id, const struct rev_id *revs, size_t count,
	     size_t missing)
{
	struct rev_diff_query query = { str_from_cstr(id), (struct rev_id *)(uintptr_t)revs,
					count };
	struct rev_diff diff;
	struct kv_tx *tx = fixture_begin(f);
	struct cost cost;
	int64_t begin;

	begin = steps_begin();
	assert_int_equal(rev_diff(tx, f->db, &query, 1, f->arena, &diff), STATUS_OK);
	cost = (struct cost){ kv_tx_stats(tx).keys_read, steps_since(begin) };
	kv_tx_free(tx);
	assert_int_equal(diff.missing_count, missing);
	return cost;
}

static void
a_diff_of_many_revisions_with_a_long_history(void **state)
{
	struct fixture *f = *state;
	struct rev_id revs[TIMES * N];

	add_branches(f, "a", 1, 900);
	for (size_t i = 0; i < TIMES * N; i++)
		revs[i] = rev_numbered(f, 1 + i % 900, "missing", i);
	assert_grows_evenly(cost_of_diff(f, "a", revs, N, N),
			    cost_of_diff(f, "a", revs, TIMES * N, TIMES * N));
	/* One is found as the last ancestor of all. */
	revs[7] = (struct rev_id){ 1, STR("b0-1") };
	(void)cost_of_diff(f, "a", revs, TIMES * N, TIMES * N - 1);
}

static void
a_diff_of_many_revisions_with_many_branches(void **state)
{
	struct fixture *f = *state;
	struct rev_id revs[TIMES * N];
	struct cost one, ten;

	add_branches(f, "one", N, 3);
	add_branches(f, "ten", TIMES * N, 3);
	for (size_t i = 0; i < TIMES * N; i++)
		revs[i] = i % 2 ? (struct rev_id){ 2, arena_printf(f->arena, "b%zu-2", i) }
				: rev_numbered(f, 2, "missing", i);
	one = cost_of_diff(f, "one", revs, N, N / 2);
	ten = cost_of_diff(f, "ten", revs, TIMES * N, TIMES * N / 2);
	assert_int_equal(ten.keys, TIMES * N);
	assert_grows_evenly(one, ten);
}

static void
a_diff_names_a_revision_as_often_as_it_was_asked_about(void **state)
{
	struct fixture *f = *state;
	struct rev_id revs[6];

	add_branches(f, "a", 2, 1);
	for (size_t i = 0; i < 6; i++)
		revs[i] = rev_numbered(f, 3, "missing", i % 2);
	(void)cost_of_diff(f, "a", revs, 6, 6);
	revs[5] = (struct rev_id){ 2, STR("b1-2") };
	(void)cost_of_diff(f, "a", revs, 6, 5);
	(void)cost_of_diff(f, "a", revs + 4, 2, 1);
}

/* ---- Heads of named revisions ---- */

static struct cost
cost_of_descent(struct fixture *f, const char *id, const struct rev_id *revs, size_t count,
		struct rev_descent *ret)
{
	struct kv_tx *tx = fixture_begin(f);
	int64_t begin = steps_begin();
	struct cost cost;

	assert_int_equal(rev_descent_read(tx, f->db, str_from_cstr(id), revs, count,
					  REV_DESCENT_WHOLE, f->arena, ret),
			 STATUS_OK);
	cost = (struct cost){ kv_tx_stats(tx).keys_read, steps_since(begin) };
	kv_tx_free(tx);
	return cost;
}

static void
heads_of_many_revisions_are_found_together(void **state)
{
	struct fixture *f = *state;
	struct rev_id revs[TIMES * N];
	struct rev_descent d;
	struct cost one, ten;

	add_branches(f, "one", N, 3);
	add_branches(f, "ten", TIMES * N, 3);
	for (size_t i = 0; i < TIMES * N; i++)
		revs[i] = (struct rev_id){ 2, arena_printf(f->arena, "b%zu-2", i) };
	one = cost_of_descent(f, "one", revs, N, &d);
	ten = cost_of_descent(f, "ten", revs, TIMES * N, &d);
	assert_int_equal(ten.keys, TIMES * N);
	assert_grows_evenly(one, ten);
	for (size_t i = 0; i < TIMES * N; i++) {
		uint32_t link = rev_descent_first(&d, revs[i]);
		struct rev_id head;

		assert_true(link > 0);
		head = d.heads[d.links[link - 1].head].rev;
		assert_int_equal(head.pos, 4);
		assert_true(str_eq(head.hash, arena_printf(f->arena, "b%zu-4", i)));
		assert_int_equal(d.links[link - 1].next, 0);
	}
	assert_int_equal(rev_descent_first(&d, (struct rev_id){ 2, STR("other") }), 0);
}

static void
heads_of_one_revision_come_with_the_best_first(void **state)
{
	static const char *const want[] = { "3-z", "3-y", "4-t" };
	struct fixture *f = *state;
	struct rev_id revs[2] = { fixture_rev(f, "1-a"), fixture_rev(f, "4-t") };
	struct rev_branch branch;
	struct rev_descent d;
	struct kv_tx *tx;
	uint32_t link;

	fixture_replicate(f, "a", "3-z b a", false, "{}");
	fixture_replicate(f, "a", "4-t c b a", true, "{}");
	fixture_replicate(f, "a", "3-y b a", false, "{}");
	fixture_replicate(f, "a", "9-q", false, "{}");
	(void)cost_of_descent(f, "a", revs, 2, &d);
	link = rev_descent_first(&d, revs[0]);
	for (size_t i = 0; i < 3; i++, link = d.links[link - 1].next)
		assert_string_equal(fixture_text(f, d.heads[d.links[link - 1].head].rev), want[i]);
	assert_int_equal(link, 0);
	link = rev_descent_first(&d, revs[1]);
	assert_string_equal(fixture_text(f, d.heads[d.links[link - 1].head].rev), "4-t");

	tx = fixture_begin(f);
	assert_int_equal(rev_branch_read(tx, f->db, STR("a"), revs[1], f->arena, &branch),
			 STATUS_OK);
	assert_true(branch.deleted && !branch.winner);
	assert_int_equal(branch.ancestors_count, 3);
	assert_int_equal(rev_branch_read(tx, f->db, STR("a"), revs[0], f->arena, &branch),
			 STATUS_NOT_FOUND);
	assert_int_equal(kv_tx_stats(tx).keys_read, 1);
	kv_tx_free(tx);
}

/* Heads that are shown without their history do not take the memory of it. */
static void
a_tree_of_heads_holds_no_ancestors(void **state)
{
	static const enum rev_tree_part parts[] = { REV_TREE_HEADS, REV_TREE_WINNER, REV_TREE_ALL };
	struct fixture *f = *state;
	size_t bytes[3];

	add_branches(f, "a", N, 100);
	for (size_t i = 0; i < 3; i++) {
		size_t before = arena_used_bytes(f->arena);
		struct kv_tx *tx = fixture_begin(f);
		struct rev_tree tree;

		assert_int_equal(rev_tree_read(tx, f->db, STR("a"), parts[i], f->arena, &tree),
				 STATUS_OK);
		kv_tx_free(tx);
		bytes[i] = arena_used_bytes(f->arena) - before;
		assert_int_equal(tree.count, N);
		assert_true(tree.branches[0].winner && !tree.branches[1].winner);
		assert_int_equal(tree.branches[0].ancestors_count, i ? 100 : 0);
		assert_int_equal(tree.branches[N - 1].ancestors_count, i == 2 ? 100 : 0);
	}
	assert_true(bytes[0] < bytes[1] && bytes[1] < bytes[0] + 20000);
	assert_true(bytes[0] < bytes[2] / 10);
}

/* ---- Purging ---- */

struct purge_call {
	struct fixture *f;
	struct rev_purge_query query;
	struct rev_purge_result result;
	struct cost cost;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct purge_call *c = arg;
	uint64_t before = kv_tx_stats(tx).keys_read;
	int64_t begin = steps_begin();
	enum status status = rev_purge(tx, c->f->db, &c->query, 1, c->f->arena, &c->result, NULL);

	c->cost = (struct cost){ kv_tx_stats(tx).keys_read - before, steps_since(begin) };
	return status;
}

/* Purges `count` branches of add_branches(), from number `first` on. */
static struct cost
cost_of_purge(struct fixture *f, const char *id, size_t first, size_t count)
{
	struct rev_id *revs = arena_alloc(f->arena, count * sizeof(*revs));
	struct purge_call c = { .f = f, .query = { str_from_cstr(id), revs, count } };

	assert_non_null(revs);
	for (size_t i = 0; i < count; i++)
		revs[i] = (struct rev_id){ 4, arena_printf(f->arena, "b%zu-4", first + i) };
	assert_int_equal(kv_run(f->store, purge_body, &c, NULL, NULL), STATUS_OK);
	assert_int_equal(c.result.count, count);
	assert_true(rev_id_eq(c.result.revs[0], revs[0]));
	assert_true(rev_id_eq(c.result.revs[count - 1], revs[count - 1]));
	return c.cost;
}

static void
a_purge_costs_what_it_purges(void **state)
{
	struct fixture *f = *state;
	struct cost one, ten;

	add_branches(f, "a", 2 * TIMES * N, 3);
	one = cost_of_purge(f, "a", 100, N);
	fixture_check(f);
	ten = cost_of_purge(f, "a", 200, TIMES * N);
	fixture_check(f);
	/* The others are hardly read: the last k + 1, and those further down by their keys. */
	assert_true(one.keys <= 2 * N + 1);
	assert_grows_evenly(one, ten);
	(void)cost_of_purge(f, "a", 0, 100);
	(void)cost_of_purge(f, "a", 100 + N, 40);
	(void)cost_of_purge(f, "a", 800, 400);
	assert_string_equal(fixture_tree(f, "a", false), "");
	fixture_check(f);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(branches_that_come_together_cost_what_each_does),
		TEST(a_line_of_revisions_that_come_together_is_one_branch),
		TEST(a_diff_of_many_revisions_with_a_long_history),
		TEST(a_diff_of_many_revisions_with_many_branches),
		TEST(a_diff_names_a_revision_as_often_as_it_was_asked_about),
		TEST(heads_of_many_revisions_are_found_together),
		TEST(heads_of_one_revision_come_with_the_best_first),
		TEST(a_tree_of_heads_holds_no_ancestors),
		TEST(a_purge_costs_what_it_purges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
