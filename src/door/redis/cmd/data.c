#include "door/redis/cmd/data.h"

#include <assert.h>

#include "door/redis/wire/number.h"

/* Checks that the item is of that type, or absent. */
static enum status
data_check_type(struct call *c, enum timed_type type, const struct timed_item *item)
{
	return item->type == type || item->type == TIMED_LEAF ? STATUS_OK : call_wrong_type(c);
}

enum status
data_item(struct call *c, size_t i, enum timed_type type, struct timed_item **ret)
{
	TRY(txn_item(c, c->argv[i], ret));
	return data_check_type(c, type, *ret);
}

enum status
data_item_read(struct call *c, size_t i, enum timed_type type, struct timed_item **ret)
{
	TRY(txn_item(c, c->argv[i], ret));
	TRY(txn_looked_up(c, *ret));
	return data_check_type(c, type, *ret);
}

enum status
data_value(struct timed_item *item, struct str *ret)
{
	*ret = STR("");
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	return timed_value_get(item, 0, item->length, ret);
}

enum status
data_number(struct timed_item *item, struct str *ret)
{
	*ret = STR("");
	return item->length >= NUMBER_TEXT_BYTES ? STATUS_OK : data_value(item, ret);
}

enum status
data_reply_value(struct call *c, struct timed_item *item, uint64_t offset, uint64_t len)
{
	if (item->type == TIMED_LEAF || offset >= item->length)
		len = 0;
	else if (len > item->length - offset)
		len = item->length - offset;
	assert(!len || offset + len <= item->length);
	reply_bulk_begin(c->reply, (size_t)len);
	/* In parts, so that the arena need not have room for all of it. */
	while (len && buf_status(c->reply->out) == STATUS_OK) {
		struct arena_mark mark = arena_mark(item->arena);
		struct str part;

		TRY(timed_value_get(item, offset, len < DATA_PART_BYTES ? len : DATA_PART_BYTES,
				    &part));
		buf_append_str(c->reply->out, part);
		arena_reset(item->arena, mark);
		offset += part.len;
		len -= part.len;
	}
	reply_bulk_end(c->reply);
	return STATUS_OK;
}

const char *
data_type_name(enum timed_type type)
{
	switch ((int)type) {
	case TIMED_VALUE:
		return "string";
	case TIMED_HASH:
		return "hash";
	case TIMED_SET:
		return "set";
	case TIMED_ZSET:
		return "zset";
	case TIMED_LIST:
		return "list";
	case TIMED_STREAM:
		return "stream";
	case TIMED_JSON:
		return "ReJSON-RL";
	default:
		return "none";
	}
}

enum status
data_time(struct call *c, size_t i, struct data_time how, int64_t *ret_ms)
{
	int64_t n;
	uint64_t now;
	bool fine;

	if (!number_read_i64(c->argv[i], &n))
		return call_not_integer(c);
	TRY(txn_now_ms(c, &now));
	fine = !how.positive || n > 0;
	if (how.seconds)
		fine &= !__builtin_mul_overflow(n, INT64_C(1000), &n);
	fine &= !__builtin_add_overflow(n, how.absolute ? txn_ahead_ms(c) : (int64_t)now, &n);
	if (!fine)
		return call_errorf(c, "ERR invalid expire time in '%s' command", c->command->name);
	*ret_ms = n;
	return STATUS_OK;
}

struct timed_expiry
data_expiry(int64_t at_ms)
{
	return (struct timed_expiry){ .kind = TIMED_EXPIRY_AT,
				      .ms = at_ms > 0 ? (uint64_t)at_ms : 1 };
}

bool
data_clip_range(int64_t *from, int64_t *to, uint64_t length)
{
	int64_t len = (int64_t)length;

	if (*from < 0)
		*from = *from + len < 0 ? 0 : *from + len;
	if (*to < 0)
		*to += len;
	if (*to >= len)
		*to = len - 1;
	return len > 0 && *from <= *to && *to >= 0;
}

enum status
data_delete(struct call *c, struct timed_item *item, struct str key, const char *event)
{
	TRY(timed_item_delete(item));
	return txn_changed(c, key, EVENT_GENERIC, event);
}

static const struct {
	enum timed_type type;
	enum event_class class;
} of_group[COMMAND_GROUPS] = {
	[GROUP_HASH] = { TIMED_HASH, EVENT_HASH },       [GROUP_LIST] = { TIMED_LIST, EVENT_LIST },
	[GROUP_SET] = { TIMED_SET, EVENT_SET },          [GROUP_ZSET] = { TIMED_ZSET, EVENT_ZSET },
	[GROUP_STREAM] = { TIMED_STREAM, EVENT_STREAM },
};

enum timed_type
data_type_of(const struct call *c)
{
	assert(of_group[c->command->group].class);
	return of_group[c->command->group].type;
}

enum event_class
data_class_of(const struct call *c)
{
	assert(of_group[c->command->group].class);
	return of_group[c->command->group].class;
}

enum status
data_replace(struct call *c, struct str key, size_t count, struct timed_item **ret)
{
	TRY(txn_item(c, key, ret));
	reply_int(c->reply, (int64_t)count);
	if ((*ret)->type == TIMED_LEAF)
		return STATUS_OK;
	return count ? timed_item_delete(*ret) : data_delete(c, *ret, key, "del");
}

enum status
data_changed(struct call *c, struct timed_item *item, struct str key, enum event_class class,
	     const char *event)
{
	TRY(txn_changed(c, key, class, event));
	return item->type == TIMED_LEAF ? txn_event(c, key, EVENT_GENERIC, "del") : STATUS_OK;
}
