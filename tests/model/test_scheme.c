/* Packed and exploded documents in one database: what is written, and that reads are the same. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "kv/tuple.h"
#include "catalog/verify.h"

enum {
	WRITERS = 3,
	WRITER_DOCS = 60,
	SWITCHES = 40,
	WRITER_ARENA_BYTES = 16 * 1024 * 1024,
	KEY_BYTES = 2 * KV_LIMIT_KEY_BYTES,
};

struct set_scheme {
	struct fixture *f;
	enum rev_scheme scheme;
};

static enum status
scheme_body(struct kv_tx *tx, void *arg)
{
	const struct set_scheme *s = arg;

	return rev_scheme_set(tx, s->f->db, s->scheme, NULL);
}

static void
set_scheme(struct fixture *f, enum rev_scheme scheme)
{
	struct set_scheme s = { f, scheme };

	assert_int_equal(kv_run(f->store, scheme_body, &s, NULL, NULL), STATUS_OK);
	fixture_reopen(f);
	assert_int_equal(rev_db_scheme(f->db), scheme);
}

/* The pairs below (P, space, id): how many, and the first one's value. */
static size_t
pairs_of(struct fixture *f, enum rev_subspace space, const char *id, struct kv_pair *ret_first)
{
	struct buf begin = BUF_INIT(KEY_BYTES);
	struct buf end = BUF_INIT(KEY_BYTES);
	struct kv_future *future;
	struct kv_range range;
	struct kv_tx *tx;
	size_t count;

	buf_append_str(&begin, f->db->prefix);
	tuple_put_u64(&begin, space);
	tuple_put_str(&begin, str_from_cstr(id));
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	future = kv_get_range(tx, buf_str(&begin), buf_str(&end), NULL);
	assert_int_equal(kv_future_wait(future), STATUS_OK);
	range = kv_future_range(future);
	count = range.count;
	if (count && ret_first) {
		ret_first->key = arena_dup(f->arena, range.pairs[0].key);
		ret_first->value = arena_dup(f->arena, range.pairs[0].value);
	}
	kv_tx_free(tx);
	buf_release(&begin);
	buf_release(&end);
	return count;
}

static size_t
bodies_of(struct fixture *f, const char *id)
{
	return pairs_of(f, REV_SUBSPACE_DOCUMENTS, id, NULL);
}

/* ---- What is written ---- */

static void
scheme_says_what_is_written_from_now_on(void **state)
{
	struct fixture *f = *state;
	const char *rev;

	set_scheme(f, REV_SCHEME_EXPLODED);
	rev = fixture_put(f, "a", NULL, "{\"x\":[1,2],\"y\":{}}");
	fixture_put(f, "b", NULL, "{\"x\":[1,2],\"y\": {}}");
	assert_int_equal(bodies_of(f, "a"), 1 + 3);
	set_scheme(f, REV_SCHEME_PACKED);
	assert_int_equal(bodies_of(f, "b"), 1 + 3);
	assert_string_equal(fixture_body(f, "b"), "{\"x\":[1,2],\"y\":{}}");
	/* The revision that is replaced was in leaves, which go. */
	rev = fixture_put(f, "a", rev, "{\"y\":{},\"x\":[1,3]}");
	assert_int_equal(bodies_of(f, "a"), 1);
	assert_string_equal(fixture_body(f, "a"), "{\"x\":[1,3],\"y\":{}}");
	set_scheme(f, REV_SCHEME_EXPLODED);
	assert_string_equal(fixture_body(f, "a"), "{\"x\":[1,3],\"y\":{}}");
	fixture_put(f, "a", rev, "{\"x\":[1,4],\"y\":{}}");
	assert_int_equal(bodies_of(f, "a"), 1 + 3);
	fixture_check(f);
}

static void
revisions_are_the_same_in_both_schemes(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"b\":1,\"a\":[1.10,-0,1e2,{\"z\":null}]}",
		"{\"a\":1,\"b\":2,\"a\":3 }",
		"{\"n\":[1,2,255],\"s\":\"\\u0000\\u00e9\"}",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *a = arena_printf(f->arena, "exploded %zu", i).ptr;
		const char *b = arena_printf(f->arena, "packed %zu", i).ptr;
		const char *of_a, *of_b;

		set_scheme(f, REV_SCHEME_EXPLODED);
		of_a = fixture_put(f, a, NULL, texts[i]);
		set_scheme(f, REV_SCHEME_PACKED);
		of_b = fixture_put(f, b, NULL, texts[i]);
		assert_string_equal(of_a, of_b);
		assert_string_equal(fixture_body(f, a), fixture_body(f, b));
		assert_string_equal(fixture_delete(f, a, of_a), fixture_delete(f, b, of_b));
	}
	fixture_check(f);
}

/* {"a":"xxx..."} of so many bytes. */
static const char *
text_of(struct fixture *f, size_t bytes)
{
	struct str text = arena_printf(f->arena, "{\"a\":\"%0*d\"}", (int)(bytes - 8), 0);

	assert_non_null(text.ptr);
	assert_int_equal(text.len, bytes);
	return text.ptr;
}

static void
leaves_take_over_above_the_limit(void **state)
{
	struct fixture *f = *state;
	char *spaced;

	set_scheme(f, REV_SCHEME_PACKED);
	for (size_t bytes = DOC_PACKED_BYTES - 1; bytes <= DOC_PACKED_BYTES + 2; bytes++) {
		const char *id = arena_printf(f->arena, "%zu", bytes).ptr;
		const char *text = text_of(f, bytes);

		fixture_put(f, id, NULL, text);
		assert_int_equal(bodies_of(f, id), bytes <= DOC_PACKED_BYTES ? 1 : 2);
		assert_string_equal(fixture_body(f, id), text);
	}
	/* White space does not count. */
	spaced = (char *)(uintptr_t)arena_printf(f->arena, "  %s ", text_of(f, DOC_PACKED_BYTES))
			 .ptr;
	fixture_put(f, "spaced", NULL, spaced);
	assert_int_equal(bodies_of(f, "spaced"), 1);
	fixture_check(f);
}

static void
tombstones_and_conflicts_are_packed_like_others(void **state)
{
	struct fixture *f = *state;

	set_scheme(f, REV_SCHEME_PACKED);
	fixture_replicate(f, "a", "2-x r", false, "{\"n\":1,\"m\":[2]}");
	fixture_replicate(f, "a", "2-y r", false, "{\"n\":2,\"m\":[2]} ");
	fixture_replicate(f, "a", "3-t s r", true, "{\"why\":\"because\"}");
	fixture_replicate(f, "a", "3-u s r", true, "{}");
	/* A tombstone without members has no body at all. */
	assert_int_equal(bodies_of(f, "a"), 3);
	assert_string_equal(fixture_leaf(f, "a", "2-x", false), "{\"m\":[2],\"n\":1}");
	assert_string_equal(fixture_leaf(f, "a", "2-y", false), "{\"m\":[2],\"n\":2}");
	assert_string_equal(fixture_leaf(f, "a", "3-t", true), "{\"why\":\"because\"}");
	assert_string_equal(fixture_leaf(f, "a", "3-u", true), "missing");
	fixture_check(f);
}

static void
extending_a_packed_winner_reads_1_key_in_1_round_trip(void **state)
{
	struct fixture *f = *state;
	const char *rev;

	set_scheme(f, REV_SCHEME_PACKED);
	rev = fixture_put(f, "a", NULL, "{\"n\":1}");
	assert_int_equal(f->cost.keys_read, 0);
	rev = fixture_put(f, "a", rev, "{\"n\":22}");
	assert_int_equal(f->cost.keys_read, 1);
	assert_int_equal(f->cost.round_trips, 1);
	fixture_delete(f, "a", rev);
	assert_int_equal(f->cost.keys_read, 1);
	assert_int_equal(f->cost.round_trips, 1);
}

struct local {
	struct fixture *f;
	struct doc doc;
	uint64_t n;
	struct rev_doc read;
};

static enum status
local_body(struct kv_tx *tx, void *arg)
{
	struct local *l = arg;
	uint64_t n;

	return rev_local_put(tx, l->f->db, STR("here"), l->n, &l->doc, l->f->arena, &n, NULL);
}

static enum status
local_read_body(struct kv_tx *tx, void *arg)
{
	struct local *l = arg;

	return rev_local_get(tx, l->f->db, STR("here"), l->f->arena, &l->n, &l->read);
}

static void
local_documents_are_packed_like_others(void **state)
{
	struct fixture *f = *state;
	struct local l = { .f = f };

	for (int i = 0; i < 4; i++) {
		struct buf text = BUF_INIT(100);

		set_scheme(f, i % 2 ? REV_SCHEME_EXPLODED : REV_SCHEME_PACKED);
		l.doc = fixture_doc(f, i < 2 ? "{\"b\":[],\"a\":1}" : "{\"b\":[],\"a\": 1}");
		l.n = (uint64_t)i;
		assert_int_equal(kv_run(f->store, local_body, &l, NULL, NULL), STATUS_OK);
		assert_int_equal(pairs_of(f, REV_SUBSPACE_LOCAL, "here", NULL), i % 2 ? 3 : 1);
		assert_int_equal(kv_run_read(f->store, local_read_body, &l, NULL), STATUS_OK);
		assert_int_equal(l.n, i + 1);
		assert_int_equal(rev_body_write(&l.read, false, &text), STATUS_OK);
		assert_true(str_eq(buf_str(&text), STR("\"a\":1,\"b\":[]}")));
		buf_release(&text);
	}
}

/* ---- Switching while others write ---- */

struct writer {
	struct fixture *f;
	struct arena *arena;
	size_t number;
	size_t at;
	struct rev_result result;
};

static enum status
writer_body(struct kv_tx *tx, void *arg)
{
	struct writer *w = arg;
	const struct doc_limits limits = {
		.doc_bytes = DOC_LIMIT_DEFAULT_BYTES,
		.path_bytes = KV_LIMIT_KEY_BYTES,
		.packed_bytes = w->at % 3 ? DOC_PACKED_BYTES : 0, /* the guess may be wrong */
	};
	struct rev_edit edit = { .kind = REV_EDIT_INTERACTIVE };
	struct catalog_db *db;
	enum status status;
	struct str text;

	arena_clear(w->arena);
	edit.id = arena_printf(w->arena, "%zu-%zu", w->number, w->at);
	text = arena_printf(w->arena, "{\"writer\":%zu,\"at\":[%zu]}", w->number, w->at);
	TRY(doc_explode_text(text, w->arena, &limits, 64, &edit.doc, NULL));
	TRY(rev_db_open(tx, NULL, STR("db"), &db, NULL));
	status = rev_write(tx, db, &edit, 1, 0, w->arena, &w->result, NULL);
	catalog_db_unref(db);
	return status;
}

static void *
write_all(void *arg)
{
	struct writer *w = arg;

	for (w->at = 0; w->at < WRITER_DOCS; w->at++)
		if (kv_run(w->f->store, writer_body, w, NULL, NULL) != STATUS_OK ||
		    w->result.status != STATUS_OK)
			return w;
	return NULL;
}

static void
scheme_can_be_changed_while_others_write(void **state)
{
	struct fixture *f = *state;
	struct writer writers[WRITERS];
	pthread_t threads[WRITERS];
	size_t packed = 0, exploded = 0;

	for (size_t i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .f = f, .number = i };
		writers[i].arena = arena_new(WRITER_ARENA_BYTES);
		assert_non_null(writers[i].arena);
		assert_int_equal(pthread_create(&threads[i], NULL, write_all, &writers[i]), 0);
	}
	for (int i = 0; i < SWITCHES; i++) {
		struct set_scheme s = { f, i % 2 ? REV_SCHEME_PACKED : REV_SCHEME_EXPLODED };

		assert_int_equal(kv_run(f->store, scheme_body, &s, NULL, NULL), STATUS_OK);
	}
	for (size_t i = 0; i < WRITERS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
		arena_free(writers[i].arena);
	}
	fixture_reopen(f);
	for (size_t i = 0; i < WRITERS; i++) {
		for (size_t at = 0; at < WRITER_DOCS; at++) {
			const char *id = arena_printf(f->arena, "%zu-%zu", i, at).ptr;
			struct str want = arena_printf(f->arena, "{\"at\":[%zu],\"writer\":%zu}",
						       at, i);

			assert_string_equal(fixture_body(f, id), want.ptr);
			packed += bodies_of(f, id) == 1;
			exploded += bodies_of(f, id) == 3;
		}
	}
	assert_int_equal(packed + exploded, WRITERS * WRITER_DOCS);
	fixture_check(f);
}

/* ---- Damage ---- */

struct said {
	char names[200];
	struct catalog_verify_sum sum;
};

static void
found(const struct catalog_finding *finding, void *arg)
{
	struct said *said = arg;
	size_t len = strlen(said->names);

	snprintf(said->names + len, sizeof(said->names) - len, "%s%s", len ? " " : "",
		 finding->kind);
}

static void
assert_says(struct fixture *f, const char *expected, uint64_t packed)
{
	struct said said = { .names = "" };
	struct catalog_verify_options options = { .found = found, .arg = &said };
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->calm, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(catalog_verify_store(tx, &options, &said.sum, NULL), STATUS_OK);
	kv_tx_free(tx);
	assert_string_equal(said.names, expected);
	assert_int_equal(said.sum.packed, packed);
}

static enum status
set_body(struct kv_tx *tx, void *arg)
{
	const struct kv_pair *pair = arg;

	return kv_set(tx, pair->key, pair->value);
}

static void
set(struct fixture *f, struct str key, struct str value)
{
	struct kv_pair pair = { key, value };

	assert_int_equal(kv_run(f->calm, set_body, &pair, NULL, NULL), STATUS_OK);
}

static void
damaged_packed_documents_are_found(void **state)
{
	struct fixture *f = *state;
	struct local l = { .f = f };
	struct kv_pair root, local;
	struct str leaf;

	set_scheme(f, REV_SCHEME_PACKED);
	fixture_put(f, "a", NULL, "{\"a\":1,\"b\":[2,3]}");
	l.doc = fixture_doc(f, "{\"seq\":1}");
	assert_int_equal(kv_run(f->store, local_body, &l, NULL, NULL), STATUS_OK);
	assert_says(f, "", 2);
	assert_int_equal(pairs_of(f, REV_SUBSPACE_DOCUMENTS, "a", &root), 1);
	assert_int_equal(pairs_of(f, REV_SUBSPACE_LOCAL, "here", &local), 1);
	set(f, root.key, STR("\x15\x02\x02{\"b\":[2,3],\"a\":1}\0"));
	assert_says(f, "body_corrupt", 2);
	set(f, root.key, STR("\x15\x02\x02{\"a\":1,\"b\":[2,3}\0"));
	assert_says(f, "body_corrupt", 2);
	set(f, root.key, STR("\x15\x02\x02{\"a\":1,\"b\":[2,3]\0"));
	assert_says(f, "unreadable_value", 1);
	set(f, root.key, STR("\x15\x03"));
	assert_says(f, "unreadable_value", 1);
	set(f, root.key, root.value);
	set(f, local.key, STR("\x15\x02\x15\x01\x02{\"seq\": 1}\0"));
	assert_says(f, "body_corrupt", 2);
	set(f, local.key, local.value);
	leaf = arena_printf(f->arena, "%*s", (int)root.key.len + 3, "");
	memcpy((char *)(uintptr_t)leaf.ptr, root.key.ptr, root.key.len);
	memcpy((char *)(uintptr_t)leaf.ptr + root.key.len, "\x02x", 3);
	set(f, leaf, STR("\x15\x01"));
	assert_says(f, "body_corrupt", 2);
	/* A document, but the branch would leave its leaf behind. */
	set(f, root.key, STR("\x15\x01"));
	assert_says(f, "body_corrupt", 1);
}

#define SCHEME_TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SCHEME_TEST(scheme_says_what_is_written_from_now_on),
		SCHEME_TEST(revisions_are_the_same_in_both_schemes),
		SCHEME_TEST(leaves_take_over_above_the_limit),
		SCHEME_TEST(tombstones_and_conflicts_are_packed_like_others),
		SCHEME_TEST(extending_a_packed_winner_reads_1_key_in_1_round_trip),
		SCHEME_TEST(local_documents_are_packed_like_others),
		SCHEME_TEST(scheme_can_be_changed_while_others_write),
		SCHEME_TEST(damaged_packed_documents_are_found),
	};

	return cmocka_run_group_tests_name("scheme", tests, NULL, NULL);
}
