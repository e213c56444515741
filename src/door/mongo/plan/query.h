/*
 * Queries: the documents of a collection that match a filter, for commands that only read.
 *
 * A query runs transactions of its own, and goes on behind the last document where one ends early:
 * on the embedded engine it sees one snapshot, on a cluster one for as long as that keeps it. Its
 * plan and its documents lie in an arena of its own, so its user may use the call's meanwhile.
 */
#ifndef FROND_DOOR_MONGO_PLAN_QUERY_H
#define FROND_DOOR_MONGO_PLAN_QUERY_H

#include "door/mongo/plan/plan.h"
#include "door/mongo/txn/data.h"
#include "mql/collation.h"
#include "mql/expr/script.h"

enum {
	QUERY_BYTES = 128 * 1024 * 1024, /* of the plan and one document, while it is read */
	QUERY_PLACE_BYTES = 16 * 1024,
	QUERY_TRIES = 100, /* of a transaction, without another document between them */
};

struct query_ask {
	struct str filter;              /* BSON_EMPTY: all documents */
	const struct bson_value *hint;  /* NULL: none */
	const struct bson_texts *texts; /* the collation; NULL: none, or that of: */
	struct str collation;           /* a document; or empty */
	bool takes_collation; /* it is that of the collection, as far as the command knows */
	struct str let;       /* variables: a document; or empty */
	const struct bson_value *min; /* of find: documents; NULL: none */
	const struct bson_value *max;
	bool keys; /* query_key() is wanted */
	int order; /* by `_id`: 1, -1; 0: any */
	struct str
		sort;  /* by other fields: a document, which query_is_sorted() tells of; or empty */
	uint64_t most; /* so many documents are wanted; 0: all */
	/* So many are likely to be read now; 0: not known. It tells how much is read at once. */
	size_t first;
	bool sorted;                    /* it was found sorted before: a plan that is not fails */
	bool changes;                   /* as an update of many reads: see plan_ask */
	bool takes_where;               /* the filter may have $where */
	const struct plan_cover *cover; /* see plan_ask; NULL: all is wanted */
	struct plan_figures *figures;   /* it is explained, and counts there; NULL: no */
	struct str place;               /* query_place() of an earlier one; or empty */
	/*
	 * The paths that the user of the documents looks at; what others lead to may be left out of
	 * them. May be set until the first document is asked for. NULL: all.
	 */
	const struct mql_paths *looks;
};

/* A document that was read ahead: see query_ahead. */
struct query_row {
	struct str doc;
	struct str place;
	int64_t position;
	bool matches;
};

/*
 * Where the filter calls functions in JavaScript, documents are read ahead, and the filter is run
 * on all of them together.
 */
struct query_ahead {
	struct mql_batch batch; /* its arena NULL: the filter calls none */
	struct query_row *rows; /* in the batch's arena */
	struct buf place;       /* behind the row that was given last */
};

/* Private, but for the functions below. */
struct query {
	struct call *call;
	struct query_ask ask;
	struct data data;
	struct arena *arena;
	struct mql mql;
	struct mql_match *match;
	struct mql_collation *collation;
	struct mql_sort_by *sort;      /* NULL: none is asked for */
	const struct mql_scope *scope; /* of `let` */
	const struct mql_bound *bound;
	int64_t position;
	struct arena_mark compiled;
	struct arena_mark planned;
	struct kv_tx *tx;
	bool shared;    /* it is that of a transaction of several commands */
	uint64_t reads; /* of that one, before the query */
	struct plan plan;
	struct plan_walk walk;
	bool walks;
	bool counted; /* the use of its index */
	bool found;   /* a document, since the transaction began */
	unsigned tries;
	struct buf place;
	struct query_ahead ahead;
};

/*
 * A member that query_ask points to: `hint`, `min` or `max`. In the call's arena; NULL if it is not
 * there, null, or an empty document.
 */
MUST_USE enum status query_read_value(struct call *c, struct str from, struct str name,
				      const struct bson_value **ret);

/*
 * Sets the collation of the query: `given`, which the command names, or c->collation if that is
 * empty. In the latter case query_open() may find that the collection has another one, and fails so
 * that the command is run again (call_runs_again()).
 */
void query_choose_collation(const struct call *c, struct str given, struct query_ask *ask);

/*
 * True if the order is one of walks by `_id`, {_id: 1} or {$natural: -1}; `*ret` 0: any. Another
 * one, or with the hint of an index, is that of an index, or documents are sorted.
 */
bool query_order(const struct query_ask *ask, struct str sort, int *ret);

/*
 * Compiles; reads nothing yet. What `ask` names outlives the query. query_close() also after a
 * failure.
 */
MUST_USE enum status query_open(struct query *q, struct call *c, struct str ns,
				const struct query_ask *ask);
/*
 * Plans, unless it has: `plan` is what it does, if `walks` is true; else there is no collection.
 * True in `*ret` if documents come in the order of `ask.sort`, and then they do until the
 * end; else in any order.
 */
MUST_USE enum status query_is_sorted(struct query *q, bool *ret);
/* The next document that matches, valid until the next call. STATUS_NOT_FOUND at the end. */
MUST_USE enum status query_next(struct query *q, struct str *ret);
/*
 * Skips other documents whose `ask.cover->distinct` has the value that it has in the document that
 * was given last, as far as the plan can.
 */
MUST_USE enum status query_pass(struct query *q);
/* plan_walk_key() of the document that was given last. */
struct str query_key(const struct query *q);
/* Where the filter has found the element that "a.$" stands for; -1: nowhere. */
int64_t query_position(const struct query *q);
const struct bson_texts *query_texts(const struct query *q);
/* Behind the document that was given last: bytes for query_ask.place. */
struct str query_place(const struct query *q);
void query_close(struct query *q); /* also one that is all zero */

#endif
