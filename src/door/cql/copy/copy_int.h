/* What the files of this room share. */
#ifndef FROND_DOOR_CQL_COPY_COPY_INT_H
#define FROND_DOOR_CQL_COPY_COPY_INT_H

#include "door/cql/copy/copy.h"

struct copy_table {
	struct cql q;
	struct schema_types types;
	struct schema_table *table;
	copy_custom *custom;
};

/*
 * copy_key() of values that were checked and normalized. Where a decimal is in the key the token is
 * the one of these bytes, unless another one is `said`.
 */
MUST_USE enum status copy_key_of_values(struct copy_table *c, const struct str *values,
					size_t count, const int64_t *said, struct table_key *ret);

#endif
