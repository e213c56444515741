/* Which members of a document a selector looks at. */

#include "index/selector/selector_int.h"
#include "loop/sort.h"

struct members {
	struct arena *arena;
	struct str *names;
	size_t count;
	size_t cap;
	bool whole; /* a condition has no path */
};

/* Conditions inside of $elemMatch and the like are about what lies below the same member. */
static enum status
members_collect(struct members *m, const struct selector_node *n)
{
	for (const struct selector_node *i = n->first; i; i = i->next)
		TRY(members_collect(m, i));
	if (n->kind != SELECTOR_FIELD)
		return STATUS_OK;
	if (!n->path.count) {
		m->whole = true;
		return STATUS_OK;
	}
	TRY(arena_room(m->arena, &m->names, m->count, &m->cap, sizeof(*m->names)));
	m->names[m->count++] = n->path.names[0].text;
	return STATUS_OK;
}

enum status
selector_members(const struct selector *s, struct arena *arena, struct str **ret, size_t *ret_count,
		 bool *ret_whole)
{
	struct members m = { .arena = arena };
	size_t kept = 0;

	TRY(members_collect(&m, s->root));
	TRY(sort_strs(m.names, m.count, arena));
	for (size_t i = 0; i < m.count; i++) {
		if (i == 0 || !str_eq(m.names[i], m.names[kept - 1]))
			m.names[kept++] = m.names[i];
	}
	*ret = m.names;
	*ret_count = kept;
	*ret_whole = m.whole;
	return STATUS_OK;
}
