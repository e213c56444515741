/* Who may do what, on a server with an administrator. */
#include "common.h"

#include <unistd.h>

#include "base/clock.h"
#include "access/auth_int.h"

#define ADMIN "Authorization: Basic YWRtaW46c2VjcmV0\r\n"
#define WRONG "Authorization: Basic YWRtaW46d3Jvbmc=\r\n"

static int
setup_admin(void **state)
{
	(void)state;
	d = door_start(true);
	return 0;
}

static void
only_admins_make_and_delete_databases(void **state)
{
	(void)state;
	expect_as(NULL, "PUT", "/a", NULL, 401,
		  "{\"error\":\"unauthorized\",\"reason\":\"You are not a server admin.\"}");
	expect_as(ADMIN, "PUT", "/a", NULL, 201, "ok");
	expect_as(NULL, "DELETE", "/a", NULL, 401, "You are not a server admin.");
	expect_as(WRONG, "DELETE", "/a", NULL, 401, "Name or password is incorrect.");
	expect_as(ADMIN, "DELETE", "/a", NULL, 200, "ok");
	expect_as(NULL, "GET", "/", NULL, 200, "Welcome");
	expect_as(NULL, "GET", "/_all_dbs", NULL, 401, "You are not a server admin.");
	expect_as(NULL, "GET", "/_active_tasks", NULL, 401, "You are not a server admin.");
	expect_as(ADMIN, "GET", "/_all_dbs", NULL, 200, "[");
}

static void
strangers_keep_out_of_a_database_by_default(void **state)
{
	static const char refused[] = "{\"error\":\"unauthorized\",\"reason\":\"You are not "
				      "authorized to access this db.\"}";

	(void)state;
	expect_as(ADMIN, "PUT", "/closed", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/closed/a", "{}", 201, "ok");
	expect_as(NULL, "GET", "/closed", NULL, 401, refused);
	expect_as(NULL, "GET", "/closed/a", NULL, 401, refused);
	expect_as(NULL, "PUT", "/closed/b", "{}", 401, refused);
	expect_as(NULL, "DELETE", "/closed/a?rev=1-x", NULL, 401, refused);
	expect_as(NULL, "POST", "/closed/_bulk_docs", "{\"docs\":[]}", 401, refused);
	expect_as(NULL, "POST", "/closed/_bulk_get", "{\"docs\":[]}", 401, refused);
	expect_as(NULL, "POST", "/closed/_revs_diff", "{}", 401, refused);
	expect_as(NULL, "GET", "/closed/_all_docs", NULL, 401, refused);
	expect_as(NULL, "GET", "/closed/_changes", NULL, 401, refused);
	expect_as(NULL, "GET", "/closed/_local/x", NULL, 401, refused);
	expect_as(NULL, "PUT", "/closed/_local/x", "{}", 401, refused);
	expect_as(NULL, "GET", "/closed/_security", NULL, 401, refused);
	expect_as(NULL, "GET", "/nowhere/a", NULL, 404, "Database does not exist.");
}

static void
a_public_database_is_open_but_for_its_design(void **state)
{
	(void)state;
	expect_as(ADMIN, "PUT", "/public", NULL, 201, "ok");
	expect_as(
		ADMIN, "PUT", "/public/_security",
		"{\"admins\":{\"names\":[],\"roles\":[]},\"members\":{\"names\":[],\"roles\":[]}}",
		200, "ok");
	expect_as(NULL, "PUT", "/public/a", "{}", 201, "ok");
	expect_as(NULL, "GET", "/public/_all_docs", NULL, 200, "\"id\":\"a\"");
	expect_as(NULL, "PUT", "/public/_design/x", "{}", 401, "You are not a db or server admin.");
	expect_as(NULL, "POST", "/public/_bulk_docs",
		  "{\"docs\":[{\"_id\":\"_design/x\"},{\"_id\":\"b\"}]}", 201,
		  "[{\"id\":\"_design/x\",\"error\":\"unauthorized\"");
	expect_as(NULL, "POST", "/public/_index", "{\"index\":{\"fields\":[\"a\"]},\"ddoc\":\"i\"}",
		  401, "You are not a db or server admin.");
	expect_as(NULL, "DELETE", "/public/_index/i/json/a", NULL, 401,
		  "You are not a db or server admin.");
	expect_as(NULL, "GET", "/public/_index", NULL, 200, "\"total_rows\":1");
	expect_as(NULL, "POST", "/public/_find", "{\"selector\":{}}", 200, "\"_id\":\"a\"");
	expect_as(NULL, "PUT", "/public/_security", "{}", 401, "You are not a db or server admin.");
	expect_as(NULL, "PUT", "/public/_revs_limit", "5", 401,
		  "You are not a db or server admin.");
	expect_as(NULL, "POST", "/public/_compact", "", 401, "You are not a db or server admin.");
	expect_as(ADMIN, "PUT", "/public/_design/x", "{}", 201, "ok");
	expect_as(ADMIN, "PUT", "/public/_security", "{\"members\":{\"names\":[\"jan\"]}}", 200,
		  "ok");
	expect_as(NULL, "GET", "/public/a", NULL, 401, "You are not authorized to access this db.");
	expect_as(NULL, "POST", "/public/_find", "{\"selector\":{}}", 401,
		  "You are not authorized to access this db.");
	expect_as(NULL, "GET", "/public/_index", NULL, 401,
		  "You are not authorized to access this db.");
}

static void
session_tells_who_is_there(void **state)
{
	(void)state;
	expect_as(NULL, "GET", "/_session", NULL, 200,
		  "{\"ok\":true,\"userCtx\":{\"name\":null,\"roles\":[]},\"info\":{"
		  "\"authentication_handlers\":[\"cookie\",\"default\"]}}");
	expect_as(NULL, "GET", "/_session?basic=true", NULL, 401, "Please login.");
	expect_as(ADMIN, "GET", "/_session", NULL, 200,
		  "\"userCtx\":{\"name\":\"admin\",\"roles\":[\"_admin\"]}");
	door_has(d, "\"authenticated\":\"default\"");
	door_has_not(d, "authentication_db");
	/* Where it is set, it is shown. */
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd_auth/authentication_db", "\"people\"",
		  200, "\"");
	expect_as(ADMIN, "GET", "/_session", NULL, 200,
		  "\"authenticated\":\"default\",\"authentication_db\":\"_users\"}}");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd_auth/authentication_db", "\"\"", 200,
		  "\"people\"");
	expect_as(ADMIN, "GET", "/_session", NULL, 200, "\"authenticated\":\"default\"}}");
	expect_as(ADMIN, "DELETE", "/_node/_local/_config/chttpd_auth/authentication_db", NULL, 200,
		  "\"");
}

static void
cookie_logs_in(void **state)
{
	char cookie[512];
	const char *given;

	(void)state;
	expect_as(NULL, "POST", "/_session", "{\"name\":\"admin\",\"password\":\"secret\"}", 200,
		  "{\"ok\":true,\"name\":\"admin\",\"roles\":[\"_admin\"]}");
	given = response_header(&d->last, "Set-Cookie");
	assert_non_null(given);
	assert_non_null(strstr(given, "; HttpOnly"));
	assert_non_null(strstr(given, "; Max-Age=600;"));
	(void)snprintf(cookie, sizeof(cookie), "Cookie: %.*s\r\n", (int)strcspn(given, ";"), given);
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"authenticated\":\"cookie\"");
	expect_as(cookie, "PUT", "/bycookie", NULL, 201, "ok");
	expect_as(cookie, "DELETE", "/_session", NULL, 200, "{\"ok\":true}");
	assert_non_null(strstr(response_header(&d->last, "Set-Cookie"), "AuthSession=;"));

	expect_as("Content-Type: application/x-www-form-urlencoded\r\n", "POST",
		  "/_session?next=/here", "name=admin&password=secret", 302, "\"ok\":true");
	assert_string_equal(response_header(&d->last, "Location"), "http://localhost:5984/here");
	expect_as("Content-Type: application/x-www-form-urlencoded\r\n", "POST",
		  "/_session?next=//elsewhere", "name=admin&password=secret", 400,
		  "path must begin with a /.");
	expect_as("Content-Type: application/x-www-form-urlencoded\r\n", "POST",
		  "/_session?next=here", "name=admin&password=secret", 400,
		  "path must begin with a /.");
	assert_null(response_header(&d->last, "Set-Cookie"));
	expect_as("Content-Type: application/x-www-form-urlencoded\r\n", "POST",
		  "/_session?fail=/again", "name=admin&password=wrong", 302, "unauthorized");
	assert_string_equal(response_header(&d->last, "Location"), "http://localhost:5984/again");
	expect_as(NULL, "POST", "/_session", "{\"name\":\"admin\",\"password\":\"wrong\"}", 401,
		  "{\"error\":\"unauthorized\",\"reason\":\"Name or password is incorrect.\"}");
	expect_as(NULL, "POST", "/_session", "{\"password\":\"x\"}", 400,
		  "request body must contain a username");
	expect_as("Content-Type: text/plain\r\n", "POST", "/_session", "{}", 415,
		  "bad_content_type");
	expect_as(NULL, "PUT", "/_session", "{}", 405, "Only GET,HEAD,POST,DELETE allowed");
}

static const char *
cookie_of_age(uint64_t age_s)
{
	struct settings_held *held = settings_live_hold(d->live);
	struct arena *arena = arena_new(1 << 16);
	uint64_t now_s = clock_wall_ms() / 1000;
	const char *text;
	struct str value;

	assert_non_null(arena);
	assert_int_equal(auth_make_cookie_at(people_of(held), STR("admin"), NULL, now_s - age_s,
					     arena, &value),
			 STATUS_OK);
	settings_held_unref(held);
	text = format("Cookie: AuthSession=%.*s\r\n", STR_ARG(value));
	arena_free(arena);
	return text;
}

static void
session_that_is_used_does_not_end(void **state)
{
	const char *given;
	const char *old = cookie_of_age(120);
	char renewed[512];

	(void)state;
	expect_as(cookie_of_age(10), "GET", "/_session", NULL, 200, "\"name\":\"admin\"");
	assert_null(response_header(&d->last, "Set-Cookie"));
	expect_as(old, "GET", "/_all_dbs", NULL, 200, "[");
	given = response_header(&d->last, "Set-Cookie");
	assert_non_null(given);
	assert_non_null(strstr(given, "; Max-Age=600; Path=/; HttpOnly"));
	(void)snprintf(renewed, sizeof(renewed), "Cookie: %.*s\r\n", (int)strcspn(given, ";"),
		       given);
	assert_string_not_equal(renewed, old);
	expect_as(renewed, "GET", "/_session", NULL, 200, "\"name\":\"admin\"");
	assert_null(response_header(&d->last, "Set-Cookie"));
	/* Whoever logs out is out. */
	expect_as(old, "DELETE", "/_session", NULL, 200, "ok");
	assert_non_null(strstr(response_header(&d->last, "Set-Cookie"), "AuthSession=;"));
	expect_as(cookie_of_age(600), "GET", "/_session", NULL, 200, "\"name\":null");
	assert_null(response_header(&d->last, "Set-Cookie"));
}

static void
change_password(const char *as, const char *to)
{
	expect_as(as, "PUT", "/_node/_local/_config/admins/admin", to, 200, "-pbkdf2:sha256-");
}

static void
cookie_ends_when_its_password_is_changed(void **state)
{
	char before[512];
	char after[512];
	const char *given;

	(void)state;
	(void)snprintf(before, sizeof(before), "%s", cookie_of_age(120));
	expect_as(before, "GET", "/_session", NULL, 200, "\"name\":\"admin\"");
	change_password(before, "\"other\"");
	expect_as(before, "GET", "/_session", NULL, 200, "\"name\":null");
	assert_null(response_header(&d->last, "Set-Cookie"));
	expect_as(before, "GET", "/_all_dbs", NULL, 401, "You are not a server admin.");
	assert_null(response_header(&d->last, "Set-Cookie"));

	expect_as(NULL, "POST", "/_session", "{\"name\":\"admin\",\"password\":\"other\"}", 200,
		  "ok");
	given = response_header(&d->last, "Set-Cookie");
	assert_non_null(given);
	(void)snprintf(after, sizeof(after), "Cookie: %.*s\r\n", (int)strcspn(given, ";"), given);
	expect_as(after, "GET", "/_all_dbs", NULL, 200, "[");
	/* Also by a password that was there before: its salt is a new one. */
	change_password(after, "\"secret\"");
	expect_as(after, "GET", "/_all_dbs", NULL, 401, "You are not a server admin.");
	expect_as(before, "GET", "/_all_dbs", NULL, 401, "You are not a server admin.");
	expect_as(ADMIN, "GET", "/_all_dbs", NULL, 200, "[");
}

/* Different wrong passwords, all at once: one is hashed, one waits, and the others come again. */
static void
logins_beyond_the_queue_are_told_to_come_again(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "600000" },
						 { "frond", "hash_queue", "1" },
						 { NULL } };
	enum {
		LOGINS = 8
	};
	struct door *slow = door_start_with(true, settings, NULL);
	struct client *clients[LOGINS];
	unsigned refused = 0;

	(void)state;
	for (int i = 0; i < LOGINS; i++) {
		clients[i] = client_open(slow->port);
		client_send(clients[i], "POST", "/_session", "Content-Type: application/json\r\n",
			    format("{\"name\":\"%s\",\"password\":\"wrong%d\"}",
				   i % 2 ? "admin" : "nobody", i));
	}
	for (int i = 0; i < LOGINS; i++) {
		struct response r = client_receive(clients[i], false);

		if (r.status == 429) {
			assert_string_equal(response_header(&r, "Retry-After"), "5");
			assert_non_null(strstr(r.body,
					       "{\"error\":\"too_many_requests\",\"reason\":"
					       "\"Too many logins wait for their passwords "
					       "to be hashed: the limit, hash_queue, is 1."));
			refused++;
		} else {
			assert_int_equal(r.status, 401);
		}
		response_release(&r);
		client_close(clients[i]);
	}
	assert_in_range(refused, 1, LOGINS - 2);
	/* The right password, which is remembered afterwards. */
	assert_int_equal(door_request(slow, "GET", "/_all_dbs", ADMIN, NULL)->status, 200);
	door_stop(slow);
}

/* A browser that is told of Basic credentials asks for them before the page's own form can. */
static void
a_client_says_how_it_wants_to_log_in(void **state)
{
	(void)state;
	expect_as("X-CouchDB-WWW-Authenticate: Cookie\r\n", "GET", "/_all_dbs", NULL, 401,
		  "You are not a server admin.");
	assert_string_equal(response_header(&d->last, "WWW-Authenticate"), "Cookie");
	expect_as(NULL, "GET", "/_all_dbs", NULL, 401, "unauthorized");
	assert_null(response_header(&d->last, "WWW-Authenticate"));
}

/* Limits hold from the moment that they are set, and are off before. */
static void
who_asks_too_much_is_told_when_to_come_again(void **state)
{
	static const char databases[] = "/_node/_local/_config/limits/address_databases";
	static const char requests[] = "/_node/_local/_config/limits/address_requests";
	const struct response *r;
	int refused = 0;

	(void)state;
	expect_as(ADMIN, "PUT", databases, "\"1\"", 200, "\"\"");
	expect_as(ADMIN, "PUT", "/limited_a", NULL, 201, "ok");
	r = door_request(d, "PUT", "/limited_b", ADMIN, NULL);
	assert_int_equal(r->status, 429);
	door_has(d, "{\"error\":\"too_many_requests\",\"reason\":\"too many databases created "
		    "from one address: the limit, [limits] address_databases, is 1.");
	assert_in_range(atoi(response_header(&d->last, "Retry-After")), 3000, 3601);
	expect_as(ADMIN, "DELETE", databases, NULL, 200, "1");
	expect_as(ADMIN, "PUT", "/limited_b", NULL, 201, "ok");

	expect_as(ADMIN, "PUT", requests, "\"10\"", 200, "\"\"");
	for (int i = 0; i < 200 && !refused; i++)
		refused = door_request(d, "GET", "/", NULL, NULL)->status == 429;
	assert_true(refused);
	door_has(d, "[limits] address_requests, is 10.");
	assert_string_equal(response_header(&d->last, "Retry-After"), "1");
	/* Others' requests count by the address alone, so the administrator waits, too. */
	while (door_request(d, "DELETE", requests, ADMIN, NULL)->status == 429)
		assert_int_equal(usleep(100 * 1000), 0);
	for (int i = 0; i < 100; i++)
		expect_as(NULL, "GET", "/", NULL, 200, "Welcome");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_admins_make_and_delete_databases),
		cmocka_unit_test(strangers_keep_out_of_a_database_by_default),
		cmocka_unit_test(a_public_database_is_open_but_for_its_design),
		cmocka_unit_test(session_tells_who_is_there),
		cmocka_unit_test(cookie_logs_in),
		cmocka_unit_test(session_that_is_used_does_not_end),
		cmocka_unit_test(cookie_ends_when_its_password_is_changed),
		cmocka_unit_test(a_client_says_how_it_wants_to_log_in),
		cmocka_unit_test(who_asks_too_much_is_told_when_to_come_again),
		/* The last one: it starts a server of its own, which empties a cluster. */
		cmocka_unit_test(logins_beyond_the_queue_are_told_to_come_again),
	};

	return cmocka_run_group_tests_name("couch access", tests, setup_admin, teardown);
}
