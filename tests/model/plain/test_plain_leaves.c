/*
 * Documents in leaves as they are made, assembled and read: what leaves cannot hold lies in one
 * piece, what no document has is corrupt, and long ones are read in several stretches.
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
#include "fixture.h"
#include "kv/tuple.h"
#include "model/plain/plain_int.h"
#include "model/plain/salvage.h"
#include "verified.h"

enum {
	NOW_MS = 100 * 1000 * 1000,
	OUT_BYTES = 1 << 20,
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

static struct str
doc_of(struct fixture *f, const char *json)
{
	struct buf out = BUF_INIT(OUT_BYTES);
	struct str doc;

	if (bson_json_read(str_from_cstr(json), &out, &f->err) != STATUS_OK)
		fail_msg("%s: %s", json, f->err.text);
	doc = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	return doc;
}

static void
insert(struct turn *t, struct fixture *f, struct str doc)
{
	const struct plain_doc d = plain_doc_of(doc);

	assert_int_equal(plain_insert(&t->p, &d, f->arena), STATUS_OK);
}

/* ---- What leaves can hold ---- */

/* {_id: 1, name: value} */
static struct str
doc_with(struct fixture *f, struct str name, const struct bson_value *value)
{
	struct buf out = BUF_INIT(8 * OUT_BYTES);
	struct bson_builder b;
	struct str doc;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_int32(&b, STR("_id"), 1);
	bson_put(&b, name, value);
	bson_end(&b);
	doc = arena_dup(f->arena, buf_str(&out));
	assert_non_null(doc.ptr);
	buf_release(&out);
	return doc;
}

static void
leaves_have_their_limits(void **state)
{
	struct fixture *f = *state;
	const struct bson_value one = BSON_OF_INT32(1);
	char *text = calloc(1, KV_LIMIT_VALUE_BYTES);
	struct plain_pairs pairs;
	uint64_t next;

	memset(text, 'x', KV_LIMIT_VALUE_BYTES);
	for (size_t i = 0; i < 2; i++) {
		/* A name is a byte in front and a NUL behind in a key. */
		struct str name = str_of(text, PLAIN_KEY_BYTES - 100 - 2 + i);

		assert_int_equal(
			plain_explode(doc_with(f, name, &one), 100, f->arena, &pairs, &next),
			i ? STATUS_UNSUPPORTED : STATUS_OK);
	}
	/* A name that no key has room for at all. */
	assert_int_equal(plain_explode(doc_with(f, str_of(text, KV_LIMIT_KEY_BYTES), &one), 100,
				       f->arena, &pairs, &next),
			 STATUS_UNSUPPORTED);
	for (size_t i = 0; i < 2; i++) {
		const struct bson_value value = BSON_OF_STRING(
			str_of(text, KV_LIMIT_VALUE_BYTES - (i ? 1 : 10)));

		assert_int_equal(
			plain_explode(doc_with(f, STR("a"), &value), 100, f->arena, &pairs, &next),
			i ? STATUS_UNSUPPORTED : STATUS_OK);
	}
	/* No document at all. */
	assert_int_equal(plain_explode(BSON_EMPTY, 100, f->arena, &pairs, &next), STATUS_CORRUPT);
	free(text);
}

/* So many leaves that a transaction would be too large: one more than may be. */
static void
leaves_take_so_much_of_a_transaction(void **state)
{
	enum {
		EACH = 40000,
		PREFIX = 100,
	};
	struct fixture *f = *state;
	char *text = calloc(1, EACH);
	struct buf out = BUF_INIT(8 * OUT_BYTES);
	struct plain_pairs pairs;
	uint64_t next;

	memset(text, 'x', EACH);
	for (size_t count = 1; count < 100; count++) {
		struct bson_builder b;
		enum status status;

		buf_clear(&out);
		bson_builder_init(&b, &out);
		bson_begin(&b);
		bson_put_int32(&b, STR("_id"), 1);
		for (size_t i = 0; i < count; i++)
			bson_put_string(&b, arena_printf(f->arena, "f%zu", i), str_of(text, EACH));
		bson_end(&b);
		status = plain_explode(buf_str(&out), PREFIX, f->arena, &pairs, &next);
		if (status != STATUS_OK) {
			assert_int_equal(status, STATUS_UNSUPPORTED);
			assert_true(pairs.bytes + pairs.count * PREFIX > PLAIN_LEAVES_BYTES);
			assert_int_equal(pairs.count, count - 1);
			free(text);
			buf_release(&out);
			return;
		}
		assert_int_equal(next, count);
		/* All but the last are within the limit. */
		assert_true(pairs.bytes / count * (count - 1) + (count - 1) * PREFIX <=
			    PLAIN_LEAVES_BYTES);
		arena_clear(f->arena);
	}
	fail_msg("any number of leaves is possible");
}

/* Names of arrays are their positions; what other names come is kept in one piece. */
static void
arrays_of_other_names_are_no_leaves(void **state)
{
	static const struct {
		const char *array;
		size_t len;
		enum status status;
	} cases[] = {
		{ "\x11\0\0\0\x0a\x30\0\x0a\x31\0\0", 11, STATUS_OK }, /* 0, 1 */
		{ "\x0b\0\0\0\x0a\x30\0\x0a\x32\0\0", 11, STATUS_UNSUPPORTED },
		{ "\x0b\0\0\0\x0a\x31\0\x0a\x30\0\0", 11, STATUS_UNSUPPORTED },
		{ "\x0b\0\0\0\x0a\x30\0\x0a\x61\0\0", 11, STATUS_UNSUPPORTED },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		char bytes[16];
		struct bson_value array;
		struct plain_pairs pairs;
		uint64_t next;

		memcpy(bytes, cases[i].array, cases[i].len);
		bytes[0] = (char)cases[i].len;
		array = (struct bson_value){ .type = BSON_ARRAY,
					     .as_text = str_of(bytes, cases[i].len) };
		assert_int_equal(
			plain_explode(doc_with(f, STR("a"), &array), 100, f->arena, &pairs, &next),
			cases[i].status);
	}
}

/* ---- What is made of leaves ---- */

struct leaf {
	const char *key; /* as names, separated by dots; digits are positions */
	struct plain_leaf leaf;
};

static struct kv_pair
pair_of(struct fixture *f, const struct leaf *leaf)
{
	AUTO(buf_release) struct buf key = BUF_INIT(1000);
	AUTO(buf_release) struct buf value = BUF_INIT(1000);
	struct str rest = str_from_cstr(leaf->key);
	uint32_t position;

	while (rest.len) {
		struct str step = str_cut(&rest, '.');

		if (plain_step_is_position(step, &position))
			tuple_put_u64(&key, position);
		else
			tuple_put_str(&key, step);
	}
	assert_int_equal(plain_leaf_put(&leaf->leaf, &value), STATUS_OK);
	return (struct kv_pair){ arena_dup(f->arena, buf_str(&key)),
				 arena_dup(f->arena, buf_str(&value)) };
}

/* clang-format off */
#define NUMBER(n) { .type = BSON_INT32, .as_n = (n) }
#define DOC       { .type = BSON_DOCUMENT }
#define ARRAY     { .type = BSON_ARRAY }
/* clang-format on */

/* Members come by their ordinals, and these are below that of the next one and no two alike. */
static void
leaves_that_no_document_has_are_corrupt(void **state)
{
	static const struct {
		const char *name;
		const char *json; /* NULL: corrupt */
		struct leaf leaves[4];
	} cases[] = {
		{ "none", "{\"_id\":7}", { { 0 } } },
		{ "members by their ordinals",
		  "{\"_id\":7,\"b\":1,\"a\":2}",
		  { { "a", { 1, NUMBER(2), 0 } }, { "b", { 0, NUMBER(1), 0 } } } },
		{ "a gap",
		  "{\"_id\":7,\"b\":1,\"a\":2}",
		  { { "a", { 2, NUMBER(2), 0 } }, { "b", { 0, NUMBER(1), 0 } } } },
		{ "an ordinal twice",
		  NULL,
		  { { "a", { 1, NUMBER(2), 0 } }, { "b", { 1, NUMBER(1), 0 } } } },
		{ "an ordinal of the next one", NULL, { { "a", { 3, NUMBER(2), 0 } } } },
		{ "a container",
		  "{\"_id\":7,\"a\":{\"b\":1}}",
		  { { "a", { 0, DOC, 1 } }, { "a.b", { 0, NUMBER(1), 0 } } } },
		{ "a container's next ordinal",
		  NULL,
		  { { "a", { 0, DOC, 1 } }, { "a.b", { 1, NUMBER(1), 0 } } } },
		{ "an array",
		  "{\"_id\":7,\"a\":[1,2]}",
		  { { "a", { 0, ARRAY, 2 } },
		    { "a.0", { 0, NUMBER(1), 0 } },
		    { "a.1", { 1, NUMBER(2), 0 } } } },
		{ "an array without its first element",
		  NULL,
		  { { "a", { 0, ARRAY, 2 } }, { "a.1", { 1, NUMBER(2), 0 } } } },
		{ "an array without its last element",
		  NULL,
		  { { "a", { 0, ARRAY, 2 } }, { "a.0", { 0, NUMBER(2), 0 } } } },
		{ "an element that is not where it says",
		  NULL,
		  { { "a", { 0, ARRAY, 2 } },
		    { "a.0", { 1, NUMBER(1), 0 } },
		    { "a.1", { 0, NUMBER(2), 0 } } } },
		{ "an element with a name",
		  NULL,
		  { { "a", { 0, ARRAY, 1 } }, { "a.b", { 0, NUMBER(1), 0 } } } },
		{ "a member with a position",
		  NULL,
		  { { "a", { 0, DOC, 1 } }, { "a.0", { 0, NUMBER(1), 0 } } } },
		{ "a member of nothing", NULL, { { "a.b", { 0, NUMBER(1), 0 } } } },
		{ "a member of a number",
		  NULL,
		  { { "a", { 0, NUMBER(1), 0 } }, { "a.b", { 1, NUMBER(1), 0 } } } },
		{ "an empty key", NULL, { { "", { 0, NUMBER(1), 0 } } } },
	};
	struct fixture *f = *state;
	const struct plain_root root = { .form = PLAIN_FORM_LEAVES,
					 .next = 3,
					 .id = BSON_OF_INT32(7) };

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kv_pair pairs[4];
		struct str made = { 0 };
		size_t count = 0;
		enum status status;

		for (; count < 4 && cases[i].leaves[count].key; count++)
			pairs[count] = pair_of(f, &cases[i].leaves[count]);
		status = plain_assemble(&root, pairs, count, f->arena, &made);
		if (status != (cases[i].json ? STATUS_OK : STATUS_CORRUPT) ||
		    (cases[i].json && !str_eq(made, doc_of(f, cases[i].json))))
			fail_msg("%s: %s", cases[i].name, status_name(status));
	}
}

/* A value's own leaf comes first, and all others are in it. */
static void
a_value_is_made_of_its_own_leaves(void **state)
{
	static const struct leaf leaves[] = { { "a", { 0, NUMBER(5), 0 } },
					      { "b", { 0, ARRAY, 1 } },
					      { "b.0", { 0, NUMBER(6), 0 } },
					      { "c", { 1, NUMBER(7), 0 } } };
	struct fixture *f = *state;
	struct kv_pair pairs[COUNT(leaves)];
	struct bson_value value;

	for (size_t i = 0; i < COUNT(leaves); i++)
		pairs[i] = pair_of(f, &leaves[i]);
	assert_int_equal(plain_assemble_value(pairs, 1, f->arena, &value), STATUS_OK);
	assert_int_equal(bson_integer(&value), 5);
	assert_int_equal(plain_assemble_value(pairs, 2, f->arena, &value), STATUS_CORRUPT);
	assert_int_equal(plain_assemble_value(pairs + 1, 2, f->arena, &value), STATUS_OK);
	assert_int_equal(value.type, BSON_ARRAY);
	assert_int_equal(bson_count(bson_text(&value)), 1);
	assert_int_equal(plain_assemble_value(pairs + 1, 1, f->arena, &value), STATUS_CORRUPT);
	assert_int_equal(plain_assemble_value(pairs + 1, 3, f->arena, &value), STATUS_CORRUPT);
}

/* ---- Reading ---- */

/* A document of more leaves than one stretch of a range has. */
static void
long_documents_are_read_in_several_stretches(void **state)
{
	enum {
		EACH = 30000,
		LEAVES = 60,
	};
	struct fixture *f = *state;
	const struct bson_value id = BSON_OF_INT32(1);
	char *text = calloc(1, EACH);
	struct buf out = BUF_INIT(8 * OUT_BYTES);
	struct bson_builder b;
	struct str read;
	struct turn t;

	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put_int32(&b, STR("_id"), 1);
	for (int i = 0; i < LEAVES; i++) {
		memset(text, 'a' + i % 26, EACH);
		bson_put_string(&b, arena_printf(f->arena, "f%02d", i), str_of(text, EACH));
	}
	bson_end(&b);
	turn_begin(&t, f, EXPLODED);
	insert(&t, f, buf_str(&out));
	insert(&t, f, doc_of(f, "{\"_id\":2,\"a\":1}"));
	turn_commit(&t);
	turn_begin(&t, f, EXPLODED);
	assert_int_equal(plain_get(&t.p, &id, KV_READ, f->arena, &read), STATUS_OK);
	assert_true(str_eq(read, buf_str(&out)));
	turn_end(&t);
	free(text);
	buf_release(&out);
}

/* The `_id` is in the root, and what is in it has a path, too. */
static void
paths_lead_into_an_id(void **state)
{
	static const struct {
		const char *path;
		enum status status;
	} cases[] = { { "_id", STATUS_OK },
		      { "_id.x", STATUS_OK },
		      { "_id.y.0", STATUS_OK },
		      { "_id.z", STATUS_NOT_FOUND },
		      { "_id.x.a", STATUS_NOT_FOUND },
		      { "_idx", STATUS_NOT_FOUND },
		      { "_ie.x", STATUS_NOT_FOUND } };
	const char *names[] = { PACKED, EXPLODED };
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(names); i++) {
		struct str doc = doc_of(f, "{\"_id\":{\"x\":1,\"y\":[2]},\"a\":1}");
		struct bson_value id, value;
		const struct bson_value number = BSON_OF_INT32(5);
		struct turn t;

		assert_true(bson_find(doc, STR("_id"), &id));
		turn_begin(&t, f, names[i]);
		insert(&t, f, doc);
		insert(&t, f, doc_of(f, "{\"_id\":5,\"a\":1}"));
		for (size_t k = 0; k < COUNT(cases); k++)
			if (plain_get_path(&t.p, &id, str_from_cstr(cases[k].path), KV_READ,
					   f->arena, &value) != cases[k].status)
				fail_msg("%s of %s", cases[k].path, names[i]);
		assert_int_equal(
			plain_get_path(&t.p, &number, STR("_id.x"), KV_READ, f->arena, &value),
			STATUS_NOT_FOUND);
		turn_end(&t);
	}
}

static void
a_document_that_was_read_is_replaced_without_another_read(void **state)
{
	struct fixture *f = *state;
	const struct bson_value id = BSON_OF_INT32(1);
	struct str before = doc_of(f, "{\"_id\":1,\"a\":1}"), read;
	const struct plain_doc after = plain_doc_of(doc_of(f, "{\"_id\":1,\"b\":2}"));
	struct turn t;
	uint64_t reads;

	turn_begin(&t, f, PACKED);
	insert(&t, f, before);
	turn_commit(&t);
	turn_begin(&t, f, PACKED);
	reads = kv_tx_stats(t.tx).reads;
	assert_int_equal(
		plain_replace_whole(&t.p, &after, before, PLAIN_EVENT_REPLACE, STR(""), f->arena),
		STATUS_OK);
	assert_int_equal(kv_tx_stats(t.tx).reads, reads);
	turn_commit(&t);
	turn_begin(&t, f, PACKED);
	assert_int_equal(plain_get(&t.p, &id, KV_READ, f->arena, &read), STATUS_OK);
	assert_true(str_eq(read, after.bytes));
	turn_end(&t);
	verified_none(f->store);
}

/* ---- What cannot be read ---- */

/* Puts a value at the key of the document with that number, and perhaps of a member. */
static void
damage(struct turn *t, int n, const char *member, struct str value)
{
	const struct bson_value id = BSON_OF_INT32(n);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	assert_int_equal(plain_key_record(t->db, &id, &key, &t->err), STATUS_OK);
	if (member)
		tuple_put_str(&key, str_from_cstr(member));
	assert_int_equal(value.ptr ? kv_set(t->tx, buf_str(&key), value)
				   : kv_clear(t->tx, buf_str(&key)),
			 STATUS_OK);
}

static enum status
scan_first(struct turn *t, struct fixture *f)
{
	const struct plain_range all = { .mode = KV_READ };
	struct plain_scan scan = { 0 };
	struct str doc;
	enum status status = plain_scan_open(&scan, &t->p, &all);

	if (status == STATUS_OK)
		status = plain_scan_next(&scan, f->arena, &doc);
	plain_scan_close(&scan);
	return status;
}

static void
readers_name_what_they_cannot_read(void **state)
{
	static const struct {
		const char *member;
		const char *value; /* NULL: lost */
		size_t len;
		enum status get, scan;
		const char *why, *why_scan;
	} cases[] = {
		{ NULL, "?", 1, STATUS_CORRUPT, STATUS_CORRUPT, "a document cannot be read at (",
		  "a document cannot be read at (" },
		{ NULL, "\x15\x63", 2, STATUS_NEWER, STATUS_NEWER,
		  "the document was written by a newer frond, in format 99",
		  "the document was written by a newer frond, in format 99" },
		{ NULL, NULL, 0, STATUS_NOT_FOUND, STATUS_CORRUPT, "",
		  "a leaf without a document cannot be read at (" },
		{ "a", "?", 1, STATUS_CORRUPT, STATUS_CORRUPT,
		  "the leaves of a document cannot be read at (",
		  "the leaves of a document cannot be read at (" },
	};
	struct fixture *f = *state;
	const struct bson_value id = BSON_OF_INT32(1);

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct turn t;
		struct str read;

		turn_begin(&t, f, EXPLODED);
		insert(&t, f, doc_of(f, "{\"_id\":1,\"a\":[1]}"));
		damage(&t, 1, cases[i].member,
		       cases[i].value ? str_of(cases[i].value, cases[i].len)
				      : (struct str){ NULL, 0 });
		assert_int_equal(plain_get(&t.p, &id, KV_READ, f->arena, &read), cases[i].get);
		assert_says(&t.err, cases[i].why);
		t.err = (struct err){ 0 };
		assert_int_equal(scan_first(&t, f), cases[i].scan);
		assert_says(&t.err, cases[i].why_scan);
		turn_end(&t);
	}
}

/* ---- What is made of a damaged collection ---- */

struct dumping {
	struct buf out, told;
};

static enum status
ready(void *arg, struct err *err)
{
	(void)arg, (void)err;
	return STATUS_OK;
}

static enum status
end_line(void *arg, struct err *err)
{
	struct dumping *d = arg;

	(void)err;
	buf_append_byte(&d->out, '\n');
	return STATUS_OK;
}

static void
tell(void *arg, struct str entry, const char *why)
{
	struct dumping *d = arg;

	buf_printf(&d->told, "%.*s: %s\n", STR_ARG(entry), why);
}

static void
what_can_be_read_of_a_damaged_collection_comes_back(void **state)
{
	struct fixture *f = *state;
	struct dumping d = { .out = BUF_INIT(OUT_BYTES), .told = BUF_INIT(OUT_BYTES) };
	const struct catalog_broken broken = { tell, &d };
	struct turn t;

	turn_begin(&t, f, PACKED);
	for (int i = 0; i < 4; i++)
		insert(&t, f, doc_of(f, arena_printf(f->arena, "{\"_id\":%d}", i).ptr));
	damage(&t, 1, NULL, STR("?"));
	damage(&t, 2, NULL, STR("\x15\x63"));
	const struct catalog_dump dump = { .tx = t.tx,
					   .db = t.db,
					   .out = &d.out,
					   .ready = ready,
					   .end_line = end_line,
					   .arg = &d,
					   .err = &t.err };
	assert_int_equal(plain_salvage.dump(&dump, &broken), STATUS_OK);
	buf_append_byte(&d.out, '\0');
	buf_append_byte(&d.told, '\0');
	assert_string_equal(d.out.ptr, "{\"frond\":\"collection\",\"format\":1,"
				       "\"scheme\":\"packed\",\"options\":{}}\n"
				       "{\"_id\":{\"$numberInt\":\"0\"}}\n"
				       "{\"_id\":{\"$numberInt\":\"3\"}}\n");
	assert_non_null(strstr(d.told.ptr, ": a document cannot be read at ("));
	assert_non_null(strstr(d.told.ptr, ": the document was written by a newer frond, in "
					   "format 99\n"));
	assert_string_equal(t.err.text, "");
	/* A dump that is to be whole ends there. */
	assert_int_equal(plain_kind.dump(&dump), STATUS_CORRUPT);
	turn_end(&t);
	buf_release(&d.out);
	buf_release(&d.told);
}

/* Keys beneath a record tell that a collection was exploded, if they are among the first few. */
static void
keys_tell_the_scheme_of_what_is_left(void **state)
{
	const char *names[] = { PACKED, EXPLODED };
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(names); i++) {
		uint64_t options[CATALOG_OPTIONS] = { 7 };
		const char *made = "";
		struct turn t;

		turn_begin(&t, f, names[i]);
		assert_int_equal(plain_salvage.adopt(t.tx, t.db, options, &made, &t.err),
				 STATUS_OK);
		assert_int_equal(options[PLAIN_OPTION_SCHEME], PLAIN_PACKED);
		assert_null(made);
		insert(&t, f, doc_of(f, "{\"_id\":1,\"a\":1}"));
		insert(&t, f, doc_of(f, "{\"_id\":2}"));
		assert_int_equal(plain_salvage.adopt(t.tx, t.db, options, &made, &t.err),
				 STATUS_OK);
		assert_int_equal(options[PLAIN_OPTION_SCHEME], i ? PLAIN_EXPLODED : PLAIN_PACKED);
		turn_end(&t);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(leaves_have_their_limits),
		TEST(leaves_take_so_much_of_a_transaction),
		TEST(arrays_of_other_names_are_no_leaves),
		TEST(leaves_that_no_document_has_are_corrupt),
		TEST(a_value_is_made_of_its_own_leaves),
		TEST(long_documents_are_read_in_several_stretches),
		TEST(paths_lead_into_an_id),
		TEST(a_document_that_was_read_is_replaced_without_another_read),
		TEST(readers_name_what_they_cannot_read),
		TEST(what_can_be_read_of_a_damaged_collection_comes_back),
		TEST(keys_tell_the_scheme_of_what_is_left),
	};

	return cmocka_run_group_tests_name("plain_leaves", tests, NULL, NULL);
}
