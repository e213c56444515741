/*
 * Bookmarks: where the next page of a query begins. A client gets one with each page, and sends it
 * back as it is.
 *
 * A bookmark names the index that the page came from and the last document of the page by its place
 * in that index. Nothing has to be at that place when the next page is read, so writes in between
 * neither repeat nor skip a document that they do not touch.
 *
 * Plain functions, for any thread.
 */
#ifndef FROND_DOOR_COUCH_QUERY_BOOKMARK_H
#define FROND_DOOR_COUCH_QUERY_BOOKMARK_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

enum {
	BOOKMARK_FORMAT = 1,
	BOOKMARK_BYTES = 32 * 1024, /* the longest text of one */
};

struct bookmark {
	struct str index; /* what names the index; empty: documents by id */
	struct str place; /* the last entry's key in it; empty in the order of ids */
	struct str id;    /* of the last document */
};

/* Appends the bookmark: letters, digits, '-' and '_'. */
void bookmark_write(const struct bookmark *b, struct buf *out);

/*
 * Reads a bookmark, into the arena. STATUS_INVALID for a text that is none; STATUS_LIMIT when the
 * arena is full; STATUS_NOMEM.
 */
MUST_USE enum status bookmark_read(struct str text, struct arena *arena, struct bookmark *ret);

#endif
