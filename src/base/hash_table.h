/*
 * A table of things by their hashes (base/hash.h). It gets one slot more with each entry, so nobody
 * who holds its lock ever moves more than the few entries of one slot, however many there are. An
 * empty table has no memory. The owner has the entries, which begin with a struct hash_entry, and
 * the lock.
 */
#ifndef FROND_BASE_HASH_TABLE_H
#define FROND_BASE_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_entry {
	struct hash_entry *next; /* of the slot */
	uint64_t hash;
};

struct hash_table {
	struct hash_entry **slots;
	size_t slot_count; /* above half of mask + 1 */
	size_t cap;
	uint64_t mask;
	size_t count;
};

/* The entries whose hashes choose the same slot, in a chain; NULL: none. */
struct hash_entry *hash_table_find(const struct hash_table *t, uint64_t hash);
/* Adds an entry, whose hash is set. False: out of memory. */
bool hash_table_add(struct hash_table *t, struct hash_entry *entry);
void hash_table_remove(struct hash_table *t, struct hash_entry *entry);
/* Forgets all entries at once. */
void hash_table_clear(struct hash_table *t);

#endif
