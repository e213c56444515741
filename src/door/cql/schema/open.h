/*
 * Tables by their names: those of the store, and those that the door makes up. Threading: that of
 * the transaction.
 */
#ifndef FROND_DOOR_CQL_SCHEMA_OPEN_H
#define FROND_DOOR_CQL_SCHEMA_OPEN_H

#include "door/cql/schema/table.h"

/*
 * Opens a table. STATUS_NOT_FOUND: there is none, or no such keyspace. `cache` may be NULL. The
 * caller closes it (schema_table_close()).
 */
MUST_USE enum status schema_table_open(struct cql *q, struct schema_types *types,
				       struct catalog_cache *cache, struct str keyspace,
				       struct str name, struct schema_table **ret);

#endif
