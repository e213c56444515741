/*
 * Blocks of RocksDB's tables, which its wiki describes in "Rocksdb BlockBasedTable Format".
 *
 * A block is not told where it ends: the index has that, which may be damaged. But a block that is
 * packed by LZ4 begins with the length that it unpacks to, so it ends where that length is reached;
 * and one that is not packed begins with a zero (its first key shares nothing with one before it)
 * and ends with a list of places of which the first is zero, and their number. Each has its
 * compression and a checksum behind it, which tells whether it is one.
 */
#include <assert.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/mem.h"
#include "kv/embedded/raw.h"
#include "kv/embedded/xxh3.h"

enum {
	PACKED_NOT = 0, /* RocksDB's numbers of compressions */
	PACKED_LZ4 = 4,
	BLOCK_LEAST_BYTES = 19,   /* a key's trailer, three lengths, one place, their number */
	PLACE_BYTES = 4,          /* of a place where a key is whole, and of their number */
	BLOCK_MOST_PLACES = 4096, /* RocksDB has one for 16 keys */
	LZ4_SHORTEST_MATCH = 4,
	LZ4_NIBBLE = 15,
	KEY_TRAILER_BYTES = 8, /* the sequence number and the type */
};

bool
raw_type_known(uint64_t type)
{
	return type == RAW_DELETE || type == RAW_PUT || type == RAW_DELETE_SINGLE ||
	       type == RAW_DELETE_RANGE;
}

bool
raw_varint(struct str *rest, uint64_t *ret)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < rest->len && i < 10; i++) {
		uint8_t byte = (uint8_t)rest->ptr[i];

		n |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		*rest = str_skip(*rest, i + 1);
		*ret = n;
		return true;
	}
	return false;
}

bool
raw_bytes(struct str *rest, struct str *ret)
{
	uint64_t len;

	if (!raw_varint(rest, &len) || len > rest->len)
		return false;
	*ret = str_of(rest->ptr, (size_t)len);
	*rest = str_skip(*rest, (size_t)len);
	return true;
}

/* ---- Unpacking ---- */

/* A length that begins in four bits goes on in bytes while these are full. */
static bool
lz4_length(struct str *in, size_t *length)
{
	uint8_t byte;

	if (*length != LZ4_NIBBLE)
		return true;
	do {
		if (!in->len)
			return false;
		byte = (uint8_t)in->ptr[0];
		*in = str_skip(*in, 1);
		*length += byte;
	} while (byte == UINT8_MAX);
	return true;
}

/* Copies bytes that are `back` bytes before. They may overlap: then what is copied repeats. */
static bool
lz4_match(struct str *in, uint8_t *to, size_t *at, size_t length, size_t wanted)
{
	size_t back;

	if (in->len < 2)
		return false;
	back = (size_t)(uint8_t)in->ptr[0] | (size_t)(uint8_t)in->ptr[1] << 8;
	*in = str_skip(*in, 2);
	if (!lz4_length(in, &length) || !back || back > *at)
		return false;
	length += LZ4_SHORTEST_MATCH;
	if (length > wanted - *at)
		return false;
	for (; length; length--, ++*at)
		to[*at] = to[*at - back];
	return true;
}

/* Unpacks `wanted` bytes, and takes what they are packed in away from `*in`. */
static bool
lz4_unpack(struct str *in, uint8_t *to, size_t wanted)
{
	size_t at = 0;

	for (;;) {
		size_t literals, match;
		uint8_t token;

		if (!in->len)
			return false;
		token = (uint8_t)in->ptr[0];
		*in = str_skip(*in, 1);
		literals = token >> 4;
		match = token & LZ4_NIBBLE;
		if (!lz4_length(in, &literals) || literals > in->len || literals > wanted - at)
			return false;
		memcpy(to + at, in->ptr, literals);
		*in = str_skip(*in, literals);
		at += literals;
		if (at == wanted)
			return true;
		if (!lz4_match(in, to, &at, match, wanted))
			return false;
	}
}

/* ---- Checksums ---- */

/* RocksDB mixes the last byte in afterwards, the one of the compression. */
static uint32_t
checksum_xxh3(const char *block, size_t len)
{
	static const uint32_t prime = 0x6b9083d9;

	return (uint32_t)xxh3((const uint8_t *)block, len) ^ (uint8_t)block[len] * prime;
}

static uint32_t
checksum_crc(const uint32_t table[CRC_TABLE], const char *block, size_t len)
{
	uint32_t crc = crc_begin;

	for (size_t i = 0; i <= len; i++)
		crc = crc_add(table, crc, (uint8_t)block[i]);
	return crc_finish(crc);
}

/* True if the trailer behind so many bytes says that they are a block packed like that. */
static bool
block_is_whole(const struct raw_finder *f, struct str from, size_t len, uint8_t packed)
{
	uint32_t sum;

	if (len < XXH3_LEAST_BYTES || len + RAW_TRAILER_BYTES > from.len ||
	    (uint8_t)from.ptr[len] != packed)
		return false;
	sum = little_endian_32(from.ptr + len + 1);
	return checksum_xxh3(from.ptr, len) == sum ||
	       checksum_crc(f->crc_table, from.ptr, len) == sum;
}

/* ---- Blocks ---- */

enum status
raw_finder_init(struct raw_finder *f)
{
	*f = (struct raw_finder){ .bytes = mem_alloc(RAW_BLOCK_BYTES), .walk = RAW_WALK_INIT };
	crc_make_table(f->crc_table);
	return f->bytes ? STATUS_OK : STATUS_NOMEM;
}

void
raw_finder_fini(struct raw_finder *f)
{
	mem_free(f->bytes);
	buf_release(&f->walk.key);
}

/* What a block has in front of its list of places. False: it has no such list. */
static bool
block_entries(struct str block, struct str *ret)
{
	uint64_t places;

	assert(block.len >= BLOCK_LEAST_BYTES);
	places = little_endian_32(block.ptr + block.len - PLACE_BYTES);
	if (!places || places > BLOCK_MOST_PLACES ||
	    (places + 1) * PLACE_BYTES > block.len - KEY_TRAILER_BYTES)
		return false;
	*ret = str_of(block.ptr, block.len - (size_t)(places + 1) * PLACE_BYTES);
	return little_endian_32(ret->ptr + ret->len) == 0;
}

bool
raw_block_next(struct raw_walk *w, struct str *ret_key, struct str *ret_value)
{
	uint64_t shared, own, value;
	struct str rest = w->rest;

	if (!raw_varint(&rest, &shared) || !raw_varint(&rest, &own) || !raw_varint(&rest, &value) ||
	    shared > w->key.len || own > rest.len || value > rest.len - own)
		return false;
	w->key.len = (size_t)shared;
	buf_append(&w->key, rest.ptr, (size_t)own);
	if (buf_status(&w->key) != STATUS_OK)
		return false;
	*ret_key = buf_str(&w->key);
	*ret_value = str_of(rest.ptr + own, (size_t)value);
	w->rest = str_skip(rest, (size_t)(own + value));
	return true;
}

bool
raw_entry_parse(struct str key, struct str value, struct raw_entry *ret)
{
	uint64_t trailer;

	if (key.len < KEY_TRAILER_BYTES)
		return false;
	trailer = little_endian_64(key.ptr + key.len - KEY_TRAILER_BYTES);
	if (!raw_type_known(trailer & UINT8_MAX))
		return false;
	*ret = (struct raw_entry){ .key = str_of(key.ptr, key.len - KEY_TRAILER_BYTES),
				   .value = value,
				   .sequence = trailer >> 8,
				   .type = (enum raw_type)(trailer & UINT8_MAX) };
	return true;
}

/* Begins to walk through the block, if it consists of keys and values to its end. */
static bool
finder_set(struct raw_finder *f, struct str block)
{
	struct str all, key, value;

	if (!block_entries(block, &all))
		return false;
	f->walk.rest = all;
	buf_clear(&f->walk.key);
	while (raw_block_next(&f->walk, &key, &value))
		;
	if (f->walk.rest.len)
		return false;
	f->walk.rest = all;
	buf_clear(&f->walk.key);
	return true;
}

static bool
find_packed(struct raw_finder *f, struct str from, uint32_t *ret_bytes)
{
	struct str in = from;
	uint64_t wanted;

	if (!raw_varint(&in, &wanted) || wanted < BLOCK_LEAST_BYTES || wanted > RAW_BLOCK_BYTES ||
	    !lz4_unpack(&in, f->bytes, (size_t)wanted) ||
	    !block_is_whole(f, from, from.len - in.len, PACKED_LZ4))
		return false;
	*ret_bytes = (uint32_t)(from.len - in.len);
	return finder_set(f, str_of(f->bytes, (size_t)wanted));
}

/* Tries each end at which a block that is not packed may be. */
static bool
find_unpacked(struct raw_finder *f, struct str from, uint32_t *ret_bytes)
{
	struct str entries;

	for (size_t len = BLOCK_LEAST_BYTES; len + RAW_TRAILER_BYTES <= from.len; len++) {
		struct str block = str_of(from.ptr, len);

		if (from.ptr[len] != PACKED_NOT || !block_entries(block, &entries) ||
		    !block_is_whole(f, from, len, PACKED_NOT))
			continue;
		memcpy(f->bytes, from.ptr, len);
		*ret_bytes = (uint32_t)len;
		return finder_set(f, str_of(f->bytes, len));
	}
	return false;
}

bool
raw_block_find(struct raw_finder *f, struct str from, uint32_t *ret_bytes)
{
	if (from.len > RAW_BLOCK_BYTES)
		from.len = RAW_BLOCK_BYTES;
	if (from.len < BLOCK_LEAST_BYTES + RAW_TRAILER_BYTES)
		return false;
	return from.ptr[0] ? find_packed(f, from, ret_bytes) : find_unpacked(f, from, ret_bytes);
}
