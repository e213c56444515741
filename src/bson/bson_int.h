/* What the files of bson/ share. */
#ifndef FROND_BSON_BSON_INT_H
#define FROND_BSON_BSON_INT_H

#include <endian.h>

#include "base/str.h"
#include "bson/bson.h"

static inline uint32_t
bson_u32(const char *at)
{
	uint32_t n;

	memcpy(&n, at, sizeof(n));
	return le32toh(n);
}

static inline uint64_t
bson_u64(const char *at)
{
	uint64_t n;

	memcpy(&n, at, sizeof(n));
	return le64toh(n);
}

enum {
	/* A deprecated subtype, whose bytes begin with their own number. */
	BSON_SUBTYPE_COUNTED = 2,
};

static inline bool
bson_binary_is_whole(const struct bson_value *v)
{
	return v->subtype != BSON_SUBTYPE_COUNTED ||
	       (v->text.len >= sizeof(uint32_t) &&
		bson_u32(v->text.ptr) == v->text.len - sizeof(uint32_t));
}

#endif
