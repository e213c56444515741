/* Workers that answer nonsense: an error of the call, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common.h"

static struct fixture f;

static int
open_fake(void **state)
{
	struct js_config config = fixture_config();

	(void)state;
	config.worker = getenv("FROND_JS_FAKE_WORKER");
	config.timeout_ms = 300;
	fixture_open(&f, &config);
	return 0;
}

static int
close_fake(void **state)
{
	(void)state;
	fixture_close(&f);
	return 0;
}

/* Maps a document of that many bytes by a worker that behaves like that. */
static enum status
map_with(const char *how, size_t bytes, struct js_call *call)
{
	static struct js_design design;
	const struct str view = STR("v");
	struct str doc = arena_printf(f.arena, "\"%0*d\"", (int)bytes, 0);
	struct js_mapped m = { 0 };
	enum status status;

	setenv("LANG", how, 1);
	design = design_of(1, "{}");
	*call = call_of(&f, &design, JS_LANE_INDEX);
	status = js_map(call, &view, 1, &doc, 1, &m, &f.err);
	js_mapped_release(&m);
	return status;
}

static void
bad_answers_fail_their_call(void **state)
{
	static const char *const ways[] = { "exit",     "noise",      "huge",
					    "number",   "kind",       "nothing_done",
					    "no_error", "unfinished", "too_much_done",
					    "flood" };
	struct js_call call;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		assert_int_equal(map_with(ways[i], 10, &call), STATUS_FUNCTION);
		assert_true(str_eq(call.error.name, STR("os_process_error")));
		await_workers(f.js, 0);
	}
}

static void
a_second_answer_ends_the_worker(void **state)
{
	struct js_call call;

	(void)state;
	assert_int_equal(map_with("twice", 10, &call), STATUS_OK);
	await_workers(f.js, 0);
}

/* The answer comes before its call has been read: also if the call does not fit into a socket. */
static void
an_answer_to_what_was_not_read_ends_the_worker(void **state)
{
	struct js_call call;
	enum status status;

	(void)state;
	status = map_with("unread", 32 * 1024 * 1024, &call);
	assert_true(status == STATUS_FUNCTION || status == STATUS_UNAVAILABLE);
	await_workers(f.js, 0);
}

static void
a_bad_greeting_is_no_worker(void **state)
{
	struct js_call call;

	(void)state;
	assert_int_equal(map_with("bad_hello", 10, &call), STATUS_UNAVAILABLE);
	await_workers(f.js, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_answers_fail_their_call),
		cmocka_unit_test(a_second_answer_ends_the_worker),
		cmocka_unit_test(an_answer_to_what_was_not_read_ends_the_worker),
		cmocka_unit_test(a_bad_greeting_is_no_worker),
	};

	return cmocka_run_group_tests(tests, open_fake, close_fake);
}
