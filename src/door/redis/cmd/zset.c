#include "door/redis/cmd/zset.h"

#include "door/redis/wire/number.h"

enum status
zset_pop(struct call *c, struct timed_item *item, struct str key, bool greatest, uint64_t most,
	 struct timed_members *ret)
{
	TRY(timed_zset_pop(item, greatest, most, ret));
	if (!ret->count)
		return STATUS_OK;
	return data_changed(c, item, key, EVENT_ZSET, greatest ? "zpopmax" : "zpopmin");
}

void
zset_answer_begin(struct reply *r, size_t count, bool scores)
{
	reply_array(r, scores && r->version == 2 ? 2 * count : count);
}

void
zset_answer(struct reply *r, struct str name, double score, bool scores)
{
	if (scores && r->version == 3)
		reply_array(r, 2);
	reply_bulk(r, name);
	if (scores)
		reply_double(r, score);
}

bool
zset_read_score(struct str s, struct timed_bound *ret)
{
	*ret = (struct timed_bound){ .kind = TIMED_BOUND_INCLUSIVE };
	if (s.len && s.ptr[0] == '(') {
		ret->kind = TIMED_BOUND_EXCLUSIVE;
		s = str_skip(s, 1);
	}
	return number_read_bound(s, &ret->score);
}

bool
zset_read_name(struct str s, struct timed_bound *ret, bool *ret_below, bool *ret_above)
{
	*ret = (struct timed_bound){ .kind = TIMED_BOUND_END };
	*ret_below = str_eq(s, STR("-"));
	*ret_above = str_eq(s, STR("+"));
	if (*ret_below || *ret_above)
		return true;
	if (!s.len || (s.ptr[0] != '[' && s.ptr[0] != '('))
		return false;
	ret->kind = s.ptr[0] == '[' ? TIMED_BOUND_INCLUSIVE : TIMED_BOUND_EXCLUSIVE;
	ret->name = str_skip(s, 1);
	return true;
}
