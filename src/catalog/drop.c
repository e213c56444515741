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
 *
 * A record that cannot be read is passed over, and so is a database whose keys cannot be read: the
 * others are cleared all the same.
 *
 * An engine keeps for a while that a key was deleted, and steps over that in each read. So a
 * transaction goes on where the one before it has stopped; if each began at the beginning, what
 * they step over would grow with the square of the database. Before the record goes, one
 * transaction looks from the beginning, so that nothing depends on what a process remembers.
 */
#include <string.h>

#include "base/steady.h"
#include "kv/keyspace.h"
#include "catalog/catalog_int.h"
#include "catalog/chore_pass.h"
#include "catalog/chores.h"
#include "catalog/clock.h"
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

#define DROP_CHORE "sweep_databases"

/* The lists of records, each in the order in which it is worked off. */
enum drop_list {
	DROP_LIST_DROPPED,
	DROP_LIST_KEPT,
	DROP_LISTS,
};

struct drop {
	struct catalog_sweeping *sweeping;
	struct catalog_sweep_place next; /* what sweeping->place becomes once this is committed */
	uint64_t now_ms;
	size_t keys; /* cleared in one transaction */
	bool found;  /* there was something to clear */
	enum drop_list list;
	struct buf key;                /* of the record in that list that was found; or empty */
	struct buf passed[DROP_LISTS]; /* the last record of each list that was passed over */
	struct err *err;
};

static struct drop
drop_init(struct catalog_sweeping *sweeping, uint64_t now_ms, size_t keys, struct err *err)
{
	return (struct drop){ .sweeping = sweeping,
			      .now_ms = now_ms,
			      .keys = keys,
			      .found = true,
			      .key = CATALOG_KEY_INIT,
			      .passed = { CATALOG_KEY_INIT, CATALOG_KEY_INIT },
			      .err = err };
}

static void
drop_release(struct drop *drop)
{
	buf_release(&drop->key);
	for (size_t i = 0; i < DROP_LISTS; i++)
		buf_release(&drop->passed[i]);
}

/* Passes over the record at drop->key if this failure stays: its list goes on behind it. */
static enum status
drop_pass_over(struct drop *drop, enum status status)
{
	struct buf *passed = &drop->passed[drop->list];

	TRY(chore_pass_over(DROP_CHORE, buf_str(&drop->key), status, drop->err));
	buf_clear(passed);
	buf_append_buf(passed, &drop->key);
	buf_append_byte(passed, CATALOG_KEY_NEXT);
	return catalog_key_status(passed);
}

/*
 * The first record of the list behind those that were passed over; its key is in drop->key.
 * STATUS_NOT_FOUND if there is none.
 */
static enum status
record_first(struct kv_tx *tx, struct drop *drop, enum drop_list list,
	     struct tuple_reader *ret_tail, struct str *ret_value)
{
	static const uint64_t parts[] = {
		[DROP_LIST_DROPPED] = KV_ROOT_DROPPED, [DROP_LIST_KEPT] = KV_ROOT_KEPT
	};
	const struct kv_range_options options = { .limit = 1 };
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct buf *key = &drop->key;
	struct kv_range range;
	struct kv_future *f;
	size_t prefix_len;

	drop->list = list;
	buf_clear(key);
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, parts[list]);
	TRY(catalog_key_status(key));
	prefix_len = key->len;
	TRY(tuple_prefix_end(buf_str(key), &end));
	TRY(catalog_key_status(&end));
	f = kv_get_range(tx, drop->passed[list].len ? buf_str(&drop->passed[list]) : buf_str(key),
			 buf_str(&end), &options);
	buf_clear(key);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	if (range.count == 0)
		return STATUS_NOT_FOUND;
	buf_append_str(key, range.pairs[0].key);
	*ret_tail = tuple_reader(str_skip(range.pairs[0].key, prefix_len));
	*ret_value = range.pairs[0].value;
	return catalog_key_status(key);
}

/* ---- Where a database has been cleared to ---- */

/* Where the next transaction begins to clear the database; empty: at its beginning. */
static struct str
drop_place(const struct drop *drop, uint64_t number)
{
	const struct catalog_sweep_place *place = &drop->sweeping->place;

	return place->number == number ? str_of(place->key, place->len) : str_of(NULL, 0);
}

/*
 * All keys of the database up to this one are cleared. Of a long key the beginning is kept, which
 * is in front of it.
 */
static void
drop_set_next(struct drop *drop, uint64_t number, struct str key)
{
	struct catalog_sweep_place *next = &drop->next;

	next->number = number;
	next->len = key.len < sizeof(next->key) ? key.len : sizeof(next->key);
	memcpy(next->key, key.ptr, next->len);
}

/* ---- Clearing ---- */

/* `*ret_more`: another transaction has to look whether more is left. */
static enum status
drop_clear_stretch(struct kv_tx *tx, struct drop *drop, uint64_t number, struct str begin,
		   struct str end, bool *ret_more)
{
	const struct kv_range_options options = { .limit = drop->keys,
						  .limit_bytes = CATALOG_DROP_BYTES,
						  .mode = KV_SNAPSHOT };
	struct str place = drop_place(drop, number);
	struct kv_range range;
	struct kv_future *f;

	*ret_more = false;
	if (kv_clears_cheaply(kv_tx_store(tx)))
		return kv_clear_range(tx, begin, end);
	if (str_cmp(begin, place) < 0)
		begin = place;
	if (str_cmp(begin, end) >= 0)
		return STATUS_OK;
	f = kv_get_range(tx, begin, end, &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	for (size_t i = 0; i < range.count; i++)
		TRY(kv_clear(tx, range.pairs[i].key));
	*ret_more = range.more;
	if (range.more && range.count)
		drop_set_next(drop, number, range.pairs[range.count - 1].key);
	return STATUS_OK;
}

/* Clears what lies between the subspaces that are kept. */
static enum status
drop_clear_rest(struct kv_tx *tx, struct drop *drop, const struct catalog_kind *kind,
		uint64_t number, bool *ret_more)
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
		TRY(drop_clear_stretch(tx, drop, number, buf_str(&begin), buf_str(&end), ret_more));
		if (*ret_more)
			return STATUS_OK;
		buf_clear(&begin);
		TRY(tuple_prefix_end(buf_str(&end), &begin));
		TRY(catalog_key_status(&begin));
	}
	return drop_clear_stretch(tx, drop, number, buf_str(&begin), buf_str(&last), ret_more);
}

/* The next stretch of a database that was deleted lately; then its record is moved. */
static enum status
drop_keep_body(struct kv_tx *tx, struct drop *drop, uint64_t number,
	       const struct catalog_drop *record, struct str value)
{
	const struct catalog_kind *kind = catalog_kind_find(record->kind);
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	bool more = false;

	/* What a kind keeps that this process does not know is cleared with all the rest. */
	if (kind)
		TRY(drop_clear_rest(tx, drop, kind, number, &more));
	if (more || drop_place(drop, number).len)
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
drop_clear_all(struct kv_tx *tx, struct drop *drop, uint64_t number, struct str key)
{
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	bool more;

	TRY(database_range(number, &begin, &end));
	TRY(drop_clear_stretch(tx, drop, number, buf_str(&begin), buf_str(&end), &more));
	if (more || drop_place(drop, number).len)
		return STATUS_OK;
	return kv_clear(tx, key);
}

/* The next database that was deleted lately. STATUS_NOT_FOUND if there is none. */
static enum status
drop_clear_dropped(struct kv_tx *tx, struct drop *drop)
{
	struct catalog_drop record;
	struct tuple_reader tail;
	uint64_t number;
	struct str value;

	for (;;) {
		enum status status;

		TRY(record_first(tx, drop, DROP_LIST_DROPPED, &tail, &value));
		status = tuple_next_u64(&tail, &number);
		if (status == STATUS_OK)
			status = catalog_drop_record_parse(value, &record, drop->err);
		if (status == STATUS_OK)
			break;
		TRY(drop_pass_over(drop, status));
	}
	if (record.until_ms > drop->now_ms)
		return drop_keep_body(tx, drop, number, &record, value);
	return drop_clear_all(tx, drop, number, buf_str(&drop->key));
}

/* The next database of which something was kept, if its time is over. Likewise. */
static enum status
drop_clear_kept(struct kv_tx *tx, struct drop *drop)
{
	struct tuple_reader tail;
	uint64_t number, ms;
	struct str value;

	for (;;) {
		enum status status;

		TRY(record_first(tx, drop, DROP_LIST_KEPT, &tail, &value));
		status = tuple_next_u64(&tail, &ms);
		if (status == STATUS_OK)
			status = tuple_next_u64(&tail, &number);
		if (status == STATUS_OK)
			break;
		TRY(drop_pass_over(drop, status));
	}
	if (ms > drop->now_ms)
		return STATUS_NOT_FOUND;
	return drop_clear_all(tx, drop, number, buf_str(&drop->key));
}

/* Clears the next stretch of a deleted database, and its record when none is left. */
static enum status
drop_clear_body(struct kv_tx *tx, void *arg)
{
	struct drop *drop = arg;
	enum status status;

	drop->next = (struct catalog_sweep_place){ 0 };
	status = drop_clear_dropped(tx, drop);
	if (status == STATUS_NOT_FOUND)
		status = drop_clear_kept(tx, drop);
	drop->found = status != STATUS_NOT_FOUND;
	return drop->found ? status : STATUS_OK;
}

/*
 * One transaction. `*ret_passed`: it met a database with keys that cannot be read, and did nothing
 * else.
 */
static enum status
drop_run(struct drop *drop, bool *ret_passed)
{
	struct catalog_sweeping *s = drop->sweeping;
	enum status status = kv_run(s->store, drop_clear_body, drop, NULL, drop->err);

	if (status == STATUS_OK)
		s->place = drop->next;
	*ret_passed = chore_may_pass(status) && drop->key.len;
	return *ret_passed ? drop_pass_over(drop, status) : status;
}

enum status
catalog_drop_sweep(struct catalog_sweeping *s, uint64_t now_ms, unsigned transactions,
		   bool *ret_more, struct err *err)
{
	struct drop drop = drop_init(s, now_ms, CATALOG_DROP_KEYS, err);
	enum status status = STATUS_OK;
	bool passed;

	while (transactions && drop.found && status == STATUS_OK) {
		status = drop_run(&drop, &passed);
		transactions -= !passed;
	}
	drop_release(&drop);
	TRY(status);
	*ret_more = drop.found;
	return STATUS_OK;
}

enum status
catalog_drop_clear(struct catalog_sweeping *s, bool *ret_more, struct err *err)
{
	struct drop drop = drop_init(s, steady_ms(), CATALOG_DROP_ALONE_KEYS, err);
	enum status status;
	bool passed;

	do
		status = drop_run(&drop, &passed);
	while (status == STATUS_OK && passed);
	drop_release(&drop);
	TRY(status);
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
drop_chore_run(void *sweeping, struct chore_turn *turn, struct err *err)
{
	return catalog_drop_sweep(sweeping, steady_ms(), turn->budget, &turn->more, err);
}

void
catalog_chores_add(struct chores *chores, struct catalog_sweeping *s)
{
	catalog_clock_chores_add(chores, s->store);
	chores_add(chores, &(struct chore){
				   .name = DROP_CHORE,
				   .run = drop_chore_run,
				   .arg = s,
				   .leased = true,
				   .budget = DROP_CHORE_TRANSACTIONS,
				   .pause_ms = DROP_CHORE_PAUSE_MS,
				   .more_ms = DROP_CHORE_MORE_MS,
			   });
}
