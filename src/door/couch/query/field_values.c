#include "door/couch/query/field_values.h"

/* ---- One condition ---- */

/* A bound out of JSON text; NULL: none. */
static enum status
bound_read(const char *text, bool exclusive, const struct value_order *o, struct value_bound *ret)
{
	return text ? field_bound_make(str_from_cstr(text), exclusive, o, ret) : STATUS_OK;
}

/* Values from `low` on and in front of `high`, both JSON texts. */
static enum status
set_between(const char *low, bool low_exclusive, const char *high, bool high_exclusive,
	    const struct value_order *o, struct value_set *ret)
{
	struct value_interval i = { 0 };

	TRY(bound_read(low, low_exclusive, o, &i.low));
	TRY(bound_read(high, high_exclusive, o, &i.high));
	return value_set_of(o, &i, ret);
}

static enum status
set_arrays(const struct value_order *o, struct value_set *ret)
{
	return set_between("[]", false, "{}", true, o, ret);
}

/* The values of a list, each by itself; arrays too, of which one element may be meant. */
static enum status
set_of_list(const struct normal_node *n, bool with_arrays, const struct value_order *o,
	    struct value_set *ret)
{
	struct value_set sets[2];
	struct json_value *items;
	const void **values;
	size_t count, kept = 0;

	TRY(json_value_items(&n->arg, o->w->arena, &items, &count, NULL));
	if (count > VALUE_INTERVALS)
		return value_set_all(o, ret);
	values = arena_alloc(o->w->arena, (count + 1) * sizeof(*values));
	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct value_bound one;

		if (items[i].kind == JSON_ARRAY_BEGIN)
			continue;
		TRY(field_bound_make(items[i].text, false, o, &one));
		values[kept++] = one.value;
	}
	TRY(value_set_of_points(o, values, kept, &sets[0]));
	if (with_arrays)
		TRY(set_arrays(o, &sets[1]));
	return value_sets_unite(o, sets, with_arrays ? 2 : 1, ret);
}

static enum status
set_of_type(struct str type, const struct value_order *o, struct value_set *ret)
{
	static const struct {
		const char *type, *low, *high;
		bool low_exclusive, high_exclusive;
	} types[] = {
		{ "null", "null", "false", false, true },
		/* No value lies between true and the first number, which is no bound. */
		{ "boolean", "false", "true", false, false },
		{ "number", "true", "\"\"", true, true },
		{ "string", "\"\"", "[]", false, true },
		{ "array", "[]", "{}", false, true },
		{ "object", "{}", NULL, false, false },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (str_eq(type, str_from_cstr(types[i].type)))
			return set_between(types[i].low, types[i].low_exclusive, types[i].high,
					   types[i].high_exclusive, o, ret);
	return value_set_all(o, ret);
}

/* All values but one. */
static enum status
set_but(struct str text, const struct value_order *o, struct value_set *ret)
{
	TRY(value_set_new(o, 2, ret));
	ret->count = 2;
	TRY(field_bound_make(text, true, o, &ret->items[0].high));
	ret->items[1].low = ret->items[0].high;
	return STATUS_OK;
}

/* Of `$eq` and of a comparison: a point, or all values on one side of it. */
static enum status
set_of_comparison(const struct normal_node *n, const struct value_order *o, struct value_set *ret)
{
	struct value_interval i = { .point = n->op == NORMAL_EQ };
	struct value_bound bound;

	TRY(field_bound_make(n->arg.text, n->op == NORMAL_GT || n->op == NORMAL_LT, o, &bound));
	if (n->op != NORMAL_LT && n->op != NORMAL_LTE)
		i.low = bound;
	if (n->op != NORMAL_GT && n->op != NORMAL_GTE)
		i.high = bound;
	return value_set_of(o, &i, ret);
}

static enum status
set_of_prefix(const struct normal_node *n, const struct value_order *o, struct value_set *ret)
{
	struct value_interval i;

	TRY(field_interval_of_prefix(n, o, &i));
	return value_set_of(o, &i, ret);
}

static enum status
set_of_condition(const struct normal_node *n, const struct value_order *o, struct value_set *ret)
{
	if (n->negated)
		return value_set_all(o, ret);
	switch (n->op) {
	case NORMAL_NE:
		return set_but(n->arg.text, o, ret);
	case NORMAL_EQ:
	case NORMAL_LT:
	case NORMAL_LTE:
	case NORMAL_GT:
	case NORMAL_GTE:
		return set_of_comparison(n, o, ret);
	case NORMAL_BEGINS_WITH:
		return set_of_prefix(n, o, ret);
	case NORMAL_IN:
		return set_of_list(n, true, o, ret);
	case NORMAL_TYPE:
		return set_of_type(n->arg.string, o, ret);
	case NORMAL_REGEX:
		return set_of_type(STR("string"), o, ret);
	case NORMAL_MOD:
		return set_of_type(STR("number"), o, ret);
	case NORMAL_SIZE:
	case NORMAL_ALL:
	case NORMAL_ELEM_MATCH:
	case NORMAL_ALL_MATCH:
		return set_arrays(o, ret);
	case NORMAL_KEY_MAP_MATCH:
		return set_of_type(STR("object"), o, ret);
	case NORMAL_NIN:
	case NORMAL_EXISTS:
		break;
	}
	return value_set_all(o, ret);
}

/* A document's id is compared byte by byte: of a collation's order only the same text is known. */
static bool
condition_is_told_by_collation(const struct normal_node *n)
{
	return !normal_path_is(&n->path, "_id") || n->op == NORMAL_EQ || n->op == NORMAL_IN;
}

/* ---- A selector ---- */

static size_t
nodes_count(const struct normal_node *n)
{
	size_t count = 0;

	for (; n; n = n->next)
		count++;
	return count;
}

static enum status
set_of_any(const struct normal_node *n, const struct normal_path *path, const struct value_order *o,
	   struct value_set *ret)
{
	size_t count = nodes_count(n->first);
	struct value_set *sets;

	/* An empty $or holds for all documents. */
	if (count == 0 || count > VALUE_INTERVALS)
		return value_set_all(o, ret);
	sets = arena_alloc(o->w->arena, (count + 1) * sizeof(*sets));
	if (!sets)
		return STATUS_LIMIT;
	count = 0;
	for (const struct normal_node *i = n->first; i; i = i->next)
		TRY(field_values_allowed(i, path, o, &sets[count++]));
	return value_sets_unite(o, sets, count, ret);
}

static enum status
set_of_every(const struct normal_node *n, const struct normal_path *path,
	     const struct value_order *o, struct value_set *ret)
{
	TRY(value_set_all(o, ret));
	for (const struct normal_node *i = n->first; i; i = i->next) {
		struct value_set one, before = *ret;

		TRY(field_values_allowed(i, path, o, &one));
		if (value_set_is_all(&one))
			continue;
		TRY(value_set_intersect(o, &before, &one, ret));
	}
	return STATUS_OK;
}

enum status
field_values_allowed(const struct normal_node *n, const struct normal_path *path,
		     const struct value_order *o, struct value_set *ret)
{
	TRY(index_count(o->w, 1));
	if (n->kind == NORMAL_AND)
		return set_of_every(n, path, o, ret);
	if (n->kind == NORMAL_OR)
		return set_of_any(n, path, o, ret);
	if (n->kind == NORMAL_FIELD && normal_path_eq(&n->path, path) &&
	    condition_is_told_by_collation(n))
		return set_of_condition(n, o, ret);
	return value_set_all(o, ret);
}

/* ---- Values that are known to match ---- */

static enum status
true_of_condition(const struct normal_node *n, const struct value_order *o, struct value_set *ret,
		  bool *ret_known)
{
	*ret_known = !n->negated && !normal_path_is(&n->path, "_id");
	if (*ret_known && n->op <= NORMAL_GT)
		return set_of_condition(n, o, ret);
	if (*ret_known && (n->op == NORMAL_IN || n->op == NORMAL_TYPE)) {
		TRY(n->op == NORMAL_IN ? set_of_list(n, false, o, ret)
				       : set_of_condition(n, o, ret));
		*ret_known = !value_set_is_all(ret);
		return STATUS_OK;
	}
	*ret_known = *ret_known && n->op == NORMAL_EXISTS && n->exists;
	return *ret_known ? value_set_all(o, ret) : value_set_new(o, 0, ret);
}

/* A union of too many intervals would become one that has values between them, too. */
static enum status
true_of_any(const struct normal_node *n, const struct normal_path *path,
	    const struct value_order *o, struct value_set *ret, bool *ret_known)
{
	size_t count = nodes_count(n->first), intervals = 0;
	struct value_set *sets = arena_alloc(o->w->arena, (count + 1) * sizeof(*sets));

	if (!sets)
		return STATUS_LIMIT;
	*ret_known = count > 0;
	count = 0;
	for (const struct normal_node *i = n->first; i && *ret_known; i = i->next) {
		TRY(field_values_certain(i, path, o, &sets[count], ret_known));
		intervals += *ret_known ? sets[count++].count : 0;
	}
	*ret_known = *ret_known && intervals <= VALUE_INTERVALS;
	return *ret_known ? value_sets_unite(o, sets, count, ret) : value_set_new(o, 0, ret);
}

static enum status
true_of_every(const struct normal_node *n, const struct normal_path *path,
	      const struct value_order *o, struct value_set *ret, bool *ret_known)
{
	TRY(value_set_all(o, ret));
	*ret_known = n->first != NULL;
	for (const struct normal_node *i = n->first; i && *ret_known; i = i->next) {
		struct value_set one, before = *ret;

		TRY(field_values_certain(i, path, o, &one, ret_known));
		if (*ret_known)
			TRY(value_set_intersect(o, &before, &one, ret));
	}
	return STATUS_OK;
}

enum status
field_values_certain(const struct normal_node *n, const struct normal_path *path,
		     const struct value_order *o, struct value_set *ret, bool *ret_known)
{
	TRY(index_count(o->w, 1));
	if (n->kind == NORMAL_FIELD && normal_path_eq(&n->path, path))
		return true_of_condition(n, o, ret, ret_known);
	if (n->kind == NORMAL_OR)
		return true_of_any(n, path, o, ret, ret_known);
	if (n->kind == NORMAL_AND)
		return true_of_every(n, path, o, ret, ret_known);
	*ret_known = false;
	return value_set_new(o, 0, ret);
}
