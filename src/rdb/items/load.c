/* Items out of values. */
#include "rdb/items/rdb_items.h"

#include "loop/step.h"

enum {
	LOAD_BATCH_BYTES = 256 * 1024,
	LOAD_PART_BYTES = 256, /* of what is written of a part beside its texts */
	LOAD_RUN = 256,        /* parts of one kind that are written together */
};

static const enum timed_type types[RDB_TYPES] = {
	[RDB_STRING] = TIMED_VALUE, [RDB_LIST] = TIMED_LIST, [RDB_SET] = TIMED_SET,
	[RDB_HASH] = TIMED_HASH,    [RDB_ZSET] = TIMED_ZSET, [RDB_STREAM] = TIMED_STREAM,
	[RDB_MODULE] = TIMED_LEAF,
};

static struct timed_stream_id
id_of(struct rdb_id id)
{
	return (struct timed_stream_id){ id.ms, id.seq };
}

/* ---- Batches ---- */

static enum status
part_copy(struct arena *arena, const struct rdb_part *before, struct rdb_part *part, size_t *bytes)
{
	*bytes += LOAD_PART_BYTES + part->name.len + part->value.len;
	/* What is pending for one consumer has the names that came before it. */
	if (before && before->kind == RDB_PART_PENDING && part->kind == RDB_PART_PENDING &&
	    str_eq(before->name, part->name)) {
		part->name = before->name;
		part->group = before->group;
		return STATUS_OK;
	}
	TRY(arena_copy(arena, part->name, &part->name));
	TRY(arena_copy(arena, part->value, &part->value));
	TRY(arena_copy(arena, part->group, &part->group));
	if (part->count) {
		struct str *fields = arena_alloc(arena, part->count * sizeof(*fields));

		if (!fields)
			return STATUS_LIMIT;
		for (size_t i = 0; i < part->count; i++) {
			*bytes += part->fields[i].len;
			TRY(arena_copy(arena, part->fields[i], &fields[i]));
		}
		part->fields = fields;
	}
	return STATUS_OK;
}

enum status
rdb_batch_read(struct rdb_value *v, struct arena *arena, size_t bytes, struct rdb_batch *ret)
{
	enum status status;
	size_t cap = 0;

	*ret = (struct rdb_batch){ .type = v->type };
	while (ret->bytes < bytes) {
		struct rdb_part *part;

		TRY(arena_room(arena, &ret->parts, ret->count, &cap, sizeof(*ret->parts)));
		part = &ret->parts[ret->count];
		status = rdb_value_next(v, part);
		if (status == STATUS_NOT_FOUND) {
			ret->complete = true;
			break;
		}
		TRY(status);
		TRY(part_copy(arena, ret->count ? part - 1 : NULL, part, &ret->bytes));
		ret->count++;
	}
	return STATUS_OK;
}

/* ---- Members and elements ---- */

static enum status
elements_put(struct timed_item *item, const struct rdb_batch *batch, struct arena *arena)
{
	struct str *values = arena_alloc(arena, batch->count * sizeof(*values));

	if (!values)
		return STATUS_LIMIT;
	for (size_t i = 0; i < batch->count; i++)
		values[i] = batch->parts[i].name;
	return timed_list_push(item, false, values, batch->count);
}

/* A moment that the value has, by the time of the database, which has been fixed. */
static uint64_t
moment_of(const struct timed *t, uint64_t ms)
{
	int64_t at;

	if (ms > INT64_MAX || __builtin_add_overflow((int64_t)ms, timed_ahead_ms(t), &at))
		return ms;
	return at > 0 ? (uint64_t)at : 1;
}

static enum status
members_put(struct timed_item *item, const struct rdb_batch *batch, struct arena *arena)
{
	struct timed_member *members = arena_zalloc(arena, batch->count * sizeof(*members));
	uint64_t now_ms = item->t->now_us / 1000;
	size_t count = 0;

	if (!members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < batch->count; i++) {
		const struct rdb_part *part = &batch->parts[i];
		uint64_t expires_ms = 0;

		if (part->expires_ms)
			expires_ms = moment_of(item->t, part->expires_ms);
		if (expires_ms && expires_ms <= now_ms)
			continue;
		members[count++] = (struct timed_member){ .name = part->name,
							  .value = part->value,
							  .score = part->score,
							  .expires_ms = expires_ms };
	}
	return count ? timed_members_put(item, types[batch->type], members, count) : STATUS_OK;
}

/* ---- Streams ---- */

struct stream_put {
	struct timed_item *item;
	const struct rdb_batch *batch;
	size_t at; /* the next part */
	struct arena *arena;
	struct timed_stream stream;
	struct timed_group group; /* if `has_group` */
	bool has_group;
};

/* The reader has checked that they are in the order of their ids. */
static enum status
entry_put(struct stream_put *s, const struct rdb_part *part)
{
	const struct timed_entry entry = { id_of(part->id), part->fields, part->count };

	return timed_stream_add(s->item, &s->stream, &entry);
}

static enum status
said_put(struct stream_put *s, const struct rdb_part *part)
{
	uint64_t entries = s->stream.added;

	s->stream = (struct timed_stream){ id_of(part->id), id_of(part->deleted),
					   part->added > entries ? part->added : entries };
	return timed_stream_set(s->item, &s->stream);
}

/*
 * Redis never writes two groups, or two consumers of a group, with the same name. Where a file has
 * them, the last one counts.
 */
static enum status
group_put(struct stream_put *s, const struct rdb_part *part)
{
	enum status status = timed_group_get(s->item, part->name, &s->group);

	if (status == STATUS_OK)
		status = timed_group_drop(s->item, &s->group);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	s->group = (struct timed_group){ .name = part->name,
					 .last = id_of(part->id),
					 .read = part->read < 0 ? TIMED_GROUP_UNREAD : part->read };
	s->has_group = true;
	return timed_group_add(s->item, &s->group);
}

/* The group of a part, which may have come in an earlier batch. */
static enum status
group_find(struct stream_put *s, const struct rdb_part *part)
{
	if (s->has_group && str_eq(s->group.name, part->group))
		return STATUS_OK;
	TRY(timed_group_get(s->item, part->group, &s->group));
	s->has_group = true;
	return STATUS_OK;
}

static enum status
consumer_put(struct stream_put *s, const struct rdb_part *part)
{
	const struct timed_consumer consumer = { part->name, moment_of(s->item->t, part->ms) };
	struct timed_consumer old;
	enum status status;

	TRY(group_find(s, part));
	status = timed_consumer_get(s->item, &s->group, part->name, &old);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	return timed_consumer_put(s->item, &s->group, &consumer, status == STATUS_NOT_FOUND);
}

/* Parts from `first` on that are pending for one consumer. */
static enum status
pending_put(struct stream_put *s, const struct rdb_part *first)
{
	struct timed_pending *entries = arena_zalloc(s->arena, LOAD_RUN * sizeof(*entries));
	const struct rdb_part *end = s->batch->parts + s->batch->count;
	size_t count = 0;

	if (!entries)
		return STATUS_LIMIT;
	TRY(group_find(s, first));
	for (const struct rdb_part *p = first; p < end && count < LOAD_RUN; p++) {
		if (p->kind != RDB_PART_PENDING || !str_eq(p->name, first->name))
			break;
		entries[count++] = (struct timed_pending){ .id = id_of(p->id),
							   .delivered_ms = moment_of(s->item->t,
										     p->ms),
							   .times = p->times };
	}
	s->at += count - 1;
	return timed_pending_give(s->item, &s->group, first->name, entries, count);
}

static enum status
stream_put(struct timed_item *item, const struct rdb_batch *batch, struct arena *arena)
{
	struct stream_put s = { .item = item, .batch = batch, .arena = arena };

	TRY(timed_stream_get(item, &s.stream));
	for (; s.at < batch->count; s.at++) {
		const struct rdb_part *part = &batch->parts[s.at];

		TRY(step_count(1));
		switch (part->kind) {
		case RDB_PART_ENTRY:
			TRY(entry_put(&s, part));
			break;
		case RDB_PART_STREAM:
			TRY(said_put(&s, part));
			break;
		case RDB_PART_GROUP:
			TRY(group_put(&s, part));
			break;
		case RDB_PART_CONSUMER:
			TRY(consumer_put(&s, part));
			break;
		case RDB_PART_PENDING:
			TRY(pending_put(&s, part));
			break;
		case RDB_PART_ELEMENT:
			return STATUS_INVALID;
		}
	}
	return STATUS_OK;
}

/* ---- All of them ---- */

enum status
rdb_batch_put(struct timed_item *item, const struct rdb_batch *batch, struct arena *arena)
{
	if (item->type != TIMED_LEAF && item->type != types[batch->type])
		return err_set(item->t->err, STATUS_INVALID,
			       "what is there is of another type than the rest of it");
	TRY(timed_now(item->t));
	if (!batch->count)
		return STATUS_OK;
	switch (batch->type) {
	case RDB_LIST:
		return elements_put(item, batch, arena);
	case RDB_SET:
	case RDB_HASH:
	case RDB_ZSET:
		return members_put(item, batch, arena);
	case RDB_STREAM:
		return stream_put(item, batch, arena);
	case RDB_STRING:
	case RDB_MODULE:
	case RDB_TYPES:
		break;
	}
	return err_set(item->t->err, STATUS_INVALID, "values of modules are not taken");
}

/* Two arenas: what is read lies in one until the next part, what is written in the other one. */
struct restore_arenas {
	struct arena *read;
	struct arena *write;
};

static void
restore_arenas_free(struct restore_arenas *a)
{
	arena_free(a->read);
	arena_free(a->write);
}

static enum status
restore_arenas_make(struct arena *like, struct restore_arenas *ret)
{
	ret->read = arena_new(arena_limit_bytes(like));
	ret->write = arena_new(arena_limit_bytes(like));
	if (!ret->read || !ret->write)
		return STATUS_NOMEM;
	arena_set_part(ret->read, arena_part(like));
	arena_set_part(ret->write, arena_part(like));
	return STATUS_OK;
}

static enum status
restore_string(struct rdb_value *v, struct timed_item *item)
{
	const struct timed_expiry never = { .kind = TIMED_EXPIRY_NEVER };
	struct rdb_part part;

	TRY(rdb_value_next(v, &part));
	return timed_value_set(item, part.name, never);
}

static enum status
restore_collection(struct rdb_value *v, struct timed_item *item, struct arena *arena)
{
	struct rdb_batch batch;

	do {
		arena_clear(arena);
		TRY(rdb_batch_read(v, arena, LOAD_BATCH_BYTES, &batch));
		TRY(rdb_batch_put(item, &batch, arena));
	} while (!batch.complete);
	return STATUS_OK;
}

enum status
rdb_restore(struct rdb_input *in, unsigned code, struct timed_item *item)
{
	AUTO(restore_arenas_free) struct restore_arenas arenas = { NULL, NULL };
	struct rdb_value v;

	TRY(restore_arenas_make(item->arena, &arenas));
	in->arena = arenas.read;
	TRY(rdb_value_begin(in, code, &v));
	if (v.type == RDB_MODULE)
		return rdb_invalid(in, "values of modules are not taken");
	return v.type == RDB_STRING ? restore_string(&v, item)
				    : restore_collection(&v, item, arenas.write);
}
