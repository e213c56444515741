/* Purging: leaves are gone as if they had never been, and everything around them fits again. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "kv/tuple.h"
#include "model/revisioned/revisioned_int.h"

struct purge_arg {
	struct fixture *f;
	const struct rev_purge_query *queries;
	size_t count;
	struct rev_purge_result results[REV_PURGE_DOCS];
	struct kv_tx_stats cost;
	struct err err;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct purge_arg *a = arg;
	struct kv_tx_stats before = kv_tx_stats(tx);
	enum status status = rev_purge(tx, a->f->db, a->queries, a->count, a->f->arena, a->results,
				       &a->err);

	a->cost = kv_tx_stats(tx);
	a->cost.keys_read -= before.keys_read;
	a->cost.round_trips -= before.round_trips;
	return status;
}

static struct rev_purge_query
query(struct fixture *f, const char *id, const char *const *revs, size_t count)
{
	struct rev_id *ids = arena_alloc(f->arena, (count + 1) * sizeof(*ids));

	assert_non_null(ids);
	for (size_t i = 0; i < count; i++)
		ids[i] = fixture_rev(f, revs[i]);
	return (struct rev_purge_query){ str_from_cstr(id), ids, count };
}

/* Purges one revision, and says whether it was a leaf. */
static bool
purge(struct fixture *f, const char *id, const char *rev)
{
	const struct rev_purge_query q = query(f, id, &rev, 1);
	struct purge_arg arg = { .f = f, .queries = &q, .count = 1 };

	assert_int_equal(kv_run(f->store, purge_body, &arg, NULL, NULL), STATUS_OK);
	if (arg.results[0].count)
		assert_true(rev_id_eq(arg.results[0].revs[0], q.revs[0]));
	fixture_check(f);
	return arg.results[0].count == 1;
}

static struct rev_db_info
info_of(struct fixture *f)
{
	struct rev_db_info info;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_db_info(tx, f->db, &info), STATUS_OK);
	kv_tx_free(tx);
	return info;
}

static void
only_leaf_takes_the_document_along(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "a", NULL, "{\"x\":1}");
	struct rev_db_info before, after;

	rev = fixture_put(f, "a", rev, "{\"x\":2}");
	fixture_put(f, "b", NULL, "{}");
	before = info_of(f);
	assert_true(purge(f, "a", rev));
	after = info_of(f);
	assert_string_equal(fixture_tree(f, "a", false), "");
	assert_string_equal(fixture_body(f, "a"), "missing");
	assert_int_equal(after.doc_count, before.doc_count - 1);
	assert_int_equal(after.doc_del_count, 0);
	/* No Sequence goes back, though the newest change may be gone. */
	assert_true(catalog_seq_cmp(&after.update_seq, &before.update_seq) > 0);
	assert_int_equal(catalog_seq_cmp(&after.update_seq, &after.purge_seq), 0);
	/* As new: with the same revisions as the first time. */
	assert_string_equal(fixture_put(f, "a", NULL, "{\"x\":1}"),
			    fixture_put(f, "c", NULL, "{\"x\":1}"));
	fixture_check(f);
}

static void
tombstones_can_be_purged(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "a", NULL, "{}");

	rev = fixture_delete(f, "a", rev);
	assert_int_equal(info_of(f).doc_del_count, 1);
	assert_true(purge(f, "a", rev));
	assert_int_equal(info_of(f).doc_del_count, 0);
	assert_string_equal(fixture_tree(f, "a", false), "");
}

static void
winner_that_goes_leaves_its_place_to_the_next(void **state)
{
	struct fixture *f = *state;
	struct rev_db_info before, after;

	fixture_replicate(f, "a", "2-b a", false, "{\"n\":\"b\"}");
	fixture_replicate(f, "a", "2-c a", false, "{\"n\":\"c\"}");
	fixture_replicate(f, "a", "3-e d a", true, "{}");
	assert_string_equal(fixture_tree(f, "a", false), "2-c! 2-b 3-e#");
	before = info_of(f);
	assert_true(purge(f, "a", "2-c"));
	assert_string_equal(fixture_tree(f, "a", true), "2-b(1-a)! 3-e(2-d 1-a)#");
	assert_string_equal(fixture_body(f, "a"), "{\"n\":\"b\"}");
	assert_string_equal(fixture_changes(f), "a 2-b");
	after = info_of(f);
	assert_true(catalog_seq_cmp(&after.update_seq, &before.update_seq) > 0);
	assert_true(purge(f, "a", "2-b"));
	assert_string_equal(fixture_tree(f, "a", false), "3-e!#");
	assert_string_equal(fixture_changes(f), "a 3-e#");
	assert_true(purge(f, "a", "3-e"));
	assert_string_equal(fixture_changes(f), "");
}

static void
loser_that_goes_changes_the_count_of_branches(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "2-b a", false, "{}");
	fixture_replicate(f, "a", "2-c a", false, "{}");
	assert_true(purge(f, "a", "2-b"));
	assert_string_equal(fixture_tree(f, "a", true), "2-c(1-a)!");
	assert_string_equal(fixture_leaf(f, "a", "2-b", false), "missing");
	/* What was purged can come back by replication. */
	fixture_replicate(f, "a", "2-b a", false, "{}");
	assert_string_equal(fixture_tree(f, "a", false), "2-c! 2-b");
	fixture_check(f);
}

static void
what_is_no_leaf_is_passed_over(void **state)
{
	struct fixture *f = *state;
	const char *first = fixture_put(f, "a", NULL, "{}");
	struct rev_db_info before, after;

	fixture_put(f, "a", first, "{}");
	before = info_of(f);
	assert_false(purge(f, "a", first));
	assert_false(purge(f, "a", "2-other"));
	assert_false(purge(f, "none", "1-a"));
	after = info_of(f);
	assert_int_equal(catalog_seq_cmp(&after.update_seq, &before.update_seq), 0);
}

static void
many_leaves_and_documents_go_in_one_round_trip(void **state)
{
	static const char *const revs[] = { "1-a", "2-b", "9-x", "1-a" };
	struct fixture *f = *state;
	struct rev_purge_query queries[3];
	struct purge_arg arg = { .f = f, .queries = queries, .count = 3 };

	fixture_replicate(f, "a", "1-a", false, "{\"p\":{\"q\":[1,2,3]}}");
	fixture_replicate(f, "a", "2-b", false, "{}");
	fixture_replicate(f, "a", "1-c", true, "{}");
	fixture_replicate(f, "b", "1-a", false, "{}");
	fixture_replicate(f, "c", "1-a", false, "{}");
	queries[0] = query(f, "a", revs, 4);
	queries[1] = query(f, "b", revs, 1);
	queries[2] = query(f, "d", revs, 1);
	assert_int_equal(kv_run(f->store, purge_body, &arg, NULL, NULL), STATUS_OK);
	fixture_check(f);
	assert_int_equal(arg.results[0].count, 2);
	assert_string_equal(fixture_text(f, arg.results[0].revs[0]), "1-a");
	assert_string_equal(fixture_text(f, arg.results[0].revs[1]), "2-b");
	assert_int_equal(arg.results[1].count, 1);
	assert_int_equal(arg.results[2].count, 0);
	if (!getenv("FROND_TEST_INDEXES")) { /* whose entries make a purge read bodies, too */
		assert_int_equal(arg.cost.keys_read, 4);
		assert_int_equal(arg.cost.round_trips, 1);
	}
	assert_string_equal(fixture_tree(f, "a", false), "1-c!#");
	assert_string_equal(fixture_changes(f), "c 1-a, a 1-c#");
}

static void
the_same_document_twice_and_too_many_are_refused(void **state)
{
	static const char *const revs[] = { "1-a" };
	struct fixture *f = *state;
	struct rev_purge_query queries[REV_PURGE_DOCS + 1];
	struct purge_arg arg = { .f = f, .queries = queries, .count = 2 };

	for (size_t i = 0; i <= REV_PURGE_DOCS; i++)
		queries[i] = query(f, "a", revs, 1);
	assert_int_equal(kv_run(f->store, purge_body, &arg, NULL, NULL), STATUS_INVALID);
	assert_true(arg.err.text[0]);
	arg.count = REV_PURGE_DOCS + 1;
	assert_int_equal(kv_run(f->store, purge_body, &arg, NULL, NULL), STATUS_INVALID);
}

static void
replicate_with_data(struct fixture *f, const char *history, const char *data)
{
	const struct rev_upload_options options = {
		.store = f->store,
		.db = f->db,
		.memory_bytes = 1000,
	};
	struct rev_edit edit = fixture_copy(f, "a", history, false, "{}");
	struct rev_att_edit att = { .att = { .name = STR("file"), .type = STR("text/plain") } };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_upload *upload;
	struct rev_result result;

	assert_int_equal(rev_upload_new(&options, &upload), STATUS_OK);
	assert_int_equal(rev_upload_write(upload, str_from_cstr(data), NULL), STATUS_OK);
	assert_int_equal(rev_upload_finish(upload, &att, md5, NULL), STATUS_OK);
	att.att.revpos = edit.start;
	edit.atts = &att;
	edit.atts_count = 1;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	rev_upload_free(upload, true);
}

/* What nothing refers to any more is cleared: fixture_check() would find it. */
static void
attachments_go_with_their_last_revision(void **state)
{
	struct fixture *f = *state;

	replicate_with_data(f, "2-b a", "data of b");
	replicate_with_data(f, "2-c a", "data of c");
	fixture_check(f);
	assert_true(purge(f, "a", "2-c"));
	assert_true(purge(f, "a", "2-b"));
	assert_string_equal(fixture_tree(f, "a", false), "");
}

/* Random branches and purges: fixture_check() after each. */
static void
any_order_of_purges_keeps_the_database_whole(void **state)
{
	struct fixture *f = *state;
	struct rand_seq rand = { 35 };

	for (int round = 0; round < 60; round++) {
		struct arena_mark mark = arena_mark(f->arena);
		char id[16], text[64];

		snprintf(id, sizeof(id), "doc%d", (int)rand_seq_below(&rand, 4));
		snprintf(text, sizeof(text), "%d-%c a", 2, 'b' + (int)rand_seq_below(&rand, 5));
		if (rand_seq_below(&rand, 2)) {
			fixture_replicate(f, id, text, rand_seq_below(&rand, 3) == 0, "{\"n\":1}");
			fixture_check(f);
		} else {
			*strchr(text, ' ') = '\0';
			purge(f, id, text);
		}
		arena_reset(f->arena, mark);
	}
}

/* A winner whose record counts no branches. */
static enum status
uncount_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct fixture *f = arg;
	struct tuple_reader r;
	struct kv_future *read;
	struct tuple_elem e;
	struct str record;

	rev_key_rev(&key, f->db, REV_SUBSPACE_REVISIONS, STR("a"), false, fixture_rev(f, "1-x"));
	read = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(read));
	assert_true(kv_future_value(read, &record));
	r = tuple_reader(record);
	/* (format, (…, Sequence), branches, …) */
	for (int i = 0; tuple_next(&r, &e) == STATUS_OK; i++) {
		if (i == 2)
			tuple_put_u64(&value, 0);
		else
			buf_append_str(&value, e.encoding);
	}
	kv_future_free(read);
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

static void
more_branches_than_are_counted_are_corrupt(void **state)
{
	struct fixture *f = *state;
	const char *rev = "1-x";
	const struct rev_purge_query q = query(f, "a", &rev, 1);
	struct purge_arg arg = { .f = f, .queries = &q, .count = 1 };

	fixture_replicate(f, "a", "1-x", false, "{}");
	assert_int_equal(kv_run(f->calm, uncount_body, f, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->calm, purge_body, &arg, NULL, NULL), STATUS_CORRUPT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(more_branches_than_are_counted_are_corrupt,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(only_leaf_takes_the_document_along, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(tombstones_can_be_purged, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(winner_that_goes_leaves_its_place_to_the_next,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(loser_that_goes_changes_the_count_of_branches,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(what_is_no_leaf_is_passed_over, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(many_leaves_and_documents_go_in_one_round_trip,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(the_same_document_twice_and_too_many_are_refused,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(attachments_go_with_their_last_revision,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(any_order_of_purges_keeps_the_database_whole,
						fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
