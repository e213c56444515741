/*
 * The audit lines of the log. The program's standard error goes to a file while a test looks at it.
 * What other threads log may stand between the lines, so a test looks for parts of one line.
 */
#include "common.h"

#include "base/clock.h"
#include "access/audit.h"

#include <fcntl.h>
#include <unistd.h>

#define ADMIN "Authorization: Basic YWRtaW46c2VjcmV0\r\n"
#define WRONG "Authorization: Basic YWRtaW46d3Jvbmc=\r\n" /* admin:wrong */
#define USER  "/_users/org.couchdb.user:"

enum {
	LOG_BYTES = 1 << 20,
	LINE_PARTS = 8,
};

static int stderr_before = -1;
static int log_file = -1;
static char log_text[LOG_BYTES];

static int
setup_audit(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "10" }, { NULL } };

	(void)state;
	d = door_start_with(true, settings, NULL);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/kitchen", NULL, 201, "ok");
	return 0;
}

static int
log_begin(void **state)
{
	char path[] = "/tmp/frond-audit-XXXXXX";

	(void)state;
	/* The lines of a second are limited: those of the test before must not count. */
	(void)sleep(1);
	log_file = mkstemp(path);
	assert_true(log_file >= 0);
	(void)unlink(path);
	(void)fflush(stderr);
	stderr_before = dup(STDERR_FILENO);
	return dup2(log_file, STDERR_FILENO) == STDERR_FILENO ? 0 : -1;
}

static void
log_read(void)
{
	ssize_t n;

	(void)fflush(stderr);
	n = pread(log_file, log_text, sizeof(log_text) - 1, 0);
	assert_true(n >= 0);
	log_text[n] = '\0';
}

static int
log_end(void **state)
{
	(void)state;
	log_read();
	if (dup2(stderr_before, STDERR_FILENO) != STDERR_FILENO)
		return -1;
	(void)close(stderr_before);
	(void)close(log_file);
	/* Where a test has failed, this has cmocka's reason in it. */
	(void)fputs(log_text, stderr);
	return 0;
}

/* How many lines have all of these parts, which end with a NULL. */
static size_t
log_lines(const char *const parts[LINE_PARTS])
{
	size_t found = 0;
	char *rest = NULL;

	log_read();
	for (char *line = strtok_r(log_text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		bool all = true;

		for (size_t i = 0; i < LINE_PARTS && parts[i]; i++)
			all = all && strstr(line, parts[i]);
		found += all;
	}
	return found;
}

#define LINES(...) log_lines((const char *const[LINE_PARTS]){ __VA_ARGS__ })

static void
logins_are_logged_with_name_address_and_door(void **state)
{
	(void)state;
	expect_as(NULL, "POST", "/_session", "{\"name\":\"admin\",\"password\":\"secret\"}", 200,
		  "ok");
	assert_int_equal(LINES("level=info event=login name=\"admin\" method=session",
			       "from=127.0.0.1:", "door=couch", "request_id="),
			 1);
	expect_as("traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
		  "POST", "/_session", "{\"name\":\"admin\",\"password\":\"guess\"}", 401,
		  "Name or password");
	assert_int_equal(LINES("event=login_refused", " trace_id=0af7651916cd43dd8448eb211c80319c"),
			 1);
	assert_int_equal(LINES("level=warn event=login_refused name=\"admin\" method=session",
			       "from=127.0.0.1:", "user=\"\""),
			 1);
	assert_int_equal(LINES("event=refused"), 0);
}

static void
credentials_are_logged_once_and_not_when_they_are_remembered(void **state)
{
	(void)state;
	expect_as(ADMIN, "PUT", USER "ana",
		  "{\"type\":\"user\",\"name\":\"ana\",\"roles\":[],\"password\":\"plum\"}", 201,
		  "ok");
	for (int i = 0; i < 3; i++) /* ana:plum */
		expect_as("Authorization: Basic YW5hOnBsdW0=\r\n", "GET", "/_session", NULL, 200,
			  "ana");
	assert_int_equal(LINES("event=login name=\"ana\" method=basic", "user=\"ana\""), 1);
	expect_as(WRONG, "GET", "/_session", NULL, 401, "Name or password");
	assert_int_equal(LINES("event=login_refused name=\"admin\" method=basic"), 1);
}

static void
refusals_are_logged_with_what_was_asked_for(void **state)
{
	(void)state;
	expect_as(NULL, "GET", "/kitchen/_all_docs?key=%22secret%22", NULL, 401, "unauthorized");
	assert_int_equal(LINES("event=refused method=GET path=\"/kitchen/_all_docs\" status=401",
			       "user=\"\"", "from=127.0.0.1:", "door=couch"),
			 1);
	expect_as(NULL, "GET", "/kitchen/absent", NULL, 401, "unauthorized");
	expect_as(ADMIN, "GET", "/kitchen/absent", NULL, 404, "missing");
	assert_int_equal(LINES("event=refused", "absent"), 1);
	assert_int_equal(LINES("key="), 0);
}

static void
changes_of_people_rights_and_settings_are_logged(void **state)
{
	(void)state;
	expect_as(ADMIN, "POST", "/_users/_bulk_docs",
		  "{\"docs\":["
		  "{\"_id\":\"org.couchdb.user:bo\",\"type\":\"user\",\"name\":\"bo\","
		  "\"roles\":[],\"password\":\"quince\"},"
		  "{\"_id\":\"org.couchdb.user:cy\",\"type\":\"user\",\"name\":\"dy\","
		  "\"roles\":[],\"password\":\"quince\"}]}",
		  201, "org.couchdb.user:bo");
	assert_int_equal(LINES("event=person_changed person=\"bo\" user=\"admin\"", "door=couch"),
			 1);
	assert_int_equal(LINES("person=\"cy\""), 0);
	expect_as(ADMIN, "GET", USER "bo", NULL, 200, "_rev");
	expect_as(ADMIN, "DELETE", format(USER "bo?rev=%s", door_member(d, "_rev")), NULL, 200,
		  "ok");
	assert_int_equal(LINES("event=person_changed person=\"bo\""), 2);

	expect_as(ADMIN, "PUT", "/kitchen/_security", "{\"members\":{\"names\":[\"bo\"]}}", 200,
		  "ok");
	assert_int_equal(LINES("event=rights_changed database=\"kitchen\" user=\"admin\""), 1);
	expect_as(NULL, "PUT", "/kitchen/_security", "{}", 401, "unauthorized");
	assert_int_equal(LINES("event=rights_changed"), 1);
	expect_as(ADMIN, "DELETE", "/_users", NULL, 200, "ok");
	assert_int_equal(LINES("event=people_removed database=\"_users\" user=\"admin\""), 1);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");

	expect_as(ADMIN, "PUT", "/_node/_local/_config/admins/eve", "\"walnut\"", 200, "\"\"");
	assert_int_equal(LINES("event=setting_changed setting=\"admins/eve\" user=\"admin\""), 1);
	expect_as(ADMIN, "DELETE", "/_node/_local/_config/admins/eve", NULL, 200, "pbkdf2");
	assert_int_equal(LINES("event=setting_removed setting=\"admins/eve\""), 1);
	assert_int_equal(LINES("quince"), 0);
	assert_int_equal(LINES("walnut"), 0);
	assert_int_equal(LINES("pbkdf2"), 0);
}

static void
setting(const char *name, const char *text)
{
	expect_as(ADMIN, "PUT", format("/_node/_local/_config/chttpd_auth_lockout/%s", name),
		  format("\"%s\"", text), 200, "\"");
}

static void
expect_session(const char *name, const char *password, int status, const char *text)
{
	expect_as(NULL, "POST", "/_session",
		  format("{\"name\":\"%s\",\"password\":\"%s\"}", name, password), status, text);
}

static void
a_name_that_fails_five_times_is_locked_out_and_others_are_not(void **state)
{
	(void)state;
	expect_as(ADMIN, "PUT", USER "flo",
		  "{\"type\":\"user\",\"name\":\"flo\",\"roles\":[],\"password\":\"fig\"}", 201,
		  "ok");
	for (int i = 0; i < 5; i++)
		expect_session("flo", "x", 401, "Name or password is incorrect.");
	expect_session("flo", "fig", 403,
		       "Account is temporarily locked due to multiple authentication failures");
	/* flo:fig */
	expect_as("Authorization: Basic ZmxvOmZpZw==\r\n", "GET", "/_session", NULL, 403,
		  "temporarily locked");
	assert_int_equal(LINES("event=login_refused name=\"flo\" method=session reason=wrong"), 5);
	assert_int_equal(LINES("event=login_refused name=\"flo\" method=basic reason=locked"), 1);
	expect_session("admin", "secret", 200, "ok");
	for (int i = 0; i < 5; i++)
		expect_session("nobody", "x", 401, "Name or password is incorrect.");
	expect_session("nobody", "x", 403, "temporarily locked");

	expect_as(ADMIN, "GET", USER "flo", NULL, 200, "_rev");
	expect_as(ADMIN, "PUT", format(USER "flo?rev=%s", door_member(d, "_rev")),
		  "{\"type\":\"user\",\"name\":\"flo\",\"roles\":[],\"password\":\"kiwi\"}", 201,
		  "ok");
	expect_session("flo", "kiwi", 200, "ok");
}

static void
lockout_ends_with_its_time_or_by_settings(void **state)
{
	(void)state;
	setting("threshold", "3"); /* "admin" has failed twice */
	for (int i = 0; i < 3; i++)
		expect_session("gus", "x", 401, "Name or password is incorrect.");
	expect_session("gus", "x", 403, "temporarily locked");
	setting("mode", "warn");
	expect_session("gus", "x", 401, "Name or password is incorrect.");
	assert_int_equal(
		LINES("level=warn event=login_refused name=\"gus\"", "reason=wrong failing=true"),
		1);
	setting("mode", "enforce");
	expect_session("gus", "x", 403, "temporarily locked");
	setting("max_lifetime", "1");
	(void)usleep(2000); /* A fast machine gets here within the millisecond. */
	expect_session("gus", "x", 401, "Name or password is incorrect.");
	setting("max_lifetime", "300000");
	setting("threshold", "5");
}

static void
names_cannot_forge_parts_of_a_line(void **state)
{
	(void)state;
	expect_as(NULL, "POST", "/_session",
		  "{\"name\":\"x\\\" user=\\\"admin\\nevent=login\",\"password\":\"a\"}", 401,
		  "Name or password");
	assert_int_equal(
		LINES("event=login_refused name=\"x%22%20user=%22admin%0Aevent=login\" method="),
		1);
}

/* Returns the sum of what the lines of refusals say was left out before them. */
static size_t
refusals_left_out(void)
{
	size_t sum = 0;
	char *rest = NULL;

	log_read();
	for (char *line = strtok_r(log_text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		const char *left_out = strstr(line, " left_out=");

		if (strstr(line, "event=refused") && left_out)
			sum += strtoul(left_out + strlen(" left_out="), NULL, 10);
	}
	return sum;
}

static void
a_flood_of_refusals_is_cut_and_counted(void **state)
{
	uint64_t seconds, begin = clock_mono_ns();
	size_t lines;

	(void)state;
	for (int i = 0; i < 300; i++)
		expect_as(NULL, "GET", "/_all_dbs", NULL, 401, "server admin");
	seconds = (clock_mono_ns() - begin) / (1000 * CLOCK_NS_PER_MS) + 2;
	lines = LINES("event=refused", "_all_dbs");
	assert_in_range(lines, 1, seconds * AUDIT_LINES_PER_S);
	(void)sleep(1); /* The next request falls into another second and gets its line. */
	expect_as(NULL, "GET", "/_all_dbs?last", NULL, 401, "server admin");
	lines = LINES("event=refused", "_all_dbs");
	assert_int_equal(lines + refusals_left_out(), 301);
}

#define LOGGED(test) cmocka_unit_test_setup_teardown(test, log_begin, log_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOGGED(logins_are_logged_with_name_address_and_door),
		LOGGED(credentials_are_logged_once_and_not_when_they_are_remembered),
		LOGGED(refusals_are_logged_with_what_was_asked_for),
		LOGGED(changes_of_people_rights_and_settings_are_logged),
		LOGGED(a_name_that_fails_five_times_is_locked_out_and_others_are_not),
		LOGGED(lockout_ends_with_its_time_or_by_settings),
		LOGGED(names_cannot_forge_parts_of_a_line),
		LOGGED(a_flood_of_refusals_is_cut_and_counted),
	};

	return cmocka_run_group_tests_name("couch_audit", tests, setup_audit, teardown);
}
