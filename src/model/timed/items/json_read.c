/* Reading documents: parts of those in leaves, all of those in a text. */
#include <assert.h>

#include "base/utf8.h"
#include "loop/sort.h"
#include "loop/step.h"
#include "model/timed/items/json_int.h"

/* A container, or a long text, whose pairs are read. */
struct open_node {
	struct jtree_node *node;
	size_t key_len;
	uint64_t expected; /* children, or bytes */
	char *text;        /* of a long one: its bytes */
	uint64_t pieces;
};

struct loading {
	struct timed_item *item;
	struct open_node *stack;
	size_t depth;
	struct buf key; /* of the innermost one; those around it have keys that it begins with */
};

/* ---- All that is below a node ---- */

static int
compare_ordinals(const void *a, const void *b)
{
	const struct jtree_node *const *x = a, *const *y = b;

	return ((*x)->ordinal > (*y)->ordinal) - ((*x)->ordinal < (*y)->ordinal);
}

static enum status
node_close(struct loading *l)
{
	struct open_node *top = &l->stack[--l->depth];
	struct jtree_node *node = top->node;

	if (node->kind == JTREE_TEXT) {
		if (node->text.len != top->expected ||
		    utf8_valid_prefix(node->text) != node->text.len)
			return timed_item_corrupt(l->item);
		node->whole = true;
		return STATUS_OK;
	}
	if (node->count != top->expected)
		return timed_item_corrupt(l->item);
	if (node->kind == JTREE_OBJECT)
		TRY(sort_items_by(node->children, (size_t)node->count, sizeof(*node->children),
				  compare_ordinals, l->item->arena));
	return STATUS_OK;
}

static enum status
node_open(struct loading *l, struct jtree_node *node, struct str key)
{
	struct open_node *top = &l->stack[l->depth];

	if (l->depth > JTREE_DEPTH)
		return timed_item_corrupt(l->item);
	*top = (struct open_node){ .node = node, .key_len = key.len, .expected = node->count };
	if (node->kind == JTREE_TEXT) {
		top->expected = node->text.len;
		top->text = arena_bytes(l->item->arena, node->text.len);
		if (!top->text)
			return STATUS_LIMIT;
		node->text = str_of(top->text, 0);
	} else {
		node->whole = true;
		node->count = 0;
	}
	l->depth++;
	buf_clear(&l->key);
	buf_append_str(&l->key, key);
	return buf_status(&l->key);
}

/* True if the key lies below the innermost node: its name may be the beginning of another one. */
static bool
is_below(const struct loading *l, struct str key)
{
	size_t len = l->stack[l->depth - 1].key_len;

	return key.len > len && memcmp(key.ptr, l->key.ptr, len) == 0 &&
	       (uint8_t)key.ptr[len] != TUPLE_CODE_ESCAPE;
}

static enum status
piece_take(struct loading *l, struct open_node *top, struct tuple_reader *r, struct str bytes)
{
	uint64_t n;

	if (tuple_next_u64(r, &n) != STATUS_OK || r->rest.len || n != top->pieces++ ||
	    bytes.len > top->expected - top->node->text.len)
		return timed_item_corrupt(l->item);
	memcpy(top->text + top->node->text.len, bytes.ptr, bytes.len);
	top->node->text.len += bytes.len;
	return STATUS_OK;
}

static enum status
child_name(struct loading *l, const struct tuple_elem *step, struct jtree_node *child)
{
	struct buf name = timed_arena_buf(l->item->arena, step->raw.len + 1);

	tuple_unescape(step, &name);
	child->name = buf_str(&name);
	TRY(buf_status(&name));
	return utf8_valid_prefix(child->name) == child->name.len ? STATUS_OK
								 : timed_item_corrupt(l->item);
}

/* Reads a leaf. What it returns has texts in the arena. */
static enum status
leaf_read(struct timed_item *item, struct str value, struct jtree_node **ret)
{
	struct buf scratch = timed_arena_buf(item->arena, value.len);
	struct timed_json_leaf leaf;
	enum status status;

	TRY(buf_status(&scratch));
	status = timed_json_leaf_parse(value, &scratch, &leaf, item->t->err);
	if (status == STATUS_CORRUPT)
		return timed_item_corrupt(item);
	TRY(status);
	return json_leaf_node(item, &leaf, ret);
}

static enum status
child_take(struct loading *l, struct jtree_node *parent, const struct tuple_elem *step,
	   const struct kv_pair *pair)
{
	struct arena *arena = l->item->arena;
	struct jtree_node *child;

	TRY(leaf_read(l->item, pair->value, &child));
	if (parent->kind == JTREE_OBJECT) {
		if (step->kind != TUPLE_STRING)
			return timed_item_corrupt(l->item);
		TRY(child_name(l, step, child));
		TRY(jtree_add(arena, parent, child->name, child));
	} else {
		if (step->kind != TUPLE_INT || step->magnitude > INT64_MAX)
			return timed_item_corrupt(l->item);
		child->place = step->negative ? -(int64_t)step->magnitude
					      : (int64_t)step->magnitude;
		if (child->place != parent->next + (int64_t)parent->count)
			return timed_item_corrupt(l->item);
		TRY(jtree_insert(arena, parent, parent->count, &child, 1));
	}
	return child->whole ? STATUS_OK : node_open(l, child, pair->key);
}

static enum status
pair_take(struct loading *l, const struct kv_pair *pair)
{
	struct tuple_reader r;
	struct open_node *top;
	struct tuple_elem step;

	while (l->depth && !is_below(l, pair->key))
		TRY(node_close(l));
	if (!l->depth)
		return timed_item_corrupt(l->item);
	top = &l->stack[l->depth - 1];
	r = tuple_reader(str_skip(pair->key, top->key_len));
	if (tuple_next(&r, &step) != STATUS_OK)
		return timed_item_corrupt(l->item);
	if (top->node->kind == JTREE_TEXT)
		return json_is_pieces(&step) ? piece_take(l, top, &r, pair->value)
					     : timed_item_corrupt(l->item);
	if (r.rest.len)
		return timed_item_corrupt(l->item);
	return child_take(l, top->node, &step, pair);
}

static enum status
load_pairs(struct loading *l, struct str begin, struct str end)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_pair pair;
	enum status status;

	TRY(timed_cursor_open(&scan, l->item->t, begin, end, NULL));
	while ((status = timed_cursor_next(&scan, &pair)) == STATUS_OK)
		TRY(pair_take(l, &pair));
	if (status != STATUS_NOT_FOUND)
		return status;
	while (l->depth)
		TRY(node_close(l));
	return STATUS_OK;
}

enum status
timed_json_load(struct timed_json *j, struct jtree_node *node)
{
	struct timed_item *item = j->item;
	struct loading l = { .item = item };
	struct str begin, end;
	struct buf key;

	if (node->whole)
		return STATUS_OK;
	l.stack = arena_alloc(item->arena, (JTREE_DEPTH + 1) * sizeof(*l.stack));
	l.key = timed_arena_buf(item->arena, KV_LIMIT_KEY_BYTES);
	if (!l.stack)
		return STATUS_LIMIT;
	TRY(buf_status(&l.key));
	TRY(json_node_key(item, node, 1, &key));
	TRY(json_below(item, buf_str(&key), &begin, &end));
	TRY(node_open(&l, node, buf_str(&key)));
	return load_pairs(&l, begin, end);
}

/* ---- Parts ---- */

/* The node at a key; NULL: there is none. A long text is read, what is in a container is not. */
static enum status
node_get(struct timed_json *j, struct buf *key, struct jtree_node *parent, struct jtree_node **ret)
{
	struct jtree_node *node;
	struct str value;

	*ret = NULL;
	TRY(buf_status(key));
	TRY(timed_data_get(j->item->t, buf_str(key), KV_READ, j->item->arena, &value));
	if (!value.ptr)
		return STATUS_OK;
	TRY(leaf_read(j->item, value, &node));
	node->parent = parent;
	*ret = node;
	return STATUS_OK;
}

static enum status
source_member(void *arg, struct jtree_node *object, struct str name, struct jtree_node **ret)
{
	struct timed_json *j = arg;
	struct buf key;

	*ret = NULL;
	if (name.len > TIMED_JSON_PATH_BYTES)
		return STATUS_OK;
	TRY(json_node_key(j->item, object, 2 * name.len + JSON_STEP_MORE, &key));
	tuple_put_str(&key, name);
	if (key.len > kv_key_limit(j->item->t->tx))
		return STATUS_OK;
	TRY(node_get(j, &key, object, ret));
	if (!*ret)
		return STATUS_OK;
	(*ret)->name = name;
	return (*ret)->kind == JTREE_TEXT ? timed_json_load(j, *ret) : STATUS_OK;
}

static enum status
source_element(void *arg, struct jtree_node *array, uint64_t index, struct jtree_node **ret)
{
	struct timed_json *j = arg;
	struct buf key;

	TRY(json_node_key(j->item, array, JSON_STEP_MORE, &key));
	tuple_put_i64(&key, array->next + (int64_t)index);
	TRY(node_get(j, &key, array, ret));
	if (!*ret)
		return timed_item_corrupt(j->item);
	(*ret)->place = array->next + (int64_t)index;
	return (*ret)->kind == JTREE_TEXT ? timed_json_load(j, *ret) : STATUS_OK;
}

static enum status
source_load(void *arg, struct jtree_node *node)
{
	return timed_json_load(arg, node);
}

void
json_source_init(struct timed_json *j)
{
	j->source = (struct jtree_source){
		.member = source_member, .element = source_element, .load = source_load, .arg = j
	};
}

enum status
timed_json_member(struct timed_json *j, struct jtree_node *object, struct str name,
		  struct jtree_node **ret)
{
	return object->whole ? jtree_member(j->item->arena, object, name, ret)
			     : source_member(j, object, name, ret);
}

/* ---- Documents ---- */

enum status
json_read_root(struct timed_json *j)
{
	struct buf key;

	TRY(json_root_key(j->item, &key));
	TRY(node_get(j, &key, NULL, &j->root));
	if (!j->root)
		return timed_item_corrupt(j->item);
	return j->root->kind == JTREE_TEXT ? timed_json_load(j, j->root) : STATUS_OK;
}

enum status
json_read_text(struct timed_item *item, struct jtree_node **ret)
{
	struct err ignored = { 0 };
	struct str text;
	enum status status;

	TRY(timed_text_get(item, 0, item->length, &text));
	status = jtree_read(text, item->arena, ret, &ignored);
	return status == STATUS_JSON_SYNTAX || status == STATUS_JSON_UTF8 ||
			       status == STATUS_JSON_DEPTH
		       ? timed_item_corrupt(item)
		       : status;
}
