#include "rdb/rdb.h"

enum {
	LENGTH_14 = 0x40,
	LENGTH_32 = 0x80,
	LENGTH_64 = 0x81,
	LISTPACK_HEADER_BYTES = 6,
	LISTPACK_MANY = 65535, /* the most entries that its header tells of */
	LISTPACK_END = 0xff,
	BACK_BITS = 7, /* of a length behind an entry, in a byte */
};

static void
put_big_endian(struct buf *out, unsigned bytes, uint64_t n)
{
	while (bytes--)
		buf_append_byte(out, (uint8_t)(n >> 8 * bytes));
}

void
rdb_put_number(struct buf *out, unsigned bytes, uint64_t n)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_append_byte(out, (uint8_t)(n >> 8 * i));
}

void
rdb_put_length(struct buf *out, uint64_t n)
{
	if (n < 1 << 6) {
		buf_append_byte(out, (uint8_t)n);
	} else if (n < 1 << 14) {
		put_big_endian(out, 2, LENGTH_14 << 8 | n);
	} else if (n <= UINT32_MAX) {
		buf_append_byte(out, LENGTH_32);
		put_big_endian(out, 4, n);
	} else {
		buf_append_byte(out, LENGTH_64);
		put_big_endian(out, 8, n);
	}
}

void
rdb_put_string(struct buf *out, struct str s)
{
	rdb_put_length(out, s.len);
	buf_append_str(out, s);
}

void
rdb_put_double(struct buf *out, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	rdb_put_number(out, 8, bits);
}

void
rdb_put_id(struct buf *out, struct rdb_id id)
{
	put_big_endian(out, 8, id.ms);
	put_big_endian(out, 8, id.seq);
}

/* ---- Listpacks ---- */

void
rdb_listpack_begin(struct buf *out)
{
	buf_clear(out);
	rdb_put_number(out, LISTPACK_HEADER_BYTES, 0);
}

/* How long the entry from `from` on is, behind it: readers go backwards, too. */
static void
listpack_put_back(struct buf *out, size_t from)
{
	size_t len = out->len - from;
	unsigned bytes = rdb_listpack_back_bytes(len);

	for (unsigned i = bytes; i-- > 0;)
		buf_append_byte(
			out, (uint8_t)((len >> BACK_BITS * i & 0x7f) | (i + 1 < bytes ? 0x80 : 0)));
}

void
rdb_listpack_number(struct buf *out, int64_t n)
{
	size_t from = out->len;

	if (n >= 0 && n < 128) {
		buf_append_byte(out, (uint8_t)n);
	} else if (n >= INT16_MIN && n <= INT16_MAX) {
		buf_append_byte(out, 0xf1);
		rdb_put_number(out, 2, (uint64_t)n);
	} else if (n >= INT32_MIN && n <= INT32_MAX) {
		buf_append_byte(out, 0xf3);
		rdb_put_number(out, 4, (uint64_t)n);
	} else {
		buf_append_byte(out, 0xf4);
		rdb_put_number(out, 8, (uint64_t)n);
	}
	listpack_put_back(out, from);
}

void
rdb_listpack_text(struct buf *out, struct str s)
{
	size_t from = out->len;

	if (s.len < 1 << 6) {
		buf_append_byte(out, (uint8_t)(0x80 | s.len));
	} else if (s.len < 1 << 12) {
		put_big_endian(out, 2, 0xe000 | s.len);
	} else {
		buf_append_byte(out, 0xf0);
		rdb_put_number(out, 4, s.len);
	}
	buf_append_str(out, s);
	listpack_put_back(out, from);
}

void
rdb_listpack_end(struct buf *out, size_t count)
{
	struct buf header;
	char bytes[LISTPACK_HEADER_BYTES];

	buf_append_byte(out, LISTPACK_END);
	if (buf_status(out) != STATUS_OK)
		return;
	header = (struct buf){ .ptr = bytes, .cap = sizeof(bytes), .max_bytes = sizeof(bytes) };
	rdb_put_number(&header, 4, out->len);
	rdb_put_number(&header, 2, count < LISTPACK_MANY ? count : LISTPACK_MANY);
	memcpy(out->ptr, bytes, sizeof(bytes));
}
