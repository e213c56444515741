/*
 * Varints and decimals of any length, exact: their bytes, their texts, arithmetic.
 *
 * A varint is an integer in two's complement. A decimal is a scale of 32 bits and a varint behind
 * it, and stands for varint · 10^-scale. Results are in the arena. No number has more than
 * CQL_DIGITS digits (CQL_E_NUMBER_LONG), so that what is computed with one is short. Plain
 * functions.
 */
#ifndef FROND_CQL_NUMBER_H
#define FROND_CQL_NUMBER_H

#include "cql/cql.h"

enum {
	CQL_VARINT_BYTES = 4152, /* of a varint: those of CQL_DIGITS digits */
	CQL_SCALE_BYTES = 4,
};

/* Without bytes in front that only repeat the sign. */
struct str cql_varint_minimal(struct str bytes);
MUST_USE enum status cql_varint_of_int(struct cql *q, int64_t n, struct str *ret);
/* False if an int64_t is not enough. */
bool cql_varint_to_int(struct str bytes, int64_t *ret);

/*
 * Digits with a sign; false for another text, of more than CQL_DIGITS digits, or when the arena is
 * full (*ret is then without bytes).
 */
bool cql_varint_parse(struct cql *q, struct str text, struct str *ret);
void cql_varint_print(struct buf *out, struct str bytes);

/* Digits with a sign, a point, an exponent; as cql_varint_parse(). */
bool cql_decimal_parse(struct cql *q, struct str text, struct str *ret);
/* As Java's BigDecimal.toString(). */
void cql_decimal_print(struct buf *out, struct str bytes);

enum cql_sum {
	CQL_SUM_ADD,
	CQL_SUM_SUBTRACT,
	CQL_SUM_MULTIPLY,
	CQL_SUM_DIVIDE, /* varints: towards zero; decimals: 32 digits and more, half up */
	CQL_SUM_MODULO, /* with the sign of the first */
};

/* STATUS_INVALID, without words, for a division by zero; CQL_E_NUMBER_LONG. */
MUST_USE enum status cql_varint_compute(struct cql *q, enum cql_sum op, struct str a, struct str b,
					struct str *ret);
MUST_USE enum status cql_decimal_compute(struct cql *q, enum cql_sum op, struct str a, struct str b,
					 struct str *ret);

/* The nearest double; infinite beyond their range. */
double cql_decimal_to_double(struct str bytes);
double cql_varint_to_double(struct str bytes);
/* The double that a text tells, which is released; `without`: what it is without memory. */
double cql_double_of_text(struct buf *text, double without);
/* The decimal that has the double's shortest text. Finite ones only. */
MUST_USE enum status cql_decimal_of_double(struct cql *q, double d, struct str *ret);
/* A varint as a decimal, and a decimal's integer part. */
MUST_USE enum status cql_decimal_of_varint(struct cql *q, struct str bytes, struct str *ret);
MUST_USE enum status cql_decimal_to_varint(struct cql *q, struct str bytes, struct str *ret);

/* Doubles and floats as Java writes them: 1.0, 1.0E10, NaN, Infinity. */
void cql_double_print(struct buf *out, double d);
void cql_float_print(struct buf *out, float f);

#endif
