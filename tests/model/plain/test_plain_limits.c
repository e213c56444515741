/*
 * Limits of collections: each at its edge and one beyond, of names, options, `_id`s, events,
 * images, paths, and of what one turn of a sweep looks at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rand.h"
#include "bson/json.h"
#include "catalog/kind.h"
#include "fixture.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "model/plain/path.h"
#include "model/plain/plain_int.h"
#include "store.h"
#include "verified.h"

enum {
	NOW_MS = 100 * 1000 * 1000,
	HOUR_MS = 60 * 60 * 1000,
	DAY_MS = 24 * HOUR_MS,
	LOG_ROUNDS = 60,
	LOG_EVENTS = 8, /* at most */
	PAGE = 1000,    /* of events, notices and texts that a turn of the sweep looks at */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- One transaction, which is not tried again ---- */

struct turn {
	struct kv_tx *tx;
	struct catalog_db *db;
	struct plain p;
	struct err err;
};

static void
turn_begin(struct turn *t, struct fixture *f, const char *name)
{
	*t = (struct turn){ 0 };
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &t->tx), STATUS_OK);
	assert_int_equal(catalog_open(t->tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name), &t->db,
				      &t->err),
			 STATUS_OK);
	plain_init(&t->p, t->tx, t->db, NOW_MS, &t->err);
}

static void
turn_end(struct turn *t)
{
	catalog_db_unref(t->db);
	kv_tx_free(t->tx);
}

static void
turn_commit(struct turn *t)
{
	assert_int_equal(kv_future_wait(kv_commit(t->tx)), STATUS_OK);
	turn_end(t);
}

static void
assert_says(const struct err *err, const char *words)
{
	if (!strstr(err->text, words))
		fail_msg("\"%s\" does not say \"%s\"", err->text, words);
}

/* {_id: id, t: "xxx…"} of exactly that many bytes. */
static struct str
doc_sized(struct fixture *f, int id, size_t bytes)
{
	struct buf out = BUF_INIT(2 * BSON_DOCUMENT_BYTES);
	struct bson_builder b;
	struct str doc;
	char *text = malloc(bytes);
	size_t len = 0;

	assert_non_null(text);
	memset(text, 'x', bytes);
	for (int round = 0; round < 2; round++) {
		buf_clear(&out);
		bson_builder_init(&b, &out);
		bson_begin(&b);
		bson_put_int32(&b, STR("_id"), id);
		bson_put_string(&b, STR("t"), str_of(text, len));
		bson_end(&b);
		if (!round)
			len = bytes - out.len;
	}
	assert_int_equal(out.len, bytes);
	doc = arena_dup(f->arena, buf_str(&out));
	assert_non_null(doc.ptr);
	buf_release(&out);
	free(text);
	return doc;
}

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

/* ---- Names and options ---- */

static void
names_have_their_limits(void **state)
{
	static const struct {
		const char *name;
		bool good;
	} cases[] = {
		{ "a.b", true },        { "", false },          { "a", false },
		{ ".b", false },        { "a.", false },        { "a..b", false },
		{ "a.b.", true },       { "a.b..c", true },     { "a/.b", false },
		{ "a\\.b", false },     { "a .b", false },      { "a\".b", false },
		{ "a$.b", false },      { "a*.b", false },      { "a<.b", false },
		{ "a>.b", false },      { "a:.b", false },      { "a|.b", false },
		{ "a?.b", false },      { "?a.b", false },      { "a./\\ \"*<>:|?", true },
		{ "a.$b", false },      { "a.b$", false },      { "a.b.$c", false },
		{ "\xc3\xa4.b", true }, { "a.\xc3\xa4", true }, { "a.\xc3", false },
		{ "\xc3.b", false },
	};
	char name[CATALOG_NAME_BYTES + 2];
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str s = str_from_cstr(cases[i].name);

		err = (struct err){ 0 };
		if (plain_kind.check_name(s, &err) != (cases[i].good ? STATUS_OK : STATUS_INVALID))
			fail_msg("\"%s\" is%s refused", cases[i].name, cases[i].good ? "" : " not");
		if (!cases[i].good)
			assert_says(&err, "a name is a database's of up to 63 bytes, a dot, and a "
					  "collection's, 238 bytes in all");
	}
	assert_int_equal(plain_kind.check_name(STR("a\0.b"), &err), STATUS_INVALID);
	assert_int_equal(plain_kind.check_name(STR("a.\0b"), &err), STATUS_INVALID);
	assert_int_equal(plain_kind.check_name(STR("a.b\0"), &err), STATUS_INVALID);
	memset(name, 'n', sizeof(name));
	name[PLAIN_DB_NAME_BYTES] = '.';
	assert_int_equal(plain_kind.check_name(str_of(name, CATALOG_NAME_BYTES), &err), STATUS_OK);
	assert_int_equal(plain_kind.check_name(str_of(name, CATALOG_NAME_BYTES + 1), &err),
			 STATUS_INVALID);
	name[PLAIN_DB_NAME_BYTES] = 'n';
	name[PLAIN_DB_NAME_BYTES + 1] = '.';
	assert_int_equal(plain_kind.check_name(str_of(name, CATALOG_NAME_BYTES), &err),
			 STATUS_INVALID);
}

static void
a_scheme_is_one_of_two(void **state)
{
	uint64_t options[CATALOG_OPTIONS] = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		options[PLAIN_OPTION_SCHEME] = i;
		assert_int_equal(plain_kind.check_options(options),
				 i <= PLAIN_EXPLODED ? STATUS_OK : STATUS_CORRUPT);
	}
}

static void
options_have_their_limit(void **state)
{
	struct fixture *f = *state;
	struct turn t;

	turn_begin(&t, f, PACKED);
	assert_true(bson_is_empty(plain_options_of(t.db)));
	assert_int_equal(
		plain_options_set(t.tx, t.db, doc_sized(f, 1, PLAIN_OPTIONS_BYTES + 1), &t.err),
		STATUS_INVALID);
	assert_says(&t.err, "the options of a collection may have 90000 bytes");
	assert_int_equal(plain_options_set(t.tx, t.db, STR("\x05\0\0\0\1"), &t.err),
			 STATUS_INVALID);
	assert_int_equal(
		plain_options_set(t.tx, t.db, doc_sized(f, 1, PLAIN_OPTIONS_BYTES), &t.err),
		STATUS_OK);
	turn_commit(&t);
	turn_begin(&t, f, PACKED);
	assert_true(str_eq(plain_options_of(t.db), doc_sized(f, 1, PLAIN_OPTIONS_BYTES)));
	/* Empty ones are none. */
	assert_int_equal(plain_options_set(t.tx, t.db, BSON_EMPTY, &t.err), STATUS_OK);
	turn_commit(&t);
	turn_begin(&t, f, PACKED);
	assert_true(bson_is_empty(plain_options_of(t.db)));
	assert_null(t.db->extension);
	assert_int_equal(catalog_delete(t.tx, CATALOG_SPACE_MONGO, STR(PACKED), &t.err), STATUS_OK);
	/* Of one that is gone there are none to be set. */
	assert_int_not_equal(plain_options_set(t.tx, t.db, doc_sized(f, 1, 100), &t.err),
			     STATUS_OK);
	turn_end(&t);
	verified_none(f->store);
}

/* Whatever is stored as options, they are read, or the reason is told. */
static void
options_are_read_whole_or_not(void **state)
{
	static const struct {
		const char *value;
		size_t len;
		enum status status;
		const char *why;
	} cases[] = {
		{ "\x15\x01\x05\0\0\0\0", 7, STATUS_OK, "" },
		{ "\x15\x01\x05\0\0\0\0\0", 8, STATUS_CORRUPT,
		  "the options of the collection cannot be read" },
		{ "\x15\x01\x05\0\0\0", 6, STATUS_CORRUPT,
		  "the options of the collection cannot be read" },
		{ "\x15\x01", 2, STATUS_CORRUPT, "the options of the collection cannot be read" },
		{ "\x15", 1, STATUS_CORRUPT, "the options of the collection cannot be read" },
		{ "", 0, STATUS_CORRUPT, "the options of the collection cannot be read" },
		{ "\x15\x02\x05\0\0\0\0", 7, STATUS_NEWER,
		  "the options of the collection were written by a newer frond" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
		void *extension = NULL;
		struct turn t;

		turn_begin(&t, f, PACKED);
		assert_int_equal(plain_key_single(t.db, PLAIN_SPACE_OPTIONS, &key), STATUS_OK);
		assert_int_equal(kv_set(t.tx, buf_str(&key), str_of(cases[i].value, cases[i].len)),
				 STATUS_OK);
		assert_int_equal(plain_extend(t.tx, t.db, &extension, &t.err), cases[i].status);
		assert_says(&t.err, cases[i].why);
		assert_true(!extension == (cases[i].status != STATUS_OK));
		plain_extension_free(extension);
		turn_end(&t);
	}
}

static void
options_of_a_view_name_what_it_is_on(void **state)
{
	struct fixture *f = *state;

	assert_true(plain_options_are_view(doc_of(f, "{\"viewOn\":\"x\"}")));
	assert_false(plain_options_are_view(doc_of(f, "{\"viewOn\":1}")));
	assert_false(plain_options_are_view(doc_of(f, "{\"view\":\"x\"}")));
	assert_false(plain_options_are_view(BSON_EMPTY));
}

/* ---- Keys ---- */

static void
positions_have_up_to_nine_digits(void **state)
{
	static const struct {
		const char *step;
		int64_t position; /* -1: a name */
	} cases[] = {
		{ "0", 0 },   { "9", 9 },           { "10", 10 }, { "999999999", 999999999 },
		{ "", -1 },   { "1000000000", -1 }, { "00", -1 }, { "01", -1 },
		{ "-1", -1 }, { "/", -1 },          { ":", -1 },  { "1a", -1 },
		{ "a1", -1 }, { " 1", -1 },         { "1 ", -1 }, { "+1", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint32_t position = 7;
		bool is = plain_step_is_position(str_from_cstr(cases[i].step), &position);

		if (is != (cases[i].position >= 0) || (is && position != cases[i].position))
			fail_msg("\"%s\" is%s a position, %u", cases[i].step, is ? "" : " not",
				 position);
	}
}

/* Only the root of a record is a document. */
static void
keys_of_documents_are_told(void **state)
{
	static const struct {
		const char *key;
		size_t len;
		bool is;
	} cases[] = {
		{ "\x15\x31\x01x\0", 5, true },
		{ "\x15\x31\x01x\0\x15\1", 7, false },
		{ "\x15\x31\x01x\0\x15", 6, false },
		{ "\x15\x32\x01x\0", 5, false },
		{ "\x15\x30\x01x\0", 5, false },
		{ "\x15\x31", 2, false },
		{ "\x15", 1, false },
		{ "", 0, false },
		{ "\x02\x31\0\x01x\0", 6, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (plain_kind.is_document(str_of(cases[i].key, cases[i].len)) != cases[i].is)
			fail_msg("key %zu is%s a document's", i, cases[i].is ? " not" : "");
}

/* Of a record's key what is behind the record's part is told from it. */
static void
a_key_of_a_record_has_an_id(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	size_t bytes, whole;
	struct turn t;

	turn_begin(&t, f, PACKED);
	plain_key_space(&key, t.db, PLAIN_SPACE_RECORDS);
	tuple_put_bytes(&key, STR("id"));
	whole = key.len;
	assert_int_equal(plain_key_record_bytes(t.db, buf_str(&key), &bytes), STATUS_OK);
	assert_int_equal(bytes, whole);
	tuple_put_u64(&key, 5);
	assert_int_equal(plain_key_record_bytes(t.db, buf_str(&key), &bytes), STATUS_OK);
	assert_int_equal(bytes, whole);
	for (size_t len = t.db->prefix.len; len < whole; len++)
		assert_int_equal(plain_key_record_bytes(t.db, str_of(key.ptr, len), &bytes),
				 STATUS_CORRUPT);
	turn_end(&t);
}

/* The value of an `_id` with its length and its NUL. */
static void
an_id_has_its_limit(void **state)
{
	struct fixture *f = *state;
	const char *names[] = { PACKED, EXPLODED };
	char *text = malloc(PLAIN_ID_VALUE_BYTES);

	assert_non_null(text);
	memset(text, 'i', PLAIN_ID_VALUE_BYTES);
	for (size_t i = 0; i < 2 * COUNT(names); i++) {
		size_t len = PLAIN_ID_VALUE_BYTES - 5 + i % 2;
		struct bson_value id = BSON_OF_STRING(str_of(text, len));
		AUTO(buf_release) struct buf doc = BUF_INIT(2 * PLAIN_ID_VALUE_BYTES);
		struct bson_builder b;
		struct str read;
		struct turn t;

		bson_builder_init(&b, &doc);
		bson_begin(&b);
		bson_put(&b, STR("_id"), &id);
		bson_end(&b);
		turn_begin(&t, f, names[i / 2]);
		assert_int_equal(
			plain_insert(&t.p, &(struct plain_doc){ .bytes = buf_str(&doc) }, f->arena),
			i % 2 ? STATUS_INVALID : STATUS_OK);
		if (i % 2)
			assert_says(&t.err, "an _id may have 10000 bytes (PLAIN_ID_VALUE_BYTES)");
		else
			assert_int_equal(plain_get(&t.p, &id, KV_READ, f->arena, &read), STATUS_OK);
		if (!(i % 2))
			assert_true(str_eq(read, buf_str(&doc)));
		turn_end(&t);
	}
	free(text);
}

/* Whichever of its texts is long. */
static void
an_id_of_two_texts_has_the_same_limit(void **state)
{
	AUTO(buf_release) struct buf key = BUF_INIT(4 * PLAIN_ID_VALUE_BYTES);
	char *text = malloc(PLAIN_ID_VALUE_BYTES);

	(void)state;
	assert_non_null(text);
	memset(text, 'i', PLAIN_ID_VALUE_BYTES);
	for (size_t i = 0; i < 4; i++) {
		/* With a NUL behind each. */
		struct str one = str_of(text, 5),
			   other = str_of(text, PLAIN_ID_VALUE_BYTES - 7 + i % 2);
		const struct bson_value id = { .type = BSON_REGEX,
					       .as_text = i / 2 ? one : other,
					       .as_more = i / 2 ? other : one };
		struct err err = { 0 };

		buf_clear(&key);
		assert_int_equal(plain_id_key(&id, &key, &err), i % 2 ? STATUS_INVALID : STATUS_OK);
	}
	free(text);
}

/* ---- Events ---- */

static void
a_transaction_has_so_many_events(void **state)
{
	struct fixture *f = *state;
	const struct plain_doc doc = plain_doc_of(doc_of(f, "{\"_id\":1}"));
	const struct plain_doc other = plain_doc_of(doc_of(f, "{\"_id\":2}"));
	unsigned events = PLAIN_EVENTS - 1;
	struct turn t;

	turn_begin(&t, f, PACKED);
	t.p.events = PLAIN_EVENTS - 1;
	assert_int_equal(plain_insert(&t.p, &doc, f->arena), STATUS_OK);
	assert_int_equal(plain_insert(&t.p, &other, f->arena), STATUS_TX_TOO_LARGE);
	assert_says(&t.err, "a transaction may change 65535 documents (PLAIN_EVENTS)");
	t.err = (struct err){ 0 };
	assert_int_equal(plain_notice_put(t.tx, t.db, PLAIN_NOTICE_CREATED, STR(PACKED), STR(""),
					  BSON_EMPTY, &events, &t.err),
			 STATUS_OK);
	assert_int_equal(events, PLAIN_EVENTS);
	assert_int_equal(plain_notice_put(t.tx, t.db, PLAIN_NOTICE_CREATED, STR(PACKED), STR(""),
					  BSON_EMPTY, &events, &t.err),
			 STATUS_TX_TOO_LARGE);
	assert_says(&t.err, "a transaction may change 65535 documents (PLAIN_EVENTS)");
	turn_end(&t);
}

static bool
every_notice(void *arg, const struct plain_notice *notice)
{
	(void)arg, (void)notice;
	return true;
}

static void
what_an_event_tells_has_its_limit(void **state)
{
	static const struct catalog_seq start;
	struct fixture *f = *state;
	struct plain_event *events;
	struct plain_notice *notices;
	unsigned number = 0;
	struct turn t;
	size_t count;

	turn_begin(&t, f, PACKED);
	for (int i = 0; i < 2; i++) {
		struct str doc = doc_sized(f, i, PLAIN_DETAIL_BYTES + (size_t)i);

		assert_int_equal(plain_insert(&t.p, &(struct plain_doc){ .bytes = doc }, f->arena),
				 STATUS_OK);
		assert_int_equal(plain_notice_put(t.tx, t.db, PLAIN_NOTICE_CREATED, STR(PACKED),
						  STR(""), doc, &number, &t.err),
				 STATUS_OK);
	}
	assert_int_equal(plain_notice_put(t.tx, t.db, PLAIN_NOTICE_CREATED, STR(PACKED), STR(""),
					  STR(""), &number, &t.err),
			 STATUS_OK);
	turn_commit(&t);
	turn_begin(&t, f, PACKED);
	assert_int_equal(plain_log_read(&t.p, &start, 10, f->arena, &events, &count), STATUS_OK);
	assert_int_equal(count, 2);
	assert_int_equal(events[0].detail.len, PLAIN_DETAIL_BYTES);
	assert_false(events[0].detail_is_cut);
	assert_int_equal(events[1].detail.len, 0);
	assert_true(events[1].detail_is_cut);
	/* No more than are asked for, and what is there is enough for that. */
	assert_int_equal(plain_log_read(&t.p, &start, 1, f->arena, &events, &count), STATUS_OK);
	assert_int_equal(count, 1);
	assert_int_equal(plain_notices_read(t.tx, &start, 2, every_notice, NULL, f->arena, &notices,
					    &count, &t.err),
			 STATUS_LIMIT);
	assert_int_equal(plain_notices_read(t.tx, &start, 3, every_notice, NULL, f->arena, &notices,
					    &count, &t.err),
			 STATUS_OK);
	assert_int_equal(count, 3);
	assert_int_equal(notices[0].detail.len, PLAIN_DETAIL_BYTES);
	assert_true(bson_is_empty(notices[1].detail));
	assert_true(bson_is_empty(notices[2].detail));
	turn_end(&t);
	verified_none(f->store);
}

/* ---- Images ---- */

static size_t
keys_below(struct turn *t, enum plain_space space)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	size_t count = 0;

	plain_key_space(&begin, t->db, space);
	assert_int_equal(plain_key_end(buf_str(&begin), &end), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, t->tx, buf_str(&begin), buf_str(&end), NULL),
			 STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		count++;
	return count;
}

static void
images_lie_in_parts_of_their_length(void **state)
{
	static const struct {
		size_t bytes, keys;
		bool staged;
	} cases[] = {
		{ PLAIN_IMAGE_PART_BYTES - 1, 1, false },
		{ PLAIN_IMAGE_PART_BYTES, 1, false },
		{ PLAIN_IMAGE_PART_BYTES + 1, 2, false },
		{ 2 * PLAIN_IMAGE_PART_BYTES, 2, false },
		{ 100, 2, true }, /* and what refers to it */
		{ PLAIN_IMAGE_PART_BYTES, 2, true },
		{ PLAIN_IMAGE_PART_BYTES + 1, 3, true },
		/* So many are written by one transaction. */
		{ 20 * PLAIN_IMAGE_PART_BYTES, 21, true },
		{ 20 * PLAIN_IMAGE_PART_BYTES + 1, 22, true },
		{ 40 * PLAIN_IMAGE_PART_BYTES + 7, 42, true },
	};
	struct fixture *f = *state;
	const struct bson_value id = BSON_OF_INT32(1);

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str image = doc_sized(f, 1, cases[i].bytes), read;
		struct catalog_seq seq;
		struct plain_doc doc = plain_doc_of(image);
		size_t before;
		struct turn t;

		turn_begin(&t, f, PACKED);
		if (cases[i].staged)
			assert_int_equal(plain_stage_image(f->store, t.db, image, &doc, &t.err),
					 STATUS_OK);
		turn_end(&t);
		turn_begin(&t, f, PACKED);
		before = keys_below(&t, PLAIN_SPACE_IMAGES) -
			 (cases[i].staged ? cases[i].keys - 1 : 0);
		assert_int_equal(plain_insert(&t.p,
					      &(struct plain_doc){ .bytes = doc_sized(f, 1, 40) },
					      f->arena),
				 STATUS_OK);
		t.p.before = doc;
		assert_int_equal(plain_delete(&t.p, &id, STR(""), f->arena), STATUS_OK);
		turn_commit(&t);
		verified_none(f->store);
		turn_begin(&t, f, PACKED);
		assert_int_equal(keys_below(&t, PLAIN_SPACE_IMAGES) - before, cases[i].keys);
		assert_int_equal(keys_below(&t, PLAIN_SPACE_STAGED), 0);
		assert_int_equal(plain_log_last(&t.p, &seq), STATUS_OK);
		assert_int_equal(plain_image_read(&t.p, &seq, true, f->arena, &read),
				 STATUS_NOT_FOUND);
		assert_int_equal(plain_image_read(&t.p, &seq, false, f->arena, &read), STATUS_OK);
		assert_true(str_eq(read, image));
		turn_end(&t);
	}
}

/* An event that has the document itself needs none behind it. */
static void
an_image_is_kept_of_what_no_event_tells(void **state)
{
	struct fixture *f = *state;
	const struct bson_value id = BSON_OF_INT32(1), two = BSON_OF_INT32(2);
	const struct plain_change change = { STR("a"), &two };
	const struct {
		struct str doc; /* inserted; empty: it is updated */
		struct str detail;
		bool after;
	} cases[] = {
		{ doc_sized(f, 1, PLAIN_DETAIL_BYTES), STR(""), false },
		{ doc_sized(f, 2, PLAIN_DETAIL_BYTES + 1), STR(""), true },
		{ STR(""), doc_sized(f, 1, 40), true },
		{ STR(""), STR(""), true },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct catalog_seq seq;
		struct str read;
		bool changed;
		struct turn t;

		turn_begin(&t, f, PACKED);
		if (!cases[i].doc.len)
			assert_int_equal(plain_insert(&t.p,
						      &(struct plain_doc){
							      .bytes = doc_of(f, "{\"_id\":1}") },
						      f->arena),
					 STATUS_OK);
		t.p.after = plain_doc_of(doc_sized(f, 1, 50));
		if (cases[i].doc.len)
			assert_int_equal(plain_insert(&t.p,
						      &(struct plain_doc){ .bytes = cases[i].doc },
						      f->arena),
					 STATUS_OK);
		else
			assert_int_equal(plain_update(&t.p, &id, &change, 1, cases[i].detail,
						      f->arena, &changed),
					 STATUS_OK);
		assert_int_equal(t.p.after.bytes.len, 0);
		assert_int_equal(plain_delete(&t.p, i == 1 ? &two : &id, STR(""), f->arena),
				 STATUS_OK);
		turn_commit(&t);
		turn_begin(&t, f, PACKED);
		assert_int_equal(plain_log_last(&t.p, &seq), STATUS_OK);
		seq.bytes[sizeof(seq.bytes) - 1]--; /* the event in front of the last one */
		assert_int_equal(plain_image_read(&t.p, &seq, false, f->arena, &read),
				 STATUS_NOT_FOUND);
		assert_int_equal(plain_image_read(&t.p, &seq, true, f->arena, &read),
				 cases[i].after ? STATUS_OK : STATUS_NOT_FOUND);
		turn_end(&t);
		verified_none(f->store);
	}
}

/* ---- Paths ---- */

static void
paths_have_so_many_steps(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(10 * PLAIN_PATH_STEPS);
	struct plain_path path;
	struct err err = { 0 };

	(void)state;
	buf_append_cstr(&text, "a");
	for (size_t i = 1; i < PLAIN_PATH_STEPS; i++)
		buf_append_cstr(&text, ".b");
	assert_int_equal(plain_path_parse(buf_str(&text), &path, &err), STATUS_OK);
	assert_int_equal(path.count, PLAIN_PATH_STEPS);
	buf_append_cstr(&text, ".c");
	assert_int_equal(plain_path_parse(buf_str(&text), &path, &err), STATUS_INVALID);
	assert_says(&err, "a path may have 200 steps (PLAIN_PATH_STEPS)");
	assert_int_equal(plain_path_parse(STR(""), &path, &err), STATUS_INVALID);
	assert_says(&err, "a path has an empty name");
	assert_int_equal(plain_path_parse(STR("a."), &path, &err), STATUS_INVALID);
	assert_int_equal(plain_path_parse(STR(".a"), &path, &err), STATUS_INVALID);
	assert_int_equal(plain_path_parse(STR("_id.a"), &path, &err), STATUS_INVALID);
	assert_says(&err, "the _id of a document cannot be changed");
	assert_int_equal(plain_path_parse(STR("a._id"), &path, &err), STATUS_OK);
}

static void
so_many_elements_are_put_in_front_of_a_new_one(void **state)
{
	struct fixture *f = *state;
	const char *names[] = { PACKED, EXPLODED };
	const struct bson_value id = BSON_OF_INT32(1), five = BSON_OF_INT32(5);

	for (size_t i = 0; i < COUNT(names); i++) {
		struct plain_change change = { .value = &five };
		struct str read;
		bool changed;
		struct turn t;

		turn_begin(&t, f, names[i]);
		assert_int_equal(
			plain_insert(&t.p,
				     &(struct plain_doc){
					     .bytes = doc_of(f, "{\"_id\":1,\"a\":[1,2]}") },
				     f->arena),
			STATUS_OK);
		change.path = STR("a.10003");
		assert_int_equal(plain_update(&t.p, &id, &change, 1, STR(""), f->arena, &changed),
				 STATUS_INVALID);
		assert_says(&t.err, "at most 10000 elements are put in front of a new one");
		change.path = STR("a.10002");
		assert_int_equal(plain_update(&t.p, &id, &change, 1, STR(""), f->arena, &changed),
				 STATUS_OK);
		assert_true(changed);
		assert_int_equal(plain_get(&t.p, &id, KV_READ, f->arena, &read), STATUS_OK);
		assert_int_equal(bson_count(bson_find_document(read, STR("a"))), 0);
		turn_commit(&t);
	}
	verified_none(f->store);
}

/* What would be too long, or too deep, is refused whatever it lies in. */
static void
a_changed_document_has_its_limits(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_release) struct buf path = BUF_INIT(4 * PLAIN_PATH_STEPS);
	const struct bson_value five = BSON_OF_INT32(5);
	struct plain_change change = { .value = &five };
	struct str small = doc_of(f, "{\"_id\":1}"), large, ret;

	/* An element "b" of a 32-bit integer takes 7 bytes. */
	large = doc_sized(f, 1, BSON_DOCUMENT_BYTES - 7);
	change.path = STR("b");
	assert_int_equal(plain_apply(large, &change, 1, f->arena, &ret, &f->err), STATUS_OK);
	assert_int_equal(ret.len, BSON_DOCUMENT_BYTES);
	large = doc_sized(f, 1, BSON_DOCUMENT_BYTES - 6);
	f->err = (struct err){ 0 };
	assert_int_equal(plain_apply(large, &change, 1, f->arena, &ret, &f->err),
			 STATUS_DOC_TOO_LARGE);
	assert_says(&f->err, "the document would have more than 16777216 bytes, or more than 200 "
			     "documents and arrays inside each other");
	buf_append_cstr(&path, "a");
	for (size_t i = 1; i < PLAIN_PATH_STEPS; i++)
		buf_append_cstr(&path, ".b");
	/* So many documents, the outermost among them. */
	change.path = buf_str(&path);
	assert_int_equal(plain_apply(small, &change, 1, f->arena, &ret, &f->err), STATUS_OK);
	change.value = &BSON_OF_DOCUMENT(BSON_EMPTY);
	assert_int_equal(plain_apply(small, &change, 1, f->arena, &ret, &f->err), STATUS_OK);
	/* Nothing to change is no change. */
	assert_int_equal(plain_apply(small, NULL, 0, f->arena, &ret, &f->err), STATUS_OK);
	assert_true(str_eq(ret, small));
}

/* ---- What a turn of the sweep looks at ---- */

/* Puts an event of that time, the nth of its transaction. */
static void
event_put(struct turn *t, unsigned n, uint64_t ms, bool readable)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	const struct plain_event event = {
		.ms = ms, .kind = PLAIN_EVENT_DELETE, .id = BSON_OF_INT32(1), .detail = STR("")
	};
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];
	size_t offset;

	plain_event_put(&event, &value);
	if (!readable)
		value.len--;
	plain_key_space(&key, t->db, PLAIN_SPACE_LOG);
	tuple_put_u64(&key, t->db->incarnation);
	catalog_stamp((uint16_t)n, stamp);
	offset = tuple_put_versionstamp(&key, stamp);
	assert_int_equal(kv_set_versionstamped_key(t->tx, buf_str(&key), offset, buf_str(&value)),
			 STATUS_OK);
}

static void
the_log_is_cleared_page_by_page(void **state)
{
	/* So many events of NOW_MS - 1, some of which cannot be read, in front of one of NOW_MS. */
	static const struct {
		unsigned count, broken_from, broken_to;
		size_t left[4]; /* after each turn; 0: the turn before was the last */
	} cases[] = {
		{ 0, 0, 0, { 1 } },
		{ 1, 0, 0, { 1 } },
		{ 5, 0, 0, { 1 } },
		{ PAGE - 1, 0, 0, { 1, 1 } },
		{ PAGE, 0, 0, { 2, 1 } },
		{ PAGE + 1, 0, 0, { 3, 1 } },
		{ 2 * PAGE, 0, 0, { PAGE + 2, 3, 1 } },
		{ 5, 2, 3, { 1 } },
		{ 5, 3, 5, { 3 } }, /* what is behind them is not old */
		{ 2, 0, 2, { 3 } },
	};
	struct fixture *f = *state;
	uint64_t id = 0;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct turn t;
		bool more = true;
		char name[32];

		(void)snprintf(name, sizeof(name), "db.log%llu", (unsigned long long)++id);
		turn_begin(&t, f, PACKED);
		assert_int_equal(
			plain_create(t.tx, str_from_cstr(name), PLAIN_PACKED, BSON_EMPTY, &t.err),
			STATUS_OK);
		turn_commit(&t);
		turn_begin(&t, f, name);
		for (unsigned n = 0; n < cases[i].count; n++)
			event_put(&t, n, NOW_MS - 1,
				  n < cases[i].broken_from || n >= cases[i].broken_to);
		event_put(&t, cases[i].count, NOW_MS, true);
		turn_commit(&t);
		for (size_t k = 0; k < 4 && cases[i].left[k]; k++) {
			if (!more)
				fail_msg("case %zu has no turn %zu", i, k);
			turn_begin(&t, f, name);
			assert_int_equal(plain_log_clear(&t.p, NOW_MS, &more), STATUS_OK);
			turn_commit(&t);
			turn_begin(&t, f, name);
			if (keys_below(&t, PLAIN_SPACE_LOG) != cases[i].left[k])
				fail_msg("case %zu, turn %zu: %zu events are left", i, k,
					 keys_below(&t, PLAIN_SPACE_LOG));
			turn_end(&t);
		}
		if (more)
			fail_msg("case %zu has more", i);
	}
}

/* Old events go in front of the first young one; what cannot be read goes with old ones behind. */
static void
the_log_is_cleared_up_to_what_is_young(void **state)
{
	struct fixture *f = *state;
	struct rand_seq rand = { .state = test_seed() };
	struct turn t;

	for (int round = 0; round < LOG_ROUNDS; round++) {
		size_t count = 1 + (size_t)rand_seq_below(&rand, LOG_EVENTS), old = 0;
		bool is_young = false, more;
		char name[32];

		(void)snprintf(name, sizeof(name), "db.drawn%d", round);
		turn_begin(&t, f, PACKED);
		assert_int_equal(
			plain_create(t.tx, str_from_cstr(name), PLAIN_PACKED, BSON_EMPTY, &t.err),
			STATUS_OK);
		turn_commit(&t);
		turn_begin(&t, f, name);
		for (size_t n = 0; n < count; n++) {
			bool readable = rand_seq_below(&rand, 4) > 0;
			uint64_t ms = NOW_MS - (rand_seq_below(&rand, 4) > 0);

			event_put(&t, (unsigned)n, ms, readable);
			is_young = is_young || (readable && ms >= NOW_MS);
			if (readable && !is_young && n + 1 < count)
				old = n + 1;
		}
		turn_commit(&t);
		turn_begin(&t, f, name);
		assert_int_equal(plain_log_clear(&t.p, NOW_MS, &more), STATUS_OK);
		assert_false(more);
		turn_commit(&t);
		turn_begin(&t, f, name);
		assert_int_equal(keys_below(&t, PLAIN_SPACE_LOG), count - old);
		turn_end(&t);
	}
}

/* The range of all notices. */
static size_t
notices_below(struct turn *t, struct buf *begin, struct buf *end)
{
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	size_t count = 0;

	buf_clear(begin);
	tuple_put_u64(begin, KV_ROOT);
	tuple_put_u64(begin, KV_ROOT_NOTICES);
	assert_int_equal(plain_key_end(buf_str(begin), end), STATUS_OK);
	buf_append_byte(begin, CATALOG_KEY_NEXT); /* behind the stamp that is watched */
	assert_int_equal(kv_scan_init(&scan, t->tx, buf_str(begin), buf_str(end), NULL), STATUS_OK);
	while (kv_scan_next(&scan, &pair) == STATUS_OK)
		count++;
	return count;
}

/* Makes the nth notice one that nobody can read. */
static void
notice_break(struct turn *t, const struct buf *begin, const struct buf *end, size_t nth)
{
	struct kv_future *f = kv_get_range(t->tx, buf_str(begin), buf_str(end), NULL);

	assert_int_equal(kv_future_wait(f), STATUS_OK);
	assert_true(nth < kv_future_range(f).count);
	assert_int_equal(kv_set(t->tx, kv_future_range(f).pairs[nth].key, STR("?")), STATUS_OK);
}

static void
notices_are_cleared_page_by_page(void **state)
{
	/* So many notices, one of which cannot be read; all are old but the newer ones. */
	static const struct {
		unsigned count;
		size_t broken; /* SIZE_MAX: none */
		size_t left[3];
	} cases[] = {
		{ 1, SIZE_MAX, { 1 } },
		{ 2, SIZE_MAX, { 1 } },
		{ PAGE - 1, SIZE_MAX, { 1 } },
		{ PAGE, SIZE_MAX, { 1, 1 } },
		{ PAGE + 1, SIZE_MAX, { 2, 1 } },
		{ 5, 2, { 1 } },
		{ 5, 4, { 2 } }, /* behind it there is none that is old */
		{ PAGE + 1, PAGE - 1, { 3 } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
		AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
		unsigned number = 0;
		struct turn t;
		bool more = true;
		void *own;

		(void)state;
		assert_int_equal(fixture_setup(&own), 0);
		turn_begin(&t, own, PACKED);
		for (unsigned n = 0; n < cases[i].count; n++)
			assert_int_equal(plain_notice_put(t.tx, t.db, PLAIN_NOTICE_CREATED,
							  STR(PACKED), STR(""), BSON_EMPTY, &number,
							  &t.err),
					 STATUS_OK);
		turn_commit(&t);
		turn_begin(&t, own, PACKED);
		assert_int_equal(notices_below(&t, &begin, &end), cases[i].count);
		if (cases[i].broken != SIZE_MAX)
			notice_break(&t, &begin, &end, cases[i].broken);
		turn_commit(&t);
		for (size_t k = 0; k < 3 && cases[i].left[k]; k++) {
			size_t left;

			if (!more)
				fail_msg("case %zu has no turn %zu", i, k);
			turn_begin(&t, own, PACKED);
			assert_int_equal(plain_notices_clear(t.tx, UINT64_MAX, &more, &t.err),
					 STATUS_OK);
			left = notices_below(&t, &begin, &end);
			if (left != cases[i].left[k])
				fail_msg("case %zu, turn %zu: %zu are left", i, k, left);
			turn_commit(&t);
		}
		if (more)
			fail_msg("case %zu has more", i);
		fixture_teardown(&own);
	}
}

/* ---- What was written ahead ---- */

/* The value of the only pair of a subspace, or of the one in front of the others. */
static struct kv_pair
first_pair(struct turn *t, struct fixture *f, enum plain_space space)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_pair pair;
	struct kv_future *range;

	plain_key_space(&begin, t->db, space);
	assert_int_equal(plain_key_end(buf_str(&begin), &end), STATUS_OK);
	range = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), NULL);
	assert_int_equal(kv_future_wait(range), STATUS_OK);
	assert_true(kv_future_range(range).count > 0);
	pair = kv_future_range(range).pairs[0];
	pair.key = arena_dup(f->arena, pair.key);
	pair.value = arena_dup(f->arena, pair.value);
	kv_future_free(range);
	return pair;
}

static void
sweep(struct fixture *f, uint64_t now_ms)
{
	AUTO(buf_release) struct buf place = BUF_INIT(400);
	bool more = true;

	while (more)
		assert_int_equal(plain_sweep(f->store, now_ms, &place, &more, &f->err), STATUS_OK);
}

static void
what_was_written_ahead_lives_an_hour(void **state)
{
	struct fixture *f = *state;
	struct plain_text text = { 0 };
	struct plain_doc doc;
	struct tuple_reader r;
	uint64_t ms;
	struct turn t;

	turn_begin(&t, f, PACKED);
	/* One that is short enough for a transaction, or too long for any, is not written. */
	assert_int_equal(
		plain_stage(f->store, t.db, doc_sized(f, 1, PLAIN_AHEAD_BYTES), &doc, &t.err),
		STATUS_OK);
	assert_false(doc.staged);
	assert_int_equal(
		plain_stage(f->store, t.db, doc_sized(f, 1, BSON_DOCUMENT_BYTES + 1), &doc, &t.err),
		STATUS_OK);
	assert_false(doc.staged);
	assert_int_equal(
		plain_stage(f->store, t.db, doc_sized(f, 1, PLAIN_AHEAD_BYTES + 1), &doc, &t.err),
		STATUS_OK);
	assert_true(doc.staged);
	turn_end(&t);
	turn_begin(&t, f, PACKED);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_STAGED), 1);
	assert_int_equal(plain_text_parse(first_pair(&t, f, PLAIN_SPACE_TEXTS).value, f->arena,
					  &text, &t.err),
			 STATUS_OK);
	turn_end(&t);
	sweep(f, text.staged_ms + HOUR_MS);
	turn_begin(&t, f, PACKED);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_STAGED), 1);
	turn_end(&t);
	sweep(f, text.staged_ms + HOUR_MS + 1);
	turn_begin(&t, f, PACKED);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_STAGED), 0);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_TEXTS), 0);
	/* What comes too late for it is told so. */
	assert_int_equal(plain_insert(&t.p, &doc, f->arena), STATUS_TIMEOUT);
	assert_says(&t.err, "the document was written ahead too long ago, and was removed");
	assert_int_equal(plain_stage_image(f->store, t.db, doc_sized(f, 1, 100), &doc, &t.err),
			 STATUS_OK);
	turn_end(&t);
	turn_begin(&t, f, PACKED);
	r = tuple_reader(first_pair(&t, f, PLAIN_SPACE_STAGED).value);
	assert_int_equal(tuple_next_u64(&r, &ms), STATUS_OK);
	turn_end(&t);
	sweep(f, ms + HOUR_MS);
	turn_begin(&t, f, PACKED);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_IMAGES), 1);
	turn_end(&t);
	sweep(f, ms + HOUR_MS + 1);
	turn_begin(&t, f, PACKED);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_IMAGES), 0);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_STAGED), 0);
	turn_end(&t);
	verified_none(f->store);
}

/* A text of another length, or one that a document has already, is not published. */
static void
what_is_published_was_written_ahead(void **state)
{
	static const struct plain_text headers[] = {
		{ .staged_ms = 1, .length = 101, .owner = STR("") },
		{ .staged_ms = 0, .length = 100, .owner = STR("id") },
		{ .staged_ms = 1, .length = 100, .owner = STR("") },
	};
	struct fixture *f = *state;
	struct plain_doc doc = { .bytes = doc_sized(f, 1, 100), .staged = true, .text = { 7 } };

	for (size_t i = 0; i < COUNT(headers); i++) {
		AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
		AUTO(buf_release) struct buf value = BUF_INIT(100);
		struct turn t;

		turn_begin(&t, f, PACKED);
		plain_key_text(t.db, doc.text, &key);
		plain_text_put(&headers[i], &value);
		assert_int_equal(kv_set(t.tx, buf_str(&key), buf_str(&value)), STATUS_OK);
		assert_int_equal(plain_insert(&t.p, &doc, f->arena),
				 i == 2 ? STATUS_OK : STATUS_CORRUPT);
		if (i < 2)
			assert_says(&t.err, "a text that was written ahead cannot be read at (");
		turn_end(&t);
	}
}

/* Puts a text of that number that was written ahead, without its chunks. */
static void
staged_put(struct turn *t, unsigned n, struct str header, struct str listed)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	uint8_t id[PLAIN_TEXT_ID_BYTES] = { (uint8_t)(n / 256), (uint8_t)n };

	plain_key_text(t->db, id, &key);
	if (header.len)
		assert_int_equal(kv_set(t->tx, buf_str(&key), header), STATUS_OK);
	plain_key_staged(t->db, id, &key);
	assert_int_equal(kv_set(t->tx, buf_str(&key), listed), STATUS_OK);
}

/* One that cannot be read stays, and keeps no other from being removed. */
static void
texts_are_swept_page_by_page(void **state)
{
	const struct plain_text text = { .staged_ms = 1, .length = 100, .owner = STR("") };
	struct fixture *f = *state;
	AUTO(buf_release) struct buf header = BUF_INIT(100);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct turn t;

	plain_text_put(&text, &header);
	turn_begin(&t, f, PACKED);
	staged_put(&t, 0, STR(""), STR(""));             /* no text of that id */
	staged_put(&t, 1, STR("?"), STR(""));            /* nor is this one */
	staged_put(&t, 2, STR("\x15\x63"), STR(""));     /* of a newer format */
	staged_put(&t, 3, STR(""), STR("?"));            /* an image of no time */
	staged_put(&t, 4, STR(""), STR("\x15\1\x15\1")); /* nor of two */
	for (unsigned n = 5; n <= PAGE; n++)
		staged_put(&t, n, buf_str(&header), STR(""));
	staged_put(&t, PAGE + 1, STR(""), STR("\x15\1")); /* an image without parts */
	plain_key_space(&key, t.db, PLAIN_SPACE_STAGED);
	tuple_put_str(&key, STR("no id"));
	assert_int_equal(kv_set(t.tx, buf_str(&key), STR("")), STATUS_OK);
	turn_commit(&t);
	sweep(f, DAY_MS);
	turn_begin(&t, f, PACKED);
	/* The first page had the key that is no id, too. */
	assert_int_equal(keys_below(&t, PLAIN_SPACE_STAGED), 9);
	turn_end(&t);
	sweep(f, DAY_MS);
	turn_begin(&t, f, PACKED);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_STAGED), 6);
	assert_int_equal(keys_below(&t, PLAIN_SPACE_TEXTS), 2);
	turn_end(&t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_have_their_limits),
		TEST(a_scheme_is_one_of_two),
		TEST(options_have_their_limit),
		TEST(options_are_read_whole_or_not),
		TEST(options_of_a_view_name_what_it_is_on),
		TEST(positions_have_up_to_nine_digits),
		TEST(keys_of_documents_are_told),
		TEST(a_key_of_a_record_has_an_id),
		TEST(an_id_has_its_limit),
		TEST(an_id_of_two_texts_has_the_same_limit),
		TEST(a_transaction_has_so_many_events),
		TEST(what_an_event_tells_has_its_limit),
		TEST(images_lie_in_parts_of_their_length),
		TEST(an_image_is_kept_of_what_no_event_tells),
		TEST(paths_have_so_many_steps),
		TEST(so_many_elements_are_put_in_front_of_a_new_one),
		TEST(a_changed_document_has_its_limits),
		TEST(the_log_is_cleared_page_by_page),
		TEST(the_log_is_cleared_up_to_what_is_young),
		TEST(notices_are_cleared_page_by_page),
		TEST(what_was_written_ahead_lives_an_hour),
		TEST(what_is_published_was_written_ahead),
		TEST(texts_are_swept_page_by_page),
	};

	return cmocka_run_group_tests_name("plain_limits", tests, NULL, NULL);
}
