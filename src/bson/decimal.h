/*
 * Decimal128: 34 decimal digits and an exponent, by Intel's library. A number keeps its exponent,
 * so 1.0 and 1.00 are equal and not the same.
 *
 * Functions that may have to round, or that have no result, add what happened to `*flags`, which
 * may be NULL; they round to the nearest, ties to even. Plain functions.
 */
#ifndef FROND_BSON_DECIMAL_H
#define FROND_BSON_DECIMAL_H

#include "bson/bson.h"

enum {
	BSON_DECIMAL_DIGITS = 34,
	BSON_DECIMAL_TEXT_BYTES = 48, /* any text that bson_decimal_print() writes, and a NUL */
};

enum bson_decimal_flag {
	BSON_DECIMAL_INVALID = 1,
	BSON_DECIMAL_BY_ZERO = 4,
	BSON_DECIMAL_OVERFLOW = 8,
	BSON_DECIMAL_UNDERFLOW = 16,
	BSON_DECIMAL_INEXACT = 32,
};

/* ---- Text ---- */

/*
 * Reads all of `text`: digits with a sign, a point, an exponent; "Infinity", "inf", "NaN" in any
 * case. False for any other text. More digits than a number has are rounded, which `*flags` tells.
 */
bool bson_decimal_parse(struct str text, struct bson_decimal *ret, unsigned *flags);
/* As the BSON specification writes it, every digit of it; returns the length. */
size_t bson_decimal_print(struct bson_decimal d, char ret[BSON_DECIMAL_TEXT_BYTES]);

/* ---- Other types ---- */

struct bson_decimal bson_decimal_of_int64(int64_t n);
/* With the 15 digits that a double has for sure, as MongoDB converts; or with all 34. */
struct bson_decimal bson_decimal_of_double(double d);
struct bson_decimal bson_decimal_of_double_34(double d);
/* Of a number of any type; NaN of any other value. */
struct bson_decimal bson_decimal_of(const struct bson_value *v);
double bson_decimal_to_double(struct bson_decimal d);
/* True if it is an integer that an int64_t holds. */
bool bson_decimal_to_int64(struct bson_decimal d, int64_t *ret);

/* ---- Classes ---- */

bool bson_decimal_is_nan(struct bson_decimal d);
bool bson_decimal_is_infinite(struct bson_decimal d);
bool bson_decimal_is_zero(struct bson_decimal d);
bool bson_decimal_is_negative(struct bson_decimal d); /* the sign's bit */
/* By value; NaN is equal to itself and lower than any other. */
int bson_decimal_compare(struct bson_decimal a, struct bson_decimal b);

/* ---- Arithmetic ---- */

struct bson_decimal bson_decimal_add(struct bson_decimal a, struct bson_decimal b, unsigned *flags);
struct bson_decimal bson_decimal_subtract(struct bson_decimal a, struct bson_decimal b,
					  unsigned *flags);
struct bson_decimal bson_decimal_multiply(struct bson_decimal a, struct bson_decimal b,
					  unsigned *flags);
struct bson_decimal bson_decimal_divide(struct bson_decimal a, struct bson_decimal b,
					unsigned *flags);
/* The remainder has the sign of `a`, as fmod()'s. */
struct bson_decimal bson_decimal_modulo(struct bson_decimal a, struct bson_decimal b,
					unsigned *flags);
struct bson_decimal bson_decimal_power(struct bson_decimal a, struct bson_decimal b,
				       unsigned *flags);
struct bson_decimal bson_decimal_negate(struct bson_decimal d);
struct bson_decimal bson_decimal_absolute(struct bson_decimal d);

/* To `places` behind the point; less than 0: in front of it. */
enum bson_decimal_rounding {
	BSON_DECIMAL_NEAREST, /* ties to even */
	BSON_DECIMAL_FLOOR,
	BSON_DECIMAL_CEILING,
	BSON_DECIMAL_TRUNCATE,
};
struct bson_decimal bson_decimal_round(struct bson_decimal d, int places,
				       enum bson_decimal_rounding how, unsigned *flags);

enum bson_decimal_function {
	BSON_DECIMAL_SQRT,
	BSON_DECIMAL_EXP,
	BSON_DECIMAL_LN,
	BSON_DECIMAL_LOG10,
	BSON_DECIMAL_SIN,
	BSON_DECIMAL_COS,
	BSON_DECIMAL_TAN,
	BSON_DECIMAL_ASIN,
	BSON_DECIMAL_ACOS,
	BSON_DECIMAL_ATAN,
	BSON_DECIMAL_SINH,
	BSON_DECIMAL_COSH,
	BSON_DECIMAL_TANH,
	BSON_DECIMAL_ASINH,
	BSON_DECIMAL_ACOSH,
	BSON_DECIMAL_ATANH,
};
struct bson_decimal bson_decimal_apply(enum bson_decimal_function f, struct bson_decimal d,
				       unsigned *flags);
struct bson_decimal bson_decimal_atan2(struct bson_decimal y, struct bson_decimal x,
				       unsigned *flags);

#endif
