/*
 * Reads a value out of its leaves, as events. Feed it the leaves of one value in key order.
 *
 *     doc_reader_init(&r, DOC_READ_VALUE, &events, to);
 *     doc_reader_leaf(&r, path, value);   // path: the encoded path below the value's own
 *     doc_reader_end(&r);
 *     doc_reader_release(&r);
 *
 * The reader knows no syntax: JSON text is one receiver of the events (assemble.c). It checks that
 * the leaves are a document's: in order, arrays without gaps, no leaf below another one, texts in
 * UTF-8, pieces of texts complete. Only one thread uses a reader at a time; what an event hands
 * over is valid until the function returns.
 */
#ifndef FROND_DOC_READER_H
#define FROND_DOC_READER_H

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "doc/builder.h"
#include "doc/json.h"
#include "doc/scalar.h"

/* What receives a value. Each function gets `to`; any status but STATUS_OK ends the reading. */
struct doc_events {
	enum status (*begin)(void *to, enum doc_container container);
	enum status (*key)(void *to, struct str name);
	enum status (*scalar)(void *to, const struct doc_scalar *s);
	/*
	 * A text, or bytes, that lies in several leaves: piece by piece, then the end of the last.
	 */
	enum status (*piece)(void *to, const struct doc_scalar *piece, bool first);
	enum status (*pieces_end)(void *to, enum doc_kind kind);
	enum status (*end)(void *to, enum doc_container container);
};

enum doc_reading {
	DOC_READ_VALUE,    /* an empty path is the value itself; no leaf at all is no value */
	DOC_READ_DOCUMENT, /* an object, which has no leaf if it is empty */
};

struct doc_level {
	uint32_t index; /* an array's position */
	uint16_t at;    /* where the element starts in the path */
	bool object;
};

struct doc_reader {
	const struct doc_events *events;
	void *to;
	enum doc_reading reading;
	bool started;
	bool in_pieces;           /* the last leaf was a piece */
	enum doc_kind piece_kind; /* of those pieces */
	uint64_t next_piece;
	struct buf last;    /* the encoded path of the last leaf, and its elements: */
	size_t open;        /* how many, which is also how many containers are open */
	struct buf scratch; /* what cannot be borrowed from a leaf */
	struct doc_level levels[JSON_DEPTH_LIMIT];
};

void doc_reader_init(struct doc_reader *r, enum doc_reading reading,
		     const struct doc_events *events, void *to);
void doc_reader_release(struct doc_reader *r);

/* STATUS_CORRUPT for a leaf that no document has there; what the events return. */
MUST_USE enum status doc_reader_leaf(struct doc_reader *r, struct str path, struct str value);

/* Ends what is open. STATUS_NOT_FOUND if a value (not a document) got no leaf. */
MUST_USE enum status doc_reader_end(struct doc_reader *r);

#endif
