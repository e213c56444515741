/*
 * Changes of documents that a filter finds, in a transaction that writes: what update, delete and
 * findAndModify share.
 *
 * A change is compiled in each attempt anew, in the call's arena. The collection is walked without
 * conflicts, but each document that is changed is read with one, so two changes of a document never
 * miss each other.
 *
 * What is read ahead is as it would be if it was read later: a document is found once, and a change
 * of one leaves all others alone.
 */
#ifndef FROND_DOOR_MONGO_CMD_CHANGE_H
#define FROND_DOOR_MONGO_CMD_CHANGE_H

#include <openssl/sha.h>

#include "door/mongo/plan/plan.h"
#include "door/mongo/txn/data.h"
#include "mql/collation.h"
#include "mql/expr/script.h"
#include "mql/stage/stages.h"
#include "mql/update/update.h"

/* What is to be changed, and how; what it names outlives the change. */
struct change_ask {
	struct str filter;
	const struct bson_value *update; /* a document, or a pipeline; NULL: they are deleted */
	const struct bson_value *array_filters; /* an array; NULL: none */
	const struct bson_value *hint;          /* NULL: none */
	struct str let;                         /* variables: a document; or empty */
	const struct bson_value *constants; /* of an update by a pipeline: a document; or NULL */
	struct str collation;               /* a document; empty: that of the collection */
	int order;                          /* by `_id`: 1, -1; 0: any */
	struct str sort;                    /* of one change: by other fields; or empty */
	bool upsert;
	bool bare;  /* the caller does not look at documents: those that are given may have parts */
	bool many;  /* all that match are changed, in the order of `_id` */
	bool again; /* an attempt of the transaction was made before, and has failed */
};

/* A document that was written ahead for a transaction, kept over its attempts. */
struct change_staged {
	struct plain_doc doc;
	uint8_t hash[SHA256_DIGEST_LENGTH];
	bool is_there;
};

/* A document that was read ahead: see `ahead` of struct change. */
struct change_row {
	struct str doc;   /* empty: there is none to be given */
	struct str place; /* behind it */
	struct str piped; /* what the pipeline makes of it; ptr NULL: it was not run */
	int64_t position;
	bool matches;
	bool partial;
	bool held;
};

struct change {
	struct call *call;
	struct data *data;
	struct change_ask ask;
	struct change_staged *staged;
	struct mql mql;
	struct mql_match *match;
	struct mql_collation *collation; /* that it names itself */
	struct mql_update *update;
	struct mql_pipeline *pipeline; /* instead of it */
	const struct mql_scope *scope; /* of `let` and the constants */
	const struct mql_bound *bound;
	const struct mql_bound *match_bound; /* of `let` alone, which the filter knows */
	struct mql_sort_by *sort;            /* NULL: none is asked for */
	struct plan plan;                    /* `sorted`: documents come in the order of the sort */
	struct plan_walk walk;
	bool walks;
	struct arena_mark mark; /* behind what was compiled */
	/*
	 * Where the filter, or the pipeline of a change of many, calls functions in JavaScript,
	 * documents are read ahead, and both are run on all of them together.
	 */
	bool calls;
	struct mql_batch ahead;  /* its arena NULL: they call none */
	struct change_row *rows; /* in the batch's arena */
	/* Of the document that was given last. */
	struct str place;
	struct str piped; /* see struct change_row */
	struct str held;  /* all of it, if KV_READ has read it in one value; else ptr NULL */
	bool partial;     /* it has only the parts that are looked at */
};

/*
 * Compiles, and begins to walk behind `place`. `data` was opened; its collection need not be there.
 * change_end() also after a failure.
 */
MUST_USE enum status change_begin(struct change *ch, struct call *c, struct data *data,
				  const struct change_ask *ask, struct change_staged *staged,
				  struct str place);
void change_end(struct change *ch); /* also one that is all zero */

/*
 * The next document that matches, in the call's arena; what was given before is gone. STATUS_OK
 * with an empty `*ret`: the next one of the walk does not match. STATUS_NOT_FOUND at the end.
 * `*ret_position` is for change_update().
 */
MUST_USE enum status change_next(struct change *ch, struct str *ret, int64_t *ret_position);
struct str change_place(const struct change *ch);
/*
 * Instead of it: the first document that matches in the order that was asked for (none: in that of
 * the walk), a copy in `best`, which is empty if there is none.
 */
MUST_USE enum status change_find_first(struct change *ch, struct buf *best, int64_t *ret_position);

/* Updates a document that was found. `*ret`: as it is now; the same if nothing has changed. */
MUST_USE enum status change_update(struct change *ch, struct str doc, int64_t position,
				   struct str *ret, bool *ret_changed);
MUST_USE enum status change_delete(struct change *ch, struct str doc);
/* Adds a document for a filter that has found none. STATUS_EXISTS: there is one with its `_id`. */
MUST_USE enum status change_upsert(struct change *ch, struct str *ret);

#endif
