/* Randomness: the kernel's where it matters, a seeded generator where a test must repeat. */
#ifndef FROND_BASE_RAND_H
#define FROND_BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

/* Unpredictable bytes from the kernel. Never fails: the kernel's generator is always there. */
void rand_bytes(void *ret, size_t n);

/* A repeatable sequence (splitmix64); not for secrets. */
struct rand_seq {
	uint64_t state;
};

uint64_t rand_seq_next(struct rand_seq *r);

/* Evenly in [0, below); `below` must not be 0. */
uint64_t rand_seq_below(struct rand_seq *r, uint64_t below);

#endif
