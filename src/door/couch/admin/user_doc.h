/*
 * Documents of _users. Writing them is CouchDB's way to change people.
 *
 * The winning revision of "org.couchdb.user:NAME" becomes the record of NAME in the same
 * transaction that makes it the winner, no matter whether a client, a replication or a purge does
 * that. A plain password is replaced by its hash before that transaction.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_USER_DOC_H
#define FROND_DOOR_COUCH_ADMIN_USER_DOC_H

#include "access/verifier.h"
#include "doc/json_value.h"
#include "door/couch/wire/request.h"
#include "model/revisioned/write.h"

#define COUCH_USER_PREFIX "org.couchdb.user:"

/* True if the request's path names the database of users. */
bool couch_in_users_db(const struct couch_req *r);

/* The user's name in a document's id; ptr NULL: the id is not a user's. */
struct str couch_user_of_id(struct str id);

/* Callbacks for rev_follow(): which documents are followed, and the write of the record. */
bool couch_is_user_doc(const struct catalog_db *db, struct str id);
rev_design_changed couch_user_changed;

/* True for members of a user's document that belong to the password. */
bool couch_is_password_member(struct str name);

/*
 * Replaces a plain password in a document that is about to be written by its hash. `*ret` is the
 * new text; ptr NULL: nothing was replaced. Waits for a turn to hash. Users never see their own
 * hash, so when one writes their document back without it, the stored hash is added.
 */
MUST_USE enum status couch_user_doc_text(struct couch_req *r, struct str id, struct str text,
					 struct str *ret, struct couch_fail *fail);

/*
 * Makes what is stored of a plain password, by as many rounds as the settings say, unless it breaks
 * the operator's rules: those are told in CouchDB's words. `how` has the rest.
 */
MUST_USE enum status couch_user_hash(struct str password, const struct access_settings *access,
				     struct auth_hashing how, struct verifier *ret,
				     struct couch_fail *fail);

/*
 * Called after the write or purge of a document was committed: logs the change if it is a user's
 * document.
 */
void couch_user_doc_audit(struct couch_req *r, struct str id);

/*
 * Appends the document as JSON text, with this verifier in place of its members about a password.
 */
void couch_user_doc_write(const struct verifier *v, const struct json_member *members, size_t count,
			  struct buf *out);

/*
 * From now on a login by name and password, of any door, replaces a weak hash in its user's
 * document, unless the settings forbid that.
 */
void couch_users_upgrade_hashes(void);

/* The user who writes a document of _users, and memory for the check. */
struct couch_user_writer {
	struct arena *arena;
	const struct auth_user *user;
	bool admin; /* an administrator of the server or of the database */
};

/*
 * Checks the write of a document by CouchDB's rules, with CouchDB's words in `fail`. `doc` is the
 * new text, `old` the stored one or "null".
 */
MUST_USE enum status couch_user_doc_check(const struct couch_user_writer *w, struct str id,
					  struct str doc, struct str old, struct couch_fail *fail);

#endif
