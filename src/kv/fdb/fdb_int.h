/*
 * The FoundationDB engine: the contract is FoundationDB's own, so most calls are passed on to the C
 * client library, libfdb_c, at API version 710. Private to kv/fdb/.
 *
 * The library is opened when the first store is, so that frond neither links against it nor needs
 * it. What is used of it is declared here.
 *
 * Threads: the library runs one thread of its own, which calls fdb_future's callback. What a
 * callback and the future's owner share is guarded by the future's lock; once its event is set
 * everything in it is the owner's.
 */
#ifndef FROND_KV_FDB_INT_H
#define FROND_KV_FDB_INT_H

#include <pthread.h>

#include "base/buf.h"
#include "kv/engine.h"

/* ---- The library ---- */

typedef struct FDB_future FDBFuture;
typedef struct FDB_database FDBDatabase;
typedef struct FDB_transaction FDBTransaction;
typedef void fdb_callback(FDBFuture *future, void *arg);

/* A pair as the library lays it out: packed, at addresses of any alignment. */
struct fdb_pair {
	const uint8_t *key;
	int key_len;
	const uint8_t *value;
	int value_len;
} __attribute__((packed));

enum {
	FDB_API_VERSION = 710,
	FDB_NUMBER_BYTES = 8,       /* of an option, little-endian */
	FDB_OPEN_TIMEOUT_MS = 5000, /* to find the cluster when a store is opened */
	/* A transaction's reads give up; a commit waits until its end is known. */
	FDB_READ_TIMEOUT_MS = 10000,
	FDB_TIME_LOOK_MS = 250,      /* between two looks for those that have waited so long */
	FDB_METADATA_LATE_MS = 1000, /* see tx_wait_for_metadata() */
	FDB_SPARE_TXS = 128,         /* transactions that wait for the next ones of a store */

	FDB_PREFIX_NAME_BYTES = 32, /* of the name behind "?prefix=" */
	/* That name as an element of a tuple: between a byte of its type and one that ends it. */
	FDB_PREFIX_BYTES = FDB_PREFIX_NAME_BYTES + 2,
	/* The longest key or bound, with a prefix and the place of a stamp behind it. */
	FDB_KEY_BYTES = KV_LIMIT_KEY_BYTES + 1 + FDB_NUMBER_BYTES,

	/* Behind a template that gets a stamp: where, little-endian. */
	FDB_STAMP_PLACE_BYTES = 4,

	FDB_NETWORK_SINGLE_VERSION = 60, /* no other client library beside this one */
	FDB_DATABASE_MAX_WATCHES = 20,
	FDB_TX_NEXT_WRITE_NO_CONFLICT = 30,
	FDB_TX_READ_YOUR_WRITES_DISABLE = 51,
	FDB_TX_REPORT_CONFLICTING_KEYS = 712,
	FDB_TX_TIMEOUT = 500,
	FDB_MODE_EXACT = 0,

	FDB_SOURCE_CHAINS = 1024, /* of the table of watches that are shared */

	FDB_CODE_TIMED_OUT = 1031,

	FDB_CONFLICT_READ = 0,
	FDB_CONFLICT_WRITE = 1,

	FDB_MUTATION_ADD = 2,
	FDB_MUTATION_MAX = 12,
	FDB_MUTATION_MIN = 13,
	FDB_MUTATION_STAMPED_KEY = 14,
	FDB_MUTATION_STAMPED_VALUE = 15,
	FDB_MUTATION_BYTE_MIN = 16,
	FDB_MUTATION_BYTE_MAX = 17,
	FDB_MUTATION_COMPARE_AND_CLEAR = 20,
};

/* Return type, name behind "fdb_", parameters. */
#define FDB_FUNCTIONS(X)                                                                           \
	X(int, select_api_version_impl, (int runtime, int header))                                 \
	X(int, get_max_api_version, (void))                                                        \
	X(const char *, get_error, (int code))                                                     \
	X(int, network_set_option, (int option, const uint8_t *value, int len))                    \
	X(int, setup_network, (void))                                                              \
	X(int, run_network, (void))                                                                \
	X(int, stop_network, (void))                                                               \
	X(int, create_database, (const char *cluster_file, FDBDatabase **))                        \
	X(void, database_destroy, (FDBDatabase *))                                                 \
	X(int, database_set_option, (FDBDatabase *, int option, const uint8_t *value, int len))    \
	X(int, database_create_transaction, (FDBDatabase *, FDBTransaction **))                    \
	X(void, transaction_destroy, (FDBTransaction *))                                           \
	X(void, transaction_cancel, (FDBTransaction *))                                            \
	X(void, transaction_reset, (FDBTransaction *))                                             \
	X(int, transaction_set_option,                                                             \
	  (FDBTransaction *, int option, const uint8_t *value, int len))                           \
	X(FDBFuture *, transaction_get_read_version, (FDBTransaction *))                           \
	X(void, transaction_set_read_version, (FDBTransaction *, int64_t version))                 \
	X(FDBFuture *, transaction_get, (FDBTransaction *, const uint8_t *key, int len, int snap)) \
	X(FDBFuture *, transaction_get_range,                                                      \
	  (FDBTransaction *, const uint8_t *begin, int begin_len, int begin_or_equal,              \
	   int begin_offset, const uint8_t *end, int end_len, int end_or_equal, int end_offset,    \
	   int limit, int target_bytes, int mode, int iteration, int snap, int reverse))           \
	X(void, transaction_set,                                                                   \
	  (FDBTransaction *, const uint8_t *key, int key_len, const uint8_t *value, int len))      \
	X(void, transaction_clear, (FDBTransaction *, const uint8_t *key, int len))                \
	X(void, transaction_clear_range,                                                           \
	  (FDBTransaction *, const uint8_t *begin, int begin_len, const uint8_t *end,              \
	   int end_len))                                                                           \
	X(void, transaction_atomic_op,                                                             \
	  (FDBTransaction *, const uint8_t *key, int key_len, const uint8_t *operand, int len,     \
	   int type))                                                                              \
	X(int, transaction_add_conflict_range,                                                     \
	  (FDBTransaction *, const uint8_t *begin, int begin_len, const uint8_t *end, int end_len, \
	   int type))                                                                              \
	X(FDBFuture *, transaction_watch, (FDBTransaction *, const uint8_t *key, int len))         \
	X(FDBFuture *, transaction_commit, (FDBTransaction *))                                     \
	X(int, transaction_get_committed_version, (FDBTransaction *, int64_t *))                   \
	X(FDBFuture *, transaction_get_versionstamp, (FDBTransaction *))                           \
	X(FDBFuture *, transaction_get_estimated_range_size_bytes,                                 \
	  (FDBTransaction *, const uint8_t *begin, int begin_len, const uint8_t *end,              \
	   int end_len))                                                                           \
	X(void, future_cancel, (FDBFuture *))                                                      \
	X(void, future_destroy, (FDBFuture *))                                                     \
	X(int, future_set_callback, (FDBFuture *, fdb_callback *, void *arg))                      \
	X(int, future_get_error, (FDBFuture *))                                                    \
	X(int, future_get_int64, (FDBFuture *, int64_t *))                                         \
	X(int, future_get_key, (FDBFuture *, const uint8_t **, int *len))                          \
	X(int, future_get_value, (FDBFuture *, int *present, const uint8_t **, int *len))          \
	X(int, future_get_keyvalue_array,                                                          \
	  (FDBFuture *, const struct fdb_pair **, int *count, int *more))

#define FDB_KEY_METADATA STR("\xff/metadataVersion")

#define FDB_MEMBER(type, name, parameters) type(*name) parameters;

struct fdb_library {
	FDB_FUNCTIONS(FDB_MEMBER)
};

/* Complete once fdb_library_load() has been successful. */
extern struct fdb_library fdb;

/*
 * Loads the library and starts its thread, once per process. STATUS_UNSUPPORTED without a library
 * that speaks the API version, STATUS_NOMEM.
 */
MUST_USE enum status fdb_library_load(struct err *err);

/* The status that stands for an error code of the library. */
enum status fdb_status(int code);

/* That of a watch: it has seen a change, has ended with its transaction, or is lost. */
enum status fdb_watch_status(int code);

static inline const uint8_t *
fdb_ptr(struct str s)
{
	return (const uint8_t *)s.ptr;
}

/* A number as the value of an option. */
void fdb_put_number(uint8_t ret[FDB_NUMBER_BYTES], uint64_t n);

/* ---- Stores ---- */

struct fdb_future;
struct fdb_gathering;
struct fdb_joint;
struct fdb_source;
struct fdb_tx;

struct fdb_store {
	struct kv_store base;
	_Atomic uint64_t refs; /* the user's, and one a watch */
	FDBDatabase *database; /* NULL once closed */
	/*
	 * What all keys of this store begin with in the cluster, base.prefix_bytes of it; none
	 * where the cluster is this store's alone.
	 */
	char prefix[FDB_PREFIX_BYTES];
	_Atomic uint64_t commits;
	_Atomic uint64_t conflicts;
	pthread_mutex_t lock;       /* of all below; a transaction's may be taken inside it */
	struct fdb_future *watches; /* those that have not completed */
	uint64_t watch_count;
	struct fdb_source *sources[FDB_SOURCE_CHAINS]; /* that others may follow, see watches.c */
	/* Those that have asked and do not commit yet, in the order of their first question. */
	struct fdb_tx *asked_first;
	struct fdb_tx *asked_last;
	pthread_t timekeeper; /* see time.c */
	pthread_cond_t timekeeper_woken;
	bool timekeeper_runs;
	bool closing;
	struct fdb_gathering *gathering; /* see metadata.c; NULL: none is open */
	struct fdb_joint *joint;         /* that waits, and may be joined (joint.c); NULL: none */
	struct fdb_joint *joints;        /* those under way */
	uint32_t joints_under_way;
	uint32_t joint_doubted;
	/* Kept for those that begin next: ours, and the library's, which have been reset. */
	struct fdb_tx *spares;
	size_t spare_count;
	FDBTransaction *spare_library[FDB_SPARE_TXS];
	size_t spare_library_count;
};

/* Gives up a reference: the user's, or a watch's. The last one frees the store. */
void fdb_store_unref(struct fdb_store *store);

/* ---- Futures ---- */

enum fdb_op {
	FDB_GET,
	FDB_RANGE,
	FDB_COMMIT,
	FDB_WATCH,
	FDB_NUMBER, /* a version or a size */
	FDB_STAMP,
};

enum {
	FDB_PARTS_INLINE = 2,
};

struct fdb_future {
	struct kv_future base;
	struct event settled; /* set after base.event, for waits of the engine itself */
	enum fdb_op op;
	_Atomic uint32_t refs; /* the owner's, and the callback's until the answer is there */
	pthread_mutex_t lock;
	bool abandoned;          /* its owner has let go of it */
	uint64_t life;           /* that its transaction had, see fdb_tx */
	struct fdb_store *store; /* a watch holds a reference */
	FDBTransaction *tx;      /* of a range that goes on */
	bool shares;             /* that one is others', too */
	/* The store's lock: the source that a watch follows; NULL: none, or none any more. */
	struct fdb_source *source;
	struct fdb_future *earlier_follower;
	struct fdb_future *later_follower;
	struct fdb_future *next; /* of the transaction, or the store's watches */
	struct fdb_future *prev;
	bool linked;
	int code; /* the library's, for the explanation */
	int64_t number;
	bool counts; /* of a commit: there is something to commit */
	/* The library's futures, whose answers' bytes are borrowed; the last may be pending. */
	FDBFuture **parts;
	size_t part_count;
	size_t part_cap;
	FDBFuture *inline_parts[FDB_PARTS_INLINE];
	/* Of a range. */
	struct kv_pair *pairs; /* owned */
	size_t pair_cap;
	struct kv_range_options options; /* what remains of the limits */
	struct str begin;                /* what remains of the range */
	bool begun;                      /* then `begin` is the last key that was taken */
	struct str end;
	struct str whole_begin; /* as it was asked for */
	struct str whole_end;
	bool snapshot;
	bool conflicts; /* adds the conflict of what it has read itself */
	bool notes;     /* the transaction is still to note it */
	size_t bounds_bytes;
	size_t held_bytes; /* of what its transaction holds (kv_tx_hold()); the owner's thread */
	char bounds[];
};

struct fdb_tx {
	struct kv_tx base;
	FDBTransaction *tx;    /* the library's; NULL until there is something to ask or to write */
	struct fdb_view *view; /* that it reads with others, or has read with; NULL: none */
	_Atomic bool shares;   /* then `tx` is the view's, and others read in it */
	uint64_t version;      /* what it reads at; 0: not known here */
	struct fdb_tx *earlier; /* in the store's list of those that have asked */
	struct fdb_tx *later;
	bool timed; /* it is in that list; the store's lock */
	_Atomic bool timed_out;
	struct fdb_tx *next_spare;
	/* Of `tx`, `committing` and `life`, between the owner, kv_cancel() and the timekeeper. */
	pthread_mutex_t lock;
	bool committing;
	/*
	 * A number that no other transaction of the process has, and that changes with each reset.
	 * Watches outlive their transaction, and are found by it.
	 */
	uint64_t life;
	_Atomic bool cancelled;
	_Atomic bool answered;      /* it has a read version, which ages */
	uint64_t asked_ns;          /* when its first question was asked; 0: none was */
	bool used;                  /* kv_commit() has been called */
	bool written;               /* the commit will have a version */
	bool follows;               /* a watch of it is a source's */
	struct fdb_future *futures; /* all but watches */
	struct fdb_future *commit;
	struct fdb_future *stamp;
	bool touched_metadata;
	/* The metadata version, once it has been read: several parts of a request ask for it. */
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	bool metadata_known;
	bool ranges_open; /* ranges may be under way: writes wait for them */
	/*
	 * It reads in its view, and what it writes and conflicts with is in `notes`; and with the
	 * metadata version.
	 */
	bool noting;
	struct buf notes;
	size_t notes_owed;       /* of ranges that are still to be noted */
	uint32_t orders;         /* of stamps in them: more than the highest */
	struct fdb_joint *joint; /* that it was committed in, with a reference */
	/*
	 * Where the store has a prefix: two buffers of FDB_KEY_BYTES that begin with it, for the
	 * keys of a call, which the library copies. NULL without one.
	 */
	char *keys[2];
};

/*
 * `key` as the cluster has it: itself, or behind the store's prefix in the `which`th buffer, until
 * that is used again.
 */
static inline struct str
fdb_tx_key(struct fdb_tx *tx, int which, struct str key)
{
	size_t prefix = tx->base.store->prefix_bytes;

	if (prefix == 0)
		return key;
	if (key.len)
		memcpy(tx->keys[which] + prefix, key.ptr, key.len);
	return str_of(tx->keys[which], prefix + key.len);
}

/*
 * A future of `tx`, of `part` (given away in any case; NULL: put in by the caller, or by the start
 * of a range), with `bounds_bytes` at its end. NULL when out of memory. It has to be started.
 */
struct fdb_future *fdb_future_new(struct fdb_tx *tx, enum fdb_op op, FDBFuture *part,
				  size_t bounds_bytes);

/* Has the answer delivered; the future must be complete in all else. */
void fdb_future_start(struct fdb_future *f);

/* Completes a commit that has no part; `code` is the library's, or 0. It may be gone afterwards. */
void fdb_future_end_commit(struct fdb_future *f, enum status status, int code);

/* Waits without counting. */
enum status fdb_future_wait(struct fdb_future *f);

/* The owner's end of any but a watch; cancelled if it is pending. */
void fdb_future_release(struct fdb_tx *tx, struct fdb_future *f);

void fdb_future_free(struct kv_future *f);
void fdb_future_settle(struct kv_future *f);
void fdb_future_explain(struct kv_future *f);

/*
 * Completes one that the library has no part in, in place of a callback, whose reference it gives
 * up: a watch that follows no source any more, the commit of what has only read.
 */
void fdb_future_complete(struct fdb_future *f, enum status status);

/* Completes the watches of a transaction's life with STATUS_CANCELLED; 0: all watches. */
void fdb_watches_cancel(struct fdb_store *store, uint64_t life);

/* ---- Metrics (metrics.c) ---- */

/* A transaction, or an attempt of one, is over. */
void fdb_count_transaction(const struct kv_tx_stats *stats);

/* A transaction has got its first answer. `asked_ns` is when it asked, by clock_mono_ns(). */
void fdb_count_answer(uint64_t asked_ns);

/* An answer of the library's. Any code: those that tell nothing of the cluster are not counted. */
void fdb_count_failure(int code);

/* ---- What waits for the next transactions (spare.c) ---- */

/* A library's transaction, as new; given back it is reset, and serves again. */
MUST_USE enum status fdb_library_take(struct fdb_store *store, FDBTransaction **ret);
void fdb_library_give(struct fdb_store *store, FDBTransaction *tx);

/* Ours; NULL: none waits. */
struct fdb_tx *fdb_spare_take(struct fdb_store *store);
void fdb_spare_give(struct fdb_store *store, struct fdb_tx *tx);

/* Before the database is closed. */
void fdb_spares_free(struct fdb_store *store);

/* ---- How long a cluster is waited for (time.c) ---- */

/* Starts the thread that looks after it. STATUS_NOMEM. */
MUST_USE enum status fdb_time_start(struct fdb_store *store);
void fdb_time_stop(struct fdb_store *store);

/*
 * From now on whatever the transaction waits for fails after FDB_READ_TIMEOUT_MS, until
 * fdb_time_end(), which does nothing where none was begun.
 */
void fdb_time_begin(struct fdb_tx *tx);
void fdb_time_end(struct fdb_tx *tx);

/* ---- Sources of watches (source.c) ---- */

/*
 * One of `key`, as the cluster has it, at a version; with a reference of the caller's.
 * `complete`: fdb_future_complete(). STATUS_NOMEM, and what the library says.
 */
MUST_USE enum status fdb_source_new(struct fdb_store *store, struct str key, uint64_t version,
				    void (*complete)(struct fdb_future *f, enum status status),
				    struct fdb_source **ret);
/* Once it has its follower, or will never have one: from now on it tells when it fires. */
void fdb_source_start(struct fdb_source *s);
void fdb_source_cancel(struct fdb_source *s);
void fdb_source_unref(struct fdb_source *s);

/* With the store's lock held: one that a transaction may follow which has read at `version`. */
struct fdb_source *fdb_source_find_locked(struct fdb_store *store, struct str key,
					  uint64_t version);
/* Others may find it. */
void fdb_source_list_locked(struct fdb_source *s);
void fdb_source_follow_locked(struct fdb_source *s, struct fdb_future *f);

/* True if it followed a source until now: then the caller completes it, or has its reference. */
bool fdb_source_leave(struct fdb_future *f);

/* ---- Transactions ---- */

/*
 * Before each use: there is a transaction of the library's afterwards. STATUS_CANCELLED,
 * STATUS_TX_USED, STATUS_NOMEM.
 */
MUST_USE enum status fdb_tx_check(struct fdb_tx *tx);

/* Whatever it waits for fails after so long, as the library's own clock tells. */
void fdb_tx_set_timeout(struct fdb_tx *tx, uint64_t ms);

/* Asks for a key as the cluster has it; the future is the transaction's. */
MUST_USE enum status fdb_tx_get(struct fdb_tx *tx, struct str key, enum kv_read mode,
				struct fdb_future **ret);

/* Waits for a number; `part` is given away. */
MUST_USE enum status fdb_tx_wait_for_number(struct fdb_tx *tx, FDBFuture *part, uint64_t *ret);

/* Waits for all ranges that were asked for. */
void fdb_tx_settle_ranges(struct fdb_tx *tx);

/* See kv_estimate_bytes(). */
enum status fdb_tx_estimate(struct fdb_tx *tx, struct str begin, struct str end, uint64_t *ret);

/* See engine.h. */

enum status fdb_begin(struct kv_store *store, enum kv_tx_kind kind, struct kv_tx **ret);
void fdb_tx_free(struct kv_tx *tx);
void fdb_tx_reset(struct kv_tx *tx);
void fdb_cancel(struct kv_tx *tx);
struct kv_future *fdb_get(struct kv_tx *tx, struct str key, enum kv_read mode);
struct kv_future *fdb_get_range(struct kv_tx *tx, struct str begin, struct str end,
				const struct kv_range_options *options);
enum status fdb_get_read_version(struct kv_tx *tx, uint64_t *ret);
enum status fdb_set(struct kv_tx *tx, struct str key, struct str value);
enum status fdb_set_no_conflict(struct kv_tx *tx, struct str key, struct str value);
enum status fdb_clear_range(struct kv_tx *tx, struct str begin, struct str end);
enum status fdb_clear(struct kv_tx *tx, struct str key);
enum status fdb_atomic(struct kv_tx *tx, enum kv_atomic op, struct str key, struct str operand);
enum status fdb_set_versionstamped_key(struct kv_tx *tx, struct str key, size_t offset,
				       struct str value);
enum status fdb_set_versionstamped_value(struct kv_tx *tx, struct str key, struct str value,
					 size_t offset);
enum status fdb_add_read_conflict(struct kv_tx *tx, struct str begin, struct str end);
enum status fdb_add_write_conflict(struct kv_tx *tx, struct str begin, struct str end);
enum status fdb_get_metadata_version(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES]);
enum status fdb_touch_metadata_version(struct kv_tx *tx);
struct kv_future *fdb_commit(struct kv_tx *tx);
enum status fdb_committed_version(struct kv_tx *tx, uint64_t *ret);
enum status fdb_conflicting_key(struct kv_tx *tx, struct buf *key);
enum status fdb_versionstamp(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES]);
struct kv_future *fdb_watch(struct kv_tx *tx, struct str key);
int fdb_retry_delay_ms(struct kv_tx *tx, enum status status);

#endif
