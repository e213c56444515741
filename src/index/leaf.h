/*
 * A JSON value, read from its leaves: those below one path of a document, in key order. Nothing is
 * copied and no tree is built; a binary search finds a member.
 *
 * A value borrows its leaves. A text that has a NUL in it or lies in several leaves cannot be
 * borrowed and is put together in an arena. Members come in key order. A function that reads a leaf
 * that no document can have returns STATUS_CORRUPT. A function that takes a struct index_work
 * counts its steps there, and returns the failures of index_count(). Several threads may call these
 * functions at the same time, each with its own arena.
 */
#ifndef FROND_INDEX_LEAF_H
#define FROND_INDEX_LEAF_H

#include "base/arena.h"
#include "base/status.h"
#include "doc/doc.h"
#include "index/work.h"
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

/* The leaves whose paths share their first `at` bytes. No leaves are an empty document. */
struct leaf_value {
	const struct kv_pair *leaves;
	size_t count;
	size_t at;
};

/*
 * leaf_of_string() and leaf_of_bool() make a value in the arena. They return STATUS_LIMIT when the
 * arena is full.
 */
MUST_USE enum status leaf_of_string(struct str text, struct arena *arena, struct leaf_value *ret);
MUST_USE enum status leaf_of_bool(bool value, struct arena *arena, struct leaf_value *ret);

/*
 * Parses a JSON value into leaves in the arena. Returns the JSON reader's errors and those of
 * doc_explode().
 */
MUST_USE enum status leaf_parse(struct str text, struct arena *arena, struct leaf_value *ret,
				struct err *err);

/* Appends the value as JSON. One without leaves is a whole document that is empty. */
MUST_USE enum status leaf_write(const struct leaf_value *v, struct buf *out);

MUST_USE enum status leaf_kind(const struct leaf_value *v, enum leaf_kind *ret);

/* True if the value is a container that is not empty, so that leaves lie below it. */
bool leaf_has_children(const struct leaf_value *v);

/*
 * Returns the content of a string, borrowed from its leaf or put together in the arena of `w`.
 * STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status leaf_text(const struct leaf_value *v, struct index_work *w, struct str *ret);

/* Returns the number of elements of an array. */
MUST_USE enum status leaf_array_count(const struct leaf_value *v, uint64_t *ret);

/* Finds the child under an encoded path element. Returns false if there is none. */
bool leaf_find(const struct leaf_value *v, struct str element, struct leaf_value *ret);

/*
 * Steps through the children of a container, beginning with {.rest = the value}. Returns
 * STATUS_NOT_FOUND at the end, and at once if the value has no children. `*ret_key` is the name of
 * a member or a position.
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

/* Compares by value, so that 1 and 1.0 are equal. Returns <0, 0 or >0. */
int leaf_number_cmp(const struct leaf_number *a, const struct leaf_number *b);

/*
 * Computes the remainder of an integer by `divisor` (not 0), with the sign of the integer.
 * `*ret_is_integer` is false for doubles, which have none.
 */
MUST_USE enum status leaf_number_rem(const struct leaf_number *n, int64_t divisor,
				     struct index_work *w, bool *ret_is_integer, int64_t *ret);

#endif
