/* When keys expire. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/wire/number.h"

struct expire_options {
	bool nx, xx, gt, lt;
};

static enum status
expire_parse(struct call *c, struct expire_options *o)
{
	for (size_t i = 3; i < c->argc; i++) {
		if (call_arg_is(c, i, "nx")) {
			o->nx = true;
		} else if (call_arg_is(c, i, "xx")) {
			o->xx = true;
		} else if (call_arg_is(c, i, "gt")) {
			o->gt = true;
		} else if (call_arg_is(c, i, "lt")) {
			o->lt = true;
		} else {
			return call_errorf(c, "ERR Unsupported option %.*s",
					   STR_ARG(call_shown(c->argv[i])));
		}
	}
	if (o->nx && (o->xx || o->gt || o->lt))
		return call_error(c, STR("ERR NX and XX, GT or LT options at the same time are "
					 "not compatible"));
	if (o->gt && o->lt)
		return call_error(c,
				  STR("ERR GT and LT options at the same time are not compatible"));
	return STATUS_OK;
}

static bool
expire_applies(const struct expire_options *o, const struct timed_item *item, int64_t at_ms)
{
	bool has = item->expires_ms;
	int64_t now_at = (int64_t)item->expires_ms;

	if ((o->nx && has) || (o->xx && !has))
		return false;
	if (o->gt && (!has || at_ms <= now_at))
		return false;
	return !o->lt || !has || at_ms < now_at;
}

/* EXPIRE and its kin. */
enum status
cmd_expire(struct call *c)
{
	struct expire_options o = { 0 };
	struct timed_item *item;
	int64_t at_ms;
	uint64_t now;

	TRY(expire_parse(c, &o));
	TRY(txn_item(c, c->argv[1], &item)); /* its moment is the transaction's */
	TRY(data_time(c, 2, data_time_of(c), &at_ms));
	if (item->type == TIMED_LEAF || !expire_applies(&o, item, at_ms)) {
		reply_int(c->reply, 0);
		return STATUS_OK;
	}
	TRY(txn_now_ms(c, &now));
	reply_int(c->reply, 1);
	if (at_ms <= (int64_t)now)
		return data_delete(c, item, c->argv[1], "del");
	TRY(timed_item_expire(item, data_expiry(at_ms)));
	return txn_changed(c, c->argv[1], EVENT_GENERIC, "expire");
}

/* TTL and its kin. */
enum status
cmd_ttl(struct call *c)
{
	struct timed_item *item;
	uint64_t now, left;

	TRY(txn_item(c, c->argv[1], &item));
	if (item->type == TIMED_LEAF || !item->expires_ms) {
		reply_int(c->reply, item->type == TIMED_LEAF ? -2 : -1);
		return STATUS_OK;
	}
	TRY(txn_now_ms(c, &now));
	left = item->expires_ms - (call_is(c, HOW_ABSOLUTE) ? (uint64_t)txn_ahead_ms(c) : now);
	reply_int(c->reply, (int64_t)(call_is(c, HOW_SECONDS) ? (left + 500) / 1000 : left));
	return STATUS_OK;
}

enum status
cmd_persist(struct call *c)
{
	struct timed_item *item;

	TRY(txn_item(c, c->argv[1], &item));
	if (item->type == TIMED_LEAF || !item->expires_ms) {
		reply_int(c->reply, 0);
		return STATUS_OK;
	}
	TRY(timed_item_expire(item, (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER }));
	reply_int(c->reply, 1);
	return txn_changed(c, c->argv[1], EVENT_GENERIC, "persist");
}
