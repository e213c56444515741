/*
 * Who may do what in _replicator, whose documents hold credentials, and are replications with the
 * rights of their owners. This server has no replicator.
 */
#include "common.h"

#include "base/base64.h"

#define ADMIN "Authorization: Basic YWRtaW46c2VjcmV0\r\n"
#define DB    "/_replicator"

/* An end with credentials in each place that can have some. */
#define SECRETS                                                                                    \
	"\"source\":\"http://u:s3cret@there.example/from?a=b@c\","                                 \
	"\"target\":{\"url\":\"https://u:s3cret@there.example:6984/to\","                          \
	"\"headers\":{\"X-Key\":\"s3cret\"},\"auth\":{\"basic\":{\"username\":\"u\","              \
	"\"password\":\"s3cret\"}}},\"source_proxy\":\"socks5://u:s3cret@proxy.example\","         \
	"\"continuous\":true"

enum who {
	ANONYMOUS,
	OUTSIDER, /* has logged in, and is in no list */
	OTTO,     /* a member */
	ANNA,     /* a member, whose document it is */
	CHIEF,    /* an administrator of _replicator */
	SERVER_ADMIN,
	PEOPLE,
};

static const char *const names[PEOPLE] = {
	[OUTSIDER] = "outsider", [OTTO] = "otto",          [ANNA] = "anna",
	[CHIEF] = "chief",       [SERVER_ADMIN] = "admin",
};

static const char *
as(enum who p)
{
	AUTO(buf_release) struct buf b = BUF_INIT(4096);

	if (p == ANONYMOUS)
		return "";
	base64_encode(
		&b,
		str_from_cstr(format("%s:%s", names[p], p == SERVER_ADMIN ? "secret" : "apple")),
		BASE64_STANDARD);
	return format("Authorization: Basic %.*s\r\n", STR_ARG(buf_str(&b)));
}

static int
setup_replications(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "10" }, { NULL } };

	(void)state;
	d = door_start_with(true, settings, NULL);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	for (enum who p = OUTSIDER; p < SERVER_ADMIN; p++)
		expect_as(ADMIN, "PUT", format("/_users/org.couchdb.user:%s", names[p]),
			  format("{\"type\":\"user\",\"name\":\"%s\",\"roles\":[],"
				 "\"password\":\"apple\"}",
				 names[p]),
			  201, "ok");
	expect_as(ADMIN, "PUT", "/from", NULL, 201, "ok");
	return 0;
}

static int
make_closed(void **state)
{
	(void)state;
	expect_as(ADMIN, "PUT", DB, NULL, 201, "ok");
	return 0;
}

static int
make_open(void **state)
{
	(void)make_closed(state);
	expect_as(ADMIN, "PUT", DB "/_security",
		  "{\"members\":{\"names\":[\"anna\",\"otto\"]},"
		  "\"admins\":{\"names\":[\"chief\"]}}",
		  200, "ok");
	return 0;
}

static int
drop(void **state)
{
	(void)state;
	expect_as(ADMIN, "DELETE", DB, NULL, 200, "ok");
	return 0;
}

static const char *
rev_of(const char *id)
{
	static char rev[64];

	expect_as(ADMIN, "GET", format(DB "/%s", id), NULL, 200, "_rev");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "_rev"));
	return rev;
}

static void
expect_refused(enum who p, const char *method, const char *target, const char *body)
{
	const struct response *r = door_request(d, method, target, as(p), body);

	if (r->status != (p == ANONYMOUS ? 401 : 403) && !(r->status == 401 && p > ANONYMOUS))
		fail_msg("%s %s by %s: %d %s", method, target, names[p] ? names[p] : "anonymous",
			 r->status, r->body);
	door_has_not(d, "s3cret");
}

static void
it_is_closed_until_an_administrator_opens_it(void **state)
{
	(void)state;
	expect_as(ADMIN, "GET", DB "/_security", NULL, 200,
		  "{\"members\":{\"roles\":[\"_admin\"]},\"admins\":{\"roles\":[\"_admin\"]}}");
	expect_as(ADMIN, "PUT", DB "/r", "{" SECRETS "}", 201, "ok");
	for (enum who p = ANONYMOUS; p < SERVER_ADMIN; p++) {
		expect_refused(p, "GET", DB, NULL);
		expect_refused(p, "GET", DB "/r", NULL);
		expect_refused(p, "PUT", DB "/mine", "{" SECRETS "}");
		expect_refused(p, "POST", DB, "{" SECRETS "}");
		expect_refused(p, "POST", DB "/_bulk_docs", "{\"docs\":[{}]}");
		expect_refused(p, "GET", DB "/_security", NULL);
		expect_refused(p, "PUT", DB "/_security", "{}");
	}
}

/* What reads documents, by the way of others than GET. An administrator of the database may it. */
static const struct row {
	const char *method;
	const char *path;
	const char *body;
	enum who least;
} table[] = {
	{ "GET", "", NULL, OTTO },
	{ "GET", "/r", NULL, OTTO },
	{ "HEAD", "/r", NULL, OTTO },
	{ "GET", "/r?open_revs=all", NULL, OTTO },
	{ "GET", "/r?attachments=true&revs=true", NULL, OTTO },
	{ "GET", "/r?path=/target", NULL, OTTO },
	{ "GET", "/r?paths=[%22/target%22]", NULL, OTTO },
	{ "GET", "/_security", NULL, OTTO },
	{ "GET", "/r/file", NULL, CHIEF },
	{ "PUT", "/r/file?rev=1-x", "text", CHIEF },
	{ "DELETE", "/r/file?rev=1-x", NULL, CHIEF },
	{ "COPY", "/r", NULL, CHIEF },
	{ "PATCH", "/r", "[]", CHIEF },
	{ "POST", "/r", "x", CHIEF },
	{ "GET", "/_local/l", NULL, CHIEF },
	{ "PUT", "/_local/l", "{}", CHIEF },
	{ "POST", "/_bulk_get", "{\"docs\":[{\"id\":\"r\"}]}", CHIEF },
	{ "POST", "/_revs_diff", "{\"r\":[\"1-x\"]}", CHIEF },
	{ "POST", "/_missing_revs", "{\"r\":[\"1-x\"]}", CHIEF },
	{ "POST", "/_find", "{\"selector\":{\"target\":{\"$gt\":null}}}", CHIEF },
	{ "POST", "/_explain", "{\"selector\":{}}", CHIEF },
	{ "GET", "/_index", NULL, CHIEF },
	{ "GET", "/_design_docs", NULL, CHIEF },
	{ "GET", "/_local_docs", NULL, CHIEF },
	{ "GET", "/_design/d", NULL, CHIEF },
	{ "GET", "/_design%2Fd", NULL, CHIEF },
	{ "PUT", "/_design/d", "{\"views\":{\"v\":{\"map\":\"function (doc) {}\"}}}", CHIEF },
	{ "GET", "/_design/d/_view/v?include_docs=true", NULL, CHIEF },
	{ "POST", "/_design/d/_update/u", "{}", CHIEF },
	{ "GET", "/_partition/p", NULL, CHIEF },
	{ "GET", "/_purged_infos", NULL, CHIEF },
	{ "GET", "/_revs_limit", NULL, CHIEF },
	{ "PUT", "/_revs_limit", "1000", CHIEF },
	{ "POST", "/_compact", "{}", CHIEF },
	{ "PUT", "/_security",
	  "{\"members\":{\"names\":[\"anna\",\"otto\"]},\"admins\":{\"names\":[\"chief\"]}}",
	  CHIEF },
	{ "GET", "/_all_docs?include_docs=true", NULL, SERVER_ADMIN },
	{ "POST", "/_all_docs", "{\"keys\":[\"r\"]}", SERVER_ADMIN },
	{ "POST", "/_all_docs/queries", "{\"queries\":[{\"include_docs\":true}]}", SERVER_ADMIN },
	{ "GET", "/_changes?include_docs=true", NULL, SERVER_ADMIN },
	{ "POST", "/_changes?filter=_selector", "{\"selector\":{}}", SERVER_ADMIN },
	{ "POST", "/_purge", "{}", SERVER_ADMIN },
};

static void
every_request_is_as_the_table_says(void **state)
{
	unsigned wrong = 0;

	(void)state;
	/* Others' documents are nobody's to copy or change, as other tests say. */
	expect_as(as(CHIEF), "PUT", DB "/r", "{" SECRETS "}", 201, "ok");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct row *row = &table[i];

		for (enum who p = ANONYMOUS; p < PEOPLE; p++) {
			const char *headers = format("%sDestination: copy\r\n%s", as(p),
						     strcmp(row->method, "PATCH") == 0
							     ? "Content-Type: application/"
							       "json-patch+json\r\n"
							     : "");
			const struct response *r = door_request(
				d, row->method, format(DB "%s", row->path), headers, row->body);
			bool refused = r->status == 401 || r->status == 403;

			if (refused != (p < row->least) || (r->status >= 500 && r->status != 501) ||
			    (p < CHIEF && strstr(r->body, "s3cret"))) {
				print_message("# %s %s by %s: %d %s\n", row->method, row->path,
					      names[p] ? names[p] : "anonymous", r->status,
					      r->body);
				wrong++;
			}
		}
	}
	assert_int_equal(wrong, 0);
}

static void
others_see_a_document_without_credentials(void **state)
{
	(void)state;
	expect_as(as(ANNA), "PUT", DB "/r", "{" SECRETS "}", 201, "ok");
	expect_as(as(ANNA), "GET", DB "/r", NULL, 200, "\"owner\":\"anna\"");
	door_has(d, "u:s3cret@there.example/from");
	door_has(d, "\"X-Key\":\"s3cret\"");
	expect_as(as(OTTO), "GET", DB "/r", NULL, 200,
		  "\"source\":\"http://there.example/from?a=b@c\"");
	door_has(d, "\"target\":{\"url\":\"https://there.example:6984/to\"}");
	door_has(d, "\"source_proxy\":\"socks5://proxy.example\"");
	door_has(d, "\"owner\":\"anna\"");
	door_has(d, "\"continuous\":true");
	door_has_not(d, "s3cret");
	expect_as(as(OTTO), "GET", format(DB "/r?rev=%s", rev_of("r")), NULL, 200, "owner");
	door_has_not(d, "s3cret");
	expect_as(as(CHIEF), "GET", DB "/r", NULL, 200, "s3cret");
	expect_as(as(OTTO), "GET", DB "/none", NULL, 404, "missing");
}

static void
users_change_their_own_documents(void **state)
{
	(void)state;
	expect_as(as(ANNA), "PUT", DB "/r", "{" SECRETS "}", 201, "ok");
	expect_as(as(ANNA), "PUT", format(DB "/r?rev=%s", rev_of("r")),
		  "{" SECRETS ",\"owner\":\"anna\",\"n\":2}", 201, "ok");
	expect_as(as(ANNA), "POST", DB "/_bulk_docs",
		  format("{\"docs\":[{\"_id\":\"r\",\"_rev\":\"%s\"," SECRETS ",\"n\":3}]}",
			 rev_of("r")),
		  201, "\"ok\":true");
	expect_as(as(ANNA), "GET", DB "/r", NULL, 200, "\"n\":3");
	door_has(d, "\"owner\":\"anna\"");
	expect_as(as(ANNA), "POST", DB, "{\"_id\":\"p\"," SECRETS "}", 201, "ok");
	expect_as(as(ANNA), "GET", DB "/p", NULL, 200, "\"owner\":\"anna\"");
	expect_as(as(ANNA), "DELETE", format(DB "/r?rev=%s", rev_of("r")), NULL, 200, "ok");
	/* The id of what is deleted is everybody's again. */
	expect_as(as(OTTO), "PUT", DB "/r", "{" SECRETS "}", 201, "ok");
	expect_as(as(OTTO), "GET", DB "/r", NULL, 200, "\"owner\":\"otto\"");
}

#define OTHERS "Can't update replication documents from other users."

static void
nobody_changes_the_documents_of_others(void **state)
{
	const char *const bodies[] = { SECRETS, SECRETS ",\"owner\":\"otto\"",
				       SECRETS ",\"owner\":\"anna\"", "\"_deleted\":true" };
	char body[2048];
	const char *rev;

	(void)state;
	expect_as(as(ANNA), "PUT", DB "/r", "{" SECRETS "}", 201, "ok");
	rev = rev_of("r");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		(void)snprintf(body, sizeof(body), "{\"_rev\":\"%s\",%s}", rev, bodies[i]);
		expect_as(as(OTTO), "PUT", DB "/r", body, 403, OTHERS);
		(void)snprintf(body, sizeof(body),
			       "{\"docs\":[{\"_id\":\"r\",\"_rev\":\"%s\",%s}]}", rev, bodies[i]);
		expect_as(as(OTTO), "POST", DB "/_bulk_docs", body, 201, OTHERS);
		(void)snprintf(
			body, sizeof(body),
			"{\"new_edits\":false,\"docs\":[{\"_id\":\"r\",\"_rev\":\"9-a\",%s}]}",
			bodies[i]);
		expect_as(as(OTTO), "POST", DB "/_bulk_docs", body, 201, "forbidden");
		(void)snprintf(body, sizeof(body), "{\"_rev\":\"9-a\",%s}", bodies[i]);
		expect_as(as(OTTO), "PUT", DB "/r?new_edits=false", body, 403, "made elsewhere");
	}
	expect_as(as(OTTO), "DELETE", format(DB "/r?rev=%s", rev), NULL, 403, OTHERS);
	expect_as(as(ANNA), "GET", DB "/r", NULL, 200, "\"_rev\":\"1-");
}

static void
an_owner_cannot_be_forged(void **state)
{
	static const enum who people[] = { ANNA, CHIEF };

	(void)state;
	for (size_t i = 0; i < sizeof(people) / sizeof(people[0]); i++) {
		const char *const owners[] = { "\"admin\"", "\"otto\"", "\"nobody\"", "\"\"" };

		for (size_t k = 0; k < sizeof(owners) / sizeof(owners[0]); k++) {
			expect_as(as(people[i]), "PUT", DB "/forged",
				  format("{" SECRETS ",\"owner\":%s}", owners[k]), 403, OTHERS);
			expect_as(as(people[i]), "PUT", DB "/forged",
				  format("{" SECRETS ",\"owner\":\"%s\",\"owner\":%s}",
					 names[people[i]], owners[k]),
				  403, OTHERS);
			expect_as(as(people[i]), "PUT", DB "/forged",
				  format("{" SECRETS ",\"_replication_state\":\"failed\","
					 "\"owner\":%s}",
					 owners[k]),
				  403, OTHERS);
		}
		expect_as(as(people[i]), "PUT", DB "/forged?new_edits=false",
			  "{\"_rev\":\"1-a\"," SECRETS ",\"owner\":\"admin\"}", 403, "elsewhere");
	}
	/* What is no name is none: the writer is the owner. */
	expect_as(as(ANNA), "PUT", DB "/mine", "{" SECRETS ",\"owner\":null}", 201, "ok");
	expect_as(as(ANNA), "GET", DB "/mine", NULL, 200, "\"owner\":\"anna\"");
	expect_as(as(ANNA), "PUT", DB "/mine2", "{" SECRETS ",\"owner\":[\"admin\"]}", 201, "ok");
	expect_as(as(ANNA), "GET", DB "/mine2", NULL, 200, "\"owner\":\"anna\"");
}

/* They see and delete everything, but what they write is their own. */
static void
administrators_of_the_database_write_in_their_own_name(void **state)
{
	(void)state;
	expect_as(as(ANNA), "PUT", DB "/r", "{" SECRETS "}", 201, "ok");
	expect_as(as(CHIEF), "PUT", format(DB "/r?rev=%s", rev_of("r")),
		  "{" SECRETS ",\"owner\":\"anna\"}", 403, OTHERS);
	expect_as(as(CHIEF), "PUT", format(DB "/r/file?rev=%s", rev_of("r")), "text", 403, OTHERS);
	expect_as(as(CHIEF), "PUT", format(DB "/r?rev=%s", rev_of("r")), "{" SECRETS "}", 201,
		  "ok");
	expect_as(as(CHIEF), "GET", DB "/r", NULL, 200, "\"owner\":\"chief\"");
	expect_as(as(ANNA), "PUT", DB "/s", "{" SECRETS "}", 201, "ok");
	expect_as(as(CHIEF), "DELETE", format(DB "/s?rev=%s", rev_of("s")), NULL, 200, "ok");
	/* An administrator of the server may write for somebody else. */
	expect_as(ADMIN, "PUT", DB "/t", "{" SECRETS ",\"owner\":\"anna\"}", 201, "ok");
	expect_as(as(ANNA), "GET", DB "/t", NULL, 200, "s3cret");
}

static void
nobody_writes_without_a_name(void **state)
{
	(void)state;
	expect_as(ADMIN, "PUT", DB "/_security", "{}", 200, "ok");
	expect_as(as(ANNA), "PUT", DB "/r", "{" SECRETS "}", 201, "ok");
	expect_as("", "GET", DB "/r", NULL, 200, "there.example");
	door_has_not(d, "s3cret");
	expect_as("", "PUT", DB "/x", "{" SECRETS "}", 401, "Log in");
	expect_as("", "PUT", DB "/x", "{" SECRETS ",\"owner\":\"admin\"}", 401, "Log in");
	expect_as("", "DELETE", format(DB "/r?rev=%s", rev_of("r")), NULL, 401, "Log in");
}

/* CouchDB has replications there, too, which this server does not run; but it keeps the rules. */
static void
databases_of_that_name_elsewhere_have_the_same_rules(void **state)
{
	(void)state;
	expect_as(ADMIN, "PUT", "/x%2F_replicator", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/x%2F_replicator/_security",
		  "{\"members\":{\"names\":[\"anna\",\"otto\"]}}", 200, "ok");
	expect_as(as(ANNA), "PUT", "/x%2F_replicator/r", "{" SECRETS "}", 201, "ok");
	expect_as(as(ANNA), "GET", "/x%2F_replicator/r", NULL, 200, "\"owner\":\"anna\"");
	expect_as(as(OTTO), "GET", "/x%2F_replicator/r", NULL, 200, "there.example");
	door_has_not(d, "s3cret");
	expect_as(as(OTTO), "PUT", "/x%2F_replicator/s", "{" SECRETS ",\"owner\":\"anna\"}", 403,
		  OTHERS);
	expect_refused(OTTO, "GET", "/x%2F_replicator/_all_docs?include_docs=true", NULL);
	expect_as(ADMIN, "DELETE", "/x%2F_replicator", NULL, 200, "ok");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_closed_until_an_administrator_opens_it,
						make_closed, drop),
		cmocka_unit_test_setup_teardown(every_request_is_as_the_table_says, make_open,
						drop),
		cmocka_unit_test_setup_teardown(others_see_a_document_without_credentials,
						make_open, drop),
		cmocka_unit_test_setup_teardown(users_change_their_own_documents, make_open, drop),
		cmocka_unit_test_setup_teardown(nobody_changes_the_documents_of_others, make_open,
						drop),
		cmocka_unit_test_setup_teardown(an_owner_cannot_be_forged, make_open, drop),
		cmocka_unit_test_setup_teardown(
			administrators_of_the_database_write_in_their_own_name, make_open, drop),
		cmocka_unit_test_setup_teardown(nobody_writes_without_a_name, make_open, drop),
		cmocka_unit_test(databases_of_that_name_elsewhere_have_the_same_rules),
	};

	return cmocka_run_group_tests_name("couch replications", tests, setup_replications,
					   teardown);
}
