#include "bson/order.h"

#include <ctype.h>

#include "../doc/exact_number.h"
#include "bson/scalar.h"
#include "doc/key.h"
#include "random_bson.h"

enum {
	ROUNDS = 30000,
	TEST_BYTES = 1 << 22,
	WHOLE = 100000,
};

static int
sign(int c)
{
	return (c > 0) - (c < 0);
}

static struct bson_value
random_number(struct rand_seq *r)
{
	switch (rand_seq_below(r, 4)) {
	case 0:
		return BSON_OF_INT32(random_i64(r, 32));
	case 1:
		return BSON_OF_INT64(random_i64(r, 64));
	case 2:
		return BSON_OF_DOUBLE(random_double(r));
	default:
		return (struct bson_value){ .type = BSON_DECIMAL,
					    .as_decimal = random_bson_decimal(r) };
	}
}

/* A number that is equal or nearly so, of another type perhaps. */
static struct bson_value
random_near_number(struct rand_seq *r, const struct bson_value *v)
{
	double d = bson_to_double(v);
	struct doc_scalar s = decimal128_near(r, d);

	switch (rand_seq_below(r, 4)) {
	case 0:
		return BSON_OF_DOUBLE(d);
	case 1:
		return BSON_OF_DOUBLE(nextafter(d, 1.0));
	case 2:
		if (d > -1e18 && d < 1e18)
			return BSON_OF_INT64((int64_t)d);
		return BSON_OF_DOUBLE(d);
	default:
		return (struct bson_value){ .type = BSON_DECIMAL, .as_decimal = { s.low, s.high } };
	}
}

static void
numbers_of_all_types_compare_exactly(void **state)
{
	static struct exact exact[2];
	struct rand_seq r = { 1 };
	int equal = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct bson_value a = random_number(&r);
		struct bson_value b = rand_seq_below(&r, 2) ? random_near_number(&r, &a)
							    : random_number(&r);
		struct doc_scalar s;
		int expected;

		bson_to_scalar(&a, &s);
		exact_of(&s, &exact[0]);
		bson_to_scalar(&b, &s);
		exact_of(&s, &exact[1]);
		expected = exact_cmp(&exact[0], &exact[1]);
		assert_int_equal(sign(bson_compare_numbers(&a, &b)), expected);
		assert_int_equal(sign(bson_compare_numbers(&b, &a)), -expected);
		equal += !expected;
	}
	assert_true(equal > ROUNDS / 100);
}

static struct str
key_of(struct buf *key, const struct bson_value *v, size_t most, bool *ret_cut)
{
	buf_clear(key);
	*ret_cut = false;
	assert_int_equal(bson_key_put(key, v, most, NULL, ret_cut), STATUS_OK);
	return buf_str(key);
}

/* A value that is another one with a little changed, so that both differ late. */
static struct bson_value
random_near(struct rand_seq *r, struct arena *arena, const struct bson_value *v)
{
	struct buf out = BUF_INIT(TEST_BYTES);
	struct bson_builder b;
	struct bson_iter i;
	struct bson_element e;
	struct bson_value near = *v;

	if (bson_is_number(v))
		return random_near_number(r, v);
	if (!bson_is_container(v))
		return random_value(r, arena, 2);
	bson_builder_init(&b, &out);
	if (v->type == BSON_ARRAY)
		bson_begin_outer_array(&b);
	else
		bson_begin(&b);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e);) {
		if (rand_seq_below(r, 3) == 0)
			e.value = random_near(r, arena, &e.value);
		if (rand_seq_below(r, 12))
			bson_put(&b, e.name, &e.value);
	}
	bson_end(&b);
	near.as_text = arena_dup(arena, buf_str(&out));
	buf_release(&out);
	return near;
}

static void
keys_sort_as_values_do(void **state)
{
	struct arena *arena = arena_new(TEST_BYTES);
	struct buf keys[2] = { BUF_INIT(TEST_BYTES), BUF_INIT(TEST_BYTES) };
	struct rand_seq r = { 2 };
	int equal = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct bson_value a = random_value(&r, arena, 4);
		struct bson_value b = rand_seq_below(&r, 3) ? random_near(&r, arena, &a)
							    : random_value(&r, arena, 4);
		int expected = sign(bson_compare_values(&a, &b, NULL));
		bool cut;
		size_t len;

		key_of(&keys[0], &a, WHOLE, &cut);
		assert_false(cut);
		key_of(&keys[1], &b, WHOLE, &cut);
		assert_int_equal(sign(str_cmp(buf_str(&keys[0]), buf_str(&keys[1]))), expected);
		assert_int_equal(sign(bson_compare_values(&b, &a, NULL)), -expected);
		equal += !expected;
		assert_int_equal(doc_key_skip(buf_str(&keys[0]), false, &len), STATUS_OK);
		assert_int_equal(len, keys[0].len);
		doc_key_invert(&keys[0], 0);
		doc_key_invert(&keys[1], 0);
		assert_int_equal(sign(str_cmp(buf_str(&keys[0]), buf_str(&keys[1]))), -expected);
		arena_clear(arena);
	}
	assert_true(equal > ROUNDS / 100);
	buf_release(&keys[0]);
	buf_release(&keys[1]);
	arena_free(arena);
}

static void
cut_keys_are_in_order_and_say_so(void **state)
{
	struct arena *arena = arena_new(TEST_BYTES);
	struct buf keys[3] = { BUF_INIT(TEST_BYTES), BUF_INIT(TEST_BYTES), BUF_INIT(TEST_BYTES) };
	struct rand_seq r = { 3 };
	int cuts = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct bson_value a = random_value(&r, arena, 4);
		struct bson_value b = rand_seq_below(&r, 3) ? random_near(&r, arena, &a)
							    : random_value(&r, arena, 4);
		size_t most = rand_seq_below(&r, 40) + 1;
		int expected = bson_compare_values(&a, &b, NULL);
		bool cut, cut_a, cut_b;
		int found;

		key_of(&keys[2], &a, WHOLE, &cut);
		key_of(&keys[0], &a, most, &cut_a);
		key_of(&keys[1], &b, most, &cut_b);
		assert_int_equal(cut_a, keys[2].len > most);
		assert_true(
			str_eq(buf_str(&keys[0]), str_of(keys[2].ptr, cut_a ? most : keys[2].len)));
		found = str_cmp(buf_str(&keys[0]), buf_str(&keys[1]));
		assert_true(found == 0 || sign(found) == sign(expected));
		assert_true(found != 0 || expected == 0 || (cut_a && cut_b));
		cuts += cut_a;
		arena_clear(arena);
	}
	assert_true(cuts > ROUNDS / 20);
	for (int i = 0; i < 3; i++)
		buf_release(&keys[i]);
	arena_free(arena);
}

/* Long values are cut without a copy of them being made. */
static void
long_values_need_little_room(void **state)
{
	enum {
		LONG = 1 << 20,
		MOST = 100
	};
	static const enum bson_type types[] = { BSON_STRING, BSON_BINARY,     BSON_CODE,
						BSON_SYMBOL, BSON_DB_POINTER, BSON_REGEX };
	struct buf small = BUF_INIT(BSON_KEY_ROOM(MOST)), large = BUF_INIT(TEST_BYTES);
	char *bytes = calloc(1, LONG);

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct bson_value v = { .type = types[i],
					.as_text = str_of(bytes, LONG),
					.as_more = str_of(bytes, BSON_OBJECT_ID_BYTES) };
		bool cut;

		key_of(&small, &v, MOST, &cut);
		assert_true(cut);
		key_of(&large, &v, 4 * LONG, &cut);
		assert_false(cut);
		assert_true(str_eq(buf_str(&small), str_of(large.ptr, MOST)));
	}
	free(bytes);
	buf_release(&small);
	buf_release(&large);
}

static void
types_have_mongodb_s_ranks(void **state)
{
	const struct bson_value in_order[] = {
		{ .type = BSON_MIN_KEY },
		{ .type = BSON_UNDEFINED },
		{ .type = BSON_NULL },
		BSON_OF_DOUBLE(NAN),
		BSON_OF_DOUBLE(-INFINITY),
		BSON_OF_INT64(INT64_MIN),
		BSON_OF_INT32(0),
		BSON_OF_DOUBLE(5e-324),
		BSON_OF_STRING(STR("")),
		{ .type = BSON_SYMBOL, .as_text = STR("a") },
		BSON_OF_STRING(STR("a\0b")),
		BSON_OF_STRING(STR("ab")),
		BSON_OF_DOCUMENT(BSON_EMPTY),
		BSON_OF_ARRAY(BSON_EMPTY),
		{ .type = BSON_BINARY, .subtype = 5, .as_text = STR("z") },
		{ .type = BSON_BINARY, .subtype = 0, .as_text = STR("aa") },
		{ .type = BSON_BINARY, .subtype = 1, .as_text = STR("aa") },
		{ .type = BSON_OBJECT_ID, .as_text = STR("aaaaaaaaaaaa") },
		BSON_OF_BOOL(false),
		BSON_OF_BOOL(true),
		BSON_OF_DATE(-1),
		BSON_OF_DATE(0),
		{ .type = BSON_TIMESTAMP, .as_n = 1 },
		{ .type = BSON_TIMESTAMP, .as_n = -1 },
		{ .type = BSON_REGEX, .as_text = STR("a"), .as_more = STR("i") },
		{ .type = BSON_REGEX, .as_text = STR("a"), .as_more = STR("x") },
		{ .type = BSON_DB_POINTER, .as_text = STR("a"), .as_more = STR("aaaaaaaaaaaa") },
		{ .type = BSON_CODE, .as_text = STR("a") },
		{ .type = BSON_CODE_SCOPE, .as_text = STR("a"), .as_more = BSON_EMPTY },
		{ .type = BSON_MAX_KEY },
	};
	struct buf keys[2] = { BUF_INIT(TEST_BYTES), BUF_INIT(TEST_BYTES) };
	bool cut;

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(in_order) / sizeof(in_order[0]); i++) {
		assert_true(bson_compare_values(&in_order[i], &in_order[i + 1], NULL) < 0);
		assert_true(str_cmp(key_of(&keys[0], &in_order[i], WHOLE, &cut),
				    key_of(&keys[1], &in_order[i + 1], WHOLE, &cut)) < 0);
	}
	buf_release(&keys[0]);
	buf_release(&keys[1]);
}

/* ---- Collations ---- */

static int
compare_lower(void *of, struct str a, struct str b)
{
	(void)of;
	for (size_t i = 0; i < a.len && i < b.len; i++)
		if (tolower(a.ptr[i]) != tolower(b.ptr[i]))
			return tolower(a.ptr[i]) - tolower(b.ptr[i]);
	return (a.len > b.len) - (a.len < b.len);
}

static enum status
put_lower(void *of, struct str text, struct buf *key)
{
	(void)of;
	for (size_t i = 0; i < text.len; i++)
		buf_append_byte(key, (uint8_t)tolower(text.ptr[i]));
	return buf_status(key);
}

static void
strings_compare_as_a_collation_says(void **state)
{
	const struct bson_texts lower = { .compare = compare_lower, .put_key = put_lower };
	const struct bson_value a = BSON_OF_STRING(STR("Abc")), b = BSON_OF_STRING(STR("aBC"));
	struct buf keys[2] = { BUF_INIT(TEST_BYTES), BUF_INIT(TEST_BYTES) };
	bool cut = false;

	(void)state;
	assert_int_equal(bson_compare_values(&a, &b, &lower), 0);
	assert_int_not_equal(bson_compare_values(&a, &b, NULL), 0);
	assert_int_equal(bson_key_put(&keys[0], &a, WHOLE, &lower, &cut), STATUS_OK);
	assert_int_equal(bson_key_put(&keys[1], &b, WHOLE, &lower, &cut), STATUS_OK);
	assert_true(str_eq(buf_str(&keys[0]), buf_str(&keys[1])));
	assert_false(cut);
	buf_release(&keys[0]);
	buf_release(&keys[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_all_types_compare_exactly),
		cmocka_unit_test(keys_sort_as_values_do),
		cmocka_unit_test(cut_keys_are_in_order_and_say_so),
		cmocka_unit_test(long_values_need_little_room),
		cmocka_unit_test(types_have_mongodb_s_ranks),
		cmocka_unit_test(strings_compare_as_a_collation_says),
	};

	return cmocka_run_group_tests_name("bson_order", tests, NULL, NULL);
}
