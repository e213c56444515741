/*
 * Counters by range, for the files that implement them. README.md ("Counting") explains why the
 * counters are exact even if a guide is out of date.
 */
#ifndef FROND_CATALOG_TALLY_INT_H
#define FROND_CATALOG_TALLY_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "catalog/catalog_int.h"
#include "catalog/tally.h"

enum {
	/* the longest bound; ranges end only where a bound this short exists */
	CATALOG_MARK_BYTES = 1024,
	CATALOG_GUIDE_BYTES = 64 * 1024 * 1024, /* memory for the ranges of both lists */
	CATALOG_TALLY_KEYS = 256,               /* keys of a new range in a small database */
	/*
	 * A range with more than so many times the keys of a new one is cut. The larger this is,
	 * the fewer keys are counted while a list grows in no order: each 1.3 times with 4, twice
	 * with 2.
	 */
	CATALOG_TALLY_CUT = 4,
	/* keys that one transaction counts at most, roughly */
	CATALOG_TALLY_FOLD_KEYS = 16 * 1024,
	/* ranges that one transaction makes at most, roughly */
	CATALOG_TALLY_FOLD_RANGES = 1024,
	CATALOG_TALLY_MERGES = 256, /* ranges that one transaction merges at most */
	/* transactions that one call makes at most for a list */
	CATALOG_TALLY_STEPS = 16,
	/* changed keys per counter after which a database is tended */
	CATALOG_TALLY_DUE_KEYS = 12,
	/* after it was tended, a busy database rests for so many times as long as that took */
	CATALOG_TALLY_PAUSES = 32,
	/* how long a database with few changes waits to be tended */
	CATALOG_TALLY_IDLE_MS = 2000,
	CATALOG_TALLY_MORE_MS = 1000, /* the same for a database whose tending was not finished */
	/* ranges of a list from which on the number of keys before a place can be estimated */
	CATALOG_TALLY_ESTIMATE_MARKS = 32,
	/* an answer that had to count more keys asks for tending */
	CATALOG_TALLY_WORN = 8192,
	CATALOG_TALLIES_SLOTS = 256,
	CATALOG_TALLIES_QUEUE = 4096, /* databases that wait to be tended */
};

/* A range of keys: lo <= key < hi, where key is what follows the list's prefix. */
struct catalog_range {
	struct str lo;
	struct str hi;
	int64_t count;
};

struct catalog_ranges {
	struct catalog_range *ranges; /* by lo, then by hi */
	size_t count;
	uint64_t total; /* keys of the list, as the counters of the whole list say */
	int64_t rest;   /* `total` less the counts of all ranges */
};

/* Writes (P, list), with which the keys of a list begin. */
void catalog_key_list(struct buf *key, const struct catalog_db *db, size_t list);

/* catalog_key_tally() writes (P, TALLIES, list); catalog_key_range() adds (lo, hi). */
void catalog_key_tally(struct buf *key, const struct catalog_db *db, size_t list);
void catalog_key_range(struct buf *key, const struct catalog_db *db, size_t list, struct str lo,
		       struct str hi);

/*
 * Parses what follows catalog_key_tally() in the key of a counter, and its value. Copies the bounds
 * to the arena. Returns STATUS_CORRUPT if either is malformed.
 */
MUST_USE enum status catalog_range_parse(struct str tail, struct str value, struct arena *arena,
					 struct catalog_range *ret);

/* Does the same, but the bounds borrow from the key where they can. */
MUST_USE enum status catalog_range_borrow(struct str tail, struct str value, struct arena *arena,
					  struct catalog_range *ret);

/*
 * The number of keys of a list, as the counters of the whole list say. catalog_total_get() issues
 * the reads, catalog_total_wait() waits for them.
 */
struct catalog_total {
	struct kv_future *parts[2]; /* NULL: the list has fewer counters */
};

MUST_USE enum status catalog_total_get(struct kv_tx *tx, const struct catalog_db *db, size_t list,
				       struct buf *key, struct catalog_total *ret);
MUST_USE enum status catalog_total_wait(const struct catalog_total *total, uint64_t *ret);

/* Reads all ranges of a list with snapshot reads. Returns STATUS_LIMIT if the arena is full. */
MUST_USE enum status catalog_ranges_read(struct kv_tx *tx, const struct catalog_db *db, size_t list,
					 struct arena *arena, struct catalog_ranges *ret);

/*
 * Does the same for the ranges that begin at `lo` or behind it, and in front of `hi`. `total` is 0
 * and `rest` what their counters are together, negated.
 */
MUST_USE enum status catalog_ranges_read_between(struct kv_tx *tx, const struct catalog_db *db,
						 size_t list, struct str lo, struct str hi,
						 struct arena *arena, struct catalog_ranges *ret);

/*
 * The same in two halves: the first asks for everything and waits for nothing, so that all of a
 * database's lists come in one round trip. The caller ends a scan that it has begun.
 */
struct catalog_range_scan {
	struct kv_scan scan;
	struct catalog_total total;
	size_t prefix_len;
};

MUST_USE enum status catalog_range_scan_begin(struct kv_tx *tx, const struct catalog_db *db,
					      size_t list, struct catalog_range_scan *ret);
MUST_USE enum status catalog_range_scan_read(struct catalog_range_scan *s, struct arena *arena,
					     struct catalog_ranges *ret);
void catalog_range_scan_end(struct catalog_range_scan *s); /* does nothing to a zeroed one */

/* ---- What writers know (tally.c) ---- */

/* What the writers of one database in this process share. */
struct catalog_tally {
	struct catalog_tallies *all; /* NULL: the tally belongs to one description alone */
	struct catalog_db db;        /* a copy, which has no tally and no extension */
	struct catalog_tally *next;  /* in all->slots */
	unsigned refs;               /* under all->lock */
	pthread_mutex_t lock;
	struct catalog_guide *guide; /* under `lock`; NULL: all keys are one range */
	atomic_uint_fast64_t noted;  /* keys added and removed since it was last tended */
	atomic_bool queued;
	/* Threads that tend it by themselves: the background leaves it to them. */
	atomic_uint tending;
	/* Of the last call; only the thread that tends uses these. */
	uint64_t tended_ns; /* when it ended */
	uint64_t took_ns;
	bool more;    /* it left work */
	char bytes[]; /* of the copy: the name, then the prefix */
};

struct catalog_tallies {
	pthread_mutex_t lock;
	struct catalog_tally *slots[CATALOG_TALLIES_SLOTS]; /* by number */
	struct catalog_tally *queue[CATALOG_TALLIES_QUEUE]; /* one reference each */
	size_t queued;
};

/* The change of the number of keys in one range of a guide. */
struct catalog_counted {
	size_t list;
	size_t range;
	int64_t change;
};

/* Returns the guide that is valid now, with a new reference, or NULL if no ranges are known. */
struct catalog_guide *catalog_guide_get(const struct catalog_db *db);
void catalog_guide_unref(struct catalog_guide *guide); /* NULL is fine */

/* The reads of a guide: those of all lists of a database. */
struct catalog_guide_scan {
	bool begun;
	struct catalog_range_scan lists[CATALOG_TALLY_LISTS];
};

void catalog_guide_scan_end(struct catalog_guide_scan *s); /* does nothing to a zeroed one */

/*
 * Gives a new description its tally, which it shares with other descriptions of the database in
 * `all` (unless `all` is NULL). Asks for the counters if the tally has no guide yet, and
 * catalog_tally_opened() waits for them. `s` is zeroed; the caller ends it.
 */
MUST_USE enum status catalog_tally_open(struct kv_tx *tx, struct catalog_tallies *all,
					struct catalog_db *db, struct catalog_guide_scan *s);
MUST_USE enum status catalog_tally_opened(const struct catalog_db *db,
					  struct catalog_guide_scan *s);
void catalog_tally_unref(struct catalog_tally *tally); /* NULL is fine */

/* Notes that `keys` keys have changed and that the database has to be tended. */
void catalog_tally_note(const struct catalog_db *db, uint64_t keys);

/*
 * Puts the tally into the queue of those to tend, which takes a reference. A full queue does not
 * take it; the next change of the database tries again.
 */
void catalog_tally_queue(struct catalog_tally *tally);

/* The places where ranges begin, except the first range of each list. Counted, immutable. */
struct catalog_guide {
	atomic_uint refs;
	struct str *marks[CATALOG_TALLY_LISTS];
	size_t counts[CATALOG_TALLY_LISTS];
	uint64_t *before[CATALOG_TALLY_LISTS]; /* by mark: the keys in front of it, roughly */
	uint64_t totals[CATALOG_TALLY_LISTS];  /* keys of each list, roughly */
};

/* Makes a guide of the ranges of all lists. Uses the arena as scratch. */
MUST_USE enum status catalog_guide_make(const struct catalog_db *db,
					const struct catalog_ranges *ranges, struct arena *arena,
					struct catalog_guide **ret);

/* Replaces the guide of the tally and takes over the reference to the new one. */
void catalog_tally_guide(struct catalog_tally *tally, struct catalog_guide *guide);

#endif
