/*
 * Plans: how a query comes by documents, before it looks whether they match.
 *
 * A plan is chosen in a transaction, by what the filter demands. Walking it gives each document
 * once, and a place behind it, from which another transaction goes on. A place names the index that
 * it is a place in, and who goes on there goes on by that index. What a plan gives need not match:
 * the caller runs the filter on it.
 */
#ifndef FROND_DOOR_MONGO_PLAN_PLAN_H
#define FROND_DOOR_MONGO_PLAN_PLAN_H

#include "door/mongo/txn/command.h"
#include "index/plan/key_ranges.h"
#include "index/plan/merge.h"
#include "index/plan/walk.h"
#include "model/plain/plain.h"
#include "mql/match/match.h"
#include "mql/sort.h"
#include "mql/value_set.h"

enum {
	/* Of an `_id` that bounds a range: the keys of longer ones are not in their order. */
	PLAN_BOUND_BYTES = 300,
	PLAN_BRANCHES = 100,             /* of a $or; with more the collection is walked through */
	PLAN_MERGED = 64,                /* ranges that are merged for the order of a sort */
	PLAN_MERGED_BYTES = 1024 * 1024, /* that are read of all of them at once */
	PLAN_COUNT_FEW = 100,            /* entries that are counted by reading them */
	PLAN_WINDOW = 16,       /* documents of entries that are asked for at once, at most */
	PLAN_PASSES = 16,       /* entries that are read before all of one value are jumped over */
	PLAN_IDS_MOST = 100000, /* that are gathered; of more documents the collection is walked */
	PLAN_IDS_BYTES = 16 * 1024 * 1024,
	PLAN_WINDOW_BYTES = 1024 * 1024,
	PLAN_FIRST_MOST = 1000, /* documents likely wanted; if more are, `first` is 0 */
	PLAN_PLACE_BYTES = 2 * KV_LIMIT_KEY_BYTES,
	PLAN_ID_KEY_BYTES = 16, /* of {_id: 1}, beside what an empty document has */
};

enum plan_kind {
	PLAN_POINTS, /* by `_id`, one document after the other */
	PLAN_RANGE,  /* in the order of `_id`; without bounds all of the collection */
	PLAN_INDEX,  /* in the order of an index */
	PLAN_IDS,    /* found by an index, or by branches, then in the order of `_id` */
};

/* What walks have read, for who explains a query. */
struct plan_figures {
	uint64_t keys;  /* entries of indexes, and `_id`s that were looked up */
	uint64_t docs;  /* documents */
	uint64_t found; /* those that match */
};

/* What is looked at of each document, for indexes that have it all. */
struct plan_cover {
	struct str filter;
	struct str *fields; /* names of members, those of the filter not included */
	size_t count;
	/*
	 * No index is walked from end to end only because it has the fields: the documents then
	 * come in the order in which they would come if none had them.
	 */
	bool keeps_order;
	/*
	 * The name of a member of which one document for each value is enough: plan_walk_pass()
	 * goes on to the next value. ptr NULL: all documents are wanted.
	 */
	struct str distinct;
};

/* The same for an index that has it: of which columns documents are made. */
struct plan_columns {
	struct str names[INDEX_COLUMNS]; /* with their NULs; empty: nobody looks there */
	size_t count;                    /* up to the last one that is looked at */
	size_t bytes;                    /* of the names */
};

struct candidate;

/* One branch of a $or. */
struct plan_branch {
	const struct candidate *asked; /* of an index (plan_int.h); NULL: by `ids` */
	struct value_set ids;
};

struct plan {
	enum plan_kind kind;
	bool reverse;
	struct value_set ids;         /* of PLAN_POINTS: each by itself */
	struct value_interval bounds; /* of PLAN_RANGE, and where PLAN_IDS would be too many */
	const struct index_def *def;  /* of PLAN_INDEX and PLAN_IDS; else NULL */
	const struct plan_branch *branches; /* of PLAN_IDS and PLAN_INDEX, instead of `def` */
	size_t branch_count;
	const struct index_range *ranges; /* in the order of keys; they do not overlap */
	size_t range_count;
	bool once;   /* no document has two entries in the ranges */
	bool sorted; /* documents come in the order of the sort that was asked for */
	/*
	 * Of PLAN_INDEX: ranges are merged by what lies behind this number of columns; 0: they are
	 * not merged. With branches it is 1, each branch merges behind the columns that it demands
	 * values of, and `range_count` counts the ranges of all branches.
	 */
	size_t merged;
	const struct plan_columns *covered; /* of PLAN_INDEX: entries stand for documents */
	bool keys;                          /* of PLAN_INDEX: see struct plan_ask */
	size_t distinct; /* one entry is enough of those that are equal in so many columns; or 0 */
	struct plan_figures *figures;  /* counted there; NULL: nowhere */
	const struct candidate *asked; /* of an index that is explained (plan_int.h); NULL: no */
	/* Of PLAN_POINTS of an exploded collection: what is read of documents. NULL: all. */
	const struct plain_part *parts;
	size_t part_count;
	/*
	 * How many of the walk's documents are likely to be wanted; 0: not known. The caller of
	 * plan_choose() sets it. It only decides how much is read at once.
	 */
	size_t first;
};

struct plan_ask {
	const struct mql_match *match;
	const struct bson_value *hint;  /* an index, by its name or its key; NULL: none */
	const struct bson_texts *texts; /* the collation; NULL: by bytes */
	/*
	 * With a hint: documents with the values of the index's fields, the first ones and those
	 * behind the last; NULL: none.
	 */
	const struct bson_value *min;
	const struct bson_value *max;
	bool keys; /* the walk keeps the values of entries: plan_walk_key() */
	int order; /* by `_id`: 1, or -1 for descending; 0: any. With a hint of an index: any */
	/*
	 * An order by other fields, which an index may give; else the caller sorts. NULL: none.
	 * With a place: the one that the plan of that place has given.
	 */
	const struct mql_sort_by *sort;
	uint64_t most; /* so many documents are wanted at most; 0: all */
	/*
	 * Documents are changed while they are walked through. They come in the order of `_id`, so
	 * none comes again because a change has moved its entries.
	 */
	bool changes;
	struct str place;               /* of an earlier walk; or empty */
	struct plan_figures *figures;   /* the plan is explained, and counts there; NULL: no */
	const struct plain_part *parts; /* all that is looked at; NULL: documents as a whole */
	size_t part_count;
	/*
	 * Documents may have these members alone, and others that an index has. NULL: they are
	 * wanted as they are.
	 */
	const struct plan_cover *cover;
};

/*
 * What a find with a projection looks at: sets `fields`, which has room for INDEX_COLUMNS, and
 * `count`. False if no index can have that: not just members of the document itself are included.
 */
bool plan_cover_projection(struct plan_cover *cover, struct str projection, struct str sort);

/* What a query for the distinct values of a member looks at. `key` outlives it. */
void plan_cover_distinct(struct plan_cover *cover, struct str *key, struct str filter);

/* True for the hints of the index by `_id`, and for {$natural: 1}: they keep the order of `_id`. */
bool plan_hint_is_id(const struct bson_value *hint);

/* Fails as MongoDB does when the collection or the index that a cursor reads was dropped (175). */
enum status plan_fail_dropped(struct call *c);
/*
 * In the arena of `q`. A hint that names no index fails as MongoDB does, and so does a place in
 * another collection of the name.
 */
MUST_USE enum status plan_choose(struct call *c, struct plain *p, const struct plan_ask *ask,
				 struct mql *q, struct plan *ret);

/* Counts the use of the plan's index by an operation, unless the whole collection is walked. */
void plan_count_use(const struct plan *plan, struct call *c, const struct plain *p);

/* A document of which an entry was read. */
struct plan_row {
	struct str place; /* in the index; of PLAN_IDS, that of the collection */
	struct str id_key;
	struct str values; /* of the entry, instead of the document; empty: they were too long */
	struct str key;    /* with `keys`: the values of the entry, beside the document; or empty */
	struct plain_got got;
};

/* A walk in one transaction. Private, but for the functions below. */
struct plan_walk {
	const struct plan *plan;
	enum plan_kind kind; /* PLAN_RANGE instead of PLAN_IDS that are too many */
	struct plain *p;
	enum kv_read mode;
	struct plain_scan scan;
	uint64_t at; /* how many of the points, or of the ids, were read */
	struct key_walk entries;
	struct index_scan scan_of_entries;
	struct key_merge merge; /* instead, of a plan that merges */
	bool partial;           /* the document that was given last has only the plan's parts */
	const struct str *ids;
	size_t id_count;
	struct arena *arena; /* of the rows */
	struct plan_row rows[PLAN_WINDOW];
	size_t row_at, row_count;
	size_t window; /* rows that are asked for next */
	struct buf place;
	struct str key;    /* of the document that was read last */
	struct buf passed; /* entries whose keys begin with it are skipped; empty: none are */
	size_t passes;     /* how many were skipped since the last document */
	/* The document that was read last, if it is in one value and KV_READ has read it. */
	struct str held;
};

/*
 * `place`: that of an earlier walk, to go on behind it; or empty. What is gathered lies in the
 * arena of `q` as long as the walk is open.
 */
MUST_USE enum status plan_walk_open(struct plan_walk *w, const struct plan *plan, struct plain *p,
				    enum kv_read mode, struct str place, struct mql *q);
/*
 * The next document, in the arena. Empty: the next entry is none of a document that is to be given,
 * and the place is behind it. STATUS_NOT_FOUND at the end.
 */
MUST_USE enum status plan_walk_next(struct plan_walk *w, struct arena *arena, struct str *ret);
/*
 * Of a plan with `keys`: the values of the entry by which the document was found, as a document
 * whose members are the index's columns in their order. Valid until the next document is read.
 * Empty if no index was used, or the values are too long to stand in an entry.
 */
struct str plan_walk_key(const struct plan_walk *w);
/*
 * Of a plan for distinct values: skips other documents with the value of the one that was read
 * last. It need not skip all of them.
 */
MUST_USE enum status plan_walk_pass(struct plan_walk *w);
/* Behind the document that was read last; valid until the next one is read. */
struct str plan_walk_place(const struct plan_walk *w);
/* Also one that is all zero, or whose opening has failed. */
void plan_walk_close(struct plan_walk *w);

#endif
