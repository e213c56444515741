/*
 * What is left of deleted databases. On an engine where a cleared range costs what its keys cost, a
 * large database cannot be cleared in the transaction that deletes it; it is done afterwards, a
 * stretch at a time. Nobody writes below its prefix any more: whoever had opened it read the
 * metadata version that its deletion touched.
 */
#include "kv/keyspace.h"
#include "model/revisioned/revisioned_int.h"

static void
dropped_key(struct buf *b, uint64_t number)
{
	buf_clear(b);
	tuple_put_u64(b, KV_ROOT);
	tuple_put_u64(b, KV_ROOT_DROPPED);
	tuple_put_u64(b, number);
}

static enum status
database_range(uint64_t number, struct buf *begin, struct buf *end)
{
	buf_clear(begin);
	buf_clear(end);
	tuple_put_u64(begin, number);
	TRY(rev_key_status(begin));
	TRY(tuple_prefix_end(buf_str(begin), end));
	return rev_key_status(end);
}

enum status
rev_drop_begin(struct kv_tx *tx, uint64_t number)
{
	AUTO(buf_release) struct buf prefix = REV_KEY_INIT;
	AUTO(buf_release) struct buf key = REV_KEY_INIT;
	struct rev_db db = { .number = number };

	tuple_put_u64(&prefix, number);
	TRY(rev_key_status(&prefix));
	db.prefix = buf_str(&prefix);
	/* Wakes the feeds that wait for its next change. */
	TRY(rev_stat_changed(tx, &db, 0, &key));
	dropped_key(&key, number);
	TRY(rev_key_status(&key));
	return kv_set(tx, buf_str(&key), (struct str){ 0 });
}

enum {
	REV_DROP_BYTES = 2 * 1024 * 1024, /* of keys and values, so that a transaction holds them */
};

struct drop {
	size_t keys; /* cleared in one transaction */
	bool found;  /* there was something to clear */
};

/* The number of some deleted database. STATUS_NOT_FOUND if there is none. */
static enum status
dropped_first(struct kv_tx *tx, struct buf *key, struct buf *end, uint64_t *ret)
{
	const struct kv_range_options options = { .limit = 1 };
	struct tuple_reader r;
	struct kv_range range;
	struct kv_future *f;
	size_t prefix_len;

	buf_clear(key);
	buf_clear(end);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_DROPPED);
	TRY(rev_key_status(key));
	prefix_len = key->len;
	TRY(tuple_prefix_end(buf_str(key), end));
	TRY(rev_key_status(end));
	f = kv_get_range(tx, buf_str(key), buf_str(end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (range.count == 0)
		return STATUS_NOT_FOUND;
	r = tuple_reader(str_skip(range.pairs[0].key, prefix_len));
	return tuple_next_u64(&r, ret);
}

static enum status
clear_some(struct kv_tx *tx, struct str begin, struct str end, size_t keys, bool *ret_more)
{
	const struct kv_range_options options = { .limit = keys,
						  .limit_bytes = REV_DROP_BYTES,
						  .mode = KV_SNAPSHOT };
	struct kv_range range;
	struct kv_future *f;

	*ret_more = false;
	if (kv_clears_cheaply(kv_tx_store(tx)))
		return kv_clear_range(tx, begin, end);
	f = kv_get_range(tx, begin, end, &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(kv_clear(tx, range.pairs[i].key));
	*ret_more = range.more;
	return STATUS_OK;
}

/* Clears the next stretch of a deleted database, and the word about it when none is left. */
static enum status
drop_some(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf begin = REV_KEY_INIT;
	AUTO(buf_release) struct buf end = REV_KEY_INIT;
	struct drop *drop = arg;
	enum status status;
	uint64_t number;
	bool more;

	status = dropped_first(tx, &begin, &end, &number);
	drop->found = status == STATUS_OK;
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	TRY(database_range(number, &begin, &end));
	TRY(clear_some(tx, buf_str(&begin), buf_str(&end), drop->keys, &more));
	if (more)
		return STATUS_OK;
	dropped_key(&begin, number);
	TRY(rev_key_status(&begin));
	return kv_clear(tx, buf_str(&begin));
}

enum status
rev_dropped_sweep(struct kv_store *store, unsigned transactions, bool *ret_more, struct err *err)
{
	struct drop drop = { .keys = REV_DROP_KEYS, .found = true };

	for (unsigned i = 0; i < transactions && drop.found; i++)
		TRY(kv_run(store, drop_some, &drop, NULL, err));
	*ret_more = drop.found;
	return STATUS_OK;
}

enum status
rev_dropped_clear(struct kv_store *store, bool *ret_more, struct err *err)
{
	struct drop drop = { .keys = REV_DROP_ALONE_KEYS };

	TRY(kv_run(store, drop_some, &drop, NULL, err));
	*ret_more = drop.found;
	return STATUS_OK;
}
