/* What an opened table keeps in memory: its schema and its indexes. */
#include "base/mem.h"
#include "model/timed/tables/tables_int.h"

void
table_extension_free(void *arg)
{
	struct table_extension *extension = arg;

	if (!extension)
		return;
	index_set_free(extension->set);
	arena_free(extension->arena);
	mem_free(extension);
}

enum status
table_extend(struct kv_tx *tx, const struct catalog_db *db, void **ret, struct err *err)
{
	struct table_extension *extension = mem_zalloc(sizeof(*extension));
	enum status status = STATUS_NOMEM;

	if (!extension)
		return STATUS_NOMEM;
	extension->arena = arena_new(TIMED_SCHEMA_ARENA_BYTES);
	if (extension->arena)
		status = table_schema_get(tx, db, KV_SNAPSHOT, extension->arena, &extension->schema,
					  err);
	if (status == STATUS_OK)
		status = table_indexes_load(tx, db, extension, err);
	if (status == STATUS_OK)
		*ret = extension;
	else
		table_extension_free(extension);
	return status;
}
