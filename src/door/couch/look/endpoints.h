/* The page at /_frond/ and what it shows, which route.c names. */
#ifndef FROND_DOOR_COUCH_LOOK_ENDPOINTS_H
#define FROND_DOOR_COUCH_LOOK_ENDPOINTS_H

#include "door/couch/wire/request.h"

/* Everything below /_frond; what is no part of the page is couch_ops()'s. */
couch_handler couch_look;

#endif
