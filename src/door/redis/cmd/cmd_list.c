/* Lists. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/cmd/list.h"
#include "loop/step.h"

enum {
	LIST_PAGE = 512,
	RANGE_PAGE = 4096, /* elements that an answer reads at once */
};

/* ---- Pushing and popping ---- */

/* LPUSH, LPUSHX, RPUSH, RPUSHX. */
enum status
cmd_push(struct call *c)
{
	struct timed_item *item;
	uint64_t length = 0;

	TRY(data_item(c, 1, TIMED_LIST, &item));
	if (item->type != TIMED_LEAF || !call_is(c, HOW_ONLY_THERE)) {
		TRY(list_push(c, item, c->argv[1], call_is(c, HOW_LEFT), c->argv + 2, c->argc - 2));
		TRY(timed_count(item, &length));
	}
	reply_int(c->reply, (int64_t)length);
	return STATUS_OK;
}

/* LPOP, RPOP. */
enum status
cmd_pop(struct call *c)
{
	struct timed_elements e = { 0 };
	struct timed_item *item;
	int64_t wanted = 1;
	bool counted = c->argc == 3;

	if (c->argc > 3)
		return call_wrong_arity(c);
	if (counted)
		TRY(call_int_range(c, 2, 0, INT64_MAX, "value is out of range, must be positive",
				   &wanted));
	TRY(data_item(c, 1, TIMED_LIST, &item));
	if (item->type == TIMED_LEAF) {
		if (counted)
			reply_null_array(c->reply);
		else
			reply_null(c->reply);
		return STATUS_OK;
	}
	if (wanted)
		TRY(list_pop(c, item, c->argv[1], call_is(c, HOW_LEFT), (uint64_t)wanted, &e));
	if (counted)
		reply_array(c->reply, e.count);
	for (size_t i = 0; i < e.count; i++)
		reply_bulk(c->reply, e.elements[i].value);
	return STATUS_OK;
}

/* ---- Places ---- */

/* The element at an index that may be negative; `*ret` with count 0 if there is none. */
static enum status
element_at(struct timed_item *item, int64_t index, struct timed_elements *ret)
{
	uint64_t count;

	*ret = (struct timed_elements){ 0 };
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_count(item, &count));
	if (index < 0)
		index += (int64_t)count;
	if (index < 0 || (uint64_t)index >= count)
		return STATUS_OK;
	return timed_list_range(item, (uint64_t)index, 1, ret);
}

enum status
cmd_lindex(struct call *c)
{
	struct timed_elements e;
	struct timed_item *item;
	int64_t index;

	TRY(data_item(c, 1, TIMED_LIST, &item));
	if (item->type == TIMED_LEAF) {
		reply_null(c->reply);
		return STATUS_OK;
	}
	TRY(call_int(c, 2, &index));
	TRY(element_at(item, index, &e));
	if (e.count)
		reply_bulk(c->reply, e.elements[0].value);
	else
		reply_null(c->reply);
	return STATUS_OK;
}

enum status
cmd_lset(struct call *c)
{
	struct timed_elements e;
	struct timed_item *item;
	int64_t index;

	TRY(data_item(c, 1, TIMED_LIST, &item));
	if (item->type == TIMED_LEAF)
		return call_error(c, STR(ERROR_NO_KEY));
	TRY(call_int(c, 2, &index));
	TRY(element_at(item, index, &e));
	if (!e.count)
		return call_error(c, STR(ERROR_RANGE));
	TRY(timed_list_set(item, &e.elements[0], c->argv[3]));
	reply_ok(c->reply);
	return txn_changed(c, c->argv[1], EVENT_LIST, "lset");
}

static void
lrange_reply(void *reply, struct str value)
{
	reply_bulk(reply, value);
}

enum status
cmd_lrange(struct call *c)
{
	const struct timed_values to = { .fn = lrange_reply, .arg = c->reply };
	struct timed_item *item;
	uint64_t count = 0, left;
	int64_t from, to_index;

	TRY(call_int(c, 2, &from));
	TRY(call_int(c, 3, &to_index));
	TRY(data_item(c, 1, TIMED_LIST, &item));
	if (item->type != TIMED_LEAF)
		TRY(timed_count(item, &count));
	left = data_clip_range(&from, &to_index, count) ? (uint64_t)(to_index - from) + 1 : 0;
	reply_array(c->reply, left);
	while (left) {
		uint64_t n = left < RANGE_PAGE ? left : RANGE_PAGE, told;
		struct arena_mark mark = arena_mark(item->arena);

		TRY(step_count((uint32_t)n));
		TRY(timed_list_values(item, (uint64_t)from, n, &to, &told));
		/* The answer has promised as many as the list has counted. */
		if (told != n)
			return err_set(c->x->err, STATUS_CORRUPT, "a list lacks elements");
		arena_reset(item->arena, mark);
		from += (int64_t)n;
		left -= n;
	}
	return STATUS_OK;
}

enum status
cmd_ltrim(struct call *c)
{
	struct timed_item *item;
	int64_t from, to;
	uint64_t count;

	TRY(call_int(c, 2, &from));
	TRY(call_int(c, 3, &to));
	TRY(data_item(c, 1, TIMED_LIST, &item));
	reply_ok(c->reply);
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_count(item, &count));
	if (!data_clip_range(&from, &to, count)) {
		TRY(timed_item_delete(item));
		return data_changed(c, item, c->argv[1], EVENT_LIST, "ltrim");
	}
	if (from > 0 || (uint64_t)to + 1 < count)
		TRY(timed_list_trim(item, (uint64_t)from, (uint64_t)(to - from + 1)));
	return data_changed(c, item, c->argv[1], EVENT_LIST, "ltrim");
}

/* ---- By value ---- */

/*
 * Goes through a list from either end. `fn` sees each element with its index, and says whether to
 * go on, and by `*keeps` that it needs what is in the arena.
 */
struct list_walk {
	bool (*fn)(void *arg, uint64_t index, const struct timed_element *e, bool *keeps,
		   enum status *status);
	void *arg;
	uint64_t most; /* elements to look at; 0: all */
};

static enum status
list_walk(struct timed_item *item, bool backwards, const struct list_walk *w)
{
	enum status status = STATUS_OK;
	uint64_t count, seen = 0;

	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_count(item, &count));
	while (seen < count && (!w->most || seen < w->most)) {
		uint64_t n = count - seen < LIST_PAGE ? count - seen : LIST_PAGE;
		uint64_t from = backwards ? count - seen - n : seen;
		struct arena_mark mark = arena_mark(item->arena);
		struct timed_elements e;
		bool keeps = false;

		TRY(timed_list_range(item, from, n, &e));
		if (!e.count)
			return STATUS_OK;
		TRY(step_count((uint32_t)e.count));
		for (size_t i = 0; i < e.count; i++) {
			size_t at = backwards ? e.count - 1 - i : i;

			if (w->most && seen + i >= w->most)
				return STATUS_OK;
			if (!w->fn(w->arg, from + at, &e.elements[at], &keeps, &status))
				return status;
		}
		seen += e.count;
		if (!keeps)
			arena_reset(item->arena, mark);
	}
	return STATUS_OK;
}

struct find {
	struct str value;
	struct arena *arena;
	struct timed_element *found;
	uint64_t *indexes;
	size_t count;
	size_t cap, cap_indexes;
	uint64_t skip;
	uint64_t limit; /* 0: none */
};

static bool
find_take(void *arg, uint64_t index, const struct timed_element *e, bool *keeps,
	  enum status *status)
{
	struct find *f = arg;

	if (!str_eq(e->value, f->value))
		return true;
	if (f->skip) {
		f->skip--;
		return true;
	}
	*keeps = true;
	f->found = arena_grow(f->arena, f->found, f->count, &f->cap, sizeof(*f->found));
	f->indexes = arena_grow(f->arena, f->indexes, f->count, &f->cap_indexes,
				sizeof(*f->indexes));
	if (!f->found || !f->indexes) {
		*status = STATUS_LIMIT;
		return false;
	}
	f->found[f->count] = *e;
	f->indexes[f->count++] = index;
	return f->count != f->limit;
}

enum status
cmd_lrem(struct call *c)
{
	struct find f = { .value = c->argv[3], .arena = c->arena };
	struct list_walk w = { .fn = find_take, .arg = &f };
	struct timed_item *item;
	int64_t count;

	TRY(call_int(c, 2, &count));
	TRY(data_item(c, 1, TIMED_LIST, &item));
	f.limit = count < 0 ? -(uint64_t)count : (uint64_t)count;
	TRY(list_walk(item, count < 0, &w));
	reply_int(c->reply, (int64_t)f.count);
	if (!f.count)
		return STATUS_OK;
	TRY(timed_list_remove(item, f.found, f.count));
	return data_changed(c, item, c->argv[1], EVENT_LIST, "lrem");
}

enum status
cmd_linsert(struct call *c)
{
	struct find f = { .value = c->argv[3], .arena = c->arena, .limit = 1 };
	struct list_walk w = { .fn = find_take, .arg = &f };
	bool before = call_arg_is(c, 2, "before");
	struct timed_item *item;
	uint64_t count;

	if (!before && !call_arg_is(c, 2, "after"))
		return call_syntax_error(c);
	TRY(data_item(c, 1, TIMED_LIST, &item));
	TRY(list_walk(item, false, &w));
	if (!f.count) {
		reply_int(c->reply, item->type == TIMED_LEAF ? 0 : -1);
		return STATUS_OK;
	}
	TRY(timed_list_insert(item, &f.found[0], before, c->argv[4]));
	TRY(timed_count(item, &count));
	reply_int(c->reply, (int64_t)count);
	return txn_changed(c, c->argv[1], EVENT_LIST, "linsert");
}

/* LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len] */
enum status
cmd_lpos(struct call *c)
{
	struct find f = { .value = c->argv[2], .arena = c->arena, .limit = 1 };
	struct list_walk w = { .fn = find_take, .arg = &f };
	int64_t rank = 1, count = -1, most = 0;
	struct timed_item *item;

	for (size_t i = 3; i < c->argc; i += 2) {
		if (i + 1 == c->argc)
			return call_syntax_error(c);
		if (call_arg_is(c, i, "rank")) {
			TRY(call_count(c, i + 1, INT64_MAX, &rank));
			if (!rank)
				return call_error(
					c, STR("ERR RANK can't be zero: use 1 to start from the "
					       "first match, 2 from the second ... or use negative "
					       "to start from the end of the list"));
		} else if (call_arg_is(c, i, "count")) {
			TRY(call_int_range(c, i + 1, 0, INT64_MAX, "COUNT can't be negative",
					   &count));
		} else if (call_arg_is(c, i, "maxlen")) {
			TRY(call_int_range(c, i + 1, 0, INT64_MAX, "MAXLEN can't be negative",
					   &most));
		} else {
			return call_syntax_error(c);
		}
	}
	TRY(data_item(c, 1, TIMED_LIST, &item));
	f.skip = (uint64_t)(rank < 0 ? -rank : rank) - 1;
	if (count >= 0)
		f.limit = (uint64_t)count;
	w.most = (uint64_t)most;
	TRY(list_walk(item, rank < 0, &w));
	if (count >= 0) {
		reply_array(c->reply, f.count);
		for (size_t i = 0; i < f.count; i++)
			reply_int(c->reply, (int64_t)f.indexes[i]);
	} else if (f.count) {
		reply_int(c->reply, (int64_t)f.indexes[0]);
	} else {
		reply_null(c->reply);
	}
	return STATUS_OK;
}
