#include "door/cql/wire/frame.h"

#include <assert.h>

#include "base/big_endian.h"

enum {
	AT_FLAGS = 1,
	AT_STREAM = 2,
	AT_OPCODE = 4,
	AT_LENGTH = 5,
	SHORT_MOST = 65535,
};

struct frame_header
frame_header_read(struct str bytes)
{
	const uint8_t *at = (const uint8_t *)bytes.ptr;

	assert(bytes.len >= FRAME_HEADER_BYTES);
	return (struct frame_header){
		.version = at[0] & ~(unsigned)FRAME_ANSWER & 0xff,
		.is_answer = at[0] & FRAME_ANSWER,
		.flags = at[AT_FLAGS],
		.stream = (int16_t)(at[AT_STREAM] << 8 | at[AT_STREAM + 1]),
		.opcode = at[AT_OPCODE],
		.length = big_endian_32(at + AT_LENGTH),
	};
}

/* ---- Reading a body ---- */

struct str
frame_take(struct frame_in *in, size_t n)
{
	struct str taken;

	if (in->bad || in->rest.len < n) {
		in->bad = true;
		in->rest.len = 0;
		return STR("");
	}
	taken = str_of(in->rest.ptr, n);
	in->rest = str_skip(in->rest, n);
	return taken;
}

uint8_t
frame_u8(struct frame_in *in)
{
	struct str s = frame_take(in, 1);

	return s.len ? (uint8_t)s.ptr[0] : 0;
}

uint16_t
frame_u16(struct frame_in *in)
{
	struct str s = frame_take(in, 2);

	return s.len ? (uint16_t)((uint8_t)s.ptr[0] << 8 | (uint8_t)s.ptr[1]) : 0;
}

int32_t
frame_i32(struct frame_in *in)
{
	struct str s = frame_take(in, 4);

	return s.len ? (int32_t)big_endian_32(s.ptr) : 0;
}

int64_t
frame_i64(struct frame_in *in)
{
	struct str s = frame_take(in, 8);

	return s.len ? (int64_t)big_endian_64(s.ptr) : 0;
}

struct str
frame_short(struct frame_in *in)
{
	return frame_take(in, frame_u16(in));
}

struct str
frame_long(struct frame_in *in)
{
	int32_t n = frame_i32(in);

	if (n >= 0)
		return frame_take(in, (size_t)n);
	in->bad = true;
	return STR("");
}

enum frame_bytes
frame_value(struct frame_in *in, struct str *ret)
{
	int32_t n = frame_i32(in);

	*ret = STR("");
	if (n >= 0) {
		*ret = frame_take(in, (size_t)n);
		return FRAME_BYTES_VALUE;
	}
	if (n < -2)
		in->bad = true;
	return n == -2 ? FRAME_BYTES_UNSET : FRAME_BYTES_NULL;
}

/* ---- Writing ---- */

void
frame_put_u16(struct buf *out, unsigned n)
{
	const uint8_t bytes[] = { (uint8_t)(n >> 8), (uint8_t)n };

	buf_append(out, bytes, sizeof(bytes));
}

void
frame_put_i32(struct buf *out, int32_t n)
{
	uint8_t bytes[4];

	big_endian_put_32(bytes, (uint32_t)n);
	buf_append(out, bytes, sizeof(bytes));
}

void
frame_put_i64(struct buf *out, int64_t n)
{
	uint8_t bytes[8];

	big_endian_put_64(bytes, (uint64_t)n);
	buf_append(out, bytes, sizeof(bytes));
}

void
frame_put_short(struct buf *out, struct str s)
{
	if (s.len > SHORT_MOST)
		s.len = SHORT_MOST;
	frame_put_u16(out, (unsigned)s.len);
	buf_append_str(out, s);
}

void
frame_put_long(struct buf *out, struct str s)
{
	frame_put_i32(out, (int32_t)s.len);
	buf_append_str(out, s);
}

void
frame_put_null(struct buf *out)
{
	frame_put_i32(out, -1);
}

size_t
frame_begin(struct buf *out, unsigned version, int16_t stream, enum frame_opcode opcode)
{
	size_t from = out->len;

	buf_append_byte(out, (uint8_t)(version | FRAME_ANSWER));
	buf_append_byte(out, 0);
	frame_put_u16(out, (uint16_t)stream);
	buf_append_byte(out, (uint8_t)opcode);
	frame_put_i32(out, 0);
	return from;
}

void
frame_end(struct buf *out, size_t from)
{
	if (buf_status(out) != STATUS_OK)
		return;
	assert(out->len >= from + FRAME_HEADER_BYTES);
	big_endian_put_32(out->ptr + from + AT_LENGTH,
			  (uint32_t)(out->len - from - FRAME_HEADER_BYTES));
}

void
frame_set_flags(struct buf *out, size_t from, unsigned flags)
{
	if (buf_status(out) == STATUS_OK)
		out->ptr[from + AT_FLAGS] = (char)flags;
}

void
frame_set_opcode(struct buf *out, size_t from, enum frame_opcode opcode)
{
	if (buf_status(out) == STATUS_OK)
		out->ptr[from + AT_OPCODE] = (char)opcode;
}
