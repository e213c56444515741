/*
 * Counters by key: how often, or for how long, something was done with each of many things, such as
 * collections and indexes. They lie in the memory of the process, since it has started. As many
 * keys are counted as a limit says; of further ones nothing is known.
 *
 * Threading: any thread. A key belongs to one of several stripes, each with a lock that owns the
 * stripe's rows and is held for a few instructions.
 */
#ifndef FROND_SERVE_COUNTS_H
#define FROND_SERVE_COUNTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
	COUNTS_STRIPES = 16,
	COUNTS_FIGURES = 16, /* of a key, at most */
};

struct counts_row {
	struct str key;     /* behind the figures */
	uint64_t figures[]; /* all 0: the key was forgotten since */
};

struct counts {
	size_t figures; /* of each key */
	size_t most;    /* slots of a stripe */
	struct counts_stripe {
		pthread_mutex_t lock;
		struct counts_row **rows; /* open addressing; at least half of them are NULL */
		size_t size;
		size_t count;
	} stripes[COUNTS_STRIPES];
};

/* Each key has so many figures; about `most` keys are counted, a power of 2. */
void counts_init(struct counts *c, size_t figures, size_t most);
void counts_fini(struct counts *c);

/* Adds `by` to the figures of a key, from figure `at` on. */
void counts_add(struct counts *c, struct str key, size_t at, const uint64_t *by, size_t count);

/* Reads all figures of a key. False: they are unknown, since there is no room for one key more. */
bool counts_read(struct counts *c, struct str key, uint64_t *ret);

/* Calls `see` for each key that was counted, in no order, with a lock held. */
void counts_each(struct counts *c, void (*see)(void *arg, struct str key, const uint64_t *figures),
		 void *arg);

/* Forgets a key, or all keys that begin so if `begins`. */
void counts_forget(struct counts *c, struct str key, bool begins);

#endif
