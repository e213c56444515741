/* A document as a tree, of which only what paths lead into is opened. */
#include "mql/mql_int.h"
#include "mql/update_int.h"

static enum status
tree_new(struct mql *q, struct str name, const struct bson_value *v, struct mql_tree **ret)
{
	struct mql_tree *node = arena_zalloc(q->arena, sizeof(*node));

	if (!node)
		return mql_full(q);
	node->name = name;
	node->value = *v;
	*ret = node;
	return STATUS_OK;
}

enum status
mql_tree_append(struct mql *q, struct mql_tree *node, struct str name, const struct bson_value *v,
		struct mql_tree **ret)
{
	struct mql_tree *member;

	TRY(step_count(1));
	TRY(tree_new(q, name, v, &member));
	if (node->last)
		node->last->next = member;
	else
		node->first = member;
	node->last = member;
	node->count++;
	if (ret)
		*ret = member;
	return STATUS_OK;
}

enum status
mql_tree_open(struct mql *q, struct mql_tree *node)
{
	struct bson_iter i;
	struct bson_element e;

	if (node->open)
		return STATUS_OK;
	node->open = true;
	for (bson_iter_begin(&i, bson_text(&node->value)); bson_iter_read(&i, &e);)
		TRY(mql_tree_append(q, node, e.name, &e.value, NULL));
	return STATUS_OK;
}

struct mql_tree *
mql_tree_find(struct mql_tree *node, struct str name)
{
	struct mql_tree *member = node->first;
	uint32_t position;

	if (node->value.type == BSON_ARRAY) {
		if (!mql_is_position(name, &position) || position >= node->count)
			return NULL;
		for (uint32_t i = 0; i < position; i++)
			member = member->next;
		return member;
	}
	while (member && !str_eq(member->name, name))
		member = member->next;
	return member;
}

void
mql_tree_remove(struct mql_tree *node, struct mql_tree *member)
{
	struct mql_tree *before = NULL;

	for (struct mql_tree *n = node->first; n != member; n = n->next)
		before = n;
	if (before)
		before->next = member->next;
	else
		node->first = member->next;
	if (node->last == member)
		node->last = before;
	node->count--;
}

/* Calls itself for members: BSON_DEPTH deep, and the builder refuses more. */
static enum status
tree_put(struct bson_builder *b, const struct mql_tree *node)
{
	if (!node->open) {
		TRY(mql_count(bson_is_container(&node->value) ? bson_text(&node->value).len : 0));
		bson_put(b, node->name, &node->value);
		return STATUS_OK;
	}
	if (node->value.type == BSON_ARRAY)
		bson_begin_array(b, node->name);
	else
		bson_begin_document(b, node->name);
	for (const struct mql_tree *n = node->first; n; n = n->next)
		TRY(tree_put(b, n));
	bson_end(b);
	return STATUS_OK;
}

static enum status
tree_put_members(struct bson_builder *b, const struct mql_tree *node, bool id_first)
{
	for (const struct mql_tree *n = node->first; n && id_first; n = n->next) {
		if (mql_is(n->name, "_id"))
			TRY(tree_put(b, n));
	}
	for (const struct mql_tree *n = node->first; n; n = n->next) {
		if (!id_first || !mql_is(n->name, "_id"))
			TRY(tree_put(b, n));
	}
	return STATUS_OK;
}

static enum status
tree_write(struct mql *q, const struct mql_tree *node, bool id_first, size_t most, struct str *ret)
{
	struct buf out = BUF_INIT(most);
	struct bson_builder b;
	enum status status;

	bson_builder_init(&b, &out);
	if (node->value.type == BSON_ARRAY)
		bson_begin_outer_array(&b);
	else
		bson_begin(&b);
	status = tree_put_members(&b, node, id_first);
	bson_end(&b);
	if (status != STATUS_OK) {
		buf_release(&out);
		return status;
	}
	return mql_keep(q, &out, ret);
}

enum status
mql_tree_value(struct mql *q, const struct mql_tree *node, struct bson_value *ret)
{
	*ret = node->value;
	if (!node->open)
		return STATUS_OK;
	return tree_write(q, node, false, BSON_MOST_BYTES, &ret->as_text);
}

enum status
mql_tree_write(struct mql *q, const struct mql_tree *root, bool id_first, struct str *ret)
{
	return tree_write(q, root, id_first, BSON_DOCUMENT_BYTES, ret);
}
