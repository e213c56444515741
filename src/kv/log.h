/*
 * The log of a store, for a standby: a second store that has every version of a first one after it.
 * (The embedded engine's; a cluster keeps copies itself, so everything here is STATUS_UNSUPPORTED
 * for its stores.)
 *
 * A first keeps its log for a while (kv_options.log_bytes) and gives what comes behind a version as
 * records. A record is a header, KV_LOG_HEADER_BYTES long, and bytes that only the engine reads.
 * The header is the version that the record makes, the number of the bytes and their CRC32C, all
 * big-endian. A
 * standby begins with a copy of all pairs at one version, as records of the version 0, and then
 * applies records in order. It commits nothing of its own, so its version is the place where it
 * goes on, and a crash of either side leaves nothing to mend.
 *
 * == Histories ==
 *
 * A store whose log is kept has the name of its history, 16 random bytes, which its standbys copy.
 * A standby that is promoted, and a store that is restored from a backup, begin another history. So
 * a standby never goes on with a store that only happens to have its version.
 *
 * Threading: from any thread; everything blocks for as long as the disk takes.
 */
#ifndef FROND_KV_LOG_H
#define FROND_KV_LOG_H

#include "base/buf.h"
#include "kv/kv.h"

enum {
	KV_LOG_HISTORY_BYTES = 16,
	KV_LOG_HEADER_BYTES = 16,
	KV_LOG_RECORD_BYTES = 64 * 1024 * 1024, /* far above what a group commit can have */
	KV_LOG_FOLLOWERS = 16,                  /* that a store remembers at a time */
	KV_LOG_ANSWER_BYTES = 4 * 1024 * 1024, /* of an answer to one, unless one record has more */
	KV_LOG_WAIT_MOST_MS = 60 * 1000,       /* that its question waits for something new */
	KV_LOG_NAME_BYTES = 64,                /* of a follower's name */
};

struct kv_log_position {
	uint64_t version;                      /* the last that was published */
	uint8_t history[KV_LOG_HISTORY_BYTES]; /* zeros: the log was never kept */
	bool follows;                          /* it is a standby */
	bool promotes;                         /* one that kv_log_promote_begin() has seen */
	bool replaced;                         /* kv_log_replaced() has marked it */
	uint64_t promoted_at; /* the version at which it was promoted; 0: it never was */
	uint8_t before[KV_LOG_HISTORY_BYTES]; /* the history that it had until then */
};

MUST_USE enum status kv_log_position(struct kv_store *store, struct kv_log_position *ret,
				     struct err *err);

/* ---- A first ---- */

/*
 * Appends records that follow the version `after` to `ret`, until they are `most` bytes or there
 * are no more; one record may be larger. `follower` names who asks, for metrics: all up to `after`
 * is safe with it. STATUS_NOT_FOUND if the log does not reach back so far any more;
 * STATUS_DOC_CONFLICT if `after` lies above the store's version; STATUS_FORBIDDEN without a log.
 */
MUST_USE enum status kv_log_read(struct kv_store *store, struct str follower, uint64_t after,
				 size_t most, struct buf *ret, struct err *err);

/* The last published version. Does not block. */
uint64_t kv_log_published(struct kv_store *store);

/* Removes the oldest files of the log, so that what is kept has kv_options.log_bytes at most. */
void kv_log_prune(struct kv_store *store);

/* A copy of all pairs at one version. */
struct kv_log_copy;
/* STATUS_FORBIDDEN if no log is kept, without which a copy would be of no use. */
MUST_USE enum status kv_log_copy_begin(struct kv_store *store, struct kv_log_copy **ret,
				       struct err *err);
/*
 * Appends one more record of about `most` bytes, or with `*ret_done` nothing: all have been given.
 * STATUS_TX_TOO_OLD: the store has been opened again meanwhile, and the copy has to begin anew.
 */
MUST_USE enum status kv_log_copy_next(struct kv_log_copy *copy, size_t most, struct buf *ret,
				      bool *ret_done, struct err *err);
/* Appends the record that ends a copy: it is empty, and has the version of the copy. */
void kv_log_copy_put_end(const struct kv_log_copy *copy, struct buf *ret);
void kv_log_copy_end(struct kv_log_copy *copy); /* NULL is fine */

/* A key that a commit has written or cleared, or a range of keys that it has cleared. */
struct kv_log_key {
	uint64_t version;
	uint64_t time_ms; /* since 1970 */
	struct str key;
	struct str end; /* of a range; ptr NULL: it is one key */
};

/* Any status but STATUS_OK ends the reading with it. */
typedef enum status kv_log_key_found(void *arg, const struct kv_log_key *key);

/*
 * Tells every key that the commits behind the version `after` have written, in the order of the
 * commits. The store may be open for reading only, and the log need not be kept any more.
 * STATUS_NOT_FOUND if it does not reach back so far; STATUS_CORRUPT.
 */
MUST_USE enum status kv_log_keys(struct kv_store *store, uint64_t after, kv_log_key_found *found,
				 void *arg, struct err *err);

/*
 * A standby of this store has been promoted: from now on the store is opened for reading only,
 * until it is promoted itself.
 */
MUST_USE enum status kv_log_replaced(struct kv_store *store, struct err *err);

/* ---- A standby ---- */

/*
 * Reads the header of the first record of `records` and returns its payload. STATUS_NOT_FOUND if it
 * is not all there; STATUS_CORRUPT if the checksum does not match or it is too large.
 */
MUST_USE enum status kv_log_record(struct str records, uint64_t *ret_version, struct str *ret,
				   struct err *err);

/*
 * Begins a copy beside the place that `url` names, in a directory of its name and ".copying"; one
 * that an earlier attempt has left is removed. The store is for kv_log_copy_load() and
 * kv_log_copy_place(), which takes it.
 */
MUST_USE enum status kv_log_copy_make(const char *url, const struct kv_shape *shape,
				      struct kv_store **ret, struct err *err);
/* Writes a record of a copy. */
MUST_USE enum status kv_log_copy_load(struct kv_store *copy, struct str record, struct err *err);
/*
 * The copy is whole: marks it as a standby's, brings it to the disk and moves it to its place,
 * where it replaces a standby that is there and is not open. The store is closed whatever happens.
 */
MUST_USE enum status kv_log_copy_place(struct kv_store *copy, const char *url, struct err *err);

/*
 * Applies whole records of a log in order with one write and one sync, publishes the last version
 * and completes the watches of the keys that were written. Records up to the store's version are
 * skipped. By one thread at a time; others may read the store meanwhile. STATUS_CORRUPT, also if a
 * commit is missing; STATUS_DOC_CONFLICT if they are of another history; STATUS_FULL, STATUS_IO.
 */
MUST_USE enum status kv_log_apply(struct kv_store *store, struct str records, struct err *err);

/* True for a store that was opened as a standby: its commits are STATUS_STANDBY. Of any engine. */
bool kv_follows(const struct kv_store *store);

/* How far a standby is behind the store that it follows. */
struct kv_log_behind {
	uint64_t versions; /* that it has not got, as of the last answer */
	uint64_t ns;       /* since it was last known to have all, or was opened */
};

/*
 * Notes that the server which is followed has answered, and had the version `first`. To be called
 * when the records of that answer have been applied.
 */
void kv_log_heard(struct kv_store *store, uint64_t first);
/* Does not block. All zero for a store that follows nobody. */
struct kv_log_behind kv_log_behind(const struct kv_store *store);

/*
 * Makes a standby, or a store that was replaced, opened with kv_options.follows, a first. The
 * beginning gives it a history of its own, so it can follow nobody any more and may be written to;
 * after the end it is a store like any other. Each can be done again after a crash. STATUS_INVALID
 * if it is no standby.
 */
MUST_USE enum status kv_log_promote_begin(struct kv_store *store, struct err *err);
MUST_USE enum status kv_log_promote_end(struct kv_store *store, struct err *err);

#endif
