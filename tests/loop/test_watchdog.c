/* What the watchdog logs of holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "loop/watchdog.h"

enum {
	TURN_US = 10 * 1000,
	TURNS = 60 * 100,
	LOG_BYTES = 64 * 1024,
};

/* How often `what` is in the log. */
static int
told(FILE *log, const char *what)
{
	static char text[LOG_BYTES];
	ssize_t n = pread(fileno(log), text, sizeof(text) - 1, 0);
	int count = 0;

	assert_true(n >= 0);
	text[n] = 0;
	for (const char *at = text; (at = strstr(at, what)); at++)
		count++;
	return count;
}

static void
wait_until_told(FILE *log, const char *what)
{
	for (int i = 0; i < TURNS && !told(log, what); i++)
		usleep(TURN_US);
	assert_int_equal(told(log, what), 1);
}

static void
a_hold_that_lasts_is_logged_although_another_one_was_just_before(void **state)
{
	struct watchdog_label first = { 0 }, second = { 0 };
	FILE *own = stderr, *log = tmpfile();
	struct watchdog_post post;
	struct err err = { 0 };

	(void)state;
	assert_non_null(log);
	setvbuf(log, NULL, _IONBF, 0);
	stderr = log;
	watchdog_label_set(&first, STR("GET"), STR("/first"));
	watchdog_label_set(&second, STR("GET"), STR("/second"));
	assert_int_equal(watchdog_start(&err), STATUS_OK);
	watchdog_add(&post, "loop", false);
	watchdog_begin(&post, &first);
	wait_until_told(log, "doing=\"GET /first\" before=0");
	watchdog_end(&post);
	/* The next line about a hold may come in WATCHDOG_LOG_MS: this one is under way by then. */
	watchdog_begin(&post, &second);
	wait_until_told(log, "doing=\"GET /second\" before=0");
	watchdog_end(&post);
	for (int i = 0; i < TURNS && told(log, "event=loop_released") < 2; i++)
		usleep(TURN_US);
	assert_int_equal(told(log, "event=loop_released"), 2);
	assert_int_equal(told(log, "event=loop_held"), 2);
	watchdog_remove(&post);
	watchdog_stop();
	stderr = own;
	fclose(log);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hold_that_lasts_is_logged_although_another_one_was_just_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
