/*
 * How a query finds its documents. Which indexes are usable, and which of them it takes where
 * counts do not matter, are CouchDB's rules (candidates.c), and so is what a client is told about
 * it. Where that choice would read many rows, the rows of other ways are counted, and the cheapest
 * is taken (ways.c). Plain values in the request's arena.
 */
#ifndef FROND_DOOR_COUCH_QUERY_PLAN_H
#define FROND_DOOR_COUCH_QUERY_PLAN_H

#include "door/couch/query/bookmark.h"
#include "door/couch/query/find_args.h"
#include "door/couch/query/id_range.h"
#include "door/couch/query/index_def.h"
#include "door/couch/query/ranges.h"
#include "index/plan/key_ranges.h"

/* What is read of one index, or of none: ids that the selector names. */
struct plan_read {
	const struct query_index *index; /* NULL: `ids` */
	uint64_t number;                 /* of the index, in index_set_of() */
	struct key_ranges keys;
	struct str *ids; /* in byte order, each once */
	size_t ids_count;
	uint64_t rows; /* as they were estimated */
	bool counted;  /* `rows` is known */
};

/* What there is to say about one index. */
struct plan_candidate {
	const struct query_index *index;
	bool named;    /* by use_index */
	bool partial;  /* and so, in CouchDB, only for a query that names it */
	bool implied;  /* partial, and the selector demands all that its filter does */
	bool in_scope; /* of the query: partitioned or not */
	bool required; /* every match has a value in each column */
	bool order;    /* the sort is the index's */
	bool usable;
	bool considered;    /* usable, and not excluded by use_index */
	const char *reason; /* why it is not usable, or was not chosen */
	uint64_t ranking;   /* 0: chosen */
	size_t prefix;      /* columns that have a range */
	bool covers;        /* the fields that are shown lie in it */
	bool readable;      /* the engine has all of its entries: `read` is made */
	struct plan_read read;
};

enum plan_way {
	PLAN_IDS,   /* all documents of a range of ids */
	PLAN_INDEX, /* the entries of the chosen index, in its order */
	PLAN_SETS,  /* documents by id whose ids are in one, all or some of `reads` */
};

struct plan {
	struct plan_candidate *candidates; /* in the order of the indexes */
	size_t count;
	/*
	 * The order of the answer is that of this index; NULL: none is usable. With PLAN_IDS and
	 * PLAN_SETS documents come by id, and are sorted in memory if it is not _all_docs.
	 */
	const struct query_index *chosen;
	bool any_named;  /* use_index names one that is usable */
	bool incomplete; /* not all documents are in the chosen index, so it cannot be read */
	bool covers;     /* the chosen one has all that the query looks at */
	bool nothing;    /* the selector is an empty list, which CouchDB answers with nothing */
	struct field_ranges ranges;

	enum plan_way way;
	struct plan_read *reads; /* PLAN_INDEX: one; PLAN_SETS */
	size_t reads_count;
	bool intersects; /* PLAN_SETS: ids are in all of `reads` */
	uint64_t rows; /* entries or documents that are read at most, as far as they were counted */
	bool counted;
	uint64_t db_number; /* which the ranges are of */

	struct name_range ids; /* in ascending order: no other id can match */
	bool no_ids;           /* none at all can */
};

/* What the place of a bookmark begins with, but for documents by id, where it is empty. */
enum plan_place {
	PLAN_PLACE_KEY = 'k',    /* the key of an entry */
	PLAN_PLACE_SORTED = '[', /* the values of the columns as a JSON array: a sort in memory */
};

/* How the plan is to be made. */
struct plan_terms {
	bool explain; /* a query without a usable index is no failure */
	bool first;   /* CouchDB's choice, whatever it costs */
	bool counts;  /* with `first`: rather an index that is counted by its ranges (see below) */
	const struct bookmark *after; /* of the page before; NULL: there is none */
};

/*
 * Plans the query, in a transaction that has opened r->db. A query without a usable index is
 * refused as no_usable_index or, where use_index leaves none, as invalid_index. STATUS_INVALID,
 * without an error: the bookmark is of an index that this query cannot use.
 */
MUST_USE enum status plan_make(struct couch_req *r, struct kv_tx *tx, const struct find_args *args,
			       const struct query_indexes *indexes, const struct plan_terms *terms,
			       struct plan *ret);

/* Appends what names an index in a bookmark; nothing for _all_docs. */
void plan_write_name(const struct query_index *index, struct buf *out);

/* True if the query named an index, by use_index, and this one is not it. */
bool plan_ignores_use_index(const struct find_args *args, const struct query_index *chosen);

/* The names of use_index without "_design/" before the first one, as CouchDB's messages have it. */
struct str plan_named_design(const struct find_args *args);

/*
 * True if the entries of each range of the read differ only in their ids. They are then in the
 * order of ids, so a page may begin at an id.
 */
bool plan_read_is_points(const struct plan_read *read);

/*
 * True if there are ranges with matches only, or none at all: then not every document has to be
 * compared with the selector. Only known with `aggregate`.
 */
bool plan_read_is_sure(const struct plan_read *read);

/* True if all matches have to be known before the first can be sent. */
bool plan_needs_all(const struct plan *p, const struct find_args *args);

/* How many ids fit into [mango] sort_bytes, roughly, while they are put together. */
uint64_t plan_most_ids(const struct couch_req *r);

enum {
	PLAN_WINDOW_ROWS = 1000, /* with more entries, ids are gathered window by window */
};

/*
 * Changes a plan that sorts in memory into one that reads the chosen index in the order of the
 * sort. False if the index does not have all documents.
 */
bool plan_follow_index(struct plan *p);

/* True if documents come by id, and have to be sorted in memory. */
bool plan_sorts(const struct plan *p);

#endif
