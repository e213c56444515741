#include "door/cql/wire/compress.h"

#include <lz4.h>
#include <snappy-c.h>

#include "base/big_endian.h"
#include "door/cql/wire/frame.h"
#include "loop/wait.h"

enum {
	LZ4_LENGTH_BYTES = 4,
};

bool
cql_compressor_find(struct str name, enum cql_compressor *ret)
{
	if (str_eq_nocase(name, STR("lz4")))
		*ret = CQL_COMPRESSOR_LZ4;
	else if (str_eq_nocase(name, STR("snappy")))
		*ret = CQL_COMPRESSOR_SNAPPY;
	else
		return false;
	return true;
}

bool
cql_lz4_unpack(struct str in, char *out, size_t out_len)
{
	if (in.len > LZ4_MAX_INPUT_SIZE || out_len > LZ4_MAX_INPUT_SIZE)
		return false;
	return LZ4_decompress_safe(in.ptr, out, (int)in.len, (int)out_len) == (int)out_len;
}

size_t
cql_lz4_pack(struct str in, char *out, size_t out_len)
{
	int n;

	if (in.len > LZ4_MAX_INPUT_SIZE || out_len > LZ4_MAX_INPUT_SIZE)
		return 0;
	n = LZ4_compress_default(in.ptr, out, (int)in.len, (int)out_len);
	return n > 0 ? (size_t)n : 0;
}

/* Work that may be done by another thread. */
struct compression {
	enum cql_compressor by;
	struct str in;
	char *out;
	size_t out_len; /* that there is room for, or that it has to become */
	bool done;
};

static void
unpack(void *arg)
{
	struct compression *c = arg;
	size_t len = c->out_len;

	if (c->by == CQL_COMPRESSOR_LZ4)
		c->done = cql_lz4_unpack(c->in, c->out, c->out_len);
	else
		c->done = snappy_uncompress(c->in.ptr, c->in.len, c->out, &len) == SNAPPY_OK &&
			  len == c->out_len;
}

static void
pack(void *arg)
{
	struct compression *c = arg;

	if (c->by == CQL_COMPRESSOR_LZ4) {
		c->out_len = cql_lz4_pack(c->in, c->out, c->out_len);
		c->done = c->out_len > 0;
		return;
	}
	c->done = snappy_compress(c->in.ptr, c->in.len, c->out, &c->out_len) == SNAPPY_OK;
}

static void
compression_run(struct compression *c, void (*fn)(void *arg), size_t bytes)
{
	if (bytes > CQL_COMPRESS_INLINE_BYTES)
		wait_offload(fn, c);
	else
		fn(c);
}

enum status
cql_body_length(enum cql_compressor by, struct str body, size_t *ret)
{
	switch (by) {
	case CQL_COMPRESSOR_LZ4:
		if (body.len < LZ4_LENGTH_BYTES)
			return STATUS_INVALID;
		*ret = big_endian_32(body.ptr);
		return STATUS_OK;
	case CQL_COMPRESSOR_SNAPPY:
		return snappy_uncompressed_length(body.ptr, body.len, ret) == SNAPPY_OK
			       ? STATUS_OK
			       : STATUS_INVALID;
	case CQL_COMPRESSOR_NONE:
		break;
	}
	return STATUS_INVALID;
}

enum status
cql_body_unpack(enum cql_compressor by, struct str body, struct buf *out)
{
	struct compression c = { .by = by, .in = body };

	TRY(cql_body_length(by, body, &c.out_len));
	if (by == CQL_COMPRESSOR_LZ4)
		c.in = str_skip(body, LZ4_LENGTH_BYTES);
	/* A body may be empty; the buffer needs an address all the same. */
	if (!buf_reserve(out, c.out_len + 1))
		return buf_status(out);
	c.out = out->ptr + out->len;
	compression_run(&c, unpack, c.out_len);
	if (!c.done)
		return STATUS_INVALID;
	out->len += c.out_len;
	return STATUS_OK;
}

void
cql_body_pack(enum cql_compressor by, struct buf *out, size_t from)
{
	struct buf AUTO(buf_release) packed = BUF_INIT_OF(2 * out->max_bytes, out->part);
	struct compression c = { .by = by };
	size_t body = from + FRAME_HEADER_BYTES;
	size_t before = by == CQL_COMPRESSOR_LZ4 ? LZ4_LENGTH_BYTES : 0;

	if (by == CQL_COMPRESSOR_NONE || buf_status(out) != STATUS_OK || out->len <= body)
		return;
	c.in = str_of(out->ptr + body, out->len - body);
	if (c.in.len > LZ4_MAX_INPUT_SIZE)
		return;
	c.out_len = by == CQL_COMPRESSOR_LZ4 ? (size_t)LZ4_compressBound((int)c.in.len)
					     : snappy_max_compressed_length(c.in.len);
	if (!buf_reserve(&packed, before + c.out_len))
		return; /* it goes as it is */
	c.out = packed.ptr + before;
	compression_run(&c, pack, c.in.len);
	if (!c.done || before + c.out_len >= c.in.len)
		return;
	if (before)
		big_endian_put_32(packed.ptr, (uint32_t)c.in.len);
	packed.len = before + c.out_len;
	out->len = body;
	buf_append_buf(out, &packed); /* shorter than what was there: it fits */
	frame_set_flags(out, from, (uint8_t)out->ptr[from + 1] | FRAME_COMPRESSED);
}
