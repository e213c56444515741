/*
 * Which document of its target a $merge goes to: the one with the same `_id`, or the one with the
 * same values of other fields, `on`, which a unique index keeps apart.
 *
 * Plain functions on the caller's memory and transaction.
 */
#ifndef FROND_DOOR_MONGO_CMD_MERGE_H
#define FROND_DOOR_MONGO_CMD_MERGE_H

#include "door/mongo/txn/data.h"
#include "mql/stage/stages.h"

/* True if documents are told apart by `_id` alone. */
bool merge_is_by_id(const struct mql_write *w);

/* Fails if the target, the collection `ns`, has no index for `on`. Reads by itself. */
MUST_USE enum status merge_check(struct call *c, struct str ns, const struct mql_write *w,
				 const struct mql *q);

/*
 * The document of the target that has the values of `doc`, in the arena of `q`; later writers of
 * these values conflict, also if there is none (STATUS_NOT_FOUND).
 */
MUST_USE enum status merge_find(struct call *c, struct data *data, const struct mql_write *w,
				struct mql *q, struct str doc, struct str *ret);

/*
 * The document that $merge inserts where no document of the target matches `doc`. With whenMatched
 * "merge" or "keepExisting" it has null for a field of `on` that `doc` lacks, as in MongoDB.
 */
MUST_USE enum status merge_new_document(struct call *c, const struct mql_write *w, struct str doc,
					struct str *ret);

#endif
