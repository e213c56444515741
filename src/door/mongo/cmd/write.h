/*
 * Commands that write: statements, one after the other, in as few transactions as hold them.
 *
 * What an attempt of a transaction has done is in `now`, and counts when it has committed: then it
 * becomes `done`. A statement that many documents fulfil and that is too much for one transaction
 * is done in several, each of which keeps the place behind its last document, in the order of the
 * walk. So no document is changed twice, whatever happens between them.
 */
#ifndef FROND_DOOR_MONGO_CMD_WRITE_H
#define FROND_DOOR_MONGO_CMD_WRITE_H

#include "door/mongo/plan/plan.h"
#include "door/mongo/txn/data.h"
#include "door/mongo/txn/retry.h"

enum {
	/* The members that update and delete share; insert has no `let`. */
	WRITE_STATEMENTS = 0,
	WRITE_ORDERED,
	WRITE_BYPASS,
	WRITE_LET,
	WRITE_ERROR_BYTES = 16 * 1024 * 1024, /* of what is told of the statements that failed */
	WRITE_INFO_BYTES = 1024 * 1024,       /* behind which there is no more errInfo */
	WRITE_PLACE_BYTES = 16 * 1024,
	/* Of one transaction that changes documents; what is more is done by further ones. */
	WRITE_TX_BYTES = 6 * 1000 * 1000, /* of KV_LIMIT_TX_BYTES */
	WRITE_TX_DOCS = 20 * 1000,
	WRITE_TX_MS = 20 * 1000,
	WRITE_TX_CLUSTER_MS = 2000, /* where the store keeps no version for long */
	/* Attempts after which these are quartered, again and again: others write the same. */
	WRITE_TRIES = 2,
	WRITE_QUARTERS = 6, /* at most */
};

#define WRITE_ARGS(statements)                                                                     \
	{                                                                                          \
		[WRITE_STATEMENTS] = { statements, ARG_DOCUMENTS | ARG_REQUIRED },                 \
		[WRITE_ORDERED] = { "ordered", ARG_BOOL },                                         \
		[WRITE_BYPASS] = { "bypassDocumentValidation", ARG_BOOL },                         \
		[WRITE_LET] = { "let", ARG_OBJECT }, { NULL, 0 },                                  \
	}

/* How far a command has come. */
struct progress {
	struct data_list list; /* the statements that are left */
	size_t index;
	size_t errors; /* how many, and how long their documents are */
	size_t errors_len;
	size_t upserted_len;
	uint64_t matched;
	uint64_t modified;
	uint64_t matched_before; /* the same, when the statement began that runs now */
	uint64_t modified_before;
	bool ends;
	bool resumes; /* the first statement that is left was begun: go on at the place */
	bool found;   /* it has found a document */
	/* Of bulkWrite, by kinds of statements: `matched` and `modified` are of the present one. */
	struct {
		uint64_t inserted, matched, modified, upserted, deleted;
	} totals;
};

struct writing {
	struct call *call;
	struct data data;
	bool ordered;
	bool items;          /* bulkWrite: `errors` has a document for each statement */
	bool item_updates;   /* the present one is an update */
	struct buf errors;   /* documents of `writeErrors`, one behind the other */
	struct buf upserted; /* likewise */
	struct progress done;
	struct progress now;     /* in the present attempt */
	struct buf place;        /* of `done` */
	struct buf place_now;    /* of `now` */
	struct plain_doc staged; /* of insert: a large document that was written ahead */
	bool is_staged;
	struct retry retry;
	/* Of the present attempt. */
	struct kv_tx *tx;
	unsigned tries;
	uint64_t docs; /* that were changed */
	uint64_t began_ns;
};

/*
 * Reads what all writing commands have. writing_end() also after a failure. writing_init() leaves
 * the collection and who may bypass its validator to the caller.
 */
MUST_USE enum status writing_init(struct writing *w, struct call *c);
MUST_USE enum status writing_begin(struct writing *w, struct call *c, bool creates);
void writing_end(struct writing *w);

/* Each attempt of the transaction begins with it. */
MUST_USE enum status writing_attempt(struct writing *w, struct kv_tx *tx);
/* True if the transaction should end here. */
bool writing_is_full(const struct writing *w);

/*
 * Runs transactions of `page` until no statement is left. `before`, unless NULL, is called before
 * each of them.
 */
MUST_USE enum status writing_run(struct writing *w, kv_body *page,
				 enum status (*before)(struct writing *w));
/* The attempt has committed; writing_run() does this by itself. */
void writing_keep(struct writing *w);

/*
 * Before a statement runs, and again before the rest of one that goes on in another transaction:
 * remembers what was counted when the statement began.
 */
void writing_count_from(struct writing *w);
/*
 * After a statement that failed: counts what was counted when it began. As in MongoDB, nothing of a
 * statement that fails is counted, though its earlier transactions may have changed documents.
 */
void writing_uncount(struct writing *w);

/*
 * After a statement that failed for itself: notes it, and gives STATUS_OK. What the store has
 * failed is a failure of the command.
 */
MUST_USE enum status writing_settle(struct writing *w, enum status status);
/* Notes that there is a document with this `_id` already. */
MUST_USE enum status writing_note_duplicate(struct writing *w, const struct bson_value *id);
/* Notes the `_id` of a document that an update has added. */
void writing_note_upserted(struct writing *w, const struct bson_value *id);

/* ---- Inserts (cmd_insert.c) ---- */

/*
 * Adds a document that was given. `*bytes` grows by its length. `is_new`: plain_find_new() has told
 * so of its `_id`.
 */
MUST_USE enum status writing_insert(struct writing *w, struct str given, bool is_new,
				    size_t *bytes);
/* True if it has to be written ahead, and has a transaction of its own then. */
bool writing_insert_is_large(struct str given);
/*
 * Writes a large document ahead, before its transaction. One that cannot be written is noted as the
 * statement's failure, and its statement is passed over: what is left is `behind`.
 */
MUST_USE enum status writing_insert_stage(struct writing *w, struct str given,
					  const struct data_list *behind);

/* Writes the answer, unless the command has failed, and ends. Gives `status`. */
MUST_USE enum status writing_answer(struct writing *w, enum status status);

#endif
