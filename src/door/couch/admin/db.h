/*
 * A database's description.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_DB_H
#define FROND_DOOR_COUCH_ADMIN_DB_H

#include "kv/kv.h"
#include "model/revisioned/revisioned.h"

/* Appends a database's description, as GET /{db} answers it; r->db is open in `tx`. */
MUST_USE enum status couch_db_info_write(struct kv_tx *tx, const struct catalog_db *db,
					 struct buf *out);

#endif
