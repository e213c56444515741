/* Pops and moves of lists and sorted sets, those that wait among them. */
#include <math.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/list.h"
#include "door/redis/cmd/zset.h"
#include "door/redis/txn/client.h"
#include "door/redis/wire/number.h"

/* The timeout of argument `i`, in seconds with a fraction. */
static enum status
block_read_timeout(struct call *c, size_t i)
{
	long double seconds;

	if (!number_read_long_double(c->argv[i], &seconds) || isinf(seconds))
		return call_error(c, STR("ERR timeout is not a float or out of range"));
	if (seconds < 0)
		return call_error(c, STR("ERR timeout is negative"));
	if (seconds > (long double)INT64_MAX / 1000000)
		return call_error(c, STR("ERR timeout is out of range"));
	c->client->block_ms = (uint64_t)ceill(seconds * 1000);
	return STATUS_OK;
}

/* Nothing was found: waits, or answers so where it must not. */
static enum status
block_or_null(struct call *c, bool array)
{
	c->blocks = !c->in_exec;
	if (c->blocks)
		return STATUS_OK;
	if (array)
		reply_null_array(c->reply);
	else
		reply_null(c->reply);
	return STATUS_OK;
}

/*
 * As data_item(). A command that waits already, and finds something else at a key than it waits
 * for, goes on waiting.
 */
static enum status
block_item(struct call *c, size_t i, enum timed_type type, struct timed_item **ret)
{
	static struct timed_item absent; /* TIMED_LEAF: never written */

	TRY(txn_item(c, c->argv[i], ret));
	if ((*ret)->type == type || (*ret)->type == TIMED_LEAF)
		return STATUS_OK;
	c->client->saw_other = true;
	if (!c->waited)
		return call_wrong_type(c);
	*ret = &absent;
	return STATUS_OK;
}

/*
 * Asks for all keys together when the first one had nothing: on a cluster each would be a round
 * trip. Not before, since what is read and not needed only brings conflicts.
 */
static enum status
block_ask_others(struct call *c, size_t i)
{
	if (i != 1)
		return STATUS_OK;
	for (size_t other = 2; other + 1 < c->argc; other++)
		TRY(txn_ask(c, c->db, c->argv[other]));
	return STATUS_OK;
}

static enum status
read_side(struct call *c, size_t i, bool *ret_left)
{
	*ret_left = call_arg_is(c, i, "left");
	if (*ret_left || call_arg_is(c, i, "right"))
		return STATUS_OK;
	return call_syntax_error(c);
}

/* ---- BLPOP and BRPOP ---- */

static enum status
blpop_generic(struct call *c, bool left)
{
	TRY(block_read_timeout(c, c->argc - 1));
	for (size_t i = 1; i + 1 < c->argc; i++) {
		struct timed_elements e;
		struct timed_item *item;

		TRY(block_item(c, i, TIMED_LIST, &item));
		if (item->type == TIMED_LEAF) {
			TRY(block_ask_others(c, i));
			continue;
		}
		TRY(list_pop(c, item, c->argv[i], left, 1, &e));
		reply_array(c->reply, 2);
		reply_bulk(c->reply, c->argv[i]);
		reply_bulk(c->reply, e.elements[0].value);
		return STATUS_OK;
	}
	return block_or_null(c, true);
}

enum status
cmd_blpop(struct call *c)
{
	return blpop_generic(c, true);
}

enum status
cmd_brpop(struct call *c)
{
	return blpop_generic(c, false);
}

/* ---- LMOVE and its kin ---- */

static enum status
move_generic(struct call *c, bool from_left, bool to_left, bool waits)
{
	struct timed_item *from, *to;
	struct timed_elements e;

	TRY(block_item(c, 1, TIMED_LIST, &from));
	if (from->type == TIMED_LEAF) {
		if (waits)
			return block_or_null(c, false);
		reply_null(c->reply);
		return STATUS_OK;
	}
	TRY(data_item(c, 2, TIMED_LIST, &to));
	TRY(timed_list_pop(from, from_left, 1, &e));
	TRY(list_push(c, to, c->argv[2], to_left, &e.elements[0].value, 1));
	TRY(txn_changed(c, c->argv[1], EVENT_LIST, from_left ? "lpop" : "rpop"));
	if (from != to && from->type == TIMED_LEAF)
		TRY(txn_event(c, c->argv[1], EVENT_GENERIC, "del"));
	reply_bulk(c->reply, e.elements[0].value);
	return STATUS_OK;
}

enum status
cmd_lmove(struct call *c)
{
	bool from_left, to_left;

	TRY(read_side(c, 3, &from_left));
	TRY(read_side(c, 4, &to_left));
	return move_generic(c, from_left, to_left, false);
}

enum status
cmd_rpoplpush(struct call *c)
{
	return move_generic(c, false, true, false);
}

enum status
cmd_blmove(struct call *c)
{
	bool from_left, to_left;

	TRY(read_side(c, 3, &from_left));
	TRY(read_side(c, 4, &to_left));
	TRY(block_read_timeout(c, 5));
	return move_generic(c, from_left, to_left, true);
}

enum status
cmd_brpoplpush(struct call *c)
{
	TRY(block_read_timeout(c, 3));
	return move_generic(c, false, true, true);
}

/* ---- LMPOP, BLMPOP, ZMPOP, BZMPOP ---- */

struct mpop {
	size_t first; /* of the keys */
	size_t keys;
	bool left; /* or the least */
	int64_t count;
};

static enum status
mpop_read(struct call *c, size_t at, const char *one, const char *other, struct mpop *ret)
{
	int64_t keys;
	size_t i;

	TRY(call_int_range(c, at, 1, INT64_MAX, "numkeys should be greater than 0", &keys));
	ret->first = at + 1;
	ret->keys = (size_t)keys;
	ret->count = -1;
	if ((uint64_t)keys > c->argc || at + 1 + (size_t)keys >= c->argc)
		return call_syntax_error(c);
	i = at + 1 + (size_t)keys;
	ret->left = call_arg_is(c, i, one);
	if (!ret->left && !call_arg_is(c, i, other))
		return call_syntax_error(c);
	for (i++; i < c->argc; i += 2) {
		if (!call_arg_is(c, i, "count") || i + 1 == c->argc || ret->count >= 0)
			return call_syntax_error(c);
		TRY(call_int_range(c, i + 1, 1, INT64_MAX, "count should be greater than 0",
				   &ret->count));
	}
	if (ret->count < 0)
		ret->count = 1;
	return STATUS_OK;
}

static enum status
lmpop_generic(struct call *c, size_t at, bool waits)
{
	struct mpop m;

	TRY(mpop_read(c, at, "left", "right", &m));
	if (waits)
		TRY(block_read_timeout(c, 1));
	for (size_t i = m.first; i < m.first + m.keys; i++) {
		struct timed_elements e;
		struct timed_item *item;

		TRY(block_item(c, i, TIMED_LIST, &item));
		if (item->type == TIMED_LEAF)
			continue;
		TRY(list_pop(c, item, c->argv[i], m.left, (uint64_t)m.count, &e));
		reply_array(c->reply, 2);
		reply_bulk(c->reply, c->argv[i]);
		reply_array(c->reply, e.count);
		for (size_t k = 0; k < e.count; k++)
			reply_bulk(c->reply, e.elements[k].value);
		return STATUS_OK;
	}
	if (waits)
		return block_or_null(c, true);
	reply_null_array(c->reply);
	return STATUS_OK;
}

enum status
cmd_lmpop(struct call *c)
{
	return lmpop_generic(c, 1, false);
}

enum status
cmd_blmpop(struct call *c)
{
	return lmpop_generic(c, 2, true);
}

static enum status
zmpop_generic(struct call *c, size_t at, bool waits)
{
	struct mpop m;

	TRY(mpop_read(c, at, "min", "max", &m));
	if (waits)
		TRY(block_read_timeout(c, 1));
	for (size_t i = m.first; i < m.first + m.keys; i++) {
		struct timed_members e;
		struct timed_item *item;

		TRY(block_item(c, i, TIMED_ZSET, &item));
		if (item->type == TIMED_LEAF)
			continue;
		TRY(zset_pop(c, item, c->argv[i], !m.left, (uint64_t)m.count, &e));
		reply_array(c->reply, 2);
		reply_bulk(c->reply, c->argv[i]);
		reply_array(c->reply, e.count);
		for (size_t k = 0; k < e.count; k++) {
			reply_array(c->reply, 2);
			reply_bulk(c->reply, e.members[k].name);
			reply_double(c->reply, e.members[k].score);
		}
		return STATUS_OK;
	}
	if (waits)
		return block_or_null(c, true);
	reply_null_array(c->reply);
	return STATUS_OK;
}

enum status
cmd_zmpop(struct call *c)
{
	return zmpop_generic(c, 1, false);
}

enum status
cmd_bzmpop(struct call *c)
{
	return zmpop_generic(c, 2, true);
}

static enum status
bzpop_generic(struct call *c, bool greatest)
{
	TRY(block_read_timeout(c, c->argc - 1));
	for (size_t i = 1; i + 1 < c->argc; i++) {
		struct timed_members e;
		struct timed_item *item;

		TRY(block_item(c, i, TIMED_ZSET, &item));
		if (item->type == TIMED_LEAF) {
			TRY(block_ask_others(c, i));
			continue;
		}
		TRY(zset_pop(c, item, c->argv[i], greatest, 1, &e));
		reply_array(c->reply, 3);
		reply_bulk(c->reply, c->argv[i]);
		reply_bulk(c->reply, e.members[0].name);
		reply_double(c->reply, e.members[0].score);
		return STATUS_OK;
	}
	return block_or_null(c, true);
}

enum status
cmd_bzpopmin(struct call *c)
{
	return bzpop_generic(c, false);
}

enum status
cmd_bzpopmax(struct call *c)
{
	return bzpop_generic(c, true);
}
