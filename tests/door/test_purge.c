/* _purge and what goes with it, over HTTP. */
#include "common.h"

static const char *
put(const char *target, const char *body)
{
	door_expect(d, "PUT", target, body, 201, "\"ok\":true");
	return door_member(d, "rev");
}

static void
purged_document_is_gone_from_everything(void **state)
{
	const char *rev;
	char seq[64];

	(void)state;
	door_create(d, "purge");
	door_expect(d, "GET", "/purge", NULL, 200, "\"purge_seq\":\"0\"");
	rev = put("/purge/a", "{\"x\":1}");
	put("/purge/b", "{}");
	rev = put(format("/purge/a?rev=%s", rev), "{\"x\":2}");
	door_expect(d, "GET", "/purge", NULL, 200, "\"doc_count\":2");
	(void)snprintf(seq, sizeof(seq), "%s", door_member(d, "update_seq"));
	door_expect_body(d, "POST", "/purge/_purge", format("{\"a\":[\"%s\"]}", rev), 201,
			 format("{\"purge_seq\":null,\"purged\":{\"a\":[\"%s\"]}}", rev));
	door_expect(d, "GET", "/purge/a", NULL, 404, "missing");
	door_expect(d, "GET", format("/purge/a?rev=%s", rev), NULL, 404, "missing");
	door_expect(d, "GET", "/purge/_all_docs", NULL, 200, "\"total_rows\":1");
	door_expect(d, "GET", "/purge/_changes", NULL, 200, "\"id\":\"b\"");
	door_has_not(d, "\"id\":\"a\"");
	door_expect(d, "GET", "/purge", NULL, 200, "\"doc_count\":1");
	assert_true(strcmp(door_member(d, "update_seq"), seq) > 0);
	assert_string_equal(door_member(d, "update_seq"), door_member(d, "purge_seq"));
	door_expect(d, "GET", format("/purge/_changes?since=%s", door_member(d, "update_seq")),
		    NULL, 200, "\"results\":[\n\n]");
}

static void
purging_the_winner_shows_the_next_branch(void **state)
{
	(void)state;
	door_expect(d, "POST", "/purge/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"two\",\"_rev\":\"1-x\",\"n\":1},"
		    "{\"_id\":\"two\",\"_rev\":\"1-y\",\"n\":2}]}",
		    201, "[]");
	door_expect_body(
		d, "POST", "/purge/_purge",
		"{\"two\":[\"1-y\",\"1-z\",\"1-y\"],\"none\":[\"1-a\"],\"two\":[\"1-z\"]}", 201,
		"{\"purge_seq\":null,\"purged\":{\"two\":[\"1-y\"],\"none\":[],\"two\":[]}}");
	door_expect(d, "GET", "/purge/two?conflicts=true", NULL, 200, "\"_rev\":\"1-x\"");
	door_has_not(d, "_conflicts");
	door_expect(d, "GET", "/purge/_changes?descending=true&limit=1", NULL, 200,
		    "\"rev\":\"1-x\"");
}

/* More than one transaction purges at once. What goes is told in one list. */
static void
thousands_of_branches_of_a_document_are_purged(void **state)
{
	enum {
		BRANCHES = 2500,
	};
	struct buf docs = BUF_INIT(1 << 20);
	struct buf purge = BUF_INIT(1 << 20);
	struct buf want = BUF_INIT(1 << 20);

	(void)state;
	door_create(d, "branchy");
	buf_append_cstr(&want, "{\"purge_seq\":null,\"purged\":{\"a\":[");
	buf_append_cstr(&docs, "{\"new_edits\":false,\"docs\":[");
	for (int i = 0; i < BRANCHES; i++) {
		buf_printf(&docs, "%s{\"_id\":\"a\",\"_rev\":\"1-%04d\"}", i ? "," : "", i);
		if (i == 1700)
			continue;
		buf_printf(&purge, "%s\"1-%04d\"", i ? "," : "{\"a\":[", i);
		buf_printf(&want, "%s\"1-%04d\"", i ? "," : "", i);
	}
	buf_append(&docs, "]}", 3);
	buf_append_cstr(&purge, ",\"1-none\"],\"b\":[],\"a\":[\"1-0000\"");
	buf_append(&purge, "]}", 3);
	buf_append(&want, "],\"b\":[],\"a\":[]}}", sizeof("],\"b\":[],\"a\":[]}}"));
	door_expect(d, "POST", "/branchy/_bulk_docs", docs.ptr, 201, "[]");
	door_expect_body(d, "POST", "/branchy/_purge", purge.ptr, 201, want.ptr);
	door_expect(d, "GET", "/branchy/a?conflicts=true", NULL, 200, "\"_rev\":\"1-1700\"");
	door_has_not(d, "_conflicts");
	buf_release(&docs);
	buf_release(&purge);
	buf_release(&want);
}

/* Nothing is purged if there is a mistake at the end of a long request. */
static void
a_mistake_refuses_the_whole_request(void **state)
{
	static const char *const mistakes[] = { "\"z\":[1]}", "\"z\":1}", "\"z\":[\"no\"]}",
						"\"z\":[\"1-a\"]}x" };
	struct buf purge = BUF_INIT(1 << 20);
	size_t len;

	(void)state;
	door_create(d, "mistaken");
	put("/mistaken/0", "{}");
	buf_printf(&purge, "{\"0\":[\"%s\"],", door_member(d, "rev"));
	for (int i = 1; i < 350; i++)
		buf_printf(&purge, "\"%d\":[\"1-a\"],", i);
	len = purge.len;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		purge.len = len;
		buf_append(&purge, mistakes[i], strlen(mistakes[i]) + 1);
		door_expect(d, "POST", "/mistaken/_purge", purge.ptr, 400, "bad_request");
		door_expect(d, "POST", "/mistaken/_revs_diff", purge.ptr, 400, "bad_request");
	}
	door_expect(d, "GET", "/mistaken", NULL, 200, "\"doc_count\":1");
	buf_release(&purge);
}

static void
hundreds_of_documents_are_purged(void **state)
{
	struct buf docs = BUF_INIT(1 << 20);
	struct buf purge = BUF_INIT(1 << 20);

	(void)state;
	door_create(d, "many");
	buf_append_cstr(&docs, "{\"new_edits\":false,\"docs\":[");
	for (int i = 0; i < 250; i++) {
		buf_printf(&docs, "%s{\"_id\":\"%d\",\"_rev\":\"1-a\"}", i ? "," : "", i);
		buf_printf(&purge, "%s\"%d\":[\"1-a\"]", i ? "," : "{", i);
	}
	buf_append(&docs, "]}", 3);
	buf_append(&purge, "}", 2);
	door_expect(d, "POST", "/many/_bulk_docs", docs.ptr, 201, "[]");
	door_expect(d, "POST", "/many/_purge", purge.ptr, 201, "\"249\":[\"1-a\"]}}");
	door_expect(d, "GET", "/many", NULL, 200, "\"doc_count\":0");
	door_expect(d, "GET", "/many/_changes", NULL, 200, "\"results\":[\n\n]");
	buf_release(&docs);
	buf_release(&purge);
}

static void
requests_that_make_no_sense_are_400(void **state)
{
	(void)state;
	door_expect_body(d, "POST", "/purge/_purge", "{}", 201,
			 "{\"purge_seq\":null,\"purged\":{}}");
	door_expect(d, "POST", "/purge/_purge", "[]", 400, "bad_request");
	door_expect(d, "POST", "/purge/_purge", "{\"a\":\"1-a\"}", 400,
		    "Invalid list of revisions");
	door_expect(d, "POST", "/purge/_purge", "{\"a\":[\"spam\"]}", 400, "Invalid rev format");
	door_expect(d, "POST", "/purge/_purge", "{\"a\":[1]}", 400, "Invalid rev format");
	door_expect(d, "POST", "/none/_purge", "{}", 404, "Database does not exist.");
	door_expect(d, "GET", "/purge/_purge", NULL, 405, "Only POST allowed");
	assert_int_equal(
		door_request(d, "POST", "/purge/_purge", "Content-Type: text/plain\r\n", "{}")
			->status,
		415);
}

static void
limit_of_purged_infos_is_kept(void **state)
{
	(void)state;
	door_expect_body(d, "GET", "/purge/_purged_infos_limit", NULL, 200, "1000");
	door_expect_body(d, "PUT", "/purge/_purged_infos_limit", "20", 200, "{\"ok\":true}");
	door_expect_body(d, "GET", "/purge/_purged_infos_limit", NULL, 200, "20");
	door_expect(d, "PUT", "/purge/_purged_infos_limit", "0", 400,
		    "`purged_infos_limit` must be positive integer");
	door_expect(d, "PUT", "/purge/_purged_infos_limit", "\"1\"", 400, "positive integer");
	door_expect(d, "GET", "/none/_purged_infos_limit", NULL, 404, "Database does not exist.");
	door_expect(d, "POST", "/purge/_purged_infos_limit", "1", 405, "Only GET,PUT allowed");
}

static void
purged_infos_list_what_was_purged(void **state)
{
	char rev[64];

	(void)state;
	door_create(d, "infos");
	door_expect_body(d, "GET", "/infos/_purged_infos", NULL, 200, "{\"purged_infos\":[]}");
	(void)snprintf(rev, sizeof(rev), "%s", put("/infos/%22a", "{}"));
	put("/infos/b", "{}");
	door_expect(d, "POST", "/infos/_purge", format("{\"\\\"a\":[\"%s\"]}", rev), 201, rev);
	door_expect_body(d, "GET", "/infos/_purged_infos", NULL, 200,
			 format("{\"purged_infos\":[{\"id\":\"\\\"a\",\"revs\":[\"%s\"]}]}", rev));
	door_expect(d, "POST", "/infos/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"c\",\"_rev\":\"1-x\"},"
		    "{\"_id\":\"c\",\"_rev\":\"1-y\"}]}",
		    201, "[]");
	door_expect(d, "POST", "/infos/_purge",
		    "{\"c\":[\"1-x\",\"1-z\",\"1-y\"],\"none\":[\"1-a\"]}", 201, "1-y");
	door_expect(d, "GET", "/infos/_purged_infos", NULL, 200,
		    ",{\"id\":\"c\",\"revs\":[\"1-x\",\"1-y\"]}]}");
	door_has_not(d, "none");
	door_expect(d, "POST", "/infos/_purged_infos", "{}", 405, "Only GET allowed");
	door_expect(d, "GET", "/none/_purged_infos", NULL, 404, "Database does not exist.");
}

/* More records than a page of the store, and ids that make each of them long. */
static void
long_list_of_purged_infos_is_whole(void **state)
{
	enum {
		DOCS = 1200,
	};
	struct buf docs = BUF_INIT(1 << 20);
	struct buf purge = BUF_INIT(1 << 20);
	const char *at;
	int count = 0;

	(void)state;
	door_create(d, "long");
	door_expect(d, "PUT", "/long/_purged_infos_limit", "1100", 200, "ok");
	buf_append_cstr(&docs, "{\"new_edits\":false,\"docs\":[");
	for (int i = 0; i < DOCS; i++) {
		buf_printf(&docs, "%s{\"_id\":\"%0100d\",\"_rev\":\"1-a\"}", i ? "," : "", i);
		buf_printf(&purge, "%s\"%0100d\":[\"1-a\"]", i ? "," : "{", i);
	}
	buf_append(&docs, "]}", 3);
	buf_append(&purge, "}", 2);
	door_expect(d, "POST", "/long/_bulk_docs", docs.ptr, 201, "[]");
	door_expect(d, "POST", "/long/_purge", purge.ptr, 201, "1-a");
	door_expect(d, "GET", "/long/_purged_infos", NULL, 200, "001199\"");
	for (at = d->last.body; (at = strstr(at, "\"revs\":[\"1-a\"]")); at++)
		count++;
	assert_int_equal(count, 1100);
	door_has_not(d, "000099\"");
	buf_release(&docs);
	buf_release(&purge);
}

static void
purged_infos_have_a_limit(void **state)
{
	(void)state;
	door_create(d, "limited");
	for (int i = 0; i < 4; i++) {
		const char *rev = put(format("/limited/%d", i), "{}");

		door_expect(d, "POST", "/limited/_purge", format("{\"%d\":[\"%s\"]}", i, rev), 201,
			    rev);
	}
	door_expect(d, "PUT", "/limited/_purged_infos_limit", "2", 200, "ok");
	door_expect(d, "GET", "/limited/_purged_infos", NULL, 200, "\"id\":\"2\"");
	door_has_not(d, "\"id\":\"1\"");
	door_expect(d, "POST", "/limited/_purge",
		    format("{\"4\":[\"%s\"]}", put("/limited/4", "{}")), 201, "1-");
	door_expect(d, "GET", "/limited/_purged_infos", NULL, 200, "\"id\":\"3\"");
	door_has_not(d, "\"id\":\"2\"");
	door_expect(d, "POST", "/limited/_compact", "{}", 202, "ok");
}

static void
only_server_admins_purge(void **state)
{
	struct door *other = door_start(true);

	(void)state;
	assert_int_equal(
		door_request(other, "PUT", "/db", "Authorization: Basic YWRtaW46c2VjcmV0\r\n", NULL)
			->status,
		201);
	assert_int_equal(door_request(other, "POST", "/db/_purge", NULL, "{}")->status, 401);
	assert_int_equal(door_request(other, "GET", "/db/_purged_infos_limit", NULL, NULL)->status,
			 401);
	assert_int_equal(door_request(other, "POST", "/db/_purge",
				      "Authorization: Basic YWRtaW46c2VjcmV0\r\n", "{}")
				 ->status,
			 201);
	door_stop(other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(purged_document_is_gone_from_everything),
		cmocka_unit_test(purging_the_winner_shows_the_next_branch),
		cmocka_unit_test(thousands_of_branches_of_a_document_are_purged),
		cmocka_unit_test(a_mistake_refuses_the_whole_request),
		cmocka_unit_test(hundreds_of_documents_are_purged),
		cmocka_unit_test(requests_that_make_no_sense_are_400),
		cmocka_unit_test(limit_of_purged_infos_is_kept),
		cmocka_unit_test(purged_infos_list_what_was_purged),
		cmocka_unit_test(long_list_of_purged_infos_is_whole),
		cmocka_unit_test(purged_infos_have_a_limit),
		cmocka_unit_test(only_server_admins_purge),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
