/*
 * A JSON value where it lies: the leaves below one path of a document, in key order. Nothing is
 * copied and no tree is built; looking up a member is a binary search.
 *
 * A value borrows its leaves. Texts that cannot be borrowed (with a NUL in them, or split over
 * several leaves) are put together in an arena. Members come in key order. Leaves that no document
 * can have are STATUS_CORRUPT where a function meets them.
 */
#ifndef FROND_INDEX_LEAF_H
#define FROND_INDEX_LEAF_H

#include "base/arena.h"
#include "base/status.h"
#include "doc/doc.h"
#include "kv/tuple.h"

/* In the order of view collation. */
enum leaf_kind {
	LEAF_NULL,
	LEAF_FALSE,
	LEAF_TRUE,
	LEAF_NUMBER,
	LEAF_STRING,
	LEAF_ARRAY,
	LEAF_OBJECT,
};

/* The leaves whose paths share their first `at` bytes. None at all: an empty document. */
struct leaf_value {
	const struct kv_pair *leaves;
	size_t count;
	size_t at;
};

/* A string or a boolean as a value of its own, in the arena. STATUS_LIMIT. */
MUST_USE enum status leaf_of_string(struct str text, struct arena *arena, struct leaf_value *ret);
MUST_USE enum status leaf_of_bool(bool value, struct arena *arena, struct leaf_value *ret);

/* Parses a JSON value into leaves in the arena. The reader's errors, and doc_explode()'s. */
MUST_USE enum status leaf_parse(struct str text, struct arena *arena, struct leaf_value *ret,
				struct err *err);

MUST_USE enum status leaf_kind(const struct leaf_value *v, enum leaf_kind *ret);

/* True if leaves of its own lie below the value: it is a container, and not an empty one. */
bool leaf_has_children(const struct leaf_value *v);

/* The content of a string. */
MUST_USE enum status leaf_text(const struct leaf_value *v, struct arena *arena, struct str *ret);

/* How many elements an array has. */
MUST_USE enum status leaf_array_count(const struct leaf_value *v, uint64_t *ret);

/* The child under an encoded path element; false if there is none. */
bool leaf_find(const struct leaf_value *v, struct str element, struct leaf_value *ret);

/*
 * Goes through the children of a container: start with {.rest = the value}. STATUS_NOT_FOUND at the
 * end; a value that has no children is at its end. `*ret_key` is the member's name or the position.
 */
struct leaf_iter {
	struct leaf_value rest;
};

MUST_USE enum status leaf_next(struct leaf_iter *iter, struct tuple_elem *ret_key,
			       struct leaf_value *ret);

/* ---- Numbers, exactly ---- */

enum leaf_number_form {
	LEAF_NUMBER_INT,    /* `magnitude` */
	LEAF_NUMBER_BIG,    /* `big`: big-endian bytes, complemented when negative; beyond INT */
	LEAF_NUMBER_HUGE,   /* `big`: decimal digits; beyond BIG */
	LEAF_NUMBER_DOUBLE, /* `d`, never negative */
};

struct leaf_number {
	enum leaf_number_form form;
	bool negative;
	uint64_t magnitude;
	double d;
	struct str big;
};

MUST_USE enum status leaf_number(const struct leaf_value *v, struct leaf_number *ret);

/* <0, 0, >0 by value: 1 and 1.0 are equal. */
int leaf_number_cmp(const struct leaf_number *a, const struct leaf_number *b);

/* The remainder of an integer by `divisor` (not 0), with the integer's sign; false for doubles. */
bool leaf_number_rem(const struct leaf_number *n, int64_t divisor, int64_t *ret);

#endif
