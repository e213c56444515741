/* Checks the rights of a user again while a long answer is sent. */
#ifndef FROND_DOOR_COUCH_ADMIN_AGAIN_H
#define FROND_DOOR_COUCH_ADMIN_AGAIN_H

#include "door/couch/wire/request.h"

enum {
	COUCH_AGAIN_MS = 1000, /* between two looks */
};

/*
 * True if the user may still read what the request is about: the database of its path, or what
 * belongs to the server. False if not, or if the store cannot say. A process that uses the store
 * alone knows whether any right has changed, and reads nothing as long as none has.
 */
bool couch_may_still_read(struct couch_req *r);

/* To be called after a request that may have changed people, rights or settings. */
void couch_note_rights(struct couch_req *r);

#endif
