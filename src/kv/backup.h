/*
 * Backups of stores, by the engine's own means. (The embedded engine's; a cluster has tools of its
 * own, so that everything here is STATUS_UNSUPPORTED for its stores.)
 *
 * A backup directory holds any number of backups of one store, each a whole and consistent version
 * of it that contains all that had been acknowledged when it was begun. Files that backups have in
 * common are there once, so that another backup costs what has changed since the last one. Every
 * file has a checksum, and a restore compares it.
 *
 * Threading: from any thread; everything blocks for as long as the disk takes. One operation at a
 * time uses a backup directory, in this process or another; a second one is STATUS_LOCKED.
 */
#ifndef FROND_KV_BACKUP_H
#define FROND_KV_BACKUP_H

#include "kv/kv.h"

struct kv_backup {
	uint32_t id;     /* ascending, never used again while the directory lasts */
	uint64_t time_s; /* since 1970, when it was begun */
	uint64_t bytes;  /* of all its files, those that it shares with other backups included */
};

/*
 * Adds a backup of the open store to `dir`, which is made if it is missing (its parent must be
 * there), and must be empty or a backup directory otherwise: STATUS_INVALID. Writers go on
 * meanwhile. On disk when it returns. STATUS_UNSUPPORTED, STATUS_LOCKED, STATUS_IO, STATUS_NOMEM;
 * STATUS_FORBIDDEN for a store that is open for reading only.
 */
MUST_USE enum status kv_backup_create(struct kv_store *store, const char *dir,
				      struct kv_backup *ret, struct err *err);

/*
 * The backups in `dir`, oldest first; the array is the caller's, to mem_free(). Those of which a
 * file is missing are left out; contents are not looked at. STATUS_NOT_FOUND if it is no backup
 * directory; STATUS_LOCKED, STATUS_IO, STATUS_NOMEM.
 */
MUST_USE enum status kv_backup_list(const char *dir, struct kv_backup **ret, size_t *ret_count,
				    struct err *err);

/* Removes all but the newest `keep` backups, at least 1. Errors as those of kv_backup_list(). */
MUST_USE enum status kv_backup_prune(const char *dir, uint32_t keep, struct err *err);

/* What is to be done to a restored store before anybody else can open it. */
typedef enum status kv_backup_finish(struct kv_store *store, void *arg, struct err *err);

/*
 * What the log of the store that was backed up has behind the backup: the directory of that store,
 * or of a copy of its log's files (kv_options.log_bytes).
 */
struct kv_restore_log {
	const char *path;
	uint64_t until_ms; /* since 1970: commits of this millisecond are in; UINT64_MAX: all are */
	/* What came of it: */
	uint64_t records;
	uint64_t last_ms; /* when the last one that is in was committed; 0: none is */
	uint64_t next_ms; /* when the first one that is not in was committed; 0: there is none */
};

/* How to restore; zeros are fine. */
struct kv_restore {
	const struct kv_shape *shape; /* of the store, as for kv_open() */
	kv_backup_finish *finish;     /* runs on the new store; its failure is the restore's */
	void *arg;
	struct kv_restore_log *log; /* NULL: only the backup */
};

/*
 * Makes the store that `url` names from the backup `id`, or from the newest for 0. Nothing may be
 * there yet but an empty directory: STATUS_EXISTS. The files are put together beside it, in a
 * directory of its name and ".restoring", and moved to their place when all is done and on disk; a
 * crash before leaves that directory behind, which must be removed before another attempt
 * (STATUS_EXISTS, too).
 *
 * The new store's version lies above that of the backup and, as far as the clock can be trusted,
 * above those of all stores that have been restored from it before.
 *
 * STATUS_NOT_FOUND: no such backup, or the log does not reach back to it; STATUS_CORRUPT: a
 * checksum does not match. Others as above.
 */
MUST_USE enum status kv_backup_restore(const char *dir, uint32_t id, const char *url,
				       const struct kv_restore *how, struct kv_backup *ret,
				       struct err *err);

#endif
