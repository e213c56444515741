/*
 * Transactions of several commands: startTransaction in the first one, then commitTransaction or
 * abortTransaction. Each is one transaction of the store, which lies in the memory of this process
 * between its commands and is used by one command at a time, through any connection.
 *
 * Its commit writes the session's row (session.h) with all the rest, so what became of a commit
 * whose answer was lost can be told by any process, and after a crash. One that nobody uses is
 * given up after transaction_seconds of the settings, and on a cluster, which keeps no version for
 * longer, after OPEN_TXN_SHARED_MS at the latest.
 *
 * Reads are those of a snapshot, and make no conflict. A document that is written, and that
 * somebody else has written since the transaction began, makes the write fail with WriteConflict
 * where that is known in this process (hold.h), and otherwise the commit.
 *
 * Threading: any thread.
 */
#ifndef FROND_DOOR_MONGO_TXN_TXN_H
#define FROND_DOOR_MONGO_TXN_TXN_H

#include "door/mongo/txn/command.h"
#include "door/mongo/txn/hold.h"
#include "door/mongo/txn/session.h"
#include "kv/kv.h"
#include "serve/expiring.h"
#include "serve/open_txn.h"

enum {
	TXN_KNOWN_MOST = 10000, /* those included of which only the end is known */
	TXN_USER_BYTES = 257,
};

enum txn_state {
	TXN_OPEN,
	TXN_COMMITTED,
	TXN_ABORTED,
	TXN_UNKNOWN, /* nobody has told yet whether it was committed; the session's row knows */
};

struct txns;

/*
 * The latest transaction of a session. While it is taken all of it is its command's, but for what
 * never changes, and for the number, which changes with the table's lock.
 */
struct txn {
	struct expiring_entry entry; /* first */
	struct txns *all;
	uint8_t session[SESSION_ID_BYTES];
	char user[TXN_USER_BYTES];

	int64_t number;
	enum txn_state state;

	/* While it is open. */
	struct open_txn open;
	struct session_row row; /* of the session before it, without results */
	unsigned events;        /* that it has logged */
	struct holder holder;   /* of the documents that it has changed */
};

/* All of the process. */
struct txns {
	struct expiring table; /* of sessions' latest ones, open or ended */
	struct holds holds;
};

void txns_init(struct txns *all);
void txns_fini(struct txns *all);
/* Open transactions of these sessions are given up. */
void txns_end_sessions(struct txns *all, const struct session_pattern *which);
/* How long one lasts. */
uint64_t txn_life_ms(const struct mongo *m);

/*
 * In front of a command: finds its transaction or begins it, and sets c->txn. A commit or abort of
 * one that is not open here is left to its handler.
 */
MUST_USE enum status txn_enter(struct call *c);
/* Fails for a database of the server's own in a transaction. txn_enter() does it for c->db. */
MUST_USE enum status txn_check_db(struct call *c, struct str db);
/*
 * Behind it. Where the command has failed, or has staged more than there is memory for, the
 * transaction is given up. Returns the status, or that failure.
 */
MUST_USE enum status txn_leave(struct call *c, enum status status);

/* For whoever reads in the call's transaction without a body: fails where its time is over. */
MUST_USE enum status txn_check(struct call *c);
/* What a failure of the store means for a transaction: explains it in MongoDB's words. */
MUST_USE enum status txn_explain(struct call *c, enum status status);

/* Runs a body in the call's transaction. */
MUST_USE enum status txn_run(struct call *c, kv_body *body, void *arg);

/*
 * The failure of a write that would have to be staged: what is staged now is of a version that a
 * transaction which has begun does not see. Never STATUS_OK.
 */
enum status txn_refuse_large(struct call *c);

#endif
