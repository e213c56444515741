/*
 * Sums of numbers as MongoDB has them, for $sum, $avg and $add: exact for integers, with a
 * correction for doubles, so that the order of the numbers hardly matters. Plain functions.
 */
#ifndef FROND_MQL_SUM_H
#define FROND_MQL_SUM_H

#include "mql/mql.h"

struct mql_sum {
	double high, low;            /* of all that are not Decimal128 */
	double plain;                /* their plain sum, which knows infinities and NaN */
	struct bson_decimal decimal; /* of those that are, if there are any */
	bool decimals;
	enum bson_type type; /* the widest so far; 0: none yet */
	uint64_t count;
};

/* `*s` starts as {0}. Values that are no numbers are passed over. */
void mql_sum_add(struct mql_sum *s, const struct bson_value *v);
/* int32 0 of nothing. */
struct bson_value mql_sum_value(const struct mql_sum *s);
/* A double or a Decimal128; null of nothing. */
struct bson_value mql_sum_average(const struct mql_sum *s);

/* The wider of two types of numbers: int32, int64, double, Decimal128; 0 is the narrowest. */
enum bson_type mql_widest(enum bson_type a, enum bson_type b);

#endif
