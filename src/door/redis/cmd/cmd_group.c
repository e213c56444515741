/* Groups of consumers of streams: XGROUP, XACK, XPENDING, XCLAIM, XAUTOCLAIM. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/group.h"
#include "door/redis/wire/number.h"
#include "loop/sort.h"

enum {
	AUTOCLAIM_COUNT = 100,  /* entries that XAUTOCLAIM claims, unless COUNT says so */
	AUTOCLAIM_LOOKS = 10,   /* pending entries that it looks at for each of these */
	XGROUP_CREATE_ARGS = 8, /* at most */
	XGROUP_SET_ARGS = 7,
	AUTOCLAIM_ID_BYTES =
		16, /* of an id in Redis's memory: the most that COUNT may be follows */
};

/* ---- XGROUP ---- */

static enum status
no_group(struct call *c, struct str key, struct str group)
{
	return call_errorf(c, "NOGROUP No such consumer group '%.*s' for key name '%.*s'",
			   STR_ARG(call_shown(group)), STR_ARG(call_shown(key)));
}

static enum status
no_key_or_group(struct call *c)
{
	return call_errorf(c, "NOGROUP No such key '%.*s' or consumer group '%.*s'",
			   STR_ARG(call_shown(c->argv[1])), STR_ARG(call_shown(c->argv[2])));
}

struct xgroup {
	bool makes; /* MKSTREAM */
	int64_t read;
	struct timed_item *item;
	struct timed_group group;
	bool found; /* the group is there */
};

/* Options of CREATE and SETID. */
static enum status
xgroup_options(struct call *c, struct xgroup *ret)
{
	bool creates = call_arg_is(c, 1, "create"), sets = call_arg_is(c, 1, "setid");

	ret->read = TIMED_GROUP_UNREAD;
	for (size_t i = 5; i < c->argc; i++) {
		if (creates && call_arg_is(c, i, "mkstream")) {
			ret->makes = true;
		} else if ((creates || sets) && i + 1 < c->argc &&
			   call_arg_is(c, i, "entriesread")) {
			TRY(call_int(c, ++i, &ret->read));
			if (ret->read < 0 && ret->read != TIMED_GROUP_UNREAD)
				return call_error(c, STR("ERR value for ENTRIESREAD must be "
							 "positive or -1"));
		} else {
			return call_unknown_subcommand(c);
		}
	}
	return STATUS_OK;
}

/* The stream and the group of the call, if they are there. */
static enum status
xgroup_open(struct call *c, struct xgroup *ret)
{
	enum status status;

	TRY(xgroup_options(c, ret));
	TRY(data_item(c, 2, TIMED_STREAM, &ret->item));
	if (ret->item->type == TIMED_LEAF && !ret->makes)
		return call_error(c, STR("ERR The XGROUP subcommand requires the key to exist. "
					 "Note that for CREATE you may want to use the MKSTREAM "
					 "option to create an empty stream automatically."));
	status = timed_group_get(ret->item, c->argv[3], &ret->group);
	ret->found = status == STATUS_OK;
	if (status == STATUS_NOT_FOUND && !call_arg_is(c, 1, "create") &&
	    !call_arg_is(c, 1, "destroy"))
		return no_group(c, c->argv[2], c->argv[3]);
	if (status != STATUS_NOT_FOUND)
		TRY(status);
	/* Each option once: Redis reads them all, looks at the key, and then counts arguments. */
	if ((call_arg_is(c, 1, "create") && c->argc > XGROUP_CREATE_ARGS) ||
	    (call_arg_is(c, 1, "setid") && c->argc > XGROUP_SET_ARGS))
		return call_unknown_subcommand(c);
	return STATUS_OK;
}

/* The id that the group begins behind: "$" is the last one. SETID takes "-" and "+" as well. */
static enum status
xgroup_id(struct call *c, struct xgroup *x, bool any, struct timed_stream_id *ret)
{
	struct timed_stream stream;

	if (str_eq(c->argv[4], STR("$"))) {
		TRY(timed_stream_get(x->item, &stream));
		*ret = stream.last;
		return STATUS_OK;
	}
	if (any && stream_id_read_end(c->argv[4], ret))
		return STATUS_OK;
	return stream_id_arg(c, 4, 0, ret);
}

static enum status
xgroup_create(struct call *c, struct xgroup *x)
{
	bool is_new = x->item->type == TIMED_LEAF;

	TRY(xgroup_id(c, x, false, &x->group.last));
	if (x->found)
		return call_error(c, STR("BUSYGROUP Consumer Group name already exists"));
	x->group.read = x->read;
	TRY(timed_group_add(x->item, &x->group));
	reply_ok(c->reply);
	return is_new ? txn_changed(c, c->argv[2], EVENT_STREAM, "xgroup-create")
		      : txn_event(c, c->argv[2], EVENT_STREAM, "xgroup-create");
}

static enum status
xgroup_set_id(struct call *c, struct xgroup *x)
{
	TRY(xgroup_id(c, x, true, &x->group.last));
	x->group.read = x->read;
	TRY(timed_group_set(x->item, &x->group));
	reply_ok(c->reply);
	return txn_event(c, c->argv[2], EVENT_STREAM, "xgroup-setid");
}

static enum status
xgroup_destroy(struct call *c, struct xgroup *x)
{
	reply_int(c->reply, x->found);
	if (!x->found)
		return STATUS_OK;
	TRY(timed_group_drop(x->item, &x->group));
	/* Those who wait in the group are told that it is gone. */
	return txn_changed(c, c->argv[2], EVENT_STREAM, "xgroup-destroy");
}

static enum status
xgroup_create_consumer(struct call *c, struct xgroup *x)
{
	struct timed_consumer consumer;
	enum status status = timed_consumer_get(x->item, &x->group, c->argv[4], &consumer);

	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	reply_int(c->reply, status == STATUS_NOT_FOUND);
	if (status == STATUS_OK)
		return STATUS_OK;
	return group_see_consumer(c, c->argv[2], x->item, &x->group, c->argv[4]);
}

static enum status
xgroup_delete_consumer(struct call *c, struct xgroup *x)
{
	struct timed_consumer consumer;
	enum status status = timed_consumer_get(x->item, &x->group, c->argv[4], &consumer);
	uint64_t pending = 0;

	if (status == STATUS_OK) {
		TRY(timed_consumer_drop(x->item, &x->group, c->argv[4], &pending));
		TRY(txn_event(c, c->argv[2], EVENT_STREAM, "xgroup-delconsumer"));
	} else if (status != STATUS_NOT_FOUND) {
		return status;
	}
	reply_int(c->reply, (int64_t)pending);
	return STATUS_OK;
}

enum status
cmd_xgroup(struct call *c)
{
	static const char *const help[] = {
		"CREATE <key> <groupname> <id|$> [option]",
		"    Create a new consumer group. Options are:",
		"    * MKSTREAM",
		"      Create the empty stream if it does not exist.",
		"    * ENTRIESREAD entries_read",
		"      Set the group's entries_read counter (internal use).",
		"CREATECONSUMER <key> <groupname> <consumer>",
		"    Create a new consumer in the specified group.",
		"DELCONSUMER <key> <groupname> <consumer>",
		"    Remove the specified consumer.",
		"DESTROY <key> <groupname>",
		"    Remove the specified group.",
		"SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
		"    Set the current group ID and entries_read counter.",
	};
	static const struct {
		const char *name;
		enum status (*run)(struct call *c, struct xgroup *x);
	} subcommands[] = {
		{ "create", xgroup_create },
		{ "setid", xgroup_set_id },
		{ "destroy", xgroup_destroy },
		{ "createconsumer", xgroup_create_consumer },
		{ "delconsumer", xgroup_delete_consumer },
	};
	struct xgroup x = { 0 };

	if (call_arg_is(c, 1, "help"))
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	TRY(xgroup_open(c, &x));
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++)
		if (call_arg_is(c, 1, subcommands[i].name))
			return subcommands[i].run(c, &x);
	return call_unknown_subcommand(c);
}

/* ---- XACK ---- */

/* The stream and the group of arguments 1 and 2. STATUS_NOT_FOUND: one of them is not there. */
static enum status
group_open(struct call *c, struct timed_item **ret_item, struct timed_group *ret)
{
	TRY(data_item_read(c, 1, TIMED_STREAM, ret_item));
	return timed_group_get(*ret_item, c->argv[2], ret);
}

/* Ids are sorted by this, so that those that are there twice are side by side. */
static int
pending_cmp(const void *a, const void *b)
{
	return timed_stream_id_cmp(((const struct timed_pending *)a)->id,
				   ((const struct timed_pending *)b)->id);
}

enum status
cmd_xack(struct call *c)
{
	size_t count = c->argc - 3, distinct = 0;
	struct timed_pending *acked = arena_zalloc(c->arena, count * sizeof(*acked));
	struct timed_group group;
	struct timed_item *item;
	enum status status;
	int64_t done = 0;

	if (!acked)
		return STATUS_LIMIT;
	status = group_open(c, &item, &group);
	if (status == STATUS_NOT_FOUND) {
		reply_int(c->reply, 0);
		return STATUS_OK;
	}
	TRY(status);
	for (size_t i = 0; i < count; i++)
		TRY(stream_id_arg(c, i + 3, 0, &acked[i].id));
	TRY(sort_items_by(acked, count, sizeof(*acked), pending_cmp, c->arena));
	for (size_t i = 0; i < count; i++)
		if (!distinct || pending_cmp(&acked[distinct - 1], &acked[i]) != 0)
			acked[distinct++] = acked[i];
	TRY(timed_pending_get(item, &group, acked, distinct));
	for (size_t i = 0; i < distinct; i++)
		done += acked[i].found;
	TRY(timed_pending_drop(item, &group, acked, distinct));
	reply_int(c->reply, done);
	return STATUS_OK;
}

/* ---- XPENDING ---- */

/* What XPENDING asks for, beside the sum. */
struct pending_query {
	struct timed_pending_range range;
	int64_t idle_ms; /* those that nobody has got for so long */
	int64_t count;
};

static enum status
pending_query_read(struct call *c, struct pending_query *ret)
{
	size_t at = 3;

	*ret = (struct pending_query){ .range.consumer = GROUP_NO_NAME };
	if (c->argc < 6 || c->argc > 9)
		return call_syntax_error(c);
	if (call_arg_is(c, 3, "idle")) {
		TRY(call_int(c, 4, &ret->idle_ms));
		if (c->argc < 8)
			return call_syntax_error(c);
		at = 5;
	}
	TRY(call_int(c, at + 2, &ret->count));
	TRY(stream_range_arg(c, at, true, &ret->range.from));
	TRY(stream_range_arg(c, at + 1, false, &ret->range.to));
	if (at + 3 < c->argc)
		ret->range.consumer = c->argv[at + 3];
	return STATUS_OK;
}

/* The consumers for whom something is pending, and how much. */
static enum status
pending_answer_consumers(struct call *c, struct timed_item *item, const struct timed_group *group)
{
	struct str after = GROUP_NO_NAME;
	size_t place = reply_later(c->reply), shown = 0;
	struct timed_consumers page;

	do {
		TRY(timed_consumers_page(item, group, after, GROUP_PAGE, &page));
		for (size_t i = 0; i < page.count; i++) {
			uint64_t count;

			after = page.consumers[i].name;
			TRY(timed_pending_count(item, group, after, &count));
			if (!count)
				continue;
			shown++;
			reply_array(c->reply, 2);
			reply_bulk(c->reply, after);
			reply_bulk_int(c->reply, (int64_t)count);
		}
	} while (page.count == GROUP_PAGE);
	reply_later_end(c->reply, place, '*', shown);
	return STATUS_OK;
}

/* The first or last entry that is pending. */
static enum status
pending_answer_end(struct call *c, struct timed_item *item, const struct timed_group *group,
		   bool last)
{
	const struct timed_pending_range one = {
		.consumer = GROUP_NO_NAME, .to = STREAM_ID_LAST, .reverse = last, .limit = 1
	};
	struct timed_pendings found;

	TRY(timed_pending_range(item, group, &one, &found));
	if (found.count)
		stream_answer_id(c->reply, found.entries[0].id);
	else
		reply_null(c->reply);
	return STATUS_OK;
}

static enum status
pending_answer_sum(struct call *c, struct timed_item *item, const struct timed_group *group)
{
	uint64_t count;

	TRY(timed_pending_count(item, group, GROUP_NO_NAME, &count));
	reply_array(c->reply, 4);
	reply_int(c->reply, (int64_t)count);
	TRY(pending_answer_end(c, item, group, false));
	TRY(pending_answer_end(c, item, group, true));
	if (count)
		return pending_answer_consumers(c, item, group);
	reply_null_array(c->reply);
	return STATUS_OK;
}

/* For how long nobody has got the entry. */
static int64_t
pending_idle_ms(const struct timed_pending *entry, uint64_t now_ms)
{
	return now_ms > entry->delivered_ms ? (int64_t)(now_ms - entry->delivered_ms) : 0;
}

static enum status
pending_answer_entry(struct call *c, struct timed_item *item, const struct timed_group *group,
		     const struct timed_pending *entry, uint64_t now_ms)
{
	struct str owner;

	TRY(timed_pending_owner(item, group, entry, &owner));
	reply_array(c->reply, 4);
	stream_answer_id(c->reply, entry->id);
	reply_bulk(c->reply, owner);
	reply_int(c->reply, pending_idle_ms(entry, now_ms));
	reply_int(c->reply, (int64_t)entry->times);
	return STATUS_OK;
}

static enum status
pending_answer_range(struct call *c, struct timed_item *item, const struct timed_group *group,
		     struct pending_query *q)
{
	size_t place = reply_later(c->reply);
	int64_t shown = 0;
	struct timed_pendings page;
	uint64_t now_ms;

	TRY(txn_now_ms(c, &now_ms));
	do {
		int64_t left = q->count - shown;

		q->range.limit = left < GROUP_PAGE && !q->idle_ms ? (size_t)(left > 0 ? left : 1)
								  : GROUP_PAGE;
		page.count = 0;
		if (left > 0)
			TRY(timed_pending_range(item, group, &q->range, &page));
		for (size_t i = 0; i < page.count && shown < q->count; i++) {
			const struct timed_pending *e = &page.entries[i];

			q->range.from = e->id;
			if (q->idle_ms && pending_idle_ms(e, now_ms) < q->idle_ms)
				continue;
			shown++;
			TRY(pending_answer_entry(c, item, group, e, now_ms));
		}
	} while (page.count == q->range.limit && timed_stream_id_next(&q->range.from));
	reply_later_end(c->reply, place, '*', (size_t)shown);
	return STATUS_OK;
}

enum status
cmd_xpending(struct call *c)
{
	bool sum = c->argc == 3;
	struct timed_consumer consumer;
	struct timed_group group;
	struct pending_query q;
	struct timed_item *item;
	enum status status;

	if (!sum)
		TRY(pending_query_read(c, &q));
	status = group_open(c, &item, &group);
	if (status == STATUS_NOT_FOUND)
		return no_key_or_group(c);
	TRY(status);
	if (sum)
		return pending_answer_sum(c, item, &group);
	if (q.range.consumer.ptr) {
		status = timed_consumer_get(item, &group, q.range.consumer, &consumer);
		if (status == STATUS_NOT_FOUND) {
			reply_array(c->reply, 0);
			return STATUS_OK;
		}
		TRY(status);
	}
	return pending_answer_range(c, item, &group, &q);
}

/* ---- XCLAIM, XAUTOCLAIM ---- */

/* Entries that one consumer takes over from others. */
struct claim {
	struct timed_item *item;
	struct timed_group group;
	struct str consumer;
	bool seen; /* the consumer was noted to be here */
	uint64_t now_ms;
	int64_t idle_ms; /* only what nobody has got for so long */
	uint64_t delivered_ms;
	int64_t times; /* -1: one more than it was; with `just_ids` as many */
	bool just_ids;
	bool force; /* also what is not pending */
	size_t taken;

	/* What is to be written. */
	struct timed_pending *given;
	size_t given_count;
	struct timed_pending *gone;
	size_t gone_count;
};

static enum status
claim_room(struct call *c, struct claim *cl, size_t count)
{
	cl->given = arena_alloc(c->arena, (count + 1) * sizeof(*cl->given));
	cl->gone = arena_alloc(c->arena, (count + 1) * sizeof(*cl->gone));
	cl->given_count = cl->gone_count = 0;
	return cl->given && cl->gone ? STATUS_OK : STATUS_LIMIT;
}

/* Claims an entry that the stream has, if it may, and answers it. */
static enum status
claim_take(struct call *c, struct claim *cl, struct timed_pending *p, const struct timed_entry *e)
{
	if (!p->found && !cl->force)
		return STATUS_OK;
	if (p->found && cl->idle_ms && (int64_t)(cl->now_ms - p->delivered_ms) < cl->idle_ms)
		return STATUS_OK;
	if (!cl->seen)
		TRY(group_see_consumer(c, c->argv[1], cl->item, &cl->group, cl->consumer));
	cl->seen = true;
	if (!p->found)
		p->times = 1;
	p->delivered_ms = cl->delivered_ms;
	if (cl->times >= 0)
		p->times = (uint64_t)cl->times;
	else if (!cl->just_ids)
		p->times++;
	cl->given[cl->given_count++] = *p;
	cl->taken++;
	if (cl->just_ids)
		stream_answer_id(c->reply, e->id);
	else
		stream_answer_entry(c->reply, e);
	return STATUS_OK;
}

/* Goes on with entries, no two of which are the same. What the stream lost is not pending then. */
static enum status
claim_some(struct call *c, struct claim *cl, struct timed_pending *pending, size_t count)
{
	struct timed_entry *entries = arena_zalloc(c->arena, (count + 1) * sizeof(*entries));

	if (!entries)
		return STATUS_LIMIT;
	TRY(claim_room(c, cl, count));
	for (size_t i = 0; i < count; i++)
		entries[i].id = pending[i].id;
	TRY(timed_stream_find(cl->item, entries, count));
	for (size_t i = 0; i < count; i++) {
		if (entries[i].fields)
			TRY(claim_take(c, cl, &pending[i], &entries[i]));
		else if (pending[i].found)
			cl->gone[cl->gone_count++] = pending[i];
	}
	TRY(timed_pending_drop(cl->item, &cl->group, cl->gone, cl->gone_count));
	return timed_pending_give(cl->item, &cl->group, cl->consumer, cl->given, cl->given_count);
}

/* A number of an option, with the option's own error. */
static enum status
claim_int(struct call *c, size_t i, const char *what, int64_t *ret)
{
	if (number_read_i64(c->argv[i], ret))
		return STATUS_OK;
	return call_errorf(c, "ERR Invalid %s argument for %s", what,
			   strcmp(c->command->name, "xclaim") == 0 ? "XCLAIM" : "XAUTOCLAIM");
}

static enum status
claim_open(struct call *c, struct claim *cl)
{
	enum status status = group_open(c, &cl->item, &cl->group);

	if (status == STATUS_NOT_FOUND)
		return no_key_or_group(c);
	TRY(status);
	cl->consumer = c->argv[3];
	cl->times = -1;
	return txn_now_ms(c, &cl->now_ms);
}

static enum status
claim_idle(struct call *c, struct claim *cl)
{
	TRY(claim_int(c, 4, "min-idle-time", &cl->idle_ms));
	cl->idle_ms = cl->idle_ms < 0 ? 0 : cl->idle_ms;
	return STATUS_OK;
}

/* A time in the future, or before 1970, is now. `ms` -1: none was given. */
static void
claim_set_time(struct claim *cl, int64_t ms)
{
	cl->delivered_ms = ms < 0 || (uint64_t)ms > cl->now_ms ? cl->now_ms : (uint64_t)ms;
}

/* The options of XCLAIM, from argument `i` on. `*ret_last`: the group is to be as far at least. */
static enum status
claim_options(struct call *c, struct claim *cl, size_t i, struct timed_stream_id *ret_last)
{
	int64_t ms = -1;

	for (; i < c->argc; i++) {
		bool more = i + 1 < c->argc;

		if (call_arg_is(c, i, "force")) {
			cl->force = true;
		} else if (call_arg_is(c, i, "justid")) {
			cl->just_ids = true;
		} else if (more && call_arg_is(c, i, "idle")) {
			TRY(claim_int(c, ++i, "IDLE option", &ms));
			if (__builtin_sub_overflow((int64_t)cl->now_ms, ms, &ms))
				ms = -1;
		} else if (more && call_arg_is(c, i, "time")) {
			TRY(claim_int(c, ++i, "TIME option", &ms));
			if (ms != -1 && __builtin_add_overflow(ms, txn_ahead_ms(c), &ms))
				ms = -1;
		} else if (more && call_arg_is(c, i, "retrycount")) {
			TRY(claim_int(c, ++i, "RETRYCOUNT option", &cl->times));
		} else if (more && call_arg_is(c, i, "lastid")) {
			TRY(stream_id_arg(c, ++i, 0, ret_last));
		} else {
			return call_errorf(c, "ERR Unrecognized XCLAIM option '%.*s'",
					   STR_ARG(call_shown(c->argv[i])));
		}
	}
	claim_set_time(cl, ms);
	return STATUS_OK;
}

/* True if an id is there twice: the second one then finds what the first has made of the entry. */
static enum status
claim_repeats(struct call *c, const struct timed_pending *pending, size_t count, bool *ret)
{
	struct timed_pending *sorted = arena_alloc(c->arena, (count + 1) * sizeof(*sorted));

	*ret = false;
	if (!sorted)
		return STATUS_LIMIT;
	memcpy(sorted, pending, count * sizeof(*sorted));
	TRY(sort_items_by(sorted, count, sizeof(*sorted), pending_cmp, c->arena));
	for (size_t i = 1; i < count; i++)
		*ret |= pending_cmp(&sorted[i - 1], &sorted[i]) == 0;
	return STATUS_OK;
}

enum status
cmd_xclaim(struct call *c)
{
	struct timed_pending *pending = arena_zalloc(c->arena, c->argc * sizeof(*pending));
	struct timed_stream_id last = STREAM_ID_FIRST;
	struct claim cl = { .force = false };
	size_t place, count = 0, step;
	bool repeats;

	if (!pending)
		return STATUS_LIMIT;
	TRY(claim_open(c, &cl));
	TRY(claim_idle(c, &cl));
	while (count + 5 < c->argc && stream_id_read(c->argv[count + 5], 0, &pending[count].id))
		count++;
	TRY(claim_options(c, &cl, count + 5, &last));
	if (timed_stream_id_cmp(last, cl.group.last) > 0) {
		cl.group.last = last;
		TRY(timed_group_set(cl.item, &cl.group));
	}
	TRY(claim_repeats(c, pending, count, &repeats));
	step = repeats ? 1 : count;
	place = reply_later(c->reply);
	for (size_t i = 0; i < count; i += step) {
		TRY(timed_pending_get(cl.item, &cl.group, pending + i, step));
		TRY(claim_some(c, &cl, pending + i, step));
	}
	reply_later_end(c->reply, place, '*', cl.taken);
	return STATUS_OK;
}

/* What XAUTOCLAIM has yet to do. */
struct autoclaim {
	struct claim claim;
	struct timed_stream_id from;
	size_t count; /* of entries that are answered, those that are gone among them */
	size_t looks; /* at pending entries */
	struct timed_pending *gone;
	size_t gone_count, gone_cap;
};

static enum status
autoclaim_options(struct call *c, struct autoclaim *a)
{
	int64_t count = AUTOCLAIM_COUNT;

	for (size_t i = 6; i < c->argc; i++) {
		if (i + 1 < c->argc && call_arg_is(c, i, "count"))
			TRY(call_int_range(c, ++i, 1, INT64_MAX / AUTOCLAIM_ID_BYTES,
					   "COUNT must be > 0", &count));
		else if (call_arg_is(c, i, "justid"))
			a->claim.just_ids = true;
		else
			return call_syntax_error(c);
	}
	a->count = group_write_limit(c->argv[3]);
	a->count = (uint64_t)count < a->count ? (size_t)count : a->count;
	a->looks = AUTOCLAIM_LOOKS * a->count;
	return STATUS_OK;
}

/* How many of the entries may be claimed, one after the other, before `count` are answered. */
static size_t
autoclaim_fits(const struct autoclaim *a, size_t page)
{
	size_t most = a->count < a->looks ? a->count : a->looks;

	return page < most ? page : most;
}

/* A page of pending entries. False: there is nothing left to do. */
static enum status
autoclaim_page(struct call *c, struct autoclaim *a, bool *ret_more)
{
	struct timed_pending_range range = { .consumer = GROUP_NO_NAME,
					     .from = a->from,
					     .to = STREAM_ID_LAST,
					     .limit = autoclaim_fits(a, GROUP_PAGE) };
	size_t taken = a->claim.taken;
	struct timed_pendings page;

	TRY(timed_pending_range(a->claim.item, &a->claim.group, &range, &page));
	TRY(claim_some(c, &a->claim, page.entries, page.count));
	for (size_t i = 0; i < a->claim.gone_count; i++) {
		TRY(arena_room(c->arena, &a->gone, a->gone_count, &a->gone_cap, sizeof(*a->gone)));
		a->gone[a->gone_count++] = a->claim.gone[i];
	}
	a->looks -= page.count;
	a->count -= a->claim.taken - taken + a->claim.gone_count;
	*ret_more = page.count == range.limit;
	if (page.count) {
		a->from = page.entries[page.count - 1].id;
		*ret_more &= timed_stream_id_next(&a->from);
	}
	return STATUS_OK;
}

/* Where the next call is to go on; 0-0: there is nothing behind. */
static enum status
autoclaim_next(struct autoclaim *a, bool more, struct timed_stream_id *ret)
{
	const struct timed_pending_range range = {
		.consumer = GROUP_NO_NAME, .from = a->from, .to = STREAM_ID_LAST, .limit = 1
	};
	struct timed_pendings found;

	*ret = STREAM_ID_FIRST;
	if (!more)
		return STATUS_OK;
	TRY(timed_pending_range(a->claim.item, &a->claim.group, &range, &found));
	if (found.count)
		*ret = found.entries[0].id;
	return STATUS_OK;
}

enum status
cmd_xautoclaim(struct call *c)
{
	struct autoclaim a = { .from = STREAM_ID_FIRST };
	struct timed_stream_id next;
	size_t place, behind;
	bool more = true;

	TRY(claim_idle(c, &a.claim));
	TRY(stream_range_arg(c, 5, true, &a.from));
	TRY(autoclaim_options(c, &a));
	TRY(claim_open(c, &a.claim));
	a.claim.delivered_ms = a.claim.now_ms;
	reply_array(c->reply, 3);
	place = reply_later(c->reply);
	while (more && a.count && a.looks)
		TRY(autoclaim_page(c, &a, &more));
	TRY(autoclaim_next(&a, more, &next));
	reply_later_end(c->reply, place, '*', a.claim.taken);
	behind = reply_later(c->reply);
	stream_answer_id(c->reply, next);
	reply_move_before(c->reply, place, behind);
	reply_array(c->reply, a.gone_count);
	for (size_t i = 0; i < a.gone_count; i++)
		stream_answer_id(c->reply, a.gone[i].id);
	return STATUS_OK;
}
