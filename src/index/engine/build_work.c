/* Which databases have indexes to be built or cleared: (ROOT, INDEX_WORK, P). */
#include "catalog/chore_pass.h"
#include "catalog/keys.h"
#include "catalog/records.h"
#include "index/engine/build.h"
#include "kv/few.h"
#include "kv/keyspace.h"

static enum status
work_key(struct buf *key, uint64_t db_number)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_INDEX_WORK);
	tuple_put_u64(key, db_number);
	return catalog_key_status(key);
}

enum status
index_work_note(struct kv_tx *tx, const struct catalog_db *db)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(2 * CATALOG_NAME_BYTES + 32);

	TRY(work_key(&key, db->number));
	catalog_work_record_put(db, &value);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
index_work_clear(struct kv_tx *tx, uint64_t db_number)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(work_key(&key, db_number));
	return kv_clear(tx, buf_str(&key));
}

/* (ROOT, INDEX_WORK) come before the number, whose bytes differ in length. */
static enum status
work_parse(const struct kv_pair *pair, struct arena *arena, struct index_work_entry *ret,
	   struct err *err)
{
	struct tuple_reader r = tuple_reader(pair->key);
	uint64_t root, space;

	TRY(tuple_next_u64(&r, &root));
	TRY(tuple_next_u64(&r, &space));
	TRY(tuple_next_u64(&r, &ret->db_number));
	return catalog_work_record_parse(pair->value, arena, &ret->space, &ret->db_name, err);
}

enum status
index_work_list(struct kv_tx *tx, uint64_t after, size_t most, struct arena *arena,
		struct index_work_entry **ret, size_t *ret_count)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	struct index_work_entry *entries = arena_zalloc(arena, (most + 1) * sizeof(*entries));
	struct kv_pair pair;
	enum status status = STATUS_OK;
	size_t count = 0;

	if (!entries)
		return STATUS_LIMIT;
	tuple_put_u64(&end, KV_ROOT);
	tuple_put_u64(&end, KV_ROOT_INDEX_WORK);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&end));
	TRY(work_key(&begin, after + 1));
	TRY(kv_scan_init_few(&scan, tx, buf_str(&begin), buf_str(&end), &options, most));
	while (count < most && (status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		enum status parsed = work_parse(&pair, arena, &entries[count], kv_tx_err(tx));

		/* Those that cannot be read are not to hide the ones behind them. */
		if (parsed == STATUS_OK)
			count++;
		else
			TRY(chore_pass_over(INDEX_CHORE_BUILD, pair.key, parsed, kv_tx_err(tx)));
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = entries;
	*ret_count = count;
	return STATUS_OK;
}
