/*
 * Vetting of edits before they are written: the database's validators decide whether an edit is
 * allowed, and the views of a design document must compile.
 *
 * A worker is never called inside a transaction's body, which may run again. So the first attempt
 * reads what the validators need and ends with STATUS_UNVETTED without writing. Then the validators
 * run, and another attempt follows. It compares: the validators, the security object, each edit and
 * its parent revision must be what the validators have seen, or everything begins again. The
 * attempt reads all of these in the transaction that writes, so a change of any of them is a
 * conflict.
 *
 * Design documents and _local documents are shown to no validator, as in CouchDB. A tombstone of a
 * design document is not compiled.
 */
#ifndef FROND_DOOR_COUCH_DOC_VET_H
#define FROND_DOOR_COUCH_DOC_VET_H

#include "door/couch/doc/validators.h"
#include "door/couch/wire/request.h"
#include "model/revisioned/write.h"

enum {
	COUCH_VET_ROUNDS =
		10, /* until an edit is refused since what it depends on always changes */
};

/* Who writes the edits, and with what they are vetted. All of it is borrowed. */
struct couch_vetter {
	struct js *js; /* NULL: there are no workers */
	const struct catalog_db *db;
	const struct couch_validators *validators; /* of `db`, as the transaction has them */
	const struct auth_user *user;
	bool users;    /* the server's own rules for documents of _users hold */
	bool owners;   /* likewise for documents of _replicator */
	bool compiles; /* the views of design documents must compile */
	struct arena *arena;
	struct budget_part *memory; /* NULL: of no budget */
	struct event *gone;         /* set when nobody waits any more; may be NULL */
	struct couch_fail *fail;
};

/*
 * Compares the edits with what validators have seen. STATUS_OK: they may be written, but for those
 * that couch_vet_denial() tells. STATUS_UNVETTED: `vettings` is to be run outside of the
 * transaction, and to be given to the next attempt, which must leave the arena as it is then.
 * `vettings` is zero at first.
 */
MUST_USE enum status couch_vetting_compare(const struct couch_vetter *by, struct kv_tx *tx,
					   const struct rev_edit *edits, size_t count,
					   struct couch_vettings *vettings);

/*
 * Has the validators run, for a vetter without `users` and `compiles`. STATUS_OK whatever they say;
 * other failures are those of calls (functions.h), and STATUS_TX_CONFLICT after COUCH_VET_ROUNDS.
 */
MUST_USE enum status couch_vetting_run(const struct couch_vetter *by,
				       struct couch_vettings *vettings);

/* couch_vetting_compare() for a request's user, by the rules and validators of r->db. */
MUST_USE enum status couch_vet_edits(struct couch_req *r, struct kv_tx *tx,
				     const struct rev_edit *edits, size_t count,
				     struct couch_vettings *vettings);

/* Why validators who have seen the edit refuse it; NULL: they do not. In r->arena. */
struct couch_fail *couch_vet_denial(const struct couch_vettings *vettings, size_t i);

/* Does the same as couch_vetting_run() for a request, with the rules, and compiles views. */
MUST_USE enum status couch_vet_run(struct couch_req *r, struct couch_vettings *vettings);

/*
 * The same as couch_vet_edits() for a request that writes one document: couch_db_write() does what
 * is to be done between attempts. Fails with what a validator has said.
 */
MUST_USE enum status couch_vet_edit(struct couch_req *r, struct kv_tx *tx,
				    const struct rev_edit *edit);

#endif
