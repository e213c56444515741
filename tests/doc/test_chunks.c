/* Root values, and texts that lie in chunks. */
#include "doc/chunks.h"
#include "doc/packed.h"
#include "doc/root.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "doc_test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TEXTS    STR("\x15\x09")
#define KEY                                                                                        \
	STR("\x15\x01\x02"                                                                         \
	    "doc\0")

enum {
	ELEMENTS = 100000,
};

static const uint8_t id[DOC_TEXT_ID_BYTES] = "0123456789abcdef";

/* ---- Root values ---- */

static void
assert_root(const struct doc_root *root, struct str encoded)
{
	struct buf value = BUF_INIT(100);
	struct doc_root read;

	doc_root_put(&value, root);
	assert_true(str_eq(buf_str(&value), encoded));
	assert_int_equal(doc_root_read(encoded, &read, NULL), STATUS_OK);
	assert_int_equal(read.form, root->form);
	assert_int_equal(read.more, root->more);
	assert_int_equal(read.packed.ptr != NULL, root->form == DOC_FORM_PACKED);
	if (read.packed.ptr)
		assert_true(str_eq(read.packed, root->packed));
	assert_int_equal(read.text_bytes, root->text_bytes);
	assert_memory_equal(read.text_id, root->text_id, sizeof(read.text_id));
	buf_release(&value);
}

static void
root_values_tell_where_the_body_is(void **state)
{
	struct doc_root root = { .form = DOC_FORM_EXPLODED, .more = true };

	(void)state;
	assert_root(&root, STR("\x15\x01"));
	root = (struct doc_root){ .form = DOC_FORM_PACKED, .packed = STR("{\"a\":1}") };
	assert_root(&root, STR("\x15\x02\x02{\"a\":1}\0"));
	root = (struct doc_root){ .form = DOC_FORM_PACKED, .packed = STR("{}"), .more = true };
	assert_root(&root, STR("\x15\x02\x02{}\0\x27"));
	root = (struct doc_root){ .form = DOC_FORM_CHUNKED, .text_bytes = 8000000 };
	memcpy(root.text_id, id, sizeof(id));
	assert_root(&root, STR("\x15\x03\x30"
			       "0123456789abcdef\x17\x7a\x12\x00"));
	root.more = true;
	assert_root(&root, STR("\x15\x03\x30"
			       "0123456789abcdef\x17\x7a\x12\x00\x27"));
}

static void
other_values_are_no_root_values(void **state)
{
	static const struct str values[] = {
		STR(""),
		STR("\x14"),
		STR("\x15\x03"),
		STR("\x15\x02"),
		STR("\x15\x01\x02{}\0"),
		STR("\x15\x02\x15\x01"),
		STR("\x15\x02\x01{}\0"),
		STR("\x15\x02\x02{\0"),
		STR("\x15\x02\x02[]\0"),
		STR("\x15\x02\x02{\"a\":1\0"),
		STR("\x15\x02\x02{}\0\x14"),
		STR("\x15\x02\x02{}\0\x26"),
		STR("\x15\x02\x02{}\0\x27\x27"),
		STR("\x15\x02\x02{\0\xff}\0"),
		STR("\x15\x03\x30"
		    "0123456789abcdef"),
		STR("\x15\x03\x30"
		    "0123456789abcdef\x14"),
		STR("\x15\x03\x30"
		    "0123456789abcdef\x17\x7a\x12\x01"), /* one byte more than a document has */
		STR("\x15\x03\x30"
		    "0123456789abcdef\x15\x09\x26"),
	};
	struct doc_root root;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(values); i++)
		assert_int_equal(doc_root_read(values[i], &root, NULL), STATUS_CORRUPT);
	assert_int_equal(doc_root_read(STR("\x15\x04"), &root, NULL), STATUS_NEWER);
	assert_int_equal(doc_root_read(STR("\x15\x04\x02{}\0"), &root, &err), STATUS_NEWER);
	assert_non_null(strstr(err.text, "written by a newer frond: form 4"));
}

/* ---- Texts in a store ---- */

struct fixture {
	struct kv_store *store;
	struct arena *arena;
	char dir[64];
	struct str text; /* {"a":[0,1,…],"z":{"last":true}} */
};

/* A text of several chunks. */
static struct str
make_text(struct arena *arena)
{
	struct buf b = BUF_INIT(TEST_MAX_BYTES);
	struct str text;

	buf_append_cstr(&b, "{\"a\":[");
	for (int i = 0; i < ELEMENTS; i++)
		buf_printf(&b, i ? ",%d" : "%d", i);
	buf_append_cstr(&b, "],\"z\":{\"last\":true}}");
	assert_int_equal(buf_status(&b), STATUS_OK);
	text = arena_dup(arena, buf_str(&b));
	buf_release(&b);
	return text;
}

static enum status
put_text(struct kv_tx *tx, void *arg)
{
	const struct fixture *f = arg;
	AUTO(buf_release) struct buf prefix = BUF_INIT(100);
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	struct doc_root root = { .form = DOC_FORM_CHUNKED, .text_bytes = f->text.len };

	memcpy(root.text_id, id, sizeof(id));
	doc_root_put(&value, &root);
	doc_text_prefix(&prefix, TEXTS, id);
	TRY(kv_set(tx, KEY, buf_str(&value)));
	return doc_chunks_write(tx, buf_str(&prefix), f->text);
}

static int
open_store(void **state)
{
	struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = mem_zalloc(sizeof(*f));
	char url[96];

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/tmp/frond-chunks-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(url, sizeof(url), "embedded:%s", f->dir);
	assert_int_equal(kv_open(url, &options, &f->store, NULL), STATUS_OK);
	f->arena = arena_new(TEST_MAX_BYTES);
	f->text = make_text(f->arena);
	assert_int_equal(kv_run(f->store, put_text, f, NULL, NULL), STATUS_OK);
	*state = f;
	return 0;
}

static int
close_store(void **state)
{
	struct fixture *f = *state;
	char command[96];

	kv_close(f->store);
	arena_free(f->arena);
	snprintf(command, sizeof(command), "rm -r %s", f->dir);
	assert_int_equal(system(command), 0);
	mem_free(f);
	return 0;
}

static enum status
read_text(struct fixture *f, uint64_t bytes, struct str *ret)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(100);
	enum status status;
	struct kv_tx *tx;

	doc_text_prefix(&prefix, TEXTS, id);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	status = doc_chunks_read(tx, buf_str(&prefix), bytes, f->arena, ret);
	kv_tx_free(tx);
	return status;
}

static enum status
clear_second_chunk(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(100);

	(void)arg;
	doc_text_prefix(&key, TEXTS, id);
	tuple_put_u64(&key, 1);
	return kv_clear(tx, buf_str(&key));
}

static void
text_comes_back_whole_and_damage_is_told(void **state)
{
	struct fixture *f = *state;
	struct str text;

	assert_true(doc_chunks_count(f->text.len) > 3);
	assert_int_equal(read_text(f, f->text.len, &text), STATUS_OK);
	assert_true(str_eq(text, f->text));
	assert_int_equal(read_text(f, f->text.len - 1, &text), STATUS_CORRUPT);
	assert_int_equal(read_text(f, f->text.len + 1, &text), STATUS_CORRUPT);
	assert_int_equal(read_text(f, DOC_CHUNK_BYTES, &text), STATUS_OK);
	assert_int_equal(read_text(f, f->text.len + DOC_CHUNK_BYTES, &text), STATUS_CORRUPT);
	assert_int_equal(kv_run(f->store, clear_second_chunk, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(read_text(f, f->text.len, &text), STATUS_CORRUPT);
}

/* ---- Pointers ---- */

static const struct doc_place place = { KEY, TEXTS };

/* `keys`: chunks that are read for it, at most; the root comes to them. */
static void
assert_value(struct fixture *f, const char *pointer, const char *expected, uint64_t keys)
{
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct kv_tx_stats stats;
	struct doc_pointer p;
	enum status status;
	struct kv_tx *tx;

	assert_int_equal(doc_pointer_parse(str_from_cstr(pointer), f->arena, &p, NULL), STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	status = doc_read_pointer(tx, place, &p, KV_READ, f->arena, &out, NULL);
	stats = kv_tx_stats(tx);
	kv_tx_free(tx);
	assert_int_equal(status, expected ? STATUS_OK : STATUS_NOT_FOUND);
	if (expected && !str_eq(buf_str(&out), str_from_cstr(expected)))
		fail_msg("%s: %.*s", pointer, STR_ARG(buf_str(&out)));
	assert_in_range(stats.keys_read, 1, 1 + keys);
	buf_release(&out);
}

static void
values_are_read_out_of_chunks(void **state)
{
	struct fixture *f = *state;
	uint64_t all = doc_chunks_count(f->text.len);

	assert_value(f, "/a/0", "0", 6); /* not more than one read of several chunks */
	assert_value(f, "/a/99999", "99999", all);
	assert_value(f, "/z", "{\"last\":true}", all);
	assert_value(f, "/z/last", "true", all);
	assert_value(f, "/z/first", NULL, all);
	assert_value(f, "/a/100000", NULL, all);
	assert_value(f, "/a/x", NULL, 6);
	assert_value(f, "/0/1/2/3/4/5", NULL, all);
	assert_value(f, "", f->text.ptr, all);
}

static void
values_at_several_pointers_are_read_in_one_pass(void **state)
{
	static const char *const texts[] = { "/z/last", "/a/7", "/none", "/a/99998", "/a/5/5" };
	static const char *const expected[] = { "true", "7", NULL, "99998", NULL };
	struct fixture *f = *state;
	struct doc_pointer pointers[COUNT(texts)];
	struct doc_pointer_value values[COUNT(texts)];
	struct kv_tx_stats stats;
	struct err err = { 0 };
	struct kv_tx *tx;

	for (size_t i = 0; i < COUNT(texts); i++)
		assert_int_equal(
			doc_pointer_parse(str_from_cstr(texts[i]), f->arena, &pointers[i], NULL),
			STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(doc_read_pointers(tx, place, pointers, COUNT(texts), KV_READ, 1000,
					   f->arena, values, &err),
			 STATUS_OK);
	stats = kv_tx_stats(tx);
	assert_int_equal(stats.keys_read, 1 + doc_chunks_count(f->text.len));
	for (size_t i = 0; i < COUNT(texts); i++) {
		assert_int_equal(values[i].found, expected[i] != NULL);
		if (expected[i])
			assert_true(str_eq(values[i].text, str_from_cstr(expected[i])));
	}
	/* Together they may not be longer than the caller wants. */
	pointers[1].count = 1;
	assert_int_equal(doc_read_pointers(tx, place, pointers, COUNT(texts), KV_READ, 1000,
					   f->arena, values, &err),
			 STATUS_LIMIT);
	kv_tx_free(tx);
}

/* ---- Conflicts ---- */

/* A transaction that has read at `pointer`, and writes something else. */
static struct kv_tx *
begin_reader(struct fixture *f, struct doc_place at, const char *pointer)
{
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct doc_pointer p;
	enum status status;
	struct kv_tx *tx;

	assert_int_equal(doc_pointer_parse(str_from_cstr(pointer), f->arena, &p, NULL), STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	status = doc_read_pointer(tx, at, &p, KV_READ, f->arena, &out, NULL);
	assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
	assert_int_equal(kv_set(tx, STR("\x15\x07"), STR("x")), STATUS_OK);
	buf_release(&out);
	return tx;
}

static void
leaves_conflict_although_they_have_one_range_together(void **state)
{
	static const char *const paths[] = { "/a/1", "/b", "/missing", "" };
	const struct doc_place at = { .key = STR("\x15\x02"), .texts = TEXTS };
	struct fixture *f = *state;
	struct doc doc = explode_or_fail(STR("{\"a\":[1,2,3],\"b\":{}}"), f->arena);

	for (size_t i = 0; i < COUNT(paths); i++) {
		struct kv_tx *reader = begin_reader(f, at, paths[i]);
		struct kv_tx *beside = begin_reader(f, place, "/a/1");
		struct kv_tx *writer;

		assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &writer), STATUS_OK);
		assert_int_equal(doc_write(writer, at.key, doc.leaves, doc.count), STATUS_OK);
		assert_int_equal(kv_future_wait(kv_commit(writer)), STATUS_OK);
		assert_int_equal(kv_future_wait(kv_commit(reader)), STATUS_TX_CONFLICT);
		assert_int_equal(kv_future_wait(kv_commit(beside)), STATUS_OK);
		kv_tx_free(writer);
		kv_tx_free(reader);
		kv_tx_free(beside);
	}
}

/* ---- Which form is chosen ---- */

static void
document_of_too_many_leaves_is_packed_whatever_its_length(void **state)
{
	struct doc_limits limits = { .doc_bytes = DOC_LIMIT_MAX_BYTES,
				     .path_bytes = KV_LIMIT_KEY_BYTES,
				     .packed_bytes = DOC_PACKED_BYTES,
				     .leaves_bytes = DOC_LEAVES_BYTES };
	struct fixture *f = *state;
	struct doc doc;

	assert_int_equal(doc_explode_text(f->text, f->arena, &limits, 10, &doc, NULL), STATUS_OK);
	assert_null(doc.packed.ptr);
	assert_int_equal(doc.count, ELEMENTS + 1);
	/* The same with longer keys. */
	assert_int_equal(doc_explode_text(f->text, f->arena, &limits, 100, &doc, NULL), STATUS_OK);
	assert_int_equal(doc.count, 0);
	assert_true(str_eq(doc.packed, f->text));
	/* The other scheme packs nothing that leaves can have. */
	limits.packed_bytes = 0;
	assert_int_equal(doc_explode_text(f->text, f->arena, &limits, 100, &doc, NULL), STATUS_OK);
	assert_true(str_eq(doc.packed, f->text));
	limits.leaves_bytes = 0;
	assert_int_equal(doc_explode_text(f->text, f->arena, &limits, 100, &doc, NULL), STATUS_OK);
	assert_int_equal(doc.count, ELEMENTS + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_store, close_store)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(root_values_tell_where_the_body_is),
		cmocka_unit_test(other_values_are_no_root_values),
		TEST(text_comes_back_whole_and_damage_is_told),
		TEST(values_are_read_out_of_chunks),
		TEST(values_at_several_pointers_are_read_in_one_pass),
		TEST(leaves_conflict_although_they_have_one_range_together),
		TEST(document_of_too_many_leaves_is_packed_whatever_its_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
