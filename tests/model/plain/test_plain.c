/*
 * Collections: what each operation leaves and reads in both schemes, large documents, the log, what
 * a check finds, and random operations against a model that keeps a list of documents.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bson/json.h"
#include "bson/order.h"
#include "fixture.h"
#include "kv/tuple.h"
#include "model/plain/plain.h"
#include "random_plain.h"
#include "store.h"
#include "verified.h"

enum {
	START_MS = 100 * 1000 * 1000,
	HOUR_MS = 60 * 60 * 1000,
	ROUNDS = 700,
	MODEL_MOST = 64,
	SPACE_RECORDS = 49, /* as it is stored */
	SPACE_TEXTS = 50,
	SPACE_COUNT = 52,
	SPACE_STAGED = 54,
	SPACE_IMAGES = 57,
};

static const char *const collections[] = { PACKED, EXPLODED };

/* ---- One operation in a transaction of its own ---- */

enum op_kind {
	OP_INSERT,
	OP_REPLACE,
	OP_UPSERT,
	OP_DELETE,
	OP_UPDATE,
	OP_GET,
	OP_GET_PATH,
	OP_WAIT,
	OP_COUNT,
	OP_LOG,
	OP_LOG_CLEAR,
};

struct op {
	enum op_kind kind;
	const char *name;
	struct plain_doc doc;
	struct bson_value id;
	struct str path;
	struct plain_change changes[4];
	size_t count;
	struct str detail;
	struct catalog_seq after;
	uint64_t ms;
	struct plain_doc before; /* the image that is kept with the event */

	struct fixture *f;
	struct arena *arena; /* of one attempt */
	enum status status;
	struct str found;
	struct bson_value value;
	bool changed;
	bool whole;
	uint64_t number;
	struct plain_event *events;
	size_t event_count;
	struct kv_tx_stats cost;
	struct err err;
};

static enum status
op_do(struct op *op, struct plain *p)
{
	struct plain_got got;
	enum status status;
	bool more;

	switch (op->kind) {
	case OP_INSERT:
		return plain_insert(p, &op->doc, op->arena);
	case OP_REPLACE:
	case OP_UPSERT:
		return plain_replace(p, &op->doc, op->kind == OP_UPSERT, PLAIN_EVENT_REPLACE,
				     op->detail, op->arena);
	case OP_DELETE:
		return plain_delete(p, &op->id, op->detail, op->arena);
	case OP_UPDATE:
		return plain_update(p, &op->id, op->changes, op->count, op->detail, op->arena,
				    &op->changed);
	case OP_GET:
		return plain_get(p, &op->id, KV_READ, op->arena, &op->found);
	case OP_GET_PATH:
		return plain_get_path(p, &op->id, op->path, KV_READ, op->arena, &op->value);
	case OP_WAIT:
		TRY(plain_ask(p, &op->id, KV_READ, op->arena, &got));
		status = plain_wait(p, &got, KV_READ, op->arena, &op->found);
		op->whole = got.whole;
		return status;
	case OP_COUNT:
		return plain_count(p, &op->number);
	case OP_LOG:
		return plain_log_read(p, &op->after, 1000, op->arena, &op->events,
				      &op->event_count);
	case OP_LOG_CLEAR:
		return plain_log_clear(p, op->ms, &more);
	}
	return STATUS_INVALID;
}

static enum status
op_body(struct kv_tx *tx, void *arg)
{
	struct op *op = arg;
	struct catalog_db *db;
	struct kv_tx_stats before;
	struct plain p;

	op->err = (struct err){ 0 };
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(op->name), &db, NULL));
	plain_init(&p, tx, db, op->ms ? op->ms : START_MS, &op->err);
	p.before = op->before;
	before = kv_tx_stats(tx);
	op->status = op_do(op, &p);
	op->cost = kv_tx_stats(tx);
	op->cost.reads -= before.reads;
	op->cost.keys_read -= before.keys_read;
	catalog_db_unref(db);
	/* What a client is told is no reason to run the transaction again; others may be. */
	switch ((int)op->status) {
	case STATUS_OK:
	case STATUS_EXISTS:
	case STATUS_NOT_FOUND:
	case STATUS_INVALID:
	case STATUS_DOC_TOO_LARGE:
		return op->status == STATUS_OK ? STATUS_OK : STATUS_CANCELLED;
	default:
		return op->status;
	}
}

/* The answer lies in the fixture's arena. */
static enum status
op_run(struct fixture *f, struct op *op)
{
	enum status status;

	op->f = f;
	op->arena = f->arena;
	status = kv_run(f->store, op_body, op, NULL, &f->err);
	if (status != STATUS_OK && status != STATUS_CANCELLED)
		fail_msg("%s: %s", status_name(status), f->err.text);
	return op->status;
}

static struct str
doc_of(struct fixture *f, const char *json)
{
	struct buf out = BUF_INIT(ARENA_BYTES);
	struct str doc;

	assert_int_equal(bson_json_read(str_from_cstr(json), &out, &f->err), STATUS_OK);
	doc = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	return doc;
}

static struct bson_value
id_of(struct str doc)
{
	struct bson_value id;

	assert_true(bson_find(doc, STR("_id"), &id));
	return id;
}

static enum status
insert(struct fixture *f, const char *name, struct str doc)
{
	struct op op = { .kind = OP_INSERT, .name = name, .doc = plain_doc_of(doc) };

	return op_run(f, &op);
}

static void
assert_document(struct fixture *f, const char *name, const struct bson_value *id,
		struct str expected)
{
	struct op op = { .kind = OP_GET, .name = name, .id = *id };

	assert_int_equal(op_run(f, &op), STATUS_OK);
	if (!str_eq(op.found, expected)) {
		struct buf a = BUF_INIT(ARENA_BYTES), b = BUF_INIT(ARENA_BYTES);

		bson_json_write(&a, op.found, BSON_JSON_CANONICAL);
		bson_json_write(&b, expected, BSON_JSON_CANONICAL);
		fail_msg("%s: %.*s instead of %.*s", name, STR_ARG(buf_str(&a)),
			 STR_ARG(buf_str(&b)));
	}
}

static uint64_t
count_of(struct fixture *f, const char *name)
{
	struct op op = { .kind = OP_COUNT, .name = name };

	assert_int_equal(op_run(f, &op), STATUS_OK);
	return op.number;
}

/* ---- Documents ---- */

static const char every_type[] =
	"{\"_id\":{\"$oid\":\"56e1fc72e0c917e9c4714161\"},\"z\":1,\"a\":{\"$numberLong\":\"1\"},"
	"\"1\":{\"$numberDouble\":\"1.0\"},\"0\":[{\"b\":{\"$minKey\":1},\"a\":null},[],{},\"x\"],"
	"\"m\":{\"y\":{\"$date\":5},\"x\":{\"$numberDecimal\":\"1.00\"},\"w\":{}},"
	"\"r\":{\"$regularExpression\":{\"pattern\":\"a\",\"options\":\"i\"}},"
	"\"c\":{\"$code\":\"f\",\"$scope\":{\"q\":1}},\"u\":{\"$undefined\":true},"
	"\"\":{\"$binary\":{\"base64\":\"//8=\",\"subType\":\"80\"}},"
	"\"t\":{\"$timestamp\":{\"t\":4294967295,\"i\":1}},\"s\":{\"$symbol\":\"s\"},\"k\":true,"
	"\"p\":{\"$dbPointer\":{\"$ref\":\"b\",\"$id\":{\"$oid\":\"56e1fc72e0c917e9c4714161\"}}}}";

static void
documents_come_back_byte_for_byte(void **state)
{
	static const char *const docs[] = {
		every_type,
		"{\"_id\":null}",
		"{\"_id\":{\"b\":1,\"a\":[1]},\"x\":1}",
		/* A name that comes twice is kept, whatever the scheme. */
		"{\"_id\":7,\"a\":1,\"a\":2}",
		"{\"_id\":8,\"a\":{\"b\":1,\"b\":{}},\"_id\":9}",
	};
	struct fixture *f = *state;

	for (size_t c = 0; c < 2; c++)
		for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]); i++) {
			struct str doc = doc_of(f, docs[i]);
			struct bson_value id = id_of(doc);

			assert_int_equal(insert(f, collections[c], doc), STATUS_OK);
			assert_document(f, collections[c], &id, doc);
			assert_int_equal(insert(f, collections[c], doc), STATUS_EXISTS);
			assert_int_equal(count_of(f, collections[c]), i + 1);
		}
	verified_none(f->store);
}

static void
ids_of_equal_value_are_one_id(void **state)
{
	static const char *const same[] = { "{\"_id\":1}", "{\"_id\":{\"$numberLong\":\"1\"}}",
					    "{\"_id\":1.0}",
					    "{\"_id\":{\"$numberDecimal\":\"1.00\"}}" };
	struct fixture *f = *state;

	for (size_t c = 0; c < 2; c++) {
		assert_int_equal(insert(f, collections[c], doc_of(f, same[0])), STATUS_OK);
		for (size_t i = 0; i < 4; i++) {
			struct bson_value id = id_of(doc_of(f, same[i]));

			assert_int_equal(insert(f, collections[c], doc_of(f, same[i])),
					 STATUS_EXISTS);
			assert_document(f, collections[c], &id, doc_of(f, same[0]));
		}
	}
}

static void
long_ids_are_kept_apart(void **state)
{
	struct fixture *f = *state;
	char *text = calloc(1, PLAIN_ID_VALUE_BYTES + 1);

	memset(text, 'x', PLAIN_ID_VALUE_BYTES);
	for (size_t c = 0; c < 2; c++)
		for (size_t i = 0; i < 4; i++) {
			struct buf out = BUF_INIT(ARENA_BYTES);
			/* Too long is what the type's byte and the length do not fit beside. */
			size_t len = i < 3 ? 5000 : PLAIN_ID_VALUE_BYTES;
			struct bson_builder b;
			struct bson_value id;

			text[4999] = (char)('a' + i);
			bson_builder_init(&b, &out);
			bson_begin(&b);
			bson_put_string(&b, STR("_id"), str_of(text, len));
			bson_end(&b);
			id = id_of(buf_str(&out));
			assert_int_equal(insert(f, collections[c], buf_str(&out)),
					 i < 3 ? STATUS_OK : STATUS_INVALID);
			if (i < 3)
				assert_document(f, collections[c], &id, buf_str(&out));
			buf_release(&out);
		}
	free(text);
	verified_none(f->store);
}

static void
what_is_no_document_is_refused(void **state)
{
	struct fixture *f = *state;

	for (size_t c = 0; c < 2; c++) {
		assert_int_equal(insert(f, collections[c], BSON_EMPTY), STATUS_INVALID);
		assert_int_equal(insert(f, collections[c], doc_of(f, "{\"a\":1,\"_id\":1}")),
				 STATUS_INVALID);
	}
}

static void
documents_are_replaced_and_deleted(void **state)
{
	struct fixture *f = *state;
	struct str first = doc_of(f, every_type);
	struct str second = doc_of(
		f, "{\"_id\":{\"$oid\":\"56e1fc72e0c917e9c4714161\"},\"m\":{\"x\":[1,2]}}");
	struct bson_value id = id_of(first);

	for (size_t c = 0; c < 2; c++) {
		struct op op = { .name = collections[c], .id = id };

		op.kind = OP_REPLACE;
		op.doc = plain_doc_of(first);
		assert_int_equal(op_run(f, &op), STATUS_NOT_FOUND);
		op.kind = OP_UPSERT;
		assert_int_equal(op_run(f, &op), STATUS_OK);
		op.doc = plain_doc_of(second);
		assert_int_equal(op_run(f, &op), STATUS_OK);
		assert_document(f, collections[c], &id, second);
		assert_int_equal(count_of(f, collections[c]), 1);
		op.kind = OP_DELETE;
		assert_int_equal(op_run(f, &op), STATUS_OK);
		assert_int_equal(op_run(f, &op), STATUS_NOT_FOUND);
		assert_int_equal(count_of(f, collections[c]), 0);
		op.kind = OP_GET;
		assert_int_equal(op_run(f, &op), STATUS_NOT_FOUND);
	}
	verified_none(f->store);
}

/* ---- Parts of documents ---- */

static struct op
update_op(const char *name, struct bson_value id, const char *path, const struct bson_value *value)
{
	return (struct op){ .kind = OP_UPDATE,
			    .name = name,
			    .id = id,
			    .changes = { { str_from_cstr(path), value } },
			    .count = 1 };
}

static void
values_are_read_by_their_path(void **state)
{
	struct fixture *f = *state;
	struct str doc = doc_of(f, every_type);
	struct bson_value id = id_of(doc);

	for (size_t c = 0; c < 2; c++) {
		static const char *const there[] = { "z",   "1",   "0.0.b", "0.1", "0.3",
						     "m.x", "m.w", "_id",   "0",   "m" };
		static const char *const missing[] = { "y", "0.4", "0.00", "m.0", "z.a", "2", "" };
		struct op op = { .kind = OP_GET_PATH, .name = collections[c], .id = id };

		assert_int_equal(insert(f, collections[c], doc), STATUS_OK);
		for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
			struct bson_value expected;

			op.path = str_from_cstr(there[i]);
			assert_true(bson_find_path(doc, op.path, &expected));
			assert_int_equal(op_run(f, &op), STATUS_OK);
			assert_int_equal(op.value.type, expected.type);
			assert_true(bson_equals(&op.value, &expected));
		}
		for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
			op.path = str_from_cstr(missing[i]);
			if (op.path.len || c)
				assert_int_equal(op_run(f, &op),
						 op.path.len ? STATUS_NOT_FOUND : STATUS_OK);
		}
	}
}

/* What the text of the Document Layer promises: a field is one key. */
static void
a_field_is_a_point_read_and_its_update_one_pair(void **state)
{
	struct fixture *f = *state;
	struct buf json = BUF_INIT(ARENA_BYTES);
	struct bson_value id = BSON_OF_INT32(1), value = BSON_OF_INT32(20000);
	struct op read = { .kind = OP_GET_PATH, .name = EXPLODED, .id = id };
	struct op op = update_op(EXPLODED, id, "salary", &value);

	if (test_store_fails())
		return; /* attempts that fail read and write as well */
	buf_append_cstr(&json, "{\"_id\":1,\"name\":\"Eric\",\"salary\":10000");
	for (int i = 0; i < 3000; i++)
		buf_printf(&json, ",\"field %d\":\"some text that makes the document large\"", i);
	buf_append_cstr(&json, "}");
	buf_append_byte(&json, 0);
	assert_int_equal(insert(f, EXPLODED, doc_of(f, json.ptr)), STATUS_OK);
	read.path = STR("salary");
	assert_int_equal(op_run(f, &read), STATUS_OK);
	assert_int_equal(bson_integer(&read.value), 10000);
	assert_int_equal(read.cost.keys_read, 1);
	assert_int_equal(op_run(f, &op), STATUS_OK);
	assert_true(op.changed);
	/* The root and the leaf; the leaf, the event, the stamp that is watched. */
	assert_int_equal(op.cost.keys_read, 2);
	assert_int_equal(op.cost.sets, 3);
	assert_true(op.cost.bytes_written < 300);
	assert_int_equal(op_run(f, &op), STATUS_OK);
	assert_false(op.changed);
	buf_release(&json);
	verified_none(f->store);
}

static void
changes_leave_what_they_say(void **state)
{
	static const struct {
		const char *path;
		const char *value; /* as {"v": …}; NULL: taken out */
		const char *after; /* or, of a change that is refused, some words of the reason */
	} changes[] = {
		{ "a", "{\"v\":2}", "{\"_id\":1,\"a\":2,\"b\":{\"c\":[1]}}" },
		{ "b.c.0", "{\"v\":\"x\"}", "{\"_id\":1,\"a\":2,\"b\":{\"c\":[\"x\"]}}" },
		{ "b.c.3", "{\"v\":{}}", "{\"_id\":1,\"a\":2,\"b\":{\"c\":[\"x\",null,null,{}]}}" },
		{ "b.c.3.d", "{\"v\":1}",
		  "{\"_id\":1,\"a\":2,\"b\":{\"c\":[\"x\",null,null,{\"d\":1}]}}" },
		{ "b.c.x", "{\"v\":1}", "the member \"x\" in an array" },
		{ "a.x.y", "{\"v\":1}", "make \"x\" in what is neither" },
		{ "_id", "{\"v\":1}", "_id" },
		{ "b..c", "{\"v\":1}", "path" },
		{ "b.c.20000", "{\"v\":1}", "PLAIN_PADDING" },
		{ "b.c.3", NULL, "{\"_id\":1,\"a\":2,\"b\":{\"c\":[\"x\",null,null,null]}}" },
		{ "b.c.9", NULL, "{\"_id\":1,\"a\":2,\"b\":{\"c\":[\"x\",null,null,null]}}" },
		{ "b.c", NULL, "{\"_id\":1,\"a\":2,\"b\":{}}" },
		{ "a", NULL, "{\"_id\":1,\"b\":{}}" },
		{ "0.1.2", "{\"v\":1}", "{\"_id\":1,\"b\":{},\"0\":{\"1\":{\"2\":1}}}" },
		{ "a", "{\"v\":[{\"z\":1,\"y\":[]}]}",
		  "{\"_id\":1,\"b\":{},\"0\":{\"1\":{\"2\":1}},\"a\":[{\"z\":1,\"y\":[]}]}" },
		{ "b", "{\"v\":{\"k\":1,\"k\":2}}",
		  "{\"_id\":1,\"b\":{\"k\":1,\"k\":2},\"0\":{\"1\":{\"2\":1}},"
		  "\"a\":[{\"z\":1,\"y\":[]}]}" },
		{ "b.k", "{\"v\":3}",
		  "{\"_id\":1,\"b\":{\"k\":3,\"k\":2},\"0\":{\"1\":{\"2\":1}},"
		  "\"a\":[{\"z\":1,\"y\":[]}]}" },
	};
	struct fixture *f = *state;

	for (size_t c = 0; c < 2; c++) {
		struct bson_value id = BSON_OF_INT32(1);

		assert_int_equal(insert(f, collections[c],
					doc_of(f, "{\"_id\":1,\"a\":1,\"b\":{\"c\":[1]}}")),
				 STATUS_OK);
		for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
			struct bson_value value;
			struct op op = update_op(collections[c], id, changes[i].path, NULL);

			if (changes[i].value) {
				assert_true(
					bson_find(doc_of(f, changes[i].value), STR("v"), &value));
				op.changes[0].value = &value;
			}
			if (changes[i].after[0] != '{') {
				assert_int_equal(op_run(f, &op), STATUS_INVALID);
				assert_non_null(strstr(op.err.text, changes[i].after));
				continue;
			}
			assert_int_equal(op_run(f, &op), STATUS_OK);
			assert_document(f, collections[c], &id, doc_of(f, changes[i].after));
		}
	}
	verified_none(f->store);
}

/* ---- Large documents ---- */

/* {_id: 1, f0: "xxx…", f1: …} of about that many bytes, in strings of 64 KB. */
static struct str
large_document(struct fixture *f, size_t bytes, char fill)
{
	enum {
		PART = 64 * 1024
	};
	struct buf out = BUF_INIT(ARENA_BYTES);
	char *part = malloc(PART);
	struct bson_builder b;
	struct str doc;
	int n = 0;

	memset(part, fill, PART);
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_int32(&b, STR("_id"), 1);
	while (out.len < bytes) {
		size_t rest = bytes - out.len;
		char name[16];

		(void)snprintf(name, sizeof(name), "f%d", n++);
		bson_put_string(&b, str_from_cstr(name), str_of(part, rest < PART ? rest : PART));
	}
	bson_end(&b);
	doc = arena_dup(f->arena, buf_str(&out));
	assert_non_null(doc.ptr);
	buf_release(&out);
	free(part);
	return doc;
}

static struct catalog_db *
open_collection(struct fixture *f, const char *name)
{
	struct catalog_db *db = NULL;
	struct kv_tx *tx;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	while (catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name), &db, &f->err) !=
	       STATUS_OK) {
		assert_true(test_store_fails());
		kv_tx_reset(tx);
	}
	kv_tx_free(tx);
	return db;
}

static void
large_documents_lie_in_chunks(void **state)
{
	static const size_t sizes[] = { 90000, 120000, 1500000, 5000000, (16 << 20) - 1000 };
	struct fixture *f = *state;
	struct bson_value id = BSON_OF_INT32(1), small = BSON_OF_INT32(5);

	for (size_t c = 0; c < 2; c++) {
		struct catalog_db *db = open_collection(f, collections[c]);
		struct op op = { .name = collections[c], .id = id };

		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct str doc = large_document(f, sizes[i], (char)('a' + i));

			op.kind = OP_UPSERT;
			op.doc = plain_doc_of(doc);
			if (sizes[i] > PLAIN_AHEAD_BYTES)
				assert_int_equal(op_run(f, &op), STATUS_DOC_TOO_LARGE);
			assert_int_equal(plain_stage(f->store, db, doc, &op.doc, &f->err),
					 STATUS_OK);
			assert_int_equal(op_run(f, &op), STATUS_OK);
			assert_document(f, collections[c], &id, doc);
			arena_clear(f->arena);
		}
		verified_none(f->store);
		op.kind = OP_UPDATE;
		op.changes[0] = (struct plain_change){ STR("f1"), &small };
		op.count = 1;
		assert_int_equal(op_run(f, &op), STATUS_DOC_TOO_LARGE);
		op.kind = OP_DELETE;
		assert_int_equal(op_run(f, &op), STATUS_OK);
		catalog_db_unref(db);
	}
	verified_none(f->store);
	assert_int_equal(insert(f, PACKED, large_document(f, BSON_DOCUMENT_BYTES + 1, 'a')),
			 STATUS_DOC_TOO_LARGE);
}

/* So that it may be replaced without being read again. */
static void
a_document_in_one_value_is_told(void **state)
{
	struct fixture *f = *state;
	struct op op = { .kind = OP_WAIT, .id = BSON_OF_INT32(1) };

	for (size_t c = 0; c < 2; c++) {
		op.name = collections[c];
		assert_int_equal(op_run(f, &op), STATUS_NOT_FOUND);
		assert_false(op.whole);
		assert_int_equal(insert(f, op.name, doc_of(f, "{\"_id\":1,\"a\":2}")), STATUS_OK);
		assert_int_equal(op_run(f, &op), STATUS_OK);
		assert_int_equal(op.whole, c == 0);
		op.kind = OP_DELETE;
		assert_int_equal(op_run(f, &op), STATUS_OK);
		/* In chunks, or in leaves. */
		assert_int_equal(insert(f, op.name, large_document(f, 200000, 'a')), STATUS_OK);
		op.kind = OP_WAIT;
		assert_int_equal(op_run(f, &op), STATUS_OK);
		assert_false(op.whole);
	}
}

static size_t
keys_below(struct fixture *f, const char *name, uint64_t space)
{
	struct catalog_db *db = open_collection(f, name);
	struct buf begin = BUF_INIT(100), end = BUF_INIT(100);
	struct kv_scan scan;
	struct kv_pair pair;
	struct kv_tx *tx;
	enum status status;
	size_t count = 0;

	buf_append_str(&begin, db->prefix);
	tuple_put_u64(&begin, space);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), NULL), STATUS_OK);
	while ((status = kv_scan_next(&scan, &pair)) != STATUS_NOT_FOUND) {
		if (status == STATUS_OK)
			count++;
		else
			assert_int_equal(kv_scan_retry(&scan, status), STATUS_OK);
	}
	kv_scan_release(&scan);
	kv_tx_free(tx);
	catalog_db_unref(db);
	buf_release(&begin);
	buf_release(&end);
	return count;
}

static void
what_was_written_ahead_in_vain_is_removed(void **state)
{
	struct fixture *f = *state;
	struct catalog_db *db = open_collection(f, PACKED);
	struct str doc = large_document(f, 3000000, 'x');
	struct op op = { .kind = OP_INSERT, .name = PACKED };
	AUTO(buf_release) struct buf place = BUF_INIT(400);
	uint64_t now_ms = clock_wall_ms();
	bool more;

	assert_int_equal(plain_stage(f->store, db, doc, &op.doc, &f->err), STATUS_OK);
	verified_none(f->store);
	assert_int_equal(plain_sweep(f->store, now_ms, &place, &more, &f->err), STATUS_OK);
	assert_true(keys_below(f, PACKED, SPACE_TEXTS) > 30);
	now_ms += 2 * HOUR_MS;
	assert_int_equal(plain_sweep(f->store, now_ms, &place, &more, &f->err), STATUS_OK);
	assert_int_equal(keys_below(f, PACKED, SPACE_TEXTS), 0);
	verified_none(f->store);
	catalog_db_unref(db);
}

static void
long_images_go_with_their_events(void **state)
{
	enum {
		PARTS = 34 /* of 3,000,000 bytes, 90,000 each */
	};
	struct fixture *f = *state;
	struct catalog_db *db = open_collection(f, PACKED);
	struct str doc = large_document(f, 3000000, 'x');
	struct op op = { .kind = OP_DELETE, .name = PACKED, .id = BSON_OF_INT32(1) };
	AUTO(buf_release) struct buf place = BUF_INIT(400);
	uint64_t now_ms = clock_wall_ms();
	struct plain_doc idle, image;
	bool more;

	assert_int_equal(plain_stage_image(f->store, db, doc, &image, &f->err), STATUS_OK);
	assert_int_equal(plain_stage_image(f->store, db, doc, &idle, &f->err), STATUS_OK);
	assert_int_equal(keys_below(f, PACKED, SPACE_STAGED), 2);
	for (int i = 0; i < 2; i++) {
		op.kind = OP_INSERT;
		op.doc = plain_doc_of(doc_of(f, "{\"_id\": 1}"));
		assert_int_equal(op_run(f, &op), STATUS_OK);
		op.kind = OP_DELETE;
		op.before = i ? plain_doc_of(STR("")) : image;
		assert_int_equal(op_run(f, &op), STATUS_OK);
		op.before = plain_doc_of(STR(""));
	}
	verified_none(f->store);
	assert_int_equal(keys_below(f, PACKED, SPACE_STAGED), 1);
	assert_int_equal(keys_below(f, PACKED, SPACE_IMAGES), 2 * PARTS + 1);
	/* The one that no event has, after an hour. */
	assert_int_equal(plain_sweep(f->store, now_ms + 2 * HOUR_MS, &place, &more, &f->err),
			 STATUS_OK);
	verified_none(f->store);
	assert_int_equal(keys_below(f, PACKED, SPACE_STAGED), 0);
	op.kind = OP_LOG_CLEAR;
	op.ms = START_MS + 1;
	assert_int_equal(op_run(f, &op), STATUS_OK);
	assert_int_equal(keys_below(f, PACKED, SPACE_IMAGES), 0);
	verified_none(f->store);
	catalog_db_unref(db);
}

/* ---- Scans ---- */

/* Reads `limit` documents from the place, and says where it stopped. */
struct listing {
	const char *name;
	struct plain_range range;
	size_t limit;
	struct arena *arena;
	struct buf *place;
	int64_t ids[64];
	size_t count;
};

static enum status
listing_body(struct kv_tx *tx, void *arg)
{
	struct listing *l = arg;
	struct plain_scan scan;
	struct catalog_db *db;
	struct bson_value id;
	struct plain p;
	enum status status;
	struct str doc;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(l->name), &db, NULL));
	l->count = 0;
	plain_init(&p, tx, db, 0, NULL);
	status = plain_scan_open(&scan, &p, &l->range);
	while (status == STATUS_OK && l->count < l->limit) {
		status = plain_scan_next(&scan, l->arena, &doc);
		if (status == STATUS_OK && bson_find(doc, STR("_id"), &id))
			l->ids[l->count++] = bson_integer(&id);
	}
	if (status == STATUS_OK || status == STATUS_NOT_FOUND) {
		buf_clear(l->place);
		buf_append_str(l->place, plain_scan_place(&scan));
	}
	plain_scan_close(&scan);
	catalog_db_unref(db);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
documents_come_in_the_order_of_their_ids(void **state)
{
	enum {
		COUNT = 20
	};
	struct fixture *f = *state;
	struct bson_value from = BSON_OF_INT32(5), to = BSON_OF_DOUBLE(12);

	for (size_t c = 0; c < 2; c++) {
		struct buf place = BUF_INIT(ARENA_BYTES), resume = BUF_INIT(ARENA_BYTES);
		struct listing l = { .name = collections[c], .arena = f->arena, .place = &place };
		int64_t next;

		for (int i = 0; i < COUNT; i++) {
			char json[100];

			(void)snprintf(json, sizeof(json),
				       "{\"_id\":%d,\"a\":{\"b\":[%d,\"x\"]},\"c\":1}",
				       i * 7 % COUNT, i);
			assert_int_equal(insert(f, collections[c], doc_of(f, json)), STATUS_OK);
		}
		for (int reverse = 0; reverse < 2; reverse++) {
			next = reverse ? COUNT - 1 : 0;
			buf_clear(&resume);
			do {
				l.range = (struct plain_range){ .reverse = reverse,
								.resume = buf_str(&resume) };
				l.limit = 3;
				assert_int_equal(kv_run_read(f->store, listing_body, &l, &f->err),
						 STATUS_OK);
				for (size_t i = 0; i < l.count; i++, next += reverse ? -1 : 1)
					assert_int_equal(l.ids[i], next);
				buf_clear(&resume);
				buf_append_str(&resume, buf_str(&place));
			} while (l.count == 3);
			assert_int_equal(next, reverse ? -1 : COUNT);
		}
		l.range = (struct plain_range){
			.from = &from, .to = &to, .from_open = true, .to_open = false
		};
		l.limit = 64;
		assert_int_equal(kv_run_read(f->store, listing_body, &l, &f->err), STATUS_OK);
		assert_int_equal(l.count, 7);
		assert_int_equal(l.ids[0], 6);
		l.range = (struct plain_range){ .from = &from, .to = &to, .to_open = true };
		assert_int_equal(kv_run_read(f->store, listing_body, &l, &f->err), STATUS_OK);
		assert_int_equal(l.count, 7);
		assert_int_equal(l.ids[0], 5);
		buf_release(&place);
		buf_release(&resume);
	}
}

/* ---- The log ---- */

static void
every_change_is_an_event(void **state)
{
	struct fixture *f = *state;
	struct str doc = doc_of(f, "{\"_id\":1,\"a\":1}");
	struct bson_value id = id_of(doc), two = BSON_OF_INT32(2);
	struct op op = { .kind = OP_LOG, .name = EXPLODED };
	struct op change = update_op(EXPLODED, id, "a", &two);
	struct op delete = { .kind = OP_DELETE, .name = EXPLODED, .id = id };
	struct op clear = { .kind = OP_LOG_CLEAR, .name = EXPLODED, .ms = START_MS + 1 };

	assert_int_equal(insert(f, EXPLODED, doc), STATUS_OK);
	change.detail = doc_of(f, "{\"updated\":{\"a\":2}}");
	assert_int_equal(op_run(f, &change), STATUS_OK);
	assert_int_equal(op_run(f, &change), STATUS_OK); /* nothing is different */
	assert_int_equal(op_run(f, &delete), STATUS_OK);
	assert_int_equal(op_run(f, &op), STATUS_OK);
	assert_int_equal(op.event_count, 3);
	assert_int_equal(op.events[0].kind, PLAIN_EVENT_INSERT);
	assert_true(str_eq(op.events[0].detail, doc));
	assert_int_equal(op.events[1].kind, PLAIN_EVENT_UPDATE);
	assert_true(str_eq(op.events[1].detail, change.detail));
	assert_int_equal(op.events[2].kind, PLAIN_EVENT_DELETE);
	assert_int_equal(bson_integer(&op.events[2].id), 1);
	assert_int_equal(op.events[2].ms, START_MS);
	assert_true(catalog_seq_cmp(&op.events[0].seq, &op.events[1].seq) < 0);
	op.after = op.events[1].seq;
	assert_int_equal(op_run(f, &op), STATUS_OK);
	assert_int_equal(op.event_count, 1);
	assert_int_equal(op_run(f, &clear), STATUS_OK);
	op.after = (struct catalog_seq){ 0 };
	assert_int_equal(op_run(f, &op), STATUS_OK);
	assert_int_equal(op.event_count, 1);
	assert_int_equal(op.events[0].kind, PLAIN_EVENT_DELETE);
	verified_none(f->store);
}

/* A document begins with its length, and so with any byte. */
static void
events_have_documents_of_any_length(void **state)
{
	char json[400];

	for (int i = 0; i < 300; i++) {
		(void)snprintf(json, sizeof(json), "{\"_id\":%d,\"a\":\"%0*d\"}", i, i + 1, 0);
		assert_int_equal(insert(*state, PACKED, doc_of(*state, json)), STATUS_OK);
	}
	verified_none(((struct fixture *)*state)->store);
}

/* ---- Collections ---- */

struct collection_op {
	const char *from;
	const char *to; /* NULL: dropped */
	struct str options;
	enum status status;
};

static enum status
collection_body(struct kv_tx *tx, void *arg)
{
	struct collection_op *op = arg;
	struct catalog_db *db;

	if (op->options.len) {
		TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(op->from), &db,
				 NULL));
		op->status = plain_options_set(tx, db, op->options, NULL);
		catalog_db_unref(db);
	} else if (op->to) {
		op->status = plain_rename(tx, str_from_cstr(op->from), str_from_cstr(op->to), NULL);
	} else {
		op->status = catalog_delete(tx, CATALOG_SPACE_MONGO, str_from_cstr(op->from), NULL);
	}
	return op->status == STATUS_NOT_FOUND || op->status == STATUS_EXISTS ||
			       op->status == STATUS_INVALID
		       ? STATUS_CANCELLED
		       : op->status;
}

static enum status
collection_do(struct fixture *f, const char *from, const char *to, struct str options)
{
	struct collection_op op = { .from = from, .to = to, .options = options };
	enum status status = kv_run(f->store, collection_body, &op, NULL, &f->err);

	assert_true(status == STATUS_OK || status == STATUS_CANCELLED);
	return op.status;
}

static void
collections_are_renamed_and_dropped(void **state)
{
	struct fixture *f = *state;
	struct str doc = doc_of(f, every_type), options = doc_of(f, "{\"capped\":false}");
	struct bson_value id = id_of(doc);
	const struct str none = { "", 0 };
	struct catalog_db *db;

	assert_int_equal(insert(f, EXPLODED, doc), STATUS_OK);
	assert_int_equal(collection_do(f, EXPLODED, NULL, options), STATUS_OK);
	assert_int_equal(collection_do(f, EXPLODED, PACKED, none), STATUS_EXISTS);
	assert_int_equal(collection_do(f, EXPLODED, "nodot", none), STATUS_INVALID);
	assert_int_equal(collection_do(f, EXPLODED, "a b.c", none), STATUS_INVALID);
	assert_int_equal(collection_do(f, EXPLODED, ".c", none), STATUS_INVALID);
	assert_int_equal(collection_do(f, EXPLODED, "a.$b", none), STATUS_INVALID);
	assert_int_equal(collection_do(f, "db.none", "db.other", none), STATUS_NOT_FOUND);
	assert_int_equal(collection_do(f, EXPLODED, "other.system.x", none), STATUS_OK);
	assert_document(f, "other.system.x", &id, doc);
	db = open_collection(f, "other.system.x");
	assert_true(str_eq(plain_options_of(db), options));
	assert_int_equal(plain_scheme_of(db), PLAIN_EXPLODED);
	catalog_db_unref(db);
	assert_int_equal(collection_do(f, EXPLODED, "db.b", none), STATUS_NOT_FOUND);
	assert_int_equal(collection_do(f, "other.system.x", NULL, none), STATUS_OK);
	assert_int_equal(collection_do(f, "other.system.x", NULL, none), STATUS_NOT_FOUND);
	verified_none(f->store);
}

/* ---- For people ---- */

static void
records_are_drawn_as_the_text_prints_them(void **state)
{
	static const char *const expected[] = { ":1 -> _id 1", ":1:name -> Eric",
						":1:salary -> 10000", ":1:title -> Engineer" };
	struct fixture *f = *state;
	struct catalog_db *db = open_collection(f, EXPLODED);
	struct buf begin = BUF_INIT(100), end = BUF_INIT(100);
	struct kv_future *range;
	struct kv_tx *tx;

	if (test_store_fails()) {
		catalog_db_unref(db);
		return; /* the transaction below is not tried again */
	}
	assert_int_equal(insert(f, EXPLODED,
				doc_of(f, "{\"_id\":1,\"name\":\"Eric\",\"title\":\"Engineer\","
					  "\"salary\":10000}")),
			 STATUS_OK);
	buf_append_str(&begin, db->prefix);
	tuple_put_u64(&begin, SPACE_RECORDS);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	range = kv_get_range(tx, buf_str(&begin), buf_str(&end), NULL);
	assert_int_equal(kv_future_wait(range), STATUS_OK);
	assert_int_equal(kv_future_range(range).count, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct kv_pair *pair = &kv_future_range(range).pairs[i];
		struct buf out = BUF_INIT(10000);
		char line[100];

		assert_true(plain_kind.draw_pair(db, SPACE_RECORDS, str_skip(pair->key, begin.len),
						 pair->value, &out));
		buf_append_byte(&out, 0);
		(void)snprintf(line, sizeof(line), "0x%04x%s", (unsigned)db->number, expected[i]);
		assert_string_equal(out.ptr, line);
		buf_release(&out);
	}
	kv_tx_free(tx);
	catalog_db_unref(db);
	buf_release(&begin);
	buf_release(&end);
}

/* ---- What a check finds ---- */

struct damage {
	struct str prefix;
	uint64_t space;
	size_t nth;       /* key of the subspace */
	struct str value; /* ptr NULL: the key is cleared */
};

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	const struct damage *d = arg;
	AUTO(buf_release) struct buf begin = BUF_INIT(100);
	AUTO(buf_release) struct buf end = BUF_INIT(100);
	struct kv_future *f;
	struct kv_range range;

	buf_append_str(&begin, d->prefix);
	tuple_put_u64(&begin, d->space);
	buf_append_str(&end, buf_str(&begin));
	buf_append_byte(&end, 0xff);
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), NULL);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (range.count <= d->nth)
		return STATUS_INVALID;
	if (!d->value.ptr)
		return kv_clear(tx, range.pairs[d->nth].key);
	return kv_set(tx, range.pairs[d->nth].key, d->value);
}

static void
damage_is_found(void **state)
{
	static const struct {
		const char *name;
		uint64_t space;
		size_t nth;
		const char *value;
		size_t value_bytes;
		const char *finding;
	} damages[] = {
		{ EXPLODED, SPACE_RECORDS, 0, NULL, 0, "plain_document" }, /* the root */
		{ EXPLODED, SPACE_RECORDS, 1, NULL, 0, "plain_document" }, /* a container */
		{ EXPLODED, SPACE_RECORDS, 2, NULL, 0, "plain_document" }, /* an element */
		{ EXPLODED, SPACE_RECORDS, 0, "x", 1, "unreadable_value" },
		{ PACKED, SPACE_RECORDS, 0, "\x15\x01\x05\0\0\0\0", 7, "plain_document" },
		{ PACKED, SPACE_RECORDS, 0, "\x15\x63", 2, "newer_format" },
		{ PACKED, SPACE_TEXTS, 0, NULL, 0, "plain_text" }, /* the header */
		{ PACKED, SPACE_TEXTS, 2, NULL, 0, "plain_text" }, /* a chunk */
		{ PACKED, SPACE_COUNT, 0, "\7\0\0\0\0\0\0\0", 8, "plain_count" },
	};
	const size_t count = sizeof(damages) / sizeof(damages[0]);

	for (size_t i = 0; i < count; i++) {
		struct fixture *f;
		struct catalog_db *db;
		struct damage d = { .space = damages[i].space,
				    .nth = damages[i].nth,
				    .value = str_of(damages[i].value, damages[i].value_bytes) };
		struct verified findings;
		void *own;

		(void)state;
		assert_int_equal(fixture_setup(&own), 0);
		f = own;
		db = open_collection(f, damages[i].name);
		assert_int_equal(insert(f, EXPLODED, doc_of(f, "{\"_id\":1,\"a\":[1,2],\"b\":1}")),
				 STATUS_OK);
		assert_int_equal(insert(f, PACKED, doc_of(f, "{\"_id\":0,\"a\":[1,2]}")),
				 STATUS_OK);
		assert_int_equal(insert(f, PACKED, large_document(f, 300000, 'x')), STATUS_OK);
		verified_none(f->store);
		d.prefix = db->prefix;
		assert_int_equal(kv_run(f->store, damage_body, &d, NULL, &f->err), STATUS_OK);
		verified_read(f->store, &findings);
		assert_true(findings.count > 0);
		if (damages[i].space != SPACE_RECORDS &&
		    strncmp(findings.last, damages[i].finding, strlen(damages[i].finding)) != 0)
			fail_msg("%zu: %s instead of %s", i, findings.last, damages[i].finding);
		catalog_db_unref(db);
		fixture_teardown(&own);
	}
}

/* ---- Random operations ---- */

/* Documents that should be there. */
struct model {
	struct arena *arena;
	struct str docs[MODEL_MOST];
	size_t count;
};

static size_t
model_find(const struct model *m, const struct bson_value *id)
{
	struct bson_value other;

	for (size_t i = 0; i < m->count; i++)
		if (bson_find(m->docs[i], STR("_id"), &other) && bson_equals(&other, id))
			return i;
	return m->count;
}

static void
random_update(struct fixture *f, struct rand_seq *r, struct model *m, struct op *op, size_t at)
{
	struct bson_value values[4];
	enum status expected = STATUS_NOT_FOUND;
	struct str after = { 0 };

	op->kind = OP_UPDATE;
	op->count = 1 + rand_seq_below(r, 3);
	for (size_t i = 0; i < op->count; i++) {
		values[i] = random_value(r, m->arena, 2);
		op->changes[i].path = random_path(r, m->arena);
		op->changes[i].value = rand_seq_below(r, 3) ? &values[i] : NULL;
	}
	if (at < m->count)
		expected = plain_apply(m->docs[at], op->changes, op->count, m->arena, &after, NULL);
	assert_int_equal(op_run(f, op), expected);
	if (expected != STATUS_OK)
		return;
	/* Several changes may undo each other. */
	if (op->count == 1 || !str_eq(m->docs[at], after))
		assert_int_equal(op->changed, !str_eq(m->docs[at], after));
	m->docs[at] = after;
}

static void
random_op(struct fixture *f, struct rand_seq *r, struct model *m, const char *name)
{
	struct bson_value id = random_id(r);
	struct op op = { .name = name, .id = id };
	size_t at = model_find(m, &id);
	bool exists = at < m->count;

	op.doc = plain_doc_of(random_plain_document(r, m->arena, &id));
	switch (rand_seq_below(r, 8)) {
	case 0:
	case 1:
		op.kind = OP_INSERT;
		assert_int_equal(op_run(f, &op), exists ? STATUS_EXISTS : STATUS_OK);
		if (!exists)
			m->docs[m->count++] = op.doc.bytes;
		return;
	case 2:
		op.kind = rand_seq_below(r, 2) ? OP_REPLACE : OP_UPSERT;
		assert_int_equal(op_run(f, &op),
				 exists || op.kind == OP_UPSERT ? STATUS_OK : STATUS_NOT_FOUND);
		if (exists)
			m->docs[at] = op.doc.bytes;
		else if (op.kind == OP_UPSERT)
			m->docs[m->count++] = op.doc.bytes;
		return;
	case 3:
		op.kind = OP_DELETE;
		assert_int_equal(op_run(f, &op), exists ? STATUS_OK : STATUS_NOT_FOUND);
		if (exists)
			m->docs[at] = m->docs[--m->count];
		return;
	default:
		random_update(f, r, m, &op, at);
	}
}

static void
random_operations_agree_with_a_list(void **state)
{
	struct fixture *f = *state;
	struct rand_seq r = { test_seed() };
	int rounds = test_rounds(ROUNDS);

	for (size_t c = 0; c < 2; c++) {
		struct model m = { .arena = arena_new(ARENA_BYTES) };

		for (int i = 0; i < rounds; i++) {
			random_op(f, &r, &m, collections[c]);
			if (i % 50 == 0) {
				assert_int_equal(count_of(f, collections[c]), m.count);
				for (size_t n = 0; n < m.count; n++) {
					struct bson_value id = id_of(m.docs[n]);

					assert_document(f, collections[c], &id, m.docs[n]);
				}
			}
			arena_clear(f->arena);
		}
		verified_none(f->store);
		arena_free(m.arena);
	}
}

int
main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(documents_come_back_byte_for_byte),
		CASE(ids_of_equal_value_are_one_id),
		CASE(long_ids_are_kept_apart),
		CASE(what_is_no_document_is_refused),
		CASE(documents_are_replaced_and_deleted),
		CASE(values_are_read_by_their_path),
		CASE(a_field_is_a_point_read_and_its_update_one_pair),
		CASE(changes_leave_what_they_say),
		CASE(large_documents_lie_in_chunks),
		CASE(a_document_in_one_value_is_told),
		CASE(what_was_written_ahead_in_vain_is_removed),
		CASE(long_images_go_with_their_events),
		CASE(documents_come_in_the_order_of_their_ids),
		CASE(every_change_is_an_event),
		CASE(events_have_documents_of_any_length),
		CASE(collections_are_renamed_and_dropped),
		CASE(records_are_drawn_as_the_text_prints_them),
		cmocka_unit_test(damage_is_found),
		CASE(random_operations_agree_with_a_list),
	};

	return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
