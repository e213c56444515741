/*
 * Counters by range tell how many keys of a list come before a place. The answer is the sum of some
 * counters, each of a range of keys, and of the keys that are counted one by one in one region of
 * ranges. Writers add to the counters without reading them, and choose a counter by the ranges that
 * their guide has. The answers are exact even if a guide is out of date. Few keys have to be
 * counted one by one as long as catalog_tallies_tend() splits ranges that have grown.
 *
 *     (P, counters, list, lo, hi)  → little-endian counter: keys of (P, list, …) from lo to hi
 *
 * A kind says which of its subspaces are such lists (struct catalog_tally_list).
 *
 * Threading: any thread may use a struct catalog_tallies; the rest belongs to the thread of its
 * transaction.
 */
#ifndef FROND_CATALOG_TALLY_H
#define FROND_CATALOG_TALLY_H

#include "catalog/catalog.h"

enum {
	CATALOG_TALLY_LISTS = 3, /* a kind has at most this many lists */
};

/* A list of keys, (P, space, …), whose keys are counted. */
struct catalog_tally_list {
	uint64_t space;
	uint64_t counters; /* (P, counters, space, lo, hi) */
	/*
	 * The names of the counters (P, totals, name) whose sum is the number of keys; NULL: no
	 * counter.
	 */
	uint64_t totals;
	const char *total_names[2];
};

/*
 * What the writers of a process know of ranges; all caches of the process share it. Any thread may
 * use it.
 */
struct catalog_tallies *catalog_tallies_new(void); /* NULL when out of memory */
/* Call this after all caches and descriptions are freed. NULL is allowed. */
void catalog_tallies_free(struct catalog_tallies *tallies);

/*
 * Splits and merges ranges of databases that have been written to lately; with `now` also of those
 * where little was written. One call does a bounded amount of work. `*ret_more` is true if work is
 * left; before the next call writers need a moment to learn of the new ranges. Call this from time
 * to time, from one thread of a process.
 */
MUST_USE enum status catalog_tallies_tend(struct catalog_tallies *tallies, struct kv_store *store,
					  bool now, bool *ret_more, struct err *err);

/* How large ranges are. */
struct catalog_tally_sizes {
	uint64_t keys; /* of a new range of a small database */
	/* A range is cut when it has more than so many times the keys of a new one; at least 2. */
	unsigned cut;
};

/*
 * Does the same for one database and renews the guide of its description. `sizes` is NULL for the
 * usual ones. Returns STATUS_NOT_FOUND if the database is gone or moving, STATUS_CORRUPT if the
 * counters are wrong.
 */
MUST_USE enum status catalog_tally_tend(struct kv_store *store, const struct catalog_db *db,
					const struct catalog_tally_sizes *sizes, bool *ret_more,
					struct err *err);

/* ---- Counting ---- */

struct catalog_guide;
struct catalog_counted;

/* What one transaction adds to the counters of a database. All fields are private. */
struct catalog_counts {
	const struct catalog_db *db;
	struct arena *arena;
	struct catalog_guide *guide;     /* NULL: no ranges are known */
	struct catalog_counted *counted; /* in the arena */
	size_t counted_count;
	size_t counted_cap;
};

/* Takes a reference to the guide that is valid now. `arena` lives as long as the counts. */
void catalog_counts_init(struct catalog_counts *counts, const struct catalog_db *db,
			 struct arena *arena);
void catalog_counts_release(struct catalog_counts *counts);

/*
 * Notes that a key of the list is added (+1) or removed (-1). `tail` is what follows (P, space) in
 * the key. For a key that sorts behind all others, because the commit fills in its versionstamp,
 * `tail` is CATALOG_TALLY_END.
 */
MUST_USE enum status catalog_counts_add(struct catalog_counts *counts, size_t list, struct str tail,
					int64_t change);

/* Adds what was noted to the counters, at the end of a batch. Uses `key` as scratch. */
MUST_USE enum status catalog_counts_finish(struct catalog_counts *counts, struct kv_tx *tx,
					   struct buf *key);

/* This sorts behind every key of a list and is the upper bound of the last range. */
#define CATALOG_TALLY_END STR("\xff")

/*
 * Counts the keys of the list that come before `at`, or with `behind` those at `at` and behind it.
 */
MUST_USE enum status catalog_tally_rank(struct kv_tx *tx, const struct catalog_db *db, size_t list,
					struct str at, bool behind, uint64_t *ret);

/*
 * Roughly how many keys lie from `begin` to `end`, which is not below it, by what this process has
 * last read of the counters: for planning. Of two places in one range it says all of that range.
 * Reads nothing, and costs the logarithm of their number. Returns false if the list has too few
 * ranges to tell.
 */
bool catalog_tally_estimate(const struct catalog_db *db, size_t list, struct str begin,
			    struct str end, uint64_t *ret);

/*
 * Cuts the list into at most `parts` parts of about as many keys each, where the ranges allow it,
 * by snapshot reads of the counters. `ret_bounds` has room for `parts` - 1 bounds, each what
 * follows the list's prefix in a key: ascending, in the arena, `*ret_count` of them. `*ret_keys` is
 * the number of keys of the list.
 */
MUST_USE enum status catalog_tally_cut(struct kv_tx *tx, const struct catalog_db *db, size_t list,
				       size_t parts, struct arena *arena, struct str *ret_bounds,
				       size_t *ret_count, uint64_t *ret_keys);

/* Counts the keys between two bounds, which it reads page by page. */
MUST_USE enum status catalog_keys_count(struct kv_tx *tx, struct str lo, struct str hi,
					uint64_t *ret);

#endif
