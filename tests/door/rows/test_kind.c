/* Kinds of rows: which bytes are values, and that their ordered bytes are in PostgreSQL's order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/big_endian.h"
#include "base/rand.h"
#include "door/rows/wire/kind.h"

enum {
	MOST_BYTES = 192 * 1024,
	VALUE_BYTES = 64,
};

/* Values are written as hexadecimal digits, or with a "=" in front as text. */
static struct str
value_of(const char *told, char room[static VALUE_BYTES])
{
	struct str s = str_from_cstr(told);

	if (told[0] == '=')
		return str_skip(s, 1);
	assert_true(str_from_hex(s, room));
	return str_of(room, s.len / 2);
}

static void
ordered_of(enum rows_kind kind, const char *told, struct buf *ret)
{
	char room[VALUE_BYTES];
	struct str value = value_of(told, room);

	if (!rows_value_check(kind, value))
		fail_msg("%s is no value of %s", told, rows_kind_name(kind));
	buf_clear(ret);
	assert_int_equal(rows_ordered_put(kind, value, ret), STATUS_OK);
}

/* What PostgreSQL 15 gives for ORDER BY; "~" stands in front of what equals the one before. */
struct order {
	enum rows_kind kind;
	const char *values[24];
};

static const struct order orders[] = {
	{ ROWS_BOOL, { "00", "01" } },
	{ ROWS_INT2, { "8000", "ffff", "0000", "0001", "7fff" } },
	{ ROWS_INT4, { "80000000", "ffffffff", "00000000", "00000100", "7fffffff" } },
	{ ROWS_INT8,
	  { "8000000000000000", "ffffffffffffffff", "0000000000000000", "7fffffffffffffff" } },
	/* -Infinity, -1, -0, 0, the least one, 1, Infinity, NaN, a negative NaN */
	{ ROWS_FLOAT4,
	  { "ff800000", "bf800000", "80000000", "~00000000", "00000001", "3f800000", "7f800000",
	    "7fc00000", "~ffc00001" } },
	{ ROWS_FLOAT8,
	  { "fff0000000000000", "bff0000000000000", "8000000000000000", "~0000000000000000",
	    "3ff0000000000000", "7ff0000000000000", "7ff8000000000000", "~fff8000000000001" } },
	{ ROWS_NUMERIC, { "=-Infinity", "=-100000000000000000000",
			  "=-99.5",     "=-99",
			  "=-10",       "=-1.01",
			  "=-1",        "~=-1.000",
			  "=-0.5",      "=-0.001",
			  "=0",         "~=-0.00",
			  "~=000",      "=0.0001",
			  "=0.001",     "=0.1",
			  "=0.101",     "=1",
			  "=1.1",       "=10",
			  "=100",       "=12345678901234567890",
			  "=Infinity",  "=NaN" } },
	{ ROWS_TEXT, { "=", "=A", "=B", "=a", "=aa", "=b", "=\xc3\xa4" } },
	{ ROWS_BYTES, { "", "00", "0000", "0001", "01", "ff" } },
	/* -infinity, 4714-11-24 BC, 1999-12-31, 2000-01-01, infinity */
	{ ROWS_DATE, { "80000000", "ffda97a7", "ffffffff", "00000000", "7fffffff" } },
	{ ROWS_TIME, { "0000000000000000", "0000000000000001", "000000141dd76000" } },
	/* 01:00+01 and 00:00+00 are one moment: the zone that lies further east comes first */
	{ ROWS_TIMETZ,
	  { "0000000000000000fffff1f0", "00000000d693a400fffff1f0", "000000000000000000000000",
	    "000000000000000000000e10" } },
	{ ROWS_TIMESTAMP,
	  { "8000000000000000", "ffffffffffffffff", "0000000000000000", "0000000000000001",
	    "7fffffffffffffff" } },
	{ ROWS_TIMESTAMPTZ, { "8000000000000000", "0000000000000000", "7fffffffffffffff" } },
	/* -1 day, nothing, 1 µs, 29 days, 30 days = 1 month = 720 hours, 1 month 1 µs */
	{ ROWS_INTERVAL,
	  { "0000000000000000ffffffff00000000", "00000000000000000000000000000000",
	    "00000000000000010000000000000000", "00000000000000000000001d00000000",
	    "00000000000000000000001e00000000", "~00000000000000000000000000000001",
	    "~0000025b7f3d40000000000000000000", "00000000000000010000000000000001" } },
	{ ROWS_UUID,
	  { "00000000000000000000000000000000", "00000000000000000000000000000001",
	    "ff000000000000000000000000000000" } },
	/* 9.0.0.0/8, 10.0.0.0/8, 10.1.2.3/8, 10.0.0.0/16, 10.0.0.0, 10.1.0.0/16, ::/0, ::1 */
	{ ROWS_INET,
	  { "040809000000", "04080a000000", "04080a010203", "04100a000000", "04200a000000",
	    "04100a010000", "060000000000000000000000000000000000",
	    "068000000000000000000000000000000001" } },
	{ ROWS_MACADDR, { "000000000000", "000000000001", "ff0000000000" } },
	{ ROWS_MACADDR8, { "0000000000000000", "ff00000000000000" } },
	/* '', 0, 00000000, 00000000 0000, 00000001, 1, 10 */
	{ ROWS_BITS,
	  { "00000000", "0000000100", "0000000800", "0000000c0000", "0000000801", "0000000180",
	    "0000000280" } },
};

static void
ordered_bytes_are_in_the_order_of_postgresql(void **state)
{
	struct buf a = BUF_SHORT(MOST_BYTES), b = BUF_SHORT(MOST_BYTES);
	bool seen[ROWS_KINDS] = { false };

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		const struct order *o = &orders[i];

		seen[o->kind] = true;
		ordered_of(o->kind, o->values[0], &a);
		for (size_t j = 1; j < 24 && o->values[j]; j++) {
			bool equal = o->values[j][0] == '~';
			int c;

			ordered_of(o->kind, o->values[j] + equal, &b);
			c = str_cmp(buf_str(&a), buf_str(&b));
			if (equal ? c != 0 : c >= 0)
				fail_msg("%s: %s behind %s", rows_kind_name(o->kind), o->values[j],
					 o->values[j - 1]);
			buf_set(&a, buf_str(&b));
		}
	}
	for (unsigned kind = 0; kind < ROWS_KINDS; kind++)
		assert_int_equal(seen[kind], rows_kind_is_key((enum rows_kind)kind));
	buf_release(&a);
	buf_release(&b);
}

/* Ordered bytes give a value that has the same ones. */
static void
expect_back(enum rows_kind kind, const char *told, const char *want)
{
	struct buf ordered = BUF_SHORT(MOST_BYTES), back = BUF_SHORT(MOST_BYTES);
	char room[VALUE_BYTES];

	ordered_of(kind, told, &ordered);
	assert_int_equal(rows_ordered_read(kind, buf_str(&ordered), &back), STATUS_OK);
	if (want && !str_eq(buf_str(&back), value_of(want, room)))
		fail_msg("%s: %s came back otherwise", rows_kind_name(kind), told);
	buf_release(&ordered);
	buf_release(&back);
}

static void
a_value_comes_back_or_one_that_equals_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		for (size_t j = 0; j < 24 && orders[i].values[j]; j++)
			expect_back(orders[i].kind,
				    orders[i].values[j] + (orders[i].values[j][0] == '~'),
				    orders[i].kind == ROWS_INTERVAL ||
						    orders[i].kind == ROWS_NUMERIC ||
						    orders[i].kind == ROWS_FLOAT4 ||
						    orders[i].kind == ROWS_FLOAT8
					    ? NULL
					    : orders[i].values[j]);
	expect_back(ROWS_NUMERIC, "=-00120.500", "=-120.5");
	expect_back(ROWS_NUMERIC, "=0.00100", "=0.001");
	expect_back(ROWS_NUMERIC, "=1200", "=1200");
	expect_back(ROWS_NUMERIC, "=-0.0", "=0");
	expect_back(ROWS_NUMERIC, "=NaN", "=NaN");
	expect_back(ROWS_FLOAT8, "8000000000000000", "0000000000000000");
	expect_back(ROWS_FLOAT4, "ffc00001", "7fc00000");
	/* a month is 30 days */
	expect_back(ROWS_INTERVAL, "00000000000000000000000000000001",
		    "00000000000000000000001e00000000");
	expect_back(ROWS_INTERVAL, "0000000000000000800000007fffffff", NULL);
}

static void
what_is_no_value_is_told(void **state)
{
	static const struct {
		enum rows_kind kind;
		const char *told;
	} wrong[] = {
		{ ROWS_NONE, "" },
		{ ROWS_KINDS, "" },
		{ ROWS_BOOL, "02" },
		{ ROWS_BOOL, "" },
		{ ROWS_INT4, "000000" },
		{ ROWS_NUMERIC, "=" },
		{ ROWS_NUMERIC, "=-" },
		{ ROWS_NUMERIC, "=1." },
		{ ROWS_NUMERIC, "=.1" },
		{ ROWS_NUMERIC, "=1e3" },
		{ ROWS_NUMERIC, "=nan" },
		{ ROWS_NUMERIC, "=+1" },
		{ ROWS_NUMERIC, "=1 " },
		{ ROWS_TEXT, "ff" },
		{ ROWS_DATE, "80000001" },
		{ ROWS_TIME, "ffffffffffffffff" },
		{ ROWS_TIME, "000000141dd76001" },
		{ ROWS_TIMETZ, "00000000000000000000e100" },
		{ ROWS_TIMESTAMP, "8000000000000001" },
		{ ROWS_INET, "" },
		{ ROWS_INET, "052001020304" },
		{ ROWS_INET, "042101020304" },
		{ ROWS_INET, "0420010203" },
		{ ROWS_BITS, "000000" },
		{ ROWS_BITS, "0000000101" },
		{ ROWS_BITS, "00000009ff" },
		{ ROWS_BITS, "ffffffff" },
	};
	char room[VALUE_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (rows_value_check(wrong[i].kind, value_of(wrong[i].told, room)))
			fail_msg("%s is a value of %s", wrong[i].told,
				 rows_kind_name(wrong[i].kind));
}

/* The limits of a numeric are PostgreSQL's, and what they allow has ordered bytes. */
static void
a_numeric_has_as_many_digits_as_in_postgresql(void **state)
{
	struct buf text = BUF_INIT(2 * ROWS_NUMERIC_BYTES), ordered = BUF_SHORT(MOST_BYTES);
	struct buf back = BUF_SHORT(MOST_BYTES);

	(void)state;
	for (unsigned i = 0; i < DOC_NUMERIC_WHOLE; i++)
		buf_append_byte(&text, '7');
	buf_append_byte(&text, '.');
	for (unsigned i = 0; i < DOC_NUMERIC_FRACTION; i++)
		buf_append_byte(&text, '1');
	assert_true(rows_value_check(ROWS_NUMERIC, buf_str(&text)));
	assert_int_equal(rows_ordered_put(ROWS_NUMERIC, buf_str(&text), &ordered), STATUS_OK);
	assert_int_equal(rows_ordered_read(ROWS_NUMERIC, buf_str(&ordered), &back), STATUS_OK);
	assert_true(str_eq(buf_str(&text), buf_str(&back)));
	buf_append_byte(&text, '1');
	assert_false(rows_value_check(ROWS_NUMERIC, buf_str(&text)));
	buf_release(&text);
	buf_release(&ordered);
	buf_release(&back);
}

/* -999.99 to 999.99 with zeros that do not count. */
static void
random_numeric(struct rand_seq *r, struct buf *out, int *ret_cents)
{
	int cents = (int)rand_seq_below(r, 199999) - 99999;
	int all = cents < 0 ? -cents : cents;

	buf_clear(out);
	buf_printf(out, "%s%0*d.%02d%0*d", cents < 0 ? "-" : "", (int)rand_seq_below(r, 5),
		   all / 100, all % 100, 1 + (int)rand_seq_below(r, 3), 0);
	*ret_cents = cents;
}

static void
random_numerics_compare_as_numbers_do(void **state)
{
	struct buf text = BUF_SHORT(VALUE_BYTES), a = BUF_SHORT(MOST_BYTES),
		   b = BUF_SHORT(MOST_BYTES);
	struct rand_seq r = { .state = 1 };
	int first, second, c;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		buf_clear(&a);
		buf_clear(&b);
		random_numeric(&r, &text, &first);
		assert_int_equal(rows_ordered_put(ROWS_NUMERIC, buf_str(&text), &a), STATUS_OK);
		random_numeric(&r, &text, &second);
		assert_int_equal(rows_ordered_put(ROWS_NUMERIC, buf_str(&text), &b), STATUS_OK);
		c = str_cmp(buf_str(&a), buf_str(&b));
		assert_int_equal((c > 0) - (c < 0), (first > second) - (first < second));
	}
	buf_release(&text);
	buf_release(&a);
	buf_release(&b);
}

static void
bytes_that_were_not_written_are_corrupt(void **state)
{
	static const struct {
		enum rows_kind kind;
		const char *told;
	} wrong[] = {
		{ ROWS_BOOL, "02" },
		{ ROWS_INT4, "00" },
		{ ROWS_FLOAT8, "0000000000000001" },
		{ ROWS_NUMERIC, "" },
		{ ROWS_NUMERIC, "41" },
		{ ROWS_NUMERIC, "3000" },
		{ ROWS_NUMERIC, "408000000101" },
		{ ROWS_NUMERIC, "40800000010100" },
		{ ROWS_NUMERIC, "4080000001ff00" },
		{ ROWS_NUMERIC, "407000000b0b00" },
		{ ROWS_BITS, "0000" },
		{ ROWS_BITS, "00000000000000" },
		{ ROWS_INET, "0409ff00000804000000" },
		{ ROWS_OTHER, "41" },
	};
	struct buf back = BUF_SHORT(MOST_BYTES);
	char room[VALUE_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		buf_clear(&back);
		if (rows_ordered_read(wrong[i].kind, value_of(wrong[i].told, room), &back) !=
		    STATUS_CORRUPT)
			fail_msg("%s was read as a %s", wrong[i].told,
				 rows_kind_name(wrong[i].kind));
	}
	buf_release(&back);
}

static void
kinds_have_names(void **state)
{
	enum rows_kind kind;

	(void)state;
	for (unsigned i = 1; i < ROWS_KINDS; i++) {
		assert_true(
			rows_kind_named(str_from_cstr(rows_kind_name((enum rows_kind)i)), &kind));
		assert_int_equal(kind, i);
	}
	assert_false(rows_kind_named(STR("none"), &kind));
	assert_false(rows_kind_named(STR("varchar"), &kind));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordered_bytes_are_in_the_order_of_postgresql),
		cmocka_unit_test(a_value_comes_back_or_one_that_equals_it),
		cmocka_unit_test(what_is_no_value_is_told),
		cmocka_unit_test(a_numeric_has_as_many_digits_as_in_postgresql),
		cmocka_unit_test(random_numerics_compare_as_numbers_do),
		cmocka_unit_test(bytes_that_were_not_written_are_corrupt),
		cmocka_unit_test(kinds_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
