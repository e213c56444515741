/*
 * Who may what: one table of requests, each walked by every kind of person. What is refused is
 * refused with 401 or 403, and shows nothing of what is in the database.
 */
#include "common.h"

#include "base/base64.h"
#include "base/buf.h"
#include "door/couch/route.h"

#define ADMIN  "Authorization: Basic YWRtaW46c2VjcmV0\r\n"
#define MARKER "m4rk3r"

/* From those who may least to those who may most; each may what those before may. */
enum kind {
	ANONYMOUS,
	OTHER, /* has logged in, and is in no list of the database */
	MEMBER_BY_NAME,
	MEMBER_BY_ROLE,
	DB_ADMIN_BY_NAME,
	DB_ADMIN_BY_ROLE,
	SERVER_ADMIN,
	KINDS,
};

#define EVERYBODY ANONYMOUS
#define MEMBERS   MEMBER_BY_NAME
#define DB_ADMINS DB_ADMIN_BY_NAME

static const char *const names[KINDS] = {
	[ANONYMOUS] = "anonymous",        [OTHER] = "other",
	[MEMBER_BY_NAME] = "named",       [MEMBER_BY_ROLE] = "roled",
	[DB_ADMIN_BY_NAME] = "chief",     [DB_ADMIN_BY_ROLE] = "boss",
	[SERVER_ADMIN] = "administrator",
};

static const char *const roles[KINDS] = {
	[OTHER] = "[\"elsewhere\"]",         [MEMBER_BY_NAME] = "[]",
	[MEMBER_BY_ROLE] = "[\"player\"]",   [DB_ADMIN_BY_NAME] = "[]",
	[DB_ADMIN_BY_ROLE] = "[\"bosses\"]",
};

static const struct row {
	const char *method;
	const char *target;
	const char *body;
	enum kind least; /* who may it, and all after them */
} table[] = {
	{ "GET", "/", NULL, EVERYBODY },
	{ "GET", "/_up", NULL, EVERYBODY },
	{ "GET", "/_uuids", NULL, EVERYBODY },
	{ "GET", "/favicon.ico", NULL, EVERYBODY },
	{ "GET", "/_session", NULL, EVERYBODY },
	{ "POST", "/_session", "{}", EVERYBODY },
	{ "DELETE", "/_session", NULL, EVERYBODY },
	{ "GET", "/_utils", NULL, EVERYBODY },

	{ "POST", "/_replicate", "{}", OTHER },

	{ "GET", "/_all_dbs", NULL, SERVER_ADMIN },
	{ "GET", "/_dbs_info", NULL, SERVER_ADMIN },
	{ "POST", "/_dbs_info", "{\"keys\":[\"club\"]}", SERVER_ADMIN },
	{ "GET", "/_db_updates", NULL, SERVER_ADMIN },
	{ "GET", "/_active_tasks", NULL, SERVER_ADMIN },
	{ "GET", "/_membership", NULL, SERVER_ADMIN },
	{ "GET", "/_cluster_setup", NULL, SERVER_ADMIN },
	{ "POST", "/_cluster_setup", "{}", SERVER_ADMIN },
	{ "GET", "/_scheduler/jobs", NULL, SERVER_ADMIN },
	{ "GET", "/_scheduler/docs", NULL, SERVER_ADMIN },
	{ "GET", "/_frond/nothing", NULL, SERVER_ADMIN },
	{ "GET", "/_frond/operations", NULL, SERVER_ADMIN },
	{ "POST", "/_frond/operations", "{\"end\":0}", SERVER_ADMIN },
	{ "GET", "/_frond/slow", NULL, SERVER_ADMIN },
	{ "GET", "/_frond/databases", NULL, SERVER_ADMIN },
	{ "GET", "/_frond/leaves?db=club", NULL, SERVER_ADMIN },
	{ "POST", "/_frond/nothing", "{}", SERVER_ADMIN },
	{ "GET", "/_frond/follow?after=x", NULL, SERVER_ADMIN },
	{ "GET", "/_frond/position", NULL, SERVER_ADMIN },
	{ "GET", "/_node/_local", NULL, SERVER_ADMIN },
	{ "GET", "/_node/_local/_config", NULL, SERVER_ADMIN },
	{ "GET", "/_node/_local/_config/admins", NULL, SERVER_ADMIN },
	{ "PUT", "/_node/_local/_config/test/name", "\"x\"", SERVER_ADMIN },
	{ "DELETE", "/_node/_local/_config/test/name", NULL, SERVER_ADMIN },
	{ "POST", "/_node/_local/_config/_reload", "{}", SERVER_ADMIN },
	{ "GET", "/_node/_local/_stats", NULL, SERVER_ADMIN },
	{ "GET", "/_node/_local/_system", NULL, SERVER_ADMIN },
	{ "GET", "/_node/_local/_prometheus", NULL, SERVER_ADMIN },
	{ "GET", "/_node/_local/_versions", NULL, SERVER_ADMIN },
	{ "PUT", "/another", NULL, SERVER_ADMIN },
	{ "DELETE", "/another", NULL, SERVER_ADMIN },

	{ "GET", "/club", NULL, MEMBERS },
	{ "HEAD", "/club", NULL, MEMBERS },
	{ "POST", "/club", "{}", MEMBERS },
	{ "GET", "/club/a", NULL, MEMBERS },
	{ "HEAD", "/club/a", NULL, MEMBERS },
	{ "GET", "/club/a?open_revs=all", NULL, MEMBERS },
	{ "GET", "/club/a?path=/secret", NULL, MEMBERS },
	{ "GET", "/club/a?paths=[%22/secret%22]", NULL, MEMBERS },
	{ "PUT", "/club/a", "{}", MEMBERS },
	{ "DELETE", "/club/a?rev=1-x", NULL, MEMBERS },
	{ "PATCH", "/club/none", "{}", MEMBERS },
	{ "COPY", "/club/a", NULL, MEMBERS },
	{ "GET", "/club/a/file", NULL, MEMBERS },
	{ "PUT", "/club/a/file", "text", MEMBERS },
	{ "DELETE", "/club/a/file?rev=1-x", NULL, MEMBERS },
	{ "GET", "/club/_local/l", NULL, MEMBERS },
	{ "PUT", "/club/_local/l", "{}", MEMBERS },
	{ "DELETE", "/club/_local/l", NULL, MEMBERS },
	{ "GET", "/club/_all_docs?include_docs=true", NULL, MEMBERS },
	{ "POST", "/club/_all_docs", "{\"keys\":[\"a\"]}", MEMBERS },
	{ "POST", "/club/_all_docs/queries", "{\"queries\":[{}]}", MEMBERS },
	{ "GET", "/club/_design_docs", NULL, MEMBERS },
	{ "POST", "/club/_design_docs", "{\"keys\":[]}", MEMBERS },
	{ "POST", "/club/_design_docs/queries", "{\"queries\":[{}]}", MEMBERS },
	{ "GET", "/club/_local_docs", NULL, MEMBERS },
	{ "POST", "/club/_local_docs", "{\"keys\":[\"_local/l\"]}", MEMBERS },
	{ "POST", "/club/_local_docs/queries", "{\"queries\":[{}]}", MEMBERS },
	{ "POST", "/club/_bulk_docs", "{\"docs\":[]}", MEMBERS },
	{ "POST", "/club/_bulk_get", "{\"docs\":[{\"id\":\"a\"}]}", MEMBERS },
	{ "POST", "/club/_revs_diff", "{\"a\":[\"1-x\"]}", MEMBERS },
	{ "POST", "/club/_missing_revs", "{\"a\":[\"1-x\"]}", MEMBERS },
	{ "GET", "/club/_changes?include_docs=true", NULL, MEMBERS },
	{ "POST", "/club/_changes?filter=_selector", "{\"selector\":{}}", MEMBERS },
	{ "GET", "/club/_changes?feed=longpoll", NULL, MEMBERS },
	{ "POST", "/club/_find", "{\"selector\":{\"secret\":{\"$gt\":null}}}", MEMBERS },
	{ "POST", "/club/_explain", "{\"selector\":{}}", MEMBERS },
	{ "GET", "/club/_index", NULL, MEMBERS },
	{ "POST", "/club/_ensure_full_commit", "{}", MEMBERS },
	{ "GET", "/club/_security", NULL, MEMBERS },
	{ "GET", "/club/_revs_limit", NULL, MEMBERS },
	{ "GET", "/club/_scheme", NULL, MEMBERS },
	{ "GET", "/club/_purged_infos", NULL, MEMBERS },
	{ "GET", "/club/_design/d", NULL, MEMBERS },
	{ "GET", "/club/_design/d/_info", NULL, MEMBERS },
	{ "GET", "/club/_design/d/file", NULL, MEMBERS },
	{ "GET", "/club/_design/d/_view/v", NULL, MEMBERS },
	{ "POST", "/club/_design/d/_view/v", "{}", MEMBERS },
	{ "POST", "/club/_design/d/_view/v/queries", "{\"queries\":[{}]}", MEMBERS },
	{ "POST", "/club/_design/d/_update/u", "{}", MEMBERS },
	{ "GET", "/club/_partition/p", NULL, MEMBERS },

	{ "PUT", "/club/_design/d", "{}", DB_ADMINS },
	{ "DELETE", "/club/_design/d?rev=1-x", NULL, DB_ADMINS },
	{ "PUT", "/club/_revs_limit", "1000", DB_ADMINS },
	{ "PUT", "/club/_scheme", "\"packed\"", DB_ADMINS },
	{ "POST", "/club/_compact", "{}", DB_ADMINS },
	{ "POST", "/club/_view_cleanup", "{}", DB_ADMINS },
	{ "POST", "/club/_index", "{\"index\":{\"fields\":[\"x\"]},\"ddoc\":\"i\"}", DB_ADMINS },
	{ "DELETE", "/club/_index/i/json/x", NULL, DB_ADMINS },
	{ "POST", "/club/_index/_bulk_delete", "{\"docids\":[\"_design/i\"]}", DB_ADMINS },
	{ "PUT", "/club/_security",
	  "{\"admins\":{\"names\":[\"chief\"],\"roles\":[\"bosses\"]},"
	  "\"members\":{\"names\":[\"named\"],\"roles\":[\"player\"]}}",
	  DB_ADMINS },

	{ "POST", "/club/_purge", "{}", SERVER_ADMIN },
	{ "GET", "/club/_purged_infos_limit", NULL, SERVER_ADMIN },
	{ "PUT", "/club/_purged_infos_limit", "1000", SERVER_ADMIN },
	{ "DELETE", "/club", NULL, SERVER_ADMIN },
};

/* Credentials, and what the method needs besides. */
static const char *
headers_of(enum kind kind, const char *method)
{
	const char *type = strcmp(method, "PATCH") == 0
				   ? "Content-Type: application/merge-patch+json\r\n"
				   : "";
	AUTO(buf_release) struct buf b = BUF_INIT(4096);
	const char *plain;

	if (kind == ANONYMOUS)
		return format("Destination: copy\r\n%s", type);
	if (kind == SERVER_ADMIN)
		return format(ADMIN "Destination: copy\r\n%s", type);
	plain = format("%s:apple", names[kind]);
	base64_encode(&b, str_from_cstr(plain), BASE64_STANDARD);
	return format("Authorization: Basic %.*s\r\nDestination: copy\r\n%s", STR_ARG(buf_str(&b)),
		      type);
}

static int
setup_rights(void **state)
{
	static const door_setting settings[] = { { "chttpd_auth", "iterations", "10" }, { NULL } };

	(void)state;
	doors_hear();
	d = door_start_with(true, settings, NULL);
	expect_as(ADMIN, "PUT", "/_users", NULL, 201, "ok");
	for (enum kind k = OTHER; k < SERVER_ADMIN; k++)
		expect_as(ADMIN, "PUT", format("/_users/org.couchdb.user:%s", names[k]),
			  format("{\"type\":\"user\",\"name\":\"%s\",\"roles\":%s,"
				 "\"password\":\"apple\"}",
				 names[k], roles[k]),
			  201, "ok");
	return 0;
}

static void
make_club(void)
{
	expect_as(ADMIN, "PUT", "/club", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/club/_security",
		  "{\"admins\":{\"names\":[\"chief\"],\"roles\":[\"bosses\"]},"
		  "\"members\":{\"names\":[\"named\"],\"roles\":[\"player\"]}}",
		  200, "ok");
	expect_as(ADMIN, "PUT", "/club/a", "{\"secret\":\"" MARKER "\"}", 201, "ok");
	expect_as(ADMIN, "PUT", "/club/_local/l", "{\"secret\":\"" MARKER "\"}", 201, "ok");
	expect_as(ADMIN, "PUT", "/club/_design/d", "{\"secret\":\"" MARKER "\",\"views\":{}}", 201,
		  "ok");
}

/* Those who may most come last, as what they do may be the end of what is asked for. */
static void
every_request_by_every_kind_of_person_is_as_the_table_says(void **state)
{
	unsigned wrong = 0;

	(void)state;
	make_club();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct row *row = &table[i];

		for (enum kind k = ANONYMOUS; k < KINDS; k++) {
			const struct response *r = door_request(
				d, row->method, row->target, headers_of(k, row->method), row->body);
			bool refused = r->status == 401 || r->status == 403;

			if (refused != (k < row->least) || (r->status >= 500 && r->status != 501)) {
				print_message("# %s %s by %s: %d %s\n", row->method, row->target,
					      names[k], r->status, r->body);
				wrong++;
			}
			if (refused)
				door_has_not(d, MARKER);
			if (k == ANONYMOUS && refused)
				assert_int_equal(r->status, 401);
			if (k > ANONYMOUS && refused && row->least == DB_ADMINS)
				assert_int_equal(r->status, 403);
		}
	}
	assert_int_equal(wrong, 0);
}

/* 403, as 401 would make clients ask for another password. */
static void
a_member_who_writes_a_design_document_is_forbidden_to(void **state)
{
	const char *refused =
		"{\"error\":\"forbidden\",\"reason\":\"You are not a db or server admin.\"}";

	(void)state;
	make_club();
	expect_as(headers_of(MEMBERS, "PUT"), "PUT", "/club/_design/x", "{}", 403, refused);
	expect_as(headers_of(MEMBERS, "PUT"), "PUT", "/club/_design/x?new_edits=false",
		  "{\"_rev\":\"2-b\"}", 403, refused);
	expect_as(headers_of(MEMBERS, "POST"), "POST", "/club/_bulk_docs",
		  "{\"docs\":[{\"_id\":\"_design/x\"}]}", 201,
		  "[{\"id\":\"_design/x\",\"error\":\"forbidden\"");
	expect_as(ADMIN, "DELETE", "/club", NULL, 200, "ok");
}

/* True if the target of a row is of the path, whose '*' stand for parts without a '_'. */
static bool
target_is_of(const char *target, const char *path)
{
	bool whole = strchr(path, '*') != NULL || strcmp(path, "/") == 0;

	while (*path) {
		if (*path == '*') {
			if (*target == '_' || strchr("/?", *target))
				return false;
			target += strcspn(target, "/?");
			path++;
		} else if (*path++ != *target++) {
			return false;
		}
	}
	return *target == '\0' || *target == '?' || (!whole && *target == '/');
}

static void
route_must_be_in_the_table(void *arg, const char *method, const char *path)
{
	unsigned *missing = arg;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].method, method) == 0 && target_is_of(table[i].target, path))
			return;
	print_message("# no row has %s %s\n", method, path);
	(*missing)++;
}

/* Whoever adds a route says here who may use it. */
static void
every_route_of_the_door_is_in_the_table(void **state)
{
	unsigned missing = 0;

	(void)state;
	couch_route_each(route_must_be_in_the_table, &missing);
	assert_int_equal(missing, 0);
}

/* What an outsider may ask of something that is there, and of something that is not. */
static const struct pair {
	const char *method;
	const char *there;
	const char *missing;
	const char *body_there; /* NULL: none */
	const char *body_missing;
} pairs[] = {
	{ "GET", "/club/a", "/club/none", NULL, NULL },
	{ "HEAD", "/club/a", "/club/none", NULL, NULL },
	{ "GET", "/club/gone", "/club/none", NULL, NULL },
	{ "GET", "/club/a?rev=%s", "/club/a?rev=1-x", NULL, NULL },
	{ "GET", "/club/a?rev=%s&revs=true", "/club/a?rev=1-a&revs=true", NULL, NULL },
	{ "GET", "/club/a?open_revs=all", "/club/none?open_revs=all", NULL, NULL },
	{ "GET", "/club/a?path=/secret", "/club/a?path=/none", NULL, NULL },
	{ "GET", "/club/a?attachments=true", "/club/none?attachments=true", NULL, NULL },
	{ "GET", "/club/a/file", "/club/a/none", NULL, NULL },
	{ "GET", "/club/_local/l", "/club/_local/none", NULL, NULL },
	{ "PUT", "/club/a", "/club/none", "{}", "{}" },
	{ "PUT", "/club/a?rev=%s", "/club/a?rev=1-a", "{}", "{}" },
	{ "DELETE", "/club/a?rev=%s", "/club/none?rev=1-a", NULL, NULL },
	{ "COPY", "/club/a", "/club/none", NULL, NULL },
	{ "GET", "/club/_design/d", "/club/_design/none", NULL, NULL },
	{ "GET", "/club/_design/d/_info", "/club/_design/none/_info", NULL, NULL },
	{ "GET", "/club/_design/d/_view/v", "/club/_design/none/_view/v", NULL, NULL },
	{ "POST", "/club/_design/d/_update/u", "/club/_design/none/_update/u", "{}", "{}" },
	{ "GET", "/club/_changes?filter=d/f", "/club/_changes?filter=none/f", NULL, NULL },
	{ "GET", "/club/_changes?filter=_view&view=d/v", "/club/_changes?filter=_view&view=none/v",
	  NULL, NULL },
	{ "POST", "/club/_all_docs", "/club/_all_docs", "{\"keys\":[\"a\"]}",
	  "{\"keys\":[\"none\"]}" },
	{ "POST", "/club/_bulk_get", "/club/_bulk_get", "{\"docs\":[{\"id\":\"a\"}]}",
	  "{\"docs\":[{\"id\":\"none\"}]}" },
	{ "POST", "/club/_revs_diff", "/club/_revs_diff", "{\"a\":[\"1-x\"]}",
	  "{\"none\":[\"1-x\"]}" },
	{ "POST", "/club/_find", "/club/_find",
	  "{\"selector\":{},\"use_index\":\"d\",\"allow_fallback\":false}",
	  "{\"selector\":{},\"use_index\":\"none\",\"allow_fallback\":false}" },
	{ "DELETE", "/club/_index/d/json/x", "/club/_index/none/json/x", NULL, NULL },
	{ "DELETE", "/club", "/none", NULL, NULL },
	{ "PUT", "/club", "/none", NULL, NULL },
};

/* The status, the reason and what else a refusal's headers could tell, of the last answer. */
static const char *
refusal_shown(void)
{
	static const char *const telling[] = { "ETag", "Location", "Content-Length", "Allow" };
	const char *shown = format("%d %s", d->last.status, d->last.body);

	for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
		const char *value = response_header(&d->last, telling[i]);

		shown = format("%s|%s", shown, value ? value : "");
	}
	return shown;
}

static void
refusals_do_not_tell_what_is_there(void **state)
{
	char rev[64];

	(void)state;
	make_club();
	expect_as(ADMIN, "PUT", "/club/gone", "{}", 201, "ok");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "rev"));
	expect_as(ADMIN, "DELETE", format("/club/gone?rev=%s", rev), NULL, 200, "ok");
	expect_as(ADMIN, "GET", "/club/a", NULL, 200, "_rev");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "_rev"));
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct pair *p = &pairs[i];
		const char *rev_at = strstr(p->there, "%s");
		char target[256];
		char shown[4096];

		(void)snprintf(target, sizeof(target), "%.*s%s%s",
			       (int)(rev_at ? (size_t)(rev_at - p->there) : strlen(p->there)),
			       p->there, rev_at ? rev : "", rev_at ? rev_at + 2 : "");
		for (enum kind k = ANONYMOUS; k <= OTHER; k++) {
			(void)door_request(d, p->method, target, headers_of(k, p->method),
					   p->body_there);
			if (d->last.status != 401 && d->last.status != 403)
				fail_msg("%s %s by %s: %d %s", p->method, target, names[k],
					 d->last.status, d->last.body);
			(void)snprintf(shown, sizeof(shown), "%s", refusal_shown());
			(void)door_request(d, p->method, p->missing, headers_of(k, p->method),
					   p->body_missing);
			assert_string_equal(refusal_shown(), shown);
		}
	}
	expect_as(ADMIN, "DELETE", "/club", NULL, 200, "ok");
}

static void
change_user(const char *name, const char *json)
{
	char rev[64];

	expect_as(ADMIN, "GET", format("/_users/org.couchdb.user:%s", name), NULL, 200, "_rev");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "_rev"));
	expect_as(ADMIN, "PUT", format("/_users/org.couchdb.user:%s?rev=%s", name, rev), json, 201,
		  "ok");
}

/*
 * The feed's end, without a row of what its reader may not see. A feed that waits ends properly;
 * one that is reading when the right is found lost is cut.
 */
static void
feed_must_end(struct client *c)
{
	const char *line;

	while ((line = client_line(c, 5000)) != NULL)
		if (strstr(line, MARKER))
			fail_msg("the feed shows: %s", line);
	assert_true(client_ended(c) || client_lost(c));
}

static struct client *
open_feed_of(const char *headers, const char *method, const char *target, const char *body)
{
	struct client *c = client_open(d->port);
	struct response head;

	client_send(c, method, target, headers, body);
	head = client_receive_head(c);
	assert_int_equal(head.status, 200);
	response_release(&head);
	return c;
}

static struct client *
open_feed(enum kind kind)
{
	return open_feed_of(headers_of(kind, "GET"), "GET",
			    "/feed/_changes?feed=continuous&include_docs=true&since=now", NULL);
}

static void
feed_ends_when_its_user_loses_the_role(void **state)
{
	struct client *c;

	(void)state;
	expect_as(ADMIN, "PUT", "/feed", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/feed/_security", "{\"members\":{\"roles\":[\"player\"]}}", 200,
		  "ok");
	c = open_feed(MEMBER_BY_ROLE);
	change_user("roled", "{\"type\":\"user\",\"name\":\"roled\",\"roles\":[],"
			     "\"password\":\"apple\"}");
	feed_must_end(c);
	client_close(c);
}

static void
feed_ends_when_its_user_is_in_no_list_any_more(void **state)
{
	struct client *c;

	(void)state;
	expect_as(ADMIN, "PUT", "/feed/_security", "{\"members\":{\"names\":[\"named\"]}}", 200,
		  "ok");
	c = open_feed(MEMBER_BY_NAME);
	expect_as(ADMIN, "PUT", "/feed/_security", "{\"members\":{\"names\":[\"x\"]}}", 200, "ok");
	feed_must_end(c);
	client_close(c);
}

static void
feed_ends_when_its_user_is_removed(void **state)
{
	struct client *c;
	char rev[64];

	(void)state;
	expect_as(ADMIN, "PUT", "/feed/_security", "{\"members\":{\"names\":[\"other\"]}}", 200,
		  "ok");
	c = open_feed(OTHER);
	expect_as(ADMIN, "GET", "/_users/org.couchdb.user:other", NULL, 200, "_rev");
	(void)snprintf(rev, sizeof(rev), "%s", door_member(d, "_rev"));
	expect_as(ADMIN, "DELETE", format("/_users/org.couchdb.user:other?rev=%s", rev), NULL, 200,
		  "ok");
	feed_must_end(c);
	client_close(c);
}

static void
feed_of_somebody_who_may_goes_on(void **state)
{
	struct client *c;
	const char *line;

	(void)state;
	expect_as(ADMIN, "PUT", "/feed/_security", "{\"members\":{\"names\":[\"chief\"]}}", 200,
		  "ok");
	c = open_feed(DB_ADMIN_BY_NAME);
	expect_as(ADMIN, "PUT", "/_node/_local/_config/test/other", "\"x\"", 200, "");
	assert_null(client_line(c, 2500));
	expect_as(ADMIN, "PUT", "/feed/doc", "{\"secret\":\"" MARKER "\"}", 201, "ok");
	line = client_line(c, 5000);
	assert_non_null(line);
	assert_non_null(strstr(line, MARKER));
	client_close(c);
}

/* Of the feeds that wait on a loop the first looks at rights for all; here it goes away before. */
static void
each_of_many_feeds_ends_that_must(void **state)
{
	enum {
		FEEDS = 12,
		GONE = 4,
	};
	struct client *feeds[FEEDS];

	(void)state;
	expect_as(ADMIN, "PUT", "/feed/_security",
		  "{\"members\":{\"names\":[\"chief\",\"named\"]}}", 200, "ok");
	for (size_t i = 0; i < FEEDS; i++)
		feeds[i] = open_feed(i % 3 ? MEMBER_BY_NAME : DB_ADMIN_BY_NAME);
	for (size_t i = 0; i < GONE; i++)
		client_close(feeds[i]);
	expect_as(ADMIN, "PUT", "/feed/_security", "{\"members\":{\"names\":[\"chief\"]}}", 200,
		  "ok");
	for (size_t i = GONE; i < FEEDS; i++)
		if (i % 3)
			feed_must_end(feeds[i]);
	expect_as(ADMIN, "PUT", "/feed/more", "{\"secret\":\"" MARKER "\"}", 201, "ok");
	for (size_t i = GONE; i < FEEDS; i++) {
		if (i % 3 == 0)
			assert_non_null(strstr(client_line(feeds[i], 5000), MARKER));
		client_close(feeds[i]);
	}
}

/* Of every kind: the right is withdrawn, and then something is written. */
static void
feeds_of_every_kind_end_with_the_right(void **state)
{
	static const struct {
		const char *method;
		const char *target;
		const char *body;
	} kinds[] = {
		{ "GET", "/feed/_changes?feed=longpoll&include_docs=true&since=now", NULL },
		{ "GET", "/feed/_changes?feed=eventsource&include_docs=true&since=now", NULL },
		{ "GET", "/feed/_changes?feed=continuous&include_docs=true&since=now&heartbeat=300",
		  NULL },
		{ "GET", "/feed/_changes?feed=continuous&include_docs=true&since=now&timeout=30000",
		  NULL },
		{ "GET", "/feed/_changes?feed=longpoll&include_docs=true&since=now&filter=_design",
		  NULL },
		{ "POST",
		  "/feed/_changes?feed=continuous&include_docs=true&since=now&filter=_selector",
		  "{\"selector\":{}}" },
		{ "POST",
		  "/feed/_changes?feed=longpoll&include_docs=true&since=now&filter=_doc_ids",
		  "{\"doc_ids\":[\"late\"]}" },
	};
	enum {
		COUNT = sizeof(kinds) / sizeof(kinds[0]),
	};
	struct client *feeds[COUNT];

	(void)state;
	expect_as(ADMIN, "PUT", "/feed/_security", "{\"members\":{\"names\":[\"named\"]}}", 200,
		  "ok");
	for (size_t i = 0; i < COUNT; i++)
		feeds[i] = open_feed_of(format("%sContent-Type: application/json\r\n",
					       headers_of(MEMBER_BY_NAME, kinds[i].method)),
					kinds[i].method, kinds[i].target, kinds[i].body);
	expect_as(ADMIN, "PUT", "/feed/_security", "{\"members\":{\"names\":[\"x\"]}}", 200, "ok");
	for (size_t i = 0; i < COUNT; i++) {
		feed_must_end(feeds[i]);
		client_close(feeds[i]);
	}
}

static void
feeds_of_all_databases_end_with_their_administrator(void **state)
{
	static const char *const kinds[] = { "continuous", "longpoll", "eventsource" };
	enum {
		COUNT = sizeof(kinds) / sizeof(kinds[0]),
	};
	struct client *feeds[COUNT];

	(void)state;
	expect_as(ADMIN, "PUT", "/_node/_local/_config/admins/helper", "\"apple\"", 200, "");
	for (size_t i = 0; i < COUNT; i++)
		feeds[i] = open_feed_of("Authorization: Basic aGVscGVyOmFwcGxl\r\n", "GET",
					format("/_db_updates?since=now&feed=%s", kinds[i]), NULL);
	expect_as(ADMIN, "DELETE", "/_node/_local/_config/admins/helper", NULL, 200, "");
	for (size_t i = 0; i < COUNT; i++) {
		feed_must_end(feeds[i]);
		client_close(feeds[i]);
	}
}

/* A request whose body is still to come, after its sender has been found to be a member. */
static struct client *
begin_write(const char *method, const char *target, const char *body)
{
	struct client *c = client_open(d->port);
	struct response head;

	client_send_raw(c,
			format("%s %s HTTP/1.1\r\nHost: localhost:5984\r\n%s"
			       "Content-Type: application/json\r\nContent-Length: %zu\r\n"
			       "Expect: 100-continue\r\n\r\n",
			       method, target, headers_of(MEMBER_BY_NAME, method), strlen(body)));
	head = client_receive_head(c);
	assert_int_equal(head.status, 100);
	response_release(&head);
	return c;
}

/* The transaction that writes sees the rights of its moment, and the answer tells nothing else. */
static void
a_right_that_is_withdrawn_while_a_body_arrives_is_gone(void **state)
{
	static const struct {
		const char *method;
		const char *target;
		const char *body;
	} writes[] = {
		{ "PUT", "/late/new", "{}" },
		{ "PUT", "/late/a", "{}" }, /* would be a conflict */
		{ "POST", "/late", "{\"_id\":\"posted\"}" },
		{ "POST", "/late/_bulk_docs", "{\"docs\":[{\"_id\":\"bulk\"},{\"_id\":\"a\"}]}" },
		{ "POST", "/late/_bulk_docs",
		  "{\"new_edits\":false,\"docs\":[{\"_id\":\"bulk\",\"_rev\":\"1-a\"}]}" },
		{ "PUT", "/late/_local/l", "{}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		struct client *c;
		struct response r;

		expect_as(ADMIN, "PUT", "/late", NULL, 201, "ok");
		expect_as(ADMIN, "PUT", "/late/a", "{}", 201, "ok");
		expect_as(ADMIN, "PUT", "/late/_security", "{\"members\":{\"names\":[\"named\"]}}",
			  200, "ok");
		c = begin_write(writes[i].method, writes[i].target, writes[i].body);
		expect_as(ADMIN, "PUT", "/late/_security", "{\"members\":{\"names\":[\"x\"]}}", 200,
			  "ok");
		client_send_raw(c, writes[i].body);
		r = client_receive(c, false);
		if (r.status != 403 || !strstr(r.body, "You are not allowed to access this db."))
			fail_msg("%s %s: %d %s", writes[i].method, writes[i].target, r.status,
				 r.body);
		response_release(&r);
		client_close(c);
		expect_as(ADMIN, "GET", "/late", NULL, 200, "\"doc_count\":1,");
		expect_as(ADMIN, "DELETE", "/late", NULL, 200, "ok");
	}
}

/* Another change of the security object is none of the writer's business. */
static void
a_right_that_stays_while_a_body_arrives_counts(void **state)
{
	struct client *c;
	struct response r;

	(void)state;
	expect_as(ADMIN, "PUT", "/late", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/late/_security", "{\"members\":{\"names\":[\"named\"]}}", 200,
		  "ok");
	c = begin_write("PUT", "/late/a", "{}");
	expect_as(ADMIN, "PUT", "/late/_security", "{\"members\":{\"names\":[\"x\",\"named\"]}}",
		  200, "ok");
	client_send_raw(c, "{}");
	r = client_receive(c, false);
	assert_int_equal(r.status, 201);
	response_release(&r);
	client_close(c);
	expect_as(ADMIN, "DELETE", "/late", NULL, 200, "ok");
}

/* ---- A person who changes while an answer is sent ---- */

enum {
	LONG_BYTES = 500000, /* of a document; both ends of a connection hold less than all */
	LONG_DOCS = 14,
	LONG_READ_MS = 300,
	LONG_HEARD_MS = 1500, /* a change by then */
};

static const struct long_answer {
	const char *method, *path, *body;
} long_answers[] = {
	{ "GET", "/long/_all_docs?include_docs=true", NULL },
	{ "GET", "/long/_changes?include_docs=true", NULL },
	{ "POST", "/long/_bulk_get",
	  "{\"docs\":[{\"id\":\"d00\"},{\"id\":\"d01\"},{\"id\":\"d02\"},{\"id\":\"d03\"},{\"id\":"
	  "\"d04\"},"
	  "{\"id\":\"d05\"},{\"id\":\"d06\"},{\"id\":\"d07\"},{\"id\":\"d08\"},{\"id\":\"d09\"},"
	  "{\"id\":\"d10\"},{\"id\":\"d11\"},{\"id\":\"d12\"},{\"id\":\"d13\"}]}" },
	{ "POST", "/long/_find", "{\"selector\":{}}" },
};

static void
store_long_documents(void)
{
	AUTO(buf_release) struct buf body = BUF_INIT(2 * LONG_BYTES);

	expect_as(ADMIN, "PUT", "/long", NULL, 201, "ok");
	expect_as(ADMIN, "PUT", "/long/_security", "{\"members\":{\"names\":[\"named\"]}}", 200,
		  "ok");
	buf_append_cstr(&body, "{\"x\":\"");
	assert_true(buf_reserve(&body, LONG_BYTES));
	memset(body.ptr + body.len, 'x', LONG_BYTES);
	body.len += LONG_BYTES;
	buf_append_cstr(&body, "\"}");
	buf_append_byte(&body, '\0');
	for (int i = 0; i < LONG_DOCS; i++)
		expect_as(ADMIN, "PUT", format("/long/d%02d", i), body.ptr, 201, "ok");
}

static void
wait_ms(long ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	(void)nanosleep(&time, NULL);
}

/*
 * Begins to read as the person does, and no further than what both ends hold; reads on when a
 * change of the user has been heard of. True if the answer came to its end.
 */
static bool
long_answer_is_whole(const struct long_answer *a, const char *user, const char *change)
{
	struct client *c = client_open_narrow(d->port);
	struct response r;
	bool whole;

	client_send(c, a->method, a->path,
		    format("%sAccept: application/json\r\n%s",
			   headers_of(MEMBER_BY_NAME, a->method),
			   a->body ? "Content-Type: application/json\r\n" : ""),
		    a->body);
	wait_ms(LONG_READ_MS);
	change_user(user, change);
	wait_ms(LONG_HEARD_MS);
	r = client_receive_or_end(c, false);
	if (!r.broken && r.status != 200)
		fail_msg("%s: %d %.200s", a->path, r.status, r.body);
	whole = !r.broken;
	response_release(&r);
	client_close(c);
	return whole;
}

#define USER(name, password)                                                                       \
	"{\"type\":\"user\",\"name\":\"" name "\",\"roles\":[\"player\"],\"password\":\"" password \
	"\"}"

static void
a_long_answer_ends_with_its_reader(void **state)
{
	(void)state;
	store_long_documents();
	for (size_t i = 0; i < sizeof(long_answers) / sizeof(long_answers[0]); i++) {
		const struct long_answer *a = &long_answers[i];

		if (!long_answer_is_whole(a, "roled", USER("roled", "apple")))
			fail_msg("%s ends as somebody else changes", a->path);
		if (long_answer_is_whole(a, "named", USER("named", "pear")))
			fail_msg("%s goes on with another password", a->path);
		change_user("named", USER("named", "apple"));
		wait_ms(LONG_HEARD_MS);
	}
	expect_as(ADMIN, "DELETE", "/long", NULL, 200, "ok");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_of_the_door_is_in_the_table),
		cmocka_unit_test(every_request_by_every_kind_of_person_is_as_the_table_says),
		cmocka_unit_test(a_member_who_writes_a_design_document_is_forbidden_to),
		cmocka_unit_test(refusals_do_not_tell_what_is_there),
		cmocka_unit_test(a_right_that_is_withdrawn_while_a_body_arrives_is_gone),
		cmocka_unit_test(a_right_that_stays_while_a_body_arrives_counts),
		cmocka_unit_test(a_long_answer_ends_with_its_reader),
		cmocka_unit_test(feed_ends_when_its_user_loses_the_role),
		cmocka_unit_test(feed_ends_when_its_user_is_in_no_list_any_more),
		cmocka_unit_test(feed_ends_when_its_user_is_removed),
		cmocka_unit_test(feed_of_somebody_who_may_goes_on),
		cmocka_unit_test(each_of_many_feeds_ends_that_must),
		cmocka_unit_test(feeds_of_every_kind_end_with_the_right),
		cmocka_unit_test(feeds_of_all_databases_end_with_their_administrator),
	};

	return cmocka_run_group_tests_name("couch rights", tests, setup_rights, teardown);
}
