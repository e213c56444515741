/*
 * Which handler answers a path and a method.
 */
#ifndef FROND_DOOR_COUCH_ROUTE_H
#define FROND_DOOR_COUCH_ROUTE_H

#include "door/couch/wire/request.h"

couch_handler couch_route;

/*
 * Told of each method of each path: "/_all_dbs", or below a database "/X/_index/X/json/X", with a
 * '*' for each X, which is any part of a path.
 */
typedef void couch_route_take(void *arg, const char *method, const char *path);

/* Walks all routes, for tests that have something to say of each. */
void couch_route_each(couch_route_take *take, void *arg);

#endif
