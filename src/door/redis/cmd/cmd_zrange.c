/* Ranges of sorted sets. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/members.h"
#include "door/redis/cmd/zset.h"

struct range_options {
	struct timed_zset_range range;
	int64_t first, last; /* by rank: the bounds */
	bool scores;
	bool has_limit;
	bool empty; /* nothing can be in it */
};

/* ---- Bounds ---- */

/* By rank, negative ones from the end, among the members of the item. */
static enum status
range_clip(struct timed_item *item, struct range_options *o)
{
	uint64_t count = 0;

	if (o->range.by != TIMED_BY_RANK)
		return STATUS_OK;
	if (item->type != TIMED_LEAF)
		TRY(timed_count(item, &count));
	o->empty = !data_clip_range(&o->first, &o->last, count);
	o->range.from = (uint64_t)o->first;
	o->range.to = (uint64_t)o->last + 1;
	return STATUS_OK;
}

static enum status
range_of_scores(struct call *c, size_t lower, size_t upper, struct range_options *o)
{
	if (zset_read_score(c->argv[lower], &o->range.lower) &&
	    zset_read_score(c->argv[upper], &o->range.upper))
		return STATUS_OK;
	return call_error(c, STR("ERR min or max is not a float"));
}

static enum status
range_of_names(struct call *c, size_t lower, size_t upper, struct range_options *o)
{
	bool below, above, upper_below, upper_above;

	if (!zset_read_name(c->argv[lower], &o->range.lower, &below, &above) ||
	    !zset_read_name(c->argv[upper], &o->range.upper, &upper_below, &upper_above))
		return call_error(c, STR("ERR min or max not valid string range item"));
	o->empty = above || upper_below;
	return STATUS_OK;
}

/*
 * Reads the bounds from argument `at` on, as `o->range.by` says; in a reverse range by score or
 * name the upper one comes first.
 */
static enum status
range_read(struct call *c, size_t at, struct range_options *o)
{
	bool swapped = o->range.reverse && o->range.by != TIMED_BY_RANK;
	size_t lower = swapped ? at + 1 : at;
	size_t upper = swapped ? at : at + 1;

	if (o->range.by == TIMED_BY_SCORE)
		return range_of_scores(c, lower, upper, o);
	if (o->range.by == TIMED_BY_NAME)
		return range_of_names(c, lower, upper, o);
	TRY(call_int(c, lower, &o->first));
	return call_int(c, upper, &o->last);
}

/* ---- Answering ---- */

static enum status
range_find(struct timed_item *item, const struct range_options *o, struct timed_members *ret)
{
	*ret = (struct timed_members){ 0 };
	if (item->type == TIMED_LEAF || o->empty || !o->range.limit)
		return STATUS_OK;
	return timed_zset_range(item, &o->range, ret);
}

static enum status
range_store(struct call *c, const struct timed_members *e)
{
	struct timed_member *m = arena_alloc(c->arena, (e->count + 1) * sizeof(*m));

	if (!m)
		return STATUS_LIMIT;
	for (size_t i = 0; i < e->count; i++)
		m[i] = (struct timed_member){ .name = e->members[i].name,
					      .score = e->members[i].score };
	return members_store(c, TIMED_ZSET, m, e->count);
}

/* ---- ZRANGE and its kin ---- */

/* The options behind the bounds. */
static enum status
options_read(struct call *c, size_t i, bool full, bool may_score, struct range_options *o)
{
	o->range.limit = SIZE_MAX;
	for (; i < c->argc; i++) {
		if (may_score && call_arg_is(c, i, "withscores")) {
			o->scores = true;
		} else if (call_arg_is(c, i, "limit") && i + 2 < c->argc) {
			int64_t skip, limit;

			TRY(call_int(c, i + 1, &skip));
			TRY(call_int(c, i + 2, &limit));
			o->has_limit = limit != -1; /* which is as if there were none */
			o->empty = skip < 0;
			o->range.skip = skip < 0 ? 0 : (uint64_t)skip;
			o->range.limit = limit < 0 ? SIZE_MAX : (size_t)limit;
			i += 2;
		} else if (full && !o->range.reverse && call_arg_is(c, i, "rev")) {
			o->range.reverse = true;
		} else if (full && o->range.by == TIMED_BY_RANK && call_arg_is(c, i, "byscore")) {
			o->range.by = TIMED_BY_SCORE;
		} else if (full && o->range.by == TIMED_BY_RANK && call_arg_is(c, i, "bylex")) {
			o->range.by = TIMED_BY_NAME;
		} else {
			return call_syntax_error(c);
		}
	}
	if (o->range.by == TIMED_BY_RANK && !o->has_limit) {
		o->range.limit = SIZE_MAX;
		o->range.skip = 0;
		o->empty = false;
	}
	if (o->has_limit && o->range.by == TIMED_BY_RANK)
		return call_error(c, STR("ERR syntax error, LIMIT is only supported in "
					 "combination with either BYSCORE or BYLEX"));
	if (o->scores && o->range.by == TIMED_BY_NAME)
		return call_error(c, STR("ERR syntax error, WITHSCORES not supported in "
					 "combination with BYLEX"));
	return STATUS_OK;
}

/* What the command's name says of a range. */
static struct range_options
range_of(const struct call *c)
{
	const struct timed_zset_range range = {
		.by = call_is(c, HOW_BY_SCORE)  ? TIMED_BY_SCORE
		      : call_is(c, HOW_BY_NAME) ? TIMED_BY_NAME
						: TIMED_BY_RANK,
		.reverse = call_is(c, HOW_REVERSE),
		.limit = SIZE_MAX,
	};

	return (struct range_options){ .range = range };
}

enum status
cmd_zset_range(struct call *c)
{
	/* What the names of the others say, these say by options. */
	bool full = !call_is(c, HOW_REVERSE | HOW_BY_SCORE | HOW_BY_NAME);
	bool stores = call_is(c, HOW_STORES);
	struct range_options o = range_of(c);
	size_t key = stores ? 2 : 1;
	struct timed_members e;
	struct timed_item *item;
	bool outside;

	TRY(options_read(c, key + 3, full, !stores, &o));
	outside = o.empty;
	TRY(range_read(c, key + 1, &o));
	TRY(data_item_read(c, key, TIMED_ZSET, &item));
	TRY(range_clip(item, &o));
	o.empty |= outside;
	TRY(range_find(item, &o, &e));
	if (stores)
		return range_store(c, &e);
	zset_answer_begin(c->reply, e.count, o.scores);
	for (size_t i = 0; i < e.count; i++)
		zset_answer(c->reply, e.members[i].name, e.members[i].score, o.scores);
	return STATUS_OK;
}

/* ---- Counting and removing ---- */

/* ZCOUNT, ZLEXCOUNT. */
enum status
cmd_zset_range_count(struct call *c)
{
	struct range_options o = range_of(c);
	struct timed_item *item;
	uint64_t count = 0;

	TRY(range_read(c, 2, &o));
	TRY(data_item(c, 1, TIMED_ZSET, &item));
	if (item->type != TIMED_LEAF && !o.empty)
		TRY(timed_zset_range_count(item, &o.range, &count));
	reply_int(c->reply, (int64_t)count);
	return STATUS_OK;
}

/* ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX. */
enum status
cmd_zset_range_remove(struct call *c)
{
	struct range_options o = range_of(c);
	struct timed_members e;
	struct timed_item *item;

	TRY(range_read(c, 2, &o));
	TRY(data_item(c, 1, TIMED_ZSET, &item));
	TRY(range_clip(item, &o));
	TRY(range_find(item, &o, &e));
	reply_int(c->reply, (int64_t)e.count);
	if (!e.count)
		return STATUS_OK;
	TRY(timed_members_delete(item, e.members, e.count));
	return data_changed(c, item, c->argv[1], EVENT_ZSET, c->command->name);
}
