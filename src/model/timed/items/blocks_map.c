/*
 * Maps of where the blocks of a sorted set begin, which a process keeps between transactions. They
 * spare a transaction the look-ups of the blocks of what it changes, one for each level.
 *
 * == Why a map that is used is right ==
 *
 * The part SHAPE of a body is a number. Whoever begins or ends a block of a sorted set, or changes
 * which members a set has, adds a random number to it in the same transaction
 * (timed_map_reshape()). A map is of one value of SHAPE, and a transaction that wants to use a map
 * reads SHAPE first: if it is the map's, blocks begin now where they did when the map learned it,
 * whoever has written meanwhile. If not, the map starts anew. A transaction changes the map
 * together with the blocks, and the number that it adds is random: so the map need not know whether
 * the transaction took place. If it did, SHAPE is what the map says; if not, or if another
 * transaction has changed the shape at the same time, it is something else. The same holds for the
 * names of a set's members (names_map.c).
 *
 * A map says what is so at the transaction's snapshot. It stays so until the commit, since the
 * transaction has read SHAPE and conflicts with whoever changes it. That is coarser than the
 * conflict ranges of each block that a transaction without a map sets (blocks.c): two of them, with
 * six keys, at each level. Maps are for a store that one process writes, and its commands on one
 * key wait for each other, so hardly any transaction meets another one's SHAPE.
 *
 * A map knows parts of levels. It learns a part when something is looked up there, by one range
 * read of all blocks of the level between two that begin blocks of the level above: some thirty.
 */
#include <assert.h>
#include <endian.h>
#include <pthread.h>

#include "base/mem.h"
#include "base/rand.h"
#include "model/timed/items/map_int.h"

enum {
	MAPS = 8,                    /* that a process keeps */
	MAP_BYTES = 4 * 1024 * 1024, /* of one; a map that would need more starts anew */
	MAP_STRETCH = 256,           /* blocks that are read together, at most */
	HEAT = 24,                   /* look-ups after which a sorted set, or a set, gets a map */
	HEAT_SLOTS = 256,
};

struct timed_maps {
	pthread_mutex_t lock;
	struct timed_map *maps[MAPS];
	uint64_t returned;
	/* How often blocks of bodies without a map were looked for, lately. */
	struct {
		uint64_t hash;
		unsigned count;
	} heat[HEAT_SLOTS];
};

/* ---- What a process keeps ---- */

struct timed_maps *
timed_maps_new(void)
{
	struct timed_maps *maps = mem_zalloc(sizeof(*maps));

	if (maps)
		pthread_mutex_init(&maps->lock, NULL);
	return maps;
}

static void
map_free(struct timed_map *map)
{
	if (!map)
		return;
	arena_free(map->arena);
	mem_free(map);
}

void
timed_maps_free(struct timed_maps *maps)
{
	if (!maps)
		return;
	for (size_t i = 0; i < MAPS; i++)
		map_free(maps->maps[i]);
	pthread_mutex_destroy(&maps->lock);
	mem_free(maps);
}

static bool
map_is_of(const struct timed_map *map, struct str body)
{
	return map && str_eq(str_of(map->body, map->body_len), body);
}

/*
 * Takes a map of the body out, or NULL; there are several where transactions have wanted one at the
 * same time. `*ret_hot`: without one it deserves one.
 */
static struct timed_map *
maps_take(struct timed_maps *maps, struct str body, bool wanted, bool *ret_hot)
{
	uint64_t hash = str_hash(body);
	struct timed_map **found = NULL, *map = NULL;

	*ret_hot = false;
	pthread_mutex_lock(&maps->lock);
	for (size_t i = 0; i < MAPS; i++)
		if (map_is_of(maps->maps[i], body) &&
		    (!found || maps->maps[i]->used > (*found)->used))
			found = &maps->maps[i];
	if (found) {
		map = *found;
		*found = NULL;
	} else if (wanted) {
		size_t slot = hash % HEAT_SLOTS;

		if (maps->heat[slot].hash != hash)
			maps->heat[slot].count = 0;
		maps->heat[slot].hash = hash;
		*ret_hot = ++maps->heat[slot].count >= HEAT;
		if (*ret_hot)
			maps->heat[slot].count = 0;
	}
	pthread_mutex_unlock(&maps->lock);
	return map;
}

/* Gives a map back; returns one that is not kept any more, or NULL. */
static struct timed_map *
maps_give(struct timed_maps *maps, struct timed_map *map)
{
	size_t place = 0;
	struct timed_map *former;

	if (map->dead)
		return map;
	pthread_mutex_lock(&maps->lock);
	map->used = ++maps->returned;
	for (size_t i = 0; i < MAPS; i++) {
		const struct timed_map *other = maps->maps[i];

		if (!other) {
			place = i;
			break;
		}
		if (other->used < maps->maps[place]->used)
			place = i;
	}
	former = maps->maps[place];
	maps->maps[place] = map;
	pthread_mutex_unlock(&maps->lock);
	return former;
}

void
timed_maps_return(struct timed *t)
{
	while (t->held) {
		struct timed_map *map = t->held;

		t->held = map->next;
		map_free(maps_give(t->maps, map));
	}
}

/* ---- One level ---- */

/* How many blocks that are known begin at the order or before it. */
static size_t
level_behind(const struct map_level *l, struct str order)
{
	size_t low = 0, high = l->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(l->blocks[middle].order, order) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void
timed_map_clear(struct timed_map *map)
{
	arena_clear(map->arena);
	memset(map->levels, 0, sizeof(map->levels));
	map->names = (struct map_names){ 0 };
}

/* Notes that a block begins there. False: the map was full, and has forgotten everything. */
static bool
map_insert(struct timed_map *map, unsigned level, size_t at, struct str order)
{
	struct map_level *l = &map->levels[level];
	struct str own = arena_dup(map->arena, order);
	struct mapped *blocks = NULL;

	if (own.ptr)
		blocks = arena_grow(map->arena, l->blocks, l->count, &l->cap, sizeof(*l->blocks));
	if (!blocks) {
		timed_map_clear(map);
		return false;
	}
	l->blocks = blocks;
	memmove(&blocks[at + 1], &blocks[at], (l->count - at) * sizeof(*blocks));
	blocks[at] = (struct mapped){ .order = own };
	l->count++;
	return true;
}

/* The same, unless it is known. `*ret`: its place. */
static bool
map_learn(struct timed_map *map, unsigned level, struct str order, size_t *ret)
{
	const struct map_level *l = &map->levels[level];
	size_t behind = level_behind(l, order);

	*ret = behind;
	if (behind && str_eq(l->blocks[behind - 1].order, order)) {
		*ret = behind - 1;
		return true;
	}
	return map_insert(map, level, behind, order);
}

/* The block that the order is in, and the one behind that, whose ptr is NULL at the end. */
static bool
map_knows(const struct timed_map *map, unsigned level, struct str order, struct str *ret_from,
	  struct str *ret_next)
{
	const struct map_level *l = &map->levels[level];
	size_t behind = level_behind(l, order);

	if (!behind || !l->blocks[behind - 1].linked)
		return false;
	*ret_from = l->blocks[behind - 1].order;
	*ret_next = behind < l->count ? l->blocks[behind].order : (struct str){ NULL, 0 };
	return true;
}

/* ---- Learning ---- */

/*
 * Reads the blocks of the level from one that begins a block of the level above up to the next such
 * one. What the map holds at `from` and `to` may move meanwhile, so these are copies.
 */
static enum status
map_read(struct timed_item *item, unsigned level, struct str from, struct str to)
{
	const struct kv_range_options options = { .limit = MAP_STRETCH, .mode = KV_SNAPSHOT };
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct timed_map *map = item->map;
	struct str begin, end, order = STR("");
	struct kv_pair pair;
	enum status status;
	size_t at = 0, count = 0;

	TRY(timed_block_key(item, level, from, &begin));
	if (to.ptr)
		TRY(timed_block_key(item, level, to, &end));
	else
		TRY(timed_block_key(item, level + 1, STR(""), &end));
	TRY(timed_cursor_open(&scan, item->t, begin, end, &options));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		TRY(timed_key_tail(item, pair.key, 2, &order));
		if (!map_learn(map, level, order, &at))
			return STATUS_OK;
		if (count++)
			map->levels[level].blocks[at - 1].linked = true;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	if (!count || count == MAP_STRETCH)
		return STATUS_OK;
	at = level_behind(&map->levels[level], order);
	if (to.ptr && !map_learn(map, level, to, &at))
		return STATUS_OK;
	map->levels[level].blocks[at - 1].linked = true;
	return STATUS_OK;
}

/* As map_knows(), in copies. STATUS_NOT_FOUND: the map does not know, and cannot learn it. */
static enum status
map_look(struct timed_item *item, unsigned level, struct str order, struct str *ret_from,
	 struct str *ret_next)
{
	struct str from = STR(""), to = { NULL, 0 };
	struct arena_mark mark;

	if (!map_knows(item->map, level, order, &from, &to)) {
		if (level < item->height)
			TRY(map_look(item, level + 1, order, &from, &to));
		mark = arena_mark(item->arena);
		TRY(map_read(item, level, from, to));
		arena_reset(item->arena, mark);
		if (!map_knows(item->map, level, order, &from, &to))
			return STATUS_NOT_FOUND;
	}
	*ret_from = arena_dup(item->arena, from);
	*ret_next = to.ptr ? arena_dup(item->arena, to) : to;
	return ret_from->ptr && (ret_next->ptr || !to.ptr) ? STATUS_OK : STATUS_LIMIT;
}

/* ---- The map of an item ---- */

static struct timed_map *
map_new(struct str body)
{
	struct timed_map *map = mem_zalloc(sizeof(*map));

	if (map)
		map->arena = arena_new(MAP_BYTES);
	if (!map || !map->arena) {
		map_free(map);
		return NULL;
	}
	memcpy(map->body, body.ptr, body.len);
	map->body_len = body.len;
	return map;
}

enum status
timed_map_take(struct timed_item *item, bool wanted)
{
	struct timed *t = item->t;
	struct timed_map *map;
	struct str key, value;
	uint64_t shape = 0;
	bool hot, is_new;

	if (item->body.len > TIMED_MAP_BODY_BYTES)
		return STATUS_NOT_FOUND;
	map = maps_take(t->maps, item->body, wanted, &hot);
	is_new = !map;
	if (!map && hot)
		map = map_new(item->body);
	if (!map)
		return STATUS_NOT_FOUND;
	map->next = t->held;
	t->held = map;
	/* With what this transaction has added to it. */
	TRY(timed_part_key(item, TIMED_PART_SHAPE, &key));
	TRY(timed_data_get(t, key, KV_READ, item->arena, &value));
	if (value.ptr && value.len != sizeof(shape))
		return timed_item_corrupt(item);
	if (value.ptr)
		memcpy(&shape, value.ptr, sizeof(shape));
	shape = le64toh(shape);
	if (!is_new && shape != map->shape)
		timed_map_clear(map);
	map->shape = shape;
	item->map = map;
	return STATUS_OK;
}

enum status
timed_map_find(struct timed_item *item, unsigned level, struct str order, struct str *ret)
{
	struct str from, next;

	if (!item->t->maps || item->type != TIMED_ZSET)
		return STATUS_NOT_FOUND;
	if (!item->map)
		TRY(timed_map_take(item, true));
	if (!map_knows(item->map, level, order, &from, &next))
		return map_look(item, level, order, ret, &next);
	*ret = arena_dup(item->arena, from); /* the map's own goes if the map starts anew */
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
timed_map_before(struct timed_item *item, unsigned level, struct str order, struct str *ret)
{
	const struct map_level *l;
	size_t behind;

	if (!item->map)
		return STATUS_NOT_FOUND;
	l = &item->map->levels[level];
	behind = level_behind(l, order);
	if (behind < 2 || !l->blocks[behind - 2].linked ||
	    !str_eq(l->blocks[behind - 1].order, order))
		return STATUS_NOT_FOUND;
	*ret = arena_dup(item->arena, l->blocks[behind - 2].order);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

void
timed_map_drop(struct timed_item *item)
{
	if (item->map)
		item->map->dead = true;
	item->map = NULL;
	item->reshaped = false;
}

/* ---- Changes ---- */

enum status
timed_map_reshape(struct timed_item *item)
{
	uint64_t number;
	struct str key;

	if ((item->type != TIMED_ZSET && item->type != TIMED_SET) || item->reshaped)
		return STATUS_OK;
	rand_bytes(&number, sizeof(number));
	number |= 1; /* never 0 */
	item->reshaped = true;
	if (item->map)
		item->map->shape += number;
	number = htole64(number);
	TRY(timed_part_key(item, TIMED_PART_SHAPE, &key));
	/* Without history: maps are of the present. */
	return kv_atomic(item->t->tx, KV_ADD, key, str_of(&number, sizeof(number)));
}

void
timed_map_divide(struct timed_item *item, unsigned level, struct str from, struct str order)
{
	struct map_level *l;
	size_t at;
	bool linked;

	if (!item->map)
		return;
	assert(item->reshaped);
	l = &item->map->levels[level];
	at = level_behind(l, order);
	if (!at)
		return;
	linked = l->blocks[at - 1].linked;
	/* Nothing begins between `from` and the order, which the transaction has looked for. */
	if (str_eq(l->blocks[at - 1].order, from))
		l->blocks[at - 1].linked = true;
	if (map_insert(item->map, level, at, order))
		l->blocks[at].linked = linked;
}

void
timed_map_join(struct timed_item *item, unsigned level, struct str order)
{
	struct map_level *l;
	size_t behind;

	if (!item->map)
		return;
	assert(item->reshaped);
	l = &item->map->levels[level];
	behind = level_behind(l, order);
	if (!behind || !str_eq(l->blocks[behind - 1].order, order))
		return;
	if (behind > 1)
		l->blocks[behind - 2].linked &= l->blocks[behind - 1].linked;
	memmove(&l->blocks[behind - 1], &l->blocks[behind],
		(l->count - behind) * sizeof(*l->blocks));
	l->count--;
}
