/* What the files of bson/ share. */
#ifndef FROND_BSON_BSON_INT_H
#define FROND_BSON_BSON_INT_H

#include "base/little_endian.h"
#include "base/str.h"
#include "bson/bson.h"

/*
 * Returns the NUL that ends the name at `at`, or NULL if there is none in front of `end`.
 * `*ret_high` is then 0 if the name is ASCII. Inlined, so a caller that ignores that pays nothing.
 */
static inline const char *
bson_name_end(const char *at, const char *end, uint64_t *ret_high)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t bytes, zeros, high = 0;

	/* Most names are shorter than a word. The first NUL has the lowest bit of `zeros`. */
	for (; (size_t)(end - at) >= sizeof(bytes); at += sizeof(bytes)) {
		bytes = little_endian_64(at);
		zeros = (bytes - ones) & ~bytes & ones << 7;
		if (zeros) {
			*ret_high = high | (bytes & ones << 7 & (zeros ^ (zeros - 1)));
			return at + __builtin_ctzll(zeros) / 8;
		}
		high |= bytes & ones << 7;
	}
	for (; at < end; at++) {
		*ret_high = high;
		if (!*at)
			return at;
		high |= (uint8_t)*at & 0x80;
	}
	return NULL;
}

enum {
	/* A deprecated subtype, whose bytes begin with their own number. */
	BSON_SUBTYPE_COUNTED = 2,
};

static inline bool
bson_binary_is_whole(const struct bson_value *v)
{
	return v->subtype != BSON_SUBTYPE_COUNTED ||
	       (bson_text(v).len >= sizeof(uint32_t) &&
		little_endian_32(bson_text(v).ptr) == bson_text(v).len - sizeof(uint32_t));
}

#endif
