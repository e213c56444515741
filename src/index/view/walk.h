/*
 * Going through the rows of a range by groups of results, in one pass over the skip list.
 *
 * A walk gives pieces: rows, and sums whose rows are all of one group. It begins at the highest
 * level. Where a group begins or ends below a sum, or the range does, there is a gap: rows that the
 * level below has to tell. Each level reads the gaps of the level above it many at a time, so the
 * reads of one level go out together, and each level is gone through once.
 *
 * How many gaps are read at once grows from wave to wave, and never exceeds what the caller says it
 * wants: nearly every gap holds the end of a group.
 *
 *     sums_walk_begin(&walk, &s, &range, level);
 *     while ((status = sums_walk_next(&walk, wanted, &piece)) == STATUS_OK)
 *         …                            // STATUS_NOT_FOUND: the range is over
 *     sums_walk_end(&walk);
 *
 * All reads are snapshot reads. Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_INDEX_VIEW_WALK_H
#define FROND_INDEX_VIEW_WALK_H

#include "index/view/sums.h"

enum {
	WALK_WAVE = 32,             /* gaps that are read together, at most */
	WALK_FIRST_WAVE = 8,        /* the first time; later up to twice as many as the last time */
	WALK_GAP_BYTES = 16 * 1024, /* of a gap in a wave: one that has more is read on alone */
	WALK_REST_PAIRS = 256,      /* that are then read at a time; and of the highest level */
};

/* Rows with begin <= place < end; `end` empty: to the last one. */
struct walk_range {
	struct str begin;
	struct str end;
	bool descending;
};

/* A row (level 0), or a sum. */
struct sums_piece {
	unsigned level;
	struct str place;
	struct str value;
};

/* A piece, or a gap: places from `piece.place` to before `end`, which the level below tells. */
struct walk_item {
	struct sums_piece piece;
	struct str end;
	bool is_gap;
	bool end_is_sum; /* of a gap: a sum begins at `end`, so the range of the walk goes on */
};

/* Gaps side by side, read as one. */
struct walk_read {
	struct walk_item gap;
	size_t first; /* of the gaps, among the items of the level above */
	size_t count;
	struct kv_future *future;
};

struct walk_level {
	struct walk_item *items; /* that the level below has yet to take */
	size_t count;
	size_t cap;
	size_t at;
	struct walk_item rest; /* what is left of a gap that was too long for one read */
	bool has_rest;
	struct walk_read reads[WALK_WAVE]; /* their futures own the bytes of the items */
	size_t read_count;
	size_t wave;
	struct str group; /* what the places of the newest sum's group begin with */
};

/* All fields are private, but `pairs`. */
struct sums_walk {
	const struct sums *s;
	unsigned group_level;
	unsigned top;
	bool descending;
	size_t wanted;
	size_t prefix_len;
	struct buf lo;
	struct buf hi;
	size_t pairs;              /* that have been read */
	struct walk_level *levels; /* from the rows to the highest */
};

/* The range, what `s` points to and the walk itself stay where they are. */
MUST_USE enum status sums_walk_begin(struct sums_walk *walk, const struct sums *s,
				     const struct walk_range *range, unsigned group_level);
/*
 * Gets the next piece, in the direction of the range. It is valid until the next call. `wanted` is
 * how many more groups the caller will ask for; it limits how many gaps are read at once. With
 * VIEW_LEVEL_ALL all rows are one group, and a piece may be the sum of no row at all. Returns
 * STATUS_NOT_FOUND at the end.
 */
MUST_USE enum status sums_walk_next(struct sums_walk *walk, size_t wanted, struct sums_piece *ret);
void sums_walk_end(struct sums_walk *walk); /* before the transaction is reset */

#endif
