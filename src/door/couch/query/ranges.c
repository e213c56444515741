#include "door/couch/query/ranges.h"

#include "doc/json.h"
#include "loop/sort.h"

/* True for a condition that an index can use. */
static bool
field_is_indexable(const struct normal_node *n)
{
	return !n->negated && (n->op == NORMAL_LT || n->op == NORMAL_LTE || n->op == NORMAL_EQ ||
			       n->op == NORMAL_GTE || n->op == NORMAL_GT ||
			       n->op == NORMAL_EXISTS || n->op == NORMAL_BEGINS_WITH);
}

/* ---- Narrowing one range ---- */

enum status
field_bound_make(struct str text, bool exclusive, const struct value_order *o,
		 struct value_bound *ret)
{
	struct field_value *value = arena_alloc(o->w->arena, sizeof(*value));

	if (!value)
		return STATUS_LIMIT;
	value->text = text;
	*ret = (struct value_bound){ .value = &value->leaf, .exclusive = exclusive };
	return leaf_parse(text, o->w->arena, &value->leaf, NULL);
}

struct str
field_bound_text(const struct value_bound *bound)
{
	return ((const struct field_value *)bound->value)->text;
}

enum status
field_interval_of_prefix(const struct normal_node *n, const struct value_order *o,
			 struct value_interval *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT_OF(SIZE_MAX, arena_part(o->w->arena));
	struct str end;

	buf_append(&text, n->arg.text.ptr, n->arg.text.len - 1);
	buf_append_cstr(&text, "\xef\xbf\xbf\""); /* U+FFFF, which the collation puts last */
	TRY(buf_copy(&text, o->w->arena, &end));
	*ret = (struct value_interval){ 0 };
	TRY(field_bound_make(n->arg.text, false, o, &ret->low));
	return field_bound_make(end, false, o, &ret->high);
}

static enum status
range_narrow(const struct normal_node *n, const struct value_order *o, struct field_range *r,
	     bool *ret_empty)
{
	struct value_interval by = { 0 };

	if (n->op == NORMAL_BEGINS_WITH)
		TRY(field_interval_of_prefix(n, o, &by));
	if (n->op == NORMAL_GT || n->op == NORMAL_GTE || n->op == NORMAL_EQ)
		TRY(field_bound_make(n->arg.text, n->op == NORMAL_GT, o, &by.low));
	if (n->op == NORMAL_LT || n->op == NORMAL_LTE)
		TRY(field_bound_make(n->arg.text, n->op == NORMAL_LT, o, &by.high));
	if (n->op == NORMAL_EQ)
		by.high = by.low;
	TRY(value_interval_narrow(o, &r->values, &by));
	return value_interval_settle(o, &r->values, ret_empty);
}

/* ---- All fields ---- */

static int
path_compare(const struct normal_path *a, const struct normal_path *b)
{
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		int c = str_cmp(a->names[i], b->names[i]);

		if (c)
			return c;
	}
	return (a->count > b->count) - (a->count < b->count);
}

static int
ranges_compare(const void *a, const void *b)
{
	return path_compare(((const struct field_range *)a)->path,
			    ((const struct field_range *)b)->path);
}

struct collecting {
	const struct normal_node **nodes;
	size_t count;
	size_t cap;
};

static enum status
ranges_collect(const struct normal_node *n, struct arena *arena, struct collecting *c)
{
	if (n->kind == NORMAL_AND) {
		for (const struct normal_node *i = n->first; i; i = i->next)
			TRY(ranges_collect(i, arena, c));
	}
	if (n->kind != NORMAL_FIELD || !n->path.count || !field_is_indexable(n))
		return STATUS_OK;
	TRY(arena_room(arena, &c->nodes, c->count, &c->cap, sizeof(*c->nodes)));
	c->nodes[c->count++] = n;
	return STATUS_OK;
}

static struct field_range *
ranges_get(struct field_ranges *ranges, const struct normal_path *path)
{
	size_t lo = 0;
	size_t hi = ranges->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = path_compare(ranges->items[mid].path, path);

		if (c == 0)
			return &ranges->items[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct field_range *
field_ranges_find(const struct field_ranges *ranges, const struct normal_path *path)
{
	struct field_ranges all = *ranges;

	return ranges_get(&all, path);
}

enum status
field_ranges_read(const struct normal_node *n, const struct value_order *o,
		  struct field_ranges *ret)
{
	struct collecting c = { 0 };
	size_t kept = 0;

	TRY(ranges_collect(n, o->w->arena, &c));
	*ret = (struct field_ranges){
		.items = arena_zalloc(o->w->arena, (c.count + 1) * sizeof(*ret->items)),
		.count = c.count,
	};
	if (!ret->items)
		return STATUS_LIMIT;
	for (size_t i = 0; i < c.count; i++)
		ret->items[i].path = &c.nodes[i]->path;
	TRY(sort_items_by(ret->items, ret->count, sizeof(*ret->items), ranges_compare,
			  o->w->arena));
	for (size_t i = 0; i < ret->count; i++) {
		if (i == 0 || !normal_path_eq(ret->items[i].path, ret->items[kept - 1].path))
			ret->items[kept++] = ret->items[i];
	}
	ret->count = kept;
	for (size_t i = 0; i < c.count; i++) {
		struct field_range *r = ranges_get(ret, &c.nodes[i]->path);
		bool empty;

		TRY(range_narrow(c.nodes[i], o, r, &empty));
		ret->empty = ret->empty || empty;
	}
	return STATUS_OK;
}
