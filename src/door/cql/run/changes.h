/*
 * Values of columns as the changes of a row, or of the static columns of a partition, which
 * table_write() makes. All of it lies in the arena of the struct cql. Threading: none.
 */
#ifndef FROND_DOOR_CQL_RUN_CHANGES_H
#define FROND_DOOR_CQL_RUN_CHANGES_H

#include "cql/value.h"
#include "door/cql/schema/table.h"
#include "model/timed/tables/row.h"

/* The changes that are gathered; all zero but for the first two members. */
struct changes {
	struct cql *q;
	struct timed_expiry expiry; /* of what is written */
	struct table_change *list;
	size_t count, cap;
	/* How many changes earlier operations on the same column have left: a change of an element
	 * that one of these has changed is joined with it. */
	size_t earlier;
};

/* A change of the column that has neither an element nor a value yet. */
struct table_change changes_of(const struct changes *all, const struct schema_column *c,
			       enum table_change_kind kind);
/* Adds a change. Of two of one element a deletion wins, otherwise the greater value. */
MUST_USE enum status changes_put(struct changes *all, const struct table_change *change);

/* The elements of a collection, each by a change of its own. */
MUST_USE enum status changes_put_elements(struct changes *all, const struct schema_column *c,
					  struct str bytes);
/* A field of a user type; null: it is deleted. */
MUST_USE enum status changes_put_field(struct changes *all, const struct schema_column *c,
				       size_t field, struct cql_value v);
/*
 * The whole column becomes the value; a null deletes it. With `assigned` a null is written like a
 * value: it makes way for values that are written at the same stamp, which a deletion would hide.
 */
MUST_USE enum status changes_put_value(struct changes *all, const struct schema_column *c,
				       struct cql_value v, bool assigned);

#endif
