/*
 * Background work: chores have their turns, sooner while there is more to do, a failure delays only
 * the chore that failed, and those that are active are listed. Where several processes serve one
 * store, one of them runs a leased chore.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "catalog/chore_pass.h"
#include "catalog/chores.h"
#include "catalog/lease.h"
#include "kv/engine.h"
#include "loop/wait.h"
#include "store.h"

enum {
	LONG_MS = 60 * 1000, /* longer than a test takes */
	PATIENCE_MS = 30 * 1000,
};

struct work {
	atomic_uint turns;
	unsigned left; /* turns that leave more */
	unsigned budget;
	enum status status;
	struct event reached; /* set with the last turn that is expected */
	unsigned expected;
	struct event *hold; /* or NULL: a turn waits for it */
};

static enum status
work_turn(void *arg, struct chore_turn *turn, struct err *err)
{
	struct work *w = arg;

	w->budget = turn->budget;
	turn->done = 10;
	turn->more = w->left > 0;
	w->left -= turn->more;
	if (atomic_fetch_add(&w->turns, 1) + 1 == w->expected)
		event_set(&w->reached);
	if (w->hold)
		(void)event_wait(w->hold, clock_after_ms(PATIENCE_MS));
	return w->status == STATUS_OK ? STATUS_OK : err_set(err, w->status, "on purpose");
}

static void
work_init(struct work *w, unsigned expected)
{
	memset(w, 0, sizeof(*w));
	w->expected = expected;
	event_init(&w->reached);
}

static void
add(struct chores *chores, const char *name, struct work *w, enum chore_thread thread)
{
	chores_add(chores, &(struct chore){
				   .name = name,
				   .run = work_turn,
				   .arg = w,
				   .thread = thread,
				   .budget = 7,
				   .pause_ms = LONG_MS,
				   .more_ms = 1,
			   });
}

static void
wait_for(struct work *w)
{
	assert_true(event_wait(&w->reached, clock_after_ms(PATIENCE_MS)));
}

static void
each_has_its_first_turn_at_once_and_then_pauses(void **state)
{
	struct chores *chores = chores_new(NULL);
	struct work slow, quick;

	(void)state;
	work_init(&slow, 1);
	work_init(&quick, 1);
	add(chores, "slow", &slow, CHORE_REST);
	add(chores, "quick", &quick, CHORE_QUICK);
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	wait_for(&slow);
	wait_for(&quick);
	chores_stop(chores);
	chores_stop(chores);
	assert_int_equal(atomic_load(&slow.turns), 1);
	assert_int_equal(atomic_load(&quick.turns), 1);
	assert_int_equal(slow.budget, 7);
	chores_free(chores);
}

static void
one_that_is_hurried_does_not_pause(void **state)
{
	struct chores *chores = chores_new(NULL);
	struct work w, other;
	struct event go_on;

	(void)state;
	event_init(&go_on);
	work_init(&w, 1);
	work_init(&other, 1);
	w.hold = &go_on;
	add(chores, "work", &w, CHORE_REST);
	add(chores, "other", &other, CHORE_QUICK);
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	wait_for(&w);
	wait_for(&other);
	/* In the middle of a turn, which may have looked for work already: another one follows. */
	event_init(&w.reached);
	w.expected = 2;
	chores_hurry(chores, "work");
	chores_hurry(chores, "work");
	event_set(&go_on);
	wait_for(&w);
	/* Between two turns. */
	event_init(&w.reached);
	w.expected = 3;
	chores_hurry(chores, "work");
	wait_for(&w);
	chores_stop(chores);
	assert_int_equal(atomic_load(&w.turns), 3);
	assert_int_equal(atomic_load(&other.turns), 1);
	chores_free(chores);
}

/* A turn that wants the next one soon, until there are none left. */
static enum status
soon_turn(void *arg, struct chore_turn *turn, struct err *err)
{
	struct work *w = arg;
	enum status status = work_turn(arg, turn, err);

	turn->more = false;
	turn->soon_ms = w->left ? 1 : 0;
	return status;
}

static void
a_turn_says_when_it_wants_the_next_one(void **state)
{
	struct chores *chores = chores_new(NULL);
	struct work w;

	(void)state;
	work_init(&w, 6);
	w.left = 6;
	chores_add(chores,
		   &(struct chore){
			   .name = "work", .run = soon_turn, .arg = &w, .pause_ms = LONG_MS });
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	wait_for(&w);
	chores_stop(chores);
	assert_int_equal(atomic_load(&w.turns), 6);
	chores_free(chores);
}

static void
a_turn_is_planned_by_whoever_hurries_most_and_not_before_its_least_pause(void **state)
{
	struct chores *chores = chores_new(NULL);
	struct work w, slow, other;
	struct event hold;

	(void)state;
	event_init(&hold);
	work_init(&w, 1);
	work_init(&slow, 1);
	work_init(&other, 1);
	chores_add(chores, &(struct chore){ .name = "work",
					    .run = work_turn,
					    .arg = &w,
					    .thread = CHORE_ALONE,
					    .pause_ms = LONG_MS });
	chores_add(chores, &(struct chore){ .name = "slow",
					    .run = work_turn,
					    .arg = &slow,
					    .thread = CHORE_QUICK,
					    .pause_ms = 2 * LONG_MS,
					    .least_ms = LONG_MS });
	/* In a turn on the thread of the rest all the time: that delays none that is alone. */
	other.hold = &hold;
	add(chores, "other", &other, CHORE_REST);
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	wait_for(&w);
	wait_for(&slow);
	wait_for(&other);
	event_init(&w.reached);
	w.expected = 2;
	chores_hurry_by(chores, "work", LONG_MS / 2);
	chores_hurry_by(chores, "work", 1);
	chores_hurry_by(chores, "work", LONG_MS / 2);
	wait_for(&w);
	event_init(&w.reached);
	w.expected = 3;
	/* Such an early wish does not change the least pause of another chore. */
	chores_hurry(chores, "slow");
	chores_hurry_by(chores, "work", 1);
	wait_for(&w);
	event_set(&hold);
	chores_stop(chores);
	assert_int_equal(atomic_load(&w.turns), 3);
	assert_int_equal(atomic_load(&slow.turns), 1);
	chores_free(chores);
}

static void
more_to_do_brings_the_next_turn_sooner(void **state)
{
	struct chores *chores = chores_new(NULL);
	struct work w;

	(void)state;
	work_init(&w, 6);
	w.left = 5;
	add(chores, "work", &w, CHORE_REST);
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	wait_for(&w);
	chores_stop(chores);
	assert_int_equal(atomic_load(&w.turns), 6);
	chores_free(chores);
}

static void
failure_and_a_long_turn_delay_no_other_chore(void **state)
{
	struct chores *chores = chores_new(NULL);
	struct work failing, next, quick, held;
	struct event hold;

	(void)state;
	event_init(&hold);
	work_init(&failing, 1);
	work_init(&next, 1);
	work_init(&held, 1);
	work_init(&quick, 4);
	failing.status = STATUS_IO;
	quick.left = 3;
	held.hold = &hold;
	add(chores, "failing", &failing, CHORE_REST);
	add(chores, "next", &next, CHORE_REST);
	add(chores, "held", &held, CHORE_REST);
	add(chores, "quick", &quick, CHORE_QUICK);
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	wait_for(&next);
	wait_for(&held);
	wait_for(&quick); /* while the other thread is in a turn */
	event_set(&hold);
	chores_stop(chores);
	assert_int_equal(atomic_load(&failing.turns), 1);
	chores_free(chores);
}

static void
active_ones_are_listed(void **state)
{
	struct chores *chores = chores_new(NULL);
	struct chore_state listed[CHORES_MAX];
	struct work idle, held, unlisted;
	struct event hold, hold_unlisted;

	(void)state;
	event_init(&hold);
	event_init(&hold_unlisted);
	work_init(&idle, 1);
	work_init(&unlisted, 1);
	unlisted.hold = &hold_unlisted;
	work_init(&held, 1);
	held.hold = &hold;
	add(chores, "idle", &idle, CHORE_REST);
	add(chores, "held", &held, CHORE_REST);
	chores_add(chores, &(struct chore){ .name = "unlisted",
					    .run = work_turn,
					    .arg = &unlisted,
					    .thread = CHORE_QUICK,
					    .unlisted = true });
	assert_int_equal(chores_list(chores, 0, listed, CHORES_MAX), 0);
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	wait_for(&held);
	wait_for(&unlisted);
	assert_int_equal(chores_list(chores, 0, listed, CHORES_MAX), 1);
	assert_string_equal(listed[0].name, "held");
	assert_int_equal(listed[0].number, 2);
	assert_true(listed[0].running);
	assert_true(listed[0].started_ms > 0);
	assert_int_equal(chores_list(chores, LONG_MS, listed, CHORES_MAX), 0);
	event_set(&hold);
	event_set(&hold_unlisted);
	chores_stop(chores);
	assert_int_equal(chores_list(chores, 0, listed, CHORES_MAX), 0);
	chores_free(chores);
}

/* ---- Leased chores: each registry is a process that serves the store ---- */

struct fixture {
	char dir[64];
	struct kv_store *store;
	const struct kv_engine *engine; /* the store's own, which belongs to one process */
	struct kv_engine shared;        /* the same, said to be shared */
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];
	char url[256];

	assert_non_null(f);
	test_make_dir("chores", f->dir, sizeof(f->dir));
	snprintf(path, sizeof(path), "%s/store", f->dir);
	test_store_url(path, url, sizeof(url));
	assert_int_equal(kv_open(url, &options, &f->store, NULL), STATUS_OK);
	f->engine = f->store->engine;
	f->shared = *f->engine;
	f->shared.shared = true;
	f->store->engine = &f->shared;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	f->store->engine = f->engine;
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* A registry with one leased chore that is due again and again, and one that needs no lease. */
static struct chores *
start_process(struct kv_store *store, struct work *leased, struct work *own)
{
	struct chores *chores = chores_new(store);

	assert_non_null(chores);
	work_init(leased, 1);
	work_init(own, 1);
	chores_add(chores, &(struct chore){
				   .name = "leased",
				   .run = work_turn,
				   .arg = leased,
				   .leased = true,
				   .pause_ms = 10,
			   });
	add(chores, "own", own, CHORE_REST);
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	return chores;
}

static void
wait_ms(uint64_t ms)
{
	struct event never;

	event_init(&never);
	assert_false(event_wait(&never, clock_after_ms(ms)));
}

static void
one_process_runs_a_leased_chore_and_another_follows_it(void **state)
{
	struct fixture *f = *state;
	struct work leased[2], own[2];
	struct chores *first, *second;
	unsigned turns;

	first = start_process(f->store, &leased[0], &own[0]);
	wait_for(&leased[0]);
	second = start_process(f->store, &leased[1], &own[1]);
	wait_for(&own[0]);
	wait_for(&own[1]);
	turns = atomic_load(&leased[0].turns);
	wait_ms(leases_beat_ms() + leases_beat_ms() / 2);
	assert_true(atomic_load(&leased[0].turns) > turns);
	assert_int_equal(atomic_load(&leased[1].turns), 0);
	/* A process that stops gives its leases back. */
	chores_stop(first);
	turns = atomic_load(&leased[0].turns);
	wait_for(&leased[1]);
	assert_int_equal(atomic_load(&leased[0].turns), turns);
	chores_stop(second);
	chores_free(first);
	chores_free(second);
}

static uint64_t lost_ms = LEASE_MS; /* the time of the process that is lost */

/* What a process leaves that is killed while it holds the lease. */
static enum status
store_lost_process(struct kv_tx *tx, void *arg)
{
	const struct lease_record lease = { .process = STR("0123456789abcdef") };
	struct buf key = BUF_INIT(LEASE_KEY_BYTES);
	struct buf value = BUF_INIT(LEASE_KEY_BYTES);
	enum status status;

	(void)arg;
	assert_int_equal(lease_record_key(LEASE_BEATS, lease.process, &key), STATUS_OK);
	lease_record_put_beat(77, lost_ms, &value);
	status = kv_set(tx, buf_str(&key), buf_str(&value));
	assert_int_equal(lease_record_key(LEASE_CHORES, STR("leased"), &key), STATUS_OK);
	buf_clear(&value);
	lease_record_put(&lease, 0, &value);
	if (status == STATUS_OK)
		status = kv_set(tx, buf_str(&key), buf_str(&value));
	buf_release(&key);
	buf_release(&value);
	return status;
}

static void
lease_of_a_lost_process_is_taken_when_its_beat_stands_still(void **state)
{
	struct fixture *f = *state;
	struct work leased, own;
	struct chores *chores;
	uint64_t begun_ns = clock_mono_ns();

	assert_int_equal(kv_run(f->store, store_lost_process, NULL, NULL, NULL), STATUS_OK);
	chores = start_process(f->store, &leased, &own);
	wait_for(&own);
	wait_for(&leased);
	assert_true(clock_mono_ns() - begun_ns >= LEASE_MS * CLOCK_NS_PER_MS);
	chores_stop(chores);
	chores_free(chores);
}

/* The time of the process that is lost counts, not that of the one which takes its leases. */
static void
lease_of_a_process_with_a_shorter_time_is_taken_sooner(void **state)
{
	struct fixture *f = *state;
	struct work leased, own;
	struct chores *chores;
	uint64_t begun_ns = clock_mono_ns(), took_ns;

	lost_ms = LEASE_MS / 4;
	assert_int_equal(kv_run(f->store, store_lost_process, NULL, NULL, NULL), STATUS_OK);
	lost_ms = LEASE_MS;
	chores = start_process(f->store, &leased, &own);
	wait_for(&leased);
	took_ns = clock_mono_ns() - begun_ns;
	assert_true(took_ns >= LEASE_MS / 4 * CLOCK_NS_PER_MS);
	assert_true(took_ns < LEASE_MS * CLOCK_NS_PER_MS);
	chores_stop(chores);
	chores_free(chores);
}

static void
store_of_one_process_needs_no_lease(void **state)
{
	struct fixture *f = *state;
	struct work leased, own;
	struct chores *chores;

	/* Another's lease would be respected if there were leases. */
	assert_int_equal(kv_run(f->store, store_lost_process, NULL, NULL, NULL), STATUS_OK);
	f->store->engine = f->engine;
	chores = start_process(f->store, &leased, &own);
	assert_true(event_wait(&leased.reached, clock_after_ms(LEASE_MS / 2)));
	chores_stop(chores);
	chores_free(chores);
}

static void
as_many_as_there_may_be_have_their_leases_and_their_turns(void **state)
{
	struct fixture *f = *state;
	struct chores *chores = chores_new(f->store);
	struct work works[CHORES_MAX];
	char names[CHORES_MAX][8];

	assert_non_null(chores);
	for (size_t i = 0; i < CHORES_MAX; i++) {
		work_init(&works[i], 1);
		snprintf(names[i], sizeof(names[i]), "%zu", i);
		chores_add(chores, &(struct chore){ .name = names[i],
						    .run = work_turn,
						    .arg = &works[i],
						    .leased = true,
						    .pause_ms = LONG_MS });
	}
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
	for (size_t i = 0; i < CHORES_MAX; i++)
		wait_for(&works[i]);
	chores_stop(chores);
	chores_free(chores);
}

static void
chores_that_have_no_memory_for_leases_do_not_start(void **state)
{
	struct fixture *f = *state;
	struct chores *chores = chores_new(f->store);
	struct work leased;
	struct err err = { 0 };

	assert_non_null(chores);
	work_init(&leased, 1);
	chores_add(chores,
		   &(struct chore){
			   .name = "leased", .run = work_turn, .arg = &leased, .leased = true });
	(void)mem_fail_only(1);
	assert_int_equal(chores_start(chores, &err), STATUS_NOMEM);
	(void)mem_fail_only(0);
	assert_int_equal(err.status, STATUS_NOMEM);
	assert_int_equal(atomic_load(&leased.turns), 0);
	chores_free(chores);
}

/* ---- What is passed over ---- */

static uint64_t
passed_over(void)
{
	const struct metric *m = metric_find("frond_chore_passed_over_total");
	uint64_t sum = 0;

	assert_non_null(m);
	for (size_t i = 0; i < metric_series(m); i++) {
		int64_t value = 0;

		(void)metric_value(m, i, &value);
		sum += (uint64_t)value;
	}
	return sum;
}

static void
pass_over(const char *chore, unsigned record, bool counts)
{
	struct err err = { .status = STATUS_CORRUPT };
	uint64_t before = passed_over();
	char name[16];

	snprintf(name, sizeof(name), "%u", record);
	assert_int_equal(chore_pass_over(chore, str_from_cstr(name),
					 record % 2 ? STATUS_NEWER : STATUS_CORRUPT, &err),
			 STATUS_OK);
	assert_int_equal(err.status, STATUS_OK);
	assert_int_equal(passed_over() - before, counts);
}

static void
what_is_passed_over_counts_once_until_it_is_forgotten(void **state)
{
	struct err err = { .status = STATUS_IO };

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(chore_pass_over("chore", STR("any"), STATUS_IO, &err), STATUS_IO);
	assert_int_equal(err.status, STATUS_IO);
	assert_int_equal(chore_pass_over("chore", STR("any"), STATUS_NEWER, NULL), STATUS_OK);
	for (unsigned i = 0; i < CHORE_PASSED_KEPT; i++)
		pass_over("chore", i, true);
	/* The newest are remembered, of each chore by itself. */
	for (unsigned i = 0; i < CHORE_PASSED_KEPT; i++)
		pass_over("chore", i, false);
	pass_over("other", CHORE_PASSED_KEPT - 1, true);
	pass_over("chore", CHORE_PASSED_KEPT - 1, false);
	pass_over("chore", 1, false);
	pass_over("chore", 0, true);
	log_set_level(LOG_LEVEL_INFO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_its_first_turn_at_once_and_then_pauses),
		cmocka_unit_test(one_that_is_hurried_does_not_pause),
		cmocka_unit_test(a_turn_says_when_it_wants_the_next_one),
		cmocka_unit_test(
			a_turn_is_planned_by_whoever_hurries_most_and_not_before_its_least_pause),
		cmocka_unit_test(more_to_do_brings_the_next_turn_sooner),
		cmocka_unit_test(failure_and_a_long_turn_delay_no_other_chore),
		cmocka_unit_test(active_ones_are_listed),
		cmocka_unit_test(what_is_passed_over_counts_once_until_it_is_forgotten),
		cmocka_unit_test_setup_teardown(
			one_process_runs_a_leased_chore_and_another_follows_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			lease_of_a_lost_process_is_taken_when_its_beat_stands_still, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			lease_of_a_process_with_a_shorter_time_is_taken_sooner, setup, teardown),
		cmocka_unit_test_setup_teardown(store_of_one_process_needs_no_lease, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			as_many_as_there_may_be_have_their_leases_and_their_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(chores_that_have_no_memory_for_leases_do_not_start,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
