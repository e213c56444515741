#include "model/revisioned/rev_set.h"

#include <assert.h>

#include "base/hash.h"

enum status
rev_set_init(struct rev_set *set, size_t most, struct arena *arena)
{
	size_t slots;

	if (most >= UINT32_MAX)
		return STATUS_LIMIT;
	slots = hash_slots(most);
	*set = (struct rev_set){
		.most = most,
		.lowest = UINT64_MAX,
		.revs = arena_alloc(arena, (most ? most : 1) * sizeof(*set->revs)),
		.slots = arena_zalloc(arena, slots * sizeof(*set->slots)),
		.mask = slots - 1,
	};
	return set->revs && set->slots ? STATUS_OK : STATUS_LIMIT;
}

/* The slot that has the revision, or the free one where it belongs. */
static uint32_t *
set_slot(const struct rev_set *set, struct rev_id rev)
{
	size_t at = hash_keyed(rev.pos, rev.hash) & set->mask;

	while (set->slots[at] && !rev_id_eq(set->revs[set->slots[at] - 1], rev))
		at = (at + 1) & set->mask;
	return &set->slots[at];
}

size_t
rev_set_add(struct rev_set *set, struct rev_id rev)
{
	uint32_t *slot = set_slot(set, rev);

	if (*slot)
		return *slot - 1;
	assert(set->count < set->most);
	set->revs[set->count++] = rev;
	*slot = (uint32_t)set->count;
	if (rev.pos < set->lowest)
		set->lowest = rev.pos;
	if (rev.pos > set->highest)
		set->highest = rev.pos;
	return set->count - 1;
}

size_t
rev_set_find(const struct rev_set *set, struct rev_id rev)
{
	uint32_t slot;

	if (rev.pos < set->lowest || rev.pos > set->highest)
		return REV_SET_NONE;
	slot = *set_slot(set, rev);
	return slot ? slot - 1 : REV_SET_NONE;
}
