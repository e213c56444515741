/*
 * Versions of items, where a history is bounded by them: what the files of the room share.
 * README.md has the design, and versions.c the layout.
 */
#ifndef FROND_MODEL_TIMED_VERSIONS_H
#define FROND_MODEL_TIMED_VERSIONS_H

#include "model/timed/timed_int.h"

/* ---- Versions: what writers leave, and what readers look at (versions.c) ---- */

/* What lies in an era of VERSIONS. Stored: never renumber. */
enum timed_version_key {
	TIMED_VERSION_NOTE = 0,    /* (row, moment) → the bucket */
	TIMED_VERSION_HORIZON = 1, /* (space, group) → the first moment that can be read */
	TIMED_VERSION_SHARED = 2,  /* (id) → when the body was given to another header */
};

uint64_t timed_versions_era(uint64_t bucket);
/* (P, VERSIONS, era, kind. */
void timed_versions_key(const struct catalog_db *db, uint64_t era, enum timed_version_key kind,
			struct buf *ret);
/* The value of such a key; false: it is none. */
bool timed_version_number(struct str value, uint64_t *ret);
/* Sets the key in the buffer to a number. */
MUST_USE enum status timed_version_set(struct timed *t, struct buf *key, uint64_t number);
/* The slot of TRIM that a moment is in; from 1. */
uint64_t timed_trim_slot(uint64_t us);

/*
 * Notes that this transaction changes the item whose header is at the key, or what belongs to it,
 * unless `*noted_us` says that it has done so. Reads nothing. The moment is fixed.
 */
MUST_USE enum status timed_version_note(struct timed *t, struct str row, uint64_t *noted_us);
/* Notes that the body, by what its keys begin with, goes to another header. Empty: none. */
MUST_USE enum status timed_version_share(struct timed *t, struct str body);

/* The latest moment that is kept of the kind, by what lies behind it, in the eras since `us`. */
MUST_USE enum status timed_version_latest(struct timed *t, enum timed_version_key kind,
					  struct str tail, uint64_t us, uint64_t *ret);
/*
 * STATUS_INVALID, explained, if what the key belongs to, a header or a body, cannot be read at the
 * moment of the past that the transaction reads.
 */
MUST_USE enum status timed_version_check(struct timed *t, struct str key);

/* The same of all that there is. */
MUST_USE enum status timed_version_check_all(struct timed *t);

/* The same of a range that is gone through; NULL: all of it can be read. For cursors. */
struct timed_horizons;
MUST_USE enum status timed_horizons_open(struct timed *t, struct str begin, struct str end,
					 bool reverse, struct timed_horizons **ret);
/* The range has been gone through up to this key, or `key.ptr` NULL: to its end. */
MUST_USE enum status timed_horizons_pass(struct timed_horizons *h, struct str key);
void timed_horizons_close(struct timed_horizons *h);

/* ---- Removing versions (trim.c) ---- */

/* Clears what VERSIONS has of buckets that are gone, and of bounds that are; a slice of it. */
MUST_USE enum status timed_trim_clear(struct timed *t, uint64_t *ret_done, bool *ret_more);
/* Looks at items that were changed, and removes versions beyond the bound; a slice of it. */
MUST_USE enum status timed_trim(struct timed *t, struct timed_tended *tended, uint64_t *ret_done,
				bool *ret_more);
/* The bound was lowered: all items are looked at. */
MUST_USE enum status timed_trim_all(struct timed *t);
/* There is no bound any more: what was to be looked at is forgotten. */
MUST_USE enum status timed_trim_end(struct timed *t);

/* What is under way for a header, or for a body: (P, TRIM, 0, space, group). For checks. */
struct timed_trim_job {
	uint64_t until_us;    /* records up to this moment go */
	uint64_t first, last; /* buckets that they are in, as far as that is known; 0: not yet */
	bool gone;            /* of a body: all of it goes */
	uint64_t at;          /* of a body: the bucket that is gone through */
	struct str place;     /* and the place in it */
};
bool timed_trim_job_parse(struct str value, struct buf *scratch, struct timed_trim_job *ret);

/* ---- The check (verify_versions.c) ---- */

#define TIMED_FINDING_VERSIONS "row_versions" /* a note, a horizon or a mark that cannot be one */

/* Checks what there is for a bound by versions (verify_versions.c); `count` 0: no history. */
MUST_USE enum status timed_verify_versions(struct catalog_verify *v,
					   const struct history_state *state);
/* Of that, pair by pair: what VERSIONS and TRIM have. */
MUST_USE enum status timed_verify_versions_range(struct catalog_verify *v,
						 const struct history_state *state,
						 struct catalog_verify_range *range);
MUST_USE enum status timed_verify_trim(struct catalog_verify *v, const struct history_state *state,
				       struct catalog_verify_range *range);
/* Checks a record of a bucket of the state: `tail` is its key behind the bucket. */
MUST_USE enum status timed_verify_noted(struct catalog_verify *v, const struct history_state *state,
					uint64_t bucket, struct str tail, struct str record);
/*
 * Checks that each change of a body has a note at its item (verify_notes.c): goes through all
 * headers once for every `most` changes, which take 16 bytes each. What one transaction changed is
 * told once each time.
 */
MUST_USE enum status timed_verify_body_notes(struct catalog_verify *v,
					     const struct history_state *state, size_t most);

#endif
