/*
 * Building views of design documents that have been written before anybody asks them, as CouchDB's
 * ken does. One process of a store does so, by a chore.
 */
#ifndef FROND_DOOR_COUCH_VIEW_AHEAD_H
#define FROND_DOOR_COUCH_VIEW_AHEAD_H

#include "door/couch/wire/state.h"

/* Adds the chore "build_views", unless the server has no worker. `couch` outlives the registry. */
void couch_view_chores_add(struct couch *couch, struct chores *chores);

#endif
