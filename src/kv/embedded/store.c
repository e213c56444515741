/*
 * Opening and closing a store, what it tells about itself, and the table of the engine's functions.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parent.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/gaps.h"
#include "kv/embedded/handle.h"
#include "kv/embedded/kept.h"
#include "kv/embedded/metrics.h"
#include "kv/embedded/options.h"
#include "kv/embedded/range_int.h"
#include "kv/embedded/reopen.h"
#include "kv/embedded/salvage_int.h"
#include "kv/embedded/upkeep.h"
#include "kv/embedded/watch_int.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum {
	STORE_FORMAT = 1, /* the value of (ROOT, FORMAT) */
	FORMAT_KEY_MAX_BYTES = 16,
};

/* ---- Opening ---- */

static enum status
store_check_directory(const char *path, const struct kv_options *options, bool *ret_new,
		      struct err *err)
{
	struct emb_manifest manifest;
	struct stat st;

	*ret_new = false;
	if (stat(path, &st) == 0) {
		if (!S_ISDIR(st.st_mode))
			return err_set(err, STATUS_INVALID, "%s is not a directory", path);
		emb_manifest_look(path, &manifest);
		if (manifest.name[0] || !options->create || options->read_only)
			return STATUS_OK;
		return emb_directory_check_vacant(path, err);
	}
	if (errno != ENOENT)
		return err_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
	if (!options->create || options->read_only)
		return err_set(err, STATUS_NOT_FOUND, "there is no store at %s", path);
	*ret_new = true;
	return STATUS_OK;
}

static enum status
store_open_rocksdb(struct emb_store *store, const struct kv_options *options, struct err *err)
{
	store->cache = rocksdb_cache_create_lru(options->cache_bytes ? options->cache_bytes
								     : emb_cache_bytes());
	store->options = emb_options(store->cache, &store->entities,
				     emb_directory_tables(store->path), options->write_buffer_bytes,
				     options->create);
	store->keeps_log = emb_kept_options(store, options);
	store->read_latest = rocksdb_readoptions_create();
	rocksdb_readoptions_set_total_order_seek(store->read_latest, 1);
	store->write_options = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(store->write_options, !options->no_sync);
	store->write_at_once = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(store->write_at_once, !options->no_sync);
	rocksdb_writeoptions_set_no_slowdown(store->write_at_once, 1);
	return options->read_only ? emb_handle_open_to_read(store, err)
				  : emb_reopen_first(store, options->reads_if_unwritable, err);
}

static bool
store_is_empty(struct emb_store *store)
{
	rocksdb_iterator_t *it = rocksdb_create_iterator(store->db, store->read_latest);
	bool empty;

	rocksdb_iter_seek_to_first(it);
	empty = !rocksdb_iter_valid(it);
	rocksdb_iter_destroy(it);
	return empty;
}

/* The first write of a new store: its format, and version 1. */
static enum status
store_write_format(struct emb_store *store, struct str key, struct err *err)
{
	struct buf value AUTO(buf_release) = BUF_INIT(FORMAT_KEY_MAX_BYTES);
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct str version_key = EMB_KEY_VERSION;
	rocksdb_writebatch_t *batch;
	char *error = NULL;

	tuple_put_u64(&value, STORE_FORMAT);
	TRY(buf_status(&value));
	stamp_write(version, 1, 0);
	batch = rocksdb_writebatch_create();
	rocksdb_writebatch_put(batch, key.ptr, key.len, value.ptr, value.len);
	rocksdb_writebatch_put(batch, version_key.ptr, version_key.len, (const char *)version,
			       sizeof(uint64_t));
	rocksdb_write(store->db, store->write_options, batch, &error);
	rocksdb_writebatch_destroy(batch);
	return error ? emb_error(error, "writing a new store", err) : STATUS_OK;
}

static enum status
store_check_format(struct emb_store *store, const struct kv_options *options, struct err *err)
{
	struct buf key AUTO(buf_release) = BUF_INIT(FORMAT_KEY_MAX_BYTES);
	char value[FORMAT_KEY_MAX_BYTES];
	size_t len = sizeof(value);
	struct tuple_reader r;
	uint64_t format;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_FORMAT);
	TRY(buf_status(&key));
	TRY(emb_handle_read(store, buf_str(&key), value, &len, err));
	if (len == 0) {
		if (options->create && !options->read_only && store_is_empty(store))
			return store_write_format(store, buf_str(&key), err);
		return err_set(err, STATUS_CORRUPT, "a database is there, but not one of frond's");
	}
	r = tuple_reader(str_of(value, len));
	if (tuple_next_u64(&r, &format) != STATUS_OK)
		return err_set(err, STATUS_CORRUPT, "the store's format is not a number");
	/* Which formats can be read is not the engine's to know: catalog/store_format.h. */
	return STATUS_OK;
}

static enum status
store_read_versions(struct emb_store *store, struct err *err)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	uint64_t version;

	TRY(emb_handle_versions(store, &version, metadata, err));
	emb_versions_init(&store->versions, version, metadata);
	return STATUS_OK;
}

/* Undoes store_open_rocksdb(), however far it got. */
static void
store_close_rocksdb(struct emb_store *store)
{
	emb_handle_close(store);
	if (store->write_options)
		rocksdb_writeoptions_destroy(store->write_options);
	if (store->write_at_once)
		rocksdb_writeoptions_destroy(store->write_at_once);
	if (store->read_latest)
		rocksdb_readoptions_destroy(store->read_latest);
	if (store->options)
		rocksdb_options_destroy(store->options);
	if (store->cache)
		rocksdb_cache_destroy(store->cache);
}

static void
queue_init(struct emb_queue *q)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->filled, &attr);
	pthread_condattr_destroy(&attr);
}

static enum status
store_start(struct emb_store *store, const struct kv_options *options, struct err *err)
{
	uint64_t recent_bytes = options->recent_bytes;
	enum status status = STATUS_OK;

	if (recent_bytes == KV_RECENT_BY_MEMORY)
		recent_bytes = emb_recent_bytes();
	store->recent = recent_bytes ? recent_new(recent_bytes) : NULL;
	store->watches = watches_new();
	store->gaps = gaps_new();
	store->search_ns = options->search_ns ? options->search_ns : GAPS_SEARCH_NS;
	if (!store->watches || !store->gaps || (recent_bytes && !store->recent))
		status = err_set(err, STATUS_NOMEM, "out of memory");
	queue_init(&store->queue);
	if (status == STATUS_OK && !store->base.read_only)
		status = emb_committer_start(store, err);
	return status;
}

/* Undoes store_start(), however far it got. */
static void
store_stop(struct emb_store *store)
{
	emb_committer_stop(store);
	pthread_cond_destroy(&store->queue.filled);
	pthread_mutex_destroy(&store->queue.lock);
	if (store->watches)
		watches_close(store->watches);
	recent_free(store->recent);
	gaps_free(store->gaps);
	emb_versions_fini(store);
}

static enum status
store_open_at(struct emb_store *store, const struct kv_options *options, struct err *err)
{
	enum status status;
	bool is_new;

	TRY(store_check_directory(store->path, options, &is_new, err));
	TRY(emb_entities_init(&store->entities, options->shape, err));
	TRY(store_open_rocksdb(store, options, err));
	/* From now on it is there, and must not be made anew if it should be gone. */
	rocksdb_options_set_create_if_missing(store->options, 0);
	store->health.create = false;
	if (is_new && !options->no_sync)
		TRY(parent_sync(store->path, err));
	TRY(store_check_format(store, options, err));
	TRY(store_read_versions(store, err));
	TRY(emb_kept_begin(store, options, err));
	status = store_start(store, options, err);
	if (status != STATUS_OK)
		store_stop(store);
	return status;
}

static void
store_free(struct emb_store *store)
{
	emb_kept_end(store);
	store_close_rocksdb(store);
	emb_reopen_fini(store);
	gate_fini(&store->gate);
	emb_spares_fini(store);
	emb_damages_release(&store->damages);
	mem_free(store->path);
	mem_free(store);
}

static enum status
emb_open(struct str address, const struct kv_options *options, struct kv_store **ret,
	 struct err *err)
{
	struct emb_store *store;
	enum status status;
	char *path;

	store = mem_zalloc(sizeof(*store));
	path = mem_strdup(address);
	if (!store || !path) {
		mem_free(store);
		mem_free(path);
		return err_set(err, STATUS_NOMEM, "out of memory");
	}
	store->base.engine = &kv_engine_embedded;
	store->base.read_only = options->read_only;
	store->base.follows = options->follows;
	atomic_init(&store->heard.equal_ns, clock_mono_ns());
	store->path = path;
	emb_damages_init(&store->damages);
	gate_init(&store->gate);
	fill_init(&store->fill);
	emb_spares_init(store);
	emb_reopen_init(store, options);
	status = store_open_at(store, options, err);
	if (status != STATUS_OK) {
		store_free(store);
		return status;
	}
	emb_metrics_begin(store);
	*ret = &store->base;
	return STATUS_OK;
}

static void
emb_close(struct kv_store *base)
{
	struct emb_store *store = (struct emb_store *)base;

	/* Nobody waits for a commit: every transaction has been freed. */
	assert(store->queue.txs == 0 && !store->queue.first);
	emb_metrics_end(store);
	store_stop(store);
	store_free(store);
}

/* ---- Telling ---- */

static uint64_t
store_property(struct emb_store *store, const char *name)
{
	uint64_t value;

	return rocksdb_property_int(store->db, name, &value) == 0 ? value : 0;
}

/* What RocksDB tells; nothing while the store is being opened again. */
static void
store_ask_rocksdb(struct emb_store *store, struct kv_store_stats *ret)
{
	uint64_t unflushed;
	struct gate_pass pass;

	if (!gate_enter(&store->gate, &pass))
		return;
	if (store->db) {
		unflushed = store_property(store, "rocksdb.size-all-mem-tables");
		ret->disk_bytes = store_property(store, "rocksdb.total-sst-files-size") + unflushed;
		ret->memory_bytes = unflushed +
				    store_property(store, "rocksdb.estimate-table-readers-mem");
	}
	gate_leave(pass);
}

static struct kv_store_stats
emb_store_stats(struct kv_store *base)
{
	struct emb_store *store = (struct emb_store *)base;
	const struct emb_health *h = &store->health;
	struct recent_stats recent = recent_stats(store->recent);
	struct kv_store_stats stats = {
		.commits = atomic_load_explicit(&store->commits, memory_order_relaxed),
		.conflicts = atomic_load_explicit(&store->conflicts, memory_order_relaxed),
		.batches = atomic_load_explicit(&store->batches, memory_order_relaxed),
		.watches = watches_count(store->watches),
		.state = emb_reopen_state(store),
		.reopenings = atomic_load_explicit(&h->reopenings, memory_order_relaxed),
		.failed_writes = atomic_load_explicit(&h->failed_writes, memory_order_relaxed),
	};

	store_ask_rocksdb(store, &stats);
	stats.memory_bytes += atomic_load_explicit(&store->history_bytes, memory_order_relaxed) +
			      rocksdb_cache_get_usage(store->cache) + recent.bytes;
	return stats;
}

static void
emb_any_future_free(struct kv_future *f)
{
	switch (f->kind) {
	case KV_FUTURE_VALUE:
	case KV_FUTURE_RANGE:
		emb_future_free((struct emb_future *)f);
		break;
	case KV_FUTURE_WATCH:
		emb_watch_free(f);
		break;
	case KV_FUTURE_COMMIT:
		break; /* part of its transaction */
	}
}

static void
emb_future_settle(struct kv_future *f)
{
	if (f->kind == KV_FUTURE_RANGE)
		emb_ahead_settle((struct emb_future *)f);
}

const struct kv_engine kv_engine_embedded = {
	.scheme = "embedded",
	.library = "rocksdb " FROND_ROCKSDB_VERSION,
	.keeps_versions = true,
	.needs_address = true,
	.unknown_results = false,
	.open = emb_open,
	.close = emb_close,
	.begin = emb_begin,
	.store_stats = emb_store_stats,
	.estimate_bytes = emb_estimate_bytes,
	.compact = emb_compact,
	.damages = emb_damages_list,
	.files_check = emb_files_check,
	.backup_create = emb_backup_create,
	.backup_restore = emb_backup_restore,
	.salvage = emb_salvage,
	.tx_free = emb_tx_free,
	.tx_reset = emb_tx_reset,
	.cancel = emb_cancel,
	.get = emb_get,
	.get_head = emb_get_head,
	.get_many = emb_get_many,
	.get_range = emb_get_range,
	.get_read_version = emb_get_read_version,
	.set = emb_set,
	/* The resolver takes no step of its own for a key within a range of the transaction. */
	.set_no_conflict = emb_set,
	.clear_range = emb_clear_range,
	.clear = emb_clear,
	.atomic = emb_atomic,
	.set_versionstamped_key = emb_set_versionstamped_key,
	.set_versionstamped_value = emb_set_versionstamped_value,
	.add_read_conflict = emb_add_read_conflict,
	.add_write_conflict = emb_add_write_conflict,
	.get_metadata_version = emb_get_metadata_version,
	.touch_metadata_version = emb_touch_metadata_version,
	.refresh = emb_refresh,
	.commit = emb_commit,
	.committed_version = emb_committed_version,
	.versionstamp = emb_versionstamp,
	.watch = emb_watch,
	.retry_delay_ms = emb_retry_delay_ms,
	.future_free = emb_any_future_free,
	.future_settle = emb_future_settle,
};
