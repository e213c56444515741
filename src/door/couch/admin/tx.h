/*
 * Transactions of a request: the one place where a handler's work meets the store.
 *
 * A handler hands over a body. Each attempt at it begins with the arena as it was when the call was
 * made, so that what a failed attempt has allocated is gone, and with r->db opened in the attempt's
 * own transaction and the user's rights checked there. A body may run several times; therefore it
 * only computes, into the arena and into its `arg`, and sends nothing. What the last attempt left
 * in the arena stays for the answer.
 *
 * All of these run on the request's fiber, which parks where the store makes it wait.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_TX_H
#define FROND_DOOR_COUCH_ADMIN_TX_H

#include "door/couch/admin/access.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

typedef enum status couch_tx_body(struct couch_req *r, struct kv_tx *tx, void *arg);

/*
 * Reads from parts[0] as r->db, which the user must be allowed to use as `access` says. `body` may
 * be NULL: then this only opens the database and checks the rights.
 */
MUST_USE enum status couch_db_read(struct couch_req *r, enum couch_access access,
				   couch_tx_body *body, void *arg);

/*
 * The same with a body that writes, until one attempt has been committed. After an attempt that
 * ends with STATUS_UNVETTED, r->vet() is called outside of any transaction before the next one.
 */
MUST_USE enum status couch_db_write(struct couch_req *r, enum couch_access access,
				    couch_tx_body *body, void *arg);

/* The same for what belongs to no database or to many: no r->db is opened, no right checked. */
MUST_USE enum status couch_store_read(struct couch_req *r, couch_tx_body *body, void *arg);
MUST_USE enum status couch_store_write(struct couch_req *r, couch_tx_body *body, void *arg);

/*
 * couch_db_write() in two halves, for a handler that prepares something else while a commit is
 * under way. The caller fills in the first members, and keeps the whole until couch_tx_end(), which
 * is due once after each couch_tx_begin() that succeeded.
 */
struct couch_tx {
	struct couch_req *r;
	enum couch_access access;
	couch_tx_body *body;
	void *arg;
	/*
	 * What attempts allocate from instead of the request's arena. Attempts of several
	 * transactions of one request may take turns, so each of those has an arena of its own.
	 */
	struct arena *arena;
	bool reads_first; /* the body reads nothing once it has written (kv/reads_first.h) */

	struct arena_mark mark; /* where each attempt begins in `arena` */
	bool writes;
	struct kv_running *running;
};

MUST_USE enum status couch_tx_begin(struct couch_tx *t);
MUST_USE enum status couch_tx_end(struct couch_tx *t, struct err *err);
/* Both halves at once. */
MUST_USE enum status couch_tx_run(struct couch_tx *t);

/*
 * For a request that is about to send a large body: refuses a user who may not use the database
 * before any of the body is read. The rights of an administrator are checked with the work itself,
 * which saves a round trip. For others the security object is kept in r->judged: the transactions
 * that write read it again side by side with the rest, and compare.
 */
MUST_USE enum status couch_db_precheck(struct couch_req *r);

/* Opens r->db and checks the user, unless that has been done already. */
MUST_USE enum status couch_db_ensure(struct couch_req *r);

/* 415 unless the Content-Type is application/json. A database that is missing is reported first. */
MUST_USE enum status couch_db_require_json(struct couch_req *r);

#endif
