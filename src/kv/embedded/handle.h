/*
 * RocksDB's handle: opening and closing it, and what is asked of it when it has been opened. Only
 * the thread that opens the store, or later the one that owns the committer, calls these, with the
 * exception of emb_handle_use().
 */
#ifndef FROND_KV_EMBEDDED_HANDLE_H
#define FROND_KV_EMBEDDED_HANDLE_H

#include "kv/embedded/embedded_int.h"

/*
 * Opens the store for writing. STATUS_NOT_FOUND, STATUS_LOCKED, STATUS_CORRUPT, STATUS_IO. Then the
 * handle is NULL.
 */
MUST_USE enum status emb_handle_open(struct emb_store *store, struct err *err);

/* The same for reading only. It changes nothing and needs no room. */
MUST_USE enum status emb_handle_open_to_read(struct emb_store *store, struct err *err);

void emb_handle_close(struct emb_store *store);

/* Copies the value of a key, of at most `*len` bytes, and sets its length; 0 if it is absent. */
MUST_USE enum status emb_handle_read(struct emb_store *store, struct str key, char *ret,
				     size_t *len, struct err *err);

/* The store's last version and its metadata version. */
MUST_USE enum status emb_handle_versions(struct emb_store *store, uint64_t *ret_version,
					 uint8_t ret_metadata[KV_VERSIONSTAMP_TX_BYTES],
					 struct err *err);

/*
 * Enters the gate for a use of the handle that is no read of a transaction; the caller leaves it.
 * While the store is being opened again it waits, at most for EMB_SWITCH_WAIT_MS; any thread or
 * fiber may. STATUS_UNAVAILABLE after that, or if the store cannot be opened: nothing is to be
 * left then.
 */
MUST_USE enum status emb_handle_use(struct emb_store *store, struct gate_pass *ret,
				    struct err *err);

/*
 * The same for what may take minutes and writes: a compaction, a backup. While there is one, the
 * handle is not replaced.
 */
MUST_USE enum status emb_handle_use_long(struct emb_store *store, struct gate_pass *ret,
					 struct err *err);
void emb_handle_leave_long(struct emb_store *store, struct gate_pass pass);

enum {
	EMB_SWITCH_WAIT_MS = 30 * 1000,
};

#endif
