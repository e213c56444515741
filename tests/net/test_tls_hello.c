/* How long a client's first message says it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/tls_hello.h"

#define LONG "\x01\x00\x20\x01" /* a ClientHello of 8,193 bytes */

static size_t
length_of(struct str in)
{
	size_t ret = 12345;

	assert_true(tls_hello_length(in, &ret));
	return ret;
}

static void
is_unknown(struct str in)
{
	size_t ret = 12345;

	assert_false(tls_hello_length(in, &ret));
	assert_int_equal(ret, 0);
}

static void
a_length_is_known_from_the_header_on(void **state)
{
	const char one[] = "\x16\x03\x01\x01\x00" LONG;

	(void)state;
	for (size_t n = 0; n < sizeof(one) - 1; n++)
		is_unknown(str_of(one, n));
	assert_int_equal(length_of(str_of(one, sizeof(one) - 1)), 8193);
	assert_int_equal(length_of(STR("\x16\x03\x01\x00\x05\x01\xff\xff\xff\x03")), 0xffffff);
}

static void
a_header_may_be_in_several_records(void **state)
{
	const char four[] = "\x16\x03\x01\x00\x01\x01"
			    "\x16\x03\x01\x00\x01\x00"
			    "\x16\x03\x01\x00\x01\x20"
			    "\x16\x03\x01\x00\x07\x01";

	(void)state;
	for (size_t n = 0; n < sizeof(four) - 1; n++)
		is_unknown(str_of(four, n));
	assert_int_equal(length_of(str_of(four, sizeof(four) - 1)), 8193);
}

static void
what_is_no_first_message_is_left_to_others(void **state)
{
	(void)state;
	/* Another message, an empty record, an alert in front of the rest. */
	assert_int_equal(length_of(STR("\x16\x03\x01\x01\x00\x02\x00\x20\x01")), 0);
	assert_int_equal(length_of(STR("\x16\x03\x01\x00\x00")), 0);
	assert_int_equal(length_of(STR("\x16\x03\x01\x00\x01\x01\x15\x03\x01\x00\x02")), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_length_is_known_from_the_header_on),
		cmocka_unit_test(a_header_may_be_in_several_records),
		cmocka_unit_test(what_is_no_first_message_is_left_to_others),
	};

	return cmocka_run_group_tests_name("tls_hello", tests, NULL, NULL);
}
