/*
 * A library that stands in for libfdb_c, so that the engine of clusters is tested where there is
 * no cluster, and with sanitizers: the functions that kv/fdb/ uses, over an embedded store in a
 * directory beside the cluster file (FILE.store), which is one process's and empty when that
 * begins, unless there is a file FILE.keep. The embedded engine keeps the same contract, so what is
 * added here is how a client library answers: a part of a range at a time, early or late, from a
 * thread of its own. What a cluster does that one process does not, only a cluster shows.
 *
 * FILE.hold, beside the cluster file, makes it silent as long as it is there. What is in it says of
 * what: "commits", which take place and are not answered; "lost", commits which do not take place,
 * and of which it is not known when the file is gone; "all", every question, too. Reads are then
 * answered when their transaction is cancelled. "key TEXT" holds back commits alone that write a
 * key with that text in it, and these are made only when the file is gone.
 *
 * == Threads ==
 *
 * The lock of a transaction is around each use of its kv_tx, since parts of a range are asked for
 * from callbacks. `lock` guards the stores, `held_key`, what is pending, and of each future
 * `ready`, `callback` and `pending`. No callback runs under either.
 */
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kv/engine.h"
#include "kv/fdb/fdb_int.h"

enum {
	CODE_OK = 0,
	CODE_UNKNOWN_RESULT = 1021,
	CODE_TOO_OLD = 1007,
	CODE_CANCELLED = 1025,
	CODE_OPERATION_CANCELLED = 1101,
	CODE_NO_CLUSTER_FILE = 1515,
	CODE_UNKNOWN_ERROR = 4000,

	STORES = 16,
	PART_PAIRS = 100, /* of a range in an answer, at most */
	LATE_ONE_IN = 4,  /* answers to reads */
	POLL_US = 200,
	LOOKS = 25, /* of POLL_US, between two looks for FILE.hold */
	PATH_BYTES = 512,
	HOLD_PATH_BYTES = PATH_BYTES + 8,
	HOLD_TEXT_BYTES = 64,

	KEPT_VERSIONS =
		16, /* at which transactions may go on, as a cluster keeps some seconds of them */
	KEPT_TXS = 32, /* that go on at each */
};

/* What the engine looks for in the library, which is all that others see of this one. */
#define STAND_IN(type, name, parameters)                                                           \
	__attribute__((visibility("default"))) type fdb_##name parameters;
FDB_FUNCTIONS(STAND_IN)
#undef STAND_IN

/* The engine's statuses are made of the library's codes; here it goes the other way. */
static const struct {
	enum status status;
	int code;
} codes[] = {
	{ STATUS_OK, CODE_OK },
	{ STATUS_TX_TOO_OLD, CODE_TOO_OLD },
	{ STATUS_TX_CONFLICT, 1020 },
	{ STATUS_TX_UNKNOWN, 1021 },
	{ STATUS_CANCELLED, CODE_CANCELLED },
	{ STATUS_UNAVAILABLE, FDB_CODE_TIMED_OUT },
	{ STATUS_BUSY, 1032 },
	{ STATUS_TX_UNREADABLE, 1036 },
	{ STATUS_IO, 1500 },
	{ STATUS_NOMEM, 1501 },
	{ STATUS_TX_USED, 2017 },
	{ STATUS_NOT_FOUND, 2021 },
	{ STATUS_TX_TOO_LARGE, 2101 },
	{ STATUS_KEY_TOO_LARGE, 2102 },
	{ STATUS_VALUE_TOO_LARGE, 2103 },
};

static int
code_of(enum status status)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return CODE_UNKNOWN_ERROR;
}

/* A version that somebody has asked for, with transactions that have begun at it. */
struct kept_version {
	uint64_t version;
	struct kv_tx *txs[KEPT_TXS];
	size_t count;
};

struct FDB_database {
	char path[PATH_BYTES];
	struct kv_store *store; /* NULL: the place is free; otherwise open until the process ends */
	struct kept_version kept[KEPT_VERSIONS]; /* the oldest gives way; `lock` */
	size_t kept_next;
};

struct FDB_transaction {
	FDBDatabase *db;
	struct kv_tx *tx;
	pthread_mutex_t lock;
	int failed;          /* the code of the first write that was refused */
	bool met_unreadable; /* such a transaction cannot commit */
	bool without_range;  /* the next set makes no conflict range */
	bool is_late;        /* its commit is held back because of a key that it writes */
	/* The first key that a commit may conflict at, which is told as the one that it did. */
	bool reports;
	bool conflicted;
	char first_read[KV_LIMIT_KEY_BYTES];
	size_t first_read_len;
	FDBFuture *stamp; /* pending until the commit has ended */
};

struct FDB_future {
	int code;
	bool ready;
	bool pending; /* in the list */
	fdb_callback *callback;
	void *arg;
	struct kv_future *inner; /* of a commit or a watch */
	bool is_watch;
	FDBTransaction *tx; /* of a commit */
	/* Of another answer: whose, which is only compared, since it may have ended. */
	const FDBTransaction *asker;
	bool is_lost;    /* a commit that does not take place */
	bool is_late;    /* a commit that is not made before FILE.hold is gone */
	uint64_t due_ns; /* of what is there, and is told later */
	bool is_cancelled;
	struct FDB_future *next;
	bool present;
	char *bytes; /* owned: what values, keys and pairs are made of */
	size_t len;
	int64_t number;
	struct fdb_pair *pairs; /* owned */
	int count;
	int more;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* A transaction goes through its watches when it ends: none of them is freed meanwhile. */
static pthread_mutex_t watches_lock = PTHREAD_MUTEX_INITIALIZER;
static FDBFuture *pending;
static FDBDatabase stores[STORES];
static bool stopping;

/* What is held back, see above. Written by the network's thread. */
enum hold {
	HOLD_NONE,
	HOLD_COMMITS,
	HOLD_LOST,
	HOLD_ALL,
	HOLD_KEY, /* what writes `held_key` */
};

#define CONFLICTING_KEYS "\xff\xff/transaction/conflicting_keys/"

#define KEY "key " /* the text of HOLD_KEY, in front of the key */

static _Atomic enum hold held;
static char held_key[HOLD_TEXT_BYTES];

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint32_t
draw(uint32_t below)
{
	static _Atomic uint64_t state = 1;
	uint64_t x = atomic_fetch_add(&state, 0x9e3779b97f4a7c15u);

	x ^= x >> 31;
	x *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)((x >> 32) % below);
}

/* ---- Futures ---- */

static FDBFuture *
future_new(int code)
{
	FDBFuture *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->code = code;
	f->ready = true;
	return f;
}

static void
future_pend(FDBFuture *f)
{
	pthread_mutex_lock(&lock);
	f->ready = false;
	f->pending = true;
	f->next = pending;
	pending = f;
	pthread_mutex_unlock(&lock);
}

/* Now and then an answer is there only later. */
static FDBFuture *
future_answered(const FDBTransaction *t, FDBFuture *f)
{
	f->asker = t;
	if (atomic_load(&held) == HOLD_ALL || draw(LATE_ONE_IN) == 0) {
		f->due_ns = now_ns() + draw(1000000);
		future_pend(f);
	}
	return f;
}

/* With the lock held. */
static void
future_unpend(FDBFuture *f)
{
	FDBFuture **at = &pending;

	if (!f->pending)
		return;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	f->pending = false;
}

/* Makes it ready, and tells whoever has asked; `f` may be gone afterwards. */
static void
future_complete(FDBFuture *f)
{
	fdb_callback *callback;
	void *arg;

	pthread_mutex_lock(&lock);
	f->ready = true;
	callback = f->callback;
	arg = f->arg;
	f->callback = NULL;
	pthread_mutex_unlock(&lock);
	if (callback)
		callback(f, arg);
}

static void
future_copy(FDBFuture *f, struct str bytes)
{
	f->bytes = malloc(bytes.len + 1);
	if (!f->bytes)
		abort();
	if (bytes.len)
		memcpy(f->bytes, bytes.ptr, bytes.len);
	f->len = bytes.len;
	f->present = true;
}

/* A commit has ended: the transaction's stamp is known, or will never be. */
static void
commit_end(FDBFuture *f)
{
	FDBTransaction *t = f->tx;
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	FDBFuture *waiting;

	pthread_mutex_lock(&t->lock);
	if (f->is_late) {
		pthread_mutex_lock(&watches_lock);
		f->inner = kv_commit(t->tx);
		pthread_mutex_unlock(&watches_lock);
	}
	f->code = f->is_lost ? CODE_UNKNOWN_RESULT : code_of(kv_future_wait(f->inner));
	f->inner = NULL; /* the transaction's */
	t->conflicted = f->code == code_of(STATUS_TX_CONFLICT);
	waiting = t->stamp;
	t->stamp = NULL;
	if (waiting) {
		waiting->code = f->code;
		if (f->code == CODE_OK)
			waiting->code = code_of(kv_versionstamp(t->tx, stamp));
		if (waiting->code == CODE_OK)
			future_copy(waiting, str_of(stamp, sizeof(stamp)));
	}
	pthread_mutex_unlock(&t->lock);
	if (waiting)
		future_complete(waiting);
	future_complete(f);
}

static void
watch_free(FDBFuture *f)
{
	pthread_mutex_lock(&watches_lock);
	kv_future_free(f->inner);
	pthread_mutex_unlock(&watches_lock);
	f->inner = NULL;
}

static void
watch_end(FDBFuture *f)
{
	f->code = code_of(kv_future_wait(f->inner));
	watch_free(f);
	future_complete(f);
}

/* True if the answer may be told now. */
static bool
is_due(const FDBFuture *f, uint64_t now)
{
	enum hold hold = atomic_load(&held);

	if (f->tx && hold == HOLD_KEY)
		return !f->is_late && (f->is_lost || kv_future_ready(f->inner));
	if (f->tx)
		return hold == HOLD_NONE && (!f->inner || kv_future_ready(f->inner));
	if (f->is_watch)
		return hold != HOLD_ALL && kv_future_ready(f->inner);
	return f->is_cancelled || (f->due_ns <= now && hold != HOLD_ALL);
}

/* The first that has come, out of the list; NULL: none has. */
static FDBFuture *
take_ready(void)
{
	FDBFuture *f;
	uint64_t now = now_ns();

	pthread_mutex_lock(&lock);
	for (f = pending; f && !is_due(f, now);)
		f = f->next;
	if (f)
		future_unpend(f);
	if (f && f->is_cancelled)
		f->code = CODE_CANCELLED;
	pthread_mutex_unlock(&lock);
	return f;
}

static bool
is_stopping(void)
{
	bool ret;

	pthread_mutex_lock(&lock);
	ret = stopping;
	pthread_mutex_unlock(&lock);
	return ret;
}

/* Gives the path of FILE.hold of a store, or nothing if there is no such store yet. */
static bool
hold_path(size_t i, char path[HOLD_PATH_BYTES])
{
	bool is_open;

	/* Another thread may be just making it. */
	pthread_mutex_lock(&lock);
	is_open = stores[i].path[0] != '\0';
	(void)snprintf(path, HOLD_PATH_BYTES, "%.*s.hold", PATH_BYTES - 1, stores[i].path);
	pthread_mutex_unlock(&lock);
	return is_open;
}

static enum hold
hold_of(const char *text)
{
	if (strncmp(text, KEY, strlen(KEY)) == 0) {
		pthread_mutex_lock(&lock);
		(void)snprintf(held_key, sizeof(held_key), "%s", text + strlen(KEY));
		pthread_mutex_unlock(&lock);
		return HOLD_KEY;
	}
	return text[0] == 'a' ? HOLD_ALL : text[0] == 'l' ? HOLD_LOST : HOLD_COMMITS;
}

/* What FILE.hold of any of the stores says. */
static void
hold_look(void)
{
	char path[HOLD_PATH_BYTES], text[HOLD_TEXT_BYTES + sizeof(KEY) - 1];
	enum hold hold = HOLD_NONE;

	for (size_t i = 0; i < STORES && hold_path(i, path); i++) {
		FILE *file = fopen(path, "re");

		if (!file)
			continue;
		if (fgets(text, sizeof(text), file))
			hold = hold_of(text);
		(void)fclose(file);
	}
	atomic_store(&held, hold);
}

int
fdb_run_network(void)
{
	for (unsigned i = 0; !is_stopping(); i++) {
		FDBFuture *f = take_ready();

		if (i % LOOKS == 0)
			hold_look();
		if (!f)
			(void)usleep(POLL_US);
		else if (f->tx)
			commit_end(f);
		else if (f->is_watch)
			watch_end(f);
		else
			future_complete(f);
	}
	return CODE_OK;
}

int
fdb_stop_network(void)
{
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_mutex_unlock(&lock);
	return CODE_OK;
}

int
fdb_future_set_callback(FDBFuture *f, fdb_callback *callback, void *arg)
{
	bool ready;

	pthread_mutex_lock(&lock);
	ready = f->ready;
	if (!ready) {
		f->callback = callback;
		f->arg = arg;
	}
	pthread_mutex_unlock(&lock);
	if (ready)
		callback(f, arg);
	return CODE_OK;
}

/* A commit is not cancelled: it is the transaction that is. */
void
fdb_future_cancel(FDBFuture *f)
{
	bool cancelled;

	pthread_mutex_lock(&lock);
	cancelled = f->pending && !f->tx;
	if (cancelled)
		future_unpend(f);
	pthread_mutex_unlock(&lock);
	if (!cancelled)
		return;
	if (f->is_watch)
		watch_free(f);
	f->code = CODE_OPERATION_CANCELLED;
	future_complete(f);
}

void
fdb_future_destroy(FDBFuture *f)
{
	pthread_mutex_lock(&lock);
	future_unpend(f);
	pthread_mutex_unlock(&lock);
	if (f->is_watch)
		watch_free(f);
	free(f->bytes);
	free(f->pairs);
	free(f);
}

int
fdb_future_get_error(FDBFuture *f)
{
	return f->code;
}

int
fdb_future_get_int64(FDBFuture *f, int64_t *ret)
{
	*ret = f->number;
	return f->code;
}

int
fdb_future_get_key(FDBFuture *f, const uint8_t **ret, int *len)
{
	*ret = (const uint8_t *)f->bytes;
	*len = (int)f->len;
	return f->code;
}

int
fdb_future_get_value(FDBFuture *f, int *present, const uint8_t **ret, int *len)
{
	*present = f->present;
	return fdb_future_get_key(f, ret, len);
}

int
fdb_future_get_keyvalue_array(FDBFuture *f, const struct fdb_pair **ret, int *count, int *more)
{
	*ret = f->pairs;
	*count = f->count;
	*more = f->more;
	return f->code;
}

/* ---- The library and databases ---- */

int
fdb_select_api_version_impl(int runtime, int header)
{
	return runtime == FDB_API_VERSION && header == FDB_API_VERSION ? CODE_OK
								       : CODE_UNKNOWN_ERROR;
}

int
fdb_get_max_api_version(void)
{
	return FDB_API_VERSION;
}

const char *
fdb_get_error(int code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return status_name(codes[i].status);
	return "an error of the stand-in";
}

int
fdb_network_set_option(int option, const uint8_t *value, int len)
{
	(void)option, (void)value, (void)len;
	return CODE_OK;
}

int
fdb_setup_network(void)
{
	return CODE_OK;
}

static int
remove_one(const char *path, const struct stat *stat, int kind, struct FTW *place)
{
	(void)stat, (void)kind, (void)place;
	return remove(path);
}

static void
kept_drop(struct kept_version *kept)
{
	while (kept->count)
		kv_tx_free(kept->txs[--kept->count]);
}

static void
kept_drop_all(FDBDatabase *db)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < KEPT_VERSIONS; i++)
		kept_drop(&db->kept[i]);
	pthread_mutex_unlock(&lock);
}

static void
stores_close(void)
{
	for (size_t i = 0; i < STORES; i++) {
		kept_drop_all(&stores[i]);
		kv_close(stores[i].store);
	}
}

/* Removes what an earlier process has left, unless that is to be kept. */
static void
store_clear(const char *path)
{
	char keep[PATH_BYTES + 8], store[PATH_BYTES + 8];

	(void)snprintf(keep, sizeof(keep), "%s.keep", path);
	(void)snprintf(store, sizeof(store), "%s.store", path);
	if (access(keep, F_OK) != 0)
		(void)nftw(store, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int
store_open(FDBDatabase *db, const char *path)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	char url[PATH_BYTES + 32];
	struct err err = { 0 };

	(void)snprintf(url, sizeof(url), "embedded:%s.store", path);
	store_clear(path);
	if (kv_open(url, &options, &db->store, &err) != STATUS_OK) {
		(void)fprintf(stderr, "stand-in: %s\n", err.text);
		return CODE_UNKNOWN_ERROR;
	}
	(void)snprintf(db->path, sizeof(db->path), "%s", path);
	/* Only now: what RocksDB makes for itself when it is first used must outlive its stores. */
	if (db == stores)
		(void)atexit(stores_close);
	return CODE_OK;
}

int
fdb_create_database(const char *path, FDBDatabase **ret)
{
	FDBDatabase *db = NULL;
	int code = CODE_OK;

	if (!path || access(path, R_OK) != 0)
		return CODE_NO_CLUSTER_FILE;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < STORES && !db; i++) {
		if (!stores[i].store)
			code = store_open(&stores[i], path);
		if (code != CODE_OK || strcmp(stores[i].path, path) == 0)
			db = &stores[i];
	}
	pthread_mutex_unlock(&lock);
	*ret = db;
	return code;
}

void
fdb_database_destroy(FDBDatabase *db)
{
	kept_drop_all(db); /* others in the process may open it again */
}

int
fdb_database_set_option(FDBDatabase *db, int option, const uint8_t *value, int len)
{
	(void)db, (void)option, (void)value, (void)len;
	return CODE_OK;
}

/* ---- Transactions ---- */

int
fdb_database_create_transaction(FDBDatabase *db, FDBTransaction **ret)
{
	FDBTransaction *t = calloc(1, sizeof(*t));
	enum status status;

	if (!t)
		abort();
	status = kv_begin(db->store, KV_TX_READ_WRITE, &t->tx);
	if (status != STATUS_OK) {
		free(t);
		return code_of(status);
	}
	t->tx->uses_reserve = true; /* a cluster knows nothing of it */
	t->db = db;
	pthread_mutex_init(&t->lock, NULL);
	*ret = t;
	return CODE_OK;
}

/* What waits for a commit that will not be made. */
static void
transaction_let_go(FDBTransaction *t)
{
	FDBFuture *waiting = t->stamp;

	t->stamp = NULL;
	if (!waiting)
		return;
	waiting->code = CODE_CANCELLED;
	future_complete(waiting);
}

void
fdb_transaction_destroy(FDBTransaction *t)
{
	transaction_let_go(t);
	pthread_mutex_lock(&watches_lock);
	kv_tx_free(t->tx);
	pthread_mutex_unlock(&watches_lock);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* What is pending is told by the network's thread. */
void
fdb_transaction_cancel(FDBTransaction *t)
{
	kv_cancel(t->tx);
	pthread_mutex_lock(&lock);
	for (FDBFuture *f = pending; f; f = f->next)
		f->is_cancelled |= f->asker == t;
	pthread_mutex_unlock(&lock);
}

void
fdb_transaction_reset(FDBTransaction *t)
{
	transaction_let_go(t);
	pthread_mutex_lock(&t->lock);
	pthread_mutex_lock(&watches_lock);
	kv_tx_reset(t->tx);
	pthread_mutex_unlock(&watches_lock);
	t->tx->uses_reserve = true;
	t->failed = CODE_OK;
	t->met_unreadable = false;
	t->without_range = t->is_late = false;
	t->reports = t->conflicted = false;
	t->first_read_len = 0;
	pthread_mutex_unlock(&t->lock);
}

int
fdb_transaction_set_option(FDBTransaction *t, int option, const uint8_t *value, int len)
{
	(void)value, (void)len;
	if (option == FDB_TX_NEXT_WRITE_NO_CONFLICT)
		t->without_range = true;
	t->reports |= option == FDB_TX_REPORT_CONFLICTING_KEYS;
	return CODE_OK;
}

/* Has some begin at this version, if it is the newest: for fdb_transaction_set_read_version(). */
static void
kept_add(FDBDatabase *db, uint64_t version)
{
	struct kept_version kept = { .version = version };
	struct kept_version given_up;

	while (kept.count < KEPT_TXS) {
		struct kv_tx *tx;
		uint64_t at;

		if (kv_begin(db->store, KV_TX_READ_WRITE, &tx) != STATUS_OK)
			break;
		if (kv_get_read_version(tx, &at) != STATUS_OK || at != version) {
			kv_tx_free(tx);
			break;
		}
		tx->uses_reserve = true;
		kept.txs[kept.count++] = tx;
	}
	pthread_mutex_lock(&lock);
	given_up = db->kept[db->kept_next];
	db->kept[db->kept_next] = kept;
	db->kept_next = (db->kept_next + 1) % KEPT_VERSIONS;
	pthread_mutex_unlock(&lock);
	kept_drop(&given_up);
}

/* One that has begun at the version; NULL: none is left. */
static struct kv_tx *
kept_take(FDBDatabase *db, uint64_t version)
{
	struct kv_tx *tx = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < KEPT_VERSIONS && !tx; i++)
		if (db->kept[i].version == version && db->kept[i].count)
			tx = db->kept[i].txs[--db->kept[i].count];
	pthread_mutex_unlock(&lock);
	return tx;
}

FDBFuture *
fdb_transaction_get_read_version(FDBTransaction *t)
{
	uint64_t version = 0;
	enum status status;
	FDBFuture *f;

	pthread_mutex_lock(&t->lock);
	status = kv_get_read_version(t->tx, &version);
	pthread_mutex_unlock(&t->lock);
	f = future_new(code_of(status));
	f->number = (int64_t)version;
	if (status == STATUS_OK)
		kept_add(t->db, version);
	return future_answered(t, f);
}

/* Of a transaction that has not read. A version that is not kept any longer is too old. */
void
fdb_transaction_set_read_version(FDBTransaction *t, int64_t version)
{
	struct kv_tx *kept = kept_take(t->db, (uint64_t)version);
	uint64_t newest = 0;

	pthread_mutex_lock(&t->lock);
	if (kept) {
		kv_tx_free(t->tx);
		t->tx = kept;
	} else if (kv_get_read_version(t->tx, &newest) != STATUS_OK ||
		   newest != (uint64_t)version) {
		t->failed = CODE_TOO_OLD;
	}
	pthread_mutex_unlock(&t->lock);
}

static bool
is_metadata_version(struct str key)
{
	return str_eq(key, STR("\xff/metadataVersion"));
}

static void
note_read(FDBTransaction *t, struct str key, bool snapshot)
{
	if (snapshot || t->first_read_len || key.len > sizeof(t->first_read))
		return;
	memcpy(t->first_read, key.ptr, key.len);
	t->first_read_len = key.len;
}

FDBFuture *
fdb_transaction_get(FDBTransaction *t, const uint8_t *key_bytes, int len, int snapshot)
{
	struct str key = str_of(key_bytes, (size_t)len);
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	FDBFuture *f = future_new(CODE_OK);
	struct kv_future *got;
	struct str value;

	pthread_mutex_lock(&t->lock);
	if (is_metadata_version(key)) {
		f->code = code_of(kv_get_metadata_version(t->tx, version));
		if (f->code == CODE_OK)
			future_copy(f, str_of(version, sizeof(version)));
	} else {
		note_read(t, key, snapshot);
		got = kv_get(t->tx, key, snapshot ? KV_SNAPSHOT : KV_READ);
		f->code = code_of(kv_future_wait(got));
		if (f->code == CODE_OK && kv_future_value(got, &value))
			future_copy(f, value);
		kv_future_free(got);
	}
	t->met_unreadable |= f->code == code_of(STATUS_TX_UNREADABLE);
	pthread_mutex_unlock(&t->lock);
	return future_answered(t, f);
}

static void
future_take_range(FDBFuture *f, struct kv_range range)
{
	size_t bytes = 0;
	char *at;

	for (size_t i = 0; i < range.count; i++)
		bytes += range.pairs[i].key.len + range.pairs[i].value.len;
	at = f->bytes = malloc(bytes + 1);
	f->pairs = calloc(range.count + 1, sizeof(*f->pairs));
	if (!at || !f->pairs)
		abort();
	for (size_t i = 0; i < range.count; i++) {
		struct str key = range.pairs[i].key, value = range.pairs[i].value;

		f->pairs[i] = (struct fdb_pair){
			.key = (uint8_t *)at,
			.key_len = (int)key.len,
			.value = (uint8_t *)at + key.len,
			.value_len = (int)value.len,
		};
		memcpy(at, key.ptr, key.len);
		if (value.len)
			memcpy(at + key.len, value.ptr, value.len);
		at += key.len + value.len;
	}
	f->count = (int)range.count;
	f->more = range.more;
}

/* Where a commit has conflicted, if it was asked to tell that. */
static FDBFuture *
conflicting_keys(const FDBTransaction *t)
{
	FDBFuture *f = future_new(CODE_OK);
	char key[sizeof(CONFLICTING_KEYS) + sizeof(t->first_read)];
	size_t len = sizeof(CONFLICTING_KEYS) - 1;
	struct kv_pair pair;

	memcpy(key, CONFLICTING_KEYS, len);
	memcpy(key + len, t->first_read, t->first_read_len);
	pair = (struct kv_pair){ str_of(key, len + t->first_read_len), STR("1") };
	future_take_range(
		f, (struct kv_range){ .pairs = &pair,
				      .count = t->reports && t->conflicted && t->first_read_len });
	return f;
}

FDBFuture *
fdb_transaction_get_range(FDBTransaction *t, const uint8_t *begin, int begin_len,
			  int begin_or_equal, int begin_offset, const uint8_t *end, int end_len,
			  int end_or_equal, int end_offset, int limit, int target_bytes, int mode,
			  int iteration, int snapshot, int reverse)
{
	size_t most = 1 + draw(PART_PAIRS);
	FDBFuture *f = future_new(CODE_OK);
	struct kv_range_options options = {
		.limit = limit && (size_t)limit < most ? (size_t)limit : most,
		.limit_bytes = (size_t)target_bytes,
		.reverse = reverse,
		.mode = snapshot ? KV_SNAPSHOT : KV_READ,
	};
	struct kv_future *got;
	char *first;

	if (str_starts_with(str_of(begin, (size_t)begin_len), STR(CONFLICTING_KEYS))) {
		free(f);
		return conflicting_keys(t);
	}
	first = malloc((size_t)begin_len + 1);
	if (!first || begin_offset != 1 || end_offset != 1 || end_or_equal || mode || iteration)
		abort(); /* the engine asks for nothing of the kind */
	memcpy(first, begin, (size_t)begin_len);
	first[begin_len] = '\0'; /* behind the key itself, where that is left out */
	pthread_mutex_lock(&t->lock);
	note_read(t, str_of(first, (size_t)begin_len), snapshot);
	got = kv_get_range(t->tx, str_of(first, (size_t)begin_len + (begin_or_equal ? 1 : 0)),
			   str_of(end, (size_t)end_len), &options);
	f->code = code_of(kv_future_wait(got));
	if (f->code == CODE_OK)
		future_take_range(f, kv_future_range(got));
	t->met_unreadable |= f->code == code_of(STATUS_TX_UNREADABLE);
	kv_future_free(got);
	pthread_mutex_unlock(&t->lock);
	free(first);
	return future_answered(t, f);
}

FDBFuture *
fdb_transaction_get_estimated_range_size_bytes(FDBTransaction *t, const uint8_t *begin,
					       int begin_len, const uint8_t *end, int end_len)
{
	uint64_t bytes = 0;
	enum status status = kv_estimate_bytes(t->db->store, str_of(begin, (size_t)begin_len),
					       str_of(end, (size_t)end_len), &bytes);
	FDBFuture *f = future_new(code_of(status));

	f->number = (int64_t)bytes;
	return future_answered(t, f);
}

/* ---- Writes: what is refused is told by the commit ---- */

static void
write_done(FDBTransaction *t, enum status status)
{
	if (status != STATUS_OK && t->failed == CODE_OK)
		t->failed = code_of(status);
	pthread_mutex_unlock(&t->lock);
}

/* With the lock of the transaction held: it writes a key. */
static void
write_note(FDBTransaction *t, struct str key)
{
	if (atomic_load(&held) != HOLD_KEY)
		return;
	pthread_mutex_lock(&lock);
	t->is_late |= memmem(key.ptr, key.len, held_key, strlen(held_key)) != NULL;
	pthread_mutex_unlock(&lock);
}

void
fdb_transaction_set(FDBTransaction *t, const uint8_t *key, int key_len, const uint8_t *value,
		    int len)
{
	struct str k = str_of(key, (size_t)key_len), v = str_of(value, (size_t)len);

	pthread_mutex_lock(&t->lock);
	write_note(t, k);
	write_done(t, t->without_range ? kv_set_no_conflict(t->tx, k, v) : kv_set(t->tx, k, v));
	t->without_range = false;
}

void
fdb_transaction_clear(FDBTransaction *t, const uint8_t *key, int len)
{
	pthread_mutex_lock(&t->lock);
	write_done(t, kv_clear(t->tx, str_of(key, (size_t)len)));
}

void
fdb_transaction_clear_range(FDBTransaction *t, const uint8_t *begin, int begin_len,
			    const uint8_t *end, int end_len)
{
	pthread_mutex_lock(&t->lock);
	write_done(t, kv_clear_range(t->tx, str_of(begin, (size_t)begin_len),
				     str_of(end, (size_t)end_len)));
}

/* The place of a stamp lies behind its template. */
static size_t
stamp_offset(struct str *template)
{
	const uint8_t *at;

	template->len -= 4;
	at = (const uint8_t *)template->ptr + template->len;
	return at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

static enum status
mutate(FDBTransaction *t, struct str key, struct str operand, int type)
{
	static const struct {
		int type;
		enum kv_atomic op;
	} ops[] = {
		{ FDB_MUTATION_ADD, KV_ADD },
		{ FDB_MUTATION_MAX, KV_MAX },
		{ FDB_MUTATION_MIN, KV_MIN },
		{ FDB_MUTATION_BYTE_MAX, KV_BYTE_MAX },
		{ FDB_MUTATION_BYTE_MIN, KV_BYTE_MIN },
		{ FDB_MUTATION_COMPARE_AND_CLEAR, KV_COMPARE_AND_CLEAR },
	};
	size_t offset;

	if (type == FDB_MUTATION_STAMPED_KEY) {
		offset = stamp_offset(&key);
		return kv_set_versionstamped_key(t->tx, key, offset, operand);
	}
	if (type == FDB_MUTATION_STAMPED_VALUE && is_metadata_version(key))
		return kv_touch_metadata_version(t->tx);
	if (type == FDB_MUTATION_STAMPED_VALUE) {
		offset = stamp_offset(&operand);
		return kv_set_versionstamped_value(t->tx, key, operand, offset);
	}
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].type == type)
			return kv_atomic(t->tx, ops[i].op, key, operand);
	abort();
}

void
fdb_transaction_atomic_op(FDBTransaction *t, const uint8_t *key, int key_len,
			  const uint8_t *operand, int len, int type)
{
	pthread_mutex_lock(&t->lock);
	write_note(t, str_of(key, (size_t)key_len));
	write_done(t, mutate(t, str_of(key, (size_t)key_len), str_of(operand, (size_t)len), type));
}

int
fdb_transaction_add_conflict_range(FDBTransaction *t, const uint8_t *begin, int begin_len,
				   const uint8_t *end, int end_len, int type)
{
	struct str first = str_of(begin, (size_t)begin_len), last = str_of(end, (size_t)end_len);
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	enum status status;

	pthread_mutex_lock(&t->lock);
	if (is_metadata_version(first))
		status = kv_get_metadata_version(t->tx, version);
	else
		status = type == FDB_CONFLICT_READ
				 ? kv_add_read_conflict_range(t->tx, first, last)
				 : kv_add_write_conflict_range(t->tx, first, last);
	pthread_mutex_unlock(&t->lock);
	return code_of(status);
}

/* ---- The end ---- */

FDBFuture *
fdb_transaction_watch(FDBTransaction *t, const uint8_t *key, int len)
{
	FDBFuture *f = future_new(CODE_OK);

	f->is_watch = true;
	pthread_mutex_lock(&t->lock);
	f->inner = kv_watch(t->tx, str_of(key, (size_t)len));
	pthread_mutex_unlock(&t->lock);
	future_pend(f);
	return f;
}

FDBFuture *
fdb_transaction_get_versionstamp(FDBTransaction *t)
{
	FDBFuture *f = future_new(CODE_OK);

	f->ready = false;
	t->stamp = f;
	kv_want_versionstamp(t->tx);
	return f;
}

FDBFuture *
fdb_transaction_commit(FDBTransaction *t)
{
	FDBFuture *f;

	if (t->failed == CODE_OK && t->met_unreadable)
		t->failed = code_of(STATUS_TX_UNREADABLE);
	if (t->failed != CODE_OK) {
		transaction_let_go(t);
		return future_new(t->failed);
	}
	f = future_new(CODE_OK);
	f->tx = t;
	f->is_lost = atomic_load(&held) == HOLD_LOST;
	pthread_mutex_lock(&t->lock);
	pthread_mutex_lock(&watches_lock);
	f->is_late = t->is_late;
	if (!f->is_lost && !f->is_late)
		f->inner = kv_commit(t->tx);
	pthread_mutex_unlock(&watches_lock);
	pthread_mutex_unlock(&t->lock);
	future_pend(f);
	return f;
}

int
fdb_transaction_get_committed_version(FDBTransaction *t, int64_t *ret)
{
	uint64_t version = 0;
	enum status status;

	pthread_mutex_lock(&t->lock);
	status = kv_committed_version(t->tx, &version);
	pthread_mutex_unlock(&t->lock);
	*ret = (int64_t)version;
	return code_of(status);
}
