/*
 * Any bytes as segments of Cassandra's protocol: what is read does not go beyond them, and as a
 * frame they pass through segments and come back as they were.
 */
#include <stdlib.h>

#include "door/cql/wire/frame.h"
#include "door/cql/wire/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MOST_BYTES = 4 * 1024 * 1024,
};

/* Reads segments as far as they go; returns how many bytes are left. */
static size_t
read_segments(struct str in, bool compressed, struct buf *out)
{
	size_t n = segment_header_bytes(compressed);
	struct segment_header h;

	while (in.len >= n) {
		if (segment_header_read(in, compressed, &h) != STATUS_OK)
			break;
		if (h.length > SEGMENT_PAYLOAD_BYTES || h.plain_length > SEGMENT_PAYLOAD_BYTES)
			abort();
		if (in.len - n < h.length + SEGMENT_TRAILER_BYTES)
			break;
		in = str_skip(in, n);
		if (segment_payload_read(&h, in, out) != STATUS_OK)
			break;
		in = str_skip(in, h.length + SEGMENT_TRAILER_BYTES);
	}
	return in.len;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf frame = BUF_INIT(MOST_BYTES), segments = BUF_INIT(MOST_BYTES);
	struct buf back = BUF_INIT(MOST_BYTES);
	size_t from;

	for (int compressed = 0; compressed < 2; compressed++) {
		(void)read_segments(str_of(data, size), compressed, &back);
		buf_clear(&back);
		buf_clear(&frame);
		buf_clear(&segments);
		from = frame_begin(&frame, 5, 1, FRAME_RESULT);
		/* Long enough for several segments. */
		for (int i = 0; i < 100; i++)
			buf_append(&frame, data, size);
		frame_end(&frame, from);
		segment_write(&segments, buf_str(&frame), compressed);
		if (read_segments(buf_str(&segments), compressed, &back) != 0 ||
		    !str_eq(buf_str(&back), buf_str(&frame)))
			abort();
	}
	buf_release(&frame);
	buf_release(&segments);
	buf_release(&back);
	return 0;
}
