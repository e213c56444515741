#include "cql/murmur3.h"

#include "cql_case.h"

static void
tokens_are_cassandras(void **state)
{
	static const struct {
		const char *key;
		int64_t token;
	} cases[] = {
		{ "00000001", INT64_C(-4069959284402364209) },
		{ "ffffffff", INT64_C(7297452126230313552) },
		{ "c3a9", INT64_C(5461403030378599040) },
		{ "0001610000040000000100", INT64_C(8247712171917364652) },
		{ "", INT64_MIN },
	};

	for (size_t i = 0; i < CASES(cases); i++)
		assert_int_equal(cql_token(case_hex(*state, cases[i].key)), cases[i].token);
}

static void
keys_of_several_columns_have_lengths(void **state)
{
	struct str columns[] = { STR("a"), { "\0\0\0\1", 4 } };
	struct buf one = BUF_INIT(CASE_BYTES), two = BUF_INIT(CASE_BYTES);

	assert_int_equal(cql_partition_key_put(&one, columns, 1), STATUS_OK);
	assert_true(str_eq(buf_str(&one), STR("a")));
	assert_int_equal(cql_partition_key_put(&two, columns, 2), STATUS_OK);
	assert_string_equal(case_hex_of(*state, buf_str(&two)), "0001610000040000000100");
	columns[1].len = CQL_KEY_PART_BYTES + 1;
	assert_int_equal(cql_partition_key_put(&two, columns, 2), STATUS_INVALID);
	buf_release(&one);
	buf_release(&two);
}

static void
a_token_is_that_of_the_columns_put_together(void **state)
{
	struct str columns[] = { STR("a"), { "\0\0\0\1", 4 } };
	struct buf key = BUF_INIT(CASE_BYTES);
	int64_t token;

	(void)state;
	assert_int_equal(cql_partition_token(&key, columns, 1, &token), STATUS_OK);
	assert_int_equal(token, cql_token(STR("a")));
	assert_int_equal(cql_partition_token(&key, columns, 2, &token), STATUS_OK);
	assert_int_equal(token, INT64_C(8247712171917364652));
	columns[0].len = CQL_KEY_PART_BYTES + 1;
	assert_int_equal(cql_partition_token(&key, columns, 1, &token), STATUS_INVALID);
	assert_int_equal(cql_partition_token(&key, columns, 2, &token), STATUS_INVALID);
	buf_release(&key);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tokens_are_cassandras, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(keys_of_several_columns_have_lengths, case_setup,
						case_teardown),
		cmocka_unit_test(a_token_is_that_of_the_columns_put_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
