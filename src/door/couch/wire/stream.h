/* Answers that are sent while they are made, in pieces. They belong to the request's fiber. */
#ifndef FROND_DOOR_COUCH_WIRE_STREAM_H
#define FROND_DOOR_COUCH_WIRE_STREAM_H

#include "door/couch/wire/holes.h"
#include "door/couch/wire/reply.h"

enum {
	COUCH_PIECE_BYTES = 64 * 1024,      /* a streamed answer is sent in pieces of about this, */
	COUCH_PIECE_LEAST_BYTES = 2 * 1024, /* or of this when memory is short */
	COUCH_PAGE_ROWS = 500,              /* rows read at once for a streamed answer */
};

/*
 * An answer that is sent while it is made. Its status line goes out with the first piece, so a
 * failure before that still gets its own status code.
 */
struct couch_stream {
	struct couch_req *r;
	struct buf out;
	struct couch_holes holes; /* in `out` */
	/*
	 * What fills the holes, and its argument. Both must be valid at each push while there are
	 * holes.
	 */
	couch_hole_fill *fill;
	void *fill_arg;
	const char *content_type; /* NULL: CouchDB's JSON headers */
	size_t piece_bytes;       /* what is sent at a time; less when memory is short */
	bool started;
};

void couch_stream_init(struct couch_stream *s, struct couch_req *r);
void couch_stream_release(struct couch_stream *s);
/* Drops what was written behind the first `len` bytes, with its holes. */
void couch_stream_cut(struct couch_stream *s, size_t len);
/* Sends what has been written if it is large enough, if it has holes, or if `now`. */
MUST_USE enum status couch_stream_push(struct couch_stream *s, bool now);
/* Gives back the memory of output that has been sent, before the fiber waits for long. */
void couch_stream_rest(struct couch_stream *s);
MUST_USE enum status couch_stream_end(struct couch_stream *s);
/*
 * The end of a JSON answer without holes, and a newline. If all of it is still here, it is sent as
 * a whole with its length and this code; otherwise the code has gone out with the first piece.
 */
MUST_USE enum status couch_stream_end_json(struct couch_stream *s, int code);

#endif
