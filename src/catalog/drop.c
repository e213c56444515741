/*
 * What is left of deleted databases. On an engine where a cleared range costs what its keys cost, a
 * large database cannot be cleared in the transaction that deletes it; it is done afterwards, a
 * stretch at a time. Nobody writes below its prefix any more: whoever had opened it read the
 * metadata version that its deletion touched.
 */
#include "kv/keyspace.h"
#include "catalog/catalog_int.h"
#include "catalog/chores.h"
#include "catalog/records.h"

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
	TRY(catalog_key_status(begin));
	TRY(tuple_prefix_end(buf_str(begin), end));
	return catalog_key_status(end);
}

enum status
catalog_drop_begin(struct kv_tx *tx, const struct catalog_kind *kind, uint64_t number)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(64);

	tuple_put_u64(&prefix, number);
	TRY(catalog_key_status(&prefix));
	/* Wakes the feeds that wait for its next change. */
	TRY(kind->wake(tx, buf_str(&prefix)));
	dropped_key(&key, number);
	catalog_drop_record_put(kind, &value);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum {
	CATALOG_DROP_BYTES = 2 * 1024 *
			     1024, /* of keys and values, so that a transaction holds them */
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
	TRY(catalog_key_status(key));
	prefix_len = key->len;
	TRY(tuple_prefix_end(buf_str(key), end));
	TRY(catalog_key_status(end));
	f = kv_get_range(tx, buf_str(key), buf_str(end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (range.count == 0)
		return STATUS_NOT_FOUND;
	r = tuple_reader(str_skip(range.pairs[0].key, prefix_len));
	return tuple_next_u64(&r, ret);
}

static enum status
drop_clear_stretch(struct kv_tx *tx, struct str begin, struct str end, size_t keys, bool *ret_more)
{
	const struct kv_range_options options = { .limit = keys,
						  .limit_bytes = CATALOG_DROP_BYTES,
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
drop_clear_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct drop *drop = arg;
	enum status status;
	uint64_t number;
	bool more;

	status = dropped_first(tx, &begin, &end, &number);
	drop->found = status == STATUS_OK;
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	TRY(database_range(number, &begin, &end));
	TRY(drop_clear_stretch(tx, buf_str(&begin), buf_str(&end), drop->keys, &more));
	if (more)
		return STATUS_OK;
	dropped_key(&begin, number);
	TRY(catalog_key_status(&begin));
	return kv_clear(tx, buf_str(&begin));
}

enum status
catalog_drop_sweep(struct kv_store *store, unsigned transactions, bool *ret_more, struct err *err)
{
	struct drop drop = { .keys = CATALOG_DROP_KEYS, .found = true };

	for (unsigned i = 0; i < transactions && drop.found; i++)
		TRY(kv_run(store, drop_clear_body, &drop, NULL, err));
	*ret_more = drop.found;
	return STATUS_OK;
}

enum status
catalog_drop_clear(struct kv_store *store, bool *ret_more, struct err *err)
{
	struct drop drop = { .keys = CATALOG_DROP_ALONE_KEYS };

	TRY(kv_run(store, drop_clear_body, &drop, NULL, err));
	*ret_more = drop.found;
	return STATUS_OK;
}

/* ---- As a chore ---- */

enum {
	DROP_CHORE_TRANSACTIONS = 20,
	DROP_CHORE_PAUSE_MS = 10 * 1000,
	DROP_CHORE_MORE_MS = 100, /* while there is more to do: others write, too */
};

static enum status
drop_chore_run(void *store, struct chore_turn *turn, struct err *err)
{
	return catalog_drop_sweep(store, turn->budget, &turn->more, err);
}

void
catalog_chores_add(struct chores *chores, struct kv_store *store)
{
	chores_add(chores, &(struct chore){
				   .name = "sweep_databases",
				   .run = drop_chore_run,
				   .arg = store,
				   .leased = true,
				   .budget = DROP_CHORE_TRANSACTIONS,
				   .pause_ms = DROP_CHORE_PAUSE_MS,
				   .more_ms = DROP_CHORE_MORE_MS,
			   });
}
