/* Opening and closing a store, and what it tells about itself. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kv/embedded/range_int.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum {
	STORE_FORMAT = 1, /* the value of (ROOT, FORMAT) */
	FORMAT_KEY_MAX_BYTES = 16,
};

/* ---- Opening ---- */

static enum status
check_directory(const char *path, const struct kv_options *options, bool *ret_new, struct err *err)
{
	struct stat st;

	*ret_new = false;
	if (stat(path, &st) == 0) {
		if (!S_ISDIR(st.st_mode))
			return err_set(err, STATUS_INVALID, "%s is not a directory", path);
		return STATUS_OK;
	}
	if (errno != ENOENT)
		return err_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
	if (!options->create || options->read_only)
		return err_set(err, STATUS_NOT_FOUND, "there is no store at %s", path);
	*ret_new = true;
	return STATUS_OK;
}

static enum status
open_to_write(struct emb_store *store, const char *path, const struct kv_options *options,
	      struct err *err)
{
	char *error = NULL;

	TRY(emb_logs_check(path, err));
	store->db = rocksdb_open(store->options, path, &error);
	if (!error)
		return STATUS_OK;
	if (!options->create && strstr(error, "does not exist")) {
		rocksdb_free(error);
		return err_set(err, STATUS_NOT_FOUND, "there is no store at %s", path);
	}
	return emb_error(error, path, err);
}

static enum status
try_to_read(struct emb_store *store, const char *path, struct err *err)
{
	char *error = NULL;

	TRY(emb_logs_check(path, err));
	store->db = rocksdb_open_for_read_only(store->options, path, 0, &error);
	return error ? emb_error(error, path, err) : STATUS_OK;
}

/*
 * Another process may be writing, and RocksDB reads the manifest, the directory and the logs one
 * after another: a log that has been made into a table meanwhile, and deleted, is then in neither,
 * while later logs are replayed. An opening counts if the files have not changed during it.
 */
static enum status
open_to_read(struct emb_store *store, const char *path, struct err *err)
{
	struct emb_manifest before;
	struct emb_manifest after;

	for (int attempts = 0; attempts < EMB_READ_ATTEMPTS; attempts++) {
		struct err why = { 0 };
		enum status status;
		struct event never;

		emb_manifest_look(path, &before);
		if (!before.name[0])
			return err_set(err, STATUS_NOT_FOUND, "there is no store at %s", path);
		status = try_to_read(store, path, &why);
		emb_manifest_look(path, &after);
		if (emb_manifest_eq(&before, &after))
			return status == STATUS_OK ? status : err_set(err, status, "%s", why.text);
		if (store->db)
			rocksdb_close(store->db);
		store->db = NULL;
		event_init(&never);
		event_wait(&never, clock_after_ms(EMB_READ_PAUSE_MS));
	}
	return err_set(err, STATUS_UNAVAILABLE,
		       "%s: another process changes the store faster than it can be opened", path);
}

static enum status
open_rocksdb(struct emb_store *store, const char *path, const struct kv_options *options,
	     struct err *err)
{
	store->cache = rocksdb_cache_create_lru(options->cache_bytes ? options->cache_bytes
								     : EMB_CACHE_BYTES);
	store->options = emb_options(store->cache, options->create);
	store->read_latest = rocksdb_readoptions_create();
	rocksdb_readoptions_set_total_order_seek(store->read_latest, 1);
	store->write_options = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(store->write_options, !options->no_sync);
	store->write_at_once = rocksdb_writeoptions_create();
	rocksdb_writeoptions_set_sync(store->write_at_once, !options->no_sync);
	rocksdb_writeoptions_set_no_slowdown(store->write_at_once, 1);
	return options->read_only ? open_to_read(store, path, err)
				  : open_to_write(store, path, options, err);
}

/* Copies a value of at most `*len` bytes and says how long it is: 0 when absent. */
static enum status
read_own(struct emb_store *store, struct str key, char *ret, size_t *len, struct err *err)
{
	rocksdb_pinnableslice_t *slice;
	char *error = NULL;
	size_t found = 0;
	const char *value;

	slice = rocksdb_get_pinned(store->db, store->read_latest, key.ptr, key.len, &error);
	if (error)
		return emb_error(error, "reading the store's format", err);
	value = slice ? rocksdb_pinnableslice_value(slice, &found) : NULL;
	if (found <= *len && value)
		memcpy(ret, value, found);
	rocksdb_pinnableslice_destroy(slice);
	if (found > *len)
		return err_set(err, STATUS_CORRUPT, "the store's format is not known");
	*len = found;
	return STATUS_OK;
}

static bool
is_empty(struct emb_store *store)
{
	rocksdb_iterator_t *it = rocksdb_create_iterator(store->db, store->read_latest);
	bool empty;

	rocksdb_iter_seek_to_first(it);
	empty = !rocksdb_iter_valid(it);
	rocksdb_iter_destroy(it);
	return empty;
}

static uint64_t
decode_version(const char bytes[sizeof(uint64_t)])
{
	uint64_t version = 0;

	for (size_t i = 0; i < sizeof(uint64_t); i++)
		version = version << 8 | (uint8_t)bytes[i];
	return version;
}

/* The first write of a new store: its format, and version 1. */
static enum status
write_format(struct emb_store *store, struct str key, struct err *err)
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
check_format(struct emb_store *store, const struct kv_options *options, struct err *err)
{
	struct buf key AUTO(buf_release) = BUF_INIT(FORMAT_KEY_MAX_BYTES);
	char value[FORMAT_KEY_MAX_BYTES];
	size_t len = sizeof(value);
	struct tuple_reader r;
	uint64_t format;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_FORMAT);
	TRY(buf_status(&key));
	TRY(read_own(store, buf_str(&key), value, &len, err));
	if (len == 0) {
		if (options->create && !options->read_only && is_empty(store))
			return write_format(store, buf_str(&key), err);
		return err_set(err, STATUS_CORRUPT, "a database is there, but not one of frond's");
	}
	r = tuple_reader(str_of(value, len));
	if (tuple_next_u64(&r, &format) != STATUS_OK)
		return err_set(err, STATUS_CORRUPT, "the store's format is not a number");
	if (format != STORE_FORMAT)
		return err_set(err, STATUS_UNSUPPORTED,
			       "the store has format %llu, and this program knows %d",
			       (unsigned long long)format, STORE_FORMAT);
	return STATUS_OK;
}

static enum status
read_versions(struct emb_store *store, struct err *err)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES] = { 0 };
	char version[sizeof(uint64_t)] = { 0 };
	size_t len = sizeof(version);

	TRY(read_own(store, EMB_KEY_VERSION, version, &len, err));
	if (len != sizeof(version))
		return err_set(err, STATUS_CORRUPT, "the store does not know its version");
	len = sizeof(metadata);
	TRY(read_own(store, EMB_KEY_METADATA, (char *)metadata, &len, err));
	emb_versions_init(&store->versions, decode_version(version), metadata);
	return STATUS_OK;
}

/*
 * Whether a file has a deleted range: the aggregate of the files' properties is text. Opening has
 * written what was in the log to files, unless it was opened for reading only.
 */
static bool
files_have_deleted_ranges(struct emb_store *store)
{
	static const char name[] = "# range deletions=";
	char *text = rocksdb_property_value(store->db, "rocksdb.aggregated-table-properties");
	const char *found = text ? strstr(text, name) : NULL;
	bool none = found && strncmp(found + sizeof(name) - 1, "0;", 2) == 0;

	rocksdb_free(text);
	return !none;
}

/* Undoes open_rocksdb(), however far it got. */
static void
close_rocksdb(struct emb_store *store)
{
	if (store->db)
		rocksdb_close(store->db);
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
start(struct emb_store *store, struct err *err)
{
	enum status status = STATUS_OK;

	store->watches = watches_new();
	if (!store->watches)
		status = err_set(err, STATUS_NOMEM, "out of memory");
	queue_init(&store->queue);
	if (status == STATUS_OK && !store->base.read_only)
		status = emb_committer_start(store, err);
	return status;
}

/* Undoes start(), however far it got. */
static void
stop(struct emb_store *store)
{
	emb_committer_stop(store);
	pthread_cond_destroy(&store->queue.filled);
	pthread_mutex_destroy(&store->queue.lock);
	if (store->watches)
		watches_close(store->watches);
	emb_versions_fini(store);
}

static enum status
open_at(struct emb_store *store, const char *path, const struct kv_options *options,
	struct err *err)
{
	enum status status;
	bool is_new;

	TRY(check_directory(path, options, &is_new, err));
	TRY(open_rocksdb(store, path, options, err));
	if (is_new && !options->no_sync)
		TRY(emb_directory_sync(path, err));
	TRY(check_format(store, options, err));
	TRY(read_versions(store, err));
	atomic_init(&store->has_deleted_ranges,
		    options->read_only || files_have_deleted_ranges(store));
	status = start(store, err);
	if (status != STATUS_OK)
		stop(store);
	return status;
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
	if (store && path) {
		store->base.engine = &kv_engine_embedded;
		store->base.read_only = options->read_only;
		status = open_at(store, path, options, err);
	} else {
		status = err_set(err, STATUS_NOMEM, "out of memory");
	}
	mem_free(path);
	if (status != STATUS_OK) {
		if (store)
			close_rocksdb(store);
		mem_free(store);
		return status;
	}
	*ret = &store->base;
	return STATUS_OK;
}

static void
emb_close(struct kv_store *base)
{
	struct emb_store *store = (struct emb_store *)base;

	stop(store);
	close_rocksdb(store);
	mem_free(store);
}

/* ---- Telling ---- */

static uint64_t
property(struct emb_store *store, const char *name)
{
	uint64_t value;

	return rocksdb_property_int(store->db, name, &value) == 0 ? value : 0;
}

static struct kv_store_stats
emb_store_stats(struct kv_store *base)
{
	struct emb_store *store = (struct emb_store *)base;

	return (struct kv_store_stats){
		.commits = atomic_load_explicit(&store->commits, memory_order_relaxed),
		.conflicts = atomic_load_explicit(&store->conflicts, memory_order_relaxed),
		.batches = atomic_load_explicit(&store->batches, memory_order_relaxed),
		.watches = watches_count(store->watches),
		.disk_bytes = property(store, "rocksdb.total-sst-files-size") +
			      property(store, "rocksdb.size-all-mem-tables"),
		.memory_bytes = atomic_load_explicit(&store->history_bytes, memory_order_relaxed) +
				property(store, "rocksdb.size-all-mem-tables") +
				property(store, "rocksdb.estimate-table-readers-mem") +
				rocksdb_cache_get_usage(store->cache),
		.refuses_writes = atomic_load_explicit(&store->failed, memory_order_relaxed),
	};
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
	.keeps_versions = true,
	.needs_address = true,
	.unknown_results = false,
	.open = emb_open,
	.close = emb_close,
	.begin = emb_begin,
	.store_stats = emb_store_stats,
	.estimate_bytes = emb_estimate_bytes,
	.compact = emb_compact,
	.backup_create = emb_backup_create,
	.backup_restore = emb_backup_restore,
	.tx_free = emb_tx_free,
	.tx_reset = emb_tx_reset,
	.cancel = emb_cancel,
	.get = emb_get,
	.get_range = emb_get_range,
	.get_read_version = emb_get_read_version,
	.set = emb_set,
	.clear_range = emb_clear_range,
	.clear = emb_clear,
	.atomic = emb_atomic,
	.set_versionstamped_key = emb_set_versionstamped_key,
	.set_versionstamped_value = emb_set_versionstamped_value,
	.add_read_conflict = emb_add_read_conflict,
	.add_write_conflict = emb_add_write_conflict,
	.get_metadata_version = emb_get_metadata_version,
	.touch_metadata_version = emb_touch_metadata_version,
	.commit = emb_commit,
	.committed_version = emb_committed_version,
	.versionstamp = emb_versionstamp,
	.watch = emb_watch,
	.retry_delay_ms = emb_retry_delay_ms,
	.future_free = emb_any_future_free,
	.future_settle = emb_future_settle,
};
