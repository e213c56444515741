/*
 * Which handler answers a path and a method.
 */
#ifndef FROND_DOOR_COUCH_ROUTE_H
#define FROND_DOOR_COUCH_ROUTE_H

#include "door/couch/wire/request.h"

couch_handler couch_route;

#endif
