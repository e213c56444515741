/*
 * What is left of deleted databases. On an engine where a cleared range costs what its keys cost, a
 * large database cannot be cleared in the transaction that deletes it; it is done afterwards, a
 * stretch at a time. Nobody writes below its prefix any more: whoever had opened it read the
 * metadata version that its deletion touched.
 *
 * What the kind keeps for a while is left out first. The record of the database then moves to a
 * list in the order of time,
 *
 *     (ROOT, 16, ms, P) = as (ROOT, 4, P)
 *
 * whose first record tells whether anything is due.
 */
#include "base/clock.h"
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
catalog_drop_begin(struct kv_tx *tx, const struct catalog_kind *kind, uint64_t number,
		   uint64_t until_ms)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(64);

	tuple_put_u64(&prefix, number);
	TRY(catalog_key_status(&prefix));
	/* Wakes the feeds that wait for its next change. */
	TRY(kind->wake(tx, buf_str(&prefix)));
	dropped_key(&key, number);
	catalog_drop_record_put(
		&(struct catalog_drop){ .kind = kind->number, .until_ms = until_ms }, &value);
	TRY(catalog_key_status(&key));
	TRY(buf_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

enum {
	CATALOG_DROP_BYTES = 2 * 1024 *
			     1024, /* of keys and values, so that a transaction holds them */
};

struct drop {
	uint64_t now_ms;
	size_t keys; /* cleared in one transaction */
	bool found;  /* there was something to clear */
	struct err *err;
};

/* The first record of a part of the root; `*key` is its key. STATUS_NOT_FOUND if it has none. */
static enum status
record_first(struct kv_tx *tx, uint64_t part, struct buf *key, struct tuple_reader *ret_tail,
	     struct str *ret_value)
{
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_range range;
	struct kv_future *f;
	size_t prefix_len;

	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, part);
	TRY(catalog_key_status(key));
	prefix_len = key->len;
	TRY(tuple_prefix_end(buf_str(key), &end));
	TRY(catalog_key_status(&end));
	f = kv_get_range(tx, buf_str(key), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (range.count == 0)
		return STATUS_NOT_FOUND;
	buf_clear(key);
	buf_append_str(key, range.pairs[0].key);
	*ret_tail = tuple_reader(str_skip(range.pairs[0].key, prefix_len));
	*ret_value = range.pairs[0].value;
	return catalog_key_status(key);
}

/* `*ret_more`: another transaction has to look whether more is left. */
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

/* Clears what lies between the subspaces that are kept. */
static enum status
drop_clear_rest(struct kv_tx *tx, const struct catalog_kind *kind, uint64_t number, size_t keys,
		bool *ret_more)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf last = CATALOG_KEY_INIT;

	TRY(database_range(number, &begin, &last));
	for (size_t i = 0; i < CATALOG_KEPT_SPACES && kind->kept_spaces[i]; i++) {
		buf_clear(&end);
		tuple_put_u64(&end, number);
		tuple_put_u64(&end, kind->kept_spaces[i]);
		TRY(catalog_key_status(&end));
		TRY(drop_clear_stretch(tx, buf_str(&begin), buf_str(&end), keys, ret_more));
		if (*ret_more)
			return STATUS_OK;
		buf_clear(&begin);
		TRY(tuple_prefix_end(buf_str(&end), &begin));
		TRY(catalog_key_status(&begin));
	}
	return drop_clear_stretch(tx, buf_str(&begin), buf_str(&last), keys, ret_more);
}

/* The next stretch of a database that was deleted lately; then its record is moved. */
static enum status
drop_keep_body(struct kv_tx *tx, const struct drop *drop, uint64_t number,
	       const struct catalog_drop *record, struct str value)
{
	const struct catalog_kind *kind = catalog_kind_find(record->kind);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	bool more = false;

	/* What a kind keeps that this process does not know is cleared with all the rest. */
	if (kind)
		TRY(drop_clear_rest(tx, kind, number, drop->keys, &more));
	if (more)
		return STATUS_OK;
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_KEPT);
	tuple_put_u64(&key, record->until_ms);
	tuple_put_u64(&key, number);
	TRY(catalog_key_status(&key));
	TRY(kv_set(tx, buf_str(&key), value));
	dropped_key(&key, number);
	TRY(catalog_key_status(&key));
	return kv_clear(tx, buf_str(&key));
}

/* The next stretch of a database of which nothing is kept, and the record when none is left. */
static enum status
drop_clear_all(struct kv_tx *tx, const struct drop *drop, uint64_t number, struct str key)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	bool more;

	TRY(database_range(number, &begin, &end));
	TRY(drop_clear_stretch(tx, buf_str(&begin), buf_str(&end), drop->keys, &more));
	return more ? STATUS_OK : kv_clear(tx, key);
}

/* Clears the next stretch of a deleted database, and its record when none is left. */
static enum status
drop_clear_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct drop *drop = arg;
	struct catalog_drop record;
	struct tuple_reader tail;
	uint64_t number, ms = 0;
	enum status status;
	struct str value;

	status = record_first(tx, KV_ROOT_DROPPED, &key, &tail, &value);
	drop->found = status == STATUS_OK;
	if (status == STATUS_OK) {
		TRY(tuple_next_u64(&tail, &number));
		TRY(catalog_drop_record_parse(value, &record, drop->err));
		if (record.until_ms > drop->now_ms)
			return drop_keep_body(tx, drop, number, &record, value);
		return drop_clear_all(tx, drop, number, buf_str(&key));
	}
	if (status == STATUS_NOT_FOUND)
		status = record_first(tx, KV_ROOT_KEPT, &key, &tail, &value);
	if (status != STATUS_OK)
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	TRY(tuple_next_u64(&tail, &ms));
	TRY(tuple_next_u64(&tail, &number));
	drop->found = ms <= drop->now_ms;
	return drop->found ? drop_clear_all(tx, drop, number, buf_str(&key)) : STATUS_OK;
}

enum status
catalog_drop_sweep(struct kv_store *store, uint64_t now_ms, unsigned transactions, bool *ret_more,
		   struct err *err)
{
	struct drop drop = {
		.now_ms = now_ms, .keys = CATALOG_DROP_KEYS, .found = true, .err = err
	};

	for (unsigned i = 0; i < transactions && drop.found; i++)
		TRY(kv_run(store, drop_clear_body, &drop, NULL, err));
	*ret_more = drop.found;
	return STATUS_OK;
}

enum status
catalog_drop_clear(struct kv_store *store, bool *ret_more, struct err *err)
{
	struct drop drop = { .now_ms = clock_wall_ms(),
			     .keys = CATALOG_DROP_ALONE_KEYS,
			     .err = err };

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
	return catalog_drop_sweep(store, clock_wall_ms(), turn->budget, &turn->more, err);
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
