/*
 * Answers over a store whose transactions fail half of the time, in the middle of a page as well:
 * nothing of that may show. While nobody writes, the same request has the same answer, byte for
 * byte; what was written is there once.
 */
#include "common.h"

enum {
	DOCS = 700, /* several pages */
	REPEATS = 12,
};

/* ---- Reading ---- */

static void
assert_each_header_once(const char *head)
{
	for (const char *at = strstr(head, "\r\n"); at && at[2] && at[2] != '\r';
	     at = strstr(at + 2, "\r\n")) {
		const char *name = at + 2;
		size_t len = strcspn(name, ":") + 1;

		for (const char *other = strstr(name, "\r\n"); other;
		     other = strstr(other + 2, "\r\n"))
			if (strncasecmp(other + 2, name, len) == 0)
				fail_msg("%.*s is there twice: %s", (int)len, name, head);
	}
}

static void
assert_same_every_time(const char *method, const char *target, const char *body)
{
	char *first = NULL;

	for (int i = 0; i < REPEATS; i++) {
		const struct response *r = door_request(d, method, target,
							"Accept: application/json\r\n", body);

		if (r->status != 200 || r->broken)
			fail_msg("%s %s: %d %s: %s", method, target, r->status,
				 r->broken ? "broken" : "", r->body);
		assert_each_header_once(r->head);
		if (!first)
			first = strdup(r->body);
		else if (strcmp(first, r->body) != 0)
			fail_msg("%s %s: the answer of %zu bytes is another than that of %zu",
				 method, target, r->body_len, strlen(first));
	}
	free(first);
}

static void
fill(void)
{
	static char body[DOCS * 64];
	size_t at = (size_t)sprintf(body, "{\"docs\":[");

	door_create(d, "full");
	for (int i = 0; i < DOCS; i++)
		at += (size_t)sprintf(body + at, "%s{\"_id\":\"%04d\",\"n\":%d,\"l\":[1,2]}",
				      i ? "," : "", i, i);
	(void)strcpy(body + at, "]}");
	door_expect(d, "POST", "/full/_bulk_docs", body, 201, "\"id\":\"0699\"");
	/* A second branch here and there, and a few deletions. */
	door_expect(d, "POST", "/full/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":["
		    "{\"_id\":\"0003\",\"_rev\":\"1-z\",\"n\":0},"
		    "{\"_id\":\"0200\",\"_rev\":\"1-z\",\"n\":0},"
		    "{\"_id\":\"0201\",\"_rev\":\"7-z\",\"_deleted\":true},"
		    "{\"_id\":\"0600\",\"_rev\":\"7-z\",\"_deleted\":true}]}",
		    201, "[]");
	for (int i = 0; i < 5; i++)
		door_expect(d, "PUT", format("/full/_local/%d", i), "{}", 201, "ok");
}

static void
answers_do_not_show_what_failed(void **state)
{
	static const char *const targets[] = {
		"/full",
		"/full/0003?conflicts=true&revs=true",
		"/full/0200?open_revs=all",
		"/full/_all_docs",
		"/full/_all_docs?include_docs=true&conflicts=true",
		"/full/_all_docs?descending=true&include_docs=true",
		"/full/_all_docs?startkey=%220100%22&endkey=%220650%22&skip=20&limit=400",
		"/full/_all_docs?update_seq=true&limit=1",
		"/full/_local_docs?include_docs=true",
		"/full/_changes",
		"/full/_changes?include_docs=true&style=all_docs&conflicts=true",
		"/full/_changes?descending=true&limit=500",
		"/full/_changes?limit=300&seq_interval=10",
		"/_all_dbs",
	};

	(void)state;
	fill();
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		assert_same_every_time("GET", targets[i], NULL);
	assert_same_every_time("POST", "/full/_all_docs?include_docs=true",
			       "{\"keys\":[\"0003\",\"none\",\"0201\",\"0003\",\"0699\"]}");
	assert_same_every_time("POST", "/full/_bulk_get",
			       "{\"docs\":[{\"id\":\"0003\"},{\"id\":\"none\"},{\"id\":\"0200\"},"
			       "{\"id\":\"0201\"},{\"id\":\"0500\"}]}");
	assert_same_every_time("POST", "/full/_revs_diff",
			       "{\"0003\":[\"1-z\",\"2-y\"],\"none\":[\"1-a\"]}");
}

/* ---- Writing ---- */

static int
count_of(const char *text)
{
	int n = 0;

	for (const char *p = d->last.body; (p = strstr(p, text)); p++)
		n++;
	return n;
}

static void
edits_happen_once(void **state)
{
	enum {
		EDITS = 60
	};
	char rev[EDITS][64];

	(void)state;
	door_create(d, "edits");
	for (int i = 0; i < EDITS; i++) {
		door_expect(d, "PUT", format("/edits/%02d", i), "{}", 201, "\"rev\":\"1-");
		(void)snprintf(rev[i], sizeof(rev[i]), "%s", door_member(d, "rev"));
	}
	/* Somebody whose edit has happened must not hear that it conflicts with itself. */
	for (int i = 0; i < EDITS; i++) {
		door_expect(d, "PUT", format("/edits/%02d?rev=%s", i, rev[i]), "{\"n\":1}", 201,
			    "\"rev\":\"2-");
		(void)snprintf(rev[i], sizeof(rev[i]), "%s", door_member(d, "rev"));
		door_expect(d, "PUT", format("/edits/%02d", i), "{\"n\":2}", 409, "conflict");
	}
	for (int i = 0; i < EDITS; i += 2)
		door_expect(d, "DELETE", format("/edits/%02d?rev=%s", i, rev[i]), NULL, 200,
			    "\"rev\":\"3-");
	door_expect(d, "GET", "/edits", NULL, 200, "\"doc_count\":30");
	door_has(d, "\"doc_del_count\":30");
	door_expect(d, "GET", "/edits/_changes?style=all_docs", NULL, 200, "last_seq");
	assert_int_equal(count_of("{\"seq\":"), EDITS);
	assert_int_equal(count_of("{\"rev\":"), EDITS);
	assert_int_equal(count_of("\"deleted\":true"), EDITS / 2);
}

static void
documents_without_an_id_are_made_once(void **state)
{
	enum {
		POSTS = 60
	};

	(void)state;
	door_create(d, "posts");
	for (int i = 0; i < POSTS; i++)
		door_expect(d, "POST", "/posts", "{}", 201, "\"rev\":\"1-");
	door_expect(d, "GET", "/posts", NULL, 200, "\"doc_count\":60,");
	door_expect(d, "POST", "/posts/_bulk_docs", "{\"docs\":[{},{},{},{}]}", 201, "ok");
	door_expect(d, "GET", "/posts", NULL, 200, "\"doc_count\":64,");
}

/* Each of these says something else the second time. */
static void
databases_come_and_go_once(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		door_create(d, "flip");
		door_expect(d, "PUT", "/flip", NULL, 412, "file_exists");
		door_expect(d, "PUT", "/flip/_local/a", "{}", 201, "\"rev\":\"0-1\"");
		door_expect(d, "PUT", "/flip/_revs_limit", "7", 200, "ok");
		door_expect(d, "GET", "/flip/_revs_limit", NULL, 200, "7");
		door_expect(d, "DELETE", "/flip", NULL, 200, "ok");
		door_expect(d, "DELETE", "/flip", NULL, 404, "not_found");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_do_not_show_what_failed),
		cmocka_unit_test(edits_happen_once),
		cmocka_unit_test(documents_without_an_id_are_made_once),
		cmocka_unit_test(databases_come_and_go_once),
	};

	(void)setenv("FROND_TEST_FAULTS", "rate=0.5,delay=0.1,watch=0.5", 0);
	return cmocka_run_group_tests_name("couch faults", tests, setup, teardown);
}
