/* The scheme of a database over HTTP, and that nothing else of the API tells which one it is. */
#include "common.h"

enum {
	ANSWER_BYTES = 256 * 1024,
	LARGE_BYTES = 20 * 1024,
};

#define JSON_PATCH "Content-Type: application/json-patch+json\r\n"

static void
scheme_is_chosen_and_shown(void **state)
{
	(void)state;
	door_expect_body(d, "PUT", "/one?scheme=packed", NULL, 201, "{\"ok\":true}");
	door_expect(d, "GET", "/one", NULL, 200, "\"props\":{\"scheme\":\"packed\"}");
	door_expect_body(d, "GET", "/one/_scheme", NULL, 200, "\"packed\"");
	door_expect_body(d, "PUT", "/two?scheme=exploded", NULL, 201, "{\"ok\":true}");
	door_expect(d, "GET", "/two", NULL, 200, "\"props\":{\"scheme\":\"exploded\"}");
	door_expect(d, "PUT", "/three?scheme=flat", NULL, 400, "\\\"packed\\\"");
	door_expect(d, "GET", "/three", NULL, 404, "not_found");
}

static void
scheme_is_changed_while_the_database_is_in_use(void **state)
{
	(void)state;
	door_expect(d, "PUT", "/one/before", "{\"b\":[1],\"a\":2}", 201, "");
	door_expect_body(d, "PUT", "/one/_scheme", "\"exploded\"", 200, "{\"ok\":true}");
	door_expect(d, "GET", "/one", NULL, 200, "\"props\":{\"scheme\":\"exploded\"}");
	door_expect(d, "PUT", "/one/after", "{\"b\":[1],\"a\":2}", 201, "");
	door_expect(d, "GET", "/one/before", NULL, 200, "\"a\":2,\"b\":[1]}");
	door_expect(d, "GET", "/one/after", NULL, 200, "\"a\":2,\"b\":[1]}");
	door_expect_body(d, "GET", "/one/before?path=/b", NULL, 200, "[1]");
	door_expect_body(d, "GET", "/one/after?path=/b", NULL, 200, "[1]");
	door_expect(d, "PUT", "/one/_scheme", "\"flat\"", 400, "bad_request");
	door_expect(d, "PUT", "/one/_scheme", "1", 400, "bad_request");
	door_expect(d, "PUT", "/none/_scheme", "\"packed\"", 404, "not_found");
	door_expect(d, "GET", "/none/_scheme", NULL, 404, "not_found");
	door_expect(d, "DELETE", "/one/_scheme", NULL, 405, "method_not_allowed");
}

/* ---- The same answers ---- */

/* Both answers to a request are the same, but for the database's own name and Sequences. */
static void
same(const char *method, const char *path, const char *headers, const char *body)
{
	static char first[ANSWER_BYTES];
	const struct response *r;
	int status;

	/* Boundaries between parts would differ. */
	if (!headers)
		headers = "Accept: application/json\r\n";
	r = door_request(d, method, format("/packed%s", path), headers, body);
	status = r->status;
	assert_true(r->body_len < sizeof(first));
	memcpy(first, r->body, r->body_len + 1);
	r = door_request(d, method, format("/leaves%s", path), headers, body);
	if (r->status != status || strcmp(r->body, first) != 0)
		fail_msg("%s %s: packed %d %s, leaves %d %s", method, path, status, first,
			 r->status, r->body);
}

/* A document with everything that is hard to keep, or above the limit. */
static void
put_some(void)
{
	static char large[LARGE_BYTES];
	size_t len = (size_t)snprintf(large, sizeof(large), "{\"z\":1,\"list\":[0");

	same("PUT", "/hard", NULL,
	     "{\"z\":1.10,\"a\":{\"c\":[],\"b\":{}},\"a\":{\"y\":[1,2,{\"k\":-0}],\"x\":1e400},"
	     "\"\":null,\"n\\u0000\":\"\\u0000\\/\\u00e9\",\"7\":[true,false]}");
	same("PUT", "/small", NULL, "{\"a\":1}");
	same("PUT", "/empty", NULL, "{}");
	while (len < sizeof(large) - 20)
		len += (size_t)snprintf(large + len, sizeof(large) - len, ",{\"n\":%zu}", len);
	(void)snprintf(large + len, sizeof(large) - len, "]}");
	same("PUT", "/large", NULL, large);
	same("PUT", "/_local/here", NULL, "{\"b\":1,\"a\":[]}");
	same("PUT", "/_design/x", NULL, "{\"views\":{\"v\":{\"map\":\"function () {}\"}}}");
	same("POST", "/_bulk_docs", NULL,
	     "{\"docs\":[{\"_id\":\"b1\",\"y\":1,\"x\":{\"q\":[1]}},{\"_id\":\"b2\"},"
	     "{\"_id\":\"b1\"},{\"_id\":\"_local/l\",\"v\":2}]}");
	same("POST", "/_bulk_docs", NULL,
	     "{\"new_edits\":false,\"docs\":[{\"_id\":\"c\",\"_rev\":\"1-a\",\"side\":\"left\"},"
	     "{\"_id\":\"c\",\"_rev\":\"1-b\",\"side\":\"right\"},"
	     "{\"_id\":\"c\",\"_rev\":\"2-c\",\"_deleted\":true,\"why\":\"x\","
	     "\"_revisions\":{\"start\":2,\"ids\":[\"c\",\"d\"]}}]}");
	same("PUT", "/att", NULL,
	     "{\"m\":1,\"_attachments\":{\"t\":{\"content_type\":\"text/"
	     "x\",\"data\":\"aGVsbG8=\"}}}");
}

static void
every_answer_is_the_same_in_both_schemes(void **state)
{
	static const char *const paths[] = {
		"/hard",
		"/small",
		"/empty",
		"/large",
		"/_local/here",
		"/_local/l",
		"/_design/x",
		"/c?conflicts=true&deleted_conflicts=true&revs_info=true&revs=true",
		"/c?rev=1-a",
		"/c?open_revs=all&revs=true",
		"/att",
		"/att?attachments=true",
		"/att/t",
		"/hard?path=",
		"/empty?path=",
		"/hard?path=/a",
		"/hard?path=/a/y/2/k",
		"/hard?path=/a/y/3",
		"/hard?path=/7/1",
		"/hard?path=/",
		"/hard?path=/_id",
		"/large?path=/list/77",
		"/large?path=/list/77/n",
		"/hard?paths=%5B%22/a/x%22,%22/7/0%22,%22/none%22,%22/a/y%22,%22%22%5D",
		"/large?paths=%5B%22/list/1%22,%22/z%22%5D",
		"/_all_docs?include_docs=true",
		"/_all_docs?include_docs=true&conflicts=true&descending=true",
		"/_all_docs?include_docs=true&attachments=true&start_key=%22att%22&limit=3",
		"/_local_docs?include_docs=true",
		"/_design_docs?include_docs=true",
	};

	(void)state;
	door_expect_body(d, "PUT", "/packed?scheme=packed", NULL, 201, "{\"ok\":true}");
	door_expect_body(d, "PUT", "/leaves?scheme=exploded", NULL, 201, "{\"ok\":true}");
	put_some();
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		same("GET", paths[i], NULL, NULL);
	same("POST", "/_all_docs", NULL,
	     "{\"keys\":[\"hard\",\"none\",\"c\"],\"include_docs\":true}");
	same("POST", "/_bulk_get?revs=true", NULL,
	     "{\"docs\":[{\"id\":\"hard\"},{\"id\":\"c\",\"rev\":\"1-b\"},{\"id\":\"none\"}]}");
	same("PATCH", "/hard", JSON_PATCH,
	     "[{\"op\":\"add\",\"path\":\"/a/y/0\",\"value\":\"first\"},"
	     "{\"op\":\"remove\",\"path\":\"/z\"}]");
	same("PATCH", "/large", JSON_PATCH, "[{\"op\":\"remove\",\"path\":\"/list\"}]");
	same("PATCH", "/att", JSON_PATCH, "[{\"op\":\"replace\",\"path\":\"/m\",\"value\":2}]");
	same("PATCH", "/small", JSON_PATCH,
	     "[{\"op\":\"add\",\"path\":\"/_id\",\"value\":\"other\"}]");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		same("GET", paths[i], NULL, NULL);
}

/* The rows of a feed without their Sequences, which are the store's. */
static void
feed(const char *target, const char *body, char *ret, size_t size)
{
	const struct response *r = door_request(d, "POST", target, NULL, body);
	size_t len = 0;

	assert_int_equal(r->status, 200);
	for (const char *row = strstr(r->body, ",\"id\":"); row;) {
		const char *end = strchr(row, '\n');
		size_t n = end ? (size_t)(end - row) : strlen(row);

		assert_true(len + n + 1 < size);
		memcpy(ret + len, row, n);
		len += n;
		row = end ? strstr(end, ",\"id\":") : NULL;
	}
	ret[len] = '\0';
}

static void
feeds_are_the_same_in_both_schemes(void **state)
{
	static const char *const queries[] = {
		"include_docs=true",
		"include_docs=true&style=all_docs&conflicts=true",
		"filter=_selector&include_docs=true",
		"filter=_selector&style=all_docs",
	};
	static const char selector[] = "{\"selector\":{\"$or\":[{\"a\":{\"$exists\":true}},"
				       "{\"side\":\"left\"},{\"x.q\":[1]}]}}";
	static char of_packed[ANSWER_BYTES];
	static char of_leaves[ANSWER_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		const char *body = strstr(queries[i], "_selector") ? selector : "{}";

		feed(format("/packed/_changes?%s", queries[i]), body, of_packed, sizeof(of_packed));
		feed(format("/leaves/_changes?%s", queries[i]), body, of_leaves, sizeof(of_leaves));
		assert_true(strlen(of_packed) > 100);
		assert_string_equal(of_packed, of_leaves);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scheme_is_chosen_and_shown),
		cmocka_unit_test(scheme_is_changed_while_the_database_is_in_use),
		cmocka_unit_test(every_answer_is_the_same_in_both_schemes),
		cmocka_unit_test(feeds_are_the_same_in_both_schemes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
