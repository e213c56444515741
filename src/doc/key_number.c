#include "doc/key_int.h"

#include <assert.h>
#include <math.h>

#include "doc/doc_int.h"

/*
 * A number is its class, and behind that two parts (README.md has the format):
 *
 *   head   the exponent of the highest bit and the 63 bits behind that bit, rounded towards zero
 *   tail   only where the head is not the whole number: all of its decimal digits
 *
 * The head orders numbers of all types against each other at the price of 3 to 11 bytes, and is all
 * that integers of 64 bits and doubles have. Two numbers of one head differ in their tails, since
 * every number here has a finite number of decimal digits. Numbers beyond the range of doubles
 * have a tail alone, so no calculation here gets longer than a few thousand bits.
 */

enum {
	HEAD_BITS = 63, /* behind the highest */
	GROUP_BITS = 7,
	GROUPS = HEAD_BITS / GROUP_BITS,

	/* Of what has a head. */
	BINARY_EXPONENT_LEAST = -1074,
	BINARY_EXPONENT_MOST = 1023,
	/* 0.d… times 10^exponent: outside of this there is no head. */
	DECIMAL_EXPONENT_LEAST = -323,
	DECIMAL_EXPONENT_MOST = 309,

	/*
	 * No border between two heads has as many significant digits ((2^64 - 1) * 2^-1137 has
	 * 815): of the digits behind them it only matters whether there is any.
	 */
	EXACT_DIGITS = 900,

	EXPONENT_BYTE_ZERO = 0x80,
	EXPONENT_BYTE_LEAST = -64,
	EXPONENT_BYTE_MOST = 63,
	EXPONENT_LONG = 0xc0,          /* and how many bytes follow, less one */
	EXPONENT_LONG_NEGATIVE = 0x3f, /* minus how many bytes follow, plus one */

	DOUBLE_FRACTION_BITS = 52,
	DOUBLE_EXPONENT_BIAS = 1023,

	DECIMAL128_BIAS = 6176,
	DECIMAL128_DIGITS = 34,
};

/* ---- Large natural numbers ---- */

enum {
	/* The dividend in decimal_head(): 64 bits more than 10^(EXACT_DIGITS + 1 + 323). */
	BIG_LIMBS = 68,
};

/* Least significant limb first; the last one is not 0. */
struct key_big {
	size_t count;
	uint64_t limbs[BIG_LIMBS];
};

static void
big_multiply_add(struct key_big *b, uint64_t factor, uint64_t addend)
{
	unsigned __int128 carry = addend;

	for (size_t i = 0; i < b->count; i++) {
		carry += (unsigned __int128)b->limbs[i] * factor;
		b->limbs[i] = (uint64_t)carry;
		carry >>= 64;
	}
	if (!carry)
		return;
	assert(b->count < BIG_LIMBS);
	b->limbs[b->count++] = (uint64_t)carry;
}

static void
big_multiply_power_of_10(struct key_big *b, unsigned exponent)
{
	enum {
		STEP = 19
	};

	for (; exponent >= STEP; exponent -= STEP)
		big_multiply_add(b, UINT64_C(10000000000000000000), 0);
	for (; exponent; exponent--)
		big_multiply_add(b, 10, 0);
}

static unsigned
big_bits(const struct key_big *b)
{
	if (!b->count)
		return 0;
	return (unsigned)(64 * b->count) - (unsigned)__builtin_clzll(b->limbs[b->count - 1]);
}

static void
big_shift_left(struct key_big *b, unsigned bits)
{
	size_t limbs = bits / 64;

	if (!b->count)
		return;
	assert(b->count + limbs <= BIG_LIMBS);
	memmove(b->limbs + limbs, b->limbs, b->count * sizeof(b->limbs[0]));
	memset(b->limbs, 0, limbs * sizeof(b->limbs[0]));
	b->count += limbs;
	if (bits % 64)
		big_multiply_add(b, UINT64_C(1) << bits % 64, 0);
}

static void
big_halve(struct key_big *b)
{
	for (size_t i = 0; i < b->count; i++) {
		uint64_t above = i + 1 < b->count ? b->limbs[i + 1] << 63 : 0;

		b->limbs[i] = b->limbs[i] >> 1 | above;
	}
	while (b->count && !b->limbs[b->count - 1])
		b->count--;
}

static int
big_cmp(const struct key_big *a, const struct key_big *b)
{
	if (a->count != b->count)
		return a->count > b->count ? 1 : -1;
	for (size_t i = a->count; i-- > 0;)
		if (a->limbs[i] != b->limbs[i])
			return a->limbs[i] > b->limbs[i] ? 1 : -1;
	return 0;
}

/* a -= b, which is not greater. */
static void
big_subtract(struct key_big *a, const struct key_big *b)
{
	uint64_t borrow = 0;

	for (size_t i = 0; i < a->count; i++) {
		unsigned __int128 less = (unsigned __int128)(i < b->count ? b->limbs[i] : 0) +
					 borrow;

		borrow = a->limbs[i] < less;
		a->limbs[i] -= (uint64_t)less;
	}
	assert(!borrow);
	while (a->count && !a->limbs[a->count - 1])
		a->count--;
}

/* a / b, which is less than 2^64; the remainder stays in `a`. */
static uint64_t
big_divide(struct key_big *a, struct key_big *b)
{
	uint64_t quotient = 0;

	big_shift_left(b, 63);
	for (int bit = 63; bit >= 0; bit--) {
		if (big_cmp(a, b) >= 0) {
			big_subtract(a, b);
			quotient |= UINT64_C(1) << bit;
		}
		if (bit)
			big_halve(b);
	}
	/* Halving has undone the shift. */
	assert(big_cmp(a, b) < 0);
	return quotient;
}

/* ---- What a number is ---- */

/* The head of a number's magnitude. */
struct key_head {
	int exponent;
	uint64_t significand; /* the highest bit is set */
	bool exact;
};

/* The decimal digits of a magnitude: 0.digits times 10^exponent, no zeros around them. */
struct key_decimal {
	struct str digits;
	int64_t exponent;
};

/* Takes the zeros around digits away. */
static void
decimal_trim(struct key_decimal *d)
{
	while (d->digits.len && d->digits.ptr[0] == '0') {
		d->digits = str_skip(d->digits, 1);
		d->exponent--;
	}
	while (d->digits.len && d->digits.ptr[d->digits.len - 1] == '0')
		d->digits.len--;
}

/*
 * The digits as a number, of which `*ret_exponent` is to be the power of ten behind; of more than
 * EXACT_DIGITS one stands for all others.
 */
static void
decimal_load(const struct key_decimal *d, struct key_big *ret, int *ret_exponent)
{
	size_t count = d->digits.len < EXACT_DIGITS ? d->digits.len : EXACT_DIGITS;

	ret->count = 0;
	for (size_t i = 0; i < count; i++)
		big_multiply_add(ret, 10, (uint64_t)(d->digits.ptr[i] - '0'));
	if (count < d->digits.len) {
		big_multiply_add(ret, 10, 1);
		count++;
	}
	*ret_exponent = (int)(d->exponent - (int64_t)count);
}

/* The head of a number that is not zero; false if it is too large or too small for one. */
static bool
decimal_head(const struct key_decimal *d, struct key_head *ret)
{
	struct key_big dividend;
	struct key_big divisor = { .count = 1, .limbs = { 1 } };
	int exponent;
	int shift;

	if (d->exponent < DECIMAL_EXPONENT_LEAST || d->exponent > DECIMAL_EXPONENT_MOST)
		return false;
	decimal_load(d, &dividend, &exponent);
	if (exponent >= 0)
		big_multiply_power_of_10(&dividend, (unsigned)exponent);
	else
		big_multiply_power_of_10(&divisor, (unsigned)-exponent);
	/*
	 * The quotient of numbers of m and n bits is more than 2^(m-n-1) and less than 2^(m-n+1).
	 */
	shift = HEAD_BITS - ((int)big_bits(&dividend) - (int)big_bits(&divisor));
	if (shift >= 0)
		big_shift_left(&dividend, (unsigned)shift);
	else
		big_shift_left(&divisor, (unsigned)-shift);
	ret->exponent = HEAD_BITS - shift;
	ret->significand = big_divide(&dividend, &divisor);
	if (!(ret->significand >> 63)) {
		/* One bit more: is the divisor in twice the remainder? */
		big_shift_left(&dividend, 1);
		ret->significand <<= 1;
		if (big_cmp(&dividend, &divisor) >= 0) {
			big_subtract(&dividend, &divisor);
			ret->significand |= 1;
		}
		ret->exponent--;
	}
	assert(ret->significand >> 63);
	ret->exact = !dividend.count;
	return ret->exponent >= BINARY_EXPONENT_LEAST && ret->exponent <= BINARY_EXPONENT_MOST;
}

/* ---- Writing ---- */

void
doc_key_invert(struct buf *key, size_t from)
{
	for (size_t i = from; i < key->len; i++)
		key->ptr[i] = (char)~key->ptr[i];
}

static void
number_put_bytes(struct buf *key, uint64_t n, unsigned bytes)
{
	while (bytes-- > 0)
		buf_append_byte(key, (uint8_t)(n >> 8 * bytes));
}

static void
number_put_exponent(struct buf *key, int64_t exponent)
{
	uint64_t beyond;
	unsigned bytes = 1;

	if (exponent >= EXPONENT_BYTE_LEAST && exponent <= EXPONENT_BYTE_MOST) {
		buf_append_byte(key, (uint8_t)(EXPONENT_BYTE_ZERO + exponent));
		return;
	}
	beyond = exponent < 0 ? (uint64_t)(EXPONENT_BYTE_LEAST - 1 - exponent)
			      : (uint64_t)(exponent - EXPONENT_BYTE_MOST - 1);
	while (bytes < sizeof(beyond) && beyond >> 8 * bytes)
		bytes++;
	if (exponent > 0) {
		buf_append_byte(key, (uint8_t)(EXPONENT_LONG + bytes - 1));
		number_put_bytes(key, beyond, bytes);
	} else {
		buf_append_byte(key, (uint8_t)(EXPONENT_LONG_NEGATIVE - (bytes - 1)));
		number_put_bytes(key, ~beyond, bytes);
	}
}

static void
number_put_head(struct buf *key, const struct key_head *h)
{
	uint64_t rest = h->significand << 1;
	bool more = true;

	number_put_exponent(key, h->exponent);
	/* Where a tail follows, all groups are there, and the last one says that more follows. */
	for (int group = 0; group < GROUPS && more; group++) {
		uint8_t bits = (uint8_t)(rest >> (64 - GROUP_BITS));

		rest <<= GROUP_BITS;
		more = rest || !h->exact;
		buf_append_byte(key, (uint8_t)(bits << 1 | more));
	}
}

static void
number_put_tail(struct buf *key, const struct key_decimal *d)
{
	number_put_exponent(key, d->exponent);
	for (size_t i = 0; i < d->digits.len; i += 2) {
		unsigned pair = (unsigned)(d->digits.ptr[i] - '0') * 10;

		if (i + 1 < d->digits.len)
			pair += (unsigned)(d->digits.ptr[i + 1] - '0');
		buf_append_byte(key, (uint8_t)(pair << 1 | (i + 2 < d->digits.len)));
	}
}

static void
number_put_class(struct buf *key, bool negative, enum key_class plus)
{
	/* The classes of negative numbers are those of positive ones, mirrored at zero. */
	buf_append_byte(key, (uint8_t)(negative ? 2 * KEY_ZERO - plus : plus));
}

static void
number_put_binary(struct buf *key, bool negative, uint64_t significand, int exponent)
{
	int zeros = __builtin_clzll(significand);
	struct key_head h = { .exponent = exponent - zeros,
			      .significand = significand << zeros,
			      .exact = true };
	size_t from;

	number_put_class(key, negative, KEY_PLUS);
	from = key->len;
	number_put_head(key, &h);
	if (negative)
		doc_key_invert(key, from);
}

/* The magnitude `n`. */
static void
number_put_u64(struct buf *key, bool negative, uint64_t n)
{
	if (n)
		number_put_binary(key, negative, n, HEAD_BITS);
	else
		buf_append_byte(key, KEY_ZERO);
}

static void
number_put_double(struct buf *key, double d)
{
	bool negative = signbit(d);
	int exponent;

	if (isnan(d)) {
		buf_append_byte(key, KEY_NAN);
	} else if (isinf(d)) {
		number_put_class(key, negative, KEY_PLUS_INFINITY);
	} else if (d == 0) {
		buf_append_byte(key, KEY_ZERO);
	} else {
		double fraction = frexp(fabs(d), &exponent); /* from 1/2 to 1 */

		number_put_binary(key, negative, (uint64_t)ldexp(fraction, 64), exponent - 1);
	}
}

static enum status
number_put_decimal(struct buf *key, bool negative, struct key_decimal d)
{
	struct key_head h;
	size_t from;

	decimal_trim(&d);
	if (d.digits.len > DOC_KEY_DIGITS)
		return STATUS_LIMIT;
	if (!d.digits.len) {
		buf_append_byte(key, KEY_ZERO);
		return STATUS_OK;
	}
	if (!decimal_head(&d, &h)) {
		number_put_class(key, negative, d.exponent > 0 ? KEY_PLUS_HUGE : KEY_PLUS_TINY);
		from = key->len;
		number_put_tail(key, &d);
	} else {
		number_put_class(key, negative, KEY_PLUS);
		from = key->len;
		number_put_head(key, &h);
		if (!h.exact)
			number_put_tail(key, &d);
	}
	if (negative)
		doc_key_invert(key, from);
	return STATUS_OK;
}

/* ---- Integers of any length ---- */

enum {
	LIMB_DIGITS = 19,
	/* No longer one has DOC_KEY_DIGITS or fewer: 10^10000 has 33,220 bits. */
	MAGNITUDE_MAX_BYTES = 4152,
};

/* Divides by 10^LIMB_DIGITS and returns the remainder. */
static uint64_t
limbs_divide(uint64_t *limbs, size_t count)
{
	const uint64_t power = UINT64_C(10000000000000000000);
	unsigned __int128 rest = 0;

	for (size_t i = count; i-- > 0;) {
		rest = rest << 64 | limbs[i];
		limbs[i] = (uint64_t)(rest / power);
		rest %= power;
	}
	return (uint64_t)rest;
}

/* The decimal digits of a big-endian magnitude, zeros in front perhaps, at the end of `ret`. */
static enum status
magnitude_digits(struct str magnitude, struct buf *ret, struct str *ret_digits)
{
	size_t count = (magnitude.len + 7) / 8;
	size_t parts = magnitude.len / 7 + 1; /* a part takes 7.9 bytes */
	uint64_t *limbs;
	char *at;

	if (!buf_reserve(ret, count * sizeof(*limbs) + parts * LIMB_DIGITS))
		return buf_status(ret);
	limbs = (uint64_t *)(void *)ret->ptr;
	memset(limbs, 0, count * sizeof(*limbs));
	for (size_t i = 0; i < magnitude.len; i++) {
		uint8_t c = (uint8_t)magnitude.ptr[magnitude.len - 1 - i];

		limbs[i / 8] |= (uint64_t)c << i % 8 * 8;
	}
	at = ret->ptr + count * sizeof(*limbs) + parts * LIMB_DIGITS;
	ret_digits->len = 0;
	while (count) {
		uint64_t part = limbs_divide(limbs, count);

		for (int i = 0; i < LIMB_DIGITS; i++, part /= 10)
			*--at = (char)('0' + part % 10);
		ret_digits->len += LIMB_DIGITS;
		while (count && !limbs[count - 1])
			count--;
	}
	ret_digits->ptr = at;
	return STATUS_OK;
}

/* A magnitude times 10^-`scale`. */
static enum status
number_put_scaled(struct buf *key, bool negative, struct str magnitude, int64_t scale)
{
	AUTO(buf_release) struct buf memory = BUF_INIT(SIZE_MAX);
	struct key_decimal d;

	if (magnitude.len > MAGNITUDE_MAX_BYTES)
		return STATUS_LIMIT;
	TRY(magnitude_digits(magnitude, &memory, &d.digits));
	d.exponent = (int64_t)d.digits.len - scale;
	return number_put_decimal(key, negative, d);
}

static enum status
number_put_integer(struct buf *key, bool negative, struct str magnitude)
{
	uint64_t n = 0;

	if (magnitude.len > sizeof(n))
		return number_put_scaled(key, negative, magnitude, 0);
	for (size_t i = 0; i < magnitude.len; i++)
		n = n << 8 | (uint8_t)magnitude.ptr[i];
	number_put_u64(key, negative, n);
	return STATUS_OK;
}

/* ---- Other types ---- */

/* Decodes IEEE 754-2008's binary integer encoding. */
static enum status
number_put_decimal128(struct buf *key, uint64_t high, uint64_t low)
{
	const unsigned __int128 most = (unsigned __int128)UINT64_C(10000000000000000) *
				       UINT64_C(1000000000000000000); /* 10^34 */
	bool negative = high >> 63;
	unsigned special = (unsigned)(high >> 58) & 0x1f;
	char digits[DECIMAL128_DIGITS];
	unsigned __int128 n = 0;
	unsigned exponent;

	if (special >= 0x1e) {
		if (special == 0x1f)
			buf_append_byte(key, KEY_NAN);
		else
			number_put_class(key, negative, KEY_PLUS_INFINITY);
		return STATUS_OK;
	}
	if (special >> 3 == 3) {
		/* The coefficient is 2^113 at least, which is more than 34 digits. */
		exponent = 0;
	} else {
		exponent = (unsigned)(high >> 49) & 0x3fff;
		n = (unsigned __int128)(high & ((UINT64_C(1) << 49) - 1)) << 64 | low;
	}
	if (n >= most)
		n = 0; /* so says the standard of coefficients that are too large */
	for (int i = DECIMAL128_DIGITS; i-- > 0; n /= 10)
		digits[i] = (char)('0' + (int)(n % 10));
	return number_put_decimal(
		key, negative,
		(struct key_decimal){
			.digits = str_of(digits, sizeof(digits)),
			.exponent = (int64_t)exponent - DECIMAL128_BIAS + DECIMAL128_DIGITS,
		});
}

/* With a fraction or an exponent it is its double, as everywhere else; else every digit counts. */
static enum status
number_put_json(struct buf *key, const struct doc_scalar *s)
{
	bool negative = s->text.len && s->text.ptr[0] == '-';
	struct key_decimal d = { .digits = str_skip(s->text, negative) };
	bool is_integer;

	if (json_number_len(s->text, &is_integer) != s->text.len || !is_integer) {
		number_put_double(key, s->d);
		return STATUS_OK;
	}
	d.exponent = (int64_t)d.digits.len;
	return number_put_decimal(key, negative, d);
}

bool
key_is_number(enum doc_kind kind)
{
	switch ((int)kind) {
	case DOC_INT8:
	case DOC_INT16:
	case DOC_INT32:
	case DOC_INT64:
	case DOC_INTEGER:
	case DOC_FLOAT:
	case DOC_DOUBLE:
	case DOC_NUMBER:
	case DOC_DECIMAL128:
	case DOC_DECIMAL:
		return true;
	default:
		return false;
	}
}

enum status
key_put_number(struct buf *key, const struct doc_scalar *s)
{
	assert(key_is_number(s->kind));
	switch ((int)s->kind) {
	case DOC_INTEGER:
		return number_put_integer(key, s->negative, s->text);
	case DOC_FLOAT:
		number_put_double(key, (double)s->f);
		return STATUS_OK;
	case DOC_DOUBLE:
		number_put_double(key, s->d);
		return STATUS_OK;
	case DOC_NUMBER:
		return number_put_json(key, s);
	case DOC_DECIMAL128:
		return number_put_decimal128(key, s->high, s->low);
	case DOC_DECIMAL:
		return number_put_scaled(key, s->negative, s->text, s->n);
	default:
		number_put_u64(key, s->n < 0, s->n < 0 ? -(uint64_t)s->n : (uint64_t)s->n);
		return STATUS_OK;
	}
}

/* ---- Reading ---- */

static enum status
number_read_exponent(struct key_reader *r, int64_t *ret)
{
	uint64_t beyond = 0;
	unsigned bytes;
	bool negative;
	uint8_t first;

	TRY(key_next_byte(r, &first));
	if (first > EXPONENT_LONG_NEGATIVE && first < EXPONENT_LONG) {
		*ret = (int64_t)first - EXPONENT_BYTE_ZERO;
		return STATUS_OK;
	}
	negative = first <= EXPONENT_LONG_NEGATIVE;
	bytes = negative ? EXPONENT_LONG_NEGATIVE - first + 1u : first - EXPONENT_LONG + 1u;
	if (bytes > sizeof(beyond))
		return STATUS_CORRUPT;
	for (unsigned i = 0; i < bytes; i++) {
		uint8_t c;

		TRY(key_next_byte(r, &c));
		beyond = beyond << 8 | (negative ? (uint8_t)~c : c);
	}
	/* Exponents are sums of an int32_t and a count of digits. */
	if ((bytes > 1 && !(beyond >> 8 * (bytes - 1))) || beyond > INT64_C(1) << 40)
		return STATUS_CORRUPT;
	*ret = negative ? EXPONENT_BYTE_LEAST - 1 - (int64_t)beyond
			: EXPONENT_BYTE_MOST + 1 + (int64_t)beyond;
	return STATUS_OK;
}

static enum status
number_read_head(struct key_reader *r, struct key_head *ret)
{
	int64_t exponent;
	uint8_t c = 1;

	TRY(number_read_exponent(r, &exponent));
	if (exponent < BINARY_EXPONENT_LEAST || exponent > BINARY_EXPONENT_MOST)
		return STATUS_CORRUPT;
	ret->exponent = (int)exponent;
	ret->significand = UINT64_C(1) << HEAD_BITS;
	for (int group = 0; group < GROUPS && c & 1; group++) {
		TRY(key_next_byte(r, &c));
		ret->significand |= (uint64_t)(c >> 1) << (HEAD_BITS - GROUP_BITS * (group + 1));
		/* Only the first group is there although nothing but zeros is in it. */
		if (group && !c)
			return STATUS_CORRUPT;
	}
	ret->exact = !(c & 1);
	return STATUS_OK;
}

/* Digits go to `ret_digits`, unless it is NULL. */
static enum status
number_read_tail(struct key_reader *r, struct buf *ret_digits, int64_t *ret_exponent)
{
	uint8_t c = 1;

	TRY(number_read_exponent(r, ret_exponent));
	while (c & 1) {
		TRY(key_next_byte(r, &c));
		if (c >> 1 >= 100)
			return STATUS_CORRUPT;
		if (!ret_digits)
			continue;
		buf_append_byte(ret_digits, (uint8_t)('0' + (c >> 1) / 10));
		buf_append_byte(ret_digits, (uint8_t)('0' + (c >> 1) % 10));
	}
	return ret_digits ? buf_status(ret_digits) : STATUS_OK;
}

/* What is behind the class of a number that is neither zero nor infinite. */
static enum status
number_read_parts(struct key_reader *r, enum key_class plus, struct buf *digits,
		  struct doc_key_number *ret)
{
	struct key_head h;

	ret->form = DOC_KEY_DECIMAL;
	if (plus != KEY_PLUS)
		return number_read_tail(r, digits, &ret->exponent);
	TRY(number_read_head(r, &h));
	if (!h.exact)
		return number_read_tail(r, digits, &ret->exponent);
	ret->form = DOC_KEY_BINARY;
	ret->significand = h.significand;
	ret->exponent = h.exponent;
	return STATUS_OK;
}

/* Sets `form` and `negative`, and reads what is behind the class. */
static enum status
number_read_class(struct key_reader *r, uint8_t first, struct buf *digits,
		  struct doc_key_number *ret)
{
	enum status status;

	*ret = (struct doc_key_number){ .negative = first < KEY_ZERO };
	switch (first) {
	case KEY_NAN:
		ret->form = DOC_KEY_NAN;
		ret->negative = false;
		return STATUS_OK;
	case KEY_MINUS_INFINITY:
	case KEY_PLUS_INFINITY:
		ret->form = DOC_KEY_INFINITE;
		return STATUS_OK;
	case KEY_ZERO:
		ret->form = DOC_KEY_ZERO;
		return STATUS_OK;
	default:
		break;
	}
	if (!ret->negative)
		return number_read_parts(r, (enum key_class)first, digits, ret);
	r->mask ^= 0xff;
	status = number_read_parts(r, (enum key_class)(2 * KEY_ZERO - first), digits, ret);
	r->mask ^= 0xff;
	return status;
}

enum status
key_skip_number(struct key_reader *r, uint8_t first)
{
	struct doc_key_number ignored;

	return number_read_class(r, first, NULL, &ignored);
}

bool
key_read_integer(struct key_reader *r, uint8_t first, int64_t *ret)
{
	bool negative = first == KEY_MINUS;
	struct key_reader next = *r;
	struct key_head h;
	uint64_t n;
	int behind;

	*ret = 0;
	if (first == KEY_ZERO)
		return true;
	if (first != KEY_PLUS && !negative)
		return false;
	next.mask ^= negative ? 0xff : 0;
	if (number_read_head(&next, &h) != STATUS_OK || !h.exact || h.exponent < 0 ||
	    h.exponent >= HEAD_BITS)
		return false;
	behind = HEAD_BITS - h.exponent; /* bits of a fraction */
	n = h.significand >> behind;
	if (n << behind != h.significand)
		return false;
	next.mask = r->mask;
	*r = next;
	*ret = negative ? -(int64_t)n : (int64_t)n;
	return true;
}

/* STATUS_CORRUPT unless the number's own key is what was read. */
static enum status
number_check_decimal(struct str key, bool descending, const struct doc_key_number *n)
{
	AUTO(buf_release) struct buf again = BUF_INIT(SIZE_MAX);
	struct key_decimal d = { .digits = n->digits, .exponent = n->exponent };

	if (number_put_decimal(&again, n->negative, d) != STATUS_OK)
		return STATUS_CORRUPT;
	if (descending)
		doc_key_invert(&again, 0);
	TRY(buf_status(&again));
	return str_starts_with(key, buf_str(&again)) ? STATUS_OK : STATUS_CORRUPT;
}

enum status
doc_key_read_number(struct str key, bool descending, struct buf *scratch,
		    struct doc_key_number *ret)
{
	struct key_reader r = { .mask = descending ? 0xff : 0 };
	struct doc_key_number n;
	uint8_t first;

	r.at = (const uint8_t *)key.ptr;
	r.end = key.len ? r.at + key.len : r.at;
	TRY(key_next_byte(&r, &first));
	if (first < KEY_NAN || first > KEY_PLUS_INFINITY)
		return STATUS_INVALID;
	buf_clear(scratch);
	TRY(number_read_class(&r, first, scratch, &n));
	if (n.form == DOC_KEY_DECIMAL) {
		n.digits = buf_str(scratch);
		TRY(number_check_decimal(key, descending, &n));
		/* The last pair may have a zero that was not among the digits. */
		if (n.digits.ptr[n.digits.len - 1] == '0')
			n.digits.len--;
	}
	*ret = n;
	return STATUS_OK;
}
