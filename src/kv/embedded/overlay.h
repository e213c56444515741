/*
 * A transaction's own writes, in the two shapes they are needed in: the log, in the order they were
 * made, which the committer replays; and the overlay, ordered by key, which reads look through.
 * The overlay is brought up to date by the first read after a write, so that a transaction which
 * reads first and then writes never builds one.
 *
 * Everything lies in the transaction's arena.
 */
#ifndef FROND_KV_EMBEDDED_OVERLAY_H
#define FROND_KV_EMBEDDED_OVERLAY_H

#include "kv/embedded/atomic.h"
#include "kv/embedded/span.h"
#include "kv/embedded/tree.h"

enum mutation_kind {
	MUTATION_SET,
	MUTATION_CLEAR,
	MUTATION_CLEAR_RANGE,
	MUTATION_ATOMIC,
	MUTATION_STAMPED_KEY,
	MUTATION_STAMPED_VALUE,
};

struct mutation {
	struct mutation *next;
	struct mutation *chained; /* the next one on the same key, in the overlay */
	struct str key;           /* of a range: where it begins */
	struct str value;         /* or operand; of a range: where it ends */
	uint32_t stamp_offset;
	enum mutation_kind kind;
	enum kv_atomic op;

	/* Of a range clear. */
	bool meets_own_write; /* the transaction had written in the range before */
	bool keys_known;      /* `keys` are all that the snapshot has in the range */
	uint32_t key_count;
	struct str *keys;
};

enum overlay_kind {
	OVERLAY_NONE,       /* nothing is known: the snapshot decides */
	OVERLAY_SET,        /* has this value */
	OVERLAY_CLEARED,    /* is absent */
	OVERLAY_ATOMIC,     /* what the snapshot has, with a chain of operations applied */
	OVERLAY_UNREADABLE, /* not known before the commit */
};

struct overlay_entry {
	struct tree_node node;
	enum overlay_kind kind;
	struct str value;
	struct mutation *first; /* of an ATOMIC one's chain */
	struct mutation *last;
};

struct overlay {
	struct tree entries; /* single keys; they override the spans */
	struct tree cleared; /* spans that are absent */
	struct tree stamped; /* spans in which a stamped key may come to lie */
};

void overlay_init(struct overlay *o);

static inline bool
overlay_is_empty(const struct overlay *o)
{
	return !o->entries.root && !o->cleared.root && !o->stamped.root;
}

/*
 * Enters one mutation; those of a transaction are entered in order. `read_version`: stamps will be
 * above it; 0 when it is not known. STATUS_NOMEM.
 */
MUST_USE enum status overlay_enter(struct overlay *o, struct arena *a, struct mutation *m,
				   uint64_t read_version);

/*
 * What the overlay knows about a key; `*ret_entry` for overlay_resolve(), NULL if a span said it.
 */
enum overlay_kind overlay_look(const struct overlay *o, struct str key,
			       const struct overlay_entry **ret_entry);

/* The value behind an entry, given the snapshot's. STATUS_TX_UNREADABLE, STATUS_NOMEM. */
MUST_USE enum status overlay_resolve(const struct overlay_entry *e, struct cell snapshot,
				     struct arena *a, struct cell *ret);

/* The ten bytes of a stamp: the commit's version and the order within it, both big-endian. */
void stamp_write(uint8_t ret[KV_VERSIONSTAMP_TX_BYTES], uint64_t version, uint16_t order);

#endif
