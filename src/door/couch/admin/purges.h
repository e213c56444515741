/* What requests do for the record of purges (model/revisioned/purges.h). */
#ifndef FROND_DOOR_COUCH_ADMIN_PURGES_H
#define FROND_DOOR_COUCH_ADMIN_PURGES_H

#include "door/couch/wire/request.h"

/*
 * Clears the records of parts[0] beyond its limit. Writes nothing if there are none, which a read
 * of two keys tells.
 */
MUST_USE enum status couch_purges_trim(struct couch_req *r);

#endif
