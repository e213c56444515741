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

/* True if the command takes a timeout, and waits where there is nothing. */
static bool
block_waits(const struct call *c)
{
	return c->command->flags & COMMAND_BLOCKING;
}

/* Nothing was found: waits, or answers so where it must not. */
static enum status
block_or_null(struct call *c, bool array)
{
	c->blocks = block_waits(c) && !c->in_exec;
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
 * The first of some keys that has something: `*ret` NULL if none has. All others are asked for
 * together when the first one had nothing: on a cluster each would be a round trip. Not before,
 * since what is read and not needed only brings conflicts.
 */
static enum status
block_find(struct call *c, size_t first, size_t count, enum timed_type type, size_t *ret_at,
	   struct timed_item **ret)
{
	for (size_t i = first; i < first + count; i++) {
		TRY(block_item(c, i, type, ret));
		*ret_at = i;
		if ((*ret)->type != TIMED_LEAF)
			return STATUS_OK;
		for (size_t other = i + 1; i == first && other < first + count; other++)
			TRY(txn_ask(c, c->db, c->argv[other]));
	}
	*ret = NULL;
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

enum status
cmd_list_bpop(struct call *c)
{
	struct timed_elements e;
	struct timed_item *item;
	size_t at;

	TRY(block_read_timeout(c, c->argc - 1));
	TRY(block_find(c, 1, c->argc - 2, TIMED_LIST, &at, &item));
	if (!item)
		return block_or_null(c, true);
	TRY(list_pop(c, item, c->argv[at], call_is(c, HOW_LEFT), 1, &e));
	reply_array(c->reply, 2);
	reply_bulk(c->reply, c->argv[at]);
	reply_bulk(c->reply, e.elements[0].value);
	return STATUS_OK;
}

/* ---- LMOVE and its kin ---- */

static enum status
move_generic(struct call *c, bool from_left, bool to_left)
{
	struct timed_item *from, *to;
	struct timed_elements e;

	TRY(block_item(c, 1, TIMED_LIST, &from));
	if (from->type == TIMED_LEAF)
		return block_or_null(c, false);
	TRY(data_item(c, 2, TIMED_LIST, &to));
	TRY(timed_list_pop(from, from_left, 1, &e));
	TRY(list_push(c, to, c->argv[2], to_left, &e.elements[0].value, 1));
	TRY(txn_changed(c, c->argv[1], EVENT_LIST, from_left ? "lpop" : "rpop"));
	if (from != to && from->type == TIMED_LEAF)
		TRY(txn_event(c, c->argv[1], EVENT_GENERIC, "del"));
	reply_bulk(c->reply, e.elements[0].value);
	return STATUS_OK;
}

/* LMOVE, BLMOVE. */
enum status
cmd_list_move(struct call *c)
{
	bool from_left, to_left;

	TRY(read_side(c, 3, &from_left));
	TRY(read_side(c, 4, &to_left));
	if (block_waits(c))
		TRY(block_read_timeout(c, 5));
	return move_generic(c, from_left, to_left);
}

/* RPOPLPUSH, BRPOPLPUSH. */
enum status
cmd_rpoplpush(struct call *c)
{
	if (block_waits(c))
		TRY(block_read_timeout(c, 3));
	return move_generic(c, false, true);
}

/* ---- LMPOP, BLMPOP, ZMPOP, BZMPOP ---- */

struct mpop {
	size_t first; /* of the keys */
	size_t keys;
	bool left; /* or the least */
	int64_t count;
};

static enum status
mpop_read(struct call *c, const char *one, const char *other, struct mpop *ret)
{
	size_t at = block_waits(c) ? 2 : 1;
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
	return block_waits(c) ? block_read_timeout(c, 1) : STATUS_OK;
}

/* LMPOP, BLMPOP. */
enum status
cmd_list_mpop(struct call *c)
{
	struct timed_elements e;
	struct timed_item *item;
	struct mpop m;
	size_t at;

	TRY(mpop_read(c, "left", "right", &m));
	TRY(block_find(c, m.first, m.keys, TIMED_LIST, &at, &item));
	if (!item)
		return block_or_null(c, true);
	TRY(list_pop(c, item, c->argv[at], m.left, (uint64_t)m.count, &e));
	reply_array(c->reply, 2);
	reply_bulk(c->reply, c->argv[at]);
	reply_array(c->reply, e.count);
	for (size_t i = 0; i < e.count; i++)
		reply_bulk(c->reply, e.elements[i].value);
	return STATUS_OK;
}

/* ZMPOP, BZMPOP. */
enum status
cmd_zset_mpop(struct call *c)
{
	struct timed_members e;
	struct timed_item *item;
	struct mpop m;
	size_t at;

	TRY(mpop_read(c, "min", "max", &m));
	TRY(block_find(c, m.first, m.keys, TIMED_ZSET, &at, &item));
	if (!item)
		return block_or_null(c, true);
	TRY(zset_pop(c, item, c->argv[at], !m.left, (uint64_t)m.count, &e));
	reply_array(c->reply, 2);
	reply_bulk(c->reply, c->argv[at]);
	reply_array(c->reply, e.count);
	for (size_t i = 0; i < e.count; i++) {
		reply_array(c->reply, 2);
		reply_bulk(c->reply, e.members[i].name);
		reply_double(c->reply, e.members[i].score);
	}
	return STATUS_OK;
}

/* BZPOPMIN, BZPOPMAX. */
enum status
cmd_zset_bpop(struct call *c)
{
	struct timed_members e;
	struct timed_item *item;
	size_t at;

	TRY(block_read_timeout(c, c->argc - 1));
	TRY(block_find(c, 1, c->argc - 2, TIMED_ZSET, &at, &item));
	if (!item)
		return block_or_null(c, true);
	TRY(zset_pop(c, item, c->argv[at], call_is(c, HOW_REVERSE), 1, &e));
	reply_array(c->reply, 3);
	reply_bulk(c->reply, c->argv[at]);
	reply_bulk(c->reply, e.members[0].name);
	reply_double(c->reply, e.members[0].score);
	return STATUS_OK;
}
