/*
 * Builds the views of a written design document before the first request for them, as CouchDB's ken
 * does. A leased chore does it, so one process of a store builds.
 */
#ifndef FROND_DOOR_COUCH_VIEW_AHEAD_H
#define FROND_DOOR_COUCH_VIEW_AHEAD_H

#include "door/couch/wire/state.h"

/* Adds the chore "build_views", unless the server has no worker. `couch` outlives the registry. */
void couch_view_chores_add(struct couch *couch, struct chores *chores);

#endif
