/*
 * Makes a database for each user, as CouchDB's couch_peruser does. A chore follows the changes of
 * _users, so a user gets a database no matter whether a client, a replication or another server of
 * the store has written the document.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_PERUSER_H
#define FROND_DOOR_COUCH_ADMIN_PERUSER_H

#include "door/couch/wire/state.h"

/* Adds the chore "couch_peruser". `couch` outlives the registry. */
void couch_peruser_chores_add(struct couch *couch, struct chores *chores);

#endif
