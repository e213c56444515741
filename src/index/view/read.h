/*
 * Reading a view: rows of a range, and results of reduces by group.
 *
 * All reads are snapshot reads of the caller's transaction. A long answer is made of several
 * transactions: each opens the group again (view_group_open()) and goes on behind the last row or
 * group (`after`). If the group has another number then, the view has been rebuilt meanwhile, and
 * keys go on to be good places all the same.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_INDEX_VIEW_READ_H
#define FROND_INDEX_VIEW_READ_H

#include "index/view/view.h"
#include "index/work.h"

struct reduce_acc;

/* ---- Ranges ---- */

/* What is asked for, in the direction of reading: with `descending`, `start` is the greater key. */
struct view_question {
	enum view_collation collation; /* of the map */
	struct str partition;          /* of a partitioned group: required; otherwise empty */
	struct str start_key;          /* JSON text, with any white space; ptr NULL: no bound */
	struct str start_id;           /* counts only with start_key; ptr NULL: none */
	struct str end_key;
	struct str end_id;
	bool exclusive_end; /* inclusive_end=false */
	bool descending;
};

/* All fields are private, but `empty` and `inverted`. Bytes are in the arena of the work. */
struct view_range {
	struct str begin; /* what follows the prefix of the map's rows */
	struct str end;
	bool descending;
	bool inverted; /* start comes behind end: no row can match, whatever there is */
};

/*
 * For a single key, start_key and end_key are that key. STATUS_INVALID, explained: a key is no
 * JSON, or is longer than VIEW_KEY_BYTES (no row has such a key); the failures of the JSON reader;
 * STATUS_LIMIT when the arena is full; STATUS_UNAVAILABLE without the data of ICU.
 */
MUST_USE enum status view_range_make(const struct view_group *group,
				     const struct view_question *question, struct index_work *w,
				     struct view_range *ret, struct err *err);

/* ---- Rows ---- */

struct view_row {
	struct str id;
	struct str key;   /* JSON text */
	struct str value; /* JSON text */
	struct str place; /* for `after` */
};

struct view_rows_options {
	uint64_t skip;    /* rows of the range that are passed over: O(log N) */
	uint64_t limit;   /* at most; UINT64_MAX: all */
	struct str after; /* goes on behind this row's place; ptr NULL: from the beginning */
	bool ahead;       /* the next stretch is asked for while this one is used */
};

/* All fields are private. Zeroed, it can be ended. */
struct view_rows {
	struct kv_scan scan;
	struct kv_tx *tx;
	const struct catalog_db *db;
	const struct view_group *group;
	size_t map;
	size_t prefix_len;
	uint64_t left;
	bool open;
};

/* db, group and range outlive the cursor. */
MUST_USE enum status view_rows_begin(struct view_rows *rows, struct kv_tx *tx,
				     const struct catalog_db *db, const struct view_group *group,
				     size_t map, const struct view_range *range,
				     const struct view_rows_options *options, struct index_work *w);
/*
 * The next row; valid until the next call, but for what is in the arena of `w` (texts of large
 * rows, ids with a NUL). STATUS_NOT_FOUND at the end.
 */
MUST_USE enum status view_rows_next(struct view_rows *rows, struct index_work *w,
				    struct view_row *ret);
void view_rows_end(struct view_rows *rows); /* before the transaction is reset; again is fine */

/* How many rows of the map come before the range, in its direction: CouchDB's `offset`. */
MUST_USE enum status view_rows_offset(struct kv_tx *tx, const struct catalog_db *db,
				      const struct view_group *group, size_t map,
				      const struct view_range *range, struct index_work *w,
				      uint64_t *ret);

/* How many rows there are in the range. */
MUST_USE enum status view_rows_count(struct kv_tx *tx, const struct catalog_db *db,
				     const struct view_group *group, size_t map,
				     const struct view_range *range, struct index_work *w,
				     uint64_t *ret);

/*
 * `total_rows`: of the map, or, of a partitioned group, of the partition. Computed as
 * group->rows[map], or like a count.
 */
MUST_USE enum status view_rows_total(struct kv_tx *tx, const struct catalog_db *db,
				     const struct view_group *group, size_t map,
				     struct str partition, struct index_work *w, uint64_t *ret);

/* ---- What a view lacks (lacks.c) ---- */

/* A document of which a map has not all rows, because a limit keeps them out. */
struct view_lacking {
	struct str id;
	uint64_t rows;    /* how many it lacks; 0: it has none of the document's */
	struct str limit; /* that the first of them has passed; the name of one in view.h */
};

/*
 * The first `most` documents that a map lacks rows of now, by id; of a partitioned group those of
 * the partition. `ret` has room for `most`; texts are in the arena. Reads nothing if it lacks none.
 */
MUST_USE enum status view_lacks_list(struct kv_tx *tx, const struct catalog_db *db,
				     const struct view_group *group, size_t map,
				     struct str partition, size_t most, struct arena *arena,
				     struct view_lacking *ret, size_t *ret_count, bool *ret_more);

/* ---- Groups of reduces (groups.c) ---- */

enum {
	VIEW_LEVEL_ALL = 0,     /* no grouping: one result, whose key is null */
	VIEW_LEVEL_EXACT = 1000 /* group=true; anything between is group_level */
};

struct view_result {
	struct str key;          /* JSON text: "null" with VIEW_LEVEL_ALL */
	struct str value;        /* JSON text; with a failure "null" */
	struct view_error error; /* `name` not empty: the reduce failed for this group */
	struct str place;        /* for `after` */
};

struct view_groups_options {
	unsigned level;
	uint64_t skip;    /* groups that are passed over: each is stepped to */
	uint64_t limit;   /* UINT64_MAX: all */
	struct str after; /* goes on behind this group's place; ptr NULL: from the beginning */
};

/* Whose reduce is read: struct view_design's. */
struct view_reducing {
	const struct view_design *design;
	size_t map;
	size_t reduce;                          /* in the map's reduces */
	const struct view_functions *functions; /* of VIEW_REDUCE_FUNCTION; else NULL */
	void *arg;
};

/* Zeroed, it can be released. */
struct view_results {
	struct view_result *results;
	size_t count;
	bool more;
	struct reduce_acc *accs; /* private: what the values are going to be made of */
};

/*
 * Reads the next groups of the range, in its direction: at most `most`, fewer where a page would be
 * long. Their values come by view_groups_reduce(). No results without `more`: the range is over.
 * For VIEW_LEVEL_ALL there is one result, or none in an empty range. Everything is in the arena of
 * `w`, which outlives the results. The next page begins with the last result's place, and skip and
 * limit as they are left.
 */
MUST_USE enum status view_groups_page(struct kv_tx *tx, const struct catalog_db *db,
				      const struct view_group *group,
				      const struct view_reducing *reducing,
				      const struct view_range *range,
				      const struct view_groups_options *options, size_t most,
				      struct index_work *w, struct view_results *ret);

/*
 * Makes the values of a page, and calls functions for them. It reads nothing: the page's
 * transaction may have ended, so that none need be open for as long as a function takes.
 *
 * STATUS_FUNCTION: the design document's function failed, and `*ret_error` says why.
 */
MUST_USE enum status view_groups_reduce(const struct view_reducing *reducing, struct index_work *w,
					struct view_results *results, struct view_error *ret_error,
					struct err *err);

/* Frees what the values are made of. The results stay. Again is fine. */
void view_results_release(struct view_results *results);

#endif
