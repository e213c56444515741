/* Numbers in bytes, and what is taken from the beginning of bytes. Threading: none. */
#ifndef FROND_RDB_BYTES_H
#define FROND_RDB_BYTES_H

#include "base/str.h"

/* Takes the first `n` bytes. False: there are fewer, and nothing was taken. */
static inline bool
bytes_take(struct str *rest, size_t n, struct str *ret)
{
	if (n > rest->len)
		return false;
	*ret = str_of(rest->ptr, n);
	*rest = str_skip(*rest, n);
	return true;
}

/* Eight bytes at most, the least one first; and the other way round. */
static inline uint64_t
bytes_le(struct str s)
{
	uint64_t n = 0;

	for (size_t i = s.len; i > 0; i--)
		n = n << 8 | (uint8_t)s.ptr[i - 1];
	return n;
}

static inline uint64_t
bytes_be(struct str s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n = n << 8 | (uint8_t)s.ptr[i];
	return n;
}

/* A number of that many bits, the first of which is its sign. */
static inline int64_t
bytes_sign(uint64_t n, unsigned bits)
{
	uint64_t sign = UINT64_C(1) << (bits - 1);

	return (int64_t)((n ^ sign) - sign);
}

#endif
