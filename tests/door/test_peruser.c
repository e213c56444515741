/*
 * A database for each user: what the chore that follows _users makes of documents, and of settings.
 * One server with an administrator; each test has users and a prefix of its own, so that what other
 * tests leave is out of its way.
 */
#include "common.h"

#include <unistd.h>

#include "base/clock.h"
#include "catalog/chores.h"

#define ADMIN  "Authorization: Basic YWRtaW46c2VjcmV0\r\n"
#define USER   "/_users/org.couchdb.user:"
#define CONFIG "/_node/_local/_config/couch_peruser/"

enum {
	SOON_MS = 120000, /* a busy machine's cluster takes long to make hundreds of databases */
	LOOK_MS = 20,
	MANY = 300, /* several pages */
};

static struct chores *chores;

static void
start_chores(void)
{
	chores = chores_new(d->store);
	assert_non_null(chores);
	couch_chores_add(d->couch, chores);
	assert_int_equal(chores_start(chores, NULL), STATUS_OK);
}

static void
stop_chores(void)
{
	chores_stop(chores);
	chores_free(chores);
	chores = NULL;
}

static int
setup_peruser(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "10" }, { NULL } };

	(void)state;
	d = door_start_with(true, settings, NULL);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	start_chores();
	return 0;
}

static int
teardown_peruser(void **state)
{
	stop_chores();
	return teardown(state);
}

static void
set(const char *name, const char *value)
{
	expect_as(ADMIN, "PUT", format(CONFIG "%s", name), format("\"%s\"", value), 200, "");
}

/* What the tests begin with: a prefix that no database has, and nothing deleted. */
static void
enable(const char *prefix)
{
	set("delete_dbs", "false");
	set("database_prefix", prefix);
	set("enable", "true");
}

static void
put_user(const char *name)
{
	expect_as(ADMIN, "PUT", format(USER "%s", name),
		  format("{\"type\":\"user\",\"name\":\"%s\",\"roles\":[]}", name), 201, "ok");
}

static void
delete_user(const char *name)
{
	expect_as(ADMIN, "GET", format(USER "%s", name), NULL, 200, "_rev");
	expect_as(ADMIN, "DELETE", format(USER "%s?rev=%s", name, door_member(d, "_rev")), NULL,
		  200, "ok");
}

/* Asks until the answer is this. */
static void
await(const char *target, int status, const char *text)
{
	uint64_t end_ns = clock_after_ms(SOON_MS);
	const struct response *r = door_request(d, "GET", target, ADMIN, NULL);

	while (r->status != status || !strstr(r->body, text)) {
		if (clock_mono_ns() > end_ns)
			fail_msg("%s: expected %d with %s in the end, got %d: %s", target, status,
				 text, r->status, r->body);
		usleep(LOOK_MS * 1000);
		r = door_request(d, "GET", target, ADMIN, NULL);
	}
}

/* Waits until the chore has seen all documents so far: it has seen to one behind them. */
static void
await_all(const char *prefix)
{
	static unsigned n;
	AUTO(buf_release) struct buf name = BUF_INIT(64);
	AUTO(buf_release) struct buf hex = BUF_INIT(128);

	buf_printf(&name, "last%u", n++);
	buf_append_hex(&hex, buf_str(&name));
	put_user(format("%.*s", STR_ARG(buf_str(&name))));
	await(format("/%s%.*s", prefix, STR_ARG(buf_str(&hex))), 200, "db_name");
}

static void
expect_no_db(const char *name)
{
	expect_as(ADMIN, "GET", format("/%s", name), NULL, 404, "Database does not exist.");
}

/* ---- Creating ---- */

static void
user_gets_a_database_of_their_own(void **state)
{
	(void)state;
	enable("own-");
	expect_as(ADMIN, "PUT", USER "jan",
		  "{\"type\":\"user\",\"name\":\"jan\",\"roles\":[],\"password\":\"apple\"}", 201,
		  "ok");
	await("/own-6a616e", 200, "\"doc_count\":0");
	expect_as(ADMIN, "GET", "/own-6a616e/_security", NULL, 200,
		  "{\"admins\":{\"roles\":[\"_admin\"],\"names\":[\"jan\"]},"
		  "\"members\":{\"roles\":[\"_admin\"],\"names\":[\"jan\"]}}");
	/* Nobody else reads it; "jan:apple" does, and is its administrator. */
	expect_as(NULL, "GET", "/own-6a616e", NULL, 401, "unauthorized");
	expect_as("Authorization: Basic amFuOmFwcGxl\r\n", "PUT", "/own-6a616e/_design/x", "{}",
		  201, "ok");
}

static void
names_are_written_as_two_digits_for_each_byte(void **state)
{
	(void)state;
	enable("hex-");
	expect_as(ADMIN, "PUT", USER "%C3%A9%20Z",
		  "{\"type\":\"user\",\"name\":\"\\u00e9 Z\",\"roles\":[]}", 201, "ok");
	await("/hex-c3a9205a", 200, "db_name");
	/* CouchDB would put this user into the database of "a", which is 61. */
	expect_as(ADMIN, "PUT", USER "%06%01",
		  "{\"type\":\"user\",\"name\":\"\\u0006\\u0001\",\"roles\":[]}", 201, "ok");
	await("/hex-0601", 200, "db_name");
	expect_no_db("hex-61");
}

static void
replicated_user_gets_a_database_too(void **state)
{
	(void)state;
	enable("rep-");
	expect_as(ADMIN, "POST", "/_users/_bulk_docs",
		  "{\"new_edits\":false,\"docs\":[{\"_id\":\"org.couchdb.user:re\",\"_rev\":"
		  "\"1-aaa\",\"type\":\"user\",\"name\":\"re\",\"roles\":[]}]}",
		  201, "[]");
	await("/rep-7265", 200, "db_name");
	/* A tombstone that comes by replication is a deletion as well. */
	set("delete_dbs", "true");
	expect_as(ADMIN, "POST", "/_users/_bulk_docs",
		  "{\"new_edits\":false,\"docs\":[{\"_id\":\"org.couchdb.user:re\",\"_rev\":"
		  "\"2-aaa\",\"_revisions\":{\"start\":2,\"ids\":[\"aaa\",\"aaa\"]},"
		  "\"_deleted\":true}]}",
		  201, "[]");
	await("/rep-7265", 404, "Database does not exist.");
}

static void
design_documents_and_names_that_are_too_long_are_passed_over(void **state)
{
	char name[120];

	(void)state;
	enable("long-");
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	put_user(name);
	expect_as(ADMIN, "PUT", "/_users/_design/x", "{}", 201, "ok");
	await_all("long-");
}

static void
database_that_is_there_keeps_what_it_has_and_gets_the_user(void **state)
{
	(void)state;
	set("enable", "false");
	expect_as(ADMIN, "PUT", "/is-6f6c64", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/is-6f6c64/doc", "{\"a\":1}", 201, "ok");
	expect_as(ADMIN, "PUT", "/is-6f6c64/_security",
		  "{\"x\":{\"y\":[1]},\"members\":{\"names\":[\"b\"],\"roles\":[\"r\"]}}", 200,
		  "ok");
	enable("is-");
	put_user("old");
	await_all("is-");
	expect_as(ADMIN, "GET", "/is-6f6c64/_security", NULL, 200,
		  "{\"x\":{\"y\":[1]},\"admins\":{\"names\":[\"old\"]},"
		  "\"members\":{\"roles\":[\"r\"],\"names\":[\"old\",\"b\"]}}");
	expect_as(ADMIN, "GET", "/is-6f6c64/doc", NULL, 200, "\"a\":1");
}

/* ---- Deleting ---- */

static void
database_stays_without_its_user_unless_settings_say_otherwise(void **state)
{
	(void)state;
	enable("stay-");
	put_user("bo");
	await("/stay-626f/_security", 200, "bo");
	expect_as(ADMIN, "PUT", "/stay-626f/_security",
		  "{\"admins\":{\"names\":[\"bo\",\"c\"]},\"members\":{\"names\":[\"bo\"]}}", 200,
		  "ok");
	delete_user("bo");
	/* A database whose last member goes is not everybody's. */
	await("/stay-626f/_security", 200,
	      "{\"admins\":{\"names\":[\"c\"]},"
	      "\"members\":{\"names\":[],\"roles\":[\"_admin\"]}}");
	expect_as(NULL, "GET", "/stay-626f", NULL, 401, "unauthorized");
	/* The user comes back. */
	put_user("bo");
	await("/stay-626f/_security", 200, "\"names\":[\"bo\",\"c\"]");
}

static void
database_is_deleted_with_its_user_where_settings_say_so(void **state)
{
	(void)state;
	enable("del-");
	set("delete_dbs", "true");
	put_user("cy");
	put_user("cz");
	await("/del-637a", 200, "db_name");
	await("/del-6379", 200, "db_name");
	delete_user("cy");
	await("/del-6379", 404, "Database does not exist.");
	expect_as(ADMIN, "GET", "/del-637a", NULL, 200, "db_name");
	put_user("cy");
	await("/del-6379", 200, "db_name");
}

/* ---- Settings, restarts ---- */

static void
existing_users_get_databases_when_it_is_turned_on(void **state)
{
	AUTO(buf_release) struct buf body = BUF_INIT(1 << 20);

	(void)state;
	set("enable", "false");
	set("database_prefix", "many-");
	buf_append_cstr(&body, "{\"docs\":[");
	for (int i = 0; i < MANY; i++)
		buf_printf(&body,
			   "%s{\"_id\":\"org.couchdb.user:m%03d\",\"type\":\"user\","
			   "\"name\":\"m%03d\",\"roles\":[]}",
			   i ? "," : "", i, i);
	buf_append_cstr(&body, "]}");
	buf_append_byte(&body, '\0');
	assert_int_equal(buf_status(&body), STATUS_OK);
	expect_as(ADMIN, "POST", "/_users/_bulk_docs", body.ptr, 201, "m299");
	usleep(500 * 1000);
	expect_no_db("many-6d303030");
	set("enable", "true");
	await_all("many-");
	expect_as(ADMIN, "GET", "/_all_dbs?start_key=\"many-6d\"&end_key=\"many-6e\"", NULL, 200,
		  "\"many-6d323939\"");
	for (int i = 0; i < MANY; i++)
		door_has(d, format("\"many-6d3%d3%d3%d\"", i / 100, i / 10 % 10, i % 10));
}

static void
nothing_is_missed_or_done_again_after_a_restart(void **state)
{
	(void)state;
	enable("re-");
	put_user("ra");
	await("/re-7261", 200, "db_name");
	await_all("re-");
	stop_chores();
	expect_as(ADMIN, "DELETE", "/re-7261", NULL, 200, "ok");
	put_user("rb");
	start_chores();
	await("/re-7262", 200, "db_name");
	/* The document of "ra" has not changed since. */
	expect_no_db("re-7261");
}

static void
new_database_of_users_is_followed_from_its_beginning(void **state)
{
	(void)state;
	enable("new-");
	put_user("na");
	await("/new-6e61", 200, "db_name");
	expect_as(ADMIN, "DELETE", "/_users", NULL, 200, "ok");
	expect_as(ADMIN, "DELETE", "/new-6e61", NULL, 200, "ok");
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	put_user("na");
	await("/new-6e61", 200, "db_name");
}

static void
prefix_that_begins_no_name_is_refused(void **state)
{
	static const char *const bad[] = { "", "_users", "Own-", "own.", "9" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_as(ADMIN, "PUT", CONFIG "database_prefix", format("\"%s\"", bad[i]), 400,
			  "database_prefix");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_gets_a_database_of_their_own),
		cmocka_unit_test(names_are_written_as_two_digits_for_each_byte),
		cmocka_unit_test(replicated_user_gets_a_database_too),
		cmocka_unit_test(design_documents_and_names_that_are_too_long_are_passed_over),
		cmocka_unit_test(database_that_is_there_keeps_what_it_has_and_gets_the_user),
		cmocka_unit_test(database_stays_without_its_user_unless_settings_say_otherwise),
		cmocka_unit_test(database_is_deleted_with_its_user_where_settings_say_so),
		cmocka_unit_test(existing_users_get_databases_when_it_is_turned_on),
		cmocka_unit_test(nothing_is_missed_or_done_again_after_a_restart),
		cmocka_unit_test(new_database_of_users_is_followed_from_its_beginning),
		cmocka_unit_test(prefix_that_begins_no_name_is_refused),
	};

	return cmocka_run_group_tests_name("couch peruser", tests, setup_peruser, teardown_peruser);
}
