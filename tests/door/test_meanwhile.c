/*
 * What changes while a validator thinks: the write that waits for it sees it. Each validator takes
 * seconds, of a processor as well, so this is apart from what runs in many variants.
 */
#include <unistd.h>

#include "functions.h"

#define SLOW "if (n.slow) { var end = Date.now() + 2500; while (Date.now() < end) ; } "

/* Sends a write of which the validator takes its time. */
static struct client *
begin_slowly(const char *method, const char *target, const char *headers, const char *body)
{
	struct client *c = client_open(d->port);

	client_send(c, method, target, headers, body);
	usleep(800 * 1000);
	return c;
}

static void
expect_end(struct client *c, int status, const char *text)
{
	struct response r = client_receive(c, false);

	if (r.status != status || !strstr(r.body, text))
		fail_msg("expected %d with %s, got %d: %s", status, text, r.status, r.body);
	response_release(&r);
	client_close(c);
}

#define JSON "Content-Type: application/json\r\n"

static void
a_validator_that_changes_meanwhile_is_asked(void **state)
{
	struct client *c;

	NEEDS_WORKER();
	create_with("races", "function(n) { " SLOW " }");
	door_expect(d, "PUT", "/races/warm", "{}", 201, "ok");
	c = begin_slowly("PUT", "/races/d", JSON, "{\"slow\":true}");
	put_validator("races", "w", "function() { throw({forbidden: 'new'}); }");
	expect_end(c, 403, "new");
	c = begin_slowly("POST", "/races/_bulk_docs", JSON,
			 "{\"docs\":[{\"_id\":\"e\",\"slow\":true}]}");
	put_validator("races", "v", "function() { throw({forbidden: 'newer'}); }");
	expect_end(c, 201, "new");
	door_expect(d, "GET", "/races/_all_docs", NULL, 200, "\"total_rows\":3,");
}

static void
a_security_object_that_changes_meanwhile_is_shown(void **state)
{
	struct client *c;

	NEEDS_WORKER();
	create_with("secure",
		    "function(n, o, u, s) { " SLOW "if (s.closed) throw({forbidden: 'closed'}); }");
	door_expect(d, "PUT", "/secure/warm", "{}", 201, "ok");
	c = begin_slowly("PUT", "/secure/d", JSON, "{\"slow\":true}");
	door_expect(d, "PUT", "/secure/_security", "{\"closed\":true}", 200, "ok");
	expect_end(c, 403, "closed");
	door_expect(d, "GET", "/secure/d", NULL, 404, "missing");
}

static void
a_document_that_changes_meanwhile_is_shown(void **state)
{
	struct client *c;
	struct client *other;

	NEEDS_WORKER();
	create_with("parents",
		    "function(n, o) { " SLOW "if (o && o.locked) throw({forbidden: 'locked'}); }");
	door_expect(d, "PUT", "/parents/d", "{}", 201, "ok");
	/* Both writes need a worker at the same time: the second one is started here. */
	c = begin_slowly("PUT", "/parents/a", JSON, "{\"slow\":true}");
	other = begin_slowly("PUT", "/parents/b", JSON, "{\"slow\":true}");
	expect_end(c, 201, "ok");
	expect_end(other, 201, "ok");
	c = begin_slowly("PATCH", "/parents/d", MERGE_PATCH, "{\"slow\":true}");
	door_expect(d, "PUT", "/parents/d",
		    format("{\"_rev\":\"%s\",\"locked\":true}", rev_of("/parents/d")), 201, "ok");
	expect_end(c, 403, "locked");
	door_expect(d, "GET", "/parents/d", NULL, 200, "\"locked\":true}");
}

/* Where there was none, validators are not asked once more: the write is a conflict. */
static void
a_document_that_comes_meanwhile_is_a_conflict(void **state)
{
	static const char *const ways[][4] = {
		{ "PUT", "/comes/d", "{\"slow\":true}", "conflict" },
		{ "POST", "/comes/_bulk_docs",
		  "{\"docs\":[{\"_id\":\"a\",\"slow\":true},{\"_id\":\"e\",\"slow\":true}]}",
		  "\"id\":\"e\",\"error\":\"conflict\"" },
	};
	static const char *const ids[] = { "d", "e" };
	struct client *c;

	NEEDS_WORKER();
	create_with("comes", "function(n, o) { " SLOW " }");
	/* Both writes need a worker at the same time: the second one is started here. */
	c = begin_slowly("PUT", "/comes/x", JSON, "{\"slow\":true}");
	expect_end(begin_slowly("PUT", "/comes/y", JSON, "{\"slow\":true}"), 201, "ok");
	expect_end(c, 201, "ok");
	for (int i = 0; i < 2; i++) {
		c = begin_slowly(ways[i][0], ways[i][1], JSON, ways[i][2]);
		door_expect(d, "PUT", format("/comes/%s", ids[i]), "{}", 201, "ok");
		expect_end(c, i ? 201 : 409, ways[i][3]);
		door_expect(d, "GET", format("/comes/%s", ids[i]), NULL, 200, "\"}");
	}
	door_expect(d, "GET", "/comes/a", NULL, 200, "slow");
}

static const door_setting functions_settings[] = {
	{ "couchdb", "os_process_timeout", "3000" },
	{ NULL, NULL, NULL },
};

static int
setup_functions(void **state)
{
	(void)state;
	d = door_start_with(false, functions_settings, NULL);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_validator_that_changes_meanwhile_is_asked),
		cmocka_unit_test(a_security_object_that_changes_meanwhile_is_shown),
		cmocka_unit_test(a_document_that_changes_meanwhile_is_shown),
		cmocka_unit_test(a_document_that_comes_meanwhile_is_a_conflict),
	};

	return cmocka_run_group_tests(tests, setup_functions, teardown);
}
