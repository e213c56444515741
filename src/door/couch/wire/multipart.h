/* Bodies of requests that are multipart. They belong to the request and its fiber. */
#ifndef FROND_DOOR_COUCH_WIRE_MULTIPART_H
#define FROND_DOOR_COUCH_WIRE_MULTIPART_H

#include "door/couch/wire/request.h"
#include "http/multipart.h"

/*
 * A reader of the request's body, whose Content-Type names the boundary. It explains its failures
 * in r->fail.err. STATUS_INVALID for a boundary that is missing or too long; STATUS_NOMEM.
 */
MUST_USE enum status couch_multipart_open(struct http_multipart *m, struct couch_req *r);

#endif
