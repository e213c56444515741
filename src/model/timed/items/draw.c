/*
 * Members at random, without going through all of them.
 *
 * Members lie in the order of a hash, so ranges of hashes of the same width have about the same
 * number of them: DRAW_MEAN, or what one hash has in a set of more than a million. A draw chooses
 * one of these ranges, and one of its places, of which there are as many in each range, and more
 * than any is likely to need. If the place is empty it draws again. So each member is drawn with
 * the same probability, exactly, however they are spread over the ranges.
 *
 * Where a range has more members than places, as someone may choose their names, or where most
 * are drawn anyway, all members have to be read.
 */
#include "base/hash.h"
#include "base/rand.h"
#include "model/timed/items/item_int.h"

enum {
	DRAW_MEAN = 16,  /* members of a range */
	DRAW_TRIES = 16, /* for each that is wanted, where about three are expected */
	DRAW_TRIES_MORE = 256,
};

struct draw {
	struct timed_item *item;
	uint64_t width; /* hashes of a range */
	uint64_t ranges;
	uint64_t places; /* of each */
	uint64_t *drawn; /* numbers of places that were drawn, + 1; NULL: they may be again */
	size_t slots;
};

static uint64_t
draw_below(uint64_t n)
{
	uint64_t random;

	rand_bytes(&random, sizeof(random));
	return random % n;
}

/* False: the place was drawn before. */
static bool
draw_is_new(struct draw *d, uint64_t place)
{
	size_t at;

	if (!d->drawn)
		return true;
	at = hash_keyed(place, STR("")) & (d->slots - 1);
	for (; d->drawn[at]; at = (at + 1) & (d->slots - 1))
		if (d->drawn[at] == place + 1)
			return false;
	d->drawn[at] = place + 1;
	return true;
}

static enum status
draw_init(struct draw *d, struct timed_item *item, size_t wanted, bool again, uint64_t count)
{
	*d = (struct draw){ .item = item };
	d->width = (uint64_t)TIMED_HASHES * DRAW_MEAN / count + 1;
	d->ranges = (TIMED_HASHES + d->width - 1) / d->width;
	/* More than eight standard deviations above the mean. */
	d->places = 2 * (count * d->width / TIMED_HASHES) + DRAW_MEAN;
	if (again)
		return STATUS_OK;
	d->slots = hash_slots(wanted);
	d->drawn = arena_zalloc(item->arena, d->slots * sizeof(*d->drawn));
	return d->drawn ? STATUS_OK : STATUS_LIMIT;
}

/* Keeps a member of a page, of which the rest is forgotten. */
static enum status
draw_keep(struct draw *d, struct arena_mark mark, struct timed_member *m)
{
	AUTO(buf_release) struct buf text = BUF_INIT(SIZE_MAX);

	buf_append_str(&text, m->name);
	buf_append_str(&text, m->value);
	TRY(buf_status(&text));
	arena_reset(d->item->arena, mark);
	m->name = arena_dup(d->item->arena, str_of(text.ptr, m->name.len));
	m->value = arena_dup(d->item->arena, str_skip(buf_str(&text), m->name.len));
	return m->name.ptr && m->value.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* One try. `*ret_found` false: nothing was there. STATUS_NOT_FOUND: all have to be read. */
static enum status
draw_try(struct draw *d, struct timed_member *ret, bool *ret_found)
{
	struct arena_mark mark = arena_mark(d->item->arena);
	uint64_t range = draw_below(d->ranges), place = draw_below(d->places);
	uint64_t from = range * d->width, to = from + d->width;
	struct timed_members page;

	TRY(timed_members_between(d->item, from, to < TIMED_HASHES ? to : TIMED_HASHES,
				  (size_t)d->places + 1, &page));
	if (page.next || page.count > d->places)
		return STATUS_NOT_FOUND;
	*ret_found = place < page.count && draw_is_new(d, range * d->places + place);
	if (!*ret_found) {
		arena_reset(d->item->arena, mark);
		return STATUS_OK;
	}
	*ret = page.members[place];
	return draw_keep(d, mark, ret);
}

enum status
timed_members_draw(struct timed_item *item, size_t wanted, bool again, struct timed_members *ret)
{
	struct timed_members drawn = { 0 };
	struct draw d;
	uint64_t count;

	*ret = drawn;
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_count(item, &count));
	if (!wanted || wanted > count / TIMED_DRAW_SHARE)
		return STATUS_NOT_FOUND;
	drawn.members = arena_alloc(item->arena, wanted * sizeof(*drawn.members));
	if (!drawn.members)
		return STATUS_LIMIT;
	TRY(draw_init(&d, item, wanted, again, count));
	for (size_t tries = DRAW_TRIES_MORE + wanted * DRAW_TRIES; tries; tries--) {
		bool found;

		TRY(draw_try(&d, &drawn.members[drawn.count], &found));
		drawn.count += found;
		if (drawn.count < wanted)
			continue;
		*ret = drawn;
		return STATUS_OK;
	}
	return STATUS_NOT_FOUND;
}
