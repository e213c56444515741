/*
 * The validators of a database: its design documents that have a validate_doc_update.
 *
 * Each loop keeps the validators of the databases that it writes to. They stay valid until the
 * store's metadata version changes (wire/kept.h); every write of such a design document changes it
 * (query/hook.c). A transaction that writes has read that version, so it conflicts with a change of
 * a validator. In a database without validators a write costs one look into that table.
 *
 * Threading: the loop's. A set is counted, and never changes.
 */
#ifndef FROND_DOOR_COUCH_DOC_VALIDATORS_H
#define FROND_DOOR_COUCH_DOC_VALIDATORS_H

#include "door/couch/wire/kept.h"
#include "door/couch/wire/request.h"
#include "js/js.h"
#include "kv/kv.h"

struct couch_validators {
	struct couch_kept kept;    /* first */
	struct js_design *designs; /* in the order of their ids */
	size_t count;
	uint64_t print; /* a hash of all of them */

	/* Private. */
	struct arena *arena; /* has the designs and their texts */
};

void couch_validators_unref(struct couch_validators *set); /* NULL is fine */

/*
 * Sets r->validators to those of r->db, which is open in `tx`. Where the loop does not know them,
 * the design documents are read, one range in a database that has none. STATUS_LIMIT, explained, if
 * they are larger than COUCH_VALIDATORS_BYTES.
 */
MUST_USE enum status couch_validators_open(struct couch_req *r, struct kv_tx *tx);

enum {
	COUCH_VALIDATORS_BYTES = 32 * 1024 * 1024, /* of the texts of a database's validators */
};

/* Does so for `db` with any table: `*set`, NULL at first, becomes the caller's set. */
MUST_USE enum status couch_validators_find(struct couch_kept_table *table, struct kv_tx *tx,
					   const struct catalog_db *db,
					   struct couch_validators **set, struct err *err);

#endif
