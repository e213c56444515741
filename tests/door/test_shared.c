/* A store that other servers use, too: what asking it costs a request. */
#include "common.h"
#include "kv/faulty/faulty.h"
#include "store.h"

static int
setup_shared(void **state)
{
	/* The embedded engine that says it is shared, and fails never. */
	assert_int_equal(setenv("FROND_TEST_FAULTS", "shared=1,rate=0,delay=0,watch=0", 1), 0);
	return setup(state);
}

/* What a GET begins, after it has been answered once. */
static uint64_t
transactions_of(const char *target, int status)
{
	uint64_t before;

	door_expect(d, "GET", target, NULL, status, "");
	before = kv_faulty_transactions();
	door_expect(d, "GET", target, NULL, status, "");
	return kv_faulty_transactions() - before;
}

static void
reading_a_document_takes_one_transaction(void **state)
{
	(void)state;
	door_create(d, "one");
	door_expect(d, "PUT", "/one/a", "{\"n\":1}", 201, "ok");
	door_expect(d, "PUT", "/one/a/file", "text", 409, "conflict");
	assert_int_equal(transactions_of("/one/a", 200), 1);
	assert_int_equal(transactions_of("/one/a?conflicts=true", 200), 1);
	assert_int_equal(transactions_of("/one/none", 404), 1);
	assert_int_equal(transactions_of("/one/a?path=/n", 200), 1);
	assert_int_equal(transactions_of("/none/a", 404), 1);
}

static void
what_another_server_has_changed_holds_at_once(void **state)
{
	(void)state;
	door_create(d, "changed");
	door_expect(d, "PUT", "/changed/a%20b", "{}", 201, "ok");
	door_expect(d, "GET", "/changed/a+b", NULL, 200, "a b");
	door_expect(d, "PUT", "/_node/_local/_config/chttpd/decode_plus_to_space", "\"false\"", 200,
		    "");
	door_expect(d, "GET", "/changed/a+b", NULL, 404, "missing");
	door_expect(d, "DELETE", "/_node/_local/_config/chttpd/decode_plus_to_space", NULL, 200,
		    "");
	door_expect(d, "GET", "/changed/a+b", NULL, 200, "a b");
	door_expect(d, "GET", "/changed/_all_docs", NULL, 200, "a b");
	door_expect(d, "DELETE", "/changed", NULL, 200, "ok");
	door_expect(d, "GET", "/changed/a+b", NULL, 404, "Database does not exist.");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_a_document_takes_one_transaction),
		cmocka_unit_test(what_another_server_has_changed_holds_at_once),
	};

	return cmocka_run_group_tests(tests, setup_shared, teardown);
}
