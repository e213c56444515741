/*
 * Remembers where blocks begin, so that many changes of one collection in one transaction do not
 * look for the same blocks again. Each level has a sorted list of spans. A span is a part of the
 * order in which only one block begins, namely at the beginning of the span. All of it lies in the
 * item's arena. An item with a map needs no spans: the map tells where blocks begin.
 */
#include "model/timed/items/item_int.h"

enum {
	KNOWN_SPANS = 4096, /* of a level; more are not kept */
};

/* A block begins at `from`, and no other one behind that up to `to`, or at it. */
struct span {
	struct str from;
	struct str to;
	struct str key; /* of the block; NULL: it was not needed yet */
	bool counted;
	uint64_t entries; /* of the block; if counted */
};

struct timed_known {
	struct level {
		struct span *spans;
		size_t count, cap;
		size_t last; /* what level_find() has given last: mostly the next one, too */
	} levels[TIMED_HEIGHT_MOST + 1];
};

/* How many spans begin at the order or before it. */
static size_t
level_find(struct level *l, struct str order)
{
	size_t low = 0, high = l->count, last = l->last;

	if (last && last <= high && str_cmp(l->spans[last - 1].from, order) <= 0 &&
	    (last == high || str_cmp(order, l->spans[last].from) < 0))
		return last;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(l->spans[middle].from, order) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	l->last = low;
	return low;
}

static enum status
level_insert(struct timed_item *item, struct level *l, size_t at, struct span span)
{
	if (l->count == KNOWN_SPANS) {
		l->count = 0;
		return STATUS_OK;
	}
	l->spans = arena_grow(item->arena, l->spans, l->count, &l->cap, sizeof(*l->spans));
	if (!l->spans)
		return STATUS_LIMIT;
	memmove(&l->spans[at + 1], &l->spans[at], (l->count - at) * sizeof(*l->spans));
	l->spans[at] = span;
	l->count++;
	return STATUS_OK;
}

bool
timed_known_find(const struct timed_item *item, unsigned level, struct str order,
		 struct str *ret_from)
{
	struct level *l;
	size_t at;

	if (!item->known)
		return false;
	l = &item->known->levels[level];
	at = level_find(l, order);
	if (!at || str_cmp(order, l->spans[at - 1].to) > 0)
		return false;
	*ret_from = l->spans[at - 1].from;
	return true;
}

enum status
timed_known_add(struct timed_item *item, unsigned level, struct str from, struct str to)
{
	struct level *l;
	size_t at;

	if (!item->known)
		item->known = arena_zalloc(item->arena, sizeof(*item->known));
	if (!item->known)
		return STATUS_LIMIT;
	l = &item->known->levels[level];
	at = level_find(l, from);
	if (!at || !str_eq(l->spans[at - 1].from, from))
		return level_insert(item, l, at, (struct span){ .from = from, .to = to });
	if (str_cmp(to, l->spans[at - 1].to) > 0)
		l->spans[at - 1].to = to;
	return STATUS_OK;
}

/* The span that begins there, or NULL. */
static struct span *
span_at(const struct timed_item *item, unsigned level, struct str from)
{
	struct level *l;
	size_t at;

	if (!item->known)
		return NULL;
	l = &item->known->levels[level];
	at = level_find(l, from);
	return at && str_eq(l->spans[at - 1].from, from) ? &l->spans[at - 1] : NULL;
}

bool
timed_known_count(const struct timed_item *item, unsigned level, struct str from, uint64_t *ret)
{
	const struct span *span = span_at(item, level, from);

	if (!span || !span->counted)
		return false;
	*ret = span->entries;
	return true;
}

void
timed_known_set_count(struct timed_item *item, unsigned level, struct str from, uint64_t entries)
{
	struct span *span = span_at(item, level, from);

	if (!span)
		return;
	span->counted = true;
	span->entries = entries;
}

struct str *
timed_known_change(struct timed_item *item, unsigned level, struct str from, int64_t change)
{
	struct span *span = span_at(item, level, from);

	if (!span)
		return NULL;
	span->entries += (uint64_t)change;
	return &span->key;
}

enum status
timed_known_divide(struct timed_item *item, unsigned level, struct str order)
{
	struct span span = { .from = order, .to = order };
	struct level *l;
	size_t at;

	if (!item->known)
		return STATUS_OK;
	l = &item->known->levels[level];
	at = level_find(l, order);
	if (at && str_cmp(order, l->spans[at - 1].to) <= 0) {
		span.to = l->spans[at - 1].to;
		l->spans[at - 1].to = order; /* who asks for `order` finds the span behind */
	}
	return level_insert(item, l, at, span);
}

void
timed_known_join(struct timed_item *item, unsigned level, struct str former, struct str order)
{
	struct span *into, *gone = span_at(item, level, order);
	struct level *l;

	if (!gone)
		return;
	l = &item->known->levels[level];
	into = span_at(item, level, former);
	if (into && str_cmp(order, into->to) <= 0 && str_cmp(into->to, gone->to) < 0)
		into->to = gone->to;
	l->count--;
	memmove(gone, gone + 1, (size_t)(&l->spans[l->count] - gone) * sizeof(*gone));
	l->last = 0;
}
