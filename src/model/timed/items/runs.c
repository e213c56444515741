/*
 * Runs: elements of a list that one transaction has pushed one after the other, in one pair.
 *
 *     (body, ORDER, position) → (format, write time, leftwards), (length, bytes) of each element
 *
 * The pair has the position of the element that was pushed first. Each further one lies
 * TIMED_PLACE_STEP to the right, or to the left, of the one before, so every element has a position
 * of its own, as if it were alone. A transaction that pushes rewrites only a run that it has begun
 * itself. Whoever takes an element out of a run, changes it, or inserts beside it, divides the run.
 * A pop at the end where the pair's own position is turns the run around first, so that the pops
 * that follow do not move the pair again and again, and leave a deleted key each time.
 *
 * An element that begins a block of the skip list (blocks.c) is always at the position of its pair:
 * the first of a run to the right, or alone. So no block begins inside a run, and whoever removes
 * such an element writes to the key that others have in their conflict ranges.
 *
 * With history there are no new runs, since each element that is taken out of one would leave the
 * whole run in the past.
 */
#include <assert.h>
#include <endian.h>

#include "model/timed/items/item_int.h"

enum {
	RUN_BYTES = 1024,    /* of the elements with their lengths */
	ELEMENT_BYTES = 255, /* longer ones are alone */
	RUN_HEADER_BYTES = 20,
};

/* What the transaction has pushed last at one end, for as long as it may grow. */
struct timed_pushed {
	struct str key;         /* of the pair */
	struct str first, last; /* places of its elements */
	bool leftwards;
	unsigned count;
	unsigned counted; /* so many of them are in the counts of blocks */
	unsigned written; /* so many of them are in the pair */
	uint64_t write_us;
	struct buf values; /* (length, bytes) of each */
};

/* ---- Pairs ---- */

enum status
timed_run_place(struct timed_item *item, const struct timed_run *run, unsigned n, struct str *ret)
{
	uint64_t number, offset = n * TIMED_PLACE_STEP;

	assert(run->place.len == sizeof(number));
	memcpy(&number, run->place.ptr, sizeof(number));
	number = be64toh(number);
	number = htobe64(run->leftwards ? number - offset : number + offset);
	*ret = arena_dup(item->arena, str_of(&number, sizeof(number)));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

/* Writes `count` elements as one pair. */
static enum status
pair_write(struct timed_item *item, struct str key, bool leftwards, uint64_t write_us,
	   const struct str *values, unsigned count)
{
	struct timed_leaf_record leaf = { .write_us = write_us, .value = values[0] };
	struct buf record;

	if (count == 1)
		return timed_leaf_write(item, key, &leaf);
	record = timed_arena_buf(item->arena, RUN_HEADER_BYTES + RUN_BYTES);
	timed_run_put_header(write_us, leftwards, &record);
	for (unsigned i = 0; i < count; i++)
		timed_run_put_value(values[i], &record);
	TRY(buf_status(&record));
	return timed_data_set(item->t, key, buf_str(&record));
}

/* ---- Dividing ---- */

enum status
timed_run_divide(struct timed_item *item, const struct timed_run *run, uint64_t gone,
		 uint64_t begins)
{
	struct str place, key;
	unsigned from, to;

	if (gone & 1) {
		TRY(timed_order_key(item, run->place, &key));
		TRY(timed_item_clear(item, key));
	}
	for (from = 0; from < run->count; from = to) {
		to = from + 1;
		if (gone >> from & 1)
			continue;
		while (to < run->count && !((gone | begins) >> to & 1))
			to++;
		TRY(timed_run_place(item, run, from, &place));
		TRY(timed_order_key(item, place, &key));
		TRY(pair_write(item, key, run->leftwards, run->write_us, run->values + from,
			       to - from));
		item->rest = key;
	}
	return STATUS_OK;
}

/*
 * Turns a run around, of which the first `n` elements are gone: the pair then lies where its last
 * element does. So taking more elements from this end leaves the pair's key as it is. None of those
 * that are left begins a block.
 */
static enum status
run_turn(struct timed_item *item, struct timed_run *run, unsigned n)
{
	struct str values[TIMED_RUN_ELEMENTS];
	unsigned last = run->count - 1;

	TRY(timed_run_place(item, run, last, &run->place));
	run->leftwards = !run->leftwards;
	run->count -= n;
	for (unsigned i = 0; i < run->count; i++)
		values[i] = run->values[last - i];
	memcpy(run->values, values, run->count * sizeof(*values));
	return STATUS_OK;
}

enum status
timed_run_cut(struct timed_item *item, struct timed_run *run, unsigned n, bool front)
{
	struct str key;

	assert(n && n <= run->count);
	TRY(timed_order_key(item, run->place, &key));
	if (front || n == run->count)
		TRY(timed_item_clear(item, key));
	if (n == run->count || !front) {
		run->count -= n;
	} else {
		TRY(run_turn(item, run, n));
		TRY(timed_order_key(item, run->place, &key));
	}
	if (!run->count)
		return STATUS_OK;
	item->rest = key;
	return pair_write(item, key, run->leftwards, run->write_us, run->values, run->count);
}

/* ---- Pushing ---- */

/* True if the element may become part of what was pushed last. Loading a dump gives write times. */
static bool
pushed_takes(const struct timed_pushed *p, bool left, uint64_t write_us, struct str value)
{
	return p && p->leftwards == left && p->write_us == write_us &&
	       p->count < TIMED_RUN_ELEMENTS && value.len <= ELEMENT_BYTES &&
	       p->values.len + 1 + value.len <= RUN_BYTES;
}

static enum status
pushed_begin(struct timed_item *item, bool left, struct str key, struct str place,
	     const struct timed_leaf_record *leaf)
{
	struct timed_pushed *p = arena_alloc(item->arena, sizeof(*p));

	if (!p)
		return STATUS_LIMIT;
	*p = (struct timed_pushed){ .key = key,
				    .first = place,
				    .last = place,
				    .leftwards = left,
				    .write_us = leaf->write_us,
				    .values = timed_arena_buf(item->arena, RUN_BYTES) };
	timed_run_put_value(leaf->value, &p->values);
	p->count = p->counted = 1;
	item->pushed = p;
	return buf_status(&p->values);
}

enum status
timed_run_flush(struct timed_item *item)
{
	struct timed_pushed *p = item->pushed;
	struct str values;
	struct buf record;

	if (!p || p->written == p->count)
		return STATUS_OK;
	if (p->counted < p->count)
		TRY(timed_blocks_grow(item, p->last, p->leftwards ? STR("") : p->first,
				      p->count - p->counted));
	p->written = p->counted = p->count;
	values = buf_str(&p->values);
	if (p->count == 1)
		return timed_leaf_write(
			item, p->key,
			&(struct timed_leaf_record){ .write_us = p->write_us,
						     .value = str_skip(values, 1) });
	record = timed_arena_buf(item->arena, RUN_HEADER_BYTES + values.len);
	timed_run_put_header(p->write_us, p->leftwards, &record);
	buf_append_str(&record, values);
	TRY(buf_status(&record));
	return timed_data_set(item->t, p->key, buf_str(&record));
}

enum status
timed_run_push(struct timed_item *item, bool left, struct str end, struct str place,
	       struct str value)
{
	uint64_t write_us = timed_write_us(item->t);
	bool begins = timed_block_begins(item, place);
	bool grows = !begins && pushed_takes(item->pushed, left, write_us, value);
	struct timed_leaf_record leaf = { .write_us = write_us, .value = value };
	struct str key;

	if (grows) {
		timed_run_put_value(value, &item->pushed->values);
		item->pushed->last = place;
		item->pushed->count++;
		return buf_status(&item->pushed->values);
	}
	TRY(timed_run_flush(item));
	item->pushed = NULL;
	TRY(timed_blocks_add(item, place, left ? STR("") : end));
	TRY(timed_order_key(item, place, &key));
	/* To the left of an element that begins a block there is another block. */
	if (item->t->has_history || value.len > ELEMENT_BYTES || (begins && left))
		return timed_leaf_write(item, key, &leaf);
	return pushed_begin(item, left, key, place, &leaf);
}
