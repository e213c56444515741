/*
 * Writes that may be sent again. A client numbers the writes of a session, and the statements of a
 * write. What a statement has done is stored in the transaction that does it (session.h), so a
 * client that has got no answer sends the write again: statements that were done are answered from
 * what is stored, and the others are done.
 *
 * What is stored of a statement is a document that the command makes and reads; `retry` only finds
 * it. Statements that have changed nothing, or have failed, are not stored: they are done again.
 *
 *     retry_init(&r, c);              before the first transaction
 *     retry_begin(&r, tx);            in each attempt, first
 *         if (retry_find(&r, i, &result))  …   else { … retry_note(&r, i, result); }
 *     retry_end(&r, tx);              in each attempt, last
 *     retry_keep(&r);                 after the commit
 *     retry_put(&r);                  into the answer
 *
 * Without a number, and in a transaction of several commands, all of them do nothing.
 */
#ifndef FROND_DOOR_MONGO_TXN_RETRY_H
#define FROND_DOOR_MONGO_TXN_RETRY_H

#include "door/mongo/txn/command.h"
#include "door/mongo/txn/session.h"

/* Where the result of a statement begins among those that are stored. */
struct retry_place {
	int32_t id;
	uint32_t at;
};

struct retry {
	struct call *call;
	bool on;
	struct session_id id;
	bool has_ids;
	struct buf ids; /* int32_t each: `stmtIds`; without it they count from `first` */
	int32_t first;  /* stmtId */

	/* What is stored of this number. */
	bool is_known;
	uint64_t known_pages;
	size_t known_within;
	struct buf known;
	struct buf places;   /* struct retry_place each, by id: what `known` has */
	size_t placed_bytes; /* of `known` that have places */

	/* The attempt. */
	struct session_row row;
	struct buf made;
	struct buf retried; /* int32_t each: statements that were answered from what is stored */
	size_t retried_len; /* of the attempts that have committed */
};

/* Checks that the members make sense. */
MUST_USE enum status retry_init(struct retry *r, struct call *c);
/* Also one that is all zero. */
void retry_fini(struct retry *r);

/* TransactionTooOld where the session has a newer number. */
MUST_USE enum status retry_begin(struct retry *r, struct kv_tx *tx);
/* What the statement of that position has done; false: it was not done yet. */
bool retry_find(struct retry *r, size_t index, struct str *ret_result);
/* The statement has done this: a document, or an empty str if there is nothing to say. */
MUST_USE enum status retry_note(struct retry *r, size_t index, struct str result);
MUST_USE enum status retry_end(struct retry *r, struct kv_tx *tx);
void retry_keep(struct retry *r);

/* Appends `retriedStmtIds` where there are any. */
void retry_put(const struct retry *r);

#endif
