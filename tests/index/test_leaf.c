/*
 * Values as they are read from leaves: of each kind, damaged, with children, as numbers whose
 * remainder is asked for, and with memory that ends.
 */
#include "common.h"

enum {
	ROOM_BYTES = 64 << 10,
	MEMBERS = 40,
	LONG_TEXT = 600, /* more bytes than are turned into UTF-16 without an allocation */
};

static struct kv_pair leaf;

/* A value of one leaf, which has what is in the buffer. */
static struct leaf_value
value_in(const struct buf *value)
{
	leaf = (struct kv_pair){ { "", 0 }, buf_dup(value, arena) };
	return (struct leaf_value){ &leaf, 1, 0 };
}

/* ---- Kinds ---- */

static void
put_spelled(struct buf *ret)
{
	tuple_open(ret);
	tuple_put_double(ret, 1.5);
	tuple_put_str(ret, STR("1.50"));
	tuple_close(ret);
}

static void
put_empty_array(struct buf *ret)
{
	tuple_open(ret);
	tuple_close(ret);
}

static void
put_empty_object(struct buf *ret)
{
	tuple_open(ret);
	tuple_open(ret);
	tuple_close(ret);
	tuple_close(ret);
}

static void
put_false(struct buf *ret)
{
	tuple_put_bool(ret, false);
}

static void
put_true(struct buf *ret)
{
	tuple_put_bool(ret, true);
}

static void
put_number(struct buf *ret)
{
	tuple_put_u64(ret, 7);
}

static void
put_double(struct buf *ret)
{
	tuple_put_double(ret, 1.5);
}

static void
put_string(struct buf *ret)
{
	tuple_put_str(ret, STR("text"));
}

static void
put_escaped(struct buf *ret)
{
	tuple_put_str(ret, STR("te\0xt"));
}

static const struct {
	void (*put)(struct buf *ret);
	enum leaf_kind kind;
} kinds[] = {
	{ tuple_put_null, LEAF_NULL },   { put_false, LEAF_FALSE },
	{ put_true, LEAF_TRUE },         { put_number, LEAF_NUMBER },
	{ put_double, LEAF_NUMBER },     { put_spelled, LEAF_NUMBER },
	{ put_string, LEAF_STRING },     { put_escaped, LEAF_STRING },
	{ put_empty_array, LEAF_ARRAY }, { put_empty_object, LEAF_OBJECT },
};

static void
a_leaf_has_one_element_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(1024);
		enum leaf_kind kind;
		struct leaf_value v;
		enum status status;
		struct str text;

		kinds[i].put(&value);
		v = value_in(&value);
		assert_int_equal(leaf_kind(&v, &kind), STATUS_OK);
		assert_int_equal(kind, kinds[i].kind);
		assert_false(leaf_has_children(&v));
		status = leaf_text(&v, &work, &text);
		if (status != (kind == LEAF_STRING ? STATUS_OK : STATUS_CORRUPT))
			fail_msg("%zu: %s", i, status_name(status));
		tuple_put_null(&value);
		v = value_in(&value);
		if (leaf_kind(&v, &kind) != STATUS_CORRUPT ||
		    leaf_text(&v, &work, &text) != STATUS_CORRUPT)
			fail_msg("%zu with more behind it", i);
		value.len -= 2;
		v = value_in(&value);
		assert_int_equal(leaf_text(&v, &work, &text), STATUS_CORRUPT);
	}
}

static void
what_no_document_has_is_corrupt(void **state)
{
	AUTO(buf_release) struct buf bytes = BUF_INIT(1024);
	AUTO(buf_release) struct buf none = BUF_INIT(1024);
	struct leaf_value v, empty = { 0 };
	enum leaf_kind kind;
	struct str text;

	(void)state;
	tuple_put_bytes(&bytes, STR("bytes"));
	v = value_in(&bytes);
	assert_int_equal(leaf_kind(&v, &kind), STATUS_CORRUPT);
	assert_int_equal(leaf_text(&v, &work, &text), STATUS_CORRUPT);
	v = value_in(&none);
	assert_int_equal(leaf_kind(&v, &kind), STATUS_CORRUPT);
	/* No leaf at all is a document without members. */
	assert_int_equal(leaf_kind(&empty, &kind), STATUS_OK);
	assert_int_equal(kind, LEAF_OBJECT);
	assert_int_equal(leaf_text(&empty, &work, &text), STATUS_CORRUPT);
	assert_false(leaf_has_children(&empty));
}

/* ---- Children ---- */

static void
each_child_is_found_and_no_other(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(1 << 16);
	struct leaf_value v, child;
	struct leaf_iter iter;
	struct tuple_elem key;
	size_t seen = 0;
	uint64_t count;

	(void)state;
	/* Members of one leaf, of two and of three, and an array as long. */
	for (int array = 0; array < 2; array++) {
		buf_clear(&text);
		buf_append_byte(&text, array ? '[' : '{');
		for (int i = 0; i < MEMBERS; i++) {
			static const char *const values[] = { "1", "[1,2]",
							      "{\"x\":1,\"y\":2,\"z\":3}" };

			buf_append_cstr(&text, i ? "," : "");
			if (!array)
				buf_printf(&text, "\"m%02d\":", i);
			buf_append_cstr(&text, values[i % 3]);
		}
		buf_append_byte(&text, array ? ']' : '}');
		buf_append_byte(&text, 0);
		assert_int_equal(buf_status(&text), STATUS_OK);
		v = value_of(text.ptr);
		iter = (struct leaf_iter){ .rest = v };
		for (seen = 0; leaf_next(&iter, &key, &child) == STATUS_OK; seen++) {
			struct leaf_value found;

			assert_int_equal(child.count, seen % 3 + 1);
			assert_true(leaf_find(&v, key.encoding, &found));
			assert_ptr_equal(found.leaves, child.leaves);
			assert_int_equal(found.count, child.count);
			assert_int_equal(found.at, child.at);
			/* In front of it and behind it there is nothing. */
			assert_false(leaf_find(
				&v, arena_printf(arena, "%.*s\x01", STR_ARG(key.encoding)),
				&found));
		}
		assert_int_equal(seen, MEMBERS);
		if (!array)
			continue;
		assert_int_equal(leaf_array_count(&v, &count), STATUS_OK);
		assert_int_equal(count, MEMBERS);
	}
	v = value_of("[]");
	assert_int_equal(leaf_array_count(&v, &count), STATUS_OK);
	assert_int_equal(count, 0);
	iter = (struct leaf_iter){ .rest = v };
	assert_int_equal(leaf_next(&iter, &key, &child), STATUS_NOT_FOUND);
}

/* The name "a" is no child of "a\0b", whose encoding begins with that of the other one. */
static void
a_name_that_begins_another_one_is_not_that(void **state)
{
	struct leaf_value v = value_of("{\"a\":1,\"a\\u0000b\":{\"c\":2,\"d\":3}}"), child;
	AUTO(buf_release) struct buf short_name = BUF_INIT(64);
	AUTO(buf_release) struct buf long_name = BUF_INIT(64);
	struct leaf_iter iter = { .rest = v };
	struct tuple_elem key;

	(void)state;
	tuple_put_str(&short_name, STR("a"));
	tuple_put_str(&long_name, STR("a\0b"));
	assert_true(leaf_find(&v, buf_str(&short_name), &child));
	assert_int_equal(child.count, 1);
	assert_true(leaf_find(&v, buf_str(&long_name), &child));
	assert_int_equal(child.count, 2);
	assert_int_equal(leaf_next(&iter, &key, &child), STATUS_OK);
	assert_int_equal(child.count, 1);
	assert_int_equal(leaf_next(&iter, &key, &child), STATUS_OK);
	assert_int_equal(child.count, 2);
	v = value_of("{\"a\\u0000b\":1}");
	assert_false(leaf_find(&v, buf_str(&short_name), &child));
}

/* Whatever lies behind a path in memory: here, what an escaped NUL would go on with. */
static void
a_path_ends_where_its_key_does(void **state)
{
	AUTO(buf_release) struct buf name = BUF_INIT(64);
	AUTO(buf_release) struct buf key = BUF_INIT(64);
	AUTO(buf_release) struct buf value = BUF_INIT(64);
	struct leaf_value v, child;

	(void)state;
	tuple_put_str(&name, STR("a"));
	buf_append_buf(&key, &name);
	buf_append_byte(&key, 0xff);
	tuple_put_u64(&value, 7);
	v = value_in(&value);
	leaf.key = str_of(key.ptr, name.len);
	assert_true(leaf_find(&v, buf_str(&name), &child));
	assert_int_equal(child.count, 1);
	/* And a key that does go on so is another one's. */
	leaf.key = buf_str(&key);
	assert_false(leaf_find(&v, buf_str(&name), &child));
}

/* A path goes on with a name or a position. */
static void
a_child_under_anything_else_is_corrupt(void **state)
{
	static const struct {
		int64_t position;
		bool as_int, as_bytes;
		enum status status;
	} cases[] = {
		{ 0, true, false, STATUS_OK },       { 7, true, false, STATUS_OK },
		{ -1, true, false, STATUS_CORRUPT }, { 0, false, true, STATUS_CORRUPT },
		{ 0, false, false, STATUS_OK },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf path = BUF_INIT(64);
		AUTO(buf_release) struct buf value = BUF_INIT(64);
		struct leaf_value v, child;
		struct leaf_iter iter;
		struct tuple_elem key;

		if (cases[i].as_int)
			tuple_put_i64(&path, cases[i].position);
		else if (cases[i].as_bytes)
			tuple_put_bytes(&path, STR("a"));
		else
			tuple_put_str(&path, STR("a"));
		tuple_put_null(&value);
		v = value_in(&value);
		leaf.key = buf_str(&path);
		iter = (struct leaf_iter){ .rest = v };
		if (leaf_next(&iter, &key, &child) != cases[i].status)
			fail_msg("%zu", i);
	}
}

/* ---- Numbers ---- */

static void
a_remainder_has_the_sign_of_the_number(void **state)
{
	static const struct {
		const char *number;
		int64_t divisor, rest;
		bool is_integer;
	} cases[] = {
		{ "7", 3, 1, true },
		{ "-7", 3, -1, true },
		{ "7", -3, 1, true },
		{ "-7", -3, -1, true },
		{ "0", 5, 0, true },
		{ "-0", 5, 0, true },
		{ "7", INT64_MIN, 7, true },
		{ "9223372036854775808", INT64_MIN, 0, true },
		{ "18446744073709551615", 10, 5, true },
		{ "18446744073709551616", 10, 6, true },
		{ "-18446744073709551616", 10, -6, true },
		{ "18446744073709551617", -1000, 617, true },
		{ "1.0", 3, 0, false },
		{ "7.5", 3, 0, false },
	};
	static char digits[800];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct leaf_value v = value_of(cases[i].number);
		struct leaf_number n;
		bool is_integer;
		int64_t rest = 0;

		assert_int_equal(leaf_number(&v, &n), STATUS_OK);
		assert_int_equal(leaf_number_rem(&n, cases[i].divisor, &work, &is_integer, &rest),
				 STATUS_OK);
		if (is_integer != cases[i].is_integer)
			fail_msg("%s", cases[i].number);
		if (rest != cases[i].rest)
			fail_msg("%s: %lld", cases[i].number, (long long)rest);
	}
	/* Digits that enter in groups of 18, of each length of the last group. */
	for (int zeros = 640; zeros < 680; zeros++) {
		struct leaf_number n;
		struct leaf_value v;
		bool is_integer;
		int64_t rest;

		(void)snprintf(digits, sizeof(digits), "-1%0*d", zeros, 12345);
		v = value_of(digits);
		assert_int_equal(leaf_number(&v, &n), STATUS_OK);
		assert_int_equal(n.form, LEAF_NUMBER_HUGE);
		assert_int_equal(leaf_number_rem(&n, 100000, &work, &is_integer, &rest), STATUS_OK);
		assert_true(is_integer);
		assert_int_equal(rest, -12345);
		/* All powers of ten are 1 more than a number of nines. */
		assert_int_equal(leaf_number_rem(&n, 9, &work, &is_integer, &rest), STATUS_OK);
		assert_int_equal(rest, -((1 + 12345) % 9));
	}
}

/* ---- Memory that ends ---- */

static enum status
string_in(struct index_work *w)
{
	struct leaf_value v;
	enum status status = leaf_of_string(STR("some words"), w->arena, &v);
	struct str text;

	if (status != STATUS_OK)
		return status;
	assert_int_equal(leaf_text(&v, &work, &text), STATUS_OK);
	assert_true(str_eq(text, STR("some words")));
	return STATUS_OK;
}

static enum status
bool_in(struct index_work *w)
{
	enum leaf_kind kind;
	struct leaf_value v;
	enum status status = leaf_of_bool(true, w->arena, &v);

	if (status != STATUS_OK)
		return status;
	assert_int_equal(leaf_kind(&v, &kind), STATUS_OK);
	assert_int_equal(kind, LEAF_TRUE);
	return STATUS_OK;
}

static enum status
parse_in(struct index_work *w)
{
	struct leaf_value v;
	enum status status = leaf_parse(STR("{\"a\":[1,\"x\",{}],\"b\":2}"), w->arena, &v, NULL);

	if (status == STATUS_OK)
		assert_int_equal(v.count, 4);
	return status;
}

static enum status
text_in(struct index_work *w)
{
	struct leaf_value v = value_of("\"some\\u0000words\"");
	struct str text;
	enum status status = leaf_text(&v, w, &text);

	if (status == STATUS_OK)
		assert_true(str_eq(text, STR("some\0words")));
	return status;
}

static enum status
compare_in(struct index_work *w)
{
	struct leaf_value a = value_of("{\"a\\u0000b\":\"x\\u0000y\"}");
	struct leaf_value b = value_of("{\"a\\u0000b\":\"x\\u0000z\"}");
	int c = 0;
	enum status status = collate_compare(&a, &b, w, &c);

	if (status == STATUS_OK)
		assert_true(c < 0);
	return status;
}

static enum status
sort_key_in(struct index_work *w)
{
	AUTO(buf_release) struct buf key = BUF_INIT(1 << 16);
	AUTO(buf_release) struct buf text = BUF_INIT(1 << 16);
	enum status status;

	for (int i = 0; i < LONG_TEXT; i++)
		buf_append_byte(&text, (uint8_t)('a' + i % 26));
	status = collate_sort_key(buf_str(&text), 1 << 15, w, &key);
	if (status == STATUS_OK)
		assert_true(key.len > LONG_TEXT);
	return status;
}

static void
what_has_no_room_is_not_read(void **state)
{
	static enum status (*const calls[])(struct index_work * w) = { string_in,  bool_in,
								       parse_in,   text_in,
								       compare_in, sort_key_in };

	(void)state;
	for (size_t i = 0; i < COUNT(calls); i++) {
		struct arena_mark mark = arena_mark(arena);
		enum status status = STATUS_LIMIT;

		for (size_t bytes = 0; status != STATUS_OK; bytes += ROOM_STEP) {
			struct index_work small = { .arena = arena_new(bytes) };

			status = calls[i](&small);
			if (status != (arena_is_full(small.arena) ? STATUS_LIMIT : STATUS_OK))
				fail_msg("%zu of %zu bytes: %s", i, bytes, status_name(status));
			arena_free(small.arena);
			arena_reset(arena, mark);
			assert_true(bytes < ROOM_BYTES);
		}
	}
}

/* A text that fits into the short room and one that does not have the same key in front. */
static void
sort_keys_of_long_texts_begin_like_those_of_short_ones(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(1 << 16);

	(void)state;
	for (int i = 0; i < LONG_TEXT; i++)
		buf_append_byte(&text, (uint8_t)('a' + i % 26));
	for (size_t len = 500; len < 530; len++) {
		AUTO(buf_release) struct buf one = BUF_INIT(1 << 16);
		AUTO(buf_release) struct buf other = BUF_INIT(1 << 16);

		assert_int_equal(collate_sort_key(str_of(text.ptr, len), 400, &work, &one),
				 STATUS_OK);
		assert_int_equal(collate_sort_key(buf_str(&text), 400, &work, &other), STATUS_OK);
		assert_int_equal(one.len, 400);
		assert_memory_equal(one.ptr, other.ptr, 400);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_leaf_has_one_element_and_no_more),
		TEST(what_no_document_has_is_corrupt),
		TEST(each_child_is_found_and_no_other),
		TEST(a_name_that_begins_another_one_is_not_that),
		TEST(a_path_ends_where_its_key_does),
		TEST(a_child_under_anything_else_is_corrupt),
		TEST(a_remainder_has_the_sign_of_the_number),
		TEST(what_has_no_room_is_not_read),
		TEST(sort_keys_of_long_texts_begin_like_those_of_short_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
