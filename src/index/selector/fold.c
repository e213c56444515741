/*
 * Folding: many conditions that compare the same field with one value each become one condition
 * with a sorted list.
 *
 *     {"$or": [{"a":1}, {"a":2}, {"b":3}]}     a is one of [1, 2], or b is 3
 *     {"$nor": [{"a":1}, {"a":2}]}             a is there, and is none of [1, 2]
 *
 * An $or of k values would otherwise be k comparisons, for each element that an $elemMatch around
 * it looks at.
 */
#include "index/selector/selector_int.h"

static int
fold_compare_names(const struct selector_path *a, const struct selector_path *b)
{
	for (size_t i = 0; a->names != b->names && i < a->count && i < b->count; i++) {
		int order = str_cmp(a->names[i].text, b->names[i].text);

		if (order)
			return order;
	}
	return (a->count > b->count) - (a->count < b->count);
}

static enum status
fold_compare_paths(const void *arg, const void *a, const void *b, struct index_work *w, int *ret)
{
	const struct selector_node *x = a;
	const struct selector_node *y = b;

	(void)arg;
	*ret = fold_compare_names(&x->path, &y->path);
	return index_count(w, (uint32_t)(1 + x->path.count));
}

/* Turns `first` into the condition that stands for the nodes [begin, end), which share its path. */
static enum status
fold_run(struct selector_node *first, const void *const *begin, size_t count, struct index_work *w)
{
	struct selector_cond *c = &first->cond;
	struct leaf_value *list = arena_alloc(w->arena, count * sizeof(*list));

	if (!list)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		const struct selector_node *n = begin[i];

		list[i] = n->cond.operand;
	}
	c->negated = c->op == SELECTOR_NE;
	c->op = SELECTOR_EQ_ANY;
	c->list = list;
	c->list_count = count;
	return selector_list_sort(c, w);
}

/* Folds the runs of nodes with the same path, and chains what remains behind `end`. */
static enum status
fold_sorted(struct selector_node **end, const void **nodes, size_t count, struct index_work *w)
{
	for (size_t first = 0; first < count;) {
		struct selector_node *n = (struct selector_node *)(uintptr_t)nodes[first];
		size_t next = first + 1;

		while (next < count &&
		       fold_compare_names(&n->path,
					  &((const struct selector_node *)nodes[next])->path) == 0)
			next++;
		if (next - first > 1)
			TRY(fold_run(n, nodes + first, next - first, w));
		*end = n;
		end = &n->next;
		first = next;
	}
	*end = NULL;
	return STATUS_OK;
}

enum status
selector_fold(struct selector_node *list, struct index_work *w)
{
	enum selector_op op = list->kind == SELECTOR_OR ? SELECTOR_EQ : SELECTOR_NE;
	struct selector_node **others = &list->first;
	const void **nodes;
	size_t count = 0;

	for (const struct selector_node *n = list->first; n; n = n->next)
		count += n->kind == SELECTOR_FIELD && n->cond.op == op && !n->cond.negated;
	if (count < 2)
		return STATUS_OK;
	nodes = arena_alloc(w->arena, count * sizeof(*nodes));
	if (!nodes)
		return STATUS_LIMIT;
	count = 0;
	for (struct selector_node *n = list->first; n; n = n->next) {
		if (n->kind == SELECTOR_FIELD && n->cond.op == op && !n->cond.negated) {
			nodes[count++] = n;
		} else {
			*others = n;
			others = &n->next;
		}
	}
	TRY(selector_sort(nodes, count, fold_compare_paths, NULL, w));
	return fold_sorted(others, nodes, count, w);
}
