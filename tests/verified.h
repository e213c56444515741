/*
 * What `frond verify` finds in a store, at one moment and in ranges, for tests. The model's kinds
 * have been registered.
 */
#ifndef FROND_TESTS_VERIFIED_H
#define FROND_TESTS_VERIFIED_H

#include <stddef.h>

#include "kv/kv.h"

struct verified {
	size_t count;   /* of findings */
	char last[200]; /* "kind: text" */
	char all[1000]; /* one a line, cut */
};

/*
 * Checks the whole store in one transaction. Fails the test if a check in ranges of one and of five
 * units, of more in a large store, finds something where this one does not, or nothing where it
 * does, or tells the same more often.
 */
void verified_read(struct kv_store *store, struct verified *ret);

/* Fails the test if there are findings. */
void verified_none(struct kv_store *store);

/* The same of a check in ranges of one unit each, beside which others may write. */
void verified_beside_writers(struct kv_store *store);

#endif
