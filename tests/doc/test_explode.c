#include "doc_test.h"

#include <stdio.h>
#include <stdlib.h>

#include <openssl/evp.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kv/tuple.h"

/* Leaves drawn one a line: path = value. */
static void
assert_leaves(struct str text, const char *expected)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf drawn = BUF_INIT(TEST_MAX_BYTES);
	struct doc doc = explode_or_fail(text, arena);

	for (size_t i = 0; i < doc.count; i++) {
		tuple_draw(doc.leaves[i].key, &drawn);
		buf_append_cstr(&drawn, " = ");
		tuple_draw(doc.leaves[i].value, &drawn);
		buf_append_byte(&drawn, '\n');
	}
	buf_append_byte(&drawn, '\0');
	assert_string_equal(drawn.ptr, expected);
	buf_release(&drawn);
	arena_free(arena);
}

static void
each_value_becomes_its_leaf(void **state)
{
	(void)state;
	assert_leaves(STR("{}"), "");
	assert_leaves(STR("{\"foo\":{\"bar\":{\"baz\":123}}}"),
		      "(\"foo\", \"bar\", \"baz\") = (123)\n");
	assert_leaves(STR("{\"states\":[\"MA\",\"OH\"],\"n\":null,\"t\":true,\"f\":false}"),
		      "(\"f\") = (false)\n"
		      "(\"n\") = (null)\n"
		      "(\"states\", 0) = (\"MA\")\n"
		      "(\"states\", 1) = (\"OH\")\n"
		      "(\"t\") = (true)\n");
	assert_leaves(STR("{\"a\":[],\"o\":{},\"x\":[[],{}]}"), "(\"a\") = (())\n"
								"(\"o\") = ((()))\n"
								"(\"x\", 0) = (())\n"
								"(\"x\", 1) = ((()))\n");
	assert_leaves(STR("{\"a\":1.5,\"b\":1.10,\"c\":-0,\"d\":1e2,\"e\":18446744073709551616}"),
		      "(\"a\") = (1.5)\n"
		      "(\"b\") = ((1.1, \"1.10\"))\n"
		      "(\"c\") = ((-0.0, \"-0\"))\n"
		      "(\"d\") = ((100.0, \"1e2\"))\n"
		      "(\"e\") = (0x010000000000000000)\n");
	assert_leaves(STR("{\"\":\"\",\"a\\u0000b\":\"\\u0000\"}"),
		      "(\"\") = (\"\")\n"
		      "(\"a\\x00b\") = (\"\\x00\")\n");
}

static void
of_duplicate_members_the_last_wins_with_its_whole_subtree(void **state)
{
	(void)state;
	assert_leaves(STR("{\"a\":{\"x\":1},\"a\":{\"y\":2}}"), "(\"a\", \"y\") = (2)\n");
	assert_leaves(STR("{\"a\":1,\"a\":{}}"), "(\"a\") = ((()))\n");
	assert_leaves(STR("{\"a\":{\"b\":1},\"a\":2}"), "(\"a\") = (2)\n");
	assert_leaves(STR("{\"a\":[1,2,3],\"a\":{\"x\":[]}}"), "(\"a\", \"x\") = (())\n");
	assert_leaves(STR("{\"a\":[1,2,3],\"b\":0,\"a\":[4]}"),
		      "(\"a\", 0) = (4)\n(\"b\") = (0)\n");
	assert_leaves(STR("{\"o\":{\"k\":{\"p\":1,\"q\":2},\"z\":1,\"k\":{\"q\":3,\"q\":4}},"
			  "\"n\":[{\"d\":1,\"d\":2}]}"),
		      "(\"n\", 0, \"d\") = (2)\n"
		      "(\"o\", \"k\", \"q\") = (4)\n"
		      "(\"o\", \"z\") = (1)\n");
	assert_leaves(STR("{\"a\":1,\"\\u0061\":2}"), "(\"a\") = (2)\n");
	assert_leaves(STR("{\"a\":1,\"a\":2,\"a\":3,\"a\":4}"), "(\"a\") = (4)\n");
}

static void
members_come_back_in_key_order(void **state)
{
	(void)state;
	assert_comes_back_as(STR("{\"b\":1,\"a\":2,\"aa\":{\"z\":[3,{\"y\":4,\"x\":5}]},\"\":6}"),
			     STR("{\"\":6,\"a\":2,\"aa\":{\"z\":[3,{\"x\":5,\"y\":4}]},\"b\":1}"));
	/* Longer than the first eight bytes that are compared first; a NUL inside. */
	assert_comes_back_as(
		STR("{\"prefix-2\":1,\"prefix-10\":2,\"prefix-1\":3,\"a\\u0000\":4,\"a\":5,"
		    "\"a\\u0000b\":6,\"a\\u0001\":7}"),
		STR("{\"a\":5,\"a\\u0000\":4,\"a\\u0000b\":6,\"a\\u0001\":7,"
		    "\"prefix-1\":3,\"prefix-10\":2,\"prefix-2\":1}"));
	assert_comes_back_as(
		STR("{\"\xc3\xa9\":1,\"z\":2,\"\xf0\x9d\x84\x9e\":3,\"\xef\xbf\xbd\":4}"),
		STR("{\"z\":2,\"\xc3\xa9\":1,\"\xef\xbf\xbd\":4,\"\xf0\x9d\x84\x9e\":3}"));
	assert_comes_back_as(STR("{}"), STR("{}"));
	assert_comes_back_as(STR("{\"a\":{\"a\":{}},\"b\":[[[]]]}"),
			     STR("{\"a\":{\"a\":{}},\"b\":[[[]]]}"));
}

static void
transform_vectors_come_out_exact(void **state)
{
	static const struct str same[] = {
		STR("{\"v\":[-9223372036854775808]}"),
		STR("{\"v\":[-9223372036854775809]}"),
		STR("{\"v\":[1.0]}"),
		STR("{\"v\":[1.000000000000000005]}"),
		STR("{\"v\":[1000000000000000]}"),
		STR("{\"v\":[10000000000000000999]}"),
		STR("{\"v\":[1E-999]}"),
		STR("{\"v\":[1E6]}"),
		STR("{\"v\":[9223372036854775807]}"),
		STR("{\"v\":[9223372036854775808]}"),
		STR("{\"v\":[\"A\\u0000B\"]}"),
		STR("{\"e\xcc\x81\":\"NFD\",\"\xc3\xa9\":\"NFC\"}"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_comes_back_as(same[i], same[i]);
	assert_comes_back_as(STR("{\"a\":1,\"a\":2}"), STR("{\"a\":2}"));
	assert_comes_back_as(STR("{\"a\":1,\"a\":1}"), STR("{\"a\":1}"));
	assert_comes_back_as(STR("{\"a\":0, \"a\":-0}"), STR("{\"a\":-0}"));
}

/* ---- Numbers ---- */

static void
assert_number_is_exact(struct str number)
{
	struct buf text = BUF_INIT(TEST_MAX_BYTES);

	buf_append_cstr(&text, "{\"n\":[");
	buf_append_str(&text, number);
	buf_append_cstr(&text, ",-");
	buf_append_str(&text, number);
	buf_append_cstr(&text, "]}");
	assert_comes_back_as(buf_str(&text), buf_str(&text));
	buf_release(&text);
}

static void
numbers_keep_their_text(void **state)
{
	static const char *const numbers[] = {
		"0",
		"1",
		"127",
		"255",
		"256",
		"65535",
		"2147483647",
		"2147483648",
		"4294967296",
		"999999999999999999",
		"1000000000000000000",
		"9223372036854775807",
		"9223372036854775808",
		"9223372036854775809",
		"18446744073709551615",
		"18446744073709551616",
		"0.0",
		"1.0",
		"1.10",
		"1.1",
		"1e2",
		"1E400",
		"1e-400",
		"1.5e300",
		"1.5e+300",
		"0.1",
		"0.30000000000000004",
		"0.3000000000000000000004",
		"1e0",
		"0e0",
		"0.000001",
		"0.0000001",
		"1e-7",
		"123456789012345678901234567890.5",
		"2.2250738585072014e-308",
		"5e-324",
		"1.7976931348623157e+308",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_number_is_exact(str_from_cstr(numbers[i]));
}

static void
integers_of_any_length_are_exact(void **state)
{
	static const size_t lengths[] = { 18,  19,  20,  21,  38,   39,    57,    300,  613,
					  614, 615, 616, 700, 9999, 10000, 10001, 50000 };
	struct rand_seq r = { 5 };
	static char digits[50000];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (int round = 0; round < 3; round++) {
			for (size_t j = 0; j < lengths[i]; j++)
				digits[j] = (char)(round == 0   ? '9'
						   : round == 1 ? '0'
								: '0' + rand_seq_below(&r, 10));
			if (digits[0] == '0')
				digits[0] = '1';
			assert_number_is_exact(str_of(digits, lengths[i]));
		}
	}
}

static void
big_integers_up_to_255_bytes_are_tuple_integers(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	/* 2^64 - 1, 2^64, -(2^63) - 1 */
	struct doc doc = explode_or_fail(
		STR("{\"a\":18446744073709551615,\"b\":18446744073709551616,"
		    "\"c\":-9223372036854775809}"),
		arena);

	(void)state;
	assert_int_equal(doc.count, 3);
	assert_true(str_eq(doc.leaves[0].value, STR("\x1c\xff\xff\xff\xff\xff\xff\xff\xff")));
	assert_true(str_eq(doc.leaves[1].value, STR("\x1d\x09\x01\0\0\0\0\0\0\0\0")));
	assert_true(str_eq(doc.leaves[2].value, STR("\x0c\x7f\xff\xff\xff\xff\xff\xff\xfe")));
	arena_free(arena);
}

static void
doubles_are_read_as_the_library_reads_them(void **state)
{
	struct rand_seq r = { 31 };

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct arena *arena = arena_new(TEST_MAX_BYTES);
		struct tuple_reader reader;
		struct tuple_elem e;
		char text[128];
		struct doc doc;
		double d;
		int n;

		n = snprintf(text, sizeof(text), "{\"n\":%s%llu.%0*llue%d}",
			     rand_seq_below(&r, 2) ? "-" : "",
			     (unsigned long long)(rand_seq_next(&r) >> rand_seq_below(&r, 64)),
			     (int)rand_seq_below(&r, 30) + 1,
			     (unsigned long long)(rand_seq_next(&r) >> rand_seq_below(&r, 64)),
			     (int)rand_seq_below(&r, 50) - 25);
		doc = explode_or_fail(str_of(text, (size_t)n), arena);
		d = strtod(text + 5, NULL);
		reader = tuple_reader(doc.leaves[0].value);
		assert_int_equal(tuple_next(&reader, &e), STATUS_OK);
		if (e.kind == TUPLE_NESTED) {
			reader = tuple_reader_nested(&e);
			assert_int_equal(tuple_next(&reader, &e), STATUS_OK);
		}
		assert_int_equal(e.kind, TUPLE_DOUBLE);
		if (e.d != d)
			fail_msg("%s became %.17g", text, e.d);
		arena_free(arena);
	}
}

static void
numbers_beyond_doubles_sort_as_the_greatest(void **state)
{
	(void)state;
	assert_leaves(STR("{\"a\":1e400,\"b\":-1e400,\"c\":1e-400,\"d\":0.0e999999999999}"),
		      "(\"a\") = ((1.7976931348623157e+308, \"1e400\"))\n"
		      "(\"b\") = ((-1.7976931348623157e+308, \"-1e400\"))\n"
		      "(\"c\") = ((0.0, \"1e-400\"))\n"
		      "(\"d\") = ((0.0, \"0.0e999999999999\"))\n");
}

static void
number_longer_than_a_value_is_refused(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct err err = { 0 };
	struct doc doc;

	(void)state;
	buf_append_cstr(&text, "{\"a\":[1");
	for (int i = 0; i < 100000; i++)
		buf_append_byte(&text, '0');
	buf_append_cstr(&text, "]}");
	assert_int_equal(doc_explode_text(buf_str(&text), arena, &test_limits, 0, &doc, &err),
			 STATUS_DOC_TOO_LARGE);
	assert_string_equal(err.text, "/a/0 is a number longer than 100000 bytes");
	buf_release(&text);
	arena_free(arena);
}

/* ---- Long strings ---- */

static void
assert_long_string_comes_back(const char *unit, size_t bytes, size_t pieces)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct doc doc;

	buf_append_cstr(&text, "{\"a\":0,\"s\":[\"");
	while (text.len < bytes)
		buf_append_cstr(&text, unit);
	buf_append_cstr(&text, "\",true],\"z\":1}");
	assert_comes_back_as(buf_str(&text), buf_str(&text));
	doc = explode_or_fail(buf_str(&text), arena);
	assert_int_equal(doc.count, pieces + 3);
	for (size_t i = 0; i < doc.count; i++)
		assert_true(doc.leaves[i].value.len <= KV_LIMIT_VALUE_BYTES);
	buf_release(&text);
	arena_free(arena);
}

static void
long_strings_are_split_and_joined(void **state)
{
	(void)state;
	assert_long_string_comes_back("x", 100000, 1);
	assert_long_string_comes_back("x", 100100, 2);
	assert_long_string_comes_back("\xc3\xa9", 250000, 3);
	assert_long_string_comes_back("a\xe2\x82\xac", 300100, 4);
	assert_long_string_comes_back("\xf0\x9d\x84\x9e", 500000, 6);
	/* Encoded, a NUL is two bytes; in JSON, six. */
	assert_long_string_comes_back("\\u0000", 400000, 2);
	assert_long_string_comes_back("\\\"\\\\", 600000, 3);
}

static void
pieces_hold_whole_characters(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct tuple_reader r;
	struct tuple_elem e;
	struct doc doc;

	(void)state;
	buf_append_cstr(&text, "{\"s\":\"x");
	for (int i = 0; i < 50000; i++)
		buf_append_cstr(&text, "\xe2\x82\xac");
	buf_append_cstr(&text, "\"}");
	doc = explode_or_fail(buf_str(&text), arena);
	assert_int_equal(doc.count, 2);
	assert_true(str_eq(doc.leaves[0].key, STR("\x02s\x00\x00\x14")));
	assert_true(str_eq(doc.leaves[1].key, STR("\x02s\x00\x00\x15\x01")));
	r = tuple_reader(doc.leaves[0].value);
	assert_int_equal(tuple_next(&r, &e), STATUS_OK);
	assert_int_equal(e.raw.len, 1 + 33332 * 3); /* 99,999 encoded */
	buf_release(&text);
	arena_free(arena);
}

/* ---- Limits ---- */

static void
path_limit_counts_the_prefix_and_names_the_path(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_limits limits = { .doc_bytes = 1000, .path_bytes = 20 };
	struct err err = { 0 };
	struct doc doc;

	(void)state;
	/* 02 'abc' 00 02 'defg' 00 15 01: 13 bytes */
	assert_int_equal(
		doc_explode_text(STR("{\"abc\":{\"defg\":[1,2]}}"), arena, &limits, 7, &doc, &err),
		STATUS_OK);
	assert_int_equal(
		doc_explode_text(STR("{\"abc\":{\"defg\":[1,2]}}"), arena, &limits, 8, &doc, &err),
		STATUS_PATH_TOO_LONG);
	assert_string_equal(err.text, "/abc/defg/1 makes a key longer than 20 bytes");
	assert_int_equal(doc_explode_text(STR("{\"a/b~c\":{\"0123456789\":{\"0123456789\":[]}}}"),
					  arena, &limits, 0, &doc, &err),
			 STATUS_PATH_TOO_LONG);
	assert_string_equal(err.text,
			    "/a~1b~0c/0123456789/0123456789 makes a key longer than 20 bytes");
	arena_free(arena);
}

static void
path_limit_counts_what_a_split_string_adds(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_limits limits = { .doc_bytes = DOC_LIMIT_MAX_BYTES, .path_bytes = 5 };
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct err err = { 0 };
	struct doc doc;

	(void)state;
	buf_append_cstr(&text, "{\"s\":\"");
	for (int i = 0; i < 150000; i++)
		buf_append_byte(&text, 'x');
	buf_append_cstr(&text, "\"}");
	/* 02 's' 00 00 15 01: the second piece's path has six bytes. */
	assert_int_equal(doc_explode_text(buf_str(&text), arena, &limits, 0, &doc, &err),
			 STATUS_PATH_TOO_LONG);
	assert_string_equal(err.text, "/s makes a key longer than 5 bytes");
	limits.path_bytes = 6;
	assert_int_equal(doc_explode_text(buf_str(&text), arena, &limits, 0, &doc, &err),
			 STATUS_OK);
	buf_release(&text);
	arena_free(arena);
}

static void
long_paths_are_cut_in_explanations(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct err err = { 0 };
	struct doc doc;

	(void)state;
	buf_append_cstr(&text, "{\"x");
	for (int i = 0; i < 5000; i++)
		buf_append_cstr(&text, "\xc3\xa9");
	buf_append_cstr(&text, "\":1}");
	assert_int_equal(doc_explode_text(buf_str(&text), arena, &test_limits, 0, &doc, &err),
			 STATUS_PATH_TOO_LONG);
	assert_int_equal(strlen(err.text), 200 + strlen("... makes a key longer than 10000 bytes"));
	buf_release(&text);
	arena_free(arena);
}

static void
document_limit_leaves_special_members_out(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_limits limits = { .doc_bytes = 20, .path_bytes = 1000 };
	struct err err = { 0 };
	struct doc doc;

	(void)state;
	assert_int_equal(
		doc_explode_text(STR("{\"a\":\"0123456789ab\"}"), arena, &limits, 0, &doc, &err),
		STATUS_OK);
	assert_int_equal(doc.json_bytes, 20);
	assert_int_equal(
		doc_explode_text(STR("{\"a\":\"0123456789abc\"}"), arena, &limits, 0, &doc, &err),
		STATUS_DOC_TOO_LARGE);
	assert_string_equal(err.text, "the document is larger than 20 bytes");
	assert_int_equal(
		doc_explode_text(STR("{\"_attachments\":{\"x\":\"0123456789012345678901\"},"
				     "\"a\":\"0123456789ab\"}"),
				 arena, &limits, 0, &doc, &err),
		STATUS_OK);
	assert_int_equal(doc.json_bytes, 20);
	assert_int_equal(
		doc_explode_text(STR("{\"_id\":\"x\",\"a\":\"0123456789ab\",\"_rev\":\"1-a\"}"),
				 arena, &limits, 0, &doc, &err),
		STATUS_OK);
	assert_int_equal(doc.json_bytes, 20);
	assert_int_equal(doc_explode_text(STR("{\"_id\":\"x\",\"_rev\":\"1-a\"}"), arena, &limits,
					  0, &doc, &err),
			 STATUS_OK);
	assert_int_equal(doc.json_bytes, 2);
	arena_free(arena);
}

static void
reader_goes_on_behind_a_document_that_broke_a_limit(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_limits limits = { .doc_bytes = 20, .path_bytes = 1000 };
	struct err err = { 0 };
	enum json_token token;
	struct json_reader r;
	struct doc doc;

	(void)state;
	json_reader_init(&r,
			 STR("[{\"a\":{\"b\":[\"far too long for this\",{}]},\"c\":1},{\"d\":2}]"),
			 &err);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(doc_explode(&r, NULL, arena, &limits, 0, &doc, &err),
			 STATUS_DOC_TOO_LARGE);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(token, JSON_OBJECT_BEGIN);
	assert_int_equal(doc_explode(&r, NULL, arena, &limits, 0, &doc, &err), STATUS_OK);
	assert_int_equal(doc.count, 1);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(token, JSON_ARRAY_END);
	json_reader_release(&r);
	arena_free(arena);
}

/* The same document with scratch that other documents have used, and with fresh scratch. */
static void
assert_scratch_is_clean(struct doc_scratch *scratch, struct arena *arena, struct str text,
			size_t packed)
{
	const struct doc_limits limits = { .doc_bytes = DOC_LIMIT_DEFAULT_BYTES,
					   .path_bytes = 1000,
					   .packed_bytes = packed };
	struct json_reader r;
	enum json_token token;
	struct err err = { 0 };
	struct doc again, fresh;
	enum status status;

	status = doc_explode_text(text, arena, &limits, 0, &fresh, &err);
	json_reader_init(&r, text, &err);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(doc_explode(&r, scratch, arena, &limits, 0, &again, &err), status);
	json_reader_release(&r);
	if (status != STATUS_OK)
		return;
	assert_true(str_eq(again.term, fresh.term));
	assert_int_equal(again.packed.ptr != NULL, fresh.packed.ptr != NULL);
	assert_true(str_eq(again.packed, fresh.packed));
	assert_int_equal(again.count, fresh.count);
	for (size_t i = 0; i < fresh.count; i++) {
		assert_true(str_eq(again.leaves[i].key, fresh.leaves[i].key));
		assert_true(str_eq(again.leaves[i].value, fresh.leaves[i].value));
	}
	assert_int_equal(again.specials_count, fresh.specials_count);
	assert_int_equal(again.json_bytes, fresh.json_bytes);
	assert_int_equal(again.path_bytes, fresh.path_bytes);
}

static void
scratch_keeps_nothing_of_earlier_documents(void **state)
{
	enum {
		LARGE = 200000
	};
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_scratch *scratch = doc_scratch_new();
	struct buf large = BUF_INIT(2 * LARGE);

	(void)state;
	assert_non_null(scratch);
	buf_append_cstr(&large, "{\"b\":1,\"long\":[");
	while (large.len < LARGE)
		buf_append_cstr(&large, "{\"z\":\"words\",\"a\":0,\"a\":1},");
	buf_append_cstr(&large, "7]}");
	for (size_t packed = 4; packed <= 4096; packed *= 4) {
		assert_scratch_is_clean(scratch, arena, STR("{\"b\":1,\"a\":[1,2],\"_id\":\"x\"}"),
					packed);
		assert_scratch_is_clean(scratch, arena, buf_str(&large), packed);
		assert_scratch_is_clean(scratch, arena, STR("{\"a\":{\"b\":[{\"c\":"), packed);
		assert_scratch_is_clean(scratch, arena, STR("{}"), packed);
		assert_scratch_is_clean(scratch, arena, STR("{\"b\":{},\"b\":[],\"a\":\"\\n\"}"),
					packed);
		assert_scratch_is_clean(scratch, arena,
					STR("{\"abc\":0,\"abcd\":1,\"ab\":2,\"abcdefghi\":3,"
					    "\"abcdefg\":4,\"abcdefgh\":5,\"\":6}"),
					packed);
	}
	doc_scratch_free(scratch);
	buf_release(&large);
	arena_free(arena);
}

static void
text_that_is_no_object_is_refused(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct err err = { 0 };
	struct doc doc;

	(void)state;
	assert_int_equal(doc_explode_text(STR("[1]"), arena, &test_limits, 0, &doc, &err),
			 STATUS_INVALID);
	assert_string_equal(err.text, "a document must be a JSON object");
	assert_int_equal(doc_explode_text(STR("{\"a\":1} 2"), arena, &test_limits, 0, &doc, &err),
			 STATUS_JSON_SYNTAX);
	assert_int_equal(doc_explode_text(STR("{\"a\":tru}"), arena, &test_limits, 0, &doc, &err),
			 STATUS_JSON_SYNTAX);
	assert_string_equal(err.text, "line 1 column 9: unexpected '}'");
	arena_free(arena);
}

static void
memory_shortage_anywhere_is_reported_and_leaks_nothing(void **state)
{
	struct str text = STR(
		"{\"b\":[1,2,{\"c\\n\":\"x\\n\"}],\"a\":{},\"a\":1.10,\"_id\":\"d\"}");
	enum status status = STATUS_NOMEM;
	uint64_t failures = 0;

	(void)state;
	for (uint64_t n = 1; status != STATUS_OK; n++) {
		struct arena *arena = arena_new(TEST_MAX_BYTES);
		struct doc doc;

		assert_non_null(arena);
		mem_fail_after(n);
		status = doc_explode_text(text, arena, &test_limits, 0, &doc, NULL);
		mem_fail_after(0);
		assert_true(status == STATUS_OK || status == STATUS_NOMEM ||
			    status == STATUS_LIMIT);
		failures += status != STATUS_OK;
		arena_free(arena);
	}
	assert_true(failures > 5);
}

static void
full_arena_is_a_limit(void **state)
{
	struct arena *arena = arena_new(100);
	struct err err = { 0 };
	struct doc doc;

	(void)state;
	assert_int_equal(
		doc_explode_text(STR("{\"a\":\"0123456789012345678901234567890123456789\","
				     "\"b\":\"0123456789012345678901234567890123456789\"}"),
				 arena, &test_limits, 0, &doc, &err),
		STATUS_LIMIT);
	arena_free(arena);
}

/* ---- Special members ---- */

static void
special_members_are_text_and_no_leaves(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc doc = explode_or_fail(
		STR("{\"_id\":\"x\",\"a\":{\"_b\":1},\"_rev\": {\"c\" : [] } ,\"_id\":\"y\","
		    "\"\\u005fz\":null}"),
		arena);

	(void)state;
	assert_int_equal(doc.count, 1);
	assert_int_equal(doc.specials_count, 4);
	assert_true(str_eq(doc_find_special(&doc, STR("_id"))->text, STR("\"y\"")));
	assert_true(str_eq(doc_find_special(&doc, STR("_rev"))->text, STR("{\"c\" : [] }")));
	assert_true(str_eq(doc_find_special(&doc, STR("_z"))->text, STR("null")));
	assert_null(doc_find_special(&doc, STR("_none")));
	arena_free(arena);
}

/* ---- The Erlang term ---- */

static void
assert_rev_hash(struct str text, const char *expected)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf term = BUF_INIT(TEST_MAX_BYTES);
	struct buf hex = BUF_INIT(64);
	struct doc doc = explode_or_fail(text, arena);
	unsigned char md5[EVP_MAX_MD_SIZE];
	unsigned md5_bytes;

	/* term_to_binary([false, 0, 0, Body, []]) */
	buf_append_str(&term, STR("\x83\x6c\x00\x00\x00\x05\x64\x00\x05"
				  "false"
				  "\x61\x00\x61\x00"));
	buf_append_str(&term, doc.term);
	buf_append_str(&term, STR("\x6a\x6a"));
	assert_int_equal(EVP_Digest(term.ptr, term.len, md5, &md5_bytes, EVP_md5(), NULL), 1);
	buf_append_hex(&hex, str_of(md5, md5_bytes));
	buf_append_byte(&hex, '\0');
	assert_string_equal(hex.ptr, expected);
	buf_release(&hex);
	buf_release(&term);
	arena_free(arena);
}

static void
term_gives_the_revision_hashes_of_couchdb(void **state)
{
	(void)state;
	assert_rev_hash(STR("{}"), "967a00dff5e02add41819138abb3284d");
	assert_rev_hash(STR("{\"foo\":\"bar\"}"), "4c6114c65e295552ab1019e2b046b10e");
	assert_rev_hash(STR("{\"a\":[1,2,3]}"), "308048961a84beb0c9e99e07facf0f5f");
	assert_rev_hash(STR("{\"a\":1.0}"), "8a159b695bf2bd957f1a435bfd6e1739");
	assert_rev_hash(STR("{\"_id\":\"x\",\"foo\":0,\"foo\":\"bar\",\"_rev\":\"1-y\"}"),
			"4c6114c65e295552ab1019e2b046b10e");
}

static void
assert_term(struct str text, struct str expected)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc doc = explode_or_fail(text, arena);

	if (!str_eq(doc.term, expected)) {
		struct buf hex = BUF_INIT(TEST_MAX_BYTES);

		buf_append_hex(&hex, doc.term);
		fail_msg("%.*s has the term %.*s", STR_ARG(text), STR_ARG(buf_str(&hex)));
	}
	arena_free(arena);
}

#define TERM_OF_A(value)                                                                           \
	"h\x01l\0\0\0\x01h\x02m\0\0\0\x01"                                                         \
	"a" value "j"

static void
terms_are_those_of_erlang(void **state)
{
	(void)state;
	assert_term(STR("{}"), STR("h\x01j"));
	assert_term(STR("{\"a\":{}}"), STR(TERM_OF_A("h\x01j")));
	assert_term(STR("{\"a\":[]}"), STR(TERM_OF_A("j")));
	assert_term(STR("{\"a\":[0,255]}"), STR(TERM_OF_A("k\0\x02\0\xff")));
	assert_term(STR("{\"a\":[0,256]}"), STR(TERM_OF_A("l\0\0\0\x02"
							  "a\0b\0\0\x01\0j")));
	assert_term(STR("{\"a\":[1,null]}"), STR(TERM_OF_A("l\0\0\0\x02"
							   "a\x01"
							   "d\0\x04nullj")));
	assert_term(STR("{\"a\":[[1],true]}"), STR(TERM_OF_A("l\0\0\0\x02k\0\x01\x01"
							     "d\0\x04truej")));
	assert_term(STR("{\"a\":-1}"), STR(TERM_OF_A("b\xff\xff\xff\xff")));
	assert_term(STR("{\"a\":-2147483648}"), STR(TERM_OF_A("b\x80\0\0\0")));
	assert_term(STR("{\"a\":2147483648}"), STR(TERM_OF_A("n\x04\0\0\0\0\x80")));
	assert_term(STR("{\"a\":-2147483649}"), STR(TERM_OF_A("n\x04\x01\x01\0\0\x80")));
	assert_term(STR("{\"a\":18446744073709551616}"),
		    STR(TERM_OF_A("n\x09\0\0\0\0\0\0\0\0\0\x01")));
	assert_term(STR("{\"a\":-0}"), STR(TERM_OF_A("a\0")));
	assert_term(STR("{\"a\":1e2}"), STR(TERM_OF_A("F\x40\x59\0\0\0\0\0\0")));
	/* Members in the order they came, of duplicates the last in its place. */
	assert_term(STR("{\"b\":1,\"a\":[{\"x\":1,\"x\":2}],\"c\":3,\"b\":4}"),
		    STR("h\x01l\0\0\0\x03"
			"h\x02m\0\0\0\x01"
			"al\0\0\0\x01h\x01l\0\0\0\x01h\x02m\0\0\0\x01xa\x02jj"
			"h\x02m\0\0\0\x01"
			"ca\x03"
			"h\x02m\0\0\0\x01"
			"ba\x04"
			"j"));
	/* A dead member inside a dead member. */
	assert_term(STR("{\"a\":{\"x\":1,\"y\":1,\"x\":2},\"a\":1}"), STR(TERM_OF_A("a\x01")));
}

static void
byte_lists_above_65535_are_lists(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	for (size_t n = 65535; n <= 65536; n++) {
		struct doc doc;
		char kind;

		buf_clear(&text);
		buf_append_cstr(&text, "{\"a\":[7");
		for (size_t i = 1; i < n; i++)
			buf_append_cstr(&text, ",7");
		buf_append_cstr(&text, "]}");
		doc = explode_or_fail(buf_str(&text), arena);
		kind = doc.term.ptr[15];
		assert_int_equal(kind, n == 65535 ? 'k' : 'l');
		assert_int_equal(doc.term.len, n == 65535 ? 15 + 3 + n + 1 : 15 + 5 + 2 * n + 2);
	}
	buf_release(&text);
	arena_free(arena);
}

static void
integers_longer_than_255_bytes_have_a_large_term(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct doc doc;

	(void)state;
	/* 10^700 takes 291 bytes. */
	buf_append_cstr(&text, "{\"a\":1");
	for (int i = 0; i < 700; i++)
		buf_append_byte(&text, '0');
	buf_append_byte(&text, '}');
	doc = explode_or_fail(buf_str(&text), arena);
	assert_memory_equal(doc.term.ptr + 15, "o\0\0\x01\x23\0", 6);
	assert_int_equal(doc.term.len, 15 + 6 + 291 + 1);
	buf_release(&text);
	arena_free(arena);
}

/* ---- Random documents ---- */

enum {
	RANDOM_DEPTH = 5,
	RANDOM_MEMBERS = 20,
};

struct node {
	struct str name; /* of a member */
	char name_bytes[24];
	struct buf text; /* of a scalar */
	bool object;
	struct node *children;
	size_t count;
	bool scalar;
};

static void
random_scalar(struct rand_seq *r, struct buf *ret)
{
	static const char *const some[] = { "null", "true", "false",
					    "0",    "-1",   "1.10",
					    "1e5",  "\"\"", "2.5",
					    "-0",   "0.1",  "1E400",
					    "[]",   "{}",   "12345678901234567890123" };

	if (rand_seq_below(r, 2)) {
		buf_append_cstr(ret, some[rand_seq_below(r, sizeof(some) / sizeof(some[0]))]);
	} else if (rand_seq_below(r, 2)) {
		buf_append_u64(ret, rand_seq_next(r) >> rand_seq_below(r, 64));
	} else {
		char s[12];
		size_t n = rand_seq_below(r, sizeof(s));

		for (size_t i = 0; i < n; i++)
			s[i] = (char)rand_seq_below(r, 0x80);
		json_write_str(ret, str_of(s, n));
	}
}

static void
random_node(struct rand_seq *r, unsigned depth, struct node *ret)
{
	memset(ret, 0, sizeof(*ret));
	buf_init(&ret->text, TEST_MAX_BYTES);
	ret->scalar = depth && (depth == RANDOM_DEPTH || rand_seq_below(r, 3) > 0);
	if (ret->scalar) {
		random_scalar(r, &ret->text);
		return;
	}
	ret->object = !depth || rand_seq_below(r, 2);
	ret->count = 1 + rand_seq_below(r, rand_seq_below(r, 8) ? 5 : RANDOM_MEMBERS);
	ret->children = mem_zalloc(ret->count * sizeof(*ret->children));
	assert_non_null(ret->children);
	for (size_t i = 0; i < ret->count; i++) {
		struct node *child = &ret->children[i];
		size_t n = rand_seq_below(r, rand_seq_below(r, 3) ? 3 : sizeof(child->name_bytes));

		random_node(r, depth + 1, child);
		for (size_t j = 0; j < n; j++)
			child->name_bytes[j] = (char)(rand_seq_below(r, 20)
							      ? 'a' + rand_seq_below(r, 3)
							      : rand_seq_below(r, 0x20));
		child->name = str_of(child->name_bytes, n);
	}
}

static void
node_release(struct node *n)
{
	for (size_t i = 0; i < n->count; i++)
		node_release(&n->children[i]);
	mem_free(n->children);
	buf_release(&n->text);
}

/* As a client might send it: members in any order, duplicates, white space. */
static void
write_as_it_came(struct rand_seq *r, const struct node *n, struct buf *out)
{
	static const char *const spaces[] = { "", "", "", " ", "\n\t" };

	if (n->scalar) {
		buf_append_str(out, buf_str(&n->text));
		return;
	}
	buf_append_byte(out, n->object ? '{' : '[');
	for (size_t i = 0; i < n->count; i++) {
		if (i)
			buf_append_byte(out, ',');
		buf_append_cstr(out, spaces[rand_seq_below(r, 5)]);
		if (n->object) {
			json_write_str(out, n->children[i].name);
			buf_append_cstr(out, spaces[rand_seq_below(r, 5)]);
			buf_append_byte(out, ':');
		}
		write_as_it_came(r, &n->children[i], out);
	}
	buf_append_byte(out, n->object ? '}' : ']');
}

/* The plain way: the least name greater than the last one, its last value. */
static const struct node *
next_member(const struct node *n, const struct node *last)
{
	const struct node *found = NULL;

	for (size_t i = 0; i < n->count; i++) {
		const struct node *c = &n->children[i];

		if (last && str_cmp(c->name, last->name) <= 0)
			continue;
		if (!found || str_cmp(c->name, found->name) <= 0)
			found = c;
	}
	return found;
}

static void
write_canonical(const struct node *n, struct buf *out)
{
	const struct node *m = NULL;

	if (n->scalar) {
		buf_append_str(out, buf_str(&n->text));
		return;
	}
	buf_append_byte(out, n->object ? '{' : '[');
	for (size_t i = 0; i < n->count; i++) {
		if (n->object) {
			m = next_member(n, m);
			if (!m)
				break;
		} else {
			m = &n->children[i];
		}
		if (i)
			buf_append_byte(out, ',');
		if (n->object) {
			json_write_str(out, m->name);
			buf_append_byte(out, ':');
		}
		write_canonical(m, out);
	}
	buf_append_byte(out, n->object ? '}' : ']');
}

static void
random_documents_come_back_in_canonical_form(void **state)
{
	struct rand_seq r = { 424242 };
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct buf canonical = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct node n;

		random_node(&r, 0, &n);
		buf_clear(&text);
		buf_clear(&canonical);
		write_as_it_came(&r, &n, &text);
		write_canonical(&n, &canonical);
		assert_comes_back_as(buf_str(&text), buf_str(&canonical));
		assert_comes_back_as(buf_str(&canonical), buf_str(&canonical));
		node_release(&n);
	}
	buf_release(&text);
	buf_release(&canonical);
}

/* ---- Large and deep documents ---- */

static void
deep_documents_come_back(void **state)
{
	struct buf text = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	for (int i = 0; i < JSON_DEPTH_LIMIT / 2; i++)
		buf_append_cstr(&text, "{\"a\":[");
	buf_append_cstr(&text, "1");
	for (int i = 0; i < JSON_DEPTH_LIMIT / 2; i++)
		buf_append_cstr(&text, "]}");
	assert_comes_back_as(buf_str(&text), buf_str(&text));
	buf_release(&text);
}

static void
large_documents_take_linear_time(void **state)
{
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct buf canonical = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	/* The test's time limit is the assertion. */
	buf_append_cstr(&text, "{\"a\":[0");
	for (int i = 1; i < 100000; i++)
		buf_printf(&text, ",%d", i);
	buf_append_cstr(&text, "]}");
	assert_comes_back_as(buf_str(&text), buf_str(&text));
	/* Members in descending order, then all of them again. */
	buf_clear(&text);
	buf_append_byte(&text, '{');
	for (int i = 50000; i-- > 0;)
		buf_printf(&text, "\"%05d\":%d,", i, i);
	for (int i = 50000; i-- > 0;)
		buf_printf(&text, "\"%05d\":-%d%s", i, i + 1, i ? "," : "}");
	buf_append_byte(&canonical, '{');
	for (int i = 0; i < 50000; i++)
		buf_printf(&canonical, "%s\"%05d\":-%d", i ? "," : "", i, i + 1);
	buf_append_byte(&canonical, '}');
	assert_comes_back_as(buf_str(&text), buf_str(&canonical));
	buf_release(&text);
	buf_release(&canonical);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_value_becomes_its_leaf),
		cmocka_unit_test(of_duplicate_members_the_last_wins_with_its_whole_subtree),
		cmocka_unit_test(members_come_back_in_key_order),
		cmocka_unit_test(transform_vectors_come_out_exact),
		cmocka_unit_test(numbers_keep_their_text),
		cmocka_unit_test(integers_of_any_length_are_exact),
		cmocka_unit_test(big_integers_up_to_255_bytes_are_tuple_integers),
		cmocka_unit_test(doubles_are_read_as_the_library_reads_them),
		cmocka_unit_test(numbers_beyond_doubles_sort_as_the_greatest),
		cmocka_unit_test(number_longer_than_a_value_is_refused),
		cmocka_unit_test(long_strings_are_split_and_joined),
		cmocka_unit_test(pieces_hold_whole_characters),
		cmocka_unit_test(path_limit_counts_the_prefix_and_names_the_path),
		cmocka_unit_test(path_limit_counts_what_a_split_string_adds),
		cmocka_unit_test(long_paths_are_cut_in_explanations),
		cmocka_unit_test(document_limit_leaves_special_members_out),
		cmocka_unit_test(reader_goes_on_behind_a_document_that_broke_a_limit),
		cmocka_unit_test(scratch_keeps_nothing_of_earlier_documents),
		cmocka_unit_test(text_that_is_no_object_is_refused),
		cmocka_unit_test(memory_shortage_anywhere_is_reported_and_leaks_nothing),
		cmocka_unit_test(full_arena_is_a_limit),
		cmocka_unit_test(special_members_are_text_and_no_leaves),
		cmocka_unit_test(term_gives_the_revision_hashes_of_couchdb),
		cmocka_unit_test(terms_are_those_of_erlang),
		cmocka_unit_test(byte_lists_above_65535_are_lists),
		cmocka_unit_test(integers_longer_than_255_bytes_have_a_large_term),
		cmocka_unit_test(random_documents_come_back_in_canonical_form),
		cmocka_unit_test(deep_documents_come_back),
		cmocka_unit_test(large_documents_take_linear_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
