/* new_edits=false: revisions made elsewhere, in whatever order and with whatever history. */
#include "fixture.h"

static void
assert_tree(struct fixture *f, const char *want)
{
	assert_string_equal(fixture_tree(f, "a", true), want);
	fixture_check(f);
}

/* Brings "history" and returns whether it was new. */
static bool
bring(struct fixture *f, const char *history, bool deleted)
{
	struct rev_edit edit = fixture_copy(f, "a", history, deleted, deleted ? "{}" : "{\"n\":1}");
	struct rev_result result;

	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	assert_true(rev_id_eq(result.rev, (struct rev_id){ edit.start, edit.history[0] }));
	if (result.unchanged) {
		assert_int_equal(f->cost.sets, 0);
		assert_int_equal(f->cost.clears, 0);
	}
	return !result.unchanged;
}

static void
a_document_comes_with_its_history(void **state)
{
	struct fixture *f = *state;

	assert_true(bring(f, "3-c b a", false));
	assert_tree(f, "3-c(2-b 1-a)!");
	assert_string_equal(fixture_body(f, "a"), "{\"n\":1}");
}

static void
a_longer_history_extends_the_leaf(void **state)
{
	struct fixture *f = *state;

	bring(f, "1-a", false);
	bring(f, "2-b a", false);
	assert_tree(f, "2-b(1-a)!");
	bring(f, "5-e d c b a", false);
	assert_tree(f, "5-e(4-d 3-c 2-b 1-a)!");
	assert_string_equal(fixture_leaf(f, "a", "2-b", false), "missing");
	assert_string_equal(fixture_changes(f), "a 5-e");
}

static void
what_is_known_changes_nothing(void **state)
{
	struct fixture *f = *state;

	bring(f, "3-c b a", false);
	assert_false(bring(f, "3-c b a", false));
	assert_false(bring(f, "3-c", false));
	assert_false(bring(f, "2-b a", false));
	assert_false(bring(f, "1-a", false));
	assert_false(bring(f, "2-b", true)); /* what it was is settled */
	assert_tree(f, "3-c(2-b 1-a)!");
}

/* What was never stored is not cleared. */
static void
a_revision_that_comes_with_its_successor_leaves_no_trace(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[] = { fixture_copy(f, "a", "1-a", false, "{\"n\":1}"),
				    fixture_copy(f, "a", "2-b a", false, "{\"n\":2}") };
	struct rev_result results[2];

	fixture_write(f, edits, 2, results);
	assert_tree(f, "2-b(1-a)!");
	assert_string_equal(fixture_body(f, "a"), "{\"n\":2}");
	if (!test_store_fails())
		assert_int_equal(f->cost.clears, 0);
}

static void
what_comes_late_is_an_ancestor(void **state)
{
	struct fixture *f = *state;

	assert_true(bring(f, "4-d c b a", false));
	assert_false(bring(f, "3-c b a", false));
	assert_true(bring(f, "6-f e d c b a", false));
	assert_false(bring(f, "5-e d c b a", false));
	assert_tree(f, "6-f(5-e 4-d 3-c 2-b 1-a)!");
}

static void
forks_are_branches(void **state)
{
	struct fixture *f = *state;

	bring(f, "2-b a", false);
	bring(f, "2-c a", false);
	assert_tree(f, "2-c(1-a)! 2-b(1-a)");
	bring(f, "3-x b a", false);
	assert_tree(f, "3-x(2-b 1-a)! 2-c(1-a)");
	/* From the interior of the first. */
	bring(f, "3-y b a", false);
	assert_tree(f, "3-y(2-b 1-a)! 3-x(2-b 1-a) 2-c(1-a)");
	assert_string_equal(fixture_leaf(f, "a", "2-c", false), "{\"n\":1}");
	assert_string_equal(fixture_leaf(f, "a", "2-b", false), "missing");
}

static void
branches_without_a_common_root_live_side_by_side(void **state)
{
	struct fixture *f = *state;

	bring(f, "1-a", false);
	bring(f, "1-b", false);
	bring(f, "7-z", false);
	assert_tree(f, "7-z! 1-b 1-a");
}

static void
a_partial_history_is_completed_from_what_is_there(void **state)
{
	struct fixture *f = *state;

	bring(f, "4-d c b a", false);
	bring(f, "5-e d", false); /* extends the leaf */
	assert_tree(f, "5-e(4-d 3-c 2-b 1-a)!");
	bring(f, "4-x c", false); /* forks from the interior */
	assert_tree(f, "5-e(4-d 3-c 2-b 1-a)! 4-x(3-c 2-b 1-a)");
}

static void
a_partial_history_that_does_not_reach_is_a_branch(void **state)
{
	struct fixture *f = *state;

	bring(f, "2-b a", false);
	bring(f, "5-e d", false);
	assert_tree(f, "5-e(4-d)! 2-b(1-a)");
}

/* A head that lies right behind the end of a history is none of it. */
static void
a_history_ends_where_it_says(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edit = fixture_copy(f, "a", "3-c b a", false, "{\"n\":1}");
	struct rev_result result;

	bring(f, "1-a", false);
	edit.history_count = 2; /* what lies behind is not the edit's */
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	assert_tree(f, "3-c(2-b)! 1-a");
}

static void
a_full_history_ties_branches_together(void **state)
{
	struct fixture *f = *state;

	bring(f, "2-b a", false);
	bring(f, "5-e d", false);
	bring(f, "1-z", false);
	bring(f, "6-f e d c b a", false);
	assert_tree(f, "6-f(5-e 4-d 3-c 2-b 1-a)! 1-z");
	assert_string_equal(fixture_changes(f), "a 6-f");
	assert_string_equal(fixture_leaf(f, "a", "5-e", false), "missing");
	assert_string_equal(fixture_leaf(f, "a", "2-b", false), "missing");
}

static void
equal_hashes_at_other_positions_are_other_revisions(void **state)
{
	struct fixture *f = *state;

	bring(f, "2-x x", false);
	assert_true(bring(f, "3-x", false));
	assert_tree(f, "3-x! 2-x(1-x)");
	bring(f, "3-x x x", false);
	assert_tree(f, "3-x! 2-x(1-x)");
	bring(f, "4-y x x x", false);
	assert_tree(f, "4-y(3-x 2-x 1-x)!");
}

/* ---- Tombstones ---- */

static void
a_tombstone_on_the_only_branch_deletes(void **state)
{
	struct fixture *f = *state;

	bring(f, "1-a", false);
	bring(f, "2-b a", true);
	assert_tree(f, "2-b(1-a)!#");
	assert_string_equal(fixture_body(f, "a"), "deleted");
	assert_string_equal(fixture_changes(f), "a 2-b#");
}

static void
a_tombstone_on_the_winner_considers_every_live_branch(void **state)
{
	struct fixture *f = *state;

	bring(f, "2-b a", false);
	bring(f, "2-c a", false);
	bring(f, "1-z", false);
	bring(f, "3-d c a", true);
	assert_tree(f, "2-b(1-a)! 1-z 3-d(2-c 1-a)#");
	assert_string_equal(fixture_changes(f), "a 2-b");
	bring(f, "3-e b a", true);
	assert_tree(f, "1-z! 3-e(2-b 1-a)# 3-d(2-c 1-a)#");
	assert_string_equal(fixture_body(f, "a"), "{\"n\":1}");
	bring(f, "2-f z", true);
	assert_tree(f, "3-e(2-b 1-a)!# 3-d(2-c 1-a)# 2-f(1-z)#");
	assert_string_equal(fixture_body(f, "a"), "deleted");
}

static void
a_tombstone_on_a_loser_leaves_the_document(void **state)
{
	struct fixture *f = *state;

	bring(f, "2-b a", false);
	bring(f, "2-c a", false);
	bring(f, "9-d", true);
	bring(f, "3-e b a", true);
	assert_tree(f, "2-c(1-a)! 9-d# 3-e(2-b 1-a)#");
	assert_string_equal(fixture_changes(f), "a 2-c");
}

static void
a_tombstone_can_be_first_and_can_be_overtaken(void **state)
{
	struct fixture *f = *state;

	bring(f, "2-b a", true);
	assert_string_equal(fixture_body(f, "a"), "deleted");
	bring(f, "1-z", false);
	assert_tree(f, "1-z! 2-b(1-a)#");
	bring(f, "3-c b a", false);
	assert_tree(f, "3-c(2-b 1-a)! 1-z");
}

static void
a_tombstones_body_is_replicated(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "a", "2-b a", true, "{\"why\":[1]}");
	assert_string_equal(fixture_leaf(f, "a", "2-b", true), "{\"why\":[1]}");
	fixture_check(f);
}

/* ---- Limits ---- */

static enum status
limit_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return rev_limit_set(tx, f->db, 3, NULL);
}

static void
branches_are_stemmed_to_revs_limit(void **state)
{
	struct fixture *f = *state;
	const char *rev;

	assert_int_equal(kv_run(f->store, limit_body, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	assert_int_equal(rev_db_revs_limit(f->db), 3);
	bring(f, "5-e d c b a", false);
	assert_tree(f, "5-e(4-d 3-c)!");
	rev = fixture_put(f, "a", "5-e", "{}");
	assert_tree(f, arena_printf(f->arena, "%s(5-e 4-d)!", rev).ptr);
	/* What has been forgotten is unknown: it comes back as a branch. */
	assert_true(bring(f, "3-c b a", false));
	assert_tree(f, arena_printf(f->arena, "%s(5-e 4-d)! 3-c(2-b 1-a)", rev).ptr);
}

/* "N-hN … h1", each hash `digits` long. */
static const char *
long_history(struct fixture *f, unsigned n, size_t digits, char with)
{
	struct buf b = BUF_INIT(8 * 1024 * 1024);
	struct str text;

	buf_printf(&b, "%u-", n);
	for (unsigned i = n; i > 0; i--) {
		for (size_t j = 8; j < digits; j++)
			buf_append_byte(&b, (uint8_t)with);
		buf_printf(&b, i > 1 ? "%08x " : "%08x", i);
	}
	assert_int_equal(buf_status(&b), STATUS_OK);
	text = arena_dup(f->arena, buf_str(&b));
	assert_non_null(text.ptr);
	buf_release(&b);
	return text.ptr;
}

static enum status
most_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return rev_limit_set(tx, f->db, REV_LIMIT_MAX, NULL);
}

static size_t
ancestors_of(struct fixture *f)
{
	struct kv_tx *tx;
	struct rev_tree tree;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_tree_read(tx, f->db, STR("a"), REV_TREE_ALL, f->arena, &tree),
			 STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(tree.count, 1);
	return tree.branches[0].ancestors_count;
}

static void
the_longest_history_fits_a_value(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(kv_run(f->store, most_body, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	/* 32 digits are 16 bytes. */
	bring(f, long_history(f, REV_LIMIT_MAX + 10, 32, '1'), false);
	assert_int_equal(ancestors_of(f), REV_LIMIT_MAX - 1);
	fixture_check(f);
}

static void
a_history_of_opaque_hashes_is_cut_to_fit_a_value(void **state)
{
	struct fixture *f = *state;
	const char *history = long_history(f, 900, 500, 'x');
	size_t n;

	bring(f, history, false);
	n = ancestors_of(f);
	assert_true(n > 180 && n < 200);
	fixture_put(f, "a", arena_printf(f->arena, "%.504s", history).ptr, "{}");
	n = ancestors_of(f);
	assert_true(n > 180 && n < 200);
	fixture_check(f);
}

/* 46 branches of nearly 100 KB each are more than one range answer carries. */
static void
more_branches_than_one_range_answer_are_all_read(void **state)
{
	enum {
		BRANCHES = 46,
	};
	struct fixture *f = *state;
	const char *history = strchr(long_history(f, 199, 490, 'x'), '-') + 1;
	struct rev_tree tree;
	struct kv_tx *tx;

	for (int i = 0; i < BRANCHES; i++)
		assert_true(
			bring(f, arena_printf(f->arena, "200-leaf%02d %s", i, history).ptr, false));
	assert_false(bring(f, "200-leaf00", false));
	assert_int_equal(f->cost.keys_read, BRANCHES);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_tree_read(tx, f->db, STR("a"), REV_TREE_ALL, f->arena, &tree),
			 STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(tree.count, BRANCHES);
	for (size_t i = 0; i < BRANCHES; i++)
		assert_string_equal(fixture_text(f, tree.branches[i].rev),
				    arena_printf(f->arena, "200-leaf%02zu", BRANCHES - 1 - i).ptr);
	fixture_check(f);
}

static void
a_history_that_is_none_is_refused(void **state)
{
	static const char lengthy[REV_HASH_LIMIT_BYTES + 1];
	struct fixture *f = *state;
	struct rev_edit edits[3];
	struct rev_result results[3];

	edits[0] = fixture_copy(f, "a", "1-a", false, "{}");
	edits[0].history_count = 0;
	edits[1] = fixture_copy(f, "b", "2-c b a", false, "{}"); /* below position 1 */
	edits[2] = fixture_copy(f, "c", "2-b a", false, "{}");
	edits[2].history[1] = str_of(lengthy, sizeof(lengthy));
	fixture_write(f, edits, 3, results);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(results[i].status, STATUS_INVALID);
	assert_string_equal(fixture_changes(f), "");
}

/* One that nobody has is a conflict as long as somebody could have it. */
static void
a_parent_that_no_revision_can_be_is_refused(void **state)
{
	static const char lengthy[REV_HASH_LIMIT_BYTES + 1];
	const struct {
		uint64_t pos;
		size_t bytes;
		enum status status;
	} cases[] = {
		{ INT64_MAX, 1, STATUS_INVALID },
		{ INT64_MAX - 1, 1, STATUS_DOC_CONFLICT },
		{ 1, REV_HASH_LIMIT_BYTES + 1, STATUS_INVALID },
		{ 1, REV_HASH_LIMIT_BYTES, STATUS_DOC_CONFLICT },
		{ 0, 1, STATUS_DOC_CONFLICT },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rev_edit edit = fixture_edit(f, "a", NULL, "{}");
		struct rev_result result;

		edit.parent.pos = cases[i].pos;
		edit.parent.hash = str_of(lengthy, cases[i].bytes);
		fixture_write(f, &edit, 1, &result);
		assert_int_equal(result.status, cases[i].status);
	}
	assert_string_equal(fixture_changes(f), "");
}

/* ---- Edits that merge ---- */

static void
edits_of_one_document_see_each_other(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[6];
	struct rev_result results[6];

	bring(f, "2-b a", false);
	bring(f, "7-z", true);
	edits[0] = fixture_copy(f, "a", "3-c b", false, "{\"n\":1}"); /* completed from 2-b */
	edits[1] = fixture_copy(f, "a", "3-c", false, "{}");
	edits[1].history_count = 0;                           /* refused alone */
	edits[2] = fixture_copy(f, "a", "4-d c", true, "{}"); /* completed from 3-c */
	edits[3] = fixture_copy(f, "other", "1-a", false, "{}");
	edits[4] = fixture_copy(f, "a", "1-x", false, "{\"n\":2}");
	edits[5] = fixture_copy(f, "a", "3-c b a", false, "{}"); /* an ancestor by now */
	fixture_write(f, edits, 6, results);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(results[i].status, i == 1 ? STATUS_INVALID : STATUS_OK);
		assert_int_equal(results[i].unchanged, i == 5);
	}
	assert_tree(f, "1-x! 7-z# 4-d(3-c 2-b 1-a)#");
	assert_string_equal(fixture_body(f, "a"), "{\"n\":2}");
	assert_string_equal(fixture_changes(f), "other 1-a, a 1-x");

	/* One that cannot merge is no second edit of its document. */
	edits[0] = fixture_edit(f, "a", "1-x", "{}");
	assert_false(rev_edit_can_merge(&edits[0]));
}

/* ---- Keys ---- */

static void
hashes_and_ids_with_nuls_keep_apart(void **state)
{
	struct fixture *f = *state;
	static const char *const hashes[] = { "1-00000000000000000000000000000000",
					      "1-00000000000000000000000000000001",
					      "1-ff00000000000000000000000000ff00" };
	struct rev_edit edits[2];
	struct rev_result results[2];

	for (size_t i = 0; i < 3; i++)
		bring(f, hashes[i], false);
	assert_tree(f, "1-ff00000000000000000000000000ff00! 1-00000000000000000000000000000001 "
		       "1-00000000000000000000000000000000");
	/* "n" and "n\0": one is a prefix of the other, and so are their keys but for the end. */
	edits[0] = fixture_copy(f, "n", "1-x", false, "{\"n\":1}");
	edits[1] = fixture_copy(f, "n", "2-x", false, "{\"n\":2}");
	edits[1].id = str_of("n\0", 2);
	fixture_write(f, edits, 2, results);
	assert_string_equal(fixture_tree(f, "n", false), "1-x!");
	fixture_check(f);
	fixture_delete(f, "n", "1-x");
	fixture_check(f);
	/* Opaque hashes of which one continues the other with a NUL. */
	edits[0] = fixture_copy(f, "h", "1-x", false, "{\"n\":1}");
	edits[1] = fixture_copy(f, "h", "1-x", false, "{\"n\":2}");
	edits[1].history[0] = str_of("x\0", 2);
	fixture_write(f, edits, 1, results);
	fixture_write(f, edits + 1, 1, results);
	fixture_check(f);
	fixture_delete(f, "h", "1-x");
	fixture_check(f);
	assert_string_equal(fixture_body(f, "h"), "{\"n\":2}");
}

/* ---- rev_diff ---- */

static void
assert_diff(struct fixture *f, const char *id, const char *asked, const char *missing,
	    const char *ancestors)
{
	struct rev_diff_query query = { .id = str_from_cstr(id) };
	char *words = (char *)(uintptr_t)arena_dup(f->arena, str_from_cstr(asked)).ptr;
	struct buf b = BUF_INIT(10000);
	struct rev_id revs[8];
	struct rev_diff diff;
	struct kv_tx *tx;

	query.revs = revs;
	for (char *save = NULL, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		revs[query.count++] = fixture_rev(f, w);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_diff(tx, f->db, &query, 1, f->arena, &diff), STATUS_OK);
	kv_tx_free(tx);
	for (size_t i = 0; i < diff.missing_count; i++) {
		buf_append_cstr(&b, i ? " " : "");
		rev_id_write(diff.missing[i], &b);
	}
	buf_append_byte(&b, 0);
	assert_string_equal(b.ptr, missing);
	buf_clear(&b);
	for (size_t i = 0; i < diff.possible_ancestors_count; i++) {
		buf_append_cstr(&b, i ? " " : "");
		rev_id_write(diff.possible_ancestors[i], &b);
	}
	buf_append_byte(&b, 0);
	assert_string_equal(b.ptr, ancestors);
	buf_release(&b);
}

static void
a_diff_names_what_is_missing_and_where_it_may_come_from(void **state)
{
	struct fixture *f = *state;

	bring(f, "3-c b a", false);
	bring(f, "5-x", true);
	assert_diff(f, "a", "3-c 2-b 1-a 5-x", "", "");
	assert_diff(f, "a", "2-q 1-a", "2-q", "");
	assert_diff(f, "a", "3-q", "3-q", "");
	assert_diff(f, "a", "4-d 3-c", "4-d", "3-c");
	assert_diff(f, "a", "4-d 9-y", "4-d 9-y", "3-c 5-x");
	assert_diff(f, "unknown", "1-a 2-b", "1-a 2-b", "");
}

static void
a_diff_of_many_documents_takes_several_waves(void **state)
{
	enum {
		DOCS = 2500,
	};
	struct fixture *f = *state;
	struct rev_diff_query *queries = arena_zalloc(f->arena, DOCS * sizeof(*queries));
	struct rev_diff *diffs = arena_zalloc(f->arena, DOCS * sizeof(*diffs));
	struct rev_id revs[2] = { fixture_rev(f, "1-a"), fixture_rev(f, "2-b") };
	struct kv_tx *tx;

	assert_non_null(queries);
	assert_non_null(diffs);
	fixture_replicate(f, "doc7", "1-a", false, "{}");
	fixture_replicate(f, "doc2401", "1-a", false, "{}");
	for (size_t i = 0; i < DOCS; i++) {
		queries[i].id = arena_printf(f->arena, "doc%zu", i);
		queries[i].revs = revs;
		queries[i].count = 2;
	}
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(rev_diff(tx, f->db, queries, DOCS, f->arena, diffs), STATUS_OK);
	assert_int_equal(kv_tx_stats(tx).round_trips, 3);
	kv_tx_free(tx);
	for (size_t i = 0; i < DOCS; i++)
		assert_int_equal(diffs[i].missing_count, i == 7 || i == 2401 ? 1 : 2);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_document_comes_with_its_history),
		TEST(a_longer_history_extends_the_leaf),
		TEST(what_is_known_changes_nothing),
		TEST(a_revision_that_comes_with_its_successor_leaves_no_trace),
		TEST(what_comes_late_is_an_ancestor),
		TEST(forks_are_branches),
		TEST(branches_without_a_common_root_live_side_by_side),
		TEST(a_partial_history_is_completed_from_what_is_there),
		TEST(a_partial_history_that_does_not_reach_is_a_branch),
		TEST(a_history_ends_where_it_says),
		TEST(a_full_history_ties_branches_together),
		TEST(equal_hashes_at_other_positions_are_other_revisions),
		TEST(a_tombstone_on_the_only_branch_deletes),
		TEST(a_tombstone_on_the_winner_considers_every_live_branch),
		TEST(a_tombstone_on_a_loser_leaves_the_document),
		TEST(a_tombstone_can_be_first_and_can_be_overtaken),
		TEST(a_tombstones_body_is_replicated),
		TEST(branches_are_stemmed_to_revs_limit),
		TEST(the_longest_history_fits_a_value),
		TEST(a_history_of_opaque_hashes_is_cut_to_fit_a_value),
		TEST(more_branches_than_one_range_answer_are_all_read),
		TEST(a_history_that_is_none_is_refused),
		TEST(a_parent_that_no_revision_can_be_is_refused),
		TEST(edits_of_one_document_see_each_other),
		TEST(hashes_and_ids_with_nuls_keep_apart),
		TEST(a_diff_names_what_is_missing_and_where_it_may_come_from),
		TEST(a_diff_of_many_documents_takes_several_waves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
