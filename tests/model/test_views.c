/*
 * Views over documents that are edited, deleted and purged: every question is answered as a naive
 * model answers it, which sorts and adds by itself.
 */
#include "views_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena_apart.h"
#include "base/clock.h"
#include "base/mem.h"
#include "index/view/keys.h"
#include "index/view/order.h"
#include "index/view/written.h"

enum {
	ROUNDS = 25, /* of the random workload */
};

static void
random_edits_are_followed(void **state)
{
	struct world *w = world_new(*state);

	world_put_design(w);
	for (size_t i = 0; i < ROUNDS; i++) {
		struct arena_mark mark = arena_mark(w->f->arena);

		edit_randomly(w, rand_seq_below(&w->rand, EDITS));
		update(w);
		arena_reset(w->f->arena, mark);
		check_all(w);
	}
	world_free(w);
}

static void
rows_past_limits_are_left_out_and_told(void **state)
{
	struct world *w = world_new(*state);
	AUTO(buf_release) struct buf text = BUF_INIT(4 * VIEW_ROW_BYTES);
	struct asked a;

	buf_append_cstr(&text, "{\"rows\":[[1,1],[\"");
	for (int i = 0; i < 2 * VIEW_KEY_BYTES; i++)
		buf_append_byte(&text, 'x');
	buf_append_cstr(&text, "\",2],[3,\"");
	for (int i = 0; i < 3 * VIEW_CHUNK_BYTES; i++)
		buf_append_byte(&text, 'y');
	buf_append_cstr(&text, "\"],[4,4]]}");
	buf_append_byte(&text, '\0');
	(void)fixture_put(w->f, "big", NULL, text.ptr);
	update(w);
	asked_open(w, &a);
	assert_int_equal(a.group.rows[PAIRS_MAP], 3);
	/* One map lacks a row of the document, and the other has all of them. */
	assert_int_equal(a.group.lacking[PAIRS_MAP], 1);
	assert_int_equal(a.group.lacking[IDS_MAP], 0);
	assert_int_equal(a.group.refused, 1);
	assert_int_equal(a.group.refusal_count, 1);
	assert_true(str_eq(a.group.refusals[0].id, STR("big")));
	assert_true(str_eq(a.group.refusals[0].view, STR("a_sum")));
	assert_true(str_eq(a.group.refusals[0].limit, STR("view_key_bytes")));
	asked_close(&a);
	world_free(w);
}

/* In Erlang's order of terms. */
static const char *const terms[] = {
	"-1e300",
	"-2",
	"0",
	"0.1",
	"1",
	"1.5",
	"123456789",
	"1234567890123456789012",
	"1e300",
	"false",
	"null",
	"true",
	"{}",
	"{\"a\":1}",
	"{\"a\":1,\"b\":0}",
	"{\"a\":2}",
	"{\"b\":0}",
	"[]",
	"[1]",
	"[1,1]",
	"[1,[]]",
	"[1,\"a\"]",
	"[null]",
	"[\"a\",2]",
	"[\"b\",1]",
	"\"\"",
	"\"A\"",
	"\"B\"",
	"\"a\"",
	"\"a\\u0000\"",
	"\"aa\"",
	"\"b\"",
};

enum {
	TERMS = sizeof(terms) / sizeof(terms[0])
};

static void
assert_values_ascend(struct world *w, const char *id, bool descending)
{
	struct view_rows_options options = { .limit = UINT64_MAX };
	struct view_rows rows;
	struct view_row row;
	struct asked a;
	struct err err = { 0 };

	asked_open(w, &a);
	a.question = (struct view_question){ .start_key = STR("7"),
					     .end_key = STR("7"),
					     .descending = descending };
	assert_int_equal(view_range_make(&a.group, &a.question, &a.w, &a.range, &err), STATUS_OK);
	assert_int_equal(view_rows_begin(&rows, a.tx, w->f->db, &a.group, PAIRS_MAP, &a.range,
					 &options, &a.w),
			 STATUS_OK);
	for (size_t i = 0; i < TERMS; i++) {
		const char *term = terms[descending ? TERMS - 1 - i : i];

		assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_OK);
		assert_true(str_eq(row.id, str_from_cstr(id)));
		assert_true(str_eq(row.value, str_from_cstr(term)));
	}
	assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_NOT_FOUND);
	view_rows_end(&rows);
	asked_close(&a);
}

static void
equal_keys_of_a_document_come_by_value(void **state)
{
	static const char only_pairs[] =
		"{\"_id\":\"_design/p\",\"views\":{\"p\":{\"map\":\"pairs\"}}}";
	struct world *w = world_new(*state);
	struct err err = { 0 };
	const char *rev = NULL;
	int order;

	assert_int_equal(
		view_design_parse(str_from_cstr(only_pairs), false, w->f->arena, &w->design, &err),
		STATUS_OK);
	for (size_t i = 0; i < TERMS; i++)
		for (size_t k = 0; k < TERMS; k++) {
			assert_int_equal(view_term_cmp(str_from_cstr(terms[i]),
						       str_from_cstr(terms[k]), &order),
					 STATUS_OK);
			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
		}
	/* What is no text has none of its own. */
	assert_int_equal(view_term_cmp(STR("[1.0,true,[]]"), STR("[1,true,[]]"), &order),
			 STATUS_OK);
	assert_int_equal(order, 0);
	/* Between rows of other keys, in any order, and in another one at the next update. */
	for (size_t step = 7; step <= 11; step += 4) {
		AUTO(buf_release) struct buf text = BUF_INIT(8192);

		buf_append_cstr(&text, "{\"rows\":[[8,0]");
		for (size_t i = 0; i < TERMS; i++)
			buf_printf(&text, ",[7,%s],[6,%zu]", terms[i * step % TERMS], i);
		buf_append_cstr(&text, "]}");
		buf_append_byte(&text, '\0');
		rev = fixture_put(w->f, "many", rev, text.ptr);
		update(w);
		assert_values_ascend(w, "many", false);
		assert_values_ascend(w, "many", true);
	}
	world_free(w);
}

static void
a_cleanup_without_memory_clears_nothing(void **state)
{
	struct world *w = world_new(*state);
	struct err err = { 0 };
	uint64_t cleared;

	doc_put(w, &w->docs[0]);
	update(w);
	(void)mem_fail_only(1);
	assert_int_equal(view_cleanup(w->f->calm, CATALOG_SPACE_COUCH, w->f->db->name, NULL, 0,
				      &cleared, &err),
			 STATUS_NOMEM);
	(void)mem_fail_only(0);
	assert_int_equal(cleared, 0);
	assert_int_equal(view_cleanup(w->f->calm, CATALOG_SPACE_COUCH, w->f->db->name, NULL, 0,
				      &cleared, &err),
			 STATUS_OK);
	assert_int_equal(cleared, 1);
	world_free(w);
}

/* As most documents have it. */
static void
a_single_row_of_each_map_is_ordered_without_memory(void **state)
{
	struct view_mapped rows[] = {
		{ .map = 0, .component = STR("a"), .key = STR("1"), .value = STR("2") },
		{ .map = 1, .component = STR("a"), .key = STR("3"), .value = STR("4") },
		{ .map = 1, .component = STR("a"), .key = STR("5"), .value = STR("3") },
	};
	struct arena *nothing = arena_new(0);

	(void)state;
	assert_int_equal(view_rows_order(rows, 2, nothing), STATUS_OK);
	assert_int_equal(view_rows_order(rows, 3, nothing), STATUS_LIMIT);
	arena_free(nothing);
}

static void
large_rows_come_back_whole(void **state)
{
	struct world *w = world_new(*state);
	AUTO(buf_release) struct buf text = BUF_INIT(4 * VIEW_ROW_BYTES);
	const struct view_rows_options options = { .limit = UINT64_MAX };
	struct view_question question = { .start_key = STR("3"), .end_key = STR(" 3.0 ") };
	struct err err = { 0 };
	struct view_rows rows;
	struct view_row row;
	const char *rev;
	struct asked a;

	buf_append_cstr(&text, "{\"rows\":[[3,\"");
	for (int i = 0; i < 3 * VIEW_CHUNK_BYTES; i++)
		buf_append_byte(&text, (uint8_t)('a' + i % 26));
	buf_append_cstr(&text, "\"],[4,4]]}");
	buf_append_byte(&text, '\0');
	rev = fixture_put(w->f, "big", NULL, text.ptr);
	update(w);
	asked_open(w, &a);
	assert_int_equal(view_range_make(&a.group, &question, &a.w, &a.range, &err), STATUS_OK);
	assert_int_equal(view_rows_begin(&rows, a.tx, w->f->db, &a.group, PAIRS_MAP, &a.range,
					 &options, &a.w),
			 STATUS_OK);
	assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_OK);
	assert_int_equal(row.value.len, 3 * VIEW_CHUNK_BYTES + 2);
	assert_int_equal(row.value.ptr[27], 'a');
	assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_NOT_FOUND);
	view_rows_end(&rows);
	asked_close(&a);
	(void)fixture_put(w->f, "big", rev, "{\"rows\":[[3,3]]}");
	update(w);
	asked_open(w, &a);
	assert_int_equal(a.group.rows[PAIRS_MAP], 1);
	asked_close(&a);
	world_free(w);
}

enum {
	ALL_ROWS = 1000000, /* stands for as many rows as there are */
};

/*
 * As `limit=0` asks, whatever is passed over; of a group that is not built yet; and where all rows
 * are passed over.
 */
static void
a_page_without_rows_reads_nothing(void **state)
{
	static const struct view_rows_options pages[] = {
		{ .limit = 0 },
		{ .limit = 0, .skip = 1 },
		{ .limit = 0, .skip = UINT64_MAX },
		{ .limit = 0, .skip = 1, .after = STR("\x01") },
		{ .limit = UINT64_MAX, .skip = ALL_ROWS },
		{ .limit = UINT64_MAX, .skip = ALL_ROWS + 1 },
		{ .limit = UINT64_MAX, .skip = UINT64_MAX },
	};
	struct world *w = world_new(*state);
	struct view_question all = { 0 };
	struct err err = { 0 };

	edit_randomly(w, EDITS);
	update(w);
	for (unsigned built = 0; built < 2; built++)
		for (unsigned descending = 0; descending < 2; descending++)
			for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
				struct view_rows_options page = pages[i];
				struct view_rows rows;
				struct view_row row;
				uint64_t reads;
				struct asked a;

				if (!built)
					page.limit = UINT64_MAX;
				all.descending = descending;
				asked_open(w, &a);
				assert_int_equal(
					view_range_make(&a.group, &all, &a.w, &a.range, &err),
					STATUS_OK);
				if (!built)
					a.group.phase = VIEW_PHASE_SUMS;
				if (page.skip >= ALL_ROWS && page.skip < UINT64_MAX)
					page.skip += a.group.rows[PAIRS_MAP] - ALL_ROWS;
				reads = kv_tx_stats(a.tx).reads;
				assert_int_equal(view_rows_begin(&rows, a.tx, w->f->db, &a.group,
								 PAIRS_MAP, &a.range, &page, &a.w),
						 STATUS_OK);
				assert_int_equal(view_rows_next(&rows, &a.w, &row),
						 STATUS_NOT_FOUND);
				view_rows_end(&rows);
				assert_int_equal(kv_tx_stats(a.tx).reads, reads);
				asked_close(&a);
			}
	world_free(w);
}

static void
other_collations_are_refused(void **state)
{
	static const char in_view[] =
		"{\"views\":{\"v\":{\"map\":\"f\",\"options\":{\"collation\":\"other\"}}}}";
	static const char in_design[] = "{\"options\":{\"collation\":\"raw\"}}";
	struct fixture *f = *state;
	struct view_design design;

	for (int i = 0; i < 2; i++)
		assert_int_equal(view_design_parse(str_from_cstr(i ? in_view : in_design), false,
						   f->arena, &design, NULL),
				 STATUS_INVALID);
}

static void
equal_views_have_equal_signatures(void **state)
{
	static const char renamed[] = "{\"_id\":\"_design/y\",\"views\":{"
				      "\"g_ids\":{\"map\":\"ids\"},"
				      "\"f_top\":{\"map\":\"pairs\",\"reduce\":\"_top_2\"},"
				      "\"e_last\":{\"map\":\"pairs\",\"reduce\":\"_last\"},"
				      "\"d_first\":{\"map\":\"pairs\",\"reduce\":\"_first\"},"
				      "\"c_own\":{\"map\":\"pairs\",\"reduce\":\"own\"},"
				      "\"b_count\":{\"map\":\"pairs\",\"reduce\":\"_count\"},"
				      "\"a_sum\":{\"map\":\"pairs\",\"reduce\":\"_sum\"}},\"x\":1}";
	struct world *w = world_new(*state);
	struct view_design other;
	struct err err = { 0 };

	assert_int_equal(w->design.map_count, 2);
	assert_int_equal(w->design.maps[PAIRS_MAP].reduce_count, 6);
	assert_int_equal(
		view_design_parse(str_from_cstr(renamed), false, w->f->arena, &other, &err),
		STATUS_OK);
	assert_memory_equal(other.signature, w->design.signature, VIEW_SIGNATURE_BYTES);
	assert_int_equal(view_design_parse(str_from_cstr(renamed), true, w->f->arena, &other, &err),
			 STATUS_OK);
	assert_memory_not_equal(other.signature, w->design.signature, VIEW_SIGNATURE_BYTES);
	assert_int_equal(view_design_parse(STR("{\"views\":{\"v\":{\"map\":\"m\","
					       "\"reduce\":\"_top_101\"}}}"),
					   false, w->f->arena, &other, &err),
			 STATUS_INVALID);
	world_free(w);
}

static void
design_documents_have_rows_in_views_that_include_them(void **state)
{
	static const char *const designs[] = {
		"{\"views\":{\"v\":{\"map\":\"pairs\"}}}",
		"{\"views\":{\"v\":{\"map\":\"pairs\"}},\"options\":{\"include_design\":true}}",
	};
	struct world *w = world_new(*state);

	(void)fixture_put(w->f, "a", NULL, "{\"rows\":[[1,1]]}");
	(void)fixture_put(w->f, "_design/a", NULL, "{\"rows\":[[2,1],[3,1]]}");
	for (size_t included = 0; included < 2; included++) {
		struct err err = { 0 };
		struct asked a;

		assert_int_equal(view_design_parse(str_from_cstr(designs[included]), false,
						   w->f->arena, &w->design, &err),
				 STATUS_OK);
		update(w);
		asked_open(w, &a);
		assert_int_equal(a.group.rows[PAIRS_MAP], included ? 3 : 1);
		asked_close(&a);
	}
	world_free(w);
}

static void
each_kind_of_database_has_documents_of_its_own(void **state)
{
	static const struct view_documents others[] = { { .kind = 200 }, { .kind = 201 } };
	struct fixture *f = *state;
	const struct view_documents *own = view_documents_of(f->db);

	assert_non_null(own);
	for (unsigned again = 0; again < 2; again++)
		for (size_t i = 0; i < 2; i++)
			view_documents_register(&others[i]);
	for (uint64_t number = 199; number <= 202; number++) {
		const struct catalog_kind kind = { .number = number };
		const struct catalog_db db = { .kind = &kind };

		assert_ptr_equal(view_documents_of(&db), number == 200   ? &others[0]
							 : number == 201 ? &others[1]
									 : NULL);
	}
	assert_ptr_equal(view_documents_of(f->db), own);
}

/* ---- Notes of design documents that were written ---- */

static struct kv_tx *
begin_writing(struct world *w)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(w->f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
	return tx;
}

static void
note(struct world *w, const char *id)
{
	struct kv_tx *tx = begin_writing(w);

	assert_int_equal(view_written_note(tx, w->f->db, str_from_cstr(id)), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
}

/* The names of those behind `after`, at most two. */
static const char *
noted(struct world *w, const struct view_written *after, struct view_written **ret)
{
	AUTO(buf_release) struct buf names = BUF_INIT(1024);
	struct kv_tx *tx = fixture_begin(w->f);
	size_t count;

	assert_int_equal(view_written_list(tx, after, 2, w->f->arena, ret, &count), STATUS_OK);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal((*ret)[i].space, CATALOG_SPACE_COUCH);
		assert_int_equal((*ret)[i].db_number, w->f->db->number);
		assert_true(str_eq((*ret)[i].db_name, w->f->db->name));
		buf_append_str(&names, (*ret)[i].id);
		buf_append_byte(&names, ' ');
	}
	buf_append_byte(&names, '\0');
	kv_tx_free(tx);
	return arena_dup(w->f->arena, buf_str(&names)).ptr;
}

static void
notes_are_not_listed_without_memory(struct world *w)
{
	struct arena *none = arena_new(1);
	struct kv_tx *tx = fixture_begin(w->f);
	struct view_written *all;
	size_t count;

	assert_non_null(none);
	assert_int_equal(view_written_list(tx, NULL, 2, none, &all, &count), STATUS_LIMIT);
	kv_tx_free(tx);
	arena_free(none);
}

static void
notes_are_listed_in_pages_until_they_are_cleared(void **state)
{
	struct world *w = world_new(*state);
	struct view_written *first, *rest;
	struct kv_tx *tx;

	note(w, "_design/b");
	note(w, "_design/c");
	note(w, "_design/a");
	assert_string_equal(noted(w, NULL, &first), "_design/a _design/b ");
	assert_string_equal(noted(w, &first[1], &rest), "_design/c ");
	assert_string_equal(noted(w, &rest[0], &rest), "");
	notes_are_not_listed_without_memory(w);
	tx = begin_writing(w);
	assert_int_equal(view_written_clear(tx, &first[0]), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
	assert_string_equal(noted(w, NULL, &rest), "_design/b _design/c ");
	world_free(w);
}

/* A note is not cleared, by one who has dealt with it, when it has been written again. */
static void
a_guarded_note_conflicts_with_another_one(void **state)
{
	static const char *const ids[] = { "_design/b", "_design/a" };
	struct world *w = world_new(*state);
	struct view_written *all;

	for (size_t same = 0; same < 2; same++) {
		struct kv_tx *tx;

		note(w, "_design/a");
		(void)noted(w, NULL, &all);
		tx = begin_writing(w);
		assert_int_equal(view_written_guard(tx, &all[0]), STATUS_OK);
		assert_int_equal(view_written_clear(tx, &all[0]), STATUS_OK);
		note(w, ids[same]);
		assert_int_equal(kv_future_wait(kv_commit(tx)),
				 same ? STATUS_TX_CONFLICT : STATUS_OK);
		kv_tx_free(tx);
	}
	world_free(w);
}

/* ---- Partitions ---- */

static void
partitions_are_read_by_themselves(void **state)
{
	struct fixture *f = *state;
	struct view_question question = { .partition = STR("b") };
	const struct view_rows_options options = { .limit = UINT64_MAX };
	struct world *w;
	struct err err = { 0 };
	struct view_rows rows;
	struct view_row row;
	struct asked a;
	uint64_t n;

	fixture_make_partitioned(f);
	w = world_new(f);
	assert_int_equal(view_design_parse(str_from_cstr(views_design_text), true, f->arena,
					   &w->design, &err),
			 STATUS_OK);
	(void)fixture_put(f, "a:1", NULL, "{\"rows\":[[1,1],[2,2]]}");
	(void)fixture_put(f, "b:1", NULL, "{\"rows\":[[1,3],[2,4],[3,5]]}");
	(void)fixture_put(f, "c:1", NULL, "{\"rows\":[[1,6]]}");
	update(w);
	asked_open(w, &a);
	assert_true(a.group.partitioned);
	assert_int_equal(view_rows_total(a.tx, f->db, &a.group, PAIRS_MAP, STR("b"), &a.w, &n),
			 STATUS_OK);
	assert_int_equal(n, 3);
	for (int descending = 0; descending < 2; descending++) {
		question.descending = descending;
		question.start_key = STR("2");
		assert_int_equal(view_range_make(&a.group, &question, &a.w, &a.range, &err),
				 STATUS_OK);
		assert_int_equal(
			view_rows_offset(a.tx, f->db, &a.group, PAIRS_MAP, &a.range, &a.w, &n),
			STATUS_OK);
		assert_int_equal(n, 1);
		assert_int_equal(view_rows_begin(&rows, a.tx, f->db, &a.group, PAIRS_MAP, &a.range,
						 &options, &a.w),
				 STATUS_OK);
		assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_OK);
		assert_true(str_eq(row.id, STR("b:1")));
		assert_true(str_eq(row.value, STR("4")));
		assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_OK);
		assert_true(str_eq(row.value, descending ? STR("3") : STR("5")));
		assert_int_equal(view_rows_next(&rows, &a.w, &row), STATUS_NOT_FOUND);
		view_rows_end(&rows);
	}
	asked_close(&a);
	world_free(w);
}

/* Makes the range of a partition. Fails the test if one that was made lacks a bound. */
static enum status
range_make(size_t arena_bytes, uint64_t failing, bool *ret_failed)
{
	const struct view_group group = { .partitioned = true };
	const struct view_question question = { .partition = STR("b") };
	struct index_work w = { .arena = arena_new(arena_bytes) };
	struct view_range range;
	struct err err = { 0 };
	enum status status;

	arena_set_apart(failing);
	(void)mem_fail_only(failing);
	status = view_range_make(&group, &question, &w, &range, &err);
	*ret_failed = mem_fail_only(0) >= failing;
	arena_set_apart(false);
	if (status == STATUS_OK) {
		assert_true(range.begin.ptr && range.end.ptr);
		assert_true(str_cmp(range.begin, range.end) < 0);
	}
	arena_free(w.arena);
	return status;
}

static void
a_range_has_both_bounds_or_memory_is_short(void **state)
{
	unsigned full = 0, starved = 0;
	bool failed = true;

	(void)state;
	for (size_t bytes = 0; range_make(bytes, 0, &failed) != STATUS_OK; bytes++)
		full++;
	/* Each allocation by itself, while those behind it do not fail. */
	for (uint64_t nth = 1; failed; nth++) {
		enum status status = range_make(WORK_BYTES, nth, &failed);

		assert_true(status == STATUS_OK || failed);
		starved += status != STATUS_OK;
	}
	assert_true(full > 0 && starved > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_edits_are_followed, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(rows_past_limits_are_left_out_and_told,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(equal_keys_of_a_document_come_by_value,
						fixture_setup, fixture_teardown),
		cmocka_unit_test(a_single_row_of_each_map_is_ordered_without_memory),
		cmocka_unit_test_setup_teardown(large_rows_come_back_whole, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(a_page_without_rows_reads_nothing, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(
			design_documents_have_rows_in_views_that_include_them, fixture_setup,
			fixture_teardown),
		cmocka_unit_test_setup_teardown(each_kind_of_database_has_documents_of_its_own,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(notes_are_listed_in_pages_until_they_are_cleared,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_guarded_note_conflicts_with_another_one,
						fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_cleanup_without_memory_clears_nothing,
						fixture_setup, fixture_teardown),
		cmocka_unit_test(a_range_has_both_bounds_or_memory_is_short),
		cmocka_unit_test_setup_teardown(partitions_are_read_by_themselves, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(other_collations_are_refused, fixture_setup,
						fixture_teardown),
		cmocka_unit_test_setup_teardown(equal_views_have_equal_signatures, fixture_setup,
						fixture_teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
