/* Parts of documents over HTTP: several paths at once, and PATCH. */
#include "common.h"

#include <pthread.h>

#define JSON_PATCH  "Content-Type: application/json-patch+json\r\n"
#define MERGE_PATCH "Content-Type: application/merge-patch+json\r\n"

enum {
	WRITERS = 4,
	ROUNDS = 25,
};

static void
expect_patch(const char *target, const char *headers, const char *body, int status,
	     const char *text)
{
	const struct response *r = door_request(d, "PATCH", target, headers, body);

	if (r->status != status || !strstr(r->body, text))
		fail_msg("PATCH %s %s: expected %d with %s, got %d: %s", target, body, status, text,
			 r->status, r->body);
}

/* The revision of the last answer. */
static const char *
put(const char *target, const char *body)
{
	door_expect(d, "PUT", target, body, 201, "\"ok\":true");
	return door_member(d, "rev");
}

/* ---- Reading ---- */

static void
several_paths_come_as_one_object(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "paths");
	rev = put("/paths/doc", "{\"a\":{\"b\":[1,{\"c\":1.50}]},\"d/e\":\"x\",\"7\":null}");
	door_expect_body(d, "GET",
			 "/paths/doc?paths=%5B%22/a/b/1%22,%22/d~1e%22,%22/nothing%22,%22/7%22%5D",
			 NULL, 200, "{\"/a/b/1\":{\"c\":1.50},\"/d~1e\":\"x\",\"/7\":null}");
	assert_string_equal(response_header(&d->last, "ETag"), format("\"%s\"", rev));
	door_expect_body(d, "GET", "/paths/doc?paths=%5B%22%22,%22/a/b/0%22,%22%22%5D", NULL, 200,
			 "{\"\":{\"7\":null,\"a\":{\"b\":[1,{\"c\":1.50}]},\"d/e\":\"x\"},"
			 "\"/a/b/0\":1}");
	door_expect_body(d, "GET", format("/paths/doc?rev=%s&paths=%%5B%%22/7%%22%%5D", rev), NULL,
			 200, "{\"/7\":null}");
	assert_int_equal(door_request(d, "GET", "/paths/doc?paths=%5B%22/7%22%5D",
				      format("If-None-Match: \"%s\"\r\n", rev), NULL)
				 ->status,
			 304);
	put("/paths/_design/doc", "{\"a\":1}");
	door_expect_body(d, "GET", "/paths/_design/doc?paths=%5B%22/a%22%5D", NULL, 200,
			 "{\"/a\":1}");
}

static void
paths_that_lead_nowhere_are_404_and_bad_ones_400(void **state)
{
	char many[4096] = "/paths/doc?paths=%5B%22/0%22";

	(void)state;
	door_expect(d, "GET", "/paths/doc?paths=%5B%22/x%22,%22/y%22%5D", NULL, 404, "not_found");
	door_expect(d, "GET", "/paths/doc?paths=%5B%5D", NULL, 404, "not_found");
	door_expect(d, "GET", "/paths/none?paths=%5B%22/x%22%5D", NULL, 404, "missing");
	door_expect(d, "GET", "/paths/doc?rev=7-a&paths=%5B%22/a%22%5D", NULL, 404, "not_found");
	door_expect(d, "GET", "/paths/doc?paths=%5B%22x%22%5D", NULL, 400, "query_parse_error");
	door_expect(d, "GET", "/paths/doc?paths=%5B1%5D", NULL, 400, "query_parse_error");
	door_expect(d, "GET", "/paths/doc?paths=%22/a%22", NULL, 400, "query_parse_error");
	door_expect(d, "GET", "/paths/doc?paths=%5B", NULL, 400, "bad_request");
	for (int i = 1; i < 257; i++)
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), ",%%22/%d%%22", i);
	(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "%%5D");
	door_expect(d, "GET", many, NULL, 400, "more than 256");
}

/* ---- Writing ---- */

static void
json_patch_makes_a_new_revision(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "patch");
	rev = put("/patch/doc", "{\"list\":[1,2],\"n\":1}");
	expect_patch(format("/patch/doc?rev=%s", rev), JSON_PATCH,
		     "[{\"op\":\"test\",\"path\":\"/n\",\"value\":1.0},"
		     "{\"op\":\"add\",\"path\":\"/list/1\",\"value\":{\"x\":[]}},"
		     "{\"op\":\"remove\",\"path\":\"/n\"}]",
		     200, "{\"ok\":true,\"id\":\"doc\",\"rev\":\"2-");
	rev = door_member(d, "rev");
	assert_string_equal(response_header(&d->last, "ETag"), format("\"%s\"", rev));
	door_expect(d, "GET", "/patch/doc", NULL, 200, "\"list\":[1,{\"x\":[]},2]}");
	door_has(d, rev);
	expect_patch("/patch/doc", format("If-Match: \"%s\"\r\n" JSON_PATCH, rev),
		     "[{\"op\":\"replace\",\"path\":\"/list\",\"value\":null}]", 200,
		     "\"rev\":\"3-");
	door_expect(d, "GET", "/patch/_changes", NULL, 200, "\"rev\":\"3-");
}

static void
merge_patch_makes_a_new_revision(void **state)
{
	(void)state;
	put("/patch/merged", "{\"a\":{\"b\":1,\"c\":2},\"d\":[1]}");
	expect_patch("/patch/merged",
		     "Content-Type: application/merge-patch+json; charset=utf-8\r\n",
		     "{\"a\":{\"b\":null,\"e\":1.10},\"d\":{}}", 200, "\"rev\":\"2-");
	door_expect(d, "GET", "/patch/merged", NULL, 200, "\"a\":{\"c\":2,\"e\":1.10},\"d\":{}}");
}

/* The hash depends on the order of members: a patched document has them in key order. */
static void
attachments_stay_and_count_for_the_hash(void **state)
{
	char first[128];
	char patched[128];

	(void)state;
	(void)snprintf(first, sizeof(first), "%s",
		       put("/patch/atts", "{\"a\":1,\"_attachments\":{\"f.txt\":{\"content_type\":"
					  "\"text/plain\",\"data\":\"aGVsbG8=\"}}}"));
	expect_patch("/patch/atts", MERGE_PATCH, "{\"a\":2}", 200, "\"rev\":\"2-");
	(void)snprintf(patched, sizeof(patched), "%s", door_member(d, "rev"));
	door_expect(d, "GET", "/patch/atts", NULL, 200, "\"f.txt\":{");
	door_has(d, "\"revpos\":1");
	door_has(d, "\"a\":2");
	door_request(d, "GET", "/patch/atts/f.txt", NULL, NULL);
	assert_string_equal(d->last.body, "hello");
	door_expect_body(d, "GET", "/patch/atts?paths=%5B%22%22%5D", NULL, 200, "{\"\":{\"a\":2}}");
	door_expect_body(d, "GET", "/patch/atts?path=", NULL, 200, "{\"a\":2}");
	/* As a PUT with stubs. */
	put("/patch/atts2", "{\"a\":1,\"_attachments\":{\"f.txt\":{\"content_type\":"
			    "\"text/plain\",\"data\":\"aGVsbG8=\"}}}");
	assert_string_equal(put(format("/patch/atts2?rev=%s", first),
				"{\"a\":2,\"_attachments\":{\"f.txt\":{\"stub\":true}}}"),
			    patched);
}

static void
patched_revision_has_the_hash_of_the_document_written_whole(void **state)
{
	char first[128];
	char patched[128];

	(void)state;
	(void)snprintf(first, sizeof(first), "%s", put("/patch/p", "{\"z\":1,\"a\":[]}"));
	expect_patch("/patch/p", MERGE_PATCH, "{\"m\":{\"y\":1e2}}", 200, "\"rev\":\"2-");
	(void)snprintf(patched, sizeof(patched), "%s", door_member(d, "rev"));
	put("/patch/w", "{\"z\":1,\"a\":[]}");
	assert_string_equal(
		put(format("/patch/w?rev=%s", first), "{\"a\":[],\"m\":{\"y\":1e2},\"z\":1}"),
		patched);
}

static void
stale_and_foreign_revisions_are_conflicts(void **state)
{
	const char *first = put("/patch/stale", "{\"n\":1}");
	char rev[128];

	(void)state;
	(void)snprintf(rev, sizeof(rev), "%s", first);
	expect_patch("/patch/stale", MERGE_PATCH, "{\"n\":2}", 200, "\"rev\":\"2-");
	expect_patch(format("/patch/stale?rev=%s", rev), MERGE_PATCH, "{\"n\":3}", 409,
		     "\"error\":\"conflict\"");
	expect_patch("/patch/stale?rev=2-x", MERGE_PATCH, "{\"n\":3}", 409, "conflict");
	expect_patch("/patch/stale?rev=0-1", MERGE_PATCH, "{\"n\":3}", 409, "conflict");
	expect_patch(format("/patch/stale?rev=%s", rev), "If-Match: \"1-a\"\r\n" MERGE_PATCH,
		     "{\"n\":3}", 400, "different values");
	expect_patch("/patch/stale?rev=spam", MERGE_PATCH, "{\"n\":3}", 400, "Invalid rev format");
	door_expect(d, "GET", "/patch/stale", NULL, 200, "\"n\":2}");
}

static void
branch_that_lost_can_be_patched_by_its_revision(void **state)
{
	(void)state;
	door_expect(d, "POST", "/patch/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"two\",\"_rev\":\"1-a\",\"n\":1},"
		    "{\"_id\":\"two\",\"_rev\":\"1-b\",\"n\":2}]}",
		    201, "[]");
	expect_patch("/patch/two?rev=1-a", MERGE_PATCH, "{\"m\":1}", 200, "\"rev\":\"2-");
	door_expect(d, "GET", "/patch/two?conflicts=true", NULL, 200, "\"_conflicts\":[\"1-b\"]");
	door_has(d, "\"m\":1,\"n\":1");
}

static void
missing_and_deleted_documents_are_404(void **state)
{
	const char *rev = put("/patch/gone", "{}");

	(void)state;
	door_expect(d, "DELETE", format("/patch/gone?rev=%s", rev), NULL, 200, "ok");
	expect_patch("/patch/gone", MERGE_PATCH, "{}", 404, "deleted");
	expect_patch("/patch/gone?rev=1-a", MERGE_PATCH, "{}", 404, "deleted");
	expect_patch("/patch/never", JSON_PATCH, "[]", 404, "missing");
	expect_patch("/patch/never?rev=1-a", JSON_PATCH, "[]", 404, "missing");
	expect_patch("/none/doc", JSON_PATCH, "[]", 404, "Database does not exist.");
}

static void
patches_that_do_not_fit_are_409_and_change_nothing(void **state)
{
	const char *rev = put("/patch/fit", "{\"a\":[1]}");

	(void)state;
	expect_patch("/patch/fit", JSON_PATCH,
		     "[{\"op\":\"add\",\"path\":\"/b\",\"value\":1},"
		     "{\"op\":\"test\",\"path\":\"/a/0\",\"value\":2}]",
		     409,
		     "{\"error\":\"patch_failed\",\"reason\":\"operation 1 (test): another "
		     "value is at \\\"/a/0\\\"\"}");
	expect_patch("/patch/fit", JSON_PATCH, "[{\"op\":\"remove\",\"path\":\"/x\"}]", 409,
		     "patch_failed");
	door_expect(d, "GET", "/patch/fit", NULL, 200, rev);
}

static void
what_is_no_patch_is_400(void **state)
{
	static const char *const bodies[] = {
		"",
		"{}",
		"[",
		"[{\"op\":\"spam\",\"path\":\"/a\"}]",
		"[{\"op\":\"add\",\"path\":\"/_id\",\"value\":1}]",
		"[{\"op\":\"replace\",\"path\":\"\",\"value\":[1]}]",
		"[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"_rev\":\"1-a\"}}]",
	};

	(void)state;
	put("/patch/bad", "{\"a\":1}");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		expect_patch("/patch/bad", JSON_PATCH, bodies[i], 400, "bad_request");
	expect_patch("/patch/bad", MERGE_PATCH, "{\"_deleted\":true}", 400, "underscore");
	expect_patch("/patch/bad", MERGE_PATCH, "[]", 400, "bad_request");
	door_expect(d, "GET", "/patch/bad", NULL, 200, "\"_rev\":\"1-");
}

static void
other_content_types_are_415_and_told_which_would_do(void **state)
{
	(void)state;
	put("/patch/type", "{}");
	expect_patch("/patch/type", "Content-Type: application/json\r\n", "{}", 415,
		     "bad_content_type");
	assert_string_equal(response_header(&d->last, "Accept-Patch"),
			    "application/json-patch+json, application/merge-patch+json");
	expect_patch("/patch/type", "Content-Type:\r\n", "{}", 415, "bad_content_type");
	expect_patch("/patch/_local/x", MERGE_PATCH, "{}", 405, "method_not_allowed");
	expect_patch("/patch", MERGE_PATCH, "{}", 405, "method_not_allowed");
	door_expect(d, "PROPFIND", "/patch/type", "{}", 405, "PATCH");
}

/* `before`, so many letters, `behind`. */
static void
fill(struct buf *b, const char *before, size_t letters, const char *behind)
{
	buf_clear(b);
	buf_append_cstr(b, before);
	while (letters--)
		buf_append_byte(b, 'x');
	buf_append(b, behind, strlen(behind) + 1);
	assert_int_equal(buf_status(b), STATUS_OK);
}

static void
results_past_the_limits_are_413_or_400(void **state)
{
	struct buf body = BUF_INIT(5 << 20);

	(void)state;
	fill(&body, "{\"a\":\"", 4100000, "\"}");
	put("/patch/large", body.ptr);
	expect_patch("/patch/large", JSON_PATCH,
		     "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]", 413,
		     "document_too_large");
	expect_patch("/patch/large", JSON_PATCH,
		     "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}]", 200, "ok");
	fill(&body, "{\"", 12000, "\":1}");
	expect_patch("/patch/large", MERGE_PATCH, body.ptr, 400, "doc_validation");
	buf_release(&body);
}

static void
post_with_an_override_is_a_patch(void **state)
{
	(void)state;
	put("/patch/over", "{\"a\":1}");
	assert_int_equal(door_request(d, "POST", "/patch/over",
				      "X-HTTP-Method-Override: PATCH\r\n" MERGE_PATCH, "{\"a\":2}")
				 ->status,
			 200);
	door_expect(d, "GET", "/patch/over", NULL, 200, "\"a\":2");
}

/* ---- At once ---- */

static void *
append_to_list(void *arg)
{
	struct client *c = client_open(d->port);
	bool *failed = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct response r;

		client_send(c, "PATCH", "/patch/shared", JSON_PATCH,
			    "[{\"op\":\"add\",\"path\":\"/list/-\",\"value\":0}]");
		r = client_receive(c, false);
		if (r.status != 200)
			*failed = true;
		response_release(&r);
	}
	client_close(c);
	return NULL;
}

static void
patches_without_a_revision_all_count(void **state)
{
	pthread_t threads[WRITERS];
	bool failed[WRITERS] = { false };
	size_t zeros = 0;

	(void)state;
	put("/patch/shared", "{\"list\":[]}");
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, append_to_list, &failed[i]), 0);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < WRITERS; i++)
		assert_false(failed[i]);
	door_expect(d, "GET", "/patch/shared?path=/list", NULL, 200, "[0");
	for (const char *at = d->last.body; (at = strchr(at, '0')); at++)
		zeros++;
	assert_int_equal(zeros, WRITERS * ROUNDS);
	door_expect(d, "GET", "/patch/shared?revs=true", NULL, 200,
		    format("\"start\":%d", WRITERS * ROUNDS + 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_paths_come_as_one_object),
		cmocka_unit_test(paths_that_lead_nowhere_are_404_and_bad_ones_400),
		cmocka_unit_test(json_patch_makes_a_new_revision),
		cmocka_unit_test(merge_patch_makes_a_new_revision),
		cmocka_unit_test(attachments_stay_and_count_for_the_hash),
		cmocka_unit_test(patched_revision_has_the_hash_of_the_document_written_whole),
		cmocka_unit_test(stale_and_foreign_revisions_are_conflicts),
		cmocka_unit_test(branch_that_lost_can_be_patched_by_its_revision),
		cmocka_unit_test(missing_and_deleted_documents_are_404),
		cmocka_unit_test(patches_that_do_not_fit_are_409_and_change_nothing),
		cmocka_unit_test(what_is_no_patch_is_400),
		cmocka_unit_test(other_content_types_are_415_and_told_which_would_do),
		cmocka_unit_test(results_past_the_limits_are_413_or_400),
		cmocka_unit_test(post_with_an_override_is_a_patch),
		cmocka_unit_test(patches_without_a_revision_all_count),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
