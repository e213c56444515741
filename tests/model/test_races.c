/* Several threads at one document: each time exactly one of them wins. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
	THREADS = 4,
	ROUNDS = 40,
};

struct writer {
	struct fixture *f;
	struct arena *arena;
	struct rev_edit edit;
	struct rev_result result;
	enum status status;
};

static enum status
write_body(struct kv_tx *tx, void *arg)
{
	struct writer *w = arg;

	return rev_write(tx, w->f->db, &w->edit, 1, 0, w->arena, &w->result, NULL);
}

static void *
write_once(void *arg)
{
	struct writer *w = arg;

	w->status = kv_run(w->f->store, write_body, w, NULL, NULL);
	return NULL;
}

/* Runs all edits at once; returns how many succeeded, and one of those. */
static size_t
race(struct fixture *f, const struct rev_edit edits[THREADS], struct rev_id *ret_rev)
{
	struct writer writers[THREADS];
	pthread_t threads[THREADS];
	size_t won = 0;

	for (size_t i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){ .f = f, .edit = edits[i] };
		writers[i].arena = arena_new(1024 * 1024);
		assert_non_null(writers[i].arena);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_once, &writers[i]), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (size_t i = 0; i < THREADS; i++) {
		const struct rev_result *result = &writers[i].result;

		assert_int_equal(writers[i].status, STATUS_OK);
		if (result->status == STATUS_OK) {
			won++;
			ret_rev->pos = result->rev.pos;
			ret_rev->hash = arena_dup(f->arena, result->rev.hash);
		} else {
			assert_int_equal(result->status, STATUS_DOC_CONFLICT);
		}
		arena_free(writers[i].arena);
	}
	return won;
}

static struct str
body_of(struct fixture *f, size_t thread, int round)
{
	return arena_printf(f->arena, "{\"thread\":%zu,\"round\":%d}", thread, round);
}

static void
one_of_several_edits_of_a_winner_wins(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[THREADS];
	struct rev_id rev = { 0 };

	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < THREADS; i++) {
			edits[i] = fixture_edit(f, "a", NULL, body_of(f, i, round).ptr);
			edits[i].parent = rev;
		}
		assert_int_equal(race(f, edits, &rev), 1);
		assert_int_equal(rev.pos, round + 1);
	}
	fixture_check(f);
}

static void
one_of_several_identical_edits_wins(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[THREADS];
	struct rev_id rev = { 0 };

	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < THREADS; i++) {
			edits[i] = fixture_edit(f, "a", NULL, "{\"same\":true}");
			edits[i].parent = rev;
		}
		assert_int_equal(race(f, edits, &rev), 1);
	}
	fixture_check(f);
}

/* Deleting and starting again, by all of them at once. */
static void
one_of_several_deletions_and_one_of_several_starts_win(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[THREADS];
	struct rev_id rev = { 0 };

	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < THREADS; i++)
			edits[i] = fixture_edit(f, "a", NULL, body_of(f, i, round).ptr);
		assert_int_equal(race(f, edits, &rev), 1);
		for (size_t i = 0; i < THREADS; i++) {
			edits[i] = fixture_edit(f, "a", NULL, NULL);
			edits[i].parent = rev;
		}
		assert_int_equal(race(f, edits, &rev), 1);
	}
	fixture_check(f);
}

/*
 * Edits of different branches all succeed, and each of them moves the one Sequence: the winner's
 * key makes them conflict and run again.
 */
static void
edits_of_different_branches_all_succeed(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[THREADS];
	struct rev_id rev;

	for (int round = 0; round < ROUNDS; round++) {
		const char *id = arena_printf(f->arena, "doc%d", round).ptr;

		fixture_replicate(f, id, "1-a", false, "{}");
		fixture_replicate(f, id, "2-x", false, "{}");
		fixture_replicate(f, id, "2-y", false, "{}");
		edits[0] = fixture_edit(f, id, "2-y", NULL);
		edits[1] = fixture_edit(f, id, "2-x", body_of(f, 1, round).ptr);
		edits[2] = fixture_edit(f, id, "1-a", body_of(f, 2, round).ptr);
		edits[3] = fixture_copy(f, id, "4-new", round % 2 == 0, "{\"n\":1}");
		assert_int_equal(race(f, edits, &rev), THREADS);
	}
	fixture_check(f);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_of_several_edits_of_a_winner_wins),
		TEST(one_of_several_identical_edits_wins),
		TEST(one_of_several_deletions_and_one_of_several_starts_win),
		TEST(edits_of_different_branches_all_succeed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
