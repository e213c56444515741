/*
 * Parts of documents in leaves: what is read of them, and what an update of leaves alone writes.
 * What is stored of texts that were written ahead.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "bson/json.h"
#include "fixture.h"
#include "model/plain/plain_int.h"
#include "verified.h"

enum {
	PARTS = 4,
};

static struct str
doc_of(struct fixture *f, const char *json)
{
	struct buf out = BUF_INIT(ARENA_BYTES);
	struct str doc;

	if (bson_json_read(str_from_cstr(json), &out, &f->err) != STATUS_OK)
		fail_msg("%s: %s", json, f->err.text);
	doc = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	return doc;
}

/* ---- One operation in a transaction of its own, on the document 1 or another one ---- */

struct op {
	struct fixture *f;
	const char *name;
	struct bson_value id;
	struct str insert; /* a document; or: */
	struct plain_part parts[PARTS];
	size_t count;
	const struct plain_change *change; /* instead of reading parts */
	struct arena *arena;               /* NULL: the fixture's */
	uint64_t failing;                  /* the number of its allocation that fails; 0: none */
	uint64_t allocations;
	enum status status;
	struct str found;
	bool whole, changed;
	uint64_t keys_read;
};

static enum status
op_do(struct op *op, struct plain *p)
{
	const struct plain_doc doc = plain_doc_of(op->insert);
	struct arena *arena = op->arena ? op->arena : op->f->arena;

	if (op->insert.len)
		return plain_insert(p, &doc, arena);
	if (op->change)
		return plain_update_leaves(p, &op->id, op->change, 1, STR(""), arena, &op->changed);
	return plain_get_parts(p, &op->id, op->parts, op->count, KV_READ, arena, &op->found,
			       &op->whole);
}

static enum status
op_body(struct kv_tx *tx, void *arg)
{
	struct op *op = arg;
	struct catalog_db *db;
	struct plain p;
	uint64_t before;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(op->name), &db, NULL));
	plain_init(&p, tx, db, 1, &op->f->err);
	before = kv_tx_stats(tx).keys_read;
	(void)mem_fail_only(op->failing);
	op->status = op_do(op, &p);
	op->allocations = mem_fail_only(0);
	op->keys_read = kv_tx_stats(tx).keys_read - before;
	catalog_db_unref(db);
	/* What a caller is told is no reason to run the transaction again. */
	return op->failing || op->status == STATUS_NOT_FOUND || op->status == STATUS_DOC_TOO_LARGE
		       ? STATUS_CANCELLED
		       : op->status;
}

static enum status
op_run(struct fixture *f, struct op *op)
{
	enum status status;

	op->f = f;
	status = kv_run(f->store, op_body, op, NULL, &f->err);
	if (status != STATUS_OK && status != STATUS_CANCELLED)
		fail_msg("%s: %s", status_name(status), f->err.text);
	return op->status;
}

static void
insert(struct fixture *f, const char *name, struct str doc)
{
	struct op op = { .name = name, .insert = doc };

	assert_int_equal(op_run(f, &op), STATUS_OK);
}

/* The paths are separated by spaces. */
static void
assert_parts(struct fixture *f, const char *paths, bool positions, const char *expected)
{
	struct op op = { .name = EXPLODED, .id = BSON_OF_INT32(1) };
	struct str rest = str_from_cstr(paths);

	while (rest.len)
		op.parts[op.count++] = (struct plain_part){ str_cut(&rest, ' '), positions };
	assert_int_equal(op_run(f, &op), STATUS_OK);
	assert_false(op.whole);
	if (!str_eq(op.found, doc_of(f, expected)))
		fail_msg("%s is not %s", paths, expected);
}

/* ---- Tests ---- */

static void
parts_are_read_in_their_order_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	struct op whole = { .name = PACKED, .id = BSON_OF_INT32(1) };
	struct op one = { .name = EXPLODED,
			  .id = BSON_OF_INT32(1),
			  .parts = { { STR("d.c"), false }, { STR("z"), false } },
			  .count = 2 };
	struct str doc = doc_of(f, "{\"_id\":1,\"z\":1,\"d\":{\"c\":2,\"b\":{\"a\":3},\"5\":6},"
				   "\"list\":[7,{\"e\":8,\"f\":9},10],\"a\":11,\"none\":{}}");

	insert(f, EXPLODED, doc);
	insert(f, PACKED, doc);
	assert_parts(f, "", false, "{\"_id\":1}");
	assert_parts(f, "a z missing", false, "{\"_id\":1,\"z\":1,\"a\":11}");
	assert_parts(f, "d.b.a d.c", false, "{\"_id\":1,\"d\":{\"c\":2,\"b\":{\"a\":3}}}");
	assert_parts(f, "d d.c", false, "{\"_id\":1,\"d\":{\"c\":2,\"b\":{\"a\":3},\"5\":6}}");
	assert_parts(f, "d.5 a.b none.b", true, "{\"_id\":1,\"d\":{\"5\":6},\"a\":11,\"none\":{}}");
	assert_parts(f, "list.1.f", false, "{\"_id\":1,\"list\":[7,{\"e\":8,\"f\":9},10]}");
	assert_parts(f, "list.1.f", true, "{\"_id\":1,\"list\":[null,{\"f\":9}]}");
	assert_parts(f, "list.9 list.0", true, "{\"_id\":1,\"list\":[7,null,null]}");
	assert_parts(f, "list.0 list.9", true, "{\"_id\":1,\"list\":[7,null,null]}");
	assert_parts(f, "list.0 list.2", true, "{\"_id\":1,\"list\":[7,null,10]}");
	assert_parts(f, "list.2 list.0", true, "{\"_id\":1,\"list\":[7,null,10]}");
	assert_parts(f, "list.name", true, "{\"_id\":1,\"list\":[7,{\"e\":8,\"f\":9},10]}");
	assert_int_equal(op_run(f, &whole), STATUS_OK);
	assert_true(whole.whole && str_eq(whole.found, doc));
	assert_int_equal(op_run(f, &one), STATUS_OK);
	assert_int_equal(one.keys_read, 4); /* the root, d, d.c and z */
	one.id = BSON_OF_INT32(2);
	assert_int_equal(op_run(f, &one), STATUS_NOT_FOUND);
}

/* Whichever allocation fails, parts that are given are all that were asked for. */
static void
parts_are_complete_or_memory_is_short(void **state)
{
	struct fixture *f = *state;
	struct str doc = doc_of(f, "{\"_id\":1,\"a\":{\"b\":1},\"c\":2,\"d\":3}");
	struct str wanted = doc_of(f, "{\"_id\":1,\"a\":{\"b\":1},\"c\":2}");
	bool failed = true;

	insert(f, EXPLODED, doc);
	for (uint64_t nth = 1; failed; nth++) {
		struct op op = { .name = EXPLODED,
				 .id = BSON_OF_INT32(1),
				 .parts = { { STR("a.b"), true }, { STR("c"), true } },
				 .count = 2,
				 .arena = arena_new(ARENA_BYTES),
				 .failing = nth };

		if (op_run(f, &op) == STATUS_OK)
			assert_true(str_eq(op.found, wanted));
		failed = op.allocations >= nth;
		assert_true(failed || op.status == STATUS_OK);
		arena_free(op.arena);
	}
}

/* What one path costs does not depend on how large the document is. */
static void
a_part_of_a_large_document_costs_what_one_of_a_small_one_costs(void **state)
{
	struct fixture *f = *state;
	uint64_t keys[2];

	for (int large = 0; large < 2; large++) {
		struct buf json = BUF_INIT(ARENA_BYTES);
		struct op op = { .name = EXPLODED,
				 .id = BSON_OF_INT32(large),
				 .parts = { { STR("in.field 7"), true } },
				 .count = 1 };

		buf_printf(&json, "{\"_id\":%d,\"in\":{\"none\":0", large);
		for (int i = 0; i < (large ? 10000 : 100); i++)
			buf_printf(&json, ",\"field %d\":\"some text of fifty bytes or so\"", i);
		buf_append_cstr(&json, "}}");
		buf_append_byte(&json, 0);
		insert(f, EXPLODED, doc_of(f, json.ptr));
		buf_release(&json);
		assert_int_equal(op_run(f, &op), STATUS_OK);
		keys[large] = op.keys_read;
	}
	assert_int_equal(keys[0], keys[1]);
	assert_int_equal(keys[0], 3);
}

/* What cannot be done leaf by leaf is refused before anything is written. */
static void
an_update_of_leaves_alone_does_not_read_the_document(void **state)
{
	struct fixture *f = *state;
	const struct bson_value five = BSON_OF_INT32(5);
	const struct plain_change change = { STR("a"), &five };
	struct op update = { .name = PACKED, .id = BSON_OF_INT32(1), .change = &change };
	struct op read = { .name = PACKED, .id = BSON_OF_INT32(1) };
	struct str doc = doc_of(f, "{\"_id\":1,\"a\":1}");

	insert(f, PACKED, doc);
	insert(f, EXPLODED, doc);
	assert_int_equal(op_run(f, &update), STATUS_DOC_TOO_LARGE);
	assert_int_equal(op_run(f, &read), STATUS_OK);
	assert_true(str_eq(read.found, doc));
	update.name = EXPLODED;
	assert_int_equal(op_run(f, &update), STATUS_OK);
	assert_true(update.changed);
	assert_int_equal(update.keys_read, 2); /* the root and the leaf */
	assert_parts(f, "a", true, "{\"_id\":1,\"a\":5}");
}

static enum status
root_clear_body(struct kv_tx *tx, void *arg)
{
	const struct bson_value id = BSON_OF_INT32(1);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct catalog_db *db;
	enum status status;

	(void)arg;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(EXPLODED), &db, NULL));
	status = plain_key_record(db, &id, &key, NULL);
	catalog_db_unref(db);
	return status == STATUS_OK ? kv_clear(tx, buf_str(&key)) : status;
}

static enum status
get_body(struct kv_tx *tx, void *arg)
{
	const struct bson_value id = BSON_OF_INT32(1);
	struct fixture *f = arg;
	struct catalog_db *db;
	struct plain p;
	struct str doc;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(EXPLODED), &db, NULL));
	plain_init(&p, tx, db, 1, &f->err);
	status = plain_get(&p, &id, KV_READ, f->arena, &doc);
	catalog_db_unref(db);
	return status;
}

/* Leaves alone, of which a lost root has told, are no document. */
static void
leaves_without_a_root_are_no_document(void **state)
{
	struct fixture *f = *state;

	insert(f, EXPLODED, doc_of(f, "{\"_id\":1,\"a\":{\"b\":1},\"c\":2}"));
	assert_int_equal(kv_run_read(f->store, get_body, f, NULL), STATUS_OK);
	assert_int_equal(kv_run(f->store, root_clear_body, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, get_body, f, NULL), STATUS_NOT_FOUND);
}

/* Nor are they those of the document before them. */
static void
leaves_behind_another_document_are_found(void **state)
{
	struct fixture *f = *state;
	struct verified found;

	insert(f, EXPLODED, doc_of(f, "{\"_id\":0,\"a\":{\"b\":1},\"c\":2}"));
	insert(f, EXPLODED, doc_of(f, "{\"_id\":1,\"a\":{\"b\":1},\"c\":2}"));
	verified_none(f->store);
	assert_int_equal(kv_run(f->store, root_clear_body, NULL, NULL, NULL), STATUS_OK);
	verified_read(f->store, &found);
	assert_string_equal(found.all,
			    "plain_document: a leaf without a document\n"
			    "plain_document: a leaf without a document\n"
			    "plain_document: a leaf without a document\n"
			    "plain_count: the counter says 2, and there are 1 documents\n");
}

/* An `_id` is a byte for its type, and what that type has. */
static void
a_root_whose_id_has_no_type_is_corrupt(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum status status;
	} ids[] = { { "\x10\1\0\0\0", 5, STATUS_OK },        { "\x10\1\0\0", 4, STATUS_CORRUPT },
		    { "\x10\1\0\0\0\0", 6, STATUS_CORRUPT }, { "\x0a", 1, STATUS_OK },
		    { "\x55", 1, STATUS_CORRUPT },           { "", 0, STATUS_CORRUPT } };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(100);
		struct plain_root root;

		tuple_put_u64(&value, PLAIN_FORM_LEAVES);
		tuple_put_u64(&value, 1);
		tuple_put_u64(&value, 100);
		tuple_put_bytes(&value, str_of(ids[i].bytes, ids[i].len));
		assert_int_equal(plain_root_parse(buf_str(&value), f->arena, &root, &f->err),
				 ids[i].status);
	}
}

/* ---- Commits while memory is short ---- */

struct removing {
	struct fixture *f;
	uint64_t failing; /* an allocation; 0: none */
	uint64_t made;
};

static enum status
remove_body(struct kv_tx *tx, void *arg)
{
	const struct bson_value id = BSON_OF_INT32(1);
	struct removing *r = arg;
	struct catalog_db *db;
	struct plain p;
	enum status status;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, NULL));
	plain_init(&p, tx, db, 1, &r->f->err);
	(void)mem_fail_only(r->failing);
	status = plain_delete(&p, &id, STR(""), r->f->arena);
	r->made = mem_fail_only(0);
	catalog_db_unref(db);
	return status;
}

/* Without the key of its chunks, a document is not removed, nor is anything else. */
static void
what_is_removed_without_memory_is_nothing_else(void **state)
{
	enum {
		LONG_BYTES = 150 * 1000,
	};
	struct fixture *f = *state;
	AUTO(buf_release) struct buf json = BUF_INIT(2 * LONG_BYTES);
	struct op other = { .name = PACKED, .id = BSON_OF_INT32(2) };
	struct removing r = { .f = f };
	struct str doc, neighbour = doc_of(f, "{\"_id\":2,\"a\":1}");

	buf_printf(&json, "{\"_id\":1,\"long\":\"%0*d\"}", LONG_BYTES, 0);
	buf_append_byte(&json, 0);
	doc = doc_of(f, json.ptr);
	insert(f, PACKED, doc);
	insert(f, PACKED, neighbour);
	do {
		r.failing++;
		if (kv_run(f->store, remove_body, &r, NULL, NULL) == STATUS_OK)
			insert(f, PACKED, doc);
		assert_int_equal(op_run(f, &other), STATUS_OK);
		assert_true(str_eq(other.found, neighbour));
	} while (r.made >= r.failing);
	verified_none(f->store);
}

/* ---- Texts that were written ahead ---- */

static void
a_text_has_nothing_behind_its_owner(void **state)
{
	const struct plain_text staged = { .staged_ms = 7, .length = 9, .owner = STR("") };
	const struct plain_text owned = { .length = 9, .owner = STR("id") };
	const struct plain_text both = { .staged_ms = 7, .length = 9, .owner = STR("id") };
	const struct plain_text none = { .length = 9, .owner = STR("") };
	const struct {
		const struct plain_text *text;
		enum status status;
	} cases[] = { { &staged, STATUS_OK },
		      { &owned, STATUS_OK },
		      { &both, STATUS_CORRUPT },
		      { &none, STATUS_CORRUPT } };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(100);
		struct plain_text read;

		plain_text_put(cases[i].text, &value);
		assert_int_equal(plain_text_parse(buf_str(&value), f->arena, &read, &f->err),
				 cases[i].status);
		if (cases[i].status == STATUS_OK) {
			assert_int_equal(read.staged_ms, cases[i].text->staged_ms);
			assert_int_equal(read.length, cases[i].text->length);
			assert_true(str_eq(read.owner, cases[i].text->owner));
		}
		tuple_put_u64(&value, 0);
		assert_int_equal(plain_text_parse(buf_str(&value), f->arena, &read, &f->err),
				 STATUS_CORRUPT);
	}
}

/* Draws the header of the text that a long document lies in, and a chunk of it. */
static enum status
texts_draw_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options options = { .limit = 2 };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf drawn = BUF_INIT(ARENA_BYTES);
	struct kv_future *f;
	struct kv_range range;
	struct catalog_db *db;

	(void)arg;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, NULL));
	plain_key_space(&begin, db, PLAIN_SPACE_TEXTS);
	TRY(plain_key_end(buf_str(&begin), &end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	assert_int_equal(range.count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(db->kind->draw_pair(db, PLAIN_SPACE_TEXTS,
						str_skip(range.pairs[i].key, begin.len),
						range.pairs[i].value, &drawn));
	assert_true(drawn.len > 0);
	kv_future_free(f);
	catalog_db_unref(db);
	return STATUS_OK;
}

static void
a_text_is_drawn(void **state)
{
	struct fixture *f = *state;
	struct buf json = BUF_INIT(ARENA_BYTES);

	buf_append_cstr(&json, "{\"_id\":1,\"a\":\"");
	for (size_t i = 0; i <= PLAIN_WHOLE_BYTES; i++)
		buf_append_byte(&json, 'x');
	buf_append_cstr(&json, "\"}");
	buf_append_byte(&json, 0);
	insert(f, PACKED, doc_of(f, json.ptr));
	buf_release(&json);
	assert_int_equal(kv_run_read(f->store, texts_draw_body, NULL, &f->err), STATUS_OK);
}

static enum status
stray_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	const enum plain_space *space = arg;
	struct catalog_db *db;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, NULL));
	plain_key_space(&key, db, *space);
	tuple_put_str(&key, STR("of sixteen bytes"));
	catalog_db_unref(db);
	return kv_set(tx, buf_str(&key), STR(""));
}

static void
a_key_among_them_that_is_no_id_is_found(void **state)
{
	enum plain_space staged = PLAIN_SPACE_STAGED, texts = PLAIN_SPACE_TEXTS;
	struct fixture *f = *state;
	struct verified found;

	assert_int_equal(kv_run(f->store, stray_body, &staged, NULL, &f->err), STATUS_OK);
	verified_read(f->store, &found);
	assert_int_equal(found.count, 1);
	assert_string_equal(found.last, "unknown_key: not a text that was written ahead");
	assert_int_equal(kv_run(f->store, stray_body, &texts, NULL, &f->err), STATUS_OK);
	verified_read(f->store, &found);
	assert_int_equal(found.count, 2);
	assert_non_null(strstr(found.all, "unknown_key: not a text's key"));
}

/* ---- In one transaction, which is not tried again ---- */

static struct kv_tx *
plain_begin(struct fixture *f, const char *name, struct plain *ret, struct catalog_db **ret_db)
{
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(
		catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name), ret_db, &f->err),
		STATUS_OK);
	f->err = (struct err){ 0 };
	plain_init(ret, tx, *ret_db, 1, &f->err);
	return tx;
}

/* Of more paths than may be the whole is read, and so is a document that lies in no leaves. */
static void
too_many_parts_are_the_whole(void **state)
{
	struct fixture *f = *state;
	const struct bson_value id = BSON_OF_INT32(1), other = BSON_OF_INT32(2);
	struct str doc = doc_of(f, "{\"_id\":1,\"a\":1,\"b\":{\"c\":2}}");
	/* No leaves can have two members of one name. */
	struct str twice = doc_of(f, "{\"_id\":2,\"a\":1,\"a\":2}"), read;
	struct plain_part parts[PLAIN_PARTS_MOST + 1];
	struct catalog_db *db;
	struct plain p;
	struct kv_tx *tx;
	bool whole;

	insert(f, EXPLODED, doc);
	insert(f, EXPLODED, twice);
	for (size_t i = 0; i < PLAIN_PARTS_MOST + 1; i++)
		parts[i] = (struct plain_part){ i ? arena_printf(f->arena, "f%zu", i) : STR("a"),
						false };
	tx = plain_begin(f, EXPLODED, &p, &db);
	assert_int_equal(
		plain_get_parts(&p, &id, parts, PLAIN_PARTS_MOST, KV_READ, f->arena, &read, &whole),
		STATUS_OK);
	assert_false(whole);
	assert_true(str_eq(read, doc_of(f, "{\"_id\":1,\"a\":1}")));
	assert_int_equal(plain_get_parts(&p, &id, parts, PLAIN_PARTS_MOST + 1, KV_READ, f->arena,
					 &read, &whole),
			 STATUS_OK);
	assert_true(whole && str_eq(read, doc));
	assert_int_equal(plain_get_parts(&p, &other, parts, 1, KV_READ, f->arena, &read, &whole),
			 STATUS_OK);
	assert_true(whole && str_eq(read, twice));
	catalog_db_unref(db);
	kv_tx_free(tx);
}

/* What is not there, or is null already where an element would leave null, changes nothing. */
static void
what_is_taken_out_is_there(void **state)
{
	static const struct {
		const char *path;
		const char *after; /* NULL: nothing has changed */
	} cases[] = {
		{ "l.x", NULL },
		{ "l.00", NULL },
		{ "l.1", NULL }, /* null */
		{ "l.9", NULL },
		{ "n.x", NULL },
		{ "d.none", NULL },
		{ "none", NULL },
		{ "none.x", NULL },
		{ "l.2.a", "{\"_id\":1,\"l\":[1,null,{}],\"n\":1,\"d\":{\"0\":null}}" },
		{ "l.0", "{\"_id\":1,\"l\":[null,null,{\"a\":1}],\"n\":1,\"d\":{\"0\":null}}" },
		{ "d.0", "{\"_id\":1,\"l\":[1,null,{\"a\":1}],\"n\":1,\"d\":{}}" },
		{ "d", "{\"_id\":1,\"l\":[1,null,{\"a\":1}],\"n\":1}" },
	};
	const char *names[] = { PACKED, EXPLODED };
	const struct bson_value id = BSON_OF_INT32(1);
	struct fixture *f = *state;
	struct str doc = doc_of(f,
				"{\"_id\":1,\"l\":[1,null,{\"a\":1}],\"n\":1,\"d\":{\"0\":null}}");

	for (size_t i = 0; i < 2; i++) {
		insert(f, names[i], doc);
		for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
			const struct plain_change change = { .path = str_from_cstr(cases[k].path) };
			struct catalog_db *db;
			struct plain p;
			struct kv_tx *tx = plain_begin(f, names[i], &p, &db);
			bool changed = false;
			struct str read;

			assert_int_equal(
				plain_update(&p, &id, &change, 1, STR(""), f->arena, &changed),
				STATUS_OK);
			assert_int_equal(plain_get(&p, &id, KV_READ, f->arena, &read), STATUS_OK);
			if (changed != (cases[k].after != NULL) ||
			    !str_eq(read, changed ? doc_of(f, cases[k].after) : doc))
				fail_msg("%s of %s", cases[k].path, names[i]);
			catalog_db_unref(db);
			kv_tx_free(tx);
		}
	}
}

static enum status
claim_refuse(void *arg, struct kv_tx *tx, struct str key)
{
	(void)tx, (void)key;
	++*(unsigned *)arg;
	return STATUS_BUSY;
}

/* Who is asked before a document is written may forbid it; those that only read ask nobody. */
static void
a_claim_that_is_refused_ends_the_write(void **state)
{
	const struct bson_value id = BSON_OF_INT32(1);
	const struct plain_change change = { .path = STR("a"), .value = &id };
	struct fixture *f = *state;
	struct str doc = doc_of(f, "{\"_id\":1,\"a\":7}");
	const struct plain_doc same = plain_doc_of(doc);
	const struct plain_doc other = plain_doc_of(doc_of(f, "{\"_id\":2}"));
	unsigned asked = 0;
	struct catalog_db *db;
	struct plain p;
	struct kv_tx *tx;
	struct str read;
	bool changed;

	insert(f, PACKED, doc);
	tx = plain_begin(f, PACKED, &p, &db);
	p.claim = claim_refuse;
	p.claim_arg = &asked;
	assert_int_equal(plain_insert(&p, &other, f->arena), STATUS_BUSY);
	assert_int_equal(plain_replace(&p, &same, false, PLAIN_EVENT_REPLACE, STR(""), f->arena),
			 STATUS_BUSY);
	assert_int_equal(plain_update(&p, &id, &change, 1, STR(""), f->arena, &changed),
			 STATUS_BUSY);
	assert_int_equal(plain_delete(&p, &id, STR(""), f->arena), STATUS_BUSY);
	assert_int_equal(asked, 4);
	assert_int_equal(plain_get(&p, &id, KV_READ, f->arena, &read), STATUS_OK);
	assert_int_equal(asked, 4);
	assert_int_equal(kv_tx_stats(tx).sets, 0);
	catalog_db_unref(db);
	kv_tx_free(tx);
}

/* ---- Images that cannot be read ---- */

/* What is stored as the reference of an event's image, and of its only part. */
static void
images_that_are_not_whole_are_told(void **state)
{
	static const uint8_t text[PLAIN_TEXT_ID_BYTES] = { 5 };
	static const struct {
		uint64_t format, length;
		const char *part; /* NULL: none */
		size_t part_bytes;
		enum status status;
		const char *why;
	} cases[] = {
		{ 1, 5, "\5\0\0\0\0", 5, STATUS_OK, "" },
		{ 1, 6, "\5\0\0\0\0", 5, STATUS_CORRUPT, "a document of an event" },
		{ 1, 5, "\6\0\0\0\0", 5, STATUS_CORRUPT, "a document of an event" },
		{ 1, 5, NULL, 0, STATUS_CORRUPT, "a document of an event" },
		{ 9, 5, "\5\0\0\0\0", 5, STATUS_NEWER,
		  "an image was written by a newer frond, in format 9" },
		{ 0, 0, "\5\0\0\0\0", 5, STATUS_CORRUPT, "an image cannot be read at (" },
	};
	struct fixture *f = *state;
	const struct catalog_seq seq = { { 0, 1 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
		AUTO(buf_release) struct buf value = BUF_INIT(100);
		struct catalog_db *db;
		struct plain p;
		struct kv_tx *tx = plain_begin(f, PACKED, &p, &db);
		struct str read;

		plain_key_space(&key, db, PLAIN_SPACE_IMAGES);
		tuple_put_bool(&key, true);
		tuple_put_u64(&key, seq.bytes[0]);
		tuple_put_versionstamp(&key, seq.bytes + 1);
		tuple_put_u64(&key, 1); /* before the event */
		if (cases[i].format) {
			tuple_put_u64(&value, cases[i].format);
			tuple_put_uuid(&value, text);
			tuple_put_u64(&value, cases[i].length);
		}
		assert_int_equal(kv_set(tx, buf_str(&key), buf_str(&value)), STATUS_OK);
		plain_key_image_text(db, text, &key);
		tuple_put_u64(&key, 0);
		if (cases[i].part)
			assert_int_equal(kv_set(tx, buf_str(&key),
						str_of(cases[i].part, cases[i].part_bytes)),
					 STATUS_OK);
		assert_int_equal(plain_image_read(&p, &seq, true, f->arena, &read),
				 STATUS_NOT_FOUND);
		assert_int_equal(plain_image_read(&p, &seq, false, f->arena, &read),
				 cases[i].status);
		if (!strstr(f->err.text, cases[i].why))
			fail_msg("%zu: %s", i, f->err.text);
		catalog_db_unref(db);
		kv_tx_free(tx);
	}
}

int
main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(parts_are_read_in_their_order_and_nothing_else),
		CASE(parts_are_complete_or_memory_is_short),
		CASE(a_part_of_a_large_document_costs_what_one_of_a_small_one_costs),
		CASE(what_is_removed_without_memory_is_nothing_else),
		CASE(leaves_without_a_root_are_no_document),
		CASE(leaves_behind_another_document_are_found),
		CASE(a_root_whose_id_has_no_type_is_corrupt),
		CASE(a_text_has_nothing_behind_its_owner),
		CASE(a_text_is_drawn),
		CASE(a_key_among_them_that_is_no_id_is_found),
		CASE(an_update_of_leaves_alone_does_not_read_the_document),
		CASE(too_many_parts_are_the_whole),
		CASE(what_is_taken_out_is_there),
		CASE(a_claim_that_is_refused_ends_the_write),
		CASE(images_that_are_not_whole_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
