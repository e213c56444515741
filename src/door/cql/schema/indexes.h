/*
 * Indexes as clients are told of them: what they are on, as texts.
 *
 * Plain functions. Threading: none.
 */
#ifndef FROND_DOOR_CQL_SCHEMA_INDEXES_H
#define FROND_DOOR_CQL_SCHEMA_INDEXES_H

#include "door/cql/schema/table.h"
#include "model/timed/tables/index.h"

/* Appends what stands in parentheses of CREATE INDEX: a, values(b) */
void schema_index_targets(struct buf *out, const struct schema_table *t,
			  const struct table_index *index);
/* Appends what stands in those of INCLUDE. */
void schema_index_includes(struct buf *out, const struct schema_table *t,
			   const struct table_index *index);
/* Appends the whole statement, with a semicolon. */
void schema_index_print(struct buf *out, const struct schema_table *t,
			const struct table_index *index);

#endif
