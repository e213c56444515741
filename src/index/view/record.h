/*
 * What views store: groups, rows, sums, the rows of a document. Each is put and parsed here, with
 * its format number.
 *
 *     group  (1, number, signature, seed, phase, covers, purges, fresh until, partitioned,
 *             work map, work level, work place, done, total, refused, maps,
 *             (rows, top of each map)…, (id, view, limit)…)
 *     group  (2, the same up to the maps, (rows, top, lacking documents of each map)…, halves,
 *             unnoted, large, (id, view, limit)…)
 *     row    (1, key text, value text); (2, key bytes, value bytes) with the texts in chunks
 *     sum    (1, rows, partial result…)
 *     rows of a document  (1, chunks), and then (map, component, ordinal, hash, chunks)… in them
 *     rows of a document  (2, chunks, half, maps that lack rows as bits), likewise
 *     what a document lacks in a map  (1, rows, limit)
 *
 * Plain functions; what is parsed borrows the value, or is in the arena. STATUS_NEWER, explained:
 * a newer frond wrote it; STATUS_CORRUPT.
 */
#ifndef FROND_INDEX_VIEW_RECORD_H
#define FROND_INDEX_VIEW_RECORD_H

#include "base/buf.h"
#include "index/view/view.h"

enum {
	VIEW_CHUNK_BYTES = 90000,    /* of what is cut into several values */
	VIEW_PARTIAL_BYTES = 16384,  /* of one partial result; a longer one is an error */
	VIEW_PARTIALS_BYTES = 90000, /* of all partial results of one sum */
	VIEW_VALUE_BYTES = 95000,    /* of a value that is put */
};

/* A group, and how far its builder is. */
struct view_record {
	struct view_group group;
	struct catalog_seq fresh; /* when the build began: older documents have no rows yet */
	/* In VIEW_PHASE_SUMS: the sums that are to be made next. */
	size_t work_map;
	unsigned work_level;
	struct str work_place;
	uint64_t done; /* changes, or rows, in this phase */
	uint64_t total;
};

void view_record_put(struct buf *value, const struct view_record *record);
MUST_USE enum status view_record_parse(struct str value, struct arena *arena,
				       struct view_record *ret, struct err *err);

/* A row's value. */
struct view_row_value {
	struct str key; /* JSON texts, unless they are in chunks */
	struct str value;
	bool chunked;
	uint64_t key_bytes; /* of what the chunks hold: the key's text, and the value's behind it */
	uint64_t value_bytes;
};

void view_row_put(struct buf *value, const struct view_row_value *row);
MUST_USE enum status view_row_parse(struct str value, struct view_row_value *ret, struct err *err);

/* A sum: how many rows, and a partial result for each reduce of the map. */
struct view_sum {
	uint64_t rows;
	struct str partials[VIEW_VIEWS_MOST];
	size_t count;
};

void view_sum_put(struct buf *value, const struct view_sum *sum);
/* Partial results with a NUL are in the arena. */
MUST_USE enum status view_sum_parse(struct str value, struct arena *arena, struct view_sum *ret,
				    struct err *err);

/* Only how many rows. */
MUST_USE enum status view_sum_rows(struct str value, uint64_t *ret, struct err *err);

/* One row of a document. */
struct view_back {
	size_t map;
	struct str component;
	uint64_t ordinal;
	uint64_t hash; /* of the value as it is stored, and of its chunks */
	uint64_t chunks;
};

void view_back_put(struct buf *value, const struct view_back *back);
MUST_USE enum status view_backs_parse(struct str value, struct arena *arena, struct view_back **ret,
				      size_t *ret_count);

/* What the first of a document's keys begins with. */
struct view_back_head {
	uint64_t chunks;
	bool half;        /* only a part of the document's rows has been written */
	uint64_t lacking; /* bit m: map m lacks rows of the document */
};

void view_back_head_put(struct buf *value, const struct view_back_head *head);
/* `*value` becomes what follows the head. */
MUST_USE enum status view_back_head_parse(struct str *value, struct view_back_head *ret,
					  struct err *err);

/* What a map lacks of a document. */
struct view_lack {
	uint64_t rows; /* 0: all */
	struct str limit;
};

void view_lack_put(struct buf *value, const struct view_lack *lack);
MUST_USE enum status view_lack_parse(struct str value, struct view_lack *ret, struct err *err);

#endif
