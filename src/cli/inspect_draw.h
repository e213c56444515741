/* Key-value pairs as people read them, in the way of the texts that the layout comes from. */
#ifndef FROND_CLI_INSPECT_DRAW_H
#define FROND_CLI_INSPECT_DRAW_H

#include "base/buf.h"
#include "base/str.h"

enum {
	INSPECT_TEXT_BYTES = 1000, /* longer strings are cut, and their length is told */
};

/*
 * What a key's first two elements say: `database` is 0 for what belongs to the store as a whole.
 * False for a key that is not of this layout.
 */
struct inspect_place {
	uint64_t database;
	uint64_t subspace;
};

bool inspect_place(struct str key, struct inspect_place *ret);

/* "revisions"; "root" with `database` 0; "subspace 77" for what has no name. Appended. */
void inspect_draw_subspace(struct inspect_place place, struct buf *ret);

/*
 * Appends one pair as `("revisions", "mydoc", true, 3, \x9b…) = (1, …)`. The database's number is
 * left out and the subspace is named. Hashes are one run of hexadecimal digits, as revisions show
 * them; Sequences are the 26 digits that travel; ancestors stand in brackets; counters are numbers.
 */
void inspect_draw_pair(struct str key, struct str value, struct buf *ret);

/* The same without any interpretation: bytes, those outside of ASCII as \xNN. */
void inspect_draw_raw(struct str key, struct str value, struct buf *ret);

#endif
