#include "door/redis/cmd/members.h"

#include <assert.h>

#include "base/rand.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/wire/glob.h"
#include "loop/step.h"

enum {
	SCAN_COUNT = 10,
	SCAN_COUNT_MOST = 10000,
};

void
members_walk_init(struct members_walk *w, struct timed_item *item, bool forgets)
{
	*w = (struct members_walk){ .item = item, .forgets = forgets };
}

void
members_walk_end(struct members_walk *w)
{
	arena_free(w->pages);
	w->pages = NULL;
}

static enum status
members_walk_page(struct members_walk *w)
{
	struct arena *own = w->item->arena;
	enum status status;

	if (w->forgets && !w->pages) {
		w->pages = arena_new(arena_limit_bytes(own));
		if (!w->pages)
			return STATUS_NOMEM;
		arena_set_part(w->pages, arena_part(own));
	} else if (w->forgets) {
		arena_clear(w->pages);
	}
	if (w->forgets)
		w->item->arena = w->pages;
	status = timed_members_page(w->item, w->begun ? w->page.next : 0, DATA_PAGE, &w->page);
	w->item->arena = own;
	w->begun = true;
	w->at = 0;
	return status;
}

enum status
members_walk_next(struct members_walk *w, struct timed_member *ret)
{
	if (w->item->type == TIMED_LEAF)
		return STATUS_NOT_FOUND;
	while (w->at == w->page.count) {
		if (w->begun && !w->page.next)
			return STATUS_NOT_FOUND;
		TRY(members_walk_page(w));
	}
	TRY(step_count(1));
	*ret = w->page.members[w->at++];
	return STATUS_OK;
}

enum status
members_walk_rest(struct members_walk *w, struct timed_member **ret, size_t *ret_count)
{
	struct timed_member first;

	TRY(members_walk_next(w, &first));
	*ret = &w->page.members[w->at - 1];
	*ret_count = w->page.count - (w->at - 1);
	w->at = w->page.count;
	assert(*ret_count > 0);
	return step_count((uint32_t)*ret_count);
}

enum status
members_find(struct timed_item *item, struct arena *pages, struct timed_member *members,
	     size_t count)
{
	struct arena *own = item->arena;
	enum status status;

	if (count > 1)
		item->arena = pages;
	status = timed_members_get(item, members, count);
	item->arena = own;
	return status;
}

enum status
members_all(struct timed_item *item, struct arena *arena, struct timed_member **ret,
	    size_t *ret_count)
{
	struct members_walk w;
	struct timed_member m;
	enum status status;
	size_t cap = 0;

	*ret = NULL;
	*ret_count = 0;
	members_walk_init(&w, item, false);
	while ((status = members_walk_next(&w, &m)) == STATUS_OK) {
		*ret = arena_grow(arena, *ret, *ret_count, &cap, sizeof(**ret));
		if (!*ret)
			return STATUS_LIMIT;
		(*ret)[(*ret_count)++] = m;
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
members_delete(struct call *c, struct timed_item *item, const struct str *names, size_t count,
	       size_t *ret_removed)
{
	struct timed_member *m = arena_zalloc(c->arena, count * sizeof(*m));

	*ret_removed = 0;
	if (!m)
		return STATUS_LIMIT;
	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	for (size_t i = 0; i < count; i++)
		m[i].name = names[i];
	TRY(timed_members_delete(item, m, count));
	for (size_t i = 0; i < count; i++)
		*ret_removed += m[i].found;
	return STATUS_OK;
}

/* HLEN, LLEN, SCARD, XLEN, ZCARD. */
enum status
cmd_members_count(struct call *c)
{
	struct timed_item *item;
	uint64_t count = 0;

	TRY(data_item(c, 1, data_type_of(c), &item));
	if (item->type != TIMED_LEAF)
		TRY(timed_count(item, &count));
	reply_int(c->reply, (int64_t)count);
	return STATUS_OK;
}

/* HDEL, SREM, ZREM. */
enum status
cmd_members_remove(struct call *c)
{
	struct timed_item *item;
	size_t removed;

	TRY(data_item(c, 1, data_type_of(c), &item));
	TRY(members_delete(c, item, c->argv + 2, c->argc - 2, &removed));
	reply_int(c->reply, (int64_t)removed);
	if (!removed)
		return STATUS_OK;
	return data_changed(c, item, c->argv[1], data_class_of(c), c->command->name);
}

enum status
members_store(struct call *c, enum timed_type type, struct timed_member *members, size_t count)
{
	struct timed_item *to;

	TRY(data_replace(c, c->argv[1], count, &to));
	if (!count)
		return STATUS_OK;
	TRY(timed_members_put(to, type, members, count));
	return txn_changed(c, c->argv[1], data_class_of(c), c->command->name);
}

enum status
members_look_up(struct call *c, enum timed_type type, bool values, struct timed_member **ret,
		size_t *ret_count)
{
	size_t count = c->argc - 2;
	struct timed_member *m = arena_zalloc(c->arena, count * sizeof(*m));
	struct timed_item *item;

	if (!m)
		return STATUS_LIMIT;
	TRY(data_item(c, 1, type, &item));
	for (size_t i = 0; i < count; i++)
		m[i] = (struct timed_member){ .name = c->argv[i + 2], .most = !values };
	if (item->type != TIMED_LEAF)
		TRY(timed_members_get(item, m, count));
	*ret = m;
	*ret_count = count;
	return STATUS_OK;
}

/* A number below `n`, at random. */
static uint64_t
members_draw(uint64_t n)
{
	uint64_t random;

	rand_bytes(&random, sizeof(random));
	return random % n;
}

enum status
members_random(struct call *c, struct timed_item *item, int64_t wanted, struct timed_member **ret,
	       size_t *ret_count)
{
	struct timed_members drawn;
	struct timed_member *all;
	enum status status;
	size_t count;
	size_t n;

	status = timed_members_draw(item, wanted < 0 ? (size_t)-wanted : (size_t)wanted, wanted < 0,
				    &drawn);
	if (status != STATUS_NOT_FOUND) {
		*ret = drawn.members;
		*ret_count = drawn.count;
		return status;
	}
	TRY(members_all(item, c->arena, &all, &count));
	if (wanted < 0 && count) {
		n = (size_t)-wanted;
		*ret = n <= arena_limit_bytes(c->arena) / sizeof(**ret)
			       ? arena_alloc(c->arena, n * sizeof(**ret))
			       : NULL;
		if (!*ret)
			return err_set(c->x->err, STATUS_LIMIT,
				       "so many members do not fit into the memory of a request");
		for (size_t i = 0; i < n; i++)
			(*ret)[i] = all[members_draw(count)];
		*ret_count = n;
		return STATUS_OK;
	}
	n = (uint64_t)wanted < count ? (size_t)wanted : count;
	/* Fisher and Yates, as far as wanted. */
	for (size_t i = 0; i < n; i++) {
		size_t other = i + members_draw(count - i);
		struct timed_member m = all[i];

		all[i] = all[other];
		all[other] = m;
	}
	*ret = all;
	*ret_count = n;
	return STATUS_OK;
}

/* HRANDFIELD, ZRANDMEMBER. */
enum status
cmd_members_random(struct call *c)
{
	bool hash = data_type_of(c) == TIMED_HASH, values = c->argc == 4;
	struct timed_member *m;
	struct timed_item *item;
	int64_t wanted = 1;
	size_t count;

	if (c->argc > 4 || (values && !call_arg_is(c, 3, hash ? "withvalues" : "withscores")))
		return call_syntax_error(c);
	if (c->argc > 2)
		TRY(call_count(c, 2, MEMBERS_RANDOM_MOST, &wanted));
	TRY(data_item(c, 1, data_type_of(c), &item));
	TRY(members_random(c, item, wanted, &m, &count));
	if (c->argc == 2) {
		if (count)
			reply_bulk(c->reply, m[0].name);
		else
			reply_null(c->reply);
		return STATUS_OK;
	}
	reply_array(c->reply, values && c->reply->version == 2 ? 2 * count : count);
	for (size_t i = 0; i < count; i++) {
		if (values && c->reply->version == 3)
			reply_array(c->reply, 2);
		reply_bulk(c->reply, m[i].name);
		if (values && hash)
			reply_bulk(c->reply, m[i].value);
		else if (values)
			reply_double(c->reply, m[i].score);
	}
	return STATUS_OK;
}

/* ---- Cursors ---- */

enum status
scan_parse(struct call *c, size_t at, bool takes_type, struct scan_options *ret)
{
	int64_t least = SCAN_COUNT;

	*ret = (struct scan_options){ .pattern = STR("*") };
	for (size_t i = at; i < c->argc; i += 2) {
		bool last = i + 1 == c->argc;

		if (!last && call_arg_is(c, i, "match")) {
			ret->pattern = c->argv[i + 1];
		} else if (!last && takes_type && call_arg_is(c, i, "type")) {
			ret->type = c->argv[i + 1];
		} else if (last || !call_arg_is(c, i, "count")) {
			return call_syntax_error(c);
		} else {
			TRY(call_int(c, i + 1, &least));
		}
		if (least < 1)
			return call_syntax_error(c);
	}
	ret->least = least > SCAN_COUNT_MOST ? SCAN_COUNT_MOST : (size_t)least;
	return STATUS_OK;
}

static enum status
scan_answer(struct call *c, const struct timed_members *page, struct str pattern)
{
	enum timed_type type = data_type_of(c);
	size_t place;
	size_t count = 0;

	reply_array(c->reply, 2);
	reply_bulk_int(c->reply, (int64_t)page->next);
	place = reply_later(c->reply);
	for (size_t i = 0; i < page->count; i++) {
		const struct timed_member *m = &page->members[i];

		if (!glob_matches(pattern, m->name, false))
			continue;
		reply_bulk(c->reply, m->name);
		count++;
		if (type == TIMED_HASH) {
			reply_bulk(c->reply, m->value);
			count++;
		} else if (type == TIMED_ZSET) {
			struct reply two = { .out = c->reply->out, .version = 2 };

			reply_double(&two, m->score); /* also in RESP3, where others are doubles */
			count++;
		}
	}
	reply_later_end(c->reply, place, '*', count);
	return STATUS_OK;
}

/* HSCAN, SSCAN, ZSCAN. */
enum status
cmd_members_scan(struct call *c)
{
	struct timed_members page = { 0 };
	struct scan_options options;
	struct timed_item *item;
	uint64_t cursor;

	if (!str_to_u64(c->argv[2], &cursor))
		return call_error(c, STR("ERR invalid cursor"));
	TRY(data_item(c, 1, data_type_of(c), &item));
	/* As in Redis, options for what is not there may be wrong. */
	if (item->type == TIMED_LEAF)
		return scan_answer(c, &page, STR("*"));
	TRY(scan_parse(c, 3, false, &options));
	TRY(timed_members_page(item, cursor, options.least, &page));
	return scan_answer(c, &page, options.pattern);
}
