#include "kv/embedded/latest.h"

#include <assert.h>

#include "base/hash.h"

/* The slot of the key, or the free one where it would be. NULL: a search would take too long. */
static struct latest_slot *
latest_slot(const struct latest *l, uint64_t hash, struct str key)
{
	for (size_t i = 0; i < LATEST_PROBES; i++) {
		struct latest_slot *slot = &l->slots[((hash >> 32) + i) & (l->slot_count - 1)];

		if (!slot->mutation)
			return slot;
		if (slot->hash == hash && str_eq(slot->mutation->key, key))
			return slot;
	}
	return NULL;
}

/* Makes a table four times as large. */
static bool
latest_grow(struct latest *l, struct arena *a)
{
	struct latest larger = { .next = l->next, .used = l->used };

	larger.slot_count = l->slot_count ? 4 * l->slot_count : LATEST_SLOTS;
	if (larger.slot_count > LATEST_MOST_SLOTS)
		return false;
	larger.slots = arena_zalloc(a, larger.slot_count * sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < l->slot_count; i++) {
		const struct latest_slot *from = &l->slots[i];
		struct latest_slot *to;

		if (!from->mutation)
			continue;
		to = latest_slot(&larger, from->hash, from->mutation->key);
		if (!to)
			return false;
		*to = *from;
	}
	*l = larger;
	return true;
}

static bool
latest_put(struct latest *l, struct arena *a, struct mutation *m)
{
	struct latest_slot *slot;
	uint64_t hash;

	if (LATEST_SHARE * l->used >= l->slot_count && !latest_grow(l, a))
		return false;
	hash = hash_quick(m->key);
	slot = latest_slot(l, hash, m->key);
	if (!slot)
		return false;
	l->used += !slot->mutation;
	*slot = (struct latest_slot){ hash, m };
	assert(l->used <= l->slot_count);
	return true;
}

bool
latest_enter(struct latest *l, struct arena *a)
{
	for (; l->next; l->next = l->next->next) {
		if (l->next->kind == MUTATION_CLEAR_RANGE || l->next->kind == MUTATION_STAMPED_KEY)
			return false;
		if (!latest_put(l, a, l->next))
			return false;
	}
	return true;
}

const struct mutation *
latest_find(const struct latest *l, struct str key)
{
	const struct latest_slot *slot;

	if (!l->used)
		return NULL;
	slot = latest_slot(l, hash_quick(key), key);
	return slot ? slot->mutation : NULL;
}
