/*
 * What an engine implements: kv.h calls it through these tables and adds what all engines share
 * (argument checks, limits, the scan, the retry loop, counting). Private to kv/.
 *
 * An engine's own store, transaction and future begin with the structs below, so that a wrapping
 * engine (the faulty one) can hold another's. The shared layer has checked every argument against
 * the contract's limits before an engine sees it.
 */
#ifndef FROND_KV_ENGINE_H
#define FROND_KV_ENGINE_H

#include <stdatomic.h>

#include "kv/backup.h"
#include "kv/damage.h"
#include "kv/salvage.h"
#include "kv/kv.h"

struct buf;
struct fates;
struct kv_turns;
struct prefixes;
struct txids;

struct kv_engine {
	const char *scheme; /* of its URLs: "embedded" */
	bool needs_address; /* behind the scheme */
	/*
	 * A commit can end without anybody knowing how: kv_run() must leave transaction ids. Once
	 * that has been answered the commit has either happened or never will: an engine that
	 * cannot tell which still has to make sure that it is over.
	 */
	bool unknown_results;
	bool cheap_clears;   /* kv_clears_cheaply() */
	bool shared;         /* kv_is_shared() */
	bool keeps_versions; /* kv_keeps_versions() */
	const char *library; /* what it stands on, with its version: "rocksdb 7.8.3" */

	/* Whether `address` can be one; nothing is opened. STATUS_INVALID. NULL: whatever it is. */
	enum status (*check_address)(struct str address, struct err *err);
	enum status (*open)(struct str address, const struct kv_options *options,
			    struct kv_store **ret, struct err *err);
	void (*close)(struct kv_store *store);
	enum status (*begin)(struct kv_store *store, enum kv_tx_kind kind, struct kv_tx **ret);
	struct kv_store_stats (*store_stats)(struct kv_store *store);
	enum status (*estimate_bytes)(struct kv_store *store, struct str begin, struct str end,
				      uint64_t *ret);
	/* See kv.h, damage.h, backup.h and salvage.h; NULL where there is nothing of the kind. */
	enum status (*compact)(struct kv_store *store, struct err *err);
	size_t (*damages)(struct kv_store *store, size_t from, struct kv_damage *ret, size_t most);
	enum status (*files_check)(struct kv_store *store, kv_damaged_found *found, void *arg,
				   struct err *err);
	enum status (*backup_create)(struct kv_store *store, const char *dir, struct kv_backup *ret,
				     struct err *err);
	enum status (*backup_restore)(const char *dir, uint32_t id, struct str address,
				      const struct kv_restore *how, struct kv_backup *ret,
				      struct err *err);
	enum status (*salvage)(struct str source, struct str target,
			       const struct kv_salvage_how *how, struct kv_salvage_sum *ret,
			       struct err *err);

	void (*tx_free)(struct kv_tx *tx);
	void (*tx_reset)(struct kv_tx *tx);
	void (*cancel)(struct kv_tx *tx);
	struct kv_future *(*get)(struct kv_tx *tx, struct str key, enum kv_read mode);
	/* See head.h; NULL where reading less of a value gains nothing. */
	struct kv_future *(*get_head)(struct kv_tx *tx, struct str key, enum kv_read mode);
	/* Up to KV_MANY keys, as by `get`. NULL where asking for them together gains nothing. */
	void (*get_many)(struct kv_tx *tx, const struct str *keys, size_t count, enum kv_read mode,
			 struct kv_future **ret);
	/* `options` is never NULL and names both limits (SIZE_MAX: none). */
	struct kv_future *(*get_range)(struct kv_tx *tx, struct str begin, struct str end,
				       const struct kv_range_options *options);
	enum status (*get_read_version)(struct kv_tx *tx, uint64_t *ret);
	enum status (*set)(struct kv_tx *tx, struct str key, struct str value);
	/* May have a conflict range all the same, since a range of the caller's covers the key. */
	enum status (*set_no_conflict)(struct kv_tx *tx, struct str key, struct str value);
	enum status (*clear_range)(struct kv_tx *tx, struct str begin, struct str end);
	enum status (*clear)(struct kv_tx *tx, struct str key);
	enum status (*atomic)(struct kv_tx *tx, enum kv_atomic op, struct str key,
			      struct str operand);
	enum status (*set_versionstamped_key)(struct kv_tx *tx, struct str key, size_t offset,
					      struct str value);
	enum status (*set_versionstamped_value)(struct kv_tx *tx, struct str key, struct str value,
						size_t offset);
	enum status (*add_read_conflict)(struct kv_tx *tx, struct str begin, struct str end);
	enum status (*add_write_conflict)(struct kv_tx *tx, struct str begin, struct str end);
	enum status (*get_metadata_version)(struct kv_tx *tx,
					    uint8_t ret[KV_VERSIONSTAMP_TX_BYTES]);
	enum status (*touch_metadata_version)(struct kv_tx *tx);
	/* See refresh.h, of a transaction that may write. NULL where one stays where it is. */
	bool (*refresh)(struct kv_tx *tx);
	struct kv_future *(*commit)(struct kv_tx *tx);
	/*
	 * After a commit that has failed with STATUS_TX_CONFLICT, of an attempt that was not the
	 * first (`tx->attempts`): appends a key that was read and has been changed. NULL where
	 * transactions are short enough that nobody has to wait for others (turns.h).
	 */
	enum status (*conflicting_key)(struct kv_tx *tx, struct buf *key);
	enum status (*committed_version)(struct kv_tx *tx, uint64_t *ret);
	enum status (*versionstamp)(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES]);
	struct kv_future *(*watch)(struct kv_tx *tx, struct str key);
	/*
	 * Milliseconds to pause before another attempt, or -1 if none would help; `tx->attempts`
	 * have failed before this one.
	 */
	int (*retry_delay_ms)(struct kv_tx *tx, enum status status);

	void (*future_free)(struct kv_future *f);
	/*
	 * Before a future that is not `done` is waited for: makes it done if that takes more than
	 * waiting. NULL where it never does.
	 */
	void (*future_settle)(struct kv_future *f);
	/*
	 * Puts why `f` has failed, if it has, into its transaction's `err`, on behalf of who waits
	 * for it. NULL where that is done when the failure happens.
	 */
	void (*future_explain)(struct kv_future *f);
};

struct kv_store {
	const struct kv_engine *engine;
	bool read_only;      /* its transactions are KV_TX_READ_ONLY whatever was asked for */
	bool follows;        /* kv_follows() in kv/log.h */
	size_t prefix_bytes; /* that the engine puts before each key, of the longest key's bytes */
	/* What kv_run() has left behind (txid.h); NULL until it first does. Zero when opened. */
	_Atomic(struct txids *) txids;
	/* Commits that clients do not wait for any more (fate.h); NULL until there is one. */
	_Atomic(struct fates *) fates;
	/* The store's block of numbers (prefix.h); NULL until the first one is taken. */
	_Atomic(struct prefixes *) prefixes;
	/* Of transactions of kv_run() (turns.h); NULL until two have conflicted. */
	_Atomic(struct kv_turns *) turns;
	_Atomic uint32_t doubted; /* promises that are not believed (reads_first.h) */
};

enum {
	KV_CLEARED_KEY_BYTES = 320,
};

/*
 * The part of the keyspace in which a transaction has cleared ranges, from the first of them to the
 * end of the last. The bounds are cut to KV_CLEARED_KEY_BYTES, which only makes it larger.
 */
struct kv_cleared {
	uint32_t begin_bytes;
	uint32_t end_bytes; /* 0: no range has been cleared */
	char begin[KV_CLEARED_KEY_BYTES];
	char end[KV_CLEARED_KEY_BYTES];
};

enum {
	KV_TX_BYTES = 20 * 1024, /* that a transaction takes before it reads anything, measured */
};

struct kv_tx {
	const struct kv_engine *engine;
	struct kv_store *store;
	enum kv_tx_kind kind;
	struct kv_tx_stats stats;
	uint64_t wave;     /* reads issued in one wave share a round trip */
	uint32_t attempts; /* failed so far, for the growing pause */
	struct err err;
	struct kv_cleared cleared;
	struct budget_part *part; /* counts what it holds; NULL: nobody does */
	size_t held_bytes;        /* that are counted so, beyond KV_TX_BYTES and single answers */
	size_t stretch_bytes;     /* of scans that ask ahead; 0: as their options say */
	/* The last KV_SIZE_RUN_BYTES of the limit may be used: kv_run() makes its own writes. */
	bool uses_reserve;
	bool has_write_conflict; /* a range that was added, not one of a mutation */
	bool overlaps;           /* kv/overlap.h */
	bool brief;              /* kv/brief.h */
	bool reads_first;        /* kv/reads_first.h; of one attempt */
	bool wants_stamp;        /* kv_want_versionstamp() */
	enum status unread;      /* of a failed read, see kv_commit(); STATUS_OK: none has */
	/*
	 * Set by kv_run() for an attempt that may still wait for its turn: a read of a key at which
	 * somebody has one fails with STATUS_TX_CONFLICT, and the key is in `met`.
	 */
	const struct kv_turns *turns;
	struct buf *met;
	/* The futures of reads that have not been freed, the newest first: see kv_reads_mark(). */
	struct kv_future *reads;
	uint64_t reads_made;
};

enum kv_future_kind {
	KV_FUTURE_VALUE,
	KV_FUTURE_RANGE,
	KV_FUTURE_COMMIT,
	KV_FUTURE_WATCH,
};

struct kv_future {
	const struct kv_engine *engine;
	struct kv_tx *tx; /* NULL for a watch, which outlives it */
	uint64_t wave;
	struct event event; /* unless `done`: set once `status` and the answer are in place */
	enum kv_future_kind kind;
	enum status status;
	bool done;          /* answered before the call returned: `event` is not used */
	bool counted;       /* has entered the transaction's statistics */
	bool present;       /* of a value */
	uint32_t key_bytes; /* of a value: how long its key is, for the statistics */
	struct str value;
	struct kv_range range;
	/* In the list of its transaction's reads. `number` is 0 while it is not in the list. */
	struct kv_future *newer;
	struct kv_future *older;
	uint64_t number; /* the transaction's first read has 1, the next one 2 */
};

/*
 * A future that has failed with `status`, without an allocation: it belongs to nobody, is shared
 * and never written to, and freeing it does nothing. Its `engine` is NULL.
 */
struct kv_future *kv_future_failed(enum status status);

/*
 * For engines: what the transaction holds has so many bytes now, beyond KV_TX_BYTES and what the
 * engine counts by itself. They are counted in its part until it is reset or freed.
 */
void kv_tx_hold(struct kv_tx *tx, size_t bytes);

/* Before a store closes: clears the transaction ids that this process has left in it. */
void kv_txids_finish(struct kv_store *store);

/* The engines that are built into every program. */
extern const struct kv_engine kv_engine_embedded;
extern const struct kv_engine kv_engine_fdb;

/*
 * Makes kv_open() and kv_check_url() know one more engine, by its scheme. To be called before any
 * other thread uses kv/; registering the same engine again does nothing. `engine` must last.
 */
void kv_engine_register(const struct kv_engine *engine);

#endif
