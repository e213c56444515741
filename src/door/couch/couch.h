/*
 * CouchDB's HTTP API (3.5) over model/revisioned: the handler of a server's exchanges.
 */
#ifndef FROND_DOOR_COUCH_COUCH_H
#define FROND_DOOR_COUCH_COUCH_H

#include "door/couch/wire/config.h"
#include "http/http.h"

struct access_settings;
struct catalog_db;
struct catalog_verify_lender;
struct chores;
struct couch;
struct kv_tx;
struct rev_edit;

/* Copies `config`. NULL when out of memory. */
struct couch *couch_new(const struct couch_config *config);

/*
 * Makes a fresh AuthSession cookie for the user by the present settings. STATUS_NOT_FOUND if there
 * is no such user any more. It is a replicator_cookie.
 */
MUST_USE enum status couch_make_cookie(void *couch, struct str user, struct arena *arena,
				       struct str *ret);

/*
 * From now on, design documents that anybody in this process writes make their indexes. Before any
 * other thread runs; couch_new() does the same.
 */
void couch_follow_designs(void);

/*
 * For a program that checks a store. The lender lets the check call the reduce functions of design
 * documents (catalog/verify.h); the workers of `js` run them.
 */
struct catalog_verify_lender couch_verify_lender(struct js *js);

/*
 * For a program that writes documents into a store itself, as an administrator of a server would:
 * the validators of the database see what it writes (doc/vet.h says how). One thread's.
 */
struct couch_loader;

/* `js` may be NULL, and outlives the loader. NULL when out of memory. */
struct couch_loader *couch_loader_new(struct js *js);
void couch_loader_free(struct couch_loader *l); /* NULL is fine */

/* Edits come that no validator has seen. */
void couch_loader_begin(struct couch_loader *l);

/*
 * In the transaction that is to write the edits into `db`, which is open in it. STATUS_OK: they may
 * be written, but for those of couch_loader_denial(). STATUS_UNVETTED: nothing may be written;
 * couch_loader_run() is to be called outside of the transaction. The next attempt with the same
 * edits leaves in the arena what this one has put there.
 */
MUST_USE enum status couch_loader_vet(struct couch_loader *l, struct kv_tx *tx,
				      struct catalog_db *db, const struct rev_edit *edits,
				      size_t count, struct arena *arena, struct err *err);

/*
 * Calls the validators, and waits for them. STATUS_UNSUPPORTED, which names the program, if there
 * is no worker; the failures of calls (doc/functions.h).
 */
MUST_USE enum status couch_loader_run(struct couch_loader *l, struct arena *arena, struct err *err);

/* Why a validator refuses the edit, in the arena; NULL: none does. */
const char *couch_loader_denial(const struct couch_loader *l, size_t i, struct arena *arena);

enum {
	COUCH_USER_DOC_BYTES = 64 * 1024 * 1024, /* a document of _users with its attachments */
};

/*
 * For programs that write documents of _users into a store without a server: checks the document by
 * CouchDB's rules for administrators, and replaces a plain password by its hash, as the settings
 * say. `*ret` is the text to write: `text` itself, or a new one in the arena. STATUS_FORBIDDEN and
 * STATUS_INVALID, explained. Hashing a password is slow.
 */
MUST_USE enum status couch_prepare_user_doc(struct str id, struct str text,
					    const struct access_settings *access,
					    struct arena *arena, struct str *ret, struct err *err);

void couch_free(struct couch *couch); /* after the server has been freed; NULL is fine */

/*
 * Keeps tallies in shape, so that answers that count rows stay quick (catalog_tallies_tend()). To
 * be called now and then from one thread, and at once again while *ret_more is true.
 */
MUST_USE enum status couch_tend(struct couch *couch, bool *ret_more, struct err *err);

/*
 * The chore that does so. The registry is then shown by _active_tasks, too: it outlives the door,
 * and this comes before the door is served.
 */
void couch_chores_add(struct couch *couch, struct chores *chores);

/* For struct server_config: handler, loop_new and loop_free, with the door as `arg`. */
void couch_handle(struct http_exchange *x, void *couch);
void *couch_loop_new(void *couch);
void couch_loop_free(void *context);

/*
 * Handles exchanges of a port that has the metrics alone: GET /_node/{name}/_prometheus, for
 * everybody who reaches the port. `arg` is not used.
 */
http_handler couch_handle_metrics;

#endif
