/* Numbers as Redis reads and writes them. Threading: none. */
#ifndef FROND_DOOR_REDIS_WIRE_NUMBER_H
#define FROND_DOOR_REDIS_WIRE_NUMBER_H

#include "base/str.h"

enum {
	NUMBER_TEXT_BYTES = 5 * 1024, /* of any number as text */
};

/* All of `s`, in the one way that such a number is written: no +, no leading zeros or spaces. */
bool number_read_i64(struct str s, int64_t *ret);

/* Bytes, as settings say them: "64mb", "1k". */
bool number_read_memory(struct str s, int64_t *ret);

/* False also for NaN, for spaces, and for an empty text. "inf" and "-inf" are numbers. */
bool number_read_double(struct str s, double *ret);
bool number_read_long_double(struct str s, long double *ret);

/* What Redis takes for a number that SORT orders by: also with spaces before it. */
bool number_read_weight(struct str s, double *ret);

/*
 * What Redis takes for the bound of a range of scores: also with spaces before it, empty for 0, and
 * beyond what a double can be.
 */
bool number_read_bound(struct str s, double *ret);

/* What Redis takes for a part of a stream's id: also with spaces, a sign or zeros before it. */
bool number_read_unsigned(struct str s, uint64_t *ret);

/* The shortest text that is read back as the same number; whole numbers without a point. */
struct str number_write_double(double d, char buf[static 64]);
/* 17 digits behind the point at most, without zeros at the end: as INCRBYFLOAT answers. */
struct str number_write_long_double(long double d, char buf[static NUMBER_TEXT_BYTES]);

#endif
