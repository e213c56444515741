/*
 * Segments of version 5: what carries frames once a connection has begun. All numbers have the
 * lowest byte first.
 *
 *     header · CRC24 of it (3) · payload · CRC32 of it (4)
 *
 * The header is 17 bits of length and one that says that the payload is whole frames, one or many;
 * else it is a part of one frame, whose others follow. Where payloads are compressed (lz4), the
 * header has 17 bits more behind the first: the length before that, or 0 where that one payload was
 * left as it is.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_WIRE_SEGMENT_H
#define FROND_DOOR_CQL_WIRE_SEGMENT_H

#include "base/buf.h"

enum {
	SEGMENT_PAYLOAD_BYTES = 131071, /* what 17 bits can say */
	SEGMENT_TRAILER_BYTES = 4,
	SEGMENT_HEADER_MOST_BYTES = 8,
};

struct segment_header {
	size_t length;       /* of the payload as it comes */
	size_t plain_length; /* of what it unpacks to; 0: it is not compressed */
	bool self_contained;
};

/* With its checksum. */
static inline size_t
segment_header_bytes(bool compressed)
{
	return compressed ? 8 : 6;
}

/* `bytes` has segment_header_bytes(). STATUS_CORRUPT: the checksum is another one. */
MUST_USE enum status segment_header_read(struct str bytes, bool compressed,
					 struct segment_header *ret);

/*
 * Appends the payload of a segment, unpacked. `payload` is what follows the header, with the
 * trailer. STATUS_CORRUPT: the checksum is another one, or it does not unpack to what the header
 * says; STATUS_LIMIT and STATUS_NOMEM of the buffer.
 */
MUST_USE enum status segment_payload_read(const struct segment_header *h, struct str payload,
					  struct buf *out);

/*
 * Appends `frames`, whole frames, as segments: one that is self-contained where they fit, or else
 * each long frame in parts. A failure of the buffer stays in it.
 */
void segment_write(struct buf *out, struct str frames, bool compressed);

/* What is left of whole frames that become segments. */
struct segment_rest {
	struct str frames;
	size_t long_bytes; /* of a frame that is longer than a segment, when a part of it is left */
};

/* Appends the next one of the segments of segment_write(). False: none is left, or `out` failed. */
bool segment_write_next(struct buf *out, struct segment_rest *rest, bool compressed);

/* The two checksums, for tests. */
uint32_t segment_crc24(struct str bytes);
uint32_t segment_crc32(struct str bytes);

#endif
