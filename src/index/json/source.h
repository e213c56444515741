/*
 * What an index of JSON looks at in a document: the values of its columns, and whether its filter
 * lets it in.
 *
 * Plain values, which borrow everything. Threading: that of the caller's work.
 */
#ifndef FROND_INDEX_JSON_SOURCE_H
#define FROND_INDEX_JSON_SOURCE_H

#include "doc/packed.h"
#include "index/engine/def.h"
#include "index/engine/source.h"
#include "index/leaf.h"
#include "index/selector/selector.h"

/* The filter of a definition, in `opened`. */
struct index_json_filter {
	const struct selector *selector;
	/* The members of a document that it looks at, unless it looks at the whole of it. */
	const struct doc_member *members;
	size_t members_count;
	bool whole;
};

/* The value of one column in one document. */
struct index_value {
	bool found;
	struct str text;        /* its JSON text where it came from a packed body; or ptr NULL */
	struct leaf_value leaf; /* where `text` is NULL */
};

/*
 * Finds the value at a column's path. A name that is a number is a position where an array is. A
 * column "_id" or "_rev" is that of the source, whatever the body has. STATUS_CORRUPT for what is
 * no document; STATUS_LIMIT when the arena of `w` is full; the failures of index_count().
 */
MUST_USE enum status index_json_find(const struct index_source *source,
				     const struct index_column *column, struct index_work *w,
				     struct index_value *ret);

/* True if the filter of the index, if it has one, lets the document have entries. */
MUST_USE enum status index_json_matches(const struct index_source *source,
					const struct index_def *def, struct index_work *w,
					bool *ret);

#endif
