/*
 * Requests of web pages that other servers have sent (CORS), by the settings of the request.
 */
#ifndef FROND_DOOR_COUCH_WIRE_CORS_H
#define FROND_DOOR_COUCH_WIRE_CORS_H

#include "door/couch/wire/request.h"

/*
 * Sets the headers that a browser needs before it hands an answer to a page of another origin.
 * *ret_answered is true if the request was a preflight; then it has been answered.
 */
MUST_USE enum status couch_cors(struct couch_req *r, bool *ret_answered);

/* True if the settings let pages of that origin use the server. */
bool couch_cors_allows(const struct couch_req *r, struct str origin);

#endif
