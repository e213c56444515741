/*
 * The order of JSON values in CouchDB's views:
 *
 *     null < false < true < numbers < strings < arrays < objects
 *
 * Numbers by value, exactly; strings by ICU's root collation, in which different strings can be
 * equal; arrays element by element, a prefix first; objects member by member, the name and then the
 * value, a prefix first. CouchDB takes members in the order in which they were stored; here that is
 * the order of keys, so that equal objects are equal however they were written down.
 *
 * Thread-safe. The collator is opened at the first use and stays.
 */
#ifndef FROND_INDEX_COLLATE_H
#define FROND_INDEX_COLLATE_H

#include "index/leaf.h"

/*
 * *ret is <0, 0 or >0. STATUS_UNAVAILABLE when ICU's data cannot be read, STATUS_NOMEM,
 * STATUS_LIMIT when the arena, which texts may be put together in, is full.
 */
MUST_USE enum status collate_compare(const struct leaf_value *a, const struct leaf_value *b,
				     struct arena *scratch, int *ret);

/* Strings alone. */
MUST_USE enum status collate_strings(struct str a, struct str b, int *ret);

/*
 * Whether two values are the same, beyond being equal in order: strings byte by byte, and 1 is not
 * 1.0, as in Erlang's =:=.
 */
MUST_USE enum status collate_same(const struct leaf_value *a, const struct leaf_value *b,
				  bool *ret);

#endif
