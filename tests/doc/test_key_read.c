/*
 * Keys of the values that rows have: their order against a comparison that knows no bytes, and
 * reading them back.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doc/key_read.h"
#include "doc_test.h"
#include "exact_number.h"
#include "random_scalar.h"

enum {
	ROUNDS = 20000,
	COMPONENTS = 4,
	COMPARED_BYTES = 400, /* of an integer: as much as exact_of() takes */
};

static const enum doc_kind row_kinds[] = {
	DOC_NULL,  DOC_BOOL,  DOC_TEXT,       DOC_BYTES,   DOC_INT8,     DOC_INT16, DOC_INT32,
	DOC_INT64, DOC_FLOAT, DOC_DOUBLE,     DOC_UUID,    DOC_TIMEUUID, DOC_DATE,  DOC_DAY,
	DOC_TIME,  DOC_INET,  DOC_DECIMAL128, DOC_INTEGER, DOC_DECIMAL,
};

enum {
	ROW_KINDS = sizeof(row_kinds) / sizeof(row_kinds[0]),
};

static enum doc_kind
random_row_kind(struct rand_seq *r)
{
	return row_kinds[rand_seq_below(r, ROW_KINDS)];
}

/* ---- A comparison that knows no bytes ---- */

static int
order_of(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* As Java's Double.compare(): -0 before 0, NaN last. */
static int
compare_doubles(double a, double b)
{
	if (isnan(a) || isnan(b))
		return order_of(isnan(a), isnan(b));
	if (a < b || a > b)
		return a < b ? -1 : 1;
	return order_of(!signbit(a), !signbit(b));
}

static uint64_t
uuid_time(const uint8_t *u)
{
	uint64_t low = (uint64_t)u[0] << 24 | (uint64_t)u[1] << 16 | (uint64_t)u[2] << 8 | u[3];
	uint64_t middle = (uint64_t)u[4] << 8 | u[5];
	uint64_t high = (uint64_t)(u[6] & 0x0f) << 8 | u[7];

	return high << 48 | middle << 32 | low;
}

static int
compare_uuids(const uint8_t *a, const uint8_t *b, bool signed_bytes)
{
	int c = order_of(a[6] >> 4, b[6] >> 4);

	if (c == 0 && a[6] >> 4 == 1)
		c = order_of((int64_t)uuid_time(a), (int64_t)uuid_time(b));
	else if (c == 0)
		c = memcmp(a, b, 8);
	for (int i = 8; c == 0 && i < DOC_UUID_BYTES; i++)
		c = signed_bytes ? order_of((int8_t)a[i], (int8_t)b[i]) : order_of(a[i], b[i]);
	return c;
}

static int
compare_exactly(const struct doc_scalar *a, const struct doc_scalar *b)
{
	static struct exact x, y;

	exact_of(a, &x);
	exact_of(b, &y);
	return exact_cmp(&x, &y);
}

/* Two values of one type. */
static int
compare_values(const struct doc_scalar *a, const struct doc_scalar *b)
{
	switch ((int)a->kind) {
	case DOC_NULL:
		return 0;
	case DOC_BOOL:
		return order_of(a->truth, b->truth);
	case DOC_TEXT:
	case DOC_BYTES:
	case DOC_INET:
		return str_cmp(a->text, b->text);
	case DOC_DOUBLE:
		return compare_doubles(a->d, b->d);
	case DOC_FLOAT:
		return compare_doubles((double)a->f, (double)b->f);
	case DOC_UUID:
	case DOC_TIMEUUID:
		return compare_uuids((const uint8_t *)a->text.ptr, (const uint8_t *)b->text.ptr,
				     a->kind == DOC_TIMEUUID);
	case DOC_DATE:
	case DOC_DAY:
	case DOC_TIME:
		return order_of(a->n, b->n);
	default:
		return compare_exactly(a, b);
	}
}

static int
sign(int c)
{
	return (c > 0) - (c < 0);
}

/* A value of the kind that is often the other one, or near it. */
static struct doc_scalar
random_beside(struct rand_seq *r, struct arena *arena, const struct doc_scalar *s)
{
	struct doc_scalar near = *s;
	char *bytes;

	if (rand_seq_below(r, 3) == 0)
		return random_scalar_of(r, arena, s->kind);
	if (s->kind == DOC_DATE || s->kind == DOC_INT8 || s->kind == DOC_INT64)
		near.n ^= (int64_t)rand_seq_below(r, 3);
	if ((s->kind == DOC_BYTES || s->kind == DOC_UUID || s->kind == DOC_TIMEUUID ||
	     s->kind == DOC_INET) &&
	    s->text.len) {
		size_t at = rand_seq_below(r, s->text.len);

		bytes = arena_bytes(arena, s->text.len);
		memcpy(bytes, s->text.ptr, s->text.len);
		/* Not the version of a UUID. */
		if (at != 6)
			bytes[at] = (char)rand_seq_next(r);
		near.text = str_of(bytes, s->text.len);
	}
	return near;
}

/* Rows of several components, each of a type and a direction of its own. */
static void
keys_sort_as_a_naive_comparison_says(void **state)
{
	struct rand_seq r = { 11 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf keys[2] = { BUF_INIT(TEST_MAX_BYTES), BUF_INIT(TEST_MAX_BYTES) };
	size_t equal = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		int expected = 0;

		buf_clear(&keys[0]);
		buf_clear(&keys[1]);
		for (int part = 0; part < COMPONENTS; part++) {
			struct doc_scalar s[2];
			bool descending = rand_seq_below(&r, 2);

			s[0] = random_scalar_of(&r, arena, random_row_kind(&r));
			s[1] = random_beside(&r, arena, &s[0]);
			if (!expected)
				expected = compare_values(&s[0], &s[1]) * (descending ? -1 : 1);
			for (int j = 0; j < 2; j++) {
				size_t from = keys[j].len;

				assert_int_equal(doc_key_put(&keys[j], DOC_KEY_TYPED, &s[j]),
						 STATUS_OK);
				if (descending)
					doc_key_invert(&keys[j], from);
			}
		}
		if (sign(str_cmp(buf_str(&keys[0]), buf_str(&keys[1]))) != sign(expected))
			fail_msg("round %d should be %d", i, expected);
		equal += expected == 0;
		arena_clear(arena);
	}
	assert_true(equal > ROUNDS / 100);
	buf_release(&keys[0]);
	buf_release(&keys[1]);
	arena_free(arena);
}

/* ---- Reading ---- */

static bool
is_exact_number(enum doc_kind kind)
{
	switch ((int)kind) {
	case DOC_INT8:
	case DOC_INT16:
	case DOC_INT32:
	case DOC_INT64:
	case DOC_INTEGER:
	case DOC_DECIMAL:
	case DOC_DECIMAL128:
		return true;
	default:
		return false;
	}
}

/* What comes back of a number is its value, in the smallest kind that has it. */
static void
assert_same_value(const struct doc_scalar *put, const struct doc_scalar *read)
{
	if (!is_exact_number(put->kind)) {
		assert_int_equal(read->kind, put->kind);
		assert_int_equal(compare_values(put, read), 0);
		return;
	}
	assert_true(read->kind == DOC_INT64 || read->kind == DOC_INTEGER ||
		    read->kind == DOC_DECIMAL || read->kind == DOC_DECIMAL128);
	/* Of a longer one only the key is compared, which the caller does. */
	if (read->text.len <= COMPARED_BYTES)
		assert_int_equal(compare_exactly(put, read), 0);
}

static void
keys_are_read_back_component_by_component(void **state)
{
	struct rand_seq r = { 12 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf key = BUF_INIT(TEST_MAX_BYTES);
	struct buf again = BUF_INIT(TEST_MAX_BYTES);

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct doc_scalar s[COMPONENTS];
		bool descending[COMPONENTS];
		struct str rest;

		buf_clear(&key);
		for (int part = 0; part < COMPONENTS; part++) {
			size_t from = key.len;

			s[part] = random_scalar_of(&r, arena, random_row_kind(&r));
			descending[part] = rand_seq_below(&r, 2);
			assert_int_equal(doc_key_put(&key, DOC_KEY_TYPED, &s[part]), STATUS_OK);
			if (descending[part])
				doc_key_invert(&key, from);
		}
		rest = buf_str(&key);
		for (int part = 0; part < COMPONENTS; part++) {
			struct doc_scalar read = { 0 };
			size_t len = 0, skipped = 0;

			assert_int_equal(doc_key_read(rest, descending[part], arena, &read, &len),
					 STATUS_OK);
			assert_int_equal(doc_key_skip(rest, descending[part], &skipped), STATUS_OK);
			assert_int_equal(len, skipped);
			assert_same_value(&s[part], &read);
			buf_clear(&again);
			assert_int_equal(doc_key_put(&again, DOC_KEY_TYPED, &read), STATUS_OK);
			if (descending[part])
				doc_key_invert(&again, 0);
			assert_true(str_eq(buf_str(&again), str_of(rest.ptr, len)));
			rest = str_skip(rest, len);
		}
		assert_int_equal(rest.len, 0);
		arena_clear(arena);
	}
	buf_release(&again);
	buf_release(&key);
	arena_free(arena);
}

static void
integers_come_back_in_the_smallest_kind(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf key = BUF_INIT(TEST_MAX_BYTES);
	const int64_t all[] = { 0, 1, -1, 255, INT64_MAX, INT64_MIN, INT64_MIN + 1 };
	const struct doc_scalar beyond = { .kind = DOC_INTEGER,
					   .text = { "\x80\0\0\0\0\0\0\0", 8 } };
	struct doc_scalar read;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct doc_scalar s = { .kind = DOC_INT64, .n = all[i] };

		buf_clear(&key);
		assert_int_equal(doc_key_put(&key, DOC_KEY_TYPED, &s), STATUS_OK);
		assert_int_equal(doc_key_read(buf_str(&key), false, arena, &read, &len), STATUS_OK);
		assert_int_equal(read.kind, DOC_INT64);
		assert_true(read.n == all[i]);
	}
	buf_clear(&key);
	assert_int_equal(doc_key_put(&key, DOC_KEY_TYPED, &beyond), STATUS_OK);
	assert_int_equal(doc_key_read(buf_str(&key), false, arena, &read, &len), STATUS_OK);
	assert_int_equal(read.kind, DOC_INTEGER);
	assert_true(str_eq(read.text, beyond.text) && !read.negative);
	buf_release(&key);
	arena_free(arena);
}

/* The numbers with the smallest and the largest exponents that a decimal can have. */
static void
decimals_of_the_widest_scales_come_back(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf key = BUF_INIT(TEST_MAX_BYTES);
	struct buf again = BUF_INIT(TEST_MAX_BYTES);
	const int64_t scales[] = { INT32_MIN, INT32_MAX, -598, -10000, 324, -310 };
	const struct str magnitudes[] = { STR("\x07"), STR("\x64"), STR("\x13\x88") };

	(void)state;
	for (size_t i = 0; i < 6; i++)
		for (size_t m = 0; m < 3; m++) {
			const struct doc_scalar s = { .kind = DOC_DECIMAL,
						      .text = magnitudes[m],
						      .n = scales[i],
						      .negative = m == 1 };
			struct doc_scalar read;
			size_t len;

			buf_clear(&key);
			buf_clear(&again);
			assert_int_equal(doc_key_put(&key, DOC_KEY_TYPED, &s), STATUS_OK);
			assert_int_equal(doc_key_read(buf_str(&key), false, arena, &read, &len),
					 STATUS_OK);
			assert_int_equal(len, key.len);
			assert_int_equal(doc_key_put(&again, DOC_KEY_TYPED, &read), STATUS_OK);
			assert_true(str_eq(buf_str(&again), buf_str(&key)));
			arena_clear(arena);
		}
	buf_release(&again);
	buf_release(&key);
	arena_free(arena);
}

/* No beginning of a component is read as one, and what is read of damaged bytes is their value. */
static void
damaged_keys_are_refused(void **state)
{
	struct rand_seq r = { 13 };
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	struct buf key = BUF_INIT(TEST_MAX_BYTES);
	struct buf again = BUF_INIT(TEST_MAX_BYTES);
	size_t refused = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct doc_scalar s = random_scalar_of(&r, arena, random_row_kind(&r));
		struct doc_scalar read;
		size_t len;

		buf_clear(&key);
		assert_int_equal(doc_key_put(&key, DOC_KEY_TYPED, &s), STATUS_OK);
		for (size_t cut = 0; cut < key.len; cut++)
			assert_int_equal(
				doc_key_read(str_of(key.ptr, cut), false, arena, &read, &len),
				STATUS_CORRUPT);
		key.ptr[rand_seq_below(&r, key.len)] = (char)rand_seq_next(&r);
		if (doc_key_read(buf_str(&key), false, arena, &read, &len) == STATUS_OK) {
			buf_clear(&again);
			assert_int_equal(doc_key_put(&again, DOC_KEY_TYPED, &read), STATUS_OK);
			assert_true(str_eq(buf_str(&again), str_of(key.ptr, len)));
		} else {
			refused++;
		}
		arena_clear(arena);
	}
	assert_true(refused > ROUNDS / 50);
	buf_release(&again);
	buf_release(&key);
	arena_free(arena);
}

static void
components_of_other_orders_are_not_read(void **state)
{
	struct arena *arena = arena_new(TEST_MAX_BYTES);
	const struct doc_scalar others[] = {
		{ .kind = DOC_EMPTY_OBJECT },
		{ .kind = DOC_MIN_KEY },
		{ .kind = DOC_TIMESTAMP },
		{ .kind = DOC_REGEX, .text = STR("a"), .more = STR("i") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct buf key = BUF_INIT(TEST_MAX_BYTES);
		struct doc_scalar read;
		size_t len;

		assert_int_equal(doc_key_put(&key, DOC_KEY_BSON, &others[i]), STATUS_OK);
		assert_int_equal(doc_key_read(buf_str(&key), false, arena, &read, &len),
				 STATUS_INVALID);
		buf_release(&key);
	}
	arena_free(arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_sort_as_a_naive_comparison_says),
		cmocka_unit_test(keys_are_read_back_component_by_component),
		cmocka_unit_test(integers_come_back_in_the_smallest_kind),
		cmocka_unit_test(decimals_of_the_widest_scales_come_back),
		cmocka_unit_test(damaged_keys_are_refused),
		cmocka_unit_test(components_of_other_orders_are_not_read),
	};

	return cmocka_run_group_tests_name("key_read", tests, NULL, NULL);
}
