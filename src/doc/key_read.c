#include "doc/key_read.h"

#include <assert.h>
#include <endian.h>
#include <math.h>

#include "base/utf8.h"
#include "doc/key_int.h"

/*
 * Components of the typed order, read back as scalars. Reading is strict: what doc_key_put() does
 * not write is corrupt, so a value has one key and a key one value.
 */

enum {
	ESCAPE_NUL = 0xff,
	ESCAPE_END = 0x01,

	UUID_HALF_BYTES = 8,
	UUID_TIME_BYTES = 8,
	UUID_VERSION_TIME = 1,

	SIGNIFICAND_BITS = 64,
	BINARY_POINT = 63, /* bits of a significand behind its highest */

	/*
	 * The most digits of a number that is read as an INTEGER: so many still fit into one
	 * element of a tuple. A number with more of them, zeros at its end included, is read as a
	 * decimal.
	 */
	INTEGER_DIGITS = 600,
};

static const int64_t nanoseconds_of_day = INT64_C(86400) * 1000 * 1000 * 1000;

/* ---- Natural numbers of any length ---- */

enum {
	LIMB_BITS = 32,
	LIMB_BYTES = LIMB_BITS / 8,

	DIGITS_AT_ONCE = 9,
	FIVES_AT_ONCE = 13,
	TWOS_AT_ONCE = 31,
};

/* Least significant limb first. */
struct natural {
	uint32_t *limbs;
	size_t count;
	size_t cap;
};

/* With room for so many bits. */
static enum status
natural_init(struct natural *n, uint64_t value, size_t bits, struct arena *arena)
{
	n->cap = bits / LIMB_BITS + SIGNIFICAND_BITS / LIMB_BITS + 1;
	n->count = 0;
	n->limbs = arena_alloc(arena, n->cap * sizeof(*n->limbs));
	if (!n->limbs)
		return STATUS_LIMIT;
	for (; value; value >>= LIMB_BITS)
		n->limbs[n->count++] = (uint32_t)value;
	return STATUS_OK;
}

static void
natural_multiply_add(struct natural *n, uint32_t factor, uint32_t addend)
{
	uint64_t carry = addend;

	for (size_t i = 0; i < n->count; i++) {
		carry += (uint64_t)n->limbs[i] * factor;
		n->limbs[i] = (uint32_t)carry;
		carry >>= LIMB_BITS;
	}
	if (!carry)
		return;
	assert(n->count < n->cap);
	n->limbs[n->count++] = (uint32_t)carry;
}

/* factor^exponent; `at_once` factors fit into a limb. */
static void
natural_multiply_power(struct natural *n, uint32_t factor, uint64_t exponent, unsigned at_once)
{
	uint32_t power = 1;

	for (unsigned i = 0; i < at_once; i++)
		power *= factor;
	for (; exponent >= at_once; exponent -= at_once)
		natural_multiply_add(n, power, 0);
	for (; exponent; exponent--)
		natural_multiply_add(n, factor, 0);
}

/* The digits, and then so many zeros. */
static enum status
natural_of_digits(struct natural *n, struct str digits, size_t zeros, struct arena *arena)
{
	/* A digit is less than ten thirds of a bit. */
	TRY(natural_init(n, 0, (digits.len + zeros) * 10 / 3 + 1, arena));
	for (size_t i = 0; i < digits.len; i++)
		natural_multiply_add(n, 10, (uint32_t)(digits.ptr[i] - '0'));
	natural_multiply_power(n, 10, zeros, DIGITS_AT_ONCE);
	return STATUS_OK;
}

/* The big-endian magnitude, without leading zeros. */
static enum status
natural_magnitude(const struct natural *n, struct arena *arena, struct str *ret)
{
	size_t len = n->count * LIMB_BYTES;
	char *bytes = arena_bytes(arena, len + 1);
	size_t zeros = 0;

	if (!bytes)
		return STATUS_LIMIT;
	for (size_t i = 0; i < len; i++)
		bytes[len - 1 - i] = (char)(n->limbs[i / LIMB_BYTES] >> 8 * (i % LIMB_BYTES));
	while (zeros < len && !bytes[zeros])
		zeros++;
	*ret = str_of(bytes + zeros, len - zeros);
	return STATUS_OK;
}

/* ---- Numbers ---- */

static enum status
number_as_integer(const struct natural *n, bool negative, struct arena *arena,
		  struct doc_scalar *ret)
{
	*ret = (struct doc_scalar){ .kind = DOC_INTEGER, .negative = negative };
	return natural_magnitude(n, arena, &ret->text);
}

static enum status
number_as_decimal(const struct natural *n, bool negative, int64_t scale, struct arena *arena,
		  struct doc_scalar *ret)
{
	if (scale < INT32_MIN || scale > INT32_MAX)
		return STATUS_CORRUPT;
	*ret = (struct doc_scalar){ .kind = DOC_DECIMAL, .negative = negative, .n = scale };
	return natural_magnitude(n, arena, &ret->text);
}

/* significand * 2^exponent, with an odd significand. */
static enum status
number_from_binary(const struct doc_key_number *n, struct arena *arena, struct doc_scalar *ret)
{
	unsigned zeros = (unsigned)__builtin_ctzll(n->significand);
	uint64_t significand = n->significand >> zeros;
	int64_t exponent = n->exponent - BINARY_POINT + zeros;
	struct natural natural;

	if (exponent < 0) {
		uint64_t fives = (uint64_t)-exponent;

		/* significand * 5^k * 10^-k; a 5 is less than seven thirds of a bit. */
		TRY(natural_init(&natural, significand, SIGNIFICAND_BITS + fives * 7 / 3 + 1,
				 arena));
		natural_multiply_power(&natural, 5, fives, FIVES_AT_ONCE);
		return number_as_decimal(&natural, n->negative, -exponent, arena, ret);
	}
	/* Less than 2^63, or -2^63. */
	if (n->exponent < BINARY_POINT ||
	    (n->exponent == BINARY_POINT && n->negative && significand == 1)) {
		uint64_t value = n->significand >> (BINARY_POINT - n->exponent);

		*ret = (struct doc_scalar){
			.kind = DOC_INT64,
			.n = (int64_t)(n->negative ? -value : value),
		};
		return STATUS_OK;
	}
	TRY(natural_init(&natural, significand, SIGNIFICAND_BITS + (size_t)exponent, arena));
	natural_multiply_power(&natural, 2, (uint64_t)exponent, TWOS_AT_ONCE);
	return number_as_integer(&natural, n->negative, arena, ret);
}

/* 0.digits * 10^exponent. */
static enum status
number_from_decimal(const struct doc_key_number *n, struct arena *arena, struct doc_scalar *ret)
{
	int64_t scale = (int64_t)n->digits.len - n->exponent;
	struct natural natural;
	size_t zeros = 0;

	if (scale <= 0 && n->exponent <= INTEGER_DIGITS) {
		TRY(natural_of_digits(&natural, n->digits, (size_t)-scale, arena));
		return number_as_integer(&natural, n->negative, arena, ret);
	}
	/* A number with a scale below the least one was written with zeros at its end. */
	if (scale < INT32_MIN) {
		if (scale < (int64_t)INT32_MIN - DOC_KEY_DIGITS)
			return STATUS_CORRUPT;
		zeros = (size_t)(INT32_MIN - scale);
		scale = INT32_MIN;
	}
	TRY(natural_of_digits(&natural, n->digits, zeros, arena));
	return number_as_decimal(&natural, n->negative, scale, arena, ret);
}

static enum status
component_read_number(struct str key, bool descending, struct arena *arena, struct doc_scalar *ret)
{
	AUTO(buf_release) struct buf scratch = BUF_INIT(2 * DOC_KEY_DIGITS);
	struct doc_key_number n = { 0 };
	enum status status = doc_key_read_number(key, descending, &scratch, &n);

	if (status == STATUS_LIMIT) /* more digits than any key has */
		return STATUS_CORRUPT;
	TRY(status);
	switch (n.form) {
	case DOC_KEY_NAN:
		/* A double has its bits in this order, so the number was a decimal. */
		*ret = (struct doc_scalar){ .kind = DOC_DECIMAL128, .high = UINT64_C(0x7c) << 56 };
		return STATUS_OK;
	case DOC_KEY_INFINITE:
		*ret = (struct doc_scalar){
			.kind = DOC_DECIMAL128,
			.high = (uint64_t)(n.negative ? 0xf8 : 0x78) << 56,
		};
		return STATUS_OK;
	case DOC_KEY_ZERO:
		*ret = (struct doc_scalar){ .kind = DOC_INT64 };
		return STATUS_OK;
	case DOC_KEY_BINARY:
		return number_from_binary(&n, arena, ret);
	case DOC_KEY_DECIMAL:
		return number_from_decimal(&n, arena, ret);
	}
	return STATUS_CORRUPT;
}

/* ---- Everything else ---- */

static enum status
component_read_bytes(struct key_reader *r, void *to, size_t n)
{
	uint8_t *bytes = to;

	for (size_t i = 0; i < n; i++)
		TRY(key_next_byte(r, &bytes[i]));
	return STATUS_OK;
}

static enum status
component_read_u64(struct key_reader *r, uint64_t *ret)
{
	uint64_t n;

	TRY(component_read_bytes(r, &n, sizeof(n)));
	*ret = be64toh(n);
	return STATUS_OK;
}

static enum status
component_read_u32(struct key_reader *r, uint32_t *ret)
{
	uint32_t n;

	TRY(component_read_bytes(r, &n, sizeof(n)));
	*ret = be32toh(n);
	return STATUS_OK;
}

/* Copies what comes before the first NUL, which most texts end with, and returns its length. */
static size_t
component_read_plain(struct key_reader *r, char *to)
{
	size_t left = (size_t)(r->end - r->at);
	const uint8_t *nul = left ? memchr(r->at, 0, left) : NULL;
	size_t len = nul ? (size_t)(nul - r->at) : left;

	if (len)
		memcpy(to, r->at, len);
	r->at += len;
	return len;
}

/* Escaped bytes up to their end, into the arena. */
static enum status
component_read_escaped(struct key_reader *r, struct arena *arena, struct str *ret)
{
	char *to = arena_bytes(arena, (size_t)(r->end - r->at) + 1);
	size_t len = 0;
	uint8_t c;

	if (!to)
		return STATUS_LIMIT;
	if (!r->mask)
		len = component_read_plain(r, to);
	for (;;) {
		TRY(key_next_byte(r, &c));
		if (!c) {
			uint8_t escape;

			TRY(key_next_byte(r, &escape));
			if (escape == ESCAPE_END)
				break;
			if (escape != ESCAPE_NUL)
				return STATUS_CORRUPT;
		}
		to[len++] = (char)c;
	}
	*ret = str_of(to, len);
	return STATUS_OK;
}

static enum status
component_read_double(struct key_reader *r, struct doc_scalar *ret)
{
	double nan = (double)NAN;
	uint64_t bits, nan_bits;

	TRY(component_read_u64(r, &bits));
	bits = bits >> 63 ? bits ^ UINT64_C(1) << 63 : ~bits;
	memcpy(&ret->d, &bits, sizeof(bits));
	memcpy(&nan_bits, &nan, sizeof(nan_bits));
	return isnan(ret->d) && bits != nan_bits ? STATUS_CORRUPT : STATUS_OK;
}

static enum status
component_read_float(struct key_reader *r, struct doc_scalar *ret)
{
	float nan = NAN;
	uint32_t bits, nan_bits;

	TRY(component_read_u32(r, &bits));
	bits = bits >> 31 ? bits ^ UINT32_C(1) << 31 : ~bits;
	memcpy(&ret->f, &bits, sizeof(bits));
	memcpy(&nan_bits, &nan, sizeof(nan_bits));
	return isnan(ret->f) && bits != nan_bits ? STATUS_CORRUPT : STATUS_OK;
}

/* The first half of a UUID whose time came first. */
static enum status
component_read_uuid_time(struct key_reader *r, char *uuid)
{
	char time[UUID_TIME_BYTES];

	TRY(component_read_bytes(r, time, sizeof(time)));
	memcpy(uuid + 6, time, 2);
	memcpy(uuid + 4, time + 2, 2);
	memcpy(uuid, time + 4, 4);
	return STATUS_OK;
}

static enum status
component_read_uuid(struct key_reader *r, struct arena *arena, struct doc_scalar *ret)
{
	bool by_time = ret->kind == DOC_TIMEUUID;
	char *uuid = arena_bytes(arena, DOC_UUID_BYTES);
	uint8_t version = UUID_VERSION_TIME;

	if (!uuid)
		return STATUS_LIMIT;
	if (!by_time)
		TRY(key_next_byte(r, &version));
	if (version == UUID_VERSION_TIME)
		TRY(component_read_uuid_time(r, uuid));
	else
		TRY(component_read_bytes(r, uuid, UUID_HALF_BYTES));
	TRY(component_read_bytes(r, uuid + UUID_HALF_BYTES, UUID_HALF_BYTES));
	for (size_t i = UUID_HALF_BYTES; by_time && i < DOC_UUID_BYTES; i++)
		uuid[i] = (char)(uuid[i] ^ 0x80);
	ret->text = str_of(uuid, DOC_UUID_BYTES);
	return (uint8_t)uuid[6] >> 4 == version ? STATUS_OK : STATUS_CORRUPT;
}

static enum status
component_read_i64(struct key_reader *r, struct doc_scalar *ret)
{
	uint64_t n;

	TRY(component_read_u64(r, &n));
	ret->n = (int64_t)(n ^ UINT64_C(1) << 63);
	return STATUS_OK;
}

static enum status
component_read_day(struct key_reader *r, struct doc_scalar *ret)
{
	uint32_t n;

	TRY(component_read_u32(r, &n));
	ret->n = (int32_t)(n ^ UINT32_C(1) << 31);
	return STATUS_OK;
}

static enum status
component_read_text(struct key_reader *r, struct arena *arena, struct doc_scalar *ret)
{
	TRY(component_read_escaped(r, arena, &ret->text));
	if (ret->kind == DOC_TEXT && utf8_valid_prefix(ret->text) < ret->text.len)
		return STATUS_CORRUPT;
	if (ret->kind == DOC_INET && ret->text.len != DOC_INET4_BYTES &&
	    ret->text.len != DOC_INET6_BYTES)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/* The kind of a component that is no number. */
static enum status
component_kind(uint8_t first, enum doc_kind *ret)
{
	switch (first) {
	case KEY_NULL:
		*ret = DOC_NULL;
		return STATUS_OK;
	case KEY_FALSE:
	case KEY_TRUE:
		*ret = DOC_BOOL;
		return STATUS_OK;
	case KEY_TEXT:
		*ret = DOC_TEXT;
		return STATUS_OK;
	case KEY_BYTES:
		*ret = DOC_BYTES;
		return STATUS_OK;
	case KEY_INET:
		*ret = DOC_INET;
		return STATUS_OK;
	case KEY_DOUBLE_BITS:
		*ret = DOC_DOUBLE;
		return STATUS_OK;
	case KEY_FLOAT_BITS:
		*ret = DOC_FLOAT;
		return STATUS_OK;
	case KEY_UUID:
		*ret = DOC_UUID;
		return STATUS_OK;
	case KEY_TIMEUUID:
		*ret = DOC_TIMEUUID;
		return STATUS_OK;
	case KEY_DATE:
		*ret = DOC_DATE;
		return STATUS_OK;
	case KEY_TIME:
		*ret = DOC_TIME;
		return STATUS_OK;
	case KEY_DAY:
		*ret = DOC_DAY;
		return STATUS_OK;
	default:
		return STATUS_INVALID;
	}
}

/* What is behind the first byte. */
static enum status
component_read_content(struct key_reader *r, struct arena *arena, struct doc_scalar *ret)
{
	switch ((int)ret->kind) {
	case DOC_TEXT:
	case DOC_BYTES:
	case DOC_INET:
		return component_read_text(r, arena, ret);
	case DOC_DOUBLE:
		return component_read_double(r, ret);
	case DOC_FLOAT:
		return component_read_float(r, ret);
	case DOC_UUID:
	case DOC_TIMEUUID:
		return component_read_uuid(r, arena, ret);
	case DOC_DATE:
		return component_read_i64(r, ret);
	case DOC_TIME:
		TRY(component_read_i64(r, ret));
		return ret->n >= 0 && ret->n < nanoseconds_of_day ? STATUS_OK : STATUS_CORRUPT;
	case DOC_DAY:
		return component_read_day(r, ret);
	default: /* null and booleans */
		return STATUS_OK;
	}
}

enum status
doc_key_read(struct str key, bool descending, struct arena *arena, struct doc_scalar *ret,
	     size_t *ret_len)
{
	struct key_reader r = { .mask = descending ? 0xff : 0 };
	struct doc_scalar s = { 0 };
	uint8_t first;

	r.at = (const uint8_t *)key.ptr;
	r.end = key.len ? r.at + key.len : r.at;
	TRY(key_next_byte(&r, &first));
	if (key_read_integer(&r, first, &s.n)) {
		s.kind = DOC_INT64;
	} else if (first >= KEY_NAN && first <= KEY_PLUS_INFINITY) {
		TRY(component_read_number(key, descending, arena, &s));
		TRY(doc_key_skip(key, descending, ret_len));
		*ret = s;
		return STATUS_OK;
	} else {
		TRY(component_kind(first, &s.kind));
		s.truth = first == KEY_TRUE;
		TRY(component_read_content(&r, arena, &s));
	}
	*ret = s;
	*ret_len = (size_t)(r.at - (const uint8_t *)key.ptr);
	return STATUS_OK;
}
