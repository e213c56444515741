#include "index/plan/names.h"

#include <assert.h>

#include "loop/step.h"

enum {
	NAMES_OF_STEP = 4, /* names that are merged in one step */
};

enum status
name_list_add(struct name_list *list, struct str name)
{
	TRY(arena_room(list->arena, &list->items, list->count, &list->cap, sizeof(*list->items)));
	TRY(arena_copy(list->arena, name, &list->items[list->count]));
	list->count++;
	return STATUS_OK;
}

/* Merges two runs in order, of which the second one follows the first. */
static enum status
runs_merge(const struct str *from, size_t middle, size_t end, struct str *to)
{
	size_t a = 0, b = middle, steps = end / NAMES_OF_STEP + 1;

	for (size_t i = 0; i < end; i++) {
		bool left = b == end || (a < middle && str_cmp(from[a], from[b]) <= 0);

		to[i] = left ? from[a++] : from[b++];
	}
	assert(a == middle && b == end);
	return step_count(steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
}

enum status
name_list_settle(struct name_list *list)
{
	size_t count = list->count, kept = 0;
	struct str *from = list->items;
	struct str *to = arena_alloc(list->arena, (count + 1) * sizeof(*to));

	if (!to)
		return STATUS_LIMIT;
	for (size_t run = 1; run < count; run *= 2) {
		struct str *swap = from;

		for (size_t at = 0; at < count; at += 2 * run) {
			size_t left = count - at;

			TRY(runs_merge(from + at, left < run ? left : run,
				       left < 2 * run ? left : 2 * run, to + at));
		}
		from = to;
		to = swap;
	}
	for (size_t i = 0; i < count; i++)
		if (i == 0 || !str_eq(from[i], from[kept - 1]))
			from[kept++] = from[i];
	assert(!count == !kept);
	list->items = from;
	list->count = list->cap = kept;
	return STATUS_OK;
}

size_t
name_list_find(const struct name_list *list, struct str name)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(list->items[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
