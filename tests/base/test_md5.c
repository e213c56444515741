#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/md5.h"

/* RFC 1321, A.5. */
static const struct {
	const char *text;
	uint8_t hash[MD5_BYTES];
} suite[] = {
	{ "",
	  { 0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04, 0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8,
	    0x42, 0x7e } },
	{ "a",
	  { 0x0c, 0xc1, 0x75, 0xb9, 0xc0, 0xf1, 0xb6, 0xa8, 0x31, 0xc3, 0x99, 0xe2, 0x69, 0x77,
	    0x26, 0x61 } },
	{ "abc",
	  { 0x90, 0x01, 0x50, 0x98, 0x3c, 0xd2, 0x4f, 0xb0, 0xd6, 0x96, 0x3f, 0x7d, 0x28, 0xe1,
	    0x7f, 0x72 } },
	{ "message digest",
	  { 0xf9, 0x6b, 0x69, 0x7d, 0x7c, 0xb7, 0x93, 0x8d, 0x52, 0x5a, 0x2f, 0x31, 0xaa, 0xf1,
	    0x61, 0xd0 } },
	{ "abcdefghijklmnopqrstuvwxyz",
	  { 0xc3, 0xfc, 0xd3, 0xd7, 0x61, 0x92, 0xe4, 0x00, 0x7d, 0xfb, 0x49, 0x6c, 0xca, 0x67,
	    0xe1, 0x3b } },
	{ "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
	  { 0xd1, 0x74, 0xab, 0x98, 0xd2, 0x77, 0xd9, 0xf5, 0xa5, 0x61, 0x1c, 0x2c, 0x9f, 0x41,
	    0x9d, 0x9f } },
	{ "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
	  { 0x57, 0xed, 0xf4, 0xa2, 0x2b, 0xe3, 0xc9, 0x55, 0xac, 0x49, 0xda, 0x2e, 0x21, 0x07,
	    0xb6, 0x7a } },
};

enum {
	SUITE = sizeof(suite) / sizeof(suite[0]),
	MESSAGES = 50,
};

static void
no_messages_are_fine(void **state)
{
	(void)state;
	md5_many(NULL, 0);
}

/* Cut in all ways into three, in lanes beside others that end earlier and later. */
static void
messages_hash_as_the_rfc_has_it_however_they_are_cut(void **state)
{
	(void)state;
	for (size_t shift = 0; shift < 2 * (size_t)MESSAGES; shift++) {
		struct md5_message messages[MESSAGES];
		uint8_t hashes[MESSAGES][MD5_BYTES];
		size_t count = 1 + shift % MESSAGES;

		for (size_t i = 0; i < count; i++) {
			const char *text = suite[(i + shift) % SUITE].text;
			size_t len = strlen(text);
			size_t first = (i * 7 + shift) % (len + 1);
			size_t second = (i * 5 + shift) % (len - first + 1);

			messages[i] = (struct md5_message){
				.parts = { str_of(text, first), str_of(text + first, second),
					   str_of(text + first + second, len - first - second) },
				.ret = hashes[i],
			};
		}
		md5_many(messages, count);
		for (size_t i = 0; i < count; i++)
			assert_memory_equal(hashes[i], suite[(i + shift) % SUITE].hash, MD5_BYTES);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_messages_are_fine),
		cmocka_unit_test(messages_hash_as_the_rfc_has_it_however_they_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
