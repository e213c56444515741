/*
 * Components in entries' keys: what a form makes of a value is one element of bytes in a key.
 *
 * Plain functions on the caller's memory.
 */
#ifndef FROND_INDEX_ENGINE_COMPONENT_H
#define FROND_INDEX_ENGINE_COMPONENT_H

#include "index/engine/def.h"

/* What a component may take of a key. */
size_t index_component_share(const struct index_def *def);

/*
 * Appends `raw`, the component of a value in this column as doc/key.h has it, inverted where the
 * column is descending and cut to its share: then *ret_cut is set, and otherwise it is left alone.
 * Of a component that is longer than its share, a byte more is enough. Changes `raw`.
 */
MUST_USE enum status index_component_finish(struct buf *key, const struct index_def *def,
					    size_t column, struct buf *raw, bool *ret_cut);

/* The same for what a document's id has before its first colon. */
MUST_USE enum status index_partition_put(struct buf *key, const struct index_def *def,
					 struct str partition, bool *ret_cut);

#endif
