/*
 * Processes whose clocks differ, by hours, at one store: expiry, write times and the past. On a
 * cluster each has a store handle of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "items/items_model.h"
#include "store.h"

enum {
	PROCESSES = 3,
	KEYS = 4,
	ROUNDS = 600,
	VALUE_BYTES = 24,
	HISTORY_SECONDS = 1000 * 1000,
};

/* By how much the clock of each is ahead. */
static const int64_t skews_ms[PROCESSES] = { 0, 3600 * 1000, -7 * 1000 };

/* A key as a write has left it. */
struct version {
	uint64_t write_us;
	uint64_t expires_ms; /* 0: never */
	bool there;
	char value[VALUE_BYTES];
};

struct world {
	struct items *f;
	struct kv_store *stores[PROCESSES];
	uint64_t now_ms;    /* the true time */
	uint64_t latest_us; /* of all writes */
	struct version versions[KEYS][ROUNDS + 1];
	size_t counts[KEYS];
};

struct access {
	unsigned key;
	enum {
		ACCESS_READ,
		ACCESS_SET,
		ACCESS_DELETE
	} kind;
	struct timed_expiry expiry;
	uint64_t at_ms;     /* 0: the present */
	struct version got; /* before a write, and otherwise as it is */
	struct version made;
	uint64_t now_us;
};

/* ---- Steps ---- */

static enum status
access_take(struct timed_item *item, struct version *ret)
{
	struct str value;

	*ret = (struct version){ .there = item->type == TIMED_VALUE };
	if (!ret->there)
		return STATUS_OK;
	TRY(timed_value_get(item, 0, item->length, &value));
	ret->write_us = item->write_us;
	ret->expires_ms = item->expires_ms;
	(void)snprintf(ret->value, sizeof(ret->value), "%.*s", STR_ARG(value));
	return STATUS_OK;
}

static enum status
access_run(struct timed *t, struct arena *arena, void *arg)
{
	struct access *a = arg;
	struct timed_item item;
	char name[2] = { (char)('a' + a->key), '\0' };

	if (a->at_ms)
		timed_at(t, a->at_ms);
	TRY(timed_item_open(t, str_from_cstr(name), arena, &item));
	a->now_us = t->now_us;
	TRY(access_take(&item, &a->got));
	if (a->kind == ACCESS_SET) {
		char value[VALUE_BYTES];
		int len = snprintf(value, sizeof(value), "%llu", (unsigned long long)t->now_us);

		TRY(timed_value_set(&item, str_of(value, (size_t)len), a->expiry));
	} else if (a->kind == ACCESS_DELETE) {
		TRY(timed_item_delete(&item));
	}
	return access_take(&item, &a->made);
}

static enum status
history_run(struct timed *t, struct arena *arena, void *arg)
{
	(void)arena;
	(void)arg;
	return timed_history_set(t, (struct timed_history_bounds){ .seconds = HISTORY_SECONDS });
}

/* Runs a step in the process of that number. */
static void
world_run(struct world *w, unsigned process, struct access *a)
{
	w->f->store = w->stores[process];
	w->f->now_ms = w->now_ms + (uint64_t)skews_ms[process];
	items_must(w->f, access_run, a);
}

static void
world_sweep(struct world *w, unsigned process)
{
	w->f->store = w->stores[process];
	w->f->now_ms = w->now_ms + (uint64_t)skews_ms[process];
	items_sweep(w->f);
}

/* ---- The model ---- */

/* The key at a moment, by the latest write until then. */
static const struct version *
world_version(const struct world *w, unsigned key, uint64_t at_us)
{
	static const struct version none;
	const struct version *found = &none;

	for (size_t i = 0; i < w->counts[key] && w->versions[key][i].write_us <= at_us; i++)
		found = &w->versions[key][i];
	if (!found->there || (found->expires_ms && found->expires_ms <= at_us / 1000))
		return &none;
	return found;
}

static void
world_expect(const struct world *w, const struct access *a, uint64_t at_us)
{
	const struct version *v = world_version(w, a->key, at_us);

	assert_int_equal(a->got.there, v->there);
	if (!v->there)
		return;
	assert_string_equal(a->got.value, v->value);
	assert_int_equal(a->got.write_us, v->write_us);
	assert_int_equal(a->got.expires_ms, v->expires_ms);
}

/* A write's moment is later than that of every write before it, whoever made that. */
static void
world_wrote(struct world *w, const struct access *a)
{
	struct version v = a->made;

	if (a->kind == ACCESS_DELETE && !a->got.there)
		return;
	assert_true(a->now_us > w->latest_us);
	w->latest_us = a->now_us;
	v.write_us = a->now_us;
	w->versions[a->key][w->counts[a->key]++] = v;
}

/* ---- Tests ---- */

static int
world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	const struct kv_options options = { 0 };
	struct err err = { 0 };
	char url[256];

	assert_non_null(w);
	assert_int_equal(items_setup((void **)&w->f), 0);
	w->now_ms = ITEMS_START_MS * 10;
	for (int i = 0; i < PROCESSES; i++) {
		w->stores[i] = w->f->store;
		if (!test_store_is_cluster() || i == 0)
			continue;
		(void)snprintf(url, sizeof(url), "fdb:%s", test_store_cluster());
		assert_int_equal(kv_open(url, &options, &w->stores[i], &err), STATUS_OK);
	}
	*state = w;
	return 0;
}

static int
world_teardown(void **state)
{
	struct world *w = *state;

	for (int i = 1; i < PROCESSES; i++)
		if (w->stores[i] != w->stores[0])
			kv_close(w->stores[i]);
	w->f->store = w->stores[0];
	(void)items_teardown((void **)&w->f);
	free(w);
	return 0;
}

static void
what_a_write_has_found_expired_is_expired_for_all(void **state)
{
	struct world *w = *state;
	struct access set = { .kind = ACCESS_SET, .expiry = { TIMED_EXPIRY_AFTER, 10000 } };
	struct access other = { .key = 1, .kind = ACCESS_SET, .expiry = { TIMED_EXPIRY_NEVER, 0 } };
	struct access read = { .kind = ACCESS_READ };

	/* The one whose clock is an hour ahead writes: its time is everybody's from then on. */
	world_run(w, 1, &set);
	for (unsigned i = 0; i < PROCESSES; i++) {
		world_run(w, i, &read);
		assert_true(read.got.there);
	}
	w->now_ms += 10000;
	/* Its clock alone says that the time has come. */
	world_run(w, 0, &read);
	assert_true(read.got.there);
	world_run(w, 1, &other);
	for (unsigned i = 0; i < PROCESSES; i++) {
		world_run(w, i, &read);
		assert_false(read.got.there);
	}
	/* A time to live is counted from the same moment, however late the local clock is. */
	world_run(w, 2, &set);
	assert_true(set.made.expires_ms > w->now_ms + 3600 * 1000);
	world_run(w, 1, &read);
	assert_true(read.got.there);
	assert_int_equal(read.got.write_us, set.now_us);
}

static uint64_t passed_us;

static uint64_t
world_passed(void *arg)
{
	(void)arg;
	return passed_us;
}

static void
world_pass(struct world *w, uint64_t ms)
{
	w->now_ms += ms;
	passed_us += ms * 1000;
}

static void
time_goes_on_in_a_database_that_is_ahead(void **state)
{
	struct world *w = *state;
	struct access set = { .kind = ACCESS_SET, .expiry = { TIMED_EXPIRY_AFTER, 30000 } };
	struct access other = { .key = 1, .kind = ACCESS_SET, .expiry = { TIMED_EXPIRY_NEVER, 0 } };
	struct access read = { .kind = ACCESS_READ };
	uint64_t before_us;

	w->f->clock.passed_us = world_passed;
	/* The one whose clock is an hour ahead writes, and is gone. */
	world_run(w, 1, &set);
	world_run(w, 0, &read);
	assert_true(read.got.there);
	before_us = read.now_us;
	world_pass(w, 29000);
	/* A step of the clock of another one makes no difference. */
	w->now_ms -= 10000;
	world_run(w, 2, &read);
	assert_true(read.got.there);
	assert_true(read.now_us - before_us >= 28999000 && read.now_us - before_us < 29001000);
	w->now_ms += 10000;
	world_pass(w, 1100);
	world_run(w, 0, &read);
	assert_false(read.got.there);
	/* Writes go on from there, whichever process makes them. */
	world_run(w, 2, &set);
	assert_true(set.now_us >= read.now_us);
	world_run(w, 0, &other);
	assert_true(other.now_us > set.now_us && other.now_us - set.now_us < 100000);
	world_pass(w, 30100);
	world_run(w, 0, &read);
	assert_false(read.got.there);
	/* The hour has passed: the local clock is the later one again. */
	world_pass(w, 3700 * 1000);
	world_run(w, 1, &read);
	assert_int_equal(read.now_us, (w->now_ms + (uint64_t)skews_ms[1]) * 1000);
}

/* As the commands have none: they take the clock of the machine. */
static enum status
clockless_run(struct timed *t, struct arena *arena, void *arg)
{
	t->clock = NULL;
	return access_run(t, arena, arg);
}

static void
a_process_without_a_clock_of_its_own_comes_behind_what_is_ahead(void **state)
{
	struct world *w = *state;
	struct access set = { .kind = ACCESS_SET, .expiry = { TIMED_EXPIRY_NEVER, 0 } };
	struct access read = { .kind = ACCESS_READ };

	/* The one that writes is an hour ahead of the machine. */
	w->now_ms = clock_wall_ms();
	world_run(w, 1, &set);
	w->f->store = w->stores[0];
	items_must(w->f, clockless_run, &read);
	assert_true(read.got.there);
	assert_true(read.now_us > set.now_us);
	/* And no further than time has gone on. */
	assert_true(read.now_us - set.now_us <= (clock_wall_ms() - w->now_ms + 60000) * 1000);
}

static void
writes_expiry_and_the_past_are_right_for_all(void **state)
{
	struct world *w = *state;
	struct rand_seq r = { test_seed() };
	size_t past = 0;

	items_must(w->f, history_run, NULL);
	world_sweep(w, 0);
	w->now_ms += 10;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned process = (unsigned)rand_seq_below(&r, PROCESSES);
		struct access a = { .key = (unsigned)rand_seq_below(&r, KEYS),
				    .kind = (unsigned)rand_seq_below(&r, 3),
				    .expiry = { TIMED_EXPIRY_AFTER,
						1 + rand_seq_below(&r, 10000) } };

		w->now_ms += rand_seq_below(&r, 2000);
		if (rand_seq_below(&r, 4) == 0)
			a.expiry = (struct timed_expiry){ TIMED_EXPIRY_NEVER, 0 };
		if (rand_seq_below(&r, 20) == 0)
			world_sweep(w, process);
		world_run(w, process, &a);
		/* The later one of the local clock and the latest write's moment. */
		assert_true(a.now_us >= (w->now_ms + (uint64_t)skews_ms[process]) * 1000);
		world_expect(w, &a, a.now_us);
		if (a.kind != ACCESS_READ)
			world_wrote(w, &a);
		/* The past is the same whoever reads it, once it has passed for the store. */
		if (w->latest_us && rand_seq_below(&r, 2) == 0) {
			const struct version *first = NULL;
			uint64_t latest_ms = w->latest_us / 1000 - 1;
			struct access b = { .key = (unsigned)rand_seq_below(&r, KEYS) };

			for (unsigned k = 0; k < KEYS; k++)
				if (w->counts[k] &&
				    (!first || w->versions[k][0].write_us < first->write_us))
					first = &w->versions[k][0];
			b.at_ms = first->write_us / 1000 +
				  rand_seq_below(&r, latest_ms - first->write_us / 1000 + 2);
			if (b.at_ms > latest_ms || b.at_ms < first->write_us / 1000)
				continue;
			world_run(w, (unsigned)rand_seq_below(&r, PROCESSES), &b);
			world_expect(w, &b, b.at_ms * 1000 + 999);
			past++;
		}
	}
	items_verify(w->f);
	assert_true(past > 50);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_write_has_found_expired_is_expired_for_all,
						world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(
			a_process_without_a_clock_of_its_own_comes_behind_what_is_ahead,
			world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(time_goes_on_in_a_database_that_is_ahead,
						world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(writes_expiry_and_the_past_are_right_for_all,
						world_setup, world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
