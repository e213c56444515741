#include "doc/explode_int.h"

#include <stdlib.h>

#include "base/mem.h"

/*
 * An object's members are sorted by name when it ends, if they did not come in order. Its items
 * (leaves, or the bytes of the packed text), which lie behind each other member by member, are
 * moved accordingly. Of equal names all but the last go, with all their items; their bytes in the
 * term are remembered as holes and closed at the end.
 */

enum {
	INSERTION_SORT_MEMBERS = 16,
	HOLES_FIRST = 8,
};

void *
explode_list_add(struct list *l, size_t item_bytes, size_t first_cap)
{
	if (l->count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : first_cap;
		void *items = mem_realloc(l->items, cap * item_bytes);

		if (!items)
			return NULL;
		l->items = items;
		l->cap = cap;
	}
	return (char *)l->items + l->count++ * item_bytes;
}

static bool
list_reserve(struct list *l, size_t item_bytes, size_t cap)
{
	void *items;

	if (l->cap >= cap)
		return true;
	items = mem_realloc(l->items, cap * item_bytes);
	if (!items)
		return false;
	l->items = items;
	l->cap = cap;
	return true;
}

enum status
explode_fail_memory(struct exploder *x)
{
	return err_set(x->err, STATUS_NOMEM, "no memory for taking the document apart");
}

/* Equal names: as they came. */
static int
member_cmp(const struct member *a, const struct member *b)
{
	int c;

	if (a->name_start != b->name_start)
		return a->name_start < b->name_start ? -1 : 1;
	c = str_cmp(a->name, b->name);
	return c ? c : (a->begin > b->begin) - (a->begin < b->begin);
}

static int
member_qsort_cmp(const void *a, const void *b)
{
	return member_cmp(a, b);
}

static void
sort_members(struct member *members, size_t count)
{
	if (count > INSERTION_SORT_MEMBERS) {
		qsort(members, count, sizeof(*members), member_qsort_cmp);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct member m = members[i];
		size_t at = i;

		for (; at && member_cmp(&m, &members[at - 1]) < 0; at--)
			members[at] = members[at - 1];
		members[at] = m;
	}
}

/* The first eight bytes of a name, or zeros behind it, as a number that is ordered as they are. */
static uint64_t
name_start(struct str name)
{
	uint64_t start = 0;
	uint32_t halves[2];

	if (name.len >= sizeof(start)) {
		memcpy(&start, name.ptr, sizeof(start));
		return be64toh(start);
	}
	if (name.len >= sizeof(halves[0])) {
		/* They overlap. */
		memcpy(&halves[0], name.ptr, sizeof(halves[0]));
		memcpy(&halves[1], name.ptr + name.len - sizeof(halves[1]), sizeof(halves[1]));
		return (uint64_t)be32toh(halves[0]) << 32 |
		       (uint64_t)be32toh(halves[1]) << 8 * (sizeof(start) - name.len);
	}
	for (size_t i = 0; i < name.len; i++)
		start |= (uint64_t)(uint8_t)name.ptr[i] << 8 * (sizeof(start) - 1 - i);
	return start;
}

/*
 * The members' names, and the ends of their stretches of items and term; `*ret_sorted` tells
 * whether they came in ascending order, none twice.
 */
static void
finish_members(struct exploder *x, const struct frame *f, bool *ret_sorted)
{
	size_t end = items_count(x);
	size_t term_end = x->term.len;

	*ret_sorted = true;
	for (size_t i = x->members.count; i-- > f->member;) {
		struct member *m = member_at(x, i);

		m->items = end - m->begin;
		end = m->begin;
		m->term_end = term_end;
		term_end = m->term;
		if (!x->packing) /* behind the type code */
			m->name.ptr = leaf_at(x, m->begin)->key.ptr + f->path_bytes + 1;
		m->name_start = name_start(m->name);
		if (*ret_sorted && i + 1 < x->members.count) {
			const struct member *next = m + 1;

			*ret_sorted = m->name_start < next->name_start ||
				      (m->name_start == next->name_start &&
				       str_cmp(m->name, next->name) < 0);
		}
	}
}

/* A dead member's pair leaves the term. */
static enum status
add_hole(struct exploder *x, const struct member *dead)
{
	struct hole *hole = explode_list_add(&x->holes, sizeof(*hole), HOLES_FIRST);

	if (!hole)
		return explode_fail_memory(x);
	*hole = (struct hole){ dead->term, dead->term_end };
	return STATUS_OK;
}

/* Puts an object's members and their items in order; `*ret_count`: the members that remain. */
static enum status
order_members(struct exploder *x, const struct frame *f, size_t *ret_count)
{
	struct member *members = member_at(x, f->member);
	size_t count = x->members.count - f->member;
	char *items = x->packing ? x->text.ptr : x->leaves.items;
	size_t item = item_bytes(x);
	size_t moved = 0;

	if (!list_reserve(&x->moved, 1, (items_count(x) - f->begin) * item))
		return explode_fail_memory(x);
	sort_members(members, count);
	*ret_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (i + 1 < count && str_eq(members[i].name, members[i + 1].name)) {
			TRY(add_hole(x, &members[i]));
			continue;
		}
		memcpy((char *)x->moved.items + moved * item, items + members[i].begin * item,
		       members[i].items * item);
		moved += members[i].items;
		++*ret_count;
	}
	if (moved)
		memcpy(items + f->begin * item, x->moved.items, moved * item);
	if (x->packing)
		x->text.len = f->begin + moved;
	else
		x->leaves.count = f->begin + moved;
	return STATUS_OK;
}

enum status
explode_order(struct exploder *x, const struct frame *f, size_t *ret_count)
{
	size_t count = x->members.count - f->member;
	bool sorted;

	finish_members(x, f, &sorted);
	if (!sorted)
		TRY(order_members(x, f, &count));
	x->members.count = f->member;
	*ret_count = count;
	return STATUS_OK;
}

static int
hole_cmp(const void *a, const void *b)
{
	const struct hole *ha = a;
	const struct hole *hb = b;

	return (ha->begin > hb->begin) - (ha->begin < hb->begin);
}

/* Holes may lie inside each other. */
struct str
explode_copy_term(struct exploder *x)
{
	struct hole *holes = x->holes.items;
	char *bytes = arena_bytes(x->arena, x->term.len);
	size_t from = 0;
	size_t to = 0;

	if (!bytes)
		return (struct str){ NULL, 0 };
	if (x->holes.count)
		qsort(holes, x->holes.count, sizeof(*holes), hole_cmp);
	for (size_t i = 0; i < x->holes.count; i++) {
		if (holes[i].begin > from) {
			memcpy(bytes + to, x->term.ptr + from, holes[i].begin - from);
			to += holes[i].begin - from;
		}
		if (holes[i].end > from)
			from = holes[i].end;
	}
	memcpy(bytes + to, x->term.ptr + from, x->term.len - from);
	return str_of(bytes, to + x->term.len - from);
}
