/*
 * Sorting what a client can make long: its steps are counted (step.h), so that others have their
 * turns meanwhile, and it ends where nobody waits for it. The caller holds no lock.
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
 * Sorts `count` items of `size` bytes each; equal ones keep their order. Meanwhile it needs room
 * for as many in the arena. STATUS_LIMIT, the failures of `compare` and of step_count(): the items
 * are then of no use.
 */
MUST_USE enum status sort_items(void *items, size_t count, size_t size, sort_compare_fn compare,
				const void *arg, struct arena *arena);

/* Compares two texts byte by byte, for a sort_compare_fn. */
MUST_USE enum status sort_compare_strs(struct str a, struct str b, int *ret);

/* sort_items() for texts, byte by byte. */
MUST_USE enum status sort_strs(struct str *items, size_t count, struct arena *arena);

#endif
