/*
 * Statements that change the documents which a filter finds: of update and delete (cmd_update.c),
 * and of bulkWrite.
 */
#ifndef FROND_DOOR_MONGO_CMD_UPDATE_H
#define FROND_DOOR_MONGO_CMD_UPDATE_H

#include "door/mongo/cmd/change.h"
#include "door/mongo/cmd/write.h"

struct statement {
	struct change_ask ask;
	struct bson_value update, hint, array_filters, constants;
	struct str sort; /* of an update of one document; empty: any */
	bool many;
};

struct updating {
	struct writing w; /* first */
	struct change_staged staged;
};

/* True for null: MongoDB takes an optional member that is null as one that is not there. */
static inline bool
update_is_left_out(const struct bson_value *v)
{
	return v->type == BSON_NULL || v->type == BSON_UNDEFINED;
}

/* Fails for a pipeline with an unknown stage. `update` may be another kind of update. */
MUST_USE enum status update_check_pipeline(struct call *c, const struct bson_value *update);

/*
 * Does a statement in the present attempt. `*ret_more`: it goes on in another transaction.
 * `*ret_alone`: nothing was done, since it wants a transaction of its own.
 */
MUST_USE enum status update_do(struct updating *u, struct statement *s, bool *ret_more,
			       bool *ret_alone);
/* Counts a statement that was done by an earlier request, by what is stored of it. */
void update_count_known(struct writing *w, struct str known);
/*
 * For writing_run(), of a struct updating: what was written ahead belongs to a transaction that has
 * committed.
 */
MUST_USE enum status update_forget_staged(struct writing *w);

#endif
