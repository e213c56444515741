/* _index and _explain: indexes that clients define, and which one a query takes. */
#include "common.h"
#include "store.h"

static void
put(const char *db, const char *id, const char *body)
{
	door_expect(d, "PUT", format("/%s/%s", db, id), body, 201, "ok");
}

static void
create(const char *db, const char *body, const char *expected)
{
	door_expect(d, "POST", format("/%s/_index", db), body, 200, expected);
}

static void
an_index_is_a_design_document_that_couchdb_would_have_made(void **state)
{
	(void)state;
	door_create(d, "made");
	/* The names are CouchDB's: the hash of the definition and the options. */
	create("made", "{\"index\":{\"fields\":[\"foo\"]},\"name\":\"foo-index\"}",
	       "{\"result\":\"created\",\"id\":\"_design/"
	       "74644dcd981a77aa2a982e4eb0956fbad86c5a3f\",\"name\":\"foo-index\"}");
	create("made", "{\"index\":{\"fields\":[\"age\"]}}",
	       "\"id\":\"_design/ae8325de4e40689e6a6f4843a539d4b91f68c4f1\","
	       "\"name\":\"ae8325de4e40689e6a6f4843a539d4b91f68c4f1\"");
	create("made", "{\"index\":{\"fields\":[\"age\"]}}", "\"result\":\"exists\"");
	door_expect(d, "GET", "/made/_design/ae8325de4e40689e6a6f4843a539d4b91f68c4f1", NULL, 200,
		    "\"language\":\"query\",\"views\":{"
		    "\"ae8325de4e40689e6a6f4843a539d4b91f68c4f1\":{\"map\":{\"fields\":{\"age\":"
		    "\"asc\"},\"partial_filter_selector\":{}},\"options\":{\"def\":{\"fields\":["
		    "\"age\"]}},\"reduce\":\"_count\"}}}");
	create("made",
	       "{\"index\":{\"fields\":[\"b\",\"a\"],\"partial_filter_selector\":{\"$not\":{\"s\":"
	       "1}}},\"ddoc\":\"two\",\"name\":\"x\"}",
	       "{\"result\":\"created\",\"id\":\"_design/two\",\"name\":\"x\"}");
	create("made",
	       "{\"index\":{\"fields\":[{\"c\":\"desc\"}]},\"ddoc\":\"_design/two\","
	       "\"name\":\"y\"}",
	       "\"result\":\"created\"");
	door_expect(d, "GET", "/made/_index", NULL, 200,
		    "{\"total_rows\":5,\"indexes\":[{\"ddoc\":null,\"name\":\"_all_docs\","
		    "\"type\":\"special\",\"def\":{\"fields\":[{\"_id\":\"asc\"}]}},");
	assert_non_null(strstr(d->last.body,
			       "{\"ddoc\":\"_design/two\",\"name\":\"x\",\"type\":\"json\","
			       "\"partitioned\":false,\"def\":{\"fields\":[{\"b\":\"asc\"},{\"a\":"
			       "\"asc\"}],\"partial_filter_selector\":{\"s\":{\"$ne\":1}}}},"
			       "{\"ddoc\":\"_design/two\",\"name\":\"y\",\"type\":\"json\","
			       "\"partitioned\":false,\"def\":{\"fields\":[{\"c\":\"desc\"}]}}]}"));
	door_expect(d, "GET", "/made/_index?skip=3&limit=1", NULL, 200,
		    "{\"total_rows\":5,\"indexes\":[{\"ddoc\":\"_design/two\",\"name\":\"x\"");
	door_expect(d, "GET", "/made/_index?limit=0", NULL, 500, "invalid_list_index_params");
	door_expect(d, "GET", "/made/_index?skip=-1", NULL, 500, "invalid_list_index_params");
}

static void
indexes_are_counted_where_that_is_asked_for(void **state)
{
	const char *bytes;

	(void)state;
	door_create(d, "counted");
	door_expect(d, "GET", "/counted", NULL, 200, "{\"db_name\":\"counted\",\"purge_seq\":");
	for (int i = 0; i < 20; i++)
		put("counted", format("d%02d", i), i % 2 ? "{\"a\":1}" : "{\"a\":1,\"b\":2}");
	create("counted", "{\"index\":{\"fields\":[\"a\"]},\"ddoc\":\"a\",\"name\":\"a\"}", "");
	create("counted", "{\"index\":{\"fields\":[\"b\"]},\"ddoc\":\"b\",\"name\":\"b\"}", "");
	door_expect(d, "GET", "/counted", NULL, 200,
		    "{\"db_name\":\"counted\",\"indexes\":{\"count\":2,\"entries\":30},");
	door_expect(d, "GET", "/counted/_index?sizes=true", NULL, 200,
		    "\"def\":{\"fields\":[{\"a\":\"asc\"}]},\"state\":\"ready\",\"entries\":20,"
		    "\"bytes\":");
	bytes = strstr(d->last.body, "\"bytes\":") + strlen("\"bytes\":");
	/* A cluster estimates by samples, and finds nothing in a range so small. */
	if (!test_store_is_cluster())
		assert_true(atoi(bytes) > 20 * 10 && atoi(bytes) < 20 * 100);
	door_has(d, "\"def\":{\"fields\":[{\"b\":\"asc\"}]},\"state\":\"ready\",\"entries\":10,");
	door_expect(d, "GET", "/counted/_index?sizes=false", NULL, 200, "\"total_rows\":3,");
	door_has_not(d, "entries");
	door_expect(d, "GET", "/counted/_index?sizes=1", NULL, 400, "query_parse_error");
	door_expect(d, "DELETE", "/counted/_index/a/json/a", NULL, 200, "ok");
	door_expect(d, "GET", "/counted/_index?sizes=true", NULL, 200, "\"entries\":10,");
	door_has_not(d, "\"entries\":20");
}

static void
indexes_are_deleted_one_by_one_or_by_design_document(void **state)
{
	(void)state;
	door_create(d, "gone");
	create("gone", "{\"index\":{\"fields\":[\"a\"]},\"ddoc\":\"one\",\"name\":\"a\"}", "");
	create("gone", "{\"index\":{\"fields\":[\"b\"]},\"ddoc\":\"one\",\"name\":\"b\"}", "");
	create("gone", "{\"index\":{\"fields\":[\"c\"]},\"ddoc\":\"two\",\"name\":\"c\"}", "");
	door_expect(d, "DELETE", "/gone/_index/one/json/a", NULL, 200, "{\"ok\":true}");
	door_expect(d, "GET", "/gone/_design/one", NULL, 200, "\"views\":{\"b\":");
	door_expect(d, "DELETE", "/gone/_index/_design/one/json/none", NULL, 404, "not_found");
	door_expect(d, "DELETE", "/gone/_index/_design/one/text/b", NULL, 404, "not_found");
	door_expect(d, "DELETE", "/gone/_index/_design/one/json/b", NULL, 200, "{\"ok\":true}");
	door_expect(d, "GET", "/gone/_design/one", NULL, 404, "deleted");
	door_expect(d, "POST", "/gone/_index/_bulk_delete",
		    "{\"docids\":[\"_design/two\",\"none\"],\"w\":3}", 200,
		    "{\"success\":[{\"id\":\"_design/two\",\"ok\":true}],\"fail\":[{\"id\":"
		    "\"_design/none\",\"error\":\"not_found\"}]}");
	door_expect(d, "GET", "/gone/_index", NULL, 200, "{\"total_rows\":1,");
	door_expect(d, "POST", "/gone/_index/_bulk_delete", "{\"docids\":[1,null]}", 400,
		    "{\"error\":\"invalid_index_name\",\"reason\":\"Invalid index name: 1\"}");
	door_expect(d, "POST", "/gone/_index/_bulk_delete", "{\"docids\":1}", 400,
		    "invalid_bulk_docs");
	/* What is deleted may be created again. */
	create("gone", "{\"index\":{\"fields\":[\"a\"]},\"ddoc\":\"one\",\"name\":\"a\"}",
	       "\"created\"");
}

static void
too_many_names_of_indexes_are_refused(void **state)
{
	enum {
		MOST = 10000
	};
	AUTO(buf_release) struct buf body = BUF_INIT((size_t)MOST * 10);

	(void)state;
	door_create(d, "names");
	for (int count = MOST; count <= MOST + 1; count++) {
		buf_clear(&body);
		buf_append_cstr(&body, "{\"docids\":[\"a\"");
		for (int i = 1; i < count; i++)
			buf_printf(&body, ",\"%d\"", i);
		buf_append_cstr(&body, "]}");
		buf_append_byte(&body, '\0');
		assert_int_equal(buf_status(&body), STATUS_OK);
		if (count == MOST)
			door_expect(d, "POST", "/names/_index/_bulk_delete", body.ptr, 200,
				    "{\"success\":[],\"fail\":[{\"id\":\"_design/a\",");
		else
			door_expect(d, "POST", "/names/_index/_bulk_delete", body.ptr, 413,
				    "`docids` has more than 10000 names.");
	}
}

/* More of them than change in one transaction, one twice, some without an index. */
static void
many_indexes_are_deleted_at_once(void **state)
{
	enum {
		MANY = 230
	};
	AUTO(buf_release) struct buf body = BUF_INIT(MANY * 64);
	AUTO(buf_release) struct buf success = BUF_INIT(MANY * 64);

	(void)state;
	door_create(d, "lots");
	buf_append_cstr(&body, "{\"docids\":[");
	put("lots", "_design/other", "{\"language\":\"javascript\"}");
	for (int i = 0; i < MANY; i++) {
		const char *comma = i ? "," : "";

		put("lots", format("_design/i%d", i),
		    format("{\"language\":\"query\",\"views\":{\"v\":{\"map\":{\"fields\":"
			   "{\"a%d\":\"asc\"}}}}}",
			   i));
		buf_printf(&body, "%s\"i%d\"", comma, i);
		buf_printf(&success, "%s{\"id\":\"_design/i%d\",\"ok\":true}", comma, i);
		if (i % 100 == 50)
			buf_printf(&body, ",\"i7\"");
	}
	assert_int_equal(buf_status(&body), STATUS_OK);
	assert_int_equal(buf_status(&success), STATUS_OK);
	/* One that cannot change is the end of it, after those before it. */
	door_expect(d, "POST", "/lots/_index/_bulk_delete",
		    "{\"docids\":[\"i0\",\"other\",\"i1\"]}", 400, "invalid_ddoc_lang");
	door_expect(d, "GET", "/lots/_index", NULL, 200, "\"total_rows\":230,");
	put("lots", "_design/i0",
	    "{\"language\":\"query\",\"views\":{\"v\":{\"map\":{\"fields\":{\"a\":\"asc\"}}}}}");
	buf_append_byte(&success, '\0');
	buf_append_cstr(&body, "]}");
	buf_append_byte(&body, '\0');
	door_expect(d, "POST", "/lots/_index/_bulk_delete", body.ptr, 200,
		    "],\"fail\":[{\"id\":\"_design/i7\",\"error\":\"not_found\"},{\"id\":"
		    "\"_design/i7\",\"error\":\"not_found\"}]}");
	door_has(d, success.ptr);
	door_expect(d, "GET", "/lots/_index", NULL, 200, "{\"total_rows\":1,");
}

static void
definitions_that_a_loop_keeps_follow_their_design_documents(void **state)
{
	(void)state;
	door_create(d, "kept");
	door_expect(d, "GET", "/kept/_index", NULL, 200, "\"total_rows\":1,");
	/* The engine has no entries of attachments, so nothing but the document says of them. */
	put("kept", "_design/x",
	    "{\"language\":\"query\",\"views\":{\"a\":{\"map\":{\"fields\":"
	    "{\"_attachments\":\"asc\"}}},\"b\":{\"map\":{\"fields\":"
	    "{\"_attachments.x\":\"asc\"}}}}}");
	door_expect(d, "GET", "/kept/_index", NULL, 200, "\"total_rows\":3,");
	door_expect(d, "DELETE", "/kept/_index/x/json/a", NULL, 200, "ok");
	door_expect(d, "GET", "/kept/_index", NULL, 200, "\"total_rows\":2,");
	door_has(d, "\"name\":\"b\"");
	door_expect(d, "DELETE", "/kept/_index/x/json/b", NULL, 200, "ok");
	door_expect(d, "GET", "/kept/_index", NULL, 200, "\"total_rows\":1,");
	/* Another database of the name has none. */
	create("kept", "{\"index\":{\"fields\":[\"a\"]}}", "created");
	door_expect(d, "GET", "/kept/_index", NULL, 200, "\"total_rows\":2,");
	door_expect(d, "DELETE", "/kept", NULL, 200, "ok");
	door_create(d, "kept");
	door_expect(d, "GET", "/kept/_index", NULL, 200, "\"total_rows\":1,");
}

static void
what_is_wrong_with_an_index_is_told_in_couchdbs_words(void **state)
{
	static const struct {
		const char *body, *error;
		int status;
	} cases[] = {
		{ "{}", "\"missing_required_key\",\"reason\":\"Missing required key: index\"",
		  400 },
		{ "{\"index\":1}",
		  "\"invalid_index\",\"reason\":\"JSON indexes must be an object, not: 1\"", 400 },
		{ "{\"index\":{}}",
		  "\"missing_required_key\",\"reason\":\"Missing required key: fields\"", 400 },
		{ "{\"index\":{\"fields\":[]}}", "\"invalid_index\"", 400 },
		{ "{\"index\":{\"fields\":\"a\"}}", "\"invalid_sort_json\"", 400 },
		{ "{\"index\":{\"fields\":[\"\"]}}", "\"invalid_sort_field\"", 400 },
		{ "{\"index\":{\"fields\":[\"a..b\"]}}", "\"invalid_field_name\"", 400 },
		{ "{\"index\":{\"fields\":[{\"a\":\"asc\"},{\"b\":\"desc\"}]}}",
		  "\"unsupported_mixed_sort\"", 400 },
		{ "{\"index\":{\"fields\":[\"a\"],\"odd\":1}}", "\"invalid_key\"", 400 },
		{ "{\"index\":{\"fields\":[\"a\"]},\"type\":\"odd\"}",
		  "\"invalid_index\",\"reason\":\"Invalid type for index: odd\"", 400 },
		{ "{\"index\":{\"fields\":[\"a\"]},\"type\":\"text\"}",
		  "\"index_not_implemented\",\"reason\":\"text: there is no full-text search here",
		  501 },
		{ "{\"index\":{\"fields\":[\"a\"]},\"name\":\"\"}", "\"invalid_empty_string\"",
		  400 },
		{ "{\"index\":{\"fields\":[\"a\"]},\"ddoc\":1}", "\"invalid_string\"", 400 },
		{ "{\"index\":{\"fields\":[\"a\"]},\"w\":0}", "\"invalid_pos_integer\"", 400 },
		{ "{\"index\":{\"fields\":[\"a\"]},\"ddoc\":\"js\"}", "\"invalid_ddoc_lang\"",
		  400 },
		{ "{\"index\":{\"fields\":[\"a\"],\"partial_filter_selector\":{\"a\":{\"$in\":1}}}"
		  "}",
		  "\"bad_arg\"", 400 },
	};

	(void)state;
	door_create(d, "bad");
	put("bad", "_design/js", "{\"views\":{}}");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		door_expect(d, "POST", "/bad/_index", cases[i].body, cases[i].status,
			    cases[i].error);
	door_expect(d, "PUT", "/bad/_index", "{}", 405, "method_not_allowed");
	/* A view that is no index of ours breaks nothing. */
	put("bad", "_design/odd",
	    "{\"language\":\"query\",\"views\":{\"v\":{\"map\":{\"fields\":1}}}}");
	door_expect(d, "GET", "/bad/_index", NULL, 200, "{\"total_rows\":1,");
}

static void
a_sort_needs_an_index_and_follows_it(void **state)
{
	char kept[FOUND_BOOKMARK_BYTES];

	(void)state;
	door_create(d, "sort");
	put("sort", "a", "{\"n\":3,\"s\":\"x\"}");
	put("sort", "b", "{\"n\":1,\"s\":\"x\"}");
	put("sort", "c", "{\"n\":2.5,\"s\":\"y\"}");
	put("sort", "d", "{\"n\":\"t\",\"s\":\"x\"}");
	put("sort", "e", "{\"s\":\"x\"}");
	put("sort", "f", "{\"n\":1,\"s\":\"x\"}");
	door_expect(d, "POST", "/sort/_find", "{\"selector\":{\"s\":\"x\"},\"sort\":[\"n\"]}", 400,
		    "\"error\":\"no_usable_index\",\"reason\":\"No index exists for this sort, try "
		    "indexing by the sort fields.\"");
	create("sort", "{\"index\":{\"fields\":[\"n\"]},\"ddoc\":\"n\",\"name\":\"n\"}", "");
	expect_found("sort", "{\"selector\":{\"s\":\"x\"},\"sort\":[\"n\"]}", "b,f,a,d");
	assert_null(strstr(d->last.body, "No matching index found"));
	expect_found("sort", "{\"selector\":{},\"sort\":[{\"n\":\"desc\"}],\"limit\":3}", "d,a,c");
	expect_found("sort",
		     format("{\"selector\":{},\"sort\":[{\"n\":\"desc\"}],\"limit\":2,"
			    "\"bookmark\":\"%s\"}",
			    found_bookmark()),
		     "f,b");
	expect_found("sort",
		     format("{\"selector\":{},\"sort\":[{\"n\":\"desc\"}],\"limit\":2,"
			    "\"bookmark\":\"%s\"}",
			    found_bookmark()),
		     "");
	/* A bookmark belongs to its index, even where another one would serve as well. */
	expect_found("sort", "{\"selector\":{\"n\":{\"$gt\":1}},\"limit\":1}", "c");
	(void)snprintf(kept, sizeof(kept), "%s", found_bookmark());
	create("sort", "{\"index\":{\"fields\":[\"n\"]},\"ddoc\":\"a\",\"name\":\"a\"}", "");
	expect_found(
		"sort",
		format("{\"selector\":{\"n\":{\"$gt\":1}},\"limit\":1,\"bookmark\":\"%s\"}", kept),
		"a");
	door_expect(d, "POST", "/sort/_find",
		    format("{\"selector\":{\"s\":\"x\"},\"bookmark\":\"%s\"}", found_bookmark()),
		    400, "invalid_bookmark");
	expect_found("sort", "{\"selector\":{\"n\":{\"$gt\":1}},\"sort\":[\"n\"],\"skip\":1}",
		     "a,d");
	door_expect(
		d, "POST", "/sort/_find",
		"{\"selector\":{\"n\":1},\"sort\":[\"n\"],\"fields\":[\"s\"],\"conflicts\":true}",
		200, "[\r\n{\"s\":\"x\"},\r\n{\"s\":\"x\"}\r\n]");
	create("sort", "{\"index\":{\"fields\":[\"s\",\"n\"]},\"ddoc\":\"sn\",\"name\":\"sn\"}",
	       "");
	expect_found("sort", "{\"selector\":{\"s\":\"x\"},\"sort\":[\"s\",\"n\"]}", "b,f,a,d");
	expect_found(
		"sort",
		"{\"selector\":{\"s\":{\"$gt\":\"\"},\"n\":{\"$exists\":true}},\"sort\":[\"s\"]}",
		"b,f,a,d,c");
	door_expect(d, "POST", "/sort/_find",
		    "{\"selector\":{\"s\":\"x\",\"n\":{\"$gt\":0}},\"sort\":[\"n\",\"s\"]}", 400,
		    "no_usable_index");
}

static void
a_partial_index_that_is_named_filters(void **state)
{
	(void)state;
	door_create(d, "part");
	put("part", "a", "{\"n\":1,\"s\":\"x\"}");
	put("part", "b", "{\"n\":2,\"s\":\"y\"}");
	create("part",
	       "{\"index\":{\"fields\":[\"n\"],\"partial_filter_selector\":{\"s\":\"x\"}},\"ddoc\":"
	       "\"p\",\"name\":\"p\"}",
	       "");
	expect_found("part", "{\"selector\":{\"n\":{\"$gt\":0}}}", "a,b");
	expect_found("part", "{\"selector\":{\"n\":{\"$gt\":0}},\"use_index\":\"p\"}", "a");
	/* Also where its entries answer, which do not have what the filter looks at. */
	expect_found(
		"part",
		"{\"selector\":{\"n\":{\"$gt\":0}},\"use_index\":\"p\",\"fields\":[\"_id\",\"n\"]}",
		"a");
}

/* 200 documents with n from 0 to 199, s "x" in every second, and t, the same for 20 each. */
static void
put_many(const char *db)
{
	static char docs[16384];
	size_t len = (size_t)snprintf(docs, sizeof(docs), "{\"docs\":[");

	for (int i = 0; i < 200; i++)
		len += (size_t)snprintf(docs + len, sizeof(docs) - len,
					"%s{\"_id\":\"d%03d\",\"n\":%d,\"s\":\"%s\",\"t\":%d}",
					i ? "," : "", i, i, i % 2 ? "y" : "x", i % 10);
	(void)snprintf(docs + len, sizeof(docs) - len, "]}");
	door_expect(d, "POST", format("/%s/_bulk_docs", db), docs, 201, "ok");
}

static void
expect_way(const char *db, const char *body, const char *way)
{
	door_expect(d, "POST", format("/%s/_explain", db), body, 200, way);
}

static void
a_partial_index_is_taken_where_the_selector_implies_its_filter(void **state)
{
	(void)state;
	door_create(d, "implied");
	put_many("implied");
	create("implied",
	       "{\"index\":{\"fields\":[\"n\"],\"partial_filter_selector\":{\"s\":\"x\",\"t\":{"
	       "\"$gte\":4}}},\"ddoc\":\"p\",\"name\":\"p\"}",
	       "");
	expect_way("implied",
		   "{\"selector\":{\"n\":{\"$gt\":190},\"s\":\"x\",\"t\":{\"$in\":[4,6]}}}",
		   "{\"dbname\":\"implied\",\"index\":{\"ddoc\":\"_design/p\"");
	expect_way("implied", "{\"selector\":{\"n\":{\"$gt\":190},\"s\":\"x\",\"t\":{\"$gt\":5}}}",
		   "{\"dbname\":\"implied\",\"index\":{\"ddoc\":\"_design/p\"");
	expect_found("implied",
		     "{\"selector\":{\"n\":{\"$gt\":180},\"s\":\"x\",\"t\":{\"$gt\":5}}}",
		     "d186,d188,d196,d198");
	expect_way("implied", "{\"selector\":{\"n\":{\"$gt\":190},\"s\":\"x\",\"t\":{\"$gt\":3}}}",
		   "{\"dbname\":\"implied\",\"index\":{\"ddoc\":null");
	expect_way("implied", "{\"selector\":{\"n\":{\"$gt\":190},\"s\":\"x\"}}",
		   "\"reasons\":[{\"name\":\"is_partial\"}]");
}

static void
the_cheapest_way_is_taken_where_there_is_much_to_read(void **state)
{
	(void)state;
	door_create(d, "ways");
	put_many("ways");
	create("ways", "{\"index\":{\"fields\":[\"s\"]},\"ddoc\":\"a\",\"name\":\"s\"}", "");
	create("ways", "{\"index\":{\"fields\":[\"n\"]},\"ddoc\":\"b\",\"name\":\"n\"}", "");
	create("ways", "{\"index\":{\"fields\":[\"t\"]},\"ddoc\":\"c\",\"name\":\"t\"}", "");
	/* CouchDB would read the 100 documents of the first index. */
	expect_way("ways", "{\"selector\":{\"s\":\"x\",\"n\":{\"$gt\":195}}}",
		   "{\"dbname\":\"ways\",\"index\":{\"ddoc\":\"_design/b\"");
	assert_non_null(strstr(d->last.body, "\"more_rows\""));
	expect_found("ways", "{\"selector\":{\"s\":\"x\",\"n\":{\"$gt\":195}}}", "d196,d198");
	expect_way("ways", "{\"selector\":{\"$or\":[{\"n\":7},{\"t\":3,\"n\":{\"$lt\":9}}]}}",
		   "\"way\":\"index\",\"sorts\":false,\"estimated_rows\":9,");
	expect_way("ways", "{\"selector\":{\"$or\":[{\"n\":7},{\"t\":3}]}}", "\"way\":\"union\"");
	expect_found("ways", "{\"selector\":{\"$or\":[{\"n\":7},{\"t\":3}]},\"limit\":3}",
		     "d003,d007,d013");
	expect_found("ways",
		     format("{\"selector\":{\"$or\":[{\"n\":7},{\"t\":3}]},\"limit\":2,"
			    "\"bookmark\":\"%s\"}",
			    found_bookmark()),
		     "d023,d033");
	expect_way("ways", "{\"selector\":{\"_id\":{\"$in\":[\"d007\",\"none\",\"d003\"]}}}",
		   "\"way\":\"sets\"");
	expect_found("ways", "{\"selector\":{\"_id\":{\"$in\":[\"d007\",\"none\",\"d003\"]}}}",
		     "d003,d007");
	expect_found("ways",
		     "{\"selector\":{\"t\":3,\"n\":{\"$lt\":30}},\"sort\":[{\"n\":\"desc\"}]}",
		     "d023,d013,d003");
}

enum {
	WINDOW_DOCS = 12000,
	WINDOW_BULK = 2000,
	WINDOW_PAGE_MOST = 150,
};

static void
put_window_docs(const char *db)
{
	static char docs[WINDOW_BULK * 80];

	for (int from = 0; from < WINDOW_DOCS; from += WINDOW_BULK) {
		size_t len = (size_t)snprintf(docs, sizeof(docs), "{\"docs\":[");

		for (int i = from; i < from + WINDOW_BULK; i++)
			len += (size_t)snprintf(docs + len, sizeof(docs) - len,
						"%s{\"_id\":\"d%05d\",\"a\":%d,\"b\":%d,"
						"\"c\":%d}",
						i > from ? "," : "", i, i % 16, i % 18, -i);
		(void)snprintf(docs + len, sizeof(docs) - len, "]}");
		door_expect(d, "POST", format("/%s/_bulk_docs", db), docs, 201, "ok");
	}
}

/* What the selector asks for. */
static struct {
	int a, b;
	bool even; /* and nothing else */
} wanted_values;

static bool
is_in_union(int i)
{
	return (i % 16 == wanted_values.a || i % 18 == wanted_values.b || i == 8) &&
	       (!wanted_values.even || i % 2 == 0);
}

static bool
is_in_intersection(int i)
{
	return i % 16 == wanted_values.a && i % 18 == wanted_values.b;
}

/* Reads all pages; each has the next documents, and costs no more than it has to. */
static void
expect_pages(const char *text, const char *way, bool (*wanted)(int i), int page, unsigned keys_most,
	     bool descending)
{
	const char *sort = descending ? ",\"sort\":[{\"_id\":\"desc\"}]" : "";
	char selector[200];
	char bookmark[4096] = "nil";
	int at = 0;

	(void)snprintf(selector, sizeof(selector), "%s", text);
	door_expect(d, "POST", "/windows/_explain",
		    format("{\"selector\":%s,\"limit\":%d%s}", selector, page, sort), 200,
		    format("\"way\":\"%s\"", way));
	for (bool more = true; more;) {
		char ids[WINDOW_PAGE_MOST * 8 + 1] = "";
		size_t len = 0;
		int rows = 0;

		for (; at < WINDOW_DOCS && rows < page; at++) {
			int i = descending ? WINDOW_DOCS - 1 - at : at;

			if (!wanted(i))
				continue;
			len += (size_t)snprintf(ids + len, sizeof(ids) - len, "%sd%05d",
						rows++ ? "," : "", i);
		}
		more = rows == page;
		door_expect(d, "POST", "/windows/_find",
			    format("{\"selector\":%s,\"limit\":%d,\"bookmark\":\"%s\","
				   "\"execution_stats\":true%s}",
				   selector, page, bookmark, sort),
			    200, "{\"docs\":[");
		assert_string_equal(found_ids(), ids);
		assert_in_range(atoi(strstr(d->last.body, "total_keys_examined\":") +
				     strlen("total_keys_examined\":")),
				0, keys_most);
		(void)snprintf(bookmark, sizeof(bookmark), "%s", found_bookmark());
	}
}

static void
pages_of_sets_go_on_at_their_bookmark(void **state)
{
	(void)state;
	door_create(d, "windows");
	create("windows", "{\"index\":{\"fields\":[\"a\"]},\"ddoc\":\"a\",\"name\":\"a\"}", "");
	create("windows", "{\"index\":{\"fields\":[\"b\"]},\"ddoc\":\"b\",\"name\":\"b\"}", "");
	put_window_docs("windows");
	for (int n = 0; n < 5; n++) {
		const int page = (int[]){ 20, 33, 57, 60, 150 }[n];

		wanted_values.a = (3 * n + 1) % 16;
		wanted_values.b = (7 * n + 2) % 18;
		wanted_values.even = n >= 3;
		expect_pages(format("{\"$or\":[{\"a\":%d},{\"b\":%d},{\"_id\":\"d00008\"}]%s}",
				    wanted_values.a, wanted_values.b,
				    n >= 3 ? ",\"_id\":{\"$regex\":\"[02468]$\"}" : ""),
			     "union", is_in_union, page, n < 3 ? 4 * page + 140 : 1500, false);
		if (n % 3)
			continue;
		/* A sort by id asks for a condition on ids. */
		expect_pages(
			format("{\"$or\":[{\"a\":%d},{\"b\":%d},{\"_id\":\"d00008\"}],"
			       "\"_id\":{%s}}",
			       wanted_values.a, wanted_values.b,
			       n >= 3 ? "\"$regex\":\"[02468]$\",\"$gt\":null" : "\"$gt\":null"),
			"union", is_in_union, page, n < 3 ? 4 * page + 140 : 1500, true);
	}
	wanted_values.a = 1;
	wanted_values.b = 3;
	expect_pages("{\"a\":1,\"b\":3}", "intersection", is_in_intersection, 20, 3000, false);
	expect_pages("{\"a\":1,\"b\":3,\"_id\":{\"$gt\":null}}", "intersection", is_in_intersection,
		     20, 3000, true);
}

/* What is sorted, or counted, needs all ids, which come in windows where memory is short. */
static void
sets_that_do_not_fit_come_in_windows(void **state)
{
	static const char selector[] = "{\"$or\":[{\"a\":3},{\"b\":5}],\"c\":{\"$gt\":null}}";
	int count = 0;

	(void)state;
	door_create(d, "short");
	create("short", "{\"index\":{\"fields\":[\"a\"]},\"ddoc\":\"a\",\"name\":\"a\"}", "");
	create("short", "{\"index\":{\"fields\":[\"b\"]},\"ddoc\":\"b\",\"name\":\"b\"}", "");
	create("short", "{\"index\":{\"fields\":[\"c\"]},\"ddoc\":\"c\",\"name\":\"c\"}", "");
	put_window_docs("short");
	for (int i = 0; i < WINDOW_DOCS; i++)
		count += i % 16 == 3 || i % 18 == 5;
	door_expect(d, "PUT", "/_node/_local/_config/mango/sort_bytes", "\"131072\"", 200, "");
	door_expect(
		d, "POST", "/short/_explain",
		format("{\"selector\":%s,\"sort\":[\"c\"],\"limit\":20,\"skip\":350}", selector),
		200, "\"way\":\"union\",\"sorts\":true");
	for (int at = 0; at < 2; at++) {
		char ids[400] = "";
		size_t len = 0;
		int passed = 0;

		/* c is the greatest where the id is the least. */
		for (int i = WINDOW_DOCS - 1; passed < 350 + 20 * (at + 1); i--) {
			if (i % 16 != 3 && i % 18 != 5)
				continue;
			if (passed++ >= 350 + 20 * at)
				len += (size_t)snprintf(ids + len, sizeof(ids) - len, "%sd%05d",
							len ? "," : "", i);
		}
		door_expect(d, "POST", "/short/_find",
			    format("{\"selector\":%s,\"sort\":[\"c\"],\"limit\":20,\"skip\":%d,"
				   "\"execution_stats\":true,\"bookmark\":\"%s\"}",
				   selector, at ? 0 : 350, at ? found_bookmark() : "nil"),
			    200, format("\"total_docs_examined\":%d,", count));
		assert_string_equal(found_ids(), ids);
	}
	door_expect(d, "POST", "/short/_find",
		    "{\"selector\":{\"$or\":[{\"a\":3},{\"b\":5}]},\"aggregate\":{\"count\":true},"
		    "\"execution_stats\":true}",
		    200, format("{\"count\":%d}", count));
	door_has(d, format("\"total_docs_examined\":%d,", count));
	door_expect(d, "DELETE", "/_node/_local/_config/mango/sort_bytes", NULL, 200, "");
}

static void
a_sort_that_does_not_fit_follows_its_index(void **state)
{
	const char *query = "{\"selector\":{\"k\":1,\"v\":{\"$gt\":null}},\"sort\":[\"v\"],"
			    "\"fields\":[\"n\"],\"limit\":150,\"execution_stats\":true";
	char text[1200];
	char bookmark[4096];
	int at = -1;

	(void)state;
	memset(text, 'y', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	door_create(d, "full");
	for (int i = 0; i < 600; i++)
		put("full", format("d%03d", i),
		    format("{\"n\":%d,\"k\":%d,\"v\":\"%03d%s\"}", i, i % 4 ? 2 : 1, 599 - i,
			   text));
	create("full", "{\"index\":{\"fields\":[\"k\"]},\"ddoc\":\"k\",\"name\":\"k\"}", "");
	create("full", "{\"index\":{\"fields\":[\"v\"]},\"ddoc\":\"v\",\"name\":\"v\"}", "");
	door_expect(d, "POST", "/full/_explain", format("%s}", query), 200, "\"sorts\":true");
	/* 150 documents are sorted in memory where they fit. */
	door_expect(d, "POST", "/full/_find", format("%s}", query), 200,
		    "\"total_docs_examined\":150");
	door_expect(d, "PUT", "/_node/_local/_config/mango/sort_bytes", "\"65536\"", 200, "");
	door_expect(d, "POST", "/full/_find", format("%s}", query), 200, "{\"n\":596}");
	door_has(d, "\"results_returned\":150");
	for (int i = 596; i >= 0; i -= 4) {
		const char *row = strstr(d->last.body, format("{\"n\":%d}", i));

		assert_non_null(row);
		assert_true(row - d->last.body > at);
		at = (int)(row - d->last.body);
	}
	/* The page's bookmark is one of the index. */
	door_expect(d, "POST", "/full/_find",
		    format("%s,\"skip\":0,\"bookmark\":\"%s\"}", query, found_bookmark()), 200,
		    "{\"docs\":[\r\n]");
	/* Neither has a bookmark of a page that was sorted another meaning in the index. */
	for (int down = 0; down < 2; down++) {
		const char *sort = down ? "{\"v\":\"desc\"}" : "\"v\"";
		const int next = down ? 40 : 596 - 40;

		door_expect(d, "DELETE", "/_node/_local/_config/mango/sort_bytes", NULL, 200, "");
		door_expect(d, "POST", "/full/_find",
			    format("{\"selector\":{\"k\":1,\"v\":{\"$gt\":null}},\"sort\":[%s],"
				   "\"fields\":[\"n\"],\"limit\":10}",
				   sort),
			    200, format("{\"n\":%d}", down ? 0 : 596));
		(void)snprintf(bookmark, sizeof(bookmark), "%s", found_bookmark());
		door_expect(d, "PUT", "/_node/_local/_config/mango/sort_bytes", "\"65536\"", 200,
			    "");
		door_expect(d, "POST", "/full/_find",
			    format("{\"selector\":{\"k\":1,\"v\":{\"$gt\":null}},\"sort\":[%s],"
				   "\"fields\":[\"n\"],\"limit\":120,\"bookmark\":\"%s\"}",
				   sort, bookmark),
			    200, format("{\"docs\":[\r\n{\"n\":%d}", next));
	}
	door_expect(d, "DELETE", "/_node/_local/_config/mango/sort_bytes", NULL, 200, "");
}

static void
a_query_helps_to_build_the_index_that_it_sorts_by(void **state)
{
	static const char query[] = "{\"selector\":{\"n\":{\"$gt\":197}},\"sort\":[\"n\"]}";

	(void)state;
	door_create(d, "help");
	put_many("help");
	/* Nothing but queries builds what a design document defines here. */
	put("help", "_design/h",
	    "{\"language\":\"query\",\"views\":{\"h\":{\"map\":{\"fields\":{\"n\":\"asc\"}},"
	    "\"reduce\":\"_count\",\"options\":{\"def\":{\"fields\":[\"n\"]}}}}}");
	expect_way("help", query, "\"way\":\"ids\",\"sorts\":true");
	expect_found("help", "{\"selector\":{\"n\":{\"$gt\":197}}}", "d198,d199");
	assert_non_null(strstr(d->last.body, "_design/h, h was not read"));
	expect_found("help", query, "d198,d199");
	assert_null(strstr(d->last.body, "warning"));
	expect_way("help", query, "\"way\":\"index\",\"sorts\":false,\"estimated_rows\":2");
}

static void
an_index_that_cannot_be_read_is_told_of(void **state)
{
	(void)state;
	door_create(d, "partly");
	put("partly", "a", "{\"_attachments\":{\"f\":{\"data\":\"aGk=\"}}}");
	create("partly",
	       "{\"index\":{\"fields\":[\"_attachments\"]},\"ddoc\":\"x\",\"name\":\"x\"}", "");
	expect_found("partly", "{\"selector\":{\"_attachments\":{\"$exists\":true}}}", "a");
	assert_non_null(strstr(d->last.body, "\"warning\": \"_design/x, x was not read because not "
					     "all documents are in it. Documents were read and "
					     "sorted instead.\""));
}

static void
paths_below_the_endpoint_are_known(void **state)
{
	static const char *const paths[] = { "a", "a/b", "a/b/c/d", "a/b/c/d/e" };

	(void)state;
	door_create(d, "paths");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		door_expect(d, "DELETE", format("/paths/_index/%s", paths[i]), NULL, 404, "");
	door_expect(d, "PUT", "/paths/_index/a", "{}", 404, "not_found");
	door_expect(d, "PUT", "/paths/_index/a/json/b", "{}", 405, "Only DELETE allowed");
	door_expect(d, "GET", "/paths/_index/_bulk_delete", NULL, 405, "Only POST allowed");
}

static void
explain_tells_which_index_is_taken_and_why_the_others_are_not(void **state)
{
	(void)state;
	door_create(d, "why");
	create("why", "{\"index\":{\"fields\":[\"age\"]},\"ddoc\":\"age\",\"name\":\"age\"}", "");
	create("why",
	       "{\"index\":{\"fields\":[\"age\",\"name\"]},\"ddoc\":\"both\",\"name\":"
	       "\"both\"}",
	       "");
	create("why",
	       "{\"index\":{\"fields\":[\"age\"],\"partial_filter_selector\":{\"x\":1}},\"ddoc\":"
	       "\"part\",\"name\":\"part\"}",
	       "");
	door_expect(d, "POST", "/why/_explain",
		    "{\"selector\":{\"age\":{\"$gt\":3,\"$lte\":9},\"t\":{\"$regex\":\"a\"}},"
		    "\"fields\":[\"age\"],\"limit\":7}",
		    200,
		    "{\"dbname\":\"why\",\"index\":{\"ddoc\":\"_design/age\",\"name\":\"age\","
		    "\"type\":\"json\",\"partitioned\":false,\"def\":{\"fields\":[{\"age\":\"asc\"}"
		    "]}},\"partitioned\":false,\"selector\":{\"$and\":[{\"$and\":[{\"age\":{\"$gt\""
		    ":3}},{\"age\":{\"$lte\":9}}]},{\"t\":{\"$regex\":\"a\"}}]},\"opts\":{"
		    "\"use_index\":[],\"bookmark\":\"nil\",\"limit\":7,\"skip\":0,\"sort\":{},"
		    "\"fields\":[\"age\"],\"partition\":\"\",\"r\":1,\"conflicts\":false,\"stale\":"
		    "false,\"update\":true,\"stable\":false,\"execution_stats\":false,"
		    "\"allow_fallback\":true},\"limit\":7,\"skip\":0,\"fields\":[\"age\"],"
		    "\"index_candidates\":[{\"index\":{\"ddoc\":\"_design/part\",");
	assert_non_null(strstr(d->last.body,
			       "\"analysis\":{\"usable\":false,\"reasons\":[{\"name\":"
			       "\"is_partial\"}],\"ranking\":3,\"covering\":true}},{\"index\":{"
			       "\"ddoc\":\"_design/both\""));
	assert_non_null(strstr(d->last.body,
			       "\"analysis\":{\"usable\":false,\"reasons\":[{\"name\":"
			       "\"field_mismatch\"}],\"ranking\":2,\"covering\":true}},{\"index\":{"
			       "\"ddoc\":null"));
	assert_non_null(strstr(d->last.body,
			       "\"analysis\":{\"usable\":true,\"reasons\":[{\"name\":"
			       "\"unfavored_type\"}],\"ranking\":1,\"covering\":null}}],"
			       "\"selector_hints\":[{\"type\":\"json\",\"indexable_fields\":["
			       "\"age\"],\"unindexable_fields\":[\"t\"]}],\"mrargs\":{"
			       "\"include_docs\":true,\"view_type\":\"map\",\"reduce\":false,"
			       "\"partition\":null,\"start_key\":[3],\"end_key\":[9,\"<MAX>\"],"
			       "\"direction\":\"fwd\",\"stable\":false,\"update\":true,"
			       "\"conflicts\":\"undefined\"},\"covering\":false,\"plan\":{"
			       "\"way\":\"index\",\"sorts\":false,\"estimated_rows\":0,\"reads\":[{"
			       "\"ddoc\":\"_design/age\",\"name\":\"age\",\"ranges\":1,"
			       "\"estimated_rows\":0}],\"indexes\":["));
	door_expect(d, "POST", "/why/_explain",
		    "{\"selector\":{\"age\":3},\"fields\":[\"_id\"],\"use_index\":\"part\"}", 200,
		    "\"index\":{\"ddoc\":\"_design/part\"");
	assert_non_null(strstr(d->last.body, "\"excluded_by_user\""));
	assert_non_null(strstr(d->last.body, "\"covering\":true,\"plan\":{"));
	door_expect(d, "POST", "/why/_explain", "{\"selector\":{\"b\":1},\"sort\":[\"b\"]}", 200,
		    "\"index\":null,");
	door_expect(d, "POST", "/why/_explain", "{\"selector\":{\"_id\":{\"$lt\":\"x\"}}}", 200,
		    "\"start_key\":\"\",\"end_key\":\"x\"");
	door_expect(d, "POST", "/why/_explain", "{\"selector\":{\"b\":1},\"allow_fallback\":false}",
		    400, "You must specify an index with the `use_index` parameter.");
	door_expect(d, "POST", "/why/_find",
		    "{\"selector\":{\"age\":3},\"use_index\":[\"age\",\"none\"]}", 200,
		    "\"warning\": \"_design/age, none was not used because it is not a valid index "
		    "for this query.\"}\r\n");
	door_expect(d, "POST", "/why/_find",
		    "{\"selector\":{\"b\":3},\"use_index\":\"age\",\"allow_fallback\":false}", 400,
		    "_design/age specified by `use_index` could not be found or it is not "
		    "suitable.");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_index_is_a_design_document_that_couchdb_would_have_made),
		cmocka_unit_test(indexes_are_counted_where_that_is_asked_for),
		cmocka_unit_test(indexes_are_deleted_one_by_one_or_by_design_document),
		cmocka_unit_test(too_many_names_of_indexes_are_refused),
		cmocka_unit_test(many_indexes_are_deleted_at_once),
		cmocka_unit_test(definitions_that_a_loop_keeps_follow_their_design_documents),
		cmocka_unit_test(what_is_wrong_with_an_index_is_told_in_couchdbs_words),
		cmocka_unit_test(a_sort_needs_an_index_and_follows_it),
		cmocka_unit_test(a_partial_index_that_is_named_filters),
		cmocka_unit_test(a_partial_index_is_taken_where_the_selector_implies_its_filter),
		cmocka_unit_test(the_cheapest_way_is_taken_where_there_is_much_to_read),
		cmocka_unit_test(pages_of_sets_go_on_at_their_bookmark),
		cmocka_unit_test(sets_that_do_not_fit_come_in_windows),
		cmocka_unit_test(a_sort_that_does_not_fit_follows_its_index),
		cmocka_unit_test(a_query_helps_to_build_the_index_that_it_sorts_by),
		cmocka_unit_test(an_index_that_cannot_be_read_is_told_of),
		cmocka_unit_test(paths_below_the_endpoint_are_known),
		cmocka_unit_test(explain_tells_which_index_is_taken_and_why_the_others_are_not),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
