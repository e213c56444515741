#include "doc/json.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/doc_int.h"

enum {
	DIGITS_ALWAYS = 15, /* a decimal of so many digits survives being a double */
	DIGITS_ENOUGH = 17, /* a double survives being a decimal of so many digits */
	DIGITS_TEXT_BYTES = 32,

	/* ECMAScript's choice between 123.4 and 1.234e+2: what its programs write comes back. */
	FIXED_LEAST_EXPONENT = -6,
	FIXED_MOST_EXPONENT = 20,
};

const bool json_is_special[256] = { [0 ... 0x1f] = true, ['"'] = true, ['\\'] = true };

static void
json_write_escape(struct buf *b, uint8_t c)
{
	static const char letters[256] = {
		['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
		['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
	};
	char escape[2] = { '\\', letters[c] };

	if (escape[1]) {
		buf_append(b, escape, sizeof(escape));
	} else {
		buf_append(b, "\\u00", 4);
		buf_append_hex(b, str_of(&c, 1));
	}
}

void
json_write_chars(struct buf *b, struct str s)
{
	const char *at = s.ptr;
	const char *end;
	uint64_t high = 0;

	if (!s.len)
		return;
	end = at + s.len;
	for (;;) {
		const char *special = json_scan_plain(at, end, &high);

		buf_append(b, at, (size_t)(special - at));
		if (special == end)
			return;
		json_write_escape(b, (uint8_t)*special);
		at = special + 1;
	}
}

void
json_write_str(struct buf *b, struct str s)
{
	uint64_t high = 0;
	char *to;

	if (!buf_reserve(b, s.len + 2))
		return;
	/* An empty string may have no pointer, which the scan must not be given. */
	if (s.len && json_scan_plain(s.ptr, s.ptr + s.len, &high) != s.ptr + s.len) {
		buf_append_byte(b, '"');
		json_write_chars(b, s);
		buf_append_byte(b, '"');
		return;
	}
	to = b->ptr + b->len;
	*to++ = '"';
	if (s.len)
		memcpy(to, s.ptr, s.len);
	to[s.len] = '"';
	b->len += s.len + 2;
}

/* ---- Doubles ---- */

/*
 * Writes 0.`digits` times 10^`point`, `digits` neither starting nor ending with zeros (except that
 * zero is a single one).
 */
static void
json_write_decimal(struct buf *b, bool negative, const char *digits, int count, int point)
{
	static const char zeros[] = "000000000000000000000";

	if (negative)
		buf_append_byte(b, '-');
	if (point - 1 < FIXED_LEAST_EXPONENT || point - 1 > FIXED_MOST_EXPONENT) {
		buf_append(b, digits, 1);
		if (count > 1)
			buf_append_byte(b, '.');
		buf_append(b, digits + 1, (size_t)count - 1);
		buf_printf(b, "e%+d", point - 1);
	} else if (point <= 0) {
		buf_append(b, "0.", 2);
		buf_append(b, zeros, (size_t)-point);
		buf_append(b, digits, (size_t)count);
	} else if (point >= count) {
		buf_append(b, digits, (size_t)count);
		buf_append(b, zeros, (size_t)(point - count));
		buf_append(b, ".0", 2);
	} else {
		buf_append(b, digits, (size_t)point);
		buf_append_byte(b, '.');
		buf_append(b, digits + point, (size_t)(count - point));
	}
}

/*
 * Most doubles that people write have few digits. Writes `d` (positive) if it is an integer below
 * 10^15 divided by 10^k, and returns true. A double holds both of them exactly, so the division
 * rounds in the same way as reading the decimal text does.
 */
static bool
json_write_short_double(struct buf *b, bool negative, double d)
{
	static const double powers[] = { 1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };

	for (int k = 0; k < (int)(sizeof(powers) / sizeof(powers[0])); k++) {
		double scaled = d * powers[k];
		char digits[DIGITS_ALWAYS + 1];
		uint64_t n;
		int count = 0;

		if (scaled >= 1e15 - 1)
			return false;
		n = (uint64_t)(scaled + 0.5);
		if ((double)n / powers[k] != d)
			continue;
		while (n % 10 == 0) {
			n /= 10;
			k--;
		}
		for (; n; n /= 10)
			digits[sizeof(digits) - (size_t)++count] = (char)('0' + n % 10);
		json_write_decimal(b, negative, digits + sizeof(digits) - count, count, count - k);
		return true;
	}
	return false;
}

/* d.ddde±x; true if that reads back as `d`. */
static bool
double_print_digits(char text[DIGITS_TEXT_BYTES], double d, int digits)
{
	snprintf(text, DIGITS_TEXT_BYTES, "%.*e", digits - 1, d);
	return strtod(text, NULL) == d;
}

/* Prints as few digits as read back as `d`. 17 always do; if 16 do not, neither do 15. */
static void
double_print_shortest(char text[DIGITS_TEXT_BYTES], double d)
{
	if (d < DBL_MIN) {
		/* Subnormals carry fewer digits. */
		for (int digits = 1; !double_print_digits(text, d, digits);)
			digits++;
	} else if (!double_print_digits(text, d, DIGITS_ALWAYS + 1)) {
		double_print_digits(text, d, DIGITS_ENOUGH);
	} else if (!double_print_digits(text, d, DIGITS_ALWAYS)) {
		double_print_digits(text, d, DIGITS_ALWAYS + 1);
	}
}

void
json_write_double(struct buf *b, double d)
{
	char text[DIGITS_TEXT_BYTES];
	bool negative = signbit(d);
	int digits;
	int exponent;

	d = fabs(d);
	if (d == 0) {
		json_write_decimal(b, negative, "0", 1, 1);
		return;
	}
	if (json_write_short_double(b, negative, d))
		return;
	double_print_shortest(text, d);
	/* Take out the point, and the zeros at the end. */
	digits = (int)(strchr(text, 'e') - text);
	exponent = (int)strtol(text + digits + 1, NULL, 10);
	if (digits > 1)
		memmove(text + 1, text + 2, (size_t)--digits - 1);
	while (digits > 1 && text[digits - 1] == '0')
		digits--;
	json_write_decimal(b, negative, text, digits, exponent + 1);
}

/* ---- Values ---- */

void
doc_integer_write(struct buf *out, bool negative, struct str magnitude)
{
	const uint64_t part_power = UINT64_C(10000000000000000000); /* 10^19 */
	uint64_t limbs[TUPLE_INT_MAX_BYTES / 8 + 1] = { 0 };
	uint64_t parts[TUPLE_INT_MAX_BYTES / 7]; /* of 19 digits: a part takes 7.9 bytes */
	size_t count = (magnitude.len + 7) / 8;
	size_t n = 0;

	assert(magnitude.len <= TUPLE_INT_MAX_BYTES);
	for (size_t i = 0; i < magnitude.len; i++) {
		uint8_t c = (uint8_t)magnitude.ptr[magnitude.len - 1 - i];

		limbs[i / 8] |= (uint64_t)c << i % 8 * 8;
	}
	do {
		unsigned __int128 rest = 0;

		for (size_t i = count; i-- > 0;) {
			rest = rest << 64 | limbs[i];
			limbs[i] = (uint64_t)(rest / part_power);
			rest %= part_power;
		}
		parts[n++] = (uint64_t)rest;
		while (count && !limbs[count - 1])
			count--;
	} while (count);
	if (negative)
		buf_append_byte(out, '-');
	buf_append_u64(out, parts[--n]);
	while (n)
		buf_printf(out, "%019llu", (unsigned long long)parts[--n]);
}

enum status
json_write_scalar(struct buf *b, const struct doc_scalar *s)
{
	switch ((int)s->kind) {
	case DOC_NULL:
		buf_append(b, "null", 4);
		break;
	case DOC_BOOL:
		buf_append_str(b, s->truth ? STR("true") : STR("false"));
		break;
	case DOC_TEXT:
		json_write_str(b, s->text);
		break;
	case DOC_INT64:
		if (s->n < 0)
			buf_append_byte(b, '-');
		buf_append_u64(b, s->n < 0 ? -(uint64_t)s->n : (uint64_t)s->n);
		break;
	case DOC_INTEGER:
		if (s->text.len > TUPLE_INT_MAX_BYTES)
			return STATUS_CORRUPT;
		doc_integer_write(b, s->negative, s->text);
		break;
	case DOC_DOUBLE:
		if (!isfinite(s->d))
			return STATUS_CORRUPT;
		json_write_double(b, s->d);
		break;
	case DOC_NUMBER:
		buf_append_str(b, s->text);
		break;
	case DOC_EMPTY_ARRAY:
		buf_append(b, "[]", 2);
		break;
	case DOC_EMPTY_OBJECT:
		buf_append(b, "{}", 2);
		break;
	default:
		return STATUS_CORRUPT;
	}
	return buf_status(b);
}
