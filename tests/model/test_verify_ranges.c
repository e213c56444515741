/*
 * The check in ranges: what a writer changes meanwhile is no finding, and a range that is read
 * again tells what it has found once.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "fixture.h"
#include "base/rand.h"
#include "catalog/check.h"
#include "catalog/verify.h"
#include "model/revisioned/verify_int.h"

static void
found(const struct catalog_finding *finding, void *arg)
{
	(void)arg;
	fail_msg("%s: %s", finding->kind, finding->text);
}

/* Each document is a range, which is read at a version of its own. */
static void
verify_in_ranges(struct fixture *f)
{
	struct catalog_verify_options options = { .found = found,
						  .ranges = true,
						  .range_units = 1 };
	struct catalog_verify_sum sum;
	struct err err = { 0 };
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_verify_store(tx, &options, &sum, &err), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(sum.unchecked, 0);
}

/* Sizes and counters of partitions are of all documents, which no range has. */
static void
ranges_of_a_partitioned_database_find_nothing(void **state)
{
	struct fixture *f = *state;
	const char *rev;

	fixture_make_partitioned(f);
	verify_in_ranges(f);
	rev = fixture_put(f, "a:1", NULL, "{\"n\":1}");
	fixture_put(f, "a:2", NULL, "{\"n\":[1,2,3]}");
	fixture_put(f, "b:1", NULL, "{}");
	fixture_put(f, "_design/d", NULL, "{\"n\":1}");
	fixture_replicate(f, "c:1", "1-x", true, "{}");
	verify_in_ranges(f);
	fixture_delete(f, "a:1", rev);
	verify_in_ranges(f);
}

/* ---- Beside a writer ---- */

enum {
	WRITER_IDS = 40,
	WRITER_LEAST = 60, /* transactions beside the checks */
	RANGED_CHECKS = 5, /* of one document at a time */
};

struct writer {
	struct fixture *f;
	struct arena *arena;
	char id[16];
	char history[32];
	unsigned round;
	_Atomic unsigned written;
	_Atomic bool ends;
	enum status status;
};

/* Makes, changes and deletes documents, by revisions that need no parent. */
static enum status
writer_body(struct kv_tx *tx, void *arg)
{
	struct writer *w = arg;
	struct rev_edit edit;
	struct rev_result result;

	arena_clear(w->arena);
	edit = fixture_copy(w->f, w->id, w->history, w->round % 3 == 2, "{\"n\":[1,2,3]}");
	return rev_write(tx, w->f->db, &edit, 1, 0, w->arena, &result, NULL);
}

static void *
writer_run(void *arg)
{
	struct writer *w = arg;

	while (!atomic_load(&w->ends) && w->status == STATUS_OK) {
		(void)snprintf(w->id, sizeof(w->id), "w%02u", w->round * 7 % WRITER_IDS);
		(void)snprintf(w->history, sizeof(w->history), "%u-%x", w->round + 1, w->round + 1);
		w->status = kv_run(w->f->store, writer_body, w, NULL, NULL);
		w->round++;
		atomic_fetch_add(&w->written, 1);
	}
	return NULL;
}

static void
ranges_beside_a_writer_find_nothing(void **state)
{
	struct writer w = { .f = *state, .arena = arena_new(1024 * 1024) };
	pthread_t thread;

	assert_non_null(w.arena);
	assert_int_equal(pthread_create(&thread, NULL, writer_run, &w), 0);
	for (int i = 0; i < RANGED_CHECKS || atomic_load(&w.written) < WRITER_LEAST; i++)
		verify_in_ranges(w.f);
	atomic_store(&w.ends, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(w.status, STATUS_OK);
	arena_free(w.arena);
}

/* ---- Ranges that are read again ---- */

enum {
	SCRATCH_BYTES = 64 * 1024,
	AGAIN_TIMES = 3,
	AGAIN_FINDINGS = 5,
};

struct rereading {
	unsigned attempts;
	unsigned told;
	unsigned told_before_the_end;
	bool ended;
};

static void
count_told(const struct catalog_finding *finding, void *arg)
{
	struct rereading *r = arg;
	char expected[16];

	(void)snprintf(expected, sizeof(expected), "finding %u", r->told);
	assert_string_equal(finding->kind, "kind");
	assert_string_equal(finding->text, expected);
	assert_true(str_eq(finding->key, STR("key")));
	assert_true(str_eq(finding->database, STR("db")));
	r->told++;
	r->told_before_the_end += !r->ended;
}

/* Its first attempts find the same, and then cannot read on. */
static enum status
find_and_fail(struct catalog_verify *v, struct catalog_verify_range *range)
{
	struct rereading *r = range->arg;

	for (unsigned i = 0; i < AGAIN_FINDINGS; i++)
		catalog_verify_found(v, "kind", STR("key"), "finding %u", i);
	if (++r->attempts < AGAIN_TIMES)
		return STATUS_TX_TOO_OLD;
	r->ended = true;
	return STATUS_OK;
}

static void
findings_of_a_range_that_is_read_again_are_told_once(void **state)
{
	struct fixture *f = *state;
	struct rereading r = { 0 };
	const struct catalog_verify_options options = { .found = count_told,
							.arg = &r,
							.ranges = true };
	struct arena *scratch = arena_new(SCRATCH_BYTES);
	struct catalog_verify v = { .options = &options, .db = f->db, .scratch = scratch };

	assert_non_null(scratch);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &v.tx), STATUS_OK);
	assert_int_equal(catalog_verify_ranges(&v, find_and_fail, &r), STATUS_OK);
	kv_tx_free(v.tx);
	assert_int_equal(r.attempts, AGAIN_TIMES);
	assert_int_equal(r.told, AGAIN_FINDINGS);
	assert_int_equal(r.told_before_the_end, 0);
	assert_int_equal(v.sum.findings, AGAIN_FINDINGS);
	arena_free(scratch);
}

/* ---- What is in a range ---- */

/* Attachments of one byte: each has a counter, and a chunk. */
static void
put_attachments(struct fixture *f, size_t count)
{
	struct rev_att_edit *atts = arena_zalloc(f->arena, count * sizeof(*atts));
	struct rev_edit edit = fixture_edit(f, "a", NULL, "{}");
	struct rev_result result;

	assert_non_null(atts);
	for (size_t i = 0; i < count; i++) {
		atts[i] = (struct rev_att_edit){
			.source = REV_ATT_DATA,
			.att = { .name = arena_printf(f->arena, "%zu", i),
				 .type = STR("x/y"),
				 .length = 1,
				 .encoded_length = 1 },
			.data = STR("d"),
		};
		rand_bytes(atts[i].att.id, sizeof(atts[i].att.id));
	}
	edit.atts = atts;
	edit.atts_count = count;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
}

/* No range of attachments has more pairs than it may have; the last one has what is left. */
static void
attachments_are_checked_in_ranges_of_so_many_pairs(void **state)
{
	enum {
		ATTS = 5,
		MOST = 3,
		RANGES = 4, /* of ten pairs */
	};
	struct fixture *f = *state;
	const struct catalog_verify_options options = { .found = found, .ranges = true };
	struct arena *scratch = arena_new(SCRATCH_BYTES);
	struct catalog_verify v = { .options = &options,
				    .db = f->db,
				    .scratch = scratch,
				    .key = CATALOG_KEY_INIT,
				    .value = CATALOG_KEY_INIT };
	struct verify_data data = { 0 };
	struct catalog_verify_range range = { .most = MOST,
					      .until_ns = UINT64_MAX,
					      .from = CATALOG_KEY_INIT,
					      .next = CATALOG_KEY_INIT,
					      .more = true,
					      .arg = &data };
	unsigned ranges = 0;

	assert_non_null(scratch);
	put_attachments(f, ATTS);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &v.tx), STATUS_OK);
	for (; range.more; ranges++) {
		struct buf from = range.from;

		range.units = 0;
		buf_clear(&range.next);
		assert_int_equal(verify_attachments_range(&v, &range), STATUS_OK);
		assert_int_equal(range.units, ranges + 1 < RANGES ? MOST : 1);
		range.from = range.next;
		range.next = from;
	}
	assert_int_equal(ranges, RANGES);
	assert_int_equal(v.sum.findings, 0);
	kv_tx_free(v.tx);
	buf_release(&range.from);
	buf_release(&range.next);
	buf_release(&v.key);
	buf_release(&v.value);
	arena_free(scratch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranges_of_a_partitioned_database_find_nothing,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(ranges_beside_a_writer_find_nothing, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(
			findings_of_a_range_that_is_read_again_are_told_once, fixture_setup,
			fixture_teardown),
		cmocka_unit_test_setup_teardown(attachments_are_checked_in_ranges_of_so_many_pairs,
						fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests_name("verify_ranges", tests, NULL, NULL);
}
