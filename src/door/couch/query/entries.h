/*
 * Entries of an index in several ranges of keys, one after the other, page by page.
 *
 * Threading: that of the request's fiber.
 */
#ifndef FROND_DOOR_COUCH_QUERY_ENTRIES_H
#define FROND_DOOR_COUCH_QUERY_ENTRIES_H

#include "door/couch/query/plan.h"
#include "index/engine/scan.h"

/* One page. */
struct entries {
	const struct plan *plan;
	const struct plan_read *read;
	struct str partition; /* that is asked for; ptr NULL: none */
	bool reverse;
	struct str after; /* the key of the entry to go on behind; empty: from the beginning */
	size_t most;      /* entries */

	/* `entry` is valid during the call; all of it, texts too, may be borrowed. */
	enum status (*take)(void *arg, const struct index_def *def,
			    const struct index_entry *entry);
	void *arg;
};

/*
 * Hands the entries of the page to `take`, in order. `*ret_count` of them were read; fewer than
 * `most` if no more follow. Explains a failure if the index is gone; the failures of `take`.
 */
MUST_USE enum status entries_read(struct couch_req *r, struct kv_tx *tx, const struct entries *e,
				  size_t *ret_count);

#endif
