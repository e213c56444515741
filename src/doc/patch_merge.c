#include "doc/patch_int.h"

#include <assert.h>

#include "loop/step.h"

enum {
	MERGE_MEMBER_STEPS = 2,
};

/*
 * Merging goes through the members of both objects in the order of their names. Where both have an
 * object under one name, it merges those two before the next member. The levels that are under way
 * lie in the arena, because documents may be nested more deeply than a fiber's stack allows.
 */
struct merge_level {
	struct merge_level *outer;
	struct patch_node *target; /* gets the result */
	struct patch_node old;
	struct patch_node changes;
	struct patch_node result;
	size_t at_old;
	size_t at_change;
};

static enum status
merge_begin_object(struct patch_tree *t, struct patch_node *target, struct patch_node changes,
		   struct merge_level **top)
{
	struct merge_level *m = arena_zalloc(t->arena, sizeof(*m));
	enum patch_type type;

	if (!m)
		return patch_fail_memory(t);
	m->outer = *top;
	m->target = target;
	m->changes = changes;
	TRY(patch_type(target, &type));
	m->old = *target;
	if (type != PATCH_TYPE_OBJECT)
		m->old = (struct patch_node){ .kind = PATCH_OBJECT };
	TRY(patch_open(t, &m->old));
	TRY(patch_open(t, &m->changes));
	m->result.kind = PATCH_OBJECT;
	m->result.cap = m->old.count + m->changes.count;
	TRY(patch_work(t, m->result.cap));
	m->result.children = arena_alloc(t->arena, m->result.cap * sizeof(*m->result.children));
	if (!m->result.children)
		return patch_fail_memory(t);
	*top = m;
	return STATUS_OK;
}

static struct patch_child *
merge_keep_child(struct merge_level *m, struct patch_child child)
{
	/* There is memory for the members of both sides. */
	assert(m->result.count < m->result.cap);
	m->result.children[m->result.count] = child;
	return &m->result.children[m->result.count++];
}

/* Keeps the old members that come before `name`; the old one of that name, or NULL. */
static const struct patch_child *
merge_keep_before(struct merge_level *m, struct str name)
{
	while (m->at_old < m->old.count) {
		const struct patch_child *child = &m->old.children[m->at_old];
		int c = str_cmp(child->name, name);

		if (c > 0)
			break;
		m->at_old++;
		if (c == 0)
			return child;
		merge_keep_child(m, *child);
	}
	return NULL;
}

/* Merges one member of the patch. If its value is an object, merging goes on with that one. */
static enum status
merge_member(struct patch_tree *t, struct merge_level **top)
{
	struct merge_level *m = *top;
	struct patch_child change = m->changes.children[m->at_change++];
	const struct patch_child *before = merge_keep_before(m, change.name);
	struct patch_node changes = change.node;
	enum patch_type type;

	if (patch_is_null(&change.node))
		return STATUS_OK;
	TRY(patch_type(&change.node, &type));
	if (type != PATCH_TYPE_OBJECT) {
		merge_keep_child(m, change);
		return STATUS_OK;
	}
	change.node = (struct patch_node){ .kind = PATCH_OBJECT };
	if (before)
		change.node = before->node;
	return merge_begin_object(t, &merge_keep_child(m, change)->node, changes, top);
}

enum status
patch_merge(struct patch_tree *t, struct patch_node *target, struct patch_node changes)
{
	struct merge_level *top = NULL;

	TRY(merge_begin_object(t, target, changes, &top));
	while (top) {
		TRY(step_count(MERGE_MEMBER_STEPS));
		if (top->at_change < top->changes.count) {
			TRY(merge_member(t, &top));
			continue;
		}
		while (top->at_old < top->old.count)
			merge_keep_child(top, top->old.children[top->at_old++]);
		*top->target = top->result;
		top = top->outer;
	}
	return STATUS_OK;
}
