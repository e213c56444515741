/*
 * The latest write of a transaction to each key, by the key's hash: for reads of single keys, which
 * most transactions of clients' doors make between their writes. The overlay (overlay.h) has writes
 * in the order of their keys, which ranges need, and entering one there takes two searches of a
 * tree. So writes are entered here first, and in the overlay when a range is read, or when this
 * table cannot tell.
 *
 * What is entered here is what the overlay does not have. So a key that this table has is what the
 * table says, and the overlay, which knows older writes only, is asked for all others.
 *
 * A client that chooses keys with the same hash makes the table give up, and the overlay is used.
 * So the hash need not be a secret.
 *
 * Ownership: everything lies in the transaction's arena. Threads: the transaction's own.
 */
#ifndef FROND_KV_EMBEDDED_LATEST_H
#define FROND_KV_EMBEDDED_LATEST_H

#include "kv/embedded/overlay.h"

enum {
	LATEST_SLOTS = 16, /* of the first table; each one is four times as large */
	LATEST_MOST_SLOTS = 64 * 1024,
	LATEST_SHARE = 4,   /* one such part of the slots is in use at most */
	LATEST_PROBES = 32, /* of a search */
};

struct latest_slot {
	uint64_t hash;
	struct mutation *mutation; /* NULL: the slot is free */
};

/* All zero: nothing is entered. */
struct latest {
	struct mutation *next; /* in the log: it and all behind it are to be entered */
	struct latest_slot *slots;
	size_t slot_count; /* a power of two, or 0 */
	size_t used;
};

/* The log has a new mutation at its end, which the overlay does not have. */
static inline void
latest_add(struct latest *l, struct mutation *m)
{
	if (!l->next)
		l->next = m;
}

/*
 * Enters what has been added. False: the table cannot tell any more, because a range was cleared,
 * the place of a key will be known at the commit, there are too many keys or hashes are the same,
 * or memory is short. Then the overlay has to get all that it does not have, and this table is to
 * be cleared.
 */
MUST_USE bool latest_enter(struct latest *l, struct arena *a);

/* The latest of the mutations of this key that were entered; NULL: there is none. */
const struct mutation *latest_find(const struct latest *l, struct str key);

/* The overlay has everything. */
static inline void
latest_clear(struct latest *l)
{
	*l = (struct latest){ 0 };
}

#endif
