#include "model/timed/tables/salvage.h"

#include "model/timed/tables/tables_int.h"

/* It has a schema, which tells everything but how long rows live, and what its keyspace was. */
static enum status
tables_adopt(struct kv_tx *tx, const struct catalog_db *db, uint64_t options[CATALOG_OPTIONS],
	     const char **ret_made, struct err *err)
{
	struct str keyspace, table;
	enum status status;

	(void)options;
	(void)err;
	table_name_split(db->name, &keyspace, &table);
	status = table_keyspace_check(tx, keyspace, NULL);
	*ret_made = status == STATUS_NOT_FOUND ? "the properties of its keyspace" : NULL;
	if (status != STATUS_NOT_FOUND)
		return status;
	return table_keyspace_ensure(tx, keyspace);
}

const struct catalog_salvage_kind table_salvage = {
	.kind = &table_kind,
	.own_space = TIMED_SPACE_TABLE,
	.adopt = tables_adopt,
};
