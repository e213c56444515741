#include "door/cql/schema/open.h"

#include "door/cql/schema/system.h"

enum status
schema_table_open(struct cql *q, struct schema_types *types, struct catalog_cache *cache,
		  struct str keyspace, struct str name, struct schema_table **ret)
{
	AUTO(buf_release) struct buf full = BUF_SHORT(CATALOG_NAME_BYTES);
	struct catalog_db *db;

	if (schema_keyspace_is_system(keyspace))
		return schema_system_open(q, keyspace, name, ret);
	if (table_name(keyspace, name, &full, NULL) != STATUS_OK)
		return STATUS_NOT_FOUND;
	TRY(catalog_open(types->tx, cache, CATALOG_SPACE_TABLE, buf_str(&full), &db, NULL));
	return schema_table_of(q, types, db, ret);
}
