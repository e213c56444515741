/*
 * The transaction contract: FoundationDB's, at API version 710, with no engine's name in it.
 *
 * A store is an ordered map from keys to values, both byte strings. A transaction reads one
 * consistent version of it and its own writes, and commits at one later version if nothing that it
 * read (other than by snapshot reads) has changed in between: strict serializability. Reads return
 * futures, so that a caller can issue a hundred and wait once: against a cluster every wait is a
 * network round trip.
 *
 * Threading: a store is used from any number of threads and fibers. A transaction, and the futures
 * it made, belong to one thread or fiber at a time. Waiting parks a fiber (loop/wait.h).
 *
 * Ownership: futures, and the bytes of their answers, belong to their transaction and live until it
 * is freed or reset, whichever comes first; kv_future_free() lets go of one earlier. Arguments are
 * copied.
 *
 * Limits (FoundationDB's, the same on every engine): see the KV_LIMIT_ names. A write past one is
 * refused at once with STATUS_KEY_TOO_LARGE, STATUS_VALUE_TOO_LARGE or, at the latest by the
 * commit, STATUS_TX_TOO_LARGE.
 *
 * Keys starting with \xff are the store's own; using one is STATUS_INVALID. \xff itself may end a
 * range.
 */
#ifndef FROND_KV_KV_H
#define FROND_KV_KV_H

#include "base/status.h"
#include "base/str.h"
#include "kv/state.h"
#include "loop/wait.h"

enum {
	KV_LIMIT_KEY_BYTES = 10000,
	KV_LIMIT_VALUE_BYTES = 100000,
	KV_LIMIT_TX_BYTES = 10000000,   /* of a transaction's size, see kv_tx_stats */
	KV_LIMIT_RANGE_BYTES = 4 << 20, /* one range answer, when the caller names no limit */

	/* What each mutation and each conflict range adds to the size beside its keys and value. */
	KV_SIZE_EACH_BYTES = 28,
	/* Of the limit, for the transaction id that kv_run() leaves: a transaction has the rest. */
	KV_SIZE_RUN_BYTES = 2000,

	KV_VERSIONSTAMP_TX_BYTES = 10, /* commit version, big-endian, and order within the batch */
	KV_VERSIONSTAMP_BYTES = 12,    /* and two bytes of the caller's own */
};

struct kv_store;
struct kv_tx;
struct kv_future;

/* ---- Stores ---- */

struct kv_shape;                       /* kv/shape.h */
#define KV_RECENT_BY_MEMORY UINT64_MAX /* as recent_bytes: by the memory there is */
struct kv_options {
	bool create;           /* make a missing embedded store; otherwise STATUS_NOT_FOUND */
	bool read_only;        /* every transaction is KV_TX_READ_ONLY */
	uint64_t cache_bytes;  /* block cache of the embedded engine; 0: by the memory there is */
	uint64_t recent_bytes; /* embedded: for pairs that were read or written lately; 0: none */
	uint64_t write_buffer_bytes; /* embedded: gathered for a table; 0: by the memory there is */
	uint64_t search_ns; /* embedded: a search that takes longer is remembered; 0: default */
	const struct kv_shape *shape; /* which keys belong together; NULL: none do */
	bool no_sync; /* acknowledge before the disk has it; for tests and benchmarks only */
	/*
	 * Embedded: a directory whose disk is full or read-only is opened all the same: it is read,
	 * and written to when that is possible again. Otherwise opening fails.
	 */
	bool reads_if_unwritable;
	uint64_t log_bytes;  /* embedded: of the log, kept for standbys (kv/log.h); 0: none */
	bool follows;        /* embedded: a standby, which is opened for writing in no other way */
	uint64_t probe_ms;   /* between two looks at a full disk; 0: the engine's default */
	kv_store_told *told; /* whenever the store's state changes; NULL: nobody is told */
	void *told_arg;
};

/* Whether `url` can name a store; nothing is opened. STATUS_INVALID, explained in `err`. */
MUST_USE enum status kv_check_url(const char *url, struct err *err);

/*
 * Opens "embedded:PATH" (a directory), "fdb:CLUSTER_FILE" or, of several stores in a cluster, one
 * by "fdb:CLUSTER_FILE?prefix=NAME" (up to 32 letters, digits, '_', '-' and '.'); an engine that a
 * program has registered has a scheme of its own (kv/faulty/faulty.h is one). Errors, explained in
 * `err`: STATUS_INVALID for another URL, STATUS_UNSUPPORTED for an engine that this build lacks,
 * STATUS_LOCKED when another process has it open, STATUS_NOT_FOUND, STATUS_IO, STATUS_CORRUPT. A
 * store is opened for reading only beside a process that writes, and shows what it held at one
 * moment; STATUS_UNAVAILABLE if its files never stood still long enough.
 * The same for a cluster that does not answer.
 */
MUST_USE enum status kv_open(const char *url, const struct kv_options *options,
			     struct kv_store **ret, struct err *err);

/*
 * Every transaction must have been freed. Futures of watches are completed with STATUS_CANCELLED.
 * NULL is fine.
 */
void kv_close(struct kv_store *store);

/* ---- Transactions ---- */

enum kv_tx_kind {
	KV_TX_READ_WRITE,
	/*
	 * Cannot write: STATUS_FORBIDDEN. On the embedded engine its snapshot lasts as long as it
	 * is open; a cluster keeps one for five seconds, then reads are STATUS_TX_TOO_OLD.
	 */
	KV_TX_READ_ONLY,
};

/*
 * Begins a transaction; its read version is fixed by its first read. STATUS_NOMEM,
 * STATUS_UNAVAILABLE, STATUS_LIMIT. kv_tx_free() ends it, undone unless it was committed; NULL is
 * fine.
 */
MUST_USE enum status kv_begin(struct kv_store *store, enum kv_tx_kind kind, struct kv_tx **ret);
void kv_tx_free(struct kv_tx *tx);

/*
 * From now on the memory that the transaction holds is counted in `part`, which must outlive it,
 * and scans with the option `ahead` ask for no more than `stretch_bytes` at a time (0: as their
 * options say). Both stay through a reset.
 */
struct budget_part;
void kv_tx_set_memory(struct kv_tx *tx, struct budget_part *part, size_t stretch_bytes);
size_t kv_tx_stretch_bytes(const struct kv_tx *tx);

/* The store it was begun on. */
struct kv_store *kv_tx_store(const struct kv_tx *tx);

/*
 * The bytes of the longest key there: KV_LIMIT_KEY_BYTES, less what the store puts before each key
 * in a cluster that it shares with others. The end of a range may be a byte longer.
 */
size_t kv_key_limit(const struct kv_tx *tx);

/* As new: undone, futures freed, a read version yet to be chosen. */
void kv_tx_reset(struct kv_tx *tx);

/*
 * Every use that is outstanding, and every later one until a reset, ends with STATUS_CANCELLED. A
 * commit that is being written already ends with what becomes of it. From any thread.
 */
void kv_cancel(struct kv_tx *tx);

/* ---- Futures ---- */

/*
 * Waits for the answer and returns its status; asking again is free. The explanation of a failure,
 * if there is one, is in kv_tx_error().
 */
MUST_USE enum status kv_future_wait(struct kv_future *f);

/* True once waiting would not wait. */
bool kv_future_ready(const struct kv_future *f);

/*
 * The event behind it, for waiting on several things at once; NULL when the answer is there
 * already. kv_future_wait() then still gives the status.
 */
struct event *kv_future_event(struct kv_future *f);

void kv_future_free(struct kv_future *f); /* NULL is fine */

/*
 * For a transaction that reads many things one after the other, such as a listing's: frees every
 * future of a read that was made after the mark and has not been freed. The caller uses none of
 * them, nor any bytes that they own, and has advanced no scan since the mark that is still open.
 * NULL stands for a transaction that has not begun or has ended.
 */
uint64_t kv_reads_mark(const struct kv_tx *tx);
void kv_reads_forget(struct kv_tx *tx, uint64_t mark);

/*
 * Functions that return a future never return NULL. Without memory, or with an argument that is out
 * of bounds, the future fails.
 */

/* ---- Reads ---- */

enum kv_read {
	KV_READ,     /* adds a read conflict range */
	KV_SNAPSHOT, /* adds none; still sees the transaction's own writes */
};

struct kv_future *kv_get(struct kv_tx *tx, struct str key, enum kv_read mode);

/* After a successful wait. False: there is no such key. `*ret` is the future's. */
bool kv_future_value(struct kv_future *f, struct str *ret);

struct kv_pair {
	struct str key;
	struct str value;
};

struct kv_range_options {
	size_t limit;       /* pairs at most; 0: no such limit */
	size_t limit_bytes; /* keys and values; the pair that reaches it is the last. 0:
			       KV_LIMIT_RANGE_BYTES */
	bool reverse;       /* from the end of the range towards its beginning */
	/*
	 * The answer will be wanted later, so another thread may read it in the meantime. Where the
	 * engine would otherwise have read it before the call returned, waiting for its event may
	 * take as long as reading it.
	 */
	bool ahead;
	enum kv_read mode;
};

/*
 * The pairs with begin <= key < end, in key order (or reverse). `options` NULL: the defaults. An
 * empty or inverted range has no pairs.
 */
struct kv_future *kv_get_range(struct kv_tx *tx, struct str begin, struct str end,
			       const struct kv_range_options *options);

struct kv_range {
	const struct kv_pair *pairs;
	size_t count;
	bool more; /* a limit ended it: go on after (reverse: before) the last key */
};

/* After a successful wait. The pairs are the future's. */
struct kv_range kv_future_range(struct kv_future *f);

/*
 * Goes through a range of any size, asking for the next stretch as the last one is used up (the
 * continuation). Usage: init, next until STATUS_NOT_FOUND, release. A pair is valid until the next
 * call.
 *
 * With the option `ahead` each stretch is asked for when the one before it has come. The first is
 * then small, and each of the others up to twice as large as the last, so a caller that stops early
 * has not asked for much.
 */
struct kv_scan {
	struct kv_tx *tx;
	struct kv_range_options options;
	size_t stretch_bytes;        /* of what is asked for next */
	struct kv_future *future;    /* of `range`, which is empty until it has come */
	struct kv_future *following; /* the next stretch, asked for ahead; NULL: not yet */
	struct kv_range range;
	char *bounds; /* owned: the bytes of `begin` and `end` */
	struct str begin;
	struct str end;
	size_t at;
	size_t remaining; /* of options.limit; SIZE_MAX without one */
	bool done;
};

MUST_USE enum status kv_scan_init(struct kv_scan *scan, struct kv_tx *tx, struct str begin,
				  struct str end, const struct kv_range_options *options);
MUST_USE enum status kv_scan_next(struct kv_scan *scan, struct kv_pair *ret);
/*
 * Takes as many of the next pairs as are there without another wait, at least one and at most
 * `most`. They are valid until the next call. STATUS_NOT_FOUND at the end.
 */
MUST_USE enum status kv_scan_take(struct kv_scan *scan, size_t most, struct kv_range *ret);
/*
 * After a failure of kv_scan_next() with `status`, in a transaction that does nothing else: asks
 * kv_on_error(), and returns what that returns. With STATUS_OK the scan goes on where it was, at
 * another version.
 */
MUST_USE enum status kv_scan_retry(struct kv_scan *scan, enum status status);
void kv_scan_release(struct kv_scan *scan);

/* The 8-byte version that the transaction reads at. */
MUST_USE enum status kv_get_read_version(struct kv_tx *tx, uint64_t *ret);

/* ---- Writes: buffered until the commit ---- */

/* A range that is empty, or whose end lies before its beginning, is no keys, and no error. */

MUST_USE enum status kv_set(struct kv_tx *tx, struct str key, struct str value);
/*
 * A set without a write conflict range of its own, for many keys that one range holds, such as the
 * leaves of a revision: they count less towards the size of the transaction. The caller must cover
 * the key by kv_add_write_conflict_range() in the same transaction, before or after; otherwise
 * whoever reads the key may miss the change and still commit. Own reads see it like any other.
 */
MUST_USE enum status kv_set_no_conflict(struct kv_tx *tx, struct str key, struct str value);
MUST_USE enum status kv_clear(struct kv_tx *tx, struct str key);
MUST_USE enum status kv_clear_range(struct kv_tx *tx, struct str begin, struct str end);

enum kv_atomic {
	KV_ADD,               /* little-endian, the operand's length; absent counts as zero */
	KV_MAX,               /* little-endian, unsigned */
	KV_MIN,               /* likewise; absent: the operand */
	KV_BYTE_MAX,          /* byte order */
	KV_BYTE_MIN,          /* likewise; absent: the operand */
	KV_COMPARE_AND_CLEAR, /* clears the key if it equals the operand */
};

/* Applied to whatever the key holds at the commit; adds no read conflict. */
MUST_USE enum status kv_atomic(struct kv_tx *tx, enum kv_atomic op, struct str key,
			       struct str operand);

/*
 * A set whose key (or value) gets the transaction's versionstamp at the commit, in place of its 10
 * bytes at `offset`. The caller chooses the two bytes behind it, which tell stamps of one commit
 * apart. If several transactions share a commit, the engine adds a number to those of each one,
 * unless kv_want_versionstamp() was called. Reading such a key, or a range that may meet it, before
 * the commit is STATUS_TX_UNREADABLE; whoever has got that may find the commit refused with it.
 */
MUST_USE enum status kv_set_versionstamped_key(struct kv_tx *tx, struct str key, size_t offset,
					       struct str value);
MUST_USE enum status kv_set_versionstamped_value(struct kv_tx *tx, struct str key, struct str value,
						 size_t offset);

MUST_USE enum status kv_add_read_conflict_range(struct kv_tx *tx, struct str begin, struct str end);
MUST_USE enum status kv_add_write_conflict_range(struct kv_tx *tx, struct str begin,
						 struct str end);

/*
 * The metadata version: a stamp that changes with every transaction that touched it. Reading it
 * costs no key-value read and no round trip of its own, and makes the transaction conflict with a
 * touch; caches of databases' descriptions are valid while it stands still. All zero before the
 * first touch.
 */
MUST_USE enum status kv_get_metadata_version(struct kv_tx *tx,
					     uint8_t ret[KV_VERSIONSTAMP_TX_BYTES]);
MUST_USE enum status kv_touch_metadata_version(struct kv_tx *tx);

/* ---- The end of a transaction ---- */

/*
 * Commits. STATUS_TX_CONFLICT, STATUS_TX_TOO_OLD, STATUS_TX_UNKNOWN, STATUS_TX_TOO_LARGE,
 * STATUS_FULL, STATUS_IO, STATUS_UNAVAILABLE, STATUS_STANDBY, STATUS_CANCELLED. When STATUS_OK
 * comes back the writes are on disk. After STATUS_FULL they are not, and never will be; after
 * STATUS_IO neither, unless the explanation says that this is not known. Afterwards the transaction
 * can only be asked for its version, reset or freed.
 *
 * A transaction that has written does not commit once one of its reads has failed with
 * STATUS_TX_TOO_OLD or STATUS_TX_CONFLICT, even if the caller went on: the commit fails with that
 * status. So nothing is committed that was decided without an answer.
 */
struct kv_future *kv_commit(struct kv_tx *tx);

/*
 * After a commit that wrote: its version, and the stamp that it put into keys and values, which
 * kv_want_versionstamp() has asked for before. STATUS_NOT_FOUND when there was none.
 */
MUST_USE enum status kv_committed_version(struct kv_tx *tx, uint64_t *ret);
MUST_USE enum status kv_versionstamp(struct kv_tx *tx, uint8_t ret[KV_VERSIONSTAMP_TX_BYTES]);
void kv_want_versionstamp(struct kv_tx *tx);

/*
 * Completes when the key's value has changed from what the transaction sees, once the transaction
 * has committed (a read-only one has by its commit, too). May complete without a change, and fails
 * with STATUS_UNAVAILABLE or STATUS_CANCELLED if the store has lost it (a cluster, if it comes when
 * the transaction is too old): look, and watch again. The future outlives the transaction:
 * kv_future_free() is the caller's. At most KV_LIMIT_WATCHES a store, then STATUS_BUSY.
 */
struct kv_future *kv_watch(struct kv_tx *tx, struct str key);

enum {
	KV_LIMIT_WATCHES = 100000,
};

/*
 * After a failure with `status`. If running the transaction again can help, resets it, pauses —
 * with each attempt longer, and at random — and returns STATUS_OK. Otherwise returns `status`
 * itself.
 */
MUST_USE enum status kv_on_error(struct kv_tx *tx, enum status status);

/* Why the transaction's last failure happened; empty text when there is nothing to add. */
const char *kv_tx_error(const struct kv_tx *tx);

/*
 * The same failure with its status. A body that fails for a reason of its own explains it here, and
 * kv_run() hands the explanation on to its caller. The transaction owns it; a reset clears it.
 */
struct err *kv_tx_err(struct kv_tx *tx);

/* What a transaction has cost since it was begun or reset; tests hold the model's promises to it.
 */
struct kv_tx_stats {
	uint64_t reads;      /* get and get_range calls answered */
	uint64_t keys_read;  /* pairs that they returned */
	uint64_t bytes_read; /* their keys and values */
	/*
	 * How many times the transaction has waited for a cluster, if the store is one. Reads that
	 * are issued before the next wait go out together, so the first wait for one of them counts
	 * for all. Commits are not counted.
	 */
	uint64_t round_trips;
	uint64_t sets;   /* sets and atomic operations */
	uint64_t clears; /* clears and range clears */
	uint64_t bytes_written;
	/*
	 * The size that KV_LIMIT_TX_BYTES bounds. It is computed from the calls alone, so it is the
	 * same on every engine, and never below what FoundationDB counts when it commits them:
	 *
	 *   each mutation         KV_SIZE_EACH_BYTES + its key + its value or operand
	 *   each conflict range   KV_SIZE_EACH_BYTES + its two bounds
	 *
	 * A single key's range ends at the key with a zero byte behind it. A mutation has a write
	 * conflict range, of kv_set_no_conflict() only where the transaction has cleared a range
	 * around the key: FoundationDB then makes two clears of that one. A read that is no
	 * snapshot read has a read conflict range, and so has a watch. A clear is a mutation with
	 * both bounds of its range, and a stamp's place in its key or value takes four bytes.
	 */
	uint64_t size_bytes;
};

struct kv_tx_stats kv_tx_stats(const struct kv_tx *tx);

/* ---- The retry loop ---- */

/*
 * Runs `body` in a transaction and commits it, again and again while that can help, at most
 * KV_RETRY_LIMIT times. The body leaves no trace outside `tx` but in memory that its next run
 * starts over; it returns STATUS_OK to have the transaction committed, or any other status to give
 * up, except that retryable ones (STATUS_TX_CONFLICT, STATUS_TX_TOO_OLD) start it again.
 *
 * A commit with an unknown result is this function's business: where an engine can give one, every
 * writing attempt also sets the key (ROOT, 255, txid); after an unknown result the next attempt
 * first asks whether that key exists, and if it does the work is done. That stays so through later
 * failures of any kind. These keys are cleared within seconds by later transactions of the process,
 * by kv_txids_clear(), or by kv_close(); kv_txids_sweep() removes those of processes that died.
 *
 * `ret_stamp` (10 bytes, or NULL) gets the versionstamp of the commit that counted; all zero when
 * the body wrote nothing. `err` (or NULL) explains a failure.
 */
enum {
	KV_RETRY_LIMIT = 100,
};

typedef enum status kv_body(struct kv_tx *tx, void *arg);

MUST_USE enum status kv_run(struct kv_store *store, kv_body *body, void *arg, uint8_t *ret_stamp,
			    struct err *err);
/* kv_run() that begins with `begun`, which has only read, and frees it, unless it is NULL. */
MUST_USE enum status kv_run_in(struct kv_store *store, struct kv_tx *begun, kv_body *body,
			       void *arg, struct err *err);

/*
 * kv_run() in two halves, for a caller that has something else to prepare while a commit is under
 * way. The first half runs the body once and begins its commit. The second half waits for it, and
 * makes all further attempts. Where the store is not shared (kv_is_shared()), transactions that
 * were begun one after another commit in that order, except those that are tried again. What the
 * body refers to has to last until the second half has returned. Every first half that succeeded
 * must be followed by a second one, which frees `running`.
 */
struct kv_running;

MUST_USE enum status kv_run_begin(struct kv_store *store, kv_body *body, void *arg,
				  struct kv_running **ret, struct err *err);
MUST_USE enum status kv_run_end(struct kv_running *running, struct err *err);

/* The same for reading: nothing is committed. */
MUST_USE enum status kv_run_read(struct kv_store *store, kv_body *body, void *arg, struct err *err);

/*
 * Clears the transaction ids that this process has left and that no writer has cleared, if the
 * oldest of them are a second old. To be called a few times a second as long as a store is open; it
 * does nothing, at no cost, when there is nothing to clear.
 */
MUST_USE enum status kv_txids_clear(struct kv_store *store, struct err *err);

/*
 * Removes transaction ids that are older than `age_ms`, whose owners have died. A call does a
 * bounded amount of work: with `*ret_more` there is more to remove, and the caller goes on soon.
 */
MUST_USE enum status kv_txids_sweep(struct kv_store *store, uint64_t age_ms, bool *ret_more,
				    struct err *err);

/* What the engine tells about itself, for operators. */
struct kv_store_stats {
	uint64_t commits;
	uint64_t conflicts;
	uint64_t batches; /* group commits: one fsync each */
	uint64_t watches;
	uint64_t disk_bytes; /* 0 where the engine does not know */
	uint64_t memory_bytes;
	enum kv_store_state state;
	uint64_t reopenings;    /* after failures, within this process */
	uint64_t failed_writes; /* of commits, to the disk */
};

struct kv_store_stats kv_store_stats(struct kv_store *store);

/* What the engine stands on, with its version: "rocksdb 7.8.3". Static text. */
const char *kv_store_library(const struct kv_store *store);

/*
 * Rewrites the whole store without what has been overwritten or deleted, which it otherwise does
 * bit by bit by itself. Blocks for as long as that takes; readers and writers go on. Needs room for
 * another copy of the data. STATUS_UNSUPPORTED where the engine has nothing of the kind;
 * STATUS_FORBIDDEN for a store that is open for reading only; STATUS_IO.
 */
MUST_USE enum status kv_compact(struct kv_store *store, struct err *err);

/*
 * An estimate of the stored bytes with begin <= key < end; 0 where the engine cannot tell. The
 * embedded engine counts small ranges, and otherwise adds to what is in files, compressed, what was
 * written last and is still in memory, as it is. May block, as reads do.
 */
MUST_USE enum status kv_estimate_bytes(struct kv_store *store, struct str begin, struct str end,
				       uint64_t *ret);

#endif
