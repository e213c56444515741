/*
 * Values as _sum and _stats add them: numbers, arrays, objects. Integers of up to 127 bits are
 * exact; sums with a fraction or beyond are doubles.
 *
 * Everything is in the arena given. Threading: none of its own.
 */
#ifndef FROND_INDEX_VIEW_SUM_H
#define FROND_INDEX_VIEW_SUM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	SUM_DEPTH = 64, /* containers inside each other that are added */
};

struct sum_number {
	bool is_double;
	__int128 i;
	double d;
};

struct sum_number sum_number_read(struct str text, bool is_integer);
struct sum_number sum_number_add(struct sum_number a, struct sum_number b);
struct sum_number sum_number_multiply(struct sum_number a, struct sum_number b);
int sum_number_cmp(struct sum_number a, struct sum_number b);
void sum_number_write(struct sum_number n, struct buf *out);

enum sum_kind {
	SUM_NOTHING, /* no value yet */
	SUM_NUMBER,
	SUM_ARRAY,
	SUM_OBJECT,
	SUM_OTHER, /* a text, true, …: cannot be added */
};

struct sum_value {
	enum sum_kind kind;
	struct sum_number number;
	struct sum_value *items; /* of an array, or the members' values */
	struct str *names;       /* of an object: sorted, each once */
	size_t count;
	struct str text; /* what it was read from */
};

/* Reads a JSON text; what lies deeper than SUM_DEPTH is SUM_OTHER. The JSON reader's failures. */
MUST_USE enum status sum_value_read(struct str text, struct arena *arena, struct sum_value *ret);
void sum_value_write(const struct sum_value *value, struct buf *out);
/* The member's value; NULL. */
struct sum_value *sum_value_member(const struct sum_value *object, const char *name);

/*
 * Adds `value` to `*acc`, as _sum does. Where they cannot be added, `*ret_cause` is the value that
 * is to blame (else NULL), and *acc is to be thrown away. STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status sum_value_add(struct sum_value *acc, const struct sum_value *value,
				   struct arena *arena, const struct sum_value **ret_cause);

#endif
