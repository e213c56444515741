#include "door/rows/wire/frame.h"

#include <assert.h>

#include "base/big_endian.h"

enum {
	AT_CODE = 4,
	AT_RESERVED = 5,
	AT_NUMBER = 6,
	TEXT_MOST = 65535,
	LENGTH_NULL = -1,
	LENGTH_ABSENT = -2,
};

struct rows_header
rows_header_read(struct str bytes)
{
	const uint8_t *at = (const uint8_t *)bytes.ptr;

	assert(bytes.len >= ROWS_HEADER_BYTES);
	return (struct rows_header){
		.length = big_endian_32(at),
		.code = at[AT_CODE],
		.reserved = at[AT_RESERVED],
		.number = (uint16_t)(at[AT_NUMBER] << 8 | at[AT_NUMBER + 1]),
	};
}

/* ---- Reading ---- */

struct str
rows_in_bytes(struct rows_in *in, size_t n)
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
rows_in_u8(struct rows_in *in)
{
	struct str s = rows_in_bytes(in, 1);

	return s.len ? (uint8_t)s.ptr[0] : 0;
}

uint16_t
rows_in_u16(struct rows_in *in)
{
	struct str s = rows_in_bytes(in, 2);

	return s.len ? (uint16_t)((uint8_t)s.ptr[0] << 8 | (uint8_t)s.ptr[1]) : 0;
}

uint32_t
rows_in_u32(struct rows_in *in)
{
	struct str s = rows_in_bytes(in, 4);

	return s.len ? big_endian_32(s.ptr) : 0;
}

struct str
rows_in_str(struct rows_in *in)
{
	return rows_in_bytes(in, rows_in_u16(in));
}

struct str
rows_in_long(struct rows_in *in)
{
	return rows_in_bytes(in, rows_in_u32(in));
}

struct rows_value
rows_in_value(struct rows_in *in)
{
	int32_t n = (int32_t)rows_in_u32(in);

	if (n >= 0)
		return (struct rows_value){ ROWS_VALUE, rows_in_bytes(in, (size_t)n) };
	if (n < LENGTH_ABSENT)
		in->bad = true;
	return (struct rows_value){ n == LENGTH_NULL ? ROWS_NULL : ROWS_ABSENT, STR("") };
}

uint32_t
rows_in_count(struct rows_in *in, uint32_t count, uint32_t most, size_t least)
{
	if (!in->bad && count <= most && count <= in->rest.len / least)
		return count;
	in->bad = true;
	return 0;
}

/* ---- Writing ---- */

void
rows_put_u8(struct buf *out, unsigned n)
{
	buf_append_byte(out, (uint8_t)n);
}

void
rows_put_u16(struct buf *out, unsigned n)
{
	const uint8_t bytes[] = { (uint8_t)(n >> 8), (uint8_t)n };

	buf_append(out, bytes, sizeof(bytes));
}

void
rows_put_u32(struct buf *out, uint32_t n)
{
	uint8_t bytes[4];

	big_endian_put_32(bytes, n);
	buf_append(out, bytes, sizeof(bytes));
}

void
rows_put_u64(struct buf *out, uint64_t n)
{
	uint8_t bytes[8];

	big_endian_put_64(bytes, n);
	buf_append(out, bytes, sizeof(bytes));
}

void
rows_put_str(struct buf *out, struct str s)
{
	if (s.len > TEXT_MOST)
		s.len = TEXT_MOST;
	rows_put_u16(out, (unsigned)s.len);
	buf_append_str(out, s);
}

void
rows_put_long(struct buf *out, struct str s)
{
	rows_put_u32(out, (uint32_t)s.len);
	buf_append_str(out, s);
}

void
rows_put_value(struct buf *out, struct str bytes)
{
	rows_put_long(out, bytes);
}

void
rows_put_null(struct buf *out)
{
	rows_put_u32(out, (uint32_t)LENGTH_NULL);
}

void
rows_set_u32(struct buf *out, size_t at, uint32_t n)
{
	if (buf_status(out) != STATUS_OK)
		return;
	assert(at + 4 <= out->len);
	big_endian_put_32(out->ptr + at, n);
}

size_t
rows_frame_begin(struct buf *out, uint16_t number, enum rows_code code)
{
	size_t from = out->len;

	rows_put_u32(out, 0);
	rows_put_u8(out, code);
	rows_put_u8(out, 0);
	rows_put_u16(out, number);
	return from;
}

void
rows_frame_end(struct buf *out, size_t from)
{
	rows_set_u32(out, from, (uint32_t)(out->len - from - ROWS_HEADER_BYTES));
}

void
rows_frame_set_code(struct buf *out, size_t from, enum rows_code code)
{
	if (buf_status(out) == STATUS_OK)
		out->ptr[from + AT_CODE] = (char)code;
}
