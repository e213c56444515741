/* Events between threads, and fibers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "loop/fiber.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/pause.h"
#include "loop/pool.h"
#include "loop/task.h"
#include "loop/wait.h"

static void *
set_soon(void *arg)
{
	usleep(2000);
	event_set(arg);
	return NULL;
}

static void *
set_at_once(void *arg)
{
	event_set(arg);
	return NULL;
}

static void
a_thread_waits_until_another_sets_the_event(void **state)
{
	pthread_t thread;
	struct event e;

	(void)state;
	event_init(&e);
	assert_false(event_is_set(&e));
	assert_int_equal(pthread_create(&thread, NULL, set_soon, &e), 0);
	assert_true(event_wait(&e, WAIT_FOREVER));
	assert_true(event_is_set(&e));
	event_set(&e);
	assert_true(event_wait(&e, 0));
	pthread_join(thread, NULL);
}

static void
a_pause_lasts_as_long_as_it_says(void **state)
{
	uint64_t begin = clock_mono_ns();

	(void)state;
	wait_pause(20);
	assert_true(clock_mono_ns() >= begin + 20 * CLOCK_NS_PER_MS);
	/* What is over is not waited for. */
	wait_pause_until(begin);
	wait_pause_until(0);
}

static void
the_deadline_ends_a_wait(void **state)
{
	uint64_t begin = clock_mono_ns();
	struct event a;
	struct event b;
	struct event *both[] = { &a, &b };

	(void)state;
	event_init(&a);
	event_init(&b);
	assert_false(event_wait(&a, begin + 20 * CLOCK_NS_PER_MS));
	assert_true(clock_mono_ns() >= begin + 20 * CLOCK_NS_PER_MS);
	assert_int_equal(event_wait_any(both, 2, 0), 2);
	event_set(&b);
	assert_int_equal(event_wait_any(both, 2, WAIT_FOREVER), 1);
	event_set(&a);
	assert_int_equal(event_wait_any(both, 2, WAIT_FOREVER), 0);
}

static void
a_late_setter_does_no_harm(void **state)
{
	enum {
		ROUNDS = 2000
	};

	(void)state;
	/* The waiter frees the event as soon as it sees it set, while the setter is still in it. */
	for (int i = 0; i < ROUNDS; i++) {
		struct event *e = mem_alloc(sizeof(*e));
		pthread_t thread;

		event_init(e);
		assert_int_equal(pthread_create(&thread, NULL, set_at_once, e), 0);
		while (!event_wait(e, i % 2 ? WAIT_FOREVER : clock_mono_ns() + 50000))
			;
		mem_free(e);
		pthread_join(thread, NULL);
	}
}

struct ball {
	struct event there[1000];
	struct event back[1000];
};

static void *
play(void *arg)
{
	struct ball *ball = arg;

	for (int i = 0; i < 1000; i++) {
		event_wait(&ball->there[i], WAIT_FOREVER);
		event_set(&ball->back[i]);
	}
	return NULL;
}

static void
no_wake_is_lost(void **state)
{
	static struct ball ball;
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		event_init(&ball.there[i]);
		event_init(&ball.back[i]);
	}
	assert_int_equal(pthread_create(&thread, NULL, play, &ball), 0);
	for (int i = 0; i < 1000; i++) {
		event_set(&ball.there[i]);
		assert_true(event_wait(&ball.back[i], clock_after_ms(20000)));
	}
	pthread_join(thread, NULL);
}

static void
note_thread(void *arg)
{
	*(pthread_t *)arg = pthread_self();
}

static void
a_plain_thread_does_blocking_work_itself(void **state)
{
	pthread_t thread;

	(void)state;
	assert_false(wait_on_fiber());
	wait_offload(note_thread, &thread);
	assert_true(pthread_equal(thread, pthread_self()));
	wait_yield();
}

/* ---- Fibers ---- */

struct counter {
	struct fiber *fiber;
	int steps;
	int count;
};

static void
count_up(void *arg)
{
	struct counter *c = arg;
	volatile char deep[4096];

	for (int i = 0; i < c->steps; i++) {
		deep[i * 7 % sizeof(deep)] = (char)i;
		c->count += 1 + (deep[i * 7 % sizeof(deep)] != (char)i);
		fiber_leave(c->fiber);
	}
}

static void
a_fiber_goes_on_where_it_left(void **state)
{
	struct counter c = { .fiber = fiber_new(), .steps = 5 };

	(void)state;
	assert_non_null(c.fiber);
	for (int round = 1; round <= 3; round++) {
		fiber_start(c.fiber, count_up, &c);
		for (int i = 0; i < 5; i++)
			assert_false(fiber_enter(c.fiber));
		assert_true(fiber_enter(c.fiber));
		assert_int_equal(c.count, 5 * round);
	}
	fiber_free(c.fiber);
	fiber_free(NULL);
}

static void
many_fibers_take_turns(void **state)
{
	enum {
		FIBERS = 100
	};
	struct counter counters[FIBERS];
	int running = FIBERS;

	(void)state;
	for (int i = 0; i < FIBERS; i++) {
		counters[i] = (struct counter){ .fiber = fiber_new(), .steps = i };
		assert_non_null(counters[i].fiber);
		fiber_start(counters[i].fiber, count_up, &counters[i]);
	}
	for (int turn = 0; turn < FIBERS; turn++)
		for (int i = turn; i < FIBERS; i++)
			running -= fiber_enter(counters[i].fiber);
	assert_int_equal(running, 0);
	for (int i = 0; i < FIBERS; i++) {
		assert_int_equal(counters[i].count, i);
		fiber_free(counters[i].fiber);
	}
}

static int
sum_deep(int n)
{
	volatile char frame[512];

	frame[0] = (char)n;
	return n == 0 ? 0 : 1 + sum_deep(n - 1) + (frame[0] != (char)n);
}

static void
go_deep(void *arg)
{
	*(int *)arg = sum_deep(250);
}

static void
a_fiber_has_the_stack_it_promises(void **state)
{
	struct fiber *f = fiber_new();
	int depth = 0;

	(void)state;
	assert_non_null(f);
	fiber_start(f, go_deep, &depth);
	assert_true(fiber_enter(f));
	assert_int_equal(depth, 250);
	fiber_free(f);
}

static void *
free_fiber(void *arg)
{
	fiber_free(arg);
	return NULL;
}

static void
an_idle_fiber_can_be_freed_by_another_thread(void **state)
{
	struct counter c = { .fiber = fiber_new(), .steps = 1 };
	pthread_t thread;

	(void)state;
	assert_non_null(c.fiber);
	fiber_start(c.fiber, count_up, &c);
	assert_false(fiber_enter(c.fiber));
	assert_true(fiber_enter(c.fiber));
	assert_int_equal(pthread_create(&thread, NULL, free_fiber, c.fiber), 0);
	pthread_join(thread, NULL);
}

static void *
run_fibers(void *arg)
{
	(void)arg;
	for (int round = 0; round < 50; round++) {
		struct counter c = { .fiber = fiber_new(), .steps = 20 };

		if (!c.fiber)
			abort();
		fiber_start(c.fiber, count_up, &c);
		while (!fiber_enter(c.fiber))
			;
		fiber_free(c.fiber);
		if (c.count != 20)
			abort();
	}
	return NULL;
}

static void
threads_run_fibers_of_their_own(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_fibers, NULL), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
	}
}

static void
a_fiber_without_memory_is_null(void **state)
{
	(void)state;
	mem_fail_after(1);
	assert_null(fiber_new());
	mem_fail_after(0);
}

/* ---- The pool ---- */

static struct {
	struct loop loop;
	struct event has_read;
	bool waited;
	int nice_reading;
	int nice_computing;
	unsigned left;
} pooled;

static int
nice_of_thread(void)
{
	return getpriority(PRIO_PROCESS, (id_t)gettid());
}

static void
read_for_long(void *arg)
{
	(void)arg;
	pooled.nice_reading = nice_of_thread();
	event_set(&pooled.has_read);
}

static void
compute_beside_a_reader(void *arg)
{
	(void)arg;
	pooled.nice_computing = nice_of_thread();
	pooled.waited = event_wait(&pooled.has_read, clock_after_ms(10 * 1000));
}

static void
pooled_ended(void)
{
	if (--pooled.left == 0)
		loop_stop(&pooled.loop);
}

static void
pooled_computer(void *arg)
{
	(void)arg;
	wait_compute(compute_beside_a_reader, NULL);
	pooled_ended();
}

static void
pooled_reader(void *arg)
{
	(void)arg;
	wait_offload(read_for_long, NULL);
	pooled_ended();
}

static void
work_that_computes_delays_no_read_and_has_the_priority_of_its_waiters(void **state)
{
	struct loop_config config = { .task_bytes = 1 << 20 };
	struct err err;

	(void)state;
	assert_int_equal(pool_new(1, &config.pool, &err), STATUS_OK);
	assert_int_equal(loop_init(&pooled.loop, &config, &err), STATUS_OK);
	event_init(&pooled.has_read);
	pooled.left = 2;
	assert_int_equal(task_spawn(&pooled.loop, pooled_computer, NULL), STATUS_OK);
	assert_int_equal(task_spawn(&pooled.loop, pooled_reader, NULL), STATUS_OK);
	loop_run(&pooled.loop);
	loop_fini(&pooled.loop);
	pool_free(config.pool);
	assert_true(pooled.waited);
	assert_int_equal(pooled.nice_reading, nice_of_thread());
	/* At a lower one it would starve beside other processes that compute. */
	assert_int_equal(pooled.nice_computing, nice_of_thread());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_waits_until_another_sets_the_event),
		cmocka_unit_test(a_pause_lasts_as_long_as_it_says),
		cmocka_unit_test(the_deadline_ends_a_wait),
		cmocka_unit_test(a_late_setter_does_no_harm),
		cmocka_unit_test(no_wake_is_lost),
		cmocka_unit_test(a_plain_thread_does_blocking_work_itself),
		cmocka_unit_test(a_fiber_goes_on_where_it_left),
		cmocka_unit_test(many_fibers_take_turns),
		cmocka_unit_test(a_fiber_has_the_stack_it_promises),
		cmocka_unit_test(an_idle_fiber_can_be_freed_by_another_thread),
		cmocka_unit_test(threads_run_fibers_of_their_own),
		cmocka_unit_test(a_fiber_without_memory_is_null),
		cmocka_unit_test(
			work_that_computes_delays_no_read_and_has_the_priority_of_its_waiters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
