/*
 * What all engines share: choosing one by URL, the checks of arguments and limits, counting, and
 * waiting for futures.
 */
#include "kv/kv.h"

#include <assert.h>

#include "kv/engine.h"

enum {
	/* The end of a range may be the key right behind the longest one. */
	RANGE_END_MAX_BYTES = KV_LIMIT_KEY_BYTES + 1,
	SYSTEM_KEY_BYTE = 0xff,
};

/* ---- Stores ---- */

static const struct kv_engine *const engines[] = {
	&kv_engine_embedded,
	&kv_engine_faulty,
	&kv_engine_fdb,
};

/* The engine that `url` names, and its address there; NULL if there is none. */
static const struct kv_engine *
find_engine(const char *url, struct str *ret_address)
{
	const char *colon = strchr(url, ':');

	if (!colon)
		return NULL;
	*ret_address = str_from_cstr(colon + 1);
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (str_eq(str_of(url, (size_t)(colon - url)), str_from_cstr(engines[i]->scheme)))
			return engines[i];
	return NULL;
}

/* Why find_engine() has found none. */
static enum status
no_engine(const char *url, struct err *err)
{
	const char *colon = strchr(url, ':');

	if (!colon)
		return err_set(err, STATUS_INVALID,
			       "'%s' names no store: expected embedded:PATH or fdb:CLUSTER_FILE",
			       url);
	return err_set(err, STATUS_INVALID, "no engine is called '%.*s' (in '%s')",
		       (int)(colon - url), url, url);
}

enum status
kv_check_url(const char *url, struct err *err)
{
	struct str address;
	const struct kv_engine *engine = find_engine(url, &address);

	if (!engine)
		return no_engine(url, err);
	if (engine->needs_address && address.len == 0)
		return err_set(err, STATUS_INVALID, "%s: needs the path of a directory",
			       engine->scheme);
	return STATUS_OK;
}

enum status
kv_open(const char *url, const struct kv_options *options, struct kv_store **ret, struct err *err)
{
	static const struct kv_options defaults;
	struct str address;
	const struct kv_engine *engine;

	TRY(kv_check_url(url, err));
	engine = find_engine(url, &address);
	return engine->open(address, options ? options : &defaults, ret, err);
}

void
kv_close(struct kv_store *store)
{
	if (store)
		store->engine->close(store);
}

struct kv_store_stats
kv_store_stats(struct kv_store *store)
{
	return store->engine->store_stats(store);
}

static enum status
unsupported(const struct kv_engine *engine, const char *what, struct err *err)
{
	return err_set(err, STATUS_UNSUPPORTED, "stores of the engine \"%s\" cannot be %s",
		       engine->scheme, what);
}

enum status
kv_compact(struct kv_store *store, struct err *err)
{
	if (!store->engine->compact)
		return unsupported(store->engine, "compacted", err);
	return store->engine->compact(store, err);
}

enum status
kv_backup_create(struct kv_store *store, const char *dir, struct kv_backup *ret, struct err *err)
{
	if (!store->engine->backup_create)
		return unsupported(store->engine, "backed up", err);
	return store->engine->backup_create(store, dir, ret, err);
}

enum status
kv_backup_restore(const char *dir, uint32_t id, const char *url, kv_backup_finish *finish,
		  void *arg, struct kv_backup *ret, struct err *err)
{
	struct str address;
	const struct kv_engine *engine = find_engine(url, &address);

	if (!engine)
		return no_engine(url, err);
	if (!engine->backup_restore)
		return unsupported(engine, "restored", err);
	return engine->backup_restore(dir, id, address, finish, arg, ret, err);
}

/* ---- Checks ---- */

static bool
is_system_key(struct str key)
{
	return key.len && (uint8_t)key.ptr[0] == SYSTEM_KEY_BYTE;
}

static enum status
check_key(struct kv_tx *tx, struct str key)
{
	if (key.len > KV_LIMIT_KEY_BYTES)
		return err_set(&tx->err, STATUS_KEY_TOO_LARGE,
			       "a key of %zu bytes exceeds the limit of %d", key.len,
			       KV_LIMIT_KEY_BYTES);
	if (is_system_key(key))
		return err_set(&tx->err, STATUS_INVALID,
			       "keys that begin with FF belong to the store");
	return STATUS_OK;
}

static enum status
check_bound(struct kv_tx *tx, struct str bound)
{
	if (bound.len > RANGE_END_MAX_BYTES)
		return err_set(&tx->err, STATUS_KEY_TOO_LARGE,
			       "a range bound of %zu bytes exceeds the limit of %d", bound.len,
			       RANGE_END_MAX_BYTES);
	/* FF itself is the end of all keys that may be used. */
	if (is_system_key(bound) && bound.len > 1)
		return err_set(&tx->err, STATUS_INVALID,
			       "keys that begin with FF belong to the store");
	return STATUS_OK;
}

static enum status
check_range(struct kv_tx *tx, struct str begin, struct str end)
{
	TRY(check_bound(tx, begin));
	return check_bound(tx, end);
}

static enum status
check_value(struct kv_tx *tx, struct str value)
{
	if (value.len > KV_LIMIT_VALUE_BYTES)
		return err_set(&tx->err, STATUS_VALUE_TOO_LARGE,
			       "a value of %zu bytes exceeds the limit of %d", value.len,
			       KV_LIMIT_VALUE_BYTES);
	return STATUS_OK;
}

static enum status
check_writable(struct kv_tx *tx)
{
	if (tx->kind == KV_TX_READ_ONLY)
		return err_set(&tx->err, STATUS_FORBIDDEN, "the transaction is for reading only");
	return STATUS_OK;
}

static enum status
check_stamp(struct kv_tx *tx, struct str template, size_t offset)
{
	if (template.len < KV_VERSIONSTAMP_TX_BYTES ||
	    offset > template.len - KV_VERSIONSTAMP_TX_BYTES)
		return err_set(&tx->err, STATUS_INVALID,
			       "a versionstamp at offset %zu does not fit into %zu bytes", offset,
			       template.len);
	return STATUS_OK;
}

/* ---- Transactions ---- */

static void
tx_start_over(struct kv_tx *tx)
{
	tx->stats = (struct kv_tx_stats){ 0 };
	tx->wave = 0;
	tx->err.status = STATUS_OK;
	tx->err.text[0] = '\0';
}

enum status
kv_begin(struct kv_store *store, enum kv_tx_kind kind, struct kv_tx **ret)
{
	struct kv_tx *tx;

	if (store->read_only)
		kind = KV_TX_READ_ONLY;
	TRY(store->engine->begin(store, kind, &tx));
	tx->engine = store->engine;
	tx->store = store;
	tx->kind = kind;
	tx->attempts = 0;
	tx_start_over(tx);
	*ret = tx;
	return STATUS_OK;
}

void
kv_tx_free(struct kv_tx *tx)
{
	if (tx)
		tx->engine->tx_free(tx);
}

struct kv_store *
kv_tx_store(const struct kv_tx *tx)
{
	return tx->store;
}

void
kv_tx_reset(struct kv_tx *tx)
{
	tx->engine->tx_reset(tx);
	tx->attempts = 0;
	tx_start_over(tx);
}

void
kv_cancel(struct kv_tx *tx)
{
	tx->engine->cancel(tx);
}

const char *
kv_tx_error(const struct kv_tx *tx)
{
	return tx->err.text;
}

struct kv_tx_stats
kv_tx_stats(const struct kv_tx *tx)
{
	return tx->stats;
}

/* ---- Futures ---- */

/* clang-format off */
#define FAILED(s) [s] = { .done = true, .counted = true, .status = (s) }
/* clang-format on */

static struct kv_future failed[STATUS_COUNT] = {
	FAILED(STATUS_NOMEM),        FAILED(STATUS_LIMIT),         FAILED(STATUS_IO),
	FAILED(STATUS_CORRUPT),      FAILED(STATUS_UNAVAILABLE),   FAILED(STATUS_TIMEOUT),
	FAILED(STATUS_CANCELLED),    FAILED(STATUS_TX_CONFLICT),   FAILED(STATUS_TX_TOO_OLD),
	FAILED(STATUS_TX_UNKNOWN),   FAILED(STATUS_TX_USED),       FAILED(STATUS_TX_UNREADABLE),
	FAILED(STATUS_TX_TOO_LARGE), FAILED(STATUS_KEY_TOO_LARGE), FAILED(STATUS_INVALID),
};

struct kv_future *
kv_future_failed(enum status status)
{
	assert(failed[status].done && "a status that futures can fail with");
	return &failed[status];
}

/* Enters the answer into the statistics, once. */
static void
count_answer(struct kv_future *f)
{
	struct kv_tx_stats *stats = &f->tx->stats;

	f->counted = true;
	if (f->wave == f->tx->wave) {
		stats->round_trips++;
		f->tx->wave++;
	}
	if (f->status != STATUS_OK)
		return;
	stats->reads++;
	if (f->kind == KV_FUTURE_VALUE && f->present) {
		stats->keys_read++;
		stats->bytes_read += f->key_bytes + f->value.len;
	} else if (f->kind == KV_FUTURE_RANGE) {
		stats->keys_read += f->range.count;
		for (size_t i = 0; i < f->range.count; i++)
			stats->bytes_read += f->range.pairs[i].key.len +
					     f->range.pairs[i].value.len;
	}
}

static void
settle(struct kv_future *f)
{
	if (!f->done && f->engine && f->engine->future_settle)
		f->engine->future_settle(f);
}

enum status
kv_future_wait(struct kv_future *f)
{
	settle(f);
	if (!f->done)
		event_wait(&f->event, WAIT_FOREVER);
	if (f->status != STATUS_OK && f->engine && f->engine->future_explain)
		f->engine->future_explain(f);
	if (!f->counted && (f->kind == KV_FUTURE_VALUE || f->kind == KV_FUTURE_RANGE))
		count_answer(f);
	return f->status;
}

bool
kv_future_ready(const struct kv_future *f)
{
	return f->done || event_is_set(&f->event);
}

struct event *
kv_future_event(struct kv_future *f)
{
	settle(f);
	return kv_future_ready(f) ? NULL : &f->event;
}

void
kv_future_free(struct kv_future *f)
{
	if (f && f->engine)
		f->engine->future_free(f);
}

bool
kv_future_value(struct kv_future *f, struct str *ret)
{
	if (!f->present)
		return false;
	*ret = f->value;
	return true;
}

struct kv_range
kv_future_range(struct kv_future *f)
{
	return f->range;
}

/* ---- Reads ---- */

struct kv_future *
kv_get(struct kv_tx *tx, struct str key, enum kv_read mode)
{
	enum status status = check_key(tx, key);
	struct kv_future *f;

	if (status != STATUS_OK)
		return kv_future_failed(status);
	f = tx->engine->get(tx, key, mode);
	if (f->engine) {
		f->wave = tx->wave;
		f->key_bytes = (uint32_t)key.len;
	}
	return f;
}

struct kv_future *
kv_get_range(struct kv_tx *tx, struct str begin, struct str end,
	     const struct kv_range_options *options)
{
	enum status status = check_range(tx, begin, end);
	struct kv_range_options full = { 0 };
	struct kv_future *f;

	if (status != STATUS_OK)
		return kv_future_failed(status);
	if (options)
		full = *options;
	if (full.limit == 0)
		full.limit = SIZE_MAX;
	if (full.limit_bytes == 0)
		full.limit_bytes = KV_LIMIT_RANGE_BYTES;
	f = tx->engine->get_range(tx, begin, end, &full);
	if (f->engine)
		f->wave = tx->wave;
	return f;
}

enum status
kv_get_read_version(struct kv_tx *tx, uint64_t *ret)
{
	return tx->engine->get_read_version(tx, ret);
}

enum status
kv_estimate_bytes(struct kv_store *store, struct str begin, struct str end, uint64_t *ret)
{
	return store->engine->estimate_bytes(store, begin, end, ret);
}

enum status
kv_get_metadata_version(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	return tx->engine->get_metadata_version(tx, ret);
}

struct kv_future *
kv_watch(struct kv_tx *tx, struct str key)
{
	enum status status = check_key(tx, key);

	return status == STATUS_OK ? tx->engine->watch(tx, key) : kv_future_failed(status);
}

/* ---- Writes ---- */

static void
count_set(struct kv_tx *tx, struct str key, struct str value)
{
	tx->stats.sets++;
	tx->stats.bytes_written += key.len + value.len;
}

enum status
kv_set(struct kv_tx *tx, struct str key, struct str value)
{
	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, value));
	TRY(tx->engine->set(tx, key, value));
	count_set(tx, key, value);
	return STATUS_OK;
}

enum status
kv_clear(struct kv_tx *tx, struct str key)
{
	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(tx->engine->clear(tx, key));
	tx->stats.clears++;
	tx->stats.bytes_written += key.len;
	return STATUS_OK;
}

bool
kv_keeps_versions(const struct kv_store *store)
{
	return store->engine->keeps_versions;
}

bool
kv_clears_cheaply(const struct kv_store *store)
{
	return store->engine->cheap_clears;
}

bool
kv_is_shared(const struct kv_store *store)
{
	return store->engine->shared;
}

enum status
kv_clear_range(struct kv_tx *tx, struct str begin, struct str end)
{
	TRY(check_writable(tx));
	TRY(check_range(tx, begin, end));
	TRY(tx->engine->clear_range(tx, begin, end));
	if (str_cmp(begin, end) >= 0)
		return STATUS_OK; /* nothing has been written, and the commit may have no version */
	tx->stats.clears++;
	tx->stats.bytes_written += begin.len + end.len;
	return STATUS_OK;
}

enum status
kv_atomic(struct kv_tx *tx, enum kv_atomic op, struct str key, struct str operand)
{
	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, operand));
	TRY(tx->engine->atomic(tx, op, key, operand));
	count_set(tx, key, operand);
	return STATUS_OK;
}

enum status
kv_set_versionstamped_key(struct kv_tx *tx, struct str key, size_t offset, struct str value)
{
	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, value));
	TRY(check_stamp(tx, key, offset));
	TRY(tx->engine->set_versionstamped_key(tx, key, offset, value));
	count_set(tx, key, value);
	return STATUS_OK;
}

enum status
kv_set_versionstamped_value(struct kv_tx *tx, struct str key, struct str value, size_t offset)
{
	TRY(check_writable(tx));
	TRY(check_key(tx, key));
	TRY(check_value(tx, value));
	TRY(check_stamp(tx, value, offset));
	TRY(tx->engine->set_versionstamped_value(tx, key, value, offset));
	count_set(tx, key, value);
	return STATUS_OK;
}

enum status
kv_add_read_conflict_range(struct kv_tx *tx, struct str begin, struct str end)
{
	TRY(check_range(tx, begin, end));
	return tx->engine->add_read_conflict(tx, begin, end);
}

enum status
kv_add_write_conflict_range(struct kv_tx *tx, struct str begin, struct str end)
{
	TRY(check_writable(tx));
	TRY(check_range(tx, begin, end));
	return tx->engine->add_write_conflict(tx, begin, end);
}

enum status
kv_touch_metadata_version(struct kv_tx *tx)
{
	TRY(check_writable(tx));
	TRY(tx->engine->touch_metadata_version(tx));
	tx->stats.sets++;
	return STATUS_OK;
}

/* ---- The end ---- */

struct kv_future *
kv_commit(struct kv_tx *tx)
{
	return tx->engine->commit(tx);
}

enum status
kv_committed_version(struct kv_tx *tx, uint64_t *ret)
{
	return tx->engine->committed_version(tx, ret);
}

enum status
kv_versionstamp(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES])
{
	return tx->engine->versionstamp(tx, ret);
}
