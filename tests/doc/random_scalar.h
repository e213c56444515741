/*
 * Random scalars of every kind, among them many numbers that are equal or nearly so although their
 * types differ. Their texts lie in the arena.
 */
#ifndef FROND_TESTS_DOC_RANDOM_SCALAR_H
#define FROND_TESTS_DOC_RANDOM_SCALAR_H

#include <math.h>

#include "base/arena.h"
#include "base/rand.h"
#include "doc/scalar.h"

static const enum doc_kind random_kinds[] = {
	DOC_NULL,    DOC_BOOL,     DOC_TEXT,        DOC_BYTES,        DOC_INT64,     DOC_DOUBLE,
	DOC_FLOAT,   DOC_NUMBER,   DOC_UUID,        DOC_INT32,        DOC_INT16,     DOC_INT8,
	DOC_INTEGER, DOC_DECIMAL,  DOC_DECIMAL128,  DOC_BINARY,       DOC_DATE,      DOC_DAY,
	DOC_TIME,    DOC_DURATION, DOC_TIMEUUID,    DOC_OBJECT_ID,    DOC_TIMESTAMP, DOC_REGEX,
	DOC_CODE,    DOC_SYMBOL,   DOC_CODE_SCOPE,  DOC_DB_POINTER,   DOC_UNDEFINED, DOC_MIN_KEY,
	DOC_MAX_KEY, DOC_INET,     DOC_EMPTY_ARRAY, DOC_EMPTY_OBJECT,
};

static inline struct str
random_bytes(struct rand_seq *r, struct arena *arena, size_t len)
{
	char *bytes = arena_bytes(arena, len + 1);

	for (size_t i = 0; i < len; i++)
		bytes[i] = rand_seq_below(r, 4) ? (char)rand_seq_next(r) : '\0';
	return str_of(bytes, len);
}

static inline struct str
random_text(struct rand_seq *r, struct arena *arena, bool nul)
{
	size_t len = rand_seq_below(r, 6);
	char *bytes = arena_bytes(arena, len + 1);

	for (size_t i = 0; i < len; i++)
		bytes[i] = "ab\x7f\x01\0"[rand_seq_below(r, nul ? 5 : 4)];
	return str_of(bytes, len);
}

static inline struct str
random_magnitude(struct rand_seq *r, struct arena *arena, size_t len)
{
	struct str s = random_bytes(r, arena, len);
	size_t zeros = 0;

	while (zeros < len && !s.ptr[zeros])
		zeros++;
	return str_skip(s, zeros);
}

static inline int64_t
random_i64(struct rand_seq *r, unsigned bits)
{
	int64_t n = (int64_t)(rand_seq_next(r) >> (64 - bits) >> rand_seq_below(r, bits));
	int64_t least = -(INT64_C(1) << (bits - 2)) * 2;

	if (rand_seq_below(r, 16) == 0)
		return rand_seq_below(r, 2) ? least : -1 - least;
	return rand_seq_below(r, 2) ? n & (-1 - least) : -(n & (-1 - least));
}

static inline double
random_double(struct rand_seq *r)
{
	static const double special[] = { 0.0,    -0.0,      1.0,       0.1,     0x1p53, 0x1p63,
					  0x1p64, 5e-324,    1e308,     -5e-324, NAN,    INFINITY,
					  1e22,   -INFINITY, 0x1p-1022, 1.5,     1e23,   -0.5 };
	uint64_t bits = rand_seq_next(r);
	double d;

	switch (rand_seq_below(r, 4)) {
	case 0:
		return special[rand_seq_below(r, sizeof(special) / sizeof(*special))];
	case 1:
		return (double)(int64_t)bits / (double)(1 << rand_seq_below(r, 20));
	case 2:
		return (double)random_i64(r, 16) * pow(10, (double)rand_seq_below(r, 40) - 20);
	default:
		memcpy(&d, &bits, sizeof(d));
		return d;
	}
}

/* Coefficient (at most 34 digits) times 10^power, which is cut to what there is. */
static inline struct doc_scalar
decimal128_of(bool negative, unsigned __int128 n, int power)
{
	int exponent = power + 6176;

	if (exponent < 0)
		exponent = 0;
	if (exponent > 12287)
		exponent = 12287;
	return (struct doc_scalar){
		.kind = DOC_DECIMAL128,
		.high = (uint64_t)negative << 63 | (uint64_t)exponent << 49 | (uint64_t)(n >> 64),
		.low = (uint64_t)n,
	};
}

/* The digits that a double is printed with, all or some of them, as a decimal: near or equal. */
static inline struct doc_scalar
decimal128_near(struct rand_seq *r, double d)
{
	char text[64];
	unsigned __int128 n = 0;
	int digits = 1 + (int)rand_seq_below(r, 34);

	if (!isfinite(d))
		return decimal128_of(d < 0, rand_seq_below(r, 3), 0);
	snprintf(text, sizeof(text), "%.*e", digits - 1, fabs(d));
	for (const char *at = text; *at != 'e'; at++)
		if (*at != '.')
			n = n * 10 + (unsigned)(*at - '0');
	return decimal128_of(signbit(d), n, atoi(strchr(text, 'e') + 1) - (digits - 1));
}

static inline struct doc_scalar
random_decimal128(struct rand_seq *r)
{
	static const uint64_t special[] = { 0x7c, 0xfc, 0x78, 0xf8, 0x7e, 0x60, 0x6f };

	switch (rand_seq_below(r, 8)) {
	case 0: /* NaNs, infinities, coefficients that are too large */
		return (struct doc_scalar){ .kind = DOC_DECIMAL128,
					    .high = special[rand_seq_below(r, 7)] << 56 |
						    rand_seq_below(r, 3),
					    .low = rand_seq_below(r, 3) };
	case 1:
		return (struct doc_scalar){ .kind = DOC_DECIMAL128,
					    .high = rand_seq_next(r),
					    .low = rand_seq_next(r) };
	case 2:
		return decimal128_of(rand_seq_below(r, 2), rand_seq_below(r, 1000),
				     (int)rand_seq_below(r, 12288) - 6176);
	case 3:
		return decimal128_of(rand_seq_below(r, 2), rand_seq_next(r),
				     (int)rand_seq_below(r, 40) - 20);
	default:
		return decimal128_near(r, random_double(r));
	}
}

/* The magnitude of 2^bits plus or minus a little. */
static inline struct doc_scalar
random_integer(struct rand_seq *r, struct arena *arena)
{
	unsigned bits = (unsigned)rand_seq_below(r, 1400);
	size_t len = bits / 8 + 1;
	struct doc_scalar s = { .kind = DOC_INTEGER, .negative = rand_seq_below(r, 2) };
	char *bytes;

	if (rand_seq_below(r, 2)) {
		s.text = random_magnitude(r, arena, rand_seq_below(r, 40));
		s.negative = s.negative && s.text.len;
		return s;
	}
	bytes = arena_bytes(arena, len);
	memset(bytes, 0, len);
	bytes[0] = (char)(1 << bits % 8);
	if (len > 1 && rand_seq_below(r, 2))
		bytes[len - 1] = (char)rand_seq_below(r, 3);
	s.text = str_of(bytes, len);
	return s;
}

static inline void
random_parts(struct rand_seq *r, struct arena *arena, struct doc_scalar *s)
{
	switch ((int)s->kind) {
	case DOC_BOOL:
		s->truth = rand_seq_below(r, 2);
		return;
	case DOC_TEXT:
	case DOC_CODE:
	case DOC_SYMBOL:
		s->text = random_text(r, arena, true);
		return;
	case DOC_BYTES:
		s->text = random_bytes(r, arena, rand_seq_below(r, 8));
		return;
	case DOC_BINARY:
		s->n = 1 + (int64_t)rand_seq_below(r, 255);
		s->text = random_bytes(r, arena, rand_seq_below(r, 8));
		return;
	case DOC_TIMEUUID:
	case DOC_UUID:
		s->text = random_bytes(r, arena, DOC_UUID_BYTES);
		if (s->kind == DOC_TIMEUUID || rand_seq_below(r, 2))
			((char *)(uintptr_t)s->text.ptr)[6] = (char)(0x10 | rand_seq_below(r, 16));
		return;
	case DOC_OBJECT_ID:
		s->text = random_bytes(r, arena, DOC_OBJECT_ID_BYTES);
		return;
	case DOC_INET:
		s->text = random_bytes(r, arena, rand_seq_below(r, 2) ? 4 : 16);
		return;
	case DOC_REGEX:
		s->text = random_text(r, arena, false);
		s->more = random_text(r, arena, false);
		return;
	case DOC_CODE_SCOPE:
		s->text = random_text(r, arena, true);
		s->more = random_bytes(r, arena, rand_seq_below(r, 8));
		return;
	case DOC_DB_POINTER:
		s->text = random_text(r, arena, true);
		s->more = random_bytes(r, arena, DOC_OBJECT_ID_BYTES);
		return;
	case DOC_DURATION:
		s->n = (int64_t)(rand_seq_next(r) >> (1 + rand_seq_below(r, 63)));
		s->months = (int32_t)rand_seq_below(r, 100);
		s->days = (int32_t)rand_seq_below(r, 100);
		if (rand_seq_below(r, 2)) {
			s->n = -s->n;
			s->months = -s->months;
			s->days = -s->days;
		}
		return;
	case DOC_TIME:
		s->n = (int64_t)rand_seq_below(r, UINT64_C(86400000000000));
		return;
	default:
		return;
	}
}

static inline struct doc_scalar
random_scalar_of(struct rand_seq *r, struct arena *arena, enum doc_kind kind)
{
	struct doc_scalar s = { .kind = kind };

	switch ((int)kind) {
	case DOC_INT8:
		s.n = random_i64(r, 8);
		return s;
	case DOC_INT16:
		s.n = random_i64(r, 16);
		return s;
	case DOC_INT32:
	case DOC_DAY:
		s.n = random_i64(r, 32);
		return s;
	case DOC_INT64:
	case DOC_DATE:
	case DOC_TIMESTAMP:
		s.n = random_i64(r, 64);
		return s;
	case DOC_DOUBLE:
		s.d = random_double(r);
		return s;
	case DOC_FLOAT:
		s.f = (float)random_double(r);
		return s;
	case DOC_NUMBER:
		s.d = 1.1;
		s.text = STR("1.10");
		return s;
	case DOC_INTEGER:
		return random_integer(r, arena);
	case DOC_DECIMAL:
		s = random_integer(r, arena);
		s.kind = kind;
		s.n = (int64_t)rand_seq_below(r, 500) - 250;
		return s;
	case DOC_DECIMAL128:
		return random_decimal128(r);
	default:
		random_parts(r, arena, &s);
		return s;
	}
}

static inline struct doc_scalar
random_scalar_any(struct rand_seq *r, struct arena *arena)
{
	size_t kinds = sizeof(random_kinds) / sizeof(random_kinds[0]);

	return random_scalar_of(r, arena, random_kinds[rand_seq_below(r, kinds)]);
}

#endif
