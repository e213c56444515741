/* /_node/{name}: what a server tells about itself, in CouchDB's shapes. */
#include "common.h"
#include "store.h"

#include <pthread.h>

static void
statistics_are_members_with_value_type_and_description(void **state)
{
	(void)state;
	door_expect(d, "GET", "/_node/_local/_stats", NULL, 200, "{\"couchdb\":{");
	door_has(d, "\"httpd_request_methods\":{\"COPY\":{\"value\":");
	door_has(d, "\"httpd_status_codes\":{\"200\":{\"value\":");
	door_has(d, "\"type\":\"histogram\"");
	door_has(d, "\"percentile\":[[50,");
	door_has(d, "[999,");
	door_has(d, "\"arithmetic_mean\":");
}

static void
path_leads_to_one_member_or_to_null(void **state)
{
	(void)state;
	door_expect(d, "GET", "/_node/nonode@nohost/_stats/couchdb/httpd/requests", NULL, 200,
		    "{\"value\":");
	door_has(d, "\"type\":\"counter\",\"desc\":\"HTTP requests\"}");
	door_expect(d, "GET", "/_node/_local/_stats/couchdb/httpd/requests/type", NULL, 200,
		    "\"counter\"");
	door_expect_body(d, "GET", "/_node/_local/_stats/couchdb/nothing", NULL, 200, "null");
	door_expect_body(d, "GET", "/_node/_local/_stats/couchdb/httpd/requests/value/1", NULL, 200,
			 "null");
	door_expect(d, "PUT", "/_node/_local/_stats/couchdb", "{}", 405, "method_not_allowed");
	door_expect(d, "POST", "/_node/_local/_stats", "{}", 405, "method_not_allowed");
}

static void
answers_are_counted_by_their_status(void **state)
{
	static const char target[] = "/_node/_local/_stats/couchdb/httpd_status_codes/409/value";
	unsigned long before;

	(void)state;
	door_create(d, "counted");
	door_expect(d, "PUT", "/counted/a", "{}", 201, "ok");
	before = strtoul(door_request(d, "GET", target, NULL, NULL)->body, NULL, 10);
	door_expect(d, "PUT", "/counted/a", "{}", 409, "conflict");
	door_expect(d, "PUT", "/counted/a", "{}", 409, "conflict");
	assert_int_equal(strtoul(door_request(d, "GET", target, NULL, NULL)->body, NULL, 10),
			 before + 2);
}

static void
system_tells_memory_and_uptime(void **state)
{
	(void)state;
	door_expect(d, "GET", "/_node/_local/_system", NULL, 200, "{\"uptime\":");
	door_has(d, "\"memory\":{\"other\":");
	door_has(d, "\"message_queues\":{");
	door_expect(d, "GET", "/_node/_local/_system/memory", NULL, 404, "missing");
}

static void
versions_are_those_of_the_libraries(void **state)
{
	(void)state;
	door_expect(d, "GET", "/_node/_local/_versions", NULL, 200,
		    "{\"collation_driver\":{\"name\":\"libicu\",\"library_version\":\"");
	door_has(d, "\"collator_version\":\"");
	door_has(d, "\"server\":{\"name\":\"frond\",");
	door_has(d, "\"storage_engine\":{\"name\":\"");
}

static void
all_of_it_is_for_administrators(void **state)
{
	static const char *const targets[] = { "/_node/_local/_stats", "/_node/_local/_system",
					       "/_node/_local/_versions",
					       "/_node/_local/_prometheus" };

	struct door *strict = door_start(true);

	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		assert_int_equal(door_request(strict, "GET", targets[i], NULL, NULL)->status, 401);
	door_stop(strict);
}

enum {
	ASKERS = 3,
	ASKER_ROUNDS = 12,
};

static void *
ask_and_write(void *arg)
{
	static const char *const targets[] = { "/_node/_local/_prometheus", "/_node/_local/_stats",
					       "/_node/_local/_system" };
	struct client *c = client_open(d->port);
	const char *name = arg;

	for (int i = 0; i < ASKER_ROUNDS; i++) {
		struct response r;
		char target[64];

		(void)snprintf(target, sizeof(target), "/asked/%s%d", name, i);
		client_send(c, "PUT", target, "Content-Type: application/json\r\n", "{}");
		r = client_receive(c, false);
		if (r.status != 201)
			fail_msg("%d: %s", r.status, r.body);
		response_release(&r);
		client_send(c, "GET", targets[i % 3], NULL, NULL);
		r = client_receive(c, false);
		if (r.status != 200)
			fail_msg("%d: %s", r.status, r.body);
		response_release(&r);
	}
	client_close(c);
	return NULL;
}

static void
many_ask_while_a_store_opens_and_closes(void **state)
{
	static char names[ASKERS][2] = { "a", "b", "c" };
	pthread_t threads[ASKERS];

	(void)state;
	door_create(d, "asked");
	for (size_t i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_and_write, names[i]), 0);
	/* On a cluster another store would be the same one, emptied. */
	for (int i = 0; i < 3 && !test_store_is_cluster(); i++)
		door_stop(door_start(false));
	for (size_t i = 0; i < ASKERS; i++)
		pthread_join(threads[i], NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statistics_are_members_with_value_type_and_description),
		cmocka_unit_test(path_leads_to_one_member_or_to_null),
		cmocka_unit_test(answers_are_counted_by_their_status),
		cmocka_unit_test(system_tells_memory_and_uptime),
		cmocka_unit_test(versions_are_those_of_the_libraries),
		cmocka_unit_test(many_ask_while_a_store_opens_and_closes),
		cmocka_unit_test(all_of_it_is_for_administrators),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
