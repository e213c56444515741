/*
 * Two commands on one item at the same time: each command of a type runs in a transaction, another
 * one runs and commits before that transaction does. It either conflicts, or it has told and left
 * what it would have, had it begun behind the other one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "items_model.h"
#include "store.h"

enum {
	SAID_BYTES = 64 * 1024,
	LONG_BYTES = 900,             /* of names and elements, so that these lie in a body */
	CHUNKS_BYTES = 3 * 64 * 1024, /* of a value in chunks */
	EXPIRES_MS = ITEMS_START_MS + 1000 * 1000,
	PAGE = 100,
	CLUSTER_STEP = 7, /* where each pair waits for commits: one in so many */
};

struct op;
typedef enum status op_body(struct timed_item *item, const struct op *op, struct buf *said);

/* A command. What it is about is its own business. */
struct op {
	const char *name;
	op_body *run;
	const char *about;
	int64_t n;
	bool any; /* it is for items of any type */
};

#define OP(name, run, about, n)                                                                    \
	{                                                                                          \
		name, run, about, n, false                                                         \
	}

/* An item as the commands find it, and commands for its type. */
struct family {
	const char *name;
	enum timed_type type;
	bool is_long; /* too long for its header */
	op_body *fill;
	const struct op *ops;
	size_t count;
};

/* One command in a transaction, and what it says. */
struct call {
	const struct family *family;
	const struct op *op;
	const char
		*note; /* the key of a value that it leaves, so that what only reads writes, too */
	struct buf said;
};

static struct str
long_name(struct timed_item *item, char first)
{
	char *text = arena_alloc(item->arena, LONG_BYTES);

	memset(text, first, LONG_BYTES);
	return (struct str){ text, LONG_BYTES };
}

static void
say_text(struct buf *said, struct str text)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < text.len; i++)
		sum = sum * 31 + (unsigned char)text.ptr[i];
	buf_printf(said, " %.*s(%zu,%x)", (int)(text.len < 8 ? text.len : 8), text.ptr, text.len,
		   sum);
}

/* ---- What there is ---- */

static enum status
draw_members(struct timed_item *item, struct buf *said)
{
	struct timed_zset_range all = { .to = UINT64_MAX, .limit = SIZE_MAX };
	struct timed_members page = { 0 };

	do {
		TRY(timed_members_page(item, page.next, PAGE, &page));
		for (size_t i = 0; i < page.count; i++) {
			const struct timed_member *m = &page.members[i];

			say_text(said, m->name);
			say_text(said, m->value);
			buf_printf(said, " %g %llu;", m->score, (unsigned long long)m->expires_ms);
		}
	} while (page.next);
	if (item->type != TIMED_ZSET)
		return STATUS_OK;
	TRY(timed_zset_range(item, &all, &page));
	for (size_t i = 0; i < page.count; i++) {
		say_text(said, page.members[i].name);
		buf_printf(said, " %g;", page.members[i].score);
	}
	return STATUS_OK;
}

static enum status
draw_elements(struct timed_item *item, struct buf *said)
{
	struct timed_elements got;

	TRY(timed_list_range(item, 0, PAGE, &got));
	for (size_t i = 0; i < got.count; i++)
		say_text(said, got.elements[i].value);
	return STATUS_OK;
}

static void
say_id(struct buf *said, struct timed_stream_id id)
{
	buf_printf(said, " %llu-%llu", (unsigned long long)id.ms, (unsigned long long)id.seq);
}

static enum status
draw_group(struct timed_item *item, const struct timed_group *group, struct buf *said)
{
	const struct timed_pending_range all = { .to = { UINT64_MAX, UINT64_MAX }, .limit = PAGE };
	struct timed_consumers consumers;
	struct timed_pendings pending;
	uint64_t count;

	buf_printf(said, "\ngroup %.*s read %lld:", STR_ARG(group->name), (long long)group->read);
	say_id(said, group->last);
	TRY(timed_consumers_page(item, group, (struct str){ 0 }, PAGE, &consumers));
	for (size_t i = 0; i < consumers.count; i++) {
		TRY(timed_pending_count(item, group, consumers.consumers[i].name, &count));
		buf_printf(said, " %.*s has %llu,", STR_ARG(consumers.consumers[i].name),
			   (unsigned long long)count);
	}
	TRY(timed_consumers_count(item, group, &count));
	buf_printf(said, " consumers %llu,", (unsigned long long)count);
	TRY(timed_pending_count(item, group, (struct str){ 0 }, &count));
	buf_printf(said, " pending %llu:", (unsigned long long)count);
	TRY(timed_pending_range(item, group, &all, &pending));
	for (size_t i = 0; i < pending.count; i++) {
		say_id(said, pending.entries[i].id);
		buf_printf(said, " %.*s %llu,", STR_ARG(pending.entries[i].consumer),
			   (unsigned long long)pending.entries[i].times);
	}
	return STATUS_OK;
}

static enum status
draw_stream(struct timed_item *item, struct buf *said)
{
	const struct timed_stream_range all = { .to = { UINT64_MAX, UINT64_MAX } };
	struct timed_stream stream;
	struct timed_entries got;
	struct timed_groups groups;

	TRY(timed_stream_get(item, &stream));
	say_id(said, stream.last);
	say_id(said, stream.deleted);
	buf_printf(said, " added %llu:", (unsigned long long)stream.added);
	TRY(timed_stream_range(item, &all, &got));
	for (size_t i = 0; i < got.count; i++)
		say_id(said, got.entries[i].id);
	TRY(timed_groups_page(item, (struct str){ 0 }, PAGE, &groups));
	for (size_t i = 0; i < groups.count; i++)
		TRY(draw_group(item, &groups.groups[i], said));
	return STATUS_OK;
}

static enum status
draw_item(struct timed *t, struct arena *arena, const char *key, struct buf *said)
{
	struct timed_item item;
	struct str value;
	uint64_t count;

	TRY(timed_item_open(t, str_from_cstr(key), arena, &item));
	buf_printf(said, "\n%s: type %d, expires %llu,", key, (int)item.type,
		   (unsigned long long)item.expires_ms);
	if (item.type == TIMED_LEAF)
		return STATUS_OK;
	if (item.type == TIMED_VALUE) {
		TRY(timed_value_get(&item, 0, item.length, &value));
		say_text(said, value);
		return STATUS_OK;
	}
	TRY(timed_count(&item, &count));
	buf_printf(said, " count %llu:", (unsigned long long)count);
	if (item.type == TIMED_LIST)
		return draw_elements(&item, said);
	return item.type == TIMED_STREAM ? draw_stream(&item, said) : draw_members(&item, said);
}

static enum status
draw_step(struct timed *t, struct arena *arena, void *arg)
{
	struct buf *said = arg;

	buf_clear(said);
	TRY(draw_item(t, arena, "item", said));
	return draw_item(t, arena, "other", said);
}

/* ---- Commands for any item ---- */

static enum status
op_delete(struct timed_item *item, const struct op *op, struct buf *said)
{
	(void)op;
	buf_printf(said, "%d", item->type != TIMED_LEAF);
	return timed_item_delete(item);
}

static enum status
op_expire(struct timed_item *item, const struct op *op, struct buf *said)
{
	const struct timed_expiry expiry = { TIMED_EXPIRY_AT, EXPIRES_MS };

	(void)op;
	buf_printf(said, "%d", item->type != TIMED_LEAF);
	return item->type == TIMED_LEAF ? STATUS_OK : timed_item_expire(item, expiry);
}

static enum status
op_set(struct timed_item *item, const struct op *op, struct buf *said)
{
	(void)said;
	return timed_value_set(item, str_from_cstr(op->about), (struct timed_expiry){ 0 });
}

static enum status
op_rename(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_item other;

	(void)op;
	TRY(timed_item_open(item->t, STR("other"), item->arena, &other));
	buf_printf(said, "%d", item->type != TIMED_LEAF);
	return item->type == TIMED_LEAF ? STATUS_OK : timed_item_rename(item, &other);
}

static enum status
op_copy(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_item other;

	(void)op;
	TRY(timed_item_open(item->t, STR("other"), item->arena, &other));
	buf_printf(said, "%d", item->type != TIMED_LEAF);
	return item->type == TIMED_LEAF ? STATUS_OK : timed_item_copy(item, &other);
}

static enum status
op_count(struct timed_item *item, const struct op *op, struct buf *said)
{
	uint64_t count;

	(void)op;
	TRY(timed_count(item, &count));
	buf_printf(said, "%llu", (unsigned long long)count);
	return STATUS_OK;
}

#define OPS_OF_ANY                                                                                 \
	{ "DEL", op_delete, .any = true }, { "EXPIRE", op_expire, .any = true },                   \
		{ "SET", op_set, .about = "v", .any = true },                                      \
		{ "RENAME", op_rename, .any = true },                                              \
	{                                                                                          \
		"COPY", op_copy, .any = true                                                       \
	}

/* ---- Members ---- */

/* The members are called by single letters, but for Z, whose name is long. */
static size_t
members_of(struct timed_item *item, const struct op *op, struct timed_member *members)
{
	size_t count = strlen(op->about);

	for (size_t i = 0; i < count; i++) {
		char c = op->about[i];

		members[i] = (struct timed_member){
			.name = c == 'Z' ? long_name(item, c)
					 : arena_dup(item->arena, (struct str){ &op->about[i], 1 }),
			.value = arena_printf(item->arena, "%lld", (long long)op->n),
			.score = (double)op->n,
		};
	}
	return count;
}

static void
say_members(const struct timed_member *members, size_t count, struct buf *said)
{
	for (size_t i = 0; i < count; i++) {
		say_text(said, members[i].name);
		buf_printf(said, " %d", members[i].found);
		if (members[i].found)
			buf_printf(said, " %g", members[i].old_score);
	}
}

static enum status
op_put(struct timed_item *item, const struct op *op, struct buf *said)
{
	/* Of hashes, sets or sorted sets alone: the type is told by the name. */
	enum timed_type type = op->name[0] == 'H'   ? TIMED_HASH
			       : op->name[0] == 'S' ? TIMED_SET
						    : TIMED_ZSET;
	struct timed_member members[PAGE];
	size_t count = members_of(item, op, members);

	TRY(timed_members_put(item, type, members, count));
	say_members(members, count, said);
	return STATUS_OK;
}

static enum status
op_remove(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_member members[PAGE];
	size_t count = members_of(item, op, members);

	TRY(timed_members_delete(item, members, count));
	say_members(members, count, said);
	return STATUS_OK;
}

static enum status
op_get(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_member members[PAGE];
	size_t count = members_of(item, op, members);

	TRY(timed_members_get(item, members, count));
	for (size_t i = 0; i < count; i++) {
		buf_printf(said, " %d", members[i].found);
		if (members[i].found)
			say_text(said, members[i].value);
		buf_printf(said, " %g", members[i].found ? members[i].score : 0);
	}
	return STATUS_OK;
}

static enum status
op_member_expire(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_member members[PAGE];

	(void)said;
	members_of(item, op, members);
	return timed_member_expire(item, members[0].name, EXPIRES_MS);
}

static enum status
op_all(struct timed_item *item, const struct op *op, struct buf *said)
{
	(void)op;
	return draw_members(item, said);
}

static enum status
op_rank(struct timed_item *item, const struct op *op, struct buf *said)
{
	uint64_t rank;
	double score;

	TRY(timed_zset_rank(item, str_from_cstr(op->about), false, &rank, &score));
	buf_printf(said, "%llu %g", (unsigned long long)rank, score);
	return STATUS_OK;
}

static enum status
op_range_count(struct timed_item *item, const struct op *op, struct buf *said)
{
	const struct timed_zset_range range = {
		.by = TIMED_BY_SCORE,
		.lower = { .kind = TIMED_BOUND_INCLUSIVE, .score = (double)op->n },
		.limit = SIZE_MAX,
	};
	uint64_t count;

	TRY(timed_zset_range_count(item, &range, &count));
	buf_printf(said, "%llu", (unsigned long long)count);
	return STATUS_OK;
}

static enum status
op_zset_pop(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_members got;

	TRY(timed_zset_pop(item, op->n > 0, 1, &got));
	for (size_t i = 0; i < got.count; i++)
		say_text(said, got.members[i].name);
	return STATUS_OK;
}

static const struct op hash_ops[] = {
	OPS_OF_ANY,
	OP("HSET a", op_put, "a", 2),
	OP("HSET of another a", op_put, "a", 3),
	OP("HSET of a new n", op_put, "n", 1),
	OP("HSET of another n", op_put, "nm", 2),
	OP("HDEL a", op_remove, "a", 0),
	OP("HDEL n", op_remove, "n", 0),
	OP("HDEL of all", op_remove, "abZ", 0),
	OP("HGET a n", op_get, "an", 0),
	OP("HGET Z", op_get, "Z", 0),
	OP("HLEN", op_count, NULL, 0),
	OP("HGETALL", op_all, NULL, 0),
	OP("HEXPIRE a", op_member_expire, "a", 0),
};
static const struct op set_ops[] = {
	OPS_OF_ANY,
	OP("SADD a n", op_put, "an", 1),
	OP("SADD n m", op_put, "nm", 1),
	OP("SREM a", op_remove, "a", 0),
	OP("SREM n b", op_remove, "nb", 0),
	OP("SREM of all", op_remove, "abZ", 0),
	OP("SISMEMBER a n", op_get, "an", 0),
	OP("SISMEMBER Z", op_get, "Z", 0),
	OP("SCARD", op_count, NULL, 0),
	OP("SMEMBERS", op_all, NULL, 0),
};
static const struct op zset_ops[] = {
	OPS_OF_ANY,
	OP("ZADD 2 a", op_put, "a", 2),
	OP("ZADD 0 a", op_put, "a", 0),
	OP("ZADD 0 n", op_put, "n", 0),
	OP("ZADD 5 n m", op_put, "nm", 5),
	OP("ZREM a", op_remove, "a", 0),
	OP("ZREM n", op_remove, "n", 0),
	OP("ZREM of all", op_remove, "abZ", 0),
	OP("ZREM Z", op_remove, "Z", 0),
	OP("ZSCORE a n", op_get, "an", 0),
	OP("ZCARD", op_count, NULL, 0),
	OP("ZRANGE", op_all, NULL, 0),
	OP("ZRANK b", op_rank, "b", 0),
	OP("ZCOUNT 2 inf", op_range_count, NULL, 2),
	OP("ZPOPMIN", op_zset_pop, NULL, 0),
	OP("ZPOPMAX", op_zset_pop, NULL, 1),
};

/* ---- Lists ---- */

static enum status
op_push(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct str value = str_from_cstr(op->about);

	(void)said;
	return timed_list_push(item, op->n < 0, &value, 1);
}

static enum status
op_pop(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_elements got;

	TRY(timed_list_pop(item, op->n < 0, (size_t)(op->n < 0 ? -op->n : op->n), &got));
	for (size_t i = 0; i < got.count; i++)
		say_text(said, got.elements[i].value);
	return STATUS_OK;
}

/* What is about the element at that index: it is said, set, removed, or another one put before. */
static enum status
op_element(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_elements got;

	TRY(timed_list_range(item, (uint64_t)op->n, 1, &got));
	if (!got.count) {
		buf_printf(said, "none");
		return STATUS_OK;
	}
	say_text(said, got.elements[0].value);
	if (strcmp(op->about, "set") == 0)
		return timed_list_set(item, &got.elements[0], STR("set"));
	if (strcmp(op->about, "insert") == 0)
		return timed_list_insert(item, &got.elements[0], true, STR("new"));
	if (strcmp(op->about, "remove") == 0)
		return timed_list_remove(item, got.elements, 1);
	return STATUS_OK;
}

static enum status
op_trim(struct timed_item *item, const struct op *op, struct buf *said)
{
	(void)said;
	return timed_list_trim(item, (uint64_t)op->n, 2);
}

static enum status
op_elements(struct timed_item *item, const struct op *op, struct buf *said)
{
	(void)op;
	return draw_elements(item, said);
}

static const struct op list_ops[] = {
	OPS_OF_ANY,
	OP("LPUSH", op_push, "l", -1),
	OP("RPUSH", op_push, "r", 1),
	OP("LPOP", op_pop, NULL, -1),
	OP("RPOP", op_pop, NULL, 1),
	OP("RPOP of all", op_pop, NULL, PAGE),
	OP("LINDEX 0", op_element, "", 0),
	OP("LINDEX 2", op_element, "", 2),
	OP("LSET 0", op_element, "set", 0),
	OP("LSET 2", op_element, "set", 2),
	OP("LINSERT 1", op_element, "insert", 1),
	OP("LREM 0", op_element, "remove", 0),
	OP("LREM 2", op_element, "remove", 2),
	OP("LTRIM 1 2", op_trim, NULL, 1),
	OP("LLEN", op_count, NULL, 0),
	OP("LRANGE", op_elements, NULL, 0),
};

/* ---- Streams ---- */

static enum status
op_add(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct str fields[] = { STR("field"), str_from_cstr(op->about) };
	struct timed_entry entry = { .fields = fields, .count = 2 };
	struct timed_stream stream;

	TRY(timed_stream_get(item, &stream));
	entry.id = (struct timed_stream_id){ stream.last.ms + 1, 0 };
	say_id(said, entry.id);
	return timed_stream_add(item, &stream, &entry);
}

static enum status
op_entry_delete(struct timed_item *item, const struct op *op, struct buf *said)
{
	const struct timed_stream_id id = { (uint64_t)op->n, 0 };
	struct timed_stream stream;
	uint64_t deleted;

	TRY(timed_stream_get(item, &stream));
	TRY(timed_stream_delete(item, &stream, &id, 1, &deleted));
	buf_printf(said, "%llu", (unsigned long long)deleted);
	return STATUS_OK;
}

static enum status
op_stream_trim(struct timed_item *item, const struct op *op, struct buf *said)
{
	const struct timed_stream_trim trim = { .by_length = true, .length = (uint64_t)op->n };
	uint64_t deleted;

	TRY(timed_stream_trim(item, &trim, &deleted));
	buf_printf(said, "%llu", (unsigned long long)deleted);
	return STATUS_OK;
}

static enum status
op_find(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_entry entries[2] = { { .id = { (uint64_t)op->n, 0 } },
					  { .id = { (uint64_t)op->n + 1, 0 } } };

	TRY(timed_stream_find(item, entries, 2));
	buf_printf(said, "%d %d", entries[0].fields != NULL, entries[1].fields != NULL);
	return STATUS_OK;
}

static enum status
op_entries(struct timed_item *item, const struct op *op, struct buf *said)
{
	(void)op;
	return draw_stream(item, said);
}

static enum status
op_group_add(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_group group;
	enum status status = timed_group_get(item, str_from_cstr(op->about), &group);

	buf_printf(said, "%d", status == STATUS_OK);
	if (status != STATUS_NOT_FOUND)
		return status;
	group = (struct timed_group){ .name = str_from_cstr(op->about) };
	return timed_group_add(item, &group);
}

static enum status
op_group_drop(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_group group;

	(void)said;
	TRY(timed_group_get(item, str_from_cstr(op->about), &group));
	return timed_group_drop(item, &group);
}

/* Makes one entry pending for the consumer, whatever it was before. */
static enum status
give(struct timed_item *item, const struct timed_group *group, struct str name,
     struct timed_stream_id id, struct buf *said)
{
	struct timed_pending pending = { .id = id };
	struct timed_consumer consumer;
	enum status status = timed_consumer_get(item, group, name, &consumer);

	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	consumer = (struct timed_consumer){ .name = name, .seen_ms = ITEMS_START_MS };
	TRY(timed_consumer_put(item, group, &consumer, status == STATUS_NOT_FOUND));
	TRY(timed_pending_get(item, group, &pending, 1));
	buf_printf(said, "%d %d", status == STATUS_OK, pending.found);
	pending.times++;
	return timed_pending_give(item, group, name, &pending, 1);
}

/* The next entry that the group has not been given. */
static enum status
op_read_group(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_stream_range range = { .to = { UINT64_MAX, UINT64_MAX }, .limit = 1 };
	struct timed_group group;
	struct timed_entries got;

	TRY(timed_group_get(item, STR("g"), &group));
	range.from = group.last;
	if (!timed_stream_id_next(&range.from))
		return STATUS_OK;
	TRY(timed_stream_range(item, &range, &got));
	if (!got.count)
		return STATUS_OK;
	say_id(said, got.entries[0].id);
	group.last = got.entries[0].id;
	group.read++;
	TRY(timed_group_set(item, &group));
	return give(item, &group, str_from_cstr(op->about), group.last, said);
}

static enum status
op_claim(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_group group;

	TRY(timed_group_get(item, STR("g"), &group));
	return give(item, &group, str_from_cstr(op->about), (struct timed_stream_id){ 1, 0 }, said);
}

static enum status
op_ack(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_pending pending = { .id = { (uint64_t)op->n, 0 } };
	struct timed_group group;

	TRY(timed_group_get(item, STR("g"), &group));
	TRY(timed_pending_get(item, &group, &pending, 1));
	buf_printf(said, "%d", pending.found);
	return pending.found ? timed_pending_drop(item, &group, &pending, 1) : STATUS_OK;
}

static enum status
op_consumer_drop(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_consumer consumer;
	struct timed_group group;
	uint64_t pending;

	TRY(timed_group_get(item, STR("g"), &group));
	TRY(timed_consumer_get(item, &group, str_from_cstr(op->about), &consumer));
	TRY(timed_consumer_drop(item, &group, consumer.name, &pending));
	buf_printf(said, "%llu", (unsigned long long)pending);
	return STATUS_OK;
}

static const struct op stream_ops[] = {
	OPS_OF_ANY,
	OP("XADD", op_add, "1", 0),
	OP("XDEL 1", op_entry_delete, NULL, 1),
	OP("XDEL 3", op_entry_delete, NULL, 3),
	OP("XTRIM 1", op_stream_trim, NULL, 1),
	OP("XTRIM 3", op_stream_trim, NULL, 3),
	OP("finding 1 and 2", op_find, NULL, 1),
	OP("XLEN", op_count, NULL, 0),
	OP("reading all", op_entries, NULL, 0),
	OP("XGROUP CREATE g", op_group_add, "g", 0),
	OP("XGROUP CREATE h", op_group_add, "h", 0),
	OP("XGROUP DESTROY g", op_group_drop, "g", 0),
	OP("XREADGROUP c", op_read_group, "c", 0),
	OP("XREADGROUP n", op_read_group, "n", 0),
	OP("XCLAIM of c", op_claim, "c", 0),
	OP("XCLAIM of d", op_claim, "d", 0),
	OP("XACK 1", op_ack, NULL, 1),
	OP("XACK 2", op_ack, NULL, 2),
	OP("XGROUP DELCONSUMER c", op_consumer_drop, "c", 0),
};

/* ---- Values ---- */

static enum status
op_write(struct timed_item *item, const struct op *op, struct buf *said)
{
	buf_printf(said, "%llu", (unsigned long long)item->length);
	return timed_value_write(item, op->n < 0 ? item->length : (uint64_t)op->n,
				 str_from_cstr(op->about));
}

static enum status
op_read(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct str value;

	if (item->type == TIMED_LEAF)
		return STATUS_OK;
	TRY(timed_value_get(item, (uint64_t)op->n, 8, &value));
	say_text(said, value);
	return STATUS_OK;
}

static enum status
op_replace(struct timed_item *item, const struct op *op, struct buf *said)
{
	(void)said;
	return timed_value_replace(item, str_from_cstr(op->about));
}

static const struct op value_ops[] = {
	OPS_OF_ANY,
	OP("SETRANGE 1", op_write, "x", 1),
	OP("SETRANGE 2", op_write, "y", 2),
	OP("SETRANGE in another chunk", op_write, "x", 64 * 1024 + 1),
	OP("SETRANGE over two chunks", op_write, "12345678", 64 * 1024 - 4),
	OP("SETRANGE behind the end", op_write, "z", CHUNKS_BYTES + 10),
	OP("APPEND", op_write, "a", -1),
	OP("APPEND of another", op_write, "bc", -1),
	OP("GETRANGE 0", op_read, NULL, 0),
	OP("GETRANGE in another chunk", op_read, NULL, 64 * 1024),
	OP("GETRANGE behind the end", op_read, NULL, CHUNKS_BYTES),
	OP("SET KEEPTTL", op_replace, "v", 0),
};

/* ---- Filling ---- */

static enum status
fill_members(struct timed_item *item, const struct op *op, struct buf *said)
{
	const struct op put = OP(op->name, op_put, op->n ? "abZ" : "ab", 1);

	TRY(op_put(item, &put, said));
	for (char c = 'X'; op->n && c <= 'Y'; c++) {
		struct timed_member more = { .name = long_name(item, c), .score = 3 };

		more.value = more.name;
		TRY(timed_members_put(item, item->type, &more, 1));
	}
	return STATUS_OK;
}

static enum status
fill_list(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct str values[] = { STR("0"), STR("1"), STR("2"), STR("3") };

	(void)said;
	if (op->n)
		values[1] = long_name(item, 'Z');
	return timed_list_push(item, false, values, 4);
}

static enum status
fill_stream(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct timed_group group = { .name = STR("g") };
	const struct op add = OP("add", op_add, "0", 0);
	const struct op c = OP("c", op_read_group, "c", 0);
	const struct op d = OP("d", op_read_group, "d", 0);

	(void)op;
	for (int i = 0; i < 4; i++)
		TRY(op_add(item, &add, said));
	TRY(timed_group_add(item, &group));
	TRY(op_read_group(item, &c, said));
	return op_read_group(item, &d, said);
}

static enum status
fill_value(struct timed_item *item, const struct op *op, struct buf *said)
{
	struct str value = STR("a value");

	(void)said;
	if (op->n) {
		char *bytes = arena_alloc(item->arena, CHUNKS_BYTES);

		memset(bytes, 'v', CHUNKS_BYTES);
		value = (struct str){ bytes, CHUNKS_BYTES };
	}
	return timed_value_set(item, value, (struct timed_expiry){ 0 });
}

#define OPS(ops) (ops), sizeof(ops) / sizeof((ops)[0])

static const struct family families[] = {
	{ "H short", TIMED_HASH, false, fill_members, OPS(hash_ops) },
	{ "H long", TIMED_HASH, true, fill_members, OPS(hash_ops) },
	{ "S short", TIMED_SET, false, fill_members, OPS(set_ops) },
	{ "S long", TIMED_SET, true, fill_members, OPS(set_ops) },
	{ "Z short", TIMED_ZSET, false, fill_members, OPS(zset_ops) },
	{ "Z long", TIMED_ZSET, true, fill_members, OPS(zset_ops) },
	{ "L short", TIMED_LIST, false, fill_list, OPS(list_ops) },
	{ "L long", TIMED_LIST, true, fill_list, OPS(list_ops) },
	{ "X", TIMED_STREAM, false, fill_stream, OPS(stream_ops) },
	{ "V short", TIMED_VALUE, false, fill_value, OPS(value_ops) },
	{ "V long", TIMED_VALUE, true, fill_value, OPS(value_ops) },
};

/* ---- Crossing ---- */

static enum status
fill_step(struct timed *t, struct arena *arena, void *arg)
{
	const struct call *c = arg;
	const struct op op = { .name = c->family->name, .n = c->family->is_long };
	AUTO(buf_release) struct buf said = BUF_INIT(SAID_BYTES);
	const char *keys[] = { "other", "item" };
	struct timed_item item;

	for (size_t i = 0; i < 2; i++) {
		TRY(timed_item_open(t, str_from_cstr(keys[i]), arena, &item));
		TRY(timed_item_delete(&item));
	}
	return c->family->fill(&item, &op, &said);
}

static enum status
call_step(struct timed *t, struct arena *arena, void *arg)
{
	struct call *c = arg;
	struct timed_item item, note;
	enum status status = STATUS_OK;

	buf_clear(&c->said);
	TRY(timed_item_open(t, STR("item"), arena, &item));
	if (!c->op->any && item.type != TIMED_LEAF && item.type != c->family->type)
		buf_printf(&c->said, "of another type");
	else
		status = c->op->run(&item, c->op, &c->said);
	if (status == STATUS_NOT_FOUND)
		buf_printf(&c->said, "not found");
	else if (status != STATUS_OK)
		return status;
	TRY(timed_item_open(t, str_from_cstr(c->note), arena, &note));
	return timed_value_set(&note, buf_str(&c->said), (struct timed_expiry){ 0 });
}

/* True if the second one, which the first one comes before, has committed. */
static bool
cross(struct items *f, struct call *first, struct call *second)
{
	struct kv_tx *tx;
	enum status status;

	items_must(f, fill_step, first);
	arena_clear(f->arena);
	tx = items_open(f, false, call_step, second);
	items_must(f, call_step, first);
	status = items_commit(tx);
	assert_true(status == STATUS_OK || status == STATUS_TX_CONFLICT);
	return status == STATUS_OK;
}

static void
cross_family(struct items *f, const struct family *family)
{
	struct call first = { .family = family, .note = "first", .said = BUF_INIT(SAID_BYTES) };
	struct call second = { .family = family, .note = "second", .said = BUF_INIT(SAID_BYTES) };
	struct buf got = BUF_INIT(SAID_BYTES), wanted = BUF_INIT(SAID_BYTES);
	size_t step = test_store_is_cluster() ? CLUSTER_STEP : 1;
	unsigned committed = 0;

	for (size_t i = 0; i < family->count * family->count; i += step) {
		first.op = &family->ops[i / family->count];
		second.op = &family->ops[i % family->count];
		if (!cross(f, &first, &second))
			continue;
		committed++;
		items_must(f, draw_step, &got);
		buf_printf(&got, "\nsaid %.*s", STR_ARG(buf_str(&second.said)));
		items_must(f, fill_step, &first);
		items_must(f, call_step, &first);
		items_must(f, call_step, &second);
		items_must(f, draw_step, &wanted);
		buf_printf(&wanted, "\nsaid %.*s", STR_ARG(buf_str(&second.said)));
		if (!str_eq(buf_str(&got), buf_str(&wanted)))
			fail_msg("%s: %s, with %s before its commit:%.*s\nis not%.*s", family->name,
				 second.op->name, first.op->name, STR_ARG(buf_str(&got)),
				 STR_ARG(buf_str(&wanted)));
	}
	/* That all conflict would be right, and of no use. */
	assert_true(committed > 0);
	items_verify(f);
	buf_release(&first.said);
	buf_release(&second.said);
	buf_release(&got);
	buf_release(&wanted);
}

static void
commands_of_one_item_are_one_after_the_other(void **state)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		cross_family(*state, &families[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(commands_of_one_item_are_one_after_the_other),
	};

	return cmocka_run_group_tests_name("crossed", tests, NULL, NULL);
}
