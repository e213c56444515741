/*
 * What views are given of a document, letter by letter; lists and numbers at their edges: heads of
 * many revisions, counts between any two Sequences, memory of uploads, documents of any form that
 * an index has.
 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "between.h"
#include "index/view/documents.h"
#include "model/revisioned/local.h"
#include "model/revisioned/partition.h"
#include "model/revisioned/revisioned_int.h"
#include "model/revisioned/viewed_docs.h"
#include "store.h"
#include "verified.h"

enum {
	BRANCHES = 250,
	SHARED = 401, /* revisions of all branches: with one less, all links there may be */
	CHANGES = 7,
	LEAVES = 110000, /* of a body whose text lies in chunks */
	BUDGET_BYTES = 16 * 1024 * 1024,
	ZLIB_BYTES = 260 * 1024, /* that an upload counts for what compresses it */
	BYTES = 1000,
};

/* ---- Views ---- */

static void
put_with(struct fixture *f, const char *history, bool deleted, const struct rev_att_edit *atts,
	 size_t count)
{
	struct rev_edit edit = fixture_copy(f, "a", history, deleted, "{\"n\":1}");
	struct rev_result result;

	edit.atts = atts;
	edit.atts_count = count;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
}

/* What maps are given of the document. */
static const char *
viewed(struct fixture *f, bool local_seq)
{
	const struct view_docs_want want = { .most = 10,
					     .most_bytes = SIZE_MAX,
					     .local_seq = local_seq };
	struct kv_tx *tx = fixture_begin(f);
	struct view_docs docs;
	struct err err = { 0 };

	assert_int_equal(rev_viewed_documents.changes(tx, f->db, &want, f->arena, &docs, &err),
			 STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(docs.count, 1);
	assert_false(docs.docs[0].gone || docs.more);
	return arena_printf(f->arena, "%.*s", STR_ARG(docs.docs[0].json)).ptr;
}

static void
a_map_is_given_attachments_and_conflicts(void **state)
{
	struct fixture *f = *state;
	const struct rev_att_edit atts[] = { between_att("k\"", "kept"), between_att("m", "") };
	const char *text;

	put_with(f, "2-d", false, atts, 2);
	assert_string_equal(
		viewed(f, false),
		"{\"_id\":\"a\",\"_rev\":\"2-d\",\"_attachments\":{"
		"\"k\\\"\":{\"content_type\":\"text/plain\",\"revpos\":0,"
		"\"digest\":\"md5-TYtghPPRZ7dsrGaiKpG+Ag==\",\"length\":4,\"stub\":true},"
		"\"m\":{\"content_type\":\"text/plain\",\"revpos\":0,"
		"\"digest\":\"md5-1B2M2Y8AsgTpgAmY7PhCfg==\",\"length\":0,\"stub\":true}},"
		"\"n\":1}");
	put_with(f, "3-e", true, NULL, 0);
	assert_non_null(strstr(viewed(f, false), "}},\"_deleted_conflicts\":[\"3-e\"],\"n\":1}"));
	put_with(f, "2-b", false, NULL, 0);
	put_with(f, "1-c", false, NULL, 0);
	put_with(f, "2-f", true, NULL, 0);
	assert_non_null(strstr(viewed(f, false),
			       "}},\"_conflicts\":[\"2-b\",\"1-c\"],"
			       "\"_deleted_conflicts\":[\"3-e\",\"2-f\"],\"n\":1}"));
	text = viewed(f, true);
	assert_memory_equal(text, "{\"_id\":\"a\",\"_rev\":\"2-d\",\"_local_seq\":\"", 38);
}

/* ---- Heads of many revisions ---- */

static void
links_of_heads_are_counted(void **state)
{
	struct fixture *f = *state;
	struct rev_edit *edits = calloc(BRANCHES, sizeof(*edits));
	struct rev_result *results = calloc(BRANCHES, sizeof(*results));
	struct rev_id *revs = calloc(SHARED, sizeof(*revs));
	struct kv_tx *tx;

	assert_true(edits && results && revs);
	for (size_t i = 0; i < SHARED; i++)
		revs[i] = (struct rev_id){ SHARED - i, arena_printf(f->arena, "s%zu", SHARED - i) };
	for (size_t i = 0; i < BRANCHES; i++) {
		edits[i] = fixture_copy(f, "a", "1-x", false, "{}");
		edits[i].start = SHARED + 1;
		edits[i].history_count = SHARED + 1;
		edits[i].history = arena_zalloc(f->arena, (SHARED + 1) * sizeof(struct str));
		assert_non_null(edits[i].history);
		edits[i].history[0] = arena_printf(f->arena, "b%zu", i);
		for (size_t k = 0; k < SHARED; k++)
			edits[i].history[k + 1] = revs[k].hash;
	}
	fixture_write(f, edits, BRANCHES, results);
	tx = fixture_begin(f);
	for (size_t count = SHARED - 1; count <= SHARED; count++) {
		struct arena *arena = arena_new(SIZE_MAX);
		struct rev_descent d;

		assert_non_null(arena);
		assert_int_equal(rev_descent_read(tx, f->db, STR("a"), revs, count, 0, arena, &d),
				 STATUS_OK);
		assert_int_equal(d.too_many, count == SHARED);
		/* Of one revision there are never too many. */
		assert_int_equal(rev_descent_read(tx, f->db, STR("a"), revs, 1, 0, arena, &d),
				 STATUS_OK);
		assert_false(d.too_many);
		arena_free(arena);
	}
	kv_tx_free(tx);
	free(edits);
	free(results);
	free(revs);
}

/* ---- Counts ---- */

/* Any two Sequences, one of them the beginning and one the end: as many as there are in a page. */
static void
changes_are_counted_between_any_two(void **state)
{
	struct fixture *f = *state;
	struct rev_change_range all = fixture_all_changes();
	struct catalog_seq seqs[CHANGES + 2];
	struct rev_change_page page;
	struct kv_tx *tx;

	for (int i = 0; i < CHANGES; i++)
		(void)fixture_put(f, arena_printf(f->arena, "%d", i).ptr, NULL, "{}");
	tx = fixture_begin(f);
	assert_int_equal(rev_changes_page(tx, f->db, &all, f->arena, &page), STATUS_OK);
	assert_int_equal(page.count, CHANGES);
	seqs[0] = all.since;
	for (int i = 0; i < CHANGES; i++)
		seqs[i + 1] = page.changes[i].seq;
	seqs[CHANGES + 1] = all.until;
	for (int since = 0; since < CHANGES + 2; since++) {
		for (int until = since; until < CHANGES + 2; until++) {
			for (int exclusive = 0; exclusive < 2; exclusive++) {
				struct rev_change_range range = all;
				uint64_t count;

				range.since = seqs[since];
				range.until = seqs[until];
				range.exclusive_until = exclusive;
				assert_int_equal(
					rev_changes_page(tx, f->db, &range, f->arena, &page),
					STATUS_OK);
				assert_int_equal(rev_changes_count(tx, f->db, &range, &count),
						 STATUS_OK);
				assert_int_equal(count, page.count);
			}
		}
	}
	kv_tx_free(tx);
}

/* ---- Memory ---- */

static void
uploads_count_what_they_hold(void **state)
{
	struct fixture *f = *state;
	struct rev_upload_options options = { .store = f->store, .db = f->db };
	static char bytes[BYTES];
	struct budget_part part = { 0 };
	struct budget budget;

	budget_init(&budget, BUDGET_BYTES);
	part.budget = &budget;
	budget_enter(&part);
	options.part = &part;
	options.memory_bytes = 2 * BYTES;
	for (int level = 0; level <= 1; level++) {
		uint8_t md5[REV_ATT_DIGEST_BYTES];
		size_t before = part.used_bytes, zlib = level ? ZLIB_BYTES : 0;
		struct rev_att_edit edit = { 0 };
		struct rev_upload *u;

		options.gzip_level = level;
		assert_int_equal(rev_upload_new(&options, &u), STATUS_OK);
		assert_ptr_equal(rev_upload_part(u), &part);
		assert_int_equal(part.used_bytes - before, zlib);
		assert_int_equal(rev_upload_write(u, str_of(bytes, BYTES), NULL), STATUS_OK);
		assert_true(part.used_bytes - before >= zlib + (level ? 0 : BYTES));
		assert_int_equal(rev_upload_finish(u, &edit, md5, NULL), STATUS_OK);
		/* What compresses is gone, and the bytes are held. */
		assert_in_range(part.used_bytes - before, edit.data.len, 4 * BYTES);
		rev_upload_free(u, false);
		assert_int_equal(part.used_bytes, before);
	}
	budget_part_release(&part);
	budget_fini(&budget);
}

/* ---- Documents of any form in an index ---- */

static struct index_def
by_n(void)
{
	static const struct str path[] = { { "n", 1 } };
	static const struct index_column column = { .path = path, .path_count = 1 };

	return (struct index_def){
		.state = INDEX_READY,
		.flags = INDEX_SPARSE,
		.order = DOC_KEY_COUCH,
		.name = STR("by-n"),
		.columns = &column,
		.column_count = 1,
	};
}

/* {"a":[0,1,…],"n":n} */
static const char *
put_leaves(struct fixture *f, const char *rev, unsigned leaves, int n)
{
	AUTO(buf_release) struct buf json = BUF_INIT(2 * LEAVES + 100);

	buf_append_cstr(&json, "{\"a\":[0");
	for (unsigned i = 1; i < leaves; i++)
		buf_append_cstr(&json, ",1");
	buf_printf(&json, "],\"n\":%d}", n);
	buf_append_byte(&json, 0);
	assert_int_equal(buf_status(&json), STATUS_OK);
	return fixture_put(f, "a", rev, json.ptr);
}

static void
an_index_follows_a_document_through_its_forms(void **state)
{
	static const unsigned leaves[] = { 1, LEAVES, 3000, LEAVES, LEAVES, 20000, 1 };
	const struct index_def terms = by_n();
	struct fixture *f = *state;
	const char *rev = NULL;

	fixture_index(f, &terms);
	for (size_t i = 0; i < sizeof(leaves) / sizeof(leaves[0]); i++) {
		rev = put_leaves(f, rev, leaves[i], (int)i);
		verified_none(f->calm);
	}
	(void)fixture_delete(f, "a", rev);
	verified_none(f->calm);
}

/* ---- What is asked of what is not there ---- */

static void
schemes_are_known_of_opened_databases(void **state)
{
	struct fixture *f = *state;
	struct catalog_cache *cache = catalog_cache_new();
	struct catalog_db *db;
	struct kv_tx *tx;

	assert_non_null(cache);
	assert_int_equal(rev_cache_scheme(cache, f->db->name, REV_SCHEME_EXPLODED),
			 REV_SCHEME_EXPLODED);
	assert_int_equal(rev_cache_scheme(cache, f->db->name, REV_SCHEME_PACKED),
			 REV_SCHEME_PACKED);
	tx = fixture_begin(f);
	assert_null(rev_db_cached(tx, cache, f->db->name));
	assert_int_equal(rev_db_open_bare(tx, cache, f->db->name, &db, NULL), STATUS_OK);
	assert_true(db->bare);
	catalog_db_unref(db);
	assert_int_equal(rev_db_open(tx, cache, f->db->name, &db, NULL), STATUS_OK);
	assert_false(db->bare);
	catalog_db_unref(db);
	/* Who needs little gets what is known in whole. */
	assert_int_equal(rev_db_open_bare(tx, cache, f->db->name, &db, NULL), STATUS_OK);
	assert_false(db->bare);
	catalog_db_unref(db);
	db = rev_db_cached(tx, cache, f->db->name);
	assert_non_null(db);
	assert_int_equal(db->number, f->db->number);
	catalog_db_unref(db);
	kv_tx_free(tx);
	assert_int_equal(rev_cache_scheme(cache, f->db->name, REV_SCHEME_EXPLODED),
			 rev_db_scheme(f->db));
	assert_int_equal(rev_cache_scheme(cache, f->db->name, REV_SCHEME_PACKED),
			 rev_db_scheme(f->db));
	catalog_cache_free(cache);
}

static void
no_partition_has_so_long_a_name(void **state)
{
	static char name[REV_DOC_ID_BYTES];
	struct fixture *f = *state;
	struct rev_partition_info info = { .doc_count = 7 };
	struct kv_tx *tx;

	fixture_make_partitioned(f);
	memset(name, 'p', sizeof(name));
	tx = fixture_begin(f);
	for (size_t len = sizeof(name) - 2; len <= sizeof(name); len++) {
		info.doc_count = 7;
		assert_int_equal(rev_partition_info(tx, f->db, str_of(name, len), &info),
				 STATUS_OK);
		assert_int_equal(info.doc_count, 0);
		assert_int_equal(info.doc_del_count, 0);
		assert_int_equal(info.sizes.external + info.sizes.active, 0);
	}
	kv_tx_free(tx);
}

static enum status
put_nameless(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	const struct doc doc = fixture_doc(f, "{}");
	uint64_t rev;

	return rev_local_put(tx, f->db, STR(""), 0, &doc, f->arena, &rev, &(struct err){ 0 });
}

static void
a_local_document_has_an_id(void **state)
{
	AUTO(buf_release) struct buf key = BUF_INIT(100);
	struct fixture *f = *state;

	assert_int_equal(kv_run(f->store, put_nameless, f, NULL, NULL), STATUS_INVALID);
	rev_key_named(&key, f->db, REV_SUBSPACE_LOCAL, STR("a\0b"));
	assert_int_equal(rev_local_prefix_bytes(f->db, STR("a\0b")), key.len);
}

#define EDGE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		EDGE_TEST(a_map_is_given_attachments_and_conflicts),
		EDGE_TEST(links_of_heads_are_counted),
		EDGE_TEST(changes_are_counted_between_any_two),
		EDGE_TEST(uploads_count_what_they_hold),
		EDGE_TEST(an_index_follows_a_document_through_its_forms),
		EDGE_TEST(schemes_are_known_of_opened_databases),
		EDGE_TEST(no_partition_has_so_long_a_name),
		EDGE_TEST(a_local_document_has_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
