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

/* The same for what a document's id has before its first colon. */
MUST_USE enum status index_partition_put(struct buf *key, const struct index_def *def,
					 struct str partition, bool *ret_cut);

#endif
