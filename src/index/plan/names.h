/*
 * Names that are gathered from several places and put into the order of their bytes, each once:
 * ids that several ranges and indexes have, on the way to documents that are read in the order of
 * their ids; fields that a question looks at.
 *
 * Ownership: all lies in the arena, whose limit is that of the list. Threading: that of the arena.
 */
#ifndef FROND_INDEX_PLAN_NAMES_H
#define FROND_INDEX_PLAN_NAMES_H

#include "base/arena.h"
#include "base/status.h"

struct name_list {
	struct arena *arena;
	struct str *items;
	size_t count;
	size_t cap;
};

/* Appends a copy. STATUS_LIMIT when the arena is full. */
MUST_USE enum status name_list_add(struct name_list *list, struct str name);

/*
 * Puts the names in order, each once. STATUS_LIMIT when the arena is full; the failures of
 * step_count().
 */
MUST_USE enum status name_list_settle(struct name_list *list);

/* Of a list in order: the position of the first name that does not come before this one. */
size_t name_list_find(const struct name_list *list, struct str name);

/* True if a list in order has the name. */
static inline bool
name_list_has(const struct name_list *list, struct str name)
{
	size_t at = name_list_find(list, name);

	return at < list->count && str_eq(list->items[at], name);
}

#endif
