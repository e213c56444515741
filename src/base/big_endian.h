/* Numbers as bytes with the greatest first, at any address. Threading: none. */
#ifndef FROND_BASE_BIG_ENDIAN_H
#define FROND_BASE_BIG_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes. */
static inline uint64_t
big_endian_64(const void *from)
{
	uint64_t n;

	memcpy(&n, from, sizeof(n));
	return be64toh(n);
}

/* Four bytes. */
static inline uint32_t
big_endian_32(const void *from)
{
	uint32_t n;

	memcpy(&n, from, sizeof(n));
	return be32toh(n);
}

static inline void
big_endian_put_64(void *to, uint64_t n)
{
	n = htobe64(n);
	memcpy(to, &n, sizeof(n));
}

static inline void
big_endian_put_32(void *to, uint32_t n)
{
	n = htobe32(n);
	memcpy(to, &n, sizeof(n));
}

#endif
