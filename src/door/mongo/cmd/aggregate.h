/*
 * A pipeline over collections, as long as its cursor lives.
 *
 * Its documents come from queries, which run transactions of their own. Between two commands no
 * transaction is open: each query keeps the place behind its last document. The pipeline's memory
 * counts in a part of the budget that lasts as long as it does.
 */
#ifndef FROND_DOOR_MONGO_CMD_AGGREGATE_H
#define FROND_DOOR_MONGO_CMD_AGGREGATE_H

#include "door/mongo/txn/command.h"
#include "mql/stage/stages.h"

enum {
	AGGREGATE_BYTES = 64 * 1024 * 1024, /* of the command and what is compiled of it */
};

struct aggregate;
struct plan_figures;
struct query;

struct aggregate_ask {
	struct str ns; /* of the collection, or the view */
	struct str db;
	bool no_collection;            /* {aggregate: 1}: the pipeline brings its documents */
	struct str pipeline;           /* an array */
	struct str let;                /* a document */
	struct str collation;          /* a document */
	const struct bson_value *hint; /* NULL: none */
	bool disk;
	struct plan_figures *figures; /* it is explained, and counts there; NULL: no */
};

/*
 * Compiles. What `ask` names is copied. mongo_aggregate_free() also after a failure; `*ret` may be
 * NULL.
 */
MUST_USE enum status mongo_aggregate_new(struct call *c, const struct aggregate_ask *ask,
					 struct aggregate **ret);
void mongo_aggregate_free(struct aggregate *a);

/* $out or $merge is at its end. */
bool mongo_aggregate_writes(const struct aggregate *a);
/* Fails if that cannot write its target; otherwise does nothing. */
MUST_USE enum status mongo_aggregate_check_write(struct aggregate *a);

/*
 * The query that its own collection is read by, planned; NULL: it reads none. `*ret_sorted`: it
 * does the first sort.
 */
MUST_USE enum status mongo_aggregate_query(struct aggregate *a, struct query **ret,
					   bool *ret_sorted);
/* True if its first $group is answered by the counter of its collection, which no query reads. */
bool mongo_aggregate_counts(const struct aggregate *a);
/* The stages that no query does: false behind the last one. */
bool mongo_aggregate_stage(const struct aggregate *a, size_t i, struct str *ret_name,
			   struct bson_value *ret_spec);

/*
 * A command goes on with it: mongo_aggregate_rest() at the command's end, also after a failure.
 * Fails for one who may not read all of it any more.
 */
MUST_USE enum status mongo_aggregate_resume(struct aggregate *a, struct call *c);
void mongo_aggregate_rest(struct aggregate *a);
/* What counts its memory. */
struct budget_part *mongo_aggregate_part(struct aggregate *a);

/* The next document, valid until the next call. STATUS_NOT_FOUND at the end. */
MUST_USE enum status mongo_aggregate_next(struct aggregate *a, struct str *ret);
/* The collation; NULL: none. */
const struct bson_texts *mongo_aggregate_texts(const struct aggregate *a);
/* The document that was given last is given once more. */
MUST_USE enum status mongo_aggregate_back(struct aggregate *a, struct str doc);

/* ---- aggregate_server.c ---- */

/*
 * What `$currentOp` and `$listLocalSessions` tell of the server, as documents in the arena. These
 * stages are for commands that name no collection; `bare` says that this one names none.
 */
MUST_USE enum status mongo_aggregate_server(struct call *c, bool bare, struct arena *arena,
					    struct str stage, struct str spec,
					    struct mql_source **ret);
/* What `$indexStats` tells of a collection, likewise; nothing of one that is not there. */
MUST_USE enum status mongo_aggregate_indexes(struct call *c, struct str ns, struct arena *arena,
					     struct mql_source **ret);

/* ---- aggregate_count.c ---- */

/* True for a $group that tells how many documents come, and nothing of what is in them. */
bool mongo_aggregate_only_counts(struct str name, const struct bson_value *spec);
/*
 * What such a $group with the specification `spec` makes of all documents of a collection, by its
 * counter. `*call` is the command that runs when it is asked for. All stay the caller's.
 */
MUST_USE enum status mongo_aggregate_counted(struct call *const *call, struct str ns,
					     struct str spec, struct mql_source **ret);

/* ---- aggregate_stats.c ---- */

/* What `$collStats` tells of a collection, likewise. */
MUST_USE enum status mongo_aggregate_stats(struct call *c, struct str ns, struct arena *arena,
					   struct str spec, int64_t now_ms,
					   struct mql_source **ret);

/* ---- cmd_aggregate.c ---- */

/*
 * Answers with a cursor over a pipeline, whose first batch has `want` documents. `single`: there is
 * no other.
 */
MUST_USE enum status mongo_answer_aggregate(struct call *c, const struct aggregate_ask *ask,
					    uint64_t want, bool single);

/* ---- aggregate_write.c ---- */

/* Fails for a target that the stage cannot write, before anything is read or written. */
MUST_USE enum status mongo_aggregate_write_check(struct call *c, const struct mql_write *w,
						 struct mql *q);
/* $out and $merge. */
MUST_USE enum status mongo_aggregate_write(struct call *c, const struct mql_write *w, struct mql *q,
					   struct mql_source *from);

#endif
