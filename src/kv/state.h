/*
 * What can be said of a store as a whole.
 *
 * How its disk does is what operators see of it. The embedded engine goes through these
 * states (embedded/README.md); a store of a cluster is always open.
 */
#ifndef FROND_KV_STATE_H
#define FROND_KV_STATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Every state but the first refuses commits, with the status beside it. All but KV_STORE_LOST
 * answer reads.
 */
enum kv_store_state {
	KV_STORE_OPEN,
	KV_STORE_FULL,      /* STATUS_FULL, until there is room */
	KV_STORE_READ_ONLY, /* STATUS_UNAVAILABLE, until the file system can be written to */
	KV_STORE_FAILED,    /* STATUS_UNAVAILABLE, until the store has been opened again */
	/*
	 * STATUS_CORRUPT: what had been acknowledged is not there any more. The process must end.
	 */
	KV_STORE_LOST,
	/* STATUS_STANDBY: it takes only the log of another store (kv/log.h). Not a fault. */
	KV_STORE_STANDBY,
};

/* "open", "full", "read_only", "failed", "lost", "standby". The text is static. */
const char *kv_store_state_name(enum kv_store_state state);

/* A change of the state. All of it is borrowed for the call. */
struct kv_store_event {
	enum kv_store_state state;
	enum kv_store_state before;
	uint64_t version;   /* the last that was published */
	const char *reason; /* of a disk that is full or has failed; may be empty */
};

/*
 * Is called on a thread of the store's, or of one that commits or opens the store. It must not use
 * the store.
 */
typedef void kv_store_told(void *arg, const struct kv_store_event *event);

/* ---- What its engine can do ---- */

struct kv_store;

/*
 * True if a read-only transaction can read as long as it is open. Otherwise a long reading has to
 * be cut into several transactions, each at a version of its own.
 */
bool kv_keeps_versions(const struct kv_store *store);

/*
 * True if clearing a range costs the same however many keys it has, both at the commit and for
 * later reads. Otherwise a large range is better cleared in several transactions.
 */
bool kv_clears_cheaply(const struct kv_store *store);

/* True if it may change without a commit of this process: others use it, or it is a standby. */
bool kv_is_shared(const struct kv_store *store);

#endif
