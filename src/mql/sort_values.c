#include "mql/sort_values.h"

#include "mql/mql_int.h"

/* Merges [from, middle) and [middle, to) of `in` into `out`. */
static enum status
sort_merge(const void **in, const void **out, const size_t bounds[3],
	   int (*compare)(const void *a, const void *b, const void *arg), const void *arg)
{
	size_t a = bounds[0], b = bounds[1], bytes = (bounds[2] - a) * sizeof(*in);

	assert(bounds[0] < bounds[1] && bounds[1] <= bounds[2]);
	/* What comes in order, such as lists of ids often do, costs one comparison for two runs. */
	if (b == bounds[2] || compare(in[b - 1], in[b], arg) <= 0) {
		memcpy(out + a, in + a, bytes);
		return mql_count(bytes);
	}
	for (size_t i = bounds[0]; i < bounds[2]; i++) {
		TRY(step_count(1));
		if (a < bounds[1] && (b == bounds[2] || compare(in[a], in[b], arg) <= 0))
			out[i] = in[a++];
		else
			out[i] = in[b++];
	}
	return STATUS_OK;
}

enum status
mql_sort(struct mql *q, const void **items, size_t count,
	 int (*compare)(const void *a, const void *b, const void *arg), const void *arg)
{
	struct arena_mark mark = arena_mark(q->arena);
	const void **from = items, **to;

	if (count < 2)
		return STATUS_OK;
	to = arena_alloc(q->arena, count * sizeof(*to));
	if (!to)
		return mql_full(q);
	for (size_t width = 1; width < count; width *= 2) {
		const void **swap = from;

		for (size_t at = 0; at < count; at += 2 * width) {
			size_t left = count - at;
			const size_t bounds[3] = { at, at + (left < width ? left : width),
						   at + (left < 2 * width ? left : 2 * width) };

			TRY(sort_merge(from, to, bounds, compare, arg));
		}
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, count * sizeof(*items));
	arena_reset(q->arena, mark);
	return STATUS_OK;
}
