#include "doc/patch_int.h"

/* Takes members of both sides in the order of their names. */
struct merging {
	struct patch_tree *t;
	const struct patch_node *old;
	size_t at; /* in `old` */
	struct patch_node result;
};

static bool
is_null(const struct patch_node *node)
{
	struct tuple_reader r;
	struct tuple_elem e;

	if (node->kind != PATCH_RUN || node->leaves[0].key.len != node->skip)
		return false;
	r = tuple_reader(node->leaves[0].value);
	return tuple_next(&r, &e) == STATUS_OK && e.kind == TUPLE_NULL;
}

/* One member of the patch, after the old ones before it. */
static enum status
merge_member(struct merging *m, struct patch_child *change)
{
	const struct patch_child *before = NULL;
	enum patch_type type;

	while (m->at < m->old->count) {
		const struct patch_child *child = &m->old->children[m->at];
		int c = str_cmp(child->name, change->name);

		if (c > 0)
			break;
		m->at++;
		if (c == 0) {
			before = child;
			break;
		}
		m->result.children[m->result.count++] = *child;
	}
	if (is_null(&change->node))
		return STATUS_OK;
	TRY(patch_type(&change->node, &type));
	if (type == PATCH_TYPE_OBJECT) {
		struct patch_node target = { .kind = PATCH_OBJECT };

		if (before)
			target = before->node;
		TRY(patch_merge(m->t, &target, &change->node));
		change->node = target;
	}
	m->result.children[m->result.count++] = *change;
	return STATUS_OK;
}

/*
 * Calls itself for members that are objects on both sides, no deeper than a patch's text may nest.
 * What takes room on the stack is in other files for that reason.
 */
enum status
patch_merge(struct patch_tree *t, struct patch_node *target, struct patch_node *changes)
{
	struct merging m = { .t = t, .old = target, .result = { .kind = PATCH_OBJECT } };
	enum patch_type type;

	TRY(patch_type(target, &type));
	if (type != PATCH_TYPE_OBJECT)
		*target = (struct patch_node){ .kind = PATCH_OBJECT };
	TRY(patch_open(t, target));
	TRY(patch_open(t, changes));
	m.result.cap = target->count + changes->count;
	TRY(patch_work(t, m.result.cap));
	m.result.children = arena_alloc(t->arena, m.result.cap * sizeof(*m.result.children));
	if (!m.result.children)
		return patch_fail_memory(t);
	for (size_t i = 0; i < changes->count; i++)
		TRY(merge_member(&m, &changes->children[i]));
	while (m.at < target->count)
		m.result.children[m.result.count++] = target->children[m.at++];
	*target = m.result;
	return STATUS_OK;
}
