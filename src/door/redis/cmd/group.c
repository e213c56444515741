#include "door/redis/cmd/group.h"

/* ---- How far a group is ---- */

static bool
id_is_zero(struct timed_stream_id id)
{
	return !id.ms && !id.seq;
}

enum status
stream_extent_get(struct timed_item *item, struct stream_extent *ret)
{
	const struct timed_stream_range oldest = { .to = STREAM_ID_LAST, .limit = 1 };
	struct timed_entries entries;

	*ret = (struct stream_extent){ .length = 0 };
	TRY(timed_stream_get(item, &ret->stream));
	TRY(timed_count(item, &ret->length));
	TRY(timed_stream_range(item, &oldest, &entries));
	if (entries.count)
		ret->first = entries.entries[0].id;
	return STATUS_OK;
}

/* True if an entry was deleted from that id on, among those that the stream still has. */
static bool
stream_extent_has_gap(const struct stream_extent *e, struct timed_stream_id from)
{
	return e->length && !id_is_zero(e->stream.deleted) &&
	       timed_stream_id_cmp(e->first, e->stream.deleted) <= 0 &&
	       timed_stream_id_cmp(from, e->stream.deleted) <= 0;
}

int64_t
stream_extent_up_to(const struct stream_extent *e, struct timed_stream_id id)
{
	int to_last = timed_stream_id_cmp(id, e->stream.last);
	int64_t added = (int64_t)e->stream.added;
	int to_first;

	if (!added)
		return 0;
	if (to_last == 0 || (!e->length && to_last < 0))
		return added;
	if (to_last > 0)
		return TIMED_GROUP_UNREAD;
	to_first = timed_stream_id_cmp(id, e->first);
	if (!id_is_zero(e->stream.deleted) && timed_stream_id_cmp(e->stream.deleted, e->first) >= 0)
		return TIMED_GROUP_UNREAD;
	if (to_first > 0)
		return TIMED_GROUP_UNREAD;
	return added - (int64_t)e->length + (to_first == 0);
}

void
group_advance(struct timed_group *group, const struct stream_extent *e, struct timed_stream_id id)
{
	if (group->read != TIMED_GROUP_UNREAD && !stream_extent_has_gap(e, id))
		group->read++;
	else if (e->stream.added)
		group->read = stream_extent_up_to(e, id);
	group->last = id;
}

void
group_answer_lag(struct reply *r, const struct stream_extent *e, const struct timed_group *group)
{
	int64_t read = group->read;

	if (!e->stream.added) {
		reply_int(r, 0);
		return;
	}
	if (read == TIMED_GROUP_UNREAD || stream_extent_has_gap(e, group->last))
		read = stream_extent_up_to(e, group->last);
	if (read == TIMED_GROUP_UNREAD)
		reply_null(r);
	else
		reply_int(r, (int64_t)e->stream.added - read);
}

void
group_answer_read(struct reply *r, const struct timed_group *group)
{
	if (group->read == TIMED_GROUP_UNREAD)
		reply_null(r);
	else
		reply_int(r, group->read);
}

/* ---- Consumers ---- */

enum status
group_see_consumer(struct call *c, struct str key, struct timed_item *item,
		   const struct timed_group *group, struct str name)
{
	struct timed_consumer consumer;
	enum status status = timed_consumer_get(item, group, name, &consumer);
	bool is_new = status == STATUS_NOT_FOUND;

	if (!is_new)
		TRY(status);
	consumer = (struct timed_consumer){ .name = name };
	TRY(txn_now_ms(c, &consumer.seen_ms));
	TRY(timed_consumer_put(item, group, &consumer, is_new));
	return is_new ? txn_event(c, key, EVENT_STREAM, "xgroup-createconsumer") : STATUS_OK;
}

size_t
group_write_limit(struct str consumer)
{
	size_t name = consumer.len < TIMED_WHOLE_BYTES ? consumer.len : TIMED_WHOLE_BYTES;

	return GROUP_WRITE_BYTES / (GROUP_ENTRY_BYTES + 3 * name);
}

/* ---- Reading in a group ---- */

static size_t
read_limit(const struct group_read *read)
{
	size_t most = group_write_limit(read->consumer);

	return read->limit && read->limit < most ? read->limit : most;
}

/* The new entries become pending; those that are pending already, for this consumer. */
static enum status
read_give(struct call *c, struct timed_item *item, const struct group_read *read,
	  const struct timed_entries *new)
{
	struct timed_pending_range before = { .from = new->entries[0].id,
					      .to = new->entries[new->count - 1].id,
					      .limit = 1 };
	struct timed_pending *given = arena_zalloc(c->arena, new->count * sizeof(*given));
	struct timed_pendings some;
	uint64_t now_ms;

	if (!given)
		return STATUS_LIMIT;
	TRY(txn_now_ms(c, &now_ms));
	for (size_t i = 0; i < new->count; i++)
		given[i].id = new->entries[i].id;
	/* Some are pending only after XGROUP SETID has set the group back. */
	TRY(timed_pending_range(item, read->group, &before, &some));
	if (some.count)
		TRY(timed_pending_get(item, read->group, given, new->count));
	for (size_t i = 0; i < new->count; i++) {
		given[i].delivered_ms = now_ms;
		given[i].times = 1;
	}
	return timed_pending_give(item, read->group, read->consumer, given, new->count);
}

/* How far the group is then. */
static enum status
read_advance(struct timed_item *item, struct timed_group *group, const struct timed_entries *new)
{
	struct stream_extent e = { .length = 0 };

	TRY(timed_stream_get(item, &e.stream));
	/* Where nothing was deleted by its id, the rest does not matter to a known count. */
	if (group->read == TIMED_GROUP_UNREAD || !id_is_zero(e.stream.deleted))
		TRY(stream_extent_get(item, &e));
	for (size_t i = 0; i < new->count; i++)
		group_advance(group, &e, new->entries[i].id);
	return timed_group_set(item, group);
}

static enum status
read_new(struct call *c, struct timed_item *item, const struct group_read *read, bool *ret_any)
{
	struct timed_stream_range range = { .from = read->group->last,
					    .to = STREAM_ID_LAST,
					    .limit = read_limit(read) };
	struct timed_entries new;

	*ret_any = false;
	if (!timed_stream_id_next(&range.from))
		return STATUS_OK;
	TRY(timed_stream_range(item, &range, &new));
	if (!new.count)
		return STATUS_OK;
	*ret_any = true;
	read->begin(read->arg);
	TRY(group_see_consumer(c, read->key, item, read->group, read->consumer));
	if (!read->noack)
		TRY(read_give(c, item, read, &new));
	TRY(read_advance(item, read->group, &new));
	stream_answer_entries(c->reply, &new);
	return STATUS_OK;
}

/* Answers the entries; those that are gone have an id and nothing else. */
static void
history_answer(struct call *c, const struct timed_entry *entries, size_t count)
{
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++) {
		if (entries[i].fields) {
			stream_answer_entry(c->reply, &entries[i]);
			continue;
		}
		reply_array(c->reply, 2);
		stream_answer_id(c->reply, entries[i].id);
		reply_null_array(c->reply);
	}
}

static enum status
read_history(struct call *c, struct timed_item *item, const struct group_read *read)
{
	struct timed_pending_range range = { .consumer = read->consumer,
					     .from = read->after,
					     .to = STREAM_ID_LAST,
					     .limit = read_limit(read) };
	struct timed_pendings old = { 0 };
	struct timed_entry *entries;
	size_t there = 0;
	uint64_t now_ms;

	read->begin(read->arg);
	TRY(group_see_consumer(c, read->key, item, read->group, read->consumer));
	(void)timed_stream_id_next(&range.from);
	TRY(timed_pending_range(item, read->group, &range, &old));
	entries = arena_zalloc(c->arena, (old.count + 1) * sizeof(*entries));
	if (!entries)
		return STATUS_LIMIT;
	for (size_t i = 0; i < old.count; i++)
		entries[i].id = old.entries[i].id;
	TRY(timed_stream_find(item, entries, old.count));
	history_answer(c, entries, old.count);
	TRY(txn_now_ms(c, &now_ms));
	for (size_t i = 0; i < old.count; i++) {
		if (!entries[i].fields)
			continue;
		old.entries[there] = old.entries[i];
		old.entries[there].delivered_ms = now_ms;
		old.entries[there++].times++;
	}
	return timed_pending_give(item, read->group, read->consumer, old.entries, there);
}

enum status
group_read(struct call *c, struct timed_item *item, const struct group_read *read, bool *ret_any)
{
	if (!read->history)
		return read_new(c, item, read, ret_any);
	*ret_any = true;
	return read_history(c, item, read);
}
