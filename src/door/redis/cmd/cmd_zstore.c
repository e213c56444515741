/* Unions, intersections and differences of sorted sets and sets. */
#include <assert.h>
#include <math.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/members.h"
#include "door/redis/cmd/zset.h"
#include "base/hash.h"
#include "door/redis/wire/number.h"
#include "loop/sort.h"

enum aggregate {
	AGGREGATE_SUM,
	AGGREGATE_MIN,
	AGGREGATE_MAX,
};

struct zsets {
	unsigned how; /* HOW_UNION, HOW_INTER or HOW_DIFF */
	struct timed_item **items;
	double *weights;
	size_t count;
	enum aggregate aggregate;
	bool scores;
	bool counts; /* what comes of it is counted only */
	uint64_t limit;
};

struct scored_member {
	struct str name;
	double score;
};

/* Nothing else is kept of a member: there may be very many. */
struct scored {
	struct scored_member *members;
	size_t count;
	size_t cap;
	uint32_t *slots; /* of a union, a hash table of them: index + 1; 0: free */
	size_t size;
};

static double
aggregate(enum aggregate how, double a, double b)
{
	double sum = a + b;

	if (how == AGGREGATE_MIN)
		return b < a ? b : a; /* of 0 and -0, which are equal, the first one stays */
	if (how == AGGREGATE_MAX)
		return b > a ? b : a;
	return isnan(sum) ? 0 : sum; /* inf and -inf */
}

static double
weighted(double weight, double score)
{
	double d = weight * score;

	return isnan(d) ? 0 : d;
}

/* ---- Members by name ---- */

static uint32_t *
scored_slot(const struct scored *s, struct str name)
{
	size_t i = hash_keyed(0, name) & (s->size - 1);

	while (s->slots[i] && !str_eq(s->members[s->slots[i] - 1].name, name))
		i = (i + 1) & (s->size - 1);
	return &s->slots[i];
}

static enum status
scored_grow(struct scored *s, struct arena *arena)
{
	if (s->count > UINT32_MAX / 2)
		return STATUS_LIMIT;
	do
		s->size = s->size ? 2 * s->size : 64;
	while (s->size <= 2 * s->count);
	s->slots = arena_zalloc(arena, s->size * sizeof(*s->slots));
	if (!s->slots)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->count; i++)
		*scored_slot(s, s->members[i].name) = (uint32_t)i + 1;
	return STATUS_OK;
}

/* A copy of the name is kept. */
static enum status
scored_append(struct scored *s, struct arena *arena, struct str name, double score)
{
	s->members = arena_grow(arena, s->members, s->count, &s->cap, sizeof(*s->members));
	if (!s->members)
		return STATUS_LIMIT;
	name = arena_dup(arena, name);
	if (!name.ptr)
		return STATUS_LIMIT;
	s->members[s->count++] = (struct scored_member){ name, score };
	return STATUS_OK;
}

static enum status
scored_add(struct scored *s, struct arena *arena, struct str name, double score, enum aggregate how)
{
	uint32_t *slot;

	if (2 * s->count >= s->size)
		TRY(scored_grow(s, arena));
	slot = scored_slot(s, name);
	if (*slot) {
		s->members[*slot - 1].score = aggregate(how, s->members[*slot - 1].score, score);
		return STATUS_OK;
	}
	TRY(scored_append(s, arena, name, score));
	*slot = (uint32_t)s->count;
	return STATUS_OK;
}

/* The score of a member; of a set's it is 1. */
static double
score_of(const struct timed_item *item, const struct timed_member *m)
{
	return item->type == TIMED_SET ? 1 : m->score;
}

/* ---- Combining ---- */

static enum status
zsets_union(struct call *c, const struct zsets *z, struct scored *ret)
{
	for (size_t i = 0; i < z->count; i++) {
		AUTO(members_walk_end) struct members_walk w = { 0 };
		struct timed_member m;
		enum status status;

		members_walk_init(&w, z->items[i], true);
		while ((status = members_walk_next(&w, &m)) == STATUS_OK)
			TRY(scored_add(ret, c->arena, m.name,
				       weighted(z->weights[i], score_of(z->items[i], &m)),
				       z->aggregate));
		if (status != STATUS_NOT_FOUND)
			return status;
	}
	return STATUS_OK;
}

/*
 * Leaves only those members of a page of the set `first` that another set has, or has not. Their
 * scores are those of the result so far.
 */
static enum status
zsets_sift(const struct zsets *z, size_t at, struct arena *pages, struct timed_member *members,
	   size_t *count)
{
	struct timed_member *others = arena_alloc(pages, (*count + 1) * sizeof(*others));
	bool wanted = z->how & HOW_INTER;
	size_t left = 0;

	if (!others)
		return STATUS_LIMIT;
	for (size_t i = 0; i < *count; i++)
		others[i] = (struct timed_member){ .name = members[i].name };
	TRY(members_find(z->items[at], pages, others, *count));
	for (size_t i = 0; i < *count; i++) {
		double score = members[i].score;

		if (others[i].found != wanted)
			continue;
		if (wanted)
			score = aggregate(
				z->aggregate, score,
				weighted(z->weights[at], score_of(z->items[at], &others[i])));
		members[left] = members[i];
		members[left++].score = score;
	}
	*count = left;
	return STATUS_OK;
}

static enum status
zsets_smallest(const struct zsets *z, size_t *ret)
{
	uint64_t least = UINT64_MAX;

	*ret = 0;
	for (size_t i = 0; z->how & HOW_INTER && i < z->count; i++) {
		uint64_t count = 0;

		if (z->items[i]->type != TIMED_LEAF)
			TRY(timed_count(z->items[i], &count));
		if (count < least) {
			least = count;
			*ret = i;
		}
	}
	return STATUS_OK;
}

/* The members of one set that all others have, or none of them: page by page. */
static enum status
zsets_filter(struct call *c, const struct zsets *z, struct scored *ret)
{
	AUTO(members_walk_end) struct members_walk w = { 0 };
	struct timed_member *members;
	enum status status;
	size_t first, count;

	TRY(zsets_smallest(z, &first));
	members_walk_init(&w, z->items[first], true);
	while ((status = members_walk_rest(&w, &members, &count)) == STATUS_OK) {
		for (size_t i = 0; i < count; i++)
			members[i].score = weighted(z->weights[first],
						    score_of(z->items[first], &members[i]));
		for (size_t i = 0; i < z->count && count; i++)
			if (i != first)
				TRY(zsets_sift(z, i, w.pages, members, &count));
		for (size_t i = 0; i < count; i++) {
			if (z->counts)
				ret->count++;
			else
				TRY(scored_append(ret, c->arena, members[i].name,
						  members[i].score));
			if (z->limit && ret->count == z->limit)
				return STATUS_OK;
		}
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
compare_scored(const void *arg, const void *a, const void *b, int *ret)
{
	const struct scored_member *x = a, *y = b;

	(void)arg;
	if (x->score == y->score)
		return sort_compare_strs(x->name, y->name, ret);
	*ret = x->score < y->score ? -1 : 1;
	return STATUS_OK;
}

static enum status
zsets_combine(struct call *c, const struct zsets *z, struct scored *ret)
{
	if (z->how & HOW_UNION)
		TRY(zsets_union(c, z, ret));
	else
		TRY(zsets_filter(c, z, ret));
	if (z->counts)
		return STATUS_OK;
	return sort_items(ret->members, ret->count, sizeof(*ret->members), compare_scored, NULL,
			  c->arena);
}

/* ---- Reading the arguments ---- */

static enum status
read_weights(struct call *c, size_t at, struct zsets *z)
{
	for (size_t i = 0; i < z->count; i++)
		if (!number_read_double(c->argv[at + i], &z->weights[i]))
			return call_error(c, STR("ERR weight value is not a float"));
	return STATUS_OK;
}

/* The options behind the keys. */
static enum status
zsets_options(struct call *c, size_t i, bool stores, struct zsets *z)
{
	while (i < c->argc) {
		if (!(z->how & HOW_DIFF) && call_arg_is(c, i, "weights") &&
		    c->argc - i > z->count) {
			TRY(read_weights(c, i + 1, z));
			i += z->count + 1;
		} else if (!(z->how & HOW_DIFF) && call_arg_is(c, i, "aggregate") &&
			   i + 1 < c->argc) {
			if (call_arg_is(c, i + 1, "sum"))
				z->aggregate = AGGREGATE_SUM;
			else if (call_arg_is(c, i + 1, "min"))
				z->aggregate = AGGREGATE_MIN;
			else if (call_arg_is(c, i + 1, "max"))
				z->aggregate = AGGREGATE_MAX;
			else
				break;
			i += 2;
		} else if (!stores && call_arg_is(c, i, "withscores")) {
			z->scores = true;
			i++;
		} else {
			break;
		}
	}
	return i == c->argc ? STATUS_OK : call_syntax_error(c);
}

/* The number of keys at `at`, and the keys. */
static enum status
zsets_open(struct call *c, size_t at, struct zsets *z)
{
	int64_t count;

	TRY(call_int(c, at, &count));
	if (count < 1)
		return call_errorf(c, "ERR at least 1 input key is needed for '%s' command",
				   c->command->name);
	if ((uint64_t)count > c->argc - at - 1)
		return call_syntax_error(c);
	z->count = (size_t)count;
	z->weights = arena_alloc(c->arena, z->count * sizeof(*z->weights));
	z->items = arena_alloc(c->arena, z->count * sizeof(struct timed_item *));
	if (!z->weights || !z->items)
		return STATUS_LIMIT;
	for (size_t i = 0; i < z->count; i++)
		z->weights[i] = 1;
	TRY(txn_items(c, c->argv + at + 1, z->count, 1, z->items));
	for (size_t i = 0; i < z->count; i++) {
		enum timed_type type = z->items[i]->type;

		TRY(txn_looked_up(c, z->items[i]));
		if (type != TIMED_LEAF && type != TIMED_ZSET && type != TIMED_SET)
			return call_wrong_type(c);
	}
	return STATUS_OK;
}

/* ---- The commands ---- */

static enum status
zsets_store(struct call *c, const struct zsets *z)
{
	struct scored result = { 0 };
	struct timed_member *members;

	TRY(txn_ask(c, c->db, c->argv[1]));
	TRY(zsets_combine(c, z, &result));
	members = arena_zalloc(c->arena, (result.count + 1) * sizeof(*members));
	if (!members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < result.count; i++) {
		members[i].name = result.members[i].name;
		members[i].score = result.members[i].score;
	}
	return members_store(c, TIMED_ZSET, members, result.count);
}

/* ZUNION, ZINTER, ZDIFF, and those that store what these answer. */
enum status
cmd_zsets(struct call *c)
{
	size_t first = call_is(c, HOW_STORES) ? 2 : 1;
	struct zsets z = { .how = c->command->how };
	struct scored result = { 0 };

	assert(z.how & (HOW_UNION | HOW_INTER | HOW_DIFF));
	TRY(zsets_open(c, first, &z));
	TRY(zsets_options(c, first + 1 + z.count, first == 2, &z));
	if (call_is(c, HOW_STORES))
		return zsets_store(c, &z);
	TRY(zsets_combine(c, &z, &result));
	zset_answer_begin(c->reply, result.count, z.scores);
	for (size_t i = 0; i < result.count; i++)
		zset_answer(c->reply, result.members[i].name, result.members[i].score, z.scores);
	return STATUS_OK;
}

enum status
cmd_zintercard(struct call *c)
{
	struct zsets z = { .how = c->command->how, .counts = true };
	struct scored result = { 0 };
	int64_t limit = 0;

	TRY(zsets_open(c, 1, &z));
	for (size_t i = 2 + z.count; i < c->argc; i += 2) {
		if (!call_arg_is(c, i, "limit") || i + 1 == c->argc)
			return call_syntax_error(c);
		TRY(call_int_range(c, i + 1, 0, INT64_MAX, "LIMIT can't be negative", &limit));
	}
	z.limit = (uint64_t)limit;
	TRY(zsets_combine(c, &z, &result));
	reply_int(c->reply, (int64_t)result.count);
	return STATUS_OK;
}
