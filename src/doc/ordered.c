/*
 * Numerics: decimal numbers of any length, infinities and NaN, and their ordered bytes:
 *
 *     class      1: the order of -Infinity, negative, 0, positive, Infinity, NaN
 *     exponent   4, its sign inverted: the number is 0.digits times 10^exponent
 *     digits     1 for each pair, which is 00 to 99, plus 1; no pair 00 at the end
 *     end        0
 *
 * Only finite numbers but 0 have more than a class. Of negative ones all behind it is inverted.
 */
#include "base/big_endian.h"
#include "doc/ordered.h"

enum numeric_class {
	CLASS_MINUS_INFINITY = 0x10,
	CLASS_NEGATIVE = 0x20,
	CLASS_ZERO = 0x30,
	CLASS_POSITIVE = 0x40,
	CLASS_INFINITY = 0x50,
	CLASS_NAN = 0x60,
};

enum {
	HEAD_BYTES = 5, /* class and exponent */
};

static const struct {
	struct str text;
	enum numeric_class class;
} words[] = {
	{ { "NaN", 3 }, CLASS_NAN },
	{ { "Infinity", 8 }, CLASS_INFINITY },
	{ { "-Infinity", 9 }, CLASS_MINUS_INFINITY },
};

/* A finite number as its text has it. */
struct numeric {
	bool negative;
	struct str whole;
	struct str fraction;
};

static size_t
digits_at(struct str text)
{
	size_t n = 0;

	while (n < text.len && text.ptr[n] >= '0' && text.ptr[n] <= '9')
		n++;
	return n;
}

/* Cuts digits off the front. */
static struct str
take_digits(struct str *rest)
{
	size_t n = digits_at(*rest);
	struct str taken = str_of(rest->ptr, n);

	*rest = str_skip(*rest, n);
	return taken;
}

static bool
numeric_parse(struct str text, struct numeric *ret)
{
	*ret = (struct numeric){ .fraction = STR("") };
	if (text.len && text.ptr[0] == '-') {
		ret->negative = true;
		text = str_skip(text, 1);
	}
	ret->whole = take_digits(&text);
	if (!ret->whole.len || ret->whole.len > DOC_NUMERIC_WHOLE)
		return false;
	if (!text.len)
		return true;
	if (text.ptr[0] != '.')
		return false;
	text = str_skip(text, 1);
	ret->fraction = take_digits(&text);
	return ret->fraction.len && ret->fraction.len <= DOC_NUMERIC_FRACTION && !text.len;
}

static bool
word_find(struct str text, enum numeric_class *ret)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (str_eq(text, words[i].text)) {
			*ret = words[i].class;
			return true;
		}
	}
	return false;
}

bool
doc_numeric_check(struct str text)
{
	enum numeric_class class;
	struct numeric n;

	return word_find(text, &class) || numeric_parse(text, &n);
}

/* ---- Ordered ---- */

static char
digit_at(const struct numeric *n, size_t at)
{
	return at < n->whole.len ? n->whole.ptr[at] : n->fraction.ptr[at - n->whole.len];
}

/* The digits between the zeros in front and those at the end. False if there are none. */
static bool
significant(const struct numeric *n, size_t *from, size_t *to)
{
	*from = 0;
	*to = n->whole.len + n->fraction.len;
	while (*from < *to && digit_at(n, *from) == '0')
		(*from)++;
	while (*to > *from && digit_at(n, *to - 1) == '0')
		(*to)--;
	return *from < *to;
}

void
doc_numeric_put(struct str text, struct buf *out)
{
	enum numeric_class class;
	size_t from, to, begin;
	struct numeric n;
	uint8_t exponent[4];

	if (word_find(text, &class)) {
		buf_append_byte(out, (uint8_t) class);
		return;
	}
	if (!numeric_parse(text, &n) || !significant(&n, &from, &to)) {
		buf_append_byte(out, CLASS_ZERO);
		return;
	}
	buf_append_byte(out, n.negative ? CLASS_NEGATIVE : CLASS_POSITIVE);
	begin = out->len;
	big_endian_put_32(exponent, (uint32_t)((int64_t)n.whole.len - (int64_t)from) ^ 1u << 31);
	buf_append(out, exponent, sizeof(exponent));
	for (size_t i = from; i < to; i += 2)
		buf_append_byte(out, (uint8_t)((digit_at(&n, i) - '0') * 10 +
					       (i + 1 < to ? digit_at(&n, i + 1) - '0' : 0) + 1));
	buf_append_byte(out, 0);
	for (size_t i = begin; n.negative && buf_status(out) == STATUS_OK && i < out->len; i++)
		out->ptr[i] = (char)~out->ptr[i];
}

/* ---- Read back ---- */

/* The pairs of a finite number; 0 to 99 each. */
struct pairs {
	struct str bytes; /* as they lie, without the end */
	uint8_t mask;     /* 0xff: inverted */
};

static int
pair_at(const struct pairs *p, size_t at)
{
	return ((uint8_t)p->bytes.ptr[at] ^ p->mask) - 1;
}

static int
pairs_digit(const struct pairs *p, size_t at)
{
	int pair = pair_at(p, at / 2);

	return at % 2 ? pair % 10 : pair / 10;
}

static bool
pairs_are_right(const struct pairs *p)
{
	for (size_t i = 0; i < p->bytes.len; i++)
		if (pair_at(p, i) < 0 || pair_at(p, i) > 99)
			return false;
	return p->bytes.len && pair_at(p, 0) >= 10 && pair_at(p, p->bytes.len - 1) > 0;
}

static void
numeric_print(const struct pairs *p, int64_t exponent, struct buf *out)
{
	size_t count = 2 * p->bytes.len - (pair_at(p, p->bytes.len - 1) % 10 == 0);

	if (p->mask)
		buf_append_byte(out, '-');
	if (exponent <= 0)
		buf_append_byte(out, '0');
	for (int64_t i = 0; i < exponent; i++)
		buf_append_byte(
			out, (uint8_t)('0' + ((size_t)i < count ? pairs_digit(p, (size_t)i) : 0)));
	if ((int64_t)count <= exponent)
		return;
	buf_append_byte(out, '.');
	for (int64_t i = exponent; i < (int64_t)count; i++)
		buf_append_byte(out, (uint8_t)('0' + (i < 0 ? 0 : pairs_digit(p, (size_t)i))));
}

static enum status
finite_read(struct str ordered, uint8_t mask, struct buf *out)
{
	struct pairs p = { .mask = mask };
	int64_t exponent;
	size_t count;

	if (ordered.len < HEAD_BYTES + 2 || (uint8_t)ordered.ptr[ordered.len - 1] != mask)
		return STATUS_CORRUPT;
	p.bytes = str_of(ordered.ptr + HEAD_BYTES, ordered.len - HEAD_BYTES - 1);
	if (!pairs_are_right(&p))
		return STATUS_CORRUPT;
	exponent = (int32_t)((big_endian_32(ordered.ptr + 1) ^ (mask ? UINT32_MAX : 0)) ^ 1u << 31);
	count = 2 * p.bytes.len - (pair_at(&p, p.bytes.len - 1) % 10 == 0);
	if (exponent > DOC_NUMERIC_WHOLE || exponent < -DOC_NUMERIC_FRACTION ||
	    (int64_t)count - exponent > DOC_NUMERIC_FRACTION)
		return STATUS_CORRUPT;
	numeric_print(&p, exponent, out);
	return buf_status(out);
}

enum status
doc_numeric_read(struct str ordered, struct buf *out)
{
	enum numeric_class class = ordered.len ? (enum numeric_class)(uint8_t)ordered.ptr[0]
					       : CLASS_ZERO;

	if (class == CLASS_NEGATIVE || class == CLASS_POSITIVE)
		return finite_read(ordered, class == CLASS_NEGATIVE ? 0xff : 0, out);
	if (ordered.len != 1)
		return STATUS_CORRUPT;
	if (class == CLASS_ZERO) {
		buf_append_byte(out, '0');
		return buf_status(out);
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i].class == class) {
			buf_append_str(out, words[i].text);
			return buf_status(out);
		}
	}
	return STATUS_CORRUPT;
}

/* ---- Intervals ---- */

bool
doc_interval_put(struct str value, struct buf *out)
{
	char ordered[DOC_INTERVAL_BYTES];
	int64_t days;
	__int128 us;

	if (value.len != DOC_INTERVAL_BYTES)
		return false;
	days = (int32_t)big_endian_32(value.ptr + 8) +
	       (int64_t)(int32_t)big_endian_32(value.ptr + 12) * DOC_DAYS_PER_MONTH;
	us = (__int128)days * DOC_US_PER_DAY + (int64_t)big_endian_64(value.ptr);
	big_endian_put_64(ordered, (uint64_t)(us >> 64) ^ UINT64_C(1) << 63);
	big_endian_put_64(ordered + 8, (uint64_t)us);
	buf_append(out, ordered, sizeof(ordered));
	return true;
}
