/*
 * What a loop keeps of databases until the store's metadata version changes, such as definitions
 * that it has read in design documents. Every write that invalidates any of it changes that version
 * (query/hook.c).
 *
 * Threading: a table belongs to its loop. What is kept is counted and immutable.
 */
#ifndef FROND_DOOR_COUCH_WIRE_KEPT_H
#define FROND_DOOR_COUCH_WIRE_KEPT_H

#include <stdint.h>

#include "kv/kv.h"

enum {
	COUCH_KEPT_SLOTS = 64, /* databases of which a loop keeps something */
};

/* The first member of every kept structure. */
struct couch_kept {
	unsigned refs;
	void (*free)(struct couch_kept *kept);
};

void couch_kept_unref(struct couch_kept *kept); /* NULL is fine */

/* Replaces the reference `*at` by a new one to `kept`; the old one is released. */
void couch_kept_hold(struct couch_kept **at, struct couch_kept *kept);

struct couch_kept_slot {
	uint64_t number; /* of the database */
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES];
	struct couch_kept *kept; /* NULL: the slot is free */
};

/* A database has one slot, and replaces the entry of the database that is in it. */
struct couch_kept_table {
	struct couch_kept_slot slots[COUCH_KEPT_SLOTS];
};

void couch_kept_table_release(struct couch_kept_table *table);

/*
 * Returns the entry that was kept at this version, borrowed until the fiber waits; NULL if there is
 * none.
 */
struct couch_kept *couch_kept_find(const struct couch_kept_table *table, uint64_t number,
				   const uint8_t version[KV_VERSIONSTAMP_TX_BYTES]);

/* Keeps `kept`; the table takes a reference of its own. */
void couch_kept_put(struct couch_kept_table *table, uint64_t number,
		    const uint8_t version[KV_VERSIONSTAMP_TX_BYTES], struct couch_kept *kept);

#endif
