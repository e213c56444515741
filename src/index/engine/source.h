/*
 * Where entries get a document's values from: leaves, or a packed body. Nothing is built of it: a
 * value is found by its path and borrowed.
 *
 * Plain values, which borrow everything. Threading: that of the caller's work.
 */
#ifndef FROND_INDEX_ENGINE_SOURCE_H
#define FROND_INDEX_ENGINE_SOURCE_H

#include "index/engine/def.h"
#include "index/leaf.h"

/* One document. A column "_id" or "_rev" is these, whatever the body has. */
struct index_source {
	struct str id; /* of BSON: the bytes of its key */
	/* BSON; ptr NULL: it is JSON. Only the members that an index looks at need be there. */
	struct str bson;
	struct str rev;    /* as clients write it; ptr NULL: there is none, or nobody knows */
	struct str packed; /* the body as doc/packed.h has it; ptr NULL: it is in leaves */
	const struct kv_pair *leaves; /* as struct doc has them */
	size_t count;
};

/* The value of one column in one document. */
struct index_value {
	bool found;
	struct str text;        /* its JSON text where it came from a packed body; or ptr NULL */
	struct leaf_value leaf; /* where `text` is NULL */
};

/*
 * Finds the value at a column's path. A name that is a number is a position where an array is.
 * STATUS_CORRUPT for what is no document; STATUS_LIMIT when the arena of `w` is full; the failures
 * of index_count().
 */
MUST_USE enum status index_source_find(const struct index_source *source,
				       const struct index_column *column, struct index_work *w,
				       struct index_value *ret);

/* True if the filter of the index, if it has one, lets the document have entries. */
MUST_USE enum status index_source_matches(const struct index_source *source,
					  const struct index_def *def, struct index_work *w,
					  bool *ret);

#endif
