/*
 * A hash table that grows by one slot with each entry (linear hashing; the hashes: base/hash.h).
 * Adding an entry moves the entries of one slot at most, however many the table has, so a lock is
 * never held for long. An empty table allocates nothing.
 *
 * The caller owns the entries, each of which begins with a struct hash_entry, and guards the table
 * by a lock of its own.
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

/* The chain of entries, of this hash and of others, in the slot that it chooses; or NULL. */
struct hash_entry *hash_table_find(const struct hash_table *t, uint64_t hash);
/* Adds an entry, whose hash is set. False: out of memory. */
bool hash_table_add(struct hash_table *t, struct hash_entry *entry);
void hash_table_remove(struct hash_table *t, struct hash_entry *entry);
/* Forgets all entries at once. */
void hash_table_clear(struct hash_table *t);

#endif
