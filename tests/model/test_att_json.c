/* Attachments as documents have them in JSON: what is taken of their members, and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/revisioned/att_json.h"

enum {
	ARENA_BYTES = 1 << 20,
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
		CASE(short_memory_is_a_limit),
	};

	return cmocka_run_group_tests_name("att_json", tests, NULL, NULL);
}
