/*
 * Going through a range by groups.
 *
 * == Who owns the bytes of items ==
 *
 * Items point into the answers of their level's reads, and those that a level passes on as they are
 * into the answers of levels above. A level frees its answers when it reads anew. It does so only
 * when its own items and those of all levels below have been taken (walk_fill()), so nothing
 * points there any more.
 */
#include "index/view/walk.h"

#include <assert.h>

#include "index/view/read.h"

enum {
	WALK_PAIR_STEPS = 2, /* of passing over a row or a sum */
	WALK_SPARE = 2,      /* gaps beyond the wanted groups: at either end of the range */
};

/* ---- Items ---- */

static enum status
item_add(struct sums_walk *walk, struct walk_level *l, const struct walk_item *item)
{
	TRY(arena_room(walk->s->w->arena, &l->items, l->count, &l->cap, sizeof(*l->items)));
	l->items[l->count++] = *item;
	return STATUS_OK;
}

static enum status
gap_add(struct sums_walk *walk, struct walk_level *l, struct str begin, struct str end,
	bool end_is_sum)
{
	const struct walk_item gap = {
		.piece.place = begin, .end = end, .is_gap = true, .end_is_sum = end_is_sum
	};

	return item_add(walk, l, &gap);
}

/* True if the row at `place`, where a sum begins, and that at `next` are of one group. */
static enum status
walk_same_group(struct sums_walk *walk, struct walk_level *l, struct str place, struct str next,
		bool *ret)
{
	struct view_place parts;
	size_t len;

	if (!l->group.len || !str_starts_with(place, l->group)) {
		TRY(view_place_parse(place, walk->s->group->partitioned, walk->s->w->arena,
				     &parts));
		TRY(view_place_group(&parts, place, walk->group_level, &len));
		l->group = str_of(place.ptr, len);
	}
	*ret = str_starts_with(next, l->group);
	return STATUS_OK;
}

/* A sum that covers what lies from its place to before `next`. */
static enum status
sum_add(struct sums_walk *walk, unsigned level, const struct walk_item *sum, struct str next,
	bool next_is_sum)
{
	struct walk_level *l = &walk->levels[level];
	bool whole = walk->group_level == VIEW_LEVEL_ALL && (next_is_sum || !next.len);

	/* What comes before the first row of a level is of any group: its sum has no place. */
	if (walk->group_level != VIEW_LEVEL_ALL && next_is_sum && sum->piece.place.len)
		TRY(walk_same_group(walk, l, sum->piece.place, next, &whole));
	return whole ? item_add(walk, l, sum)
		     : gap_add(walk, l, sum->piece.place, next, next_is_sum);
}

/* ---- What has been read ---- */

static struct walk_item
walk_item_at(const struct sums_walk *walk, unsigned level, const struct kv_pair *pair)
{
	return (struct walk_item){ .piece = { .level = level,
					      .place = str_skip(pair->key, walk->prefix_len),
					      .value = pair->value } };
}

static enum status
rows_take(struct sums_walk *walk, const struct walk_item *gap, const struct kv_range *range)
{
	struct walk_level *l = &walk->levels[0];
	struct walk_item row;

	for (size_t i = 0; i < range->count; i++) {
		row = walk_item_at(walk, 0, &range->pairs[i]);
		TRY(item_add(walk, l, &row));
	}
	l->has_rest = range->more && range->count;
	if (!l->has_rest)
		return STATUS_OK;
	l->rest = *gap;
	if (walk->descending) {
		return arena_copy(walk->s->w->arena, row.piece.place, &l->rest.end);
	}
	/* The NUL behind the copy makes it the next possible place. */
	l->rest.piece.place = arena_dup(walk->s->w->arena, row.piece.place);
	l->rest.piece.place.len++;
	return l->rest.piece.place.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
sums_take_forwards(struct sums_walk *walk, unsigned level, const struct walk_item *gap,
		   const struct kv_range *range)
{
	struct walk_level *l = &walk->levels[level];
	struct walk_item sum, next;

	if (range->count == 0)
		return gap_add(walk, l, gap->piece.place, gap->end, gap->end_is_sum);
	next = walk_item_at(walk, level, &range->pairs[0]);
	if (str_cmp(gap->piece.place, next.piece.place) < 0)
		TRY(gap_add(walk, l, gap->piece.place, next.piece.place, true));
	for (size_t i = 1; i < range->count; i++) {
		sum = next;
		next = walk_item_at(walk, level, &range->pairs[i]);
		TRY(sum_add(walk, level, &sum, next.piece.place, true));
	}
	l->has_rest = range->more;
	if (!l->has_rest)
		return sum_add(walk, level, &next, gap->end, gap->end_is_sum);
	/* Where the last one ends is not known yet, so it is read again. */
	l->rest = *gap;
	return arena_copy(walk->s->w->arena, next.piece.place, &l->rest.piece.place);
}

static enum status
sums_take_backwards(struct sums_walk *walk, unsigned level, const struct walk_item *gap,
		    const struct kv_range *range)
{
	struct walk_level *l = &walk->levels[level];
	struct str end = gap->end;
	bool end_is_sum = gap->end_is_sum;

	for (size_t i = 0; i < range->count; i++) {
		struct walk_item sum = walk_item_at(walk, level, &range->pairs[i]);

		TRY(sum_add(walk, level, &sum, end, end_is_sum));
		end = sum.piece.place;
		end_is_sum = true;
	}
	/* Checked first: at the first sum of a level `end` is empty, which would mean no end. */
	if (range->count && str_eq(gap->piece.place, end))
		return STATUS_OK;
	l->has_rest = range->more && range->count;
	if (!l->has_rest)
		return gap_add(walk, l, gap->piece.place, end, end_is_sum);
	l->rest = *gap;
	l->rest.end = arena_dup(walk->s->w->arena, end);
	l->rest.end_is_sum = true;
	return l->rest.end.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
read_take(struct sums_walk *walk, unsigned level, const struct walk_read *read)
{
	struct kv_range range;

	TRY(kv_future_wait(read->future));
	range = kv_future_range(read->future);
	walk->pairs += range.count;
	TRY(index_count(walk->s->w, 1 + WALK_PAIR_STEPS * (uint32_t)range.count));
	if (level == 0)
		return rows_take(walk, &read->gap, &range);
	return walk->descending ? sums_take_backwards(walk, level, &read->gap, &range)
				: sums_take_forwards(walk, level, &read->gap, &range);
}

/* ---- Reading ---- */

static enum status
read_ask(struct sums_walk *walk, unsigned level, struct walk_read *read, size_t bytes, size_t pairs)
{
	const struct kv_range_options options = { .limit = pairs,
						  .limit_bytes = bytes,
						  .reverse = walk->descending,
						  .mode = KV_SNAPSHOT };
	const struct sums *s = walk->s;

	buf_clear(&walk->lo);
	buf_clear(&walk->hi);
	TRY(view_key_places(s->db, s->group->number, s->map, level, read->gap.piece.place,
			    read->gap.end, &walk->lo, &walk->hi, &walk->prefix_len));
	read->future = kv_get_range(s->tx, buf_str(&walk->lo), buf_str(&walk->hi), &options);
	return STATUS_OK;
}

static void
level_forget(struct walk_level *l)
{
	for (size_t i = 0; i < l->read_count; i++)
		kv_future_free(l->reads[i].future);
	l->read_count = 0;
	l->count = 0;
	l->at = 0;
	l->group = STR("");
}

static enum status
level_read_rest(struct sums_walk *walk, unsigned level)
{
	struct walk_level *l = &walk->levels[level];

	/* What it had before is taken, so its places in the list are free. */
	assert(!l->read_count && !l->count);
	l->reads[0] = (struct walk_read){ .gap = l->rest };
	l->read_count = 1;
	l->has_rest = false;
	/* A sum has fewer bytes than a third of a page, so there are at least two. */
	TRY(read_ask(walk, level, &l->reads[0], CATALOG_PAGE_BYTES, WALK_REST_PAIRS));
	return read_take(walk, level, &l->reads[0]);
}

/* Makes the gaps next to each other one, as long as there are such. */
static void
gap_join(const struct sums_walk *walk, struct walk_item *gap, const struct walk_item *next)
{
	if (walk->descending) {
		assert(str_eq(next->end, gap->piece.place));
		gap->piece.place = next->piece.place;
	} else {
		assert(str_eq(next->piece.place, gap->end));
		gap->end = next->end;
		gap->end_is_sum = next->end_is_sum;
	}
}

/* Asks for the next gaps of the level above. Returns how many of its items that concerns. */
static enum status
level_ask(struct sums_walk *walk, unsigned level, size_t *ret_end)
{
	struct walk_level *l = &walk->levels[level];
	const struct walk_level *above = &walk->levels[level + 1];
	size_t gaps = 0, most = l->wave, i;

	assert(level < walk->top && !l->read_count && !l->has_rest);
	if (most > walk->wanted + WALK_SPARE)
		most = walk->wanted + WALK_SPARE;
	for (i = above->at; i < above->count && (gaps < most || !above->items[i].is_gap); i++) {
		struct walk_read *last = l->read_count ? &l->reads[l->read_count - 1] : NULL;

		if (!above->items[i].is_gap)
			continue;
		gaps++;
		if (last && last->first + last->count == i) {
			gap_join(walk, &last->gap, &above->items[i]);
			last->count++;
			continue;
		}
		l->reads[l->read_count++] = (struct walk_read){ .gap = above->items[i],
								.first = i,
								.count = 1 };
	}
	*ret_end = i;
	for (size_t k = 0; k < l->read_count; k++)
		TRY(read_ask(walk, level, &l->reads[k], l->reads[k].count * WALK_GAP_BYTES, 0));
	l->wave = l->wave * 2 < WALK_WAVE ? l->wave * 2 : WALK_WAVE;
	return STATUS_OK;
}

/* Takes pieces of the level above as they are, and of its gaps what this level has there. */
static enum status
level_read_gaps(struct sums_walk *walk, unsigned level)
{
	struct walk_level *l = &walk->levels[level], *above = &walk->levels[level + 1];
	size_t end, taken = 0;

	TRY(level_ask(walk, level, &end));
	while (above->at < end && !l->has_rest) {
		const struct walk_read *read = &l->reads[taken];

		assert(taken == l->read_count || read->first >= above->at);
		if (taken == l->read_count || read->first != above->at) {
			TRY(item_add(walk, l, &above->items[above->at++]));
			continue;
		}
		TRY(read_take(walk, level, read));
		above->at += read->count;
		assert(above->at <= above->count);
		taken++;
	}
	/* The others are asked for again, when what is left of a long gap has been read. */
	if (l->has_rest)
		l->wave = 1;
	return STATUS_OK;
}

static bool
level_has_more(const struct sums_walk *walk, unsigned level)
{
	if (walk->levels[level].has_rest)
		return true;
	return level < walk->top && walk->levels[level + 1].at < walk->levels[level + 1].count;
}

/* Reads anew from the lowest level that has something to read. STATUS_NOT_FOUND: none has. */
static enum status
walk_fill(struct sums_walk *walk)
{
	unsigned level = 0;

	while (!level_has_more(walk, level))
		if (level++ == walk->top)
			return STATUS_NOT_FOUND;
	for (;; level--) {
		struct walk_level *l = &walk->levels[level];

		assert(l->at == l->count);
		level_forget(l);
		if (l->has_rest)
			TRY(level_read_rest(walk, level));
		else
			TRY(level_read_gaps(walk, level));
		if (level == 0)
			return STATUS_OK;
	}
}

/* ---- The walk ---- */

enum status
sums_walk_begin(struct sums_walk *walk, const struct sums *s, const struct walk_range *range,
		unsigned group_level)
{
	struct walk_level *top;

	*walk = (struct sums_walk){ .s = s,
				    .group_level = group_level,
				    .top = s->group->tops[s->map],
				    .descending = range->descending,
				    .lo = CATALOG_KEY_INIT,
				    .hi = CATALOG_KEY_INIT };
	if (walk->top > VIEW_LEVELS)
		return STATUS_CORRUPT;
	walk->levels = arena_zalloc(s->w->arena, (walk->top + 1) * sizeof(*walk->levels));
	if (!walk->levels)
		return STATUS_LIMIT;
	for (unsigned i = 0; i <= walk->top; i++)
		walk->levels[i].wave = WALK_FIRST_WAVE;
	top = &walk->levels[walk->top];
	top->rest = (struct walk_item){ .piece.place = range->begin,
					.end = range->end,
					.is_gap = true };
	top->has_rest = !range->end.len || str_cmp(range->begin, range->end) < 0;
	return STATUS_OK;
}

enum status
sums_walk_next(struct sums_walk *walk, size_t wanted, struct sums_piece *ret)
{
	struct walk_level *l = &walk->levels[0];

	walk->wanted = wanted;
	while (l->at == l->count)
		TRY(walk_fill(walk));
	*ret = l->items[l->at++].piece;
	return STATUS_OK;
}

void
sums_walk_end(struct sums_walk *walk)
{
	for (unsigned i = 0; i <= walk->top; i++)
		level_forget(&walk->levels[i]);
	buf_release(&walk->lo);
	buf_release(&walk->hi);
}
