/* Numbers as bytes with the least first, at any address. Threading: none. */
#ifndef FROND_BASE_LITTLE_ENDIAN_H
#define FROND_BASE_LITTLE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes. */
static inline uint64_t
little_endian_64(const void *from)
{
	uint64_t n;

	memcpy(&n, from, sizeof(n));
	return le64toh(n);
}

/* Four bytes. */
static inline uint32_t
little_endian_32(const void *from)
{
	uint32_t n;

	memcpy(&n, from, sizeof(n));
	return le32toh(n);
}

#endif
