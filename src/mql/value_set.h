/* The different values of an array, in order, to be looked up by halves. */
#ifndef FROND_MQL_VALUE_SET_H
#define FROND_MQL_VALUE_SET_H

#include "mql/mql.h"

/*
 * Copied freely. The array is borrowed, and each value is only the place where its element begins
 * there: 8 bytes in the arena, and 32 more while they are sorted.
 */
struct mql_value_set {
	const char *end;     /* of the array's elements */
	const void **places; /* of equal values the first, in order */
	size_t count;
	size_t all_count; /* the array's elements */
	uint32_t types;   /* which there are: a bit for each but MinKey and MaxKey */
};

/* `texts` orders texts, here and in all lookups; where it is NULL, their bytes do. */
MUST_USE enum status mql_value_set_of(struct mql *q, struct str array,
				      const struct bson_texts *texts, struct mql_value_set *ret);

/* The value number `i` in order. */
struct bson_value mql_value_set_at(const struct mql_value_set *s, size_t i);

/* Where a value equal to `v` is in order; false if there is none. */
bool mql_value_set_find(const struct mql_value_set *s, const struct bson_texts *texts,
			const struct bson_value *v, size_t *ret);

/* True if one of the values has one of these types, given as bits. */
static inline bool
mql_value_set_has(const struct mql_value_set *s, uint32_t types)
{
	return s->types & types;
}

/* A set of the same values, with places of its own that the caller may take some of. */
MUST_USE enum status mql_value_set_copy(struct mql *q, const struct mql_value_set *s,
					struct mql_value_set *ret);

/* Puts the values into the order of the array, after which none can be looked up. */
MUST_USE enum status mql_value_set_by_place(struct mql *q, struct mql_value_set *s);

#endif
