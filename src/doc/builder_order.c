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

static void
builder_sort_members(struct builder_member *members, size_t count)
{
	if (count > INSERTION_SORT_MEMBERS) {
		qsort(members, count, sizeof(*members), member_qsort_cmp);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		struct builder_member m = members[i];
		size_t at = i;

		for (; at && member_cmp(&m, &members[at - 1]) < 0; at--)
			members[at] = members[at - 1];
		members[at] = m;
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

/* Puts an object's members and their items in order; `*ret_count`: the members that remain. */
static enum status
builder_order_members(struct doc_builder *b, const struct builder_frame *f, size_t *ret_count)
{
	struct builder_member *members = builder_member(b, f->member);
	size_t count = b->members.count - f->member;
	char *items = b->packing ? b->text.ptr : b->leaves.items;
	size_t item = builder_item_bytes(b);
	size_t moved = 0;

	if (!list_reserve(&b->moved, 1, (builder_items(b) - f->begin) * item))
		return builder_fail_memory(b);
	builder_sort_members(members, count);
	*ret_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (i + 1 < count && str_eq(members[i].name, members[i + 1].name)) {
			TRY(builder_list_dropped(b, &members[i]));
			continue;
		}
		memcpy((char *)b->moved.items + moved * item, items + members[i].begin * item,
		       members[i].items * item);
		moved += members[i].items;
		++*ret_count;
	}
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
