/* $push with $position, $sort and $slice. */
#include "mql/mql_int.h"
#include "mql/sort_values.h"
#include "mql/update/update_int.h"

/* ---- Compiling ---- */

static enum status
push_read_integer(struct mql *q, const struct bson_element *e, int64_t *ret)
{
	if (bson_to_int64(&e->value, ret))
		return STATUS_OK;
	if (mql_is(e->name, "$slice"))
		return mql_fail(q, MQL_BAD_VALUE,
				"The value for $slice must be an integer value but was given type: "
				"%s",
				mql_type_name(&e->value));
	return mql_fail(q, MQL_BAD_VALUE,
			"The value for $position must be an integer value, not of type: %s",
			mql_type_name(&e->value));
}

/* 1 or -1, of any type of number. */
static bool
push_read_direction(const struct bson_value *v, bool *ret_descending)
{
	int64_t n;

	if (!bson_to_int64(v, &n) || (n != 1 && n != -1))
		return false;
	*ret_descending = n < 0;
	return true;
}

static enum status
push_check_path(struct mql *q, struct str path)
{
	struct str rest = path;
	bool more;

	if (!path.len)
		return mql_fail(q, MQL_BAD_VALUE, "The $sort field cannot be empty");
	do {
		TRY(step_count(1));
		more = memchr(rest.ptr, '.', rest.len) != NULL;
		if (!str_cut(&rest, '.').len)
			return mql_fail(q, MQL_BAD_VALUE,
					"The $sort field is a dotted field but has an empty part: "
					"%.*s",
					STR_ARG(path));
	} while (more);
	return STATUS_OK;
}

static enum status
push_compile_sort(struct mql *q, struct mql_push *push, const struct bson_value *v)
{
	struct mql_push_key *keys;
	struct bson_iter i;
	struct bson_element e;

	/* Each has keys of its own, and compile_each() has refused a second one. */
	assert(!push->sort && !push->key_count);
	push->sort = true;
	if (push_read_direction(v, &push->descending))
		return STATUS_OK;
	if (bson_is_number(v))
		return mql_fail(q, MQL_BAD_VALUE, "The $sort element value must be either 1 or -1");
	if (v->type != BSON_DOCUMENT)
		return mql_fail(q, MQL_BAD_VALUE,
				"The $sort is invalid: use 1/-1 to sort the whole element, or "
				"{field:1/-1} to sort embedded fields");
	if (bson_is_empty(bson_text(v)))
		return mql_fail(q, MQL_BAD_VALUE,
				"The $sort pattern is empty when it should be a set of fields.");
	keys = arena_zalloc(q->arena, bson_count(bson_text(v)) * sizeof(*keys));
	if (!keys)
		return mql_full(q);
	for (bson_iter_begin(&i, bson_text(v)); bson_iter_read(&i, &e); push->key_count++) {
		struct mql_push_key *key = &keys[push->key_count];

		TRY(push_check_path(q, e.name));
		key->path = e.name;
		if (!push_read_direction(&e.value, &key->descending))
			return mql_fail(q, MQL_BAD_VALUE,
					"The $sort element value must be either 1 or -1");
	}
	push->keys = keys;
	return STATUS_OK;
}

enum status
mql_push_compile(struct mql *q, struct mql_modifier *m, const struct bson_element *e, bool *ret)
{
	bool position = mql_is(e->name, "$position"), slice = mql_is(e->name, "$slice");

	*ret = position || slice || mql_is(e->name, "$sort");
	if (!*ret)
		return STATUS_OK;
	if (!m->push) {
		m->push = arena_zalloc(q->arena, sizeof(*m->push));
		if (!m->push)
			return mql_full(q);
		m->push->position = m->push->slice = INT64_MAX;
	}
	if (position)
		return push_read_integer(q, e, &m->push->position);
	if (slice)
		return push_read_integer(q, e, &m->push->slice);
	return push_compile_sort(q, m->push, &e->value);
}

/* ---- Running ---- */

struct push_item {
	struct mql_tree *node;
	struct bson_value value;       /* the element; compared where the push names no keys */
	const struct bson_value *keys; /* one for each key; null where a path leads nowhere */
};

struct push_order {
	const struct mql_push *push;
	const struct bson_texts *texts;
};

static int
push_compare(const void *a, const void *b, const void *arg)
{
	const struct push_item *left = a, *right = b;
	const struct push_order *order = arg;
	const struct mql_push *push = order->push;

	if (!push->keys) {
		int by = bson_compare_values(&left->value, &right->value, order->texts);

		return push->descending ? -by : by;
	}
	for (size_t i = 0; i < push->key_count; i++) {
		int by = bson_compare_values(&left->keys[i], &right->keys[i], order->texts);

		if (by)
			return push->keys[i].descending ? -by : by;
	}
	return 0;
}

static enum status
push_read_keys(struct mql *q, const struct mql_push *push, struct push_item *item)
{
	struct bson_value v, *keys;

	TRY(mql_tree_value(q, item->node, &v));
	TRY(bson_is_container(&v) ? step_count_bytes(bson_text(&v).len) : step_count(1));
	item->value = v;
	if (!push->keys)
		return STATUS_OK;
	keys = arena_alloc(q->arena, push->key_count * sizeof(*keys));
	if (!keys)
		return mql_full(q);
	item->keys = keys;
	for (size_t i = 0; i < push->key_count; i++) {
		TRY(step_count_bytes(bson_is_container(&v) ? bson_text(&v).len : 0));
		if (v.type != BSON_DOCUMENT ||
		    !bson_find_path(bson_text(&v), push->keys[i].path, &keys[i]))
			keys[i] = BSON_OF_NULL;
	}
	return STATUS_OK;
}

static enum status
push_sort(struct mql *q, const struct mql_push *push, struct mql_tree **nodes, size_t count)
{
	const struct push_order order = { push, q->texts };
	struct push_item *items = arena_zalloc(q->arena, count * sizeof(*items));
	const void **sorted = arena_alloc(q->arena, count * sizeof(*sorted));

	if (!items || !sorted)
		return mql_full(q);
	for (size_t i = 0; i < count; i++) {
		items[i].node = nodes[i];
		TRY(push_read_keys(q, push, &items[i]));
		sorted[i] = &items[i];
	}
	TRY(mql_sort(q, sorted, count, push_compare, &order));
	for (size_t i = 0; i < count; i++)
		nodes[i] = ((const struct push_item *)sorted[i])->node;
	return STATUS_OK;
}

/* Where in an array of `count` elements the new ones go. */
static size_t
push_place(int64_t position, size_t count)
{
	if (position >= 0)
		return (uint64_t)position < count ? (size_t)position : count;
	return position < -(int64_t)count ? 0 : count - (size_t)-position;
}

/* Writes the nodes of the array's elements in their new order, the new elements among them. */
static enum status
push_insert(struct mql *q, const struct mql_modifier *m, const struct mql_tree *array,
	    struct mql_tree **ret)
{
	struct mql_tree added = { .value = BSON_OF_ARRAY(bson_text(&m->value)) };
	size_t place = push_place(m->push->position, array->count), at = 0;
	struct mql_tree *n = array->first;

	TRY(mql_tree_open(q, &added));
	for (; at < place; n = n->next)
		ret[at++] = n;
	for (struct mql_tree *a = added.first; a; a = a->next)
		ret[at++] = a;
	for (; n; n = n->next)
		ret[at++] = n;
	assert(at == array->count + added.count);
	return step_count_bytes(at);
}

/* The elements from `*ret_from` on, `*ret_count` of them, stay. */
static void
push_slice(int64_t slice, size_t count, size_t *ret_from, size_t *ret_count)
{
	*ret_from = slice < 0 ? push_place(slice, count) : 0;
	*ret_count = slice < 0 ? count - *ret_from : push_place(slice, count);
}

enum status
mql_push_run(struct mql *q, const struct mql_modifier *m, struct mql_tree *array,
	     size_t *ret_appended, bool *ret_changed)
{
	size_t old = array->count, count = old + bson_count(bson_text(&m->value)), from;
	struct mql_tree **nodes = arena_alloc(q->arena, count * sizeof(*nodes));
	const struct mql_tree *n = array->first;
	struct bson_value before, after;
	size_t same = 0;

	if (!nodes)
		return mql_full(q);
	TRY(step_count_bytes(count));
	TRY(push_insert(q, m, array, nodes));
	if (m->push->sort)
		TRY(push_sort(q, m->push, nodes, count));
	push_slice(m->push->slice, count, &from, &count);
	assert(from + count <= old + bson_count(bson_text(&m->value)));
	nodes += from;
	while (n && same < count && nodes[same] == n) {
		n = n->next;
		same++;
	}
	if (same == old) {
		mql_tree_link(array, nodes, count);
		*ret_appended = count - old;
		*ret_changed = count > old;
		return STATUS_OK;
	}
	/* Before the nodes are linked otherwise: the value is written from them. */
	TRY(mql_tree_value(q, array, &before));
	mql_tree_link(array, nodes, count);
	TRY(mql_tree_value(q, array, &after));
	*ret_changed = !str_eq(bson_text(&before), bson_text(&after));
	return step_count_bytes(bson_text(&after).len);
}
