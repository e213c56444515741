#include "door/cql/wire/segment.h"

#include <assert.h>
#include <zlib.h>

#include "base/big_endian.h"
#include "door/cql/wire/compress.h"
#include "door/cql/wire/frame.h"

enum {
	CRC24_INIT = 0x875060,
	CRC24_POLY = 0x1974f0b,
	CRC24_BYTES = 3,
	LENGTH_BITS = 17,
};

_Static_assert(SEGMENT_PAYLOAD_BYTES == (1 << LENGTH_BITS) - 1, "payloads have 17 bits of length");

uint32_t
segment_crc24(struct str bytes)
{
	uint32_t crc = CRC24_INIT;

	for (size_t i = 0; i < bytes.len; i++) {
		crc ^= (uint32_t)(uint8_t)bytes.ptr[i] << 16;
		for (int bit = 0; bit < 8; bit++) {
			crc <<= 1;
			if (crc & 0x1000000)
				crc ^= CRC24_POLY;
		}
	}
	return crc;
}

uint32_t
segment_crc32(struct str bytes)
{
	static const uint8_t first[] = { 0xfa, 0x2d, 0x55, 0xca };
	uLong crc = crc32(0, first, sizeof(first));

	return (uint32_t)crc32(crc, (const Bytef *)bytes.ptr, (uInt)bytes.len);
}

static uint64_t
low_first(struct str bytes)
{
	uint64_t n = 0;

	for (size_t i = bytes.len; i-- > 0;)
		n = n << 8 | (uint8_t)bytes.ptr[i];
	return n;
}

static void
append_low_first(struct buf *out, uint64_t n, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++, n >>= 8)
		buf_append_byte(out, (uint8_t)n);
}

enum status
segment_header_read(struct str bytes, bool compressed, struct segment_header *ret)
{
	size_t len = segment_header_bytes(compressed) - CRC24_BYTES;
	uint64_t bits;

	assert(bytes.len >= len + CRC24_BYTES);
	if (segment_crc24(str_of(bytes.ptr, len)) !=
	    low_first(str_of(bytes.ptr + len, CRC24_BYTES)))
		return STATUS_CORRUPT;
	bits = low_first(str_of(bytes.ptr, len));
	*ret = (struct segment_header){ .length = bits & SEGMENT_PAYLOAD_BYTES };
	bits >>= LENGTH_BITS;
	if (compressed) {
		ret->plain_length = bits & SEGMENT_PAYLOAD_BYTES;
		bits >>= LENGTH_BITS;
	}
	ret->self_contained = bits & 1;
	return STATUS_OK;
}

enum status
segment_payload_read(const struct segment_header *h, struct str payload, struct buf *out)
{
	struct str in = str_of(payload.ptr, h->length);

	assert(payload.len >= h->length + SEGMENT_TRAILER_BYTES);
	if (segment_crc32(in) != low_first(str_of(payload.ptr + h->length, SEGMENT_TRAILER_BYTES)))
		return STATUS_CORRUPT;
	if (!h->plain_length) {
		buf_append_str(out, in);
		return buf_status(out);
	}
	if (!buf_reserve(out, h->plain_length))
		return buf_status(out);
	if (!cql_lz4_unpack(in, out->ptr + out->len, h->plain_length))
		return STATUS_CORRUPT;
	out->len += h->plain_length;
	return STATUS_OK;
}

static void
write_one(struct buf *out, struct str payload, bool compressed, bool self_contained)
{
	size_t header = out->len, len = segment_header_bytes(compressed) - CRC24_BYTES;
	size_t plain = 0, body, packed = 0;
	uint64_t bits;

	append_low_first(out, 0, len + CRC24_BYTES);
	body = out->len;
	if (!buf_reserve(out, payload.len + SEGMENT_TRAILER_BYTES))
		return;
	/* Only what becomes shorter is compressed: so what was reserved is enough. */
	if (compressed && payload.len > 1)
		packed = cql_lz4_pack(payload, out->ptr + body, payload.len - 1);
	if (packed) {
		plain = payload.len;
		out->len += packed;
	} else {
		buf_append_str(out, payload);
	}
	append_low_first(out, segment_crc32(str_of(out->ptr + body, out->len - body)),
			 SEGMENT_TRAILER_BYTES);
	bits = out->len - body - SEGMENT_TRAILER_BYTES;
	if (compressed)
		bits |= (uint64_t)plain << LENGTH_BITS | (uint64_t)self_contained
								 << (2 * LENGTH_BITS);
	else
		bits |= (uint64_t)self_contained << LENGTH_BITS;
	for (size_t i = 0; i < len; i++)
		out->ptr[header + i] = (char)(bits >> (8 * i));
	bits = segment_crc24(str_of(out->ptr + header, len));
	for (size_t i = 0; i < CRC24_BYTES; i++)
		out->ptr[header + len + i] = (char)(bits >> (8 * i));
}

/* The whole frames at the beginning that fit into one segment; 0: not even one does. */
static size_t
frames_that_fit(struct str frames)
{
	size_t at = 0, n;

	while (frames.len - at >= FRAME_HEADER_BYTES) {
		n = FRAME_HEADER_BYTES + frame_header_read(str_skip(frames, at)).length;
		if (at + n > SEGMENT_PAYLOAD_BYTES || at + n > frames.len)
			break;
		at += n;
	}
	return at;
}

bool
segment_write_next(struct buf *out, struct segment_rest *rest, bool compressed)
{
	size_t n = 0;

	if (buf_status(out) != STATUS_OK ||
	    (!rest->long_bytes && rest->frames.len < FRAME_HEADER_BYTES))
		return false;
	if (!rest->long_bytes)
		n = frames_that_fit(rest->frames);
	if (n) {
		write_one(out, str_of(rest->frames.ptr, n), compressed, true);
	} else {
		if (!rest->long_bytes)
			rest->long_bytes = FRAME_HEADER_BYTES +
					   frame_header_read(rest->frames).length;
		assert(rest->long_bytes <= rest->frames.len);
		n = rest->long_bytes < SEGMENT_PAYLOAD_BYTES ? rest->long_bytes
							     : SEGMENT_PAYLOAD_BYTES;
		write_one(out, str_of(rest->frames.ptr, n), compressed, false);
		rest->long_bytes -= n;
	}
	rest->frames = str_skip(rest->frames, n);
	return true;
}

void
segment_write(struct buf *out, struct str frames, bool compressed)
{
	struct segment_rest rest = { .frames = frames };

	while (segment_write_next(out, &rest, compressed))
		;
}
