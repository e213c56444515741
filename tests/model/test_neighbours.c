/*
 * Batches of edits with ascending ids: one read tells which of their documents are new, and the
 * results and conflicts are those of reading the branches of each.
 */
#include "fixture.h"

#include <stdio.h>

#include "base/rand.h"
#include "model/revisioned/neighbours.h"

enum {
	RUN = 3 * REV_NEIGHBOURS_LEAST, /* documents of a batch */
	MANY = 2000,                    /* ids of the random workload */
	BATCHES = 60,
};

static const char *
id_of(struct fixture *f, size_t n)
{
	return arena_printf(f->arena, "doc%04zu", n).ptr;
}

/* New documents from `first` on, `every` apart. */
static void
fill(struct fixture *f, struct rev_edit *edits, size_t count, size_t first, size_t every)
{
	for (size_t i = 0; i < count; i++)
		edits[i] = fixture_edit(f, id_of(f, first + i * every), NULL, "{\"n\":1}");
}

static void
assert_all_written(const struct rev_result *results, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(results[i].status, STATUS_OK);
}

/* ---- What it costs ---- */

static void
new_documents_in_order_take_one_read(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[RUN];
	struct rev_result results[RUN];

	fixture_put(f, "doc", NULL, "{}");
	fixture_put(f, "doc9999", NULL, "{}");
	fill(f, edits, RUN, 0, 1);
	fixture_write(f, edits, RUN, results);
	assert_all_written(results, RUN);
	assert_int_equal(f->cost.reads, 1);
	assert_int_equal(f->cost.keys_read, 0);
	assert_int_equal(f->cost.round_trips, 1);
	fixture_check(f);
}

static void
new_copies_in_order_take_one_read(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[RUN];
	struct rev_result results[RUN];

	for (size_t i = 0; i < RUN; i++)
		edits[i] = fixture_copy(f, id_of(f, i), i % 2 ? "2-b a" : "7-c", i % 3 == 0,
					"{\"n\":1}");
	fixture_write(f, edits, RUN, results);
	assert_all_written(results, RUN);
	assert_int_equal(f->cost.reads, 1);
	assert_int_equal(f->cost.keys_read, 0);
	fixture_check(f);
	/* All of them are there now: the read tells nothing, and stops early. */
	fixture_write(f, edits, RUN, results);
	for (size_t i = 0; i < RUN; i++)
		assert_true(results[i].status == STATUS_OK && results[i].unchanged);
	assert_int_equal(f->cost.reads, 1 + RUN);
	assert_int_equal(f->cost.keys_read, REV_NEIGHBOURS_PAIRS + RUN);
	assert_int_equal(f->cost.round_trips, 2);
}

static void
documents_in_no_order_take_a_read_each_and_no_second_wave(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[RUN];
	struct rev_result results[RUN];

	fill(f, edits, RUN, 0, 1);
	for (size_t i = 0; i < RUN / 2; i++) {
		struct rev_edit swap = edits[i];

		edits[i] = edits[RUN - 1 - i];
		edits[RUN - 1 - i] = swap;
	}
	fixture_write(f, edits, RUN, results);
	assert_all_written(results, RUN);
	assert_int_equal(f->cost.reads, RUN);
	assert_int_equal(f->cost.round_trips, 1);
	fixture_check(f);
}

static void
few_documents_take_a_read_each(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[REV_NEIGHBOURS_LEAST];
	struct rev_result results[REV_NEIGHBOURS_LEAST];

	fill(f, edits, REV_NEIGHBOURS_LEAST - 1, 0, 1);
	fixture_write(f, edits, REV_NEIGHBOURS_LEAST - 1, results);
	assert_int_equal(f->cost.reads, REV_NEIGHBOURS_LEAST - 1);
	fill(f, edits, REV_NEIGHBOURS_LEAST, 100, 1);
	fixture_write(f, edits, REV_NEIGHBOURS_LEAST, results);
	assert_int_equal(f->cost.reads, 1);
}

/* Two loaders' documents, one behind the other in a batch, such as a feed has them. */
static void
each_run_of_a_batch_takes_one_read(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[2 * RUN + 1];
	struct rev_result results[2 * RUN + 1];
	const char *rev = fixture_put(f, "doc0600", NULL, "{}");

	fill(f, edits, RUN, 500, 1);
	edits[RUN] = fixture_edit(f, "doc0600", rev, "{\"n\":2}");
	fill(f, edits + RUN + 1, RUN, 0, 1);
	fixture_write(f, edits, 2 * RUN + 1, results);
	assert_all_written(results, 2 * RUN + 1);
	assert_int_equal(f->cost.reads, 3);
	assert_int_equal(f->cost.keys_read, 1);
	assert_int_equal(f->cost.round_trips, 1);
	fixture_check(f);
}

/* ---- What is there ---- */

static void
documents_that_are_there_are_found_among_new_ones(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[RUN];
	struct rev_result results[RUN];
	const char *rev;

	fixture_put(f, id_of(f, 0), NULL, "{}");
	rev = fixture_put(f, id_of(f, 5), NULL, "{}");
	fixture_delete(f, id_of(f, 5), rev);
	fixture_replicate(f, id_of(f, 9), "2-x", false, "{}");
	fixture_replicate(f, id_of(f, 9), "2-y", false, "{}");
	fixture_put(f, arena_printf(f->arena, "%s!", id_of(f, 12)).ptr, NULL, "{}");
	fixture_put(f, id_of(f, RUN - 1), NULL, "{}");
	fill(f, edits, RUN, 0, 1);
	fixture_write(f, edits, RUN, results);
	for (size_t i = 0; i < RUN; i++) {
		bool is_there = i == 0 || i == 9 || i == RUN - 1;

		assert_int_equal(results[i].status, is_there ? STATUS_DOC_CONFLICT : STATUS_OK);
		if (!is_there)
			assert_int_equal(results[i].rev.pos, i == 5 ? 3 : 1);
	}
	/* Each of the four is read by itself, behind the one read for all. */
	assert_int_equal(f->cost.reads, 1 + 4);
	assert_int_equal(f->cost.round_trips, 2);
	assert_string_equal(fixture_tree(f, id_of(f, 9), false), "2-y! 2-x");
	fixture_check(f);
}

static void
many_others_in_between_are_not_read(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[RUN];
	struct rev_result results[RUN];

	/* Ten others behind the first two documents. */
	fill(f, edits, 10, 101, 1);
	fixture_write(f, edits, 10, results);
	edits[0] = fixture_edit(f, id_of(f, 50), NULL, "{}");
	edits[1] = fixture_edit(f, id_of(f, 60), NULL, "{}");
	fill(f, edits + 2, RUN - 2, 200, 1);
	fixture_write(f, edits, RUN, results);
	assert_all_written(results, RUN);
	assert_int_equal(f->cost.keys_read, REV_NEIGHBOURS_PAIRS);
	assert_int_equal(f->cost.reads, 1 + RUN - 2);
	fixture_check(f);
}

static void
ids_order_as_keys_do(void **state)
{
	struct fixture *f = *state;
	const struct str ids[] = {
		STR("a"),  STR("a\0"), STR("a\0\0"), STR("a\0\xff"),   STR("a\1"),
		STR("aa"), STR("b"),   STR("b\0c"),  STR("b\xc3\xa9"), STR("c"),
	};
	enum {
		COUNT = sizeof(ids) / sizeof(ids[0])
	};
	struct rev_edit edits[COUNT];
	struct rev_result results[COUNT];

	/* Each of them is there alone, and the others are new. */
	for (size_t there = 0; there < COUNT; there++) {
		for (size_t i = 0; i < COUNT; i++) {
			edits[i] = fixture_copy(f, "x", "1-a", false, "{}");
			edits[i].id = str_of(ids[i].ptr, ids[i].len);
		}
		fixture_write(f, &edits[there], 1, results);
		fixture_write(f, edits, COUNT, results);
		for (size_t i = 0; i < COUNT; i++) {
			assert_int_equal(results[i].status, STATUS_OK);
			assert_int_equal(results[i].unchanged, there > 0 || i == there);
		}
	}
	fixture_check(f);
}

/* ---- Meeting others ---- */

struct meeting {
	const char *other; /* what somebody else writes between the reads and the commit */
	bool conflicts;
};

static void
a_batch_conflicts_with_those_who_write_its_documents(void **state)
{
	static const struct meeting meetings[] = {
		{ "doc0000", true },   { "doc0010", true },  { "doc0046", true },
		{ "doc", false },      { "doc0", false },    { "doc0000!", false },
		{ "doc0009", false },  { "doc0011", false }, { "doc0045", false },
		{ "doc00460", false }, { "doc0047", false },
	};
	struct fixture *f = *state;
	struct rev_edit edits[RUN];
	struct rev_result results[RUN];

	/* Documents 0, 2, … 46. */
	for (size_t i = 0; i < sizeof(meetings) / sizeof(meetings[0]); i++) {
		for (int ended = 0; ended < 2; ended++) {
			const struct meeting *m = &meetings[i];
			enum status status;
			struct kv_tx *tx;

			fill(f, edits, RUN, 0, 2);
			assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
			assert_int_equal(
				rev_write(tx, f->db, edits, RUN, 0, f->arena, results, NULL),
				STATUS_OK);
			assert_all_written(results, RUN);
			assert_int_equal(kv_tx_stats(tx).reads, 1);
			/* A live document, or the tombstone of one. */
			fixture_replicate(f, m->other, "1-other", ended == 1, "{}");
			status = kv_future_wait(kv_commit(tx));
			kv_tx_free(tx);
			assert_int_equal(status, m->conflicts ? STATUS_TX_CONFLICT : STATUS_OK);
			fixture_check(f);
			/* As before, for the next one. */
			fixture_teardown(state);
			fixture_setup(state);
			f = *state;
		}
	}
}

/* The other way round: who has read that a document is not there must not commit behind it. */
static void
those_who_have_read_a_document_conflict_with_its_batch(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[RUN], edit;
	struct rev_result results[RUN], result;
	struct kv_tx *tx;

	edit = fixture_edit(f, id_of(f, 7), NULL, "{\"n\":2}");
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(rev_write(tx, f->db, &edit, 1, 0, f->arena, &result, NULL), STATUS_OK);
	fill(f, edits, RUN, 0, 1);
	fixture_write(f, edits, RUN, results);
	assert_all_written(results, RUN);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_TX_CONFLICT);
	kv_tx_free(tx);
	fixture_check(f);
}

/* Two batches whose documents lie between each other's do not conflict. */
static void
batches_between_each_other_go_side_by_side(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[2][RUN];
	struct rev_result results[RUN];
	struct kv_tx *txs[2];

	for (size_t i = 0; i < 2; i++) {
		fill(f, edits[i], RUN, i, 2);
		assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &txs[i]), STATUS_OK);
		assert_int_equal(
			rev_write(txs[i], f->db, edits[i], RUN, 0, f->arena, results, NULL),
			STATUS_OK);
		assert_all_written(results, RUN);
	}
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(kv_future_wait(kv_commit(txs[i])), STATUS_OK);
		kv_tx_free(txs[i]);
	}
	fixture_check(f);
}

/* Whose stamps cannot be read before the commit. */
static enum status
twice_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct rev_edit edits[RUN];
	struct rev_result results[RUN];

	fill(f, edits, RUN, 0, 2);
	TRY(rev_write(tx, f->db, edits, RUN, 0, f->arena, results, NULL));
	assert_all_written(results, RUN);
	fill(f, edits, RUN, 1, 2);
	TRY(rev_write(tx, f->db, edits, RUN, RUN, f->arena, results, NULL));
	assert_all_written(results, RUN);
	return STATUS_OK;
}

static void
a_batch_between_documents_of_its_transaction_is_written(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kv_run(f->store, twice_body, f, NULL, NULL), STATUS_OK);
	fixture_check(f);
}

/* ---- At random ---- */

enum document {
	ABSENT,
	LIVE,
	DELETED,
};

/* Of documents in ascending order mostly, most of them new at first and few of them in the end. */
static void
random_batches_agree_with_a_simple_set(void **state)
{
	struct fixture *f = *state;
	struct rand_seq rand = { test_seed() };
	enum document documents[MANY] = { ABSENT };
	size_t together = 0, apart = 0;

	print_message("# FROND_TEST_SEED=%llu\n", (unsigned long long)rand.state);
	for (size_t batch = 0; batch < BATCHES; batch++) {
		size_t every = 1 + rand_seq_below(&rand, 5), at = rand_seq_below(&rand, MANY);
		bool falls = rand_seq_below(&rand, 8) == 0;
		struct rev_edit edits[RUN];
		struct rev_result results[RUN];
		size_t numbers[RUN], count = 0;

		for (; count < RUN && at < MANY; at += 1 + rand_seq_below(&rand, 2 * every))
			numbers[count++] = at;
		for (size_t i = 0; falls && i < count / 2; i++) {
			size_t swap = numbers[i];

			numbers[i] = numbers[count - 1 - i];
			numbers[count - 1 - i] = swap;
		}
		for (size_t i = 0; i < count; i++) {
			const char *id = id_of(f, numbers[i]);

			if (rand_seq_below(&rand, 8) == 0)
				edits[i] = fixture_copy(f, id, "1-d", true, "{}");
			else
				edits[i] = fixture_edit(f, id, NULL, "{\"n\":1}");
		}
		fixture_write(f, edits, count, results);
		if (f->cost.reads < count)
			together++;
		else
			apart++;
		for (size_t i = 0; i < count; i++) {
			enum document *is = &documents[numbers[i]];
			bool begins = *is != LIVE || edits[i].kind == REV_EDIT_REPLICATED;

			assert_int_equal(results[i].status,
					 begins ? STATUS_OK : STATUS_DOC_CONFLICT);
			if (edits[i].kind == REV_EDIT_INTERACTIVE)
				*is = LIVE;
			else if (*is == ABSENT)
				*is = DELETED;
		}
	}
	fixture_check(f);
	print_message("# together %zu, apart %zu\n", together, apart);
	assert_true(together > BATCHES / 10);
	assert_true(apart > BATCHES / 20);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(new_documents_in_order_take_one_read),
		TEST(new_copies_in_order_take_one_read),
		TEST(documents_in_no_order_take_a_read_each_and_no_second_wave),
		TEST(few_documents_take_a_read_each),
		TEST(each_run_of_a_batch_takes_one_read),
		TEST(documents_that_are_there_are_found_among_new_ones),
		TEST(many_others_in_between_are_not_read),
		TEST(ids_order_as_keys_do),
		TEST(a_batch_conflicts_with_those_who_write_its_documents),
		TEST(those_who_have_read_a_document_conflict_with_its_batch),
		TEST(batches_between_each_other_go_side_by_side),
		TEST(a_batch_between_documents_of_its_transaction_is_written),
		TEST(random_batches_agree_with_a_simple_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
