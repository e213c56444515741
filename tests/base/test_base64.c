#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base64.h"
#include "base/rand.h"

static void
assert_encodes(const char *plain, const char *expected, enum base64_alphabet alphabet)
{
	AUTO(buf_release) struct buf text = BUF_INIT(100);
	AUTO(buf_release) struct buf back = BUF_INIT(100);

	base64_encode(&text, str_from_cstr(plain), alphabet);
	assert_int_equal(buf_status(&text), STATUS_OK);
	assert_true(str_eq(buf_str(&text), str_from_cstr(expected)));
	assert_int_equal(base64_decode(&back, buf_str(&text), alphabet), STATUS_OK);
	assert_true(str_eq(buf_str(&back), str_from_cstr(plain)));
}

static void
vectors_of_the_rfc_encode_and_decode(void **state)
{
	(void)state;
	assert_encodes("", "", BASE64_STANDARD);
	assert_encodes("f", "Zg==", BASE64_STANDARD);
	assert_encodes("fo", "Zm8=", BASE64_STANDARD);
	assert_encodes("foo", "Zm9v", BASE64_STANDARD);
	assert_encodes("foob", "Zm9vYg==", BASE64_STANDARD);
	assert_encodes("fooba", "Zm9vYmE=", BASE64_STANDARD);
	assert_encodes("foobar", "Zm9vYmFy", BASE64_STANDARD);
	assert_encodes("foob", "Zm9vYg", BASE64_URL);
	assert_encodes("\xff\xef\xbe", "/+++", BASE64_STANDARD);
	assert_encodes("\xff\xef\xbe", "_---", BASE64_URL);
}

static void
malformed_text_is_refused_and_appends_nothing(void **state)
{
	static const char *const standard[] = { "Zg",   "Zg=",   "Z",     "Zg=a", "=",    "====",
						"Z===", "Zm9v=", "Zm9 v", "Zh==", "Zm9=", "Zm-_" };
	static const char *const url[] = { "Z", "Zm9vY", "Zm+/", "Zh", "Zg=", "Zg===", "=" };
	AUTO(buf_release) struct buf b = BUF_INIT(100);

	(void)state;
	buf_append_cstr(&b, "kept");
	for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++)
		assert_int_equal(base64_decode(&b, str_from_cstr(standard[i]), BASE64_STANDARD),
				 STATUS_INVALID);
	for (size_t i = 0; i < sizeof(url) / sizeof(url[0]); i++)
		assert_int_equal(base64_decode(&b, str_from_cstr(url[i]), BASE64_URL),
				 STATUS_INVALID);
	assert_true(str_eq(buf_str(&b), STR("kept")));
}

static void
url_alphabet_takes_complete_padding(void **state)
{
	AUTO(buf_release) struct buf b = BUF_INIT(100);

	(void)state;
	assert_int_equal(base64_decode(&b, STR("Zg=="), BASE64_URL), STATUS_OK);
	assert_true(str_eq(buf_str(&b), STR("f")));
}

static void
random_bytes_come_back(void **state)
{
	struct rand_seq r = { 7 };

	(void)state;
	for (int i = 0; i < 2000; i++) {
		AUTO(buf_release) struct buf text = BUF_INIT(1000);
		AUTO(buf_release) struct buf back = BUF_INIT(1000);
		enum base64_alphabet alphabet = i % 2 ? BASE64_URL : BASE64_STANDARD;
		char bytes[100];
		size_t n = rand_seq_below(&r, sizeof(bytes));

		for (size_t j = 0; j < n; j++)
			bytes[j] = (char)rand_seq_next(&r);
		base64_encode(&text, str_of(bytes, n), alphabet);
		assert_int_equal(base64_decode(&back, buf_str(&text), alphabet), STATUS_OK);
		assert_true(str_eq(buf_str(&back), str_of(bytes, n)));
	}
}

static void
full_buffer_is_told(void **state)
{
	AUTO(buf_release) struct buf small = BUF_INIT(3);
	AUTO(buf_release) struct buf tiny = BUF_INIT(3);

	(void)state;
	base64_encode(&small, STR("foo"), BASE64_STANDARD);
	assert_int_equal(buf_status(&small), STATUS_LIMIT);
	assert_int_equal(base64_decode(&tiny, STR("Zm9vYmFy"), BASE64_STANDARD), STATUS_LIMIT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_of_the_rfc_encode_and_decode),
		cmocka_unit_test(malformed_text_is_refused_and_appends_nothing),
		cmocka_unit_test(url_alphabet_takes_complete_padding),
		cmocka_unit_test(random_bytes_come_back),
		cmocka_unit_test(full_buffer_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
