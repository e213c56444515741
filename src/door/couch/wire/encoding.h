/* Request bodies with Content-Encoding: gzip. The result lies in the request's arena. */
#ifndef FROND_DOOR_COUCH_WIRE_ENCODING_H
#define FROND_DOOR_COUCH_WIRE_ENCODING_H

#include "door/couch/wire/request.h"

/*
 * Inflates a body into the arena. 413 if the result has more than `max_bytes` bytes, 400 if the
 * body is no whole gzip file.
 */
MUST_USE enum status couch_inflate(struct couch_req *r, struct str body, size_t max_bytes,
				   struct str *ret);

#endif
