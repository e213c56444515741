/*
 * Views that a loop knows to be up to date. An entry has a parsed design document and the stored
 * record of its group.
 *
 * An entry holds in every snapshot that has the same newest Sequence of the database and the same
 * metadata version. A write of the design document would have a newer Sequence, a group that covers
 * that Sequence is not written any more, and clearing a group changes the metadata version. So a
 * request for an up-to-date view reads only that Sequence, and neither the design document nor the
 * group.
 *
 * Threading: an entry belongs to its loop and is counted. While a fiber that holds one waits,
 * another fiber may advance `newest` and `group`, always both.
 */
#ifndef FROND_DOOR_COUCH_VIEW_KNOWN_H
#define FROND_DOOR_COUCH_VIEW_KNOWN_H

#include "door/couch/view/named.h"

struct couch_view_known {
	struct couch_view_named named; /* all views, none chosen; the texts are the entry's */
	struct view_group group;       /* READY, and covers named.newest; without refusals */

	/* Private. */
	unsigned refs;
	struct arena *arena;
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
};

struct couch_view_cache *couch_view_cache_new(void);         /* NULL when out of memory */
void couch_view_cache_free(struct couch_view_cache *cache);  /* NULL is fine */
void couch_view_known_unref(struct couch_view_known *known); /* NULL is fine */

/*
 * Finds the entry of the design document in parts[2] if it holds in `tx`, where r->db is open. The
 * caller owns the reference; NULL if there is no such entry.
 */
MUST_USE enum status couch_view_known_find(struct couch_req *r, struct kv_tx *tx,
					   struct couch_view_known **ret);

/* Checks whether the entry holds in this transaction, too. */
MUST_USE enum status couch_view_known_holds(struct kv_tx *tx, const struct catalog_db *db,
					    const struct couch_view_known *known, bool *ret);

/*
 * Makes an entry of `named`, which was read in an earlier transaction, and `group`, which was read
 * in this one. Nothing is kept unless both hold in one snapshot and are small enough.
 */
MUST_USE enum status couch_view_known_keep(struct couch_req *r, struct kv_tx *tx,
					   const struct couch_view_named *named,
					   const struct view_group *group);

#endif
