/*
 * The compressors of the native protocol. In versions 3 and 4 they compress bodies of frames: lz4
 * with the length in front (4 bytes, the greatest first), snappy as it is. In version 5 lz4
 * compresses segments (segment.h), whose headers have the length.
 *
 * Threading: none. What has more than CQL_COMPRESS_INLINE_BYTES is compressed in wait_offload().
 */
#ifndef FROND_DOOR_CQL_WIRE_COMPRESS_H
#define FROND_DOOR_CQL_WIRE_COMPRESS_H

#include "base/buf.h"

enum {
	CQL_COMPRESS_INLINE_BYTES = 256 * 1024, /* up to this the loop's own thread does it */
};

enum cql_compressor {
	CQL_COMPRESSOR_NONE,
	CQL_COMPRESSOR_LZ4,
	CQL_COMPRESSOR_SNAPPY,
};

/* "lz4", in any case. False: there is no such compressor. */
bool cql_compressor_find(struct str name, enum cql_compressor *ret);

/*
 * How long a compressed body says that it will be. STATUS_INVALID: it is none. What it says need
 * not be true; cql_body_unpack() finds out.
 */
MUST_USE enum status cql_body_length(enum cql_compressor by, struct str body, size_t *ret);

/*
 * Appends what was compressed, of cql_body_length() bytes. STATUS_INVALID: the bytes are not what
 * the compressor makes; STATUS_LIMIT and STATUS_NOMEM of the buffer.
 */
MUST_USE enum status cql_body_unpack(enum cql_compressor by, struct str body, struct buf *out);

/*
 * Compresses the body of the frame that begins at `from` and ends with the buffer, if that makes it
 * shorter, and sets its flag. Called before frame_end(). A failure of the buffer stays in it.
 */
void cql_body_pack(enum cql_compressor by, struct buf *out, size_t from);

/* lz4 without a length: the bytes become exactly `out_len`. False: they do not. */
bool cql_lz4_unpack(struct str in, char *out, size_t out_len);
/* Returns how many bytes it makes, `out_len` at most; 0: that was not enough. */
size_t cql_lz4_pack(struct str in, char *out, size_t out_len);

#endif
