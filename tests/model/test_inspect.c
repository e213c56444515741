/* What `frond inspect` shows of a database with revisions: the keys of a document, pair by pair. */
#include "fixture.h"

#include <stdlib.h>

#include "catalog/draw.h"
#include "doc/root.h"
#include "index/engine/entry.h"
#include "kv/tuple.h"
#include "model/revisioned/kind_int.h"
#include "model/revisioned/local.h"
#include "model/revisioned/local_root.h"
#include "model/revisioned/record.h"
#include "model/revisioned/revisioned_int.h"

enum {
	DRAWN_BYTES = 1 << 16,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct inspecting {
	struct fixture *f;
	const char *id;
	struct kv_tx *tx;
	struct buf out;
};

/* Draws all pairs below a key. */
static enum status
draw_prefix(void *arg, struct str prefix)
{
	struct inspecting *i = arg;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	struct kv_pair pair;
	enum status status;

	buf_append_str(&end, prefix);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(kv_scan_init(&scan, i->tx, prefix, buf_str(&end), NULL));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		catalog_draw_pair_of(i->f->db, &pair, &i->out);
		buf_append_byte(&i->out, '\n');
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Digits of Sequences differ from run to run: they become x. */
static void
mask_digits(char *text)
{
	enum {
		LONG = 26, /* of a Sequence */
	};

	for (char *at = text; *at;) {
		size_t len = strspn(at, "0123456789abcdef");

		if (len >= LONG && len < 32)
			memset(at, 'x', len);
		at += len + (len == 0);
	}
}

static const char *
inspected(struct fixture *f, const char *id)
{
	struct inspecting i = { .f = f, .out = BUF_INIT(DRAWN_BYTES) };
	struct str ret;

	i.tx = fixture_begin(f);
	assert_int_equal(
		rev_kind.inspect(i.tx, f->db, str_from_cstr(id), f->arena, draw_prefix, &i),
		STATUS_OK);
	kv_tx_free(i.tx);
	assert_int_equal(buf_status(&i.out), STATUS_OK);
	ret = arena_dup(f->arena, buf_str(&i.out));
	buf_release(&i.out);
	mask_digits((char *)(uintptr_t)ret.ptr);
	return ret.ptr;
}

/* ---- Documents ---- */

static void
a_document_is_shown_with_all_that_it_has(void **state)
{
	struct fixture *f = *state;
	struct rev_edit edit = fixture_copy(
		f, "a", "2-x r", false, "{\"a\":[],\"b\":{},\"c\":1.0,\"d\":[1,{\"e\":\"x\"}]}");
	const struct rev_att_edit att = {
		.source = REV_ATT_DATA,
		.att = { .id = { 1, 2, 3 },
			 .name = STR("f"),
			 .type = STR("x/y"),
			 .length = 3,
			 .encoded_length = 3 },
		.data = STR("abc"),
	};
	struct rev_result result;

	edit.atts = &att;
	edit.atts_count = 1;
	fixture_write(f, &edit, 1, &result);
	assert_int_equal(result.status, STATUS_OK);
	fixture_replicate(f, "a", "2-t s", true, "{}");
	fixture_put(f, "b", NULL, "{}");
	assert_string_equal(
		inspected(f, "a"),
		"(\"all_docs\", \"a\") = (1, 2, \\x78)\n"
		"(\"changes\", xxxxxxxxxxxxxxxxxxxxxxxxxx) = (1, \"a\", 2, \\x78, 2, true)\n"
		"(\"revisions\", \"a\", false, 2, \\x74) = (1, null, null, [\\x73], false)\n"
		"(\"revisions\", \"a\", true, 2, \\x78) = (1, xxxxxxxxxxxxxxxxxxxxxxxxxx, 2, "
		"[\\x72], true)\n"
		"(\"documents\", \"a\", true, 2, \\x78) = "
		"(2, {\"a\":[],\"b\":{},\"c\":1.0,\"d\":[1,{\"e\":\"x\"}]}, true)\n"
		"(\"documents\", \"a\", true, 2, \\x78, null, \"f\") = "
		"(1, uuid:01020300-0000-0000-0000-000000000000, \"x/y\", 3, 3, 0, "
		"\\x00000000000000000000000000000000, 0, 0)\n"
		"(\"attachments\", \"data\", uuid:01020300-0000-0000-0000-000000000000, 0) = "
		"(3 bytes)\n"
		"(\"attachments\", \"refs\", uuid:01020300-0000-0000-0000-000000000000) = 1\n");
	assert_string_equal(
		inspected(f, "b"),
		"(\"all_docs\", \"b\") = (1, 1, \\x967a00dff5e02add41819138abb3284d)\n"
		"(\"changes\", xxxxxxxxxxxxxxxxxxxxxxxxxx) = "
		"(1, \"b\", 1, \\x967a00dff5e02add41819138abb3284d, 1, true)\n"
		"(\"revisions\", \"b\", true, 1, \\x967a00dff5e02add41819138abb3284d) = "
		"(1, xxxxxxxxxxxxxxxxxxxxxxxxxx, 1, [], false)\n"
		"(\"documents\", \"b\", true, 1, \\x967a00dff5e02add41819138abb3284d) = (2, {})\n");
	assert_string_equal(inspected(f, "none"), "");
}

struct local_put {
	struct fixture *f;
	struct doc doc;
};

static enum status
local_body(struct kv_tx *tx, void *arg)
{
	struct local_put *p = arg;
	struct err err = { 0 };
	uint64_t rev;

	return rev_local_put(tx, p->f->db, STR("_local/l"), 0, &p->doc, p->f->arena, &rev, &err);
}

static void
a_local_document_has_no_change(void **state)
{
	struct fixture *f = *state;
	struct local_put p = { f, fixture_doc(f, "{\"n\":12}") };

	assert_int_equal(kv_run(f->store, local_body, &p, NULL, NULL), STATUS_OK);
	assert_string_equal(inspected(f, "_local/l"),
			    "(\"local\", \"_local/l\") = (2, 1, {\"n\":12})\n");
}

/* ---- Values ---- */

/* Nested tuples in a value, each with its elements given as a value of its own. */
static void
put_nested(struct buf *value, struct str elements)
{
	tuple_open(value);
	buf_append_str(value, elements);
	tuple_close(value);
}

static void
values_are_drawn_after_their_kind(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_release)
	struct buf empty = BUF_INIT(100), pair = BUF_INIT(100), other = BUF_INIT(100),
		   tuple = BUF_INIT(1000), counter = BUF_INIT(100);
	AUTO(buf_release) struct buf refs = CATALOG_KEY_INIT, data = CATALOG_KEY_INIT;
	static const uint8_t id[REV_ATT_ID_BYTES] = { 1 };

	tuple_open(&empty);
	tuple_close(&empty);
	tuple_put_double(&pair, 1);
	tuple_put_str(&pair, STR("1.00"));
	tuple_put_double(&other, 1);
	tuple_put_double(&other, 2);
	put_nested(&tuple, STR(""));
	put_nested(&tuple, buf_str(&empty));
	put_nested(&tuple, buf_str(&pair));
	put_nested(&tuple, buf_str(&other));
	buf_append(&counter, "\5\0\0\0\0\0\0\0", 8);
	rev_key_att(&refs, f->db, STR("refs"), id);
	rev_key_att(&data, f->db, STR("data"), id);
	const struct {
		uint64_t space;
		struct str key, value;
		const char *drawn; /* NULL: it is drawn as the tuple that it is */
	} cases[] = {
		{ REV_SUBSPACE_DOCUMENTS, STR(""), buf_str(&tuple), "([], {}, 1.00, (1.0, 2.0))" },
		{ REV_SUBSPACE_LOCAL, STR(""), buf_str(&tuple), "([], {}, 1.00, (1.0, 2.0))" },
		{ REV_SUBSPACE_REVISIONS, STR(""), buf_str(&pair), "(1.0, \"1.00\")" },
		{ REV_SUBSPACE_STATS, STR(""), buf_str(&counter), "5" },
		{ REV_SUBSPACE_STATS, STR(""), STR("?"), NULL },
		{ REV_SUBSPACE_PARTITIONS, STR(""), buf_str(&counter), "5" },
		{ REV_SUBSPACE_ATTACHMENTS, buf_str(&refs), buf_str(&counter), "5" },
		{ REV_SUBSPACE_ATTACHMENTS, buf_str(&refs), STR("?"), "(1 bytes)" },
		{ REV_SUBSPACE_ATTACHMENTS, buf_str(&data), buf_str(&counter), "(8 bytes)" },
		{ REV_SUBSPACE_ATTACHMENTS, STR(""), buf_str(&counter), "(8 bytes)" },
		{ REV_SUBSPACE_CONFIG, STR(""), buf_str(&counter), NULL },
		{ REV_SUBSPACE_CHANGES, STR(""), buf_str(&pair), NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf out = BUF_INIT(DRAWN_BYTES);
		bool drawn = rev_kind.draw_value(cases[i].space, cases[i].key, cases[i].value,
						 &out);

		buf_append_byte(&out, '\0');
		if (drawn != (cases[i].drawn != NULL) ||
		    (drawn && strcmp(out.ptr, cases[i].drawn) != 0))
			fail_msg("%zu: %s", i, out.ptr);
	}
}

/* The column of an entry is shown as its text, which the value has if the key ends in an id. */
static void
keys_of_entries_are_drawn_by_their_values(void **state)
{
	AUTO(buf_release)
	struct buf tail = BUF_INIT(100), text = BUF_INIT(100), bare = BUF_INIT(100),
		   out = BUF_INIT(DRAWN_BYTES);

	(void)state;
	tuple_put_u64(&tail, 7);
	tuple_put_double(&tail, 1.5);
	tuple_put_str(&tail, STR("d"));
	tuple_put_u64(&bare, INDEX_ENTRY_FORMAT);
	tuple_put_u64(&bare, 0);
	tuple_put_u64(&text, INDEX_ENTRY_FORMAT);
	tuple_put_u64(&text, INDEX_ENTRY_TEXTS);
	tuple_put_str(&text, STR("1.50"));
	assert_false(
		rev_kind.draw_key(REV_SUBSPACE_DOCUMENTS, buf_str(&tail), buf_str(&text), &out));
	assert_false(rev_kind.draw_key(REV_SUBSPACE_ENTRIES, buf_str(&tail), buf_str(&bare), &out));
	assert_int_equal(out.len, 0);
	assert_true(rev_kind.draw_key(REV_SUBSPACE_ENTRIES, buf_str(&tail), buf_str(&text), &out));
	assert_true(str_eq(buf_str(&out), STR("(7, 1.50, \"d\")")));
}

/* A text of a packed document is shown up to a limit. */
static void
long_texts_are_cut(void **state)
{
	char text[CATALOG_DRAW_TEXT_BYTES + 1];

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		memset(text, ' ', sizeof(text));
		text[0] = '{';
		text[CATALOG_DRAW_TEXT_BYTES - 1 + more] = '}';
		for (int local = 0; local < 2; local++) {
			AUTO(buf_release) struct buf value = BUF_INIT(DRAWN_BYTES);
			AUTO(buf_release) struct buf out = BUF_INIT(DRAWN_BYTES);
			size_t len = CATALOG_DRAW_TEXT_BYTES + more;
			const struct doc_root root = { .form = DOC_FORM_PACKED,
						       .packed = str_of(text, len) };
			const struct rev_local_root local_root = { .form = DOC_FORM_PACKED,
								   .rev = 7,
								   .packed = str_of(text, len) };

			if (local)
				rev_local_root_put(&value, &local_root);
			else
				doc_root_put(&value, &root);
			assert_true(rev_kind.draw_value(local ? REV_SUBSPACE_LOCAL
							      : REV_SUBSPACE_DOCUMENTS,
							STR(""), buf_str(&value), &out));
			buf_append_byte(&out, '\0');
			assert_memory_equal(out.ptr, local ? "(2, 7, {" : "(2, {", local ? 8 : 5);
			assert_true((strstr(out.ptr, "...(1001 bytes))") != NULL) == (more == 1));
			assert_int_equal(strspn(out.ptr + (local ? 8 : 5), " "),
					 CATALOG_DRAW_TEXT_BYTES - 2 + more);
		}
	}
}

/* ---- Names ---- */

static void
subspaces_have_names(void **state)
{
	static const char *const names[] = {
		[REV_SUBSPACE_ALL_DOCS] = "all_docs",
		[REV_SUBSPACE_CHANGES] = "changes",
		[REV_SUBSPACE_REVISIONS] = "revisions",
		[REV_SUBSPACE_DOCUMENTS] = "documents",
		[REV_SUBSPACE_LOCAL] = "local",
		[REV_SUBSPACE_ATTACHMENTS] = "attachments",
		[REV_SUBSPACE_INDEXES] = "indexes",
		[REV_SUBSPACE_CONFIG] = "config",
		[REV_SUBSPACE_STATS] = "stats",
		[REV_SUBSPACE_TALLIES] = "tallies",
		[REV_SUBSPACE_PURGES] = "purges",
		[REV_SUBSPACE_ENTRIES] = "entries",
		[REV_SUBSPACE_PARTITIONS] = "partitions",
		[REV_SUBSPACE_VIEWS] = "views",
	};
	size_t last = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		if (names[i])
			assert_string_equal(rev_kind.space_name(i), names[i]);
		else
			assert_null(rev_kind.space_name(i));
		last = i;
	}
	assert_null(rev_kind.space_name(last + 1));
	assert_null(rev_kind.space_name(UINT64_MAX));
}

/* A change stands for a document. */
static void
changes_stand_for_documents(void **state)
{
	(void)state;
	for (uint64_t space = 0; space < 20; space++) {
		AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

		tuple_put_u64(&key, space);
		tuple_put_u64(&key, 1);
		assert_int_equal(rev_kind.is_document(buf_str(&key)),
				 space == REV_SUBSPACE_CHANGES);
	}
	assert_false(rev_kind.is_document(STR("")));
	assert_false(rev_kind.is_document(STR("\x15")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_document_is_shown_with_all_that_it_has),
		TEST(a_local_document_has_no_change),
		TEST(values_are_drawn_after_their_kind),
		TEST(keys_of_entries_are_drawn_by_their_values),
		TEST(long_texts_are_cut),
		TEST(subspaces_have_names),
		TEST(changes_stand_for_documents),
	};

	return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
