#include "model/timed/rows/salvage.h"

#include "model/timed/rows/rows_int.h"

/* It has a schema, which tells everything but how long rows live. */
static enum status
rows_adopt(struct kv_tx *tx, const struct catalog_db *db, uint64_t options[CATALOG_OPTIONS],
	   const char **ret_made, struct err *err)
{
	(void)tx;
	(void)db;
	(void)options;
	(void)err;
	*ret_made = NULL;
	return STATUS_OK;
}

const struct catalog_salvage_kind timed_rows_salvage = {
	.kind = &timed_rows_kind,
	.own_space = TIMED_SPACE_SCHEMA,
	.adopt = rows_adopt,
};
