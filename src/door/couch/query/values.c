#include "door/couch/query/values.h"

#include "index/collate.h"

/* ---- Bounds ---- */

/* Compares two lower bounds: no bound is lowest, an exclusive one higher than an inclusive one. */
static enum status
low_compare(const struct field_bound *a, const struct field_bound *b, struct index_work *w,
	    int *ret)
{
	*ret = (int)a->given - (int)b->given;
	if (!a->given || !b->given)
		return STATUS_OK;
	TRY(collate_compare(&a->value, &b->value, w, ret));
	if (*ret == 0)
		*ret = (int)a->exclusive - (int)b->exclusive;
	return STATUS_OK;
}

/* Compares two upper bounds: no bound is highest. */
static enum status
high_compare(const struct field_bound *a, const struct field_bound *b, struct index_work *w,
	     int *ret)
{
	*ret = (int)b->given - (int)a->given;
	if (!a->given || !b->given)
		return STATUS_OK;
	TRY(collate_compare(&a->value, &b->value, w, ret));
	if (*ret == 0)
		*ret = (int)b->exclusive - (int)a->exclusive;
	return STATUS_OK;
}

/* `*ret` is true if some value lies between the bounds, as far as bounds can tell. */
static enum status
bounds_meet(const struct field_bound *low, const struct field_bound *high, struct index_work *w,
	    bool *ret)
{
	int c = -1;

	if (low->given && high->given)
		TRY(collate_compare(&low->value, &high->value, w, &c));
	*ret = c < 0 || (c == 0 && !low->exclusive && !high->exclusive);
	return STATUS_OK;
}

/* ---- Making sets ---- */

/* A set with room for `count` intervals, and none in it. */
static enum status
set_new(struct index_work *w, size_t count, struct value_set *ret)
{
	*ret = (struct value_set){
		.items = arena_zalloc(w->arena, (count + 1) * sizeof(*ret->items)),
	};
	return ret->items ? STATUS_OK : STATUS_LIMIT;
}

enum status
value_set_all(struct index_work *w, struct value_set *ret)
{
	TRY(set_new(w, 1, ret));
	ret->count = 1;
	return STATUS_OK;
}

bool
value_set_is_all(const struct value_set *set)
{
	return set->count == 1 && !set->items[0].low.given && !set->items[0].high.given;
}

/* A bound out of JSON text; NULL: none. */
static enum status
bound_read(const char *text, bool exclusive, struct index_work *w, struct field_bound *ret)
{
	*ret = (struct field_bound){ 0 };
	return text ? field_bound_make(str_from_cstr(text), exclusive, w, ret) : STATUS_OK;
}

/* Values from `low` on and in front of `high`, both JSON texts. */
static enum status
set_between(const char *low, bool low_exclusive, const char *high, struct index_work *w,
	    struct value_set *ret)
{
	TRY(value_set_all(w, ret));
	TRY(bound_read(low, low_exclusive, w, &ret->items[0].low));
	return bound_read(high, true, w, &ret->items[0].high);
}

static enum status
set_point(struct str text, struct index_work *w, struct value_set *ret)
{
	TRY(value_set_all(w, ret));
	TRY(field_bound_make(text, false, w, &ret->items[0].low));
	ret->items[0].high = ret->items[0].low;
	ret->items[0].point = true;
	return STATUS_OK;
}

static enum status
set_arrays(struct index_work *w, struct value_set *ret)
{
	return set_between("[]", false, "{}", w, ret);
}

/* ---- Combining ---- */

/* One interval from the first bound to the last one. */
static void
set_span(struct value_set *set)
{
	if (set->count <= VALUE_INTERVALS)
		return;
	set->items[0].high = set->items[set->count - 1].high;
	set->items[0].point = false;
	set->count = 1;
}

static enum status
interval_settle(struct value_interval *i, struct index_work *w)
{
	int c = 1;

	if (i->low.given && i->high.given && !i->low.exclusive && !i->high.exclusive)
		TRY(collate_compare(&i->low.value, &i->high.value, w, &c));
	i->point = c == 0;
	return STATUS_OK;
}

static enum status
set_intersect(const struct value_set *a, const struct value_set *b, struct index_work *w,
	      struct value_set *ret)
{
	size_t i = 0, j = 0;

	TRY(set_new(w, a->count + b->count, ret));
	while (i < a->count && j < b->count) {
		const struct value_interval *x = &a->items[i], *y = &b->items[j];
		struct value_interval both;
		bool meets;
		int c;

		TRY(index_count(w, 1));
		TRY(low_compare(&x->low, &y->low, w, &c));
		both.low = c >= 0 ? x->low : y->low;
		TRY(high_compare(&x->high, &y->high, w, &c));
		both.high = c <= 0 ? x->high : y->high;
		TRY(bounds_meet(&both.low, &both.high, w, &meets));
		if (meets) {
			TRY(interval_settle(&both, w));
			ret->items[ret->count++] = both;
		}
		i += c <= 0;
		j += c >= 0;
	}
	return STATUS_OK;
}

/* Appends an interval that does not begin before the last one does. */
static enum status
set_append(struct value_set *set, const struct value_interval *next, struct index_work *w)
{
	struct value_interval *last = set->count ? &set->items[set->count - 1] : NULL;
	bool meets = false;
	int c;

	if (last)
		TRY(bounds_meet(&next->low, &last->high, w, &meets));
	if (!meets) {
		set->items[set->count++] = *next;
		return STATUS_OK;
	}
	TRY(high_compare(&last->high, &next->high, w, &c));
	if (c < 0)
		last->high = next->high;
	return interval_settle(last, w);
}

static enum status
set_unite(const struct value_set *a, const struct value_set *b, struct index_work *w,
	  struct value_set *ret)
{
	size_t i = 0, j = 0;

	TRY(set_new(w, a->count + b->count, ret));
	while (i < a->count || j < b->count) {
		int c = i == a->count ? 1 : -1;

		TRY(index_count(w, 1));
		if (i < a->count && j < b->count)
			TRY(low_compare(&a->items[i].low, &b->items[j].low, w, &c));
		TRY(set_append(ret, c <= 0 ? &a->items[i++] : &b->items[j++], w));
	}
	set_span(ret);
	return STATUS_OK;
}

/* The union of `count` sets, halves first, so that many small ones cost n log n. */
static enum status
sets_unite(const struct value_set *sets, size_t count, struct index_work *w, struct value_set *ret)
{
	struct value_set a, b;

	if (count == 0)
		return set_new(w, 0, ret);
	if (count == 1) {
		*ret = sets[0];
		return STATUS_OK;
	}
	TRY(sets_unite(sets, count / 2, w, &a));
	TRY(sets_unite(sets + count / 2, count - count / 2, w, &b));
	return set_unite(&a, &b, w, ret);
}

/* ---- One condition ---- */

/* The values of a list, each by itself; arrays too, of which one element may be meant. */
static enum status
set_of_list(const struct normal_node *n, bool with_arrays, struct index_work *w,
	    struct value_set *ret)
{
	struct json_value *items;
	struct value_set *sets;
	size_t count;

	TRY(json_value_items(&n->arg, w->arena, &items, &count, NULL));
	if (count > VALUE_INTERVALS)
		return value_set_all(w, ret);
	sets = arena_alloc(w->arena, (count + 1) * sizeof(*sets));
	if (!sets)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		if (items[i].kind == JSON_ARRAY_BEGIN)
			TRY(set_new(w, 0, &sets[i]));
		else
			TRY(set_point(items[i].text, w, &sets[i]));
	}
	if (with_arrays)
		TRY(set_arrays(w, &sets[count++]));
	return sets_unite(sets, count, w, ret);
}

static enum status
set_of_type(struct str type, struct index_work *w, struct value_set *ret)
{
	static const struct {
		const char *type, *low, *high;
		bool low_exclusive;
	} types[] = {
		{ "null", "null", "false", false }, { "boolean", "false", "true", false },
		{ "number", "true", "\"\"", true }, { "string", "\"\"", "[]", false },
		{ "array", "[]", "{}", false },     { "object", "{}", NULL, false },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!str_eq(type, str_from_cstr(types[i].type)))
			continue;
		TRY(set_between(types[i].low, types[i].low_exclusive, types[i].high, w, ret));
		/* No value lies between true and the first number, which is no bound. */
		if (i == 1)
			ret->items[0].high.exclusive = false;
		return STATUS_OK;
	}
	return value_set_all(w, ret);
}

/* All values but one. */
static enum status
set_but(struct str text, struct index_work *w, struct value_set *ret)
{
	TRY(set_new(w, 2, ret));
	ret->count = 2;
	TRY(field_bound_make(text, true, w, &ret->items[0].high));
	ret->items[1].low = ret->items[0].high;
	return STATUS_OK;
}

static enum status
set_of_comparison(const struct normal_node *n, struct index_work *w, struct value_set *ret)
{
	struct value_interval *i;

	TRY(value_set_all(w, ret));
	i = &ret->items[0];
	if (n->op == NORMAL_GT || n->op == NORMAL_GTE)
		return field_bound_make(n->arg.text, n->op == NORMAL_GT, w, &i->low);
	return field_bound_make(n->arg.text, n->op == NORMAL_LT, w, &i->high);
}

static enum status
set_of_prefix(const struct normal_node *n, struct index_work *w, struct value_set *ret)
{
	struct str end;

	TRY(value_set_all(w, ret));
	TRY(field_prefix_end(n, w, &end));
	TRY(field_bound_make(n->arg.text, false, w, &ret->items[0].low));
	return field_bound_make(end, false, w, &ret->items[0].high);
}

static enum status
set_of_condition(const struct normal_node *n, struct index_work *w, struct value_set *ret)
{
	if (n->negated)
		return value_set_all(w, ret);
	switch (n->op) {
	case NORMAL_EQ:
		return set_point(n->arg.text, w, ret);
	case NORMAL_NE:
		return set_but(n->arg.text, w, ret);
	case NORMAL_LT:
	case NORMAL_LTE:
	case NORMAL_GT:
	case NORMAL_GTE:
		return set_of_comparison(n, w, ret);
	case NORMAL_BEGINS_WITH:
		return set_of_prefix(n, w, ret);
	case NORMAL_IN:
		return set_of_list(n, true, w, ret);
	case NORMAL_TYPE:
		return set_of_type(n->arg.string, w, ret);
	case NORMAL_REGEX:
		return set_of_type(STR("string"), w, ret);
	case NORMAL_MOD:
		return set_of_type(STR("number"), w, ret);
	case NORMAL_SIZE:
	case NORMAL_ALL:
	case NORMAL_ELEM_MATCH:
	case NORMAL_ALL_MATCH:
		return set_arrays(w, ret);
	case NORMAL_KEY_MAP_MATCH:
		return set_of_type(STR("object"), w, ret);
	case NORMAL_NIN:
	case NORMAL_EXISTS:
		break;
	}
	return value_set_all(w, ret);
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
set_of_any(const struct normal_node *n, const struct normal_path *path, struct index_work *w,
	   struct value_set *ret)
{
	size_t count = nodes_count(n->first);
	struct value_set *sets;

	/* An empty $or holds for all documents. */
	if (count == 0 || count > VALUE_INTERVALS)
		return value_set_all(w, ret);
	sets = arena_alloc(w->arena, (count + 1) * sizeof(*sets));
	if (!sets)
		return STATUS_LIMIT;
	count = 0;
	for (const struct normal_node *i = n->first; i; i = i->next)
		TRY(value_set_read(i, path, w, &sets[count++]));
	return sets_unite(sets, count, w, ret);
}

static enum status
set_of_every(const struct normal_node *n, const struct normal_path *path, struct index_work *w,
	     struct value_set *ret)
{
	TRY(value_set_all(w, ret));
	for (const struct normal_node *i = n->first; i; i = i->next) {
		struct value_set one, before = *ret;

		TRY(value_set_read(i, path, w, &one));
		if (value_set_is_all(&one))
			continue;
		TRY(set_intersect(&before, &one, w, ret));
	}
	return STATUS_OK;
}

enum status
value_set_read(const struct normal_node *n, const struct normal_path *path, struct index_work *w,
	       struct value_set *ret)
{
	TRY(index_count(w, 1));
	if (n->kind == NORMAL_AND)
		return set_of_every(n, path, w, ret);
	if (n->kind == NORMAL_OR)
		return set_of_any(n, path, w, ret);
	if (n->kind == NORMAL_FIELD && normal_path_eq(&n->path, path) &&
	    condition_is_told_by_collation(n))
		return set_of_condition(n, w, ret);
	return value_set_all(w, ret);
}

/* ---- Which set holds another ---- */

enum status
value_set_mark(const struct value_set *outer, const struct value_set *inner, struct index_work *w,
	       bool *ret)
{
	size_t at = 0;

	for (size_t i = 0; i < inner->count; i++) {
		bool meets = false;
		int low = 0, high = 0;

		/* The first interval that does not end in front of this one. */
		for (; at < outer->count; at++) {
			TRY(index_count(w, 1));
			TRY(bounds_meet(&inner->items[i].low, &outer->items[at].high, w, &meets));
			if (meets)
				break;
		}
		ret[i] = false;
		if (at == outer->count)
			continue;
		TRY(low_compare(&outer->items[at].low, &inner->items[i].low, w, &low));
		TRY(high_compare(&outer->items[at].high, &inner->items[i].high, w, &high));
		ret[i] = low <= 0 && high >= 0;
	}
	return STATUS_OK;
}

enum status
value_set_contains(const struct value_set *outer, const struct value_set *inner,
		   struct index_work *w, bool *ret)
{
	bool *marks = arena_alloc(w->arena, (inner->count + 1) * sizeof(*marks));

	if (!marks)
		return STATUS_LIMIT;
	TRY(value_set_mark(outer, inner, w, marks));
	*ret = true;
	for (size_t i = 0; i < inner->count; i++)
		*ret = *ret && marks[i];
	return STATUS_OK;
}

enum status
value_set_intersect(const struct value_set *a, const struct value_set *b, struct index_work *w,
		    struct value_set *ret)
{
	return set_intersect(a, b, w, ret);
}

/* ---- Values that are known to match ---- */

static enum status
true_of_condition(const struct normal_node *n, struct index_work *w, struct value_set *ret,
		  bool *ret_known)
{
	*ret_known = !n->negated && !normal_path_is(&n->path, "_id");
	if (*ret_known && n->op <= NORMAL_GT)
		return set_of_condition(n, w, ret);
	if (*ret_known && (n->op == NORMAL_IN || n->op == NORMAL_TYPE)) {
		TRY(n->op == NORMAL_IN ? set_of_list(n, false, w, ret)
				       : set_of_condition(n, w, ret));
		*ret_known = !value_set_is_all(ret);
		return STATUS_OK;
	}
	*ret_known = *ret_known && n->op == NORMAL_EXISTS && n->exists;
	return *ret_known ? value_set_all(w, ret) : set_new(w, 0, ret);
}

/* A union of too many intervals would become one that has values between them, too. */
static enum status
true_of_any(const struct normal_node *n, const struct normal_path *path, struct index_work *w,
	    struct value_set *ret, bool *ret_known)
{
	size_t count = nodes_count(n->first), intervals = 0;
	struct value_set *sets = arena_alloc(w->arena, (count + 1) * sizeof(*sets));

	if (!sets)
		return STATUS_LIMIT;
	*ret_known = count > 0;
	count = 0;
	for (const struct normal_node *i = n->first; i && *ret_known; i = i->next) {
		TRY(value_set_of_true(i, path, w, &sets[count], ret_known));
		intervals += *ret_known ? sets[count++].count : 0;
	}
	*ret_known = *ret_known && intervals <= VALUE_INTERVALS;
	return *ret_known ? sets_unite(sets, count, w, ret) : set_new(w, 0, ret);
}

static enum status
true_of_every(const struct normal_node *n, const struct normal_path *path, struct index_work *w,
	      struct value_set *ret, bool *ret_known)
{
	TRY(value_set_all(w, ret));
	*ret_known = n->first != NULL;
	for (const struct normal_node *i = n->first; i && *ret_known; i = i->next) {
		struct value_set one, before = *ret;

		TRY(value_set_of_true(i, path, w, &one, ret_known));
		if (*ret_known)
			TRY(set_intersect(&before, &one, w, ret));
	}
	return STATUS_OK;
}

enum status
value_set_of_true(const struct normal_node *n, const struct normal_path *path, struct index_work *w,
		  struct value_set *ret, bool *ret_known)
{
	TRY(index_count(w, 1));
	if (n->kind == NORMAL_FIELD && normal_path_eq(&n->path, path))
		return true_of_condition(n, w, ret, ret_known);
	if (n->kind == NORMAL_OR)
		return true_of_any(n, path, w, ret, ret_known);
	if (n->kind == NORMAL_AND)
		return true_of_every(n, path, w, ret, ret_known);
	*ret_known = false;
	return set_new(w, 0, ret);
}
