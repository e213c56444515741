/* Calls from many fibers of one loop, which goes on meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/clock.h"
#include "common.h"
#include "loop/pool.h"
#include "loop/task.h"

enum {
	FIBERS = 24,
	CALLS = 20,
	TICK_MS = 5,
	LOOP_MS = 2000, /* that a function loops; a tick is as late if the loop waits for it */
	TASK_BYTES = 4 * 1024 * 1024,
	ATTACKER = 1,
	NEIGHBOUR = 2,
};

static struct fixture f;
static struct loop loop;
static unsigned running; /* fibers that have not ended */
static unsigned allowed;
static unsigned failed;
static uint64_t latest_ms;

static void
fiber_ended(void)
{
	if (--running == 0)
		loop_stop(&loop);
}

static enum status
validate(uint64_t owner, const char *text, struct arena *arena)
{
	struct js_design design = design_of(owner, text);
	struct js_call call = call_of(&f, &design, JS_LANE_REQUEST);
	const struct js_edit edit = { STR("{}"), STR("null") };
	struct js_verdict verdict;
	struct err err;

	call.arena = arena;
	return js_validate(&call, STR("{}"), STR("{}"), &edit, 1, &verdict, &err);
}

static void
call_often(void *arg)
{
	struct arena *arena = arena_new(TASK_BYTES);

	(void)arg;
	for (int i = 0; i < CALLS; i++)
		allowed += validate(NEIGHBOUR, "{\"validate_doc_update\":\"function () {}\"}",
				    arena) == STATUS_OK;
	arena_free(arena);
	fiber_ended();
}

static void
call_a_loop(void *arg)
{
	struct arena *arena = arena_new(TASK_BYTES);

	(void)arg;
	failed += validate(ATTACKER, "{\"validate_doc_update\":\"function () { for (;;); }\"}",
			   arena) == STATUS_FUNCTION;
	arena_free(arena);
	fiber_ended();
}

/* Sees how late the loop is. */
static void
tick(void *arg)
{
	(void)arg;
	while (running > 1) {
		uint64_t due_ns = clock_after_ms(TICK_MS);
		struct event never;
		uint64_t late_ms;

		event_init(&never);
		(void)event_wait(&never, due_ns);
		late_ms = (clock_mono_ns() - due_ns) / CLOCK_NS_PER_MS;
		latest_ms = late_ms > latest_ms ? late_ms : latest_ms;
	}
	fiber_ended();
}

static void
do_nothing(struct loop *l)
{
	(void)l;
}

static bool
is_not_alone(const struct loop *l)
{
	(void)l;
	return false;
}

static void
fibers_wait_for_workers_and_the_loop_goes_on(void **state)
{
	static const struct loop_hooks hooks = { do_nothing, is_not_alone };
	struct js_config config = fixture_config();
	struct loop_config loop_config = { .hooks = &hooks, .task_bytes = TASK_BYTES };

	(void)state;
	config.timeout_ms = LOOP_MS;
	fixture_open(&f, &config);
	assert_int_equal(pool_new(1, &loop_config.pool, &f.err), STATUS_OK);
	assert_int_equal(loop_init(&loop, &loop_config, &f.err), STATUS_OK);
	running = FIBERS + 3;
	for (int i = 0; i < FIBERS; i++)
		assert_int_equal(task_spawn(&loop, call_often, NULL), STATUS_OK);
	assert_int_equal(task_spawn(&loop, call_a_loop, NULL), STATUS_OK);
	assert_int_equal(task_spawn(&loop, call_a_loop, NULL), STATUS_OK);
	assert_int_equal(task_spawn(&loop, tick, NULL), STATUS_OK);
	loop_run(&loop);
	loop_fini(&loop);
	pool_free(loop_config.pool);
	fprintf(stderr, "# the loop was late by %llu ms at most\n", (unsigned long long)latest_ms);
	assert_int_equal(allowed, FIBERS * CALLS);
	assert_int_equal(failed, 2);
	assert_true(latest_ms < LOOP_MS - TICK_MS);
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fibers_wait_for_workers_and_the_loop_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
