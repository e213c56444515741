#include "loop/sort.h"

#include <assert.h>
#include <string.h>

#include "loop/step.h"

enum {
	BYTES_COUNTED = 1024, /* a comparison of fewer is one step, which the merge counts */
};

struct sorting {
	size_t size; /* of an item */
	sort_compare_fn compare;
	const void *arg;
};

/* Most items are pointers, and a copy whose size the compiler knows is one instruction. */
static void
sort_copy(const struct sorting *s, char *to, const char *from)
{
	if (s->size == sizeof(void *))
		memcpy(to, from, sizeof(void *));
	else
		memcpy(to, from, s->size);
}

/* Merges [from, middle) and [middle, to) of `in`, each in order, into `out`; places in bytes. */
static enum status
sort_merge(const struct sorting *s, const char *in, char *out, const size_t places[3])
{
	size_t a = places[0], b = places[1], end = places[2];
	int order = 0;

	assert(a < b && b <= end);
	/* What comes in order, such as lists of ids often do, costs one comparison for two runs. */
	if (b < end)
		TRY(s->compare(s->arg, in + b - s->size, in + b, &order));
	if (order <= 0) {
		memcpy(out + a, in + a, end - a);
		return step_count_bytes(end - a);
	}
	for (size_t at = a; at < end; at += s->size) {
		TRY(step_count(1));
		order = b == end ? -1 : 1;
		if (a < places[1] && b < end)
			TRY(s->compare(s->arg, in + a, in + b, &order));
		if (a < places[1] && order <= 0) {
			sort_copy(s, out + at, in + a);
			a += s->size;
		} else {
			sort_copy(s, out + at, in + b);
			b += s->size;
		}
	}
	return STATUS_OK;
}

enum status
sort_items(void *items, size_t count, size_t size, sort_compare_fn compare, const void *arg,
	   struct arena *arena)
{
	const struct sorting s = { size, compare, arg };
	struct arena_mark mark = arena_mark(arena);
	char *from = items, *to;
	size_t end = count * size;

	assert(size);
	if (count < 2)
		return STATUS_OK;
	to = arena_alloc(arena, end);
	if (!to)
		return STATUS_LIMIT;
	for (size_t run = size; run < end; run *= 2) {
		char *swap = from;

		for (size_t at = 0; at < end; at += 2 * run) {
			size_t left = end - at;
			const size_t places[3] = { at, at + (left < run ? left : run),
						   at + (left < 2 * run ? left : 2 * run) };

			TRY(sort_merge(&s, from, to, places));
		}
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, end);
	arena_reset(arena, mark);
	return STATUS_OK;
}

struct plain {
	int (*compare)(const void *a, const void *b);
};

static enum status
compare_plainly(const void *arg, const void *a, const void *b, int *ret)
{
	*ret = ((const struct plain *)arg)->compare(a, b);
	return STATUS_OK;
}

enum status
sort_items_by(void *items, size_t count, size_t size, int (*compare)(const void *a, const void *b),
	      struct arena *arena)
{
	const struct plain plain = { compare };

	return sort_items(items, count, size, compare_plainly, &plain, arena);
}

enum status
sort_compare_strs(struct str a, struct str b, int *ret)
{
	size_t n = a.len < b.len ? a.len : b.len;

	*ret = str_cmp(a, b);
	return n < BYTES_COUNTED ? STATUS_OK : step_count_bytes(n);
}

static enum status
compare_strs(const void *arg, const void *a, const void *b, int *ret)
{
	(void)arg;
	return sort_compare_strs(*(const struct str *)a, *(const struct str *)b, ret);
}

enum status
sort_strs(struct str *items, size_t count, struct arena *arena)
{
	return sort_items(items, count, sizeof(*items), compare_strs, NULL, arena);
}
