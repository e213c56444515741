/* Values as text for functions in JavaScript, and what those answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "bson/json.h"
#include "bson/tagged.h"

enum {
	MAX_BYTES = 1 << 20,
};

/* The text of a document that is given as Extended JSON. */
static void
assert_writes(const char *json, bool ints, const char *text)
{
	struct buf document = BUF_INIT(MAX_BYTES);
	struct buf out = BUF_INIT(MAX_BYTES);
	struct err err = { 0 };

	assert_int_equal(bson_json_read(str_from_cstr(json), &document, &err), STATUS_OK);
	bson_tagged_write(&out, &BSON_OF_DOCUMENT(buf_str(&document)), ints);
	buf_append_byte(&out, '\0');
	assert_int_equal(buf_status(&out), STATUS_OK);
	assert_string_equal(out.ptr, text);
	buf_release(&document);
	buf_release(&out);
}

/* The value that a text is, as Extended JSON. */
static void
assert_reads(const char *text, const char *json)
{
	struct buf document = BUF_INIT(MAX_BYTES);
	struct buf out = BUF_INIT(MAX_BYTES);
	struct err err = { 0 };
	struct bson_value v;

	assert_int_equal(bson_tagged_read(str_from_cstr(text), &document, &err), STATUS_OK);
	assert_true(bson_find(buf_str(&document), STR(""), &v));
	bson_json_write_value(&out, &v, BSON_JSON_CANONICAL);
	buf_append_byte(&out, '\0');
	assert_string_equal(out.ptr, json);
	buf_release(&document);
	buf_release(&out);
}

static enum status
read_status(const char *text)
{
	struct buf document = BUF_INIT(MAX_BYTES);
	struct err err = { 0 };
	enum status status = bson_tagged_read(str_from_cstr(text), &document, &err);

	assert_true(status == STATUS_OK || document.len == 0);
	buf_release(&document);
	return status;
}

static void
json_types_are_themselves_and_others_are_tagged(void **state)
{
	(void)state;
	assert_writes("{\"a\":\"\\\"x\",\"b\":[true,null,{\"$numberDouble\":\"1.5\"}]}", false,
		      "{\"a\":\"\\\"x\",\"b\":[true,null,1.5]}");
	assert_writes("{\"a\":1,\"b\":{\"$numberLong\":\"5\"}}", false,
		      "{\"a\":1,\"b\":\"\\u0001l5\"}");
	assert_writes("{\"a\":1}", true, "{\"a\":\"\\u0001i1\"}");
	assert_writes("{\"a\":{\"$date\":{\"$numberLong\":\"-5\"}},\"b\":{\"$undefined\":true}}",
		      true, "{\"a\":\"\\u0001d-5\",\"b\":\"\\u0001u\"}");
	assert_writes("{\"a\":\"\\u0001l5\"}", true, "{\"a\":\"\\u0001s\\u0001l5\"}");
	assert_writes("{\"a\":{\"$regularExpression\":{\"pattern\":\"\\\"/\",\"options\":\"i\"}}}",
		      true, "{\"a\":\"\\u0001ri/\\\"/\"}");
}

static void
names_that_javascript_would_move_are_in_an_array(void **state)
{
	(void)state;
	assert_writes("{\"b\":true,\"1\":{\"a\":null}}", true,
		      "[\"\\u0001O\",\"b\",true,\"1\",{\"a\":null}]");
	assert_writes("{\"__proto__\":true}", true, "[\"\\u0001O\",\"__proto__\",true]");
	assert_writes("{\"9\":true}", true, "[\"\\u0001O\",\"9\",true]");
	assert_writes("{\"0\":true}", true, "[\"\\u0001O\",\"0\",true]");
	assert_writes("{\"19\":true}", true, "[\"\\u0001O\",\"19\",true]");
	assert_writes("{\"10\":true}", true, "[\"\\u0001O\",\"10\",true]");
	assert_writes("{\"1a\":true}", true, "{\"1a\":true}");
	assert_writes("{\"1-\":true}", true, "{\"1-\":true}");
	assert_writes("{\"-1\":true}", true, "{\"-1\":true}");
	assert_writes("{\"$1\":true}", true, "{\"$1\":true}");
	assert_writes("{\"\":true}", true, "{\"\":true}");
}

static void
answers_are_values(void **state)
{
	(void)state;
	assert_reads("1", "{\"$numberDouble\":\"1.0\"}");
	assert_reads("\"x\"", "\"x\"");
	assert_reads("[true,false,null]", "[true,false,null]");
	assert_reads("\"\\u0001i2147483647\"", "{\"$numberInt\":\"2147483647\"}");
	assert_reads("\"\\u0001i-2147483648\"", "{\"$numberInt\":\"-2147483648\"}");
	assert_reads("\"\\u0001l5\"", "{\"$numberLong\":\"5\"}");
	assert_reads("\"\\u0001d5\"", "{\"$date\":{\"$numberLong\":\"5\"}}");
	assert_reads("{\"2\":\"\\u0001i1\",\"1\":[]}", "{\"2\":{\"$numberInt\":\"1\"},\"1\":[]}");
	assert_reads("\"\\u0001s\\u0001\"", "\"\\u0001\"");
	assert_reads("\"\\u0001f-0\"", "{\"$numberDouble\":\"-0.0\"}");
	assert_reads("\"\\u0001n1.50\"", "{\"$numberDecimal\":\"1.50\"}");
	assert_reads("\"\\u0001M\"", "{\"$maxKey\":1}");
	assert_reads("\"\\u0001xDAIAAABhAAABAgMEBQYHCAkKCw==\"",
		     "{\"$dbPointer\":{\"$ref\":\"a\",\"$id\":{\"$oid\":"
		     "\"000102030405060708090a0b\"}}}");
	assert_reads("\"\\u0001xDw8AAAACAAAAYQAFAAAAAA==\"", "{\"$code\":\"a\",\"$scope\":{}}");
	assert_reads("\"\\u0001b05YWJj\"",
		     "{\"$binary\":{\"base64\":\"YWJj\",\"subType\":\"05\"}}");
}

static void
what_no_worker_of_ours_answers_is_refused(void **state)
{
	static const char *const wrong[] = {
		"\"\\u0001\"",
		"\"\\u0001q\"",
		"\"\\u0001o12\"",
		"\"\\u0001i4294967296\"",
		"\"\\u0001i2147483648\"",
		"\"\\u0001i-2147483649\"",
		"\"\\u0001r\\u0000/a\"",
		"\"\\u0001lx\"",
		"\"\\u0001t-1\"",
		"\"\\u0001nx\"",
		"\"\\u0001fx\"",
		"\"\\u0001b0\"",
		"\"\\u0001bx0AAAA\"",
		"\"\\u0001b0xAAAA\"",
		"\"\\u0001b00x\"",
		"\"\\u0001b02AAAA\"",
		"\"\\u0001ri/a\\u0000\"",
		"\"\\u0001x\"",
		"\"\\u0001xAQ==\"",
		"\"\\u0001xDwAAAAA=\"",
		/* A pointer, code with a scope, and a string, with a byte too many or too few. */
		"\"\\u0001xDAIAAABhAAABAgMEBQYHCAkKC3g=\"",
		"\"\\u0001xDAIAAABhAAABAgMEBQYHCAkK\"",
		"\"\\u0001xDw8AAAACAAAAYQAFAAAAAHg=\"",
		"\"\\u0001xDw8AAAACAAAAYQAFAAAA\"",
		"\"\\u0001xAgIAAABhAA==\"",
		"{\"a\\u0000\":1}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(read_status(wrong[i]), STATUS_INVALID);
	assert_int_equal(read_status(""), STATUS_JSON_SYNTAX);
	assert_int_equal(read_status("1 2"), STATUS_JSON_SYNTAX);
	assert_int_equal(read_status("\"\\ud800\""), STATUS_JSON_UTF8);
}

static void
depth_is_that_of_documents(void **state)
{
	char text[2 * BSON_DEPTH + 1];

	(void)state;
	memset(text, '[', BSON_DEPTH);
	memset(text + BSON_DEPTH, ']', BSON_DEPTH);
	text[2 * BSON_DEPTH] = '\0';
	assert_int_equal(read_status(text), STATUS_JSON_DEPTH);
	text[2 * BSON_DEPTH - 1] = '\0';
	assert_int_equal(read_status(text + 1), STATUS_OK);
}

/* Whoever writes such a document has not checked it. */
static void
a_document_that_is_too_deep_is_not_written(void **state)
{
	struct buf inner = BUF_INIT(MAX_BYTES), outer = BUF_INIT(MAX_BYTES);
	struct buf out = BUF_INIT(MAX_BYTES);
	struct bson_builder b;

	(void)state;
	bson_builder_init(&b, &inner);
	bson_begin(&b);
	for (int i = 1; i < BSON_DEPTH; i++)
		bson_begin_document(&b, STR("a"));
	for (int i = 0; i < BSON_DEPTH; i++)
		bson_end(&b);
	bson_tagged_write(&out, &BSON_OF_DOCUMENT(buf_str(&inner)), true);
	assert_int_equal(buf_status(&out), STATUS_OK);
	bson_builder_init(&b, &outer);
	bson_begin(&b);
	bson_put_document(&b, STR("a"), buf_str(&inner));
	bson_end(&b);
	bson_tagged_write(&out, &BSON_OF_DOCUMENT(buf_str(&outer)), true);
	assert_int_equal(buf_status(&out), STATUS_LIMIT);
	buf_release(&inner);
	buf_release(&outer);
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_types_are_themselves_and_others_are_tagged),
		cmocka_unit_test(names_that_javascript_would_move_are_in_an_array),
		cmocka_unit_test(answers_are_values),
		cmocka_unit_test(what_no_worker_of_ours_answers_is_refused),
		cmocka_unit_test(depth_is_that_of_documents),
		cmocka_unit_test(a_document_that_is_too_deep_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
