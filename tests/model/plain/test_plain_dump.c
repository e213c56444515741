/* Dumps of collections: what they say, what is made of one, and which lines begin none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bson/json.h"
#include "catalog/kind.h"
#include "fixture.h"
#include "model/plain/plain.h"

enum {
	TEXT_BYTES = 1024 * 1024,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NUL          "\\u0000"
#define HEADER(rest) "{\"frond\":\"collection\",\"format\":2" rest "}"

/* ---- Collections from texts, and back ---- */

struct making {
	struct fixture *f;
	struct str name;
	struct str text; /* a header and documents, a line each */
	struct err err;
};

static struct str
line_take(struct str *rest)
{
	const char *end = memchr(rest->ptr, '\n', rest->len);
	struct str line = str_of(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);

	*rest = str_skip(*rest, line.len + (end != NULL));
	return line;
}

static enum status
make_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf room = BUF_INIT(TEXT_BYTES);
	struct making *m = arg;
	struct plain_dump_header header;
	struct str rest = m->text;
	struct catalog_db *db;
	enum status status;
	struct plain p;

	TRY(plain_dump_header_read(line_take(&rest), &room, &header, &m->err));
	TRY(plain_dump_create(tx, m->name, &header, m->f->arena, &m->err));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, m->name, &db, &m->err));
	plain_init(&p, tx, db, 0, &m->err);
	for (status = STATUS_OK; status == STATUS_OK && rest.len;) {
		AUTO(buf_release) struct buf bytes = BUF_INIT(TEXT_BYTES);
		struct plain_doc doc;

		status = bson_json_read(line_take(&rest), &bytes, &m->err);
		doc = plain_doc_of(buf_str(&bytes));
		if (status == STATUS_OK)
			status = plain_insert(&p, &doc, m->f->arena);
	}
	catalog_db_unref(db);
	return status;
}

static enum status
make(struct fixture *f, const char *name, struct str text)
{
	struct making m = { .f = f, .name = str_from_cstr(name), .text = text };
	enum status status = kv_run(f->store, make_body, &m, NULL, &m.err);

	f->err = m.err;
	return status;
}

static enum status
ready(void *arg, struct err *err)
{
	(void)arg, (void)err;
	return STATUS_OK;
}

static enum status
end_line(void *arg, struct err *err)
{
	(void)err;
	buf_append_byte(arg, '\n');
	return STATUS_OK;
}

static struct str
dumped(struct fixture *f, const char *name)
{
	struct buf out = BUF_INIT(TEXT_BYTES);
	struct catalog_dump dump = {
		.out = &out, .ready = ready, .end_line = end_line, .arg = &out, .err = &f->err
	};
	struct str ret;

	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &dump.tx), STATUS_OK);
	assert_int_equal(catalog_open(dump.tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(name),
				      &dump.db, &f->err),
			 STATUS_OK);
	assert_int_equal(dump.db->kind->dump(&dump), STATUS_OK);
	assert_int_equal(buf_status(&out), STATUS_OK);
	catalog_db_unref(dump.db);
	kv_tx_free(dump.tx);
	ret = arena_dup(f->arena, buf_str(&out));
	buf_release(&out);
	assert_non_null(ret.ptr);
	return ret;
}

/* ---- Tests ---- */

static const char *const dumps[] = {
	"{\"frond\":\"collection\",\"format\":1,\"scheme\":\"packed\",\"options\":{}}\n",
	"{\"frond\":\"collection\",\"format\":1,\"scheme\":\"packed\","
	"\"options\":{\"capped\":false}}\n"
	"{\"_id\":{\"$numberInt\":\"1\"},\"a\":{\"$numberLong\":\"2\"}}\n"
	"{\"_id\":\"x\",\"b\":[null,{\"c\":{\"$numberDouble\":\"0.5\"}}]}\n",
	"{\"frond\":\"collection\",\"format\":2,\"scheme\":\"exploded\",\"options\":{},"
	"\"indexes\":[{\"key\":{\"a\":{\"$numberInt\":\"1\"}},\"name\":\"a_1\"},"
	"{\"key\":{\"b.c\":{\"$numberInt\":\"-1\"}},\"name\":\"other\"}]}\n"
	"{\"_id\":{\"$numberInt\":\"1\"},\"a\":{\"$numberLong\":\"2\"}}\n"
	"{\"_id\":{\"$numberInt\":\"2\"},\"b\":[{\"c\":true}]}\n",
	"{\"frond\":\"collection\",\"format\":3,\"scheme\":\"packed\",\"options\":{},"
	"\"indexes\":[{\"key\":{\"a\":{\"$numberInt\":\"1\"}},\"name\":\"a_1\","
	"\"collation\":{\"locale\":\"en\",\"caseLevel\":false,\"caseFirst\":\"off\","
	"\"strength\":{\"$numberInt\":\"3\"},\"numericOrdering\":false,"
	"\"alternate\":\"non-ignorable\",\"maxVariable\":\"punct\",\"normalization\":false,"
	"\"backwards\":false,\"version\":\"57.1\"}}]}\n",
};

static void
what_is_made_of_a_dump_has_the_same_dump(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(dumps); i++) {
		const char *name = arena_printf(f->arena, "db.made%zu", i).ptr;

		if (make(f, name, str_from_cstr(dumps[i])) != STATUS_OK)
			fail_msg("%s: %s", dumps[i], f->err.text);
		assert_string_equal(dumped(f, name).ptr, dumps[i]);
	}
}

static void
what_begins_no_dump_is_refused(void **state)
{
	static const struct {
		const char *line;
		enum status status;
		const char *why;
	} cases[] = {
		{ "", STATUS_JSON_SYNTAX, "" },
		{ "[]", STATUS_INVALID, "" },
		{ "{}", STATUS_INVALID, "this is no dump of a collection" },
		{ "{\"frond\":1}", STATUS_INVALID, "this is no dump of a collection" },
		{ "{\"frond\":\"table\"}", STATUS_INVALID, "this is no dump of a collection" },
		{ "{\"frond\":\"collection\"}", STATUS_INVALID, "\"format\" is a whole number" },
		{ "{\"frond\":\"collection\",\"format\":\"1\"}", STATUS_INVALID,
		  "\"format\" is a whole number" },
		{ "{\"frond\":\"collection\",\"format\":0}", STATUS_INVALID,
		  "\"format\" is a whole number" },
		{ "{\"frond\":\"collection\",\"format\":4}", STATUS_NEWER,
		  "a newer frond has written this dump" },
		{ HEADER(",\"indexes\":[1]"), STATUS_INVALID,
		  "an index is a document with a name and a key" },
		{ HEADER(",\"indexes\":[[\"name\"]]"), STATUS_INVALID,
		  "an index is a document with a name and a key" },
		{ HEADER(",\"indexes\":[\"name\"]"), STATUS_INVALID,
		  "an index is a document with a name and a key" },
		/* A text whose bytes are those of such a document. */
		{ HEADER(",\"indexes\":[\"\\u0022" NUL NUL NUL "\\u0002name" NUL
			 "\\u0002" NUL NUL NUL "i" NUL "\\u0003key" NUL "\\f" NUL NUL NUL
			 "\\u0010a" NUL "\\u0001" NUL NUL NUL NUL NUL "\"]"),
		  STATUS_INVALID, "an index is a document with a name and a key" },
		{ HEADER(",\"indexes\":[{\"key\":{\"a\":1}}]"), STATUS_INVALID,
		  "an index is a document with a name and a key" },
		{ HEADER(",\"indexes\":[{\"name\":1,\"key\":{\"a\":1}}]"), STATUS_INVALID,
		  "an index is a document with a name and a key" },
		{ HEADER(",\"indexes\":[{\"name\":\"i\",\"key\":{\"a\":1}},"
			 "{\"name\":\"k\",\"key\":{\"b\":1}},"
			 "{\"name\":\"i\",\"key\":{\"c\":1}}]"),
		  STATUS_INVALID, "there are two indexes of one name" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		enum status status = make(f, "db.none", str_from_cstr(cases[i].line));

		if (status != cases[i].status || !strstr(f->err.text, cases[i].why))
			fail_msg("%s: %s, %s", cases[i].line, status_name(status), f->err.text);
	}
}

/* Of a member that is of another type nothing is taken. */
static void
what_a_header_does_not_say_is_as_in_an_empty_collection(void **state)
{
	static const char *const lines[] = {
		HEADER(""),
		HEADER(",\"scheme\":1,\"options\":[],\"indexes\":{}"),
		HEADER(",\"scheme\":\"packed\",\"options\":{},\"indexes\":[]"),
		HEADER(",\"scheme\":\"wrapped\",\"options\":\"{}\",\"indexes\":null"),
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(lines); i++) {
		const char *name = arena_printf(f->arena, "db.bare%zu", i).ptr;

		if (make(f, name, str_from_cstr(lines[i])) != STATUS_OK)
			fail_msg("%s: %s", lines[i], f->err.text);
		assert_string_equal(dumped(f, name).ptr, dumps[0]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_made_of_a_dump_has_the_same_dump),
		TEST(what_begins_no_dump_is_refused),
		TEST(what_a_header_does_not_say_is_as_in_an_empty_collection),
	};

	return cmocka_run_group_tests_name("plain_dump", tests, NULL, NULL);
}
