/*
 * The past of items: random operations, by clocks that step back, against all versions of a model;
 * and a database that has lost its schema.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "catalog/verify.h"
#include "items/items_model.h"
#include "kv/tuple.h"
#include "model/timed/timed_int.h"
#include "store.h"

enum {
	WINDOW_SECONDS = 40,
	SNAPSHOTS = 100,
};

/* All versions of the model, each as it was at a moment, which its number among them chooses. */
struct snapshots {
	uint64_t at_ms[SNAPSHOTS];
	struct items_model models[SNAPSHOTS];
	size_t count;
};

static void
snapshots_add(struct snapshots *s, const struct items_model *model, uint64_t at_ms)
{
	size_t at = s->count++ % SNAPSHOTS;

	/* A transaction that writes nothing moves no clock: a later one may be at the same moment,
	 * or before it. */
	for (size_t i = 0; i < SNAPSHOTS; i++)
		if (s->at_ms[i] >= at_ms)
			s->at_ms[i] = 0;
	s->at_ms[at] = at_ms;
	for (int i = 0; i < ITEMS_KEYS; i++)
		items_model_copy(&s->models[at].items[i], &model->items[i]);
}

static enum status
history_run(struct timed *t, struct arena *arena, void *arg)
{
	const uint64_t *seconds = arg;

	(void)arena;
	return timed_history_set(t, *seconds);
}

/* A version of the past, all of it; false if the history does not go back that far. */
static bool
compare_snapshot(struct items *f, const struct snapshots *s, struct rand_seq *r)
{
	size_t at = rand_seq_below(r, s->count < SNAPSHOTS ? s->count : SNAPSHOTS);
	struct items_compare c = { .f = f, .random = rand_seq_next(r), .at_ms = s->at_ms[at] };

	if (!c.at_ms)
		return true;
	for (c.key = 0; c.key < ITEMS_KEYS; c.key++) {
		enum status status;

		c.m = &s->models[at].items[c.key];
		status = items_try(f, "0", items_compare, &c);
		if (status == STATUS_INVALID && c.at_ms + WINDOW_SECONDS * 1000 < f->now_ms)
			return false;
		if (status != STATUS_OK)
			fail_msg("%s: %s", status_name(status), f->err.text);
	}
	return true;
}

static void
what_was_is_read_as_it_was(void **state)
{
	struct items *f = *state;
	struct rand_seq r = { test_seed() };
	struct snapshots *s = calloc(1, sizeof(*s));
	struct items_model model = { 0 };
	uint64_t seconds = WINDOW_SECONDS;
	int rounds = getenv("FROND_TEST_FAULTS") ? 150 : 400, seen = 0, gone = 0;

	items_must(f, history_run, &seconds);
	items_sweep(f);
	f->now_ms++;
	for (int i = 0; i < rounds; i++) {
		struct items_change c = items_change(f, &model, &r);

		snapshots_add(s, &model, c.now_us / 1000);
		/* Clocks of several processes: most go on, some are behind. */
		f->now_ms += 1 + rand_seq_below(&r, 1500);
		if (rand_seq_below(&r, 10) == 0)
			f->now_ms -= rand_seq_below(&r, 1000);
		if (f->now_ms < f->expired_ms)
			f->now_ms = f->expired_ms;
		if (rand_seq_below(&r, 10) == 0)
			items_sweep(f);
		if (rand_seq_below(&r, 3) == 0) {
			if (compare_snapshot(f, s, &r))
				seen++;
			else
				gone++;
		}
	}
	items_verify(f);
	assert_true(seen > 10);
	print_message("# %d versions read, %d too old\n", seen, gone);
	seconds = 0;
	items_must(f, history_run, &seconds);
	f->now_ms += 1000 * 1000;
	items_sweep(f);
	assert_int_equal(items_pairs(f, SPACE_UNDO), 0);
	assert_int_equal(items_pairs(f, SPACE_GONE), 0);
	items_verify(f);
	for (int i = 0; i < ITEMS_KEYS; i++) {
		items_model_clear(&model.items[i]);
		for (int j = 0; j < SNAPSHOTS; j++)
			items_model_clear(&s->models[j].items[i]);
	}
	free(s);
}

/* ---- The check ---- */

/* A record in the oldest bucket that nothing can have written. */
static enum status
damage_run(struct timed *t, struct arena *arena, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(KV_LIMIT_KEY_BYTES);

	(void)arena;
	(void)arg;
	buf_append_str(&key, t->db->prefix);
	tuple_put_u64(&key, SPACE_UNDO);
	tuple_put_u64(&key, 1);
	tuple_put_bytes(&key, STR("x"));
	TRY(buf_status(&key));
	return kv_set(t->tx, buf_str(&key), STR(""));
}

static void
count_found(const struct catalog_finding *finding, void *arg)
{
	unsigned *count = arg;

	assert_string_equal(finding->kind, "row_history");
	++*count;
}

static enum status
check_body(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = count_found, .arg = arg };
	struct catalog_verify_sum sum;

	*(unsigned *)arg = 0;
	return catalog_verify_store(tx, &options, &sum, NULL);
}

static void
a_record_of_the_past_that_cannot_be_one_is_found(void **state)
{
	struct items *f = *state;
	uint64_t seconds = WINDOW_SECONDS;
	unsigned count;

	items_must(f, history_run, &seconds);
	items_must(f, damage_run, NULL);
	assert_int_equal(kv_run_read(f->store, check_body, &count, NULL), STATUS_OK);
	assert_int_equal(count, 1);
}

static enum status
write_run(struct timed *t, struct arena *arena, void *arg)
{
	struct timed_item item;

	(void)arg;
	TRY(timed_item_open(t, STR("x"), arena, &item));
	return timed_value_set(&item, STR("v"), (struct timed_expiry){ 0 });
}

/* What it overwrites would be in a bucket that has ended. */
static void
a_writer_conflicts_with_the_beginning_of_a_bucket(void **state)
{
	struct items *f = *state;
	struct kv_tx *tx;

	items_must(f, history_run, &(uint64_t){ WINDOW_SECONDS });
	items_sweep(f);
	for (int round = 0; round < 3; round++) {
		arena_clear(f->arena);
		tx = items_open(f, false, write_run, NULL);
		items_sweep(f);
		assert_int_equal(items_commit(tx), STATUS_OK);
		arena_clear(f->arena);
		tx = items_open(f, false, write_run, NULL);
		f->now_ms += WINDOW_SECONDS * 1000 / 10;
		items_sweep(f);
		assert_int_equal(items_commit(tx), STATUS_TX_CONFLICT);
	}
	items_verify(f);
}

/* ---- Damage ---- */

static enum status
schema_clear(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(TIMED_SCHEMA_KEY_BYTES);
	struct catalog_db *db;
	enum status status;

	(void)arg;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &db, NULL));
	status = timed_schema_key(db, &key);
	catalog_db_unref(db);
	TRY(status);
	return kv_clear(tx, buf_str(&key));
}

static enum status
schemaless_open(struct kv_tx *tx, void *arg)
{
	struct catalog_db *db;
	struct err *err = arg;

	/* In a transaction that has written, too. */
	TRY(kv_set(tx, STR("t/written"), STR("")));
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR("0"), &db, err));
	catalog_db_unref(db);
	return STATUS_OK;
}

static void
database_whose_schema_is_gone_is_damaged(void **state)
{
	struct items *f = *state;
	struct err err = { 0 };

	assert_int_equal(kv_run(f->store, schema_clear, NULL, NULL, &f->err), STATUS_OK);
	assert_int_equal(kv_run(f->store, schemaless_open, &err, NULL, &err), STATUS_CORRUPT);
	assert_string_equal(err.text, "the database has no schema");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, items_setup, items_teardown)
		WITH_STORE(a_record_of_the_past_that_cannot_be_one_is_found),
		WITH_STORE(what_was_is_read_as_it_was),
		WITH_STORE(a_writer_conflicts_with_the_beginning_of_a_bucket),
		WITH_STORE(database_whose_schema_is_gone_is_damaged),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
