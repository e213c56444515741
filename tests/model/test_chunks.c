/* Documents that are too many leaves for a transaction: their text lies in chunks. */
#include "fixture.h"

#include <stdlib.h>

#include "catalog/verify.h"
#include "doc/chunks.h"
#include "doc/packed.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/revisioned/body.h"
#include "model/revisioned/read.h"
#include "verified.h"

enum {
	NUMBERS = 240000,    /* 480 KB of JSON, more than 10 MB of leaves */
	GEO_BYTES = 1510000, /* of a GeoJSON */
	RECORDS_BYTES = 4300000,
	TEXT_BYTES = 32 * 1024 * 1024,
};

/* ---- Documents ---- */

static const char *
keep_text(struct fixture *f, struct buf *b)
{
	struct str text;

	assert_int_equal(buf_status(b), STATUS_OK);
	text = arena_dup(f->arena, buf_str(b));
	assert_non_null(text.ptr);
	buf_release(b);
	return text.ptr;
}

/* {"a":[7,7,…],"m":mark} */
static const char *
numbers(struct fixture *f, size_t count, int mark)
{
	struct buf b = BUF_INIT(TEXT_BYTES);

	buf_append_cstr(&b, "{\"a\":[7");
	for (size_t i = 1; i < count; i++)
		buf_append_cstr(&b, ",7");
	buf_printf(&b, "],\"m\":%d}", mark);
	return keep_text(f, &b);
}

/* A polygon of many corners. */
static const char *
geojson(struct fixture *f)
{
	struct buf b = BUF_INIT(TEXT_BYTES);
	int i = 0;

	buf_append_cstr(&b, "{\"coordinates\":[[[0.5,0.5]");
	while (b.len < GEO_BYTES - 40) {
		buf_printf(&b, ",[%d.%05d,%d.5]", i % 180, i % 99999, i % 90);
		i++;
	}
	buf_append_cstr(&b, "]],\"type\":\"Polygon\"}");
	return keep_text(f, &b);
}

/* Many small objects with long paths. */
static const char *
records(struct fixture *f)
{
	struct buf b = BUF_INIT(TEXT_BYTES);
	int i = 0;

	buf_append_cstr(&b, "{\"records\":[{}");
	while (b.len < RECORDS_BYTES - 100) {
		buf_printf(&b, ",{\"active\":%s,\"name\":\"n%d\",\"score\":%d}",
			   i % 2 ? "true" : "false", i, i % 100);
		i++;
	}
	buf_append_cstr(&b, "]}");
	return keep_text(f, &b);
}

/* ---- What is stored ---- */

static size_t
count_pairs(struct fixture *f, struct str lo)
{
	struct buf hi = BUF_INIT(100);
	struct kv_scan scan = { 0 };
	struct kv_tx *tx = fixture_begin(f);
	struct kv_pair pair;
	size_t n = 0;

	assert_int_equal(tuple_prefix_end(lo, &hi), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, lo, buf_str(&hi), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		n++;
	kv_scan_release(&scan);
	kv_tx_free(tx);
	buf_release(&hi);
	return n;
}

/* Pairs in one subspace. */
static size_t
pairs_in(struct fixture *f, enum rev_subspace space)
{
	struct buf lo = BUF_INIT(100);
	size_t n;

	buf_append_str(&lo, f->db->prefix);
	tuple_put_u64(&lo, space);
	n = count_pairs(f, buf_str(&lo));
	buf_release(&lo);
	return n;
}

/* Records of what is stored ahead. */
static size_t
uploads(struct fixture *f)
{
	struct buf lo = BUF_INIT(100);
	size_t n;

	tuple_put_u64(&lo, KV_ROOT);
	tuple_put_u64(&lo, KV_ROOT_UPLOADS);
	n = count_pairs(f, buf_str(&lo));
	buf_release(&lo);
	return n;
}

/* The chunks of a text, and its counter. */
static size_t
pairs_of_text(const char *json)
{
	return doc_chunks_count(strlen(json)) + 1;
}

static void
assert_value(struct fixture *f, const char *id, const char *rev, const char *path,
	     const char *expected)
{
	struct kv_tx *tx = fixture_begin(f);
	struct buf out = BUF_INIT(TEXT_BYTES);
	struct doc_pointer pointer;
	struct doc_place place;

	assert_int_equal(rev_doc_place(f->db, str_from_cstr(id), fixture_rev(f, rev), false,
				       f->arena, &place),
			 STATUS_OK);
	assert_int_equal(doc_pointer_parse(str_from_cstr(path), f->arena, &pointer, NULL),
			 STATUS_OK);
	assert_int_equal(doc_read_pointer(tx, place, &pointer, KV_READ, f->arena, &out, NULL),
			 STATUS_OK);
	assert_true(str_eq(buf_str(&out), str_from_cstr(expected)));
	buf_release(&out);
	kv_tx_free(tx);
}

/* ---- Staging ---- */

struct staged {
	struct rev_upload *upload;
	struct rev_text text;
};

/* Stores the text of an edit ahead, and names it in the edit. */
static void
stage(struct fixture *f, struct rev_edit *edit, struct staged *s)
{
	struct err err = { 0 };

	if (rev_text_stage(f->store, f->db, edit->id, &edit->doc, f->arena, &s->text, &s->upload,
			   &err) != STATUS_OK)
		fail_msg("%s", err.text);
	edit->text = s->upload ? &s->text : NULL;
}

/* An interactive edit whose text goes ahead if it is long; the new revision. */
static const char *
put_staged(struct fixture *f, const char *id, const char *parent, const char *json)
{
	struct rev_edit edit = fixture_edit(f, id, parent, json);
	struct rev_result result;
	struct staged s;

	stage(f, &edit, &s);
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	rev_upload_free(s.upload, true);
	return fixture_text(f, result.rev);
}

/* ---- Tests ---- */

static void
documents_of_any_shape_are_stored(void **state)
{
	struct fixture *f = *state;
	const char *const texts[] = { numbers(f, NUMBERS, 1), geojson(f), records(f) };
	const char *const paths[] = { "/m", "/type", "/records/2/name" };
	const char *const values[] = { "1", "\"Polygon\"", "\"n1\"" };

	for (int ahead = 0; ahead < 2; ahead++) {
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			const char *id = arena_printf(f->arena, "d%d-%zu", ahead, i).ptr;
			const char *rev;

			rev = ahead ? put_staged(f, id, NULL, texts[i])
				    : fixture_put(f, id, NULL, texts[i]);
			assert_string_equal(fixture_body(f, id), texts[i]);
			assert_value(f, id, rev, paths[i], values[i]);
		}
	}
	assert_int_equal(uploads(f), 0);
	assert_int_equal(
		pairs_in(f, REV_SUBSPACE_ATTACHMENTS),
		2 * (pairs_of_text(texts[0]) + pairs_of_text(texts[1]) + pairs_of_text(texts[2])));
	fixture_check(f);
}

/* The limit is of the text alone: also of the most leaves that it can have. */
static void
largest_document_is_stored_in_one_transaction_or_ahead(void **state)
{
	struct fixture *f = *state;
	const char *text = numbers(f, (DOC_LIMIT_MAX_BYTES - 14) / 2, 1);
	const char *rev;

	assert_in_range(strlen(text), DOC_LIMIT_MAX_BYTES - 2, DOC_LIMIT_MAX_BYTES);
	rev = fixture_put(f, "d", NULL, text);
	rev = put_staged(f, "d", rev, numbers(f, (DOC_LIMIT_MAX_BYTES - 14) / 2, 2));
	assert_value(f, "d", rev, "/m", "2");
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), pairs_of_text(text));
	fixture_check(f);
}

static void
text_goes_with_its_revision(void **state)
{
	struct fixture *f = *state;
	const char *text = numbers(f, NUMBERS, 1);
	const char *rev = fixture_put(f, "d", NULL, text);

	rev = fixture_put(f, "d", rev, numbers(f, NUMBERS, 2));
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), pairs_of_text(text));
	/* A losing branch keeps its text, also when it is written again as a loser. */
	fixture_replicate(f, "d", "9-b", false, "{\"small\":true}");
	fixture_replicate(f, "d", "9-c", false, numbers(f, NUMBERS, 3));
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), 2 * pairs_of_text(text));
	fixture_check(f);
	fixture_delete(f, "d", rev);
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), pairs_of_text(text));
	fixture_put(f, "d", "9-c", "{\"small\":1}");
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), 0);
	fixture_check(f);
}

static void
revision_that_keeps_the_body_shares_its_text(void **state)
{
	struct fixture *f = *state;
	const char *text = numbers(f, NUMBERS, 1);
	const char *rev = fixture_put(f, "d", NULL, text);
	struct rev_edit edit = fixture_edit(f, "d", rev, text);
	struct rev_edit copy = fixture_edit(f, "e", NULL, text);
	struct kv_tx *tx = fixture_begin(f);
	struct rev_text shared = { .source = REV_TEXT_SHARED };
	struct rev_result result;
	struct rev_doc doc;

	assert_int_equal(rev_doc_read(tx, f->db, STR("d"), f->arena, &doc), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(doc.text_bytes, strlen(text));
	memcpy(shared.id, doc.text_id, sizeof(shared.id));
	shared.bytes = doc.text_bytes;
	edit.text = &shared;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	assert_true(f->cost.bytes_written < 10000);
	copy.text = &shared;
	fixture_write(f, &copy, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), pairs_of_text(text));
	fixture_check(f);
	fixture_delete(f, "e", fixture_text(f, result.rev));
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), pairs_of_text(text));
	assert_string_equal(fixture_body(f, "d"), text);
	fixture_check(f);
}

static void
local_document_of_any_shape_is_stored(void **state)
{
	struct fixture *f = *state;
	const char *text = numbers(f, NUMBERS, 1);
	struct doc doc = fixture_doc(f, text);
	struct doc small = fixture_doc(f, "{\"a\":1}");
	struct kv_tx *tx;
	struct rev_doc read;
	uint64_t rev;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(rev_local_put(tx, f->db, STR("l"), 0, &doc, f->arena, &rev, NULL),
			 STATUS_OK);
	assert_int_equal(rev_local_put(tx, f->db, STR("m"), 0, &small, f->arena, &rev, NULL),
			 STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
	fixture_check(f);
	assert_int_equal(pairs_in(f, REV_SUBSPACE_LOCAL) -
				 (fixture_scheme() == REV_SCHEME_PACKED ? 1 : 2),
			 1 + doc_chunks_count(strlen(text)));

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(rev_local_get(tx, f->db, STR("l"), f->arena, &rev, &read), STATUS_OK);
	assert_true(str_eq(read.packed, str_from_cstr(text)));
	assert_int_equal(rev_local_put(tx, f->db, STR("l"), rev, &small, f->arena, &rev, NULL),
			 STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(pairs_in(f, REV_SUBSPACE_LOCAL),
			 fixture_scheme() == REV_SCHEME_PACKED ? 2 : 4);
	fixture_check(f);
}

/* As a process that ends between two transactions of a staging leaves it. */
static void
abandoned_staging_is_swept(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edit = fixture_edit(f, "d", NULL, geojson(f));
	uint64_t removed;
	struct staged s;

	stage(f, &edit, &s);
	assert_non_null(s.upload);
	rev_upload_free(s.upload, true); /* nothing is taken back */
	assert_int_equal(uploads(f), 1);
	assert_true(pairs_in(f, REV_SUBSPACE_ATTACHMENTS) > 0);
	fixture_check(f);
	assert_string_equal(fixture_body(f, "d"), "missing");
	assert_int_equal(rev_uploads_sweep(f->store, REV_UPLOAD_AGE_MS, &removed, NULL), STATUS_OK);
	assert_int_equal(removed, 0);
	assert_int_equal(rev_uploads_sweep(f->store, 0, &removed, NULL), STATUS_OK);
	assert_int_equal(uploads(f), 0);
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), 0);
	fixture_check(f);
}

/* The record of an upload that no frond of today can read, before all others. */
static enum status
unreadable_upload_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(64);
	static const uint8_t id[16];

	(void)arg;
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_UPLOADS);
	tuple_put_u64(&key, 0);
	tuple_put_uuid(&key, id);
	TRY(buf_status(&key));
	return kv_set(tx, buf_str(&key), STR("junk"));
}

static void
record_that_cannot_be_read_keeps_no_other_from_being_swept(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edit = fixture_edit(f, "d", NULL, geojson(f));
	uint64_t removed;
	struct staged s;

	stage(f, &edit, &s);
	rev_upload_free(s.upload, true); /* nothing is taken back */
	assert_int_equal(kv_run(f->store, unreadable_upload_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(rev_uploads_sweep(f->store, 0, &removed, NULL), STATUS_OK);
	assert_int_equal(removed, 1);
	assert_int_equal(uploads(f), 1);
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), 0);
}

static void
text_that_was_swept_is_refused_and_one_that_is_refused_goes(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edit = fixture_edit(f, "d", NULL, geojson(f));
	struct rev_result result;
	struct staged s;

	stage(f, &edit, &s);
	assert_int_equal(rev_uploads_sweep(f->store, 0, NULL, NULL), STATUS_OK);
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_TIMEOUT);
	rev_upload_free(s.upload, false);
	fixture_put(f, "d", NULL, "{}");
	stage(f, &edit, &s);
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_DOC_CONFLICT);
	rev_upload_free(s.upload, false);
	assert_int_equal(uploads(f), 0);
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), 0);
	fixture_check(f);
}

static void
several_large_documents_of_one_batch(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edits[4];
	struct rev_result results[4];
	struct staged staged[4];

	for (size_t i = 0; i < 4; i++) {
		edits[i] = fixture_edit(f, arena_printf(f->arena, "d%zu", i).ptr, NULL,
					i % 2 ? geojson(f) : numbers(f, NUMBERS, (int)i));
		stage(f, &edits[i], &staged[i]);
		assert_int_equal(staged[i].upload != NULL, i % 2);
	}
	fixture_write(f, edits, 4, results);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(results[i].status, STATUS_OK);
		rev_upload_free(staged[i].upload, true);
	}
	assert_string_equal(fixture_body(f, "d3"), geojson(f));
	assert_int_equal(uploads(f), 0);
	fixture_check(f);
}

static void
purge_takes_the_text_too(void **state)
{
	struct fixture *f = *state;
	const char *rev = fixture_put(f, "d", NULL, numbers(f, NUMBERS, 1));
	struct rev_id revs[] = { fixture_rev(f, rev) };
	const struct rev_purge_query query = { .id = STR("d"), .revs = revs, .count = 1 };
	struct rev_purge_result result;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(rev_purge(tx, f->db, &query, 1, f->arena, &result, NULL), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(tx)), STATUS_OK);
	kv_tx_free(tx);
	assert_int_equal(result.count, 1);
	assert_int_equal(pairs_in(f, REV_SUBSPACE_ATTACHMENTS), 0);
	fixture_check(f);
}

static void
bodies_of_a_list_may_lie_in_chunks(void **state)
{
	struct fixture *f = *state;
	const char *const texts[] = { "{\"n\":0}", numbers(f, NUMBERS, 1), "{\"n\":2}",
				      geojson(f) };
	static const int orders[][4] = { { 0, 1, 2, 3 }, { 3, 1, 0, 2 } };
	struct rev_want wants[4];

	for (size_t i = 0; i < 4; i++) {
		const char *id = arena_printf(f->arena, "d%zu", i).ptr;
		const char *rev = fixture_put(f, id, NULL, texts[i]);

		wants[i] = (struct rev_want){ .id = str_from_cstr(id), .rev = fixture_rev(f, rev) };
	}
	for (size_t o = 0; o < 2; o++) {
		struct rev_want ordered[4];
		struct rev_ahead a = { 0 };
		struct kv_tx *tx = fixture_begin(f);

		for (size_t i = 0; i < 4; i++)
			ordered[i] = wants[orders[o][i]];
		assert_int_equal(rev_ahead_begin(&a, tx, f->db, NULL, ordered, 4, false),
				 STATUS_OK);
		for (size_t i = 0; i < 4; i++) {
			struct buf out = BUF_INIT(TEXT_BYTES);
			struct rev_doc doc;

			assert_int_equal(rev_ahead_take(&a, f->arena, &doc), STATUS_OK);
			buf_append_byte(&out, '{');
			assert_int_equal(rev_body_write(&doc, false, &out), STATUS_OK);
			assert_true(str_eq(buf_str(&out), str_from_cstr(texts[orders[o][i]])));
			buf_release(&out);
		}
		rev_ahead_release(&a);
		kv_tx_free(tx);
	}
}

static void
bodies_that_lie_far_apart_are_read_without_a_scan(void **state)
{
	enum {
		DOCS = 200,
		APART = 50,
	};
	struct rev_want wants[DOCS / APART];
	struct fixture *f = *state;
	uint64_t keys[2];

	for (size_t i = 0; i < DOCS; i++) {
		const char *id = arena_printf(f->arena, "d%03zu", i).ptr;
		const char *rev = fixture_put(f, id, NULL, "{\"n\":1}");

		if (i % APART == 0)
			wants[i / APART] = (struct rev_want){ .id = str_from_cstr(id),
							      .rev = fixture_rev(f, rev) };
	}
	for (size_t sparse = 0; sparse < 2; sparse++) {
		struct rev_ahead a = { 0 };
		struct kv_tx *tx = fixture_begin(f);

		assert_int_equal(rev_ahead_begin(&a, tx, f->db, NULL, wants, DOCS / APART, false),
				 STATUS_OK);
		if (sparse)
			rev_ahead_is_sparse(&a);
		for (size_t i = 0; i < DOCS / APART; i++) {
			struct rev_doc doc;

			assert_int_equal(rev_ahead_take(&a, f->arena, &doc), STATUS_OK);
		}
		keys[sparse] = kv_tx_stats(tx).keys_read;
		rev_ahead_release(&a);
		kv_tx_free(tx);
	}
	assert_true(keys[0] > DOCS / 4);
	assert_true(keys[1] < DOCS / 4);
}

/* Behind the last of them nothing is read. */
static void
bodies_are_read_as_far_as_they_are_wanted(void **state)
{
	enum {
		DOCS = 100,
		WANTED = 10,
	};
	struct rev_want wants[WANTED];
	struct fixture *f = *state;

	for (size_t i = 0; i < DOCS; i++) {
		const char *id = arena_printf(f->arena, "d%03zu", i).ptr;
		const char *rev = fixture_put(f, id, NULL, "{\"n\":1}");

		if (i < WANTED)
			wants[i] = (struct rev_want){ .id = str_from_cstr(id),
						      .rev = fixture_rev(f, rev) };
	}
	for (size_t turned = 0; turned < 2; turned++) {
		struct rev_ahead a = { 0 };
		struct kv_tx *tx = fixture_begin(f);

		assert_int_equal(rev_ahead_begin(&a, tx, f->db, NULL, wants, WANTED, false),
				 STATUS_OK);
		for (size_t i = 0; i < WANTED; i++) {
			struct rev_doc doc;

			assert_int_equal(rev_ahead_take(&a, f->arena, &doc), STATUS_OK);
		}
		/* A root each, and a leaf beneath it, or none. */
		assert_in_range(kv_tx_stats(tx).keys_read, WANTED, 2 * WANTED);
		rev_ahead_release(&a);
		kv_tx_free(tx);
		for (size_t i = 0; i < WANTED / 2; i++) {
			struct rev_want want = wants[i];

			wants[i] = wants[WANTED - 1 - i];
			wants[WANTED - 1 - i] = want;
		}
	}
}

/* ---- Damage ---- */

struct pair_copy {
	struct str key;
	struct str value; /* ptr NULL: to be cleared */
};

static enum status
set_pair(struct kv_tx *tx, void *arg)
{
	const struct pair_copy *p = arg;

	return p->value.ptr ? kv_set(tx, p->key, p->value) : kv_clear(tx, p->key);
}

/* The pair of a subspace that comes at this place. */
static struct pair_copy
pair_at(struct fixture *f, enum rev_subspace space, size_t place)
{
	struct buf lo = BUF_INIT(100), hi = BUF_INIT(100);
	struct kv_tx *tx = fixture_begin(f);
	struct pair_copy copy = { { NULL, 0 }, { NULL, 0 } };
	struct kv_scan scan = { 0 };
	struct kv_pair pair;

	buf_append_str(&lo, f->db->prefix);
	tuple_put_u64(&lo, space);
	assert_int_equal(tuple_prefix_end(buf_str(&lo), &hi), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), NULL), STATUS_OK);
	for (size_t i = 0; i <= place; i++)
		assert_int_equal(kv_scan_next(&scan, &pair), STATUS_OK);
	copy.key = arena_dup(f->arena, pair.key);
	copy.value = arena_dup(f->arena, pair.value);
	kv_scan_release(&scan);
	kv_tx_free(tx);
	buf_release(&lo);
	buf_release(&hi);
	return copy;
}

static void
note_kind(const struct catalog_finding *finding, void *arg)
{
	struct buf *kinds = arg;

	if (kinds->len)
		buf_append_byte(kinds, ' ');
	buf_append_cstr(kinds, finding->kind);
}

/* Puts `value` under the pair's key, expects these findings, and puts the pair back. */
static void
assert_damage_is_found(struct fixture *f, struct pair_copy pair, struct str value,
		       const char *expected)
{
	struct pair_copy damaged = { pair.key, value };
	struct buf kinds = BUF_INIT(10000);
	struct catalog_verify_options options = { .found = note_kind, .arg = &kinds };
	struct catalog_verify_sum sum;
	struct kv_tx *tx;

	assert_int_equal(kv_run(f->store, set_pair, &damaged, NULL, NULL), STATUS_OK);
	tx = fixture_begin(f);
	assert_int_equal(catalog_verify_store(tx, &options, &sum, NULL), STATUS_OK);
	kv_tx_free(tx);
	buf_append_byte(&kinds, 0);
	assert_string_equal(kinds.ptr, expected);
	buf_release(&kinds);
	assert_int_equal(kv_run(f->store, set_pair, &pair, NULL, NULL), STATUS_OK);
}

/* The same of what the check says besides the kinds. */
static void
assert_damage_says(struct fixture *f, struct pair_copy pair, struct str value, const char *expected)
{
	struct pair_copy damaged = { pair.key, value };
	struct verified found;

	assert_int_equal(kv_run(f->store, set_pair, &damaged, NULL, NULL), STATUS_OK);
	verified_read(f->store, &found);
	if (!strstr(found.all, expected))
		fail_msg("%s: %s", expected, found.all);
	assert_int_equal(kv_run(f->store, set_pair, &pair, NULL, NULL), STATUS_OK);
}

/* A copy with one byte changed. */
static struct str
altered(struct fixture *f, struct str value, size_t at)
{
	char *bytes = arena_bytes(f->arena, value.len);

	assert_non_null(bytes);
	memcpy(bytes, value.ptr, value.len);
	bytes[at] ^= 1;
	return str_of(bytes, value.len);
}

static void
damaged_texts_are_found(void **state)
{
	const struct str none = { NULL, 0 };
	struct fixture *f = *state;
	const char *text = numbers(f, NUMBERS, 1);
	size_t chunks = doc_chunks_count(strlen(text));
	struct pair_copy root, branch, chunk, counter;

	fixture_put(f, "d", NULL, text);
	root = pair_at(f, REV_SUBSPACE_DOCUMENTS, 0);
	branch = pair_at(f, REV_SUBSPACE_REVISIONS, 0);
	chunk = pair_at(f, REV_SUBSPACE_ATTACHMENTS, 2);
	counter = pair_at(f, REV_SUBSPACE_ATTACHMENTS, chunks);
	/* A revision without its chunks: one, or the last, is missing or another. */
	assert_damage_is_found(f, chunk, none, "body_corrupt attachment");
	assert_damage_is_found(f, chunk, STR("7,7"), "body_corrupt attachment");
	assert_damage_is_found(f, pair_at(f, REV_SUBSPACE_ATTACHMENTS, chunks - 1), none,
			       "attachment body_corrupt");
	assert_damage_is_found(f, chunk, altered(f, chunk.value, 5), "body_corrupt");
	assert_damage_says(f, chunk, none, "body_corrupt: its text is not there, or not the");
	assert_damage_says(f, chunk, altered(f, chunk.value, 5),
			   "body_corrupt: the text in chunks is not what a document is packed to");
	/* Chunks without their revision. */
	assert_damage_is_found(f, counter, none, "attachment_stray attachment_count");
	assert_damage_is_found(f, root, STR("\x15\x01"), "body_corrupt attachment_count");
	/* What the branch says is not what the body is. */
	assert_damage_is_found(f, branch, altered(f, branch.value, branch.value.len - 1),
			       "body_corrupt");
	/* A newer frond's body is not called corrupt. */
	assert_damage_is_found(f, root, STR("\x15\x09"),
			       "newer_format body_corrupt attachment_count");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(documents_of_any_shape_are_stored),
		TEST(largest_document_is_stored_in_one_transaction_or_ahead),
		TEST(text_goes_with_its_revision),
		TEST(revision_that_keeps_the_body_shares_its_text),
		TEST(local_document_of_any_shape_is_stored),
		TEST(abandoned_staging_is_swept),
		TEST(record_that_cannot_be_read_keeps_no_other_from_being_swept),
		TEST(text_that_was_swept_is_refused_and_one_that_is_refused_goes),
		TEST(several_large_documents_of_one_batch),
		TEST(purge_takes_the_text_too),
		TEST(bodies_of_a_list_may_lie_in_chunks),
		TEST(bodies_that_lie_far_apart_are_read_without_a_scan),
		TEST(bodies_are_read_as_far_as_they_are_wanted),
		TEST(damaged_texts_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
