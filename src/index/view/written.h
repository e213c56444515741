/*
 * Notes of design documents that were written and whose views have to be built:
 *
 *     (ROOT, VIEW_WORK, P, id)        the views of this design document are to be built
 *
 * The write of a design document makes a note in the same transaction. The chore that builds views
 * clears a note in a transaction that has read the note and found nothing to build.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_INDEX_VIEW_WRITTEN_H
#define FROND_INDEX_VIEW_WRITTEN_H

#include "base/arena.h"
#include "catalog/catalog.h"

#define VIEW_CHORE_BUILD "build_views"

/* A note. Its texts are in the arena of view_written_list(). */
struct view_written {
	uint64_t db_number;
	enum catalog_space space;
	struct str db_name; /* the database's name when the note was made */
	struct str id;      /* "_design/name" */
};

MUST_USE enum status view_written_note(struct kv_tx *tx, const struct catalog_db *db,
				       struct str id);
/* Makes the transaction conflict with a new note of the same design document. */
MUST_USE enum status view_written_guard(struct kv_tx *tx, const struct view_written *written);
MUST_USE enum status view_written_clear(struct kv_tx *tx, const struct view_written *written);

/*
 * Lists at most `most` notes behind `after` (NULL: from the first one on), by snapshot reads. Those
 * that cannot be read are passed over (catalog/chore_pass.h).
 */
MUST_USE enum status view_written_list(struct kv_tx *tx, const struct view_written *after,
				       size_t most, struct arena *arena, struct view_written **ret,
				       size_t *ret_count);

#endif
