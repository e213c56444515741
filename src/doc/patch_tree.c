#include "doc/patch_int.h"

#include <assert.h>

#include "loop/step.h"

enum {
	CHILDREN_SPARE = 4,
	PATCH_WORK_A_STEP = 4, /* leaves or members that are looked at or moved in one step */
	PATCH_GROUP_STEPS = 2,
};

void
patch_tree_init(struct patch_tree *t, struct arena *arena, struct err *err)
{
	*t = (struct patch_tree){
		.arena = arena,
		.err = err,
		.path = BUF_INIT(KV_LIMIT_KEY_BYTES),
	};
}

struct patch_node
patch_run(const struct kv_pair *leaves, size_t count)
{
	if (!count)
		return (struct patch_node){ .kind = PATCH_OBJECT };
	return (struct patch_node){ .kind = PATCH_RUN, .leaves = leaves, .count = count };
}

enum status
patch_work(struct patch_tree *t, size_t steps)
{
	t->steps += steps;
	if (t->steps <= DOC_PATCH_STEPS)
		return step_count((uint32_t)(steps / PATCH_WORK_A_STEP));
	return err_set(t->err, STATUS_LIMIT, "the patch takes more than %d steps", DOC_PATCH_STEPS);
}

enum status
patch_fail_memory(struct patch_tree *t)
{
	return err_set(t->err, STATUS_LIMIT,
		       "the patch exceeds the memory limit of a request, %zu bytes",
		       arena_limit_bytes(t->arena));
}

/* The part of a leaf's key that lies below the value. */
static struct str
run_tail(const struct patch_node *run, size_t leaf)
{
	return str_skip(run->leaves[leaf].key, run->skip);
}

/* What the value of a leaf without a path is: () is an empty array, (()) an empty object. */
static enum status
leaf_value_type(struct str value, enum patch_type *ret)
{
	struct tuple_reader r = tuple_reader(value);
	struct tuple_reader inside;
	struct tuple_elem e;

	*ret = PATCH_TYPE_SCALAR;
	TRY(tuple_next_elem(&r, &e));
	if (e.kind != TUPLE_NESTED)
		return STATUS_OK;
	inside = tuple_reader_nested(&e);
	if (!inside.rest.len) {
		*ret = PATCH_TYPE_ARRAY;
		return STATUS_OK;
	}
	TRY(tuple_next_elem(&inside, &e));
	if (e.kind == TUPLE_NESTED && !inside.rest.len)
		*ret = PATCH_TYPE_OBJECT;
	return STATUS_OK;
}

enum status
patch_type(const struct patch_node *node, enum patch_type *ret)
{
	struct tuple_reader r;
	struct tuple_elem e;

	if (node->kind != PATCH_RUN) {
		*ret = node->kind == PATCH_OBJECT ? PATCH_TYPE_OBJECT : PATCH_TYPE_ARRAY;
		return STATUS_OK;
	}
	r = tuple_reader(run_tail(node, 0));
	if (!r.rest.len)
		return leaf_value_type(node->leaves[0].value, ret);
	if (tuple_next(&r, &e) != STATUS_OK)
		return STATUS_CORRUPT;
	if (e.kind == TUPLE_STRING)
		*ret = PATCH_TYPE_OBJECT;
	else if (e.kind == TUPLE_INT)
		*ret = PATCH_TYPE_ARRAY;
	else
		*ret = PATCH_TYPE_SCALAR; /* a split string */
	return STATUS_OK;
}

bool
patch_is_null(const struct patch_node *node)
{
	struct tuple_reader r;
	struct tuple_elem e;

	if (node->kind != PATCH_RUN || run_tail(node, 0).len)
		return false;
	r = tuple_reader(node->leaves[0].value);
	return tuple_next(&r, &e) == STATUS_OK && e.kind == TUPLE_NULL;
}

/* ---- Opening ---- */

/* The leaves from `at` on that share the next element, which is returned. */
static enum status
run_next_group(const struct patch_node *run, size_t at, struct tuple_elem *ret, size_t *ret_end)
{
	struct tuple_reader r = tuple_reader(run_tail(run, at));
	struct str name;

	if (tuple_next(&r, ret) != STATUS_OK)
		return STATUS_CORRUPT;
	name = ret->encoding;
	while (++at < run->count) {
		struct str tail = run_tail(run, at);

		/* A NUL with FF behind it does not end a name, but belongs to a longer one. */
		if (!str_starts_with(tail, name) ||
		    (tail.len > name.len && (uint8_t)tail.ptr[name.len] == 0xff))
			break;
	}
	*ret_end = at;
	return STATUS_OK;
}

static enum status
run_count_groups(const struct patch_node *run, size_t *ret)
{
	struct tuple_elem e;

	*ret = 0;
	for (size_t at = 0; at < run->count; ++*ret) {
		TRY(run_next_group(run, at, &e, &at));
		TRY(step_count(1));
	}
	return STATUS_OK;
}

enum status
patch_open(struct patch_tree *t, struct patch_node *node)
{
	struct patch_node run = *node;
	struct patch_node open = { .kind = PATCH_OBJECT };
	enum patch_type type;

	if (node->kind != PATCH_RUN)
		return STATUS_OK;
	TRY(patch_type(&run, &type));
	TRY(patch_work(t, run.count));
	if (type == PATCH_TYPE_ARRAY)
		open.kind = PATCH_ARRAY;
	if (!run_tail(&run, 0).len) {
		*node = open;
		return STATUS_OK;
	}
	TRY(run_count_groups(&run, &open.cap));
	open.cap += CHILDREN_SPARE;
	open.children = arena_alloc(t->arena, open.cap * sizeof(*open.children));
	if (!open.children)
		return patch_fail_memory(t);
	for (size_t at = 0; at < run.count;) {
		struct patch_child *child = &open.children[open.count];
		struct tuple_elem e;
		size_t end;

		TRY(run_next_group(&run, at, &e, &end));
		TRY(step_count(PATCH_GROUP_STEPS + (uint32_t)((end - at) / PATCH_WORK_A_STEP)));
		if (e.kind != (type == PATCH_TYPE_ARRAY ? TUPLE_INT : TUPLE_STRING) ||
		    (e.kind == TUPLE_INT && (e.negative || e.magnitude != open.count)))
			return STATUS_CORRUPT;
		child->name = e.encoding;
		child->node = (struct patch_node){
			.kind = PATCH_RUN,
			.leaves = run.leaves + at,
			.count = end - at,
			.skip = run.skip + e.encoding.len,
		};
		open.count++;
		at = end;
	}
	*node = open;
	return STATUS_OK;
}

/* ---- Children ---- */

bool
patch_find(const struct patch_node *object, struct str name, size_t *ret)
{
	size_t lo = 0;
	size_t hi = object->count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		int c = str_cmp(object->children[middle].name, name);

		if (c == 0) {
			*ret = middle;
			return true;
		}
		if (c < 0)
			lo = middle + 1;
		else
			hi = middle;
	}
	*ret = lo;
	return false;
}

enum status
patch_insert(struct patch_tree *t, struct patch_node *container, size_t at, struct str name,
	     struct patch_node value)
{
	struct patch_child *child;

	assert(container->kind != PATCH_RUN && at <= container->count);
	if (container->count == container->cap) {
		size_t cap = 2 * container->cap + CHILDREN_SPARE;
		struct patch_child *grown = arena_alloc(t->arena, cap * sizeof(*grown));

		if (!grown)
			return patch_fail_memory(t);
		if (container->count)
			memcpy(grown, container->children, container->count * sizeof(*grown));
		container->children = grown;
		container->cap = cap;
	}
	TRY(patch_work(t, container->count - at + 1));
	child = &container->children[at];
	memmove(child + 1, child, (container->count - at) * sizeof(*child));
	*child = (struct patch_child){ name, value };
	container->count++;
	return STATUS_OK;
}

enum status
patch_remove(struct patch_tree *t, struct patch_node *container, size_t at)
{
	struct patch_child *child = &container->children[at];

	assert(container->kind != PATCH_RUN && at < container->count);
	TRY(patch_work(t, container->count - at));
	container->count--;
	memmove(child, child + 1, (container->count - at) * sizeof(*child));
	return STATUS_OK;
}

/* ---- Back to leaves ---- */

/*
 * The recursion is bounded: open containers lie inside each other no deeper than JSON_DEPTH_LIMIT,
 * because pointers and patches do not go deeper, and a value is flattened before it is put
 * elsewhere.
 */
static size_t
tree_count_leaves(const struct patch_node *node)
{
	size_t n = 0;

	if (node->kind == PATCH_RUN)
		return node->count;
	for (size_t i = 0; i < node->count; i++)
		n += tree_count_leaves(&node->children[i].node);
	return n ? n : 1;
}

static enum status
tree_fail_path(struct patch_tree *t)
{
	struct buf drawn = BUF_INIT(SIZE_MAX);

	doc_path_draw(buf_str(&t->path), &drawn);
	err_set(t->err, STATUS_PATH_TOO_LONG, "the patch makes a key longer than %d bytes at %.*s",
		KV_LIMIT_KEY_BYTES, STR_ARG(buf_str(&drawn)));
	buf_release(&drawn);
	return STATUS_PATH_TOO_LONG;
}

/* An element of a path takes at least a byte, so only the elements of long paths are counted. */
static enum status
tree_check_depth(struct patch_tree *t, struct str key)
{
	struct tuple_reader r = tuple_reader(key);
	struct tuple_elem e;
	size_t depth = 0;

	if (key.len <= JSON_DEPTH_LIMIT)
		return STATUS_OK;
	while (r.rest.len) {
		TRY(tuple_next_elem(&r, &e));
		if (e.kind == TUPLE_NULL)
			break;
		depth++;
	}
	if (depth <= JSON_DEPTH_LIMIT)
		return STATUS_OK;
	return err_set(t->err, STATUS_JSON_DEPTH, "the patch nests values more than %d deep",
		       JSON_DEPTH_LIMIT);
}

/* The leaves of a run at the current path. */
static enum status
tree_write_run(struct patch_tree *t, const struct patch_node *run, struct kv_pair *to)
{
	struct str path = buf_str(&t->path);

	if (run->skip == path.len && str_starts_with(run->leaves[0].key, path)) {
		memcpy(to, run->leaves, run->count * sizeof(*to));
		return STATUS_OK;
	}
	for (size_t i = 0; i < run->count; i++) {
		struct str tail = run_tail(run, i);
		char *key;

		TRY(step_count(2));
		if (path.len + tail.len > KV_LIMIT_KEY_BYTES)
			return tree_fail_path(t);
		key = arena_bytes(t->arena, path.len + tail.len);
		if (!key)
			return patch_fail_memory(t);
		if (path.len)
			memcpy(key, path.ptr, path.len);
		if (tail.len)
			memcpy(key + path.len, tail.ptr, tail.len);
		to[i] = (struct kv_pair){ str_of(key, path.len + tail.len), run->leaves[i].value };
		TRY(tree_check_depth(t, to[i].key));
	}
	return STATUS_OK;
}

static enum status
tree_write_empty(struct patch_tree *t, bool object, struct kv_pair *to)
{
	AUTO(buf_release) struct buf value = BUF_INIT(16);

	tuple_open(&value);
	if (object) {
		tuple_open(&value);
		tuple_close(&value);
	}
	tuple_close(&value);
	if (buf_copy(&t->path, t->arena, &to->key) != STATUS_OK ||
	    buf_copy(&value, t->arena, &to->value) != STATUS_OK)
		return patch_fail_memory(t);
	return tree_check_depth(t, to->key);
}

/* Appends the leaves of `node`, which is at the current path. */
static enum status
tree_write_leaves(struct patch_tree *t, const struct patch_node *node, struct kv_pair **to)
{
	size_t path_bytes = t->path.len;

	if (node->kind == PATCH_RUN) {
		TRY(tree_write_run(t, node, *to));
		*to += node->count;
		return STATUS_OK;
	}
	if (!node->count)
		return tree_write_empty(t, node->kind == PATCH_OBJECT, (*to)++);
	for (size_t i = 0; i < node->count; i++) {
		TRY(step_count(2));
		t->path.len = path_bytes;
		if (node->kind == PATCH_OBJECT)
			buf_append_str(&t->path, node->children[i].name);
		else
			tuple_put_u64(&t->path, i);
		if (buf_status(&t->path) == STATUS_LIMIT)
			return tree_fail_path(t);
		TRY(buf_status(&t->path));
		TRY(tree_write_leaves(t, &node->children[i].node, to));
	}
	t->path.len = path_bytes;
	return STATUS_OK;
}

enum status
patch_flatten(struct patch_tree *t, const struct patch_node *node, struct patch_node *ret)
{
	struct patch_node run = { .kind = PATCH_RUN };
	struct kv_pair *leaves;
	struct kv_pair *to;

	if (node->kind == PATCH_RUN) {
		*ret = *node;
		return STATUS_OK;
	}
	run.count = tree_count_leaves(node);
	TRY(patch_work(t, run.count));
	leaves = arena_alloc(t->arena, run.count * sizeof(*leaves));
	if (!leaves)
		return patch_fail_memory(t);
	buf_clear(&t->path);
	to = leaves;
	TRY(tree_write_leaves(t, node, &to));
	assert(to == leaves + run.count);
	run.leaves = leaves;
	*ret = run;
	return STATUS_OK;
}
