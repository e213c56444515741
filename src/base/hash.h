/*
 * Hashes of what clients choose, for tables in memory. They depend on a secret of the process, so
 * nobody can choose keys that all fall into one slot and make a table's searches long.
 *
 * A hash under the process's secret means nothing outside the process: it is never stored and never
 * sent. What is stored is hashed under a seed that is stored with it. Plain functions, for any
 * thread.
 */
#ifndef FROND_BASE_HASH_H
#define FROND_BASE_HASH_H

#include "base/str.h"

/* SipHash-1-3 of the number and the bytes, under the process's secret. Any bits choose a slot. */
uint64_t hash_keyed(uint64_t n, struct str s);

/*
 * A quick hash without a secret: for tables where a client that chooses keys with the same hash
 * gets nothing worse than misses. The upper bits choose a slot.
 */
uint64_t hash_quick(struct str s);

enum {
	HASH_SEED_BYTES = 16,
};

/* The same of the bytes, under a seed of the caller's own: the same in every process, for ever. */
uint64_t hash_seeded(const uint8_t seed[HASH_SEED_BYTES], struct str s);

/* The slots of a table with open addressing for `most` entries: a power of two, half of it free. */
static inline size_t
hash_slots(size_t most)
{
	size_t slots = 4;

	while (slots / 2 < most)
		slots *= 2;
	return slots;
}

#endif
