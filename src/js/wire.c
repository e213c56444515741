#include "js/wire.h"

#include <assert.h>

size_t
wire_begin(struct buf *out, enum wire_kind kind, uint32_t number)
{
	size_t begin = out->len;

	wire_put_u32(out, WIRE_MAGIC);
	wire_put_u32(out, kind);
	wire_put_u32(out, number);
	wire_put_u32(out, 0);
	return begin;
}

void
wire_end(struct buf *out, size_t begin)
{
	size_t bytes;

	if (buf_status(out) != STATUS_OK)
		return;
	assert(out->len - begin >= WIRE_HEAD_BYTES);
	bytes = out->len - begin - WIRE_HEAD_BYTES;
	if (bytes > WIRE_PAYLOAD_BYTES) {
		out->failed = STATUS_LIMIT;
		return;
	}
	wire_patch_u32(out, begin + WIRE_HEAD_BYTES - sizeof(uint32_t), (uint32_t)bytes);
}

void
wire_put_u8(struct buf *out, uint8_t n)
{
	buf_append_byte(out, n);
}

void
wire_put_u32(struct buf *out, uint32_t n)
{
	buf_append(out, &n, sizeof(n));
}

void
wire_put_u64(struct buf *out, uint64_t n)
{
	buf_append(out, &n, sizeof(n));
}

void
wire_put_text(struct buf *out, struct str text)
{
	if (text.len > WIRE_PAYLOAD_BYTES) {
		out->failed = STATUS_LIMIT;
		return;
	}
	wire_put_u32(out, (uint32_t)text.len);
	buf_append_str(out, text);
	buf_append_byte(out, 0);
}

void
wire_patch_u32(struct buf *out, size_t at, uint32_t n)
{
	if (buf_status(out) != STATUS_OK)
		return;
	assert(at + sizeof(n) <= out->len);
	memcpy(out->ptr + at, &n, sizeof(n));
}

enum status
wire_read_head(struct str bytes, struct wire_head *ret)
{
	struct wire_reader r = { .rest = bytes };
	uint32_t magic;

	if (bytes.len < WIRE_HEAD_BYTES)
		return STATUS_NOT_FOUND;
	magic = wire_u32(&r);
	ret->kind = wire_u32(&r);
	ret->number = wire_u32(&r);
	ret->bytes = wire_u32(&r);
	if (magic != WIRE_MAGIC || ret->bytes > WIRE_PAYLOAD_BYTES)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/* Copies the next `n` bytes to `to`, or clears it if there are not so many. */
static void
wire_take(struct wire_reader *r, void *to, size_t n)
{
	if (r->bad || r->rest.len < n) {
		r->bad = true;
		memset(to, 0, n);
		return;
	}
	memcpy(to, r->rest.ptr, n);
	r->rest = str_skip(r->rest, n);
}

uint8_t
wire_u8(struct wire_reader *r)
{
	uint8_t n;

	wire_take(r, &n, sizeof(n));
	return n;
}

uint32_t
wire_u32(struct wire_reader *r)
{
	uint32_t n;

	wire_take(r, &n, sizeof(n));
	return n;
}

uint64_t
wire_u64(struct wire_reader *r)
{
	uint64_t n;

	wire_take(r, &n, sizeof(n));
	return n;
}

struct str
wire_text(struct wire_reader *r)
{
	uint32_t len = wire_u32(r);
	struct str text;

	if (r->bad || r->rest.len <= len || r->rest.ptr[len] != '\0') {
		r->bad = true;
		return STR("");
	}
	text = str_of(r->rest.ptr, len);
	r->rest = str_skip(r->rest, (size_t)len + 1);
	return text;
}

uint32_t
wire_count(struct wire_reader *r, size_t least_bytes)
{
	uint32_t n = wire_u32(r);

	assert(least_bytes > 0);
	if (r->bad || n > r->rest.len / least_bytes) {
		r->bad = true;
		return 0;
	}
	return n;
}

bool
wire_at_end(const struct wire_reader *r)
{
	return !r->bad && r->rest.len == 0;
}
