#include "doc/builder_int.h"

#include <assert.h>

#include <stdlib.h>

#include "base/mem.h"
#include "loop/step.h"

/*
 * When an object ends and its members did not come in order, this file sorts them by name and moves
 * their items (leaves, or bytes of the packed text), which lie member by member, accordingly. Of
 * members with equal names it drops all but the last, with all their items, and lists the stretches
 * between the caller's marks that belong to them.
 */

enum {
	INSERTION_SORT_MEMBERS = 16,
	DROPPED_FIRST = 8,
	MOVED_BYTES_A_STEP = 512,
};

bool
list_grow(struct list *l, size_t item_bytes, size_t first_cap)
{
	size_t cap = l->cap ? l->cap * 2 : first_cap;
	void *items = mem_realloc(l->items, cap * item_bytes);

	if (!items)
		return false;
	l->items = items;
	l->cap = cap;
	return true;
}

enum status
builder_fail_memory(struct doc_builder *b)
{
	return err_set(b->options.err, STATUS_NOMEM, "no memory for taking the document apart");
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

/* Equal names: as they came. */
static int
member_cmp(const struct builder_member *a, const struct builder_member *b)
{
	int c;

	if (a->name_start != b->name_start)
		return a->name_start < b->name_start ? -1 : 1;
	c = str_cmp(a->name, b->name);
	return c ? c : (a->begin > b->begin) - (a->begin < b->begin);
}

/* qsort() has its memory on the heap or on this fiber's stack, so other fibers may run. */
static int
member_qsort_cmp(const void *a, const void *b)
{
	step_pause(1);
	return member_cmp(a, b);
}

/* A member in its order, while few are sorted: they stay where they are. */
struct member_place {
	uint64_t name_start; /* the member's */
	const struct builder_member *member;
};

static void
builder_sort_few(const struct builder_member *members, size_t count, struct member_place *ret)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t start = members[i].name_start;
		size_t at = i;

		for (; at && start <= ret[at - 1].name_start; at--) {
			if (start == ret[at - 1].name_start &&
			    member_cmp(&members[i], ret[at - 1].member) > 0)
				break;
			ret[at] = ret[at - 1];
		}
		ret[at] = (struct member_place){ start, &members[i] };
	}
}

/* The first eight bytes of a name, or zeros behind it, as a number that is ordered as they are. */
static uint64_t
builder_name_start(struct str name)
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
 * Sets the members' names and the ends of their items and marks. `*ret_sorted` is true if the
 * members came in ascending order of their names, none twice.
 */
static void
builder_finish_members(struct doc_builder *b, const struct builder_frame *f, size_t mark,
		       bool *ret_sorted)
{
	size_t end = builder_items(b);

	*ret_sorted = true;
	for (size_t i = b->members.count; i-- > f->member;) {
		struct builder_member *m = builder_member(b, i);

		/* Items lie member by member, and so do the marks. */
		assert(m->begin <= end && m->mark <= mark);
		m->items = end - m->begin;
		end = m->begin;
		m->mark_end = mark;
		mark = m->mark;
		if (!b->packing) /* behind the type code */
			m->name.ptr = builder_leaf(b, m->begin)->key.ptr + f->path_bytes + 1;
		m->name_start = builder_name_start(m->name);
		if (*ret_sorted && i + 1 < b->members.count) {
			const struct builder_member *next = m + 1;

			*ret_sorted = m->name_start < next->name_start ||
				      (m->name_start == next->name_start &&
				       str_cmp(m->name, next->name) < 0);
		}
	}
}

static enum status
builder_list_dropped(struct doc_builder *b, const struct builder_member *dropped)
{
	struct doc_span *span = list_add(&b->dropped, sizeof(*span), DROPPED_FIRST);

	if (!span)
		return builder_fail_memory(b);
	*span = (struct doc_span){ dropped->mark, dropped->mark_end };
	return STATUS_OK;
}

/* Moves the items of the next member in order, unless the one behind it has the same name. */
static inline enum status
builder_move_member(struct doc_builder *b, const struct builder_member *m,
		    const struct builder_member *next, const char *items, size_t *moved)
{
	size_t item = builder_item_bytes(b);

	if (next && next->name_start == m->name_start && str_eq(next->name, m->name))
		return builder_list_dropped(b, m);
	memcpy((char *)b->moved.items + *moved * item, items + m->begin * item, m->items * item);
	*moved += m->items;
	return STATUS_OK;
}

static enum status
builder_move_few(struct doc_builder *b, const struct builder_member *members, size_t count,
		 const char *items, size_t *moved)
{
	struct member_place places[INSERTION_SORT_MEMBERS];

	builder_sort_few(members, count, places);
	for (size_t i = 0; i + 1 < count; i++)
		TRY(builder_move_member(b, places[i].member, places[i + 1].member, items, moved));
	return builder_move_member(b, places[count - 1].member, NULL, items, moved);
}

static enum status
builder_move_many(struct doc_builder *b, struct builder_member *members, size_t count,
		  const char *items, size_t *moved)
{
	qsort(members, count, sizeof(*members), member_qsort_cmp);
	for (size_t i = 0; i + 1 < count; i++)
		TRY(builder_move_member(b, &members[i], &members[i + 1], items, moved));
	return builder_move_member(b, &members[count - 1], NULL, items, moved);
}

/* Puts an object's members and their items in order; `*ret_count`: the members that remain. */
static enum status
builder_order_members(struct doc_builder *b, const struct builder_frame *f, size_t *ret_count)
{
	struct builder_member *members = builder_member(b, f->member);
	size_t count = b->members.count - f->member;
	char *items = b->packing ? b->text.ptr : b->leaves.items;
	size_t item = builder_item_bytes(b);
	size_t dropped = b->dropped.count;
	size_t moved = 0;

	if (!list_reserve(&b->moved, 1, (builder_items(b) - f->begin) * item))
		return builder_fail_memory(b);
	if (count > INSERTION_SORT_MEMBERS)
		TRY(builder_move_many(b, members, count, items, &moved));
	else
		TRY(builder_move_few(b, members, count, items, &moved));
	*ret_count = count - (b->dropped.count - dropped);
	if (moved)
		memcpy(items + f->begin * item, b->moved.items, moved * item);
	if (b->packing)
		b->text.len = f->begin + moved;
	else
		b->leaves.count = f->begin + moved;
	/* Objects inside each other move what is inside of them again and again. */
	return step_count((uint32_t)(moved * item / MOVED_BYTES_A_STEP));
}

enum status
builder_order(struct doc_builder *b, const struct builder_frame *f, size_t mark, size_t *ret_count)
{
	size_t count = b->members.count - f->member;
	bool sorted;

	builder_finish_members(b, f, mark, &sorted);
	if (!sorted)
		TRY(builder_order_members(b, f, &count));
	b->members.count = f->member;
	*ret_count = count;
	return STATUS_OK;
}
