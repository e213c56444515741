/*
 * Views that a loop knows to be up to date: design documents as they have been parsed, and what is
 * stored of their groups.
 *
 * An entry is true of every snapshot with the same newest Sequence of the database and the same
 * metadata version: a write of the design document has a Sequence of its own, a group that covers
 * that Sequence is written no more, and whoever clears groups touches the version. So a request
 * for a view that covers all changes reads that Sequence, and neither the design document nor the
 * group.
 *
 * Threading: the loop's. An entry is counted; a fiber that holds one across a wait may find that
 * `newest` and `group` have gone on together.
 */
#ifndef FROND_DOOR_COUCH_VIEW_KNOWN_H
#define FROND_DOOR_COUCH_VIEW_KNOWN_H

#include "door/couch/view/named.h"

struct couch_view_known {
	struct couch_view_named named; /* all of its views; none is chosen. Texts are the entry's */
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
 * What is known of parts[2]'s design document and is true in `tx`, where r->db is open. The caller
 * owns the reference; NULL if nothing is known.
 */
MUST_USE enum status couch_view_known_find(struct couch_req *r, struct kv_tx *tx,
					   struct couch_view_known **ret);

/* True if the entry holds in this transaction, too. */
MUST_USE enum status couch_view_known_holds(struct kv_tx *tx, const struct catalog_db *db,
					    const struct couch_view_known *known, bool *ret);

/*
 * Keeps what requests have found: `named` in an earlier transaction, `group` in this one. Nothing
 * is kept unless it is true of one snapshot, and small enough.
 */
MUST_USE enum status couch_view_known_keep(struct couch_req *r, struct kv_tx *tx,
					   const struct couch_view_named *named,
					   const struct view_group *group);

#endif
