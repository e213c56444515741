/*
 * Indexes of collections: what entries a document has, what writers leave, builds beside writers,
 * refusals, damage, and random operations, each of which the check of the store follows in both
 * directions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/arena_apart.h"
#include "bson/json.h"
#include "bson/order.h"
#include "fixture.h"
#include "index/bson/entry.h"
#include "index/bson/form.h"
#include "index/engine/scan.h"
#include "kv/faulty/faulty.h"
#include "model/plain/index.h"
#include "random_plain.h"
#include "store.h"
#include "verified.h"

enum {
	ROUNDS = 400,
	BUILD_DOCS = 300,
	THREAD_WRITES = 400,
	THREAD_WRITES_CLUSTER = 150,
	THREAD_IDS = 60,
};

static const char *const collections[] = { PACKED, EXPLODED };

/* A member of an index's description. */
#define COLLATION(locale, strength)                                                                \
	"\"collation\":{\"locale\":\"" locale                                                      \
	"\",\"caseLevel\":false,\"caseFirst\":\"off\",\"strength\":" #strength                     \
	",\"numericOrdering\":false,\"alternate\":\"non-ignorable\",\"maxVariable\":\"punct\","    \
	"\"normalization\":false,\"backwards\":false,\"version\":\"57.1\"}"

static struct str
doc_of(struct arena *arena, const char *json)
{
	struct buf out = BUF_INIT(ARENA_BYTES);
	struct err err;
	struct str doc;

	if (bson_json_read(str_from_cstr(json), &out, &err) != STATUS_OK)
		fail_msg("%s: %s", json, err.text);
	doc = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return doc;
}

/* ---- One operation in a transaction of its own ---- */

enum op_kind {
	OP_INSERT,
	OP_UPSERT,
	OP_DELETE,
	OP_UPDATE,
	OP_CREATE,
	OP_DROP,
	OP_STATE,
	OP_FAILURE,
};

struct op {
	enum op_kind kind;
	const char *name;
	struct str doc; /* or the description of an index */
	struct bson_value id;
	struct plain_change change;
	uint64_t number;

	struct arena *arena;
	enum status status;
	enum index_state state;
	struct plain_refused refused;
	struct kv_tx_stats cost;
	uint64_t db_number;
	bool changed;
	struct err err;
};

static enum status
op_index(struct op *op, struct plain *p)
{
	const struct index_def *def;

	if (op->kind == OP_CREATE)
		return plain_index_create(p->tx, p->db, op->doc, op->arena, &op->number, &op->err);
	def = index_find(p->db, op->number);
	op->state = def ? def->state : INDEX_DROPPED;
	if (!def || op->kind == OP_STATE)
		return STATUS_OK;
	if (op->kind == OP_FAILURE)
		return plain_index_failure(p, def, op->arena);
	return def->state == INDEX_DROPPED ? STATUS_OK : index_drop(p->tx, p->db, def);
}

static enum status
op_do(struct op *op, struct plain *p)
{
	struct plain_doc doc = plain_doc_of(op->doc);

	switch (op->kind) {
	case OP_INSERT:
		return plain_insert(p, &doc, op->arena);
	case OP_UPSERT:
		return plain_replace(p, &doc, true, PLAIN_EVENT_REPLACE, STR(""), op->arena);
	case OP_DELETE:
		return plain_delete(p, &op->id, STR(""), op->arena);
	case OP_UPDATE:
		return plain_update(p, &op->id, &op->change, 1, STR(""), op->arena, &op->changed);
	case OP_CREATE:
	case OP_DROP:
	case OP_STATE:
	case OP_FAILURE:
		break;
	}
	return op_index(op, p);
}

static enum status
op_body(struct kv_tx *tx, void *arg)
{
	struct op *op = arg;
	struct catalog_db *db;
	struct plain p;

	op->err = (struct err){ 0 };
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(op->name), &db, NULL));
	plain_init(&p, tx, db, 1, &op->err);
	op->status = op_do(op, &p);
	op->cost = kv_tx_stats(tx);
	op->refused = p.refused;
	op->db_number = db->number;
	catalog_db_unref(db);
	switch ((int)op->status) {
	case STATUS_EXISTS:
	case STATUS_NOT_FOUND:
	case STATUS_INVALID:
	case STATUS_DUPLICATE:
	case STATUS_UNSUPPORTED:
		return STATUS_CANCELLED;
	default:
		return op->status;
	}
}

static enum status
op_run(struct kv_store *store, struct arena *arena, struct op *op)
{
	struct err err = { 0 };
	enum status status;

	op->arena = arena;
	status = kv_run(store, op_body, op, NULL, &err);
	if (status != STATUS_OK && status != STATUS_CANCELLED)
		fail_msg("%s: %s", status_name(status), err.text);
	return op->status;
}

static enum status
put(struct fixture *f, const char *name, const char *json)
{
	struct op op = { .kind = OP_UPSERT, .name = name, .doc = doc_of(f->arena, json) };

	return op_run(f->store, f->arena, &op);
}

/* Returns the number. */
static uint64_t
create(struct fixture *f, const char *name, const char *json)
{
	struct op op = { .kind = OP_CREATE, .name = name, .doc = doc_of(f->arena, json) };

	if (op_run(f->store, f->arena, &op) != STATUS_OK)
		fail_msg("%s", op.err.text);
	return op.number;
}

static enum index_state
build(struct fixture *f, const char *name, uint64_t number, unsigned steps)
{
	struct op op = { .kind = OP_STATE, .name = name, .number = number };
	struct index_build_key key = { .space = CATALOG_SPACE_MONGO,
				       .db_name = str_from_cstr(name),
				       .number = number };
	enum index_state state = INDEX_BUILDING;
	enum status status;

	assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
	key.db_number = op.db_number;
	do
		status = index_build_run(f->store, &key, 0, 1, &state, &f->err);
	while (status == STATUS_OK && state == INDEX_BUILDING && --steps);
	if (status != STATUS_OK)
		fail_msg("%s: %s", status_name(status), f->err.text);
	return state;
}

static void
assert_says(struct fixture *f, const char *expected)
{
	struct verified findings;

	verified_read(f->store, &findings);
	assert_string_equal(findings.all, expected);
}

/* ---- What entries a document has ---- */

/* The entries' values as one text: [1,2],[3,4] */
static void
draw_entries(struct arena *arena, const char *spec, const char *json, struct buf *ret,
	     enum status *ret_status)
{
	static const struct catalog_db db = { .prefix = { "\x15\x07", 2 }, .number = 7 };
	struct str described = doc_of(arena, spec);
	struct index_work w = { .arena = arena };
	struct index_column columns[INDEX_COLUMNS];
	struct index_pairs pairs;
	struct bson_value key, v;
	struct bson_element e;
	struct bson_iter i;
	struct index_source source;
	struct index_def def = { .number = 1,
				 .form = &index_bson_form,
				 .flags = INDEX_BSON | INDEX_COVERING,
				 .columns = columns };

	assert_true(bson_find(described, STR("key"), &key));
	for (bson_iter_begin(&i, bson_text(&key)); bson_iter_read(&i, &e); def.column_count++) {
		struct str *path = arena_alloc(arena, 8 * sizeof(*path));
		struct str rest = e.name;
		size_t n = 0;

		while (rest.len)
			path[n++] = str_cut(&rest, '.');
		columns[def.column_count] = (struct index_column){ path, n,
								   bson_to_double(&e.value) < 0 };
		if (e.value.type == BSON_STRING)
			def.hashed = (uint32_t)def.column_count + 1;
	}
	if (bson_find(described, STR("sparse"), &v))
		def.flags |= INDEX_SPARSE;
	source = plain_index_source(STR("id"), doc_of(arena, json));
	*ret_status = index_entries_make(&db, &def, &source, &w, &pairs);
	for (size_t k = 0; *ret_status == STATUS_OK && k < pairs.count; k++) {
		struct str values;

		assert_true(index_bson_values(pairs.pairs[k].value, &values));
		buf_append_cstr(ret, k ? "," : "");
		buf_append_byte(ret, '[');
		for (bson_iter_begin(&i, values); bson_iter_read(&i, &e);) {
			if (ret->ptr[ret->len - 1] != '[')
				buf_append_byte(ret, ',');
			if (str_eq(e.name, INDEX_MISSING))
				buf_append_byte(ret, '-');
			else
				bson_json_write_value(ret, &e.value, BSON_JSON_RELAXED);
		}
		buf_append_byte(ret, ']');
	}
}

static void
arrays_are_gone_through_for_as_many_columns_as_there_may_be(void **state)
{
	AUTO(buf_release) struct buf spec = BUF_INIT(10000), drawn = BUF_INIT(10000);
	AUTO(buf_release) struct buf wanted = BUF_INIT(10000);
	struct arena *arena = arena_new(SIZE_MAX);
	enum status status;

	(void)state;
	buf_append_cstr(&spec, "{\"key\":{\"a\":1");
	for (int i = 1; i < INDEX_COLUMNS; i++)
		buf_printf(&spec, ",\"c%d\":1", i);
	buf_append_cstr(&spec, "}}");
	buf_append_byte(&spec, 0);
	for (int n = 1; n <= 2; n++) {
		buf_printf(&wanted, n == 1 ? "[%d" : ",[%d", n);
		for (int i = 1; i < INDEX_COLUMNS; i++)
			buf_append_cstr(&wanted, ",-");
		buf_append_byte(&wanted, ']');
	}
	draw_entries(arena, spec.ptr, "{\"a\":[1,2]}", &drawn, &status);
	assert_int_equal(status, STATUS_OK);
	assert_true(str_eq(buf_str(&drawn), buf_str(&wanted)));
	arena_free(arena);
}

static void
arrays_are_gone_through_as_mongodb_does(void **state)
{
	static const struct {
		const char *spec, *doc, *entries;
	} cases[] = {
		{ "{'key':{'a':1}}", "{'a':5}", "[5]" },
		{ "{'key':{'a':1}}", "{}", "[-]" },
		{ "{'key':{'a':1}}", "{'a':null}", "[null]" },
		{ "{'key':{'a':1},'sparse':1}", "{'b':1}", "" },
		{ "{'key':{'a':1,'b':1},'sparse':1}", "{'b':1}", "[-,1]" },
		{ "{'key':{'a':1}}", "{'a':[3,1,2,1.0]}", "[1],[2],[3]" },
		{ "{'key':{'a':-1}}", "{'a':[3,1]}", "[3],[1]" },
		{ "{'key':{'a':1}}", "{'a':[]}", "[{'$undefined':true}]" },
		{ "{'key':{'a':1}}", "{'a':[[1,2],[]]}", "[[]],[[1,2]]" },
		{ "{'key':{'a.b':1}}", "{'a':{'b':[1,2]}}", "[1],[2]" },
		{ "{'key':{'a.b':1}}", "{'a':[{'b':1},{'b':[2,3]},{},7]}", "[-],[1],[2],[3]" },
		{ "{'key':{'a.b':1}}", "{'a':7}", "[-]" },
		{ "{'key':{'a.b':1}}", "{'a':[]}", "[-]" },
		{ "{'key':{'a.b':1,'a.c':1}}", "{'a':[{'b':1,'c':2},{'b':3,'c':4}]}",
		  "[1,2],[3,4]" },
		{ "{'key':{'a.b':1,'c':1}}", "{'a':[{'b':1},{'b':3}],'c':9}", "[1,9],[3,9]" },
		{ "{'key':{'a':1,'a.b':1}}", "{'a':[{'b':1},5]}", "[5,-],[{'b':1},1]" },
		{ "{'key':{'a.0':1}}", "{'a':[5,6]}", "[5]" },
		{ "{'key':{'a.1.b':1}}", "{'a':[5,{'b':[6,7]}]}", "[6],[7]" },
		{ "{'key':{'a.1.b':1}}", "{'a':[5,{'c':1}]}", "[-]" },
		{ "{'key':{'a.0':1}}", "{'a':{'0':8}}", "[8]" },
		{ "{'key':{'a':1,'b':1}}", "{'a':[1,2],'b':[1]}", "parallel" },
		{ "{'key':{'a.b':1,'a.c':1}}", "{'a':[{'b':[1,2],'c':[3]}]}", "parallel" },
		{ "{'key':{'a':'hashed'}}", "{'a':[1]}", "parallel" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf drawn = BUF_INIT(10000);
		char spec[200], doc[200], expected[200];
		enum status status;

		(void)snprintf(spec, sizeof(spec), "%s", cases[i].spec);
		(void)snprintf(doc, sizeof(doc), "%s", cases[i].doc);
		(void)snprintf(expected, sizeof(expected), "%s", cases[i].entries);
		for (size_t k = 0; k < sizeof(spec); k++) {
			spec[k] = (char)(spec[k] == '\'' ? '"' : spec[k]);
			doc[k] = (char)(doc[k] == '\'' ? '"' : doc[k]);
			expected[k] = (char)(expected[k] == '\'' ? '"' : expected[k]);
		}
		draw_entries(f->arena, spec, doc, &drawn, &status);
		if (status == STATUS_UNSUPPORTED)
			buf_append_cstr(&drawn, "parallel");
		if (!str_eq(buf_str(&drawn), str_from_cstr(expected)))
			fail_msg("%s of %s: %.*s instead of %s", spec, doc,
				 STR_ARG(buf_str(&drawn)), expected);
		buf_release(&drawn);
	}
}

/* ---- What writers leave ---- */

static void
an_untouched_field_costs_no_entry(void **state)
{
	struct fixture *f = *state;

	for (size_t c = 0; c < 2; c++) {
		struct op op = { .kind = OP_UPDATE, .name = collections[c] };
		struct bson_value n = BSON_OF_INT32(2);
		uint64_t sets;

		op.id = BSON_OF_INT32(1);
		(void)put(f, collections[c], "{\"_id\":1,\"a\":1,\"b\":{\"c\":1},\"k\":1,\"z\":1}");
		op.change = (struct plain_change){ STR("z"), &n };
		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
		sets = op.cost.sets;
		create(f, collections[c], "{\"key\":{\"a\":1},\"name\":\"a\"}");
		create(f, collections[c], "{\"key\":{\"b.c\":1,\"a\":1},\"name\":\"bc\"}");
		create(f, collections[c],
		       "{\"key\":{\"a\":-1},\"name\":\"p\","
		       "\"partialFilterExpression\":{\"b.c\":{\"$gt\":0}}}");
		create(f, collections[c],
		       "{\"key\":{\"a\":1},\"name\":\"and\",\"partialFilterExpression\":"
		       "{\"$and\":[{\"b.c\":{\"$gt\":0}},{\"k\":{\"$gt\":0}}]}}");
		for (uint64_t i = 1; i <= 4; i++)
			assert_int_equal(build(f, collections[c], i, 10), INDEX_READY);
		n = BSON_OF_INT32(3);
		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
		assert_int_equal(op.cost.sets, sets);
		/* One entry of one index goes, another one comes; the other three stay. */
		op.change.path = STR("b.c");
		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
		assert_int_equal(op.cost.clears, c == 0 ? 2 : 1); /* the document was packed */
		verified_none(f->store);
		/* A filter inside of another one lets the document go. */
		op.change.path = STR("k");
		n = BSON_OF_INT32(-1);
		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
		verified_none(f->store);
	}
}

static void
values_that_others_have_are_refused(void **state)
{
	struct fixture *f = *state;

	for (size_t c = 0; c < 2; c++) {
		const char *name = collections[c];
		struct op op = { .kind = OP_INSERT, .name = name };
		struct bson_value n = BSON_OF_INT32(1);
		struct bson_element e;
		struct bson_iter i;

		create(f, name, "{\"key\":{\"a\":1},\"name\":\"u\",\"unique\":true}");
		assert_int_equal(put(f, name, "{\"_id\":1,\"a\":[1,2]}"), STATUS_OK);
		op.doc = doc_of(f->arena, "{\"_id\":2,\"a\":2.0}");
		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_DUPLICATE);
		bson_iter_begin(&i, op.refused.values);
		assert_true(bson_iter_read(&i, &e));
		assert_int_equal(e.value.type, BSON_DOUBLE);
		op.doc = doc_of(f->arena, "{\"_id\":2,\"a\":3}");
		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
		op = (struct op){ .kind = OP_UPDATE, .name = name, .id = BSON_OF_INT32(2) };
		op.change = (struct plain_change){ STR("a"), &n };
		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_DUPLICATE);
		assert_int_equal(put(f, name, "{\"_id\":1,\"a\":[2,1]}"), STATUS_OK);
		verified_none(f->store);
	}
}

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	return catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), arg, NULL);
}

/* Both go by a description from before: the notes of one would erase the other's. */
static void
of_two_notes_of_arrays_the_second_conflicts(void **state)
{
	struct fixture *f = *state;
	uint64_t number = create(f, PACKED, "{\"key\":{\"a\":1,\"b\":1},\"name\":\"ab\"}");
	struct kv_store *calm = kv_faulty_inner(f->store);
	struct catalog_db *db = NULL;
	struct kv_tx *tx[2];

	assert_int_equal(kv_run(calm, open_body, &db, NULL, NULL), STATUS_OK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(kv_begin(calm, KV_TX_READ_WRITE, &tx[i]), STATUS_OK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(index_many_note(tx[i], db, index_find(db, number), 1U << i),
				 STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(tx[0])), STATUS_OK);
	assert_int_equal(kv_future_wait(kv_commit(tx[1])), STATUS_TX_CONFLICT);
	for (unsigned i = 0; i < 2; i++)
		kv_tx_free(tx[i]);
	catalog_db_unref(db);
	assert_int_equal(kv_run(calm, open_body, &db, NULL, NULL), STATUS_OK);
	assert_int_equal(index_find(db, number)->many, 1);
	catalog_db_unref(db);
}

static void
a_build_that_meets_duplicates_fails_and_names_one(void **state)
{
	struct fixture *f = *state;
	struct op op = { .kind = OP_FAILURE, .name = PACKED };

	(void)put(f, PACKED, "{\"_id\":1,\"a\":1}");
	(void)put(f, PACKED, "{\"_id\":2,\"a\":1}");
	op.number = create(f, PACKED, "{\"key\":{\"a\":1},\"name\":\"u\",\"unique\":true}");
	assert_int_equal(build(f, PACKED, op.number, 10), INDEX_FAILED);
	assert_int_equal(op_run(f->store, f->arena, &op), STATUS_DUPLICATE);
	assert_int_equal(bson_count(op.refused.values), 1);
	(void)put(f, PACKED, "{\"_id\":1,\"a\":[1],\"b\":[1]}");
	op.number = create(f, PACKED, "{\"key\":{\"a\":1,\"b\":1},\"name\":\"ab\"}");
	assert_int_equal(build(f, PACKED, op.number, 10), INDEX_FAILED);
	assert_int_equal(op_run(f->store, f->arena, &op), STATUS_UNSUPPORTED);
}

/* ---- Damage ---- */

enum {
	ENTRIES_READ = 10,
};

struct entries {
	const char *name;
	struct arena *arena;
	struct str prefix; /* of all entries of the collection */
	struct kv_pair pairs[ENTRIES_READ];
	size_t count;
};

static enum status
entries_read(struct entries *entries, struct kv_tx *tx, struct str prefix)
{
	AUTO(buf_release) struct buf end = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	const struct kv_range_options options = { .limit = ENTRIES_READ };
	struct kv_future *future;
	struct kv_range range;

	entries->prefix = arena_dup(entries->arena, prefix);
	TRY(tuple_prefix_end(prefix, &end));
	future = kv_get_range(tx, prefix, buf_str(&end), &options);
	TRY(kv_future_wait(future));
	range = kv_future_range(future);
	for (size_t i = 0; i < range.count; i++)
		entries->pairs[i] = (struct kv_pair){ arena_dup(entries->arena, range.pairs[i].key),
						      arena_dup(entries->arena,
								range.pairs[i].value) };
	entries->count = range.count;
	return STATUS_OK;
}

static enum status
entries_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	struct entries *entries = arg;
	struct catalog_db *db;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(entries->name), &db, NULL));
	buf_append_str(&prefix, db->prefix);
	tuple_put_u64(&prefix, INDEX_SPACE_ENTRIES);
	catalog_db_unref(db);
	TRY(buf_status(&prefix));
	return entries_read(entries, tx, buf_str(&prefix));
}

static enum status
damage_body(struct kv_tx *tx, void *arg)
{
	const struct kv_pair *pair = arg;

	return pair->value.ptr ? kv_set(tx, pair->key, pair->value) : kv_clear(tx, pair->key);
}

/* A value whose ptr is NULL: clears the key. */
static void
damage(struct fixture *f, struct str key, struct str value)
{
	struct kv_pair pair = { key, value };

	assert_int_equal(kv_run(f->store, damage_body, &pair, NULL, NULL), STATUS_OK);
}

static void
damaged_entries_are_found(void **state)
{
	struct fixture *f = *state;
	const struct str none = { NULL, 0 };

	for (size_t c = 0; c < 2; c++) {
		struct entries entries = { .name = collections[c], .arena = f->arena };
		const char *name = collections[c];
		struct kv_pair *p = entries.pairs;
		struct op gone = { .kind = OP_DELETE, .name = name, .id = BSON_OF_INT32(3) };
		uint64_t number;
		struct str stray;

		(void)put(f, name, "{\"_id\":1,\"a\":1}");
		(void)put(f, name, "{\"_id\":2,\"a\":2}");
		(void)put(f, name, "{\"_id\":3,\"a\":3}");
		number = create(f, name, "{\"key\":{\"a\":1},\"name\":\"a\"}");
		assert_int_equal(build(f, name, number, 10), INDEX_READY);
		verified_none(f->store);
		assert_int_equal(kv_run(f->store, entries_body, &entries, NULL, NULL), STATUS_OK);
		assert_int_equal(entries.count, 3);

		damage(f, p[0].key, none);
		assert_says(f, "plain_index: the document has no entry in the index\n"
			       "plain_index: the counter says 3, and there are 2 entries\n"
			       "tally: the counters of this range say 3, and there are 2\n");
		damage(f, p[0].key, p[1].value);
		assert_says(f, "plain_index: the entry does not have the document's values\n");
		damage(f, p[0].key, p[0].value);
		verified_none(f->store);

		assert_int_equal(op_run(f->store, f->arena, &gone), STATUS_OK);
		verified_none(f->store);
		damage(f, p[2].key, p[2].value);
		assert_says(f, "plain_index_stray: no document has this entry\n"
			       "plain_index: the counter says 2, and there are 3 entries\n"
			       "tally: the counters of this range say 2, and there are 3\n");
		damage(f, p[2].key, STR("\x15\x63")); /* a format that is not known yet */
		assert_says(f, "unreadable_value: not an entry of an index\n"
			       "plain_index: the counter says 2, and there are 3 entries\n"
			       "tally: the counters of this range say 2, and there are 3\n");
		damage(f, p[2].key, p[2].value);
		/* As many entries as there should be: both that are wrong are told. */
		damage(f, p[0].key, none);
		assert_says(f, "plain_index: the document has no entry in the index\n"
			       "plain_index_stray: no document has this entry\n");
		damage(f, p[0].key, p[0].value);
		damage(f, p[2].key, none);
		verified_none(f->store);

		stray = arena_printf(f->arena, "%.*s\x15\x09", STR_ARG(entries.prefix));
		damage(f, stray, p[0].value);
		assert_says(f, "plain_index_stray: there is no such index\n"
			       "plain_index: the counter says 2, and there are 3 entries\n"
			       "tally: the counters of this range say 2, and there are 3\n");
		damage(f, stray, none);
		verified_none(f->store);
	}
}

/* Such a document has no entries at all, whatever is said to be one of it. */
static void
entries_of_a_document_that_no_index_can_hold_are_strays(void **state)
{
	struct fixture *f = *state;

	for (size_t c = 0; c < 2; c++) {
		struct entries entries = { .name = collections[c], .arena = f->arena };
		const char *name = collections[c];
		char *stray;

		(void)put(f, name, "{\"_id\":\"x2\",\"a\":[1],\"b\":[1]}");
		create(f, name, "{\"key\":{\"a\":1,\"b\":1},\"name\":\"ab\"}");
		(void)put(f, name, "{\"_id\":\"x1\",\"a\":1,\"b\":1}");
		verified_none(f->store);
		assert_int_equal(kv_run(f->store, entries_body, &entries, NULL, NULL), STATUS_OK);
		assert_int_equal(entries.count, 1);
		stray = memrchr(entries.pairs[0].key.ptr, '1', entries.pairs[0].key.len);
		assert_non_null(stray);
		*stray = '2';
		damage(f, entries.pairs[0].key, entries.pairs[0].value);
		assert_says(f, "plain_index_stray: no document has this entry\n"
			       "plain_index: the counter says 1, and there are 2 entries\n"
			       "tally: the counters of this range say 1, and there are 2\n");
		damage(f, entries.pairs[0].key, (struct str){ NULL, 0 });
		verified_none(f->store);
	}
}

/* The key of a mark, and a longer one. */
static enum status
mark_keys_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(2 * KV_LIMIT_KEY_BYTES);
	struct entries *entries = arg;
	struct catalog_db *db;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(entries->name), &db, NULL));
	index_key_mark(&key, db, 1, STR("id"));
	catalog_db_unref(db);
	TRY(buf_status(&key));
	entries->pairs[0].key = arena_dup(entries->arena, buf_str(&key));
	tuple_put_u64(&key, 1);
	TRY(buf_status(&key));
	entries->pairs[1].key = arena_dup(entries->arena, buf_str(&key));
	return STATUS_OK;
}

static void
damaged_marks_of_a_build_are_found(void **state)
{
	struct fixture *f = *state;
	struct entries entries = { .name = PACKED, .arena = f->arena };
	const struct kv_pair *p = entries.pairs;

	(void)put(f, PACKED, "{\"_id\":1,\"a\":1}");
	assert_int_equal(create(f, PACKED, "{\"key\":{\"a\":1},\"name\":\"a\"}"), 1);
	assert_int_equal(kv_run(f->store, mark_keys_body, &entries, NULL, NULL), STATUS_OK);
	damage(f, p[0].key, STR(""));
	verified_none(f->store);
	damage(f, p[0].key, STR("x"));
	assert_says(f, "unknown_key: not a mark of a build\n");
	damage(f, p[0].key, STR(""));
	damage(f, p[1].key, STR(""));
	assert_says(f, "unknown_key: not a mark of a build\n");
}

/* The root bounds a document's length, also where a number becomes one of more bytes. */
static void
a_longer_value_of_any_type_keeps_the_bound(void **state)
{
	static const char *const values[] = {
		"{\"_id\":1,\"a\":1}",
		"{\"_id\":1,\"a\":{\"$numberLong\":\"1\"}}",
		"{\"_id\":1,\"a\":{\"$numberDecimal\":\"1\"}}",
		"{\"_id\":1,\"a\":{\"$oid\":\"56e1fc72e0c917e9c4714161\"}}",
		"{\"_id\":1,\"a\":null}",
		"{\"_id\":1,\"a\":\"x\"}",
		"{\"_id\":1,\"a\":{\"b\":1}}",
		"{\"_id\":1,\"a\":[]}",
		"{\"_id\":1,\"a\":{\"$regularExpression\":{\"pattern\":\"\",\"options\":\"\"}}}",
		"{\"_id\":1,\"a\":{\"$binary\":{\"base64\":\"\",\"subType\":\"02\"}}}",
		"{\"_id\":1,\"a\":{\"$code\":\"\",\"$scope\":{}}}",
	};
	const size_t count = sizeof(values) / sizeof(values[0]);
	struct fixture *f = *state;

	for (size_t i = 0; i < count * count; i++) {
		struct op op = { .kind = OP_UPDATE, .name = EXPLODED, .id = BSON_OF_INT32(1) };
		struct bson_value v;

		assert_int_equal(put(f, EXPLODED, values[i / count]), STATUS_OK);
		assert_true(bson_find(doc_of(f->arena, values[i % count]), STR("a"), &v));
		op.change = (struct plain_change){ STR("a"), &v };
		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
		verified_none(f->store);
	}
}

/* ---- Random operations ---- */

static const char *const specs[] = {
	"{\"key\":{\"a\":1},\"name\":\"0\"}",
	"{\"key\":{\"b\":-1},\"name\":\"1\",\"sparse\":true}",
	"{\"key\":{\"a.b\":1},\"name\":\"2\"}",
	"{\"key\":{\"a.0\":1,\"_id\":1},\"name\":\"3\"}",
	"{\"key\":{\"c\":\"hashed\"},\"name\":\"4\"}",
	"{\"key\":{\"b\":1},\"name\":\"5\",\"partialFilterExpression\":{\"a\":{\"$exists\":true}}}",
	"{\"key\":{\"b.a\":1,\"b.c\":-1},\"name\":\"6\"}",
	"{\"key\":{\"long name\":1},\"name\":\"7\",\"unique\":true,\"sparse\":true}",
	"{\"key\":{\"a\":1,\"b.c\":-1},\"name\":\"8\"," COLLATION("en", 1) "}",
	"{\"key\":{\"b\":1},\"name\":\"9\",\"partialFilterExpression\":{\"a\":{\"$gt\":\"B\"}}"
	"," COLLATION("sv", 2) "}",
};

struct random {
	struct fixture *f;
	struct rand_seq seq;
	const char *name;
	uint64_t numbers[sizeof(specs) / sizeof(specs[0])];
};

static void
random_write(struct random *r)
{
	struct op op = { .name = r->name, .id = random_id(&r->seq) };
	struct bson_value v = random_value(&r->seq, r->f->arena, 3);
	char path[40];

	(void)snprintf(path, sizeof(path), "%.*s", STR_ARG(random_name(&r->seq)));
	if (rand_seq_below(&r->seq, 2))
		(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), ".%.*s",
			       STR_ARG(random_name(&r->seq)));
	op.change = (struct plain_change){ str_from_cstr(path),
					   rand_seq_below(&r->seq, 4) ? &v : NULL };
	op.doc = random_plain_document(&r->seq, r->f->arena, &op.id);
	switch (rand_seq_below(&r->seq, 6)) {
	case 0:
		op.kind = OP_INSERT;
		break;
	case 1:
		op.kind = OP_UPSERT;
		break;
	case 2:
		op.kind = OP_DELETE;
		break;
	default:
		op.kind = OP_UPDATE;
	}
	(void)op_run(r->f->store, r->f->arena, &op);
}

static void
random_index(struct random *r)
{
	uint64_t at = rand_seq_below(&r->seq, sizeof(specs) / sizeof(specs[0]));
	struct op op = { .kind = OP_DROP, .name = r->name, .number = r->numbers[at] };

	if (!r->numbers[at]) {
		r->numbers[at] = create(r->f, r->name, specs[at]);
	} else if (rand_seq_below(&r->seq, 4) == 0) {
		assert_int_equal(op_run(r->f->store, r->f->arena, &op), STATUS_OK);
		r->numbers[at] = 0;
	} else {
		(void)build(r->f, r->name, r->numbers[at], 1);
	}
}

static void
random_operations_leave_indexes_well(void **state)
{
	struct fixture *f = *state;
	struct random r = { .f = f, .seq = { test_seed() } };
	int rounds = test_rounds(ROUNDS);

	for (size_t c = 0; c < 2; c++) {
		r.name = collections[c];
		memset(r.numbers, 0, sizeof(r.numbers));
		for (int i = 0; i < rounds; i++) {
			if (rand_seq_below(&r.seq, 10) == 0)
				random_index(&r);
			else
				random_write(&r);
			if (i % 25 == 0)
				verified_none(f->store);
			arena_clear(f->arena);
		}
		verified_none(f->store);
	}
}

/* ---- A build beside writers ---- */

struct writer {
	struct fixture *f;
	const char *name;
	uint64_t seed;
	pthread_t thread;
};

static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	struct rand_seq seq = { w->seed };
	struct arena *arena = arena_new(ARENA_BYTES);
	int writes = test_store_is_cluster() ? THREAD_WRITES_CLUSTER : THREAD_WRITES;

	for (int i = 0; i < writes; i++) {
		struct bson_value n = BSON_OF_INT64((int64_t)rand_seq_below(&seq, 5));
		struct op op = { .name = w->name };
		char json[100];

		op.id = BSON_OF_INT64((int64_t)rand_seq_below(&seq, THREAD_IDS));
		op.kind = rand_seq_below(&seq, 3) == 0 ? OP_DELETE
			  : rand_seq_below(&seq, 2)    ? OP_UPSERT
						       : OP_UPDATE;
		op.change = (struct plain_change){ STR("a"), &n };
		(void)snprintf(json, sizeof(json), "{\"_id\":%d,\"a\":[%d,%d],\"b\":1}",
			       (int)bson_integer(&op.id), (int)rand_seq_below(&seq, 5),
			       (int)rand_seq_below(&seq, 5));
		op.doc = doc_of(arena, json);
		(void)op_run(w->f->store, arena, &op);
		arena_clear(arena);
	}
	arena_free(arena);
	return NULL;
}

struct other_builder {
	struct fixture *f;
	struct index_build_key key;
	pthread_t thread;
};

static void *
other_builder_main(void *arg)
{
	struct other_builder *o = arg;
	enum index_state state = INDEX_BUILDING;
	struct err err;

	while (state == INDEX_BUILDING)
		if (index_build_run(o->f->store, &o->key, 0, 1, &state, &err) != STATUS_OK)
			break;
	return NULL;
}

/* Two builders stand for two processes: all that they share is in the store. */
static void
builds_beside_writers_miss_nothing(void **state)
{
	struct fixture *f = *state;

	for (size_t c = 0; c < 2; c++) {
		const char *name = collections[c];
		struct writer writers[2];
		struct other_builder other = { .f = f };
		struct op op = { .kind = OP_STATE, .name = name };

		for (int i = 0; i < THREAD_IDS; i += 2) {
			char json[100];

			(void)snprintf(json, sizeof(json), "{\"_id\":%d,\"a\":%d}", i, i % 3);
			assert_int_equal(put(f, name, json), STATUS_OK);
		}
		for (size_t i = 0; i < 2; i++) {
			writers[i] = (struct writer){ .f = f, .name = name };
			writers[i].seed = test_seed() + i;
			assert_int_equal(
				pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]),
				0);
		}
		for (int round = 0; round < 5; round++) {
			uint64_t number = create(f, name, "{\"key\":{\"a\":1},\"name\":\"a\"}");

			op.number = number;
			assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
			other.key = (struct index_build_key){ .space = CATALOG_SPACE_MONGO,
							      .db_name = str_from_cstr(name),
							      .db_number = op.db_number,
							      .number = number };
			assert_int_equal(
				pthread_create(&other.thread, NULL, other_builder_main, &other), 0);
			assert_int_equal(build(f, name, number, 100), INDEX_READY);
			pthread_join(other.thread, NULL);
			verified_none(f->store);
		}
		for (size_t i = 0; i < 2; i++)
			pthread_join(writers[i].thread, NULL);
		verified_none(f->store);
	}
}

/* ---- Ranges ---- */

struct reading {
	const struct bson_value *equal, *low, *high;
	bool low_exclusive, high_exclusive;
	struct arena *arena;
	uint64_t number;
	uint64_t entries;
	uint64_t counted;
};

static enum status
reading_body(struct kv_tx *tx, void *arg)
{
	struct reading *r = arg;
	const void *const equal = r->equal;
	const struct index_interval interval = { .equal = &equal,
						 .equal_count = r->equal ? 1 : 0,
						 .low = r->low,
						 .high = r->high,
						 .low_exclusive = r->low_exclusive,
						 .high_exclusive = r->high_exclusive };
	const struct index_scan_options options = { 0 };
	struct index_work w = { .arena = r->arena };
	struct index_entry entry;
	struct index_range range;
	struct index_scan scan;
	struct catalog_db *db;
	enum status status;

	r->entries = 0;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, NULL));
	TRY(index_range_make(db, index_find(db, r->number), &interval, &w, &range));
	TRY(index_scan_init(&scan, tx, db, index_find(db, r->number), &range, &options));
	while ((status = index_scan_next(&scan, &w, &entry)) == STATUS_OK)
		r->entries++;
	index_scan_release(&scan);
	if (status == STATUS_NOT_FOUND)
		status = index_range_count_exactly(tx, db, &range, &r->counted);
	catalog_db_unref(db);
	return status;
}

static void
ranges_hold_what_lies_between(void **state)
{
	struct fixture *f = *state;
	struct bson_value two = BSON_OF_DOUBLE(2), four = BSON_OF_INT32(4);
	struct reading r = { .arena = f->arena };

	for (int i = 0; i < 8; i++) {
		char json[100];

		(void)snprintf(json, sizeof(json), "{\"_id\":%d,\"a\":%d,\"b\":%d}", i, i % 2, i);
		assert_int_equal(put(f, PACKED, json), STATUS_OK);
	}
	for (int descending = 0; descending < 2; descending++) {
		static const uint64_t expected[2][2] = { { 3, 2 }, { 2, 1 } };

		r.number = create(f, PACKED,
				  descending ? "{\"key\":{\"b\":-1},\"name\":\"d\"}"
					     : "{\"key\":{\"b\":1},\"name\":\"a\"}");
		assert_int_equal(build(f, PACKED, r.number, 10), INDEX_READY);
		r.low = &two;
		r.high = &four;
		for (int open = 0; open < 4; open++) {
			r.low_exclusive = open & 1;
			r.high_exclusive = open & 2;
			assert_int_equal(kv_run_read(f->store, reading_body, &r, NULL), STATUS_OK);
			assert_int_equal(r.entries, expected[open & 1][open >> 1]);
			assert_int_equal(r.counted, r.entries);
		}
	}
	r = (struct reading){ .arena = f->arena, .equal = &BSON_OF_INT64(1), .low = &four };
	r.number = create(f, PACKED, "{\"key\":{\"a\":1,\"b\":-1},\"name\":\"ab\"}");
	assert_int_equal(build(f, PACKED, r.number, 10), INDEX_READY);
	assert_int_equal(kv_run_read(f->store, reading_body, &r, NULL), STATUS_OK);
	assert_int_equal(r.entries, 2);
}

/* ---- Collations ---- */

#define COLLATED "db.collated"

static enum status
create_collated_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return plain_create(tx, STR(COLLATED), PLAIN_PACKED,
			    doc_of(f->arena, "{" COLLATION("en", 2) "}"), &f->err);
}

static void
the_index_of_ids_of_a_collation_is_missed(void **state)
{
	const char *missing = "plain_index: there is no index of the _ids by the collation of the "
			      "collection, so _ids that it holds equal may be there\n";
	struct fixture *f = *state;
	struct op drop = { .kind = OP_DROP, .name = COLLATED };

	assert_int_equal(kv_run(f->store, create_collated_body, f, NULL, &f->err), STATUS_OK);
	assert_says(f, missing);
	drop.number = create(f, COLLATED,
			     "{\"key\":{\"_id\":1},\"name\":\"" PLAIN_ID_INDEX
			     "\"," COLLATION("en", 2) "}");
	verified_none(f->store);
	/* It is still defined then, until its entries are cleared. */
	assert_int_equal(op_run(f->store, f->arena, &drop), STATUS_OK);
	assert_says(f, missing);
	/* However many others there are, also as many as just have room, with nothing behind. */
	arena_set_apart(true);
	for (unsigned i = 0; i < 17; i++) {
		create(f, COLLATED,
		       arena_printf(f->arena, "{\"key\":{\"a%u\":1},\"name\":\"a%u\"}", i, i).ptr);
		assert_says(f, missing);
	}
	arena_set_apart(false);
}

static void
texts_lie_in_the_order_of_a_collation(void **state)
{
	struct bson_value b = BSON_OF_STRING(STR("B")), a_umlaut = BSON_OF_STRING(STR("\u00c4"));
	struct op op = { .kind = OP_UPDATE, .name = PACKED, .id = BSON_OF_INT32(1) };
	struct fixture *f = *state;
	struct reading r = { .arena = f->arena };

	assert_int_equal(put(f, PACKED, "{\"_id\":1,\"a\":\"b\"}"), STATUS_OK);
	assert_int_equal(put(f, PACKED, "{\"_id\":2,\"a\":[\"C\",\"c\",\"\u00e4\"]}"), STATUS_OK);
	assert_int_equal(put(f, PACKED, "{\"_id\":3,\"a\":{\"b\":\"Z\"}}"), STATUS_OK);
	assert_int_equal(put(f, PACKED, "{\"_id\":4,\"a\":5}"), STATUS_OK);
	r.number = create(f, PACKED, "{\"key\":{\"a\":1},\"name\":\"a\"," COLLATION("en", 2) "}");
	assert_int_equal(build(f, PACKED, r.number, 10), INDEX_READY);
	/* What is the same has one entry of an array. */
	assert_int_equal(kv_run_read(f->store, reading_body, &r, NULL), STATUS_OK);
	assert_int_equal(r.entries, 5);
	r.equal = &b;
	assert_int_equal(kv_run_read(f->store, reading_body, &r, NULL), STATUS_OK);
	assert_int_equal(r.entries, 1);
	r.equal = NULL;
	r.low = &a_umlaut;
	r.high = &b;
	assert_int_equal(kv_run_read(f->store, reading_body, &r, NULL), STATUS_OK);
	assert_int_equal(r.entries, 2);
	/* The entry stays where it is, and has the other text. */
	op.change = (struct plain_change){ STR("a"), &b };
	assert_int_equal(op_run(f->store, f->arena, &op), STATUS_OK);
	assert_int_equal(op.cost.clears, 1); /* the document */
	verified_none(f->store);
	/* Swedish has its umlauts behind all other letters. */
	r.number = create(f, PACKED, "{\"key\":{\"a\":-1},\"name\":\"b\"," COLLATION("sv", 3) "}");
	assert_int_equal(build(f, PACKED, r.number, 10), INDEX_READY);
	assert_int_equal(kv_run_read(f->store, reading_body, &r, NULL), STATUS_OK);
	assert_int_equal(r.entries, 0);
	verified_none(f->store);
}

static void
a_collation_has_all_of_its_members(void **state)
{
	static const char *const wrong[] = {
		"{\"key\":{\"a\":1},\"name\":\"a\",\"collation\":{\"locale\":\"en\"}}",
		"{\"key\":{\"a\":1},\"name\":\"a\",\"collation\":{\"locale\":\"simple\"}}",
		"{\"key\":{\"a\":1},\"name\":\"a\",\"collation\":{}}",
		"{\"key\":{\"a\":1},\"name\":\"a\",\"collation\":1}",
		"{\"key\":{\"a\":1},\"name\":\"a\"," COLLATION("none", 2) "}",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct op op = { .kind = OP_CREATE,
				 .name = PACKED,
				 .doc = doc_of(f->arena, wrong[i]) };

		assert_int_equal(op_run(f->store, f->arena, &op), STATUS_INVALID);
	}
}

enum altering {
	ALTER_COLLATOR,
	ALTER_RENEW,
	ALTER_LOOK
};

struct altered {
	enum altering what;
	enum index_state state; /* of the newest */
	bool readable;
	uint64_t number;
};

static enum status
alter_body(struct kv_tx *tx, void *arg)
{
	const struct index_def *newest;
	struct altered *a = arg;
	struct catalog_db *db;
	struct index_def def;
	enum status status = STATUS_OK;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(PACKED), &db, NULL));
	newest = &index_set_of(db)->defs[index_set_of(db)->count - 1];
	a->state = newest->state;
	a->readable = index_is_readable(newest);
	def = *newest;
	def.collator = STR("1/1/1");
	if (a->what == ALTER_COLLATOR)
		status = index_state_set(tx, db, &def, def.state, STR(""));
	if (a->what == ALTER_RENEW)
		status = index_renew(tx, db, newest, &a->number, NULL);
	catalog_db_unref(db);
	return status;
}

static struct altered
alter(struct fixture *f, enum altering what)
{
	struct altered a = { .what = what };

	assert_int_equal(kv_run(f->store, alter_body, &a, NULL, NULL), STATUS_OK);
	return a;
}

static void
an_index_of_another_icu_is_out_of_use_until_it_is_built_again(void **state)
{
	static const char stale[] = "plain_index: another version of ICU orders the texts of the "
				    "index, which is not used until it is built again\n";
	struct fixture *f = *state;
	struct altered a;

	assert_int_equal(put(f, PACKED, "{\"_id\":1,\"a\":\"b\"}"), STATUS_OK);
	assert_int_equal(build(f, PACKED,
			       create(f, PACKED,
				      "{\"key\":{\"a\":1},\"name\":\"a\"," COLLATION("en", 2) "}"),
			       10),
			 INDEX_READY);
	assert_true(alter(f, ALTER_COLLATOR).readable);
	assert_says(f, stale);
	a = alter(f, ALTER_LOOK);
	assert_int_equal(a.state, INDEX_READY);
	assert_false(a.readable);
	assert_int_equal(put(f, PACKED, "{\"_id\":2,\"a\":\"c\"}"), STATUS_OK);
	assert_int_equal(alter(f, ALTER_LOOK).state, INDEX_STALE);
	assert_says(f, stale);
	a = alter(f, ALTER_RENEW);
	assert_int_equal(build(f, PACKED, a.number, 10), INDEX_READY);
	assert_true(alter(f, ALTER_LOOK).readable);
	verified_none(f->store);
}

/* Which texts are duplicates, the other ICU may see otherwise. */
static void
a_failed_index_of_another_icu_names_no_duplicate(void **state)
{
	struct fixture *f = *state;
	struct op op = { .kind = OP_FAILURE, .name = PACKED };

	(void)put(f, PACKED, "{\"_id\":1,\"a\":\"b\"}");
	(void)put(f, PACKED, "{\"_id\":2,\"a\":\"B\"}");
	op.number = create(
		f, PACKED,
		"{\"key\":{\"a\":1},\"name\":\"a\",\"unique\":true," COLLATION("en", 2) "}");
	assert_int_equal(build(f, PACKED, op.number, 10), INDEX_FAILED);
	assert_int_equal(op_run(f->store, f->arena, &op), STATUS_DUPLICATE);
	(void)alter(f, ALTER_COLLATOR);
	assert_int_equal(op_run(f->store, f->arena, &op), STATUS_NOT_FOUND);
}

int
main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(arrays_are_gone_through_as_mongodb_does),
		CASE(arrays_are_gone_through_for_as_many_columns_as_there_may_be),
		CASE(an_untouched_field_costs_no_entry),
		CASE(values_that_others_have_are_refused),
		CASE(of_two_notes_of_arrays_the_second_conflicts),
		CASE(a_build_that_meets_duplicates_fails_and_names_one),
		CASE(ranges_hold_what_lies_between),
		CASE(the_index_of_ids_of_a_collation_is_missed),
		CASE(texts_lie_in_the_order_of_a_collation),
		CASE(a_collation_has_all_of_its_members),
		CASE(an_index_of_another_icu_is_out_of_use_until_it_is_built_again),
		CASE(a_failed_index_of_another_icu_names_no_duplicate),
		CASE(a_longer_value_of_any_type_keeps_the_bound),
		CASE(damaged_entries_are_found),
		CASE(entries_of_a_document_that_no_index_can_hold_are_strays),
		CASE(damaged_marks_of_a_build_are_found),
		CASE(random_operations_leave_indexes_well),
		CASE(builds_beside_writers_miss_nothing),
	};

	return cmocka_run_group_tests_name("plain_indexes", tests, NULL, NULL);
}
