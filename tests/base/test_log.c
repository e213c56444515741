/* Lines of the log: what a client's text cannot do to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/str.h"

enum {
	LINE_BYTES = 4096,
	LONG_BYTES = 3000, /* longer than a line may be */
};

static char line[LINE_BYTES];
static FILE *file;
static int stderr_before;

static void
log_begin(void)
{
	(void)fflush(stderr);
	file = tmpfile();
	assert_non_null(file);
	stderr_before = dup(STDERR_FILENO);
	assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
}

/* What was logged since, from `event=` on. */
static const char *
logged(void)
{
	const char *event;
	size_t n;

	(void)fflush(stderr);
	assert_true(dup2(stderr_before, STDERR_FILENO) >= 0);
	(void)close(stderr_before);
	rewind(file);
	n = fread(line, 1, sizeof(line) - 1, file);
	line[n] = '\0';
	(void)fclose(file);
	event = strstr(line, "event=");
	assert_non_null(event);
	return event;
}

static void
values_are_written_as_printf_does(void **state)
{
	const struct str cut = STR("abcdef");

	(void)state;
	log_begin();
	log_event(LOG_LEVEL_WARN, "e", "a=%d b=%u c=%ld d=%lld e=%llu f=%zu g=%s h=%.*s i=%.*s", -1,
		  2U, -3L, -4LL, 18446744073709551615ULL, (size_t)6, "seven", 3, cut.ptr, 0, "x");
	assert_string_equal(logged(), "event=e a=-1 b=2 c=-3 d=-4 e=18446744073709551615 f=6 "
				      "g=seven h=abc i=\n");
	log_begin();
	log_event(LOG_LEVEL_WARN, "nothing", "%s", "");
	assert_string_equal(logged(), "event=nothing \n");
}

static void
a_text_between_quotes_stays_there(void **state)
{
	(void)state;
	log_begin();
	log_event(LOG_LEVEL_WARN, "e", "reason=\"%s\" file=\"%.*s\" left=%d",
		  "no \"x\" user=\"root\"\nlevel=error \\", 4, "a\"bcd", 1);
	assert_string_equal(logged(),
			    "event=e reason=\"no %22x%22 user=%22root%22?level=error %5C\" "
			    "file=\"a%22bc\" left=1\n");
}

static void
what_a_door_has_quoted_itself_stays_as_it_is(void **state)
{
	(void)state;
	log_begin();
	log_event(LOG_LEVEL_WARN, "e", "%.*s user=\"%s\"", 8, "on=\"a%22\"", "j%20n");
	assert_string_equal(logged(), "event=e on=\"a%22 user=\"j%20n\"\n");
}

static void
a_long_line_is_cut_and_ends(void **state)
{
	char longer[LONG_BYTES];
	const char *text;

	(void)state;
	memset(longer, '"', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	log_begin();
	log_event(LOG_LEVEL_WARN, "e", "reason=\"%s\" n=%llu", longer, 1ULL);
	text = logged();
	assert_true(strlen(line) < LONG_BYTES);
	assert_true(strchr(text, '\n') == text + strlen(text) - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_written_as_printf_does),
		cmocka_unit_test(a_text_between_quotes_stays_there),
		cmocka_unit_test(what_a_door_has_quoted_itself_stays_as_it_is),
		cmocka_unit_test(a_long_line_is_cut_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
