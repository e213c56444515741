/*
 * The order of JSON values in CouchDB's views:
 *
 *     null < false < true < numbers < strings < arrays < objects
 *
 * Numbers compare by value, exactly; strings by ICU's root collation, in which different strings
 * can be equal; arrays element by element; objects member by member, first the name and then the
 * value. A container comes before those that it is the beginning of. CouchDB compares members in
 * the order in which they were stored. Here that is the order of keys, so that objects with the
 * same members are equal in whatever order a client wrote them.
 *
 * Threads may use it at the same time. The first use opens ICU's collator, which stays open. Steps
 * are counted in a struct index_work (index/work.h); the failures of that are returned, too.
 */
#ifndef FROND_INDEX_COLLATE_H
#define FROND_INDEX_COLLATE_H

#include "index/leaf.h"

enum {
	/*
	 * When both strings are longer than this, ICU compares them in the thread pool, because one
	 * call compares all of them and cannot let other fibers run meanwhile.
	 */
	COLLATE_OFFLOAD_BYTES = 16 * 1024,
};

/*
 * Compares two values: *ret is <0, 0 or >0. Returns STATUS_UNAVAILABLE when the data of ICU cannot
 * be read, STATUS_NOMEM, or STATUS_LIMIT when the arena is full, in which texts may have to be put
 * together.
 */
MUST_USE enum status collate_compare(const struct leaf_value *a, const struct leaf_value *b,
				     struct index_work *w, int *ret);

/* Compares two strings in the same order. */
MUST_USE enum status collate_strings(struct str a, struct str b, struct index_work *w, int *ret);

/*
 * Appends the sort key of a text: bytes, none of them 0, that compare as collate_strings() compares
 * the texts. Of a key that is longer than `most` bytes, the first `most`.
 */
MUST_USE enum status collate_sort_key(struct str text, size_t most, struct index_work *w,
				      struct buf *ret);

/*
 * Compares two values in some order in which exactly those are equal that are the same as in
 * Erlang's =:=, which is more than being equal in collation: strings have the same bytes, and 1 is
 * not 1.0. The order itself has no meaning; it is for sorting and searching.
 */
MUST_USE enum status collate_exactly(const struct leaf_value *a, const struct leaf_value *b,
				     struct index_work *w, int *ret);

/* *ret is true if collate_exactly() finds the values equal. */
MUST_USE enum status collate_same(const struct leaf_value *a, const struct leaf_value *b,
				  struct index_work *w, bool *ret);

#endif
