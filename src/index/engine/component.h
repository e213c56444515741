/*
 * Components of entries' keys: a value becomes one element of bytes in a key.
 *
 * Threading: that of the work.
 */
#ifndef FROND_INDEX_ENGINE_COMPONENT_H
#define FROND_INDEX_ENGINE_COMPONENT_H

#include "index/engine/source.h"

/* What a component may take of a key. */
size_t index_component_share(const struct index_def *def);

/*
 * Appends the component of a value in this column, cut to its share: then *ret_cut is set, and
 * otherwise it is left alone. A value that was not found is null.
 */
MUST_USE enum status index_component_put(struct buf *key, const struct index_def *def,
					 size_t column, const struct index_value *value,
					 struct index_work *w, bool *ret_cut);

/*
 * Appends a component as an element of bytes: as tuple_put_bytes(), but with at most `share` bytes
 * of encoded content; `*ret_cut` is set if that is not all of it. Cutting the encoded content keeps
 * the order, since no component is the beginning of another one; a NUL is never parted from what
 * escapes it.
 */
void index_component_wrap(struct buf *key, struct str raw, size_t share, bool *ret_cut);

/* The same for what a document's id has before its first colon. */
MUST_USE enum status index_partition_put(struct buf *key, const struct index_def *def,
					 struct str partition, bool *ret_cut);

/*
 * Appends the component of a value, uncut and in the form of doc_key_put(). The value is JSON text
 * with any white space and members in any order. `order` is DOC_KEY_COUCH or DOC_KEY_RAW. The text
 * is checked as it is read. STATUS_KEY_TOO_LARGE for a component of more than `most` bytes, or a
 * number of too many digits: nothing was appended then. The failures of the JSON reader and of
 * collate_sort_key().
 */
MUST_USE enum status index_component_of_text(struct buf *raw, enum doc_key_order order,
					     struct str text, size_t most, struct index_work *w);

#endif
