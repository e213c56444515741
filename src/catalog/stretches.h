/*
 * What counters by range (tally.h) tell of a whole list at once, for whoever counts many of its
 * parts.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_CATALOG_STRETCHES_H
#define FROND_CATALOG_STRETCHES_H

#include "catalog/tally.h"

/* The keys of a list between two places, both without the prefix that all keys of the list have. */
struct catalog_stretch {
	struct str lo, hi;
	uint64_t keys; /* exactly */
};

/*
 * The list in stretches, ascending, of which the counters tell how many keys each has: whoever
 * counts a range reads only what lies in front of the first one within it, and behind the last.
 * None where the counters do not tell. All of it is in the arena; STATUS_LIMIT when that is full.
 * The counters are read without conflicts: a caller whose transaction must fail if somebody writes
 * what it has counted adds conflict ranges for that itself (kv_add_read_conflict_range()).
 */
MUST_USE enum status catalog_tally_stretches(struct kv_tx *tx, const struct catalog_db *db,
					     size_t list, struct arena *arena,
					     struct catalog_stretch **ret, size_t *ret_count);

#endif
