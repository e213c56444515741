/*
 * Documents of _users, which are CouchDB's way to write people.
 *
 * The winning revision of "org.couchdb.user:NAME" becomes the record of NAME in the transaction
 * that makes it the winner, whoever writes it: a client, a replication, a purge. A plain password
 * is replaced by its hash before that transaction.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_USER_DOC_H
#define FROND_DOOR_COUCH_ADMIN_USER_DOC_H

#include "access/verifier.h"
#include "doc/json_value.h"
#include "door/couch/wire/request.h"
#include "model/revisioned/write.h"

#define COUCH_USER_PREFIX "org.couchdb.user:"

/* True if what the request names is the database of users. */
bool couch_in_users_db(const struct couch_req *r);

/* The name that a document's id is of; ptr NULL: it is no user's. */
struct str couch_user_of_id(struct str id);

/* For rev_follow(): which documents are people, and what becomes of them. */
bool couch_is_user_doc(const struct catalog_db *db, struct str id);
rev_design_changed couch_user_changed;

/* True for members that tell something of a password. */
bool couch_is_password_member(struct str name);

/*
 * Replaces the plain password of a document that is to be written, if it has one, by its hash:
 * `*ret` is the new text, or ptr NULL if nothing has to be replaced. The password waits for its
 * turn to be hashed. Where somebody who is no administrator writes their own document back without
 * the hash, which they never see, the hash stays as it is.
 */
MUST_USE enum status couch_user_doc_text(struct couch_req *r, struct str id, struct str text,
					 struct str *ret, struct couch_fail *fail);

/* The document is written, or purged, and committed: if it is somebody's, the log tells it. */
void couch_user_doc_audit(struct couch_req *r, struct str id);

/*
 * The document of these members with this verifier instead of what it says of its password, as JSON
 * text.
 */
void couch_user_doc_write(const struct verifier *v, const struct json_member *members, size_t count,
			  struct buf *out);

/* Who writes a document of _users, and the memory for looking at it. */
struct couch_user_writer {
	struct arena *arena;
	const struct auth_user *user;
	bool admin; /* of the server or of the database */
};

/*
 * CouchDB's rules for writing such a document, in its words: `doc` is as it is to be, `old` as it
 * was or "null".
 */
MUST_USE enum status couch_user_doc_check(const struct couch_user_writer *w, struct str id,
					  struct str doc, struct str old, struct couch_fail *fail);

#endif
