/*
 * Functions of design documents, as requests call them: what they are called with, and what a
 * client is told when one fails. The calls themselves are js/js.h.
 *
 * A call waits for a worker on the request's fiber. So it is made between transactions, and never
 * in one's body, which may run again.
 */
#ifndef FROND_DOOR_COUCH_DOC_FUNCTIONS_H
#define FROND_DOOR_COUCH_DOC_FUNCTIONS_H

#include "door/couch/wire/request.h"
#include "js/js.h"
#include "kv/kv.h"

enum {
	COUCH_FUNCTION_WAIT_MS = 60 * 1000, /* that a request waits for a worker */
	COUCH_FUNCTION_REVS = 20, /* of _revisions in what functions are given, as in CouchDB */
};

/*
 * Reads a design document for calls of its functions: key and text are in the request's arena.
 * STATUS_NOT_FOUND, STATUS_DELETED. r->db is open in `tx`.
 */
MUST_USE enum status couch_function_design(struct couch_req *r, struct kv_tx *tx, struct str id,
					   struct js_design *ret);

/*
 * A design document's version of which the text is known. The key is in the arena.
 * STATUS_LIMIT, STATUS_NOMEM.
 */
MUST_USE enum status couch_function_version(const struct catalog_db *db, struct str id,
					    struct str text, struct arena *arena,
					    struct js_design *ret);

/*
 * A call for the request, whose results go into its arena. It ends when the client has gone.
 * STATUS_UNSUPPORTED, which names the program, if the server has no worker.
 */
MUST_USE enum status couch_function_call(struct couch_req *r, const struct js_design *design,
					 struct js_call *ret);

/* A call for somebody else, whose results go into `arena`. It ends when `gone` is set. */
MUST_USE enum status couch_function_call_of(struct js *js, struct event *gone, struct arena *arena,
					    const struct js_design *design, struct js_call *ret,
					    struct couch_fail *fail);

/* Explains in r->fail how a call has ended, unless with STATUS_OK. Returns the status to answer. */
MUST_USE enum status couch_function_end(struct couch_req *r, enum status status,
					const struct js_call *call);

/* Appends userCtx: {"db":…,"name":…,"roles":[…]}. */
void couch_user_ctx_write(const struct catalog_db *db, const struct auth_user *user,
			  struct buf *out);

#endif
