#include "door/mongo/cmd/storage.h"

#include "door/mongo/index/clustered.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/index_id.h"
#include "index/engine/scan.h"

static enum status
measure_index(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	      uint64_t *ret_bytes)
{
	uint64_t entries;

	*ret_bytes = 0;
	return def ? index_measure(tx, db, def, &entries, ret_bytes) : STATUS_OK;
}

enum status
storage_measure_indexes(struct kv_tx *tx, const struct catalog_db *db, uint64_t *ret_bytes)
{
	const struct index_def *def;
	uint64_t bytes;

	*ret_bytes = 0;
	for (size_t i = 0; (def = index_live_at(db, i)) != NULL; i++) {
		TRY(measure_index(tx, db, def, &bytes));
		*ret_bytes += bytes;
	}
	return STATUS_OK;
}

/* Adds an index; `def` is NULL for `_id_` where the documents themselves are that index. */
static enum status
storage_add(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	    struct arena *arena, struct storage *s)
{
	struct storage_index *one = &s->indexes[s->index_count];

	TRY(arena_copy(arena, def ? def->name : STR("_id_"), &one->name));
	TRY(measure_index(tx, db, def, &one->bytes));
	s->index_bytes += one->bytes;
	s->index_count++;
	return STATUS_OK;
}

enum status
storage_read(struct kv_tx *tx, struct data *d, bool indexes, struct arena *arena,
	     struct storage *ret)
{
	size_t count;

	*ret = (struct storage){ .documents = 0 };
	if (!d->is_there)
		return STATUS_OK;
	ret->is_clustered = clustered_of(d->db).len > 0;
	TRY(catalog_db_bytes(tx, d->db, &ret->bytes));
	TRY(plain_count(&d->plain, &ret->documents));
	if (!indexes)
		return STATUS_OK;
	count = index_count_all(d->db);
	ret->indexes = arena_alloc(arena, count * sizeof(*ret->indexes));
	if (!ret->indexes)
		return STATUS_LIMIT;
	/* MongoDB's servers do not count the index that a clustered collection is. */
	if (!ret->is_clustered)
		TRY(storage_add(tx, d->db, index_of_id(d->db), arena, ret));
	for (size_t i = 0; i + 1 < count; i++)
		TRY(storage_add(tx, d->db, index_at(d->db, i), arena, ret));
	return STATUS_OK;
}

void
storage_put(struct bson_builder *b, const struct storage *s, int64_t scale)
{
	bson_put_int64(b, STR("size"), (int64_t)s->bytes / scale);
	bson_put_int64(b, STR("count"), (int64_t)s->documents);
	if (s->documents)
		bson_put_int64(b, STR("avgObjSize"), (int64_t)(s->bytes / s->documents));
	bson_put_int64(b, STR("storageSize"), (int64_t)s->bytes / scale);
	bson_put_int64(b, STR("freeStorageSize"), 0);
	bson_put_bool(b, STR("capped"), false);
	if (s->is_clustered)
		bson_put_bool(b, STR("clustered"), true);
	bson_put_int32(b, STR("nindexes"), (int32_t)s->index_count);
	bson_put_int64(b, STR("totalIndexSize"), (int64_t)s->index_bytes / scale);
	bson_put_int64(b, STR("totalSize"), (int64_t)s->bytes / scale);
	bson_begin_document(b, STR("indexSizes"));
	for (size_t i = 0; i < s->index_count; i++)
		bson_put_int64(b, s->indexes[i].name, (int64_t)s->indexes[i].bytes / scale);
	bson_end(b);
	bson_put_int64(b, STR("scaleFactor"), scale);
}
