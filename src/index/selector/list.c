/*
 * Comparisons, and the lists of $in, $nin and $all: sorted when the selector is compiled, searched
 * when it is matched.
 */
#include <assert.h>

#include "index/collate.h"
#include "index/selector/selector_int.h"
#include "loop/sort.h"

enum status
selector_compare(const struct selector_cond *c, const struct leaf_value *v,
		 const struct leaf_value *operand, struct index_work *w, int *ret)
{
	enum leaf_kind kind;
	struct str a, b;

	if (!c->by_bytes)
		return collate_compare(v, operand, w, ret);
	/* CouchDB compares ids in Erlang's order of terms, in which strings come last. */
	TRY(leaf_kind(operand, &kind));
	*ret = 1;
	if (kind != LEAF_STRING)
		return STATUS_OK;
	TRY(leaf_text(v, w, &a));
	TRY(leaf_text(operand, w, &b));
	*ret = str_cmp(a, b);
	return index_count_bytes(w, a.len < b.len ? a.len : b.len);
}

/* ---- Sorting ---- */

struct order {
	selector_compare_fn compare;
	const void *arg;
	struct index_work *w;
};

static enum status
order_compare(const void *arg, const void *a, const void *b, int *ret)
{
	const struct order *o = arg;

	return o->compare(o->arg, *(const void *const *)a, *(const void *const *)b, o->w, ret);
}

enum status
selector_sort(const void **items, size_t count, selector_compare_fn compare, const void *arg,
	      struct index_work *w)
{
	const struct order o = { compare, arg, w };

	return sort_items(items, count, sizeof(*items), order_compare, &o, w->arena);
}

/* ---- Lists ---- */

/*
 * Compares two values of a condition's list, or any value with one of them. The texts that are put
 * together for it are freed.
 */
static enum status
list_compare(const void *arg, const void *a, const void *b, struct index_work *w, int *ret)
{
	const struct selector_cond *c = arg;
	struct arena_mark mark = arena_mark(w->arena);

	if (c->op == SELECTOR_ALL)
		TRY(collate_exactly(a, b, w, ret));
	else
		TRY(selector_compare(c, a, b, w, ret));
	arena_reset(w->arena, mark);
	return STATUS_OK;
}

/* Takes out what no _id is equal to: all that are not strings. */
static enum status
list_keep_strings(struct selector_cond *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->list_count; i++) {
		enum leaf_kind kind;

		TRY(leaf_kind(&c->list[i], &kind));
		if (kind == LEAF_STRING)
			c->list[kept++] = c->list[i];
	}
	c->list_count = kept;
	return STATUS_OK;
}

enum status
selector_list_sort(struct selector_cond *c, struct index_work *w)
{
	struct leaf_value *sorted;
	const void **items;
	struct arena_mark mark;
	size_t kept = 0;

	if (c->by_bytes && c->op != SELECTOR_ALL)
		TRY(list_keep_strings(c));
	sorted = arena_alloc(w->arena, (c->list_count + 1) * sizeof(*sorted));
	mark = arena_mark(w->arena);
	items = arena_alloc(w->arena, (c->list_count + 1) * sizeof(*items));
	if (!sorted || !items)
		return STATUS_LIMIT;
	for (size_t i = 0; i < c->list_count; i++)
		items[i] = &c->list[i];
	TRY(selector_sort(items, c->list_count, list_compare, c, w));
	for (size_t i = 0; i < c->list_count; i++) {
		int order = 1;

		if (kept)
			TRY(list_compare(c, items[i], &sorted[kept - 1], w, &order));
		if (order)
			sorted[kept++] = *(const struct leaf_value *)items[i];
	}
	arena_reset(w->arena, mark);
	/* In order and each once, which selector_list_find() and the counting of $all rely on. */
	assert(kept <= c->list_count && (kept > 0) == (c->list_count > 0));
	c->list = sorted;
	c->list_count = kept;
	return STATUS_OK;
}

enum status
selector_list_find(const struct selector_cond *c, const struct leaf_value *v, struct index_work *w,
		   size_t *ret_at, bool *ret_found)
{
	size_t lo = 0;
	size_t hi = c->list_count;

	TRY(index_count(w, 1));
	*ret_found = false;
	while (lo < hi && !*ret_found) {
		size_t mid = lo + (hi - lo) / 2;
		int order;

		TRY(list_compare(c, v, &c->list[mid], w, &order));
		*ret_at = mid;
		*ret_found = order == 0;
		if (order < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return STATUS_OK;
}
