/*
 * Finding the value at a JSON Pointer in a packed text that comes in pieces, in one pass.
 *
 *     doc_finder_init(&f, &pointer, &out);
 *     while (!f.done && there is another piece)
 *         TRY(doc_finder_feed(&f, piece));
 *     doc_finder_release(&f);
 *
 * A finder remembers where it is in the text and the name that it is looking for, and nothing of
 * the text. The value is appended to `out` as it comes. Pieces may be cut anywhere.
 *
 * Ownership: the pointer and `out` are the caller's and outlive the finder. Threading: a finder
 * belongs to one thread.
 */
#ifndef FROND_DOC_PACKED_FIND_H
#define FROND_DOC_PACKED_FIND_H

#include "base/buf.h"
#include "doc/doc.h"

/* What the next byte of the text belongs to. */
enum doc_finder_state {
	DOC_FINDER_VALUE,         /* the value that the first `resolved` tokens lead to begins */
	DOC_FINDER_FIRST_NAME,    /* behind an opening brace */
	DOC_FINDER_NEXT_NAME,     /* behind a comma in an object */
	DOC_FINDER_NAME,          /* inside a member's name */
	DOC_FINDER_COLON,         /* behind a name */
	DOC_FINDER_FIRST_ELEMENT, /* behind an opening bracket */
	DOC_FINDER_PASS_BEGIN,    /* a value begins that the pointer does not lead to */
	DOC_FINDER_PASS,          /* inside such a value */
	DOC_FINDER_BEHIND,        /* behind such a value */
	DOC_FINDER_TAKE_BEGIN,    /* the value that is wanted begins */
	DOC_FINDER_TAKE,          /* inside that value */
};

/* All fields but `done` are private. */
struct doc_finder {
	bool done; /* the whole value is in `out` */
	const struct doc_pointer *pointer;
	struct buf *out;
	enum doc_finder_state state;
	size_t resolved;   /* tokens of the pointer that have been followed */
	struct buf name;   /* the next token as a packed text writes it between quotes */
	size_t matched;    /* bytes of `name` that the name in the text has had so far */
	bool differs;      /* the name in the text is another one */
	bool in_array;     /* the container that is being read is an array */
	uint64_t elements; /* of that array, that come before the one that is wanted */

	/* Inside a value. */
	size_t depth;   /* containers that are open */
	bool in_string; /* also inside a member's name */
	bool escaped;   /* the byte before was a backslash that escapes this one */
};

void doc_finder_init(struct doc_finder *f, const struct doc_pointer *pointer, struct buf *out);

/*
 * STATUS_OK: the text has to go on, unless `done`. STATUS_NOT_FOUND: there is nothing at that
 * pointer, however the text goes on. STATUS_CORRUPT for what is no packed text, as far as that is
 * noticed. STATUS_NOMEM; STATUS_LIMIT when `out` is full. After a failure the finder is only to be
 * released.
 */
MUST_USE enum status doc_finder_feed(struct doc_finder *f, struct str piece);

void doc_finder_release(struct doc_finder *f);

#endif
