/*
 * What one request does between the reads and the commit of another (between.h), for the requests
 * of documents, attachments, local documents, purges, indexes and counters.
 */
#include "between_ops.h"

#include <stdlib.h>

#include "index/engine/build.h"
#include "kv/tuple.h"

/* ---- The tables ---- */

static void
each_by_each(struct fixture *f, void (*prepare)(struct between_world *w),
	     const struct between_op *ops, size_t count)
{
	between_cross(f, prepare, ops, count, ops, count);
}

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

static const struct between_op of_winner[] = {
	{ "an edit of the winner", op_edit, "a", "2-x", "{\"n\":1,\"s\":3}", NULL, NULL },
	{ "a deletion of the winner", op_edit, "a", "2-x", NULL, NULL, NULL },
	{ "a new attachment", op_attach, "a", "2-x", "{\"n\":1}", "x", NULL },
	{ "a copy of a better branch", op_copy, "a", "5-z y x w a", "{\"s\":7}", NULL, NULL },
	{ "a copy that extends", op_copy, "a", "3-x x a", "{\"s\":8}", NULL, NULL },
	{ "a copy of a deletion", op_copy, "a", "3-d x a", NULL, NULL, NULL },
	{ "a purge of the winner", op_purge, "a", "2-x", NULL, NULL, NULL },
};

static const struct between_op of_conflict[] = {
	{ "an edit of a conflict", op_edit, "a", "2-w", "{\"s\":4}", NULL, NULL },
	{ "a deletion of a conflict", op_edit, "a", "2-w", NULL, NULL, NULL },
	{ "a copy of a new branch", op_copy, "a", "2-y a", "{\"s\":6}", NULL, NULL },
	{ "copies of two branches", op_copy, "a", "3-e w a", "{\"s\":9}", "2-q a", NULL },
	{ "a purge of a conflict", op_purge, "a", "2-w", NULL, NULL, NULL },
	{ "a purge of both", op_purge, "a", "2-x", NULL, "2-w", NULL },
	{ "a shorter history", op_limit_revs, NULL, NULL, NULL, NULL, NULL },
};

static const struct between_op of_absent[] = {
	{ "a new document", op_edit, "n", NULL, "{\"s\":1}", NULL, NULL },
	{ "the same with other content", op_edit, "n", NULL, "{\"s\":2}", NULL, NULL },
	{ "a copy of a new document", op_copy, "n", "1-n", "{\"s\":1}", NULL, NULL },
	{ "a deleted one begun again", op_edit, "d", NULL, "{\"s\":5}", NULL, NULL },
	{ "a copy of a deleted one", op_copy, "d", "2-d d", "{\"s\":1}", NULL, NULL },
	{ "a purge of a deleted one", op_purge, "d", "1-d", NULL, NULL, NULL },
	{ "a load around a new document", op_load, "n", NULL, "{\"s\":3}", NULL, NULL },
	{ "a load of copies", op_load, "n", "1-n", "{\"s\":1}", NULL, NULL },
	{ "a load around a deleted one", op_load, "d", NULL, "{\"s\":4}", NULL, NULL },
};

static void
edits_of_one_document_are_one_after_the_other(void **state)
{
	each_by_each(*state, NULL, of_winner, COUNT(of_winner));
	each_by_each(*state, NULL, of_conflict, COUNT(of_conflict));
	between_cross(*state, NULL, of_winner, COUNT(of_winner), of_conflict, COUNT(of_conflict));
	between_cross(*state, NULL, of_conflict, COUNT(of_conflict), of_winner, COUNT(of_winner));
	each_by_each(*state, NULL, of_absent, COUNT(of_absent));
}

/* ---- Reading ---- */

static void
prepare_local(struct between_world *w)
{
	static const struct between_op put = { .id = "l", .json = "{\"a\":{\"b\":1,\"c\":2}}" };

	op_local_put(w, &put, &w->said[0]);
	buf_clear(&w->said[0]);
}

/* What a request writes because of what it has read is right when it commits. */
static void
what_was_read_is_so_at_the_commit(void **state)
{
	static const struct between_op writing[] = {
		{ "an edit", op_edit, "a", "2-x", "{\"n\":2}", NULL, NULL },
		{ "a deletion", op_edit, "a", "2-x", NULL, NULL, NULL },
		{ "a purge of a conflict", op_purge, "a", "2-w", NULL, NULL, NULL },
		{ "a new document", op_edit, "n", NULL, "{\"s\":1}", NULL, NULL },
		{ "a deleted one begun again", op_edit, "d", NULL, "{\"s\":5}", NULL, NULL },
		{ "a copy of a deletion alone", op_copy, "n", "1-d", NULL, NULL, NULL },
		{ "a purge of a deleted one", op_purge, "d", "1-d", NULL, NULL, NULL },
		{ "another local document", op_local_put, "l", NULL, "{\"v\":1}", NULL, NULL },
	};
	static const struct between_op noting[] = {
		{ "noting a document", op_note, "a", NULL, NULL, NULL, op_read_doc },
		{ "noting an absent one", op_note, "n", NULL, NULL, NULL, op_read_doc },
		{ "noting a deleted one", op_note, "d", NULL, NULL, NULL, op_read_doc },
		{ "noting it at once", op_note, "a", NULL, NULL, NULL, op_read_together },
		{ "noting a deleted one at once", op_note, "d", NULL, NULL, NULL,
		  op_read_together },
		{ "noting the winner", op_note, "a", "2-x", NULL, NULL, op_read_head },
		{ "noting the conflict", op_note, "a", "2-w", NULL, NULL, op_read_head },
		{ "noting the tree", op_note, "a", NULL, NULL, NULL, op_read_tree },
		{ "noting the winner's revision", op_note, "a", NULL, NULL, NULL, op_read_winner },
		{ "noting an absent winner's", op_note, "n", NULL, NULL, NULL, op_read_winner },
		{ "noting a deleted winner's", op_note, "d", NULL, NULL, NULL, op_read_winner },
		{ "noting what descends", op_note, "a", "1-a", NULL, NULL, op_read_descent },
		{ "noting an attachment", op_note, "a", "2-x", NULL, NULL, op_read_att },
		{ "noting a local document", op_note, "l", NULL, NULL, NULL, op_read_local },
	};

	between_cross(*state, prepare_local, writing, COUNT(writing), noting, COUNT(noting));
}

/* ---- Attachments ---- */

static void
prepare_part(struct between_world *w)
{
	op_upload_begin(w);
	op_upload_more(w, NULL, &w->said[0]);
	assert_true(str_eq(buf_str(&w->said[0]), STR(" ok")));
	buf_clear(&w->said[0]);
}

static void
prepare_upload(struct between_world *w)
{
	op_upload_begin(w);
	op_upload_finish(w);
}

static void
an_upload_is_one_revisions_or_is_swept(void **state)
{
	static const struct between_op ops[] = {
		{ "a new document with the upload", op_publish, "n", NULL, "{}", NULL, NULL },
		{ "another one with the upload", op_publish, "m", NULL, "{}", NULL, NULL },
		{ "the upload for another attachment", op_publish, "a", "2-x", "{}", NULL, NULL },
		{ "a sweep", op_sweep, NULL, NULL, NULL, NULL, NULL },
		{ "the end of the upload", op_give_up, NULL, NULL, NULL, NULL, NULL },
	};
	static const struct between_op sweeping[] = {
		{ "a sweep", op_sweep, NULL, NULL, NULL, NULL, NULL },
	};
	static const struct between_op going_on[] = {
		{ "more of the upload", op_upload_more, NULL, NULL, NULL, NULL, NULL },
	};

	each_by_each(*state, prepare_upload, ops, COUNT(ops));
	between_cross(*state, prepare_part, sweeping, 1, going_on, 1);
	between_cross(*state, prepare_part, going_on, 1, sweeping, 1);
}

static void
the_last_revision_of_an_attachment_takes_it_away(void **state)
{
	static const struct between_op ops[] = {
		{ "one document without it", op_edit, "a", "2-x", "{}", NULL, NULL },
		{ "the other without it", op_edit, "s", "1-s", "{}", NULL, NULL },
		{ "one document deleted", op_edit, "a", "2-x", NULL, NULL, NULL },
		{ "the other deleted", op_edit, "s", "1-s", NULL, NULL, NULL },
		{ "one document purged", op_purge, "a", "2-x", NULL, NULL, NULL },
		{ "one with another beside it", op_attach, "a", "2-x", "{}", "x", NULL },
		{ "the other with another", op_attach, "s", "1-s", "{}", "y", NULL },
	};

	each_by_each(*state, NULL, ops, COUNT(ops));
}

/* ---- Local documents ---- */

static void
local_documents_are_written_one_after_the_other(void **state)
{
	static const struct between_op ops[] = {
		{ "a local document", op_local_put, "l", NULL, "{\"t\":{\"u\":[1,2]}}", NULL,
		  NULL },
		{ "another one", op_local_put, "l", NULL, "{\"v\":1}", NULL, NULL },
		{ "its deletion", op_local_delete, "l", NULL, NULL, NULL, NULL },
	};

	each_by_each(*state, NULL, ops, COUNT(ops));
	each_by_each(*state, prepare_local, ops, COUNT(ops));
}

/* ---- The record of purges ---- */

/* Three purges that a reader has not read. */
static void
prepare_purges(struct between_world *w)
{
	static const struct between_op add = { .id = "r" };
	static const struct between_op purges[] = { { .id = "f0", .rev = "1-f" },
						    { .id = "f1", .rev = "1-f" },
						    { .id = "f2", .rev = "1-f" } };

	op_reader_add(w, &add, &w->said[0]);
	for (size_t i = 0; i < COUNT(purges); i++)
		op_purge(w, &purges[i], &w->said[0]);
	buf_clear(&w->said[0]);
}

/* It has read the first of them, and two are too many. */
static void
prepare_read_purges(struct between_world *w)
{
	static const struct between_op advance = { .id = "r", .rev = "1" }, limit = { .rev = "1" };

	prepare_purges(w);
	op_reader_advance(w, &advance, &w->said[0]);
	op_limit_purges(w, &limit, &w->said[0]);
	buf_clear(&w->said[0]);
}

static void
purges_are_recorded_read_and_cleared_one_after_the_other(void **state)
{
	static const struct between_op ops[] = {
		{ "a purge", op_purge, "f3", "1-f", NULL, NULL, NULL },
		{ "another purge", op_purge, "f4", "1-f", NULL, NULL, NULL },
		{ "a new reader", op_reader_add, "s", NULL, NULL, NULL, NULL },
		{ "a reader that comes again", op_reader_add, "r", NULL, NULL, NULL, NULL },
		{ "one that has read everything", op_reader_advance, "r", NULL, NULL, NULL, NULL },
		{ "one that has read one", op_reader_advance, "r", "1", NULL, NULL, NULL },
		{ "a reader that goes", op_reader_remove, "r", NULL, NULL, NULL, NULL },
		{ "another limit", op_limit_purges, NULL, "3", NULL, NULL, NULL },
		{ "clearing", op_trim, NULL, NULL, NULL, NULL, NULL },
	};

	each_by_each(*state, prepare_purges, ops, COUNT(ops));
	each_by_each(*state, prepare_read_purges, ops, COUNT(ops));
}

/* ---- Indexes ---- */

static enum status
building_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;

	TRY(between_index(tx, w->f->db, INDEX_SPARSE, INDEX_BUILDING, &w->building));
	return index_work_note(tx, w->f->db);
}

static void
prepare_building(struct between_world *w)
{
	between_run(w, building_body);
	between_reopen(w);
}

static enum status
drop_ready_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;

	return index_drop(tx, w->f->db, index_find(w->f->db, w->ready));
}

static void
prepare_dropped(struct between_world *w)
{
	between_run(w, drop_ready_body);
	between_reopen(w);
}

static void
indexes_have_what_documents_have(void **state)
{
	static const struct between_op ops[] = {
		{ "a new document of one value", op_edit, "n", NULL, "{\"n\":7}", NULL, NULL },
		{ "another one of the same value", op_edit, "m", NULL, "{\"n\":7}", NULL, NULL },
		{ "an edit to the same value", op_edit, "a", "2-x", "{\"n\":7}", NULL, NULL },
		{ "an edit away from a value", op_edit, "a", "2-x", "{\"s\":1}", NULL, NULL },
		{ "a new document of a used value", op_edit, "u", NULL, "{\"n\":1}", NULL, NULL },
		{ "a purge of a value", op_purge, "a", "2-x", NULL, NULL, NULL },
		{ "a deletion that uncovers a branch", op_edit, "a", "2-x", NULL, NULL, NULL },
		{ "an edit of what is being built", op_edit, "f3", "1-f", "{\"n\":3}", NULL, NULL },
		{ "a deletion of what is being built", op_edit, "f4", "1-f", NULL, NULL, NULL },
		{ "another index", op_index_add, NULL, NULL, NULL, NULL, NULL },
		{ "the end of an index", op_index_remove, NULL, NULL, NULL, NULL, NULL },
		{ "a step of a build", op_build, NULL, NULL, NULL, NULL, NULL },
		{ "the whole build", op_build_all, NULL, NULL, NULL, NULL, NULL },
	};
	static const struct between_op numbering[] = {
		{ "an index by what was known", op_index_add_known, NULL, NULL, NULL, NULL, NULL },
	};
	static const struct between_op clearing[] = {
		{ "clearing three entries", op_index_clear_some, NULL, "3", NULL, NULL, NULL },
		{ "clearing four entries", op_index_clear_some, NULL, "4", NULL, NULL, NULL },
		{ "a new document", op_edit, "n", NULL, "{\"n\":7}", NULL, NULL },
	};

	each_by_each(*state, prepare_building, ops, COUNT(ops));
	each_by_each(*state, NULL, numbering, COUNT(numbering));
	each_by_each(*state, prepare_dropped, clearing, COUNT(clearing));
}

/* ---- Counters by range ---- */

/* A new last range, of which the description from before does not know. */
static void
prepare_opened(struct between_world *w)
{
	w->known = w->f->db;
	w->f->db = NULL;
	between_reopen(w);
	op_tend(w, NULL, NULL);
	w->checked = true; /* what one step gets wrong, the next may put right */
}

static enum status
forget_body(struct kv_tx *tx, void *arg)
{
	struct between_world *w = arg;
	AUTO(buf_release) struct buf lo = BUF_INIT(64);
	AUTO(buf_release) struct buf hi = BUF_INIT(64);

	buf_append_str(&lo, w->f->db->prefix);
	tuple_put_u64(&lo, REV_SUBSPACE_TALLIES);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	return kv_clear_range(tx, buf_str(&lo), buf_str(&hi));
}

/* As a database that was made before there were ranges, which tending is to give it. */
static void
prepare_forgotten(struct between_world *w)
{
	between_run(w, forget_body);
	between_reopen(w);
	w->checked = true;
}

/* Several ranges, of which most have become empty. */
static void
prepare_emptied(struct between_world *w)
{
	struct rev_edit edits[BETWEEN_FILLERS];
	struct rev_result results[BETWEEN_FILLERS];
	size_t n = 0;

	prepare_opened(w);
	between_reopen(w);
	op_tend(w, NULL, NULL);
	between_reopen(w);
	for (size_t i = 0; i + 2 < BETWEEN_FILLERS; i++)
		edits[n++] = fixture_edit(w->f, arena_printf(w->f->arena, "f%zu", i).ptr, "1-f",
					  NULL);
	fixture_write(w->f, edits, n, results);
}

static void
counters_are_right_whoever_tends_them(void **state)
{
	static const struct between_op ops[] = {
		{ "tending", op_tend, NULL, NULL, NULL, NULL, NULL },
		{ "a new document", op_edit, "f5x", NULL, "{}", NULL, NULL },
		{ "a deletion", op_edit, "f9", "1-f", NULL, NULL, NULL },
		{ "an edit", op_edit, "f8", "1-f", "{}", NULL, NULL },
		{ "a purge", op_purge, "f9", "1-f", NULL, NULL, NULL },
	};
	static const struct between_op known[] = {
		{ "a new document by old ranges", op_put_known, NULL, NULL, NULL, NULL, NULL },
	};

	each_by_each(*state, NULL, ops, COUNT(ops));
	each_by_each(*state, prepare_opened, ops, COUNT(ops));
	between_cross(*state, prepare_opened, known, 1, ops, COUNT(ops));
	between_cross(*state, prepare_emptied, known, 1, ops, COUNT(ops));
	each_by_each(*state, prepare_emptied, ops, COUNT(ops));
	each_by_each(*state, prepare_forgotten, ops, 1);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(edits_of_one_document_are_one_after_the_other),
		TEST(what_was_read_is_so_at_the_commit),
		TEST(an_upload_is_one_revisions_or_is_swept),
		TEST(the_last_revision_of_an_attachment_takes_it_away),
		TEST(local_documents_are_written_one_after_the_other),
		TEST(purges_are_recorded_read_and_cleared_one_after_the_other),
		TEST(indexes_have_what_documents_have),
		TEST(counters_are_right_whoever_tends_them),
	};

	/* To interrupt is the faulty engine's; where no faults are asked for, it injects none. */
	assert_int_equal(setenv("FROND_TEST_FAULTS", "rate=0,delay=0,watch=0", 0), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
