/*
 * Walking through entries of an index that lie in several ranges, one range after the other.
 *
 * A walk goes on behind the entry where an earlier one has ended, in any transaction: ranges in
 * front of that place are passed over. Ranges may be those of key_ranges_make(), or a part of them.
 *
 * Ownership: `ranges` and `scans` are the caller's, and outlive the walk. Threading: that of the
 * transaction.
 */
#ifndef FROND_INDEX_PLAN_WALK_H
#define FROND_INDEX_PLAN_WALK_H

#include "index/engine/scan.h"

/* What is walked through. */
struct key_walk_terms {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct index_def *def;
	const struct index_range *ranges; /* in the order of keys; they do not overlap */
	size_t count;
	/*
	 * Of the scans. `after` is a place in the index, and `limit` that of all ranges together;
	 * both are only looked at by key_walk_init(), and by key_walk_jump() the limit.
	 */
	struct index_scan_options options;
	struct index_scan *scans; /* places for these: */
	size_t together;          /* so many ranges are asked for their first entries at once */
};

/* All fields are private. */
struct key_walk {
	struct key_walk_terms terms;
	bool limited;
	size_t next;    /* the first range that was neither passed nor opened, as it is walked */
	size_t at, end; /* the scans from `at` on, in front of `end`, are open */
};

/* Asks for the first entries. key_walk_release() also after a failure. */
MUST_USE enum status key_walk_init(struct key_walk *w, const struct key_walk_terms *terms);
/* As index_scan_next(). */
MUST_USE enum status key_walk_next(struct key_walk *w, struct index_work *work,
				   struct index_entry *ret);
/* Goes on behind a place in the range that the last entry has come from. */
MUST_USE enum status key_walk_jump(struct key_walk *w, struct str after);
void key_walk_release(struct key_walk *w); /* also one that is all zero */

#endif
