/*
 * Tables as commands copy them, without a connection: the tokens of keys, and values that are
 * checked against the types of their columns. What is said in a dump about a row comes from
 * outside, and becomes a row only by way of these.
 *
 * A struct copy_table lies in the arena that it was opened in, and belongs to one transaction.
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_CQL_COPY_COPY_H
#define FROND_DOOR_CQL_COPY_COPY_H

#include "door/cql/schema/table.h"
#include "model/timed/tables/index.h"
#include "model/timed/tables/row.h"

struct copy_table;

/* Whether bytes are a value, as columns have it, of a custom type: one of another door. */
typedef bool copy_custom(struct str type, bool in_key, struct str bytes);

/*
 * Opens the types of an opened table. The caller closes it. STATUS_LIMIT when the arena is full;
 * STATUS_CORRUPT, explained, for a type that cannot be read.
 */
MUST_USE enum status copy_table_open(struct kv_tx *tx, struct catalog_db *db, copy_custom *custom,
				     struct arena *arena, struct err *err, struct copy_table **ret);
void copy_table_close(struct copy_table *c); /* NULL is fine */

/*
 * The key of these components, of a row or of a partition, with its token; in the form in which
 * statements write them. `said`, or NULL, is the token that the row had: it counts where a decimal
 * is in the key, whose zeros at the end are lost, and has to be the key's elsewhere.
 * STATUS_INVALID, explained, for that, and for a component that its column cannot have.
 */
MUST_USE enum status copy_key(struct copy_table *c, const struct doc_scalar *parts, size_t count,
			      const int64_t *said, struct table_key *ret);

/*
 * Puts what is to be written to a column (`element`, `value`) into the form in which statements
 * write it. STATUS_INVALID, explained, for what the column's type does not allow.
 */
MUST_USE enum status copy_change(struct copy_table *c, struct table_change *change);

/* Does the same for an element of a column whose value does not matter. */
MUST_USE enum status copy_element(struct copy_table *c, uint64_t column,
				  struct doc_scalar *element);

/* Does the same for the value that a condition of an index compares its column with. */
MUST_USE enum status copy_condition(struct copy_table *c, struct index_typed_condition *condition);

#endif
