/* Rights of somebody who is being answered for long. */
#ifndef FROND_DOOR_COUCH_ADMIN_AGAIN_H
#define FROND_DOOR_COUCH_ADMIN_AGAIN_H

#include "door/couch/wire/request.h"

enum {
	COUCH_AGAIN_MS = 1000, /* between two looks */
};

/*
 * Looks again whether the user may still read what the request is about: the database of its path,
 * or what belongs to the server. False if not, or if that cannot be found out. Where this process
 * alone uses the store, it knows whether any right has changed, and reads nothing while none has.
 */
bool couch_may_still_read(struct couch_req *r);

/* To be called after a request that may have changed people, rights or settings. */
void couch_note_rights(struct couch_req *r);

#endif
