/*
 * People: documents of _users become records, and logins go by these. One server with an
 * administrator; hashes have few rounds, so that the tests are quick.
 */
#include "common.h"

#include "access/person.h"
#include "base/base64.h"

#define ADMIN       "Authorization: Basic YWRtaW46c2VjcmV0\r\n"
#define HOW(scheme) "X-CouchDB-WWW-Authenticate: " scheme "\r\n"
#define USER        "/_users/org.couchdb.user:"

static int
setup_people(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "10" },
						 { "couchdb", "users_db_security_editable",
						   "true" },
						 { NULL } };

	(void)state;
	d = door_start_with(true, settings, NULL);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/_users/_security", "{}", 200, "ok");
	return 0;
}

/* The header of somebody's Basic credentials; valid until the next but three calls of format(). */
static const char *
as(const char *name, const char *password)
{
	AUTO(buf_release) struct buf b = BUF_INIT(4096);
	const char *plain = format("%s:%s", name, password);

	base64_encode(&b, str_from_cstr(plain), BASE64_STANDARD);
	return format("Authorization: Basic %.*s\r\n", STR_ARG(buf_str(&b)));
}

static const char *
user_json(const char *name, const char *roles, const char *more)
{
	return format("{\"type\":\"user\",\"name\":\"%s\",\"roles\":%s%s}", name, roles, more);
}

/* Makes a person by a document, whose revision is then in the last answer. */
static void
sign_up(const char *name, const char *roles, const char *password)
{
	const char *more = format(",\"password\":\"%s\"", password);

	expect_as(ADMIN, "PUT", format(USER "%s", name), user_json(name, roles, more), 201, "ok");
}

static void
expect_login(const char *name, const char *password, const char *roles)
{
	expect_as(as(name, password), "GET", "/_session", NULL, 200,
		  format("\"userCtx\":{\"name\":\"%s\",\"roles\":%s}", name, roles));
}

static void
expect_no_login(const char *name, const char *password)
{
	expect_as(as(name, password), "GET", "/_session", NULL, 401,
		  "Name or password is incorrect.");
}

static const char *
cookie_of(const char *name, const char *password)
{
	static char text[600];
	const char *given;

	expect_as(NULL, "POST", "/_session",
		  format("{\"name\":\"%s\",\"password\":\"%s\"}", name, password), 200, "ok");
	given = response_header(&d->last, "Set-Cookie");
	assert_non_null(given);
	(void)snprintf(text, sizeof(text), "Cookie: %.*s\r\n", (int)strcspn(given, ";"), given);
	return text;
}

static void
rev_of(const char *id, char rev[64])
{
	expect_as(ADMIN, "GET", format("/_users/%s", id), NULL, 200, "_rev");
	(void)snprintf(rev, 64, "%s", door_member(d, "_rev"));
}

/* ---- Records ---- */

static void
password_of_a_document_is_replaced_by_a_hash(void **state)
{
	(void)state;
	sign_up("jan", "[\"cook\"]", "apple");
	expect_as(ADMIN, "GET", USER "jan", NULL, 200, "\"password_scheme\":\"pbkdf2\"");
	door_has(d, "\"pbkdf2_prf\":\"sha256\"");
	door_has(d, "\"iterations\":10");
	door_has(d, "\"derived_key\":\"");
	door_has(d, "\"salt\":\"");
	door_has_not(d, "apple");
	door_has_not(d, "\"password\":");
	expect_login("jan", "apple", "[\"cook\"]");
	expect_no_login("jan", "Apple");
	expect_no_login("jan", "");
}

struct look {
	struct str name;
	struct arena *arena;
	struct person person;
};

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	struct look *l = arg;

	return person_get(tx, l->name, l->arena, &l->person, NULL);
}

static void
record_has_keys_of_scram_that_are_not_the_hash(void **state)
{
	struct look l = { .name = STR("scram"), .arena = arena_new(1 << 20) };
	struct scram again;

	(void)state;
	sign_up("scram", "[]", "apple");
	assert_int_equal(kv_run_read(d->store, look_body, &l, NULL), STATUS_OK);
	assert_true(l.person.has_verifier && l.person.has_scram);
	again = l.person.scram;
	assert_true(scram_derive(STR("apple"), &again));
	assert_memory_equal(again.stored_key, l.person.scram.stored_key, SCRAM_KEY_BYTES);
	assert_memory_not_equal(l.person.scram.salt, l.person.verifier.salt, SCRAM_SALT_BYTES);
	arena_free(l.arena);
}

static void
bulk_and_post_write_people_too(void **state)
{
	(void)state;
	expect_as(ADMIN, "POST", "/_users/_bulk_docs",
		  "{\"docs\":[{\"_id\":\"org.couchdb.user:b1\",\"type\":\"user\",\"name\":\"b1\","
		  "\"roles\":[],\"password\":\"one\"},{\"_id\":\"org.couchdb.user:b2\","
		  "\"type\":\"user\",\"name\":\"b2\",\"roles\":[\"x\"],\"password\":\"two\"},"
		  "{\"_id\":\"org.couchdb.user:b3\",\"type\":\"user\",\"name\":\"b4\","
		  "\"roles\":[]}]}",
		  201, "\"error\":\"forbidden\"");
	expect_as(ADMIN, "POST", "/_users",
		  "{\"_id\":\"org.couchdb.user:b5\",\"type\":\"user\",\"name\":\"b5\","
		  "\"roles\":[],\"password\":\"five\"}",
		  201, "ok");
	expect_login("b1", "one", "[]");
	expect_login("b2", "two", "[\"x\"]");
	expect_login("b5", "five", "[]");
	expect_as(ADMIN, "GET", USER "b1", NULL, 200, "derived_key");
	door_has_not(d, "\"one\"");
}

/* A hash by Python's hashlib, as a replication brings it. */
#define SECRET_HASH                                                                                \
	",\"password_scheme\":\"pbkdf2\",\"pbkdf2_prf\":\"sha256\",\"iterations\":10,"             \
	"\"salt\":\"salt\",\"derived_key\":"                                                       \
	"\"2fb151da5bf7a44c5470345b6ff0716d7279bbc9137299d5f1a5f62bb101ab9d\""

static void
replicated_user(const char *name, const char *rev, const char *roles)
{
	expect_as(
		ADMIN, "POST", "/_users/_bulk_docs",
		format("{\"new_edits\":false,\"docs\":[{\"_id\":\"org.couchdb.user:%s\","
		       "\"_rev\":\"%s\",\"type\":\"user\",\"name\":\"%s\",\"roles\":%s" SECRET_HASH
		       "}]}",
		       name, rev, name, roles),
		201, "[]");
}

static void
winner_among_conflicts_is_the_person(void **state)
{
	(void)state;
	replicated_user("rep", "1-aaa", "[\"low\"]");
	expect_login("rep", "secret", "[\"low\"]");
	replicated_user("rep", "1-bbb", "[\"high\"]");
	expect_login("rep", "secret", "[\"high\"]");
	replicated_user("rep", "1-aab", "[\"loser\"]");
	expect_login("rep", "secret", "[\"high\"]");
	/* The losing branch becomes the winner when the other one goes. */
	expect_as(ADMIN, "DELETE", USER "rep?rev=1-bbb", NULL, 200, "ok");
	expect_login("rep", "secret", "[\"loser\"]");
	expect_as(ADMIN, "POST", "/_users/_purge", "{\"org.couchdb.user:rep\":[\"1-aab\"]}", 201,
		  "1-aab");
	expect_login("rep", "secret", "[\"low\"]");
	expect_as(ADMIN, "POST", "/_users/_purge", "{\"org.couchdb.user:rep\":[\"1-aaa\"]}", 201,
		  "1-aaa");
	expect_no_login("rep", "secret");
}

static void
old_hashes_of_couchdb_are_accepted(void **state)
{
	(void)state;
	expect_as(ADMIN, "PUT", USER "simple",
		  user_json("simple", "[]",
			    ",\"salt\":\"salt\",\"password_sha\":"
			    "\"8152bc582f58c854f580cb101d3182813dec4afe\""),
		  201, "ok");
	expect_login("simple", "secret", "[]");
	expect_no_login("simple", "secretsalt");
	expect_as(ADMIN, "PUT", USER "sha1",
		  user_json("sha1", "[]",
			    ",\"password_scheme\":\"pbkdf2\",\"iterations\":10,\"salt\":\"salt\","
			    "\"derived_key\":\"e248fb6b13365146f8ac6307cc2228127872da6d\""),
		  201, "ok");
	expect_login("sha1", "secret", "[]");
	expect_as(ADMIN, "PUT", USER "both",
		  user_json("both", "[]",
			    ",\"password_scheme\":\"simple+pbkdf2\",\"pbkdf2_prf\":\"sha256\","
			    "\"iterations\":10,\"salt\":\"salt\",\"derived_key\":"
			    "\"be30f536b9d88ac34fbe1ce55dfe576e6935da2f6b979d003e17940c090acdf4\""),
		  201, "ok");
	expect_login("both", "secret", "[]");
}

static void
first_login_after_an_import_makes_keys_of_scram(void **state)
{
	struct look l = { .name = STR("import"), .arena = arena_new(1 << 20) };
	struct scram again;

	(void)state;
	replicated_user("import", "1-aaa", "[\"a\"]");
	assert_int_equal(kv_run_read(d->store, look_body, &l, NULL), STATUS_OK);
	assert_false(l.person.has_scram);
	expect_no_login("import", "other");
	assert_int_equal(kv_run_read(d->store, look_body, &l, NULL), STATUS_OK);
	assert_false(l.person.has_scram);
	expect_login("import", "secret", "[\"a\"]");
	assert_int_equal(kv_run_read(d->store, look_body, &l, NULL), STATUS_OK);
	assert_true(l.person.has_verifier && l.person.has_scram);
	again = l.person.scram;
	assert_true(scram_derive(STR("secret"), &again));
	assert_memory_equal(again.stored_key, l.person.scram.stored_key, SCRAM_KEY_BYTES);
	/* The hash was good enough, so the document is the one that came. */
	expect_as(ADMIN, "GET", USER "import", NULL, 200, "\"_rev\":\"1-aaa\"");
	expect_login("import", "secret", "[\"a\"]");
	arena_free(l.arena);
}

#define SIMPLE_HASH                                                                                \
	",\"salt\":\"salt\",\"password_sha\":\"8152bc582f58c854f580cb101d3182813dec4afe\""

static void
put_option(const char *path, const char *text)
{
	expect_as(ADMIN, "PUT", format("/_node/_local/_config/%s", path), format("\"%s\"", text),
		  200, "");
}

static void
weak_hashes_are_upgraded_at_login(void **state)
{
	struct look l = { .name = STR("weak"), .arena = arena_new(1 << 20) };
	char cookie[600];

	(void)state;
	put_option("chttpd_auth/upgrade_hash_on_auth", "false");
	expect_as(ADMIN, "PUT", USER "weak",
		  user_json("weak", "[\"a\"]", ",\"more\":[1,{\"x\":2}]" SIMPLE_HASH), 201, "ok");
	(void)snprintf(cookie, sizeof(cookie), "%s", cookie_of("weak", "secret"));
	expect_as(ADMIN, "GET", USER "weak", NULL, 200, "\"_rev\":\"1-");
	/* Another revision, so that the password is hashed again. */
	put_option("chttpd_auth/upgrade_hash_on_auth", "true");
	expect_as(ADMIN, "GET", USER "weak", NULL, 200, "\"password_sha\":");
	expect_as(ADMIN, "PUT", format(USER "weak?rev=%s", door_member(d, "_rev")),
		  user_json("weak", "[\"b\"]", ",\"more\":[1,{\"x\":2}]" SIMPLE_HASH), 201, "ok");
	expect_no_login("weak", "other");
	expect_as(ADMIN, "GET", USER "weak", NULL, 200, "\"password_sha\":");
	expect_login("weak", "secret", "[\"b\"]");
	expect_as(ADMIN, "GET", USER "weak", NULL, 200, "\"_rev\":\"3-");
	door_has(d, "\"password_scheme\":\"pbkdf2\",\"pbkdf2_prf\":\"sha256\"");
	door_has(d, "\"iterations\":10");
	door_has(d, "\"more\":[1,{\"x\":2}]");
	door_has_not(d, "password_sha");
	door_has_not(d, "\"secret\"");
	expect_login("weak", "secret", "[\"b\"]");
	expect_no_login("weak", "other");
	expect_as(ADMIN, "GET", USER "weak", NULL, 200, "\"_rev\":\"3-");
	/* The salt is the same, so cookies of before hold. */
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"roles\":[\"b\"]");
	assert_int_equal(kv_run_read(d->store, look_body, &l, NULL), STATUS_OK);
	assert_true(l.person.has_scram);
	arena_free(l.arena);
}

static void
hashes_that_are_stronger_than_new_ones_stay(void **state)
{
	(void)state;
	put_option("chttpd_auth/iterations", "5");
	replicated_user("strong", "1-aaa", "[]");
	expect_login("strong", "secret", "[]");
	expect_as(ADMIN, "GET", USER "strong", NULL, 200, "\"_rev\":\"1-aaa\"");
	put_option("chttpd_auth/iterations", "20");
	/* A password that is remembered is not hashed, and its hash not replaced. */
	expect_as(ADMIN, "GET", USER "strong", NULL, 200, "\"iterations\":10");
	replicated_user("strong", "1-bbb", "[\"x\"]");
	expect_login("strong", "secret", "[\"x\"]");
	expect_as(ADMIN, "GET", USER "strong", NULL, 200, "\"iterations\":20");
	put_option("chttpd_auth/iterations", "10");
}

static void
who_is_removed_is_refused_on_the_next_request(void **state)
{
	char cookie[600];
	char rev[64];

	(void)state;
	sign_up("gone", "[]", "apple");
	(void)snprintf(cookie, sizeof(cookie), "%s", cookie_of("gone", "apple"));
	expect_login("gone", "apple", "[]");
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"name\":\"gone\"");
	rev_of("org.couchdb.user:gone", rev);
	expect_as(ADMIN, "DELETE", format(USER "gone?rev=%s", rev), NULL, 200, "ok");
	expect_no_login("gone", "apple");
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"name\":null");
}

static void
roles_of_a_session_are_those_of_now(void **state)
{
	char cookie[600];
	char rev[64];

	(void)state;
	sign_up("rolf", "[\"a\",\"b\"]", "apple");
	(void)snprintf(cookie, sizeof(cookie), "%s", cookie_of("rolf", "apple"));
	door_has(d, "\"roles\":[\"a\",\"b\"]");
	rev_of("org.couchdb.user:rolf", rev);
	expect_as(ADMIN, "PUT", format(USER "rolf?rev=%s", rev),
		  user_json("rolf", "[\"c\"]", SECRET_HASH), 201, "ok");
	/* The salt is another one, so the cookie is not of this password. */
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"name\":null");
	(void)snprintf(cookie, sizeof(cookie), "%s", cookie_of("rolf", "secret"));
	rev_of("org.couchdb.user:rolf", rev);
	expect_as(ADMIN, "PUT", format(USER "rolf?rev=%s", rev),
		  user_json("rolf", "[\"d\"]", SECRET_HASH), 201, "ok");
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"roles\":[\"d\"]");
	door_has(d, "\"authenticated\":\"cookie\"");
}

static void
administrator_wins_over_a_person_of_the_same_name(void **state)
{
	(void)state;
	sign_up("admin", "[\"x\"]", "other");
	expect_as(ADMIN, "GET", "/_session", NULL, 200, "\"roles\":[\"_admin\"]");
	expect_no_login("admin", "other");
}

static void
deleting_the_database_removes_everybody(void **state)
{
	(void)state;
	sign_up("last", "[]", "apple");
	expect_login("last", "apple", "[]");
	expect_as(ADMIN, "DELETE", "/_users", NULL, 200, "ok");
	expect_no_login("last", "apple");
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/_users/_security", "{}", 200, "ok");
	expect_no_login("last", "apple");
}

/* ---- Rules ---- */

static void
shape_of_a_user_is_checked_in_couchdbs_words(void **state)
{
	static const struct {
		const char *body;
		const char *reason;
	} rows[] = {
		{ "{\"name\":\"x\",\"roles\":[]}", "doc.type must be user" },
		{ "{\"type\":\"user\",\"roles\":[]}", "doc.name is required" },
		{ "{\"type\":\"user\",\"name\":\"x\"}", "doc.roles must exist" },
		{ "{\"type\":\"user\",\"name\":\"x\",\"roles\":{}}", "doc.roles must be an array" },
		{ "{\"type\":\"user\",\"name\":\"x\",\"roles\":[1]}",
		  "doc.roles can only contain strings" },
		{ "{\"type\":\"user\",\"name\":\"y\",\"roles\":[]}",
		  "Doc ID must be of the form org.couchdb.user:name" },
		{ "{\"type\":\"user\",\"name\":\"x\",\"roles\":[\"_admin\"]}",
		  "No system roles (starting with underscore) in users db." },
		{ "{\"type\":\"user\",\"name\":\"x\",\"roles\":[],\"password_scheme\":\"md5\"}",
		  "Password scheme `md5` not supported." },
		{ "{\"type\":\"user\",\"name\":\"x\",\"roles\":[],\"password_scheme\":\"pbkdf2\"}",
		  "iterations must be a number." },
		{ "{\"type\":\"user\",\"name\":\"x\",\"roles\":[],\"password_scheme\":\"pbkdf2\","
		  "\"iterations\":1}",
		  "derived_key must be a string." },
		{ "{\"type\":\"user\",\"name\":\"x\",\"roles\":[],\"password_sha\":\"1\"}",
		  "Users with password_sha must have a salt." },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_as(ADMIN, "PUT", USER "x", rows[i].body, 403, rows[i].reason);
		door_has(d, "\"error\":\"forbidden\"");
	}
	expect_as(ADMIN, "PUT", USER "_x", user_json("_x", "[]", ""), 403,
		  "Username may not start with underscore.");
	expect_as(ADMIN, "PUT", USER "a:b", user_json("a:b", "[]", ""), 403,
		  "Character `:` is not allowed in usernames.");
	expect_as(ADMIN, "PUT", "/_users/other", user_json("x", "[]", ""), 403, "Doc ID must be");
	expect_as(ADMIN, "GET", USER "x", NULL, 404, "missing");
}

static void
anybody_signs_up_where_the_database_is_public(void **state)
{
	(void)state;
	expect_as(NULL, "PUT", USER "self", user_json("self", "[]", ",\"password\":\"made\""), 201,
		  "ok");
	expect_login("self", "made", "[]");
	expect_as(NULL, "PUT", USER "chief",
		  user_json("chief", "[\"chief\"]", ",\"password\":\"made\""), 403,
		  "Only _admin may set roles");
	expect_as(NULL, "PUT", USER "self", user_json("self", "[]", ",\"password\":\"stolen\""),
		  409, "conflict");
	expect_login("self", "made", "[]");
}

static void
users_change_what_is_theirs_and_no_roles(void **state)
{
	char rev[64];

	(void)state;
	sign_up("own", "[\"r\"]", "apple");
	sign_up("victim", "[]", "apple");
	rev_of("org.couchdb.user:own", rev);
	expect_as(as("own", "apple"), "PUT", format(USER "own?rev=%s", rev),
		  user_json("own", "[\"r\",\"s\"]", ",\"password\":\"pear\""), 403,
		  "Only _admin may edit roles");
	expect_as(as("own", "apple"), "PUT", format(USER "own?rev=%s", rev),
		  user_json("own", "[\"r\"]", ",\"password\":\"pear\""), 201, "ok");
	expect_no_login("own", "apple");
	expect_login("own", "pear", "[\"r\"]");
	rev_of("org.couchdb.user:victim", rev);
	expect_as(as("own", "pear"), "PUT", format(USER "victim?rev=%s", rev),
		  user_json("victim", "[]", ",\"password\":\"mine\""), 404, "missing");
	expect_as(as("own", "pear"), "DELETE", format(USER "victim?rev=%s", rev), NULL, 404,
		  "missing");
	expect_as(NULL, "DELETE", format(USER "victim?rev=%s", rev), NULL, 403,
		  "Only admins may delete other user docs.");
	expect_as(as("own", "pear"), "POST", "/_users/_bulk_docs",
		  format("{\"docs\":[{\"_id\":\"org.couchdb.user:victim\",\"_rev\":\"%s\","
			 "\"_deleted\":true}]}",
			 rev),
		  201, "\"error\":\"not_found\"");
	expect_login("victim", "apple", "[]");
	rev_of("org.couchdb.user:own", rev);
	expect_as(as("own", "pear"), "DELETE", format(USER "own?rev=%s", rev), NULL, 200, "ok");
	expect_no_login("own", "pear");
}

static void
users_see_their_own_document_without_hashes(void **state)
{
	char rev[64];

	(void)state;
	sign_up("anna", "[]", "apple");
	sign_up("otto", "[]", "apple");
	expect_as(as("anna", "apple"), "GET", USER "anna", NULL, 200, "\"name\":\"anna\"");
	door_has_not(d, "derived_key");
	door_has_not(d, "salt");
	door_has_not(d, "iterations");
	/* Written back as it was read, the password stays. */
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "_rev"));
	expect_as(as("anna", "apple"), "PUT", format(USER "anna?rev=%s", rev),
		  user_json("anna", "[]", ",\"town\":\"Bonn\""), 201, "ok");
	expect_login("anna", "apple", "[]");
	expect_as(as("anna", "apple"), "GET", USER "otto", NULL, 404, "missing");
	expect_as(as("anna", "apple"), "GET", USER "nobody", NULL, 404, "missing");
	expect_as(NULL, "GET", USER "anna", NULL, 404, "missing");
}

static void
nobody_else_lists_or_searches_users(void **state)
{
	static const struct {
		const char *method;
		const char *target;
		const char *body;
		int status;
	} rows[] = {
		{ "GET", "/_users/_all_docs", NULL, 401 },
		{ "GET", "/_users/_changes", NULL, 401 },
		{ "GET", "/_users/_design_docs", NULL, 403 },
		{ "GET", "/_users/_local_docs", NULL, 403 },
		{ "POST", "/_users/_find", "{\"selector\":{}}", 403 },
		{ "POST", "/_users/_explain", "{\"selector\":{}}", 403 },
		{ "POST", "/_users/_bulk_get", "{\"docs\":[{\"id\":\"org.couchdb.user:hid\"}]}",
		  403 },
		{ "POST", "/_users/_revs_diff", "{\"org.couchdb.user:hid\":[\"1-x\"]}", 403 },
		{ "GET", "/_users/_design/x", NULL, 403 },
		{ "GET", "/_users/_design%2Fx", NULL, 403 },
		{ "GET", "/_users/_design/x/_view/y", NULL, 403 },
		{ "GET", "/_users/_local/x", NULL, 403 },
		{ "GET", "/_users/org.couchdb.user:hid/file", NULL, 403 },
		{ "PATCH", "/_users/org.couchdb.user:hid", "{}", 403 },
		{ "COPY", "/_users/org.couchdb.user:hid", NULL, 403 },
		{ "GET", "/_users/org.couchdb.user:hid?open_revs=all", NULL, 404 },
		{ "GET", "/_users/org.couchdb.user:hid?path=/name", NULL, 404 },
	};

	(void)state;
	sign_up("hid", "[\"hidden\"]", "apple");
	sign_up("curious", "[]", "apple");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_as(as("curious", "apple"), rows[i].method, rows[i].target, rows[i].body,
			  rows[i].status, "error");
		door_has_not(d, "hidden");
		door_has_not(d, "derived_key");
	}
}

static void
public_fields_are_shown_to_everybody(void **state)
{
	(void)state;
	sign_up("pub", "[]", "apple");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd_auth/public_fields",
		  "\"name, type, salt\"", 200, "\"\"");
	expect_as(NULL, "GET", USER "pub", NULL, 200, "\"name\":\"pub\"");
	door_has(d, "\"type\":\"user\"");
	door_has_not(d, "roles");
	door_has_not(d, "salt");
	expect_as(ADMIN, "DELETE", "/_node/_local/_config/chttpd_auth/public_fields", NULL, 200,
		  "name");
	expect_as(NULL, "GET", USER "pub", NULL, 404, "missing");
}

static void
security_of_users_is_fixed_unless_settings_open_it(void **state)
{
	(void)state;
	expect_as(ADMIN, "PUT", "/_node/_local/_config/couchdb/users_db_security_editable",
		  "\"false\"", 200, "");
	expect_as(ADMIN, "PUT", "/_users/_security", "{}", 403,
		  "You can't edit the security object of the user database.");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/couchdb/users_db_security_editable",
		  "\"true\"", 200, "");
	expect_as(ADMIN, "PUT", "/_users/_security", "{}", 200, "ok");
}

/* ---- Sessions ---- */

/* Bytes of JSON strings, in which the setting's quotes have backslashes. */
#define RULES   "/_node/_local/_config/chttpd_auth/password_regexp"
#define REFUSED "{\"error\":\"bad_request\",\"reason\":\"Password does not conform to requirements."

static void
passwords_match_the_expressions_of_the_settings(void **state)
{
	const char *weak =
		"{\"type\":\"user\",\"name\":\"rules\",\"roles\":[],\"password\":\"short\"}";
	char rev[64];

	(void)state;
	expect_as(ADMIN, "PUT", RULES, "\"[{\\\".{10,}\\\", \\\"Ten.\\\"}, \\\"\\\\\\\\d\\\"]\"",
		  200, "");
	expect_as(ADMIN, "PUT", USER "rules", weak, 400, REFUSED " Ten.\"}");
	expect_as(ADMIN, "POST", "/_users/_bulk_docs",
		  "{\"docs\":[{\"_id\":\"org.couchdb.user:rules\",\"type\":\"user\","
		  "\"name\":\"rules\",\"roles\":[],\"password\":\"long enough\"}]}",
		  201, "Password does not conform to requirements.\"}");
	expect_as(ADMIN, "GET", USER "rules", NULL, 404, "not_found");
	sign_up("rules", "[]", "long enough 1");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "rev"));
	expect_login("rules", "long enough 1", "[]");
	expect_as(as("rules", "long enough 1"), "PUT", format(USER "rules?rev=%s", rev), weak, 400,
		  REFUSED " Ten.\"}");
	expect_as(ADMIN, "PUT", RULES, "\"{{\\\".\\\"}}\"", 400,
		  "[chttpd_auth] password_regexp: a '[' is missing where the list begins");
	expect_as(ADMIN, "DELETE", RULES, NULL, 200, "Ten.");
	sign_up("weak", "[]", "short");
}

static void
cookies_outlive_their_secret_by_the_overlap(void **state)
{
	char cookie[600];

	(void)state;
	sign_up("overlap", "[]", "apple");
	(void)snprintf(cookie, sizeof(cookie), "%s", cookie_of("overlap", "apple"));
	put_option("chttpd_auth/secret", "the first of two secrets");
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"name\":\"overlap\"");
	/* The answer has a cookie of the present secret. */
	assert_non_null(response_header(&d->last, "Set-Cookie"));
	put_option("chttpd_auth/secret_overlap", "0");
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"name\":null");
	(void)snprintf(cookie, sizeof(cookie), "%s", cookie_of("overlap", "apple"));
	put_option("chttpd_auth/secret", "the second of two secrets");
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"name\":null");
	put_option("chttpd_auth/secret_overlap", "600");
	expect_as(cookie, "GET", "/_session", NULL, 200, "\"name\":\"overlap\"");
}

static void
attributes_of_the_cookie_are_those_of_the_settings(void **state)
{
	const char *given;

	(void)state;
	sign_up("cook", "[]", "apple");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd_auth/same_site", "\"strict\"", 200,
		  "");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd_auth/timeout", "\"1200\"", 200, "");
	expect_as("X-Forwarded-Proto: https\r\n", "POST", "/_session",
		  "{\"name\":\"cook\",\"password\":\"apple\"}", 200, "\"name\":\"cook\"");
	given = response_header(&d->last, "Set-Cookie");
	assert_non_null(strstr(given, "; Max-Age=1200;"));
	assert_non_null(strstr(given, "; SameSite=Strict"));
	assert_non_null(strstr(given, "; Secure"));
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd_auth/allow_persistent_cookies",
		  "\"false\"", 200, "");
	(void)cookie_of("cook", "apple");
	given = response_header(&d->last, "Set-Cookie");
	assert_null(strstr(given, "Max-Age"));
	assert_null(strstr(given, "Secure"));
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = { "same_site", "timeout",
						     "allow_persistent_cookies" };

		expect_as(ADMIN, "DELETE", format("/_node/_local/_config/chttpd_auth/%s", names[i]),
			  NULL, 200, "");
	}
}

static void
everybody_has_to_log_in_where_settings_want_it(void **state)
{
	(void)state;
	sign_up("valid", "[]", "apple");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd/require_valid_user", "\"true\"", 200,
		  "");
	expect_as(NULL, "GET", "/", NULL, 401, "Authentication required.");
	expect_as(NULL, "GET", "/_up", NULL, 401, "Authentication required.");
	expect_as(NULL, "GET", "/_session", NULL, 401, "Authentication required.");
	assert_string_equal(response_header(&d->last, "WWW-Authenticate"),
			    "Basic realm=\"server\"");
	expect_as(as("valid", "pear"), "GET", "/", NULL, 401, "Name or password is incorrect.");
	assert_string_equal(response_header(&d->last, "WWW-Authenticate"),
			    "Basic realm=\"server\"");
	expect_as(HOW("Cookie"), "GET", "/", NULL, 401, "Authentication required.");
	assert_string_equal(response_header(&d->last, "WWW-Authenticate"), "Cookie");
	/* A page with a form of its own would have a browser's window in front of it. */
	expect_as(HOW("Cookie"), "POST", "/_session", "{\"name\":\"valid\",\"password\":\"pear\"}",
		  401, "Name or password is incorrect.");
	assert_null(response_header(&d->last, "WWW-Authenticate"));
	expect_as(NULL, "POST", "/_session", "{\"name\":\"valid\",\"password\":\"pear\"}", 401,
		  "Name or password is incorrect.");
	assert_null(response_header(&d->last, "WWW-Authenticate"));
	expect_as(as("valid", "apple"), "GET", "/", NULL, 200, "Welcome");
	(void)cookie_of("valid", "apple");
	expect_as(ADMIN, "DELETE", "/_node/_local/_config/chttpd/require_valid_user", NULL, 200,
		  "");
	expect_as(ADMIN, "PUT", "/_node/_local/_config/chttpd/require_valid_user_except_for_up",
		  "\"true\"", 200, "");
	expect_as(NULL, "GET", "/_up", NULL, 200, "ok");
	expect_as(NULL, "GET", "/", NULL, 401, "Authentication required.");
	expect_as(ADMIN, "DELETE", "/_node/_local/_config/chttpd/require_valid_user_except_for_up",
		  NULL, 200, "");
	expect_as(NULL, "GET", "/", NULL, 200, "Welcome");
}

static void
settings_say_how_to_log_in(void **state)
{
	static const char setting[] = "/_node/_local/_config/chttpd/WWW-Authenticate";

	(void)state;
	expect_as(NULL, "PUT", "/nobodys", NULL, 401, "You are not a server admin.");
	assert_null(response_header(&d->last, "WWW-Authenticate"));
	expect_as(ADMIN, "PUT", setting, "\"Basic realm=\\\"couch\\\"\"", 200, "");
	expect_as(NULL, "PUT", "/nobodys", NULL, 401, "You are not a server admin.");
	assert_string_equal(response_header(&d->last, "WWW-Authenticate"), "Basic realm=\"couch\"");
	expect_as(HOW("Cookie"), "PUT", "/nobodys", NULL, 401, "You are not a server admin.");
	assert_string_equal(response_header(&d->last, "WWW-Authenticate"), "Cookie");
	expect_as(ADMIN, "PUT", setting, "\"a\\r\\nb\"", 400, "");
	expect_as(ADMIN, "DELETE", setting, NULL, 200, "couch");
	expect_as(NULL, "PUT", "/nobodys", NULL, 401, "You are not a server admin.");
	assert_null(response_header(&d->last, "WWW-Authenticate"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(password_of_a_document_is_replaced_by_a_hash),
		cmocka_unit_test(record_has_keys_of_scram_that_are_not_the_hash),
		cmocka_unit_test(bulk_and_post_write_people_too),
		cmocka_unit_test(winner_among_conflicts_is_the_person),
		/* Before hashes are upgraded, whose keys of SCRAM wait in a table. */
		cmocka_unit_test(first_login_after_an_import_makes_keys_of_scram),
		cmocka_unit_test(old_hashes_of_couchdb_are_accepted),
		cmocka_unit_test(weak_hashes_are_upgraded_at_login),
		cmocka_unit_test(hashes_that_are_stronger_than_new_ones_stay),
		cmocka_unit_test(who_is_removed_is_refused_on_the_next_request),
		cmocka_unit_test(roles_of_a_session_are_those_of_now),
		cmocka_unit_test(administrator_wins_over_a_person_of_the_same_name),
		cmocka_unit_test(deleting_the_database_removes_everybody),
		cmocka_unit_test(shape_of_a_user_is_checked_in_couchdbs_words),
		cmocka_unit_test(anybody_signs_up_where_the_database_is_public),
		cmocka_unit_test(users_change_what_is_theirs_and_no_roles),
		cmocka_unit_test(users_see_their_own_document_without_hashes),
		cmocka_unit_test(nobody_else_lists_or_searches_users),
		cmocka_unit_test(public_fields_are_shown_to_everybody),
		cmocka_unit_test(security_of_users_is_fixed_unless_settings_open_it),
		cmocka_unit_test(passwords_match_the_expressions_of_the_settings),
		cmocka_unit_test(cookies_outlive_their_secret_by_the_overlap),
		cmocka_unit_test(attributes_of_the_cookie_are_those_of_the_settings),
		cmocka_unit_test(everybody_has_to_log_in_where_settings_want_it),
		cmocka_unit_test(settings_say_how_to_log_in),
	};

	return cmocka_run_group_tests_name("couch people", tests, setup_people, teardown);
}
