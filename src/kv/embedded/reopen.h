/*
 * What becomes of a store whose disk is full or fails: its state, and how it is opened again inside
 * the process, since RocksDB never writes again after an error that it met in the background or in
 * its log. README.md has the table of states and events.
 *
 * == What a failed commit leaves ==
 *
 * When RocksDB cannot write or sync a batch, its log may have all bytes of the batch, some, or
 * none. emb_reopen_write_failed() cuts the log back to the last version that was published, and
 * syncs that, before anybody is told of the failure. So a commit that was answered with "the disk
 * is full" or "the disk refused" never comes back, not even after a crash. If that fails as well,
 * the answer says that the outcome is not known.
 *
 * == What a new handle must show ==
 *
 * The log is cut once more while no handle is open, and read anew from the disk. Then the store's
 * version must be the last one that was published. A lower one means that the disk has lost what
 * had been acknowledged: the store is lost, nothing is served from it, and the process is told. A
 * higher one is possible only after an unknown outcome: it is published, with all watches
 * completed.
 *
 * Threads: emb_reopen_refuse(), emb_reopen_state() and emb_reopen_why() from any thread, the others
 * by the thread that owns the committer (committer.c), or before there is one.
 */
#ifndef FROND_KV_EMBEDDED_REOPEN_H
#define FROND_KV_EMBEDDED_REOPEN_H

#include "kv/embedded/embedded_int.h"

enum {
	/*
	 * What there must be on the disk before a full store is written to again: some room, and
	 * twice its logs, which an opening turns into tables.
	 */
	EMB_ROOM_BYTES = 8 * 1024 * 1024,
	EMB_ROOM_LOGS = 2,
	EMB_PROBE_MS = 2000, /* between two looks at a disk that is not well */
	/*
	 * After a failure soon after a reopening, the first pause is as long, and each further one
	 * twice as long, up to this.
	 */
	EMB_REOPEN_LONGEST_MS = 60 * 1000,
	EMB_REOPEN_SOON_MS = 60 * 1000, /* what is soon */
	EMB_CLOSE_WAIT_MS = 5 * 1000, /* for those that use the handle; then they are left alone */
};

void emb_reopen_init(struct emb_store *store, const struct kv_options *options);
void emb_reopen_fini(struct emb_store *store);

static inline enum kv_store_state
emb_reopen_state(const struct emb_store *store)
{
	return atomic_load_explicit(&store->health.state, memory_order_relaxed);
}

/*
 * Opens the store for the first time. If it cannot be written to because its disk is full or
 * read-only, and `reads_if_unwritable`, it is opened for reading and its state says why.
 */
MUST_USE enum status emb_reopen_first(struct emb_store *store, bool reads_if_unwritable,
				      struct err *err);

/* A standby is promoted, and takes commits of its own from now on. Before others use the store. */
void emb_reopen_leads(struct emb_store *store);

/*
 * STATUS_OK if commits may be tried. STATUS_FULL, STATUS_UNAVAILABLE, STATUS_CORRUPT,
 * STATUS_STANDBY with reason.
 */
MUST_USE enum status emb_reopen_refuse(struct emb_store *store, struct err *err);

/* For what is no commit, such as a backup: STATUS_OK for a standby, too, if its disk is well. */
MUST_USE enum status emb_reopen_refuse_disk(struct emb_store *store, struct err *err);

/*
 * A write has failed with RocksDB's `error`, which is freed. Takes it back, sets the state, and
 * returns how the commits of its batch have ended: STATUS_FULL or STATUS_IO.
 */
MUST_USE enum status emb_reopen_write_failed(struct emb_store *store, char *error, bool *ret_known,
					     struct err *err);

/* When emb_reopen_try() is to be called; WAIT_FOREVER: not at all. */
uint64_t emb_reopen_due_ns(const struct emb_store *store);

/*
 * Looks at the disk and, if it has room and can be written to, replaces the handle. Returns true
 * if the handle is another one: the history of what was written begins anew at the published
 * version.
 */
MUST_USE bool emb_reopen_try(struct emb_store *store);

#endif
