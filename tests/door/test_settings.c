/* /_node/_local/_config: what is set, and what becomes of changing it. */
#include "common.h"

#define BOB   "Authorization: Basic Ym9iOnB3\r\n"
#define CAROL "Authorization: Basic Y2Fyb2w6cHc=\r\n"

static int
setup_settings(void **state)
{
	static const door_setting settings[] = {
		{ "couchdb", "max_document_size", "5000" },
		{ NULL },
	};

	(void)state;
	d = door_start_with(false, settings, NULL);
	return 0;
}

static void
node_tells_its_name_and_no_other_is_there(void **state)
{
	(void)state;
	door_expect_body(d, "GET", "/_node/_local", NULL, 200, "{\"name\":\"nonode@nohost\"}");
	door_expect(d, "GET", "/_node/nonode@nohost/_config/chttpd/port", NULL, 200, "\"5984\"");
	door_expect(d, "GET", "/_node/other@host/_config", NULL, 404, "no such node: other@host");
	door_expect(d, "POST", "/_node/_local/_restart", "{}", 501, "_restart is not supported");
	door_expect(d, "GET", "/_node/_local/_smoosh", NULL, 501, "_smoosh is not supported");
	door_expect(d, "GET", "/_node/_local/_config/a/b/c", NULL, 404, "missing");
	door_expect(d, "GET", "/_node", NULL, 404, "missing");
}

static void
node_answers_to_the_name_that_it_is_given(void **state)
{
	static const door_setting settings[] = {
		{ "frond", "node_name", "node1@127.0.0.1" },
		{ NULL },
	};
	struct door *named = door_start_with(false, settings, NULL);

	(void)state;
	door_expect_body(named, "GET", "/_node/_local", NULL, 200,
			 "{\"name\":\"node1@127.0.0.1\"}");
	door_expect(named, "GET", "/_node/node1@127.0.0.1/_config/chttpd/port", NULL, 200, "5984");
	door_expect(named, "GET", "/_node/nonode@nohost", NULL, 404, "no such node: nonode@nohost");
	door_expect_body(named, "GET", "/_membership", NULL, 200,
			 "{\"all_nodes\":[\"node1@127.0.0.1\"],"
			 "\"cluster_nodes\":[\"node1@127.0.0.1\"]}");
	door_stop(named);
}

static void
sections_that_say_what_runs_are_not_changed(void **state)
{
	(void)state;
	door_expect(d, "PUT", "/_node/_local/_config/query_servers/x", "\"/bin/sh\"", 403,
		    "Config section blacklisted for modification over HTTP API.");
	door_expect(d, "PUT", "/_node/_local/_config/daemons/x", "1", 403, "forbidden");
	door_expect(d, "DELETE", "/_node/_local/_config/feature_flags/x", NULL, 403, "forbidden");
	door_expect_body(d, "GET", "/_node/_local/_config/query_servers", NULL, 200, "{}");
}

static void
plus_in_a_path_is_what_the_settings_say(void **state)
{
	static const char target[] = "/_node/_local/_config/chttpd/decode_plus_to_space";

	(void)state;
	door_create(d, "plus");
	door_expect(d, "PUT", "/plus/a%20b", "{}", 201, "ok");
	door_expect(d, "GET", "/plus/a+b", NULL, 200, "\"_id\":\"a b\"");
	door_expect(d, "PUT", target, "\"false\"", 200, "\"\"");
	door_expect(d, "GET", "/plus/a+b", NULL, 404, "missing");
	door_expect(d, "PUT", "/plus/a+b", "{}", 201, "\"id\":\"a+b\"");
	door_expect(d, "GET", "/plus/_all_docs?key=%22a+b%22", NULL, 200, "\"id\":\"a b\"");
	door_expect(d, "DELETE", target, NULL, 200, "false");
	door_expect(d, "GET", "/plus/a+b", NULL, 200, "\"_id\":\"a b\"");
}

static void
locations_are_of_the_host_that_the_named_header_has(void **state)
{
	static const char headers[] = "X-Forwarded-Host: one.example\r\nX-Other: two.example\r\n"
				      "X-Secure: on\r\n";
	const struct response *r;

	(void)state;
	door_create(d, "forwarded");
	r = door_request(d, "PUT", "/forwarded/a", headers, "{}");
	assert_string_equal(response_header(r, "Location"), "http://one.example/forwarded/a");
	door_expect(d, "PUT", "/_node/_local/_config/chttpd/x_forwarded_host", "\"X-Other\"", 200,
		    "\"\"");
	door_expect(d, "PUT", "/_node/_local/_config/chttpd/x_forwarded_ssl", "\"X-Secure\"", 200,
		    "\"\"");
	r = door_request(d, "PUT", "/forwarded/b", headers, "{}");
	assert_string_equal(response_header(r, "Location"), "https://two.example/forwarded/b");
	door_expect(d, "DELETE", "/_node/_local/_config/chttpd/x_forwarded_host", NULL, 200, "X");
	door_expect(d, "DELETE", "/_node/_local/_config/chttpd/x_forwarded_ssl", NULL, 200, "X");
}

/* The ids of one request to /_uuids, one behind the other. */
static void
get_uuids(const char *algorithm, size_t len, char first[64], char second[64])
{
	static const char target[] = "/_node/_local/_config/uuids/algorithm";
	const struct response *r;

	door_expect(d, "PUT", target, format("\"%s\"", algorithm), 200, "");
	r = door_request(d, "GET", "/_uuids?count=2", NULL, NULL);
	assert_int_equal(r->status, 200);
	if (sscanf(r->body, "{\"uuids\":[\"%63[^\"]\",\"%63[^\"]\"]}", first, second) != 2)
		fail_msg("%s: %s", algorithm, r->body);
	assert_int_equal(strlen(first), len);
	assert_int_equal(strlen(second), len);
	assert_string_not_equal(first, second);
}

static void
ids_are_made_as_the_settings_say(void **state)
{
	static const char target[] = "/_node/_local/_config/uuids";
	char a[64], b[64];

	(void)state;
	door_expect(d, "PUT", format("%s/algorithm", target), "\"no_such\"", 400, "utc_random");
	get_uuids("random", 32, a, b);
	get_uuids("utc_random", 32, a, b);
	assert_true(strcmp(a, b) < 0);
	get_uuids("sequential", 32, a, b);
	assert_int_equal(strncmp(a, b, 26), 0);
	assert_true(strcmp(a, b) < 0);
	get_uuids("utc_id", 14, a, b);
	door_expect(d, "PUT", format("%s/utc_id_suffix", target), "\"-here\"", 200, "");
	get_uuids("utc_id", 19, a, b);
	assert_string_equal(a + 14, "-here");
	get_uuids("uuid_v4", 32, a, b);
	assert_int_equal(a[12], '4');
	assert_non_null(strchr("89ab", a[16]));
	get_uuids("uuid_v7", 32, a, b);
	assert_int_equal(a[12], '7');
	assert_true(strncmp(a, b, 12) <= 0);
	door_expect(d, "PUT", format("%s/format", target), "\"rfc9562\"", 200, "");
	get_uuids("uuid_v7", 36, a, b);
	assert_int_equal(a[8], '-');
	assert_int_equal(a[14], '7');
	door_expect(d, "PUT", format("%s/format", target), "\"base_36\"", 200, "");
	get_uuids("uuid_v4", 25, a, b);

	/* Documents get such ids, too. */
	door_create(d, "ids");
	door_expect(d, "POST", "/ids", "{}", 201, "\"ok\":true");
	assert_int_equal(strlen(door_member(d, "id")), 25);
	door_expect(d, "PUT", format("%s/max_count", target), "\"3\"", 200, "");
	door_expect(d, "GET", "/_uuids?count=4", NULL, 400, "the limit is 3");
}

static void
settings_are_shown_by_section(void **state)
{
	(void)state;
	door_expect(d, "GET", "/_node/_local/_config", NULL, 200, "\"chttpd\":{");
	door_has(d, "\"couchdb\":{\"max_document_size\":\"5000\"}");
	door_expect_body(d, "GET", "/_node/_local/_config/couchdb", NULL, 200,
			 "{\"max_document_size\":\"5000\"}");
	door_expect_body(d, "GET", "/_node/_local/_config/couchdb/max_document_size", NULL, 200,
			 "\"5000\"");
	door_expect_body(d, "GET", "/_node/_local/_config/nothing", NULL, 200, "{}");
	door_expect(d, "GET", "/_node/_local/_config/couchdb/nothing", NULL, 404,
		    "{\"error\":\"not_found\",\"reason\":\"unknown_config_value\"}");
}

static void
secret_is_made_once_and_has_a_proper_length(void **state)
{
	const struct response *r;

	(void)state;
	r = door_request(d, "GET", "/_node/_local/_config/chttpd_auth/secret", NULL, NULL);
	assert_int_equal(r->status, 200);
	assert_int_equal(r->body_len, 32 + strlen("\"\"\n"));
}

static void
change_answers_the_old_value_and_holds_at_once(void **state)
{
	static const char doc[] = "{\"a\":\"0123456789012345678901234567890123456789"
				  "01234567890123456789012345678901234567890123456789\"}";

	(void)state;
	door_create(d, "limits");
	door_expect_body(d, "PUT", "/_node/_local/_config/couchdb/max_document_size", "\"64\"", 200,
			 "\"5000\"");
	door_expect(d, "PUT", "/limits/a", doc, 413, "document_too_large");
	door_expect_body(d, "PUT", "/_node/_local/_config/couchdb/max_document_size", "\"6000\"",
			 200, "\"64\"");
	door_expect(d, "PUT", "/limits/a", doc, 201, "ok");
	door_expect_body(d, "DELETE", "/_node/_local/_config/couchdb/max_document_size", NULL, 200,
			 "\"6000\"");
	door_expect(d, "GET", "/_node/_local/_config/couchdb/max_document_size", NULL, 404,
		    "unknown_config_value");
	door_expect(d, "DELETE", "/_node/_local/_config/couchdb/max_document_size", NULL, 404,
		    "unknown_config_value");
	door_expect(d, "PUT", "/limits/b", doc, 201, "ok");
}

static void
browsers_of_other_origins_come_and_go_with_the_settings(void **state)
{
	static const char origin[] = "Origin: http://example.com\r\n";
	const struct response *r = door_request(d, "GET", "/", origin, NULL);

	(void)state;
	assert_null(response_header(r, "Access-Control-Allow-Origin"));
	/* What Fauxton sends for "no origins yet". */
	door_expect(d, "PUT", "/_node/_local/_config/cors/origins", "\"\"", 200, "\"\"");
	door_expect(d, "PUT", "/_node/_local/_config/cors/origins", "\"http://example.com\"", 200,
		    "\"\"");
	door_expect(d, "PUT", "/_node/_local/_config/httpd/enable_cors", "\"true\"", 200,
		    "\"false\"");
	r = door_request(d, "GET", "/", origin, NULL);
	assert_string_equal(response_header(r, "Access-Control-Allow-Origin"),
			    "http://example.com");
	door_expect_body(d, "PUT", "/_node/_local/_config/chttpd/enable_cors", "\"false\"", 200,
			 "\"true\"");
	r = door_request(d, "GET", "/", origin, NULL);
	assert_null(response_header(r, "Access-Control-Allow-Origin"));
}

static void
values_that_make_no_sense_change_nothing(void **state)
{
	static const char target[] = "/_node/_local/_config/attachments/compression_level";

	(void)state;
	door_expect(d, "PUT", target, "\"10\"", 400, "is not a whole number from 0 to 9");
	door_expect(d, "PUT", target, "3", 400, "JSON string");
	door_expect(d, "PUT", target, "\"3", 400, "invalid UTF-8 JSON");
	door_expect_body(d, "GET", target, NULL, 200, "\"8\"");
	door_expect(d, "PUT", "/_node/_local/_config/chttpd/port", "\"1\"", 403,
		    "[chttpd] port: fixed when the server starts");
	door_expect(d, "PUT", "/_node/_local/_config/chttpd_auth/secret", "\"short\"", 400,
		    "at least 16 characters");
	door_expect(d, "PUT", "/_node/_local/_config/chttpd", "\"1\"", 405, "method_not_allowed");
}

static void
no_setting_ends_a_header(void **state)
{
	static const char *const names[] = { "methods", "headers", "exposed_headers" };
	static const char *const texts[] = {
		"\"GET\\r\\nX-Evil: 1\"", "\"GET\\nPUT\"", "\"GET\\r\"", "\"\\u0001\"",
		"\"GET\\u007f\"",         "\"GET\\tPUT\""
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++)
			door_expect(d, "PUT", format("/_node/_local/_config/cors/%s", names[i]),
				    texts[j], 400, "must not have a control character in it");
	door_expect(d, "PUT", "/_node/_local/_config/cors/methods", "\"GET, PUT\"", 200, "\"\"");
	door_expect(d, "DELETE", "/_node/_local/_config/cors/methods", NULL, 200, "GET, PUT");
}

static void
unknown_settings_are_kept(void **state)
{
	(void)state;
	door_expect_body(d, "PUT", "/_node/_local/_config/my_app/color", "\"gr\\u00fcn\"", 200,
			 "\"\"");
	door_expect_body(d, "GET", "/_node/_local/_config/my_app", NULL, 200,
			 "{\"color\":\"gr\xc3\xbcn\"}");
	door_expect_body(d, "PUT", "/_node/_local/_config/my_app/color", "\"\"", 200,
			 "\"gr\xc3\xbcn\"");
	door_expect_body(d, "DELETE", "/_node/_local/_config/my_app/color", NULL, 200, "\"\"");
	door_expect_body(d, "GET", "/_node/_local/_config/my_app", NULL, 200, "{}");
	door_expect_body(d, "POST", "/_node/_local/_config/_reload", NULL, 200, "{\"ok\":true}");
}

static void
administrators_are_made_replaced_and_removed(void **state)
{
	(void)state;
	door_expect(d, "PUT", "/_node/_local/_config/admins/a:b", "\"pw\"", 400,
		    "must not contain");
	door_expect(d, "PUT", "/_node/_local/_config/admins/bob", "\"\"", 400, "password");
	door_expect_body(d, "PUT", "/_node/_local/_config/admins/bob", "\"pw\"", 200, "\"\"");
	expect_as(NULL, "GET", "/_node/_local/_config", NULL, 401, "You are not a server admin.");
	expect_as(NULL, "PUT", "/anybody", NULL, 401, "You are not a server admin.");
	expect_as(CAROL, "PUT", "/anybody", NULL, 401, "Name or password is incorrect.");
	expect_as(BOB, "GET", "/_node/_local/_config/admins/bob", NULL, 200, "\"-pbkdf2:sha256-");
	expect_as(BOB, "PUT", "/_node/_local/_config/admins/carol", "\"pw\"", 200, "\"\"");
	expect_as(CAROL, "DELETE", "/_node/_local/_config/admins/bob", NULL, 200, "-pbkdf2");
	expect_as(BOB, "GET", "/_node/_local/_config", NULL, 401, "Name or password is incorrect.");
	expect_as(CAROL, "DELETE", "/_node/_local/_config/admins/carol", NULL, 200, "-pbkdf2");
	door_expect(d, "PUT", "/anybody", NULL, 201, "ok");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_tells_its_name_and_no_other_is_there),
		cmocka_unit_test(node_answers_to_the_name_that_it_is_given),
		cmocka_unit_test(sections_that_say_what_runs_are_not_changed),
		cmocka_unit_test(plus_in_a_path_is_what_the_settings_say),
		cmocka_unit_test(locations_are_of_the_host_that_the_named_header_has),
		cmocka_unit_test(ids_are_made_as_the_settings_say),
		cmocka_unit_test(settings_are_shown_by_section),
		cmocka_unit_test(secret_is_made_once_and_has_a_proper_length),
		cmocka_unit_test(change_answers_the_old_value_and_holds_at_once),
		cmocka_unit_test(browsers_of_other_origins_come_and_go_with_the_settings),
		cmocka_unit_test(values_that_make_no_sense_change_nothing),
		cmocka_unit_test(no_setting_ends_a_header),
		cmocka_unit_test(unknown_settings_are_kept),
		cmocka_unit_test(administrators_are_made_replaced_and_removed),
	};

	return cmocka_run_group_tests(tests, setup_settings, teardown);
}
