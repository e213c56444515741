/* Corners in which a real CouchDB was asked what it answers. */
#include "common.h"

static void
design_documents_have_a_shape(void **state)
{
	static const char *const bad[][2] = {
		{ "{\"views\":1}", "`views` field must have object type" },
		{ "{\"views\":{\"v\":1}}", "`views.v` field must have object type" },
		{ "{\"views\":{\"v\":{\"map\":1}}}", "`views.v.map` field must have string type" },
		{ "{\"views\":{\"v\":{}}}", "View `v` must contain map function" },
		{ "{\"views\":{\"v\":{\"map\":\"f\",\"reduce\":null}}}",
		  "`views.v.reduce` field must have string type" },
		{ "{\"views\":{\"v\":{\"map\":\"f\",\"reduce\":\"_foo\"}}}",
		  "`_foo` is not a supported reduce function." },
		{ "{\"views\":{\"v\":{\"map\":\"f\",\"reduce\":\"_top_101\"}}}",
		  "\"rank value must be between 1 and 100\"" },
		{ "{\"views\":{\"v\":{\"map\":\"f\",\"reduce\":\"_top_0\"}}}",
		  "\"rank value must be between 1 and 100\"" },
		{ "{\"views\":{\"v\":{\"map\":\"f\",\"reduce\":\"_bottom_-5\"}}}",
		  "\"rank value must be between 1 and 100\"" },
		{ "{\"views\":{\"v\":{\"map\":\"f\",\"reduce\":\"_top_Foo\"}}}",
		  "\"invalid rank reducer\"" },
		{ "{\"views\":{\"v\":{\"map\":\"f\",\"reduce\":\"_bottom_3\\n\"}}}",
		  "\"invalid rank reducer\"" },
		{ "{\"views\":{\"v\":{\"map\":\"f\",\"reduce\":\"_\"}}}",
		  "`_` is not a supported reduce function." },
		{ "{\"views\":{\"lib\":\"x\"}}", "`views.lib` field must have object type" },
		{ "{\"language\":\"query\",\"views\":{\"v\":{\"map\":\"x\"}}}",
		  "`views.v.map` field must have object type" },
		{ "{\"language\":1}", "`language` field must have string type" },
		{ "{\"filters\":1}", "`filters` field must have object type" },
		{ "{\"filters\":{\"a\":1}}", "`filters.a` field must have string or object type" },
		{ "{\"lists\":{\"a\":[]}}", "`lists.a` field must have string or object type" },
		{ "{\"shows\":[]}", "`shows` field must have object type" },
		{ "{\"updates\":\"f\"}", "`updates` field must have object type" },
		{ "{\"rewrites\":1}", "`rewrites` field must have array or string type" },
		{ "{\"validate_doc_update\":1}",
		  "`validate_doc_update` field must have string type" },
		{ "{\"options\":1}", "`options` field must have object type" },
		{ "{\"options\":{\"local_seq\":1}}",
		  "`options.local_seq` field must have boolean type" },
		{ "{\"options\":{\"partitioned\":true}}", "partitioned option cannot be true" },
	};

	(void)state;
	door_create(d, "shapes");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		door_expect(d, "PUT", "/shapes/_design/x", bad[i][0], 400, bad[i][1]);
		door_has(d, "\"error\":\"invalid_design_doc\"");
	}
	door_expect(d, "GET", "/shapes/_design/x", NULL, 404, "missing");
	/* Only those: elsewhere the same members mean nothing. */
	door_expect(d, "PUT", "/shapes/x", "{\"views\":1}", 201, "ok");
}

static void
well_formed_design_documents_are_taken(void **state)
{
	static const char *const good[] = {
		"{}",
		"{\"views\":{\"v\":{\"map\":\"function(){}\",\"reduce\":\"_stats\"},\"lib\":{\"a\":"
		"\"x\"}}}",
		"{\"views\":{\"v\":{\"map\":\"function(){}\",\"reduce\":\"_bottom_100\"}}}",
		"{\"language\":\"other\",\"views\":{\"v\":{\"map\":\"f\",\"reduce\":\"_own\"}}}",
		"{\"language\":\"query\",\"views\":{\"v\":{\"map\":{\"fields\":{}},"
		"\"reduce\":\"_count\"}}}",
		"{\"rewrites\":[],\"filters\":{\"a\":\"f\",\"b\":{\"map\":\"f\"}},\"options\":{"
		"\"include_design\":true,\"partitioned\":false},\"validate_doc_update\":\"f\"}",
	};

	(void)state;
	door_create(d, "good");
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		door_expect(d, "PUT", format("/good/_design/%zu", i), good[i], 201, "ok");
}

static void
every_writer_of_design_documents_checks_them(void **state)
{
	const char *rev;

	(void)state;
	door_create(d, "writers");
	door_expect(d, "POST", "/writers", "{\"_id\":\"_design/a\",\"views\":1}", 400,
		    "invalid_design_doc");
	door_expect_body(d, "POST", "/writers/_bulk_docs",
			 "{\"docs\":[{\"_id\":\"_design/a\",\"views\":1},{\"_id\":\"b\"}]}", 201,
			 "[{\"id\":\"_design/a\",\"error\":\"invalid_design_doc\",\"reason\":"
			 "\"`views` field must have object type\"},{\"ok\":true,\"id\":\"b\","
			 "\"rev\":\"1-967a00dff5e02add41819138abb3284d\"}]");
	door_expect(d, "PUT", "/writers/v", "{\"views\":1}", 201, "ok");
	door_request(d, "COPY", "/writers/v", "Destination: _design/v\r\n", NULL);
	assert_int_equal(d->last.status, 400);
	door_expect(d, "PUT", "/writers/_design/p", "{}", 201, "ok");
	rev = door_member(d, "rev");
	door_request(d, "PATCH", "/writers/_design/p",
		     "Content-Type: application/merge-patch+json\r\n", "{\"views\":1}");
	assert_int_equal(d->last.status, 400);
	door_has(d, "invalid_design_doc");
	/* A tombstone has nothing to run. */
	door_expect(d, "PUT", format("/writers/_design/p?rev=%s", rev),
		    "{\"_deleted\":true,\"views\":1}", 200, "ok");
}

static void
a_plus_in_a_path_is_a_space(void **state)
{
	(void)state;
	door_create(d, "plus");
	door_expect(d, "PUT", "/plus/a+b", "{}", 201, "\"id\":\"a b\"");
	assert_string_equal(response_header(&d->last, "Location"),
			    "http://localhost:5984/plus/a%20b");
	door_expect(d, "GET", "/plus/a%20b", NULL, 200, "\"_id\":\"a b\"");
	door_expect(d, "PUT", "/plus/a%2Bb", "{}", 201, "\"id\":\"a+b\"");
	assert_string_equal(response_header(&d->last, "Location"),
			    "http://localhost:5984/plus/a%2Bb");
	door_expect(d, "PUT", "/a+b", NULL, 400, "illegal_database_name");
	door_expect(d, "PUT", "/plus%2Bplus", NULL, 201, "ok");
	door_expect(d, "GET", "/plus%2Bplus", NULL, 200, "\"db_name\":\"plus+plus\"");
}

static void
local_documents_are_posted_and_copied(void **state)
{
	(void)state;
	door_create(d, "locals");
	door_expect_body(d, "POST", "/locals", "{\"_id\":\"_local/a\",\"n\":1}", 201,
			 "{\"ok\":true,\"id\":\"_local/a\",\"rev\":\"0-1\"}");
	assert_string_equal(response_header(&d->last, "Location"),
			    "http://localhost:5984/locals/_local%2Fa");
	door_expect_body(d, "PUT", "/locals/_local/b?batch=ok", "{}", 202,
			 "{\"ok\":true,\"id\":\"_local/b\"}");
	door_expect(d, "GET", "/locals/_local/b", NULL, 200, "0-1");

	door_request(d, "COPY", "/locals/_local/a", "Destination: _local/c\r\n", NULL);
	assert_int_equal(d->last.status, 201);
	door_has(d, "\"id\":\"_local/c\",\"rev\":\"0-1\"");
	door_expect_body(d, "GET", "/locals/_local/c", NULL, 200,
			 "{\"_id\":\"_local/c\",\"_rev\":\"0-1\",\"n\":1}");
	door_request(d, "COPY", "/locals/_local/a", "Destination: _local/c?rev=0-1\r\n", NULL);
	door_has(d, "\"rev\":\"0-2\"");
	door_request(d, "COPY", "/locals/_local/a", "Destination: d\r\n", NULL);
	assert_int_equal(d->last.status, 201);
	door_expect(d, "GET", "/locals/d", NULL, 200, "\"n\":1}");
	door_request(d, "COPY", "/locals/d", "Destination: _local/d\r\n", NULL);
	assert_int_equal(d->last.status, 201);
	door_expect_body(d, "GET", "/locals/_local/d", NULL, 200,
			 "{\"_id\":\"_local/d\",\"_rev\":\"0-1\",\"n\":1}");
	door_request(d, "COPY", "/locals/_local/none", "Destination: d2\r\n", NULL);
	assert_int_equal(d->last.status, 404);
	door_expect(d, "PUT", "/locals/f", "{\"_attachments\":{\"f\":{\"data\":\"\"}}}", 201, "ok");
	door_request(d, "COPY", "/locals/f", "Destination: _local/f\r\n", NULL);
	assert_int_equal(d->last.status, 201);
	door_expect_body(d, "GET", "/locals/_local/f", NULL, 200,
			 "{\"_id\":\"_local/f\",\"_rev\":\"0-1\"}");
}

static void
listings_refuse_what_is_for_views(void **state)
{
	static const char *const bad[][2] = {
		{ "group_level=1", "Invalid use of grouping on a map view." },
		{ "group=true", "Invalid use of grouping on a map view." },
		{ "stale=foo", "Invalid value for `stale`." },
		{ "stale=", "Invalid value for `stale`." },
		{ "update=foo", "Invalid value for `update`." },
		{ "update=laz", "Invalid value for `update`." },
		{ "partition=x", "`partition` parameter is not supported on this db" },
	};
	static const char *const good[] = { "group_level=0",      "stale=ok",    "update=true",
					    "stale=update_after", "update=lazy", "update=false" };

	(void)state;
	door_create(d, "params");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		door_expect(d, "GET", format("/params/_all_docs?%s", bad[i][0]), NULL, 400,
			    bad[i][1]);
		door_has(d, "query_parse_error");
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		door_expect(d, "GET", format("/params/_all_docs?%s", good[i]), NULL, 200, "rows");
	door_expect(d, "POST", "/params/_all_docs", "{\"keys\":null}", 400,
		    "`keys` body member must be an array.");
	door_expect(d, "POST", "/params/_all_docs", "{\"limit\":\"1\"}", 400,
		    "Invalid value for integer");
	door_expect(d, "POST", "/params/_all_docs", "{\"limit\":1}", 200, "rows");
}

static void
a_querys_parameters_win_over_the_bodys(void **state)
{
	(void)state;
	door_create(d, "both");
	door_expect(d, "POST", "/both/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"a\"},{\"_id\":\"b\"},{\"_id\":\"c\"}]}", 201, "ok");
	door_expect(d, "POST", "/both/_all_docs?limit=1", "{\"limit\":2}", 200, "\"id\":\"a\"");
	door_has_not(d, "\"id\":\"b\"");
	door_expect(d, "POST", "/both/_all_docs?limit=1", "{\"startkey\":\"b\"}", 200,
		    "\"id\":\"b\"");
	door_has_not(d, "\"id\":\"c\"");
}

static void
locations_are_those_that_a_proxys_client_knows(void **state)
{
	(void)state;
	door_request(d, "PUT", "/proxied", "X-Forwarded-Host: db.example\r\n", NULL);
	assert_string_equal(response_header(&d->last, "Location"), "http://db.example/proxied");
	door_request(d, "PUT", "/proxied/a",
		     "X-Forwarded-Host: db.example\r\nX-Forwarded-Ssl: on\r\n", "{}");
	assert_string_equal(response_header(&d->last, "Location"), "https://db.example/proxied/a");
	door_request(d, "PUT", "/proxied/b",
		     "X-Forwarded-Host: db.example\r\nX-Forwarded-Proto: https\r\n", "{}");
	assert_string_equal(response_header(&d->last, "Location"), "https://db.example/proxied/b");
}

static void
offset_counts_design_documents_among_themselves(void **state)
{
	static const char *const cases[][2] = {
		{ "", "\"offset\":0" },
		{ "?key=%22_design/b%22", "\"offset\":1" },
		{ "?startkey=%22_design/c%22", "\"offset\":2" },
		{ "?startkey=%22_design/c%22&skip=1", "\"offset\":3" },
		{ "?startkey=%22a%22", "\"offset\":3" },
		{ "?descending=true", "\"offset\":0" },
		{ "?descending=true&startkey=%22_design/b%22", "\"offset\":1" },
		{ "?skip=9", "\"offset\":3" },
	};

	(void)state;
	door_create(d, "offsets");
	door_expect(d, "POST", "/offsets/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"A\"},{\"_id\":\"_design/a\"},{\"_id\":\"_design/b\"},"
		    "{\"_id\":\"_design/c\"},{\"_id\":\"z\"}]}",
		    201, "ok");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		door_expect(d, "GET", format("/offsets/_design_docs%s", cases[i][0]), NULL, 200,
			    cases[i][1]);
		door_has(d, "\"total_rows\":3");
	}
}

static void
all_dbs_takes_a_key_and_no_nonsense(void **state)
{
	(void)state;
	door_create(d, "keyed1");
	door_create(d, "keyed2");
	door_expect_body(d, "GET", "/_all_dbs?key=%22keyed1%22", NULL, 200, "[\"keyed1\"]");
	door_expect(d, "GET", "/_dbs_info?key=%22keyed2%22", NULL, 200, "[{\"key\":\"keyed2\"");
	door_has_not(d, "keyed1");
	door_expect(d, "GET", "/_all_dbs?descending=maybe", NULL, 400,
		    "Invalid boolean parameter: \\\"maybe\\\"");
	door_expect(d, "GET", "/_all_dbs?inclusive_end=maybe", NULL, 400, "query_parse_error");
	door_expect(d, "POST", "/_dbs_info", "{\"keys\":1}", 400,
		    "`keys` member must be an array.");
	door_expect(d, "POST", "/_dbs_info", "{}", 400, "`keys` member must exist.");
}

/* A replicator that is refused a whole batch tries it again and again. */
static void
replicated_document_that_has_no_place_keeps_out_no_other(void **state)
{
	static const char docs[] = "\"docs\":[{\"_id\":\"a\",\"_rev\":\"1-a\"},"
				   "{\"_id\":\"bad\",\"_rev\":\"2-b\",\"_strange\":[{\"x\":1}]},"
				   "{\"_id\":\"old\",\"_rev\":\"0-x\",\"_revisions\":{\"start\":0,"
				   "\"ids\":[\"x\"]}},{\"_id\":7,\"_rev\":\"1-z\"},"
				   "{\"_id\":\"z\",\"_rev\":\"1-z\",\"n\":[1]}]";

	(void)state;
	door_create(d, "batch");
	door_expect_body(
		d, "POST", "/batch/_bulk_docs", format("{\"new_edits\":false,%s}", docs), 201,
		"[{\"id\":\"bad\",\"rev\":\"2-b\",\"error\":\"doc_validation\",\"reason\":"
		"\"Bad special document member: _strange\"},{\"id\":\"old\",\"rev\":\"0-x\","
		"\"error\":\"bad_request\",\"reason\":\"Invalid rev format\"},{\"id\":\"\","
		"\"rev\":\"1-z\",\"error\":\"illegal_docid\",\"reason\":\"Document id must be "
		"a string\"}]");
	door_expect(d, "GET", "/batch/a", NULL, 200, "1-a");
	door_expect(d, "GET", "/batch/z", NULL, 200, "\"n\":[1]");
	door_expect(d, "GET", "/batch/bad", NULL, 404, "missing");
	door_expect_body(d, "POST", "/batch/_revs_diff",
			 "{\"a\":[\"1-a\"],\"_strange\":[\"1-b\",\"2-b\"],\"z\":[\"2-z\"],\"\":[]}",
			 200,
			 "{\"z\":{\"missing\":[\"2-z\"],\"possible_ancestors\":[\"1-z\"]},"
			 "\"_strange\":{\"missing\":[\"1-b\",\"2-b\"]}}");
	door_expect_body(d, "POST", "/batch/_missing_revs", "{\"_strange\":[\"1-b\"]}", 200,
			 "{\"missing_revs\":{\"_strange\":[\"1-b\"]}}");
	/* Members come in any order; what is no JSON is nobody's document. */
	door_expect(d, "POST", "/batch/_bulk_docs", format("{%s,\"new_edits\":false}", docs), 201,
		    "doc_validation");
	door_expect(d, "POST", "/batch/_bulk_docs",
		    "{\"new_edits\":false,\"docs\":[{\"_id\":\"b\",\"_rev\":\"1-b\"},{\"_id\":x}]}",
		    400, "invalid UTF-8 JSON");
	/* An edit's client is told of its mistake, and nothing is written. */
	door_expect(d, "POST", "/batch/_bulk_docs",
		    "{\"docs\":[{\"_id\":\"c\"},{\"_id\":\"bad\",\"_strange\":1}]}", 400,
		    "Bad special document member: _strange");
	door_expect(d, "GET", "/batch/c", NULL, 404, "missing");
}

static void
small_things_are_as_in_couchdb(void **state)
{
	const char *rev;

	(void)state;
	door_expect(d, "PUT", "/small?partitioned=yes", NULL, 400,
		    "Invalid `partitioned` parameter");
	door_expect(d, "PUT", "/small?partitioned=false", NULL, 201, "ok");
	door_expect(d, "POST", "/small/_compact/x", "{}", 404, "missing");
	door_expect(d, "PUT", "/small/_design/x", "{}", 201, "ok");
	door_expect(d, "POST", "/small/_compact/x", "{}", 202, "ok");
	door_expect(d, "PUT", "/small/a", "{}", 201, "ok");
	rev = door_member(d, "rev");
	/* A deletion is never one of a batch. */
	door_expect(d, "DELETE", format("/small/a?rev=%s&batch=ok", rev), NULL, 200,
		    "\"rev\":\"2-");
	door_expect_body(d, "POST", "/small/_bulk_docs",
			 "{\"all_or_nothing\":true,\"docs\":[{\"_id\":\"b\"},{\"_id\":\"c\"}]}",
			 417,
			 "[{\"id\":\"b\",\"error\":\"not_implemented\",\"reason\":"
			 "\"all_or_nothing is not supported\"},{\"id\":\"c\",\"error\":"
			 "\"not_implemented\",\"reason\":\"all_or_nothing is not supported\"}]");
	door_expect(d, "GET", "/small/b", NULL, 404, "missing");
	door_expect(d, "POST", "/small/_bulk_docs",
		    "{\"all_or_nothing\":false,\"docs\":[{\"_id\":\"b\"}]}", 201, "ok");
	door_expect(d, "PUT", "/small/r?new_edits=false", "{\"_rev\":\"0-x\"}", 400,
		    "Invalid rev format");
	door_expect_body(d, "POST", "/small/_bulk_docs",
			 "{\"new_edits\":false,\"docs\":[{\"_id\":\"r\",\"_rev\":\"0-x\"}]}", 201,
			 "[{\"id\":\"r\",\"rev\":\"0-x\",\"error\":\"bad_request\",\"reason\":"
			 "\"Invalid rev format\"}]");
	/* Ancestors of a first revision: CouchDB has such documents, and replicates them. */
	door_expect(d, "PUT", "/small/h?new_edits=false",
		    "{\"_revisions\":{\"start\":1,\"ids\":[\"a\",\"b\",\"c\"]}}", 201,
		    "\"rev\":\"1-a\"");
	door_expect(d, "GET", "/small/h?revs=true", NULL, 200,
		    "\"_revisions\":{\"start\":1,\"ids\":[\"a\"]}");
	door_expect(d, "PUT", "/small/_local%2F", "{}", 400, "Invalid _local document id.");
	door_expect(d, "GET", "/small/_temp_view", NULL, 410, "Temporary views are not supported");
	door_expect(d, "GET", "/_uuids", NULL, 200, "uuids");
	assert_int_equal(strlen(response_header(&d->last, "ETag")), 34);
}

static void
uuids_come_in_order(void **state)
{
	char last[33] = "";

	(void)state;
	for (int i = 0; i < 3; i++) {
		const char *at;

		door_expect(d, "GET", "/_uuids?count=1000", NULL, 200, "{\"uuids\":[\"");
		at = d->last.body + strlen("{\"uuids\":[");
		for (int j = 0; j < 1000; j++, at += 35) {
			assert_int_equal(at[0], '"');
			assert_true(strncmp(last, at + 1, 32) < 0);
			memcpy(last, at + 1, 32);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(design_documents_have_a_shape),
		cmocka_unit_test(well_formed_design_documents_are_taken),
		cmocka_unit_test(every_writer_of_design_documents_checks_them),
		cmocka_unit_test(a_plus_in_a_path_is_a_space),
		cmocka_unit_test(local_documents_are_posted_and_copied),
		cmocka_unit_test(listings_refuse_what_is_for_views),
		cmocka_unit_test(a_querys_parameters_win_over_the_bodys),
		cmocka_unit_test(locations_are_those_that_a_proxys_client_knows),
		cmocka_unit_test(offset_counts_design_documents_among_themselves),
		cmocka_unit_test(all_dbs_takes_a_key_and_no_nonsense),
		cmocka_unit_test(replicated_document_that_has_no_place_keeps_out_no_other),
		cmocka_unit_test(uuids_come_in_order),
		cmocka_unit_test(small_things_are_as_in_couchdb),
	};

	return cmocka_run_group_tests_name("couch conformance", tests, setup, teardown);
}
