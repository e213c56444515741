/*
 * The names of the members of a set that is drawn from often, which a process keeps between
 * transactions in a map; blocks_map.c explains why what a map says can be trusted. With it a
 * transaction that draws reads one number, and no members. Without it each draw reads some fifty
 * members, and steps over all deleted ones between them, of which a set that has been filled and
 * emptied for long has many.
 */
#ifndef FROND_MODEL_TIMED_ITEMS_NAMES_MAP_H
#define FROND_MODEL_TIMED_ITEMS_NAMES_MAP_H

#include "model/timed/items/item_int.h"

enum {
	TIMED_NAMES_SHARE = 128, /* to draw a member costs as much as to read so many names */
};

/*
 * Draws the name of one of the `count` members of a set. STATUS_NOT_FOUND: no map knows the names;
 * `*ret_wants` says whether the item has a map whose draws have cost as much as to read all names.
 */
MUST_USE enum status timed_names_draw(struct timed_item *item, uint64_t count, struct str *ret,
				      bool *ret_wants);

/* The map shall learn all names, as many as that; false: there is no room for them. */
bool timed_names_begin(struct timed_item *item, uint64_t count);
/* One of them; false: the map was full, and has forgotten all. */
bool timed_names_learn(struct timed_item *item, struct str name);
/* The map knows none: not all of them could be read. */
void timed_names_forget(struct timed_item *item);

/* The item, which may be any collection, gets a member of that name. */
MUST_USE enum status timed_names_add(struct timed_item *item, struct str name);
/* It loses the one of that name. */
MUST_USE enum status timed_names_remove(struct timed_item *item, struct str name);

#endif
