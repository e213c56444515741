/*
 * What the removing of items, members and staged bodies whose time has come answers when a call of
 * the store fails, when its memory ends and when what it reads is damaged; and by what it conflicts
 * (probe.h). The same of staging itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "items_world.h"
#include "kv/tuple.h"
#include "model/timed/items/item_int.h"
#include "model/timed/timed_int.h"

/* When each of them expires, by which its entry is found. */
enum {
	VALUE_MS = START_MS + 10,
	LONG_MS = START_MS + 20,
	MEMBER_MS = START_MS + 30,
	LAST_MS = START_MS + 40,
	MOVED_MS = START_MS + 50,
	ORPHAN_MS = START_MS + 60,
	REPLACED_MS = START_MS + 70,
	STAGED_MS = START_MS + TIMED_STAGE_MS,

	LONG_BYTES = 2 * TIMED_CHUNK_BYTES + 100,
	PIECES_BYTES = TIMED_RECORD_BYTES + 100,
	DUES = 16, /* at most */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char long_bytes[LONG_BYTES];

/* The entries of EXPIRY, in memory that stays. */
struct due_entry {
	uint64_t ms;
	struct str tail, key;
};

static struct due_entry entries[DUES];
static size_t entries_count;

/* What has been staged, and what is to be. */
static struct timed_stage staged, wanted;

/* ---- The world ---- */

static enum status
value_put(struct timed *t, struct world *w, const char *key, struct str value, uint64_t ms)
{
	const struct timed_expiry expiry = { TIMED_EXPIRY_AFTER, ms - START_MS };
	struct timed_item item;

	TRY(timed_item_open(t, str_from_cstr(key), w->arena, &item));
	return timed_value_set(&item, value, expiry);
}

/* A hash in a body of its own, since the value is too long for a header. */
static enum status
hash_put(struct timed *t, struct world *w, const char *key, uint64_t ms, bool stays)
{
	struct timed_member members[] = {
		{ .name = STR("due"), .value = str_of(long_bytes, PIECES_BYTES), .expires_ms = ms },
		{ .name = STR("stays"), .value = STR("1") },
	};
	struct timed_item item;

	TRY(timed_item_open(t, str_from_cstr(key), w->arena, &item));
	return timed_members_put(&item, TIMED_HASH, members, stays ? 2 : 1);
}

static enum status
fill_items(struct timed *t, struct world *w)
{
	memset(long_bytes, 'a', sizeof(long_bytes));
	TRY(value_put(t, w, "value", STR("value"), VALUE_MS));
	TRY(value_put(t, w, "long", str_of(long_bytes, LONG_BYTES), LONG_MS));
	TRY(value_put(t, w, "replaced", STR("value"), REPLACED_MS));
	TRY(hash_put(t, w, "hash", MEMBER_MS, true));
	TRY(hash_put(t, w, "last", LAST_MS, false));
	TRY(hash_put(t, w, "before", MOVED_MS, true));
	return hash_put(t, w, "orphan", ORPHAN_MS, true);
}

/* What makes entries of no use, or has them find their item at another key. */
static enum status
fill_changes(struct timed *t, struct world *w)
{
	struct timed_item item, to;

	TRY(timed_item_open(t, STR("before"), w->arena, &item));
	TRY(timed_item_open(t, STR("after"), w->arena, &to));
	TRY(timed_item_rename(&item, &to));
	TRY(timed_item_open(t, STR("orphan"), w->arena, &item));
	TRY(timed_value_set(&item, STR("1"), (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 }));
	TRY(timed_item_open(t, STR("replaced"), w->arena, &item));
	return timed_value_set(&item, STR("1"), (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 });
}

static enum status
fill_stage(struct timed *t, struct world *w)
{
	(void)w;
	TRY(timed_now(t));
	staged = (struct timed_stage){ .key = STR("staged"),
				       .bytes = str_of(long_bytes, LONG_BYTES),
				       .length = LONG_BYTES };
	wanted = staged;
	return timed_stage_write(t, &staged, w->arena);
}

/* Notes the entries, which the probes sweep one by one. */
static enum status
fill_entries(struct timed *t, struct world *w)
{
	const struct kv_range_options options = { .limit = DUES, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf rows = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct kv_range range;

	timed_key_space(&begin, t->db, TIMED_SPACE_EXPIRY);
	timed_key_space(&end, t->db, TIMED_SPACE_EXPIRY + 1);
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	assert_false(range.more);
	entries_count = range.count;
	for (size_t i = 0; i < range.count; i++) {
		struct tuple_reader r = tuple_reader(str_skip(range.pairs[i].key, begin.len));
		struct due_entry *e = &entries[i];
		uint64_t shard;

		TRY(tuple_next_u64(&r, &shard));
		TRY(tuple_next_u64(&r, &e->ms));
		e->tail = arena_dup(w->arena, r.rest);
		timed_key_space(&rows, t->db, TIMED_SPACE_ROWS);
		buf_append_str(&rows, r.rest);
		TRY(catalog_key_status(&rows));
		e->key = arena_dup(w->arena, buf_str(&rows));
	}
	return STATUS_OK;
}

static world_fill *const fills[] = { fill_items, fill_changes, fill_stage, fill_entries };

/* ---- Sweeping ---- */

static enum status
sweep_at(struct probe *p, struct timed *t, uint64_t ms)
{
	struct timed_due_swept swept = { 0 };
	const struct due_entry *e = entries;

	while (e < entries + entries_count && e->ms != ms)
		e++;
	assert_true(e < entries + entries_count);
	TRY(timed_now(t));
	TRY(timed_items_due_sweep(t, &(struct timed_due){ e->ms, e->tail, e->key }, NULL, p->arena,
				  &swept));
	buf_printf(&p->said, "%d %d %d %d %d %.*s", swept.done, swept.stays, swept.more,
		   swept.what.member, swept.what.emptied, STR_ARG(swept.what.key));
	return STATUS_OK;
}

#define SWEEP(name, ms)                                                                            \
	static enum status name(struct probe *p, struct timed *t, struct timed_item *item)         \
	{                                                                                          \
		(void)item;                                                                        \
		return sweep_at(p, t, ms);                                                         \
	}                                                                                          \
	static enum status name##_of(struct probe *p)                                              \
	{                                                                                          \
		return world_item(p, NULL, name);                                                  \
	}

SWEEP(value, VALUE_MS)
SWEEP(long_value, LONG_MS)
SWEEP(replaced, REPLACED_MS)
SWEEP(member, MEMBER_MS)
SWEEP(last_member, LAST_MS)
SWEEP(moved_member, MOVED_MS)
SWEEP(orphan, ORPHAN_MS)
SWEEP(staged_body, STAGED_MS)

static const struct probe_op of_dues[] = {
	{ "a value", value_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOC~CO" },
	{ "a value in chunks", long_value_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOC~COCOCO" },
	{ "a value that was replaced", replaced_of, "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOCO" },
	{ "a member", member_of,
	  "ok, conflicts 5 0+0; 1: C/O 2: C/CNCOC~COCOC 3: C~/CO~ 4: C/CNCOC~C~C "
	  "5: CO/CNCOCO" },
	{ "the last member", last_member_of,
	  "ok, conflicts 7 0+0; 1: C/O 2: C/CNCOC~COCOC 3: C~/CO~ 4: C/CNCOC~C~C "
	  "5-6: C/~" },
	{ "a member of what was renamed", moved_member_of,
	  "ok, conflicts 5 0+0; 1: C/O 2: C/CNCOC~COCOC 3: C~/CO~ 4: C/CNCOC~C~C "
	  "5: CO/CNCOCO" },
	{ "a member of what was replaced", orphan_of,
	  "ok, conflicts 3 0+0; 1: C/O 2: C/CNCOCOCOCOC 3: CO/CO 4: C/CNCOCO" },
	{ "a staged body", staged_body_of, "ok, conflicts 1 0+0; 1: C/O 2: O/" },
};

/* What has gone, and is cleared later. */
static enum status
gone(struct probe *p, struct timed *t, struct timed_item *item)
{
	uint64_t done = 0;
	bool more = false;

	(void)item;
	TRY(timed_gone_sweep(t, &done, &more));
	buf_printf(&p->said, "%llu %d", (unsigned long long)done, more);
	return STATUS_OK;
}

static enum status
gone_of(struct probe *p)
{
	return world_item(p, NULL, gone);
}

static const struct probe_op of_gone[] = {
	{ "bodies that are gone", gone_of, "ok, conflicts 0 0+0; 1: O/ 2-6: O/O 7: O/ 8-9: O/O" },
};

/* ---- Staging ---- */

static enum status
stage_begin(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_stage s = wanted;

	(void)item;
	TRY(timed_now(t));
	TRY(timed_stage_write(t, &s, p->arena));
	buf_printf(&p->said, "%d %d", s.complete, s.stale);
	return STATUS_OK;
}

static enum status
stage_go_on(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_stage s = staged;

	(void)item;
	s.chunk = 1;
	s.complete = false;
	TRY(timed_now(t));
	TRY(timed_stage_write(t, &s, p->arena));
	buf_printf(&p->said, "%d %d", s.complete, s.stale);
	return STATUS_OK;
}

/* Of bytes in the middle of a value, whose version is another one than was staged for. */
static enum status
stage_patch(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_stage s = wanted;

	(void)item;
	s.key = STR("long");
	s.bytes = str_of(long_bytes, 10);
	s.offset = TIMED_CHUNK_BYTES;
	s.patches = true;
	TRY(timed_now(t));
	TRY(timed_stage_write(t, &s, p->arena));
	buf_printf(&p->said, "%d %d", s.complete, s.stale);
	return STATUS_OK;
}

static enum status
stage_drop(struct probe *p, struct timed *t, struct timed_item *item)
{
	(void)item;
	TRY(timed_now(t));
	return timed_stage_drop(t, &staged, p->arena);
}

static enum status
stage_take(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_stages stages = { .allowed = true, .first = &staged };
	enum status status;

	t->stages = &stages;
	status = timed_value_staged(item, 0, staged.bytes, false, 0);
	buf_printf(&p->said, "%d %llu", stages.is_wanted, (unsigned long long)item->length);
	t->stages = NULL;
	return status;
}

/* What is staged for something else, or cannot be published, is not taken. */
static enum status
stage_take_none(struct probe *p, struct timed *t, struct timed_item *item)
{
	struct timed_stage others[] = { staged, staged, staged, staged, staged, staged, staged };
	struct timed_stages stages = { .allowed = true };
	enum status status = STATUS_VALUE_TOO_LARGE;

	others[0].key = STR("other");
	others[1].bytes.ptr++;
	others[2].bytes.len--;
	others[3].offset++;
	others[4].base_len++;
	others[5].complete = false;
	others[6].stale = true;
	t->stages = &stages;
	for (size_t i = 0; i < COUNT(others) && status == STATUS_VALUE_TOO_LARGE; i++) {
		stages.first = &others[i];
		stages.is_wanted = false;
		status = timed_value_staged(item, 0, staged.bytes, false, 0);
		buf_printf(&p->said, "%d", stages.is_wanted);
	}
	t->stages = NULL;
	return status;
}

#define OF(key, name)                                                                              \
	static enum status name##_of(struct probe *p)                                              \
	{                                                                                          \
		return world_item(p, key, name);                                                   \
	}

OF(NULL, stage_begin)
OF(NULL, stage_go_on)
OF(NULL, stage_patch)
OF(NULL, stage_drop)
OF("staged", stage_take)
OF("staged", stage_take_none)

static const struct probe_op of_stages[] = {
	{ "begin", stage_begin_of, "ok, conflicts 0 0+0; 1: C/O" },
	{ "go on", stage_go_on_of, "ok, conflicts 1 0+0; 1: C/O 2: O/" },
	{ "patch another version", stage_patch_of,
	  "ok, conflicts 1 0+0; 1: C/O 2: C/CNCOC~OCOCOCO" },
	{ "drop", stage_drop_of, "ok, conflicts 1 0+0; 1: C/O 2: O/" },
	{ "publish another one", stage_take_none_of, "value_too_large, conflicts 1 0+0; 1: C/O" },
	{ "publish", stage_take_of, "ok, conflicts 2 0+0; 1: C/O 2: O/" },
};

/* ---- */

static int
setup(void **state)
{
	return world_open(fills, COUNT(fills), (struct world **)state);
}

static int
teardown(void **state)
{
	world_close(*state);
	return 0;
}

static void
sweeping_what_is_due_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_dues, COUNT(of_dues));
}

static void
clearing_what_is_gone_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_gone, COUNT(of_gone));
}

static void
staging_hands_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, of_stages, COUNT(of_stages));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sweeping_what_is_due_hands_failures_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(clearing_what_is_gone_hands_failures_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(staging_hands_failures_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
