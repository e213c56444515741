/*
 * The sweep beside each command on what is due, in two transactions that see the same state: the
 * one that commits last conflicts. So the sweep never removes what a command has just kept, and no
 * command changes what the sweep has removed. The clock of the command is behind that of the sweep,
 * as another process's may be, so the command still sees what is due. Also the steps of staging
 * beside each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "items_model.h"
#include "kv/tuple.h"
#include "model/timed/items/item_int.h"
#include "model/timed/timed_int.h"
#include "store.h"

enum {
	DUE_IN_MS = 100,
	STAGED_BYTES = 2 * TIMED_CHUNK_BYTES + 100,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char staged_bytes[STAGED_BYTES];

/* The body that fill_stage() has staged, as the steps of staging find it. */
static struct timed_stage staged;

/* ---- What is due ---- */

static enum status
item_at(struct timed *t, struct arena *arena, const char *key, struct timed_item *ret)
{
	return timed_item_open(t, str_from_cstr(key), arena, ret);
}

/* When what is filled now expires. */
static uint64_t
due_ms(const struct timed *t)
{
	return ((const struct items *)t->clock->arg)->now_ms + DUE_IN_MS;
}

static enum status
fill_value(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_expiry expiry = { TIMED_EXPIRY_AT, due_ms(t) };
	struct timed_item item;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	return timed_value_set(&item, STR("value"), expiry);
}

static enum status
fill_hash_of(struct timed *t, struct arena *arena, size_t count)
{
	struct timed_member members[] = {
		{ .name = STR("due"), .value = STR("1"), .expires_ms = due_ms(t) },
		{ .name = STR("stays"), .value = STR("2") },
	};
	struct timed_item item;

	TRY(item_at(t, arena, "item", &item));
	return timed_members_put(&item, TIMED_HASH, members, count);
}

static enum status
fill_hash(struct timed *t, struct arena *arena, void *arg)
{
	(void)arg;
	return fill_hash_of(t, arena, 2);
}

static enum status
fill_last(struct timed *t, struct arena *arena, void *arg)
{
	(void)arg;
	return fill_hash_of(t, arena, 1);
}

static enum status
fill_stage(struct timed *t, struct arena *arena, void *arg)
{
	(void)arg;
	TRY(timed_now(t));
	staged = (struct timed_stage){ .key = STR("item"),
				       .bytes = str_of(staged_bytes, STAGED_BYTES),
				       .length = STAGED_BYTES };
	return timed_stage_write(t, &staged, arena);
}

/* ---- The sweep of it ---- */

static enum status
sweep_due(struct timed *t, struct arena *arena, void *arg)
{
	const struct kv_range_options options = { .limit = 2, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf row = CATALOG_KEY_INIT;
	struct timed_due_swept swept = { 0 };
	struct timed_due due = { 0 };
	struct tuple_reader r;
	struct kv_future *f;
	struct str entry;
	uint64_t shard;

	(void)arg;
	timed_key_space(&begin, t->db, TIMED_SPACE_EXPIRY);
	timed_key_space(&end, t->db, TIMED_SPACE_EXPIRY + 1);
	f = kv_get_range(t->tx, buf_str(&begin), buf_str(&end), &options);
	TRY(kv_future_wait(f));
	assert_int_equal(kv_future_range(f).count, 1);
	entry = arena_dup(arena, kv_future_range(f).pairs[0].key);
	r = tuple_reader(str_skip(entry, begin.len));
	TRY(tuple_next_u64(&r, &shard));
	TRY(tuple_next_u64(&r, &due.ms));
	due.tail = r.rest;
	timed_key_space(&row, t->db, TIMED_SPACE_ROWS);
	buf_append_str(&row, due.tail);
	TRY(buf_status(&row));
	due.key = buf_str(&row);
	TRY(timed_now(t));
	TRY(timed_items_due_sweep(t, &due, NULL, arena, &swept));
	assert_true(swept.done);
	return kv_clear(t->tx, entry);
}

/* ---- Commands ---- */

static enum status
expire_never(struct timed *t, struct arena *arena, void *arg)
{
	const struct timed_expiry expiry = { TIMED_EXPIRY_NEVER, 0 };
	struct timed_item item;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	return timed_item_expire(&item, expiry);
}

static enum status
set_again(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	return timed_value_set(&item, STR("other"), (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 });
}

static enum status
append(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	return timed_value_write(&item, item.length, STR("more"));
}

static enum status
delete_item(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	return timed_item_delete(&item);
}

static enum status
rename_item(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item, other;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	TRY(item_at(t, arena, "other", &other));
	return timed_item_rename(&item, &other);
}

static enum status
member_put(struct timed *t, struct arena *arena, const char *name)
{
	struct timed_member member = { .name = str_from_cstr(name), .value = STR("3") };
	struct timed_item item;

	TRY(item_at(t, arena, "item", &item));
	return timed_members_put(&item, TIMED_HASH, &member, 1);
}

static enum status
put_due(struct timed *t, struct arena *arena, void *arg)
{
	(void)arg;
	return member_put(t, arena, "due");
}

static enum status
put_another(struct timed *t, struct arena *arena, void *arg)
{
	(void)arg;
	return member_put(t, arena, "another");
}

static enum status
member_expire_never(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	return timed_member_expire(&item, STR("due"), 0);
}

static enum status
member_delete(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_member member = { .name = STR("due") };
	struct timed_item item;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	return timed_members_delete(&item, &member, 1);
}

static enum status
stage_go_on(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_stage s = staged;

	(void)arg;
	s.chunk = 1;
	s.complete = false;
	TRY(timed_now(t));
	TRY(timed_stage_write(t, &s, arena));
	assert_true(s.complete && !s.stale);
	return STATUS_OK;
}

static enum status
stage_publish(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_stages stages = { .allowed = true, .first = &staged };
	struct timed_item item;

	(void)arg;
	TRY(item_at(t, arena, "item", &item));
	t->stages = &stages;
	TRY(timed_value_staged(&item, 0, staged.bytes, false, 0));
	t->stages = NULL;
	assert_false(stages.is_wanted);
	return STATUS_OK;
}

static enum status
stage_drop(struct timed *t, struct arena *arena, void *arg)
{
	(void)arg;
	TRY(timed_now(t));
	return timed_stage_drop(t, &staged, arena);
}

/* ---- Two at the same time ---- */

struct step {
	const char *name;
	items_step *run;
};

struct family {
	const char *name;
	items_step *fill;
	struct step steps[8]; /* up to one without a name */
};

static const struct family families[] = {
	{ "a value",
	  fill_value,
	  { { "PERSIST", expire_never },
	    { "SET", set_again },
	    { "APPEND", append },
	    { "DEL", delete_item },
	    { "RENAME", rename_item } } },
	{ "a member",
	  fill_hash,
	  { { "HSET", put_due },
	    { "HPERSIST", member_expire_never },
	    { "HDEL", member_delete },
	    { "DEL", delete_item },
	    { "RENAME", rename_item } } },
	{ "the last member",
	  fill_last,
	  { { "HSET", put_due },
	    { "HSET of another", put_another },
	    { "HPERSIST", member_expire_never },
	    { "HDEL", member_delete },
	    { "DEL", delete_item },
	    { "RENAME", rename_item } } },
	{ "a staged body",
	  fill_stage,
	  { { "going on", stage_go_on },
	    { "publishing", stage_publish },
	    { "dropping", stage_drop } } },
};

/* Nothing is there any more, also of what has been renamed. */
static enum status
clear(struct timed *t, struct arena *arena, void *arg)
{
	static const char *const keys[] = { "item", "other" };
	struct timed_item item;

	(void)arg;
	for (size_t i = 0; i < COUNT(keys); i++) {
		TRY(item_at(t, arena, keys[i], &item));
		TRY(timed_item_delete(&item));
	}
	return STATUS_OK;
}

/* Commits that one first; the other's outcome. */
static enum status
commit_both(struct kv_tx *const txs[2], unsigned first, enum status *ret)
{
	enum status status = items_commit(txs[first]);

	if (status != STATUS_OK) {
		kv_tx_free(txs[!first]);
		return status;
	}
	*ret = items_commit(txs[!first]);
	return *ret == STATUS_TX_TOO_OLD ? *ret : STATUS_OK;
}

static enum status
meet(struct items *f, const struct family *family, const struct step *const steps[2],
     unsigned first, enum status *ret)
{
	uint64_t begun_ms;
	struct kv_tx *txs[2];

	items_must(f, clear, NULL);
	items_must(f, family->fill, NULL);
	begun_ms = f->now_ms;
	for (unsigned i = 0; i < 2; i++) {
		f->now_ms = begun_ms + (steps[i]->run == sweep_due ? TIMED_STAGE_MS + 1 : 1);
		txs[i] = items_open(f, false, steps[i]->run, NULL);
	}
	f->now_ms = begun_ms + TIMED_STAGE_MS + 1;
	return commit_both(txs, first, ret);
}

/* Both ways, and what is left of either. */
static void
check_meeting(struct items *f, const struct family *family, const struct step *a,
	      const struct step *b)
{
	const struct step *const steps[2] = { a, b };

	for (unsigned first = 0; first < 2; first++) {
		/* Only chunks are written then, which nobody reads; they go with the others. */
		enum status expected = steps[first]->run == stage_go_on ? STATUS_OK
									: STATUS_TX_CONFLICT;
		enum status outcome = STATUS_OK, status;

		do
			status = meet(f, family, steps, first, &outcome);
		while (status == STATUS_TX_TOO_OLD && test_store_is_cluster());
		assert_int_equal(status, STATUS_OK);
		if (outcome != expected)
			fail_msg("%s: %s before %s: %s", family->name, steps[first]->name,
				 steps[!first]->name, status_name(outcome));
		items_verify(f);
		items_sweep(f);
		items_verify(f);
	}
}

static void
the_sweep_conflicts_with_commands_on_what_is_due(void **state)
{
	static const struct step sweep = { "the sweep", sweep_due };

	for (size_t i = 0; i < COUNT(families); i++)
		for (const struct step *step = families[i].steps; step->name; step++)
			check_meeting(*state, &families[i], step, &sweep);
}

static void
who_publishes_or_drops_a_staged_body_conflicts_with_others(void **state)
{
	const struct family *family = &families[COUNT(families) - 1];

	assert_ptr_equal(family->fill, fill_stage);
	for (const struct step *a = family->steps; a->name; a++)
		for (const struct step *b = a + 1; b->name; b++)
			check_meeting(*state, family, a, b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(the_sweep_conflicts_with_commands_on_what_is_due),
		WITH_STORE(who_publishes_or_drops_a_staged_body_conflicts_with_others),
	};

	return cmocka_run_group_tests_name("swept", tests, NULL, NULL);
}
