/*
 * Adds and removes names in a security object. The functions have no state of their own; each
 * thread needs its own arena.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_SECURITY_NAMES_H
#define FROND_DOOR_COUCH_ADMIN_SECURITY_NAMES_H

#include "base/arena.h"
#include "base/buf.h"

/*
 * Appends the security object `text` to `out` with `name` added to, or if `listed` is false removed
 * from, the names of its administrators and of its members. Removing never makes a database public:
 * if no member name and no member role is left, the members get the role _admin. `*ret_changed` is
 * false if the object was like this before. STATUS_LIMIT when the arena or `out` is full.
 */
MUST_USE enum status couch_security_list_name(struct str text, struct str name, bool listed,
					      struct arena *arena, struct buf *out,
					      bool *ret_changed);

#endif
