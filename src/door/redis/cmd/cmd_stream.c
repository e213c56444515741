/* Streams: what changes them. */
#include <assert.h>

#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/stream.h"
#include "door/redis/txn/redis_int.h"

enum {
	TRIM_NODES = 100, /* that "~" removes at most, unless LIMIT says so */
};

/* ---- Options of XADD and XTRIM ---- */

struct stream_options {
	bool trims;
	struct timed_stream_trim trim;
	bool approximate;
	bool has_limit;
	int64_t limit;
	bool makes;   /* XADD: the stream, if it is not there */
	size_t id;    /* XADD: where the id is; 0: nowhere yet */
	bool any_id;  /* "*" */
	bool any_seq; /* "5-*" */
	struct timed_stream_id given;
};

/* MAXLEN or MINID at `*i`, with what belongs to it. */
static enum status
options_read_trim(struct call *c, size_t *i, struct stream_options *ret)
{
	bool by_length = call_arg_is(c, *i, "maxlen");
	int64_t length;

	if (ret->trims)
		return call_error(c, STR("ERR syntax error, MAXLEN and MINID options at the same "
					 "time are not compatible"));
	ret->trims = true;
	ret->trim.by_length = by_length;
	++*i;
	if (*i + 1 < c->argc && (call_arg_is(c, *i, "~") || call_arg_is(c, *i, "="))) {
		ret->approximate = call_arg_is(c, *i, "~");
		++*i;
	}
	if (!by_length)
		return stream_id_arg(c, *i, 0, &ret->trim.least);
	TRY(call_int(c, *i, &length));
	if (length < 0)
		return call_error(c, STR("ERR The MAXLEN argument must be >= 0."));
	ret->trim.length = (uint64_t)length;
	return STATUS_OK;
}

/* The id of XADD: "*", "5-*", "5-1" or "5". */
static enum status
options_read_id(struct call *c, size_t i, struct stream_options *ret)
{
	struct str text = c->argv[i];

	ret->id = i;
	ret->any_id = call_arg_is(c, i, "*");
	if (ret->any_id)
		return STATUS_OK;
	if (text.len > 2 && text.ptr[text.len - 1] == '*' && text.ptr[text.len - 2] == '-') {
		ret->any_seq = true;
		text.len -= 2;
		if (str_to_u64(text, &ret->given.ms))
			return STATUS_OK;
	}
	return stream_id_arg(c, i, 0, &ret->given);
}

static enum status
options_check(struct call *c, struct stream_options *o, bool adds)
{
	if (o->limit && !o->trims)
		return call_error(c, STR("ERR syntax error, LIMIT cannot be used without "
					 "specifying a trimming strategy"));
	if (!adds && !o->trims)
		return call_error(c, STR("ERR syntax error, XTRIM must be called with at least one "
					 "trimming strategy"));
	if (o->has_limit && !o->approximate)
		return call_error(c, STR("ERR syntax error, LIMIT cannot be used without the "
					 "special ~ option"));
	if (o->approximate) {
		o->trim.step = atomic_load_explicit(&c->redis->node_entries, memory_order_relaxed);
		o->trim.limit = o->has_limit ? (uint64_t)o->limit : TRIM_NODES * o->trim.step;
	}
	return STATUS_OK;
}

static enum status
options_read(struct call *c, bool adds, struct stream_options *ret)
{
	*ret = (struct stream_options){ .makes = true };
	for (size_t i = 2; i < c->argc && !ret->id; i++) {
		bool more = i + 1 < c->argc;

		if (more && (call_arg_is(c, i, "maxlen") || call_arg_is(c, i, "minid"))) {
			TRY(options_read_trim(c, &i, ret));
		} else if (more && call_arg_is(c, i, "limit")) {
			TRY(call_int(c, ++i, &ret->limit));
			if (ret->limit < 0)
				return call_error(c, STR("ERR The LIMIT argument must be >= 0."));
			ret->has_limit = true;
		} else if (adds && call_arg_is(c, i, "nomkstream")) {
			ret->makes = false;
		} else if (adds) {
			TRY(options_read_id(c, i, ret));
		} else {
			return call_syntax_error(c);
		}
	}
	return options_check(c, ret, adds);
}

/* ---- XADD ---- */

/* The id of the new entry. */
static enum status
add_choose_id(struct call *c, const struct stream_options *o, const struct timed_stream *stream,
	      uint64_t now_ms, struct timed_stream_id *ret)
{
	bool next = o->any_id || (o->any_seq && o->given.ms == stream->last.ms);

	if (timed_stream_id_cmp(stream->last, STREAM_ID_LAST) == 0)
		return call_error(c, STR("ERR The stream has exhausted the last possible ID, "
					 "unable to add more items"));
	*ret = o->given;
	if (o->any_id && now_ms > stream->last.ms) {
		*ret = (struct timed_stream_id){ now_ms, 0 };
	} else if (next) {
		*ret = stream->last;
		next = timed_stream_id_next(ret);
		assert(next); /* the last one is not the last possible */
	}
	if (timed_stream_id_cmp(*ret, stream->last) <= 0 || (!o->any_id && ret->ms != o->given.ms))
		return call_error(c, STR("ERR The ID specified in XADD is equal or smaller than "
					 "the target stream top item"));
	return STATUS_OK;
}

static enum status
stream_trim(struct call *c, struct timed_item *item, const struct stream_options *o,
	    uint64_t *ret_deleted)
{
	*ret_deleted = 0;
	if (!o->trims)
		return STATUS_OK;
	TRY(timed_stream_trim(item, &o->trim, ret_deleted));
	return *ret_deleted ? txn_changed(c, c->argv[1], EVENT_STREAM, "xtrim") : STATUS_OK;
}

/* Checks the arguments of XADD. */
static enum status
add_check(struct call *c, const struct stream_options *o)
{
	if (!o->id || o->id + 2 >= c->argc || (c->argc - o->id) % 2 == 0)
		return call_wrong_arity(c);
	if (!o->any_id && !o->any_seq && timed_stream_id_cmp(o->given, STREAM_ID_FIRST) == 0)
		return call_error(c, STR("ERR The ID specified in XADD must be greater than 0-0"));
	return STATUS_OK;
}

enum status
cmd_xadd(struct call *c)
{
	struct timed_stream stream;
	struct timed_entry entry;
	struct stream_options o;
	struct timed_item *item;
	uint64_t now_ms, ignored;

	TRY(options_read(c, true, &o));
	TRY(add_check(c, &o));
	TRY(data_item(c, 1, TIMED_STREAM, &item));
	if (item->type == TIMED_LEAF && !o.makes) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	TRY(timed_stream_get(item, &stream));
	TRY(txn_now_ms(c, &now_ms));
	TRY(add_choose_id(c, &o, &stream, now_ms, &entry.id));
	entry.fields = c->argv + o.id + 1;
	entry.count = c->argc - o.id - 1;
	TRY(timed_stream_add(item, &stream, &entry));
	TRY(txn_changed(c, c->argv[1], EVENT_STREAM, "xadd"));
	TRY(stream_trim(c, item, &o, &ignored));
	stream_answer_id(c->reply, entry.id);
	return STATUS_OK;
}

/* ---- XTRIM, XDEL, XSETID ---- */

enum status
cmd_xtrim(struct call *c)
{
	struct stream_options o;
	struct timed_item *item;
	uint64_t deleted;

	TRY(options_read(c, false, &o));
	TRY(data_item(c, 1, TIMED_STREAM, &item));
	TRY(stream_trim(c, item, &o, &deleted));
	reply_int(c->reply, (int64_t)deleted);
	return STATUS_OK;
}

enum status
cmd_xdel(struct call *c)
{
	size_t count = c->argc - 2;
	struct timed_stream_id *ids = arena_alloc(c->arena, count * sizeof(*ids));
	struct timed_stream stream;
	struct timed_item *item;
	uint64_t deleted;

	if (!ids)
		return STATUS_LIMIT;
	TRY(data_item(c, 1, TIMED_STREAM, &item));
	if (item->type == TIMED_LEAF) {
		reply_int(c->reply, 0);
		return STATUS_OK;
	}
	for (size_t i = 0; i < count; i++)
		TRY(stream_id_arg(c, i + 2, 0, &ids[i]));
	TRY(timed_stream_get(item, &stream));
	TRY(timed_stream_delete(item, &stream, ids, count, &deleted));
	if (deleted)
		TRY(txn_changed(c, c->argv[1], EVENT_STREAM, "xdel"));
	reply_int(c->reply, (int64_t)deleted);
	return STATUS_OK;
}

/* What XSETID is to set beside the last id. */
struct set_id {
	struct timed_stream_id last;
	bool has_added;
	int64_t added;
	bool has_deleted;
	struct timed_stream_id deleted;
};

static enum status
set_id_read(struct call *c, struct set_id *ret)
{
	*ret = (struct set_id){ 0 };
	TRY(stream_id_arg(c, 2, 0, &ret->last));
	for (size_t i = 3; i < c->argc; i += 2) {
		if (i + 1 < c->argc && call_arg_is(c, i, "entriesadded")) {
			TRY(call_int(c, i + 1, &ret->added));
			if (ret->added < 0)
				return call_error(c, STR("ERR entries_added must be positive"));
			ret->has_added = true;
		} else if (i + 1 < c->argc && call_arg_is(c, i, "maxdeletedid")) {
			TRY(stream_id_arg(c, i + 1, 0, &ret->deleted));
			if (timed_stream_id_cmp(ret->last, ret->deleted) < 0)
				return call_error(c,
						  STR("ERR The ID specified in XSETID is smaller "
						      "than the provided max_deleted_entry_id"));
			ret->has_deleted = true;
		} else {
			return call_syntax_error(c);
		}
	}
	return STATUS_OK;
}

/* Checks that the stream may have these ids. */
static enum status
set_id_check(struct call *c, struct timed_item *item, const struct timed_stream *stream,
	     const struct set_id *wanted)
{
	const struct timed_stream_range newest = { .to = STREAM_ID_LAST,
						   .reverse = true,
						   .limit = 1 };
	struct timed_entries entries;
	uint64_t count;

	TRY(timed_stream_range(item, &newest, &entries));
	TRY(timed_count(item, &count));
	if (timed_stream_id_cmp(wanted->last, stream->deleted) < 0)
		return call_error(c, STR("ERR The ID specified in XSETID is smaller than current "
					 "max_deleted_entry_id"));
	if (entries.count && timed_stream_id_cmp(wanted->last, entries.entries[0].id) < 0)
		return call_error(c, STR("ERR The ID specified in XSETID is smaller than the "
					 "target stream top item"));
	if (wanted->has_added && count > (uint64_t)wanted->added)
		return call_error(c, STR("ERR The entries_added specified in XSETID is smaller "
					 "than the target stream length"));
	return STATUS_OK;
}

enum status
cmd_xsetid(struct call *c)
{
	struct timed_stream stream;
	struct timed_item *item;
	struct set_id wanted;

	TRY(set_id_read(c, &wanted));
	TRY(data_item(c, 1, TIMED_STREAM, &item));
	if (item->type == TIMED_LEAF)
		return call_error(c, STR("ERR no such key"));
	TRY(timed_stream_get(item, &stream));
	TRY(set_id_check(c, item, &stream, &wanted));
	stream.last = wanted.last;
	stream.added = wanted.has_added ? (uint64_t)wanted.added : stream.added;
	stream.deleted = wanted.has_deleted ? wanted.deleted : stream.deleted;
	TRY(timed_stream_set(item, &stream));
	TRY(txn_changed(c, c->argv[1], EVENT_STREAM, "xsetid"));
	reply_ok(c->reply);
	return STATUS_OK;
}
