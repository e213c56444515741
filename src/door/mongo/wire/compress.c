#include "door/mongo/wire/compress.h"

#include <assert.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "loop/wait.h"

enum {
	HEADER_BYTES = 9, /* behind that of the message */
	ZSTD_LEVEL = 3,   /* the one that it has by default; fast enough for each answer */
};

static const char *const names[COMPRESSORS] = {
	[COMPRESSOR_NOOP] = "noop",
	[COMPRESSOR_SNAPPY] = "snappy",
	[COMPRESSOR_ZLIB] = "zlib",
	[COMPRESSOR_ZSTD] = "zstd",
};

bool
compressor_find(struct str name, enum compressor *ret)
{
	for (size_t i = COMPRESSOR_SNAPPY; i < COMPRESSORS; i++) {
		if (str_eq(name, str_from_cstr(names[i]))) {
			*ret = (enum compressor)i;
			return true;
		}
	}
	return false;
}

struct unpacking {
	enum compressor by;
	struct str in;
	char *out;
	size_t out_len; /* that the message says; nothing else will do */
	bool done;
};

static bool
unpack_snappy(const struct unpacking *u)
{
	size_t len;

	if (snappy_uncompressed_length(u->in.ptr, u->in.len, &len) != SNAPPY_OK ||
	    len != u->out_len)
		return false;
	return snappy_uncompress(u->in.ptr, u->in.len, u->out, &len) == SNAPPY_OK &&
	       len == u->out_len;
}

static void
unpack(void *arg)
{
	struct unpacking *u = arg;
	uLongf len = (uLongf)u->out_len;

	switch (u->by) {
	case COMPRESSOR_NOOP:
		u->done = u->in.len == u->out_len;
		if (u->done && u->out_len)
			memcpy(u->out, u->in.ptr, u->out_len);
		break;
	case COMPRESSOR_SNAPPY:
		u->done = unpack_snappy(u);
		break;
	case COMPRESSOR_ZLIB:
		u->done = uncompress((Bytef *)u->out, &len, (const Bytef *)u->in.ptr,
				     (uLong)u->in.len) == Z_OK &&
			  len == u->out_len;
		break;
	case COMPRESSOR_ZSTD:
		u->done = ZSTD_decompress(u->out, u->out_len, u->in.ptr, u->in.len) == u->out_len;
		break;
	case COMPRESSORS:
		break;
	}
}

enum status
compress_unpack(struct str message, size_t most, struct buf *out, enum compressor *ret_by,
		struct err *err)
{
	struct str rest = str_skip(message, WIRE_HEADER_BYTES);
	struct unpacking u = { 0 };
	size_t from = out->len;
	uint8_t by;

	if (rest.len < HEADER_BYTES)
		return err_set(err, STATUS_INVALID, "a compressed message has %zu bytes",
			       message.len);
	by = (uint8_t)rest.ptr[8];
	if (by >= COMPRESSORS)
		return err_set(err, STATUS_INVALID, "there is no compressor %u", (unsigned)by);
	u.by = (enum compressor)by;
	u.out_len = wire_u32(rest.ptr + 4);
	u.in = str_skip(rest, HEADER_BYTES);
	if (u.out_len > most - WIRE_HEADER_BYTES)
		return err_set(err, STATUS_LIMIT,
			       "a compressed message has %zu bytes; the limit is %zu", u.out_len,
			       most);
	if (!buf_reserve(out, WIRE_HEADER_BYTES + u.out_len))
		return err_set(err, buf_status(out), "no memory for a compressed message");
	u.out = out->ptr + from + WIRE_HEADER_BYTES;
	if (u.out_len > COMPRESS_INLINE_BYTES)
		wait_offload(unpack, &u);
	else
		unpack(&u);
	if (!u.done)
		return err_set(err, STATUS_INVALID, "the bytes are not what %s has compressed",
			       names[u.by]);
	memcpy(out->ptr + from, message.ptr, WIRE_HEADER_BYTES);
	wire_put_u32(out->ptr + from, (uint32_t)(WIRE_HEADER_BYTES + u.out_len));
	memcpy(out->ptr + from + 12, rest.ptr, 4);
	out->len = from + WIRE_HEADER_BYTES + u.out_len;
	*ret_by = u.by;
	return STATUS_OK;
}

struct packing {
	enum compressor by;
	struct str in;
	char *out;
	size_t out_len;
	bool done;
};

static size_t
packed_most(enum compressor by, size_t len)
{
	switch (by) {
	case COMPRESSOR_SNAPPY:
		return snappy_max_compressed_length(len);
	case COMPRESSOR_ZLIB:
		return compressBound((uLong)len);
	case COMPRESSOR_ZSTD:
		return ZSTD_compressBound(len);
	case COMPRESSOR_NOOP:
	case COMPRESSORS:
		break;
	}
	return len;
}

static void
pack(void *arg)
{
	struct packing *p = arg;
	uLongf len = (uLongf)p->out_len;

	switch (p->by) {
	case COMPRESSOR_SNAPPY:
		p->done = snappy_compress(p->in.ptr, p->in.len, p->out, &p->out_len) == SNAPPY_OK;
		break;
	case COMPRESSOR_ZLIB:
		p->done = compress((Bytef *)p->out, &len, (const Bytef *)p->in.ptr,
				   (uLong)p->in.len) == Z_OK;
		p->out_len = len;
		break;
	case COMPRESSOR_ZSTD:
		p->out_len = ZSTD_compress(p->out, p->out_len, p->in.ptr, p->in.len, ZSTD_LEVEL);
		p->done = !ZSTD_isError(p->out_len);
		break;
	case COMPRESSOR_NOOP:
	case COMPRESSORS:
		break;
	}
}

void
compress_pack(struct buf *out, size_t from, enum compressor by)
{
	struct buf AUTO(buf_release) packed = BUF_INIT_OF(2 * WIRE_MESSAGE_BYTES, out->part);
	struct packing p = { .by = by };

	if (buf_status(out) != STATUS_OK || by == COMPRESSOR_NOOP)
		return;
	assert(out->len >= from + WIRE_HEADER_BYTES);
	p.in = str_of(out->ptr + from + WIRE_HEADER_BYTES, out->len - from - WIRE_HEADER_BYTES);
	p.out_len = packed_most(by, p.in.len);
	if (!buf_reserve(&packed, p.out_len))
		return; /* it goes as it is */
	p.out = packed.ptr;
	if (p.in.len > COMPRESS_INLINE_BYTES)
		wait_offload(pack, &p);
	else
		pack(&p);
	if (!p.done || p.out_len + HEADER_BYTES >= p.in.len)
		return;
	/* The compressed bytes fit where the others were, which they were made from. */
	memmove(out->ptr + from + WIRE_HEADER_BYTES, out->ptr + from + 12, 4);
	wire_put_u32(out->ptr + from + WIRE_HEADER_BYTES + 4, (uint32_t)p.in.len);
	out->ptr[from + WIRE_HEADER_BYTES + 8] = (char)by;
	memcpy(out->ptr + from + WIRE_HEADER_BYTES + HEADER_BYTES, p.out, p.out_len);
	out->len = from + WIRE_HEADER_BYTES + HEADER_BYTES + p.out_len;
	wire_put_u32(out->ptr + from, (uint32_t)(out->len - from));
	wire_put_u32(out->ptr + from + 12, WIRE_OP_COMPRESSED);
}
