/* A document as a tree, of which only what paths lead into is opened. */
#include "base/hash.h"
#include "mql/mql_int.h"
#include "mql/update/update_int.h"

enum {
	/* A node with more members has an index once they have been looked for more often. */
	TREE_FEW_MEMBERS = 32,
	TREE_FEW_FINDS = 8,
};

/* The members by position, or by name: then `slots` is a table of hashes, at most half full. */
struct mql_tree_index {
	struct mql_tree **slots;
	size_t count; /* slots */
	size_t used;  /* also by those that have been removed */
	bool doubled; /* a name is there twice; the first one counts */
};

/* Stands where a member was. */
static struct mql_tree tree_gone;

/* ---- Indexes of members ---- */

/* Where the member of that name is, or NULL, where it would be. */
static struct mql_tree **
index_slot(const struct mql_tree_index *index, struct str name)
{
	size_t at = hash_keyed(0, name) & (index->count - 1);

	/* There is an empty slot, at which the search ends. */
	assert(index->used < index->count);
	while (index->slots[at] &&
	       (index->slots[at] == &tree_gone || !str_eq(index->slots[at]->name, name)))
		at = (at + 1) & (index->count - 1);
	return &index->slots[at];
}

static void
index_put(struct mql_tree_index *index, struct mql_tree *member)
{
	struct mql_tree **slot = index_slot(index, member->name);

	if (*slot) {
		index->doubled = true;
		return;
	}
	*slot = member;
	index->used++;
}

static enum status
index_make(struct mql *q, struct mql_tree *node)
{
	struct mql_tree_index *index = arena_zalloc(q->arena, sizeof(*index));
	size_t at = 0, count = TREE_FEW_MEMBERS;

	while (count < 4 * node->count)
		count *= 2;
	if (index)
		index->slots = arena_zalloc(q->arena, count * sizeof(struct mql_tree *));
	if (!index || !index->slots)
		return mql_full(q);
	index->count = count;
	for (struct mql_tree *n = node->first; n; n = n->next) {
		TRY(step_count(1));
		if (node->value.type == BSON_ARRAY)
			index->slots[at++] = n;
		else
			index_put(index, n);
	}
	assert(node->value.type != BSON_ARRAY || at == node->count);
	node->index = index;
	return STATUS_OK;
}

/* `member` is the last one. */
static enum status
index_add(struct mql *q, struct mql_tree *node, struct mql_tree *member)
{
	struct mql_tree_index *index = node->index;
	bool array = node->value.type == BSON_ARRAY;

	assert(member == node->last);
	if (array ? node->count > index->count : 2 * (index->used + 1) > index->count)
		return index_make(q, node);
	if (array)
		index->slots[node->count - 1] = member;
	else
		index_put(index, member);
	return STATUS_OK;
}

/* ---- Nodes ---- */

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

	/* Until a node is opened, the bytes of its value count, and its members do not. */
	assert(node->open && bson_is_container(&node->value));
	TRY(step_count(1));
	TRY(tree_new(q, name, v, &member));
	member->prev = node->last;
	if (node->last)
		node->last->next = member;
	else
		node->first = member;
	node->last = member;
	node->count++;
	if (ret)
		*ret = member;
	return node->index ? index_add(q, node, member) : STATUS_OK;
}

enum status
mql_tree_open(struct mql *q, struct mql_tree *node)
{
	struct bson_iter i;
	struct bson_element e;

	if (node->open)
		return STATUS_OK;
	assert(!node->first && !node->count);
	node->open = true;
	for (bson_iter_begin(&i, bson_text(&node->value)); bson_iter_read(&i, &e);)
		TRY(mql_tree_append(q, node, e.name, &e.value, NULL));
	return STATUS_OK;
}

enum status
mql_tree_find(struct mql *q, struct mql_tree *node, struct str name, struct mql_tree **ret)
{
	bool array = node->value.type == BSON_ARRAY;
	struct mql_tree *member = node->first;
	uint32_t position = 0;

	assert(node->open);
	*ret = NULL;
	if (array && (!mql_is_position(name, &position) || position >= node->count))
		return STATUS_OK;
	if (!node->index && node->count > TREE_FEW_MEMBERS && ++node->finds > TREE_FEW_FINDS)
		TRY(index_make(q, node));
	if (node->index) {
		*ret = array ? node->index->slots[position] : *index_slot(node->index, name);
		return step_count(1);
	}
	TRY(step_count_bytes(node->count));
	if (array) {
		for (uint32_t i = 0; i < position; i++)
			member = member->next;
	} else {
		while (member && !str_eq(member->name, name))
			member = member->next;
	}
	*ret = member;
	return STATUS_OK;
}

static void
index_drop(struct mql_tree *node)
{
	node->index = NULL;
	node->finds = 0;
}

void
mql_tree_link(struct mql_tree *node, struct mql_tree **members, size_t count)
{
	assert(node->open);
	node->first = count ? members[0] : NULL;
	node->last = count ? members[count - 1] : NULL;
	for (size_t i = 0; i < count; i++) {
		members[i]->prev = i ? members[i - 1] : NULL;
		members[i]->next = i + 1 < count ? members[i + 1] : NULL;
	}
	node->count = count;
	index_drop(node);
}

void
mql_tree_remove(struct mql_tree *node, struct mql_tree *member)
{
	assert(node->count > 0 && (member->prev ? member->prev->next : node->first) == member);
	/* Positions behind a removed element change, and of a doubled name the next one counts. */
	if (node->index && (node->value.type == BSON_ARRAY || node->index->doubled))
		index_drop(node);
	else if (node->index)
		*index_slot(node->index, member->name) = &tree_gone;
	if (member->prev)
		member->prev->next = member->next;
	else
		node->first = member->next;
	if (member->next)
		member->next->prev = member->prev;
	else
		node->last = member->prev;
	node->count--;
}

/* Calls itself for members: BSON_DEPTH deep, and the builder refuses more. */
static enum status
tree_put(struct bson_builder *b, const struct mql_tree *node)
{
	if (!node->open) {
		TRY(step_count_bytes(bson_is_container(&node->value) ? bson_text(&node->value).len
								     : 0));
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
	struct buf out = mql_buf(q, most);
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
