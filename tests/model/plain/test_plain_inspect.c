/* What `frond inspect` shows of a collection: the keys of a document, and each kind of pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bson/json.h"
#include "catalog/draw.h"
#include "fixture.h"
#include "model/plain/index.h"
#include "model/plain/plain_int.h"

enum {
	DRAWN_BYTES = 1 << 16,
	TEXT_BYTES = 1000, /* that are shown of a text */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct str
doc_of(struct fixture *f, const char *json)
{
	struct buf out = BUF_INIT(1 << 20);
	struct str doc;

	if (bson_json_read(str_from_cstr(json), &out, &f->err) != STATUS_OK)
		fail_msg("%s: %s", json, f->err.text);
	doc = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	return doc;
}

struct inspecting {
	struct fixture *f;
	const char *name; /* of the collection */
	struct str id;
	struct str doc; /* to be inserted */
	const struct catalog_db *db;
	struct kv_tx *tx;
	struct buf out;
};

static enum status
insert_body(struct kv_tx *tx, void *arg)
{
	struct inspecting *i = arg;
	const struct plain_doc doc = plain_doc_of(i->doc);
	struct catalog_db *db;
	enum status status;
	struct plain p;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(i->name), &db, &i->f->err));
	plain_init(&p, tx, db, 1, &i->f->err);
	status = plain_insert(&p, &doc, i->f->arena);
	catalog_db_unref(db);
	return status;
}

static void
insert(struct fixture *f, const char *name, const char *json)
{
	struct inspecting i = { .f = f, .name = name, .doc = doc_of(f, json) };

	assert_int_equal(kv_run(f->store, insert_body, &i, NULL, &f->err), STATUS_OK);
}

/* Draws all pairs below a key. */
static enum status
draw_prefix(void *arg, struct str prefix)
{
	struct inspecting *i = arg;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	TRY(plain_key_end(prefix, &end));
	TRY(kv_scan_init(&scan, i->tx, prefix, buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		catalog_draw_pair_of(i->db, &pair, &i->out);
		buf_append_byte(&i->out, '\n');
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
inspect_body(struct kv_tx *tx, void *arg)
{
	struct inspecting *i = arg;
	struct catalog_db *db;
	enum status status;

	i->tx = tx;
	buf_clear(&i->out);
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(i->name), &db, &i->f->err));
	i->db = db;
	status = plain_kind.inspect(tx, db, i->id, i->f->arena, draw_prefix, i);
	catalog_db_unref(db);
	return status;
}

static void
assert_inspected(struct fixture *f, const char *name, const char *id, const char *expected)
{
	struct inspecting i = {
		.f = f, .name = name, .id = str_from_cstr(id), .out = BUF_INIT(DRAWN_BYTES)
	};

	assert_int_equal(kv_run_read(f->store, inspect_body, &i, &f->err), STATUS_OK);
	buf_append_byte(&i.out, '\0');
	assert_string_equal(i.out.ptr, expected);
	buf_release(&i.out);
}

/* ---- Documents ---- */

static void
documents_are_shown_by_their_ids(void **state)
{
	struct fixture *f = *state;
	char *long_id = arena_alloc(f->arena, PLAIN_ID_VALUE_BYTES + 1);

	insert(f, PACKED, "{\"_id\":1,\"a\":[true,{\"b\":null}]}");
	insert(f, PACKED, "{\"_id\":\"1\",\"a\":2}");
	insert(f, PACKED, "{\"_id\":{\"x\":1},\"a\":3}");
	insert(f, EXPLODED, "{\"_id\":\"e\",\"a\":[true,{\"b\":\"t\\u0001\"}],\"m\":{\"n\":1.5}}");
	assert_inspected(f, PACKED, "1", "0x0001:1 -> {\"_id\":1,\"a\":[true,{\"b\":null}]}\n");
	assert_inspected(f, PACKED, "\"1\"", "0x0001:1 -> {\"_id\":\"1\",\"a\":2}\n");
	assert_inspected(f, PACKED, "{\"x\":1}",
			 "0x0001:38203078000127800000 -> {\"_id\":{\"x\":1},\"a\":3}\n");
	/* What is no value is a string; nor is it one value with more behind it. */
	assert_inspected(f, PACKED, "e", "");
	assert_inspected(f, PACKED, "1,\"b\":1", "");
	assert_inspected(f, PACKED, "none", "");
	assert_inspected(f, EXPLODED, "e",
			 "0x0002:e -> _id e\n"
			 "0x0002:e:a -> []\n"
			 "0x0002:e:a:0 -> true\n"
			 "0x0002:e:a:1 -> {}\n"
			 "0x0002:e:a:1:b -> t\\x01\n"
			 "0x0002:e:m -> {}\n"
			 "0x0002:e:m:n -> 1.5\n");
	/* No document has an `_id` that is too long. */
	memset(long_id, 'i', PLAIN_ID_VALUE_BYTES);
	long_id[PLAIN_ID_VALUE_BYTES] = '\0';
	assert_inspected(f, PACKED, long_id, "");
}

/* ---- Pairs ---- */

/* "none": the pair is not drawn by the kind. */
static void
assert_drawn(struct fixture *f, uint64_t space, struct str tail, struct str value,
	     const char *expected)
{
	AUTO(buf_release) struct buf out = BUF_INIT(DRAWN_BYTES);
	const struct catalog_db db = { .number = 0x123 };
	bool drawn;

	(void)f;
	buf_append_cstr(&out, "before|");
	drawn = plain_kind.draw_pair(&db, space, tail, value, &out);
	buf_append_byte(&out, '\0');
	assert_memory_equal(out.ptr, "before|", 7);
	if (drawn != (strcmp(expected, "none") != 0) ||
	    strcmp(out.ptr + 7, drawn ? expected : "") != 0)
		fail_msg("%s instead of %s", drawn ? out.ptr + 7 : "none", expected);
}

static void
events_are_drawn(void **state)
{
	struct fixture *f = *state;
	static const uint8_t stamp[KV_VERSIONSTAMP_BYTES] = { 1, 2 };
	static const char *const kinds[] = { "insert", "update", "replace", "delete" };
	AUTO(buf_release) struct buf tail = BUF_INIT(100);

	tuple_put_u64(&tail, 7);
	tuple_put_versionstamp(&tail, stamp);
	for (unsigned i = 0; i < 4; i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(1000);
		const struct plain_event event = {
			.ms = 1,
			.kind = (enum plain_event_kind)(PLAIN_EVENT_INSERT + i),
			.id = BSON_OF_INT32((int32_t)i),
			.detail = i % 2 ? doc_of(f, "{\"d\":1}") : STR(""),
			.session = i > 1 ? STR("0123456789abcdef") : (struct str){ 0 },
			.number = 5,
		};
		const char *expected = arena_printf(f->arena,
						    "07010200000000000000000000 %s %u%s%s",
						    kinds[i], i, i > 1 ? " in transaction 5" : "",
						    i % 2 ? " {\"d\":1}" : "")
					       .ptr;

		plain_event_put(&event, &value);
		assert_drawn(f, PLAIN_SPACE_LOG, buf_str(&tail), buf_str(&value), expected);
		value.len--;
		assert_drawn(f, PLAIN_SPACE_LOG, buf_str(&tail), buf_str(&value), "none");
	}
	assert_drawn(f, PLAIN_SPACE_LOG, STR(""), STR(""), "none");
}

static void
texts_are_drawn(void **state)
{
	struct fixture *f = *state;
	const struct plain_text owned = { .length = 9, .owner = STR("id") };
	const struct plain_text staged = { .length = 9, .staged_ms = 7, .owner = STR("") };
	static const uint8_t id[PLAIN_TEXT_ID_BYTES] = { 1, 2 };
	AUTO(buf_release) struct buf tail = BUF_INIT(100);
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	AUTO(buf_release) struct buf root = BUF_INIT(100);
	struct plain_root text = { .form = PLAIN_FORM_TEXT, .length = 9 };
	AUTO(buf_release) struct buf key = BUF_INIT(100);

	tuple_put_uuid(&tail, id);
	plain_text_put(&owned, &value);
	assert_drawn(f, PLAIN_SPACE_TEXTS, buf_str(&tail), buf_str(&value),
		     "text 01020000000000000000000000000000 of 9 bytes");
	buf_clear(&value);
	plain_text_put(&staged, &value);
	assert_drawn(f, PLAIN_SPACE_TEXTS, buf_str(&tail), buf_str(&value),
		     "text 01020000000000000000000000000000 of 9 bytes, written ahead");
	assert_drawn(f, PLAIN_SPACE_TEXTS, buf_str(&tail), STR("?"), "none");
	tuple_put_u64(&tail, 3);
	assert_drawn(f, PLAIN_SPACE_TEXTS, buf_str(&tail), STR("12345"),
		     "text 01020000000000000000000000000000, chunk 3 of 5 bytes");
	assert_drawn(f, PLAIN_SPACE_TEXTS, STR(""), buf_str(&value), "none");
	memcpy(text.text, id, sizeof(text.text));
	plain_root_put(&text, &root);
	tuple_put_bytes(&key, STR("?"));
	assert_drawn(f, PLAIN_SPACE_RECORDS, buf_str(&key), buf_str(&root),
		     "0x0123:3f -> text 01020000000000000000000000000000 of 9 bytes");
	assert_drawn(f, PLAIN_SPACE_RECORDS, STR("?"), buf_str(&root), "none");
	assert_drawn(f, PLAIN_SPACE_RECORDS, buf_str(&key), STR("?"), "none");
	tuple_put_str(&key, STR("name"));
	assert_drawn(f, PLAIN_SPACE_RECORDS, buf_str(&key), STR("?"), "none");
}

/* A leaf with the text, and what is drawn of it. */
static void
assert_text_drawn(struct fixture *f, struct str text, const char *expected)
{
	const struct plain_leaf leaf = { .ordinal = 1, .value = BSON_OF_STRING(text) };
	AUTO(buf_release) struct buf key = BUF_INIT(100);
	AUTO(buf_release) struct buf value = BUF_INIT(DRAWN_BYTES);

	tuple_put_bytes(&key, STR("?"));
	tuple_put_str(&key, STR("n"));
	assert_int_equal(plain_leaf_put(&leaf, &value), STATUS_OK);
	assert_drawn(f, PLAIN_SPACE_RECORDS, buf_str(&key), buf_str(&value), expected);
}

static void
texts_are_cut_and_have_nothing_that_terminals_act_on(void **state)
{
	struct fixture *f = *state;
	char text[TEXT_BYTES + 1];

	assert_text_drawn(f, STR("\x1f\x20\x7e\x7f"), "0x0123:3f:n -> \\x1f ~\\x7f");
	memset(text, 't', sizeof(text));
	assert_text_drawn(f, str_of(text, TEXT_BYTES),
			  arena_printf(f->arena, "0x0123:3f:n -> %.*s", TEXT_BYTES, text).ptr);
	assert_text_drawn(
		f, str_of(text, TEXT_BYTES + 1),
		arena_printf(f->arena, "0x0123:3f:n -> %.*s… (1001 bytes)", TEXT_BYTES, text).ptr);
}

static void
the_rest_is_drawn(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_release) struct buf tail = BUF_INIT(100);

	assert_drawn(f, PLAIN_SPACE_COUNT, STR(""), STR("\5\0\0\0\0\0\0\0"), "5");
	assert_drawn(f, PLAIN_SPACE_COUNT, STR(""), STR("\5"), "none");
	assert_drawn(f, PLAIN_SPACE_CHANGED, STR(""), STR("\1\2\3\4\5\6\7\1\2\3\4\5"),
		     "versionstamp:010203040506070102030405");
	assert_drawn(f, PLAIN_SPACE_CHANGED, STR(""), STR("\1"), "none");
	assert_drawn(f, PLAIN_SPACE_STAGED, STR(""), STR("\5\0\0\0\0\0\0\0"), "none");
	tuple_put_u64(&tail, 3);
	assert_drawn(f, INDEX_SPACE_DEFS, buf_str(&tail), STR("?"),
		     "(\"indexes\", 3) = damaged: '?'");
	tuple_put_u64(&tail, 3);
	assert_drawn(f, INDEX_SPACE_DEFS, buf_str(&tail), STR("?"), "none");
	assert_drawn(f, INDEX_SPACE_DEFS, STR(""), STR("?"), "none");
}

static void
subspaces_have_names(void **state)
{
	static const struct {
		uint64_t space;
		const char *name;
	} cases[] = {
		{ PLAIN_SPACE_OPTIONS, "options" }, { PLAIN_SPACE_RECORDS, "records" },
		{ PLAIN_SPACE_TEXTS, "texts" },     { PLAIN_SPACE_LOG, "log" },
		{ PLAIN_SPACE_IMAGES, "images" },   { PLAIN_SPACE_COUNT, "count" },
		{ PLAIN_SPACE_CHANGED, "changed" }, { PLAIN_SPACE_STATS, "stats" },
		{ PLAIN_SPACE_TALLIES, "tallies" }, { INDEX_SPACE_DEFS, "indexes" },
		{ INDEX_SPACE_ENTRIES, "entries" }, { PLAIN_SPACE_STAGED, "texts written ahead" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_string_equal(plain_kind.space_name(cases[i].space), cases[i].name);
	assert_null(plain_kind.space_name(0));
	assert_null(plain_kind.space_name(PLAIN_SPACE_IMAGES + 1));
}

static void
a_collection_is_summed_up_by_its_scheme(void **state)
{
	struct catalog_db db = { 0 };

	(void)state;
	db.options[PLAIN_OPTION_SCHEME] = PLAIN_PACKED;
	assert_string_equal(plain_kind.summary(&db), "packed collection");
	db.options[PLAIN_OPTION_SCHEME] = PLAIN_EXPLODED;
	assert_string_equal(plain_kind.summary(&db), "exploded collection");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(documents_are_shown_by_their_ids),
		TEST(events_are_drawn),
		TEST(texts_are_drawn),
		TEST(texts_are_cut_and_have_nothing_that_terminals_act_on),
		TEST(the_rest_is_drawn),
		TEST(subspaces_have_names),
		TEST(a_collection_is_summed_up_by_its_scheme),
	};

	return cmocka_run_group_tests_name("plain_inspect", tests, NULL, NULL);
}
