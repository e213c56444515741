#include "index/view/written.h"

#include "catalog/keys.h"
#include "catalog/chore_pass.h"
#include "catalog/records.h"
#include "kv/keyspace.h"

static void
written_prefix(struct buf *key)
{
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_VIEW_WORK);
}

static enum status
written_key(struct buf *key, uint64_t db_number, struct str id)
{
	written_prefix(key);
	tuple_put_u64(key, db_number);
	tuple_put_str(key, id);
	return catalog_key_status(key);
}

enum status
view_written_note(struct kv_tx *tx, const struct catalog_db *db, struct str id)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(2 * CATALOG_NAME_BYTES + 32);

	TRY(written_key(&key, db->number, id));
	catalog_work_record_put(db, &value);
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum status
view_written_guard(struct kv_tx *tx, const struct view_written *written)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(written_key(&key, written->db_number, written->id));
	return kv_future_wait(kv_get(tx, buf_str(&key), KV_READ));
}

enum status
view_written_clear(struct kv_tx *tx, const struct view_written *written)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	TRY(written_key(&key, written->db_number, written->id));
	return kv_clear(tx, buf_str(&key));
}

static enum status
written_parse(const struct kv_pair *pair, struct arena *arena, struct view_written *ret,
	      struct err *err)
{
	struct tuple_reader r = tuple_reader(pair->key);
	uint64_t root, part;

	TRY(tuple_next_u64(&r, &root));
	TRY(tuple_next_u64(&r, &part));
	TRY(tuple_next_u64(&r, &ret->db_number));
	TRY(catalog_next_text(&r, TUPLE_STRING, arena, true, &ret->id));
	return catalog_work_record_parse(pair->value, arena, &ret->space, &ret->db_name, err);
}

enum status
view_written_list(struct kv_tx *tx, const struct view_written *after, size_t most,
		  struct arena *arena, struct view_written **ret, size_t *ret_count)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	const struct kv_range_options options = { .mode = KV_SNAPSHOT };
	struct view_written *all;
	struct kv_pair pair;
	size_t count = 0;
	enum status status = STATUS_OK;

	written_prefix(&begin);
	written_prefix(&end);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	if (after) {
		TRY(written_key(&begin, after->db_number, after->id));
		buf_append_byte(&begin, CATALOG_KEY_NEXT);
	}
	TRY(catalog_key_status(&end));
	TRY(buf_status(&begin));
	all = arena_zalloc(arena, (most + 1) * sizeof(*all));
	if (!all)
		return STATUS_LIMIT;
	TRY(kv_scan_init(&scan, tx, buf_str(&begin), buf_str(&end), &options));
	while (count < most && (status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		enum status parsed = written_parse(&pair, arena, &all[count], kv_tx_err(tx));

		if (parsed == STATUS_OK)
			count++;
		else
			TRY(chore_pass_over(VIEW_CHORE_BUILD, pair.key, parsed, kv_tx_err(tx)));
	}
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	*ret = all;
	*ret_count = count;
	return STATUS_OK;
}
