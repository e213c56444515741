/* Attachments as documents have them in JSON: what is taken of their members, and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/rand.h"
#include "catalog/catalog_int.h"
#include "model/revisioned/att_json.h"
#include "model/revisioned/revisioned_int.h"

enum {
	ARENA_BYTES = 1 << 20,
	MANY_BYTES = 16 * 1024 * 1024,
	COMPARED = 100,              /* attachments whose names are compared with each other */
	STEP_CHARACTERS = 48 * 1024, /* of base64 that are decoded at once */
	STEP_BYTES = STEP_CHARACTERS / 4 * 3,
};

static int
setup(void **state)
{
	*state = arena_new(ARENA_BYTES);
	return *state ? 0 : -1;
}

static int
teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static enum status
parse(struct arena *arena, const char *text, struct rev_att_json **ret, size_t *ret_count,
      struct err *err)
{
	*err = (struct err){ 0 };
	return rev_atts_parse(str_from_cstr(text), arena, ret, ret_count, err);
}

/* So many attachments of names "n0", "n1", and so on. */
static void
put_stubs(struct buf *ret, unsigned count)
{
	buf_clear(ret);
	buf_append_byte(ret, '{');
	for (unsigned i = 0; i < count; i++)
		buf_printf(ret, "%s\"n%u\":{\"stub\":true}", i ? "," : "", i);
	buf_append_byte(ret, '}');
	assert_int_equal(buf_status(ret), STATUS_OK);
}

static void
members_say_of_which_kind_it_is(void **state)
{
	struct rev_att_json *atts;
	struct err err;
	size_t count;

	assert_int_equal(
		parse(*state,
		      "{\"a\":{\"stub\":true,\"revpos\":3,\"content_type\":\"text/plain\"},"
		      "\"b\":{\"data\":\"aGVsbG8=\",\"content_type\":\"x/y\",\"more\":[1]},"
		      "\"c\":{\"follows\":true,\"length\":7,\"encoded_length\":5},"
		      "\"d\":{\"follows\":true,\"length\":9,\"encoding\":\"gzip\","
		      "\"encoded_length\":5,\"digest\":\"md5-AAAAAAAAAAAAAAAAAAAAAA==\"},"
		      "\"e\":{\"follows\":true,\"encoding\":\"identity\",\"digest\":\"md5-AA==\"},"
		      "\"f\":{\"follows\":true,\"encoded_length\":5}}",
		      &atts, &count, &err),
		STATUS_OK);
	assert_int_equal(count, 6);
	assert_int_equal(atts[0].kind, REV_ATT_KIND_STUB);
	assert_int_equal(atts[0].edit.source, REV_ATT_STUB);
	assert_true(atts[0].edit.has_revpos);
	assert_int_equal(atts[0].edit.att.revpos, 3);
	assert_true(str_eq(atts[0].edit.att.type, STR("text/plain")));
	assert_int_equal(atts[1].kind, REV_ATT_KIND_INLINE);
	assert_true(str_eq(atts[1].edit.att.name, STR("b")));
	assert_true(str_eq(atts[1].edit.att.type, STR("x/y")));
	assert_true(str_eq(atts[1].data, STR("\"aGVsbG8=\"")));
	assert_int_equal(atts[2].kind, REV_ATT_KIND_FOLLOWS);
	assert_true(atts[2].has_length && !atts[2].has_digest);
	assert_int_equal(atts[2].edit.att.encoding, REV_ATT_IDENTITY);
	assert_int_equal(atts[2].edit.att.encoded_length, 7);
	assert_true(atts[3].has_length && atts[3].has_digest);
	assert_int_equal(atts[3].edit.att.encoding, REV_ATT_GZIP);
	assert_int_equal(atts[3].edit.att.length, 9);
	assert_int_equal(atts[3].edit.att.encoded_length, 5);
	assert_false(atts[4].has_length || atts[4].has_digest);
	assert_int_equal(atts[4].edit.att.encoding, REV_ATT_IDENTITY);
	assert_false(atts[5].has_length);
}

static void
what_makes_no_sense_is_refused(void **state)
{
	static const char *const texts[] = {
		"{\"_a\":{\"stub\":true}}",
		"{\"a\":{}}",
		"{\"a\":{\"content_type\":\"x/y\"}}",
		"{\"a\":{\"data\":1}}",
		"{\"a\":{\"data\":\"\",\"revpos\":-1}}",
		"{\"a\":{\"data\":\"\",\"revpos\":\"1\"}}",
		"{\"a\":{\"data\":\"\",\"revpos\":1.5}}",
		"{\"a\":{\"data\":\"\",\"length\":9223372036854775808}}",
		"{\"a\":{\"data\":\"\",\"encoding\":\"br\"}}",
		"{\"a\":{\"data\":\"\",\"content_type\":\"a\\u0000b\"}}",
		"{\"a\":{\"data\":\"\",\"content_type\":\"a\\nb\"}}",
		"{\"a\":{\"data\":\"\",\"content_type\":\"a\\u007fb\"}}",
		"{\"a\":{\"data\":\"\"},\"a\":{\"data\":\"\"}}",
		"{\"a\":1}",
		"[]",
	};
	struct rev_att_json *atts;
	struct err err;
	size_t count;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (parse(*state, texts[i], &atts, &count, &err) != STATUS_INVALID)
			fail_msg("%s", texts[i]);
}

static void
a_type_has_bounded_bytes(void **state)
{
	static char type[REV_ATT_TYPE_BYTES + 1];
	struct err err;

	(void)state;
	memset(type, 'x', sizeof(type));
	assert_int_equal(rev_att_type_check(str_of(type, REV_ATT_TYPE_BYTES), &err), STATUS_OK);
	assert_int_equal(rev_att_type_check(str_of(type, REV_ATT_TYPE_BYTES + 1), &err),
			 STATUS_INVALID);
}

/* Each number at its edge and one beyond; so many names are compared, and so many taken. */
static void
members_have_their_limits(void **state)
{
	static const char *const members[] = { "revpos", "length", "encoded_length" };
	AUTO(buf_release) struct buf text = BUF_INIT(MANY_BYTES);
	struct arena *arena = arena_new(MANY_BYTES);
	struct rev_att_json *atts;
	struct err err;
	size_t count;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		char json[120];

		(void)snprintf(json, sizeof(json),
			       "{\"a\":{\"follows\":true,\"%s\":9223372036854775807}}", members[i]);
		assert_int_equal(parse(*state, json, &atts, &count, &err), STATUS_OK);
		(void)snprintf(json, sizeof(json),
			       "{\"a\":{\"follows\":true,\"%s\":9223372036854775808}}", members[i]);
		assert_int_equal(parse(*state, json, &atts, &count, &err), STATUS_INVALID);
		assert_non_null(strstr(err.text, members[i]));
	}
	/* The last of so many names is the first one again. */
	for (unsigned n = COMPARED; n <= COMPARED + 1; n++) {
		put_stubs(&text, n - 1);
		text.len--;
		buf_append_cstr(&text, ",\"n0\":{\"stub\":true}}");
		assert_int_equal(rev_atts_parse(buf_str(&text), arena, &atts, &count, &err),
				 n == COMPARED ? STATUS_INVALID : STATUS_OK);
	}
	for (unsigned n = REV_ATTS_MAX; n <= REV_ATTS_MAX + 1; n++) {
		put_stubs(&text, n);
		assert_int_equal(rev_atts_parse(buf_str(&text), arena, &atts, &count, &err),
				 n == REV_ATTS_MAX ? STATUS_OK : STATUS_DOC_TOO_LARGE);
	}
	assert_int_equal(count, REV_ATTS_MAX);
	arena_free(arena);
}

/* ---- Data in JSON ---- */

/* Bytes as base64 with white space and escapes in between. */
static void
put_data(struct rand_seq *rand, struct str bytes, struct buf *ret)
{
	static const char *const between[] = { " ", "\\n", "\\t", "\\r", "\\u0020" };
	AUTO(buf_release) struct buf base64 = BUF_INIT(MANY_BYTES);

	base64_encode(&base64, bytes, BASE64_STANDARD);
	buf_clear(ret);
	buf_append_byte(ret, '"');
	for (size_t i = 0; i < base64.len; i++) {
		if (rand_seq_below(rand, 9) == 0)
			buf_append_cstr(ret, between[rand_seq_below(rand, 5)]);
		buf_append_byte(ret, (uint8_t)base64.ptr[i]);
	}
	buf_append_byte(ret, '"');
	assert_int_equal(buf_status(ret), STATUS_OK);
}

/* What is decoded of the data, into an upload that keeps it in memory. */
static enum status
decode(struct catalog_db *db, struct str data, struct buf *ret, struct err *err)
{
	const struct rev_upload_options options = { .db = db, .memory_bytes = MANY_BYTES };
	const struct rev_att_json att = { .edit.att.name = STR("a"), .data = data };
	uint8_t md5[REV_ATT_DIGEST_BYTES];
	struct rev_att_edit edit = { 0 };
	struct rev_upload *upload;
	enum status status;

	*err = (struct err){ 0 };
	TRY(rev_upload_new(&options, &upload));
	status = rev_att_inline(&att, upload, err);
	if (status == STATUS_OK)
		status = rev_upload_finish(upload, &edit, md5, err);
	buf_clear(ret);
	if (status == STATUS_OK)
		buf_append_str(ret, edit.data);
	rev_upload_free(upload, true);
	return status;
}

/* Few lengths, and those about which the text is taken in another step. */
static void
data_is_what_its_base64_says(void **state)
{
	AUTO(buf_release) struct buf data = BUF_INIT(MANY_BYTES), out = BUF_INIT(MANY_BYTES);
	const struct catalog_db described = { .kind = &rev_kind, .name = STR("db") };
	struct catalog_db *db = catalog_db_new(&described);
	struct rand_seq rand = { .state = 7 };
	static char bytes[3 * STEP_BYTES];
	struct err err;

	(void)state;
	assert_non_null(db);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)rand_seq_next(&rand);
	for (size_t n = 0; n < 40; n++) {
		size_t len = n < 20 ? n : STEP_BYTES * (1 + n % 2) + n - 30;

		put_data(&rand, str_of(bytes, len), &data);
		assert_int_equal(decode(db, buf_str(&data), &out, &err), STATUS_OK);
		if (!str_eq(buf_str(&out), str_of(bytes, len)))
			fail_msg("%zu bytes are others", len);
	}
	catalog_db_unref(db);
}

/* Each character of a text that is good changed, lost or behind the padding. */
static void
what_is_no_base64_is_refused(void **state)
{
	static const char *const texts[] = { "\"aGVs*G8=\"",     "\"aGVsbG8\"",
					     "\"aGVsbG8==\"",    "\"=\"",
					     "\"aGVsbG8=aGVs\"", "\"aGVsbG8=\\u0000\"",
					     "\"aGVsb\"",        "\"aGVsbG8-\"",
					     "\"aGVsbG9=\"" };
	AUTO(buf_release) struct buf data = BUF_INIT(MANY_BYTES), out = BUF_INIT(MANY_BYTES);
	const struct catalog_db described = { .kind = &rev_kind, .name = STR("db") };
	struct catalog_db *db = catalog_db_new(&described);
	struct err err;

	(void)state;
	assert_non_null(db);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (decode(db, str_from_cstr(texts[i]), &out, &err) != STATUS_INVALID)
			fail_msg("%s", texts[i]);
		assert_string_equal(err.text, "Invalid attachment data for a");
	}
	/* The padding ends one step, and the text goes on in the next. */
	buf_append_byte(&data, '"');
	while (data.len < STEP_CHARACTERS)
		buf_append_cstr(&data, "AAAA");
	data.len -= 3;
	buf_append_cstr(&data, "A==");
	assert_int_equal(data.len, STEP_CHARACTERS + 1);
	buf_append_byte(&data, '"');
	assert_int_equal(decode(db, buf_str(&data), &out, &err), STATUS_OK);
	data.len--;
	buf_append_cstr(&data, "AAAA\"");
	assert_int_equal(decode(db, buf_str(&data), &out, &err), STATUS_INVALID);
	catalog_db_unref(db);
}

/* zlib refuses to begin with a level that it does not have. */
static void
an_upload_that_cannot_begin_is_none(void **state)
{
	const struct catalog_db described = { .kind = &rev_kind, .name = STR("db") };
	struct rev_upload_options options = { .db = catalog_db_new(&described), .gzip_level = 10 };
	struct rev_upload *upload;

	(void)state;
	assert_non_null(options.db);
	assert_int_equal(rev_upload_new(&options, &upload), STATUS_NOMEM);
	options.gzip_level = 9;
	assert_int_equal(rev_upload_new(&options, &upload), STATUS_OK);
	rev_upload_free(upload, true);
	catalog_db_unref(options.db);
}

/* With memory for less than all, and whichever allocation fails, none is taken for another one. */
static void
short_memory_is_a_limit(void **state)
{
	static const char text[] = "{\"a\":{\"data\":\"\",\"content_type\":\"text/plain\"},"
				   "\"b\":{\"data\":\"\",\"content_type\":\"text/html\"}}";
	enum status status = STATUS_LIMIT;
	unsigned limits = 0;

	(void)state;
	for (size_t bytes = 0; status != STATUS_OK; bytes += 8) {
		struct arena *arena = arena_new(bytes);
		struct rev_att_json *atts;
		struct err err;
		size_t count;

		status = parse(arena, text, &atts, &count, &err);
		limits += status == STATUS_LIMIT;
		if (status == STATUS_OK)
			assert_int_equal(count, 2);
		else
			assert_int_equal(status, STATUS_LIMIT);
		arena_free(arena);
	}
	assert_true(limits > 0);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(members_say_of_which_kind_it_is),
		CASE(what_makes_no_sense_is_refused),
		CASE(a_type_has_bounded_bytes),
		CASE(members_have_their_limits),
		CASE(data_is_what_its_base64_says),
		CASE(what_is_no_base64_is_refused),
		CASE(an_upload_that_cannot_begin_is_none),
		CASE(short_memory_is_a_limit),
	};

	return cmocka_run_group_tests_name("att_json", tests, NULL, NULL);
}
