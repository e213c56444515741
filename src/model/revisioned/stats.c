#include "model/revisioned/revisioned_int.h"

enum status
rev_stat_add(struct kv_tx *tx, const struct catalog_db *db, struct str name, int64_t delta,
	     struct buf *key)
{
	if (delta == 0)
		return STATUS_OK;
	rev_key_named(key, db, REV_SUBSPACE_STATS, name);
	return catalog_counter_add(tx, key, delta);
}

enum status
rev_stat_changed(struct kv_tx *tx, const struct catalog_db *db, uint16_t order, struct buf *key)
{
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];

	catalog_stamp(order, stamp);
	rev_key_named(key, db, REV_SUBSPACE_STATS, REV_STAT_CHANGED);
	TRY(catalog_key_status(key));
	return kv_set_versionstamped_value(tx, buf_str(key), str_of(stamp, sizeof(stamp)), 0);
}

enum status
rev_stat_purged(struct kv_tx *tx, const struct catalog_db *db, uint16_t order, struct buf *key)
{
	uint8_t value[CATALOG_SEQ_BYTES] = { db->incarnation };

	catalog_stamp(order, value + 1);
	rev_key_named(key, db, REV_SUBSPACE_STATS, REV_STAT_PURGED);
	TRY(catalog_key_status(key));
	return kv_set_versionstamped_value(tx, buf_str(key), str_of(value, sizeof(value)), 1);
}

static enum status
purged_wait(struct kv_future *f, struct catalog_seq *ret)
{
	struct str value;

	*ret = (struct catalog_seq){ { 0 } };
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (value.len != sizeof(ret->bytes))
		return STATUS_CORRUPT;
	memcpy(ret->bytes, value.ptr, sizeof(ret->bytes));
	return STATUS_OK;
}

enum status
rev_stat_purged_read(struct kv_tx *tx, const struct catalog_db *db, struct catalog_seq *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_PURGED);
	TRY(catalog_key_status(&key));
	return purged_wait(kv_get(tx, buf_str(&key), KV_READ), ret);
}

enum status
rev_db_watch_key(const struct catalog_db *db, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct str copy;

	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_CHANGED);
	TRY(catalog_key_status(&key));
	copy = buf_dup(&key, arena);
	if (!copy.ptr)
		return STATUS_LIMIT;
	*ret = copy;
	return STATUS_OK;
}

/* The Sequence in the key of a change, behind the subspace's prefix. */
static enum status
newest_wait(struct kv_future *f, size_t prefix_len, struct catalog_seq *ret)
{
	struct kv_range range;
	struct tuple_reader r;
	const uint8_t *stamp;
	uint64_t incarnation;

	*ret = (struct catalog_seq){ { 0 } };
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (range.count == 0)
		return STATUS_OK;
	r = tuple_reader(str_skip(range.pairs[0].key, prefix_len));
	TRY(tuple_next_u64(&r, &incarnation));
	TRY(tuple_next_versionstamp(&r, &stamp));
	ret->bytes[0] = (uint8_t)incarnation;
	memcpy(ret->bytes + 1, stamp, KV_VERSIONSTAMP_BYTES);
	return STATUS_OK;
}

/* Begins the read of the newest change; `*ret_prefix_len` is passed to newest_wait(). */
static enum status
newest_ask(struct kv_tx *tx, const struct catalog_db *db, size_t *ret_prefix_len,
	   struct kv_future **ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	const struct kv_range_options newest = { .limit = 1, .reverse = true, .mode = KV_SNAPSHOT };

	rev_key_space(&key, db, REV_SUBSPACE_CHANGES);
	buf_append_buf(&end, &key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&key));
	TRY(catalog_key_status(&end));
	*ret_prefix_len = key.len;
	*ret = kv_get_range(tx, buf_str(&key), buf_str(&end), &newest);
	return STATUS_OK;
}

/* The greater of the newest change and the newest purge: the newest change may itself be purged. */
static struct catalog_seq
newest_of(struct catalog_seq changed, struct catalog_seq purged)
{
	return catalog_seq_cmp(&purged, &changed) > 0 ? purged : changed;
}

enum status
rev_db_newest(struct kv_tx *tx, const struct catalog_db *db, struct catalog_seq *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *changes, *purged;
	struct catalog_seq change, purge;
	size_t prefix_len;

	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_PURGED);
	TRY(catalog_key_status(&key));
	purged = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	TRY(newest_ask(tx, db, &prefix_len, &changes));
	TRY(newest_wait(changes, prefix_len, &change));
	TRY(purged_wait(purged, &purge));
	*ret = newest_of(change, purge);
	return STATUS_OK;
}

enum status
rev_db_info(struct kv_tx *tx, const struct catalog_db *db, struct rev_db_info *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *docs, *deleted, *changes, *purged;
	struct rev_db_info info = { 0 };
	size_t prefix_len;

	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_DOCS);
	TRY(catalog_key_status(&key));
	docs = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_DELETED);
	TRY(catalog_key_status(&key));
	deleted = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_PURGED);
	TRY(catalog_key_status(&key));
	purged = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	TRY(newest_ask(tx, db, &prefix_len, &changes));

	TRY(catalog_counter_wait(docs, &info.doc_count));
	TRY(catalog_counter_wait(deleted, &info.doc_del_count));
	TRY(newest_wait(changes, prefix_len, &info.update_seq));
	TRY(purged_wait(purged, &info.purge_seq));
	info.update_seq = newest_of(info.update_seq, info.purge_seq);
	*ret = info;
	return STATUS_OK;
}
