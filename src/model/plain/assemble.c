#include "model/plain/plain_int.h"

#include "loop/sort.h"
#include "loop/step.h"

/*
 * Leaves come in the order of their keys, and members of a document in the order of their
 * ordinals: so all leaves are read into nodes first. A container's leaf comes before what is in it.
 */

struct node {
	struct str key;  /* behind the record's */
	struct str name; /* of a member; in the arena */
	struct plain_leaf leaf;
	bool in_array;
	struct node *first; /* of what is in it, the last one first */
	struct node *sibling;
	size_t children;
};

struct assembly {
	struct arena *arena;
	struct node top;
	size_t depth;
	struct node *open[BSON_DEPTH + 1];
};

struct write_level {
	struct node **nodes;
	size_t count;
	size_t at;
};

/* ---- Nodes ---- */

/* The last step of a path, in a container. */
static enum status
node_step(struct assembly *a, const struct node *parent, struct str step, struct node *ret)
{
	struct tuple_reader r = tuple_reader(step);
	bool array = parent->leaf.value.type == BSON_ARRAY;
	uint64_t position;

	ret->in_array = array;
	if (array) {
		TRY(tuple_next_u64(&r, &position));
		if (position != ret->leaf.ordinal)
			return STATUS_CORRUPT;
	} else {
		TRY(catalog_next_text(&r, TUPLE_STRING, a->arena, true, &ret->name));
	}
	if (r.rest.len || ret->leaf.ordinal >= parent->leaf.next)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

static enum status
assembly_add(struct assembly *a, const struct kv_pair *pair)
{
	struct node *node = arena_zalloc(a->arena, sizeof(*node));
	struct node *parent;

	TRY(step_count(2));
	if (!node)
		return STATUS_LIMIT;
	TRY(plain_leaf_parse(pair->value, a->arena, &node->leaf));
	node->key = pair->key;
	while (!str_starts_with(pair->key, a->open[a->depth - 1]->key)) {
		if (--a->depth == 0)
			return STATUS_CORRUPT;
	}
	parent = a->open[a->depth - 1];
	TRY(node_step(a, parent, str_skip(pair->key, parent->key.len), node));
	node->sibling = parent->first;
	parent->first = node;
	parent->children++;
	if (!bson_is_container(&node->leaf.value))
		return STATUS_OK;
	if (a->depth > BSON_DEPTH)
		return STATUS_CORRUPT;
	a->open[a->depth++] = node;
	return STATUS_OK;
}

/* ---- Writing ---- */

static int
compare_ordinals(const void *a, const void *b)
{
	uint64_t x = (*(struct node *const *)a)->leaf.ordinal;
	uint64_t y = (*(struct node *const *)b)->leaf.ordinal;

	return (x > y) - (x < y);
}

static enum status
level_open(struct assembly *a, const struct node *node, struct write_level *ret)
{
	size_t i = node->children;

	*ret = (struct write_level){ .count = i };
	ret->nodes = arena_alloc(a->arena, (i + 1) * sizeof(struct node *));
	if (!ret->nodes)
		return STATUS_LIMIT;
	for (struct node *child = node->first; child; child = child->sibling)
		ret->nodes[--i] = child;
	TRY(sort_items_by(ret->nodes, ret->count, sizeof(struct node *), compare_ordinals,
			  a->arena));
	for (i = 0; i < ret->count; i++) {
		uint64_t ordinal = ret->nodes[i]->leaf.ordinal;

		if (i && ordinal == ret->nodes[i - 1]->leaf.ordinal)
			return STATUS_CORRUPT;
		/* Positions have no gaps. */
		if (ret->nodes[i]->in_array && ordinal != i)
			return STATUS_CORRUPT;
	}
	if (node->leaf.value.type == BSON_ARRAY && node->leaf.next != ret->count)
		return STATUS_CORRUPT;
	return STATUS_OK;
}

/*
 * What is in a container that has begun, and its end. Whether the output had room for all of it,
 * assembly_finish() says.
 */
static enum status
write_node(struct assembly *a, const struct node *top, struct bson_builder *b)
{
	struct write_level levels[BSON_DEPTH + 1];
	size_t depth = 1;

	TRY(level_open(a, top, &levels[0]));
	while (depth) {
		struct write_level *level = &levels[depth - 1];
		const struct node *node;

		if (level->at == level->count) {
			bson_end(b);
			depth--;
			continue;
		}
		node = level->nodes[level->at++];
		if (!bson_is_container(&node->leaf.value)) {
			bson_put(b, node->name, &node->leaf.value);
			continue;
		}
		if (depth > BSON_DEPTH)
			return STATUS_CORRUPT;
		if (node->leaf.value.type == BSON_ARRAY)
			bson_begin_array(b, node->name);
		else
			bson_begin_document(b, node->name);
		TRY(level_open(a, node, &levels[depth++]));
	}
	return STATUS_OK;
}

static enum status
assembly_finish(struct assembly *a, struct buf *out, struct str *ret)
{
	if (buf_status(out) == STATUS_LIMIT)
		return STATUS_DOC_TOO_LARGE;
	TRY(buf_status(out));
	*ret = buf_dup(out, a->arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
plain_assemble(const struct plain_root *root, const struct kv_pair *pairs, size_t count,
	       struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(arena));
	struct assembly a = { .arena = arena, .depth = 1 };
	struct bson_builder b;
	enum status status = STATUS_OK;

	a.top.leaf.value.type = BSON_DOCUMENT;
	a.top.leaf.next = root->next;
	a.open[0] = &a.top;
	for (size_t i = 0; status == STATUS_OK && i < count; i++)
		status = assembly_add(&a, &pairs[i]);
	if (status == STATUS_NOT_FOUND)
		return STATUS_CORRUPT;
	TRY(status);
	bson_builder_init(&b, &out);
	bson_begin(&b);
	bson_put(&b, STR("_id"), &root->id);
	TRY(write_node(&a, &a.top, &b));
	return assembly_finish(&a, &out, ret);
}

enum status
plain_assemble_value(const struct kv_pair *pairs, size_t count, struct arena *arena,
		     struct bson_value *ret)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(BSON_MOST_BYTES, arena_part(arena));
	struct assembly a = { .arena = arena, .depth = 1 };
	struct bson_builder b;
	enum status status = STATUS_OK;

	TRY(plain_leaf_parse(pairs[0].value, arena, &a.top.leaf));
	a.top.key = pairs[0].key;
	a.open[0] = &a.top;
	*ret = a.top.leaf.value;
	if (!bson_is_container(ret))
		return count == 1 ? STATUS_OK : STATUS_CORRUPT;
	for (size_t i = 1; status == STATUS_OK && i < count; i++)
		status = assembly_add(&a, &pairs[i]);
	if (status == STATUS_NOT_FOUND)
		return STATUS_CORRUPT;
	TRY(status);
	bson_builder_init(&b, &out);
	if (ret->type == BSON_ARRAY)
		bson_begin_outer_array(&b);
	else
		bson_begin(&b);
	TRY(write_node(&a, &a.top, &b));
	return assembly_finish(&a, &out, &ret->as_text);
}
