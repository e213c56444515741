#include "model/revisioned/revisioned_int.h"

enum status
rev_counter_add(struct kv_tx *tx, const struct buf *key, int64_t change)
{
	uint8_t operand[REV_COUNTER_BYTES];

	for (int i = 0; i < REV_COUNTER_BYTES; i++)
		operand[i] = (uint8_t)((uint64_t)change >> (8 * i));
	TRY(rev_key_status(key));
	return kv_atomic(tx, KV_ADD, buf_str(key), str_of(operand, sizeof(operand)));
}

enum status
rev_stat_add(struct kv_tx *tx, const struct rev_db *db, struct str name, int64_t delta,
	     struct buf *key)
{
	if (delta == 0)
		return STATUS_OK;
	rev_key_named(key, db, REV_SUBSPACE_STATS, name);
	return rev_counter_add(tx, key, delta);
}

enum status
rev_stat_changed(struct kv_tx *tx, const struct rev_db *db, uint16_t order, struct buf *key)
{
	uint8_t stamp[KV_VERSIONSTAMP_BYTES];

	rev_stamp(order, stamp);
	rev_key_named(key, db, REV_SUBSPACE_STATS, REV_STAT_CHANGED);
	TRY(rev_key_status(key));
	return kv_set_versionstamped_value(tx, buf_str(key), str_of(stamp, sizeof(stamp)), 0);
}

enum status
rev_stat_purged(struct kv_tx *tx, const struct rev_db *db, uint16_t order, struct buf *key)
{
	uint8_t value[REV_SEQUENCE_BYTES] = { db->incarnation };

	rev_stamp(order, value + 1);
	rev_key_named(key, db, REV_SUBSPACE_STATS, REV_STAT_PURGED);
	TRY(rev_key_status(key));
	return kv_set_versionstamped_value(tx, buf_str(key), str_of(value, sizeof(value)), 1);
}

static enum status
purged_wait(struct kv_future *f, struct rev_seq *ret)
{
	struct str value;

	*ret = (struct rev_seq){ { 0 } };
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_OK;
	if (value.len != sizeof(ret->bytes))
		return STATUS_CORRUPT;
	memcpy(ret->bytes, value.ptr, sizeof(ret->bytes));
	return STATUS_OK;
}

enum status
rev_db_watch_key(const struct rev_db *db, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct str copy;

	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_CHANGED);
	TRY(rev_key_status(&key));
	copy = arena_dup(arena, buf_str(&key));
	if (!copy.ptr)
		return STATUS_LIMIT;
	*ret = copy;
	return STATUS_OK;
}

enum status
rev_counter_wait(struct kv_future *f, uint64_t *ret)
{
	struct str value;
	uint64_t n = 0;

	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		if (value.len != REV_COUNTER_BYTES)
			return STATUS_CORRUPT;
		for (size_t i = 0; i < value.len; i++)
			n |= (uint64_t)(uint8_t)value.ptr[i] << (8 * i);
	}
	*ret = n;
	return STATUS_OK;
}

/* The Sequence in the key of a change, behind the subspace's prefix. */
static enum status
newest_wait(struct kv_future *f, size_t prefix_len, struct rev_seq *ret)
{
	struct kv_range range;
	struct tuple_reader r;
	const uint8_t *stamp;
	uint64_t incarnation;

	*ret = (struct rev_seq){ { 0 } };
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

enum status
rev_db_info(struct kv_tx *tx, const struct rev_db *db, struct rev_db_info *ret)
{
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	AUTO(buf_release) struct buf end = REV_KEY_INIT;
	struct kv_range_options newest = { .limit = 1, .reverse = true, .mode = KV_SNAPSHOT };
	struct kv_future *docs, *deleted, *changes, *purged;
	struct rev_db_info info = { 0 };
	size_t prefix_len;

	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_DOCS);
	TRY(rev_key_status(&key));
	docs = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_DELETED);
	TRY(rev_key_status(&key));
	deleted = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	rev_key_named(&key, db, REV_SUBSPACE_STATS, REV_STAT_PURGED);
	TRY(rev_key_status(&key));
	purged = kv_get(tx, buf_str(&key), KV_SNAPSHOT);
	rev_key_space(&key, db, REV_SUBSPACE_CHANGES);
	buf_append_str(&end, buf_str(&key));
	buf_append_byte(&end, REV_KEY_LAST);
	TRY(rev_key_status(&key));
	TRY(rev_key_status(&end));
	prefix_len = key.len;
	changes = kv_get_range(tx, buf_str(&key), buf_str(&end), &newest);

	TRY(rev_counter_wait(docs, &info.doc_count));
	TRY(rev_counter_wait(deleted, &info.doc_del_count));
	TRY(newest_wait(changes, prefix_len, &info.update_seq));
	TRY(purged_wait(purged, &info.purge_seq));
	/* The newest change may be one that was purged. */
	if (rev_seq_cmp(&info.purge_seq, &info.update_seq) > 0)
		info.update_seq = info.purge_seq;
	*ret = info;
	return STATUS_OK;
}

enum status
rev_db_bytes(struct kv_tx *tx, const struct rev_db *db, uint64_t *ret)
{
	AUTO(buf_release) struct buf end = REV_KEY_INIT;

	TRY(tuple_prefix_end(db->prefix, &end));
	return kv_estimate_bytes(kv_tx_store(tx), db->prefix, buf_str(&end), ret);
}
