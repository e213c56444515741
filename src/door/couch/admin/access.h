/*
 * Databases that are opened for a request, and who may use them.
 *
 * All of these work on r->db and r->user, on the request's fiber.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_ACCESS_H
#define FROND_DOOR_COUCH_ADMIN_ACCESS_H

#include "door/couch/wire/request.h"
#include "kv/kv.h"

MUST_USE enum status couch_require_admin(struct couch_req *r); /* "You are not a server admin." */

/*
 * True if the request's path names `_replicator`, whose documents are replications, or a database
 * whose name ends in "/_replicator", where CouchDB has replications, too. Their documents hold
 * credentials.
 */
bool couch_in_replicator_db(const struct couch_req *r);

/*
 * True for a user of a token or a proxy. A replication runs for the person of that name, after the
 * request, and the name that a token or a proxy says may be another's here, or nobody's.
 */
bool couch_starts_no_replication(const struct auth_user *user);
#define COUCH_NO_REPLICATION                                                                       \
	"A token starts no replications, nor does a proxy: log in by name and password."

/* The name of a database's security object in its configuration. */
#define COUCH_SECURITY "security"

enum couch_access {
	COUCH_ACCESS_MEMBER,
	COUCH_ACCESS_ADMIN, /* of the database */
};

/* Opens parts[0] as r->db in `tx` and checks that the user may use it. */
MUST_USE enum status couch_db_open(struct couch_req *r, struct kv_tx *tx, enum couch_access access);

/*
 * The same for a member who only reads documents. Opening a database for the first time costs one
 * round trip less, and r->db may then be bare (catalog_open_bare()).
 */
MUST_USE enum status couch_db_open_bare(struct couch_req *r, struct kv_tx *tx);

/*
 * Asks for the security object of the database in the path, if that is known, in the transaction
 * that the request has begun with. The next of the functions above waits for it. Called before that
 * transaction reads the user's record (struct auth_client), so that both come in one round trip.
 */
void couch_security_ahead(void *req);

/*
 * For a request that writes: keeps what couch_security_ahead() has asked for in r->judged, as the
 * transaction that has asked is about to end.
 */
void couch_security_keep(struct couch_req *r);

/*
 * Checks the user by r->judged alone, which is known. What it says may be out of date by now, so
 * the transaction that writes compares it.
 */
MUST_USE enum status couch_judge(struct couch_req *r);

/*
 * couch_db_open() for a member who is no administrator of the server and is going to write. `*ret`
 * has the security object; it is for r->judged once the transaction has ended well.
 */
MUST_USE enum status couch_db_open_judging(struct couch_req *r, struct kv_tx *tx,
					   struct couch_judged *ret);

/*
 * couch_db_open() for a member who writes. Where r->judged is known, this waits for no security
 * object, but asks for it in `*ret`, so that it comes with what the write itself reads. Before the
 * transaction is committed couch_security_confirm() waits for it. `*ret` is NULL where the user has
 * been checked already.
 */
MUST_USE enum status couch_db_open_to_write(struct couch_req *r, struct kv_tx *tx,
					    struct kv_future **ret);
/*
 * `status` is how the body of the transaction has ended. Returns it if the user may still use the
 * database, else the refusal.
 */
MUST_USE enum status couch_security_confirm(struct couch_req *r, struct kv_future *asked,
					    enum status status);

/*
 * True if the user may do what is kept for the database's administrators, such as writing design
 * documents. r->db must be open in `tx`.
 */
MUST_USE enum status couch_db_is_admin(struct couch_req *r, struct kv_tx *tx, bool *ret);

/*
 * How users are refused who are no administrators of the database: as in CouchDB, 401 asks somebody
 * who is not logged in to do so, and 403 tells all others that this would not help.
 */
#define COUCH_NOT_DB_ADMIN "You are not a db or server admin."
enum couch_error couch_not_db_admin_error(const struct couch_req *r);

/*
 * Refuses the write of a design document unless the user may write design documents. r->db must be
 * open in `tx`.
 */
MUST_USE enum status couch_design_check(struct couch_req *r, struct kv_tx *tx, struct str id);

/* Reads the text of a database's security object into the arena; of one without, the default. */
MUST_USE enum status couch_security_of(struct kv_tx *tx, const struct catalog_db *db,
				       struct arena *arena, struct str *ret);
/* Writes it, and tells all processes that rights have changed. */
MUST_USE enum status couch_security_set(struct kv_tx *tx, const struct catalog_db *db,
					struct str text, struct err *err);
/* couch_security_of() for r->db. */
MUST_USE enum status couch_security_read(struct couch_req *r, struct kv_tx *tx, struct str *ret);

#endif
