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
 *
 * A transaction that draws one member of a set after the other, as clients' pipelines do when they
 * pop, reads the names of all of them once its draws have cost as much. Then it draws from these.
 * Where only one process writes to the store it keeps them for later ones (names_map.c).
 */
#include "base/hash.h"
#include "base/rand.h"
#include "model/timed/items/ends.h"
#include "model/timed/items/names_map.h"

enum {
	DRAW_MEAN = 16,  /* members of a range */
	DRAW_TRIES = 16, /* for each that is wanted, where about three are expected */
	DRAW_TRIES_MORE = 256,
	NAMES_MOST = 16384,        /* that a transaction keeps of a set */
	NAMES_BYTES = 1024 * 1024, /* of them */
	NAMES_PAGE = 512,          /* that are read at once */
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

/* Draws members out of ranges. STATUS_NOT_FOUND: all have to be read. */
static enum status
draw_from_ranges(struct timed_item *item, size_t wanted, bool again, uint64_t count,
		 struct timed_members *ret)
{
	struct timed_members drawn = { 0 };
	struct draw d;

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

/* ---- All names ---- */

/* Reads a page of names, from the hash `*from` on, and tells where the next one begins, or 0. */
static enum status
names_read_page(struct timed_item *item, struct timed_ends *e, size_t room, uint64_t *from)
{
	AUTO(buf_release) struct buf text = BUF_INIT(SIZE_MAX);
	struct arena_mark mark = arena_mark(item->arena);
	size_t first = e->count;
	struct timed_members page;
	struct str names;

	TRY(timed_members_page(item, *from, NAMES_PAGE, &page));
	*from = page.next;
	if (page.count > room - first)
		return timed_item_corrupt(item);
	for (size_t i = 0; i < page.count; i++) {
		buf_append_str(&text, page.members[i].name);
		e->names[e->count++].len = page.members[i].name.len;
	}
	TRY(buf_status(&text));
	arena_reset(item->arena, mark);
	names = buf_dup(&text, item->arena);
	if (!names.ptr)
		return STATUS_LIMIT;
	e->bytes += names.len;
	for (size_t i = first; i < e->count; i++) {
		e->names[i].ptr = names.ptr;
		names = str_skip(names, e->names[i].len);
	}
	return STATUS_OK;
}

/* Reads the names of all members, unless they are more than a transaction keeps. */
static enum status
names_read(struct timed_item *item, struct timed_ends *e, uint64_t count)
{
	uint64_t from = 0;

	if (count > NAMES_MOST || e->bytes > NAMES_BYTES)
		return STATUS_OK;
	e->names = arena_alloc(item->arena, ((size_t)count + 1) * sizeof(*e->names));
	if (!e->names)
		return STATUS_LIMIT;
	e->count = 0;
	do {
		TRY(names_read_page(item, e, (size_t)count, &from));
	} while (from && e->bytes <= NAMES_BYTES);
	if (from || !e->count)
		e->names = NULL;
	return STATUS_OK;
}

static enum status
draw_take(struct timed_item *item, struct str name, struct timed_members *ret)
{
	ret->members = arena_zalloc(item->arena, sizeof(*ret->members));
	if (!ret->members)
		return STATUS_LIMIT;
	ret->members[0].name = name;
	ret->members[0].found = true;
	ret->count = 1;
	return STATUS_OK;
}

/* Has the item's map learn the names of all members, if it has room for them. */
static enum status
map_learn_names(struct timed_item *item, uint64_t count)
{
	uint64_t from = 0;

	if (!timed_names_begin(item, count))
		return STATUS_OK;
	do {
		struct arena_mark mark = arena_mark(item->arena);
		struct timed_members page;
		enum status status = timed_members_page(item, from, NAMES_PAGE, &page);

		/* Some of the names would pass for all. */
		if (status != STATUS_OK)
			timed_names_forget(item);
		TRY(status);
		from = page.next;
		for (size_t i = 0; i < page.count; i++)
			if (!timed_names_learn(item, page.members[i].name))
				return STATUS_OK;
		arena_reset(item->arena, mark);
	} while (from);
	return STATUS_OK;
}

/* Draws a name by the item's map. STATUS_NOT_FOUND: it has none, or that knows no names. */
static enum status
draw_by_map(struct timed_item *item, uint64_t count, struct str *ret)
{
	bool wants;
	enum status status = timed_names_draw(item, count, ret, &wants);

	if (status != STATUS_NOT_FOUND || !wants)
		return status;
	TRY(map_learn_names(item, count));
	return timed_names_draw(item, count, ret, &wants);
}

/* Draws one member of a set. STATUS_NOT_FOUND: all have to be read. */
static enum status
draw_one(struct timed_item *item, uint64_t count, struct timed_members *ret)
{
	struct timed_ends *e = item->popping;
	struct str name;
	enum status status = draw_by_map(item, count, &name);

	if (status == STATUS_OK)
		return draw_take(item, name, ret);
	if (status != STATUS_NOT_FOUND)
		return status;
	if (!e)
		e = arena_zalloc(item->arena, sizeof(*e));
	if (!e)
		return STATUS_LIMIT;
	item->popping = e;
	if (!e->names && count <= (uint64_t)e->draws * TIMED_NAMES_SHARE)
		TRY(names_read(item, e, count));
	e->draws++;
	if (!e->names)
		return count < TIMED_DRAW_SHARE ? STATUS_NOT_FOUND
						: draw_from_ranges(item, 1, false, count, ret);
	e->drawn = (size_t)draw_below(e->count);
	return draw_take(item, e->names[e->drawn], ret);
}

enum status
timed_members_draw(struct timed_item *item, size_t wanted, bool again, struct timed_members *ret)
{
	uint64_t count;

	*ret = (struct timed_members){ 0 };
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	if (item->packed)
		return STATUS_NOT_FOUND;
	TRY(timed_count(item, &count));
	if (item->type == TIMED_SET && wanted == 1 && !again)
		return draw_one(item, count, ret);
	if (!wanted || wanted > count / TIMED_DRAW_SHARE)
		return STATUS_NOT_FOUND;
	return draw_from_ranges(item, wanted, again, count, ret);
}
