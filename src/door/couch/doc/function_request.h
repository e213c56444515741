/* The request object that filters and update functions are given, with CouchDB's members. */
#ifndef FROND_DOOR_COUCH_DOC_FUNCTION_REQUEST_H
#define FROND_DOOR_COUCH_DOC_FUNCTION_REQUEST_H

#include "door/couch/wire/request.h"
#include "kv/kv.h"

/*
 * Makes the JSON text, in the request's arena. r->db is open in `tx`. `id` is that of the document
 * that is asked for, and `body` the request's; each may have no ptr.
 */
MUST_USE enum status couch_function_request(struct couch_req *r, struct kv_tx *tx, struct str id,
					    struct str body, struct str *ret);

#endif
