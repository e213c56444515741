#include "jtree/jtree.h"

#include <assert.h>

#include "base/hash.h"
#include "loop/step.h"

enum {
	STEPS_A_NODE = 2, /* to make one, or to go through it */
};

enum status
jtree_new(struct arena *arena, enum jtree_kind kind, struct jtree_node **ret)
{
	TRY(step_count(STEPS_A_NODE));
	*ret = arena_zalloc(arena, sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	(*ret)->kind = kind;
	(*ret)->whole = true;
	return STATUS_OK;
}

/* ---- Members by name ---- */

static size_t
slot_of(const struct jtree_node *object, struct str name)
{
	size_t at = hash_keyed(0, name) & (object->slot_count - 1);

	while (object->slots[at] && !str_eq(object->slots[at]->name, name))
		at = (at + 1) & (object->slot_count - 1);
	return at;
}

/* Makes the index of a large object, with room for as many members again. */
static enum status
slots_make(struct arena *arena, struct jtree_node *object)
{
	size_t slots = hash_slots(2 * (size_t)object->count);

	TRY(step_count_bytes(slots * sizeof(*object->slots)));
	object->slots = arena_zalloc(arena, slots * sizeof(*object->slots));
	if (!object->slots)
		return STATUS_LIMIT;
	object->slot_count = slots;
	for (uint64_t i = 0; i < object->count; i++) {
		TRY(step_count(1));
		object->slots[slot_of(object, object->children[i]->name)] = object->children[i];
	}
	return STATUS_OK;
}

enum status
jtree_member(struct arena *arena, struct jtree_node *object, struct str name,
	     struct jtree_node **ret)
{
	assert(object->kind == JTREE_OBJECT && object->whole);
	*ret = NULL;
	if (object->count >= JTREE_INDEXED_FROM) {
		if (!object->slots)
			TRY(slots_make(arena, object));
		TRY(step_count(STEPS_A_NODE));
		*ret = object->slots[slot_of(object, name)];
		return STATUS_OK;
	}
	TRY(step_count(1 + (uint32_t)object->count / 4));
	for (uint64_t i = 0; i < object->count && !*ret; i++)
		if (str_eq(object->children[i]->name, name))
			*ret = object->children[i];
	return STATUS_OK;
}

/* ---- Changing containers ---- */

static enum status
children_room(struct arena *arena, struct jtree_node *node, size_t more)
{
	size_t cap = node->cap;
	struct jtree_node **grown;

	if (node->cap - node->count >= more)
		return STATUS_OK;
	cap = cap ? 2 * cap : 4;
	if (cap < node->count + more)
		cap = (size_t)node->count + more;
	TRY(step_count_bytes((size_t)node->count * sizeof(*grown)));
	grown = arena_alloc(arena, cap * sizeof(*grown));
	if (!grown)
		return STATUS_LIMIT;
	if (node->count)
		memcpy(grown, node->children, (size_t)node->count * sizeof(*grown));
	node->children = grown;
	node->cap = cap;
	return STATUS_OK;
}

enum status
jtree_add(struct arena *arena, struct jtree_node *object, struct str name, struct jtree_node *node)
{
	assert(object->kind == JTREE_OBJECT && object->whole && !node->parent);
	TRY(children_room(arena, object, 1));
	node->name = name;
	node->parent = object;
	object->children[object->count++] = node;
	if (!object->slots)
		return STATUS_OK;
	/* Half of the slots stay free. */
	if (2 * object->count > object->slot_count) {
		object->slots = NULL;
		return STATUS_OK;
	}
	object->slots[slot_of(object, name)] = node;
	return STATUS_OK;
}

enum status
jtree_insert(struct arena *arena, struct jtree_node *array, uint64_t at,
	     struct jtree_node *const *nodes, size_t count)
{
	struct jtree_node **place;

	assert(array->kind == JTREE_ARRAY && array->whole && at <= array->count);
	TRY(children_room(arena, array, count));
	if (!count)
		return STATUS_OK;
	place = array->children + at;
	TRY(step_count_bytes((size_t)(array->count - at) * sizeof(*place)));
	memmove(place + count, place, (size_t)(array->count - at) * sizeof(*place));
	for (size_t i = 0; i < count; i++) {
		place[i] = nodes[i];
		nodes[i]->parent = array;
	}
	array->count += count;
	return STATUS_OK;
}

void
jtree_cut(struct jtree_node *array, uint64_t at, uint64_t count)
{
	struct jtree_node **place;

	assert(array->kind == JTREE_ARRAY && array->whole && at + count <= array->count);
	if (!count)
		return;
	place = array->children + at;
	for (uint64_t i = 0; i < count; i++)
		place[i]->parent = NULL;
	step_pause((uint32_t)(1 + (array->count - at) / 8));
	memmove(place, place + count, (size_t)(array->count - at - count) * sizeof(*place));
	array->count -= count;
}

enum status
jtree_remove(struct jtree_node *const *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert(nodes[i]->parent && nodes[i]->parent->whole && !nodes[i]->gone);
		nodes[i]->gone = true;
	}
	for (size_t i = 0; i < count; i++) {
		struct jtree_node *parent = nodes[i]->parent;
		uint64_t kept = 0;

		if (!parent)
			continue; /* it went with one of its siblings */
		for (uint64_t k = 0; k < parent->count; k++) {
			struct jtree_node *child = parent->children[k];

			TRY(step_count(1));
			if (child->gone)
				child->parent = NULL;
			else
				parent->children[kept++] = child;
		}
		parent->count = kept;
		parent->slots = NULL;
	}
	return STATUS_OK;
}

void
jtree_assign(struct jtree_node *node, const struct jtree_node *value)
{
	struct jtree_node old = *node;

	*node = *value;
	node->parent = old.parent;
	node->name = old.name;
	node->ordinal = old.ordinal;
	node->place = old.place;
	node->marked = old.marked;
	node->gone = false;
	for (uint64_t i = 0; jtree_is_container(node) && i < node->count; i++)
		node->children[i]->parent = node;
}

/* ---- Whole trees ---- */

static enum status
copy_children(struct arena *arena, const struct jtree_node *from, struct jtree_node *to)
{
	TRY(children_room(arena, to, (size_t)from->count));
	for (uint64_t i = 0; i < from->count; i++) {
		struct jtree_node *child;

		TRY(jtree_copy(arena, from->children[i], &child));
		child->parent = to;
		to->children[to->count++] = child;
		if (from->kind == JTREE_OBJECT)
			TRY(arena_copy(arena, from->children[i]->name, &child->name));
	}
	return STATUS_OK;
}

enum status
jtree_copy(struct arena *arena, const struct jtree_node *node, struct jtree_node **ret)
{
	struct jtree_node *copy;

	assert(node->whole);
	TRY(jtree_new(arena, node->kind, &copy));
	*ret = copy;
	switch (node->kind) {
	case JTREE_ARRAY:
	case JTREE_OBJECT:
		return copy_children(arena, node, copy);
	case JTREE_TEXT:
		TRY(step_count_bytes(node->text.len));
		return arena_copy(arena, node->text, &copy->text);
	case JTREE_BOOL:
		copy->truth = node->truth;
		return STATUS_OK;
	case JTREE_DOUBLE:
		copy->d = node->d;
		return STATUS_OK;
	case JTREE_INT:
	case JTREE_UNSIGNED:
		copy->u = node->u;
		return STATUS_OK;
	case JTREE_NULL:
		return STATUS_OK;
	}
	return STATUS_OK;
}

/* `*ret` is true so far. */
static enum status
equal_members(struct arena *arena, struct jtree_node *a, struct jtree_node *b, bool *ret)
{
	for (uint64_t i = 0; i < a->count && *ret; i++) {
		struct jtree_node *other = b->children[i];

		if (a->kind == JTREE_OBJECT)
			TRY(jtree_member(arena, b, a->children[i]->name, &other));
		if (other)
			TRY(jtree_equal(arena, a->children[i], other, ret));
		else
			*ret = false;
	}
	return STATUS_OK;
}

enum status
jtree_equal(struct arena *arena, struct jtree_node *a, struct jtree_node *b, bool *ret)
{
	TRY(step_count(STEPS_A_NODE));
	*ret = a->kind == b->kind;
	if (!*ret)
		return STATUS_OK;
	switch (a->kind) {
	case JTREE_ARRAY:
	case JTREE_OBJECT:
		*ret = a->count == b->count;
		return equal_members(arena, a, b, ret);
	case JTREE_TEXT:
		*ret = str_eq(a->text, b->text);
		return step_count_bytes(a->text.len);
	case JTREE_BOOL:
		*ret = a->truth == b->truth;
		return STATUS_OK;
	case JTREE_DOUBLE:
		*ret = a->d == b->d;
		return STATUS_OK;
	case JTREE_INT:
	case JTREE_UNSIGNED:
		*ret = a->u == b->u;
		return STATUS_OK;
	case JTREE_NULL:
		return STATUS_OK;
	}
	return STATUS_OK;
}

unsigned
jtree_height(const struct jtree_node *node)
{
	unsigned height = 0;

	if (!jtree_is_container(node))
		return 0;
	step_pause(1 + (uint32_t)(node->count / 4));
	for (uint64_t i = 0; i < node->count; i++) {
		unsigned below = jtree_height(node->children[i]);

		height = below > height ? below : height;
	}
	return height + 1;
}

unsigned
jtree_depth(const struct jtree_node *node)
{
	unsigned depth = 0;

	while ((node = node->parent))
		depth++;
	return depth;
}

/* A member that goes is noted in `gone`, which has room. */
static enum status
merge_member(struct arena *arena, struct jtree_node *object, const struct jtree_node *change,
	     struct jtree_node **gone, size_t *gone_count)
{
	struct jtree_node *member;
	struct str name;

	TRY(jtree_member(arena, object, change->name, &member));
	if (change->kind == JTREE_NULL) {
		if (member)
			gone[(*gone_count)++] = member;
		return STATUS_OK;
	}
	if (member)
		return jtree_merge(arena, member, change);
	TRY(arena_copy(arena, change->name, &name));
	TRY(jtree_new(arena, JTREE_NULL, &member));
	TRY(jtree_merge(arena, member, change));
	return jtree_add(arena, object, name, member);
}

enum status
jtree_merge(struct arena *arena, struct jtree_node *node, const struct jtree_node *patch)
{
	struct jtree_node *value, **gone;
	size_t gone_count = 0;

	assert(node->whole && patch->whole);
	if (patch->kind != JTREE_OBJECT) {
		TRY(jtree_copy(arena, patch, &value));
		jtree_assign(node, value);
		return STATUS_OK;
	}
	if (node->kind != JTREE_OBJECT) {
		TRY(jtree_new(arena, JTREE_OBJECT, &value));
		jtree_assign(node, value);
	}
	gone = arena_alloc(arena, ((size_t)patch->count + 1) * sizeof(*gone));
	if (!gone)
		return STATUS_LIMIT;
	for (uint64_t i = 0; i < patch->count; i++)
		TRY(merge_member(arena, node, patch->children[i], gone, &gone_count));
	return jtree_remove(gone, gone_count);
}
