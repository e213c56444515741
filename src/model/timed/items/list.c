/*
 * Lists: (body, ORDER, position) → element.
 *
 * A position is a number of eight bytes, and behind it any count of numbers of four, all
 * big-endian. There is room between two positions at the ends of a list, so pushing at one end
 * conflicts only with whoever uses that end. Between two elements a new one takes a number between
 * theirs, not too far from the one that has more numbers, since whoever inserts here once often
 * does so again; where none is left, it gets one number more than its neighbour.
 */
#include <assert.h>
#include <endian.h>

#include "model/timed/items/ends.h"

enum {
	FIRST_BYTES = 8,
	MORE_BYTES = 4,
	/* Of a pair, likely: runs end with transactions, and where blocks begin. */
	LIKELY_ELEMENTS = TIMED_RUN_ELEMENTS / 2,
	POP_AHEAD = 63, /* elements that a pop reads beyond its own, at most */
};

#define LIST_MIDDLE (UINT64_C(1) << 63) /* of the first number */
#define MORE_MIDDLE (UINT64_C(1) << 31)
#define MORE_END    (UINT64_C(1) << 32)

/* ---- Positions ---- */

/* The last number of a position, and how many bytes are before it. */
static uint64_t
place_last(struct str place, size_t *ret_before)
{
	uint64_t first;
	uint32_t more;

	if (place.len == FIRST_BYTES) {
		*ret_before = 0;
		memcpy(&first, place.ptr, sizeof(first));
		return be64toh(first);
	}
	*ret_before = place.len - MORE_BYTES;
	memcpy(&more, place.ptr + *ret_before, sizeof(more));
	return be32toh(more);
}

static bool
place_is_good(struct str place)
{
	return place.len >= FIRST_BYTES && (place.len - FIRST_BYTES) % MORE_BYTES == 0 &&
	       place.len <= TIMED_PLACE_BYTES;
}

/* The numbers of `before`, and one more: the first, or one of the others. */
static enum status
place_make(struct timed_item *item, struct str before, uint64_t number, struct str *ret)
{
	struct buf place = timed_arena_buf(item->arena, before.len + FIRST_BYTES);
	uint64_t first = htobe64(number);
	uint32_t more = htobe32((uint32_t)number);

	if (before.len + MORE_BYTES > TIMED_PLACE_BYTES)
		return err_set(item->t->err, STATUS_LIMIT,
			       "too many elements were inserted between two others: a position has "
			       "at most %d bytes (TIMED_PLACE_BYTES)",
			       TIMED_PLACE_BYTES);
	buf_append_str(&place, before);
	if (before.len)
		buf_append(&place, &more, sizeof(more));
	else
		buf_append(&place, &first, sizeof(first));
	*ret = buf_str(&place);
	return buf_status(&place);
}

/* A position between two others, the first of which has at least as many numbers. */
static enum status
place_behind(struct timed_item *item, struct str a, struct str b, struct str *ret)
{
	size_t before, b_before;
	uint64_t number = place_last(a, &before);
	uint64_t end = before ? MORE_END : UINT64_MAX;
	uint64_t room;

	if (b.len == a.len && memcmp(a.ptr, b.ptr, before) == 0)
		end = place_last(b, &b_before);
	room = (end - number) / 2;
	if (!room)
		return place_make(item, a, MORE_MIDDLE, ret);
	return place_make(item, str_of(a.ptr, before),
			  number + (room < TIMED_PLACE_STEP ? room : TIMED_PLACE_STEP), ret);
}

/* The same where the second has more numbers. No last number is 0, so there is room before it. */
static enum status
place_before(struct timed_item *item, struct str b, struct str *ret)
{
	size_t before;
	uint64_t number = place_last(b, &before);
	uint64_t room = number / 2;
	struct str zero;

	if (room)
		return place_make(item, str_of(b.ptr, before),
				  number - (room < TIMED_PLACE_STEP ? room : TIMED_PLACE_STEP),
				  ret);
	TRY(place_make(item, str_of(b.ptr, before), 0, &zero));
	return place_make(item, zero, MORE_MIDDLE, ret);
}

/* A position beyond the element at that end; `end` is empty if there is none. */
static enum status
place_beyond(struct timed_item *item, struct str end, bool left, struct str *ret)
{
	uint64_t number;
	size_t before;

	if (!end.len)
		return place_make(item, STR(""), LIST_MIDDLE, ret);
	number = place_last(str_of(end.ptr, FIRST_BYTES), &before);
	return place_make(item, STR(""),
			  left ? number - TIMED_PLACE_STEP : number + TIMED_PLACE_STEP, ret);
}

/* ---- Reading ---- */

/* Going through pairs, of which some have many elements. */
struct pairs {
	struct timed_cursor scan;
	uint64_t wanted; /* elements, with those that are to be left out */
	size_t first;    /* pairs that were asked for at first */
	size_t seen;
};

static void
pairs_close(struct pairs *p)
{
	timed_cursor_close(&p->scan);
}

static enum status
pairs_open(struct timed_item *item, struct str begin, struct str end, uint64_t wanted, bool reverse,
	   struct pairs *ret)
{
	struct kv_range_options options = { .reverse = reverse };

	if (wanted < SIZE_MAX)
		options.limit = wanted;
	*ret = (struct pairs){ .wanted = wanted, .first = options.limit / LIKELY_ELEMENTS + 2 };
	return timed_cursor_open_few(&ret->scan, item->t, begin, end, &options, ret->first);
}

/* `got`: so many elements were in the pairs so far. */
static enum status
pairs_next(struct pairs *p, uint64_t got, struct kv_pair *ret)
{
	uint64_t left = p->wanted - got;

	/* Twice as many as what has come tells of: one more stretch costs more than their half. */
	if (p->seen++ == p->first && got && left < UINT32_MAX)
		timed_cursor_expect(&p->scan, (size_t)(2 * left * p->first / got));
	return timed_cursor_next(&p->scan, ret);
}

struct elements_wanted {
	uint64_t skip;
	size_t count;
	bool reverse;
	size_t load; /* of so many of them also what is in pieces */
	bool beside; /* look at the pair behind them, for item->rest */
};

static enum status
elements_add(struct timed_item *item, const struct timed_element *e, struct timed_elements *ret,
	     size_t *cap)
{
	ret->elements = arena_grow(item->arena, ret->elements, ret->count, cap,
				   sizeof(*ret->elements));
	if (!ret->elements || !e->value.ptr)
		return STATUS_LIMIT;
	ret->elements[ret->count++] = *e;
	return STATUS_OK;
}

/* Takes an element that is alone in its pair. */
static enum status
element_take(struct timed_item *item, const struct kv_pair *pair, bool load,
	     struct timed_elements *ret, size_t *cap)
{
	struct timed_element e = { 0 };
	struct timed_leaf_record leaf;

	TRY(timed_key_tail(item, pair->key, 1, &e.place));
	if (!place_is_good(e.place))
		return timed_item_corrupt(item);
	TRY(timed_leaf_read(item, pair->value, &leaf));
	if (load)
		TRY(timed_leaf_load(item, &leaf));
	e.pieces = leaf.pieces;
	e.value = leaf.pieces.there ? leaf.value : arena_dup(item->arena, leaf.value);
	e.write_us = leaf.write_us;
	return elements_add(item, &e, ret, cap);
}

/* Reads the run that a pair is. `value`: of the pair, for as long as the run is used. */
static enum status
run_read(struct timed_item *item, struct str key, struct str value, struct timed_run *ret)
{
	TRY(timed_key_tail(item, key, 1, &ret->place));
	if (ret->place.len != FIRST_BYTES || timed_run_parse(value, ret) != STATUS_OK)
		return timed_item_corrupt(item);
	return STATUS_OK;
}

/* Takes elements of a run, but for the first `*skip` of the list or of its part. */
static enum status
run_take(struct timed_item *item, const struct kv_pair *pair, const struct elements_wanted *wanted,
	 uint64_t *skip, struct timed_elements *ret, size_t *cap)
{
	struct timed_run *run = arena_alloc(item->arena, sizeof(*run));
	struct str value = arena_dup(item->arena, pair->value);

	if (!run || !value.ptr)
		return STATUS_LIMIT;
	TRY(run_read(item, pair->key, value, run));
	for (unsigned i = 0; i < run->count && ret->count < wanted->count; i++) {
		struct timed_element e = { .run = run, .write_us = run->write_us };

		if (*skip) {
			--*skip;
			continue;
		}
		e.nth = run->leftwards == wanted->reverse ? i : run->count - 1 - i;
		e.value = run->values[e.nth];
		TRY(timed_run_place(item, run, e.nth, &e.place));
		TRY(elements_add(item, &e, ret, cap));
	}
	return STATUS_OK;
}

/* Notes the pair behind those that were read as one that is there. */
static enum status
beside_read(struct timed_item *item, struct pairs *pairs, uint64_t got)
{
	struct kv_pair pair;

	TRY(pairs_next(pairs, got, &pair));
	item->rest = arena_dup(item->arena, pair.key);
	return item->rest.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* At most `count` elements between two keys, but for the first `skip`. */
static enum status
elements_read(struct timed_item *item, struct str begin, struct str end,
	      const struct elements_wanted *wanted, struct timed_elements *ret)
{
	AUTO(pairs_close) struct pairs pairs = { 0 };
	enum status status = STATUS_NOT_FOUND;
	uint64_t skip = wanted->skip, pairs_wanted = SIZE_MAX;
	struct kv_pair pair;
	size_t cap = 0;

	*ret = (struct timed_elements){ 0 };
	if (!wanted->count)
		return STATUS_OK;
	if (wanted->count < SIZE_MAX - skip - 1)
		pairs_wanted = skip + wanted->count + wanted->beside;
	TRY(pairs_open(item, begin, end, pairs_wanted, wanted->reverse, &pairs));
	while (ret->count < wanted->count &&
	       (status = pairs_next(&pairs, wanted->skip - skip + ret->count, &pair)) ==
		       STATUS_OK) {
		if (timed_is_run(pair.value))
			TRY(run_take(item, &pair, wanted, &skip, ret, &cap));
		else if (skip)
			skip--;
		else
			TRY(element_take(item, &pair, ret->count < wanted->load, ret, &cap));
	}
	assert(ret->count <= wanted->count);
	if (status == STATUS_OK && wanted->beside)
		status = beside_read(item, &pairs, wanted->skip - skip + ret->count);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
list_bounds(struct timed_item *item, struct str *ret_begin, struct str *ret_end)
{
	TRY(timed_part_key(item, TIMED_PART_ORDER, ret_begin));
	return timed_part_key(item, TIMED_PART_BLOCKS, ret_end);
}

/* Where to read from for the element of an index: `*ret_skip` elements behind the first key. */
static enum status
list_find(struct timed_item *item, uint64_t index, struct str *ret_begin, struct str *ret_end,
	  uint64_t *ret_skip)
{
	uint64_t before;
	struct str order;

	TRY(timed_blocks_find(item, index, &order, &before));
	assert(before <= index);
	*ret_skip = index - before;
	TRY(list_bounds(item, ret_begin, ret_end));
	return timed_order_key(item, order, ret_begin);
}

enum status
timed_list_range(struct timed_item *item, uint64_t from, size_t count, struct timed_elements *ret)
{
	struct elements_wanted wanted = { .count = count, .load = count };
	struct str begin, end;

	*ret = (struct timed_elements){ 0 };
	if (item->type == TIMED_LEAF || !count)
		return STATUS_OK;
	TRY(list_find(item, from, &begin, &end, &wanted.skip));
	return elements_read(item, begin, end, &wanted, ret);
}

/* Tells the value of an element that is alone in its pair. */
static enum status
element_tell(struct timed_item *item, struct str value, const struct timed_values *to)
{
	struct arena_mark mark = arena_mark(item->arena);
	struct timed_leaf_record leaf;

	TRY(timed_leaf_read(item, value, &leaf));
	TRY(timed_leaf_load(item, &leaf));
	to->fn(to->arg, leaf.value);
	if (leaf.pieces.there)
		arena_reset(item->arena, mark);
	return STATUS_OK;
}

/* Tells the values of a run between two places among its elements, in the list's order. */
static enum status
run_tell(struct timed_item *item, struct str value, uint64_t *skip, uint64_t left,
	 const struct timed_values *to, uint64_t *told)
{
	struct timed_run run;
	unsigned n;

	if (timed_run_parse(value, &run) != STATUS_OK)
		return timed_item_corrupt(item);
	n = *skip < run.count ? (unsigned)*skip : run.count;
	*skip -= n;
	for (; n < run.count && left; n++, left--, ++*told)
		to->fn(to->arg, run.values[run.leftwards ? run.count - 1 - n : n]);
	return STATUS_OK;
}

enum status
timed_list_values(struct timed_item *item, uint64_t from, uint64_t count,
		  const struct timed_values *to, uint64_t *ret_count)
{
	AUTO(pairs_close) struct pairs pairs = { 0 };
	enum status status = STATUS_NOT_FOUND;
	uint64_t skip, skipped;
	struct str begin, end;
	struct kv_pair pair;

	*ret_count = 0;
	if (item->type == TIMED_LEAF || !count)
		return STATUS_OK;
	TRY(list_find(item, from, &begin, &end, &skip));
	skipped = skip;
	TRY(pairs_open(item, begin, end, count < SIZE_MAX - skip ? skip + count : SIZE_MAX, false,
		       &pairs));
	while (*ret_count < count &&
	       (status = pairs_next(&pairs, skipped - skip + *ret_count, &pair)) == STATUS_OK) {
		if (timed_is_run(pair.value)) {
			TRY(run_tell(item, pair.value, &skip, count - *ret_count, to, ret_count));
		} else if (skip) {
			skip--;
		} else {
			TRY(element_tell(item, pair.value, to));
			++*ret_count;
		}
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- Writing ---- */

static enum status
element_write(struct timed_item *item, struct str place, struct str value)
{
	struct timed_leaf_record leaf = { .write_us = timed_write_us(item->t), .value = value };
	struct str key;

	TRY(timed_order_key(item, place, &key));
	return timed_leaf_write(item, key, &leaf);
}

static enum status
check_element(struct timed_item *item, struct str value)
{
	return timed_leaf_check(item, value.len, "an element");
}

static enum status
end_read(struct timed_item *item, bool left, struct str *ret)
{
	const struct kv_range_options options = { .limit = 1, .reverse = !left };
	struct str begin, end;
	struct timed_one one;
	struct kv_pair pair;
	enum status status;

	TRY(list_bounds(item, &begin, &end));
	TRY(timed_one_ask(item->t, begin, end, &options, &one));
	status = timed_one_wait(item->t, &one, item->arena, &pair);
	if (status == STATUS_NOT_FOUND)
		return timed_item_corrupt(item);
	TRY(status);
	if (timed_is_run(pair.value)) {
		struct timed_run run;

		TRY(run_read(item, pair.key, pair.value, &run));
		return timed_run_place(item, &run, run.leftwards == left ? run.count - 1 : 0, ret);
	}
	TRY(timed_key_tail(item, pair.key, 1, ret));
	return place_is_good(*ret) ? STATUS_OK : timed_item_corrupt(item);
}

/* The place at that end of a list that is there: read once in a transaction. */
static enum status
end_find(struct timed_item *item, bool left, struct str *ret)
{
	if (!item->ends[!left].ptr)
		TRY(end_read(item, left, &item->ends[!left]));
	*ret = item->ends[!left];
	return STATUS_OK;
}

static void
ends_forget(struct timed_item *item)
{
	item->ends[0] = item->ends[1] = (struct str){ NULL, 0 };
	item->pushed = NULL;
}

enum status
timed_list_push(struct timed_item *item, bool left, const struct str *values, size_t count)
{
	struct str place = STR("");

	for (size_t i = 0; i < count; i++)
		TRY(check_element(item, values[i]));
	if (!count)
		return STATUS_OK;
	if (item->type == TIMED_LEAF) {
		TRY(timed_item_renew(item, TIMED_LIST));
		TRY(timed_item_store(item));
	} else {
		TRY(end_find(item, left, &place));
	}
	TRY(timed_item_touch(item));
	for (size_t i = 0; i < count; i++) {
		struct str end = place;

		TRY(place_beyond(item, end, left, &place));
		assert(!end.len || (str_cmp(place, end) < 0) == left);
		TRY(timed_run_push(item, left, end, place, values[i]));
		if (!end.len)
			item->ends[left] = place; /* the first element is at both ends */
	}
	item->ends[!left] = place;
	TRY(timed_run_flush(item));
	return timed_item_add(item, (int64_t)count);
}

/* Removes an element that is alone in its pair. */
static enum status
element_clear(struct timed_item *item, const struct timed_element *e)
{
	struct str key;

	TRY(timed_order_key(item, e->place, &key));
	TRY(timed_item_clear(item, key));
	return timed_leaf_drop(item, &e->pieces);
}

/* True if both are in one pair. It may have been read twice. */
static bool
elements_share_run(const struct timed_element *a, const struct timed_element *b)
{
	return a->run && b->run && str_eq(a->run->place, b->run->place);
}

/* `first`: they are the first elements of the list, as timed_blocks_remove() has it. */
static enum status
elements_remove(struct timed_item *item, const struct timed_element *elements, size_t count,
		bool first)
{
	uint64_t gone = 0; /* of the run that the element is in */

	if (!count)
		return STATUS_OK;
	TRY(timed_item_touch(item));
	ends_forget(item);
	for (size_t i = 0; i < count; i++) {
		const struct timed_element *e = &elements[i];

		TRY(timed_blocks_remove(item, e->place, first));
		if (!e->run) {
			TRY(element_clear(item, e));
			continue;
		}
		assert(e->nth < e->run->count);
		gone |= UINT64_C(1) << e->nth;
		if (i + 1 < count && elements_share_run(e, &elements[i + 1]))
			continue;
		TRY(timed_run_divide(item, e->run, gone, 0));
		gone = 0;
	}
	TRY(timed_item_add(item, -(int64_t)count));
	return timed_item_delete_empty(item);
}

enum status
timed_list_remove(struct timed_item *item, const struct timed_element *elements, size_t count)
{
	return elements_remove(item, elements, count, false);
}

/* ---- Popping ---- */

/* True if the next elements at that end were read, with their values. */
static bool
ends_have(const struct timed_ends *e, bool right, size_t count)
{
	if (e->last != right || e->elements.count - e->taken < count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (e->elements.elements[e->taken + i].pieces.there)
			return false;
	return true;
}

/*
 * Reads elements at one end, and the pair behind them, which shows that something is left. To begin
 * a read costs as much as to read many pairs, so a pop reads as many more as the transaction has
 * popped just before: those may be popped next, and no more are read in vain than are popped.
 */
static enum status
ends_read_more(struct timed_item *item, bool right, size_t count, struct timed_ends *e)
{
	struct elements_wanted wanted = { .reverse = right, .load = count, .beside = true };
	struct str begin, end;
	size_t ahead;

	if (e->last != right)
		e->popped = 0;
	ahead = e->popped < POP_AHEAD ? e->popped : POP_AHEAD;
	wanted.count = count < SIZE_MAX - ahead ? count + ahead : SIZE_MAX;
	e->last = right;
	e->taken = 0;
	e->run = NULL;
	TRY(list_bounds(item, &begin, &end));
	return elements_read(item, begin, end, &wanted, &e->elements);
}

/* Removes the next `n` elements of a run at one end of the list, where others of it may stay. */
static enum status
run_pop(struct timed_item *item, struct timed_ends *e, const struct timed_run *run, unsigned n)
{
	if (e->run != run)
		e->left = *run;
	e->run = run;
	return timed_run_cut(item, &e->left, n, e->left.leftwards == e->last);
}

/* Takes an element at that end out of the blocks that it is in. */
static enum status
element_uncount(struct timed_item *item, const struct timed_element *e, bool right)
{
	struct str until;

	/* No block begins inside a run, so none need be looked for at each of its elements. */
	if (!right && e->run && e->nth) {
		TRY(timed_run_place(item, e->run, e->run->leftwards ? 1 : e->run->count - 1,
				    &until));
		TRY(timed_blocks_first(item, e->place, until));
	}
	return timed_blocks_remove(item, e->place, !right);
}

/* Removes the elements that come next at that end. */
static enum status
ends_remove(struct timed_item *item, struct timed_ends *e, size_t count)
{
	const struct timed_element *elements = e->elements.elements + e->taken;
	unsigned n;

	TRY(timed_item_touch(item));
	ends_forget(item);
	for (size_t i = 0; i < count; i += n) {
		const struct timed_run *run = elements[i].run;

		for (n = 0; !n || (run && i + n < count && elements[i + n].run == run); n++)
			TRY(element_uncount(item, &elements[i + n], e->last));
		if (run)
			TRY(run_pop(item, e, run, n));
		else
			TRY(element_clear(item, &elements[i]));
	}
	e->taken += count;
	e->popped += count;
	return timed_item_add(item, -(int64_t)count);
}

enum status
timed_list_pop(struct timed_item *item, bool left, size_t count, struct timed_elements *ret)
{
	struct timed_ends *e = item->popping;
	size_t there;

	*ret = (struct timed_elements){ 0 };
	if (item->type == TIMED_LEAF || !count)
		return STATUS_OK;
	if (!e)
		e = arena_zalloc(item->arena, sizeof(*e));
	if (!e)
		return STATUS_LIMIT;
	if (!ends_have(e, !left, count))
		TRY(ends_read_more(item, !left, count, e));
	there = e->elements.count - e->taken;
	if (!there)
		return STATUS_OK;
	ret->elements = e->elements.elements + e->taken;
	ret->count = there < count ? there : count;
	TRY(ends_remove(item, e, ret->count));
	item->popping = e; /* stays right, unlike with any other change */
	return e->taken < e->elements.count ? STATUS_OK : timed_item_delete_empty(item);
}

enum status
timed_list_set(struct timed_item *item, const struct timed_element *element, struct str value)
{
	TRY(check_element(item, value));
	TRY(timed_item_touch(item));
	item->pushed = NULL;
	if (element->run)
		TRY(timed_run_divide(item, element->run, UINT64_C(1) << element->nth, 0));
	TRY(timed_leaf_drop(item, &element->pieces));
	return element_write(item, element->place, value);
}

/* The element next to a place, in one direction; count is 0 at the end. */
static enum status
neighbour_read(struct timed_item *item, struct str place, bool before, struct timed_elements *ret)
{
	struct str begin, end, key;

	TRY(list_bounds(item, &begin, &end));
	TRY(timed_order_key(item, place, &key));
	if (before)
		return elements_read(item, begin, key,
				     &(struct elements_wanted){ .reverse = true, .count = 1 }, ret);
	TRY(timed_key_with(item->arena, key, CATALOG_KEY_NEXT, &key));
	return elements_read(item, key, end, &(struct elements_wanted){ .count = 1 }, ret);
}

/* Divides the run that an element is in, so that a place beside it is between two pairs. */
static enum status
run_open(struct timed_item *item, const struct timed_element *e, bool before)
{
	unsigned begins = before == e->run->leftwards ? e->nth + 1 : e->nth;

	if (!begins || begins == e->run->count)
		return STATUS_OK;
	return timed_run_divide(item, e->run, 0, UINT64_C(1) << begins);
}

enum status
timed_list_insert(struct timed_item *item, const struct timed_element *element, bool before,
		  struct str value)
{
	struct str place = element->place;
	struct timed_elements other;
	struct str a, b, at;

	TRY(check_element(item, value));
	TRY(timed_item_touch(item));
	ends_forget(item);
	if (element->run)
		TRY(run_open(item, element, before));
	TRY(neighbour_read(item, place, before, &other));
	a = before ? (other.count ? other.elements[0].place : STR("")) : place;
	b = before ? place : (other.count ? other.elements[0].place : STR(""));
	if (!a.len || !b.len)
		TRY(place_beyond(item, a.len ? a : b, !a.len, &at));
	else if (a.len >= b.len)
		TRY(place_behind(item, a, b, &at));
	else
		TRY(place_before(item, b, &at));
	/* The order of keys is the order of the list. */
	assert(!a.len || str_cmp(a, at) < 0);
	assert(!b.len || str_cmp(at, b) < 0);
	TRY(timed_blocks_add(item, at, (struct str){ NULL, 0 }));
	TRY(element_write(item, at, value));
	return timed_item_add(item, 1);
}

/* Removes `count` elements at one end. */
static enum status
list_cut(struct timed_item *item, bool left, uint64_t count)
{
	const struct elements_wanted wanted = { .reverse = !left,
						.count = (size_t)count,
						.beside = true };
	struct timed_elements gone;
	struct str begin, end;

	TRY(list_bounds(item, &begin, &end));
	TRY(elements_read(item, begin, end, &wanted, &gone));
	return elements_remove(item, gone.elements, gone.count, left);
}

enum status
timed_list_trim(struct timed_item *item, uint64_t from, uint64_t count)
{
	uint64_t length;

	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_count(item, &length));
	if (from >= length || !count)
		return timed_item_delete(item);
	if (count > length - from)
		count = length - from;
	TRY(list_cut(item, true, from));
	return list_cut(item, false, length - from - count);
}
