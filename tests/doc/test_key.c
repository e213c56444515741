#include "doc/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doc_test.h"
#include "exact_number.h"
#include "random_scalar.h"
#include "vectors.h"

enum {
	ROUNDS = 30000,
};

static struct str
key_of(struct buf *key, enum doc_key_order order, const struct doc_scalar *s)
{
	buf_clear(key);
	assert_int_equal(doc_key_put(key, order, s), STATUS_OK);
	return buf_str(key);
}

static struct doc_scalar
random_number(struct rand_seq *r, struct arena *arena)
{
	static const enum doc_kind kinds[] = { DOC_INT8,      DOC_INT32,      DOC_INT64,
					       DOC_DOUBLE,    DOC_FLOAT,      DOC_INTEGER,
					       DOC_DECIMAL,   DOC_DECIMAL128, DOC_DOUBLE,
					       DOC_DECIMAL128 };

	return random_scalar_of(r, arena, kinds[rand_seq_below(r, 10)]);
}

/* The same value in another type, or one that is hardly another. */
static struct doc_scalar
random_near(struct rand_seq *r, struct arena *arena, const struct doc_scalar *s)
{
	double d = s->kind == DOC_DOUBLE ? s->d : random_double(r);

	switch (rand_seq_below(r, 4)) {
	case 0:
		return (struct doc_scalar){ .kind = DOC_DOUBLE, .d = nextafter(d, INFINITY) };
	case 1:
		return decimal128_near(r, d);
	case 2:
		if (fabs(d) < 1e18)
			return (struct doc_scalar){ .kind = DOC_INT64, .n = (int64_t)d };
		return decimal128_near(r, d);
	default:
		return random_number(r, arena);
	}
}

static int
sign(int c)
{
	return (c > 0) - (c < 0);
}

static void
numbers_of_all_types_sort_by_value(void **state)
{
	struct rand_seq r = { 1 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf key_a = BUF_INIT(TEST_MAX_BYTES);
	struct buf key_b = BUF_INIT(TEST_MAX_BYTES);
	static struct exact a, b;
	size_t equal = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct doc_scalar x = random_number(&r, arena);
		struct doc_scalar y = random_near(&r, arena, &x);
		int expected, found;

		exact_of(&x, &a);
		exact_of(&y, &b);
		expected = exact_cmp(&a, &b);
		found = str_cmp(key_of(&key_a, DOC_KEY_BSON, &x), key_of(&key_b, DOC_KEY_BSON, &y));
		if (sign(found) != expected)
			fail_msg("round %d: kinds %d and %d: %d, should be %d", i, x.kind, y.kind,
				 found, expected);
		equal += expected == 0;
		/* Neither is the beginning of the other. */
		if (expected)
			assert_false(str_starts_with(buf_str(&key_a), buf_str(&key_b)) ||
				     str_starts_with(buf_str(&key_b), buf_str(&key_a)));
		arena_clear(arena);
	}
	assert_true(equal > ROUNDS / 100);
	buf_release(&key_a);
	buf_release(&key_b);
	arena_free(arena);
}

/* What the key tells, compared with what the number was. */
static void
assert_tells(const struct exact *e, const struct doc_key_number *n)
{
	static struct exact told;
	char digits[EXACT_BYTES];

	switch (n->form) {
	case DOC_KEY_NAN:
		assert_int_equal(e->sign, -2);
		return;
	case DOC_KEY_INFINITE:
		assert_true(e->infinite);
		assert_int_equal(e->sign, n->negative ? -1 : 1);
		return;
	case DOC_KEY_ZERO:
		assert_int_equal(e->sign, 0);
		return;
	case DOC_KEY_BINARY:
		/* In two halves, which doubles hold exactly: all of it is checked by its sum. */
		assert_true(n->significand >> 63);
		exact_of_double(ldexp((double)(n->significand >> 11 << 11), (int)n->exponent - 63),
				&told);
		told.sign = n->negative ? -1 : 1;
		if (!(n->significand & 0x7ff)) {
			assert_int_equal(exact_cmp(e, &told), 0);
		} else {
			assert_int_equal(exact_cmp(e, &told), told.sign);
			exact_of_double(ldexp((double)(n->significand >> 11 << 11) + 2048,
					      (int)n->exponent - 63),
					&told);
			told.sign = n->negative ? -1 : 1;
			assert_int_equal(exact_cmp(e, &told), -told.sign);
		}
		return;
	case DOC_KEY_DECIMAL:
		memcpy(digits, n->digits.ptr, n->digits.len);
		digits[n->digits.len] = 0;
		exact_of_digits(n->negative, digits, n->exponent - (int64_t)n->digits.len, &told);
		assert_int_equal(exact_cmp(e, &told), 0);
	}
}

static void
numbers_are_read_back_in_value(void **state)
{
	struct rand_seq r = { 2 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf key = BUF_INIT(TEST_MAX_BYTES);
	struct buf scratch = BUF_INIT(TEST_MAX_BYTES);
	static struct exact e;

	(void)state;
	for (int i = 0; i < ROUNDS / 3; i++) {
		struct doc_scalar s = random_number(&r, arena);
		bool descending = rand_seq_below(&r, 2);
		struct doc_key_number n;
		size_t len;

		key_of(&key, DOC_KEY_BSON, &s);
		if (descending)
			doc_key_invert(&key, 0);
		len = key.len;
		buf_append_byte(&key, (uint8_t)rand_seq_next(&r));
		assert_int_equal(doc_key_read_number(buf_str(&key), descending, &scratch, &n),
				 STATUS_OK);
		exact_of(&s, &e);
		assert_tells(&e, &n);
		for (size_t cut = 0; cut < len; cut++)
			assert_int_equal(
				doc_key_read_number(str_of(key.ptr, cut), descending, &scratch, &n),
				STATUS_CORRUPT);
		arena_clear(arena);
	}
	buf_release(&scratch);
	buf_release(&key);
	arena_free(arena);
}

/* Bytes that are read as a number are the key of that number. */
static void
damaged_numbers_are_refused(void **state)
{
	struct rand_seq r = { 3 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf key = BUF_INIT(TEST_MAX_BYTES);
	struct buf scratch = BUF_INIT(TEST_MAX_BYTES);
	size_t refused = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct doc_scalar s = random_number(&r, arena);
		struct doc_key_number n;
		enum status status;

		key_of(&key, DOC_KEY_BSON, &s);
		key.ptr[rand_seq_below(&r, key.len)] = (char)rand_seq_next(&r);
		status = doc_key_read_number(buf_str(&key), false, &scratch, &n);
		assert_true(status == STATUS_OK || status == STATUS_CORRUPT ||
			    status == STATUS_INVALID);
		refused += status != STATUS_OK;
		arena_clear(arena);
	}
	assert_true(refused > ROUNDS / 50);
	buf_release(&scratch);
	buf_release(&key);
	arena_free(arena);
}

/* A component is passed over, whatever follows it; no beginning of it is a component. */
static void
every_component_ends_by_itself(void **state)
{
	static const enum doc_key_order orders[] = { DOC_KEY_BSON, DOC_KEY_COUCH, DOC_KEY_TYPED,
						     DOC_KEY_RAW };
	struct rand_seq r = { 4 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf key = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct doc_scalar s = random_scalar_any(&r, arena);
		bool descending = rand_seq_below(&r, 2);
		size_t len, found;

		key_of(&key, orders[rand_seq_below(&r, 4)], &s);
		if (descending)
			doc_key_invert(&key, 0);
		len = key.len;
		for (size_t cut = 0; cut < len; cut++)
			assert_int_equal(doc_key_skip(str_of(key.ptr, cut), descending, &found),
					 STATUS_CORRUPT);
		buf_append_byte(&key, (uint8_t)rand_seq_next(&r));
		assert_int_equal(doc_key_skip(buf_str(&key), descending, &found), STATUS_OK);
		assert_int_equal(found, len);
		arena_clear(arena);
	}
	buf_release(&key);
	arena_free(arena);
}

/* Tuples of two, the first or the second of them descending, sort component by component. */
static void
tuples_sort_component_by_component(void **state)
{
	struct rand_seq r = { 5 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);

	(void)state;
	for (int i = 0; i < ROUNDS / 3; i++) {
		enum doc_key_order order = (enum doc_key_order)rand_seq_below(&r, 2);
		bool descending[2] = { rand_seq_below(&r, 2), rand_seq_below(&r, 2) };
		struct buf whole[2] = { BUF_INIT(SIZE_MAX), BUF_INIT(SIZE_MAX) };
		struct buf single[2] = { BUF_INIT(SIZE_MAX), BUF_INIT(SIZE_MAX) };
		int expected = 0;

		for (int part = 0; part < 2; part++) {
			struct doc_scalar s[2] = { random_scalar_any(&r, arena) };

			s[1] = rand_seq_below(&r, 2) ? s[0] : random_scalar_any(&r, arena);
			for (int j = 0; j < 2; j++) {
				size_t from = whole[j].len;

				assert_int_equal(doc_key_put(&whole[j], order, &s[j]), STATUS_OK);
				if (descending[part])
					doc_key_invert(&whole[j], from);
				key_of(&single[j], order, &s[j]);
			}
			if (!expected)
				expected = str_cmp(buf_str(&single[0]), buf_str(&single[1])) *
					   (descending[part] ? -1 : 1);
		}
		assert_int_equal(sign(str_cmp(buf_str(&whole[0]), buf_str(&whole[1]))),
				 sign(expected));
		for (int j = 0; j < 2; j++) {
			buf_release(&whole[j]);
			buf_release(&single[j]);
		}
		arena_clear(arena);
	}
	arena_free(arena);
}

static void
assert_ascending(enum doc_key_order order, const struct doc_scalar *all, size_t count)
{
	struct buf a = BUF_INIT(TEST_MAX_BYTES);
	struct buf b = BUF_INIT(TEST_MAX_BYTES);

	for (size_t i = 1; i < count; i++)
		if (str_cmp(key_of(&a, order, &all[i - 1]), key_of(&b, order, &all[i])) >= 0)
			fail_msg("%zu is not above the one before", i);
	buf_release(&a);
	buf_release(&b);
}

static void
types_have_the_ranks_of_their_orders(void **state)
{
	static const char bytes[16] = "0123456789abcdef";
	const struct doc_scalar bson[] = {
		{ .kind = DOC_MIN_KEY },
		{ .kind = DOC_UNDEFINED },
		{ .kind = DOC_NULL },
		{ .kind = DOC_DOUBLE, .d = NAN },
		{ .kind = DOC_DOUBLE, .d = -INFINITY },
		{ .kind = DOC_INT32, .n = -1 },
		{ .kind = DOC_DOUBLE, .d = -0.0 },
		{ .kind = DOC_DOUBLE, .d = INFINITY },
		{ .kind = DOC_TEXT, .text = { "", 0 } },
		{ .kind = DOC_SYMBOL, .text = { "a", 1 } },
		{ .kind = DOC_TEXT, .text = { "a\0", 2 } },
		{ .kind = DOC_TEXT, .text = { "a\0a", 3 } },
		{ .kind = DOC_TEXT, .text = { "a\1", 2 } },
		{ .kind = DOC_EMPTY_OBJECT },
		{ .kind = DOC_EMPTY_ARRAY },
		{ .kind = DOC_BYTES, .text = { "z", 1 } },
		{ .kind = DOC_BINARY, .n = 5, .text = { "a", 1 } },
		{ .kind = DOC_BYTES, .text = { "aa", 2 } },
		{ .kind = DOC_OBJECT_ID, .text = { bytes, 12 } },
		{ .kind = DOC_BOOL },
		{ .kind = DOC_BOOL, .truth = true },
		{ .kind = DOC_DATE, .n = -1 },
		{ .kind = DOC_DATE, .n = 1 },
		{ .kind = DOC_TIMESTAMP, .n = 1 },
		{ .kind = DOC_TIMESTAMP, .n = -1 },
		{ .kind = DOC_REGEX, .text = { "a", 1 }, .more = { "", 0 } },
		{ .kind = DOC_DB_POINTER, .text = { "a", 1 }, .more = { bytes, 12 } },
		{ .kind = DOC_CODE, .text = { "a", 1 } },
		{ .kind = DOC_CODE_SCOPE, .text = { "a", 1 }, .more = { "", 0 } },
		{ .kind = DOC_MAX_KEY },
	};
	const struct doc_scalar couch[] = {
		{ .kind = DOC_NULL },
		{ .kind = DOC_BOOL },
		{ .kind = DOC_BOOL, .truth = true },
		{ .kind = DOC_INT64, .n = -1 },
		{ .kind = DOC_INT64, .n = 1 },
		{ .kind = DOC_TEXT, .text = { "", 0 } },
		{ .kind = DOC_EMPTY_ARRAY },
		{ .kind = DOC_EMPTY_OBJECT },
	};
	const struct doc_scalar raw[] = {
		{ .kind = DOC_INT64, .n = -1 },
		{ .kind = DOC_INT64, .n = 1 },
		{ .kind = DOC_DOUBLE, .d = 1e300 },
		{ .kind = DOC_BOOL },
		{ .kind = DOC_NULL },
		{ .kind = DOC_BOOL, .truth = true },
		{ .kind = DOC_EMPTY_OBJECT },
		{ .kind = DOC_EMPTY_ARRAY },
		{ .kind = DOC_TEXT, .text = { "", 0 } },
		{ .kind = DOC_TEXT, .text = { "B", 1 } },
		{ .kind = DOC_TEXT, .text = { "a", 1 } },
	};

	(void)state;
	assert_ascending(DOC_KEY_RAW, raw, sizeof(raw) / sizeof(raw[0]));
	assert_ascending(DOC_KEY_BSON, bson, sizeof(bson) / sizeof(bson[0]));
	assert_ascending(DOC_KEY_COUCH, couch, sizeof(couch) / sizeof(couch[0]));
}

static void
each_type_of_rows_has_its_own_order(void **state)
{
	/* Versions 1 with times 0x1…, 0x2… in the low, middle and high part. */
	const struct doc_scalar uuids[] = {
		{ .kind = DOC_UUID, .text = { "\x20\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_UUID, .text = { "\x20\0\0\0\0\0\x10\0\xff\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_UUID, .text = { "\x10\0\0\0\0\1\x10\0\0\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_UUID, .text = { "\x00\0\0\0\0\0\x10\1\0\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_UUID, .text = { "\x10\0\0\0\0\0\x40\0\0\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_UUID, .text = { "\x20\0\0\0\0\0\x40\0\0\0\0\0\0\0\0\0", 16 } },
	};
	const struct doc_scalar timeuuids[] = {
		{ .kind = DOC_TIMEUUID, .text = { "\x20\0\0\0\0\0\x10\0\x80\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_TIMEUUID, .text = { "\x20\0\0\0\0\0\x10\0\xff\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_TIMEUUID, .text = { "\x20\0\0\0\0\0\x10\0\x00\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_TIMEUUID, .text = { "\x10\0\0\0\0\1\x10\0\0\0\0\0\0\0\0\0", 16 } },
	};
	const struct doc_scalar doubles[] = {
		{ .kind = DOC_DOUBLE, .d = -INFINITY }, { .kind = DOC_DOUBLE, .d = -1 },
		{ .kind = DOC_DOUBLE, .d = -0.0 },      { .kind = DOC_DOUBLE, .d = 0.0 },
		{ .kind = DOC_DOUBLE, .d = INFINITY },  { .kind = DOC_DOUBLE, .d = NAN },
	};
	const struct doc_scalar floats[] = {
		{ .kind = DOC_FLOAT, .f = -INFINITY },
		{ .kind = DOC_FLOAT, .f = -0.0F },
		{ .kind = DOC_FLOAT, .f = 0.0F },
		{ .kind = DOC_FLOAT, .f = NAN },
	};
	const struct doc_scalar blobs[] = {
		{ .kind = DOC_BYTES, .text = { "", 0 } },
		{ .kind = DOC_BYTES, .text = { "\0", 1 } },
		{ .kind = DOC_BYTES, .text = { "\0\0", 2 } },
		{ .kind = DOC_BYTES, .text = { "\0\1", 2 } },
		{ .kind = DOC_BYTES, .text = { "aa", 2 } },
		{ .kind = DOC_BYTES, .text = { "z", 1 } },
	};
	const struct doc_scalar addresses[] = {
		{ .kind = DOC_INET, .text = { "\x0a\0\0\1", 4 } },
		{ .kind = DOC_INET, .text = { "\x0a\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 16 } },
		{ .kind = DOC_INET, .text = { "\x7f\0\0\1", 4 } },
	};

	(void)state;
	assert_ascending(DOC_KEY_TYPED, uuids, 6);
	assert_ascending(DOC_KEY_TYPED, timeuuids, 4);
	assert_ascending(DOC_KEY_TYPED, doubles, 6);
	assert_ascending(DOC_KEY_TYPED, floats, 4);
	assert_ascending(DOC_KEY_TYPED, blobs, 6);
	assert_ascending(DOC_KEY_TYPED, addresses, 3);
}

/* Writes a container of a text like [1[2]] or {a:1{…}}: digits are numbers. */
static void
put_value(struct buf *key, enum doc_key_order order, const char **at)
{
	struct doc_scalar s = { .kind = DOC_INT32, .n = **at - '0' };
	bool object = **at == '{';

	if (**at == '"') {
		s = (struct doc_scalar){ .kind = DOC_TEXT, .text = { "x", 1 } };
	} else if (**at == '[' || object) {
		doc_key_begin(key, order, object ? DOC_OBJECT : DOC_ARRAY);
		for (++*at; **at != ']' && **at != '}';) {
			if (object) {
				const char *name = (*at)++;

				doc_key_member(key, order, str_of(name, 1),
					       **at == '{'   ? DOC_EMPTY_OBJECT
					       : **at == '[' ? DOC_EMPTY_ARRAY
					       : **at == '"' ? DOC_TEXT
							     : DOC_INT32);
			}
			put_value(key, order, at);
		}
		++*at;
		doc_key_end(key);
		return;
	}
	++*at;
	assert_int_equal(doc_key_put(key, order, &s), STATUS_OK);
}

static void
assert_containers_ascend(enum doc_key_order order, const char *const *all, size_t count)
{
	struct buf keys[2] = { BUF_INIT(TEST_MAX_BYTES), BUF_INIT(TEST_MAX_BYTES) };

	for (size_t i = 0; i < count; i++) {
		struct buf *key = &keys[i % 2];
		const char *at = all[i];
		size_t len;

		buf_clear(key);
		put_value(key, order, &at);
		assert_int_equal(doc_key_skip(buf_str(key), false, &len), STATUS_OK);
		assert_int_equal(len, key->len);
		for (size_t cut = 0; cut < key->len; cut++)
			assert_int_equal(doc_key_skip(str_of(key->ptr, cut), false, &len),
					 STATUS_CORRUPT);
		if (i && str_cmp(buf_str(&keys[(i + 1) % 2]), buf_str(key)) >= 0)
			fail_msg("%s is not above %s", all[i], all[i - 1]);
	}
	buf_release(&keys[0]);
	buf_release(&keys[1]);
}

static void
containers_sort_element_by_element(void **state)
{
	static const char *const couch[] = {
		"9",    "\"",   "[]", "[1]",  "[11]",   "[12]",  "[2]",
		"[[]]", "[{}]", "{}", "{a1}", "{a1b1}", "{a\"}", "{b1}"
	};
	static const char *const bson[] = { "9",    "\"",    "{}",    "{a1}",  "{a1b1}", "{a2}",
					    "{b1}", "{a\"}", "{a{}}", "{a[]}", "[]",     "[1]",
					    "[11]", "[2]",   "[\"]",  "[[]]" };

	static const char *const raw[] = { "9",     "{}",   "{a1}", "{a1b1}", "{a{}}", "{a[]}",
					   "{a\"}", "{b1}", "[]",   "[1]",    "[11]",  "[2]",
					   "[{}]",  "[[]]", "[\"]", "\"" };

	(void)state;
	assert_containers_ascend(DOC_KEY_RAW, raw, sizeof(raw) / sizeof(raw[0]));
	assert_containers_ascend(DOC_KEY_COUCH, couch, sizeof(couch) / sizeof(couch[0]));
	assert_containers_ascend(DOC_KEY_BSON, bson, sizeof(bson) / sizeof(bson[0]));
}

static void
numbers_with_too_many_digits_have_no_key(void **state)
{
	struct buf text = BUF_INIT(TEST_MAX_BYTES);
	struct buf key = BUF_INIT(TEST_MAX_BYTES);
	struct doc_scalar s = { .kind = DOC_NUMBER, .d = 1.7976931348623157e308 };

	(void)state;
	for (size_t i = 0; i < DOC_KEY_DIGITS; i++)
		buf_append_byte(&text, '7');
	s.text = buf_str(&text);
	assert_int_equal(doc_key_put(&key, DOC_KEY_COUCH, &s), STATUS_OK);
	buf_append_byte(&text, '7');
	s.text = buf_str(&text);
	buf_clear(&key);
	assert_int_equal(doc_key_put(&key, DOC_KEY_COUCH, &s), STATUS_LIMIT);
	assert_int_equal(key.len, 0);
	buf_release(&text);
	buf_release(&key);
}

/* The file is in ascending order; a line of another type may repeat the bytes of the one before. */
static void
published_vectors_hold(void **state)
{
	struct vectors v;
	struct buf key = BUF_INIT(TEST_MAX_BYTES);
	struct buf before = BUF_INIT(TEST_MAX_BYTES);
	size_t count = 0;

	(void)state;
	vectors_open(&v, VECTORS "/numbers.txt");
	while (vectors_next(&v)) {
		if (!str_eq(key_of(&key, DOC_KEY_BSON, &v.scalar), v.bytes))
			fail_msg("line %zu: another key", v.line);
		assert_true(str_cmp(buf_str(&before), buf_str(&key)) <= 0);
		buf_clear(&before);
		buf_append_str(&before, buf_str(&key));
		count++;
	}
	assert_true(count > 200);
	vectors_close(&v);
	buf_release(&before);
	buf_release(&key);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors_hold),
		cmocka_unit_test(numbers_of_all_types_sort_by_value),
		cmocka_unit_test(numbers_are_read_back_in_value),
		cmocka_unit_test(damaged_numbers_are_refused),
		cmocka_unit_test(every_component_ends_by_itself),
		cmocka_unit_test(tuples_sort_component_by_component),
		cmocka_unit_test(types_have_the_ranks_of_their_orders),
		cmocka_unit_test(each_type_of_rows_has_its_own_order),
		cmocka_unit_test(containers_sort_element_by_element),
		cmocka_unit_test(numbers_with_too_many_digits_have_no_key),
	};

	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
