/*
 * Key-value pairs as people read them. The catalog draws what every store has; what is in a
 * database is drawn after the custom of its kind.
 *
 * Ownership: everything is appended to the buffer given, and what a drawing takes meanwhile counts
 * as used where that buffer does. Threading: none.
 */
#ifndef FROND_CATALOG_DRAW_H
#define FROND_CATALOG_DRAW_H

#include "base/buf.h"
#include "base/str.h"
#include "catalog/kind.h"
#include "kv/tuple.h"

struct arena;
struct catalog_db;

enum {
	CATALOG_DRAW_TEXT_BYTES = 1000, /* longer strings are cut, and their length is told */
	CATALOG_DRAW_HASH_BYTES = 16,   /* bytes of this length are drawn as \x and their digits */
};

/*
 * What a key's first two elements say: `database` is 0 for what belongs to the store as a whole.
 * False for a key that is not of this layout.
 */
struct catalog_place {
	uint64_t database;
	uint64_t subspace;
};

bool catalog_place_of(struct str key, struct catalog_place *ret);

/* "revisions"; "root" with `database` 0; "subspace 77" for what has no name. */
void catalog_draw_space(const struct catalog_kind *kind, struct catalog_place place,
			struct buf *ret);

/*
 * One pair as `("revisions", "mydoc", true, 3, \x9b…) = (1, …)`. The database's number is left out
 * and the subspace is named. Hashes are one run of hexadecimal digits, as revisions show them;
 * Sequences are the 26 digits that travel; counters are numbers. `kind` NULL: of nothing known.
 */
void catalog_draw_pair(const struct catalog_kind *kind, struct str key, struct str value,
		       struct buf *ret);

/* The same without any interpretation: bytes, those outside of ASCII as \xNN. */
void catalog_draw_raw(struct str key, struct str value, struct buf *ret);

/* Keys of no database (`db` NULL) are most likely what is left of a revisioned one. */
const struct catalog_kind *catalog_draw_kind(const struct catalog_db *db);

/*
 * A pair of a database as `frond inspect` shows it: in the notation of its kind where that has one,
 * else by catalog_draw_pair(). `db` NULL: a pair of no database.
 */
void catalog_draw_pair_of(const struct catalog_db *db, const struct kv_pair *pair, struct buf *ret);

/* ---- For kinds ---- */

/*
 * An arena of so many bytes for what a drawing takes meanwhile, which counts as used where `ret`
 * does. NULL: there is no memory.
 */
struct arena *catalog_draw_arena(size_t limit_bytes, const struct buf *ret);

/* How a kind wants nested tuples drawn; all zero: as they are. */
struct catalog_draw_manner {
	bool (*nested)(const struct tuple_elem *e, struct buf *ret); /* false: not drawn by it */
	bool brackets;                                               /* around nested tuples */
};

/* Elements in parentheses. STATUS_CORRUPT for what is no tuple. */
MUST_USE enum status catalog_draw_elements(struct tuple_reader r,
					   const struct catalog_draw_manner *manner,
					   struct buf *ret);

/* A value that should be a tuple; as bytes in quotes if it is none. */
void catalog_draw_tuple(struct str value, const struct catalog_draw_manner *manner,
			struct buf *ret);

/* A string of a tuple, cut to CATALOG_DRAW_TEXT_BYTES. */
void catalog_draw_string(const struct tuple_elem *e, struct buf *ret);

/* A little-endian counter; a versionstamp. False for a value of another length. */
bool catalog_draw_counter(struct str value, struct buf *ret);
bool catalog_draw_stamp(struct str value, struct buf *ret);

#endif
