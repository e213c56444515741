/* What the files about rows share: keys that are written, the record of a cell. */
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

/* ---- Cells (cell.c) ---- */

enum {
	/* In place of a time. */
	TIMED_CELL_NEVER = 0,
};

/* What is at a row's key or at a path: (format, type, write time, expiry[, scalar]). */
struct timed_cell {
	enum timed_type type;
	uint64_t write_us;
	bool by_default;  /* it expires as the database says */
	uint64_t at_ms;   /* else: at that time, or TIMED_CELL_NEVER */
	struct str value; /* the scalar, encoded; empty: it has none */
};

void timed_cell_put(const struct timed_cell *cell, struct buf *value);
/* STATUS_NEWER, explained; STATUS_CORRUPT. */
MUST_USE enum status timed_cell_parse(struct str value, struct timed_cell *ret, struct err *err);

/* The scalar of a cell that has one; its text is in the arena. */
MUST_USE enum status timed_cell_scalar(const struct timed_cell *cell, struct arena *arena,
				       struct doc_scalar *ret);

/* When it expires, by what it says and the database says now; 0: never. */
uint64_t timed_cell_expires_ms(const struct catalog_db *db, const struct timed_cell *cell);

bool timed_has_expired(const struct timed *t, const struct timed_cell *cell);

/* ---- Removing what has expired (expiry.c) ---- */

/* See struct timed_kind. */
struct kv_future *timed_rows_due_ask(struct timed *t, const struct timed_due *due);
MUST_USE enum status timed_rows_due_sweep(struct timed *t, const struct timed_due *due,
					  struct kv_future *asked, struct arena *arena,
					  struct timed_due_swept *ret);

/* ---- Entries of EXPIRY after a change of the default (retime.c) ---- */

/* (P, RETIME) */
MUST_USE enum status timed_retime_key(const struct catalog_db *db, struct buf *key);
/* Writes the entries of some cells, TIMED_SWEEP_KEYS at most, if the default was changed. */
MUST_USE enum status timed_retime(struct timed *t, uint64_t *ret_done, bool *ret_more);
bool timed_retime_is_good(struct str value);

/* ---- For people, and the check (inspect.c, verify.c) ---- */

bool timed_rows_draw_pair(const struct catalog_db *db, uint64_t space, struct str tail,
			  struct str value, struct buf *ret);
/* See struct timed_kind. */
MUST_USE enum status timed_rows_draw_key(const struct catalog_db *db, uint64_t space,
					 struct str tail, struct arena *arena, struct buf *ret);
MUST_USE enum status timed_rows_verify(struct catalog_verify *v);

#endif
