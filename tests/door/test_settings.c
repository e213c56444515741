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
