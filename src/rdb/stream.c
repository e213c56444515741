/*
 * Streams: containers of entries, what the stream says of itself, then each group with what is
 * pending in it, and its consumers with the ids of what is pending for them.
 */
#include "rdb/value_int.h"

#include "loop/step.h"

enum {
	ID_BYTES = 16,
	/* Of an entry that is pending: its id, a time, a number. */
	PENDING_BYTES = ID_BYTES + 8 + 1,
	ENTRY_DELETED = 1,
	ENTRY_AS_MASTER = 2, /* it has the fields of the first one */
};

static int
id_cmp(struct rdb_id a, struct rdb_id b)
{
	if (a.ms != b.ms)
		return a.ms < b.ms ? -1 : 1;
	return (a.seq > b.seq) - (a.seq < b.seq);
}

/* The 16 bytes that are an id in keys. */
static struct rdb_id
id_get(struct str s)
{
	return (struct rdb_id){ bytes_be(str_of(s.ptr, 8)), bytes_be(str_of(s.ptr + 8, 8)) };
}

static enum status
id_take(struct rdb_input *in, struct rdb_id *ret)
{
	struct str s;

	if (!rdb_take(in, ID_BYTES, &s))
		return rdb_invalid(in, "it ends too early");
	*ret = id_get(s);
	return STATUS_OK;
}

/* Two lengths. */
static enum status
id_read(struct rdb_input *in, struct rdb_id *ret)
{
	TRY(rdb_read_length(in, &ret->ms));
	return rdb_read_length(in, &ret->seq);
}

/* ---- Entries ---- */

/* Room for so many texts of a container, each of which has a byte at least. */
static enum status
fields_room(struct rdb_value *v, int64_t count, struct str **ret)
{
	if (count < 0 || (uint64_t)count > v->pack.rest.len)
		return rdb_invalid(v->in,
				   "an entry of a stream has an impossible number of fields");
	*ret = arena_alloc(v->in->arena, ((size_t)count + 1) * sizeof(**ret));
	return *ret ? STATUS_OK : STATUS_LIMIT;
}

/* Opens the next container: its key, and the entry that others may have the fields of. */
static enum status
node_next(struct rdb_value *v)
{
	struct rdb_stream_reader *s = &v->stream;
	int64_t ignored, count;
	struct str key, node;

	v->left--;
	arena_reset(v->in->arena, v->base);
	TRY(rdb_read_string(v->in, &key));
	if (key.len != ID_BYTES)
		return rdb_invalid(v->in, "the key of a stream's container is no id");
	s->master = id_get(key);
	TRY(rdb_read_string(v->in, &node));
	TRY(rdb_node_open(v, RDB_LISTPACK, node));
	TRY(rdb_node_number(v, &ignored)); /* entries that are there, and deleted ones */
	TRY(rdb_node_number(v, &ignored));
	TRY(rdb_node_number(v, &count));
	TRY(fields_room(v, count, &s->fields));
	s->count = (size_t)count;
	for (size_t i = 0; i < s->count; i++)
		TRY(rdb_node_text(v, &s->fields[i]));
	TRY(rdb_node_number(v, &ignored)); /* 0, where entries have how long they are */
	v->mark = arena_mark(v->in->arena);
	return STATUS_OK;
}

/* The fields of an entry, and their values. */
static enum status
entry_fields(struct rdb_value *v, bool as_master, struct rdb_part *ret)
{
	const struct rdb_stream_reader *s = &v->stream;
	int64_t count = (int64_t)s->count;

	if (!as_master)
		TRY(rdb_node_number(v, &count));
	if (count < 0 || (uint64_t)count > v->pack.rest.len)
		return rdb_invalid(v->in,
				   "an entry of a stream has an impossible number of fields");
	TRY(fields_room(v, as_master ? 2 * (int64_t)s->count : 2 * count, &ret->fields));
	ret->count = 2 * (size_t)count;
	for (size_t i = 0; i < ret->count; i += 2) {
		if (as_master)
			ret->fields[i] = s->fields[i / 2];
		else
			TRY(rdb_node_text(v, &ret->fields[i]));
		TRY(rdb_node_text(v, &ret->fields[i + 1]));
	}
	return STATUS_OK;
}

/* The next entry of the container that is not deleted. STATUS_NOT_FOUND at its end. */
static enum status
entry_next(struct rdb_value *v, struct rdb_part *ret)
{
	struct rdb_stream_reader *s = &v->stream;
	int64_t flags, ms, seq, ignored;
	struct rdb_part part;

	do {
		struct rdb_pack at = v->pack;
		struct rdb_entry entry;
		enum status status = rdb_pack_next(&v->pack, &entry);

		if (status == STATUS_NOT_FOUND)
			return status;
		arena_reset(v->in->arena, v->mark);
		TRY(step_count(1));
		part = (struct rdb_part){ .kind = RDB_PART_ENTRY };
		v->pack = at;
		TRY(rdb_node_number(v, &flags));
		TRY(rdb_node_number(v, &ms));
		TRY(rdb_node_number(v, &seq));
		TRY(entry_fields(v, flags & ENTRY_AS_MASTER, &part));
		TRY(rdb_node_number(v, &ignored));
	} while (flags & ENTRY_DELETED);
	part.id = (struct rdb_id){ s->master.ms + (uint64_t)ms, s->master.seq + (uint64_t)seq };
	if (id_cmp(part.id, s->last) <= 0)
		return rdb_invalid(v->in, "entries of a stream are not in the order of their ids");
	if (!s->last.ms && !s->last.seq)
		s->first = part.id;
	s->last = part.id;
	*ret = part;
	return STATUS_OK;
}

/* ---- What a stream says of itself ---- */

static enum status
stream_said(struct rdb_value *v, struct rdb_part *ret)
{
	struct rdb_stream_reader *s = &v->stream;
	struct rdb_id first;
	uint64_t length;

	v->pack.kind = RDB_PACK_NONE;
	v->mark = v->base;
	arena_reset(v->in->arena, v->base);
	ret->kind = RDB_PART_STREAM;
	TRY(rdb_read_length(v->in, &length));
	TRY(id_read(v->in, &ret->id));
	ret->added = length;
	if (s->version > 1) {
		TRY(id_read(v->in, &first));
		TRY(id_read(v->in, &ret->deleted));
		TRY(rdb_read_length(v->in, &ret->added));
	}
	if (id_cmp(ret->id, s->last) < 0)
		return rdb_invalid(v->in, "the last id of a stream is before its last entry");
	s->said = true;
	s->last = ret->id;
	s->added = ret->added;
	return rdb_read_length(v->in, &s->groups);
}

/* ---- Groups ---- */

/* What is pending in the group, in the order of ids, without those for whom. */
static enum status
pending_read(struct rdb_value *v)
{
	struct rdb_stream_reader *s = &v->stream;

	TRY(rdb_read_length(v->in, &s->pending_count));
	if (s->pending_count > v->in->rest.len / PENDING_BYTES)
		return rdb_invalid(v->in, "a group has an impossible number of pending entries");
	s->pending = arena_alloc(v->in->arena,
				 ((size_t)s->pending_count + 1) * sizeof(*s->pending));
	if (!s->pending)
		return STATUS_LIMIT;
	for (size_t i = 0; i < s->pending_count; i++) {
		struct rdb_pending *p = &s->pending[i];

		*p = (struct rdb_pending){ .owned = false };
		TRY(step_count(1));
		TRY(id_take(v->in, &p->id));
		TRY(rdb_read_number(v->in, 8, &p->ms));
		TRY(rdb_read_length(v->in, &p->times));
		if (i && id_cmp(p[-1].id, p->id) >= 0)
			return rdb_invalid(v->in, "pending entries are not in their order");
	}
	return STATUS_OK;
}

/*
 * How many entries a group has read, where that was not stored: as Redis guesses it, of a stream
 * that is said to have had the entries that it has.
 */
static int64_t
group_guess(const struct rdb_stream_reader *s, struct rdb_id last)
{
	if (!s->added)
		return 0;
	if (id_cmp(last, s->last) == 0)
		return (int64_t)(s->added & INT64_MAX);
	if (id_cmp(last, s->first) < 0)
		return 0;
	return id_cmp(last, s->first) == 0 ? 1 : -1;
}

static enum status
group_next(struct rdb_value *v, struct rdb_part *ret)
{
	struct rdb_stream_reader *s = &v->stream;
	uint64_t read;

	s->groups--;
	arena_reset(v->in->arena, v->base);
	ret->kind = RDB_PART_GROUP;
	TRY(rdb_read_string(v->in, &s->group));
	TRY(id_read(v->in, &ret->id));
	ret->read = group_guess(s, ret->id);
	if (s->version > 1) {
		TRY(rdb_read_length(v->in, &read));
		ret->read = (int64_t)read < 0 ? -1 : (int64_t)read;
	}
	TRY(pending_read(v));
	TRY(rdb_read_length(v->in, &s->consumers));
	s->owned = 0;
	ret->name = s->group;
	v->mark = arena_mark(v->in->arena);
	return STATUS_OK;
}

static enum status
consumer_next(struct rdb_value *v, struct rdb_part *ret)
{
	struct rdb_stream_reader *s = &v->stream;
	uint64_t active_ms;

	s->consumers--;
	ret->kind = RDB_PART_CONSUMER;
	/* Names of a group's consumers stay until its end. */
	TRY(rdb_read_string(v->in, &s->consumer));
	v->mark = arena_mark(v->in->arena);
	TRY(rdb_read_number(v->in, 8, &ret->ms));
	if (s->version > 2)
		TRY(rdb_read_number(v->in, 8, &active_ms));
	ret->group = s->group;
	ret->name = s->consumer;
	return rdb_read_length(v->in, &s->ids);
}

static struct rdb_pending *
pending_find(const struct rdb_stream_reader *s, struct rdb_id id)
{
	size_t from = 0, to = (size_t)s->pending_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int c = id_cmp(s->pending[middle].id, id);

		if (c == 0)
			return &s->pending[middle];
		if (c < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

static enum status
pending_next(struct rdb_value *v, struct rdb_part *ret)
{
	struct rdb_stream_reader *s = &v->stream;
	struct rdb_pending *p;

	s->ids--;
	ret->kind = RDB_PART_PENDING;
	TRY(id_take(v->in, &ret->id));
	p = pending_find(s, ret->id);
	if (!p || p->owned)
		return rdb_invalid(v->in,
				   "an entry is pending for a consumer, and not in its group");
	p->owned = true;
	s->owned++;
	ret->group = s->group;
	ret->name = s->consumer;
	ret->ms = p->ms;
	ret->times = p->times;
	return STATUS_OK;
}

enum status
rdb_stream_next(struct rdb_value *v, struct rdb_part *ret)
{
	struct rdb_stream_reader *s = &v->stream;

	while (!s->said) {
		enum status status = STATUS_NOT_FOUND;

		if (v->pack.kind != RDB_PACK_NONE)
			status = entry_next(v, ret);
		if (status != STATUS_NOT_FOUND)
			return status;
		if (!v->left)
			return stream_said(v, ret);
		TRY(step_count(1));
		TRY(node_next(v));
	}
	if (s->ids)
		return pending_next(v, ret);
	if (s->consumers)
		return consumer_next(v, ret);
	if (s->owned != s->pending_count)
		return rdb_invalid(v->in, "an entry is pending for nobody");
	return s->groups ? group_next(v, ret) : STATUS_NOT_FOUND;
}
