/*
 * What is stored of a session: its latest write that may be sent again, or its latest transaction.
 * It is written in the transaction that does the work, so it says what has really been done,
 * whichever process is asked afterwards, and after a crash, too.
 *
 *     (ROOT, 14, id, user)     → (format, ms, number, kind, pages), and behind it results
 *     (ROOT, 14, id, user, n)  → the nth page of further results
 *
 * `id` is the UUID that the client has made, `user` the name of whoever has logged in: sessions of
 * two people are two sessions. Results are documents, one behind the other; retry.h has what is in
 * them. A session that has not been written for MONGO_SESSION_MINUTES is removed by the chore
 * `sweep_mongo_sessions`.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_MONGO_TXN_SESSION_H
#define FROND_DOOR_MONGO_TXN_SESSION_H

#include "base/buf.h"
#include "kv/kv.h"

enum {
	SESSION_ID_BYTES = 16,
	SESSION_WITHIN_BYTES = 4000, /* of results that stand in the session's own value */
	SESSION_PAGE_BYTES = 90000,
	SESSION_RESULT_BYTES = 4000000, /* of results that one transaction adds */
	SESSION_KNOWN_BYTES = 48000000, /* of results of one number */
};

/* Which sessions are meant; ptr NULL: whatever the id, whoever the person is. */
struct session_pattern {
	struct str id; /* SESSION_ID_BYTES */
	struct str user;
};

static inline bool
session_matches(const struct session_pattern *p, struct str id, struct str user)
{
	return (!p->id.ptr || str_eq(p->id, id)) && (!p->user.ptr || str_eq(p->user, user));
}

/* What the latest number stood for. Stored: never renumber. */
enum session_kind {
	SESSION_WRITES = 1,    /* a write that may be sent again */
	SESSION_COMMITTED = 2, /* a transaction that was committed */
	SESSION_ABORTED = 3,   /* one that never will be */
};

struct session_id {
	struct str id; /* SESSION_ID_BYTES */
	struct str user;
};

struct session_row {
	bool is_there;
	uint64_t ms;    /* when it was written, since 1970 */
	int64_t number; /* txnNumber */
	enum session_kind kind;
	uint64_t pages;
	struct str results; /* those in its own value; the transaction's */
};

/* `ret->is_there` is false for one that has none. STATUS_CORRUPT, STATUS_NEWER: explained. */
MUST_USE enum status session_read(struct kv_tx *tx, const struct session_id *id,
				  struct session_row *ret, struct err *err);

/*
 * Appends the results of a row that was read: those of the pages behind page `after`, or all of
 * them, also those in the row's own value, if `after` is 0.
 */
MUST_USE enum status session_results(struct kv_tx *tx, const struct session_id *id,
				     const struct session_row *row, uint64_t after,
				     struct buf *ret);

/*
 * Writes the row of `number` in the place of `old`, which the transaction has read. Results of the
 * same number stay, and the new ones come behind them.
 */
MUST_USE enum status session_write(struct kv_tx *tx, const struct session_id *id,
				   const struct session_row *old, int64_t number,
				   enum session_kind kind, struct str results);

/* Removes sessions that were written last before `ms`. `*ret_more`: there may be others. */
MUST_USE enum status session_sweep(struct kv_store *store, uint64_t ms, struct buf *place,
				   bool *ret_more, struct err *err);

/* Has `frond verify` know the rows. Again is fine. */
void session_register(void);

#endif
