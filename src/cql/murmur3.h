/*
 * Tokens: Cassandra's Murmur3Partitioner. x64, 128 bits, seed 0, the first half; the bytes of the
 * tail are sign-extended, as in Cassandra. Plain functions.
 */
#ifndef FROND_CQL_MURMUR3_H
#define FROND_CQL_MURMUR3_H

#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum {
	CQL_KEY_PART_BYTES = 65535,
};

/* INT64_MIN is of no key but the empty one: another key that hashes to it gets INT64_MAX. */
int64_t cql_token(struct str partition_key);

/*
 * Appends the serialized partition key: the bytes of one column as they are, of several columns
 * each with a u16 length in front and a 0 behind. STATUS_INVALID where a column has more than
 * CQL_KEY_PART_BYTES; STATUS_LIMIT when the buffer is full.
 */
MUST_USE enum status cql_partition_key_put(struct buf *out, const struct str *columns,
					   size_t count);

/*
 * The token of the partition key of these columns; the buffer, which is empty, is where several of
 * them are put together. Fails as cql_partition_key_put().
 */
MUST_USE enum status cql_partition_token(struct buf *key, const struct str *columns, size_t count,
					 int64_t *ret);

#endif
