/* Streams: what reads them, and waits for them. */
#include "base/hash.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/group.h"
#include "door/redis/txn/client.h"
#include "door/redis/wire/number.h"

/* ---- XRANGE, XREVRANGE ---- */

enum status
cmd_xrange(struct call *c)
{
	bool reverse = call_is(c, HOW_REVERSE);
	struct timed_stream_range range = { .reverse = reverse };
	struct timed_entries entries;
	struct timed_item *item;
	int64_t count = -1;

	TRY(stream_range_arg(c, reverse ? 3 : 2, true, &range.from));
	TRY(stream_range_arg(c, reverse ? 2 : 3, false, &range.to));
	for (size_t i = 4; i < c->argc; i += 2) {
		if (!call_arg_is(c, i, "count") || i + 1 == c->argc)
			return call_syntax_error(c);
		TRY(call_int(c, i + 1, &count));
		count = count < 0 ? 0 : count;
	}
	TRY(data_item(c, 1, TIMED_STREAM, &item));
	if (item->type != TIMED_LEAF && !count) {
		reply_null_array(c->reply);
		return STATUS_OK;
	}
	range.limit = count < 0 ? 0 : (size_t)count;
	TRY(timed_stream_range(item, &range, &entries));
	stream_answer_entries(c->reply, &entries);
	return STATUS_OK;
}

/* ---- XREAD, XREADGROUP ---- */

enum {
	WAITED_ENTRIES =
		1000, /* that a client gets of a stream that it has waited for without COUNT */
};

struct read {
	bool grouped; /* XREADGROUP */
	struct str group;
	struct str consumer;
	bool noack;
	size_t keys; /* where they begin */
	size_t count;
	int64_t limit;   /* entries of each stream; 0: all */
	int64_t wait_ms; /* -1: it does not */

	/* Of each stream. */
	struct timed_item **items; /* NULL: none is there */
	struct timed_stream_id *after;
	struct timed_group *groups; /* XREADGROUP */
};

static enum status
read_streams(struct call *c, size_t at, struct read *ret)
{
	if ((c->argc - at) % 2)
		return call_error(c,
				  STR("ERR Unbalanced XREAD list of streams: for each stream key "
				      "an ID or '$' must be specified."));
	ret->keys = at;
	ret->count = (c->argc - at) / 2;
	return STATUS_OK;
}

static enum status
read_wait(struct call *c, size_t i, struct read *ret)
{
	if (c->in_script)
		return call_errorf(c,
				   "ERR %s command is not allowed with BLOCK option from scripts",
				   c->command->name);
	if (!number_read_i64(c->argv[i], &ret->wait_ms))
		return call_error(c, STR("ERR timeout is not an integer or out of range"));
	if (ret->wait_ms < 0)
		return call_error(c, STR("ERR timeout is negative"));
	return STATUS_OK;
}

/* GROUP and NOACK at `*i`. */
static enum status
read_group_option(struct call *c, size_t *i, struct read *ret)
{
	bool names = call_arg_is(c, *i, "group") && *i + 2 < c->argc;

	if (!names && !call_arg_is(c, *i, "noack"))
		return call_syntax_error(c);
	if (!ret->grouped)
		return call_errorf(c,
				   "ERR The %s option is only supported by XREADGROUP. You called "
				   "XREAD instead.",
				   names ? "GROUP" : "NOACK");
	if (!names) {
		ret->noack = true;
		return STATUS_OK;
	}
	ret->group = c->argv[*i + 1];
	ret->consumer = c->argv[*i + 2];
	*i += 2;
	return STATUS_OK;
}

static enum status
read_options(struct call *c, struct read *ret)
{
	*ret = (struct read){ .wait_ms = -1,
			      .grouped = strcmp(c->command->name, "xreadgroup") == 0 };
	for (size_t i = 1; i < c->argc && !ret->keys; i++) {
		bool more = i + 1 < c->argc;

		if (more && call_arg_is(c, i, "block")) {
			TRY(read_wait(c, ++i, ret));
		} else if (more && call_arg_is(c, i, "count")) {
			TRY(call_int(c, ++i, &ret->limit));
			ret->limit = ret->limit < 0 ? 0 : ret->limit;
		} else if (more && call_arg_is(c, i, "streams")) {
			TRY(read_streams(c, i + 1, ret));
		} else {
			TRY(read_group_option(c, &i, ret));
		}
	}
	if (!ret->keys)
		return call_syntax_error(c);
	if (ret->grouped && !ret->group.ptr)
		return call_error(c, STR("ERR Missing GROUP option for XREADGROUP"));
	if (c->waited && !ret->limit)
		ret->limit = WAITED_ENTRIES;
	return STATUS_OK;
}

/* The group at stream `i`. One that the command has waited in may be gone. */
static enum status
read_open_group(struct call *c, const struct read *r, size_t i)
{
	static struct timed_item absent; /* TIMED_LEAF: never written */
	enum status status = timed_group_get(r->items[i] ? r->items[i] : &absent, r->group,
					     &r->groups[i]);

	if (status != STATUS_NOT_FOUND)
		return status;
	if (c->waited)
		return call_error(c, STR("NOGROUP the consumer group this client was blocked on no "
					 "longer exists"));
	return call_errorf(c,
			   "NOGROUP No such key '%.*s' or consumer group '%.*s' in XREADGROUP with "
			   "GROUP option",
			   STR_ARG(call_shown(c->argv[r->keys + i])),
			   STR_ARG(call_shown(r->group)));
}

/*
 * The id behind which stream `i` is read. "$" is the last one when the command came: who waits has
 * it in client->block_ids. ">" of a group is the last possible one.
 */
static enum status
read_id(struct call *c, const struct read *r, size_t i)
{
	const struct timed_stream_id *kept = (const void *)c->client->block_ids.ptr;
	size_t at = r->keys + r->count + i;
	struct timed_stream stream = { .added = 0 };

	if (c->waited) {
		r->after[i] = kept[i];
		return STATUS_OK;
	}
	if (str_eq(c->argv[at], STR("$"))) {
		if (r->grouped)
			return call_error(
				c,
				STR("ERR The $ ID is meaningless in the context of XREADGROUP: "
				    "you want to read the history of this consumer by "
				    "specifying a proper ID, or use the > ID to get new "
				    "messages. The $ ID would just return an empty result set."));
		if (r->items[i])
			TRY(timed_stream_get(r->items[i], &stream));
		r->after[i] = stream.last;
		return STATUS_OK;
	}
	if (!str_eq(c->argv[at], STR(">")))
		return stream_id_arg(c, at, 0, &r->after[i]);
	r->after[i] = STREAM_ID_LAST;
	if (r->grouped)
		return STATUS_OK;
	return call_error(c, STR("ERR The > ID can be specified only when calling XREADGROUP using "
				 "the GROUP <group> <consumer> option."));
}

/* The stream of key `i`. NULL: none is there. */
static enum status
read_item(struct call *c, const struct read *r, size_t i)
{
	struct timed_item *item;

	TRY(txn_item(c, c->argv[r->keys + i], &item));
	r->items[i] = item->type == TIMED_STREAM ? item : NULL;
	if (c->waited && r->grouped && !r->items[i])
		return call_error(c, STR("UNBLOCKED the stream key no longer exists"));
	if (!c->waited)
		TRY(txn_looked_up(c, item));
	/* A command that waits goes on waiting. */
	if (item->type == TIMED_STREAM || item->type == TIMED_LEAF || c->waited)
		return STATUS_OK;
	return call_wrong_type(c);
}

/* What comes before the entries of a stream. */
struct read_head {
	struct call *c;
	struct str key;
};

static void
read_answer_head(void *arg)
{
	const struct read_head *head = arg;

	if (head->c->reply->version == 2)
		reply_array(head->c->reply, 2);
	reply_bulk(head->c->reply, head->key);
}

/* Answers what has come to one of the streams. */
static enum status
read_answer(struct call *c, const struct read *r, size_t i, size_t *count)
{
	struct timed_stream_range range = { .from = r->after[i],
					    .to = STREAM_ID_LAST,
					    .limit = (size_t)r->limit };
	struct read_head head = { .c = c, .key = c->argv[r->keys + i] };
	struct timed_entries entries;

	if (!timed_stream_id_next(&range.from))
		return STATUS_OK;
	TRY(timed_stream_range(r->items[i], &range, &entries));
	if (!entries.count)
		return STATUS_OK;
	++*count;
	read_answer_head(&head);
	stream_answer_entries(c->reply, &entries);
	return STATUS_OK;
}

/* The same of a group. */
static enum status
read_answer_group(struct call *c, const struct read *r, size_t i, size_t *count)
{
	struct read_head head = { .c = c, .key = c->argv[r->keys + i] };
	const struct group_read read = {
		.key = head.key,
		.group = &r->groups[i],
		.consumer = r->consumer,
		.noack = r->noack,
		.history = timed_stream_id_cmp(r->after[i], STREAM_ID_LAST) != 0,
		.after = r->after[i],
		.limit = (size_t)r->limit,
		.begin = read_answer_head,
		.arg = &head,
	};
	bool any;

	TRY(group_read(c, r->items[i], &read, &any));
	*count += any;
	return STATUS_OK;
}

/* Nothing has come yet: it waits, unless it must not. */
static enum status
read_wait_or_null(struct call *c, const struct read *r)
{
	struct client *client = c->client;

	if (r->wait_ms < 0 || c->in_exec) {
		reply_null_array(c->reply);
		return STATUS_OK;
	}
	client->block_ms = (uint64_t)r->wait_ms;
	client->saw_other = true; /* whoever stands behind it may find something */
	c->blocks = true;
	if (c->waited)
		return STATUS_OK;
	/* Never 0, which stands for no group. */
	client->block_group = r->grouped ? hash_keyed(c->db, r->group) | 1 : 0;
	buf_clear(&client->block_ids);
	buf_append(&client->block_ids, r->after, r->count * sizeof(*r->after));
	return buf_status(&client->block_ids);
}

/* Finds the streams, and their groups, and from where on they are read. */
static enum status
read_open(struct call *c, struct read *r)
{
	r->items = arena_alloc(c->arena, r->count * sizeof(struct timed_item *));
	r->after = arena_zalloc(c->arena, r->count * sizeof(*r->after));
	r->groups = arena_zalloc(c->arena, r->count * sizeof(*r->groups));
	if (!r->items || !r->after || !r->groups)
		return STATUS_LIMIT;
	for (size_t i = 0; i < r->count; i++) {
		TRY(read_item(c, r, i));
		if (r->grouped)
			TRY(read_open_group(c, r, i));
		TRY(read_id(c, r, i));
	}
	return STATUS_OK;
}

enum status
cmd_xread(struct call *c)
{
	size_t place, count = 0;
	struct read r;

	TRY(read_options(c, &r));
	TRY(read_open(c, &r));
	place = reply_later(c->reply);
	for (size_t i = 0; i < r.count; i++)
		if (r.items[i])
			TRY(r.grouped ? read_answer_group(c, &r, i, &count)
				      : read_answer(c, &r, i, &count));
	if (!count)
		return read_wait_or_null(c, &r);
	reply_later_end(c->reply, place, c->reply->version == 2 ? '*' : '%', count);
	return STATUS_OK;
}
