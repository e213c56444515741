/* Sorted sets by rank, by score and by name; their ends. */
#include <assert.h>
#include <endian.h>

#include "model/timed/items/ends.h"
#include "model/timed/items/pack.h"

/* A range of the order: from `begin` up to but without `end`, whose ptr is NULL at the very end. */
struct span {
	struct str begin;
	struct str end;
};

enum {
	POP_AHEAD = 31, /* members that a further pop of a transaction reads beyond its own */
};

/* ---- Bounds ---- */

/* What lies before all names of a score, or behind all of them. */
static enum status
score_order(struct timed_item *item, double score, bool behind, struct str *ret)
{
	uint8_t bytes[TIMED_SCORE_BYTES];
	uint64_t n;

	timed_score_order(score, bytes);
	memcpy(&n, bytes, sizeof(n));
	n = htobe64(be64toh(n) + behind);
	*ret = arena_dup(item->arena, str_of(&n, sizeof(n)));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
bound_order(struct timed_item *item, enum timed_zset_by by, const struct timed_bound *bound,
	    double score, bool behind, struct str *ret)
{
	if (by == TIMED_BY_SCORE)
		return score_order(item, bound->score, behind, ret);
	TRY(timed_zset_order(item, score, bound->name, ret));
	return behind ? timed_key_with(item->arena, *ret, 0, ret) : STATUS_OK;
}

/*
 * The score of the first member: what all members have, where names are asked for. `pack`, here and
 * below, has been read of an item that is packed, and is NULL of one with a body.
 */
static enum status
first_score(struct timed_item *item, const struct timed_pack *pack, double *ret)
{
	const struct kv_range_options one = { .limit = 1 };
	struct str begin, end;
	struct timed_one first;
	struct kv_pair pair;
	enum status status;

	if (pack) {
		*ret = pack->members[0].score;
		return STATUS_OK;
	}
	TRY(timed_part_key(item, TIMED_PART_ORDER, &begin));
	TRY(timed_part_key(item, TIMED_PART_BLOCKS, &end));
	TRY(timed_one_ask(item->t, begin, end, &one, &first));
	status = timed_one_wait(item->t, &first, item->arena, &pair);
	*ret = 0;
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	if (pair.value.len < TIMED_SCORE_BYTES)
		return timed_item_corrupt(item);
	*ret = timed_score_get((const uint8_t *)pair.value.ptr);
	return STATUS_OK;
}

static enum status
range_span(struct timed_item *item, const struct timed_zset_range *range,
	   const struct timed_pack *pack, struct span *ret)
{
	double score = 0;

	*ret = (struct span){ .begin = STR("") };
	if (range->by == TIMED_BY_NAME)
		TRY(first_score(item, pack, &score));
	if (range->lower.kind != TIMED_BOUND_END)
		TRY(bound_order(item, range->by, &range->lower, score,
				range->lower.kind == TIMED_BOUND_EXCLUSIVE, &ret->begin));
	if (range->upper.kind != TIMED_BOUND_END)
		TRY(bound_order(item, range->by, &range->upper, score,
				range->upper.kind == TIMED_BOUND_INCLUSIVE, &ret->end));
	return STATUS_OK;
}

static bool
span_is_empty(const struct span *span)
{
	return span->end.ptr && str_cmp(span->begin, span->end) >= 0;
}

/* ---- Ranks ---- */

/* How many members come before the order. */
static enum status
order_rank(struct timed_item *item, const struct timed_pack *pack, struct str order, uint64_t *ret)
{
	if (!pack)
		return timed_blocks_rank(item, order, ret);
	*ret = timed_pack_rank(pack, order);
	return STATUS_OK;
}

static enum status
end_rank(struct timed_item *item, const struct timed_pack *pack, struct str order, uint64_t *ret)
{
	return order.ptr ? order_rank(item, pack, order, ret) : timed_count(item, ret);
}

/* Ranks from the least on, with what `skip` and `limit` leave of the range. */
static void
ranks_cut(const struct timed_zset_range *range, uint64_t *from, uint64_t *to)
{
	uint64_t n = *to > *from ? *to - *from : 0;
	uint64_t skip = range->skip < n ? range->skip : n;
	uint64_t take = n - skip < range->limit ? n - skip : range->limit;

	if (range->reverse) {
		*to -= skip;
		*from = *to - take;
	} else {
		*from += skip;
		*to = *from + take;
	}
	assert(*from <= *to && *to - *from <= range->limit);
}

static enum status
range_ranks(struct timed_item *item, const struct timed_zset_range *range,
	    const struct timed_pack *pack, uint64_t *ret_from, uint64_t *ret_to)
{
	struct span span;
	uint64_t count;

	*ret_from = *ret_to = 0;
	if (range->by != TIMED_BY_RANK) {
		TRY(range_span(item, range, pack, &span));
		if (span_is_empty(&span))
			return STATUS_OK;
		TRY(end_rank(item, pack, span.begin, ret_from));
		return end_rank(item, pack, span.end, ret_to);
	}
	TRY(timed_count(item, &count));
	*ret_from = range->from < count ? range->from : count;
	*ret_to = range->to < count ? range->to : count;
	if (*ret_to < *ret_from)
		*ret_to = *ret_from;
	if (range->reverse) {
		uint64_t from = count - *ret_to;

		*ret_to = count - *ret_from;
		*ret_from = from;
	}
	assert(*ret_from <= *ret_to && *ret_to <= count);
	return STATUS_OK;
}

enum status
timed_zset_range_count(struct timed_item *item, const struct timed_zset_range *range, uint64_t *ret)
{
	struct timed_pack pack;
	uint64_t from, to;

	*ret = 0;
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	if (item->packed)
		TRY(timed_packed_read(item, &pack));
	TRY(range_ranks(item, range, item->packed ? &pack : NULL, &from, &to));
	*ret = to > from ? to - from : 0;
	return STATUS_OK;
}

static enum status
packed_rank(struct timed_item *item, struct str name, uint64_t *ret_rank, double *ret_score)
{
	const struct timed_pack_member *m;
	struct timed_pack pack;

	TRY(timed_packed_read(item, &pack));
	m = timed_pack_find(&pack, name);
	if (!m)
		return STATUS_NOT_FOUND;
	*ret_rank = (uint64_t)(m - pack.members);
	*ret_score = m->score;
	return STATUS_OK;
}

static enum status
body_rank(struct timed_item *item, struct str name, uint64_t *ret_rank, double *ret_score)
{
	struct timed_member member = { .name = name };
	struct str order;

	TRY(timed_members_get(item, &member, 1));
	if (!member.found)
		return STATUS_NOT_FOUND;
	*ret_score = member.score;
	TRY(timed_zset_order(item, member.score, name, &order));
	return order_rank(item, NULL, order, ret_rank);
}

enum status
timed_zset_rank(struct timed_item *item, struct str name, bool reverse, uint64_t *ret_rank,
		double *ret_score)
{
	uint64_t count;

	if (item->packed)
		TRY(packed_rank(item, name, ret_rank, ret_score));
	else
		TRY(body_rank(item, name, ret_rank, ret_score));
	if (!reverse)
		return STATUS_OK;
	TRY(timed_count(item, &count));
	if (count <= *ret_rank)
		return timed_item_corrupt(item);
	*ret_rank = count - 1 - *ret_rank;
	return STATUS_OK;
}

/* ---- Members ---- */

/* The whole of a name that has been cut, where the order does not have it: its member does. */
static enum status
long_name(struct timed_item *item, struct str cut, struct str *ret)
{
	struct timed_leaf_record leaf;
	struct str key, value;

	TRY(timed_cut_key(item, cut, &key));
	TRY(timed_data_get(item->t, key, KV_READ, item->arena, &value));
	TRY(timed_leaf_read(item, value, &leaf));
	if (!leaf.pieces.there)
		return timed_item_corrupt(item);
	TRY(timed_leaf_load(item, &leaf));
	*ret = leaf.whole;
	return STATUS_OK;
}

static enum status
entry_take(struct timed_item *item, const struct kv_pair *pair, struct timed_member *ret)
{
	struct str order;

	TRY(timed_key_tail(item, pair->key, 1, &order));
	if (order.len < TIMED_SCORE_BYTES || pair->value.len < TIMED_SCORE_BYTES)
		return timed_item_corrupt(item);
	*ret = (struct timed_member){
		.name = str_skip(order, TIMED_SCORE_BYTES),
		.score = timed_score_get((const uint8_t *)pair->value.ptr),
		.found = true,
	};
	if (timed_is_cut(ret->name) && pair->value.len == TIMED_SCORE_BYTES)
		return long_name(item, ret->name, &ret->name);
	if (timed_is_cut(ret->name))
		ret->name = arena_dup(item->arena, str_skip(pair->value, TIMED_SCORE_BYTES));
	return ret->name.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* Reads `limit` members of the span from one of its ends, but for the first `skip`. */
static enum status
span_read(struct timed_item *item, const struct span *span, bool reverse, uint64_t skip,
	  size_t limit, struct timed_members *ret)
{
	AUTO(timed_cursor_close) struct timed_cursor scan = { 0 };
	struct kv_range_options options = { .reverse = reverse };
	struct str begin, end;
	struct kv_pair pair;
	enum status status = STATUS_NOT_FOUND;
	size_t cap = 0;

	TRY(timed_order_key(item, span->begin, &begin));
	if (span->end.ptr)
		TRY(timed_order_key(item, span->end, &end));
	else
		TRY(timed_part_key(item, TIMED_PART_BLOCKS, &end));
	if (limit < SIZE_MAX - skip)
		options.limit = skip + limit;
	if (limit)
		TRY(timed_cursor_open(&scan, item->t, begin, end, &options));
	while (limit && (status = timed_cursor_next(&scan, &pair)) == STATUS_OK) {
		if (skip) {
			skip--;
			continue;
		}
		ret->members = arena_grow(item->arena, ret->members, ret->count, &cap,
					  sizeof(*ret->members));
		if (!ret->members)
			return STATUS_LIMIT;
		TRY(entry_take(item, &pair, &ret->members[ret->count++]));
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* Members by their ranks, from the least; in the other order if the range is reversed. */
static enum status
ranks_read(struct timed_item *item, const struct timed_zset_range *range, uint64_t from,
	   uint64_t to, struct timed_members *ret)
{
	struct span span = { .begin = STR("") };
	uint64_t before;

	TRY(timed_blocks_find(item, from, &span.begin, &before));
	assert(before <= from && from <= to);
	TRY(span_read(item, &span, false, from - before, (size_t)(to - from), ret));
	for (size_t i = 0; range->reverse && i < ret->count / 2; i++) {
		struct timed_member member = ret->members[i];

		ret->members[i] = ret->members[ret->count - 1 - i];
		ret->members[ret->count - 1 - i] = member;
	}
	return STATUS_OK;
}

static enum status
packed_range(struct timed_item *item, const struct timed_zset_range *range,
	     struct timed_members *ret)
{
	struct timed_pack pack;
	uint64_t from, to;

	TRY(timed_packed_keep(item, &pack));
	TRY(range_ranks(item, range, &pack, &from, &to));
	ranks_cut(range, &from, &to);
	return timed_packed_ranks(item, &pack, from, to, range->reverse, ret);
}

enum status
timed_zset_range(struct timed_item *item, const struct timed_zset_range *range,
		 struct timed_members *ret)
{
	struct span span;
	uint64_t from, to;

	*ret = (struct timed_members){ 0 };
	if (item->type == TIMED_LEAF || !range->limit)
		return STATUS_OK;
	if (item->packed)
		return packed_range(item, range, ret);
	if (range->by != TIMED_BY_RANK && !range->skip) {
		TRY(range_span(item, range, NULL, &span));
		if (span_is_empty(&span))
			return STATUS_OK;
		return span_read(item, &span, range->reverse, 0, range->limit, ret);
	}
	TRY(range_ranks(item, range, NULL, &from, &to));
	ranks_cut(range, &from, &to);
	return to > from ? ranks_read(item, range, from, to, ret) : STATUS_OK;
}

/* ---- Popping ---- */

/*
 * Clears the record of a member that was found in the order. It has pieces only if the name is too
 * long for a key; only such a record is read first, to clear its pieces as well.
 */
static enum status
member_clear(struct timed_item *item, struct str name)
{
	struct timed_leaf_record leaf;
	struct str key, value;

	static_assert(TIMED_WHOLE_BYTES + TIMED_SCORE_BYTES <= TIMED_RECORD_BYTES,
		      "a name that is in the key needs no pieces");
	TRY(timed_member_key(item, name, &key));
	if (name.len <= TIMED_WHOLE_BYTES)
		return timed_data_clear(item->t, key);
	TRY(timed_data_get(item->t, key, KV_READ, item->arena, &value));
	if (!value.ptr)
		return timed_item_corrupt(item);
	TRY(timed_leaf_read(item, value, &leaf));
	TRY(timed_leaf_drop(item, &leaf.pieces));
	return timed_data_clear(item->t, key);
}

/*
 * Takes members at one end of the order. Reads one member more, which shows that something is left.
 * The second pop of a transaction reads POP_AHEAD members more, for the pops that may follow: to
 * begin a read costs as much as to read many pairs.
 */
static enum status
ends_take(struct timed_item *item, bool greatest, size_t most, struct timed_members *ret)
{
	const struct span all = { .begin = STR("") };
	struct timed_ends *e = item->popping;
	struct timed_members page = { 0 };
	size_t ahead = e ? POP_AHEAD : 1;

	if (!e)
		e = arena_zalloc(item->arena, sizeof(*e));
	if (!e)
		return STATUS_LIMIT;
	if (e->last != greatest || e->members.count - e->taken < most) {
		TRY(span_read(item, &all, greatest, 0,
			      most < SIZE_MAX - ahead ? most + ahead : SIZE_MAX, &page));
		*e = (struct timed_ends){ .members = page, .last = greatest };
	}
	item->popping = e;
	if (!e->members.count)
		return STATUS_OK;
	ret->members = e->members.members + e->taken;
	ret->count = e->members.count - e->taken < most ? e->members.count - e->taken : most;
	e->taken += ret->count;
	return STATUS_OK;
}

enum status
timed_zset_pop(struct timed_item *item, bool greatest, uint64_t most, struct timed_members *ret)
{
	struct timed_ends *popping;
	bool done = false;

	*ret = (struct timed_members){ 0 };
	if (item->type == TIMED_LEAF || !most)
		return STATUS_OK;
	if (item->packed)
		TRY(timed_packed_pop(item, greatest, most, ret, &done));
	if (done)
		return STATUS_OK;
	TRY(ends_take(item, greatest, most < SIZE_MAX ? (size_t)most : SIZE_MAX, ret));
	if (!ret->count)
		return STATUS_OK;
	popping = item->popping; /* stays right, unlike with any other change */
	TRY(timed_item_touch(item));
	for (size_t i = 0; i < ret->count; i++) {
		const struct timed_member *m = &ret->members[i];

		/* Whoever changes the score writes the entry, which was read. */
		TRY(timed_zset_erase(item, m->name, m->score, !greatest));
		TRY(member_clear(item, m->name));
	}
	TRY(timed_item_add(item, -(int64_t)ret->count));
	item->popping = popping;
	return popping->taken < popping->members.count ? STATUS_OK : timed_item_delete_empty(item);
}
