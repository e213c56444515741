/* One map of a body: of blocks (blocks_map.c), or of names (names_map.c). */
#ifndef FROND_MODEL_TIMED_ITEMS_MAP_INT_H
#define FROND_MODEL_TIMED_ITEMS_MAP_INT_H

#include "model/timed/items/item_int.h"

enum {
	TIMED_MAP_BODY_BYTES = 64,
};

/* A block of a level begins here. */
struct mapped {
	struct str order;
	bool linked; /* none begins before the next one that is known; of the last one: at all */
};

struct map_level {
	struct mapped *blocks;
	size_t count, cap;
};

/* Of a set, without order. */
struct map_names {
	struct str *names; /* of all members; NULL: they are not known */
	size_t count, cap;
	size_t drawn; /* the place of the name that was drawn last */
	size_t draws; /* without knowing all names */
};

struct timed_map {
	struct timed_map *next; /* of those that a transaction has */
	struct arena *arena;
	char body[TIMED_MAP_BODY_BYTES]; /* what all keys of the body begin with */
	size_t body_len;
	uint64_t shape; /* what the map says holds as long as the store has this */
	bool dead;      /* the body is not the item's any more */
	uint64_t used;  /* when it was given back, in the order of all that were */
	struct map_level levels[TIMED_HEIGHT_MOST + 1]; /* of a sorted set */
	struct map_names names;
};

/*
 * Sets item->map to a map of the item's body, which the transaction then has until it ends. With
 * `wanted` a body that has been asked for often gets a new map if there is none; else only a map
 * that is there is taken. STATUS_NOT_FOUND: there is none.
 */
MUST_USE enum status timed_map_take(struct timed_item *item, bool wanted);
/* Forgets everything. */
void timed_map_clear(struct timed_map *map);

#endif
