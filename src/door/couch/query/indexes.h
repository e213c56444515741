/* The indexes of a database, as its design documents define them. */
#ifndef FROND_DOOR_COUCH_QUERY_INDEXES_H
#define FROND_DOOR_COUCH_QUERY_INDEXES_H

#include "door/couch/query/index_def.h"
#include "kv/kv.h"

/*
 * Reads the indexes of r->db into the request's arena: _all_docs first, the others by design
 * document and name.
 */
MUST_USE enum status query_indexes_load(struct couch_req *r, struct kv_tx *tx,
					struct query_indexes *ret);

#endif
