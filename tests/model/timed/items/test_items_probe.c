/*
 * What operations on items answer when a call of the store fails, when their memory ends and when
 * what they read is damaged; and by what they conflict (probe.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_world.h"
#include "model/timed/items/group.h"
#include "model/timed/items/item_int.h"

enum {
	MEMBERS = 150, /* of a sorted set, so that it has blocks */
	ELEMENTS = 150,
	ENTRIES = 40,
	GROUPS = 20,
	LONG_BYTES = TIMED_INLINE_BYTES + 100, /* of a value in chunks */
	PIECES_BYTES = TIMED_RECORD_BYTES + 100,
};

#define COUNT(ops) (sizeof(ops) / sizeof((ops)[0]))

#define OF(key, name)                                                                              \
	static enum status name##_of(struct probe *p)                                              \
	{                                                                                          \
		return world_item(p, key, name);                                                   \
	}

static void
say(struct probe *p, struct str s)
{
	buf_append_str(&p->said, s);
	buf_append_byte(&p->said, '|');
}

static const struct timed_expiry never = { TIMED_EXPIRY_NEVER, 0 };
static const struct timed_expiry later = { TIMED_EXPIRY_AFTER, 9000 };

/* ---- Any item ---- */

static enum status
item_open(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)t;
	buf_printf(&p->said, "%d %llu %llu %llu", item->type, (unsigned long long)item->expires_ms,
		   (unsigned long long)item->write_us, (unsigned long long)item->length);
	return STATUS_OK;
}

static enum status
item_delete(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)p;
	(void)t;
	return timed_item_delete(item);
}

static enum status
item_sweep(struct probe *p, struct timed *t, struct timed_item *item)
{
	enum timed_swept swept;

	(void)t;
	TRY(timed_item_sweep(item, &swept));
	buf_printf(&p->said, "%d", swept);
	return STATUS_OK;
}

static enum status
item_expire(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)p;
	(void)t;
	return timed_item_expire(item, later);
}

static enum status
item_rename(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_item to;

	TRY(timed_item_open(t, STR("s"), p->arena, &to));
	return timed_item_rename(item, &to);
}

static enum status
item_copy(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_item to;

	TRY(timed_item_open(t, STR("new"), p->arena, &to));
	return timed_item_copy(item, &to);
}

static enum status
item_version(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct kv_future *asked;
	struct str version;

	(void)t;
	TRY(timed_item_version_ask(item, &asked));
	TRY(timed_item_version(item, asked, &version));
	say(p, version);
	return STATUS_OK;
}

static enum status
item_watch(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct kv_future *watches[TIMED_WATCHES];

	(void)p;
	(void)t;
	TRY(timed_item_watch(item, watches));
	for (size_t i = 0; i < TIMED_WATCHES; i++)
		if (watches[i])
			kv_future_free(watches[i]);
	return STATUS_OK;
}

static enum status
item_absent(struct probe *p, struct timed *t, struct timed_item *item)
{
	return item_open(p, t, item);
}

OF("v", item_open)
OF("nowhere", item_absent)
OF("z", item_delete)
OF("due", item_sweep)
OF("h", item_expire)
OF("l", item_rename)
OF("z", item_copy)
OF("z", item_version)
OF("z", item_watch)

static enum status
copy_stream_of(struct probe *p)
{
	return world_item(p, "x", item_copy);
}

static enum status
copy_value_of(struct probe *p)
{
	return world_item(p, "long", item_copy);
}

static enum status
copy_hash_of(struct probe *p)
{
	return world_item(p, "h", item_copy);
}

static enum status
page(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_items got;

	(void)item;
	TRY(timed_items_page(t, 0, 100, p->arena, &got));
	for (size_t i = 0; i < got.count; i++)
		say(p, got.items[i].key);
	return STATUS_OK;
}

static enum status
items_count(struct probe *p, struct timed *t, struct timed_item *item)
{
	uint64_t n;

	(void)item;
	TRY(timed_items_count(t, &n));
	buf_printf(&p->said, "%llu", (unsigned long long)n);
	return STATUS_OK;
}

static enum status
history_set(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)p;
	(void)item;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = 100 });
}

OF(NULL, page)
OF(NULL, items_count)
OF(NULL, history_set)

static const struct probe_op of_any[] = {
	{ "open", item_open_of, "ok, conflicts 1 0+0; 1: C/O~ 2: C/CNC~C~CO" },
	{ "open what is not there", item_absent_of, "ok, conflicts 1 0+0; 1: C/O" },
	{ "delete", item_delete_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOC" },
	{ "sweep", item_sweep_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOC~OCO" },
	{ "expire", item_expire_of,
	  "ok, conflicts 3 0+0; despite 4=ok; 1: C/O 2: C/CNCOCOCOC 3: O/ 4: O/O" },
	{ "rename", item_rename_of, "ok, conflicts 2 0+0; 1: C/O 2-3: C/CNCOCOC" },
	{ "copy a sorted set", item_copy_of,
	  "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOCOC 3-12: CO/CNCOCO" },
	{ "copy a stream", copy_stream_of,
	  "ok, conflicts 5 0+0; 1: C/O 2: C/CNCOC 3-12: CO/CNCOCO" },
	{ "copy a value", copy_value_of, "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOCOCO 3: O/O" },
	{ "copy a hash", copy_hash_of,
	  "ok, conflicts 6 0+0; despite 4=ok; 1: C/O 2: C/CNCOCOCOC 3: O/ 4: O/O 5: "
	  "CO/CNCOCOCO 6: CO/CNCOCO 7: C/CNCOCOCOC 8: CO/CNCOCOCO 9-10: O/O" },
	{ "version", item_version_of, "ok, conflicts 2 0+0; 1: C/O 2: C/CNC~C~C 3: ~/~" },
	{ "watch", item_watch_of, "ok, conflicts 1 0+0; despite 3=ok; 1: C/O 2: C/CNCOCOC" },
	{ "page", page_of,
	  "ok, conflicts 3 0+0; despite 4=ok; 1: C/O~ 2: C/CNCOC~OCO 3: C/CNCOCOCO 4-6: "
	  "C/CNCOCOC 7: C/CNCOCOCO 8: C/CNCOC~C~C 9: C/CNCOCOC 10: O/ 11: O/O" },
	{ "count all", items_count_of, "ok, conflicts 1 0+0; 1-7: C/~" },
	{ "set a history", history_set_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCNC0COCOC" },
};

/* ---- Values ---- */

static enum status
value_set(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)p;
	(void)t;
	return timed_value_set(item, STR("new"), later);
}

static enum status
value_replace(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)p;
	(void)t;
	return timed_value_replace(item, STR("new"));
}

static struct str
long_text(struct arena *arena, size_t bytes)
{
	char *text = arena_bytes(arena, bytes);

	for (size_t i = 0; text && i < bytes; i++)
		text[i] = (char)('a' + i % 26);
	return text ? str_of(text, bytes) : (struct str){ 0 };
}

static enum status
value_set_long(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)t;
	return timed_value_set(item, long_text(((struct world *)p->world)->arena, LONG_BYTES),
			       never);
}

static enum status
value_get(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct str got;

	(void)t;
	TRY(timed_value_get(item, 10, LONG_BYTES, &got));
	say(p, got);
	return STATUS_OK;
}

static enum status
value_write(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)p;
	(void)t;
	return timed_value_write(item, LONG_BYTES - 2, STR("0123456789"));
}

OF("v", value_set)
OF("h", value_replace)
OF("new", value_set_long)
OF("long", value_get)
OF("long", value_write)

static enum status
value_grow_of(struct probe *p)
{
	return world_item(p, "v", value_write);
}

static const struct probe_op of_values[] = {
	{ "set a value", value_set_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOCO" },
	{ "replace a hash", value_replace_of,
	  "ok, conflicts 3 0+0; despite 4=ok; 1: C/O 2: C/CNCOCOCOC 3: O/ 4: O/O" },
	{ "set in chunks", value_set_long_of, "ok, conflicts 1 0+0; 1: C/O" },
	{ "get from chunks", value_get_of, "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC~C~ 3: ~/O~" },
	{ "write into chunks", value_write_of, "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOCOCO 3: O/O" },
	{ "grow into chunks", value_grow_of, "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOCOCO 3: O/O" },
};

/* ---- Members ---- */

static enum status
say_members(struct probe *p, const struct timed_member *members, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_printf(&p->said, "%d %g %llu %g", members[i].found, members[i].score,
			   (unsigned long long)members[i].expires_ms, members[i].old_score);
		say(p, members[i].name);
		say(p, members[i].value);
	}
	return STATUS_OK;
}

static enum status
members_count(struct probe *p, struct timed *t, struct timed_item *item)
{
	uint64_t n;

	(void)t;
	TRY(timed_count(item, &n));
	buf_printf(&p->said, "%llu", (unsigned long long)n);
	return STATUS_OK;
}

static enum status
members_get(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_member members[4] = {
		{ .name = STR("a") },
		{ .name = STR("nobody") },
		{ .name = STR("pieces") },
		{ .name = STR("soon") },
	};

	(void)t;
	TRY(timed_members_get(item, members, 4));
	return say_members(p, members, 4);
}

static enum status
hash_put(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_member members[] = {
		{ .name = STR("a"), .value = STR("other") },
		{ .name = STR("new"), .value = STR("n"), .expires_ms = LATER_MS + 700 },
		{ .name = STR("soon"), .value = STR("not so") },
	};

	(void)t;
	TRY(timed_members_put(item, TIMED_HASH, members, 3));
	return say_members(p, members, 3);
}

static enum status
members_delete(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_member members[] = { { .name = STR("a") },
					  { .name = STR("soon") },
					  { .name = STR("nobody") } };

	(void)t;
	TRY(timed_members_delete(item, members, 3));
	return say_members(p, members, 3);
}

static enum status
member_expire(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)p;
	(void)t;
	return timed_member_expire(item, STR("a"), LATER_MS + 100);
}

static enum status
members_page(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_members got;

	(void)t;
	TRY(timed_members_page(item, 0, 100, &got));
	return say_members(p, got.members, got.count);
}

static enum status
set_put(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_member members[] = { { .name = STR("a") }, { .name = STR("new") } };

	(void)t;
	TRY(timed_members_put(item, TIMED_SET, members, 2));
	return say_members(p, members, 2);
}

static enum status
set_delete_all(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_member members[] = { { .name = STR("a") }, { .name = STR("b") } };

	(void)t;
	TRY(timed_members_delete(item, members, 2));
	return say_members(p, members, 2);
}

OF("h", members_count)
OF("h", members_get)
OF("h", hash_put)
OF("h", members_delete)
OF("h", member_expire)
OF("h", members_page)
OF("s", set_put)
OF("s", set_delete_all)

static const struct probe_op of_members[] = {
	{ "count members", members_count_of,
	  "ok, conflicts 5 0+0; despite 4=ok; 1: C/O~ 2: C/CNCOC~C~C 3: O/ 4: O/O 5: C/~ "
	  "6: O/" },
	{ "get members", members_get_of,
	  "ok, conflicts 8 0+0; despite 4=ok; 1: C/O~ 2: C/CNCOC~C~C 3: O/ 4: O/O 5: "
	  "C~/CNCOC~ 6: C/CNCOC 7: C~/CNCOC~C~ 8: C/~" },
	{ "put in a hash", hash_put_of,
	  "ok, conflicts 6 0+0; despite 4=ok; 1: C/O~ 2: C/CNCOC~C~C 3: O/ 4: O/O 5: "
	  "CO/CNCOCO 6: CO/CNCOCOCO" },
	{ "delete members", members_delete_of,
	  "ok, conflicts 10 0+0; despite 4=ok; 1: C/O~ 2: C/CNCOC~C~C 3: O/ 4: O/O 5: "
	  "CO/CNCOCO 6: CO/CNCOC~CO 7: CO/CNCOCOCO 8-9: C/O" },
	{ "expire a member", member_expire_of,
	  "ok, conflicts 5 0+0; despite 4=ok; 1: C/O 2: C/CNCOC0C0C 3: O/ 4: O/O 5-6: "
	  "CO/CNCOCO" },
	{ "page of members", members_page_of,
	  "ok, conflicts 5 0+0; despite 4=ok; 1: C/O~ 2: C/CNCOC~C~C 3: O/ 4: O/O 5: "
	  "CO/CNCOC~OCO 6: C~/CNCOC~ 7: C/CNCOC 8: C~/CNCOC~C~ 9: C/~" },
	{ "put in a set", set_put_of, "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOC~C 3: C/CNCOC" },
	{ "delete a set", set_delete_all_of,
	  "ok, conflicts 3 1+0; 1: C/O 2: C/CNCOC~C 3-4: C/CNCOC" },
};

/* ---- Sorted sets ---- */

static enum status
zset_put(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_member members[] = { { .name = STR("m007"), .score = 70.5 },
					  { .name = STR("new"), .score = 3.5 } };

	(void)t;
	TRY(timed_members_put(item, TIMED_ZSET, members, 2));
	return say_members(p, members, 2);
}

static enum status
zset_delete(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_member members[] = { { .name = STR("m000") }, { .name = STR("m100") } };

	(void)t;
	TRY(timed_members_delete(item, members, 2));
	return say_members(p, members, 2);
}

static enum status
zset_pop(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_members got;

	(void)t;
	TRY(timed_zset_pop(item, false, 2, &got));
	TRY(say_members(p, got.members, got.count));
	TRY(timed_zset_pop(item, true, 2, &got));
	return say_members(p, got.members, got.count);
}

static enum status
zset_by_rank(struct probe *p, struct timed *t, struct timed_item *item)
{
	const struct timed_zset_range range = { .from = 98, .to = 101, .limit = SIZE_MAX };
	struct timed_members got;

	(void)t;
	TRY(timed_zset_range(item, &range, &got));
	return say_members(p, got.members, got.count);
}

static enum status
zset_by_score(struct probe *p, struct timed *t, struct timed_item *item)
{
	const struct timed_zset_range range = {
		.by = TIMED_BY_SCORE,
		.lower = { TIMED_BOUND_INCLUSIVE, 40, STR("") },
		.upper = { TIMED_BOUND_EXCLUSIVE, 90, STR("") },
		.reverse = true,
		.skip = 40,
		.limit = 3,
	};
	struct timed_members got;
	uint64_t n;

	(void)t;
	TRY(timed_zset_range(item, &range, &got));
	TRY(timed_zset_range_count(item, &range, &n));
	buf_printf(&p->said, "%llu", (unsigned long long)n);
	return say_members(p, got.members, got.count);
}

static enum status
zset_rank(struct probe *p, struct timed *t, struct timed_item *item)
{
	uint64_t rank;
	double score;

	(void)t;
	TRY(timed_zset_rank(item, STR("m100"), false, &rank, &score));
	buf_printf(&p->said, "%llu %g", (unsigned long long)rank, score);
	return STATUS_OK;
}

OF("z", zset_put)
OF("z", zset_delete)
OF("z", zset_pop)
OF("z", zset_by_rank)
OF("z", zset_by_score)
OF("z", zset_rank)

static const struct probe_op of_zsets[] = {
	{ "put in a sorted set", zset_put_of,
	  "ok, conflicts 3 5+0; 1: C/O 2: C/CNCOC 3: C/CNCOC~O 4-6: C/O" },
	{ "delete from a sorted set", zset_delete_of,
	  "ok, conflicts 3 4+0; 1: C/O 2: C/CNCOC~C 3: C/CNCOC~ 4: C/CNCOC~O 5-6: C/O 7: "
	  "O/O" },
	{ "pop from a sorted set", zset_pop_of,
	  "ok, conflicts 3 4+0; 1: C/O 2: C/CNCOC~C 3: C/~ 4: C/~O 5: C/O 6-7: C/~O 8-12: C/O" },
	{ "by rank", zset_by_rank_of,
	  "ok, conflicts 5 0+0; 1: C/O 2: C/CNCOC~C 3-9: C/O 10-12: O/O" },
	{ "by score", zset_by_score_of,
	  "ok, conflicts 12 0+0; 1: C/O 2: C/CNCOC 3: C/O 4-12: O/O" },
	{ "rank", zset_rank_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC0C 3: C/CNCOC~ 4: C/O 5-12: O/O" },
};

/* ---- Lists ---- */

static enum status
list_push(struct probe *p, struct timed *t, struct timed_item *item)
{
	const struct str values[] = { STR("one"), STR("two") };

	(void)p;
	(void)t;
	TRY(timed_list_push(item, true, values, 2));
	return timed_list_push(item, false, values, 2);
}

static enum status
say_elements(struct probe *p, const struct timed_elements *got)
{
	for (size_t i = 0; i < got->count; i++)
		say(p, got->elements[i].value);
	return STATUS_OK;
}

static enum status
list_pop(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_elements got;

	(void)t;
	TRY(timed_list_pop(item, true, 3, &got));
	(void)say_elements(p, &got);
	TRY(timed_list_pop(item, false, 3, &got));
	return say_elements(p, &got);
}

static enum status
list_range(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_elements got;

	(void)t;
	TRY(timed_list_range(item, 97, 4, &got));
	return say_elements(p, &got);
}

static void
say_value(void *p, struct str value)
{
	say(p, value);
}

static enum status
list_values(struct probe *p, struct timed *t, struct timed_item *item)
{
	uint64_t count;

	(void)t;
	return timed_list_values(item, 97, 4, &(struct timed_values){ say_value, p }, &count);
}

static enum status
list_set(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_elements got;

	(void)p;
	(void)t;
	TRY(timed_list_range(item, 40, 1, &got));
	return got.count ? timed_list_set(item, got.elements, STR("other")) : STATUS_OK;
}

static enum status
list_insert(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_elements got;

	(void)p;
	(void)t;
	TRY(timed_list_range(item, 40, 1, &got));
	return got.count ? timed_list_insert(item, got.elements, true, STR("between")) : STATUS_OK;
}

static enum status
list_remove(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_elements got;

	(void)p;
	(void)t;
	TRY(timed_list_range(item, 30, 4, &got));
	return timed_list_remove(item, got.elements, got.count);
}

static enum status
list_trim(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)p;
	(void)t;
	return timed_list_trim(item, 3, 140);
}

OF("l", list_push)
OF("l", list_pop)
OF("l", list_range)
OF("l", list_values)
OF("l", list_set)
OF("l", list_insert)
OF("l", list_remove)
OF("l", list_trim)

static const struct probe_op of_lists[] = {
	{ "push to a list", list_push_of,
	  "ok, conflicts 3 2+0; 1: C/O 2: C/CNCOC 3: "
	  "OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO 4: "
	  "OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO 5: C/O" },
	{ "pop from a list", list_pop_of,
	  "ok, conflicts 3 4+0; 1: C/O 2: C/CNCOC~C 3: "
	  "C~COCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/CNCOC~C~C~COCOCOCOCOCOCOCOCOCOCOCOCOCOCO "
	  "4: O/O 5: "
	  "C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C/CNCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC~C~C~ 6: O/O "
	  "7: C/O" },
	{ "range of a list", list_range_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC 3-4: C/O 5: O/O 6-7: "
	  "~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C/"
	  "~COCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO "
	  "8: "
	  "~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~COCOCOC/"
	  "~COCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC~C~C~C~COCOCO "
	  "9-10: O/O" },
	{ "values of a list", list_values_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC 3-4: C/O 5: O/O 6-7: "
	  "~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C/"
	  "~COCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO "
	  "8: "
	  "~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~C~COCOCOC/"
	  "~COCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC~C~C~C~COCOCO "
	  "9-10: O/O" },
	{ "set in a list", list_set_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC 3-4: C/O 5: O/O 6: "
	  "OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/"
	  "OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO "
	  "7-8: O/O" },
	{ "insert in a list", list_insert_of,
	  "ok, conflicts 5 2+0; 1: C/O 2: C/CNCOC 3-4: C/O 5: O/O 6: "
	  "OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/"
	  "OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO "
	  "7-8: O/O 9: "
	  "COCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/"
	  "CNCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO "
	  "10: C/O" },
	{ "remove from a list", list_remove_of,
	  "ok, conflicts 4 8+0; 1: C/O 2: C/CNCOC 3-4: C/O 5: O/O 6: "
	  "OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/"
	  "OCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO "
	  "7-8: O/O 9-12: C/O" },
	{ "trim a list", list_trim_of,
	  "ok, conflicts 4 5+0; 1: C/O 2: C/CNCOCOC 3: C/O 4: "
	  "COCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/CNCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO "
	  "5: O/O 6: "
	  "COCOCOCOCOCOCOCOCOCOCOCOCOCOCOC/CNCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCOCO 7: O/O "
	  "8: C/O" },
};

/* ---- Streams ---- */

static enum status
stream_get(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_stream stream;

	(void)t;
	TRY(timed_stream_get(item, &stream));
	buf_printf(&p->said, "%llu %llu", (unsigned long long)stream.last.ms,
		   (unsigned long long)stream.added);
	return STATUS_OK;
}

static enum status
stream_add(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct str fields[] = { STR("f"), STR("value") };
	const struct timed_entry entry = { { 1000, 1 }, fields, 2 };
	struct timed_stream stream;

	(void)p;
	(void)t;
	TRY(timed_stream_get(item, &stream));
	return timed_stream_add(item, &stream, &entry);
}

static enum status
stream_range(struct probe *p, struct timed *t, struct timed_item *item)
{
	const struct timed_stream_range range = { { 3, 0 }, { 9, 0 }, true, 4 };
	struct timed_entries got;

	(void)t;
	TRY(timed_stream_range(item, &range, &got));
	for (size_t i = 0; i < got.count; i++) {
		buf_printf(&p->said, "%llu", (unsigned long long)got.entries[i].id.ms);
		for (size_t k = 0; k < got.entries[i].count; k++)
			say(p, got.entries[i].fields[k]);
	}
	return STATUS_OK;
}

static enum status
stream_delete(struct probe *p, struct timed *t, struct timed_item *item)
{
	const struct timed_stream_id ids[] = { { 5, 0 }, { 500, 0 } };
	struct timed_stream stream;
	uint64_t deleted;

	(void)t;
	TRY(timed_stream_get(item, &stream));
	TRY(timed_stream_delete(item, &stream, ids, 2, &deleted));
	buf_printf(&p->said, "%llu", (unsigned long long)deleted);
	return STATUS_OK;
}

static enum status
stream_trim(struct probe *p, struct timed *t, struct timed_item *item)
{
	const struct timed_stream_trim trim = { .by_length = true, .length = ENTRIES - 4 };
	uint64_t deleted;

	(void)t;
	TRY(timed_stream_trim(item, &trim, &deleted));
	buf_printf(&p->said, "%llu", (unsigned long long)deleted);
	return STATUS_OK;
}

/* Of more groups than have room at first where a page is kept. */
static enum status
stream_groups(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_groups page;

	(void)t;
	for (size_t i = 0; i < GROUPS; i++) {
		struct timed_group group = { .name = arena_printf(p->arena, "g%02zu", i),
					     .read = TIMED_GROUP_UNREAD };

		if (!group.name.ptr)
			return STATUS_LIMIT;
		TRY(timed_group_add(item, &group));
	}
	TRY(timed_groups_page(item, (struct str){ 0 }, GROUPS, &page));
	for (size_t i = 0; i < page.count; i++)
		say(p, page.groups[i].name);
	return STATUS_OK;
}

/* Of a group beside whose key another one goes on, which nobody has written. */
static enum status
stream_stray_group(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_group group = { .name = STR("g"), .read = TIMED_GROUP_UNREAD };
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	struct timed_groups page;

	(void)p;
	TRY(timed_group_add(item, &group));
	buf_append_str(&key, item->body);
	tuple_put_u64(&key, TIMED_PART_GROUP);
	tuple_put_bytes(&key, group.name);
	tuple_put_u64(&key, 1);
	timed_group_record_put(&group, &value);
	TRY(buf_status(&key));
	TRY(buf_status(&value));
	TRY(timed_data_set(t, buf_str(&key), buf_str(&value)));
	return timed_groups_page(item, (struct str){ 0 }, GROUPS, &page);
}

static enum status
stream_find(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_entry entries[] = { { .id = { 5, 0 } }, { .id = { 500, 0 } } };

	(void)t;
	TRY(timed_stream_find(item, entries, COUNT(entries)));
	for (size_t i = 0; i < COUNT(entries); i++) {
		buf_printf(&p->said, "%zu", entries[i].count);
		for (size_t k = 0; k < entries[i].count; k++)
			say(p, entries[i].fields[k]);
	}
	return STATUS_OK;
}

/* Also of a stream that is not there. */
static enum status
stream_find_none(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_entry entry = { .id = { 5, 0 }, .count = 1 };

	(void)p;
	(void)t;
	TRY(timed_stream_find(item, &entry, 1));
	assert_int_equal(entry.count, 0);
	assert_null(entry.fields);
	return STATUS_OK;
}

OF("x", stream_get)
OF("x", stream_find)
OF("none", stream_find_none)
OF("x", stream_add)
OF("x", stream_range)
OF("x", stream_delete)
OF("x", stream_trim)
OF("x", stream_groups)
OF("x", stream_stray_group)

static const struct probe_op of_streams[] = {
	{ "get a stream", stream_get_of, "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC 3: C/~O~" },
	{ "find in a stream", stream_find_of,
	  "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOC~C 3: C/CNCOC~" },
	{ "find in none", stream_find_none_of, "ok, conflicts 1 0+0; 1: C/O" },
	{ "add to a stream", stream_add_of, "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC 3: C/O" },
	{ "range of a stream", stream_range_of,
	  "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOC~C 3-6: C/CNCOC~" },
	{ "delete from a stream", stream_delete_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOC 3: C/O 4: CO/CNCOCO" },
	{ "trim a stream", stream_trim_of,
	  "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOC~C 3: C/~ 4-7: CO/CNCOCO" },
	{ "groups of a stream", stream_groups_of,
	  "ok, conflicts 2 0+0; 1: C/O 2: C/CNCOCOC 3-5: C/CNCOC 6-7: C/CNCOCOC 8-12: C/CNCOC" },
};

static const struct probe_op of_strays[] = {
	{ "a stray group of a stream", stream_stray_group_of,
	  "corrupt, conflicts 2 0+0; 1: O/O 2-3: O/ONO 4: O/O" },
};

static const struct probe_op checks[] = {
	{ "verify", probe_verify,
	  "ok, conflicts 0 0+0; 1: ~/~O 2: ~/~O~O~ 3: ~/~O 4: ~/O 5: ~/~O~O 6-12: "
	  "~O~/~O~O~O 13: ~/~O~ 14-17: ~/~O~O 18: ~/~O~ 19-20: ~/~O~O 21: ~/~O~ 22-23: O/ "
	  "24-29: O/O 30-36: ~/~ 37: ~O/~O~O~O 38: ~O/~O~O 39: ~/~O~O~O~O~ 40: ~O/~O~O~O "
	  "41: ~/~ 42: ~/O 43: ~O/O 44-45: O/ 46: ~/~ 47: ~/O 48-49: ~/~O~ 50: ~/~ 51-52: "
	  "~/O 53: O/O 54: ~/O 55: ~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 56-57: "
	  "~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 58: "
	  "~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 59: "
	  "~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 60: "
	  "~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 61-64: ~/~ 65: ~/O 66-215: ~O/~O~O "
	  "216-365: ~/O 366-376: ~/~ 377-378: ~/O 379-418: ~O/~O~O 419: ~/~ 420-421: ~/O "
	  "422: ~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 423-424: "
	  "~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 425: "
	  "~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 426: "
	  "~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 427: "
	  "~/~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O~O 428-577: O/O 578-581: O/ 582: ~O/O "
	  "583-584: ~/O 585-586: O/O" },
};

/* ---- Members in the header ---- */

static enum status
packed_count_of(struct probe *p)
{
	return world_item(p, "ps", members_count);
}

static enum status
packed_get_of(struct probe *p)
{
	return world_item(p, "ph", members_get);
}

static enum status
packed_page_of(struct probe *p)
{
	return world_item(p, "ph", members_page);
}

static enum status
packed_new_of(struct probe *p)
{
	return world_item(p, "new", set_put);
}

static enum status
packed_put_of(struct probe *p)
{
	return world_item(p, "ps", set_put);
}

static enum status
packed_delete_of(struct probe *p)
{
	return world_item(p, "ph", members_delete);
}

static enum status
packed_delete_all_of(struct probe *p)
{
	return world_item(p, "ps", set_delete_all);
}

/* One of the members shall expire. */
static enum status
packed_unfold_of(struct probe *p)
{
	return world_item(p, "ph", hash_put);
}

static const struct probe_op of_packed[] = {
	{ "count members in the header", packed_count_of,
	  "ok, conflicts 1 0+0; 1: C/O 2: CO/CNCOCO" },
	{ "get members in the header", packed_get_of,
	  "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOCOCOC~C~C~" },
	{ "read all in the header", packed_page_of,
	  "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOCOC~COC~OC~" },
	{ "put in a new header", packed_new_of, "ok, conflicts 1 0+0; 1: C/O" },
	{ "put in the header", packed_put_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOCOCO~C~" },
	{ "delete from the header", packed_delete_of,
	  "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOCOCOC~C~O~C~O" },
	{ "delete all in the header", packed_delete_all_of,
	  "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCOC~C~C~" },
	{ "move into a body", packed_unfold_of,
	  "ok, conflicts 4 0+0; 1: C/O 2: C/CNCOCOCOCOCOC~OC~O 3-4: CO/CNCOCO" },
};

static enum status
fill_packed(struct timed *t, struct world *w)
{
	struct timed_member pair[] = { { .name = STR("a") }, { .name = STR("b") } };
	struct timed_member values[] = { { .name = STR("a"), .value = STR("1") },
					 { .name = STR("b"), .value = STR("2") },
					 { .name = STR("soon"), .value = STR("3") } };
	struct timed_item item;

	TRY(timed_item_open(t, STR("ps"), w->arena, &item));
	TRY(timed_members_put(&item, TIMED_SET, pair, COUNT(pair)));
	TRY(timed_item_open(t, STR("ph"), w->arena, &item));
	return timed_members_put(&item, TIMED_HASH, values, COUNT(values));
}

/* ---- The world ---- */

static enum status
fill_hash(struct timed *t, struct world *w)
{
	struct timed_member members[] = {
		{ .name = STR("a"), .value = STR("1") },
		{ .name = STR("b"), .value = STR("2"), .expires_ms = START_MS + 100 },
		{ .name = STR("soon"), .value = STR("3"), .expires_ms = LATER_MS + 500 },
		{ .name = STR("pieces"), .value = long_text(w->arena, PIECES_BYTES) },
	};
	struct timed_item item;

	TRY(timed_item_open(t, STR("h"), w->arena, &item));
	return timed_members_put(&item, TIMED_HASH, members, 4);
}

/* In a body, where members stay that came beside one whose name is too long for a header. */
static enum status
put_into_body(struct timed_item *item, enum timed_type type, struct timed_member *members,
	      size_t count)
{
	struct timed_member other = { .name = long_text(item->arena, TIMED_WHOLE_BYTES + 1) };

	TRY(timed_members_put(item, type, &other, 1));
	TRY(timed_members_put(item, type, members, count));
	return timed_members_delete(item, &other, 1);
}

static enum status
fill_sets(struct timed *t, struct world *w)
{
	struct timed_member pair[] = { { .name = STR("a") }, { .name = STR("b") } };
	struct timed_member *members = arena_zalloc(w->arena, MEMBERS * sizeof(*members));
	struct timed_item item;

	TRY(timed_item_open(t, STR("s"), w->arena, &item));
	TRY(put_into_body(&item, TIMED_SET, pair, 2));
	for (unsigned i = 0; i < MEMBERS; i++) {
		members[i].name = arena_printf(w->arena, "m%03u", i);
		members[i].score = i;
	}
	TRY(timed_item_open(t, STR("z"), w->arena, &item));
	return put_into_body(&item, TIMED_ZSET, members, MEMBERS);
}

static enum status
fill_list(struct timed *t, struct world *w)
{
	struct timed_item item;

	TRY(timed_item_open(t, STR("l"), w->arena, &item));
	for (unsigned i = 0; i < ELEMENTS; i++) {
		struct str value = arena_printf(w->arena, "e%u", i);

		TRY(timed_list_push(&item, false, &value, 1));
	}
	return STATUS_OK;
}

static enum status
fill_stream(struct timed *t, struct world *w)
{
	struct str fields[] = { STR("f"), STR("value") };
	struct timed_stream stream = { 0 };
	struct timed_item item;

	TRY(timed_item_open(t, STR("x"), w->arena, &item));
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct timed_entry entry = { { i + 1, 0 }, fields, 2 };

		TRY(timed_stream_add(&item, &stream, &entry));
	}
	return STATUS_OK;
}

static enum status
fill_values(struct timed *t, struct world *w)
{
	const struct timed_expiry soon = { TIMED_EXPIRY_AFTER, 10 };
	struct timed_item item;

	TRY(timed_item_open(t, STR("v"), w->arena, &item));
	TRY(timed_value_set(&item, STR("value"), later));
	TRY(timed_item_open(t, STR("due"), w->arena, &item));
	TRY(timed_value_set(&item, STR("value"), soon));
	TRY(timed_item_open(t, STR("long"), w->arena, &item));
	return timed_value_set(&item, long_text(w->arena, LONG_BYTES), never);
}

static world_fill *const fills[] = {
	fill_hash, fill_sets, fill_list, fill_stream, fill_values,
};

static int
setup(void **state)
{
	return world_open(fills, COUNT(fills), (struct world **)state);
}

static int
setup_packed(void **state)
{
	static world_fill *const fill[] = { fill_packed };

	return world_open(fill, COUNT(fill), (struct world **)state);
}

static int
teardown(void **state)
{
	world_close(*state);
	return 0;
}

static void
items_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_any, COUNT(of_any));
}

static void
values_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_values, COUNT(of_values));
}

static void
members_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_members, COUNT(of_members));
}

static void
members_in_headers_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_packed, COUNT(of_packed));
}

static void
sorted_sets_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_zsets, COUNT(of_zsets));
}

static void
lists_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_lists, COUNT(of_lists));
}

static void
streams_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_streams, COUNT(of_streams));
}

static void
a_stray_group_is_damage(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_strays, COUNT(of_strays));
}

static void
checks_find_what_is_damaged(void **state)
{
	struct world *w = *state;

	probe_each_throughout(w->store, w, checks, COUNT(checks));
}

/* Of a pair that is lost some are missed: what nothing refers to, and what may be there or not. */
static void
checks_find_what_is_lost_or_foreign(void **state)
{
	struct world *w = *state;

	probe_pairs(w->store, w, &checks[0],
		    "1: O 2-3: ~ 4-12: O 13-21: ~ 22-23: O 24-25: ~ 26-27: O 28-32: ~ "
		    "33-34: O 35-41: ~ 42-44: O 45-55: ~ 56: O 57-367: ~ 368-369: O "
		    "370-410: ~ 411-412: O 413-419: ~",
		    "1-21: ~ 22-25: O 26-419: ~");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(items_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(values_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(members_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(sorted_sets_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(streams_hand_failures_on, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(checks_find_what_is_lost_or_foreign, setup,
						teardown),
		/* The last ones, since they draw ids: what the checks see has others then. */
		cmocka_unit_test_setup_teardown(a_stray_group_is_damage, setup, teardown),
		cmocka_unit_test_setup_teardown(members_in_headers_hand_failures_on, setup_packed,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
