#include "index/engine/component.h"

#include <assert.h>

#include "index/engine/entry.h"

size_t
index_component_share(const struct index_def *def)
{
	return INDEX_COMPONENTS_BYTES /
	       (def->column_count + (def->flags & INDEX_PARTITIONED ? 1 : 0));
}

/*
 * Appends a component as an element of bytes: as tuple_put_bytes(), but with at most `share` bytes
 * of encoded content; `*ret_cut` is set if that is not all of it. Cutting the encoded content keeps
 * the order, since no component is the beginning of another one; a NUL is never parted from what
 * escapes it.
 */
static void
component_wrap(struct buf *key, struct str raw, size_t share, bool *ret_cut)
{
	bool fits = raw.len <= share / 2; /* whatever its bytes are */
	size_t plain = fits ? raw.len : 0, used = 0;

	while (plain < raw.len) {
		size_t bytes = raw.ptr[plain] ? 1 : 2;

		if (used + bytes > share)
			break;
		used += bytes;
		plain++;
	}
	tuple_put_bytes(key, str_of(raw.ptr, plain));
	if (plain < raw.len)
		*ret_cut = true;
}

enum status
index_component_finish(struct buf *key, const struct index_def *def, size_t column, struct buf *raw,
		       bool *ret_cut)
{
	assert(column < def->column_count);
	if (def->columns[column].descending)
		doc_key_invert(raw, 0);
	component_wrap(key, buf_str(raw), index_component_share(def), ret_cut);
	return buf_status(key);
}

enum status
index_partition_put(struct buf *key, const struct index_def *def, struct str partition,
		    bool *ret_cut)
{
	component_wrap(key, partition, index_component_share(def), ret_cut);
	return buf_status(key);
}
