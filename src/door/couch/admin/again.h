/* Checks the rights of a user again while a long answer is sent. */
#ifndef FROND_DOOR_COUCH_ADMIN_AGAIN_H
#define FROND_DOOR_COUCH_ADMIN_AGAIN_H

#include "door/couch/wire/request.h"

enum {
	COUCH_AGAIN_MS = 1000, /* how long somebody still reads who may not any more, about */
};

/*
 * True if the user may still read what the request is about: the database of its path, or what
 * belongs to the server. False if not, if another database has its name now, or if the store cannot
 * say. A process that hears of changes (access/follow.h) reads nothing as long as there is
 * none.
 */
bool couch_may_still_read(struct couch_req *r);

/* The same by another rule than a path's: `check` fails if the user, as it is now, may not. */
bool couch_may_still(struct couch_req *r, enum status (*check)(struct couch_req *r));

/*
 * Between two parts of an answer that is read from views of r->db (snapshot.h), which stays as it
 * is: STATUS_FORBIDDEN, explained, if the user may not read it any more. `lists`: it tells of many
 * documents. One load while nobody has changed; nothing in a process that hears of no changes.
 */
MUST_USE enum status couch_check_reader(struct couch_req *r, bool lists);

#endif
