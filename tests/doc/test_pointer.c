#include "doc/packed.h"
#include "doc/root.h"
#include "doc_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kv/tuple.h"

/* The document's root key is (1, "doc"), beside others that must not be met. */
#define PREFIX                                                                                     \
	"\x15\x01\x02"                                                                             \
	"doc\0"

static const struct doc_place place = { STR(PREFIX), STR("\x15\x09") };

struct fixture {
	struct kv_store *store;
	struct arena *arena;
	char dir[64];
	uint64_t root; /* 1 if the document is there */
};

/* ---- Text ---- */

static void
assert_tokens(struct str text, size_t count, const struct str *tokens)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_pointer p;

	assert_int_equal(doc_pointer_parse(text, arena, &p, NULL), STATUS_OK);
	assert_int_equal(p.count, count);
	for (size_t i = 0; i < count; i++)
		assert_true(str_eq(p.tokens[i], tokens[i]));
	arena_free(arena);
}

static void
pointers_are_parsed_as_rfc_6901_says(void **state)
{
	(void)state;
	assert_tokens(STR(""), 0, NULL);
	assert_tokens(STR("/"), 1, (struct str[]){ STR("") });
	assert_tokens(STR("/foo/0"), 2, (struct str[]){ STR("foo"), STR("0") });
	assert_tokens(STR("/a~1b//m~0n/~01/ /\xc3\xa9/"), 7,
		      (struct str[]){ STR("a/b"), STR(""), STR("m~n"), STR("~1"), STR(" "),
				      STR("\xc3\xa9"), STR("") });
}

static void
text_that_is_no_pointer_is_refused(void **state)
{
	static const struct str bad[] = { STR("foo"), STR("#/foo"), STR("/a~"), STR("/a~2"),
					  STR("/\xff") };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_pointer p;
	char deep[JSON_DEPTH_LIMIT + 1];
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = '\0';
		assert_int_equal(doc_pointer_parse(bad[i], arena, &p, &err), STATUS_INVALID);
		assert_true(err.text[0]);
	}
	memset(deep, '/', sizeof(deep));
	assert_int_equal(doc_pointer_parse(str_of(deep, sizeof(deep)), arena, &p, &err),
			 STATUS_LIMIT);
	arena_free(arena);
}

/* ---- Reading from a store ---- */

static int
open_store(void **state)
{
	struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = mem_zalloc(sizeof(*f));
	char url[96];
	struct err err = { 0 };

	assert_non_null(f);
	snprintf(f->dir, sizeof(f->dir), "/tmp/frond-pointer-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(url, sizeof(url), "embedded:%s", f->dir);
	if (kv_open(url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	f->arena = arena_new(TEST_MAX_BYTES);
	assert_non_null(f->arena);
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

struct put {
	struct str prefix;
	const struct doc *doc;
	struct str packed;
};

static enum status
put_body(struct kv_tx *tx, void *arg)
{
	const struct put *p = arg;

	TRY(doc_clear(tx, p->prefix));
	if (!p->doc)
		return STATUS_OK;
	TRY(kv_set(tx, p->prefix, STR("\x15\x01")));
	return doc_write(tx, p->prefix, p->doc->leaves, p->doc->count);
}

/* Stores the document as (1, "doc"), or clears it when `text` is empty. */
static void
put_doc(struct fixture *f, struct str prefix, struct str text)
{
	struct put p = { .prefix = prefix };
	struct err err = { 0 };
	struct doc doc;

	f->root = text.len > 0;
	if (text.len) {
		doc = explode_or_fail(text, f->arena);
		p.doc = &doc;
	}
	if (kv_run(f->store, put_body, &p, NULL, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

static enum status
put_packed_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	const struct put *p = arg;

	TRY(doc_clear(tx, p->prefix));
	doc_root_put(&value, &(struct doc_root){ .form = DOC_FORM_PACKED, .packed = p->packed });
	return kv_set(tx, p->prefix, buf_str(&value));
}

static void
put_packed(struct fixture *f, struct str prefix, struct str text)
{
	struct put p = { .prefix = prefix, .packed = text };

	f->root = 1;
	assert_int_equal(kv_run(f->store, put_packed_body, &p, NULL, NULL), STATUS_OK);
}

/* Reads with the costs that the contract promises: the root, `leaves` and `trips` round trips. */
static void
assert_reads(struct fixture *f, const char *pointer, const char *expected, uint64_t leaves,
	     uint64_t trips)
{
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct doc_pointer p;
	struct kv_tx_stats stats;
	struct err err = { 0 };
	enum status status;
	struct kv_tx *tx;
	uint64_t version;

	assert_int_equal(doc_pointer_parse(str_from_cstr(pointer), f->arena, &p, &err), STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(kv_get_read_version(tx, &version), STATUS_OK);
	stats = kv_tx_stats(tx);
	trips += stats.round_trips;
	status = doc_read_pointer(tx, place, &p, KV_READ, f->arena, &out, &err);
	stats = kv_tx_stats(tx);
	kv_tx_free(tx);
	buf_append_byte(&out, '\0');
	if (expected) {
		if (status != STATUS_OK)
			fail_msg("%s: %s", pointer, err.text);
		assert_string_equal(out.ptr, expected);
	} else {
		assert_int_equal(status, STATUS_NOT_FOUND);
		assert_int_equal(out.len, 1);
	}
	assert_int_equal(stats.keys_read, f->root + leaves);
	assert_int_equal(stats.round_trips, trips);
	buf_release(&out);
}

static void
pointers_read_the_root_and_exactly_the_leaves_they_name_in_one_round_trip(void **state)
{
	struct fixture *f = *state;

	put_doc(f, STR(PREFIX),
		STR("{\"foo\":[\"bar\",\"baz\",{\"0\":[7]}],\"0\":\"zero\",\"a/"
		    "b\":1,\"m~n\":2,\"\":3,"
		    "\"e\":{},\"l\":[],\"o\":{\"x\":{\"y\":true,\"z\":null},\"w\":1.10},\"-\":4,"
		    "\"01\":5,\"a\":6,\"a\\u0000b\":8}"));
	assert_reads(f, "/foo/0", "\"bar\"", 1, 1);
	assert_reads(f, "/foo/1", "\"baz\"", 1, 1);
	assert_reads(f, "/foo/2", "{\"0\":[7]}", 1, 1);
	assert_reads(f, "/foo/2/0", "[7]", 1, 1);
	assert_reads(f, "/foo/2/0/0", "7", 1, 1);
	assert_reads(f, "/foo", "[\"bar\",\"baz\",{\"0\":[7]}]", 3, 1);
	assert_reads(f, "/0", "\"zero\"", 1, 1);
	assert_reads(f, "/a~1b", "1", 1, 1);
	assert_reads(f, "/m~0n", "2", 1, 1);
	assert_reads(f, "/", "3", 1, 1);
	assert_reads(f, "/e", "{}", 1, 1);
	assert_reads(f, "/l", "[]", 1, 1);
	assert_reads(f, "/o", "{\"w\":1.10,\"x\":{\"y\":true,\"z\":null}}", 3, 1);
	assert_reads(f, "/o/x", "{\"y\":true,\"z\":null}", 2, 1);
	assert_reads(f, "/-", "4", 1, 1);
	assert_reads(f, "/01", "5", 1, 1);
	/* Its key is the beginning of another member's. */
	assert_reads(f, "/a", "6", 1, 1);
}

static void
paths_without_leaves_are_not_found_and_cost_one_round_trip(void **state)
{
	struct fixture *f = *state;

	put_doc(f, STR(PREFIX), STR("{\"foo\":[1,2],\"o\":{\"x\":1},\"s\":\"text\"}"));
	assert_reads(f, "/nothing", NULL, 0, 1);
	assert_reads(f, "/foo/2", NULL, 0, 1);
	assert_reads(f, "/foo/-", NULL, 0, 1);
	assert_reads(f, "/foo/00", NULL, 0, 1);
	assert_reads(f, "/foo/01", NULL, 0, 1);
	assert_reads(f, "/foo/99999999999999999999", NULL, 0, 1);
	assert_reads(f, "/o/x/y", NULL, 0, 1);
	assert_reads(f, "/s/0", NULL, 0, 1);
}

static void
paths_longer_than_any_key_read_the_root_alone(void **state)
{
	struct fixture *f = *state;
	static char pointer[KV_LIMIT_KEY_BYTES + 2];

	put_doc(f, STR(PREFIX), STR("{\"x\":1}"));
	memset(pointer, 'x', KV_LIMIT_KEY_BYTES + 1);
	pointer[0] = '/';
	assert_reads(f, pointer, NULL, 0, 1);
}

static void
empty_pointer_is_the_whole_document_if_there_is_one(void **state)
{
	struct fixture *f = *state;

	put_doc(f, STR(PREFIX), STR("{\"b\":[1,{}],\"a\":2,\"_id\":\"x\"}"));
	assert_reads(f, "", "{\"a\":2,\"b\":[1,{}]}", 3, 1);
	put_doc(f, STR(PREFIX), STR("{}"));
	assert_reads(f, "", "{}", 0, 1);
	put_doc(f, STR(PREFIX), STR(""));
	assert_reads(f, "", NULL, 0, 1);
}

static void
many_numeric_tokens_resolve_the_leading_ones_first(void **state)
{
	struct fixture *f = *state;

	put_doc(f, STR(PREFIX), STR("{\"0\":[[{\"1\":[[0,{\"7\":\"deep\"}]]},2]],\"k\":1}"));
	/* 0 0 0 1 | 0 1 7 with k's: seven numbers, three of them resolved with one key each */
	assert_reads(f, "/0/0/0/1/0/1/7", "\"deep\"", 4, 4);
	assert_reads(f, "/0/0/0/1/0", "[0,{\"7\":\"deep\"}]", 3, 2);
	assert_reads(f, "/0/0/0/1/0/5/7", NULL, 3, 4);
	/* No member "5": its container has no leaf to tell what it is. */
	assert_reads(f, "/5/0/0/1/0/1/7", NULL, 1, 2);
}

static void
split_strings_are_read_whole_or_within_their_container(void **state)
{
	struct fixture *f = *state;
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct buf expected = BUF_INIT(TEST_MAX_BYTES);

	buf_append_byte(&expected, '"');
	for (int i = 0; i < 100000; i++)
		buf_append_cstr(&expected, "\xe2\x82\xac");
	buf_append_byte(&expected, '"');
	buf_append_cstr(&text, "{\"a\":1,\"s\":[0,");
	buf_append_str(&text, buf_str(&expected));
	buf_append_cstr(&text, ",\"end\"]}");
	buf_append_byte(&expected, '\0');
	put_doc(f, STR(PREFIX), buf_str(&text));
	assert_reads(f, "/s/1", expected.ptr, 4, 1);
	assert_reads(f, "/s/1/0", NULL, 0, 1);
	assert_reads(f, "/s/2", "\"end\"", 1, 1);
	buf_release(&text);
	buf_release(&expected);
}

static void
value_larger_than_a_range_answer_is_read_in_stretches(void **state)
{
	struct fixture *f = *state;
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct doc_pointer p = { 0 };
	struct kv_tx *tx;

	buf_append_cstr(&text, "{\"a\":[");
	for (int i = 0; i < 60; i++) {
		buf_append_cstr(&text, i ? ",\"" : "\"");
		for (int j = 0; j < 12500; j++)
			buf_append_cstr(&text, "01234567");
		buf_append_byte(&text, '"');
	}
	buf_append_cstr(&text, "],\"b\":1}");
	put_doc(f, STR(PREFIX), buf_str(&text));
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(doc_read_pointer(tx, place, &p, KV_SNAPSHOT, f->arena, &out, NULL),
			 STATUS_OK);
	assert_true(str_eq(buf_str(&out), buf_str(&text)));
	buf_release(&out);
	out = BUF_INIT(1000);
	assert_int_equal(doc_read_pointer(tx, place, &p, KV_SNAPSHOT, f->arena, &out, NULL),
			 STATUS_LIMIT);
	kv_tx_free(tx);
	buf_release(&out);
	buf_release(&text);
}

/* The cost, too: `keys` read in `trips`. */
static void
assert_values(struct fixture *f, const struct str *texts, const struct str *values, size_t count,
	      uint64_t keys, uint64_t trips)
{
	struct arena_mark mark = arena_mark(f->arena);
	struct doc_pointer pointers[8];
	struct doc_pointer_value found[8];
	struct kv_tx_stats stats;
	struct kv_tx *tx;

	for (size_t i = 0; i < count; i++)
		assert_int_equal(doc_pointer_parse(texts[i], f->arena, &pointers[i], NULL),
				 STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(doc_read_pointers(tx, place, pointers, count, KV_READ, TEST_MAX_BYTES,
					   f->arena, found, NULL),
			 STATUS_OK);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(found[i].found, values[i].ptr != NULL);
		if (values[i].ptr && !str_eq(found[i].text, values[i]))
			fail_msg("%.*s: %.*s", STR_ARG(texts[i]), STR_ARG(found[i].text));
	}
	stats = kv_tx_stats(tx);
	assert_int_equal(stats.keys_read, keys);
	assert_int_equal(stats.round_trips, trips);
	kv_tx_free(tx);
	arena_reset(f->arena, mark);
}

/* The packed body is the root's value: one key, whatever is asked for. */
static void
packed_document_is_read_with_its_root(void **state)
{
	static const char *const paths[] = { "/a/1", "/o/x", "/0/0/0/0/0/0", "/nothing", "/s/0" };
	static const char *const values[] = { "[2,{\"b\":3}]", "null", "[5]", NULL, NULL };
	struct fixture *f = *state;
	struct str texts[5];
	struct str wanted[5];

	put_packed(f, STR(PREFIX),
		   STR("{\"0\":[[{\"0\":[[[5]]]}]],\"a\":[1,[2,{\"b\":3}]],\"o\":{\"x\":null},"
		       "\"s\":\"t\"}"));
	for (size_t i = 0; i < 5; i++) {
		assert_reads(f, paths[i], values[i], 0, 1);
		texts[i] = str_from_cstr(paths[i]);
		wanted[i] = (struct str){ NULL, 0 };
		if (values[i])
			wanted[i] = str_from_cstr(values[i]);
	}
	assert_values(f, texts, wanted, 5, 1, 1);
	assert_reads(f, "",
		     "{\"0\":[[{\"0\":[[[5]]]}]],\"a\":[1,[2,{\"b\":3}]],\"o\":{\"x\":null},"
		     "\"s\":\"t\"}",
		     0, 1);
	put_packed(f, STR(PREFIX), STR("{}"));
	assert_reads(f, "", "{}", 0, 1);
	assert_reads(f, "/a", NULL, 0, 1);
}

static void
several_pointers_are_read_in_one_round_trip(void **state)
{
	const struct str texts[] = { STR("/a/b"), STR("/c/0"), STR("/x"), STR("/c/9"),
				     STR("/a"),   STR("/5/1"), STR("/d") };
	const struct str values[] = { STR("1"),    STR("[true,null]"),       { NULL, 0 },
				      { NULL, 0 }, STR("{\"b\":1,\"c\":2}"), STR("\"six\""),
				      STR("{}") };
	struct fixture *f = *state;

	put_doc(f, STR(PREFIX),
		STR("{\"5\":{\"1\":\"six\"},\"a\":{\"b\":1,\"c\":2},\"c\":[[true,null],7],\"d\":{},"
		    "\"e\":[1,2,3,4,5]}"));
	assert_values(f, texts, values, 7, 1 + 1 + 2 + 2 + 1 + 1, 1);
	assert_values(f, texts, values, 1, 1 + 1, 1);
	assert_values(f, texts + 2, values + 2, 2, 1, 1);
	assert_values(f, texts, values, 0, 0, 0);
	put_doc(f, STR(PREFIX), STR(""));
}

static void
several_pointers_with_many_numbers_resolve_together(void **state)
{
	const struct str texts[] = { STR("/0/0/0/0/0/0"), STR("/0/0/0/0/0/1"), STR("/0/1/0/0/0/0"),
				     STR("/a") };
	const struct str values[] = { STR("7"), STR("8"), { NULL, 0 }, STR("true") };
	struct fixture *f = *state;

	put_doc(f, STR(PREFIX), STR("{\"0\":[[[[{\"0\":7,\"1\":8}]]]],\"a\":true}"));
	/* Two waves, a key each for the first tokens of three pointers, and one for the rest; the
	 * root with the first. */
	assert_values(f, texts, values, 4, 1 + 3 + 3 + 2 + 1, 3);
	put_doc(f, STR(PREFIX), STR(""));
}

static void
several_values_are_bounded_together(void **state)
{
	struct fixture *f = *state;
	struct doc_pointer pointers[2];
	struct doc_pointer_value found[2];
	struct err err = { 0 };
	struct kv_tx *tx;

	put_doc(f, STR(PREFIX), STR("{\"a\":\"0123456789\"}"));
	for (int i = 0; i < 2; i++)
		assert_int_equal(doc_pointer_parse(STR("/a"), f->arena, &pointers[i], NULL),
				 STATUS_OK);
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	assert_int_equal(
		doc_read_pointers(tx, place, pointers, 2, KV_READ, 24, f->arena, found, &err),
		STATUS_OK);
	assert_int_equal(
		doc_read_pointers(tx, place, pointers, 2, KV_READ, 23, f->arena, found, &err),
		STATUS_LIMIT);
	assert_true(err.text[0]);
	kv_tx_free(tx);
	put_doc(f, STR(PREFIX), STR(""));
}

/* What others keep beside the body, as the model does with attachments. */
static void
whole_body_leaves_out_what_null_leads_to(void **state)
{
	struct fixture *f = *state;
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct doc_pointer p = { 0 };
	struct kv_tx *tx;

	put_doc(f, STR(PREFIX), STR("{\"a\":1}"));
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(kv_set(tx,
				STR(PREFIX "\0\x02"
					   "name\0"),
				STR("")),
			 STATUS_OK);
	assert_int_equal(doc_read_pointer(tx, place, &p, KV_READ, f->arena, &out, NULL), STATUS_OK);
	assert_true(str_eq(buf_str(&out), STR("{\"a\":1}")));
	kv_tx_free(tx);
	put_doc(f, STR(PREFIX), STR(""));
	buf_release(&out);
}

static void
clear_takes_the_root_and_the_leaves_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	/* (1, "doc\0") has this document's root key as its beginning. */
	struct str beside = STR("\x15\x01\x02"
				"doc\0\xff\0");
	struct kv_range range;
	struct kv_future *future;
	struct kv_tx *tx;

	put_doc(f, STR(PREFIX), STR("{\"a\":1,\"\xf0\x9d\x84\x9e\":[2]}"));
	put_doc(f, beside, STR("{\"b\":1}"));
	put_doc(f, STR(PREFIX), STR(""));
	assert_int_equal(kv_begin(f->store, KV_TX_READ_ONLY, &tx), STATUS_OK);
	future = kv_get_range(tx, STR("\x15\x01"), STR("\x15\x02"), NULL);
	assert_int_equal(kv_future_wait(future), STATUS_OK);
	range = kv_future_range(future);
	assert_int_equal(range.count, 2);
	assert_true(str_eq(range.pairs[0].key, beside));
	kv_tx_free(tx);
	put_doc(f, beside, STR(""));
}

static void
damaged_leaves_are_corrupt(void **state)
{
	struct fixture *f = *state;
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct doc_pointer p = { 0 };
	struct err err = { 0 };
	struct kv_tx *tx;

	put_doc(f, STR(PREFIX), STR("{\"a\":[1,2,3]}"));
	assert_int_equal(kv_begin(f->store, KV_TX_READ_WRITE, &tx), STATUS_OK);
	assert_int_equal(kv_clear(tx, STR(PREFIX "\x02"
						 "a\0\x15\x01")),
			 STATUS_OK);
	assert_int_equal(doc_read_pointer(tx, place, &p, KV_READ, f->arena, &out, &err),
			 STATUS_CORRUPT);
	assert_true(err.text[0]);
	assert_int_equal(out.len, 0);
	kv_tx_free(tx);
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointers_are_parsed_as_rfc_6901_says),
		cmocka_unit_test(text_that_is_no_pointer_is_refused),
		cmocka_unit_test(
			pointers_read_the_root_and_exactly_the_leaves_they_name_in_one_round_trip),
		cmocka_unit_test(paths_without_leaves_are_not_found_and_cost_one_round_trip),
		cmocka_unit_test(paths_longer_than_any_key_read_the_root_alone),
		cmocka_unit_test(empty_pointer_is_the_whole_document_if_there_is_one),
		cmocka_unit_test(packed_document_is_read_with_its_root),
		cmocka_unit_test(many_numeric_tokens_resolve_the_leading_ones_first),
		cmocka_unit_test(split_strings_are_read_whole_or_within_their_container),
		cmocka_unit_test(value_larger_than_a_range_answer_is_read_in_stretches),
		cmocka_unit_test(several_pointers_are_read_in_one_round_trip),
		cmocka_unit_test(several_pointers_with_many_numbers_resolve_together),
		cmocka_unit_test(several_values_are_bounded_together),
		cmocka_unit_test(whole_body_leaves_out_what_null_leads_to),
		cmocka_unit_test(clear_takes_the_root_and_the_leaves_and_nothing_else),
		cmocka_unit_test(damaged_leaves_are_corrupt),
	};

	return cmocka_run_group_tests(tests, open_store, close_store);
}
