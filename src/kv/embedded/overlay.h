/*
 * A transaction's own writes, in the two forms that are needed. The log has them in the order in
 * which they were made; the committer replays it. The overlay has them in the order of their keys;
 * reads look through it at the snapshot. A range that is read after a write brings the overlay up
 * to date, and so does a single key where latest.h does not do. A transaction that reads first and
 * then writes never builds one.
 *
 * Ownership: everything lies in the transaction's arena. Threads: the transaction's own; from the
 * commit on, the log belongs to the thread that makes the batch.
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
	bool applied; /* the overlay has a value that this operation is already a part of */

	/* Of a range clear. */
	bool meets_own_write; /* the transaction had written in the range before */
	bool keys_known;      /* `keys` are all that the snapshot has in the range */
	uint32_t key_count;
	struct str *keys;
};

enum {
	MUTATION_ADDS = 64,
};

/* By the hash of the key: an addition that nothing behind it in the log has overwritten. */
struct mutation_adds {
	struct mutation *slots[MUTATION_ADDS];
	bool any; /* false: all slots are NULL */
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
	struct mutation *first; /* of OVERLAY_ATOMIC: the operations, linked by `chained` */
	struct mutation *last;
};

struct overlay {
	struct tree entries; /* single keys; they override the spans */
	struct tree cleared; /* spans that are absent */
	struct tree stamped; /* spans in which a stamped key may come to lie */
	struct tree passed;  /* spans in which reads need not look: no key is left there */
};

void overlay_init(struct overlay *o);

static inline bool
overlay_is_empty(const struct overlay *o)
{
	return !o->entries.root && !o->cleared.root && !o->stamped.root;
}

/*
 * Enters one mutation. Those of a transaction must be entered in order. The commit's stamp will be
 * above `read_version`, which is 0 when it is not known. STATUS_NOMEM.
 */
MUST_USE enum status overlay_enter(struct overlay *o, struct arena *a, struct mutation *m,
				   uint64_t read_version);

/*
 * [begin, end) is absent, as reading it has shown, and no stamped key may come to lie in it. Reads
 * of ranges may skip it until something is written there. This does not clear its keys: what the
 * overlay tells about each of them stays the same. Bytes are borrowed. STATUS_NOMEM.
 */
MUST_USE enum status overlay_note_passed(struct overlay *o, struct arena *a, struct str begin,
					 struct str end);

/*
 * What the overlay tells about a key. `*ret_entry` is the key's entry, for overlay_resolve(); NULL
 * if it has none, and the spans decide.
 */
enum overlay_kind overlay_look(const struct overlay *o, struct str key,
			       const struct overlay_entry **ret_entry);

/*
 * What the key of the entry has, if the snapshot has `snapshot` for it. STATUS_TX_UNREADABLE,
 * STATUS_NOMEM.
 */
MUST_USE enum status overlay_resolve(const struct overlay_entry *e, struct cell snapshot,
				     struct arena *a, struct cell *ret);

/* The ten bytes of a stamp: the commit's version and the order within it, both big-endian. */
void stamp_write(uint8_t ret[KV_VERSIONSTAMP_TX_BYTES], uint64_t version, uint16_t order);

#endif
