/* Sets. */
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/members.h"
#include "base/hash.h"
#include "loop/step.h"

/* Leaves out members that the set has: it is not changed by them. */
static enum status
members_only_new(struct timed_item *item, struct timed_member *m, size_t *count)
{
	size_t left = 0;

	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_members_get(item, m, *count));
	for (size_t i = 0; i < *count; i++) {
		if (m[i].found)
			continue;
		m[left] = m[i];
		m[left++].known = true;
	}
	*count = left;
	return STATUS_OK;
}

enum status
cmd_sadd(struct call *c)
{
	size_t count = c->argc - 2;
	struct timed_member *m = arena_zalloc(c->arena, count * sizeof(*m));
	struct timed_item *item;
	int64_t added = 0;

	if (!m)
		return STATUS_LIMIT;
	TRY(data_item(c, 1, TIMED_SET, &item));
	for (size_t i = 0; i < count; i++)
		m[i].name = c->argv[i + 2];
	TRY(members_only_new(item, m, &count));
	TRY(timed_members_put(item, TIMED_SET, m, count));
	for (size_t i = 0; i < count; i++)
		added += !m[i].found;
	reply_int(c->reply, added);
	return added ? txn_changed(c, c->argv[1], EVENT_SET, "sadd") : STATUS_OK;
}

enum status
cmd_smismember(struct call *c)
{
	struct timed_member *m;
	size_t count;

	TRY(members_look_up(c, TIMED_SET, false, &m, &count));
	if (strcmp(c->command->name, "sismember") == 0) {
		reply_int(c->reply, m[0].found);
		return STATUS_OK;
	}
	reply_array(c->reply, count);
	for (size_t i = 0; i < count; i++)
		reply_int(c->reply, m[i].found);
	return STATUS_OK;
}

enum status
cmd_smembers(struct call *c)
{
	AUTO(members_walk_end) struct members_walk w = { 0 };
	size_t place = reply_later(c->reply);
	struct timed_item *item;
	struct timed_member m;
	enum status status;
	size_t count = 0;

	TRY(data_item(c, 1, TIMED_SET, &item));
	members_walk_init(&w, item, true);
	for (; (status = members_walk_next(&w, &m)) == STATUS_OK; count++)
		reply_bulk(c->reply, m.name);
	if (status != STATUS_NOT_FOUND)
		return status;
	reply_later_end(c->reply, place, '~', count);
	return STATUS_OK;
}

enum status
cmd_smove(struct call *c)
{
	struct timed_member m = { .name = c->argv[3] };
	struct timed_item *from, *to;

	TRY(data_item(c, 1, TIMED_SET, &from));
	if (from->type == TIMED_LEAF) {
		reply_int(c->reply, 0);
		return STATUS_OK;
	}
	TRY(data_item(c, 2, TIMED_SET, &to));
	if (from == to) {
		TRY(timed_members_get(from, &m, 1));
		reply_int(c->reply, m.found);
		return STATUS_OK;
	}
	TRY(timed_members_delete(from, &m, 1));
	reply_int(c->reply, m.found);
	if (!m.found)
		return STATUS_OK;
	TRY(data_changed(c, from, c->argv[1], EVENT_SET, "srem"));
	m = (struct timed_member){ .name = c->argv[3] };
	TRY(timed_members_put(to, TIMED_SET, &m, 1));
	return m.found ? STATUS_OK : txn_changed(c, c->argv[2], EVENT_SET, "sadd");
}

/*
 * Answers the members that were chosen: with a count in the call they are the elements of the array
 * or set that the caller has begun; without, there is one, or null is answered.
 */
static void
reply_chosen(struct call *c, const struct timed_member *m, size_t count)
{
	if (c->argc < 3 && !count)
		reply_null(c->reply);
	for (size_t i = 0; i < count; i++)
		reply_bulk(c->reply, m[i].name);
}

enum status
cmd_spop(struct call *c)
{
	struct timed_member *m;
	struct timed_item *item;
	int64_t wanted = 1;
	size_t count;

	if (c->argc > 3)
		return call_syntax_error(c);
	if (c->argc == 3)
		TRY(call_int_range(c, 2, 0, INT64_MAX, "value is out of range, must be positive",
				   &wanted));
	TRY(data_item(c, 1, TIMED_SET, &item));
	TRY(members_random(c, item, wanted, &m, &count));
	if (count) {
		TRY(timed_members_delete(item, m, count));
		TRY(data_changed(c, item, c->argv[1], EVENT_SET, "spop"));
	}
	if (c->argc == 3)
		reply_set(c->reply, count);
	reply_chosen(c, m, count);
	return STATUS_OK;
}

enum status
cmd_srandmember(struct call *c)
{
	struct timed_member *m;
	struct timed_item *item;
	int64_t wanted = 1;
	size_t count;

	if (c->argc > 3)
		return call_syntax_error(c);
	if (c->argc == 3)
		TRY(call_count(c, 2, MEMBERS_RANDOM_MOST, &wanted));
	TRY(data_item(c, 1, TIMED_SET, &item));
	TRY(members_random(c, item, wanted, &m, &count));
	if (c->argc == 3)
		reply_array(c->reply, count);
	reply_chosen(c, m, count);
	return STATUS_OK;
}

/* ---- Several sets ---- */

struct sets {
	struct timed_item **items;
	size_t count;
};

/* The sets at these keys. */
static enum status
sets_open(struct call *c, size_t from, size_t count, struct sets *ret)
{
	ret->count = count;
	ret->items = arena_alloc(c->arena, count * sizeof(struct timed_item *));
	if (!ret->items)
		return STATUS_LIMIT;
	TRY(txn_items(c, c->argv + from, count, 1, ret->items));
	for (size_t i = 0; i < count; i++) {
		TRY(txn_looked_up(c, ret->items[i]));
		if (ret->items[i]->type != TIMED_SET && ret->items[i]->type != TIMED_LEAF)
			return call_wrong_type(c);
	}
	return STATUS_OK;
}

/* Names that are to be found again: a table in the arena. */
struct names {
	struct arena *arena;
	struct str *slots; /* ptr NULL: free */
	size_t size;
	size_t count;
};

static struct str *
names_slot(const struct names *n, struct str name)
{
	size_t i = hash_keyed(0, name) & (n->size - 1);

	while (n->slots[i].ptr && !str_eq(n->slots[i], name))
		i = (i + 1) & (n->size - 1);
	return &n->slots[i];
}

static enum status
names_grow(struct names *n)
{
	struct names larger = { .arena = n->arena, .size = n->size ? 2 * n->size : 64 };

	larger.slots = arena_zalloc(n->arena, larger.size * sizeof(*larger.slots));
	if (!larger.slots)
		return STATUS_LIMIT;
	for (size_t i = 0; i < n->size; i++)
		if (n->slots[i].ptr)
			*names_slot(&larger, n->slots[i]) = n->slots[i];
	larger.count = n->count;
	*n = larger;
	return STATUS_OK;
}

/* `*ret_new` is a copy of the name, which was not there; or its `ptr` is NULL. */
static enum status
names_add(struct names *n, struct str name, struct str *ret_new)
{
	struct str *slot;

	*ret_new = (struct str){ NULL, 0 };
	if (2 * n->count >= n->size)
		TRY(names_grow(n));
	slot = names_slot(n, name);
	if (slot->ptr)
		return STATUS_OK;
	*slot = arena_dup(n->arena, name);
	if (!slot->ptr)
		return STATUS_LIMIT;
	n->count++;
	*ret_new = *slot;
	return STATUS_OK;
}

struct result {
	struct str *names;
	size_t count;
	size_t cap;
	uint64_t limit; /* 0: none */
};

/* The name is in the call's arena. */
static enum status
result_add(struct call *c, struct result *r, struct str name)
{
	r->names = arena_grow(c->arena, r->names, r->count, &r->cap, sizeof(*r->names));
	if (!r->names || !name.ptr)
		return STATUS_LIMIT;
	r->names[r->count++] = name;
	return STATUS_OK;
}

static enum status
sets_union(struct call *c, const struct sets *s, struct result *ret)
{
	struct names seen = { .arena = c->arena };

	for (size_t i = 0; i < s->count; i++) {
		AUTO(members_walk_end) struct members_walk w = { 0 };
		struct timed_member m;
		enum status status;

		members_walk_init(&w, s->items[i], true);
		while ((status = members_walk_next(&w, &m)) == STATUS_OK) {
			struct str fresh;

			TRY(names_add(&seen, m.name, &fresh));
			if (fresh.ptr)
				TRY(result_add(c, ret, fresh));
		}
		if (status != STATUS_NOT_FOUND)
			return status;
	}
	return STATUS_OK;
}

/* Leaves only those members of a page of another set that this one has, or has not. */
static enum status
sets_sift(struct timed_item *item, struct arena *pages, bool wanted, struct timed_member *members,
	  size_t *count)
{
	size_t left = 0;

	TRY(members_find(item, pages, members, *count));
	for (size_t i = 0; i < *count; i++)
		if (members[i].found == wanted)
			members[left++] = members[i];
	*count = left;
	return STATUS_OK;
}

/* The members of one set that all others have, or none of them: page by page. */
static enum status
sets_filter(struct call *c, const struct sets *s, size_t first, bool wanted, struct result *ret)
{
	AUTO(members_walk_end) struct members_walk w = { 0 };
	struct timed_member *members;
	enum status status;
	size_t count;

	members_walk_init(&w, s->items[first], true);
	while ((status = members_walk_rest(&w, &members, &count)) == STATUS_OK) {
		for (size_t i = 0; i < s->count && count; i++)
			if (i != first)
				TRY(sets_sift(s->items[i], w.pages, wanted, members, &count));
		for (size_t i = 0; i < count; i++) {
			TRY(result_add(c, ret, arena_dup(c->arena, members[i].name)));
			if (ret->limit && ret->count == ret->limit)
				return STATUS_OK;
		}
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
sets_inter(struct call *c, const struct sets *s, struct result *ret)
{
	uint64_t least = UINT64_MAX;
	size_t smallest = 0;

	for (size_t i = 0; i < s->count; i++) {
		uint64_t count;

		if (s->items[i]->type == TIMED_LEAF)
			return STATUS_OK;
		TRY(timed_count(s->items[i], &count));
		if (count < least) {
			least = count;
			smallest = i;
		}
	}
	return sets_filter(c, s, smallest, true, ret);
}

static enum status
sets_combine(struct call *c, const struct sets *s, struct result *ret)
{
	if (call_is(c, HOW_UNION))
		return sets_union(c, s, ret);
	if (call_is(c, HOW_INTER))
		return sets_inter(c, s, ret);
	return sets_filter(c, s, 0, false, ret);
}

static enum status
sets_store(struct call *c, const struct sets *s)
{
	struct result result = { 0 };
	struct timed_member *members;

	TRY(txn_ask(c, c->db, c->argv[1]));
	TRY(sets_combine(c, s, &result));
	members = arena_zalloc(c->arena, (result.count + 1) * sizeof(*members));
	if (!members)
		return STATUS_LIMIT;
	for (size_t i = 0; i < result.count; i++)
		members[i].name = result.names[i];
	return members_store(c, TIMED_SET, members, result.count);
}

/* SUNION, SINTER, SDIFF, and those that store what these answer. */
enum status
cmd_sets(struct call *c)
{
	size_t first = call_is(c, HOW_STORES) ? 2 : 1;
	struct result result = { 0 };
	struct sets s;

	TRY(sets_open(c, first, c->argc - first, &s));
	if (call_is(c, HOW_STORES))
		return sets_store(c, &s);
	TRY(sets_combine(c, &s, &result));
	reply_set(c->reply, result.count);
	for (size_t i = 0; i < result.count; i++)
		reply_bulk(c->reply, result.names[i]);
	return STATUS_OK;
}

enum status
cmd_sintercard(struct call *c)
{
	struct result result = { 0 };
	int64_t count, limit = 0;
	struct sets s;

	TRY(call_int_range(c, 1, 1, INT64_MAX, "numkeys should be greater than 0", &count));
	if ((uint64_t)count > c->argc - 2)
		return call_error(c,
				  STR("ERR Number of keys can't be greater than number of args"));
	for (size_t i = 2 + (size_t)count; i < c->argc; i += 2) {
		if (!call_arg_is(c, i, "limit") || i + 1 == c->argc)
			return call_syntax_error(c);
		TRY(call_int_range(c, i + 1, 0, INT64_MAX, "LIMIT can't be negative", &limit));
	}
	TRY(sets_open(c, 2, (size_t)count, &s));
	result.limit = (uint64_t)limit;
	TRY(sets_inter(c, &s, &result));
	reply_int(c->reply, (int64_t)result.count);
	return STATUS_OK;
}
