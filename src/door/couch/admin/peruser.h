/*
 * A database for each user, as CouchDB's couch_peruser makes them: a chore follows the changes of
 * _users. Whatever writes a document there, a client, a replication, another server of the store,
 * its user gets a database.
 */
#ifndef FROND_DOOR_COUCH_ADMIN_PERUSER_H
#define FROND_DOOR_COUCH_ADMIN_PERUSER_H

#include "door/couch/wire/state.h"

/* Adds the chore "couch_peruser". `couch` outlives the registry. */
void couch_peruser_chores_add(struct couch *couch, struct chores *chores);

#endif
