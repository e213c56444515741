/*
 * Keeping the log for standbys (kv/log.h): RocksDB moves a log that it no longer needs into the
 * directory "archive" of the store, and frond removes the oldest there. A store that has this
 * directory keeps its log whichever command opens it for writing: what that command writes would
 * be missing in the log otherwise.
 *
 * Each commit's batch names the version that was published before it. So whoever reads the log, or
 * applies it, notices that a commit is missing, whatever the reason: a damaged file, a store that
 * was open to an older frond, another history.
 *
 * Each opening for writing puts a mark into the log: a batch with the name of the history and the
 * version that the store has, so that there is a record of this version to begin at.
 *
 * == Threads ==
 *
 * The lock of `struct kept` guards the followers. Everything else is set while the store is opened.
 */
#ifndef FROND_KV_EMBEDDED_KEPT_H
#define FROND_KV_EMBEDDED_KEPT_H

#include "kv/embedded/embedded_int.h"
#include "kv/log.h"

#define KEPT_ARCHIVE "archive" /* RocksDB's name */

#define EMB_KEY_HISTORY  STR("\xff/history")  /* KV_LOG_HISTORY_BYTES */
#define EMB_KEY_FOLLOWS  STR("\xff/follows")  /* there: see enum kept_follows */
#define EMB_KEY_LINK     STR("\xff/link")     /* of the last commit: see log_record.h */
#define EMB_KEY_PROMOTED STR("\xff/promoted") /* the history before, and 8 bytes: a version */

enum {
	KEPT_FILES = 1 << 16,         /* of a log; RocksDB has one for each write buffer */
	KEPT_BATCH_HEADER_BYTES = 12, /* of a write batch of RocksDB: a number, and how many ops */
	KEPT_COUNT_AT = 8,            /* where the latter is, little-endian */
};

/* The first of the eight bytes of EMB_KEY_FOLLOWS: why the store is opened for reading only. */
enum kept_follows {
	KEPT_STANDBY = 0,
	KEPT_PROMOTES = 1, /* a standby that is being promoted */
	KEPT_REPLACED = 2, /* a first whose standby was promoted */
};

/* Behind a record of the log: where the next one is. */
struct kept_place {
	uint64_t number; /* of the file; 0: not known */
	uint64_t at;
	uint64_t version; /* of the record in front */
};

struct kept_follower {
	char name[KV_LOG_NAME_BYTES + 1]; /* empty: nobody */
	struct kept_place place;
	uint64_t acked;    /* all up to this version is safe with it */
	uint64_t seen_ns;  /* when it asked last */
	uint64_t equal_ns; /* when it last had all that was published */
	bool busy;         /* it is being answered */
};

struct kept {
	uint64_t log_bytes;
	uint8_t history[KV_LOG_HISTORY_BYTES];
	pthread_mutex_t lock;
	struct kept_follower followers[KV_LOG_FOLLOWERS];
	struct metric_collector collector;
};

/* ---- kept.c ---- */

/* Whether the log of the store is to be kept; sets RocksDB's options so. */
bool emb_kept_options(struct emb_store *store, const struct kv_options *options);
/* After opening: refuses a standby that is not opened as one, and marks the log. */
MUST_USE enum status emb_kept_begin(struct emb_store *store, const struct kv_options *options,
				    struct err *err);
void emb_kept_end(struct emb_store *store);
/* Puts the link of a commit into its batch, if the log is kept. */
void emb_kept_put_link(const struct emb_store *store, rocksdb_writebatch_t *writes);

/* ---- log_files.c ---- */

/*
 * The numbers of the files of the log, or (`live` false) of its archive, in order. The array is the
 * caller's, to mem_free().
 */
MUST_USE enum status kept_list(const char *path, bool live, uint64_t **ret, size_t *ret_count,
			       struct err *err);
uint64_t kept_file_bytes(const char *path, uint64_t number);
/* Removes a file of the archive. */
void kept_remove(const char *path, uint64_t number);
/* Opens a file of the log, wherever it is by now. -1, with errno. */
int kept_open_file(const char *path, uint64_t number);
/* How many bytes of the log lie behind a place. */
uint64_t kept_bytes_behind(const char *path, const struct kept_place *place);

/* ---- log_read.c ---- */

/*
 * Appends what follows `place->version`, see kv_log_read(), up to the version `published`, and
 * moves the place.
 */
MUST_USE enum status kept_read(const char *path, struct kept_place *place, uint64_t published,
			       size_t most, struct buf *ret, struct err *err);

/* The checksum of a record (kv/log.h), and appending one. */
uint32_t kept_crc(struct str payload);
void kept_put_record(struct buf *out, uint64_t version, struct str payload);

struct log_link;
/*
 * Tells of the keys that operations of a write batch have written, but for the engine's own, as of
 * the commit that `link` describes. STATUS_CORRUPT; what `found` returns.
 */
MUST_USE enum status kept_tell_keys(struct str ops, const struct log_link *link,
				    kv_log_key_found *found, void *arg, struct err *err);

#endif
