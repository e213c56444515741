/* Sorted sets: members and their scores. cmd_zrange.c has ranges, cmd_zstore.c several sets. */
#include <math.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/members.h"
#include "door/redis/cmd/zset.h"
#include "door/redis/wire/number.h"

/* ---- ZADD ---- */

struct zadd {
	bool nx, xx, gt, lt, ch, incr;
	size_t first; /* score */
	size_t count;
	double *scores;
};

static enum status
zadd_parse(struct call *c, struct zadd *z)
{
	size_t i = 2;

	for (; i < c->argc; i++) {
		if (call_arg_is(c, i, "nx"))
			z->nx = true;
		else if (call_arg_is(c, i, "xx"))
			z->xx = true;
		else if (call_arg_is(c, i, "gt"))
			z->gt = true;
		else if (call_arg_is(c, i, "lt"))
			z->lt = true;
		else if (call_arg_is(c, i, "ch"))
			z->ch = true;
		else if (call_arg_is(c, i, "incr"))
			z->incr = true;
		else
			break;
	}
	z->first = i;
	z->count = (c->argc - i) / 2;
	if ((c->argc - i) % 2 || !z->count)
		return call_syntax_error(c);
	if (z->nx && z->xx)
		return call_error(c,
				  STR("ERR XX and NX options at the same time are not compatible"));
	if ((z->gt && z->nx) || (z->lt && z->nx) || (z->gt && z->lt))
		return call_error(c, STR("ERR GT, LT, and/or NX options at the same time are not "
					 "compatible"));
	if (z->incr && z->count > 1)
		return call_error(c,
				  STR("ERR INCR option supports a single increment-element pair"));
	return STATUS_OK;
}

struct zadd_result {
	int64_t added, updated;
	double score; /* INCR */
	bool changed;
	bool skipped;
	bool nan;
};

static enum status
zadd_one(struct timed_item *item, const struct zadd *z, struct str name, double score,
	 struct zadd_result *r)
{
	struct timed_member m = { .name = name };

	if (item->type != TIMED_LEAF)
		TRY(timed_members_get(item, &m, 1));
	r->skipped = m.found ? z->nx : z->xx;
	if (r->skipped)
		return STATUS_OK;
	if (m.found) {
		if (z->incr)
			score += m.score;
		r->nan = isnan(score);
		if (r->nan)
			return STATUS_OK;
		r->skipped = (z->lt && score >= m.score) || (z->gt && score <= m.score);
		if (r->skipped)
			return STATUS_OK;
	}
	r->score = score;
	if (m.found && score == m.score)
		return STATUS_OK;
	r->added += !m.found;
	r->updated += m.found;
	r->changed = true;
	m.known = true;
	m.old_score = m.score;
	m.score = score;
	return timed_members_put(item, TIMED_ZSET, &m, 1);
}

static enum status
zadd_run(struct call *c, struct zadd *z)
{
	struct zadd_result r = { 0 };
	struct timed_item *item;

	z->scores = arena_alloc(c->arena, z->count * sizeof(*z->scores));
	if (!z->scores)
		return STATUS_LIMIT;
	for (size_t i = 0; i < z->count; i++)
		TRY(call_double(c, z->first + 2 * i, &z->scores[i]));
	TRY(data_item(c, 1, TIMED_ZSET, &item));
	for (size_t i = 0; i < z->count; i++) {
		TRY(zadd_one(item, z, c->argv[z->first + 2 * i + 1], z->scores[i], &r));
		if (r.nan)
			return call_error(c, STR("ERR resulting score is not a number (NaN)"));
	}
	if (z->incr && r.skipped)
		reply_null(c->reply);
	else if (z->incr)
		reply_double(c->reply, r.score);
	else
		reply_int(c->reply, z->ch ? r.added + r.updated : r.added);
	return r.changed ? txn_changed(c, c->argv[1], EVENT_ZSET, z->incr ? "zincr" : "zadd")
			 : STATUS_OK;
}

enum status
cmd_zadd(struct call *c)
{
	struct zadd z = { 0 };

	TRY(zadd_parse(c, &z));
	return zadd_run(c, &z);
}

enum status
cmd_zincrby(struct call *c)
{
	struct zadd z = { .incr = true, .first = 2, .count = 1 };

	return zadd_run(c, &z);
}

/* ---- By member ---- */

/* ZSCORE and ZMSCORE */
enum status
cmd_zmscore(struct call *c)
{
	struct timed_member *m;
	size_t count;

	TRY(members_look_up(c, TIMED_ZSET, false, &m, &count));
	if (strcmp(c->command->name, "zmscore") == 0)
		reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++) {
		if (m[i].found)
			reply_double(c->reply, m[i].score);
		else
			reply_null(c->reply);
	}
	return STATUS_OK;
}

/* ZRANK, ZREVRANK. */
enum status
cmd_zset_rank(struct call *c)
{
	enum status status = STATUS_NOT_FOUND;
	struct timed_item *item;
	uint64_t rank;
	double score;

	TRY(data_item(c, 1, TIMED_ZSET, &item));
	if (item->type != TIMED_LEAF)
		status = timed_zset_rank(item, c->argv[2], call_is(c, HOW_REVERSE), &rank, &score);
	if (status == STATUS_NOT_FOUND) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	if (status == STATUS_OK)
		reply_int(c->reply, (int64_t)rank);
	return status;
}

/* ---- Popping and drawing ---- */

/* ZPOPMIN, ZPOPMAX. */
enum status
cmd_zset_pop(struct call *c)
{
	bool nested = c->argc == 3 && c->reply->version == 3;
	struct timed_members e = { 0 };
	struct timed_item *item;
	int64_t count = 1;

	if (c->argc > 3)
		return call_syntax_error(c);
	if (c->argc == 3)
		TRY(call_int_range(c, 2, 0, INT64_MAX, "value is out of range, must be positive",
				   &count));
	TRY(data_item(c, 1, TIMED_ZSET, &item));
	if (item->type != TIMED_LEAF && count)
		TRY(zset_pop(c, item, c->argv[1], call_is(c, HOW_REVERSE), (uint64_t)count, &e));
	reply_array(c->reply, nested ? e.count : 2 * e.count);
	for (size_t i = 0; i < e.count; i++) {
		if (nested)
			reply_array(c->reply, 2);
		reply_bulk(c->reply, e.members[i].name);
		reply_double(c->reply, e.members[i].score);
	}
	return STATUS_OK;
}
