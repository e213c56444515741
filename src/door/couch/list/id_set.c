#include <assert.h>

#include "base/hash.h"
#include "door/couch/list/id_set.h"

enum status
couch_id_set_init(struct couch_id_set *set, size_t most, struct arena *arena)
{
	size_t slots;

	if (most >= UINT32_MAX)
		return STATUS_LIMIT;
	slots = hash_slots(most);
	*set = (struct couch_id_set){
		.most = most,
		.ids = arena_alloc(arena, (most + 1) * sizeof(*set->ids)),
		.slots = arena_zalloc(arena, slots * sizeof(*set->slots)),
		.mask = slots - 1,
	};
	return set->ids && set->slots ? STATUS_OK : STATUS_LIMIT;
}

/* Returns the slot of the id, or the free slot where it belongs. */
static uint32_t *
id_set_slot(const struct couch_id_set *set, struct str id)
{
	size_t at = hash_keyed(0, id) & set->mask;

	while (set->slots[at] && !str_eq(set->ids[set->slots[at] - 1], id))
		at = (at + 1) & set->mask;
	return &set->slots[at];
}

void
couch_id_set_add(struct couch_id_set *set, struct str id)
{
	uint32_t *slot = id_set_slot(set, id);

	if (*slot)
		return;
	assert(set->count < set->most);
	set->ids[set->count++] = id;
	*slot = (uint32_t)set->count;
}

bool
couch_id_set_has(const struct couch_id_set *set, struct str id)
{
	return set->count && *id_set_slot(set, id);
}
