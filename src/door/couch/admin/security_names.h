/*
 * Lists of names in a security object. Plain functions: threads may use them at the same time with
 * arenas of their own.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_SECURITY_NAMES_H
#define FROND_DOOR_COUCH_ADMIN_SECURITY_NAMES_H

#include "base/arena.h"
#include "base/buf.h"

/*
 * Writes the security object `text` with the name listed, or not listed, among the names of its
 * administrators and among those of its members. A database is never made public by that: a list of
 * members whose last name goes, and which has no roles, gets the role _admin. `*ret_changed` is
 * false if the object was like this before. STATUS_LIMIT when the arena or `out` is full.
 */
MUST_USE enum status couch_security_list_name(struct str text, struct str name, bool listed,
					      struct arena *arena, struct buf *out,
					      bool *ret_changed);

#endif
