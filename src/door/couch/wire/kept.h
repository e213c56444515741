/*
 * What a loop keeps of databases while the store's metadata version stands still, such as what it
 * has read in their design documents. A write that makes any of it untrue touches that version
 * (query/hook.c).
 *
 * Threading: the loop's. What is kept is counted, and never changes.
 */
#ifndef FROND_DOOR_COUCH_WIRE_KEPT_H
#define FROND_DOOR_COUCH_WIRE_KEPT_H

#include <stdint.h>

#include "kv/kv.h"

enum {
	COUCH_KEPT_SLOTS = 64, /* databases of which a loop keeps something */
};

/* The beginning of whatever is kept. */
struct couch_kept {
	unsigned refs;
	void (*free)(struct couch_kept *kept);
};

void couch_kept_unref(struct couch_kept *kept); /* NULL is fine */

/* Makes `*at`, of which the reference is given up, a reference to `kept`. */
void couch_kept_hold(struct couch_kept **at, struct couch_kept *kept);

struct couch_kept_slot {
	uint64_t number; /* of the database */
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct couch_kept *kept; /* NULL: the slot is free */
};

/* A database has one slot, and takes it from whichever had it before. */
struct couch_kept_table {
	struct couch_kept_slot slots[COUCH_KEPT_SLOTS];
};

void couch_kept_table_release(struct couch_kept_table *table);

/* Borrowed until the fiber waits; NULL: nothing is kept that is true at this version. */
struct couch_kept *couch_kept_find(const struct couch_kept_table *table, uint64_t number,
				   const uint8_t version[KV_VERSIONSTAMP_TX_BYTES]);

/* Takes a reference of its own. */
void couch_kept_put(struct couch_kept_table *table, uint64_t number,
		    const uint8_t version[KV_VERSIONSTAMP_TX_BYTES], struct couch_kept *kept);

#endif
