#include "bson/json.h"

#include <stdlib.h>

#include "bson/date.h"
#include "peer.h"
#include "random_bson.h"

enum {
	ROUNDS = 3000,
	TEST_BYTES = 1 << 22,
};

static void
read_or_fail(struct str text, struct buf *out)
{
	struct err err = { 0 };

	buf_clear(out);
	if (bson_json_read(text, out, &err) != STATUS_OK)
		fail_msg("%.*s: %s", STR_ARG(text), err.text);
	assert_int_equal(bson_check(buf_str(out), NULL), STATUS_OK);
}

/* A text comes back as the two forms. */
static void
assert_reads(const char *text, const char *canonical, const char *relaxed)
{
	struct buf doc = BUF_INIT(TEST_BYTES), out = BUF_INIT(TEST_BYTES);

	read_or_fail(str_from_cstr(text), &doc);
	bson_json_write(&out, buf_str(&doc), BSON_JSON_CANONICAL);
	buf_append_byte(&out, 0);
	assert_string_equal(out.ptr, canonical);
	buf_clear(&out);
	bson_json_write(&out, buf_str(&doc), BSON_JSON_RELAXED);
	buf_append_byte(&out, 0);
	assert_string_equal(out.ptr, relaxed ? relaxed : canonical);
	buf_release(&doc);
	buf_release(&out);
}

static void
every_type_has_its_form(void **state)
{
	static const char db_pointer[] = "{\"a\":{\"$dbPointer\":{\"$ref\":\"b\",\"$id\":{\"$oid\":"
					 "\"56e1fc72e0c917e9c4714161\"}}}}";
	static const char *const same[] = {
		"{}",
		"{\"a\":{\"b\":[{},[],null,true,false]}}",
		"{\"a\":{\"$oid\":\"56e1fc72e0c917e9c4714161\"}}",
		"{\"a\":{\"$symbol\":\"x\"}}",
		"{\"a\":{\"$numberDecimal\":\"1.230\"}}",
		"{\"a\":{\"$numberDouble\":\"NaN\"}}",
		"{\"a\":{\"$numberDouble\":\"-Infinity\"}}",
		"{\"a\":{\"$binary\":{\"base64\":\"//8=\",\"subType\":\"80\"}}}",
		"{\"a\":{\"$binary\":{\"base64\":\"//8=\",\"subType\":\"02\"}}}",
		"{\"a\":{\"$code\":\"f()\"}}",
		"{\"a\":{\"$code\":\"f()\",\"$scope\":{\"x\":{\"$minKey\":1}}}}",
		"{\"a\":{\"$timestamp\":{\"t\":4294967295,\"i\":1}}}",
		"{\"a\":{\"$regularExpression\":{\"pattern\":\"a\\\"b\",\"options\":\"ix\"}}}",
		db_pointer,
		"{\"a\":{\"$undefined\":true}}",
		"{\"a\":{\"$maxKey\":1}}",
		"{\"a\":{\"$date\":{\"$numberLong\":\"-1\"}}}",
		"{\"$oid\":\"at the top this is a member\"}",
		"{\"$oid\":{}}",
		"{\"$oid\":{\"\":{}}}",
		"{\"a\":{\"$gt\":\"x\"}}",
		"{\"a\":{\"$regex\":\"x\"}}",
		"{\"\":\"\\u0000\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_reads(same[i], same[i], NULL);
	assert_reads("{\"a\":{\"$numberInt\":\"-5\"}}", "{\"a\":{\"$numberInt\":\"-5\"}}",
		     "{\"a\":-5}");
	assert_reads("{\"a\":2147483648}", "{\"a\":{\"$numberLong\":\"2147483648\"}}",
		     "{\"a\":2147483648}");
	assert_reads("{\"a\":{\"$numberDouble\":\"-0.0\"}}", "{\"a\":{\"$numberDouble\":\"-0.0\"}}",
		     "{\"a\":-0.0}");
	assert_reads("{\"a\":-2147483649}", "{\"a\":{\"$numberLong\":\"-2147483649\"}}",
		     "{\"a\":-2147483649}");
	assert_reads("{\"a\":2147483647}", "{\"a\":{\"$numberInt\":\"2147483647\"}}",
		     "{\"a\":2147483647}");
	assert_reads("{\"a\":-2147483648}", "{\"a\":{\"$numberInt\":\"-2147483648\"}}",
		     "{\"a\":-2147483648}");
	assert_reads("{\"a\":1e2}", "{\"a\":{\"$numberDouble\":\"100.0\"}}", "{\"a\":100.0}");
	assert_reads("{\"a\":{\"$date\":\"2012-12-24T12:15:30.501Z\"}}",
		     "{\"a\":{\"$date\":{\"$numberLong\":\"1356351330501\"}}}",
		     "{\"a\":{\"$date\":\"2012-12-24T12:15:30.501Z\"}}");
	/* The last moment that has a text, and the one behind it. */
	assert_reads("{\"a\":{\"$date\":253402300799999}}",
		     "{\"a\":{\"$date\":{\"$numberLong\":\"253402300799999\"}}}",
		     "{\"a\":{\"$date\":\"9999-12-31T23:59:59.999Z\"}}");
	assert_reads("{\"a\":{\"$date\":253402300800000}}",
		     "{\"a\":{\"$date\":{\"$numberLong\":\"253402300800000\"}}}", NULL);
	/* No text, so these are operators of a query. */
	assert_reads("{\"a\":{\"$regex\":1}}", "{\"a\":{\"$regex\":{\"$numberInt\":\"1\"}}}",
		     "{\"a\":{\"$regex\":1}}");
	assert_reads("{\"a\":{\"$regex\":{\"b\":\"c\"}}}", "{\"a\":{\"$regex\":{\"b\":\"c\"}}}",
		     NULL);
	assert_reads("{\"a\":{\"$regex\":\"x\",\"$options\":1}}",
		     "{\"a\":{\"$regex\":\"x\",\"$options\":{\"$numberInt\":\"1\"}}}",
		     "{\"a\":{\"$regex\":\"x\",\"$options\":1}}");
}

static void
older_forms_are_read(void **state)
{
	(void)state;
	assert_reads("{\"a\":{\"$binary\":\"//8=\",\"$type\":\"0\"}}",
		     "{\"a\":{\"$binary\":{\"base64\":\"//8=\",\"subType\":\"00\"}}}", NULL);
	assert_reads("{\"a\":{\"$binary\":{\"subType\":\"4\",\"base64\":\"\"}}}",
		     "{\"a\":{\"$binary\":{\"base64\":\"\",\"subType\":\"04\"}}}", NULL);
	assert_reads("{\"a\":{\"$uuid\":\"73ffd264-44b3-4c69-90e8-e7d1dfc035d4\"}}",
		     "{\"a\":{\"$binary\":{\"base64\":\"c//SZESzTGmQ6OfR38A11A==\","
		     "\"subType\":\"04\"}}}",
		     NULL);
	assert_reads("{\"a\":{\"$regex\":\"b\",\"$options\":\"i\"}}",
		     "{\"a\":{\"$regularExpression\":{\"pattern\":\"b\",\"options\":\"i\"}}}",
		     NULL);
	/* The pattern is no option, and what is behind the document is none of it. */
	assert_reads("{\"a\":[{\"$regex\":\"$options\"},\"i\"]}",
		     "{\"a\":[{\"$regex\":\"$options\"},\"i\"]}",
		     "{\"a\":[{\"$regex\":\"$options\"},\"i\"]}");
	assert_reads("{\"a\":{\"$regex\":\"$options\"}}", "{\"a\":{\"$regex\":\"$options\"}}",
		     "{\"a\":{\"$regex\":\"$options\"}}");
	assert_reads("{\"a\":{\"$date\":5}}", "{\"a\":{\"$date\":{\"$numberLong\":\"5\"}}}",
		     "{\"a\":{\"$date\":\"1970-01-01T00:00:00.005Z\"}}");
}

static void
mistakes_are_refused(void **state)
{
	static const char *const texts[] = {
		"[]",
		"1",
		"{\"a\":{\"$oid\":\"56e1\"}}",
		"{\"a\":{\"$oid\":\"56e1fc72e0c917e9c4714161\",\"b\":1}}",
		"{\"a\":{\"$numberInt\":\"2147483648\"}}",
		"{\"a\":{\"$numberLong\":\"x\"}}",
		"{\"a\":{\"$numberDouble\":\"1x\"}}",
		"{\"a\":{\"$numberDouble\":\"\"}}",
		"{\"a\":{\"$numberDecimal\":\"12345678901234567890123456789012345\"}}",
		"{\"a\":{\"$date\":\"2012-13-24T12:15:30Z\"}}",
		"{\"a\":{\"$binary\":{\"base64\":\"!\",\"subType\":\"00\"}}}",
		"{\"a\":{\"$binary\":{\"base64\":\"\",\"base64\":\"\"}}}",
		"{\"a\":{\"$uuid\":\"73ffd26444b34c6990e8e7d1dfc035d4\"}}",
		"{\"a\":{\"$timestamp\":{\"t\":-1,\"i\":1}}}",
		"{\"a\":{\"$regularExpression\":{\"pattern\":\"\\u0000\",\"options\":\"\"}}}",
		"{\"a\":{\"$regularExpression\":{\"pattern\":\"\",\"options\":\"\\u0000\"}}}",
		"{\"a\":{\"$regularExpression\":{\"pattern\":\"\",\"pattern\":\"\"}}}",
		"{\"a\":{\"$regularExpression\":{\"options\":\"\",\"options\":\"\"}}}",
		"{\"a\":{\"$minKey\":\"1\"}}",
		"{\"a\\u0000b\":1}",
		"{\"a\":{\"$code\":\"f\",\"$scope\":1}}",
	};
	struct buf out = BUF_INIT(TEST_BYTES);

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct err err = { 0 };

		if (bson_json_read(str_from_cstr(texts[i]), &out, &err) != STATUS_INVALID)
			fail_msg("%s is read", texts[i]);
		assert_true(err.text[0] != '\0');
		assert_int_equal(out.len, 0);
	}
	assert_int_equal(bson_json_read(STR("{\"a\":}"), &out, NULL), STATUS_JSON_SYNTAX);
	assert_int_equal(bson_json_read(STR("{} {}"), &out, NULL), STATUS_JSON_SYNTAX);
	buf_release(&out);
}

static void
nesting_in_text_has_the_same_limit(void **state)
{
	struct buf text = BUF_INIT(TEST_BYTES), out = BUF_INIT(TEST_BYTES);

	(void)state;
	for (int depth = BSON_DEPTH; depth <= BSON_DEPTH + 1; depth++) {
		buf_clear(&text);
		buf_clear(&out);
		for (int i = 0; i < depth; i++)
			buf_append_cstr(&text, "{\"a\":");
		buf_append_cstr(&text, "1");
		for (int i = 0; i < depth; i++)
			buf_append_byte(&text, '}');
		assert_int_equal(bson_json_read(buf_str(&text), &out, NULL),
				 depth == BSON_DEPTH ? STATUS_OK : STATUS_JSON_DEPTH);
	}
	buf_release(&text);
	buf_release(&out);
}

/* Scopes are read each by a call inside of that for the one around. */
static void
scopes_are_inside_each_other_up_to_a_limit(void **state)
{
	struct buf text = BUF_INIT(TEST_BYTES), out = BUF_INIT(TEST_BYTES);

	(void)state;
	for (int scopes = 8; scopes <= 9; scopes++) {
		buf_clear(&text);
		buf_clear(&out);
		for (int i = 0; i < scopes; i++)
			buf_append_cstr(&text, "{\"a\":{\"$code\":\"f\",\"$scope\":");
		buf_append_cstr(&text, "{}");
		for (int i = 0; i < scopes; i++)
			buf_append_cstr(&text, "}}");
		assert_int_equal(bson_json_read(buf_str(&text), &out, NULL),
				 scopes == 8 ? STATUS_OK : STATUS_INVALID);
	}
	buf_release(&text);
	buf_release(&out);
}

/* Checks that frond reads libbson's text as the document, and sees how libbson reads frond's. */
static void
compare_with_libbson(struct str document, struct str text, int *agreed, int *differed)
{
	struct buf ours = BUF_INIT(TEST_BYTES);
	size_t len = 0;
	char *read = peer_read_json(text.ptr, text.len, &len);
	char *theirs = peer_write_json(document.ptr, document.len);

	if (theirs) {
		read_or_fail(str_from_cstr(theirs), &ours);
		if (!str_eq(buf_str(&ours), document))
			fail_msg("libbson writes %s for %.*s", theirs, STR_ARG(text));
	}
	*(read && str_eq(str_of(read, len), document) ? agreed : differed) += 1;
	buf_release(&ours);
	free(theirs);
	free(read);
}

/* A text keeps neither the payload of a NaN nor digits that a decimal has too many of. */
static void
documents_and_their_texts_agree_with_libbson(void **state)
{
	struct arena *arena = arena_new(TEST_BYTES);
	struct buf doc = BUF_INIT(TEST_BYTES);
	struct buf text = BUF_INIT(TEST_BYTES), again = BUF_INIT(TEST_BYTES);
	struct rand_seq r = { 1 };
	int agreed = 0, differed = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		buf_clear(&text);
		buf_clear(&again);
		bson_json_write(&text, random_document(&r, arena, 3), BSON_JSON_CANONICAL);
		read_or_fail(buf_str(&text), &doc);
		bson_json_write(&again, buf_str(&doc), BSON_JSON_CANONICAL);
		assert_true(str_eq(buf_str(&text), buf_str(&again)));
		/* libbson ends some texts at a NUL. */
		if (!memmem(text.ptr, text.len, "\\u0000", 6))
			compare_with_libbson(buf_str(&doc), buf_str(&text), &agreed, &differed);
		arena_clear(arena);
	}
	/* Its reader is wrong about code inside of scopes, and empty name spaces. */
	assert_true(agreed > ROUNDS / 3 && differed < agreed / 5);
	buf_release(&doc);
	buf_release(&text);
	buf_release(&again);
	arena_free(arena);
}

/* No prefix of it is a date, and nothing that has another character in the place of one. */
static void
each_character_of_a_date_counts(const char *text)
{
	static const char others[] = "/:x";
	char changed[32];
	int64_t ms;

	for (size_t i = 0; text[i]; i++) {
		if (bson_date_read(str_of(text, i), &ms))
			fail_msg("%.*s is a date", (int)i, text);
		for (const char *c = others; *c; c++) {
			(void)snprintf(changed, sizeof(changed), "%s", text);
			changed[i] = *c;
			if (*c != text[i] && bson_date_read(str_from_cstr(changed), &ms))
				fail_msg("%s is a date", changed);
		}
	}
}

static void
dates_are_iso_8601(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
		const char *written;
	} dates[] = {
		{ "1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z" },
		{ "2000-02-29T23:59:59.9Z", 951868799900, "2000-02-29T23:59:59.900Z" },
		{ "9999-12-31T23:59:59.999Z", 253402300799999, "9999-12-31T23:59:59.999Z" },
		{ "1970-01-01T01:00:00+01:00", 0, "1970-01-01T00:00:00Z" },
		{ "1969-12-31T23:30:00.000-0030", 0, "1970-01-01T00:00:00Z" },
		{ "0000-01-01T00:00:00Z", -62167219200000, NULL },
		{ "1900-02-28T00:00:00.123456Z", -2203977599877, NULL },
		{ "1970-01-01T00:00:00.123456789Z", 123, NULL },
		{ "1970-01-01T23:59:00+23:59", 0, NULL },
	};
	static const char *const wrong[] = { "1900-02-29T00:00:00Z",
					     "2012-12-24T12:15:30",
					     "2012-00-24T12:15:30Z",
					     "2012-12-00T12:15:30Z",
					     "2012-12-24T12:60:30Z",
					     "2012-12-24T12:15:60Z",
					     "2012-12-24T12:15:30.1234567890Z",
					     "2012-12-24T12:15:30*01:00",
					     "2012-12-24T12:15:30+24:00",
					     "2012-12-24T12:15:30+01:60",
					     "2012-12-24T12:15:30+01:000",
					     "2012-12-24T12:15:30+010000",
					     "2012-12-24 12:15:30Z",
					     "2012-12-2/T12:15:30Z",
					     "2012-1 -24T12:15:30Z",
					     "2012-12-24T24:00:00Z",
					     "2012-12-24T12:15:30.Z",
					     "2012-12-24T12:15:30+1:00",
					     "",
					     "12-12-24T12:15:30Z",
					     "2012-12-24T12:15:-0100",
					     "2012-12-24T12:+01:00",
					     "2012-12-24T12Z",
					     "2012-12-24T12:15Z" };
	static const char *const whole[] = { "2012-12-24T12:15:30.501+01:00",
					     "2012-12-24T12:15:30-0130", "2012-12-24T12:15:30.5Z" };
	struct buf out = BUF_INIT(TEST_BYTES);
	struct rand_seq r = { 1 };
	int64_t ms;

	(void)state;
	/* What is behind a text is no zone of it. */
	assert_false(bson_date_read(str_of("2012-12-24T12:15:30+01:00", 19), &ms));
	for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
		assert_true(bson_date_read(str_from_cstr(dates[i].text), &ms));
		assert_true(ms == dates[i].ms);
		if (!dates[i].written)
			continue;
		buf_clear(&out);
		bson_date_write(&out, ms);
		assert_true(str_eq(buf_str(&out), str_from_cstr(dates[i].written)));
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(bson_date_read(str_from_cstr(wrong[i]), &ms));
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		each_character_of_a_date_counts(whole[i]);
	for (int i = 0; i < ROUNDS; i++) {
		int64_t random = (int64_t)rand_seq_below(&r, BSON_DATE_MOST_MS + 1);

		buf_clear(&out);
		bson_date_write(&out, random);
		assert_true(bson_date_read(buf_str(&out), &ms) && ms == random);
	}
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_has_its_form),
		cmocka_unit_test(older_forms_are_read),
		cmocka_unit_test(mistakes_are_refused),
		cmocka_unit_test(nesting_in_text_has_the_same_limit),
		cmocka_unit_test(scopes_are_inside_each_other_up_to_a_limit),
		cmocka_unit_test(documents_and_their_texts_agree_with_libbson),
		cmocka_unit_test(dates_are_iso_8601),
	};

	return cmocka_run_group_tests_name("bson_json", tests, NULL, NULL);
}
