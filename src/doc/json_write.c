#include "doc/json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/doc_int.h"

enum {
	DIGITS_ALWAYS = 15, /* a decimal of so many digits survives being a double */
	DIGITS_ENOUGH = 17, /* a double survives being a decimal of so many digits */
	DIGITS_TEXT_BYTES = 32,

	/* ECMAScript's choice between 123.4 and 1.234e+2, so that its doubles come back as they
	 * were. */
	FIXED_LEAST_EXPONENT = -6,
	FIXED_MOST_EXPONENT = 20,
};

static void
write_escape(struct buf *b, uint8_t c)
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
		write_escape(b, (uint8_t)*special);
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
	/* An empty string may have no place, to which nothing can be added either. */
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
write_decimal(struct buf *b, bool negative, const char *digits, int count, int point)
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
 * Most doubles that people write have few digits. Tries whether `d` (positive) is an integer below
 * 10^15 divided by 10^k: both are exact, so the division is rounded as reading the decimal would
 * be.
 */
static bool
write_short(struct buf *b, bool negative, double d)
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
		write_decimal(b, negative, digits + sizeof(digits) - count, count, count - k);
		return true;
	}
	return false;
}

/* d.ddde±x; true if that reads back as `d`. */
static bool
print_digits(char text[DIGITS_TEXT_BYTES], double d, int digits)
{
	snprintf(text, DIGITS_TEXT_BYTES, "%.*e", digits - 1, d);
	return strtod(text, NULL) == d;
}

/* With as few digits as read back. If 16 do not, neither do 15; 17 always do. */
static void
print_shortest(char text[DIGITS_TEXT_BYTES], double d)
{
	if (d < DBL_MIN) {
		/* Subnormals carry fewer digits. */
		for (int digits = 1; !print_digits(text, d, digits);)
			digits++;
	} else if (!print_digits(text, d, DIGITS_ALWAYS + 1)) {
		print_digits(text, d, DIGITS_ENOUGH);
	} else if (!print_digits(text, d, DIGITS_ALWAYS)) {
		print_digits(text, d, DIGITS_ALWAYS + 1);
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
		write_decimal(b, negative, "0", 1, 1);
		return;
	}
	if (write_short(b, negative, d))
		return;
	print_shortest(text, d);
	/* The point goes, and zeros at the end. */
	digits = (int)(strchr(text, 'e') - text);
	exponent = (int)strtol(text + digits + 1, NULL, 10);
	if (digits > 1)
		memmove(text + 1, text + 2, (size_t)--digits - 1);
	while (digits > 1 && text[digits - 1] == '0')
		digits--;
	write_decimal(b, negative, text, digits, exponent + 1);
}
