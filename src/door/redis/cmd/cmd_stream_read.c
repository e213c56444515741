/* Streams: what reads them, and waits for them. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/stream.h"
#include "door/redis/txn/client.h"
#include "door/redis/wire/number.h"

enum {
	FULL_ENTRIES = 10,  /* that XINFO STREAM FULL shows, unless COUNT says so */
	NODE_ENTRIES = 100, /* of a node of Redis's, which XINFO counts */
};

/* ---- XRANGE, XREVRANGE ---- */

/* One end of a range: "-", "+", an id, or "(" and an id. */
static enum status
range_read_end(struct call *c, size_t i, bool lower, struct timed_stream_id *ret)
{
	struct str text = c->argv[i];
	bool without = text.len > 1 && text.ptr[0] == '(';

	if (call_arg_is(c, i, "-")) {
		*ret = STREAM_ID_FIRST;
		return STATUS_OK;
	}
	if (call_arg_is(c, i, "+")) {
		*ret = STREAM_ID_LAST;
		return STATUS_OK;
	}
	if (!stream_id_read(str_skip(text, without), lower ? 0 : UINT64_MAX, ret))
		return call_error(
			c, STR("ERR Invalid stream ID specified as stream command argument"));
	if (!without || (lower ? timed_stream_id_next(ret) : timed_stream_id_before(ret)))
		return STATUS_OK;
	return call_errorf(c, "ERR invalid %s ID for the interval", lower ? "start" : "end");
}

enum status
cmd_xrange(struct call *c)
{
	bool reverse = call_is(c, HOW_REVERSE);
	struct timed_stream_range range = { .reverse = reverse };
	struct timed_entries entries;
	struct timed_item *item;
	int64_t count = -1;

	TRY(range_read_end(c, reverse ? 3 : 2, true, &range.from));
	TRY(range_read_end(c, reverse ? 2 : 3, false, &range.to));
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

/* ---- XREAD ---- */

struct read {
	size_t keys; /* where they begin */
	size_t count;
	int64_t limit;   /* entries of each stream; 0: all */
	int64_t wait_ms; /* -1: it does not */
	struct timed_stream_id *after;
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
	if (!number_read_i64(c->argv[i], &ret->wait_ms))
		return call_error(c, STR("ERR timeout is not an integer or out of range"));
	if (ret->wait_ms < 0)
		return call_error(c, STR("ERR timeout is negative"));
	return STATUS_OK;
}

static enum status
read_options(struct call *c, struct read *ret)
{
	*ret = (struct read){ .wait_ms = -1 };
	for (size_t i = 1; i < c->argc && !ret->keys; i++) {
		bool more = i + 1 < c->argc;

		if (more && call_arg_is(c, i, "block")) {
			TRY(read_wait(c, ++i, ret));
		} else if (more && call_arg_is(c, i, "count")) {
			TRY(call_int(c, ++i, &ret->limit));
			ret->limit = ret->limit < 0 ? 0 : ret->limit;
		} else if (more && call_arg_is(c, i, "streams")) {
			TRY(read_streams(c, i + 1, ret));
		} else if (call_arg_is(c, i, "group") || call_arg_is(c, i, "noack")) {
			return call_errorf(
				c,
				"ERR The %s option is only supported by XREADGROUP. You called "
				"XREAD instead.",
				call_arg_is(c, i, "group") ? "GROUP" : "NOACK");
		} else {
			break;
		}
	}
	return ret->keys ? STATUS_OK : call_syntax_error(c);
}

/*
 * The id behind which stream `i` is read. "$" is the last one when the command came: who waits has
 * it in client->block_ids.
 */
static enum status
read_id(struct call *c, const struct read *r, size_t i, struct timed_item *item)
{
	const struct timed_stream_id *kept = (const void *)c->client->block_ids.ptr;
	size_t at = r->keys + r->count + i;
	struct timed_stream stream;

	if (c->waited) {
		r->after[i] = kept[i];
		return STATUS_OK;
	}
	if (call_arg_is(c, at, "$")) {
		TRY(timed_stream_get(item, &stream));
		r->after[i] = stream.last;
		return STATUS_OK;
	}
	if (!call_arg_is(c, at, ">"))
		return stream_id_arg(c, at, 0, &r->after[i]);
	return call_error(c, STR("ERR The > ID can be specified only when calling XREADGROUP using "
				 "the GROUP <group> <consumer> option."));
}

/* The stream of key `i`. NULL: none is there. */
static enum status
read_item(struct call *c, const struct read *r, size_t i, struct timed_item **ret)
{
	TRY(txn_item(c, c->argv[r->keys + i], ret));
	if ((*ret)->type == TIMED_STREAM)
		return STATUS_OK;
	/* A command that waits goes on waiting. */
	if ((*ret)->type != TIMED_LEAF && !c->waited)
		return call_wrong_type(c);
	*ret = NULL;
	return STATUS_OK;
}

/* Answers what has come to one of the streams. */
static enum status
read_answer(struct call *c, const struct read *r, struct timed_item *item, size_t i, size_t *count)
{
	struct timed_stream_range range = { .from = r->after[i],
					    .to = STREAM_ID_LAST,
					    .limit = (size_t)r->limit };
	struct timed_entries entries;

	if (!timed_stream_id_next(&range.from))
		return STATUS_OK;
	TRY(timed_stream_range(item, &range, &entries));
	if (!entries.count)
		return STATUS_OK;
	++*count;
	if (c->reply->version == 2)
		reply_array(c->reply, 2);
	reply_bulk(c->reply, c->argv[r->keys + i]);
	stream_answer_entries(c->reply, &entries);
	return STATUS_OK;
}

/* Nothing has come yet: it waits, unless it must not. */
static enum status
read_wait_or_null(struct call *c, const struct read *r)
{
	struct buf *kept = &c->client->block_ids;

	if (r->wait_ms < 0 || c->in_exec) {
		reply_null_array(c->reply);
		return STATUS_OK;
	}
	c->client->block_ms = (uint64_t)r->wait_ms;
	c->client->saw_other = true; /* whoever stands behind it may find something */
	c->blocks = true;
	if (c->waited)
		return STATUS_OK;
	buf_clear(kept);
	buf_append(kept, r->after, r->count * sizeof(*r->after));
	return buf_status(kept);
}

enum status
cmd_xread(struct call *c)
{
	struct timed_item **items;
	size_t place, count = 0;
	struct read r;

	TRY(read_options(c, &r));
	if (r.wait_ms >= 0 && c->in_script)
		return call_error(
			c, STR("ERR xread command is not allowed with BLOCK option from scripts"));
	items = arena_alloc(c->arena, r.count * sizeof(struct timed_item *));
	r.after = arena_zalloc(c->arena, r.count * sizeof(*r.after));
	if (!items || !r.after)
		return STATUS_LIMIT;
	for (size_t i = 0; i < r.count; i++) {
		static struct timed_item absent; /* TIMED_LEAF: never written */

		TRY(read_item(c, &r, i, &items[i]));
		TRY(read_id(c, &r, i, items[i] ? items[i] : &absent));
	}
	place = reply_later(c->reply);
	for (size_t i = 0; i < r.count; i++)
		if (items[i])
			TRY(read_answer(c, &r, items[i], i, &count));
	if (!count)
		return read_wait_or_null(c, &r);
	reply_later_end(c->reply, place, c->reply->version == 2 ? '*' : '%', count);
	return STATUS_OK;
}

/* ---- XINFO ---- */

static void
info_id(struct call *c, const char *name, struct timed_stream_id id)
{
	reply_bulk_cstr(c->reply, name);
	stream_answer_id(c->reply, id);
}

static void
info_number(struct call *c, const char *name, uint64_t n)
{
	reply_bulk_cstr(c->reply, name);
	reply_int(c->reply, (int64_t)n);
}

static enum status
info_entry(struct call *c, struct timed_item *item, bool last)
{
	const struct timed_stream_range one = { .to = STREAM_ID_LAST, .reverse = last, .limit = 1 };
	struct timed_entries entries;

	TRY(timed_stream_range(item, &one, &entries));
	reply_bulk_cstr(c->reply, last ? "last-entry" : "first-entry");
	if (entries.count)
		stream_answer_entry(c->reply, &entries.entries[0]);
	else
		reply_null(c->reply);
	return STATUS_OK;
}

/* `limit`: entries that FULL shows; -1: it is not FULL. */
static enum status
info_stream(struct call *c, struct timed_item *item, int64_t limit)
{
	struct timed_stream_range range = { .to = STREAM_ID_LAST, .limit = 1 };
	struct timed_entries entries;
	struct timed_stream stream;
	uint64_t count;

	TRY(timed_stream_get(item, &stream));
	TRY(timed_count(item, &count));
	TRY(timed_stream_range(item, &range, &entries));
	reply_map(c->reply, limit < 0 ? 10 : 9);
	info_number(c, "length", count);
	info_number(c, "radix-tree-keys", (count + NODE_ENTRIES - 1) / NODE_ENTRIES);
	info_number(c, "radix-tree-nodes", (count + NODE_ENTRIES - 1) / NODE_ENTRIES + 1);
	info_id(c, "last-generated-id", stream.last);
	info_id(c, "max-deleted-entry-id", stream.deleted);
	info_number(c, "entries-added", stream.added);
	info_id(c, "recorded-first-entry-id",
		entries.count ? entries.entries[0].id : STREAM_ID_FIRST);
	if (limit < 0) {
		info_number(c, "groups", 0);
		TRY(info_entry(c, item, false));
		return info_entry(c, item, true);
	}
	range.limit = (size_t)limit;
	TRY(timed_stream_range(item, &range, &entries));
	reply_bulk_cstr(c->reply, "entries");
	stream_answer_entries(c->reply, &entries);
	reply_bulk_cstr(c->reply, "groups");
	reply_array(c->reply, 0);
	return STATUS_OK;
}

static enum status
info_full(struct call *c, int64_t *ret_limit)
{
	*ret_limit = c->argc == 3 ? -1 : FULL_ENTRIES;
	if (c->argc == 3 || (call_arg_is(c, 3, "full") && c->argc == 4))
		return STATUS_OK;
	if (!call_arg_is(c, 3, "full") || c->argc != 6 || !call_arg_is(c, 4, "count"))
		return call_unknown_subcommand(c);
	TRY(call_int(c, 5, ret_limit));
	*ret_limit = *ret_limit < 0 ? FULL_ENTRIES : *ret_limit;
	return STATUS_OK;
}

enum status
cmd_xinfo(struct call *c)
{
	static const char *const help[] = {
		"CONSUMERS <key> <groupname>",
		"    Show consumers of <groupname>: there are no groups.",
		"GROUPS <key>",
		"    Show the stream consumer groups: there are none.",
		"STREAM <key> [FULL [COUNT <count>]",
		"    Show information about the stream.",
	};
	bool stream = call_arg_is(c, 1, "stream");
	struct timed_item *item;
	int64_t limit;

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	TRY(data_item(c, 2, TIMED_STREAM, &item));
	if (item->type == TIMED_LEAF)
		return call_error(c, STR("ERR no such key"));
	if (stream)
		TRY(info_full(c, &limit));
	if (call_arg_is(c, 1, "groups")) {
		reply_array(c->reply, 0);
		return STATUS_OK;
	}
	if (call_arg_is(c, 1, "consumers"))
		return call_errorf(c, "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
				   STR_ARG(call_shown(c->argv[3])),
				   STR_ARG(call_shown(c->argv[2])));
	return info_stream(c, item, limit);
}
