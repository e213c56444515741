/* Calls that are sent to a worker behind others, from fibers of one loop. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/metric.h"
#include "common.h"
#include "loop/pool.h"
#include "loop/task.h"

enum {
	QUICK = 12, /* calls that come together: one, and those behind it */
	TIMES = 40,
	LONG_TIMES = 3,
	VALIDATE_ANSWERED = 4, /* the place among the series of frond_js_calls_total */
	PRIMING = 5,           /* calls until a worker is known to be quick */
	TIMEOUT_MS = 4000,     /* a quick call may take a while on a busy machine */
	TASK_BYTES = 4 * 1024 * 1024,
};

struct world;

/* A call: the document's number and what it has the function do, and how that has ended. */
struct asked {
	struct world *world;
	const char *todo;
	int number;
	bool stops; /* nobody waits for it any more when all others have ended */
	enum status status;
	char said[64]; /* what the function has thrown */
	char why[64];  /* why it has failed */
};

struct world {
	struct fixture f;
	struct loop loop;
	void (*play)(struct world *w); /* what the first fiber does */
	struct asked asked[QUICK];
	unsigned running; /* fibers that it waits for */
	struct event none_runs;
	unsigned ended; /* calls */
	struct event others_ended;
	unsigned wrong; /* answers that are not those of their calls */
	bool first_killed;
};

/* Throws the document's number, having done what the document says. */
static const char design_text[] =
	"{\"validate_doc_update\":\"function (doc) {"
	"if (doc.todo == 'loop') for (;;);"
	"if (doc.todo == 'loop for long') { var end = Date.now() + 300; while (Date.now() < end); }"
	"throw { forbidden: 'number ' + doc.number };"
	"}\"}";

static void
ask(struct asked *a)
{
	struct world *w = a->world;
	struct arena *arena = arena_new(TASK_BYTES);
	struct js_design design = design_of(1, design_text);
	struct js_call call = call_of(&w->f, &design, JS_LANE_REQUEST);
	struct js_verdict verdict = { 0 };
	struct err err = { 0 };
	struct js_edit edit = { .old = STR("null") };

	assert_non_null(arena);
	call.arena = arena;
	call.stop = a->stops ? &w->others_ended : NULL;
	edit.doc = arena_printf(arena, "{\"todo\":\"%s\",\"number\":%d}", a->todo, a->number);
	a->status = js_validate(&call, STR("{}"), STR("{}"), &edit, 1, &verdict, &err);
	if (a->status == STATUS_OK)
		snprintf(a->said, sizeof(a->said), "%.*s", STR_ARG(verdict.error.reason));
	snprintf(a->why, sizeof(a->why), "%.*s", STR_ARG(call.error.reason));
	if (++w->ended == QUICK - 1)
		event_set(&w->others_ended);
	arena_free(arena);
}

static void
fiber_ended(struct world *w)
{
	if (--w->running == 0)
		event_set(&w->none_runs);
}

static void
fiber_ask(void *arg)
{
	struct asked *a = arg;

	ask(a);
	fiber_ended(a->world);
}

/* Nobody may fail a test on a fiber. */
static void
fiber_kill(void *arg)
{
	struct world *w = arg;
	long pid = 0;

	w->first_killed = js_workers(w->f.js, &pid, 1) == 1 && kill((pid_t)pid, SIGKILL) == 0;
	fiber_ended(w);
}

static void
fiber_stop(void *arg)
{
	struct world *w = arg;

	js_stop(w->f.js);
	fiber_ended(w);
}

static void
world_spawn(struct world *w, void (*fn)(void *), void *arg)
{
	w->running++;
	if (task_spawn(&w->loop, fn, arg) != STATUS_OK)
		abort();
}

/* Until a worker is known to be quick. */
static void
prime(struct world *w)
{
	for (int i = 0; i < PRIMING; i++) {
		struct asked a = { .world = w, .todo = "" };

		ask(&a);
		w->wrong += a.status != STATUS_OK;
	}
}

static bool
is_answered(const struct asked *a)
{
	char want[64];

	snprintf(want, sizeof(want), "\"number %d\"", a->number);
	return a->status == STATUS_OK && strcmp(a->said, want) == 0;
}

/* All at once: the one at `at` does what `todo` says, and the others are quick. */
static void
ask_all(struct world *w, size_t at, const char *todo, bool stops, void (*then)(void *))
{
	event_init(&w->none_runs);
	event_init(&w->others_ended);
	w->ended = 0;
	for (size_t i = 0; i < QUICK; i++) {
		w->asked[i] = (struct asked){
			.world = w,
			.todo = i == at ? todo : "",
			.number = (int)i,
			.stops = stops && i == at,
		};
		world_spawn(w, fiber_ask, &w->asked[i]);
	}
	if (then)
		world_spawn(w, then, w);
	(void)event_wait(&w->none_runs, WAIT_FOREVER);
	for (size_t i = 0; i < QUICK; i++)
		w->wrong += i != at && !is_answered(&w->asked[i]);
}

static void
fiber_play(void *arg)
{
	struct world *w = arg;

	prime(w);
	w->play(w);
	loop_stop(&w->loop);
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
world_run(struct world *w, uint64_t timeout_ms, void (*play)(struct world *w))
{
	static const struct loop_hooks hooks = { do_nothing, is_not_alone };
	struct js_config config = fixture_config();
	struct loop_config loop_config = { .hooks = &hooks, .task_bytes = TASK_BYTES };

	*w = (struct world){ .play = play };
	if (timeout_ms)
		config.timeout_ms = timeout_ms;
	fixture_open(&w->f, &config);
	assert_int_equal(pool_new(1, &loop_config.pool, &w->f.err), STATUS_OK);
	assert_int_equal(loop_init(&w->loop, &loop_config, &w->f.err), STATUS_OK);
	assert_int_equal(task_spawn(&w->loop, fiber_play, w), STATUS_OK);
	loop_run(&w->loop);
	loop_fini(&w->loop);
	pool_free(loop_config.pool);
	fixture_close(&w->f);
}

static int64_t
counted_at(const char *name, size_t series)
{
	int64_t ret = 0;

	assert_true(metric_value(metric_find(name), series, &ret));
	return ret;
}

static int64_t
counted(const char *name)
{
	return counted_at(name, 0);
}

static void
play_together(struct world *w)
{
	for (int i = 0; i < TIMES; i++)
		ask_all(w, QUICK, "", false, NULL);
}

static void
calls_that_come_together_get_their_own_answers(void **state)
{
	int64_t before = counted("frond_js_calls_behind_total");
	struct world w;

	(void)state;
	world_run(&w, 0, play_together);
	assert_int_equal(w.wrong, 0);
	assert_true(counted("frond_js_calls_behind_total") > before);
}

static void
play_loop(struct world *w)
{
	ask_all(w, 0, "loop", true, NULL);
}

/* They go to a worker that is started for them. */
static void
calls_behind_a_loop_do_not_wait_for_its_end(void **state)
{
	int64_t before = counted("frond_js_calls_behind_total");
	struct world w;

	(void)state;
	world_run(&w, 0, play_loop);
	assert_int_equal(w.wrong, 0);
	assert_true(counted("frond_js_calls_behind_total") > before);
	assert_int_equal(w.asked[0].status, STATUS_CANCELLED);
}

static void
play_long(struct world *w)
{
	for (int i = 0; i < LONG_TIMES; i++) {
		ask_all(w, 0, "loop for long", false, NULL);
		w->wrong += !is_answered(&w->asked[0]);
		prime(w);
	}
}

/*
 * After a while it also answers what it has been asked behind that. Those answers are dropped, and
 * not counted.
 */
static void
a_worker_that_took_long_is_asked_again(void **state)
{
	int64_t before = counted_at("frond_js_calls_total", VALIDATE_ANSWERED);
	struct world w;

	(void)state;
	world_run(&w, 0, play_long);
	assert_int_equal(w.wrong, 0);
	assert_int_equal(counted_at("frond_js_calls_total", VALIDATE_ANSWERED) - before,
			 PRIMING + LONG_TIMES * (QUICK + PRIMING));
}

static void
play_death(struct world *w)
{
	ask_all(w, 0, "loop", true, fiber_kill);
}

/* Who has made it end is not known, so the first one is asked again, too. */
static void
calls_together_whose_worker_dies_are_asked_again(void **state)
{
	struct world w;

	(void)state;
	world_run(&w, 0, play_death);
	assert_true(w.first_killed);
	assert_int_equal(w.wrong, 0);
	assert_int_equal(w.asked[0].status, STATUS_CANCELLED);
}

static void
play_loop_behind(struct world *w)
{
	ask_all(w, QUICK / 2, "loop", false, NULL);
}

/* Those in front of it have had their answers. */
static void
a_call_that_loops_behind_others_is_the_one_that_fails(void **state)
{
	struct world w;

	(void)state;
	world_run(&w, TIMEOUT_MS, play_loop_behind);
	assert_int_equal(w.wrong, 0);
	assert_int_equal(w.asked[QUICK / 2].status, STATUS_FUNCTION);
	assert_string_equal(w.asked[QUICK / 2].why, JS_TIMED_OUT);
}

static void
play_end(struct world *w)
{
	ask_all(w, 0, "loop", false, fiber_stop);
}

static void
calls_behind_others_end_when_the_process_stops(void **state)
{
	struct world w;

	(void)state;
	world_run(&w, 0, play_end);
	for (size_t i = 0; i < QUICK; i++)
		assert_int_equal(w.asked[i].status, STATUS_CANCELLED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_come_together_get_their_own_answers),
		cmocka_unit_test(calls_behind_a_loop_do_not_wait_for_its_end),
		cmocka_unit_test(a_worker_that_took_long_is_asked_again),
		cmocka_unit_test(calls_together_whose_worker_dies_are_asked_again),
		cmocka_unit_test(a_call_that_loops_behind_others_is_the_one_that_fails),
		cmocka_unit_test(calls_behind_others_end_when_the_process_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
