/* Stores: connecting to a cluster. */
#include "base/mem.h"
#include "kv/fdb/fdb_int.h"

static enum status
store_set_option(struct fdb_store *store, int option, uint64_t n, struct err *err)
{
	uint8_t value[FDB_NUMBER_BYTES];
	int code;

	fdb_put_number(value, n);
	code = fdb.database_set_option(store->database, option, value, sizeof(value));
	if (code != 0)
		return err_set(err, fdb_status(code), "option %d: %s", option, fdb.get_error(code));
	return STATUS_OK;
}

/*
 * The library connects when it likes, and waits for a cluster for ever. Asking for a read version
 * with a timeout tells whether there is one.
 */
static enum status
store_find_cluster(struct fdb_store *store, struct err *err)
{
	struct kv_tx *tx;
	enum status status;
	uint64_t version;

	status = kv_begin(&store->base, KV_TX_READ_ONLY, &tx);
	if (status != STATUS_OK)
		return err_set(err, status, "no transaction can begin: %s", status_name(status));
	fdb_tx_set_timeout((struct fdb_tx *)tx, FDB_OPEN_TIMEOUT_MS);
	status = kv_get_read_version(tx, &version);
	if (status != STATUS_OK)
		status = err_set(err, STATUS_UNAVAILABLE,
				 "no FoundationDB cluster answers within %d ms: %s",
				 FDB_OPEN_TIMEOUT_MS, kv_tx_error(tx));
	kv_tx_free(tx);
	return status;
}

static enum status
store_connect(struct fdb_store *store, const char *cluster_file, struct err *err)
{
	int code = fdb.create_database(*cluster_file ? cluster_file : NULL, &store->database);

	if (code != 0) {
		store->database = NULL;
		return err_set(err, fdb_status(code), "the cluster file '%s' is of no use: %s",
			       cluster_file, fdb.get_error(code));
	}
	TRY(store_set_option(store, FDB_DATABASE_MAX_WATCHES, KV_LIMIT_WATCHES, err));
	TRY(store_set_option(store, FDB_TX_TIMEOUT, FDB_READ_TIMEOUT_MS, err));
	return store_find_cluster(store, err);
}

static void
fdb_close(struct kv_store *base)
{
	struct fdb_store *store = (struct fdb_store *)base;

	fdb_watches_cancel(store, 0);
	if (store->database)
		fdb.database_destroy(store->database);
	store->database = NULL;
	fdb_store_unref(store);
}

static enum status
fdb_open(struct str address, const struct kv_options *options, struct kv_store **ret,
	 struct err *err)
{
	struct fdb_store *store;
	enum status status;
	char *path;

	TRY(fdb_library_load(err));
	store = mem_zalloc(sizeof(*store));
	path = mem_strdup(address);
	if (!store || !path) {
		mem_free(store);
		mem_free(path);
		return err_set(err, STATUS_NOMEM, "out of memory");
	}
	store->base.engine = &kv_engine_fdb;
	store->base.read_only = options->read_only;
	atomic_init(&store->refs, 1);
	pthread_mutex_init(&store->lock, NULL);
	status = store_connect(store, path, err);
	mem_free(path);
	if (status != STATUS_OK) {
		fdb_close(&store->base);
		return status;
	}
	*ret = &store->base;
	return STATUS_OK;
}

static struct kv_store_stats
fdb_store_stats(struct kv_store *base)
{
	struct fdb_store *store = (struct fdb_store *)base;
	struct kv_store_stats stats = {
		.commits = atomic_load_explicit(&store->commits, memory_order_relaxed),
		.conflicts = atomic_load_explicit(&store->conflicts, memory_order_relaxed),
	};

	pthread_mutex_lock(&store->lock);
	stats.watches = store->watch_count;
	pthread_mutex_unlock(&store->lock);
	return stats;
}

static enum status
fdb_estimate_bytes(struct kv_store *base, struct str begin, struct str end, uint64_t *ret)
{
	struct kv_tx *tx;
	enum status status;

	*ret = 0;
	if (str_cmp(begin, end) >= 0)
		return STATUS_OK;
	TRY(kv_begin(base, KV_TX_READ_ONLY, &tx));
	status = fdb_tx_estimate((struct fdb_tx *)tx, begin, end, ret);
	kv_tx_free(tx);
	return status;
}

const struct kv_engine kv_engine_fdb = {
	.scheme = "fdb",
	.library = "foundationdb 7.1", /* the version of its interface, FDB_API_VERSION */
	.unknown_results = true,
	.cheap_clears = true,
	.shared = true,
	.open = fdb_open,
	.close = fdb_close,
	.begin = fdb_begin,
	.store_stats = fdb_store_stats,
	.estimate_bytes = fdb_estimate_bytes,
	.tx_free = fdb_tx_free,
	.tx_reset = fdb_tx_reset,
	.cancel = fdb_cancel,
	.get = fdb_get,
	.get_range = fdb_get_range,
	.get_read_version = fdb_get_read_version,
	.set = fdb_set,
	.set_no_conflict = fdb_set_no_conflict,
	.clear_range = fdb_clear_range,
	.clear = fdb_clear,
	.atomic = fdb_atomic,
	.set_versionstamped_key = fdb_set_versionstamped_key,
	.set_versionstamped_value = fdb_set_versionstamped_value,
	.add_read_conflict = fdb_add_read_conflict,
	.add_write_conflict = fdb_add_write_conflict,
	.get_metadata_version = fdb_get_metadata_version,
	.touch_metadata_version = fdb_touch_metadata_version,
	.commit = fdb_commit,
	.committed_version = fdb_committed_version,
	.versionstamp = fdb_versionstamp,
	.watch = fdb_watch,
	.retry_delay_ms = fdb_retry_delay_ms,
	.future_free = fdb_future_free,
	.future_explain = fdb_future_explain,
};
