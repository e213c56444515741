/*
 * OP_COMPRESSED: another message, compressed.
 *
 *     header · operation code · length without its header · compressor · bytes
 *
 * Threading: none. Compressing more than COMPRESS_INLINE_BYTES runs in wait_offload().
 */
#ifndef FROND_DOOR_MONGO_WIRE_COMPRESS_H
#define FROND_DOOR_MONGO_WIRE_COMPRESS_H

#include "door/mongo/wire/message.h"

enum {
	COMPRESS_INLINE_BYTES = 256 * 1024, /* up to this the loop's own thread does it */
};

/* Numbers of the protocol. */
enum compressor {
	COMPRESSOR_NOOP = 0,
	COMPRESSOR_SNAPPY = 1,
	COMPRESSOR_ZLIB = 2,
	COMPRESSOR_ZSTD = 3,
	COMPRESSORS,
};

/* "snappy"; false: there is no such compressor, or it is not for clients to ask for. */
bool compressor_find(struct str name, enum compressor *ret);

/*
 * Appends the message that `message` has in it, with a header like the one that it would have had.
 * STATUS_INVALID, explained; STATUS_LIMIT: it has more than `most` bytes; STATUS_NOMEM.
 */
MUST_USE enum status compress_unpack(struct str message, size_t most, struct buf *out,
				     enum compressor *ret_by, struct err *err);

/*
 * Compresses the message that begins at `from` and ends with the buffer, if that makes it smaller.
 * A failure of the buffer stays in it.
 */
void compress_pack(struct buf *out, size_t from, enum compressor by);

#endif
