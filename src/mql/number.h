/*
 * Arithmetic with MongoDB's types of results: int32 becomes int64 where it does not fit, a double
 * makes a double, a Decimal128 a Decimal128. Plain functions on numbers.
 */
#ifndef FROND_MQL_NUMBER_H
#define FROND_MQL_NUMBER_H

#include "mql/mql.h"

/* False if an int64 is not enough for the result. */
bool mql_add(const struct bson_value *a, const struct bson_value *b, struct bson_value *ret);
bool mql_multiply(const struct bson_value *a, const struct bson_value *b, struct bson_value *ret);

#endif
