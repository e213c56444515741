/*
 * The format of a whole store, (ROOT, 0) = (format), and opening a store with it. Every command
 * opens its stores here, so that the format is checked above the engines, on every engine alike.
 *
 * Format 1 is that of stores with CouchDB's databases only; a store of a cluster that never needed
 * a higher one has no key for it. Format 2 has databases of other name spaces or kinds: the first
 * of them raises the number, so that a frond that does not know them refuses the store.
 *
 * Threading: any thread that may wait.
 */
#ifndef FROND_CATALOG_STORE_FORMAT_H
#define FROND_CATALOG_STORE_FORMAT_H

#include "base/status.h"
#include "kv/kv.h"

enum {
	CATALOG_STORE_FORMAT_KINDS = 2, /* the first that has other kinds and name spaces */
	CATALOG_STORE_FORMAT = 2,       /* the newest that this frond reads */
};

/*
 * kv_open(), and STATUS_NEWER, explained, if a newer frond has written the store. The clocks of the
 * process go on from what the store has of them (clock.h).
 */
MUST_USE enum status catalog_store_open(const char *url, const struct kv_options *options,
					struct kv_store **ret, struct err *err);

/* The same check of a store that is open. */
MUST_USE enum status catalog_store_check(struct kv_store *store, struct err *err);

/* The store has at least this format once the transaction has committed. Reads one key. */
MUST_USE enum status catalog_store_format_raise(struct kv_tx *tx, uint64_t format);

#endif
