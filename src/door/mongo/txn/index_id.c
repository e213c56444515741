#include "door/mongo/txn/index_id.h"

const struct index_def *
index_live_at(const struct catalog_db *db, size_t at)
{
	const struct index_set *set = index_set_of(db);

	if (set && set->kept_count == set->count)
		return at < set->count ? &set->defs[at] : NULL;
	for (size_t i = 0; set && i < set->count; i++)
		if (index_def_is_live(&set->defs[i]) && at-- == 0)
			return &set->defs[i];
	return NULL;
}

/* By its name: createIndexes gives it to no other index. */
bool
index_def_is_of_id(const struct index_def *def)
{
	return str_eq(def->name, STR(PLAIN_ID_INDEX));
}

const struct index_def *
index_of_id(const struct catalog_db *db)
{
	const struct index_def *def;

	/* Most collections have no options, and so no collation. */
	if (!db || bson_is_empty(plain_options_of(db)))
		return NULL;
	for (size_t i = 0; (def = index_live_at(db, i)) != NULL; i++)
		if (index_def_is_of_id(def))
			return def;
	return NULL;
}

enum status
index_create_of_id(struct kv_tx *tx, const struct catalog_db *db, struct arena *arena,
		   struct err *err)
{
	AUTO(buf_release) struct buf spec = BUF_SHORT(INDEX_SPEC_BYTES);
	struct str options = plain_options_of(db);
	struct str collation = bson_find_document(options, STR("collation"));
	struct bson_builder b;
	uint64_t number;

	if (!plain_wants_id_index(db))
		return STATUS_OK;
	bson_open(&b, &spec);
	bson_put_int32(&b, STR("v"), 2);
	bson_begin_document(&b, STR("key"));
	bson_put_int32(&b, STR("_id"), 1);
	bson_end(&b);
	bson_put_string(&b, STR("name"), STR(PLAIN_ID_INDEX));
	bson_put_bool(&b, STR("unique"), true);
	bson_put_document(&b, STR("collation"), collation);
	bson_end(&b);
	TRY(buf_status(&spec));
	return plain_index_create(tx, db, buf_str(&spec), arena, &number, err);
}
