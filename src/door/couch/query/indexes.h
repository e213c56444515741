/*
 * The indexes of a database, as its design documents define them. Each loop keeps the definitions
 * of the databases that it has answered for. They stay valid until the metadata version changes;
 * every write of a design document that defines an index changes it (hook.c).
 */
#ifndef FROND_DOOR_COUCH_QUERY_INDEXES_H
#define FROND_DOOR_COUCH_QUERY_INDEXES_H

#include "door/couch/query/index_def.h"
#include "kv/kv.h"

enum {
	QUERY_INDEXES_BYTES = 4 * 1024 *
			      1024, /* of the definitions that a loop keeps of a database */
};

/*
 * The indexes of r->db, which is open in `tx`: _all_docs first, the others by design document and
 * name. They are valid until the next call for this request.
 */
MUST_USE enum status query_indexes_load(struct couch_req *r, struct kv_tx *tx,
					struct query_indexes *ret);

#endif
