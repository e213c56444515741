/*
 * Filters of indexes of rows: conditions on columns, all of which a row fulfils that has entries. A
 * column that is null fulfils none. Values of one column are of one type, and compare as keys do
 * (form.h).
 *
 * Plain functions. Threading: none.
 */
#ifndef FROND_INDEX_TYPED_FILTER_H
#define FROND_INDEX_TYPED_FILTER_H

#include "index/typed/form.h"

enum {
	INDEX_TYPED_CONDITIONS = 16, /* of one index */
};

/* Stored as words: see filter.c. */
enum index_typed_operator {
	INDEX_TYPED_EQ,
	INDEX_TYPED_NE,
	INDEX_TYPED_LT,
	INDEX_TYPED_LE,
	INDEX_TYPED_GT,
	INDEX_TYPED_GE,
	INDEX_TYPED_NOT_NULL,
};

struct index_typed_condition {
	uint64_t column;
	enum index_typed_operator op;
	struct doc_scalar value; /* not of NOT_NULL */
};

/* What a definition of a set has in `opened`, if it has a filter. */
struct index_typed_filter {
	const struct index_typed_condition *conditions;
	size_t count;
};

/* Appends the filter as definitions have it: a text. The failures of the buffer. */
MUST_USE enum status index_typed_filter_put(const struct index_typed_condition *conditions,
					    size_t count, struct buf *ret);
/* Reads one, into the arena. STATUS_INVALID: it is none; STATUS_LIMIT. */
MUST_USE enum status index_typed_filter_read(struct str text, struct arena *arena,
					     struct index_typed_filter *ret);

/*
 * Appends the component of a value. One that has no bytes is less than all others of its type, and
 * what is not there (DOC_UNDEFINED) is less than that.
 */
MUST_USE enum status index_typed_put(struct buf *raw, const struct doc_scalar *s);
/* How a value compares with the condition's: *ret is <0, 0 or >0. */
MUST_USE enum status index_typed_compare(const struct doc_scalar *a, const struct doc_scalar *b,
					 int *ret);
/* Whether a value that is not null fulfils the condition. */
MUST_USE enum status index_typed_holds(const struct index_typed_condition *condition,
				       const struct doc_scalar *value, bool *ret);

#endif
