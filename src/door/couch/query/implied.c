/*
 * Whether a selector demands what the filter of a partial index does, so that the index has all
 * matches. Each condition of the filter has to follow from the selector by itself: it is among the
 * selector's own, or is true for every value that the selector allows.
 */
#include "door/couch/query/plan_int.h"

static bool
condition_is_same(const struct normal_node *a, const struct normal_node *b)
{
	return a->op == b->op && a->negated == b->negated && a->exists == b->exists &&
	       normal_path_eq(&a->path, &b->path) && str_eq(a->arg.text, b->arg.text);
}

/* True if each match of `n` meets this very condition. */
static bool
selector_has(const struct normal_node *n, const struct normal_node *condition)
{
	bool any = false;

	if (n->kind == NORMAL_FIELD)
		return condition_is_same(n, condition);
	if (n->kind != NORMAL_AND && n->kind != NORMAL_OR)
		return false;
	for (const struct normal_node *i = n->first; i; i = i->next) {
		bool has = selector_has(i, condition);

		if (has != (n->kind == NORMAL_OR))
			return has;
		any = true;
	}
	return any && n->kind == NORMAL_OR;
}

static enum status
condition_is_implied(const struct normal_node *n, const struct normal_node *condition,
		     const struct value_order *o, bool *ret)
{
	struct value_set allowed, good;

	*ret = selector_has(n, condition);
	if (*ret || !normal_requires(n, &condition->path))
		return STATUS_OK;
	TRY(field_values_certain(condition, &condition->path, o, &good, ret));
	if (!*ret)
		return STATUS_OK;
	TRY(field_values_allowed(n, &condition->path, o, &allowed));
	return value_set_contains(o, &good, &allowed, ret);
}

static enum status
node_is_implied(const struct normal_node *n, const struct normal_node *filter,
		const struct value_order *o, bool *ret)
{
	*ret = filter->kind == NORMAL_ANYTHING || (filter->kind == NORMAL_AND && filter->first);
	if (filter->kind == NORMAL_FIELD)
		return condition_is_implied(n, filter, o, ret);
	if (filter->kind != NORMAL_AND && filter->kind != NORMAL_OR)
		return STATUS_OK;
	for (const struct normal_node *i = filter->first; i; i = i->next) {
		bool one;

		TRY(node_is_implied(n, i, o, &one));
		*ret = filter->kind == NORMAL_OR ? *ret || one : *ret && one;
	}
	return STATUS_OK;
}

enum status
filter_is_implied(const struct normal_node *n, struct str filter, const struct value_order *o,
		  bool *ret)
{
	struct normal_node *normal;

	TRY(normal_read(filter, o->w->arena, &normal));
	return node_is_implied(n, normal, o, ret);
}
