#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kv/tuple.h"

enum {
	MAX_BYTES = 1 << 20,
};

static void
assert_bytes(const struct buf *b, struct str expected)
{
	assert_int_equal(buf_status(b), STATUS_OK);
	assert_int_equal(b->len, expected.len);
	assert_memory_equal(b->ptr, expected.ptr, expected.len);
}

/* What `call` puts into the buffer `b`. */
#define ASSERT_PUTS(call, literal)                                                                 \
	do {                                                                                       \
		struct buf b = BUF_INIT(MAX_BYTES);                                                \
		call;                                                                              \
		assert_bytes(&b, STR(literal));                                                    \
		buf_release(&b);                                                                   \
	} while (0)

#define ASSERT_DRAWN(literal, drawn)                                                               \
	do {                                                                                       \
		struct buf b = BUF_INIT(MAX_BYTES);                                                \
		tuple_draw(STR(literal), &b);                                                      \
		assert_bytes(&b, STR(drawn));                                                      \
		buf_release(&b);                                                                   \
	} while (0)

/* ---- Published vectors ---- */

static void
strings_match_the_published_vectors(void **state)
{
	(void)state;
	ASSERT_PUTS(tuple_put_bytes(&b, STR("foo\x00"
					    "bar")),
		    "\x01"
		    "foo\x00\xff"
		    "bar\x00");
	ASSERT_PUTS(tuple_put_str(&b, STR("F\xc3\x94O\x00"
					  "bar")),
		    "\x02"
		    "F\xc3\x94O\x00\xff"
		    "bar\x00");
	ASSERT_PUTS(tuple_put_bytes(&b, STR("")), "\x01\x00");
	ASSERT_PUTS(tuple_put_bytes(&b, STR("\x00\x00")), "\x01\x00\xff\x00\xff\x00");
}

static void
nested_tuples_match_the_published_vectors(void **state)
{
	struct buf whole = BUF_INIT(MAX_BYTES);

	(void)state;
	tuple_open(&whole);
	tuple_put_bytes(&whole, STR("foo\x00"
				    "bar"));
	tuple_put_nested_null(&whole);
	tuple_open(&whole);
	tuple_close(&whole);
	tuple_close(&whole);
	assert_bytes(&whole, STR("\x05\x01"
				 "foo\x00\xff"
				 "bar\x00\x00\xff\x05\x00\x00"));
	buf_release(&whole);
	ASSERT_PUTS((tuple_open(&b), tuple_close(&b)), "\x05\x00");
	ASSERT_PUTS((tuple_open(&b), tuple_put_nested_null(&b), tuple_close(&b)),
		    "\x05\x00\xff\x00");
}

static void
integers_match_the_published_vectors(void **state)
{
	(void)state;
	ASSERT_PUTS(tuple_put_i64(&b, -5551212), "\x11\xabK\x93");
	ASSERT_PUTS(tuple_put_i64(&b, 0), "\x14");
	ASSERT_PUTS(tuple_put_u64(&b, 0), "\x14");
	ASSERT_PUTS(tuple_put_i64(&b, 1), "\x15\x01");
	ASSERT_PUTS(tuple_put_i64(&b, -1), "\x13\xfe");
	ASSERT_PUTS(tuple_put_i64(&b, 255), "\x15\xff");
	ASSERT_PUTS(tuple_put_i64(&b, -255), "\x13"
					     "\x00");
	ASSERT_PUTS(tuple_put_i64(&b, 256), "\x16\x01\x00");
	ASSERT_PUTS(tuple_put_i64(&b, -256), "\x12\xfe\xff");
	ASSERT_PUTS(tuple_put_i64(&b, 65535), "\x16\xff\xff");
	ASSERT_PUTS(tuple_put_i64(&b, INT64_MAX), "\x1c\x7f\xff\xff\xff\xff\xff\xff\xff");
	ASSERT_PUTS(tuple_put_i64(&b, INT64_MIN), "\x0c\x7f\xff\xff\xff\xff\xff\xff\xff");
	ASSERT_PUTS(tuple_put_u64(&b, UINT64_MAX), "\x1c\xff\xff\xff\xff\xff\xff\xff\xff");
	/* 2^64 and its negative, as the Python and Java bindings have them. */
	ASSERT_PUTS(tuple_put_bigint(&b, false, STR("\x01\0\0\0\0\0\0\0\0")),
		    "\x1d\x09\x01\x00\x00\x00\x00\x00\x00\x00\x00");
	ASSERT_PUTS(tuple_put_bigint(&b, true, STR("\x01\0\0\0\0\0\0\0\0")),
		    "\x0b\xf6\xfe\xff\xff\xff\xff\xff\xff\xff\xff");
	/* -(2^64 - 1) still has eight bytes. */
	ASSERT_PUTS(tuple_put_bigint(&b, true, STR("\0\xff\xff\xff\xff\xff\xff\xff\xff")),
		    "\x0c\x00\x00\x00\x00\x00\x00\x00\x00");
	ASSERT_PUTS(tuple_put_bigint(&b, true, STR("\0\0")), "\x14");
}

static void
other_kinds_match_the_published_vectors(void **state)
{
	static const uint8_t bytes[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

	(void)state;
	ASSERT_PUTS(tuple_put_float(&b, -42.0f), "\x20\x3d\xd7\xff\xff");
	ASSERT_PUTS(tuple_put_float(&b, 3.14f), "\x20\xc0\x48\xf5\xc3");
	ASSERT_PUTS(tuple_put_double(&b, 3.14), "\x21\xc0\x09\x1e\xb8\x51\xeb\x85\x1f");
	ASSERT_PUTS(tuple_put_double(&b, -3.14), "\x21\x3f\xf6\xe1\x47\xae\x14\x7a\xe0");
	ASSERT_PUTS(tuple_put_double(&b, 0.0), "\x21\x80\0\0\0\0\0\0\0");
	ASSERT_PUTS(tuple_put_double(&b, -0.0), "\x21\x7f\xff\xff\xff\xff\xff\xff\xff");
	ASSERT_PUTS(tuple_put_null(&b), "\x00");
	ASSERT_PUTS(tuple_put_bool(&b, false), "\x26");
	ASSERT_PUTS(tuple_put_bool(&b, true), "\x27");
	ASSERT_PUTS(tuple_put_uuid(&b, bytes), "\x30\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
					       "\x10");
	ASSERT_PUTS((tuple_put_null(&b), assert_int_equal(tuple_put_versionstamp(&b, bytes), 2)),
		    "\x00\x33\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x0c");
}

/* ---- Random values, to compare orders and go there and back ---- */

enum {
	RANDOM_DEPTH = 3,
	RANDOM_ITEMS = 4,
	RANDOM_BYTES = 12,
};

struct value {
	enum tuple_kind kind;
	char bytes[RANDOM_BYTES + 4]; /* strings; bigints' magnitude; uuid; stamp */
	size_t len;
	bool negative;
	uint64_t magnitude;
	double d;
	struct value *items;
	size_t count;
};

static void
random_bytes(struct rand_seq *r, struct value *ret, size_t len)
{
	static const uint8_t palette[] = { 0x00, 0xff, 0x01, 0xfe, 'a', 'b', 0x05 };

	ret->len = len;
	for (size_t i = 0; i < len; i++)
		ret->bytes[i] = (char)palette[rand_seq_below(r, sizeof(palette))];
}

static void
random_value(struct rand_seq *r, unsigned depth, struct value *ret)
{
	*ret = (struct value){ .kind = (enum tuple_kind)rand_seq_below(r, 12) };
	if (ret->kind == TUPLE_NESTED && depth == RANDOM_DEPTH)
		ret->kind = TUPLE_NULL;
	switch (ret->kind) {
	case TUPLE_BYTES:
	case TUPLE_STRING:
		random_bytes(r, ret, rand_seq_below(r, RANDOM_BYTES));
		break;
	case TUPLE_NESTED:
		ret->count = rand_seq_below(r, RANDOM_ITEMS + 1);
		ret->items = mem_zalloc(RANDOM_ITEMS * sizeof(*ret->items));
		assert_non_null(ret->items);
		for (size_t i = 0; i < ret->count; i++)
			random_value(r, depth + 1, &ret->items[i]);
		break;
	case TUPLE_INT:
		ret->magnitude = rand_seq_next(r) >> rand_seq_below(r, 64);
		ret->negative = ret->magnitude && ret->magnitude <= UINT64_C(1) << 63 &&
				rand_seq_below(r, 2);
		break;
	case TUPLE_BIGINT:
		random_bytes(r, ret, 9 + rand_seq_below(r, RANDOM_BYTES - 9));
		ret->bytes[0] = (char)(1 + rand_seq_below(r, 255));
		ret->negative = rand_seq_below(r, 2);
		break;
	case TUPLE_FLOAT:
		ret->d = (double)(float)((double)(int64_t)rand_seq_next(r) / 1e6);
		break;
	case TUPLE_DOUBLE:
		ret->d = (double)(int64_t)rand_seq_next(r) / (double)(1 + rand_seq_below(r, 1000));
		break;
	case TUPLE_UUID:
		random_bytes(r, ret, 16);
		break;
	case TUPLE_VERSIONSTAMP:
		random_bytes(r, ret, 12);
		break;
	case TUPLE_NULL:
	case TUPLE_FALSE:
	case TUPLE_TRUE:
		break;
	}
}

static void
value_release(struct value *v)
{
	for (size_t i = 0; i < v->count; i++)
		value_release(&v->items[i]);
	mem_free(v->items);
}

static void
put_value(struct buf *b, const struct value *v, bool nested)
{
	struct str bytes = str_of(v->bytes, v->len);

	switch (v->kind) {
	case TUPLE_NULL:
		if (nested)
			tuple_put_nested_null(b);
		else
			tuple_put_null(b);
		break;
	case TUPLE_BYTES:
		tuple_put_bytes(b, bytes);
		break;
	case TUPLE_STRING:
		tuple_put_str(b, bytes);
		break;
	case TUPLE_NESTED:
		tuple_open(b);
		for (size_t i = 0; i < v->count; i++)
			put_value(b, &v->items[i], true);
		tuple_close(b);
		break;
	case TUPLE_INT:
		if (v->negative)
			tuple_put_i64(b, (int64_t)-v->magnitude);
		else
			tuple_put_u64(b, v->magnitude);
		break;
	case TUPLE_BIGINT:
		tuple_put_bigint(b, v->negative, bytes);
		break;
	case TUPLE_FLOAT:
		tuple_put_float(b, (float)v->d);
		break;
	case TUPLE_DOUBLE:
		tuple_put_double(b, v->d);
		break;
	case TUPLE_FALSE:
	case TUPLE_TRUE:
		tuple_put_bool(b, v->kind == TUPLE_TRUE);
		break;
	case TUPLE_UUID:
		tuple_put_uuid(b, (const uint8_t *)v->bytes);
		break;
	case TUPLE_VERSIONSTAMP:
		tuple_put_versionstamp(b, (const uint8_t *)v->bytes);
		break;
	}
}

static int
sign(int n)
{
	return (n > 0) - (n < 0);
}

/* Integers of any size: sign first, then the magnitude's length, then its bytes. */
static int
compare_ints(const struct value *a, const struct value *b)
{
	struct tuple_elem e;
	struct buf m[2] = { BUF_INIT(MAX_BYTES), BUF_INIT(MAX_BYTES) };
	const struct value *v[2] = { a, b };
	int c;

	if (a->negative != b->negative)
		return a->negative ? -1 : 1;
	for (int i = 0; i < 2; i++) {
		if (v[i]->kind == TUPLE_BIGINT) {
			buf_append(&m[i], v[i]->bytes, v[i]->len);
		} else {
			e = (struct tuple_elem){ .kind = TUPLE_INT, .magnitude = v[i]->magnitude };
			tuple_bigint(&e, &m[i]);
		}
	}
	c = (m[0].len > m[1].len) - (m[0].len < m[1].len);
	if (!c)
		c = sign(str_cmp(buf_str(&m[0]), buf_str(&m[1])));
	buf_release(&m[0]);
	buf_release(&m[1]);
	return a->negative ? -c : c;
}

static int
compare_values(const struct value *a, const struct value *b)
{
	enum tuple_kind ka = a->kind == TUPLE_BIGINT ? TUPLE_INT : a->kind;
	enum tuple_kind kb = b->kind == TUPLE_BIGINT ? TUPLE_INT : b->kind;

	if (ka != kb)
		return ka < kb ? -1 : 1;
	if (ka == TUPLE_INT)
		return compare_ints(a, b);
	if (ka == TUPLE_FLOAT || ka == TUPLE_DOUBLE)
		return (a->d > b->d) - (a->d < b->d);
	if (ka == TUPLE_NESTED) {
		for (size_t i = 0; i < a->count && i < b->count; i++) {
			int c = compare_values(&a->items[i], &b->items[i]);

			if (c)
				return c;
		}
		return (a->count > b->count) - (a->count < b->count);
	}
	return sign(str_cmp(str_of(a->bytes, a->len), str_of(b->bytes, b->len)));
}

static void
assert_same(const struct tuple_elem *e, const struct value *v)
{
	struct buf b = BUF_INIT(MAX_BYTES);
	struct tuple_reader r;

	assert_int_equal(e->kind, v->kind);
	switch (e->kind) {
	case TUPLE_BYTES:
	case TUPLE_STRING:
		tuple_unescape(e, &b);
		assert_bytes(&b, str_of(v->bytes, v->len));
		break;
	case TUPLE_NESTED:
		r = tuple_reader_nested(e);
		for (size_t i = 0; i < v->count; i++) {
			struct tuple_elem item;

			assert_int_equal(tuple_next(&r, &item), STATUS_OK);
			assert_same(&item, &v->items[i]);
		}
		assert_int_equal(r.rest.len, 0);
		break;
	case TUPLE_INT:
		assert_true(e->magnitude == v->magnitude && e->negative == v->negative);
		break;
	case TUPLE_BIGINT:
		assert_int_equal(e->negative, v->negative);
		tuple_bigint(e, &b);
		assert_bytes(&b, str_of(v->bytes, v->len));
		break;
	case TUPLE_FLOAT:
		assert_true((double)e->f == v->d);
		break;
	case TUPLE_DOUBLE:
		assert_true(e->d == v->d);
		break;
	case TUPLE_UUID:
	case TUPLE_VERSIONSTAMP:
		assert_int_equal(e->raw.len, v->len);
		assert_memory_equal(e->raw.ptr, v->bytes, v->len);
		break;
	case TUPLE_NULL:
	case TUPLE_FALSE:
	case TUPLE_TRUE:
		break;
	}
	buf_release(&b);
}

static void
random_tuples_come_back_and_keep_their_order(void **state)
{
	struct rand_seq r = { 20240607 };
	struct buf last = BUF_INIT(MAX_BYTES);
	struct buf now = BUF_INIT(MAX_BYTES);
	struct value before = { .kind = TUPLE_NULL };

	(void)state;
	put_value(&last, &before, false);
	for (int i = 0; i < 50000; i++) {
		struct tuple_reader reader;
		struct tuple_elem e;
		struct value v;
		struct buf swap;

		random_value(&r, 0, &v);
		buf_clear(&now);
		put_value(&now, &v, false);
		assert_int_equal(buf_status(&now), STATUS_OK);
		reader = tuple_reader(buf_str(&now));
		assert_int_equal(tuple_next(&reader, &e), STATUS_OK);
		assert_int_equal(e.encoding.len, now.len);
		assert_same(&e, &v);
		assert_int_equal(tuple_next(&reader, &e), STATUS_NOT_FOUND);
		assert_int_equal(sign(str_cmp(buf_str(&last), buf_str(&now))),
				 compare_values(&before, &v));
		value_release(&before);
		before = v;
		swap = last;
		last = now;
		now = swap;
	}
	value_release(&before);
	buf_release(&last);
	buf_release(&now);
}

static void
every_bit_of_a_double_comes_back(void **state)
{
	static const uint64_t bits[] = {
		0x7ff8000000000001,
		0xfff8000000000001,
		0x7ff0000000000000,
		0xfff0000000000000,
		0x8000000000000000,
		0,
		1,
		0xffffffffffffffff,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		struct buf b = BUF_INIT(MAX_BYTES);
		struct tuple_reader r;
		struct tuple_elem e;
		double d;
		uint64_t back;

		memcpy(&d, &bits[i], sizeof(d));
		tuple_put_double(&b, d);
		r = tuple_reader(buf_str(&b));
		assert_int_equal(tuple_next(&r, &e), STATUS_OK);
		memcpy(&back, &e.d, sizeof(back));
		assert_true(back == bits[i]);
		buf_release(&b);
	}
}

/* ---- Typed reading ---- */

static void
an_element_that_must_be_there_is_missed_at_the_end(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);
	struct tuple_reader r;
	struct tuple_elem e;

	(void)state;
	tuple_put_u64(&b, 7);
	r = tuple_reader(buf_str(&b));
	assert_int_equal(tuple_next_elem(&r, &e), STATUS_OK);
	assert_int_equal(e.kind, TUPLE_INT);
	assert_int_equal(tuple_next_elem(&r, &e), STATUS_CORRUPT);
	assert_int_equal(tuple_next(&r, &e), STATUS_NOT_FOUND);
	buf_release(&b);
}

static void
typed_readers_take_what_fits_and_nothing_else(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);
	struct buf scratch = BUF_INIT(MAX_BYTES);
	struct tuple_reader r;
	struct tuple_reader nested;
	struct str s;
	uint64_t u;
	int64_t i;
	bool flag;

	(void)state;
	tuple_put_u64(&b, UINT64_MAX);
	tuple_put_i64(&b, INT64_MIN);
	tuple_put_i64(&b, INT64_MAX);
	tuple_put_u64(&b, (uint64_t)INT64_MAX + 1);
	tuple_put_bool(&b, true);
	tuple_put_str(&b, STR("a\0b"));
	tuple_put_bytes(&b, STR("plain"));
	tuple_open(&b);
	tuple_put_u64(&b, 7);
	tuple_close(&b);
	r = tuple_reader(buf_str(&b));
	assert_int_equal(tuple_next_i64(&r, &i), STATUS_CORRUPT);
	assert_int_equal(tuple_next_u64(&r, &u), STATUS_OK);
	assert_true(u == UINT64_MAX);
	assert_int_equal(tuple_next_u64(&r, &u), STATUS_CORRUPT);
	assert_int_equal(tuple_next_i64(&r, &i), STATUS_OK);
	assert_true(i == INT64_MIN);
	assert_int_equal(tuple_next_i64(&r, &i), STATUS_OK);
	assert_true(i == INT64_MAX);
	assert_int_equal(tuple_next_i64(&r, &i), STATUS_CORRUPT);
	assert_int_equal(tuple_next_u64(&r, &u), STATUS_OK);
	assert_true(u == (uint64_t)INT64_MAX + 1);
	assert_int_equal(tuple_next_str(&r, &scratch, &s), STATUS_CORRUPT);
	assert_int_equal(tuple_next_bool(&r, &flag), STATUS_OK);
	assert_true(flag);
	assert_int_equal(tuple_next_str(&r, &scratch, &s), STATUS_OK);
	assert_true(str_eq(s, STR("a\0b")));
	assert_int_equal(tuple_next_str(&r, &scratch, &s), STATUS_CORRUPT);
	assert_int_equal(tuple_next_bytes(&r, &scratch, &s), STATUS_OK);
	assert_true(str_eq(s, STR("plain")));
	assert_int_equal(tuple_next_nested(&r, &nested), STATUS_OK);
	assert_int_equal(tuple_next_u64(&nested, &u), STATUS_OK);
	assert_int_equal(u, 7);
	assert_int_equal(tuple_next_u64(&nested, &u), STATUS_CORRUPT);
	assert_int_equal(tuple_next_u64(&r, &u), STATUS_CORRUPT);
	r = tuple_reader((struct str){ NULL, 0 });
	assert_int_equal(tuple_next_u64(&r, &u), STATUS_CORRUPT);
	assert_int_equal(tuple_next_u64_any(&r, &u), STATUS_CORRUPT);
	buf_release(&b);
	buf_release(&scratch);
}

/* 7, ("a", "b\0b", "c"), and perhaps a boolean: 0 is none. */
static void
put_list(struct buf *b, int with_bool)
{
	buf_clear(b);
	tuple_put_u64(b, 7);
	tuple_open(b);
	tuple_put_bytes(b, STR("a"));
	tuple_put_bytes(b, STR("b\0b"));
	tuple_put_str(b, STR("c"));
	tuple_close(b);
	if (with_bool)
		tuple_put_bool(b, with_bool == 1);
	assert_int_equal(buf_status(b), STATUS_OK);
}

static void
last_nested_tuple_is_taken_without_looking_through_it(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);
	struct tuple_reader r, whole, last;
	bool flag = false;
	uint64_t u;

	(void)state;
	for (int with_bool = 0; with_bool < 3; with_bool++) {
		put_list(&b, with_bool);
		r = tuple_reader(buf_str(&b));
		assert_int_equal(tuple_next_u64(&r, &u), STATUS_OK);
		whole = r;
		assert_int_equal(tuple_next_nested(&whole, &last), STATUS_OK);
		whole = last;
		assert_int_equal(tuple_last_nested(&r, &last), STATUS_OK);
		assert_true(last.nested && str_eq(last.rest, whole.rest));
		assert_int_equal(r.rest.len, with_bool > 0);
		if (with_bool)
			assert_int_equal(tuple_next_bool(&r, &flag), STATUS_OK);
		assert_true(!with_bool || flag == (with_bool == 1));
	}
	/* Cut anywhere, or not nested: the end is missing. */
	for (size_t n = 0; n < b.len - 1; n++) {
		r = tuple_reader(str_of(b.ptr, n));
		if (tuple_next_u64(&r, &u) == STATUS_OK && b.ptr[n - 1] != '\0')
			assert_int_equal(tuple_last_nested(&r, &last), STATUS_CORRUPT);
	}
	buf_release(&b);
}

static void
strings_are_passed_over_as_they_are(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);
	struct tuple_reader r, list;
	struct tuple_elem e;
	struct str all;
	uint64_t u;

	(void)state;
	put_list(&b, 1);
	for (size_t n = 0; n < 5; n++) {
		struct str skipped;

		r = tuple_reader(buf_str(&b));
		assert_int_equal(tuple_next_u64(&r, &u), STATUS_OK);
		assert_int_equal(tuple_last_nested(&r, &list), STATUS_OK);
		r = list;
		assert_int_equal(tuple_skip_strings(&r, n, &skipped), STATUS_OK);
		for (size_t i = 0; i < n && i < 3; i++)
			assert_int_equal(tuple_next(&list, &e), STATUS_OK);
		assert_true(str_eq(list.rest, r.rest));
		assert_ptr_equal(skipped.ptr + skipped.len, r.rest.ptr);
	}
	buf_clear(&b);
	tuple_put_u64(&b, 1);
	r = tuple_reader(buf_str(&b));
	assert_int_equal(tuple_skip_strings(&r, 1, &all), STATUS_CORRUPT);
	r = tuple_reader(STR("\x01"
			     "no end"));
	assert_int_equal(tuple_skip_strings(&r, 1, &all), STATUS_CORRUPT);
	buf_release(&b);
}

static void
plain_strings_are_taken_and_nothing_else(void **state)
{
	static const struct str others[] = {
		STR(""),
		STR("\x02"),
		STR("\x02no end"),
		STR("\x02\x00\xff"),
		STR("\x02"
		    "a\x00\xff"
		    "b\x00"),
		STR("\x01"
		    "bytes\x00"),
		STR("\x15\x01"),
	};
	struct buf b = BUF_INIT(MAX_BYTES);
	struct tuple_reader r;
	struct str s;
	uint64_t u;

	(void)state;
	tuple_put_str(&b, STR(""));
	tuple_put_str(&b, STR("text"));
	tuple_put_bytes(&b, STR("bytes"));
	tuple_put_u64(&b, 255);
	tuple_put_str(&b, STR("last"));
	r = tuple_reader(buf_str(&b));
	assert_true(tuple_next_plain(&r, TUPLE_STRING, &s) && str_eq(s, STR("")));
	assert_true(tuple_next_plain(&r, TUPLE_STRING, &s) && str_eq(s, STR("text")));
	assert_false(tuple_next_plain(&r, TUPLE_STRING, &s));
	assert_true(tuple_next_plain(&r, TUPLE_BYTES, &s) && str_eq(s, STR("bytes")));
	assert_int_equal(tuple_next_u64(&r, &u), STATUS_OK);
	assert_int_equal(u, 255);
	assert_true(tuple_next_plain(&r, TUPLE_STRING, &s) && str_eq(s, STR("last")));
	assert_int_equal(r.rest.len, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		r = tuple_reader(others[i]);
		assert_false(tuple_next_plain(&r, TUPLE_STRING, &s));
		assert_true(str_eq(r.rest, others[i]));
	}
	buf_release(&b);
}

static void
negative_below_64_bits_is_a_big_integer(void **state)
{
	struct tuple_reader r = tuple_reader(STR("\x0c\0\0\0\0\0\0\0\0"));
	struct buf b = BUF_INIT(MAX_BYTES);
	struct tuple_elem e;

	(void)state;
	assert_int_equal(tuple_next(&r, &e), STATUS_OK);
	assert_int_equal(e.kind, TUPLE_BIGINT);
	assert_true(e.negative);
	tuple_bigint(&e, &b);
	assert_bytes(&b, STR("\xff\xff\xff\xff\xff\xff\xff\xff"));
	buf_release(&b);
}

/* ---- What is not a tuple ---- */

static void
malformed_bytes_are_corrupt_and_move_nothing(void **state)
{
	static const struct str bad[] = {
		STR("\x01"),
		STR("\x02"
		    "abc"),
		STR("\x02"
		    "abc\x00\xff"),
		STR("\x15"),
		STR("\x16\x01"),
		STR("\x1c\1\2\3\4\5\6\7"),
		STR("\x15\x00"),     /* zero in one byte */
		STR("\x16\x00\x01"), /* a leading zero */
		STR("\x12\xff\xfe"), /* likewise, negative */
		STR("\x1d"),
		STR("\x1d\x09\1\2\3"),
		STR("\x1d\x08\1\2\3\4\5\6\7\x08"),     /* has a shorter form */
		STR("\x1d\x09\0\1\2\3\4\5\6\7\x08"),   /* a leading zero */
		STR("\x0b\xf6\xff\1\2\3\4\5\6\7\x08"), /* likewise, negative */
		STR("\x20\1\2\3"),
		STR("\x21\1\2\3\4\5\6\7"),
		STR("\x30\1"),
		STR("\x33\1"),
		STR("\x05"),
		STR("\x05\x00\xff"),
		STR("\x05\x15\x01"),
		STR("\x05\x03\x00"),
		STR("\x05\x13\xff\x00"), /* malformed inside */
		STR("\x05\x05\x16\x00\x01\x00\x00"),
		STR("\x03"),
		STR("\x0a"),
		STR("\x1e"),
		STR("\x22"),
		STR("\x25"),
		STR("\x31\1\2\3\4\5\6\7\x08"),
		STR("\x32"),
		STR("\x40"),
		STR("\xff"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tuple_reader r = tuple_reader(bad[i]);
		struct tuple_elem e;

		if (tuple_next(&r, &e) != STATUS_CORRUPT)
			fail_msg("malformed tuple %zu was read", i);
		assert_ptr_equal(r.rest.ptr, bad[i].ptr);
		assert_int_equal(r.rest.len, bad[i].len);
	}
}

static void
nesting_has_a_limit(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);
	struct tuple_reader r;
	struct tuple_elem e;

	(void)state;
	for (int depth = TUPLE_MAX_DEPTH; depth <= TUPLE_MAX_DEPTH + 1; depth++) {
		buf_clear(&b);
		for (int i = 0; i < depth; i++)
			tuple_open(&b);
		for (int i = 0; i < depth; i++)
			tuple_close(&b);
		r = tuple_reader(buf_str(&b));
		assert_int_equal(tuple_next(&r, &e),
				 depth > TUPLE_MAX_DEPTH ? STATUS_CORRUPT : STATUS_OK);
	}
	buf_release(&b);
}

static void
random_bytes_never_crash_the_reader(void **state)
{
	struct rand_seq r = { 7 };

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t len = rand_seq_below(&r, 40);
		char *bytes = mem_alloc(len); /* of its own, so that an overrun is seen */
		struct buf drawn = BUF_INIT(MAX_BYTES);
		struct tuple_reader reader = tuple_reader(str_of(bytes, len));
		struct tuple_elem e;

		assert_non_null(bytes);
		for (size_t j = 0; j < len; j++)
			bytes[j] = (char)(rand_seq_below(&r, 2) ? rand_seq_below(&r, 0x34)
								: rand_seq_next(&r));
		while (tuple_next(&reader, &e) == STATUS_OK)
			assert_true(e.encoding.len > 0);
		tuple_draw(str_of(bytes, len), &drawn);
		assert_int_equal(buf_status(&drawn), STATUS_OK);
		buf_release(&drawn);
		mem_free(bytes);
	}
}

/* What tuple_skip() says about the place of an element that has just been read. */
static void
assert_skipped(struct str all, size_t at, const struct tuple_elem *e)
{
	uint8_t code = (uint8_t)all.ptr[at];
	size_t end = at + e->encoding.len;
	bool integer = code >= TUPLE_CODE_INT_LEAST && code <= TUPLE_CODE_INT_MOST;
	bool text = e->kind == TUPLE_BYTES || e->kind == TUPLE_STRING;
	bool truth = e->kind == TUPLE_FALSE || e->kind == TUPLE_TRUE;

	assert_int_equal(tuple_skip(all, at, TUPLE_SKIP_ANY), end);
	assert_int_equal(tuple_skip(all, at, TUPLE_SKIP_INT), integer ? end : 0);
	assert_int_equal(tuple_skip(all, at, TUPLE_SKIP_TEXT), text ? end : 0);
	assert_int_equal(tuple_skip(all, at, TUPLE_SKIP_BOOL), truth ? end : 0);
}

static void
elements_are_skipped_as_they_are_read(void **state)
{
	static const uint8_t often[] = { 0x00, 0x00, 0xff, 0x01, 0x02, 0x14, 0x15, 0x26 };
	struct rand_seq r = { 11 };
	unsigned escaped = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t len = rand_seq_below(&r, 24);
		char *bytes = mem_alloc(len); /* of its own, so that an overrun is seen */
		struct str all = str_of(bytes, len);
		struct tuple_reader reader = tuple_reader(all);
		struct tuple_elem e;
		size_t at = 0;

		assert_non_null(bytes);
		for (size_t j = 0; j < len; j++)
			bytes[j] = (char)often[rand_seq_below(&r, sizeof(often))];
		while (tuple_next(&reader, &e) == STATUS_OK) {
			assert_skipped(all, at, &e);
			at = len - reader.rest.len;
			escaped += (e.kind == TUPLE_BYTES || e.kind == TUPLE_STRING) && e.escaped;
		}
		if (at < len)
			assert_int_equal(tuple_skip(all, at, TUPLE_SKIP_TEXT), 0);
		assert_int_equal(tuple_skip(all, len, TUPLE_SKIP_TEXT), 0);
		assert_int_equal(tuple_skip(all, len, TUPLE_SKIP_INT), 0);
		mem_free(bytes);
	}
	assert_true(escaped > 100);
}

static void
integers_longer_than_255_bytes_fail_the_buffer(void **state)
{
	static const char ones[257] = { [0 ... 256] = 1 };
	struct buf b = BUF_INIT(MAX_BYTES);

	(void)state;
	tuple_put_bigint(&b, false, str_of(ones, 255));
	assert_int_equal(buf_status(&b), STATUS_OK);
	assert_int_equal(b.len, 257);
	tuple_put_bigint(&b, false, str_of(ones, 256));
	assert_int_equal(buf_status(&b), STATUS_LIMIT);
	buf_release(&b);
}

/* ---- Ranges and drawings ---- */

static void
prefix_end_is_the_first_key_behind_the_prefix(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);

	(void)state;
	assert_int_equal(tuple_prefix_end(STR("ab"), &b), STATUS_OK);
	assert_bytes(&b, STR("ac"));
	buf_clear(&b);
	assert_int_equal(tuple_prefix_end(STR("a\xff\xff"), &b), STATUS_OK);
	assert_bytes(&b, STR("b"));
	buf_clear(&b);
	assert_int_equal(tuple_prefix_end(STR("\xff\xff"), &b), STATUS_INVALID);
	assert_int_equal(tuple_prefix_end(STR(""), &b), STATUS_INVALID);
	assert_int_equal(b.len, 0);
	buf_release(&b);
}

static void
tuples_are_drawn_as_people_write_them(void **state)
{
	(void)state;
	ASSERT_DRAWN("", "()");
	ASSERT_DRAWN("\x02mydoc\x00\x27\x15\x03\x01\x9b\x00\xff\x00",
		     "(\"mydoc\", true, 3, \\x9b\\x00)");
	ASSERT_DRAWN("\x02"
		     "a\"\\\n\x01\xc3\xa9\x00\x14\x13\xfe\x00\x26",
		     "(\"a\\\"\\\\\\n\\x01\xc3\xa9\", 0, -1, null, false)");
	ASSERT_DRAWN("\x05\x05\x00\x00\xff\x15\x07\x00\x05\x00", "(((), null, 7), ())");
	ASSERT_DRAWN("\x21\xbf\xf0\0\0\0\0\0\0\x20\xc0\x48\xf5\xc3", "(1.0, 3.14)");
	/* With as many digits as it takes to tell a number from its neighbours. */
	ASSERT_DRAWN("\x21\xbf\xb9\x99\x99\x99\x99\x99\x9a\x20\xbd\xcc\xcc\xcd", "(0.1, 0.1)");
	ASSERT_DRAWN("\x21\xbf\xd3\x33\x33\x33\x33\x33\x34", "(0.30000000000000004)");
	ASSERT_DRAWN("\x20\xcb\x80\0\1", "(16777218.0)");
	ASSERT_DRAWN("\x21\xff\xf0\0\0\0\0\0\0\x20\0\x7f\xff\xff", "(inf, -inf)");
	ASSERT_DRAWN("\x1d\x09\x01\0\0\0\0\0\0\0\0\x0b\xf6\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
		     "(0x010000000000000000, -0x010000000000000000)");
	ASSERT_DRAWN("\x30\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10",
		     "(uuid:01020304-0506-0708-090a-0b0c0d0e0f10)");
	ASSERT_DRAWN("\x33\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x01\x00",
		     "(versionstamp:0102030405060708090a0b0c, '')");
	ASSERT_DRAWN("\x01"
		     "0123456789abcdef0123456789abcdefX\x00",
		     "(\\x30\\x31\\x32\\x33\\x34\\x35\\x36\\x37\\x38\\x39\\x61\\x62\\x63\\x64\\x65"
		     "\\x66...(33 bytes))");
}

static void
each_byte_of_ascii_is_drawn_as_it_is_or_escaped(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);
	struct buf drawn = BUF_INIT(MAX_BYTES);
	struct buf expected = BUF_INIT(MAX_BYTES);

	(void)state;
	for (unsigned c = 0; c < 0x80; c++) {
		const char text[] = { 'a', (char)c, 'z' };

		buf_clear(&b);
		buf_clear(&drawn);
		buf_clear(&expected);
		tuple_put_str(&b, str_of(text, sizeof(text)));
		tuple_draw(buf_str(&b), &drawn);
		if (c == '\n')
			buf_append_cstr(&expected, "(\"a\\nz\")");
		else if (c < 0x20 || c == 0x7f)
			buf_printf(&expected, "(\"a\\x%02xz\")", c);
		else
			buf_printf(&expected, "(\"a%s%cz\")", c == '"' || c == '\\' ? "\\" : "",
				   (int)c);
		assert_bytes(&drawn, buf_str(&expected));
	}
	buf_release(&b);
	buf_release(&drawn);
	buf_release(&expected);
}

static void
bytes_that_are_no_tuple_are_drawn_escaped(void **state)
{
	(void)state;
	ASSERT_DRAWN("\x15\x07\xffmetadata", "\\x15\\x07\\xffmetadata");
	ASSERT_DRAWN("\x02open", "\\x02open");
}

static void
memory_shortage_is_remembered_by_the_buffer(void **state)
{
	struct buf b = BUF_INIT(MAX_BYTES);

	(void)state;
	mem_fail_after(1);
	tuple_put_str(&b, STR("x"));
	tuple_put_versionstamp(&b, (const uint8_t *)"123456789012");
	mem_fail_after(0);
	assert_int_equal(buf_status(&b), STATUS_NOMEM);
	buf_clear(&b);
	mem_fail_after(2);
	tuple_draw(STR("\x02string\x00"), &b);
	mem_fail_after(0);
	assert_int_equal(buf_status(&b), STATUS_NOMEM);
	buf_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_match_the_published_vectors),
		cmocka_unit_test(nested_tuples_match_the_published_vectors),
		cmocka_unit_test(integers_match_the_published_vectors),
		cmocka_unit_test(other_kinds_match_the_published_vectors),
		cmocka_unit_test(random_tuples_come_back_and_keep_their_order),
		cmocka_unit_test(every_bit_of_a_double_comes_back),
		cmocka_unit_test(an_element_that_must_be_there_is_missed_at_the_end),
		cmocka_unit_test(typed_readers_take_what_fits_and_nothing_else),
		cmocka_unit_test(last_nested_tuple_is_taken_without_looking_through_it),
		cmocka_unit_test(strings_are_passed_over_as_they_are),
		cmocka_unit_test(plain_strings_are_taken_and_nothing_else),
		cmocka_unit_test(negative_below_64_bits_is_a_big_integer),
		cmocka_unit_test(malformed_bytes_are_corrupt_and_move_nothing),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(random_bytes_never_crash_the_reader),
		cmocka_unit_test(elements_are_skipped_as_they_are_read),
		cmocka_unit_test(integers_longer_than_255_bytes_fail_the_buffer),
		cmocka_unit_test(prefix_end_is_the_first_key_behind_the_prefix),
		cmocka_unit_test(tuples_are_drawn_as_people_write_them),
		cmocka_unit_test(each_byte_of_ascii_is_drawn_as_it_is_or_escaped),
		cmocka_unit_test(bytes_that_are_no_tuple_are_drawn_escaped),
		cmocka_unit_test(memory_shortage_is_remembered_by_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
