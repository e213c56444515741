/*
 * Design documents that have been written, and whose views nobody has built yet:
 *
 *     (ROOT, VIEW_WORK, P, id)        the views of this design document are to be built
 *
 * Whoever writes a design document notes it in the same transaction. The chore that builds them
 * clears the note in a transaction that has read it, and has found that there is nothing to do.
 *
 * Threading: that of the transaction.
 */
#ifndef FROND_INDEX_VIEW_WRITTEN_H
#define FROND_INDEX_VIEW_WRITTEN_H

#include "base/arena.h"
#include "catalog/catalog.h"

/* A note; the texts are in the arena of view_written_list(). */
struct view_written {
	uint64_t db_number;
	enum catalog_space space;
	struct str db_name; /* when it was noted */
	struct str id;      /* "_design/name" */
};

MUST_USE enum status view_written_note(struct kv_tx *tx, const struct catalog_db *db,
				       struct str id);
/* Has the transaction conflict with whoever notes it anew. */
MUST_USE enum status view_written_guard(struct kv_tx *tx, const struct view_written *written);
MUST_USE enum status view_written_clear(struct kv_tx *tx, const struct view_written *written);

/* At most `most` notes behind `after` (NULL: the first ones), by snapshot reads. */
MUST_USE enum status view_written_list(struct kv_tx *tx, const struct view_written *after,
				       size_t most, struct arena *arena, struct view_written **ret,
				       size_t *ret_count);

#endif
