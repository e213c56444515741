/*
 * Descriptions of indexes that are some and none, filters of each form beside updates of each path,
 * documents that are read in several ranges, and what the catalog asks of collections.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bson/json.h"
#include "catalog/kind.h"
#include "fixture.h"
#include "model/plain/index.h"
#include "model/plain/plain_int.h"
#include "verified.h"

enum {
	TEXT_BYTES = 16 * 1024 * 1024,
	/* Of a short document in leaves, each of which has the name in its key: several ranges. */
	NAME_BYTES = 900,
	MEMBERS = 6000,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct str
doc_of(struct fixture *f, const char *json)
{
	struct buf out = BUF_INIT(TEXT_BYTES);
	struct str doc;

	if (bson_json_read(str_from_cstr(json), &out, &f->err) != STATUS_OK)
		fail_msg("%s: %s", json, f->err.text);
	doc = arena_dup(f->arena, buf_str(&out));
	assert_non_null(doc.ptr);
	buf_release(&out);
	return doc;
}

/* ---- One transaction ---- */

struct turn {
	struct fixture *f;
	const char *name;
	enum status (*run)(struct turn *t, struct plain *p);
	const char *json; /* of a document, or of an index */
	struct plain_change change;
	struct catalog_seq seq;
	struct str read;
	struct kv_future *watch;
};

static enum status
turn_body(struct kv_tx *tx, void *arg)
{
	struct turn *t = arg;
	struct catalog_db *db;
	enum status status;
	struct plain p;

	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(t->name), &db, &t->f->err));
	plain_init(&p, tx, db, 0, &t->f->err);
	status = t->run(t, &p);
	catalog_db_unref(db);
	return status;
}

static enum status
turn(struct turn *t)
{
	t->f->err = (struct err){ 0 };
	return kv_run(t->f->store, turn_body, t, NULL, NULL);
}

static enum status
insert(struct turn *t, struct plain *p)
{
	const struct plain_doc doc = plain_doc_of(doc_of(t->f, t->json));

	return plain_insert(p, &doc, t->f->arena);
}

static void
put(struct fixture *f, const char *name, const char *json)
{
	struct turn t = { .f = f, .name = name, .run = insert, .json = json };

	if (turn(&t) != STATUS_OK)
		fail_msg("%s: %s", json, f->err.text);
}

static enum status
make_index(struct turn *t, struct plain *p)
{
	uint64_t number;

	return plain_index_create(p->tx, p->db, doc_of(t->f, t->json), t->f->arena, &number,
				  &t->f->err);
}

static enum status
make_collection(struct turn *t, struct plain *p)
{
	return plain_create(p->tx, str_from_cstr(t->json), PLAIN_EXPLODED, BSON_EMPTY, &t->f->err);
}

/* Leaves, whose updates read what indexes look at. */
static void
collection(struct fixture *f, const char *name)
{
	struct turn t = { .f = f, .name = PACKED, .run = make_collection, .json = name };

	assert_int_equal(turn(&t), STATUS_OK);
}

/* ---- Descriptions of indexes ---- */

/* A member of a description. */
#define COLLATION                                                                                  \
	"\"collation\":{\"locale\":\"en\",\"caseLevel\":false,\"caseFirst\":\"off\","              \
	"\"strength\":2,\"numericOrdering\":false,\"alternate\":\"non-ignorable\","                \
	"\"maxVariable\":\"punct\",\"normalization\":false,\"backwards\":false,"                   \
	"\"version\":\"57.1\"}"

static void
what_is_no_index_is_refused(void **state)
{
	static const struct {
		const char *spec, *says;
	} cases[] = {
		{ "{\"name\":\"x\"}", "an index has a key and a name" },
		{ "{\"name\":\"x\",\"key\":[1]}", "an index has a key and a name" },
		{ "{\"name\":\"x\",\"key\":1}", "an index has a key and a name" },
		{ "{\"key\":{\"a\":1}}", "an index has a key and a name" },
		{ "{\"name\":1,\"key\":{\"a\":1}}", "an index has a key and a name" },
		{ "{\"name\":\"x\",\"key\":{\"a\":\"text\"}}",
		  "a field of an index is followed by a number or \"hashed\"" },
		{ "{\"name\":\"x\",\"key\":{\"a\":true}}",
		  "a field of an index is followed by a number or \"hashed\"" },
		{ "{\"name\":\"x\",\"key\":{\"\":1}}", "has an empty name in its path" },
		{ "{\"name\":\"x\",\"key\":{\".a\":1}}", "has an empty name in its path" },
		{ "{\"name\":\"x\",\"key\":{\"a.\":1}}", "has an empty name in its path" },
		{ "{\"name\":\"x\",\"key\":{\"a..b\":1}}", "has an empty name in its path" },
		{ "{\"name\":\"x\",\"key\":{\"a\":\"hashed\",\"b\":\"hashed\"}}",
		  "an index has one hashed field" },
		{ "{\"name\":\"x\",\"key\":{\"a\":1},\"collation\":1}",
		  "the collation of an index is a document" },
		/* Also where the other one of both is right. */
		{ "{\"name\":\"x\",\"key\":{\"a\":1}," COLLATION
		  ",\"partialFilterExpression\":{\"a\":{\"$nothing\":1}}}",
		  "unknown operator: $nothing" },
		{ "{\"name\":\"x\",\"key\":{\"a\":1},\"collation\":{\"locale\":\"simple\"},"
		  "\"partialFilterExpression\":{\"a\":1}}",
		  "An index has no collation that orders texts by bytes." },
		{ "{\"name\":\"x\",\"key\":{\"a\":1},\"collation\":{\"locale\":\"en\"},"
		  "\"partialFilterExpression\":{\"a\":1}}",
		  "The collation of an index has all of its members, in order." },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct turn t = {
			.f = f, .name = EXPLODED, .run = make_index, .json = cases[i].spec
		};

		if (turn(&t) != STATUS_INVALID || !strstr(f->err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].spec, f->err.text);
	}
}

static enum status
look_at_index(struct turn *t, struct plain *p)
{
	const struct index_set *set = index_set_of(p->db);
	const struct index_def *def;
	struct index_build_key key;

	assert_non_null(set);
	assert_int_equal(set->count, 1);
	def = &set->defs[0];
	assert_int_equal(def->state, INDEX_READY);
	assert_int_equal(def->flags & (INDEX_UNIQUE | INDEX_SPARSE), INDEX_UNIQUE | INDEX_SPARSE);
	assert_int_equal(!(def->flags & INDEX_COVERING), strstr(t->json, "hashed") != NULL);
	assert_int_equal(def->column_count, 3);
	assert_int_equal(def->columns[0].path_count, 2);
	assert_true(str_eq(def->columns[0].path[0], STR("a")));
	assert_true(str_eq(def->columns[0].path[1], STR("b")));
	assert_false(def->columns[0].descending);
	assert_true(def->columns[1].descending);
	assert_int_equal(def->hashed, strstr(t->json, "hashed") ? 3 : 0);
	assert_int_equal(def->filter.ptr != NULL, strstr(t->json, "partial") != NULL);
	key = plain_index_build_key(p->db, p->db->name, def->number);
	assert_int_equal(key.space, CATALOG_SPACE_MONGO);
	assert_true(str_eq(key.db_name, p->db->name));
	assert_int_equal(key.db_number, p->db->number);
	assert_int_equal(key.number, def->number);
	assert_false(key.claims);
	return STATUS_OK;
}

static void
an_index_is_what_its_description_says(void **state)
{
	static const char *const specs[] = {
		"{\"name\":\"x\",\"key\":{\"a.b\":1,\"c\":-1.5,\"d\":{\"$numberLong\":\"2\"}},"
		"\"unique\":true,\"sparse\":true}",
		"{\"name\":\"x\",\"key\":{\"a.b\":1,\"c\":-1,\"d\":\"hashed\"},\"unique\":1,"
		"\"sparse\":true}",
		"{\"name\":\"x\",\"key\":{\"a.b\":1,\"c\":-1,\"d\":1},\"unique\":true,\"sparse\":"
		"true,"
		"\"partialFilterExpression\":{\"a\":1}}",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(specs); i++) {
		struct turn t = { .f = f, .run = make_index, .json = specs[i] };
		char name[32];

		(void)snprintf(name, sizeof(name), "db.index%zu", i);
		collection(f, name);
		t.name = name;
		if (turn(&t) != STATUS_OK)
			fail_msg("%s: %s", specs[i], f->err.text);
		t.run = look_at_index;
		assert_int_equal(turn(&t), STATUS_OK);
	}
}

/* Without a commit: the definition stays as it is. */
static enum status
describe_index(struct turn *t, struct plain *p)
{
	static char text[INDEX_SPEC_BYTES + 1];
	const struct index_def *def = &index_set_of(p->db)->defs[0];
	size_t len = INDEX_SPEC_BYTES + (t->json != NULL);
	enum status status;

	memset(text, 'x', sizeof(text));
	status = index_spec_set(p->tx, p->db, def, str_of(text, len), &t->f->err);
	return status == STATUS_OK ? STATUS_CANCELLED : status;
}

static void
a_changed_description_has_the_limit_of_a_new_one(void **state)
{
	struct fixture *f = *state;
	struct turn t = { .f = f,
			  .name = EXPLODED,
			  .run = make_index,
			  .json = "{\"name\":\"x\",\"key\":{\"a\":1}}" };

	assert_int_equal(turn(&t), STATUS_OK);
	t.run = describe_index;
	assert_int_equal(turn(&t), STATUS_LIMIT);
	assert_non_null(strstr(f->err.text, "at most"));
	t.json = NULL;
	assert_int_equal(turn(&t), STATUS_CANCELLED);
}

/* ---- Filters, and updates of each path ---- */

static enum status
update(struct turn *t, struct plain *p)
{
	static const struct bson_value id = BSON_OF_INT32(1);
	bool changed;

	return plain_update(p, &id, &t->change, 1, STR(""), t->f->arena, &changed);
}

static void
an_update_of_any_path_leaves_the_entries_that_a_filter_wants(void **state)
{
	static const char *const filters[] = {
		"{\"f\":1}",
		"{\"f.g\":{\"$gt\":1}}",
		"{\"$and\":[{\"f\":{\"$exists\":true}},{\"h\":1}]}",
		"{\"$or\":[{\"f\":1},{\"$and\":[{\"h\":1},{\"i.k\":{\"$lte\":2}}]}]}",
		"{\"h\":{\"$type\":\"int\"},\"i\":{\"$in\":[1,2]}}",
	};
	static const char *const paths[] = { "a",   "a.b", "a.0", "a.1.b", "c",  "f",
					     "f.g", "h",   "i",   "i.k",   "i.0" };
	static const struct bson_value values[] = { BSON_OF_INT32(1), BSON_OF_INT32(3) };
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(filters); i++) {
		char name[32], spec[300];
		struct turn t = { .f = f, .name = name, .run = make_index, .json = spec };

		(void)snprintf(name, sizeof(name), "db.filter%zu", i);
		collection(f, name);
		(void)snprintf(spec, sizeof(spec),
			       "{\"name\":\"x\",\"key\":{\"a.b\":1,\"c\":1},"
			       "\"partialFilterExpression\":%s}",
			       filters[i]);
		if (turn(&t) != STATUS_OK)
			fail_msg("%s: %s", spec, f->err.text);
		put(f, name, "{\"_id\":1,\"z\":0}");
		t.run = update;
		for (size_t k = 0; k < 3 * COUNT(paths); k++) {
			/* In an order in which each meets others before and behind it. */
			size_t at = k * 4 % COUNT(paths);
			enum status status;

			t.change = (struct plain_change){ str_from_cstr(paths[at]),
							  k % 3 == 2 ? NULL : &values[k % 3] };
			status = turn(&t);
			if (status != STATUS_OK && status != STATUS_INVALID)
				fail_msg("%s: %s %s", paths[at], status_name(status), f->err.text);
			verified_none(f->store);
		}
	}
}

/* ---- Documents in several ranges ---- */

static enum status
read_whole(struct turn *t, struct plain *p)
{
	static const struct bson_value id = BSON_OF_INT32(1);

	return plain_get(p, &id, KV_READ, t->f->arena, &t->read);
}

_Static_assert((size_t)NAME_BYTES *MEMBERS > KV_LIMIT_RANGE_BYTES, "its leaves are one range");

static void
a_document_of_many_leaves_is_read_whole(void **state)
{
	struct fixture *f = *state;
	struct buf json = BUF_INIT(TEXT_BYTES);
	struct turn t = { .f = f, .name = EXPLODED, .run = insert };
	struct str doc;

	buf_append_cstr(&json, "{\"_id\":1,\"");
	for (int i = 0; i < NAME_BYTES; i++)
		buf_append_byte(&json, 'n');
	buf_append_cstr(&json, "\":{\"first\":0");
	for (int i = 0; i < MEMBERS; i++)
		buf_printf(&json, ",\"%d\":%d", i, i);
	buf_append_cstr(&json, "}}");
	buf_append_byte(&json, 0);
	assert_int_equal(buf_status(&json), STATUS_OK);
	doc = doc_of(f, json.ptr);
	assert_true(doc.len < PLAIN_WHOLE_BYTES);
	t.json = json.ptr;
	if (turn(&t) != STATUS_OK)
		fail_msg("%s", f->err.text);
	t.run = read_whole;
	assert_int_equal(turn(&t), STATUS_OK);
	assert_true(str_eq(t.read, doc));
	buf_release(&json);
}

/* ---- What the catalog asks ---- */

static enum status
last_of_log(struct turn *t, struct plain *p)
{
	return plain_log_last(p, &t->seq);
}

/* The newest event of a collection by its number alone is the last of its log. */
static void
the_newest_event_is_the_last_of_the_log(void **state)
{
	struct fixture *f = *state;
	struct turn t = { .f = f, .name = EXPLODED, .run = last_of_log };

	for (int i = 0; i < 3; i++) {
		struct kv_future *newest;
		struct kv_range range;
		struct catalog_db *db;
		struct catalog_seq seq;
		struct kv_tx *tx;

		assert_int_equal(turn(&t), STATUS_OK);
		assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
		assert_int_equal(
			catalog_open(tx, NULL, CATALOG_SPACE_MONGO, STR(EXPLODED), &db, NULL),
			STATUS_OK);
		assert_int_equal(db->kind->newest_read(tx, db->number, &newest), STATUS_OK);
		assert_int_equal(kv_future_wait(newest), STATUS_OK);
		range = kv_future_range(newest);
		assert_int_equal(range.count, i > 0);
		if (i > 0) {
			assert_int_equal(db->kind->newest_parse(range.pairs[0].key, &seq),
					 STATUS_OK);
			assert_memory_equal(&seq, &t.seq, sizeof(seq));
		}
		catalog_db_unref(db);
		kv_tx_free(tx);
		if (i < 2)
			put(f, EXPLODED, i ? "{\"_id\":2}" : "{\"_id\":1}");
	}
}

static enum status
watch_notices(struct turn *t, struct plain *p)
{
	kv_future_free(t->watch);
	return plain_notices_watch(p->tx, &t->watch);
}

static enum status
put_notice(struct turn *t, struct plain *p)
{
	unsigned events = 0;

	return plain_notice_put(p->tx, p->db, PLAIN_NOTICE_CREATED, STR(PACKED), STR(""),
				BSON_EMPTY, &events, &t->f->err);
}

static void
a_notice_wakes_who_waits_for_it(void **state)
{
	struct fixture *f = *state;
	struct turn watch = { .f = f, .name = PACKED, .run = watch_notices };
	struct turn notice = { .f = f, .name = PACKED, .run = put_notice };

	assert_int_equal(turn(&watch), STATUS_OK);
	assert_false(kv_future_ready(watch.watch));
	put(f, PACKED, "{\"_id\":1}");
	assert_false(kv_future_ready(watch.watch));
	assert_int_equal(turn(&notice), STATUS_OK);
	assert_int_equal(kv_future_wait(watch.watch), STATUS_OK);
	kv_future_free(watch.watch);
}

/* The place of a scan that has read a document is known by the document's key alone. */
static enum status
compare_places(struct turn *t, struct plain *p)
{
	const struct plain_range range = { .mode = KV_SNAPSHOT };
	struct plain_scan scan;
	struct str doc;

	TRY(plain_scan_open(&scan, p, &range));
	for (int i = 1; i <= 2; i++) {
		AUTO(buf_release) struct buf key = BUF_INIT(100);
		AUTO(buf_release) struct buf place = CATALOG_KEY_INIT;
		const struct bson_value id = BSON_OF_INT32(i);

		assert_int_equal(plain_scan_next(&scan, t->f->arena, &doc), STATUS_OK);
		assert_int_equal(plain_index_id(&id, &key, NULL), STATUS_OK);
		assert_int_equal(plain_place_of(p, buf_str(&key), &place), STATUS_OK);
		assert_true(str_eq(buf_str(&place), plain_scan_place(&scan)));
	}
	plain_scan_close(&scan);
	return STATUS_OK;
}

static void
a_place_is_known_by_the_key(void **state)
{
	struct fixture *f = *state;
	struct turn t = { .f = f, .name = EXPLODED, .run = compare_places };

	put(f, EXPLODED, "{\"_id\":1,\"a\":[1,2]}");
	put(f, EXPLODED, "{\"_id\":2}");
	assert_int_equal(turn(&t), STATUS_OK);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		CASE(what_is_no_index_is_refused),
		CASE(an_index_is_what_its_description_says),
		CASE(a_changed_description_has_the_limit_of_a_new_one),
		CASE(an_update_of_any_path_leaves_the_entries_that_a_filter_wants),
		CASE(a_document_of_many_leaves_is_read_whole),
		CASE(the_newest_event_is_the_last_of_the_log),
		CASE(a_notice_wakes_who_waits_for_it),
		CASE(a_place_is_known_by_the_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
