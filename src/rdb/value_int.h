/* What the files that read values share. */
#ifndef FROND_RDB_VALUE_INT_H
#define FROND_RDB_VALUE_INT_H

#include "rdb/bytes.h"
#include "rdb/rdb.h"

/* False: there are fewer bytes. */
static inline bool
rdb_take(struct rdb_input *in, size_t n, struct str *ret)
{
	return bytes_take(&in->rest, n, ret);
}

/* Skips what a module has written, up to its end. */
MUST_USE enum status rdb_module_skip(struct rdb_input *in);

/* The container of a value whose entries come next. */
MUST_USE enum status rdb_node_open(struct rdb_value *v, enum rdb_pack_kind kind, struct str node);
/* The next entry of it as text. STATUS_NOT_FOUND: there is none. */
MUST_USE enum status rdb_node_next_text(struct rdb_value *v, struct str *ret);
/* The same of one that there has to be. */
MUST_USE enum status rdb_node_number(struct rdb_value *v, int64_t *ret);
MUST_USE enum status rdb_node_text(struct rdb_value *v, struct str *ret);

/* The next part of a stream (stream.c). */
MUST_USE enum status rdb_stream_next(struct rdb_value *v, struct rdb_part *ret);

#endif
