#include "model/timed/items/names_map.h"

#include <assert.h>

#include "base/rand.h"
#include "model/timed/items/map_int.h"

enum {
	NAMES_MOST = 64 * 1024, /* of a set whose names are kept */
	NAMES_SPARE = 64,       /* that may be added before the array has to grow */
};

bool
timed_names_begin(struct timed_item *item, uint64_t count)
{
	struct map_names *n = &item->map->names;

	timed_map_clear(item->map);
	n->cap = (size_t)count + NAMES_SPARE;
	n->names = arena_alloc(item->map->arena, n->cap * sizeof(*n->names));
	if (!n->names)
		timed_map_clear(item->map);
	return n->names;
}

bool
timed_names_learn(struct timed_item *item, struct str name)
{
	struct map_names *n = &item->map->names;
	struct str own = arena_dup(item->map->arena, name);
	struct str *names = NULL;

	if (own.ptr)
		names = arena_grow(item->map->arena, n->names, n->count, &n->cap,
				   sizeof(*n->names));
	if (!names) {
		timed_map_clear(item->map);
		return false;
	}
	n->names = names;
	names[n->count++] = own;
	return true;
}

void
timed_names_forget(struct timed_item *item)
{
	timed_map_clear(item->map);
}

/* The item's map, if it may have one. */
static enum status
names_take(struct timed_item *item, bool wanted)
{
	if (item->map)
		return STATUS_OK;
	if (!item->t->maps || item->t->at_us)
		return STATUS_NOT_FOUND;
	return timed_map_take(item, wanted);
}

enum status
timed_names_draw(struct timed_item *item, uint64_t count, struct str *ret, bool *ret_wants)
{
	struct map_names *n;
	uint64_t random;

	*ret_wants = false;
	assert(item->type == TIMED_SET && !item->packed);
	if (count > NAMES_MOST)
		return STATUS_NOT_FOUND;
	TRY(names_take(item, true));
	n = &item->map->names;
	if (!n->names) {
		n->draws++;
		*ret_wants = count <= (uint64_t)n->draws * TIMED_NAMES_SHARE;
	}
	if (!n->count)
		return STATUS_NOT_FOUND;
	rand_bytes(&random, sizeof(random));
	n->drawn = (size_t)(random % n->count);
	*ret = arena_dup(item->arena, n->names[n->drawn]);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/*
 * Before a member of a set comes or goes: takes the set's map, if there is one, and has the store
 * say that older maps are wrong. `*ret` is the names that the map knows, which the caller has to
 * change; NULL: it knows none. The map is taken first: what timed_map_reshape() adds to the number
 * in the store would make it seem out of date.
 */
static enum status
names_change(struct timed_item *item, struct map_names **ret)
{
	enum status status = STATUS_NOT_FOUND;

	*ret = NULL;
	if (!item->reshaped)
		status = names_take(item, false);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	TRY(timed_map_reshape(item));
	if (item->map && item->map->names.names)
		*ret = &item->map->names;
	return STATUS_OK;
}

enum status
timed_names_add(struct timed_item *item, struct str name)
{
	struct map_names *n;

	if (item->type != TIMED_SET)
		return STATUS_OK;
	TRY(names_change(item, &n));
	if (n)
		(void)timed_names_learn(item, name);
	return STATUS_OK;
}

enum status
timed_names_remove(struct timed_item *item, struct str name)
{
	struct map_names *n;

	if (item->type != TIMED_SET)
		return STATUS_OK;
	TRY(names_change(item, &n));
	if (!n)
		return STATUS_OK;
	if (n->drawn < n->count && str_eq(n->names[n->drawn], name))
		n->names[n->drawn] = n->names[--n->count];
	else
		timed_map_clear(item->map);
	return STATUS_OK;
}
