/*
 * The parts of a multipart body, read as it arrives, in bounded memory. A part may be multipart
 * itself: its reader then reads from this one.
 */
#ifndef FROND_REPLICATOR_PARTS_H
#define FROND_REPLICATOR_PARTS_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

enum {
	PARTS_BOUNDARY_BYTES = 256,
	PARTS_HEAD_BYTES = 16 * 1024, /* of a part's headers */
	PARTS_BUFFER_BYTES = 1024 * 1024,
};

/* Where the bytes come from: the next stretch, valid until the next call; NOT_FOUND at the end. */
typedef enum status parts_source(void *arg, struct str *ret, struct err *err);

struct parts {
	parts_source *source;
	void *arg;
	char boundary[PARTS_BOUNDARY_BYTES + 4]; /* CR LF - - and what the header says */
	size_t boundary_len;
	struct buf buffer;
	size_t given; /* bytes of the buffer that the last read gave out */
	bool in_part;
	bool over;
	struct str type; /* the part's Content-Type; in `head` */
	struct str disposition;
	struct buf head;
};

/*
 * `content_type`: "multipart/…; boundary=…". STATUS_INVALID if it names none. The source's
 * argument has to outlive the reader.
 */
MUST_USE enum status parts_init(struct parts *p, struct str content_type, parts_source *source,
				void *arg, struct err *err);
void parts_release(struct parts *p);

/* Whether a Content-Type is "multipart/…". */
bool parts_is_multipart(struct str content_type);

/*
 * Goes on to the next part, over what is left of the current one; its headers are then in `type`
 * and `disposition`. STATUS_NOT_FOUND behind the last one; STATUS_INVALID for a body that is cut
 * off or none; the source's failures.
 */
MUST_USE enum status parts_next(struct parts *p, struct err *err);

/* A parts_source of the current part's bytes; `arg` is the struct parts. */
parts_source parts_read;

#endif
