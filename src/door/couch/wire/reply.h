/*
 * Whole answers and their headers. Each function works on the request's exchange, on its fiber.
 */
#ifndef FROND_DOOR_COUCH_WIRE_REPLY_H
#define FROND_DOOR_COUCH_WIRE_REPLY_H

#include "door/couch/wire/ids.h"
#include "door/couch/wire/request.h"

#define COUCH_RETRY_AFTER_S "5" /* seconds, for a client that is refused because memory is short */

enum {
	COUCH_ANSWER_BYTES = 256 << 20, /* of an answer that is built in memory */
	COUCH_ROW_BYTES = 64 << 20,     /* of one row of a streamed answer */
};

/* An empty buffer for an answer or its input. What it takes counts as memory of the request. */
struct buf couch_buf(struct couch_req *r, size_t max_bytes);

/* Sets Content-Type and Cache-Control as CouchDB's JSON answers have them. */
void couch_json_headers(struct couch_req *r);

/* Sends an answer that is complete, and a newline. Returns the buffer's failure if it has one. */
MUST_USE enum status couch_reply(struct couch_req *r, int code, struct buf *body);
MUST_USE enum status couch_reply_str(struct couch_req *r, int code, struct str body);
MUST_USE enum status couch_reply_ok(struct couch_req *r, int code); /* {"ok":true} */
void couch_reply_fail(struct couch_req *r, enum status status);
MUST_USE enum status couch_method_refused(struct couch_req *r, const char *allow);

/*
 * ETags: `name` in quotes. A name that no header can hold (with a space, a quote or a control
 * character) gets none.
 */
void couch_set_etag_of(struct couch_req *r, struct str name);
void couch_set_etag(struct couch_req *r, struct rev_id rev);
/* The same. *ret_sent is true if If-None-Match has the tag; then a 304 has been sent. */
MUST_USE enum status couch_reply_etag(struct couch_req *r, struct str name, bool *ret_sent);
MUST_USE enum status couch_reply_etag_of_rev(struct couch_req *r, struct rev_id rev,
					     bool *ret_sent);
/* True if a tag that a client sent is the one of this name. */
bool couch_etag_is(struct str tag, struct str name);

/* The host that the client named. A proxy may pass it on in X-Forwarded-Host. ptr NULL: none. */
struct str couch_host(const struct couch_req *r);

/* True if the client uses TLS, either to this server or to a proxy that says so. */
bool couch_is_secure(const struct couch_req *r);
/* Sets Location to the absolute URL of /db, /db/doc or /db/doc/att. ptr NULL ends the path. */
void couch_set_location(struct couch_req *r, struct str db, struct str doc, struct str att);
/* Sets Location to the absolute URL of a path that is escaped already. */
void couch_set_location_path(struct couch_req *r, struct str path);

/* {"ok":true,"id":…,"rev":…} */
MUST_USE enum status couch_reply_written(struct couch_req *r, int code, struct str id,
					 struct rev_id rev);

/*
 * The answer to batch=ok, with which a client asks for less than this server does: the document is
 * on disk, but the answer does not name its revision. 202 for a write that succeeded or met a
 * conflict; any other status is returned as it is.
 */
bool couch_wants_batch(const struct couch_req *r);
MUST_USE enum status couch_reply_batched(struct couch_req *r, struct str id, enum status status);

#endif
