/* Stores: connecting to a cluster. */
#include "base/mem.h"
#include "kv/fdb/fdb_int.h"
#include "kv/tuple.h"

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
	if (fdb_time_start(store) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "no thread for a FoundationDB cluster");
	return store_find_cluster(store, err);
}

/* ---- The address: CLUSTER_FILE?prefix=NAME ---- */

#define PREFIX_PARAMETER STR("prefix=")

struct address {
	struct str cluster_file;
	struct str prefix; /* the name; empty: the cluster is this store's alone */
};

static enum status
address_check_prefix(struct str name, struct err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-.";
	bool fine = name.len > 0 && name.len <= FDB_PREFIX_NAME_BYTES;

	for (size_t i = 0; i < name.len; i++)
		fine = fine && memchr(allowed, name.ptr[i], sizeof(allowed) - 1);
	if (fine)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "the prefix of a store in a cluster is 1 to %d letters, digits, '_', '-' "
		       "and '.', not '%.*s'",
		       FDB_PREFIX_NAME_BYTES, STR_ARG(name));
}

static enum status
address_parse(struct str text, struct address *ret, struct err *err)
{
	const char *mark = memchr(text.ptr, '?', text.len);
	struct str parameter;

	*ret = (struct address){ .cluster_file = text };
	if (!mark)
		return STATUS_OK;
	ret->cluster_file = str_of(text.ptr, (size_t)(mark - text.ptr));
	parameter = str_skip(text, ret->cluster_file.len + 1);
	if (!str_starts_with(parameter, PREFIX_PARAMETER))
		return err_set(err, STATUS_INVALID,
			       "behind the '?' of a cluster only prefix=NAME is known, not "
			       "'%.*s'",
			       STR_ARG(parameter));
	ret->prefix = str_skip(parameter, PREFIX_PARAMETER.len);
	return address_check_prefix(ret->prefix, err);
}

static enum status
fdb_check_address(struct str text, struct err *err)
{
	struct address address;

	return address_parse(text, &address, err);
}

/*
 * The name as a tuple's element of text. That no prefix begins another's keys follows from the zero
 * byte at its end; and stores without a prefix begin their keys with numbers, never with a text.
 */
static enum status
store_set_prefix(struct fdb_store *store, struct str name)
{
	AUTO(buf_release) struct buf prefix = BUF_INIT(sizeof(store->prefix));

	if (name.len == 0)
		return STATUS_OK;
	tuple_put_str(&prefix, name);
	TRY(buf_status(&prefix));
	memcpy(store->prefix, prefix.ptr, prefix.len);
	store->base.prefix_bytes = prefix.len;
	return STATUS_OK;
}

/* ---- The store ---- */

static void
fdb_close(struct kv_store *base)
{
	struct fdb_store *store = (struct fdb_store *)base;

	fdb_watches_cancel(store, 0);
	fdb_time_stop(store);
	fdb_spares_free(store);
	if (store->database)
		fdb.database_destroy(store->database);
	store->database = NULL;
	fdb_store_unref(store);
}

static enum status
fdb_open(struct str text, const struct kv_options *options, struct kv_store **ret, struct err *err)
{
	struct fdb_store *store;
	struct address address;
	enum status status;
	char *path;

	TRY(address_parse(text, &address, err));
	TRY(fdb_library_load(err));
	store = mem_zalloc(sizeof(*store));
	path = mem_strdup(address.cluster_file);
	if (!store || !path) {
		mem_free(store);
		mem_free(path);
		return err_set(err, STATUS_NOMEM, "out of memory");
	}
	store->base.engine = &kv_engine_fdb;
	store->base.read_only = options->read_only;
	atomic_init(&store->refs, 1);
	pthread_mutex_init(&store->lock, NULL);
	status = store_set_prefix(store, address.prefix);
	if (status == STATUS_OK)
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
	.check_address = fdb_check_address,
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
	.conflicting_key = fdb_conflicting_key,
	.versionstamp = fdb_versionstamp,
	.watch = fdb_watch,
	.retry_delay_ms = fdb_retry_delay_ms,
	.future_free = fdb_future_free,
	.future_settle = fdb_future_settle,
	.future_explain = fdb_future_explain,
};
