#include "door/couch/query/ranges.h"

#include <stdlib.h>

#include "doc/json.h"
#include "index/collate.h"

bool
field_is_indexable(const struct normal_node *n)
{
	return !n->negated && (n->op == NORMAL_LT || n->op == NORMAL_LTE || n->op == NORMAL_EQ ||
			       n->op == NORMAL_GTE || n->op == NORMAL_GT ||
			       n->op == NORMAL_EXISTS || n->op == NORMAL_BEGINS_WITH);
}

/* ---- Narrowing one range ---- */

enum status
field_bound_make(struct str text, bool exclusive, struct index_work *w, struct field_bound *ret)
{
	*ret = (struct field_bound){ .given = true, .exclusive = exclusive, .text = text };
	return leaf_parse(text, w->arena, &ret->value, NULL);
}

/* `sign` is 1 for a lower bound, which can only rise, and -1 for an upper one. */
static enum status
bound_tighten(struct field_bound *bound, const struct field_bound *other, int sign,
	      struct index_work *w)
{
	int c = 1;

	if (bound->given) {
		TRY(collate_compare(&other->value, &bound->value, w, &c));
		c *= sign;
	}
	if (c > 0)
		*bound = *other;
	else if (c == 0)
		bound->exclusive = bound->exclusive || other->exclusive;
	return STATUS_OK;
}

static enum status
range_settle(struct field_range *r, struct index_work *w)
{
	int c = -1;

	if (r->low.given && r->high.given)
		TRY(collate_compare(&r->low.value, &r->high.value, w, &c));
	r->empty = r->empty || c > 0 || (c == 0 && (r->low.exclusive || r->high.exclusive));
	r->equal = c == 0 && !r->empty;
	return STATUS_OK;
}

enum status
field_prefix_end(const struct normal_node *n, struct index_work *w, struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(SIZE_MAX);

	buf_append(&text, n->arg.text.ptr, n->arg.text.len - 1);
	buf_append_cstr(&text, "\xef\xbf\xbf\""); /* U+FFFF, which the collation puts last */
	TRY(buf_status(&text));
	*ret = arena_dup(w->arena, buf_str(&text));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
range_narrow(const struct normal_node *n, struct index_work *w, struct field_range *r)
{
	bool lower = n->op == NORMAL_GT || n->op == NORMAL_GTE || n->op == NORMAL_EQ ||
		     n->op == NORMAL_BEGINS_WITH;
	bool upper = n->op == NORMAL_LT || n->op == NORMAL_LTE || n->op == NORMAL_EQ ||
		     n->op == NORMAL_BEGINS_WITH;
	struct field_bound bound;
	struct str end = n->arg.text;

	if (lower) {
		TRY(field_bound_make(n->arg.text, n->op == NORMAL_GT, w, &bound));
		TRY(bound_tighten(&r->low, &bound, 1, w));
	}
	if (n->op == NORMAL_BEGINS_WITH)
		TRY(field_prefix_end(n, w, &end));
	if (upper) {
		TRY(field_bound_make(end, n->op == NORMAL_LT, w, &bound));
		TRY(bound_tighten(&r->high, &bound, -1, w));
	}
	return range_settle(r, w);
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
	const struct normal_node **grown;

	if (n->kind == NORMAL_AND) {
		for (const struct normal_node *i = n->first; i; i = i->next)
			TRY(ranges_collect(i, arena, c));
	}
	if (n->kind != NORMAL_FIELD || !n->path.count || !field_is_indexable(n))
		return STATUS_OK;
	grown = arena_grow(arena, c->nodes, c->count, &c->cap, sizeof(*grown));
	if (!grown)
		return STATUS_LIMIT;
	c->nodes = grown;
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
field_ranges_read(const struct normal_node *n, struct index_work *w, struct field_ranges *ret)
{
	struct collecting c = { 0 };
	size_t kept = 0;

	TRY(ranges_collect(n, w->arena, &c));
	*ret = (struct field_ranges){
		.items = arena_zalloc(w->arena, (c.count + 1) * sizeof(*ret->items)),
		.count = c.count,
	};
	if (!ret->items)
		return STATUS_LIMIT;
	for (size_t i = 0; i < c.count; i++)
		ret->items[i].path = &c.nodes[i]->path;
	qsort(ret->items, ret->count, sizeof(*ret->items), ranges_compare);
	for (size_t i = 0; i < ret->count; i++) {
		if (i == 0 || !normal_path_eq(ret->items[i].path, ret->items[kept - 1].path))
			ret->items[kept++] = ret->items[i];
	}
	ret->count = kept;
	for (size_t i = 0; i < c.count; i++) {
		struct field_range *r = ranges_get(ret, &c.nodes[i]->path);

		TRY(range_narrow(c.nodes[i], w, r));
		ret->empty = ret->empty || r->empty;
	}
	return STATUS_OK;
}
