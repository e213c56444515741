/*
 * Counters by range: how many keys of a list lie where. README.md ("Counting") tells why they are
 * exact whatever their writers know.
 */
#ifndef FROND_MODEL_TALLY_INT_H
#define FROND_MODEL_TALLY_INT_H

#include <stdatomic.h>

#include "model/revisioned/revisioned_int.h"

enum {
	REV_MARK_BYTES = 1024,              /* of a bound; ranges end only where so many will do */
	REV_GUIDE_BYTES = 64 * 1024 * 1024, /* of the ranges of both lists in memory */
	REV_TALLY_KEYS = 512,               /* of a range, in a small database */
	REV_TALLY_FOLD_KEYS = 16 * 1024,    /* counted by one transaction at most, about */
	REV_TALLY_FOLD_RANGES = 1024,       /* that one transaction goes through at most */
	REV_TALLY_MERGES = 256,             /* ranges that one transaction merges at most */
	REV_TALLY_STEPS = 16,               /* transactions of one call */
	REV_TALLY_IDLE_MS = 2000,           /* few changes of a database may wait so long */
	REV_TALLY_WORN = 8192,              /* keys counted for one answer: a reason to tend */
	REV_TALLIES_SLOTS = 256,
	REV_TALLIES_QUEUE = 4096, /* databases that wait for being tended */
};

/* Behind every key of a list, and the upper bound of the last range. */
#define REV_TALLY_END STR("\xff")

/* A range of keys, by what follows the list's prefix: lo <= key < hi. */
struct rev_range {
	struct str lo;
	struct str hi;
	int64_t count;
};

struct rev_ranges {
	struct rev_range *ranges; /* by lo, then by hi */
	size_t count;
	uint64_t total; /* of the list, as the counters of the whole say */
	int64_t rest;   /* what they have more than the ranges */
};

/* The subspace that a list is. */
enum rev_subspace rev_list_space(enum rev_list list);

/* (P, TALLIES, list), and below it (lo, hi). */
void rev_key_tally(struct buf *key, const struct rev_db *db, enum rev_list list);
void rev_key_range(struct buf *key, const struct rev_db *db, enum rev_list list, struct str lo,
		   struct str hi);

/* A counter's key behind rev_key_tally(), and its value. Copies to the arena. STATUS_CORRUPT. */
MUST_USE enum status rev_range_parse(struct str tail, struct str value, struct arena *arena,
				     struct rev_range *ret);

/* All of a list, as a snapshot. STATUS_LIMIT past the arena's. */
MUST_USE enum status rev_ranges_read(struct kv_tx *tx, const struct rev_db *db, enum rev_list list,
				     struct arena *arena, struct rev_ranges *ret);

/*
 * How many keys of the list there are, as the counters of the whole say: asks, then waits.
 */
struct rev_total {
	struct kv_future *docs;
	struct kv_future *deleted; /* NULL where they do not count */
};

MUST_USE enum status rev_total_get(struct kv_tx *tx, const struct rev_db *db, enum rev_list list,
				   struct buf *key, struct rev_total *ret);
MUST_USE enum status rev_total_wait(const struct rev_total *total, uint64_t *ret);

/* ---- What writers know (tally.c) ---- */

/* Where ranges begin, but for the first one. Counted, immutable. */
struct rev_guide {
	atomic_uint refs;
	struct str *marks[REV_LISTS];
	size_t counts[REV_LISTS];
	uint64_t keys; /* of both lists, about */
};

/* Reads the counters of both lists. */
MUST_USE enum status rev_guide_read(struct kv_tx *tx, const struct rev_db *db,
				    struct rev_guide **ret);

/* Takes over the reference. */
void rev_tally_guide(struct rev_tally *tally, struct rev_guide *guide);

/* ---- Tending (tally_tend.c) ---- */

/* A bounded piece of work for one database, and a new guide. STATUS_NOT_FOUND if it is gone. */
MUST_USE enum status rev_tally_tend_db(struct kv_store *store, const struct rev_db *db,
				       struct rev_tally *tally, uint64_t range_keys, bool *ret_more,
				       struct err *err);

#endif
