/* Interactive edits: what they do, when they are conflicts, and what they cost. */
#include "fixture.h"

#include "base/mem.h"

#define EMPTY_1   "1-967a00dff5e02add41819138abb3284d"
#define DELETED_2 "2-eec205a9d413992850a6e32678485900"

static void
a_new_document_has_couchdbs_revision(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(fixture_put(f, "a", NULL, "{}"), EMPTY_1);
	assert_string_equal(fixture_delete(f, "a", EMPTY_1), DELETED_2);
	assert_string_equal(fixture_tree(f, "a", true), DELETED_2 "(" EMPTY_1 ")!#");
	fixture_check(f);
}

static void
an_update_replaces_body_and_entry(void **state)
{
	struct fixture *f = *state;
	const char *first = fixture_put(f, "a", NULL, "{\"x\":[1,{\"y\":2}],\"z\":\"s\"}");
	const char *second;

	fixture_put(f, "b", NULL, "{}");
	assert_string_equal(fixture_body(f, "a"), "{\"x\":[1,{\"y\":2}],\"z\":\"s\"}");
	second = fixture_put(f, "a", first, "{\"w\":null}");
	assert_string_equal(fixture_body(f, "a"), "{\"w\":null}");
	assert_string_equal(fixture_leaf(f, "a", first, false), "missing");
	assert_string_equal(fixture_leaf(f, "a", second, false), "{\"w\":null}");
	fixture_check(f);
}

static void
changes_have_each_document_once_and_in_order(void **state)
{
	struct fixture *f = *state;
	const char *first = fixture_put(f, "a", NULL, "{}");
	struct str want;

	fixture_put(f, "b", NULL, "{}");
	assert_string_equal(fixture_changes(f), "a " EMPTY_1 ", b " EMPTY_1);
	want = arena_printf(f->arena, "b %s, a %s", EMPTY_1,
			    fixture_put(f, "a", first, "{\"n\":1}"));
	assert_string_equal(fixture_changes(f), want.ptr);
	fixture_delete(f, "b", EMPTY_1);
	want = arena_printf(f->arena, "a %s, b %s#", strchr(strchr(want.ptr, ',') + 2, ' ') + 1,
			    DELETED_2);
	assert_string_equal(fixture_changes(f), want.ptr);
	fixture_check(f);
}

static void
put_with_stale_rev_is_conflict(void **state)
{
	struct fixture *f = *state;
	const char *first = fixture_put(f, "a", NULL, "{}");
	const char *second = fixture_put(f, "a", first, "{\"n\":1}");

	assert_int_equal(fixture_try(f, "a", first, "{\"n\":2}"), STATUS_DOC_CONFLICT);
	assert_int_equal(fixture_try(f, "a", first, NULL), STATUS_DOC_CONFLICT);
	assert_int_equal(fixture_try(f, "a", NULL, "{\"n\":2}"), STATUS_DOC_CONFLICT);
	assert_int_equal(fixture_try(f, "a", "2-unknown", "{\"n\":2}"), STATUS_DOC_CONFLICT);
	assert_int_equal(fixture_try(f, "a", "0-1", "{\"n\":2}"), STATUS_DOC_CONFLICT);
	assert_string_equal(fixture_tree(f, "a", false), arena_printf(f->arena, "%s!", second).ptr);
	fixture_check(f);
}

static void
an_identical_edit_made_twice_is_conflict(void **state)
{
	struct fixture *f = *state;
	const char *first = fixture_put(f, "a", NULL, "{}");

	assert_int_equal(fixture_try(f, "a", NULL, "{}"), STATUS_DOC_CONFLICT);
	fixture_put(f, "a", first, "{\"n\":1}");
	assert_int_equal(fixture_try(f, "a", first, "{\"n\":1}"), STATUS_DOC_CONFLICT);
	fixture_check(f);
}

static void
a_rev_of_a_document_that_never_was_is_conflict(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fixture_try(f, "a", "1-x", "{}"), STATUS_DOC_CONFLICT);
	assert_int_equal(fixture_try(f, "a", "1-x", NULL), STATUS_DOC_CONFLICT);
	assert_string_equal(fixture_tree(f, "a", false), "");
	fixture_check(f);
}

static void
deleting_without_rev_is_conflict_where_a_document_is_or_was(void **state)
{
	struct fixture *f = *state;
	const char *first = fixture_put(f, "a", NULL, "{}");

	assert_int_equal(fixture_try(f, "a", NULL, NULL), STATUS_DOC_CONFLICT);
	fixture_delete(f, "a", first);
	assert_int_equal(fixture_try(f, "a", NULL, NULL), STATUS_DOC_CONFLICT);
	/* As in CouchDB: a document may begin as a tombstone. */
	assert_int_equal(fixture_try(f, "b", NULL, NULL), STATUS_OK);
	assert_string_equal(fixture_body(f, "b"), "deleted");
	fixture_check(f);
}

static void
the_rev_of_a_tombstone_is_conflict(void **state)
{
	struct fixture *f = *state;

	fixture_put(f, "a", NULL, "{}");
	fixture_delete(f, "a", EMPTY_1);
	assert_int_equal(fixture_try(f, "a", DELETED_2, "{}"), STATUS_DOC_CONFLICT);
	assert_int_equal(fixture_try(f, "a", DELETED_2, NULL), STATUS_DOC_CONFLICT);
	assert_int_equal(fixture_try(f, "a", EMPTY_1, "{}"), STATUS_DOC_CONFLICT);
	/* Also beside a live branch. */
	fixture_replicate(f, "a", "1-other", false, "{}");
	assert_int_equal(fixture_try(f, "a", DELETED_2, "{}"), STATUS_DOC_CONFLICT);
	assert_int_equal(fixture_try(f, "a", DELETED_2, NULL), STATUS_DOC_CONFLICT);
	fixture_check(f);
}

static void
a_deleted_document_starts_again_from_its_tombstone(void **state)
{
	struct fixture *f = *state;
	const char *third;

	fixture_put(f, "a", NULL, "{}");
	fixture_delete(f, "a", EMPTY_1);
	assert_string_equal(fixture_body(f, "a"), "deleted");
	third = fixture_put(f, "a", NULL, "{}");
	assert_memory_equal(third, "3-", 2);
	assert_string_equal(fixture_tree(f, "a", true),
			    arena_printf(f->arena, "%s(" DELETED_2 " " EMPTY_1 ")!", third).ptr);
	assert_string_equal(fixture_body(f, "a"), "{}");
	fixture_check(f);
}

static void
starting_again_takes_the_winning_tombstone(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "3-x w v", true, "{}");
	fixture_replicate(f, "a", "2-y v", true, "{}");
	assert_memory_equal(fixture_put(f, "a", NULL, "{\"n\":1}"), "4-", 2);
	assert_non_null(strstr(fixture_tree(f, "a", true), "(3-x 2-w 1-v)! 2-y(1-v)#"));
	fixture_check(f);
}

static void
tombstones_keep_a_body_only_if_they_have_one(void **state)
{
	struct fixture *f = *state;
	const char *first = fixture_put(f, "a", NULL, "{\"n\":1}");
	struct rev_edit edit = fixture_edit(f, "a", first, "{\"why\":\"spam\"}");
	struct rev_result result;
	const char *text;

	edit.deleted = true;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	text = fixture_text(f, result.rev);
	assert_string_equal(fixture_body(f, "a"), "deleted");
	assert_string_equal(fixture_leaf(f, "a", text, true), "{\"why\":\"spam\"}");
	fixture_put(f, "a", NULL, "{}");
	assert_string_equal(fixture_leaf(f, "a", text, true), "missing");
	first = fixture_put(f, "b", NULL, "{}");
	text = fixture_delete(f, "b", first);
	assert_string_equal(fixture_leaf(f, "b", text, true), "missing");
	fixture_check(f);
}

/* ---- Branches ---- */

static void
extending_a_losing_branch_can_make_it_win(void **state)
{
	struct fixture *f = *state;
	const char *rev;

	fixture_replicate(f, "a", "2-x v", false, "{\"n\":\"x\"}");
	fixture_replicate(f, "a", "2-y v", false, "{\"n\":\"y\"}");
	assert_string_equal(fixture_tree(f, "a", false), "2-y! 2-x");
	rev = fixture_put(f, "a", "2-x", "{\"n\":\"z\"}");
	assert_string_equal(fixture_tree(f, "a", true),
			    arena_printf(f->arena, "%s(2-x 1-v)! 2-y(1-v)", rev).ptr);
	assert_string_equal(fixture_body(f, "a"), "{\"n\":\"z\"}");
	fixture_check(f);
}

static void
extending_a_losing_branch_can_leave_it_losing(void **state)
{
	struct fixture *f = *state;
	const char *rev;

	fixture_replicate(f, "a", "5-y", false, "{\"n\":\"y\"}");
	fixture_replicate(f, "a", "2-x", false, "{\"n\":\"x\"}");
	fixture_put(f, "b", NULL, "{}");
	rev = fixture_put(f, "a", "2-x", "{\"n\":\"z\"}");
	assert_string_equal(fixture_tree(f, "a", true),
			    arena_printf(f->arena, "5-y! %s(2-x)", rev).ptr);
	/* It is a change of the document all the same, and tells of the winner. */
	assert_string_equal(fixture_changes(f), "b " EMPTY_1 ", a 5-y");
	fixture_check(f);
}

static void
deleting_a_losing_branch_leaves_the_document(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "2-x", false, "{\"n\":\"x\"}");
	fixture_replicate(f, "a", "2-y", false, "{\"n\":\"y\"}");
	fixture_delete(f, "a", "2-x");
	assert_string_equal(fixture_changes(f), "a 2-y");
	assert_string_equal(fixture_body(f, "a"), "{\"n\":\"y\"}");
	fixture_check(f);
}

static void
deleting_the_winner_promotes_the_next_branch(void **state)
{
	struct fixture *f = *state;
	const char *tombstone;

	fixture_replicate(f, "a", "2-x", false, "{\"n\":\"x\"}");
	fixture_replicate(f, "a", "2-y", false, "{\"n\":\"y\"}");
	fixture_replicate(f, "a", "2-z", false, "{\"n\":\"z\"}");
	tombstone = fixture_delete(f, "a", "2-z");
	assert_string_equal(fixture_tree(f, "a", true),
			    arena_printf(f->arena, "2-y! 2-x %s(2-z)#", tombstone).ptr);
	assert_string_equal(fixture_body(f, "a"), "{\"n\":\"y\"}");
	assert_string_equal(fixture_changes(f), "a 2-y");
	fixture_delete(f, "a", "2-y");
	fixture_check(f);
	fixture_delete(f, "a", "2-x");
	assert_string_equal(fixture_body(f, "a"), "deleted");
	fixture_check(f);
}

static void
deleting_the_winner_can_leave_an_older_tombstone_winning(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "9-old", true, "{}");
	fixture_replicate(f, "a", "2-x", false, "{}");
	fixture_delete(f, "a", "2-x");
	assert_memory_equal(fixture_tree(f, "a", false), "9-old!# 3-", 10);
	assert_string_equal(fixture_changes(f), "a 9-old#");
	fixture_check(f);
}

static void
the_third_branch_can_be_deleted(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "2-x", false, "{\"n\":\"x\"}");
	fixture_replicate(f, "a", "2-y", false, "{\"n\":\"y\"}");
	fixture_replicate(f, "a", "2-z", false, "{\"n\":\"z\"}");
	fixture_delete(f, "a", "2-x");
	assert_int_equal(f->cost.keys_read, 3);
	assert_int_equal(f->cost.round_trips, 2);
	assert_string_equal(fixture_changes(f), "a 2-z");
	assert_int_equal(fixture_try(f, "a", "2-w", NULL), STATUS_DOC_CONFLICT);
	fixture_check(f);
}

/* An edit whose outcome came in by replication, but without its history. */
static void
an_edit_that_is_there_as_a_branch_is_conflict(void **state)
{
	struct fixture *f = *state;
	const char *first, *second, *tombstone;

	/* What the edits are going to be called. */
	first = fixture_put(f, "model", NULL, "{}");
	second = fixture_put(f, "model", first, "{\"n\":2}");
	tombstone = fixture_delete(f, "model2", fixture_put(f, "model2", NULL, "{}"));

	/* The winner, a third branch, and a tombstone that is not read. */
	fixture_put(f, "a", NULL, "{}");
	fixture_replicate(f, "a", second, false, "{\"n\":2}");
	assert_int_equal(fixture_try(f, "a", first, "{\"n\":2}"), STATUS_DOC_CONFLICT);
	fixture_replicate(f, "a", "3-high", false, "{}");
	assert_int_equal(fixture_try(f, "a", first, "{\"n\":2}"), STATUS_DOC_CONFLICT);
	fixture_put(f, "b", NULL, "{}");
	fixture_replicate(f, "b", "5-dead", true, "{}");
	fixture_replicate(f, "b", tombstone, true, "{}");
	assert_int_equal(fixture_try(f, "b", first, NULL), STATUS_DOC_CONFLICT);
	fixture_check(f);
}

/* ---- What it costs ---- */

static void
assert_cost(const struct fixture *f, uint64_t keys, uint64_t round_trips)
{
	assert_int_equal(f->cost.keys_read, keys);
	assert_int_equal(f->cost.round_trips, round_trips);
}

static void
a_new_document_reads_nothing_that_is_there(void **state)
{
	struct fixture *f = *state;

	fixture_put(f, "a", NULL, "{}");
	assert_cost(f, 0, 1);
	assert_int_equal(fixture_try(f, "a", NULL, "{}"), STATUS_DOC_CONFLICT);
	assert_cost(f, 1, 1);
}

/* Reads as on a cluster, and returns the body; what it has cost is in `f`. */
static const char *
read_together(struct fixture *f, const char *id, enum status expected)
{
	struct buf text = BUF_INIT(1 << 20);
	struct rev_doc doc = { 0 };
	const char *copy;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_doc_read_together(tx, f->db, str_from_cstr(id), f->arena, &doc),
			 expected);
	f->cost = kv_tx_stats(tx);
	buf_append_byte(&text, '{');
	if (expected == STATUS_OK)
		assert_int_equal(rev_body_write(&doc, false, &text), STATUS_OK);
	buf_append_byte(&text, '\0');
	copy = arena_dup(f->arena, buf_str(&text)).ptr;
	buf_release(&text);
	kv_tx_free(tx);
	return copy;
}

static void
reading_a_document_takes_1_round_trip_of_a_cluster(void **state)
{
	struct fixture *f = *state;
	char *large = arena_zalloc(f->arena, 60000);
	const char *rev;

	fixture_put(f, "a", NULL, "{\"n\":1,\"m\":{\"x\":[1,2,3]}}");
	assert_string_equal(read_together(f, "a", STATUS_OK), "{\"m\":{\"x\":[1,2,3]},\"n\":1}");
	assert_int_equal(f->cost.round_trips, 1);
	fixture_replicate(f, "b", "2-x", false, "{\"n\":1}");
	fixture_replicate(f, "b", "2-xy", false, "{\"n\":2}");
	fixture_replicate(f, "b", "9-x", true, "{\"n\":3}");
	assert_string_equal(read_together(f, "b", STATUS_OK), "{\"n\":2}");
	assert_int_equal(f->cost.round_trips, 1);

	/* What the end of the document does not have costs another one. */
	(void)read_together(f, "none", STATUS_NOT_FOUND);
	assert_int_equal(f->cost.round_trips, 2);
	fixture_replicate(f, "d", "1-x", true, "{\"n\":1}");
	fixture_replicate(f, "d", "2-x", true, "{}");
	(void)read_together(f, "d", STATUS_DELETED);
	assert_int_equal(f->cost.round_trips, 2);
	assert_non_null(large);
	memset(large, ' ', 59999);
	memcpy(large, "{\"a\":\"", 6);
	for (int i = 6; i < 59000; i++)
		large[i] = i % 100 ? 'x' : ',';
	memcpy(large + 59000, "\"}", 2);
	large[59002] = '\0';
	rev = fixture_put(f, "large", NULL, large);
	assert_string_equal(read_together(f, "large", STATUS_OK), large);
	assert_in_range(f->cost.round_trips, 1, 2);
	assert_non_null(rev);
}

static void
extending_the_winner_reads_1_key_in_1_round_trip(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "2-x", false, "{}");
	fixture_replicate(f, "a", "2-y", false, "{}");
	fixture_replicate(f, "a", "2-z", false, "{}");
	fixture_put(f, "a", "2-z", "{}");
	assert_cost(f, 1, 1);
	assert_int_equal(f->cost.reads, 1);
}

static void
extending_a_loser_reads_2_keys_in_2_round_trips(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "2-x", false, "{}");
	fixture_replicate(f, "a", "2-y", false, "{}");
	fixture_replicate(f, "a", "2-z", false, "{}");
	fixture_put(f, "a", "2-x", "{}");
	assert_cost(f, 2, 2);
}

static void
deleting_the_winner_reads_2_keys_in_1_round_trip(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "2-x", false, "{}");
	fixture_replicate(f, "a", "2-y", false, "{}");
	fixture_replicate(f, "a", "2-z", false, "{}");
	fixture_delete(f, "a", "2-z");
	assert_cost(f, 2, 1);
}

static void
new_edits_false_reads_every_branch_in_1_round_trip(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "2-x", false, "{}");
	fixture_replicate(f, "a", "2-y", false, "{}");
	fixture_replicate(f, "a", "2-z", true, "{}");
	fixture_replicate(f, "a", "3-w", false, "{}");
	assert_cost(f, 3, 1);
}

static void
a_refused_edit_reads_no_branch(void **state)
{
	struct fixture *f = *state;

	fixture_put(f, "a", NULL, "{}");
	assert_int_equal(fixture_try(f, "a", "1-x", "{}"), STATUS_DOC_CONFLICT);
	assert_cost(f, 0, 1);
	assert_int_equal(f->cost.sets, 0);
	assert_int_equal(f->cost.clears, 0);
}

/* ---- Batches ---- */

static void
a_batch_is_one_wave_and_keeps_its_order(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[4];
	struct rev_result results[4];

	fixture_replicate(f, "a", "2-x", false, "{}");
	fixture_replicate(f, "b", "1-x", false, "{}");
	edits[0] = fixture_edit(f, "d", NULL, "{}");
	edits[1] = fixture_edit(f, "a", "1-stale", "{}");
	edits[2] = fixture_copy(f, "b", "2-y x", false, "{}");
	edits[3] = fixture_edit(f, "c", NULL, "{}");
	fixture_write(f, edits, 4, results);
	assert_cost(f, 1, 1);
	assert_int_equal(results[0].status, STATUS_OK);
	assert_int_equal(results[1].status, STATUS_DOC_CONFLICT);
	assert_int_equal(results[2].status, STATUS_OK);
	assert_int_equal(results[3].status, STATUS_OK);
	assert_string_equal(fixture_changes(f), "a 2-x, d " EMPTY_1 ", b 2-y, c " EMPTY_1);
	fixture_check(f);
}

static void
losers_of_a_batch_share_the_second_wave(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[3];
	struct rev_result results[3];

	fixture_replicate(f, "a", "2-x", false, "{}");
	fixture_replicate(f, "a", "2-y", false, "{}");
	fixture_replicate(f, "b", "2-x", false, "{}");
	fixture_replicate(f, "b", "2-y", false, "{}");
	edits[0] = fixture_edit(f, "a", "2-x", "{}");
	edits[1] = fixture_edit(f, "c", NULL, "{}");
	edits[2] = fixture_edit(f, "b", "2-x", "{}");
	fixture_write(f, edits, 3, results);
	assert_cost(f, 4, 2);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(results[i].status, STATUS_OK);
	fixture_check(f);
}

static enum status
duplicate_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct rev_edit edits[3] = {
		fixture_edit(f, "a", NULL, "{}"),
		fixture_edit(f, "b", NULL, "{}"),
		fixture_edit(f, "a", NULL, "{}"),
	};
	struct rev_result results[3];

	return rev_write(tx, f->db, edits, 3, 0, f->arena, results, NULL);
}

static void
a_document_twice_in_a_batch_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kv_run(f->store, duplicate_body, f, NULL, NULL), STATUS_INVALID);
	assert_string_equal(fixture_changes(f), "");
}

static enum status
too_many_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct rev_edit edit = fixture_edit(f, "a", NULL, "{}");
	struct rev_result result;

	return rev_write(tx, f->db, &edit, 1, REV_BATCH_EDITS, f->arena, &result, NULL);
}

static void
more_edits_than_a_versionstamp_counts_are_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kv_run(f->store, too_many_body, f, NULL, NULL), STATUS_TX_TOO_LARGE);
}

/* ---- Limits ---- */

static char *
filled(struct fixture *f, size_t n, char with)
{
	char *s = arena_bytes(f->arena, n + 1);

	assert_non_null(s);
	memset(s, with, n);
	s[n] = '\0';
	return s;
}

static void
what_fits_no_key_is_one_edits_failure(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[6];
	struct rev_result results[6];
	char *history = filled(f, 2 + REV_HASH_LIMIT_BYTES, 'h');

	edits[0] = fixture_edit(f, "", NULL, "{}");
	edits[1] = fixture_edit(f, filled(f, REV_DOC_ID_BYTES + 1, 'i'), NULL, "{}");
	edits[2] = fixture_edit(f, filled(f, REV_DOC_ID_BYTES, 'i'), NULL, "{\"n\":1}");
	edits[3] = fixture_edit(f, filled(f, REV_DOC_ID_BYTES, 'j'), NULL, "{}");
	edits[3].doc = fixture_doc(f,
				   arena_printf(f->arena, "{\"%s\":1}", filled(f, 3000, 'k')).ptr);
	edits[4] = fixture_edit(f, "nul", NULL, "{}");
	edits[4].id = str_of(arena_zalloc(f->arena, 6000), 6000);
	memcpy(history, "1-", 2);
	edits[5] = fixture_copy(f, filled(f, REV_DOC_ID_BYTES, 'k'), history, false, "{}");
	fixture_write(f, edits, 6, results);
	assert_int_equal(results[0].status, STATUS_INVALID);
	assert_int_equal(results[1].status, STATUS_KEY_TOO_LARGE);
	assert_int_equal(results[2].status, STATUS_OK);
	assert_int_equal(results[3].status, STATUS_PATH_TOO_LONG);
	assert_int_equal(results[4].status, STATUS_KEY_TOO_LARGE);
	assert_int_equal(results[5].status, STATUS_OK);
	assert_string_equal(fixture_body(f, edits[2].id.ptr), "{\"n\":1}");
	fixture_check(f);
}

/* ---- Running out of memory ---- */

static enum status
attempt(struct fixture *f, const struct rev_edit *edits, size_t count, struct rev_result *results)
{
	struct kv_tx *tx;
	enum status status = kv_begin(f->calm, KV_TX_READ_WRITE, &tx);

	if (status != STATUS_OK)
		return status;
	status = rev_write(tx, f->db, edits, count, 0, f->arena, results, NULL);
	if (status == STATUS_OK)
		status = kv_future_wait(kv_commit(tx));
	kv_tx_free(tx);
	return status;
}

/* As many as a store keeps of those that have ended, to be used again without an allocation. */
enum {
	KEPT_TXS = 32,
};

/* Each allocation fails in turn: nothing is written, until everything is. */
static void
an_edit_that_runs_out_of_memory_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[4];
	struct rev_result results[4];
	enum status status = STATUS_NOMEM;
	struct kv_tx *kept[KEPT_TXS];
	const char *before[2];
	uint64_t n;

	fixture_replicate(f, "a", "2-x", false, "{\"n\":\"x\"}");
	fixture_replicate(f, "a", "2-y", false, "{\"n\":\"y\"}");
	fixture_replicate(f, "b", "2-b a", false, "{}");
	before[0] = fixture_tree(f, "a", true);
	before[1] = fixture_changes(f);
	edits[0] = fixture_edit(f, "a", "2-x", "{\"n\":1}");
	edits[1] = fixture_copy(f, "b", "2-c a", false, "{\"n\":1}");
	edits[2] = fixture_edit(f, "c", NULL, "{\"n\":1}");
	edits[3] = fixture_edit(f, "d", "1-x", "{\"n\":1}");
	for (n = 1; status != STATUS_OK; n++) {
		assert_true(n < 10000);
		for (size_t i = 0; i < KEPT_TXS; i++)
			assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &kept[i]), STATUS_OK);
		mem_fail_after(n);
		status = attempt(f, edits, 4, results);
		mem_fail_after(0);
		for (size_t i = 0; i < KEPT_TXS; i++)
			kv_tx_free(kept[i]);
		if (status == STATUS_OK)
			break;
		assert_true(status == STATUS_NOMEM || status == STATUS_LIMIT);
		assert_string_equal(fixture_tree(f, "a", true), before[0]);
		assert_string_equal(fixture_changes(f), before[1]);
	}
	assert_true(n > 10);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(results[i].status, STATUS_OK);
	assert_int_equal(results[3].status, STATUS_DOC_CONFLICT);
	fixture_check(f);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_new_document_has_couchdbs_revision),
		TEST(an_update_replaces_body_and_entry),
		TEST(changes_have_each_document_once_and_in_order),
		TEST(put_with_stale_rev_is_conflict),
		TEST(an_identical_edit_made_twice_is_conflict),
		TEST(a_rev_of_a_document_that_never_was_is_conflict),
		TEST(deleting_without_rev_is_conflict_where_a_document_is_or_was),
		TEST(the_rev_of_a_tombstone_is_conflict),
		TEST(a_deleted_document_starts_again_from_its_tombstone),
		TEST(starting_again_takes_the_winning_tombstone),
		TEST(tombstones_keep_a_body_only_if_they_have_one),
		TEST(extending_a_losing_branch_can_make_it_win),
		TEST(extending_a_losing_branch_can_leave_it_losing),
		TEST(deleting_a_losing_branch_leaves_the_document),
		TEST(deleting_the_winner_promotes_the_next_branch),
		TEST(deleting_the_winner_can_leave_an_older_tombstone_winning),
		TEST(the_third_branch_can_be_deleted),
		TEST(an_edit_that_is_there_as_a_branch_is_conflict),
		TEST(a_new_document_reads_nothing_that_is_there),
		TEST(reading_a_document_takes_1_round_trip_of_a_cluster),
		TEST(extending_the_winner_reads_1_key_in_1_round_trip),
		TEST(extending_a_loser_reads_2_keys_in_2_round_trips),
		TEST(deleting_the_winner_reads_2_keys_in_1_round_trip),
		TEST(new_edits_false_reads_every_branch_in_1_round_trip),
		TEST(a_refused_edit_reads_no_branch),
		TEST(a_batch_is_one_wave_and_keeps_its_order),
		TEST(losers_of_a_batch_share_the_second_wave),
		TEST(a_document_twice_in_a_batch_is_refused),
		TEST(more_edits_than_a_versionstamp_counts_are_refused),
		TEST(what_fits_no_key_is_one_edits_failure),
		TEST(an_edit_that_runs_out_of_memory_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
