#include "base/hash_table.h"

#include <assert.h>

#include "base/mem.h"

enum {
	FIRST_SLOTS = 16,
};

static struct hash_entry **
table_slot(const struct hash_table *t, uint64_t hash)
{
	uint64_t at = hash & t->mask;

	/* This slot is not there yet: its entries are in the one that it will be split from. */
	return &t->slots[at < t->slot_count ? at : hash & t->mask >> 1];
}

static bool
table_begin(struct hash_table *t)
{
	t->slots = mem_zalloc(FIRST_SLOTS * sizeof(struct hash_entry *));
	if (!t->slots)
		return false;
	t->slot_count = t->cap = FIRST_SLOTS;
	t->mask = FIRST_SLOTS - 1;
	return true;
}

/*
 * Adds a slot, with the entries of another one that belong there. When out of memory, the table
 * keeps the slots that it has, and its chains become longer.
 */
static void
table_grow(struct hash_table *t)
{
	struct hash_entry **from, **to;

	if (t->slot_count == t->cap) {
		struct hash_entry **slots = mem_realloc(t->slots,
							2 * t->cap * sizeof(struct hash_entry *));

		if (!slots)
			return;
		t->slots = slots;
		t->cap *= 2;
	}
	if (t->slot_count > t->mask)
		t->mask = 2 * t->mask + 1;
	from = &t->slots[t->slot_count & t->mask >> 1];
	to = &t->slots[t->slot_count];
	*to = NULL;
	while (*from) {
		struct hash_entry *entry = *from;

		if ((entry->hash & t->mask) != t->slot_count) {
			from = &entry->next;
			continue;
		}
		*from = entry->next;
		entry->next = *to;
		*to = entry;
	}
	t->slot_count++;
}

struct hash_entry *
hash_table_find(const struct hash_table *t, uint64_t hash)
{
	return t->slots ? *table_slot(t, hash) : NULL;
}

bool
hash_table_add(struct hash_table *t, struct hash_entry *entry)
{
	struct hash_entry **slot;

	if (!t->slots && !table_begin(t))
		return false;
	if (t->count == t->slot_count)
		table_grow(t);
	slot = table_slot(t, entry->hash);
	entry->next = *slot;
	*slot = entry;
	t->count++;
	return true;
}

void
hash_table_remove(struct hash_table *t, struct hash_entry *entry)
{
	struct hash_entry **link = table_slot(t, entry->hash);

	while (*link != entry) {
		assert(*link && "the entry is in the table");
		link = &(*link)->next;
	}
	*link = entry->next;
	if (--t->count == 0)
		hash_table_clear(t);
}

void
hash_table_clear(struct hash_table *t)
{
	mem_free(t->slots);
	*t = (struct hash_table){ 0 };
}
