/* The order of JSON values. */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"
#include "index/leaf.h"
#include "index/versions.h"
#include "kv/tuple.h"
#include "loop/wait.h"

enum {
	TOTAL_VALUES = 120, /* of which each two and each three are compared */
};

static int
compare(const char *a, const char *b)
{
	struct leaf_value va = value_of(a);
	struct leaf_value vb = value_of(b);
	int c, back;

	assert_int_equal(collate_compare(&va, &vb, &work, &c), STATUS_OK);
	assert_int_equal(collate_compare(&vb, &va, &work, &back), STATUS_OK);
	if (c != -back)
		fail_msg("%s against %s is %d, the other way round %d", a, b, c, back);
	return c;
}

/* Each is less than the next, and so than all that follow. */
static void
assert_ascending(const char *const *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			int c = compare(values[i], values[j]);

			if (c != (i > j) - (i < j))
				fail_msg("%s against %s is %d", values[i], values[j], c);
		}
	}
}

static void
kinds_come_in_the_order_of_views(void **state)
{
	static const char *const values[] = {
		"null",
		"false",
		"true",
		"-1e300",
		"-1",
		"0",
		"1",
		"1.5",
		"1e300",
		"\"\"",
		"\"a\"",
		"\"b\"",
		"[]",
		"[null]",
		"[1]",
		"[1,1]",
		"[2]",
		"[[]]",
		"[[1]]",
		"[[1,2]]",
		"[[1,2],0]",
		"[[1,2],0,{}]",
		"[[2]]",
		"[{}]",
		"{}",
		"{\"a\":null}",
		"{\"a\":1}",
		"{\"a\":1,\"b\":1}",
		"{\"a\":2}",
		"{\"a\":[]}",
		"{\"a\":{}}",
		"{\"a\":{\"x\":1}}",
		"{\"a\":{\"x\":1,\"y\":1}}",
		"{\"a\":{\"x\":1,\"y\":1},\"b\":0}",
		"{\"b\":0}",
	};

	(void)state;
	assert_ascending(values, COUNT(values));
}

/* As people would have them: marks and capitals count only among what is otherwise the same. */
static void
strings_come_in_the_order_of_people(void **state)
{
	static const char *const values[] = {
		"\"\"",        "\"_\"",       "\"-\"",  "\"@\"", "\"`\"",  "\"1\"",
		"\"10\"",      "\"2\"",       "\"a\"",  "\"A\"", "\"aa\"", "\"ae\"",
		"\"\\u00e6\"", "\"az\"",      "\"b\"",  "\"B\"", "\"ba\"", "\"bb\"",
		"\"c\"",       "\"\\u010d\"", "\"cz\"", "\"d\"",
	};

	(void)state;
	assert_ascending(values, COUNT(values));
	/* Different, and equal in order: a control character does not count. */
	assert_int_equal(compare("\"a\"", "\"a\\u0000\""), 0);
	assert_int_equal(compare("{\"a\":1}", "{\"a\\u0000\":1}"), 0);
	assert_int_equal(compare("{\"a\":1}", "{\"a\\u0000\":2}"), -1);
}

static void
numbers_compare_exactly(void **state)
{
	static char digits[3][800];
	const char *values[] = {
		NULL,     /* -10^699 */
		"-1e309", /* the greatest double that there is, as 1e400 is */
		"-1e308",
		"-18446744073709551617",
		"-18446744073709551616",
		"-9223372036854775809",
		"-9223372036854775808",
		"-9007199254740993",
		"-9007199254740992.0",
		"-9007199254740991",
		"-0.5",
		"0",
		"5e-324",
		"0.1",
		"1",
		"1.0000000000000002",
		"2",
		"9007199254740991",
		"9007199254740992.0",
		"9007199254740993",
		"9223372036854775807",
		"9223372036854775808.0",
		"9223372036854775809",
		"18446744073709551615",
		"18446744073709551616",
		"18446744073709551617",
		"36893488147419103232.0",
		"36893488147419103233",
		"1e35", /* the double nearest to it, which is less */
		"99999999999999999999999999999999999",
		"100000000000000000000000000000000000000",
		"1e300",
		"1e308",
		NULL, /* 10^650 */
		NULL, /* 10^699 */
	};

	(void)state;
	(void)snprintf(digits[0], sizeof(digits[0]), "-1%0699d", 0);
	(void)snprintf(digits[1], sizeof(digits[1]), "1%0650d", 0);
	(void)snprintf(digits[2], sizeof(digits[2]), "1%0699d", 0);
	values[0] = digits[0];
	values[33] = digits[1];
	values[34] = digits[2];
	assert_ascending(values, COUNT(values));
	assert_int_equal(compare("1", "1.0"), 0);
	assert_int_equal(compare("1.0", "1.00"), 0);
	assert_int_equal(compare("100", "1e2"), 0);
	assert_int_equal(compare("0", "-0"), 0);
	assert_int_equal(compare("-0.0", "0"), 0);
	assert_int_equal(compare("1e400", "1e999"), 0);
	assert_int_equal(compare("18446744073709551616", "18446744073709551616.0"), 0);
}

static void
same_is_more_than_equal(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{ "1", "1", true },
		{ "1", "1.0", false },
		{ "1.1", "1.10", true },
		{ "100.0", "1e2", true },
		{ "\"a\"", "\"a\"", true },
		{ "\"a\"", "\"a\\u0000\"", false },
		{ "{\"a\":1,\"b\":[1.0]}", "{\"b\":[1.00],\"a\":1}", true },
		{ "{\"a\":1}", "{\"b\":1}", false },
		{ "[1,2]", "[1]", false },
		{ "[]", "{}", false },
		{ "[]", "[]", true },
		{ "true", "false", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct leaf_value a = value_of(cases[i].a);
		struct leaf_value b = value_of(cases[i].b);
		bool same;

		assert_int_equal(collate_same(&a, &b, &work, &same), STATUS_OK);
		if (same != cases[i].same)
			fail_msg("%s and %s", cases[i].a, cases[i].b);
	}
}

/* [a long string and then `end`, `next`] */
static struct leaf_value
long_list(char end, int next)
{
	struct buf text = BUF_INIT(1 << 20);
	struct leaf_value v;

	buf_append_cstr(&text, "[\"");
	for (int i = 0; i < 250000; i++)
		buf_append_byte(&text, 'x');
	buf_printf(&text, "%c\",%d]", end, next);
	buf_append_byte(&text, '\0');
	assert_int_equal(buf_status(&text), STATUS_OK);
	v = value_of(text.ptr);
	buf_release(&text);
	assert_true(v.count > 2);
	return v;
}

static int
compare_long(char end_a, int next_a, char end_b, int next_b)
{
	struct leaf_value a = long_list(end_a, next_a);
	struct leaf_value b = long_list(end_b, next_b);
	int c;

	assert_int_equal(collate_compare(&a, &b, &work, &c), STATUS_OK);
	return c;
}

/* A string that is split over leaves is one string. */
static void
long_strings_are_put_together(void **state)
{
	(void)state;
	assert_int_equal(compare_long('x', 1, 'x', 1), 0);
	assert_int_equal(compare_long('x', 1, 'y', 0), -1);
	assert_int_equal(compare_long('x', 2, 'x', 1), 1);
}

/* ---- Properties ---- */

static struct rand_seq sequence = { 20 };

static void
append_random(struct buf *out, unsigned depth)
{
	static const char *const scalars[] = { "null",
					       "true",
					       "false",
					       "0",
					       "1",
					       "-1",
					       "1.0",
					       "2.5",
					       "1e2",
					       "\"\"",
					       "\"a\"",
					       "\"A\"",
					       "\"b\"",
					       "\"\\u0000\"",
					       "[]",
					       "{}",
					       "\"\\u00e4\"",
					       "-0",
					       "18446744073709551616",
					       "1e20" };
	static const char *const names[] = { "a", "b", "A", "a\\u0000", "" };
	uint64_t what = rand_seq_below(&sequence, 8);
	uint64_t n = rand_seq_below(&sequence, 3) + 1;

	if (depth == 0 || what < 3) {
		buf_append_cstr(out, scalars[rand_seq_below(&sequence, COUNT(scalars))]);
		return;
	}
	buf_append_byte(out, what < 6 ? '[' : '{');
	for (uint64_t i = 0; i < n; i++) {
		if (i)
			buf_append_byte(out, ',');
		if (what >= 6)
			buf_printf(out, "\"%s\":", names[rand_seq_below(&sequence, COUNT(names))]);
		append_random(out, depth - 1);
	}
	buf_append_byte(out, what < 6 ? ']' : '}');
}

static int
compare_exactly(const char *x, const char *y)
{
	struct leaf_value a = value_of(x), b = value_of(y);
	int order = 0;

	assert_int_equal(collate_exactly(&a, &b, &work, &order), STATUS_OK);
	return (order > 0) - (order < 0);
}

/* Whichever two are compared, in whichever direction, and whichever three. */
static void
assert_total(int (*compares)(const char *x, const char *y), const char *const *values, size_t count)
{
	static int order[TOTAL_VALUES][TOTAL_VALUES];

	assert_true(count <= TOTAL_VALUES);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			order[i][j] = compares(values[i], values[j]);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(order[i][i], 0);
		for (size_t j = 0; j < count; j++) {
			if (order[i][j] != -order[j][i])
				fail_msg("%s, %s", values[i], values[j]);
			for (size_t k = 0; k < count; k++) {
				if (order[i][j] <= 0 && order[j][k] <= 0 && order[i][k] > 0)
					fail_msg("%s, %s, %s", values[i], values[j], values[k]);
			}
		}
	}
}

static void
order_is_total(void **state)
{
	static const char *const kinds[] = {
		"null",         "true",   "false",     "0",           "1",
		"1.0",          "1.1",    "1.10",      "-2",          "1e400",
		"100",          "1e2",    "\"\"",      "\"a\"",       "\"1\"",
		"\"a\\u0000\"", "[]",     "{}",        "[1]",         "[1.0]",
		"[\"a\"]",      "[null]", "{\"a\":1}", "{\"a\":1.0}", "{\"a\":\"x\"}",
	};
	const char *values[TOTAL_VALUES];

	(void)state;
	assert_total(compare, kinds, COUNT(kinds));
	assert_total(compare_exactly, kinds, COUNT(kinds));
	for (size_t i = 0; i < TOTAL_VALUES; i++) {
		struct buf text = BUF_INIT(1 << 16);

		append_random(&text, 3);
		values[i] = arena_dup(arena, buf_str(&text)).ptr;
		buf_release(&text);
		assert_non_null(values[i]);
	}
	assert_total(compare, values, TOTAL_VALUES);
	assert_total(compare_exactly, values, TOTAL_VALUES);
}

static void
what_is_no_number_is_corrupt(void **state)
{
	static const char *const others[] = { "{\"a\":1}", "[1]", "\"1\"", "true", "null" };
	AUTO(buf_release) struct buf value = BUF_INIT(64);
	struct leaf_value v = { 0 };
	struct kv_pair leaf = { .key = STR("") };
	struct leaf_number n;

	(void)state;
	assert_int_equal(leaf_number(&v, &n), STATUS_CORRUPT); /* no leaf at all */
	for (size_t i = 0; i < COUNT(others); i++) {
		v = value_of(others[i]);
		assert_int_equal(leaf_number(&v, &n), STATUS_CORRUPT);
	}
	tuple_put_u64(&value, 7);
	leaf.value = buf_str(&value);
	v = (struct leaf_value){ .leaves = &leaf, .count = 1 };
	assert_int_equal(leaf_number(&v, &n), STATUS_OK);
	assert_int_equal(n.magnitude, 7);
	v.at = 1; /* the leaf is of something else */
	assert_int_equal(leaf_number(&v, &n), STATUS_CORRUPT);
	v.at = 0;
	tuple_put_u64(&value, 8);
	leaf.value = buf_str(&value);
	assert_int_equal(leaf_number(&v, &n), STATUS_CORRUPT); /* two of them */
}

/* A number whose spelling was kept: a double, and then a text that is a number. */
static void
a_spelled_number_is_a_double_and_its_text(void **state)
{
	static const struct {
		double number;
		struct str text;
		bool as_bytes;
		enum status status;
	} cases[] = {
		{ 1.5, STR("1.50"), false, STATUS_OK },
		{ -1e300, STR("-1000"), false, STATUS_OK },
		{ 1.5, STR("1.50"), true, STATUS_CORRUPT },
		{ 1.5, STR(""), false, STATUS_CORRUPT },
		{ 1.5, STR("1.50x"), false, STATUS_CORRUPT },
		{ (double)INFINITY, STR("1"), false, STATUS_CORRUPT },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(buf_release) struct buf value = BUF_INIT(64);
		struct kv_pair leaf = { .key = STR("") };
		const struct leaf_value v = { .leaves = &leaf, .count = 1 };
		struct leaf_number n;

		tuple_open(&value);
		tuple_put_double(&value, cases[i].number);
		if (cases[i].as_bytes)
			tuple_put_bytes(&value, cases[i].text);
		else
			tuple_put_str(&value, cases[i].text);
		tuple_close(&value);
		leaf.value = buf_str(&value);
		if (leaf_number(&v, &n) != cases[i].status)
			fail_msg("case %zu", i);
	}
}

/* ---- What is read of a number ---- */

/* A value at the end of what can be read. Unmapped again by the next call; NULL: by this one. */
static struct str
at_the_end(struct str value)
{
	static char *pages;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (pages)
		assert_int_equal(munmap(pages, 2 * page), 0);
	pages = NULL;
	if (!value.ptr)
		return value;
	assert_true(value.len <= page);
	pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	memcpy(pages + page - value.len, value.ptr, value.len);
	return str_of(pages + page - value.len, value.len);
}

/* One that reads behind it ends the program. */
static void
numbers_are_read_to_their_end_and_no_further(void **state)
{
	static const char *const numbers[] = {
		"0",
		"-7",
		"1.5",
		"1.50",
		"-1e300",
		"18446744073709551615",
		"18446744073709551616",
		"-18446744073709551616",
		"-340282366920938463463374607431768211456",
		"340282366920938463463374607431768211457",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct leaf_value at_end = value_of(numbers[i]);
		struct kv_pair leaf = at_end.leaves[0];

		assert_int_equal(at_end.count, 1);
		leaf.value = at_the_end(leaf.value);
		at_end.leaves = &leaf;
		for (size_t j = 0; j < COUNT(numbers); j++) {
			struct leaf_value other = value_of(numbers[j]);
			int expected, c;

			expected = compare(numbers[i], numbers[j]);
			assert_int_equal(collate_compare(&at_end, &other, &work, &c), STATUS_OK);
			assert_int_equal(c, expected);
			assert_int_equal(collate_compare(&other, &at_end, &work, &c), STATUS_OK);
			assert_int_equal(c, -expected);
		}
	}
	(void)at_the_end((struct str){ NULL, 0 });
}

/* ---- Long texts ---- */

static unsigned offloads;

void __real_wait_offload(void (*fn)(void *arg), void *arg);
void __wrap_wait_offload(void (*fn)(void *arg), void *arg);

void
__wrap_wait_offload(void (*fn)(void *arg), void *arg)
{
	offloads++;
	__real_wait_offload(fn, arg);
}

static struct str
text_of(size_t bytes, char end)
{
	char *text = arena_bytes(arena, bytes);

	assert_non_null(text);
	memset(text, 'x', bytes);
	text[bytes - 1] = end;
	return str_of(text, bytes);
}

/* The shorter one of two decides, whichever it is. */
static void
texts_beyond_a_length_are_left_to_the_pool(void **state)
{
	(void)state;
	for (size_t bytes = COLLATE_OFFLOAD_BYTES - 1; bytes <= COLLATE_OFFLOAD_BYTES + 1;
	     bytes++) {
		const unsigned expected = bytes > COLLATE_OFFLOAD_BYTES;
		AUTO(buf_release) struct buf key = BUF_INIT(8 * COLLATE_OFFLOAD_BYTES);
		struct str shorter = text_of(bytes, 'a');
		struct str longer = text_of(2 * COLLATE_OFFLOAD_BYTES, 'b');
		int c;

		offloads = 0;
		assert_int_equal(collate_strings(shorter, text_of(bytes, 'b'), &work, &c),
				 STATUS_OK);
		assert_int_equal(c, -1);
		assert_int_equal(offloads, expected);
		assert_int_equal(collate_strings(shorter, longer, &work, &c), STATUS_OK);
		assert_int_equal(c, -1);
		assert_int_equal(offloads, 2 * expected);
		assert_int_equal(collate_strings(longer, shorter, &work, &c), STATUS_OK);
		assert_int_equal(c, 1);
		assert_int_equal(offloads, 3 * expected);
		/* Equal bytes need no look at the order. */
		assert_int_equal(collate_strings(shorter, shorter, &work, &c), STATUS_OK);
		assert_int_equal(c, 0);
		assert_int_equal(offloads, 3 * expected);
		assert_int_equal(collate_sort_key(shorter, 64, &work, &key), STATUS_OK);
		assert_int_equal(offloads, 4 * expected);
	}
}

/* In buffers that have room for no byte more. */
static void
a_cut_sort_key_is_the_beginning_of_the_whole(void **state)
{
	AUTO(buf_release) struct buf whole = BUF_INIT(1024);
	const struct str text = STR("\xc3\x84rger & Stra\xc3\x9f"
				    "e 3b");

	(void)state;
	assert_int_equal(collate_sort_key(text, 1024, &work, &whole), STATUS_OK);
	for (size_t most = 1; most < whole.len + 3; most++) {
		AUTO(buf_release) struct buf cut = BUF_INIT(most);

		assert_int_equal(collate_sort_key(text, most, &work, &cut), STATUS_OK);
		assert_int_equal(cut.len, most < whole.len ? most : whole.len);
		assert_memory_equal(cut.ptr, whole.ptr, cut.len);
	}
}

/* "15.0", whose end is not taken for the zeros behind it. */
static void
versions_have_two_numbers_at_least(void **state)
{
	struct index_versions v;

	(void)state;
	index_versions_read(&v);
	assert_non_null(strchr(v.library, '.'));
	assert_non_null(strchr(v.algorithm, '.'));
	assert_non_null(strchr(v.collator, '.'));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kinds_come_in_the_order_of_views, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_come_in_the_order_of_people, setup,
						teardown),
		cmocka_unit_test_setup_teardown(numbers_compare_exactly, setup, teardown),
		cmocka_unit_test_setup_teardown(same_is_more_than_equal, setup, teardown),
		cmocka_unit_test_setup_teardown(long_strings_are_put_together, setup, teardown),
		cmocka_unit_test_setup_teardown(order_is_total, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_number_is_corrupt, setup, teardown),
		cmocka_unit_test_setup_teardown(a_spelled_number_is_a_double_and_its_text, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_cut_sort_key_is_the_beginning_of_the_whole, setup,
						teardown),
		cmocka_unit_test_setup_teardown(numbers_are_read_to_their_end_and_no_further, setup,
						teardown),
		cmocka_unit_test_setup_teardown(texts_beyond_a_length_are_left_to_the_pool, setup,
						teardown),
		cmocka_unit_test(versions_have_two_numbers_at_least),
	};

	return cmocka_run_group_tests_name("collation", tests, NULL, NULL);
}
