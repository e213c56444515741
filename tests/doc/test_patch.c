/*
 * Patches: the published suite of JSON Patch, the examples of RFC 7396, and both against a document
 * tree that is walked in the plainest way.
 */
#include "doc_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "doc/patch.h"

enum {
	SUITE_BYTES = 1 << 20,
	RANDOM_MERGES = 3000,
};

/* The patched document as text, or the status of the failure. */
static enum status
try_patch(enum doc_patch_kind kind, struct str doc_text, struct str patch_text, struct buf *ret,
	  struct err *err)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc doc = explode_or_fail(doc_text, arena);
	struct doc_patch patch;
	struct doc result;
	enum status status;

	buf_clear(ret);
	status = doc_patch_read(kind, patch_text, arena, &patch, err);
	if (status == STATUS_OK)
		status = doc_patch_apply(&patch, doc.leaves, doc.count, &test_limits, 0, arena,
					 &result, err);
	if (status == STATUS_OK)
		assemble_or_fail(&result, ret);
	else
		assert_true(err->text[0]);
	arena_free(arena);
	return status;
}

static void
assert_patched(enum doc_patch_kind kind, const char *doc, const char *patch, const char *expected)
{
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct err err = { 0 };

	if (try_patch(kind, str_from_cstr(doc), str_from_cstr(patch), &out, &err) != STATUS_OK)
		fail_msg("%s: %s", patch, err.text);
	if (!str_eq(buf_str(&out), str_from_cstr(expected)))
		fail_msg("%s made %.*s", patch, STR_ARG(buf_str(&out)));
	buf_release(&out);
}

static void
assert_refused(enum doc_patch_kind kind, const char *doc, const char *patch, enum status expected)
{
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct err err = { 0 };
	enum status status = try_patch(kind, str_from_cstr(doc), str_from_cstr(patch), &out, &err);

	if (status != expected)
		fail_msg("%s: %s (%s)", patch, status_name(status), err.text);
	buf_release(&out);
}

/* ---- The published suite ---- */

struct record {
	struct str doc;
	struct str patch;
	struct str expected;
	struct str comment;
	bool is_error;
	bool disabled;
};

static void
read_record(struct json_reader *r, struct record *ret)
{
	enum json_token token;

	*ret = (struct record){ .is_error = false };
	for (;;) {
		struct str name;
		struct str text;
		char copy[32];

		assert_int_equal(json_next(r, &token), STATUS_OK);
		if (token == JSON_OBJECT_END)
			return;
		assert_true(r->text.len < sizeof(copy));
		memcpy(copy, r->text.ptr, r->text.len);
		name = str_of(copy, r->text.len);
		assert_int_equal(json_next(r, &token), STATUS_OK);
		assert_int_equal(json_skip(r, token, &text), STATUS_OK);
		if (str_eq(name, STR("doc")))
			ret->doc = text;
		else if (str_eq(name, STR("patch")))
			ret->patch = text;
		else if (str_eq(name, STR("expected")))
			ret->expected = text;
		else if (str_eq(name, STR("comment")))
			ret->comment = text;
		else if (str_eq(name, STR("error")))
			ret->is_error = true;
		else if (str_eq(name, STR("disabled")))
			ret->disabled = str_eq(text, STR("true"));
	}
}

static bool
is_object(struct str text)
{
	return text.len && text.ptr[0] == '{';
}

/* A document that is no object becomes the member "d" of one, and the patch goes below it. */
static void
put_below(struct buf *out, struct str patch)
{
	for (size_t i = 0; i < patch.len; i++) {
		static const struct str names[] = { STR("\"path\": \""), STR("\"path\":\""),
						    STR("\"from\": \""), STR("\"from\":\"") };
		struct str rest = str_skip(patch, i);

		buf_append_byte(out, (uint8_t)patch.ptr[i]);
		for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
			if (!str_starts_with(rest, names[j]))
				continue;
			buf_append_str(out, str_skip(names[j], 1));
			buf_append_cstr(out, "/d");
			i += names[j].len - 1;
		}
	}
}

static void
wrap(struct buf *out, struct str value)
{
	buf_append_cstr(out, "{\"d\":");
	buf_append_str(out, value);
	buf_append_byte(out, '}');
}

static void
run_record(const struct record *record)
{
	struct buf doc = BUF_INIT(SUITE_BYTES);
	struct buf patch = BUF_INIT(SUITE_BYTES);
	struct buf expected = BUF_INIT(SUITE_BYTES);
	struct buf out = BUF_INIT(SUITE_BYTES);
	struct err err = { 0 };
	enum status status;

	if (is_object(record->doc) && (record->is_error || is_object(record->expected))) {
		buf_append_str(&doc, record->doc);
		buf_append_str(&patch, record->patch);
		buf_append_str(&expected, record->expected);
	} else {
		wrap(&doc, record->doc);
		put_below(&patch, record->patch);
		wrap(&expected, record->expected);
	}
	status = try_patch(DOC_PATCH_JSON, buf_str(&doc), buf_str(&patch), &out, &err);
	if (record->is_error) {
		if (status != STATUS_INVALID && status != STATUS_PATCH_FAILED)
			fail_msg("%.*s: %s", STR_ARG(buf_str(&patch)), status_name(status));
	} else if (status != STATUS_OK) {
		fail_msg("%.*s: %s", STR_ARG(buf_str(&patch)), err.text);
	} else if (record->expected.len) {
		/* Through a document, so that both have their members in key order. */
		struct arena *arena = arena_new(TEST_MAX_BYTES);
		struct doc parsed = explode_or_fail(buf_str(&expected), arena);
		struct buf text = BUF_INIT(SUITE_BYTES);

		assemble_or_fail(&parsed, &text);
		if (!str_eq(buf_str(&text), buf_str(&out)))
			fail_msg("%.*s made %.*s", STR_ARG(buf_str(&patch)),
				 STR_ARG(buf_str(&out)));
		buf_release(&text);
		arena_free(arena);
	}
	buf_release(&doc);
	buf_release(&patch);
	buf_release(&expected);
	buf_release(&out);
}

static void
run_suite(const char *path, size_t expected_runs)
{
	char *bytes = malloc(SUITE_BYTES);
	FILE *file = fopen(path, "re");
	struct json_reader r;
	enum json_token token;
	struct err err = { 0 };
	size_t runs = 0;
	size_t len;

	assert_non_null(bytes);
	assert_non_null(file);
	len = fread(bytes, 1, SUITE_BYTES, file);
	fclose(file);
	json_reader_init(&r, str_of(bytes, len), &err);
	assert_int_equal(json_next(&r, &token), STATUS_OK);
	assert_int_equal(token, JSON_ARRAY_BEGIN);
	for (;;) {
		struct record record;

		assert_int_equal(json_next(&r, &token), STATUS_OK);
		if (token == JSON_ARRAY_END)
			break;
		read_record(&r, &record);
		if (!record.doc.ptr || !record.patch.ptr || record.disabled)
			continue;
		run_record(&record);
		runs++;
	}
	assert_int_equal(runs, expected_runs);
	json_reader_release(&r);
	free(bytes);
}

static void
published_json_patch_suite_passes(void **state)
{
	(void)state;
	run_suite(JSON_PATCH_SUITE "/tests.json", 92);
	run_suite(JSON_PATCH_SUITE "/spec_tests.json", 16);
}

/* ---- What the suite does not ask ---- */

static void
exact_numbers_and_long_strings_survive_a_patch(void **state)
{
	struct buf doc = BUF_INIT(TEST_MAX_BYTES);
	struct buf expected = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	assert_patched(DOC_PATCH_JSON,
		       "{\"a\":1.10,\"b\":[1e400,-0,123456789012345678901234567890]}",
		       "[{\"op\":\"add\",\"path\":\"/b/0\",\"value\":2.50},"
		       "{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b/-\"}]",
		       "{\"b\":[2.50,1e400,-0,123456789012345678901234567890,1.10]}");
	buf_append_cstr(&doc, "{\"a\":[1,\"");
	buf_append_cstr(&expected, "{\"b\":[{\"c\":\"");
	for (int i = 0; i < 250000; i++) {
		buf_append_byte(&doc, 'x');
		buf_append_byte(&expected, 'x');
	}
	buf_append(&doc, "\"]}", 4);
	buf_append(&expected, "\"},1]}", 7);
	assert_patched(DOC_PATCH_JSON, doc.ptr,
		       "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"},"
		       "{\"op\":\"add\",\"path\":\"/b/0\",\"value\":{}},"
		       "{\"op\":\"move\",\"from\":\"/b/2\",\"path\":\"/b/0/c\"}]",
		       expected.ptr);
	buf_release(&doc);
	buf_release(&expected);
}

static void
names_with_nuls_are_their_own(void **state)
{
	(void)state;
	assert_patched(DOC_PATCH_JSON, "{\"a\":{\"x\":1},\"a\\u0000b\":2,\"a\\u0000\":3}",
		       "[{\"op\":\"remove\",\"path\":\"/a/x\"},"
		       "{\"op\":\"replace\",\"path\":\"/a\\u0000\",\"value\":4},"
		       "{\"op\":\"add\",\"path\":\"/a\\u0000c\",\"value\":5}]",
		       "{\"a\":{},\"a\\u0000\":4,\"a\\u0000b\":2,\"a\\u0000c\":5}");
}

static void
emptied_containers_stay_what_they_were(void **state)
{
	(void)state;
	assert_patched(DOC_PATCH_JSON, "{\"a\":[1],\"b\":{\"c\":1}}",
		       "[{\"op\":\"remove\",\"path\":\"/a/0\"},"
		       "{\"op\":\"remove\",\"path\":\"/b/c\"}]",
		       "{\"a\":[],\"b\":{}}");
	assert_patched(DOC_PATCH_JSON, "{\"a\":[],\"b\":{}}",
		       "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":[]},"
		       "{\"op\":\"add\",\"path\":\"/a/0/-\",\"value\":{}},"
		       "{\"op\":\"add\",\"path\":\"/b/x\",\"value\":{}}]",
		       "{\"a\":[[{}]],\"b\":{\"x\":{}}}");
	assert_patched(DOC_PATCH_JSON, "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{}");
	assert_patched(DOC_PATCH_JSON, "{}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{}}]",
		       "{}");
	assert_patched(DOC_PATCH_JSON, "{\"b\":1}", "[]", "{\"b\":1}");
}

static void
numbers_are_tested_by_what_they_are_worth(void **state)
{
	static const char *const equal[][2] = {
		{ "1", "1.0" },
		{ "100", "1e2" },
		{ "0", "-0.0" },
		{ "0.05", "5E-2" },
		{ "1e400", "10e399" },
		{ "12.50", "125e-1" },
		{ "1e-7", "0.0000001" },
		{ "0e999999999999999999999", "0" },
		{ "123456789012345678901234567890", "1.2345678901234567890123456789e29" },
	};
	static const char *const different[][2] = {
		{ "1", "1.0000000000000000001" },
		{ "1", "-1" },
		{ "10", "1" },
		{ "9007199254740993", "9007199254740992" },
		{ "1", "true" },
		{ "1", "\"1\"" },
		{ "1e999999999999999999999", "1e999999999999999999998" },
		{ "0", "false" },
		{ "0", "null" },
		{ "0", "[]" },
		{ "1", "{}" },
	};
	char doc[200];
	char patch[300];

	(void)state;
	for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++) {
		for (int turn = 0; turn < 2; turn++) {
			snprintf(doc, sizeof(doc), "{\"a\":[%s]}", equal[i][turn]);
			snprintf(patch, sizeof(patch),
				 "[{\"op\":\"test\",\"path\":\"/a\",\"value\":[%s]}]",
				 equal[i][!turn]);
			assert_patched(DOC_PATCH_JSON, doc, patch, doc);
		}
	}
	for (size_t i = 0; i < sizeof(different) / sizeof(different[0]); i++) {
		for (int turn = 0; turn < 2; turn++) {
			snprintf(doc, sizeof(doc), "{\"a\":%s}", different[i][turn]);
			snprintf(patch, sizeof(patch),
				 "[{\"op\":\"test\",\"path\":\"/a\",\"value\":%s}]",
				 different[i][!turn]);
			assert_refused(DOC_PATCH_JSON, doc, patch, STATUS_PATCH_FAILED);
		}
	}
}

static void
places_that_are_not_there_fail_the_patch(void **state)
{
	static const char *const patches[] = {
		"[{\"op\":\"remove\",\"path\":\"/x\"}]",
		"[{\"op\":\"remove\",\"path\":\"/b/2\"}]",
		"[{\"op\":\"remove\",\"path\":\"/b/-\"}]",
		"[{\"op\":\"replace\",\"path\":\"/b/01\",\"value\":1}]",
		"[{\"op\":\"add\",\"path\":\"/b/3\",\"value\":1}]",
		"[{\"op\":\"add\",\"path\":\"/b/x\",\"value\":1}]",
		"[{\"op\":\"add\",\"path\":\"/a/x\",\"value\":1}]",
		"[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":1}]",
		"[{\"op\":\"move\",\"from\":\"/x\",\"path\":\"/y\"}]",
		"[{\"op\":\"copy\",\"from\":\"/b/9\",\"path\":\"/y\"}]",
		"[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]",
		"[{\"op\":\"test\",\"path\":\"/b\",\"value\":[1]}]",
		("[{\"op\":\"add\",\"path\":\"/c\",\"value\":1},"
		 "{\"op\":\"test\",\"path\":\"/c\",\"value\":2}]"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++)
		assert_refused(DOC_PATCH_JSON, "{\"a\":1,\"b\":[1,2]}", patches[i],
			       STATUS_PATCH_FAILED);
}

static void
what_is_no_patch_is_invalid(void **state)
{
	static const char *const patches[] = {
		"{}",
		"[1]",
		"[[]]",
		"[{}]",
		"[{\"op\":\"add\",\"path\":\"/a\"}]",
		"[{\"op\":\"add\",\"value\":1}]",
		"[{\"op\":\"spam\",\"path\":\"/a\",\"value\":1}]",
		"[{\"op\":1,\"path\":\"/a\",\"value\":1}]",
		"[{\"op\":\"add\",\"path\":1,\"value\":1}]",
		"[{\"op\":\"add\",\"path\":{\"a\":\"/x\"},\"value\":1}]",
		"[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]",
		"[{\"op\":\"add\",\"path\":\"/~2\",\"value\":1}]",
		"[{\"op\":\"move\",\"path\":\"/b\"}]",
		"[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]",
		"[{\"op\":\"move\",\"from\":\"\",\"path\":\"/a\"}]",
		"[{\"op\":\"remove\",\"path\":\"\"}]",
		"[{\"op\":\"add\",\"path\":\"/_id\",\"value\":1}]",
		"[{\"op\":\"test\",\"path\":\"/_rev\",\"value\":1}]",
		"[{\"op\":\"copy\",\"from\":\"/_rev\",\"path\":\"/a\"}]",
		/* Results that are no documents. */
		"[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]",
		"[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"_id\":\"x\"}}]",
		"[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"\"}]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(patches) / sizeof(patches[0]); i++)
		assert_refused(DOC_PATCH_JSON, "{\"a\":1}", patches[i], STATUS_INVALID);
	assert_refused(DOC_PATCH_JSON, "{}", "[", STATUS_JSON_SYNTAX);
	assert_refused(DOC_PATCH_JSON, "{}", "[] 1", STATUS_JSON_SYNTAX);
	assert_refused(DOC_PATCH_MERGE, "{}", "[]", STATUS_INVALID);
	assert_refused(DOC_PATCH_MERGE, "{}", "1", STATUS_INVALID);
	assert_refused(DOC_PATCH_MERGE, "{}", "{\"_rev\":null}", STATUS_INVALID);
	/* Deeper down an underscore means nothing. */
	assert_patched(DOC_PATCH_MERGE, "{}", "{\"a\":{\"_b\":1}}", "{\"a\":{\"_b\":1}}");
}

static void
whole_document_is_replaced_tested_and_copied(void **state)
{
	(void)state;
	assert_patched(DOC_PATCH_JSON, "{\"a\":[1,{\"b\":2}]}",
		       "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"a\":[1.0,{\"b\":2}]}},"
		       "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c\"},"
		       "{\"op\":\"add\",\"path\":\"/c/a/-\",\"value\":3},"
		       "{\"op\":\"test\",\"path\":\"\",\"value\":{\"c\":{\"a\":[1,{\"b\":2},3]},"
		       "\"a\":[1,{\"b\":2}]}},{\"op\":\"move\",\"from\":\"\",\"path\":\"\"}]",
		       "{\"a\":[1,{\"b\":2}],\"c\":{\"a\":[1,{\"b\":2},3]}}");
	assert_patched(DOC_PATCH_JSON, "{\"a\":1}",
		       "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]},"
		       "{\"op\":\"replace\",\"path\":\"\",\"value\":{\"b\":[]}},"
		       "{\"op\":\"add\",\"path\":\"/b/-\",\"value\":1}]",
		       "{\"b\":[1]}");
}

static void
positions_beyond_255_keep_their_order(void **state)
{
	struct buf doc = BUF_INIT(TEST_MAX_BYTES);
	struct buf expected = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	buf_append_cstr(&doc, "{\"a\":[");
	buf_append_cstr(&expected, "{\"a\":[{\"n\":true}");
	for (int i = 0; i < 70000; i++) {
		buf_printf(&doc, "%s{\"n\":%d}", i ? "," : "", i);
		if (i != 300)
			buf_printf(&expected, ",{\"n\":%d}", i);
	}
	buf_append(&doc, "]}", 3);
	buf_append(&expected, "]}", 3);
	assert_patched(DOC_PATCH_JSON, doc.ptr,
		       "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":{\"n\":true}},"
		       "{\"op\":\"remove\",\"path\":\"/a/301\"}]",
		       expected.ptr);
	buf_release(&doc);
	buf_release(&expected);
}

/* The term decides the hash: it is the one of the document written whole, in key order. */
static void
patched_document_has_the_term_of_its_own_text(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc doc = explode_or_fail(STR("{\"z\":1,\"a\":{\"y\":[1.50,\"\\u0000\"],\"b\":2}}"),
					 arena);
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct doc_patch patch;
	struct doc result, written;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(doc_patch_read(DOC_PATCH_JSON,
					STR("[{\"op\":\"add\",\"path\":\"/a/y/0\",\"value\":{}}]"),
					arena, &patch, &err),
			 STATUS_OK);
	assert_int_equal(doc_patch_apply(&patch, doc.leaves, doc.count, &test_limits, 0, arena,
					 &result, &err),
			 STATUS_OK);
	assemble_or_fail(&result, &text);
	assert_true(str_eq(buf_str(&text),
			   STR("{\"a\":{\"b\":2,\"y\":[{},1.50,\"\\u0000\"]},\"z\":1}")));
	written = explode_or_fail(buf_str(&text), arena);
	assert_true(str_eq(result.term, written.term));
	assert_int_equal(result.json_bytes, text.len);
	assert_int_equal(result.count, written.count);
	for (size_t i = 0; i < result.count; i++) {
		assert_true(str_eq(result.leaves[i].key, written.leaves[i].key));
		assert_true(str_eq(result.leaves[i].value, written.leaves[i].value));
	}
	buf_release(&text);
	arena_free(arena);
}

/* ---- Limits ---- */

static enum status
patch_within(const struct doc_limits *limits, struct str doc_text, struct str patch_text)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc doc = explode_or_fail(doc_text, arena);
	struct doc_patch patch;
	struct doc result;
	struct err err = { 0 };
	enum status status;

	assert_int_equal(doc_patch_read(DOC_PATCH_JSON, patch_text, arena, &patch, &err),
			 STATUS_OK);
	status = doc_patch_apply(&patch, doc.leaves, doc.count, limits, 100, arena, &result, &err);
	if (status != STATUS_OK)
		assert_true(err.text[0]);
	arena_free(arena);
	return status;
}

static void
result_is_held_to_the_limits_of_documents(void **state)
{
	const struct doc_limits small = { .doc_bytes = 20, .path_bytes = KV_LIMIT_KEY_BYTES };
	const struct doc_limits narrow = { .doc_bytes = 1000, .path_bytes = 120 };
	struct buf patch = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	assert_int_equal(patch_within(&small, STR("{\"a\":\"0123456789\"}"),
				      STR("[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]")),
			 STATUS_DOC_TOO_LARGE);
	assert_int_equal(patch_within(&small, STR("{\"a\":\"0123456789\"}"),
				      STR("[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}]")),
			 STATUS_OK);
	assert_int_equal(
		patch_within(&narrow, STR("{\"a\":{\"0123456789\":1}}"),
			     STR("[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/0123456789\"}]")),
		STATUS_PATH_TOO_LONG);
	/* Each copy of the whole into its depth doubles that. */
	buf_append_cstr(&patch, "[");
	for (int i = 0, depth = 1; i < 10; i++, depth *= 2) {
		buf_append_cstr(&patch, i ? "," : "");
		buf_append_cstr(&patch, "{\"op\":\"copy\",\"from\":\"\",\"path\":\"");
		for (int j = 0; j < depth; j++)
			buf_append_cstr(&patch, "/a");
		buf_append_cstr(&patch, "\"}");
	}
	buf_append_cstr(&patch, "]");
	assert_int_equal(patch_within(&test_limits, STR("{}"), buf_str(&patch)), STATUS_JSON_DEPTH);
	buf_release(&patch);
}

static void
patches_that_would_take_for_ever_are_refused(void **state)
{
	struct buf doc = BUF_INIT(TEST_MAX_BYTES);
	struct buf patch = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	buf_append_cstr(&doc, "{\"a\":[0");
	for (int i = 0; i < 20000; i++)
		buf_append_cstr(&doc, ",0");
	buf_append_cstr(&doc, "]}");
	buf_append_cstr(&patch, "[{\"op\":\"test\",\"path\":\"/a/0\",\"value\":0}");
	for (int i = 0; i < 5000; i++)
		buf_append_cstr(&patch, ",{\"op\":\"remove\",\"path\":\"/a/0\"}");
	buf_append_cstr(&patch, "]");
	assert_int_equal(patch_within(&test_limits, buf_str(&doc), buf_str(&patch)), STATUS_LIMIT);
	buf_release(&doc);
	buf_release(&patch);
}

static void
copies_of_copies_do_not_fill_the_memory(void **state)
{
	struct buf patch = BUF_INIT(TEST_MAX_BYTES);
	enum status status;

	(void)state;
	buf_append_cstr(&patch, "[");
	for (int i = 0; i < 60; i++)
		buf_printf(&patch, "%s{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/x%d\"}",
			   i ? "," : "", i);
	buf_append_cstr(&patch, "]");
	status = patch_within(&test_limits, STR("{\"a\":{\"y\":0}}"), buf_str(&patch));
	assert_true(status == STATUS_LIMIT || status == STATUS_DOC_TOO_LARGE ||
		    status == STATUS_JSON_DEPTH);
	buf_release(&patch);
}

static void
leaves_that_no_document_has_are_corrupt(void **state)
{
	/* a: an array whose second position is missing. */
	const struct kv_pair gap[] = {
		{ STR("\x02"
		      "a\0\x14"),
		  STR("\x14") },
		{ STR("\x02"
		      "a\0\x15\x02"),
		  STR("\x14") },
	};
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct doc_patch patch;
	struct doc result;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(doc_patch_read(DOC_PATCH_JSON,
					STR("[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":{}}]"),
					arena, &patch, &err),
			 STATUS_OK);
	assert_int_equal(doc_patch_apply(&patch, gap, 2, &test_limits, 0, arena, &result, &err),
			 STATUS_CORRUPT);
	assert_int_equal(doc_patch_read(DOC_PATCH_JSON, STR("[]"), arena, &patch, &err), STATUS_OK);
	assert_int_equal(doc_patch_apply(&patch, gap, 2, &test_limits, 0, arena, &result, &err),
			 STATUS_CORRUPT);
	arena_free(arena);
}

/* ---- Merge patches ---- */

static void
examples_of_rfc_7396_hold(void **state)
{
	/* Its appendix A; documents that are no objects stand below a member. */
	static const char *const examples[][3] = {
		{ "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
		{ "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
		{ "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
		{ "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
		{ "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
		{ "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
		{ "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
		  "{\"a\":{\"b\":\"d\"}}" },
		{ "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
		{ "{\"d\":[\"a\",\"b\"]}", "{\"d\":[\"c\",\"d\"]}", "{\"d\":[\"c\",\"d\"]}" },
		{ "{\"d\":{\"a\":\"b\"}}", "{\"d\":[\"c\"]}", "{\"d\":[\"c\"]}" },
		{ "{\"d\":{\"a\":\"foo\"}}", "{\"d\":null}", "{}" },
		{ "{\"d\":{\"a\":\"foo\"}}", "{\"d\":\"bar\"}", "{\"d\":\"bar\"}" },
		{ "{\"e\":null}", "{\"a\":1}", "{\"a\":1,\"e\":null}" },
		{ "{\"d\":[1,2]}", "{\"d\":{\"a\":\"b\",\"c\":null}}", "{\"d\":{\"a\":\"b\"}}" },
		{ "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
		/* And its section 3. */
		{ "{\"title\":\"Goodbye!\",\"author\":{\"givenName\":\"John\",\"familyName\":"
		  "\"Doe\"},"
		  "\"tags\":[\"example\",\"sample\"],\"content\":\"This will be unchanged\"}",
		  "{\"title\":\"Hello!\",\"phoneNumber\":\"+01-123-456-7890\",\"author\":"
		  "{\"familyName\":null},\"tags\":[\"example\"]}",
		  "{\"author\":{\"givenName\":\"John\"},\"content\":\"This will be unchanged\","
		  "\"phoneNumber\":\"+01-123-456-7890\",\"tags\":[\"example\"],\"title\":\"Hello!"
		  "\"}" },
		/* Nulls in arrays stay; an empty object changes nothing but what is none. */
		{ "{\"a\":{\"b\":1},\"c\":1}", "{\"a\":{},\"c\":{},\"d\":[null,{\"x\":null}]}",
		  "{\"a\":{\"b\":1},\"c\":{},\"d\":[null,{\"x\":null}]}" },
		{ "{\"a\":1}", "{}", "{\"a\":1}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		assert_patched(DOC_PATCH_MERGE, examples[i][0], examples[i][1], examples[i][2]);
}

static void
merge_patches_as_deep_as_json_goes_are_applied(void **state)
{
	struct buf doc = BUF_INIT(TEST_MAX_BYTES);
	struct buf patch = BUF_INIT(TEST_MAX_BYTES);
	struct buf expected = BUF_INIT(TEST_MAX_BYTES);
	struct buf *all[] = { &doc, &patch, &expected };
	static const char *const last[] = { "1", "2", "2" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < JSON_DEPTH_LIMIT; j++)
			buf_append_cstr(all[i], "{\"a\":");
		buf_append_cstr(all[i], last[i]);
		for (int j = 0; j < JSON_DEPTH_LIMIT; j++)
			buf_append_byte(all[i], '}');
		buf_append_byte(all[i], 0);
	}
	assert_patched(DOC_PATCH_MERGE, doc.ptr, patch.ptr, expected.ptr);
	for (int i = 0; i < 3; i++)
		buf_release(all[i]);
}

/* ---- Against a plain tree ---- */

enum {
	TREE_MEMBERS = 4,
	TREE_DEPTH = 4,
};

/* A value of few shapes: an object of members "a" to "d", or a small text. */
struct tree {
	bool object;
	const char *text;
	struct tree *members[TREE_MEMBERS];
};

static struct tree *
tree_random(struct rand_seq *rand, int depth, bool patch, struct arena *arena)
{
	static const char *const texts[] = { "1", "\"x\"", "[]", "[1,{\"a\":null}]", "null", "{}" };
	struct tree *t = arena_zalloc(arena, sizeof(*t));

	assert_non_null(t);
	t->object = depth == 0 || (depth < TREE_DEPTH && rand_seq_below(rand, 2));
	if (!t->object) {
		t->text = texts[rand_seq_below(rand, patch ? 5 : 4)];
		return t;
	}
	for (int i = 0; i < TREE_MEMBERS; i++)
		if (rand_seq_below(rand, 2))
			t->members[i] = tree_random(rand, depth + 1, patch, arena);
	return t;
}

static void
tree_write(const struct tree *t, struct buf *out)
{
	bool any = false;

	if (!t->object) {
		buf_append_cstr(out, t->text);
		return;
	}
	buf_append_byte(out, '{');
	for (int i = 0; i < TREE_MEMBERS; i++) {
		if (!t->members[i])
			continue;
		buf_printf(out, "%s\"%c\":", any ? "," : "", 'a' + i);
		tree_write(t->members[i], out);
		any = true;
	}
	buf_append_byte(out, '}');
}

/* RFC 7396's own pseudocode. */
static struct tree *
tree_merge(struct tree *target, struct tree *patch, struct arena *arena)
{
	struct tree *result;

	if (!patch->object)
		return patch;
	result = arena_zalloc(arena, sizeof(*result));
	assert_non_null(result);
	result->object = true;
	for (int i = 0; i < TREE_MEMBERS; i++) {
		struct tree *before = target && target->object ? target->members[i] : NULL;
		struct tree *change = patch->members[i];

		if (!change)
			result->members[i] = before;
		else if (change->object || strcmp(change->text, "null") != 0)
			result->members[i] = tree_merge(before, change, arena);
	}
	return result;
}

static void
merging_random_documents_is_what_the_rfc_calculates(void **state)
{
	struct rand_seq rand = { 7396 };
	struct buf texts[3] = { BUF_INIT(TEST_MAX_BYTES), BUF_INIT(TEST_MAX_BYTES),
				BUF_INIT(TEST_MAX_BYTES) };

	(void)state;
	for (int i = 0; i < RANDOM_MERGES; i++) {
		struct arena *arena = arena_new(TEST_MAX_BYTES);
		struct tree *target = tree_random(&rand, 0, false, arena);
		struct tree *patch = tree_random(&rand, 0, true, arena);
		const struct tree *all[] = { target, patch, tree_merge(target, patch, arena) };

		for (int j = 0; j < 3; j++) {
			buf_clear(&texts[j]);
			tree_write(all[j], &texts[j]);
			buf_append_byte(&texts[j], 0);
		}
		assert_patched(DOC_PATCH_MERGE, texts[0].ptr, texts[1].ptr, texts[2].ptr);
		arena_free(arena);
	}
	for (int j = 0; j < 3; j++)
		buf_release(&texts[j]);
}

/* Every allocation failing in turn ends in a status and no leak. */
static void
patching_with_little_memory_fails_cleanly(void **state)
{
	struct str text = STR("{\"a\":[1,2,{\"b\":3}],\"c\":{\"d\":4}}");
	struct str patch_text = STR("[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":{\"x\":[1]}},"
				    "{\"op\":\"move\",\"from\":\"/c/d\",\"path\":\"/a/0\"},"
				    "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c/e\"}]");

	(void)state;
	for (size_t bytes = 0;; bytes += 64) {
		struct arena *arena = arena_new(bytes);
		struct arena *doc_arena = arena_new(TEST_MAX_BYTES);
		struct doc doc = explode_or_fail(text, doc_arena);
		struct doc_patch patch;
		struct doc result;
		struct err err = { 0 };
		enum status status;

		assert_non_null(arena);
		status = doc_patch_read(DOC_PATCH_JSON, patch_text, arena, &patch, &err);
		if (status == STATUS_OK)
			status = doc_patch_apply(&patch, doc.leaves, doc.count, &test_limits, 0,
						 arena, &result, &err);
		arena_free(arena);
		arena_free(doc_arena);
		if (status == STATUS_OK) {
			assert_true(bytes > 0);
			return;
		}
		assert_int_equal(status, STATUS_LIMIT);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_json_patch_suite_passes),
		cmocka_unit_test(exact_numbers_and_long_strings_survive_a_patch),
		cmocka_unit_test(names_with_nuls_are_their_own),
		cmocka_unit_test(emptied_containers_stay_what_they_were),
		cmocka_unit_test(numbers_are_tested_by_what_they_are_worth),
		cmocka_unit_test(places_that_are_not_there_fail_the_patch),
		cmocka_unit_test(what_is_no_patch_is_invalid),
		cmocka_unit_test(whole_document_is_replaced_tested_and_copied),
		cmocka_unit_test(positions_beyond_255_keep_their_order),
		cmocka_unit_test(patched_document_has_the_term_of_its_own_text),
		cmocka_unit_test(result_is_held_to_the_limits_of_documents),
		cmocka_unit_test(patches_that_would_take_for_ever_are_refused),
		cmocka_unit_test(copies_of_copies_do_not_fill_the_memory),
		cmocka_unit_test(leaves_that_no_document_has_are_corrupt),
		cmocka_unit_test(examples_of_rfc_7396_hold),
		cmocka_unit_test(merge_patches_as_deep_as_json_goes_are_applied),
		cmocka_unit_test(merging_random_documents_is_what_the_rfc_calculates),
		cmocka_unit_test(patching_with_little_memory_fails_cleanly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
