/* Every refusal for a limit says which limit it was, and its value. */
#include "common.h"
#include "store.h"

enum {
	TEXT_BYTES = 8 * 1024 * 1024,
};

static char text[TEXT_BYTES];

/* `count` times `piece`, in `text` behind what is there. */
static void
add(const char *piece, size_t count)
{
	size_t at = strlen(text);
	size_t len = strlen(piece);

	assert_true(at + count * len < sizeof(text));
	for (size_t i = 0; i < count; i++, at += len)
		memcpy(text + at, piece, len + 1);
}

static const char *
repeat(const char *before, const char *piece, size_t count, const char *after)
{
	text[0] = '\0';
	add(before, 1);
	add(piece, count);
	add(after, 1);
	return text;
}

static void
nesting_names_the_levels(void **state)
{
	(void)state;
	door_create(d, "deep");
	door_expect(d, "PUT", "/deep/a", repeat("{\"a\":", "[", 600, ""), 400, "512");
	door_has(d, "\"error\":\"bad_request\"");
	door_has(d, "nested too deeply");
	door_has_not(d, "invalid UTF-8 JSON");
	door_expect(d, "POST", "/deep/_bulk_docs", repeat("{\"docs\":[{\"a\":", "[", 600, "]}"),
		    400, "512");
	door_expect(d, "POST", "/deep/_revs_diff", repeat("{\"a\":", "[", 600, ""), 400, "512");
}

static void
a_path_too_long_for_a_key_is_drawn_whatever_its_names(void **state)
{
	(void)state;
	door_create(d, "paths");
	door_expect(d, "PUT", "/paths/a",
		    repeat("{\"a\":{\"b\":{\"c\\u0000d\":{\"", "x", 10000, "\":1}}}}"), 400,
		    "10000 bytes");
	door_has(d, "/a/b/c");
	door_has(d, "doc_validation");
	door_expect(d, "PUT", "/paths/a", repeat("{\"a\\u0000", "x", 10000, "\":1}"), 400,
		    "10000 bytes");
}

static void
names_and_ids_name_their_bytes(void **state)
{
	(void)state;
	door_create(d, "names");
	door_expect(d, "PUT", repeat("/d", "b", 300, ""), NULL, 400, "238 bytes");
	door_has(d, "database_name_too_long");
	door_expect(d, "PUT", repeat("/names/", "i", 9000, ""), "{}", 400, "limit is");
	door_expect(d, "PUT", repeat("/names/doc/", "a", 10001, ""), "x", 400, "bytes");
	door_expect(d, "PUT", repeat("/names/doc/a", "/b", 70, ""), "x", 400, "64");
	door_expect(d, "GET", repeat("/names/doc?rev=1-", "r", 600, ""), NULL, 400, "512 bytes");
	door_expect(d, "POST", "/names/_bulk_docs",
		    repeat("{\"new_edits\":false,\"docs\":[{\"_id\":\"a\",\"_rev\":\"1-", "r", 600,
			   "\"}]}"),
		    201, "512 bytes");
}

static void
sizes_name_their_bytes(void **state)
{
	(void)state;
	door_create(d, "sizes");
	door_expect(d, "PUT", "/sizes/a", repeat("{\"a\":\"", "x", 8000001, "\"}"), 413,
		    "8000000 bytes");
	door_has(d, "document_too_large");
	door_expect(d, "PUT", "/sizes/_revs_limit", repeat("", " ", 70000, "1"), 413,
		    "65536 bytes");
}

static void
counts_name_the_most(void **state)
{
	(void)state;
	door_create(d, "counts");
	door_expect(d, "GET", "/_uuids?count=1001", NULL, 400, "1000");
	door_expect(d, "POST", "/_dbs_info", repeat("{\"keys\":[\"a\"", ",\"a\"", 100, "]}"), 400,
		    "100");
	door_expect(d, "GET", repeat("/counts/_all_docs?a=1", "&a=1", 300, ""), NULL, 400, "256");
	door_expect(d, "GET", repeat("/counts/a?paths=[\"/a\"", ",\"/a\"", 256, "]"), NULL, 400,
		    "256");
	door_expect(d, "PUT", "/counts/a", "{}", 201, "ok");
	door_expect(d, "GET", repeat("/counts/a?path=", "/a", 513, ""), NULL, 400, "`path` has");
	door_has(d, "512 tokens");
	door_expect(d, "GET", repeat("/counts/a?path=", "/a", 512, ""), NULL, 404,
		    "nothing at path");
	door_expect(d, "GET", repeat("/counts/a?paths=[\"", "/a", 513, "\"]"), NULL, 400,
		    "`paths` has");
	door_has(d, "512 tokens");
}

/* What the request alone has too much of is a 413: trying again would not help. */
static void
memory_of_one_request_names_its_limit(void **state)
{
	static const door_setting settings[] = {
		{ "frond", "request_bytes", "1048576" },
		{ NULL, NULL, NULL },
	};
	struct door *small = door_start_with(false, settings, NULL);
	/* Each takes a transaction, and those of a cluster take their time. */
	size_t purged = test_store_is_cluster() ? 600 : 60000;

	(void)state;
	door_create(small, "a");
	door_expect(small, "POST", "/a/_changes?filter=_doc_ids",
		    repeat("{\"doc_ids\":[\"a\"", ",\"a\"", 200000, "]}"), 413, "request_bytes");
	door_has(small, "1048576 bytes");
	assert_null(response_header(&small->last, "Retry-After"));
	door_expect(small, "POST", "/a/_all_docs", repeat("{\"keys\":[1", ",1", 100000, "]}"), 200,
		    "rows");
	door_expect(small, "POST", "/a/_all_docs", repeat("{\"keys\":[1", ",1", 600000, "]}"), 413,
		    "request_bytes");
	/* Revisions of one document are read together, those of many are not. */
	door_expect(small, "POST", "/a/_revs_diff",
		    repeat("{\"a\":[\"1-a\"", ",\"1-a\"", 100000, "]}"), 413, "request_bytes");
	door_has(small, "1048576 bytes");
	door_expect(small, "POST", "/a/_revs_diff",
		    repeat("{\"a\":[\"1-a\"]", ",\"a\":[\"1-a\"]", 60000, "}"), 200, "missing");
	door_expect(small, "POST", "/a/_purge", repeat("{\"a\":[\"1-a\"", ",\"1-a\"", 100000, "]}"),
		    201, "{\"a\":[]}");
	door_expect(small, "POST", "/a/_purge",
		    repeat("{\"a\":[\"1-a\"]", ",\"b\":[\"1-a\"]", purged, "}"), 201, "\"b\":[]");
	door_stop(small);
}

/* Revisions are sent one by one: an answer with many may be larger than all memory for requests. */
static void
many_revisions_are_sent_in_little_memory(void **state)
{
	enum {
		REVISIONS = 24,
		REVISION_BYTES = 900000,
	};
	static const door_setting settings[] = {
		{ "frond", "memory_bytes", "12582912" },
		{ NULL, NULL, NULL },
	};
	static const char *const accepts[] = { "Accept: application/json\r\n",
					       "Accept: multipart/mixed\r\n" };
	struct door *small = door_start_with(false, settings, NULL);

	(void)state;
	door_create(small, "revs");
	for (int i = 0; i < REVISIONS; i++)
		door_expect(small, "PUT", "/revs/a?new_edits=false",
			    repeat(format("{\"_rev\":\"1-%02d\",\"x\":\"", i), "x", REVISION_BYTES,
				   "\"}"),
			    201, "ok");
	for (size_t i = 0; i < 2; i++) {
		door_request(small, "GET", "/revs/a?open_revs=all", accepts[i], NULL);
		assert_int_equal(small->last.status, 200);
		assert_false(small->last.broken);
		assert_true(small->last.body_len > (size_t)REVISIONS * REVISION_BYTES);
		door_has(small, "\"_rev\":\"1-00\"");
		door_has(small, "\"_rev\":\"1-23\"");
	}
	door_stop(small);
}

static void
patches_name_what_they_pass(void **state)
{
	static const char headers[] = "Content-Type: application/json-patch+json\r\n";

	(void)state;
	door_create(d, "patches");
	door_expect(d, "PUT", "/patches/a", "{\"a\":[]}", 201, "ok");
	expect_as(headers, "PATCH", "/patches/a",
		  repeat("[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":", "[", 600, ""), 400,
		  "512");
	expect_as(headers, "PATCH", "/patches/a",
		  repeat("[{\"op\":\"add\",\"path\":\"/b\",\"value\":[1]}",
			 ",{\"op\":\"copy\",\"from\":\"/b\",\"path\":\"/b/0\"}", 30, "]"),
		  413, "bytes");
}

static void
targets_and_headers_name_their_bytes(void **state)
{
	(void)state;
	door_request(d, "GET", repeat("/", "t", 16400, ""), NULL, NULL);
	assert_int_equal(d->last.status, 414);
	door_has(d, "16384 bytes");
	client_close(d->client);
	d->client = client_open(d->port);
	door_request(d, "GET", "/", repeat("", "A: b\r\n", 300, ""), NULL);
	assert_int_equal(d->last.status, 431);
	door_has(d, "limit is 256");
	client_close(d->client);
	d->client = client_open(d->port);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nesting_names_the_levels),
		cmocka_unit_test(a_path_too_long_for_a_key_is_drawn_whatever_its_names),
		cmocka_unit_test(names_and_ids_name_their_bytes),
		cmocka_unit_test(sizes_name_their_bytes),
		cmocka_unit_test(counts_name_the_most),
		cmocka_unit_test(memory_of_one_request_names_its_limit),
		cmocka_unit_test(many_revisions_are_sent_in_little_memory),
		cmocka_unit_test(patches_name_what_they_pass),
		cmocka_unit_test(targets_and_headers_name_their_bytes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
