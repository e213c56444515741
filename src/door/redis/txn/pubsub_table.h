/*
 * A table of what is subscribed to, by hashes of names. It gets one slot more with each entry, so
 * nobody who holds the lock of subscriptions ever moves more than the few entries of one slot,
 * however many there are. An empty table has no memory. The owner has the entries, and the lock.
 */
#ifndef FROND_DOOR_REDIS_TXN_PUBSUB_TABLE_H
#define FROND_DOOR_REDIS_TXN_PUBSUB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of what is in a table. */
struct pubsub_entry {
	struct pubsub_entry *next; /* of the slot */
	uint64_t hash;
};

struct pubsub_table {
	struct pubsub_entry **slots;
	size_t slot_count; /* above half of mask + 1 */
	size_t cap;
	uint64_t mask;
	size_t count;
};

/* The entries whose hashes choose the same slot, in a chain; NULL: none. */
struct pubsub_entry *pubsub_table_find(const struct pubsub_table *t, uint64_t hash);
/* Adds an entry, whose hash is set. False: out of memory. */
bool pubsub_table_add(struct pubsub_table *t, struct pubsub_entry *entry);
void pubsub_table_remove(struct pubsub_table *t, struct pubsub_entry *entry);

#endif
