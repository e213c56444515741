/* Hashes. */
#include <math.h>
#include <stdio.h>

#include "base/rand.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/cmd/members.h"
#include "door/redis/wire/number.h"

/* ---- Writing ---- */

static enum status
hash_put(struct call *c, struct timed_item *item, size_t *ret_new)
{
	size_t count = (c->argc - 2) / 2;
	struct timed_member *m = arena_zalloc(c->arena, count * sizeof(*m));

	if (!m)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		m[i].name = c->argv[2 + 2 * i];
		m[i].value = c->argv[3 + 2 * i];
	}
	TRY(timed_members_put(item, TIMED_HASH, m, count));
	*ret_new = 0;
	for (size_t i = 0; i < count; i++)
		*ret_new += !m[i].found;
	return txn_changed(c, c->argv[1], EVENT_HASH, "hset");
}

enum status
cmd_hset(struct call *c)
{
	struct timed_item *item;
	size_t added;

	if (c->argc % 2)
		return call_wrong_arity(c);
	TRY(data_item(c, 1, TIMED_HASH, &item));
	TRY(hash_put(c, item, &added));
	if (strcmp(c->command->name, "hmset") == 0)
		reply_ok(c->reply);
	else
		reply_int(c->reply, (int64_t)added);
	return STATUS_OK;
}

/* A longer value than a number may have is not read: `too_long`. */
static enum status
hash_get(struct timed_item *item, struct str field, struct timed_member *ret)
{
	*ret = (struct timed_member){ .name = field, .most = NUMBER_TEXT_BYTES };
	return item->type == TIMED_LEAF ? STATUS_OK : timed_members_get(item, ret, 1);
}

static enum status
hash_put_one(struct call *c, struct timed_item *item, struct timed_member *old, struct str value,
	     const char *event)
{
	struct timed_member m = { .name = c->argv[2],
				  .value = value,
				  .expires_ms = old->expires_ms };

	TRY(timed_members_put(item, TIMED_HASH, &m, 1));
	return txn_changed(c, c->argv[1], EVENT_HASH, event);
}

enum status
cmd_hsetnx(struct call *c)
{
	struct timed_member old;
	struct timed_item *item;

	TRY(data_item(c, 1, TIMED_HASH, &item));
	TRY(hash_get(item, c->argv[2], &old));
	reply_int(c->reply, !old.found);
	return old.found ? STATUS_OK : hash_put_one(c, item, &old, c->argv[3], "hset");
}

enum status
cmd_hincrby(struct call *c)
{
	struct timed_member old;
	struct timed_item *item;
	int64_t n = 0, by;
	char buf[24];

	TRY(call_int(c, 3, &by));
	TRY(data_item(c, 1, TIMED_HASH, &item));
	TRY(hash_get(item, c->argv[2], &old));
	if (old.found && (old.too_long || !number_read_i64(old.value, &n)))
		return call_error(c, STR("ERR hash value is not an integer"));
	if (__builtin_add_overflow(n, by, &n))
		return call_error(c, STR("ERR increment or decrement would overflow"));
	TRY(hash_put_one(c, item, &old,
			 str_of(buf, (size_t)snprintf(buf, sizeof(buf), "%lld", (long long)n)),
			 "hincrby"));
	reply_int(c->reply, n);
	return STATUS_OK;
}

enum status
cmd_hincrbyfloat(struct call *c)
{
	char buf[NUMBER_TEXT_BYTES];
	struct timed_member old;
	struct timed_item *item;
	long double n = 0, by;
	struct str text;

	if (!number_read_long_double(c->argv[3], &by))
		return call_not_float(c);
	if (isinf(by))
		return call_error(c, STR("ERR value is NaN or Infinity"));
	TRY(data_item(c, 1, TIMED_HASH, &item));
	TRY(hash_get(item, c->argv[2], &old));
	if (old.found && (old.too_long || !number_read_long_double(old.value, &n)))
		return call_error(c, STR("ERR hash value is not a float"));
	n += by;
	if (isnan(n) || isinf(n))
		return call_error(c, STR("ERR increment would produce NaN or Infinity"));
	text = number_write_long_double(n, buf);
	TRY(hash_put_one(c, item, &old, text, "hincrbyfloat"));
	reply_bulk(c->reply, text);
	return STATUS_OK;
}

/* ---- Reading ---- */

/* The field that HGET, HEXISTS and HSTRLEN are about. */
static enum status
hash_field(struct call *c, bool value, struct timed_member **ret)
{
	size_t count;

	return members_look_up(c, TIMED_HASH, value, ret, &count);
}

enum status
cmd_hget(struct call *c)
{
	struct timed_member *m;

	TRY(hash_field(c, true, &m));
	reply_bulk_if(c->reply, m->found, m->value);
	return STATUS_OK;
}

enum status
cmd_hexists(struct call *c)
{
	struct timed_member *m;

	TRY(hash_field(c, false, &m));
	reply_int(c->reply, m->found);
	return STATUS_OK;
}

enum status
cmd_hstrlen(struct call *c)
{
	struct timed_member *m;

	TRY(hash_field(c, false, &m));
	reply_int(c->reply, m->found ? (int64_t)m->value_len : 0);
	return STATUS_OK;
}

enum status
cmd_hmget(struct call *c)
{
	struct timed_member *m;
	size_t count;

	TRY(members_look_up(c, TIMED_HASH, true, &m, &count));
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++)
		reply_bulk_if(c->reply, m[i].found, m[i].value);
	return STATUS_OK;
}

/* HGETALL, HKEYS, HVALS. */
enum status
cmd_hash_fields(struct call *c)
{
	bool names = call_is(c, HOW_NAMES), values = call_is(c, HOW_VALUES);
	AUTO(members_walk_end) struct members_walk w = { 0 };
	struct timed_item *item;
	struct timed_member m;
	enum status status;
	size_t place = reply_later(c->reply);
	size_t count = 0;

	TRY(data_item(c, 1, TIMED_HASH, &item));
	members_walk_init(&w, item, true);
	while ((status = members_walk_next(&w, &m)) == STATUS_OK) {
		if (names)
			reply_bulk(c->reply, m.name);
		if (values)
			reply_bulk(c->reply, m.value);
		count++;
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	reply_later_end(c->reply, place, names && values ? '%' : '*', count);
	return STATUS_OK;
}
