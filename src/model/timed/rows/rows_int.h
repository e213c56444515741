/* What the files about rows share: keys that are written. */
#ifndef FROND_MODEL_TIMED_ROWS_ROWS_INT_H
#define FROND_MODEL_TIMED_ROWS_ROWS_INT_H

#include "model/timed/rows/rows.h"
#include "model/timed/timed_int.h"

/* ---- Keys (keys.c) ---- */

/* (P, ROWS, hash components, range components). STATUS_INVALID, explained, for another key. */
MUST_USE enum status timed_key_row(struct timed *t, const struct timed_key *key, struct buf *ret);

/* (P, ROWS, hash components), what all rows of these components begin with. */
MUST_USE enum status timed_key_hash(struct timed *t, const struct timed_key *hash, struct buf *ret);

/* The keys that all rows of the range lie between. */
MUST_USE enum status timed_key_rows(struct timed *t, const struct timed_rows *rows,
				    struct buf *begin, struct buf *end);

/* Appends the steps. STATUS_KEY_TOO_LARGE, explained. */
MUST_USE enum status timed_key_path(struct timed *t, const struct timed_path *path,
				    struct buf *key);

/* ---- Removing what has expired (expiry.c) ---- */

/* See struct timed_kind. */
MUST_USE enum status timed_rows_due_sweep(struct timed *t, const struct timed_due *due,
					  struct kv_future *asked, struct arena *arena,
					  struct timed_due_swept *ret);

/* ---- For people, and the check (inspect.c, verify.c) ---- */

bool timed_rows_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail,
			  struct str value, struct buf *ret);
/* See struct timed_kind. */
MUST_USE enum status timed_rows_inspect(struct kv_tx *tx, const struct catalog_db *db,
					struct str id, struct arena *arena,
					catalog_draw_prefix *draw, void *arg);
MUST_USE enum status timed_rows_draw_key(const struct catalog_db *db, uint64_t space,
					 struct str tail, struct arena *arena, struct buf *ret);
MUST_USE enum status timed_rows_verify(struct catalog_verify *v);
MUST_USE enum status timed_rows_verify_in_ranges(struct catalog_verify *v);

#endif
