/* XINFO: what streams, their groups and the consumers of these say of themselves. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/group.h"

enum {
	FULL_ENTRIES = 10,  /* that XINFO STREAM FULL shows, unless COUNT says so */
	NODE_ENTRIES = 100, /* of a node of Redis's, which XINFO counts */
};

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

/* ---- Groups ---- */

/* What XINFO STREAM FULL tells of the entries that are pending: `limit` of them; 0: all. */
static enum status
full_pending(struct call *c, struct timed_item *item, const struct timed_group *group,
	     struct str consumer, size_t limit)
{
	struct timed_pending_range range = { .consumer = consumer, .to = STREAM_ID_LAST };
	int64_t ahead = txn_ahead_ms(c);
	size_t place = reply_later(c->reply), shown = 0;
	struct timed_pendings page;

	do {
		range.limit = limit && limit - shown < GROUP_PAGE ? limit - shown : GROUP_PAGE;
		TRY(timed_pending_range(item, group, &range, &page));
		for (size_t i = 0; i < page.count; i++) {
			const struct timed_pending *e = &page.entries[i];
			struct str owner;

			range.from = e->id;
			reply_array(c->reply, consumer.ptr ? 3 : 4);
			stream_answer_id(c->reply, e->id);
			if (!consumer.ptr) {
				TRY(timed_pending_owner(item, group, e, &owner));
				reply_bulk(c->reply, owner);
			}
			reply_int(c->reply, (int64_t)e->delivered_ms - ahead);
			reply_int(c->reply, (int64_t)e->times);
		}
		shown += page.count;
	} while (page.count == range.limit && shown != limit && timed_stream_id_next(&range.from));
	reply_later_end(c->reply, place, '*', shown);
	return STATUS_OK;
}

/* What is told of one consumer. `limit`: of FULL; -1: it is XINFO CONSUMERS. */
static enum status
info_consumer(struct call *c, struct timed_item *item, const struct timed_group *group,
	      const struct timed_consumer *consumer, int64_t limit)
{
	bool full = limit >= 0;
	uint64_t pending, now_ms;

	TRY(txn_now_ms(c, &now_ms));
	TRY(timed_pending_count(item, group, consumer->name, &pending));
	reply_map(c->reply, full ? 4 : 3);
	reply_bulk_cstr(c->reply, "name");
	reply_bulk(c->reply, consumer->name);
	if (!full) {
		info_number(c, "pending", pending);
		info_number(c, "idle", now_ms > consumer->seen_ms ? now_ms - consumer->seen_ms : 0);
		return STATUS_OK;
	}
	info_number(c, "seen-time", consumer->seen_ms - (uint64_t)txn_ahead_ms(c));
	info_number(c, "pel-count", pending);
	reply_bulk_cstr(c->reply, "pending");
	return full_pending(c, item, group, consumer->name, (size_t)limit);
}

static enum status
info_consumers(struct call *c, struct timed_item *item, const struct timed_group *group,
	       int64_t limit)
{
	struct str after = GROUP_NO_NAME;
	size_t place = reply_later(c->reply), shown = 0;
	struct timed_consumers page;

	do {
		TRY(timed_consumers_page(item, group, after, GROUP_PAGE, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(info_consumer(c, item, group, &page.consumers[i], limit));
		shown += page.count;
		after = page.count ? page.consumers[page.count - 1].name : after;
	} while (page.count == GROUP_PAGE);
	reply_later_end(c->reply, place, '*', shown);
	return STATUS_OK;
}

/* What is told of one group. `limit`: of FULL; -1: it is XINFO GROUPS. */
static enum status
info_group(struct call *c, struct timed_item *item, const struct stream_extent *e,
	   const struct timed_group *group, int64_t limit)
{
	bool full = limit >= 0;
	uint64_t consumers, pending;

	TRY(timed_consumers_count(item, group, &consumers));
	TRY(timed_pending_count(item, group, GROUP_NO_NAME, &pending));
	reply_map(c->reply, full ? 7 : 6);
	reply_bulk_cstr(c->reply, "name");
	reply_bulk(c->reply, group->name);
	if (!full) {
		info_number(c, "consumers", consumers);
		info_number(c, "pending", pending);
	}
	info_id(c, "last-delivered-id", group->last);
	reply_bulk_cstr(c->reply, "entries-read");
	group_answer_read(c->reply, group);
	reply_bulk_cstr(c->reply, "lag");
	group_answer_lag(c->reply, e, group);
	if (!full)
		return STATUS_OK;
	info_number(c, "pel-count", pending);
	reply_bulk_cstr(c->reply, "pending");
	TRY(full_pending(c, item, group, GROUP_NO_NAME, (size_t)limit));
	reply_bulk_cstr(c->reply, "consumers");
	return info_consumers(c, item, group, limit);
}

static enum status
info_groups(struct call *c, struct timed_item *item, const struct stream_extent *e, int64_t limit)
{
	struct str after = GROUP_NO_NAME;
	size_t place = reply_later(c->reply), shown = 0;
	struct timed_groups page;

	do {
		TRY(timed_groups_page(item, after, GROUP_PAGE, &page));
		for (size_t i = 0; i < page.count; i++)
			TRY(info_group(c, item, e, &page.groups[i], limit));
		shown += page.count;
		after = page.count ? page.groups[page.count - 1].name : after;
	} while (page.count == GROUP_PAGE);
	reply_later_end(c->reply, place, '*', shown);
	return STATUS_OK;
}

/* ---- Streams ---- */

/* `limit`: entries that FULL shows; -1: it is not FULL. */
static enum status
info_stream(struct call *c, struct timed_item *item, int64_t limit)
{
	struct timed_stream_range range = { .to = STREAM_ID_LAST };
	struct timed_entries entries;
	struct stream_extent e;
	uint64_t nodes, groups;

	TRY(stream_extent_get(item, &e));
	TRY(timed_groups_count(item, &groups));
	nodes = (e.length + NODE_ENTRIES - 1) / NODE_ENTRIES;
	reply_map(c->reply, limit < 0 ? 10 : 9);
	info_number(c, "length", e.length);
	info_number(c, "radix-tree-keys", nodes);
	info_number(c, "radix-tree-nodes", nodes + 1);
	info_id(c, "last-generated-id", e.stream.last);
	info_id(c, "max-deleted-entry-id", e.stream.deleted);
	info_number(c, "entries-added", e.stream.added);
	info_id(c, "recorded-first-entry-id", e.first);
	if (limit < 0) {
		info_number(c, "groups", groups);
		TRY(info_entry(c, item, false));
		return info_entry(c, item, true);
	}
	range.limit = (size_t)limit;
	TRY(timed_stream_range(item, &range, &entries));
	reply_bulk_cstr(c->reply, "entries");
	stream_answer_entries(c->reply, &entries);
	reply_bulk_cstr(c->reply, "groups");
	return info_groups(c, item, &e, limit);
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

static enum status
info_consumers_of(struct call *c, struct timed_item *item)
{
	struct timed_group group;
	enum status status = timed_group_get(item, c->argv[3], &group);

	if (status == STATUS_NOT_FOUND)
		return call_errorf(c, "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
				   STR_ARG(call_shown(c->argv[3])),
				   STR_ARG(call_shown(c->argv[2])));
	TRY(status);
	return info_consumers(c, item, &group, -1);
}

enum status
cmd_xinfo(struct call *c)
{
	static const char *const help[] = {
		"CONSUMERS <key> <groupname>",
		"    Show consumers of <groupname>.",
		"GROUPS <key>",
		"    Show the stream consumer groups.",
		"STREAM <key> [FULL [COUNT <count>]",
		"    Show information about the stream.",
	};
	struct stream_extent e;
	struct timed_item *item;
	int64_t limit;

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	TRY(data_item(c, 2, TIMED_STREAM, &item));
	if (item->type == TIMED_LEAF)
		return call_error(c, STR("ERR no such key"));
	if (call_arg_is(c, 1, "consumers"))
		return info_consumers_of(c, item);
	if (call_arg_is(c, 1, "stream")) {
		TRY(info_full(c, &limit));
		return info_stream(c, item, limit);
	}
	TRY(stream_extent_get(item, &e));
	return info_groups(c, item, &e, -1);
}
