#include "mql/value_set.h"

#include <endian.h>
#include <math.h>

#include "mql/mql_int.h"
#include "mql/sort_values.h"

enum {
	/* Of a text: `first` has all bytes in front of it, so `second` may begin there. */
	TEXT_MORE_AT = 4,
	RANK_BITS = 5, /* of the bits that order values; the rest is for values of one rank */
};

/* What the comparison of two elements needs. */
struct set_order {
	const char *end; /* of the array */
	const struct bson_texts *texts;
};

/*
 * An element while the set is sorted. Values are ordered by `first` where that differs, and else by
 * `second`, which saves reading them from the array again for nearly all comparisons.
 */
struct set_item {
	uint64_t first, second;
	const char *place;
};

/* Reads the element at a place that a set has, which has been read before. */
static struct bson_value
value_at(const void *place, const char *end)
{
	struct bson_iter i = { .at = place, .end = end };
	struct bson_element e;
	bool is_there = bson_iter_read(&i, &e);

	assert(is_there);
	return is_there ? e.value : BSON_OF_NULL;
}

/* Bits in the order of the numbers. Equal numbers have equal bits, and NaN has the least. */
static uint64_t
number_bits(double d)
{
	const uint64_t sign = UINT64_C(1) << 63;
	uint64_t bits;

	if (isnan(d))
		return 0;
	if (d == 0)
		d = 0; /* which -0.0 is equal to */
	memcpy(&bits, &d, sizeof(bits));
	return bits & sign ? ~bits : bits | sign;
}

/* The bytes from `at` on; beyond its end a text has zeros. */
static uint64_t
text_bits(struct str text, size_t at)
{
	size_t left = text.len > at ? text.len - at : 0;
	uint64_t bits = 0;

	if (left)
		memcpy(&bits, text.ptr + at, left < sizeof(bits) ? left : sizeof(bits));
	return be64toh(bits);
}

/* Of a value that comes before another one both are never more, and of equal ones the same. */
static void
item_set_bits(struct set_item *item, const struct bson_value *v, const struct bson_texts *texts)
{
	uint64_t bits = 0, more = 0;

	switch ((int)v->type) {
	case BSON_INT32:
	case BSON_INT64:
	case BSON_DOUBLE:
	case BSON_DECIMAL:
		bits = more = number_bits(bson_to_double(v));
		break;
	case BSON_STRING:
	case BSON_SYMBOL:
		if (texts)
			break;
		bits = text_bits(bson_text(v), 0);
		more = text_bits(bson_text(v), TEXT_MORE_AT);
		break;
	case BSON_OBJECT_ID:
		bits = text_bits(bson_text(v), 0);
		more = text_bits(bson_text(v), TEXT_MORE_AT);
		break;
	case BSON_DATE:
		bits = more = (uint64_t)bson_integer(v) ^ UINT64_C(1) << 63;
		break;
	default:
		break;
	}
	item->first = (uint64_t)bson_type_rank(v->type) << (64 - RANK_BITS) | bits >> RANK_BITS;
	item->second = more;
}

static int
compare_at(const void *a, const void *b, const struct set_order *order)
{
	const struct bson_value left = value_at(a, order->end), right = value_at(b, order->end);

	return bson_compare_values(&left, &right, order->texts);
}

static int
compare_items(const void *a, const void *b, const void *order)
{
	const struct set_item *left = a, *right = b;

	if (left->first != right->first)
		return left->first > right->first ? 1 : -1;
	if (left->second != right->second)
		return left->second > right->second ? 1 : -1;
	return compare_at(left->place, right->place, order);
}

static int
compare_places(const void *a, const void *b, const void *arg)
{
	uintptr_t left = (uintptr_t)a, right = (uintptr_t)b;

	(void)arg;
	return (left > right) - (left < right);
}

/* Lists the elements of the array as items, for which there is room. */
static enum status
items_list(struct mql_value_set *s, struct str array, const struct bson_texts *texts,
	   struct set_item *items)
{
	struct bson_iter i;
	struct bson_element e;

	bson_iter_begin(&i, array);
	s->end = i.end;
	while (bson_iter_read(&i, &e)) {
		struct set_item *item = &items[s->all_count];

		TRY(step_count_bytes(e.bytes.len));
		*item = (struct set_item){ .place = e.bytes.ptr };
		item_set_bits(item, &e.value, texts);
		s->places[s->all_count++] = item;
		if ((unsigned)e.value.type < 32)
			s->types |= UINT32_C(1) << (unsigned)e.value.type;
	}
	return STATUS_OK;
}

/*
 * Keeps the places of the first of equal values: sorting has left those in the order of the array.
 * The items that were sorted are where the places are going to be, none of which is written before
 * the item there has been used.
 */
static enum status
items_keep_first(struct mql_value_set *s, const struct set_order *order)
{
	const struct set_item *last = NULL;

	for (size_t n = 0; n < s->all_count; n++) {
		const struct set_item *item = s->places[n];

		TRY(step_count(1));
		if (!last || compare_items(last, item, order) != 0)
			s->places[s->count++] = item->place;
		last = item;
	}
	return STATUS_OK;
}

enum status
mql_value_set_of(struct mql *q, struct str array, const struct bson_texts *texts,
		 struct mql_value_set *ret)
{
	struct set_order order = { .texts = texts };
	struct mql_value_set s = { 0 };
	struct set_item *items;
	struct arena_mark mark;
	size_t room;

	TRY(step_count_bytes(array.len));
	room = bson_count(array) + 1;
	s.places = arena_alloc(q->arena, room * sizeof(*s.places));
	mark = arena_mark(q->arena);
	items = arena_alloc(q->arena, room * sizeof(*items));
	if (!s.places || !items)
		return mql_full(q);
	TRY(items_list(&s, array, texts, items));
	order.end = s.end;
	TRY(mql_sort(q, s.places, s.all_count, compare_items, &order));
	TRY(items_keep_first(&s, &order));
	assert(s.count <= s.all_count && s.all_count < room);
	arena_reset(q->arena, mark);
	*ret = s;
	return STATUS_OK;
}

struct bson_value
mql_value_set_at(const struct mql_value_set *s, size_t i)
{
	assert(i < s->count);
	return value_at(s->places[i], s->end);
}

bool
mql_value_set_find(const struct mql_value_set *s, const struct bson_texts *texts,
		   const struct bson_value *v, size_t *ret)
{
	size_t from = 0, to = s->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct bson_value at = mql_value_set_at(s, middle);
		int order = bson_compare_values(v, &at, texts);

		if (!order) {
			*ret = middle;
			return true;
		}
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return false;
}

enum status
mql_value_set_copy(struct mql *q, const struct mql_value_set *s, struct mql_value_set *ret)
{
	size_t bytes = s->count * sizeof(*s->places);
	const void **places = arena_alloc(q->arena, bytes);

	if (!places)
		return mql_full(q);
	TRY(step_count_bytes(bytes));
	if (bytes)
		memcpy(places, s->places, bytes);
	*ret = *s;
	ret->places = places;
	return STATUS_OK;
}

enum status
mql_value_set_by_place(struct mql *q, struct mql_value_set *s)
{
	return mql_sort(q, s->places, s->count, compare_places, NULL);
}
