/*
 * Holes: places in an answer's text where the bytes of an attachment belong. They are read from the
 * store when the text before them has been sent, so that an attachment never lies in memory as a
 * whole.
 *
 * The owner of the text also owns its struct couch_holes, and releases it with
 * couch_holes_release().
 */
#ifndef FROND_DOOR_COUCH_WIRE_HOLES_H
#define FROND_DOOR_COUCH_WIRE_HOLES_H

#include "base/buf.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "model/revisioned/revisioned.h"

enum couch_hole_kind {
	COUCH_HOLE_BASE64, /* the content, inside a JSON string */
	COUCH_HOLE_STORED, /* as it is stored */
};

struct couch_hole {
	size_t at; /* in the text */
	enum couch_hole_kind kind;
	struct rev_att att; /* its strings are not used */
};

/* Sends what belongs into a hole. `arg` comes from the caller of couch_holes_send(). */
typedef enum status couch_hole_fill(void *arg, const struct couch_hole *hole);

struct couch_holes {
	struct buf list; /* of struct couch_hole, in the order of the text */
};

enum {
	COUCH_HOLES_BYTES = 64 << 20,
};

/* None, of an answer to the request `r`. */
#define COUCH_HOLES_INIT(r) ((struct couch_holes){ couch_buf((r), COUCH_HOLES_BYTES) })

bool couch_holes_any(const struct couch_holes *h);
void couch_holes_release(struct couch_holes *h);
/*
 * Adds a hole behind the first `at` bytes of the text. A failure shows in the list's buf_status().
 */
void couch_holes_add(struct couch_holes *h, enum couch_hole_kind kind, const struct rev_att *att,
		     size_t at);
/* Takes out the holes behind the first `len` bytes of the text. */
void couch_holes_cut(struct couch_holes *h, size_t len);
/* The length of the text with its holes filled. False if that is not known beforehand. */
bool couch_holes_length(const struct couch_holes *h, uint64_t text_bytes, uint64_t *ret);
/* Adds the holes of a text that was appended to this one, behind its first `shift` bytes. */
MUST_USE enum status couch_holes_append(struct couch_holes *h, const struct couch_holes *from,
					size_t shift);
/* Sends the text and fills the holes in it. `fill` may be NULL if there are none. */
MUST_USE enum status couch_holes_send(const struct couch_holes *h, struct couch_req *r,
				      couch_hole_fill *fill, void *arg, struct str text);

#endif
