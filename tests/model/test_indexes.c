/*
 * Indexes in the transactions that change documents: each kind of edit with an index there, what it
 * reads for it, and what a build that is under way makes different.
 */
#include "fixture.h"
#include "verified.h"

#include <stdio.h>

#include "index/engine/scan.h"
#include "index/json/source.h"

static struct str path_a[] = { { "a", 1 } };
static const struct index_column by_a[] = { { path_a, 1, false } };

/* An index on "a"; `flags` beside that it covers. */
static void
index_by_a(struct fixture *f, enum index_state state, uint32_t flags)
{
	const struct index_def terms = {
		.state = state,
		.flags = INDEX_COVERING | flags,
		.order = DOC_KEY_COUCH,
		.name = STR("by-a"),
		.owner = STR("_design/x"),
		.columns = by_a,
		.column_count = 1,
	};

	fixture_index(f, &terms);
}

static int
index_setup(void **state)
{
	int failed = fixture_setup(state);

	if (!failed)
		index_by_a(*state, INDEX_READY, INDEX_SPARSE);
	return failed;
}

/* The entries of the newest index, in order: "id=text id=text". */
static const char *
entries(struct fixture *f)
{
	const struct index_set *set = index_set_of(f->db);
	const struct index_def *def = &set->defs[set->count - 1];
	const struct index_interval all = { 0 };
	const struct index_scan_options options = { .mode = KV_SNAPSHOT };
	struct index_work w = { .arena = f->arena };
	struct kv_tx *tx = fixture_begin(f);
	struct str text = arena_dup(f->arena, STR(""));
	struct index_scan scan;
	struct index_entry entry;
	struct index_range range;

	assert_int_equal(index_range_make(f->db, def, &all, &w, &range), STATUS_OK);
	assert_int_equal(index_scan_init(&scan, tx, f->db, def, &range, &options), STATUS_OK);
	while (index_scan_next(&scan, &w, &entry) == STATUS_OK) {
		struct str value = entry.has_texts ? entry.texts[0] : STR("?");

		text = arena_printf(f->arena, "%.*s%s%.*s=%.*s", STR_ARG(text), text.len ? " " : "",
				    STR_ARG(entry.id), value.ptr ? (int)value.len : 4,
				    value.ptr ? value.ptr : "none");
	}
	index_scan_release(&scan);
	kv_tx_free(tx);
	return text.ptr;
}

static void
assert_cost(const struct fixture *f, uint64_t keys, uint64_t round_trips)
{
	assert_int_equal(f->cost.keys_read, keys);
	assert_int_equal(f->cost.round_trips, round_trips);
}

/* Bodies in leaves have a key for the root and one for each leaf. */
static uint64_t
body_keys(uint64_t leaves)
{
	return fixture_scheme() == REV_SCHEME_PACKED ? 1 : 1 + leaves;
}

/* ---- Edits ---- */

static void
a_new_document_has_its_entry_and_reads_nothing_for_it(void **state)
{
	struct fixture *f = *state;

	fixture_put(f, "x", NULL, "{\"a\":1}");
	assert_cost(f, 0, 1);
	fixture_put(f, "y", NULL, "{\"b\":1}");
	assert_string_equal(entries(f), "x=1");
	fixture_check(f);
}

static void
extending_the_winner_moves_its_entry_in_one_round_trip(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "x", NULL, "{\"a\":1}");

	fixture_put(f, "y", NULL, "{\"a\":2}");
	rev = fixture_put(f, "x", rev, "{\"a\":3}");
	assert_cost(f, 1 + body_keys(1), 1);
	assert_string_equal(entries(f), "y=2 x=3");
	rev = fixture_put(f, "x", rev, "{\"c\":3}");
	assert_string_equal(entries(f), "y=2");
	fixture_put(f, "x", rev, "{\"a\":0}");
	assert_string_equal(entries(f), "x=0 y=2");
	fixture_check(f);
}

static void
an_entry_that_stays_is_not_written(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "x", NULL, "{\"a\":1,\"b\":1}");
	uint64_t sets, clears;

	rev = fixture_put(f, "x", rev, "{\"a\":2,\"b\":1}");
	sets = f->cost.sets;
	clears = f->cost.clears;
	fixture_put(f, "x", rev, "{\"a\":2,\"b\":2}");
	/* Neither an entry, nor its counters. */
	assert_int_equal(f->cost.sets, sets - 2);
	assert_int_equal(f->cost.clears, clears - 1);
	assert_string_equal(entries(f), "x=2");
	fixture_check(f);
}

static void
equal_numbers_of_other_spelling_rewrite_the_value_alone(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "x", NULL, "{\"a\":1}");

	fixture_put(f, "x", rev, "{\"a\":1.0}");
	assert_string_equal(entries(f), "x=1.0");
	fixture_check(f);
}

static void
extending_a_loser_changes_entries_only_if_it_wins(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "x", "2-b a", false, "{\"a\":\"b\"}");
	fixture_replicate(f, "x", "1-c", false, "{\"a\":\"c\"}");
	assert_string_equal(entries(f), "x=\"b\"");
	fixture_replicate(f, "x", "2-c c", false, "{\"a\":\"d\"}");
	assert_string_equal(entries(f), "x=\"d\"");
	fixture_check(f);
	fixture_replicate(f, "x", "2-a a", false, "{\"a\":\"e\"}");
	assert_string_equal(entries(f), "x=\"d\"");
	fixture_check(f);
}

static void
deleting_the_winner_brings_the_second_branch_in(void **state)
{
	struct fixture *f = *state;
	const char *third;

	fixture_replicate(f, "x", "2-c a", false, "{\"a\":3}");
	fixture_replicate(f, "x", "2-b a", false, "{\"a\":2}");
	fixture_replicate(f, "x", "2-a a", false, "{\"a\":1}");
	fixture_delete(f, "x", "2-c");
	assert_cost(f, 2 + 2 * body_keys(1), 2);
	assert_string_equal(entries(f), "x=2");
	fixture_delete(f, "x", "2-a"); /* the loser that is left */
	assert_string_equal(entries(f), "x=2");
	fixture_delete(f, "x", "2-b");
	assert_string_equal(entries(f), "");
	fixture_check(f);
	third = fixture_put(f, "x", NULL, "{\"a\":9}");
	assert_string_equal(entries(f), "x=9");
	fixture_delete(f, "x", third);
	assert_string_equal(entries(f), "");
	fixture_check(f);
}

static void
several_replicated_edits_leave_the_last_winners_entry(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[3];
	struct rev_result results[3];

	fixture_put(f, "x", NULL, "{\"a\":0}");
	edits[0] = fixture_copy(f, "x", "2-b y", false, "{\"a\":1}");
	edits[1] = fixture_copy(f, "x", "3-c b y", false, "{\"a\":2}");
	edits[2] = fixture_copy(f, "x", "3-b b y", false, "{\"a\":3}");
	fixture_write(f, edits, 3, results);
	assert_string_equal(entries(f), "x=2");
	fixture_check(f);
}

struct purge {
	struct fixture *f;
	struct rev_purge_query query;
	struct rev_purge_result result;
};

static enum status
purge_body(struct kv_tx *tx, void *arg)
{
	struct purge *p = arg;
	enum status status = rev_purge(tx, p->f->db, &p->query, 1, p->f->arena, &p->result, NULL);

	p->f->cost = kv_tx_stats(tx);
	return status;
}

static void
purge(struct fixture *f, const char *id, const char *rev)
{
	struct rev_id id_of_rev = fixture_rev(f, rev);
	struct purge p = { .f = f,
			   .query = { .id = str_from_cstr(id), .revs = &id_of_rev, .count = 1 } };

	assert_int_equal(kv_run(f->store, purge_body, &p, NULL, NULL), STATUS_OK);
	assert_int_equal(p.result.count, 1);
}

static void
purging_the_winner_brings_the_next_branch_in(void **state)
{
	struct fixture *f = *state;

	fixture_replicate(f, "x", "2-c a", false, "{\"a\":3}");
	fixture_replicate(f, "x", "2-b a", false, "{\"a\":2}");
	fixture_replicate(f, "x", "2-a a", false, "{\"a\":1}");
	purge(f, "x", "2-c");
	assert_int_equal(f->cost.keys_read, 2 + 2 * body_keys(1));
	assert_string_equal(entries(f), "x=2");
	purge(f, "x", "2-a");
	assert_string_equal(entries(f), "x=2");
	fixture_check(f);
	purge(f, "x", "2-b");
	assert_string_equal(entries(f), "");
	fixture_check(f);
}

static void
design_documents_have_no_entries(void **state)
{
	struct fixture *f = *state;

	fixture_put(f, "_design/d", NULL, "{\"a\":1}");
	assert_string_equal(entries(f), "");
	fixture_check(f);
}

/* ---- What design documents tell ---- */

static int design_calls;
static char design_last[256];

static enum status
design_note(struct kv_tx *tx, const struct catalog_db *db, const struct rev_design_change *change,
	    struct arena *arena)
{
	const struct index_column column = { path_a, 1, false };
	struct index_work w = { .arena = arena };
	struct index_value before = { 0 }, after = { 0 };

	(void)tx;
	(void)db;
	design_calls++;
	if (change->before)
		assert_int_equal(index_json_find(change->before, &column, &w, &before), STATUS_OK);
	if (change->after)
		assert_int_equal(index_json_find(change->after, &column, &w, &after), STATUS_OK);
	(void)snprintf(design_last, sizeof(design_last), "%.*s %s %s", STR_ARG(change->id),
		       change->before ? before.found ? "had" : "bare" : "none",
		       change->after ? after.found ? "has" : "bare" : "none");
	return STATUS_OK;
}

static void
the_hook_is_told_of_winners_of_design_documents(void **state)
{
	struct fixture *f = *state;
	const char *rev;

	rev_design_hook(design_note);
	design_calls = 0;
	fixture_put(f, "a", NULL, "{\"a\":1}");
	assert_int_equal(design_calls, 0);
	rev = fixture_put(f, "_design/d", NULL, "{\"a\":1}");
	assert_string_equal(design_last, "_design/d none has");
	rev = fixture_put(f, "_design/d", rev, "{}");
	assert_string_equal(design_last, "_design/d had bare");
	fixture_replicate(f, "_design/d", "1-loser", false, "{}");
	assert_string_equal(design_last, "_design/d had bare");
	fixture_delete(f, "_design/d", rev);
	assert_string_equal(design_last, "_design/d bare bare");
	fixture_delete(f, "_design/d", "1-loser");
	assert_string_equal(design_last, "_design/d bare none");
	rev_design_hook(NULL);
	fixture_check(f);
}

/* ---- Unique ---- */

static void
of_two_documents_with_one_value_the_second_is_a_duplicate(void **state)
{
	struct fixture *f = *state;
	const char *rev;
	struct rev_edit edits[3];
	struct rev_result results[3];

	index_by_a(f, INDEX_READY, INDEX_UNIQUE | INDEX_SPARSE);
	rev = fixture_put(f, "x", NULL, "{\"a\":1}");
	assert_int_equal(fixture_try(f, "y", NULL, "{\"a\":1}"), STATUS_DUPLICATE);
	rev = fixture_put(f, "x", rev, "{\"a\":1,\"b\":1}");
	edits[0] = fixture_edit(f, "p", NULL, "{\"a\":5}");
	edits[1] = fixture_edit(f, "q", NULL, "{\"a\":5}");
	edits[2] = fixture_edit(f, "r", NULL, "{\"a\":6}");
	fixture_write(f, edits, 3, results);
	assert_int_equal(results[0].status, STATUS_OK);
	assert_int_equal(results[1].status, STATUS_DUPLICATE);
	assert_true(str_eq(results[1].index, STR("by-a")));
	assert_int_equal(results[2].status, STATUS_OK);
	fixture_put(f, "x", rev, "{\"a\":2}");
	fixture_put(f, "y", NULL, "{\"a\":1}");
	assert_string_equal(entries(f), "y=1 x=2 p=5 r=6");
	fixture_check(f);
}

/* What is known already and what is wrong by itself keep their results. */
static void
of_merged_copies_that_are_a_duplicate_each_that_would_change_is_refused(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[5];
	struct rev_result results[5];

	index_by_a(f, INDEX_READY, INDEX_UNIQUE | INDEX_SPARSE);
	(void)fixture_put(f, "x", NULL, "{\"a\":1}");
	(void)fixture_replicate(f, "y", "1-k", false, "{\"a\":9}");
	edits[0] = fixture_copy(f, "y", "1-k", false, "{\"a\":9}");
	edits[1] = fixture_copy(f, "y", "1-w v", false, "{\"a\":9}");
	edits[2] = fixture_copy(f, "y", "2-m k", false, "{\"a\":8}");
	edits[3] = fixture_copy(f, "y", "3-n m k", false, "{\"a\":1}");
	edits[4] = fixture_copy(f, "z", "1-z", false, "{\"a\":7}");
	fixture_write(f, edits, 5, results);
	assert_int_equal(results[0].status, STATUS_OK);
	assert_true(results[0].unchanged);
	assert_int_equal(results[1].status, STATUS_INVALID);
	for (size_t i = 2; i < 4; i++) {
		assert_int_equal(results[i].status, STATUS_DUPLICATE);
		assert_true(str_eq(results[i].index, STR("by-a")));
	}
	assert_int_equal(results[4].status, STATUS_OK);
	assert_string_equal(fixture_tree(f, "y", true), "1-k!");
	assert_string_equal(entries(f), "x=1 z=7 y=9");
	fixture_check(f);
}

/* Writes two documents, each in a transaction that does not see the other one. */
static enum status
write_side_by_side(struct fixture *f, struct rev_edit first, struct rev_edit second)
{
	const struct rev_edit *edits[2] = { &first, &second };
	struct catalog_db *dbs[2];
	struct kv_tx *txs[2];
	enum status status[2];

	for (size_t i = 0; i < 2; i++) {
		struct rev_result result;

		assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &txs[i]), STATUS_OK);
		assert_int_equal(rev_db_open(txs[i], NULL, STR("db"), &dbs[i], NULL), STATUS_OK);
		assert_int_equal(rev_write(txs[i], dbs[i], edits[i], 1, 0, f->arena, &result, NULL),
				 STATUS_OK);
		assert_int_equal(result.status, STATUS_OK);
	}
	for (size_t i = 0; i < 2; i++) {
		status[i] = kv_future_wait(kv_commit(txs[i]));
		kv_tx_free(txs[i]);
		catalog_db_unref(dbs[i]);
	}
	assert_int_equal(status[0], STATUS_OK);
	return status[1];
}

static void
of_two_writers_of_one_value_the_second_conflicts(void **state)
{
	struct fixture *f = *state;

	index_by_a(f, INDEX_READY, INDEX_UNIQUE | INDEX_SPARSE);
	assert_int_equal(write_side_by_side(f, fixture_edit(f, "x", NULL, "{\"a\":1}"),
					    fixture_edit(f, "y", NULL, "{\"a\":2}")),
			 STATUS_OK);
	assert_int_equal(write_side_by_side(f, fixture_edit(f, "p", NULL, "{\"a\":5}"),
					    fixture_edit(f, "q", NULL, "{\"a\":5}")),
			 STATUS_TX_CONFLICT);
	assert_string_equal(entries(f), "x=1 y=2 p=5");
	fixture_check(f);
}

/* ---- While an index is built ---- */

struct building {
	struct fixture *f;
	const char *id;
	const char *rev;
	enum index_state state; /* that it gets */
};

/* What a build does for one document. */
static enum status
build_one(struct kv_tx *tx, void *arg)
{
	struct building *b = arg;
	const struct index_set *set = index_set_of(b->f->db);
	const struct index_def *def = &set->defs[set->count - 1];
	struct index_source source = { .id = str_from_cstr(b->id) };
	struct catalog_counts counts;
	struct index_writer writer;
	struct rev_tree tree;
	struct rev_doc doc;
	enum status status;
	struct buf key = BUF_INIT(64);

	TRY(rev_tree_read(tx, b->f->db, source.id, REV_TREE_WINNER, b->f->arena, &tree));
	if (!index_build_wants(def, &tree.seq))
		return STATUS_OK;
	TRY(rev_doc_read(tx, b->f->db, source.id, b->f->arena, &doc));
	source.body = doc.packed;
	source.leaves = doc.leaves;
	source.count = doc.count;
	catalog_counts_init(&counts, b->f->db, b->f->arena);
	index_writer_init(&writer, tx, b->f->db, &counts, 2, b->f->arena);
	status = index_build_document(&writer, def, &source, true);
	if (status == STATUS_OK)
		status = index_writer_finish(&writer);
	if (status == STATUS_OK)
		status = catalog_counts_finish(&counts, tx, &key);
	index_writer_release(&writer);
	catalog_counts_release(&counts);
	buf_release(&key);
	return status;
}

static void
build(struct fixture *f, const char *id)
{
	struct building b = { .f = f, .id = id };

	assert_int_equal(kv_run(f->store, build_one, &b, NULL, NULL), STATUS_OK);
}

static enum status
set_state(struct kv_tx *tx, void *arg)
{
	struct building *b = arg;
	const struct index_set *set = index_set_of(b->f->db);

	return index_state_set(tx, b->f->db, &set->defs[set->count - 1], b->state, STR(""));
}

static void
finish_index(struct fixture *f, enum index_state state)
{
	struct building b = { .f = f, .state = state };

	assert_int_equal(kv_run(f->store, set_state, &b, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
}

static void
writers_and_a_build_leave_each_entry_once(void **state)
{
	struct fixture *f = *state;
	const char *a = fixture_put(f, "a", NULL, "{\"a\":1}");
	const char *b = fixture_put(f, "b", NULL, "{\"a\":2}");
	const char *c = fixture_put(f, "c", NULL, "{\"a\":3}");
	const char *d = fixture_put(f, "d", NULL, "{\"a\":4}");

	fixture_put(f, "e", NULL, "{\"a\":5}");
	index_by_a(f, INDEX_BUILDING, INDEX_SPARSE);
	assert_string_equal(entries(f), "");
	fixture_put(f, "new", NULL, "{\"a\":9}");
	a = fixture_put(f, "a", a, "{\"a\":1,\"b\":1}"); /* before the build meets it: the same */
	fixture_put(f, "b", b, "{\"a\":7}");             /* another value */
	build(f, "c");
	fixture_put(f, "c", c, "{\"a\":8}"); /* after the build has */
	fixture_delete(f, "d", d);
	build(f, "a");
	build(f, "b");
	build(f, "e");
	build(f, "new");
	finish_index(f, INDEX_READY);
	assert_string_equal(entries(f), "a=1 e=5 b=7 c=8 new=9");
	fixture_check(f);
}

/* The build takes a document with a new Sequence for one that a writer has entered. */
static void
an_edit_of_a_loser_enters_the_winner_for_the_build(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "a", NULL, "{\"a\":1}");

	fixture_put(f, "b", NULL, "{\"a\":2}");
	rev = fixture_put(f, "a", rev, "{\"a\":3}");
	index_by_a(f, INDEX_BUILDING, INDEX_SPARSE);
	fixture_replicate(f, "a", "1-loser", false, "{\"a\":4}");
	build(f, "a");
	build(f, "b");
	finish_index(f, INDEX_READY);
	assert_string_equal(entries(f), "b=2 a=3");
	fixture_check(f);
}

static enum status
clear_some(struct kv_tx *tx, void *arg)
{
	struct building *b = arg;
	const struct index_set *set = index_set_of(b->f->db);
	struct catalog_counts counts;
	struct index_writer writer;
	struct buf key = BUF_INIT(64);
	enum status status;
	bool more;

	catalog_counts_init(&counts, b->f->db, b->f->arena);
	index_writer_init(&writer, tx, b->f->db, &counts, 2, b->f->arena);
	status = index_clear(&writer, &set->defs[set->count - 1], 2, &more);
	if (status == STATUS_OK)
		status = index_writer_finish(&writer);
	if (status == STATUS_OK)
		status = catalog_counts_finish(&counts, tx, &key);
	if (status == STATUS_OK && !more)
		status = index_forget(tx, b->f->db, &set->defs[set->count - 1]);
	index_writer_release(&writer);
	catalog_counts_release(&counts);
	buf_release(&key);
	return status;
}

static void
a_dropped_index_is_cleared_and_forgotten(void **state)
{
	struct fixture *f = *state;
	struct building b = { .f = f };
	const char *rev = fixture_put(f, "a", NULL, "{\"a\":1}");

	fixture_put(f, "b", NULL, "{\"a\":2}");
	fixture_put(f, "c", NULL, "{\"a\":2}");
	finish_index(f, INDEX_DROPPED);
	fixture_put(f, "a", rev, "{\"a\":7}"); /* nobody keeps it any more */
	assert_string_equal(entries(f), "a=1 b=2 c=2");
	assert_int_equal(kv_run(f->store, clear_some, &b, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, clear_some, &b, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	assert_null(index_set_of(f->db));
	fixture_check(f);
}

/* Or what both have cleared would be counted twice. */
static void
of_two_that_clear_an_index_the_second_conflicts(void **state)
{
	struct fixture *f = *state;
	struct building b = { .f = f };
	struct kv_tx *txs[2];

	fixture_put(f, "a", NULL, "{\"a\":1}");
	fixture_put(f, "b", NULL, "{\"a\":2}");
	fixture_put(f, "c", NULL, "{\"a\":3}");
	finish_index(f, INDEX_DROPPED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &txs[i]), STATUS_OK);
		assert_int_equal(clear_some(txs[i], &b), STATUS_OK);
	}
	assert_int_equal(kv_future_wait(kv_commit(txs[0])), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(txs[1])), STATUS_TX_CONFLICT);
	for (int i = 0; i < 2; i++)
		kv_tx_free(txs[i]);
	assert_string_equal(entries(f), "c=3");
	fixture_check(f);
}

static void
writers_are_known_to_read_first_unless_an_index_is_kept(void **state)
{
	struct fixture *f = *state;
	struct kv_tx *tx = fixture_begin(f);
	struct catalog_db *bare;

	assert_true(rev_write_reads_first(f->db));
	/* Its indexes are not known. */
	assert_int_equal(catalog_open_bare(tx, NULL, CATALOG_SPACE_COUCH, f->db->name, &bare, NULL),
			 STATUS_OK);
	assert_false(rev_write_reads_first(bare));
	catalog_db_unref(bare);
	kv_tx_free(tx);
	index_by_a(f, INDEX_BUILDING, 0);
	assert_false(rev_write_reads_first(f->db));
	finish_index(f, INDEX_READY);
	assert_false(rev_write_reads_first(f->db));
	finish_index(f, INDEX_DROPPED);
	assert_true(rev_write_reads_first(f->db));
}

struct numbered {
	struct fixture *f;
	uint64_t number;
};

/* Gives the first index another number. */
static enum status
number_body(struct kv_tx *tx, void *arg)
{
	const struct numbered *n = arg;
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(INDEX_RECORD_BYTES);
	const struct index_def *def = &index_set_of(n->f->db)->defs[0];

	index_key_def(&key, n->f->db, def->number);
	TRY(kv_clear(tx, buf_str(&key)));
	index_key_def(&key, n->f->db, n->number);
	(void)index_def_put(&value, def);
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	return kv_touch_metadata_version(tx);
}

/* A number takes from no byte up to eight in a key. */
static void
an_index_is_found_whatever_its_number_is(void **state)
{
	static const uint64_t numbers[] = { 0,
					    UINT8_MAX,
					    UINT8_MAX + 1,
					    UINT32_MAX,
					    (UINT64_C(1) << 56) - 1,
					    UINT64_C(1) << 56,
					    UINT64_MAX };
	struct numbered n = { .f = *state };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		n.number = numbers[i];
		assert_int_equal(kv_run(n.f->calm, number_body, &n, NULL, NULL), STATUS_OK);
		fixture_reopen(n.f);
		assert_non_null(index_set_of(n.f->db));
		assert_int_equal(index_set_of(n.f->db)->count, 1);
		assert_non_null(index_find(n.f->db, n.number));
		assert_null(index_find(n.f->db, n.number + 1));
	}
}

static enum status
create_undone(struct fixture *f, const struct index_def *terms)
{
	struct kv_tx *tx;
	enum status status;
	uint64_t number;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
	status = index_create(tx, f->db, terms, &number, NULL);
	kv_tx_free(tx);
	return status;
}

static void
texts_of_an_index_may_be_as_long_as_their_limits(void **state)
{
	static char text[INDEX_SPEC_BYTES + 1];
	const struct index_def good = { .state = INDEX_READY,
					.order = DOC_KEY_COUCH,
					.name = { text, INDEX_TEXT_BYTES },
					.owner = { text, INDEX_TEXT_BYTES },
					.columns = by_a,
					.column_count = 1,
					.spec = { text, INDEX_SPEC_BYTES } };
	struct index_def longer[] = { good, good, good };
	struct fixture *f = *state;

	memset(text, 'x', sizeof(text));
	assert_int_equal(create_undone(f, &good), STATUS_OK);
	longer[0].name.len++;
	longer[1].owner.len++;
	longer[2].spec.len++;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(create_undone(f, &longer[i]), STATUS_LIMIT);
}

/* A filter, the names of a path, and the columns: those that are carried count, too. */
static void
terms_of_an_index_have_their_limits(void **state)
{
	static char filter[INDEX_FILTER_BYTES + 1];
	static struct str names[INDEX_PATH_NAMES + 1];
	static struct index_column columns[INDEX_COLUMNS + 1];
	static const struct index_column nameless = { path_a, 0, false };
	struct fixture *f = *state;

	memset(filter, ' ', sizeof(filter));
	memcpy(filter, "{}", 2);
	for (size_t i = 0; i <= INDEX_PATH_NAMES; i++)
		names[i] = STR("n");
	for (size_t i = 0; i <= INDEX_COLUMNS; i++)
		columns[i] = by_a[0];
	for (size_t more = 0; more < 2; more++) {
		enum status expected = more ? STATUS_LIMIT : STATUS_OK;
		const struct index_column deep = { .path = names,
						   .path_count = INDEX_PATH_NAMES + more };
		const struct index_def plain = { .state = INDEX_READY,
						 .order = DOC_KEY_COUCH,
						 .columns = by_a,
						 .column_count = 1 };
		struct index_def terms = plain;

		terms.filter = str_of(filter, INDEX_FILTER_BYTES + more);
		assert_int_equal(create_undone(f, &terms), expected);
		terms = plain;
		terms.columns = &deep;
		assert_int_equal(create_undone(f, &terms), expected);
		terms = plain;
		terms.columns = columns;
		terms.column_count = INDEX_COLUMNS + more;
		assert_int_equal(create_undone(f, &terms), expected);
		terms = plain;
		terms.column_count = 0;
		assert_int_equal(create_undone(f, &terms), STATUS_INVALID);
		terms = plain;
		terms.columns = &nameless;
		assert_int_equal(create_undone(f, &terms), STATUS_INVALID);
		terms = plain;
		terms.collation = STR("x"); /* JSON has none */
		assert_int_equal(create_undone(f, &terms), STATUS_INVALID);
	}
}

/* The forgetting is done in the background: nobody is to wait or to begin again for it. */
static void
open_transactions_outlive_the_forgetting_of_an_index(void **state)
{
	struct fixture *f = *state;
	struct catalog_cache *cache = catalog_cache_new();
	struct building b = { .f = f };
	struct catalog_db
		*dbs[2]; /* what the first one has read, the cache has for the second one */
	struct kv_tx *txs[2];
	struct rev_edit edits[2];
	struct rev_result result;

	assert_non_null(cache);
	edits[0] = fixture_edit(f, "x", NULL, "{\"a\":1}");
	edits[1] = fixture_edit(f, "y", NULL, "{\"a\":2}");
	finish_index(f, INDEX_DROPPED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &txs[i]), STATUS_OK);
		assert_int_equal(rev_db_open(txs[i], cache, STR("db"), &dbs[i], NULL), STATUS_OK);
		assert_int_equal(
			rev_write(txs[i], dbs[i], &edits[i], 1, 0, f->arena, &result, NULL),
			STATUS_OK);
	}
	assert_ptr_equal(dbs[0], dbs[1]);
	assert_int_equal(kv_run(f->store, clear_some, &b, NULL, NULL), STATUS_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kv_future_wait(kv_commit(txs[i])), STATUS_OK);
		kv_tx_free(txs[i]);
		catalog_db_unref(dbs[i]);
	}
	catalog_cache_free(cache);
	fixture_reopen(f);
	assert_string_equal(fixture_body(f, "y"), "{\"a\":2}");
	fixture_check(f);
}

struct making {
	struct fixture *f;
	size_t count;
	enum status status; /* of the last one */
};

static enum status
create_some(struct kv_tx *tx, void *arg)
{
	struct making *m = arg;
	const struct index_def terms = {
		.state = INDEX_READY,
		.order = DOC_KEY_COUCH,
		.name = STR("another"),
		.owner = STR("_design/x"),
		.columns = by_a,
		.column_count = 1,
	};
	struct err err = { 0 };
	uint64_t number;

	m->status = STATUS_OK;
	for (size_t i = 0; i < m->count && m->status == STATUS_OK; i++)
		m->status = index_create(tx, m->f->db, &terms, &number, &err);
	return m->status == STATUS_LIMIT ? STATUS_OK : m->status;
}

static void
a_forgotten_index_makes_room_for_one_also_where_a_cache_has_it(void **state)
{
	struct fixture *f = *state;
	struct building b = { .f = f };
	struct making m = { .f = f, .count = INDEX_DEFS - index_set_of(f->db)->count };

	assert_int_equal(kv_run(f->store, create_some, &m, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	finish_index(f, INDEX_DROPPED);
	assert_int_equal(index_set_of(f->db)->count, INDEX_DEFS);
	m.count = 1;
	assert_int_equal(kv_run(f->store, create_some, &m, NULL, NULL), STATUS_OK);
	assert_int_equal(m.status, STATUS_LIMIT);
	assert_int_equal(kv_run(f->store, clear_some, &b, NULL, NULL), STATUS_OK);
	/* `f->db` is what it was before. */
	assert_int_equal(kv_run(f->store, create_some, &m, NULL, NULL), STATUS_OK);
	assert_int_equal(m.status, STATUS_OK);
	assert_int_equal(kv_run(f->store, create_some, &m, NULL, NULL), STATUS_OK);
	assert_int_equal(m.status, STATUS_LIMIT);
}

/* ---- Another collation ---- */

/* Stores the newest index anew as if another version of ICU had made it. */
static enum status
set_other_collator(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	const struct index_set *set = index_set_of(f->db);
	struct index_def def = set->defs[set->count - 1];

	def.collator = STR("1/1");
	return index_state_set(tx, f->db, &def, def.state, STR(""));
}

static enum status
renew_newest(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	const struct index_set *set = index_set_of(f->db);
	uint64_t number;

	return index_renew(tx, f->db, &set->defs[set->count - 1], &number, NULL);
}

static void
a_writer_puts_an_index_of_another_collation_out_of_use(void **state)
{
	struct fixture *f = *state;
	const struct index_def *def;

	fixture_put(f, "a", NULL, "{\"a\":1}");
	assert_int_equal(kv_run(f->store, set_other_collator, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	def = &index_set_of(f->db)->defs[0];
	assert_int_equal(def->state, INDEX_READY);
	assert_false(index_is_readable(def));
	/* It is built again by itself: nothing is to be found wrong. */
	verified_none(f->calm);
	fixture_put(f, "b", NULL, "{\"a\":2}");
	fixture_reopen(f);
	assert_int_equal(index_set_of(f->db)->defs[0].state, INDEX_STALE);
	assert_string_equal(entries(f), "a=1");
	verified_none(f->calm);
	assert_int_equal(kv_run(f->store, renew_newest, f, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	assert_int_equal(index_set_of(f->db)->count, 2);
	assert_int_equal(index_set_of(f->db)->defs[0].state, INDEX_DROPPED);
	def = &index_set_of(f->db)->defs[1];
	assert_int_equal(def->state, INDEX_BUILDING);
	assert_true(str_eq(def->collator, index_collator(false)));
	build(f, "a");
	build(f, "b");
	finish_index(f, INDEX_READY);
	assert_string_equal(entries(f), "a=1 b=2");
	fixture_check(f);
}

/* A transaction that knows another set of indexes must not commit behind their change. */
static void
writers_that_do_not_know_an_index_conflict_with_its_creation(void **state)
{
	struct fixture *f = *state;
	const struct rev_edit edit = fixture_edit(f, "x", NULL, "{\"a\":1}");
	struct rev_result result;
	struct catalog_db *db;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(rev_db_open(tx, NULL, STR("db"), &db, NULL), STATUS_OK);
	assert_int_equal(rev_write(tx, db, &edit, 1, 0, f->arena, &result, NULL), STATUS_OK);
	index_by_a(f, INDEX_BUILDING, 0);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_TX_CONFLICT);
	kv_tx_free(tx);
	catalog_db_unref(db);
}

/* ---- Reading ---- */

static void
ranges_are_counted_and_read_from_both_ends(void **state)
{
	struct fixture *f = *state;
	struct index_work w = { .arena = f->arena };
	const struct index_def *def = &index_set_of(f->db)->defs[0];
	const struct index_scan_options back = { .reverse = true, .mode = KV_SNAPSHOT };
	struct leaf_value two, four;
	struct index_interval interval = { .low = &two, .high = &four, .high_exclusive = true };
	struct index_range range;
	struct index_scan scan;
	struct index_entry entry;
	struct str after;
	struct kv_tx *tx;
	uint64_t count;

	for (int i = 0; i < 6; i++)
		fixture_put(f, arena_printf(f->arena, "d%d", i).ptr, NULL,
			    arena_printf(f->arena, "{\"a\":%d}", i).ptr);
	assert_int_equal(leaf_parse(STR("2"), f->arena, &two, NULL), STATUS_OK);
	assert_int_equal(leaf_parse(STR("4"), f->arena, &four, NULL), STATUS_OK);
	tx = fixture_begin(f);
	assert_int_equal(index_range_make(f->db, def, &interval, &w, &range), STATUS_OK);
	assert_int_equal(index_range_count(tx, f->db, &range, 100, &count), STATUS_OK);
	assert_int_equal(count, 2);
	assert_int_equal(index_range_count(tx, f->db, &range, 0, &count), STATUS_OK);
	assert_int_equal(count, 2);
	assert_int_equal(index_scan_init(&scan, tx, f->db, def, &range, &back), STATUS_OK);
	assert_int_equal(index_scan_next(&scan, &w, &entry), STATUS_OK);
	assert_true(str_eq(entry.id, STR("d3")));
	after = arena_dup(f->arena, entry.key);
	index_scan_release(&scan);
	assert_int_equal(
		index_scan_init(&scan, tx, f->db, def, &range,
				&(struct index_scan_options){ .reverse = true, .after = after }),
		STATUS_OK);
	assert_int_equal(index_scan_next(&scan, &w, &entry), STATUS_OK);
	assert_true(str_eq(entry.id, STR("d2")));
	assert_int_equal(index_scan_next(&scan, &w, &entry), STATUS_NOT_FOUND);
	index_scan_release(&scan);
	kv_tx_free(tx);
}

static struct leaf_value
number_of(struct fixture *f, int n)
{
	struct leaf_value ret;

	assert_int_equal(leaf_parse(arena_printf(f->arena, "%d", n), f->arena, &ret, NULL),
			 STATUS_OK);
	return ret;
}

static uint64_t
count_to(struct fixture *f, struct kv_tx *tx, const struct index_range *range, uint64_t few)
{
	uint64_t ret;

	assert_int_equal(index_range_count(tx, f->db, range, (size_t)few, &ret), STATUS_OK);
	return ret;
}

/* However little is estimated: what has more entries than `few` is told as more than that. */
static void
assert_more_than_few(struct fixture *f, struct kv_tx *tx)
{
	enum {
		FROM = 500,
		PLACES = 44,  /* where ranges begin: in all parts of one of the counters' */
		ENTRIES = 70, /* more than such a range has, and not much more */
	};
	struct index_work w = { .arena = f->arena };
	struct leaf_value low, high;
	struct index_interval interval = { .low = &low, .high = &high, .high_exclusive = true };
	struct index_range range;
	unsigned little = 0;

	for (int from = FROM; from < FROM + PLACES; from++) {
		uint64_t estimate;

		low = number_of(f, from);
		high = number_of(f, from + ENTRIES);
		assert_int_equal(index_range_make(f->db, &index_set_of(f->db)->defs[0], &interval,
						  &w, &range),
				 STATUS_OK);
		estimate = count_to(f, tx, &range, 0);
		assert_int_equal(count_to(f, tx, &range, ENTRIES), ENTRIES);
		if (estimate >= ENTRIES)
			continue;
		little++;
		assert_true(count_to(f, tx, &range, estimate) > estimate);
		assert_true(count_to(f, tx, &range, ENTRIES - 1) > ENTRIES - 1);
	}
	assert_true(little > 0);
}

static void
large_ranges_are_estimated_without_reading(void **state)
{
	enum {
		DOCS = 2000,
		RANGE_KEYS = 16,
		BATCH = 500,
	};
	static const struct catalog_tally_sizes sizes = { RANGE_KEYS, 2 };
	struct fixture *f = *state;
	struct index_work w = { .arena = f->arena };
	struct rev_edit *edits = arena_alloc(f->arena, BATCH * sizeof(*edits));
	struct rev_result *results = arena_alloc(f->arena, BATCH * sizeof(*results));
	struct leaf_value low, high;
	struct index_interval interval = { .low = &low, .high = &high, .high_exclusive = true };
	struct index_range range, ranges[2];
	struct kv_tx *tx;
	uint64_t count;
	bool more = true;

	assert_non_null(edits);
	assert_non_null(results);
	for (int at = 0; at < DOCS; at += BATCH) {
		for (int i = 0; i < BATCH; i++)
			edits[i] = fixture_edit(f, arena_printf(f->arena, "d%d", at + i).ptr, NULL,
						arena_printf(f->arena, "{\"a\":%d}", at + i).ptr);
		fixture_write(f, edits, BATCH, results);
	}
	while (more)
		assert_int_equal(catalog_tally_tend(f->calm, f->db, &sizes, &more, NULL),
				 STATUS_OK);
	low = number_of(f, 500);
	high = number_of(f, 1500);
	tx = fixture_begin(f);
	assert_int_equal(
		index_range_make(f->db, &index_set_of(f->db)->defs[0], &interval, &w, &range),
		STATUS_OK);
	assert_int_equal(index_range_count(tx, f->db, &range, 10, &count), STATUS_OK);
	assert_in_range(count, 900, 1100);
	assert_int_equal(kv_tx_stats(tx).keys_read, 11);
	ranges[0] = ranges[1] = range;
	assert_int_equal(index_ranges_count_exactly(tx, f->db, ranges, 1, 10, &count), STATUS_OK);
	assert_int_equal(count, 1000);
	assert_int_equal(index_ranges_count_exactly(tx, f->db, ranges, 2, 10, &count), STATUS_OK);
	assert_int_equal(count, 2000);
	assert_more_than_few(f, tx);
	kv_tx_free(tx);
}

#define TEST(name)            cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define TEST_WITH_INDEX(name) cmocka_unit_test_setup_teardown(name, index_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_WITH_INDEX(a_new_document_has_its_entry_and_reads_nothing_for_it),
		TEST_WITH_INDEX(extending_the_winner_moves_its_entry_in_one_round_trip),
		TEST_WITH_INDEX(an_entry_that_stays_is_not_written),
		TEST_WITH_INDEX(equal_numbers_of_other_spelling_rewrite_the_value_alone),
		TEST_WITH_INDEX(extending_a_loser_changes_entries_only_if_it_wins),
		TEST_WITH_INDEX(deleting_the_winner_brings_the_second_branch_in),
		TEST_WITH_INDEX(several_replicated_edits_leave_the_last_winners_entry),
		TEST_WITH_INDEX(purging_the_winner_brings_the_next_branch_in),
		TEST_WITH_INDEX(design_documents_have_no_entries),
		TEST_WITH_INDEX(the_hook_is_told_of_winners_of_design_documents),
		TEST_WITH_INDEX(of_two_documents_with_one_value_the_second_is_a_duplicate),
		TEST_WITH_INDEX(
			of_merged_copies_that_are_a_duplicate_each_that_would_change_is_refused),
		TEST_WITH_INDEX(of_two_writers_of_one_value_the_second_conflicts),
		TEST_WITH_INDEX(writers_and_a_build_leave_each_entry_once),
		TEST_WITH_INDEX(an_edit_of_a_loser_enters_the_winner_for_the_build),
		TEST(writers_are_known_to_read_first_unless_an_index_is_kept),
		TEST_WITH_INDEX(an_index_is_found_whatever_its_number_is),
		TEST(texts_of_an_index_may_be_as_long_as_their_limits),
		TEST(terms_of_an_index_have_their_limits),
		TEST_WITH_INDEX(a_dropped_index_is_cleared_and_forgotten),
		TEST_WITH_INDEX(of_two_that_clear_an_index_the_second_conflicts),
		TEST_WITH_INDEX(open_transactions_outlive_the_forgetting_of_an_index),
		TEST_WITH_INDEX(a_forgotten_index_makes_room_for_one_also_where_a_cache_has_it),
		TEST_WITH_INDEX(a_writer_puts_an_index_of_another_collation_out_of_use),
		TEST_WITH_INDEX(writers_that_do_not_know_an_index_conflict_with_its_creation),
		TEST_WITH_INDEX(large_ranges_are_estimated_without_reading),
		TEST_WITH_INDEX(ranges_are_counted_and_read_from_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
