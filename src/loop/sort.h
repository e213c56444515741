/*
 * Sorting of arrays that a client can make long. Steps are counted (step.h): other fibers have
 * their turns meanwhile, and a sort for which nobody waits any more ends. The caller holds no lock.
 */
#ifndef FROND_LOOP_SORT_H
#define FROND_LOOP_SORT_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

/*
 * Compares two items: `*ret` is less than 0, 0 or more than 0. One that may look at much more than
 * 64 bytes counts steps of its own. It may fail, and leaves nothing in the arena.
 */
typedef enum status (*sort_compare_fn)(const void *arg, const void *a, const void *b, int *ret);

/*
 * Sorts `count` items of `size` bytes each; equal items keep their order. Until it returns it takes
 * as much memory again, of the arena. Fails with STATUS_LIMIT if that is not there, and as
 * `compare` and step_count() do: the array is then of no use.
 */
MUST_USE enum status sort_items(void *items, size_t count, size_t size, sort_compare_fn compare,
				const void *arg, struct arena *arena);

/* sort_items() by a short comparison that cannot fail, such as bsearch() takes. */
MUST_USE enum status sort_items_by(void *items, size_t count, size_t size,
				   int (*compare)(const void *a, const void *b),
				   struct arena *arena);

/* Compares two texts byte by byte, for a sort_compare_fn. */
MUST_USE enum status sort_compare_strs(struct str a, struct str b, int *ret);

/* sort_items() for texts, byte by byte. */
MUST_USE enum status sort_strs(struct str *items, size_t count, struct arena *arena);

#endif
