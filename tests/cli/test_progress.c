#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "cli/progress.h"

static void
assert_bytes(uint64_t bytes, const char *expected)
{
	char text[32];

	progress_format_bytes(bytes, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void
assert_text(struct progress_now now, bool terminal, const char *expected)
{
	char text[PROGRESS_TEXT_BYTES];

	progress_format(&now, terminal, text, sizeof(text));
	assert_string_equal(text, expected);
}

static void
bytes_have_three_digits_and_a_unit(void **state)
{
	(void)state;
	assert_bytes(0, "0 bytes");
	assert_bytes(999, "999 bytes");
	assert_bytes(1000, "1.0 kB");
	assert_bytes(99949, "99.9 kB");
	assert_bytes(99951, "100 kB");
	assert_bytes(999499, "999 kB");
	assert_bytes(999501, "1.0 MB");
	assert_bytes(12345678, "12.3 MB");
	assert_bytes(UINT64_MAX, "18.4 EB");
}

static void
terminal_gets_a_bar_with_percent_and_time_left(void **state)
{
	(void)state;
	assert_text((struct progress_now){ 500, 500000, 1000000, 2000 }, true,
		    "[############------------]  50 %  500 documents, 500 kB, 250 documents/s, "
		    "0:02 left");
	assert_text((struct progress_now){ 1, 1, 1000000, 4000 }, true,
		    "[------------------------]   0 %  1 documents, 1 bytes, 0 documents/s, "
		    "1111:06:36 left");
}

static void
plain_line_has_no_bar(void **state)
{
	(void)state;
	assert_text((struct progress_now){ 500, 250000, 1000000, 60000 }, false,
		    "25 %, 500 documents, 250 kB, 8 documents/s, 3:00 left");
}

static void
unknown_total_has_neither_percent_nor_time_left(void **state)
{
	(void)state;
	assert_text((struct progress_now){ 500, 250000, 0, 60000 }, true,
		    "500 documents, 250 kB, 8 documents/s");
}

static void
first_second_guesses_no_time_left(void **state)
{
	(void)state;
	assert_text((struct progress_now){ 10, 10, 100, 999 }, false,
		    "10 %, 10 documents, 10 bytes, 10 documents/s");
	assert_text((struct progress_now){ 0, 0, 100, 0 }, false,
		    "0 %, 0 documents, 0 bytes, 0 documents/s");
}

static void
file_that_grew_stays_at_a_hundred_percent(void **state)
{
	(void)state;
	assert_text((struct progress_now){ 10, 200, 100, 2000 }, true,
		    "[########################] 100 %  10 documents, 200 bytes, 5 documents/s");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_have_three_digits_and_a_unit),
		cmocka_unit_test(terminal_gets_a_bar_with_percent_and_time_left),
		cmocka_unit_test(plain_line_has_no_bar),
		cmocka_unit_test(unknown_total_has_neither_percent_nor_time_left),
		cmocka_unit_test(first_second_guesses_no_time_left),
		cmocka_unit_test(file_that_grew_stays_at_a_hundred_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
