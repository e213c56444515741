#include "rdb/pack.h"

#include "rdb/bytes.h"

enum {
	PACK_END = 0xff,
	ZIPLIST_HEADER_BYTES = 10,
	ZIPLIST_LONG_PREVIOUS = 0xfe, /* four bytes follow that say how long the entry before is */
	LISTPACK_HEADER_BYTES = 6,
	INTSET_HEADER_BYTES = 8,
	ZIPMAP_LONG = 0xfe,
};

static enum status
take(struct rdb_pack *p, size_t n, struct str *ret)
{
	return bytes_take(&p->rest, n, ret) ? STATUS_OK : STATUS_INVALID;
}

/* The number of `bytes`, little-endian and with a sign. */
static enum status
take_number(struct rdb_pack *p, unsigned bytes, struct rdb_entry *ret)
{
	struct str s;

	TRY(take(p, bytes, &s));
	*ret = (struct rdb_entry){ .is_number = true,
				   .number = bytes_sign(bytes_le(s), 8 * bytes) };
	return STATUS_OK;
}

static enum status
take_text(struct rdb_pack *p, uint64_t len, struct rdb_entry *ret)
{
	*ret = (struct rdb_entry){ .is_number = false };
	return len > p->rest.len ? STATUS_INVALID : take(p, (size_t)len, &ret->text);
}

/* A length of that many bytes, and then the text. */
static enum status
take_long_text(struct rdb_pack *p, uint64_t high, unsigned bytes, bool big_endian,
	       struct rdb_entry *ret)
{
	struct str s;

	TRY(take(p, bytes, &s));
	return take_text(p, high << 8 * bytes | (big_endian ? bytes_be(s) : bytes_le(s)), ret);
}

/* ---- Ziplists ---- */

static enum status
ziplist_next(struct rdb_pack *p, struct rdb_entry *ret)
{
	struct str s;
	unsigned code;

	TRY(take(p, 1, &s));
	if ((uint8_t)s.ptr[0] == PACK_END)
		return p->rest.len ? STATUS_INVALID : STATUS_NOT_FOUND;
	if ((uint8_t)s.ptr[0] == ZIPLIST_LONG_PREVIOUS)
		TRY(take(p, 4, &s));
	TRY(take(p, 1, &s));
	code = (uint8_t)s.ptr[0];
	switch (code >> 6) {
	case 0:
		return take_text(p, code, ret);
	case 1:
		return take_long_text(p, code & 0x3f, 1, true, ret);
	case 2:
		return code == 0x80 ? take_long_text(p, 0, 4, true, ret) : STATUS_INVALID;
	default:
		break;
	}
	switch (code) {
	case 0xc0:
		return take_number(p, 2, ret);
	case 0xd0:
		return take_number(p, 4, ret);
	case 0xe0:
		return take_number(p, 8, ret);
	case 0xf0:
		return take_number(p, 3, ret);
	case 0xfe:
		return take_number(p, 1, ret);
	default:
		break;
	}
	if (code < 0xf1 || code > 0xfd)
		return STATUS_INVALID;
	*ret = (struct rdb_entry){ .is_number = true, .number = (int64_t)code - 0xf1 };
	return STATUS_OK;
}

/* ---- Listpacks ---- */

/* The entry whose first byte is `code`. */
static enum status
listpack_entry(struct rdb_pack *p, unsigned code, struct rdb_entry *ret)
{
	struct str s;

	if (code < 0x80) {
		*ret = (struct rdb_entry){ .is_number = true, .number = (int64_t)code };
		return STATUS_OK;
	}
	if (code < 0xc0)
		return take_text(p, code & 0x3f, ret);
	if (code < 0xe0) {
		TRY(take(p, 1, &s));
		*ret = (struct rdb_entry){
			.is_number = true,
			.number = bytes_sign((uint64_t)(code & 0x1f) << 8 | (uint8_t)s.ptr[0], 13),
		};
		return STATUS_OK;
	}
	switch (code) {
	case 0xf0:
		return take_long_text(p, 0, 4, false, ret);
	case 0xf1:
		return take_number(p, 2, ret);
	case 0xf2:
		return take_number(p, 3, ret);
	case 0xf3:
		return take_number(p, 4, ret);
	case 0xf4:
		return take_number(p, 8, ret);
	default:
		return code < 0xf0 ? take_long_text(p, code & 0x0f, 1, true, ret) : STATUS_INVALID;
	}
}

static enum status
listpack_next(struct rdb_pack *p, struct rdb_entry *ret)
{
	size_t left = p->rest.len;
	struct str s;

	TRY(take(p, 1, &s));
	if ((uint8_t)s.ptr[0] == PACK_END)
		return p->rest.len ? STATUS_INVALID : STATUS_NOT_FOUND;
	TRY(listpack_entry(p, (uint8_t)s.ptr[0], ret));
	return take(p, rdb_listpack_back_bytes(left - p->rest.len), &s);
}

/* ---- Zipmaps ---- */

static enum status
zipmap_next(struct rdb_pack *p, struct rdb_entry *ret)
{
	uint64_t len, unused = 0;
	struct str s;

	TRY(take(p, 1, &s));
	len = (uint8_t)s.ptr[0];
	if (len == PACK_END)
		return p->rest.len || p->is_value ? STATUS_INVALID : STATUS_NOT_FOUND;
	if (len == ZIPMAP_LONG) {
		TRY(take(p, 4, &s));
		len = bytes_le(s);
	}
	if (p->is_value) {
		TRY(take(p, 1, &s));
		unused = (uint8_t)s.ptr[0];
	}
	TRY(take_text(p, len, ret));
	p->is_value = !p->is_value;
	return take(p, (size_t)unused, &s);
}

/* ---- All of them ---- */

enum status
rdb_pack_begin(enum rdb_pack_kind kind, struct str bytes, struct rdb_pack *ret)
{
	static const size_t header[] = {
		[RDB_ZIPLIST] = ZIPLIST_HEADER_BYTES,
		[RDB_LISTPACK] = LISTPACK_HEADER_BYTES,
		[RDB_INTSET] = INTSET_HEADER_BYTES,
		[RDB_ZIPMAP] = 1,
	};
	struct str head;

	*ret = (struct rdb_pack){ .kind = kind, .rest = bytes };
	TRY(take(ret, header[kind], &head));
	if (kind == RDB_ZIPMAP)
		return STATUS_OK;
	if (kind != RDB_INTSET)
		return bytes_le(str_of(head.ptr, 4)) == bytes.len ? STATUS_OK : STATUS_INVALID;
	ret->width = (unsigned)bytes_le(str_of(head.ptr, 4));
	if (ret->width != 2 && ret->width != 4 && ret->width != 8)
		return STATUS_INVALID;
	return bytes_le(str_of(head.ptr + 4, 4)) * ret->width == ret->rest.len ? STATUS_OK
									       : STATUS_INVALID;
}

enum status
rdb_pack_next(struct rdb_pack *p, struct rdb_entry *ret)
{
	switch (p->kind) {
	case RDB_ZIPLIST:
		return ziplist_next(p, ret);
	case RDB_LISTPACK:
		return listpack_next(p, ret);
	case RDB_ZIPMAP:
		return zipmap_next(p, ret);
	case RDB_INTSET:
		return p->rest.len ? take_number(p, p->width, ret) : STATUS_NOT_FOUND;
	case RDB_PACK_NONE:
		break;
	}
	return STATUS_NOT_FOUND;
}
