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
#include "kv/embedded/disk.h"
#include "kv/embedded/overlay.h"
#include "kv/embedded/resolver.h"
#include "kv/engine.h"

enum {
	/*
	 * What misses it is mostly in the kernel's cache: 64 MB would save a GET out of 100,000
	 * documents 3 % of its processor time, and out of 1,000,000 nothing that can be measured.
	 */
	EMB_CACHE_BYTES = 40 * 1024 * 1024,
	/* A transaction's writes, its overlay, its conflict ranges and small answers. */
	EMB_TX_ARENA_BYTES = 128 * 1024 * 1024,
	EMB_RANGE_ANSWER_BYTES = 64 * 1024 * 1024,
	EMB_MANIFEST_NAME_BYTES = 64,
	/* Openings for reading only, beside a process whose files change meanwhile, and the pause
	 * between them. */
	EMB_READ_ATTEMPTS = 50,
	EMB_READ_PAUSE_MS = 20,
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
	EMB_CLEAR_INLINE_KEYS = 1024, /* more are not looked up on a loop's thread */
	EMB_LEAD_BYTES = 64 * 1024,   /* larger transactions are the committer's thread's */
	/* With this many bytes the resolver forgets what open transactions still need: they get
	 * STATUS_TX_TOO_OLD. */
	EMB_RESOLVER_BYTES = 32 * 1024 * 1024,
	EMB_PATH_BYTES = 4096, /* of the path of a store that is being restored */
};

/* Where the engine keeps what is its own. */
#define EMB_KEY_VERSION  STR("\xff/version")         /* 8 bytes, big-endian */
#define EMB_KEY_METADATA STR("\xff/metadataVersion") /* 10 bytes: a stamp */

/*
 * One published version of the store, shared by the transactions that read at it. The links, `refs`
 * and `writers` are the versions lock's; the rest never changes.
 */
struct emb_snapshot {
	struct emb_snapshot *older; /* of those that have writers */
	struct emb_snapshot *newer;
	const rocksdb_snapshot_t *snapshot;
	rocksdb_readoptions_t *read;        /* from cache and disk */
	rocksdb_readoptions_t *read_cached; /* from memory only */
	uint64_t version;
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	uint32_t refs;
	uint32_t writers; /* read-write transactions among the refs that are still to be judged */
};

struct emb_versions {
	pthread_mutex_t lock;
	uint64_t published;
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	struct emb_snapshot *current;        /* of `published`; NULL until somebody reads it */
	struct emb_snapshot *oldest_writers; /* the resolver serves those that have writers */
	struct emb_snapshot *newest_writers;
	size_t snapshots;
};

struct emb_tx;

struct emb_queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct emb_tx *first;
	struct emb_tx *last;
	size_t txs;
	size_t bytes;
	bool busy; /* a batch is being made: by the committer's thread, or by one who leads */
	bool closing;
};

struct watches;
struct committer;

struct emb_store {
	struct kv_store base;
	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_cache_t *cache;
	rocksdb_readoptions_t *read_latest;
	rocksdb_writeoptions_t *write_options;
	rocksdb_writeoptions_t *write_at_once; /* or fail before anything is written */

	struct emb_versions versions;
	struct emb_queue queue;
	struct watches *watches;
	struct committer *committer; /* NULL when read-only */
	atomic_bool failed;          /* a write was refused: nothing is acknowledged any more */
	/* The store has deleted ranges: iterators must not be confined to the cache, range.c. */
	atomic_bool has_deleted_ranges;
	struct emb_disk disk;
	struct emb_disk log;

	/* The resolver's, for everybody else to read: */
	_Atomic uint64_t oldest_judged; /* who read before it and writes can only be refused */
	_Atomic uint64_t history_bytes;

	_Atomic uint64_t commits;
	_Atomic uint64_t conflicts;
	_Atomic uint64_t batches;
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
	EMB_TX_COMMITTED, /* or on its way there, or refused; the commit's future tells */
};

enum {
	EMB_FUTURE_CLASSES = 3,
};

struct emb_ahead;

struct emb_future {
	struct kv_future base;
	struct emb_future *next; /* of the tx's heap answers, or of a free list */
	struct emb_future *prev;
	void *heap;              /* the answer's bytes when they are not behind this struct */
	struct emb_ahead *ahead; /* the pool may be reading it; not `done` before it is settled */
	int size_class;
};

struct emb_watch;

struct emb_tx {
	struct kv_tx base;
	struct emb_store *store;
	atomic_bool cancelled;
	enum emb_tx_state state;
	struct arena *arena;
	struct emb_snapshot *snapshot;  /* NULL until something is read */
	bool counted_writer;            /* among the snapshot's; the versions lock's */
	rocksdb_readoptions_t *iterate; /* for ranges; made by the first */
	/* A read-write transaction's, kept between ranges within entities until it commits. */
	rocksdb_iterator_t *lookup;
	bool lookup_from_cache;

	struct mutation *first;
	struct mutation *last;
	struct mutation *unentered; /* into the overlay, and all behind it */
	struct overlay overlay;
	struct emb_conflicts read_conflicts;
	struct emb_conflicts write_conflicts;
	size_t bytes; /* of writes and conflict ranges, for KV_LIMIT_TX_BYTES */
	bool has_atomics;
	bool has_range_clears;
	size_t cleared_bytes; /* of the keys found in cleared ranges */
	bool touched_metadata;
	_Atomic(struct emb_watch *) watches; /* pending; the list is the watches' lock's */

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
	EMB_STEP_WRITTEN,   /* the disk has it; nobody can see it */
	EMB_STEP_PUBLISHED, /* whoever begins now sees it; nobody has been answered */
	EMB_STEP_ANSWERED,  /* everybody has */
	EMB_STEPS,
};

/*
 * Called by the committer's thread at each step of each batch that gets so far. NULL, except in
 * tests that end the process there; they set it before a store is opened.
 */
extern void (*emb_step_hook)(enum emb_step step);

/* ---- RocksDB's ways: rocksdb.c ---- */

/*
 * RocksDB counts each comparison of keys for whoever may ask, in variables of the thread, which
 * takes about a tenth of a write: not on a thread that has called this. Free when called again.
 */
void emb_count_nothing(void);

/* True if a read that was confined to memory would have needed the disk. */
bool emb_is_incomplete(const char *rocksdb_error);

/* Takes a RocksDB error, which is freed, and explains it. `what` was being done. */
enum status emb_error(char *rocksdb_error, const char *what, struct err *err);

/* ---- Settings: options.c ---- */

/*
 * Those of a store whose blocks go into `cache`. Free with rocksdb_options_destroy(). Iterators
 * need `total_order_seek`: see emb_entities().
 */
rocksdb_options_t *emb_options(rocksdb_cache_t *cache, bool create);

/* ---- Entities: entity.c ---- */

/* How much of the key says which entity it belongs to; 0: to none. */
size_t emb_entity_len(struct str key);

/*
 * What RocksDB makes filters of beside whole keys: the beginnings that emb_entity_len() tells.
 * Iterators of a store with such filters see all keys of the entity that they are put to and not
 * all others, unless `total_order_seek` is set: which it has to be, unless emb_is_within_entity().
 */
rocksdb_slicetransform_t *emb_entities(void);

/* True if all keys of the range belong to the entity that `begin` does. */
bool emb_is_within_entity(struct str begin, struct str end);

/* ---- The directory: directory.c ---- */

/*
 * Finds damage in a store's logs that RocksDB would take for their end, before it does so and
 * begins a new one. STATUS_CORRUPT, STATUS_IO, STATUS_NOMEM. A directory that is not there is fine.
 */
MUST_USE enum status emb_logs_check(const char *path, struct err *err);

/* The record of a store's files, which is appended to or replaced whenever these change. */
struct emb_manifest {
	char name[EMB_MANIFEST_NAME_BYTES]; /* empty: there is none */
	uint64_t bytes;
};

void emb_manifest_look(const char *path, struct emb_manifest *ret);
bool emb_manifest_eq(const struct emb_manifest *a, const struct emb_manifest *b);

/* Makes sure that a directory which has just been made is still in its parent after a power cut. */
MUST_USE enum status emb_directory_sync(const char *path, struct err *err);

/* ---- Versions: versions.c ---- */

void emb_versions_init(struct emb_versions *v, uint64_t published,
		       const uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES]);
void emb_versions_fini(struct emb_store *store);

/* The transaction's snapshot, of the newest published version at its first call. STATUS_NOMEM. */
MUST_USE enum status emb_tx_snapshot(struct emb_tx *tx, struct emb_snapshot **ret);
void emb_tx_snapshot_release(struct emb_tx *tx);

/*
 * Around the committer's write: in between, transactions that begin read the version before it. A
 * failed write is not published.
 */
MUST_USE enum status emb_versions_hold(struct emb_store *store);
/*
 * Publishes what the batch of `txs` has written. They are judged: the result is the oldest version
 * that an open transaction reads at which is still to be, or `version`.
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

/* STATUS_CANCELLED, STATUS_TX_USED. */
MUST_USE enum status emb_tx_check(struct emb_tx *tx);

/*
 * STATUS_TX_TOO_OLD once the transaction can only fail: it has written, and what it has read can no
 * longer be judged.
 */
MUST_USE enum status emb_tx_check_age(struct emb_tx *tx);

/* What a failed allocation from the arena means. */
enum status emb_tx_no_room(struct emb_tx *tx);

/* Copies into the arena with a zero byte behind; both are the transaction's afterwards. */
MUST_USE enum status emb_tx_add_conflict(struct emb_tx *tx, struct emb_conflicts *list,
					 struct str begin, struct str end);
MUST_USE enum status emb_tx_add_key_conflict(struct emb_tx *tx, struct emb_conflicts *list,
					     struct str key);

/* ---- Futures: future.c ---- */

/*
 * A future that is done, with room for `bytes` of answer at `*ret_room`. NULL: no more room.
 */
struct emb_future *emb_future_new(struct emb_tx *tx, enum kv_future_kind kind, size_t bytes,
				  char **ret_room);
/* One of a range that is on its way, which it owns from now on. NULL: no more room. */
struct emb_future *emb_future_new_ahead(struct emb_tx *tx, struct emb_ahead *ahead);
void emb_future_free(struct emb_future *f);

/* ---- Reads: read.c, range.c ---- */

/* Brings the overlay up to date. */
MUST_USE enum status emb_tx_enter_writes(struct emb_tx *tx);

struct kv_future *emb_get(struct kv_tx *base, struct str key, enum kv_read mode);
struct kv_future *emb_get_range(struct kv_tx *base, struct str begin, struct str end,
				const struct kv_range_options *options);

/* Lets go of the iterator that is kept between ranges, and of the memory and files it holds. */
void emb_lookup_release(struct emb_tx *tx);

/*
 * The keys that the snapshot has in the range of a clear, if they stay within the limits: sets its
 * `keys_known`.
 */
MUST_USE enum status emb_find_keys(struct emb_tx *tx, struct mutation *m);

/* Reads the key at the snapshot, disregarding own writes. `*ret` lies behind it until destroyed. */
MUST_USE enum status emb_read_key(struct emb_tx *tx, const struct emb_snapshot *s, struct str key,
				  rocksdb_pinnableslice_t **ret, struct cell *ret_cell);

/* ---- Commits: commit.c (the caller's side), committer.c (the thread), batch.c ---- */

struct kv_future *emb_commit(struct kv_tx *base);
/* Waits until the committer has let go of the transaction. */
void emb_commit_wait(struct emb_tx *tx);

/*
 * By who has found the queue empty and set it busy: makes a batch of this transaction alone on the
 * calling thread. False if RocksDB wants writers to slow down: the queue's turn.
 */
MUST_USE bool emb_committer_lead(struct emb_store *store, struct emb_tx *tx);

MUST_USE enum status emb_committer_start(struct emb_store *store, struct err *err);
void emb_committer_stop(struct emb_store *store);

enum {
	BATCH_NEAR = 8, /* places in the order of keys where the batch has written last */
};

/* What one group commit is made of. */
struct batch {
	struct emb_store *store;
	const struct resolver *resolver; /* of the batches before */
	rocksdb_writebatch_t *writes;
	struct arena *arena;
	struct tree keys;    /* struct batch_key: what each key that is written comes to */
	struct tree ranges;  /* struct span: ranges that were cleared, or conflict as if written */
	struct tree deleted; /* struct span: those among them that RocksDB deletes as ranges */
	struct batch_key *spare;
	struct tree_node *near[BATCH_NEAR];
	uint64_t version;
	uint16_t order; /* of the transaction being applied */
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	struct err err;
};

void batch_begin(struct batch *b, uint64_t version);

/* True if a key in [begin, end) has been written after `version`, in this batch or before it. */
bool batch_written_since(const struct batch *b, struct str begin, struct str end, uint64_t version);

/* Enters the transaction's writes. */
MUST_USE enum status batch_apply(struct batch *b, struct emb_tx *tx);

/* Hands over what the keys have come to, and the version. */
void batch_finish(struct batch *b);

/* ---- Upkeep: compact.c, backup.c; the engine's table ---- */

enum status emb_compact(struct kv_store *base, struct err *err);

/* See kv_estimate_bytes(). */
enum status emb_estimate_bytes(struct kv_store *base, struct str begin, struct str end,
			       uint64_t *ret);
enum status emb_backup_create(struct kv_store *base, const char *dir, struct kv_backup *ret,
			      struct err *err);
enum status emb_backup_restore(const char *dir, uint32_t id, struct str address,
			       kv_backup_finish *finish, void *arg, struct kv_backup *ret,
			       struct err *err);

/* ---- Watches: watch.c ---- */

struct watches *watches_new(void);
/* Completes all with STATUS_CANCELLED; the table lives until the last future is freed. */
void watches_close(struct watches *w);
uint64_t watches_count(struct watches *w);

struct kv_future *emb_watch(struct kv_tx *base, struct str key);
void emb_watch_free(struct kv_future *f);

/* The transaction ends without a commit: its watches are cancelled. */
void emb_watches_cancel(struct emb_tx *tx);

/*
 * By the committer, before the transaction's writes enter the batch: notes which of its watches
 * have seen their keys change already.
 */
void emb_watches_judge(struct emb_tx *tx, const struct batch *b);

/* By the committer, after publishing: its writes wake others' watches, and its own begin. */
void emb_watches_committed(struct emb_tx *tx);

/* The commit of a transaction that wrote nothing: its watches begin. */
MUST_USE enum status emb_watches_begin(struct emb_tx *tx);

#endif
