#include "doc_test.h"

#include "base/rand.h"
#include "kv/tuple.h"

struct leaf {
	struct str path;
	struct str value;
};

#define S(name) "\x02" name "\0"

static enum status
assemble(const struct leaf *leaves, size_t count, bool object, struct buf *out)
{
	struct doc_assembler a;
	enum status status = STATUS_OK;

	if (object)
		doc_assemble_init_object(&a, out, false);
	else
		doc_assemble_init(&a, out);
	for (size_t i = 0; i < count && status == STATUS_OK; i++)
		status = doc_assemble_leaf(&a, leaves[i].path, leaves[i].value);
	if (status == STATUS_OK)
		status = doc_assemble_end(&a);
	doc_assemble_release(&a);
	return status;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define ASSERT_ASSEMBLES(leaves, expected)                                                         \
	do {                                                                                       \
		struct buf out = BUF_INIT(TEST_MAX_BYTES);                                         \
		assert_int_equal(assemble(leaves, COUNT(leaves), false, &out), STATUS_OK);         \
		buf_append_byte(&out, '\0');                                                       \
		assert_string_equal(out.ptr, expected);                                            \
		buf_release(&out);                                                                 \
	} while (0)

static void
value_below_a_path_is_assembled_alone(void **state)
{
	const struct leaf scalar[] = { { STR(""), STR("\x15\x07") } };
	const struct leaf array[] = { { STR("\x14"), STR("\x27") },
				      { STR("\x15\x01" S("k")), STR("\x00") } };
	const struct leaf object[] = { { STR(S("a")), STR("\x05\x00") },
				       { STR(S("b") "\x14"), STR("\x05\x05\x00\x00") } };
	const struct leaf split[] = { { STR("\0\x14"), STR(S("ab\\")) },
				      { STR("\0\x15\x01"), STR(S("c\n")) } };

	(void)state;
	ASSERT_ASSEMBLES(scalar, "7");
	ASSERT_ASSEMBLES(array, "[true,{\"k\":null}]");
	ASSERT_ASSEMBLES(object, "{\"a\":[],\"b\":[{}]}");
	ASSERT_ASSEMBLES(split, "\"ab\\\\c\\n\"");
}

static void
whole_document_goes_on_behind_the_callers_members(void **state)
{
	const struct leaf leaves[] = { { STR(S("a")), STR("\x14") } };
	struct buf out = BUF_INIT(TEST_MAX_BYTES);
	struct doc_assembler a;

	(void)state;
	buf_append_cstr(&out, "{\"_id\":\"x\"");
	doc_assemble_init_object(&a, &out, true);
	assert_int_equal(doc_assemble_leaf(&a, leaves[0].path, leaves[0].value), STATUS_OK);
	assert_int_equal(doc_assemble_end(&a), STATUS_OK);
	doc_assemble_release(&a);
	assert_true(str_eq(buf_str(&out), STR("{\"_id\":\"x\",\"a\":0}")));
	buf_clear(&out);
	buf_append_cstr(&out, "{\"_id\":\"x\"");
	doc_assemble_init_object(&a, &out, true);
	assert_int_equal(doc_assemble_end(&a), STATUS_OK);
	doc_assemble_release(&a);
	assert_true(str_eq(buf_str(&out), STR("{\"_id\":\"x\"}")));
	buf_release(&out);
}

static void
value_without_leaves_is_not_found(void **state)
{
	struct buf out = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	assert_int_equal(assemble(NULL, 0, false, &out), STATUS_NOT_FOUND);
	assert_int_equal(out.len, 0);
	buf_release(&out);
}

static void
names_that_go_on_behind_a_nul_are_their_own_members(void **state)
{
	/* The first key is a prefix of the second one, and no parent of it. */
	const struct leaf leaves[] = { { STR("\x02"
					     "a\0"),
					 STR("\x14") },
				       { STR("\x02"
					     "a\0\xff\0"),
					 STR("\x15\x01") },
				       { STR("\x02"
					     "a\0\xff\0\xff"
					     "b\0"),
					 STR("\x15\x02") } };

	(void)state;
	ASSERT_ASSEMBLES(leaves, "{\"a\":0,\"a\\u0000\":1,\"a\\u0000\\u0000b\":2}");
}

static void
leaves_of_no_document_are_corrupt(void **state)
{
	static const struct {
		bool object;
		size_t count;
		struct leaf leaves[3];
	} cases[] = {
		/* out of order; twice; a leaf below a leaf; a leaf above one */
		{ true, 2, { { STR(S("b")), STR("\x14") }, { STR(S("a")), STR("\x14") } } },
		{ true, 2, { { STR(S("a")), STR("\x14") }, { STR(S("a")), STR("\x14") } } },
		{ true, 2, { { STR(S("a")), STR("\x14") }, { STR(S("a") S("b")), STR("\x14") } } },
		{ true, 2, { { STR(S("a") S("b")), STR("\x14") }, { STR(S("a")), STR("\x14") } } },
		{ false, 2, { { STR(""), STR("\x14") }, { STR(S("a")), STR("\x14") } } },
		{ false, 2, { { STR(""), STR("\x14") }, { STR(""), STR("\x14") } } },
		/* arrays that start behind 0, have gaps, are objects as well */
		{ true, 1, { { STR(S("a") "\x15\x01"), STR("\x14") } } },
		{ true,
		  2,
		  { { STR(S("a") "\x14"), STR("\x14") },
		    { STR(S("a") "\x15\x02"), STR("\x14") } } },
		{ true,
		  2,
		  { { STR(S("a") S("b")), STR("\x14") }, { STR(S("a") "\x14"), STR("\x14") } } },
		{ true, 1, { { STR("\x14"), STR("\x14") } } },
		{ true, 1, { { STR(S("a") "\x13\xfe"), STR("\x14") } } },
		{ true, 1, { { STR(""), STR("\x14") } } },
		/* path elements of other kinds, or none */
		{ true,
		  1,
		  { { STR("\x01"
			  "a\0"),
		      STR("\x14") } } },
		{ true, 1, { { STR(S("a") "\x27"), STR("\x14") } } },
		{ true,
		  1,
		  { { STR("\x02"
			  "a"),
		      STR("\x14") } } },
		{ true, 1, { { STR(S("\xff")), STR("\x14") } } },
		{ true, 1, { { STR(S("a") "\x05\x00"), STR("\x14") } } },
		/* values of other kinds, or none, or two */
		{ true, 1, { { STR(S("a")), STR("") } } },
		{ true, 1, { { STR(S("a")), STR("\x14\x14") } } },
		{ true,
		  1,
		  { { STR(S("a")), STR("\x01"
				       "a\0") } } },
		{ true, 1, { { STR(S("a")), STR("\x20\x3d\xd7\xff\xff") } } },
		{ true, 1, { { STR(S("a")), STR("\x21\xff\xf0\0\0\0\0\0\0") } } }, /* infinity */
		{ true, 1, { { STR(S("a")), STR("\x21\xff\xf8\0\0\0\0\0\0") } } }, /* no number */
		{ true, 1, { { STR(S("a")), STR("\xff") } } },
		{ true, 1, { { STR(S("a")), STR(S("\xc3")) } } },
		{ true, 1, { { STR(S("a")), STR("\x02x\0\xff\xc3\0") } } },
		{ true, 1, { { STR(S("a")), STR("\x02\xc3\0\xffx\0") } } },
		{ true, 1, { { STR(S("a")), STR("\x05\x14\x00") } } },
		{ true, 1, { { STR(S("a")), STR("\x05\x05\x00\x14\x00") } } },
		{ true, 1, { { STR(S("a")), STR("\x05\x21\xbf\xf0\0\0\0\0\0\0\x00") } } },
		{ true,
		  1,
		  { { STR(S("a")), STR("\x05\x21\xbf\xf0\0\0\0\0\0\0" S("1x") "\x00") } } },
		{ true, 1, { { STR(S("a")), STR("\x05\x21\xbf\xf0\0\0\0\0\0\0" S("") "\x00") } } },
		/*
		 * split strings that start late, have gaps or other values, or a whole beside them
		 */
		{ true, 1, { { STR(S("a") "\0\x15\x01"), STR(S("x")) } } },
		{ true, 1, { { STR(S("a") "\0"), STR(S("x")) } } },
		{ true, 1, { { STR(S("a") "\0\x14\x14"), STR(S("x")) } } },
		{ true, 1, { { STR(S("a") "\0\x14"), STR("\x14") } } },
		{ true,
		  2,
		  { { STR(S("a") "\0\x14"), STR(S("x")) },
		    { STR(S("a") "\0\x15\x02"), STR(S("x")) } } },
		{ true,
		  2,
		  { { STR(S("a") "\0\x14"), STR(S("x")) },
		    { STR(S("a") "\0\x15\x01"), STR("\x14") } } },
		{ true,
		  2,
		  { { STR(S("a") "\0\x14"), STR(S("x")) }, { STR(S("a") S("b")), STR("\x14") } } },
		{ true,
		  2,
		  { { STR(S("a")), STR(S("x")) }, { STR(S("a") "\0\x14"), STR(S("x")) } } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf out = BUF_INIT(TEST_MAX_BYTES);
		enum status status = assemble(cases[i].leaves, cases[i].count, cases[i].object,
					      &out);

		if (status != STATUS_CORRUPT)
			fail_msg("case %zu: %s, %.*s", i, status_name(status),
				 STR_ARG(buf_str(&out)));
		buf_release(&out);
	}
}

static void
paths_deeper_than_json_may_be_are_corrupt(void **state)
{
	char path[JSON_DEPTH_LIMIT + 1];
	struct leaf leaf = { { path, JSON_DEPTH_LIMIT }, STR("\x14") };
	struct buf out = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	memset(path, '\x14', sizeof(path));
	assert_int_equal(assemble(&leaf, 1, false, &out), STATUS_OK);
	leaf.path.len++;
	assert_int_equal(assemble(&leaf, 1, false, &out), STATUS_CORRUPT);
	buf_release(&out);
}

static void
full_output_is_told(void **state)
{
	const struct leaf leaves[] = { { STR(S("a")), STR(S("0123456789")) } };
	struct buf out = BUF_INIT(8);

	(void)state;
	assert_int_equal(assemble(leaves, 1, false, &out), STATUS_LIMIT);
	buf_release(&out);
}

/* Leaves of a real document with bytes changed at random: corrupt, or JSON. */
static void
damaged_leaves_never_make_invalid_json(void **state)
{
	struct str text = STR(
		"{\"a\":[1,{\"b\":\"text\",\"c\":[]},2.5],\"d\":{\"e\":{\"f\":1.10,\"g\":{}}},"
		"\"h\":[[null,true],[\"\\u0000x\"]]}");
	struct rand_seq r = { 17 };
	size_t corrupt = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct arena *arena = arena_new(TEST_MAX_BYTES);
		struct buf out = BUF_INIT(TEST_MAX_BYTES);
		struct doc doc = explode_or_fail(text, arena);
		struct leaf leaves[32];
		struct doc again;
		enum status status;

		for (size_t j = 0; j < doc.count; j++)
			leaves[j] = (struct leaf){ doc.leaves[j].key, doc.leaves[j].value };
		for (size_t n = 1 + rand_seq_below(&r, 3); n; n--) {
			struct leaf *leaf = &leaves[rand_seq_below(&r, doc.count)];
			struct str *s = rand_seq_below(&r, 2) ? &leaf->path : &leaf->value;
			char *bytes = arena_bytes(arena, s->len);

			assert_non_null(bytes);
			memcpy(bytes, s->ptr, s->len);
			if (s->len)
				bytes[rand_seq_below(&r, s->len)] = (char)rand_seq_next(&r);
			*s = str_of(bytes, s->len - (s->len && !rand_seq_below(&r, 8)));
		}
		buf_append_byte(&out, '{');
		status = assemble(leaves, doc.count, true, &out);
		if (status == STATUS_OK)
			assert_int_equal(doc_explode_text(buf_str(&out), arena, &test_limits, 0,
							  &again, NULL),
					 STATUS_OK);
		else
			assert_int_equal(status, STATUS_CORRUPT);
		corrupt += status == STATUS_CORRUPT;
		buf_release(&out);
		arena_free(arena);
	}
	assert_true(corrupt > 5000 && corrupt < 20000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value_below_a_path_is_assembled_alone),
		cmocka_unit_test(whole_document_goes_on_behind_the_callers_members),
		cmocka_unit_test(value_without_leaves_is_not_found),
		cmocka_unit_test(names_that_go_on_behind_a_nul_are_their_own_members),
		cmocka_unit_test(leaves_of_no_document_are_corrupt),
		cmocka_unit_test(paths_deeper_than_json_may_be_are_corrupt),
		cmocka_unit_test(full_output_is_told),
		cmocka_unit_test(damaged_leaves_never_make_invalid_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
