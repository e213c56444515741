/*
 * Random numbers: unpredictable bytes from the kernel, and a sequence from a seed for tests that
 * must be repeatable.
 */
#ifndef FROND_BASE_RAND_H
#define FROND_BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

/*
 * Writes unpredictable bytes from the kernel. Never fails; it ends the process on a kernel without
 * getrandom().
 */
void rand_bytes(void *ret, size_t n);

/* A repeatable sequence (splitmix64); not for secrets. */
struct rand_seq {
	uint64_t state;
};

uint64_t rand_seq_next(struct rand_seq *r);

/* Returns an evenly distributed number in [0, below). `below` must not be 0. */
uint64_t rand_seq_below(struct rand_seq *r, uint64_t below);

#endif
