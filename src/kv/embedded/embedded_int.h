/*
 * The embedded engine: the transaction contract over one RocksDB directory in one process. How it
 * works is told in ../README.md.
 */
#ifndef FROND_KV_EMBEDDED_INT_H
#define FROND_KV_EMBEDDED_INT_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/metric.h"
#include "kv/embedded/damage.h"
#include "kv/embedded/disk.h"
#include "kv/embedded/fill.h"
#include "kv/embedded/gate.h"
#include "kv/embedded/latest.h"
#include "kv/embedded/overlay.h"
#include "kv/embedded/recent.h"
#include "kv/embedded/resolver.h"
#include "kv/embedded/spares.h"
#include "kv/engine.h"
#include "kv/shape.h"

enum {
	/* A transaction's writes, its overlay, its conflict ranges and small answers. */
	EMB_TX_ARENA_BYTES = 128 * 1024 * 1024,
	EMB_TX_SEVERAL = 8, /* ranges that a transaction knows to have several pairs */
	EMB_RANGE_ANSWER_BYTES = 64 * 1024 * 1024,
	/* Transactions waiting for the committer; past either the next commit is STATUS_LIMIT. */
	EMB_QUEUE_TXS = 65536,
	EMB_QUEUE_BYTES = 256 * 1024 * 1024,
	/* One group commit. The order within it must fit into the stamp's two bytes. */
	EMB_BATCH_TXS = 8192,
	EMB_BATCH_BYTES = 16 * 1024 * 1024,
	/*
	 * A range is cleared key by key while its keys have no more bytes than one transaction can
	 * have written, and all the ranges of a transaction together no more than the second.
	 */
	EMB_CLEAR_BYTES = KV_LIMIT_TX_BYTES,
	EMB_CLEAR_TX_BYTES = 32 * 1024 * 1024,
	/* Beyond, the resolver forgets what open transactions need: they get STATUS_TX_TOO_OLD. */
	EMB_RESOLVER_BYTES = 32 * 1024 * 1024,
	EMB_PATH_BYTES = 4096, /* of the path of a store that is being restored */
};

/* The keys of the engine itself, which no transaction can use. */
#define EMB_KEY_VERSION  STR("\xff/version")         /* 8 bytes, big-endian */
#define EMB_KEY_METADATA STR("\xff/metadataVersion") /* 10 bytes: a stamp */

/*
 * One published version of the store, shared by the transactions that read at it. The lock of the
 * versions guards the links, `refs` and `writers`. `snapshot` is looked at inside the gate only;
 * the rest never changes.
 */
struct emb_snapshot {
	struct emb_snapshot *older; /* in the list of snapshots that have writers */
	struct emb_snapshot *newer;
	struct emb_snapshot *next; /* in the list of all snapshots, or of the spare ones */
	struct emb_snapshot *prev;
	const rocksdb_snapshot_t *snapshot; /* NULL: stale, the handle has been replaced */
	rocksdb_readoptions_t *read;        /* from cache and disk */
	rocksdb_readoptions_t *read_cached; /* from memory only */
	uint64_t version;
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	uint32_t refs;
	uint32_t writers; /* read-write transactions among the refs that are still to be judged */
};

/* versions.c says why a snapshot and its version agree. The lock guards all that is below it. */
struct emb_versions {
	pthread_mutex_t lock;
	uint64_t published;
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	struct emb_snapshot *current;        /* of `published`; NULL until it is first read */
	struct emb_snapshot *oldest_writers; /* of the snapshots that have writers */
	struct emb_snapshot *newest_writers;
	struct emb_snapshot *first;  /* of all that exist */
	size_t snapshots;            /* how many these are */
	struct emb_snapshot *spares; /* that nobody reads at */
	unsigned spare_count;
	/* Transactions that have a snapshot: those that may write, and brief ones (kv/brief.h). */
	struct emb_tx *open;
};

struct emb_tx;

/*
 * Transactions that wait for the committer. commit.c says which thread makes the next batch. The
 * lock guards all that is below it.
 */
struct emb_queue {
	pthread_mutex_t lock;
	pthread_cond_t filled; /* or `busy` cleared, or `closing` set: one thread waits for it */
	struct emb_tx *first;
	struct emb_tx *last;
	size_t txs;
	size_t bytes;
	bool busy; /* a thread is making a batch, and owns the committer */
	bool closing;
};

enum {
	EMB_ENTITIES_NAME_BYTES = 256,
};

/* A shape (kv/shape.h), made ready for being asked about every key. */
struct emb_entities {
	struct kv_shape shape;
	/* By a subspace: its place among `kinds`. At 0 is what makes an entity in all others. */
	uint8_t places[KV_SHAPE_SPACE_MOST + 1];
	struct kv_entity kinds[1 + KV_SHAPE_SPACES];
	uint64_t id; /* of the process's shapes */
	char name[EMB_ENTITIES_NAME_BYTES];
};

struct watches;
struct committer;
struct kept;

/*
 * How the store's disk does. reopen.h says what the states are and what leads from one to another.
 * The lock guards `why`. What is not atomic belongs to the thread that owns the committer.
 */
struct emb_health {
	_Atomic(enum kv_store_state) state;
	pthread_mutex_t lock;
	struct err why;          /* the failure that led to the state */
	bool create;             /* the directory may be made */
	bool syncs;              /* commits and probes */
	bool writable;           /* the handle has been opened for writing */
	uint64_t probe_ms;       /* between two looks at a disk that is full */
	uint64_t due_ns;         /* when to look next */
	uint64_t pause_ms;       /* after the next failure that follows soon */
	uint64_t reopened_at_ns; /* 0: never */
	kv_store_told *told;
	void *told_arg;
	_Atomic uint32_t long_uses; /* backups and compactions under way */
	_Atomic uint64_t reopenings;
	_Atomic uint64_t failed_writes;
};

/* What a standby has heard of its first (standby.c). */
struct emb_heard {
	_Atomic uint64_t behind;   /* versions */
	_Atomic uint64_t equal_ns; /* when it last had all of them, or was opened */
};

struct emb_store {
	struct kv_store base;
	char *path;
	struct emb_damages damages;
	/*
	 * RocksDB's handle: used inside the gate, or by the thread that owns the committer, which
	 * alone replaces it. NULL while the store cannot be opened.
	 */
	rocksdb_t *db;
	rocksdb_column_family_handle_t *family; /* for many keys; NULL: opened for reading only */
	struct gate gate;
	struct emb_health health; /* and how it is replaced: reopen.h */
	rocksdb_options_t *options;
	rocksdb_cache_t *cache;
	rocksdb_readoptions_t *read_latest;
	rocksdb_writeoptions_t *write_options;
	rocksdb_writeoptions_t *write_at_once; /* fails, if it would have to wait */

	struct emb_versions versions;
	struct recent *recent; /* NULL: the store keeps no pairs in front of RocksDB */
	struct gaps *gaps;
	uint64_t search_ns; /* a search that takes longer is remembered there */
	struct emb_queue queue;
	struct watches *watches;
	struct committer *committer; /* NULL when read-only */
	struct fill fill;            /* of the log; the committer's */
	struct emb_disk disk;        /* of reads */
	struct emb_disk log;         /* of commits */
	struct emb_spares spares;
	bool keeps_log;    /* RocksDB has been told so */
	struct kept *kept; /* kept.h; NULL: no log is kept */
	struct emb_heard heard;
	struct emb_entities entities;

	/* Copies of what the resolver has, which only the committer may look at: */
	_Atomic uint64_t oldest_judged; /* what was read before it can no longer be judged */
	_Atomic uint64_t history_bytes;

	_Atomic uint64_t commits;
	_Atomic uint64_t conflicts;
	_Atomic uint64_t batches;

	struct metric_collector collector; /* metrics.c */
};

struct emb_conflict {
	struct emb_conflict *next;
	struct str begin;
	struct str end;
};

struct emb_conflicts {
	struct emb_conflict *first;
	struct emb_conflict *last;
};

enum emb_tx_state {
	EMB_TX_ACTIVE,
	EMB_TX_COMMITTED, /* or committing, or refused: the commit's future tells which */
};

enum {
	EMB_FUTURE_CLASSES = 3,
};

struct emb_ahead;

struct emb_future {
	struct kv_future base;
	struct emb_future *next; /* in the transaction's `heap_futures`, or in `free_futures` */
	struct emb_future *prev;
	void *heap; /* the answer's bytes when they are not behind this struct */
	size_t heap_bytes;
	struct emb_ahead *ahead; /* the pool may be reading it, until emb_ahead_settle() */
	int size_class;          /* of its block */
};

struct emb_watch;

/*
 * A transaction. It belongs to its owner's thread until it is queued for its commit, and then to
 * the committer until `commit.event` is set; committer.c. What kv_cancel() and watches do from
 * other threads is atomic or guarded as is said.
 */
struct emb_tx {
	struct kv_tx base;
	struct emb_store *store;
	atomic_bool cancelled;
	enum emb_tx_state state;
	struct arena *arena;
	struct emb_snapshot *snapshot; /* NULL until something is read */
	/* Among the writers of its snapshot; the lock of the versions guards it. */
	bool counted_writer;
	/* Of the transactions that are open; the same lock guards them. */
	struct emb_tx *open_next;
	struct emb_tx *open_prev;
	bool is_open;                   /* it is among those */
	rocksdb_readoptions_t *iterate; /* for ranges; made by the first */
	/*
	 * Of one that is open: kept between ranges within entities until it commits. It is looked
	 * at inside the gate only, and NULL if the handle has been replaced in the meantime.
	 */
	rocksdb_iterator_t *lookup;
	rocksdb_iterator_t *finder;       /* the same for last pairs of ranges that have several */
	bool has_lookup;                  /* the owner has made one of them */
	uint64_t several[EMB_TX_SEVERAL]; /* hashes of where such ranges begin */

	struct mutation *first; /* the log */
	struct mutation *last;
	struct mutation *unentered; /* it and all behind it are not in the overlay yet */
	struct latest latest;       /* of those */
	struct mutation_adds adds;
	struct overlay overlay;
	struct emb_conflicts read_conflicts;
	struct emb_conflicts write_conflicts;
	/* Of writes and conflict ranges, for the limits of the queue and of a batch. */
	size_t bytes;
	bool has_range_clears;
	size_t cleared_bytes; /* of the keys found in cleared ranges */
	bool touched_metadata;
	_Atomic(struct emb_watch *) watches; /* pending; the lock of the watches guards the list */

	struct emb_future *heap_futures;
	struct emb_future *free_futures[EMB_FUTURE_CLASSES];
	struct emb_ahead *spare_aheads; /* with their memory, for the next stretches of a scan */
	struct buf scratch;             /* bytes of a range answer while it is collected */
	struct buf scratch_pairs;       /* and their lengths */

	struct kv_future commit;
	bool queued; /* the committer has it, or had it */
	struct emb_tx *queued_behind;
	uint64_t committed_version; /* 0: nothing was written */
	uint16_t committed_order;
};

/* ---- Steps of a group commit, for tests ---- */

enum emb_step {
	EMB_STEP_TAKEN,     /* transactions have left the queue; none is judged */
	EMB_STEP_RESOLVED,  /* they are one batch; nothing is written */
	EMB_STEP_WRITTEN,   /* the disk has the batch; no transaction can see it */
	EMB_STEP_PUBLISHED, /* transactions that begin now see it; no commit has been completed */
	EMB_STEP_ANSWERED,  /* all commits have been completed */
	EMB_STEPS,
};

/*
 * Called by the committer's thread at each step of each batch that gets so far. NULL, except in
 * tests that end the process there; they set it before a store is opened.
 */
extern void (*emb_step_hook)(enum emb_step step);

/* ---- RocksDB's errors and counters: rocksdb.c ---- */

/*
 * Switches off RocksDB's counters on the calling thread. RocksDB counts each comparison of keys in
 * variables of the thread, which takes about a tenth of the time of a write. Calling it again costs
 * nothing.
 */
void emb_count_nothing(void);

/* True if a read that was confined to memory would have needed the disk. */
bool emb_is_incomplete(const char *rocksdb_error);

/* The status of an error of RocksDB, which is freed; explained with `what` was being done. */
enum status emb_error(char *rocksdb_error, const char *what, struct err *err);

/* ---- Entities: entity.c ---- */

/* `shape` NULL: no key belongs to an entity. STATUS_INVALID for a shape that makes no sense. */
MUST_USE enum status emb_entities_init(struct emb_entities *entities, const struct kv_shape *shape,
				       struct err *err);

/* How much of the key says which entity it belongs to; 0: to none. */
size_t emb_entity_len(const struct emb_entities *entities, struct str key);

/*
 * What RocksDB makes filters of beside whole keys: the beginnings that emb_entity_len() tells.
 * Iterators of a store with such filters see all keys of the entity that they are put to and not
 * all others, unless `total_order_seek` is set: which it has to be, but within an entity.
 * `entities` must outlive the database that has it.
 */
rocksdb_slicetransform_t *emb_entities_extractor(const struct emb_entities *entities);

/* True if the key belongs to the entity, or to the subspace, whose keys begin so. */
static inline bool
emb_entity_has(struct str entity, struct str key)
{
	/* Behind the entity's last element FF would go on with it, as an escaped NUL. */
	return str_starts_with(key, entity) &&
	       (key.len == entity.len || (uint8_t)key.ptr[entity.len] < UINT8_MAX);
}

/* How much of the key names its database and subspace: two integers; 0: it does not begin so. */
size_t emb_space_len(const struct emb_entities *entities, struct str key);

/* emb_entity_len() of `begin`, if all keys of the range belong to that entity; else 0. */
size_t emb_range_entity_len(const struct emb_entities *entities, struct str begin, struct str end);
/* The same of the subspace: emb_space_len(), or 0. */
size_t emb_range_space_len(const struct emb_entities *entities, struct str begin, struct str end);

/* ---- Versions: versions.c ---- */

void emb_versions_init(struct emb_versions *v, uint64_t published,
		       const uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES]);
void emb_versions_fini(struct emb_store *store);

/* With the gate closed: frees what belongs to the handle, which is about to be closed. */
void emb_versions_let_go(struct emb_store *store);
/* With the gate closed: the new handle has `version`, which may be above the published one. */
void emb_versions_reopened(struct emb_store *store, uint64_t version,
			   const uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES]);

/* The transaction's snapshot, of the newest published version at its first call. STATUS_NOMEM. */
MUST_USE enum status emb_tx_snapshot(struct emb_tx *tx, struct emb_snapshot **ret);
void emb_tx_snapshot_release(struct emb_tx *tx);

/*
 * The committer calls the first before it writes a batch, and the second when the batch is on disk;
 * after a write that has failed, not at all. Transactions that begin in between read the version
 * before the batch.
 */
MUST_USE enum status emb_versions_hold(struct emb_store *store);
/*
 * Publishes what the batch of `txs` has written. Gives the oldest version at which a transaction
 * reads that is still to be judged, which `txs` are not any more; or `version` if there is none.
 */
uint64_t emb_versions_publish(struct emb_store *store, uint64_t version,
			      const uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES], struct emb_tx *txs);

/* ---- Transactions: tx.c ---- */

/* The engine's table; see engine.h. */
enum status emb_begin(struct kv_store *store, enum kv_tx_kind kind, struct kv_tx **ret);
void emb_tx_free(struct kv_tx *base);
void emb_tx_reset(struct kv_tx *base);
void emb_cancel(struct kv_tx *base);
int emb_retry_delay_ms(struct kv_tx *tx, enum status status);
enum status emb_get_read_version(struct kv_tx *base, uint64_t *ret);
enum status emb_committed_version(struct kv_tx *base, uint64_t *ret);
enum status emb_versionstamp(struct kv_tx *base, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES]);
enum status emb_add_read_conflict(struct kv_tx *base, struct str begin, struct str end);
enum status emb_add_write_conflict(struct kv_tx *base, struct str begin, struct str end);
enum status emb_set(struct kv_tx *tx, struct str key, struct str value);
enum status emb_clear(struct kv_tx *tx, struct str key);
enum status emb_clear_range(struct kv_tx *base, struct str begin, struct str end);
enum status emb_atomic(struct kv_tx *base, enum kv_atomic op, struct str key, struct str operand);
enum status emb_set_versionstamped_key(struct kv_tx *tx, struct str key, size_t offset,
				       struct str value);
enum status emb_set_versionstamped_value(struct kv_tx *tx, struct str key, struct str value,
					 size_t offset);
enum status emb_get_metadata_version(struct kv_tx *base, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES]);
enum status emb_touch_metadata_version(struct kv_tx *base);
bool emb_refresh(struct kv_tx *base);

/* ---- The state of a transaction: tx_state.c ---- */

/* STATUS_CANCELLED, STATUS_TX_USED. */
MUST_USE enum status emb_tx_check(struct emb_tx *tx);

/*
 * STATUS_TX_TOO_OLD once the transaction can only fail: it has written, and what it has read can no
 * longer be judged.
 */
MUST_USE enum status emb_tx_check_age(struct emb_tx *tx);

/* The status of a read through a snapshot of a handle that has been replaced: STATUS_TX_TOO_OLD. */
enum status emb_tx_stale(struct err *err);

/* The status of a failed allocation from the arena: STATUS_NOMEM, or STATUS_TX_TOO_LARGE. */
enum status emb_tx_no_room(struct emb_tx *tx);

/* Adds a conflict range to one of the transaction's lists. The bytes are copied into its arena. */
MUST_USE enum status emb_tx_add_conflict(struct emb_tx *tx, struct emb_conflicts *list,
					 struct str begin, struct str end);
MUST_USE enum status emb_tx_add_key_conflict(struct emb_tx *tx, struct emb_conflicts *list,
					     struct str key);

/* ---- Futures: future.c ---- */

/* A future that is done, with room for `bytes` of answer at `*ret_room`. NULL: out of memory. */
struct emb_future *emb_future_new(struct emb_tx *tx, enum kv_future_kind kind, size_t bytes,
				  char **ret_room);
/* The future of a read ahead, which it owns from now on. NULL: out of memory. */
struct emb_future *emb_future_new_ahead(struct emb_tx *tx, struct emb_ahead *ahead);
void emb_future_free(struct emb_future *f);

/* ---- Reads: read.c; emb_lookup_release(): range.c ---- */

/* Enters the mutations that are new in the log into the overlay. */
MUST_USE enum status emb_tx_enter_writes(struct emb_tx *tx);
struct kv_future *emb_get(struct kv_tx *base, struct str key, enum kv_read mode);
struct kv_future *emb_get_head(struct kv_tx *base, struct str key, enum kv_read mode);
void emb_get_many(struct kv_tx *base, const struct str *keys, size_t count, enum kv_read mode,
		  struct kv_future **ret);
struct kv_future *emb_get_range(struct kv_tx *base, struct str begin, struct str end,
				const struct kv_range_options *options);

/* Lets go of the iterator that is kept between ranges, and of the memory and files it holds. */
void emb_lookup_release(struct emb_tx *tx);

/*
 * Looks up the keys that the snapshot has in the range of a clear. If they stay within the limits,
 * they are kept in the mutation, and its `keys_known` is set.
 */
MUST_USE enum status emb_find_keys(struct emb_tx *tx, struct mutation *m);

/* What a key has at a snapshot. It owns the bytes of its cell, until emb_found_release(). */
struct emb_found {
	struct cell cell;
	rocksdb_pinnableslice_t *slice; /* NULL unless RocksDB has given them */
	struct recent_answer recent;
};
void emb_found_release(struct emb_found *found);
/* Reads the key at the transaction's snapshot, which it has; own writes do not count. */
MUST_USE enum status emb_read_key(struct emb_tx *tx, struct str key, bool head,
				  struct emb_found *ret);

/* ---- Commits: commit.c (the caller's side), committer.c (the thread) ---- */

struct kv_future *emb_commit(struct kv_tx *base);

/*
 * Makes a batch of this transaction alone on the calling thread, which has found the queue empty
 * and has set it busy. Returns false if RocksDB is stalling or has to be opened again: nothing
 * was written, and the transaction has to be queued.
 */
MUST_USE bool emb_committer_lead(struct emb_store *store, struct emb_tx *tx);

MUST_USE enum status emb_committer_start(struct emb_store *store, struct err *err);
void emb_committer_stop(struct emb_store *store);

#endif
