/*
 * The skip list over the rows of a map: reading ranges of it, and keeping it.
 *
 * Level 0 is the rows. A row whose place has a hash of level l begins a sum of each level up to l,
 * which covers the rows from there to the next sum of its level. Each level has a first sum, with
 * an empty place, which covers what comes before the others.
 *
 * All reads are snapshot reads, which see the transaction's own writes. Threading: that of the
 * transaction.
 */
#ifndef FROND_INDEX_VIEW_SUMS_H
#define FROND_INDEX_VIEW_SUMS_H

#include "index/view/keys.h"
#include "index/view/record.h"
#include "index/view/reduce.h"

enum {
	SUMS_JOBS = 256, /* that are computed together */
	SUMS_WAVE = 64,  /* reads that go out together */
};

/* Rows of one map, as a transaction sees them. Everything is the caller's. */
struct sums {
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct view_group *group;
	size_t map;
	struct index_work *w;
	struct err *err;
};

static inline struct sums
sums_of(struct kv_tx *tx, const struct catalog_db *db, const struct view_group *group, size_t map,
	struct index_work *w)
{
	return (struct sums){
		.tx = tx, .db = db, .group = group, .map = map, .w = w, .err = kv_tx_err(tx)
	};
}

/* ---- Reading (sums_read.c) ---- */

/* How many rows there are with begin <= place < end. `end` empty: to the last one. */
MUST_USE enum status sums_count(const struct sums *s, struct str begin, struct str end,
				uint64_t *ret);
/* The place of the row that has `index` rows before it; in the arena. STATUS_NOT_FOUND. */
MUST_USE enum status sums_select(const struct sums *s, uint64_t index, struct str *ret);

/* The texts of a row, in the arena where they are in chunks. */
MUST_USE enum status sums_row_texts(const struct sums *s, struct str place, struct str value,
				    struct view_row_value *ret);

/* ---- Keeping (sums.c) ---- */

/* A sum that is being computed. All fields are private. */
struct sums_job {
	struct str place;
	uint64_t rows;
	struct reduce_acc *accs; /* of each reduce of the map */
};

/* Sums of one level that are computed together, and written. */
struct sums_batch {
	const struct sums *s;
	const struct view_map *map;
	const struct reduce_run *run;
	unsigned level;
	struct sums_job *jobs;
	size_t count;
};

MUST_USE enum status sums_batch_begin(struct sums_batch *b, const struct sums *s,
				      const struct view_map *map, const struct reduce_run *run,
				      unsigned level);
MUST_USE enum status sums_batch_job(struct sums_batch *b, struct str place);
/* A row or a sum of the level below, which the newest job covers. */
MUST_USE enum status sums_batch_child(struct sums_batch *b, struct str place, struct str value);
/* Computes and writes all of them, and forgets them. Where functions are asked, it writes none. */
MUST_USE enum status sums_batch_flush(struct sums_batch *b);
void sums_batch_release(struct sums_batch *b);

/* A row that has come, gone, or has another value now: its row is written already. */
struct sums_change {
	struct str place;
	bool came;
	bool went;
};

/*
 * Brings all sums of the map up to date. `changes` are sorted here, and of different places. Where
 * functions are asked, it stops behind that level.
 */
MUST_USE enum status sums_update(const struct sums *s, const struct view_map *map,
				 const struct reduce_run *run, struct sums_change *changes,
				 size_t count);

#endif
