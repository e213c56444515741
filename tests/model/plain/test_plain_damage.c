/* What the check says of a damaged collection: each condition of it is broken alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bson/json.h"
#include "fixture.h"
#include "kv/tuple.h"
#include "model/plain/plain_int.h"
#include "verified.h"

enum {
	NOW_MS = 100 * 1000 * 1000,
	LONG_BYTES = PLAIN_WHOLE_BYTES + 2 * DOC_CHUNK_BYTES, /* of a document in chunks */
	IMAGE_BYTES = 2 * PLAIN_IMAGE_PART_BYTES + 7,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- The world: a document in each form, a text and an image written ahead, events ---- */

struct world {
	struct fixture *f;
	struct kv_tx *tx;
	struct catalog_db *packed, *exploded;
	uint8_t text[PLAIN_TEXT_ID_BYTES];  /* of the long document */
	uint8_t image[PLAIN_TEXT_ID_BYTES]; /* that an event refers to */
	struct str stamp;                   /* of the key of that event, and the one behind */
	struct err err;
};

static void
world_begin(struct world *w)
{
	assert_int_equal(kv_begin(w->f->store, KV_TX_READ_WRITE, &w->tx), STATUS_OK);
	assert_int_equal(
		catalog_open(w->tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &w->packed, &w->err),
		STATUS_OK);
	assert_int_equal(catalog_open(w->tx, NULL, CATALOG_SPACE_MONGO, STR(EXPLODED), &w->exploded,
				      &w->err),
			 STATUS_OK);
}

static void
world_commit(struct world *w)
{
	assert_int_equal(kv_future_wait(kv_commit(w->tx)), STATUS_OK);
	kv_tx_free(w->tx);
	catalog_db_unref(w->packed);
	catalog_db_unref(w->exploded);
}

static struct str
doc_of(struct fixture *f, const char *json)
{
	struct buf out = BUF_INIT(1 << 20);
	struct str doc;

	assert_int_equal(bson_json_read(str_from_cstr(json), &out, &f->err), STATUS_OK);
	doc = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	return doc;
}

static struct str
long_doc(struct fixture *f, int id, size_t bytes)
{
	struct buf out = BUF_INIT(1 << 20);
	char *text = calloc(1, bytes);
	struct bson_builder b;
	struct str doc;

	memset(text, 'x', bytes);
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_int32(&b, STR("_id"), id);
	bson_put_string(&b, STR("t"), str_of(text, bytes - 22));
	bson_end(&b);
	assert_int_equal(out.len, bytes);
	doc = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	free(text);
	return doc;
}

static void
insert(struct world *w, struct catalog_db *db, struct str doc)
{
	const struct plain_doc d = plain_doc_of(doc);
	struct plain p;

	plain_init(&p, w->tx, db, NOW_MS, &w->err);
	assert_int_equal(plain_insert(&p, &d, w->f->arena), STATUS_OK);
}

static void
world_make(struct world *w)
{
	const struct bson_value id = BSON_OF_INT32(2), long_id = BSON_OF_INT32(1);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct plain_doc image;
	struct plain_root root;
	struct plain p;

	world_begin(w);
	insert(w, w->packed, doc_of(w->f, "{\"_id\":0,\"a\":[1,2]}"));
	insert(w, w->packed, long_doc(w->f, 1, LONG_BYTES));
	insert(w, w->packed, doc_of(w->f, "{\"_id\":2}"));
	insert(w, w->exploded, doc_of(w->f, "{\"_id\":0,\"a\":[1,2],\"b\":1}"));
	assert_int_equal(plain_stage_image(w->f->store, w->packed, long_doc(w->f, 2, IMAGE_BYTES),
					   &image, &w->err),
			 STATUS_OK);
	world_commit(w);
	world_begin(w);
	plain_init(&p, w->tx, w->packed, NOW_MS, &w->err);
	p.before = image;
	assert_int_equal(plain_delete(&p, &id, STR(""), w->f->arena), STATUS_OK);
	world_commit(w);
	memcpy(w->image, image.text, sizeof(w->image));
	world_begin(w);
	plain_init(&p, w->tx, w->packed, NOW_MS, &w->err);
	assert_int_equal(plain_key_record(w->packed, &long_id, &key, &w->err), STATUS_OK);
	assert_int_equal(plain_get_root(&p, buf_str(&key), KV_READ, w->f->arena, &root), STATUS_OK);
	memcpy(w->text, root.text, sizeof(w->text));
	world_commit(w);
}

/* ---- Keys and values ---- */

/* (P, space) and behind it what the caller puts. */
static struct buf
key_of(const struct catalog_db *db, enum plain_space space)
{
	struct buf key = CATALOG_KEY_INIT;

	plain_key_space(&key, db, space);
	return key;
}

static void
set(struct world *w, struct buf *key, struct str value)
{
	assert_int_equal(buf_status(key), STATUS_OK);
	assert_int_equal(kv_set(w->tx, buf_str(key), value), STATUS_OK);
	buf_release(key);
}

static void
clear(struct world *w, struct buf *key)
{
	assert_int_equal(kv_clear(w->tx, buf_str(key)), STATUS_OK);
	buf_release(key);
}

static struct buf
key_record(const struct catalog_db *db, int n)
{
	const struct bson_value id = BSON_OF_INT32(n);
	struct buf key = CATALOG_KEY_INIT;

	assert_int_equal(plain_key_record(db, &id, &key, NULL), STATUS_OK);
	return key;
}

/* Document 0 of the packed collection becomes these bytes of BSON. */
static void
set_document(struct world *w, const char *bytes, size_t len)
{
	AUTO(buf_release) struct buf value = BUF_INIT(1000);
	struct buf key = key_record(w->packed, 0);

	tuple_put_u64(&value, PLAIN_FORM_WHOLE);
	buf_append(&value, bytes, len);
	set(w, &key, buf_str(&value));
}

static void
set_root(struct world *w, const struct catalog_db *db, int n, const struct plain_root *root)
{
	AUTO(buf_release) struct buf value = BUF_INIT(1000);
	struct buf key = key_record(db, n);

	plain_root_put(root, &value);
	set(w, &key, buf_str(&value));
}

static struct buf
key_text(struct world *w, int chunk)
{
	struct buf key = CATALOG_KEY_INIT;

	plain_key_text(w->packed, w->text, &key);
	if (chunk >= 0)
		tuple_put_u64(&key, (uint64_t)chunk);
	return key;
}

static void
set_text(struct world *w, const struct plain_text *text)
{
	AUTO(buf_release) struct buf value = BUF_INIT(1000);
	struct buf key = key_text(w, -1);

	plain_text_put(text, &value);
	set(w, &key, buf_str(&value));
}

/* What the header of the long document names as its owner. */
static struct str
owner(struct world *w, int n)
{
	AUTO(buf_release) struct buf key = key_record(w->packed, n);
	AUTO(buf_release) struct buf space = key_of(w->packed, PLAIN_SPACE_RECORDS);

	return arena_dup(w->f->arena, str_skip(buf_str(&key), space.len));
}

static struct buf
key_part(struct world *w, int part)
{
	struct buf key = CATALOG_KEY_INIT;

	plain_key_image_text(w->packed, w->image, &key);
	tuple_put_u64(&key, (uint64_t)part);
	return key;
}

/* ---- Documents ---- */

static void
an_invalid_document(struct world *w)
{
	set_document(w, "\x0c\0\0\0\x10\x61\0\1\0\0\0\1", 12); /* no NUL at its end */
}

static void
an_empty_document(struct world *w)
{
	set_document(w, "\5\0\0\0\0", 5);
}

static void
a_document_without_an_id(struct world *w)
{
	set_document(w, "\x0c\0\0\0\x10\x61\0\0\0\0\0\0", 12);
}

static void
a_document_of_another_id(struct world *w)
{
	set_document(w, "\x0e\0\0\0\x10_id\0\7\0\0\0\0", 14);
}

static void
a_document_of_an_id_that_none_can_have(struct world *w)
{
	AUTO(buf_release) struct buf value = BUF_INIT(100000);
	AUTO(buf_release) struct buf doc = BUF_INIT(100000);
	struct buf key = key_record(w->packed, 0);
	char *text = calloc(1, PLAIN_ID_VALUE_BYTES);
	struct bson_builder b;

	memset(text, 'x', PLAIN_ID_VALUE_BYTES);
	bson_builder_init(&b, &doc);
	bson_begin(&b);
	bson_put_string(&b, STR("_id"), str_of(text, PLAIN_ID_VALUE_BYTES));
	bson_end(&b);
	tuple_put_u64(&value, PLAIN_FORM_WHOLE);
	buf_append_buf(&value, &doc);
	set(w, &key, buf_str(&value));
	free(text);
}

static void
leaves_of_a_document_in_one_piece(struct world *w)
{
	struct buf key = key_record(w->packed, 0);

	tuple_put_str(&key, STR("a"));
	set(w, &key, STR("?"));
}

static void
a_key_that_is_no_documents(struct world *w)
{
	struct buf key = key_of(w->packed, PLAIN_SPACE_RECORDS);

	tuple_put_u64(&key, 7);
	set(w, &key, STR("?"));
}

static void
leaves_in_front_of_all_documents(struct world *w)
{
	struct buf key = key_of(w->packed, PLAIN_SPACE_RECORDS);

	tuple_put_bytes(&key, STR(""));
	tuple_put_str(&key, STR("a"));
	set(w, &key, STR("?"));
}

/* The root of the exploded document, of that bound and that `_id`. */
static void
set_leaves_root(struct world *w, uint64_t length, int id, uint64_t next)
{
	const struct plain_root root = {
		.form = PLAIN_FORM_LEAVES, .next = next, .length = length, .id = BSON_OF_INT32(id)
	};

	set_root(w, w->exploded, 0, &root);
}

static void
a_bound_of_the_length(struct world *w)
{
	set_leaves_root(w, doc_of(w->f, "{\"_id\":0,\"a\":[1,2],\"b\":1}").len, 0, 2);
}

static void
a_bound_below_the_length(struct world *w)
{
	set_leaves_root(w, doc_of(w->f, "{\"_id\":0,\"a\":[1,2],\"b\":1}").len - 1, 0, 2);
}

static void
leaves_of_another_id(struct world *w)
{
	set_leaves_root(w, 1000, 1, 2);
}

static void
more_leaves_than_there_were(struct world *w)
{
	set_leaves_root(w, 1000, 0, 1);
}

/* ---- Texts ---- */

static void
a_text_without_a_header(struct world *w)
{
	struct buf key = key_text(w, -1);

	clear(w, &key);
}

static void
a_text_with_an_unreadable_header(struct world *w)
{
	struct buf key = key_text(w, -1);

	set(w, &key, STR("?"));
}

static void
a_text_of_another_length(struct world *w)
{
	set_text(w, &(struct plain_text){ .length = LONG_BYTES - 1, .owner = owner(w, 1) });
}

static void
a_text_of_another_owner(struct world *w)
{
	set_text(w, &(struct plain_text){ .length = LONG_BYTES, .owner = owner(w, 0) });
}

static void
a_text_of_nobody(struct world *w)
{
	struct buf key = key_record(w->packed, 1);

	clear(w, &key);
}

static void
a_document_that_refers_to_another_text(struct world *w)
{
	const struct plain_root root = { .form = PLAIN_FORM_TEXT,
					 .text = { 1 },
					 .length = LONG_BYTES };

	set_root(w, w->packed, 1, &root);
}

static void
an_owner_that_cannot_be_read(struct world *w)
{
	struct buf key = key_record(w->packed, 1);

	set(w, &key, STR("?"));
}

static void
a_chunk_less(struct world *w)
{
	struct buf key = key_text(w, (LONG_BYTES - 1) / DOC_CHUNK_BYTES);

	clear(w, &key);
}

static void
a_chunk_missing_in_between(struct world *w)
{
	struct buf key = key_text(w, 1);

	clear(w, &key);
}

static void
a_short_chunk(struct world *w)
{
	struct buf key = key_text(w, 0);

	set(w, &key, STR("short"));
}

static void
a_chunk_more(struct world *w)
{
	struct buf key = key_text(w, (LONG_BYTES - 1) / DOC_CHUNK_BYTES + 1);

	set(w, &key, STR("more"));
}

static void
more_behind_the_key_of_a_chunk(struct world *w)
{
	struct buf key = key_text(w, (LONG_BYTES - 1) / DOC_CHUNK_BYTES + 1);

	tuple_put_u64(&key, 1);
	set(w, &key, STR(""));
}

static void
a_chunk_of_no_number(struct world *w)
{
	struct buf key = key_text(w, -1);

	tuple_put_bool(&key, true);
	set(w, &key, STR(""));
}

static void
a_chunk_of_no_text(struct world *w)
{
	struct buf key = CATALOG_KEY_INIT;
	static const uint8_t none[PLAIN_TEXT_ID_BYTES];

	plain_key_text(w->packed, none, &key);
	tuple_put_u64(&key, 0);
	set(w, &key, STR(""));
}

/* They lie behind the header of the text whose they were, under the next id there is. */
static void
chunks_of_another_text(struct world *w)
{
	uint8_t id[PLAIN_TEXT_ID_BYTES];

	memcpy(id, w->text, sizeof(id));
	for (size_t at = sizeof(id); at-- > 0 && ++id[at] == 0;)
		;
	for (int n = 0; n <= (LONG_BYTES - 1) / DOC_CHUNK_BYTES; n++) {
		struct buf from = key_text(w, n), to = CATALOG_KEY_INIT;
		struct kv_future *f = kv_get(w->tx, buf_str(&from), KV_READ);
		struct str value;

		assert_int_equal(kv_future_wait(f), STATUS_OK);
		assert_true(kv_future_value(f, &value));
		plain_key_text(w->packed, id, &to);
		tuple_put_u64(&to, (uint64_t)n);
		set(w, &to, value);
		clear(w, &from);
	}
}

static void
a_text_of_no_id(struct world *w)
{
	struct buf key = key_of(w->packed, PLAIN_SPACE_TEXTS);

	tuple_put_str(&key, STR("0123456789abcdef"));
	set(w, &key, STR("?"));
}

/* One that was written ahead, in the list of such texts or not, as far as it has come. */
static void
set_staged(struct world *w, bool listed)
{
	static const uint8_t id[PLAIN_TEXT_ID_BYTES] = { 9 };
	const struct plain_text text = { .staged_ms = 1, .length = 100, .owner = STR("") };
	AUTO(buf_release) struct buf value = BUF_INIT(1000);
	struct buf key = CATALOG_KEY_INIT, list = CATALOG_KEY_INIT;

	plain_key_text(w->packed, id, &key);
	plain_text_put(&text, &value);
	set(w, &key, buf_str(&value));
	plain_key_staged(w->packed, id, &list);
	if (listed)
		set(w, &list, STR(""));
	else
		buf_release(&list);
}

static void
a_text_written_ahead_in_part(struct world *w)
{
	set_staged(w, true);
}

static void
a_text_written_ahead_that_is_not_listed(struct world *w)
{
	set_staged(w, false);
}

/* A pair of the list. */
static void
set_listed(struct world *w, const uint8_t *id, bool more, struct str value)
{
	struct buf key = CATALOG_KEY_INIT;

	plain_key_staged(w->packed, id, &key);
	if (more)
		tuple_put_u64(&key, 1);
	set(w, &key, value);
}

static void
a_listed_text_that_is_not_there(struct world *w)
{
	static const uint8_t none[PLAIN_TEXT_ID_BYTES];

	set_listed(w, none, false, STR(""));
}

static void
a_listed_text_that_a_document_has(struct world *w)
{
	set_listed(w, w->text, false, STR(""));
}

static void
a_listed_text_that_cannot_be_read(struct world *w)
{
	a_text_with_an_unreadable_header(w);
	set_listed(w, w->text, false, STR(""));
}

static void
more_behind_the_key_of_a_listed_text(struct world *w)
{
	set_listed(w, w->text, true, STR(""));
}

static void
a_listed_image_of_no_time(struct world *w)
{
	set_listed(w, w->text, false, STR("?"));
}

static void
a_listed_image_of_two_times(struct world *w)
{
	set_listed(w, w->text, false, STR("\x15\1\x15\1"));
}

/* ---- Images ---- */

static void
a_listed_image_that_is_not_there(struct world *w)
{
	set_listed(w, w->text, false, STR("\x15\1"));
}

static void
an_image_without_its_last_part(struct world *w)
{
	struct buf key = key_part(w, 2);

	clear(w, &key);
}

static void
an_image_without_its_first_part(struct world *w)
{
	struct buf key = key_part(w, 0);

	clear(w, &key);
}

static void
an_image_with_a_short_part(struct world *w)
{
	struct buf key = key_part(w, 1);

	set(w, &key, STR("short"));
}

static void
an_image_with_a_short_last_part(struct world *w)
{
	struct buf key = key_part(w, 2);

	set(w, &key, STR("short"));
}

static void
an_image_with_a_long_part(struct world *w)
{
	struct buf key = key_part(w, 1);
	char *text = calloc(1, PLAIN_IMAGE_PART_BYTES + 1);

	set(w, &key, str_of(text, PLAIN_IMAGE_PART_BYTES + 1));
	free(text);
}

static void
an_image_with_an_empty_part(struct world *w)
{
	struct buf key = key_part(w, 3);

	set(w, &key, STR(""));
}

static void
a_part_of_no_number(struct world *w)
{
	struct buf key = key_part(w, 3);

	tuple_put_u64(&key, 1);
	set(w, &key, STR("part"));
}

/* (Incarnation, stamp, which, part) behind (P, IMAGES) and perhaps true. */
static void
set_image_of_event(struct world *w, bool ref, uint64_t which, bool part, bool more,
		   struct str value)
{
	static const uint8_t stamp[KV_VERSIONSTAMP_BYTES] = { 1 };
	struct buf key = key_of(w->packed, PLAIN_SPACE_IMAGES);

	if (ref)
		tuple_put_bool(&key, true);
	tuple_put_u64(&key, 0);
	tuple_put_versionstamp(&key, stamp);
	if (which)
		tuple_put_u64(&key, which);
	if (part)
		tuple_put_u64(&key, 0);
	if (more)
		tuple_put_u64(&key, 0);
	set(w, &key, value);
}

static void
a_part_of_an_event(struct world *w)
{
	set_image_of_event(w, false, 1, true, false, STR("part"));
}

static void
a_part_of_an_event_without_a_number(struct world *w)
{
	set_image_of_event(w, false, 1, false, false, STR("part"));
}

static void
more_behind_the_part_of_an_event(struct world *w)
{
	set_image_of_event(w, false, 1, true, true, STR("part"));
}

/* A reference to the image of that length. */
static void
set_ref(struct world *w, uint64_t format, uint64_t length, uint64_t which, bool more)
{
	AUTO(buf_release) struct buf value = BUF_INIT(100);

	tuple_put_u64(&value, format);
	tuple_put_uuid(&value, w->image);
	tuple_put_u64(&value, length);
	set_image_of_event(w, true, which, false, more, buf_str(&value));
}

static void
a_second_reference_to_an_image(struct world *w)
{
	set_ref(w, 1, IMAGE_BYTES, 1, false);
}

static void
a_reference_to_no_bytes(struct world *w)
{
	set_ref(w, 1, 0, 1, false);
}

static void
a_reference_of_a_newer_format(struct world *w)
{
	set_ref(w, 9, IMAGE_BYTES, 1, false);
}

static void
a_reference_that_does_not_say_which(struct world *w)
{
	set_ref(w, 1, IMAGE_BYTES, 0, false);
}

static void
more_behind_a_reference(struct world *w)
{
	set_ref(w, 1, IMAGE_BYTES, 1, true);
}

static void
a_reference_to_more_bytes(struct world *w)
{
	set_ref(w, 1, IMAGE_BYTES + 1, 1, false);
}

/* ---- Events, counters ---- */

static void
set_event(struct world *w, bool more, struct str value)
{
	static const uint8_t stamp[KV_VERSIONSTAMP_BYTES] = { 1 };
	struct buf key = key_of(w->packed, PLAIN_SPACE_LOG);

	tuple_put_u64(&key, 0);
	tuple_put_versionstamp(&key, stamp);
	if (more)
		tuple_put_u64(&key, 1);
	set(w, &key, value);
}

static struct str
event_value(struct world *w, struct str detail)
{
	const struct plain_event event = {
		.ms = 1, .kind = PLAIN_EVENT_UPDATE, .id = BSON_OF_INT32(1), .detail = detail
	};
	AUTO(buf_release) struct buf value = BUF_INIT(1000);

	plain_event_put(&event, &value);
	return arena_dup(w->f->arena, buf_str(&value));
}

static void
an_event_without_a_detail(struct world *w)
{
	set_event(w, false, event_value(w, STR("")));
}

static void
an_event_of_an_invalid_detail(struct world *w)
{
	set_event(w, false, event_value(w, STR("\x0c\0\0\0\x10\x61\0\1\0\0\0\1")));
}

static void
more_behind_the_key_of_an_event(struct world *w)
{
	set_event(w, true, event_value(w, STR("")));
}

static void
an_event_that_cannot_be_read(struct world *w)
{
	set_event(w, false, STR("?"));
}

static void
an_event_of_a_newer_format(struct world *w)
{
	set_event(w, false, STR("\x15\x63"));
}

static void
set_single(struct world *w, enum plain_space space, bool more, struct str value)
{
	struct buf key = key_of(w->packed, space);

	if (more)
		tuple_put_u64(&key, 1);
	set(w, &key, value);
}

static void
a_count_that_is_too_high(struct world *w)
{
	set_single(w, PLAIN_SPACE_COUNT, false, STR("\3\0\0\0\0\0\0\0"));
}

static void
a_count_that_is_none(struct world *w)
{
	set_single(w, PLAIN_SPACE_COUNT, false, STR("\2\0\0\0\0\0\0"));
}

static void
a_second_count(struct world *w)
{
	set_single(w, PLAIN_SPACE_COUNT, true, STR("\2\0\0\0\0\0\0\0"));
}

static void
a_stamp_that_is_none(struct world *w)
{
	set_single(w, PLAIN_SPACE_CHANGED, false, STR("short"));
}

static void
a_second_stamp(struct world *w)
{
	set_single(w, PLAIN_SPACE_CHANGED, true, STR("0123456789ab"));
}

static void
options_of_a_newer_format(struct world *w)
{
	set_single(w, PLAIN_SPACE_OPTIONS, false, STR("\x15\x09\x05\0\0\0\0"));
}

static void
options_that_cannot_be_read(struct world *w)
{
	set_single(w, PLAIN_SPACE_OPTIONS, false, STR("\x15\x01"));
}

static void
second_options(struct world *w)
{
	set_single(w, PLAIN_SPACE_OPTIONS, true, STR("\x15\x01\x05\0\0\0\0"));
}

/* ---- The test ---- */

#define DAMAGE(name, found)                                                                        \
	{                                                                                          \
		name, #name, found                                                                 \
	}

static const struct {
	void (*make)(struct world *w);
	const char *name;
	const char *found;
} damages[] = {
	DAMAGE(an_invalid_document, "plain_document: not valid BSON\n"),
	DAMAGE(an_empty_document, "plain_document: it does not begin with its _id\n"),
	DAMAGE(a_document_without_an_id, "plain_document: it does not begin with its _id\n"),
	DAMAGE(a_document_of_another_id, "plain_document: its _id does not belong to this key\n"),
	DAMAGE(a_document_of_an_id_that_none_can_have,
	       "plain_document: its _id does not belong to this key\n"),
	DAMAGE(leaves_of_a_document_in_one_piece,
	       "plain_document: a document in one piece has leaves\n"),
	DAMAGE(a_key_that_is_no_documents, "unknown_key: not a document's key\n"),
	DAMAGE(leaves_in_front_of_all_documents, "plain_document: a leaf without a document\n"),
	DAMAGE(a_bound_of_the_length, ""),
	DAMAGE(a_bound_below_the_length, "plain_document: it is longer than its root says\n"),
	DAMAGE(leaves_of_another_id, "plain_document: its _id does not belong to this key\n"),
	DAMAGE(more_leaves_than_there_were,
	       "plain_document: its leaves are not those of a document\n"),
	DAMAGE(a_text_without_a_header,
	       "plain_text: the text that it refers to is not there, or another's\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"),
	DAMAGE(a_text_with_an_unreadable_header,
	       "plain_text: the text that it refers to is not there, or another's\n"
	       "unreadable_value: not a text\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"),
	DAMAGE(a_text_of_another_length,
	       "plain_text: the text that it refers to is not there, or another's\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: chunks of the text are missing\n"),
	DAMAGE(a_text_of_another_owner,
	       "plain_text: the text that it refers to is not there, or another's\n"
	       "plain_text: no document refers to this text\n"),
	DAMAGE(a_text_of_nobody, "plain_text: no document refers to this text\n"
				 "plain_count: the counter says 2, and there are 1 documents\n"),
	DAMAGE(a_document_that_refers_to_another_text,
	       "plain_text: the text that it refers to is not there, or another's\n"
	       "plain_text: no document refers to this text\n"),
	DAMAGE(an_owner_that_cannot_be_read, "unreadable_value: not a document\n"
					     "plain_text: no document refers to this text\n"),
	DAMAGE(a_chunk_less, "plain_text: chunks of the text are missing\n"),
	DAMAGE(a_chunk_missing_in_between, "plain_text: a chunk that no text can have here\n"
					   "plain_text: a chunk that no text can have here\n"
					   "plain_text: chunks of the text are missing\n"),
	DAMAGE(a_short_chunk, "plain_text: a chunk that no text can have here\n"
			      "plain_text: a chunk that no text can have here\n"
			      "plain_text: a chunk that no text can have here\n"
			      "plain_text: a chunk that no text can have here\n"
			      "plain_text: chunks of the text are missing\n"),
	DAMAGE(a_chunk_more, "plain_text: a chunk that no text can have here\n"),
	DAMAGE(more_behind_the_key_of_a_chunk, "plain_text: a chunk that no text can have here\n"),
	DAMAGE(a_chunk_of_no_number, "plain_text: a chunk that no text can have here\n"),
	DAMAGE(a_chunk_of_no_text, "plain_text: a chunk that no text can have here\n"),
	DAMAGE(chunks_of_another_text, "plain_text: a chunk that no text can have here\n"
				       "plain_text: a chunk that no text can have here\n"
				       "plain_text: a chunk that no text can have here\n"
				       "plain_text: a chunk that no text can have here\n"
				       "plain_text: chunks of the text are missing\n"),
	DAMAGE(a_text_of_no_id, "unknown_key: not a text's key\n"),
	DAMAGE(a_text_written_ahead_in_part, ""),
	DAMAGE(a_text_written_ahead_that_is_not_listed,
	       "plain_text: it was written ahead, and is not in the list of such texts\n"),
	DAMAGE(a_listed_text_that_is_not_there,
	       "plain_text: no text was written ahead under this id\n"),
	DAMAGE(a_listed_text_that_a_document_has,
	       "plain_text: no text was written ahead under this id\n"),
	DAMAGE(a_listed_text_that_cannot_be_read,
	       "plain_text: the text that it refers to is not there, or another's\n"
	       "unreadable_value: not a text\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: a chunk that no text can have here\n"
	       "plain_text: no text was written ahead under this id\n"),
	DAMAGE(more_behind_the_key_of_a_listed_text,
	       "unknown_key: not a text that was written ahead\n"),
	DAMAGE(a_listed_image_of_no_time, "unknown_key: not a text that was written ahead\n"),
	DAMAGE(a_listed_image_of_two_times, "unknown_key: not a text that was written ahead\n"),
	DAMAGE(a_listed_image_that_is_not_there,
	       "plain_event: 1 images were written ahead, and 2 are referred to or listed\n"),
	DAMAGE(an_image_without_its_last_part, "plain_event: parts of the image are missing\n"),
	DAMAGE(an_image_without_its_first_part,
	       "plain_event: a part that no image can have here\n"),
	DAMAGE(an_image_with_a_short_part, "plain_event: a part that no image can have here\n"),
	DAMAGE(an_image_with_a_short_last_part, "plain_event: parts of the image are missing\n"),
	DAMAGE(an_image_with_a_long_part, "plain_event: a part that no image can have here\n"),
	DAMAGE(an_image_with_an_empty_part, "plain_event: a part that no image can have here\n"),
	DAMAGE(a_part_of_no_number, "plain_event: a part that no image can have here\n"),
	DAMAGE(a_part_of_an_event, ""),
	DAMAGE(a_part_of_an_event_without_a_number, "unknown_key: not a part of an image\n"),
	DAMAGE(more_behind_the_part_of_an_event, "unknown_key: not a part of an image\n"),
	DAMAGE(a_second_reference_to_an_image,
	       "plain_event: 1 images were written ahead, and 2 are referred to or listed\n"),
	DAMAGE(a_reference_to_no_bytes, "unreadable_value: not an image\n"),
	DAMAGE(a_reference_of_a_newer_format,
	       "newer_format: an image was written by a newer frond, in format 9\n"),
	DAMAGE(a_reference_that_does_not_say_which, "unknown_key: not of an image\n"),
	DAMAGE(more_behind_a_reference, "unknown_key: not of an image\n"),
	DAMAGE(a_reference_to_more_bytes,
	       "plain_event: parts of the image are missing\n"
	       "plain_event: 1 images were written ahead, and 2 are referred to or listed\n"),
	DAMAGE(an_event_without_a_detail, ""),
	DAMAGE(an_event_of_an_invalid_detail, "plain_event: not an event\n"),
	DAMAGE(more_behind_the_key_of_an_event, "plain_event: not an event\n"),
	DAMAGE(an_event_that_cannot_be_read, "plain_event: not an event\n"),
	DAMAGE(an_event_of_a_newer_format,
	       "newer_format: an event was written by a newer frond, in format 99\n"),
	DAMAGE(a_count_that_is_too_high,
	       "plain_count: the counter says 3, and there are 2 documents\n"),
	DAMAGE(a_count_that_is_none, "plain_count: not a counter (0, of 2 documents)\n"),
	DAMAGE(a_second_count, "unknown_key: nothing can be at this place\n"),
	DAMAGE(a_stamp_that_is_none, "unreadable_value: not a versionstamp\n"),
	DAMAGE(a_second_stamp, "unknown_key: nothing can be at this place\n"),
	DAMAGE(options_of_a_newer_format,
	       "plain_options: the options of the collection were written by a newer frond\n"),
	DAMAGE(options_that_cannot_be_read,
	       "plain_options: the options of the collection cannot be read\n"),
	DAMAGE(second_options, "unknown_key: nothing can be at this place\n"),
};

static void
each_damage_is_told_and_no_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(damages); i++) {
		struct verified found;
		struct world w = { 0 };
		void *own;

		assert_int_equal(fixture_setup(&own), 0);
		w.f = own;
		world_make(&w);
		if (i == 0)
			verified_none(w.f->store);
		world_begin(&w);
		damages[i].make(&w);
		world_commit(&w);
		verified_read(w.f->store, &found);
		if (strcmp(found.all, damages[i].found) != 0)
			fail_msg("%s: %s", damages[i].name, found.all);
		fixture_teardown(&own);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_damage_is_told_and_no_other),
	};

	return cmocka_run_group_tests_name("plain_damage", tests, NULL, NULL);
}
