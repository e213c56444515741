/* Snapshots of a database that last as long as an answer. They belong to the request's fiber. */
#ifndef FROND_DOOR_COUCH_ADMIN_SNAPSHOT_H
#define FROND_DOOR_COUCH_ADMIN_SNAPSHOT_H

#include "door/couch/admin/tx.h"
#include "door/couch/wire/request.h"
#include "kv/kv.h"

/*
 * A consistent view of r->db for an answer that takes long. The store keeps old versions for a
 * while only; then couch_snapshot_renew() goes on with a later version.
 */
struct couch_snapshot {
	struct couch_req *r;
	struct kv_tx *tx;
	unsigned failures; /* in a row, without progress */
	bool lists;        /* it has turns to read (base/budget.h) */
	bool resting;      /* the view has been let go of: couch_snapshot_rest() */
	size_t read_bytes; /* of the turn; it grows if a row does not fit */
	bool expects;      /* COUCH_EXPECTED_BYTES are counted for it */
};

enum {
	/* What a listing takes to read its pages: with little memory left, and with much. */
	COUCH_READ_LEAST_BYTES = 128 * 1024,
	COUCH_READ_MOST_BYTES = 2 * 1024 * 1024,
	/*
	 * Counted for a listing from its turn to last until its client is waited for, or it ends:
	 * what its output is going to take. Otherwise many listings that begin at once would all be
	 * let in before any of them holds anything.
	 */
	COUCH_EXPECTED_BYTES = 48 * 1024,
};

MUST_USE enum status couch_snapshot_begin(struct couch_snapshot *s, struct couch_req *r);
/*
 * The same for a list that is read page by page. It waits until the request may last
 * (http_ask_to_last()) and until it may read; how much a scan reads at once follows from the memory
 * that it got. STATUS_LIMIT if there was no room in time; `refused` of the request's part of the
 * memory is set then.
 */
MUST_USE enum status couch_snapshot_begin_list(struct couch_snapshot *s, struct couch_req *r);

/*
 * Lets go of the view and of all memory that belongs to it, because the client does not read. Every
 * cursor has been ended before. Does nothing if there is no view.
 */
void couch_snapshot_rest(struct couch_snapshot *s);

/*
 * In front of each part of a long answer: checks that the user may still read
 * (couch_check_reader()). Begins a fresh view if the view has been let go of, as
 * couch_snapshot_renew() does. The request's arena is as before afterwards.
 */
MUST_USE enum status couch_snapshot_resume(struct couch_snapshot *s);

/*
 * Waits for a turn to last (http_ask_to_last()), for an answer that turned out to be long. The view
 * is let go of if that may take its time, and begun anew. Fails as http_ask_to_last() does.
 */
MUST_USE enum status couch_snapshot_last(struct couch_snapshot *s);

/* True if another request waits for memory, so that this one had better rest for a moment. */
bool couch_snapshot_is_wanted(const struct couch_snapshot *s);

/*
 * Begins a fresh view after a failure. STATUS_OK: go on behind the last row that was sent.
 * Otherwise the failure is final, and its status is returned.
 */
MUST_USE enum status couch_snapshot_renew(struct couch_snapshot *s, enum status status);

/*
 * Runs `body` in the view until it succeeds, and renews the view after a failure that may pass.
 * Each attempt begins with the arena as it was when this was called. A body that appends to a
 * buffer clears the buffer first. A body must not send anything.
 */
MUST_USE enum status couch_snapshot_run(struct couch_snapshot *s, couch_tx_body *body, void *arg);

/* Ends the view. Does nothing if it was not begun, or has been ended. */
void couch_snapshot_end(struct couch_snapshot *s);

#endif
