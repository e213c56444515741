/* Loading libfdb_c, its network thread, and what its error codes mean here. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"
#include "kv/fdb/fdb_int.h"

#define LIBRARY_DEFAULT "libfdb_c.so"
#define LIBRARY_ENV     "FROND_LIBFDB_C"

struct fdb_library fdb;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static pthread_t network;

static void *
network_main(void *arg)
{
	(void)arg;
	thread_set_name("cluster");
	(void)fdb.run_network();
	return NULL;
}

static void *
stop_main(void *arg)
{
	(void)arg;
	if (fdb.stop_network() == 0)
		(void)pthread_join(network, NULL);
	return NULL;
}

/*
 * At the end of the process. It runs before the library's own destructors, which take down what the
 * library's thread still uses. The thread that ends the process may no longer call the library: its
 * share of the library's free memory has gone back, for the library's thread to use.
 */
static void
network_stop(void)
{
	pthread_t stopper;

	if (pthread_create(&stopper, NULL, stop_main, NULL) == 0)
		(void)pthread_join(stopper, NULL);
}

/* Starts the library's thread with all signals blocked: other threads handle them. */
static bool
network_start(void)
{
	sigset_t all;
	sigset_t before;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ok = pthread_create(&network, NULL, network_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static bool
library_find(void *handle, const char *name, void *ret_function)
{
	void *symbol = dlsym(handle, name);

	memcpy(ret_function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

/* The name of the function that is missing, or NULL. */
static const char *
library_find_all(void *handle)
{
#define FIND(type, name, parameters)                                                               \
	if (!library_find(handle, "fdb_" #name, &fdb.name))                                        \
		return "fdb_" #name;
	FDB_FUNCTIONS(FIND)
#undef FIND
	return NULL;
}

static enum status
library_set_up(const char *path, void *handle, struct err *err)
{
	const char *missing = library_find_all(handle);
	int code;

	if (missing)
		return err_set(err, STATUS_UNSUPPORTED, "%s has no %s: API version %d is needed",
			       path, missing, FDB_API_VERSION);
	if (fdb.get_max_api_version() < FDB_API_VERSION)
		return err_set(err, STATUS_UNSUPPORTED,
			       "%s offers API version %d, and %d is needed", path,
			       fdb.get_max_api_version(), FDB_API_VERSION);
	code = fdb.select_api_version_impl(FDB_API_VERSION, FDB_API_VERSION);
	/*
	 * With several versions of the library in one process, a commit can end with
	 * cluster_version_changed and still take place later.
	 */
	if (code == 0)
		code = fdb.network_set_option(FDB_NETWORK_SINGLE_VERSION, NULL, 0);
	if (code == 0)
		code = fdb.setup_network();
	if (code != 0)
		return err_set(err, STATUS_UNSUPPORTED, "%s cannot be used: %s", path,
			       fdb.get_error(code));
	return STATUS_OK;
}

static enum status
library_load(struct err *err)
{
	const char *path = getenv(LIBRARY_ENV);
	enum status status;
	void *handle;

	if (!path || !*path)
		path = LIBRARY_DEFAULT;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return err_set(err, STATUS_UNSUPPORTED,
			       "the FoundationDB client library cannot be loaded: %s "
			       "(" LIBRARY_ENV " names the one to use)",
			       dlerror());
	status = library_set_up(path, handle, err);
	if (status != STATUS_OK) {
		dlclose(handle);
		return status;
	}
	if (!network_start())
		return err_set(err, STATUS_NOMEM, "no thread for %s", path);
	(void)atexit(network_stop);
	loaded = true;
	return STATUS_OK;
}

enum status
fdb_library_load(struct err *err)
{
	enum status status = STATUS_OK;

	pthread_mutex_lock(&load_lock);
	if (!loaded)
		status = library_load(err);
	pthread_mutex_unlock(&load_lock);
	return status;
}

/* ---- Errors ---- */

static const struct {
	int code;
	enum status status;
} meanings[] = {
	{ 0, STATUS_OK },
	{ 1007, STATUS_TX_TOO_OLD },
	{ 1009, STATUS_TX_TOO_OLD }, /* future_version: a storage server lags; run again */
	{ 1020, STATUS_TX_CONFLICT },
	{ 1021, STATUS_TX_UNKNOWN },
	{ 1025, STATUS_CANCELLED },
	{ 1031, STATUS_UNAVAILABLE }, /* transaction_timed_out */
	{ 1032, STATUS_BUSY },        /* too_many_watches */
	{ 1036, STATUS_TX_UNREADABLE },
	{ 1037, STATUS_TX_TOO_OLD },  /* process_behind, likewise */
	{ 1038, STATUS_UNAVAILABLE }, /* database_locked */
	{ 1042, STATUS_TX_TOO_OLD },  /* the cluster is busy and has not committed: run again */
	{ 1051, STATUS_TX_TOO_OLD },  /* batch_transaction_throttled, likewise */
	{ 1101, STATUS_CANCELLED },
	{ 1213, STATUS_TX_TOO_OLD }, /* tag_throttled, likewise */
	{ 1500, STATUS_IO },         /* platform_error */
	{ 1501, STATUS_NOMEM },      /* large_alloc_failed */
	{ 1511, STATUS_NOT_FOUND },  /* no such cluster file */
	{ 1515, STATUS_NOT_FOUND },  /* nor one in the default place */
	{ 2017, STATUS_TX_USED },
	{ 2021, STATUS_NOT_FOUND }, /* no_commit_version: nothing was written */
	{ 2101, STATUS_TX_TOO_LARGE },
	{ 2102, STATUS_KEY_TOO_LARGE },
	{ 2103, STATUS_VALUE_TOO_LARGE },
	{ 2104, STATUS_INVALID }, /* connection_string_invalid */
};

enum status
fdb_status(int code)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].code == code)
			return meanings[i].status;
	return STATUS_UNAVAILABLE;
}

enum status
fdb_watch_status(int code)
{
	enum status status = fdb_status(code);

	if (status == STATUS_OK || status == STATUS_BUSY)
		return status;
	if (status == STATUS_CANCELLED || status == STATUS_TX_CONFLICT ||
	    status == STATUS_TX_TOO_OLD || status == STATUS_TX_UNKNOWN ||
	    status == STATUS_TX_TOO_LARGE)
		return STATUS_CANCELLED;
	return STATUS_UNAVAILABLE;
}

/* ---- Stores ---- */

void
fdb_store_unref(struct fdb_store *store)
{
	if (atomic_fetch_sub(&store->refs, 1) > 1)
		return;
	pthread_mutex_destroy(&store->lock);
	mem_free(store);
}

/* ---- Options ---- */

void
fdb_put_number(uint8_t ret[FDB_NUMBER_BYTES], uint64_t n)
{
	for (int i = 0; i < FDB_NUMBER_BYTES; i++)
		ret[i] = (uint8_t)(n >> (8 * i));
}
