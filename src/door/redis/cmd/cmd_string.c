/* Strings. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/wire/number.h"

/* ---- SET and its kin ---- */

struct set_options {
	bool nx, xx, get, keep;
	bool has_time;
	size_t time_word; /* which of them */
	size_t time_at;
	struct data_time time;
};

/* An option with a time behind it: EX, PX, EXAT, PXAT. The last one of a kind holds. */
static bool
option_time(const struct call *c, size_t *i, struct set_options *o)
{
	static const struct {
		const char *word;
		struct data_time time;
	} words[] = {
		{ "ex", { .seconds = true, .positive = true } },
		{ "px", { .positive = true } },
		{ "exat", { .seconds = true, .absolute = true, .positive = true } },
		{ "pxat", { .absolute = true, .positive = true } },
	};

	for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
		if (!call_arg_is(c, *i, words[k].word) || *i + 1 >= c->argc || o->keep ||
		    (o->has_time && o->time_word != k))
			continue;
		o->has_time = true;
		o->time_word = k;
		o->time = words[k].time;
		o->time_at = ++*i;
		return true;
	}
	return false;
}

static bool
set_parse(const struct call *c, struct set_options *o)
{
	for (size_t i = 3; i < c->argc; i++) {
		if (call_arg_is(c, i, "nx") && !o->xx)
			o->nx = true;
		else if (call_arg_is(c, i, "xx") && !o->nx)
			o->xx = true;
		else if (call_arg_is(c, i, "get"))
			o->get = true;
		else if (call_arg_is(c, i, "keepttl") && !o->has_time)
			o->keep = true;
		else if (!option_time(c, &i, o))
			return false;
	}
	return true;
}

/* Writes the value. One that has expired already is hidden at once, and removed as others are. */
static enum status
set_write(struct call *c, struct timed_item *item, struct str value, const struct set_options *o,
	  int64_t at_ms)
{
	struct str key = c->argv[1];

	assert(!o->keep || !o->has_time);
	if (o->keep) {
		TRY(timed_value_replace(item, value));
		return txn_changed(c, key, EVENT_STRING, "set");
	}
	if (!o->has_time) {
		TRY(timed_value_set(item, value,
				    (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER }));
		return txn_changed(c, key, EVENT_STRING, "set");
	}
	TRY(timed_value_set(item, value, data_expiry(at_ms)));
	TRY(txn_changed(c, key, EVENT_STRING, "set"));
	timed_item_lapse(item);
	return txn_event(c, key, EVENT_GENERIC, "expire");
}

static enum status
set_generic(struct call *c, const struct set_options *o, struct str value)
{
	struct timed_item *item;
	struct str old = { 0 };
	int64_t at_ms = 0;
	bool there;

	/* The item is asked for together with the clock. */
	TRY(txn_ask(c, c->db, c->argv[1]));
	if (o->has_time)
		TRY(data_time(c, o->time_at, o->time, &at_ms));
	TRY(txn_item(c, c->argv[1], &item));
	there = item->type != TIMED_LEAF;
	if (o->get) {
		TRY(txn_looked_up(c, item));
		if (there && item->type != TIMED_VALUE)
			return call_wrong_type(c);
		TRY(data_value(item, &old));
	}
	if ((o->nx && there) || (o->xx && !there)) {
		if (o->get && there)
			reply_bulk(c->reply, old);
		else
			reply_null(c->reply);
		return STATUS_OK;
	}
	TRY(set_write(c, item, value, o, at_ms));
	if (!o->get)
		reply_ok(c->reply);
	else if (there)
		reply_bulk(c->reply, old);
	else
		reply_null(c->reply);
	return STATUS_OK;
}

enum status
cmd_set(struct call *c)
{
	struct set_options o = { 0 };

	if (!set_parse(c, &o))
		return call_syntax_error(c);
	return set_generic(c, &o, c->argv[2]);
}

enum status
cmd_setex(struct call *c)
{
	struct set_options o = { .has_time = true, .time_at = 2, .time = data_time_of(c) };

	o.time.positive = true;

	return set_generic(c, &o, c->argv[3]);
}

enum status
cmd_setnx(struct call *c)
{
	struct timed_item *item;

	TRY(txn_item(c, c->argv[1], &item));
	reply_int(c->reply, item->type == TIMED_LEAF);
	if (item->type != TIMED_LEAF)
		return STATUS_OK;
	return set_write(c, item, c->argv[2], &(struct set_options){ 0 }, 0);
}

enum status
cmd_getset(struct call *c)
{
	struct timed_item *item;
	struct str old;

	TRY(data_item_read(c, 1, TIMED_VALUE, &item));
	TRY(data_value(item, &old));
	if (item->type == TIMED_LEAF)
		reply_null(c->reply);
	else
		reply_bulk(c->reply, old);
	return set_write(c, item, c->argv[2], &(struct set_options){ 0 }, 0);
}

/* ---- Reading ---- */

/* Answers GET. */
static enum status
get_answer(struct call *c, struct timed_item *item)
{
	if (item->type != TIMED_LEAF)
		return data_reply_value(c, item, 0, item->length);
	reply_null(c->reply);
	return STATUS_OK;
}

enum status
cmd_get(struct call *c)
{
	struct timed_item *item;

	TRY(data_item_read(c, 1, TIMED_VALUE, &item));
	return get_answer(c, item);
}

enum status
cmd_getdel(struct call *c)
{
	struct timed_item *item;

	TRY(data_item_read(c, 1, TIMED_VALUE, &item));
	TRY(get_answer(c, item));
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	return data_delete(c, item, c->argv[1], "del");
}

enum status
cmd_getex(struct call *c)
{
	struct set_options o = { 0 };
	struct timed_item *item;
	bool persist = false;
	int64_t at_ms = 0;
	uint64_t now;

	for (size_t i = 2; i < c->argc; i++) {
		if (call_arg_is(c, i, "persist") && !o.has_time)
			persist = o.keep = true;
		else if (!option_time(c, &i, &o))
			return call_syntax_error(c);
	}
	TRY(data_item_read(c, 1, TIMED_VALUE, &item));
	/* The time of a key that is not there is not looked at. */
	if (o.has_time && item->type != TIMED_LEAF)
		TRY(data_time(c, o.time_at, o.time, &at_ms));
	TRY(get_answer(c, item));
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	if (persist && item->expires_ms) {
		TRY(timed_item_expire(item, (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER }));
		return txn_changed(c, c->argv[1], EVENT_GENERIC, "persist");
	}
	if (!o.has_time)
		return STATUS_OK;
	TRY(txn_now_ms(c, &now));
	if ((uint64_t)at_ms <= now)
		return data_delete(c, item, c->argv[1], "del");
	TRY(timed_item_expire(item, data_expiry(at_ms)));
	return txn_changed(c, c->argv[1], EVENT_GENERIC, "expire");
}

enum status
cmd_strlen(struct call *c)
{
	struct timed_item *item;

	TRY(data_item(c, 1, TIMED_VALUE, &item));
	if (item)
		reply_int(c->reply, item->type == TIMED_LEAF ? 0 : (int64_t)item->length);
	return STATUS_OK;
}

enum status
cmd_getrange(struct call *c)
{
	struct timed_item *item;
	int64_t from, to;

	TRY(call_int(c, 2, &from));
	TRY(call_int(c, 3, &to));
	TRY(data_item(c, 1, TIMED_VALUE, &item));
	if (item->type != TIMED_LEAF && !(from < 0 && to < 0 && from > to)) {
		if (to < 0 && to + (int64_t)item->length < 0)
			to = -(int64_t)item->length;
		if (data_clip_range(&from, &to, item->length))
			return data_reply_value(c, item, (uint64_t)from, (uint64_t)(to - from + 1));
	}
	reply_bulk(c->reply, STR(""));
	return STATUS_OK;
}

enum status
cmd_mget(struct call *c)
{
	size_t count = c->argc - 1;
	struct timed_item **items = arena_alloc(c->arena, count * sizeof(struct timed_item *));

	if (!items)
		return STATUS_LIMIT;
	TRY(txn_items(c, c->argv + 1, count, 1, items));
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++) {
		if (items[i]->type == TIMED_VALUE)
			TRY(data_reply_value(c, items[i], 0, items[i]->length));
		else
			reply_null(c->reply);
	}
	return STATUS_OK;
}

/* ---- Many at once ---- */

static enum status
mset_write(struct call *c)
{
	for (size_t i = 1; i < c->argc; i += 2) {
		struct timed_item *item;

		TRY(txn_item(c, c->argv[i], &item));
		TRY(timed_value_set(item, c->argv[i + 1],
				    (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER }));
		TRY(txn_changed(c, c->argv[i], EVENT_STRING, "set"));
	}
	return STATUS_OK;
}

static enum status
mset_ask(struct call *c, bool *ret_any)
{
	size_t count = c->argc / 2;
	struct timed_item **items = arena_alloc(c->arena, count * sizeof(struct timed_item *));

	if (!items)
		return STATUS_LIMIT;
	TRY(txn_items(c, c->argv + 1, count, 2, items));
	*ret_any = false;
	for (size_t i = 0; i < count; i++)
		*ret_any |= items[i]->type != TIMED_LEAF;
	return STATUS_OK;
}

enum status
cmd_mset(struct call *c)
{
	bool any;

	if (c->argc % 2 == 0)
		return call_wrong_arity(c);
	TRY(mset_ask(c, &any));
	TRY(mset_write(c));
	reply_ok(c->reply);
	return STATUS_OK;
}

enum status
cmd_msetnx(struct call *c)
{
	bool any;

	if (c->argc % 2 == 0)
		return call_wrong_arity(c);
	TRY(mset_ask(c, &any));
	if (!any)
		TRY(mset_write(c));
	reply_int(c->reply, !any);
	return STATUS_OK;
}

/* ---- Parts ---- */

static enum status
length_is_fine(struct call *c, uint64_t length)
{
	if (length <= DATA_VALUE_BYTES)
		return STATUS_OK;
	return call_error(c, STR(ERROR_TOO_LONG));
}

enum status
cmd_append(struct call *c)
{
	struct timed_item *item;
	uint64_t length;

	TRY(data_item(c, 1, TIMED_VALUE, &item));
	length = item->type == TIMED_LEAF ? 0 : item->length;
	TRY(length_is_fine(c, length + c->argv[2].len));
	if (item->type == TIMED_LEAF)
		TRY(timed_value_set(item, c->argv[2],
				    (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER }));
	else if (c->argv[2].len)
		TRY(timed_value_write(item, length, c->argv[2]));
	TRY(txn_changed(c, c->argv[1], EVENT_STRING, "append"));
	reply_int(c->reply, (int64_t)(length + c->argv[2].len));
	return STATUS_OK;
}

enum status
cmd_setrange(struct call *c)
{
	struct timed_item *item;
	uint64_t length;
	int64_t offset;

	TRY(call_int(c, 2, &offset));
	if (offset < 0)
		return call_error(c, STR("ERR offset is out of range"));
	TRY(data_item(c, 1, TIMED_VALUE, &item));
	length = item->type == TIMED_LEAF ? 0 : item->length;
	if (c->argv[3].len) {
		TRY(length_is_fine(c, (uint64_t)offset + c->argv[3].len));
		TRY(timed_value_write(item, (uint64_t)offset, c->argv[3]));
		TRY(txn_changed(c, c->argv[1], EVENT_STRING, "setrange"));
		if (length < (uint64_t)offset + c->argv[3].len)
			length = (uint64_t)offset + c->argv[3].len;
	}
	reply_int(c->reply, (int64_t)length);
	return STATUS_OK;
}

/* ---- Counting ---- */

static enum status
value_replace(struct call *c, struct timed_item *item, struct str value, const char *event)
{
	if (item->type == TIMED_LEAF)
		TRY(timed_value_set(item, value,
				    (struct timed_expiry){ .kind = TIMED_EXPIRY_NEVER }));
	else
		TRY(timed_value_replace(item, value));
	return txn_changed(c, c->argv[1], EVENT_STRING, event);
}

static enum status
incr_generic(struct call *c, int64_t by)
{
	struct timed_item *item;
	struct str text;
	char buf[24];
	int64_t n = 0;

	TRY(data_item(c, 1, TIMED_VALUE, &item));
	TRY(data_number(item, &text));
	if (item->type != TIMED_LEAF && !number_read_i64(text, &n))
		return call_not_integer(c);
	if (__builtin_add_overflow(n, by, &n))
		return call_error(c, STR("ERR increment or decrement would overflow"));
	TRY(value_replace(c, item,
			  str_of(buf, (size_t)snprintf(buf, sizeof(buf), "%lld", (long long)n)),
			  "incrby"));
	reply_int(c->reply, n);
	return STATUS_OK;
}

enum status
cmd_incr(struct call *c)
{
	return incr_generic(c, 1);
}

enum status
cmd_decr(struct call *c)
{
	return incr_generic(c, -1);
}

enum status
cmd_incrby(struct call *c)
{
	int64_t by;

	TRY(call_int(c, 2, &by));
	return incr_generic(c, by);
}

enum status
cmd_decrby(struct call *c)
{
	int64_t by;

	TRY(call_int(c, 2, &by));
	if (by == INT64_MIN)
		return call_error(c, STR("ERR decrement would overflow"));
	return incr_generic(c, -by);
}

enum status
cmd_incrbyfloat(struct call *c)
{
	char buf[NUMBER_TEXT_BYTES];
	struct timed_item *item;
	long double n = 0, by;
	struct str text;

	TRY(data_item(c, 1, TIMED_VALUE, &item));
	TRY(data_number(item, &text));
	if ((item->type != TIMED_LEAF && !number_read_long_double(text, &n)) ||
	    !number_read_long_double(c->argv[2], &by))
		return call_not_float(c);
	n += by;
	if (isnan(n) || isinf(n))
		return call_error(c, STR("ERR increment would produce NaN or Infinity"));
	text = number_write_long_double(n, buf);
	TRY(value_replace(c, item, text, "incrbyfloat"));
	reply_bulk(c->reply, text);
	return STATUS_OK;
}
