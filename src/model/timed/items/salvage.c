#include "model/timed/items/salvage.h"

#include "model/timed/items/item_int.h"
#include "model/timed/items/items.h"

/* Every database of items has the same schema. */
static enum status
items_adopt(struct kv_tx *tx, const struct catalog_db *db, uint64_t options[CATALOG_OPTIONS],
	    const char **ret_made, struct err *err)
{
	struct timed_key_column column = { .name = STR("key") };
	const struct timed_schema schema = { .key = &column, .hash_count = 1, .key_count = 1 };
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	struct kv_future *f;
	struct str found;

	(void)options;
	(void)err;
	*ret_made = NULL;
	TRY(timed_schema_key(db, &key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &found))
		return STATUS_OK;
	timed_schema_put(&schema, &value);
	TRY(buf_status(&value));
	*ret_made = "its schema, which is the same for all";
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

const struct catalog_salvage_kind timed_items_salvage = {
	.kind = &timed_redis_kind,
	.own_space = TIMED_SPACE_COUNT,
	.adopt = items_adopt,
};
