/*
 * Statements that change the documents which a filter finds: of update and delete (cmd_update.c),
 * and of bulkWrite. What they say is read in statement.c.
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

/* Which command a statement is of, as that decides about the names of its members. */
enum statement_kind {
	STATEMENT_UPDATE,
	STATEMENT_DELETE,
	STATEMENT_OP_UPDATE, /* of bulkWrite, and so is the next */
	STATEMENT_OP_DELETE,
	STATEMENT_KINDS,
};

/*
 * Reads a member that statements of several commands have. `*ret_known`: it is one. What `s` refers
 * to is in itself, so it stays where it is.
 */
MUST_USE enum status statement_read_member(struct call *c, enum statement_kind kind,
					   const struct bson_element *e, struct statement *s,
					   bool *ret_known);
MUST_USE enum status statement_read_document(struct call *c, const struct bson_element *e,
					     struct str *ret);
/* Fail as MongoDB does for a member of the command's statements. */
enum status statement_wrong_type(struct call *c, const struct bson_element *e, const char *wanted);
enum status statement_missing(struct call *c, const char *name);

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
