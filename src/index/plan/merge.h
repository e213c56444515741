/*
 * Ranges that are merged: each is of other values of an index's first columns, and all are read
 * side by side, so that entries come in the order of what is behind those columns.
 *
 * A document must not have more than one entry in the ranges of one index. Entries are compared by
 * the document's id last, so those of different documents are never equal. Ranges of several
 * indexes may find a document more than once: its entries are then equal, and one is given.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_INDEX_PLAN_MERGE_H
#define FROND_INDEX_PLAN_MERGE_H

#include "index/engine/scan.h"

/* A range, and how many columns of its keys are left out of the comparison. */
struct key_merge_range {
	const struct index_def *def;
	const struct index_range *range;
	size_t columns;
};

struct key_merge_terms {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct key_merge_range *ranges; /* outlive the merge */
	size_t count;
	/*
	 * True if the ranges are of several indexes. The keys of entries, and `after`, then are
	 * only what is behind the columns; otherwise they are whole keys of the one index.
	 */
	bool several;
	struct index_scan_options options; /* of each; `limit_bytes` is that of all together */
};

struct key_merged;

/* All fields are private. */
struct key_merge {
	struct key_merged *items; /* one for each range, in the arena */
	size_t count;
	bool several, reverse;
};

/* Asks for the first entries of all ranges. key_merge_release() also after a failure. */
MUST_USE enum status key_merge_init(struct key_merge *m, const struct key_merge_terms *terms,
				    struct arena *arena);
/* The next entry of all, valid until the next call. STATUS_NOT_FOUND at the end. */
MUST_USE enum status key_merge_next(struct key_merge *m, struct index_work *work,
				    struct index_entry *ret);
void key_merge_release(struct key_merge *m); /* also one that is all zero */

#endif
