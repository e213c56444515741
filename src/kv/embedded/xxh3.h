/*
 * XXH3_64bits without a seed, Yann Collet's hash, which RocksDB's tables have as the checksum of
 * their blocks. In plain C: it serves what reads damaged tables, and no path that has to be fast.
 */
#ifndef FROND_KV_EMBEDDED_XXH3_H
#define FROND_KV_EMBEDDED_XXH3_H

#include <stddef.h>
#include <stdint.h>

enum {
	XXH3_LEAST_BYTES = 9, /* shorter inputs have a form of their own, which no block needs */
};

/* `len` is XXH3_LEAST_BYTES at least. */
uint64_t xxh3(const uint8_t *bytes, size_t len);

#endif
